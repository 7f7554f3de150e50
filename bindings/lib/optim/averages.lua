-- SPDX-License-Identifier: MIT
-- averages.lua - nacre.optim.swa_utils: averages of the parameters of a network
-- over its training, their rates and their batch statistics. Names, keys and
-- values are those of PyTorch.
--
--   ema = nacre.optim.swa_utils.AveragedModel(net, {decay = 0.999})
--   for x, y in loader do ...; opt:step(); ema:update() end
--   nacre.optim.swa_utils.update_bn(loader, ema)
--   ema(x)
local all = ...
all.require("nacre.module", "nacre.schedules")
local fail, swa_utils = all.fail, all.space "optim.swa_utils"

local function check_decay(op, decay)
  if decay < 0 or decay > 1 then
    fail(op, ("decay is %g, but must be from 0 to 1"):format(decay))
  end
end

-- averages[j] += (tensors[j] - averages[j]) * weight for tensors of one device
-- and dtype.
local function lerp_list(averages, tensors, weight)
  if all.lerp_fused(averages, tensors, weight) then return end
  for j, a in ipairs(averages) do
    if a:is_floating_point() then a:lerp_(tensors[j], weight)
    else a:copy_(a + (tensors[j] - a) * weight) end
  end
end

local function ema_of(op, decay)
  check_decay(op, decay)
  return function(averages, tensors) lerp_list(averages, tensors, 1 - decay) end
end

local function equal_weights(averages, tensors, n)
  lerp_list(averages, tensors, 1 / (n + 1))
end

all.define("optim.swa_utils.get_ema_multi_avg_fn",
           "decay:num=0.999 -> function",
           "the multi_avg_fn of an exponential moving average",
           function(decay) return ema_of("get_ema_multi_avg_fn", decay) end)
all.define("optim.swa_utils.get_swa_multi_avg_fn", "-> function",
           "the multi_avg_fn of the mean of all",
           function() return equal_weights end)

-- avg_fn, of one average, as a function of lists.
local function of_each(avg_fn)
  return function(averages, tensors, n)
    for j, a in ipairs(averages) do a:copy_(avg_fn(a, tensors[j], n)) end
  end
end

local AveragedModel = all.Module:extend "AveragedModel"
local signature = all.parse("optim.swa_utils.AveragedModel",
  "model:module, device:device=nil, avg_fn:fn=nil, multi_avg_fn:fn=nil, "
  .. "use_buffers:bool=false, decay:num=nil -> module")
AveragedModel._signature = signature

