-- SPDX-License-Identifier: MIT
-- pooling.lua - max, average, power-average and adaptive pooling of
-- nacre.nn.functional.
--
-- The core pools planes. A signal is a plane with one row. A volume is pooled
-- in two passes: first within each plane, then along the depth, where a plane
-- is one row.
--
-- Inputs are of a float dtype, [n x c x ...] or [c x ...]; the functions fail
-- for other numbers of dimensions, for a dimension of size 0, and for padding
-- of more than half a kernel. Positions count from 1.
local all = ...
all.require("nacre.checks", "nacre.convolution")
local fail, like, image = all.fail, all.like, all.image
local widen, convert_back = all.widen, all.convert_back
local check_float, check_dims = all.check_float, all.check_dims
local several, batched, extended = image.several, image.batched, image.extended
local plane = image.plane

local define = all.definer "nn.functional."

local function check_input(op, nd, x)
  check_dims(op, x, "input", nd + 1, nd + 2)
  check_float(op, x, "input")
  for d = -nd, -1 do
    if x:size(d) == 0 then
      fail(op, "{input} has a dimension of size 0", nil, "input", x)
    end
  end
end

local function checkpadding(op, padding, kernel)
  for i = 1, #kernel do
    if padding[i] > kernel[i] / 2 then
      fail(op, ("padding is %d, at most half of kernel_size %d is allowed")
               :format(padding[i], kernel[i]))
    end
  end
end

-- The kernel, stride and padding as lists with one number for each dimension.
-- The stride defaults to the kernel.
local function pool_arguments(op, nd, x, kernel, stride, padding)
  check_input(op, nd, x)
  kernel = several(op, "kernel_size", kernel, nd, 1)
  if type(stride) == "table" and #stride == 0 then stride = nil end
  stride = several(op, "stride", stride or kernel, nd, 1)
  padding = several(op, "padding", padding, nd, 0)
  checkpadding(op, padding, kernel)
  return kernel, stride, padding
end

-- The parameters of the two passes of a volume: within the planes, and along
-- the depth.
local function plane_part(list) return {list[2], list[3]} end

local function depth_part(list, fill) return {list[1], fill} end

-- ---- max pooling

