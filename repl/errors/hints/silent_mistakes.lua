-- SPDX-License-Identifier: MIT
--
-- silent_mistakes.lua - notes on code that is valid in Lua, raises no error
-- and is rarely intended: a tensor compared with a number by ==, tensors
-- joined by `and', a tensor as a condition, a method called through a dot on
-- another tensor, a shape assigned to several names, the second of two results
-- taken by [2]. In a session in which Python was typed also the first dim 1.
--
-- Whether an operand is a tensor is decided from the text and the session's
-- variables; nothing is run.

local expressions = require "nacre.expression_at"
local index_base = require "nacre.index_base"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local state = require "nacre.state"

local nacre = package.loaded.nacre or _G.nacre

local silent_mistakes = {}

-- The value of a path where the code stands.
local value_of

local set = lexer.set

local opens, closes = set "( { [ function do then repeat",
                      set ") } ] end until else elseif"
local compares = set "== ~= < > <= >="
-- What ends an operand of a comparison or of `and'.
local outer = set(", ; = and or not return if then elseif else while do " ..
                  "until repeat end local in for function")
local signs = set "+ - * / % ^ // & | ~ << >> .."

-- Is the value of a path, or the result of calling it, a tensor?
local function gives_tensor(f)
  local info = type(f) == "function" and nacre._info(f)
  return info and info.results:find "^tensor" ~= nil
end

local fields = set "T mT grad"

local is_tensor

-- Is the operand at the start of a text a tensor? Also the text after it.
local function first_operand(text)
  local inner, rest = text:match "^(%b())(.*)$"
  if inner then return is_tensor(inner:sub(2, -2)), rest end
  local path
  path, rest = text:match "^([%a_][%w_%.]*)(.*)$"
  if not path then return false, "" end
  local v = value_of(path)
  if istensor(v) then return true, rest end
  local owner, field = path:match "^(.*)%.(%w+)$"
  if fields[field] and istensor(value_of(owner)) then
    return true, rest
  end
  local args, more = rest:match "^%s*(%b())(.*)$"
  if not args then args, more = rest:match "^%s*(%b{})(.*)$" end
  return args and gives_tensor(lookup.value(path)) or false, more or ""
end

-- Is an operand without operators (outside brackets) a tensor?
local function chain_is_tensor(text)
  local is, rest = first_operand(text:match "^%s*(.-)%s*$")
  while is and rest:find "%S" do
    local name, more = rest:match "^%s*:%s*([%a_][%w_]*)%s*%b()(.*)$"
    if not name then
      name, more = rest:match "^%s*:%s*([%a_][%w_]*)%s*%b{}(.*)$"
    end
    local field, behind = rest:match "^%s*%.([%w_]+)(.*)$"
    if name then
      is = gives_tensor(lookup.field(nacre._methods, name))
    else
      is, more = fields[field] or false, behind or ""
    end
    rest = more
  end
  return is
end

-- Is an expression a tensor? It is if one operand of an operator is.
function is_tensor(text)
  local from, depth = 1, 0
  for _, t in ipairs(lexer.tokens(text)) do
    if opens[t.text] then depth = depth + 1 end
    if closes[t.text] then depth = depth - 1 end
    if depth == 0 and t.kind == "op" and signs[t.text] then
      if chain_is_tensor(text:sub(from, t.from - 1)) then return true end
      from = t.to + 1
    end
  end
  return chain_is_tensor(text:sub(from))
end

-- The last token of the operand after (step 1) or before (-1) tokens[i].
local function edge(tokens, i, step)
  local depth = 0
  local enters, leaves = opens, closes
  if step < 0 then enters, leaves = closes, opens end
  while tokens[i + step] do
    local t = tokens[i + step].text
    if depth == 0 and (outer[t] or compares[t]) then break end
    if enters[t] then depth = depth + 1 end
    if leaves[t] then depth = depth - 1 end
    if depth < 0 then break end
    i = i + step
  end
  return i
end

-- The operands around tokens[i], as texts.
local function operands(text, tokens, i)
  local from, to = edge(tokens, i, -1), edge(tokens, i, 1)
  if from == i or to == i then return nil end
  return text:sub(tokens[from].from, tokens[i - 1].to),
         text:sub(tokens[i + 1].from, tokens[to].to)
end

local function isnumber(text)
  return tonumber(text) ~= nil or text:find "^%-%s*[%d.]+$" ~= nil or
         math.type(value_of(text)) ~= nil and
         text:find "^[%a_][%w_%.]*$" ~= nil
