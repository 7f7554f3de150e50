-- SPDX-License-Identifier: MIT
-- Functions of floats that Lua lacks, accurate in double, for the vocabulary
-- in oracle_functions.lua: F of one number, F2 of two.

local O                       -- the oracle: its rounding

local exp, log, sqrt, abs = math.exp, math.log, math.sqrt, math.abs
local inf = math.huge
local F = {}

-- also of nan
local function negative(x)
  if math.type(x) == "integer" then return x < 0 end
  return string.unpack("<i8", string.pack("<d", x)) < 0
end

local function copysign(v, s)
  return negative(s) and -abs(v) or abs(v)
end

function F.expm1(x)           -- Kahan
  if abs(x) < 1e-300 then return x end
  local u = exp(x)
  if u == 1 then return x end
  local um = u - 1
  if um == -1 then return -1.0 end
  if u == inf then return u end
  if abs(x) > 1 then return um end
  return um * x / log(u)
end

function F.log1p(x)
  if abs(x) < 1e-17 then return x end
  local u = 1 + x
  if u == 1 then return x end
  if u == inf or u <= 0 or u ~= u then return log(u) end
  return x > 1e10 and log(u) or log(u) * (x / (u - 1))
end

-- exp(-x*x) without the rounding of x*x
local function expsquare(x)
  if abs(x) > 40 then return 0.0 end
  local high = O.round(x, "float32")
  return exp(-high * high) * exp((high - x) * (high + x))
end

-- the series, whose terms are all positive
local function erfseries(x)
  local term, sum, n = x, x, 0
  repeat
    n = n + 1
    term = term * 2 * x * x / (2 * n + 1)
    sum = sum + term
  until abs(term) <= 1e-18 * abs(sum)
  return sum * expsquare(x) * 1.1283791670955125739
end

-- the continued fraction, for x >= 1
local function erfcfraction(x)
  local f = x
  for n = x < 2 and 400 or x < 4 and 120 or 60, 1, -1 do
    f = x + n / 2 / f
  end
  return expsquare(x) / f * 0.56418958354775628695
end

function F.erf(x)
  if x ~= x then return x end
  if x == 0 then return x end
  if abs(x) < 1.5 then return erfseries(x) end
  if x > 6 then return 1.0 elseif x < -6 then return -1.0 end
  return x > 0 and 1 - erfcfraction(x) or erfcfraction(-x) - 1
end

F.fast_erf = F.erf

function F.erfc(x)
  if x ~= x then return x end
  if x >= 1 then return x > 40 and 0.0 or erfcfraction(x) end
  return 1 - F.erf(x)
end

function F.hypot(a, b)
  a, b = abs(a), abs(b)
  if a == inf or b == inf then return inf end
  if a ~= a or b ~= b then return a + b end
  if a < b then a, b = b, a end
  if a == 0 then return 0.0 end
  if a < 1e150 and b > 1e-150 then return sqrt(a * a + b * b) end
  local r = b / a
  return a * sqrt(1 + r * r)
end

function F.sinh(x)
  if abs(x) < 1 then
    local e = F.expm1(x)
    return x == 0 and x or (e + e / (e + 1)) / 2
  end
  if abs(x) > 700 then
    local h = exp(abs(x) / 2)
    return copysign(h / 2 * h, x)
  end
  return (exp(x) - exp(-x)) / 2
end

function F.cosh(x)
  if abs(x) > 700 then
    local h = exp(abs(x) / 2)
    return h / 2 * h
  end
  return (exp(x) + exp(-x)) / 2
end

function F.tanh(x)
  if x == 0 or x ~= x then return x end
  if abs(x) > 22 then return copysign(1.0, x) end
  local e = F.expm1(2 * x)
  return e / (e + 2)
end

function F.asinh(x)
  local a = abs(x)
  if a < 1e-10 or x ~= x then return x end
  local r = a > 1e10 and log(a) + 0.69314718055994530942
            or F.log1p(a + a * a / (1 + sqrt(1 + a * a)))
  return copysign(r, x)
end

function F.acosh(x)
  if x < 1 then return 0 / 0 end
  if x > 1e10 then return log(x) + 0.69314718055994530942 end
  local t = x - 1
  return F.log1p(t + sqrt(2 * t + t * t))
end

function F.atanh(x)
  local a = abs(x)
  if a < 1e-10 then return x end
  return copysign(0.5 * F.log1p(2 * a / (1 - a)), x)
end

-- ---- the gamma function and its family, by series and shifts

-- Hurwitz's zeta function for q > 0: 25 terms, then Euler and Maclaurin
local bernoulli = {1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730,
                   7 / 6, -3617 / 510}

