-- SPDX-License-Identifier: MIT
-- embedding.lua - rows of a table by their numbers, and classes as rows. Rows
-- and classes count from 1.
local all = ...
all.require "nacre.checks"
local fail, check_dims = all.fail, all.check_dims

local define = all.definer "nn.functional."

-- Returns `at'; fails unless it has the numbers of rows of w. On a GPU it does
-- not wait for them: a number below 1 becomes 0, and indexing refuses it.
local function check_rows(op, at, w)
  check_dims(op, w, "weight", 2)
  if at.dtype ~= "int64" and at.dtype ~= "int32" then
    fail(op,
         ("{input} is %s, expected int64 or int32"):format(at.dtype),
         nil, "input", at)
  end
  if at:numel() == 0 or nacre._in_dry_run() then return at end
  if at.is_cuda then return at:clamp(0) end
  local low, high = nacre._bounds(at)
  local n = w:size(1)
  if low < 1 then
    fail(op, ("row %d does not exist: they count from 1"):format(low), nil,
         "input", at)
  end
  if high > n then
    fail(op, ("row %d does not exist: {weight} has %d"):format(high, n), nil,
         "input", at, "weight", w)
  end
  return at
end

-- padding_idx as a row of n, from 1; negative numbers count from the end.
function all.padding_row(op, padding, n)
  local row = padding and padding < 0 and padding + n + 1 or padding
  if row and (row < 1 or row > n) then
    fail(op, ("padding_idx %d: the rows are 1 to %d"):format(padding, n))
  end
  return row
end

-- Scales the rows of w in `at' whose norm of order p is above `most' down to
-- it, in place and unrecorded.
local function limit_norms(w, at, most, p)
  if not most or at:numel() == 0 then return end
  nacre.no_grad(function()
    local rows = at:reshape(-1):to("int64"):unique()
    local values = w[rows]
    local norms = values:norm(p, 2, true)
    w[rows] = values * nacre.where(norms:gt(most), most / (norms + 1e-7), 1.0)
  end)
end

-- Divides the gradient of y, the rows `at' of a table of n, by how often each
-- row is there.
local function divide_by_frequency(y, at, n)
  if not y.requires_grad then return end
  local count = nacre.zeros(n, {dtype = "int64", device = at.device})
                :index_add(1, at, nacre.ones_like(at))
  local divisor = count[at]:unsqueeze(2)
  y:register_hook(function(g) return g / divisor end)
end

local NORM = "max_norm:num=nil, norm_type:num=2, scale_grad_by_freq:bool=false"

-- input [...] of int64 or int32, weight [n x k] give [... x k]. Fails for a row
-- out of 1 to n.
define("embedding",
       "input:tensor, weight:tensor, padding_idx:int=nil, " .. NORM,
       "rows of weight by their numbers, from 1; padding_idx gets no gradient; "
       .. "rows longer than max_norm are first scaled down to it, in place; "
       .. "scale_grad_by_freq divides gradients by how often a row occurs",
function(at, w, padding, max_norm, norm_type, by_frequency)
  local op = "embedding"
  at = check_rows(op, at, w)
  padding = all.padding_row(op, padding, w:size(1))
  limit_norms(w, at, max_norm, norm_type)
  local numbers = at
  if at:dim() ~= 1 then numbers = at:reshape(-1) end
  local y = w:index_select(1, numbers)
  if by_frequency then
    divide_by_frequency(y, numbers:to("int64"), w:size(1))
  end
  if at:dim() ~= 1 then
    local size = at:size()
    size[#size + 1] = w:size(2)
    y = y:reshape(size)
  end
  if not padding then return y end
  return nacre.where(at:eq(padding):unsqueeze(-1), y:detach(), y)
end)

-- ---- bags

-- The offsets must rise from 1 to one past the n rows at most.
local function check_offsets(op, offsets, n)
  local first = offsets:numel() > 0 and offsets[1]
  local falls = offsets:numel() > 1 and offsets:diff():lt(0):any():item()
  if first and (first ~= 1 or falls or offsets[-1] > n + 1) then
    fail(op, ("{offsets} must rise from 1 to at most %d"):format(n + 1), nil,
         "offsets", offsets)
  end
end

-- Where the bags of input begin, from 1, and one past the end of the last.
local function bag_bounds(op, at, offsets, last)
  local options = {dtype = "int64", device = at.device}
  if at:dim() == 2 then
    if offsets then fail(op, "a matrix of rows needs no offsets") end
    local b, n = at:size(1), at:size(2)
    return nacre.arange(b + 1, options) * n + 1
  end
  check_dims(op, at, "input", 1, 2)
  if not offsets then
    fail(op, "offsets are needed: where each bag of the vector begins, from 1")
  end
  check_dims(op, offsets, "offsets", 1)
  if not nacre._in_dry_run() then check_offsets(op, offsets, at:numel()) end
  offsets = offsets:to("int64")
  if last then return offsets end
  return nacre.cat {offsets, nacre.full({1}, at:numel() + 1, options)}
end

-- The largest elements of each bag; 0 for an empty one. The bags are padded to
-- the longest.
local function bag_maxima(rows, used, bounds)
  local b = bounds:numel() - 1
  local from = bounds:narrow(1, 1, b):unsqueeze(2)
  local length = bounds:diff()
  local known = b > 0 and not nacre._in_dry_run()
  local longest = math.max(1, known and length:max():item() or 0)
  if rows:size(1) == 0 then
    return nacre.zeros(b, rows:size(2), all.like(rows))
  end
  local at = from + nacre.arange(longest, {device = rows.device})
  local inside = at:lt(bounds:narrow(1, 2, b):unsqueeze(2))
  at = at:clamp(1, rows:size(1))
  inside = inside:logical_and(used[at:reshape(-1)]:reshape(at:size()))
  local x = rows[at:reshape(-1)]:reshape(b, longest, rows:size(2))
  local y = nacre.where(inside:unsqueeze(3), x, -math.huge):max(2)
  return nacre.where(inside:any(2):unsqueeze(2), y, 0.0)
end

-- The sums or means of each bag; those of an empty one are 0. `weights' has a
-- factor for each row.
local function bag_sums(rows, used, bounds, weights, mean)
  local b, n = bounds:numel() - 1, rows:size(1)
  local at = nacre.range(1, n, {device = rows.device, dtype = "int64"})
  local bag = nacre.searchsorted(bounds:narrow(1, 2, b), at, {right = true})
  local factor = used:to(rows.dtype)
  local count = mean and nacre.zeros(b, all.like(rows))
                         :index_add(1, bag, factor):clamp(1)
  if weights then factor = factor * weights end
  local y = nacre.zeros(b, rows:size(2), all.like(rows))
            :index_add(1, bag, rows * factor:unsqueeze(2))
  return mean and y / count:unsqueeze(2) or y
