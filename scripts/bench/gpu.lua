-- SPDX-License-Identifier: MIT
-- Times the operations of gpu_cases.lua on a device:
--
--   nacre gpu.lua [--device NAME] [--quick] [GROUP...]   a JSON line a case
--   nacre gpu.lua --list                  the cases as JSON lines, not run
--   nacre gpu.lua --serve                 reads names of cases from stdin and
--     times a few samples of each as it comes, so that gpu_compare.py can let
--     another program take turns with this one
--
-- Times are the device's own, by events; those of the group "host" are what a
-- call takes until it returns. Operands change from one sample to the next if
-- they would otherwise stay in the device's cache. --quick makes everything
-- small, to see that it works; its figures mean nothing.

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local cases = dofile(here .. "/gpu_cases.lua")
local json = require "nacre.json"
local machine = require "nacre.machine"
local median = require "nacre.timing_stats".median
local device, mode, groups = "cuda:0", "run", {}
local quick = false
do
  local i = 1
  while arg[i] do
    if arg[i] == "--device" then
      i = i + 1
      device = arg[i]
    elseif arg[i] == "--quick" then
      quick = true
    elseif arg[i] == "--list" or arg[i] == "--serve" then
      mode = arg[i]:sub(3)
    else
      groups[arg[i]] = true
    end
    i = i + 1
  end
end
local samples, warmups = 5, quick and 1 or 3
local cachesize = 300e6       -- several times the largest
local letters = {"a", "b", "m", "i", "p"}

-- Fused functions, for the expressions of cases.
fused = {
  chain = nacre.kernel "y = sigmoid(a*b + c)",
  gelu = nacre.kernel
    "y = 0.5*x*(1 + tanh(0.7978845608028654*(x + 0.044715*x*x*x)))",
  softmax = nacre.fuse(function(x)
    local e = (x - x:amax(-1, true)):exp()
    return e / e:sum(-1, true)
  end),
}

local function say(t)
  print(json.line(t))
  io.stdout:flush()
end

