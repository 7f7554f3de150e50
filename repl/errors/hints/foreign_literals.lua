-- SPDX-License-Identifier: MIT
--
-- foreign_literals.lua - translates what an operand begins with: names,
-- numbers, strings with formats, lists, tuples, dictionaries, functions without
-- a name.

local Parser = require "nacre.foreign_parser"
local foreign_loops = require "nacre.foreign_loops"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local names = require "nacre.python_names"
local python_methods = require "nacre.python_methods"

local OPERAND <const>, LITERAL <const> = Parser.OPERAND, Parser.LITERAL
local node, enclosed = Parser.node, Parser.enclosed

-- f"loss {x:.3f}" is ("loss %.3f"):format(x).
function Parser.format(spec)
  local align, rest = spec:match "^.?([<>^=])(.*)$"
  local sign, width, digits, kind =
    (rest or spec):match "^([+ ]?)(0?%d*)[,_]?(%.?%d*)(%a?%%?)$"
  if not sign then return "%s" end
  if align == "<" then sign = "-" .. sign end
  if kind == "%" then return ("%%%s%s%sf%%%%"):format(sign, width, digits) end
  if kind == "" then kind = digits ~= "" and "g" or "s" end
  return "%" .. sign .. width .. digits .. kind
end
local lua_format = Parser.format

-- A number for a format: of a tensor, its element.
function Parser.number_of(n, value)
  local v = n.path and value(n.path)
  local single = n.tensor and (not istensor(v) or v:numel() == 1)
  return single and not n.text:find ":item%(%)$" and enclosed(n) .. ":item()"
         or n.text
end

