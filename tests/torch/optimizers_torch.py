# SPDX-License-Identifier: MIT
"""nacre.optim against torch.optim: the losses of 200 steps of a small network
in float64, and the rates of every schedule, which goes on from its state after
some epochs.

    optimizers_torch.py NACRE [--device DEVICE]
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch
from torch.optim import lr_scheduler, swa_utils

STEPS = 200
# Relative error of the losses.  PyTorch 1 kept the product of NAdam's momenta
# in float32.
TOLERANCE = 1e-8
TOLERANCES = {} if hasattr(torch, "compile") else {"NAdam": 1e-2}


class Lua:
    """A value that is written otherwise in Lua: in PyTorch it is `value`."""

    def __init__(self, value, text):
        self.value, self.text = value, text


HALF = Lua(lambda t: 0.5 + 1 / (t + 1), "function(t) return 0.5 + 1/(t + 1) end")

OPTIMIZERS = [
    ("SGD", dict(lr=0.05)), ("SGD", dict(lr=0.05, momentum=0.9)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-2)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3)),
    ("SGD", dict(lr=1e-4, maximize=True)),
    ("Adam", dict(lr=0.01)),
    ("Adam", dict(lr=0.01, amsgrad=True, weight_decay=0.01)),
    ("AdamW", dict(lr=0.01, betas=(0.8, 0.99))),
    ("Adamax", dict(lr=0.01, weight_decay=0.1)), ("NAdam", dict(lr=0.002)),
    ("RAdam", dict(lr=0.01)), ("RAdam", dict(lr=0.01, weight_decay=0.01)),
    ("RMSprop", dict(lr=0.01)),
    ("RMSprop", dict(lr=0.01, centered=True, momentum=0.9)),
    ("RMSprop", dict(lr=0.01, momentum=0.5, weight_decay=0.1)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.01)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.5)),
    ("Adadelta", dict(lr=1.0)),
    ("Adadelta", dict(lr=0.5, rho=0.8, weight_decay=0.1)),
    ("Rprop", dict()), ("Rprop", dict(lr=0.05, step_sizes=(1e-4, 0.1))),
    ("ASGD", dict()),
    ("ASGD", dict(lr=0.05, lambd=1e-3, t0=50, weight_decay=0.01)),
    ("Adafactor", dict()),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, beta2_decay=-0.5)),
    ("LBFGS", dict(lr=0.1, max_iter=4, history_size=5)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", max_iter=5)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", lr=30.0, max_iter=3))]
# A search on a line is as exact as its loss: later steps differ by rounding
LBFGS_STEPS = 12

SCHEDULES = [
    ("StepLR", dict(step_size=3, gamma=0.5)),
    ("MultiStepLR", dict(milestones=[2, 5], gamma=0.5)),
    ("ExponentialLR", dict(gamma=0.9)), ("ConstantLR", dict(factor=0.2)),
    ("LinearLR", dict(start_factor=0.1, total_iters=7)),
    ("PolynomialLR", dict(total_iters=8, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2, eta_min=0.01)),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=60)),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=60, three_phase=True,
                        anneal_strategy="linear")),
    ("LambdaLR", dict(lr_lambda=HALF)),
    ("MultiplicativeLR", dict(lr_lambda=HALF)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=3)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=3,
                      step_size_down=2, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4, gamma=0.9,
                      mode="exp_range", base_momentum=0.7)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4,
                      scale_fn=HALF, scale_mode="iterations")),
    ("SWALR", dict(swa_lr=0.5)),
    ("SWALR", dict(swa_lr=0.01, anneal_epochs=3, anneal_strategy="linear")),
    ("SWALR", dict(swa_lr=0.01, anneal_epochs=0)),
    ("ReduceLROnPlateau", dict(factor=0.5, patience=2, min_lr=[1e-3, 0.05])),
    ("ReduceLROnPlateau", dict(mode="max", patience=0, cooldown=2, factor=0.7,
                               threshold=0.1, threshold_mode="abs"))]

# several schedules of one optimizer
GROUPS = [
    ("ChainedScheduler", [("ConstantLR", dict(factor=0.2, total_iters=3)),
                          ("ExponentialLR", dict(gamma=0.9))], None),
    ("ChainedScheduler", [("StepLR", dict(step_size=3)),
                          ("MultiplicativeLR", dict(lr_lambda=HALF))], None),
    ("ChainedScheduler", [("StepLR", dict(step_size=3)),
                          ("LambdaLR", dict(lr_lambda=HALF))], None),
    ("ChainedScheduler", [
        ("CosineAnnealingWarmRestarts", dict(T_0=5, eta_min=0.01)),
        ("CosineAnnealingLR", dict(T_max=6, eta_min=0.02)),
        ("LinearLR", dict(total_iters=9))], None),
    ("SequentialLR", [("LinearLR", dict(total_iters=4)),
                      ("CosineAnnealingLR", dict(T_max=16))], [4])]
if hasattr(torch, "compile"):   # PyTorch 1 went on from the first one's rate
    GROUPS.append(
        ("SequentialLR", [("MultiplicativeLR", dict(lr_lambda=HALF)),
                          ("MultiplicativeLR", dict(lr_lambda=HALF)),
                          ("ExponentialLR", dict(gamma=0.9))], [4, 7]))
EPOCHS, SAVED_AT = 48, 8


def lua(v):
    if isinstance(v, Lua):
        return v.text
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (tuple, list)):
        return "{" + ", ".join(map(lua, v)) + "}"
    return f'"{v}"' if isinstance(v, str) else repr(v)


def options(o):
    return "{" + ", ".join(f"{k}={lua(v)}" for k, v in o.items()) + "}"


def plain(o):
    return {k: v.value if isinstance(v, Lua) else v for k, v in o.items()}


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(),
                               torch.nn.Linear(16, 3))


LUA = """
local nn, data, device = nacre.nn, nacre.load(arg[1]), arg[2]
local X, Y = data.X:to(device), data.Y:to(device)
local state = {}
for k, v in pairs(data) do if k:find "%." then state[k] = v end end
local function losses(name, options)
  local net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
  net:double():load_state_dict(state)
  local opt, list = nacre.optim[name](net:to(device), options), {}
  local function closure()
    local loss = nn.MSELoss()(net(X), Y)
    opt:zero_grad()
    loss:backward()
    return loss
  end
  for i = 1, name == "LBFGS" and LBFGS_STEPS or STEPS do
    list[i] = ("%.17g"):format(opt:step(closure):item())
  end
  print(table.concat(list, " "))
