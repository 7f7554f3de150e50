-- SPDX-License-Identifier: MIT
-- grid_sample.lua - nacre.nn.functional.grid_sample and affine_grid (Jaderberg
-- et al. 2015): images sampled at arbitrary points.
--
-- Along each dimension a point has one, two or four neighbours (taps), each
-- with a weight. The image has a frame of zeros; taps outside the image are in
-- it. Coordinates are those of PyTorch. Float16 and bfloat16 are computed in
-- float32.

local all = ...
all.require "nacre.checks"
local fail, widen, convert_back = all.fail, all.widen, all.convert_back
local check_float, check_dims = all.check_float, all.check_dims
local check_same_dtype = all.check_same_dtype

local define = all.definer "nn.functional."

-- Maps [-1, 1] to 0-based positions in n elements. With corners -1 and 1 are
-- the centers of the first and the last element, otherwise their outer edges.
local function unnormalize(x, n, corners)
  if corners then return (x + 1) / 2 * (n - 1) end
  return ((x + 1) * n - 1) / 2
end

-- Clamps to [0, n - 1]; the gradient is 0 at and beyond the edges.
local function clip(x, n)
  return nacre.where(x:gt(0) & x:lt(n - 1), x, x:detach():clamp(0, n - 1))
end

-- Reflects positions at the edges until they are inside.
local function reflect(x, n, corners)
  local low, span = corners and 0 or -0.5, corners and n - 1 or n
  if span == 0 then return x:detach() * 0 end
  local far = (x - low):abs()
  local times = (far:detach() / span):floor()
  local extra = far - times * span
  x = nacre.where(nacre.fmod(times, 2):eq(0), extra, span - extra) + low
  return nacre.where(x:isnan(), 0, x)           -- an infinite position
end

local paddings = {
  zeros = function(x, n, _, reach) return x:clamp(-reach, n - 1 + reach) end,
  border = clip,
  reflection = function(x, n, corners)
    return clip(reflect(x, n, corners), n)
  end,
}

-- For each mode the taps of positions along a dimension: a list of {position,
-- weight}. No weight means 1.
local taps = {}

function taps.nearest(x, n, outside, corners)
  return {{paddings[outside](x, n, corners, 1):detach():round()}}
end

function taps.bilinear(x, n, outside, corners)
  x = paddings[outside](x, n, corners, 1)
  local low = x:detach():floor()
  local t = x - low
  return {{low, 1 - t}, {low + 1, t}}
end

-- the positions of the taps are padded, not the point
function taps.bicubic(x, n, outside, corners)
  local pad = paddings[outside]
  x = paddings.zeros(x, n, corners, 2 ^ 24)
  local low, list = x:detach():floor(), {}
  for i, weight in ipairs(all.cubic(x - low)) do
    list[i] = {pad(low + (i - 2), n, corners, 2), weight}
  end
  return list
end

