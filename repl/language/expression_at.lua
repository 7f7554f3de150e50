-- SPDX-License-Identifier: MIT
--
-- expression_at.lua - finds the operand or expression that ends or begins at a
-- position in a line that does not compile.

local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"

local expressions = {}

-- The end of the operand at `at': a name or a parenthesis, and its suffixes.
local function operand(text, at)
  local word, stop = text:match("^([%a_][%w_]*)()", at)
  if word and lexer.keywords[word] then return nil end
  stop = stop or text:match("^%b()()", at)
  while stop do
    local more = text:match("^%.[%a_][%w_]*()", stop) or
                 text:match("^:[%a_][%w_]*%b()()", stop) or
                 text:match("^%b()()", stop) or text:match("^%b[]()", stop)
    if not more then return stop end
    stop = more
  end
end

-- The end of the chain of names, calls and indices that starts at i:
-- a:t()[1].b, (a + 1):t()
function expressions.chain_end(text, i)
  local at = text:match("^[%a_][%w_]*()", i) or text:match("^%b()()", i)
  while at do
    local stop = text:match("^[.:][%a_][%w_]*()", at) or
                 text:match("^%b()()", at) or text:match("^%b[]()", at) or
                 text:match("^%b{}()", at)
    if not stop then return at end
    at = stop
  end
end

-- The operand that ends (or begins) a text, or nil.
function expressions.ending(text)
  if #text > 2000 then return nil end
  text = text:match "^(.-)%s*$"
  for at in text:gmatch "()[%a_(]" do
    if not text:sub(1, at - 1):find "[%w_.:]$" and
       operand(text, at) == #text + 1 then
      return text:sub(at)
    end
  end
end

function expressions.beginning(text)
  text = text:match "^%s*(.*)$"
  local stop = operand(text, 1)
  return stop and text:sub(1, stop - 1), stop and text:sub(stop)
end

local opens, closes = lexer.opens, lexer.closes
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

-- Calls each(owner, name, arguments, at) for the calls through a dot on a line:
-- "x", "sum", "(1)" of x.sum(1), and the position of the dot.
function expressions.dotted_calls(line, each)
  if #line > 2000 then return end
  local tokens = lexer.tokens(line)
  for i, t in ipairs(tokens) do
    local name, open = tokens[i + 1], tokens[i + 2]
    if t.text == "." and name and name.kind == "name" and open and
       (open.text == "(" or open.text == "{" or open.kind == "string") then
      local owner = expressions.ending(line:sub(1, t.from - 1))
      local args = open.kind == "string" and open.text or
                   line:match(open.text == "(" and "^%b()" or "^%b{}",
                              open.from)
      if owner and each(owner, name.text, args or "()", t.from) then return end
    end
  end
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
