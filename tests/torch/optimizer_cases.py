# SPDX-License-Identifier: MIT
"""Optimizers and schedules with options, which tests compare with PyTorch, and
how to make a schedule in both programs."""
import inspect
import os
import sys

import torch
from torch.optim import lr_scheduler, swa_utils

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import Lua, lua, plain  # noqa: E402  pylint: disable=C0413

HALF = Lua(lambda t: 0.5 + 1 / (t + 1), "half_more")

OPTIMIZERS = [
    ("SGD", dict(lr=0.05)), ("SGD", dict(lr=0.05, momentum=0.9)),
    ("SGD", dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("SGD", dict(lr=0.05, momentum=0.9, dampening=0.3)),
    ("SGD", dict(lr=1e-4, maximize=True)),
    ("SGD", dict(lr=0.001, momentum=0.5, maximize=True)),
    ("Adam", dict(lr=0.01)),
    ("Adam", dict(lr=0.01, amsgrad=True, weight_decay=0.1)),
    ("AdamW", dict(lr=0.01, betas=(0.8, 0.99))),
    ("AdamW", dict(lr=0.01, amsgrad=True, maximize=True)),
    ("Adamax", dict(lr=0.01, weight_decay=0.1)), ("NAdam", dict(lr=0.002)),
    ("RAdam", dict(lr=0.01)), ("RAdam", dict(lr=0.01, weight_decay=0.01)),
    ("RAdam", dict(lr=0.01, weight_decay=0.1, decoupled_weight_decay=True)),
    ("RMSprop", dict(lr=0.01)),
    ("RMSprop", dict(lr=0.01, centered=True, momentum=0.9)),
    ("RMSprop", dict(lr=0.01, momentum=0.5, weight_decay=0.1)),
    ("RMSprop", dict(lr=0.01, momentum=0.5, weight_decay=0.1, alpha=0.9)),
    ("Adagrad", dict(lr=0.1, lr_decay=0.01)),
    ("Adagrad", dict(lr=0.1, initial_accumulator_value=0.5)),
    ("Adadelta", dict(lr=1.0)),
    ("Adadelta", dict(lr=0.5, rho=0.8, weight_decay=0.1)), ("Rprop", dict()),
    ("Rprop", dict(lr=0.05, step_sizes=(1e-4, 0.1), etas=(0.4, 1.3))),
    ("ASGD", dict()),
    ("ASGD", dict(lr=0.05, lambd=1e-3, t0=3, weight_decay=0.01)),
    ("ASGD", dict(lr=0.05, lambd=1e-3, t0=50, weight_decay=0.01)),
    ("Adafactor", dict()),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, beta2_decay=-0.5)),
    ("Adafactor", dict(lr=0.1, weight_decay=0.1, d=2.0, eps=(1e-20, 1e-2))),
    ("Muon", dict(lr=0.01)),
    ("Muon", dict(lr=0.02, nesterov=False, weight_decay=0.01, momentum=0.9,
                  adjust_lr_fn="match_rms_adamw")),
    ("Muon", dict(lr=0.02, ns_steps=3, ns_coefficients=(3.0, -4.0, 2.0),
                  adjust_lr_fn="spectral_unclamped")),
    ("LBFGS", dict(lr=0.1, max_iter=4, history_size=3)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", max_iter=5)),
    ("LBFGS", dict(line_search_fn="strong_wolfe", lr=30.0, max_iter=3))]

