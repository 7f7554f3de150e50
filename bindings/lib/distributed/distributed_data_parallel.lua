-- SPDX-License-Identifier: MIT
-- distributed_data_parallel.lua - nn.DistributedDataParallel: each rank trains
-- a copy of a module with its part of the data; the gradients are averaged
-- during backward (gradient_buckets.lua), so all copies stay equal.
local all = ...
all.require "nacre.module"
local fail, layer = all.fail, all.layer

local OP = "DistributedDataParallel"

-- ---- what ranks have in common

-- Fails unless this process is one of the group.
function all.check_group(op, group)
  local dist = nacre.distributed
  if not dist.is_initialized() then
    fail(op, "there is no process group",
         "nacre.distributed.init_process_group()")
  elseif dist.get_rank(group) < 0 then
    fail(op, "this process is not in the group")
  end
end

-- The parameters to train as a list of {name, tensor}.
local function trained(module)
  local list = {}
  for name, p in module:named_parameters() do
    if p.requires_grad then list[#list + 1] = {name, p} end
  end
  return list
end

local function describe(list)
  local lines = {}
  for i, pair in ipairs(list) do
    lines[i] = ("%s %s[%s]"):format(pair[1], pair[2].dtype,
                                    table.concat(pair[2]:size(), " x "))
  end
  return lines
end

-- The first difference of two lists of texts; nil if there is none.
local function difference(own, first)
  for i = 1, math.max(#own, #first) do
    if own[i] ~= first[i] then
      return ("%s here, %s on rank 0"):format(own[i] or "one less",
                                              first[i] or "one less")
    end
  end
end

-- Fails on every rank unless all have the parameters of rank 0.
local function compare(list, group)
  local dist = nacre.distributed
  local own = describe(list)
  local src = dist.get_global_rank(group, 0)
  local text = difference(own, dist.broadcast_object(own, src, group))
  local flags = dist.all_gather(nacre.tensor({text and 1 or 0},
    {dtype = "int64", device = "cpu"}), {group = group})
  local ranks = {}
  for i = 1, flags:size(1) do
    if flags[i][1] == 1 then ranks[#ranks + 1] = i - 1 end
  end
  if #ranks > 0 then
    fail(OP, ("the parameters of rank %s differ from those of rank 0%s")
             :format(table.concat(ranks, ", "), text and ": " .. text or ""))
  end
end

-- Copies tensors of a rank of the group to all others.
function all.broadcast_tensors(list, rank, group)
  local works, src = {}, nacre.distributed.get_global_rank(group, rank)
  nacre.no_grad(function()
    for i, t in ipairs(list) do
      works[i] = nacre.distributed.broadcast(t, {src = src, group = group,
                                                 async_op = true})
    end
    for _, work in ipairs(works) do work:wait() end
  end)
end

local function state_tensors(module)
  local list = {}
  for p in module:parameters() do list[#list + 1] = p end
  for b in module:buffers() do list[#list + 1] = b end
  return list
end

-- ---- the module

local function check(module, ids, group)
  if not all.is_module(module) then fail(OP, "module is not an nn.Module") end
  all.check_group(OP, group)
  if #trained(module) == 0 then
    fail(OP, "module has no parameter that requires a gradient")
  end
  if ids and #ids > 1 then
    fail(OP, "a process has one device", "device_ids = {d}")
  end
end

local Parallel = layer(OP,
  "module:table, device_ids:any=nil, output_device:any|device=nil, "
  .. "broadcast_buffers:bool=true, init_sync:bool=true, process_group:any=nil, "
  .. "bucket_cap_mb:num=25, find_unused_parameters:bool=false, "
  .. "gradient_as_bucket_view:bool=false, static_graph:bool=false",
  "trains the module on all ranks, each with its part of the data", nil,
function(self, module, ids, _, buffers, init_sync, group, cap, unused, views,
         static)
  if type(ids) ~= "table" and ids ~= nil then ids = {ids} end
  check(module, ids, group)
  self.module = module
  rawset(self, "_device", ids and ids[1] and all.device_name(ids[1]))
  rawset(self, "_sync", true)
  rawset(self, "_size", nacre.distributed.get_world_size(group))
  if self._size == 1 then return end
  local list = trained(module)
  if init_sync then
    compare(list, group)
    all.broadcast_tensors(state_tensors(module), 0, group)
  end
  rawset(self, "_broadcasts", buffers and #module:buffers() > 0)
  rawset(self, "_buckets", all.gradient_buckets(list, {
    group = group, cap = cap * 2 ^ 20, as_views = views, find_unused = unused,
    static = static}))
end)
all.alias("nn.parallel.DistributedDataParallel", Parallel)

-- Before forward: sends buffers.
local function begin_forward(self, averages)
  local group, root = rawget(self, "process_group"), 0
  if self._join then root = self._join:notify(true, self._sync, averages) end
  if self._broadcasts and self._sync then
    all.broadcast_tensors(self.module:buffers(), root, group)
  end
end

-- Hooks the tensors in v, a value or a table of values: a backward through one
-- averages. Returns whether there are any.
local function hook_results(buckets, v, seen)
  if nacre.is_tensor(v) then
    if not v.requires_grad or v.is_leaf then return false end
    v:register_hook(function() buckets:expect() end)
    return true
  elseif type(v) ~= "table" or seen[v] then return false end
  local found = false
  seen[v] = true
  for _, element in next, v do
    found = hook_results(buckets, element, seen) or found
  end
  return found
end

-- After forward. Where the results show no tensor, every backward averages.
local function end_forward(self, averages, ...)
  local found = averages and hook_results(self._buckets, {...}, {})
  if nacre.is_grad_enabled() then
    self._buckets.always = averages and not found
  end
  return ...
end

function Parallel:forward(...)
  local args = table.pack(...)
  if self._device then
    args = all.map_tensors(args, function(t) return t:to(self._device) end)
  end
  if not self._buckets then
    return self.module(table.unpack(args, 1, args.n))
  end
  local averages = self._sync and nacre.is_grad_enabled()
  begin_forward(self, averages)
  return end_forward(self, averages,
                     self.module(table.unpack(args, 1, args.n)))
end

-- Sets a field until the variable that holds the result is closed.
local function with(self, key, value)
  local before = rawget(self, key)
  rawset(self, key, value)
  return setmetatable({}, {__close = function() rawset(self, key, before) end})
end

-- fn(...) without averaging: gradients add up on each rank until a forward and
-- a backward outside of no_sync, which averages the sums.
function Parallel:no_sync(fn, ...)
  local _ <close> = with(self, "_sync", false)
  return fn(...)
end

-- hook(state, bucket) sends a bucket of gradients in place of all_reduce.
-- It gives a work, or a function, whose result is the average, or the average.
function Parallel:register_comm_hook(state, hook)
  if type(hook) ~= "function" then
    fail("register_comm_hook", "hook must be a function, not a "
                               .. type(hook))
  elseif self._hooked then
    fail("register_comm_hook", "there is a hook already")
  end
  rawset(self, "_hooked", true)
  if self._buckets then self._buckets.hook = {state, hook} end
end

-- ---- ranks with different numbers of batches

local Join = {}
Join.__index = Join

-- Each rank says whether it still has batches, whether it is outside of
-- no_sync, whether the backward that comes averages, and what it does: a
-- forward (0), or the step of this optimizer. Returns the first rank that goes
-- on, nil for none, whether one says the second, and the third, and what it
-- does.
function Join:notify(here, outside, averages, what)
  local ddp = self.ddp
  local mine = nacre.tensor({here and 1 or 0, outside and 1 or 0,
                             averages and 1 or 0, what or 0},
                            {dtype = "int64", device = "cpu"})
  local flags = nacre.distributed.all_gather(mine, nil, ddp.process_group)
                                 :tolist()
  local root, active = nil, 0
  for i, flag in ipairs(flags) do
    if flag[1] == 1 then root, active = root or i - 1, active + 1 end
    if flag[1] == 1 and flag[4] ~= flags[root + 1][4] then
      fail("join", ("rank %d makes a step while rank %d begins a forward")
                   :format(flag[4] > 0 and i - 1 or root,
                           flag[4] > 0 and root or i - 1))
    end
    outside = outside or flag[2] == 1
    averages = averages or flag[3] == 1
  end
  if self.throws and active < ddp._size then
    fail("join", "a rank has no more batches")
  end
  if self.by_active then
    ddp._buckets.scale = ddp._size / math.max(active, 1)
  end
  self.last = root or self.last
  return root, outside, averages, root and flags[root + 1][4]
end

-- Answers those that still train, then takes over what the last one has.
function Join:answer()
  local ddp = self.ddp
  local group = ddp.process_group
  while true do
    local root, outside, averages, what = self:notify(false)
    if not root then break end
    if what > 0 then self.optimizers[what]:step_own()
    elseif ddp._broadcasts and outside then
      all.broadcast_tensors(ddp.module:buffers(), root, group)
    end
    if averages then
      nacre.no_grad(ddp._buckets.shadow, ddp._buckets, #self.optimizers > 0)
    end
  end
  ddp._buckets.scale = 1
  all.broadcast_tensors(state_tensors(ddp.module), self.last or 0, group)
end

-- The optimizers whose steps need all ranks, by the option `optimizers'.
local function joined_optimizers(v)
  local list = type(v) == "table" and not v.param_groups and v or {v}
  for _, opt in ipairs(list) do
    if type(opt) ~= "table" or not opt.step_own then
      fail("join", "optimizers must be a list of ZeroRedundancyOptimizer",
           "only such an optimizer needs all ranks in its step")
    end
  end
  return list
end

local join_options = all.parse("join",
  "fn:fn, divide_by_initial_world_size:bool=true, enable:bool=true, "
  .. "throw_on_early_termination:bool=false, optimizers:any=nil -> any")

-- fn() may run fewer batches than on other ranks: it then answers these until
-- they are done, and has the parameters of the rank that went on longest.
function Parallel:join(...)
  local fn, by_all, enable, throws, optimizers =
    table.unpack(all.read("join", join_options, ...), 1, 5)
  optimizers = joined_optimizers(optimizers)
  if not (enable and self._buckets) then return fn() end
  for name, m in self.module:named_modules() do
    if all.is_sync_batch_norm(m) then
      fail("join", name .. " is a SyncBatchNorm, which needs all ranks")
    end
  end
  local join = setmetatable({ddp = self, by_active = not by_all,
                             throws = throws, optimizers = optimizers}, Join)
  do
    local _ <close> = with(self, "_join", join)
    for i, opt in ipairs(join.optimizers) do
      opt._notify = function() join:notify(true, false, false, i) end
    end
    local _ <close> = setmetatable({}, {__close = function()
      for _, opt in ipairs(join.optimizers) do opt._notify = nil end
    end})
    fn()
  end
  join:answer()
end
