-- SPDX-License-Identifier: MIT
--
-- machine_peak.lua - measures the peaks of this machine: memory bandwidth,
-- matrix products of each dtype, the cost of the smallest operation, copies to
-- a device and back. The figures are kept in a file, per processor and number
-- of threads, and per GPU and driver.

local host = require "nacre.host"
local json = require "nacre.json"
local machine = require "nacre.machine"
local own_files = require "nacre.own_files"
local text = require "nacre.timing_text"
local units = require "nacre.units"

local nacre = package.loaded.nacre
local clock, synchronize = nacre.clock, nacre.synchronize

local peak = {}

--
-- The file
--
local known                   -- what the file holds: key to figures

-- The contents of the file; an empty table if it is not ours.
local function read()
  local path = own_files.peaks()
  local all = path and json.load(path)
  return type(all) == "table" and all.version == 1 and
         type(all.machines) == "table" and all.machines or {}
end

local function load()
  known = known or read()
  return known
end

-- Adds figures to the file, which other programs may have changed; nil and why
-- if that fails.
local function save(figures)
  local path = own_files.peaks()
  if not path then return nil, "there is no HOME to keep it in" end
  local all = read()
  for key, p in pairs(figures) do all[key] = p end
  local ok, why = host.makefolders(path:match "^(.*)/")
  if ok then ok, why = json.save(path, {version = 1, machines = all}) end
  return ok, why
end

-- The key of figures in the file; nil for an emulated device, whose times mean
-- nothing.
function peak.key(device)
  if device == "cpu" then
    return machine.model() .. ", " ..
           units.count(nacre.get_num_threads(), "thread")
  end
  if machine.emulated() then return nil end
  local p = nacre.cuda.get_device_properties(device)
  return ("%s, %s, %s"):format(p.name, p.uuid,
                              machine.driver() or "?")
end

local function positive(v)
  return type(v) == "number" and v > 0 and v < math.huge
end

-- Are all figures usable numbers? The file may hold anything.
local function is_valid(p)
  if type(p) ~= "table" or type(p.gemm) ~= "table" or not p.date then
    return false
  end
  for _, v in pairs(p.gemm) do
    if not positive(v) then return false end
  end
  return positive(p.copy) and positive(p.triad) and positive(p.bandwidth) and
         positive(p.latency) and (not p.h2d or positive(p.h2d)) and
         (not p.d2h or positive(p.d2h))
end

-- The figures of a device, or nil if it was not measured.
function peak.of(device)
  local key = peak.key(device)
  local p = key and load()[key]
  return is_valid(p) and p or nil
end

-- What a run reached of the peaks, as timing_text.reached returns it, and the
-- peaks, if they are known.
function peak.reached(r, seconds)
  local known = not r.emulated and peak.of(r.device) or nil
  return text.reached(r, seconds, known), known
end

local hint_given

-- A hint in place of a share of the peak, once a session.
function peak.hint()
  if hint_given then return nil end
  hint_given = true
  return "(:peak to measure)"
end

-- Measuring: the best of the runs that fit into a share of the time
local SHARE = 0.3             -- seconds for each figure, about

local function best(f, runs, share)
  f()
  synchronize()
  local least, start, n = math.huge, clock(), 0
  repeat
    local begin = clock()
    for _ = 1, runs or 1 do f() end
    synchronize()
    least, n = math.min(least, (clock() - begin) / (runs or 1)), n + 1
  until n >= 3 and clock() - start > (share or SHARE)
  return least
end

local function vector(n, device)
  return nacre.ones(n, {dtype = "float32", device = device})
end

