-- SPDX-License-Identifier: MIT
--
-- progress.lua - for i in nacre.progress(n) do ... end shows on stderr how far
-- the loop is, its rate and the time left, and the values of progress.set{...}
-- with a curve of each. In a notebook the line is an output of its own; without
-- either it shows nothing.

local host = require "nacre.host"
local state = require "nacre.state"
local units = require "nacre.units"
local below = require "nacre.below_output"

local progress = {}

local FIRST, AGAIN = 0.5, 0.1 -- seconds until the line, and between two

-- 1234.5 -> "1234/s", 12.34 -> "12.3/s", 2.5e6 -> "2.5 M/s"
local function rate(count, seconds)
  local x = seconds > 0 and count / seconds or 0
  if x > 0 and x < 1 then return units.seconds(1 / x) .. " each" end
  if x >= 1e5 then return ("%.3g M/s"):format(x / 1e6) end
  return (x >= 100 and "%.0f/s" or "%.3g/s"):format(x)
end

local Line = {}
Line.__index = Line

local loops = {}              -- those that run; the last is the innermost

-- ---- values: {name =, value =, shown = {numbers}}; a tensor is read when the
-- line is drawn, so that a loop does not wait for it at every step

local CURVE, KEPT = 8, 128    -- columns of a curve; numbers kept for it
local blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}

local function number_of(v)
  if nacre.is_tensor(v) then v = v:item() end
  return type(v) == "boolean" and (v and 1 or 0) or v
end

