-- SPDX-License-Identifier: MIT
-- sum, mean, prod, amax and amin of rows and columns of every length that a
-- loop treats in a way of its own, in every dtype, dense and strided, are what
-- Lua computes; also of infinities and nan, and for any number of threads.

nacre.manual_seed(2)
local inf, nan = math.huge, 0 / 0
local precision = {float16 = 2^-11, bfloat16 = 2^-8, float32 = 2^-24,
                   float64 = 2^-45}
local dtypes = {"float16", "bfloat16", "float32", "float64", "uint8", "int8",
                "int16", "int32", "int64"}

local function operand(dtype, ...)
  if precision[dtype] then return (nacre.randn(...) * 3):to(dtype) end
  return nacre.randint(dtype == "uint8" and 0 or -100, 101, {...}):to(dtype)
end

local folds = {
  sum = function(v) local s = 0 for _, x in ipairs(v) do s = s + x end return s
        end,
  amax = function(v) return math.max(table.unpack(v)) end,
  amin = function(v) return math.min(table.unpack(v)) end,
}
function folds.mean(v) return folds.sum(v) / #v end

-- The results of the fold for each row of x, a matrix.
local function by_lua(fold, x)
  local y = {}
  for i, row in ipairs(x:tolist()) do y[i] = folds[fold](row) end
  return nacre.tensor(y, {dtype = "float64"})
end

local function check(what, got, want, scale)
  local most = precision[got.dtype] or 0
  local off = (got:double() - want):abs() - most * 1.001 * want:abs()
  assert(off:amax():item() <= (scale or 0), what)
end

local lengths = {1, 2, 3, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 1023,
                 1025, 2100}
for _, dtype in ipairs(dtypes) do
  for _, n in ipairs(lengths) do
    local x = operand(dtype, 5, n)
    local odd = operand(dtype, 5, 2 * n)[{{}, "1::2"}]
    local part = operand(dtype, 5, n + 3):narrow(2, 2, n)
    local layouts = {rows = x, columns = x:t():contiguous():t(), odd = odd,
                     part = part, stacked = operand(dtype, 41, n)}
    for layout, t in pairs(layouts) do
      for fold in pairs(folds) do
        if fold ~= "mean" or precision[dtype] then
          local what = ("%s of %s, %s of %d"):format(fold, layout, dtype, n)
          check(what, t[fold](t, 2), by_lua(fold, t), 1e-13 * n)
          check(what .. ", turned", t:t()[fold](t:t(), 1), by_lua(fold, t),
                1e-13 * n)
        end
      end
    end
    local near = (nacre.rand(5, n):double() * 0.2 + 0.9):to(
      precision[dtype] and dtype or "float32")
    check("prod", near:prod(2), near:double():log():sum(2):exp(), 1e-10)
    local blocks = operand(dtype, 4, n, 3)
    local turned = blocks:transpose(2, 3):reshape(12, n)
    check("middle of " .. n, blocks:sum(2):flatten(), by_lua("sum", turned),
          1e-13 * n)
  end
end
for _, dtype in ipairs(dtypes) do
  assert(nacre.zeros({3, 0}, {dtype = dtype}):sum(2):equal(
           nacre.zeros({3}, {dtype = precision[dtype] and dtype or "int64"})))
  assert(nacre.zeros({0, 3}, {dtype = dtype}):sum(2):numel() == 0)
end

-- ---- what is not finite, wherever it stands

for dtype in pairs(precision) do
  for _, n in ipairs {7, 40, 130, 1025} do
    for _, at in ipairs {1, 5, n} do
      local x = operand(dtype, 2, n)
      x[{1, at}] = inf
      assert(x:sum(2)[1] == inf and x:amax(2)[1] == inf)
      assert(x:amin(2)[1] > -100)
      x[{1, 3}] = -inf
      local sum = x:sum(2)[1]
      assert(sum ~= sum and x:amin(2)[1] == -inf)
      for _, bad in ipairs {nan, -nan} do
        x[{1, at}] = bad
        assert(x:amax(2):isnan():tolist()[1] and x:sum(2):isnan():tolist()[1])
        assert(x:amin(2):isnan():tolist()[1])
        assert(x[2]:isfinite():all():item() and x:amax(2)[2] < 100)
      end
    end
  end
  local low = nacre.full({300}, -inf, {dtype = dtype})
  assert(low:amax():item() == -inf and (-low):amin():item() == inf)
end

-- The sum fits, that of two neighbours would not.
local big = nacre.tensor({3e38, 3e38, -3e38, -3e38}, {dtype = "bfloat16"})
for _, n in ipairs {64, 1000} do
  assert(big:repeat_interleave(n):sum():item() == 0)
end

-- ---- variances, of which float takes the differences from the first element

for _, n in ipairs {2, 7, 31, 33, 100, 2047, 2049, 5000} do
  for _, mean in ipairs {0, 1e4} do
    local x = nacre.randn(5, n) + mean
    x[{1, 1}], x[{2, n}], x[{4, 1}] = 1e6, -1e6, inf
    x[3] = x[{3, 1}]
    local got, want = x:var(2), x:double():var(2)
    assert(got[3] == 0 and got[4] ~= got[4])
    for _, i in ipairs {1, 2, 5} do
      assert(math.abs(got[i] / want[i] - 1) < 2^-24 * 1.01)
    end
  end
end

-- ---- the number of threads

local many = {operand("float32", 300, 700), operand("float16", 700, 300),
              operand("bfloat16", 64, 33, 65), operand("float32", 40000, 10)}
local function all_sums()
  local y = {}
  for _, x in ipairs(many) do
    for dim = 1, x:dim() do
      for fold in pairs(folds) do y[#y + 1] = x[fold](x, dim) end
    end
    y[#y + 1] = x:sum()
  end
  return y
end
local threads = nacre.get_num_threads()
nacre.set_num_threads(1)
local alone = all_sums()
nacre.set_num_threads(3)
for i, y in ipairs(all_sums()) do assert(y:equal(alone[i])) end
nacre.set_num_threads(threads)
