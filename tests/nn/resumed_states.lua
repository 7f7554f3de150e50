-- SPDX-License-Identifier: MIT
-- States of optimizers and schedules in the form that PyTorch writes: training
-- goes on as if it had not stopped, and what cannot go on is refused whole.
-- tests/torch/resumed_torch.py does it with PyTorch itself.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local optim, R = nacre.optim, nacre.optim.lr_scheduler

local function again(v)
  local ok, bytes = pcall(nacre.serialize, v, {format = "pt"})
  return ok and nacre.deserialize(bytes) or nil
end

-- ---- optimizers

local SCALARS = {step = true, mu_product = true, eta = true, mu = true,
                 H_diag = true, ro = true}

-- A copy of v, with numbers as tensors if they are to be.
local function copy(v, as_tensors)
  if type(v) == "table" then
    local list = {}
    for i, x in ipairs(v) do list[i] = copy(x, as_tensors) end
    return list
  elseif nacre.is_tensor(v) then return v:clone()
  end
  return as_tensors and nacre.tensor(v, {dtype = "float64"}) or v
end

-- A state of Nacre as PyTorch has it: parameters from 0, numbers as tensors
-- without dimensions, no step of SGD.
local function of_python(name, saved)
  local out = {state = {}, param_groups = {}}
  for i, s in pairs(saved.state) do
    local new = {}
    for key, v in pairs(s) do new[key] = copy(v, SCALARS[key]) end
    if name == "SGD" or name == "LBFGS" or name == "Muon" then
      new.step = nil
    end
    if next(new) then out.state[i - 1] = new end
  end
  for i, group in ipairs(saved.param_groups) do
    local new = {capturable = false, differentiable = false}
    for key, v in pairs(group) do new[key] = v end
    new.lr, new.params = nacre.tensor(group.lr, {dtype = "float64"}), {}
    for j, n in ipairs(group.params) do new.params[j] = n - 1 end
    out.param_groups[i] = new
  end
  return out
end

local function make(name, options)
  local a = nacre.tensor {{1.0, -2.0}, {3.0, 0.5}}:double():requires_grad_()
  local b = nacre.tensor(name == "Muon" and {{2.0}} or {2.0})
  b = b:double():requires_grad_()
  local groups = {{params = {a}}, {params = {b}, lr = 0.05}}
  if name == "LBFGS" then groups = {a, b} end
  return optim[name](groups, options), a, b
end

local function train(o, a, b, from, to)
  for t = from, to do
    o:step(function()
      o:zero_grad()
      local loss = (a * a):sum()
      if t > 1 then loss = loss + (b ^ 4):sum() end   -- b begins later
      loss:backward()
      return loss
    end)
  end
end

for _, case in ipairs {
  {"SGD", {}}, {"SGD", {momentum = 0.9}},
  {"SGD", {momentum = 0.9, dampening = 0.5}},
  {"SGD", {momentum = 0.9, nesterov = true, weight_decay = 0.1}},
  {"Adam", {amsgrad = true}}, {"Adam", {maximize = true}},
  {"Adam", {decoupled_weight_decay = true, weight_decay = 0.1}},
  {"AdamW", {betas = {0.5, 0.8}}}, {"Adamax", {}}, {"NAdam", {}},
  {"NAdam", {decoupled_weight_decay = true, weight_decay = 0.1}},
  {"RAdam", {betas = {0.5, 0.8}}}, {"RMSprop", {}},
  {"RMSprop", {centered = true, momentum = 0.5}},
  {"Adagrad", {lr_decay = 0.1, initial_accumulator_value = 0.5}},
  {"Adadelta", {}}, {"Rprop", {}}, {"ASGD", {t0 = 1}}, {"Adafactor", {}},
  {"Adafactor", {eps = {1e-20, 1e-2}}}, {"Muon", {}},
  {"Muon", {nesterov = false, adjust_lr_fn = "match_rms_adamw"}},
  {"LBFGS", {lr = 0.1, max_iter = 2, history_size = 2}},
  {"LBFGS", {line_search_fn = "strong_wolfe", max_iter = 2}},
} do
  local name, options = case[1], case[2]
  for _, n in ipairs {0, 1, 2, 4} do
    local o, a, b = make(name, options)
    train(o, a, b, 1, n)
    local states = {of_python(name, o:state_dict()), again(o)}
    local there = {a:detach():clone(), b:detach():clone()}
    train(o, a, b, n + 1, n + 3)
    for _, state in ipairs(states) do
      -- options come from the state
      local p, x, y = make(name, name == "LBFGS" and {line_search_fn =
        not options.line_search_fn and "strong_wolfe" or nil} or {lr = 7.0})
      nacre.no_grad(function()
        x:copy_(there[1])
        y:copy_(there[2])
      end)
      p:load_state_dict(state)
      train(p, x, y, n + 1, n + 3)
      assert(x == a and y == b, ("%s after %d steps"):format(name, n))
    end
  end