-- t [n x c x d x h x w]. The position in the volume is found from those of the
-- two passes.
local function maxvolumes(t, kernel, stride, padding, dilation, ceil, indices)
  local n, c, d, area = t:size(1), t:size(2), t:size(3), t:size(4) * t:size(5)
  local y, at = nacre._max_pool(t:reshape(n, c * d, t:size(4), t:size(5)),
                                plane_part(kernel), plane_part(stride),
                                plane_part(padding), plane_part(dilation), ceil)
  local h, w = y:size(3), y:size(4)
  local z, row = nacre._max_pool(y:reshape(n, c, d, h * w),
                                 depth_part(kernel, 1), depth_part(stride, 1),
                                 depth_part(padding, 0),
                                 depth_part(dilation, 1), ceil)
  local size = {n, c, z:size(3), h, w}
  if not indices then return z:reshape(size) end
  row = row:reshape(n, c, size[3] * h * w)
  at = at:reshape(n, c, d * h * w):gather(3, row)
  return z:reshape(size), ((row - 1) // (h * w) * area + at):reshape(size)
end

-- Returns the maxima and, for `indices', their positions in the signal, plane
-- or volume.
local function maxpool(op, nd, x, kernel, stride, padding, dilation, ceil,
                       indices)
  kernel, stride, padding = pool_arguments(op, nd, x, kernel, stride, padding)
  dilation = several(op, "dilation", dilation, nd, 1)
  return batched(x, nd + 2, function(t)
    local y, at
    if nd == 3 then
      y, at = maxvolumes(t, kernel, stride, padding, dilation, ceil, indices)
    else
      if nd == 1 then t = t:unsqueeze(-2) end
      y, at = nacre._max_pool(t, plane(kernel, 1), plane(stride, 1),
                              plane(padding, 0), plane(dilation, 1), ceil)
      if nd == 1 then y, at = y:squeeze(-2), at:squeeze(-2) end
    end
    if indices then return y, at end
    return y
  end)
end

local function definemax(nd, where)
  local name = ("max_pool%dd"):format(nd)
  define(name,
         "input:tensor, kernel_size:ints, stride:ints=nil, padding:ints=0, "
         .. "dilation:ints=1, ceil_mode:bool=false, return_indices:bool=false "
         .. "-> tensor[, positions]",
         "largest element of each window; return_indices: also where it is"
         .. where, function(...) return maxpool(name, nd, ...) end)
end

definemax(1, ", from 1")
definemax(2, " in its plane, from 1, row by row")
definemax(3, " in its volume, from 1, plane by plane and row by row")

-- ---- average pooling

-- The number of windows along a dimension of n elements, and how far the last
-- one reaches past the padded input, with ceil.
local function count_windows(n, k, s, p, ceil)
  local out = (n + 2 * p - k + (ceil and s - 1 or 0)) // s + 1
  if ceil and (out - 1) * s >= n + p then out = out - 1 end
  return out, math.max(0, (out - 1) * s + k - n - 2 * p)
end

-- Sums over windows of planes: a convolution with ones. `extra' zeros follow
-- each dimension.
local function sum_windows(x, kernel, stride, padding, extra)
  local size = x:size()
  local t = x:reshape(size[1] * size[2], 1, size[3], size[4])
  t = extended(extended(t, 3, extra[1]), 4, extra[2])
  local ones = nacre.ones(1, 1, kernel[1], kernel[2], like(x))
  local y = nacre._conv(t, ones, image.geometry(stride, padding, {1, 1}), 1)
  return y:reshape(size[1], size[2], y:size(3), y:size(4))
end

local function sum_pool(x, kernel, stride, padding, extra)
  if x:dim() == 4 then return sum_windows(x, kernel, stride, padding, extra) end
  local n, c, d = x:size(1), x:size(2), x:size(3)
  local y = sum_windows(x:reshape(n, c * d, x:size(4), x:size(5)),
                        plane_part(kernel), plane_part(stride),
                        plane_part(padding), plane_part(extra))
  local h, w = y:size(3), y:size(4)
  y = sum_windows(y:reshape(n, c, d, h * w), depth_part(kernel, 1),
                  depth_part(stride, 1), depth_part(padding, 0),
                  depth_part(extra, 0))
  return y:reshape(n, c, y:size(3), h, w)
end

local function zeros(n)
  local list = {}
  for i = 1, n do list[i] = 0 end
  return list
end

-- The number of elements in each window; q is the padding that counts as
-- elements.
local function count_elements(t, k, s, p, q, extra)
  local size, rest = {1, 1}, {}
  for i = 1, #k do
    size[2 + i], rest[i] = t:size(2 + i) + 2 * q[i], p[i] - q[i]
  end
  return sum_pool(nacre.ones(size, like(t)), k, s, rest, extra)
end

-- sums / counts. Fails if a window does not fit.
local function mean_pool(op, t, k, s, p, ceil, include, divisor)
  local extra, by, partial = {}, 1, false
  for i = 1, #k do
    local out
    out, extra[i] = count_windows(t:size(2 + i), k[i], s[i], p[i], ceil)
    if out < 1 then
      fail(op, ("a window of %d does not fit in %d elements with padding %d")
               :format(k[i], t:size(2 + i), p[i]), nil, "input", t)
    end
    by = by * k[i]
    partial = partial or extra[i] > 0 or p[i] > 0 and not include
  end
  local x = widen(t)
  if partial and not divisor then
    by = count_elements(x, k, s, p, include and p or zeros(#k), extra)
  end
  return convert_back(sum_pool(x, k, s, p, extra) / (divisor or by), t)
end

local function avgpool(op, nd, x, kernel, stride, padding, ceil, include,
                       divisor)
  kernel, stride, padding = pool_arguments(op, nd, x, kernel, stride, padding)
  if divisor == 0 then fail(op, "divisor_override must not be 0") end
  return batched(x, nd + 2, function(t)
    if nd > 1 then
      return mean_pool(op, t, kernel, stride, padding, ceil, include, divisor)
    end
    return mean_pool(op, t:unsqueeze(-2), plane(kernel, 1), plane(stride, 1),
                 plane(padding, 0), ceil, include, divisor):squeeze(-2)
  end)
end

local function defineavg(nd, more)
  local name = ("avg_pool%dd"):format(nd)
  define(name,
         "input:tensor, kernel_size:ints, stride:ints=nil, padding:ints=0, "
         .. "ceil_mode:bool=false, count_include_pad:bool=true" .. more,
         "mean of each window",
         function(...) return avgpool(name, nd, ...) end)
end

defineavg(1, "")
defineavg(2, ", divisor_override:int=nil")
defineavg(3, ", divisor_override:int=nil")

-- ---- power-average pooling

-- The norm of order p of each window: from the mean of the powers, without
-- padding.
local function lp_pool(op, nd, x, p, kernel, stride, ceil)
  if p == 0 then fail(op, "norm_type must not be 0") end
  local n = 1
  for _, k in ipairs(several(op, "kernel_size", kernel, nd, 1)) do n = n * k end
  local y = avgpool(op, nd, x ^ p, kernel, stride, 0, ceil, true) * n
  local is_zero = y:eq(0)     -- where the gradient is 0, not infinite
  return nacre.where(is_zero, 0, nacre.where(is_zero, 1, y) ^ (1 / p))
end

for nd = 1, 3 do
  local name = ("lp_pool%dd"):format(nd)
  define(name,
         "input:tensor, norm_type:num, kernel_size:ints, stride:ints=nil, "
         .. "ceil_mode:bool=false",
         "sum(x^norm_type)^(1/norm_type) of each window",
         function(...) return lp_pool(name, nd, ...) end)
end

-- ---- adaptive pooling: window i of out over n elements is floor(i n / out) to
-- ceil((i + 1) n / out) - 1, as in PyTorch

-- The first and the last 0-based positions of the windows.
local function window_bounds(n, out)
  local i = nacre.arange(out, {device = "cpu"})
  return i * n // out, -(-(i + 1) * n // out) - 1
end

-- The greatest common divisor.
local function gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

-- The number of elements of the largest window: ceil(a + n / out), where a = 1
-- - gcd(n, out) / out is the largest fractional part of i n / out.
local function largest_window(n, out)
  local rest = n % out
  if rest == 0 then return n // out end
  return n // out + (rest == gcd(n, out) and 1 or 2)
end

-- A matrix [out x n] whose product with a vector gives the means.
local function mean_matrix(n, out, like)
  local from, to = window_bounds(n, out)
  from, to = from:unsqueeze(2), to:unsqueeze(2)
  local j = nacre.arange(n, {device = "cpu"})
  local inside = j:ge(from):logical_and(j:le(to))
  return (inside:double() / (to - from + 1)):to(like.device, like.dtype)
end

-- The means by this matrix: of an infinite element the product with 0 is nan,
-- in all windows of its row.
local function means_by_product(x, dim, out)
  local m, size = mean_matrix(x:size(dim), out, x), x:size()
  if dim == -1 then return x:matmul(m:t()) end
  return m:matmul(x:flatten(dim + 1))
         :unflatten(-1, table.move(size, #size + dim + 2, #size, 1, {}))
end

-- The means of windows that are read one by one, shorter ones filled with 0.
local function means_by_windows(x, dim, out)
  local from, to = window_bounds(x:size(dim), out)
  local k = largest_window(x:size(dim), out)
  local at = from:unsqueeze(2) + nacre.arange(k, {device = "cpu"})
  local shape = {out, k}
  for _ = 2, -dim do shape[#shape + 1] = 1 end
  local outside = at:gt(to:unsqueeze(2)):reshape(shape):to(x.device)
  at = at:minimum(to:unsqueeze(2)):flatten():to(x.device)
  shape[2] = 1
  local length = (to - from + 1):reshape(shape):to(x.device, x.dtype)
  return (x:index_select(dim, at + 1):unflatten(dim, {out, k})
           :masked_fill(outside, 0):sum(dim, true) / length):squeeze(dim)
end

-- The means of `out' windows along dim, which counts from the end.
local function meansalong(x, dim, out)
  local n = x:size(dim)
  if n % out == 0 then return x:unflatten(dim, {out, n // out}):mean(dim) end
  if not x.is_cuda then
    local y = means_by_product(x, dim, out)
    if not all.may_be_infinite(y) then return y end
  end
  return means_by_windows(x, dim, out)
end

all.meansalong = meansalong

-- The output sizes; nil keeps the size of the input. Fails if there is no
-- memory for the result.
local function adaptive_sizes(op, nd, x, size)
  check_input(op, nd, x)
  local list = {}
  if type(size) == "table" and (#size > nd or nd == 1 and size[1] == nil) then
    fail(op, ("output_size has %d numbers, not %d"):format(#size, nd))
  end
  for i = 1, nd do
    local n = size
    if type(size) == "table" then n = size[i] or x:size(-nd - 1 + i) end
    list[i] = math.type(n) and math.tointeger(n)
    if not list[i] or list[i] < 1 then
      fail(op, ("output_size must be %d number%s above 0")
               :format(nd, nd == 1 and "" or "s"))
    end
    all.room(op, x, {list[i], 4}, "int64")  -- the positions of the windows
  end
  local whole = x:size()
  all.room(op, x, table.move(list, 1, nd, #whole - nd + 1, whole))
  return list
end

local function adaptiveavg(op, nd, x, size)
  size = adaptive_sizes(op, nd, x, size)
  local one = true
  for i = 1, nd do
    local n = x:size(i - nd - 1)
    if n % size[i] > 0 then all.room(op, x, {size[i], n}, "float64") end
    one = one and size[i] == 1
  end
  if one then
    return x:mean(table.move({-3, -2, -1}, 4 - nd, 3, 1, {}), true)
  end
  local t = widen(x)
  for i = 1, nd do t = meansalong(t, i - nd - 1, size[i]) end
  return convert_back(t, x)
end

-- Repeats the last element of shorter windows along dim, so that all have the
-- same size; this changes no maximum. Returns the tensor, the window size, and
-- the 0-based position in x of each element.
local function equalize_windows(op, x, dim, out)
  local n = x:size(dim)
  local k = largest_window(n, out)
  if k * out == n then return x, k, nacre.arange(n, {device = x.device}) end
  all.room(op, x, {out, k}, "int64")
  local from, to = window_bounds(n, out)
  local at = (from:unsqueeze(2) + nacre.arange(k, {device = "cpu"}))
             :minimum(to:unsqueeze(2)):flatten():to(x.device)
  return x:index_select(dim, at + 1), k, at
end

-- Max pooling of the equalized windows; positions are mapped back to x.
local function adaptivemax(op, nd, x, size, indices)
  size = adaptive_sizes(op, nd, x, size)
  local t, kernel, at = x, {}, {}
  for i = 1, nd do
    t, kernel[i], at[i] = equalize_windows(op, t, i - nd - 1, size[i])
  end
  local y, found = maxpool(op, nd, t, kernel, kernel, 0, 1, false, true)
  if not indices then return y end
  local rest, place, step = found - 1, 1, 1
  for i = nd, 1, -1 do
    place = place + at[i][rest % #at[i] + 1] * step
    rest, step = rest // #at[i], step * x:size(i - nd - 1)
  end
  return y, place
end

for nd = 1, 3 do
  local avg = ("adaptive_avg_pool%dd"):format(nd)
  local max = ("adaptive_max_pool%dd"):format(nd)
  local size = nd == 1 and "output_size:ints" or "output_size:any"
  local keeps = nd == 1 and "" or "; nil keeps one"
  define(avg, "input:tensor, " .. size,
         "means of windows such that the result has a size" .. keeps,
         function(...) return adaptiveavg(avg, nd, ...) end)
  define(max, "input:tensor, " .. size
         .. ", return_indices:bool=false -> tensor[, positions]",
         "largest elements of windows such that the result has a size" .. keeps,
         function(...) return adaptivemax(max, nd, ...) end)
end
