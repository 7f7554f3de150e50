-- SPDX-License-Identifier: MIT
-- The layer of each operation, forward and backward, in what shell.trace and
-- shell.profile give; nothing is looked up while nothing is traced.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local eq = dofile(here .. "../lib/common.lua").eq
local nn = nacre.nn

local Net = nn.Module "Net"
function Net:init()
  self.fc = nn.Linear(4, 3)
  self.blocks = {nn.ReLU(), nn.Sequential(nn.Linear(3, 2), nacre.tanh)}
end
function Net:forward(x)
  return self.blocks[2](self.blocks[1](self.fc(x) + 1))
end
local net, loss_of = Net(), nn.MSELoss()

local function step()
  local x = nacre.ones(5, 4)
  local loss = loss_of(net(x), nacre.zeros(5, 2))
  loss:backward()
  return loss
end

-- The layers that follow each other, as "fc" or "-", and how often.
local function layers(steps, backward)
  local list = {}
  for _, s in ipairs(steps) do
    local name = s.module or "-"
    if s.backward == backward and list[#list] ~= name then
      list[#list + 1] = name
    end
  end
  return table.concat(list, " ")
end

local steps = shell.trace(step)
eq(layers(steps, false):gsub("^%- ", ""),
   "fc Net blocks[1] blocks[2][1] blocks[2] - MSELoss blocks[2][1] fc")
eq(layers(steps, true), "MSELoss blocks[2] blocks[2][1] blocks[1] Net fc")
for _, s in ipairs(steps) do
  eq(s.network, s.module == "MSELoss" and s.module or s.module and "Net")
end

-- a gradient that is added to is the work of the layer of its parameter
local sums = {}
for _, s in ipairs(shell.trace(step)) do
  if s.op == "add" and not s.backward and s.module ~= "Net" then
    sums[#sums + 1] = s.module or "-"
  end
end
eq(table.concat(sums, " "), "blocks[2][1] blocks[2][1] fc fc")

-- what was recorded before the trace has no layer, nor has what is in none
local loss = loss_of(net(nacre.ones(5, 4)), nacre.zeros(5, 2))
eq(layers(shell.trace(loss.backward, loss), true), "-")
eq(shell.trace(nacre.exp, nacre.ones(2))[1].module, nil)

-- a profile has a row for each layer
local rows = shell.profile(step)
local calls = {}
for _, row in ipairs(rows.layers) do calls[row.op] = row.calls end
eq(calls.Net, 2)
eq(calls["blocks[1], of Net"], 2)
assert(calls["fc, of Net"] >= 2 and calls["blocks[2][1], of Net"] >= 2)
assert(calls.MSELoss)
eq(shell.profile(nacre.exp, nacre.ones(2)).layers, nil)

-- a call costs what it costs without: no layer is looked up
local same, moves = nn.Identity(), 0
debug.sethook(function() moves = moves + 1 end, "c")
same(1)
debug.sethook()
assert(moves <= 4, moves)
