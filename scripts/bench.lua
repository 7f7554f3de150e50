-- SPDX-License-Identifier: MIT
-- Measures what Nacre promises and prints it as Markdown:
--
--   build/nacre scripts/bench.lua [--quick] [PART...]
--
-- Parts: start small middle large memory interrupt; all if none is named.
-- NumPy (small, middle, large) and the times of other programs (start,
-- interrupt) need python3; what cannot be measured is named as such. --quick
-- takes few and small samples, to see that it works; its figures mean nothing.
--
-- Ours and NumPy's turns alternate, each in one thread. A figure is the median
-- over the turns; a ratio is the median of the ratios of one turn each.

local stats = require "nacre.timing_stats"

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local usage = "usage: nacre scripts/bench.lua [--quick] [start] [small] " ..
              "[middle] [large] [memory] [interrupt]"
local quick, parts, known = false, {}, {}
for part in usage:gmatch("%[(%l+)%]") do known[part] = true end
for _, word in ipairs(arg) do
  if word == "--help" then
    print(usage)
    return
  elseif word == "--quick" then
    quick = true
  elseif known[word] then
    parts[word] = true
  else
    io.stderr:write("bench.lua: no part '", word, "'\n", usage, "\n")
    os.exit(2)
  end
end
if next(parts) == nil then parts = known end

local turns = quick and 3 or 9
local million16 = quick and 1 << 20 or 16 << 20

-- Every case: what it is called, ours, NumPy's, the least NumPy/ours.
local cases = {
  small = {size = 1, calls = quick and 20000 or 200000,
    {"`a+b`", "y = a + b", "y = a + b", 1},
    {"`a:add_(b)`", "a:add_(b)", "a += b", 1},
  },
  middle = {size = 10000, calls = quick and 200 or 2000},
  large = {size = million16, calls = 1,
    {"`a+b`", "y = a + b", "y = a + b", 1.5},
    {"`a*b+c`", "y = a * b + c", "y = a * b + c", 1},
    {"`exp`", "y = a:exp()", "y = np.exp(a)", 1.5},
    {"`sigmoid`", "y = a:sigmoid()", "y = 1 / (1 + np.exp(-a))", 1},
    {"`where`", "y = nacre.where(m, a, b)", "y = np.where(m, a, b)", 1},
    {"`sum`", "y = a:sum()", "y = a.sum()", 1},
    {"`var`", "y = a:var{unbiased=false}", "y = a.var()", 1},
  },
}
for i, case in ipairs(cases.large) do
  cases.middle[i] = {case[1], case[2], case[3], 1}
end