--
-- Operands
--
-- { name, kind, dtype, sizes } of each
local function operands(case)
  local list = {}
  for part in case.operands:gmatch("[^;]+") do
    local names, kind, dtype, text =
      part:match("^%s*([%a,]+)=(%a+) (%w+) ([%dx]+)$")
    local sizes = {}
    for n in text:gmatch("%d+") do
      local most = case.operands:find("%dx%d") and 32 or 1000
      sizes[#sizes + 1] = quick and math.min(tonumber(n), most)
                          or math.tointeger(tonumber(n))
    end
    for name in names:gmatch("%a") do
      list[#list + 1] = {name = name, kind = kind, dtype = dtype,
                         sizes = sizes}
    end
  end
  return list
end

local function limit(case)
  return quick and 32 or case.limit
end

local make = {
  randn = function(o)
    return nacre.randn(o.sizes, {device = device}):to(o.dtype)
  end,
  image = function(o)
    return nacre.randn(o.sizes, {device = device}):to(o.dtype)
  end,
  int = function(o)
    return nacre.randint(-100, 101, o.sizes, {device = device}):to(o.dtype)
  end,
  mask = function(o)
    return nacre.rand(o.sizes, {device = device}):gt(0.5)
  end,
  index = function(o, case)
    return nacre.randint(1, limit(case) + 1, o.sizes, {device = device})
  end,
  pinned = function(o)
    return nacre.randn(o.sizes, {device = "cpu"}):pin_memory()
  end,
  pageable = function(o) return nacre.randn(o.sizes, {device = "cpu"}) end,
}

local function bytes(t)
  return t:numel() * t:element_size()
end

-- As many sets of operands as exceed the cache.
local function sets(case)
  local list, size = operands(case), 0
  local all = {}
  repeat
    local set = {}
    for _, o in ipairs(list) do
      set[o.name] = make[o.kind](o, case)
      if #all == 0 then size = size + bytes(set[o.name]) end
    end
    all[#all + 1] = set
  until case.host or #all * size > cachesize or #all >= (quick and 2 or 16)
  return all
end

-- The least that must be read and written.
local function moved(case, set, y)
  local sum = 0
  if case.moved then
    for name in case.moved:gmatch("%a") do
      sum = sum + bytes(name == "y" and y or set[name])
    end
    return sum
  end
  for _, t in pairs(set) do sum = sum + bytes(t) end
  return sum + bytes(y)
end

--
-- Measuring
--
-- What a case is while it is measured: its operands and its loop.
local function prepare(case)
  local text = ("local nacre, %s = ...\nreturn function(calls)\n" ..
    "local y\nfor _ = 1, calls do y = %s %s end\nend\n")
    :format(table.concat(letters, ", "), case.ours,
            case.keeps and "" or "y:free()")
  local once = assert(load(("local nacre, %s = ... return %s")
    :format(table.concat(letters, ", "), case.ours), "=" .. case.ours))
  local all, runs = sets(case), {}
  for i, set in ipairs(all) do
    local values = {}
    for k, name in ipairs(letters) do values[k] = set[name] or false end
    local function with(f)
      return f(nacre, table.unpack(values, 1, #letters))
    end
    runs[i] = with(assert(load(text, "=" .. case.ours)))
    if i == 1 then
      local y = with(once)
      case.bytes = moved(case, set, y)
      -- a fused function is compiled while others go on
      while machine.figure "fused_waiting" > 0 do
        nacre.cuda.synchronize()
      end
    end
  end
  return runs
end

local function ondevice(runs, calls)
  local from, to, seconds = {}, {}, {}
  for k = 1, samples do
    from[k] = nacre.cuda.Event {enable_timing = true}
    to[k] = nacre.cuda.Event {enable_timing = true}
  end
  for k = 1, warmups do runs[(k - 1) % #runs + 1](calls) end
  for k = 1, samples do
    from[k]:record()
    runs[(k + warmups - 1) % #runs + 1](calls)
    to[k]:record()
  end
  nacre.cuda.synchronize()
  for k = 1, samples do
    seconds[k] = from[k]:elapsed_time(to[k]) / 1e3 / calls
  end
  return seconds
end

local function onhost(runs, calls)
  local seconds = {}
  for k = -1, samples do
    nacre.cuda.synchronize()
    local start = nacre.clock()
    runs[1](calls)
    if k > 0 then seconds[k] = (nacre.clock() - start) / calls end
  end
  nacre.cuda.synchronize()
  return seconds
end

local function turn(case, runs)
  local calls = case.calls or 1
  if quick then calls = math.min(calls, 3) end
  nacre.backends.cuda.matmul.allow_tf32 = case.tf32 == true
  local seconds = (case.host and onhost or ondevice)(runs, calls)
  nacre.backends.cuda.matmul.allow_tf32 = false
  return seconds
end

-- What failed is said, and the others go on.
local function measured(case, runs)
  local ok, e = pcall(function()
    runs = runs or prepare(case)
    return turn(case, runs)
  end)
  if not ok then
    say {case = case.name, error = tostring(e)}
    return nil, nil
  end
  return runs, e
end

--
-- Ways to run
--
local function run()
  for _, case in ipairs(cases) do
    if next(groups) == nil or groups[case.group] then
      local runs, all = nil, {}
      for _ = 1, quick and 1 or 6 do
        local seconds
        runs, seconds = measured(case, runs)
        if not runs then break end
        table.move(seconds, 1, #seconds, #all + 1, all)
      end
      if #all > 0 then
        local t = median(all)
        say {case = case.name, group = case.group, seconds = t,
             samples = #all, bytes = case.bytes,
             gbs = not case.host and case.bytes / t / 1e9 or nil,
             tflops = case.flops and not quick and case.flops / t / 1e12
                    or nil}
      end
      runs = nil
      collectgarbage()
      nacre.cuda.empty_cache()
    end
  end
end

local function list()
  for _, case in ipairs(cases) do
    local copy = {}
    for name, value in pairs(case) do copy[name] = value end
    copy.operands, copy.limit = operands(case), case.limit and limit(case)
    say(copy)
  end
end

-- A name asks for a turn of that case; an empty line lets the memory go.
local function serve()
  local byname, current, runs = {}, nil, nil
  for _, case in ipairs(cases) do
    byname[case.group .. "/" .. case.name] = case
  end
  say {ready = true, version = nacre.version}
  for line in io.lines() do
    local case = byname[line]
    if case ~= current or line == "" then
      runs, current = nil, case
      collectgarbage()
      nacre.cuda.empty_cache()
    end
    if case then
      local seconds
      runs, seconds = measured(case, runs)
      if runs then
        say {case = case.name, seconds = seconds, bytes = case.bytes}
      end
    elseif line ~= "" then
      say {case = line, error = "no case has this name"}
    end
  end
end

({run = run, list = list, serve = serve})[mode]()
