-- SPDX-License-Identifier: MIT
-- What is written in Lua is loaded when a name in it is asked for: a program
-- that only adds tensors pays for none of it. In KiB of Lua's memory.

local function held()
  collectgarbage()
  return collectgarbage "count"
end

local start = held()
local y = nacre.ones(2) + 1
assert(y:sum():item() == 4)
assert(held() - start < 50, "adding tensors loads a library")
assert(start < 150, ("%.0f KiB at the start"):format(start))
local relu = nacre.nn.functional.relu
local functions = held()
assert(relu and functions - start > 200, "functions are there at the start")
local SGD = nacre.optim.SGD
assert(SGD and held() - functions > 200,
       "modules and optimizers are loaded with the functions")