function AveragedModel:init(...)
  all.check_module(AveragedModel, self)
  local op = self.__name
  local v = all.read(op, signature, ...)
  local model, device, avg_fn, multi, use_buffers, decay =
    table.unpack(v, 1, #signature.params)
  if (avg_fn and 1 or 0) + (multi and 1 or 0) + (decay and 1 or 0) > 1 then
    fail(op, "only one of avg_fn, multi_avg_fn and decay can be given")
  end
  self.module = model:clone()
  if device then self.module:to(device) end
  self:register_buffer("n_averaged",
                       nacre.tensor(0, {dtype = "int64", device = device}))
  self._model = function() return model end     -- a copy averages the same
  self._average = multi or avg_fn and of_each(avg_fn) or
                  decay and ema_of(op, decay) or equal_weights
  self.use_buffers = use_buffers
end

function AveragedModel:forward(...) return self.module(...) end

-- The parameters of a module, and its buffers; if `joined' as one list.
local function tensors_of(module, joined)
  local parameters, buffers, seen = {}, {}, {}
  all.each_tensor(module, function(_, m)
    if seen[m.value] then return end
    seen[m.value] = true
    local list = m.kind == "parameter" and parameters or buffers
    list[#list + 1] = m.value
  end)
  if joined then
    return table.move(buffers, 1, #buffers, #parameters + 1, parameters), {}
  end
  return parameters, buffers
end

-- Pairs of lists of averages and tensors, those of one device and dtype
-- together; the tensors come to the device of their averages.
local function groups_of(averages, tensors)
  local groups, by_key = {}, {}
  for j, a in ipairs(averages) do
    local key = a.device .. a.dtype
    local g = by_key[key]
    if g == nil then
      g = {averages = {}, tensors = {}}
      by_key[key], groups[#groups + 1] = g, g
    end
    g.averages[#g.averages + 1] = a
    g.tensors[#g.averages] = tensors[j]:to(a.device)
  end
  return groups
end

local function copy_all(to, from)
  for j, t in ipairs(to) do t:copy_(from[j]) end
end

-- Takes the parameters of model into the average; the first time they are it.
function AveragedModel:update_parameters(model)
  if not all.is_module(model) then
    fail("update_parameters", "model must be a module")
  end
  local averages, copies = tensors_of(self.module, self.use_buffers)
  local tensors, buffers = tensors_of(model, self.use_buffers)
  if #averages ~= #tensors then
    fail("update_parameters", ("the model has %d tensors, but the average has "
      .. "%d")
                              :format(#tensors, #averages))
  end
  nacre.no_grad(function()
    local n = self.n_averaged:item()
    if n == 0 then copy_all(averages, tensors)
    else
      for _, g in ipairs(groups_of(averages, tensors)) do
        self._average(g.averages, g.tensors, n)
      end
    end
    copy_all(copies, buffers)
    self.n_averaged:add_(1)
  end)
end

-- The same for the model it was made from.
function AveragedModel:update() self:update_parameters(self._model()) end

swa_utils.AveragedModel = AveragedModel
all.describe("optim.swa_utils.AveragedModel", AveragedModel,
             "a copy of a network whose parameters are the average of those at "
             .. "each update()", signature)

-- ---- the rate

local ANNEAL = {
  cos = function(t) return (1 - math.cos(math.pi * t)) / 2 end,
  linear = function(t) return t end,
}

-- The rate at the beginning, if it is lr after a part alpha of the way.
local function rate_before(lr, swa_lr, alpha)
  if alpha == 1 then return swa_lr end
  return (lr - alpha * swa_lr) / (1 - alpha)
end

all.schedule("optim.swa_utils.SWALR",
  "swa_lr:nums, anneal_epochs:int=10, anneal_strategy:cos|linear=cos",
  "from the current rate to swa_lr, which then stays", {
  _prepare = function(self, name)
    if self.anneal_epochs < 0 then
      fail(name, "anneal_epochs must not be negative")
    end
    for i, group in ipairs(self.optimizer.param_groups) do
      group.swa_lr = type(self.swa_lr) == "table" and self.swa_lr[i] or
                     self.swa_lr
    end
  end,
  get_lr = function(self)
    local anneal, n = ANNEAL[self.anneal_strategy], self.anneal_epochs
    local t, rates = math.max(self.last_epoch, n == 0 and 1 or 0), {}
    local function part(step)
      return anneal(math.max(0, math.min(1, step / math.max(1, n))))
    end
    for i, group in ipairs(self.optimizer.param_groups) do
      local alpha = part(t)
      local lr = rate_before(group.lr, group.swa_lr, part(t - 1))
      rates[i] = group.swa_lr * alpha + lr * (1 - alpha)
    end
    return rates
  end})

-- ---- batch statistics

all.define("optim.swa_utils.update_bn", "loader:any, model:module, "
           .. "device:device=nil -> ",
           "recomputes the running statistics of batch norms: the mean over "
             .. "all batches of a loader",
function(loader, model, device)
  local was_training, momenta = model.training, {}
  for _, m in model:named_modules() do
    if m.is_batch_norm then
      m:reset_running_stats()
      momenta[m] = m.momentum
    end
  end
  if next(momenta) == nil then return end
  model:train()
  for m in pairs(momenta) do m.momentum = false end
  for batch in loader do
    if type(batch) == "table" then batch = batch[1] end
    model(device and batch:to(device) or batch)
  end
  for m, momentum in pairs(momenta) do m.momentum = momentum end
  model:train(was_training)
end)
