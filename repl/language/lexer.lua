-- SPDX-License-Identifier: MIT
--
-- lexer.lua - the tokens of Lua source, complete or not, and what follows from
-- them. lex.c splits the text; it never fails: what Lua would reject becomes a
-- token of kind "op".

local lex = require "nacre.lex"

local lexer = {}

-- The words of a text as the keys of a table.
function lexer.set(text)
  local set = {}
  for word in text:gmatch "%S+" do set[word] = true end
  return set
end

lexer.keywords = lex.keywords

-- All tokens: {kind, text, from, to, line, closed}, comments included. kind is
-- name, keyword, number, string, comment or op. tokens(text, line) are those of
-- one line.
lexer.tokens = lex.tokens

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

-- The column of a line that begins with `rest` after `text`: two for each line
-- that leaves a bracket or block open.
lexer.indent = lex.indent

return lexer
