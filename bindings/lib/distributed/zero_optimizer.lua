-- SPDX-License-Identifier: MIT
-- zero_optimizer.lua - nacre.distributed.optim.ZeroRedundancyOptimizer: another
-- optimizer whose state is dealt out to the ranks (ZeRO stage 1, Rajbhandari et
-- al. 2020). Each rank steps its own parameters and sends them to the others.
local all = ...
all.require("nacre.base_class", "nacre.guards", "nacre.optimizer")
local fail, Optimizer = all.fail, all.Optimizer

local OP = "ZeroRedundancyOptimizer"

local SMALL = 1 << 14         -- elements; larger ones cost their bytes

local Zero = all.derive(Optimizer, OP)

-- Gives each parameter that has no owner to the rank with the fewest elements,
-- large ones first; the same on every rank.
local function deal(self)
  self._blocks = nil
  local new, own, load = {}, self._owner, self._load
  for _, group in ipairs(self.param_groups) do
    for i, p in ipairs(group.params) do
      if not own[p] then new[#new + 1] = {p, #new} end
    end
  end
  table.sort(new, function(a, b)
    local x, y = a[1]:numel(), b[1]:numel()
    return x > y or x == y and a[2] < b[2]
  end)
  for _, pair in ipairs(new) do
    local least = 1
    for r = 2, #load do if load[r] < load[least] then least = r end end
    own[pair[1]] = least - 1
    load[least] = load[least] + pair[1]:numel()
  end
end

-- optimizer_class(params, options) makes the optimizer whose state is dealt
-- out; an option process_group is for this one.
function Zero:init(params, optimizer_class, options)
  local dist = nacre.distributed
  local own = {}
  all.check_instance(Zero, self)
  if options ~= nil and type(options) ~= "table" then
    fail(OP, "options must be a table, not a " .. type(options))
  end
  for key, value in pairs(options or {}) do own[key] = value end
  own.process_group = nil
  local meta = type(optimizer_class) == "table" and
               getmetatable(optimizer_class)
  if type(optimizer_class) ~= "function" and not (meta and meta.__call) then
    fail(OP, "optimizer_class makes an optimizer",
         "nacre.distributed.optim." .. OP
         .. "(net, nacre.optim.Adam, {lr = r})")
  end
  all.check_group(OP, options and options.process_group)
  local inner = optimizer_class(params, own)
  if type(inner) ~= "table" or inner.name == "LBFGS" or
     type(inner.param_groups) ~= "table" or not inner.step then
    fail(OP, "optimizer_class does not make an optimizer with a state for each "
             .. "parameter")
  end
  self.optim, self.param_groups, self.state = inner, inner.param_groups,
                                              inner.state
  self.defaults = inner.defaults
  self._group = options and options.process_group
  self._rank = dist.get_rank(self._group)
  self._owner, self._load = {}, {}
  for r = 1, dist.get_world_size(self._group) do self._load[r] = 0 end
  deal(self)
end

function Zero:add_param_group(group)
  self.optim:add_param_group(group)
  deal(self)
end

-- Leaves in each group the parameters of this rank until the result is closed.
local function only_own(self)
  local whole = {}
  for i, group in ipairs(self.param_groups) do
    local own = {}
    for _, p in ipairs(group.params) do
      if self._owner[p] == self._rank then own[#own + 1] = p end
    end
    whole[i], group.params = group.params, own
  end
  return setmetatable({}, {__close = function()
    for i, group in ipairs(self.param_groups) do group.params = whole[i] end
  end})
end

-- The rank among all processes of rank r of the group.
local function global_rank(self, r)
  return nacre.distributed.get_global_rank(self._group, r)
end

-- Parameters of at most SMALL elements travel together: each rank gives a block
-- with its own, all_gather gives it those of the others. Large ones are sent as
-- they are. Returns the blocks {room=, [rank + 1]=list}, and the large ones.
local function sort_by_size(self)
  local blocks, large, of = {}, {}, {}
  for _, group in ipairs(self.param_groups) do
    for _, p in ipairs(group.params) do
      local key, owner = p.dtype .. " " .. p.device, self._owner[p] + 1
      if p:numel() > SMALL then large[#large + 1] = p
      else
        local b = of[key] or {like = p}
        if not of[key] then of[key], blocks[#blocks + 1] = b, b end
        b[owner] = b[owner] or {n = 0}
        table.insert(b[owner], p)
        b[owner].n = b[owner].n + p:numel()
      end
    end
  end
  for _, b in ipairs(blocks) do
    local room = 0
    for r = 1, #self._load do room = math.max(room, b[r] and b[r].n or 0) end
    b.mine = nacre.zeros(room, all.like(b.like))
    b.all = nacre.zeros({#self._load, room}, all.like(b.like))
  end
  return blocks, large
end

-- Copies the parameters in the list to a flat tensor, or from it.
local function copy_flat(list, flat, from)
  local at = 1
  for _, p in ipairs(list or {}) do
    local part = flat:narrow(1, at, p:numel()):view(p:size())
    if from then p:copy_(part) else part:copy_(p) end
    at = at + p:numel()
  end
end

local function send_own(self)
  local dist, works = nacre.distributed, {}
  local mine = self._rank + 1
  if not self._blocks then self._blocks, self._large = sort_by_size(self) end
  for _, b in ipairs(self._blocks) do
    copy_flat(b[mine], b.mine)
    works[#works + 1] = dist.all_gather_into_tensor(b.all, b.mine, self._group,
                                                    true)
  end
  for _, p in ipairs(self._large) do
    works[#works + 1] = dist.broadcast(p,
      {src = global_rank(self, self._owner[p]), group = self._group,
       async_op = true})
  end
  for _, work in ipairs(works) do work:wait() end
  for _, b in ipairs(self._blocks) do
    for r = 1, #self._load do
      if r ~= mine then copy_flat(b[r], b.all:select(1, r), true) end
    end
  end
end

-- The step of this rank's parameters, which then go to the others.
function Zero:step_own()
  do
    local _ <close> = only_own(self)
    self.optim:step()
  end
  nacre.no_grad(send_own, self)
  self._whole = nil
end

function Zero:step(closure)
  local loss = closure and nacre.enable_grad(closure)
  if self._notify then self._notify() end -- those that have no more batches
  self:step_own()
  if closure then return loss end
end

-- ---- state

-- {state=, param_groups=} with the states of the parameters of this rank alone.
function Zero:local_state_dict()
  return self.optim:state_dict()
end

-- Collects the states of all ranks at rank `to', whose state_dict has them. All
-- ranks call it.
function Zero:consolidate_state_dict(to)
  to = to or 0
  if math.type(to) ~= "integer" or to < 0 or to >= #self._load then
    fail(OP, ("there is no rank %s: they are 0 to %d"):format(to,
                                                              #self._load - 1))
  end
  local dist, own = nacre.distributed, self:local_state_dict()
  local whole = {state = {}, param_groups = own.param_groups}
  for r = 0, #self._load - 1 do
    local part = dist.broadcast_object(r == self._rank and own.state or nil,
                                       global_rank(self, r), self._group)
    if to == self._rank then
      for i, s in pairs(part) do whole.state[i] = s end
    end
  end
  self._whole = to == self._rank and
                all.note_optimizer_state(whole, self.optim) or nil
end

function Zero:state_dict()
  if #self._load == 1 then return self:local_state_dict() end
  return self._whole or fail(OP, "the states are on several ranks",
    "opt:consolidate_state_dict(r) on all ranks, then state_dict on rank r")
end

-- Takes the states of the parameters of this rank from those of all.
function Zero:load_state_dict(saved)
  local own = {}
  for i, group in ipairs(self.param_groups) do
    local from = (saved.param_groups or {})[i]
    for j, p in ipairs(from and group.params or {}) do
      local number = from.params[j]
      if number and self._owner[p] == self._rank then
        own[number] = (saved.state or {})[number]
      end
    end
  end
  self.optim:load_state_dict {param_groups = saved.param_groups,
                              state = saved.state and own}
  self._whole = nil
end

all.guard_methods(Zero, function(self)
  return all.is_instance(self, Zero) and rawget(self, "optim") ~= nil
end, "opt", {load_state_dict = "state_dict:table", step = "closure:fn=nil",
             add_param_group = "group:table"})
all.space("distributed.optim")[OP] = Zero
all.describe("distributed.optim." .. OP, Zero,
             "an optimizer whose state is divided among the ranks",
             all.parse("distributed.optim." .. OP,
                       "params:table, optimizer_class:any, options:table=nil "
                       .. "-> optimizer"))
