# SPDX-License-Identifier: MIT
"""Trainings that begin in PyTorch, go on in Nacre and end in PyTorch, by .pt
files: the losses, rates and momenta are those of one that never stopped, and
the states that Nacre writes have PyTorch's keys, shapes and dtypes. Parameters
are float64; the default dtype, in which PyTorch keeps some numbers of the
states, is float64 or float32. Averages of networks and GradScaler go both ways,
too.

    resumed_torch.py NACRE
"""
import copy
import inspect
import os
import pickle
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.optim import lr_scheduler, swa_utils

from optimizer_cases import (MAKE, OPTIMIZERS, SCHEDULES, has_optimizer, lua,
                             make, trained)

THERE, ALL = 3, 6               # steps in Nacre, steps after the first file
TOLERANCE = 1e-11               # relative error
# What a search on a line makes of the last bit.  PyTorch computes numbers of
# some states in the default dtype, and in another one after it has loaded them.
TOLERANCES = {"LBFGS": 1e-9}
TOLERANCES_SINGLE = {"LBFGS": 1e-9, "NAdam": 1e-7, "ASGD": 1e-6}
MODERN = hasattr(torch.optim, "Adafactor")
# 200 steps of it are off by more than rounding
OPTIMIZERS = OPTIMIZERS + [
    ("NAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True,
                   momentum_decay=0.01))]
# two schedules that do not know of each other
SCHEDULES = SCHEDULES + [
    ("", [("StepLR", dict(step_size=3)), ("ExponentialLR", dict(gamma=0.9))])]



def flags():
    """Each switch of each optimizer of PyTorch, alone."""
    for name in sorted({name for name, _ in OPTIMIZERS}):
        known = getattr(torch.optim, name, None)
        for flag in known and inspect.signature(known).parameters or ():
            if flag in ("amsgrad", "maximize", "nesterov", "centered") or \
               flag in ("foreach", "fused") and MODERN:
                yield name, dict(lr=1e-3, **{flag: True}, **(
                    dict(momentum=0.9) if flag == "nesterov" else {}))


def can_start(name, o):
    """Whether this PyTorch, which may be old, has the optimizer so."""
    if name == "NAdam" and not MODERN:      # it took the product a step late
        return False
    try:
        size = (2, 2) if name == "Muon" else (2,)
        p = torch.nn.Parameter(torch.ones(size))
        p.grad = torch.ones(size)
        opt = getattr(torch.optim, name)([p], **o)
        opt.step(lambda: torch.ones(()))
        return has_optimizer(name, o)
    except (AttributeError, TypeError, RuntimeError):
        return False


# Where a second group comes from: both are there from the beginning; it is
# added after 2 steps, and when the training is resumed before the schedule is
# made, or after.
FIRST, BEFORE, AFTER = "first", "before", "after"
# schedules to which PyTorch lets a group come
OPEN = ("StepLR", "MultiStepLR", "ExponentialLR", "ConstantLR", "LinearLR",
        "PolynomialLR")


def schedule_cases():
    for s in SCHEDULES:
        for n in 0, 3, 7:
            yield "SGD", dict(lr=0.1, momentum=0.9), s, n, FIRST
        if MODERN or s[0] != "CyclicLR":
            yield "Adam", dict(lr=0.1), s, 4, FIRST
        if s[0] in OPEN and MODERN:
            for late in BEFORE, AFTER:
                yield "SGD", dict(lr=0.1, momentum=0.9), s, 5, late
    for late in BEFORE, AFTER:
        yield "Adam", dict(lr=0.1), None, 4, late


# optimizer, options, schedule, steps before the first file, second group
CASES = ([(name, o, None, n, FIRST)
          for name, o in OPTIMIZERS + list(flags()) if can_start(name, o)
          for n in (1, 7)] + list(schedule_cases()))

