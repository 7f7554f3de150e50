-- SPDX-License-Identifier: MIT
-- New tensors: constants, sequences, the identity.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local dtypes, fails, shape = C.dtypes, C.fails, C.shape
local inf, nan = math.huge, 0 / 0
local minint, maxint = math.mininteger, math.maxinteger

-- t is 1-d, of this dtype and with these values.
local function is(t, dtype, ...)
  local want = nacre.tensor({...}, {dtype = dtype})
  assert(t.dtype == dtype, t.dtype .. ", not " .. dtype)
  assert(nacre.equal(t, want), ("%s, not %s"):format(t, want))
end

-- Constants
for _, f in ipairs {"zeros", "ones", "empty"} do
  shape(nacre[f](2, 3), 2, 3)
  shape(nacre[f] {2, 3}, 2, 3)
  shape(nacre[f](2, 0, 3), 2, 0, 3)
  shape(nacre[f]())
  shape(nacre[f] {})
  assert(nacre[f](2).dtype == "float32")
  for _, dtype in ipairs(dtypes) do
    local t = nacre[f](2, 3, {dtype = dtype})
    assert(t.dtype == dtype and t:is_contiguous())
    assert(t.device == nacre.get_default_device())
    shape(t[f .. "_like"](t), 2, 3)
  end
  fails("size -3 of dim 2 is negative: [2x-3]", nacre[f], 2, -3)
  fails("9 dimensions", nacre[f], 1, 1, 1, 1, 1, 1, 1, 1, 1)
  fails(f .. ": float32[4611686018427387904x4]", nacre[f], 1 << 62, 4)
  fails(f .. ": float32[0x4611686018427387904x4] is empty, but the product " ..
             "of its other " ..
        "sizes is too large", nacre[f], 0, 1 << 62, 4)
  fails("is negative", nacre[f], minint)
  fails("needs", nacre[f], maxint)
end
for _, dtype in ipairs(dtypes) do
  local zero, one = 0, 1
  if dtype == "bool" then zero, one = false, true end
  assert(nacre.zeros(2, {dtype = dtype})[2] == zero)
  assert(nacre.ones(2, {dtype = dtype})[2] == one)
  assert(nacre.ones(2, {dtype = dtype}):zeros_like()[2] == zero)
  assert(nacre.zeros(2, {dtype = dtype}):ones_like()[1] == one)
  assert(nacre.eye(2, {dtype = dtype})[{1, 1}] == one)
  assert(nacre.eye(2, {dtype = dtype})[{2, 1}] == zero)
end
is(nacre.full({2}, 7), "int64", 7, 7)
is(nacre.full({2}, 7.5), "float32", 7.5, 7.5)
is(nacre.full({2}, true), "bool", true, true)
is(nacre.full({2}, 7, {dtype = "float64"}), "float64", 7, 7)
is(nacre.full({1}, maxint), "int64", maxint)
is(nacre.full({0}, 1), "int64")
assert(nacre.full({}, minint):item() == minint)
assert(nacre.full({1}, nan)[1] ~= nacre.full({1}, nan)[1])

-- Like another: its dtype, its order in memory.
local t = nacre.zeros(2, 3, {dtype = "int16"}):t()
local u = t:full_like(5)
assert(u.dtype == "int16" and u[{3, 2}] == 5)
assert(u:stride()[1] == 1 and u:stride()[2] == 3)
assert(t:full_like(2.5, {dtype = "float64"})[{1, 1}] == 2.5)
shape(nacre.zeros(1, 3):expand(4, 3):ones_like(), 4, 3)
assert(nacre.zeros(1, 3):expand(4, 3):ones_like():is_contiguous())
shape(nacre.full({}, 3):zeros_like())

-- The default dtype
nacre.set_default_dtype("float64")
assert(nacre.zeros(1).dtype == "float64")
assert(nacre.arange(2.5).dtype == "float64")
assert(nacre.linspace(0, 1, 2).dtype == "float64")
assert(nacre.full({1}, .5).dtype == "float64")
assert(nacre.eye(1).dtype == "float64")
nacre.set_default_dtype("float32")

