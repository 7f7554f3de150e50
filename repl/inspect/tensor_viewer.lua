-- SPDX-License-Identifier: MIT
--
-- tensor_viewer.lua - :view shows a tensor in the whole window: its elements
-- with their indices, sorted by a column, searched, slice by slice. Only what
-- is seen is read, also from a device. Other values are shown as text.

local facts = require "nacre.tensor_facts"
local full_screen = require "nacre.full_screen"
local grid = require "nacre.tensor_grid"
local host = require "nacre.host"
local numbers = require "nacre.number_text"
local settings = require "nacre.settings"

local nacre = package.loaded.nacre

local tensor_viewer = {}

local View = {}
View.__index = View

local styled = full_screen.styled

local HELP <const> = {
  "  arrows, h j k l      the next element",
  "  PgUp PgDn, b space   a page up, down",
  "  Home End, 0 $        the first column, the last",
  "  g G                  the first row, the last",
  "  [ ]                  the slice before, the next one",
  "  { }                  the dimension before, the next one, is sliced",
  "  s                    sorts by the column: up, down, not at all",
  "  /                    searches: 3.5, nan, >100, <=0; n: the next one",
  "  :                    goes to ROW,COLUMN",
  "  + -                  more digits, fewer",
  "  e                    numbers with a power of ten, in full, as before",
  "  y                    leaves, with the element's index in the next line",
  "  q                    leaves"}

--
-- The plane that is seen
--

function View:is_shown(d) return d == self.shown[1] or d == self.shown[2] end


-- The matrix of the chosen slice: what the dimensions in `shown' hold at the
-- index `slice' of the others.
function View:plane()
  local t = self.t
  for d = t:dim(), 1, -1 do
    if not self:is_shown(d) then t = t:select(d, self.slice[d]) end
  end
  return t:dim() == 1 and t:unsqueeze(2) or t
end

-- Shows two dimensions as rows and columns; nil as the second for a vector.
function View:show_dims(rows, columns)
  self.shown = {rows, columns}
  self.rows = self.t:size(rows)
  self.columns = columns and self.t:size(columns) or 1
end

-- The elements of rows and columns as lists, by column. Rows are those of the
-- order.
function View:elements(first, last, from, to)
  local part = self:plane():narrow(2, from, to - from + 1)
  if self.order then
    part = part:index_select(1, self.order:narrow(1, first, last - first + 1)
                                          :to(part.device))
  else
    part = part:narrow(1, first, last - first + 1)
  end
  return grid.values(part:t():cpu())
end

-- The index in the tensor of the row at a place of the order.
function View:row_at(place)
  return self.order and self.order[place] or place
end

--
-- Drawing
--

