-- SPDX-License-Identifier: MIT
-- models.lua - opens a language model: a folder of Hugging Face's layout, or a
-- GGUF file.
--
--   local models = dofile "models.lua"
--   model = models.load(path, {device = "cuda", dtype = "float32"})
--
-- decoder.lua says what the model does.

local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local configuration = dofile(here .. "configuration.lua")
local decoder = dofile(here .. "decoder.lua")
local gguf_models = dofile(here .. "gguf_models.lua")
local json = nacre.json

local models = {refuse = configuration.refuse}

local function read_config(path)
  local config = json.load(path .. "/config.json", {nulls = false})
  local file = io.open(path .. "/generation_config.json")
  if file then
    file:close()
    local more = json.load(path .. "/generation_config.json", {nulls = false})
    config.eos_token_id = more.eos_token_id or config.eos_token_id
  end
  return config
end

-- The configuration and the weights, which are pages of the file where they can
-- be.
local function read(path)
  if path:find "%.gguf$" then
    local tensors, metadata = nacre.load(path, {mmap = true})
    return gguf_models.read(tensors, metadata, configuration.of_table)
  end
  return configuration.of_table(read_config(path)),
         nacre.load(path, {mmap = true})
end

function models.load(path, o)
  local c, weights = read(path)
  for name, t in pairs(weights) do
    if o and o.device then t = t:to(o.device) end
    weights[name] = o and o.dtype and t:to(o.dtype) or t
  end
  return decoder.new(c, weights)
end

return models
