-- SPDX-License-Identifier: MIT
--
-- units.lua - times, sizes in bytes and rates as text with three significant
-- digits.

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

-- 1.21e9, "B/s" -> "1.21 GB/s"; nil if it is next to nothing.
function units.rate(x, unit)
  for _, scale in ipairs {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}} do
    if x >= scale[1] * 0.9995 then
      return ("%s %s%s"):format(digits(x / scale[1]), scale[2], unit)
    end
  end
end

return units
