-- SPDX-License-Identifier: MIT
--
-- timer.lua - nacre.Timer, after torch.utils.benchmark.Timer:
--
--   t = nacre.Timer {stmt = "a:mm(a)", setup = "a = nacre.randn(64, 64)"}
--   t:timeit(100)  t:blocked_autorange()  t:adaptive_autorange()
--
-- Each gives a measurement; print it, or read median, mean, iqr, times.  Unlike
-- PyTorch's, it runs on as many threads as the session unless num_threads says
-- otherwise.

local bench = require "nacre.bench"
local text = require "nacre.timing_text"
local measure = require "nacre.measure"
local suggestion = require "nacre.suggestion"

local nacre = package.loaded.nacre

local timer = {}

--
-- Measurements
--
local Measurement = {__name = "measurement"}

local FIELDS = {
  median = function(m) return m.result.median end,
  mean = function(m)
    local sum = 0
    for _, x in ipairs(m.result.samples) do sum = sum + x end
    return sum / #m.result.samples
  end,
  iqr = function(m) return m.result.q3 - m.result.q1 end,
  times = function(m) return m.result.samples end,
  raw_times = function(m)
    local list = {}
    for i, x in ipairs(m.result.samples) do list[i] = x * m.result.n end
    return list
  end,
  number_per_run = function(m) return m.result.n end,
  significant_figures = function(m) return text.digits(m.result) end,
  has_warnings = function(m)
    return (text.warning(m.result) or text.load {m.result}) ~= nil
  end,
}

function Measurement.__index(m, name)
  local f = FIELDS[name]
  return f and f(m)
end

local function title(m)
  local parts = {}
  for _, name in ipairs {"label", "sub_label", "description"} do
    parts[#parts + 1] = m.task[name]
  end
  return #parts > 0 and table.concat(parts, ": ") or
         type(m.task.stmt) == "string" and m.task.stmt or "function"
end

function Measurement.__tostring(m)
  return title(m) .. "\n" .. table.concat(bench.report(m.result), "\n")
end

local function measurement(task, r)
  return setmetatable({task = task, result = r}, Measurement)
end

--
-- Timers
--
local Timer = {__name = "timer"}
Timer.__index = Timer

function Timer.__tostring(t) return "timer of " .. title {task = t} end

-- With the timer's number of threads.
local function run(t, options)
  local was = nacre.get_num_threads()
  local _ <close> = measure.defer(function() nacre.set_num_threads(was) end)
  nacre.set_num_threads(t.num_threads)
  local source = type(t.stmt) == "string" and t.stmt or nil
  local env = source and bench.setup(t, {source})
  local r = measure.measure(bench.subject(t.stmt, env), options)
  return measurement(t, bench.named(r, source, t, env))
end

-- One sample of `number' runs.
function Timer:timeit(number)
  number = number or 1000000
  if not math.tointeger(number) or number < 1 then
    error("timeit: the number of runs is a whole number of 1 or more", 2)
  end
  return run(self, {n = math.tointeger(number), samples = 1, fewest = 1,
                    budget = 1e-9})
end

-- Reads options by name, or positional values in `order`; missing ones come
-- from `usual`.
local function read_options(method, order, usual, ...)
  local given = ...
  if type(given) ~= "table" then
    given = {}
    for i, name in ipairs(order) do given[name] = select(i, ...) end
  end
  local o, kinds = {}, {}
  for name in pairs(usual) do kinds[name] = "positive" end
  suggestion.check(given, kinds, method .. ": ")
  for name, v in pairs(usual) do o[name] = given[name] or v end
  return o
end

-- (min_run_time), in seconds
function Timer:blocked_autorange(...)
  local o = read_options("blocked_autorange", {"min_run_time"},
                    {min_run_time = 0.2}, ...)
  return run(self, {budget = o.min_run_time})
end

-- (threshold, min_run_time, max_run_time): until the interquartile range is at
-- most `threshold` times the median.
function Timer:adaptive_autorange(...)
  local o = read_options("adaptive_autorange",
    {"threshold", "min_run_time", "max_run_time"},
    {threshold = 0.1, min_run_time = 0.01, max_run_time = 10}, ...)
  local budget, m = o.min_run_time, nil
  repeat
    m = run(self, {budget = budget})
    budget = 2 * budget
  until m.iqr <= o.threshold * m.median or budget > o.max_run_time
  return m
end

suggestion.guard_methods(Timer, "timer")

local KINDS = {stmt = "string or function", setup = "string",
               globals = "table", num_threads = "number", label = "string",
               sub_label = "string", description = "string"}

local function check(o) suggestion.check(o, KINDS, "Timer: ") end

-- nacre.Timer {stmt =, setup =, globals =, num_threads =, label =, ...}
function timer.new(o)
  if type(o) == "string" or type(o) == "function" then o = {stmt = o} end
  if type(o) ~= "table" then
    error("Timer: a table with stmt is needed", 2)
  end
  local t = {num_threads = nacre.get_num_threads()}
  check(o)
  for name, v in pairs(o) do t[name] = v end
  if not t.stmt then error("Timer: stmt is missing", 2) end
  return setmetatable(t, Timer)
end

return timer
