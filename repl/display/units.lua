-- SPDX-License-Identifier: MIT
--
-- units.lua - times, sizes in bytes and rates as text with three significant
-- digits, and times and sizes read from text.

local units = {}

-- Three significant digits.
local function digits(x)
  if x >= 100 then return ("%.0f"):format(x) end
  if x >= 10 then return ("%.1f"):format(x) end
  return ("%.2f"):format(x)
end

function units.seconds(s)
  if s >= 120 then
    return ("%d min %02.0f s"):format(s // 60, s % 60)
  end
  for _, unit in ipairs {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}} do
    if s >= unit[1] * 0.9995 then
      return digits(s / unit[1]) .. " " .. unit[2]
    end
  end
  return digits(s / 1e-9) .. " ns"
end

function units.bytes(n)
  if n < 1024 then return ("%d B"):format(n) end
  for _, unit in ipairs {"KiB", "MiB", "GiB"} do
    n = n / 1024
    if n < 1023.95 then return ("%.1f %s"):format(n, unit) end
  end
  return ("%.1f TiB"):format(n / 1024)
end

-- 1.21e9, "B/s" -> "1.21 GB/s"; nil below 1e6.
function units.rate(x, unit)
  for _, scale in ipairs {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} do
    if x >= scale[1] * 0.9995 then
      return ("%s %s%s"):format(digits(x / scale[1]), scale[2], unit)
    end
  end
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

return units
