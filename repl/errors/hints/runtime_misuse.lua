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
  for path, at in line:gmatch "([%a_][%w_%.]*)()%[" do
    local from, n, index = at, 0, nil
    local v = value(path)
    while istensor(v) and n do
      local part, stop = line:match("^(%b[])()", at)
      if not part then break end
      local removed = dims_removed(part)
      index, n, from, at = part, removed and n + removed, at, stop
    end
    local method = line:match("^%s*[:.]%s*([%a_][%w_]*)", at)
    if index and method and n == v:dim() then
      local whole = line:sub(1, at - 1):match("%f[%w_]" ..
        path:gsub("%p", "%%%0") .. "%[.*$")
      local last = index:match "^%[%s*([%w_-]+)%s*%]$"
      if method == "item" then
        return whole .. " is a number already, without :item()"
      end
      return last and ("%s is a number; %s:select(1, %s) is a tensor")
        :format(whole, whole:sub(1, #whole - at + from), last) or
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
  function(o) return o.cause == "method" and o.name == "type" end,
  function(o) return o.message:find "has no '__class__'" end,
  function(o) return o.message:find "a method is called with a colon$" end,
  function(o) return o.message:find "backend must be one of" end,
  function(o) return o.message:find "give one boolean, not one for each" end,
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
    return line:find "%[%[" and o.message:find "an element is a string"
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
  local args = name and line:match("%f[%w_]" .. name .. "%s*(%b())")
  local list = args and expressions.items(args:sub(2, -2))
  local last = list and (list[#list]:match "^%s*(.-)%s*$")
  if not last or not o.message:find "not a tensor$" then
    return name == "autocast" and
           'nacre.autocast("cuda", function() ... end)' or nil
  end
  local f, inner = last:match "^([%a_][%w_.]*)%s*(%b())$"
  if f then
    inner = inner:sub(2, -2)
    list[#list] = f .. (inner:find "%S" and ", " .. inner or "")
  else
    list[#list] = ("function() return %s end"):format(last)
  end
  for i, item in ipairs(list) do list[i] = item:match "^%s*(.-)%s*$" end
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
  local x, rest = line:match(name .. "%s*%(%s*([%a_][%w_%.]*)%s*,(.*)$")
  local alone = rest and rest:find "^%s*{%s*inplace%s*=%s*[%w]+%s*}%s*%)"
  return alone and ("%s:%s_()"):format(x, name) or
         name .. "_ works in place"
end

-- lst[1]() where the element is not a function
local function called_element(o, line, value)
  local kind = o.message:match "^attempt to call a (%l+) value %(field '"
  local path, index = line:match "([%a_][%w_%.]*)(%b[])%s*%("
  local element = path and index:find "^%[%d+%]$" and value(path .. index)
  if not kind or not path or type(value(path)) ~= "table" or
     element ~= nil and type(element) ~= kind then
    return nil
  end
  o.message = ("%s%s is a %s, not a function"):format(path, index, kind)
  return path .. index
end

-- "mean " .. x:mean(), x .. 7
local function joined_tensor(o, line, value)
  local kind = o.op == ".." and o.cause == "type" and o.got
  if not kind then return nil end
  local before, after = line:match "^(.-)%s*%.%.%s*(.*)$"
  local x = expressions.beginning(after or "")
  local left = o.args[1] and o.args[1].fills == "0"
  if left then x = expressions.ending(before) end
  if not x or line:find("%.%..*%.%.") then return nil end
  if kind == "number" then
    local n = left and after:match "^(-?[%d.]+)%s*$" or
              not left and before:match "(-?[%d.]+)$"
    if not n then return nil end
    n = ("nacre.tensor{%s}"):format(n)
    return ("nacre.cat{%s, %s}"):format(left and x or n, left and n or x)
  end
  return o.args[1].what:find("[]", 1, true) and x .. ":item()" or
         ("tostring(%s)"):format(x)
end

-- m - m:mean(2): the mean has one dimension less
local function lost_dimension(o, line)
  if o.cause ~= "broadcast" then return nil end
  local text, n = line:gsub("(:%l+)%((%-?%d+)%)", function(method, dim)
    local info = nacre._info(method:sub(2))
    return info and info.signature:find("keepdim", 1, true) and
           ("%s(%s, {keepdim=true})"):format(method, dim) or nil
  end)
  return n == 1 and text ~= line and text:match "^%s*(.-)%s*$" or nil
end

-- m:quantile({0.1, 0.9}): a list where a tensor is wanted
local function list_for_tensor(o, line)
  local op = o.op and o.op:match "[%w_]+$"
  if not op or o.cause ~= "tensor" or o.got ~= "table" then
    return nil
  end
  local head, list, rest = line:match("^(.-" .. op .. "%s*%([^{}]-)(%b{})(.*)$")
  return head and not list:find "=" and (head .. "nacre.tensor" .. list ..
                                         rest):match "^%s*(.-)%s*$" or nil
end

-- The names of a line that may be what an assignment was to unpack: one that
-- is nil, or the arguments of a call that refuses one.
local function names_of_failure(o, line)
  local name = o.message:match
    "^attempt to [%l ]+ a %l+ value %(%l+ '([%w_]+)'%)"
  if name then return {name} end
  local args = (o.cause == "type" or o.cause == "missing") and o.op and
               line:match(o.op:match "[%w_]+$" .. "%s*(%b())")
  return args and lexer.variables(args) or {}
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
  local names, right = line:gsub("^%s*local%s+", "")
                           :match "^%s*([%w_, ]+)=%s*([^;]-)%s*%f[;%z]"
  if not right or not names:find(",", 1, true) or
     not names:find("%f[%w_]" .. name .. "%f[^%w_]") then return nil end
  local text = ("%s= table.unpack(%s)"):format(names, right)
  if right:find "[%w_%])]%.shape$" or right:find ":size%(%)$" then
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
  local names, args =
    line:match "%f[%w_]for%s+([%w_, ]-)%s+in%s+i?pairs%s*(%b())"
  local x = args and args:sub(2, -2)
  if not x or not x:find "%)$" then return nil end
  if x:find "progress%s*%b()$" then names = names:gsub("^%w+,%s*", "") end
  return ("for %s in %s do ... end"):format(names, x)
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
