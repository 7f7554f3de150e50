# SPDX-License-Identifier: MIT
"""Trainings that begin in PyTorch, go on in Nacre and end in PyTorch, by .pt
files: the losses, rates and momenta are those of one that never stopped.

    resumed_torch.py NACRE
"""
import os
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.optim import lr_scheduler, swa_utils

THERE, ALL = 5, 12              # steps in Nacre, steps after the first file
# Relative error.  The states of some optimizers have numbers in float32.
TOLERANCE = 1e-6


def half_more(t):
    return 0.5 + 1 / (t + 1)


OPTIMIZERS = [
    ("SGD", dict(lr=0.05)), ("SGD", dict(lr=0.05, momentum=0.9)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3)),
    ("SGD", dict(lr=0.001, momentum=0.5, maximize=True)),
    ("Adam", dict(lr=0.01)),
    ("Adam", dict(lr=0.01, amsgrad=True, weight_decay=0.1)),
    ("AdamW", dict(lr=0.01, betas=(0.8, 0.99))),
    ("AdamW", dict(lr=0.01, amsgrad=True, maximize=True)),
    ("Adamax", dict(lr=0.01, weight_decay=0.1)), ("NAdam", dict(lr=0.01)),
    ("NAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True,
                   momentum_decay=0.01)),
    ("RAdam", dict(lr=0.01)),
    ("RAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)),
    ("RMSprop", dict(lr=0.01)),
    ("RMSprop", dict(lr=0.01, centered=True, momentum=0.9)),
    ("RMSprop", dict(lr=0.01, momentum=0.5, weight_decay=0.1, alpha=0.9)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.01)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.5)),
    ("Adadelta", dict(lr=1.0)),
    ("Adadelta", dict(lr=0.5, rho=0.8, weight_decay=0.1)), ("Rprop", dict()),
    ("Rprop", dict(lr=0.05, step_sizes=(1e-4, 0.1), etas=(0.4, 1.3))),
    ("ASGD", dict()),
    ("ASGD", dict(lr=0.05, lambd=1e-3, t0=3, weight_decay=0.01)),
    ("Adafactor", dict()),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, eps=(1e-20, 1e-2))),
    ("LBFGS", dict(lr=0.1, max_iter=4, history_size=3)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", max_iter=3))]

SCHEDULES = [
    ("StepLR", dict(step_size=3)),
    ("MultiStepLR", dict(milestones=[2, 5, 5, 9], gamma=0.5)),
    ("ExponentialLR", dict(gamma=0.9)), ("ConstantLR", dict(factor=0.2)),
    ("LinearLR", dict(start_factor=0.1, total_iters=7)),
    ("PolynomialLR", dict(total_iters=8, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.001)),
    ("CosineAnnealingLR", dict(T_max=4)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2, eta_min=0.001)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3)),
    ("OneCycleLR", dict(max_lr=0.5, total_steps=40)),
    ("OneCycleLR", dict(max_lr=[0.5, 0.2], epochs=8, steps_per_epoch=5,
                        three_phase=True, anneal_strategy="linear")),
    ("LambdaLR", dict(lr_lambda=half_more)),
    ("MultiplicativeLR", dict(lr_lambda=half_more)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=3)),
    ("CyclicLR", dict(base_lr=[0.01, 0.02], max_lr=0.2, step_size_up=3,
                      step_size_down=2, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4, gamma=0.9,
                      mode="exp_range", base_momentum=0.7)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4,
                      scale_fn=half_more, scale_mode="iterations")),
    ("SWALR", dict(swa_lr=0.5)),
    ("SWALR", dict(swa_lr=0.01, anneal_epochs=3, anneal_strategy="linear")),
    ("ReduceLROnPlateau", dict(factor=0.5, patience=1, min_lr=[1e-3, 0.05])),
    ("ReduceLROnPlateau", dict(mode="max", patience=0, cooldown=2, factor=0.7,
                               threshold=0.1, threshold_mode="abs")),
    ("ChainedScheduler", [("ConstantLR", dict(factor=0.2, total_iters=3)),
                          ("ExponentialLR", dict(gamma=0.9))]),
    ("ChainedScheduler", [("CosineAnnealingLR", dict(T_max=6, eta_min=0.001)),
                          ("LinearLR", dict(total_iters=9))]),
    ("SequentialLR", [("LinearLR", dict(total_iters=4)),
                      ("CosineAnnealingLR", dict(T_max=16))], [4]),
    ("SequentialLR", [("MultiplicativeLR", dict(lr_lambda=half_more)),
                      ("CosineAnnealingWarmRestarts", dict(T_0=3)),
                      ("MultiStepLR", dict(milestones=[1, 3]))], [3, 7]),
    # two that do not know of each other
    ("", [("StepLR", dict(step_size=3)), ("ExponentialLR", dict(gamma=0.9))])]

