-- SPDX-License-Identifier: MIT
-- Training steps that training_bench.py times beside PyTorch: {name, goal,
-- make}; make() returns a function that takes one step. The twins, under the
-- same names, are in training_bench.py.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local networks = dofile(here .. "../networks.lua")
local nn, optim = nacre.nn, nacre.optim
local F = nn.functional

local function trained(net, x, y, opt)
  return function()
    local loss = F.cross_entropy(net(x), y)
    opt:zero_grad()
    loss:backward()
    opt:step()
  end
end

local function mlp(name)
  local net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
  return trained(net, nacre.randn(32, 64), nacre.randint(1, 11, {32}),
                 optim[name](net, {lr = 1e-3}))
end

local function digits()
  local net = nn.Sequential(
    nn.Conv2d(1, 16, 3, {padding = 1}), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, {padding = 1}), nn.BatchNorm2d(32), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))
  return trained(net, nacre.randn(32, 1, 8, 8), nacre.randint(1, 11, {32}),
                 optim.SGD(net, {lr = 1e-3}))
end

local function adam()
  local list = {}
  for i = 1, 100 do
    list[i] = nacre.randn(1000):requires_grad_()
    list[i].grad = nacre.randn(1000)
  end
  local opt = optim.Adam(list)
  return function() opt:step() end
end

local function sums(net, x)
  return function() net(x):sum():backward() end
end

local cases = {
  {"MLP, SGD", 0.35, function() return mlp "SGD" end},
  {"MLP, Adam", 0.35, function() return mlp "Adam" end},
  {"CNN of 8x8 digits", 0.8, digits},
  {"LSTM 64-64, 20x32", 0.9, function()
     return sums(nn.LSTM(64, 64), nacre.randn(20, 32, 64))
   end},
  {"GRU 64-64, 20x32", 0.9, function()
     return sums(nn.GRU(64, 64), nacre.randn(20, 32, 64))
   end},
  {"encoder layer, 8x128x256", 1.0, function()
     local net = nn.TransformerEncoderLayer(256, 8, 1024,
                                            {dropout = 0, batch_first = true})
     return sums(net, nacre.randn(8, 128, 256))
   end},
  {"Adam of 100 x 1000", 0.3, adam},
}
for _, network in ipairs(networks) do
  cases[#cases + 1] = {network.name, 1.0, function()
    local net, x, y = network.make()
    return trained(net, x, y, optim.SGD(net, {lr = 0.01}))
  end}
end
return cases
