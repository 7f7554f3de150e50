-- SPDX-License-Identifier: MIT
--
-- bench.lua - :bench, nacre.bench and shell.bench: how long an expression
-- takes, from many runs. measure.lua says how it is measured.

local errors = require "nacre.errors"
local measurements = require "nacre.measurement_files"
local wrap = require "nacre.wrap_lines"
local peak = require "nacre.machine_peak"
local facts = require "nacre.tensor_facts"
local text = require "nacre.timing_text"
local measure = require "nacre.measure"
local options = require "nacre.command_options"
local suggestion = require "nacre.suggestion"

local bench = {}

-- The names of the functions' options for those of the commands.
local NAMES = {s = "setup", export_json = "json", export_markdown = "markdown",
               save = "save", against = "against", budget = "budget"}

-- The options before an expression, as the functions take them, and the
-- expression; nil and why.
function bench.options(words)
  local params = require "nacre.commands".params_of "bench"
  local given, rest = options.leading(params, words)
  if not given then return nil, rest end
  if given.n and (rest:find "^%d+%s+[%w_(]" or rest:find "^%d+%s+%-%a%s") then
    return nil, "-n skips the warm-up and takes no number; " ..
                "--budget SECONDS sets the measuring time"
  elseif rest:find "^%-r%s" then
    return nil, "no option '-r': there are as many runs as fit in --budget " ..
                "SECONDS"
  end
  local o = {cold = given.c and true}
  if given.n then o.warmup = false end
  for name, as in pairs(NAMES) do o[as] = given[name] end
  return o, rest
end

