-- SPDX-License-Identifier: MIT
-- Reductions that are operators: extremes and their positions, variance,
-- norms, logsumexp, softmax, running sums; what they do with nothing, with nan
-- and with ties; accuracy of long sums.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check
local inf, nan = math.huge, 0 / 0
local T = nacre.tensor

local function text(v)
  if nacre.is_tensor(v) then v = v:totable() end
  if type(v) ~= "table" then
    if v ~= v then return "nan" end
    return type(v) == "number" and ("%.6g"):format(v) or tostring(v)
  end
  local list = {}
  for i, e in ipairs(v) do list[i] = text(e) end
  return "{" .. table.concat(list, ",") .. "}"
end

-- t shows as `want', has the shape {..} and the type
local function is(t, want, dtype, what)
  what = what or want
  check(text(t) == want, "%s: %s, not %s", what, text(t), want)
  if dtype then
    check(t.dtype == dtype, "%s: %s, not %s", what, t.dtype, dtype)
  end
end

local function near(got, want, tolerance, what)
  if nacre.is_tensor(got) then got = got:item() end
  check(math.abs(got - want) <= tolerance * math.abs(want),
        "%s: %.9g, not %.9g",
        what, got, want)
end

local function shape(t) return table.concat(t:size(), "x") end

-- ---- max, min, argmax, argmin

for _, dtype in ipairs(O.dtypes) do
  local t = T({{3, 1, 2}, {0, 5, 5}}, {dtype = dtype})
  if dtype == "bool" then
    t = T {{true, true, true}, {false, true, true}}
  end
  local high = dtype == "bool" and "true" or "5"
  is(t:max(), high, dtype, dtype .. " max")
  is(t:min(), dtype == "bool" and "false" or "0", dtype, dtype .. " min")
  local v, i = t:max(2)
  check(v.dtype == dtype and i.dtype == "int64", "%s max(2): types", dtype)
  is(i, "{1,2}", "int64", dtype .. " positions of the largest")
  v, i = t:min(1, true)
  check(shape(v) == "1x3" and shape(i) == "1x3", "%s min(1, true)", dtype)
  is(i, dtype == "bool" and "{{2,1,1}}" or "{{2,1,1}}", "int64",
     dtype .. " positions of the smallest")
  is(t:argmax(), dtype == "bool" and "1" or "5", "int64", dtype .. " argmax")
  is(t:argmin(), "4", "int64", dtype .. " argmin")
  is(t:argmax(2), "{1,2}", "int64", dtype .. " argmax(2)")
  is(t:argmax {dim = -1, keepdim = true}, "{{1},{2}}", "int64",
     dtype .. " argmax kept")
end

for _, dtype in ipairs(O.floats) do
  local o = {dtype = dtype}
  local t = T({1, nan, 7, nan}, o)
  is(t:max(), "nan", dtype)
  is(t:min(), "nan", dtype)
  is(t:amax(), "nan", dtype)
  is(t:argmax(), "2", "int64", "argmax of nan: the first")
  is(t:argmin(), "2", "int64", "argmin of nan: the first")
  local v, i = t:max(1)
  is(v, "nan", dtype)
  is(i, "2", "int64")
  is(T({-inf, -inf}, o):max(), "-inf", dtype)
  is(T({-inf, -inf}, o):argmax(), "1", "int64")
  is(T({inf, 3, inf}, o):argmax(), "1", "int64")
  is(T({inf, 3, inf}, o):argmin(), "2", "int64")
  is(T({inf, -inf, nan}, o):argmin(), "3", "int64")
  for _, at in ipairs {1, 2, 63, 64, 65, 1000, 1024, 1025, 3000} do
    local long = nacre.zeros(3001, o)
    long[at] = 2
    long[3001] = 2
    is(long:argmax(), tostring(at), "int64", "the first of two at " .. at)
    long[at] = nan
    is(long:argmax(), tostring(at), "int64", "nan at " .. at)
    is(long:argmin(), tostring(at), "int64", "nan at " .. at)
    long[at] = inf
    is(long:argmin(), at == 1 and "2" or "1", "int64", "inf at " .. at)
  end
end
local big = nacre.arange(200000)
is(big:argmax(), "200000", "int64")
is(big:flatten():view(400, 500):argmax(1):max(), "400", "int64")
is((big:to("float32") * 0 + 1):argmax(), "1", "int64", "a tie over pieces")
is(T {math.mininteger, math.maxinteger}:max(),
   ("%.6g"):format(math.maxinteger))
check(T {math.maxinteger - 1, math.maxinteger}:argmax():item() == 2,
      "positions of integers are exact")
check(T {math.maxinteger - 1, math.maxinteger}:max():item() ==
      math.maxinteger, "extremes of integers are exact")
local v, i = T {math.maxinteger - 1, math.maxinteger}:max(1)
check(v:item() == math.maxinteger and i:item() == 2, "max(1) of integers")

is(T(5):max(), "5", "int64", "max of 0-d")
v, i = T(5):max(1)
is(v, "5", "int64")
is(i, "1", "int64")
v, i = T(2.5):min(-1, true)
check(v.ndim == 0 and i.ndim == 0, "0-d stays 0-d")
is(T(2.5):argmax(), "1", "int64")
is(T {1, 5}:max(T {3, 2}), "{3,5}", "int64", "max of two")
is(T {1, 5}:min(T(2)), "{1,2}", "int64", "min of two")
is(nacre.max(T {1, nan}, T {nan, 2}), "{nan,nan}", "float32")

for _, name in ipairs {"max", "min", "argmax", "argmin"} do
  local f = nacre[name]
  fails("EVALUE: " .. name .. ": no elements", f, nacre.zeros(0))
  fails("EVALUE: " .. name .. ": no elements along dim 2", f, nacre.zeros(3, 0),
        2)
  local y = f(nacre.zeros(3, 0), 1)
  check(shape(y) == "0", "%s(1) of 3x0: %s", name, shape(y))
  fails("EINDEX: " .. name, f, nacre.zeros(2, 2), 3)
  fails("EINDEX: " .. name, f, nacre.zeros(2, 2), 0)
  fails("EINDEX: " .. name, f, nacre.zeros(2, 2), -3)
end

-- ---- dims of sum and mean; reductions.lua has the values

local m = T {{1, 2}, {3, 4}}
is(m:sum {dim = {-1, 1}, keepdim = true}, "{{10}}", "int64")
is(m:sum {dim = {}}, "10", "int64", "no dims are all dims")
fails("EINDEX: sum: dim 2 is given twice", m.sum, m, {2, -1})
fails("EINDEX: sum", m.sum, m, 3)
fails("EINDEX: sum", m.sum, m, {1, 0})
local e = fails("EDTYPE: mean: needs a float dtype, not int64", m.mean, m)
check(e.hint and e.hint:find("dtype", 1, true), "mean of integers hints")

-- ---- var, std; opinfo_torch.py compares them with PyTorch

local x = T {1, 2, 3, 4.5}
near(x:var {correction = 2}, 3.34375, 1e-6, "var, correction 2")
near(x:var {correction = 0}, 1.671875, 1e-6, "var, correction 0")
is(T {3.0, 5}:var {correction = 2}, "inf", "float32", "nothing left")

-- ---- norm

local y = T {3, -4, 0.0}
near(T {1.0, 2}:norm(-1), 1 / 1.5, 1e-6, "norm(-1)")
is(T {{3.0, 4}, {6, 8}}:norm {p = inf, dim = {1, 2}}, "8")
fails("EDTYPE: norm", m.norm, m)
is(m:norm {dtype = "float64"}, "5.47723", "float64")
fails("EDTYPE: norm", y.norm, y, {dtype = "int32"})
fails("EVALUE: norm", nacre.norm, nacre.zeros(0), inf)
-- others fold float32 in float32, as PyTorch does
if O.device == "cpu" then
  near(nacre.full(1000, 1e-30):norm(), 1e-30 * 1000 ^ 0.5, 1e-6,
       "norm does not underflow")
  near(nacre.full(1000, 1e30):norm(), 1e30 * 1000 ^ 0.5, 1e-6,
       "norm does not overflow")
end

-- ---- logsumexp, softmax, log_softmax

is(T {1000.0, 1000}:logsumexp(1), "1000.69")
is(T {-1000.0, -1000}:logsumexp(1), "-999.307")
is(m:logsumexp(2), "{2.31326,4.31326}", "float32", "logsumexp of integers")
fails("dim", nacre.logsumexp, y)
is(T {1000.0, 1000}:softmax(), "{0.5,0.5}")
is(T {-1000.0, 1000}:softmax(1), "{0,1}")
is(T {-1000.0, 1000}:log_softmax(1), "{-2000,0}")
is(T {-inf, -inf}:softmax(1), "{nan,nan}")
is(T {-inf, 0}:softmax(1), "{0,1}")
is(T {-inf, 0}:log_softmax(1), "{-inf,0}")
is(T {inf, 0}:softmax(1), "{nan,nan}")
is(T {nan, 0}:log_softmax(1), "{nan,nan}")
is(nacre.zeros(0):softmax(1), "{}")
is(nacre.zeros(2, 0):softmax(2), "{{},{}}")
is(T(7.0):softmax(1), "1")
is(T(7.0):log_softmax(-1), "0")
is(T {{0.0, 0}, {0, 0}}:softmax(1), "{{0.5,0.5},{0.5,0.5}}")
is(m:softmax {dim = 1, dtype = "float32"},
   "{{0.119203,0.119203},{0.880797,0.880797}}")
fails("EDTYPE: softmax: needs a float dtype", m.softmax, m)
fails("EINDEX: softmax", y.softmax, y, 3)
for _, dtype in ipairs(O.floats) do
  local z = (nacre.arange(3000):to("float32") * 0.37):sin():to(dtype):view(10,
      300)
  for dim = 1, 2 do
    local s = z:softmax(dim)
    local total = s:to("float64"):sum(dim)
    local tolerance = dtype == "float64" and 1e-14 or dtype == "float32" and
        2e-6
                      or 0.02
    check(s.dtype == dtype, "softmax keeps %s", dtype)
    check((total - 1):abs():max():item() < tolerance,
          "%s softmax(%d) sums to 1: %g",
          dtype, dim, (total - 1):abs():max():item())
    check(nacre.allclose(z:transpose(1, 2):softmax(3 - dim), s:t(), tolerance,
                         tolerance),                -- added in another order
          "%s softmax of a transpose", dtype)
    check(nacre.allclose(z:log_softmax(dim):exp(), s, tolerance * 2, tolerance),
          "%s log_softmax(%d)", dtype, dim)
    local l = z:to("float64"):logsumexp(dim)
    check(nacre.allclose(z:logsumexp(dim):to("float64"), l, tolerance,
                         tolerance),
          "%s logsumexp(%d)", dtype, dim)
  end
end

-- ---- accuracy of much

near(nacre.full(65536, 0.1):sum(), 6553.6, 2e-7, "float32 sum of 65536 x 0.1")
near(nacre.full({256, 256}, 0.1):t():sum(), 6553.6, 2e-7, "transposed")
near(nacre.full({65536, 3}, 0.1):sum(1)[2], 6553.6, 2e-7, "down the columns")
near(nacre.full({3, 65536}, 0.1):sum(2)[2], 6553.6, 2e-7, "along the rows")
near(nacre.full(65536, 0.1):mean(), 0.1, 1e-6, "mean")
for _, dtype in ipairs {"float16", "bfloat16"} do
  local one = nacre.full(40000, 1, {dtype = dtype})
  near(one:sum(), 40000, 5e-3, dtype .. " sum of 40000")
  near(nacre.full(40000, 0.1, {dtype = dtype}):sum(), 4000, 5e-3, dtype)
  near(one:mean(), 1, 1e-6, dtype .. " mean")
  near(one:norm(), 200, 5e-3, dtype .. " norm")
  near(one:cumsum(1)[40000], 40000, 5e-3, dtype .. " cumsum")
end
local count = nacre.range(1, 40000)     -- integers, exactly
check(nacre.ones(40000):gt(0):cumsum(1) == count, "cumsum of bools")
check(count:cumsum(1) == (count * (count + 1)) // 2, "cumsum of int64")
local u = (nacre.arange(100000):to("float64") * 0.6180339887) % 1
near((u + 1000):to("float32"):var(), 1 / 12, 2e-3, "var at 1000")
near((u + 1e9):var(), 1 / 12, 2e-3, "float64 var at 1e9")
near((u:view(100, 1000) + 1000):to("float32"):var(2)[50], 1 / 12, 2e-2,
     "var(2)")
near((u:view(1000, 100) + 1000):to("float32"):var(1)[50], 1 / 12, 2e-2,
     "var(1)")

-- ---- the same on any number of threads

local r = (nacre.arange(300000):to("float32") * 0.7):sin()
for _, name in ipairs {"var", "std", "norm", "argmax", "max", "softmax",
                       "logsumexp", "cumsum", "log_softmax"} do
  for _, view in ipairs {r, r:view(3, 100000), r:view(100000, 3)} do
    for dim = 1, view.ndim do
      local first
      for threads = 1, 3 do
        nacre.set_num_threads(threads)
        local got = view[name](view, {dim = dim})
        first = first or got
        check(got == first, "%s(%d) of %s on %d threads", name, dim,
              shape(view), threads)
      end
    end
  end
end

O.done "reduce_dim"
