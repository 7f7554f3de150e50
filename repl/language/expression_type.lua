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
local tensors = {T = true, mT = true, H = true, mH = true, grad = true,
                 data = true}

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

-- The type of the name or parenthesis at the token i, and its last token.
local function root(code, i, value)
  local stop = code.pair[i]
  if not stop then
    local v = value(code[i].text)
    -- with a suffix it may be a local variable
    return v ~= nil and {value = v} or code[i + 1] and {} or nil, i
  end
  if stop == i + 2 and code[i + 1].kind == "string" then
    return {kind = "string"}, stop
  end
  local whole = code:first(stop - 1) == i + 1
  return whole and types.of(code:text(i + 1, stop - 1), value) or {}, stop
end

-- The type of the operand that is at the end from the token i on: a name or
-- parenthesis with fields, indices and calls.
local function operand(code, i, value)
  local t, last = root(code, i, value)
  while t and code[last + 1] do
    local at, stop = last + 1, code.pair[last + 1] or last + 1
    if code:is(at, ".", ":") then
      t, stop = field(t, code[at + 1].text), at + 1
    elseif code:is(at, "[") then
      t = indexed(t, code:text(at, stop))
    else
      t = t.value ~= nil and result(t.value) or {}
    end
    last = stop
  end
  return t
end

local function global(name) return rawget(_G, name) end

-- The type of the operand that ends a text; {} if that cannot be read.
-- value(name) is the value of a variable, by default that of the global one.
function types.of(text, value)
  local code = expressions.read(text)
  if code[1] and code[#code].kind == "string" then return {kind = "string"} end
  local first = code:first(#code)
  return not first and {} or operand(code, first, value or global)
end

return types
