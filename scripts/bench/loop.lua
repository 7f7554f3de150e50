-- SPDX-License-Identifier: MIT
-- One process of scripts/bench.lua.
--
--   nacre loop.lua peak              prints the peak memory of a start (KiB)
--   nacre loop.lua BYTES ROUNDS      c = a+b, ROUNDS times; prints on a line
--     each: seconds a round, peak memory (KiB), live bytes, the collector's
--     share of the time

-- The most this process has had in memory, since it was executed.
local function peak()
  for line in io.lines("/proc/self/status") do
    local kib = line:match("^VmHWM:%s*(%d+)")
    if kib then return kib end
  end
  return "0"
end

if arg[1] == "peak" then
  print(peak())
  return
end

local bytes, rounds = tonumber(arg[1]), tonumber(arg[2])
nacre.set_num_threads(1)

-- Counts collections: each one finds a sentinel dead and makes the next.
local collections = 0
local function sentinel()
  setmetatable({}, { __gc = function()
    collections = collections + 1
    sentinel()
  end })
end
sentinel()

local n = bytes // 4
local a, b = nacre.rand(n), nacre.rand(n)
local c
local start = nacre.clock()
for _ = 1, rounds do c = a + b end
local seconds = nacre.clock() - start
local runs, most = collections, peak()

-- A collection that finds one dead tensor, as those of the loop do.
local cost = {}
for i = 1, 21 do
  c = a + b
  local before = nacre.clock()
  collectgarbage()
  cost[i] = nacre.clock() - before
end
table.sort(cost)

print(seconds / rounds)
print(most)
print(4 * bytes)
print(runs * cost[11] / seconds)