-- Adds a number; every second one is dropped when there are too many.
local function keep(list, v)
  list[#list + 1] = v
  if #list < KEPT then return end
  for i = 1, KEPT // 2 do list[i] = list[2 * i] end
  for i = #list, KEPT // 2 + 1, -1 do list[i] = nil end
end

-- A curve of the numbers, of at most CURVE characters.
local function curve(list)
  local low, high = math.huge, -math.huge
  for _, v in ipairs(list) do
    if v - v == 0 then low, high = math.min(low, v), math.max(high, v) end
  end
  if #list < 2 or low >= high or not host.has_utf8() then return "" end
  local n, parts = math.min(CURVE, #list), {}
  for i = 1, n do
    local v = list[1 + (i - 1) * (#list - 1) // (n - 1)]
    local at = v - v == 0 and (v - low) / (high - low) or 0
    parts[i] = blocks[1 + math.floor(at * 7 + 0.5)]
  end
  return " " .. table.concat(parts)
end

-- Adds the texts of the values to parts; with curves on the running line.
function Line:add_values(parts, curves)
  for _, v in ipairs(self.values) do
    local number = number_of(v.value)
    if curves then keep(v.shown, number) end
    parts[#parts + 1] = ("%s %.4g%s"):format(v.name, number,
                                            curves and curve(v.shown) or "")
  end
end

local function set_value(line, name, value)
  local at
  for i, v in ipairs(line.values) do if v.name == name then at = i end end
  at = at or #line.values + 1
  line.values[at] = line.values[at] or {name = name, shown = {}}
  line.values[at].value = nacre.is_tensor(value) and value:detach() or value
end

-- nacre.progress.set{loss = loss, ...}: values to show on the line of the
-- innermost loop, numbers or tensors of one element.
function progress.set(values)
  local line = loops[#loops]
  if line == nil then
    error("progress.set: no loop of nacre.progress runs", 2)
  end
  if type(values) ~= "table" or nacre.is_tensor(values) then
    error("progress.set: takes a table, such as {loss = loss}", 2)
  end
  local names = {}
  for name, v in pairs(values) do
    local fits = nacre.is_tensor(v) and v:numel() == 1 or
                 type(v) == "number" or type(v) == "boolean"
    if type(name) ~= "string" or not fits then
      error(("progress.set: %s must be a number, or a tensor of one element")
            :format(tostring(name)), 2)
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do set_value(line, name, values[name]) end
end

-- As many of the parts as fit in n columns.
local function fit(parts, n)
  local text = ""
  for i, part in ipairs(parts) do
    local longer = i == 1 and part or text .. "  " .. part
    if (utf8.len(longer) or #longer) > n then break end
    text = longer
  end
  return text
end

function Line:text(now)
  local parts, taken = {}, now - self.begin
  if self.label then parts[1] = self.label end
  if self.n then
    parts[#parts + 1] = ("%3.0f%%"):format(100 * self.done / self.n)
    parts[#parts + 1] = ("%d/%d"):format(self.done, self.n)
  else
    parts[#parts + 1] = tostring(self.done)
  end
  parts[#parts + 1] = rate(self.done, taken)
  if self.n and self.done > 0 and self.done < self.n then
    local left = taken / self.done * (self.n - self.done)
    parts[#parts + 1] = units.seconds(left) .. " left"
  end
  self:add_values(parts, true)
  return fit(parts, host.columns() - 1)
end

local showing             -- the line that is shown

-- Erases with blanks, which every terminal can do.
function Line:write(text)
  local columns = utf8.len(text) or #text
  local pad = (" "):rep((self.shown or 0) - columns)
  below.write("\r", text, pad, "\r")
  self.shown = columns > 0 and columns or nil
  showing = self.shown and self or nil
end

function Line:erase()
  if self.shown then self:write "" end
end

-- Calls live_plot.step or finish, unless `:set live` is off.
local function plot(what)
  local live = require "nacre.settings".get "live"
  if live ~= "off" then require "nacre.live_plot"[what](live) end
end

function Line:tick()
  local now = host.clock()
  if self.hidden or now < self.due then return end
  self.due = now + AGAIN
  self.line_shown = true
  plot "step"
  local notebook = state.notebook
  if notebook then return notebook.replace(self, self:text(now)) end
  io.stdout:flush()
  if showing and showing ~= self then showing:erase() end
  below.add(self)
  self:write(self:text(now))
end

-- The loop has ended, or was left by break, an error or Ctrl-C.
function Line:__close()
  for i = #loops, 1, -1 do
    if loops[i] == self then table.remove(loops, i) end
  end
  self:erase()
  below.remove(self)
  if #loops == 0 then plot "finish" end
  if not self.line_shown then return end
  local now = host.clock()
  local parts = {self.label or nil}
  parts[#parts + 1] = self.n and self.done < self.n and
                      ("%d of %d"):format(self.done, self.n) or
                      tostring(self.done)
  local all = {("%s in %s"):format(table.concat(parts, "  "),
                                   units.seconds(now - self.begin)),
               rate(self.done, now - self.begin)}
  self:add_values(all, false)
  local text = table.concat(all, "  ")
  if state.notebook then return state.notebook.replace(self, text) end
  below.write(text, "\n")
end

-- The line of n steps, or of an unknown number; without a terminal it is never
-- drawn.
local function new_line(n, label)
  local now = host.clock()
  local line = setmetatable({n = n, label = label, done = 0, begin = now,
                             due = now + FIRST, values = {},
                             hidden = not (host.is_terminal "stderr" or
                                           state.notebook)}, Line)
  loops[#loops + 1] = line
  return line
end

-- The iterator over what pairs(loader) gives, without the numbers.
local function over_loader(loader, label)
  local next_batch, state, key = pairs(loader)
  -- what comes from an iterator may have no length
  local known, n = pcall(function() return #loader end)
  local line = new_line(known and n or nil, label)
  local function pass(i, ...)
    if not i then line.done = line.n or key or 0 end
    key = i
    if i then line.done = i - 1 end
    line:tick()
    return ...
  end
  return function() return pass(next_batch(state, key)) end, nil, nil, line
end

-- nacre.progress(n, label), an iterator: 1, 2, ... n, or without an end; of a
-- DataLoader its batches.
function progress.call(_, n, label)
  local meta = type(n) == "table" and getmetatable(n)
  if meta and meta.__pairs and meta.__len then return over_loader(n, label) end
  if n ~= nil and not math.tointeger(n) or n and n < 0 then
    error("progress: the number of steps is an integer, not " ..
          tostring(n), 2)
  end
  n = n and math.tointeger(n)
  local line = new_line(n, label)
  return function(_, i)
    if i > 0 then
      line.done = i
      line:tick()
    end
    if not n or i < n then return i + 1 end
  end, nil, 0, line
end

return progress
