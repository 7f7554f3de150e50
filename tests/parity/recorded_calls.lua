-- SPDX-License-Identifier: MIT
-- For the tests of parity: the calls of operations that the examples of the
-- reference and other tests make, with their arguments, to be made again on
-- another device. What is called is not looked at, so a new operation is
-- covered as soon as it has an example.
--   local calls = dofile(here .. "recorded_calls.lua").calls(tests, most)

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local reference = require "nacre.reference"
local play = dofile(here .. "../lib/play_example.lua")

local LARGEST = 3000          -- elements that the arguments of a call have
-- The others are about files and the session.
local PAGES = {files = true, images = true, session = true, cuda = true,
               commands = true}
local OPERATORS = {
  "add", "sub", "mul", "div", "mod", "pow", "idiv", "unm", "band", "bor",
  "bxor", "bnot", "shl", "shr", "concat", "index", "newindex", "call", "len",
}

local metatable = debug.getmetatable(nacre.ones(1))
local COMPLEX = debug.getmetatable(nacre.i)
local methods, functions = nacre._methods, nacre._functions
local list, seen, count       -- of calls; how many of a kind, of a name
local inside = false          -- an operation that others are part of
local most                    -- calls of a kind

-- ---- what is recorded

-- A copy of an argument, in which tensors are { tensor =, grad = }; nil if it
-- is of a kind that has no place on a device. `kind' tells what it is like.
local copy

local function copytensor(v, call)
  local made = call.tensors[v]
  if made then return made end
  local n = v:numel()
  call.elements = call.elements + n
  if call.elements > LARGEST or v.device ~= "cpu" then return nil end
  made = {tensor = v:detach():clone():contiguous(), grad = v.requires_grad}
  call.tensors[v] = made
  call.tensors[#call.tensors + 1] = made
  call.kind[#call.kind + 1] = v.dtype .. math.min(v:dim(), 3) ..
                              (n == 0 and "empty" or "")
  return made
end

local record_of = {}          -- what this file gives

-- The keys of a table in an order that does not depend on the process: numbers,
-- then texts.
function record_of.keys(t)
  local keys = {}
  for key in next, t do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "number" then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

local function copytable(v, call)
  local made = {}
  call.kind[#call.kind + 1] = "{"
  for _, key in ipairs(record_of.keys(v)) do
    local c = copy(v[key], call)
    if c == nil then return nil end
    made[key] = c
  end
  local meta = getmetatable(v)
  return (meta == nil or meta == debug.getregistry()["nacre.list"]) and
         {list = made} or nil
end

function copy(v, call)
  local t = type(v)
  if nacre.is_tensor(v) then return copytensor(v, call) end
  if t == "table" then return copytable(v, call) end
  if debug.getmetatable(v) == COMPLEX then
    call.kind[#call.kind + 1] = "complex"
    return {value = v}
  end
  if t == "function" or t == "userdata" or t == "thread" or
     t == "string" and (v:find "^cuda" or v:find "/") then
    return nil
  end
  call.kind[#call.kind + 1] = t == "string" and v or math.type(v) or t
  return {value = v}
end

local function record(name, f, n, ...)
  local call = {name = name, f = f, n = n, tensors = {}, elements = 0,
                kind = {name, n}}
  for i = 1, n do
    local v = select(i, ...)
    call[i] = copy(v, call)
    if call[i] == nil then return end
  end
  local kind = table.concat(call.kind, " ")
  seen[kind] = (seen[kind] or 0) + 1
  if seen[kind] > most then return end
  call.tensors = #call.tensors
  list[#list + 1] = call
end

local function finish(ok, ...)
  inside = false
  if not ok then error((...), 0) end
  return ...
end

local function takesfunction(...)
  for i = 1, select("#", ...) do
    if type((select(i, ...))) == "function" then return true end
  end
end

local function recorded(name, f)
  return function(...)
    if inside then return f(...) end
    if takesfunction(...) then return f(...) end   -- what it calls, is
    inside = true
    record(name, f, select("#", ...), ...)
    return finish(pcall(f, ...))
  end
end

-- t[key] is an operation unless the key is a name.
local function indexed(f)
  local index = recorded("[]", f)
  return function(t, key)
    if type(key) == "string" and not key:find "^[%d%.:%-]" then
      return f(t, key)
    end
    return index(t, key)
  end
end

-- ---- where

local undo

local function put(t, key, f)
  undo[#undo + 1] = {t, key, rawget(t, key)}
  rawset(t, key, f)
end

-- Those whose results are no matter of a device, or say where they are.
local other = {}
for name in ([[free empty empty_like new_empty empty_strided resize_ resize_as_
  seed
  initial_seed get_rng_state cpu get_device is_tensor]]):gmatch "%S+" do
  other[name] = true
end

local function apart(name)
  local entry = reference.entry(name)
  return name:find "^_" or other[name] or entry and PAGES[entry.page.name]
end

local function wrap(space, prefix, original)
  for name, f in next, space do
    if type(f) == "function" and type(name) == "string" and
       not apart(prefix .. name) then
      local w = recorded(prefix .. name, f)
      original[w] = f
      put(space, name, w)
    end
  end
end

-- Calls f while operations are recorded; differences are not measured.
local function during(f, ...)
  local original, info = {}, nacre._info
  undo = {}
  wrap(functions, "", original)
  wrap(nacre.linalg, "linalg.", original)
  wrap(nacre.nn.functional, "nn.functional.", original)
  wrap(methods, "", original)
  for _, name in ipairs(OPERATORS) do
    local key = "__" .. name
    local g = metatable[key]
    put(metatable, key, name == "index" and indexed(g) or recorded(key, g))
  end
  put(nacre, "_info", function(x) return info(original[x] or x) end)
  local function once(g, given)
    if nacre.is_tensor(given) then given = {given} end
    g(table.unpack(given))
    return true
  end
  put(nacre.autograd, "gradcheck", once)
  put(nacre.autograd, "gradgradcheck", once)
  local ok, e = pcall(f, ...)
  inside = false
  for i = #undo, 1, -1 do rawset(undo[i][1], undo[i][2], undo[i][3]) end
  if not ok then error(e, 0) end
end

-- ---- of what

local function examples()
  for _, page in ipairs(reference.pages()) do
    for _, entry in ipairs(PAGES[page.name] and {} or page.entries) do
      play(entry)
    end
  end
end

-- A test, such as ops/sort, without what it prints.
local function script(name)
  local shown = print
  print = function() end
  local ok, e = pcall(dofile, here .. "../" .. name .. ".lua")
  print = shown
  assert(ok, ("%s: %s"):format(name, tostring(e)))
end

-- All calls of the examples and of the tests that are named, at most `limit'
-- of a kind.
function record_of.calls(names, limit)
  list, seen, count, most = {}, {}, {}, limit or 1
  arg = {[0] = here}
  during(examples)
  for _, name in ipairs(names) do during(script, name) end
  return list
end

return record_of
