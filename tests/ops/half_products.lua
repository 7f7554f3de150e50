-- SPDX-License-Identifier: MIT
-- Products of halves by chance, of sizes that take every way that the CPU has
-- for them: sums are those of float64, rounded once.
-- Run by: nacre tests/ops/half_products.lua [seed]

local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local threads = nacre.get_num_threads()

-- A matrix, or a batch of them, laid out in one of several ways.
local function matrix(batch, rows, columns, dtype)
  local way = random(5)
  local size = {rows, columns}
  if way == 1 then size = {columns, rows} end
  if way == 2 then size[2] = columns + random(3) end
  if batch > 0 then table.insert(size, 1, batch) end
  if batch > 0 and way == 3 then size[1] = 1 end
  local t = nacre.randn(size):to(dtype)
  if way == 1 then t = t:transpose(-1, -2) end
  if way == 2 then t = t:narrow(-1, 1, columns) end
  if way == 3 and batch > 0 then t = t:expand(batch, rows, columns) end
  return t
end

local epsilon = {float16 = 2^-11, bfloat16 = 2^-8}

local function check(what, y, z, bound, dtype)
  local off = (y:double() - z):abs()
  local least = epsilon[dtype] * z:abs() + bound * 2^-22
  assert(off:le(least):all():item(), what)
end

for round = 1, 80 do
  local dtype = random(3) == 1 and "float16" or "bfloat16"
  local most = random(4) == 1 and 600 or 90
  local batch = random(3) == 1 and random(4) or 0
  local m, k, n = random(most), random(most), random(most)
  local a, b = matrix(batch, m, k, dtype), matrix(batch, k, n, dtype)
  local what = ("seed %d, case %d: %s, batch %d, %d x %d x %d"):format(seed,
    round, dtype, batch, m, k, n)
  local x, w = a:double(), b:double()
  local bound = x:abs():matmul(w:abs())
  local y, z = a:matmul(b), x:matmul(w)
  check(what, y, z, bound, dtype)
  nacre.set_num_threads(1)
  assert(a:matmul(b) == y, what)
  nacre.set_num_threads(threads)
  if batch == 0 then
    local c = nacre.randn(n):to(dtype)
    check(what .. ", addmm", c:addmm(a, b, {beta = 2, alpha = 0.5}),
          z * 0.5 + c:double() * 2, bound + c:double():abs() * 2^14, dtype)
  end
end
-- More rows, columns and sums than are packed at once.
for _, size in ipairs {{1100, 2300, 300}, {70, 1030, 1100}, {40, 4500, 530}} do
  local m, k, n = table.unpack(size)
  local a, b = matrix(0, m, k, "bfloat16"), matrix(0, k, n, "bfloat16")
  local what = ("seed %d, %d x %d x %d"):format(seed, m, k, n)
  local x, w, c = a:double(), b:double(), nacre.randn(n):to("bfloat16")
  local bound, z = x:abs():mm(w:abs()) * math.sqrt(k / 1000), x:mm(w)
  local y = a:mm(b)
  check(what, y, z, bound, "bfloat16")
  for _, beta in ipairs {1, 2} do
    check(("%s, addmm, %d"):format(what, beta), c:addmm(a, b, {beta = beta}),
          z + beta * c:double(), bound + c:double():abs() * 2^14, "bfloat16")
  end
  nacre.set_num_threads(1)
  assert(a:mm(b) == y, what)
  nacre.set_num_threads(threads)
end
assert(nacre.zeros(3, 0, {dtype = "bfloat16"}):mm(nacre.zeros(0, 4,
       {dtype = "bfloat16"})) == nacre.zeros(3, 4, {dtype = "bfloat16"}))
print "half_products: ok"
