-- SPDX-License-Identifier: MIT
--
-- run_modes.lua - what the options --strict, --nan, --time and --profile do
-- before the program runs and after it.

local host = require "nacre.host"
local state = require "nacre.state"
local units = require "nacre.units"

local run_modes = {}

local options                 -- of the command line
local start                   -- the counters when the program began

local function command(name)
  return require "nacre.run_command".callable(name)
end

local function counters()
  local flops, bytes = nacre._counters()
  return {clock = host.clock(), flops = flops, bytes = bytes}
end

function run_modes.begin(given)
  state.options, options = given, given
  if options.strict then require "nacre.globals".strict() end
  if options.nan then command "nan"(options.nan) end
  if options.profile then require "nacre.profile".start() end
  start = counters()
end

-- Adds the peak memory of each device that was used.
local function devices(parts)
  for _, d in ipairs(nacre._devices()) do
    if d.name ~= "cpu" and (d.peak or d.live or 0) > 0 then
      parts[#parts + 1] = ("%s %s"):format(d.name,
                                           units.bytes(d.peak or d.live))
    end
  end
end

local function time()
  local now = counters()
  local wall = now.clock - start.clock
  local cpu, peak = host.resource_usage()
  local parts = {"wall " .. units.seconds(wall), "cpu " .. units.seconds(cpu)}
  parts[#parts + 1] = (units.rate((now.flops - start.flops) / wall, "FLOP/s"))
  parts[#parts + 1] = (units.rate((now.bytes - start.bytes) / wall, "B/s"))
  parts[#parts + 1] = "peak " .. units.bytes(peak)
  devices(parts)
  io.stderr:write("  ", table.concat(parts, "  "),
                  units.emulated_mark(), "\n")
end

-- Writes the table of operations to its file or to stderr.
local function profile()
  local wall = host.clock() - start.clock
  local text = require "nacre.profile".report(wall)
  if options.profile == "" then
    io.stderr:write(text)
    return
  end
  local ok, why = host.write_file(options.profile, text)
  if not ok then error("cannot write " .. why, 0) end
end

function run_modes.finish()
  io.stdout:flush()
  if options.time then time() end
  if options.profile then profile() end
end

return run_modes
