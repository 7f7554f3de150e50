-- SPDX-License-Identifier: MIT
-- schedules.lua - nacre.optim.lr_scheduler: learning rates as functions of the
-- number t of the epoch, which counts from 0. Names, arguments and rates are
-- those of PyTorch.
--
--   schedule = nacre.optim.lr_scheduler.StepLR(opt, 30)
--   for epoch = 1, 100 do ...; schedule:step() end
--
-- A schedule has _rate(base, t, i), of the user rate, the rate of group i in
-- epoch t, or get_lr(), a list of the rates of all groups in epoch
-- self.last_epoch. With `overwrites' it sets its rates whatever the rates were,
-- as PyTorch's LambdaLR does.
local all = ...
all.require("nacre.base_class", "nacre.guards")
local fail = all.fail

local Scheduler = {name = "LRScheduler"}
all.Scheduler = Scheduler
all.base_class(Scheduler, "optim.lr_scheduler.LRScheduler",
               "a class of schedules; it has init, which calls "
               .. "LRScheduler.init(self, optimizer), and get_lr")

-- Is this a schedule? Fails for one whose init left it empty.
local function is_schedule(self)
  if not all.is_instance(self, Scheduler) then return false end
  if rawget(self, "optimizer") == nil then
    fail(self.name, "init did not call LRScheduler.init(self, optimizer)")
  end
  return rawget(self, "optimizer") ~= nil
end
Scheduler._is, Scheduler._object = is_schedule, "schedule"
Scheduler._takes = {load_state_dict = "state_dict:table"}

local function rate_of(self) return self._rate or self.rate end

-- Sets the rates that get_lr gives.
local function set_given_rates(self)
  local rates = self:get_lr()
  for i, group in ipairs(self.optimizer.param_groups) do
    if type(rates) ~= "table" or type(rates[i]) ~= "number" then
      fail(self.name, "get_lr must return a list of numbers, one for each "
        .. "group")
    end
    group.lr = rates[i]
  end
end

-- Groups that came later than the schedule begin in its present epoch. A
-- schedule of Nacre that sets the rates of all groups has none for them.
local function add_groups(self)
  local groups = self.optimizer.param_groups
  if self.get_lr and not self._known then return end
  for i = #self.base_lrs + 1, #groups do
    if self.overwrites or self.get_lr then
      fail(self.name, ("the optimizer has %d groups, of which this schedule "
                       .. "knows %d"):format(#groups, #self.base_lrs),
           "a new schedule after add_param_group")
    end
    local base, t = groups[i].lr, self.last_epoch
    self.base_lrs[i] = base
    self.own_lrs[i] = t < 0 and base or rate_of(self)(self, base, t, i)
  end
end

-- The rate that a group of another schedule has after this one, whose own rate
-- is always its lowest: it changes like that of a group that begins 1 above.
local function follow(self, i, before, lr, low)
  if before < 0 or self._is_initial then return lr end
  local rate = rate_of(self)
  local old = rate(self, low + 1, before, i) - low
  if old == 0 then return lr end
  local new = rate(self, low + 1, self.last_epoch, i) - low
  return low + (lr - low) * new / old
end

-- Sets the rates of epoch t. Those that are not what this schedule alone would
-- have set, because another schedule or the user changed them, change by the
-- same factor (of a cosine, what is above its minimum), unless `overwrites' is
-- true.
local function set_rates(self, t, overwrites)
  add_groups(self)
  local before = self.last_epoch
  self.last_epoch = t
  if self.get_lr then return set_given_rates(self) end
  local low = self.eta_min or 0
  for i, group in ipairs(self.optimizer.param_groups) do
    local rate, old = rate_of(self), self.own_lrs[i]
    local new = rate(self, self.base_lrs[i], t, i)
    if overwrites or self.overwrites or group.lr == old then group.lr = new
    elseif old == low and self.base_lrs[i] == low then
      group.lr = follow(self, i, before, group.lr, low)
    elseif old == low then group.lr = group.lr + new - low
    else group.lr = low + (group.lr - low) * (new - low) / (old - low) end
    self.own_lrs[i] = new
  end
