-- SPDX-License-Identifier: MIT
-- Each schedule, schedules of schedules, and of a measure. Their rates are
-- compared with PyTorch's in tests/torch/optimizers_torch.py.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local optim, R = nacre.optim, nacre.optim.lr_scheduler

local function optimizer()
  local function p() return nacre.ones(1):requires_grad_() end
  return optim.SGD({{params = {p()}}, {params = {p()}, lr = 0.5}}, {lr = 1})
end

-- The rates of the first group in n epochs.
local function rates(o, s, n)
  local list = {}
  for i = 1, n do
    list[i] = ("%.4g"):format(o.param_groups[1].lr)
    s:step()
  end
  return table.concat(list, " ")
end

-- ---- each schedule

local function one_parameter(lr, more)
  more = more or {}
  more.lr = lr
  return optim.SGD({nacre.ones(1):requires_grad_()}, more)
end

-- The rates of one schedule.
local function rates_of(name, n, ...)
  local o = one_parameter(1, {momentum = 0.9})
  return rates(o, R[name](o, ...), n)
end

eq(rates_of("LambdaLR", 3, function(t) return 1 / (t + 1) end), "1 0.5 0.3333")
eq(rates_of("StepLR", 5, 2), "1 1 0.1 0.1 0.01")
eq(rates_of("MultiStepLR", 4, {1, 3}, 0.5), "1 0.5 0.5 0.25")
eq(rates_of("ExponentialLR", 3, 0.5), "1 0.5 0.25")
eq(rates_of("ConstantLR", 4, 0.5, 2), "0.5 0.5 1 1")
eq(rates_of("LinearLR", 4, 0.5, 1, 2), "0.5 0.75 1 1")
eq(rates_of("PolynomialLR", 4, 2), "1 0.5 0 0")
eq(rates_of("CosineAnnealingLR", 5, 2), "1 0.5 0 0.5 1")
eq(rates_of("CosineAnnealingWarmRestarts", 6, 2, 2),
   "1 0.5 1 0.8536 0.5 0.1464")
eq(rates_of("OneCycleLR", 4, 1, 5), "0.04 0.9505 0.6113 0.1883")
fails("OneCycleLR: step 6 is past the 5 total steps", rates_of, "OneCycleLR", 6,
      1, 5)
fails("the optimizer has no momentum", R.OneCycleLR,
      optim.Adagrad(nacre.nn.Linear(1, 1)), 1, 10)
fails("the first argument must be an optimizer", R.StepLR, {}, 2)
fails("step_size is 0, but must be a positive integer", R.StepLR, optimizer(),
      0)

