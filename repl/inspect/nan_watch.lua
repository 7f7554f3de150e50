-- SPDX-License-Identifier: MIT
--
-- nan_watch.lua - :nan reports the first operation that makes nan or inf of
-- finite operands, as a warning or an error, with the element and a hint.

local errors = require "nacre.errors"
local state = require "nacre.state"
local styled = require "nacre.styled_output"
local listeners = require "nacre.op_listeners"

local nan_watch = {}

local mode = "off"

local says = {
  off = "nan and inf are not checked",
  warn = "an operation that makes nan or inf from finite input is reported",
  trap = "an operation that makes nan or inf from finite input is an error",
}

-- Warnings, one for each position in the program. A line at the prompt is a
-- new position each time.
local warned_at = {}

local function place(warning)
  local file = warning.file or "?"
  if file == "stdin" then file = file .. #state.log end
  return ("%s:%d:%s"):format(file, warning.line or 0, warning.op or "")
end

local function tell(_, warning)
  if not warning then return end
  local at = place(warning)
  if warned_at[at] then return end
  warned_at[at] = true
  io.stdout:flush()
  local stream = state.transcript and "stdout" or "stderr"
  local head = styled.paint("warning:", "red", stream)
  io[stream]:write(require "nacre.wrap_lines".text(
    errors.warning(warning, head), stream), "\n")
end

function nan_watch.set(new)
  mode = new
  warned_at = {}
  listeners.stop "nan"
  if mode ~= "off" then
    listeners.start("nan", "steps lines nan" ..
                           (mode == "trap" and " trap" or ""), tell)
  end
end

function nan_watch.run(shell, text)
  if text ~= "" then
    if not says[text] then return shell.fail ":nan takes off, warn or trap" end
    nan_watch.set(text)
  end
  require "nacre.wrap_lines".say(("nan %s: %s"):format(mode, says[mode]))
end

-- shell.nan(mode) sets the mode and returns the old one.
function nan_watch.call(new)
  local was = mode
  if new ~= nil then
    if not says[new] then error("nan takes off, warn or trap", 2) end
    nan_watch.set(new)
  end
  return was
end

return nan_watch
