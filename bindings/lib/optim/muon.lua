-- SPDX-License-Identifier: MIT
-- muon.lua - nacre.optim.Muon: Keller Jordan's optimizer of matrices, whose
-- update is the momentum with singular values of about 1. As in PyTorch the
-- iteration that makes them so computes in bfloat16.
local all = ...
all.require "nacre.optimizers"
local fail, check_range = all.fail, all.check_range

local function check_coefficients(op, c)
  local good = type(c) == "table" and #c == 3
  for i = 1, good and 3 or 0 do good = good and type(c[i]) == "number" end
  if not good then
    fail(op, "ns_coefficients must be a list of three numbers")
  end
end

local RATES <const> = {"original", "match_rms_adamw", "spectral_unclamped"}

local function check_rate(op, name)
  if name == nil then return end
  for _, known in ipairs(RATES) do
    if name == known then return end
  end
  local near = type(name) == "string" and all.nearest(name, RATES)
  fail(op, ("adjust_lr_fn is one of %s, not '%s'"):format(
             table.concat(RATES, ", "), tostring(name)),
       near and ('adjust_lr_fn = "%s"'):format(near) or nil)
end

local function check_parameters(op, params)
  for _, p in ipairs(params or {}) do
    if p:dim() ~= 2 then
      fail(op, "it optimizes matrices, and {param} is none: AdamW takes all "
               .. "others", nil, "param", p)
    elseif p:is_complex() then
      fail(op, "{param} is complex", nil, "param", p)
    end
  end
end

-- What the learning rate is multiplied by for a matrix [rows x columns].
local function ratio(name, rows, columns)
  if name == "match_rms_adamw" then
    return 0.2 * math.sqrt(math.max(rows, columns))
  end
  local r = rows / columns
  return math.sqrt(name == "spectral_unclamped" and r or math.max(1, r))
end

-- The matrix with its singular values moved to about 1, by steps of Newton and
-- Schulz with a polynomial of degree 5.
local function orthogonal(g, o)
  local a, b, c = table.unpack(o.ns_coefficients)
  local tall = g:size(1) > g:size(2)
  local x = g:to "bfloat16"
  if tall then x = x:t() end
  x = x / x:norm():clamp {min = o.eps}
  for _ = 1, o.ns_steps do
    local gram = x:mm(x:t())
    local update = nacre.addmm(gram, gram, gram, {beta = b, alpha = c})
    x = nacre.addmm(x, update, x, {beta = a})
  end
  return tall and x:t() or x
end

all.optimizer("Muon",
  "lr:num=1e-3, weight_decay:num=0.1, momentum:num=0.95, nesterov:bool=true, "
  .. "ns_coefficients:any=nil, eps:num=1e-7, ns_steps:int=5, "
  .. "adjust_lr_fn:any=nil",
  "for matrices: the momentum, its singular values moved to about 1; "
  .. "ns_coefficients are {3.4445, -4.775, 2.0315}, adjust_lr_fn is original, "
  .. "match_rms_adamw or spectral_unclamped", {
  keeps = {"momentum_buffer"}, steps = false,
  optional = {adjust_lr_fn = true},
  defaults = function(o)
    o.ns_coefficients = o.ns_coefficients or {3.4445, -4.7750, 2.0315}
  end,
  check = function(op, o)
    for _, key in ipairs {"lr", "weight_decay", "momentum", "eps"} do
      check_range(op, o, key)
    end
    check_coefficients(op, o.ns_coefficients)
    if o.ns_steps < 0 or o.ns_steps >= 100 then
      fail(op, ("ns_steps is %d, but must be from 0 to below 100")
               :format(o.ns_steps))
    end
    check_rate(op, o.adjust_lr_fn)
    check_parameters(op, o.params)
  end,
  update = function(_, p, g, s, o)
    local m = s.momentum_buffer or nacre.zeros_like(g)
    all.check_tensor("step", m, "the state's momentum_buffer")
    s.momentum_buffer = m:lerp_(g, 1 - o.momentum)
    local update = orthogonal(o.nesterov and g:lerp(m, o.momentum) or m, o)
    local rate = o.lr * ratio(o.adjust_lr_fn, p:size(1), p:size(2))
    p:mul_(1 - o.lr * o.weight_decay):add_(update:to(p.dtype), {alpha = -rate})
  end})