end

-- input [b x n], or a vector with offsets [b], and weight [n x k] give [b x k].
-- Fails for a row out of 1 to n, offsets that fall, and weights of samples that
-- are not of input's shape or not summed.
define("embedding_bag",
       "input:tensor, weight:tensor, offsets:tensor=nil, " .. NORM
       .. ", mode:sum|mean|max=mean, per_sample_weights:tensor=nil, "
       .. "include_last_offset:bool=false, padding_idx:int=nil",
       "sums, means or maxima of bags of rows of weight; padding_idx is left "
       .. "out",
function(at, w, offsets, max_norm, norm_type, by_frequency, mode, weights, last,
         padding)
  local op = "embedding_bag"
  at = check_rows(op, at, w)
  padding = all.padding_row(op, padding, w:size(1))
  if weights and mode ~= "sum" then
    fail(op, "per_sample_weights need mode \"sum\"")
  end
  if by_frequency and mode == "max" then
    fail(op, "scale_grad_by_freq needs mode \"sum\" or \"mean\"")
  end
  if weights and not weights:is_same_size(at) then
    fail(op, "{per_sample_weights} must have the shape of {input}", nil,
         "input", at, "per_sample_weights", weights)
  end
  local bounds = bag_bounds(op, at, offsets, last)
  limit_norms(w, at, max_norm, norm_type)
  local numbers = at:reshape(-1):to("int64")
  local rows = w[numbers]
  if by_frequency then divide_by_frequency(rows, numbers, w:size(1)) end
  local used = padding and numbers:ne(padding)
               or nacre.ones_like(numbers, {dtype = "bool"})
  if mode == "max" then return bag_maxima(rows, used, bounds) end
  return bag_sums(rows, used, bounds, weights and weights:reshape(-1),
                  mode == "mean")
end)

-- ---- classes

local FEW <const> = 1 << 16        -- elements, which a cache holds

-- [...] of int64 gives [... x num_classes] of int64. Fails for a class out of 1
-- to num_classes.
define("one_hot", "tensor, num_classes:int=-1",
       "classes, from 1, as rows with a 1; by default as many as the largest",
function(t, n)
  local op = "one_hot"
  if t.dtype ~= "int64" then
    fail(op,
         ("classes must be int64, not %s"):format(t.dtype), nil, "tensor", t)
  end
  if t:numel() == 0 and n < 1 then
    fail(op, "num_classes is needed if there are no classes", nil, "tensor", t)
  end
  local low, high = 1, 1
  if t:numel() > 0 then low, high = nacre._bounds(t) end
  if low < 1 then
    fail(op, ("class %d: they count from 1"):format(low), nil, "tensor", t)
  end
  if n == -1 then n = high end
  if n < 1 then
    fail(op, ("num_classes is %d, but must be above 0"):format(n))
  end
  if high > n then
    fail(op, ("class %d is outside the %d classes"):format(high, n), nil,
         "tensor", t)
  end
  local size = t:size()
  size[#size + 1] = n
  if t:numel() * n < FEW then
    return t:new_zeros(size):scatter_(-1, t:unsqueeze(-1), 1)
  end
  -- copies of a zero are written past the cache
  local zero = nacre.zeros({}, {dtype = "int64", device = t.device})
  return zero:expand(size):scatter(-1, t:unsqueeze(-1), 1)
end)

