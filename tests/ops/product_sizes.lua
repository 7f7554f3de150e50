-- SPDX-License-Identifier: MIT
-- Products by chance, of sizes and layouts that take every way that the CPU
-- has for them: results are those of sums in float64, of halves rounded once,
-- and do not depend on the number of threads.
-- Run by: nacre tests/ops/product_sizes.lua [seed]

local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local threads = nacre.get_num_threads()
local bound = {float32 = 1e-6, float64 = 1e-15}
local half_step = {float16 = 2^-11, bfloat16 = 2^-8}

-- A matrix of the sizes, or a batch of them, in rows, in columns, with steps
-- between both, or one matrix for all of the batch.
local function matrix(batch, rows, columns, dtype)
  local way = random(batch > 0 and 5 or 4)
  local size = {batch, rows, columns}
  if batch == 0 then table.remove(size, 1) end
  local n = #size
  if way == 1 then size[n - 1], size[n] = columns, rows end
  if way == 2 then size[n] = 2 * columns end
  if way == 3 then size[n] = columns + random(3) end
  if way == 5 then size[1] = 1 end
  local t = nacre.randn(size):to(dtype)
  if way == 1 then return t:transpose(-1, -2) end
  if way == 2 then return t:slice(-1, 1, -1, 2) end
  if way == 3 then return t:narrow(-1, 1, columns) end
  return way == 5 and t:expand(batch, rows, columns) or t
end

-- The product in float64; of float64 by no product of matrices.
local function exact(a, b)
  if a.dtype ~= "float64" then return a:double():matmul(b:double()) end
  return (a:unsqueeze(-1) * b:unsqueeze(-3)):sum(-2)
end

-- of: what is added up for an element of a result of halves, without signs.
local function check(what, y, z, k, of)
  local off = (y:double() - z):abs()
  local step = half_step[y.dtype]
  local fine = step and off:le(step * z:abs() + of * 2^-22):all():item() or
               not step and (off:max() / (z:abs():max() + 1)):item() <=
                            bound[y.dtype] * (1 + math.sqrt(k))
  assert(fine, ("seed %d, %s, %s"):format(seed, what, y.dtype))
end

-- f() on one thread and on all.
local function on_threads(what, f)
  local y = f()
  nacre.set_num_threads(1)
  assert(f() == y, what .. ": depends on the number of threads")
  nacre.set_num_threads(threads)
  return y
end

local function try(what, a, b)
  local k = a:size(-1)
  what = ("%s: %s by %s"):format(what, table.concat(a:size(), "x"),
                                 table.concat(b:size(), "x"))
  local z = exact(a, b)
  local of = a:double():abs():matmul(b:double():abs()) *
             math.max(1, math.sqrt(k / 1000))
  check(what, on_threads(what, function() return a:matmul(b) end), z, k, of)
  if a:dim() > 2 then return end
  local rows = random(2) == 1 and a:size(1) or 1   -- of what is added
  local c = matrix(0, rows, b:size(2), a.dtype)
  for _, o in ipairs {{beta = 0.5, alpha = -2}, {beta = 2, alpha = 0.5}} do
    local y = on_threads(what, function() return c:addmm(a, b, o) end)
    check(what .. ", addmm", y, z * o.alpha + c:double() * o.beta, k,
          of * math.abs(o.alpha) + c:double():abs() * 2^14)
  end
  check(what .. ", mv", a:mv(b:select(2, 1)), z:select(2, 1), k,
        of:select(2, 1))
  check(what .. ", vector", a:select(1, 1):matmul(b), z:select(1, 1), k,
        of:select(1, 1))
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
  try("case " .. round, matrix(0, m, k, dtype), matrix(0, k, n, dtype))
end

for round = 1, 80 do
  local dtype = random(3) == 1 and "float16" or "bfloat16"
  local most = random(4) == 1 and 600 or 90
  local batch = random(3) == 1 and random(4) or 0
  local m, k, n = random(most), random(most), random(most)
  try("halves " .. round, matrix(batch, m, k, dtype),
      matrix(batch, k, n, dtype))
end

for round = 1, 20 do
  local dtype, batch = random(3) == 1 and "float64" or "float32", random(40)
  local n, m, k = sizes[random(11)], sizes[random(11)], sizes[random(11)]
  try("batch " .. round, matrix(batch, m, k, dtype), matrix(batch, k, n, dtype))
end

-- Halves of more rows, columns and sums than are packed at once.
for _, size in ipairs {{1100, 2300, 300}, {70, 1030, 1100}, {40, 4500, 530}} do
  local m, k, n = table.unpack(size)
  try("large", matrix(0, m, k, "bfloat16"), matrix(0, k, n, "bfloat16"))
end

-- Products that are cut in pieces, or halves, for several threads, but not for
-- one.
for round = 1, 16 do
  local dtype = round % 2 == 0 and "float64" or "float32"
  local m, n = random(100, 512), random(30, 512)
  local k = math.ceil(2^(round > 8 and 20 or 22) / (m * n)) + random(20)
  try("pieces", matrix(0, m, k, dtype), matrix(0, k, n, dtype))
end

-- Vectors that are long enough for several threads, and the last piece short.
for _, n in ipairs {131071, 131072, 200001} do
  for _, dtype in ipairs {"float32", "float64"} do
    local a, b = nacre.randn(n):to(dtype), nacre.randn(n):to(dtype)
    check("dot", on_threads("dot", function() return a:dot(b) end),
          (a:double() * b:double()):sum(), n)
  end
end
local a = nacre.randn(2 * 140000)
check("dot with steps", a["::2"]:dot(a["2::2"]),
      (a["::2"]:double() * a["2::2"]:double()):sum(), 140000)

-- What is not a number reaches the result, a zero times it, too.
local bad = nacre.zeros(8, 8)
bad[{3, 3}] = 0 / 0
assert(nacre.zeros(8, 8):mm(bad):isnan():sum():item() == 8)
-- beta = 0 does not read the addend.
assert(bad:addmm(nacre.ones(8, 8), nacre.ones(8, 8), {beta = 0}):isnan():sum()
  :item() == 0)
local none = {dtype = "bfloat16"}
assert(nacre.zeros(3, 0, none):mm(nacre.zeros(0, 4, none)) ==
       nacre.zeros(3, 4, none))