-- The texts of the numbers of a column, and their width.
function View:texts(list)
  local dtype = self.t.dtype
  if self.form == "power" and dtype:find "float" then
    local text, width = {}, 1
    for i, x in ipairs(list) do
      text[i] = x - x == 0 and ("%." .. self.digits .. "e"):format(x) or
                numbers.show(x)
      width = math.max(width, #text[i])
    end
    return text, width
  end
  return grid.column(list, dtype, self.form == "full" and "full" or
                                  self.digits)
end

-- The columns from self.left on that fit beside each other: {texts, width}.
function View:visible(first, last, room)
  local columns, most = {}, math.max(1, room // 3)
  local lists = self:elements(first, last, self.left,
                              math.min(self.columns, self.left + most - 1))
  for k, list in ipairs(lists) do
    local text, width = self:texts(list)
    width = math.max(width, #tostring(self.left + k - 1))
    if k > 1 and room < width + 2 then break end
    room = room - width - 2
    columns[k] = {text, width}
  end
  return columns
end

-- Makes the chosen element one of those that are seen; gives its columns.
function View:scroll(rows, room)
  self.row = math.max(1, math.min(self.row, self.rows))
  self.column = math.max(1, math.min(self.column, self.columns))
  self.top = math.max(math.min(self.top, self.row), self.row - rows + 1, 1)
  self.left = math.min(self.left, self.column)
  local last = math.min(self.top + rows - 1, self.rows)
  local columns = self:visible(self.top, last, room)
  while self.column >= self.left + #columns do
    self.left = math.max(self.left + 1, self.column - #columns + 1)
    columns = self:visible(self.top, last, room)
  end
  return columns, last
end

local function right(text, width) return (" "):rep(width - #text) .. text end

-- The heading of a row or column, with the chosen one marked.
local function heading(i, width, chosen)
  return styled(right(tostring(i), width), chosen and "1" or "2")
end

function View:lines(rows, width)
  if self.helping then return {table.unpack(HELP)}, 0, 1, 1 end
  local gutter = #tostring(self.rows)
  local columns, last = self:scroll(rows - 1, width - gutter - 1)
  self.page, self.across = rows - 1, #columns
  local head, lines, place = {}, {}, nil
  for k, c in ipairs(columns) do
    local j = self.left + k - 1
    head[k] = "  " .. heading(j, c[2], j == self.column)
  end
  lines[1] = (" "):rep(gutter) .. table.concat(head)
  for place_ = self.top, last do
    local cells, column = {}, gutter + 1
    for k, c in ipairs(columns) do
      local text = right(c[1][place_ - self.top + 1], c[2])
      local chosen = place_ == self.row and self.left + k - 1 == self.column
      column = column + 2 + (chosen and 0 or c[2])
      if chosen then
        text, place = styled(text, "7"), column
        column = column + c[2]
      elseif (text:find "nan" or text:find "inf") and host.has_color() then
        text = styled(text, "31")
      end
      cells[k] = "  " .. text
    end
    lines[#lines + 1] = heading(self:row_at(place_), gutter,
                                place_ == self.row) .. table.concat(cells)
  end
  return lines, 0, self.row - self.top + 2, place or 1
end

-- The index of the chosen element: a list, as t[{...}] takes it one by one.
function View:index()
  local list = table.move(self.slice, 1, #self.slice, 1, {})
  list[self.shown[1]] = self:row_at(self.row)
  if self.shown[2] then list[self.shown[2]] = self.column end
  return table.concat(list, ",")
end

function View:status()
  if self.helping then return "any key" end
  local index = self:index()
  local value = self:elements(self.row, self.row, self.column, self.column)
  local text = self.t.dtype:find "float" and
               numbers.shortest(value[1][1], self.t.dtype) or
               numbers.integer(value[1][1], self.t.dtype)
  local parts = {("%s[%s] = %s"):format(self.name, index, text), self.about}
  if self.sliced then
    parts[#parts + 1] = ("slice of dim %d"):format(self.sliced)
  end
  if self.sorted then
    parts[#parts + 1] = ("sorted by %d %s"):format(self.sorted, self.direction)
  end
  parts[#parts + 1] = "q leaves, ? keys"
  return table.concat(parts, "   ")
end

--
-- Sorting and searching
--

local function stable_order(t, descending)
  local _, order = nacre.sort(t, {dim = 1, descending = descending,
                                  stable = true})
  return order
end

-- The places of the rows in the order of a column: nan last, equal ones in
-- their own order.
function View:ordered(descending)
  local column = facts.computable(self:plane():select(2, self.column):detach())
  local nan = facts.isfloat(column) and column:isnan() or nil
  if not nan or not nan:any():item() then
    return stable_order(column, descending):cpu()
  end
  local known = nan:logical_not():nonzero():reshape(-1)
  local order = stable_order(column:index_select(1, known), descending)
  return nacre.cat({known:index_select(1, order),
                    nan:nonzero():reshape(-1)}, 1):cpu()
end

-- Sorts by the chosen column: up, down, as it was. The chosen row stays.
function View:sort()
  local row = self:row_at(self.row)
  local again = self.sorted == self.column and self.direction
  if again == "down" then
    self.order, self.sorted, self.direction = nil, nil, nil
  else
    self.direction = again == "up" and "down" or "up"
    self.order = self:ordered(self.direction == "down")
    self.sorted = self.column
  end
  self.row = self.order and
             self.order:eq(row):nonzero():reshape(-1)[1] or row
end

local COMPARE = {[">"] = "gt", [">="] = "ge", ["<"] = "lt", ["<="] = "le",
                 ["="] = "eq", ["=="] = "eq", [""] = "eq", ["~="] = "ne"}

-- A function that finds the elements that a text asks for; nil if it asks for
-- none.
local function wanted(text)
  text = text:gsub("%s", "")
  if text == "nan" then return function(t) return t:isnan() end end
  local sign, value = text:match "^([<>=~]*)(.*)$"
  local x = ({inf = math.huge, ["-inf"] = -math.huge})[value] or
            tonumber(value)
  if value == "true" or value == "false" then x = value == "true" and 1 or 0 end
  local name = COMPARE[sign]
  if not x or not name then return nil end
  return function(t)
    if t.dtype == "bool" then t = t:to "uint8" end
    if name ~= "eq" then return t[name](t, x) end
    -- as it is shown: the number that float32 has for 0.1
    return t:eq(nacre.tensor(x, {dtype = "float64"}):to(t.dtype):to(t.device))
  end
end

local PIECE <const> = 1 << 20   -- elements that are searched at once

-- The place of the first element, from that place on, row by row; nil if there
-- is none before `stop'.
function View:first_found(from, stop)
  local rows = math.max(1, PIECE // self.columns)
  for first = (from - 1) // self.columns + 1, (stop - 1) // self.columns + 1,
      rows do
    local n = math.min(rows, self.rows - first + 1)
    local part = self:plane()
    part = self.order and
           part:index_select(1, self.order:narrow(1, first, n)
                                          :to(part.device)) or
           part:narrow(1, first, n)
    local at = self.wanted(part):reshape(-1):nonzero():reshape(-1)
    at = at + (first - 1) * self.columns
    at = at[at:ge(from):logical_and(at:le(stop))]
    if at:numel() > 0 then return at[1] end
  end
end

function View:find_next()
  if not self.wanted then return end
  local here = (self.row - 1) * self.columns + self.column
  local at = self:first_found(here + 1, self.rows * self.columns) or
             self:first_found(1, here)
  if not at then
    self.message = "there is none"
    return
  end
  self.row = (at - 1) // self.columns + 1
  self.column = (at - 1) % self.columns + 1
end

--
-- Keys
--
local moves = {}

function moves.up(v) v.row = v.row - 1 end
function moves.down(v) v.row = v.row + 1 end
function moves.left(v) v.column = v.column - 1 end
function moves.right(v) v.column = v.column + 1 end
function moves.pageup(v) v.row, v.top = v.row - v.page, v.top - v.page end
function moves.pagedown(v) v.row, v.top = v.row + v.page, v.top + v.page end
function moves.home(v) v.column = 1 end
moves["end"] = function(v) v.column = v.columns end
function moves.top(v) v.row = 1 end
function moves.bottom(v) v.row = v.rows end
function moves.s(v) v:sort() end
function moves.n(v) v:find_next() end
moves["+"] = function(v) v.digits = math.min(17, v.digits + 1) end
moves["-"] = function(v) v.digits = math.max(1, v.digits - 1) end
moves["?"] = function(v) v.helping = true end

function moves.e(v)
  v.form = ({usual = "power", power = "full", full = "usual"})[v.form]
end

local function unsort(v) v.order, v.sorted, v.direction = nil, nil, nil end

-- Another slice; the order of rows is that of the slice before.
local function change_slice(v, by)
  local d = v.sliced
  if not d then return end
  v.slice[d] = (v.slice[d] - 1 + by) % v.t:size(d) + 1
  unsort(v)
end
moves["["] = function(v) change_slice(v, -1) end
moves["]"] = function(v) change_slice(v, 1) end

-- Slices another dimension. If it was one of the two that are seen, then the
-- one that was sliced is seen instead.
local function change_dim(v, by)
  if not v.sliced then return end
  local before = v.sliced
  v.sliced = (before - 1 + by) % v.t:dim() + 1
  if v:is_shown(v.sliced) then
    local kept = v.shown[v.shown[1] == v.sliced and 2 or 1]
    v:show_dims(math.min(kept, before), math.max(kept, before))
    unsort(v)
  end
end
moves["{"] = function(v) change_dim(v, -1) end
moves["}"] = function(v) change_dim(v, 1) end

moves["/"] = function(v)
  full_screen.ask(v, "/", function(text)
    local f = wanted(text)
    if text ~= "" and not f then
      v.message = "a number, nan, or >, <, ~= and a number"
    end
    v.wanted = f or v.wanted
    if f or text == "" then v:find_next() end
  end)
end

moves[":"] = function(v)
  full_screen.ask(v, ":", function(text)
    local row, column = text:match "^%s*(%d+)%s*,?%s*(%d*)%s*$"
    if not row then
      v.message = "ROW,COLUMN"
      return
    end
    unsort(v)
    v.row = math.tointeger(tonumber(row))
    v.column = math.tointeger(tonumber(column)) or v.column
  end)
end

function moves.y(v)
  local name = v.name:find "^[%a_][%w_.]*$" and v.name or "(" .. v.name .. ")"
  host.prefill(("%s[{%s}]"):format(name, v:index()))
  return true
end

local SAME <const> = {
  h = "left", j = "down", k = "up", l = "right", b = "pageup",
  [" "] = "pagedown", f = "pagedown", ["0"] = "home", ["$"] = "end", g = "top",
  G = "bottom", enter = "down"}

function View:key(key)
  if self.helping then
    self.helping = false
    return
  end
  local move = moves[SAME[key] or key]
  return move and move(self)
end

--
-- The command
--
local function view_of(t, name)
  local n = t:dim()
  local v = {t = t:detach(), name = name, slice = {}, row = 1, column = 1,
             top = 1, left = 1, form = "usual",
             about = facts.kind_and_device(t)}
  for d = 1, n do v.slice[d] = 1 end
  v.sliced = n > 2 and n - 2 or nil
  local digits = settings.get "precision"
  v.digits = digits == "full" and 4 or digits
  if digits == "full" then v.form = "full" end
  setmetatable(v, View)
  v:show_dims(n > 1 and n - 1 or 1, n > 1 and n or nil)
  return v
end

-- Shows a tensor, or another value as text; nil and why it cannot be shown.
local function show(shell, value, name)
  if not facts.istensor(value) then
    local text = require "nacre.styled_output".whole(value)
    return require "nacre.pager".show(shell, text)
  elseif nacre._isdry(value) then
    return nil, name .. (value.device == "meta" and " has no values" or
                        " is of a dry run and has no values")
  elseif value:dim() == 0 or value:numel() == 0 then
    io.stdout:write((require "nacre.styled_output".text(value)))
    return true
  end
  if full_screen.run(view_of(value, name)) then return true end
  return nil, ":view needs a terminal"
end

-- :view EXPR
function tensor_viewer.run(shell, text)
  local unit = shell.compile(text)
  local got = unit and shell.run(unit)
  if not got then return end
  shell.protected(function()
    local ok, why = show(shell, got[1], text:match "^%s*(.-)%s*$")
    if why then shell.fail(why) end
    return ok
  end)
end

-- shell.view(value)
function tensor_viewer.call(value)
  local _, why = show(require "nacre.shell", value, "value")
  if why then error(why, 2) end
end

return tensor_viewer