-- {x:.3f} of an f-string, without the braces: its format in Lua and the value.
local function replaced(self, arg)
  local bare = arg:gsub("%b[]", function(x) return ("."):rep(#x) end)
  local at = bare:find(":", 1, true) or #arg + 1
  local form, shown = lua_format(arg:sub(at + 1)), ""
  arg = arg:sub(1, at - 1):gsub("!%a$", "")
  if arg:find "[^=!<>~]=%s*$" then
    shown, arg = arg:gsub("%%", "%%%%"), arg:match "^(.-)%s*=%s*$"
  end
  local n = self:settle(self:inner(arg))
  if n.kind == "append" or n.text == "" then self.fail() end
  local item = form:find "[dfegx%%]$" and self.number_of(n, self.value)
  local v = form:find "s$" and n.path and self.value(n.path)
  if istensor(v) and #v.shape == 0 then item = n.text .. ":item()" end
  item = item or n.text
  return shown .. form, form:find "%%%%$" and "100 * " .. item or item
end

local function formatted(self, text)
  local args, plain = {}, {}
  text = text:gsub("{{", "\1"):gsub("}}", "\2")
  for before, arg in (text .. "{}"):gmatch "([^{}]*)(%b{})" do
    plain[#plain + 1] = before:gsub("%%", "%%%%")
    if arg ~= "{}" then
      plain[#plain + 1], args[#args + 1] = replaced(self, arg:sub(2, -2))
    end
  end
  text = table.concat(plain):gsub("\1", "{"):gsub("\2", "}")
  if not args[1] then
    return node(text:gsub("%%%%", "%%"), LITERAL, {kind = "string"})
  end
  return node(("(%s):format(%s)"):format(text, table.concat(args, ", ")), nil,
              {gives = "text"})
end

-- The parts between commas of a list or tuple, up to its closing bracket.
function Parser:items(close)
  local list = {}
  while not self:take(close) do
    if list[1] then self:expect "," end
    if self:take(close) then break end
    list[#list + 1] = self:settle(self:expression())
  end
  return list
end

local function table_of(list, kind)
  local texts = {}
  for i, n in ipairs(list) do texts[i] = enclosed(n) and n.text end
  return node("{" .. table.concat(texts, ", ") .. "}", LITERAL,
              {kind = kind, items = list})
end

-- for x in list if c, of a comprehension
local function loops(self, close)
  self:expect "for"
  local n = {names = self:names()}
  for _, name in ipairs(n.names) do self.found.bound[name] = true end
  self:expect "in"
  n.list, n.list_first = self:apart(self.range_or_expression)
  if self:take "if" then
    n.condition, n.condition_first = self:apart(self.condition)
  end
  if self:at "for" then n.inner_loop = loops(self, close)
  else self:expect(close) end
  return n
end

-- The comprehension of `each', which `first' stands before.
function Parser:comprehension(each, first, close, key)
  local n = loops(self, close)
  self.found.python = true
  if each.make then
    local _, more = self:apart(self.settle, each)
    first = first .. more
  end
  n.each, n.first, n.key = each, first, key
  local made
  made = self:made(function(target)
    return foreign_loops.comprehension(self, n, target, made.fold)
  end, "t", {kind = "comprehension", gives = "list", loops = n})
  return made
end

-- An element in brackets, or the comprehension of it and true.
function Parser:element(close)
  local each, first = self:apart(self.expression)
  if self:at "for" then
    return self:comprehension(each, first, close), true
  end
  if first ~= "" then self:place_before(first:sub(1, -3)) end
  return each
end

-- [1, 2], [f(x) for x in list]
local function list(self)
  self.found.python = true
  if self:take "]" then return table_of({}, "list") end
  local each, whole = self:element "]"
  if whole then return each end
  self:settle(each)
  if self:take "]" then return table_of({each}, "list") end
  self:expect ","
  return table_of({each, table.unpack(self:items "]")}, "list")
end

-- (x), (x, y), (x == y), (f(x) for x in list)
local function parenthesis(self)
  if self:take ")" then
    self.found.python = true
    return table_of({}, "tuple")
  end
  local each, whole = self:element ")"
  if whole then return each end
  if self:take ")" then
    if each.make then return each end
    if each.translated and each.rank == OPERAND then return each end
    return node("(" .. each.text .. ")", nil,
                {inner = each, tensor = each.tensor})
  end
  self:expect ","
  self:settle(each)
  self.found.python = true
  return table_of({each, table.unpack(self:items ")")}, "tuple")
end

-- A key of a dictionary as one of a table.
local function key_of(n)
  local name = n.kind == "string" and n.text:match "^[\"']([%a_][%w_]*)[\"']$"
  if not name and n.kind ~= "string" and n.kind ~= "number" and
     n.text:find "^[%a_][%w_]*$" then name = n.text end
  return name and not lexer.keywords[name] and name or "[" .. n.text .. "]"
end

-- {1, a = 2, [k] = 3}, {"a": 1}, {a: 1}
local function field(self)
  if self:at "[" then
    local text = self:try(function(p)
      p:take()
      local key = p:expression()
      p:expect "]"
      local equals = p:expect "="
      local value = p:settle(p:expression())
      return ("[%s]%s=%s%s"):format(key.text, equals.space, value.space or " ",
                                    value.text)
    end)
    if text then return text end
  end
  if self:at("=", 1) and self:token().kind == "name" then
    local name, equals = self:take().text, self:take()
    local space = self:token() and self:token().space or ""
    return name .. equals.space .. "=" .. space ..
           self:settle(self:expression()).text
  end
  local n = self:settle(self:expression(1))
  if not self:take ":" then return n.text end
  local value, first = self:apart(self.expression)
  if self:at "for" then return first, n, value end
  if first ~= "" then self:place_before(first:sub(1, -3)) end
  return ("%s = %s"):format(key_of(n), self:settle(value).text)
end

-- {f(x) for x in list}
local function set(self)
  local each, first = self:apart(self.expression)
  if not self:at "for" then self.fail() end
  return python_methods.call(self, "set",
                             {{node = self:comprehension(each, first, "}")}})
end

local function braces(self)
  local texts = {}
  local made = self:try(set)
  if made then return made end
  while not self:take "}" do
    local t = self:token() or self.fail()
    local text, key, value = field(self)
    if value then return self:comprehension(value, text, "}", key) end
    local mark = self:take "," or self:take ";"
    texts[#texts + 1] = (texts[1] and t.space or "") .. text ..
                        (mark and mark.text or "")
    if not mark and not self:at "}" then self.fail() end
  end
  return node("{" .. table.concat(texts) .. "}", LITERAL, {kind = "table"})
end

-- function(x) ... end, as it is written
local function lua_function(self)
  local from, depth = self:token(), 0
  repeat
    local t = self:take() or self.fail()
    local word = t.kind == "keyword" and t.text
    if word == "function" or word == "do" or word == "if" or
       word == "repeat" then depth = depth + 1 end
    if word == "end" or word == "until" then depth = depth - 1 end
    if depth == 0 then
      return node(self.text:sub(from.from, t.to), LITERAL)
    end
  until false
end

-- A function without a name: its parameters, and its body from here on.
local function anonymous(self, params)
  if self.in_condition then self.fail() end
  for _, name in ipairs(params) do self.found.bound[name] = true end
  local body, first = self:apart(function()
    return self:settle(self:expression())
  end)
  return node(("function(%s) %sreturn %s end"):format(
    table.concat(params, ", "), first, body.text), LITERAL,
    {kind = "function", params = params, body = first == "" and body.text})
end

local function lambda(self)
  self.found.python = true
  local params = self:at ":" and {} or self:names()
  self:expect ":"
  return anonymous(self, params)
end

-- x -> x + 1, (x, y) => x + y
local function arrow(self)
  local params = {}
  if self:take "(" then
    params = self:at ")" and params or self:names()
    self:expect ")"
  else
    params[1] = self:name()
  end
  return (self:take "->" or self:take "=>" or self.fail()) and
         anonymous(self, params)
end

local function name(self)
  local t = self:take()
  if t.prefix then
    self.found.python = true
    local text = self:take().text
    return t.text:find "[fF]" and formatted(self, text) or
           node(t.text:find "[rR]" and "[[" .. text:sub(2, -2) .. "]]" or text,
                LITERAL, {kind = "string"})
  end
  if t.text == "lambda" then return lambda(self) end
  local constant = names.constants[t.text]
  if constant and self.value(t.text) == nil then
    return node(constant, LITERAL)
  end
  local v = self.value(t.text)
  return node(t.text, nil, {path = t.text, tensor = istensor(v),
                            fixed = math.type(v) ~= nil})
end

-- The number that Lua has for 1_000, 0b101 or 4j of Python, 4im of Julia.
local function number(self, text)
  local digits = text:gsub("_", "")
  local kind, rest = digits:match "^0([bBoO])(%d+)$"
  local value = kind and tonumber(rest, kind:lower() == "b" and 2 or 8)
  local part = digits:match "^([%d.eE]+)[jJiI]m?$"
  if part then
    local unit = part == "1" and "nacre.i" or part .. "*nacre.i"
    return node(unit, part == "1" and OPERAND or 11)
  end
  return node(kind and ("%d"):format(value or self.fail()) or digits, LITERAL,
              {kind = "number"})
end

-- Strings side by side are one in Python.
local function strings(self, text)
  local n = node(text, LITERAL, {kind = "string"})
  while self:token() and self:token().kind == "string" and
        not self:token().text:find "^%[" do
    n = node(n.text .. " .. " .. self:take().text, 9, {gives = "text"})
  end
  return n
end

-- An operand without suffixes.
function Parser:primary()
  local t = self:token() or self.fail()
  local f = (t.kind == "name" or t.text == "(") and self:try(arrow)
  if f then return f end
  if t.kind == "name" then return name(self) end
  if t.text == "function" then return lua_function(self) end
  self.i = self.i + 1
  if t.text == "[" then return list(self) end
  if t.text == "(" then return parenthesis(self) end
  if t.text == "{" then return braces(self) end
  if t.kind == "number" then return number(self, t.text) end
  if t.kind == "string" then return strings(self, t.text) end
  if t.text == "..." or t.text == "nil" or t.text == "true" or
     t.text == "false" then
    return node(t.text, LITERAL, {kind = t.kind})
  end
  self.fail()
end
