-- SPDX-License-Identifier: MIT
-- P15: memory of tensors that are garbage. Loops need little more than what is
-- alive, whatever the settings of Lua's collector; finalizers, closed
-- variables, coroutines, free.
-- Run by: nacre tests/lua/collector_pressure.lua [full]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local C = dofile(here .. "../lib/common.lua")
local fails, live_bytes = C.fails, C.live
local check = O.check
local MB = 1 << 20
local full = arg and arg[1] == "full"
local sanitized = os.getenv("ASAN_OPTIONS")   -- its quarantine keeps memory

-- Bytes in use and the most there were, as the system sees it; nil elsewhere.
local function resident()
  local f = io.open("/proc/self/status")
  if f == nil or sanitized then return nil end
  local text = f:read("a")
  f:close()
  return tonumber(text:match("VmRSS:%s*(%d+)")) * 1024
end

-- Runs body(i) n times; what tensors hold, and the process, stay below.
local function loop(what, n, live, body)
  live_bytes()
  local base, peak, rss = resident(), 0, 0
  local start = nacre.clock()
  for i = 1, n do
    body(i)
    peak = math.max(peak, nacre._memory().live)
    if base and i % 50 == 0 then rss = math.max(rss, resident() - base) end
  end
  local limit = 2.5 * live + 16 * MB
  check(peak <= limit, "%s: tensors held %.1f MB, %.1f allowed", what,
        peak / MB,
        limit / MB)
  check(rss <= limit, "%s: the process held %.1f MB, %.1f allowed", what,
        rss / MB, limit / MB)
  print(("%-34s %6d rounds %6.2f s, tensors %6.1f MB, process +%6.1f MB")
        :format(
        what, n, nacre.clock() - start, peak / MB, rss / MB))
end

-- ---- loops

