-- SPDX-License-Identifier: MIT
-- cyclic_schedules.lua - nacre.optim.lr_scheduler: rates that go up and down
-- again, with the momentum the other way; step after every batch.
local all = ...
all.require "nacre.schedules"
local fail, schedule, check_positive = all.fail, all.schedule,
                                       all.check_positive

-- Sets the momentum of a group: of Adam and its variants the first of betas.
local function set_momentum(group, m)
  if group.betas then group.betas = {m, group.betas[2]}
  else group.momentum = m end
end

local function check_momentum(self, name)
  local group = self.optimizer.param_groups[1]
  if self.cycle_momentum and not group.betas and not group.momentum then
    fail(name, "the optimizer has no momentum: give cycle_momentum=false")
  end
end

-- The element for group i of v, a number for all groups or a list.
local function of_group(v, i) return type(v) == "table" and v[i] or v end
all.of_group = of_group

-- ---- one cycle (Smith and Topin 2019)

local function cosine_between(from, to, part)
  return to + (from - to) / 2 * (1 + math.cos(math.pi * part))
end

local function line_between(from, to, part) return from + (to - from) * part end

-- The first and the last rate of group i.
local function cycle_ends(self, i)
  local first = of_group(self.max_lr, i) / of_group(self.div_factor, i)
  return first, first / of_group(self.final_div_factor, i)
end

-- The phases {last step, from, to} of the rate, and of the momentum.
local function cycle_phases(self, i)
  local first, low = cycle_ends(self, i)
  local top = of_group(self.max_lr, i)
  local up = self.pct_start * self.total_steps - 1
  local last = self.total_steps - 1
  local high, slow = of_group(self.max_momentum, i),
                     of_group(self.base_momentum, i)
  if self.three_phase then
    return {{up, first, top, high, slow}, {2 * up, top, first, slow, high},
            {last, first, low, high, high}}
  end
  return {{up, first, top, high, slow}, {last, top, low, slow, high}}
end

-- The rate and the momentum of group i in step t.
local function cycle_at(self, i, t)
  local between = self.anneal_strategy == "cos" and cosine_between
                  or line_between
  local from = 0
  local phases = cycle_phases(self, i)
  for i, p in ipairs(phases) do
    if t <= p[1] or i == #phases then
      local part = (t - from) / (p[1] - from)
      return between(p[2], p[3], part), between(p[4], p[5], part)
    end
    from = p[1]
  end
end

-- Notes the rates and momenta in the groups, where PyTorch has them.
local function set_in_groups(self)
  for i, group in ipairs(self.optimizer.param_groups) do
    group.initial_lr, group.min_lr = cycle_ends(self, i)
    group.max_lr = of_group(self.max_lr, i)
    if self.cycle_momentum then
      group.max_momentum = of_group(self.max_momentum, i)
      group.base_momentum = of_group(self.base_momentum, i)
    end
  end
end

-- Takes them from the groups, of which PyTorch's state was loaded.
local function take_from_groups(self)
  local lists = {max_lr = {}, div_factor = {}, final_div_factor = {},
                 max_momentum = {}, base_momentum = {}}
  for i, group in ipairs(self.optimizer.param_groups) do
    local first, top, low = group.initial_lr, group.max_lr, group.min_lr
    if not (first and top and low) then
      fail("OneCycleLR", ("group %d has no initial_lr, max_lr and min_lr")
                         :format(i), "opt:load_state_dict(saved), too")
    end
    lists.max_lr[i], lists.div_factor[i] = top, top / first
    lists.final_div_factor[i] = first / low
    lists.max_momentum[i] = group.max_momentum
    lists.base_momentum[i] = group.base_momentum
  end
  for key, list in pairs(lists) do
    if #list > 0 then self[key] = list end
  end
  self.rates_in_groups = nil
end

schedule("OneCycleLR",
  "max_lr:nums, total_steps:int=nil, epochs:int=nil, steps_per_epoch:int=nil, "
  .. "pct_start:num=0.3, anneal_strategy:cos|linear=cos, "
  .. "cycle_momentum:bool=true, base_momentum:nums=0.85, "
  .. "max_momentum:nums=0.95, "
  .. "div_factor:num=25, final_div_factor:num=1e4, three_phase:bool=false",
  "up to max_lr, then far down; step after every batch", {
  overwrites = true,
  _prepare = function(self, name)
    if self.total_steps == nil then
      if not self.epochs or not self.steps_per_epoch then
        fail(name, "total_steps is missing, or epochs and steps_per_epoch")
      end
      self.total_steps = self.epochs * self.steps_per_epoch
    end
    check_positive(name, "total_steps", self.total_steps)
    check_momentum(self, name)
    if self.last_epoch < 0 then set_in_groups(self) end
  end,
  _rate = function(self, _, t, i)
    if self.rates_in_groups then take_from_groups(self) end
    if t > self.total_steps then
      fail("OneCycleLR", ("step %d is past the %d total steps")
        :format(t, self.total_steps))
    end
    local rate, momentum = cycle_at(self, i, t)
    if self.cycle_momentum then
      set_momentum(self.optimizer.param_groups[i], momentum)
    end
    return rate
  end})

-- ---- triangles (Smith 2017)

-- How far the rate is from base_lr to max_lr in step t: 0 to 1.
local function height(self, t)
  local up = self.step_size_up
  local total = up + (self.step_size_down or up)
  local cycle = t // total + 1
  local x, ratio = t / total + 1 - cycle, up / total
  local h = x <= ratio and x / ratio or (x - 1) / (ratio - 1)
  if self.scale_fn then
    return h * self.scale_fn(self.scale_mode == "cycle" and cycle or t)
  elseif self.mode == "triangular2" then return h / 2 ^ (cycle - 1)
  elseif self.mode == "exp_range" then return h * self.gamma ^ t
  end
  return h
end

schedule("CyclicLR",
  "base_lr:nums, max_lr:nums, step_size_up:int=2000, step_size_down:int=nil, "
  .. "mode:triangular|triangular2|exp_range=triangular, gamma:num=1, "
  .. "scale_fn:fn=nil, scale_mode:cycle|iterations=cycle, "
  .. "cycle_momentum:bool=true, base_momentum:nums=0.8, max_momentum:nums=0.9",
  "in triangles from base_lr to max_lr and back", {
  _prepare = function(self, name)
    check_positive(name, "step_size_up", self.step_size_up)
    if self.step_size_down then
      check_positive(name, "step_size_down", self.step_size_down)
    end
    check_momentum(self, name)
  end,
  get_lr = function(self)
    local h, rates = height(self, self.last_epoch), {}
    for i, group in ipairs(self.optimizer.param_groups) do
      local low, high = of_group(self.base_lr, i), of_group(self.max_lr, i)
      rates[i] = low + (high - low) * h
      if self.cycle_momentum then
        local slow, fast = of_group(self.max_momentum, i),
                           of_group(self.base_momentum, i)
        set_momentum(group, slow - (slow - fast) * h)
      end
    end
    return rates
  end})
