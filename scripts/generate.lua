-- SPDX-License-Identifier: MIT
-- Continues a text with a language model: a folder as Hugging Face has it
-- (config.json, tokenizer.json, .safetensors), or a GGUF file. Models of the
-- families Llama, Mistral, Qwen2, Qwen3, Gemma and GPT-2.
--
--   nacre scripts/generate.lua FOLDER_OR_GGUF [--prompt TEXT] [--tokens 200]
--         [--temperature 0.8] [--top-k 40] [--top-p 0.95] [--seed N]
--         [--device cuda] [--dtype float32]
--
-- --temperature 0 always takes the likeliest token. The text is printed token
-- by token; Ctrl-C ends it.

local here = arg[0]:match "^(.*/)" or "./"
local models = dofile(here .. "language_models/models.lua")
local refuse = models.refuse

local USAGE <const> = [[
usage: nacre scripts/generate.lua FOLDER_OR_GGUF [--prompt TEXT]
       [--tokens N] [--temperature T] [--top-k N] [--top-p P] [--seed N]
       [--device D] [--dtype D]
]]

-- ---- options

local NUMBERS <const> = {tokens = 200, temperature = 0.8, ["top-k"] = 40,
                         ["top-p"] = 0.95}

local function read_options(list)
  local o = {prompt = "", device = "cpu"}
  for name, v in pairs(NUMBERS) do o[name] = v end
  local i = 1
  while list[i] do
    local name = list[i]:match "^%-%-([%w-]+)$"
    local value = list[i + 1]
    if not name then o.path, i = list[i], i - 1
    elseif (NUMBERS[name] or name == "seed") and tonumber(value) then
      o[name] = tonumber(value)
    elseif (name == "prompt" or name == "device" or name == "dtype") and
           value then
      o[name] = value
    else o.path = nil break end
    i = i + 2
  end
  if not o.path then
    io.stderr:write(USAGE)
    os.exit(2)
  end
  return o
end

-- ---- a token of logits

-- The positions of the likeliest tokens, and their logits.
local function likeliest(logits, o)
  local k = math.tointeger(o["top-k"]) or 0
  if k < 1 or k > logits:size(1) then k = logits:size(1) end
  return logits:topk(k)
end

-- A token from 0.
local function choose(logits, o)
  logits = logits:reshape(-1):float():cpu()
  if o.temperature <= 0 then return logits:argmax():item() - 1 end
  local values, places = likeliest(logits / o.temperature, o)
  local p = values:softmax(1)
  if o["top-p"] < 1 then
    -- those before which the sum is below it, at least the first
    local before = p:cumsum(1) - p
    p = p:masked_fill(before:ge(math.max(o["top-p"], 1e-9)), 0)
  end
  return places[p:multinomial(1):item()] - 1
end

-- ---- the text

-- A function that prints the tokens that it is given, each as soon as its
-- characters are complete.
local function new_printer(tok)
  local ids, from, shown = {}, 1, 0
  return function(id)
    ids[#ids + 1] = id
    local before = tok:decode(table.move(ids, from, shown, 1, {}))
    local after = tok:decode(table.move(ids, from, #ids, 1, {}))
    if #after > #before and not after:find "\u{FFFD}$" then
      io.stdout:write(after:sub(#before + 1))
      io.stdout:flush()
      from, shown = shown + 1, #ids
    end
  end
end

local function is_end(model, id)
  for _, other in ipairs(model.c.ends) do
    if other == id then return true end
  end
  return false
end

local function generate(model, tok, o)
  local ids = tok:encode(o.prompt)
  if not ids[1] then refuse "--prompt is needed: the text has no tokens" end
  local cache = model:new_cache(#ids + o.tokens)
  local print_token = new_printer(tok)
  for _, id in ipairs(ids) do print_token(id) end
  for _ = 1, o.tokens do
    local id = choose(model:forward(ids, cache, true), o)
    if is_end(model, id) then break end
    print_token(id)
    ids = {id}
  end
end

local o = read_options(arg)
if o.seed then nacre.manual_seed(o.seed) end
local model = models.load(o.path, o)
local tok = nacre.text.tokenizer(o.path)
-- Ctrl-C ends the line and the program.
local finish <close> = setmetatable({}, {__close = function(_, e)
  print()
  if e and tostring(e):find "interrupted" then os.exit(130, true) end
end})
generate(model, tok, o)
