-- SPDX-License-Identifier: MIT
--
-- help.lua - ?name, :help, a:sum on Enter, F1.  What it says of operations
-- comes from the binding's own table.

local host = require "nacre.host"
local inspect = require "nacre.inspect"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"

local help = {}

-- "sum(self, dim=nil) -> tensor", without self if it is called as a method.
function help.signature(info, method)
  local text = info.signature or info.name .. "(...)"
  if method then text = text:gsub("%(self,?%s*", "(", 1) end
  return text
end

-- Text in lines of the screen's width, each with two blanks before it.
local function wrapped(text)
  local lines, line, room = {}, "", math.max(20, host.columns() - 2)
  for word in text:gmatch "%S+" do
    if line ~= "" and #line + 1 + #word > room then
      lines[#lines + 1] = "  " .. line
      line = ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = "  " .. line
  return table.concat(lines, "\n")
end

local function paragraphs(text)
  return (text:gsub("[^\n]+", wrapped))
end

local function operation(info, method)
  local lines = {help.signature(info, method)}
  if info.doc then lines[#lines + 1] = paragraphs(info.doc) end
  if info.value then lines[#lines + 1] = "  value  " .. info.value end
  local name = "grad"
  for i = 1, 3 do -- the gradient for each operand that has one
    local grad = info.grad and info.grad[i]
    if grad then
      lines[#lines + 1] = ("  %-5s  %s"):format(name, grad)
      name = ""
    end
  end
  if method then
    lines[1] = lines[1]:gsub("^%a+:", "")
  elseif info.method and info["function"] then
    lines[#lines + 1] = ("  also a method: t:%s(...)"):format(info.name)
  end
  return table.concat(lines, "\n")
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
  if rawequal(v, nacre.cuda) then
    return ("%s is about CUDA devices\n  %s.<Tab><Tab> lists it, " ..
            "?%s.synchronize explains one"):format(name, name, name)
  end
  local kind = inspect.istensor(v) and "tensor" or type(v)
  return ("%s is a %s: %s"):format(name, kind, inspect.brief(v))
end

-- The help for a name, or nil.
function help.text(name)
  local command = name:match "^:(%a+)$"
  if command then
    local entry = require "nacre.commands".find(command)
    return entry and require "nacre.commands".usage(entry)
  end
  local owner, last = name:match "^(.-)[.:]?([%w_]+)$"
  if not last then return nil end
  local value = lookup.value(name)
  local other = nacre._info(type(value) == "function" and value or name)
  if other and other.name:find "[.:]" then return operation(other) end
  local base = owner ~= "" and lookup.value(owner) or nil
  local isop = owner == "" or base == nacre or inspect.istensor(base) or
               base == nil
  local info = isop and type(value) ~= "table" and (owner ~= "" or value == nil or
               value == nacre[last]) and nacre._info(last)
  if info then return operation(info, inspect.istensor(base)) end
  local more = owner == "" and nacre._info(last)   -- load and nacre.load
  if value ~= nil then
    return describe(name, value) ..
           (more and "\nnacre." .. operation(more) or "")
  end
  value = owner == "" and lookup.value("nacre." .. last)
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
