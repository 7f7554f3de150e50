-- SPDX-License-Identifier: MIT
--
-- journal.lua - a package for the shell: notes, and the inputs that failed, in
-- a file. Put it beside the start-up file, and there
--
--   require("journal").open "notes.txt"

local journal = {}

local path

-- Adds a line to the journal.
local function write(mark, text)
  local file <close> = assert(io.open(path, "a"))
  file:write(mark, " ", (text:gsub("\n", "\n  ")), "\n")
end

-- The lines of the journal that contain a text.
local function show(text)
  for line in io.lines(path) do
    if line:find(text, 1, true) then print(line) end
  end
end

-- Keeps the journal in the file of this name.
function journal.open(name)
  path = name
  shell.command{
    name = "note", args = "words...:word", doc = "write a line to the journal",
    run = function(a) write("*", table.concat(a.words, " ")) end,
  }
  shell.command{
    name = "journal", args = "text:text=nil", paged = true, varies = true,
    doc = "show the journal, or its lines with TEXT",
    run = function(a) show(a.text or "") end,
  }
  shell.on("error", function(_, input) write("!", input) end)
end

return journal
