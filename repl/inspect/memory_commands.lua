-- SPDX-License-Identifier: MIT
--
-- memory_commands.lua - the commands :gc, :reset and :mem.

local units = require "nacre.units"
local variables = require "nacre.variables"
local wrap = require "nacre.wrap_lines"

local memory_commands = {}

function memory_commands.gc()
  wrap.say(variables.released(function() end) .. "\n")
end

function memory_commands.reset(shell)
  local count
  local freed = variables.released(function()
    count = shell.remove_variables()
  end)
  wrap.say(("%d variables removed, %s\n"):format(count, freed))
end

function memory_commands.mem()
  local reached = require "nacre.reachable".all()
  for _, line in ipairs(variables.memory(reached)) do wrap.say(line) end
  wrap.say(("lua  %s\n"):format(
    units.bytes(collectgarbage "count" * 1024 // 1)))
end

-- shell.mem(): {name =, live =, peak =, cached =} for each device
function memory_commands.call() return nacre._devices() end

return memory_commands
