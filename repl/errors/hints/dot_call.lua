-- SPDX-License-Identifier: MIT
--
-- dot_call.lua - x.clip(0, 1) where x:clip(0, 1) is meant: the arguments are
-- shifted by one, and the error reports one that is missing or of the wrong
-- type. The same of other objects, schedule.step(), where `self' is wrong.

local dotted = require "nacre.foreign_expressions".dotted
local lookup = require "nacre.lookup"
local line_of = require "nacre.runtime_errors".line

local nacre = package.loaded.nacre or _G.nacre

local dot_call = {}

local shifted = {missing = true, type = true, tensor = true}

-- The operation of an error that a call through a dot causes, or nil. A hint
-- of the binding that it is a method gets its object here.
local function operation(o)
  if shifted[o.cause] and o.name == "self" then o.hint = nil end
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

-- Explains the error of such a call as "clip is a method"; true if it is one.
function dot_call.explain(o, line, value)
  local op = operation(o)
  return op and dotted(line, value, function(text, dots, counted, found)
    for _, dot in ipairs(dots) do
      local v = value(dot.owner)
      if is_name_of(dot.name, op) and (v == nil or type(v) == "userdata") and
         (dot.first ~= dot.owner or o.cause == "missing") then -- x.eq(x, 1)
        local note = counted ~= text and ", counted from 1" or ""
        o.message = ("%s is a method: %s%s"):format(dot.typed, counted, note)
        o.op, o.object, o.hint = nil, nil, found.note
        return true
      end
    end
  end)
end

-- Is an argument an object of the same class as v?
local function gives_self(first, v, value)
  local given = first and first:find "^[%a_][%w_.%[%]]*$" and value(first)
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
  local at = not o.at and o.frames[1]
  if at then line = line_of(at.text or "", at.line) or line end
  return dotted(line, value, function(text, dots)
    for _, dot in ipairs(dots) do
      local v = value(dot.owner)
      if takes_self(v, dot.name) and not gives_self(dot.first, v, value) then
        o.op, o.message = dot.name, "a method is called with a colon"
        o.hint, o.args, o.module, o.cause, o.object = text, {}, nil, nil, nil
        if at then
          o.at, o.file, o.line, o.source = at, at.file, at.line, line
        end
        return true
      end
    end
  end)
end

return dot_call
