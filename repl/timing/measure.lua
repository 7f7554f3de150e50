-- SPDX-License-Identifier: MIT
--
-- measure.lua - runs a piece of Lua many times and records how long that took.
-- Each sample waits for the devices; garbage is collected between samples.
--
--   measure.prepare(what, env) -> a subject: `what` is a text or a function
--   measure.measure(subject, options) -> a result
--
-- A result has median, min, max, q1, q3 (seconds of one run), samples (in
-- order), n (runs in a sample), flops, bytes, operations, allocated, copied_in
-- and copied_out (of one run), device, dtype, threads, emulated, load, seconds
-- (total), clock (of a GPU: MHz before and after, and why it is limited),
-- first and opening (seconds of the very first run, and the part spent opening
-- libraries), prints (does a run print?).

local errors = require "nacre.errors"
local lexer = require "nacre.lexer"
local machine = require "nacre.machine"
local istensor = require "nacre.tensor_facts".istensor
local stats = require "nacre.timing_stats"

local nacre = package.loaded.nacre
local clock, synchronize = nacre.clock, nacre.synchronize

-- products: the operations that multiply matrices.
local measure = {products = lexer.set "mm matmul bmm dot mv addmm"}

local function nothing() end

local LEAST = 50e-6           -- seconds of a sample, not less
local FEWEST, MOST = 7, 1000  -- samples
local LONGEST = 3             -- fewest samples, where each is long
local USUAL = 100             -- samples, where runs are short
local GARBAGE = 4 << 20       -- bytes that a sample may leave, about
local ELSEWHERE = 1 << 30     -- the same on a device, which keeps its memory
local HEAP = 64 << 20         -- beyond which it is always collected

-- The value of a name in a table of globals or in one it inherits from; nil
-- also where --strict would raise an error.
function measure.value_of(env, name)
  local v = rawget(env, name)
  if v ~= nil or rawequal(env, _G) then return v end
  local meta = getmetatable(env)
  return meta and measure.value_of(meta.__index, name)
end