-- a schedule that is resumed: the rates of PyTorch 2.15 in two epochs
local function resumed(name, ...)
  local options = {...}
  local saved
  local list = {}
  for pass = 1, 2 do
    local o = one_parameter(0.1)
    if saved then o:load_state_dict(saved) end
    options[#options].last_epoch = pass == 2 and 3 or nil
    local s = R[name](o, table.unpack(options))
    for i = 1, pass == 1 and 3 or 2 do
      list[i] = ("%.4g"):format(o.param_groups[1].lr)
      s:step()
    end
    saved = o:state_dict()
  end
  return table.concat(list, " ", 1, 2)
end

eq(resumed("StepLR", 2, {gamma = 0.1}), "0.001 0.001")
eq(resumed("ExponentialLR", 0.5, {}), "0.0125 0.00625")
eq(resumed("CosineAnnealingLR", 10, {}), "0.07939 0.06065")
eq(resumed("LinearLR", {total_iters = 8}), "0.05833 0.06562")
eq(resumed("CosineAnnealingWarmRestarts", {T_0 = 3}), "0.075 0.025")
eq(resumed("LambdaLR", {lr_lambda = function(t) return 0.5 ^ t end}),
   "0.00625 0.003125")
fails("last_epoch resumes a schedule, but group 1 has no initial_lr",
      R.StepLR, optimizer(), 2, 0.1, 4)

-- ---- schedules of schedules

-- a schedule whose turn has not come has not begun, as in PyTorch 2.15
local o = optimizer()
local first, second = R.ConstantLR(o, 0.5, 2), R.ExponentialLR(o, 0.5)
local s = R.SequentialLR(o, {first, second}, {2})
eq(first.last_epoch .. " " .. second.last_epoch, "0 -1")
eq(rates(o, s, 5), "0.5 0.5 1 0.5 0.25")
eq(s.last_epoch .. " " .. first.last_epoch .. " " .. second.last_epoch,
   "5 1 3")

-- one after the other, one of them made of two at the same time
local function warmup_of_two(at)
  local opt = optimizer()
  local both = R.ChainedScheduler {R.ConstantLR(opt, 0.5, 2),
                                   R.ExponentialLR(opt, 0.5)}
  local line = R.LinearLR(opt, 0.5, 1, 2)
  local list = at == 1 and {both, line} or {line, both}
  return opt, R.SequentialLR(opt, list, {3})
end
o, s = warmup_of_two(1)
eq(rates(o, s, 6), "0.5 0.25 0.25 0.5 0.75 1")
o, s = warmup_of_two(2)
eq(rates(o, s, 6), "0.5 0.75 1 0.5 0.25 0.25")

-- a cosine to the first rate itself follows the one before it, as in PyTorch
do
  local opt = optimizer()
  local both = R.ChainedScheduler {
    R.ExponentialLR(opt, 0.5), R.CosineAnnealingLR(opt, {T_max = 3,
                                                         eta_min = 1})}
  eq(rates(opt, both, 6), "1 0.625 0.7708 1 0.5 -1.25")
end

-- nested: the inner ones count from their own beginning
local function nested(at)
  local opt = optimizer()
  local a, b = R.ConstantLR(opt, 0.5, 5), R.ExponentialLR(opt, 0.5)
  local inner = R.SequentialLR(opt, {a, b}, {1})
  local line = R.LinearLR(opt, 0.1, 1, 2)
  return opt, R.SequentialLR(opt, at == 1 and {inner, line} or {line, inner},
                             {3})
end
o, s = nested(1)
eq(rates(o, s, 6), "0.5 1 0.5 0.1 0.55 1")
o, s = nested(2)
eq(rates(o, s, 6), "0.1 0.55 1 0.5 1 0.5")

-- its state goes into another
o, s = nested(2)
rates(o, s, 4)
local other, t = nested(2)
other:load_state_dict(o:state_dict())
t:load_state_dict(s:state_dict())
eq(rates(other, t, 3), rates(o, s, 3))

o = one_parameter(1)
s = R.SequentialLR(o, {R.ConstantLR(o, 0.1, 9), R.ExponentialLR(o, 0.5)}, {2})
eq(rates(o, s, 5), "0.1 0.1 1 0.5 0.25")

-- two schedules of one optimizer multiply
o = one_parameter(1)
first, second = R.ConstantLR(o, 0.5, 2), R.ExponentialLR(o, 0.5)
eq(("%.4g"):format(o.param_groups[1].lr), "0.5")
for _ = 1, 2 do
  first:step()
  second:step()
end
eq(("%.4g"):format(o.param_groups[1].lr), "0.25")

-- ---- ReduceLROnPlateau

o = optimizer()
s = R.ReduceLROnPlateau(o, {patience = 0, factor = 0.1, min_lr = {0.2, 0.01}})
for _ = 1, 3 do s:step(1) end
eq(("%.4g %.4g"):format(o.param_groups[1].lr, o.param_groups[2].lr),
   "0.2 0.01")
local saved = s:state_dict()
assert(saved.num_bad_epochs == 0 and saved.cooldown_counter == 0 and
       saved.last_epoch == 3 and saved.best == 1)
fails("min_lr has 1 numbers, but the optimizer has 2 groups",
      R.ReduceLROnPlateau, o,
      {min_lr = {0.1}})
fails("min_lr is a number, or a list with one for each group",
      R.ReduceLROnPlateau, o, {min_lr = "0.1"})

o = one_parameter(1)
s = R.ReduceLROnPlateau(o, {patience = 1, factor = 0.5, cooldown = 1})
for _, measure in ipairs {3, 2, 2, 2, 2, 2} do s:step(measure) end
eq(("%.4g"):format(o.param_groups[1].lr), "0.5")
s:step(nacre.tensor(2.0))
eq(("%.4g"):format(o.param_groups[1].lr), "0.25")
fails("step takes the measure", s.step, s)
saved = s:state_dict()
t = R.ReduceLROnPlateau(o)
t:load_state_dict(saved)
assert(t.best == 2 and t.patience == 1)
