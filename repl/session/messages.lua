-- SPDX-License-Identifier: MIT
--
-- messages.lua - what the session says besides results: notes, failures of
-- commands, errors. A notebook replaces messages.write_error.

local host = require "nacre.host"
local state = require "nacre.state"
local styled = require "nacre.styled_output"
local user_hooks = require "nacre.user_hooks"

local messages = {}

local function error_stream()
  return state.transcript and "stdout" or "stderr"
end

-- Writes an error or a note; transcripts contain them. While the output goes
-- to a file, they wait in state.held.
function messages.complain(text)
  if state.held then
    table.insert(state.held, text)
    return
  end
  io.stdout:flush()
  local out = state.transcript and io.stdout or io.stderr
  text = require "nacre.wrap_lines".text(text, error_stream())
  out:write(text, text:sub(-1) == "\n" and "" or "\n")
  out:flush()
end

local function escaped(text)
  return require "nacre.lua_values".escape_controls(text)
end

-- The stream for remarks on results: that of the results where people or files
-- take both, else another one.
function messages.remark_stream()
  return (host.is_terminal "stdout" or state.transcript or state.held) and
         "stdout" or "stderr"
end

-- Writes a remark that does not belong to the session's output.
function messages.aside(text)
  io.stdout:flush()
  io.stderr:write(styled.paint(escaped(text), "dim", "stderr"), "\n")
end

-- Writes the text of an error; a notebook sends it in its own way.
function messages.write_error(text) messages.complain(text) end

-- The hint of the user's functions for what is wrong, or nil: `kind' of error,
-- and what is known of it.
local function own_hint(kind, o)
  if not user_hooks.has_hints() then return nil end
  local text = user_hooks.hint{
    kind = kind, message = o.message, code = o.code, op = o.op, file = o.file,
    line = o.line, source = o.source, hint = o.hint}
  return text and escaped(text)
end

-- The text of an error with such a hint.
local function with_hint(text, hint)
  if not hint then return text end
  return ("%s\n  %s %s"):format(text, styled.paint("hint:", "cyan",
                                                   error_stream()), hint)
end

-- A remark; `typed' is the line that it may correct.
function messages.note(text, typed)
  state.correction = state.correction or
    require "nacre.corrected_line".of({message = text}, typed or "")
  messages.complain(styled.paint("(" .. escaped(text) .. ")", "dim",
                                 error_stream()))
end

-- Reports the failure of a command.
function messages.fail(text, line)
  state.correction = line or
    require "nacre.corrected_line".of({message = text}, "")
  state.failed, state.failure = true, text
  local hint = own_hint("command", {message = text})
  text = styled.paint("error:", "red", error_stream()) .. " " .. escaped(text)
  messages.write_error(with_hint(text, hint))
end

local function options()
  return {color = host.has_color(error_stream()), width = host.columns()}
end

-- The message of the operation that Ctrl-C interrupted, or nil.
local function interrupted_operation(err, interrupted)
  local text = type(err) == "table" and tostring(err.message)
  local progress = text and text:match "interrupted (%d.* into .*)"
  if progress then return interrupted .. ", " .. progress end
  text = text and (text:match "%S+ is still running .*" or
                   text:match "%S+ was writing to .*")
  return text and "interrupted: " .. text
end

local function report_interruption(err, interrupted)
  if state.interrupted then return end -- said already
  state.interrupted = true
  -- the terminal has shown ^C where the cursor was; ranks have none for stdin
  local typed = host.is_terminal "stdin" and host.is_terminal()
  if typed then io.stdout:write "\n" end
  messages.write_error(interrupted_operation(err, interrupted) or interrupted)
end

-- Reports an error that host.guard has caught. `interrupted' is what to say if
-- Ctrl-C caused it; `script': it comes from a file, not from the prompt.
function messages.report(err, interrupted, script)
  state.failed = true
  if interrupted then return report_interruption(err, interrupted) end
  local errors, opts = require "nacre.errors", options()
  state.failure = type(err) == "table" and err.message or err
  opts.script = script
  local captured = type(err) == "table" and err.frames ~= nil
  local hint = own_hint("error", captured and err or {message = tostring(err)})
  if captured and hint then err.hint, err.whole, hint = hint, true, nil end
  local ok, text = host.guard(tostring, errors.render, err, opts)
  state.correction = ok and errors.correction(err)
  messages.write_error(with_hint(ok and text or "error: " .. tostring(text),
                                 hint))
end

-- Reports why a block does not compile, see input_block.lua.
function messages.report_syntax(unit)
  state.failed, state.failure = true, unit.message
  local text, line = require "nacre.errors".syntax(unit.message, unit.text,
                                                   options())
  local hint = own_hint("syntax", {message = unit.message, source = unit.text})
  state.correction = line
  messages.write_error(with_hint(text, hint))
end

return messages