local function tensors(bytes) return nacre.ones(bytes // 4) end

local function add(what, bytes, n)
  local a, b = tensors(bytes), tensors(bytes)
  local c
  loop(what, n, 4 * bytes, function() c = a + b end)
  loop(what .. ", chained", n // 2, 5 * bytes,
       function() c = (a + b) * a - b end)
end
add("c = a + b of 1 MB", MB, full and 100000 or 3000)
add("c = a + b of 16 MB", 16 * MB, full and 300 or 60)

local a, b = nacre.ones(3), nacre.ones(3)
loop("c = a + b of 3 elements", full and 3000000 or 300000, 4 * MB,
     function() local _ = a + b end)
loop("a:sum():item()", 30000, 4 * MB, function() return a:sum():item() end)
local big = tensors(MB)
loop("views", 100000, 2 * MB, function(i)
  return big:narrow(1, i % 9 + 1, 5)
end)
loop("copies kept for a while", 2000, 21 * MB, (function()
  local kept = {}
  return function(i) kept[i % 20] = big:clone() end
end)())
loop("splits", 2000, 3 * MB, function() return big:clone():split(1000) end)
loop("a .. b", 1000, 4 * MB, function() return big .. big end)
loop("tables", 300, 4 * MB, function()
     return nacre.tensor(big:narrow(1, 1, 1000)
                                                           :totable()) end)

-- ---- the collector as the user sets it

big = tensors(MB)
for _, mode in ipairs {"incremental", "generational"} do
  collectgarbage(mode)
  loop("collector " .. mode, 1000, 3 * MB, function() return big + big end)
end
collectgarbage("stop")
local before = nacre._memory().live
for _ = 1, 20 do local _ = big + big end
check(nacre._memory().live - before >= 19 * MB, "a stopped collector runs")
collectgarbage("restart")
loop("after a restart", 500, 3 * MB, function() return big + big end)
check(collectgarbage("isrunning"), "the collector runs again")

-- ---- release at once

local live = live_bytes()
do
  local x <close> = tensors(8 * MB)
  check(nacre._memory().live >= live + 8 * MB, "a tensor is alive")
end
check(nacre._memory().live < live + MB, "a closed variable is released")
local x = tensors(8 * MB)
x:free()
check(nacre._memory().live < live + MB, "a freed tensor is released")
fails("freed", x.free, x)
x = tensors(8 * MB)
local part = x:narrow(1, 1, 10)
x:free()
check(part:sum():item() == 10, "a view outlives what it was taken from")
check(nacre._memory().live >= live + 8 * MB, "a view keeps its memory")
part = nil
check(live_bytes() < live + MB, "the last view releases it")
local y = nacre.scope(function()
  for _ = 1, 4 do local _ = tensors(4 * MB) end
  return nacre.ones(3)
end)
check(nacre._memory().live < live + MB and y:sum():item() == 3, "scope")
fails("inside", nacre.scope, error, "inside")

-- ---- what dies young

do  -- results of a loop keep to a few blocks, also beside many old objects
  local old, a, high = {}, tensors(40000), 0
  for i = 1, 20000 do old[i] = {i} end
  live_bytes()
  local base = nacre._memory().live
  for _ = 1, 5000 do
    local _ = a + a
    if nacre._memory().live - base > MB then high = high + 1 end
  end
  check(high < 2500, "more than 1 MB of results waited in %d of 5000 rounds",
        high)
end
if not sanitized then  -- a cache full of another size does not keep one out
  live_bytes()
  local many = {}
  for i = 1, 200 do many[i] = tensors(60000) end
  for i = 1, 200 do many[i]:free() end
  tensors(70000):free()
  local before = nacre._memory().cached
  local t = tensors(70000)
  check(nacre._memory().cached < before, "a block just freed is used again")
  t:free()
end

if not sanitized then  -- results use the block of the one before
  local a, b = tensors(4 * MB), tensors(4 * MB)
  local all, last = nacre.arange(1, 1 * MB)
  local few, values = nacre.arange(1, 100001), nacre.ones(100000)
  -- Calls f n times. What waits after most of the calls is below the limit:
  -- in a few of them the share of time of collections may be used up.
  local function rounds(what, n, limit, f)
    local held = {}
    live_bytes()
    local base = nacre._memory().live
    for i = 1, n do
      f()
      held[i] = nacre._memory().live - base
    end
    table.sort(held)
    local usual = held[(3 * n + 3) // 4]
    check(usual < limit, "%s: %.1f MB of results wait, %.1f allowed", what,
          usual / MB, limit / MB)
  end
  local function warm_rounds(what, n, limit, f)
    for _ = 1, n do f() end
    rounds(what, n, limit, f)
  end
  for what, f in pairs {
    add = function() local _ = a + b end,
    ["a method"] = function() local _ = a:relu() end,
    ["a conversion"] = function() local _ = a:to("int32") end,
    ["a part"] = function() local _ = a[all] end,
    ["a new tensor"] = function() local _ = nacre.zeros(1 * MB) end,
  } do
    warm_rounds(what, 20, 7 * MB, f)
  end
  warm_rounds("a copy that is held", 60, 12 * MB, function()
    last = a:clone():index_put_({few}, values, true)
  end)
  local leaf = nacre.ones(4096, 256):requires_grad_()
  local options = {grad_outputs = nacre.ones(4096, 256)}
  warm_rounds("gradients that are held", 60, 16 * MB, function()
    last = nacre.autograd.grad(leaf:softmax(2), {leaf}, options)
  end)
  local x <close>, small = tensors(48 * MB), tensors(900000)
  for _ = 1, 5 do last = x:abs() end
  last = nil
  rounds("small ones after large ones", 30, 8 * MB, function()
    last = small + small
  end)
  -- the system gives the block of a result larger than the budget once
  local large, x = 64 * MB, tensors(4)
  for _ = 1, 4 do nacre.zeros(large // 4):free() end
  check(nacre._memory().cached >= large, "a large block is kept")
end

-- ---- coroutines

local co = coroutine.create(function()
  local t = tensors(8 * MB)
  coroutine.yield(t:sum():item())
  return t
end)
coroutine.resume(co)
check(live_bytes() >= live + 8 * MB, "a coroutine keeps its tensors")
co = nil
check(live_bytes() < live + MB, "a dead coroutine releases them")
co = coroutine.create(function()
  local t <close> = tensors(8 * MB)
  coroutine.yield()
end)
coroutine.resume(co)
coroutine.close(co)
check(nacre._memory().live < live + MB, "a closed coroutine releases at once")
loop("coroutines", 500, 3 * MB, function()
  local gen = coroutine.wrap(function()
    local t = tensors(MB)
    while true do coroutine.yield(t + 1) end
  end)
  gen()
  gen()
end)
pcall(function()
  local t = tensors(8 * MB)
  error(t)
end)
check(live_bytes() < live + MB, "an error keeps nothing")

-- ---- finalizers that use tensors while others are collected

local function hook(f)
  return setmetatable({}, {__gc = f})
end
local made, freed, ok, e = 0, 0
local shared = tensors(MB)
loop("finalizers that allocate", 1000, 8 * MB, function()
  hook(function() local _ = shared + shared; made = made + 1 end)
  local _ = shared * 2
end)
loop("finalizers that free", 1000, 8 * MB, function()
  local t = tensors(MB)
  hook(function() t:free(); freed = freed + 1 end)
  local _ = shared + t
end)
live_bytes()
check(made > 900 and freed > 900, "%d and %d finalizers ran", made, freed)
-- one that frees an operand, at whatever moment it runs
for _ = 1, 300 do
  local t = tensors(256 * 1024)
  hook(function() pcall(t.free, t) end)
  local ok, e = pcall(function()
    return (t + t) * t + shared:narrow(1, 1, #t)
  end)
  check(ok or tostring(e):find("freed", 1, true), "%s", tostring(e))
end
-- the same in the middle of every kind of call, which Lua's collector enters
collectgarbage("generational", 1, 1)
local current
local function again()
  if current then pcall(current.free, current) end
  if again then hook(again) end
end
hook(again)
for _, f in ipairs {
  function(t) return t + 1 end, function(t) return t:sum() end,
  function(t) return t:softmax(1) end, function(t) return t:to("float64") end,
  function(t) return t[{{1, 10}}] end, function(t) return t .. t end,
  function(t) return nacre.stack {t, t} end, function(t) return t:size() end,
  function(t) return t:add(1, {alpha = 2}) end, nacre.tensor,
  function(t) return t:chunk(3) end, function(t) return t:totable() end,
} do
  for _ = 1, 200 do
    current = nacre.ones(300)
    ok, e = pcall(f, current)
    check(ok or tostring(e):find("freed", 1, true), "%s", tostring(e))
  end
end
current, again = nil, nil
collectgarbage("incremental", 200, 100)
hook(function() error("from a finalizer") end)
local collected = pcall(collectgarbage)
check(collected, "an error in a finalizer is no error of the collection")
local revived
do
  local t = tensors(MB)
  setmetatable({t}, {__gc = function(o) revived = o[1] end})
end
collectgarbage()
collectgarbage()
check(revived ~= nil, "a tensor is revived")
ok, e = pcall(revived.sum, revived)    -- its own finalizer may have run too
check(ok or tostring(e):find("freed", 1, true), "%s", tostring(e))
revived = nil

-- ---- the limit of memory

live_bytes()
nacre.set_memory_limit(nacre._memory().live + 40 * MB)
loop("below a limit", 300, 40 * MB, function() return tensors(10 * MB) end)
local kept = {}
e = fails("ENOMEM: needs", function()
  for i = 1, 10 do kept[i] = tensors(10 * MB) end
end)
check(#kept >= 2 and #kept <= 4, "%d tensors of 10 MB below 40 MB", #kept)
check(e.message and e.message:find("MiB", 1, true), "the figures are told")
kept = nil
check(tensors(10 * MB):sum():item() > 0, "after an error there is room again")
nacre.set_memory_limit(0)
fails("0 or more", nacre.set_memory_limit, -1)

a, b, big, shared, y, x = nil, nil, nil, nil, nil, nil
O.done "collector_pressure"
