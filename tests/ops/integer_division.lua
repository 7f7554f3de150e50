-- SPDX-License-Identifier: MIT
-- Quotients and remainders of integers are those of Lua: of every pair of
-- bytes, at the bounds of each dtype, next to multiples where a rounded
-- quotient would be wrong, and in blocks that hold both small and large ones.

nacre.manual_seed(3)
local bounds = {int8 = {-128, 127}, int16 = {-32768, 32767}, uint8 = {0, 255},
                int32 = {-(1 << 31), (1 << 31) - 1},
                int64 = {math.mininteger, math.maxinteger}}

local function truncated(a, b)
  local q = a // b
  return (a % b ~= 0 and q < 0) and q + 1 or q
end

-- The value of a dtype that has the low bits of v.
local function wrap(v, dtype)
  local low, high = table.unpack(bounds[dtype])
  if dtype == "int64" or v >= low and v <= high then return v end
  return low + (v - low) % (high - low + 1)
end

local rules = {
  floor_divide = function(a, b) return a // b end,
  remainder = function(a, b) return a % b end,
  trunc_divide = truncated, fmod = math.fmod,
}
local function quotient(name, a, b)
  if name == "trunc_divide" then return a:div(b, {rounding_mode = "trunc"}) end
  return a[name](a, b)
end

local function check(dtype, left, right)
  local a = nacre.tensor(left, {dtype = dtype})
  local b = nacre.tensor(right, {dtype = dtype})
  for name, rule in pairs(rules) do
    local y = quotient(name, a, b)
    assert(y.dtype == dtype)
    for i, v in ipairs(y:tolist()) do
      local want = wrap(rule(left[i], right[i]), dtype)
      assert(v == want, ("%s of %s: %d and %d give %d, not %d"):format(
        name, dtype, left[i], right[i], v, want))
    end
  end
end

for _, dtype in ipairs {"uint8", "int8"} do
  local low, high = table.unpack(bounds[dtype])
  local left, right = {}, {}
  for a = low, high do
    for b = low, high do
      if b ~= 0 then left[#left + 1], right[#right + 1] = a, b end
    end
  end
  check(dtype, left, right)
end

for _, dtype in ipairs {"int16", "int32", "int64"} do
  local low, high = table.unpack(bounds[dtype])
  local some = {low, low + 1, high, high - 1, -1, 1, 2, -2, 3, -3, 7, -7, 10}
  for _, bits in ipairs {24, 31, 50, 51, 52, 53} do
    for _, v in ipairs {(1 << bits) - 1, 1 << bits, (1 << bits) + 1} do
      if v <= high then some[#some + 1], some[#some + 2] = v, -v end
    end
  end
  local left, right = {}, {}
  for _, a in ipairs(some) do
    for _, b in ipairs(some) do left[#left + 1], right[#right + 1] = a, b end
    check(dtype, left, right)   -- blocks of every length
  end
  left, right = {}, {}
  for i = 1, 3000 do            -- next to multiples, mostly small
    local shift = i % 700 == 0 and 0 or dtype == "int64" and 13 or 1
    local b = math.random(high >> shift) >> math.random(0, 12)
    local a = (high >> shift) // (b | 1) * (b | 1) + math.random(-1, 1)
    right[i] = (b | 1) * (math.random(2) == 1 and 1 or -1)
    left[i] = math.min(a, high) * (math.random(2) == 1 and 1 or -1)
  end
  check(dtype, left, right)
  local a = nacre.tensor(left, {dtype = dtype})
  local every = a:expand(3, 3000):t():contiguous():t()
  assert((every // 7)[2]:equal(a // nacre.full_like(a, 7)))
  assert((every % -7)[3]:equal(a % nacre.full_like(a, -7)))
  assert(not pcall(function() return a // 0 end))
  assert(a:clone():floor_divide_(3):equal(a // 3))
end
