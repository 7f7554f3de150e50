-- SPDX-License-Identifier: MIT
-- Which dtype operations give: the promotion table, tensors without dimensions
-- and numbers, what may be written in place, comparison with numbers that a
-- dtype does not have.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check

-- As PyTorch's documentation has it; short names in the order of O.dtypes.
local short = {B = "bool", u1 = "uint8", i1 = "int8", i2 = "int16",
               i4 = "int32", i8 = "int64", f2 = "float16", b2 = "bfloat16",
               f4 = "float32", f8 = "float64"}
local order = {"B", "u1", "i1", "i2", "i4", "i8", "f2", "b2", "f4", "f8"}
local rows = {
  B  = "B  u1 i1 i2 i4 i8 f2 b2 f4 f8",
  u1 = "u1 u1 i2 i2 i4 i8 f2 b2 f4 f8",
  i1 = "i1 i2 i1 i2 i4 i8 f2 b2 f4 f8",
  i2 = "i2 i2 i2 i2 i4 i8 f2 b2 f4 f8",
  i4 = "i4 i4 i4 i4 i4 i8 f2 b2 f4 f8",
  i8 = "i8 i8 i8 i8 i8 i8 f2 b2 f4 f8",
  f2 = "f2 f2 f2 f2 f2 f2 f2 f4 f4 f8",
  b2 = "b2 b2 b2 b2 b2 b2 f4 b2 f4 f8",
  f4 = "f4 f4 f4 f4 f4 f4 f4 f4 f4 f8",
  f8 = "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8",
}
local category = {bool = 0, float16 = 2, bfloat16 = 2, float32 = 2,
                  float64 = 2}
local function cat(t) return category[t] or 1 end

local wide, zero = {}, {}     -- of each type, with one dimension and with none
for _, t in ipairs(O.dtypes) do
  wide[t] = nacre.ones(3, {dtype = t})
  zero[t] = nacre.ones({}, {dtype = t})
end

local function is(t, want, what)
  check(t.dtype == want, "%s gives %s, not %s", what, t.dtype, want)
end

local table_ = {}
for _, a in ipairs(order) do
  local j = 0
  for r in rows[a]:gmatch("%S+") do
    j = j + 1
    local ta, tb, tr = short[a], short[order[j]], short[r]
    table_[ta .. tb] = tr
    for _, of in ipairs {wide, zero} do
      local x, y = of[ta], of[tb]
      local what = ("%s and %s of %d dimensions"):format(ta, tb, x.ndim)
      is(x + y, tr, what)
      is(nacre.maximum(x, y), tr, "maximum of " .. what)
      is(nacre.where(x:ne(0), x, y), tr, "where of " .. what)
      is(x:eq(y), "bool", "eq of " .. what)
      is(x / y, cat(tr) == 2 and tr or "float32", "quotient of " .. what)
    end
    -- one without dimensions matters only if its category is higher
    local tz = cat(tb) > cat(ta) and tr or ta
    is(wide[ta] * zero[tb], tz, ta .. "[3] and " .. tb .. "[]")
    is(zero[tb] * wide[ta], tz, tb .. "[] and " .. ta .. "[3]")
  end
end

-- Numbers: only a higher category raises, to the default dtype.
for _, t in ipairs(O.dtypes) do
  local float = cat(t) == 2 and t or "float32"
  local int = cat(t) >= 1 and t or "int64"
  for _, x in ipairs {wide[t], zero[t]} do
    for _, case in ipairs {{2, int}, {2.5, float}, {2.0, float}, {true, t}} do
      local v, want = case[1], case[2]
      is(x:mul(v), want, t .. " and " .. tostring(v))
      is(nacre.mul(v, x), want, tostring(v) .. " and " .. t)
    end
  end
end

-- three operands: several dimensions, none, a number
is(nacre.addcmul(wide.int32, zero.int64, zero.float16), "float16", "addcmul")
is(nacre.where(wide.bool, 1, zero.int16), "int16", "where of 1 and int16[]")
is(nacre.where(wide.bool, 1, 2.5), "float32", "where of 1 and 2.5")
is(nacre.where(wide.bool, 1, 2), "int64", "where of 1 and 2")
is(nacre.where(wide.bool, true, false), "bool", "where of booleans")