end
local function optimizer()
  local function p() return nacre.ones(1):requires_grad_() end
  return nacre.optim.SGD({{params = {p()}}, {params = {p()}, lr = 0.3}},
                         {lr = 0.1, momentum = 0.9})
end
local function member(opt, name, options)
  local space = name == "SWALR" and nacre.optim.swa_utils or
                nacre.optim.lr_scheduler
  return space[name](opt, options)
end
local function make(name, options, members)
  local opt, list = optimizer(), {}
  for i, m in ipairs(members or {}) do list[i] = member(opt, m[1], m[2]) end
  if name == "ChainedScheduler" then
    return opt, nacre.optim.lr_scheduler[name](list)
  elseif name == "SequentialLR" then
    return opt, nacre.optim.lr_scheduler[name](opt, list, options)
  end
  return opt, member(opt, name, options)
end
-- Saves the state, and loads it into the state of others.
local function resumed(opt, schedule, ...)
  nacre.save(arg[3], {opt = opt, schedule = schedule})
  local saved = nacre.load(arg[3])
  opt, schedule = make(...)
  opt:load_state_dict(saved.opt)
  schedule:load_state_dict(saved.schedule)
  return opt, schedule
end
local function rates(...)
  local opt, schedule = make(...)
  local name, list = ..., {}
  for i = 1, EPOCHS do
    if i == SAVED_AT then opt, schedule = resumed(opt, schedule, ...) end
    local groups = opt.param_groups
    list[i] = ("%.17g %.17g %.17g %d"):format(
      groups[1].lr, groups[2].lr, groups[1].momentum,
      name == "ChainedScheduler" and 0 or schedule.last_epoch)
    if name ~= "ReduceLROnPlateau" then schedule:step()
    else schedule:step(1 / (i + 3 * (i % 3))) end
  end
  print(table.concat(list, " "))
