-- SPDX-License-Identifier: MIT
-- What the tests compare with: the element types and their promotion, and
-- the vocabulary of core/scalar.h, so that the text of a row of core/ops.def
-- can be evaluated over plain numbers. Also counts checks.

local O = {}

-- ---- checks

local done, failed, shown = 0, 0, 0

function O.check(ok, fmt, ...)
  done = done + 1
  if ok then return true end
  failed = failed + 1
  if shown < 40 then
    shown = shown + 1
    print("FAILED: " .. string.format(fmt, ...))
  end
  return false
end

-- Calls f, which must raise; gives the error. code, text: parts of it.
function O.raises(what, code, text, f, ...)
  local ok, e = pcall(f, ...)
  if not O.check(not ok, "%s: no error", what) then return {} end
  if code then
    O.check(type(e) == "table" and e.code == code, "%s: code %s wanted: %s",
            what, code, tostring(e))
  end
  if text then
    O.check(tostring(e):find(text, 1, true), "%s: '%s' wanted: %s", what,
            text, tostring(e))
  end
  return type(e) == "table" and e or {}
end

function O.done(name)
  if failed > 0 then
    error(("%s: %d of %d checks failed"):format(name, failed, done), 0)
  end
  print(("%s: %d checks passed"):format(name, done))
end

-- ---- element types

O.dtypes = { "bool", "uint8", "int8", "int16", "int32", "int64", "float16",
             "bfloat16", "float32", "float64" }
O.floats = { "float16", "bfloat16", "float32", "float64" }
local rank, category = {}, { bool = 0 }
for i, t in ipairs(O.dtypes) do
  rank[t] = i
  category[t] = i == 1 and 0 or i <= 6 and 1 or 2
end
O.category = category
O.bits = { uint8 = 8, int8 = 8, int16 = 16, int32 = 32, int64 = 64 }

function O.isfloat(t) return category[t] == 2 end

-- The type to which two types promote.
function O.promote(a, b)
  if a == b then return a end
  if rank[a] > rank[b] then a, b = b, a end
  if a == "uint8" and b == "int8" then return "int16" end
  if a == "float16" and b == "bfloat16" then return "float32" end
  return b
end

-- The type of a number of Lua.
function O.numbertype(v)
  return type(v) == "boolean" and "bool"
         or math.type(v) == "integer" and "int64" or "float32"
end

-- The common type of operands {dtype=, dim=}; dim is nil for a number.
function O.resulttype(operands)
  local kind = {}
  for _, o in ipairs(operands) do
    local k = o.dim == nil and 3 or o.dim == 0 and 2 or 1
    kind[k] = kind[k] and O.promote(kind[k], o.dtype) or o.dtype
  end
  local t
  for k = 1, 3 do
    local low = kind[k]
    if t == nil then t = low
    elseif low and category[low] > category[t] then t = O.promote(t, low) end
  end
  return t
end