local function zeta(s, q)
  if q > 1e8 then return (1 / (s - 1) + 0.5 / q) * q ^ (1 - s) end
  local sum = 0.0
  for k = 24, 0, -1 do sum = sum + (q + k) ^ -s end
  local a, r, f = q + 25, s, 2.0
  local last = a ^ -s
  if last <= sum * 1e-18 then return sum end
  sum = sum + (last / 2 + a ^ (1 - s) / (s - 1))
  for k, b in ipairs(bernoulli) do
    sum = sum + b * r / f * a ^ (1 - s - 2 * k)
    r = r * (s + 2 * k - 1) * (s + 2 * k)
    f = f * (2 * k + 1) * (2 * k + 2)
  end
  return sum
end

local zetas = {}              -- zeta(k) - 1
for k = 2, 60 do zetas[k] = zeta(k, 2.0) end

function F.sinpi(x)
  local r = math.fmod(x, 2)
  if r > 1 then r = r - 2 elseif r < -1 then r = r + 2 end
  if r > 0.5 then r = 1 - r elseif r < -0.5 then r = -1 - r end
  return r == 0 and copysign(0.0, x) or math.sin(math.pi * r)
end

function F.cospi(x)
  local r = math.fmod(abs(x), 2)
  if r > 1 then r = 2 - r end
  if r > 0.75 then return -math.cos(math.pi * (1 - r)) end
  return r < 0.25 and math.cos(math.pi * r) or math.sin(math.pi * (0.5 - r))
end

local gamma1 = 0.42278433509846713939         -- 1 - Euler's constant

-- log of gamma(2+z), |z| <= 1/2
local function lgamma2(z)
  local sum = 0.0
  for k = 60, 2, -1 do
    sum = sum + (k % 2 == 0 and 1 or -1) * zetas[k] / k * z ^ k
  end
  return sum + z * gamma1
end

local function lgammaup(x)
  if x == inf then return x end
  if x < 1e-20 then return -log(x) end
  if x < 0.5 then return lgamma2(x) - log(x * (1 + x)) end

  if x <= 1.5 then return lgamma2(x - 1) - F.log1p(x - 1) end
  if x <= 2.5 then return lgamma2(x - 2) end
  if x > 1e17 then return (log(x) - 1) * x end
  local p = 1.0
  while x < 15 do p, x = p * x, x + 1 end
  local s = 0.0
  for k = #bernoulli, 1, -1 do
    s = s + bernoulli[k] / (2 * k * (2 * k - 1)) / x ^ (2 * k - 1)
  end
  return (x - 0.5) * log(x) - x + 0.91893853320467274178 + s - log(p)
end

function F.lgamma(x)
  if x ~= x then return x end
  if x == -inf or x <= 0 and x == F.floor(x) then return inf end
  if x > 0 then return lgammaup(x) end
  if x > -1e-20 then return -log(-x) end
  if x > -8 then                -- it has zeros there
    local p = 1.0
    while x < 0.5 do p, x = p * x, x + 1 end
    return lgammaup(x) - log(abs(p))
  end
  return log(math.pi / abs(F.sinpi(x))) - lgammaup(1 - x)
end

-- of 1+z, |z| <= 1/2
local function digamma1(z)
  local sum = 0.0
  for k = 60, 2, -1 do
    sum = sum + (k % 2 == 0 and 1 or -1) * zetas[k] * z ^ (k - 1)
  end
  return sum + (gamma1 - 1 / (1 + z))
end

local function digammaup(x)
  if x < 0.5 then return digamma1(x) - 1 / x end
  local sum = 0.0
  if x < 15 then
    while x > 1.5 do x, sum = x - 1, sum + 1 / (x - 1) end
    return digamma1(x - 1) + sum
  end
  for k = #bernoulli, 1, -1 do
    sum = sum + bernoulli[k] / (2 * k) / x ^ (2 * k)
  end
  return log(x) - 0.5 / x - sum
end

function F.digamma(x)
  if x == 0 then return copysign(inf, -x) end
  if x > 0 or x ~= x then return digammaup(x) end
  if x == F.floor(x) then return 0 / 0 end
  return digammaup(1 - x) - math.pi * F.cospi(x) / F.sinpi(x)
end

local function zetaall(s, q)
  if s == 1 then return inf end
  if s < 1 or s ~= s or q ~= q then return 0 / 0 end
  if q > 0 then return zeta(s, q) end
  if q == F.floor(q) then return inf end
  if s ~= F.floor(s) then return 0 / 0 end
  local d = -q - F.floor(-q)
  local low, high, rest = zeta(s, d), zeta(s, 1 - d), zeta(s, 1 - q)
  if s / 2 == F.floor(s / 2) then return high + low - rest end
  if d == 0.5 then return rest end
  if low == inf and high == inf then return copysign(inf, d - 0.5) end
  return high - low + rest
