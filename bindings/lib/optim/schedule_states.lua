-- SPDX-License-Identifier: MIT
-- schedule_states.lua - state_dict and load_state_dict of schedules. A state of
-- PyTorch goes on as it would there; one that cannot is refused before anything
-- of it is taken.
local all = ...
all.require "nacre.python_forms"
local fail, NONE, as_kind = all.fail, all.python_none, all.as_python_kind

local OP = "load_state_dict"

local function copy(t)
  local out = {}
  for key, v in pairs(t) do out[key] = v end
  return out
end

-- A list of v for n groups, or the list that v is.
local function for_groups(v, n)
  local list = as_kind("list", {})
  for i = 1, n do list[i] = type(v) == "table" and v[i] or v end
  return list
end

-- The steps since the last restart and until the next one, in step t of
-- CosineAnnealingWarmRestarts.
local function restart_at(s, t)
  local length = s.T_0
  if s.T_mult == 1 then return t % length, length end
  while t >= length do t, length = t - length, length * s.T_mult end
  return t, length
end
all.restart_at = restart_at

-- ---- as PyTorch writes them in a file: what is called otherwise there. f is a
-- copy of the state, n the number of groups, betas whether they have those.

local function lambdas(f, n) f.lr_lambdas = for_groups(NONE, n) end

local TO = {
  LambdaLR = lambdas, MultiplicativeLR = lambdas,
  MultiStepLR = function(f)
    local count = {}
    for _, m in ipairs(f.milestones) do count[m] = (count[m] or 0) + 1 end
    f.milestones = as_kind("Counter", count)
  end,
  CosineAnnealingWarmRestarts = function(f)
    f.T_cur, f.T_i = restart_at(f, math.max(f.last_epoch, 0) + (f.shift or 0))
    f.shift = nil
  end,
  CyclicLR = function(f, n, betas)
    local up = f.step_size_up
    f.total_size = up + (f.step_size_down or up)
    f.step_ratio = up / f.total_size
    f.base_lrs, f.max_lrs = for_groups(f.base_lr, n), for_groups(f.max_lr, n)
    f._scale_fn_custom, f.use_beta1 = NONE, betas
    f.base_momentums = for_groups(f.base_momentum, n)
    f.max_momentums = for_groups(f.max_momentum, n)
  end,
  OneCycleLR = function(f, _, betas)
    local function phase(last, from, to, slow, fast)
      return {end_step = last, start_lr = from, end_lr = to,
              start_momentum = slow, end_momentum = fast}
    end
    local up, last = f.pct_start * f.total_steps - 1, f.total_steps - 1
    local high, low = "max_momentum", "base_momentum"
    local first = phase(up, "initial_lr", "max_lr", high, low)
    f._schedule_phases = f.three_phase and
      {first, phase(2 * up, "max_lr", "initial_lr", low, high),
       phase(last, "initial_lr", "min_lr", high, high)} or
      {first, phase(last, "max_lr", "min_lr", low, high)}
    f._anneal_func_type, f.use_beta1 = f.anneal_strategy, betas
  end,
  ReduceLROnPlateau = function(f, n)
    f.mode_worse = f.mode == "min" and math.huge or -math.huge
    f.best, f.min_lrs = f.best or f.mode_worse, for_groups(f.min_lr, n)
    f.default_min_lr = type(f.min_lr) == "number" and f.min_lr or NONE
  end,
  SWALR = function(f) f._anneal_strategy = f.anneal_strategy end,
  SequentialLR = function(f) f._milestones = as_kind("list", f.milestones) end,
}

