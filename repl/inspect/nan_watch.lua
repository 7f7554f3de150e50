-- SPDX-License-Identifier: MIT
--
-- nan_watch.lua - :nan, the first operation that makes nan or inf from finite
-- input: a warning, or an error, with the element and what to do about it.

local errors = require "nacre.errors"
local inspect = require "nacre.styled_output"
local watching = require "nacre.op_listeners"

local nanwatch = {}

local mode = "off"

local says = {
  off = "nothing is looked for",
  warn = "an operation that makes nan or inf from finite input is told of",
  trap = "an operation that makes nan or inf from finite input is an error",
}

--
-- Warnings, one for a place in the program.  A line at the prompt is a new
-- place each time.
--
local told = {}

local function place(warning)
  local file = warning.file or "?"
  if file == "stdin" then
    local shell = package.loaded["nacre.shell"]
    file = file .. (shell and #shell.log or 0)
  end
  return ("%s:%d:%s"):format(file, warning.line or 0, warning.op or "")
end

local function tell(_, warning)
  local at = place(warning)
  if told[at] then return end
  told[at] = true
  io.stdout:flush()
  local shell = package.loaded["nacre.shell"]
  local stream = shell and shell.transcript and "stdout" or "stderr"
  local head = inspect.paint("warning:", "red", stream)
  io[stream]:write(errors.warning(warning, head), "\n")
end

function nanwatch.set(new)
  mode = new
  told = {}
  watching.stop "nan"
  if mode ~= "off" then
    watching.start("nan", mode == "trap" and "nan trap" or "nan", tell)
  end
end

function nanwatch.run(shell, text)
  if text ~= "" then
    if not says[text] then return shell.fail ":nan takes off, warn or trap" end
    nanwatch.set(text)
  end
  io.stdout:write(("nan %s: %s\n"):format(mode, says[mode]))
end

-- shell.nan(mode): sets it; gives what it was.
function nanwatch.call(new)
  local was = mode
  if new ~= nil then
    if not says[new] then error("nan takes off, warn or trap", 2) end
    nanwatch.set(new)
  end
  return was
end

return nanwatch
