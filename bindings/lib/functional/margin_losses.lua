-- SPDX-License-Identifier: MIT
-- margin_losses.lua - the losses of nacre.nn.functional that are 0 beyond a
-- margin. Conventions are those of losses.lua, which loads first.
local all = ...
all.require("nacre.checks", "nacre.losses")
local fail, check_float, loss = all.fail, all.check_float, all.loss
local reduce, sameshape, REDUCTION = loss.reduce, loss.sameshape, loss.REDUCTION

local define = all.definer "nn.functional."

define("hinge_embedding_loss",
       "input:tensor, target:tensor, margin:num=1, " .. REDUCTION,
       "x where target is 1, max(0, margin - x) where it is -1",
function(x, t, margin, reduction)
  return reduce(nacre._hinge_embedding(x, t:detach(), margin), reduction)
end)

define("margin_ranking_loss",
       "input1:tensor, input2:tensor, target:tensor, margin:num=0, "
       .. REDUCTION,
       "max(0, margin - target*(input1 - input2))",
function(a, b, t, margin, reduction)
  return reduce(nacre._margin_ranking(a, b, t, margin), reduction)
end)

define("soft_margin_loss", "input:tensor, target:tensor, " .. REDUCTION,
       "log(1 + exp(-target*input))",
function(x, t, reduction)
  sameshape("soft_margin_loss", x, t)
  return reduce(nacre._soft_margin(x, t), reduction)
end)

-- t over its largest element, and 1e-12 in the unit of the squares of that: the
-- squares do not overflow.
local function scaled(t)
  if t:dim() > 0 and t:size(-1) == 0 then return t, 1e-12 end
  local largest = t:detach():abs():amax(-1, true)
  largest = nacre.where(largest:eq(0), 1, largest)
  return t / largest, (1e-6 / largest:squeeze(-1)) ^ 2
end

-- May products of these sums of squares leave the range of float32?
local function has_extremes(squares)
  return all.may_be(squares:lt(1e15):logical_and(squares:gt(1e-15))
      :logical_not())
end

local function cosine(a, b)
  local least_a, least_b = 1e-12, 1e-12
  local of, by = (a * a):sum(-1), (b * b):sum(-1)
  if has_extremes(of) or has_extremes(by) then
    a, least_a = scaled(a)
    b, least_b = scaled(b)
    of, by = (a * a):sum(-1), (b * b):sum(-1)
  end
  return (a * b):sum(-1) / ((of + least_a) * (by + least_b)):sqrt()
end

define("cosine_embedding_loss",
       "input1:tensor, input2:tensor, target:tensor, margin:num=0, "
       .. REDUCTION,
       "1 - cos where target is 1, max(0, cos - margin) where it is -1",
function(a, b, t, margin, reduction)
  local cos = all.convert_back(cosine(all.widen(a), all.widen(b)), a)
  local y = nacre.where(t:eq(1), 1 - cos, 0) +
      nacre.where(t:eq(-1), (cos - margin):clamp(0), 0)
  return reduce(y, reduction)
end)

-- The loss of the distances: d(a, p), d(a, n), and d(p, n) with swap.
local function triplet(distance, a, p, n, margin, swap)
  local far = distance(a, n)
  if swap then far = far:minimum(distance(p, n)) end
  return (distance(a, p) - far + margin):clamp(0)
end

local function check_margin(op, margin)
  if margin <= 0 then
    fail(op, ("margin must be above 0, not %s"):format(margin))
  end
end

-- Distances are norms of order p along the last dimension; swap uses the
-- smaller of those from anchor and positive to negative.
define("triplet_margin_loss",
       "anchor:tensor, positive:tensor, negative:tensor, margin:num=1, "
       .. "p:num=2, eps:num=1e-6, swap:bool=false, " .. REDUCTION,
       "max(0, |anchor - positive| - |anchor - negative| + margin)",
function(a, p, n, margin, order, eps, swap, reduction)
  check_margin("triplet_margin_loss", margin)
  local function distance(x, y) return all.distance(x, y, order, eps) end
  return reduce(triplet(distance, a, p, n, margin, swap), reduction)
end)

