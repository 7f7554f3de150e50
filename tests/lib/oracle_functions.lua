-- SPDX-License-Identifier: MIT
-- The words of core/pointwise/scalar.h in Lua, so that the text of an operation
-- of core/ops.def can be evaluated: over floats, over integers, and over floats
-- that know how far off a narrower dtype may be. A part of oracle.lua.

local O = ...                 -- the oracle: its types and rounding

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local F, F2, negative, copysign = dofile(here .. "math_functions.lua")(O)
local abs, inf = math.abs, math.huge

-- ---- the vocabulary over plain numbers

local function truth(b) return b and 1 or 0 end

local function common()
  local V = {}
  function V.K(c) return c end
  function V.eq(a, b) return truth(a == b) end
  function V.ne(a, b) return truth(a ~= b) end
  function V.lt(a, b) return truth(a < b) end
  function V.le(a, b) return truth(a <= b) end
  function V.gt(a, b) return truth(a > b) end
  function V.ge(a, b) return truth(a >= b) end
  function V.both(a, b) return truth(a ~= 0 and b ~= 0) end
  function V.either(a, b) return truth(a ~= 0 or b ~= 0) end
  function V.where(c, a, b) if c ~= 0 then return a else return b end end
  function V.square(x) return x * x end
  function V.conj(x) return x end
  function V.realpart(x) return x end
  function V.imaginary() return 0 end
  function V.negative(x) return truth(negative(x)) end
  function V.sgn(x) return truth(x > 0) - truth(x < 0) end
  function V.absval(x) if x < 0 then return -x else return x + 0 end end
  function V.larger(a, b) if a > b or a ~= a then return a else return b end end
  function V.smaller(a, b)
    if a < b or a ~= a then return a else return b end
  end
  return V
end

local function floatwords()
  local V = common()
  for name, f in pairs(F) do V[name] = f end
  for name, f in pairs(F2) do V[name] = f end
  V.lowest, V.highest = -inf, inf
  function V.band(a, b) return truth(a ~= 0 and b ~= 0) end
  function V.bor(a, b) return truth(a ~= 0 or b ~= 0) end
  function V.bxor(a, b) return truth((a ~= 0) ~= (b ~= 0)) end
  return V
end

-- Integers; `width' is that of the type in which the operation computes.
local function intwords(width)
  local V = common()
  V.lowest, V.highest = math.mininteger, math.maxinteger
  function V.logistic(x) return x end
  function V.power(a, b)
    if b < 0 then
      return a == 1 and 1 or a == -1 and (b % 2 == 0 and 1 or -1) or 0
    end
    local r = 1
    while b > 0 do
      if b & 1 == 1 then r = r * a end
      a, b = a * a, b >> 1
    end
    return r
  end
  function V.floordiv(a, b) return b == 0 and 0 or a // b end
  function V.modulo(a, b) return b == 0 and 0 or a % b end
  function V.remain(a, b) return b == 0 and 0 or math.fmod(a, b) end
  function V.truncdiv(a, b)
    if b == 0 then return 0 end
    if b == -1 then return -a end
    return (a - math.fmod(a, b)) // b
  end
  function V.gcd(a, b)            -- of negative numbers: none overflows
    a, b = a < 0 and a or -a, b < 0 and b or -b
    while b ~= 0 do a, b = b, math.fmod(a, b) end
    return -a
  end
  function V.bnot(x) return ~x end
  function V.band(a, b) return a & b end
  function V.bor(a, b) return a | b end
  function V.bxor(a, b) return a ~ b end
  function V.shl(a, b) return (b < 0 or b >= width) and 0 or a << b end
  function V.shr(a, b)
    if b < 0 or b >= width then return a < 0 and -1 or 0 end
    return b == 63 and (a < 0 and -1 or 0) or a // (1 << b)
  end
  return V
end

local vocabulary = {float = floatwords(), int32 = intwords(32),
                 int64 = intwords(64), bool = intwords(32)}
vocabulary.float32 = setmetatable({}, {__index = vocabulary.float})
function vocabulary.float32.nextafter(a, b)
  if a ~= a or b ~= b then return a + b end
  if a == b then return b end
  if a == 0 then return copysign(0x1p-149, b) end
  local bits = string.unpack("<i4", string.pack("<f", a))
  bits = bits + ((a < b) == (a > 0) and 1 or -1)
  return (string.unpack("<f", string.pack("<i4", bits)))
end
vocabulary.bool.bnot = function(x) return 1 - x end

-- The words for operations that compute in type t.
local function words(t)
  if O.isfloat(t) then
    return vocabulary[t == "float64" and "float" or "float32"]
  end
  return vocabulary[t == "int64" and t or t == "bool" and t or "int32"]
end

-- A function of named numbers from the text of an operation.
local function compile(text, env, names)
  local f, why = load("local " .. names .. " = ...; return " .. text,
                      "=" .. text, "t", env)
  if f == nil then error("not a Lua expression: " .. text .. ": " .. why, 0) end
  return f
end

-- ---- numbers that know how far off floats of a type may be
--
-- {v, e, s}: the value in double; a bound of the error that computing in the
-- type makes, if each function is within 4 ulp; what rounding every step to
-- the type gives. `u' is half an ulp of 1.

