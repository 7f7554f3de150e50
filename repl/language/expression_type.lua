-- SPDX-License-Identifier: MIT
--
-- expression_type.lua - what an expression gives, as far as looking at its text
-- and at the session's variables tells. Nothing is run.
--
-- A type is a table {value =} of what is known itself, or {kind = "tensor",
-- dims = or nil}, {kind = "string"}, ... of the result of a call; {} is known
-- to be there, but not what it is. Nil: there is no such thing.

local expressions = require "nacre.expression_at"
local facts = require "nacre.tensor_facts"
local lookup = require "nacre.lookup"
local lua_functions = require "nacre.lua_functions"

local types = {}

-- The tables of methods of what calls give, by the first word of the results in
-- their signature.
local classes = {
  module = "nacre.nn.Module", optimizer = "nacre.optim.Optimizer",
  scheduler = "nacre.optim.lr_scheduler.LRScheduler",
}

-- The table in which the fields of a type are looked up, or nil.
function types.fields(t)
  if t.value ~= nil then return t.value end
  if t.kind == "tensor" and t.dims ~= 0 then return nacre._methods end
  if t.kind == "string" then return string end
  if t.kind == "file" then return lua_functions.file_methods() end
  local class = classes[t.kind]
  return t.class or class and lookup.value(class)
end

function types.is_tensor(t)
  if t.kind == "tensor" then return t.dims ~= 0 end
  return facts.istensor(t.value)
end

-- The type of the result of a function or a class.
local function result(f)
  local info = f ~= nil and (nacre._info(f) or lua_functions.info(f))
  if not info then return {} end
  local kind = (info.results or ""):match "^a?%s*([%w_]+)"
  if type(f) == "table" then return {kind = kind, class = f} end
  return {kind = kind}
end

-- How many dims are left after an index: a number takes one, a text as many
-- as it has numbers, newaxis adds one.  Nil if it takes more than looking.
local function dimsbehind(n, index)
  if index:find "^%[%s*%-?%d+%s*%]$" then return n - 1 end
  local text = index:match "^%[%s*[\"']([^\"'\\]*)[\"']%s*%]$"
  if not text then return nil end
  for item in text:gmatch "[^,]+" do
    if item:find "^%s*%-?%d+%s*$" then n = n - 1 end
    if item:find "^%s*newaxis%s*$" then n = n + 1 end
  end
  return n
end

local function indexed(t, index)
  if types.is_tensor(t) then
    local dims = t.dims or t.value and #t.value.shape
    return {kind = "tensor", dims = dims and dimsbehind(dims, index)}
  end
  local text = index:match "^%[%s*[\"']([^\"'\\]*)[\"']%s*%]$"
  local key = text or tonumber(index:match "^%[%s*(%-?%d+)%s*%]$")
  if t.value == nil or key == nil then return {} end
  local v = lookup.field(t.value, key)
  return v ~= nil and {value = v} or nil
end

-- Tensors among the properties of a tensor.
local tensors = {T = true, mT = true, H = true, mH = true, grad = true}

local function field(t, name)
  if types.is_tensor(t) then
    return tensors[name] and {kind = "tensor"} or
           nacre._methods[name] and {value = nacre._methods[name]} or nil
  end
  local owner = types.fields(t)
  if owner == nil then return next(t) == nil and {} or nil end
  local v = lookup.field(owner, name)
  return v ~= nil and {value = v} or nil
end

-- The type of the operand "name" or "(expression)" that begins a text, and
-- the position behind it.
local function root(text)
  local name, stop = text:match "^([%a_][%w_]*)()"
  if name then
    local v = rawget(_G, name)
    if v ~= nil then return {value = v}, stop end
    return stop <= #text and {} or nil, stop -- it may be a local variable
  end
  name, stop = text:match "^(%b())()"
  if not name then return nil end
  local inner = name:sub(2, -2):match "^%s*(.-)%s*$"
  if inner:find "^[\"'][^\"']*[\"']$" then return {kind = "string"}, stop end
  return expressions.ending(inner) == inner and types.of(inner) or {}, stop
end

-- The type of an operand: a name or parenthesis with fields, indices and calls.
local function operand(text)
  local t, at = root(text)
  local callee
  while t and at <= #text do
    local name, stop = text:match("^%s*[.:]%s*([%a_][%w_]*)()", at)
    if name then
      t = field(t, name)
    elseif text:find("^%s*%[", at) then
      name, stop = text:match("^%s*(%b[])()", at)
      t = name and indexed(t, name)
    else
      stop = text:match("^%s*%b()()", at)
      callee = t.value
      t = stop and (callee ~= nil and result(callee) or {})
    end
    if not stop then return nil end
    at = stop
  end
  return t
end

-- The type of the operand that ends a text; {} if it is no operand that can be
-- read.
function types.of(text)
  if text:find "[\"']%s*$" then return {kind = "string"} end
  local found = expressions.ending(text)
  if not found then return {} end
  return operand(found)
end

return types