end

function Scheduler:step()
  set_rates(self, self.last_epoch + 1)
end

-- Begins anew with epoch 0.
function Scheduler:_restart() set_rates(self, 0, true) end

function Scheduler:get_last_lr()
  local list = {}
  for i, group in ipairs(self.optimizer.param_groups) do list[i] = group.lr end
  return list
end

function Scheduler:state_dict() return all.schedule_state(self) end

function Scheduler:load_state_dict(saved)
  all.load_schedule_state(self, saved)
end

function all.check_optimizer(op, optimizer)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" or
     type(optimizer.param_groups[1]) ~= "table" then
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

-- Calls f(self, ...) as the first step of a schedule.
local function begin(self, f, ...)
  self._is_initial = true
  f(self, ...)
  self._is_initial = nil
end

-- Fails unless the groups know their first rates.
local function check_resumed(op, optimizer)
  for i, group in ipairs(optimizer.param_groups) do
    if not group.initial_lr then
      fail(op, ("last_epoch resumes a schedule, but group %d has no initial_lr")
               :format(i), "opt:load_state_dict(saved) first, or initial_lr in "
                           .. "the group")
    end
  end
end

-- Attaches a schedule to an optimizer, after last_epoch epochs if that is
-- given.
local function attach(self, optimizer, last_epoch)
  all.check_optimizer(self.name, optimizer)
  self.optimizer, self.last_epoch = optimizer, last_epoch or -1
  if self.last_epoch >= 0 then check_resumed(self.name, optimizer) end
  self.base_lrs = base_rates(optimizer)
  self.own_lrs = table.move(self.base_lrs, 1, #self.base_lrs, 1, {})
end

-- Notes the rates of epoch last_epoch as those that the schedule has set.
local function set_own_rates(self)
  for i, base in ipairs(self.base_lrs) do
    self.own_lrs[i] = rate_of(self)(self, base, self.last_epoch, i)
  end
end

-- The first step of a schedule. One that is resumed changes the rates of the
-- optimizer, or with keeps_rate leaves them for this epoch, as in PyTorch.
local function begin_steps(self)
  local resumed = self.last_epoch >= 0 and rate_of(self)
  if resumed and self.keeps_rate then
    self.last_epoch = self.last_epoch + 1
    return set_own_rates(self)
  elseif resumed then set_own_rates(self)
  end
  begin(self, self.step)
end

-- For the classes of the user.
function Scheduler:init(optimizer, last_epoch)
  all.check_instance(Scheduler, self)
  if last_epoch ~= nil and not math.tointeger(last_epoch) then
    fail(self.name, "last_epoch must be an integer")
  end
  attach(self, optimizer, last_epoch)
  if not self.get_lr and not rate_of(self) then
    fail(self.name, "the class has no get_lr",
         ("function %s:get_lr() return self.base_lrs end"):format(self.name))
  end
  begin_steps(self)
end

function Scheduler:__tostring()
  if not self.optimizer then return self.name end
  return ("%s, epoch %d, lr %s"):format(self.name, self.last_epoch,
                                        table.concat(self:get_last_lr(), " "))
end

-- The arguments of all schedules.
all.schedule_options = {}

-- The schedule at this path, of the arguments that the signature names, which
-- become fields. prepare(name) checks them.
local function schedule_of(path, signature, doc, methods)
  if methods._rate or methods.get_lr then
    signature = signature .. ", last_epoch:int=-1"
  end
  local s = all.parse(path, signature .. " -> schedule")
  local space, name = path:match "^(.*)%.(.-)$"
  local class = all.derive(Scheduler, name, methods)
  class._known = all.positions(s)
  for key in pairs(class._known) do all.schedule_options[key] = true end
  local function construct(...)
    local v = all.read(name, s, ...)
    local self = setmetatable({}, class)
    for i, p in ipairs(s.params) do self[p.name] = v[i] end
    attach(self, self.optimizer or self:_find_optimizer(), self.last_epoch)
    if self._prepare then self:_prepare(name) end
    if self._rate or self.get_lr then begin_steps(self) end
    return self
  end
  all.space(space)[name] = construct
  all.describe(path, construct, doc, s)
end

-- The same, with the optimizer as the first argument; a name alone is one of
-- lr_scheduler.
local function schedule(path, signature, doc, methods)
  if not path:find(".", 1, true) then path = "optim.lr_scheduler." .. path end
  if signature ~= "" then signature = ", " .. signature end
  schedule_of(path, "optimizer:table" .. signature, doc, methods)
end
all.schedule = schedule

local function check_positive(op, key, v)
  if math.type(v) ~= "integer" or v < 1 then
    fail(op, ("%s is %s, but must be a positive integer")
             :format(key, tostring(v)))
  end
end

all.check_positive = check_positive

-- ---- factors of the first rate

-- The function for group i: lr_lambda, or the element of a list.
local function factor_of(self, i)
  local f = self.lr_lambda
  return type(f) == "table" and getmetatable(f) == nil and f[i] or f
end

schedule("LambdaLR", "lr_lambda:functions",
         "the first rate times lr_lambda(t), or a function for each group", {
  overwrites = true,
  _rate = function(self, base, t, i) return base * factor_of(self, i)(t) end})

schedule("MultiplicativeLR", "lr_lambda:functions",
         "times lr_lambda(t) in each epoch, or a function for each group", {
  get_lr = function(self)
    local rates = self:get_last_lr()
    for i, lr in ipairs(rates) do
      if not self._is_initial then
        rates[i] = lr * factor_of(self, i)(self.last_epoch)
      end
    end
    return rates
  end})

schedule("StepLR", "step_size:int, gamma:num=0.1",
         "times gamma after every step_size epochs", {
  _prepare = function(self, name)
    check_positive(name, "step_size", self.step_size)
  end,
  _rate = function(self, base, t)
    return base * self.gamma ^ (t // self.step_size)
  end})

schedule("MultiStepLR", "milestones:ints, gamma:num=0.1",
         "times gamma at each of the epochs in milestones", {
  _rate = function(self, base, t)
    local n = 0
    for _, m in ipairs(self.milestones) do n = n + (t >= m and 1 or 0) end
    return base * self.gamma ^ n
  end})

schedule("ExponentialLR", "gamma:num", "times gamma in each epoch", {
  keeps_rate = true,
  _rate = function(self, base, t) return base * self.gamma ^ t end})

schedule("ConstantLR", "factor:num=0.33333333333333331, total_iters:int=5",
         "factor times the first rate in the first total_iters epochs", {
  _rate = function(self, base, t)
    return t < self.total_iters and base * self.factor or base
  end})

schedule("LinearLR", "start_factor:num=0.33333333333333331, end_factor:num=1, "
         .. "total_iters:int=5",
         "from start_factor to end_factor times the first rate", {
  keeps_rate = true,
  _prepare = function(self, name)
    check_positive(name, "total_iters", self.total_iters)
  end,
  _rate = function(self, base, t)
    local part = math.min(t, self.total_iters) / self.total_iters
    return base * (self.start_factor +
                   (self.end_factor - self.start_factor) * part)
  end})

schedule("PolynomialLR", "total_iters:int=5, power:num=1",
         "the first rate times (1 - t/total_iters)^power, then 0", {
  keeps_rate = true,
  _prepare = function(self, name)
    check_positive(name, "total_iters", self.total_iters)
  end,
  _rate = function(self, base, t)
    return base * (1 - math.min(t, self.total_iters) / self.total_iters)
                  ^ self.power
  end})

-- ---- cosines (Loshchilov and Hutter 2017)

schedule("CosineAnnealingLR", "T_max:int, eta_min:num=0",
         "half a cosine from the first rate to eta_min in T_max epochs, and "
         .. "back", {
  keeps_rate = true,
  _prepare = function(self, name) check_positive(name, "T_max", self.T_max) end,
  _rate = function(self, base, t)
    return self.eta_min + (base - self.eta_min) *
           (1 + math.cos(math.pi * t / self.T_max)) / 2
  end})

schedule("CosineAnnealingWarmRestarts", "T_0:int, T_mult:int=1, eta_min:num=0",
         "half a cosine in T_0 epochs, then from the first rate again in "
           .. "T_mult times as many epochs", {
  overwrites = true,
  _prepare = function(self, name)
    check_positive(name, "T_0", self.T_0)
    check_positive(name, "T_mult", self.T_mult)
  end,
  _restart = function(self)
    self.shift = nil
    set_rates(self, 0)
  end,
  -- shift: how many epochs PyTorch, given parts of them, is ahead
  _rate = function(self, base, t)
    local length
    t, length = all.restart_at(self, t + (self.shift or 0))
    return self.eta_min + (base - self.eta_min) *
           (1 + math.cos(math.pi * t / length)) / 2
  end})

-- ---- schedules of schedules, and of a measure

-- Fails unless all schedules are of the optimizer.
local function check_members(self, name)
  for i, s in ipairs(self.schedulers) do
    if not is_schedule(s) then
      fail(name, ("element %d of schedulers is not a schedule"):format(i))
    elseif s.optimizer ~= self.optimizer then
      fail(name, ("schedule %d belongs to another optimizer"):format(i))
    elseif s.name == "ReduceLROnPlateau" then
      fail(name, ("schedule %d needs a measure in each step"):format(i))
    end
  end
end

-- The rates before any schedule changed them.
local function set_base_rates(self)
  for i, group in ipairs(self.optimizer.param_groups) do
    group.lr = self.base_lrs[i] or group.lr
  end
end

-- Undoes the first step of a schedule and of those in it.
local function undo(self)
  self.last_epoch = -1
  for _, s in ipairs(self.schedulers or {}) do undo(s) end
end

schedule("SequentialLR", "schedulers:table, milestones:ints",
         "one schedule after the other, from the epochs in milestones", {
  _prepare = function(self, name)
    if #self.milestones ~= #self.schedulers - 1 then
      fail(name, ("%d schedules need %d milestones, got %d")
                 :format(#self.schedulers, #self.schedulers - 1,
                         #self.milestones))
    end
    check_members(self, name)
    self:_restart()
  end,
  _restart = function(self)
    undo(self)
    self.last_epoch = 0
    set_base_rates(self)
    begin(self.schedulers[1], self.schedulers[1]._restart)
  end,
  step = function(self)
    self.last_epoch = self.last_epoch + 1
    local at = 1
    for i, m in ipairs(self.milestones) do
      if self.last_epoch >= m then at = i + 1 end
    end
    local s = self.schedulers[at]
    if self.milestones[at - 1] == self.last_epoch then s:_restart()
    else s:step() end
  end})

schedule_of("optim.lr_scheduler.ChainedScheduler",
            "schedulers:table, optimizer:table=nil",
            "several schedules at the same time: each changes the rates "
            .. "that the one before it has set", {
  _find_optimizer = function(self)
    if #self.schedulers == 0 then
      fail("ChainedScheduler", "there are no schedules")
    end
    return is_schedule(self.schedulers[1]) and self.schedulers[1].optimizer
  end,
  _prepare = function(self, name)
    self.last_epoch = 0
    check_members(self, name)
  end,
  _restart = function(self)
    self.last_epoch = 0
    set_base_rates(self)
    for _, s in ipairs(self.schedulers) do
      if s.schedulers then s:_restart()
      else
        s.own_lrs = table.move(s.base_lrs, 1, #s.base_lrs, 1, {})
        begin(s, set_rates, 0)
      end
    end
  end,
  step = function(self)
    self.last_epoch = self.last_epoch + 1
    for _, s in ipairs(self.schedulers) do s:step() end
  end})

all.guard_methods(Scheduler, is_schedule, "schedule", Scheduler._takes)
