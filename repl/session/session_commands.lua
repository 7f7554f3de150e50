-- SPDX-License-Identifier: MIT
--
-- session_commands.lua - the commands :seed, :clear, :gc, :reset, :mem and
-- :doctor, and the list of devices.

local host = require "nacre.host"
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

function session_commands.clear()
  local notebook = package.loaded["nacre.notebook_output"]
  if notebook then return notebook.clear() end
  if host.has_color "stdout" and host.is_terminal "stdout" then
    io.stdout:write "\27[H\27[2J\27[3J"
  end
end

function session_commands.gc()
  say(require "nacre.variables".released(function() end), "\n")
end

function session_commands.reset(shell)
  local count
  local freed = require "nacre.variables".released(function()
    count = shell.remove_variables()
  end)
  say(("%d variables removed, %s\n"):format(count, freed))
end

function session_commands.mem()
  local reached = require "nacre.reachable".all()
  for _, line in ipairs(require "nacre.variables".memory(reached)) do
    say(line)
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
local function ownfile(what, path, why)
  local there = not path or host.file_time(path)
  path = path and require "nacre.lua_values".escape_controls(path) or
         "none: " .. (why or "HOME is not set")
  say(("%-9s %s%s\n"):format(what, path,
                             there and "" or "  (none yet)"))
end

function session_commands.doctor()
  io.stdout:flush()
  if host.divert_stdout() then
    host.doctor()
    say(host.diverted_text())
  else                        -- into a file
    host.doctor()
  end
  ownfile("start-up", require "nacre.settings".initfile())
  ownfile("history", host.history_file(),
          os.getenv "NACRE_HISTORY" and "NACRE_HISTORY is empty")
  ownfile("peaks", require "nacre.machine_peak".path())
end

return session_commands
