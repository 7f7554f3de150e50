-- SPDX-License-Identifier: MIT
--
-- call_at_cursor.lua - the call around the cursor: which function, which
-- argument, and the arguments before it. Found from the text; nothing is run.

local expressions = require "nacre.expression_at"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"

local call_at_cursor = {}

-- The brackets that are open after the tokens, outermost first: {at = index,
-- word = the bracket}.
local function brackets(tokens)
  local stack = {}
  for i, token in ipairs(tokens) do
    if lexer.opens[token.text] then
      stack[#stack + 1] = {at = i, word = token.text}
    elseif lexer.closes[token.text] then
      stack[#stack] = nil
    end
  end
  return stack
end

-- The path that ends before token i: "a:mm", "nacre.nn.relu"; nil if there
-- is none.
local function callee(text, tokens, i)
  local last = tokens[i - 1]
  if not last or last.kind ~= "name" then return nil end
  local from = i - 1
  while from > 2 and tokens[from - 2].kind == "name" and
        tokens[from - 1].text:find "^[.:]$" do
    from = from - 2
  end
  local before = tokens[from - 1]
  if before and (before.text == "function" or before.text:find "^[.:]$" and
                 from > 1) then
    -- of what a call gives, or the name of a function being written
    if before.text == "function" then return nil end
    return "?" .. text:sub(before.from, last.to)
  end
  return (text:sub(tokens[from].from, last.to):gsub("%s", ""))
end

-- The function of a path: its info, the function itself, the object of a
-- method, and whether it is one.
local function function_at(path)
  local owner, mark, name = path:match "^(.-)([.:]?)([%a_][%w_]*)$"
  local method = mark == ":"
  if owner:find "^%?" or owner == "" and mark ~= "" then
    local f = method and lookup.field(nacre._methods, name)
    return f and nacre._info(f), f, nil, method
  end
  local object = owner ~= "" and lookup.value(owner) or nil
  local f = lookup.value(path)
  local info = type(f) == "function" and nacre._info(f) or nil
  return info, f, object, method
end

-- The parameters that have a name, without the self of a method.
local function parameters(info, method)
  local list = {}
  for i, p in ipairs(info.params) do
    local isself = method and i == 1 and p.name == "self"
    if not isself and p.name ~= "..." then list[#list + 1] = p end
  end
  return list
end

-- The texts of the complete arguments before the cursor.
local function arguments(text, tokens, bracket)
  local list = expressions.items(text:sub(tokens[bracket.at].to + 1))
  local rest = table.remove(list)
  for i, item in ipairs(list) do list[i] = item:match "^%s*(.-)%s*$" end
  return list, rest
end

-- The names already set in a table of options; nil if it is a list.
local function option_names(text)
  local names = {}
  for item in text:gmatch "([^,]*)," do
    local name = item:match "^%s*([%a_][%w_]*)%s*="
    if not name then return nil end
    names[name] = true
  end
  return names
end

-- May the next argument be a table of options?
local function options_may_follow(params, typed)
  local required = 0
  for _, p in ipairs(params) do
    if not p.optional and not p.byname then required = required + 1 end
  end
  return #typed >= required
end

-- The call around the end of `text`: {info =, f =, object =, method =,
-- params =, typed = {texts}, rest =, options = names given or nil}; nil if
-- the cursor is in none.
function call_at_cursor.around(text)
  local tokens = lexer.tokens(text)
  local stack = brackets(tokens)
  local inner, outer = stack[#stack], stack[#stack - 1]
  if not inner or inner.word == "[" then return nil end
  local options
  local at = inner
  local path = callee(text, tokens, inner.at)
  if inner.word == "{" then
    options = option_names(text:sub(tokens[inner.at].to + 1))
    if not path and outer and outer.word == "(" then
      at, path = outer, callee(text, tokens, outer.at)
    end
  end
  if not path then return nil end
  local info, f, object, method = function_at(path)
  local typed, rest = arguments(text, tokens, at)
  local params = info and parameters(info, method) or {}
  if inner.word == "{" and
     (not options or at == outer and not options_may_follow(params, typed)) then
    return nil
  end
  return {path = path, info = info, f = f, object = object, method = method,
          params = params, typed = typed, rest = rest, options = options}
end

return call_at_cursor
