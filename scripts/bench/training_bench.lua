-- SPDX-License-Identifier: MIT
-- Our side of training_bench.py: steps of training, with cross entropy and
-- SGD, of the networks of networks.lua.
--
--   nacre training_bench.lua --list     their names, a line each
--   nacre training_bench.lua THREADS    reads lines from stdin, answers each:
--     "case N", then "step CALLS": the seconds of a step

local here = arg[0]:match "^(.*)/[^/]*$" or "."
local networks = dofile(here .. "/../networks.lua")

if arg[1] == "--list" then
  for _, network in ipairs(networks) do print(network.name) end
  return
end

local function trained(network)
  local net, x, y = network.make()
  local opt = nacre.optim.SGD(net, {lr = 0.01})
  return function()
    local loss = nacre.nn.functional.cross_entropy(net(x), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end

nacre.set_num_threads(tonumber(arg[1]))
nacre.manual_seed(1)
local step
for line in io.lines() do
  local word, n = line:match "^(%l+) (%d+)$"
  if word == "case" then
    step = nil
    collectgarbage()
    step = trained(networks[tonumber(n)])
  else
    local start = nacre.clock()
    for _ = 1, tonumber(n) do step() end
    print(("%.9g"):format((nacre.clock() - start) / tonumber(n)))
    io.stdout:flush()
  end
end
