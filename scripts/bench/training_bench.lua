-- SPDX-License-Identifier: MIT
-- Our side of training_bench.py.
--
--   nacre training_bench.lua --list     the cases, name and goal, a line each
--   nacre training_bench.lua THREADS    reads lines from stdin, answers each:
--     "case N", then "step CALLS": the seconds of a step

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local cases = dofile(here .. "/training_cases.lua")

if arg[1] == "--list" then
  for _, c in ipairs(cases) do print(c[1] .. "\t" .. c[2]) end
  return
end

nacre.set_num_threads(tonumber(arg[1]))
nacre.manual_seed(1)
local step
for line in io.lines() do
  local word, n = line:match "^(%l+) (%d+)$"
  if word == "case" then
    step = nil
    collectgarbage()
    step = cases[tonumber(n)][3]()
  else
    local start = nacre.clock()
    for _ = 1, tonumber(n) do step() end
    print(("%.9g"):format((nacre.clock() - start) / tonumber(n)))
    io.stdout:flush()
  end
end
