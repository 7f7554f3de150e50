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
from optimizer_cases import (MAKE, OPTIMIZERS, SCHEDULES, has_optimizer, lua,
                             make, trained)

STEPS = 200
# Relative error of the losses.  PyTorch 1 kept the product of NAdam's momenta
# in float32.
TOLERANCE = 1e-8
# Muon computes in bfloat16, where a sum in another order may be rounded to the
# next number.
TOLERANCES = {"Muon": 1e-2, **({} if hasattr(torch, "compile")
                               else {"NAdam": 1e-2})}
# A search on a line is as exact as its loss: later steps differ by rounding
LBFGS_STEPS = 12
EPOCHS, SAVED_AT = 48, 8
# Rates below 0, with which no training goes on
SCHEDULES = SCHEDULES + [
    ("ChainedScheduler", [
        ("CosineAnnealingWarmRestarts", dict(T_0=5, eta_min=0.01)),
        ("CosineAnnealingLR", dict(T_max=6, eta_min=0.02)),
        ("LinearLR", dict(total_iters=9))])]


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(),
                               torch.nn.Linear(16, 3))


LUA = MAKE + """
local nn, data, device = nacre.nn, nacre.load(arg[1]), arg[2]
local X, Y = data.X:to(device), data.Y:to(device)
local state = {}
for k, v in pairs(data) do if k:find "%." then state[k] = v end end
local function losses(name, options)
  local net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
  net:double():load_state_dict(state)
  local opt, list = nacre.optim[name](trained(name, net:to(device):parameters()),
                                      options), {}
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
-- Saves the state, and loads it into the state of others.
local function resumed(opt, schedule, ...)
  nacre.save(arg[3], {opt = opt, schedule = schedule})
  local saved = nacre.load(arg[3])
  opt = optimizer()
  schedule = make(opt, ...)[1]
  opt:load_state_dict(saved.opt)
  schedule:load_state_dict(saved.schedule)
  return opt, schedule
end
local function rates(...)
  local opt = optimizer()
  local schedule, name, list = make(opt, ...)[1], ..., {}
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
    opt = getattr(torch.optim, name)(trained(name, net.parameters()), **o)

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


def rates(name, *arguments):
    """None if this PyTorch cannot copy the state of the schedule."""
    opt, out = optimizer(), []
    schedule, = make(opt, name, *arguments)
    for i in range(1, EPOCHS + 1):
        if i == SAVED_AT:
            try:
                saved = [copy.deepcopy(v.state_dict()) for v in (opt, schedule)]
            except TypeError:           # a weak reference to a method
                return None
            opt = optimizer()
            schedule, = make(opt, name, *arguments)
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
        if has_optimizer(name, o):
            cases.append((f'losses("{name}", {lua(o)})',
                          losses(name, o, X, Y), name))
    for schedule in SCHEDULES:
        cases.append((f"rates({', '.join(map(lua, schedule))})",
                      rates(*schedule), schedule[0]))
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
