-- SPDX-License-Identifier: MIT
-- distances.lua - pairwise distances between the rows of matrices, and
-- covariances.
local all = ...
all.require "nacre.checks"
local define, fail = all.define, all.fail

-- ---- distances

-- The square of the norm of each row.
local function row_squares(a) return (a * a):sum(-1, true) end

-- a and b less the mean of b: squares of points far from 0 would have no digits
-- left for their distances. Where the mean is not finite, less 0.
local function around_mean(a, b)
  local middle = b:detach():mean(-2, true):nan_to_num(0, 0, 0)
  return a - middle, b - middle
end

-- Euclidean distances by one matrix product: |a - b|^2 = -2 a b' + |a|^2 +
-- |b|^2, where the squares are two more columns. Memory is that of the result.
-- The gradient at distance 0 is 0. a: [... x n x k], b: [... x m x k], result
-- [... x n x m].
local Euclid

local function euclid(a, b)
  Euclid = Euclid or nacre.autograd.Function {
    name = "cdist",
    forward = function(ctx, first, second)
      local a, b = around_mean(first, second)
      local aa, bb = row_squares(a), row_squares(b)
      local left = nacre.cat({a:mul_(-2), aa, nacre.ones_like(aa)}, -1)
      local right = nacre.cat({b, nacre.ones_like(bb), bb}, -1)
      local y = left:matmul(right:transpose(-1, -2)):relu_():sqrt_()
      ctx:save_for_backward(first, second, y)
      return y
    end,
    backward = function(ctx, g)
      local a, b, y = table.unpack(ctx.saved_tensors)
      local need = ctx.needs_input_grad
      a, b = around_mean(a, b)
      local w = nacre._divided(g, y)
      return need[1] and w:sum(-1):unsqueeze(-1) * a - w:matmul(b) or nil,
             need[2] and w:sum(-2):unsqueeze(-1) * b -
                         w:transpose(-1, -2):matmul(a) or nil
    end,
  }
  return Euclid(a, b)
end

-- True if euclid applies: the batches are equal, and there are more than 25
-- rows, as in PyTorch; for fewer, its cancellation errors are not worth the
-- time.
local function use_matrix_product(a, b, mode)
  if mode == "donot_use_mm_for_euclid_dist" or a:dim() ~= b:dim() then
    return false
  end
  for d = 1, a:dim() - 2 do
    if a:size(d) ~= b:size(d) then return false end
  end
  return mode == "use_mm_for_euclid_dist" or a:size(-2) > 25 or
         b:size(-2) > 25
end

-- x1 [... x n x k], x2 [... x m x k] of float dtypes give [... x n x m]. Fails
-- for fewer than 2 dimensions, another dtype, different k and negative p.
define("cdist", "x1:tensor, x2:tensor, p:num=2, compute_mode:text=nil",
       "distances of order p between the rows of two matrices, or of batches "
       .. "of them",
function(a, b, p, mode)
  local op = "cdist"
  if a:dim() < 2 or b:dim() < 2 then
    fail(op, "needs matrices, or batches of them", nil, "x1", a, "x2", b)
  end
  if not a:is_floating_point() or not b:is_floating_point() then
    local complex = a:is_complex() or b:is_complex()
    fail(op, ("needs float tensors, not %s and %s"):format(a.dtype, b.dtype),
         complex and "({x1}:unsqueeze(-2) - {x2}:unsqueeze(-3)):norm(2, -1)" or
         nil, "x1", a, "x2", b)
  end
  if a:size(-1) ~= b:size(-1) then
    fail(op,
         ("{x1} has %d columns, {x2} has %d"):format(a:size(-1), b:size(-1)),
         nil, "x1", a, "x2", b)
  end
  if p < 0 then fail(op, ("p is %g, but must not be negative"):format(p)) end
  local dtype, y = nacre.promote_types(a.dtype, b.dtype), nil
  a, b = all.widen(a), all.widen(b)          -- halves are rounded once
  if p == 2 and a.dtype == b.dtype and a:numel() > 0 and b:numel() > 0 and
     use_matrix_product(a, b, mode) then y = euclid(a, b)
  else y = nacre._distance(a:unsqueeze(-2), b:unsqueeze(-3), p) end
  return y:to(dtype)
end)

