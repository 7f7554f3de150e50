-- SPDX-License-Identifier: MIT
-- Loops that take another way for many elements than for one: division with a
-- remainder by quotients, exp and sqrt in vectors, loops over elements as they
-- are stored, reductions of columns, copies of short rows, filling.
local N = 1500 -- several blocks, and a rest

nacre.manual_seed(7)

local function same(a, b, what)
  for i = 1, #a do
    local x, y = a[i], b[i]
    local equal = x == y and (x ~= 0 or 1 / x == 1 / y) or (x ~= x and y ~= y)
    assert(equal, ("%s: element %d is %s, not %s"):format(what, i, x, y))
  end
end

-- ---- division: exact, whatever the size of the quotient
local function round32(x) return (string.unpack("f", string.pack("f", x))) end

local function remainders(a, b, round)
  local f, r, q = {}, {}, {}
  for i = 1, #a do
    local x, y = a[i], b[i]
    local m = math.fmod(x, y)
    local below = m ~= 0 and (m < 0) ~= (y < 0)
    f[i], r[i] = m, below and round(m + y) or m
    q[i] = ((x - m) / y + 0.5) // 1 - (below and 1 or 0)
  end
  return f, r, q
end

for _, dtype in ipairs {"float32", "float64"} do
  local round = dtype == "float32" and round32 or function(x) return x end
  for _, scale in ipairs {1, 1000, 2^21, 2^40, 2^-140} do
    local a = (nacre.randn(N, {dtype = "float64"}) * scale):to(dtype)
    local b = nacre.randn(N, {dtype = "float64"}):to(dtype)
    if scale == 1 then a:narrow(1, 1, 700):copy_(b:narrow(1, 1, 700) * 3) end
    local x, y = a:tolist(), b:tolist()
    local f, r, q = remainders(x, y, round)
    same(a:fmod(b):tolist(), f, dtype .. " fmod")
    same(a:remainder(b):tolist(), r, dtype .. " remainder")
    if scale <= 1000 then
      local got = a:floor_divide(b):tolist()
      for i = 1, N do assert(got[i] == q[i], dtype .. " floor_divide") end
    end
  end
  local inf, nan = math.huge, 0 / 0
  local a = nacre.tensor({0.0, -0.0, inf, 5, -5, nan, 6, -6}, {dtype = dtype})
  local b = nacre.tensor({3.0, 3, 3, inf, inf, 1, -3, 3}, {dtype = dtype})
  same(a:fmod(b):tolist(), {0.0, -0.0, nan, 5, -5, nan, 0.0, -0.0}, "fmod")
  same(a:remainder(b):tolist(), {0.0, -0.0, nan, 5, inf, nan, 0.0, -0.0},
       "remainder")
  local q = a:floor_divide(b):tolist()
  assert(q[1] == 0 and 1 / q[2] == -inf and q[7] == -2 and q[8] == -2)
end

-- ---- exp: wrong by at most 4 units of the last place, as libmvec's
for dtype, case in pairs {float32 = {2^-23, 104}, float64 = {2^-52, 745}} do
  local bound, least = 4 * case[1], case[2]
  local x = ((nacre.rand(20 * N, {dtype = "float64"}) * 2 - 1) * 80):to(dtype)
  local got, arguments = x:exp():tolist(), x:tolist()
  for i = 1, #got do
    local want = math.exp(arguments[i])
    assert(math.abs(got[i] - want) <= bound * want, arguments[i])
  end
  local odd = nacre.full({40}, 0 / 0, {dtype = dtype})
  assert(odd:exp():isnan():all():item())
  assert(odd:fill_(math.huge):exp():eq(math.huge):all():item())
  assert(odd:fill_(-math.huge):exp():eq(0):all():item())
  assert(odd:fill_(-least - 1):exp():eq(0):all():item())
  assert(odd:fill_(-least + 2):exp():gt(0):all():item())
  assert(odd:fill_(0):exp():eq(1):all():item())
end

-- ---- gelu: no subnormal numbers in the gradient
do
  local x = nacre.linspace(-20, 20, 4001):requires_grad_()
  nacre.nn.functional.gelu(x):sum():backward()
  local tiny = x.grad:abs():lt(2^-126):logical_and(x.grad:ne(0))
  assert(not tiny:any():item())
  local far = x:detach():abs():gt(9)
  assert(nacre.allclose(x.grad[far], x:detach():gt(0):float()[far], 0, 1e-15))
end

-- ---- sqrt of doubles: the nearest, as the processor's
do
  local x = nacre.rand(20 * N, {dtype = "float64"})
  x = x * nacre.pow(2.0, nacre.randint(-1070, 1000, {20 * N}):double())
  local got, arguments = x:sqrt():tolist(), x:tolist()
  for i = 1, #got do assert(got[i] == math.sqrt(arguments[i])) end
  same(nacre.tensor({0, -0.0, math.huge, -1, 4, 9, 2, 5e-324},
                    {dtype = "float64"}):sqrt():tolist(),
       {0.0, -0.0, math.huge, 0 / 0, 2.0, 3.0, math.sqrt(2),
        math.sqrt(5e-324)}, "sqrt")
