-- SPDX-License-Identifier: MIT
--
-- svg_picture.lua - curves, bars and coloured matrices as the text of an SVG
-- file. Sizes are in pixels.
--
--   svg.chart {series =, title =, xlog =, ylog =, width =, height =}
--   svg.bars(rows, {title =, log =, width =, height =})
--   svg.cells(rows, {color =, low =, high =, title =, width =, height =})
--
-- Series and rows are those of plot.lua and heatmap.lua. Gives nil where there
-- is nothing to draw.

local axes = require "nacre.axes"
local plot = require "nacre.plot"

local svg = {}

local COLORS = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                "#56b4e9"}
local TOP <const>, RIGHT <const>, BOTTOM <const> = 20, 24, 36
local LETTER <const> = 7      -- the width of one in labels, about

local function color(k) return COLORS[(k - 1) % #COLORS + 1] end

local ENTITIES = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
                  ['"'] = "&quot;"}

-- Text for an SVG file, which holds no control characters and only UTF-8.
local function escaped(s)
  if not utf8.len(s) then s = s:gsub("[\128-\255]", "?") end
  return (s:gsub("%c", " "):gsub('[&<>"]', ENTITIES))
end

-- A coordinate with two decimals at most.
local function at(v) return (("%.2f"):format(v):gsub("%.?0+$", "")) end

local function put(p, form, ...) p[#p + 1] = form:format(...) end

local function text(p, x, y, s, anchor, more)
  put(p, '<text x="%s" y="%s" text-anchor="%s"%s>%s</text>', at(x), at(y),
      anchor, more or "", escaped(s))
end

local function line(p, x1, y1, x2, y2, stroke)
  put(p, '<path d="M%s %sL%s %s" stroke="%s"/>', at(x1), at(y1), at(x2),
      at(y2), stroke)
end

local function whole(p, o)
  return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" ' ..
    'viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" ' ..
    'fill="none">\n<rect width="100%%" height="100%%" fill="#ffffff"/>\n')
    :format(o.width, o.height, o.width, o.height) ..
    table.concat(p, "\n") .. "\n</svg>\n"
end

--
-- The frame of a chart
--

-- The positions of values on an axis from pixel a to pixel b.
local function places(low, high, log, a, b)
  local f = axes.scale(low, high, log, 2)
  return function(v) return a + (b - a) * (low == high and 0.5 or f(v)) end
end

local function ticks(low, high, most, log)
  if low == high then return {low} end
  local list = axes.roundnumbers(low, high, most, log)
  return #list >= 2 and list or {low, high}
end

