-- SPDX-License-Identifier: MIT
--
-- corrected_line.lua - what was typed as its error corrects it: the line that
-- the empty prompt suggests.
--
-- A hint is a line of Lua or a command, with or without a note. It may be only
-- the call that failed, the operand that is to be changed or an option: then it
-- takes its place in what was typed.

local expressions = require "nacre.expression_at"
local input_block = require "nacre.input_block"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local state = require "nacre.state"

local nacre = package.loaded.nacre or _G.nacre

local corrected_line = {}

local complete = {expression = true, statements = true}

-- A text without the functions of any number of arguments in it: the dots of
-- those stand for no part that is left out.
local function without_varargs(text)
  return (text:gsub("%f[%w]function%s*[%w_.:]*%([%w_, ]*%.%.%.%)" ..
                    ".-%f[%w]end%f[%W]", "f()"))
end

-- Is this a line of Lua, and no word of a sentence? A comment is the --option
-- of one.
local function is_line(text)
  local code = without_varargs(text):gsub('"[^"]*"', '""')
  for _, t in ipairs(lexer.tokens(text)) do
    if t.kind == "comment" then return false end
  end
  return not code:find "^[%a_][%w_]*$" and code ~= "" and
         not code:find("...", 1, true) and
         complete[input_block.compile(text).kind] or false
end

-- Calls each(name, method or nil) for the variables that code reads, except
-- those that it declares.
local function each_variable(code, each)
  local tokens = lexer.code(code:match "^[%w_, ]+=(.*)$" or code)
  local own = {self = code:find "^function " ~= nil or nil}
  for _, list in ipairs {"%f[%w_]for ([%w_, ]+) in ",
                         "%(([%w_, ]*)%) return"} do
    for name in (code:match(list) or ""):gmatch "[%w_]+" do
      own[name] = true
    end
  end
  for i, t in ipairs(tokens) do
    local before, after = tokens[i - 1], tokens[i + 1]
    if t.kind == "name" and not own[t.text] and
       not (before and before.text:find "^[.:]$") and
       not (after and after.text == "=") then
      each(t.text, after and after.text == ":" and tokens[i + 2] and
                   tokens[i + 2].text)
    end
  end
end

-- Does each variable of code exist, with the method that is called?
local function exists(code)
  local found = true
  each_variable(code, function(name, method)
    local v = rawget(_G, name)
    local plain = type(v) ~= "table" or not debug.getmetatable(v)
    if v == nil or method and plain and lookup.field(v, method) == nil then
      found = false
    end
  end)
  return found
end

-- Does code name no variables but those that were typed and the library's?
local function is_of(code, typed)
  local there, found = {}, exists(code)
  each_variable(typed, function(name) there[name] = true end)
  each_variable(code, function(name)
    local v = rawget(_G, name)
    if not there[name] and not state.is_own_name(name) and v ~= nacre.nn and
       v ~= nacre.nn.functional and v ~= nacre.optim then found = false end
  end)
  return found
end

-- "for i = 1, 3 do ... end" begins a block.
local function head(text)
  local first = text:match "^(.-)%s+%.%.%. end"
  local list = first and first:match "%f[%w_]in ([%w_]+:.*) do$"
  return first and not first:find "^%l+$" and
         not without_varargs(first):find("...", 1, true) and
         not (list and not exists(list)) and
         input_block.compile(first).kind == "incomplete" and first or nil
end

local notes = {"  %(.*%)$", ", counted from 1.*$", ", or in place .*$",
               "; Python's is .*$",
               ", or a new tensor .*$",
               ", or not %w+$"}

-- Does the head of a loop go through what was typed?
local function goes_through(line, typed)
  local list = line:match "%f[%w_]in (.*) do$"
  return not list or is_of(list:match "^i?pairs(%b())$" or list, typed)
end

-- A hint without its notes, if it is a line of Lua or begins a block.
local function whole_line(hint)
  for _, note in ipairs(notes) do hint = hint:gsub(note, "") end
  return (is_line(hint) or hint:find "^[:!?]%l[^,]*$") and hint or head(hint)
end

