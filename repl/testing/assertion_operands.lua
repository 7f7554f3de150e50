-- SPDX-License-Identifier: MIT
--
-- assertion_operands.lua - makes a t.ok(a == b) that fails show the values of
-- a and b.
--
-- When a *_test.lua is loaded, the operands of the comparisons in its
-- t.ok(...) are wrapped in calls of keep. Each is still evaluated once, in the
-- same order, and line numbers stay the same.

local diff = require "nacre.value_diff"
local lexer = require "nacre.lexer"

local assertion_operands = {}

local CALL = 'require"nacre.assertion_operands".keep(%d,'

local set = lexer.set

local opens, closes = lexer.opens, lexer.closes
local compares = set "== ~= < > <= >="
local constants = set "nil true false"

local texts = {}              -- of the operands in the file, by their numbers
local kept = {}               -- {number, value}, since the last check

function assertion_operands.keep(n, v)
  kept[#kept + 1] = {n, v}
  return v
end

-- Is the operand a constant, such as a number?
local function constant(tokens, from, to)
  local token = tokens[to]
  return (from == to or from == to - 1 and tokens[from].text == "-") and
         (token.kind == "number" or token.kind == "string" or
          constants[token.text])
end

-- Adds the calls of keep around the tokens of an operand to `before` and
-- `after`.
local function wrap(text, tokens, from, to, before, after)
  if from > to or constant(tokens, from, to) then return end
  texts[#texts + 1] = text:sub(tokens[from].from, tokens[to].to)
                          :gsub("%s+", " ")
  before[from], after[to] = CALL:format(#texts), ")"
end

-- The end of the first argument, which begins at token i, and the positions of
-- its operators: `and' and `or' under 0, the comparisons of each part under
-- its number. Nil if unknown.
local function parts(tokens, i)
  local list, depth = {{from = i}}, 0
  while tokens[i] do
    local word, last = tokens[i].text, list[#list]
    local plain = tokens[i].kind == "op" or tokens[i].kind == "keyword"
    if word == "function" and plain then return nil end
    if plain and depth == 0 and (word == "," or closes[word]) then
      last.to = i - 1
      return list
    elseif plain and depth == 0 and (word == "and" or word == "or") then
      last.to = i - 1
      list[#list + 1] = {from = i + 1}
    elseif plain and depth == 0 and compares[word] then
      last.at, last.more = i, last.at ~= nil
    end
    depth = depth + (plain and opens[word] and 1 or 0) -
            (plain and closes[word] and 1 or 0)
    i = i + 1
  end
end

-- Is `require' certainly Lua's, in a file of these tokens?
local function requires(tokens)
  for i, token in ipairs(tokens) do
    local follows = tokens[i + 1]
    if token.text == "_ENV" or token.text == "require" and not (follows and
       (follows.text == "(" or follows.kind == "string")) then
      return false
    end
  end
  return true
end

-- The text of a test file with its operands wrapped in calls of keep.
function assertion_operands.rewritten(text)
  local tokens, before, after = lexer.code(text), {}, {}
  if not requires(tokens) then return text end
  for i = 4, #tokens do
    if tokens[i - 3].text == "." and tokens[i - 2].text == "ok" and
       tokens[i - 1].text == "(" then
      for _, part in ipairs(parts(tokens, i) or {}) do
        if part.at and not part.more then
          wrap(text, tokens, part.from, part.at - 1, before, after)
          wrap(text, tokens, part.at + 1, part.to, before, after)
        end
      end
    end
  end
  local out, at = {}, 1
  for i, token in ipairs(tokens) do
    out[#out + 1] = text:sub(at, token.from - 1) .. (before[i] or "") ..
                    token.text .. (after[i] or "")
    at = token.to + 1
  end
  local new = table.concat(out) .. text:sub(at)
  return load(new, "=", "t") and new or text
end

-- A float with all its digits.
local function written(v)
  local text = diff.brief(v)
  local short = math.type(v) == "float" and v == v and tonumber(text) ~= v
  return short and ("%.17g"):format(v) or text
end

-- The operands kept since the last call, as lines.
function assertion_operands.take()
  local lines = {}
  for k, one in ipairs(kept) do
    lines[k] = ("  %s is %s"):format(texts[one[1]], written(one[2]))
  end
  kept = {}
  return lines
end

return assertion_operands
