-- SPDX-License-Identifier: MIT
--
-- files.lua - reads and writes files of text.

local files = {}

-- The contents of a file, or nil, why it cannot be read, and errno.
function files.read(path)
  local f, why, code = io.open(path, "rb")
  if not f then return nil, why, code end
  local text
  text, why, code = f:read "a"
  f:close()
  return text, why and path .. ": " .. why, code
end

-- Writes a file; an error if that fails.
function files.write(path, text)
  local ok, why = require "nacre.host".write_file(path, text)
  if not ok then error("cannot write " .. why, 0) end
end

-- A word as a shell reads it.
function files.quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- The same as Lua's compiler takes it: without a byte order mark, and without
-- the text of a first line that begins with "#".
function files.source(text)
  return (text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "", 1))
end

-- The lines of a text; one line end at its end counts for nothing.
function files.lines(text)
  local list = {}
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\r?\n" do
    list[#list + 1] = line
  end
  return list
end

-- A name from a file without characters that act on a terminal.
function files.shown(name)
  if not utf8.len(name) then name = name:gsub("[\128-\255]", "?") end
  return (name:gsub("%c", function(c) return ("\\x%02x"):format(c:byte()) end))
end

return files
