-- SPDX-License-Identifier: MIT
--
-- nonfinite_hints.lua - hints for nan and inf that an operation made of finite
-- operands. A hint is given only if its proposal was tried and gave a finite
-- result.

local units = require "nacre.units"

local nonfinite_hints = {}

local largest = {float16 = 65504, bfloat16 = 3.3895e38, float32 = 3.4028e38,
                 float64 = 1.7977e308}

local function log(x) return math.log(x) end

-- Above which operand a function overflows, given its largest result.
local overflow = {
  exp = log, expm1 = log, exp2 = function(m) return math.log(m, 2) end,
  sinh = function(m) return math.log(m) + math.log(2) end,
  cosh = function(m) return math.log(m) + math.log(2) end,
  square = math.sqrt,
}

-- "(float32 overflows above 88.72)"
function nonfinite_hints.limit(err)
  local a = err.args and err.args[1]
  local at = a and overflow[err.op]
  if not at or not largest[a.dtype] or err.cause ~= "infinite" then
    return nil
  end
  return ("(%s overflows above %.4g)"):format(a.dtype, at(largest[a.dtype]))
end

-- "2 values below 0": counts the elements of t for which the method holds.
local function count(t, method, x, word)
  local n = math.tointeger(t[method](t, x):sum():item())
  return n > 0 and ("%s %s %g"):format(units.count(n, "value"), word, x) or nil
end

local function join(a, b)
  if a and b then return a .. " and " .. b:gsub(" values?", "", 1) end
  return a or b
end

-- By operation: the operand, from 0, what is wrong with it, what to write
-- instead (%s is the operand), and the same as a function.
local function below(x, form, try)
  return {0, function(t)
    return join(count(t, "lt", x, "below"), count(t, "eq", x, "equal to"))
  end, form, try}
end

local logs = {}
for _, name in ipairs {"log", "log2", "log10"} do
  logs[name] = below(0, "%s:clamp(1e-12):" .. name .. "()", function(t)
    return nacre[name](t:clamp(1e-12))
  end)
end

local inside = {}
for _, name in ipairs {"acos", "asin"} do
  inside[name] = {0, function(t)
    return join(count(t, "lt", -1, "below"), count(t, "gt", 1, "above"))
  end, "%s:clamp(-1, 1):" .. name .. "()", function(t)
    return nacre[name](t:clamp(-1, 1))
  end}
end

local causes = setmetatable({
  sqrt = {0, function(t) return count(t, "lt", 0, "below") end,
          "%s:clamp(0):sqrt()", function(t) return t:clamp(0):sqrt() end},
  rsqrt = below(0, "%s:clamp(1e-12):rsqrt()", function(t)
    return t:clamp(1e-12):rsqrt()
  end),
  log1p = below(-1),
  acos = inside.acos, asin = inside.asin,
  reciprocal = {0, function(t) return count(t, "eq", 0, "equal to") end},
  true_divide = {1, function(t) return count(t, "eq", 0, "equal to") end},
  pow = {0, function(t) return count(t, "lt", 0, "below") end},
}, {__index = logs})

-- A template, in which "\2j" stands for operand j.
local function hint(err)
  local cause = causes[err.op]
  local arg
  for _, a in ipairs(err.args or {}) do
    if cause and a.fills == tostring(cause[1]) then arg = a end
  end
  local t = arg and arg.tensor
  if not t or not t:isfinite():all():item() then return nil end
  local what = cause[2](t)
  if not what then return nil end
  local operand = "\2" .. cause[1]
  local text = ("%s has %s"):format(operand, what)
  if cause[4] and cause[4](t):isfinite():all():item() then
    text = text .. "; " .. cause[3]:format(operand) .. " is finite"
  end
  return text
end

-- The hint for an error object, or nil. What it tries is neither traced nor
-- recorded for gradients.
function nonfinite_hints.hint(err)
  local limit = nonfinite_hints.limit(err)
  if limit then return limit:match "^%((.*)%)$" end
  local ok, text = pcall(nacre._unwatched, hint, err)
  return ok and text or nil
end

return nonfinite_hints
