-- SPDX-License-Identifier: MIT
--
-- timer.lua - nacre.Timer, after torch.utils.benchmark.Timer:
--
--   t = nacre.Timer {stmt = "a:mm(a)", setup = "a = nacre.randn(64, 64)"}
--   t:timeit(100)  t:blocked_autorange()  t:adaptive_autorange()
--
-- Each gives a measurement; print it, or read median, mean, iqr, times.

local bench = require "nacre.bench"
local stats = require "nacre.timestats"
local text = require "nacre.timetext"
local timing = require "nacre.timing"

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
  number_per_run = function(m) return m.result.n end,
  significant_figures = function(m) return text.digits(m.result) end,
  has_warnings = function(m) return text.warning(m.result) ~= nil end,
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
  local _ <close> = setmetatable({}, {__close = function()
    nacre.set_num_threads(was)
  end})
  nacre.set_num_threads(t.num_threads)
  local source = type(t.stmt) == "string" and t.stmt or nil
  local env = source and bench.setup(t, {source})
  local r = timing.measure(bench.subject(t.stmt, env), options)
  return measurement(t, bench.named(r, source, t, env))
end

-- One sample of `number` runs.
function Timer:timeit(number)
  number = number or 1000000
  if not math.tointeger(number) or number < 1 then
    error("timeit: the number of runs is a whole number from 1 on", 2)
  end
  return run(self, {n = math.tointeger(number), samples = 1, fewest = 1,
                    budget = 1e-9})
end

local function seconds(options, name)
  if options == nil then return 0.2 end
  local v = type(options) == "table" and
            (options[name] or options[1] or 0.2) or options
  if type(v) ~= "number" or not (v > 0) then
    error(name .. " is a number of seconds", 3)
  end
  return v
end

function Timer:blocked_autorange(options)
  return run(self, {budget = seconds(options, "min_run_time")})
end

-- Until the middle half is within `threshold` of the median.
function Timer:adaptive_autorange(options)
  local o = type(options) == "table" and options or {}
  local budget = seconds(options, "min_run_time")
  local most, threshold = o.max_run_time or 10, o.threshold or 0.1
  local m
  repeat
    m = run(self, {budget = budget})
    budget = 2 * budget
  until m.iqr <= threshold * m.median or budget > most
  return m
end

local NAMES = {stmt = true, setup = true, globals = true, label = true,
               sub_label = true, description = true, num_threads = true}

-- nacre.Timer {stmt =, setup =, globals =, num_threads =, label =, ...}
function timer.new(o)
  if type(o) == "string" or type(o) == "function" then o = {stmt = o} end
  if type(o) ~= "table" then
    error("Timer: a table with stmt is needed", 2)
  end
  local t = {num_threads = nacre.get_num_threads()}
  for name, v in pairs(o) do
    if not NAMES[name] then
      error(("Timer: no option '%s'"):format(tostring(name)), 2)
    end
    t[name] = v
  end
  if type(t.stmt) ~= "string" and type(t.stmt) ~= "function" then
    error("Timer: stmt is a text or a function", 2)
  end
  return setmetatable(t, Timer)
end

return timer
