-- SPDX-License-Identifier: MIT
--
-- timing_text.lua - formats measurements: times with the digits that the
-- samples support, rates and their share of the measured peaks, what limits
-- them, warnings.

local host = require "nacre.host"
local machine = require "nacre.machine"
local facts = require "nacre.tensor_facts"
local stats = require "nacre.timing_stats"
local units = require "nacre.units"

local text = {}

text.time, text.range = units.seconds, units.seconds_range
text.rate = units.rate

-- A percentage; with 1 digit unless that would hide on which side of 100 it
-- is.
function text.percent(part, n)
  part = 100 * part
  if part < 1 then return "<1%" end
  if n == 1 and part < 95 then part = units.round(part, 1) end
  return ("%.0f%%"):format(part)
end

function text.digits(r)
  return r.samples and stats.digits(r.median, r.q3 - r.q1) or 3
end

-- For a run that only copies to a device or back: the bytes (the counter has
-- each twice, read and written) and the name of the peak.
local function onlycopies(r)
  local there, back = r.copied_in or 0, r.copied_out or 0
  local bytes = there + back
  if bytes == 0 or r.flops > 0 or r.bytes > 2.1 * bytes then return nil end
  return bytes, there > back and "h2d" or "d2h"
end

-- Returns flops and bytes per second, their shares of the peak, and the
-- verdict. `r` has the counters of a run, device and dtype; `peak' is the
-- device's measured peak (see machine_peak.lua), or nil.
function text.reached(r, seconds, peak)
  local copied, way = onlycopies(r)
  local o = {flops = r.flops / seconds, bytes = (copied or r.bytes) / seconds}
  if r.emulated or not peak then return o end
  local top = r.dtype and peak.gemm and peak.gemm[r.dtype]
  o.topflops, o.topbytes = top, peak.bandwidth
  o.compute = top and r.flops > 0 and o.flops / top or nil
  o.memory = peak.bandwidth and r.bytes > 0 and not copied and
             o.bytes / peak.bandwidth or nil
  if peak.h2d and peak.d2h then
    o.copies = ((r.copied_in or 0) / peak.h2d +
                (r.copied_out or 0) / peak.d2h) / seconds
  end
  local each = r.operations > 0 and seconds / r.operations or nil
  if each then o.verdict = stats.verdict(o, each, peak.latency) end
  if copied then
    o.memory, o.topbytes = o.copies, peak[way]
  elseif o.memory and o.memory > stats.CACHED then
    o.memory, o.cached = nil, true      -- no share of memory's peak
  end
  for _, share in ipairs {"compute", "memory", "copies"} do
    o[share] = o[share] and math.min(o[share], 1) -- the true peak is higher
  end
  return o
end

-- Does a run move more bytes than it computes?
function text.moves(o) return o.flops < o.bytes end

-- What limits a run: {rate, unit, share, peak}; `moves` chooses between bytes
-- and arithmetic.
function text.limit(o, moves)
  if moves == nil then
    moves = text.moves(o)
    if o.memory and o.compute then moves = o.memory > o.compute end
  end
  if moves then return {o.bytes, "B/s", o.memory, o.topbytes} end
  return {o.flops, "FLOP/s", o.compute, o.topflops}
end

-- A note if more bytes were read than memory can deliver.
function text.cached(o) return o.cached and "from a cache" or nil end

-- A line if one of the subjects prints, or nil.
function text.printed(results)
  for _, r in ipairs(results) do
    if r.prints then
      return "its output was shown once; the measured runs wrote to /dev/null"
    end
  end
end

-- A line if one of the devices is emulated, or nil.
function text.emulated(results)
  for _, r in pairs(results) do
    if r.emulated then
      return r.device .. " is emulated on the cpu: its times say nothing " ..
             "about a GPU"
    end
  end
end

function text.place(r)
  if r.device == "cpu" then
    return "cpu, " .. units.count(r.threads, "thread")
  end
  return r.device .. (r.emulated and " (emulated: not a GPU)" or "")
end

-- The operands in the order of the text: "float32[2x3] x float32[3x4]".
function text.operands(source, env)
  local tokens = require "nacre.lexer".tokens(source)
  local measure = require "nacre.measure"
  local names, product, seen = {}, false, {}
  for i, token in ipairs(tokens) do
    local last, next = (tokens[i - 1] or {}).text, (tokens[i + 1] or {}).text
    local field = last == "." or last == ":"
    product = product or field and measure.products[token.text] or false
    if token.kind == "name" and not field and next ~= "=" and
       facts.istensor(measure.value_of(env, token.text)) then
      names[#names + 1] = token.text
    end
  end
  local tensors = {}
  for _, name in ipairs(names) do
    if (product or not seen[name]) and #tensors < 4 then
      tensors[#tensors + 1] = facts.kind(env[name])
    end
    seen[name] = true
  end
  return table.concat(tensors, product and " x " or ", ")
end

--
-- Samples
--
local BINS = 12

-- A histogram of the samples. Outliers, which would squeeze the rest into one
-- bar, are only counted.
function text.histogram(r)
  local sorted, bins = stats.sorted(r.samples), {}
  local low, high = r.min, stats.bulk(sorted)
  if #sorted < 5 or high <= low then return nil end
  for i = 1, BINS do bins[i] = 0 end
  local far = 0
  for _, x in ipairs(sorted) do
    local i = math.min(BINS, math.floor((x - low) / (high - low) * BINS) + 1)
    if x > high then far = far + 1 else bins[i] = bins[i] + 1 end
  end
  local line = host.has_utf8() and require "nacre.display".sparkline(bins) or
               text.ramp(bins)
  local rest = far > 0 and ("   %d longer, up to %s"):format(far,
               text.time(r.max)) or ""
  local least = text.range(low, high, 3):match "^%S+"
  return ("%s %s %s%s"):format(least, line, text.time(high), rest)
end

-- The counts as characters, "_" for none.
function text.ramp(bins)
  local top = math.max(table.unpack(bins))
  local line = require "nacre.character_image".map(function(i)
    return bins[i] / top
  end, #bins, 1)[1]
  return (line:sub(2, -2):gsub(" ", "_"))
end

-- "10 runs", "50 x 10000 runs"
function text.runs(r)
  if r.n == 1 then return ("%d runs"):format(#r.samples) end
  return ("%d x %d runs"):format(#r.samples, r.n)
end

-- The reasons of a driver for limiting a clock.
local REASONS = {{0x04, "power cap"}, {0x08, "hardware slowdown"},
                 {0x20, "heat"}, {0x40, "heat"}, {0x80, "power brake"}}

-- How a GPU's clock changed between two readings, if it matters.
function text.clock(from, to, bits)
  if not to then return nil end
  local why
  for _, reason in ipairs(REASONS) do
    if bits & reason[1] ~= 0 then why = reason[2] end
  end
  if to >= 0.95 * from and to <= 1.05 * from then
    return why and ("the GPU's clock is held at %d MHz (%s)"):format(to, why)
  end
  return ("the GPU's clock went from %d to %d MHz%s"):format(from, to,
    why and " (" .. why .. ")" or "")
end

-- The reasons to doubt the figures, a list.
function text.doubts(r)
  local list = {}
  local spread = (r.q3 - r.q1) / r.median
  if spread > 0.1 then
    list[1] = ("middle half is %.0f%% of the median"):format(100 * spread)
  end
  if r.half and math.abs(r.half) > 0.05 then
    list[#list + 1] = ("the second half took %.0f%% %s than the first " ..
      "(clock or thermal drift)"):format(100 * math.abs(r.half),
      r.half > 0 and "longer" or "less")
  end
  if r.short then
    list[#list + 1] = ("the budget holds only %d samples"):format(#r.samples)
  end
  list[#list + 1] = r.clock and text.clock(table.unpack(r.clock))
  return list, spread
end

-- A warning if the machine was busy during a measurement; nil if not. It
-- concerns the machine, so it is given once for all results.
function text.load(results)
  local most = 0
  for _, r in ipairs(results) do most = math.max(most, r.load or 0) end
  if most <= machine.processors then return nil end
  return ("warning: load average %.1f on %s"):format(most,
    units.count(machine.processors, "core"))
end

-- All doubts on one line, or nil.
function text.warning(r)
  local list, spread = text.doubts(r)
  if #list == 0 then return nil end
  local digit = spread > 1 and "any" or spread > 0.1 and "the second" or
                "the third"
  return ("%s: do not trust %s digit"):format(table.concat(list, ", "), digit)
end

-- Is the run about as fast as an empty loop, so that its time means nothing?
function text.nothing(r)
  if r.operations > 0 then return false end
  local kind = r.text and "text" or "function"
  return r.median < 2 * require "nacre.measure".empty(kind) + 2e-9
end

return text