-- The size of a vector that fits in no cache, if there is memory for three.
local function large(device)
  if device == "cpu" then
    return math.max(64 << 20, math.min(4 * machine.cache(), 256 << 20))
  end
  local free = nacre.cuda.mem_get_info(device)
  return math.min(256 << 20, free // 8)
end

local function bandwidth(p, device)
  local n = large(device) // 4
  local x, y, z = vector(n, device), vector(n, device), vector(n, device)
  p.copy = 8 * n / best(function() y:copy_(x) end)
  p.triad = 12 * n / best(function()
    nacre.add(x, y, {alpha = 3, out = z})
  end)
  p.bandwidth = math.max(p.copy, p.triad)
  x:free()
  y:free()
  z:free()
end

-- A matrix of distinct numbers: equal ones take less power on a GPU, which
-- then runs at a higher clock.
local function matrix(n, dtype, device)
  return nacre.linspace(-1, 1, n * n, {device = device}):reshape(n, n):to(dtype)
end

-- FLOP/s of a product of size n.
local function product(n, dtype, device, share)
  local a <close> = matrix(n, dtype, device)
  local y <close> = nacre.zeros(n, n, {dtype = dtype, device = device})
  local seconds = best(function() nacre.mm(a, a, {out = y}) end, 1, share)
  return 2 * n ^ 3 / seconds, seconds
end

-- Grows the size until a product takes long enough, then spends the time on
-- the best size.
local function gemm(dtype, device)
  local n, most, at = 256, 0, 256
  repeat
    local rate, seconds = product(n, dtype, device, 0)
    if rate > most then most, at = rate, n end
    n = 2 * n
  until seconds > 0.02 or n > 16384
  return math.max(most, (product(at, dtype, device)))
end

local DTYPES = {"float32", "float64", "float16", "bfloat16"}

local function products(p, device)
  p.gemm = {}
  for _, dtype in ipairs(DTYPES) do p.gemm[dtype] = gemm(dtype, device) end
end

-- The time of the smallest operation.
local function latency(device)
  local x = vector(1, device)
  return best(function() x:add_(1) end, 1000)
end

local function copies(p, device)
  local n = (64 << 20) // 4
  local here = nacre.ones(n, {dtype = "float32", device = "cpu"}):pin_memory()
  local there = vector(n, device)
  p.h2d = 4 * n / best(function() there:copy_(here) end)
  p.d2h = 4 * n / best(function() here:copy_(there) end)
  here:free()
  there:free()
end

function peak.measure(device)
  local p = {date = os.date "!%Y-%m-%d"}
  collectgarbage()
  bandwidth(p, device)
  products(p, device)
  p.latency = latency(device)
  if device ~= "cpu" then copies(p, device) end
  collectgarbage()
  return p
end

--
-- Showing
--
local function rate(x, unit) return (text.rate(x, unit)) or "-" end

local function lines(device, p)
  local list = {
    ("%s   %s"):format(device, peak.key(device)),
    ("  memory     %s copy, %s triad"):format(rate(p.copy, "B/s"),
                                              rate(p.triad, "B/s")),
  }
  for _, dtype in ipairs(DTYPES) do
    if p.gemm[dtype] then
      list[#list + 1] = ("  products   %-12s %s"):format(rate(p.gemm[dtype],
        "FLOP/s"), dtype)
    end
  end
  list[#list + 1] = ("  launch     %s"):format(text.time(p.latency))
  if p.h2d then
    list[#list + 1] = ("  copies     %s to it, %s from it (pinned)"):format(
      rate(p.h2d, "B/s"), rate(p.d2h, "B/s"))
  end
  return list
end

-- The devices, and why others are left out.
local function devices()
  local list, notes = {"cpu"}, {}
  if not nacre.cuda.is_available() then
    notes[1] = "cuda   " .. nacre.cuda.why()
    return list, notes
  end
  local emulated = machine.emulated()
  for i = 0, nacre.cuda.device_count() - 1 do
    if emulated then
      notes[#notes + 1] = ("cuda:%d is emulated: it has no peak to measure")
                          :format(i)
    else
      list[#list + 1] = "cuda:" .. i
    end
  end
  return list, notes
end

-- Why the figures should not be kept; nil if they may be.
local function why_disturbed()
  local load, limit = machine.load(), 0.5 * machine.processors
  if not load or load <= limit then return nil end
  return ("load average is %.1f on %s, so the peaks may be higher; measure " ..
          "again when it is below %.1f"):format(load,
          units.count(machine.processors, "core"), limit)
end

-- Measures what is missing, or everything `again`; prints the figures and the
-- file. Figures that other programs disturbed are not kept.
function peak.show(again, stream)
  local list, notes = devices()
  local function say(text)
    io[stream]:write(require "nacre.wrap_lines".text(text, stream), "\n")
    io[stream]:flush()
  end
  local measured
  local doubt = why_disturbed()
  for _, device in ipairs(list) do
    local kept = not again and peak.of(device)
    local p = kept or nil
    if not kept then
      p, measured = peak.measure(device), measured or {}
      measured[peak.key(device)] = p
    end
    say(table.concat(lines(device, p), "\n"))
    if kept then say("  measured on " .. p.date) end
  end
  for _, note in ipairs(notes) do say(note) end
  if not measured then return end
  if doubt then return say("not kept: " .. doubt) end
  for key, p in pairs(measured) do load()[key] = p end
  local ok, why = save(measured)
  say(ok and "kept in " .. own_files.peaks() or
      "warning: not kept: " .. tostring(why))
end

function peak.run(shell, words)
  if words ~= "" and words ~= "again" then
    return shell.fail ":peak takes nothing, or: again"
  end
  peak.show(words == "again", "stdout")
end

-- For programs: the figures of a device, measured if they are missing, and
-- kept if nothing else was running.
function peak.call(device)
  device = device or "cpu"
  if type(device) ~= "string" then error("a device is a name", 2) end
  local p = peak.of(device)
  if p then return p end
  local key = peak.key(device)
  if not key then error(device .. " is emulated: it has no peak", 2) end
  local doubt = why_disturbed()
  p = peak.measure(device)
  if not doubt then
    load()[key] = p
    save {[key] = p}
  end
  return p
end

-- nacre --peak
function peak.main() peak.show(true, "stdout") end

return peak
