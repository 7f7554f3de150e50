-- SPDX-License-Identifier: MIT
-- Products by chance, of sizes and layouts that take every way that the CPU
-- has for them: results are those of sums in float64, and do not depend on the
-- number of threads.
-- Run by: nacre tests/ops/product_sizes.lua [seed]

local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local threads = nacre.get_num_threads()
local bound = {float32 = 1e-6, float64 = 1e-15, bfloat16 = 0.01,
               float16 = 0.002}

-- The sums in float64, by no product of matrices.
local function by_sums(a, b)
  return (a:double():unsqueeze(-1) * b:double():unsqueeze(-3)):sum(-2)
end

-- A matrix of the sizes, in rows, in columns, or with steps between both.
local function matrix(rows, columns, dtype)
  local way = random(4)
  local m
  if way == 1 then m = nacre.randn(columns, rows):t()
  elseif way == 2 then m = nacre.randn(rows, 2 * columns)["::, ::2"]
  elseif way == 3 then m = nacre.randn(rows, columns + 3):narrow(2, 2, columns)
  else m = nacre.randn(rows, columns) end
  return way == 1 and m:t():contiguous():to(dtype):t() or m:to(dtype)
end

local function check(what, ours, theirs, dtype, k)
  local worst = ((ours:double() - theirs):abs():max() /
                 (theirs:abs():max() + 1)):item()
  assert(worst <= bound[dtype] * (1 + math.sqrt(k)),
         ("seed %d, %s %s: %g"):format(seed, what, dtype, worst))
end

-- f() on one thread and on all.
local function on_threads(what, f)
  local y = f()
  nacre.set_num_threads(1)
  local alone = f()
  nacre.set_num_threads(threads)
  assert(alone == y, what .. ": depends on the number of threads")
  return y
end

local sizes = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65}
for round = 1, 150 do
  local dtype = ({"float64", "bfloat16", "float16"})[random(6)] or "float32"
  local m, n, k = sizes[random(#sizes)], sizes[random(#sizes)],
                  sizes[random(#sizes)]
  if random(8) == 1 then m = random(100, 300) end
  if random(8) == 1 then n = random(100, 600) end
  if random(6) == 1 then k = random(200, 900) end
  if m * n * k > 3e6 then n = 3 end
  local a, b = matrix(m, k, dtype), matrix(k, n, dtype)
  local what = ("case %d, %dx%d by %dx%d"):format(round, m, k, k, n)
  local sums = by_sums(a, b)
  check(what, on_threads(what, function() return a:mm(b) end), sums, dtype, k)
  local addend = matrix(m, n, dtype)
  check(what .. ", addmm",
        on_threads(what, function()
          return addend:addmm(a, b, {beta = 0.5, alpha = -2})
        end), addend:double() * 0.5 - sums * 2, dtype, k)
  check(what .. ", mv", a:mv(b:select(2, 1)), sums:select(2, 1), dtype, k)
  check(what .. ", vector", a:select(1, 1):matmul(b), sums:select(1, 1), dtype,
        k)
end

for round = 1, 20 do
  local dtype = random(3) == 1 and "float64" or "float32"
  local n, m, k = sizes[random(11)], sizes[random(11)], sizes[random(11)]
  local a = nacre.randn(random(1, 40), m, k):to(dtype)
  local b = nacre.randn(a:size(1), k, n):to(dtype)
  if random(3) == 1 then a = a:transpose(2, 3):contiguous():transpose(2, 3) end
  local what = ("batch %d of %dx%d by %dx%d"):format(a:size(1), m, k, k, n)
  check(what, on_threads(what, function() return a:bmm(b) end), by_sums(a, b),
        dtype, k)
end

-- Products that are cut in pieces, or halves, for several threads, but not for
-- one.
for round = 1, 16 do
  local dtype = round % 2 == 0 and "float64" or "float32"
  local m, n = random(100, 512), random(30, 512)
  local k = math.ceil(2^(round > 8 and 20 or 22) / (m * n)) + random(20)
  local a, b = matrix(m, k, dtype), matrix(k, n, dtype)
  local what = ("pieces of %dx%d by %dx%d"):format(m, k, k, n)
  check(what, on_threads(what, function() return a:mm(b) end), by_sums(a, b),
        dtype, k)
end

-- Vectors that are long enough for several threads, and the last piece short.
for _, n in ipairs {131071, 131072, 200001} do
  for _, dtype in ipairs {"float32", "float64"} do
    local a, b = nacre.randn(n):to(dtype), nacre.randn(n):to(dtype)
    check("dot", on_threads("dot", function() return a:dot(b) end),
          (a:double() * b:double()):sum(), dtype, n)
  end
end
local a = nacre.randn(2 * 140000)
check("dot with steps", a["::2"]:dot(a["2::2"]),
      (a["::2"]:double() * a["2::2"]:double()):sum(), "float32", 140000)

-- What is not a number reaches the result, a zero times it, too.
local bad = nacre.zeros(8, 8)
bad[{3, 3}] = 0 / 0
assert(nacre.zeros(8, 8):mm(bad):isnan():sum():item() == 8)
-- beta = 0 does not read the addend.
assert(bad:addmm(nacre.ones(8, 8), nacre.ones(8, 8), {beta = 0}):isnan():sum()
  :item() == 0)
print "product_sizes: ok"
