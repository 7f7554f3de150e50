-- SPDX-License-Identifier: MIT
--
-- run_test.lua - runs one test in a process of its own. Its output goes to the
-- runner unchanged; the function `tell` sends messages that say which part of
-- the output belongs to what.

local assertions = require "nacre.assertions"
local coverage = require "nacre.coverage"
local errors = require "nacre.errors"
local files = require "nacre.files"
local fixtures = require "nacre.fixtures"
local frames = require "nacre.stack_frames"
local host = require "nacre.host"
local match = require "nacre.match_output"
local process = require "nacre.process"
local root = require "nacre.project_root"
local state = require "nacre.test_state"
local debug_failure = require "nacre.debug_failure"
local values = require "nacre.stored_values"

local run = {}

local MOST_SAID = 1 << 14     -- bytes of an error

-- For a second run: a day on which year, month, weekday, hour, minute and
-- second are others than now.
local AHEAD = ((400 * 24 + 13) * 60 + 1) * 60 + 1

local function set_clock_ahead()
  local time, date = os.time, os.date
  function os.time(t) return t == nil and time() + AHEAD or time(t) end
  function os.date(format, t) return date(format, t or os.time()) end
end

function run.prepare(job)
  if job.ahead then set_clock_ahead() end
  local nacre = package.loaded.nacre
  nacre.set_num_threads(job.threads)
  if job.device ~= "cpu" then nacre.set_default_device(job.device) end
  if job.dtype then nacre.set_default_dtype(job.dtype) end
  nacre.manual_seed(job.seed)
  if job.limit then
    nacre.set_memory_limit(job.limit)
    -- a driver of devices takes what it likes
    if job.device == "cpu" then process.limit_memory(job.limit) end
  end
  root.enter(job.unit)
  _G.arg = {[0] = job.unit.steps and job.unit.kind ~= "unit" and
                  job.unit.kind ~= "script" and "nacre" or job.unit.full}
end

-- -l MODULE, -l NAME=MODULE
local function libraries(job)
  for _, word in ipairs(job.libraries or {}) do
    local name, module = word:match "^(.-)=(.*)$"
    _G[name or word] = require(module or word)
  end
end

local telling -- the tell of the test

-- Once the time of the test is over, says where it was, and waits for its end.
local function obey(where)
  if not process.was_asked() then return end
  telling("where", where)
  while true do process.wait({}, math.huge) end
end

local function session(job, tell)
  local shell = require "nacre.shell"
  shell.start(true)
  local watch = values.watch(job, tell)
  for i, step in ipairs(job.steps) do
    values.step(watch, step, i)
    tell("step", i)
    local from = debug_failure.on and select(2, process.output())
    host.add_history(step.text)
    local going = shell.submit(step.text)
    obey ""
    if from then debug_failure.step(step, from) end
    if shell.failed then tell("error", i) end
    tell("done", i)
    if not going then break end
  end
  values.finish(watch, job, tell)
end

-- The name of the file in messages: that of a script is relative to its
-- folder, wherever the runner was started.
local function called(unit)
  return unit.kind == "script" and unit.path:match "[^/]*$" or unit.path
end

local function load(job)
  local text = assert(files.read(job.unit.full))
  local name = "@" .. called(job.unit)
  frames.sources[name] = text -- for messages: the folder is another one
  text = files.source(text)
  if job.unit.kind == "unit" then
    text = require "nacre.assertion_operands".rewritten(text)
  end
  return _G.load(text, name, "t")
end

local function isskip(err)
  local meta = type(err) == "table" and debug.getmetatable(err)
  local text = meta and rawget(meta, "__tostring") and tostring(err)
  return text and text:match "^skip: (.*)$"
end

-- The text of an error, as for a script.
local function text(err)
  return assertions.isrefusal(err) and err.text or
         errors.render(err, {width = 80, script = true})
end

local function show(err)
  if isskip(err) then return end
  io.stdout:flush()
  io.stderr:write(text(err), "\n")
end

-- Runs f as user code; true, or false and the error.
local function guarded(f, ...)
  local ok, err = host.guard(function(e)
    host.pause_interrupts()
    if assertions.isrefusal(e) and debug_failure.on then
      errors.capture(e, 2)
    end
    if assertions.isrefusal(e) or isskip(e) then return e end
    return errors.capture(e, 2)
  end, f, ...)
  if ok then
    ok, err = host.guard(function(e) return errors.capture(e, 2) end,
                         host.synchronize)
  end
  if not ok then
    obey((text(err):gsub("^[^\n]*interrupted\n", "")
                   :gsub("nacre%.run_test:%d+: ", "", 1)))
  end
  if not ok and debug_failure.on and not isskip(err) and not err.skip then
    debug_failure.at(text(err))
  end
  return ok, err
end

-- Sends what a script wrote to stderr as a second output, if that is separate.
local function writeerrors(path, tell)
  io.stderr:flush()
  tell("step", 2)
  io.stdout:write(files.read(path) or "")
  tell("done", 2)
