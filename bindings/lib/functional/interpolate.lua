-- SPDX-License-Identifier: MIT
-- interpolate.lua - nacre.nn.functional.interpolate; pixels and channels.
--
-- Each dimension is resized separately. Coordinates and their rounding are
-- those of PyTorch. Float16 and bfloat16 are computed in float32.

local all = ...
all.require "nacre.checks"
local fail, widen, convert_back = all.fail, all.widen, all.convert_back
local check_float, check_dims = all.check_float, all.check_dims

local define = all.definer "nn.functional."

-- The positions 0 to out - 1 of a result, as float64.
local function positions(out)
  return nacre.arange(out, {dtype = "float64", device = "cpu"})
end

-- The elements of x at the 0-based positions along dim; positions outside are
-- clamped to the edge.
local function select_clamped(x, dim, at)
  local ix = {}
  for d = 1, dim - 1 do ix[d] = {} end
  ix[dim] = at:clamp(0, x:size(dim) - 1):long():to(x.device) + 1
  return x[ix]
end

-- The four weights of cubic convolution (Keys 1981, a = -0.75) at fraction t
-- between the second and the third element.
local function cubic(t)
  local a = -0.75
  local function near(d) return ((a + 2) * d - (a + 3)) * d * d + 1 end
  local function far(d) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a end
  return {far(t + 1), near(t), near(1 - t), far(2 - t)}
end

all.cubic = cubic

local function linear(t) return {1 - t, t} end

