-- SPDX-License-Identifier: MIT
--
-- nil_argument.lua - hints for an argument that is nil: which variable of the
-- line it is, and whether that exists.

local expressions = require "nacre.expression_at"
local lexer = require "nacre.lexer"
local unknown_names = require "nacre.unknown_names"

local nil_argument = {}

-- The arguments of the operation's call if the line has one such call, else
-- the line.
local function argument_text(o, line)
  local op = o.op and o.op:match "[%w_]+$"
  local list = op and expressions.calls(line, op) or {}
  return #list == 1 and list[1].args or line
end

-- The path that begins at tokens[i], as far as its parts are tables, and its
-- last token.
local function path(tokens, i)
  local text = tokens[i].text
  while tokens[i + 1] do
    local mark, key = tokens[i + 1].text, tokens[i + 2]
    if mark == "." and key and key.kind == "name" then
      text, i = text .. "." .. key.text, i + 2
    elseif mark == "[" and key and key.kind == "number" and tokens[i + 3] and
           tokens[i + 3].text == "]" then
      text, i = text .. "[" .. key.text .. "]", i + 3
    else
      break
    end
  end
  return text, i
end

-- The owner and the last key of a path.
local function split(text)
  local owner, key = text:match "^(.*)%.([%a_][%w_]*)$"
  if owner then return owner, key end
  return text:match "^(.*)%[(%d+)%]$"
end

-- The first path in a text that is nil and whose owner is not.
local function first_nil(text, value)
  local tokens, i, made = lexer.tokens(text), 1, {}
  while tokens[i] do
    local t, before = tokens[i], i > 1 and tokens[i - 1].text
    local after = tokens[i + 1] and tokens[i + 1].text
    if t.kind == "name" and (before == "local" or before == "function") then
      made[t.text] = true
    elseif t.kind == "name" and before ~= "." and before ~= ":" and
           after ~= "=" and not made[t.text] then
      local whole, stop = path(tokens, i)
      local owner = split(whole)
      if value(t.text) == nil then return t.text end
      if owner and type(value(owner)) == "table" and value(whole) == nil and
         not debug.getmetatable(value(owner)) then
        return whole
      end
      i = stop
    end
    i = i + 1
  end
end

local opens = lexer.set "do then repeat else function"
local closes = lexer.set "end until elseif else"
local between = lexer.set ", < >"

-- Is one of the names from tokens[i] on, in a list of names, this one?
local function in_list(tokens, i, name)
  while tokens[i] and (tokens[i].kind == "name" or between[tokens[i].text]) do
    if tokens[i].text == name then return true end
    i = i + 1
  end
  return false
end

-- Does tokens[i] open a block that declares the name, as a loop or a function
-- does? `loop' tells that the loop does whose `do' this may be.
local function block_declares(tokens, i, name, loop)
  if tokens[i].text == "do" then return loop end
  if tokens[i].text ~= "function" then return false end
  repeat i = i + 1 until not tokens[i] or tokens[i].text == "("
  return in_list(tokens, i + 1, name)
end

-- The "=" of the last assignment, in front of a line, to the variable that a
-- name means there; nil if it has none. What a block that has ended declares
-- under this name is another variable.
local function last_assignment(tokens, name, line)
  local blocks, loop, braces = {{}}, false, 0  -- the variable of each block
  for i, t in ipairs(tokens) do
    if t.line >= line then break end
    local word = t.kind ~= "string" and t.text
    if word == "{" then braces = braces + 1
    elseif word == "}" then braces = braces - 1 end
    if closes[word] and #blocks > 1 then blocks[#blocks] = nil end
    if opens[word] then
      blocks[#blocks + 1] = block_declares(tokens, i, name, loop) and {} or
                            blocks[#blocks]
    end
    if word == "for" then loop = in_list(tokens, i + 1, name)
    elseif word == "do" then loop = false
    elseif word == "local" and in_list(tokens, i + 1, name) then
      blocks[#blocks] = {}
    elseif word == "=" and braces == 0 and not loop and
           tokens[i - 1].text == name and
           not (i > 2 and tokens[i - 2].text == ".") then
      blocks[#blocks].set = t
    end
  end
  return blocks[#blocks].set
end

-- What was last assigned to a variable in front of a line of a text, if one is
-- given, and the line of that; or nil.
function nil_argument.assigned(name, text, line)
  local set = text:find(name .. "%s*=") and
              last_assignment(lexer.code(text), name, line or math.huge)
  if not set then return nil end
  return text:match("^[^\n]*", set.to + 1):match "^%s*(.-)%s*$", set.line
end

-- "n is nil, set in line 1: n = tonumber(x)"
local function nil_variable(name, scope)
  local value, line = nil_argument.assigned(name, scope.text or "",
                                            scope.line or 0)
  return value and ("%s is nil, set in line %d: %s = %s"):format(name, line,
                                                                 name, value) or
         name .. " is nil"
end

-- arg[1] in a script without arguments
local function script_argument(text)
  local n = text:match "^arg%[(%d+)%]$"
  return n and ("%s is nil: the script has %s"):format(text,
    #arg == 0 and "no arguments" or #arg == 1 and "one argument" or
    #arg .. " arguments")
end

-- The hint for an argument that is nil, or nil.
function nil_argument.hint(o, line, value, scope)
  if o.cause ~= "missing" and o.got ~= "nil" and o.got ~= "no value" then
    return nil
  end
  local name = first_nil(argument_text(o, line), value)
  if not name then return nil end
  local owner, key = split(name)
  if owner and type(arg) == "table" and script_argument(name) then
    return script_argument(name)
  end
  if owner then
    local near = key:find "^%a" and unknown_names.nearest(key, value(owner))
    return unknown_names.did_you_mean(name .. " is nil",
                                      near and owner .. "." .. near)
  end
  if not (scope and scope.there[name]) then
    return unknown_names.novariable(name)
  end
  return nil_variable(name, scope)
end

return nil_argument