-- In which type a class of rows computes operands of type t, or nil if it
-- refuses them; `bools': is an operand bool?
function O.worktype(class, kind, t, bools)
  local c = category[t]
  if class == "NUB" and bools then return nil end
  if (class == "NUM" or class == "DVI" or class == "WHO") and c == 0 then
    return nil
  end
  if class == "INT" and c == 2 then return nil end
  if class == "INN" and c ~= 1 then return nil end
  if class == "FLO" and c ~= 2 then return nil end
  if class == "FLT" and c ~= 2 then return "float32" end
  if class == "NUI" and (c == 0 or c == 1 and kind == "reduce") then
    return "int64"
  end
  return t
end

function O.outtype(class, kind, t, work)
  if kind == "test" or kind == "compare" then return "bool" end
  if class == "TRU" then return t == "uint8" and t or "bool" end
  if class == "CNT" then return "int64" end
  return work
end

-- ---- rounding

local pack, unpack = string.pack, string.unpack
local digits = { float16 = 11, bfloat16 = 8, float32 = 24, float64 = 53 }
local lowexp = { float16 = -14, bfloat16 = -126, float32 = -126,
                 float64 = -1022 }
local largest = { float16 = 65504.0, bfloat16 = 0x1.fep127,
                  float32 = 0x1.fffffep127, float64 = 0x1.fffffffffffffp1023 }
O.digits, O.lowexp, O.largest = digits, lowexp, largest

-- e of |v| = m * 2^e, 1 <= m < 2
local function exponent(v)
  local e = (unpack("<i8", pack("<d", v)) >> 52 & 0x7ff) - 1023
  return e
end

local function exp2i(e)
  if e < -1022 then return 0x1p-1022 * 2.0 ^ (e + 1022) end
  return 2.0 ^ e
end

-- The distance of numbers of type t near v.
function O.ulp(v, t)
  v = v < 0 and -v or v
  if v > largest[t] then v = largest[t] end
  local e = exponent(v)
  if e < lowexp[t] then e = lowexp[t] end
  return exp2i(e - digits[t] + 1)
end

-- v rounded to the float type t, to nearest, ties to even.
function O.round(v, t)
  v = v * 1.0
  if t == "float64" or v ~= v or v == 0 or v - v ~= 0 then return v end
  local u = O.ulp(v, t)
  local r = v / u             -- exact; |r| < 2^24
  r = (r + 0x1.8p52) - 0x1.8p52
  r = r * u
  if r > largest[t] then return 1 / 0 end
  if r < -largest[t] then return -1 / 0 end
  return r == 0 and v < 0 and -0.0 or r
end

-- An integer wrapped to the integer type t.
function O.wrap(v, t)
  local b = O.bits[t]
  if b == 64 then return v end
  v = v & (1 << b) - 1
  if t ~= "uint8" and v >> (b - 1) == 1 then v = v - (1 << b) end
  return v
end

-- A float to int64: towards zero, saturating, nan to 0.
local function toint64(v)
  if v ~= v then return 0 end
  if v >= 0x1p63 then return math.maxinteger end
  if v < -0x1p63 then return math.mininteger end
  return math.tointeger(v < 0 and math.ceil(v) or math.floor(v))
end

-- v, a number or boolean, as the element of type t that a cast makes of it.
function O.cast(v, t)
  if v == true then v = 1 elseif v == false then v = 0 end
  if t == "bool" then return v ~= 0 end
  if O.isfloat(t) then return O.round(v * 1.0, t) end
  if math.type(v) == "float" then
    if t == "int32" then
      v = v ~= v and 0 or math.max(-0x1p31, math.min(v, 0x1p31 - 1))
    end
    v = toint64(v)
  end
  return O.wrap(v, t)
end

-- ---- functions that Lua lacks, accurate in double

local exp, log, sqrt, abs = math.exp, math.log, math.sqrt, math.abs
local inf = math.huge
local F = {}

function F.copysign(v, s)
  local negative = s < 0 or (s == 0 and 1 / s < 0)
  return negative and -abs(v) or abs(v)
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
    return F.copysign(h / 2 * h, x)
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
  if abs(x) > 22 then return F.copysign(1.0, x) end
  local e = F.expm1(2 * x)
  return e / (e + 2)
end

function F.asinh(x)
  local a = abs(x)
  if a < 1e-10 or x ~= x then return x end
  local r = a > 1e10 and log(a) + 0.69314718055994530942
            or F.log1p(a + a * a / (1 + sqrt(1 + a * a)))
  return F.copysign(r, x)
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
  return F.copysign(0.5 * F.log1p(2 * a / (1 - a)), x)
end

function F.rint(x)
  if not (abs(x) < 0x1p52) then return x end
  local r = x < 0 and (x - 0x1p52) + 0x1p52 or (x + 0x1p52) - 0x1p52
  return r == 0 and F.copysign(0.0, x) or r
end

function F.floor(x)
  if not (abs(x) < 0x1p52) or x == 0 then return x end
  return math.floor(x) + 0.0
end

function F.ceil(x)
  if not (abs(x) < 0x1p52) or x == 0 then return x end
  return F.copysign(math.ceil(x) + 0.0, x)
end

function F.trunc(x) return x < 0 and F.ceil(x) or F.floor(x) end

function F.tan(x) return math.tan(x) end
function F.log2(x) return log(x, 2) end
function F.log10(x) return log(x, 10) end
function F.exp2(x) return 2.0 ^ x end
function F.logistic(x) return 1 / (1 + exp(-x)) end

for _, name in ipairs { "exp", "sqrt", "sin", "cos", "asin", "acos" } do
  F[name] = math[name]
end
F.log = function(x) return log(x) end
F.atan = function(x) return math.atan(x) end

local F2 = { hypot = F.hypot }
F.hypot = nil
function F2.atan2(a, b) return math.atan(a, b) end
function F2.power(a, b) return a ^ b end
function F2.truncdiv(a, b) return F.trunc(a / b) end
function F2.remain(a, b) return math.fmod(a * 1.0, b * 1.0) end
function F2.floordiv(a, b)
  if b == 0 then return a / b end
  local m = F2.remain(a, b)
  local d = (a - m) / b
  if m ~= 0 and (b < 0) ~= (m < 0) then d = d - 1 end
  if d == 0 then return F.copysign(0.0, a / b) end
  local f = F.floor(d)
  return d - f > 0.5 and f + 1 or f
end
function F2.modulo(a, b)
  local m = F2.remain(a, b)
  return m ~= 0 and (b < 0) ~= (m < 0) and m + b or m
end

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
  function V.sgn(x) return truth(x > 0) - truth(x < 0) end
  function V.absval(x) if x < 0 then return -x else return x + 0 end end
  function V.larger(a, b) if a > b or a ~= a then return a else return b end end
  function V.smaller(a, b) if a < b or a ~= a then return a else return b end end
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

-- Integers; `width' is that of the type in which the row computes.
local function intwords(width)
  local V = common()
  V.lowest, V.highest = math.mininteger, math.maxinteger
  function V.logistic(x) return x end
  function V.power(a, b)
    if b < 0 then return a == 1 and 1 or a == -1 and (b % 2 == 0 and 1 or -1) or 0 end
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

