-- SPDX-License-Identifier: MIT
-- image_grids.lua - several images as one, named as in torchvision.utils.

local all = ...
local define, fail = all.define, all.fail

local OPTIONS = "nrow:int=8, padding:int=2, normalize:bool=false, "
                .. "value_range:nums=nil, scale_each:bool=false, "
                .. "pad_value:num=0"

-- The images as [n x c x h x w], grey ones with three channels.
local function as_batch(op, images)
  if type(images) == "table" then
    if #images == 0 then fail(op, "the list of images is empty") end
    images = nacre.stack(images)
  end
  if not nacre.is_tensor(images) then
    fail(op, "images are a tensor or a list of them, not a " .. type(images))
  end
  local nd = images:dim()
  if nd < 2 or nd > 4 then
    fail(op, ("images have 2 to 4 dimensions, not %d"):format(nd),
         "[h x w], [c x h x w] or [n x c x h x w]")
  end
  if nd == 2 then images = images:unsqueeze(1) end
  if images:dim() == 3 then images = images:unsqueeze(1) end
  return images:size(2) == 1 and images:expand(-1, 3, -1, -1) or images
end

-- Brings values to 0 .. 1.
local function normalized(images, range)
  local low, high = range and range[1], range and range[2]
  if not range then low, high = images:min():item(), images:max():item() end
  return (images:clamp(low, high) - low) / math.max(high - low, 1e-5)
end

local function make_grid(op, images, nrow, padding, normalize, range, each,
                         pad_value)
  local x = as_batch(op, images)
  if nrow < 1 or padding < 0 then
    fail(op, "nrow must be positive, padding not negative")
  end
  if range and (type(range) ~= "table" or #range ~= 2) then
    fail(op, "value_range is two numbers")
  end
  if normalize and each then
    local list = {}
    for i = 1, x:size(1) do list[i] = normalized(x[i]:float(), range) end
    x = nacre.stack(list)
  elseif normalize then x = normalized(x:float(), range) end
  local n, c, h, w = x:size(1), x:size(2), x:size(3) + padding,
                     x:size(4) + padding
  if n == 1 then return x[1] end
  local columns = math.min(nrow, n)
  local grid = nacre.full({c, (n + columns - 1) // columns * h + padding,
                           columns * w + padding}, pad_value,
                          {dtype = x.dtype, device = x.device})
  for i = 0, n - 1 do
    grid:narrow(2, i // columns * h + padding + 1, h - padding)
        :narrow(3, i % columns * w + padding + 1, w - padding):copy_(x[i + 1])
  end
  return grid
end

define("utils.make_grid", "tensor:any, " .. OPTIONS,
       "several images as one, nrow in a row, with padding between",
function(images, ...)
  return nacre.no_grad(make_grid, "utils.make_grid", images, ...)
end)

define("utils.save_image", "tensor:any, fp:text, " .. OPTIONS .. " -> ",
       "writes several images, from 0 to 1, as one PNG file",
function(images, path, ...)
  local grid = nacre.no_grad(make_grid, "utils.save_image", images, ...)
  nacre.png(path, grid:clamp(0, 1))
end)
