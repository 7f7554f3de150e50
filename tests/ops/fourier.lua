-- SPDX-License-Identifier: MIT
-- Discrete Fourier transforms against their definition in float64: products of
-- the factors that have loops and of those that have none, primes, long lines;
-- one line, many, and lines whose elements lie apart; cut and filled up;
-- gradients.
-- Run by: nacre tests/ops/fourier.lua [seed [lengths]]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, same, shape = C.fails, C.same, C.shape
local seed = tonumber(arg and arg[1]) or 1
local count = tonumber(arg and arg[2]) or 60
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local double = {dtype = "float64"}
-- Relative error, of the root of the mean square; a prime's comes from three
-- longer transforms in float64.
local tolerance = {float32 = 4e-7, float64 = 4e-15}

-- Cosines and sines of 2*pi*j*k/n for the outputs k.
local function waves(n, outputs)
  local j = nacre.arange(n, {dtype = "int64"})
  local k = (outputs - 1):view(-1, 1)
  local angle = (j * k % n):double() * (2 * math.pi / n)
  return angle:cos(), angle:sin()
end

-- The outputs of the transform of complex lines along the last but one
-- dimension: y = sum of x * exp(sign*i*angle).
local function defined(x, n, sign, outputs)
  local re, im = x:select(-1, 1), x:select(-1, 2)
  local c, s = waves(n, outputs)
  s = s * sign
  local function product(a, w) return nacre.matmul(a, w:t()) end
  return nacre.stack({product(re, c) - product(im, s),
                      product(re, s) + product(im, c)}, -1)
end

-- The whole spectrum of which `half' is the first half, as n complex numbers.
local function whole(half, n)
  local x = half:clone()
  x:select(-2, 1):select(-1, 2):zero_()
  if n % 2 == 0 then x:select(-2, n // 2 + 1):select(-1, 2):zero_() end
  local rest = (n - 1) // 2
  if rest == 0 then return x end
  local mirror = x:narrow(-2, 2, rest):flip(-2)
                 * nacre.tensor({1, -1}, double)
  return nacre.cat({x, mirror}, -2)
end

-- x with n elements along dim.
local function resized(x, dim, n)
  local size = x:size()
  if size[dim] >= n then return x:narrow(dim, 1, n) end
  size[dim] = n - size[dim]
  return nacre.cat({x, nacre.zeros(size, {dtype = x.dtype})}, dim)
end

-- The lines along dim of complex x come last.
local function expected(x, dim, n, kind, inverse, outputs)
  x = x:double()
  if kind == "of_real" then
    x, inverse = nacre.stack({x, nacre.zeros_like(x)}, -1), false
  end
  x = resized(x, dim, kind == "to_real" and n // 2 + 1 or n):movedim(dim, -2)
  if kind == "to_real" then x, inverse = whole(x, n), true end
  local y = defined(x, n, inverse and 1 or -1, outputs)
  if kind == "to_real" then return y:select(-1, 1):movedim(-1, dim) end
  return y:movedim(-2, dim)
end

local function size_of_error(d)
  return d:double():pow(2):mean():sqrt():item()
end

local kinds = {"complex", "of_real", "to_real"}

-- One call; before and behind the lines lie `outer' and `inner' others.
local function try(n, dtype, outer, inner)
  local kind, inverse = kinds[random(3)], random(2) == 1
  local length = kind == "to_real" and n // 2 + 1 or n
  local lies = math.max(1, length + (random(5) == 1 and random(-2, 2) or 0))
  local size = {outer, lies, inner}
  if kind ~= "of_real" then size[4] = 2 end
  local x = nacre.randn(size, {dtype = dtype})
  if random(4) == 1 then x = x:transpose(1, 3):contiguous():transpose(1, 3) end
  local scale = random(3) == 1 and 1 / n or 1
  local what = ("%s of %d, %dx%dx%d %s %s"):format(kind, n, outer, lies, inner,
                                                   dtype, inverse)
  local y = x:_fourier(2, n, kind, inverse, scale)
  local given = kind == "of_real" and n // 2 + 1 or n
  shape(y, outer, given, inner, kind ~= "to_real" and 2 or nil)
  local outputs = nacre.arange(given, {dtype = "int64"}) + 1
  if given > 600 then outputs = nacre.randint(1, given + 1, {40}) end
  local want = expected(x, 2, n, kind, inverse, outputs) * scale
  local got = y:double():index_select(2, outputs)
  local size, off = size_of_error(want), size_of_error(got - want)
  assert(off <= tolerance[dtype] * size + 1e-30,
         ("%s: relative error %.1e"):format(what, off / size))
  assert(nacre.equal(x:_fourier(2, n, kind, inverse, scale), y),
         what .. ": another result the second time")
