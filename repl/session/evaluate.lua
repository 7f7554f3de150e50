-- SPDX-License-Identifier: MIT
--
-- evaluate.lua - compiles a block, runs it and shows the result. User code runs
-- inside host.guard, where Ctrl-C can interrupt it. Modules that most blocks do
-- not need are required where they are used, to keep the start fast.

local host = require "nacre.host"
local input_block = require "nacre.input_block"
local lexer = require "nacre.lexer"
local messages = require "nacre.messages"
local results = require "nacre.last_results"
local session_log = require "nacre.session_log"
local settings = require "nacre.settings"
local state = require "nacre.state"
local styled = require "nacre.styled_output"
local units = require "nacre.units"
local user_hooks = require "nacre.user_hooks"

local evaluate = {}

-- Locals of the outer level of a block become variables of the session.
local told_of_locals = false

-- Keeps the locals of the function at `level` that `unit` lists.
local function keep_locals(unit, level)
  local i = 1
  while unit.locals do
    local name, value = debug.getlocal(level + 1, i)
    if not name then break end
    if unit.locals[name] and not name:find "^_+$" then -- these are results
      rawset(_G, name, value)
      unit.kept = unit.kept or name
    end
    i = i + 1
  end
end

local function report_kept(unit, name)
  if unit.note then
    messages.note(unit.note)
  elseif name and not told_of_locals then
    told_of_locals = true
    messages.note(name .. " is kept as a session variable; " ..
                  "use do ... end for a scratch local")
  end
end

