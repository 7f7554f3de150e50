-- SPDX-License-Identifier: MIT
--
-- plot.lua - curves and bars as lines of text.
--
--   plot.chart {series = {{name =, x =, y =}, ...}, ...}   -> list of lines
--   plot.bars({{label =, count =}, ...}, options)          -> list of lines
--
-- A series is lists of numbers, x rising (1, 2, ... if there is none).  In
-- place of y it may have low and high, which span many values at one x.  The
-- points of a series with the field `points' are not joined.
-- What is not finite, or not above 0 on a logarithmic axis, leaves a gap.

local axes = require "nacre.axes"
local canvas = require "nacre.canvas"
local wrap = require "nacre.wrap_lines"

local plot = {}

local usable = axes.usable
local extent, scale = axes.extent, axes.scale

--
-- Series to spans of dots, one for each column
--
local function widen(spans, x, y)
  local s = spans[x]
  if not s then
    spans[x] = {y, y}
  else
    s[1], s[2] = math.min(s[1], y), math.max(s[2], y)
  end
end

-- The line from one point to the next, column by column.
local function segment(spans, x1, y1, x2, y2)
  local first, last = math.floor(x1 + 0.5), math.floor(x2 + 0.5)
  local slope = x2 > x1 and (y2 - y1) / (x2 - x1) or 0
  for x = first, last do
    local from, to = math.max(x1, x - 0.5), math.min(x2, x + 0.5)
    if to >= from then
      widen(spans, x, y1 + (from - x1) * slope)
      widen(spans, x, y1 + (to - x1) * slope)
    end
  end
  if x1 == x2 then
    widen(spans, first, y1)
    widen(spans, first, y2)
  end
end

-- The ends of the line from one range to the next: the ends that face each
-- other, or level where they overlap.
local function bridge(low1, high1, low2, high2)
  if high1 < low2 then return high1, low2 end
  if low1 > high2 then return low1, high2 end
  local y = math.max(low1, low2)
  return y, y
end

local function ranges(spans, s, x, y, o)
  local px, low, high
  for i = 1, #s.low do
    if usable(s.low[i], o.ylog) and usable(s.high[i], o.ylog) and
       usable(s.x[i], o.xlog) then
      local at, a, b = x(s.x[i]), y(s.low[i]), y(s.high[i])
      if px then
        local y1, y2 = bridge(low, high, a, b)
        segment(spans, px, y1, at, y2)
      end
      widen(spans, math.floor(at + 0.5), a)
      widen(spans, math.floor(at + 0.5), b)
      px, low, high = at, a, b
    else
      px = nil
    end
  end
end

local function points(spans, s, x, y, o)
  local px, py
  for i, v in ipairs(s.y) do
    local at = s.x and s.x[i] or i
    if usable(v, o.ylog) and usable(at, o.xlog) then
      local cx, cy = x(at), y(v)
      segment(spans, px or cx, py or cy, cx, cy)
      px, py = cx, cy
    else
      px, py = nil, nil
    end
  end
end

-- Sets the dots of the points of a series.
local function dots(c, s, k, x, y, row, o)
  for i, v in ipairs(s.y) do
    local at = s.x and s.x[i] or i
    if usable(v, o.ylog) and usable(at, o.xlog) then
      c:dot(math.floor(x(at) + 0.5), row(y(v)), k)
    end
  end
end

local function draw(c, o, x, y)
  local _, tall = c:dots()
  local function row(v)
    return tall - 1 - math.min(tall - 1, math.max(0, math.floor(v + 0.5)))
  end
  for k, s in ipairs(o.series) do
    local spans = {}
    if s.points then
      dots(c, s, k, x, y, row, o)
    elseif s.low then
      ranges(spans, s, x, y, o)
    else
      points(spans, s, x, y, o)
    end
    for at, span in next, spans do c:span(at, row(span[2]), row(span[1]), k) end
  end
end

--
-- Frame and labels
--
-- The smallest and largest x, and y, of o.series that can be shown.
function plot.limits(o)
  local xlow, xhigh = extent(o.xlog, function(take)
    for _, s in ipairs(o.series) do
      local n = #(s.y or s.low)
      for i = 1, n do take(s.x and s.x[i] or i) end
    end
  end)
  local ylow, yhigh = extent(o.ylog, function(take)
    for _, s in ipairs(o.series) do
      for _, list in ipairs {s.y or s.low, s.high} do
        for i = 1, #list do take(list[i]) end
      end
    end
  end)
  return xlow, xhigh, ylow, yhigh
end

-- The labels of the y axis {row = text}: the ends and round numbers between
-- them, or the only value; and the row of 0 unless it is an end.
local function ylabels(o, low, high, y, height)
  local function row(v) return height - math.floor(y(v) + 0.5) // o.dy end
  if low == high then return {[row(low)] = o.ytext(low)} end
  local list, zero = {[1] = o.ytext(high), [height] = o.ytext(low)}, nil
  for _, v in ipairs(axes.roundnumbers(low, high, height / 3, o.ylog)) do
    local r, text = row(v), o.ytext(v)
    if r > 2 and r < height - 1 and text ~= list[1] and text ~= list[height]
    then
      list[r] = text
      if v == 0 then zero = r end
    end
  end
  return list, zero
end

-- A line with the labels of the x axis: the ends, and what fits between.
local function xlabels(o, low, high, x, width)
  local line, taken = {}, {}
  local function put(text, at)
    local n = utf8.len(text) or #text
    at = math.max(0, math.min(width - n, at))
    for i = at - 2, at + n + 1 do if taken[i] then return end end
    for i = at, at + n - 1 do taken[i] = true end
    line[#line + 1] = {at = at, text = text, n = n}
  end
  put(o.xtext(low), low == high and x(low) // o.dx // 1 | 0 or 0)
  if low < high then put(o.xtext(high), width) end
  for _, v in ipairs(o.xticks or {}) do
    local text = o.xtext(v)
    put(text, math.floor(x(v) / o.dx + 0.5) - #text // 2)
  end
  table.sort(line, function(a, b) return a.at < b.at end)
  local parts, at = {}, 0
  for _, item in ipairs(line) do
    parts[#parts + 1] = (" "):rep(item.at - at) .. item.text
    at = item.at + item.n
  end
  return table.concat(parts)
end

local function widest(labels)
  local n = 0
  for _, text in next, labels do n = math.max(n, utf8.len(text) or #text) end
  return n
end

local function legend(o, room)
  local parts, each = {}, (room + 3) // #o.series - 3 -- blanks between them
  for k, s in ipairs(o.series) do
    local mark = o.braille and "--" or canvas.mark(k)
    local name = wrap.cut(s.name or "series " .. k, each - #mark - 1)
    if o.color then mark = canvas.paint(mark, k) end
    parts[k] = mark .. " " .. name
  end
  return table.concat(parts, "   ")
end

local function heading(lines, o, margin)
  local room, indent = (o.width or 80) - margin - 2, (" "):rep(margin + 2)
  if o.title then lines[#lines + 1] = indent .. wrap.cut(o.title, room) end
  if #o.series > 1 then lines[#lines + 1] = indent .. legend(o, room) end
end

-- The characters of the line at 0.
local LINES = {[true] = "┄", [false] = "-"}
local FRAMES = {[true] = {"│", "└", "─"}, [false] = {"|", "+", "-"}}

local function framed(o, c, labels, bottom)
  local lines, margin = {}, widest(labels)
  local side, corner, line = table.unpack(FRAMES[o.utf8])
  heading(lines, o, margin)
  for r = 1, c.height do
    local text = labels[r] or ""
    lines[#lines + 1] = wrap.right(text, margin) .. " " .. side ..
                        c:row(r, o.color)
  end
  lines[#lines + 1] = (" "):rep(margin + 1) .. corner .. line:rep(c.width)
  lines[#lines + 1] = (" "):rep(margin + 2) .. bottom
  return lines
end

-- Options: width (of the whole, 80), height (of the curves, 8), title, xlog,
-- ylog, xtext(v) and ytext(v), xticks (a list of values), utf8, color.
-- Series in one colour are drawn with marks, where braille could not tell
-- them apart.  Gives nil if there is nothing to draw.
function plot.chart(options)
  local o = setmetatable({}, {__index = options})
  o.utf8, o.color = options.utf8 == true, options.color == true
  o.braille = o.utf8 and (#o.series == 1 or o.color)
  o.color = o.color and #o.series > 1
  local xlow, xhigh, ylow, yhigh = plot.limits(o)
  if not xlow or not ylow then return nil end
  o.xtext = options.xtext or function(v) return axes.number(v, xlow, xhigh) end
  o.ytext = options.ytext or function(v) return axes.number(v, ylow, yhigh) end
  local height = o.height or 8
  o.dx, o.dy = o.braille and 2 or 1, o.braille and 4 or 1
  local y = scale(ylow, yhigh, o.ylog, height * o.dy)
  local labels, zero = ylabels(o, ylow, yhigh, y, height)
  local width = math.max(10, (o.width or 80) - widest(labels) - 2)
  local c = canvas.new(width, height, o.braille)
  local x = scale(xlow, xhigh, o.xlog, width * o.dx)
  draw(c, o, x, y)
  if zero then c:line(zero, LINES[o.utf8]) end
  return framed(o, c, labels, xlabels(o, xlow, xhigh, x, width))
end

--
-- Bars
--
local EIGHTHS = {"▏", "▎", "▍", "▌", "▋", "▊", "▉"}

local function bar(length, ascii)
  if ascii then return ("#"):rep(math.max(1, math.floor(length + 0.5))) end
  local eighths = math.max(1, math.floor(8 * length + 0.5))
  return ("█"):rep(eighths // 8) .. (EIGHTHS[eighths % 8] or "")
end

-- rows: {label =, count =}.  Options: width (80), utf8, log.  Whatever is not
-- 0 shows a bar.
function plot.bars(rows, o)
  local margin, digits, top = 0, 0, 0
  for _, row in ipairs(rows) do
    margin = math.max(margin, #row.label)
    top = math.max(top, row.count)
  end
  local counts = {}
  for i, row in ipairs(rows) do
    counts[i] = axes.number(row.count, 0, top)
    digits = math.max(digits, #counts[i])
  end
  local room = math.max(8, math.min(60, (o.width or 80) - margin - digits - 5))
  local lines = {}
  for i, row in ipairs(rows) do
    local part = o.log and math.log(row.count + 1) / math.log(top + 1) or
                 row.count / top
    local text = row.count > 0 and bar(room * part, not o.utf8) .. " " or ""
    local pad = (" "):rep(margin - #row.label)
    lines[i] = ("  %s%s  %s%s"):format(row.label, pad, text, counts[i])
  end
  return lines
end

return plot