end

-- ---- the next number: 1 in the last place, and back
for _, dtype in ipairs {"float32", "float64"} do
  local x = nacre.randn(N, {dtype = dtype})
  local up = x:nextafter(nacre.full_like(x, math.huge))
  local down = up:nextafter(nacre.full_like(x, -math.huge))
  assert(up:gt(x):all():item() and down:equal(x))
  local middle = (x + up) / 2
  assert(middle:eq(x):logical_or(middle:eq(up)):all():item())
end

-- ---- elements as they are stored: as the same in float32 or int32, narrowed
local function narrow(a, b, dtype, wide, one, two)
  for _, name in ipairs(one) do
    local want = a:to(wide)[name](a:to(wide)):to(dtype)
    same(a[name](a):tolist(), want:tolist(), dtype .. " " .. name)
  end
  for _, name in ipairs(two) do
    local want = a:to(wide)[name](a:to(wide), b:to(wide)):to(dtype)
    same(a[name](a, b):tolist(), want:tolist(), dtype .. " " .. name)
  end
end

-- A number of int32 that int8 or int16 cannot hold wraps around.
local function wrapped(x, bits)
  return x:bitwise_left_shift(32 - bits):bitwise_right_shift(32 - bits)
end

for dtype, bits in pairs {int8 = 8, int16 = 16} do
  local half = 1 << bits - 1
  local a = nacre.randint(-half, half, {N}, {dtype = dtype})
  local b = nacre.randint(-half, half, {N}, {dtype = dtype})
  local x, y = a:int(), b:int()
  for _, name in ipairs {"neg", "abs", "sign", "relu", "square",
                         "bitwise_not"} do
    assert(a[name](a):int():equal(wrapped(x[name](x), bits)), name)
  end
  for _, name in ipairs {"add", "sub", "mul", "maximum", "minimum",
                         "bitwise_and", "bitwise_or", "bitwise_xor"} do
    assert(a[name](a, b):int():equal(wrapped(x[name](x, y), bits)), name)
  end
end
for _, dtype in ipairs {"float16", "bfloat16"} do
  local a, b = nacre.randn(N):to(dtype), nacre.randn(N):to(dtype)
  for i, v in ipairs {0.0, -0.0, math.huge, -math.huge, 0 / 0} do a[i] = v end
  narrow(a, b, dtype, "float32",
         {"neg", "abs", "relu", "square", "reciprocal", "sqrt", "ceil",
          "floor", "trunc"},
         {"copysign", "add", "sub", "mul", "true_divide"})
end

-- ---- reductions of columns: as those of the same rows
for _, dtype in ipairs {"bool", "uint8", "int8", "int16", "int32", "float32"} do
  for _, columns in ipairs {1, 2, 3, 4, 8, 16, 31, 32, 130, 300} do
    local x = nacre.randint(0, 100, {77, columns}):to(dtype)
    local rows = x:t():contiguous()
    for _, name in ipairs {"amax", "amin", "any", "all", "sum"} do
      local got, want = x[name](x, 1), rows[name](rows, 2)
      assert(got:equal(want), dtype .. " " .. name .. columns)
    end
  end
end

-- ---- copies of short rows, and of two bytes: each element in its place
for _, dtype in ipairs {"bool", "uint8", "bfloat16", "int16", "float32",
                        "int64"} do
  local x = nacre.randint(0, 100, {40, 30}):to(dtype)
  local list = x:tolist()
  for width = 1, 9 do
    local y = x:unfold(2, width, 2):contiguous():tolist()
    for i = 1, 40 do
      for w = 1, #y[i] do
        for j = 1, width do
          assert(y[i][w][j] == list[i][2 * (w - 1) + j], dtype)
        end
      end
    end
  end
  local y = x:clone()
  y["1:-1:2, 2:-1:3"] = x["2:-1:2, 1:-3:3"]
  for i = 1, 39, 2 do
    for j = 2, 29, 3 do assert(y[i][j] == x[i + 1][j - 1], dtype) end
  end
  assert(x:t():contiguous():t():equal(x))
  assert(x:roll(3, 2):roll(-3, 2):equal(x))
  assert(x:roll(7, 1):roll(-7, 1):equal(x))
end

-- ---- filling
for _, dtype in ipairs {"bool", "uint8", "int16", "bfloat16", "float32",
                        "int64"} do
  local x = nacre.zeros(5 * N, {dtype = dtype})
  x:narrow(1, 3, 4000):fill_(1)
  local y = x:long()
  assert(y:sum():item() == 4000 and y:narrow(1, 3, 4000):sum():item() == 4000)
end