end
"""


def losses(name, o, X, Y):
    net, out = network(), []
    opt = getattr(torch.optim, name)(net.parameters(), **o)

    def closure():
        loss = torch.nn.functional.mse_loss(net(X), Y)
        opt.zero_grad()
        loss.backward()
        return loss
    for _ in range(LBFGS_STEPS if name == "LBFGS" else STEPS):
        out.append(opt.step(closure).item())
    return out


def optimizer():
    p, q = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    return torch.optim.SGD([dict(params=[p]), dict(params=[q], lr=0.3)],
                           lr=0.1, momentum=0.9)


def member(opt, name, o):
    return getattr(swa_utils if name == "SWALR" else lr_scheduler,
                   name)(opt, **plain(o))


def make(name, o, members=()):
    opt = optimizer()
    schedules = [member(opt, *m) for m in members]
    if name == "SequentialLR":
        return opt, lr_scheduler.SequentialLR(opt, schedules, o)
    if name == "ChainedScheduler":
        return opt, lr_scheduler.ChainedScheduler(schedules)
    return opt, member(opt, name, o)


def rates(name, *arguments):
    """None if this PyTorch cannot copy the state of the schedule."""
    opt, schedule = make(name, *arguments)
    out = []
    for i in range(1, EPOCHS + 1):
        if i == SAVED_AT:
            try:
                saved = [copy.deepcopy(v.state_dict()) for v in (opt, schedule)]
            except TypeError:           # a weak reference to a method
                return None
            opt, schedule = make(name, *arguments)
            opt.load_state_dict(saved[0])
            schedule.load_state_dict(saved[1])
        first, second = opt.param_groups
        out += [first["lr"], second["lr"], first["momentum"],
                getattr(schedule, "last_epoch", 0)]
        opt.step()
        schedule.step(*[1 / (i + 3 * (i % 3))] if name == "ReduceLROnPlateau"
                      else [])
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")
    torch.manual_seed(5)
    X, Y = torch.randn(64, 8), torch.randn(64, 3)
    cases = []
    for name, o in OPTIMIZERS:
        if hasattr(torch.optim, name):      # not in an old PyTorch
            cases.append((f'losses("{name}", {options(o)})',
                          losses(name, o, X, Y), name))
    for name, o in SCHEDULES:
        cases.append((f'rates("{name}", {options(o)})', rates(name, o), name))
    for name, members, milestones in GROUPS:
        list_text = ", ".join(f'{{"{n}", {options(o)}}}' for n, o in members)
        cases.append((f'rates("{name}", {lua(milestones or [])}, '
                      f'{{{list_text}}})',
                      rates(name, milestones, members), name))
    cases = [case for case in cases if case[1] is not None]
    text = LUA.replace("LBFGS_STEPS", str(LBFGS_STEPS)) \
              .replace("STEPS", str(STEPS)).replace("EPOCHS", str(EPOCHS)) \
              .replace("SAVED_AT", str(SAVED_AT))
    text += "".join(call + "\n" for call, _, _ in cases)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.npz")
        numpy.savez(path, X=X.numpy(), Y=Y.numpy(), **{
            k: v.numpy() for k, v in network().state_dict().items()})
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(text)
        saved = os.path.join(folder, "saved.safetensors")
        run = subprocess.run([given.nacre, script, path, given.device, saved],
                             capture_output=True, text=True)
    sys.stdout.write(run.stderr)
    lines = run.stdout.splitlines()
    bad = abs(len(lines) - len(cases))
    for (call, expected, name), line in zip(cases, lines):
        got = list(map(float, line.split()))
        error = max(abs(a - b) / max(abs(b), 1e-3)
                    for a, b in zip(got, expected))
        if not error < TOLERANCES.get(name, TOLERANCE):
            bad += 1
            print(f"{call}: relative error {error:.1e}")
    print(f"optimizers_torch: {len(lines)} of {len(cases)}, {bad} differ")
    sys.exit(bad > 0)


main()
