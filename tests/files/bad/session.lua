-- SPDX-License-Identifier: MIT
-- What `:save FILE.safetensors` writes, and stored values of tests: the tables
-- that the metadata of .safetensors files describe.

local choose = dofile(HERE .. "bad/random.lua")
local safetensors = dofile(HERE .. "bad/safetensors.lua")
local workspace = require "nacre.workspace"
local values = require "nacre.stored_values"
local random = math.random

local shell = {is_own_name = function() return true end} -- sets no global

local function value(depth)
  local kind = random(depth > 3 and 5 or 7)
  if kind < 3 then return choose.tensor() end
  if kind == 3 then return choose.from {1, 0.5, -7, 1 << 62} end
  if kind == 4 then return choose.from {"text", "é\0", true, false} end
  local t = {}
  for i = 1, random(0, 3) do
    t[kind == 6 and i or "k" .. i] = value(depth + 1)
  end
  return t
end

local maker = {ratio = 40, reads_tables = true}

-- Both readers of such files; what is in it.
function maker.load(path)
  workspace.load(shell, path)
  values.load(path)
  return (nacre.load(path))
end

local function rebuild(s, change)
  local n = string.unpack("<I8", s)
  local text = change(s:sub(9, 8 + n))
  return string.pack("<I8", #text) .. text .. s:sub(9 + n)
end

-- Changes a number or a word in the description of the tables.
local function change_metadata(text)
  local pattern = choose.from {"%d+", "%a+", "[%[%]{}]", "\\\"", ":", ","}
  local n, at = 0, nil
  text:gsub(pattern, function() n = n + 1 end)
  if n == 0 then return choose.damage(text) end
  at, n = random(n), 0
  return (text:gsub(pattern, function(was)
    n = n + 1
    if n ~= at then return nil end
    return choose.from {"", was .. was, "[", "}", "null", "\\u001b[31m",
                        choose.number_text(math.tointeger(was) or 1),
                        "\\\"x\\\""}
  end))
end

function maker.make(damaged)
  local v = {a = value(0), b = value(0), ["~workspace"] = {version = 1,
    leaves = {choose.tensor "float32"}, devices = {["cuda:7"] = {}},
    states = {"a"}}}
  local s = nacre.serialize(v)
  if not damaged then return {{"x.safetensors", s}}, v end
  for _ = 1, random(3) do
    s = choose.once_in(5) and choose.damage(s) or
        #s > 8 and rebuild(s, change_metadata) or s
    if #s < 8 or string.unpack("<I8", s) > #s - 8 then break end
  end
  return {{"x.safetensors", s}}
end

return maker