--
-- The report
--
local function heading(r)
  local parts = {text.place(r)}
  if r.operands and r.operands ~= "" then parts[2] = r.operands end
  if r.cold then parts[#parts + 1] = "cold caches" end
  return table.concat(parts, "   ")
end

local function rates(r, n)
  if r.operations == 0 then return nil end
  local o, known = peak.reached(r, r.median)
  local limit = text.limit(o)
  local rate, top = text.rate(limit[1], limit[2], n, limit[4])
  local parts = {}
  local function add(part) parts[#parts + 1] = part end
  if known then
    add(rate)
    add(limit[3] and ("%s of measured peak %s"):format(
      text.percent(limit[3], n), top))
    add(text.cached(o))
    add(o.verdict)
  else
    add((text.rate(o.flops, "FLOP/s", n)))
    add((text.rate(o.bytes, "B/s", n)))
    add(not r.emulated and #parts > 0 and peak.hint() or nil)
  end
  return #parts > 0 and table.concat(parts, "   ") or nil
end

-- The report on a result as lines; `old` is the result to compare with.
function bench.report(r, name, old)
  local n = text.digits(r)
  local lines = {heading(r)}
  local function add(line) lines[#lines + 1] = line and "  " .. line end
  if text.nothing(r) then
    add(("nothing measurable: %s per run, like an empty loop"):format(
      text.time(r.median, 1)))
    add(text.printed {r})
    return lines
  end
  if #r.samples == 1 then
    add(("%s   %s: one sample, its spread is not known"):format(
      text.time(r.median), text.runs(r)))
  else
    add(("median %s   min %s   middle half %s   %s, %.1f s"):format(
      text.time(r.median, n), text.time(r.min, n), text.range(r.q1, r.q3, n),
      text.runs(r), r.seconds))
  end
  add(rates(r, n))
  add(text.histogram(r))
  if r.opening > 0.02 * r.first and r.opening > r.median then
    add(("the first run took %s, %s of it first use"):format(
      text.time(r.first), text.time(r.opening)))
  end
  if old then
    for _, line in ipairs((measurements.compared(r, name, old))) do
      add(line)
    end
  end
  add(text.printed {r})
  local warning = text.warning(r)
  add(warning and "warning: " .. warning)
  add(text.load {r})
  return lines
end

local Result = {__name = "measurement"}

function Result.__tostring(r)
  return table.concat(bench.report(r), "\n")
end

-- Adds to a result what was run: the text, its setup and operands.
function bench.named(r, source, o, env)
  r.text, r.setup = source, o.setup
  r.operands = source and env and text.operands(source, env)
  return setmetatable(r, Result)
end

-- Runs the setup, if any, in the environment of the texts among the sources,
-- which keeps its variables. Raises its errors.
function bench.setup(o, sources)
  local all = {o.setup or ""}
  for _, source in ipairs(sources) do
    if type(source) == "string" then all[#all + 1] = source end
  end
  local base = o.globals and setmetatable({}, {__index = _G})
  for name, v in pairs(o.globals or {}) do base[name] = v end
  local env = measure.environment(all, base)
  if o.setup then
    local f, message = load(o.setup, "=stdin", "t", env)
    if not f then error("setup: " .. message, 0) end
    errors.remember(f, o.setup)
    f()
  end
  return env
end

local KINDS = {setup = "string", globals = "table", cold = "boolean",
               warmup = "boolean", budget = "positive", samples = "positive",
               n = "positive", save = "string", against = "string",
               json = "string", markdown = "string"}

-- Checks the options of a function and returns them, or an empty table.
function bench.check(o)
  o = o == nil and {} or o
  suggestion.check(o, KINDS, "")
  return o
end

-- Prepares a text or a function; errors are raised as the caller's.
function bench.subject(what, env)
  local subject, message = measure.prepare(what, env)
  if not subject then error(message, 0) end
  return subject
end

local function save(r, o)
  if o.save then
    local path, why = measurements.save(o.save, r)
    if not path then error(why, 0) end
  end
  measurements.export({r}, o)
end

local function run_once(what, o)
  local old, why
  if o.against then
    old, why = measurements.load(o.against)
    if not old then error(why, 0) end
  end
  local ok, wrong = measurements.name(o.save or "any")
  if not ok then error(wrong, 0) end
  local source = type(what) == "string" and what or nil
  local env = source and bench.setup(o, {source})
  local r = measure.measure(bench.subject(what, env), o)
  bench.named(r, source, o, env)
  save(r, o)
  if old then
    r.compared = select(2, measurements.compared(r, o.against, old))
  end
  return r, old
end

-- A name in a text that is nil there but is a local variable of the calling
-- function.
local function hidden_local(source, o)
  local level, names = 3, {}
  while (debug.getinfo(level, "S") or {}).what == "C" do level = level + 1 end
  if not debug.getinfo(level, "S") then return nil end
  for i = 1, 250 do
    local name = debug.getlocal(level, i)
    if not name then break end
    names[name] = true
  end
  if o.setup or source:find "%f[%w_]local%f[^%w_]" or
     source:find "%f[%w_]function%f[^%w_]" then
    return nil
  end
  for _, name in ipairs(require "nacre.lexer".variables(source)) do
    if names[name] and measure.value_of(_G, name) == nil and
       not (o.globals or {})[name] then
      return name
    end
  end
end

-- For programs: nacre.bench(f, options), shell.bench(f, options).
function bench.call(what, o)
  if type(what) ~= "string" and type(what) ~= "function" then
    error("bench: a function or a string is timed, not a " ..
          facts.typename(what), 2)
  end
  o = bench.check(o)
  local hidden = type(what) == "string" and hidden_local(what, o)
  if hidden then
    error(("bench: '%s' is a local variable, but a string sees only globals; "
      .. "" ..
           "give function() return %s end, or the option globals"):format(
           hidden, what), 2)
  end
  return (run_once(what, o))
end

-- Runs f in the session like a block of the user: errors are shown, and Ctrl-C
-- ends it.
function bench.guarded(shell, f)
  if not shell.sync_devices() then return end
  return shell.run {f = f}
end

-- The options and the expression of a command; nil after reporting an error.
function bench.parse(shell, words, name, form)
  local o, expression = bench.options(words)
  if not o then return shell.fail((":%s: %s"):format(name, expression)) end
  if not measure.has_code(expression) then
    return shell.fail((":%s needs an expression: %s"):format(name, form))
  end
  return o, expression
end

function bench.run(shell, words)
  local o, expression = bench.parse(shell, words, "bench", "a:mm(a)")
  if not o then return end
  if #require "nacre.compare".split(expression) > 1 then
    return shell.fail ":bench times one expression; :compare a ;; b takes two"
  end
  if not shell.compile(expression) then return end
  bench.guarded(shell, function()
    local r, old = run_once(expression, o)
    local lines = bench.report(r, o.against, old)
    wrap.say(lines)
    if o.save then
      wrap.say(("  saved as %s (.nacre-bench/%s.json)"):format(o.save, o.save))
    end
  end)
end

return bench