end

-- Calls f when the program ends, also by os.exit.
local function atexit(f)
  local exit, over = os.exit, false
  local function once()
    if not over then f() end
    over = true
  end
  function os.exit(...)
    once()
    return exit(...)
  end
  return once
end

local function script(job, tell)
  local watch = values.watch(job, tell)
  local path = job.unit.errors and job.shown .. "/stderr"
  if path then process.redirect_stderr(path) end
  values.step(watch, job.steps[1], 1)
  tell("step", 1)
  local over = atexit(function()
    tell("done", 1)
    if path then writeerrors(path, tell) end
    values.finish(watch, job, tell)
  end)
  local chunk, why = load(job)
  local ok, err = false, why
  if chunk then ok, err = guarded(chunk) end
  if not ok then show(err) end
  if not ok and isskip(err) then tell("skip", isskip(err)) end
  over()
  if not ok then tell("status", 1) end
end

--
-- test("name", function(t) ... end)
--

-- The i-th value of a parameter in the name of a test, which is the same in
-- every run: a value without such a text goes by its number.
local function called_value(value, i)
  local kind = type(value)
  if kind == "string" then
    local plain = tonumber(value) == nil and value ~= "true" and
                  value ~= "false"
    return plain and value or ("%q"):format(value)
  end
  return (kind == "number" or kind == "boolean") and tostring(value) or
         "#" .. i
end

