-- SPDX-License-Identifier: MIT
-- containers.lua - modules made of modules: Sequential, ModuleList, ModuleDict,
-- and of tensors: ParameterList, ParameterDict. A function may stand where a
-- module may.
local all = ...
all.require("nacre.guards", "nacre.module", "nacre.module_tensors",
            "nacre.module_state", "nacre.module_text", "nacre.summary",
            "nacre.backward_hooks") -- of all methods of Module: see the end
local fail, nn, Module = all.fail, all.space "nn", all.Module
local is_module = all.is_module

local function is_part(v)
  return is_module(v) or type(v) == "function"
end

-- Fails unless v may be a part of self. The class has the fields that say so,
-- because a part of a ModuleDict may have any name.
local function check_part(self, v)
  local of = getmetatable(self)
  if of._is_part(v) then return v end
  local class = type(v) == "table" and rawget(v, "__name")
  fail(self.__name, class and ("%s is a class: %s(...) is an instance")
                    :format(class, class) or
                    ("%s is expected, not a %s"):format(of._part,
                      nacre.is_tensor(v) and "tensor" or type(v)))
end

-- A tensor as an element of a list of parameters, which it becomes.
local function parameter(v)
  return all.is_parameter(v) and v or nn.Parameter(v)
end

local function same(v) return v end

-- What takes names instead.
local with_names = {
  Sequential = '{"a", nn.Linear(2, 3)} is a part with a name',
  ModuleList = "nn.ModuleDict{...} takes names",
  ParameterList = "nn.ParameterDict{...} takes names"}

-- Fails if a list has other keys than numbers: Lua does not keep their order.
local function check_order(name, list)
  local n = #list
  for k in next, list do
    if math.type(k) ~= "integer" or k < 1 or k > n then
      fail(name, "the keys of a table have no order: give a list",
           with_names[name])
    end
  end
end

-- ---- lists

-- The number of the part with this name.
local function place_of(self, name)
  for i, v in pairs(rawget(self, "_names") or {}) do
    if v == name then return i end
  end
end

