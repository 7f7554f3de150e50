-- SPDX-License-Identifier: MIT
--
-- timing_stats.lua - the statistics of timing: summarizes a list of samples
-- and decides how many digits are significant. It reads no clock and prints
-- nothing.

local stats = {}

--
-- Quantiles
--
function stats.sorted(list)
  local copy = table.move(list, 1, #list, 1, {})
  table.sort(copy)
  return copy
end

-- The quantile of a sorted list, linear between neighbours (as in NumPy).
function stats.quantile(sorted, q)
  local at = 1 + q * (#sorted - 1)
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (at - low) * (sorted[high] - sorted[low])
end

function stats.median(list)
  return stats.quantile(stats.sorted(list), 0.5)
end

-- The largest of the sorted samples that are not outliers: no further from the
-- middle half than four times its width, or half of the median.
function stats.bulk(sorted)
  local q1, q3 = stats.quantile(sorted, 0.25), stats.quantile(sorted, 0.75)
  local far = math.max(q3 + 4 * (q3 - q1), 1.5 * stats.quantile(sorted, 0.5))
  local i = #sorted
  while sorted[i] > far do i = i - 1 end
  return sorted[i]
end

-- The summary of samples; `half` is the ratio of their second half to the
-- first.
function stats.summary(samples)
  local s, n = stats.sorted(samples), #samples
  local q = function(x) return stats.quantile(s, x) end
  local middle = n // 2
  local half
  if n >= 6 then
    half = stats.median(table.move(samples, n - middle + 1, n, 1, {})) /
           stats.median(table.move(samples, 1, middle, 1, {})) - 1
  end
  return {n = n, min = s[1], max = s[n], median = q(0.5), q1 = q(0.25),
          q3 = q(0.75), half = half}
end

-- How many digits of x are significant given its uncertainty, from 1 to 3: the
-- last one is about half of the uncertainty.
function stats.digits(x, spread)
  if x == 0 or spread <= 0 then return 3 end
  local n = math.floor(math.log(math.abs(x), 10)) -
            math.floor(math.log(spread / 2, 10)) + 1
  return math.max(1, math.min(3, n))
end

--
-- Two lists of samples
--
-- The standard normal's quantile for probability 1 - p, p <= 0.5; Hastings'
-- rational approximation (Abramowitz and Stegun 26.2.23), to 5e-4.
local function normal(p)
  local t = math.sqrt(-2 * math.log(p))
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
         (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
end

-- The standard error of the logarithm of a median, from two order statistics
-- around it (Price and Bonett 2002).
local function logerror(sorted)
  local n = #sorted
  local c = math.max(1, math.floor((n + 1) / 2 - math.sqrt(n) + 0.5))
  local p, term = 0, 0.5 ^ n            -- of a binomial: fewer than c of n
  for i = 0, c - 1 do
    p = p + term
    term = term * (n - i) / (i + 1)
  end
  local low, high = sorted[c], sorted[n - c + 1]
  return (math.log(high) - math.log(low)) / (2 * normal(math.min(p, 0.5)))
end

-- The ratio of the medians of two lists of times and its 95 % interval; the
-- interval is nil if a list is too short.
function stats.ratio(a, b)
  local x, y = stats.sorted(a), stats.sorted(b)
  local ratio = stats.quantile(x, 0.5) / stats.quantile(y, 0.5)
  if #x < 5 or #y < 5 or x[1] <= 0 or y[1] <= 0 then return ratio end
  local error = 1.959964 * math.sqrt(logerror(x) ^ 2 + logerror(y) ^ 2)
  return ratio, ratio * math.exp(-error), ratio * math.exp(error)
end

--
-- What limits it
--
stats.CACHED = 1.1            -- of the memory's peak, and it was a cache's

-- What limits a run. `share` is {compute =, memory =, copies =}, parts of the
-- measured peaks; then the seconds of the device per operation and its
-- measured launch latency. Nil if the peaks are unknown. More bytes than
-- memory can deliver came from a cache, whose peak is unknown: no verdict.
function stats.verdict(share, each, latency)
  if not latency then return nil end
  local compute, memory = share.compute or 0, share.memory or 0
  local copies = share.copies or 0
  if copies >= 0.4 and copies > compute and copies > memory then
    return "copy-bound"
  end
  if each and each < 3 * latency then return "launch-bound" end
  if memory > stats.CACHED then
    return compute >= 0.4 and "compute-bound" or nil
  end
  if math.max(compute, memory) < 0.4 then return "latency-bound" end
  return compute >= memory and "compute-bound" or "memory-bound"
end

-- Rounds x up to 1, 2 or 5 times a power of ten.
function stats.round(x)
  local power = 1
  while power * 10 <= x do power = power * 10 end
  for _, step in ipairs {1, 2, 5, 10} do
    if step * power >= x then return step * power end
  end
end

--
-- Sizes of a sweep
--
-- "n=16..8192" is n, {16, 64, ...}: each `factor` times the one before, and
-- the last; "n=16..8192*2" says the factor, "n=100..500+100" a step,
-- "n=10,20,50" lists them.  Nil and why if it is none of these.
local function wholes(text)
  local n = math.tointeger(tonumber(text))
  return n and n >= 1 and n or nil
end

local function between(name, from, to, step, by)
  local list, n = {}, from
  if not from or not to or to < from then
    return nil, ("%s goes from a whole number to one that is not less, for "
      .. "example %s=16..4096"):format(name, name)
  end
  if not by or by < (step == "*" and 2 or 1) then
    return nil, ("the step of %s must be %s or more"):format(name,
      step == "*" and "*2" or "+1")
  end
  while n <= to do
    list[#list + 1] = n
    if #list > 200 then return nil, "more than 200 sizes" end
    n = step == "*" and n * by or n + by
  end
  if list[#list] ~= to then list[#list + 1] = to end
  return name, list
end

function stats.sizes(text)
  local name, values = text:match "^([%a_][%w_]*)=(.+)$"
  if not name then return nil, "sizes are given as n=16..8192" end
  local from, to, rest = values:match "^(%d+)%.%.(%d+)(.*)$"
  if from then
    local step, by = rest:match "^([*+])(%d+)$"
    if rest ~= "" and not step then
      return nil, ("%q is neither a factor, *2, nor a step, +100"):format(rest)
    end
    return between(name, wholes(from), wholes(to), step or "*",
                   step and wholes(by) or rest == "" and 4 or nil)
  end
  local list = {}
  for word in values:gmatch "[^,]+" do
    local n, last = wholes(word), list[#list]
    if not n then return nil, ("%q is not a size"):format(word) end
    if last and n <= last then return nil, "the sizes must grow" end
    list[#list + 1] = n
  end
  return name, list
end

-- Where list b becomes and stays less than list a over growing sizes: the
-- index and the size, interpolated in logarithms; nil if it never does. The
-- size is nil if b is less from the start.
function stats.crossing(sizes, a, b)
  local at
  for i = #sizes, 1, -1 do
    if not (a[i] and b[i] and b[i] < a[i]) then break end
    at = i
  end
  if not at or at == 1 then return at end
  if not a[at - 1] or not b[at - 1] then return at end
  local before = math.log(b[at - 1] / a[at - 1])
  local after = math.log(b[at] / a[at])
  local x, y = math.log(sizes[at - 1]), math.log(sizes[at])
  return at, math.exp(x + (y - x) * before / (before - after))
end

return stats
