-- SPDX-License-Identifier: MIT
--
-- dot_call.lua - x.clip(0, 1) where x:clip(0, 1) is meant: the arguments are
-- shifted by one, and the error reports one that is missing or of the wrong
-- type.

local nacre = package.loaded.nacre or _G.nacre

local dot_call = {}

local function bare(name) return (name:gsub("_$", "")) end

-- Is this a name of the operation, possibly an alias?
local function is_name_of(name, op)
  if not nacre._methods[name] then return false end
  local info = nacre._info(bare(name))
  return bare(name) == bare(op) or info and info.name == bare(op)
end

-- The call of the operation through a dot: the text before the dot, the name
-- as typed, the arguments.
local function dotted_call(line, op, value)
  local from = 1
  repeat
    local path, name, at, args, inside =
      line:match("([%a_][%w_%.]*)%.([%a_][%w_]*)%s*()(%b())()", from)
    if path and is_name_of(name, op) and nacre.is_tensor(value(path)) then
      return path, name, args
    end
    from = at and at + 1
  until not inside
end

-- Sets the hint of an argument error to "clip is a method".
function dot_call.mark(o, line, value)
  local missing = o.op and o.message:find " is missing: "
  if not missing and not (o.op and o.message:find " must be an? ") then
    return
  end
  local path, name, args = dotted_call(line, o.op, value)
  if not path then return end
  if args:match "^%(%s*([%w_%.]*)" ~= path then
    o.hint = name .. " is a method"           -- runtime_errors.lua says of what
  elseif missing then                         -- x.eq(x)
    o.message = ("%s is a method: %s:%s%s"):format(name, path, name, args)
    o.op, o.object, o.hint = nil, nil, nil
  end
end

return dot_call