-- arange: the end is excluded.
is(nacre.arange(5), "int64", 0, 1, 2, 3, 4)
is(nacre.arange(2, 5), "int64", 2, 3, 4)
is(nacre.arange(2, 7, 2), "int64", 2, 4, 6)
is(nacre.arange(2, 8, 2), "int64", 2, 4, 6)
is(nacre.arange(5, 2, -1), "int64", 5, 4, 3)
is(nacre.arange(5, 1, -2), "int64", 5, 3)
is(nacre.arange(0), "int64")
is(nacre.arange(3, 3), "int64")
is(nacre.arange(1, 2.5), "float32", 1, 2)
is(nacre.arange(0, 1, .25), "float32", 0, .25, .5, .75)
is(nacre.arange(2.0), "float32", 0, 1)
is(nacre.arange(3, {dtype = "float16"}), "float16", 0, 1, 2)
is(nacre.arange(0, 2.9, {dtype = "int32"}), "int32", 0, 1, 2)
is(nacre.arange(254, 256, {dtype = "uint8"}), "uint8", 254, 255)
fails("256 does not fit in uint8", nacre.arange, 254, 257, {dtype = "uint8"})
is(nacre.arange(maxint - 1, maxint), "int64", maxint - 1)
is(nacre.arange(minint, maxint, maxint), "int64", minint, -1, maxint - 1)
is(nacre.arange(maxint, minint, minint), "int64", maxint, -1)
assert(#nacre.arange(0, 1, .1) == 10)
fails("the step is 0", nacre.arange, 0, 1, 0)
fails("steps of -1 do not go from 0 to 1", nacre.arange, 0, 1, -1)
fails("steps of 1 do not go from 0 to -1", nacre.arange, -1)
fails("steps of 0.5 do not go from 2 to 1", nacre.arange, 2, 1, .5)
fails("the end is inf, not a finite number", nacre.arange, inf)
fails("the start is nan, not a finite number", nacre.arange, nan, 1)
fails("the step is -inf", nacre.arange, 1, 2, -inf)
fails("more than a tensor can have", nacre.arange, minint, maxint)
fails("more than a tensor can have", nacre.arange, 0, 1, 5e-324)
fails("more than a tensor can have", nacre.arange, -1e308, 1e308, 1e-308)
fails("more than a tensor can have", nacre.arange, maxint)
fails("arange: int64[1099511627776] needs 8.0 TiB", nacre.arange, 1 << 40)
fails("not bool", nacre.arange, 3, {dtype = "bool"})

-- range: Lua's for; both ends included.
is(nacre.range(3), "int64", 1, 2, 3)
is(nacre.range(0), "int64")
is(nacre.range(-3), "int64")
is(nacre.range(2, 4), "int64", 2, 3, 4)
is(nacre.range(2, 7, 2), "int64", 2, 4, 6)
is(nacre.range(2, 8, 2), "int64", 2, 4, 6, 8)
is(nacre.range(3, 1), "int64")
is(nacre.range(3, 1, -1), "int64", 3, 2, 1)
is(nacre.range(0, 1, .5), "float32", 0, .5, 1)
is(nacre.range(maxint - 1, maxint), "int64", maxint - 1, maxint)
is(nacre.range(minint, maxint, maxint), "int64", minint, -1, maxint - 1)
for _, c in ipairs {{1, 5}, {5, 1}, {5, 1, -2}, {-3, 3, 3}} do
  local n, want = nacre.range(table.unpack(c)), {}
  for i = c[1], c[2], c[3] or 1 do want[#want + 1] = i end
  is(n, "int64", table.unpack(want))
end
fails("the step is 0", nacre.range, 1, 2, 0)
fails("more than a tensor can have", nacre.range, minint, maxint)
fails("more than a tensor can have", nacre.range, 0, maxint)
fails("the end is nan", nacre.range, nan)

-- Longer than what is computed at once, of each type.
for _, n in ipairs {511, 512, 513, 40000} do
  for _, dtype in ipairs {"int32", "int64", "float32", "float64"} do
    local first = 7 - 3 * n
    local y = nacre.arange(first, 7, 3, {dtype = dtype})
    assert(#y == n)
    for _, i in ipairs {1, 2, 512, 513, n // 2, n} do
      if i <= n then assert(y[i] == first + 3 * (i - 1)) end
    end
    if dtype:find "float" then
      local z = nacre.linspace(-1, 6, n, {dtype = "float64"}):to(dtype)
      local own = nacre.linspace(-1, 6, n, {dtype = dtype})
      assert(own:equal(z) and own[1] == -1 and own[n] == 6)
      assert(z:double():diff():sub(7 / (n - 1)):abs():max():item() < 1e-6)
    end
  end
end
local wide = nacre.arange(-1 << 31, (1 << 31) - 1, 1 << 23, {dtype = "int32"})
assert(#wide == 512 and wide[512] == -(1 << 31) + 511 * (1 << 23))

-- linspace: both ends exact, alike from either end.
is(nacre.linspace(0, 1, 5), "float32", 0, .25, .5, .75, 1)
is(nacre.linspace(3, 1, 3), "float32", 3, 2, 1)
is(nacre.linspace(2, 9, 1), "float32", 2)
is(nacre.linspace(2, 9, 0), "float32")
is(nacre.linspace(2, 9, 2), "float32", 2, 9)
is(nacre.linspace(0, 10, 5, {dtype = "int64"}), "int64", 0, 2, 5, 7, 10)
is(nacre.linspace(minint, maxint, 2, {dtype = "int64"}), "int64", minint,
   maxint)
is(nacre.linspace(-1e308, 1e308, 3, {dtype = "float64"}), "float64", -1e308,
   0, 1e308)
is(nacre.linspace(-1e308, 1e308, 2, {dtype = "float64"}), "float64", -1e308,
   1e308)
for _, n in ipairs {3, 10, 101, 1000} do
  local x = nacre.linspace(.1, .7, n, {dtype = "float64"})
  local y = nacre.linspace(.7, .1, n, {dtype = "float64"})
  assert(#x == n and x[1] == .1 and x[n] == .7)
  for i = 1, n do
    local want = .1 + (.7 - .1) * (i - 1) / (n - 1)
    assert(math.abs(x[i] - want) < 1e-15)
    if n % 2 == 0 or i ~= (n + 1) // 2 then assert(x[i] == y[n + 1 - i]) end
  end
end
fails("steps is -1, but must not be negative", nacre.linspace, 0, 1, -1)
fails("the end is inf", nacre.linspace, 0, inf, 3)
fails("the start is nan", nacre.linspace, nan, 1, 3)
fails("not bool", nacre.linspace, 0, 1, 3, {dtype = "bool"})
fails("needs", nacre.linspace, 0, 1, maxint)

-- eye
for n = 0, 3 do
  for m = 0, 3 do
    local e = nacre.eye(n, m)
    shape(e, n, m)
    for i = 1, n do
      for j = 1, m do assert(e[{i, j}] == (i == j and 1 or 0)) end
    end
  end
end
shape(nacre.eye(3), 3, 3)
fails("size -1 of dim 1 is negative", nacre.eye, -1)
fails("size -2 of dim 2 is negative", nacre.eye, 1, -2)
fails("needs", nacre.eye, 1 << 40)

-- More elements than one thread takes at once
local big = nacre.arange(100000)
for _, threads in ipairs {1, 3} do
  nacre.set_num_threads(threads)
  assert(nacre.arange(100000) == big)
end
for i = 1, 100000, 777 do assert(big[i] == i - 1) end
assert(big:sum():item() == 99999 * 50000)

-- zeros of all sizes, among other elements; -0 is not 0
for _, dtype in ipairs(dtypes) do
  for _, n in ipairs {1, 1000, 70000, 600001} do
    local t = nacre.ones(n + 2, {dtype = dtype})
    t:narrow(1, 2, n):fill_(0)
    assert(t:count_nonzero():item() == 2 and t[1] == t[n + 2])
  end
  local even = nacre.ones(80000, {dtype = dtype})
  even[{{2, -1, 2}}]:fill_(0)
  assert(even:count_nonzero():item() == 40000)
end
assert((1 / nacre.full({70000}, -0.0)):max():item() == -inf)
assert(nacre.full({70000}, 1e-40):min():item() > 0)

-- a bool is 0 or 1, also where nothing was set: masks are counted by that
nacre.full(5000, 255, {dtype = "uint8"}):free()
local mask = nacre.empty(5000, {dtype = "bool"})
assert(#mask:nonzero() <= 5000 and #nacre.arange(5000)[mask] <= 5000)
nacre.full(5000, 255, {dtype = "uint8"}):free()
mask = mask:empty_like()
assert(#mask:nonzero() <= 5000)

-- rows of nothing, more than a table or an int64 of bytes can hold
local empty = nacre.empty(1 << 58, 0)
fails("does not fit into memory", empty.totable, empty)
fails("needs", empty.var, empty, 2)
fails("needs", empty.logsumexp, empty, 2)