end

local methods = {["=="] = "eq", ["~="] = "ne"}

-- x == 1
local function tensor_equality(text, tokens, i)
  local op = tokens[i].text
  local left, right = operands(text, tokens, i)
  if not left then return nil end
  if isnumber(left) then left, right = right, left end
  if not isnumber(right) or not is_tensor(left) then return nil end
  local x = expressions.enclosed(left)
  return ("Lua's %s of a tensor and a number is %s; %s:%s(%s) compares each " ..
          "element, %s:item() %s %s a single one"):format(op,
          op == "==" and "false" or "true", x, methods[op], right, x, op,
          right)
end

-- x and y, of tensors alone: the first is true, so it is y
local function tensor_logic(text, tokens, i)
  local op = tokens[i].text
  local left, right = operands(text, tokens, i)
  if not left or not is_tensor(left) or not is_tensor(right) then return nil end
  local name = left:match "^%s*([%a_][%w_]*)%s*$"
  if name and right:find("%f[%w_]" .. name .. "%f[^%w_]") then return nil end
  return ("Lua's %s returns one of the two tensors; %s:logical_%s(%s) works " ..
          "on each element"):format(op, expressions.enclosed(left), op, right)
end

-- if x:gt(0) then
local function tensor_condition(text, tokens, i)
  local stop = i
  while tokens[stop + 1] and tokens[stop + 1].text ~= "then" and
        tokens[stop + 1].text ~= "do" do
    stop = stop + 1
  end
  if stop == i or not tokens[stop + 1] then return nil end
  local inner = text:sub(tokens[i + 1].from, tokens[stop].to)
  if inner:find "^[%a_][%w_%.]*$" or inner:find "[=~<>]=" or
     inner:find "%f[%w_]and%f[^%w_]" or inner:find "%f[%w_]or%f[^%w_]" or
     inner:find "^not%f[^%w_]" or not is_tensor(inner) then
    return nil
  end
  return ("a tensor counts as true; %s:all():item() tests its elements")
         :format(expressions.enclosed(inner))
end

-- x.add_(y, 5): the method of x is called, and works on y
local function other_object(text, tokens, i)
  local name, open = tokens[i + 1], tokens[i + 2]
  if not name or not open or open.text ~= "(" or
     not nacre._methods[name.text] then return nil end
  local owner = expressions.ending(text:sub(1, tokens[i].from - 1))
  local args = text:match("^%b()", open.from)
  local list = args and expressions.items(args:sub(2, -2)) or {}
  local given = list[1] and list[1]:match "^%s*(.-)%s*$"
  if not owner or not is_tensor(owner) or not given or given == owner or
     not is_tensor(given) then return nil end
  return ("%s.%s%s works on %s, not on %s: a method is called with a colon, " ..
          "%s:%s%s"):format(owner, name.text, args, given, owner, owner,
                            name.text, args)
end

-- b, t = x.shape
local function list_assigned(text, tokens, i)
  local names = text:sub(1, tokens[i].from - 1):match "([%w_, ]+)$"
  local right = expressions.first(text:sub(tokens[i].to + 1))
  local x, size = (right or ""):match "^([%a_][%w_.]*)%.shape$", nil
  if not x then x, size = (right or ""):match "^([%a_][%w_.]*):size(%(%))$" end
  names = names and names:gsub("^%s*local%s", ""):match "^%s*(.-)%s*$"
  if not x or not names or not names:find(",", 1, true) or
     not istensor(value_of(x)) then return nil end
  return ("%s is one list; %s = table.unpack(%s)"):format(
    size and "size()" or "shape", names, right)
end

-- Operations that keep all dimensions: of a vector the second value may be
-- meant.
local keeps_dims = set "sort topk cummax cummin"

-- The information on the operation that a call is of, its name and arguments,
-- and the tensor that it is called with, if that is a variable.
local function called_operation(call)
  local object, name, args = call:match "^(.*):%s*([%a_][%w_]*)%s*(%b())$"
  if object then
    return is_tensor(object) and nacre._info(name), name, args, value_of(object)
  end
  name, args = call:match "^([%a_][%w_.]*)%s*(%b())$"
  local f = name and lookup.value(name)
  return type(f) == "function" and nacre._info(f), name, args,
         value_of(args and args:match "^%(%s*([%w_.]*)" or "")
end