-- the default dtype
nacre.set_default_dtype("float64")
is(wide.int32 * 2.5, "float64", "int32 * 2.5 by default float64")
is(wide.int32:exp(), "float64", "exp(int32) by default float64")
is(wide.float16 * 2.5, "float16", "float16 * 2.5")
is(nacre.tensor {1.5}, "float64", "tensor by default float64")
nacre.set_default_dtype("float32")
fails("float", nacre.set_default_dtype, "int32")

-- ---- in place: a higher category is refused

for _, ta in ipairs(O.dtypes) do
  for _, tb in ipairs(O.dtypes) do
    local x, tr = wide[ta]:clone(), table_[ta .. tb]
    local what = ("%s:mul_(%s)"):format(ta, tb)
    if cat(tr) > cat(ta) then
      fails("EDTYPE: cannot be written", x.mul_, x, wide[tb])
      fails("EDTYPE: cannot be written", nacre.mul, wide[ta], wide[tb],
            {out = x})
      check(x == wide[ta], "%s changed what it refused", what)
    else
      local z = x:mul_(wide[tb])
      check(z == x and x.dtype == ta, "%s", what)
    end
  end
end
fails("EDTYPE: float32 result", wide.int64.div_, wide.int64:clone(), 2)
fails("EDTYPE: ", wide.bool.add_, wide.bool:clone(), 1)
fails("EDTYPE: ", wide.int32.exp_, wide.int32:clone())
fails("EDTYPE: ", wide.int32.add_, wide.int32:clone(), 0.5)
local x = wide.float16:clone()
x:add_(wide.float64)
check(x.dtype == "float16" and x[1] == 2, "float16:add_(float64)")
x = wide.uint8:clone()
x:add_(wide.int64 * 300)
check(x.dtype == "uint8" and x[1] == 45, "uint8:add_(int64) wraps: %s", x[1])
x = wide.float32:clone()
x:eq_(1)
check(x.dtype == "float32" and x[1] == 1, "eq_ keeps the type")

-- ---- casts

local cases = {
  {300, "uint8", 44}, {-1, "uint8", 255},
  {300.0, "uint8", 255}, {200, "int8", -56},
  {65536 + 7, "int16", 7}, {1 << 40, "int32", 0}, {-1.5, "uint8", 0},
  {1e30, "int8", 127}, {-1 / 0, "int8", -128},
  {-40000.5, "int16", -32768},
 
  {2.7, "int64", 2}, {-2.7, "int32", -2}, {1e10, "int32", 2147483647},
  {-1e10, "int32", -2147483648}, {1e300, "int64", math.maxinteger},
  {-1e300, "int64", math.mininteger}, {0 / 0, "int32", 0},
  {0 / 0, "int64", 0}, {0 / 0, "uint8", 0}, {0 / 0, "int8", 0},
  {1 / 0, "int64", math.maxinteger},
  {0.25, "bool", true}, {0 / 0, "bool", true}, {-0.0, "bool", false},
  {65519.0, "float16", 65504.0}, {65520.0, "float16", 1 / 0},
  {1e-8, "float16", 0.0}, {5.97e-8, "float16", 2.0 ^ -24},
  {1 + 2.0 ^ -11, "float16", 1.0},
  {1 + 3 * 2.0 ^ -11, "float16", 1 + 2.0 ^ -9},
  {1 + 2.0 ^ -8, "bfloat16", 1.0},
  {1 + 3 * 2.0 ^ -8, "bfloat16", 1 + 2.0 ^ -6},
  {3.4e38, "bfloat16", 1 / 0}, {1e39, "float32", 1 / 0},
  {2 ^ 53 + 1, "float64", 2.0 ^ 53}, {16777217, "float32", 16777216.0},
}
for _, c in ipairs(cases) do
  local v, t, want = c[1], c[2], c[3]
  for n = 1, 40, 39 do          -- scalar and vector code
    local from = math.type(v) == "integer" and "int64" or "float64"
    local got = nacre.full(n, v, {dtype = from}):to(t)[n]
    check(got == want, "%s[%d] of %s is %s, not %s", t, n, v, got, want)
  end
  check(O.cast(v, t) == want, "the oracle casts %s to %s as %s", v, t,
        O.cast(v, t))