# optimizer, options, schedule, steps before the first file
CASES = ([(name, o, None, n) for name, o in OPTIMIZERS for n in (1, 4)] +
         [("SGD", dict(lr=0.1, momentum=0.9), s, n) for s in SCHEDULES
          for n in (0, 3, 8)] +
         [("Adam", dict(lr=0.1), s, 4) for s in SCHEDULES])

LUA = """
local nn, optim = nacre.nn, nacre.optim
local folder = arg[1]
local X, Y = table.unpack(nacre.load(folder .. "/data.pt"))
local function half_more(t) return 0.5 + 1 / (t + 1) end
local function one(opt, name, options)
  local space = name == "SWALR" and optim.swa_utils or optim.lr_scheduler
  return space[name](opt, options)
end
local function several(opt, members)
  local list = {}
  for i, m in ipairs(members) do list[i] = one(opt, m[1], m[2]) end
  return list
end
local function make(opt, name, options, milestones)
  if name == "" then return several(opt, options)
  elseif name == "ChainedScheduler" then
    return {optim.lr_scheduler[name](several(opt, options))}
  elseif name == "SequentialLR" then
    return {optim.lr_scheduler[name](opt, several(opt, options), milestones)}
  end
  return {name and one(opt, name, options)}
end
local function run(number, name, options, first, ...)
  local path = ("%s/%d.pt"):format(folder, number)
  local c = nacre.load(path)
  local net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
  net:double():load_state_dict(c.net)
  local p = net:parameters()
  local groups = name == "LBFGS" and p or
    {{params = {p[1], p[2]}}, {params = {p[3], p[4]}, lr = 0.02}}
  local opt = optim[name](groups, options)
  local schedules, list = make(opt, ...), {}
  if number % 2 == 0 then opt:load_state_dict(c.opt) end
  for i, s in ipairs(schedules) do s:load_state_dict(c.schedules[i]) end
  if number % 2 == 1 then opt:load_state_dict(c.opt) end
  for k = first, first + THERE - 1 do
    list[#list + 1] = opt:step(function()
      opt:zero_grad()
      local loss = ((net(X) - Y) ^ 2):mean()
      if k == 0 then loss = (net[1](X) ^ 2):mean() end
      loss:backward()
      return loss
    end):item()
    for _, s in ipairs(schedules) do
      if s.name ~= "ReduceLROnPlateau" then s:step()
      else s:step(1 / (k + 3 * (k % 3) + 1)) end
    end
    for _, g in ipairs(opt.param_groups) do
      list[#list + 1] = g.lr
      list[#list + 1] = g.momentum or g.betas and g.betas[1] or 0
    end
  end
  -- objects, or their states
  if number % 3 == 0 then
    opt = opt:state_dict()
    for i, s in ipairs(schedules) do schedules[i] = s:state_dict() end
  end
  nacre.save(path, {net = net, opt = opt, schedules = schedules})
  for i, x in ipairs(list) do list[i] = ("%.17g"):format(x) end
  print(number, table.concat(list, " "))
end
local function try(...)
  local ok, e = pcall(run, ...)
  if not ok then print((...), (tostring(e):gsub("\\n", " "))) end
end
""".replace("THERE", str(THERE))


def lua(v):
    if callable(v):
        return "half_more"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k} = {lua(e)}" for k, e in v.items()) + "}"
    if isinstance(v, (tuple, list)):
        return "{" + ", ".join(map(lua, v)) + "}"
    return f'"{v}"' if isinstance(v, str) else repr(v)