-- x:max(2)[2]: of values and positions the values are indexed
local function values_indexed(text, tokens, i)
  local at, close = tokens[i + 1], tokens[i + 2]
  if i == 1 or tokens[i - 1].text ~= ")" or not close or close.text ~= "]" or
     at.text ~= "1" and at.text ~= "2" then return nil end
  local call = expressions.ending(text:sub(1, tokens[i].from - 1))
  local info, name, args, x = called_operation(call or "")
  if not info or not info.results:find "positions" or
     info.results:find "%[" and not args:find "[,%d]" or
     keeps_dims[info.name] and not (istensor(x) and #x.shape > 1) then
    return nil
  end
  return ("%s gives values and positions, and [%s] is an element of the " ..
          "values; v, i = %s"):format(name, at.text, call)
end

-- w[[1, 2]]: the text 1, 2, an index of one element
local function rows_as_text(text, tokens, i)
  local owner = tokens[i - 1]
  if not owner or not tokens[i].text:find "^%[%[%s*%-?%d" or
     not istensor(value_of(owner.text)) then return nil end
  local call = owner.text .. tokens[i].text
  local rows = require "nacre.foreign_statements".translate(call, value_of)
  return ("%s is a string, an index of one element; rows are %s"):format(
    tokens[i].text, rows)
end

-- The dim 1 that a call of an operation of a matrix has as a number, without
-- its name: what is said of it, or nil.
local function dim_of_call(text, at, name, args)
  local info = nacre._info(name)
  local mark = text:sub(1, at - 1):match "([.:])%s*$"
  local items = info and expressions.items(args:sub(2, -2)) or {}
  local method = mark == ":"
  local of = method and expressions.ending(text:sub(1, at - 1):match
                          "^(.-)%s*:%s*$") or items[1]
  local x = of and of:find "^%s*[%a_][%w_.]*%s*$" and
            value_of(of:match "%S+")
  if not istensor(x) or #x.shape < 2 then return nil end
  for i = method and 1 or 2, #items do
    local parameter = index_base.parameter(info, i + (method and 1 or 0))
    if items[i]:match "^%s*(.-)%s*$" == "1" and parameter and
       select(2, index_base.argument(info, parameter, "1")) then
      return ("dims count from 1: %s along dim 1 is along Python's dim 0, " ..
              "and its dim 1 is 2 here"):format(name)
    end
  end
end

-- Once, and only where a line of Python was corrected before: softmax(x, 1).
local function first_dim(text)
  if not state.python or state.dims_noted then return nil end
  for at, name, args in text:gmatch "()([%a_][%w_]*)%s*(%b())" do
    local note = dim_of_call(text, at, name, args)
    if note then
      state.dims_noted = true
      return note
    end
  end
end

local checks = {
  ["["] = values_indexed, ["."] = other_object, ["="] = list_assigned,
  ["=="] = tensor_equality, ["~="] = tensor_equality,
  ["and"] = tensor_logic, ["or"] = tensor_logic,
  ["if"] = tensor_condition, ["elseif"] = tensor_condition,
  ["while"] = tensor_condition,
}

-- The note on a line at which an error arose, where value(path) is the value of
-- a path: on a method that is called through a dot on another tensor, and on a
-- second result taken by [2]; or nil.
function silent_mistakes.note_at(line, value)
  if #line > 2000 then return nil end
  value_of = value
  local tokens = lexer.code(line)
  for i, t in ipairs(tokens) do
    local look = t.text == "." and other_object or
                 t.text == "[" and values_indexed
    local note = look and t.kind ~= "string" and look(line, tokens, i)
    if note then return note end
  end
end

-- The note on a block, or nil.
function silent_mistakes.note(text)
  value_of = require "nacre.stack_frames".value_of
  local dims = #text <= 10000 and first_dim(text)
  if dims then return dims end
  if #text > 10000 or not (text:find "[=~]=" or text:find "%.[%w_]+%s*%(" or
     text:find "%.shape" or text:find ":size%(%)" or
     text:find "%)%s*%[%s*[12]%s*%]" or text:find "%w%[%[" or
     text:find "%f[%w_]and%f[^%w_]" or text:find "%f[%w_]or%f[^%w_]" or
     text:find "%f[%w_]if%f[^%w_]" or text:find "%f[%w_]while%f[^%w_]") then
    return nil
  end
  local tokens = lexer.code(text)
  for i, t in ipairs(tokens) do
    local look = checks[t.text]
    if t.kind == "string" then look = rows_as_text end
    local note = look and look(text, tokens, i)
    if note then return note end
  end
end

return silent_mistakes
