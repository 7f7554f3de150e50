-- SPDX-License-Identifier: MIT
-- fused_kernel.lua - nacre.kernel: a fused function from formulas, in the
-- language of the table of pointwise operations (core/ops.def): assignments,
-- + - * /, numbers, and words, f(x, y). Formulas become a Lua function.

local core = ...
local fail, fuse = core.fail, core.fuse

-- Words of the table whose operation has another name.
local words = {
  absval = "abs", sgn = "sign", larger = "maximum", smaller = "minimum",
  both = "logical_and", either = "logical_or", power = "pow",
  logistic = "sigmoid", floordiv = "floor_divide", truncdiv = "trunc_divide",
  modulo = "remainder", remain = "fmod", sinpi = "_sinpi", cospi = "_cospi",
  trigamma = "_trigamma", zeta = "zeta",
}

local instead = {
  ["^"] = "power(a, b)", ["%"] = "modulo(a, b)", [">"] = "gt(a, b)",
  ["<"] = "lt(a, b)", ["~"] = "ne(a, b)", ["&"] = "both(a, b)",
  ["|"] = "either(a, b)", ["?"] = "where(condition, a, b)",
  ["="] = "eq(a, b)",
}

local function syntax_error(line, text, hint)
  fail("kernel", ("line %d: %s"):format(line, text), hint)
end

local function is_row(name)
  local info = not name:find "_$" and nacre._info(name)
  return info and info.class and info.kind ~= "reduce"
end

