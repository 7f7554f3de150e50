-- SPDX-License-Identifier: MIT
--
-- pager.lua - shows the lists of the shell that are longer than the window, a
-- part at a time. What user code prints is never paged.

local full_screen = require "nacre.full_screen"
local host = require "nacre.host"
local settings = require "nacre.settings"

local pager = {}

local View = {}
View.__index = View

local function plain(line) return (line:gsub("\27%[[%d;]*m", "")) end

-- A line with what is searched for marked.
local function marked(line, part)
  local text, out, at = plain(line), {}, 1
  local from, to = text:find(part, 1, true)
  if not from then return line end
  while from do
    out[#out + 1] = text:sub(at, from - 1) ..
                    full_screen.styled(text:sub(from, to), "7")
    at = to + 1
    from, to = text:find(part, at, true)
  end
  return table.concat(out) .. text:sub(at)
end

function View:lines(rows)
  local list = {}
  self.rows = rows
  self.top = math.max(1, math.min(self.top, #self.text - rows + 1))
  for i = 1, math.min(rows, #self.text) do
    local line = self.text[self.top + i - 1]
    list[i] = self.part and marked(line, self.part) or line
  end
  return list, self.skip
end

function View:status()
  return ("lines %d-%d of %d   q leaves, / searches"):format(self.top,
    math.min(self.top + self.rows - 1, #self.text), #self.text)
end

-- Goes to the next line with the part, downwards or upwards, or says that
-- there is none.
function View:search(step)
  if not self.part then return end
  for i = 1, #self.text do
    local at = (self.top - 1 + step * i) % #self.text + 1
    if plain(self.text[at]):find(self.part, 1, true) then
      self.top = at
      return
    end
  end
  self.message = ("'%s' is not there"):format(self.part)
end

local MOVES = {
  down = 1, j = 1, enter = 1, up = -1, k = -1, pagedown = "page",
  [" "] = "page", f = "page", pageup = "-page", b = "-page", d = "half",
  u = "-half"}

function View:key(key)
  local page = math.max(1, self.rows - 1)
  local size = {page = page, ["-page"] = -page, half = page // 2,
                ["-half"] = -page // 2}
  if MOVES[key] then
    self.top = self.top + (size[MOVES[key]] or MOVES[key])
  elseif key == "home" or key == "g" or key == "top" then
    self.top = 1
  elseif key == "end" or key == "G" or key == "bottom" then
    self.top = #self.text
  elseif key == "right" or key == "l" then
    self.skip = self.skip + 8
  elseif key == "left" or key == "h" then
    self.skip = math.max(0, self.skip - 8)
  elseif key == "n" or key == "N" then
    self:search(key == "n" and 1 or -1)
  elseif key == "/" then
    full_screen.ask(self, "/", function(text)
      self.part = text ~= "" and text or self.part
      self.top = self.top - 1
      self:search(1)
    end)
  end
end

-- The lines of a text.
local function split(text)
  local list = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do
    list[#list + 1] = line
  end
  return list
end

-- Runs the user's pager on a text; false after reporting an error.
local function external(shell, command, text)
  local ok, why = host.page_text(command, (text:gsub("\n$", "")))
  if not ok then shell.fail("the pager failed: " .. why) end
  return ok
end

-- Shows a text in the window, in that of the user's pager, or as it is.
function pager.show(shell, text)
  local lines, how = split(text), settings.get "pager"
  local shown
  if how ~= "auto" then
    shown = external(shell, how, text)
  else
    shown = full_screen.run(setmetatable({text = lines, top = 1, skip = 0},
                                         View))
  end
  if not shown then return io.stdout:write(text) end
  if host.keep_output then host.keep_output(text) end
  shell.aside(("(%d lines)"):format(#lines))
end

local function is_long(text)
  local rows = host.viewer_size()
  return select(2, text:gsub("\n", "")) >= rows
end

-- Is there a window, and somebody in front of it?
local function is_wanted(shell)
  return settings.get "pager" ~= "off" and not shell.transcript and
         host.is_terminal "stdout" and host.is_terminal "stdin"
end

-- Runs f(...), protected like user code, and shows what it prints.
function pager.run(shell, f, ...)
  if not is_wanted(shell) then return shell.protected(f, ...) end
  local text, held = require "nacre.diverted_output".of(true, shell.protected,
                                                        f, ...)
  if is_long(text) then
    shell.protected(pager.show, shell, text)
  else
    io.stdout:write(text)
  end
  for _, message in ipairs(held) do shell.complain(message) end
end

return pager