end

-- of half parameters: the step is not rounded to 2048
local half = nacre.ones(2):half():requires_grad_()
local opt = optim.Adam({half})
local zeros = nacre.zeros(2)
local function adam_state(step, more)
  local s = {step = step, exp_avg = zeros, exp_avg_sq = zeros}
  for key, v in pairs(more or {}) do s[key] = v end
  local group = optim.Adam({half}):state_dict().param_groups[1]
  group.params = {0}
  return {state = {[0] = s}, param_groups = {group}}
end
opt:load_state_dict(adam_state(nacre.tensor(2051.0)))
eq(opt.state[half].step, 2051)
eq(opt.state[half].exp_avg.dtype, "float32")

-- a class of the user
local Mine = optim.Optimizer "Mine"
function Mine:update(p, g, s, o, t)
  s.seen = t
  p:sub_(g * o.lr)
end
opt = Mine({nacre.ones(2):requires_grad_()}, {lr = 0.5})
opt:load_state_dict {state = {[0] = {step = nacre.tensor(3.0), seen = 3}},
                     param_groups = {{params = {0}, lr = 0.25}}}
local p = opt.param_groups[1].params[1]
p.grad = nacre.ones(2)
opt:step()
C.is(p:detach(), "{0.75,0.75}")
eq(opt.state[p].seen, 4)

-- what is of another optimizer, or of other parameters, is refused, and
-- nothing of it is taken
local function refused(message, name, state, options)
  local o = optim[name]({half}, options)
  local lr = o.param_groups[1].lr
  fails("load_state_dict: " .. message, o.load_state_dict, o, state)
  assert(o.param_groups[1].lr == lr and next(o.state) == nil)
end
local other = " of the state has %s: it belongs to another optimizer"
refused("group 1 of the state has no momentum", "SGD", adam_state(3))
refused("group 1" .. other:format "amsgrad = true", "RAdam",
        (function()
          local s = adam_state(3)
          s.param_groups[1].amsgrad = true
          return s
        end)())
local function of(state, group)
  return {state = {[0] = state}, param_groups = {group}}
end
local sgd = {params = {0}, lr = 9.0, momentum = 0.9, dampening = 0,
             weight_decay = 0, nesterov = false}
refused("group 1 of the state has no betas", "Adam",
        of({momentum_buffer = zeros}, sgd))
local adam = adam_state(3).param_groups[1]
refused("the state of parameter 1 has no exp_avg_sq", "Adam",
        of({step = 3, exp_avg = zeros}, adam))
refused("the state of parameter 1 has no step", "AdamW",
        of({exp_avg = zeros, exp_avg_sq = zeros}, adam))
refused("the state of parameter 1 has no exp_inf", "Adamax",
        of({step = 3, exp_avg = zeros, exp_avg_sq = zeros},
           {params = {0}, lr = 1, betas = {0.9, 0.99}, eps = 1e-8,
            weight_decay = 0}))
refused("the state of parameter 1 has momentum_buffer of [3]; the parameter "
        .. "is [2]", "SGD", of({momentum_buffer = nacre.zeros(3)}, sgd))
refused("the state of parameter 1 has a number as exp_avg", "Adam",
        adam_state(3, {exp_avg = 1}) and
        of({step = 3, exp_avg = {1}, exp_avg_sq = zeros}, adam))
