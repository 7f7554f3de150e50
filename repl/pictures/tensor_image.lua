-- SPDX-License-Identifier: MIT
--
-- tensor_image.lua - converts tensors to images: which dimension is which,
-- which values are black and white, many images as one sheet. An image here is
-- a uint8 tensor CxHxW on the CPU; C is 1 (grey), 2 (grey, alpha), 3 or 4.

local downsample = require "nacre.downsample"
local facts = require "nacre.tensor_facts"

local nacre = package.loaded.nacre or _G.nacre

local image = {}

local LARGEST, SHEET = 1024, 64 -- pixels along a side; images on a sheet

local function iscolor(n) return n == 1 or n == 3 or n == 4 end

-- Are the channels the last dimension? Four floats are more likely a width.
local function channelslast(t)
  local n = t:size(-1)
  return n == 1 or n == 3 or n == 4 and t.dtype == "uint8"
end

-- As images NxCxHxW, or nil and why not.
local function batch(t)
  local n = t:dim()
  if n < 2 or n > 4 or t:numel() == 0 then
    return nil, "an image is HxW, CxHxW or HxWxC, many are NxCxHxW; this is " ..
                facts.kind(t)
  end
  if n == 2 then return t[{nacre.newaxis, nacre.newaxis}] end
  if n == 3 then
    if iscolor(t:size(1)) then return t:unsqueeze(1) end
    if channelslast(t) then return t:permute(3, 1, 2):unsqueeze(1) end
    return t:unsqueeze(2) -- as many grey ones as there are channels
  end
  if iscolor(t:size(2)) then return t end
  if channelslast(t) then return t:permute(1, 4, 2, 3) end
  return nil, ("%s has %d channels, not 1, 3 or 4: show one image, t[1]")
              :format(facts.kind(t), t:size(2))
end

-- Thins an image to at most `most' pixels a side.
local function small(t, most)
  local h, w = t:size(-2), t:size(-1)
  local step = math.max(1, math.ceil(math.max(h, w) / most))
  return step == 1 and t or t[{{}, {}, {1, h, step}, {1, w, step}}]
end

-- The values shown black and white, and a note on values that are not finite.
local function range(t)
  if t.dtype == "bool" then return 0, 1, "" end
  local x, bad, thinned = downsample.values(t)
  if x:numel() == 0 then return 0, 1, ", no finite value" end
  local low, high = x:min():item(), x:max():item()
  local usual = t.dtype:find "float" and 1 or 255
  local note = bad == 0 and "" or thinned and ", some not finite" or
               (", %d not finite"):format(bad)
  if low >= 0 and high <= usual then return 0, usual, note end
  return low, high, note
end

local function text(v)
  return v % 1 == 0 and math.abs(v) < 1e7 and ("%d"):format(v) or
         ("%.4g"):format(v)
end

-- Converts values from low to high to bytes; nan is black.
local function bytes(t, low, high)
  if low == 0 and high == 255 and t.dtype == "uint8" then return t end
  if t.dtype ~= "float64" then t = t:to "float32" end
  local span = high > low and high - low or 1
  local x = (t - low) / span
  x = nacre.where(x:isnan(), 0.0, x):clamp(0, 1)
  return (x * 255):round():to "uint8"
end

-- N images as one, side by side with a line between them.
local function sheet(t)
  local n, c, h, w = table.unpack(t:size())
  local across = math.ceil(math.sqrt(n * h / w))
  across = math.max(1, math.min(n, across))
  local down = math.ceil(n / across)
  local y = nacre.zeros(c, down * (h + 1) - 1, across * (w + 1) - 1,
                        {dtype = "uint8"})
  for i = 0, n - 1 do
    local top, left = i // across * (h + 1), i % across * (w + 1)
    y[{{}, {top + 1, top + h}, {left + 1, left + w}}] = t[i + 1]
  end
  return y
end

local NAMES = {"grey", "grey with alpha", "rgb", "rgba"}

-- The image of a tensor, no larger than a screen unless `whole', and a text
-- "640x480 rgb, 0..255"; or nil and why there is none.
function image.of(t, whole)
  local images, why = batch(facts.computable(t))
  if not images then return nil, why end
  local n, all = images:size(1), images:size(1)
  if n > SHEET then n, images = SHEET, images:narrow(1, 1, SHEET) end
  local low, high, bad = range(images)
  local h, w = images:size(3), images:size(4)
  if not whole then
    images = small(images, n == 1 and LARGEST or
                   math.max(16, LARGEST // math.ceil(math.sqrt(n))))
  end
  images = bytes(images:detach(), low, high):cpu()
  local note = ("%dx%d %s, %s..%s%s"):format(w, h, NAMES[images:size(2)],
    text(low), text(high), high > 1 and high ~= 255 and
    " mapped to 0..255" or low < 0 and " mapped to 0..255" or "") .. bad
  if all == 1 then return images[1]:contiguous(), note end
  note = (n < all and "the first %d of %d" or "%d"):format(n, all) ..
         " images of " .. note
  return sheet(images), note
end

-- An image as a function pixel(x, y) of h x w means (or repeated pixels),
-- for character_image.lua; alpha is shown over black.
local function planes(img, h, w)
  local list = {}
  for c = 1, img:size(1) do
    local m = img[c]
    local y, x = math.min(h, m:size(1)), math.min(w, m:size(2))
    list[c] = downsample.cells(m, y, x):totable()
  end
  return list
end

function image.pixels(img, h, w)
  local list = planes(img, h, w)
  local rows, columns = #list[1], #list[1][1]
  local n, color = #list, #list >= 3
  local alpha = n % 2 == 0 and list[n]
  return function(x, y)
    local i = math.min(rows, (y - 1) * rows // h + 1)
    local j = math.min(columns, (x - 1) * columns // w + 1)
    local opaque = alpha and alpha[i][j] / 255 or 1
    local function channel(c)
      return math.floor(list[color and c or 1][i][j] * opaque + 0.5)
    end
    return channel(1), channel(2), channel(3)
  end
end

return image
