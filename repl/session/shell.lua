-- SPDX-License-Identifier: MIT
--
-- shell.lua - the session: takes the inputs of the prompt, of a test or of a
-- notebook, has them run, and keeps its log. What commands get as `shell` is
-- this module: its functions, and the fields of state.lua.

local host = require "nacre.host"
local dispatch = require "nacre.dispatch"
local evaluate = require "nacre.evaluate"
local messages = require "nacre.messages"
local results = require "nacre.last_results"
local state = require "nacre.state"
local styled = require "nacre.styled_output"
local user_hooks = require "nacre.user_hooks"

local nacre = package.loaded.nacre

local shell = {
  complain = messages.complain, aside = messages.aside, note = messages.note,
  remark_stream = messages.remark_stream,
  fail = messages.fail, compile = evaluate.compile, run = evaluate.run,
  print = evaluate.print, protected = evaluate.protected,
  sync_devices = evaluate.sync_devices,
}

function shell.start(transcript)
  state.transcript = transcript
  state.seed = nacre.initial_seed() -- to repeat the random numbers
  state.dtype = nacre.get_default_dtype()
  state.device = nacre.get_default_device()
  state.keep_initial_globals()
  state.provide("In", require "nacre.input_history".In)
end

-- Runs an input whatever it is: Lua, a command, a question or a system command.
function shell.dispatch(text) dispatch.run(shell, text) end

function shell.remove_variables()
  local count = state.remove_variables()
  results.forget()
  return count
end

-- Logs a submitted block and its outcome.
local function log(text, prompt, own)
  local entry = {text = text, failed = state.failed, prompt = prompt,
                 own = own, interrupted = state.interrupted,
                 number = not prompt and state.number or nil,
                 width = host.columns()}
  require "nacre.transcript".entry(shell, entry)
  state.log[#state.log + 1] = entry
end

-- The end of the input: it ends the reader first; returns false if there is
-- none.
function shell.ended()
  local reader = state.reader
  state.reader = nil
  if reader then log(reader.leave, reader.prompt, true) end
  return reader ~= nil and not reader.alone
end

-- Returns false when the reader was the last.
local function submit_to(reader, text)
  local own = reader.own(text)
  state.failed, state.interrupted = false, false
  evaluate.protected(reader.submit, text)
  if text:find "%S" then log(text, reader.prompt, own) end
  return not reader.alone or state.reader ~= nil
end

-- Modules beside the start-up file are found by require.
local function search_beside(path)
  local folder = path:match "^(.*)/" or "."
  package.path = ("%s;%s/?.lua;%s/?/init.lua"):format(package.path, folder,
                                                      folder)
end

-- Runs the start-up file: the named one, or the usual one if it exists. Errors
-- in it do not end the session.
function shell.startup(path)
  local usual = require "nacre.own_files".startup()
  if not path and not (usual and host.file_time(usual)) then return end
  search_beside(path or usual)
  local f, message = loadfile(path or usual, "t")
  if f then
    local ok, err, interrupted = host.guard(function(e)
      host.pause_interrupts()
      return require "nacre.errors".capture(e, 2)
    end, f)
    return ok or messages.report(err, interrupted and "interrupted", true)
  end
  if message:find("^cannot open") then return messages.fail(message) end
  state.failed = true
  messages.write_error("error: " .. message)
end

-- Runs a block and logs it.
local function run_input(text)
  user_hooks.tell("input", text)
  shell.dispatch(text)
  if state.failure then user_hooks.tell("error", state.failure, text) end
  results.check()
  if not state.leaving then require "nacre.reload".between(shell) end
  log(text)
end

-- Runs the inputs that :again asks for, as if they had been typed, until one
-- fails. The log has them in its place.
local function run_again(text, words)
  local history = require "nacre.input_history"
  local list, why = history.inputs(words, state.number or
                                   host.history_size() + 1)
  if not list then
    messages.fail(why)
    return log(text)
  end
  for _, input in ipairs(list) do
    if state.failed or state.leaving then break end
    if not state.transcript then
      io.stdout:write(styled.paint("> " .. input:gsub("\n", "\n>> "), "dim"),
                      "\n")
      if host.captured then host.captured() end -- the log has it as its input
    end
    run_input(input)
  end
end

-- Runs a submitted block; returns false when the session is over.
function shell.submit(text)
  state.correction = nil
  for _, said in ipairs(user_hooks.take_waiting()) do
    messages.complain(said)
  end
  if state.reader then return submit_to(state.reader, text) end
  if not text:find "%S" then return true end
  state.failed, state.interrupted, state.failure = false, false, nil
  local history = require "nacre.input_history"
  state.number = history.number(text)
  local again, words = history.words(text)
  if again then run_again(text, words) else run_input(text) end
  return not state.leaving
end

-- The session ends, and with it what the user can see.
function shell.left() user_hooks.tell "exit" end

function shell.prompt(_, n) return require "nacre.prompt_text".of(shell, n) end

return setmetatable(shell, {__index = state, __newindex = state})