end

function F.trigamma(x) return zetaall(2.0, x) end

-- Newton's iteration for erf and, near 1, erfc
function F.erfinv(x)
  local a = abs(x)
  if not (a <= 1) then return 0 / 0 end
  if a == 1 then return copysign(inf, x) end
  if a < 1e-9 then return x * 0.88622692545275801365 end
  local w = F.log1p(-a * a)
  local g = 4.3307467508 + w / 2
  local y = sqrt(sqrt(g * g - w / 0.147) - g)
  for _ = 1, 6 do
    local d = a < 0.5 and F.erf(y) - a or (1 - a) - F.erfc(y)
    y = y - d * 0.88622692545275801365 * exp(y * y)
  end
  return copysign(y, x)
end

-- ---- modified Bessel functions, of order 0 and 1

local function bessel(order, x, scaled)
  local z = abs(x)
  if z ~= z then return z end
  local y
  if z <= 30 then
    local term, k = order == 0 and 1.0 or z / 2, 0
    y = term
    repeat
      k = k + 1
      term = term * (z / 2) * (z / 2) / (k * (k + order))
      y = y + term
    until term <= y * 1e-18
    if scaled then y = y * exp(-z) end
  else
    local term, sum = 1.0, 1.0
    for k = 1, 20 do
      local odd = (2 * k - 1) ^ 2
      term = -term * (4 * order - odd) / (k * 8 * z)
      sum = sum + term
    end
    y = sum / sqrt(2 * math.pi) / sqrt(z)
    if not scaled then y = exp(z / 2) * y * exp(z / 2) end
  end
  return order == 1 and copysign(y, x) or y
end

function F.i0(x) return abs(x) == inf and inf or bessel(0, x) end
function F.i1(x) return abs(x) == inf and x or bessel(1, x) end
function F.i0e(x) return bessel(0, x, true) end
function F.i1e(x) return bessel(1, x, true) end

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
dofile(here .. "bessel_functions.lua")(F)

function F.erfcx(x)
  if x ~= x then return x end
  if x < -27 then return inf end
  if x < 1 then return F.erfc(x) / expsquare(x) end
  local f = x
  for n = x < 2 and 400 or x < 4 and 120 or 60, 1, -1 do f = x + n / 2 / f end
  return 0.56418958354775628695 / f
end

function F.ndtr(x) return F.erfc(-x / 1.4142135623730950488) / 2 end
function F.log_ndtr(x)
  if x >= -1 then return F.log1p(-F.ndtr(-x)) end
  return log(F.erfcx(-x / 1.4142135623730950488) / 2) - x / 2 * x
end

-- Newton's iteration for the logarithm of the distribution function, in the
-- tails.
function F.ndtri(p)
  if not (p >= 0 and p <= 1) then return 0 / 0 end
  if p == 0 or p == 1 then return p == 0 and -inf or inf end
  if abs(p - 0.5) < 0.3 then
    return 1.4142135623730950488 * F.erfinv(2 * p - 1)
  end
  if p > 0.5 then return -F.ndtri(1 - p) end
  local y, want = -1.0, log(p)
  for _ = 1, 60 do
    local e = F.erfcx(-y / 1.4142135623730950488)
    local step = (log(e / 2) - y * y / 2 - want) * e * 1.2533141373155002512
    y = y - step
    if abs(step) < 1e-15 * abs(y) then break end
  end
  return y
end

-- x^a exp(-x) / gamma(a + 1), without the digits that powers lose
local function gamma_factor(a, x)
  if a < 10 then
    local lgamma = a <= 0.5 and lgamma2(a) - F.log1p(a) or lgammaup(a + 1)
    return exp(a * log(x) - x - lgamma)
  end
  local m, sum = (x - a) / a, 0.0
  local s = m / (2 + m)
  if abs(m) > 0.4 then sum = m - log(x / a)
  else
    for k = 20, 1, -1 do sum = sum * s * s + 1 / (2 * k + 1) end
    sum = s * (m - 2 * s * s * sum)
  end
  local rest = 0.0
  for k = #bernoulli, 1, -1 do
    rest = rest + bernoulli[k] / (2 * k * (2 * k - 1)) / a ^ (2 * k - 1)
  end
  return exp(-a * sum - rest) / sqrt(2 * math.pi * a)
end

local function gamma_lower(a, x)
  local term, sum, n = 1.0, 1.0, 0
  repeat
    n = n + 1
    term = term * x / (a + n)
    sum = sum + term
  until term < sum * 1e-18 or n > 100000
  return sum * gamma_factor(a, x)
end

