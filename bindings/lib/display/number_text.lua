-- SPDX-License-Identifier: MIT
--
-- number_text.lua - numbers as text: as Lua results, in statistics, and as the
-- shortest text that reads back as the same number.

local facts = require "nacre.tensor_facts"

local numbers = {}

-- nan without a sign: C prints "-nan" for 0/0 on some machines.
local function special(x)
  if x ~= x then return "nan" end
  if x == math.huge then return "inf" end
  return x == -math.huge and "-inf" or nil
end

-- Is y equal to x after conversion to the dtype?
local function equals_as(y, x, dtype)
  if dtype == "float64" then return y == x end
  return nacre.tensor(y, {dtype = dtype, device = "cpu"}):item() == x
end

-- Does the text read back as the number x of the dtype?
function numbers.same(text, x, dtype)
  return equals_as(tonumber(text), x, dtype)
end

-- Between 1e-4 and 1e16 without an exponent, as Python writes floats.
local function decimal_text(x, digits)
  local power = plain_format("%." .. digits - 1 .. "e", x)
  local exponent = tonumber(power:match "e(.*)")
  if exponent < -4 or exponent >= 16 then
    return plain_format("%." .. digits .. "g", x)
  end
  local decimals = math.max(digits - 1 - exponent, 1)
  local text = plain_format("%." .. decimals .. "f", x)
  return (text:gsub("(%.%d-)0+$", "%1"):gsub("%.$", ".0"))
end

-- An integer of a dtype; of uint64 x has the bits.
function numbers.integer(x, dtype)
  if dtype ~= "uint64" or x >= 0 then return tostring(x) end
  local tenth = (x >> 1) // 5
  return ("%d%d"):format(tenth, x - 10 * tenth)
end

-- The shortest text from which the same float of the dtype can be read.
function numbers.shortest(x, dtype)
  if special(x) then return special(x) end
  local float = facts.floats[dtype or "float64"]
  for digits = float.kept, float.needed - 1 do
    local y = tonumber(plain_format("%." .. digits .. "g", x))
    if equals_as(y, x, dtype or "float64") then
      return decimal_text(x, digits)
    end
  end
  return decimal_text(x, float.needed)
end

-- A Lua number as a result: whole floats below 1e16 in full.
function numbers.show(x, precision)
  if math.type(x) == "integer" then return tostring(x) end
  if special(x) then return special(x) end
  if precision == "full" or x % 1 == 0 and math.abs(x) < 1e16 then
    return numbers.shortest(x)
  end
  return plain_format("%.14g", x)
end

-- A number in statistics: four significant digits and all digits before the
-- point; a number that is not whole has one after it.
function numbers.brief(x)
  if special(x) then return special(x) end
  local size = math.abs(x)
  if x % 1 == 0 and size < 1e8 then return ("%d"):format(x) end
  if size < 1e3 or size >= 1e8 then return plain_format("%.4g", x) end
  return plain_format("%.1f", x)
end

-- The same for the mean of integers: in full if it has four decimals or fewer.
function numbers.mean(x)
  local text = plain_format("%.4f", x)
  if math.abs(x) < 1e11 and tonumber(text) == x then
    return (text:gsub("%.?0+$", ""))
  end
  return numbers.brief(x)
end

-- Was a float of a tensor rounded to be written like this (see
-- tensor_grid.lua)? A float with one decimal is whole; one with a power of ten
-- or with four decimals may be rounded, as may a statistic with four digits.
function numbers.rounded(text, statistic)
  local body, power = text:match "^[+-]?([%d.]+)([eE]?)"
  if not body or not body:find "%." and power == "" then return false end
  local digits = body:gsub("^[0.]+", ""):gsub("%.", "")
  if power ~= "" or #(body:match "%.(%d*)" or "") >= 4 then return true end
  if statistic then return #digits >= 4 end
  return #digits >= 5 and not body:find "%.0$"
end

return numbers
