-- SPDX-License-Identifier: MIT
-- unpool.lua - max_unpool1d, 2d and 3d of nacre.nn.functional: what max pooling
-- took goes back to where it was, the rest is 0.
local all = ...
all.require("nacre.checks", "nacre.convolution")
local fail, image = all.fail, all.image
local several = image.several

local define = all.definer "nn.functional."

-- The size of a dimension of n elements before pooling: `given', or the least
-- one that pools to n. Fails for a given one that does not pool to n.
local function unpooled_size(op, n, k, s, p, given)
  local size = (n - 1) * s - 2 * p + k
  if not given then return size end
  if given <= size - s or given >= size + s then
    fail(op, ("output_size is %d, but must be above %d and below %d")
             :format(given, size - s, size + s))
  end
  return given
end

-- [n x c x ...], positions from 1 in the last dimensions as max_pool gives
-- them. Fails for a position outside the result.
local function unpool(op, nd, x, at, kernel, stride, padding, size)
  all.check_dims(op, x, "input", nd + 1, nd + 2)
  if at.dtype ~= "int64" or not at:is_same_size(x) then
    fail(op, "{indices} must be int64 and of the shape of {input}", nil,
         "input", x, "indices", at)
  end
  kernel = several(op, "kernel_size", kernel, nd, 1)
  stride = several(op, "stride", stride or kernel, nd, 1)
  padding = several(op, "padding", padding, nd, 0)
  if math.type(size) then size = {size} end
  size = size and table.move(size, math.max(1, #size - nd + 1), #size, 1, {})
  local out, n = {}, 1
  for i = 1, nd do
    out[i] = unpooled_size(op, x:size(i - nd - 1), kernel[i], stride[i],
                           padding[i], size and size[i])
    n = n * out[i]
  end
  local whole = x:size()
  table.move(out, 1, nd, #whole - nd + 1, whole)
  all.room(op, x, whole)
  local flat = x:flatten(-nd)
  local zeros = table.move(whole, 1, #whole - nd, 1, {})
  zeros[#zeros + 1] = n
  return nacre.zeros(zeros, all.like(x)):scatter(-1, at:flatten(-nd), flat)
         :reshape(whole)
end

for nd = 1, 3 do
  local name = ("max_unpool%dd"):format(nd)
  define(name,
         "input:tensor, indices:tensor, kernel_size:ints, stride:ints=nil, "
         .. "padding:ints=0, output_size:ints=nil",
         ("elements at their positions before max_pool%dd, 0 elsewhere")
         :format(nd), function(...) return unpool(name, nd, ...) end)
end