-- [n x k] of a float dtype gives [n*(n-1)/2]. Fails for other dimensions, for
-- other dtypes and negative p.
define("pdist", "input:tensor, p:num=2",
       "distances of order p between rows i < j, in the order of the upper "
       .. "triangle of cdist",
function(x, p)
  local op = "pdist"
  all.check_dims(op, x, "input", 2)
  all.check_float(op, x, "input")
  if p < 0 then fail(op, ("p is %g, but must not be negative"):format(p)) end
  local at = nacre.triu_indices(x:size(1), x:size(1), 1):to(x.device)
  local wide = all.widen(x)
  return all.convert_back(nacre._distance(wide[at[1]], wide[at[2]], p), x)
end)
all.alias("nn.functional.pdist", all.functions.pdist)

-- ---- covariances

-- x minus its mean, weighted by w, along the last dimension.
local function centered(x, w, sum)
  if w then return x - (x * w):sum(-1, true) / sum end
  return x - x:mean(-1, true)
end

-- [n x m] gives [n x n], and [m] a 0-d tensor; integers are converted to the
-- default float dtype. Fails for bool, for more than 2 dimensions, and for
-- weights that are negative or not [m].
define("cov",
       "self, *, correction:int=1, fweights:tensor=nil, aweights:tensor=nil",
       "covariances of variables, one a row, over observations, one a column",
function(x, correction, f, a)
  local op = "cov"
  if x:dim() > 2 then
    fail(op, ("{self} has %d dimensions, at most 2 are allowed")
             :format(x:dim()), nil, "self", x)
  end
  if x.dtype == "bool" then fail(op, "self is bool: numbers are needed") end
  if x:dim() < 2 then x = x:reshape(1, -1) end
  if not x:is_floating_point() and not x:is_complex() then
    x = x:to(nacre.get_default_dtype())
  end
  if a and a:is_floating_point() then
    x = x:to(nacre.promote_types(x.dtype, a.dtype))
  end
  local n, w = x:size(2), nil
  for name, given in pairs {fweights = f or false, aweights = a or false} do
    if given then
      if given:dim() > 1 or given:numel() ~= n then
        fail(op, ("{%s} must have %s"):format(name, all.elements(n)), nil,
             name, given)
      end
      if (given:lt(0)):any():item() then
        fail(op, name .. " must not be negative")
      end
    end
  end
  if f and f:is_floating_point() then fail(op, "fweights must be integers") end
  local real = x.dtype:gsub("complex64", "float32"):gsub("complex128",
                                                         "float64")
  a = a and a:to(real)
  if f then w = f:to(real) end
  if a then w = w and w * a or a end
  local sum = w and w:sum()
  local norm
  if not w then norm = n - correction
  elseif a and correction ~= 0 then
    norm = sum - correction * (w * a):sum() / sum
  else norm = sum - correction end
  norm = type(norm) == "number" and math.max(norm, 0) or norm:clamp(0)
  local c = centered(x, w, sum)
  local y = (w and c * w or c):mm(c.mH) / norm
  return y:numel() == 1 and y:reshape({}) or y
end)

-- The shapes of cov; c_ij / sqrt(c_ii c_jj), clamped to [-1, 1].
define("corrcoef", "self",
       "correlation coefficients of variables, one a row",
function(x)
  local c = nacre.cov(x)
  if c:dim() == 0 then return c / c end
  local d = (c:is_complex() and c.real or c):diagonal():sqrt()
  c = c / d:unsqueeze(2) / d:unsqueeze(1)
  if not c:is_complex() then return c:clamp(-1, 1) end
  return nacre.complex(c.real:clamp(-1, 1), c.imag:clamp(-1, 1))
end)
