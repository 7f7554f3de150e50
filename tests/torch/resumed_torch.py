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
from torch.optim import lr_scheduler

from optimizer_cases import MAKE, OPTIMIZERS, SCHEDULES, lua, make

THERE, ALL = 5, 12              # steps in Nacre, steps after the first file
# Relative error.  The states of some optimizers have numbers in float32.
TOLERANCE = 1e-6
# 200 steps of it are off by more than rounding
OPTIMIZERS = OPTIMIZERS + [
    ("NAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True,
                   momentum_decay=0.01))]
# two schedules that do not know of each other
SCHEDULES = SCHEDULES + [
    ("", [("StepLR", dict(step_size=3)), ("ExponentialLR", dict(gamma=0.9))])]

# optimizer, options, schedule, steps before the first file
CASES = ([(name, o, None, n) for name, o in OPTIMIZERS for n in (1, 4)] +
         [("SGD", dict(lr=0.1, momentum=0.9), s, n) for s in SCHEDULES
          for n in (0, 3, 8)] +
         [("Adam", dict(lr=0.1), s, 4) for s in SCHEDULES])

LUA = MAKE + """
local nn = nacre.nn
local folder = arg[1]
local X, Y = table.unpack(nacre.load(folder .. "/data.pt"))
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
        self.schedules = make(self.opt, *schedule or ())
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