-- Part i, from the end if i is negative; nil if there is none.
local function place_at(self, i)
  if i == 0 then
    fail(self.__name, ("there is no part 0: they count from 1 to %d")
                      :format(#self))
  end
  return i > 0 and i or #self + 1 + i
end

-- The list of parts from .. to, texts as in "2:-1", which may be empty. The
-- parts of a Sequential keep their names, as in PyTorch.
local function slice(self, list, from, to)
  local n, names = #self, rawget(self, "_names") or {}
  local first = from == "" and 1 or place_at(self, math.tointeger(from))
  local last = to == "" and n or place_at(self, math.tointeger(to))
  for i = math.max(first, 1), math.min(last, n) do
    if not nn.Sequential:is(list) then list:append(rawget(self, i))
    else list:add_module(names[i] or tostring(i - 1), rawget(self, i)) end
  end
  return list
end

-- The __index of a class of lists: its methods, parts by number or name, lists
-- of parts by "1:2".
local function indexer(class)
  return function(self, key)
    local from, to
    if type(key) == "string" then
      from, to = key:match "^(%-?%d*):(%-?%d*)$"
    end
    if from and from ~= "-" and to ~= "-" then
      return slice(self, class._list(), from, to)
    end
    if math.type(key) == "integer" then
      return rawget(self, place_at(self, key))
    end
    local method = class[key]
    if method ~= nil then return method end
    local at = place_of(self, key)
    return at and rawget(self, at)
  end
end

local function next_part(self, i)
  i = (i or 0) + 1
  if rawget(self, i) ~= nil then return i, rawget(self, i) end
end

-- What the lists have in common. A class has three fields: _is_part says which
-- values may be parts, _part describes them, _convert(v) gives what is kept.
local List = Module:extend "List"
local set_field = List.__newindex
List._indexer, List.__index = indexer, indexer(List)
List._takes = {append = "part:any", insert = "position:int, part:any",
               add_module = "name:any, part:any",
               register_module = "name:any, part:any"}
function List.__pairs(self) return next_part, self, nil end

-- The parts one by one, or in a list.
function List:init(...)
  all.check_module(List, self)
  local list, n = {...}, select("#", ...)
  if n == 1 and type(list[1]) == "table" and
     getmetatable(list[1]) == nil and not self:_is_pair(list[1]) then
    list = list[1]
    check_order(self.__name, list)
    n = #list
  end
  for i = 1, n do self:append(list[i]) end
end

function List._is_pair() return false end

function List:append(v)
  self[#self + 1] = getmetatable(self)._convert(check_part(self, v))
  return self
end

function List.__newindex(self, key, v)
  if math.type(key) ~= "integer" then return set_field(self, key, v) end
  local at = place_at(self, key)
  if at < 1 or at > #self + 1 then
    fail(self.__name, ("there is no part %d to replace: there are %d")
                      :format(key, #self), "m:append(part)")
  end
  set_field(self, at, v)
end

-- The parts of a list behind the others; of a class, a derived class.
function List:extend(list, ...)
  if not is_module(self) then return Module.extend(self, list, ...) end
  if type(list) ~= "table" then
    fail("extend", "takes a list of parts, not a " ..
                   (nacre.is_tensor(list) and "tensor" or type(list)))
  end
  for _, v in ipairs(list) do self:append(v) end
  return self
end
List.extend_with = List.extend

-- Removes a part, the last one if no number is given, and gives it.
function List:pop(key)
  local at = math.type(key) == "integer" and place_at(self, key) or
             key == nil and #self or place_of(self, key) or 0
  local v, names = rawget(self, at), rawget(self, "_names") or {}
  if v == nil then
    fail("pop", ("there is no part %s")
                :format(key == nil and "in the list" or tostring(key)))
  end
  for i = at, #self do
    rawset(self, i, rawget(self, i + 1))
    names[i] = names[i + 1]
  end
  return v
end

function List:insert(at, v)
  check_part(self, v)
  if math.type(at) ~= "integer" or at < 1 or at > #self + 1 then
    fail("insert", ("position %s is not between 1 and %d")
                   :format(at, #self + 1))
  end
  local names = rawget(self, "_names") or {}
  for i = #self, at, -1 do
    self[i + 1], names[i + 1] = self[i], names[i]
  end
  self[at], names[at] = getmetatable(self)._convert(v), nil
  return self
end

local function define_list(name, doc, is_part, part, convert)
  local class = List:extend(name)
  class._is_part, class._part, class._convert = is_part, part, convert
  class._list = class
  all.describe("nn." .. name, class, doc,
               all.parse("nn." .. name, "modules:any=nil -> module"))
  nn[name] = class
  return class
end

define_list("ModuleList", "a list of modules, one by one or in a table",
            is_part, "a module or a function", same)
local Sequential = define_list("Sequential", "modules and functions, one after "
  .. "the other; one with a name is a pair, {\"fc\", nn.Linear(2, 3)}",
  is_part, "a module or a function", same)
define_list("ParameterList", "a list of parameters",
            nacre.is_tensor, "a tensor", parameter)

-- Fails for part i, which gives nothing to the next.
local function fail_without_result(self, i)
  local part = self[i]
  fail("Sequential", is_module(part) and
       ("the forward of [%d], %s, returned nothing"):format(i, part.__name) or
       ("the function [%d] returned nothing"):format(i))
end

-- The first part gets all arguments, each other part the result of the one
-- before.
function Sequential:forward(...)
  local n = #self
  if (...) == nil then all.check_no_loop(self, ...) end
  if n == 0 then return ... end
  if n == 1 then return self[1](...) end
  local x = self[1](...)
  for i = 2, n do
    if x == nil then fail_without_result(self, i - 1) end
    if i < n then x = self[i](x) end
  end
  return self[n](x)
end

-- ---- a Sequential whose parts have names

-- _names has the names by number: seq.conv is the part called conv. A module
-- that is assigned to a name becomes a part, which runs behind the others.
local set_part = List.__newindex

function Sequential.__newindex(self, key, v)
  local at = type(key) == "string" and place_of(self, key)
  if at and v == nil then self:pop(at)
  elseif at then rawset(self, at, check_part(self, v))
  elseif type(key) == "string" and is_module(v) and key:sub(1, 1) ~= "_" then
    self:add_module(key, v)
  else set_part(self, key, v) end
end

-- Is v {"conv", module}?
function Sequential._is_pair(_, v)
  return type(v) == "table" and getmetatable(v) == nil and
         type(v[1]) == "string" and is_part(v[2])
end

local append = Sequential.append

function Sequential:append(v)
  if self:_is_pair(v) then return self:add_module(v[1], v[2]) end
  return append(self, v)
end

function Sequential:add_module(name, v)
  all.check_part_name(self, name)
  append(self, v)
  if name ~= tostring(#self - 1) then
    if not rawget(self, "_names") then rawset(self, "_names", {}) end
    self._names[#self] = name
  end
  return self
end
Sequential.register_module = Sequential.add_module

-- ---- by name

-- The names of a table in the order in which `before' puts them.
local function sorted_keys(t, before)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names, before)
  return names
end

-- What the dictionaries have in common. The fields of one are its values. A
-- class has the fields of a list's class, and _kind, which of its members are
-- values; _order(values) gives the comparison that puts their names in order.
local Dict = Module:extend "Dict"
local set_value = Dict.__newindex
Dict._takes = {update = "values:table", pop = "key:text"}

function Dict:init(...)
  all.check_module(Dict, self)
  local of = "nn." .. self.__name
  self:update(all.read(of, all.parse(of, "values:table=nil"), ...)[1] or {})
end

function Dict:update(values)
  for key, v in pairs(values) do
    if type(key) ~= "string" then
      fail(self.__name, "a part has a name, not " .. tostring(key),
           ("nn.%s{...} takes a list"):format(self.__name:gsub("Dict", "List")))
    end
    check_part(self, v)
  end
  local order = getmetatable(self)._order(values)
  for _, key in ipairs(sorted_keys(values, order)) do
    rawset(self, key, nil)
    self[key] = values[key]
  end
end

function Dict.__newindex(self, key, v)
  set_value(self, key, getmetatable(self)._convert(v))
end

-- An iterator over the names and values.
function Dict:items()
  local list, i, kind = all.members(self), 0, getmetatable(self)._kind
  return function()
    repeat i = i + 1 until not list[i] or list[i].kind == kind
    if list[i] then return list[i].key, list[i].value end
  end
end
Dict.__pairs = Dict.items

function Dict:keys()
  local list = {}
  for key in Dict.items(self) do list[#list + 1] = key end
  return list
end

function Dict:values()
  local list = {}
  for _, v in Dict.items(self) do list[#list + 1] = v end
  return list
end

function Dict:__len() return #Dict.keys(self) end

-- Removes a value, and gives it.
function Dict:pop(key)
  local v = rawget(self, key)
  if v == nil then fail("pop", ("there is no '%s'"):format(key)) end
  rawset(self, key, nil)
  return v
end

function Dict:clear()
  for _, key in ipairs(Dict.keys(self)) do rawset(self, key, nil) end
end

local function define_dict(name, kind, doc, is_part, part, convert, order)
  local class = Dict:extend(name)
  class._kind, class._order = kind, order
  class._is_part, class._part, class._convert = is_part, part, convert
  all.describe("nn." .. name, class, doc,
               all.parse("nn." .. name, "values:table=nil -> module"))
  nn[name] = class
end

-- Modules are in the order in which they were made.
local function order_of_making(modules)
  return function(a, b)
    return (rawget(modules[a], "_made") or 0) <
           (rawget(modules[b], "_made") or 0)
  end
end

define_dict("ModuleDict", "part", "modules by name",
            is_module, "a module", same, order_of_making)
define_dict("ParameterDict", "parameter", "parameters by name",
            nacre.is_tensor, "a tensor",
            function(v) return nacre.is_tensor(v) and parameter(v) or v end,
            function() end)

-- ---- net.eval() instead of net:eval()

all.guard_methods(Module, is_module, "net", {
  apply = "fn:fn", train = "on:bool=true", cuda = "device:any=nil",
  requires_grad_ = "requires_grad:bool=true", get_submodule = "path:text",
  get_parameter = "path:text", get_buffer = "path:text",
  register_buffer = "name:any, tensor:tensor=nil, persistent:bool=true",
  register_parameter = "name:any, tensor:tensor=nil"})
