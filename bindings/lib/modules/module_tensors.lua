-- SPDX-License-Identifier: MIT
-- module_tensors.lua - what is done to all parts and tensors of an nn.Module:
-- iteration by name, train and eval, `to', clone.
local all = ...
all.require "nacre.module"
local fail, nn, Module = all.fail, all.space "nn", all.Module
local members, is_module = all.members, all.is_module

-- f of each tensor in v, a value or a table of values, each of them once.
function all.map_tensors(v, f, done)
  if nacre.is_tensor(v) then return f(v) end
  if type(v) ~= "table" or getmetatable(v) ~= nil then return v end
  done = done or {}
  if done[v] then return done[v] end
  local new = {}
  done[v] = new
  for k, element in pairs(v) do new[k] = all.map_tensors(element, f, done) end
  return new
end

-- Calls f(name, member) for each tensor of the module and of its parts:
-- parameters, then buffers, then others, then those of the parts.
local function each_tensor(self, f, prefix)
  local own = members(self)
  prefix = prefix or ""
  for _, kind in ipairs {"parameter", "buffer", "plain"} do
    for _, m in ipairs(own) do
      if m.kind == kind then f(prefix .. m.name, m) end
    end
  end
  for _, m in ipairs(own) do
    if m.kind == "part" then
      each_tensor(m.value, f, prefix .. m.name .. ".")
    end
  end
end
all.each_tensor = each_tensor

-- An iterator over pairs of a list.
local function iterate(list)
  local i = 0
  return function()
    i = i + 1
    if list[i] then return list[i][1], list[i][2] end
  end
end

-- The tensors of these kinds by name, each once.
local function named(...)
  local kinds = {}
  for _, kind in ipairs {...} do kinds[kind] = true end
  return function(self)
    local list, seen = {}, {}
    each_tensor(self, function(name, m)
      if kinds[m.kind] and not seen[m.value] then
        seen[m.value] = true
        list[#list + 1] = {name, m.value}
      end
    end)
    return iterate(list)
  end
end

Module.named_parameters = named "parameter"
Module.named_buffers = named("buffer", "plain")

-- A list that `for p in net:parameters() do' iterates over, too.
local function list_of(pairs_of)
  return function(self)
    local list, i = {}, 0
    for _, v in pairs_of(self) do list[#list + 1] = v end
    return setmetatable(list, {__call = function()
      i = i + 1
      return list[i]
    end})
  end
end

Module.parameters = list_of(Module.named_parameters)
Module.buffers = list_of(Module.named_buffers)

function Module:named_children()
  local list = {}
  for _, m in ipairs(members(self)) do
    if m.kind == "part" then list[#list + 1] = {m.name, m.value} end
  end
  return iterate(list)
end

-- The module itself, with the name "", and all parts, each once; what names
-- them is in field `key' of a member, join(name, name below) is longer.
local function all_modules(key, join)
  return function(self)
    local list, seen = {}, {}
    local function visit(m, name)
      if seen[m] then return end
      seen[m] = true
      list[#list + 1] = {name, m}
      for _, part in ipairs(members(m)) do
        if part.kind == "part" then visit(part.value, join(name, part[key])) end
      end
    end
    visit(self, "")
    return iterate(list)
  end
end

Module.named_modules = all_modules("name", function(name, below)
  return name == "" and below or name .. "." .. below
end)
-- The same by the paths that Lua writes.
all.each_module = all_modules("path", all.join_path)

Module.children = list_of(Module.named_children)
Module.modules = list_of(Module.named_modules)

-- The part or tensor at a path: of a state, "layer1.0.bias", or as Lua writes
-- it, "layer1[1].bias".
local function find(self, path, op)
  local at = self
  local dotted = path:gsub("%[(%d+)%]", function(i)
    return "." .. math.tointeger(i) - 1
  end)
  for name in dotted:gmatch "[^.]+" do
    local i = math.tointeger(tonumber(name))
    local next_ = nil
    if type(at) == "table" then next_ = i and at[i + 1] or at[name] end
    if next_ == nil then
      fail(op, ("%s has no '%s'"):format(self.__name, path))
    end
    at = next_
  end
  return at
end

function Module:get_submodule(path) return find(self, path, "get_submodule") end
function Module:get_parameter(path) return find(self, path, "get_parameter") end
function Module:get_buffer(path) return find(self, path, "get_buffer") end

-- Calls f(m) for each part, the module itself last.
function Module:apply(f)
  for _, part in self:named_children() do part:apply(f) end
  f(self)
  return self
end

function Module:train(on)
  for _, m in self:named_modules() do m.training = on end
  return self
end

function Module:eval() return self:train(false) end

function Module:requires_grad_(on)
  for _, p in ipairs(self:parameters()) do
    all.declare(p):requires_grad_(on)
  end
  return self
end

local zeroing = all.parse("zero_grad", "set_to_none:bool=true -> module")

-- Removes the gradients of a list of parameters, or with false sets them 0.
function all.zero_gradients(params, ...)
  local remove = select("#", ...) == 0 or all.read("zero_grad", zeroing, ...)[1]
  for _, p in ipairs(params) do
    if remove then p.grad = nil
    elseif p.grad then p.grad = nacre.zeros_like(p.grad) end
  end
end

function Module:zero_grad(...)
  all.zero_gradients(self:parameters(), ...)
  return self
end

-- ---- devices and dtypes

-- Replaces t in place by f(t), and its gradient by f(gradient).
local function replace(t, f)
  local grad = t.grad
  t.grad = nil
  nacre.no_grad(function() t:set_(f(t:detach())) end)
  if grad then t.grad = f(grad) end
end

all.replace_tensor = replace

-- Replaces all tensors by f(t) in place: who else holds one, as an optimizer
-- does, has the new one. What optimizers keep of a parameter follows it.
local function convert(self, f)
  local seen = {}
  each_tensor(self, function(_, m)
    if not seen[m.value] then
      seen[m.value] = true
      replace(m.value, f)
    end
  end)
  all.move_states(seen)
  return self
end

local function is_dtype(v)
  return type(v) == "string" and not v:find "^c[pu]" and nacre[v] == v
end

-- to(device), to(dtype), to(device, dtype), to(tensor). Only tensors of
-- floating point numbers take the dtype.
function Module:to(...)
  local device, dtype
  for _, v in ipairs {...} do
    if nacre.is_tensor(v) then device, dtype = v.device, v.dtype
    elseif type(v) == "table" then
      device, dtype = v.device or device, v.dtype or dtype
    elseif is_dtype(v) then dtype = v
    else device = v end
  end
  all.check_parameter_dtype("to", dtype)
  return convert(self, function(t)
    if device then t = t:to(device) end
    return dtype and t:is_floating_point() and t:to(dtype) or t
  end)
end

-- To another device, with values that are not set.
function Module:to_empty(device)
  if type(device) == "table" then device = device.device end
  if device == nil then
    fail("to_empty", "a device is expected", 'net:to_empty("cpu")')
  end
  return convert(self, function(t)
    return nacre.empty_like(t, {device = device})
  end)
end

function Module:cuda(device)
  if type(device) == "number" then device = "cuda:" .. device end
  return self:to(device or "cuda")
end
function Module:cpu() return self:to "cpu" end
for name, dtype in pairs {float = "float32", double = "float64",
                          half = "float16", bfloat16 = "bfloat16"} do
  Module[name] = function(self) return self:to(dtype) end
end

-- A copy of v with copies of all tensors, modules and tables in it, each once;
-- copy_tensor(t) is that of a tensor.
local function copy(v, copy_tensor, copies)
  if copies[v] then return copies[v] end
  if nacre.is_tensor(v) then
    copies[v] = all.declare_as(copy_tensor(v), v)
    return copies[v]
  end
  if type(v) ~= "table" or getmetatable(v) ~= nil and not is_module(v) then
    return v
  end
  local new = {}
  copies[v] = new
  for k, value in next, v do new[k] = copy(value, copy_tensor, copies) end
  return setmetatable(new, getmetatable(v))
end

function all.copy_module(self, copy_tensor)
  return copy(self, copy_tensor, {})
end

-- An independent copy, with hooks and without gradients.
function Module:clone()
  return all.copy_module(self, function(t)
    return t:detach():clone():requires_grad_(t.requires_grad and t.is_leaf)
  end)
end