-- The form of a state of a schedule of this class.
local function python_form(name, state, rates, betas)
  local f = copy(state)
  f._last_lr = as_kind("list", rates)
  f._step_count = math.max(f.last_epoch + 1, 1)
  if TO[name] then TO[name](f, #rates, betas) end
  f._schedulers = f.schedulers and as_kind("list", f.schedulers)
  f.own_lrs, f.schedulers = nil, nil
  return f
end

-- Is v, or an element of the list v, a function? These are not in a state.
local function has_functions(v)
  return type(v) == "function" or type(v) == "table" and
         type(v[1]) == "function"
end

-- The fields that are numbers, strings, booleans or lists of these.
function all.schedule_state(self)
  local out = {}
  for key, v in pairs(self) do
    if key ~= "optimizer" and key ~= "schedulers" and not has_functions(v) then
      out[key] = type(v) == "table" and table.move(v, 1, #v, 1, {}) or v
    end
  end
  if self.schedulers then
    out.schedulers = {}
    for i, s in ipairs(self.schedulers) do
      out.schedulers[i] = s:state_dict()
    end
  end
  local rates, group = self:get_last_lr(), self.optimizer.param_groups[1]
  local betas = group.betas ~= nil
  all.python_forms[out] = function()
    return python_form(self.name, out, rates, betas)
  end
  return out
end

-- ---- from PyTorch: gives f, a copy of the state, the fields of Nacre

-- A function is not in a file; the fields of an object that is called are, and
-- a function of Lua has none.
local function check_functions(f, key)
  local saved = f[key]
  if type(saved) ~= "table" then return end
  for _, v in pairs(saved) do
    if key == "_scale_fn_custom" or type(v) == "table" and next(v) ~= nil then
      fail(OP, ("%s is an object of Python with fields, which a function "
                .. "does not have"):format(key),
           ("state.%s = nil, if the function does the same"):format(key))
    end
  end
end

local function has_lambdas(f) check_functions(f, "lr_lambdas") end

local function rounded(x)
  local n = math.floor(x + 0.5)
  return math.abs(x - n) < 1e-6 and n or x
end

-- How a state goes from one rate to the other; PyTorch 1 keeps the function,
-- which is a table of {unknown = "table"} that has its name.
local function strategy_of(f)
  local kept = f._anneal_func_type or f._anneal_strategy
  local name = type(f.anneal_func) == "table" and f.anneal_func[2]
  return kept or type(name) == "string" and
         (name:find "linear" and "linear" or "cos") or nil
end

local FROM = {
  LambdaLR = has_lambdas, MultiplicativeLR = has_lambdas,
  MultiStepLR = function(f)
    local list = {}
    for epoch, n in pairs(f.milestones or {}) do
      for _ = 1, n do list[#list + 1] = epoch end
    end
    table.sort(list)
    f.milestones = f.milestones and list
  end,
  CosineAnnealingWarmRestarts = function(f)
    -- epochs that PyTorch was given in parts
    local t, length = f.T_cur, f.T_0
    if f.last_epoch < 0 or not (t and length and f.T_i and f.T_mult) then
      return
    end
    while f.T_mult > 1 and length < f.T_i do
      t, length = t + length, length * f.T_mult
    end
    local was, whole = restart_at(f, f.last_epoch)
    if was ~= f.T_cur or whole ~= f.T_i then f.shift = t - f.last_epoch end
  end,
  CyclicLR = function(f)
    check_functions(f, "_scale_fn_custom")
    if f.step_size_up or not f.total_size then return end
    f.step_size_up = rounded(f.total_size * f.step_ratio)
    f.step_size_down = rounded(f.total_size - f.step_size_up)
    f.base_lr, f.max_lr = f.base_lrs, f.max_lrs
    f.base_momentum, f.max_momentum = f.base_momentums, f.max_momentums
  end,
  OneCycleLR = function(f, self)
    if f.pct_start or not f._schedule_phases then return end
    local phases = f._schedule_phases
    f.three_phase = #phases == 3
    f.pct_start = (phases[1].end_step + 1) / f.total_steps
    f.anneal_strategy = strategy_of(f)
    f.rates_in_groups = true          -- whose state may come later
    for _, key in ipairs {"max_lr", "div_factor", "final_div_factor",
                          "base_momentum", "max_momentum"} do
      f[key] = self[key]
    end
  end,
  ReduceLROnPlateau = function(f)
    f.min_lr = f.min_lr or f.default_min_lr or f.min_lrs
  end,
  SWALR = function(f, self)
    f.anneal_strategy = f.anneal_strategy or strategy_of(f)
    f.swa_lr = f.swa_lr or self.swa_lr
  end,
  SequentialLR = function(f)
    f.milestones, f.schedulers = f._milestones, f._schedulers
  end,
  ChainedScheduler = function(f)
    f.schedulers = f._schedulers
    local first = (f.schedulers or {})[1]
    f.last_epoch = f.last_epoch or type(first) == "table" and
                   first.last_epoch or 0
  end,
}

-- ---- taking a state

local FIELDS = {base_lrs = true, own_lrs = true, best = true, shift = true,
                num_bad_epochs = true, cooldown_counter = true,
                rates_in_groups = true, schedulers = true, last_epoch = true}

-- What may be missing, because it is nil if it is not given.
local OPTIONAL = {epochs = true, steps_per_epoch = true, step_size_down = true,
                  optimizer = true}

-- What PyTorch keeps of each schedule and Nacre does not.
local PYTHON_ONLY = {_last_lr = true, _step_count = true, verbose = true,
                     _get_lr_called_within_step = true, _is_initial = true}

local function fail_other(self, what)
  fail(OP, ("the state %s: it belongs to another schedule than %s"):format(
             what, self.name))
end

-- Fails unless f has the arguments of this schedule, and no others.
local function check_arguments(self, f)
  for _, name in ipairs(all.names_of(self._known)) do
    local own = self[name]
    if own ~= nil and f[name] == nil and not OPTIONAL[name] and
       not has_functions(own) then
      fail_other(self, "has no " .. name)
    elseif type(own) == "number" and f[name] ~= nil and
           type(f[name]) ~= "number" and type(f[name]) ~= "table" then
      fail_other(self, ("has a %s as %s"):format(type(f[name]), name))
    end
  end
  for _, key in ipairs(all.sorted_keys(f)) do
    if all.schedule_options[key] and not self._known[key] and
       not FIELDS[key] then
      fail_other(self, "has " .. key)
    end
  end
end

local function check_rates(self, f)
  local n = #self.optimizer.param_groups
  if type(f.last_epoch) ~= "number" then fail_other(self, "has no last_epoch")
  elseif self._known and f.base_lrs and #f.base_lrs > n then
    fail(OP, ("the state has %d groups, but the optimizer has %d")
             :format(#f.base_lrs, n))
  end
end

-- Notes what this schedule alone would have set. A rate that differs from it
-- by rounding is that rate: PyTorch computes each from the one before.
local function set_own_lrs(self, last)
  self.own_lrs = {}
  for i, base in ipairs(self.base_lrs) do
    local own, rate_of = base, self._rate or self.rate
    if rate_of and not self.overwrites and self.last_epoch >= 0 then
      own = rate_of(self, base, self.last_epoch, i)
    end
    local rate = last and last[i]
    if rate and math.abs(rate - own) <= 1e-9 * math.abs(base) then
      own = rate
    end
    self.own_lrs[i] = own
  end
end

-- Fields for a schedule of the user: all of the state.
local function fields_of_any(f)
  for key in pairs(PYTHON_ONLY) do f[key] = nil end
  return f
end

-- Fields for a schedule of Nacre.
local function fields_of_known(self, f, python)
  if python and FROM[self.name] then FROM[self.name](f, self) end
  check_arguments(self, f)
  local out = {}
  for key, v in pairs(f) do
    if FIELDS[key] or self._known[key] and key ~= "optimizer" then
      out[key] = v
    end
  end
  for key in pairs(OPTIONAL) do
    if self._known[key] and key ~= "optimizer" and out[key] == nil then
      out[key] = NONE
    end
  end
  return out
end

local plan

-- Functions that take the states in the list.
local function plan_members(self, saved)
  local list = {}
  if type(saved) ~= "table" or #saved ~= #self.schedulers then
    fail(OP, ("the state has %d schedules, expected %d"):format(
               type(saved) == "table" and #saved or 0, #self.schedulers))
  end
  for i, s in ipairs(self.schedulers) do
    list[i] = s.load_state_dict == all.Scheduler.load_state_dict and
              plan(s, saved[i]) or
              function() s:load_state_dict(saved[i]) end
  end
  return list
end

-- Checks a state; returns a function that takes it.
function plan(self, saved)
  if type(saved) ~= "table" then
    fail(OP, "a table of state_dict is expected, not a " .. type(saved))
  end
  local python, f = saved.own_lrs == nil, {}
  for key, v in pairs(saved) do f[key] = all.numbers_of(v) end
  local last = f._last_lr
  f = self._known and fields_of_known(self, f, python) or fields_of_any(f)
  check_rates(self, f)
  local members = self.schedulers and plan_members(self, f.schedulers) or {}
  f.schedulers = nil
  return function()
    for _, take in ipairs(members) do take() end
    for key, v in pairs(f) do
      if v == NONE then v = nil end
      self[key] = v
    end
    if not f.shift then self.shift = nil end
    if python then set_own_lrs(self, last) end
  end
end

function all.load_schedule_state(self, saved) plan(self, saved)() end
