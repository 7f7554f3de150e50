-- SPDX-License-Identifier: MIT
--
-- heatmap.lua - draws a matrix in colours: from dark to light, or from blue
-- over white to red if the values lie on both sides of a centre.

local axes = require "nacre.axes"
local character_image = require "nacre.character_image"
local downsample = require "nacre.downsample"

local heatmap = {}

local LARGEST = 0x1.fffffffffffffp1023

-- Colours at even distances, interpolated between them.
local SEQUENTIAL = {0x440154, 0x46327e, 0x365c8d, 0x277f8e, 0x1fa187,
                    0x4ac16d, 0xa0da39, 0xfde725}
local DIVERGING = {0x2166ac, 0x67a9cf, 0xd1e5f0, 0xf7f7f7, 0xfddbc7,
                   0xef8a62, 0xb2182b}

-- The same from the 256 colours, by index. The nearest to those above would
-- have other hues between them; here lightness rises steadily, or falls on
-- both sides of white.
local INDEXED = {
  [SEQUENTIAL] = {53, 54, 24, 30, 36, 72, 77, 113, 149, 185, 191, 227},
  [DIVERGING] = {25, 32, 74, 110, 117, 153, 195, 231, 224, 217, 210, 203, 167,
                 160, 124},
}

local function mix(map, v)
  local at = math.max(0, math.min(1, v)) * (#map - 1)
  local i = math.min(#map - 1, math.floor(at) + 1)
  local part, a, b = at - (i - 1), map[i], map[i + 1]
  local function channel(shift)
    local x, y = a >> shift & 255, b >> shift & 255
    return math.floor(x + (y - x) * part + 0.5) << shift
  end
  return channel(16) | channel(8) | channel(0)
end

-- The colour for v from 0 to 1.
local function shade(map, v, exact)
  if exact then return mix(map, v) end
  local list = INDEXED[map]
  local i = math.floor(math.max(0, math.min(1, v)) * (#list - 1) + 0.5)
  return character_image.index(list[i + 1])
end

-- The size in characters; `rows' rows of the matrix share a line.
local function layout(high, wide, o, rows)
  local w = math.min(wide, (o.width or 80) - 4, 64)
  local lines = o.height or 20
  local h = math.min(high, lines * rows)
  if wide > w and high > h then -- both are reduced: as it would look on paper
    h = math.max(1, math.min(h, math.floor(w * high / wide / 2 * rows + 0.5)))
    w = math.max(math.min(w, 20), math.min(w,
                 math.floor(h / rows * 2 * wide / high + 0.5)))
  end
  return h, w
end

local function extent(list)
  local low, high
  for _, row in ipairs(list) do
    for _, v in ipairs(row) do
      if v == v then
        low, high = math.min(low or v, v), math.max(high or v, v)
      end
    end
  end
  return low, high
end

-- The position of v between two values, from 0 to 1; their difference may
-- overflow.
local function part(v, low, high)
  if not (high > low) then return v * 0 + 0.5 end
  return (v / 2 - low / 2) / (high / 2 - low / 2)
end

-- "10x4 (mean)": what a cell shows; one element needs no words.
local function cellnote(m, h, w)
  local rows, columns = m:size(1) / h, m:size(2) / w
  if rows == 1 and columns == 1 then return "" end
  local function count(v) return ("%.4g"):format(v < 10 and v or v // 1) end
  local exact = rows % 1 == 0 and columns % 1 == 0
  return ("   one cell = %s%sx%s (mean)"):format(exact and "" or "about ",
                                                 count(rows), count(columns))
end

-- The colours of values from low to high: the least and the largest value that
-- has one, a function color(v), which gives nil for nan, and the map.
local function scale(low, high, center, exact)
  local from, to, map = low, high, SEQUENTIAL
  if not center and low < 0 and high > 0 then center = 0 end
  if center then
    local reach = math.min(math.max(high - center, center - low), LARGEST)
    from, to, map = center - reach, center + reach, DIVERGING
  end
  return from, to, function(v)
    if v ~= v then return nil end
    return shade(map, part(v, from, to), exact)
  end, map
end

local function colored(lines, list, low, high, o, h, w)
  local from, to, color, map = scale(low, high, o.center, o.exact)
  local function pixel(x, y) return color(list[y][x]) end
  for _, line in ipairs(character_image.blocks(pixel, w, h, o.exact)) do
    lines[#lines + 1] = "  " .. line
  end
  local bar = character_image.blocks(function(x)
    return shade(map, (x - 1) / 15, o.exact)
  end, 16, 2, o.exact)[1]
  return ("  %s %s %s"):format(axes.number(from, from, to), bar,
                                axes.number(to, from, to))
end

local function plain(lines, list, low, high, h, w)
  local function value(x, y) return part(list[y][x], low, high) end
  local twice = w <= 30 -- a character is about twice as tall as it is wide
  for _, line in ipairs(character_image.text(value, w, h)) do
    lines[#lines + 1] = "  " .. (twice and line:gsub(".", "%0%0") or line)
  end
  return ("  %s '%s' %s"):format(axes.number(low, low, high),
                                 character_image.ramp,
                                 axes.number(high, low, high))
end

-- A note on elements that are not finite; nil if there are none.
local function note_on(bad)
  return bad > 0 and ("  ! %d not finite, left out"):format(bad) or nil
end

-- The cells of a matrix, at most `most' along a side, for svg_picture.lua:
-- rows, {color =, low =, high =, shape =} and a note on what is left out.
function heatmap.cells(m, most, center)
  local h, w = math.min(m:size(1), most), math.min(m:size(2), most)
  local cells, bad = downsample.cells(m, h, w)
  local list = cells:totable()
  local low, high = extent(list)
  if not low then return nil, "no finite element" end
  local from, to, color = scale(low, high, center, true)
  return list, {color = color, low = from, high = to, shape = m:size()},
         note_on(bad)
end

-- Lines for a matrix.  Options: width (of the whole), height (in lines, 20),
-- center, color (half blocks of 256 colours, or of any if `exact`).
function heatmap.lines(m, o)
  local h, w = layout(m:size(1), m:size(2), o, o.color and 2 or 1)
  local cells, bad = downsample.cells(m, h, w)
  local list, lines = cells:totable(), {}
  local low, high = extent(list)
  if not low then return {"  no finite element"} end
  local legend = o.color and colored(lines, list, low, high, o, h, w) or
                 plain(lines, list, low, high, h, w)
  lines[#lines + 1] = legend .. cellnote(m, h, w)
  lines[#lines + 1] = note_on(bad)
  return lines
end

return heatmap
