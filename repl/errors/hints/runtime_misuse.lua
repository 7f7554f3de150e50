-- SPDX-License-Identifier: MIT
--
-- runtime_misuse.lua - hints for errors at run time that runtime_errors.lua
-- does not know: methods called on numbers, strings with + and %, tensors with
-- ==, options of other libraries. A line that does not clearly match gets no
-- hint.

local istensor = require "nacre.tensor_facts".istensor
local expressions = require "nacre.expression_at"
local lexer = require "nacre.lexer"
local python_methods = require "nacre.python_methods"

local nacre = package.loaded.nacre or _G.nacre

local misuse = {}

-- How many dimensions an index removes: [1], [i], [{1, 2}].
local function dims_removed(index)
  local inner = index:match "^%[%s*{?([%w_%s,-]+)}?%s*%]$"
  return inner and select(2, inner:gsub(",", ",")) + 1
end

-- x[1]:item(), m[1][1]:backward()
local function method_of_number(o, line, value)
  if not o.message:find "^attempt to index a number value" then return nil end
  local code = expressions.read(line)
  for i in ipairs(code) do
    local from, n, last, at = code:first(i - 1), 0, nil, i
    local v = from and value(code:text(from, i - 1))
    while istensor(v) and n and code:is(at, "[") and code.pair[at] do
      local removed = dims_removed(code:text(at, code.pair[at]))
      n, last, at = removed and n + removed, at, code.pair[at] + 1
    end
    if last and n == v:dim() and code:is(at, ".", ":") and code[at + 1] then
      local whole = code:text(from, at - 1)
      local index = code:text(last + 1, at - 2):match "^[%w_-]+$"
      if code[at + 1].text == "item" then
        return whole .. " is a number already, without :item()"
      end
      return index and ("%s is a number; %s:select(1, %s) is a tensor")
        :format(whole, code:text(from, last - 1), index) or
        whole .. " is a number"
    end
  end
end

-- What fails in a line that Lua compiles and that another language means
-- otherwise.
local foreign = {
  function(o)                           -- list.append(2), os.environ["HOME"]
    local name = o.message:match "has no %l+ '([%w_]+)'$" or
                 o.message:match "^attempt to %l+ a nil value %(%l+ '(%l+)'%)"
    return name == "append" or name and not o.cause and
           python_methods.names[name]
  end,
  python_methods.fails,
  function(o) return o.cause == "method" and o.name == "type" end,
  function(o) return o.message:find "has no '__class__'" end,
  function(o) return o.message:find "a method is called with a colon$" end,
  function(o) return o.message:find "backend must be one of" end,
  function(o)                           -- of complex numbers: z:abs():gt(1)
    return o.message:find "give one boolean, not one for each" and
           not (o.hint or ""):find(":abs()", 1, true)
  end,
  function(o) return o.message:find "%(string expected, got no value%)" end,
  function(o)                           -- (x == y):sum(), x[x % 2 == 0]
    return o.message:find "^attempt to %l+ a boolean value" or
           (o.cause == "tensor" or o.cause == "index") and o.got == "boolean"
  end,
  function(o)                           -- "a" + 1, "%d" % x
    return o.message:find "^attempt to add a '[ns]%l+' with a '[ns]%l+'" and
           not o.message:find "'nil'" or
           o.message:find "^attempt to mod a 'string'" or
           o.message:find "^attempt to mul a 'string'" or
           (o.op == "add" or o.op == "remainder") and o.name == "self" and
           o.got == "string"
  end,
  function(o, line)                     -- groups[0].lr
    return line:find "%[0%]" and (o.message:find " count from 1" or
                                  o.message:find "^attempt to %l+ a nil value")
  end,
  function(o, line)                     -- torch.tensor([[1, 2], [3, 4]])
    return line:find "%[%[" and o.message:find "an element is a string" or
           line:find "[%w_%])]%[%[%s*%-?%d" and    -- x[[0, 2]]
           (o.message:find "is not a valid index$" or
            o.message:find "^index %-?%d+" or
            o.message:find "^%d+ indices for a tensor" or
            o.message:find "^attempt to %l+ a number value")
  end,
  function(o, line)                     -- for v in list do
    return o.message:find "^attempt to call a table value" and
           line:find "%f[%w_]for%f[^%w_].-%f[%w_]in%f[^%w_]"
  end,
}

