-- SPDX-License-Identifier: MIT
-- DistributedDataParallel: after 20 steps the parameters are those of one
-- process with the whole batch; all ranks have the same bits, in each run; with
-- no_sync, unused parameters, uneven inputs, buckets of several sizes.
-- Started once for each rank, or alone.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local R = dofile(here .. "ranks.lua")
local fails, nn, F, dist = C.fails, nacre.nn, nacre.nn.functional,
                           nacre.distributed
local DDP = nn.parallel.DistributedDataParallel
local rank, size = R.rank, R.size
local close, same_everywhere, part = R.close, R.same_everywhere, R.part

local function network()
  nacre.manual_seed(5)
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 12),
                       nn.Tanh(), nn.Linear(12, 3))
end

local function data(step)
  nacre.manual_seed(1000 + step)
  return nacre.randn(24, 8), nacre.randn(24, 3)
end

-- Trains for 20 steps: with the whole batch, or with the part of this rank. A
-- step may be of several backward passes: rounds(net, backward, x, y).
local function train(net, cut, rounds)
  local opt = nacre.optim.SGD(net, {lr = 0.1, momentum = 0.9})
  for step = 1, 20 do
    local x, y = data(step)
    if cut then x, y = part(x), part(y) end
    opt:zero_grad()
    local function backward(a, b) F.mse_loss(net(a), b):backward() end
    if rounds then rounds(net, backward, x, y) else backward(x, y) end
    opt:step()
  end
  return net
end

local function compare(what, net, ddp)
  close(what, net, ddp.module)
  same_everywhere(what, ddp.module)
end

-- ---- as one process
local whole = train(network())
for _, options in ipairs {
  {}, {bucket_cap_mb = 600 / 2 ^ 20}, {bucket_cap_mb = 1 / 2 ^ 20},
  {gradient_as_bucket_view = true},
  {gradient_as_bucket_view = true, bucket_cap_mb = 600 / 2 ^ 20},
  {find_unused_parameters = true}, {device_ids = {R.device}},
} do
  local net = network()
  if rank > 0 then     -- the constructor takes the values of rank 0
    for p in net:parameters() do p.data = p.data * 2 + 1 end
  end
  compare("ddp", whole, train(DDP(net, options), true))
end

-- ---- two runs give the same bits
do
  local a, b = train(DDP(network()), true), train(DDP(network()), true)
  for name, p in a:named_parameters() do
    assert(p:equal(b:state_dict()[name]), name .. " differs between runs")
  end
  assert(a:state_dict()["module.0.weight"])
end

-- ---- gradients that are kept, and no_sync: sums of several backward passes
local function halves(net, backward, x, y)
  local n = x:size(1) // 2
  local function first() backward(x:narrow(1, 1, n), y:narrow(1, 1, n)) end
  if net.no_sync then
    local all_reduce = dist.all_reduce
    dist.all_reduce = nil                  -- nothing is sent
    net:no_sync(first)
    dist.all_reduce = all_reduce
  else first() end
  backward(x:narrow(1, n + 1, n), y:narrow(1, n + 1, n))
end

