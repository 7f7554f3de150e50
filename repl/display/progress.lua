-- SPDX-License-Identifier: MIT
--
-- progress.lua - for i in nacre.progress(n) do ... end shows on stderr how far
-- the loop is, its rate and the time left. Without a terminal it shows
-- nothing.

local host = require "nacre.host"
local units = require "nacre.units"

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
  return table.concat(parts, "  "):sub(1, host.columns() - 1)
end

-- Output of the loop replaces the line, which is drawn again after it: while a
-- line is shown, print and write erase it first.
local file = getmetatable(io.stdout).__index
local places = {{_G, "print"}, {io, "write"}, {file, "write"}}
local write = file.write  -- that of the line itself
local showing             -- the line that is shown
local watching = 0        -- loops that have shown one

local function erasing(f)
  return function(...)
    if showing then showing:write "" end
    return f(...)
  end
end

local function watch()
  for _, p in ipairs(places) do
    p.was = rawget(p[1], p[2])
    p.ours = type(p.was) == "function" and erasing(p.was) or nil
    if p.ours then rawset(p[1], p[2], p.ours) end
  end
end

local function unwatch()
  for _, p in ipairs(places) do
    if p.ours and rawget(p[1], p[2]) == p.ours then
      rawset(p[1], p[2], p.was)
    end
    p.ours = nil
  end
end

-- Erases with blanks, which every terminal can do.
function Line:write(text)
  local pad = (" "):rep((self.shown or 0) - #text)
  write(io.stderr, "\r", text, pad, "\r")
  self.shown = #text > 0 and #text or nil
  showing = self.shown and self or nil
end

function Line:tick()
  local now = host.clock()
  if now < self.due then return end
  self.due = now + AGAIN
  io.stdout:flush()
  if not self.watching and host.is_terminal "stdout" then
    self.watching = true
    watching = watching + 1
    if watching == 1 then watch() end
  end
  if showing and showing ~= self then showing:write "" end
  self.told = true
  self:write(self:text(now))
end

-- The loop has ended, or was left by break, an error or Ctrl-C.
function Line:__close()
  if self.watching then
    self.watching = false
    watching = watching - 1
    if watching == 0 then unwatch() end
  end
  if not self.told then return end
  if self.shown then self:write "" end
  local now = host.clock()
  local parts = {self.label or nil}
  parts[#parts + 1] = self.n and self.done < self.n and
                      ("%d of %d"):format(self.done, self.n) or
                      tostring(self.done)
  io.stderr:write(("%s in %s  %s\n"):format(table.concat(parts, "  "),
    units.seconds(now - self.begin), rate(self.done, now - self.begin)))
end

-- The line of n steps, or of an unknown number; nil without a terminal.
local function new_line(n, label)
  if not host.is_terminal "stderr" then return nil end
  local now = host.clock()
  return setmetatable({n = n, label = label, done = 0, begin = now,
                       due = now + FIRST}, Line)
end

-- The iterator over what pairs(loader) gives, without the numbers.
local function over_loader(loader, label)
  local next_batch, state, key = pairs(loader)
  local line = new_line(#loader, label)
  local function pass(i, ...)
    key = i
    if line then
      line.done = i and i - 1 or line.n
      line:tick()
    end
    return ...
  end
  return function() return pass(next_batch(state, key)) end, nil, nil, line
end

-- nacre.progress(n, label), an iterator: 1, 2, ... n, or without an end; of a
-- DataLoader its batches.
function progress.over(n, label)
  local meta = type(n) == "table" and getmetatable(n)
  if meta and meta.__pairs and meta.__len then return over_loader(n, label) end
  if n ~= nil and not math.tointeger(n) or n and n < 0 then
    error("progress: the number of steps is an integer, not " ..
          tostring(n), 2)
  end
  n = n and math.tointeger(n)
  local line = new_line(n, label)
  return function(_, i)
    if line and i > 0 then
      line.done = i
      line:tick()
    end
    if not n or i < n then return i + 1 end
  end, nil, 0, line
end

return progress
