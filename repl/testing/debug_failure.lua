-- SPDX-License-Identifier: MIT
--
-- debug_failure.lua - --pdb stops a failing test in the shell's debugger, on
-- the terminal of the runner; the test goes on when the debugger is left.

local outcomes = require "nacre.outcomes"
local errors = require "nacre.errors"
local process = require "nacre.process"

local debug_failure = {on = nil} -- the job, if it is to stop

-- Opens a prompt with the debugger until that, or the shell, is left.
local function ask(banner)
  local shell = require "nacre.shell"
  io.stdout:flush()
  process.take_terminal(true)
  if not shell.seed then shell.start(false) end
  local transcript = shell.transcript
  shell.transcript = false
  io.stdout:write("\n", banner, "\n")
  if errors.stack() and #errors.stack() > 0 then
    require "nacre.debugger".command(shell, "")
    shell.reader.alone = true
  else
    shell.note "the session is in the state after this line; Ctrl-D continues"
  end
  process.read_lines()
  shell.reader, shell.leaving = nil, false
  shell.transcript = transcript
  process.take_terminal(false)
end

-- Stops at an error, whose stack is kept.
function debug_failure.at(text)
  local job = debug_failure.on
  ask(("FAIL %s  %s  %s\n%s"):format(
    job.unit.path, debug_failure.test or "", job.title,
    text))
end

local function lines(list, mark)
  local out = {}
  for k, line in ipairs(list) do out[k] = mark .. line .. "\n" end
  return table.concat(out)
end

-- Stops at a step of a session whose output differs, from a position on.
function debug_failure.step(step, from)
  local job = debug_failure.on
  local got, same = outcomes.step(job, step, process.output(from))
  if same then return end
  ask(("FAIL %s:%d  %s\n> %s\n%s%s"):format(job.unit.path, step.line, job.title,
    step.text:gsub("\n", "\n>> "), lines(step.expect, "- "),
    lines(got, "+ ")))
end

return debug_failure
