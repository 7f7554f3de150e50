-- SPDX-License-Identifier: MIT
-- Timing from programs: nacre.bench, JSON, files, what is counted.

local here = arg[0]:match "^(.*/)" or "./"
local C = dofile(here .. "../lib/common.lua")
local bench = require "nacre.bench"
local compare = require "nacre.compare"
local difference = require "nacre.tensor_difference"
local file = require "nacre.measurement_files"
local json = require "nacre.json"
local text = require "nacre.timing_text"
local timing = require "nacre.measure"

local a = nacre.ones(100, 100, {device = "cpu"})

-- What the program prints when it runs this Lua with these options, in this
-- environment.
local exe = io.popen "readlink /proc/$PPID/exe":read "l"
local function output(options, program, variables)
  local p = io.popen(("%s '%s' %s -e '%s' 2>&1"):format(
    variables or "", exe, options, program))
  local text = p:read "a"
  p:close()
  return text
end

-- words
do
  assert(text.time(101.3e-3) == "101 ms")
  assert(text.time(101.3e-3, 2) == "100 ms")
  assert(text.time(1.94e-6, 2) == "1.9 us")
  assert(text.time(999.7e-6) == "1.00 ms", "rounded before the unit is chosen")
  assert(text.time(99.96e-9) == "100 ns")
  assert(text.time(0.4e-9, 1) == "0.4 ns")
  assert(text.time(59.96) == "60.0 s")
  assert(text.time(130) == "2 min 10 s")
  assert(text.range(100e-3, 103e-3, 3) == "100 .. 103 ms")
  assert(text.range(0.9e-3, 1.2e-3, 2) == "0.90 .. 1.2 ms")
  assert(text.rate(1.3564e12, "FLOP/s") == "1.36 TFLOP/s")
  local rate, peak = text.rate(1.3564e12, "FLOP/s", 3, 1.66e12)
  assert(rate == "1.36 TFLOP/s" and peak == "1.66")
  assert(text.rate(0, "FLOP/s") == nil, "nobody is told 0 FLOP/s")
  assert(text.rate(999.9e6, "B/s") == "1.00 GB/s")
  assert(text.percent(0.823) == "82%" and text.percent(0.004) == "<1%")
  assert(text.percent(0.823, 1) == "80%")
  assert(text.percent(1.34, 1) == "134%", "a digit less would say 100%")
  rate, peak = text.rate(293e6, "B/s", 3, 15.4e9)
  assert(rate == "293 MB/s" and peak == "15.4 GB/s")
end

-- what was reached of the peaks
do
  local r = {flops = 2e9, bytes = 1e9, operations = 1, dtype = "float32"}
  local peaks = {gemm = {float32 = 4e9}, bandwidth = 10e9, latency = 1e-6}
  local o = text.reached(r, 1, peaks)
  assert(o.compute == 0.5 and o.memory == 0.1 and o.verdict == "compute-bound")
  assert(text.limit(o)[2] == "FLOP/s")
  r.bytes = 9e9
  o = text.reached(r, 1, peaks)
  assert(o.verdict == "memory-bound" and text.limit(o)[2] == "B/s")
  assert(text.limit(o, false)[2] == "FLOP/s")
  r.operations = 1000000                -- a microsecond each
  assert(text.reached(r, 1, peaks).verdict == "launch-bound")
  peaks.h2d, peaks.d2h = 20e9, 10e9     -- 0.5 s and 0.2 s of a second
  r.operations, r.copied_in, r.copied_out = 1, 10e9, 2e9
  o = text.reached(r, 1, peaks)
  assert(math.abs(o.copies - 0.7) < 1e-12 and o.verdict == "memory-bound")
  r.bytes = 1e9
  assert(text.reached(r, 1, peaks).verdict == "copy-bound")
  r.emulated = true
  assert(text.reached(r, 1, peaks).verdict == nil)
  assert(text.reached({flops = 1, bytes = 1, operations = 1}, 1).compute == nil)
  -- only copies: the rate is that of the bus, and so is the share
  r = {flops = 0, bytes = 30e9, operations = 1, copied_in = 15e9,
       copied_out = 0, device = "cuda:0"}
  o = text.reached(r, 1, peaks)
  assert(o.bytes == 15e9 and o.memory == 0.75 and o.topbytes == 20e9)
  assert(o.verdict == "copy-bound" and text.limit(o)[1] == 15e9)
  peaks.h2d = 10e9
  assert(text.cached(text.reached(r, 1, peaks)) == nil, "no cache gave it")
  -- what memory cannot give is no verdict on it
  r = {flops = 1, bytes = 30e9, operations = 1, dtype = "float32"}
  o = text.reached(r, 1, peaks)
  assert(text.cached(o) == "from a cache" and o.verdict == nil)
  assert(o.memory == nil and text.limit(o)[3] == nil, "no part of a peak")
  r.flops = 4.4e9
  assert(text.reached(r, 1, peaks).compute == 1, "nothing is beyond a peak")
  r.flops = 3e9
  assert(text.reached(r, 1, peaks).verdict == "compute-bound")
