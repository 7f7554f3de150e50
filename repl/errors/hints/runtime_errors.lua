-- SPDX-License-Identifier: MIT
--
-- runtime_errors.lua - clearer messages and hints for errors of Lua at run
-- time that come from the habits of other languages, and for names that do not
-- exist.

local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local names = require "nacre.python_names"
local unknown_names = require "nacre.unknown_names"
local expressions = require "nacre.expression_at"

local elsewhere = unknown_names.elsewhere
local did_you_mean = unknown_names.did_you_mean
local nearest, novariable = unknown_names.nearest, unknown_names.novariable

local nacre = package.loaded.nacre or _G.nacre

local runtime_errors = {}

local LONG <const> = 1 << 14 -- bytes of a line or a block that is read closely

-- Line n of a text, or nil; nil, too, if it is so long that nobody could read
-- it, and the patterns of the hints would take the square of its length.
function runtime_errors.line(text, n)
  local at = 1
  for _ = 2, n or 1 do
    at = text:find("\n", at, true)
    if not at then return nil end
    at = at + 1
  end
  local line = text:match("^[^\n]*", at)
  return #line <= LONG and line or nil
end

--
-- Errors of running programs
--
-- What stands before ".name" or ":name" on a line, and its value.
local function owner(line, mark, name, value)
  local code, found = expressions.read(line), nil
  for i, t in ipairs(code) do
    local first = t.text == name and code:is(i - 1, mark) and code:first(i)
    local path = first and code:text(first, i - 2):gsub("%s", "") or nil
    local v = path and value(path)
    if v ~= nil then return path, v end
    found = found or path
  end
  return found
end

