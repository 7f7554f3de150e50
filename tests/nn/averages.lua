-- SPDX-License-Identifier: MIT
-- optim.swa_utils: averages of the parameters of a network.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nn, swa_utils = nacre.nn, nacre.optim.swa_utils

local function near(got, want)
  assert(math.abs(got - want) <= 1e-6, ("%.9g, not %.9g"):format(got, want))
end

-- A network whose parameters are all v, and a function that sets them.
local function network(v, dtype)
  local net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)):to(dtype)
  local function set(value)
    nacre.no_grad(function()
      for _, p in ipairs(net:parameters()) do p:fill_(value) end
    end)
  end
  set(v)
  return net, set
end

-- The averages after updates by 1, 2 and 4.
local function average_of(dtype, options)
  local net, set = network(0, dtype)
  local average = swa_utils.AveragedModel(net, options)
  for _, v in ipairs {1, 2, 4} do
    set(v)
    average:update()
  end
  return average, net, set
end

for _, dtype in ipairs {"float32", "float64", "bfloat16"} do
  for _, case in ipairs {
    {{}, 7 / 3}, {{decay = 0.5}, 2.75}, {{decay = 1}, 1}, {{decay = 0}, 4},
    {{multi_avg_fn = swa_utils.get_ema_multi_avg_fn(0.5)}, 2.75},
    {{multi_avg_fn = swa_utils.get_swa_multi_avg_fn()}, 7 / 3},
    {{avg_fn = function(a, t, n) return a + t * n end}, 1 + 2 * 1 + 4 * 2},
  } do
    local average = average_of(dtype, case[1])
    for _, p in ipairs(average.module:parameters()) do
      assert(p.dtype == dtype)
      local error = (p:detach():double() - case[2]):abs():max():item()
      assert(error <= (dtype == "bfloat16" and 0.02 or 1e-6), error)
    end
    assert(average.n_averaged:item() == 3)
  end
end

-- ---- what it is

local average, net, set = average_of("float32", {decay = 0.9})
local x = nacre.randn(4, 2)
average:eval()
assert(average(x) == average.module(x))
assert(average.module ~= net and average.module[1].weight.requires_grad)
local keys = {}
for key in pairs(average:state_dict()) do keys[#keys + 1] = key end
assert(table.concat(keys, " ") ==
       "n_averaged module.0.weight module.0.bias module.1.weight module.1.bias "
       .. "module.1.running_mean module.1.running_var "
       .. "module.1.num_batches_tracked", table.concat(keys, " "))
local other = swa_utils.AveragedModel((network(0)))
other:load_state_dict(average:state_dict())
assert(other.n_averaged:item() == 3 and other:eval()(x) == average(x))

-- a copy averages the same network
local twin = average:clone()
set(5)
average:update()
twin:update_parameters(net)
assert(twin.module[1].bias == average.module[1].bias)
twin:update()
assert(twin.n_averaged:item() == 5 and average.n_averaged:item() == 4)

-- buffers are copied, or averaged with use_buffers
for use_buffers, want in pairs {[true] = 2, [false] = 3} do
  net = network(0)
  average = swa_utils.AveragedModel(net, {use_buffers = use_buffers})
  for _, v in ipairs {1, 3} do
    net[2].running_mean:fill_(v)
    net[2].num_batches_tracked:fill_(v)
    average:update()
  end
  near(average.module[2].running_mean[1], want)
  assert(average.module[2].num_batches_tracked:item() == want)
end

-- ---- batch statistics over a loader, as the mean of all batches

net = nn.Sequential(nn.BatchNorm1d(2, {momentum = 0.3}), nn.Linear(2, 1))
net[1].running_mean:fill_(9)
net:eval()
local loader = nacre.utils.data.DataLoader(
  {nacre.tensor{{1.0, 2}, {3, 4}, {5, 6}, {9, 8}}, nacre.ones(4)},
  {batch_size = 2})
swa_utils.update_bn(loader, net)
assert(nacre.allclose(net[1].running_mean, nacre.tensor{4.5, 5}))
assert(nacre.allclose(net[1].running_var, nacre.tensor{5.0, 2}))
assert(net[1].num_batches_tracked:item() == 2)
assert(net[1].momentum == 0.3 and not net.training)
swa_utils.update_bn(loader, nn.Linear(2, 1))

local rated = nacre.optim.SGD(nn.Linear(2, 1), {lr = 1})
fails("anneal_epochs must not be negative", swa_utils.SWALR, rated, 0.1,
      {anneal_epochs = -1})

-- ---- errors

fails("decay is 2, but must be from 0 to 1", swa_utils.AveragedModel, net,
      {decay = 2})
fails("decay is -1, but must be from 0 to 1", swa_utils.get_ema_multi_avg_fn,
      -1)
fails("only one of avg_fn, multi_avg_fn and decay", swa_utils.AveragedModel,
      net, {decay = 0.5, avg_fn = function() end})
fails("model must be a module", swa_utils.AveragedModel, {1})
fails("device must be the name of a device", swa_utils.AveragedModel, net, true)
fails("the model has 2 tensors, but the average has 4",
      average.update_parameters,
      swa_utils.AveragedModel(net), nn.Linear(2, 3))
