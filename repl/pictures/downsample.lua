-- SPDX-License-Identifier: MIT
--
-- downsample.lua - reduces a tensor to at most as many numbers as a picture
-- has dots. Large tensors are thinned or reduced on their device; only the
-- result is copied to Lua.

local nacre = package.loaded.nacre or _G.nacre

local facts = require "nacre.tensor_facts"

local downsample = {}

local MOST = 1 << 22 -- elements that are worked on as doubles

-- t, or an evenly spaced part of about `limit' elements, as a view. The first
-- dimensions are thinned first.
function downsample.thin(t, limit)
  local ratio, index = t:numel() / limit, {}
  if ratio <= 1 then return t, false end
  for d, n in ipairs(t:size()) do
    local step = math.max(1, math.min(n, math.ceil(ratio)))
    index[d] = {1, n, step}
    ratio = ratio / step
  end
  return t[index], true
end

-- The smallest and largest elements of v that a curve can show.
local function ends(v, log)
  local good = v:isfinite()
  if log then good = good & v:gt(0) end
  v = v[good]
  if v:numel() == 0 then return 0 / 0, 0 / 0 end
  return v:min():item(), v:max():item()
end

local function shown(low, high, log)
  return low - low == 0 and high - high == 0 and (not log or low > 0)
end

-- How many elements a curve cannot show: those that are not finite, and, on a
-- logarithmic axis, those not above 0.
function downsample.unseen(t, log)
  if t.dtype == "bool" then t = t:to "uint8" end
  local good = t:isfinite()
  local finite = good:sum():item()
  local above = log and (good & t:gt(0)):sum():item() or finite
  return t:numel() - finite, finite - above
end

-- A vector as a series for plot.chart: its elements, or, if there are more
-- than `columns', the smallest and the largest of each of that many parts.
function downsample.series(t, columns, log)
  local n = t:size(1)
  if t.dtype == "bool" then t = t:to "uint8" end
  if n <= columns then return {y = t:to "float64":totable()} end
  local each = math.ceil(n / columns)
  local parts = n // each
  local body = t:narrow(1, 1, parts * each):reshape(parts, each)
  local s = {x = {}, low = body:amin(2):to "float64":totable(),
             high = body:amax(2):to "float64":totable()}
  if n > parts * each then
    parts = parts + 1
    s.low[parts], s.high[parts] = 0 / 0, 0 / 0 -- computed below
  end
  for i = 1, parts do
    local from, count = (i - 1) * each + 1, math.min(each, n - (i - 1) * each)
    s.x[i] = from + (count - 1) / 2
    if not shown(s.low[i], s.high[i], log) then
      s.low[i], s.high[i] = ends(t:narrow(1, from, count):to "float64", log)
    end
  end
  s.x[1], s.x[parts] = 1, n -- the ends that the axis shows
  return s
end

-- Sums over k parts of dimension d of nearly equal size.
local function binned(x, d, k)
  local n, last = x:size(d), {}
  if n == k then return x end
  for i = 1, k do last[i] = i * n // k end
  last = nacre.tensor(last, {device = x.device})
  local sums = x:cumsum(d):index_select(d, last)
  if k == 1 then return sums end
  return nacre.cat({sums:narrow(d, 1, 1),
                    sums:narrow(d, 2, k - 1) - sums:narrow(d, 1, k - 1)}, d)
end

-- The means of a matrix over h x w cells (no more than it has) as a float64
-- matrix on the CPU, nan where nothing is finite; and how many elements of
-- those that were sampled are not finite.
function downsample.cells(m, h, w)
  local rows, columns = m:size(1), m:size(2)
  while rows * columns > MOST do -- each side by half while it has to spare
    local tall = rows // h > columns // w
    if tall then rows = rows // 2 else columns = columns // 2 end
  end
  m = m[{{1, m:size(1), m:size(1) // rows},
         {1, m:size(2), m:size(2) // columns}}]
  m = m:to "float64"
  local good = m:isfinite()
  local sums = nacre.where(good, m, 0.0)
  local counts = good:to "float64"
  sums = binned(binned(sums, 1, h), 2, w)
  counts = binned(binned(counts, 1, h), 2, w)
  return (sums / counts):cpu(), m:numel() - good:sum():item()
end

-- All finite elements as a vector of floats, or a sample of them; how many
-- are not finite; whether it is a sample.
function downsample.values(t)
  local part, thinned = downsample.thin(t, MOST)
  local x = part:reshape(-1)
  local half = facts.isfloat(t) and t.dtype ~= "float64"
  x = x:to(half and "float32" or "float64")
  local n, good = x:numel(), x:isfinite()
  if not good:all():item() then x = x[good] end
  return x, n - x:numel(), thinned
end

return downsample