define("triplet_margin_with_distance_loss",
       "anchor:tensor, positive:tensor, negative:tensor, "
       .. "distance_function:fn=nil, margin:num=1, swap:bool=false, "
       .. REDUCTION,
       "max(0, d(anchor, positive) - d(anchor, negative) + margin) for a "
         .. "function d, by default pairwise_distance",
function(a, p, n, distance, margin, swap, reduction)
  check_margin("triplet_margin_with_distance_loss", margin)
  distance = distance or all.functions.nn.functional.pairwise_distance
  return reduce(triplet(distance, a, p, n, margin, swap), reduction)
end)

define("multilabel_soft_margin_loss",
       "input:tensor, target:tensor, weight:tensor=nil, " .. REDUCTION,
       "mean over classes of binary_cross_entropy_with_logits",
function(x, t, weight, reduction)
  sameshape("multilabel_soft_margin_loss", x, t)
  local y = nacre._logits_entropy(x, t)
  return reduce(loss.apply_weight(y, weight):mean(-1), reduction)
end)

-- input [n x c], [c] or [] and target [n] or [] of int64. Fails for a class out
-- of 1 to c and for p other than 1 and 2.
define("multi_margin_loss",
       "input:tensor, target:tensor, p:int=1, margin:num=1, "
       .. "weight:tensor=nil, " .. REDUCTION,
       "mean over the other classes j of max(0, margin - x[target] + x[j])^p, "
       .. "times weight[target]",
function(x, target, p, margin, weight, reduction)
  local op = "multi_margin_loss"
  all.check_dims(op, x, "input", 0, 1, 2)
  check_float(op, x, "input")
  if x:dim() == 0 then x = x:reshape(1) end
  if p ~= 1 and p ~= 2 then fail(op, ("p is %d, not 1 or 2"):format(p)) end
  local rows, t, n, size = loss.flatten_classes(op, x, target, x)
  local _, class = loss.check_classes(op, t, n, math.mininteger, target)
  loss.checkweight(op, weight, n, x)
  local at = class:unsqueeze(2)
  local y = (margin - rows:gather(2, at) + rows):clamp(0) ^ p
  if weight then y = y * weight[class]:unsqueeze(2) end
  y = y:scatter(2, at, 0):sum(2) / n
  return reduce(y:reshape(size), reduction)
end)

-- input [n x c] or [c]; target, of the same shape, has the classes of each
-- sample from the front, and then 0 or -1. Fails for a class above c.
define("multilabel_margin_loss",
       "input:tensor, target:tensor, " .. REDUCTION,
       "sum over classes i of target and others j of max(0, 1 - x[i] + x[j]), "
       .. "divided by the number of classes",
function(x, target, reduction)
  local op = "multilabel_margin_loss"
  all.check_dims(op, x, "input", 1, 2)
  check_float(op, x, "input")
  sameshape(op, x, target)
  if target.dtype ~= "int64" then loss.fail_class_dtype(op, target) end
  local n = x:size(-1)
  if target:numel() > 0 and target:gt(n):any():item() then
    fail(op, ("class %d is outside the %d classes"):format(target:max():item(),
                                                             n),
         nil, "target", target)
  end
  local is_class = target:ge(1):to("int64"):cumprod(-1)
  local at = target:clamp(1, n)
  local others = nacre.zeros_like(is_class):scatter_add(-1, at, is_class):eq(0)
  local y = (1 - x:gather(-1, at):unsqueeze(-1) + x:unsqueeze(-2)):clamp(0)
  y = y * is_class:unsqueeze(-1) * others:unsqueeze(-2)
  return reduce(y:sum({-2, -1}) / n, reduction)
end)