-- The whole batch in the order in which the ranks have the halves.
local function halves_alone(_, backward, x, y)
  local n = x:size(1) // size
  for h = 0, 1 do
    local xs, ys = {}, {}
    for r = 0, size - 1 do
      xs[r + 1] = x:narrow(1, r * n + h * (n // 2) + 1, n // 2)
      ys[r + 1] = y:narrow(1, r * n + h * (n // 2) + 1, n // 2)
    end
    backward(nacre.cat(xs), nacre.cat(ys))
  end
end

do
  local alone = train(network(), false, halves_alone)
  for _, views in ipairs {false, true} do
    compare("no_sync", alone, train(DDP(network(),
      {gradient_as_bucket_view = views}), true, halves))
  end
  local ddp = DDP(network())     -- an error ends no_sync
  assert(not pcall(ddp.no_sync, ddp, error))
  assert(select("#", ddp:no_sync(function() return 1, nil, 3 end)) == 3)
  compare("after no_sync", whole, train(ddp, true))
end

-- Two backward passes of one forward: each averages.
do
  local function twice(retain)
    return function(net, _, x, y)
      local loss = F.mse_loss(net(x), y)
      loss:backward({retain_graph = true});
      (loss * 2):backward()
    end
  end
  compare("two passes", train(network(), false, twice()),
          train(DDP(network()), true, twice()))
end

-- ---- which backward averages: one through a result of the wrapped module
local Wrapped = nn.Module "Wrapped"
function Wrapped:init(wrap)
  self.a, self.b, self.wrap = nn.Linear(8, 3), nn.Linear(8, 3), wrap
end
function Wrapped:forward(x)
  local y = self.a(x)
  return self.wrap == "list" and {1, {y = y}} or
         self.wrap and setmetatable({y = y}, {__name = "result"}) or y
end

if size > 1 then
  local x = (data(1))
  local function own_grad(n, scale)
    local own = nn.Linear(8, 3)
    own:load_state_dict(n.a:state_dict())
    own(part(x)):square():mean():mul(scale or 1):backward()
    return own.weight.grad
  end
  local function wrapped(wrap)
    nacre.manual_seed(4)
    return DDP(Wrapped(wrap))
  end
  local net = wrapped()
  local inner = net.module
  -- the module itself, and the parameter that only a penalty uses
  local function penalty() return inner.b.weight:square():sum() * (rank + 1) +
                                  inner.b.bias:sum() end
  (net(part(x)):square():mean() + penalty()):backward()
  inner:zero_grad()
  inner(part(x)):square():mean():backward()
  assert(inner.a.weight.grad:equal(own_grad(inner)))
  local mean = dist.all_reduce(own_grad(inner), "mean")
  for _, wrap in ipairs {"plain", "list", "object"} do
    net = wrapped(wrap ~= "plain" and wrap)
    inner = net.module
    local y = net(part(x))
    y = wrap == "plain" and y or wrap == "list" and y[2].y or y.y;
    -- b arrives before the result of the module does
    (penalty() + y:square():mean()):backward()
    assert(inner.a.weight.grad:allclose(mean, 1e-13, 1e-13), wrap)
    assert(inner.b.weight.grad:allclose(
      inner.b.weight:detach() * (size + 1), 1e-13, 1e-13), wrap)
  end
end

-- ---- buckets leave while backward goes on
if size > 1 then
  local log, all_reduce = {}, dist.all_reduce
  local net = DDP(network(), {bucket_cap_mb = 1e-6})
  for name, p in net.module:named_parameters() do
    p:register_hook(function() log[#log + 1] = name end)
  end
  dist.all_reduce = function(...)
    log[#log + 1] = "send"
    return all_reduce(...)
  end
  net((data(1))):sum():backward()
  dist.all_reduce = all_reduce
  local sent = 0
  for _, what in ipairs(log) do
    if what == "send" then sent = sent + 1 end
    if what:find "^0" then break end
  end
  assert(sent == 4 and #log == 12, table.concat(log, " "))
end

-- zero_grad(false) keeps the memory of the gradients
do
  local net = DDP(network(), {gradient_as_bucket_view = true})
  local x, y = data(1)
  for i = 1, 2 do
    net:zero_grad(false)
    F.mse_loss(net(part(x)), part(y)):backward()
  end
  local own = network()
  F.mse_loss(own(x), y):backward()
  close("zero_grad(false)", own, net.module, "grad")
  if size > 1 then
    assert(C.shares(net.module[5].bias.grad, net.module[1].weight.grad))
  end
end

-- ---- parameters without a gradient
local Branches = nn.Module "Branches"
function Branches:init()
  self.a, self.b, self.c = nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(8, 3)
end
function Branches:forward(x, which)
  return which == "b" and self.b(x) or self.a(x)
end

local function branches()
  nacre.manual_seed(9)
  return Branches()
end

if size > 1 then
  local x, y = data(1)
  local ddp = DDP(branches())
  fails("this backward produced no gradient for b.weight, b.bias, c.weight "
        .. "and 1 more", "find_unused_parameters = true, if that is intended",
        function() ddp(part(x), "a"):sum():backward() end)
  -- ranks that use different ones: the average of all; c has none anywhere
  for _, views in ipairs {false, true} do
    local net = DDP(branches(), {find_unused_parameters = true,
                                 gradient_as_bucket_view = views})
    F.mse_loss(net(part(x), rank == 0 and "b" or "a"), part(y)):backward()
    local own = branches()
    for r = 0, size - 1 do
      (F.mse_loss(own(part(x, r), r == 0 and "b" or "a"), part(y, r)) / size)
        :backward()
    end
    assert(net.module.c.weight.grad == nil)
    close("unused", own, net.module, "grad")
  end
end

-- ---- a graph that stays: the first backward finds what is not used
if size > 1 then
  for _, cap in ipairs {25, 1e-5} do
    local net = DDP(branches(), {static_graph = true, bucket_cap_mb = cap})
    local own = branches()
    for step = 1, 3 do
      local x, y = data(step)
      net:zero_grad()
      own:zero_grad()
      F.mse_loss(net(part(x), rank == 0 and "b" or "a"), part(y)):backward()
      for r = 0, size - 1 do
        (F.mse_loss(own(part(x, r), r == 0 and "b" or "a"), part(y, r)) / size)
          :backward()
      end
      assert(net.module.c.weight.grad == nil)
      close("static", own, net.module, "grad")
    end
    fails("is used now, but was not before", "static_graph = false",
          function() net.module.c((data(1))):sum():backward() end)
  end
end

-- ---- the user's way to send a bucket
local hooks = dist.algorithms.ddp_comm_hooks.default_hooks
for _, cap in ipairs {25, 1e-4} do
  local seen = {}
  local function twice(state, bucket)
    assert(state == seen and bucket:buffer():dim() == 1)
    seen[bucket:index()] = #bucket:parameters()
    if bucket:is_last() then seen.n = bucket:index() end
    assert(bucket:gradients()[1]:numel() == bucket:parameters()[1]:numel())
    local sent = bucket:buffer():clone()
    local work = dist.all_reduce(sent, {async_op = true})
    return function()
      work:wait()
      return sent / size
    end
  end
  local net = DDP(network(), {bucket_cap_mb = cap})
  net:register_comm_hook(seen, twice)
  compare("hook", whole, train(net, true))
  assert(size == 1 or #seen == seen.n and (cap > 1) == (#seen == 1))
  local ok, e = pcall(net.register_comm_hook, net, nil, twice)
  assert(not ok and e.message == "there is a hook already")
  net = DDP(network(), {bucket_cap_mb = cap})
  net:register_comm_hook(nil, hooks.allreduce_hook)
  compare("allreduce_hook", whole, train(net, true))
  for _, case in ipairs {{"bf16_compress_hook", 0.02},
                         {"fp16_compress_hook", 0.002}} do
    local name, most = case[1], case[2]
    net = DDP(network(), {bucket_cap_mb = cap})
    net:register_comm_hook(nil, hooks[name])
    train(net, true)
    same_everywhere(name, net.module)
    for i, p in ipairs(whole:parameters()) do
      local far = (p - net.module:parameters()[i]):abs():max():item()
      assert(far < most, ("%s: %g"):format(name, far))
    end
  end
end
if size > 1 then
  local net = DDP(network())
  net:register_comm_hook(nil, function() return nacre.ones(3) end)
  fails("the hook must give the average", function()
    net(nacre.ones(1, 8)):sum():backward()
  end)
end

-- ---- a failed backward leaves nothing behind
do
  local net, x = DDP(network()), (data(1))
  local h = net.module[1].weight:register_hook(function() error("no", 0) end)
  local ok, e = pcall(function() net(part(x)):sum():backward() end)
  assert(not ok and e == "no")
  h:remove()
  compare("after a failure", whole, train(net, true))
end

-- ---- ranks with different numbers of batches
local function batches(r) return 3 + 2 * r end

local function uneven(net, opt, options)
  local function loop()
    for i = 1, batches(rank) do
      nacre.manual_seed(77 * i + rank)
      opt:zero_grad()
      net(nacre.randn(4, 8)):square():mean():backward()
      opt:step()
    end
  end
  if options then net:join(loop, options) else net:join(loop) end
end

-- What one process computes: the sum of the gradients of those who go on,
-- divided by their number, or by that of all.
local function uneven_alone(net, opt, by_all)
  for i = 1, batches(size - 1) do
    local active = 0
    opt:zero_grad()
    for r = 0, size - 1 do
      if i <= batches(r) then
        nacre.manual_seed(77 * i + r)
        net(nacre.randn(4, 8)):square():mean():backward()
        active = active + 1
      end
    end
    for p in net:parameters() do p.grad:div_(by_all and size or active) end
    opt:step()
  end
end

for _, by_all in ipairs {true, false} do
  for _, buckets in ipairs {25, 1e-4} do
    local own, net = network(), DDP(network(), {bucket_cap_mb = buckets})
    uneven_alone(own, nacre.optim.SGD(own, {lr = 0.1}), by_all)
    uneven(net, nacre.optim.SGD(net, {lr = 0.1}),
           not by_all and {divide_by_initial_world_size = false} or nil)
    compare("join", own, net)
  end
end
if size > 1 then
  local net = DDP(network())
  fails("a rank has no more batches", uneven, net,
        nacre.optim.SGD(net, {lr = 0.1}),
        {throw_on_early_termination = true})
end

-- ---- buffers are those of rank 0
do
  local net = nn.BatchNorm1d(8)
  local ddp = DDP(net)
  net.running_mean:fill_(rank + 1)
  ddp:eval()
  ddp(nacre.randn(4, 8))
  assert(net.running_mean[1] == 1)
  ddp = DDP(nn.BatchNorm1d(8), {broadcast_buffers = false})
  ddp.module.running_mean:fill_(rank + 1)
  ddp:eval()
  ddp(nacre.randn(4, 8))
  assert(ddp.module.running_mean[1] == rank + 1)
end

-- ---- a group of some ranks
if size > 2 then
  local group = dist.new_group {0, size - 1}
  if rank == 0 or rank == size - 1 then
    local x, y = data(1)
    local at = rank == 0 and 1 or 13
    local net = DDP(network(), {process_group = group})
    F.mse_loss(net(x:narrow(1, at, 12)), y:narrow(1, at, 12)):backward()
    local own = network()
    F.mse_loss(own(x), y):backward()
    close("a group", own, net.module, "grad")
  else
    fails("this process is not in the group", DDP, network(),
          {process_group = group})
  end
  dist.barrier()
end

-- ---- what is refused
fails("not an nn.Module", DDP, {})
fails("no parameter that requires a gradient", DDP, nn.ReLU())
fails("a process has one device", DDP, network(), {device_ids = {"cpu", "cpu"}})
if size > 1 then
  fails("the parameters of rank 1 differ from those of rank 0", DDP,
        nn.Linear(8, rank == 1 and 3 or 4))
end

R.finish "training"
