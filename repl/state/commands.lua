-- SPDX-License-Identifier: MIT
--
-- commands.lua - finds the commands of command_list.lua; run_command.lua runs
-- them.

local commands = {list = require "nacre.command_list",
                  functions = require "nacre.function_list"}

-- Other names: those of IPython, and of commands that became a part of another
-- one. What follows the name of the command precedes the arguments.
local aliases = {timeit = "bench", exit = "quit", who = "whos", pwd = "cd",
                 dev = "set device", device = "set device",
                 timing = "set timing", record = "save --record",
                 transcript = "save --transcript"}
commands.aliases = aliases

-- Of these, the names that shell.alias has given.
commands.own_aliases = {}

-- What an alias stands for that is a command of the system.
local SYSTEM <const> = {name = "!", args = "words...:file", run = "system",
                        module = "nacre.dispatch", varies = true,
                        doc = "run a system command"}

-- The command for a name after a percent sign, as in IPython.
local magics = {hist = "history", lsmagic = "help", quickref = "help"}

-- The command that an alias stands for, and the arguments it gives.
local function of_alias(name)
  local line = (aliases[name] or ""):match "^!%s*(.*)$"
  if line then return SYSTEM, line end
  local target, given = (aliases[name] or ""):match "^(%S+)%s*(.*)$"
  for _, command in ipairs(target and commands.list or {}) do
    if command.name == target then return command, given end
  end
end

-- The command whose name, or only alias, begins so; nil if there are several.
local function of_prefix(name)
  local found
  for _, command in ipairs(commands.list) do
    if command.name:sub(1, #name) == name then
      if found then return nil end
      found = command
    end
  end
  if found then return found, "" end
  for alias in next, aliases do
    if alias:sub(1, #name) == name then
      if found then return nil end
      found = alias
    end
  end
  return of_alias(found)
end

-- The command, or the function of `shell`, of exactly this name; or nil.
function commands.named(name)
  for _, command in ipairs(commands.list) do
    if command.name == name or command.as == name then return command end
  end
end

function commands.function_named(name)
  for _, row in ipairs(commands.functions) do
    if row.name == name then return row end
  end
end

-- Finds a command by name, alias or an unambiguous prefix, and the arguments
-- that an alias puts before those typed, or "".
function commands.find(name)
  local command = commands.named(name)
  if command then return command, "" end
  if aliases[name] then return of_alias(name) end
  if name ~= "" then return of_prefix(name) end
end

local parsed = setmetatable({}, {__mode = "k"})

-- The parameters of a command, as those of nacre._info; `shown' stands for one
-- in the usage.
function commands.params(command)
  if not parsed[command] then
    local s = nacre._signature(command.name, command.args or "")
    for _, p in ipairs(s.params) do
      if not p.byname then p.shown = (command.shown or {})[p.name] end
      p.doc = p.byname and (command.options or {})[p.name]
    end
    parsed[command] = s.params
  end
  return parsed[command]
end

-- The same by the command's name.
function commands.params_of(name)
  return commands.params((commands.find(name)))
end

-- What to type for a word that is the name or alias of a command.
function commands.line(word, rest)
  if word == "ls" then return ("!ls " .. (rest or "")):match "^.*%S" end
  local command, given = commands.find(word)
  local exact = command and (aliases[word] or command.name == word or
                             command.as == word)
  if not exact then return nil end
  if command == SYSTEM then
    return ("!%s %s"):format(given, rest or ""):match "^.*%S"
  end
  return (":%s %s %s"):format(command.name, given, rest or "")
    :gsub("%s+", " ", 2):match "^.*%S"
end

-- The name and the arguments of a line that is a command, or nil.
function commands.parse(text)
  local name, rest, sign = require "nacre.input_block".command(text)
  if not name then return nil end
  return sign == "%" and magics[name] or name, rest:match "^%s*(.-)%s*$"
end

-- The command of a line and its arguments, those of an alias first, or nil.
function commands.of(text)
  local name, rest = commands.parse(text)
  local command, given = commands.find(name or "")
  if not name or not command then return nil end
  return command, given == "" and rest or given .. " " .. rest
end

-- Does the command of this name take Lua?
function commands.takes_lua(name)
  local command = commands.find(name)
  return command ~= nil and command.lua == true
end

-- Does the output of a command differ from session to session?
function commands.varies(command, rest)
  local varies = command.varies
  if type(varies) == "function" then return varies(rest) end
  return varies == true
end

-- Calls each(name, command) for the functions of `shell`.
function commands.each_function(each)
  for _, command in ipairs(commands.list) do
    each(command.as or command.name, command)
  end
  for _, row in ipairs(commands.functions) do each(row.name, row) end
end

return commands
