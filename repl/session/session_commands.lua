-- SPDX-License-Identifier: MIT
--
-- session_commands.lua - the commands :seed :history :clear :gc :reset :mem
-- :doctor, and the list of devices.

local host = require "nacre.host"
local units = require "nacre.units"

local session_commands = {}

local function say(...) io.stdout:write(...) end

function session_commands.seed(shell, text)
  local n = math.tointeger(tonumber(text))
  if not n then return shell.fail ":seed needs an integer" end
  nacre.manual_seed(n)
end

-- The number and the first line of an entry.
local function entry(i, text)
  local line = text:match "[^\n]*"
  say(("%5d  %s%s\n"):format(i, line, #line < #text and " ..." or ""))
end

-- Calls each(number, text) for the last n entries of the history that have a
-- part in them, if one is given.
local function entries(n, part, each)
  local list = host.history()
  for i = n and math.max(1, #list - n + 1) or 1, #list do
    if not part or list[i]:find(part, 1, true) then each(i, list[i]) end
  end
end

function session_commands.history(shell, text)
  local part = text:match "^/(.-)/?$"
  local n = math.tointeger(tonumber(text)) or text == "" and 20 or nil
  if not n and not part then
    return shell.fail ":history takes a number or /text/"
  end
  entries(n, part, entry)
end

-- shell.history([N or part]): the texts, the oldest first
function session_commands.callhistory(which)
  local found, n = {}, math.tointeger(which)
  entries(n, not n and which, function(_, text) found[#found + 1] = text end)
  return found
end

function session_commands.clear()
  if host.has_color "stdout" and host.is_terminal "stdout" then
    say "\27[H\27[2J\27[3J"
  end
end

function session_commands.gc()
  say(require "nacre.variables".released(function() end), "\n")
end

function session_commands.reset(shell)
  local list = shell.userglobals()
  say(("%d variables removed, %s\n"):format(#list,
    require "nacre.variables".released(function()
      for _, name in ipairs(list) do rawset(_G, name, nil) end
      shell.forget()
    end)))
end

function session_commands.mem()
  local reached = require "nacre.reachable".all()
  for _, line in ipairs(require "nacre.variables".memory(reached)) do
    require "nacre.wrap_lines".say(line)
  end
  say(("lua  %s\n"):format(units.bytes(collectgarbage "count" * 1024 // 1)))
end

-- shell.mem(): {name =, live =, peak =, cached =} for each device
function session_commands.callmem() return nacre._devices() end

-- The CUDA devices and their memory, or why there is none.
function session_commands.devices()
  local cuda = nacre.cuda
  if not cuda.is_available() then return say("cuda  ", cuda.why(), "\n") end
  for i = 0, cuda.device_count() - 1 do
    local ok, free, total = pcall(cuda.mem_get_info, i)
    local name = ok and cuda.get_device_name(i)
    say(("cuda:%d  %s\n"):format(i, name and
      ("%s  %s free of %s"):format(name, units.bytes(free),
                                   units.bytes(total)) or free.message))
  end
end

-- The path of one of the program's files, and whether it exists.
local function ownfile(what, path)
  local there = not path or host.file_time(path)
  path = path and require "nacre.lua_values".escape_controls(path)
  say(("%-9s %s%s\n"):format(what, path or "none: HOME is not set",
                             there and "" or "  (none yet)"))
end

function session_commands.doctor()
  io.stdout:flush()
  host.doctor()
  ownfile("start-up", require "nacre.settings".initfile())
  ownfile("history", host.history_file())
  ownfile("peaks", require "nacre.machine_peak".path())
end

return session_commands
