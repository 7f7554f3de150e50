-- SPDX-License-Identifier: MIT
-- Our side of order_bench.py.
--
--   nacre order_bench.lua SIZE THREADS DTYPE wall|processor
--
-- Reads lines from stdin and answers each: "data EXPRESSION" makes x of SIZE
-- elements, "run EXPRESSION" gives the seconds of that of x.

nacre.set_num_threads(tonumber(arg[2]))
nacre.manual_seed(1)
local values = {nacre = nacre, n = math.tointeger(tonumber(arg[1])),
                dtype = arg[3]}

local clock = arg[4] == "processor" and os.clock or nacre.clock

local function value(text)
  return assert(load("return " .. text, "=case", "t", values))()
end

for line in io.lines() do
  local word, text = line:match "^(%l+) (.*)$"
  values.x = word == "run" and values.x or nil
  collectgarbage()
  local start = clock()
  local y = value(text)
  local seconds = clock() - start
  if word == "data" then values.x = y end
  print(("%.9g"):format(seconds))
  io.stdout:flush()
end