--
-- Help
--
local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The lines that a command prints, or nil if it fails.
local function output(command)
  local f, lines = assert(io.popen(command, "r")), {}
  for line in f:lines() do lines[#lines + 1] = line end
  return f:close() and lines or nil
end

local function quantile(list, q)
  return stats.quantile(stats.sorted(list), q)
end

local median = stats.median

local function time(seconds)
  if seconds < 1e-5 then return ("%.3f us"):format(seconds * 1e6) end
  if seconds < 1e-2 then return ("%.1f us"):format(seconds * 1e6) end
  return ("%.1f ms"):format(seconds * 1e3)
end

local function verdict(met)
  return met and "yes" or "**no**"
end

local function heading(text, ...)
  print("\n## " .. text .. "\n")
  local columns = {...}
  print("| " .. table.concat(columns, " | ") .. " |")
  print("|---" .. ("|---:"):rep(#columns - 1) .. "|")
end

local function row(...)
  print("| " .. table.concat({...}, " | ") .. " |")
  io.stdout:flush()
end

local exe = output("readlink /proc/$PPID/exe")[1]
local python, numpy
for _, name in ipairs {"/usr/bin/python3", "python3"} do
  local version = output(name ..
    " -c 'import numpy; print(numpy.__version__)' 2>/dev/null")
  if version then
    python, numpy = name, version[1]
    break
  end
  if output(name .. " -c pass 2>/dev/null") then python = python or name end
end

--
-- Operations, against NumPy
--
-- A function that runs the statement n times and gives the seconds of one.
local function compile(statement, names, values)
  local text = ("local nacre, %s = ...\nreturn function(n)\n" ..
    "local y\nlocal start = nacre.clock()\nfor _ = 1, n do %s end\n" ..
    "return (nacre.clock() - start) / n\nend"):format(names, statement)
  return assert(load(text))(nacre, table.unpack(values))
end

-- One turn of ours: the seconds of each case.
local function ours(group)
  local n, seconds = group.size, {}
  local a, b, c = nacre.rand(n), nacre.rand(n), nacre.rand(n)
  local values = {a, b, c, a:gt(b)}
  for i, case in ipairs(group) do
    local run, samples = compile(case[2], "a, b, c, m", values), {}
    run(group.calls)
    for k = 1, 3 do samples[k] = run(group.calls) end
    seconds[i] = median(samples)
  end
  return seconds
end

local function theirs(group, file)
  local lines = output(("OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 %s %s %s")
    :format(python, quote(here .. "/bench/numpy_bench.py"), quote(file)))
  local seconds = assert(lines, "numpy_bench.py failed")
  for i = 1, #seconds do seconds[i] = tonumber(seconds[i]) end
  return seconds
end

local function writecases(group, file)
  local f = assert(io.open(file, "w"))
  f:write(group.size, "\n", group.calls, "\n")
  for _, case in ipairs(group) do f:write(case[3], "\n") end
  f:close()
end

local function against(group, title)
  local file = os.tmpname()
  writecases(group, file)
  local mine, other, ratio = {}, {}, {}
  for i = 1, #group do mine[i], other[i], ratio[i] = {}, {}, {} end
  for turn = 1, turns do
    local x = ours(group)
    collectgarbage()
    local y = numpy and theirs(group, file)
    for i = 1, #group do
      mine[i][turn] = x[i]
      if y then other[i][turn], ratio[i][turn] = y[i], y[i] / x[i] end
    end
  end
  os.remove(file)
  heading(title, "", "Nacre", "NumPy", "NumPy / Nacre", "quartiles", "goal",
          "met")
  for i, case in ipairs(group) do
    if numpy then
      row(case[1], time(median(mine[i])), time(median(other[i])),
          ("%.2f"):format(median(ratio[i])),
          ("%.2f to %.2f"):format(quantile(ratio[i], 0.25),
                                  quantile(ratio[i], 0.75)),
          (">= %.1f"):format(case[4]), verdict(median(ratio[i]) >= case[4]))
    else
      row(case[1], time(median(mine[i])), "no NumPy here", "", "", "", "")
    end
  end
  return mine
end

--
-- Parts
--
local function start()
  heading("Start", "program", "time", "peak memory", "goal", "met")
  local peak = {}
  for i = 1, 9 do
    peak[i] = tonumber(output(quote(exe) .. " " ..
      quote(here .. "/bench/loop.lua") .. " peak")[1])
  end
  local mib = median(peak) / 1024
  local lines = python and output(("%s %s start %s %d"):format(python,
    quote(here .. "/bench/process_bench.py"), quote(exe), quick and 9 or 100))
  if not lines then
    row("`nacre -e ''`", "no python3 here", ("%.1f MiB"):format(mib),
        "<= 5 ms, 8 MiB", "")
    return
  end
  for i, line in ipairs(lines) do
    local name, ms = line:match("^(.*)\t(.*)$")
    row("`" .. name .. "`", ("%.2f ms"):format(tonumber(ms)),
        i == 1 and ("%.1f MiB"):format(mib) or "",
        i == 1 and "<= 5 ms, 8 MiB" or "",
        i == 1 and verdict(tonumber(ms) <= 5 and mib <= 8) or "")
  end
end

local function small()
  local mine = against(cases.small, "One element, in a Lua loop")
  local add, inplace = median(mine[1]), median(mine[2])
  print(("\nGoals in time: `a+b` at most 0.25 us: %s. In place at most " ..
         "0.1 us: %s."):format(verdict(add <= 0.25e-6),
                               verdict(inplace <= 0.1e-6)))
end

local function memory()
  heading("Memory: `for i=1,n do c = a+b end`", "tensors", "n", "a round",
          "peak", "live", "goal", "collector", "goal", "met")
  local sizes = {{1000000, quick and 1000 or 100000},
                 {100000000, quick and 20 or 300}}
  for _, size in ipairs(sizes) do
    local lines = output(("%s %s %d %d"):format(quote(exe),
      quote(here .. "/bench/loop.lua"), size[1], size[2]))
    local seconds, kib, live, share = table.unpack(lines)
    local peak, most = kib * 1024 / 1e6, (2.5 * live + 16e6) / 1e6
    row(("%d MB"):format(size[1] // 1000000), size[2],
        time(tonumber(seconds)), ("%.0f MB"):format(peak),
        ("%.0f MB"):format(live / 1e6), ("<= %.0f MB"):format(most),
        ("%.1f %%"):format(share * 100), "<= 5 %",
        verdict(peak <= most and tonumber(share) <= 0.05))
  end
  print("\nLive: a, b, the old c and the new one. The collector's time " ..
        "is without that of giving memory back to the system.")
end

local function interrupt()
  heading("Ctrl-C", "during", "median", "slowest", "goal", "met")
  local lines = python and output(("%s %s interrupt %s %s"):format(python,
    quote(here .. "/bench/process_bench.py"), quote(exe),
    quick and "quick" or "full"))
  if not lines then return row("(not measured)", "", "", "<= 100 ms", "") end
  for _, line in ipairs(lines) do
    local name, middle, most = line:match("^(.*)\t(.*)\t(.*)$")
    if name then
      row("`" .. name .. "`", middle .. " ms", most .. " ms", "<= 100 ms",
          verdict(tonumber(middle) <= 100))
    else
      row(line, "", "", "<= 100 ms", "")
    end
  end
end

nacre.set_num_threads(1)
print("# Measurements\n")
local function machine(command)
  local lines = output(command .. " 2>/dev/null")
  if lines and lines[1] then print("* " .. lines[1]) end
end
machine("date -u +%Y-%m-%d")
machine("sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo")
machine("echo $(nproc) processors visible, load $(cut -d' ' -f1 /proc/loadavg)")
machine(quote(exe) .. " --version")
print("* NumPy " .. (numpy or "is not here"))
print(("* %d turns%s"):format(turns, quick and "; QUICK: no figures" or ""))

if parts.start then start() end
if parts.small then small() end
if parts.middle then against(cases.middle, "10,000 elements, float32") end
if parts.large then
  against(cases.large, ("%dM elements, float32"):format(million16 >> 20))
end
if parts.memory then memory() end
if parts.interrupt then interrupt() end