def one(opt, name, o):
    return getattr(swa_utils if name == "SWALR" else lr_scheduler,
                   name)(opt, **o)


def make(opt, schedule):
    if not schedule:
        return []
    name, o = schedule[:2]
    if isinstance(o, dict):
        return [one(opt, name, o)]
    members = [one(opt, *m) for m in o]
    if name == "ChainedScheduler":
        return [lr_scheduler.ChainedScheduler(members)]
    if name == "SequentialLR":
        return [lr_scheduler.SequentialLR(opt, members, schedule[2])]
    return members


class Training:
    def __init__(self, case, saved=None):
        name, o, schedule, _ = case
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(),
                                       torch.nn.Linear(6, 3))
        p = list(self.net.parameters())
        self.opt = getattr(torch.optim, name)(
            p if name == "LBFGS" else
            [dict(params=p[:2]), dict(params=p[2:], lr=0.02)], **o)
        self.schedules = make(self.opt, schedule)
        if saved:
            self.net.load_state_dict(saved["net"])
            self.opt.load_state_dict(saved["opt"])
            for s, state in zip(self.schedules, saved["schedules"]):
                s.load_state_dict(state)

    def save(self, path):
        torch.save(dict(net=self.net.state_dict(), opt=self.opt.state_dict(),
                        schedules=[s.state_dict() for s in self.schedules]),
                   path)

    def run(self, X, Y, first, last):
        out = []
        for k in range(first, last):
            def closure():
                self.opt.zero_grad()
                loss = ((self.net(X) - Y) ** 2).mean()
                if k == 0:          # the second group begins later
                    loss = (self.net[0](X) ** 2).mean()
                loss.backward()
                return loss
            out.append(self.opt.step(closure).item())
            for s in self.schedules:
                s.step(*[1 / (k + 3 * (k % 3) + 1)]
                       if isinstance(s, lr_scheduler.ReduceLROnPlateau) else [])
            for g in self.opt.param_groups:
                out += [g["lr"], g.get("momentum", g.get("betas", [0])[0])]
        return out


def differs(got, wanted):
    return len(got) != len(wanted) or not all(
        abs(a - b) <= TOLERANCE * max(abs(b), 1e-3)
        for a, b in zip(got, wanted))


def main():
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")
    if not hasattr(torch.optim, "Adafactor"):
        print("resumed_torch: left out, this PyTorch has other states")
        return
    torch.manual_seed(0)
    X, Y = torch.randn(16, 4), torch.randn(16, 3)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        torch.save([X, Y], os.path.join(folder, "data.pt"))
        text, wanted = LUA, []
        for i, case in enumerate(CASES):
            name, o, schedule, n = case
            training = Training(case)
            training.run(X, Y, 0, n)
            training.save(os.path.join(folder, f"{i}.pt"))
            wanted.append(training.run(X, Y, n, n + ALL))
            arguments = ", ".join(map(lua, schedule or ()))
            text += (f"try({i}, {lua(name)}, {lua(o)}, {n}"
                     f"{', ' + arguments if schedule else ''})\n")
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(text)
        run = subprocess.run([sys.argv[1], script, folder], capture_output=True,
                             text=True)
        sys.stdout.write(run.stderr)
        lines = dict(line.split("\t") for line in run.stdout.splitlines())
        for i, case in enumerate(CASES):
            name, o, schedule, n = case
            try:
                there = list(map(float, lines.get(str(i), "nothing").split()))
                saved = torch.load(os.path.join(folder, f"{i}.pt"))
                back = Training(case, saved).run(X, Y, n + THERE, n + ALL)
            except Exception as e:  # of float(), or of PyTorch
                bad += 1
                print(f"{case}: {lines.get(str(i))} {e}")
                continue
            if differs(there, wanted[i][:len(there)]):
                bad += 1
                print(f"{case}: other numbers in Nacre")
            elif differs(back, wanted[i][len(there):]):
                bad += 1
                print(f"{case}: other numbers back in PyTorch")
    print(f"resumed_torch: {len(CASES)} trainings, {bad} differ")
    sys.exit(bad > 0)


main()