-- Numbers of type t: their metatable; lift, which makes one of a Lua number;
-- new(v, e, s).
local function tracked_numbers(t)
  local u, tiny = 0.5 * 2.0 ^ (1 - O.digits[t]), 2 * O.exp2i(O.lowexp[t])
  local most = O.largest[t]
  local M = {}
  local function new(v, e, s)
    if not (abs(v) <= most) then e = inf end
    return setmetatable({v, e + tiny * u, O.round(s, t)}, M)
  end
  local function lift(a)
    if type(a) == "table" then return a end
    return {a * 1.0, 0.0, O.round(a * 1.0, t)}
  end
  return M, lift, new, u
end

local function add_arithmetic(M, lift, new, u)
  M.__add = function(a, b)
    a, b = lift(a), lift(b)
    local v = a[1] + b[1]
    return new(v, a[2] + b[2] + u * abs(v), a[3] + b[3])
  end
  M.__unm = function(a) return setmetatable({-a[1], a[2], -a[3]}, M) end
  M.__sub = function(a, b)
    a, b = lift(a), lift(b)
    local v = a[1] - b[1]
    return new(v, a[2] + b[2] + u * abs(v), a[3] - b[3])
  end
  M.__mul = function(a, b)
    a, b = lift(a), lift(b)
    local v = a[1] * b[1]
    local e = abs(a[1]) * b[2] + abs(b[1]) * a[2] + a[2] * b[2]
    return new(v, e + u * abs(v), a[3] * b[3])
  end
  M.__div = function(a, b)
    a, b = lift(a), lift(b)
    local v = a[1] / b[1]
    local room = abs(b[1]) - b[2]
    local e = room > 0 and (a[2] + abs(v) * b[2]) / room or
              b[2] > 0 and inf or 0
    return new(v, e + u * abs(v), a[3] / b[3])
  end
end

-- Comparisons, whose error is 1 where the errors of the operands may turn them,
-- and what rests on them.
local function add_conditions(V, M, lift)
  local function compare(f)
    return function(a, b)
      a, b = lift(a), lift(b)
      local sure = abs(a[1] - b[1]) > a[2] + b[2] or a[2] + b[2] == 0
      return setmetatable({truth(f(a[1], b[1])), sure and 0 or 1,
                           truth(f(a[3], b[3]))}, M)
    end
  end
  V.eq = compare(function(a, b) return a == b end)
  V.ne = compare(function(a, b) return a ~= b end)
  V.lt = compare(function(a, b) return a < b end)
  V.le = compare(function(a, b) return a <= b end)
  V.gt = compare(function(a, b) return a > b end)
  V.ge = compare(function(a, b) return a >= b end)
  function V.both(a, b)
    a, b = lift(a), lift(b)
    return setmetatable({truth(a[1] ~= 0 and b[1] ~= 0), math.max(a[2], b[2]),
                         truth(a[3] ~= 0 and b[3] ~= 0)}, M)
  end
  function V.either(a, b)
    a, b = lift(a), lift(b)
    return setmetatable({truth(a[1] ~= 0 or b[1] ~= 0), math.max(a[2], b[2]),
                         truth(a[3] ~= 0 or b[3] ~= 0)}, M)
  end
  function V.where(c, a, b)
    c, a, b = lift(c), lift(a), lift(b)
    local s = c[3] ~= 0 and a[3] or b[3]
    if c[1] == 0 then a, b = b, a end
    local e = c[2] == 0 and a[2] or math.max(a[2], abs(a[1] - b[1]) + b[2])
    return setmetatable({a[1], e, s}, M)
  end
end

-- The functions of F and F2: their error from values at the operands' bounds.
local function add_functions(V, lift, new, u)
  for name, f in pairs(F) do
    V[name] = function(x)
      x = lift(x)
      local v, e = f(x[1]), 0
      if x[2] > 0 then
        e = math.max(abs(f(x[1] + x[2]) - v), abs(f(x[1] - x[2]) - v))
        if e ~= e then e = inf end
      end
      return new(v, e + 8 * u * abs(v), f(x[3]))
    end
  end
  for name, f in pairs(F2) do
    V[name] = function(a, b)
      a, b = lift(a), lift(b)
      local v, e = f(a[1], b[1]), 0
      for _, p in ipairs {1, -1} do
        for _, q in ipairs {1, -1} do
          local d = abs(f(a[1] + p * a[2], b[1] + q * b[2]) - v)
          e = d > e and d or e
        end
      end
      return new(v, e + 8 * u * abs(v), f(a[3], b[3]))
    end
  end
end

local function tracked(t)
  local M, lift, new, u = tracked_numbers(t)
  local V = {}
  add_arithmetic(M, lift, new, u)
  add_conditions(V, M, lift)
  function V.K(c) return c end
  function V.square(x) return x * x end
  function V.conj(x) return lift(x) end
  function V.realpart(x) return lift(x) end
  function V.imaginary() return lift(0) end
  function V.negative(x)
    return setmetatable({truth(negative(x[1])), 0, truth(negative(x[3]))}, M)
  end
  V.lowest, V.highest = lift(-inf), lift(inf)
  function V.sgn(x) return V.gt(x, 0) - V.lt(x, 0) end
  function V.absval(x) return V.where(V.lt(x, 0), M.__unm(lift(x)), x) end
  function V.larger(a, b)
    return V.where(V.either(V.gt(a, b), V.ne(a, a)), a, b)
  end
  function V.smaller(a, b)
    return V.where(V.either(V.lt(a, b), V.ne(a, a)), a, b)
  end
  add_functions(V, lift, new, u)
  V.truncdiv = function(a, b) return V.trunc(M.__div(a, b)) end
  V.number = function(v) return setmetatable({v, 0, v}, M) end
  return V
end

O.vocabulary, O.words, O.compile = vocabulary, words, compile
O.tracked = tracked