-- The table of options, or the chain of names and calls, that begins a text.
local function first_operand(text, typed)
  local stop = text:match "^%b{}()" or expressions.chain_end(text, 1)
  local first = stop and text:sub(1, stop - 1)
  if not first or first == typed or not is_line(first) or
     first:find "^{" and first:find "^{%s*[^=]*[{},]" or
     not text:find("^%f[%s,%z]", stop) or text:find("^ instead of", stop) or
     text:find("^ has %d", stop) then return nil end
  return (typed:find(first, 1, true) or first:find "[({[]" and
          is_of(first, typed)) and first or nil
end

-- The line in a hint, before or behind what else it says.
local function line_of(hint, typed)
  local line = whole_line(hint)
  if line and (line:find "^[:!?]" or
               head(hint) and goes_through(line, typed) or
               is_of(line, typed)) then
    return line
  end
  if hint:find " is nil" then return nil end
  local behind = hint:match ": (.* = .*)$"
  if behind and is_line(behind) and exists(behind) then return behind end
  for from in ("; " .. hint):reverse():gmatch " ;()" do
    local part = hint:sub(#hint - from + 4)
    line = whole_line(part)
    line = line and is_of(line, typed) and line or first_operand(part, typed)
    if line then return line end
  end
end

-- What an error says beside its hint; the first two are a part of the line.
local messages = {"is not a method: (.*)$", "is a method: (.*)$",
                  "Lua has no %S+; (.*)$", ", did you mean (:.*)%?$",
                  "the command is (:.*)$", "; here (.*)$",
                  " is one list; (.*)$"}

-- The line in a message; whether it is all of the line.
local function line_of_message(message)
  for i, pattern in ipairs(messages) do
    local text = message:match(pattern)
    local line = text and whole_line(text)
    if line then return line, i > 2 end
  end
end

-- The typed text with the right name in place of a wrong one, and of the path
-- to that; nil if it has none or several.
local function respelled(typed, wrong, name)
  local found
  for _, t in ipairs(wrong and lexer.code(typed) or {}) do
    if t.kind == "name" and t.text == wrong then
      if found then return nil end
      found = t
    end
  end
  if not found then return nil end
  local before = typed:sub(1, found.from - 1)
  if name:find "%." then before = before:gsub("[%a_][%w_%.]*%.$", "") end
  return before .. name .. typed:sub(found.to + 1)
end

-- The first call of one of the names, which are those of no in-place form, or
-- nil.
local function call_of(typed, names)
  for _, call in ipairs(expressions.calls(typed)) do
    if names[call.name:gsub("_$", "")] and call.owner then return call end
  end
end

-- The only use of a variable, with what is read of it and called.
local function use(typed, name)
  local code, from, to = expressions.read(typed), nil, nil
  for i, t in ipairs(code) do
    if t.kind == "name" and t.text == name and code:first(i) == i then
      if from then return nil end
      from, to = t.from, code[code:last(i)].to
    end
  end
  return from, to
end

-- The part of the typed text that a chain is to replace: the same call, the
-- call that failed, of the same variable or, if `unknown', of a function that
-- does not exist, or the only use of that.
local function part(typed, chain, op, unknown)
  local root = chain:match "^[%a_][%w_]*"
  local method = chain:match "([%w_]+)%s*%b()$" or
                 chain:match "([%w_]+)%s*%b{}$" or chain:match "([%w_]+)$" or ""
  local same, failed = {[method:gsub("_$", "")] = true}, {[op or ""] = true}
  local ours = not root or rawequal(rawget(_G, root), nacre)
  local first, last = use(typed, root or "")
  local elsewhere = not first or not call_of(typed:sub(first, last), same)
  for _, names in ipairs {same, (unknown or not ours) and failed or nil} do
    for _, call in ipairs(expressions.calls(typed)) do
      local text = typed:sub(call.from, call.to)
      if names[call.name:gsub("_$", "")] and call.owner and text ~= chain and
         (text:match "^[%a_][%w_]*" == root or
          names == failed and unknown or
          names == same and (ours or elsewhere)) then
        return call.from, call.to
      end
    end
  end
  if ours or method == "backward" then return nil end
  local index = first and chain:find "^[%a_][%w_]*%b[]$" and
                typed:match("^%b[]()", first + #root)
  if index and typed:sub(first, index - 1) ~= chain then  -- x[1] for x[0]
    last = index - 1
  end
  return first, last
end

-- One table of options of two: the second has what both name.
local function merged(given, more)
  local list, name = {}, "^%s*([%a_][%w_]*)%s*="
  for _, item in ipairs(expressions.items(given:match "^%s*{(.*)}%s*$" or
                                          "")) do
    local key = item:match(name)
    if not key then return nil end
    if not more:find("%f[%w_]" .. key .. "%s*=") then
      list[#list + 1] = item:match "^%s*(.*%S)" .. ", "
    end
  end
  return "{" .. table.concat(list) .. more:sub(2)
end

-- The typed text with more options in the call that failed.
local function with_options(typed, options, op)
  local call = call_of(typed, {[op or ""] = true})
  local args = call and (call.args:find "^%(" and
               expressions.items(call.args:sub(2, -2)) or
               call.args:find "^{" and {call.args})
  if not args then return nil end
  local both = args[1] and merged(args[#args], options)
  if both then args[#args] = nil end
  args[#args + 1] = (args[1] and " " or "") .. (both or options)
  local before = typed:sub(1, call.to - #call.args)
  return ("%s(%s)%s"):format(before, table.concat(args, ","),
                             typed:sub(call.to + 1))
end

-- The typed text in which the variable of "x:to('float32')" is that.
local function converted(typed, line)
  local name, dtype = line:match "^([%a_][%w_]*):to%([\"']?([%w_]*)[^()]*%)$"
  local from, to = use(typed, name or "")
  local chain = from and typed:sub(from, to)
  if not from or chain:find(":to", 1, true) or
     chain:find("." .. dtype, 1, true) then return nil end
  return typed:sub(1, from - 1) .. line .. typed:sub(from + #name)
end

-- The typed text with the line of a hint at its place in it, or nil.
local function spliced(typed, line, op, unknown)
  if line:find "^{" then return with_options(typed, line, op) end
  local method, options = line:match "^[%a_][%w_%.]*:([%w_]+)(%b{})$"
  local changed = method and with_options(typed, options, method) or
                  converted(typed, line)
  if changed then return changed end
  if expressions.chain_end(line, 1) ~= #line + 1 then return nil end
  local of = line:match "^tostring%(([%a_][%w_]*)%)$"
  local from, to = nil, nil
  if of then from, to = use(typed, of)
  else from, to = part(typed, line, op, unknown) end
  return from and typed:sub(1, from - 1) .. line .. typed:sub(to + 1)
end

-- The corrected line, or nil. `said' has what an error says, {message =, hint
-- =, op = the operation that failed, whole = the hint is all of the line},
-- `typed' what was typed.
function corrected_line.of(said, typed)
  if #typed > 2000 or typed:find "\n%s*%S" then return nil end
  -- a comparison is not an operand of itself
  local line, whole = nil, said.whole or
                           said.message:find "give one boolean" ~= nil
  if said.hint then
    line = whole and (whole_line(said.hint) or
                      rawget(_G, said.hint) ~= nil and said.hint) or
           not whole and line_of(said.hint, typed)
  end
  if not line then line, whole = line_of_message(said.message) end
  local text
  if line then
    local unknown = said.cause == "function" and said.name
    text = not whole and spliced(typed, line, (said.op or unknown or "")
                                                :match "[%w_]+$", unknown)
  elseif said.hint then
    text = respelled(typed, said.hint:match "^([%w_]+) is called ([%w_]+)$")
  else
    text = respelled(typed, said.message:match
                            "'([%w_]+)', did you mean '?([%w_.]+)'?%?$")
  end
  local all = line and require "nacre.foreign_syntax".line(typed)
  if all and all:find(line, 1, true) then return all end
  if text and is_line(text) then return text end
  return line and (whole or not line:find "^{") and line or nil
end

return corrected_line