end

-- warnings
do
  local function warning(o)
    local r = {median = 1, q1 = 1, q3 = 1, half = 0, load = 0}
    for k, v in pairs(o) do r[k] = v end
    return text.warning(r)
  end
  assert(warning {} == nil)
  assert(warning {q3 = 1.09} == nil)
  assert(warning {q3 = 1.26} ==
         "middle half is 26% of the median: do not trust the second digit")
  assert(warning {half = 0.08}:find "took 8%% longer than the first")
  assert(warning {half = -0.08}:find "took 8%% less than the first")
  assert(warning {load = 1e6} == nil, "that is said once, of all results")
  assert(text.load {{load = 0}, {load = 1e6}, {}}
         :find "^warning: load average 1000000.0 on %d+ cores?$")
  assert(text.load {{load = 0}, {}} == nil)
  assert(warning {q3 = 3}:find "do not trust any digit$")
  assert(warning {clock = {1980, 1410, 4}} == "the GPU's clock went from " ..
         "1980 to 1410 MHz (power cap): do not trust the third digit")
  assert(warning {clock = {1410, 1410, 0x40}}:find "held at 1410 MHz %(heat%)")
  assert(warning {clock = {1410, 1400, 0}} == nil)
  assert(warning {clock = {1410}} == nil)
end