-- The functions from an interrupted one to the prompt.
local function interrupted_functions(level)
  local globalname = require "nacre.stack_frames".global_name
  local names = {}
  for i = level + 1, level + 20 do
    local info = debug.getinfo(i, "Snf")
    if not info or info.what == "main" then break end
    local ours = info.source:find "^=nacre%."
    if info.what == "Lua" and not ours and #names < 4 then
      -- a function that the prompt calls last has its name from nobody
      names[#names + 1] = info.name or globalname(info.func)
    end
  end
  return table.concat(names, ", called from ")
end

-- Returns the error handler. It runs where the error happened, where there may
-- be no memory to load anything.
local function handler(unit)
  local capture = require "nacre.errors".capture
  local depth, thread = require "nacre.stack_frames".depth, coroutine.running()
  local base = depth(thread, 1) -- as deep as host.guard: the block stands on it
  return function(err)
    host.pause_interrupts()
    local level = depth(thread, 1) - base
    local info = debug.getinfo(level, "f")
    if info and info.func == unit.f then keep_locals(unit, level) end
    unit.where = interrupted_functions(2)
    return capture(err, 2)
  end
end

-- Adds a traceback to an error that is a text.
local function with_traceback(err)
  return type(err) == "string" and debug.traceback(err, 2) or err
end

-- Waits for the devices, so that their errors are reported with the line that
-- caused them. Returns false after reporting one.
function evaluate.sync_devices()
  local ok, err, interrupted = host.guard(with_traceback, host.synchronize)
  if not ok then
    messages.report(err, interrupted and
                         "interrupted: a device is still working")
  end
  return ok
end

-- Runs a compiled block. Returns its results (a table with n), or nil after
-- reporting an error.
function evaluate.run(unit)
  local function keep(...)
    unit.results = table.pack(...)
    keep_locals(unit, 2)
  end
  if unit.text then
    require "nacre.errors".remember(unit.f, unit.text)
  end
  local begin = host.clock()
  local got = table.pack(host.guard(handler(unit), unit.f, keep))
  unit.seconds = host.last_duration()
  if state.after_run then state.after_run() end
  report_kept(unit, unit.kept)
  if got[1] then
    local synced = evaluate.sync_devices()
    unit.seconds = unit.seconds + host.last_duration()
    local first = unit.kind == "expression" and 3 or 2 -- see input_block.lua
    return synced and
           (unit.results or table.pack(table.unpack(got, first, got.n))) or nil
  end
  local interrupted
  if got[3] then
    local place = unit.where ~= "" and " in " .. unit.where or ""
    interrupted = ("interrupted%s (%.1f s)"):format(place,
                                                    host.clock() - begin)
  end
  messages.report(got[2], interrupted)
  if not interrupted then evaluate.sync_devices() end
end

-- Compiles a text; nil after reporting an error.
function evaluate.compile(text)
  local unit = input_block.prepared(text)
  if unit.f then
    local wrong = require "nacre.runtime_errors".constant(text)
    return not wrong and unit or
           messages.fail(wrong, require "nacre.foreign_syntax".line(text))
  end
  if unit.kind == "method" then
    require "nacre.help".method(messages, unit.object, unit.name)
  elseif unit.kind ~= "empty" then
    messages.report_syntax(unit)
  end
end

-- Reports how long a block took, if the setting asks for it. The default is
-- for people at a terminal only, and an interrupted block has reported it
-- already.
local function report_time(seconds)
  local least = settings.get "timing"
  local terminal = host.is_terminal "stdout"
  if least == false or least ~= true and
     (seconds < least or state.interrupted or state.transcript or
      not terminal) then
    return
  end
  local stream = messages.remark_stream()
  local text = ("(%s)%s"):format(units.seconds(seconds),
                                 units.emulated_mark())
  io[stream]:write(styled.paint(text, "dim", stream), "\n")
end

-- For an input that is only the name of a nil variable or of a field that a
-- module does not have: a similar name or a command.
local function report_unknown(text)
  local name = text:match "^%s*([%a_][%w_]*)%s*$"
  local number = name and name:match "^_(%d+)$"
  if number then
    return messages.note(("input %s has no result"):format(number))
  end
  local line = not name and text:find "%[%-?%d+%]" and
               require "nacre.foreign_syntax".line(text)
  if line then
    return messages.note("elements count from 1; here " .. line, text)
  end
  local field = not name and
                require "nacre.runtime_errors".unknown_field(text)
  if field then messages.note(field, text) end
  if not name or rawget(_G, name) ~= nil or lexer.keywords[name] then return end
  local idea = require "nacre.runtime_errors".unknown_variable(name)
  -- what was a variable may well be nil
  if not idea and session_log.words(state.log)[name] then return end
  if idea or not name:find "^_" then
    messages.note(idea or ("no variable '%s'"):format(name), text)
  end
end

-- Notes on silent mistakes, except in a block of many lines, which is a
-- program.
local function report_silent(text)
  local ok, note = pcall(require "nacre.silent_mistakes".note, text)
  if ok and note then messages.note(note) end
  return ok and note
end

-- Compiles a text, runs it and shows the result.
function evaluate.input(text)
  local unit = evaluate.compile(text)
  local loops = unit and text:find "%f[%w_]while%f[^%w_]"
  local said = loops and report_silent(text)       -- it may never end
  local begin = host.clock()
  -- before the block needs its memory
  if unit then require "nacre.errors".drop() end
  local got = unit and evaluate.run(unit)
  local seconds = host.clock() - begin
  if got then
    results.remember(got[1], state.number)
    if not unit.hide then evaluate.print(got, text) end
    if got.n > 0 then
      user_hooks.tell("result", table.unpack(got, 1, got.n))
    end
    if not said then report_silent(text) end
    if got.n == 1 and got[1] == nil then report_unknown(text) end
  end
  if unit then report_time(seconds) end
end

-- Shows the results of a block; text is its source.
function evaluate.print(got, text)
  if got.n == 0 then return end
  local ok, err, interrupted = host.guard(with_traceback, styled.print, text,
                                          table.unpack(got, 1, got.n))
  if not ok then
    messages.report(err, interrupted and
                         "interrupted while the value was shown")
  end
end

-- Runs a command or a help request, protected like user code.
function evaluate.protected(f, ...)
  local ok, err, interrupted = host.guard(with_traceback, f, ...)
  if not ok then messages.report(err, interrupted and "interrupted") end
end

return evaluate
