-- SPDX-License-Identifier: MIT
--
-- run_command.lua - runs the commands of command_list.lua, from the prompt and
-- as functions of `shell`.

local commands = require "nacre.commands"
local state = require "nacre.state"
local host = require "nacre.host"

local run_command = {}

-- What replaces commands of other shells.
local others = {ls = "!ls ", find = "??", apropos = "??", search = "??",
                doc = "?", info = "?", type = "?", pinfo = "?"}

-- The function of a row, `kind` "run" or "call", or nil.
local function function_of(command, kind)
  local f = command[kind]
  if type(f) == "function" or not command.module then return f end
  local module = require(command.module)
  return not f and kind == "run" and module[command.name] or module[f or kind]
end

local function report_unknown(shell, name, rest)
  local sign = others[name]
  if sign then
    return shell.fail(("no command :%s; that is %s"):format(name,
      (sign .. rest):match "^.*%S"))
  end
  local draws = require "nacre.python_names".modules[name]
  if draws then
    return shell.fail(("no command :%s; %s"):format(name, draws))
  end
  local list, starting = {}, {}
  for _, command in ipairs(commands.list) do
    list[#list + 1] = command.name
    if command.name:sub(1, #name) == name then
      starting[#starting + 1] = ":" .. command.name
    end
  end
  if #starting > 1 then
    return shell.fail((":%s may be %s"):format(name,
                                               table.concat(starting, ", ")))
  end
  local close = host.suggest(name, list)
  for _, row in ipairs(require "nacre.settings".list) do
    close = row[1] == name and "set " .. name or close
  end
  shell.fail(("no command :%s%s"):format(name,
    close and (", did you mean :%s?"):format(close) or
    "; :help lists the commands"))
end

local function execute(shell, name, rest)
  local command, given = commands.find(name)
  if not command then return report_unknown(shell, name, rest) end
  if given ~= "" then rest = (given .. " " .. rest):match "^.*%S" end
  if command.needs and rest == "" then
    return shell.fail((":%s needs %s"):format(command.name, command.needs))
  end
  if command.lua then return function_of(command, "run")(shell, rest) end
  local run = command.paged and require "nacre.pager".run
  if run then return run(shell, function_of(command, "run"), shell, rest) end
  shell.protected(function_of(command, "run"), shell, rest)
end

-- Runs a command. The line that corrects its argument is one of the command.
function run_command.run(shell, name, rest)
  execute(shell, name, rest)
  local line = rest ~= "" and state.correction
  if line and line == require "nacre.foreign_syntax".line(rest) then
    state.correction = (":%s %s"):format(name, line)
  end
end

-- A session for commands called by a program: their failures are errors.
local function raising_session()
  local shell = require "nacre.shell"
  return setmetatable({fail = function(text) error(text, 0) end},
                      {__index = shell, __newindex = shell})
end

-- The function of a command, which gets the arguments of an alias first.
local function callable(command, given)
  local call = function_of(command, "call")
  if call then
    return given == "" and call or function(...)
      return call(given:match "%S+$", ...)
    end
  end
  return function(text)
    local run = function_of(command, "run")
    text = (given .. " " .. tostring(text or "")):match "^%s*(.*)$"
    return run(raising_session(), text)
  end
end

-- The function shell.NAME; nil if no command, alias or row of function_list.lua
-- has exactly this name.
function run_command.callable(name)
  local row = commands.function_named(name)
  if row then return function_of(row, row.name) end
  local command, given = commands.find(name)
  if not command or command.name ~= name and command.as ~= name and
     not commands.aliases[name] then return nil end
  return callable(command, given)
end

return run_command
