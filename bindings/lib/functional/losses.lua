-- SPDX-License-Identifier: MIT
-- losses.lua - the losses of nacre.nn.functional except ctc_loss and those with
-- margins (margin_losses.lua).
--
-- Classes count from 1. With reduction "none" a loss has one value for each
-- element or sample; with "mean" and "sum" it is a 0-d tensor. Definitions are
-- those of PyTorch.
local all = ...
all.require "nacre.checks"
local fail, check_float, like = all.fail, all.check_float, all.like

local define = all.definer "nn.functional."

local REDUCTION = "reduction:none|mean|sum=mean"

local function reduce(y, reduction)
  if reduction == "mean" then return y:mean() end
  return reduction == "sum" and y:sum() or y
end

-- True if two shapes differ only in dimensions of size 1.
local function same_without_ones(a, b)
  local function wide(t)
    local list = {}
    for _, n in ipairs(t:size()) do
      if n ~= 1 then list[#list + 1] = n end
    end
    return table.concat(list, "x")
  end
  return wide(a) == wide(b)
end

local function shape(t) return table.concat(t:size(), "x") end

-- Fails unless the shapes are equal: broadcasting would hide the mistake.
local function sameshape(op, a, b)
  if shape(a) ~= shape(b) then
    fail(op, ("{input} is [%s], {target} is [%s]: shapes must be equal")
             :format(shape(a), shape(b)),
         same_without_ones(a, b) and "{target}:reshape({input}:size())" or nil,
         "input", a, "target", b)
  end
end

-- t*x, and 0 where the weight t is 0, also of an infinite x: what has no weight
-- is not read. The gradients are those of the product.
local function weighted(t, x)
  return t * nacre.where(t:eq(0):logical_and(x:isinf()), 0, x)
end

-- ---- elementwise losses of the difference d = input - target

local function difference(name, extra, doc, f)
  define(name, "input:tensor, target:tensor, " .. REDUCTION .. extra, doc,
  function(x, t, reduction, ...)
    sameshape(name, x, t)
    local complex = x:is_complex() or t:is_complex()
    if complex and name ~= "l1_loss" then
      fail(name, ("{input} is %s, {target} is %s: the loss is of real numbers")
                 :format(x.dtype, t.dtype),
           "({input} - {target}):abs():square():mean() is one of complex ones",
           "input", x, "target", t)
    end
    if not complex and not x:is_floating_point() and
       not t:is_floating_point() then
      check_float(name, x, "input")
    end
    return reduce(f(x, t, ...), reduction)
  end)
end

difference("mse_loss", "", "(input - target)^2", nacre._squared_difference)
difference("l1_loss", "", "|input - target|", function(x, t)
  if x:is_complex() or t:is_complex() then return (x - t):abs() end
  return nacre._absolute_difference(x, t)
end)

difference("smooth_l1_loss", ", beta:num=1",
           "d^2/(2*beta) where |d| < beta, |d| - beta/2 elsewhere; d = input - "
           .. "target",
function(x, t, beta)
  if beta < 0 then
    fail("smooth_l1_loss", ("beta is %g, but must not be negative")
                           :format(beta))
  end
  if beta == 0 then return nacre._absolute_difference(x, t) end
  return nacre._smooth_l1(x, t, beta)
end)

-- Huber 1964.
difference("huber_loss", ", delta:num=1",
           "d^2/2 where |d| < delta, delta*(|d| - delta/2) elsewhere; d = "
           .. "input - target",
function(x, t, delta)
  if delta <= 0 then
    fail("huber_loss", ("delta is %g, but must be above 0"):format(delta))
  end
  return nacre._huber(x, t, delta)
end)

-- ---- classes

local function fail_class_dtype(op, t)
  fail(op, ("classes must be int64, not %s"):format(t.dtype), "{target}:long()",
       "target", t)
end

-- Returns the input as [n x classes], the target as [n], the number of classes,
-- and the shape of the target. Classes are dimension 2 of x, or its only one.
-- Fails unless the target is int64 and has the shape of x without the classes.
-- `given' is the input of the caller, for messages.
local function flatten_classes(op, x, t, given)
  if x:dim() == 2 and t:dim() == 1 and t.dtype == "int64" and
     x:size(1) == t:size(1) then
    return x, t, x:size(2), t:size()
  end
  if x:dim() == 0 then
    fail(op, "{input} has no dimension of classes", nil, "input", x)
  end
  local dim = x:dim() == 1 and 1 or 2
  local size = x:size()
  local n = table.remove(size, dim)
  if table.concat(size, "x") ~= shape(t) then
    fail(op, ("target is [%s], but an input of [%s] needs [%s]")
             :format(shape(t), shape(x), table.concat(size, "x")),
         nil, "input", given, "target", t)
  end
  if t.dtype ~= "int64" then
    fail_class_dtype(op, t)
  end
  return x:movedim(dim, -1):reshape(t:numel(), n), t:reshape(-1), n, size
end

-- Returns which targets count, and the targets with 1 for those that do not.
-- Fails for a class out of 1 to n, unless it is `ignore'. `target' is that of
-- the caller, for messages. On a GPU it does not wait for the values: a class
-- below 1 becomes 0, which the indexing that follows refuses, as one above n.
local function check_classes(op, t, n, ignore, target)
  local counts = t:ne(ignore)
  if t.is_cuda or nacre._in_dry_run() then
    return counts, nacre.where(counts, t:clamp(0), 1)
  end
  local wrong = counts:logical_and(t:lt(1):logical_or(t:gt(n)))
  if wrong:any():item() then
    local class = t[wrong][1]
    fail(op, class == 0 and "class 0: classes count from 1"
             or ("class %d is outside the %d classes"):format(class, n),
         class == 0 and "{target} + 1" or nil, "target", target)
  end
  return counts, nacre.where(counts, t, 1)
end

local function checkweight(op, weight, n, x)
  if weight and (weight:dim() ~= 1 or weight:size(1) ~= n) then
    fail(op,
         ("{weight} must have %s, one for each class"):format(all.elements(n)),
         nil, "weight", weight)
  end
  if weight then all.check_same_dtype(op, "input", x, "weight", weight) end
end

local function apply_weight(y, weight)
  return weight and y * weight or y
end

-- For margin_losses.lua.
all.loss = {REDUCTION = REDUCTION, reduce = reduce, sameshape = sameshape,
            flatten_classes = flatten_classes, check_classes = check_classes,
            checkweight = checkweight, apply_weight = apply_weight,
            fail_class_dtype = fail_class_dtype}

-- The losses of rows where the weights of classes require a gradient.
local function weighted_loss(rows, t, n, weight, ignore, reduction, smoothing,
                             log)
  local loss = nacre._class_loss(rows, t, nil, ignore, 0, "none", log)
  local counts = t:ne(ignore)
  local share = nacre.where(counts, weight[nacre.where(counts, t, 1)], 0.0)
  local lost = share:eq(0):logical_and(loss:isfinite():logical_not())
  loss = share * nacre.where(lost, 0, loss)
  if smoothing > 0 then
    local logp = log and rows or rows:log_softmax(2)
    local spread = nacre.where(counts, weighted(weight, logp):sum(2), 0.0)
    loss = loss * (1 - smoothing) - spread * (smoothing / n)
  end
  if reduction == "mean" then return loss:sum() / share:sum() end
  return reduction == "sum" and loss:sum() or loss
end

-- The loss of input [n x classes x ...] for classes; `log': the input has
-- logarithms of probabilities. With smoothing s the loss is (1 - s) of that of
-- the class plus s/n of the sum over all n classes (Szegedy et al. 2016). The
-- mean is over the sum of the weights.
local function class_loss(op, x, target, weight, ignore, reduction, smoothing,
                          log)
  local rows, t, n, size = flatten_classes(op, x, target, x)
  checkweight(op, weight, n, x)
  local y
  if weight and weight.requires_grad then
    y = weighted_loss(rows, t, n, weight, ignore, reduction, smoothing, log)
  else
    y = nacre._class_loss(rows, t, weight, ignore, smoothing, reduction, log)
  end
  return reduction == "none" and y:reshape(size) or y
end

define("nll_loss",
       "input:tensor, target:tensor, weight:tensor=nil, ignore_index:int=-100, "
       .. REDUCTION,
       "-log p of the target class, by the logarithms in input [n x classes x "
       .. "...]; mean: over the weights of the targets",
function(x, t, weight, ignore, reduction)
  check_float("nll_loss", x, "input")
  return class_loss("nll_loss", x, t, weight, ignore, reduction, 0, true)
end)

-- A float target has the shape of the input and holds a probability for each
-- class; the mean is then over the samples.
define("cross_entropy",
       "input:tensor, target:tensor, weight:tensor=nil, ignore_index:int=-100, "
       .. REDUCTION .. ", label_smoothing:num=0",
       "nll_loss of log_softmax of input [n x classes x ...]; target: classes "
       .. "from 1, or a probability of each",
function(x, t, weight, ignore, reduction, smoothing)
  local op = "cross_entropy"
  check_float(op, x, "input")
  if x:dim() == 0 then
    fail(op, "{input} has no dimension of classes", nil, "input", x)
  end
  if not (smoothing >= 0 and smoothing <= 1) then
    fail(op,
         ("label_smoothing is %g, but must be from 0 to 1"):format(smoothing))
  end
  if not t:is_floating_point() then
    return class_loss(op, x, t, weight, ignore, reduction, smoothing, false)
  end
  if ignore >= 0 then
    fail(op, ("ignore_index is %d, but {target} holds probabilities, not "
              .. "classes"):format(ignore), nil, "target", t)
  end
  local dim = x:dim() == 1 and 1 or 2
  local logp = x:log_softmax(dim)
  local size = x:size()
  local n = table.remove(size, dim)
  if table.concat(size, "x") == shape(t) then fail_class_dtype(op, t) end
  sameshape(op, x, t)
  checkweight(op, weight, n, x)
  if smoothing > 0 then t = t * (1 - smoothing) + smoothing / n end
  if weight then
    local size = {}
    for d = dim, x:dim() do size[#size + 1] = d == dim and n or 1 end
    t = t * weight:reshape(size)
  end
  local y = weighted(t, logp)
  if reduction == "none" then return -y:sum(dim) end
  return reduction == "sum" and -y:sum() or y:sum() / -(x:numel() / n)
end)

-- ---- binary classification

-- Fails if an input is outside 0 to 1.
define("binary_cross_entropy",
       "input:tensor, target:tensor, weight:tensor=nil, " .. REDUCTION,
       "-(t*log(x) + (1-t)*log(1-x)), the logarithms limited to -100",
function(x, t, weight, reduction)
  local op = "binary_cross_entropy"
  check_float(op, x, "input")
  sameshape(op, x, t)
  if x:numel() > 0 and not (x:ge(0):all():item() and x:le(1):all():item()) then
    fail(op, "{input} must be from 0 to 1",
         "binary_cross_entropy_with_logits takes any", "input", x)
  end
  return reduce(apply_weight(nacre._binary_entropy(x, t), weight), reduction)
end)

define("binary_cross_entropy_with_logits",
       "input:tensor, target:tensor, weight:tensor=nil, "
       .. REDUCTION .. ", pos_weight:tensor=nil",
       "binary_cross_entropy of sigmoid(input), without overflow",
function(x, t, weight, reduction, positive)
  local op = "binary_cross_entropy_with_logits"
  check_float(op, x, "input")
  sameshape(op, x, t)
  local y
  if positive then
    y = nacre._weighted_logits_entropy(x, t, positive)
  else
    y = nacre._logits_entropy(x, t)
  end
  return reduce(apply_weight(y, weight), reduction)
end)

define("kl_div",
       "input:tensor, target:tensor, reduction:none|mean|sum|batchmean=mean, "
       .. "log_target:bool=false",
       "t*(log(t) - input); input holds logarithms",
function(x, t, reduction, log)
  local y = log and nacre._kl_divergence_of_logs(x, t) or
            nacre._kl_divergence(x, t)
  if reduction == "batchmean" then
    if y:dim() == 0 then return y:sum() end
    return y:sum() / y:size(1)
  end
  return reduce(y, reduction)
end)

-- ---- likelihoods

define("poisson_nll_loss",
       "input:tensor, target:tensor, log_input:bool=true, full:bool=false, "
       .. "eps:num=1e-8, " .. REDUCTION,
       "exp(input) - target*input; without log_input: input - target*log(input "
       .. "+ eps); full adds Stirling's term",
function(x, t, log, full, eps, reduction)
  local y = log and x:exp() - nacre.where(t:eq(0), 0, t * x) or
            nacre._poisson_of_rate(x, t, eps)
  if full then y = y + nacre._stirling(t) end
  return reduce(y, reduction)
end)

define("gaussian_nll_loss",
       "input:tensor, target:tensor, var:tensor, full:bool=false, "
       .. "eps:num=1e-6, " .. REDUCTION,
       "(log(var) + (input - target)^2/var)/2; var is at least eps, and may "
         .. "be one for each row",
function(x, t, var, full, eps, reduction)
  local op = "gaussian_nll_loss"
  if x:dim() > 0 and var:is_same_size(x:select(-1, 1)) then
    var = var:unsqueeze(-1)
  end
  local least = var:numel() > 0 and var:detach():min():item() or eps
  if least < 0 then
    fail(op, "{var} must not be negative", nil, "var", var)
  end
  if not (least >= eps) then       -- the clamp does not change the gradient
    var = var + (var:clamp(eps) - var):detach()
  end
  local constant = full and 0.5 * math.log(2 * math.pi) or 0
  return reduce(nacre._gaussian_nll(x, t, var, constant), reduction)
end)

