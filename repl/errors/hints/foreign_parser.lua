-- SPDX-License-Identifier: MIT
--
-- foreign_parser.lua - the parser of lines of Python, Julia, MATLAB, C and
-- JavaScript, which builds Lua's text: its tokens and what it reads them with.
-- The tokens are those of Lua, except that the operators of the others are one,
-- [[ is two brackets and a comment may begin with #.
--
-- A node: {text = in Lua, rank = of its operator, kind =, path = if it is one,
-- tensor = is it known to be one?, gives = "text" or "list" if that is known}.
-- One that takes statements in Lua, as [f(x) for x in y], has no text but
-- make(target), which gives them, and `want', the name for what they make.

local loop_variables = require "nacre.loop_variables"
local lexer = require "nacre.lexer"

local operators = lexer.set [[** != !== === && || += -= *= /= %= ^= //= **= ..=
  ++ -> .* .^ ./]]
local prefixes = lexer.set "f F r R b B rf fr"

-- Splits "[[1, 2], [3]]", a string in Lua, at its brackets.
local function split(text, offset, list)
  for _, t in ipairs(lexer.tokens(text)) do
    local from = t.from + offset
    if t.kind == "string" and t.text:find "^%[%[" then
      list[#list + 1] = {kind = "op", text = "[", from = from, to = from}
      return split(text:sub(t.from + 1), from, list)
    end
    t.from, t.to = from, t.to + offset
    list[#list + 1] = t
  end
  return list
end

-- Does an expression end with this token?
local function ends_operand(t)
  return t.kind == "name" or t.kind == "number" or t.kind == "string" or
         lexer.closes[t.text] or t.text == ":"
end

-- Joins b to a, the token in front of it, if both are one token there.
local function joins(a, b)
  if not a or a.to + 1 ~= b.from then return false end
  local whole = operators[a.text .. b.text]
  if whole then a.text, a.to = a.text .. b.text, b.to end
  if prefixes[a.text] and b.kind == "string" then a.prefix = true end
  if a.kind == "number" and b.kind == "name" then   -- 1_000, 0b101
    whole, a.text, a.to = true, a.text .. b.text, b.to
  end
  return whole
end

-- The tokens of a line; nil if it has a string that does not end.
local function tokens_of(line)
  local list = {}
  for _, t in ipairs(split(line, 0, {})) do
    local before = list[#list]
    if t.kind == "comment" or t.text == "#" and line:find("^%s", t.to + 1) and
       (not before or ends_operand(before)) then break end
    if t.kind == "string" and not t.closed then return nil end
    if not joins(before, t) then list[#list + 1] = t end
  end
  for i, t in ipairs(list) do
    local before = list[i - 1]
    t.space = before and line:sub(before.to + 1, t.from - 1) or ""
  end
  return list
end

--
-- The parser
--
local Parser = {}
Parser.__index = Parser

-- The ranks of what a suffix can follow, and of what needs parentheses before.
Parser.OPERAND, Parser.LITERAL = 20, 19
local OPERAND <const>, FAILED <const> = Parser.OPERAND, {}

-- The line is none that is understood.
function Parser.fail() error(FAILED, 0) end

local function node(text, rank, more)
  more = more or {}
  more.text, more.rank = text, rank or OPERAND
  return more
end
Parser.node = node

-- A node of what statements make: make(target) gives them.
function Parser:made(make, want, more)
  local n = node("", 0, more)
  n.make, n.want, n.parser = make, want, self
  return n
end

-- A node as an expression: statements that make it are put before the one that
-- is read, and its text is the name of what they make.
function Parser:settle(n)
  if not n.make then return n end
  if not self.before then self.fail() end
  local name = self:fresh(n.want or "t")
  local text = n.make(name)
  table.insert(self.before, (text:find("^" .. name .. " = ") and "local " or
                             ("local %s; "):format(name)) .. text)
  n.make, n.text, n.rank, n.path, n.kind = nil, name, OPERAND, nil, "made"
  return n
end

-- A name like `want' that the line does not have.
function Parser:unused(want)
  local name, k = want, 1
  while self.taken[name] do
    k = k + 1
    name = want .. k
  end
  return name
end

-- The same, which is then used.
function Parser:fresh(want)
  local name = self:unused(want)
  self.taken[name] = true
  return name
end

-- Puts a statement before that which is read, if one may stand there.
function Parser:place_before(text)
  if not self.before then self.fail() end
  table.insert(self.before, text)
end

-- What read() gives, with the statements that belong before it as a text.
function Parser:apart(read, ...)
  local outer = self.before
  self.before = {}
  local result = read(self, ...)
  local text = table.concat(self.before, "; ")
  self.before = outer
  return result, text ~= "" and text .. "; " or ""
end

local function enclosed(n)
  if n.make then n.parser:settle(n) end
  if n.text == "" then Parser.fail() end -- it is no expression of Lua
  return n.rank == OPERAND and n.text or "(" .. n.text .. ")"
end
Parser.enclosed = enclosed

--
-- Tokens
--
function Parser:token(ahead) return self.tokens[self.i + (ahead or 0)] end

-- Is the next token, or one after it, this operator or word?
function Parser:at(text, ahead)
  local t = self:token(ahead)
  return t ~= nil and t.text == text
end

function Parser:take(text)
  local t = self:token()
  if not t or text and t.text ~= text then return nil end
  self.i = self.i + 1
  return t
end

function Parser:expect(text) return self:take(text) or self.fail() end

function Parser:name()
  local t = self:token()
  if not t or t.kind ~= "name" then self.fail() end
  return self:take().text
end

-- What read() gives, or nil, with the tokens unread, if it fails.
function Parser:try(read, ...)
  local i, before = self.i, self.before
  local count = before and #before
  local done, result = pcall(read, self, ...)
  if done and result then return result end
  if not done and result ~= FAILED then error(result, 0) end
  self.i, self.before = i, before
  for k = count and #before or 0, (count or 0) + 1, -1 do before[k] = nil end
end

-- Names between commas, of parameters or of a loop; parentheses around some
-- of them go.
function Parser:names()
  local list = {}
  repeat
    if self:take "(" then
      table.move(self:names(), 1, 8, #list + 1, list)
      self:expect ")"
    else
      list[#list + 1] = self:name()
    end
  until not self:take ","
  return list
end

-- A parser of a line, where value(path) is the value of a path; `known' is what
-- was found in the line before: {python =, zero =, julia =, bound = names that
-- it gives to what Python has, kinds = "text" or "list" by such a name}; loops
-- = how it uses the variables that count (loop_variables.lua); tensors = the
-- names that loops give to parameters. Nil if the line has no tokens.
function Parser.new(line, value, known)
  local tokens = tokens_of(line)
  if not tokens or not tokens[1] then return nil end
  local taken = {}
  for _, t in ipairs(tokens) do taken[t.text] = true end
  return setmetatable({tokens = tokens, i = 1, text = line, value = value,
                       found = {bound = {}, kinds = {}}, python = known.python,
                       zero = known.zero, julia = known.julia, taken = taken,
                       files = known.files or {},
                       bound = known.bound or {},
                       kinds = known.kinds or {},
                       tensors = known.tensors or {},
                       loops = known.loops or loop_variables.uses(tokens)},
                      Parser)
end

-- The expression that a text is, such as one in a string of Python.
function Parser:inner(text)
  local p = Parser.new(text, self.value, self) or self.fail()
  p.found, p.before = self.found, self.before
  for word in pairs(self.taken) do p.taken[word] = true end
  self.taken = p.taken
  local n = p:expression()
  return not p:token() and n or self.fail()
end

return Parser
