-- SPDX-License-Identifier: MIT
-- The statistics of timing, on made-up samples.

local stats = require "nacre.timing_stats"
local units = require "nacre.units"

local function near(a, b, tolerance, what)
  assert(math.abs(a - b) <= tolerance * math.max(1, math.abs(b)),
         ("%s: %.12g, not %.12g"):format(what or "value", a, b))
end

-- quantiles, as numpy.percentile gives them
do
  local s = stats.summary {5, 1, 4, 2, 3, 10}
  assert(s.n == 6 and s.min == 1 and s.max == 10)
  near(s.median, 3.5, 1e-12)
  near(s.q1, 2.25, 1e-12)
  near(s.q3, 4.75, 1e-12)
  s = stats.summary {7}
  assert(s.median == 7 and s.q1 == 7 and s.q3 == 7 and s.half == nil)
  s = stats.summary {1, 1, 1, 2, 2, 2}
  near(s.half, 1, 1e-12, "the second half takes twice as long")
  s = stats.summary {1, 1, 1, 9, 2, 2, 2}
  near(s.half, 1, 1e-12, "the middle one belongs to no half")
  local given = {3, 1, 2}
  stats.summary(given)
  assert(given[1] == 3, "the samples keep their order")
end

-- digits that a spread leaves
do
  assert(stats.digits(101e-3, 3e-3) == 3)       -- +-1.5 ms: 101
  assert(stats.digits(1.9e-6, 0.5e-6) == 2)     -- +-0.25 us: 1.9
  assert(stats.digits(1.9e-6, 3e-6) == 1)
  assert(stats.digits(1.0, 100) == 1)
  assert(stats.digits(1.0, 0) == 3)
  assert(stats.digits(0, 0) == 3)
  near(units.round(123.456, 2), 120, 1e-12)
  near(units.round(1.96e-6, 2), 2.0e-6, 1e-12)
  near(units.round(-0.01234, 3), -0.0123, 1e-12)
  assert(units.round(0, 3) == 0)
  assert(units.round(math.huge, 2) == math.huge)
end

-- the ratio of two medians and its interval
do
  local a, b = {}, {}
  for i = 1, 21 do a[i], b[i] = 2 + i / 1000, 1 + i / 2000 end
  local r, low, high = stats.ratio(a, b)
  near(r, 2, 1e-12)
  assert(low < 2 and high > 2 and low > 1.98 and high < 2.02)
  r, low, high = stats.ratio(b, a)
  near(r, 0.5, 1e-12)
  near(low * high, 0.25, 1e-9, "the same about the logarithm")
  -- Price and Bonett: n = 9, c = 2, the tail of 10/512 is at z = 2.0627
  local c = {1, 2, 3, 4, 5, 6, 7, 8, 9}
  r, low, high = stats.ratio(c, c)
  local se = (math.log(8) - math.log(2)) / (2 * 2.0627)
  near(r, 1, 1e-12)
  near(high, math.exp(1.959964 * math.sqrt(2) * se), 2e-3)
  -- too few samples say nothing of an interval
  r, low = stats.ratio({1, 2, 3}, {1, 2, 3})
  assert(r == 1 and low == nil)
end

-- the interval holds the true ratio about as often as it says
do
  local state = 1
  local function uniform()               -- a generator of the test's own
    state = (state * 48271) % 2147483647
    return state / 2147483647
  end
  local function sample(n, centre)       -- skewed, as times are
    local list = {}
    for i = 1, n do list[i] = centre * math.exp(0.05 * -math.log(uniform())) end
    return list
  end
  local held, rounds = 0, 400
  for _ = 1, rounds do
    local r, low, high = stats.ratio(sample(25, 3), sample(25, 2))
    assert(low < r and r < high)
    if low <= 1.5 and 1.5 <= high then held = held + 1 end
  end
  local share = held / rounds
  print(("the 95 %% interval held the ratio in %.1f %% of %d rounds"):format(
    100 * share, rounds))
  assert(share > 0.90 and share < 0.995)
end

