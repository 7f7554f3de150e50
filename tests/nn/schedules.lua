-- SPDX-License-Identifier: MIT
-- Schedules of schedules, and of a measure. Their rates are compared with
-- PyTorch's in tests/torch/optimizers_torch.py.
-- Run by: nacre tests/nn/schedules.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local optim, R = nacre.optim, nacre.optim.lr_scheduler

local function eq(got, want)
  assert(got == want, ("%s, not %s"):format(got, want))
end

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

-- ---- ReduceLROnPlateau

o = optimizer()
s = R.ReduceLROnPlateau(o, {patience = 0, factor = 0.1, min_lr = {0.2, 0.01}})
for _ = 1, 3 do s:step(1) end
eq(("%.4g %.4g"):format(o.param_groups[1].lr, o.param_groups[2].lr),
   "0.2 0.01")
local saved = s:state_dict()
assert(saved.num_bad_epochs == 0 and saved.cooldown_counter == 0 and
       saved.last_epoch == 3 and saved.best == 1)
fails("min_lr has 1 numbers, the optimizer 2 groups", R.ReduceLROnPlateau, o,
      {min_lr = {0.1}})
fails("min_lr is a number, or a list with one for each group",
      R.ReduceLROnPlateau, o, {min_lr = "0.1"})