local function gamma_upper(a, x)
  if x > 1.1 then             -- a continued fraction, from its end
    local n = math.min(math.floor(200 + 20 * sqrt(a)), 100000)
    local f = x + 2 * n + 1 - a
    for k = n, 1, -1 do f = x + 2 * k - 1 - a + k * (a - k) / f end
    return a * gamma_factor(a, x) / f
  end
  local l = a * log(x) - (a <= 0.5 and lgamma2(a) - F.log1p(a) or
                          lgammaup(a + 1))
  local term, sum = 1.0, 0.0
  for n = 1, 60 do
    term = -term * x / n
    sum = sum + term / (a + n)
  end
  return -F.expm1(l) - a * exp(l) * sum
end

-- P and Q
local function incomplete_gamma(a, x)
  if not (a >= 0 and x >= 0) or a == 0 and x == 0 or a == inf and x == inf then
    return 0 / 0, 0 / 0
  end
  if a == 0 or x == inf then return 1.0, 0.0 end
  if x == 0 or a == inf then return 0.0, 1.0 end
  if a > 1e12 then            -- as the normal distribution
    local y = (x - a) / sqrt(2 * a)
    local rest = exp(-y * y) / sqrt(2 * math.pi * a) / 3
    return F.erfc(-y) / 2 + rest, F.erfc(y) / 2 - rest
  end
  if x > 1.1 and x >= a or x <= 1.1 and
     (x <= 0.5 and a <= -0.4 / log(x) or x > 0.5 and a <= 1.1 * x) then
    local q = gamma_upper(a, x)
    return x <= 1.1 and gamma_lower(a, x) or 1 - q, q
  end
  local p = gamma_lower(a, x)
  return p, 1 - p
end

function F.rint(x)
  if not (abs(x) < 0x1p52) then return x end
  local r = x < 0 and (x - 0x1p52) + 0x1p52 or (x + 0x1p52) - 0x1p52
  return r == 0 and copysign(0.0, x) or r
end

function F.floor(x)
  if not (abs(x) < 0x1p52) or x == 0 then return x end
  return math.floor(x) + 0.0
end

function F.ceil(x)
  if not (abs(x) < 0x1p52) or x == 0 then return x end
  return copysign(math.ceil(x) + 0.0, x)
end

function F.trunc(x) return x < 0 and F.ceil(x) or F.floor(x) end

function F.tan(x) return math.tan(x) end
function F.log2(x) return log(x, 2) end
function F.log10(x) return log(x, 10) end
function F.exp2(x) return 2.0 ^ x end
function F.logistic(x) return 1 / (1 + exp(-x)) end
function F.logodds(x)
  if x > 0.25 and x < 0.75 then return 2 * F.atanh(2 * x - 1) end
  return log(x / (1 - x))
end

for _, name in ipairs {"exp", "sqrt", "sin", "cos", "asin", "acos"} do
  F[name] = math[name]
end
F.log = function(x) return log(x) end
F.atan = function(x) return math.atan(x) end

local F2 = {hypot = F.hypot}
F.hypot = nil
function F2.atan2(a, b) return math.atan(a, b) end
function F2.power(a, b) return a ^ b end
function F2.ldexp(a, b)
  if b - b == 0 and (a == 0 or a - a ~= 0) then return a end
  return a * 2 ^ (b / 2) * 2 ^ (b / 2)
end
function F2.copysign(a, b) return copysign(a, b) end
F2.zeta = zetaall
function F2.gammainc(a, x) return (incomplete_gamma(a, x)) end
function F2.gammaincc(a, x) return (select(2, incomplete_gamma(a, x))) end
function F2.nextafter(a, b)
  if a ~= a or b ~= b then return a + b end
  if a == b then return b end
  if a == 0 then return copysign(0x1p-1074, b) end
  local bits = string.unpack("<i8", string.pack("<d", a))
  bits = bits + ((a < b) == (a > 0) and 1 or -1)
  return (string.unpack("<d", string.pack("<i8", bits)))
end
function F2.truncdiv(a, b) return F.trunc(a / b) end
function F2.remain(a, b) return math.fmod(a * 1.0, b * 1.0) end
function F2.floordiv(a, b)
  if b == 0 then return a / b end
  local m = F2.remain(a, b)
  local d = (a - m) / b
  if m ~= 0 and (b < 0) ~= (m < 0) then d = d - 1 end
  if d == 0 then return copysign(0.0, a / b) end
  local f = F.floor(d)
  return d - f > 0.5 and f + 1 or f
end
function F2.modulo(a, b)
  local m = F2.remain(a, b)
  return m ~= 0 and (b < 0) ~= (m < 0) and m + b or m
end

return function(oracle)
  O = oracle
  return F, F2, negative, copysign
end
