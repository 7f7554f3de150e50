-- SPDX-License-Identifier: MIT
--
-- sixel.lua - encodes an image in DEC's sixel format: bands six pixels high,
-- each with a row of columns for every colour in it. The palette is a cube of
-- 6x6x6 colours with ordered dithering.

local sixel = {}

-- Bayer's matrix: thresholds from 0 to 15 of 16.
local BAYER = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}}

-- The step, 0 to 5, of a channel at a place.
local function level(v, x, y)
  local threshold = (BAYER[y % 4 + 1][x % 4 + 1] + 0.5) / 16
  return math.min(5, math.floor(v * 5 / 255 + threshold))
end

local function palette(parts)
  for i = 0, 215 do
    parts[#parts + 1] = ("#%d;2;%d;%d;%d"):format(i, i // 36 * 20,
                                                  i // 6 % 6 * 20, i % 6 * 20)
  end
end

-- "!12@" for twelve of a character
local function run(parts, char, n)
  parts[#parts + 1] = n > 3 and ("!%d%s"):format(n, char) or char:rep(n)
end

-- The bits of each colour in a band, by column.
local function band(pixel, width, top, height)
  local colors, order = {}, {}
  for y = top, math.min(top + 5, height) do
    for x = 1, width do
      local r, g, b = pixel(x, y)
      local c = 36 * level(r, x, y) + 6 * level(g, x, y) + level(b, x, y)
      if not colors[c] then
        colors[c] = {}
        order[#order + 1] = c
      end
      colors[c][x] = (colors[c][x] or 0) | 1 << (y - top)
    end
  end
  return colors, order
end

-- The columns of one colour, without empty ones at the end.
local function columns(parts, bits, width)
  local char, n = nil, 0
  for x = 1, width do
    local now = string.char(63 + (bits[x] or 0))
    if now ~= char then
      if n > 0 then run(parts, char, n) end
      char, n = now, 0
    end
    n = n + 1
  end
  if char ~= "?" then run(parts, char, n) end
end

-- pixel(x, y), counted from 1, gives red, green, blue from 0 to 255.
function sixel.encode(pixel, width, height)
  local parts = {"\27Pq", ('"1;1;%d;%d'):format(width, height)}
  palette(parts)
  for top = 1, height, 6 do
    local colors, order = band(pixel, width, top, height)
    table.sort(order)
    for i, c in ipairs(order) do
      parts[#parts + 1] = (i > 1 and "$" or "") .. "#" .. c
      columns(parts, colors[c], width)
    end
    parts[#parts + 1] = "-"
  end
  parts[#parts + 1] = "\27\\"
  return table.concat(parts)
end

return sixel
