-- SPDX-License-Identifier: MIT
--
-- axes.lua - what the axes of pictures have in common: which values can be
-- shown, where they lie, and the round numbers beside them.

local axes = {}

-- A number beside an axis.
function axes.number(v)
  if v % 1 == 0 and math.abs(v) < 1e9 then return ("%d"):format(v) end
  return ("%.3g"):format(v)
end

-- Can a value be shown?
function axes.usable(v, log)
  return v == v and v - v == 0 and (not log or v > 0)
end

-- The smallest and the largest of what `each` passes on; nil if nothing is.
function axes.extent(log, each)
  local low, high
  each(function(v)
    if not axes.usable(v, log) then return end
    low, high = math.min(low or v, v), math.max(high or v, v)
  end)
  return low, high
end

-- A scale from [low, high] to 0 .. n-1; one value lies in the middle.
function axes.scale(low, high, log, n)
  local f = log and math.log or function(v) return v end
  local a, b = f(low), f(high)
  if a == b then return function() return (n - 1) / 2 end end
  local half = b / 2 - a / 2 -- b - a may overflow
  return function(v) return (f(v) / 2 - a / 2) / half * (n - 1) end
end

-- The step of round numbers of which at most `most' lie between two values.
local function roundstep(low, high, most)
  local least = (high / 2 - low / 2) / most * 2
  local unit = 10.0 ^ math.floor(math.log(least, 10))
  for _, step in ipairs {unit, 2 * unit, 5 * unit} do
    if step >= least then return step end
  end
  return 10 * unit
end

-- At most `most' round numbers from low to high; on a logarithmic axis powers
-- of ten.
function axes.roundnumbers(low, high, most, log)
  local list = {}
  if log then
    local first, last = math.ceil(math.log(low, 10)), math.log(high, 10) // 1
    local step = math.max(1, math.ceil((last - first + 1) / most))
    for e = first, last, step do list[#list + 1] = 10.0 ^ e end
    return list
  end
  local step = roundstep(low, high, most)
  if not axes.usable(step, true) then return list end -- too large, or too small
  for k = math.ceil(low / step), high // step do list[#list + 1] = k * step end
  return list
end

return axes
