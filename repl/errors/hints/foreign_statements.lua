-- SPDX-License-Identifier: MIT
--
-- foreign_statements.lua - translates statements of Python and other languages,
-- and the expressions in those of Lua: assignments, conditions, loops. Those
-- that define something are in foreign_definitions.lua.

local Parser = require "nacre.foreign_expressions"
local foreign_definitions = require "nacre.foreign_definitions"
local foreign_loops = require "nacre.foreign_loops"
local index_base = require "nacre.index_base"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local python_methods = require "nacre.python_methods"
local python_truth = require "nacre.python_truth"
local state = require "nacre.state"

local statements = {}

-- Statements up to one of the words `stops', as a text.
function Parser:block(stops)
  local parts, mark = {}, ""
  while self:token() and not stops[self:token().text] do
    local text = self:statement()
    if text ~= "" then parts[#parts + 1] = (parts[1] and mark or "") .. text end
    mark = self:take ";" and "; " or self.after_colon and "; " or " "
  end
  return table.concat(parts)
end

local ends = lexer.set "end else elseif elif until"
local closing = lexer.set "}"
local block_end = lexer.set "\2"
local python_ends = lexer.set "else elif except finally"

-- The block behind the head of a statement, of which the line may have no end;
-- and how it is closed, " end" or "".
function Parser:body()
  local t = self:take() or self.fail()
  local outer = self.after_colon
  self.after_colon, self.depth = t.text == ":", (self.depth or 0) + 1
  local text, close = "...", " end"
  if t.text == ":" and self:take "\1" then      -- of several lines
    self.found.python, self.found.zero, self.after_colon = true, true, false
    text = self:block(block_end)
    self:expect "\2"
  elseif t.text == ":" then
    self.found.python = true
    if self:token() then text = self:block(python_ends) end
  elseif t.text == "{" then
    text = self:block(closing)
    self:expect "}"
  elseif t.text == "then" or t.text == "do" then
    text = self:block(ends)
    close = self:at "end" and " end" or ""
  else self.fail() end
  self.after_colon, self.depth = outer, self.depth - 1
  return text, close, t.text
end

-- The body of a loop, at the end of which is what Lua continues at.
local function loop_body(self)
  local outer = self.continues
  self.continues = false
  local text, close, mark = self:body()
  if self.continues then text = text .. "; ::continue::" end
  self.continues = outer
  return text, close, mark
end

local function joined(text, body)
  return body == "" and text or text .. " " .. body
end

-- A condition of Lua, or of Python before its colon.
local function condition(self)
  local n = self:condition()
  return self:at ":" and python_truth.of(self, n) or n
end

-- A condition before which nothing may stand: that would be computed once.
local function repeated_condition(self)
  local n, first = self:apart(condition)
  return first == "" and n.text or self.fail()
end

local branches = {["elif"] = "elseif", ["elsif"] = "elseif",
                  ["elseif"] = "elseif"}

-- elif c: f(), else: f(), of which those of Lua have no colon; nil if there is
-- none. Also how it is closed.
local function branch(self, mark)
  local t = self:token()
  local word = t and (branches[t.text] or t.text == "else" and "else")
  if not word then return nil end
  self:take()
  local head = word
  if word == "elseif" then
    head = ("elseif %s then"):format(repeated_condition(self))
  elseif mark == "then" then
    local text = self:block(ends)
    return joined(head, text), self:at "end" and " end" or ""
  end
  local text, close = self:body()
  return joined(head, text), close
end

-- if c: f() elif d: g() else: h()
local function conditional(self)
  local word = self:take().text
  local head = "if ... then ... else"
  if word == "while" then
    head = ("while %s do"):format(repeated_condition(self))
  elseif word ~= "else" then
    head = ("if %s then"):format(condition(self).text)
  end
  local text, close, mark = (word == "while" and loop_body or self.body)(self)
  local result = joined(head, text)
  local more, ending = branch(self, mark)
  while more do
    result, close = result .. " " .. more, ending
    more, ending = branch(self, mark)
  end
  if mark == "then" or mark == "do" then self:take "end" end
  return result .. close
end

-- The head of "for i = 1, 3" or Julia's "for i = 1:3".
local function numeric(self)
  local name = self:name()
  self:expect "="
  local n = self:range_or_expression()
  if n.kind == "range" then return foreign_loops.head(self, {name}, n) end
  local text = name .. " = " .. n.text
  while self:take "," do text = text .. ", " .. self:expression(1).text end
  return {names = {name}, text = text}
end

-- The head of "for x in list", the words of Lua as they are.
local function generic(self)
  local names = self:names()
  self:expect "in"
  local n = self:range_or_expression()
  local lua = self:at "do" or self:at ","
  local v = n.path and self.value(n.path)
  local list = type(v) == "table" and debug.getmetatable(v) == nil
  if not lua or n.text == "" or n.kind == "list" or list then
    return foreign_loops.head(self, names, n)
  end
  local text = table.concat(names, ", ") .. " in " .. n.text
  while self:take "," do text = text .. ", " .. self:expression(1).text end
  return {names = names, text = text}
end

local function for_loop(self)
  self:take()
  local head = self:at("=", 1) and numeric(self) or generic(self)
  if head.text:find "parameters%(%)$" or head.text:find "buffers%(%)$" then
    self.tensors[head.names[#head.names]] = true
  end
  if not self:token() then return foreign_loops.loop(self, head, "...") end
  foreign_loops.pack_batch(self, head)
  if self:at ":" then
    for _, name in ipairs(head.names) do self.found.bound[name] = true end
  end
  local text, close, mark = loop_body(self)
  if mark == "do" then self:take "end" end
  text = foreign_loops.loop(self, head, text)
  return (close ~= "" and text or text:gsub(" end$", "")):gsub(" +end$", " end")
end

-- function f(a, x=1) ... end
local function lua_function(self)
  self:take()
  local name = self:name()
  while self:at "." or self:at ":" do
    name = name .. self:take().text .. self:name()
  end
  self:expect "("
  local params, defaults = foreign_definitions.parameters(self, ")")
  local text, close = nil, ""
  if self:at "{" then text, close = self:body()
  else
    text = self:block(ends)
    if self:take "end" then close = " end" end
  end
  return joined(("function %s(%s)"):format(name, params),
                joined(defaults, text):gsub("^ ", "")) .. close
end

--
-- Assignments
--
local inplace = {["+"] = "add_", ["-"] = "sub_", ["*"] = "mul_",
                 ["/"] = "div_"}

-- x += y
local function compound(self, x)
  local spelled = self:take().text
  local op = spelled:sub(1, -2):gsub("%*%*", "^")
  local y = self:settle(self:expression())
  self.enclosed(y)
  self.found.compound = spelled
  local text = op == "+" and python_methods.extended(self, x, y)
  if text then return text end
  if op == "+" and python_methods.is_text(self, y) then op = ".." end
  local method = inplace[op]
  if method and x.field == "data" and x.owner.tensor then
    return ("nacre.no_grad(function() %s:%s(%s) end)"):format(x.owner.text,
                                                             method, y.text)
  end
  local tight = (op == "+" or op == "..") and y.rank < 9 or
                op ~= "+" and op ~= ".." and y.rank < 13
  local v = x.path and self.value(x.path)
  local into = method and ("%s:%s(%s)"):format(x.text, method, y.text)
  local known = istensor(v) or self.tensors[x.text] or
                self.kinds[x.text] == "tensor" or x.tensor and x.path
  if into and known and x.text:find "^[%w_.]+$" then
    self.found.another = ("%s = %s %s %s"):format(x.text, x.text, op,
      tight and "(" .. y.text .. ")" or y.text)
    return into
  elseif into and v == nil and x.text:find "^[%w_]+$" then
    self.found.inplace = into
  end
  return ("%s = %s %s %s"):format(x.text, x.text, op,
                                  tight and "(" .. y.text .. ")" or y.text)
end

local function texts_of(list)
  local texts = {}
  for i, n in ipairs(list) do
    if n.make then n.parser:settle(n) end
    if n.text == "" then Parser.fail() end
    texts[i] = (i > 1 and "," .. n.space or "") .. n.text
  end
  return table.concat(texts)
end

function Parser:expressions()
  local list = {}
  repeat
    if list[1] and self:at "=" then            -- x, = [1]
      list.first = true
      break
    end
    local space = self:token() and self:token().space
    local star = self:take "*"
    local n = self:expression()
    n.space = space
    list[#list + 1] = n
    list.rest = star and #list or list.rest
  until not self:take ","
  return list
end

-- f(x) = x + 1 of Julia, x(1, 2) = 5 of MATLAB
local function assigned_call(self, x)
  local body = self:settle(self:expression())
  local v = self.value(x.callee)
  local args, named = {}, true
  for i, item in ipairs(x.list) do
    args[i] = (i > 1 and item.space or "") .. item.node.text
    named = named and item.node.path == item.node.text
  end
  local text = table.concat(args, ",")
  if named and (v == nil or type(v) == "function") then
    return ("function %s(%s) return %s end"):format(x.callee, text, body.text)
  end
  if not args[1] or type(v) == "function" then self.fail() end
  return (args[2] and "%s[{%s}] = %s" or "%s[%s] = %s"):format(x.callee, text,
                                                              body.text)
end

-- out, (h, c) = lstm(x, (h, c)): the state is one table.
local function with_state(list, right)
  for i, n in ipairs(list) do
    if n.kind == "tuple" then
      local parts = n.text:sub(2, -2)
      list[i] = {text = "state", space = n.space}
      local at, stop = right:find(n.text, 1, true)
      if at then right = right:sub(1, at - 1) .. "state" ..
                         right:sub(stop + 1) end
      return ("%s = %s; %s = table.unpack(state)"):format(texts_of(list), right,
                                                          parts)
    end
  end
end

-- Is this one list, which Python unpacks: x.shape, x:size(), x:split(2)?
local function is_list(n)
  return n.many or n.field == "shape" or n.text:find ":size%(%)$"
end

-- a = b = 1: `chain' has the lists of targets.
local function chained(chain, n)
  local names = {}
  for i, part in ipairs(chain) do
    names[i] = part[2] and Parser.fail() or part[1].text
  end
  return ("%s = %s"):format(table.concat(names, ", "),
                            n.text .. (", " .. n.text):rep(#names - 1))
end

-- x, = [1]; first, *rest = numbers
local function unpacked(self, list, n)
  local of = self.enclosed(n)
  if list.first and not list[2] then
    return ("%s = %s[1]"):format(list[1].text, of)
  end
  local parts = {}
  if list.rest ~= #list then self.fail() end
  for i, name in ipairs(list) do
    parts[i] = i < #list and ("%s = %s[%d]"):format(name.text, of, i) or
      ("%s = table.move(%s, %d, #%s, 1, {})"):format(name.text, of, i, of)
  end
  return table.concat(parts, "; ")
end

-- x = [f(y) for y in z]: what makes the list, with x for the list unless that
-- is read, too.
local function made_there(self, x, n, from)
  if not x.text:find "^[%a_][%w_]*$" then return nil end
  for i = from, self.i - 1 do
    if self.tokens[i].text == x.text then return nil end
  end
  local text = n.make(x.text)
  return text:find "%f[%w]local%f[%W]" and ("do %s end"):format(text) or text
end

local function assignment(self, list)
  local equals = self:take()
  local chain = {list}
  if list[1].callee and not list[2] then return assigned_call(self, list[1]) end
  local space = self:token() and self:token().space or self.fail()
  local from = self.i
  local right = self:expressions()
  while self:take "=" do
    chain[#chain + 1] = right
    right = self:expressions()
  end
  local n = right[1]
  if chain[2] then return chained(chain, n) end
  if (n.callee or ""):find "%f[%w_]%u[%w_]*$" then -- s = Stack(): s.push(2)
    self.found.bound[list[1].text] = true
  end
  local kind = n.gives or (n.kind == "list" or n.kind == "tuple") and "list" or
               n.kind == "string" and "text" or n.tensor and "tensor" or false
  local before = self.found.kinds[list[1].text]
  self.found.kinds[list[1].text] = (before == nil or before == kind) and kind
  if list[1].kind == "environment" then
    self.found.said = "the environment is set before nacre starts: " ..
                      "NAME=value nacre"
    self.fail()
  end
  if n.first_batch then
    return foreign_loops.first_batch(self, list, n.first_batch)
  end
  if list.first or list.rest then
    return unpacked(self, list, self:settle(n))
  end
  if n.make and not right[2] and not list[2] then
    local text = made_there(self, list[1], n, from)
    if text then return text end
  end
  local one = list[2] and not right[2]
  local unpacks = one and (n.make or n.gives == "list" or is_list(n) or
                          self.kinds[n.path or ""] == "list")
  if one and (n.kind == "tuple" or n.kind == "list" and n.items) then
    right = n.items
    for i, item in ipairs(right) do item.space = i > 1 and " " or "" end
  end
  local text = texts_of(right)
  local stated = with_state(list, text)
  if stated then return stated end
  if unpacks then
    text = ("table.unpack(%s)"):format(text)
  end
  return texts_of(list) .. equals.space .. "=" .. space .. text
end

-- x: int = 5: goes on to the "="; nil if that is something else.
function Parser:at_annotation()
  return self:try(function(p)
    p:take ":"
    p:expression(1)
    return p:at "=" or p.fail()
  end)
end

local function simple(self)
  local list = self:expressions()
  local t = self:token()
  if t and t.text == ":" and not list[2] and list[1].path and
     self:at_annotation() then t = self:token() end
  if t and (t.text == "=" or t.text == ":=") then
    return assignment(self, list)
  elseif t and t.text:find "^[-+*/%%^.]+=$" and not list[2] then
    return compound(self, list[1])
  elseif t and t.text == "++" then
    self:take()
    self.found.compound = "++"
    return ("%s = %s + 1"):format(list[1].text, list[1].text)
  end
  if list[1].kind == "loop" and not list[2] then
    return foreign_loops.alone(self, list[1])
  end
  if t and t.text == ":" and t.space == "" and list[1].kind == "number" then
    self:take()
    local last = self:expression()
    local n = math.tointeger(tonumber(last.text)) or self.fail()
    return ("nacre.arange(%s, %d)"):format(list[1].text, n + 1)
  end
  return texts_of(list)
end

--
-- Statements that begin with a word
--
local function lua_word(self) return self:take().text end

statements["if"], statements["while"], statements["else"] =
  conditional, conditional, conditional
statements.elif, statements.elsif = conditional, conditional
statements["for"] = for_loop
statements["break"] = lua_word
statements["function"] = lua_function

statements["do"] = function(self)
  local text, close = self:body()
  self:take "end"
  return joined("do", text) .. close
end

statements["repeat"] = function(self)
  self:take()
  local text = self:block(ends)
  self:expect "until"
  return ("repeat %s until %s"):format(text, repeated_condition(self))
end

statements["return"] = function(self)
  self:take()
  local t = self:token()
  if not t or ends[t.text] or t.text == ";" or t.text == "}" then
    return "return"
  end
  return "return " .. texts_of(self:expressions())
end

statements["local"] = function(self)
  self:take()
  return "local " .. self:statement()
end

statements.let, statements.var, statements.const = statements["local"],
  statements["local"], statements["local"]

statements.pass = function(self)
  self:take()
  return ""
end

statements["continue"] = function(self)
  self:take()
  self.continues = true
  return "goto continue"
end

-- del words[0], del d["a"], del x
statements.del = function(self)
  self:take()
  local list = self:expressions()
  local text = texts_of(list)
  local of, key = text:match "^([%a_][%w_%.]*)%[(.*)%]$"
  local v = of and self.value(of)
  if not list[2] and of and not key:find '^"' and
     (self.kinds[of] == "list" or type(v) == "table" and rawlen(v) > 0) then
    return ("table.remove(%s, %s)"):format(of, key:find "^%-" and
      ("#%s%s"):format(of, key == "-1" and "" or " + 1 - " .. key:sub(2)) or
      key)
  end
  return text .. " = nil"
end

-- print x, assert x.shape == (2, 3)
function statements.print(self)
  return ("%s(%s)"):format(self:take().text, texts_of(self:expressions()))
end

function statements.assert(self)
  self:take()
  local text = self:condition().text
  local more = self:take "," and ", " .. texts_of(self:expressions()) or ""
  return ("assert(%s%s)"):format(text, more)
end

for word, translate in pairs(foreign_definitions.words) do
  statements[word] = translate
end

local kinds, marks = lexer.set "name string number", lexer.set "not - # ("

-- Does the token after a word that Lua does not know begin an operand, so that
-- the word is none of the user's?
local function begins_statement(self)
  local t, after = self:token(), self:token(1)
  if t.text == "try" then return after ~= nil and after.text == ":" end
  if t.text == "pass" or t.text == "continue" then
    return not after or after.text:find "^[;\2]$"
  end
  if t.kind == "keyword" or not after then return true end
  return after.space ~= "" and (kinds[after.kind] or marks[after.text]) and
         not (t.text == "print" and after.text == "(")
end

local function statement(self)
  local t = self:token()
  local rule = t.kind ~= "string" and statements[t.text]
  if rule and begins_statement(self) then return rule(self) end
  return simple(self)
end

-- The last statement of a line whose parts stand before it: its value is shown.
local function shown(text)
  return not text:find "^print%(" and not text:find "^io%.write%(" and
         load("return " .. text, "=", "t") and "return " .. text or text
end

function Parser:statement()
  self.found.statements = (self.found.statements or 0) + 1
  local text, first = self:apart(statement)
  if first == "" then return text end
  if (self.depth or 0) > 0 then return first .. text end
  return ("do %s%s end"):format(first, self:token() and text or shown(text))
end

--
-- Lines
--

-- Translates a line once: the text and the parser, or nil.
local function pass(line, value, known)
  local p = Parser.new(line, value, known)
  return p and p:try(p.block, {}), p
end

-- Is a text Lua, except for parts that are left out? The line may have no end.
local function is_lua(text)
  if load(text, "=", "t") then return true end
  local whole = text:gsub("if %.%.%.", "if true"):gsub(" %.%.%.", " ")
  local _, wrong = load(whole, "=", "t")
  return not wrong or load("return " .. whole, "=", "t") or
         wrong:find "<eof>$" and not wrong:find "expected near" or false
end

-- Translates a line: the text, with what is to be said of it, and what was
-- found: {compound = the operator that assigns, said = is it words?, line =
-- the text alone}; nil if
-- the line is not understood or is Lua already. value(path) is the value of a
-- path.
function statements.translate(line, value)
  if #line > 2000 then return nil end
  line = line:gsub(",%s*$", "")         -- of a table over several lines
  local text, p = pass(line, value, {})
  if not p then return nil end
  if p.found.said then
    state.python = state.python or p.found.python or
                   line:find "^%s*import%s" ~= nil or
                   line:find "^%s*from%s.*%simport%s" ~= nil
    return p.found.said, p.found
  end
  if text and (p.found.python or p.found.zero or next(p.found.bound)) then
    text, p = pass(line, value, p.found)
  end
  local list = p.tokens
  state.python = state.python or text and p.found.python
  if not text or not is_lua(text) or
     text == line:sub(list[1].from, list[#list].to) then return nil end
  local found = p.found
  found.line = text
  if found.counted then text = text .. index_base.note end
  if found.ambiguous and not found.python and not found.zero then
    text = index_base.other(text, function(known)
      return (pass(line, value, known))
    end)
  elseif found.inplace and found.statements == 1 then
    text = ("%s, or in place %s"):format(text, found.inplace)
  elseif found.another and found.statements == 1 then
    text = ("%s, or a new tensor %s"):format(text, found.another)
  end
  return text, found
end

return statements
