-- SPDX-License-Identifier: MIT
--
-- time_once.lua - :time runs an expression once, between two readings of the
-- clock and the counters, and prints one line:
--
--   <wall>  [<rate> (<pct> of peak)]  [<GB/s> (<pct>)]  <verdict>  <device>
--   [+alloc]  [first use: X of this]
--
-- What is not known is left out.

local machine = require "nacre.machine"
local peak = require "nacre.machine_peak"
local text = require "nacre.timing_text"
local measure = require "nacre.measure"
local units = require "nacre.units"

local nacre = package.loaded.nacre

local time_once = {}

-- Records events on the current device, if one is in use; `stop` returns the
-- seconds between them.
local function device_timer()
  if not machine.driver() then return nil end
  local from = nacre.cuda.Event {enable_timing = true}
  local to = nacre.cuda.Event {enable_timing = true}
  from:record()
  return function()
    to:record()
    to:synchronize()
    return from:elapsed_time(to) / 1e3
  end
end

-- Runs `run`, which returns its results in a table, or nil; returns the
-- seconds, too.
local function once(run, source)
  nacre.synchronize()
  local stop = device_timer()
  local before = measure.counters()
  local results, seconds = run()
  if not results then return nil end
  local r = measure.gained(before, 1)
  local device = stop and stop()
  r.seconds, r.opening = seconds, r.opening * 1e-9
  r.devicetime = r.uses > 0 and device or nil
  r.device, r.dtype = measure.place(r, measure.tensors(results, source, _G))
  r.emulated = r.uses > 0 and machine.emulated() or nil
  return r, results
end

local function withshare(rate, share, words)
  if not rate or not share then return rate end
  return ("%s (%s%s)"):format(rate, text.percent(share), words)
end

local function copied(r)
  local parts = {}
  if r.copied_in >= 1024 then
    parts[1] = units.bytes(r.copied_in // 1) .. " to it"
  end
  if r.copied_out >= 1024 then
    parts[#parts + 1] = units.bytes(r.copied_out // 1) .. " from it"
  end
  return #parts > 0 and "copied " .. table.concat(parts, ", ") or nil
end

-- Is the peak of this device missing?
local function unmeasured(r, known)
  return not known and not r.emulated and r.operations > 0 and
         r.flops + r.bytes >= 1e6
end

function time_once.line(r)
  local parts = {text.time(r.seconds)}
  local function add(part) parts[#parts + 1] = part end
  local working = math.max(r.seconds - r.opening, 1e-9)
  local device = r.devicetime and r.devicetime < 0.9 * working and
                 r.devicetime                 -- shown, and used for the rates
  local o, known = peak.reached(r, device or working)
  if device then add(text.time(device) .. " on the device") end
  if r.operations > 0 and o.flops >= 1e6 then
    add(withshare(text.rate(o.flops, "FLOP/s"), o.compute, " of peak"))
  end
  if r.operations > 0 and o.bytes >= 1e6 then
    add(withshare(text.rate(o.bytes, "B/s"), o.memory,
                  o.compute and "" or " of peak"))
  end
  add(text.cached(o))
  if r.opening < r.seconds / 2 then add(o.verdict) end
  if r.operations > 0 or r.uses > 0 then
    add(r.device .. (r.emulated and " (emulated: not a GPU)" or ""))
  else
    add(r.seconds < 2e-6 and "nothing to measure: no tensor operation" or
        "no tensor operation")
  end
  add(copied(r))
  if r.allocated >= 1 then add("+" .. units.bytes(r.allocated // 1)) end
  if r.opening > 0.02 * r.seconds then
    add(("first use: %s of this"):format(text.time(r.opening)))
  end
  if unmeasured(r, known) then add(peak.hint()) end
  return "  " .. table.concat(parts, "  ")
end

function time_once.run(shell, source)
  local unit = shell.compile(source)
  if not unit or not shell.sync_devices() then return end
  local r = once(function()
    local results = shell.run(unit)
    return results, unit.seconds
  end, source)
  if not r then return end
  local stream = shell.remark_stream()
  io[stream]:write(require "nacre.wrap_lines".text(time_once.line(r), stream),
                   "\n")
end

-- For programs: takes a function or a text; returns the counters, then the
-- results.
function time_once.call(f, ...)
  if type(f) == "string" then
    f = assert(load("return " .. f, "=stdin", "t") or load(f, "=stdin", "t"))
  end
  local args = table.pack(...)
  local r, results = once(function()
    local start = nacre.clock()
    local got = table.pack(f(table.unpack(args, 1, args.n)))
    nacre.synchronize()
    return got, nacre.clock() - start
  end)
  r.text = time_once.line(r):match "^%s*(.*)$"
  return r, table.unpack(results, 1, results.n)
end

return time_once
