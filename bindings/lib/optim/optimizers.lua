-- SPDX-License-Identifier: MIT
-- optimizers.lua - the optimizers of nacre.optim except LBFGS (lbfgs.lua): the
-- update of one parameter by its gradient. Algorithms, defaults and the order
-- of rounding are those of PyTorch.
local all = ...
all.require "nacre.optimizer"
local fail, optimizer = all.fail, all.optimizer

-- Fails unless option `key' is at least 0 and, if given, below `below'.
local function check_range(op, o, key, below)
  local v = o[key]
  if type(v) ~= "number" or v < 0 or below and v >= below then
    fail(op, ("%s is %s, but must be a number %s"):format(key, tostring(v),
      below and ("from 0 to below %g"):format(below) or "of 0 or more"))
  end
end

all.check_range = check_range

local function check_betas(op, o)
  local b = o.betas
  if type(b) ~= "table" or #b ~= 2 then
    fail(op, "betas must be a list of two numbers")
  end
  for i = 1, 2 do
    if type(b[i]) ~= "number" or b[i] < 0 or b[i] >= 1 then
      fail(op, ("betas[%d] is %s, but must be from 0 to below 1")
               :format(i, tostring(b[i])))
    end
  end
end

local function check_common(op, o)
  check_range(op, o, "lr")
  check_range(op, o, "weight_decay")
  if o.eps then check_range(op, o, "eps") end
  if o.betas then check_betas(op, o) end
end

local function default_betas(o) o.betas = o.betas or {0.9, 0.999} end

-- The gradient with the gradient of the penalty weight_decay*|p|^2/2.
local function decayed(p, g, o)
  return o.weight_decay ~= 0 and g:add(p, {alpha = o.weight_decay}) or g
end

-- The decay of an algorithm that has both kinds; returns the gradient.
local function decay(p, g, o)
  if not o.decoupled_weight_decay then return decayed(p, g, o) end
  p:mul_(1 - o.lr * o.weight_decay)
  return g
end

-- s[key], a tensor, which begins as zeros in the shape of p.
local function zeros(s, key, p)
  local t = s[key] or nacre.zeros_like(p)
  all.check_tensor("step", t, "the state's " .. key)
  s[key] = t
  return t
end

-- ---- gradient descent

optimizer("SGD",
  "lr:num=1e-3, momentum:num=0, dampening:num=0, weight_decay:num=0, "
  .. "nesterov:bool=false, maximize:bool=false",
  "stochastic gradient descent, with momentum", {
  keeps = {}, steps = false,
  check = function(op, o)
    check_common(op, o)
    check_range(op, o, "momentum")
    if o.nesterov and (o.momentum == 0 or o.dampening ~= 0) then
      fail(op, "nesterov needs a momentum, and no dampening")
    end
  end,
  fused = function(o, _, s)
    return "sgd", o.momentum ~= 0 and {"momentum_buffer"} or {},
           {rate = o.lr, momentum = o.momentum, intake = 1 - o.dampening,
            first = s.momentum_buffer and 0 or 1,
            nesterov = o.nesterov and 1 or 0}
  end,
  update = function(_, p, g, s, o)
    g = decayed(p, g, o)
    if o.momentum ~= 0 then
      local m = s.momentum_buffer
      if m then m:mul_(o.momentum):add_(g, {alpha = 1 - o.dampening})
      else
        m = g:clone()
        s.momentum_buffer = m
      end
      g = o.nesterov and g:add(m, {alpha = o.momentum}) or m
    end
    p:add_(g, {alpha = -o.lr})
  end})

-- ---- Adam and its variants

-- Kingma and Ba 2015; amsgrad: Reddi, Kale and Kumar 2018.
local function adam(p, g, s, o, t)
  local b1, b2 = o.betas[1], o.betas[2]
  zeros(s, "exp_avg", p):lerp_(g, 1 - b1)
  local v = zeros(s, "exp_avg_sq", p)
  v:mul_(b2):addcmul_(g, g, {value = 1 - b2})
  if o.amsgrad then
    v = nacre.maximum(zeros(s, "max_exp_avg_sq", p), v,
                      {out = s.max_exp_avg_sq})
  end
  local root = v:sqrt():div_(math.sqrt(1 - b2 ^ t)):add_(o.eps)
  p:addcdiv_(s.exp_avg, root, {value = -o.lr / (1 - b1 ^ t)})
