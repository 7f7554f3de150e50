-- SPDX-License-Identifier: MIT
--
-- tensor_grid.lua - the elements of a tensor as lines of text.
--
-- Only what is shown is read: the ends of the rows and columns that fit.
-- Numbers have one format for a column, and for all columns of similar
-- magnitude. The format is never misleading: zero is "0", tiny numbers are not
-- rounded to zero, and different neighbours, or numbers that differ in the
-- first four decimals, never look equal.
--
-- opts, everywhere: width, color, precision (digits, or "full": each number so
-- that it reads back), edge, maxlines; rows, if it is given, gets the cells of
-- each line: rows[line] = {head =, cells...}.

local facts = require "nacre.tensor_facts"
local numbers = require "nacre.number_text"

local grid = {}

--
-- The format of a column
--

-- Half types have fewer digits: at most so many after the point of a number
-- with a power of ten.
local digits = {float16 = {power = 3}, bfloat16 = {power = 2},
                float8_e4m3fn = {power = 1}, float8_e5m2 = {power = 1}}

local function finite(v)
  local list = {}
  for _, x in ipairs(v) do
    if x - x == 0 then list[#list + 1] = x end
  end
  return list
end

-- From LARGE, and below SMALL, numbers are shown with a power of ten. If the
-- range of a column is not WIDE, one digit is enough for its tiny numbers.
local LARGE, SMALL, WIDE = 1e8, 1e-3, 1e5

-- Above this, floats of the dtype are always whole; float64 has more digits.
local function whole_below(dtype, mixed)
  return mixed and 1e5 or dtype == "float64" and 1e15 or LARGE
end

-- The mode "whole", "fixed" or "power", and the largest magnitude. In `mixed'
-- columns large numbers are whole by chance, and zeros have no mode.
local function format_mode(f, dtype, mixed)
  local whole, big = true, 0
  for _, x in ipairs(f) do
    whole = whole and x % 1 == 0
    big = math.max(big, math.abs(x))
  end
  if mixed and big == 0 then return "fixed", big end
  if whole and big <= whole_below(dtype, mixed) then return "whole", big end
  return (big >= LARGE or big < SMALL) and "power" or "fixed", big
end

-- The parts of complex numbers, in one list; the elements of others.
local function parts(v, dtype)
  if not facts.parts[dtype] then return v end
  local list = {}
  for i, z in ipairs(v) do list[2 * i - 1], list[2 * i] = z.re, z.im end
  return list
end

-- Have its numbers digits after the point?
local function is_float(dtype)
  return dtype:find "float" ~= nil or facts.parts[dtype] ~= nil
end

-- The common format of columns: {how =, big =} if their magnitudes are similar
-- or there is one row, else {mixed =}.
local function common_format(columns, dtype)
  local all, least, most, rows = {}, math.huge, 0, 0
  for _, v in ipairs(columns) do
    local f = finite(parts(v, dtype))
    local _, big = format_mode(f, dtype)
    if big > 0 then least, most = math.min(least, big), math.max(most, big) end
    rows = math.max(rows, #v)
    table.move(f, 1, #f, #all + 1, all)
  end
  local how = format_mode(all, dtype)
  if rows == 1 or most <= 100 * least then
    return {how = how, big = most}
  end
  return {mixed = how ~= "whole"}
end

-- How many digits (at least p) large numbers with a power of ten need to look
-- different if they differ in the first four decimals.
local function distinct_digits(f, p)
  local sorted = table.move(f, 1, #f, 1, {})
  table.sort(sorted)
  for q = p, 16 do
    local form, clash = ("%%.%de"):format(q), false
    for i = 1, #f - 1 do
      local a, b = sorted[i], sorted[i + 1]
      clash = clash or plain_format(form, a) == plain_format(form, b) and
              plain_format("%.4f", a) ~= plain_format("%.4f", b)
    end
    if not clash then return q end
  end
  return 16
end

-- How many digits (at least p) neighbours that differ need to look different.
-- In a fixed column those far below the largest do not count.
local function neighbour_digits(f, how, p, big)
  if how == "power" and big >= LARGE then p = distinct_digits(f, p) end
  for q = p, 7 do
    local form = ("%%.%d%s"):format(q, how == "fixed" and "f" or "e")
    local clash = false
    for i = 1, #f - 1 do
      local small = how == "fixed" and math.abs(f[i]) < 1e-3 * big
      clash = clash or f[i] ~= f[i + 1] and not small and
              plain_format(form, f[i]) == plain_format(form, f[i + 1])
    end
    if not clash then return q end
  end
  return math.max(p, 8)
end

-- The text of a number with p digits; `tiny' is the number of digits for one
-- that would round to zero.
local function number(x, how, p, tiny)
  if x - x ~= 0 then return numbers.show(x) end
  if how == "whole" then return plain_format("%.1f", x) end
  if x == 0 then return 1 / x < 0 and "-0" or "0" end
  if how == "power" then return plain_format("%." .. p .. "e", x) end
  if math.abs(x) < 0.5 * 10.0 ^ -p then
    return plain_format("%." .. tiny .. "e", x)
  end
  return plain_format("%." .. p .. "f", x)
end

-- The texts of the floats v in one format.
local function floats(v, dtype, precision, with)
  local f, text = finite(v), {}
  local how, big = format_mode(f, dtype, with and with.mixed)
  how = with and with.how or how
  local p = precision
  if digits[dtype] then p = math.min(p, digits[dtype][how] or p) end
  if how ~= "whole" and #v > 1 then p = neighbour_digits(f, how, p, big) end
  local tiny = math.max(big, with and with.big or 0) < WIDE and 0 or p
  for i, x in ipairs(v) do text[i] = number(x, how, p, tiny) end
  return text
end

-- The texts of complex numbers, all parts in one format: "0.5000-1.2000i".
local function complex_texts(v, dtype, precision, with)
  local text = grid.column(parts(v, dtype), facts.parts[dtype], precision, with)
  local list = {}
  for i = 1, #v do
    local im = text[2 * i]
    list[i] = text[2 * i - 1] .. (im:find "^-" and "" or "+") .. im .. "i"
  end
  return list
end

-- The elements of t as grid.column takes them: those of uint64 as int64, which
-- has their bits.
function grid.values(t)
  return (t.dtype == "uint64" and t:view "int64" or t):totable()
end

-- The texts of the numbers v, and the width of the longest. `with' is the
-- common format of several columns.
function grid.column(v, dtype, precision, with)
  local text, width = {}, 1
  if facts.parts[dtype] then
    text = complex_texts(v, dtype, precision, with)
  elseif not dtype:find "float" then
    for i, x in ipairs(v) do text[i] = numbers.integer(x, dtype) end
  elseif precision == "full" then
    for i, x in ipairs(v) do text[i] = numbers.shortest(x, dtype) end
  else
    text = floats(v, dtype, precision, with)
  end
  for _, s in ipairs(text) do width = math.max(width, #s) end
  return text, width
end

local function right(s, width) return (" "):rep(width - #s) .. s end

-- A line of cells; what is not a number is red.
local function line(head, cells, width, opts)
  local list = {}
  for i, s in ipairs(cells) do
    local text = right(s, type(width) == "table" and width[i] or width)
    if opts.color and (s == "nan" or s:find "inf") then
      text = text:gsub("%S+", "\27[31m%0\27[0m")
    end
    list[i] = text
  end
  local whole = head .. table.concat(list, "  ")
  if opts.rows then opts.rows[whole] = {head = head, table.unpack(cells)} end
  return whole
end

--
-- Vectors
--
local function ends(lines, t, n, room, opts)
  local dtype, gutter = t.dtype, #tostring(n) + 2
  local m = math.min(n // 2, math.max(40, room))
  local first = grid.values(t:narrow(1, 1, m))
  local last = grid.values(t:narrow(1, n - m + 1, m))
  local some = table.move(first, 1, math.min(m, 40), 1, {})
  table.move(last, math.max(1, m - 39), m, #some + 1, some)
  local _, w = grid.column(some, dtype, opts.precision)
  local k = math.min(m, math.max(1, (room - 2) // (w + 2)))
  local head = table.move(first, 1, k, 1, {})
  local tail = table.move(last, m - k + 1, m, 1, {})
  local with = is_float(dtype) and common_format({head, tail}, dtype)
  local w1, w2
  head, w1 = grid.column(head, dtype, opts.precision, with)
  tail, w2 = grid.column(tail, dtype, opts.precision, with)
  w = math.max(w1, w2)
  if k * (w + 2) > room then
    local fit = math.max(1, room // (w + 2))
    head = table.move(head, 1, fit, 1, {})
    tail = table.move(tail, k - fit + 1, k, 1, {})
    k = fit
  end
  local index = "[%" .. gutter - 2 .. "d]  "
  lines[#lines + 1] = line(index:format(1), head, w, opts)
  lines[#lines + 1] = right("...", gutter)
  lines[#lines + 1] = line(index:format(n - k + 1), tail, w, opts)
end

function grid.vector(lines, t, n, opts)
  local gutter = #tostring(n) + 2
  local room = opts.width - gutter
  if n > 100 then return ends(lines, t, n, room, opts) end
  local text, w = grid.column(grid.values(t), t.dtype, opts.precision)
  local per = math.max(1, room // (w + 2))
  if (n - 1) // per + 4 > opts.maxlines then
    return ends(lines, t, n, room, opts)
  end
  for i = 1, n, per do
    local head = "  "
    if n > per then head = ("[%" .. gutter - 2 .. "d]  "):format(i) end
    local cells = table.move(text, i, math.min(n, i + per - 1), 1, {})
    lines[#lines + 1] = line(head, cells, w, opts)
  end
end

--
-- Matrices
--

-- The indices 1 .. n that are read: all, or the `first' and `last' of them
-- with 0 for the gap.
local function edges(n, first, last)
  local list = {}
  for i = 1, first do list[i] = i end
  if first < n then
    list[#list + 1] = 0
    for i = n - last + 1, n do list[#list + 1] = i end
  end
  return list
end

local function spans(n, first, last)
  if first >= n then return {{1, n}} end
  return {{1, first}, {n - last + 1, last}}
end

-- The corners of t: value[row][column].
local function corners(t, rows, columns)
  local value = {}
  for _, r in ipairs(rows) do
    for _, c in ipairs(columns) do
      local part = grid.values(t:narrow(1, r[1], r[2]):narrow(2, c[1], c[2]))
      for i, row in ipairs(part) do
        local to = value[r[1] + i - 1] or {}
        value[r[1] + i - 1] = table.move(row, 1, #row, c[1], to)
      end
    end
  end
  return value
end

-- The columns that fit into `room', alternately from both ends, with 0 for
-- the gap.
local function choose(n, room, width)
  local total, lo, hi, left, tail = 0, 1, n, {}, {}
  for j = 1, n do
    total = total + width(j) + 2
    if total > room + 2 then break end
  end
  if total - 2 <= room then return edges(n, n, 0) end
  total = 5
  while lo <= hi do
    local j = #left == #tail and lo or hi
    total = total + width(j) + 2
    if total > room and lo > 1 then break end
    if j == lo then
      left[#left + 1] = j
      lo = lo + 1
    else
      table.insert(tail, 1, j)
      hi = hi - 1
    end
  end
  if lo <= hi then left[#left + 1] = 0 end
  return table.move(tail, 1, #tail, #left + 1, left)
end

-- Shows all rows, or `first' and `last' of them if `all' is false.
local function matrix(lines, t, size, first, last, opts)
  local r, c = size[#size - 1], size[#size]
  local k = opts.width // 5 + 2               -- a column takes at least 5
  local rows = edges(r, first, last)
  local value = corners(t, spans(r, first, last),
                        c <= 2 * k and {{1, c}} or spans(c, k, k))
  local dtype, texts, widths = t.dtype, {}, {}
  local function column(j)
    local list = {}
    for _, i in ipairs(rows) do
      if i > 0 then list[#list + 1] = value[i][j] end
    end
    return list
  end
  local columns = {}
  for j in pairs(value[1]) do columns[#columns + 1] = column(j) end
  local with = is_float(dtype) and common_format(columns, dtype)
  local function width(j)
    if widths[j] then return widths[j] end
    local text, w = grid.column(column(j), dtype, opts.precision, with)
    if rows[first + 1] == 0 then table.insert(text, first + 1, "...") end
    texts[j], widths[j] = text, math.max(w, 3)
    return widths[j]
  end
  local order = choose(c, opts.width - 2, width)
  for q = 1, #rows do
    local cells, w = {}, {}
    for i, j in ipairs(order) do
      cells[i] = j == 0 and "..." or texts[j][q]
      w[i] = j == 0 and 3 or widths[j]
    end
    lines[#lines + 1] = line("  ", cells, w, opts)
  end
end

-- How many of n rows are shown at the start and at the end.
local function rowsof(n, most, first, last)
  if n <= most then return n, 0 end
  return first, last
end

function grid.plane(lines, t, size, opts)
  local room = opts.maxlines - 4                 -- header, statistics, gap
  local e = math.min(opts.edge, math.max(1, room // 2))
  local first, last = rowsof(size[1], math.max(math.min(20, room), 2 * e),
                             e, e)
  matrix(lines, t, size, first, last, opts)
end

-- Up to four slices: all; else the first and the last.
function grid.slices(lines, t, size, opts)
  local lead, n = table.move(size, 1, #size - 2, 1, {}), 1
  for _, s in ipairs(lead) do n = n * s end
  local r = size[#size - 1]
  local first, last
  if n <= 4 and r <= 8 and n * (r + 1) + 3 <= opts.maxlines then
    first, last = r, 0
  elseif n == 4 then
    first, last = rowsof(r, 4, 2, 1)
  elseif n == 3 then
    first, last = rowsof(r, 4, 2, 2)
  else
    first, last = rowsof(r, 6, 3, 3)
  end
  for i = 0, n - 1, n > 4 and n - 1 or 1 do
    local at, part = facts.indices(i + 1, lead), t
    for d = 1, #lead do part = part:select(1, at[d]) end
    lines[#lines + 1] = "[" .. table.concat(at, ",") .. ",:,:]"
    matrix(lines, part, size, first, last, opts)
    if n > 4 and i == 0 then
      local more = ("... %d more %dx%d slices ..."):format(n - 2, r,
                                                           size[#size])
      if #more > opts.width then more = "..." end
      lines[#lines + 1] = more
    end
  end
end

return grid
