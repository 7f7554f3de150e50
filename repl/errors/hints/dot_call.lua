-- SPDX-License-Identifier: MIT
--
-- dot_call.lua - x.clip(0, 1) where x:clip(0, 1) is meant: the arguments are
-- shifted by one, and the error reports one that is missing or of the wrong
-- type. The same of other objects, schedule.step(), where `self' is wrong.

local expressions = require "nacre.expression_at"
local index_base = require "nacre.index_base"
local lookup = require "nacre.lookup"
local other_libraries = require "nacre.other_libraries"
local line_of = require "nacre.runtime_errors".line

local nacre = package.loaded.nacre or _G.nacre

local dot_call = {}

local shifted = {missing = true, type = true, tensor = true}

-- The operation of an error that a call through a dot causes, or nil. A hint
-- of the binding that it is a method gets its object here.
local function operation(o)
  if o.cause == "tensor" and o.name == "self" then o.hint = nil end
  if o.op and shifted[o.cause] then return o.op end
  return o.message:match "^([%w_]+): self must be a tensor"
end

local function bare(name) return (name:gsub("_$", "")) end

-- Is this a name of the operation, possibly an alias?
local function is_name_of(name, op)
  if bare(name) == bare(op) then return true end
  local info = nacre._methods[name] and nacre._info(bare(name))
  return info and info.name == bare(op)
end

-- What follows a call, as it is written here: ":tolist()" of ".numpy()". Also a
-- note on that.
local function rest_of_chain(line, path, args, at, value)
  local note
  local rest = expressions.after_call(line, path, args, at, value)
  rest = rest:gsub("[.:]([%a_][%w_]*)%(%)", function(name)
    local entry = not nacre._methods[name] and other_libraries.find(name)
    local call = entry and (entry.code or ""):match "^x(:[%w_]+%b())$"
    if call then note = entry.note end
    return call
  end)
  return rest, note
end

-- The call of the operation through the dot after a tensor or an event: the
-- text before the dot, the name as typed, the arguments, the calls after it
-- and a note on these.
local function dotted_call(line, op, value)
  local found = {}
  expressions.dotted_calls(line, function(path, name, args, at)
    if args:find "^%(" and is_name_of(name, op) and
       type(value(path)) == "userdata" then
      found = {path, name, args, rest_of_chain(line, path, args, at, value)}
      return true
    end
  end)
  return table.unpack(found, 1, 5)
end

-- The same call of what another call gives, nacre.ones(2, 3).size(1), with a
-- colon; nil if there is none.
local function called_on_result(line, op, value)
  local at = line:match("%)()%." .. op .. "%s*%b()")
  local object = at and expressions.ending(line:sub(1, at - 1))
  if not object then return nil end
  local args = line:match("^%." .. op .. "%s*(%b())", at)
  return ("%s:%s%s%s"):format(object, op, args,
                              (rest_of_chain(line, object, args, at, value)))
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
  local path, name, args, rest, note = dotted_call(line, op, value)
  if not path then
    local call = called_on_result(line, op, value)
    o.hint = call or o.hint
    return call ~= nil
  end
  if args:match "^%(%s*([%w_.%[%]]*)" ~= path then
    local counts
    args, counts = counted_from_one(path, name, args)
    note = counts or note
  elseif o.cause ~= "missing" then
    return false              -- x.eq(x, 1)
  end
  o.message = ("%s is a method: %s:%s%s%s"):format(name, path, name, args, rest)
  o.op, o.object, o.hint = nil, nil, note
  return true
end

-- Is the first argument of a call an object of the same class as v?
local function gives_self(args, v, value)
  local first = args:match "^%(%s*([%a_][%w_.%[%]]*)"
  local given = first and value(first)
  return first == "self" or type(given) == "table" and
         debug.getmetatable(given) == debug.getmetatable(v)
end

-- Is `name' a method of v that is written in Lua and begins with self?
local function takes_self(v, name)
  if type(v) ~= "table" or not lookup.is_method(v, name) then return false end
  local f = lookup.field(v, name) or rawget(debug.getmetatable(v), name)
  return type(f) == "function" and debug.getinfo(f, "S").what ~= "C" and
         debug.getlocal(f, 1) == "self"
end

-- Explains the error at a line that calls a method of an object through a dot;
-- true if it does.
function dot_call.explain_object(o, line, value)
  local found
  local at = not o.at and o.frames[1]
  if at then line = line_of(at.text or "", at.line) or line end
  expressions.dotted_calls(line, function(path, name, args, dot)
    local v = value(path)
    if takes_self(v, name) and not gives_self(args, v, value) then
      found = true
      o.op, o.message = name, "a method is called with a colon"
      o.hint = ("%s:%s%s%s"):format(path, name, args,
        (rest_of_chain(line, path, args, dot, value)))
      o.args, o.module, o.cause, o.object = {}, nil, nil, nil
      if at then o.at, o.file, o.line, o.source = at, at.file, at.line, line end
      return true
    end
  end)
  return found or false
end

return dot_call
