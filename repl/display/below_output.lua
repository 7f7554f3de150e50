-- SPDX-License-Identifier: MIT
--
-- below_output.lua - what a running loop shows under the output of the program:
-- a line of progress, a plot. While something is shown, print and write erase
-- it first; whoever shows it draws it again.

local host = require "nacre.host"

local below = {}

local file = getmetatable(io.stdout).__index
local places = {{_G, "print"}, {io, "write"}, {file, "write"}}
local write = file.write      -- that of what is shown itself
local shown = {}              -- what is shown; the last was shown last
local watching = false
local open = false            -- has the last line of the output no end?

-- Erases all that is shown, from the last one up.
function below.erase()
  for i = #shown, 1, -1 do shown[i]:erase() end
end

-- Does writing these texts leave a line without an end at the terminal? nil if
-- nothing is written there.
local function leaves_open(to, ...)
  if to ~= io.stdout and to ~= io.stderr then return nil end
  for i = select("#", ...), 1, -1 do
    local text = tostring((select(i, ...)))
    if text ~= "" then return text:sub(-1) ~= "\n" end
  end
end

-- The function at the place p, which first erases what is shown.
local function erasing(p)
  local f = p.was
  return function(...)
    local left = false        -- print ends the line
    below.erase()
    if p[1] == file then left = leaves_open(...)
    elseif p[1] == io then left = leaves_open(io.output(), ...) end
    if left ~= nil then open = left end
    return f(...)
  end
end

local function watch()
  watching, open = true, false
  for _, p in ipairs(places) do
    p.was = rawget(p[1], p[2])
    p.ours = type(p.was) == "function" and erasing(p) or nil
    if p.ours then rawset(p[1], p[2], p.ours) end
  end
end

local function unwatch()
  watching = false
  for _, p in ipairs(places) do
    if p.ours and rawget(p[1], p[2]) == p.ours then
      rawset(p[1], p[2], p.was)
    end
    p.ours = nil
  end
end

-- Adds what is shown to the list; its method erase() removes it from the
-- screen, or does nothing if it is not there.
function below.add(item)
  for _, other in ipairs(shown) do if other == item then return end end
  shown[#shown + 1] = item
  if not watching and host.is_terminal "stdout" then watch() end
end

function below.remove(item)
  for i = #shown, 1, -1 do
    if shown[i] == item then table.remove(shown, i) end
  end
  if #shown == 0 and watching then unwatch() end
end

-- Writes to stderr what is shown itself, on a line of its own.
function below.write(...)
  if open then
    open = false
    io.stdout:flush()
    write(io.stderr, "\n")
  end
  write(io.stderr, ...)
end

return below