refused("the state of parameter 1 has step that is not a number", "Adam",
        adam_state "three")
refused("lr is -1, but must be a number of 0 or more", "Adam",
        of(nil, {params = {0}, lr = -1, betas = {0.9, 0.9}, eps = 1e-8,
                 weight_decay = 0}))
refused("a table of state_dict is expected", "SGD",
        {state = {}, param_groups = {{}}})

-- how PyTorch computes, and the names of parameters, go back to it
local net = nacre.nn.Linear(2, 1)
local adamw = optim.AdamW(net:named_parameters())
eq(table.concat(adamw.param_groups[1].param_names, " "), "weight bias")
assert(not tostring(adamw):find "param_names")
local state = adamw:state_dict()
state.param_groups[1].foreach, state.param_groups[1].capturable = true, false
adamw = optim.AdamW(net, {foreach = true, capturable = false})
adamw:load_state_dict(state)
local group = adamw.param_groups[1]
assert(group.foreach == true and group.capturable == nil)
eq(table.concat(group.param_names, " "), "weight bias")
local saved = again(adamw)
if saved then
  group = saved.param_groups[1]
  assert(group.foreach and group.params[1] == 0 and group.param_names[2])
end

-- a step is a tensor in the file, SGD has none
for _, name in ipairs {"Adam", "SGD"} do
  opt = optim[name](net, {lr = 0.1})
  net(nacre.ones(2)):sum():backward()
  opt:step()
  saved = again(opt)
  if saved and name == "Adam" then
    eq(saved.state[0].step.dtype, "float32")
    eq(saved.state[1].step:item(), 1)
  elseif saved then eq(next(saved.state), nil) end
end

-- numbers that PyTorch has in float32 stay in it
opt = optim.NAdam({nacre.ones(1):double():requires_grad_()})
local q, tenth = opt.param_groups[1].params[1],
                 string.unpack("f", string.pack("f", 0.1))
local nadam = opt:state_dict()
nadam.state[1] = {step = nacre.tensor(1.0), mu_product = nacre.tensor(0.1),
                  exp_avg = nacre.zeros(1):double(),
                  exp_avg_sq = nacre.zeros(1):double()}
opt:load_state_dict(nadam)
eq(opt.state[q].mu_product, tenth)
q.grad = nacre.ones(1):double()
opt:step()
local product = opt.state[q].mu_product
eq(product, string.unpack("f", string.pack("f", product)))
saved = again(opt)
if saved then eq(saved.state[0].mu_product.dtype, "float32") end

-- a loss that becomes large
local top = nacre.zeros(1):double():requires_grad_()
opt = optim.LBFGS({top}, {maximize = true, line_search_fn = "strong_wolfe"})
for _ = 1, 3 do
  opt:step(function()
    opt:zero_grad()
    local height = -((top - 3) ^ 2):sum()
    height:backward()
    return height
  end)
end
assert(math.abs(top:item() - 3) < 1e-6)

-- generators of PyTorch are others
fails("a state of bytes is one of PyTorch", nacre.set_rng_state,
      nacre.zeros(5056):byte())

-- the parameters of a stack count in PyTorch's order: the norm comes last
local nn = nacre.nn
local stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1,
                                    nn.LayerNorm(4))