-- The sum over all combinations of taps; dims[d] is the list of taps of
-- dimension d. x [n x c x elements] is the framed image, whose spatial sizes
-- are in `size'.
local function combine_taps(x, dims, size)
  local n, c = x:size(1), x:size(2)
  local y
  local function go(d, at, weight)
    if d > #dims then
      local index = (at + 1):unsqueeze(2):expand(n, c, at:size(2))
      local part = x:gather(3, index)
      if weight then part = part * weight:unsqueeze(2) end
      y = y and y + part or part
      return
    end
    for _, tap in ipairs(dims[d]) do
      local w = tap[2]
      local row = (tap[1] + 1):clamp(0, size[d] - 1):to("int64")
      go(d + 1, at and at * size[d] + row or row,
         weight and w and weight * w or w)
    end
  end
  go(1)
  return y
end

-- Checks dtypes and shapes; returns the number of spatial dimensions.
local function checkgrid(op, x, grid)
  check_float(op, x, "input")
  check_dims(op, x, "input", 4, 5)
  check_same_dtype(op, "input", x, "grid", grid)
  local nd = x:dim() - 2
  check_dims(op, grid, "grid", nd + 2)
  if grid:size(-1) ~= nd then
    fail(op, ("the last dimension of {grid} has %d elements, not %d")
             :format(grid:size(-1), nd), nil, "input", x, "grid", grid)
  end
  if grid:size(1) ~= x:size(1) then
    fail(op, ("{input} is a batch of %d, {grid} of %d"):format(x:size(1),
                                                          grid:size(1)),
         nil, "input", x, "grid", grid)
  end
  for d = 3, nd + 2 do
    if x:size(d) == 0 then
      fail(op, "{input} has a dimension of size 0", nil, "input", x)
    end
  end
  return nd
end

-- input [n x c x h x w], grid [n x h' x w' x 2] give [n x c x h' x w']; with
-- volumes there is one more dimension, and grid has (x, y, z). A NaN position
-- counts as -1. Fails for other dimensions, different dtypes and batches; where
-- autocast lets dtypes differ the result is float32.
define("grid_sample",
       "input:tensor, grid:tensor, mode:bilinear|nearest|bicubic=bilinear, "
       .. "padding_mode:zeros|border|reflection=zeros, "
       .. "align_corners:bool=false",
       "images [n x c x h x w], or volumes, at the places (x, y) in grid "
       .. "[n x h' x w' x 2], of which -1 and 1 are the edges",
function(x, grid, mode, outside, corners)
  local nd = checkgrid("grid_sample", x, grid)
  local image, places = widen(x), widen(grid)
  places = nacre.where(places:isnan(), -1, places)
  local n, c, count = x:size(1), x:size(2), 1
  local dims, frame, out, framed = {}, {}, {n, c}, {}
  for d = 1, nd do count = count * grid:size(1 + d) end
  for d = 1, nd do
    local at = places:select(-1, nd + 1 - d):reshape(n, count)
    local size = x:size(2 + d)
    dims[d] = taps[mode](unnormalize(at, size, corners), size, outside,
                         corners)
    frame[2 * d - 1], frame[2 * d], framed[d] = 1, 1, size + 2
    out[2 + d] = grid:size(1 + d)
  end
  local y = combine_taps(image:pad(frame):flatten(3), dims, framed):reshape(out)
  if mode == "nearest" and grid.requires_grad then    -- a gradient of zero
    y = y + places:select(-1, 1):unsqueeze(2):clamp(-1, 1) * 0
  end
  return x.dtype == grid.dtype and convert_back(y, x) or y
end)

-- n values from -1 to 1, or the centers of n equal parts of that interval.
local function steps(n, corners, t)
  if n < 2 then return nacre.zeros(n, all.like(t)) end
  local last = corners and 1 or (n - 1) / n
  return nacre.linspace(-last, last, n, all.like(t))
end

-- theta [n x 2 x 3] gives [n x h x w x 2], theta [n x 3 x 4] gives [n x d x h x
-- w x 3]. Fails unless theta and size match.
define("affine_grid",
       "theta:tensor, size:ints, align_corners:bool=false",
       "sampling grid for grid_sample from affine matrices theta [n x 2 x 3], "
       .. "or [n x 3 x 4] for volumes; size is that of the result",
function(theta, size, corners)
  local op = "affine_grid"
  check_float(op, theta, "theta")
  check_dims(op, theta, "theta", 3)
  if type(size) ~= "table" or #size ~= 4 and #size ~= 5 then
    fail(op, "size must be 4 or 5 numbers: n, c and the spatial sizes")
  end
  local n, nd = size[1], #size - 2
  if theta:size(1) ~= n or theta:size(2) ~= nd or theta:size(3) ~= nd + 1 then
    fail(op, ("{theta} must have the shape [%d x %d x %d] for such a size")
             :format(n, nd, nd + 1), nil, "theta", theta)
  end
  for i = 2, #size do
    if size[i] < 1 then
      fail(op, ("size is %d in dimension %d, but must be above 0")
               :format(size[i], i))
    end
  end
  local t, parts, out = widen(theta), {}, {table.unpack(size, 3)}
  for d = 1, nd do
    local shape = {}
    for i = 1, nd do shape[i] = i == d and out[d] or 1 end
    parts[nd + 1 - d] = steps(out[d], corners, t):reshape(shape):expand(out)
  end
  parts[nd + 1] = parts[1]:ones_like()
  local base = nacre.stack(parts, -1):reshape(-1, nd + 1)
  local y = base:matmul(t:transpose(2, 3))
  table.insert(out, 1, n)
  out[#out + 1] = nd
  return convert_back(y:reshape(out), theta)
end)
