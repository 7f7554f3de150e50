-- SPDX-License-Identifier: MIT
--
-- character_image.lua - draws pixels with characters: two pixels in a half
-- block if the terminal has colours, else one as a character of a ramp.

local character_image = {}

character_image.ramp = " .:-=+*#%@"

local function channels(rgb)
  return rgb >> 16 & 255, rgb >> 8 & 255, rgb & 255
end

function character_image.rgb(r, g, b) return r << 16 | g << 8 | b end

-- The closest colour of the 256: a cube of 6x6x6 and 24 greys.
local STEPS = {0, 95, 135, 175, 215, 255}

local function step(v)
  local best = 1
  for i = 2, 6 do
    if math.abs(STEPS[i] - v) < math.abs(STEPS[best] - v) then best = i end
  end
  return best
end

local function distance(r, g, b, r2, g2, b2)
  return (r - r2) ^ 2 + (g - g2) ^ 2 + (b - b2) ^ 2
end

local function indexed(rgb)
  local r, g, b = channels(rgb)
  local i, j, k = step(r), step(g), step(b)
  local grey = math.max(0, math.min(23, ((r + g + b) // 3 - 3) // 10))
  local v = 8 + 10 * grey
  if distance(r, g, b, v, v, v) <
     distance(r, g, b, STEPS[i], STEPS[j], STEPS[k]) then
    return 232 + grey
  end
  return 16 + 36 * (i - 1) + 6 * (j - 1) + k - 1
end

-- A pixel given as the index of one of the 256 colours.
local INDEX = 1 << 24
function character_image.index(i) return INDEX | i end

-- "38;2;255;0;0": a colour of the foreground (38) or the background (48)
local function code(ground, rgb, exact)
  if rgb & INDEX ~= 0 then return ("%d;5;%d"):format(ground, rgb & 255) end
  if exact then return ("%d;2;%d;%d;%d"):format(ground, channels(rgb)) end
  return ("%d;5;%d"):format(ground, indexed(rgb))
end

-- The glyph of two pixels, one above the other, and its colours.
local function pair(top, bottom, exact)
  if top and bottom then
    return "▀", code(38, top, exact) .. ";" .. code(48, bottom, exact)
  elseif top then
    return "▀", code(38, top, exact)
  elseif bottom then
    return "▄", code(38, bottom, exact)
  end
  return " ", ""
end

-- Lines of half blocks. pixel(x, y), counted from 1, returns 0xRRGGBB, an
-- index, or nil for an empty pixel; `exact': the terminal has all colours, not
-- only 256.
function character_image.blocks(pixel, width, height, exact)
  local lines = {}
  for y = 1, height, 2 do
    local parts, now = {}, ""
    for x = 1, width do
      local glyph, colors = pair(pixel(x, y),
                                 y < height and pixel(x, y + 1) or nil, exact)
      if colors ~= now then
        parts[#parts + 1] = "\27[0" .. (colors ~= "" and ";" or "") .. colors ..
                            "m"
        now = colors
      end
      parts[#parts + 1] = glyph
    end
    if now ~= "" then parts[#parts + 1] = "\27[0m" end
    lines[#lines + 1] = table.concat(parts)
  end
  return lines
end

-- The character for a value from 0 to 1; "!" for what is none.
function character_image.char(v)
  if v ~= v then return "!" end
  local n = #character_image.ramp
  local i = math.floor(v * (n - 1) + 0.5) + 1
  return character_image.ramp:sub(i, i)
end

-- Lines of characters. value(x, y) is from 0 to 1, or nan.
function character_image.text(value, width, height)
  local lines = {}
  for y = 1, height do
    local parts = {}
    for x = 1, width do parts[x] = character_image.char(value(x, y)) end
    lines[y] = table.concat(parts)
  end
  return lines
end

-- A framed map. share(x, y) is from 0 to 1; what is not 0 has a mark.
function character_image.map(share, width, height)
  local marks = #character_image.ramp - 2
  local lines = character_image.text(function(x, y)
    local v = share(x, y)
    return v > 0 and (1 + math.min(v, 1) * marks // 1) / (marks + 1) or 0
  end, width, height)
  for i, line in ipairs(lines) do lines[i] = "|" .. line .. "|" end
  return lines
end

-- Does the terminal take any colour?
function character_image.exact()
  local depth = os.getenv "COLORTERM"
  return depth == "truecolor" or depth == "24bit"
end

return character_image
