-- SPDX-License-Identifier: MIT
--
-- dot_call.lua - x.clip(0, 1) where x:clip(0, 1) is meant: the arguments are
-- shifted by one, and the error reports one that is missing or of the wrong
-- type.

local expressions = require "nacre.expression_at"
local index_base = require "nacre.index_base"

local nacre = package.loaded.nacre or _G.nacre

local dot_call = {}

local shifted = {missing = true, type = true, tensor = true}

-- The operation of an error that a call through a dot causes, or nil. A hint
-- of the binding that it is a method gets its object here.
local function operation(o)
  if o.cause == "tensor" and o.name == "self" then o.hint = nil end
  if o.op and shifted[o.cause] then return o.op end
  return o.message:match "^bad argument #1 to '([%w_]+)' %(tensor expected"
end

local function bare(name) return (name:gsub("_$", "")) end

-- Is this a name of the operation, possibly an alias?
local function is_name_of(name, op)
  if bare(name) == bare(op) then return true end
  local info = nacre._methods[name] and nacre._info(bare(name))
  return info and info.name == bare(op)
end

-- The call of the operation through the dot after a tensor or an event: the
-- text before the dot, the name as typed, the arguments.
local function dotted_call(line, op, value)
  local from = 1
  repeat
    local path, name, at, args, inside =
      line:match("([%a_][%w_%.]*)%.([%a_][%w_]*)%s*()(%b())()", from)
    if path and is_name_of(name, op) and type(value(path)) == "userdata" then
      return path, name, args
    end
    from = at and at + 1
  until not inside
end

-- The arguments with dims that count from 1 if one is 0, and a note on that.
local function counted_from_one(path, name, args)
  local method = nacre._methods[name]
  local counted, any, zero =
    index_base.arguments(method and nacre._info(method), args)
  if zero then return counted, "dims count from 1" end
  return args, any and ("dims count from 1; Python's is %s:%s%s"):format(path,
    name, counted) or nil
end

-- Explains the error of such a call as "clip is a method"; true if it is one.
function dot_call.explain(o, line, value)
  local op = operation(o)
  if not op then return false end
  local path, name, args = dotted_call(line, op, value)
  if not path then            -- nacre.ones(2, 3).size(1)
    local at = line:match("%)()%." .. op .. "%s*%b()")
    local object = at and expressions.ending(line:sub(1, at - 1))
    args = at and line:match("^%." .. op .. "%s*(%b())", at)
    o.hint = object and ("%s:%s%s"):format(object, op, args) or o.hint
    return object ~= nil
  end
  local note
  if args:match "^%(%s*([%w_%.]*)" ~= path then
    args, note = counted_from_one(path, name, args)
  elseif o.cause ~= "missing" then
    return false              -- x.eq(x, 1)
  end
  o.message = ("%s is a method: %s:%s%s"):format(name, path, name, args)
  o.op, o.object, o.hint = nil, nil, note
  return true
end

return dot_call
