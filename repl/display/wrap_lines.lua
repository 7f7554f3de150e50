-- SPDX-License-Identifier: MIT
--
-- wrap_lines.lua - breaks lines that are longer than the screen is wide:
-- between the columns of a table or, if one of these is too long, between
-- words.

local host = require "nacre.host"

local wrap = {}

local function columns(text)
  text = text:gsub("\27%[[%d;]*m", "")
  return utf8.len(text) or #text
end

local function length(text) return utf8.len(text) or #text end

-- Text filled with blanks to a width, on the right or on the left.
function wrap.pad(text, width)
  return text .. (" "):rep(width - length(text))
end

function wrap.right(text, width)
  return (" "):rep(width - length(text)) .. text
end

-- Text of at most `most' characters; "..." stands for the rest.
function wrap.cut(text, most)
  if length(text) <= most then return text end
  local n = math.max(most - 3, 1)
  return text:sub(1, (utf8.offset(text, n + 1) or n + 1) - 1) .. "..."
end

local WIDEST <const> = 200     -- a longer text stands out of its column

-- Rows of texts, the first one a heading, as lines with aligned columns.
-- `sides` has an "l" or "r" for each column. With drop_empty a column that has
-- only a heading is left out.
function wrap.columns(rows, sides, gap, drop_empty)
  local lines, cells = {}, {}
  for i = 1, #rows do cells[i] = {} end
  for k = 1, #sides do
    local wide, empty = 0, drop_empty
    for i, row in ipairs(rows) do
      wide = math.max(wide, length(row[k]))
      empty = empty and (i == 1 or row[k] == "")
    end
    local align = sides:sub(k, k) == "l" and wrap.pad or wrap.right
    wide = math.min(wide, WIDEST)
    for i, row in ipairs(empty and {} or rows) do
      table.insert(cells[i], align(row[k], wide))
    end
  end
  for i, row in ipairs(cells) do
    lines[i] = ("  " .. table.concat(row, gap)):match "^.*%S" or ""
  end
  return lines
end

-- Adds a cell and the blanks before it, or begins a new line with it.
local function add(lines, gap, cell, indent, width)
  local line = lines[#lines]
  if line:find "%S" and columns(line .. gap .. cell) > width then
    lines[#lines + 1] = indent .. cell
  else
    lines[#lines] = line .. gap .. cell
  end
end

-- The words of a cell that is longer than a line.
local function words(lines, gap, cell, indent, width)
  for word, blank in cell:gmatch "(%S+)(%s*)" do
    add(lines, gap, word, indent, width)
    gap = blank
  end
end

-- A line as lines of no more than `width' columns, if its words allow that.
function wrap.fit(line, width)
  if columns(line) <= width then return {line} end
  local start, rest = line:match "^(%s*)(.*)$"
  local lines, gap = {start}, ""
  local indent = start .. (" "):rep(math.min(2, width // 10))
  for cell in (rest .. "  "):gmatch "(.-)%s%s+" do
    if columns(indent .. cell) > width then
      words(lines, gap, cell, indent, width)
    else
      add(lines, gap, cell, indent, width)
    end
    gap = "  "                -- the columns are not one above the other
  end
  return lines
end

-- Does a line of a table have a string, which no blank may change?
local function has_string(line)
  return line:find '[=,] "' or line:find '[{%[]"' or line:find '^%s*"'
end

-- A text wrapped to the screen, where it goes to a terminal or the width is
-- less than 80 columns. A line above a caret stays, and one with a string if
-- `exact`.
function wrap.text(text, stream, exact)
  local width = host.columns()
  if width >= 80 and not host.is_terminal(stream) then return text end
  return (text:gsub("()([^\n]+)()", function(_, line, after)
    if columns(line) <= width or exact and has_string(line) or
       text:find("^\n *%^[^\n]*", after) or line:find "^ *%^" then
      return line
    end
    return table.concat(wrap.fit(line, width), "\n")
  end))
end

-- Prints a list of lines or a text, wrapped to the screen.
function wrap.say(lines)
  if type(lines) == "table" then lines = table.concat(lines, "\n") end
  lines = wrap.text(lines, "stdout")
  io.stdout:write(lines, lines:sub(-1) == "\n" and "" or "\n")
end

-- Prints a text without colours, in which names of files and of variables may
-- be anything.
function wrap.tell(text)
  wrap.say(require "nacre.lua_values".escape_controls(text))
end

return wrap
