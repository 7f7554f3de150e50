-- SPDX-License-Identifier: MIT
-- SyncBatchNorm: results, gradients, running statistics and 20 steps of
-- training are those of BatchNorm with the batches of all ranks together.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local R = dofile(here .. "ranks.lua")
local fails, nn, F = C.fails, nacre.nn, nacre.nn.functional
local DDP, convert = nn.parallel.DistributedDataParallel,
                     nn.SyncBatchNorm.convert_sync_batchnorm
local rank, size, part = R.rank, R.size, R.part

local function near(what, a, b, limit)
  local most = (a:double() - b:double()):abs():max():item()
  assert(most < (limit or 1e-12), ("%s differs by %g on rank %d of %d"):format(
           what, most, rank, size))
end

-- ---- one layer, batches of several sizes and shapes
local layers = {
  {nn.BatchNorm1d, {24, 5}}, {nn.BatchNorm1d, {12, 5, 3}},
  {nn.BatchNorm2d, {12, 3, 4, 5}}, {nn.BatchNorm3d, {12, 2, 3, 2, 2}},
}
for i, case in ipairs(layers) do
  for _, options in ipairs {{}, {affine = false}, {momentum = false},
                            {track_running_stats = false, eps = 0.1}} do
    local class, shape = table.unpack(case)
    nacre.manual_seed(i)
    local x = (nacre.randn(shape) * 3 + 7):requires_grad_()
    local g = nacre.randn(shape)
    local own = class(shape[2], options)
    if own.weight then
      nacre.no_grad(function() own.weight:uniform_() own.bias:normal_() end)
    end
    local sync = convert(own:clone())
    assert(nn.SyncBatchNorm:is(sync) and sync.eps == own.eps)
    local mine = part(x:detach()):clone():requires_grad_()
    for pass = 1, 2 do
      x.grad, mine.grad = nil, nil
      own:zero_grad()
      sync:zero_grad()
      local y, z = own(x), sync(mine)
      near("result", z, part(y:detach()))
      y:backward(g)
      z:backward(part(g))
      near("gradient", mine.grad, part(x.grad))
      for _, name in ipairs {"weight", "bias"} do
        if own[name] then
          local sum = nacre.distributed.all_reduce(sync[name].grad:clone())
          near(name, sum, own[name].grad)
        end
      end
    end
    R.close("statistics", own, sync)
    own:eval()
    sync:eval()                  -- without statistics each rank has its own
    if own.track_running_stats then
      near("evaluation", sync(mine), part(own(x)))
    end
  end
end

-- Ranks with different numbers of samples, one of them with none.
if size > 1 then
  nacre.manual_seed(3)
  local x = nacre.randn(4 * size, 5):requires_grad_()
  local g = nacre.randn(4 * size, 5)
  local first = rank == 0 and 1 or rank == 1 and 1 or 4 * rank + 1
  local count = rank == 0 and 0 or rank == 1 and 8 or 4
  local own, sync = nn.BatchNorm1d(5), convert(nn.BatchNorm1d(5))
  local mine = x:detach():narrow(1, first, count):clone():requires_grad_()
  local y, z = own(x), sync(mine)
  y:backward(g)
  z:backward(g:narrow(1, first, count))
  if count > 0 then
    near("uneven result", z, y:narrow(1, first, count))
    near("uneven gradient", mine.grad, x.grad:narrow(1, first, count))
  end
  R.close("uneven statistics", own, sync)
end

-- Halves are computed in float32.
do
  nacre.manual_seed(4)
  local x = nacre.randn(24, 5):half()
  local y = convert(nn.BatchNorm1d(5):float())(part(x))
  assert(y.dtype == "float16")
  near("half", y, part(nn.BatchNorm1d(5):float()(x:float())), 2e-3)
end

-- ---- a network
local function network()
  nacre.manual_seed(5)
  local net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
                            nn.Sequential(nn.Conv2d(4, 4, 3),
                                          nn.BatchNorm2d(4)), nn.ReLU(),
                            nn.Flatten(), nn.Linear(16, 3), nn.BatchNorm1d(3))
  return net
end

local function train(net, cut)
  local opt = nacre.optim.SGD(net, {lr = 0.05, momentum = 0.9})
  for step = 1, 20 do
    nacre.manual_seed(100 + step)
    local x, y = nacre.randn(12, 1, 6, 6), nacre.randn(12, 3)
    if cut then x, y = part(x), part(y) end
    opt:zero_grad()
    F.mse_loss(net(x), y):backward()
    opt:step()
  end
  return net
end

do
  local own, net = network(), network()
  local names = {}
  for name in net:named_parameters() do names[#names + 1] = name end
  assert(convert(net) == net)
  local i = 0
  for name in net:named_parameters() do
    i = i + 1
    assert(name == names[i], "parameters keep their order")
  end
  train(own)
  local ddp = train(DDP(net), true)
  R.close("training", own, net)
  R.same_everywhere("training", net)
  assert(nn.BatchNorm2d:is(own[2]) and nn.SyncBatchNorm:is(net[4][2]))
  if size > 1 then
    fails("1 is a SyncBatchNorm, which needs all ranks", ddp.join, ddp, print)
  end
end

-- ---- what is refused
fails("module must be a module", convert, 3)
fails("5 channels, the layer takes 4", nn.SyncBatchNorm(4), nacre.ones(2, 5))
fails("at least 2", nn.SyncBatchNorm(4), nacre.ones(4))

R.finish "sync_batch_norm"