local names = {}
for name in stack:named_parameters() do names[#names + 1] = name end
eq(names[1] .. " " .. names[#names],
   "layers.0.self_attn.in_proj_weight norm.bias")

-- ---- schedules: a state of PyTorch 2.15 after three epochs, what its group
-- has then, and the rates that follow

local function half_more(t) return 0.5 + 1 / (t + 1) end

local function chained(o)
  return R.ChainedScheduler {R.StepLR(o, 2), R.ExponentialLR(o, 0.5)}
end
local function in_turn(o)
  return R.SequentialLR(o, {R.ConstantLR(o, 0.5, 2), R.CosineAnnealingLR(o, 4)},
                        {2})
end

local CASES = {
  {"StepLR", {step_size = 2}, {step_size = 2, gamma = 0.1}, 0.01,
   "0.001 0.001 0.0001 0.0001"},
  {"MultiStepLR", {milestones = {2, 4, 4}, gamma = 0.5},
   {milestones = {[2] = 1, [4] = 2}, gamma = 0.5}, 0.05,
   "0.0125 0.0125 0.0125 0.0125"},
  {"ExponentialLR", {gamma = 0.5}, {gamma = 0.5}, 0.0125,
   "0.00625 0.003125 0.0015625 0.00078125"},
  {"ConstantLR", {factor = 0.2, total_iters = 4},
   {factor = 0.2, total_iters = 4}, 0.02, "0.1 0.1 0.1 0.1"},
  {"LinearLR", {start_factor = 0.1, total_iters = 5},
   {start_factor = 0.1, end_factor = 1, total_iters = 5}, 0.064,
   "0.082 0.1 0.1 0.1"},
  {"PolynomialLR", {total_iters = 5, power = 2}, {total_iters = 5, power = 2.0},
   0.016, "0.004 0 0 0"},
  {"CosineAnnealingLR", {T_max = 3}, {T_max = 3, eta_min = 0.0}, 0,
   "0.025 0.075 0.1 0.075"},
  {"CosineAnnealingWarmRestarts", {T_0 = 2, T_mult = 2},
   {T_0 = 2, T_i = 4, T_mult = 2, eta_min = 0, T_cur = 1}, 0.0853553390593274,
   "0.05 0.014645 0.1 0.096194"},
  -- PyTorch was given step(3.5)
  {"CosineAnnealingWarmRestarts", {T_0 = 3},
   {T_0 = 3, T_i = 3, T_mult = 1, eta_min = 0, T_cur = 0.5}, 0.0933012701892219,
   "0.05 0.0066987 0.093301 0.05"},
  {"LambdaLR", {lr_lambda = half_more}, {lr_lambdas = {}}, 0.075,
   "0.07 0.066667 0.064286 0.0625"},
  {"MultiplicativeLR", {lr_lambda = half_more}, {lr_lambdas = {}}, 0.0625,
   "0.04375 0.029167 0.01875 0.011719"},
  {"OneCycleLR", {max_lr = 1, total_steps = 10, pct_start = 0.4,
                  three_phase = true, anneal_strategy = "linear"},
   {total_steps = 10, _schedule_phases = {{end_step = 3.0}, {end_step = 6.0},
                                          {end_step = 9}},
    _anneal_func_type = "linear", cycle_momentum = true, use_beta1 = false,
    base_lrs = {0.04}}, 1, "0.68 0.36 0.04 0.026668",
   {initial_lr = 0.04, max_lr = 1.0, min_lr = 4e-6, max_momentum = 0.95,
    base_momentum = 0.85}},
  {"CyclicLR", {base_lr = 0.01, max_lr = 0.2, step_size_up = 3,
                step_size_down = 2, mode = "triangular2"},
   {max_lrs = {0.2}, total_size = 5.0, step_ratio = 0.6, mode = "triangular2",
    gamma = 1.0, scale_mode = "cycle", cycle_momentum = true, use_beta1 = false,
    base_momentums = {0.8}, max_momentums = {0.9}, base_lrs = {0.01}}, 0.2,
   "0.105 0.01 0.041667 0.073333"},
  {"SWALR", {swa_lr = 0.5, anneal_epochs = 5},
   {_anneal_strategy = "cos", anneal_epochs = 5}, 0.361803398874989,
   "0.4618 0.5 0.5 0.5", {swa_lr = 0.5}},
  {"ReduceLROnPlateau", {factor = 0.5, patience = 0, min_lr = 0.03},
   {factor = 0.5, default_min_lr = 0.03, min_lrs = {0.03}, patience = 0,
    cooldown = 0, eps = 1e-8, mode_worse = math.huge, mode = "min",
    threshold = 1e-4, threshold_mode = "rel", best = 1.0, cooldown_counter = 0,
    num_bad_epochs = 0}, 0.05, "0.03 0.03 0.03 0.03"},
  {chained, {}, {_schedulers = {
    {step_size = 2, gamma = 0.1, base_lrs = {0.1}, last_epoch = 3,
     _last_lr = {0.0025}},
    {gamma = 0.5, base_lrs = {0.1}, last_epoch = 3, _last_lr = {0.00125}}}},
   0.00125, "6.25e-05 3.125e-05 1.5625e-06 7.8125e-07"},
  {in_turn, {}, {_milestones = {2}, _schedulers = {
    {factor = 0.5, total_iters = 2, base_lrs = {0.1}, last_epoch = 1,
     _last_lr = {0.05}},
    {T_max = 4, eta_min = 0.0, base_lrs = {0.1}, last_epoch = 1,
     _last_lr = {0.0853553390593274}}}}, 0.0853553390593274,
   "0.05 0.014645 0 0.014645"},
}

local function optimizer()
  return optim.SGD({nacre.ones(1):requires_grad_()}, {lr = 0.1, momentum = 0.9})
end

local function make_schedule(o, which, options)
  if type(which) == "function" then return which(o) end
  return (which == "SWALR" and optim.swa_utils or R)[which](o, options)
end

-- A step; one schedule takes a measure.
local function step(s)
  if s.name == "ReduceLROnPlateau" then s:step(1.0) else s:step() end
end

local function go_on(o, s, n)
  local list = {}
  for i = 1, n or 4 do
    step(s)
    list[i] = ("%.5g"):format(o.param_groups[1].lr)
  end
  return table.concat(list, " ")
end

-- A schedule that goes on from a state; its own options are others.
local function resumed(case, state, first)
  local o, options = optimizer(), {}
  for key, v in pairs(case[2]) do
    options[key] = type(v) == "number" and math.type(v) == "integer" and v + 3
                   or type(v) == "number" and v / 2 or v
  end
  local s = make_schedule(o, case[1], options)
  local group = o:state_dict().param_groups[1]
  group.initial_lr, group.lr = 0.1, case[4]
  for key, v in pairs(case[6] or {}) do group[key] = v end
  local function take()
    o:load_state_dict {state = {}, param_groups = {group}}
  end
  if first then take() end
  s:load_state_dict(state)
  if not first then take() end
  return o, s
end

for _, case in ipairs(CASES) do
  local state = case[3]
  local what = tostring(case[1])
  state.last_epoch = case[1] ~= chained and 3 or nil
  state.base_lrs = state.base_lrs or not state._schedulers and {0.1} or nil
  state._last_lr, state._step_count, state._is_initial = {case[4]}, 4, false
  state._get_lr_called_within_step = false
  for _, first in ipairs {true, false} do
    local o, s = resumed(case, state, first)
    local rates = go_on(o, s)
    assert(rates == case[5], ("%s: %s, not %s"):format(what, rates, case[5]))
    -- and from there through a file
    local kept = again {s, o}
    if kept then
      local wanted = go_on(o, s, 3)
      local o2, s2 = resumed(case, kept[1], first)
      o2:load_state_dict(kept[2])
      assert(go_on(o2, s2, 3) == wanted, what)
    end
  end
end

-- rates that others changed keep their ratio
local o = optimizer()
local s = R.StepLR(o, 2)
o.param_groups[1].lr = 0.5
s:load_state_dict {step_size = 2, gamma = 0.1, base_lrs = {0.1}, last_epoch = 3,
                   _last_lr = {0.5}}
eq(go_on(o, s), "0.05 0.05 0.005 0.005")

-- a class of the user
local Own = R.LRScheduler "Own"
function Own:init(opt, factor)
  self.factor = factor
  R.LRScheduler.init(self, opt)
end
function Own:get_lr()
  return {self.base_lrs[1] * self.factor ^ self.last_epoch}
end
o = optimizer()
s = Own(o, 0.9)
s:load_state_dict {factor = 0.5, base_lrs = {0.1}, last_epoch = 3,
                   _last_lr = {0.0125}, _step_count = 4}
eq(go_on(o, s), "0.00625 0.003125 0.0015625 0.00078125")

local function schedule_refused(message, name, options, state)
  local opt2 = optimizer()
  local one = make_schedule(opt2, name, options)
  fails("load_state_dict: " .. message, one.load_state_dict, one, state)
  assert(one.last_epoch == 0)
end
local step_state = {step_size = 2, gamma = 0.1, base_lrs = {0.1},
                    last_epoch = 3, _last_lr = {0.01}}
schedule_refused("the state has no T_max: it belongs to another schedule than "
                 .. "CosineAnnealingLR", "CosineAnnealingLR", {T_max = 3},
                 step_state)
schedule_refused("the state has step_size: it belongs to another schedule than "
                 .. "ExponentialLR", "ExponentialLR", {gamma = 0.5}, step_state)
schedule_refused("the state has 2 groups, but the optimizer has 1", "StepLR",
                 {step_size = 2}, {step_size = 2, gamma = 0.1, last_epoch = 3,
                                   base_lrs = {0.1, 0.2}, _last_lr = {1, 2}})
schedule_refused("the state has a string as step_size", "StepLR",
                 {step_size = 2}, {step_size = "two", gamma = 0.1,
                                   last_epoch = 3, base_lrs = {0.1}})
schedule_refused("lr_lambdas is an object of Python with fields", "LambdaLR",
                 {lr_lambda = half_more},
                 {lr_lambdas = {{power = 2}}, last_epoch = 3, base_lrs = {0.1},
                  _last_lr = {0.1}})
schedule_refused("the state has 1 schedules, expected 2", in_turn, {},
                 {_milestones = {2}, _schedulers = {step_state}, last_epoch = 3,
                  _last_lr = {0.1}})
schedule_refused("the state has no factor", in_turn, {},
                 {_milestones = {2}, _schedulers = {step_state, step_state},
                  last_epoch = 3, _last_lr = {0.1}})

-- ---- groups that are added to an optimizer with a schedule: the rates of
-- PyTorch 2.15

local function with_group(name, options, lr)
  local opt2 = optimizer()
  local one = make_schedule(opt2, name, options)
  step(one)
  opt2:add_param_group {params = {nacre.ones(2):requires_grad_()}, lr = lr}
  local list = {}
  for i = 1, 4 do
    step(one)
    list[i] = ("%.5g"):format(opt2.param_groups[2].lr)
  end
  return table.concat(list, " ")
end
for _, case in ipairs {
  {"StepLR", {step_size = 2}, "0.05 0.05 0.005 0.005"},
  {"MultiStepLR", {milestones = {2, 4}, gamma = 0.5}, "0.25 0.25 0.125 0.125"},
  {"ExponentialLR", {gamma = 0.5}, "0.25 0.125 0.0625 0.03125"},
  {"ConstantLR", {factor = 0.2, total_iters = 4}, "0.5 0.5 2.5 2.5"},
  {"LinearLR", {start_factor = 0.1, total_iters = 5},
   "0.82143 1.1429 1.4643 1.7857"},
  {"PolynomialLR", {total_iters = 5, power = 2}, "0.28125 0.125 0.03125 0"},
  {"ReduceLROnPlateau", {factor = 0.5, patience = 0},
   "0.25 0.125 0.0625 0.03125"},
  -- PyTorch fails after the lowest rate
  {"CosineAnnealingLR", {T_max = 4}, "0.29289 0.085786 0 0.073223"},
} do
  eq(with_group(case[1], case[2], 0.5), case[3])
end
for name, options in pairs {
  LambdaLR = {lr_lambda = half_more},
  MultiplicativeLR = {lr_lambda = half_more},
  CosineAnnealingWarmRestarts = {T_0 = 3},
  OneCycleLR = {max_lr = 1, total_steps = 10},
  CyclicLR = {base_lr = 0.1, max_lr = 1}, SWALR = {swa_lr = 0.5},
} do
  fails(name .. ": the optimizer has 2 groups, of which this schedule knows 1",
        "a new schedule after add_param_group", with_group, name, options, 0.5)
end
fails("ReduceLROnPlateau: min_lr has 1 numbers, but the optimizer has 2 groups",
      with_group, "ReduceLROnPlateau", {min_lr = {0.1}, patience = 0}, 0.5)
