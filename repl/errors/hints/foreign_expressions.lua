-- SPDX-License-Identifier: MIT
--
-- foreign_expressions.lua - translates expressions: indices, calls and members
-- behind an operand, and operators by their ranks. What is Lua already stays as
-- it is written.

local Parser = require "nacre.foreign_parser"
require "nacre.foreign_literals"
local foreign_calls = require "nacre.foreign_calls"
local index_base = require "nacre.index_base"
local loop_variables = require "nacre.loop_variables"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local names = require "nacre.python_names"
local python_methods = require "nacre.python_methods"
local python_truth = require "nacre.python_truth"
local state = require "nacre.state"
local unknown_names = require "nacre.unknown_names"

local OPERAND <const>, LITERAL <const>, UNARY <const> =
  Parser.OPERAND, Parser.LITERAL, 12
local node, enclosed = Parser.node, Parser.enclosed

--
-- Suffixes
--
-- A part of an index: {first, last, step, slice = is it one?}
local function index_part(self)
  local part = {}
  for k = 1, 3 do
    local t = self:token() or self.fail()
    if part.twice then
    elseif t.text == "end" then part[k] = node(self:take().text, LITERAL)
    elseif t.text ~= ":" and t.text ~= "::" and t.text ~= "]" and
       t.text ~= "," then part[k] = self:expression(1) end
    if part.twice then part.twice = nil
    elseif self:take "::" then part.slice, part.twice = true, true
    elseif self:take ":" then part.slice = true
    else break end
  end
  return part
end

