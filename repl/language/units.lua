-- SPDX-License-Identifier: MIT
--
-- units.lua - times, sizes in bytes and rates as text with three significant
-- digits, and times and sizes read from text.

local nacre = package.loaded.nacre or _G.nacre

local units = {}

-- x rounded to n significant digits.
function units.round(x, n)
  if x == 0 or x ~= x or x == math.huge or x == -math.huge then return x end
  local unit = 10.0 ^ (math.floor(math.log(math.abs(x), 10)) - n + 1)
  return math.floor(x / unit + 0.5) * unit
end

-- x with n significant digits and without an exponent.
local function significant(x, n)
  if x == 0 then return "0" end
  x = units.round(x, n)
  local decimals = n - 1 - math.floor(math.log(math.abs(x), 10) + 1e-9)
  return ("%%.%df"):format(math.max(0, decimals)):format(x)
end

-- The first of the scales {{size, name}, ...} that x, rounded to n digits,
-- reaches, or nil.
local function scale_of(x, n, scales)
  x = units.round(x, n)
  for _, scale in ipairs(scales) do
    if x >= scale[1] * 0.9999 then return scale end
  end
end

local TIMES = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}

local function minutes(s)
  return ("%d min %02.0f s"):format(s // 60, s % 60)
end

-- A time with n significant digits, by default 3.
function units.seconds(s, n)
  n = n or 3
  if s >= 119.5 then return minutes(s) end
  local scale = scale_of(s, n, TIMES) or TIMES[#TIMES]
  return significant(s / scale[1], n) .. " " .. scale[2]
end

-- "100 .. 103 ms"
function units.seconds_range(low, high, n)
  if high >= 119.5 then
    return units.seconds(low, n) .. " .. " .. units.seconds(high, n)
  end
  local scale = scale_of(high, n, TIMES) or TIMES[#TIMES]
  return ("%s .. %s %s"):format(significant(low / scale[1], n),
                                significant(high / scale[1], n), scale[2])
end

units.bytes = nacre._bytes_text

local RATES = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}

-- 1.36e12, "FLOP/s" is "1.36 TFLOP/s"; nil if x is below 1. A second number
-- shows its unit only if that differs: "1.66" or "1.66 PFLOP/s".
function units.rate(x, unit, n, other)
  n = n or 3
  local scale = x >= 1 and x < math.huge and scale_of(x, n, RATES)
  if not scale then return nil end
  local same = other and other < 1000 * scale[1]
  return significant(x / scale[1], n) .. " " .. scale[2] .. unit,
         same and significant(other / scale[1], 3) or
         other and units.rate(other, unit) or nil
end

local SECONDS = {[""] = 1, us = 1e-6, ms = 1e-3, s = 1, m = 60, min = 60,
                 h = 3600}

-- "10s", "500ms", "2m", "2min", "1h" or "10" in seconds; nil for other text.
function units.parse_seconds(text)
  local n, unit = text:match "^([%d.]+)%s*(%a*)$"
  return tonumber(n) and SECONDS[unit] and tonumber(n) * SECONDS[unit]
end

local SHIFTS = {[""] = 0, k = 10, m = 20, g = 30, t = 40}

-- "500M", "2 GiB" or "1000" in bytes, an integer; nil for other text.
function units.parse_bytes(text)
  local n, unit, tail = text:match "^([%d.]+)%s*([kKmMgGtT]?)(i?[bB]?)$"
  return tonumber(n) and tail ~= "i" and
         math.tointeger(tonumber(n) * 2.0 ^ SHIFTS[unit:lower()] // 1)
end

-- "1 input", "2 inputs"
function units.count(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

-- After a line of times, whether the devices in use are real: "" if they are.
function units.emulated_mark()
  return require "nacre.machine".emulated() and
         "  (CUDA is emulated: not a GPU)" or ""
end

return units
