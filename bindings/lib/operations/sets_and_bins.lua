-- SPDX-License-Identifier: MIT
-- sets_and_bins.lua - vectors as sets, bins and histograms of points, positions
-- of elements. Names are NumPy's; positions count from 1.

local all = ...
all.require "nacre.checks"
local define, fail = all.define, all.fail

-- ---- sets: sorted vectors of distinct elements

local function both(a, b)
  local dtype = nacre.promote_types(a.dtype, b.dtype)
  return a:flatten():to(dtype), b:flatten():to(dtype)
end

define("union1d", "a:tensor, b:tensor", "the distinct elements of a or b",
       function(a, b) return (nacre.cat {both(a, b)}:unique()) end)

define("intersect1d", "a:tensor, b:tensor",
       "the distinct elements that are in a and in b",
function(a, b)
  a, b = both(a, b)
  a = a:unique()
  return a:masked_select(nacre.isin(a, b))
end)

define("setdiff1d", "a:tensor, b:tensor",
       "the distinct elements of a that are not in b",
function(a, b)
  a, b = both(a, b)
  a = a:unique()
  return a:masked_select(nacre.isin(a, b, {invert = true}))
end)

define("setxor1d", "a:tensor, b:tensor",
       "the distinct elements that are in one of a and b alone",
function(a, b)
  a, b = both(a, b)
  local values, _, counts =
    nacre.cat {a:unique(), b:unique()}:unique {return_inverse = true,
                                               return_counts = true}
  return values:masked_select(counts:eq(1))
end)

-- ---- bins

-- bins: a vector that increases or decreases. 1: before the first.
define("digitize", "x:operand, bins:tensor, right:bool=false",
       "the number of the bin of each element of x, from 1: bins[i-1] <= x < "
       .. "bins[i]; right: < and <=",
function(x, bins, right)
  all.check_dims("digitize", bins, "bins", 1)
  if not nacre.is_tensor(x) then x = nacre.tensor(x, {device = bins.device}) end
  all.check_real("digitize", x, "x")
  all.check_real("digitize", bins, "bins")
  if bins.dtype == "bool" then bins = bins:long() end
  local n = bins:size(1)
  if n > 1 and bins[n] < bins[1] then
    return n + 2 - nacre.bucketize(x, bins:flip(1), {right = not right})
  end
  return nacre.bucketize(x, bins, {right = not right})
end)

-- The edges of the bins of one dimension: given, or a number of equal bins
-- from the least to the largest element.
local function edges_of(op, x, bins, range)
  if nacre.is_tensor(bins) then return bins:to(x.dtype) end
  if math.type(bins) ~= "integer" or bins < 1 then
    fail(op, "bins must be a number of bins, at least 1, or a tensor of edges")
  end
  local low, high
  if range then low, high = range[1], range[2]
  elseif x:numel() == 0 then low, high = 0, 1
  else low, high = x:min():item(), x:max():item() end
  if low == high then low, high = low - 0.5, high + 0.5 end
  if not (low < high) then
    fail(op, ("the range from %g to %g has no bins"):format(low, high))
  end
  return nacre.linspace(low, high, bins + 1, all.like(x))
end

local function check_range(op, range)
  if range == nil or type(range) == "table" and tonumber(range[1]) and
     tonumber(range[2]) then return range end
  fail(op, "range must be a list of {min, max}, one for each dimension")
end

-- sample: [n x d].  The last bin has its upper edge.
local function histogram(op, sample, bins, ranges, density, weights)
  local d, places, sizes, edges = sample:size(2), nil, {}, {}
  local inside
  if ranges ~= nil and type(ranges) ~= "table" then check_range(op, ranges) end
  for i = 1, d do
    local x = sample:select(2, i):contiguous()
    local e = edges_of(op, x, type(bins) == "table" and bins[i] or bins,
                       check_range(op, ranges and ranges[i]))
    local n = e:size(1) - 1
    local at = nacre.bucketize(x, e, {right = true}) - 1
    at = nacre.where(x:eq(e[n + 1]), n, at)
    local ok = at:ge(1):logical_and(at:le(n))
    inside = inside and inside:logical_and(ok) or ok
    at = at:clamp(1, n) - 1
    places = places and places * n + at or at
    sizes[i], edges[i] = n, e
  end
  local count = 1
  for _, n in ipairs(sizes) do count = count * n end
  local w = weights and weights:to(sample.dtype) or
            nacre.ones(sample:size(1), all.like(sample))
  local h = nacre.zeros(count, all.like(sample))
            :index_add(1, places + 1, nacre.where(inside, w, 0.0)):view(sizes)
  if not density then return h, edges end
  h = h / h:sum()
  for i, e in ipairs(edges) do
    local shape = {}
    for k = 1, d do shape[k] = k == i and sizes[i] or 1 end
    h = h / e:diff():view(shape)
  end
  return h, edges
