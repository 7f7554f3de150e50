-- SPDX-License-Identifier: MIT
-- distributed_sampler.lua - nacre.utils.data.DistributedSampler: the samples of
-- this rank. All ranks draw the same order, from seed + epoch, and take turns,
-- so they need no message.
local all = ...
all.require("nacre.guards", "nacre.loader")
local fail = all.fail

local OP = "DistributedSampler"

local Sampler = {}
Sampler.__index = Sampler

function Sampler:__len() return self.num_samples end

-- The numbers of all samples in the order of this epoch.
local function order_of(self)
  if not self.shuffle then
    return nacre.arange(1, self.total + 1, {device = "cpu"})
  end
  local generator = nacre.Generator():manual_seed(self.seed + self.epoch)
  return nacre.randperm(self.total, {generator = generator, device = "cpu"})
end

-- Ranks that would have one sample less take one from the beginning again.
Sampler.__call = all.sampler_call(function(self)
  local turns = nacre.arange(0, self.num_samples, {device = "cpu"})
  local at = (turns * self.num_replicas + self.rank) % self.total + 1
  return order_of(self):index_select(1, at)
end)

function Sampler:set_epoch(epoch) self.epoch = epoch end

all.guard_methods(Sampler, function(v) return getmetatable(v) == Sampler end,
                  "sampler", {set_epoch = "epoch:int"})

function Sampler:__tostring()
  return ("%s of %d samples, rank %d of %d"):format(OP, self.num_samples,
                                                    self.rank,
                                                    self.num_replicas)
end

local function check_rank(self)
  if self.num_replicas < 1 or self.rank < 0 or self.rank >= self.num_replicas
  then
    fail(OP, ("rank %d of %d: ranks count from 0"):format(self.rank,
                                                          self.num_replicas))
  end
end

local function check_samples(self)
  if self.num_samples < 1 then
    fail(OP, ("there are %d samples for %d ranks"):format(self.total,
                                                          self.num_replicas))
  end
end

local signature = all.parse("utils.data." .. OP,
  "dataset:any, num_replicas:int=nil, rank:int=nil, shuffle:bool=true, "
  .. "seed:int=0, drop_last:bool=false -> sampler")

local function construct(...)
  local self, v = setmetatable({epoch = 0}, Sampler), all.read(OP, signature,
                                                               ...)
  for i, p in ipairs(signature.params) do self[p.name] = v[i] end
  local dist = nacre.distributed
  self.num_replicas = self.num_replicas or dist.get_world_size()
  self.rank = self.rank or dist.get_rank()
  check_rank(self)
  self.total = #all.dataset(self.dataset, OP)
  self.num_samples = self.drop_last and self.total // self.num_replicas or
                     (self.total + self.num_replicas - 1) // self.num_replicas
  check_samples(self)
  self.total_size = self.num_samples * self.num_replicas
  return self
end

all.space("utils.data")[OP] = construct
all.describe("utils.data." .. OP, construct,
             "the samples of this rank, shuffled anew for each set_epoch(n)",
             signature)
all.alias("utils.data.distributed." .. OP, construct)
