-- SPDX-License-Identifier: MIT
--
-- help.lua - ?name, :help, a:sum without a call, F1. Signatures and
-- descriptions of operations come from the table of the bindings.

local host = require "nacre.host"
local display = require "nacre.display"
local styled = require "nacre.styled_output"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local lua_functions = require "nacre.lua_functions"
local reference = require "nacre.reference"
local facts = require "nacre.tensor_facts"
local suggestion = require "nacre.suggestion"
local topics = require "nacre.topics"
local other_libraries = require "nacre.other_libraries"
local say = require "nacre.wrap_lines".say

local help = {signature = display.signature}

local function operation(info, method)
  return reference.help(info, method, host.columns())
end

-- The tables of functions in nacre, by their paths.
local spaces = {"linalg", "nn", "nn.functional", "nn.init", "nn.utils",
                "nn.utils.rnn", "nn.utils.parametrizations",
                "nn.utils.parametrize", "optim", "optim.lr_scheduler",
                "optim.swa_utils", "utils", "utils.data", "autograd", "cuda",
                "fft", "json", "signal", "signal.windows", "text",
                "distributions", "distributions.transforms", "func",
                "autograd.functional", "autograd.forward_ad",
                "distributions.constraints"}

local function path_of_table(v)
  for _, path in ipairs(spaces) do
    if rawequal(lookup.value("nacre." .. path), v) then return path end
  end
end

