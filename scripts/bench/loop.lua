-- SPDX-License-Identifier: MIT
-- One process of process_bench.py.
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

local n = bytes // 4
local a, b = nacre.rand(n), nacre.rand(n)
local c
local collecting, start = nacre._memory().collecting, nacre.clock()
for _ = 1, rounds do c = a + b end
local seconds = nacre.clock() - start
collecting = nacre._memory().collecting - collecting

print(seconds / rounds)
print(peak())
print(4 * bytes)
print(collecting / seconds)