end

-- The same for all parameters.
local function adam_fused(o, t)
  local b1, b2 = o.betas[1], o.betas[2]
  return "adam", o.amsgrad and {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"} or
                 {"exp_avg", "exp_avg_sq"},
         {rate = o.lr / (1 - b1 ^ t), rest1 = 1 - b1, beta2 = b2,
          rest2 = 1 - b2, eps = o.eps, root = math.sqrt(1 - b2 ^ t)}
end

optimizer("Adam",
  "lr:num=1e-3, betas:any=nil, eps:num=1e-8, weight_decay:num=0, "
  .. "amsgrad:bool=false, maximize:bool=false, "
  .. "decoupled_weight_decay:bool=false",
  "Adam; betas are {0.9, 0.999}", {
  keeps = {"step", "exp_avg", "exp_avg_sq"},
  check = check_common, defaults = default_betas,
  fused = adam_fused,
  update = function(_, p, g, s, o, t) adam(p, decay(p, g, o), s, o, t) end})

-- Loshchilov and Hutter 2019.
optimizer("AdamW",
  "lr:num=1e-3, betas:any=nil, eps:num=1e-8, weight_decay:num=1e-2, "
  .. "amsgrad:bool=false, maximize:bool=false, "
  .. "decoupled_weight_decay:bool=true",
  "Adam with decoupled weight decay; betas are {0.9, 0.999}", {
  keeps = {"step", "exp_avg", "exp_avg_sq"},
  check = check_common, defaults = default_betas,
  fused = adam_fused,
  update = function(_, p, g, s, o, t) adam(p, decay(p, g, o), s, o, t) end})

optimizer("Adamax",
  "lr:num=2e-3, betas:any=nil, eps:num=1e-8, weight_decay:num=0, "
  .. "maximize:bool=false",
  "Adam with the largest gradient instead of the second moment", {
  keeps = {"step", "exp_avg", "exp_inf"},
  check = check_common, defaults = default_betas,
  fused = function(o, t)
    local b1, b2 = o.betas[1], o.betas[2]
    return "adamax", {"exp_avg", "exp_inf"},
           {rate = o.lr / (1 - b1 ^ t), rest1 = 1 - b1, beta2 = b2, eps = o.eps}
  end,
  update = function(_, p, g, s, o, t)
    local b1, b2 = o.betas[1], o.betas[2]
    g = decayed(p, g, o)
    zeros(s, "exp_avg", p):lerp_(g, 1 - b1)
    local u = zeros(s, "exp_inf", p)
    nacre.maximum(u:mul_(b2), g:abs():add_(o.eps), {out = u})
    p:addcdiv_(s.exp_avg, u, {value = -o.lr / (1 - b1 ^ t)})
  end})

-- NAdam's momenta of steps t and t+1, and the product of those up to t.
local function nadam_momenta(s, o, t)
  local b1 = o.betas[1]
  local mu = b1 * (1 - 0.5 * 0.96 ^ (t * o.momentum_decay))
  local next_mu = b1 * (1 - 0.5 * 0.96 ^ ((t + 1) * o.momentum_decay))
  local factor = all.state_number(s, mu)
  return mu, next_mu, all.state_number(s, (s.mu_product or 1) * factor)
end

-- Dozat 2016.
optimizer("NAdam",
  "lr:num=2e-3, betas:any=nil, eps:num=1e-8, weight_decay:num=0, "
  .. "momentum_decay:num=4e-3, decoupled_weight_decay:bool=false, "
  .. "maximize:bool=false",
  "Adam with Nesterov's momentum; betas are {0.9, 0.999}", {
  keeps = {"step", "mu_product", "exp_avg", "exp_avg_sq"},
  numbers = {mu_product = "tensor"},
  check = check_common, defaults = default_betas,
  fused = function(o, t, s)
    local mu, next_mu, product = nadam_momenta(s, o, t)
    local rule, keys, numbers = adam_fused(o, t)
    numbers.rate = o.lr * next_mu / (1 - product * next_mu)
    numbers.look = o.lr * (1 - mu) / (1 - product)
    return rule, keys, numbers, {mu_product = product}
  end,
  update = function(_, p, g, s, o, t)
    local b1, b2 = o.betas[1], o.betas[2]
    local mu, next_mu
    mu, next_mu, s.mu_product = nadam_momenta(s, o, t)
    g = decay(p, g, o)
    zeros(s, "exp_avg", p):lerp_(g, 1 - b1)
    zeros(s, "exp_avg_sq", p):mul_(b2):addcmul_(g, g, {value = 1 - b2})
    local root = s.exp_avg_sq:div(1 - b2 ^ t):sqrt_():add_(o.eps)
    p:addcdiv_(g, root, {value = -o.lr * (1 - mu) / (1 - s.mu_product)})
    p:addcdiv_(s.exp_avg, root,
               {value = -o.lr * next_mu / (1 - s.mu_product * next_mu)})
  end})

-- What RAdam's step t is multiplied by; nil if the variance is not known yet.
local function radam_rectifier(o, t)
  local b2 = o.betas[2]
  local limit = 2 / (1 - b2) - 1
  local rho = limit - 2 * t * b2 ^ t / (1 - b2 ^ t)
  return rho > 5 and math.sqrt((rho - 4) * (rho - 2) * limit /
                               ((limit - 4) * (limit - 2) * rho)) or nil
end

-- Liu et al. 2020.
optimizer("RAdam",
  "lr:num=1e-3, betas:any=nil, eps:num=1e-8, weight_decay:num=0, "
  .. "decoupled_weight_decay:bool=false, maximize:bool=false",
  "Adam that rectifies the variance of its rate; betas are {0.9, 0.999}", {
  keeps = {"step", "exp_avg", "exp_avg_sq"},
  check = check_common, defaults = default_betas,
  fused = function(o, t)
    local rule, keys, numbers = adam_fused(o, t)
    local rect = radam_rectifier(o, t)
    if rect then
      numbers.rate, numbers.root = numbers.rate * rect * numbers.root, 1
    else -- the second mean, which may be infinite, is not read yet
      numbers.root, numbers.eps = math.huge, 1
    end
    return rule, keys, numbers
  end,
  update = function(_, p, g, s, o, t)
    local b1, b2 = o.betas[1], o.betas[2]
    g = decay(p, g, o)
    zeros(s, "exp_avg", p):lerp_(g, 1 - b1)
    zeros(s, "exp_avg_sq", p):mul_(b2):addcmul_(g, g, {value = 1 - b2})
    local step = s.exp_avg:div(1 - b1 ^ t):mul_(o.lr)
    local rect = radam_rectifier(o, t)
    if rect then
      step:mul_(s.exp_avg_sq:sqrt():add_(o.eps):reciprocal_()
                 :mul_(math.sqrt(1 - b2 ^ t))):mul_(rect)
    end
    p:sub_(step)
  end})

-- ---- rates from the squares of gradients

-- Tieleman and Hinton 2012; centered: Graves 2013.
optimizer("RMSprop",
  "lr:num=1e-2, alpha:num=0.99, eps:num=1e-8, weight_decay:num=0, "
  .. "momentum:num=0, centered:bool=false, maximize:bool=false",
  "divides the gradient by the root of a moving mean of its squares", {
  keeps = {"step", "square_avg"},
  check = function(op, o)
    check_common(op, o)
    check_range(op, o, "momentum")
    check_range(op, o, "alpha")
  end,
  fused = function(o)
    local keys = {"square_avg"}
    if o.centered then keys[2] = "grad_avg" end
    if o.momentum ~= 0 then keys[#keys + 1] = "momentum_buffer" end
    return o.centered and "rmsprop_centered" or "rmsprop", keys,
           {rate = o.lr, momentum = o.momentum, beta2 = o.alpha,
            rest2 = 1 - o.alpha, eps = o.eps}
  end,
  update = function(_, p, g, s, o)
    g = decayed(p, g, o)
    local v = zeros(s, "square_avg", p)
    v:mul_(o.alpha):addcmul_(g, g, {value = 1 - o.alpha})
    if o.centered then
      local mean = zeros(s, "grad_avg", p):lerp_(g, 1 - o.alpha)
      v = v:addcmul(mean, mean, {value = -1})
    end
    local root = v:sqrt():add_(o.eps)
    if o.momentum == 0 then
      p:addcdiv_(g, root, {value = -o.lr})
    else
      local m = zeros(s, "momentum_buffer", p)
      p:add_(m:mul_(o.momentum):addcdiv_(g, root), {alpha = -o.lr})
    end
  end})

-- Duchi, Hazan and Singer 2011.
optimizer("Adagrad",
  "lr:num=1e-2, lr_decay:num=0, weight_decay:num=0, "
  .. "initial_accumulator_value:num=0, eps:num=1e-10, maximize:bool=false",
  "divides the gradient by the root of the sum of its squares", {
  keeps = {"step", "sum"},
  check = function(op, o)
    check_common(op, o)
    check_range(op, o, "lr_decay")
    check_range(op, o, "initial_accumulator_value")
  end,
  -- a mean of squares that forgets nothing
  fused = function(o, t)
    return "rmsprop", {"sum"}, {rate = o.lr / (1 + (t - 1) * o.lr_decay),
                                beta2 = 1, rest2 = 1, eps = o.eps}
  end,
  start = function(o) return o.initial_accumulator_value end,
  update = function(_, p, g, s, o, t)
    g = decayed(p, g, o)
    s.sum = s.sum or nacre.full_like(p, o.initial_accumulator_value)
    s.sum:addcmul_(g, g)
    p:addcdiv_(g, s.sum:sqrt():add_(o.eps),
               {value = -o.lr / (1 + (t - 1) * o.lr_decay)})
  end})

-- Zeiler 2012.
optimizer("Adadelta",
  "lr:num=1, rho:num=0.9, eps:num=1e-6, weight_decay:num=0, "
  .. "maximize:bool=false",
  "steps in proportion to a moving mean of the steps before", {
  keeps = {"step", "square_avg", "acc_delta"},
  check = function(op, o)
    check_common(op, o)
    check_range(op, o, "rho", 1)
  end,
  fused = function(o)
    return "adadelta", {"square_avg", "acc_delta"},
           {rate = o.lr, beta2 = o.rho, rest2 = 1 - o.rho, eps = o.eps}
  end,
  update = function(_, p, g, s, o)
    g = decayed(p, g, o)
    local v, u = zeros(s, "square_avg", p), zeros(s, "acc_delta", p)
    v:mul_(o.rho):addcmul_(g, g, {value = 1 - o.rho})
    local step = u:add(o.eps):sqrt_():div_(v:add(o.eps):sqrt_()):mul_(g)
    u:mul_(o.rho):addcmul_(step, step, {value = 1 - o.rho})
    p:add_(step, {alpha = -o.lr})
  end})

-- ---- Rprop, ASGD, Adafactor

local function check_pair(op, o, key)
  if type(o[key]) ~= "table" or type(o[key][2]) ~= "number" then
    fail(op, key .. " must be a list of two numbers")
  end
end

-- Riedmiller and Braun 1993.
optimizer("Rprop",
  "lr:num=1e-2, etas:any=nil, step_sizes:any=nil, maximize:bool=false",
  "steps by the sign of the gradient, for whole batches; etas are {0.5, 1.2}, "
  .. "step_sizes {1e-6, 50}", {
  keeps = {"step", "prev", "step_size"},
  defaults = function(o)
    o.etas, o.step_sizes = o.etas or {0.5, 1.2}, o.step_sizes or {1e-6, 50}
  end,
  check = function(op, o)
    check_range(op, o, "lr")
    check_pair(op, o, "etas")
    check_pair(op, o, "step_sizes")
    if not (0 < o.etas[1] and o.etas[1] < 1 and 1 < o.etas[2]) then
      fail(op, "etas must be a number from 0 to 1 and one above 1")
    end
  end,
  fused = function(o)
    return "rprop", {"prev", "step_size"},
           {down = o.etas[1], up = o.etas[2], least = o.step_sizes[1],
            most = o.step_sizes[2]}
  end,
  start = function(o, key) return key == "step_size" and o.lr or 0 end,
  -- The gradient of an element whose sign has turned counts as 0, now and in
  -- the next step.
  update = function(_, p, g, s, o)
    local previous = zeros(s, "prev", p)
    s.step_size = s.step_size or nacre.full_like(g, o.lr)
    local turns = (g * previous):lt(0)
    local grows = g:ne(0) & previous:ne(0)
    local factor = nacre.where(grows, o.etas[2], 1)
    s.step_size:mul_(nacre.where(turns, o.etas[1], factor))
               :clamp_(o.step_sizes[1], o.step_sizes[2])
    previous:copy_(nacre.where(turns, 0, g))
    p:addcmul_(previous:sign(), s.step_size, {value = -1})
  end})

-- Polyak and Juditsky 1992.
optimizer("ASGD",
  "lr:num=1e-2, lambd:num=1e-4, alpha:num=0.75, t0:num=1e6, "
  .. "weight_decay:num=0, maximize:bool=false",
  "gradient descent; the state ax is the mean of the parameter since step t0", {
  keeps = {"step", "eta", "mu", "ax"},
  numbers = {eta = "tensor", mu = "tensor"},
  check = check_common,
  update = function(_, p, g, s, o, t)
    g = decayed(p, g, o)
    local eta, mu = s.eta or all.state_number(s, o.lr), s.mu or 1
    local mean = zeros(s, "ax", p)
    p:mul_(1 - o.lambd * eta):add_(g, {alpha = -eta})
    if mu == 1 then mean:copy_(p) else mean:add_(p:sub(mean):mul_(mu)) end
    s.eta = all.state_number(s, o.lr / (1 + o.lambd * o.lr * t) ^ o.alpha)
    s.mu = all.state_number(s, 1 / math.max(1, t - o.t0))
  end})

-- The estimate of the mean squares of the gradient of a matrix, from those of
-- its rows and of its columns.
local function factored(g, s, weight, least)
  local function mean_square(key, dim)
    local m = g:norm(2, dim, true):square_():div_(g:size(dim))
    s[key] = (s[key] or nacre.zeros_like(m)):lerp_(m, weight)
    return s[key]
  end
  local rows, columns = mean_square("row_var", -1), mean_square("col_var", -2)
  return rows:matmul(columns):div_(rows:mean(-2, true):clamp_{min = least})
end

local function root_mean_square(t)
  return t:norm():item() / math.sqrt(t:numel())
end

-- Shazeer and Stern 2018.
optimizer("Adafactor",
  "lr:num=1e-2, beta2_decay:num=-0.8, eps:any=nil, d:num=1, "
  .. "weight_decay:num=0, maximize:bool=false",
  "Adam whose state is one row and one column of each matrix; eps is {nil, "
    .. "1e-3}: of the dtype and of the parameter", {
  keeps = function(p)
    return p:dim() > 1 and {"step", "row_var", "col_var"} or
           {"step", "variance"}
  end,
  size_of = function(key, p)
    local size = p:size()
    if key == "row_var" then size[#size] = 1
    elseif key == "col_var" then size[#size - 1] = 1
    end
    return size
  end,
  defaults = function(o) o.eps = o.eps or {[2] = 1e-3} end,
  check = function(op, o)
    check_range(op, o, "lr")
    check_range(op, o, "weight_decay")
    if type(o.eps) ~= "table" or type(o.eps[2]) ~= "number" then
      fail(op, "eps must be a list of two numbers, the first may be nil")
    end
    if o.beta2_decay > 0 then fail(op, "beta2_decay must not be above 0") end
    if o.d < 1 then fail(op, "d must be at least 1") end
  end,
  update = function(_, p, g, s, o, t, dtype)
    local least, weight = o.eps[1] or nacre.finfo(dtype).eps,
                          t ^ o.beta2_decay
    local rate = math.max(o.eps[2], root_mean_square(p)) *
                 math.min(o.lr, 1 / math.sqrt(t))
    if o.weight_decay ~= 0 then p:mul_(1 - o.lr * o.weight_decay) end
    local v
    if g:dim() > 1 then v = factored(g, s, weight, least)
    else v = zeros(s, "variance", p):lerp_(g * g, weight):clone() end
    local step = v:clamp_{min = least * least}:rsqrt_():mul_(g)
    p:add_(step, {alpha = -rate / math.max(1, root_mean_square(step) / o.d)})
  end})
