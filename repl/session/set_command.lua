-- SPDX-License-Identifier: MIT
--
-- set_command.lua - :set, shell.set, and the line that :set! writes to the
-- start-up file. The settings are in settings.lua.

local host = require "nacre.host"
local own_files = require "nacre.own_files"
local settings = require "nacre.settings"

local set_command = {}

-- What is said of a value that was set at the prompt.
local function set_and_tell(row, word)
  local said = settings.change(row, word)
  if type(said) == "string" then io.stdout:write(said, "\n") end
end

-- shell.set(NAME[, VALUE]) or shell.set{NAME = VALUE, ...}; gives the value.
function set_command.call(name, value)
  if type(name) == "table" then
    for k, v in pairs(name) do set_command.call(k, v) end
    return
  end
  local row = settings.row(tostring(name))
  if value ~= nil then settings.change(row, value) end
  return settings.get(row.name)
end

--
-- The start-up file
--

-- The text of a file in which `line` replaces the one that begins with
-- `start`.
local function replace_line(text, start, line)
  local list, done = {}, false
  for old in text:gmatch "([^\n]*)\n?" do
    if old:sub(1, #start) == start then
      if not done then list[#list + 1] = line end
      done = true
    else
      list[#list + 1] = old
    end
  end
  while list[#list] == "" do list[#list] = nil end
  if not done then list[#list + 1] = line end
  return table.concat(list, "\n") .. "\n"
end

-- Writes a setting to the start-up file and returns the file's name.
local function write_to_file(row)
  local path = own_files.startup() or
               error("there is no home folder to keep it in", 0)
  host.makefolders(path:match "^(.*)/", true)
  local text, wrong, code = require "nacre.files".read(path)
  local ENOENT <const> = 2
  if not text and code ~= ENOENT then
    error("cannot read " .. wrong, 0) -- or it would be lost
  end
  local start = ('shell.set("%s", '):format(row.name)
  local line = ('%s%q)'):format(start, row.show(settings.get(row.name)))
  local ok, why = host.write_file(path, replace_line(text or "", start, line))
  if not ok then error("cannot write " .. why, 0) end
  return path
end

local function tell(row)
  require "nacre.wrap_lines".say(("  %-12s %-9s %s"):format(row.name,
    row.show(settings.get(row.name)), row.doc))
end

-- :set [NAME [VALUE]], :set! NAME VALUE
function set_command.run(shell, text)
  local always, name, value = text:match "^(!?)%s*(%S*)%s*=?%s*(.-)$"
  if name == "" then
    for _, r in ipairs(settings.list) do tell(settings.row(r[1])) end
    return
  end
  local ok, why = pcall(function()
    local row = settings.row(name)
    if value ~= "" then set_and_tell(row, value) end
    if always == "!" then
      require "nacre.wrap_lines".say(("%s = %s in %s"):format(row.name,
        row.show(settings.get(row.name)), write_to_file(row)))
    elseif value == "" then
      tell(row)
      if name == "device" then require "nacre.session_commands".devices() end
    end
  end)
  if not ok and type(why) == "table" then error(why, 0) end -- it has a hint
  if not ok then shell.fail(tostring(why)) end
end

return set_command