-- How far two words are apart: letters to insert, drop or replace.
local function distance(a, b)
  local row = {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      corner, row[j] = row[j],
                       math.min(row[j] + 1, row[j - 1] + 1, corner + cost)
    end
  end
  return row[#b]
end

local function similar(name)
  local best, found = 3, nil
  local function try(word)
    local d = distance(name, word)
    if d < best or d == best and found and word < found then
      best, found = d, word
    end
  end
  for word in pairs(words) do try(word) end
  for _, op in ipairs(core.rows()) do
    if op:sub(1, 1) ~= "_" and is_row(op) then try(op) end
  end
  return found and ("did you mean %s?"):format(found)
end

-- The operation that a word stands for. Of numbers alone it is one of a 0-d
-- tensor.
local function operation(word, line)
  local name = words[word] or word
  if word == "K" then return function(v) return v end end
  if not is_row(name) then
    syntax_error(line, ("'%s' is not a known function"):format(word),
                 similar(word))
  end
  local f = nacre[name]
  return function(first, ...)
    local tensors = nacre.is_tensor(first)
    for i = 1, select("#", ...) do
      tensors = tensors or nacre.is_tensor((select(i, ...)))
    end
    return f(tensors and first or nacre.tensor(first, {dtype = "float64"}), ...)
  end
end

-- Cuts the text into {kind, text, line}; kinds are name, number, sign and end.
local function scan(text)
  local tokens, at, line, depth = {}, 1, 1, 0
  local function add(kind, s)
    tokens[#tokens + 1] = {kind = kind, text = s, line = line}
    at = at + #s
  end
  while at <= #text do
    local c = text:sub(at, at)
    local name = text:match("^[%a_][%w_]*", at)
    local number = text:match("^%d+%.?%d*[eE][+-]?%d+", at) or
                   text:match("^%.%d+[eE][+-]?%d+", at) or
                   text:match("^%d+%.?%d*", at) or text:match("^%.%d+", at)
    local comment = text:match("^%-%-[^\n]*", at) or
                    text:match("^//[^\n]*", at)
    if comment then at = at + #comment
    elseif name then add("name", name)
    elseif number then add("number", number)
    elseif c == "\n" then
      if depth == 0 then add("end", c) else at = at + 1 end
      line = line + 1
    elseif c == ";" then add("end", c)
    elseif c:find "%s" then at = at + 1
    elseif c == "=" and text:sub(at + 1, at + 1) == "=" then
      syntax_error(line, "'==' is not part of a formula", instead["="])
    elseif ("()+-*/,="):find(c, 1, true) then
      depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
      add("sign", c)
    else
      syntax_error(line, ("'%s' is not part of a formula"):format(c),
                   instead[c])
    end
  end
  tokens[#tokens + 1] = {kind = "end", text = "", line = line}
  return tokens
end

-- The Lua variable of an operand or a result: its name, which errors say.
local function local_name(name)
  local is_free = name ~= "W" and not name:find "^v_" and load("local " .. name)
  return is_free and name or "v_" .. name
end

-- Reads formulas: {name = result, code = Lua}, in order; notes each name that
-- is read before it has a value, and the words.
local Parser = {}
Parser.__index = Parser

function Parser:peek() return self.tokens[self.at] end

function Parser:take(text)
  local t = self:peek()
  if text and t.text ~= text then
    syntax_error(t.line, ("'%s' is missing before '%s'")
             :format(text, t.kind == "end" and "the end" or t.text))
  end
  self.at = self.at + 1
  return t
end

function Parser:call(word)
  local args = {}
  self:take "("
  repeat
    args[#args + 1] = self:sum()
    local more = self:peek().text == ","
    if more then self:take "," end
  until not more
  self:take ")"
  self.words[word.text] = self.words[word.text] or
                          operation(word.text, word.line)
  return ("W.%s(%s)"):format(word.text, table.concat(args, ", "))
end

function Parser:primary()
  local t = self:take()
  if t.text == "-" then return "-" .. self:primary() end
  if t.text == "(" then
    local inner = self:sum()
    self:take ")"
    return "(" .. inner .. ")"
  end
  if t.kind == "number" then return t.text end
  if t.kind ~= "name" then
    syntax_error(t.line, ("a value is missing before '%s'")
             :format(t.kind == "end" and "the end" or t.text))
  end
  if self:peek().text == "(" then return self:call(t) end
  if not self.assigned[t.text] and not self.known[t.text] then
    if self.closed then
      syntax_error(t.line, ("'%s' has no value"):format(t.text))
    end
    self.known[t.text] = true
    self.operands[#self.operands + 1] = {name = t.text}
  end
  self.read[t.text] = true
  return local_name(t.text)
end

function Parser:chain(part, a, b)
  local code = part(self)
  while self:peek().text == a or self:peek().text == b do
    local sign = self:take().text
    code = code .. " " .. sign .. " " .. part(self)
  end
  return code
end

function Parser:product() return self:chain(self.primary, "*", "/") end
function Parser:sum() return self:chain(self.product, "+", "-") end

function Parser:formula()
  local name = self:take()
  if name.kind ~= "name" then
    syntax_error(name.line, ("a formula begins with a name, not with '%s'")
             :format(name.text), "as in y = a*b + c")
  end
  if self:peek().text ~= "=" then
    syntax_error(name.line, ("the value of '%s' is missing"):format(name.text),
             "as in y = a*b + c")
  end
  self:take "="
  local code = self:sum()
  local last = self:peek()
  if last.kind ~= "end" then
    syntax_error(last.line, ("unexpected '%s'"):format(last.text),
             instead[last.text])
  end
  if not self.assigned[name.text] then
    self.order[#self.order + 1] = name.text
  end
  self.assigned[name.text] = true
  self.read[name.text] = nil
  -- in the same line as in the text, which operations then are in
  local lines = self.lines
  self.code[#self.code + 1] = ("\n"):rep(name.line - lines) ..
                              local_name(name.text) .. " = " .. code
  self.lines = math.max(lines, name.line)
end

-- "x, y, p=2 -> z, w": operands with their defaults, and results.
local function read_header(parser, header)
  local left, right = header:match "^(.-)%->(.*)$"
  if not left then
    fail("kernel", "the first of two texts names operands and results",
         'nacre.kernel("x, y, p=2 -> z", "z = p*x + y")')
  end
  for item in left:gmatch "[^,]+" do
    local name, default = item:match "^%s*([%a_][%w_]*)%s*=?%s*(%S*)%s*$"
    if not name or default ~= "" and not tonumber(default) then
      fail("kernel", ("'%s' is not an operand")
                     :format(item:match "^%s*(.-)%s*$"))
    end
    parser.known[name] = true
    parser.operands[#parser.operands + 1] = {name = name,
                                             default = tonumber(default)}
  end
  parser.closed = true
  local results = {}
  for name in right:gmatch "[%a_][%w_]*" do results[#results + 1] = name end
  return results
end

-- The Lua text of the function, with its words as W.
local function lua_text(parser, results)
  local names, lines, own = {}, {}, {}
  for i, o in ipairs(parser.operands) do
    names[i] = local_name(o.name)
    if o.default then
      lines[#lines + 1] = ("if %s == nil then %s = %q end")
                          :format(names[i], names[i], o.default)
    end
  end
  for _, name in ipairs(parser.order) do
    if not parser.known[name] then own[#own + 1] = local_name(name) end
  end
  if own[1] then lines[#lines + 1] = "local " .. table.concat(own, ", ") end
  for i, name in ipairs(results) do
    if not parser.assigned[name] then
      fail("kernel", ("no formula gives '%s'"):format(name))
    end
    results[i] = local_name(name)
  end
  return ("local W = ... return function(%s) %s; %s return %s end")
         :format(table.concat(names, ", "), table.concat(lines, " "),
                 table.concat(parser.code, "; "), table.concat(results, ", "))
end

local Kernel = {__name = "nacre.kernel"}
Kernel.__index = Kernel

-- Fails unless each operand without a default is there, and no more, and they
-- are tensors or numbers.
local function check_operands(self, ...)
  local list, n = self.operands, select("#", ...)
  if n > #list then
    fail("kernel", ("takes %d operand%s, not %d"):format(
      #list, #list == 1 and "" or "s", n))
  end
  for i, o in ipairs(list) do
    local v = select(i, ...)
    if v ~= nil and type(v) ~= "number" and not nacre.is_tensor(v) then
      fail("kernel", ("%s must be a tensor or a number, not a %s")
                     :format(o.name, type(v)))
    elseif v == nil and not o.default then
      local names = {}
      for k, other in ipairs(list) do names[k] = other.name end
      fail("kernel", ("%s is missing: the operands are %s"):format(
        o.name, table.concat(names, ", ")))
    end
  end
end

function Kernel:__call(...)
  check_operands(self, ...)
  return self.run(...)
end

function Kernel:__tostring() return "kernel: " .. self.text end

function Kernel:explain(...)
  if getmetatable(self) ~= Kernel then
    fail("explain", "a method is called with a colon", "kernel:explain()")
  end
  if select("#", ...) > 0 then check_operands(self, ...) end
  return self.run:explain(...)
end

return function(header, text)
  if not text then header, text = nil, header end
  local parser = setmetatable(
    {tokens = scan(text), at = 1, operands = {}, known = {}, assigned = {},
     read = {}, words = {}, order = {}, code = {}, lines = 1}, Parser)
  local results = header and read_header(parser, header)
  while parser.at <= #parser.tokens do
    if parser:peek().kind == "end" then parser:take() else parser:formula() end
  end
  if not parser.order[1] then
    fail("kernel", "there is no formula", "as in y = a*b + c")
  end
  if not results then
    results = {}
    for _, name in ipairs(parser.order) do
      if not parser.read[name] then results[#results + 1] = name end
    end
  end
  local f = load(lua_text(parser, results), "=kernel")
  if not f then fail("kernel", "the formulas are too many or too long") end
  return setmetatable({run = fuse(f(parser.words)), operands = parser.operands,
                       text = text:match "^%s*(.-)%s*$"}, Kernel)
end