local function index_parts(self)
  local list, open = {}, self.i
  self.in_index = (self.in_index or 0) + 1
  repeat list[#list + 1] = index_part(self) until not self:take ","
  local close = self:expect "]"
  self.in_index = self.in_index - 1
  return list, self.text:sub(self.tokens[open - 1].to + 1, close.from - 1)
end

-- x[[0, 2]]
local function rows(self, n)
  local texts = {}
  for i, item in ipairs(n.items) do
    texts[i] = item.kind == "number" and item.text:find "^%d+$" and
               ("%d"):format(item.text + 1) or item.text
    self.found.counted = self.found.counted or texts[i] ~= item.text
  end
  return ("[nacre.tensor{%s}]"):format(table.concat(texts, ", "))
end

-- The variable of a loop that a position is made of, and how that is used.
local function loop_use(self, text)
  for name, use in pairs(self.loops) do
    if text:find("%f[%w_.]" .. name .. "%f[^%w_]") then return use, name end
  end
end

-- x[i, 0] where i is the variable of a loop, or nil
local function loop_positions(self, parts)
  local texts, some, counted = {}, false, false
  for i, part in ipairs(parts) do
    local n = part[1]
    if part.slice or not n or n.kind == "string" then return nil end
    local use = loop_use(self, n.text)
    local number = n.kind == "number" and math.tointeger(tonumber(n.text))
    some = some or use ~= nil
    texts[i] = use and loop_variables.position(n.text, use) or
               number and number >= 0 and tostring(number + 1) or n.text
    counted = counted or number
  end
  self.found.counted = self.found.counted or some and counted
  return some and (texts[2] and "[{%s}]" or "[%s]")
                    :format(table.concat(texts, ", ")) or nil
end

local makers = lexer.set "tensor as_tensor array LongTensor arange"

-- x[torch.tensor([0, 2])]: positions that are written there
local function from_one(self, n)
  local made = self.python and makers[(n.callee or ""):match "[%w_]+$"] and
               not n.text:find "\"bool\"" and not n.text:find "true"
  self.found.counted = self.found.counted or made
  return made and n.text .. " + 1" or n.text
end

-- x[i], x["key"], x[0]; `of' is what Python named, a parameter of a lambda.
local function single(self, n, space, of)
  self:settle(n)
  if n.kind == "list" then return rows(self, n) end
  local key = n.kind == "string" and n.text:match "^'([%a_][%w_]*)'$"
  if key and not lexer.keywords[key] then return "." .. key end
  local number = n.kind == "number" and math.tointeger(tonumber(n.text))
  if number == 0 then self.found.zero = true end
  if number and (self.zero or number == 0 or of) and number >= 0 then
    self.found.counted = true
    return ("[%d]"):format(number + 1)
  end
  return ("[%s%s]"):format(space, from_one(self, n))
end

-- Is a path surely no tensor?  x.shape is a table.
local function is_other_value(self, n)
  local v = n.path and self.value(n.path)
  local owner, field = (n.path or ""):match "^(.*)%.([%a_][%w_]*)$"
  local object = v == nil and owner and self.value(owner)
  if istensor(object) then
    local ok, value = pcall(function() return object[field] end)
    v = ok and value or nil
  end
  return v ~= nil and not istensor(v)
end

-- x[i:j], x[:, k]: {{i + 1, j}}, {{}, k + 1}
local function variable_parts(self, parts, inside)
  local texts = {}
  if not inside:find "[%a_%[]" then self.fail() end -- x[3:1], of numbers alone
  for i, part in ipairs(parts) do
    local first, last = part[1], part[2]
    if part[3] or first and first.text == "end" then self.fail() end
    local text = first and first.text
    if first and first.kind == "list" then
      text = rows(self, first):sub(2, -2)
    elseif first and first.text == "..." then self.fail()
    elseif first and first.callee == "range" then
      local args = {}
      for k, item in ipairs(first.list) do args[k] = item.node.text end
      text = ("nacre.arange(%s) + 1"):format(table.concat(args, ", "))
    elseif first then
      local n = first.kind == "number" and math.tointeger(tonumber(text))
      text = n and (n < 0 and text or tostring(n + 1)) or
             loop_variables.position(text, loop_use(self, text) or
                                           "value")
    end
    if part.slice then
      text = not first and not last and "{}" or
             ("{%s, %s}"):format(text or "1", last and last.text or "-1")
    end
    texts[i] = text
  end
  self.found.counted = true
  return "[{" .. table.concat(texts, ", ") .. "}]"
end

-- Are there lists among the parts: x[range(n), target], x[[0, 2], [1, 3]]?
local function has_lists(parts)
  for _, part in ipairs(parts) do
    local n = part[1]
    if n and (n.callee == "range" or n.kind == "list") then return true end
  end
end

-- Is this a table without metatable, whose keys are no tensors?
local function is_list(self, owner)
  local v = owner.path and self.value(owner.path)
  return owner.gives == "list" or type(v) == "table" and
         debug.getmetatable(v) == nil
end

-- Is this surely a table with other keys than 1, 2, ...?
local function is_dictionary(self, owner)
  local v = owner.path and self.value(owner.path)
  return type(v) == "table" and debug.getmetatable(v) == nil and
         rawlen(v) == 0 and next(v) ~= nil
end

local function subscript(self, owner)
  local first = self:token()
  local parts, inside = index_parts(self)
  local selected = owner.results and #parts == 1 and not parts[1].slice and
                   foreign_calls.result(owner, parts[1][1] and parts[1][1].text)
  if selected then return node(selected, OPERAND, {tensor = true}) end
  local part = #parts == 1 and parts[1]
  if owner.path == "os.environ" and part and part[1] then
    self.found.python = true
    return node(("os.getenv(%s)"):format(part[1].text), nil,
                {kind = "environment"})
  end
  local slice = part and python_methods.slice(self, owner, part)
  if slice then return slice end
  local text = not is_dictionary(self, owner) and
               loop_positions(self, parts) or nil
  if text then
  elseif inside:find "^%s*None%s*$" or inside:find "^%s*%a+%.newaxis%s*$" then
    text = ":unsqueeze(1)"
  elseif #parts == 1 and not parts[1].slice and parts[1][1] and
     parts[1][1].text ~= "end" then
    local key = parts[1][1]
    if key.tensor and is_list(self, owner) then -- classes[y:argmax(1)]
      key.text = Parser.number_of(key, self.value)
    end
    text = single(self, key, first.space, self.bound[owner.path])
  elseif is_other_value(self, owner) then self.fail()
  elseif has_lists(parts) then text = variable_parts(self, parts, inside)
  else
    local counted, ambiguous
    text, counted, ambiguous = index_base.index(
      inside:gsub("%f[%w_]%a+%.newaxis%f[^%w_]", "None"),
      {julia = self.julia, python = self.python or state.python})
    text = text or variable_parts(self, parts, inside)
    self.found.counted = self.found.counted or counted
    self.found.ambiguous = self.found.ambiguous or ambiguous
  end
  return node(enclosed(owner) .. text, OPERAND,
              {tensor = owner.tensor and text:find '^%[".*:' ~= nil,
               path = owner.path and text:find "^%[%d+%]$" and
                      owner.path .. text})
end

-- A call without parentheses, f{1, 2} or f"x".
local function bare_call(self, callee)
  local space = self:token().space
  return node(callee.text .. space .. self:primary().text)
end

-- x.shape, x.sum(1), x.max(1).values
local function member(self, owner)
  local t = self:token() or self.fail()
  if t.text == "(" then                 -- Julia's sin.(x)
    local known = owner.path and self.value(owner.path) == nil and
                  unknown_names.elsewhere(owner.path)
    return self:call(known and node(known, OPERAND, {path = known}) or owner)
  end
  if t.kind ~= "name" and t.kind ~= "keyword" then self.fail() end
  self:settle(owner)
  self.i = self.i + 1
  if self:at "(" then
    self.i = self.i + 1
    return foreign_calls.method(self, owner, ".", t.text)
  elseif (self:at "{" or self:token() and self:token().kind == "string") and
         foreign_calls.is_method(self, owner, t.text) then
    return bare_call(self, node(enclosed(owner) .. ":" .. t.text))
  end
  if owner.results then
    local text = foreign_calls.result(owner, t.text)
    if text then return node(text, OPERAND, {tensor = true}) end
  end
  if lexer.keywords[t.text] then self.fail() end
  if owner.field == "grad_fn" then foreign_calls.say(self, t.text) end
  if t.text == "__name__" and owner.callee == "type" and owner.list[1] then
    local x = owner.list[1].node
    local v = x.path and self.value(x.path)
    return (x.kind or v ~= nil and type(v) ~= "table") and owner or
           node(enclosed(x) .. ".__name")
  end
  if t.text == "__class__" and self:take "." then
    self:expect "__name__"
    return node(enclosed(owner) .. ".__name")
  end
  local path = owner.path and owner.path .. "." .. t.text
  local constant = names.constants[path]
  if constant and self.value(path) == nil then
    self.found.python = true
    return node(constant, LITERAL, {kind = constant:find '^"' and "string"})
  end
  local fields = t.text == "T" or t.text == "grad" or t.text == "data"
  return node(enclosed(owner) .. "." .. t.text, OPERAND,
              {path = path, tensor = istensor(path and self.value(path)) or
                                     fields and owner.tensor, owner = owner,
               field = t.text})
end

Parser.arguments, Parser.builtin = foreign_calls.arguments,
  foreign_calls.builtin

function Parser:call(callee)
  self:expect "("
  return foreign_calls.call(self, callee)
end

-- x:sum(1): Is the colon one of a method, not of a slice?
local function is_method(self)
  local name, open = self:token(1), self:token(2)
  if not name or name.space ~= "" or not open or
     name.kind ~= "name" and name.kind ~= "keyword" then return false end
  return (open.text == "(" or open.text == "{" or open.kind == "string") and
         ((self.in_index or 0) == 0 or
          string[name.text] ~= nil or
          (package.loaded.nacre or _G.nacre)._methods[name.text] ~= nil)
end

-- One suffix after n; nil if there is none.
local function suffix(self, n)
  local t = self:token()
  if not t then return nil end
  local compared = n.inner and n.inner.equality
  if compared and (t.text == "." or t.text == ":") then n = compared() end
  if t.text == "." then
    self.i = self.i + 1
    return member(self, n)
  elseif n.make and (t.text == "[" or t.text == "(") then
    self:settle(n)
    return suffix(self, n)
  elseif t.text == ":" and is_method(self) then
    self.i = self.i + 2
    if self:take "(" then
      return foreign_calls.method(self, n, ":", self:token(-2).text)
    end
    return bare_call(self, node(enclosed(n) .. ":" .. self:token(-1).text))
  elseif t.text == "[" and (n.rank == OPERAND or t.space == "") then
    self.i = self.i + 1
    return subscript(self, n)
  elseif t.text == "(" and n.rank == OPERAND then return self:call(n)
  elseif n.rank == OPERAND and n.path and (t.kind == "string" or
         t.text == "{" and (not self.in_condition or t.space == "")) then
    return bare_call(self, n)
  end
end

function Parser:operand()
  local n = self:primary()
  repeat
    local more = suffix(self, n)
    n = more or n
  until not more
  return n
end

--
-- Operators
--
local operators = {}

-- Operators of one rank, and Lua's spelling if theirs is another.
local function define(rank, words, spelled, right)
  for word in words:gmatch "%S+" do
    operators[word] = {rank = rank, spelled = spelled or word, right = right}
  end
end
define(1, "or")       define(1, "||", "or")
define(2, "and")      define(2, "&&", "and")
define(3, "< > <= >= == ~=")
define(3, "in")
define(3, "=== is", "==") define(3, "!= !== <>", "~=")
define(4, "|")        define(5, "~")        define(6, "&")
define(7, "<< >>")    define(9, "..", nil, true)
define(10, "+ -")     define(11, "* / // %")
define(11, "@ \\")    define(11, ".*", "*") define(11, "./", "/")
define(14, "^", nil, true)
define(14, "** .^", "^", true)

local compares = {["=="] = "eq", ["~="] = "ne", ["<"] = "lt", [">"] = "gt",
                  ["<="] = "le", [">="] = "ge"}
local mirrored = {lt = "gt", gt = "lt", le = "ge", ge = "le", eq = "eq",
                  ne = "ne"}

-- x == y of two tensors, or of a tensor and a number
local function comparison(self, op, a, b)
  local name = compares[op]
  if a.kind == "number" or a.fixed then a, b, name = b, a, mirrored[name] end
  local v = a.path and self.value(a.path)
  local several = istensor(v) and v:numel() ~= 1
  return node(("%s:%s(%s)"):format(enclosed(a), name, b.text), OPERAND,
              {tensor = true, translated = true,
               compared = several and ":all():item()" or ":item()"})
end

-- What %d takes for a number that may have a fraction, which Python cuts off.
local function whole(n, form, text, v)
  local fraction = math.type(v) == "float" or
                   n.text:find "[^/]/[^/]" and not n.path
  return form == "d" and fraction and ("math.floor(%s)"):format(text) or text
end

-- "a" + x, "%d" % x, x @ y, a \ b: what is not an operator in Lua, or nil
local function rewritten(self, op, a, b)
  local made = python_methods.operator(self, op, a, b)
  if made then return made
  elseif op == "@" then
    if a.kind == "number" then self.fail() end
    return node(("%s:matmul(%s)"):format(enclosed(a), b.text), OPERAND,
                {tensor = true})
  elseif op == "\\" then
    return node(("nacre.linalg.solve(%s, %s)"):format(a.text, b.text))
  elseif op == "+" and (python_methods.is_text(self, a) or
                        python_methods.is_text(self, b)) then
    local function text(n)
      return n.tensor and "tostring(" .. n.text .. ")" or
             n.rank < 9 and "(" .. n.text .. ")" or n.text
    end
    return node(("%s .. %s"):format(text(a), text(b)), 9, {gives = "text"})
  elseif op == "%" and a.kind == "string" and a.text:find "%%" then
    local args, forms = {}, a.text:gsub("%%%%", ""):gmatch "%%[-+ #0-9.]*(%a)"
    for i, n in ipairs(b.kind == "tuple" and b.items or {b}) do
      local v = n.path and self.value(n.path)
      args[i] = istensor(v) and v:numel() ~= 1 and "..." or
                whole(n, forms(), Parser.number_of(self:settle(n), self.value),
                      v)
    end
    return node(("(%s):format(%s)"):format(a.text, table.concat(args, ", ")))
  end
end

-- x == 1 and y == 2 of tensors: elements in a condition, else of each element
local function logical(self, op, a, b)
  if not a.compared and not b.compared then return nil end
  if self.in_condition then
    for _, n in ipairs {a, b} do
      if n.compared then n.text, n.compared = n.text .. n.compared, nil end
    end
    return nil
  end
  if not a.tensor or not b.tensor then self.fail() end
  return node(("%s:logical_%s(%s)"):format(enclosed(a), op, b.text), OPERAND,
              {tensor = true})
end

local orders = lexer.set "< > <= >="

-- 1 < n < 10, of which Lua has only two
local function between(t, rule, a, b)
  if not a.right or not orders[rule.spelled] then return nil end
  return node(("%s and %s %s %s"):format(a.text, a.right.text, t.text, b.text),
              2)
end

local function binary(self, t, rule, a, b, space)
  local op = rule.spelled
  self:settle(a)
  if op == "in" then
    return python_methods.contains(self, a, b, t.text == "not") or self.fail()
  end
  self:settle(b)
  local chain = between(t, rule, a, b)
  if chain then return chain end
  local made = (op == "and" or op == "or") and logical(self, op, a, b) or
               (op == "==" or op == "~=") and t.text ~= "is" and
               python_methods.equal(self, op, a, b) or
               rewritten(self, op, a, b)
  if made then return made end
  if compares[op] and t.text ~= "is" and (a.tensor or b.tensor) and
     a.text ~= "nil" and b.text ~= "nil" then return comparison(self, op, a, b)
  end
  local x = a.form and enclosed(a) or a.text
  local y = b.form and enclosed(b) or b.text
  local joint = t.space .. op .. space
  local both = (op == "and" or op == "or") and {a, b, joint = joint} or nil
  return node(x .. joint .. y, rule.rank,
              {both = both, equality = compares[op] and function()
                 return comparison(self, op, a, b)
               end, right = orders[op] and b,
               tensor = rule.rank > 3 and (a.tensor or b.tensor)})
end

local unaries = {["-"] = "-", ["#"] = "#", ["~"] = "~", ["not"] = "not ",
                 ["!"] = "not "}

-- Does the line begin with a condition of Python?
local function is_python_head(text)
  return text:find "^%s*[iwe]%l+%s.*:" and
         not text:find "%f[%w]then%f[%W]" and not text:find "%f[%w]do%f[%W]"
end

local function unary(self)
  local t = self:token() or self.fail()
  local sign = unaries[t.text]
  if not sign or t.kind == "string" then return self:operand() end
  self.i = self.i + 1
  if t.text == "not" and is_python_head(self.text) then
    local n = self:settle(self:expression(3))     -- not x > 6
    if n.compared then n.text, n.compared = n.text .. n.compared, nil end
    return node("not " .. (n.rank < UNARY and enclosed(n) or n.text), UNARY,
                {negates = n})
  end
  local n = self:settle(self:expression(UNARY))
  return node(sign .. n.text, UNARY,
              {negates = sign == "not " and n or nil,
               tensor = sign == "-" and n.tensor,
               kind = sign == "-" and n.kind == "number" and "number" or nil})
end

-- The operator that comes next, if it binds at least so strongly.
local function next_operator(self, min)
  local t = self:token()
  local rule = t and t.kind ~= "string" and operators[t.text]
  if t and t.text == "not" and self:at("in", 1) then rule = operators["in"] end
  if t and t.text == "is" and t.space == "" then rule = nil end
  return rule and rule.rank >= min and rule, t
end

-- y if c else z, c ? y : z
local function conditional(self, n)
  local c, y, z
  if self:take "if" then
    c, y = self:expression(1), n
    if not self:take "else" then self.fail() end
    self.found.python = true
    c = python_truth.of(self, self:settle(c))
  else
    self:expect "?"
    c, y = n, self:expression()
    self:expect ":"
  end
  z = self:expression()
  self:settle(c)
  self:settle(y)
  self:settle(z)
  local devices = y.kind == "string" or y.text:find "[dD]evice" or
                  y.text:find "accelerator"
  if devices and (c.text:find "cuda%.is_available" or
                  c.text:find "accelerator%.is_available") then
    return node 'nacre.device "auto"'
  end
  local test = c.rank < 2 and "(" .. c.text .. ")" or
               c.text .. (c.compared or "")
  local function part(x) return x.rank < 2 and enclosed(x) or x.text end
  return node(("%s and %s or %s"):format(test, part(y), z.text), 1)
end

-- An expression whose operators bind at least as strongly as `min', by default
-- any, with a condition behind it.
function Parser:expression(min)
  local n = unary(self)
  local rule, t = next_operator(self, min or 1)
  while rule do
    self.i = self.i + 1
    local no = t.text == "is" and self:take "not"
    if t.text == "not" then self:expect "in" end
    local space = self:token() and self:token().space or self.fail()
    local right = self:expression(rule.right and rule.rank or rule.rank + 1)
    n = binary(self, t, no and operators["!="] or rule, n, right, space)
    rule, t = next_operator(self, min or 1)
  end
  if not min and (self:at "if" or self:at "?") then
    return self:try(conditional, n) or n
  end
  return n
end

-- What a loop or a comprehension goes through; also Julia's 1:3.
function Parser:range_or_expression()
  local n = self:expression(1)
  if not self:at ":" or self:token(1) == nil or self:token().space ~= "" or
     self:token(1).space ~= "" then return n end
  self.i = self.i + 1
  return node("", 0, {kind = "range", first = n, last = self:expression(1)})
end

-- A condition: a tensor of one element is the element.
function Parser:condition()
  local outer = self.in_condition
  self.in_condition = true
  local n = self:settle(self:expression(1))
  self.in_condition = outer
  local single = n.text:find ":all%(%)$" or n.text:find ":any%(%)$"
  n.text = n.text .. (n.compared or single and ":item()" or "")
  return n
end

-- Does the operand at token i call a method of it through a dot?
local function calls_through_dot(p, i)
  local t, before = p.tokens[i], p.tokens[i - 1]
  if t.kind ~= "name" and t.text ~= "(" or
     before and (before.text == "." or before.text == ":") then return nil end
  p.i, p.found = i, {bound = {}, kinds = {}}
  local n = p:try(p.operand)
  if n and n.text == "" then return nil end
  for _, dot in ipairs(n and p.found.dots or {}) do
    if dot.owner:sub(1, #t.text) == t.text then return n.text end
  end
end

-- Calls each(text, dots, counted, found) for the operands of a line that call
-- methods through dots, until it gives true: the operand with colons, its
-- calls, the operand with dims counted from 1, and what was found in that.
function Parser.dotted(line, value, each)
  if #line > 2000 or not line:find(".", 1, true) then return nil end
  local p = Parser.new(line, value, {})
  local q = p and Parser.new(line, value, {python = true})
  for i = 1, p and #p.tokens or 0 do
    local text = calls_through_dot(p, i)
    if text and each(text, p.found.dots, calls_through_dot(q, i), q.found) then
      return true
    end
  end
end

return Parser
