-- SPDX-License-Identifier: MIT
-- Which type operations give: the promotion table, tensors without dimensions
-- and numbers, what may be written in place, comparison with numbers that a
-- type does not have.
-- Run by: nacre tests/ops/promotion.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check, raises = O.check, O.raises

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

local function is(t, want, what, ...)
  check(t.dtype == want, what .. " give %s, not %s",
        ...)
end

local table_ = {}
for i, a in ipairs(order) do
  local j = 0
  for r in rows[a]:gmatch("%S+") do
    j = j + 1
    local ta, tb, tr = short[a], short[order[j]], short[r]
    table_[ta .. tb] = tr
    for _, pair in ipairs {{wide[ta], wide[tb], "%s[3] and %s[3]"},
                           {zero[ta], zero[tb], "%s[] and %s[]"}} do
      is(pair[1] + pair[2], tr, pair[3], ta, tb, (pair[1] + pair[2]).dtype, tr)
      is(nacre.maximum(pair[1], pair[2]), tr, "maximum of " .. pair[3], ta, tb,
         nacre.maximum(pair[1], pair[2]).dtype, tr)
      local w = nacre.where(pair[1]:ne(0), pair[1], pair[2])
      is(w, tr, "where of " .. pair[3], ta, tb, w.dtype, tr)
      check(pair[1]:eq(pair[2]).dtype == "bool", "eq of %s, %s", ta, tb)
      local d = pair[1] / pair[2]
      local td = cat(tr) == 2 and tr or "float32"
      is(d, td, "quotient of " .. pair[3], ta, tb, d.dtype, td)
    end
    -- one without dimensions matters only if its category is higher
    local tz = cat(tb) > cat(ta) and tr or ta
    local y = wide[ta] * zero[tb]
    is(y, tz, "%s[3] and %s[]", ta, tb, y.dtype, tz)
    y = zero[tb] * wide[ta]
    is(y, tz, "%s[] and %s[3]", tb, ta, y.dtype, tz)
  end
end

-- Numbers: only a higher category raises, to the default type.
for _, t in ipairs(O.dtypes) do
  local float = cat(t) == 2 and t or "float32"
  local int = cat(t) >= 1 and t or "int64"
  for _, x in ipairs {wide[t], zero[t]} do
    for _, case in ipairs {{2, int}, {2.5, float}, {2.0, float},
                           {true, t}, {4 / 2, float}} do
      local v, want = case[1], case[2]
      local y = x:mul(v)
      is(y, want, "%s and %s", t, v, y.dtype, want)
      y = nacre.mul(v, x)
      is(y, want, "%s and %s", v, t, y.dtype, want)
    end
  end
end
check((wide.int32 + 2).dtype == "int32", "int32 + 2")
check((2 - wide.float16).dtype == "float16", "2 - float16")
check((wide.int64 + zero.float64).dtype == "float64", "int64[3] + float64[]")
check((wide.float32 + zero.float64).dtype == "float32",
      "float32[3] + float64[]")
check((wide.int64 + zero.int32).dtype == "int64", "int64[3] + int32[]")
check((wide.uint8 + zero.int64).dtype == "uint8", "uint8[3] + int64[]")
check((zero.uint8 + 1).dtype == "uint8", "uint8[] + 1")
check((zero.int8 + zero.int64).dtype == "int64", "int8[] + int64[]")

-- three operands, of each rank one
local y = nacre.addcmul(wide.int32, zero.int64, zero.float16)
check(y.dtype == "float16", "addcmul of int32[3], int64[], float16[]: %s",
      y.dtype)
y = nacre.where(wide.bool, 1, zero.int16)
check(y.dtype == "int16", "where of 1 and int16[]: %s", y.dtype)
check(nacre.where(wide.bool, 1, 2.5).dtype == "float32", "where of 1 and 2.5")
check(nacre.where(wide.bool, 1, 2).dtype == "int64", "where of 1 and 2")
check(nacre.where(wide.bool, true, false).dtype == "bool", "where of booleans")

-- the default type
nacre.set_default_dtype("float64")
check((wide.int32 * 2.5).dtype == "float64", "int32 * 2.5 by default float64")
check(wide.int32:exp().dtype == "float64", "exp(int32) by default float64")
check((wide.float16 * 2.5).dtype == "float16", "float16 * 2.5 stays")
check(nacre.tensor {1.5}.dtype == "float64", "tensor by default float64")
nacre.set_default_dtype("float32")
raises("an integer default", nil, "float", nacre.set_default_dtype, "int32")

-- ---- in place: a higher category is refused

for _, ta in ipairs(O.dtypes) do
  for _, tb in ipairs(O.dtypes) do
    local x, tr = wide[ta]:clone(), table_[ta .. tb]
    local what = ("%s:mul_(%s)"):format(ta, tb)
    if cat(tr) > cat(ta) then
      raises(what, "EDTYPE", "cannot be written", x.mul_, x, wide[tb])
      raises(what .. " by out", "EDTYPE", "cannot be written", nacre.mul,
             wide[ta], wide[tb], {out = x})
      check(x == wide[ta], "%s changed what it refused", what)
    else
      local z = x:mul_(wide[tb])
      check(z == x and x.dtype == ta, "%s", what)
    end
  end
end
raises("int64:div_", "EDTYPE", "float32 result", wide.int64.div_,
       wide.int64:clone(), 2)
raises("bool:add_(1)", "EDTYPE", nil, wide.bool.add_, wide.bool:clone(), 1)
raises("int32:exp_", "EDTYPE", nil, wide.int32.exp_, wide.int32:clone())
raises("int32:add_(0.5)", "EDTYPE", nil, wide.int32.add_, wide.int32:clone(),
       0.5)
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
local nans = nacre.tensor {0 / 0, 0 / 0}
for _, t in ipairs(O.floats) do
  local v = nans:to(t):to("float64")[2]
  check(v ~= v, "nan as %s", t)
end
for _, from in ipairs(O.dtypes) do
  local values = {0, 1, 100, -3, 2.6, -2.6, 127, 128, 255, 256, 32768, -129,
                  70000, 0.1, 3e9, -3e9, 1e19, 65504, 6e-8, 1 / 0, -1 / 0}
  local src = nacre.tensor(values, {dtype = "float64"}):to(from)
  local seen = src:totable()
  for _, t in ipairs(O.dtypes) do
    local got = src:to(t):totable()
    for i, v in ipairs(seen) do
      local want = O.cast(v, t)
      check(got[i] == want, "%s %s as %s is %s, not %s", from, v, t, got[i],
            want)
    end
    local gaps = nacre.zeros(#seen, 2, {dtype = t})
    gaps:select(2, 2):copy_(src)
    check(gaps:select(2, 2):contiguous() == src:to(t) or
          O.isfloat(t) and O.isfloat(from), "copy_ from %s to %s", from, t)
  end
end
check(nacre.tensor {9007199254740993}[1] == 9007199254740993, "2^53 + 1")
check(nacre.tensor {math.maxinteger}:item() == math.maxinteger, "2^63 - 1")
check(nacre.tensor {math.maxinteger}:totable()[1] == math.maxinteger,
      "2^63 - 1")

-- ---- comparison with numbers that the type does not have

for _, t in ipairs {"uint8", "int8", "int16", "int32"} do
  local one = wide[t]
  local bits = O.bits[t]
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
    raises(op .. " of " .. t, "EVALUE", text, wide[t][op], wide[t], v)
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
