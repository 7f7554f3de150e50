-- SPDX-License-Identifier: MIT
-- nn.DataParallel on several devices: results and gradients are those of the
-- module alone.
-- Run by: nacre tests/cuda/cuda_data_parallel.lua, with several devices

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local n = nacre.cuda.device_count()
if n < 2 then skip "one device" end
local nn, F = nacre.nn, nacre.nn.functional

local function gradients(net, f)
  net:zero_grad()
  local y = f()
  y:backward()
  local list = {}
  for name, p in net:named_parameters() do list[name] = p.grad end
  return y, list
end

local function compare(what, net, a, b)
  for name in net:named_parameters() do
    check(a[name] and b[name]:allclose(a[name], 1e-5, 1e-6), "%s: %s", what,
          name)
  end
end

for _, samples in ipairs {7, n, 1} do
  nacre.manual_seed(samples)
  local net = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ReLU(),
                            nn.Linear(8, 3)):cuda()
  local parallel = nn.DataParallel(net)
  check(#parallel.device_ids == n, "all devices")
  local x = nacre.randn(samples, 5, {device = "cuda"}):requires_grad_()
  local t = nacre.randint(1, 4, {samples}, {device = "cuda"})
  local y, one = gradients(net, function()
    return F.cross_entropy(net(x), t)
  end)
  local gx = x.grad
  x.grad = nil
  local z, many = gradients(net, function()
    return F.cross_entropy(parallel(x), t)
  end)
  check(y:allclose(z, 1e-5, 1e-6), "%d samples: another loss", samples)
  check(gx:allclose(x.grad, 1e-5, 1e-6), "the gradient of the input")
  compare(samples .. " samples", net, one, many)
end

-- tables in, tables out; the state; chosen devices
do
  local Net = nn.Module "Net"
  function Net:init() self.fc = nn.Linear(2, 2) end
  function Net:forward(t, k)
    return {a = self.fc(t.x) * k, sum = t.x:sum()}, t.x.device
  end
  local net = Net():cuda(1)
  local parallel = nn.DataParallel(net, {1, 0})
  local x = nacre.randn(4, 2, {device = "cuda:1"})
  local y, where = parallel({x = x}, 2)
  check(y.a:allclose(net.fc(x) * 2, 1e-5, 1e-6) and y.a.device == "cuda:1" and
        y.sum:numel() == 2 and where == "cuda:1", "tables")
  local names = {}
  for name in pairs(parallel:state_dict()) do names[#names + 1] = name end
  table.sort(names)
  check(table.concat(names, " ") == "module.fc.bias module.fc.weight", "state")
  fails("fc.weight is on cuda:1, the first device is cuda:0",
        nn.DataParallel(net), {x = x}, 1)
end
fails("argument has 1 samples, too few for 2 devices",
      nn.DataParallel(nn.Bilinear(2, 2, 2):cuda(), {0, 1}),
      nacre.ones(4, 2, {device = "cuda"}), nacre.ones(1, 2, {device = "cuda"}))
fails("module is not an nn.Module", nn.DataParallel, {})

O.done "cuda_data_parallel"