-- a result
do
  local r = nacre.bench("a:mm(a)", {globals = {a = a}, budget = 0.05})
  assert(#r.samples >= 7 and r.n >= 1)
  assert(r.min <= r.q1 and r.q1 <= r.median and r.median <= r.q3)
  assert(r.flops == 2e6 and r.operations == 1, r.flops)
  assert(r.bytes == 3 * 40000, r.bytes)
  assert(r.device == "cpu" and r.dtype == "float32")
  assert(tostring(r):find("float32[100x100] x float32[100x100]", 1, true))
  local runs = 0
  r = nacre.bench(function() runs = runs + 1 end, {budget = 0.02})
  assert(runs > #r.samples * r.n and r.operations == 0)
  assert(text.nothing {operations = 0, median = timing.empty "function"})
  assert(text.nothing {operations = 0, median = timing.empty "text", text = ""})
  assert(not text.nothing {operations = 0, median = 1e-3})
  assert(not text.nothing {operations = 1, median = 0})
  assert(r.n > 1)       -- a sample of such has many calls
end

-- the session is left as it was
do
  assert(rawget(_G, "zz") == nil)
  nacre.bench("zz = 1", {setup = "yy = 2", budget = 0.01})
  assert(rawget(_G, "zz") == nil and rawget(_G, "yy") == nil)
  assert(collectgarbage "isrunning")
  C.fails("oh no", nil, nacre.bench, "error 'oh no'", {budget = 0.01})
  assert(collectgarbage "isrunning", "also after an error")
  local t = nacre.Timer {stmt = "1", num_threads = 1}
  local threads = nacre.get_num_threads()
  t:timeit(3)
  assert(nacre.get_num_threads() == threads)
  local mine = {a = a}
  nacre.bench("a", {globals = mine, budget = 0.01})
  assert(getmetatable(mine) == nil)
end

-- what takes longer than the budget runs no more often than it must
do
  local runs = 0
  local r = nacre.bench(function()
    runs = runs + 1
    local stop = nacre.clock() + 0.03
    while nacre.clock() < stop do end
  end, {budget = 0.02})
  assert(#r.samples == 3 and runs <= 5, runs)
end

-- what is measured prints once, and stdout is itself again, also after an
-- error and when one measurement is in another
do
  local text = output("", [[
    io.write "a "
    local r = nacre.bench("io.write \"b \"", {budget = 0.01})
    print(r.prints, tostring(r):find "was shown once" ~= nil)
    local n = 0
    print(pcall(nacre.bench, function()
      n = n + 1
      io.write "c "
      if n > 300 then error({}) end
    end, {budget = 0.01}) == false)
    nacre.bench(function()
      nacre.bench("os.execute \"echo d\"", {budget = 0.001})
    end, {budget = 0.001})
    print(nacre.bench("1", {budget = 0.01}).prints)
    print(#shell.compare({"print(1)", "print(2)"}, {budget = 0.01}))]])
  assert(text == "a b true\ttrue\nc true\nd\nfalse\n1\n2\n2\n", text)
end

-- names of locals, and where an undefined global is an error
do
  local text = output("--strict", [[
    print(nacre.bench("local q = 1", {budget = 0.01}).n > 0)
    nacre.bench("nosuch()", {budget = 0.01})]])
  assert(text:find "^true\n" and text:find "no variable 'nosuch'", text)
end

-- a timer: options by place and by name, and wrong ones
do
  local t = nacre.Timer {stmt = "b + 1", setup = "b = nacre.ones(8)"}
  assert(t:adaptive_autorange(0.5, 0.001, 0.01).median > 0)
  assert(t:adaptive_autorange({threshold = 5, max_run_time = 0.01}).iqr >= 0)
  local m = t:blocked_autorange(0.001)
  assert(m.raw_times[1] == m.times[1] * m.number_per_run)
  C.fails("no option 'min_runtime'", nil, t.blocked_autorange, t,
          {min_runtime = 1})
  C.fails("min_run_time must be above 0", nil, t.blocked_autorange, t, -1)
  C.fails("threshold is a number", nil, t.adaptive_autorange, t, "0.1")
  for _, case in ipairs {
    {{}, "stmt is missing"}, {{stmt = 1}, "a string or function"},
    {{stmt = "1", num_thread = 1}, "did you mean num_threads?"},
    {{stmt = "1", num_threads = "2"}, "num_threads is a number"},
    {{stmt = "1", globals = 5}, "globals is a table"}} do
    C.fails(case[2], nil, nacre.Timer, case[1])
  end
end

-- statements that jump out
do
  local r = nacre.bench("for i = 1, 3 do if i == 2 then return end end",
                        {budget = 0.01})
  assert(r.median > 0)
  r = nacre.bench("do goto done end ::done::", {budget = 0.01})
  assert(r.median > 0)
  r = nacre.bench("a -- a remark", {globals = {a = a}, budget = 0.01})
  assert(r.median > 0)
  C.fails("near", nil, nacre.bench, "x end for i = 1, 2 do", {})
end

-- what is wrong
for _, case in ipairs {
  {{warmpu = false}, "did you mean warmup?"}, {{cold = 1}, "is a boolean"},
  {{budget = 0}, "above 0"}, {{samples = -1}, "above 0"},
  {{save = "a/b"}, "not a valid name"}, {{against = "nosuch"}, "No such file"},
  {{json = "/nosuch/x"}, "No such file"}, {{setup = "x y"}, "setup: "},
} do
  case[1].budget = case[1].budget or 0.01
  C.fails(case[2], nil, nacre.bench, "1", case[1])
end

-- what is not an expression, and what a text cannot see
do
  for _, nothing in ipairs {"", "  ", "-- hi", "--[[ a ]] -- b"} do
    C.fails("an expression is needed", nil, nacre.bench, nothing, {})
  end
  local mine = nacre.ones(2)
  local function caller(text, o)
    local x = mine
    local r = nacre.bench(text, o)
    return r, x
  end
  local ok, e = pcall(caller, "x:sum()", {budget = 0.01})
  assert(not ok and tostring(e):find("'x' is a local variable", 1, true) and
         tostring(e):find("function() return x:sum() end", 1, true), e)
  for _, o in ipairs {{globals = {x = mine}}, {setup = "x = nacre.ones(2)"}} do
    o.budget = 0.01
    assert(caller("x:sum()", o).median > 0)
  end
  assert(caller("local x = 1", {budget = 0.01}).median > 0)
end

-- functions and lists of sizes, where texts and ranges are usual
do
  local sweep = require "nacre.sweep"
  local t = sweep.call({4, 8}, {function(n) return nacre.ones(n) end, "1 + n"},
                       {budget = 0.01})
  assert(t.name == "n" and #t.reached == 2 and t.reached[2] == 8)
  assert(t.columns[1].name == "function 1" and t.columns[2].results[2])
  local seen = {}
  sweep.call({3}, function(n) seen[n] = true end, {budget = 0.01})
  assert(seen[3])
  C.fails("a string such as n=16..4096 or a list", nil, sweep.call, 3, "n")
  C.fails("not a number", nil, sweep.call, {3}, 5)
  C.fails("the sizes must grow", nil, sweep.call, {8, 4}, "n")
  local list = compare.call({function() return a + 1 end,
                             function() return a + 1 end}, {budget = 0.01})
  assert(tostring(list):find "results agree: bit by bit", tostring(list))
  C.fails("give a string, or several functions", nil, compare.call,
          function() end)
  C.fails("not a number", nil, compare.call, {1})
  C.fails("options are a table", nil, compare.call, "1 ;; 2", 3)
end

-- every run has the same operands, and those of the session stay
do
  held = {nacre.zeros(3, {device = "cpu"})}
  local r = compare.call({"held[1]:add_(1)", "held[1] + 1"}, {budget = 0.01})
  assert(tostring(r):find "results agree: bit by bit", tostring(r))
  assert(held[1]:sum():item() == 0)
  local state = nacre.get_rng_state()
  r = compare.call({"nacre.rand(3)", "nacre.rand(3) * 1"}, {budget = 0.01})
  assert(tostring(r):find "results agree: bit by bit", tostring(r))
  assert(not nacre.get_rng_state():equal(state), "but they were drawn")
  -- what is another thing each time is not compared
  turn = 0
  function held.next() turn = turn + 1 return nacre.ones(2) * turn end
  r = compare.call({"held.next() + 1", "nacre.ones(2)"}, {budget = 0.01})
  assert(tostring(r):find "differs from run to run", tostring(r))
  held, turn = nil, nil
end

-- copies: of tables with their tensors, whose memory is their own
do
  local operands = require "nacre.operand_copies"
  local leaf = nacre.ones(2):requires_grad_()
  leaf.grad = nacre.ones(2)
  local base = {t = {a = a, again = {a}, leaf = leaf, n = 1}, s = {1, 2},
                g = nacre.Generator()}
  base.t.self = base.t
  local env = operands.environment("t.a, s, g", base)
  local t = env.t
  assert(t ~= base.t and t.self == t and t.n == 1 and t.again[1] == t.a)
  assert(nacre._storage_id(t.a) ~= nacre._storage_id(a) and t.a:equal(a))
  assert(t.leaf.requires_grad and t.leaf.is_leaf)
  assert(t.leaf.grad:sum():item() == 2)
  t.leaf.grad:zero_()
  assert(leaf.grad:sum():item() == 2)
  assert(env.s == base.s, "what holds no tensor is no copy")
  assert(env.g ~= base.g)
end

-- a budget holds all; where it is short there are fewer samples, and it is said
do
  local r = nacre.bench(function()
    local start = nacre.clock()
    repeat until nacre.clock() - start > 0.02
  end, {budget = 0.05})
  assert(#r.samples >= 3 and #r.samples < 7, #r.samples)
  assert(tostring(r):find "the budget holds only %d samples", tostring(r))
end

-- the time of a device is in the rates if it is told, and only then
do
  local time = require "nacre.time_once"
  local r = {seconds = 1, opening = 0, devicetime = 2, uses = 1, flops = 1e9,
             bytes = 1e8, operations = 1, allocated = 0, copied_in = 0,
             copied_out = 0, device = "cuda:0", emulated = true}
  local line = time.line(r)
  assert(line:find("1.00 s  1.00 GFLOP/s", 1, true), line)
  r.devicetime = 0.5
  line = time.line(r)
  assert(line:find("500 ms on the device  2.00 GFLOP/s", 1, true), line)
end

-- options before an expression
do
  for _, case in ipairs {{"--budget=1 a", "after a blank"},
                         {"--xyzzy a", "no option '--xyzzy'"},
                         {"-q a", "no option '-q'"}} do
    local none, why = bench.options(case[1])
    assert(none == nil and why:find(case[2], 1, true), why)
  end
  local o, e = bench.options '-n -c cold -s "x = \\"y\\"" --save a x + 1'
  assert(o.warmup == false and o.cold and o.setup == 'x = "y"')
  assert(o.save == "a" and e == "x + 1")
  o, e = bench.options "-x + 1"
  assert(next(o) == nil and e == "-x + 1", "a minus is no option")
  o, e = bench.options "-n"
  assert(next(o) == nil and e == "-n")
  o, e = bench.options "-s 'unfinished"
  assert(o == nil and e:find "-s needs")
end

-- a ;; b
do
  local function split(s) return table.concat(compare.split(s), "|") end
  assert(split "a ;; b" == "a|b")
  assert(split "a;;b ;; c" == "a|b|c")
  assert(split "a; ;b" == "a; ;b")
  assert(split 'f";;" ;; b' == 'f";;"|b')
  assert(split "a -- ;;" == "a -- ;;")
  assert(split ";; a" == "|a")
end

-- the curves of a sweep
do
  local function column(name, f)
    local c = {name = name, results = {}}
    for i = 1, 4 do c.results[i] = {median = f(10.0 ^ i)} end
    return c
  end
  local t = {name = "n", reached = {10, 100, 1000, 10000}, columns = {
    column("slow", function(n) return 1e-8 * n end),
    column("fast", function(n) return 1e-5 + 1e-10 * n end)}}
  t.columns[1].results[4] = nil         -- it was left out
  local lines = require "nacre.sweep".chart(t, {width = 60})
  assert(#lines == 13 and lines[1]:find "%* slow   %+ fast", lines[1])
  assert(lines[2]:find "^ *11 us |%++", lines[2])
  assert(lines[11]:find "^100 ns |%*", lines[11])
  assert(lines[13]:find "^%s+10 .*100 .*1000 .*10000$", lines[13])
  for _, line in ipairs(lines) do assert(#line <= 60, line) end
end

-- when copies pay for themselves
do
  local n = compare.breakeven
  assert(n(10, 1, 5) == 1 and n(10, 1, 10) == 1)
  assert(n(10, 1, 11) == 2 and n(10, 1, 100) == 11)
  assert(n(1, 2, 3) == nil and n(2, 2, 3) == nil)
end

-- JSON
do
  local t = {a = 1, b = {1.5, "x\n\"\\", true, false, {}}, c = {d = -0.1},
             ["é"] = 1e300, f = 2^53, g = math.mininteger}
  local back = assert(json.decode(json.encode(t)))
  assert(json.encode(back) == json.encode(t))
  assert(back.b[2] == "x\n\"\\" and back.c.d == -0.1 and back["é"] == 1e300)
  assert(math.type(back.a) == "integer" and back.g == math.mininteger)
  assert(json.encode {x = math.huge}:find '"x": null')
  assert(json.decode ' [1, 2.5e3 , "\\u00e9\\ud83d\\ude00"] '[3] == "é😀")
  for _, bad in ipairs {"", "{", "[1,", "[1 2]", "{1: 2}", '{"a" 1}', '"x',
                        "nul", "[1]x", "--1", '"\\ud', ("["):rep(2000)} do
    local v, why = json.decode(bad)
    assert(v == nil and why:find "^line 1, column %d+: ", bad)
  end
  local v, why = json.decode '{\n"a": 1,\n"b": ?}'
  assert(v == nil and why:find "^line 3, column 6: ", why)
end

-- kept measurements
do
  local here_now = {}
  for i = 1, 9 do here_now[i] = 1 + i / 1000 end
  local r = {samples = here_now, median = 1.005, device = "cpu", threads = 1,
             text = "f()"}
  local old = file.record(r)
  assert(old.command == "f()" and math.abs(old.mean - 1.005) < 1e-12)
  assert(math.abs(old.stddev - 0.00273861) < 1e-7)
  local lines, c = file.compared(r, "x", old)
  assert(lines[1]:find "no difference shown" and c.ratio == 1, lines[1])
  assert(#lines == 1)
  for i = 1, 9 do old.times[i] = 2 + i / 1000 end
  r.samples = {}
  for i = 1, 9 do r.samples[i] = 1 + i / 1000 end
  lines, c = file.compared(r, "x", old)
  assert(lines[1]:find "faster" and c.high < 0.51)
  old.machine, old.command = "another one", "g()"
  lines = file.compared(r, "x", old)
  assert(lines[2] == "x was: g()" and lines[3]:find "measured on another one")
  r.samples = {1}
  lines = file.compared(r, "x", old)
  assert(lines[1]:find "too few samples")
end

-- differences
do
  local x = nacre.tensor({1, 2, 4}, {dtype = "float32", device = "cpu"})
  local d = difference.measure(x + nacre.tensor {0, 2^-22, 0}, x)
  assert(d.different == 1 and d.ulp == 1 and d.absat == "[2]")
  d = difference.measure(x:double(), x)
  assert(d.different == 0 and d.dtype == "float32")
  local nan = nacre.tensor({nacre.nan, nacre.inf, 0})
  d = difference.measure(nan, nan)
  assert(d.different == 0 and d.nans == 0)
  d = difference.measure(nan, x)
  assert(d.different == 3 and d.nans == 1 and d.rel == math.huge)
  assert(difference.measure(nacre.ones(0), nacre.ones(0)).n == 0)
  assert(difference.measure(nacre.tensor(1), nacre.tensor(2)).absat == "[]")
  local v, why = difference.measure(x, nacre.ones(2))
  assert(v == nil and why == "shapes are [3] and [2]")
  -- least numbers have a last place, too
  local tiny = nacre.tensor {2.0^-149, 0}
  assert(difference.measure(tiny, nacre.zeros(2)).ulp == 1)
  -- in several pieces: the places are those of the whole
  local long = nacre.zeros(1100, 1000)
  local other = long:clone()
  other[1100][3] = 1
  d = difference.measure(other, long)
  assert(d.different == 1 and d.absat == "[1100,3]", d.absat)
  -- what rounding explains
  local product = {source = "a:mm(a)", env = {a = a}}
  assert(compare.inner(product) == 100)
  assert(compare.inner {source = "a:sum()", env = {a = a}} == 10000)
  assert(compare.inner {source = "a + a", env = {a = a}} == 1)
  d = {dtype = "float32", abs = 1e-5, scale = 100, different = 1}
  assert(difference.tolerable(d, 100))
  d.abs = 1e-1
  assert(not difference.tolerable(d, 100))
  assert(not difference.tolerable({dtype = "int64", different = 1}, 1))
end

-- peaks taken while other programs run are shown, not kept
do
  local peak, machine = require "nacre.machine_peak", require "nacre.machine"
  local own_files = require "nacre.own_files"
  local measure, average = peak.measure, machine.load
  local where = own_files.peaks
  local path, said = os.tmpname(), {}
  local out = {flush = function() end, write = function(_, ...)
    for _, s in ipairs {...} do said[#said + 1] = s end
  end}
  own_files.peaks = function() return path end
  peak.measure = function()
    return {copy = 1, triad = 1, bandwidth = 1, latency = 1, date = "today",
            gemm = {float32 = 1}}
  end
  local function kept(load)
    machine.load = function() return load end
    local stdout = io.stdout
    io.stdout = out
    peak.show(true, "stdout")
    io.stdout = stdout
    return io.open(path):read "a" ~= "", table.concat(said)
  end
  local file, text = kept(1e6)
  assert(not file and text:find "not kept: load average is 1000000.0", text)
  assert(kept(0), "an idle machine's are")
  os.remove(path)
  peak.measure, own_files.peaks, machine.load = measure, where, average
end

-- why there is no second device is said once
do
  assert(compare.alone(nil) == nil)
  assert(compare.alone "why" == "no second device: why")
  assert(compare.alone "why" == nil)
end

-- shares of peaks that a file tells of; a file that is damaged tells nothing
do
  local cache = os.tmpname()
  os.remove(cache)
  local machine = require "nacre.machine"
  assert(require "nacre.host".makefolders(cache .. "/nacre"))
  local path = cache .. "/nacre/peak.json"
  local key = machine.model() .. ", 1 thread"
  local function line(peaks)
    local f = assert(io.open(path, "w"))
    f:write(peaks)
    f:close()
    return output("--threads 1 --device cpu", [[
      a = nacre.ones(64, 64) a:mm(a)
      print(shell.time(function() return a:mm(a) end).text)]],
      ("XDG_CACHE_HOME='%s'"):format(cache))
  end
  local function figures(change)
    local t = {bandwidth = 1e15, copy = 1e15, triad = 1e15, latency = 1e-12,
               gemm = {float32 = 1e6}, date = "2026-01-01"}
    for name, v in pairs(change) do t[name] = v end
    return json.encode {version = 1, machines = {[key] = t}}
  end
  local text = line(figures {})
  assert(text:find "%d+%% of peak" and text:find "compute%-bound", text)
  for _, bad in ipairs {"", "{", "[1]", '{"version": 2, "machines": {}}',
    '{"version": 1, "machines": []}', figures {latency = "no"},
    figures {gemm = {float32 = "fast"}}, figures {gemm = 5},
    figures {bandwidth = -1}, figures {latency = 0}, figures {h2d = {}},
    (figures {}:gsub("1e%+06", "1e999"):gsub("1000000%.?0*", "1e999"))} do
    text = line(bad)
    assert(not text:find "of peak" and text:find "cpu", text)
  end
  os.remove(path)
  os.remove(cache .. "/nacre")
  os.remove(cache)
end

-- folders for what is kept
do
  local make = require "nacre.host".makefolders
  local base = os.tmpname()
  local ok, why = make(base)
  assert(not ok and why == base .. ": Not a directory", why)
  ok, why = make(base .. "/x/y")
  assert(not ok and why:find "Not a directory")
  os.remove(base)
  assert(make(base .. "//x/y/") and make(base .. "/x/y"))
  for _, part in ipairs {"/x/y", "/x", ""} do
    assert(os.remove(base .. part))
  end
  ok, why = make ""
  assert(not ok and why:find "No such file")
end

-- an empty run is one
assert(timing.empty "text" < 1e-5)
