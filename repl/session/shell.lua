-- SPDX-License-Identifier: MIT
--
-- shell.lua - the session: compiles a block, runs it and shows the result.
-- shell_hooks.c calls it. User code runs inside host.guard, where Ctrl-C can
-- interrupt it. Modules that the prompt does not need are required where they
-- are used, to keep the start fast.

local host = require "nacre.host"
local styled = require "nacre.styled_output"
local lexer = require "nacre.lexer"
local results = require "nacre.last_results"
local settings = require "nacre.settings"
local input_block = require "nacre.input_block"
local session_log = require "nacre.session_log"

local nacre = package.loaded.nacre

-- log: the submitted blocks, {text =, failed =, interrupted =, said = output,
-- width = of the screen, prompt = of a reader, own = a word of that reader,
-- number = in the history}.
local shell = {transcript = false, failed = false, leaving = false,
               log = session_log.new()}

-- The initial globals are not the user's, unless he changes them; nor are the
-- results.
local builtin, RESULT = {}, {}

function shell.isbuiltin(name)
  local v = builtin[name]
  return v ~= nil and (v == RESULT or rawequal(v, rawget(_G, name)))
end

-- Is this the name of an initial global, whatever its value is now? Adds one.
function shell.is_own_name(name) return builtin[name] ~= nil end
function shell.provide(name, value) builtin[name], _G[name] = value, value end

