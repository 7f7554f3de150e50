-- SPDX-License-Identifier: MIT
-- ZeroRedundancyOptimizer: 20 steps are those of the optimizer itself, with the
-- state dealt out; its state goes to another number of ranks and to the plain
-- optimizer. DistributedSampler: each sample once, in an order of its epoch.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local R = dofile(here .. "ranks.lua")
local fails, nn, F, optim = C.fails, nacre.nn, nacre.nn.functional, nacre.optim
local dist, data = nacre.distributed, nacre.utils.data
local Zero = dist.optim.ZeroRedundancyOptimizer
local DDP = nn.parallel.DistributedDataParallel
local rank, size, part = R.rank, R.size, R.part

local function network()
  nacre.manual_seed(5)
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 12),
                       nn.Tanh(), nn.Linear(12, 3))
end

local function steps(net, opt, first, last, cut, schedule)
  for step = first, last do
    nacre.manual_seed(1000 + step)
    local x, y = nacre.randn(24, 8), nacre.randn(24, 3)
    if cut then x, y = part(x), part(y) end
    opt:zero_grad()
    F.mse_loss(net(x), y):backward()
    opt:step()
    if schedule then schedule:step() end
  end
end

local function elements(opt)
  local n = 0
  for _, s in pairs(opt.state) do
    for _, t in pairs(s) do
      if nacre.is_tensor(t) then n = n + t:numel() end
    end
  end
  return n
end

-- ---- as the plain optimizer
for _, case in ipairs {{optim.SGD, {lr = 0.1, momentum = 0.9}},
                       {optim.Adam, {lr = 1e-2}},
                       {optim.AdamW, {lr = 1e-2, amsgrad = true}}} do
  local class, options = table.unpack(case)
  local own, net = network(), DDP(network())
  local plain, zero = class(own, options), Zero(net, class, options)
  steps(own, plain, 1, 20, false,
        optim.lr_scheduler.StepLR(plain, 5, {gamma = 0.5}))
  steps(net, zero, 1, 20, true,
        optim.lr_scheduler.StepLR(zero, 5, {gamma = 0.5}))
  R.close("zero", own, net.module)
  R.same_everywhere("zero", net.module)
  local total = elements(plain)
  local mine = elements(zero)
  assert(dist.all_reduce(nacre.tensor(mine)):item() == total)
  assert(mine <= total / size + 2 * 16 * 12 * 2,
         ("%d of %d elements on rank %d"):format(mine, total, rank))
  if size > 1 then assert(mine < total) end
end

-- ---- ranks with different numbers of batches
local function batches(r) return 2 + 2 * r end

local function batch(i, r)
  nacre.manual_seed(77 * i + r)
  return nacre.randn(4, 8)
end

for _, by_all in ipairs {true, false} do
  local own, net = network(), DDP(network())
  local plain = optim.Adam(own, {lr = 1e-2})
  local zero = Zero(net, optim.Adam, {lr = 1e-2})
  net:join(function()
    for i = 1, batches(rank) do
      zero:zero_grad()
      if i % 2 == 1 then -- of two batches
        net:no_sync(function()
          net(batch(i, rank)):square():mean():backward()
        end)
      end
      net(batch(i, rank)):square():mean():backward()
      zero:step()
    end
  end, {optimizers = zero, divide_by_initial_world_size = by_all})
  for i = 1, batches(size - 1) do
    local active = 0
    plain:zero_grad()
    for r = 0, size - 1 do
      if i <= batches(r) then
        for _ = 1, 1 + i % 2 do own(batch(i, r)):square():mean():backward() end
        active = active + 1
      end
    end
    for p in own:parameters() do p.grad:div_(by_all and size or active) end
    plain:step()
  end
  R.close("join", own, net.module)
  R.same_everywhere("join", net.module)
end
if size > 1 then
  local net = DDP(network())
  fails("optimizers must be a list of ZeroRedundancyOptimizer", net.join, net,
        print, {optimizers = {optim.SGD(net, {lr = 1})}})
end

