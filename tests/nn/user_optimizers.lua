-- SPDX-License-Identifier: MIT
-- Optimizers and schedules that the user writes: classes of optim.Optimizer and
-- of LRScheduler.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local optim = nacre.optim
local LRScheduler = optim.lr_scheduler.LRScheduler

local function parameter(...)
  return nacre.tensor({...}, {dtype = "float64"}):requires_grad_()
end

-- ---- update is one step of one parameter

local Descent = optim.Optimizer "Descent"
function Descent:update(p, g, state, group)
  state.sum = (state.sum or 0) + g
  p:sub_(g * group.lr)
end

local p, q = parameter(1.0, 2.0), parameter(5.0)
local opt = Descent({{params = {p}}, {params = q, lr = 1.0}}, {lr = 0.5})
p.grad = nacre.tensor({2.0, 4.0}, {dtype = "float64"})
opt:step()
C.is(p:detach(), "{0.0,0.0}")
C.is(q:detach(), "{5.0}")
assert(opt.state[p].step == 1 and rawget(opt.state, q) == nil)
assert(tostring(opt):find "^Descent\n  group 1  1 parameter, 2 elem.*lr=0.5\n")
opt:zero_grad()
assert(p.grad == nil)

-- its state is saved and loaded
local other = Descent({{params = {p}}, {params = q}}, {lr = 7})
other:load_state_dict(opt:state_dict())
assert(other.param_groups[2].lr == 1.0)
C.is(other.state[p].sum, "{2.0,4.0}")

-- ---- step is PyTorch's

local Signs = optim.Optimizer "Signs"
function Signs:init(params, lr)
  optim.Optimizer.init(self, params, {lr = lr or 0.25})
end
function Signs:step(closure)
  local loss = closure and nacre.enable_grad(closure)
  nacre.no_grad(function()
    for _, group in ipairs(self.param_groups) do
      for _, t in ipairs(group.params) do
        local state = self.state[t]
        state.n = (state.n or 0) + 1
        t:sub_(t.grad:sign() * group.lr)
      end
    end
  end)
  return loss
end

p = parameter(1.0, -2.0)
opt = Signs({p})
local loss = opt:step(function()
  local y = (p * p):sum()
  y:backward()
  return y
end)
assert(loss:item() == 5.0 and opt.state[p].n == 1)
C.is(p:detach(), "{0.75,-1.75}")

-- a class of a class
local Twice = Signs:extend "Twice"
function Twice:step(...)
  Signs.step(self, ...)
  return Signs.step(self, ...)
end
opt = Twice({p}, 0.5)
opt:step()
C.is(p:detach(), "{-0.25,-0.75}")
assert(tostring(Twice) == "class Twice" and tostring(opt):find "^Twice\n")

fails("a class has a name", optim.Optimizer, {p}, {lr = 1})
fails("Descent: params must be a list of tensors, a module or groups",
      Descent, 3)
fails("Descent: param does not require a gradient", Descent, {nacre.ones(1)})
fails("Empty: the class has no update and no step",
      "function Empty:update(p, grad, state, group) ... end",
      function() optim.Optimizer "Empty"({p}):step() end)

do
  local Empty = optim.Optimizer "Empty"
  function Empty:init() self.lr = 1 end
  local empty = Empty({p})
  for _, method in ipairs {"step", "zero_grad", "state_dict"} do
    fails("Empty: init did not call Optimizer.init(self, params, defaults)",
          empty[method], empty)
  end
  fails("zero_grad: a method is called with a colon", empty.zero_grad)
end

-- ---- schedules

local Warmup = LRScheduler "Warmup"
function Warmup:init(optimizer, n)
  self.n = n
  LRScheduler.init(self, optimizer)
end
function Warmup:get_lr()
  local rates = {}
  for i, base in ipairs(self.base_lrs) do
    rates[i] = base * math.min(1, (self.last_epoch + 1) / self.n)
  end
  return rates
end

opt = Descent({{params = {p}}, {params = q, lr = 2.0}}, {lr = 1.0})
local schedule = Warmup(opt, 4)
assert(opt.param_groups[1].lr == 0.25 and opt.param_groups[2].lr == 0.5)
schedule:step()
assert(schedule:get_last_lr()[2] == 1.0 and schedule.last_epoch == 1)
assert(tostring(schedule) == "Warmup, epoch 1, lr 0.5 1.0")
local saved = schedule:state_dict()
assert(saved.n == 4 and saved.optimizer == nil)
local again = Warmup(Descent({p}, {lr = 1.0}), 9)
again:load_state_dict(saved)
again:step()
assert(again:get_last_lr()[1] == 0.75)

-- beside those of the library
schedule = optim.lr_scheduler.ChainedScheduler {
  Warmup(opt, 4), optim.lr_scheduler.ExponentialLR(opt, 0.5)}
schedule:step()
assert(opt.param_groups[1].lr == 0.25)

local Bare = LRScheduler "Bare"
fails("Bare: the class has no get_lr",
      "function Bare:get_lr() return self.base_lrs end", Bare, opt)
function Bare.get_lr() return 0.1 end
fails("Bare: get_lr must return a list of numbers, one for each group", Bare,
      opt)
function Bare:init() self.n = 1 end
fails("Bare: init did not call LRScheduler.init(self, optimizer)",
      function() Bare(opt):step() end)
fails("Warmup: the first argument must be an optimizer, not a table", Warmup,
      {}, 4)
local rates = optim.lr_scheduler
fails("schedule 1 belongs to another optimizer", rates.ChainedScheduler,
      {rates.StepLR(opt, 1)}, Descent({p}, {lr = 1}))
fails("there are no schedules", rates.ChainedScheduler, {})
fails("schedule 1 needs a measure in each step", rates.ChainedScheduler,
      {rates.ReduceLROnPlateau(opt)})
