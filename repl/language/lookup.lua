-- SPDX-License-Identifier: MIT
--
-- lookup.lua - finds the value of a name without running user code: raw access
-- only, no metamethods. For completion and help.

local facts = require "nacre.tensor_facts"

local lookup = {}

-- Properties of a tensor that are not functions; the names are keys, too.
lookup.properties = {"shape", "dtype", "device", "ndim", "T", "mT", "H", "mH",
                     "is_cuda", "nbytes", "itemsize", "requires_grad", "grad",
                     "is_leaf", "grad_fn"}
for _, name in ipairs(lookup.properties) do lookup.properties[name] = true end

-- The global `shell` is empty until one first looks into it: main.c gives it
-- the function that fills it, which is of C, as none of the user's is.
local function fill(v)
  local meta = next(v) == nil and debug.getmetatable(v)
  local f = type(meta) == "table" and rawget(meta, "__fill")
  if type(f) == "function" and debug.getinfo(f, "S").what == "C" then f(v) end
end

-- Tables of the library, such as nacre.nn, get their classes when one is first
-- named.
local function load_classes(v)
  local meta = debug.getmetatable(v)
  local index = type(meta) == "table" and rawget(meta, "__index")
  if type(index) == "function" and debug.getinfo(index, "S").what == "C" then
    assert(nacre.nn.Module)
  end
end

-- The functions that look at v if it is an object of Python. They find
-- attributes as they are stored: properties are not run.
function lookup.python(v)
  local meta = type(v) == "userdata" and debug.getmetatable(v)
  return type(meta) == "table" and rawget(meta, "looks") or nil
end

-- Can v be called, as far as its type tells?
function lookup.is_callable(v)
  local looks = lookup.python(v)
  return type(v) == "function" or looks ~= nil and looks.callable(v)
end

-- The table in which indexing a value looks up its fields.
local function fieldsof(v)
  if facts.istensor(v) then return nacre._methods end
  if type(v) == "string" then
    local index = debug.getmetatable(v).__index
    return type(index) == "table" and index or string
  end
  if rawequal(v, nacre) then return v._functions end -- creates all of them
  if type(v) == "userdata" then -- a stream or an event
    local meta = debug.getmetatable(v)
    return type(meta) == "table" and rawget(meta, "methods") or nil
  end
  if type(v) ~= "table" then return nil end
  fill(v)
  load_classes(v)
  return v
end

-- The table that __index continues with.
local function parent(t)
  local meta = debug.getmetatable(t)
  local index = type(meta) == "table" and rawget(meta, "__index")
  if type(index) == "table" then return index end
  -- a module that computes some of its fields
  return rawget(t, "_fields") and meta or nil
end

function lookup.field(v, key)
  local looks = lookup.python(v)
  if looks then return type(key) == "string" and looks.look(v, key) or nil end
  local t, left = fieldsof(v), 20
  while t and left > 0 do
    local found = rawget(t, key)
    if found ~= nil then return found end
    t, left = parent(t), left - 1
  end
  return nil
end

-- Is `name' a method of the object v: a function that v has from its class?
-- What a class or a table of functions has itself is none.
function lookup.is_method(v, name)
  if facts.istensor(v) then return nacre._methods[name] ~= nil end
  local meta = debug.getmetatable(v)
  if type(v) == "string" or type(meta) ~= "table" or rawequal(v, nacre) then
    return false
  end
  if type(v) == "userdata" then return lookup.field(v, name) ~= nil end
  if type(v) ~= "table" or rawget(v, "__index") ~= nil or
     rawget(v, name) ~= nil then return false end
  return type(lookup.field(v, name)) == "function" or
         rawget(meta, "__index") ~= nil and
         type(rawget(meta, name)) == "function"
end

local function segment(text, at)
  local name, stop = text:match("^[.:]?([%a_][%w_]*)()", at)
  if name then return name, stop end
  local number
  number, stop = text:match("^%[(%d+)%]()", at)
  if number then return math.tointeger(number), stop end
  name, stop = text:match("^%[[\"']([^\"'\\]*)[\"']%]()", at)
  return name, stop
end

-- The value of "a.b[1].c"; nil if finding it would run code.
function lookup.value(path)
  local v, at = _G, 1
  if path == "" then return nil end
  while at <= #path do
    local key, stop = segment(path, at)
    if key == nil then return nil end
    v = lookup.field(v, key)
    if v == nil then return nil end
    at = stop
  end
  return v
end

-- Calls each(name, value) for the fields of v whose keys are names.
function lookup.members(v, each)
  local looks = lookup.python(v)
  for _, name in ipairs(looks and looks.names(v) or {}) do
    if name:find "^[%a_][%w_]*$" then each(name, looks.look(v, name)) end
  end
  local t, left, seen = not looks and fieldsof(v), 20, {}
  while t and left > 0 do
    for k, value in next, t do
      if type(k) == "string" and k:find "^[%a_][%w_]*$" and not seen[k] then
        seen[k] = true
        each(k, value)
      end
    end
    t, left = parent(t), left - 1
  end
end

local function next_upvalue(state)
  state.i = state.i + 1
  return debug.getupvalue(state.f, state.i)
end

-- Iterates over the names and the values of a function's upvalues.
function lookup.upvalues(f) return next_upvalue, {f = f, i = 0} end

-- The parameters of a function written in Lua.
function lookup.parameters(f)
  local info = debug.getinfo(f, "u")
  local names = {}
  for i = 1, info.nparams do names[i] = debug.getlocal(f, i) end
  if info.isvararg then names[#names + 1] = "..." end
  return "(" .. table.concat(names, ", ") .. ")"
end

return lookup