-- Every combination of one value for each parameter, by name: {values, their
-- texts}.
local function choices(params)
  local names, list = {}, {{{}, {}}}
  for name in pairs(params) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local values = params[name]
    local wider = {}
    if type(values) ~= "table" then values = {values} end
    if #values == 0 then return {}, name end
    for _, one in ipairs(list) do
      for i, value in ipairs(values) do
        local p, parts = {}, table.move(one[2], 1, #one[2], 1, {})
        for k, v in pairs(one[1]) do p[k] = v end
        p[name] = value
        parts[#parts + 1] = name .. "=" .. called_value(value, i)
        wider[#wider + 1] = {p, parts}
      end
    end
    list = wider
  end
  return list
end

local function title(name, parts)
  return #parts > 0 and ("%s (%s)"):format(name, table.concat(parts, ", ")) or
         name
end

local function is_selected(job, name)
  if job.only then return job.only[name:gsub("%c", " ")] end
  return not job.word or name:find(job.word, 1, true) ~= nil
end

local function checks(job) return assertions.new(job, "@" .. job.unit.path) end

-- Sends an error as a message: "skip" or "fail", the text, the line.
local function send_error(job, err, line)
  if assertions.isrefusal(err) then
    return err.skip and "skip" or "fail", match.cut(err.text, MOST_SAID),
           err.line or line
  end
  if isskip(err) then return "skip", isskip(err) end
  return "fail", match.cut(errors.render(err, {width = 80, script = true}),
                           MOST_SAID),
         err.file == job.unit.path and err.line or line
end

-- Calls the fixtures of a name; returns the first error, or nil. Those that
-- begin something stop there, the others go on.
local function call_fixtures(name, t)
  local first
  for _, f in fixtures.each(name) do
    local ok, err = guarded(f, t)
    if not ok and (name == "setup" or name == "before_each") then return err end
    if not ok and first then show(err) end
    if not ok then first = first or err end
  end
  return first
end

-- Runs a test; returns true if it passed.
local function case(job, tell, c, name, p)
  local begin = host.clock()
  nacre.manual_seed(job.seed)
  tell("case", name, c.line)
  if job.names then return end
  if not p then
    return tell("skip", ("no value for the parameter %s"):format(c.without))
  end
  local t, set_back = checks(job), state.keep(job)
  job.checked = false
  debug_failure.test, job.test, job.tell = name, name, tell
  local err = call_fixtures("before_each", t)
  if not err then
    local ok, why = guarded(function()
      local test = c.f -- its name in tracebacks
      test(t, p)
    end)
    err = not ok and why or nil
  end
  local late = call_fixtures("after_each", t)
  set_back()
  if err and late then show(late) end
  err = err or late
  tell("took", host.clock() - begin)
  job.test = nil
  if job.cover then coverage.tell(tell) end
  if err then return tell(send_error(job, err, c.line)) end
  tell("pass", job.checked and "" or "unchecked")
  return true
end

-- Runs the setup of a file; false after reporting an error.
local function set_up(job, tell)
  local err = call_fixtures("setup", checks(job))
  if not err then return true end
  local word, text = send_error(job, err)
  if word == "skip" then
    tell("skip", text)
  else
    io.stdout:write("in setup: ", text, "\n")
    tell "broken"
  end
  return false
end

-- With a line: the last test that starts up to there.
local function test_at_line(cases, line)
  if not line then return cases end
  local last = cases[1]
  for _, c in ipairs(cases) do
    if c.line <= line then last = c end
  end
  return {last}
end

-- The tests to run, in order: {case, name, parameters}.
local function tests_to_run(job, cases)
  local todo = {}
  for _, c in ipairs(test_at_line(cases, job.line)) do
    for _, one in ipairs(c.choices) do
      if is_selected(job, one.name) then
        todo[#todo + 1] = {c, one.name, one[1]}
      end
    end
  end
  return todo
end

-- Adds the choices of a test to it; an error if another one has its name, which
-- could not be told apart.
local function name_choices(c, names)
  local list, without = choices(c.params)
  c.choices, c.without = list, without
  if without then list[1] = {nil, {}} end
  for _, one in ipairs(list) do
    one.name = title(c.name, one[2])
    if names[one.name] then
      error(("two tests have the name '%s', the other is in line %d"):format(
        one.name, names[one.name]), 3)
    end
    names[one.name] = c.line
  end
end

-- Lua's assert is a check of a test, too.
local function count_asserts(job)
  local assert = assert
  function _G.assert(...)
    job.checked = true
    return assert(...)
  end
end

-- Runs the tests after the first `done`, which have run already.
local function unit(job, tell, done)
  local cases, names = {}, {}
  function _G.test(name, params, f)
    if type(params) == "function" then params, f = {}, params end
    if type(name) ~= "string" or type(f) ~= "function" or
       type(params) ~= "table" then
      error("test(name[, parameters], function): bad arguments", 2)
    end
    local c = {name = name, params = params, f = f,
               line = debug.getinfo(2, "l").currentline}
    name_choices(c, names)
    cases[#cases + 1] = c
  end
  tell("step", 1)
  local chunk, why = load(job)
  local ok, err = false, why
  if chunk then ok, err = guarded(chunk) end
  if not ok then show(err) end
  if not ok and isskip(err) then tell("skip", isskip(err)) end
  if not ok then return tell("broken") end
  fixtures.take()
  if #cases > 0 and (job.word or job.only) then tell("chosen") end
  local list, open = tests_to_run(job, cases), {}
  if not list[done + 1] or not job.names and not set_up(job, tell) then
    return
  end
  for k = done + 1, #list do
    if not case(job, tell, table.unpack(list[k])) then
      open[#open + 1] = list[k][2]
    end
  end
  if done == 0 and not (job.line or job.word or job.only or job.names) then
    require "nacre.golden".tell_unreferenced(job, open, tell)
  end
  local late = not job.names and call_fixtures("teardown", checks(job))
  if late then
    tell("case", "teardown", cases[1].line)
    tell("took", 0)
    tell(send_error(job, late, cases[1].line))
  end
end

-- A file that is not a *_test.lua is one test.
local function whole(kind)
  return function(job, tell)
    local t = checks(job)
    fixtures.close()
    if not set_up(job, tell) then return end
    nacre.manual_seed(job.seed)
    local err = call_fixtures("before_each", t)
    if err then
      io.stdout:write("in before_each: ", select(2, send_error(job, err)), "\n")
      return tell "broken"
    end
    kind(job, tell)
    err = call_fixtures("after_each", t)
    local late = call_fixtures("teardown", t)
    if err or late then
      tell("torn", (select(2, send_error(job, err or late))))
    end
  end
end

local kinds = {transcript = whole(session), markdown = whole(session),
               script = whole(script), unit = unit}

-- The function that the process of a job runs; for a *_test.lua without its
-- first job.done tests.
function run.body(job)
  return function(tell)
    telling = tell
    run.prepare(job)
    if job.files then root.bringing(job.unit, tell) end
    debug_failure.on = job.pdb and job
    if job.unit.kind == "unit" then count_asserts(job) end
    if job.cover then coverage.start(tell) end
    local ok, err = guarded(function()
      libraries(job)
      fixtures.conftest(job.unit)
    end)
    tell "ready"
    if not ok and isskip(err) then return tell("skip", isskip(err)) end
    if not ok then
      show(err)
      return tell "broken"
    end
    local begin = host.clock()
    kinds[job.unit.kind](job, tell, job.done or 0)
    if job.cover then coverage.tell(tell) end
    tell("end", host.clock() - begin)
  end
end

-- The same for a job as a text, in a program that was started for it.
function run.of_text(text)
  return run.body(_G.load("return " .. text, "=job", "t", {})())
end

-- Sends what can be tested on: the devices with their free bytes, or why there
-- is none; whether there is NVRTC. It opens the devices, so it runs in a
-- process of its own.
function run.probe(tell)
  local cuda = nacre.cuda
  if not cuda.is_available() then return tell("none", cuda.why()) end
  for i = 0, cuda.device_count() - 1 do
    tell("device", i, (cuda.mem_get_info(i)))
  end
  tell("nvrtc", require "nacre.machine".figure "nvrtc")
end

return run
