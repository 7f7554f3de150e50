-- SPDX-License-Identifier: MIT
--
-- lexer.lua - splits Lua source into tokens, complete or not. It never fails:
-- what Lua would reject becomes a token of kind "op".

local lexer = {}

-- The words of a text as the keys of a table.
function lexer.set(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

local keywords = lexer.set [[and break do else elseif end false for function
  goto if in local nil not or repeat return then true until while]]
lexer.keywords = keywords

-- The end of the long bracket that opens at i, and whether it closes.
local function long_bracket_end(text, i)
  local level = text:match("^%[(=*)%[", i)
  if not level then return nil end
  local _, stop = text:find("]" .. level .. "]", i + #level + 2, true)
  return stop or #text, stop ~= nil
end

-- The end of the string in quotes at i, and whether it closes.
local function string_end(text, i)
  local quote = text:sub(i, i)
  local at = i + 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == quote then return at, true end
    if c == "\n" then return at - 1, false end
    if c == "\\" then
      local _, skip = text:find("^z%s*", at + 1)
      at = skip or at + 1
    end
    at = at + 1
  end
  return #text, false
end

local function next_token(text, i)
  local c = text:sub(i, i)
  if c:find "[%a_]" then
    local _, stop = text:find("^[%w_]+", i)
    return keywords[text:sub(i, stop)] and "keyword" or "name", stop, true
  elseif c:find "%d" or text:find("^%.%d", i) then
    local _, stop = text:find("^0[xX][%x%.]*[pP]?[+-]?%x*", i)
    if not stop then _, stop = text:find("^[%d%.]+[eE]?[+-]?%d*", i) end
    return "number", stop, true
  elseif c == '"' or c == "'" then
    return "string", string_end(text, i)
  elseif text:find("^%-%-", i) then
    local stop, closed = long_bracket_end(text, i + 2)
    if stop then return "comment", stop, closed end
    return "comment", (text:find("\n", i, true) or #text + 1) - 1, true
  elseif text:find("^%[=*%[", i) then
    return "string", long_bracket_end(text, i)
  end
  local _, stop = text:find("^%.%.%.?", i)
  if not stop then _, stop = text:find("^[=~<>/:][=<>/:]", i) end
  return "op", stop or i, true
end

-- All tokens: {kind, text, from, to, line, closed}, comments included.
function lexer.tokens(text)
  local list, i, line = {}, 1, 1
  while true do
    local gap = text:match("^%s*", i)
    for _ in gap:gmatch "\n" do line = line + 1 end
    i = i + #gap
    if i > #text then return list end
    local kind, stop, closed = next_token(text, i)
    local word = text:sub(i, stop)
    list[#list + 1] = {kind = kind, text = word, from = i, to = stop,
                       line = line, closed = closed}
    for _ in word:gmatch "\n" do line = line + 1 end
    i = stop + 1
  end
end

-- The same without the comments.
function lexer.code(text)
  local list = {}
  for _, token in ipairs(lexer.tokens(text)) do
    if token.kind ~= "comment" then list[#list + 1] = token end
  end
  return list
end

-- The names in a text that are not fields or methods, each once, in order.
function lexer.variables(text)
  local list, seen, last = {}, {}, nil
  for _, token in ipairs(lexer.tokens(text)) do
    local field = last == "." or last == ":"
    if token.kind == "name" and not field and not seen[token.text] then
      seen[token.text] = true
      list[#list + 1] = token.text
    end
    last = token.text
  end
  return list
end

-- The brackets that open and close.
lexer.opens, lexer.closes = lexer.set "( { [", lexer.set ") } ]"

local opens = lexer.set "function do then repeat ( { ["
local closes = lexer.set "end until elseif else ) } ]"

-- Pushes and pops the lines of the brackets and blocks that are open.
local function step(stack, token)
  local word = token.text
  if token.kind ~= "op" and token.kind ~= "keyword" then return end
  if closes[word] then stack[#stack] = nil end
  if opens[word] or word == "else" then stack[#stack + 1] = token.line end
end

-- Calls each(token, depth) with the number of blocks open before each token.
function lexer.depth(tokens, each)
  local stack = {}
  for _, token in ipairs(tokens) do
    if each then each(token, #stack) end
    step(stack, token)
  end
  return stack
end

-- The column of a line that begins with `rest` after `text`: two for each line
-- that leaves a bracket or block open.
function lexer.indent(text, rest)
  local tokens = lexer.tokens(text)
  local last = tokens[#tokens]
  if last and not last.closed then return 0 end -- inside a long string
  local stack = lexer.depth(tokens)
  for _, token in ipairs(lexer.tokens(rest:match "[^\n]*")) do
    if not closes[token.text] or token.kind == "string" then break end
    stack[#stack] = nil
  end
  local columns, line = 0, nil
  for _, at in ipairs(stack) do
    if at ~= line then columns = columns + 2 end
    line = at
  end
  return columns
end

return lexer
