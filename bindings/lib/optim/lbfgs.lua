-- SPDX-License-Identifier: MIT
-- lbfgs.lua - optim.LBFGS: the limited-memory method of Broyden, Fletcher,
-- Goldfarb and Shanno. Steps, tests of convergence and their order are those of
-- PyTorch. All parameters are one vector; the state is that of the first one.
local all = ...
all.require "nacre.optimizer"
local fail, Optimizer = all.fail, all.Optimizer

local function largest(v) return v:abs():max():item() end
local function dot(u, v) return u:dot(v):item() end

-- The gradients as one vector; a parameter without one has zeros.
local function flat_gradient(params)
  local list = {}
  for i, p in ipairs(params) do
    list[i] = (p.grad or nacre.zeros_like(p)):reshape(-1)
  end
  return nacre.cat(list)
end

-- Adds t*d to the parameters.
local function move(params, t, d)
  local at = 1
  for _, p in ipairs(params) do
    p:add_(d:narrow(1, at, p:numel()):view_as(p), {alpha = t})
    at = at + p:numel()
  end
end

-- Computes the loss, a number, and its gradient where the parameters are, both
-- with the other sign if it is to become large; and the loss as it is.
local function evaluate(self, closure)
  local loss = nacre.enable_grad(closure)
  local value = nacre.is_tensor(loss) and loss:item() or loss
  if type(value) ~= "number" then
    fail("step", "the function must return the loss, a number or a tensor of "
      .. "one element, not a " .. type(value))
  end
  local group = self.param_groups[1]
  local g = flat_gradient(group.params)
  if group.maximize then value, g = -value, g:neg_() end
  return value, g, loss
end

-- A function of t: the loss, the gradient and the slope at t on the line along
-- d from where the parameters are, which come back to it.
local function line_along(self, closure, d)
  local params, start = self.param_groups[1].params, {}
  for i, p in ipairs(params) do start[i] = p:detach():clone() end
  return function(t)
    move(params, t, d)
    local f, g = evaluate(self, closure)
    for i, p in ipairs(params) do p:copy_(start[i]) end
    return {t = t, f = f, g = g, slope = dot(g, d)}
  end
end

-- ---- the search on the line (Nocedal and Wright 2006, section 3.5). A point
-- is {t=, f=, g=, slope=}.

local ARMIJO, CURVATURE, MOST = 1e-4, 0.9, 25

-- Where the cubic through points a and b is least, between low and high.
local function cubic_minimum(a, b, low, high)
  if a.t > b.t then a, b = b, a end
  local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d1 * d1 - a.slope * b.slope
  if not (square >= 0) then return (low + high) / 2 end
  local d2 = math.sqrt(square)
  local t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) /
                                 (b.slope - a.slope + 2 * d2))
  return math.min(math.max(t, low), high)
end

local function falls_too_little(start, p)
  return p.f > start.f + ARMIJO * p.t * start.slope
end

local function is_flat(start, p)
  return math.abs(p.slope) <= -CURVATURE * start.slope
end

-- Goes on from step t until two points bracket one that meets the conditions.
-- Returns the points (one, if it meets them) and how many were evaluated.
local function bracket_of(at, start, t)
  local before, p, n = start, at(t), 1
  for i = 0, MOST - 1 do
    if falls_too_little(start, p) or i > 1 and p.f >= before.f then
      return {before, p}, n
    elseif is_flat(start, p) then return {p}, n
    elseif p.slope >= 0 then return {before, p}, n
    end
    before, p = p, at(cubic_minimum(before, p, p.t + 0.01 * (p.t - before.t),
                                    p.t * 10))
    n = n + 1
  end
  return {start, p}, n
end