O.vocabulary = { float = floatwords(), int32 = intwords(32),
                 int64 = intwords(64), bool = intwords(32) }
O.vocabulary.bool.bnot = function(x) return 1 - x end

-- The words for rows that compute in type t.
function O.words(t)
  if O.isfloat(t) then return O.vocabulary.float end
  return O.vocabulary[t == "int64" and t or t == "bool" and t or "int32"]
end

-- A function of named numbers from the text of a row.
function O.compile(text, words, names)
  local f, why = load("local " .. names .. " = ...; return " .. text,
                      "=" .. text, "t", words)
  if f == nil then error("not a Lua expression: " .. text .. ": " .. why, 0) end
  return f
end

-- ---- numbers that know how far off floats of a type may be
--
-- {v, e, s}: the value in double; a bound of the error that computing in the
-- type makes, if each function is within 4 ulp; what rounding every step to
-- the type gives. `u' is half an ulp of 1.

function O.tracked(t)
  local u, tiny = 0.5 * 2.0 ^ (1 - digits[t]), 2 * exp2i(lowexp[t])
  local most = largest[t]
  local M = {}
  local function new(v, e, s)
    if not (abs(v) <= most) then e = inf end
    return setmetatable({ v, e + tiny * u, O.round(s, t) }, M)
  end
  local function lift(a)
    if type(a) == "table" then return a end
    return { a * 1.0, 0.0, O.round(a * 1.0, t) }
  end
  M.__add = function(a, b)
    a, b = lift(a), lift(b)
    local v = a[1] + b[1]
    return new(v, a[2] + b[2] + u * abs(v), a[3] + b[3])
  end
  M.__unm = function(a) return setmetatable({ -a[1], a[2], -a[3] }, M) end
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
    local e = room > 0 and (a[2] + abs(v) * b[2]) / room or b[2] > 0 and inf or 0
    return new(v, e + u * abs(v), a[3] / b[3])
  end
  local V = {}
  function V.K(c) return c end
  local function compare(f)
    return function(a, b)
      a, b = lift(a), lift(b)
      local sure = abs(a[1] - b[1]) > a[2] + b[2] or a[2] + b[2] == 0
      return setmetatable({ truth(f(a[1], b[1])), sure and 0 or 1,
                            truth(f(a[3], b[3])) }, M)
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
    return setmetatable({ truth(a[1] ~= 0 and b[1] ~= 0), math.max(a[2], b[2]),
                          truth(a[3] ~= 0 and b[3] ~= 0) }, M)
  end
  function V.either(a, b)
    a, b = lift(a), lift(b)
    return setmetatable({ truth(a[1] ~= 0 or b[1] ~= 0), math.max(a[2], b[2]),
                          truth(a[3] ~= 0 or b[3] ~= 0) }, M)
  end
  function V.where(c, a, b)
    c, a, b = lift(c), lift(a), lift(b)
    local s = c[3] ~= 0 and a[3] or b[3]
    if c[1] == 0 then a, b = b, a end
    local e = c[2] == 0 and a[2] or math.max(a[2], abs(a[1] - b[1]) + b[2])
    return setmetatable({ a[1], e, s }, M)
  end
  function V.square(x) return x * x end
  function V.sgn(x) return V.gt(x, 0) - V.lt(x, 0) end
  function V.absval(x) return V.where(V.lt(x, 0), -lift(x)[1] == 0 and 0 or
                                      M.__unm(lift(x)), x) end
  function V.larger(a, b) return V.where(V.either(V.gt(a, b), V.ne(a, a)), a, b) end
  function V.smaller(a, b) return V.where(V.either(V.lt(a, b), V.ne(a, a)), a, b) end
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
      for _, p in ipairs { 1, -1 } do
        for _, q in ipairs { 1, -1 } do
          local d = abs(f(a[1] + p * a[2], b[1] + q * b[2]) - v)
          e = d > e and d or e
        end
      end
      return new(v, e + 8 * u * abs(v), f(a[3], b[3]))
    end
  end
  V.truncdiv = function(a, b) return V.trunc(M.__div(a, b)) end
  V.number = function(v) return setmetatable({ v, 0, v }, M) end
  return V
end

-- ---- rows

local kinds = { unary = 1, test = 1, binary = 2, compare = 2, ternary = 3,
                choose = 3, reduce = 1 }

-- Every row of the table, also those whose names begin with "_".
function O.rows()
  local rows = {}
  for name in pairs(nacre) do
    local row = nacre._info(name)
    if row and row.class then
      row.arity = kinds[row.kind]
      rows[#rows + 1] = row
    end
  end
  table.sort(rows, function(a, b) return a.name < b.name end)
  assert(#rows > 50, "where are the rows?")
  return rows
end

-- The parameters p and q of a row: a list of { name, default }. A choice has
-- the number of its word as value, and `words'.
function O.parameters(row)
  local list = {}
  local args = row.signature:match("%((.*)%)")
  local i = 0
  for word in args:gmatch("[^,]+") do
    local name, default = word:match("^%s*([%w_]+)=?(.*)$")
    if name then
      i = i + 1
      local usual = row.kind == "reduce" and 4 or row.arity
      if i > usual then
        local p = { name = name, default = tonumber(default) }
        if default:find('"') then
          local x = nacre.ones(1)
          local ok, e = pcall(nacre[row.name], x, { [name] = "?" })
          local words = tostring(e):match("one of ([%w_|]+)")
          p.words, p.default = {}, 0
          for w in words:gmatch("[%w_]+") do p.words[#p.words + 1] = w end
        end
        list[#list + 1] = p
      end
    end
  end
  return list
end

return O