function shell.userglobals()
  local names = {}
  for k in next, _G do
    if type(k) == "string" and not shell.isbuiltin(k) then
      names[#names + 1] = k
    end
  end
  table.sort(names)
  return names
end

-- Removes the user's variables and gives the initial globals their values back.
-- Returns how many were removed.
function shell.remove_variables()
  local names = shell.userglobals()
  for _, name in ipairs(names) do rawset(_G, name, nil) end
  for name, v in next, builtin do
    if v ~= RESULT then rawset(_G, name, v) end
  end
  shell.forget()
  return #names
end

local function error_stream()
  return shell.transcript and "stdout" or "stderr"
end

-- Writes an error or a note; transcripts contain them. While the output goes
-- to a file, they wait in shell.held.
local function complain(text)
  if shell.held then
    table.insert(shell.held, text)
    return
  end
  io.stdout:flush()
  local out = shell.transcript and io.stdout or io.stderr
  text = require "nacre.wrap_lines".text(text, error_stream())
  out:write(text, text:sub(-1) == "\n" and "" or "\n")
  out:flush()
end

shell.complain = complain

local function escaped(text)
  return require "nacre.lua_values".escape_controls(text)
end

-- Writes a remark that is no part of the session's output.
function shell.aside(text)
  io.stdout:flush()
  io.stderr:write(styled.paint(escaped(text), "dim", "stderr"), "\n")
end

-- Writes the text of an error; a notebook sends it in its own way.
function shell.write_error(text) complain(text) end

function shell.note(text)
  complain(styled.paint("(" .. escaped(text) .. ")", "dim", error_stream()))
end

-- Reports the failure of a command.
function shell.fail(text)
  shell.failed, text = true, " " .. escaped(text)
  shell.write_error(styled.paint("error:", "red", error_stream()) .. text)
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

local function show_error(err, interrupted, script)
  shell.failed = true
  if interrupted and shell.interrupted then return end -- said already
  if interrupted then
    shell.interrupted = true
    -- the terminal has shown ^C where the cursor was; ranks have none for stdin
    local typed = host.is_terminal "stdin" and host.is_terminal()
    if typed then io.stdout:write "\n" end
    return shell.write_error(interrupted_operation(err, interrupted) or
                             interrupted)
  end
  local render, opts = require "nacre.errors".render, options()
  opts.script = script
  local ok, text = host.guard(tostring, render, err, opts)
  shell.write_error(ok and text or "error: " .. tostring(text))
end

-- Locals of the outer level of a block become variables of the session.
local told_of_locals = false

-- Keeps the locals of the function at `level` that `unit` lists.
local function keep_locals(unit, level)
  local i = 1
  while unit.locals do
    local name, value = debug.getlocal(level + 1, i)
    if not name then break end
    if unit.locals[name] then
      rawset(_G, name, value)
      unit.kept = unit.kept or name
    end
    i = i + 1
  end
end

local function report_kept(unit, name)
  if unit.note then
    shell.note(unit.note)
  elseif name and not told_of_locals then
    told_of_locals = true
    shell.note(name .. " is kept as a session variable; " ..
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
function shell.sync_devices()
  local ok, err, interrupted = host.guard(with_traceback, host.synchronize)
  if not ok then
    show_error(err, interrupted and "interrupted: a device is still working")
  end
  return ok
end

-- Runs a system command; returns its status unless that is 0.
local function system(command)
  local ok, how, status = os.execute(command)
  if ok then return end
  shell.failed = true
  shell.note((how == "signal" and "signal " or "exit status ") .. status)
end

-- Runs a compiled block. Returns its results (a table with n), or nil after
-- reporting an error.
function shell.run(unit)
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
  local live = package.loaded["nacre.live_plot"]
  if live then live.finish(settings.get "live") end
  report_kept(unit, unit.kept)
  if got[1] then
    local synced = shell.sync_devices()
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
  show_error(got[2], interrupted)
  if not interrupted then shell.sync_devices() end
end

local function syntaxerror(unit)
  shell.failed = true
  shell.write_error(require "nacre.errors".syntax(unit.message, unit.text,
                                                  options()))
end

-- Compiles a text; nil after reporting an error.
function shell.compile(text)
  local unit = input_block.prepared(text)
  if unit.f then
    local wrong = require "nacre.runtime_errors".constant(text)
    return not wrong and unit or shell.fail(wrong)
  end
  if unit.kind == "method" then
    require "nacre.help".method(shell, unit.object, unit.name)
  elseif unit.kind ~= "empty" then
    syntaxerror(unit)
  end
end

-- Reports how long a block took, if the setting asks for it. The default is
-- for people at a terminal only, and an interrupted block has reported it
-- already.
local function report_time(seconds)
  local least = settings.get "timing"
  local terminal = host.is_terminal "stdout"
  if least == false or least ~= true and
     (seconds < least or shell.interrupted or shell.transcript or
      not terminal) then
    return
  end
  local stream = (terminal or shell.transcript) and "stdout" or "stderr"
  local text = ("(%s)%s"):format(require "nacre.units".seconds(seconds),
                                 require "nacre.timing_text".emulatedmark())
  io[stream]:write(styled.paint(text, "dim", stream), "\n")
end

-- For an input that is only the name of a nil variable or of a field that a
-- module has not: a similar name or a command.
local function report_unknown(text)
  local name = text:match "^%s*([%a_][%w_]*)%s*$"
  local number = name and name:match "^_(%d+)$"
  if number then
    return shell.note(("input %s has no result"):format(number))
  end
  local field = not name and
                require "nacre.runtime_errors".unknown_field(text)
  if field then shell.note(field) end
  if not name or rawget(_G, name) ~= nil or lexer.keywords[name] then return end
  local idea = require "nacre.runtime_errors".unknown_variable(name)
  -- what was a variable may well be nil
  if not idea and session_log.words(shell.log)[name] then return end
  if idea or not name:find "^_" then
    shell.note(idea or ("no variable '%s'"):format(name))
  end
end

-- Notes on silent mistakes, except in a block of many lines, which is a
-- program.
local function report_silent(text)
  local ok, note = pcall(require "nacre.silent_mistakes".note, text)
  if ok and note then shell.note(note) end
  return ok and note
end

function shell.evaluate(text)
  local unit = shell.compile(text)
  local loops = unit and text:find "%f[%w_]while%f[^%w_]"
  local said = loops and report_silent(text)       -- it may never end
  local begin = host.clock()
  -- before the block needs its memory
  if unit then require "nacre.errors".drop() end
  local got = unit and shell.run(unit)
  local seconds = host.clock() - begin
  if got then
    results.remember(got[1], shell.number)
    if not unit.hide then shell.print(got, text) end
    if not said then report_silent(text) end
    if got.n == 1 and got[1] == nil then report_unknown(text) end
  end
  if unit then report_time(seconds) end
end

-- Shows the results of a block; text is its source.
function shell.print(got, text)
  if got.n == 0 then return end
  local ok, err, interrupted = host.guard(with_traceback, styled.print, text,
                                          table.unpack(got, 1, got.n))
  if not ok then
    show_error(err, interrupted and "interrupted while the value was shown")
  end
end

-- Logs a submitted block and its outcome.
local function log(text, prompt, own)
  local entry = {text = text, failed = shell.failed, prompt = prompt,
                 own = own, interrupted = shell.interrupted,
                 number = not prompt and shell.number or nil,
                 width = host.columns()}
  require "nacre.transcript".entry(shell, entry)
  shell.log[#shell.log + 1] = entry
end

-- While shell.reader is set it gets the lines: {prompt =, submit =, ready =,
-- leave = the word that ends it, own(text): is that its word?, alone: does no
-- prompt follow?, candidates(left, right) for Tab}. The end of the input ends
-- the reader first; returns false if there is none.
function shell.ended()
  local reader = shell.reader
  shell.reader = nil
  if reader then log(reader.leave, reader.prompt, true) end
  return reader ~= nil and not reader.alone
end

-- Returns false when the reader was the last.
local function submit_to(reader, text)
  local own = reader.own(text)
  shell.failed, shell.interrupted = false, false
  shell.protected(reader.submit, text)
  if text:find "%S" then log(text, reader.prompt, own) end
  return not reader.alone or shell.reader ~= nil
end

-- Runs a command or a help request, protected like user code.
function shell.protected(f, ...)
  local ok, err, interrupted = host.guard(with_traceback, f, ...)
  if not ok then show_error(err, interrupted and "interrupted") end
end

function shell.forget() results.forget() end

local function islua(name)
  local command = require "nacre.commands".find(name)
  return command ~= nil and command.lua == true
end

shell.islua = islua           -- does the command of this name take Lua?

local function help(name, wide)
  require "nacre.pager".run(shell, require "nacre.help".show, shell, name, wide)
end

-- Words of other shells that are accepted, alone or as a call without
-- arguments.
local elsewhere = {exit = "quit", quit = "quit", help = "help"}

-- Runs a block: Lua, a command, a question or a system command.
function shell.dispatch(text)
  local first = text:match "^%s*(.)"
  local body, sign, path = require "nacre.redirect".parse(text)
  if body then
    return shell.protected(require "nacre.redirect".run, shell, body, sign,
                           path)
  end
  local word = text:match "^%s*(%l+)%s*$" or text:match "^%s*(%l+)%(%)%s*$"
  local topic = text:match "^%s*help%s*%(([%w_%.:]+)%)%s*$"
  if topic and rawget(_G, "help") == nil then
    help(topic)
  elseif elsewhere[word] and rawget(_G, word) == nil then
    require "nacre.commands".run(shell, elsewhere[word], "")
  elseif text:find "^%s*:%a+%s*%?+%s*$" then
    help(text:match ":%a+")
  elseif input_block.command(text) then
    local commands = require "nacre.commands"
    commands.run(shell, commands.parse(text))
  elseif first == "?" then
    local marks, name = text:match "(%?+)%s*(.-)%s*$"
    help(name, #marks > 1)
  elseif text:find "^%s*[%w_%.:]+%?%?%s*$" then
    require "nacre.pager".run(shell, require "nacre.source_view".show, shell,
                              text:match "[%w_%.:]+")
  elseif text:find "^%s*[%w_%.:]+%?%s*$" then
    help(text:match "[%w_%.:]+")
  elseif first == "!" then
    io.stdout:flush()
    shell.protected(system, text:match "!(.*)")
  else
    shell.evaluate(input_block.lua_part(text, islua) or text)
  end
end

--
-- What shell_hooks.c calls
--
function shell.start(transcript)
  shell.transcript = transcript
  shell.seed = nacre.initial_seed() -- to repeat the random numbers
  shell.dtype = nacre.get_default_dtype()
  shell.device = nacre.get_default_device()
  local files = package.loaded["nacre.tensor_file"]
  for k, v in next, _G do builtin[k] = v end
  if files and files.brought then builtin[files.brought] = nil end
  for _, k in ipairs {"_", "__", "___", "ans"} do builtin[k] = RESULT end
  shell.provide("In", require "nacre.input_history".In)
end

-- Runs the start-up file: the named one, or the usual one if it exists. Errors
-- in it do not end the session.
function shell.startup(path)
  local usual = settings.initfile()
  if not path and not (usual and host.file_time(usual)) then return end
  local f, message = loadfile(path or usual, "t")
  if f then
    local ok, err, interrupted = host.guard(function(e)
      host.pause_interrupts()
      return require "nacre.errors".capture(e, 2)
    end, f)
    return ok or show_error(err, interrupted and "interrupted", true)
  end
  if message:find("^cannot open") then return shell.fail(message) end
  shell.failed = true
  shell.write_error("error: " .. message)
end

-- Runs a block and logs it.
local function run_input(text)
  shell.dispatch(text)
  results.check()
  if not shell.leaving then require "nacre.reload".between(shell) end
  if shell.interrupted and package.loaded["nacre.paste_blocks"] then
    require "nacre.paste_blocks".drop()
  end
  log(text)
end

-- Runs the inputs that :again asks for, as if they had been typed, until one
-- fails. The log has them in its place.
local function run_again(text, words)
  local history = require "nacre.input_history"
  local list, why = history.inputs(words, shell.number or
                                   host.history_size() + 1)
  if not list then
    shell.fail(why)
    return log(text)
  end
  for _, input in ipairs(list) do
    if shell.failed or shell.leaving then break end
    if not shell.transcript then
      io.stdout:write(styled.paint("> " .. input:gsub("\n", "\n>> "), "dim"),
                      "\n")
      if host.captured then host.captured() end -- the log has it as its input
    end
    run_input(input)
  end
end

-- Runs a submitted block; returns false when the session is over.
function shell.submit(text)
  if shell.reader then return submit_to(shell.reader, text) end
  if not text:find "%S" then return true end
  shell.failed, shell.interrupted = false, false
  local history = require "nacre.input_history"
  shell.number = history.number(text)
  local again, words = history.words(text)
  if again then run_again(text, words) else run_input(text) end
  return not shell.leaving
end

function shell.ready(text)
  if text:find "\n> " then text = require "nacre.paste_blocks".last(text) end
  if shell.reader then return shell.reader.ready(text) end
  return input_block.ready(text, islua)
end

-- For pasted text: what to insert; for a block of several inputs: the first;
-- then the next ones. Nil where there is none.
function shell.pasted(text)
  if not text:find "^%s*[%w:]*>" then return nil end
  return require "nacre.paste_blocks".strip(text)
end

function shell.split(text)
  if not text:find "\n" then return nil end
  return require "nacre.paste_blocks".split(text, islua)
end

function shell.next()
  local paste = package.loaded["nacre.paste_blocks"]
  return paste and paste.next()
end

function shell.indent(text, rest)
  return lexer.indent(text:gsub("^%s*[:%%=]%%?%a*", "", 1), rest)
end

function shell.complete(text, point)
  local ask = shell.reader and shell.reader.candidates or
              require "nacre.completion".candidates
  return ask(text:sub(1, point), text:sub(point + 1))
end

-- What a global is: "tensor", "known", "unknown"; nil if only a metamethod or
-- the call of a method could tell.
function shell.role(name)
  local value = rawget(_G, name)
  if value ~= nil then
    return require "nacre.tensor_facts".istensor(value) and "tensor" or "known"
  end
  if name == "self" or name:find "^_+$" or name == "ans" or
     require "nacre.globals".are_foreign() then
    return nil
  end
  return "unknown"
end

-- Where Lua begins in a block, of which this is the first line and what follows
-- it, as far as it matters; nil: nowhere.
function shell.code(text)
  local part = text
  if shell.reader then
    if shell.reader.own(text) then return nil end
  else
    part = input_block.lua_part(text, islua)
  end
  return part and #text - #part
end

-- What a block lacks whose last two lines are blank: who waits for it to end
-- should know.
local function lacking(part)
  if not part:find "\n[ \t]*\n[ \t]*$" then return nil end
  local unit = input_block.compile(part)
  local what = unit.kind == "incomplete" and
               unit.message:match ":%d+: (.*) near [^ ]*$"
  return what and {what .. "; Ctrl-C drops the block"}
end

-- The first error that more text cannot mend: what the compiler says, and
-- where the token is that it names.
function shell.fault(text)
  local from = shell.code(text)
  local part = from and text:sub(from + 1) or ""
  local message = part:find "%S" and not text:find "\n> " and -- a session
                  input_block.fault(part)
  if not message then return lacking(part) end
  local line, what = message:match ":(%d+): (.*)$"
  local token = require "nacre.syntax_errors".place(message, part)
  if not line then what = message
  elseif part:find "\n" then what = ("line %d: %s"):format(line, what) end
  return token and {what, from + token.from, from + token.to + 1} or {what}
end

function shell.signature(text, point)
  local found = {require "nacre.completion".signature(text:sub(1, point))}
  return found[1] and found
end

function shell.helpat(...) return require "nacre.help".at(...) end

function shell.prompt(_, n) return require "nacre.prompt_text".of(shell, n) end

return shell
