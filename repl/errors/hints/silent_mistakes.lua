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
local types = require "nacre.expression_type"

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

-- Is an expression a tensor? It is if one operand of an operator is.
local function is_tensor(text)
  local from, depth = 1, 0
  local function operand(to)
    local part = text:sub(from, to)
    local t = not part:find "^%s*#" and types.of(part, value_of)
    return t and types.is_tensor(t) or false
  end
  for _, t in ipairs(lexer.tokens(text)) do
    if opens[t.text] then depth = depth + 1 end
    if closes[t.text] then depth = depth - 1 end
    if depth == 0 and t.kind == "op" and signs[t.text] then
      if operand(t.from - 1) then return true end
      from = t.to + 1
    end
  end
  return operand(#text)
end

-- A list or a dictionary of Lua.
local function is_plain(v)
  return type(v) == "table" and debug.getmetatable(v) == nil
end

local logic = set "and or not"

-- The last token of the operand after (step 1) or before (-1) code[i].
local function edge(code, i, step)
  local depth = 0
  local enters, leaves = opens, closes
  if step < 0 then enters, leaves = closes, opens end
  while code[i + step] do
    local t = code[i + step].text
    if depth == 0 and (outer[t] or compares[t]) then break end
    if enters[t] then depth = depth + 1 end
    if leaves[t] then depth = depth - 1 end
    if depth < 0 then break end
    i = i + step
  end
  return i
end

-- The operands around code[i], as texts.
local function operands(code, i)
  local from, to = edge(code, i, -1), edge(code, i, 1)
  if from == i or to == i then return nil end
  return code:text(from, i - 1), code:text(i + 1, to)
end

local function isnumber(text)
  return tonumber(text) ~= nil or text:find "^%-%s*[%d.]+$" ~= nil or
         math.type(value_of(text)) ~= nil
end

local methods = {["=="] = "eq", ["~="] = "ne"}

-- x == 1
local function tensor_equality(code, i)
  local op = code[i].text
  local left, right = operands(code, i)
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
local function tensor_logic(code, i)
  local op = code[i].text
  local left, right = operands(code, i)
  if not left or not is_tensor(left) or not is_tensor(right) then
    return nil
  end
  for _, name in ipairs(lexer.variables(right)) do
    if name == left then return nil end
  end
  return ("Lua's %s returns one of the two tensors; %s:logical_%s(%s) works " ..
          "on each element"):format(op, expressions.enclosed(left), op, right)
end

-- if x:gt(0) then
local function tensor_condition(code, i)
  local stop, plain = i, true
  while code[stop + 1] and not code:is(stop + 1, "then", "do") do
    stop = stop + 1
    local t = code[stop].text
    if compares[t] or logic[t] then return nil end
    plain = plain and (code[stop].kind == "name" or t == ".")
  end
  if plain or not code[stop + 1] or not is_tensor(code:text(i + 1, stop)) then
    return nil
  end
  return ("a tensor counts as true; %s:all():item() tests its elements")
         :format(expressions.enclosed(code:text(i + 1, stop)))
end

-- x.add_(y, 5): the method of x is called, and works on y
local function other_object(code, i)
  local call = code:is(i + 2, "(") and code:call(i + 1)
  if not call or not nacre._methods[call.name] then return nil end
  local owner, given = call.owner, expressions.arguments(call.args)[1]
  if not owner or not is_tensor(owner) or not given or given == owner or
     not is_tensor(given) then return nil end
  return ("%s.%s%s works on %s, not on %s: a method is called with a colon, " ..
          "%s:%s%s"):format(owner, call.name, call.args, given, owner, owner,
                            call.name, call.args)
end

-- b, t = x.shape
local function list_assigned(code, i)
  local first, last = i, code:last(i + 1)
  while code[first - 1] and (code[first - 1].kind == "name" or
                             code:is(first - 1, ",")) do
    first = first - 1
  end
  local x, size = last and (last > i + 2 or not code[last + 1]) and
                  code:text(i + 1, last), nil
  if not x or not code:is(first + 1, ",") then return nil end
  local owner = x:match "^(.*)%.shape$"
  if not owner then owner, size = x:match "^(.*):size(%(%))$" end
  local v = x:find "^[%a_][%w_]*$" and value_of(x)
  local names = code:text(first, i - 1)
  if is_plain(v) and #v > 1 and #v == select(2, names:gsub(",", "")) + 1 then
    return ("%s is one list; %s = table.unpack(%s)"):format(x, names, x)
  end
  return owner and istensor(value_of(owner)) and
         ("%s is one list; %s = table.unpack(%s)"):format(
           size and "size()" or "shape", code:text(first, i - 1), x) or nil
end

-- nums[0], nums[-1] of a list that has no such element, name[0] of a text, as a
-- part of a line: they are nil.
local function counted_from_zero(code, i)
  local owner, sign = code[i - 1], code:is(i + 1, "-") and 1 or 0
  local n, stop = code[i + 1 + sign], i + 2 + sign
  local k = n and n.kind == "number" and math.tointeger(tonumber(n.text))
  local part = code:is(i - 2, ".", ":")
  if not k or not code:is(stop, "]") or not owner or owner.kind ~= "name" or
     part or i == 2 and not code[stop + 1] then return nil end
  local v = value_of(owner.text)
  if sign == 1 then k = -k end
  if type(v) ~= "string" and
     not (is_plain(v) and k < 1 and (#v > 0 and v[k] == nil or
                                     state.python)) then return nil end
  local text, found = require "nacre.foreign_statements".translate(
    code.source, value_of)
  return text and not found.said and
         "elements count from 1; here " .. found.line or nil
end

-- Operations that keep all dimensions: of a vector the second value may be
-- meant.
local keeps_dims = set "sort topk cummax cummin"

-- The information on the operation that a call is of, and the tensor that it is
-- called with, if that is a variable.
local function called_operation(call)
  if call.mark == ":" then
    return is_tensor(call.owner) and nacre._info(call.name),
           value_of(call.owner)
  end
  local f = lookup.value(call.owner .. call.mark .. call.name)
  return type(f) == "function" and nacre._info(f),
         value_of(expressions.arguments(call.args)[1] or "")
end

-- x:max(2)[2]: of values and positions the values are indexed
local function values_indexed(code, i)
  local open = code:is(i + 2, "]") and code:is(i + 1, "1", "2") and
               code:is(i - 1, ")") and code.pair[i - 1]
  local call = open and code:call(open - 1)
  if not call or not call.owner then return nil end
  local info, x = called_operation(call)
  if not info or not info.results:find "positions" or
     info.results:find "%[" and not call.args:find "[,%d]" or
     keeps_dims[info.name] and not (istensor(x) and #x.shape > 1) then
    return nil
  end
  return ("%s gives values and positions, and [%s] is an element of the " ..
          "values; v, i = %s"):format(
    call.mark == ":" and call.name or call.owner .. call.mark .. call.name,
    code[i + 1].text, code.source:sub(call.from, call.to))
end

-- data = [[1, 2], [3, 4]]: the text "1, 2], [3, 4"
local function lists_as_text(code, i)
  local name, text = code[i - 2], code[i].text
  if not name or name.kind ~= "name" or code[i + 1] or
     not text:find "^%[%[%s*%-?%d[%d%s.,eE%-%[%]]*%]%]$" then return nil end
  local list = require "nacre.foreign_statements".translate(text, value_of)
  return list and ("[[ ]] is a string; here %s = %s"):format(name.text, list)
end

-- w[[1, 2]]: the text 1, 2, an index of one element
local function rows_as_text(code, i)
  local owner, text = code[i - 1], code[i].text
  if owner and owner.text == "=" then return lists_as_text(code, i) end
  if not owner or not text:find "^%[%[%s*%-?%d" or
     not istensor(value_of(owner.text)) then return nil end
  local rows = require "nacre.foreign_statements".translate(owner.text .. text,
                                                            value_of)
  return ("%s is a string, an index of one element; rows are %s"):format(text,
                                                                         rows)
end

-- The dim 1 that a call of an operation of a matrix has as a number, without
-- its name: what is said of it, or nil.
local function dim_of_call(call)
  local info = nacre._info(call.name)
  local items = info and expressions.arguments(call.args) or {}
  local method, of = call.mark == ":", call.owner
  if not method then of = items[1] end
  local x = value_of(of or "")
  if not istensor(x) or #x.shape < 2 then return nil end
  for i = method and 1 or 2, #items do
    local parameter = index_base.parameter(info, i + (method and 1 or 0))
    if items[i] == "1" and parameter and
       select(2, index_base.argument(info, parameter, "1")) then
      return ("dims count from 1: %s along dim 1 is along Python's dim 0, " ..
              "and its dim 1 is 2 here"):format(call.name)
    end
  end
end

-- Once, and only where a line of Python was corrected before: softmax(x, 1).
local function first_dim(text)
  if not state.python or state.dims_noted or text == state.suggested then
    return nil
  end
  for _, call in ipairs(expressions.calls(text)) do
    local note = dim_of_call(call)
    if note then
      state.dims_noted = true
      return note
    end
  end
end

local statistics = {
  std = "NumPy's std divides by n, this one by n - 1: std(x, {correction=0})",
  var = "NumPy's var divides by n, this one by n - 1: var(x, {correction=0})",
  median = "of an even number of elements, NumPy's median is the mean of " ..
           "the two in the middle: quantile(x, 0.5)"}

-- np.std(x) where np is this library; once for each function
local function numpy_statistics(code, i)
  local name = code[i + 1] and code[i + 1].text
  local of = code[i - 1] and code[i - 1].text
  local note = (of == "np" or of == "numpy") and statistics[name]
  local call = note and code:call(i + 1)
  if not call or call.args:find "correction" then return nil end
  statistics[name] = nil
  return note
end

local function of_dot(code, i)
  return numpy_statistics(code, i) or other_object(code, i)
end

local function of_bracket(code, i)
  return values_indexed(code, i) or counted_from_zero(code, i)
end

-- print(nums) of a list, type(x) of a tensor, as Python's
local function shown_otherwise(code, i)
  local x = code[i + 2]
  if i > 1 or not code:is(2, "(") or not code:is(4, ")") or code[5] or
     x.kind ~= "name" then return nil end
  local v = value_of(x.text)
  if code:is(1, "type") then
    return istensor(v) and ("of a tensor, %s.dtype and %s.shape tell more")
                             :format(x.text, x.text) or nil
  end
  return state.python and is_plain(v) and
         "print shows no more of a table; here " .. x.text or nil
end

local checks = {
  print = shown_otherwise, type = shown_otherwise,
  ["["] = of_bracket, ["."] = of_dot, ["="] = list_assigned,
  ["=="] = tensor_equality, ["~="] = tensor_equality,
  ["and"] = tensor_logic, ["or"] = tensor_logic,
  ["if"] = tensor_condition, ["elseif"] = tensor_condition,
  ["while"] = tensor_condition, string = rows_as_text,
}

local function first_note(text, looks)
  local code = expressions.read(text)
  for i, t in ipairs(code) do
    local look = looks[t.text]
    if t.kind == "string" then look = looks.string end
    local note = look and look(code, i)
    if note then return note end
  end
end

-- The note on a line at which an error arose, where value(path) is the value of
-- a path: on a method that is called through a dot on another tensor, and on a
-- second result taken by [2]; or nil.
function silent_mistakes.note_at(line, value)
  value_of = value
  return first_note(line, {["."] = other_object, ["["] = values_indexed})
end

-- The note on a block, or nil.
function silent_mistakes.note(text)
  if #text > 10000 then return nil end
  value_of = require "nacre.stack_frames".value_of
  return first_dim(text) or first_note(text, checks)
end

return silent_mistakes