end

-- Fails unless x and y are vectors of one size.
define("histogram2d", "x:tensor, y:tensor, bins:any=10, *, range:any=nil, "
       .. "density:bool=false, weights:tensor=nil -> tensor, x_edges, y_edges",
       "counts of points in a grid of bins, and the edges along x and y; bins: "
       .. "a number, a tensor of edges, or a list of two; range: {{min, max}, "
       .. "{min, max}}",
function(x, y, bins, range, density, weights)
  local op = "histogram2d"
  all.check_dims(op, x, "x", 1)
  all.check_dims(op, y, "y", 1)
  if x:size(1) ~= y:size(1) then
    fail(op, ("{x} has %s, {y} %s"):format(all.elements(x:size(1)),
         all.elements(y:size(1))), nil, "x", x, "y", y)
  end
  local dtype = nacre.promote_types(nacre.promote_types(x.dtype, y.dtype),
                                    nacre.get_default_dtype())
  local h, e = histogram(op, nacre.stack({x:to(dtype), y:to(dtype)}, 2), bins,
                         range, density, weights)
  return h, e[1], e[2]
end)

define("histogramdd", "input:tensor, bins:any=10, *, range:any=nil, "
       .. "density:bool=false, weight:tensor=nil -> tensor, edges",
       "counts of points, a row each, in a grid of bins of as many dimensions "
       .. "as there are columns, and a list of the edges",
function(x, bins, range, density, weight)
  all.check_dims("histogramdd", x, "input", 2)
  local dtype = x:is_floating_point() and x.dtype or nacre.get_default_dtype()
  return histogram("histogramdd", x:to(dtype), bins, range, density, weight)
end)

-- ---- positions and sequences

define("flatnonzero", "self",
       "positions, from 1, of the elements of self, row by row, that are not 0",
       function(self) return self:flatten():nonzero():squeeze(2) end)

