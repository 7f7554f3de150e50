-- SPDX-License-Identifier: MIT
-- Products on a CUDA device: they are those of the CPU, in every type, shape
-- and layout. Run by: nacre tests/cuda/cuda_products.lua, with a device or
-- NACRE_CUDA=emulated; again with NACRE_CUBLAS=none.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end

-- Small integers, so that every order of summing gives the same.
local function whole(dtype, ...)
  local low = dtype == "uint8" and 0 or -3
  return nacre.randint(low, 4, {...}):to(dtype)
end

-- f gives the same on both devices.
local function same(what, f, ...)
  local there = {}
  for i, x in ipairs {...} do there[i] = x:cuda() end
  local want, got = f(...), f(table.unpack(there))
  assert(got.is_cuda and got.dtype == want.dtype, what)
  assert(C.text(got:size()) == C.text(want:size()), what)
  assert(got:cpu() == want, what)
end

local dtypes = {"uint8", "int8", "int16", "int32", "int64", "float16",
                "bfloat16", "float32", "float64"}

nacre.manual_seed(5)
local sizes = {{1, 1, 1}, {3, 4, 5}, {1, 70, 9}, {9, 70, 1},
               {65, 17, 66}, {2, 300, 2}, {4, 0, 3}}
for _, dtype in ipairs(dtypes) do
  for _, s in ipairs(sizes) do
    local m, k, n = table.unpack(s)
    local what = ("%s %dx%dx%d"):format(dtype, m, k, n)
    local a, b = whole(dtype, m, k), whole(dtype, k, n)
    same(what, nacre.mm, a, b)
    same(what .. " self transposed", function(x, y) return x:t():mm(y) end,
         whole(dtype, k, m), b)
    same(what .. " other transposed", function(x, y) return x:mm(y:t()) end,
         a, whole(dtype, n, k))
    same(what .. " every second", function(x, y)
      return x[{{}, {1, 2 * k, 2}}]:mm(y[{{1, 2 * k, 2}}])
    end, whole(dtype, m, 2 * k + 1), whole(dtype, 2 * k + 1, n))
    same(what .. " vector", nacre.mv, a, whole(dtype, k))
    same(what .. " added to", function(x, y, z)
      return z:addmm(x, y, {beta = 2, alpha = 3})
    end, a, b, whole(dtype, n))
    same(what .. " added to nothing", function(x, y, z)
      return z:addmm(x, y, {beta = 0, alpha = -1})
    end, a, b, whole(dtype, m, n))
  end
  same(dtype .. " dot", nacre.dot, whole(dtype, 500), whole(dtype, 500))
  same(dtype .. " long dot", nacre.dot, whole(dtype, 20000),
       whole(dtype, 20000))
  same(dtype .. " long dot of every second", function(x, y)
    return x[{{1, 40000, 2}}]:dot(y:t():select(1, 2))
  end, whole(dtype, 40000), whole(dtype, 20000, 3))
  same(dtype .. " batches", nacre.matmul, whole(dtype, 5, 3, 4),
       whole(dtype, 5, 4, 2))
  same(dtype .. " one for all", nacre.matmul, whole(dtype, 5, 3, 4),
       whole(dtype, 1, 4, 2))
  same(dtype .. " uneven batches", function(x, y)
    return x:transpose(2, 3):matmul(y:permute(1, 3, 4, 2))
  end, whole(dtype, 6, 5, 3, 4), whole(dtype, 6, 5, 3, 4))
  -- as a list of matrices, where these lie as tensor cores want them
  same(dtype .. " each by each", nacre.matmul, whole(dtype, 12, 1, 4, 8),
       whole(dtype, 1, 3, 8, 4))
  same(dtype .. " each by each, odd", nacre.matmul,
       whole(dtype, 12, 1, 3, 3), whole(dtype, 1, 3, 3, 5))
  same(dtype .. " twelve of them", function(x, y)
    return x:expand(3, 12, 2, 4):matmul(y:permute(2, 1, 4, 3))
  end, whole(dtype, 3, 1, 2, 4), whole(dtype, 12, 3, 5, 4))
end

-- An addend that is not set: beta 0 does not read it.
do
  local bad = nacre.full({2, 2}, 0 / 0):cuda()
  local one = nacre.ones(2, 2):cuda()
  C.is(bad:addmm(one, one, {beta = 0}), "{{2.0,2.0},{2.0,2.0}}")
end

-- Integers wrap; halves are summed in float32.
same("wrap", nacre.mm, nacre.full({1, 3}, 100, {dtype = "int8"}),
     nacre.full({3, 1}, 100, {dtype = "int8"}))
same("long half", nacre.mm, nacre.ones(1, 4000, {dtype = "float16"}),
     nacre.ones(4000, 1, {dtype = "float16"}))

-- tf32 is asked for; without it float32 is exact.
local matmul = nacre.backends.cuda.matmul
assert(matmul.allow_tf32 == false)
matmul.allow_tf32 = true
assert(matmul.allow_tf32 == true)
same("tf32 of small integers", nacre.mm, whole("float32", 20, 30),
     whole("float32", 30, 10))
same("tf32, each by each", nacre.matmul, whole("float32", 12, 1, 3, 3),
     whole("float32", 1, 3, 3, 5))
matmul.allow_tf32 = false
do
  local x = nacre.rand(64, 64, {dtype = "float64"})
  local y = x:to("float32"):cuda()
  local error = (y:mm(y):cpu():to("float64") - x:mm(x)):abs():max():item()
  assert(error < 1e-5, error)
end

C.fails("bool tensors have no product", nil, function()
  local x = nacre.ones(2, 2):gt(0):cuda()
  return x:mm(x)
end)
