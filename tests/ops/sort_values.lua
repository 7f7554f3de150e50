-- SPDX-License-Identifier: MIT
-- Sorting and selecting without positions gives what it gives with them, bit
-- by bit: with nan of both signs, infinities, zeros of both signs, and ties.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local nan = nacre.nan
nacre.manual_seed(5)

-- Equal also in the signs of zeros; a nan is equal to a nan.
local function same(a, b, what)
  local ok = a.dtype == b.dtype and nacre.equal(a:isnan(), b:isnan()) and
             nacre.equal(a:nan_to_num(0), b:nan_to_num(0)) and
             nacre.equal(a:signbit(), b:signbit())
  assert(ok and table.concat(a:size(), ",") == table.concat(b:size(), ","),
         what)
end

-- n numbers with everything that is special
local function special(n, dtype)
  local x = nacre.randn(n, {dtype = "float64"}):to(dtype)
  for _, v in ipairs {1 / 0, -1 / 0, nan, -nan, 0.0, -0.0, 0.5, -0.5} do
    x[nacre.randint(1, n + 1, {n // 9})] = v
  end
  return x
end

local function sorts(x, what)
  same(x:msort(), (x:sort(1)), what)
end

-- ---- msort: lengths around what is sorted another way

for _, dtype in ipairs(C.floats) do
  for _, n in ipairs {9, 2048, 2049, 5000, 70001} do
    sorts(special(n, dtype), dtype .. " " .. n)
  end
  local x = special(3 * 2500, dtype)
  sorts(x:reshape(2500, 3), dtype .. " columns")
  sorts(x:reshape(3, 2500):t(), dtype .. " transposed")
  sorts(x:reshape(2500, 3):select(2, 2), dtype .. " strided")
  sorts(x:flip(1), dtype .. " reversed")
  sorts(nacre.full({3000}, 1, {dtype = dtype}), dtype .. " equal")
  sorts(nacre.full({3000}, nan, {dtype = dtype}), dtype .. " nan")
  sorts(nacre.zeros(3000, {dtype = dtype}) * nacre.randn(3000):to(dtype),
        dtype .. " zeros")
end
for _, dtype in ipairs(C.ints) do
  local info = nacre.iinfo(dtype)
  for _, n in ipairs {100, 5000, 70001} do
    local x = nacre.randint(-2 ^ 40 // 1, 2 ^ 40 // 1, {n}) * 8191
    x = (x // (1 << 22)):to("int64"):bitwise_and(info.max):to(dtype)
    x[1], x[n // 2], x[n] = info.min, info.max, info.min
    sorts(x, dtype .. " " .. n)
    sorts(x:clamp(0, 5), dtype .. " few " .. n)
  end
end
local b = nacre.rand(5000):lt(0.3)
assert(nacre.equal(b:msort(), (b:sort(1))))
assert(nacre.tensor(2.5):msort():item() == 2.5)
assert(nacre.zeros(0):msort():numel() == 0)

-- ---- long lines, which threads share, in buckets of any size

-- What a digit, or a sample, says little about.
local function uneven(x)
  return {
    normal = x, zeros = x:gt(0):to(x.dtype) * -0.0, whole = (x * 100):round(),
    scales = nacre.where(x:gt(1), x * 1e30, x * 1e-30),
    outliers = nacre.where(x:gt(3), x * 1e20, 1),
    heavy = nacre.where(x:gt(0.2), x, 0.5),
  }
end

local threads = nacre.get_num_threads()
for _, n in ipairs {1, 3} do
  nacre.set_num_threads(n)
  for what, x in pairs(uneven(special(600001, "float64"))) do
    for _, dtype in ipairs(C.floats) do
      sorts(x:to(dtype), what .. dtype .. n)
    end
    same(x:nanmedian(), x:clone():requires_grad_():nanmedian():detach(), what)
  end
end
nacre.set_num_threads(threads)

do
  local x = uneven(special(600001, "float32")).heavy
  local sorted = x:sort()
  for n = 1, 12 do            -- the n-th block of memory is not to be had
    nacre._fail_alloc(n, true)
    local ok, y = pcall(x.msort, x)
    nacre._fail_alloc(0)
    if ok then same(y, sorted, "memory " .. n) break end
    assert(tostring(y):find "memory" or tostring(y):find "needs", y)
    assert(n < 12)
  end
end

-- ---- quantile, nanquantile, median: a recorded tensor is sorted

local HOW = {"linear", "lower", "higher", "nearest", "midpoint"}

local function chooses(x, what, ...)
  local shares = nacre.tensor({0, 0.123, 0.5, 0.5, 0.77, 0.99999, 1},
                              {dtype = x.dtype})
  local r = x:clone():requires_grad_()
  for _, f in ipairs {"quantile", "nanquantile"} do
    for _, how in ipairs(HOW) do
      local o = {interpolation = how}
      local why = what .. " " .. f .. " " .. how
      same(x[f](x, shares, ..., o), r[f](r, shares, ..., o):detach(), why)
      same(x[f](x, 0.3, ..., o), r[f](r, 0.3, ..., o):detach(), why)
    end
  end
  if ... == nil then
    same(x:median(), r:median():detach(), what .. " median")
    same(x:nanmedian(), r:nanmedian():detach(), what .. " nanmedian")
  end
end

for _, dtype in ipairs {"float32", "float64"} do
  for _, n in ipairs {4095, 4096, 300001} do
    chooses(special(n, dtype), dtype .. " " .. n)
    local x = nacre.randn(n, {dtype = dtype})
    chooses(x, dtype .. " finite " .. n)
    chooses((x * 3):round(), dtype .. " ties " .. n)
    x[7] = 1e30
    chooses(x, dtype .. " outlier " .. n)
    chooses(x:clamp(-1, 1), dtype .. " clamped " .. n)
  end
  chooses(nacre.full({5000}, -0.0, {dtype = dtype}), dtype .. " equal")
  chooses(nacre.full({5000}, nan, {dtype = dtype}), dtype .. " nan")
  local x = nacre.randn(5000, 4, {dtype = dtype})
  x[17][3] = nan
  x:select(2, 4):fill_(nan)
  chooses(x, dtype .. " dim 1", 1)
  chooses(x:t(), dtype .. " dim 2", 2)
  chooses(x:t(), dtype .. " transposed")
  local many = nacre.linspace(0, 1, 1000, {dtype = dtype})
  same(x:quantile(many), x:clone():requires_grad_():quantile(many):detach(),
       "many")
end
for _, dtype in ipairs {"int32", "uint8", "float16"} do
  local x = (nacre.randn(5000) * 20):clamp(0, 100):to(dtype)
  assert(x:median():item() == (x:kthvalue(2500)):item(), dtype)
end

-- ---- gradients are those of positions

do
  local x = nacre.randperm(5000):double():requires_grad_()
  x:msort():narrow(1, 4000, 1):sum():backward()
  assert(x.grad:argmax():item() == x:detach():eq(4000):long():argmax():item())
  x.grad = nil
  x:median():backward()
  assert(x.grad:sum():item() == 1)
end

-- ---- ranks that float32 cannot count

do
  local n = (1 << 24) + 4
  local x = nacre.arange(n, {dtype = "float32"})
  assert(x:quantile(1):item() == x[n])
  assert(x:nanquantile(1):item() == x[n])
  assert(x:quantile(0):item() == x[1])
end
print("sort_values: passed")
