-- SPDX-License-Identifier: MIT
-- Random numbers: the stream, its distributions, bad arguments.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, floats, ints = C.fails, C.floats, C.ints
local inf, nan = math.huge, 0 / 0
local minint, maxint = math.mininteger, math.maxinteger

local function near(a, b, bound)
  assert(math.abs(a - b) <= bound, ("%g is not near %g"):format(a, b))
end

-- f's result after a fresh seed
local function seeded(f, ...)
  nacre.manual_seed(42)
  return f(...)
end

-- The stream: Philox 4x32-10 in Lua, as core/base/philox.h lays it out.
local function philox(block, key, retry)
  local m = 0xffffffff
  local c0, c1, c2, c3 = block & m, block >> 32, retry or 0, 0
  local k0, k1 = key & m, key >> 32
  for _ = 1, 10 do
    local p, q = 0xD2511F53 * c0, 0xCD9E8D57 * c2
    c0, c1, c2, c3 = (q >> 32) ~ c1 ~ k0, q & m, (p >> 32) ~ c3 ~ k1, p & m
    k0, k1 = k0 + 0x9E3779B9 & m, k1 + 0xBB67AE85 & m
  end
  return {c0, c1, c2, c3}
end

nacre.manual_seed(0x123456789abcdef)
local x, y = nacre.rand(6), nacre.rand(3, {dtype = "float64"})
local h, b = nacre.rand(5, {dtype = "float16"}),
             nacre.rand(2, {dtype = "bfloat16"})
