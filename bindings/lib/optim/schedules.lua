-- SPDX-License-Identifier: MIT
-- schedules.lua - nacre.optim.lr_scheduler: learning rates as functions of the
-- number t of the epoch, which counts from 0. Names, arguments and rates are
-- those of PyTorch.
--
--   schedule = nacre.optim.lr_scheduler.StepLR(opt, 30)
--   for epoch = 1, 100 do ...; schedule:step() end
local all = ...
local fail, lr_scheduler = all.fail, all.space "optim.lr_scheduler"

local Scheduler = {}
Scheduler.__index = Scheduler

-- Sets the rates of epoch t. Those that are not what this schedule alone would
-- have set, because another schedule or the user changed them, change by the
-- same factor, unless `anew' is true.
local function set_rates(self, t, anew)
  self.last_epoch = t
  for i, group in ipairs(self.optimizer.param_groups) do
    local old, new = self.own_lrs[i], self:rate(self.base_lrs[i], t, i)
    if anew or group.lr == old or old == 0 then group.lr = new
    else group.lr = group.lr * new / old end
    self.own_lrs[i] = new
  end
end

function Scheduler:step() set_rates(self, self.last_epoch + 1) end

function Scheduler:get_last_lr()
  local list = {}
  for i, group in ipairs(self.optimizer.param_groups) do list[i] = group.lr end
  return list
end

-- The fields that are numbers, strings, booleans or lists of these.
function Scheduler:state_dict()
  local out = {}
  for key, v in pairs(self) do
    if key ~= "optimizer" and key ~= "schedulers" and type(v) ~= "function" then
      out[key] = type(v) == "table" and table.move(v, 1, #v, 1, {}) or v
    end
  end
  if self.schedulers then
    out.schedulers = {}
    for i, s in ipairs(self.schedulers) do
      out.schedulers[i] = s:state_dict()
    end
  end
  return out
end

function Scheduler:load_state_dict(saved)
  for key, v in pairs(saved) do
    if key == "schedulers" then
      for i, s in ipairs(self.schedulers) do s:load_state_dict(v[i]) end
    else
      self[key] = type(v) == "table" and table.move(v, 1, #v, 1, {}) or v
    end
  end
end

local function check_optimizer(op, optimizer)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
    fail(op, "the first argument must be an optimizer, not a "
             .. (nacre.is_tensor(optimizer) and "tensor" or type(optimizer)))
  end
end

-- The rates without any schedule.
local function base_rates(optimizer)
  local list = {}
  for i, group in ipairs(optimizer.param_groups) do
    group.initial_lr = group.initial_lr or group.lr
    list[i] = group.initial_lr
  end
  return list
end

-- lr_scheduler[name] with these methods: rate(base, t, i) is the rate of group
-- i in epoch t; init(), if there is one, checks the options and prepares.
local function schedule(name, signature, doc, methods)
  local s = all.parse("optim.lr_scheduler." .. name, "optimizer:table" ..
                      (signature == "" and "" or ", ") .. signature ..
                      " -> schedule")
  local class = setmetatable(methods, {__index = Scheduler})
  class.__index = class
  class.__tostring = function(self)
    return ("%s, epoch %d, lr %s"):format(name, self.last_epoch,
                                          table.concat(self:get_last_lr(), " "))
  end
  local function construct(...)
    local v = all.read(name, s, ...)
    check_optimizer(name, v[1])
    local self = setmetatable({last_epoch = -1, own_lrs = {}}, class)
    for i, p in ipairs(s.params) do self[p.name] = v[i] end
    self.base_lrs = base_rates(self.optimizer)
    for i, base in ipairs(self.base_lrs) do self.own_lrs[i] = base end
    if self.init then self:init(name) end
    if self.rate then self:step() end
    return self
  end
  lr_scheduler[name] = construct
  all.describe("optim.lr_scheduler." .. name, construct, doc, s)
end

local function check_positive(op, key, v)
  if math.type(v) ~= "integer" or v < 1 then
    fail(op, ("%s is %s, but must be a positive integer")
             :format(key, tostring(v)))
  end
end

-- ---- factors of the first rate

schedule("LambdaLR", "lr_lambda:any",
         "the first rate times lr_lambda(t), or a function for each group", {
  rate = function(self, base, t, i)
    local f = self.lr_lambda
    if type(f) == "table" and getmetatable(f) == nil then f = f[i] end
    return base * f(t)
  end})

schedule("StepLR", "step_size:int, gamma:num=0.1",
         "times gamma after every step_size epochs", {
  init = function(self, name)
    check_positive(name, "step_size", self.step_size)
  end,
  rate = function(self, base, t)
    return base * self.gamma ^ (t // self.step_size)
  end})

schedule("MultiStepLR", "milestones:ints, gamma:num=0.1",
         "times gamma at each of the epochs in milestones", {
  rate = function(self, base, t)
    local n = 0
    for _, m in ipairs(self.milestones) do n = n + (t >= m and 1 or 0) end
    return base * self.gamma ^ n
  end})

schedule("ExponentialLR", "gamma:num", "times gamma in each epoch", {
  rate = function(self, base, t) return base * self.gamma ^ t end})

schedule("ConstantLR", "factor:num=0.33333333333333331, total_iters:int=5",
         "factor times the first rate in the first total_iters epochs", {
  rate = function(self, base, t)
    return t < self.total_iters and base * self.factor or base
  end})

schedule("LinearLR", "start_factor:num=0.33333333333333331, end_factor:num=1, "
         .. "total_iters:int=5",
         "from start_factor to end_factor times the first rate", {
  init = function(self, name)
    check_positive(name, "total_iters", self.total_iters)
  end,
  rate = function(self, base, t)
    local part = math.min(t, self.total_iters) / self.total_iters
    return base * (self.start_factor +
                   (self.end_factor - self.start_factor) * part)
  end})

schedule("PolynomialLR", "total_iters:int=5, power:num=1",
         "the first rate times (1 - t/total_iters)^power, then 0", {
  init = function(self, name)
    check_positive(name, "total_iters", self.total_iters)
  end,
  rate = function(self, base, t)
    return base * (1 - math.min(t, self.total_iters) / self.total_iters)
                  ^ self.power
  end})

-- ---- cosines (Loshchilov and Hutter 2017)

schedule("CosineAnnealingLR", "T_max:int, eta_min:num=0",
         "half a cosine from the first rate to eta_min in T_max epochs, and "
         .. "back", {
  init = function(self, name) check_positive(name, "T_max", self.T_max) end,
  rate = function(self, base, t)
    return self.eta_min + (base - self.eta_min) *
           (1 + math.cos(math.pi * t / self.T_max)) / 2
  end})

schedule("CosineAnnealingWarmRestarts", "T_0:int, T_mult:int=1, eta_min:num=0",
         "half a cosine in T_0 epochs, then from the first rate again in "
         .. "T_mult times as many", {
  init = function(self, name)
    check_positive(name, "T_0", self.T_0)
    check_positive(name, "T_mult", self.T_mult)
  end,
  rate = function(self, base, t)
    local length = self.T_0
    if self.T_mult == 1 then t = t % length
    else
      while t >= length do t, length = t - length, length * self.T_mult end
    end
    return self.eta_min + (base - self.eta_min) *
           (1 + math.cos(math.pi * t / length)) / 2
  end})

-- ---- one cycle (Smith and Topin 2019)

local function cosine_between(from, to, part)
  return to + (from - to) / 2 * (1 + math.cos(math.pi * part))
end

local function line_between(from, to, part) return from + (to - from) * part end

-- The phases {last step, from, to} of the rate, and of the momentum.
local function cycle_phases(self, top)
  local first = top / self.div_factor
  local low = first / self.final_div_factor
  local up = self.pct_start * self.total_steps - 1
  local last = self.total_steps - 1
  local high, slow = self.max_momentum, self.base_momentum
  if self.three_phase then
    return {{up, first, top, high, slow}, {2 * up, top, first, slow, high},
            {last, first, low, high, high}}
  end
  return {{up, first, top, high, slow}, {last, top, low, slow, high}}
end

-- The rate and the momentum of step t.
local function cycle_at(self, top, t)
  local between = self.anneal_strategy == "cos" and cosine_between
                  or line_between
  local from = 0
  local phases = cycle_phases(self, top)
  for i, p in ipairs(phases) do
    if t <= p[1] or i == #phases then
      local part = (t - from) / (p[1] - from)
      return between(p[2], p[3], part), between(p[4], p[5], part)
    end
    from = p[1]
  end
end

-- Sets the momentum of a group, the first of betas in Adam's kin.
local function set_momentum(group, m)
  if group.betas then group.betas = {m, group.betas[2]}
  else group.momentum = m end
end

schedule("OneCycleLR",
  "max_lr:any, total_steps:int=nil, epochs:int=nil, steps_per_epoch:int=nil, "
  .. "pct_start:num=0.3, anneal_strategy:cos|linear=cos, "
  .. "cycle_momentum:bool=true, base_momentum:num=0.85, max_momentum:num=0.95, "
  .. "div_factor:num=25, final_div_factor:num=1e4, three_phase:bool=false",
  "up to max_lr, then down to far below; step after every batch", {
  init = function(self, name)
    if self.total_steps == nil then
      if not self.epochs or not self.steps_per_epoch then
        fail(name, "total_steps is missing, or epochs and steps_per_epoch")
      end
      self.total_steps = self.epochs * self.steps_per_epoch
    end
    check_positive(name, "total_steps", self.total_steps)
    local group = self.optimizer.param_groups[1]
    if self.cycle_momentum and not group.betas and not group.momentum then
      fail(name, "the optimizer has no momentum: give cycle_momentum=false")
    end
  end,
  rate = function(self, _, t, i)
    if t > self.total_steps then
      fail("OneCycleLR", ("step %d of %d"):format(t, self.total_steps))
    end
    local top = type(self.max_lr) == "table" and self.max_lr[i] or self.max_lr
    local rate, momentum = cycle_at(self, top, t)
    if self.cycle_momentum then
      set_momentum(self.optimizer.param_groups[i], momentum)
    end
    return rate
  end})

-- ---- schedules of schedules, and of a measure

schedule("SequentialLR", "schedulers:table, milestones:ints",
         "one schedule after the other, from the epochs in milestones", {
  init = function(self, name)
    if #self.milestones ~= #self.schedulers - 1 then
      fail(name, ("%d schedules need %d milestones, got %d")
                 :format(#self.schedulers, #self.schedulers - 1,
                         #self.milestones))
    end
    self.last_epoch = 0
    for i, s in ipairs(self.schedulers) do
      if s.optimizer ~= self.optimizer then
        fail(name, ("schedule %d is of another optimizer"):format(i))
      end
    end
    set_rates(self.schedulers[1], 0, true)
  end,
  step = function(self)
    self.last_epoch = self.last_epoch + 1
    local at = 1
    for i, m in ipairs(self.milestones) do
      if self.last_epoch >= m then at = i + 1 end
    end
    local s = self.schedulers[at]
    if self.milestones[at - 1] == self.last_epoch then set_rates(s, 0, true)
    else s:step() end
  end})

-- Is `value' better than the best so far?
local function is_better(self, value)
  local rel, t = self.threshold_mode == "rel", self.threshold
  if self.best == nil then return true end
  if self.mode == "min" then
    return value < (rel and self.best * (1 - t) or self.best - t)
  end
  return value > (rel and self.best * (1 + t) or self.best + t)
