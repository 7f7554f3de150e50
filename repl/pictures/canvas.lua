-- SPDX-License-Identifier: MIT
--
-- canvas.lua - a rectangle of character cells to draw dots on.  A cell is
-- 2x4 dots in braille, or one dot that is shown as a mark.  Dots are counted
-- from 0, from the left and from the top.

local canvas = {}
canvas.__index = canvas

-- The bit of a dot in its cell, by row and column.
local DOTS = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}
-- How series are distinguished: marks, or terminal colours.
canvas.marks = {"*", "+", "o", "x", "#", "@"}
canvas.colors = {"36", "33", "35", "32", "31", "34"}

function canvas.new(width, height, braille)
  local c = {width = width, height = height, cell = {}, owner = {}}
  c.dx, c.dy = braille and 2 or 1, braille and 4 or 1
  for i = 1, width * height do c.cell[i] = 0 end
  return setmetatable(c, canvas)
end

-- How many dots there are across, and down.
function canvas:dots()
  return self.width * self.dx, self.height * self.dy
end

-- Sets a dot of a series (a number). A cell shared by two series belongs to
-- the later one.
function canvas:dot(x, y, series)
  local i = (y // self.dy) * self.width + x // self.dx + 1
  self.cell[i] = self.cell[i] | DOTS[y % self.dy + 1][x % self.dx + 1]
  self.owner[i] = series
end

-- The dots of a column from one row to another, both included.
function canvas:span(x, top, bottom, series)
  for y = top, bottom do self:dot(x, y, series) end
end

-- A row of cells, from 1, whose empty cells show a line.
function canvas:line(row, glyph)
  self.ruled, self.rule = row, glyph
end

local function pick(list, i) return list[(i - 1) % #list + 1] end

function canvas.paint(text, series)
  return ("\27[%sm%s\27[0m"):format(pick(canvas.colors, series), text)
end

function canvas.mark(series) return pick(canvas.marks, series) end

function canvas:glyph(i)
  if self.cell[i] == 0 then -- not U+2800, which some fonts lack
    return self.ruled == (i - 1) // self.width + 1 and self.rule or " "
  end
  if self.dx == 2 then return utf8.char(0x2800 + self.cell[i]) end
  return canvas.mark(self.owner[i])
end

-- The text of a row of cells, from 1, without trailing blanks.
function canvas:row(r, color)
  local parts = {}
  for i = (r - 1) * self.width + 1, r * self.width do
    local glyph = self:glyph(i)
    local owner = color and self.cell[i] > 0 and self.owner[i]
    parts[#parts + 1] = owner and canvas.paint(glyph, owner) or glyph
  end
  return (table.concat(parts):gsub(" +$", ""))
end

return canvas