LUA = MAKE + """
local nn = nacre.nn
local folder = arg[1]
local X, Y = table.unpack(nacre.load(folder .. "/data.pt"))
local function run(number, name, options, first, late, ...)
  local path = ("%s/%d.pt"):format(folder, number)
  -- PyTorch 1 keeps the functions of some schedules
  local c = nacre.load(path, {unknown = "table"})
  local net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
  net:double():load_state_dict(c.net)
  local p = net:parameters()
  local second = {params = {p[3], p[4]}, lr = 0.02}
  second.params = trained(name, second.params)
  local groups = name == "LBFGS" and p or
                 {{params = trained(name, {p[1], p[2]})}, second}
  if late ~= "first" then groups[2] = nil end
  local opt = optim[name](groups, options)
  if late == "before" then opt:add_param_group(second) end
  local schedules, list = make(opt, ...), {}
  if late == "after" then opt:add_param_group(second) end
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


class Training:
    def __init__(self, case, saved=None):
        name, o, schedule, _, self.late = case
        torch.manual_seed(1)
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(),
                                       torch.nn.Linear(6, 3)).double()
        p = list(self.net.parameters())
        groups = p if name == "LBFGS" else [
            dict(params=trained(name, p[:2])),
            dict(params=trained(name, p[2:]), lr=0.02)]
        self.opt = getattr(torch.optim, name)(
            groups if self.late == FIRST else groups[:1], **o)
        if saved and self.late == BEFORE:
            self.opt.add_param_group(groups[1])
        self.schedules = make(self.opt, *schedule or ())
        self.second = groups[-1]
        if saved and self.late == AFTER:
            self.opt.add_param_group(groups[1])
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
            if k == 2 and self.late != FIRST:
                self.opt.add_param_group(self.second)

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


def differs(case, got, wanted):
    single = torch.get_default_dtype() == torch.float32
    tolerance = (TOLERANCES_SINGLE if single else TOLERANCES).get(case[0],
                                                                  TOLERANCE)
    return len(got) != len(wanted) or not all(
        abs(a - b) <= tolerance * max(abs(b), 1e-3)
        for a, b in zip(got, wanted))


def kinds(states):
    """What the states of parameters are made of.  PyTorch makes a tensor of a
    number."""
    return {i: {key: (v.dtype, v.shape) if getattr(v, "shape", ()) else "number"
                for key, v in s.items() if v is not None}
            for i, s in states.items() if s}


def is_ours(case, ours, theirs):
    """Whether a state of Nacre is made as that of PyTorch."""
    if case[0] == "LBFGS" or not MODERN:
        return True             # numbers instead of tensors, which are taken
    for a, b in zip(ours["param_groups"], theirs["param_groups"]):
        if a["params"] != b["params"] or \
           {k for k, v in b.items() if v is not None and v is not False} - \
           set(a):
            return False
    return all(isinstance(s.get("step", torch.ones(())), torch.Tensor)
               for s in ours["state"].values()) and \
        kinds(ours["state"]) == kinds(theirs["state"])


class Trainings:
    """Those of all cases, with files in a folder."""
    def __init__(self, folder):
        self.folder, self.text, self.wanted, self.bad = folder, LUA, {}, 0
        torch.manual_seed(0)
        self.data = [torch.randn(16, 4).double(), torch.randn(16, 3).double()]
        torch.save(self.data, os.path.join(folder, "data.pt"))

    def path(self, i):
        return os.path.join(self.folder, f"{i}.pt")

    def begin(self, i, case):
        """Unless this PyTorch cannot write the state."""
        name, o, schedule, n, late = case
        training = Training(case)
        training.run(*self.data, 0, n)
        try:
            training.save(self.path(i))
        except (TypeError, AttributeError, pickle.PicklingError):
            return
        losses = training.run(*self.data, n, n + THERE)
        state = copy.deepcopy(training.opt.state_dict())
        self.wanted[i] = (losses, state, training.run(*self.data, n + THERE,
                                                      n + ALL))
        arguments = ", ".join(map(lua, schedule or ()))
        self.text += (f"try({i}, {lua(name)}, {lua(o)}, {n}, {lua(late)}"
                      f"{', ' + arguments if schedule else ''})\n")

    def run_there(self, nacre):
        script = os.path.join(self.folder, "script.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(self.text)
        run = subprocess.run([nacre, script, self.folder], capture_output=True,
                             text=True)
        sys.stdout.write(run.stderr)
        if run.returncode:
            print(f"nacre ended with {run.returncode}")
        return dict(line.split("\t") for line in run.stdout.splitlines())

    def judge(self, i, case, line):
        losses, state, rest = self.wanted[i]
        try:
            there = list(map(float, line.split()))
            saved = torch.load(self.path(i))
            back = Training(case, saved).run(*self.data, case[3] + THERE,
                                             case[3] + ALL)
        except Exception as e:      # of float(), or of PyTorch
            return f"{line} {e}"
        if differs(case, there, losses):
            return "other numbers in Nacre"
        if not is_ours(case, saved["opt"], state):
            return f"a state made otherwise: {saved['opt']}, not {state}"
        if differs(case, back, rest):
            return "other numbers back in PyTorch"
        return None


def trainings(nacre, cases):
    with tempfile.TemporaryDirectory() as folder:
        all_ = Trainings(folder)
        for i, case in enumerate(cases):
            all_.begin(i, case)
        lines = all_.run_there(nacre)
        bad = 0
        for i in all_.wanted:
            why = all_.judge(i, cases[i], lines.get(str(i), "nothing"))
            bad += why is not None
            if why:
                print(f"{cases[i]}: {why}")
        print(f"{len(all_.wanted)} of {len(cases)} trainings, default dtype "
              f"{torch.get_default_dtype()}, {bad} differ")
        return bad or not all_.wanted


OTHERS = """
local c = nacre.load(arg[1])
local net = nacre.nn.Linear(3, 2):double()
local mean = nacre.optim.swa_utils.AveragedModel(net, EMA)
mean:load_state_dict(c.mean)
net:load_state_dict(c.net)
for k = 1, 3 do
  nacre.no_grad(function() net.weight:mul_(0.9) net.bias:add_(k) end)
  mean:update_parameters(net)
