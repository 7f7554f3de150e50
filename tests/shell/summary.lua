-- SPDX-License-Identifier: MIT
--
-- The statistics that the display shows are those that the operations compute:
-- in any layout, with nan and inf anywhere, of all or of a sample.

nacre.manual_seed(3)
math.randomseed(3)

local function total(list)
  local sum = 0
  for _, n in ipairs(list) do sum = sum + n end
  return sum
end

local function near(a, b) return math.abs(a - b) <= 1e-9 * (1 + math.abs(b)) end

local function check(t, why)
  local s, f = nacre._summary(t, 0), t:contiguous():view(-1)
  local finite = f:isfinite()
  local g, bad = f[finite]:double(), finite:logical_not():nonzero()
  local n = g:numel()
  assert(s.n == t:numel() and s.seen == s.n, why)
  assert(s.nan == f:isnan():sum():item(), why)
  assert(s.posinf == f:eq(1 / 0):sum():item(), why)
  assert(s.neginf == f:eq(-1 / 0):sum():item(), why)
  assert(s.firstbad == (bad:numel() > 0 and bad[{1, 1}] - 1 or -1), why)
  if n == 0 then return end
  assert(s.min == g:min():item() and s.max == g:max():item(), why)
  assert(s.zero == g:eq(0):sum():item(), why)
  assert(near(s.mean, g:mean():item()), why)
  assert(n == 1 or near(s.std, g:std(1, false):item()), why)
  local counted = s.max > s.min and n or 0
  assert(total(s.histogram) == counted, why)
end

local odd = {0 / 0, 1 / 0, -1 / 0, 0}

-- A tensor of up to 4 dimensions, in any order, cut, with gaps.
local function any(i)
  local size = {}
  for d = 1, math.random(1, 4) do
    size[d] = math.random(1, i % 10 == 0 and 40 or 9)
  end
  local t = nacre.randn(size)
  if i % 7 == 0 then t = t:double() end
  local flat = t:view(-1)
  for _ = 1, math.random(0, 3) do
    flat[math.random(1, t:numel())] = odd[math.random(#odd)]
  end
  if i % 50 == 0 then flat:fill_(0 / 0) end
  local u = t:permute(table.unpack(nacre.randperm(#size):tolist()))
  if i % 3 == 0 and u:size(1) > 2 then u = u:narrow(1, 2, u:size(1) - 1) end
  if i % 5 == 0 and u:size(1) > 2 then u = u[{{1, -1, 2}}] end
  return u
end

for i = 1, 200 do
  local t = any(i)
  check(t, ("%s / %s"):format(table.concat(t:size(), "x"),
                              table.concat(t:stride(), ",")))
end

local large = nacre.randn(500, 700)
check(large, "large")
check(large:t(), "transposed")
large[{300, 7}] = 0 / 0
large[{3, 600}] = 1 / 0
check(large, "large, bad")
check(large:t(), "transposed, bad")
check(nacre.randn(5, 1):expand(5, 7), "expanded")
check(nacre.randn(1, 5):expand(7, 5):t(), "expanded, transposed")
check(nacre.tensor(3.5), "no dimension")

-- The order of memory is no order of the results.
local a, b = nacre._summary(large), nacre._summary(large:t():contiguous():t())
assert(near(a.mean, b.mean) and near(a.std, b.std))

-- A range that is as small as numbers get.
local tiny = nacre.tensor({0, 4.9e-324}, {dtype = "float64"})
assert(nacre._summary(tiny, 0).histogram[12] == 1)

-- Samples: all over the tensor, and never more than was asked for.
for _, n in ipairs {1000, (1 << 20) + 1, 3000017} do
  local rising, no = nacre.arange(n):double(), nacre.full({n}, 0 / 0)
  for _, limit in ipairs {1, 31, 33, 1000, 1 << 20} do
    local s = nacre._summary(rising, limit)
    assert(s.n == n and s.seen <= math.max(limit, 32))
    if limit >= 1000 then
      assert(math.abs(s.mean / n - 0.5) < 0.02 and s.max > 0.9 * n)
    end
    s = nacre._summary(no, limit)
    assert(s.nan == s.seen and s.firstbad >= 0 and s.firstbad < n)
  end
end

-- How the values of many are spread is told of some of them.
local h = nacre._summary(nacre.linspace(0, 1, 1 << 22), 0).histogram
for _, n in ipairs(h) do assert(math.abs(12 * n / total(h) - 1) < 0.1) end