end

schedule("ReduceLROnPlateau",
  "mode:min|max=min, factor:num=0.1, patience:int=10, threshold:num=1e-4, "
  .. "threshold_mode:rel|abs=rel, cooldown:int=0, min_lr:num=0, eps:num=1e-8",
  "times factor when a measure has not improved for more than patience epochs; "
  .. "step(measure)", {
  init = function(self, name)
    if self.factor >= 1 then fail(name, "factor must be below 1") end
    self.last_epoch, self.bad, self.cooling = 0, 0, 0
  end,
  step = function(self, measure)
    if nacre.is_tensor(measure) then measure = measure:item() end
    if type(measure) ~= "number" then
      fail("ReduceLROnPlateau", "step takes the measure: schedule:step(loss)")
    end
    self.last_epoch = self.last_epoch + 1
    if is_better(self, measure) then self.best, self.bad = measure, 0
    else self.bad = self.bad + 1 end
    if self.cooling > 0 then self.cooling, self.bad = self.cooling - 1, 0 end
    if self.bad <= self.patience then return end
    self.cooling, self.bad = self.cooldown, 0
    for _, group in ipairs(self.optimizer.param_groups) do
      local new = math.max(group.lr * self.factor, self.min_lr)
      if group.lr - new > self.eps then group.lr = new end
    end
  end})
