-- SPDX-License-Identifier: MIT
--
-- expression_at.lua - finds operands, expressions and calls in a text, which
-- need not compile.

local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"

local expressions = {}

local opens, closes = lexer.opens, lexer.closes

--
-- Code: the tokens of a text without comments, and its brackets
--
local Code = {}
Code.__index = Code

-- The code of a text; code.pair[i] is the bracket that belongs to that at i.
function expressions.read(text)
  local code = setmetatable(lexer.code(text), Code)
  local open = {}
  code.source, code.pair = text, {}
  for i, t in ipairs(code) do
    if opens[t.text] then open[#open + 1] = i
    elseif closes[t.text] and open[1] then
      local from = table.remove(open)
      code.pair[i], code.pair[from] = from, i
    end
  end
  return code
end

-- The text of the tokens from i to j.
function Code:text(i, j) return self.source:sub(self[i].from, self[j].to) end

-- Is the token at i one of these texts? A token that is not there is "".
function Code:is(i, ...)
  local text = self[i] and self[i].kind ~= "string" and self[i].text or ""
  for _, one in ipairs {...} do
    if text == one then return true end
  end
  return false
end

local function is_name(t) return t ~= nil and t.kind == "name" end

-- Can arguments or an index follow this token?
local function ends_operand(t)
  return is_name(t) or t ~= nil and (t.kind == "string" or closes[t.text])
end

-- The first token of the operand that ends with the token at i, a name or a
-- parenthesis with fields, indices and calls; or nil.
function Code:first(i)
  while self[i] do
    local from = self[i].kind == "string" and i or self.pair[i]
    if is_name(self[i]) then
      if not self:is(i - 1, ".", ":") then return i end
      i = i - 2
    elseif not from or from > i then
      return nil
    elseif ends_operand(self[from - 1]) then
      i = from - 1
    else
      return self:is(from, "(") and from or nil
    end
  end
end

-- The last token of the chain of names, calls and indices that begins at i,
-- a:t()[1].b or (a + 1):t(), which has no blanks between its parts; or nil.
function Code:last(i)
  i = is_name(self[i]) and i or self:is(i, "(") and self.pair[i] or nil
  while i do
    local part = self[i + 1]
    if not part or part.from > self[i].to + 1 then return i end
    if self:is(i + 1, ".", ":") and is_name(self[i + 2]) then i = i + 2
    elseif opens[part.text] and self.pair[i + 1] then i = self.pair[i + 1]
    else return i end
  end
end

-- The names with dots between them from the token at i on: "np.linalg.norm".
function Code:path(i)
  local last = i
  while self:is(last + 1, ".") and is_name(self[last + 2]) do
    last = last + 2
  end
  return self:text(i, last), last
end

-- The call whose name is the token at i, or nil: {name =, from =, to = its
-- positions in the text, args = "(1, 2)", mark = "." or ":", owner = what
-- stands before that, i =}. Without a mark, owner and mark are ""; owner is nil
-- if it is not an operand.
function Code:call(i)
  local open = self[i + 1]
  if not is_name(self[i]) or not open or self:is(i - 1, "function") then
    return nil
  end
  local to = open.kind == "string" and i + 1 or
             self:is(i + 1, "(", "{") and self.pair[i + 1]
  if not to then return nil end
  local marked = self:is(i - 1, ".", ":")
  local first = self:first(i)
  return {i = i, name = self[i].text,
          mark = marked and self[i - 1].text or "",
          owner = not marked and "" or first and self:text(first, i - 2) or nil,
          from = self[first or i].from, to = self[to].to,
          args = self:text(i + 1, to)}
end

-- The calls, those of a name or of its in-place form if one is given.
function Code:calls(name)
  local list = {}
  for i, t in ipairs(self) do
    if not name or t.text == name or t.text == name .. "_" then
      list[#list + 1] = self:call(i)
    end
  end
  return list
end

function expressions.calls(text, name)
  return expressions.read(text):calls(name)
end

-- The path of names on a line that begins with a name: "np.linalg.norm".
function expressions.path(line, name)
  local code = expressions.read(line)
  for i, t in ipairs(code) do
    if t.kind == "name" and t.text == name then return (code:path(i)) end
  end
  return name
end

-- What stands between `in' and `do' of a loop on a line, or nil.
function expressions.iterated(line)
  local code, from = expressions.read(line), nil
  for i in ipairs(code) do
    if code:is(i, "in") then from = i + 1 end
    if from and i > from and code:is(i, "do") then
      return code:text(from, i - 1)
    end
  end
end

-- The arguments of a call, "(a, {1, 2})", as a list of texts.
function expressions.arguments(args)
  local list = {}
  for _, item in ipairs(expressions.items(args:sub(2, -2))) do
    if item:find "%S" then list[#list + 1] = item:match "^%s*(.-)%s*$" end
  end
  return list
end

--
-- Expressions
--
-- The end of the chain that begins at position `at', which is behind it.
function expressions.chain_end(text, at)
  local code = expressions.read(text:sub(at))
  local last = code[1] and code[1].from == 1 and code:last(1)
  return last and at + code[last].to
end

-- The operand that ends (or begins) a text, or nil.
function expressions.ending(text)
  local code = expressions.read(text)
  local first = code:first(#code)
  return first and code:text(first, #code)
end

function expressions.beginning(text)
  text = text:match "^%s*(.*)$"
  local stop = expressions.chain_end(text, 1)
  return stop and text:sub(1, stop - 1), stop and text:sub(stop)
end

local cuts = lexer.set("= , ; return then do else elseif if while until in " ..
                       "local end")

-- The longest valid expression that begins a text, or nil.
function expressions.first(text)
  local depth, stop = 0, #text
  for _, t in ipairs(lexer.tokens(text)) do
    if t.kind == "comment" or depth == 0 and
       (closes[t.text] or cuts[t.text] and t.text ~= "if") then
      stop = t.from - 1
      break
    end
    depth = depth + (opens[t.text] and 1 or closes[t.text] and -1 or 0)
  end
  text = text:sub(1, stop):match "^%s*(.-)%s*$"
  return text ~= "" and load("return " .. text, "=", "t") and text or nil
end

-- The parts of a text between the commas that stand in no bracket.
function expressions.items(text)
  local list, from, depth = {}, 1, 0
  for _, t in ipairs(lexer.tokens(text)) do
    depth = depth + (opens[t.text] and 1 or closes[t.text] and -1 or 0)
    if depth == 0 and t.text == "," then
      list[#list + 1] = text:sub(from, t.from - 1)
      from = t.to + 1
    end
  end
  list[#list + 1] = text:sub(from)
  return list
end

-- Adds parentheses, except to an operand or a number.
function expressions.enclosed(text)
  local _, rest = expressions.beginning(text)
  return (rest == "" or tonumber(text)) and text or "(" .. text .. ")"
end

-- Methods of networks and optimizers that may be called on a name that is not
-- known, and names that are not objects.
local of_networks = lexer.set [[parameters named_parameters children modules
  named_children named_modules buffers state_dict load_state_dict train eval to
  zero_grad step forward apply backward item]]
local no_objects = lexer.set [[np numpy torch nacre nn optim F plt os sys math
  random time pd json string table io]]

-- Is `name' a method of what an expression gives? value(path) is the value of
-- a path. Of an object that is not known, the name decides.
function expressions.calls_method(owner, name, value)
  local methods = (package.loaded.nacre or _G.nacre)._methods
  local root = owner:match "^[%a_][%w_]*"
  local v = owner:find "^[%w_.%[%]]+$" and value(owner)
  if v ~= nil and v ~= false then return lookup.is_method(v, name) end
  if no_objects[root] and not owner:find "[)%]]$" then return false end
  if owner:find "^self%.?[%w_]*$" then return of_networks[name] or false end
  return methods[name] ~= nil or of_networks[name] or false
end

return expressions