# Name and options; or name, members, and for SequentialLR the milestones
SCHEDULES = [
    ("StepLR", dict(step_size=3)), ("StepLR", dict(step_size=3, gamma=0.5)),
    ("MultiStepLR", dict(milestones=[2, 5, 5, 9], gamma=0.5)),
    ("ExponentialLR", dict(gamma=0.9)), ("ConstantLR", dict(factor=0.2)),
    ("LinearLR", dict(start_factor=0.1, total_iters=7)),
    ("PolynomialLR", dict(total_iters=8, power=2.0)),
    ("CosineAnnealingLR", dict(T_max=5, eta_min=0.01)),
    ("CosineAnnealingLR", dict(T_max=4)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2, eta_min=0.01)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3)),
    ("OneCycleLR", dict(max_lr=1.0, total_steps=60)),
    ("OneCycleLR", dict(max_lr=[0.5, 0.2], epochs=12, steps_per_epoch=5,
                        three_phase=True, anneal_strategy="linear")),
    ("LambdaLR", dict(lr_lambda=HALF)),
    ("MultiplicativeLR", dict(lr_lambda=HALF)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=3)),
    ("CyclicLR", dict(base_lr=[0.01, 0.02], max_lr=0.2, step_size_up=3,
                      step_size_down=2, mode="triangular2")),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4, gamma=0.9,
                      mode="exp_range", base_momentum=0.7)),
    ("CyclicLR", dict(base_lr=0.01, max_lr=0.2, step_size_up=4, scale_fn=HALF,
                      scale_mode="iterations")),
    ("SWALR", dict(swa_lr=0.5)),
    ("SWALR", dict(swa_lr=0.01, anneal_epochs=3, anneal_strategy="linear")),
    ("SWALR", dict(swa_lr=0.01, anneal_epochs=0)),
    ("ReduceLROnPlateau", dict(factor=0.5, patience=1, min_lr=[1e-3, 0.05])),
    ("ReduceLROnPlateau", dict(factor=0.5, patience=2, min_lr=[1e-3, 0.05])),
    ("ReduceLROnPlateau", dict(mode="max", patience=0, cooldown=2, factor=0.7,
                               threshold=0.1, threshold_mode="abs")),
    ("ChainedScheduler", [("ConstantLR", dict(factor=0.2, total_iters=3)),
                          ("ExponentialLR", dict(gamma=0.9))]),
    ("ChainedScheduler", [("StepLR", dict(step_size=3)),
                          ("MultiplicativeLR", dict(lr_lambda=HALF))]),
    ("ChainedScheduler", [("StepLR", dict(step_size=3)),
                          ("LambdaLR", dict(lr_lambda=HALF))]),
    ("ChainedScheduler", [("CosineAnnealingLR", dict(T_max=6, eta_min=0.001)),
                          ("LinearLR", dict(total_iters=9))]),
    ("SequentialLR", [("LinearLR", dict(total_iters=4)),
                      ("CosineAnnealingLR", dict(T_max=16))], [4])]
if hasattr(torch, "compile"):   # PyTorch 1 went on from the first one's rate
    SCHEDULES += [
        ("SequentialLR", [("MultiplicativeLR", dict(lr_lambda=HALF)),
                          ("MultiplicativeLR", dict(lr_lambda=HALF)),
                          ("ExponentialLR", dict(gamma=0.9))], [4, 7]),
        ("SequentialLR", [("MultiplicativeLR", dict(lr_lambda=HALF)),
                          ("CosineAnnealingWarmRestarts", dict(T_0=3)),
                          ("MultiStepLR", dict(milestones=[1, 3]))], [3, 7])]

# trained(name, params): those that the optimizer takes
# make(opt, name, options, milestones): a list of schedules, mostly one
MAKE = """
local optim = nacre.optim
local function trained(name, params)
  local list = {}
  for _, p in ipairs(params) do
    if name ~= "Muon" or p:dim() == 2 then list[#list + 1] = p end
  end
  return list
end
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
"""


def trained(name, params):
    """Those that the optimizer takes."""
    return [p for p in params if name != "Muon" or p.dim() == 2]


def has_optimizer(name, o):
    """Whether this PyTorch, which may be old, has the optimizer and options."""
    kind = getattr(torch.optim, name, None)
    return kind is not None and set(o) <= set(
        inspect.signature(kind).parameters)


def one(opt, name, o):
    return getattr(swa_utils if name == "SWALR" else lr_scheduler,
                   name)(opt, **plain(o))


def make(opt, name=None, o=None, milestones=None):
    """The same in PyTorch."""
    if name is None:
        return []
    if isinstance(o, dict):
        return [one(opt, name, o)]
    members = [one(opt, *m) for m in o]
    if name == "ChainedScheduler":
        return [lr_scheduler.ChainedScheduler(members)]
    if name == "SequentialLR":
        return [lr_scheduler.SequentialLR(opt, members, milestones)]
    return members
