# SPDX-License-Identifier: MIT
"""nacre.optim against torch.optim: the losses of 200 steps of a small network
in float64, and the rates of every schedule.

    optimizers_torch.py NACRE [--device DEVICE]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

STEPS = 200
# Relative error of the losses.  PyTorch 1 kept the product of NAdam's momenta
# in float32.
TOLERANCE = 1e-8
TOLERANCES = {} if hasattr(torch, "compile") else {"NAdam": 1e-2}

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
    ("OneCycleLR", dict(max_lr=1.0, total_steps=30)),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=30, three_phase=True,
                        anneal_strategy="linear"))]
EPOCHS = 20


def lua(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (tuple, list)):
        return "{" + ", ".join(map(lua, v)) + "}"
    return f'"{v}"' if isinstance(v, str) else repr(v)


def options(o):
    return "{" + ", ".join(f"{k}={lua(v)}" for k, v in o.items()) + "}"


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
local function rates(name, options)
  local opt = nacre.optim.SGD({nacre.ones(1):requires_grad_()},
                              {lr = 0.1, momentum = 0.9})
  local schedule = nacre.optim.lr_scheduler[name](opt, options)
  local list = {}
  for i = 1, EPOCHS do
    list[i] = ("%.17g %.17g"):format(opt.param_groups[1].lr,
                                     opt.param_groups[1].momentum)
    schedule:step()
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


def rates(name, o):
    opt = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1,
                          momentum=0.9)
    schedule = getattr(torch.optim.lr_scheduler, name)(opt, **o)
    out = []
    for _ in range(EPOCHS):
        out += [opt.param_groups[0]["lr"], opt.param_groups[0]["momentum"]]
        opt.step()
        schedule.step()
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
    cases = [("losses", n, o) for n, o in OPTIMIZERS] + \
            [("rates", n, o) for n, o in SCHEDULES]
    text = LUA.replace("LBFGS_STEPS", str(LBFGS_STEPS)) \
              .replace("STEPS", str(STEPS)).replace("EPOCHS", str(EPOCHS))
    text += "".join(f'{f}("{n}", {options(o)})\n' for f, n, o in cases)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.npz")
        numpy.savez(path, X=X.numpy(), Y=Y.numpy(), **{
            k: v.numpy() for k, v in network().state_dict().items()})
        script = os.path.join(folder, "script.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(text)
        run = subprocess.run([given.nacre, script, path, given.device],
                             capture_output=True, text=True)
    sys.stdout.write(run.stderr)
    lines = run.stdout.splitlines()
    bad = abs(len(lines) - len(cases))
    for (f, name, o), line in zip(cases, lines):
        expected = losses(name, o, X, Y) if f == "losses" else rates(name, o)
        got = list(map(float, line.split()))
        error = max(abs(a - b) / max(abs(b), 1e-3)
                    for a, b in zip(got, expected))
        if not error < TOLERANCES.get(name, TOLERANCE):
            bad += 1
            print(f"{name} {options(o)}: relative error {error:.1e}")
    print(f"optimizers_torch: {len(lines)} of {len(cases)}, {bad} differ")
    sys.exit(bad > 0)


main()
