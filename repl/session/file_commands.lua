-- SPDX-License-Identifier: MIT
--
-- file_commands.lua - the commands :cd, :run, :load and :edit.

local host = require "nacre.host"

local file_commands = {}

-- Splits a line into words; quotes keep blanks.
local function words(text)
  local list, at = {}, 1
  while true do
    local quote, stop
    at = text:find("%S", at)
    if not at then return list end
    quote = text:match("^[\"']", at)
    if quote then
      stop = text:find(quote, at + 1, true)
      if not stop then return nil, "the quote is not closed" end
      list[#list + 1] = text:sub(at + 1, stop - 1)
      at = stop + 1
    else
      list[#list + 1] = text:match("^%S+", at)
      at = at + #list[#list]
    end
  end
end

file_commands.words = words

-- A name as the user writes it, with ~ for the home folder, as a path.
function file_commands.path(name)
  local home = name:find "^~/" and os.getenv "HOME"
  return home and home .. name:sub(2) or name
end

-- :cd [FOLDER]
function file_commands.cd(shell, text)
  local list, why = words(text)
  if list and #list > 1 then why = ":cd takes one folder" end
  local folder = list and list[1]
  if folder == "~" then folder = os.getenv "HOME" end
  if why then return shell.fail(why) end
  local now
  now, why = host.working_folder(folder and file_commands.path(folder))
  if not now then return shell.fail(why) end
  io.stdout:write(require "nacre.lua_values".escape_controls(now), "\n")
end

local last                    -- the words of the last :run

-- Runs a file in the session, which keeps its globals. While it runs, `arg` is
-- as if the file had been started as a program.
local function run(shell, list)
  local f, why = loadfile(file_commands.path(list[1]), "t")
  if not f then return nil, why end
  local outer, mine = rawget(_G, "arg"), {[0] = list[1]}
  for i = 2, #list do mine[i - 1] = list[i] end
  rawset(_G, "arg", mine)
  local got = shell.run {f = function() return f(table.unpack(list, 2)) end}
  if rawequal(rawget(_G, "arg"), mine) then rawset(_G, "arg", outer) end
  return got or false
end

-- :run FILE [ARGUMENTS]; without a file, the last one again
function file_commands.run(shell, text)
  local list, why = words(text)
  if not list then return shell.fail(why) end
  if #list == 0 then list = last end
  if not list then return shell.fail ":run needs a file" end
  last = list
  local got
  got, why = run(shell, list)
  if got == nil then
    return shell.fail(why)
  end
  if got then shell.print(got, "") end
end

-- shell.run(FILE, ...): what the file returns
function file_commands.callrun(name, ...)
  local f, why = loadfile(file_commands.path(name), "t")
  if not f then error(why, 2) end
  return f(...)
end

local function prefill(shell, text)
  text = text:gsub("\r\n", "\n"):gsub("%s+$", "")
  if text:find "\0" then return shell.fail "this is not a text file" end
  if not host.prefill(text) then
    shell.fail "there is no line to edit here; :run FILE runs the file"
  end
end

-- :load FILE: puts its text into the input line, or restores the variables of
-- a .safetensors file
function file_commands.load(shell, text)
  local list, why = words(text)
  if not list or #list ~= 1 then
    return shell.fail(why or ":load needs one file")
  end
  local content
  local path = file_commands.path(list[1])
  if require "nacre.workspace".is_file(path) then
    local ok, wrong = require "nacre.workspace".load(shell, path)
    return ok or shell.fail(wrong)
  end
  content, why = require "nacre.files".read(path)
  if not content then return shell.fail("cannot open " .. why) end
  local known, archive = pcall(package.loaded.nacre._archive, path)
  if known and archive then
    return shell.fail "this is not a text file; nacre.load(FILE) reads it"
  end
  prefill(shell, content)
end

-- Where a function is defined: file and line, or its text if it was typed.
local function definition(name)
  local value = require "nacre.lookup".value(name)
  if type(value) ~= "function" then return nil end
  local info = debug.getinfo(value, "S")
  if info.source:find "^@" then
    return info.source:sub(2), info.linedefined
  end
  return nil, nil, require "nacre.source_view".text(value)
end

local function last_block(shell)
  for i = #shell.log, 1, -1 do
    local text = shell.log[i].text
    if not text:find "^%s*[:%%?!]" and not shell.log[i].prompt then
      return text
    end
  end
  return ""
end

-- Opens a block in the editor and puts the result into the input line.
local function edit_block(shell, text)
  local edited = host.edit_text(text)
  if not edited then return shell.fail "the editor failed" end
  if edited:find "%S" then prefill(shell, edited) end
end

local function edit_file(shell, path, line)
  local before = host.file_time(path)
  local ok, why = host.edit_file(path, line)
  if not ok then return shell.fail("the editor failed: " .. why) end
  local after = host.file_time(path)
  local name = after and after ~= before and
               require "nacre.reload".file(shell, path)
  if name then shell.note("reloaded " .. name) end
end

-- :edit [NAME]: a function where it was written, a file, or the last block
function file_commands.edit(shell, text)
  if not host.is_terminal "stdin" then
    return shell.fail ":edit needs a terminal"
  end
  if text == "" then return edit_block(shell, last_block(shell)) end
  local path, line, block = definition(text)
  if block then return edit_block(shell, block) end
  local name = words(text)
  if path or name and #name == 1 then
    return edit_file(shell, path or file_commands.path(name[1]), line)
  end
  shell.fail ":edit takes the name of a function or of a file"
end

return file_commands