-- A step inside the bracket. Twice in a row near an end of it, the second is
-- moved a tenth of the bracket inwards; `near' is whether the last one was.
local function step_inside(b, near)
  local low, high = math.min(b[1].t, b[2].t), math.max(b[1].t, b[2].t)
  local t, margin = cubic_minimum(b[1], b[2], low, high), 0.1 * (high - low)
  if not (math.min(high - t, t - low) < margin) then return t, false end
  if not near and t < high and t > low then return t, true end
  return high - t < t - low and high - margin or low + margin, false
end

-- Puts p in place of one end of the bracket; low is its end with the least
-- loss. Returns low, and whether p meets the conditions.
local function narrow(b, low, start, p)
  if falls_too_little(start, p) or p.f >= b[low].f then
    b[3 - low] = p
    return b[1].f <= b[2].f and 1 or 2, false
  end
  local done = is_flat(start, p)
  if not done and p.slope * (b[3 - low].t - b[low].t) >= 0 then
    b[3 - low] = b[low]
  end
  b[low] = p
  return low, done
end

-- A point that meets the strong conditions of Wolfe, or the best of MOST; and
-- how many were evaluated. size is the largest element of the direction.
local function strong_wolfe(at, start, t, size)
  local b, n = bracket_of(at, start, t)
  if #b == 1 then return b[1], n end
  local low, near, done = b[1].f <= b[2].f and 1 or 2, false, false
  while not done and n <= MOST and
        math.abs(b[2].t - b[1].t) * size >= 1e-9 do
    t, near = step_inside(b, near)
    low, done = narrow(b, low, start, at(t))
    n = n + 1
  end
  return b[low], n
end

-- ---- the direction

-- Adds the change of the last step to the history.
local function remember(s, g, history_size)
  local y, step = g - s.prev_flat_grad, s.d * s.t
  local ys = dot(y, step)
  if ys <= 1e-10 then return end
  if #s.old_dirs == history_size then
    for _, key in ipairs {"old_dirs", "old_stps", "ro"} do
      table.remove(s[key], 1)
    end
  end
  local n = #s.old_dirs + 1
  s.old_dirs[n], s.old_stps[n], s.ro[n] = y, step, 1 / ys
  s.H_diag = ys / dot(y, y)
end

-- The product of the approximate inverse of the Hessian with -g, in the two
-- loops of Nocedal 1980.
local function direction(s, g)
  local al, q = {}, -g
  for i = #s.old_dirs, 1, -1 do
    al[i] = dot(s.old_stps[i], q) * s.ro[i]
    q:add_(s.old_dirs[i], {alpha = -al[i]})
  end
  q:mul_(s.H_diag)
  for i, y in ipairs(s.old_dirs) do
    q:add_(s.old_stps[i], {alpha = al[i] - dot(y, q) * s.ro[i]})
  end
  return q
end

-- ---- the optimizer

-- Moves by one step from loss f and gradient g. Returns the loss and the
-- gradient there and how often the closure was called; nil if the direction
-- does not go down.
local function iterate(self, closure, s, f, g, is_last)
  local o = self.param_groups[1]
  s.n_iter = s.n_iter + 1
  if s.n_iter == 1 then
    s.d, s.old_dirs, s.old_stps, s.ro, s.H_diag = -g, {}, {}, {}, 1
  else
    remember(s, g, o.history_size)
    s.d = direction(s, g)
  end
  s.prev_flat_grad, s.prev_loss = g, f
  s.t = s.n_iter == 1 and math.min(1, 1 / g:abs():sum():item()) * o.lr or o.lr
  local slope = dot(g, s.d)
  if slope > -o.tolerance_change then return nil end
  if o.line_search_fn then
    local p, n = strong_wolfe(line_along(self, closure, s.d),
                              {t = 0, f = f, g = g, slope = slope}, s.t,
                              largest(s.d))
    s.t = p.t
    move(o.params, s.t, s.d)
    return p.f, p.g, n
  end
  move(o.params, s.t, s.d)
  if is_last then return f, g, 0 end
  f, g = evaluate(self, closure)
  return f, g, 1
end

-- Is this the end after a step of s to loss f with gradient g?
local function is_converged(o, s, f, g)
  return largest(g) <= o.tolerance_grad or
         largest(s.d) * math.abs(s.t) <= o.tolerance_change or
         math.abs(f - s.prev_loss) < o.tolerance_change
end

local function minimize(self, closure)
  local o = self.param_groups[1]
  local s = self.state[o.params[1]] or {func_evals = 0, n_iter = 0}
  self.state[o.params[1]] = s
  local f, g, first = evaluate(self, closure)
  local calls = 1
  s.func_evals = s.func_evals + 1
  if largest(g) <= o.tolerance_grad then return first end
  for i = 1, o.max_iter do
    local new, gradient, n = iterate(self, closure, s, f, g, i == o.max_iter)
    if new == nil then break end
    f, g, calls, s.func_evals = new, gradient, calls + n, s.func_evals + n
    if i == o.max_iter or calls >= o.max_eval or is_converged(o, s, f, g) then
      break
    end
  end
  return first
end

-- Fails unless option `key' is a number of at least `least'.
local function check_least(op, o, key, least)
  if type(o[key]) ~= "number" or o[key] < least then
    fail(op, ("%s is %s, but must be a number of %d or more")
             :format(key, tostring(o[key]), least))
  end
end

all.optimizer("LBFGS",
  "lr:num=1, max_iter:int=20, max_eval:int=nil, tolerance_grad:num=1e-7, "
  .. "tolerance_change:num=1e-9, history_size:int=100, "
  .. "line_search_fn:any|strong_wolfe=nil, *, maximize:bool=false",
  "quasi-Newton steps; step(closure) calls closure several times; "
  .. "line_search_fn is nil or 'strong_wolfe'", {
  optional = {line_search_fn = true},
  keeps = function(_, s)
    return s.n_iter == 0 and {"func_evals"} or
           {"func_evals", "n_iter", "d", "t", "old_dirs", "old_stps", "ro",
            "H_diag", "prev_flat_grad", "prev_loss"}
  end,
  numbers = {func_evals = true, n_iter = true, t = true, ro = true,
             H_diag = true, prev_loss = true, al = false},
  size_of = function(_, _, group)
    local n = 0
    for _, p in ipairs(group.params) do n = n + p:numel() end
    return {n}
  end,
  defaults = function(o) o.max_eval = o.max_eval or o.max_iter * 5 // 4 end,
  check = function(op, o)
    for _, key in ipairs {"lr", "tolerance_grad", "tolerance_change"} do
      check_least(op, o, key, 0)
    end
    check_least(op, o, "history_size", 1)
    if o.line_search_fn and o.line_search_fn ~= "strong_wolfe" then
      fail(op, "line_search_fn is nil or 'strong_wolfe'")
    end
  end}, {
  add_param_group = function(self, group)
    if #self.param_groups == 1 then
      fail("LBFGS", "all parameters are one group: it has one direction")
    end
    Optimizer.add_param_group(self, group)
  end,
  step = function(self, closure)
    if type(closure) ~= "function" then
      fail("step", "LBFGS computes the loss several times: step takes a "
        .. "function that computes the gradients and returns the loss")
    end
    all.check_no_dry_run()
    return nacre.no_grad(minimize, self, closure)
  end})
