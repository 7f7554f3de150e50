-- SPDX-License-Identifier: MIT
-- Products of vectors, matrices and batches: large and empty ones, rounding,
-- errors. opinfo_torch.py and diff_torch.py compare the values with PyTorch, of
-- every layout; cuda_products.lua those of a device with the CPU's.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, shape = C.fails, C.shape
local dtypes = table.move(C.dtypes, 2, 10, 1, {})    -- all but bool

local tolerance = {float16 = 2e-3, bfloat16 = 2e-2, float32 = 2e-6,
                   float64 = 1e-14}
local nan, inf = 0 / 0, math.huge

-- Random values that float16 holds, so that products are near exact.
local function random(dtype, ...)
  if dtype:find "int" then
    local low = dtype == "uint8" and 0 or -9
    return nacre.randint(low, 10, {...}, {dtype = dtype})
  end
  return nacre.rand({...}, {dtype = "float16"}):to(dtype) - .5
end

nacre.manual_seed(1)
-- Sizes beyond one tile, against products of parts
for _, dtype in ipairs {"float64", "int64", "float32"} do
  local a, b = random(dtype, 700, 1100), random(dtype, 1100, 1050)
  local y = a:mm(b)
  local x = a:narrow(2, 1, 600):mm(b:narrow(1, 1, 600)) +
            a:narrow(2, 601, 500):mm(b:narrow(1, 601, 500))
  assert((y - x):abs():max():item() <= 1e-4)
  for _ = 1, 40 do
    local i, j = math.random(700), math.random(1050)
    local d = (a[i] * b[{{}, j}]):sum():item()
    assert(math.abs(y[{i, j}] - d) <= 1e-3)
  end
  nacre.set_num_threads(1)
  assert(a:mm(b) == y)
  nacre.set_num_threads(2)
end
local long = random("float64", 300000)
assert(math.abs(long:dot(long) :item() - (long * long):sum():item()) < 1e-8)

-- Empty sizes; an inner size of 0 gives zeros.
for _, dtype in ipairs(dtypes) do
  local z = function(...) return nacre.zeros({...}, {dtype = dtype}) end
  local y = z(2, 0):mm(z(0, 3))
  shape(y, 2, 3)
  assert(y.dtype == dtype and y:eq(0):all():item())
  shape(z(0, 2):mm(z(2, 3)), 0, 3)
  shape(z(2, 2):mm(z(2, 0)), 2, 0)
  shape(z(2, 0):mv(z(0)), 2)
  assert(z(0):dot(z(0)):item() == 0)
  shape(z(4, 2, 0):bmm(z(4, 0, 3)), 4, 2, 3)
  shape(z(0, 2, 3):bmm(z(0, 3, 5)), 0, 2, 5)
  shape(z(0):outer(z(3)), 0, 3)
  shape(z(5, 0, 2, 3):matmul(z(3, 4)), 5, 0, 2, 4)
end
assert(nacre.ones(2):addmm(nacre.zeros(3, 0), nacre.zeros(0, 2), {beta = 3})
       :eq(3):all():item())

-- Integers wrap; int64 is exact.
local big = nacre.tensor({{(1 << 62) + 1, 3}})
assert(big:mm(nacre.tensor {{4}, {1}}):item() == 7)
assert(nacre.tensor({{100, 100}}, {dtype = "int8"})
       :mm(nacre.tensor({{2}, {1}}, {dtype = "int8"})):item() == 44)
assert(nacre.tensor({{255}}, {dtype = "uint8"})
       :mm(nacre.tensor({{255}}, {dtype = "uint8"})):item() == 1)

-- Halves are summed in float32 and rounded once.
for _, dtype in ipairs {"float16", "bfloat16"} do
  local a = nacre.full({1, 4096}, 1, {dtype = dtype})
  assert(a:mm(a:t()):item() == 4096)
end

-- nan and inf
local odd = nacre.tensor {{nan, 1}, {inf, 1}}
local y = odd:mm(nacre.zeros(2, 3))
assert(y:isnan():all():item())

assert(nacre.tensor({1, 2}):outer(nacre.tensor {.5}).dtype == "float32")

shape(random("float32", 1, 1, 1, 1, 1, 2, 2, 3):matmul(
        random("float32", 2, 1, 1, 1, 1, 1, 3, 1)), 2, 1, 1, 1, 1, 2, 2, 1)
-- one matrix for a whole batch, whatever its strides
for _, a in ipairs {random("float32", 4, 5, 6), random("float32", 5, 4, 6)
                    :transpose(1, 2), random("float32", 4, 6, 5)
                    :transpose(2, 3), random("float32", 4, 1, 6)
                    :expand(4, 5, 6)} do
  local b = random("float32", 6, 3)
  local y = a:matmul(b)
  for i = 1, 4 do assert(y[i]:allclose(a[i]:mm(b), 1e-5, 1e-6)) end