-- ---- states: collected on one rank, for the plain optimizer and for another
do
  local own, net = network(), DDP(network())
  local plain = optim.Adam(own, {lr = 1e-2})
  local zero = Zero(net, optim.Adam, {lr = 1e-2})
  steps(own, plain, 1, 5)
  steps(net, zero, 1, 5, true)
  local last = size - 1
  if size > 1 then
    fails("the states are on several ranks",
          "opt:consolidate_state_dict(r) on all ranks, then state_dict on rank "
          .. "r", zero.state_dict, zero)
  end
  local ok, e = pcall(zero.consolidate_state_dict, zero, size)
  assert(not ok and tostring(e):find "there is no rank", tostring(e))
  zero:consolidate_state_dict(last)
  local state = rank == last and zero:state_dict() or nil
  state = dist.broadcast_object(state, last)
  assert(#state.state == 6)
  local again = network()
  again:load_state_dict(net.module:state_dict())
  local other = optim.Adam(again, {lr = 1})
  other:load_state_dict(state)
  steps(again, other, 6, 10)
  local third = DDP(network())
  third.module:load_state_dict(net.module:state_dict())
  local from_plain = Zero(third, optim.Adam, {lr = 1})
  from_plain:load_state_dict(state)
  steps(third, from_plain, 6, 10, true)
  steps(own, plain, 6, 10)
  R.close("plain from zero", own, again)
  R.close("zero from zero", own, third.module)
  assert(size == 1 or elements(from_plain) < elements(other))
end

-- ---- groups
do
  local own, net = network(), DDP(network())
  local function groups(m)
    return {{params = m[1]:parameters(), lr = 0.5},
            {params = m[3]:parameters()}}
  end
  local plain = optim.SGD(groups(own), {lr = 0.1, momentum = 0.5})
  local zero = Zero(groups(net.module), optim.SGD, {lr = 0.1, momentum = 0.5})
  plain:add_param_group {params = own[5]:parameters(), lr = 0.2}
  zero:add_param_group {params = net.module[5]:parameters(), lr = 0.2}
  steps(own, plain, 1, 5)
  steps(net, zero, 1, 5, true)
  R.close("groups", own, net.module)
  assert(#zero.param_groups == 3 and #zero.param_groups[1].params == 2)
  local seen = zero:step(function() return 7 end)
  assert(seen == 7)
  assert(tostring(zero):find("ZeroRedundancyOptimizer", 1, true))
  fails("optimizer_class makes an optimizer", Zero, net, nil)
  fails("does not make an optimizer with a state", Zero, net, optim.LBFGS)
end

-- ---- samplers
local function numbers(sampler) return sampler():tolist() end

for _, n in ipairs {1, 7, 12, 13} do
  local set = nacre.arange(1, n + 1)
  local count, seen = (n + size - 1) // size, {}
  local s = data.DistributedSampler({set})
  assert(#s == count)
  local first = numbers(s)
  C.is(dist.all_gather(s()):flatten():sort(),
       C.text((function()
         local list = {}
         for r = 0, size - 1 do
           local other = data.DistributedSampler({set}, size, r)
           for _, i in ipairs(numbers(other)) do list[#list + 1] = i end
         end
         table.sort(list)
         for _, i in ipairs(list) do seen[i] = true end
         return list
       end)()))
  for i = 1, n do assert(seen[i], "sample " .. i .. " is missing") end
  assert(C.text(numbers(s)) == C.text(first), "the same without set_epoch")
  s:set_epoch(1)
  if n == 13 then assert(C.text(numbers(s)) ~= C.text(first)) end
  s:set_epoch(0)
  assert(C.text(numbers(s)) == C.text(first))
  if n >= size then
    local cut = data.DistributedSampler({set}, {drop_last = true})
    assert(#cut == n // size and #numbers(cut) == n // size)
  else
    fails("samples for", data.DistributedSampler, {set}, {drop_last = true})
  end
end
do
  local set = nacre.arange(1, 13)
  local s = data.distributed.DistributedSampler({set}, 3, 1, false)
  assert(C.text(numbers(s)) == "{2,5,8,11}")
  local loader = data.DataLoader({set}, {batch_size = 2, sampler = s})
  local got = {}
  for x in loader do got[#got + 1] = C.text(x:tolist()) end
  assert(#loader == 2 and C.text(got) == "{{2,5},{8,11}}", C.text(got))
  assert(tostring(s) == "DistributedSampler of 4 samples, rank 1 of 3")
  fails("ranks count from 0", data.DistributedSampler, {set}, 3, 3)
  fails("epoch must be an integer", s.set_epoch, s, "1")
end

R.finish "zero_optimizer"
