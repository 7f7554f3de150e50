-- SPDX-License-Identifier: MIT
--
-- completion.lua - the candidates for the word before the cursor.

local call_at_cursor = require "nacre.call_at_cursor"
local shape_fits = require "nacre.shape_fits"
local help = require "nacre.help"
local styled = require "nacre.styled_output"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local facts = require "nacre.tensor_facts"
local topics = require "nacre.topics"

local completion = {}

local NOTES = 24 -- the list shows notes up to so many candidates

local function firstline(text) return (text or ""):match "[^\n]*" end

-- A note on a value. It must not run a user's __tostring.
local function valuenote(value)
  if facts.istensor(value) then return facts.kind_and_device(value) end
  local kind = type(value)
  if kind == "table" or kind == "userdata" then return kind end
  return firstline(styled.brief(value))
end

local function noteof(name, value, method)
  local info = type(value) == "function" and
               (nacre._info(value) or nacre._info(name))
  if info then
    local text = help.signature(info, method):gsub("%s*%->.*$", "")
    text = text:gsub("^[%w_.]+[.:]", "") -- of what is not in nacre itself
    return ("%-28s  %s"):format(text:gsub("^[%w_]+", name, 1),
                                firstline(info.doc))
  elseif type(value) == "function" then
    local written = debug.getinfo(value, "S").what ~= "C"
    return name .. (written and lookup.parameters(value) or "(...)")
  elseif value ~= nil then
    return ("%-28s  %s"):format(name, valuenote(value))
  end
end