end
local scaler = nacre.amp.GradScaler("cpu")
if next(c.scaler) then scaler:load_state_dict(c.scaler) end
nacre.save(arg[1], {net = net, mean = mean, scaler = next(c.scaler) and scaler})
"""


def others(nacre):
    """Averages of a network, and the scale of losses."""
    old = not hasattr(swa_utils, "get_ema_multi_avg_fn")
    average = {} if old else dict(
        multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.8))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=7) \
        if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler") else None

    def updates(net, mean):
        for k in range(1, 4):
            with torch.no_grad():
                net.weight.mul_(0.9)
                net.bias.add_(k)
            mean.update_parameters(net)

    net = torch.nn.Linear(3, 2).double()
    mean = swa_utils.AveragedModel(net, **average)
    if scaler:
        scaler.load_state_dict(dict(scaler.state_dict(), _growth_tracker=5))
    updates(net, mean)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.pt")
        torch.save(dict(net=net.state_dict(), mean=mean.state_dict(),
                        scaler=scaler.state_dict() if scaler else {}), path)
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(OTHERS.replace("EMA", "{}" if old else "{decay = 0.8}"))
        run = subprocess.run([nacre, script, path], capture_output=True,
                             text=True)
        sys.stdout.write(run.stderr)
        saved = torch.load(path)
    other = torch.nn.Linear(3, 2).double()
    resumed = swa_utils.AveragedModel(other, **average)
    other.load_state_dict(saved["net"])
    resumed.load_state_dict(saved["mean"])
    if scaler and saved["scaler"] != scaler.state_dict():
        print(f"GradScaler: {saved['scaler']}")
        return 1
    updates(other, resumed)
    updates(net, mean)
    updates(net, mean)
    for key, v in mean.state_dict().items():
        if not torch.allclose(resumed.state_dict()[key], v, rtol=1e-12):
            print(f"AveragedModel: {key} is {resumed.state_dict()[key]}, not "
                  f"{v}")
            return 1
    return 0


def missing():
    """Classes of PyTorch that no case takes."""
    taken = {name for name, _ in OPTIMIZERS} | {s[0] for s in SCHEDULES} | {
        m[0] for s in SCHEDULES if not isinstance(s[1], dict) for m in s[1]}
    known = [torch.optim.Optimizer, getattr(lr_scheduler, "LRScheduler",
                                            lr_scheduler._LRScheduler)]
    # of tensors that Nacre does not have; of matrices alone
    left_out = {"SparseAdam", "Muon", "LRScheduler"}
    found = {name for space in (torch.optim, lr_scheduler)
             for name, c in vars(space).items() if inspect.isclass(c) and
             issubclass(c, tuple(known)) and c not in known}
    return {name for name in found - taken - left_out if name[0] != "_"}


def main():
    warnings.filterwarnings("ignore")
    bad = others(sys.argv[1])
    if missing():
        bad += 1
        print(f"no case has {missing()}")
    for dtype in torch.float64, torch.float32:
        torch.set_default_dtype(dtype)
        bad += trainings(sys.argv[1], CASES)
    sys.exit(bad > 0)


main()