-- The names in a text that have a value now, each once, in order.
local function names_in(text, env)
  local list = {}
  for _, name in ipairs(lexer.variables(text)) do
    if measure.value_of(env, name) ~= nil then list[#list + 1] = name end
  end
  return list
end
measure.named = names_in

-- An environment for texts: assignments do not reach the session, and what
-- they read is copied into one table.
function measure.environment(texts, base)
  base = base or _G
  local env = setmetatable({}, {__index = base})
  for _, text in ipairs(texts) do
    for _, name in ipairs(names_in(text, base)) do env[name] = base[name] end
  end
  return env
end

local JUMPS = lexer.set "return break goto"

local function jumps(text)
  for _, token in ipairs(lexer.tokens(text)) do
    if JUMPS[token.text] then return true end
  end
  return false
end

-- Calls f when the returned value, a <close> variable, ends.
function measure.defer(f) return setmetatable({}, {__close = f}) end

local function chunk(source, text, env)
  local f, message = load(source, "=stdin", "t", env)
  if f then errors.remember(f, text) end
  return f, message
end

-- The subject of a text; nil and Lua's message if it does not compile.
local LOOP = "local __n, __clock, __ready = ... local __t = __clock() " ..
             "for __i = 1, __n do %s\n end __ready() return __clock() - __t"
local CALLS = "local __f = function() %s\n end "

local function textsubject(text, env)
  local s = {text = text, env = env}
  local wrong
  s.once = chunk("return " .. text .. "\n", text, env)
  if s.once then
    s.loop = chunk(LOOP:format("local __r = " .. text), text, env)
    return s
  end
  s.once, wrong = chunk(text, text, env)
  if not s.once then return nil, wrong end
  if jumps(text) then
    s.loop = chunk(CALLS:format(text) .. LOOP:format("__f()"), text, env)
  else
    s.loop = chunk(LOOP:format(text), text, env)
  end
  return s
end

local function functionsubject(f)
  local function loop(n, now, ready)
    local start = now()
    for _ = 1, n do f() end
    ready()
    return now() - start
  end
  return {once = f, loop = loop}
end

-- Does a text hold more than blanks and comments?
function measure.has_code(text) return lexer.code(text)[1] ~= nil end

function measure.prepare(what, env)
  if type(what) == "string" then
    if not measure.has_code(what) then return nil, "an expression is needed" end
    return textsubject(what, env or measure.environment {what})
  end
  return functionsubject(what)
end

-- The seconds of an empty run of a text or of a function: times close to that
-- mean nothing.
local empty = {}

function measure.empty(kind)
  if empty[kind] then return empty[kind] end
  local s = measure.prepare(kind == "text" and "do end" or nothing, {})
  local least = math.huge
  for _ = 1, 5 do
    least = math.min(least, s.loop(20000, clock, nothing) / 20000)
  end
  empty[kind] = least
  return least
end

--
-- Counters
--
local FIELDS = {"flops", "bytes", "operations", "allocated", "opening",
                "uses", "copied_in", "copied_out"}

-- The increase of the counters since `before`, for one of `runs`.
local function counter_gain(before, runs)
  local now, r = {machine.counters()}, {}
  for i, name in ipairs(FIELDS) do
    local v = (now[i] - before[i]) / runs
    r[name] = math.tointeger(v) or v
  end
  return r
end

function measure.counters() return {machine.counters()} end
measure.gained = counter_gain

-- The device that was used, and the dtype of its floats, judged by the
-- counters and the tensors at hand.
function measure.place(counted, tensors)
  local device, dtype
  for _, t in ipairs(tensors) do
    local name = tostring(t.device)
    if name ~= "cpu" then device = device or name end
    dtype = dtype or t.dtype:find "float" and t.dtype
  end
  if counted.uses == 0 then device = "cpu" end
  device = device or "cuda:" .. nacre.cuda.current_device()
  return device, dtype
end

-- The tensors among results and, if there is a text, among its variables.
function measure.tensors(results, text, env)
  local list = {}
  for i = 1, results.n do
    if istensor(results[i]) then list[#list + 1] = results[i] end
  end
  for _, name in ipairs(text and names_in(text, env) or {}) do
    local v = measure.value_of(env, name)
    if istensor(v) then list[#list + 1] = v end
  end
  return list
end

-- Collects garbage, also while the collector is stopped; returns the seconds.
local function collect(s)
  local start = clock()
  if s then s.left = 0 end
  nacre.scope(nothing)
  return clock() - start
end

-- A value at whose end the collector runs again, if it does now.
local function keep_collector()
  local running = collectgarbage "isrunning"
  return measure.defer(function()
    if running then collectgarbage "restart" end
  end)
end

-- How much garbage may stay on a subject's device: a part of its free memory.
local function garbage_limit(s, most)
  if s.device == "cpu" then return most end
  return math.min(ELSEWHERE, nacre.cuda.mem_get_info(s.device) // 8)
end

-- Collects between samples, unless that takes longer than they do and there is
-- room.
local function collect_between(s, seconds)
  if s.left < garbage_limit(s, HEAP) and (s.collecting or 0) > 2 * seconds then
    return
  end
  s.collecting = collect(s)
end

-- The seconds of n runs. If memory runs out, garbage is collected and they
-- start again.
local function run(s, n)
  local ok, seconds = pcall(s.loop, n, clock, synchronize)
  if not ok then
    local e = seconds
    if type(e) ~= "table" or e.code ~= "ENOMEM" then error(e, 0) end
    collect(s)
    seconds = s.loop(n, clock, synchronize)
  end
  s.left = (s.left or 0) + (s.garbage or 0) * n
  return seconds
end

-- The first run prints as usual. While the returned value is alive, stdout is
-- discarded, or, until it is known whether a run prints, redirected to a file.
local function discard_output(s)
  if not machine.mute(s.prints == nil) then return nil end
  return measure.defer(function()
    local bytes = machine.unmute()
    if s.prints == nil then s.prints = bytes > 0 end
  end)
end

--
-- Cold caches: what is larger than the largest of them is written
--
local function flusher(device)
  local bytes = math.min(machine.cache() * 5 // 4, 512 << 20)
  if device ~= "cpu" then
    local l2 = nacre.cuda.get_device_properties(device).L2_cache_size
    bytes = math.max(4 * l2, 16 << 20)
  end
  local t = nacre.zeros(bytes // 4, {dtype = "float32", device = device})
  return function()
    t:add_(1)
    synchronize()
  end
end

-- The clock of the subject's GPU in MHz, and why it is limited.
local function gpuclock(s)
  if s.device == "cpu" or machine.emulated() then return nil end
  return machine.gpuclock(nacre.cuda.get_device_properties(s.device).uuid)
end

-- The very first run: its counters, its results, the libraries it opened.
local function first(s)
  local _ <close> = s.seen and discard_output(s)
  synchronize()
  local before, start = measure.counters(), clock()
  local results = table.pack(s.once())
  synchronize()
  s.first = clock() - start
  s.counted = counter_gain(before, 1)
  s.opening = s.counted.opening * 1e-9
  s.device, s.dtype = measure.place(s.counted,
    measure.tensors(results, s.text, s.env))
end

-- How many runs fit into memory without a collection.
local function runs_without_collection(s, most)
  return s.garbage > 0 and
         math.max(1, garbage_limit(s, most) // s.garbage) or 1e9
end

-- Warms up until two runs agree within 10 %, or for 0.2 s or a fifth of the
-- budget; finds how many runs take LEAST. Returns the seconds of one.
local function warm(s, once, longest)
  local _ <close> = discard_output(s)
  local start, n, last = clock(), 1, nil
  while true do
    local seconds = run(s, n)
    local each = seconds / n
    if s.left > garbage_limit(s, HEAP) then collect(s) end
    local more = LEAST * 1.2 / math.max(seconds, 1e-9)
    local next = math.ceil(n * math.max(2, math.min(10, more)))
    if seconds < LEAST and next <= runs_without_collection(s, HEAP) then
      n = next
    elseif once or last and math.abs(each / last - 1) < 0.1 or
           clock() - start > longest then
      return each
    else
      last = each
    end
  end
end

-- How many runs make a sample.
local function runs_per_sample(s, each, budget)
  local least = math.min(math.ceil(LEAST / each),
                         runs_without_collection(s, HEAP))
  local most = math.max(least, runs_without_collection(s, GARBAGE))
  local n = stats.round(math.max(LEAST, budget / USUAL) / each)
  if n > most then n = stats.round((most + 1) / 2) end
  return math.max(1, n > 1 and n or least)
end

-- One run by f, counted: the garbage it leaves, in bytes. Returns its seconds.
local function counted_run(s, f, ...)
  local before, lua = measure.counters(), collectgarbage "count"
  local seconds = f(...)
  s.counted = counter_gain(before, 1)
  s.garbage = s.counted.allocated +
              1024 * math.max(0, collectgarbage "count" - lua)
  return seconds
end

-- The second run, which shows whether it prints.
local function second(s)
  local _ <close> = discard_output(s)
  return counted_run(s, run, s, 1)
end

-- Without a warm-up the first sample is the first run.
local function without_warmup(s)
  local seconds = counted_run(s, s.loop, 1, clock, synchronize)
  s.first, s.opening = seconds, s.counted.opening * 1e-9
  s.device, s.dtype = measure.place(s.counted,
    measure.tensors({n = 0}, s.text, s.env))
  if seconds >= LEAST then s.samples[1] = seconds end
  return seconds
end

-- Everything before the samples; returns the seconds of one run. A run longer
-- than the warm-up is not repeated, and is a sample itself if it took as long
-- as the first.
local function warmed(s, o)
  local longest = math.min(0.2, o.budget / 5)
  if o.warmup == false then
    local each = without_warmup(s)
    return each > longest and each or warm(s, true, longest)
  end
  first(s)
  local each = second(s)
  if each <= longest then return warm(s, false, longest) end
  local same = math.abs((s.first - s.opening) / each - 1) < 0.1
  if same and not o.cold and (o.n or 1) == 1 then s.samples[1] = each end
  return each
end

local function ready(s, o)
  local start = clock()
  s.samples = {}
  local each = warmed(s, o)
  s.n = o.cold and 1 or o.n or runs_per_sample(s, each, o.budget)
  s.flush = o.cold and flusher(s.device)
  s.clock = gpuclock(s)
  collect(s)
  s.sampling = 0
  s.spent = clock() - start - s.opening
end

local function sample(s)
  local _ <close> = discard_output(s)
  local start = clock()
  if s.flush then s.flush() end
  local seconds = run(s, s.n)
  s.samples[#s.samples + 1] = seconds / s.n
  collect_between(s, seconds)
  local taken = clock() - start
  s.sampling = s.sampling + taken
  s.least = math.min(s.least or taken, taken)
end

-- The budget includes warm-up and cold caches; there are fewer samples than
-- usual if it does not hold more of even the shortest.
local function is_finished(s, o)
  local n = #s.samples
  if n >= (o.samples or MOST) then return true end
  local long = (s.least or s.samples[1] or 0) > o.budget / FEWEST
  local fewest = o.fewest or long and LONGEST or FEWEST
  return n >= fewest and s.spent + s.sampling >= o.budget
end

local function result(s, seconds)
  local r = stats.summary(s.samples)
  r.samples, r.n, r.seconds = s.samples, s.n, seconds
  for name, v in pairs(s.counted) do r[name] = v end
  r.first, r.opening = s.first, s.opening
  r.device, r.dtype, r.prints = s.device, s.dtype, s.prints
  r.threads, r.load = nacre.get_num_threads(), machine.load()
  r.cold = s.flush and true or nil
  r.short = #s.samples < FEWEST and #s.samples > 1 or nil
  r.clock = s.clock and {s.clock, gpuclock(s)}
  r.emulated = r.device ~= "cpu" and machine.emulated() or nil
  return r
end

-- Measures several subjects in turns, so that a drift of the clock affects
-- all. Options: budget (seconds for each, 1), warmup, cold, n (runs in a
-- sample), samples (at most), fewest (at least).
function measure.together(subjects, options)
  local o = setmetatable({budget = options and options.budget or 1},
                         {__index = options})
  local start, results, working = clock(), {}, true
  local _ <close> = keep_collector()
  collectgarbage "stop"
  for _, s in ipairs(subjects) do ready(s, o) end
  while working do
    working = false
    for _, s in ipairs(subjects) do
      if not is_finished(s, o) then
        sample(s)
        working = true
      end
    end
  end
  for i, s in ipairs(subjects) do results[i] = result(s, clock() - start) end
  return results
end

function measure.measure(subject, options)
  return measure.together({subject}, options)[1]
end

return measure
