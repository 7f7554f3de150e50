-- SPDX-License-Identifier: MIT
-- A training step on a device does not wait for it: losses of classes,
-- embeddings, norms of gradients and optimizers are computed without asking
-- what is in a tensor.
-- Run by: nacre tests/cuda/cuda_training_waits.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local counters = require "nacre.machine".counters
local networks = dofile(here .. "../../scripts/networks.lua")
local nn, optim, F = nacre.nn, nacre.optim, nacre.nn.functional

local function waits() return (select(9, counters())) end

local before = waits()
nacre.ones(2, {device = "cuda"}):sum():item()
check(waits() > before, "item() does not count as a wait")

local function classes(n, size)
  return nacre.randint(1, n + 1, size, {device = "cuda"})
end

-- A network, its input, its classes.
local models = {
  mlp = function()
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2),
                         nn.LayerNorm(16), nn.Linear(16, 4)),
           nacre.randn(6, 8), classes(4, {6})
  end,
  cnn = function()
    return nn.Sequential(nn.Conv2d(1, 4, 3, {padding = 1}), nn.BatchNorm2d(4),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64, 4)),
           nacre.randn(6, 1, 8, 8), classes(4, {6})
  end,
  words = function()
    return networks.words(20, 8), classes(20, {5, 3}), classes(20, {15})
  end,
  gru = function()
    local Net = nn.Module "Net"
    function Net:init() self.gru, self.fc = nn.GRU(4, 8), nn.Linear(8, 4) end
    function Net:forward(x)
      local _, h = self.gru(x)
      return self.fc(h:select(1, 1))
    end
    return Net(), nacre.randn(5, 3, 4), classes(4, {3})
  end,
  transformer = function()
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, {
      batch_first = true}), nn.Flatten(), nn.Linear(40, 4)),
           nacre.randn(3, 5, 8), classes(4, {3})
  end,
}

local optimizers = {
  SGD = {lr = 0.1, momentum = 0.9}, Adam = {}, AdamW = {amsgrad = true},
  RMSprop = {}, Adagrad = {}, Adadelta = {}, Adamax = {}, NAdam = {},
  RAdam = {},
}

for name, make in pairs(models) do
  for kind, options in pairs(optimizers) do
    local net, x, y = make()
    net:to "cuda"
    x = x:to "cuda"
    local opt = optim[kind](net, options)
    local schedule = optim.lr_scheduler.CosineAnnealingLR(opt, 10)
    local first
    for step = 1, 4 do
      if step == 2 then first = waits() end
      local loss = F.cross_entropy(net(x), y)
      opt:zero_grad()
      loss:backward()
      nn.utils.clip_grad_norm_(net:parameters(), 1.0)
      opt:step()
      schedule:step()
    end
    local n = waits() - first
    check(n == 0, "%s with %s waits %d times in 3 steps", name, kind, n)
    nacre.synchronize()
  end
end

O.done "cuda_training_waits"