-- the bulk of samples
do
  assert(stats.bulk {1, 1, 1, 1.4, 40} == 1.4)
  assert(stats.bulk {5} == 5 and stats.bulk {1, 1, 1, 1} == 1)
  assert(stats.bulk {1, 2, 3, 4, 5, 6, 7, 8} == 8, "wide is not far")
end

-- what limits
do
  local v = stats.verdict
  assert(v({compute = 0.82, memory = 0.1}, 0.1, 1e-6) == "compute-bound")
  assert(v({compute = 0.1, memory = 0.82}, 0.1, 1e-6) == "memory-bound")
  assert(v({compute = 0.39, memory = 0.2}, 0.1, 1e-6) == "latency-bound")
  assert(v({compute = 0.4}, 0.1, 1e-6) == "compute-bound")
  assert(v({memory = 0.9}, 2.9e-6, 1e-6) == "launch-bound")
  assert(v({memory = 0.9}, 3.1e-6, 1e-6) == "memory-bound")
  assert(v({}, 0.1, 1e-6) == "latency-bound")
  assert(v({copies = 0.7, memory = 0.1}, 0.1, 1e-6) == "copy-bound")
  assert(v({copies = 0.5, memory = 0.6}, 0.1, 1e-6) == "memory-bound")
  assert(v({compute = 0.9}, 0.1, nil) == nil, "without peaks there is none")
  assert(v({memory = 1.5, compute = 0.1}, 0.1, 1e-6) == nil, "a cache's bytes")
  assert(v({memory = 1.5, compute = 0.5}, 0.1, 1e-6) == "compute-bound")
end

-- 1, 2, 5
do
  for x, want in pairs {[0.3] = 1, [1] = 1, [2] = 2, [3] = 5, [7] = 10,
                        [10] = 10, [11] = 20, [501] = 1000, [5000] = 5000} do
    assert(stats.round(x) == want, x)
  end
end

-- sizes
do
  local function sizes(text)
    local name, list = stats.sizes(text)
    return name and name .. " " .. table.concat(list, " ") or list
  end
  assert(sizes "n=16..8192" == "n 16 64 256 1024 4096 8192")
  assert(sizes "m=1..8*2" == "m 1 2 4 8")
  assert(sizes "n=100..350+100" == "n 100 200 300 350")
  assert(sizes "n=3,7,100" == "n 3 7 100")
  assert(sizes "n=5..5" == "n 5")
  assert(sizes "n=5" == "n 5")
  for text, why in pairs {
    ["16..32"] = "n=16..8192", ["n=0..5"] = "whole number",
    ["n=9..5"] = "not less", ["n=1..9*1"] = "*2 or more",
    ["n=1..9+0"] = "+1 or more", ["n=1..9/2"] = '"/2"',
    ["n=1,x"] = '"x"', ["n=3,2"] = "grow", ["n=1..9999+1"] = "200",
    ["n=1.5,2"] = '"1.5"', ["=1..2"] = "n=16..8192", ["n="] = "n=16..8192",
  } do
    local ok, text2 = stats.sizes(text)
    assert(not ok and text2:find(why, 1, true),
           ("%s: %s"):format(text, tostring(text2)))
  end
end

-- where one overtakes the other
do
  local n = {10, 100, 1000}
  local at, where = stats.crossing(n, {1, 10, 100}, {10, 10.0, 10})
  assert(at == 3)
  near(where, 100, 1e-9)                 -- they are equal there
  at, where = stats.crossing(n, {1, 10, 100}, {5, 5, 5})
  assert(at == 2)
  near(where, 10 ^ (1 + math.log(5, 10)), 1e-9)
  at, where = stats.crossing(n, {1, 1, 1}, {2, 2, 2})
  assert(at == nil and where == nil)
  at, where = stats.crossing(n, {2, 2, 2}, {1, 1, 1})
  assert(at == 1 and where == nil)
  at = stats.crossing(n, {2, 2, 2}, {1, 3, 1})
  assert(at == 3, "it has to stay ahead")
  at = stats.crossing(n, {2, 2, nil}, {1, 1, 1})
  assert(at == nil, "what was not measured is not overtaken")
end