end
check(nacre.tensor {9007199254740993}[1] == 9007199254740993, "2^53 + 1")
check(nacre.tensor {math.maxinteger}:item() == math.maxinteger, "2^63 - 1")
check(nacre.tensor {math.maxinteger}:totable()[1] == math.maxinteger,
      "2^63 - 1")

-- ---- comparison with numbers that the type does not have

for _, t in ipairs {"uint8", "int8", "int16", "int32"} do
  local one = wide[t]
  local bits = O.width[t]
  for _, v in ipairs {(1 << bits) + 1, -(1 << bits) + 1, 1 << 40,
                      -1 - (1 << 40),
                      math.maxinteger, math.mininteger} do
    check(not one:eq(v):any():item(), "%s 1 equals %d", t, v)
    check(one:ne(v):all():item(), "%s 1 equals %d", t, v)
    check(one:lt(v):all():item() == (1 < v), "%s 1 < %d", t, v)
    check(one:ge(v):all():item() == (1 >= v), "%s 1 >= %d", t, v)
    check(nacre.gt(v, one):all():item() == (v > 1), "%d > %s 1", v, t)
  end
end
check(wide.int64:lt(1.5):all():item(), "int64 1 < 1.5")
check(wide.uint8:gt(-1):all():item(), "uint8 1 > -1")
check(wide.uint8:gt(-0.5):all():item(), "uint8 1 > -0.5")
check(wide.bool:eq(2):any():item() == false, "true equals 2")
check(wide.bool:lt(2):all():item(), "true < 2")
local tenth = nacre.tensor {0.1}
for _, t in ipairs(O.floats) do   -- the number is rounded as the elements are
  check(tenth:to("float64"):to(t):eq(0.1):item() == (t ~= "float64") or
        t == "float64", "%s 0.1 equals 0.1", t)
end
check(nacre.tensor({0.1}, {dtype = "float64"}):eq(0.1):item(), "0.1 == 0.1")

-- ---- sums and products wrap, as PyTorch's do; bounds and divisors do not

check((wide.uint8 + 300)[1] == 45, "uint8 1 + 300")
check((wide.uint8 + -2)[1] == 255, "uint8 1 - 2")
check((wide.int8 + 300)[1] == 45, "int8 1 + 300")
check((wide.int8 * 200)[1] == -56, "int8 1 * 200")
check((300 - wide.int8)[1] == 43, "300 - int8 1")
check((wide.int16 - 70000)[1] == O.wrap(1 - 70000, "int16"), "int16 1 - 70000")
for t, v in pairs {uint8 = 300, int8 = 200, int16 = -70000,
                   int32 = 1 << 31} do
  for _, op in ipairs {"floor_divide", "remainder",
                       "pow", "maximum", "clamp", "gcd"} do
    local text = v .. " does not fit in " .. t
    fails("EVALUE: " .. text, wide[t][op], wide[t], v)
  end
end
local hundred = nacre.full(3, 100, {dtype = "int8"})

-- ---- operands of other types are first what the common type makes of them

x = nacre.tensor({1, 2}, {dtype = "float16"})
local large = nacre.tensor {100000, 7001}
check((x * large)[1] == 1 / 0, "100000 is inf as float16")
check(large:eq(nacre.tensor({0, 7000}, {dtype = "float16"}))[2],
      "7001 is 7000 as float16")
check((x + nacre.tensor(1 / 3))[1] == O.round(1 + O.round(1 / 3, "float16"),
                                              "float16"), "0-d float32")
check((hundred // nacre.tensor(300))[1] == 2, "0-d int64 300 is 44 as int8")
check(hundred:eq(nacre.tensor(100 + 256))[1] == true, "0-d int64 wraps")

O.done("promotion")
