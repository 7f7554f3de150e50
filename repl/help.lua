-- SPDX-License-Identifier: MIT
--
-- help.lua - ?name, :help, a:sum on Enter, F1.  What it says of operations
-- comes from the binding's own table.

local host = require "nacre.host"
local inspect = require "nacre.inspect"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local reference = require "nacre.reference"

local help = {signature = reference.signature}

local function operation(info, method)
  return reference.help(info, method, host.columns())
end

-- The tables in nacre that hold functions, by the paths these have.
local spaces = {"linalg", "nn", "nn.functional", "autograd", "cuda"}

local function spaceof(v)
  for _, path in ipairs(spaces) do
    if rawequal(lookup.value("nacre." .. path), v) then return path end
  end
end

-- What a table of functions holds.
local function listed(path)
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
  return ("nacre.%s holds\n%s\n%s"):format(path,
    reference.wrapped(table.concat(names, " "), "  ", host.columns()),
    reference.wrapped(("?nacre.%s.%s explains one"):format(path, names[1]),
                      "  ", host.columns()))
end

local function describe(name, v)
  if type(v) == "function" then
    local info = debug.getinfo(v, "S")
    if info.what == "C" then return name .. "(...)\n  built in" end
    return ("%s%s\n  defined at %s:%d"):format(name, lookup.parameters(v),
      info.short_src, info.linedefined)
  end
  if rawequal(v, nacre) then
    return ("%s is the library, %d functions\n  %s.<Tab><Tab> lists them, " ..
            "?%s.sum explains one, ??word searches"):format(name,
            #nacre._names(), name, name)
  end
  local space = type(v) == "table" and spaceof(v)
  if space then return listed(space) end
  local kind = inspect.istensor(v) and "tensor" or type(v)
  return ("%s is a %s: %s"):format(name, kind, inspect.brief(v))
end

-- What nacre._info knows of a name, or of the function it stands for.
local function known(name, last, value, base)
  if type(value) == "function" then
    return nacre._info(value) or rawequal(lookup.value("nacre." .. last), value)
           and reference.described(last)
  end
  if value ~= nil then return nil end
  local method = (base == nil or base == nacre or inspect.istensor(base)) and
                 nacre._methods[last]
  if not method or base == nil then
    return nacre._info(name) or method and nacre._info(method)
  end
  return nacre._info(method)
end

-- The help for a name, or nil.
function help.text(name)
  local command = name:match "^:(%a+)$" or name:match "^shell%.(%a+)$"
  if command then
    local entry = require "nacre.commands".find(command)
    return entry and require "nacre.commands".usage(entry)
  end
  local owner, last = name:match "^(.-)[.:]?([%w_]+)$"
  if not last then return nil end
  local value = lookup.value(name)
  local base = owner ~= "" and lookup.value(owner) or nil
  local method = inspect.istensor(base)
  local info = known(name, last, value, base)
  if info then return operation(info, method) end
  if value == nil and method and reference.described("t." .. last) then
    return operation(reference.described("t." .. last))
  end
  local more = owner == "" and nacre._info(last)   -- load and nacre.load
  if value ~= nil then
    return describe(name, value) ..
           (more and "\nnacre." .. operation(more) or "")
  end
  value = owner == "" and lookup.value("nacre." .. last)
  if value and reference.described(last) then
    return operation(reference.described(last))
  end
  if value then return describe("nacre." .. last, value) end
  if lexer.keywords[name] then return name .. " is a word of Lua itself" end
  local entry = require "nacre.commands".find(name)
  return entry and require "nacre.commands".usage(entry)
end

local function names()
  local list = {table.unpack(nacre._names())}
  for k in next, _G do
    if type(k) == "string" then list[#list + 1] = k end
  end
  return list
end

-- ??word: every operation whose name or line has the word in it.
local function search(word)
  local found, low = {}, word:lower()
  for _, name in ipairs(nacre._names(true)) do
    local info = nacre._info(name) or {}
    local text = (name .. " " .. (info.doc or "")):lower()
    if text:find(low, 1, true) then
      local doc = (info.doc or ""):match "[^\n]*"
      found[#found + 1] = ("  %-18s %s"):format(name, doc)
    end
  end
  for _, command in ipairs(require "nacre.commands".list) do
    local text = (command.name .. " " .. command.doc):lower()
    if text:find(low, 1, true) then
      found[#found + 1] = ("  %-18s %s"):format(":" .. command.name,
                                                command.doc)
    end
  end
  return #found > 0 and table.concat(found, "\n") or nil
end

-- ?name and ??word
function help.show(shell, name, wide)
  if name == "" then
    return require "nacre.commands".run(shell, "help", "")
  end
  local text = wide and search(name) or not wide and help.text(name)
  if text then
    io.stdout:write(text, "\n")
    return
  end
  local close = host.suggest(name:match "[%w_]*$", names())
  shell.fail(("no help for '%s'%s"):format(name, close and
    (", did you mean '%s'?"):format(close) or ""))
end

-- a:sum on Enter
function help.method(shell, path, name)
  local object = lookup.value(path)
  if object == nil and path:find "^[%a_][%w_]*$" then
    local close = host.suggest(path, names())
    return shell.fail(("no variable '%s'%s"):format(path, close and
      (", did you mean '%s'?"):format(close) or ""))
  end
  local tensor = object == nil or inspect.istensor(object)
  local info = tensor and nacre._methods[name] and nacre._info(name)
  if info then
    io.stdout:write(operation(info, true), "\n")
    return
  end
  local value = lookup.field(object, name)
  info = type(value) == "function" and nacre._info(value)
  if value ~= nil then
    io.stdout:write(info and operation(info, true) or describe(name, value),
                    "\n")
    return
  end
  for _, property in ipairs(tensor and lookup.properties() or {}) do
    if property == name then
      return shell.fail(("%s is no method: %s.%s"):format(name, path, name))
    end
  end
  local list = {}
  lookup.members(object == nil and nacre._methods or object, function(k)
    list[#list + 1] = k
  end)
  local close = host.suggest(name, list)
  shell.fail(("%s has no method '%s'%s"):format(
    tensor and "tensor" or type(object), name,
    close and (", did you mean '%s'?"):format(close) or ""))
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
