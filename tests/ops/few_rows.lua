-- SPDX-License-Identifier: MIT
-- Products with few rows or columns: of halves, whose sums are float32 and are
-- rounded once, and of int8, in every layout, also with inner sizes beyond what
-- is packed at once; with any number of threads the same bits.
-- Run by: nacre tests/ops/few_rows.lua

local F = nacre.nn.functional
nacre.manual_seed(3)
local threads = nacre.get_num_threads()
local step = {float16 = 2^-11, bfloat16 = 2^-8}

local function on_threads(f)
  nacre.set_num_threads(1)
  local one = f()
  nacre.set_num_threads(4)
  local many = f()
  nacre.set_num_threads(threads)
  assert(nacre.equal(one, many), "depends on the number of threads")
  return one
end

-- y is z, rounded, except for the error of sums in float32 of numbers whose
-- absolute values add up to `of'.
local function check(what, y, z, of)
  local off = (y:double() - z):abs()
  local most = step[y.dtype] * z:abs() + of * 2^-20 + 2^-24
  assert(off:le(most):all():item(), ("%s: %g"):format(what, off:max():item()))
end

local function try(dtype, m, k, n)
  local a, b = nacre.randn(m, k):to(dtype), nacre.randn(k, n):to(dtype)
  local x, w = a:double(), b:double()
  local z, of = x:mm(w), x:abs():mm(w:abs())
  local columns = b:t():contiguous()
  local what = ("%s %dx%dx%d"):format(dtype, m, k, n)
  check(what, on_threads(function() return a:mm(b) end), z, of)
  check(what .. " columns", on_threads(function()
    return a:mm(columns:t())
  end), z, of)
  check(what .. " turned", columns:mm(a:t()):t(), z, of)
  check(what .. " turned rows", b:t():mm(a:t()):t(), z, of)
  local wide = nacre.randn(k, 2 * n):to(dtype)
  local odd = wide["::2"] and wide[":, ::2"]
  check(what .. " steps", a:mm(odd), x:mm(odd:double()),
        x:abs():mm(odd:double():abs()))
  local bias = nacre.randn(n):to(dtype)
  check(what .. " bias", F.linear(a, columns, bias), z + bias:double(),
        of + bias:double():abs())
  check(what .. " addmm", bias:addmm(a, b, {beta = 0.5, alpha = -2}),
        z * -2 + bias:double() / 2, 2 * of + bias:double():abs())
  check(what .. " mv", columns:mv(a[1]), z[1], of[1])
  check(what .. " row", a[1]:matmul(b), z[1], of[1])
end

for dtype in pairs(step) do
  for _, m in ipairs {1, 2, 3, 4, 5, 8} do
    for _, k in ipairs {1, 2, 15, 33, 64, 300, 1024, 1055, 2081} do
      for _, n in ipairs {1, 3, 16, 31, 70, 257} do try(dtype, m, k, n) end
    end
  end
  try(dtype, 1, 40, 9000)
  try(dtype, 8, 24, 5001)
  local a = nacre.randn(3, 1, 4, 50):to(dtype)
  local b = nacre.randn(5, 50, 9):to(dtype)
  check("batch " .. dtype, on_threads(function() return a:matmul(b) end),
        a:double():matmul(b:double()),
        a:double():abs():matmul(b:double():abs()))
  local one = b[1]:expand(3, 50, 9)
  check("repeated " .. dtype, a[":, 1"]:bmm(one),
        a[":, 1"]:double():matmul(b[1]:double()),
        a[":, 1"]:double():abs():matmul(b[1]:double():abs()))
  -- an infinity and a nan stay in their columns and rows
  local x, w = nacre.ones(3, 40):to(dtype), nacre.ones(40, 37):to(dtype)
  w[{7, 37}], w[{40, 1}] = 1 / 0, 0 / 0
  for _, y in ipairs {x:mm(w), x:mm(w:t():contiguous():t())} do
    assert(y[":, 37"]:isinf():all():item() and y[":, 1"]:isnan():all():item())
    assert(y[":, 2:36"]:eq(40):all():item())
  end
  assert(nacre.zeros(2, 0):to(dtype):mm(nacre.zeros(0, 3):to(dtype)):eq(0):all()
    :item())
end

-- ---- int8, exactly
local function bytes(...) return nacre.randint(-128, 128, {...}):to "int8" end
for _, m in ipairs {1, 2, 3, 7, 8, 9, 33} do
  for _, k in ipairs {1, 5, 32, 100, 1024, 1300} do
    for _, n in ipairs {1, 2, 17, 129, 300} do
      local a, b = bytes(m, k), bytes(k, n)
      local want = a:int():mm(b:int())
      local y = on_threads(function() return nacre._int_mm(a, b) end)
      assert(y.dtype == "int32" and nacre.equal(y, want))
      assert(nacre.equal(nacre._int_mm(a, b:t():contiguous():t()), want))
      assert(nacre.equal(nacre._int_mm(a:t():contiguous():t(), b), want))
    end
  end
end
local low = nacre.full({2, 3000}, -128, {dtype = "int8"})
assert(nacre._int_mm(low, low:t()):eq(3000 * 128 * 128):all():item())
assert(nacre._int_mm(bytes(2, 0), bytes(0, 3)):eq(0):all():item())

-- ---- weights of int8 with scales
for _, dtype in ipairs {"float32", "bfloat16", "float16", "float64"} do
  for _, size in ipairs {{1, 768, 300}, {3, 33, 5}, {9, 1100, 130}} do
    local m, k, n = table.unpack(size)
    local x, w = nacre.randn(m, k):to(dtype), bytes(n, k)
    local scales = (nacre.rand(n) / 64):to(dtype)
    local y = on_threads(function()
      return nacre._weight_int8pack_mm(x, w, scales)
    end)
    local z = x:double():mm(w:double():t()) * scales:double()
    local of = x:double():abs():mm(w:double():abs():t()) * scales:double()
    assert(y.dtype == dtype)
    local most = (step[dtype] or 2^-22) * z:abs() + of * 2^-20 + 2^-24
    if dtype == "float64" then most = of * 2^-48 end
    assert((y:double() - z):abs():le(most):all():item(), dtype)
  end
end

-- ---- what is refused
local function fails(text, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end
fails("is int64, not int8", nacre._int_mm, nacre.ones(2, 2):long(), low)
fails("has 1 dimension, not 2", nacre._int_mm, low, low[1])
fails("inner sizes differ", nacre._int_mm, low, low)
local x = nacre.randn(2, 3000)
fails("must have 2 elements, one for each row of",
      nacre._weight_int8pack_mm, x, low, nacre.ones(3))
fails("has 5 features", nacre._weight_int8pack_mm,
      nacre.randn(2, 5), low, nacre.ones(2))
fails("dtypes differ", nacre._weight_int8pack_mm, x, low,
      nacre.ones(2):half())
