-- SPDX-License-Identifier: MIT
--
-- python_calls.lua - translates a call of Python whose arguments are lists,
-- tuples and named: torch.cat([x, y], dim=0) is torch.cat({x, y}, {dim=1}).

local expressions = require "nacre.expression_at"
local index_base = require "nacre.index_base"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local python_statements = require "nacre.python_statements"
local runtime_errors = require "nacre.runtime_errors"
local unknown_names = require "nacre.unknown_names"
local value_of = require "nacre.stack_frames".value_of

local nacre = package.loaded.nacre or _G.nacre

local python_calls = {}

-- The info of the operation or layer that a path calls, or nil.
local function info_of(path)
  local f = unknown_names.of_library(path) or lookup.value(path)
  if type(f) == "function" or type(f) == "table" then return nacre._info(f) end
  local method = path:match "[.:]([%a_][%w_]*)$"
  return method and nacre._methods[method] and nacre._info(method) or nil
end

python_calls.info_of = info_of

local function trimmed(text) return text:match "^%s*(.-)%s*$" end

-- A list, a tuple or any other expression.
local function value(text)
  text = trimmed(text)
  local inside = text:match "^%b[]$" or text:match "^%b()$"
  if not inside or inside:find "%sfor%s" or
     inside:find "^%(" and not inside:find "," then
    return (python_calls.translate(text):gsub("%f[%w_]%a+%f[^%w_]",
                                              unknown_names.constants))
  end
  local list = {}
  for _, item in ipairs(expressions.items(inside:sub(2, -2))) do
    if item:find "%S" then list[#list + 1] = value(item) end
  end
  return "{" .. table.concat(list, ", ") .. "}"
end

-- Dimensions counted from 1: one, or each of a list. Also whether they are.
local function counted(info, name, text)
  local inside = text:match "^{([%d%s,]*)}$"
  if not inside then return index_base.argument(info, name, text) end
  local any = false
  return "{" .. inside:gsub("%d+", function(n)
    local own, mine = index_base.argument(info, name, n)
    any = any or mine
    return own
  end) .. "}", any
end

-- The arguments of a call of Lua; whether some are counted from 1.
local function arguments(info, args, skips)
  local list, named, any = {}, {}, false
  for i, item in ipairs(expressions.items(args)) do
    local name, given = item:match "^%s*([%a_][%w_]*)%s*=%s*([^=].*)$"
    name = runtime_errors.arguments[name] or name
    local param = info and info.params and info.params[i + skips]
    local text, mine = counted(info, name or param and param.name,
                               value(given or item))
    any = any or mine
    if name then named[#named + 1] = ("%s=%s"):format(name, text)
    elseif text ~= "" then list[#list + 1] = text end
  end
  if named[1] then list[#list + 1] = "{" .. table.concat(named, ", ") .. "}" end
  return table.concat(list, ", "), any
end

-- Translates the calls in a text. Also whether dimensions were counted.
function python_calls.translate(text)
  local parts, from, any = {}, 1, false
  for at, path, stop in text:gmatch "()([%a_][%w_.:]*)%s*()%b()" do
    local args = text:match("^%b()", stop)
    if at >= from and not lexer.keywords[path] then
      local info = info_of(text:find("^%.", at - 1) and "." .. path or path)
      local method = info and info.params and info.params[1] and
                     info.params[1].name == "self" and
                     not unknown_names.of_library(path)
      local inside, mine = arguments(info, args:sub(2, -2), method and 1 or 0)
      any = any or mine
      parts[#parts + 1] = text:sub(from, at - 1) .. path .. "(" .. inside .. ")"
      from = stop + #args
    end
  end
  return python_statements.expression(table.concat(parts) .. text:sub(from)),
         any
end

-- np.array({1, 2}), DataLoader(set): the names that this library has for a
-- call of a name that is not known; "" if it has none.
local function in_library(text)
  local head, path, args = text:match "^([%w_,%s]-=?%s*)([%a_][%w_.]*)(%b())$"
  local root = path and path:match "^[%w_]+"
  if not path or rawget(_G, root) ~= nil then return text end
  local known = runtime_errors.modules[root] and path:find "%."
  if known then
    return unknown_names.ofpath(path:match "%.(.*)$", text, value_of, nil,
                                true) or ""
  end
  local place = root == path and path:find "%u" and
                unknown_names.elsewhere(path)
  return place and head .. place .. args or text
end

-- The line in Lua, if it is a statement or an expression then; else nil.
function python_calls.line(line)
  line = trimmed(line)
  if #line > 500 then return nil end
  local text, any = python_calls.translate(line)
  text = in_library(text)
  if text == line or not (load(text, "=", "t") or
                          load("return " .. text, "=", "t")) then return nil end
  return text .. (any and index_base.note or "")
end

return python_calls