-- The weights w of the `out' elements along dim, in a shape that multiplies x.
-- On the CPU they are repeated along the other dimensions of an image, where
-- there are several: loops over whole images are faster than over their rows.
local function beside(w, x, dim, out)
  local one, full = {}, {}
  local few = x:size(1) * x:size(2) < 8 or x.is_cuda
  for d = few and dim or 3, x:dim() do
    one[#one + 1] = d == dim and out or 1
    full[#full + 1] = d == dim and out or x:size(d)
  end
  w = w:to(x.device, x.dtype):reshape(one)
  return few and w or w:expand(full):contiguous()
end

-- The elements of x at the positions along dim, with 0 in place of those whose
-- weight is 0, as 0 * inf is nan. nil if all weights are 0.
local function select_weighted(x, dim, at, weight)
  local unread = weight:eq(0):nonzero():flatten()
  if unread:numel() == weight:numel() then return nil end
  local part = select_clamped(x, dim, at)
  if unread:numel() > 0 then            -- their gradients are 0 anyway
    nacre.no_grad(part.index_fill_, part, dim, unread:to(x.device), 0)
  end
  return part
end

-- Resizes one dimension to `out': each element is a sum of `taps' neighbours of
-- its position, weighted by weights(fraction).
local function resample(x, dim, out, scale, corners, taps, weights)
  local place = corners and positions(out) * scale or
                (positions(out) + 0.5) * scale - 0.5
  if taps == 2 then place = place:clamp(0) end
  local low = place:floor():clamp(nil, x:size(dim) - 1)
  local share = weights(place - low)
  local y
  for k = 1, taps do
    local w = beside(share[k], x, dim, out)
    local part = select_weighted(x, dim, low + (k - taps // 2), share[k])
    if part then y = y and y:addcmul_(part, w) or part:mul_(w) end
  end
  return y
end

local function nearest(shift)
  return function(x, dim, out, scale)
    return select_clamped(x, dim, ((positions(out) + shift) * scale):floor())
  end
end

local function linear_resize(x, dim, out, scale, corners)
  return resample(x, dim, out, scale, corners, 2, linear)
end

local function cubic_resize(x, dim, out, scale, corners)
  return resample(x, dim, out, scale, corners, 4, cubic)
end

local function area(x, dim, out)
  return all.meansalong(x, dim > 0 and dim - x:dim() - 1 or dim, out)
end

-- The function that resizes a dimension, and the number of spatial dimensions
-- that the mode is for; only modes with such a number have align_corners.
local modes = {nearest = {nearest(0)}, ["nearest-exact"] = {nearest(0.5)},
               area = {area}, linear = {linear_resize, 1},
               bilinear = {linear_resize, 2}, trilinear = {linear_resize, 3},
               bicubic = {cubic_resize, 2}}

-- The function of a mode. Fails if the mode does not suit x.
local function checkmode(op, x, mode, corners)
  local nd, kind = x:dim() - 2, modes[mode]
  if not kind then
    fail(op, ("mode must be nearest, nearest-exact, area, linear, bilinear, "
              .. "trilinear or bicubic, not '%s'"):format(mode))
  end
  if kind[2] and kind[2] ~= nd then
    fail(op, ("mode %s is for %d dimensions after the channels, not %d")
             :format(mode, kind[2], nd), nil, "input", x)
  end
  if not kind[2] and corners ~= nil then
    fail(op, "align_corners is for the linear modes and bicubic")
  end
  return kind[1]
end

-- The requested spatial sizes, and for each the distance in x between
-- neighbouring elements of the result. Fails if there is no memory for the
-- result.
local function output_sizes(op, x, size, factor, recompute)
  local outs, scales, nd = {}, {}, x:dim() - 2
  for i = 1, nd do
    local n, given = x:size(2 + i), size or factor
    if type(given) == "table" then given = given[i] end
    local ok = type(given) == "number" and given > 0 and given < math.huge
    if not ok or (size and not math.tointeger(given)) then
      fail(op, ("needs %d %s above 0 as %s"):format(nd, size and "integers" or
          "numbers", size and "size" or "scale_factor"))
    end
    outs[i] = size and math.tointeger(given) or math.floor(n * given)
    if n < 1 or outs[i] < 1 then
      fail(op, "{input} and result must not be empty", nil, "input", x)
    end
    if not math.tointeger(outs[i]) then
      fail(op, ("a result of %g elements along dim %d is too large"):format(outs[i], 2 + i))
    end
    scales[i] = (size or recompute) and n / outs[i] or 1 / given
  end
  for _, n in ipairs(outs) do all.room(op, x, {n}, "float64") end
  all.room(op, x, {x:size(1), x:size(2), table.unpack(outs)})
  return outs, scales
end

-- [n x c x ...] of a float dtype with 1 to 3 spatial dimensions. Fails unless
-- exactly one of size and scale_factor is given. With recompute_scale_factor
-- the factor is that of the sizes, which are whole.
define("interpolate",
       "input:tensor, size:any=nil, scale_factor:any=nil, "
       .. "mode:text|nearest|nearest-exact|area|linear|bilinear|bicubic|"
       .. "trilinear=nearest, align_corners:bool=nil, "
       .. "recompute_scale_factor:bool=nil",
       "images [n x c x ...] in another size, by mode nearest, nearest-exact, "
       .. "area, linear (one dimension), bilinear or bicubic (two), trilinear "
       .. "(three)",
function(x, size, factor, mode, corners, recompute)
  local op = "interpolate"
  check_float(op, x, "input")
  check_dims(op, x, "input", 3, 4, 5)
  local resize = checkmode(op, x, mode, corners)
  if (size == nil) == (factor == nil) then
    fail(op, "needs either size or scale_factor")
  end
  if size and recompute then
    fail(op, "recompute_scale_factor is for scale_factor, not for size")
  end
  local outs, scales = output_sizes(op, x, size, factor, recompute)
  local y = widen(x)
  for i, out in ipairs(outs) do
    local n, scale = x:size(2 + i), scales[i]
    if corners then scale = out > 1 and (n - 1) / (out - 1) or 0 end
    y = resize(y, 2 + i, out, scale, corners)
  end
  return convert_back(y, x)
end)

all.alias("nn.functional.upsample",
          all.functions.nn.functional.interpolate)

-- ---- pixels and channels

local function check_factor(op, name, r)
  if r > 1 << 30 then fail(op, ("%s is too large: %d"):format(name, r)) end
  if r < 1 then
    fail(op, ("%s is %d, but must be 1 or more"):format(name, r))
  end
end

-- [... x c*r*r x h x w] gives [... x c x h*r x w*r] (Shi et al. 2016). Fails
-- for fewer than 3 dimensions and for channels that are not a multiple of r*r.
define("pixel_shuffle", "input:tensor, upscale_factor:int",
       "channels [c*r*r x h x w] become pixels [c x h*r x w*r]",
function(x, r)
  local op, n = "pixel_shuffle", x:dim()
  check_factor(op, "upscale_factor", r)
  all.check_min_dims(op, x, "input", 3)
  if x:size(-3) % (r * r) ~= 0 then
    fail(op, ("{input} must have a multiple of %d channels"):format(r * r), nil,
         "input", x)
  end
  local c, h, w = x:size(-3) // (r * r), x:size(-2), x:size(-1)
  local size, batch = x:size(), 1
  for d = 1, n - 3 do batch = batch * size[d] end
  size[n - 2], size[n - 1], size[n] = c, h * r, w * r
  return x:reshape(batch, c, r, r, h, w):permute(1, 2, 5, 3, 6, 4):reshape(size)
end)

-- [... x c x h*r x w*r] gives [... x c*r*r x h x w]. Fails for fewer than 3
-- dimensions and for sizes that are not a multiple of r.
define("pixel_unshuffle", "input:tensor, downscale_factor:int",
       "pixels [c x h*r x w*r] become channels [c*r*r x h x w]",
function(x, r)
  local op, n = "pixel_unshuffle", x:dim()
  check_factor(op, "downscale_factor", r)
  all.check_min_dims(op, x, "input", 3)
  if x:size(-2) % r ~= 0 or x:size(-1) % r ~= 0 then
    fail(op, ("height and width of {input} must be multiples of %d"):format(r),
         nil, "input", x)
  end
  local c, h, w = x:size(-3), x:size(-2) // r, x:size(-1) // r
  local size, batch = x:size(), 1
  for d = 1, n - 3 do batch = batch * size[d] end
  size[n - 2], size[n - 1], size[n] = c * r * r, h, w
  return x:reshape(batch, c, h, r, w, r):permute(1, 2, 4, 6, 3, 5):reshape(size)
end)

-- [n x c x ...] (Zhang et al. 2018). Fails for fewer than 3 dimensions and for
-- channels that are not a multiple of groups.
define("channel_shuffle", "input:tensor, groups:int",
       "channels of the groups in turn: channel j of group i becomes channel i "
       .. "of group j",
function(x, groups)
  local op = "channel_shuffle"
  check_factor(op, "groups", groups)
  all.check_min_dims(op, x, "input", 3)
  if x:size(2) % groups ~= 0 then
    fail(op, ("{input} must have a multiple of %d channels"):format(groups),
         nil, "input", x)
  end
  return x:unflatten(2, {groups, x:size(2) // groups}):transpose(2, 3)
         :flatten(2, 3)
end)
