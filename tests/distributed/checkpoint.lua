-- SPDX-License-Identifier: MIT
-- nacre.distributed.checkpoint: a state that k ranks wrote is read by j ranks,
-- for all k and j, and by nacre.load; each tensor is in one file; a failed save
-- leaves the old state; old files go.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local R = dofile(here .. "ranks.lua")
local fails, nn, F, optim = C.fails, nacre.nn, nacre.nn.functional, nacre.optim
local dist = nacre.distributed
local save, load = dist.checkpoint.save, dist.checkpoint.load
local rank, size = R.rank, R.size

local folder = dist.broadcast_object(rank == 0 and os.tmpname() or nil)
if rank == 0 then
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
end
dist.barrier()
local path = folder .. "/run"

-- The first k ranks, nil on the others.
local groups = {}
for k = 1, size do
  local group = dist.split(rank < k and 0 or -1)
  groups[k] = rank < k and group or nil
end

local function network()
  nacre.manual_seed(5)
  return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.BatchNorm1d(16),
                       nn.Linear(16, 3))
end

local function step(net, opt, n)
  nacre.manual_seed(n)
  opt:zero_grad()
  F.mse_loss(net(nacre.randn(12, 8)), nacre.randn(12, 3)):backward()
  opt:step()
end

-- All ranks of a group compute the same, so the state is that of one process.
local function state_of(group)
  local net = network()
  local opt = dist.optim.ZeroRedundancyOptimizer(net, optim.Adam,
    {lr = 1e-2, process_group = group})
  return {net = net, opt = opt, epoch = 0, name = "tensor x", list = {1, "b"},
          table = dist.shard(nacre.zeros(7, 2), 1, group),
          columns = dist.shard(nacre.zeros(2, 9), 2, group)}
end

local whole = nacre.arange(14.0):view(7, 2)
local columns = nacre.arange(18.0):view(2, 9)

local function trained_state(group)
  local s = state_of(group)
  for i = 1, 3 do step(s.net, s.opt, i) end
  s.epoch, s.name, s.list[2] = 3, "tensor y", 0 / 0
  s.table = dist.shard(whole, 1, group)
  s.columns = dist.shard(columns, 2, group)
  return s
end

local own = network()
local plain = optim.Adam(own, {lr = 1e-2})
for i = 1, 3 do step(own, plain, i) end
local after = own:clone()
do
  local opt = optim.Adam(after, {lr = 1e-2})
  opt:load_state_dict(plain:state_dict())
  step(after, opt, 4)
end

local function check_loaded(j, group)
  local s = state_of(group)
  local given = load(s, path, group)
  assert(rawequal(given, s) and s.epoch == 3 and s.name == "tensor y")
  assert(s.list[1] == 1 and s.list[2] ~= s.list[2])
  R.close("loaded", own, s.net)
  assert(s.table:gather():equal(whole), "sharded rows")
  assert(s.columns:gather():equal(columns), "sharded columns")
  step(s.net, s.opt, 4)
  R.close("a step later on " .. j, after, s.net)
  local n = 0
  for _ in pairs(s.opt.state) do n = n + 1 end
  assert(j == 1 and n == 6 or n < 6, "states are dealt out")
end

local function files()
  local list = {}
  local p = io.popen("ls " .. folder)
  for name in p:lines() do list[#list + 1] = name end
  p:close()
  return list
end

local saves = 0
for k = 1, size do
  if groups[k] then save(trained_state(groups[k]), path, groups[k]) end
  saves = saves + 1
  dist.barrier()
  local list = files()
  assert(#list == k + 1, table.concat(list, " "))
  for r = 1, k do
    assert(list[r] == ("run-%d-%05d-of-%05d.safetensors"):format(saves, r, k),
           list[r])
  end
  assert(list[k + 1] == "run.safetensors.index.json")
  -- each tensor once, and no rank without one
  local seen = {}
  for r = 1, k do
    assert(io.open(folder .. "/" .. list[r]):seek "end" > 500)
  end
  for name in io.open(folder .. "/" .. list[k + 1]):read "a"
              :gmatch '"([^"]+)": "run' do
    assert(not seen[name], name)
    seen[name] = true
  end
  assert(seen["net.0.weight"] and seen["opt.state.1.exp_avg"])
  -- one process
  local s = nacre.load(path .. ".safetensors.index.json")
  assert(s.epoch == 3 and s.name == "tensor y" and #s.list == 2)
  assert(s.table:equal(whole) and s.columns:equal(columns))
  assert(#s.opt.state == 6 and s.opt.param_groups[1].lr == 1e-2)
  local alone = network()
  alone:load_state_dict(s.net)
  R.close("nacre.load", own, alone)
  assert(nacre.load(folder).epoch == 3)
  dist.barrier()
  for j = 1, size do
    if groups[j] then check_loaded(j, groups[j]) end
  end
  dist.barrier()
end

-- ---- a save that fails on one rank
do
  local before = table.concat(files(), " ")
  dist.barrier()
  local state = {x = nacre.ones(3), y = nacre.ones(4)}
  if rank == size - 1 then state.z = print end
  fails(("rank %d: z is a function, which a file cannot hold"):format(size - 1),
        save, state, path)
  local blocked = ("%s/run-%d-%05d-of-%05d.safetensors"):format(
                    folder, saves + 1, 1, size)
  if rank == 0 then assert(os.execute("mkdir " .. blocked)) end
  dist.barrier()
  state.z = nil
  local e = fails("", save, state, path)
  if rank > 0 then
    assert(tostring(e):find("1 other rank failed", 1, true), tostring(e))
  end
  assert(nacre.load(path .. ".safetensors.index.json").epoch == 3)
  dist.barrier()
  if rank == 0 then os.remove(blocked) end
  dist.barrier()
  save(state, path)
  assert(nacre.load(folder).y:equal(nacre.ones(4)))
end

-- ---- what does not fit
fails("the state has no 'q'", load, {q = {r = 1}}, path)
fails("'x' has another shape", load, {x = nacre.ones(1)}, path)
fails("a sharded tensor is [2], but that of the state is input", load,
      {x = dist.shard(nacre.ones(2))}, path)
fails("'x' is not a table in the state", load, {x = {1}}, path)
fails("is not the name of a file", save, {x = nacre.ones(1)}, folder .. "/")
fails("a table with tensors in it", save, {x = 1}, path)
fails("No such file", load, {}, folder .. "/none")
dist.barrier()
if rank == 0 then os.execute("rm -r " .. folder) end
R.finish "checkpoint"
