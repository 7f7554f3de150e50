-- SPDX-License-Identifier: MIT
--
-- transcript.lua - :save --transcript and --record write the session as it was
-- shown, input and output, to a file that `nacre --test` can run.

local host = require "nacre.host"
local process = require "nacre.process"
local units = require "nacre.units"

local transcript = {}

local say = require "nacre.wrap_lines".tell

local KEPT = 1 << 22          -- bytes of output that the log holds

local file, path              -- where the session is recorded
local size, oldest = 0, 1     -- of the output in the log

-- The output of an entry; "..." if it is not known.
function transcript.output(entry)
  if not entry.said then return "...\n" end
  local text = require "nacre.styled_output".uncoloured(entry.said)
  if text ~= "" and text:sub(-1) ~= "\n" then text = text .. "\n" end
  return text .. (entry.cut and "...\n" or "")
end

-- A line of the session as it was typed.
function transcript.input(entry)
  return (entry.prompt or "> ") .. entry.text:gsub("\n", "\n>> ")
end

local function block(entry)
  return transcript.input(entry) .. "\n" .. transcript.output(entry)
end

-- Does the output of a line come from outside (a child process, a file)?
function transcript.is_outside(text)
  if text:find "^%s*!" or text:find "os%.execute" then return true end
  local commands = require "nacre.commands"
  local command, rest = commands.of(text)
  return command and commands.varies(command, rest)
end

-- Is a line about the recording itself?
local function ours(entry)
  if entry.own then return false end
  local command, rest = require "nacre.commands".of(entry.text)
  return command and command.name == "save" and
         rest:find "%-%-record" ~= nil
end

local function stop(shell, why)
  file:close()
  local was = path
  file, path = nil, nil
  if why then shell.fail(("cannot write %s: %s"):format(was, why)) end
  return was
end

-- Called with each new entry of the log.
function transcript.entry(shell, entry)
  if not host.captured then return end -- nothing is captured
  entry.said, entry.cut = host.captured()
  if transcript.is_outside(entry.text) or
     entry.text:find "%f[%w_]warn%s*[%('\"]" then
    entry.said = nil                    -- warnings are on stderr
  end
  size = size + #(entry.said or "")
  while size > KEPT do
    local old = shell.log[oldest]
    size, oldest = size - #(old.said or ""), oldest + 1
    old.said = nil
  end
  if not file or ours(entry) then return end
  local ok, why = file:write(block(entry))
  if ok then ok, why = file:flush() end
  if not ok then stop(shell, why) end
end

local function create(shell, name)
  name = require "nacre.file_commands".path(name)
  if process.real_path(name) then
    shell.fail(name .. " exists already")
    return nil
  end
  local f, why = io.open(name, "wb")
  if not f then shell.fail("cannot write " .. why) end
  return f, name
end

-- From now on, until `path` is "off"; without one says where it is written.
function transcript.record(shell, name)
  if name == "off" or not name then
    if not file then
      return shell.fail(name == "off" and "nothing is being recorded" or
                        ":save --record needs a file")
    end
    if name == "off" then
      say(stop(shell) .. " is closed")
    else
      say("recording to " .. path)
    end
    return
  end
  local f
  f, name = create(shell, name)
  if not f then return end
  if file then stop(shell) end
  file, path = f, name
end

-- The session so far.
function transcript.write(shell, text)
  if #shell.log == 0 then return shell.fail "there is nothing to write" end
  local f, name = create(shell, text)
  if not f then return end
  local ok, why = f:write("--: seed ", shell.seed, "\n")
  for _, entry in ipairs(shell.log) do
    ok, why = f:write(block(entry))
    if not ok then break end
  end
  local closed, late = f:close()
  if not ok or not closed then
    return shell.fail(("cannot write %s: %s"):format(name, why or late))
  end
  say(("%s: %s"):format(name, units.count(#shell.log, "input")))
end

return transcript