local function widest(list, low, high)
  local n = 0
  for _, v in ipairs(list) do
    n = math.max(n, #axes.number(v, low, high))
  end
  return n * LETTER
end

local function legend(p, o, f)
  local x = f.left
  for k, s in ipairs(#o.series > 1 and o.series or {}) do
    local name = s.name or "series " .. k
    line(p, x, f.top - 12, x + 16, f.top - 12, color(k) .. '" stroke-width="3')
    text(p, x + 21, f.top - 8, name, "start", ' fill="#222222"')
    x = x + 36 + LETTER * (utf8.len(name) or #name)
  end
end

-- The field of a chart between the limits: its edges and the places of x, y.
local function field(p, o, xlow, xhigh, ylow, yhigh)
  local ys = ticks(ylow, yhigh, o.height / 60, o.ylog)
  local f = {left = 20 + widest(ys, ylow, yhigh),
             top = TOP + (o.title and 18 or 0) +
                   (o.series and #o.series > 1 and 20 or 0),
             right = o.width - RIGHT, bottom = o.height - BOTTOM}
  f.x = places(xlow, xhigh, o.xlog, f.left, f.right)
  f.y = places(ylow, yhigh, o.ylog, f.bottom, f.top)
  if o.title then
    text(p, (f.left + f.right) / 2, 22, o.title, "middle",
         ' fill="#222222" font-size="14"')
  end
  for _, v in ipairs(ys) do
    line(p, f.left, f.y(v), f.right, f.y(v), "#dddddd")
    text(p, f.left - 6, f.y(v) + 4, axes.number(v, ylow, yhigh), "end",
         ' fill="#444444"')
  end
  return f
end

local function xlabels(p, o, f, low, high)
  for _, v in ipairs(ticks(low, high, o.width / 90, o.xlog)) do
    line(p, f.x(v), f.bottom, f.x(v), f.bottom + 4, "#444444")
    text(p, f.x(v), f.bottom + 18, axes.number(v, low, high), "middle",
         ' fill="#444444"')
  end
end

local function frame(p, f)
  put(p, '<rect x="%s" y="%s" width="%s" height="%s" stroke="#444444"/>',
      at(f.left), at(f.top), at(f.right - f.left), at(f.bottom - f.top))
end

--
-- Curves
--

-- The path of a series; a gap begins a new part of it.
local function path(s, o, f)
  local parts, joined = {}, false
  for i = 1, #(s.y or s.low) do
    local x = s.x and s.x[i] or i
    local low, high = (s.y or s.low)[i], (s.y or s.high)[i]
    if axes.usable(low, o.ylog) and axes.usable(high, o.ylog) and
       axes.usable(x, o.xlog) then
      local sign = joined and not s.points and "L" or "M"
      parts[#parts + 1] = ("%s%s %s"):format(sign, at(f.x(x)), at(f.y(low)))
      if s.points then parts[#parts + 1] = "h0" end
      if s.low then parts[#parts + 1] = "V" .. at(f.y(high)) end
      if s.low or not joined and not s.points then
        -- a lone value shows as a dot
        parts[#parts + 1] = s.low and "" or "h0"
      end
      joined = true
    else
      joined = false
    end
  end
  return table.concat(parts)
end

function svg.chart(o)
  local xlow, xhigh, ylow, yhigh = plot.limits(o)
  if not xlow or not ylow then return nil end
  local p = {}
  local f = field(p, o, xlow, xhigh, ylow, yhigh)
  xlabels(p, o, f, xlow, xhigh)
  frame(p, f)
  legend(p, o, f)
  for k, s in ipairs(o.series) do
    put(p, '<path d="%s" stroke="%s" stroke-width="%s" ' ..
        'stroke-linejoin="round" stroke-linecap="round"%s/>', path(s, o, f),
        color(k), s.points and "5" or "1.8",
        s.points and ' stroke-opacity="0.7"' or "")
  end
  return whole(p, o)
end

--
-- Bars
--

-- The labels below bars that are no ranges, as many as there is room for.
local function barlabels(p, f, rows, each)
  local wide = 1
  for _, row in ipairs(rows) do wide = math.max(wide, #row.label) end
  local step = math.max(1, math.ceil((wide + 1) * LETTER / each))
  for i = 1, #rows, step do
    text(p, f.left + (i - 0.5) * each, f.bottom + 18,
         rows[i].label:match "^%s*(.-)%s*$", "middle", ' fill="#444444"')
  end
end

-- A row with from and to is a range of values.
function svg.bars(rows, o)
  local p, top, log = {}, 1, o.log
  for _, row in ipairs(rows) do top = math.max(top, row.count) end
  local low, high = rows[1].from, rows[#rows].to
  local f = field(p, setmetatable({ylog = log}, {__index = o}), low or 0,
                  high or #rows, log and 0.5 or 0, top)
  local each = (f.right - f.left) / #rows
  for i, row in ipairs(rows) do
    local y = row.count > 0 and f.y(row.count) or f.bottom
    put(p, '<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>',
        at(f.left + (i - 1) * each + 0.5), at(y), at(math.max(each - 1, 0.5)),
        at(f.bottom - y), color(1))
  end
  if low then
    xlabels(p, o, f, low, high)
  else
    barlabels(p, f, rows, each)
  end
  frame(p, f)
  return whole(p, o)
end

--
-- Matrices
--

-- The cells of each colour as a path of rectangles; those side by side are one.
local function cellpaths(rows, rgb)
  local paths, order = {}, {}
  for y, row in ipairs(rows) do
    local x = 1
    while x <= #row do
      local c, n = rgb(row[x]), 1
      while x + n <= #row and rgb(row[x + n]) == c do n = n + 1 end
      if c then
        if not paths[c] then order[#order + 1], paths[c] = c, {} end
        table.insert(paths[c], ("M%d %dh%dv1h-%dz"):format(x - 1, y - 1, n, n))
      end
      x = x + n
    end
  end
  return paths, order
end

-- The bar that says which colour is which value.
local function colorbar(p, o, f)
  local x, high = f.right + 16, f.bottom - f.top
  for i = 0, 63 do
    put(p, '<rect x="%s" y="%s" width="14" height="%s" fill="#%06x"/>', at(x),
        at(f.bottom - (i + 1) * high / 64), at(high / 64 + 0.5),
        o.color(o.low * (1 - i / 63) + o.high * (i / 63)))
  end
  for _, end_ in ipairs {{o.low, f.bottom}, {o.high, f.top + 10}} do
    text(p, x + 20, end_[2], axes.number(end_[1], o.low, o.high), "start",
         ' fill="#444444"')
  end
end

-- rows: lists of numbers, nan where nothing is known. o.color(v) is 0xRRGGBB;
-- low and high are the ends of its scale; shape = {rows, columns} of what the
-- cells show.
function svg.cells(rows, o)
  local h, w, p = #rows, #rows[1], {}
  local top = TOP + (o.title and 18 or 0)
  local scale = math.min((o.width - 150) / o.shape[2],
                         (o.height - top - BOTTOM) / o.shape[1])
  local f = {left = 50, top = top, right = 50 + scale * o.shape[2],
             bottom = top + scale * o.shape[1]}
  f.right = math.max(f.right, f.left + 20)
  f.bottom = math.max(f.bottom, f.top + 20)
  if o.title then
    text(p, f.left, 22, o.title, "start", ' fill="#222222" font-size="14"')
  end
  put(p, '<g transform="translate(%s %s) scale(%.6g %.6g)" ' ..
      'shape-rendering="crispEdges">', at(f.left), at(f.top),
      (f.right - f.left) / w, (f.bottom - f.top) / h)
  put(p, '<rect width="%d" height="%d" fill="#dddddd"/>', w, h)
  local paths, order = cellpaths(rows, o.color)
  for _, c in ipairs(order) do
    put(p, '<path fill="#%06x" d="%s"/>', c, table.concat(paths[c]))
  end
  put(p, "</g>")
  text(p, f.left - 6, f.top + 12, "1", "end", ' fill="#444444"')
  text(p, f.left - 6, f.bottom, ("%d"):format(o.shape[1]), "end",
       ' fill="#444444"')
  text(p, f.left, f.bottom + 16, "1", "start", ' fill="#444444"')
  text(p, f.right, f.bottom + 16, ("%d"):format(o.shape[2]), "end",
       ' fill="#444444"')
  frame(p, f)
  colorbar(p, o, f)
  return whole(p, o)
end

return svg
