-- SPDX-License-Identifier: MIT
-- argmax, argmin, and max and min along a dimension: in every dtype, of rows of
-- any length, in any layout, what Lua finds; without a copy in a wider dtype.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local nan, inf = 0 / 0, math.huge
nacre.manual_seed(3)

-- The position of the first largest number, or smallest; the first nan wins.
local function first_extreme(row, low)
  local best = 1
  for i, v in ipairs(row) do
    if v ~= v then return i end
    if low and v < row[best] or not low and v > row[best] then best = i end
  end
  return best
end

local function numbers(row)
  local out = {}
  for i, v in ipairs(row) do
    out[i] = v == true and 1 or v == false and 0 or v
  end
  return out
end

-- n elements with ties, the limits of the dtype and, of floats, what is special
local function elements(n, dtype)
  if dtype == "bool" then return nacre.rand(n):lt(0.2) end
  if not dtype:find "float" then
    local info = nacre.iinfo(dtype)
    local x = nacre.randint(0, 100, {n}):to(dtype)
    for _, v in ipairs {info.min, info.max, info.max - 1} do
      if n > 2 then x[nacre.randint(1, n + 1, {1 + n // 50})] = v end
    end
    return x
  end
  local x = (nacre.randn(n, {dtype = "float64"}) * 4):round():to(dtype)
  for _, v in ipairs {inf, -inf, 0.0, -0.0, nan} do
    if n > 40 and math.random() < 0.5 then
      x[nacre.randint(1, n + 1, {1 + n // 100})] = v
    end
  end
  return x
end

local function check(x, what)
  local rows = x:tolist()
  local is = {}
  for _, low in ipairs {false, true} do
    local at = low and x:argmin(2) or x:argmax(2)
    local y, where = (low and nacre.min or nacre.max)(x, 2)
    assert(y.dtype == x.dtype and where:equal(at), what)
    local positions = at:tolist()
    for i, row in ipairs(rows) do
      assert(positions[i] == first_extreme(numbers(row), low), what)
    end
    local want = x:gather(2, at:unsqueeze(2)):squeeze(2)
    if x:is_floating_point() then
      assert(y:nan_to_num(77):equal(want:nan_to_num(77)), what)
    else assert(y:equal(want), what) end
    is[#is + 1] = at
  end
  return is
end

for _, dtype in ipairs(C.dtypes) do
  for _, n in ipairs {1, 2, 5, 16, 17, 31, 63, 64, 65, 130, 1023, 1025, 3000} do
    local rows = n < 100 and 19 or 3
    local x = elements(rows * n, dtype):view(rows, n)
    local what = ("%s[%dx%d]"):format(dtype, rows, n)
    local is = check(x, what)
    -- the same elements in other layouts
    local turned = x:t():contiguous()
    assert(turned:argmax(1):equal(is[1]), what)
    assert(turned:argmin(1):equal(is[2]), what)
    local wide = nacre.stack({x, x}, 3)
    assert(wide:select(3, 2):argmax(2):equal(is[1]), what)
    assert(wide:argmax(2):select(2, 1):equal(is[1]), what)
    local flat = numbers(x:reshape(-1):tolist())
    assert(x:argmax():item() == first_extreme(flat), what)
    assert(x:t():argmin():item() ==
           first_extreme(numbers(x:t():reshape(-1):tolist()), true), what)
  end
end

-- ---- rows of several pieces, which threads share

for _, dtype in ipairs(C.dtypes) do
  local n = 200003
  local x = elements(n, dtype)
  local want = first_extreme(numbers(x:tolist()))
  local threads = nacre.get_num_threads()
  for _, k in ipairs {1, 3} do
    nacre.set_num_threads(k)
    assert(x:argmax():item() == want, dtype)
    assert(x:tile(2):view(2, n):argmax(2):equal(nacre.tensor {want, want}),
           dtype)
  end
  nacre.set_num_threads(threads)
  local plain = dtype == "bool" and nacre.zeros(n, {dtype = dtype}) or
                nacre.full({n}, 1, {dtype = dtype})
  assert(plain:argmax():item() == 1 and plain:argmin():item() == 1)
  plain[n - 2] = dtype == "bool" and true or 2
  assert(plain:argmax():item() == n - 2, dtype)
end

-- ---- no copy: a limit that leaves no room for one

if nacre.zeros(1).device == "cpu" then
  for _, dtype in ipairs {"bool", "uint8", "int8", "float16", "bfloat16"} do
    local x = nacre.zeros(1 << 24, {dtype = dtype})
    x[12345] = 1
    local used = nacre._memory().live
    nacre.set_memory_limit(used + (1 << 20))
    local at, alone = x:argmax():item(), x:view(-1, 1 << 23):argmax(2)
    nacre.set_memory_limit(0)
    assert(at == 12345 and alone[1] == 12345, dtype)
  end
end
