-- SPDX-License-Identifier: MIT
-- Bessel functions of order 0 and 1 and Airy's Ai, accurate in double, by other
-- ways than those of core/pointwise/bessel.inc. A part of math_functions.lua,
-- whose table F of functions it adds to.

local exp, log, sqrt, abs = math.exp, math.log, math.sqrt, math.abs
local inf = math.huge

return function(F)

-- Cylinder functions: of a moderate x the integer orders by recurrence
-- downwards (Miller), of which those of the second kind are series (Neumann);
-- else by Hankel's asymptotic series.
local EULER = 0.57721566490153286061

local function orders(x)      -- J[n] of x > 0
  local last = 2 * (math.floor(x) // 2) + 60
  local J, sum = {[last + 1] = 0.0, [last] = 1e-300}, 0.0
  for n = last, 1, -1 do
    J[n - 1] = 2 * n / x * J[n] - J[n + 1]
    if abs(J[n - 1]) > 1e200 then
      for k = n - 1, last do J[k] = J[k] * 1e-200 end
    end
  end
  for n = 2, last, 2 do sum = sum + J[n] end
  sum = 2 * sum + J[0]
  for n = 0, last do J[n] = J[n] / sum end
  return J, last
end

local function hankel(order, x, second)
  local p, q, term = 0.0, 0.0, 1.0
  for k = 0, 60 do
    local sign = k % 4 < 2 and 1 or -1
    if k % 2 == 0 then p = p + sign * term else q = q + sign * term end
    local after = term * (4 * order - (2 * k + 1) ^ 2) / ((k + 1) * 8 * x)
    if abs(after) >= abs(term) or abs(after) < 1e-18 then break end
    term = after
  end
  local s, c = math.sin(x), math.cos(x)
  local sine, cosine = s - c, s + c       -- of x - pi/4, times sqrt(2)
  if order == 1 then sine, cosine = -cosine, sine end
  local y = second and p * sine + q * cosine or p * cosine - q * sine
  return y / sqrt(math.pi * x)
end

local function cylinder(order, x, second)
  if x == inf then return 0.0 end
  if x > 30 then return hankel(order, x, second) end
  if x < 1e-9 then
    if not second then return order == 0 and 1.0 or x / 2 end
    if order == 1 then return -2 / math.pi / x end
    return 2 / math.pi * (log(x / 2) + EULER)
  end
  local J, last = orders(x)
  if not second then return J[order] end
  local sum = 0.0
  for k = last // 2 - 1, 1, -1 do
    local sign = k % 2 == 0 and 1 or -1
    sum = sum + sign * (order == 0 and J[2 * k] / k or
                        (2 * k + 1) / (k * (k + 1)) * J[2 * k + 1])
  end
  if order == 0 then
    return 2 / math.pi * ((log(x / 2) + EULER) * J[0] - 2 * sum)
  end
  return 2 / math.pi * ((log(x / 2) + EULER - 1) * J[1] - sum - J[0] / x)
end

for order = 0, 1 do
  F["bessel_j" .. order] = function(x)
    if x ~= x or x == 0 and order == 1 then return x end
    local y = x == 0 and 1.0 or cylinder(order, abs(x))
    return order == 1 and x < 0 and -y or y
  end
  F["bessel_y" .. order] = function(x)
    if x == 0 then return -inf end
    return x > 0 and cylinder(order, x, true) or 0 / 0
  end
end

-- exp(x)*K of an order, as an integral over exp(x - x*cosh(t))*cosh(order*t),
-- for which the trapezoidal rule converges fast.
local function macdonald(order, x)
  local sum, t, h = 0.5, 0.0, math.min(0.125, 0.5 / sqrt(x))
  repeat
    t = t + h
    local e = F.sinh(t / 2)
    local term = exp(-2 * x * e * e) * F.cosh(order * t)
    sum = sum + term
  until term < sum * 1e-18
  return sum * h
end

for order = 0, 1 do
  local function scaled(x)
    if x == 0 then return inf end
    if not (x > 0) then return 0 / 0 end
    if x == inf then return 0.0 end
    if order == 1 and x < 1e-9 then return 1 / x + 1 end
    return macdonald(order, x)
  end
  F["scaled_modified_bessel_k" .. order] = scaled
  F["modified_bessel_k" .. order] = function(x)
    if order == 1 and x > 0 and x < 1e-9 then return 1 / x end
    return x > 700 and exp(-x / 2) * scaled(x) * exp(-x / 2) or
           exp(-x) * scaled(x)
  end
end

-- Below 0 an integral over a line above the real one, which the trapezoidal
-- rule gives, or the asymptotic series.
local function airy_below(x)
  if x < 9 then
    local c, sum, h = 0.3, 0.0, 0.01
    for k = 0, 1200 do
      local s = k * h
      local term = exp(-c * s * s) * math.cos(s * s * s / 3 - (x + c * c) * s)
      sum = sum + (k == 0 and term / 2 or term)
    end
    return sum * h / math.pi * exp(c * c * c / 3 + x * c)
  end
  local z, p, q, term = 2 / 3 * x * sqrt(x), 0.0, 0.0, 1.0
  for k = 0, 60 do
    local sign = k % 4 < 2 and 1 or -1
    if k % 2 == 0 then p = p + sign * term else q = q + sign * term end
    local after = term * (6 * k + 1) * (6 * k + 3) * (6 * k + 5) /
                  (216 * (k + 1) * (2 * k + 1) * z)
    if abs(after) >= abs(term) or abs(after) < 1e-18 then break end
    term = after
  end
  local s, c = math.sin(z), math.cos(z)
  return (p * (c + s) + q * (s - c)) / sqrt(2 * math.pi * sqrt(x))
end

function F.airy_ai(x)
  if x ~= x then return x end
  if x == inf or x < -1e200 then return 0.0 end
  if x < 0.1 then
    if x > -0.1 then
      local f, g, a, b, k = 1.0, x, 1.0, x, 0
      repeat
        k = k + 3
        a, b = a * x ^ 3 / ((k - 1) * k), b * x ^ 3 / (k * (k + 1))
        f, g = f + a, g + b
      until abs(a) + abs(b) < 1e-20
      return 0.35502805388781723926 * f - 0.25881940379280679840 * g
    end
    return airy_below(-x)
  end
  local z = 2 / 3 * x * sqrt(x)
  return z > 800 and 0.0 or
         exp(-z) * sqrt(x / 3) / math.pi * macdonald(1 / 3, z)
end

end
