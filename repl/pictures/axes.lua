-- SPDX-License-Identifier: MIT
--
-- axes.lua - what the axes of pictures have in common: which values can be
-- shown, where they lie, and the round numbers beside them.

local axes = {}

-- A number beside an axis from low to high: three digits, or as many as say it
-- to a hundredth of the axis, on which there are 10 numbers at most.
function axes.number(v, low, high)
  local room, most = (high - low) / 100, math.max(math.abs(low), math.abs(high))
  local whole = room > 0 and room < most * 1e-6 and 1e15 or 1e9
  if v % 1 == 0 and math.abs(v) < whole then return ("%d"):format(v) end
  for digits = 3, 16 do
    local text = ("%." .. digits .. "g"):format(v)
    if not (room > 0 and math.abs(tonumber(text) - v) > room) then
      return text
    end
  end
  return ("%.17g"):format(v)
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