-- A list that collects the names that begin with `word`.
local function collector(word)
  local list = {word = word}
  function list.add(name, value, method)
    if name:sub(1, #word) ~= word then return end
    if name:sub(1, 1) == "_" and word == "" then return end
    list[#list + 1] = {name, value, method}
  end
  return list
end

local function finish(list, right)
  local call = right:sub(1, 1) ~= "("
  table.sort(list, function(a, b) return a[1] < b[1] end)
  for i, item in ipairs(list) do
    local name, value, method = item[1], item[2], item[3]
    local note = item.note
    if not note and #list <= NOTES then note = noteof(name, value, method) end
    local open = call and type(value) == "function" and "(" or ""
    list[i] = {name .. open, note}
  end
  return list
end

local function commands(word)
  local list = collector(word)
  for _, command in ipairs(require "nacre.commands".list) do
    list.add(command.name)
    local last = list[#list]
    if last and last[1] == command.name then
      last.note = (":%s %s"):format(command.name, command.args or "")
      last.note = ("%-24s  %s"):format(last.note, command.doc)
    end
  end
  finish(list, "")
  for _, item in ipairs(list) do item[1] = item[1] .. " " end
  return list
end

-- How many dims are left after an index: a number takes one, a text as many
-- as it has numbers, newaxis adds one.  Nil if it takes more than looking.
local function dimsbehind(n, index)
  if index:find "^%[%s*%-?%d+%s*%]$" then return n - 1 end
  local text = index:match "^%[%s*[\"']([^\"'\\]*)[\"']%s*%]$"
  if not text then return nil end
  for item in text:gmatch "[^,]+" do
    if item:find "^%s*%-?%d+%s*$" then n = n - 1 end
    if item:find "^%s*newaxis%s*$" then n = n + 1 end
  end
  return n
end

-- The dims of the tensor that an expression gives which is the name of one
-- with indices after it; nil if it is none.
local function indexed(before)
  local inner, index = before:match "^(.*)(%b[])$"
  if not inner then
    local path = before:match "[%a_][%w_.]*$"
    local value = path and lookup.value(path)
    return facts.istensor(value) and #value.shape or nil
  end
  local n = indexed(inner)
  return n and dimsbehind(n, index)
end

-- The object before "." or ":": its value, or nil; then whether only running
-- the code could tell; then whether it is a tensor, as its indices show.
local function object(before)
  if before:find "%]$" then
    local n = indexed(before)
    if n then return nil, false, n > 0 end
  end
  if before:find "[\"']%s*%)?$" and not before:find "%]$" then return "" end
  local path = before:match "[%a_][%w_.:%[%]\"']*$"
  if not path or before:find "[%)%}]$" then return nil, true end
  return lookup.value(path), path:find ":" ~= nil
end

local function members(before, separator, list)
  local value, unknown, tensor = object(before)
  local method = separator == ":"
  tensor = tensor or facts.istensor(value)
  if value == nil and (unknown or tensor) and method then
    value = nacre._methods -- most calls give a tensor
    for name, f in next, value do list.add(name, f, true) end
  elseif tensor and not method then
    for _, name in ipairs(lookup.properties) do list.add(name) end
  elseif value ~= nil then
    lookup.members(value, function(name, field)
      if not method or type(field) == "function" then
        list.add(name, field, method)
      end
    end)
  end
end

-- What is there for scripts, or is there twice; but not a user's variable.
local FORSCRIPTS = {arg = true, skip = true, torch = true}

local function variables(list)
  lookup.members(_G, function(name, value)
    local hidden = FORSCRIPTS[name] and
                   require "nacre.shell".isbuiltin(name)
    if not hidden then list.add(name, value) end
  end)
end

local function globals(list)
  variables(list)
  for word in next, lexer.keywords do list.add(word) end
end

-- Behind "?": whatever there is help for, by its last name alone too.
local function helped(left)
  local before, word = left:match "^%s*%?%s*(.-)([%w_]*)$"
  local owner, separator = before:match "^(.*)([.:])$"
  local list, seen = collector(word), {}
  if owner then
    if owner:find "^[%a_][%w_.]*$" and lookup.value(owner) == nil then
      owner = "nacre." .. owner
    end
    members(owner, separator, list)
    return finish(list, "(")
  end
  variables(list)
  for _, item in ipairs(list) do seen[item[1]] = true end
  local function add(name, value)
    if not seen[name] then list.add(name, value) end
    seen[name] = true
  end
  if word == "" then return finish(list, "(") end
  local functions = nacre._functions
  for _, path in ipairs(nacre._names(true)) do
    local last = path:match "[%w_]+$"
    add(last, rawget(functions, path))
  end
  for _, row in ipairs(topics.list) do add(row[1]) end
  for _, name in ipairs(lookup.properties) do add(name) end
  return finish(list, "(")
end

-- Functions that list the values of options.
local words = {}

function words.dtype()
  return {"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
          "bfloat16", "float32", "float64"}
end

-- The devices that are known without opening one.
function words.device()
  local list = {"cuda"}
  for _, d in ipairs(nacre._devices()) do list[#list + 1] = d.name end
  return list
end

-- The values of a setting that are words.
local function valuesof(name)
  if words[name] then return words[name]() end
  local list = {}
  for _, row in ipairs(require "nacre.settings".list) do
    local may = row[1] == name and row[5] or ""
    for word in may:gmatch "%l+" do
      if row[3](word) ~= nil then list[#list + 1] = word end
    end
  end
  return list
end

-- The words that may follow a command: commands, settings and their values,
-- the words in its arguments; nil if it takes other text.
local function wordsof(command, rest)
  local list = {}
  local setting = rest:match "^(%l+)%s*=?%s+%S*$"
  if command.name == "set" and setting then return valuesof(setting) end
  if rest:find "%s" then return nil end
  if command.name == "dev" then return words.device() end
  local rows = command.name == "set" and require "nacre.settings".list or
               command.name == "help" and require "nacre.commands".list or {}
  for _, row in ipairs(rows) do list[#list + 1] = row.name or row[1] end
  if not command.lua then
    for word in (command.args or ""):gmatch "%f[%w]%l+%f[^%w]" do
      list[#list + 1] = word
    end
  end
  return #list > 0 and list or nil
end

-- Completes the argument of a command: a file or a word.
local function argument(left)
  local name, rest = left:match "^%s*[:%%](%a+)!?%s+(.*)$"
  local command = name and require "nacre.commands".find(name)
  if not command then return nil end
  if command.files then return {files = "words"} end
  local may = wordsof(command, rest)
  if not may then return nil end
  local list = collector(rest:match "%S*$")
  for _, word in ipairs(may) do list.add(word) end
  if command.name == "help" then globals(list) end
  return finish(list, "(")
end

-- Completes a string: values of an option, else files.
local function quoted(string, left)
  local word = string:match "^[\"']([^\"']*)$"
  if not word then return {} end
  local before = left:sub(1, #left - #string)
  local call = call_at_cursor.around(before)
  local name = before:match "([%a_][%w_]*)%s*=%s*$"
  if call and not name and not call.options and before:find "[(,]%s*$" then
    local param = call.params[#call.typed + 1]
    name = param and param.name
  end
  if not (call and call.info and words[name]) then
    return {files = "quoted"}
  end
  local list = collector(word)
  for _, w in ipairs(words[name]()) do list.add(w) end
  return finish(list, "(")     -- readline closes the quote
end

-- "mm(mat2) -> tensor    a is float32[3x4]": the call the cursor is in.
local function head(call)
  local text
  if call.info then
    text = help.signature(call.info, call.method):gsub("^[%w_.]+[.:]", "")
  elseif type(call.f) == "function" and
         debug.getinfo(call.f, "S").what ~= "C" then
    text = call.path .. lookup.parameters(call.f)
  end
  if text and call.method and facts.istensor(call.object) then
    text = ("%s    %s is %s"):format(text, call.path:match "^(.*):",
      facts.kind_and_device(call.object))
  end
  return text
end

-- Completes the options of a call.
local function options(call, word)
  local list = collector(word)
  for _, param in ipairs(call.params) do
    if not call.options[param.name] then list.add(param.name .. "=") end
  end
  return finish(list, "(")
end

-- Completes an argument or an option of a call; nil if the call is unknown.
local function inside(call, word)
  if not call.info and not call.f then return nil end
  local list
  if call.options then
    list = call.info and options(call, word)
  elseif call.rest:find "^%s*$" then
    local found = shape_fits.list(call)
    list = found and collector ""
    for _, var in ipairs(found or {}) do list.add(var.name, var.value) end
    if list then finish(list, "(") end
  end
  list = list or word == "" and call.info and {} or nil
  if list then list.head = head(call) end
  return list
end

-- The candidates for the end of `left`; `right` is the text after the cursor.
-- `head` is a line to show above them; with `files` the editor completes file
-- names instead: in quotes ("quoted") or as words of a command ("words").
function completion.candidates(left, right)
  local command = left:match "^%s*[:%%](%a*)$"
  if command then return commands(command) end
  local list = argument(left)
  if list then return list end
  if left:find "^%s*%?[^?]*$" then return helped(left) end
  left = left:gsub("^%s*[:%%]%a+%s", "", 1):gsub("^%s*%?+", "", 1)
  local tokens = lexer.tokens(left)
  local last = tokens[#tokens]
  if last and last.to == #left then
    if last.kind == "comment" then return {} end
    if last.kind == "string" and not last.closed then
      return quoted(last.text, left)
    end
  end
  local word = left:match "[%a_][%w_]*$" or ""
  local before = left:sub(1, #left - #word)
  local separator = before:match "([.:])%s*$"
  local member = separator and not before:find "%.%.%s*$"
  local call = not member and before:find "[({,]%s*$" and
               call_at_cursor.around(before)
  list = call and inside(call, word)
  if list and (#list > 0 or word == "") then return list end
  list = collector(word)
  if member then
    members(before:gsub("[.:]%s*$", "", 1), separator, list)
  elseif not before:find "%d$" then
    globals(list)
  end
  list.head = call and head(call) or nil
  return finish(list, right)
end

return completion
