-- SPDX-License-Identifier: MIT
-- stochastic.lua - functions of nacre.nn.functional that draw random numbers:
-- dropout, random slopes, random choices.
local all = ...
all.require "nacre.checks"
local fail = all.fail
local check_float, check_dims = all.check_float, all.check_dims

local define = all.definer "nn.functional."

-- ---- dropout (Srivastava et al. 2014)

local function check_probability(op, p)
  if not (p >= 0 and p <= 1) then
    fail(op, ("p is %g, but must be from 0 to 1"):format(p))
  end
end

-- Multiplies x by a random mask of shape `size', which broadcasts. Fails if p
-- is outside 0 to 1.
local function drop(op, x, p, training, size)
  check_probability(op, p)
  if not training or p == 0 then return x end
  if p == 1 then return x * 0 end
  local keep = nacre.rand(size, {dtype = "float32", device = x.device}):ge(p)
  return x * (keep:to(x.dtype) / (1 - p))
end

all.drop = drop

define("dropout", "input:tensor, p:num=0.5, training:bool=true",
       "elements become 0 with probability p, the others grow by 1/(1-p)",
       function(x, p, training) return drop("dropout", x, p, training,
                                               x:size()) end)

-- dropout of whole channels: the mask has size 1 in the last nd dimensions.
local function channel_dropout(op, nd)
  return function(x, p, training)
    check_dims(op, x, "input", nd + 1, nd + 2)
    local size = x:size()
    for i = #size - nd + 1, #size do size[i] = 1 end
    return drop(op, x, p, training, size)
  end
end

define("dropout1d", "input:tensor, p:num=0.5, training:bool=true",
       "dropout of whole channels [n x c x l]", channel_dropout("dropout1d", 1))
define("dropout2d", "input:tensor, p:num=0.5, training:bool=true",
       "dropout of whole channels [n x c x h x w]",
       channel_dropout("dropout2d", 2))
define("dropout3d", "input:tensor, p:num=0.5, training:bool=true",
       "dropout of whole channels [n x c x d x h x w]",
       channel_dropout("dropout3d", 3))

-- What SELU tends to for large negative numbers.
local SELU_FLOOR = -1.7580993408473766

-- Dropout that keeps mean and variance of what SELU gives (Klambauer et al.
-- 2017): elements become SELU_FLOOR, then all are scaled and shifted. The mask
-- has this size and broadcasts.
local function alpha_drop(op, x, p, training, size)
  check_probability(op, p)
  if not training or p == 0 then return x end
  if not x:is_complex() then check_float(op, x, "input") end
  if p == 1 then return x * 0 end
  local scale = ((1 - p) * (1 + p * SELU_FLOOR ^ 2)) ^ -0.5
  local keep = nacre.rand(size, {dtype = "float32", device = x.device})
               :ge(p):to(x.dtype)
  local shift = (1 - keep) * (scale * SELU_FLOOR) - scale * p * SELU_FLOOR
  return x * (keep * scale) + shift
end

define("alpha_dropout", "input:tensor, p:num=0.5, training:bool=false",
       "dropout for SELU: keeps mean 0 and variance 1",
function(x, p, training)
  return alpha_drop("alpha_dropout", x, p, training, x:size())
end)

define("feature_alpha_dropout", "input:tensor, p:num=0.5, training:bool=false",
       "alpha_dropout of whole channels [n x c x ...]",
function(x, p, training)
  local op = "feature_alpha_dropout"
  if training then all.check_min_dims(op, x, "input", 2) end
  local size = x:size()
  for d = 3, #size do size[d] = 1 end
  return alpha_drop(op, x, p, training, size)
end)

-- ---- random slopes and choices

-- Xu et al. 2015. Fails for lower above upper.
define("rrelu",
       "input:tensor, lower:num=0.125, upper:num=0.3333333333333333, "
       .. "training:bool=false",
       "leaky_relu with a random slope from lower to upper for each element; "
       .. "not training: their mean",
function(x, lower, upper, training)
  local op = "rrelu"
  check_float(op, x, "input")
  if not (lower <= upper) then
    fail(op, ("lower is %g, above upper, %g"):format(lower, upper))
  end
  if not training then return nacre.leaky_relu(x, (lower + upper) / 2) end
  local slope = nacre.rand(x:size(), {dtype = x.dtype, device = x.device})
  return nacre.where(x:ge(0), x, x * (slope * (upper - lower) + lower))
end)
all.alias("rrelu", all.functions.nn.functional.rrelu)

-- Jang et al. 2016. Fails for tau that is not above 0.
define("gumbel_softmax",
       "logits:tensor, tau:num=1, hard:bool=false, dim:dim=-1",
       "a random class by its logits: softmax((logits + noise)/tau); hard: 1 "
         .. "for the largest, 0 for the others, with the gradient of the soft",
function(x, tau, hard, dim)
  local op = "gumbel_softmax"
  check_float(op, x, "logits")
  if not (tau > 0) then
    fail(op, ("tau is %g, but must be above 0"):format(tau))
  end
  local noise = -nacre.empty_like(x:detach()):exponential_():log()
  local soft = ((x + noise) / tau):softmax(dim)
  if not hard then return soft end
  local at = soft:argmax(dim, true)
  local one = nacre.zeros_like(soft:detach()):scatter(dim, at, 1)
  return one - soft:detach() + soft
end)