-- The line in Lua if it fails for being written in another language, or nil.
local function translated(o, line, value)
  for _, fails in ipairs(foreign) do
    if fails(o, line) then
      local text = require "nacre.foreign_statements".translate(line, value)
      o.whole = text ~= nil
      return text
    end
  end
end

-- torch.autocast("cpu", net(x)), which gives it a result, not a function
local function called_too_early(o, line)
  local name = (o.hint or ""):match "^nacre%.([%w_]+)%(function%(%)"
  local call = name and expressions.calls(line, name)[1]
  local list = call and expressions.arguments(call.args) or {}
  local last = list[#list]
  if not last or not o.message:find "not a tensor$" then
    return name == "autocast" and
           'nacre.autocast("cuda", function() ... end)' or nil
  end
  local inner = expressions.calls(last)[1]
  if inner and inner.from == 1 and inner.to == #last and inner.mark ~= ":" then
    list[#list] = inner.owner .. inner.mark .. inner.name
    table.move(expressions.arguments(inner.args), 1, 20, #list + 1, list)
  else
    list[#list] = ("function() return %s end"):format(last)
  end
  return ("nacre.%s(%s)"):format(name, table.concat(list, ", "))
end

-- Hints that are better than one that the error has.
function misuse.better_hint(o, line, value)
  return translated(o, line, value) or
         called_too_early(o, line)
end

-- F.relu(x, {inplace=true})
local function inplace_option(o, line)
  if not o.op or o.cause ~= "argument" or o.name ~= "inplace" then
    return nil
  end
  local name = o.op:match "([%w_]+)$"
  if not pcall(function() return nacre.zeros(1)[name .. "_"] end) then
    return nil
  end
  local call = expressions.calls(line, name)[1]
  local list = call and expressions.arguments(call.args) or {}
  return #list == 2 and list[2]:find "^{%s*inplace%s*=%s*%w+%s*}$" and
         ("%s:%s_()"):format(expressions.enclosed(list[1]), name) or
         name .. "_ works in place"
end

-- lst[1]() where the element is not a function
local function called_element(o, line, value)
  local kind = o.message:match "^attempt to call a (%l+) value %(field '"
  local code = expressions.read(line)
  for i in ipairs(kind and code or {}) do
    local open = code:is(i, "(") and code:is(i - 1, "]") and code.pair[i - 1]
    local from = open and code:first(open - 1)
    local path = from and code:text(from, i - 1)
    local element = path and value(path)
    if path and code[open + 1].kind == "number" and
       type(value(code:text(from, open - 1))) == "table" and
       (element == nil or type(element) == kind) then
      o.message = ("%s is a %s, not a function"):format(path, kind)
      return path
    end
  end
end

-- "mean " .. x:mean(), x .. 7
local function joined_tensor(o, line)
  local kind = o.op == ".." and o.cause == "type" and o.got
  if not kind then return nil end
  local code, at = expressions.read(line), nil
  for i in ipairs(code) do
    if code:is(i, "..") then
      if at then return nil end
      at = i
    end
  end
  if not at or at == 1 or at == #code then return nil end
  local left = o.args[1] and o.args[1].fills == "0"
  local first, last = code:first(at - 1), code:last(at + 1)
  local x = left and first and code:text(first, at - 1) or
            not left and last and code:text(at + 1, last)
  if not x then return nil end
  if kind == "number" then
    local n = left and code:text(at + 1, #code) or code[at - 1].text
    if not tonumber(n) then return nil end
    n = ("nacre.tensor{%s}"):format(n)
    return ("nacre.cat{%s, %s}"):format(left and x or n, left and n or x)
  end
  return o.args[1].what:find("[]", 1, true) and x .. ":item()" or
         ("tostring(%s)"):format(x)
end

-- m - m:mean(2): the mean has one dimension less
local function lost_dimension(o, line)
  if o.cause ~= "broadcast" then return nil end
  local found
  for _, call in ipairs(expressions.calls(line)) do
    local info = call.mark == ":" and call.args:find "^%(%-?%d+%)$" and
                 nacre._info(call.name)
    if info and info.signature:find("keepdim", 1, true) then
      if found then return nil end
      found = call
    end
  end
  return found and ("%s, {keepdim=true}%s"):format(
    line:sub(1, found.to - 1), line:sub(found.to)):match "^%s*(.-)%s*$"
end

-- m:quantile({0.1, 0.9}): a list where a tensor is wanted
local function list_for_tensor(o, line)
  local op = o.op and o.op:match "[%w_]+$"
  if not op or o.cause ~= "tensor" or o.got ~= "table" then
    return nil
  end
  local code = expressions.read(line)
  local call = code:calls(op)[1]
  for i = call and call.i + 2 or #code + 1, #code do
    if code:is(i, "{") and code.pair[i] then
      local list = code:text(i, code.pair[i])
      return not list:find "=" and ("%snacre.tensor%s"):format(
        line:sub(1, code[i].from - 1), line:sub(code[i].from))
        :match "^%s*(.-)%s*$" or nil
    end
  end
end

-- The names of a line that may be what an assignment was to unpack: one that
-- is nil, or the arguments of a call that refuses one.
local function names_of_failure(o, line)
  local name = o.message:match
    "^attempt to [%l ]+ a %l+ value %(%l+ '([%w_]+)'%)"
  if name then return {name} end
  local args = (o.cause == "type" or o.cause == "missing") and o.op and
               expressions.calls(line, o.op:match "[%w_]+$")[1]
  return args and lexer.variables(args.args) or {}
end

-- What a function says of the text of the error or of those of the session,
-- the latest first.
local function of_texts_before(scope, say)
  local said = scope and scope.text and say(scope.text)
  if said then return said end
  for text in require "nacre.session_log".recent() do
    said = say(text)
    if said then return said end
  end
end

-- "b, t = table.unpack(x.shape)" for a statement that unpacks a list into
-- several names, one of them `name'; nil if this line does not.
local function unpacking(line, name)
  local code, at, there = expressions.read(line), 1, false
  local first = code:is(1, "local") and 2 or 1
  while code[at] and not code:is(at, "=") do
    there = there or code[at].text == name
    at = at + 1
  end
  local last = there and code:is(first + 1, ",") and code:last(at + 1)
  if not last then return nil end
  local right = code:text(at + 1, last)
  local text = ("%s = table.unpack(%s)"):format(code:text(first, at - 1), right)
  if right:find "%.shape$" or right:find ":size%(%)$" then
    return ("%s is one list: %s"):format(right:match "%.shape$" and "shape" or
                                         "size()", text)
  end
  local method = right:match "[.:]([%a_][%w_]*)%s*%b()$"
  local info = method and nacre._info(method)
  return info and info.results:find "^tensors" and
         ("%s gives a list: %s"):format(method, text) or nil
end

-- a, b = x:split(2), which gives a list; b, t = x.shape
function misuse.unpacked(o, line, _, scope)
  local names = names_of_failure(o, line)
  return names[1] and of_texts_before(scope, function(text)
    for line in text:gmatch "[^\n]+" do
      for _, name in ipairs(names) do
        local said = unpacking(line, name)
        if said then return said end
      end
    end
  end)
end

-- for name, p in pairs(net:named_parameters()) do
local function iterator_in_pairs(o, line)
  if not o.message:find "^bad argument #1 to 'for iterator'.*got function" and
     o.message ~= "attempt to index a function value" then return nil end
  local code = expressions.read(line)
  for _, call in ipairs(code:calls()) do
    local i, x = call.i - 1, expressions.arguments(call.args)[1] or ""
    if code:is(i, "in") and call.name:find "^i?pairs$" and x:find "%)$" then
      while not code:is(i - 1, "for") and i > 2 do i = i - 1 end
      local names = code:text(i, call.i - 2)
      if x:find "progress%s*%b()$" then names = names:gsub("^%w+,%s*", "") end
      return ("for %s in %s do ... end"):format(names, x)
    end
  end
end

local checks = {iterator_in_pairs, method_of_number, inplace_option,
                called_element, joined_tensor, lost_dimension,
                list_for_tensor, misuse.unpacked}

-- The hint for an error at `line', or nil; see runtime_errors.explain.
function misuse.hint(o, line, value, scope)
  for _, hint in ipairs(checks) do
    local text = hint(o, line, value, scope)
    if text then return text end
  end
end

return misuse