-- The note on an input that is only the name of an undefined variable, or nil.
function runtime_errors.unknown_variable(name)
  local command = require "nacre.commands".line(name)
  if command then
    return ("no variable '%s'; the command is %s"):format(name, command)
  end
  local hint = names.modules[name] or
               unknown_names.hint(name, "", function() end, "")
  if hint and not unknown_names.offers(name) then
    return ("no variable '%s'; here %s"):format(name, hint)
  end
  local text = (#name > 2 or unknown_names.offers(name)) and novariable(name)
  return text and text:find(",", 1, true) and text or nil
end

-- x.grad:zero_() before the first backward()
local function missing_gradient(o, line, value)
  if not o.message:find "^attempt to [%l ]+ a nil value %(field 'grad'%)" then
    return
  end
  local path, v = owner(line, ".", "grad", value)
  if not istensor(v) then return end
  o.message = path .. ".grad is nil"
  o.hint = v.requires_grad and "a result's backward() sets it" or
           path .. ":requires_grad_(), then a result's backward() sets it"
end

-- Methods of PyTorch that convert all parameters of a module; here parameters
-- are in a table.
local moves = lexer.set "cuda cpu to float double half"

-- The names of the fields of a table and of the classes that it is of.
local function all_fields(t)
  local names = {}
  for _ = 1, 20 do
    for name in next, t do names[name] = true end
    local meta = debug.getmetatable(t)
    local index = type(meta) == "table" and rawget(meta, "__index")
    if type(index) == "function" and rawget(t, "_fields") then index = meta end
    if type(index) ~= "table" then break end
    t = index
  end
  return names
end

-- The error of reading a field that the module at `path' does not have.
local function missing_in_module(path, v, name)
  return did_you_mean(("%s, a %s, has no '%s'"):format(path, v.__name, name),
               nearest(name, all_fields(v)))
end

-- The note on an input that is only a field that a module lacks, or nil.
function runtime_errors.unknown_field(text)
  local path, name = text:match "^%s*([%a_][%w_%.%[%]]*)%.([%a_][%w_]*)%s*$"
  local v = path and lookup.value(path)
  if type(v) == "table" and rawget(v, "_fields") and
     lookup.field(v, name) == nil and nearest(name, all_fields(v)) then
    return missing_in_module(path, v, name)
  end
end

-- "attempt to index a nil value (field 'wieght')"
local function missing_module_field(o, line, value)
  local name =
    o.message:match "^attempt to index a nil value %(field '([%w_]+)'%)"
  if not name then return end
  local path, v = owner(line, ".", name, value)
  if type(v) == "table" and rawget(v, "_fields") then
    o.message = missing_in_module(path, v, name)
  end
end

-- lin:weight(), where weight is a tensor: the call is an index by lin
local function called_parameter(o, line, value)
  if not o.object then return end
  for _, call in ipairs(expressions.calls(line)) do
    local path, name = call.owner, call.name
    local v = call.mark == ":" and path and value(path)
    if type(v) == "table" and rawget(v, "_fields") and
       istensor(rawget(v, name)) then
      o.message = ("%s is not a method: %s.%s"):format(name, path, name)
      o.op, o.object, o.hint, o.args = nil, nil, nil, {}
      return
    end
  end
end

-- "attempt to call a nil value (method 'uper')"
local function missing_field(o, line, value)
  local kind, name =
    o.message:match "^attempt to %l+ a nil value %((%l+) '([%w_]+)'%)"
  if kind ~= "method" and kind ~= "field" then return end
  local path, v = owner(line, kind == "method" and ":" or ".", name, value)
  local fields = type(v) == "string" and string or v
  if type(fields) ~= "table" then return end
  local what = kind == "method" and "method" or "function"
  if o.message:find "^attempt to index" then return end
  if kind == "method" and moves[name] and type(v) == "table" then
    local call = expressions.calls(line, name)[1]
    o.hint = ("for k, w in pairs(%s) do %s[k] = w:%s%s end"):format(path, path,
               name, call and call.args or "()")
  end
  o.message = did_you_mean(("%s has no %s '%s'"):format(path, what, name),
                    nearest(name, all_fields(fields)))
end

-- A property that is called, as a.shape() or a:shape().
local function called_property(o, line, value)
  local kind, name =
    o.message:match "^attempt to call a %l+ value %((%l+) '([%w_]+)'"
  for _, tensor in ipairs {"T", "grad"} do    -- which are called: an index
    local call = not name and o.object and expressions.calls(line, tensor)[1]
    if call and call.mark == ":" then kind, name = "method", tensor end
  end
  if kind ~= "field" and kind ~= "method" then return end
  local mark = kind == "method" and ":" or "."
  local path, v = owner(line, mark, name, value)
  local call = kind == "method" and lookup.properties[name] and
               not (path and path:find "^[%w_.%[%]]+$")
  if not istensor(v) and not call then return end
  path = path or "(...)"
  if kind == "method" then
    o.message = ("%s is not a method: %s.%s"):format(name, path, name)
    o.op, o.object, o.hint, o.args = nil, nil, nil, {}
  elseif name == "shape" then
    o.hint = ("%s:size() is {%s}"):format(path, table.concat(v:size(), ", "))
  else
    o.hint = ("%s.%s is not a function: leave out ()"):format(path, name)
  end
end

-- Adds the names to the left of the `=' at tokens[at] to `set'. In a table
-- constructor they are keys, and none is added.
local function assignment_targets(tokens, at, set)
  local names, i, depth = {}, at - 1, 0
  while i > 0 do
    local t, before = tokens[i], tokens[i - 1] and tokens[i - 1].text
    if t.text == "]" or t.text == ")" then depth = depth + 1
    elseif depth > 0 and (t.text == "[" or t.text == "(") then
      depth = depth - 1
    elseif depth > 0 then goto continue
    elseif t.kind == "name" then
      names[#names + 1] = t.text
      if before == "{" then return end
      if before ~= "," and before ~= "." and before ~= ":" then break end
    elseif t.text ~= "," and t.text ~= "." and t.text ~= ":" then return end
    ::continue::
    i = i - 1
  end
  for _, name in ipairs(names) do set[name] = true end
end

-- The names that a block may assign: variables, parameters, labels.
local declares = lexer.set "local for function goto ::"
local passes = lexer.set ", ( < > . : function"

local function assigned_names(tokens)
  local set = {}
  for i, t in ipairs(tokens) do
    if t.text == "=" then assignment_targets(tokens, i, set) end
    if declares[t.text] then
      local k = i + 1
      while tokens[k] and (tokens[k].kind == "name" or
                           passes[tokens[k].text]) do
        set[tokens[k].text], k = true, k + 1
      end
    end
  end
  return set
end

-- True, None and the like in a block that compiles: they would silently be
-- nil. Returns the note; nil if there are none or the block assigns them.
function runtime_errors.constant(text)
  if #text > LONG then return nil end -- values, not what somebody has typed
  local some
  for word in text:gmatch "%f[%w_]%a+%f[^%w_]" do
    some = some or names.constants[word] and rawget(_G, word) == nil
  end
  if not some or text:find "%f[%w_]_ENV%f[^%w_]" then return nil end
  local tokens = lexer.code(text)
  local set = assigned_names(tokens)
  for i, t in ipairs(tokens) do
    local before = i > 1 and tokens[i - 1].text
    local after = tokens[i + 1] and tokens[i + 1].text
    if t.kind == "name" and names.constants[t.text] and before ~= "." and
       before ~= ":" and after ~= "=" and not set[t.text] and
       rawget(_G, t.text) == nil then
      return novariable(t.text)
    end
  end
end

-- for row in t do, for a in NAME do where there is no NAME
local function not_an_iterator(o, line, value, scope)
  local list = expressions.iterated(line)
  if not list then return end
  if o.message:find "^attempt to call a nil value %(for iterator" and
     list:find "^[%a_][%w_.]*$" and value(list) == nil then
    local known = list:find "%." or scope and scope.there[list]
    o.message = known and list .. " is nil" or novariable(list)
  end
  if o.cause == "index" and o.got == "nil" then
    o.hint = ("for i, row in pairs(%s) do ... end"):format(list)
  end
end

-- np.zeros, nn.Linear: the same path here, or its equivalent.
local function module_member(line, name, value)
  local path = expressions.path(line, name):match "%.(.*)$"
  local known = names.modules[name]
  return known and path and
         unknown_names.ofpath(path, line, value, nil, true) or
         unknown_names.hint(name, line, value, "") or known
end

-- A global that is nil, at `line'.
local function undefined_global(o, line, name, value)
  o.message = novariable(name)
  local rest = line:match("^%s*" .. name .. "%s+(.*)")
  local operator = rest and rest:find "^[-+*/%%^<>~=]+%s+%S"
  if line:find "^%s*#%s" then o.hint = "a comment starts with --"
  elseif name == "help" then
    o.hint = "?" .. (line:match "help%s*%(%s*[\"']?([%w_%.:]+)" or "name")
  elseif rest and not operator and not rest:find "^[=({]" then
    o.hint = require "nacre.commands".line(name, rest) or o.hint
  end
  if o.hint then return end
  local text, found = require "nacre.foreign_statements".translate(line, value)
  if names.builtins[name] then
    local said = names.builtins[name][1] or ""
    local of = line:match("%f[%w_]" .. name .. "%s*%(%s*([%a_][%w_]*)%s*%)")
    o.hint, o.whole = text or said:find "<" and
                      said:gsub("^x", of or "x") or nil, true
    o.message = ("no variable '%s'"):format(name)
  else
    local member = (not text or found.said) and
                   module_member(line, name, value)
    o.hint, o.whole = member or text, not member
  end
end

local function unknown_argument(o)
  local name = not o.hint and o.cause == "argument" and o.name
  local ours = names.arguments[name]
  if not ours then return end
  o.message = ("no argument '%s'"):format(name)
  o.hint = ("%s is called %s"):format(name, ours)
end

-- ("%.2f"):format(loss)
local function not_a_number(o, line, value)
  if not o.message:find "%(number expected, got tensor%)$" then return end
  require "nacre.stack_frames".paths(line, function(path)
    local v = value(path)
    if istensor(v) and v:numel() == 1 then
      o.hint = path .. ":item() is the number"
    end
  end)
  for _, call in ipairs(not o.hint and expressions.calls(line) or {}) do
    local list, name = expressions.arguments(call.args), call.name
    local v = value(call.mark == ":" and call.owner or list[1] or "")
    if istensor(v) and call.mark == ":" and #list == 0 then
      o.hint = ("%s:%s():item() is the number"):format(call.owner, name)
    elseif istensor(v) and call.owner == "math" and #list == 1 and
           pcall(function() return v[name] end) then
      o.hint = ("%s:%s()"):format(list[1], name)
    end
  end
end

-- x:conv2d(w), which is a function elsewhere in the library
local function function_as_method(o, line)
  local name = not o.hint and o.cause == "method" and o.name:match "^[%w_]+$"
  local place = name and elsewhere(name)
  if place and place:find "%.%w+%." then o.hint = place .. "(...)" end
  local call = name and not place and expressions.calls(line, name)[1]
  if call and call.mark == ":" then
    o.hint = require "nacre.commands".line(name, call.owner) or o.hint
  end
end

-- require "nomod": shortens the list of places where Lua searched
local function missing_module(o)
  local name = o.message:match "^module '([^'\n]+)' not found:\n"
  if not name then return end
  local near = {}
  for file in o.message:gmatch "no file '([^/\n][^\n]*%.lua)'" do
    file = file:gsub("^%./", "")
    if not file:find "[/\\]init%.lua$" and not near[file] then
      near[#near + 1], near[file] = file, true
    end
  end
  near[#near + 1] = "the rest of package.path"
  o.message = ("module '%s' not found"):format(name)
  o.hint = names.modules[name] or
           "searched in " .. table.concat(near, ", ", 1, #near - 1) ..
           (#near > 1 and " and " or "") .. near[#near]
end

-- Names the operation sub_ where the line calls that.
local function inplace_name(o, line)
  local op = o.op and o.op:match "^[%w_]+$"
  local list = op and not op:find "_$" and expressions.calls(line, op) or {}
  for _, call in ipairs(list) do
    if call.name == op or call.mark == "" then return end
  end
  if list[1] then o.op = op .. "_" end
end

-- x:fill(1) of Torch7: the method that works in place
local function inplace_method(o, line, name)
  local call = o.cause == "method" and expressions.calls(line, name)[1]
  local args = call and call.args:match "^%((.*)%)$"
  if not args or not nacre._methods[name .. "_"] or
     not args:find "%S" and name ~= "zero" then return nil end
  return ("%s:%s_(%s)"):format(call.owner, name, args)
end

-- "nacre.nn has no 'LSTM'", "tensor has no method 'fillna'": the hint for that
-- name
local function unknown_member(o, line, value)
  local hint, place, part, name
  if o.cause == "function" then
    part, name = o.name:match "^(.-)%.?([%w_]+)$"
  elseif o.cause == "method" or o.cause == "field" then
    name = o.name:match "^[%w_]+$"
  end
  local path, text, found = part and expressions.path(line, name), nil, nil
  if path and (line:find("[[", 1, true) or
               require "nacre.python_methods".is_known(path)) then
    text, found = require "nacre.foreign_statements".translate(line, value)
  end
  if text and not found.said and not text:find(path, 1, true) then
    o.hint, o.whole = text, true
    o.message = o.message:gsub(", did you mean .*$", "")
    return
  end
  local same = part and part ~= "" and unknown_names.in_part(part, name)
  if same then
    place = same
  elseif part then
    hint = unknown_names.ofpath(expressions.path(line, name), line, value, part)
    place = not hint and name:find "%u" and elsewhere(name)
  elseif name then
    hint = inplace_method(o, line, name) or
           unknown_names.hint(name, line, value)
  end
  if hint or place then
    o.message = o.message:gsub(", did you mean .*$", "")
  end
  if place then o.message = did_you_mean(o.message, place) end
  o.hint = hint or o.hint
end

-- A line that begins with `(' after one that ends an expression: Lua calls what
-- that line gives.
local function continued_call(o, line, scope)
  local text, n = scope and scope.text, scope and scope.line
  if not text or not n then return end
  local before, after = line, runtime_errors.line(text, n + 1)
  if line:find "^%s*%(" then
    before, after = n > 1 and runtime_errors.line(text, n - 1) or "", line
  end
  if after and after:find "^%s*%(" and expressions.ending(before) then
    o.hint = "a line that begins with ( calls what the line before gives; " ..
             "begin it with ;"
  end
end

-- x:to("complex64"), {dtype = "qint8"}: a dtype of another library
local function foreign_dtype(o, line, value)
  local name = o.message:match "^no dtype '([%w_]+)'" or
               o.message:match "^'([%w_]+)' is neither a dtype nor a device"
  o.hint = name and unknown_names.hint(name, line, value) or o.hint
end

-- nacre:ones(3), nn:Linear(2, 3): a function of the library with a colon
local function function_with_colon(o, line)
  for _, call in ipairs(expressions.calls(line)) do
    local path = call.mark == ":" and call.owner and
                 call.owner:match "^[%a_][%w_%.]*$"
    local owner = path and unknown_names.of_library(path)
    if owner and type(owner) == "table" and
       unknown_names.of_library(path .. "." .. call.name) then
      o.message = ("%s is no method of %s"):format(call.name, path)
      o.op, o.args, o.rule = nil, {}, nil
      o.hint, o.whole = line:sub(1, call.from - 1) .. path .. "." ..
                        line:sub(call.from + #path + 1):match "^%s*(.*)$", true
      return true
    end
  end
end

-- Improves the message and the hint of an error at `line'. value(path) is the
-- value of a path there; scope is {there = set of variable names, text = of
-- the chunk, line = its number}.
function runtime_errors.explain(o, line, value, scope)
  local networks = require "nacre.network_misuse"
  if networks.explain_nil(o, line, value, scope) then return end
  local name = o.message:match
    "^attempt to [%l ]+ a nil value %(global '([%w_]+)'%)"
  if name then
    local list = require "nacre.runtime_misuse".unpacked(o, line, value, scope)
    undefined_global(o, line, name, value)
    o.hint = list or
             require "nacre.runtime_misuse".better_hint(o, line, value) or
             o.hint
    continued_call(o, line, scope)
    return
  end
  if function_with_colon(o, line) then return end
  if o.op == ".." then o.hint = nil end
  local arguments = o.cause == "argument" and o.hint
  if arguments then o.hint = nil end  -- a better one may follow
  if arguments == "it takes self" or arguments and
     arguments:find "^it takes self," then arguments = nil end
  local dot_call = require "nacre.dot_call"
  if networks.explain(o, line, value) or
     require "nacre.zero_based".explain(o, line) or
     dot_call.explain_object(o, line, value) then return end
  inplace_name(o, line)
  missing_module(o)
  missing_gradient(o, line, value)
  o.hint = networks.method_hint(o, line, value) or o.hint
  missing_field(o, line, value)
  missing_module_field(o, line, value)
  local dotted = dot_call.explain(o, line, value)
  if dotted then arguments = nil end
  called_property(o, line, value)
  called_parameter(o, line, value)
  not_a_number(o, line, value)
  not_an_iterator(o, line, value, scope)
  if o.object then
    unknown_member(o, line, value)
    o.hint = o.hint or require "nacre.nil_argument".hint(o, line, value, scope)
    unknown_argument(o)
    foreign_dtype(o, line, value)
    function_as_method(o, line)
  end
  local misuse = require "nacre.runtime_misuse"
  o.hint = networks.dtype_hint(o) or networks.device_hint(o) or
           misuse.better_hint(o, line, value) or o.hint or
           misuse.hint(o, line, value, scope) or arguments or
           not dotted and
           require "nacre.silent_mistakes".note_at(line, value) or nil
  if o.hint then o.hint = require "nacre.rewrite_hint".hint(o, line) end
  continued_call(o, line, scope)
end

return runtime_errors