end

local special = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 37, 64, 96, 127, 128, 256,
                 31 * 29, 961, 1000, 1024, 1009, 2048, 2187, 4096, 4099, 30030,
                 32768, 65536, 65537, 131072}
local sides = {1, 1, 1, 2, 3, 5, 8, 15, 16, 17, 33}
local function side(n)
  return n > 3000 and random(2) or sides[random(#sides)]
end

for i = 1, count do
  local n = special[i] or random(random(4) == 1 and 3000 or 130)
  for dtype in pairs(tolerance) do
    try(n, dtype, side(n), 1)
    try(n, dtype, random(2), side(n))
  end
end

-- ---- the same on every number of threads

local threads = nacre.get_num_threads()
local line = nacre.randn(1 << 16, 2)
local one = line:_fourier(1, 1 << 16, "complex")
nacre.set_num_threads(threads == 1 and 2 or 1)
assert(nacre.equal(one, line:_fourier(1, 1 << 16, "complex")))
nacre.set_num_threads(threads)

-- ---- there and back; energies

for _, n in ipairs {5, 12, 74, 300} do
  local x = nacre.randn(3, n, double)
  local y = x:_fourier(2, n, "of_real")
  same(y:_fourier(2, n, "to_real", true, 1 / n), x, "there and back", 1e-12)
  local z = nacre.randn(n, 2, double)
  local w = z:_fourier(1, n, "complex", false, n ^ -0.5)
  assert(math.abs(w:norm():item() / z:norm():item() - 1) < 1e-12)
  same(w:_fourier(1, n, "complex", true, n ^ -0.5), z, "there and back", 1e-12)
end

-- ---- gradients

local grad = nacre.autograd
for _, n in ipairs {1, 2, 5, 6} do
  for _, kind in ipairs(kinds) do
    for extra = -1, 1 do
      local length = (kind == "to_real" and n // 2 + 1 or n) + extra
      length = math.max(1, length)
      local size = {2, length, 2}
      local x = nacre.randn(size, double):requires_grad_()
      local function f(t)
        return t:_fourier(2, n, kind, extra == 0, 0.7, 1.5)
      end
      if kind == "to_real" then
        -- what it does not read has no influence, and no gradient
        local y = f(x):square():sum()
        y:backward()
        if extra <= 0 and n > 1 then
          assert(x.grad[{{}, 1, 2}]:eq(0):all():item())
        end
      end
      assert(grad.gradcheck(f, x))
      assert(grad.gradgradcheck(f, x))
    end
  end
end

-- ---- shapes and refusals

shape(nacre.zeros(0, 4):_fourier(2, 4, "of_real"), 0, 3, 2)
shape(nacre.zeros(3, 0):_fourier(2, 4, "of_real"), 3, 3, 2)
shape(nacre.zeros(2):_fourier(1, 5, "of_real"), 3, 2)
fails("pairs", nacre.zeros(3, 3)._fourier, nacre.zeros(3, 3), 1, 3, "complex")
fails("n must be", nacre.zeros(3)._fourier, nacre.zeros(3), 1, 0, "of_real")
fails("float", nacre.zeros(3)._fourier, nacre.ones(3):long(), 1, 3, "of_real")
fails("dim", nacre.zeros(3)._fourier, nacre.zeros(3), 2, 3, "of_real")
print "ok"