-- The list of functions in a table.
local function members(path)
  local names = {}
  for _, name in ipairs(nacre._names(true)) do
    local at, last = name:match "^(.*)%.([%w_]+)$"
    if at == path then names[#names + 1] = last end
    local inner = not names[at] and at and at:match "^(.*)%."
    if inner == path then
      names[at] = true
      names[#names + 1] = at:sub(#path + 2)
    end
  end
  return ("nacre.%s contains\n%s\n%s"):format(path,
    reference.wrapped(table.concat(names, " "), "  ", host.columns()),
    reference.wrapped(("?nacre.%s.%s explains one"):format(path, names[1]),
                      "  ", host.columns()))
end

-- Formats rows of {name, doc} as two columns wrapped to the screen.
local function listing(rows)
  local width, column = host.columns(), 0
  for _, row in ipairs(rows) do column = math.max(column, #row[1]) end
  column = math.min(column, width // 2)
  for i, row in ipairs(rows) do
    local line = ("  %s%s  %s"):format(row[1],
      (" "):rep(column - #row[1]), row[2]:match "[^\n]*")
    rows[i] = #line <= width and line or line:sub(1, width - 3) .. "..."
  end
  return table.concat(rows, "\n")
end

local function topic(name)
  local row = topics.find(name)
  return row and ("%s\n  see %s, \"%s\""):format(
    reference.wrapped(row[2], "  ", host.columns()), row[3], row[4])
end

-- The functions of the global `shell`, which are the commands.
local function shell_functions()
  local rows = {}
  require "nacre.commands".each_function(function(name, command)
    rows[#rows + 1] = {"shell." .. name, command.doc}
  end)
  return "shell holds the commands as functions\n" .. listing(rows) ..
         "\n  ?shell.plot explains one"
end

-- How an object of Python is called, and the beginning of its documentation.
local function python_object(looks, name, v)
  local head, class, doc = looks.explain(name, v)
  local text = head .. (lookup.is_callable(v) and "" or "  " .. class)
  return (text .. "\n  " .. doc:gsub("\n", "\n  ")):gsub("%s+$", "")
end

local function describe(name, v)
  local looks = lookup.python(v)
  if looks then return (python_object(looks, name, v)) end
  if type(v) == "function" then
    local known = lua_functions.info(v)
    if known then
      return reference.brief(known, false, host.columns()) ..
             "\n  a function of Lua"
    end
    local info = debug.getinfo(v, "S")
    if info.what == "C" then return name .. "(...)\n  built in" end
    return ("%s%s\n  defined at %s:%d"):format(name, lookup.parameters(v),
      require "nacre.lua_values".escape_controls(info.short_src),
      info.linedefined)
  end
  if rawequal(v, nacre) then
    return ("%s is the library, %d functions and methods\n  %s.<Tab><Tab> " ..
            "lists them, ?%s.sum explains one, ??word searches"):format(name,
            #nacre._names(true), name, name)
  end
  local space = type(v) == "table" and path_of_table(v)
  if space then return members(space) end
  if name == "shell" and rawequal(v, _G.shell) then return shell_functions() end
  if lookup.value("nacre." .. tostring(v)) == v then
    return ("%s is the dtype %q, %d bytes an element\n%s"):format(name, v,
      nacre.empty(0, {dtype = v}):element_size(), topic "dtype")
  end
  local kind = facts.istensor(v) and "tensor" or type(v)
  return ("%s is a %s: %s"):format(name, kind, styled.brief(v))
end

-- Classes whose methods are described in the reference only.
local classes = {Module = "nacre.nn.Module",
                 Optimizer = "nacre.optim.Optimizer",
                 LRScheduler = "nacre.optim.lr_scheduler.LRScheduler"}

-- The description of a method of an object of these classes.
local function method_of_class(value, last)
  for name, path in pairs(classes) do
    local class = lookup.value(path)
    if class and rawequal(lookup.field(class, last), value) then
      return reference.described(name .. ":" .. last)
    end
  end
end

-- The result of nacre._info for a name, or for the function it stands for.
local function info_of(name, last, value, base)
  if type(value) == "function" then
    local path = name:match "^nacre%.(.+)$" or name:match "^torch%.(.+)$"
    return nacre._info(value) or path and nacre._info(path) or
           rawequal(lookup.value("nacre." .. last), value) and
           reference.described(last) or method_of_class(value, last)
  end
  if value ~= nil then        -- a class, nn.Linear, is a table
    return type(value) == "table" and nacre._info(value) or nil
  end
  local method = (base == nil or base == nacre or facts.istensor(base)) and
                 nacre._methods[last]
  if not method or base == nil then
    return nacre._info(name) or method and nacre._info(method) or
           name:find ":" and reference.described(name)
  end
  return nacre._info(method)
end

-- The members with this name in parts of the library, its objects and tensors:
-- explained if there is one, else listed. Those of the bridge to Python are
-- asked for with it: ?with is another question than ?py.with.
local function in_parts(last)
  local rows = {}
  for _, path in ipairs(nacre._names(true)) do
    if path:match "[.:]([%w_]+)$" == last and not path:find "^py%." then
      rows[#rows + 1] = {path, nacre._info(path)}
    end
  end
  for _, owner in ipairs {"t.", "Module:", "Optimizer:", "LRScheduler:"} do
    local field = reference.described(owner .. last)
    if field then rows[#rows + 1] = {field.name, field} end
  end
  if #rows == 1 then return operation(rows[1][2]) end
  for _, row in ipairs(rows) do row[2] = row[2] and row[2].doc or "" end
  return #rows > 0 and listing(rows) or nil
end

local function usage(name, whole)
  local commands = require "nacre.commands"
  local entry = commands.find(name)
  local exact = entry and (entry.name == name or entry.as == name)
  return entry and (exact or not whole) and
         require "nacre.command_help".text(entry) or nil
end

local function meaning(name)
  local command = name:match "^:(%a+)$" or name:match "^shell%.(%a+)$"
  local row = command and name:find "^shell" and
              require "nacre.commands".function_named(command)
  if row then return require "nacre.command_help".of_function(row) end
  if command then return usage(command) end
  local owner, last = name:match "^(.-)[.:]?([%w_]+)$"
  if not last then return nil end
  local value = lookup.value(name)
  local base = owner ~= "" and lookup.value(owner) or nil
  local method = facts.istensor(base)
  local info = info_of(name, last, value, base)
  if info then return operation(info, method) end
  if value == nil and (method or owner == "t" and base == nil) and
     reference.described("t." .. last) then
    return operation(reference.described("t." .. last))
  end
  local more = owner == "" and nacre._info(last)   -- load and nacre.load
  if value ~= nil then
    local own = describe(name, value)
    local itself = lua_functions.info(value) and "" or " of Lua itself"
    return more and ("nacre.%s\n%s%s"):format(operation(more), own, itself)
           or own
  end
  value = owner == "" and lookup.value("nacre." .. last)
  if value and reference.described(last) then
    return operation(reference.described(last))
  end
  if value then return describe("nacre." .. last, value) end
  if lexer.keywords[name] then return name .. " is a keyword of Lua" end
  return usage(name, true) or owner == "" and
         (in_parts(name) or topic(name) and name) or usage(name)
end

-- The help for a name, or nil.
function help.text(name)
  local text = meaning(name)
  local idea = rawget(_G, name) == nil and topic(name)
  return text and idea and text .. "\n" .. idea or text
end

-- A line that refers from a command to the function of nacre with its name.
function help.library(name)
  local info = lookup.value("nacre." .. name) and nacre._info(name)
  if not info then return nil end
  local short = display.signature(info):gsub(", %*.*$", ", ...)")
  return ("  there is also nacre.%s: ?nacre.%s"):format(short, name)
end

-- All names that have help, without the part they are in.
local function names()
  local list = {}
  for _, path in ipairs(nacre._names(true)) do
    list[#list + 1] = path:match "[%w_]+$"
  end
  for k in next, _G do
    if type(k) == "string" then list[#list + 1] = k end
  end
  return list
end

local function contains_all(text, words)
  for _, word in ipairs(words) do
    if not text:find(word, 1, true) then return false end
  end
  return true
end

-- How far a word is from a name and its description; less is nearer. If
-- several words are searched, one that is part of a name counts little.
local function distance(name, doc, word, alone)
  local last = name:match "[^.]*$":gsub("^:", "")
  if last == word then return 0 end
  local at = alone and last:find(word, 1, true)
  if at then return at == 1 and 1 or 2 end
  local whole = "%f[%w]" .. word:gsub("%p", "%%%0") .. "s?%f[^%w]"
  return doc:find(whole) and 3 or 4
end

-- The operations and commands whose name or description contains all words,
-- the nearest first.
local function matching(words)
  local found = {}
  local function try(name, doc)
    local low, text = name:lower(), doc:lower()
    if not contains_all(low .. " " .. text, words) then return end
    local sum = 0
    for _, word in ipairs(words) do
      sum = sum + distance(low, text, word, #words == 1)
    end
    found[#found + 1] = {name, doc, sum, #found}
  end
  for _, name in ipairs(nacre._names(true)) do
    local info = nacre._info(name)
    try(name, info and info.doc or "")
  end
  for _, row in ipairs(topics.list) do try(row[1], row[2]) end
  local said = {}             -- many names may be one thing here
  local functions = nacre._functions
  for _, entry in ipairs(other_libraries.rows) do
    local text = other_libraries.text(entry)
    if not said[text] and rawget(functions, entry.name) == nil then
      local n = #found
      try(entry.name, "here: " .. text)
      said[text] = #found > n
    end
  end
  for _, command in ipairs(require "nacre.commands".list) do
    try(":" .. command.name, command.doc)
  end
  table.sort(found, function(a, b)
    if a[3] ~= b[3] then return a[3] < b[3] end
    return a[4] < b[4]
  end)
  return found
end

local articles = {a = true, an = true, the = true, of = true}

-- ??words: entries with all words, else with their prefixes: "invert a matrix"
-- finds the inverse of square matrices.
local function search(text)
  local words, stems = {}, {}
  for word in text:lower():gmatch "%S+" do
    if not articles[word] then
      words[#words + 1] = word
      stems[#stems + 1] = word:sub(1, math.max(4, #word - 2))
    end
  end
  if #words == 0 then words[1], stems[1] = text:lower(), text:lower() end
  local found = matching(words)
  if #found == 0 then found = matching(stems) end
  return #found > 0 and listing(found) or nil
end

-- What ?topics lists.
local function all_topics()
  local rows = {}
  for i, row in ipairs(topics.list) do rows[i] = {row[1], row[2]} end
  return "topics that are not functions\n" .. listing(rows)
end

-- Names that begin with this one: conv1d, conv2d.
local function with_prefix(name)
  local list, seen = {}, {}
  for _, other in ipairs(names()) do
    if other:sub(1, #name) == name and not seen[other] then
      seen[other] = true
      list[#list + 1] = other
    end
  end
  table.sort(list)
  return table.concat(list, ", ", 1, math.min(#list, 6))
end

-- The equivalent of another library's name.
local function foreign_name(name)
  local entry = other_libraries.find(name:match "[%w_]*$")
  return entry and ("%s is not a name here\n  %s"):format(
    name, other_libraries.text(entry))
end

-- The message for a name without help.
local function no_help(name)
  local last = name:match "[%w_]*$"
  local near = suggestion.text(last, names(), "'%s'", true)
  local list = near == "" and #last > 2 and with_prefix(last) or ""
  return ("no help for '%s'%s"):format(name, list ~= "" and
    ", did you mean one of: " .. list or near)
end

-- ?name and ??word
function help.show(shell, name, wide)
  if name == "topics" and not wide then
    return say(all_topics())
  end
  if name == "" then
    return require "nacre.command_help".run(shell, "")
  end
  local text = wide and search(name) or
               not wide and (help.text(name) or foreign_name(name))
  if text then
    return say(text)
  end
  shell.fail(no_help(name))
end

-- What a method does, and its result for this object.
local function brief(info, name, path, object)
  local width = host.columns()
  local lines = {reference.brief(info, true, width)}
  local forms = facts.istensor(object) and
                require "nacre.result_forms".of(path, object, info)
  if forms then lines[2] = reference.wrapped(forms, "  ", width) end
  lines[#lines + 1] = ("  ?%s says more"):format(name)
  return table.concat(lines, "\n")
end

-- a:sum on Enter
function help.method(shell, path, name)
  local object = lookup.value(path)
  if object == nil and path:find "^[%a_][%w_]*$" then
    return shell.fail(("no variable '%s'%s"):format(path,
      suggestion.text(path, names(), "'%s'", true)))
  end
  local tensor = object == nil or facts.istensor(object)
  local info = tensor and nacre._methods[name] and nacre._info(name)
  if info then
    return say(brief(info, name, path, object))
  end
  local value = lookup.field(object, name)
  info = type(value) == "function" and (nacre._info(value) or tensor and
         nacre._methods[name] and reference.described(name) or
         method_of_class(value, name))
  if value ~= nil then
    return say(info and brief(info, name, path, object) or
               describe(name, value))
  end
  if tensor and lookup.properties[name] then
    return shell.fail(("%s is not a method: %s.%s"):format(name,
      path ~= "" and path or "(...)", name))
  end
  local list = {}
  lookup.members(object == nil and nacre._methods or object, function(k)
    list[#list + 1] = k
  end)
  shell.fail(("%s has no method '%s'%s"):format(
    tensor and "tensor" or type(object), name,
    suggestion.text(name, list, "'%s'", true)))
end

-- The help for the name around a position in a block; nil if none.
function help.at(text, point)
  local left = text:sub(1, point):match "[%w_.:]*$"
  local right = text:sub(point + 1):match "^[%w_]*"
  local name = (left .. right):gsub("^[.:]+", "")
  if name == "" then
    left = text:sub(1, point):match "([%w_.:]+)%s*%([^()]*$" or ""
    name = left
  end
  if name == "" then return nil end
  local ok, found = pcall(help.text, name)
  return ok and found and found .. "\n" or nil
end

return help