end

-- addmm
for _, dtype in ipairs(dtypes) do
  local a, b, s = random(dtype, 3, 4), random(dtype, 4, 2),
                  random(dtype, 3, 2)
  local wide = dtype:find "int" and "int64" or "float64"
  assert((s:addmm(a, b) - (s + a:mm(b))):to(wide):abs():max():item() <=
         (tolerance[dtype] or 0) * 4)
  for _, other in ipairs {s[{1}], s[{{}, {1, 1}}], s[{1, {1, 1}}],
                          s[{{1, 1}}]} do
    shape(other:addmm(a, b), 3, 2)
  end
end
y = nacre.full({2}, nan):addmm(nacre.ones(3, 1), nacre.ones(1, 2),
                                 {beta = 0})
assert(y:eq(1):all():item())
y = nacre.ones(1, 2):addmm(nacre.ones(2, 0), nacre.ones(0, 2), {beta = 0})
assert(y:eq(0):all():item())

-- Errors
local function t(...) return nacre.zeros(...) end
local a, b = t(3, 4), t(5, 4)
local e = fails("mm: inner sizes differ: self has 4 columns, arg 1 has 5 rows",
                "self:mm(arg 1:t()) gives float32[3x5]", a.mm, a, b)
assert(e.op == "mm" and #e.args == 2 and e.code == "ESHAPE")
assert(e.args[1].role == "self" and e.args[2].role == "arg 1")
assert(e.args[2].shape[1] == 5 and e.args[2].tensor == b)
fails("inner sizes differ", "self:t():mm(arg 1) gives float32[4x2]", a.mm, a,
      t(3, 2))
fails("inner sizes differ", "neither self:t() nor arg 1:t() fits", a.mm, a,
      t(7, 2))
fails("self has 1 column, arg 1 has 2 rows", a.mm, t(3, 1), t(2, 3))
fails("arg 1 has 1 dimension, not 2", a.mm, a, t(4))
fails("self has 3 dimensions, not 2", a.mm, t(2, 3, 4), a)
fails("self has 0 dimensions, not 2", a.mm, t {}, a)
fails("dtypes differ: self is float32, arg 1 is float64",
      'self:mm(arg 1:to("float32"))', a.mm, a, t(4, 2, {dtype = "float64"}))
fails("dtypes differ: self is int64, arg 1 is float32",
      'self:to("float32"):mm(arg 1)', a.mm, t(4, 4, {dtype = "int64"}), a)
local mask = t(2, 2, {dtype = "bool"})
fails("bool tensors have no product",
      'self:to("int64"):mm(arg 1:to("int64"))', mask.mm, mask, mask)
fails("mv: inner sizes differ: self has 4 columns, arg 1 has 3 elements",
      "self:t():mv(arg 1) gives float32[4]", a.mv, a, t(3))
fails("arg 1 has 2 dimensions, not 1", a.mv, a, t(4, 1))
fails("dot: inner sizes differ: self has 3 elements, arg 1 has 4 elements",
      a.dot, t(3), t(4))
fails("self has 2 dimensions, not 1", a.dot, a, a)
fails("bmm: batch sizes differ: self has 2 matrices, arg 1 has 3", a.bmm,
      t(2, 3, 4), t(3, 4, 5))
fails("arg 1 has 2 dimensions, not 3", a.bmm, t(2, 3, 4), t(4, 5))
fails("bmm: inner sizes differ", a.bmm, t(2, 3, 4), t(2, 3, 4))
fails("matmul: self has no dimensions, a vector has 1", a.matmul, t {}, a)
fails("matmul: inner sizes differ: self has 4 columns, arg 1 has 5 rows",
      "self:matmul(arg 1:t()) gives float32[3x5]", a.matmul, a, b)
fails("self has 4 elements, arg 1 has 3 rows", a.matmul, t(4), t(3, 2))
fails("dim 1 is 2 in one and 3 in the other", a.matmul, t(2, 3, 4), t(3, 4, 5))
fails("outer: self has 2 dimensions, not 1", a.outer, a, t(3))
fails("addmm: inner sizes differ: arg 1 has 4 columns, arg 2 has 5 rows",
      a.addmm, t(3, 5), a, b)
fails("self [3x3] does not broadcast to the product [3x5]", a.addmm, t(3, 3), a,
      b:t())
fails("dtypes differ: self is float64, arg 1 is float32", a.addmm,
      t(3, 5, {dtype = "float64"}), a, b:t())
local whole = t(2, 2, {dtype = "int64"})
fails("alpha is 0.5, but int64 tensors need an integer", whole.addmm, whole,
      whole, whole, {alpha = .5})
fails("needs", a.matmul, t(1):expand(1 << 40, 1), t(1):expand(1, 1 << 40))