local n = nacre.randn(3)
local w = {}
for i = 0, 10 do w[i] = philox(i, 0x123456789abcdef) end
for i = 0, 5 do assert(x[i + 1] == (w[i // 4][i % 4 + 1] >> 8) / 2 ^ 24) end
for i = 0, 2 do          -- blocks 2 and 3
  local v = w[2 + i // 2]
  local high, low = v[i % 2 * 2 + 1] >> 5, v[i % 2 * 2 + 2] >> 6
  assert(y[i + 1] == (high * 2 ^ 26 + low) / 2 ^ 53)
end
for i = 0, 4 do
  assert(h[i + 1] == (w[4 + i // 4][i % 4 + 1] >> 21) / 2 ^ 11)
end
for i = 0, 1 do assert(b[i + 1] == (w[6][i + 1] >> 24) / 2 ^ 8) end
for i = 0, 2 do          -- block 7
  local k = i // 2 * 2
  local r = math.sqrt(-2 * math.log(((w[7][k + 1] >> 1) + .5) / 2 ^ 31))
  local angle = w[7][k + 2] / 2 ^ 32 * 2 * math.pi
  near(n[i + 1], r * (i % 2 == 0 and math.cos or math.sin)(angle), 2e-6)
end
nacre.manual_seed(9)
local r = nacre.randint(-5, 100, {9})
for i = 0, 8 do
  assert(r[i + 1] == -5 + (philox(i // 4, 9)[i % 4 + 1] * 105 >> 32))
end

-- The same seed gives the same numbers, whatever the threads and strides; a
-- call goes on where the last one ended.
local makers = {
  function(s) return nacre.rand(s) end,
  function(s) return nacre.randn(s) end,
  function(s) return nacre.randn(s, {dtype = "float64"}) end,
  function(s) return nacre.rand(s, {dtype = "float64"}) end,
  function(s) return nacre.randn(s, {dtype = "float16"}) end,
  function(s) return nacre.randint(10, s) end,
  function(s) return nacre.randint(1 << 40, s) end,
  function(s) return nacre.zeros(s):uniform_(-2, 3) end,
  function(s) return nacre.zeros(s):normal_(1, 2) end,
}
for _, f in ipairs(makers) do
  nacre.set_num_threads(1)
  local a = seeded(f, {50001})
  local second = f {7}
  nacre.set_num_threads(4)
  assert(seeded(f, {50001}) == a)
  assert(f {7} == second)
  assert(f {7} ~= second)
  assert(seeded(f, {3, 16667}):reshape(50001) == a)
  local size = seeded(f, {}):size()
  assert(#size == 0)
  assert(f({2, 0}):numel() == 0)
end
nacre.set_num_threads(2)
local t = nacre.zeros(40, 30):t()
local u = seeded(t.uniform_, t)
assert(u:contiguous() == seeded(nacre.rand, 30, 40) and t[{2, 3}] ~= 0)
assert(seeded(t.rand_like, t) == u and t:rand_like():stride()[1] == 1)
assert(seeded(nacre.randperm, 100) == seeded(nacre.randperm, 100))
assert(nacre.randperm(100) ~= nacre.randperm(100))
nacre.manual_seed(-1)
local a = nacre.rand(4)
nacre.manual_seed(-1)
assert(nacre.rand(4) == a)

-- Moments, for a fixed seed
local N = 200000
nacre.manual_seed(3)
for _, dtype in ipairs(floats) do
  local wide = nacre.rand(N, {dtype = dtype}):to("float64")
  local step = ({float16 = 2 ^ -11, bfloat16 = 2 ^ -8})[dtype] or 0
  near(wide:mean():item(), .5 - step / 2, 3e-3)
  near(wide:var():item(), 1 / 12, 2e-3)
  assert(wide:min():item() >= 0 and wide:max():item() < 1)
  wide = nacre.randn(N, {dtype = dtype}):to("float64")
  near(wide:mean():item(), 0, 1e-2)
  near(wide:var():item(), 1, 2e-2)
  near((wide ^ 3):mean():item(), 0, 5e-2)
  near((wide ^ 4):mean():item(), 3, .1)
  near(wide:abs():lt(1):to("float64"):mean():item(), .6827, 4e-3)
  wide = nacre.zeros(N, {dtype = dtype}):normal_(-1, .5):to("float64")
  near(wide:mean():item(), -1, 1e-2)
  near(wide:std():item(), .5, 1e-2)
end
-- neighbours and pairs of normals are unrelated
local z = nacre.randn(N, {dtype = "float64"})
for lag = 1, 4 do
  local c = z:narrow(1, 1, N - lag) * z:narrow(1, 1 + lag, N - lag)
  near(c:mean():item(), 0, 1e-2)
end

-- Uniform intervals: never the upper end.
for _, dtype in ipairs(floats) do
  for _, c in ipairs {{1, 2}, {-1, 0}, {1000, 1001}, {-4, -3.9},
                      {0, 6e4}} do
    local v = nacre.zeros(20000, {dtype = dtype}):uniform_(c[1], c[2])
    v = v:to("float64")
    local tol = dtype == "bfloat16" and 5 or dtype == "float16" and .01 or 1e-6
    assert(v:max():item() < c[2] and v:min():item() >= c[1] - tol)
  end
  assert(nacre.zeros(2, {dtype = dtype}):uniform_(3, 3)[1] == 3)
end

-- Integers
for _, dtype in ipairs(ints) do
  local v = nacre.randint(3, 8, {20000}, {dtype = dtype})
  assert(v.dtype == dtype)
  for k = 3, 7 do
    near(v:eq(k):to("float32"):mean():item(), .2, .015)
  end
  assert(v:min():item() == 3 and v:max():item() == 7)
end
assert(nacre.randint(2, {4}, {dtype = "bool"}).dtype == "bool")
assert(nacre.randint(5, {3}).dtype == "int64")
assert(nacre.randint(256, {9}, {dtype = "uint8"}).dtype == "uint8")
assert(nacre.randint(7, 8, {2})[1] == 7)
assert(nacre.zeros(2, {dtype = "int16"}):randint_like(4, 5)[2] == 4)
assert(nacre.zeros(2):randint_like(1)[1] == 0)
for _, dtype in ipairs(floats) do
  local v = nacre.randint(-3, 4, {1000}, {dtype = dtype})
  assert(v.dtype == dtype and v:to("int64"):to(dtype) == v)
  assert(v:min():item() == -3 and v:max():item() == 3)
end
local wide = nacre.randint(minint, maxint, {1000})
near(wide:gt(0):to("float32"):mean():item(), .5, .06)
assert(nacre.randint(maxint - 1, maxint, {1})[1] == maxint - 1)
assert(nacre.randint(minint, minint + 1, {1})[1] == minint)
for _, range in ipairs {1 << 32, (1 << 32) + 1, 3 << 61} do
  local v = nacre.randint(range, {5000})
  assert(v:min():item() >= 0 and v:max():item() < range)
  near(v:to("float64"):mean():item() / range, .5, .02)
end

-- Permutations of 1..n
for _, k in ipairs {0, 1, 2, 3, 10, 1000} do
  local p, seen = nacre.randperm(k), {}
  assert(p.dtype == "int64" and #p == k)
  for i = 1, k do
    assert(p[i] >= 1 and p[i] <= k and not seen[p[i]])
    seen[p[i]] = true
  end
end
local count = {}
for _ = 1, 6000 do
  local p = nacre.randperm(3)
  local key = p[1] .. p[2] .. p[3]
  count[key] = (count[key] or 0) + 1
end
for _, key in ipairs {"123", "132", "213", "231", "312", "321"} do
  near(count[key], 1000, 120)
end
assert(nacre.randperm(5, {dtype = "float32"}).dtype == "float32")

-- Bad arguments; the stream does not move.
nacre.manual_seed(5)
fails("needs a float dtype, not int64", nacre.rand, 2, {dtype = "int64"})
fails("needs a float dtype, not bool", nacre.randn, 2, {dtype = "bool"})
fails("needs a float dtype, not int32",
      nacre.zeros(2, {dtype = "int32"}).rand_like,
      nacre.zeros(2, {dtype = "int32"}))
local i8 = nacre.zeros(2, {dtype = "int8"})
fails("needs a float dtype, not int8", i8.uniform_, i8)
fails("needs a float dtype, not int8", i8.normal_, i8)
fails("there is no integer in [3, 3)", nacre.randint, 3, 3, {2})
fails("there is no integer in [0, -1)", nacre.randint, -1, {2})
fails("256 is outside the range of uint8: 0 to 255", nacre.randint, 0, 257,
      {2}, {dtype = "uint8"})
fails("-1 is outside the range of uint8", nacre.randint, -1, 3, {2},
      {dtype = "uint8"})
fails("exact integers of float16: -2048 to 2048", nacre.randint, 5000, {2},
      {dtype = "float16"})
fails("is negative", nacre.randint, 3, {-1})
fails("is negative", nacre.randn, -1)
fails("randn: float32[1000000x1000000] needs", nacre.randn, 1e6, 1e6)
fails("n is -1, but must not be negative", nacre.randperm, -1)
fails("200 is outside the range of int8", nacre.randperm, 200,
      {dtype = "int8"})
fails("needs", nacre.randperm, maxint)
local f = nacre.zeros(3)
fails("from is 2, but must be at most to, 1", f.uniform_, f, 2, 1)
fails("from is nan", f.uniform_, f, nan, 1)
fails("too wide for float32", f.uniform_, f, 0, 1e39)
fails("too wide for float32", f.uniform_, f, -inf, 0)
fails("the standard deviation must not be negative, it is -1", f.normal_, f, 0,
      -1)
fails("the standard deviation must not be negative", f.normal_, f, 0, nan)
local e = nacre.zeros(1):expand(3)
fails("share memory", e.normal_, e)
local after = nacre.rand(3)
assert(seeded(function() nacre.manual_seed(5); return nacre.rand(3) end) ==
       after)

-- math.random is under the same seed, and math.randomseed is still its own.
local function draws()
  return math.random() + math.random(1000) + math.random(0)
end
nacre.manual_seed(7)
local first = draws()
assert(first ~= draws())
nacre.manual_seed(7)
assert(first == draws())
assert(nacre.cuda.manual_seed(7) == nil and first == draws())
nacre.manual_seed(7)
local second = (draws() and draws())
nacre.manual_seed(7)
draws()
nacre.fork_rng(function() nacre.manual_seed(9) draws() end)
assert(second == draws(), "fork_rng has moved math.random")
assert(not pcall(nacre.fork_rng, function() draws() error "x" end))
local seed = nacre.seed()
first = draws()
nacre.manual_seed(seed)
assert(first == draws())
math.randomseed(5)
first, second = draws(), nacre.rand(1):item()
math.randomseed(5)
assert(first == draws() and second ~= nacre.rand(1):item())
nacre.Generator():manual_seed(5) -- another stream, of tensors alone
math.randomseed(7)
first = draws()
nacre.manual_seed(7)
assert(first == draws())
local lua = math
math, package.loaded.math = nil, nil
nacre.manual_seed(7) -- a state without the library
math, package.loaded.math = lua, lua
assert(pcall(nacre.fork_rng, draws))
