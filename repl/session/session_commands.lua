-- SPDX-License-Identifier: MIT
--
-- session_commands.lua - the commands :seed, :clear and :doctor, and the list
-- of devices.

local host = require "nacre.host"
local own_files = require "nacre.own_files"
local units = require "nacre.units"

local session_commands = {}

local function say(...)
  require "nacre.wrap_lines".say(table.concat {...})
end

function session_commands.seed(shell, text)
  local n = math.tointeger(tonumber(text))
  if not n then return shell.fail ":seed needs an integer" end
  nacre.manual_seed(n)
end

function session_commands.clear(shell)
  if shell.notebook then return shell.notebook.clear() end
  if host.has_color "stdout" and host.is_terminal "stdout" then
    io.stdout:write "\27[H\27[2J\27[3J"
  end
end

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
local function ownfile(what, path, why)
  local there = not path or host.file_time(path)
  path = path and require "nacre.lua_values".escape_controls(path) or
         "none: " .. (why or "HOME is not set")
  say(("%-9s %s%s\n"):format(what, path,
                             there and "" or "  (none yet)"))
end

function session_commands.doctor()
  local terminal = host.terminal_text()
  io.stdout:flush()
  if host.divert_stdout() then
    host.doctor(terminal)
    say(host.diverted_text())
  else                        -- into a file
    host.doctor(terminal)
  end
  ownfile("start-up", own_files.startup())
  ownfile("history", host.history_file(),
          os.getenv "NACRE_HISTORY" and "NACRE_HISTORY is empty")
  ownfile("peaks", own_files.peaks())
end

return session_commands