define("ediff1d", "self, to_end:tensor=nil, to_begin:tensor=nil",
       "differences of neighbours, row by row; with others before and behind",
function(self, behind, before)
  local parts = {self:flatten():diff()}
  if before then table.insert(parts, 1, before:flatten():to(self.dtype)) end
  if behind then parts[#parts + 1] = behind:flatten():to(self.dtype) end
  return nacre.cat(parts)
end)

define("geomspace", "start:num, stop:num, num:int=50, *, endpoint:bool=true, "
       .. "dtype:dtype=nil, device:any|device=nil",
       "num numbers from start to stop, each the one before times a factor",
function(first, last, n, endpoint, dtype, device)
  if first == 0 or last == 0 or (first < 0) ~= (last < 0) then
    fail("geomspace", ("start is %g and stop %g: both must be above 0, or both "
                       .. "below"):format(first, last))
  end
  local wide = {dtype = "float64", device = device}
  local steps = endpoint and n - 1 or n
  local at = nacre.arange(n, wide) / math.max(steps, 1)
  local y = (nacre.pow(last / first, at) * first)
  if n > 0 then y[1] = first end
  if endpoint and n > 1 then y[n] = last end
  return y:to(dtype or nacre.get_default_dtype())
end)

local function sizes_of(op, shape)
  if type(shape) == "number" then shape = {shape} end
  for _, n in ipairs(shape) do
    if n < 0 then fail(op, ("%d is no size"):format(n)) end
  end
  return shape
end

-- Fails for a position outside the shape.
define("unravel_index", "indices:tensor, shape:size -> tensors",
       "the positions along each dimension, from 1, of elements that are "
       .. "numbered from 1, row by row",
function(at, shape)
  local op, count = "unravel_index", 1
  shape = sizes_of(op, shape)
  for _, n in ipairs(shape) do count = count * n end
  if at:numel() > 0 then
    local low, high = at:min():item(), at:max():item()
    if low < 1 or high > count then
      fail(op, ("position %d is not from 1 to %d"):format(
           low < 1 and low or high, count))
    end
  end
  local rest, out = at:long() - 1, {}
  for d = #shape, 1, -1 do
    out[d] = rest % shape[d] + 1
    rest = rest:div(shape[d], {rounding_mode = "floor"})
  end
  return out
end)

define("ravel_multi_index", "multi_index:tensors, dims:size",
       "the numbers, from 1, row by row, of elements at positions along each "
       .. "dimension",
function(places, shape)
  local op, y = "ravel_multi_index", nil
  shape = sizes_of(op, shape)
  if #places == 0 then fail(op, "needs a tensor of positions") end
  if #places ~= #shape then
    fail(op, ("%d tensors of positions for %d dimensions"):format(#places,
                                                                  #shape))
  end
  for d, at in ipairs(places) do
    if at.dtype == "bool" then at = at:long() end
    if at:numel() > 0 and (at:min():item() < 1 or
                           at:max():item() > shape[d]) then
      fail(op, ("a position along dimension %d is not from 1 to %d")
               :format(d, shape[d]))
    end
    y = y and y * shape[d] + at - 1 or at - 1
  end
  return y + 1
end)

-- ---- segments

local NEUTRAL = {sum = 0, mean = 0 / 0, prod = 1, max = -math.huge,
                 min = math.huge}

-- The ends of the segments, which follow each other along the last dimension,
-- from their lengths or from where they begin.
local function segment_ends(op, n, lengths, offsets, unsafe)
  if (lengths == nil) == (offsets == nil) then
    fail(op, "give either lengths or offsets")
  end
  local name = lengths and "lengths" or "offsets"
  local given = lengths or offsets
  if not all.is_exact(given) then
    fail(op, ("{%s} is %s, but must be integers"):format(name, given.dtype),
         ("{%s}:long()"):format(name), name, given)
  end
  all.check_min_dims(op, given, name, 1)
  local size = lengths and lengths:long() or offsets:long():diff()
  if not unsafe and size:numel() > 0 then
    if size:min():item() < 0 then
      fail(op, "a segment has a negative length")
    end
    if size:sum(-1):ne(n):any():item() then
      fail(op, ("the segments of a row must have %s in all"):format(
           all.elements(n)))
    end
  end
  return size:cumsum(-1)
end

-- lengths [... x segments] or offsets [... x segments + 1], from 1, have the
-- sizes of data before axis. An empty segment gives nan, or initial.
define("segment_reduce", "data:tensor, reduce:sum|mean|prod|max|min, *, "
       .. "lengths:tensor=nil, offsets:tensor=nil, axis:dim=1, "
       .. "unsafe:bool=false, initial:num=nil",
       "reductions of neighbouring segments of data along axis; unsafe does "
       .. "not check their lengths",
function(data, reduce, lengths, offsets, axis, unsafe, initial)
  local op = "segment_reduce"
  all.check_float(op, data, "data")
  axis = axis < 0 and axis + data:dim() + 1 or axis
  local n = data:size(axis)
  local ends = segment_ends(op, n, lengths, offsets, unsafe)
  if ends:dim() ~= axis then
    fail(op, ("%s has %d dimensions, but must have %d: those of data up to "
              .. "axis"):format(lengths and "lengths" or "offsets", ends:dim(),
                                axis))
  end
  local size, at = data:size(), data:size()
  local rows, segments = table.move(size, 1, axis, 1, {}), ends:size(-1)
  size[axis] = unsafe and segments + 1 or segments  -- one for what is left over
  local where = nacre.arange(n, {dtype = "int64", device = data.device})
                :expand(rows):contiguous()
  where = nacre.searchsorted(ends:contiguous(), where, {right = true})
  for _ = axis + 1, data:dim() do where = where:unsqueeze(-1) end
  local y = nacre.full(size, initial or NEUTRAL[reduce], all.like(data))
  local kinds = {sum = "sum", mean = "sum", prod = "prod", max = "amax",
                 min = "amin"}
  y = y:scatter_reduce(axis, where:expand(at), data, kinds[reduce],
                       {include_self = initial ~= nil})
  y = y:narrow(axis, 1, segments)
  if reduce ~= "mean" then return y end
  local count = ends:diff(1, -1, nacre.zeros_like(ends:narrow(-1, 1, 1)))
  for _ = axis + 1, data:dim() do count = count:unsqueeze(-1) end
  return nacre.where(count:eq(0), y, y / count:clamp(1))
end)
