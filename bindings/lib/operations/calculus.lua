-- SPDX-License-Identifier: MIT
-- calculus.lua - interpolation, differences over distances, Simpson's rule,
-- polynomials. Names and orders are NumPy's; gradient has PyTorch's options.

local all = ...
all.require "nacre.checks"
local define, fail = all.define, all.fail

local function to_float(x)
  if x:is_floating_point() or x:is_complex() then return x end
  return x:to(nacre.get_default_dtype())
end

local function check_same_size(op, a, b, name_a, name_b)
  all.check_dims(op, a, name_a, 1)
  all.check_dims(op, b, name_b, 1)
  if a:size(1) ~= b:size(1) or a:size(1) == 0 then
    fail(op, ("{%s} has %s, {%s} %s"):format(name_a, all.elements(a:size(1)),
         name_b, all.elements(b:size(1))), nil, name_a, a, name_b, b)
  end
end

-- ---- interpolation

-- x of any shape; vectors xp, increasing, and fp. Gradients of x and fp.
define("interp", "x:tensor, xp:tensor, fp:tensor, left:num=nil, right:num=nil, "
       .. "period:num=nil",
       "values at x of the function that is linear between its values fp at "
       .. "xp; left and right stand for those outside (default: the first and "
       .. "last of fp)",
function(x, xp, fp, left, right, period)
  check_same_size("interp", xp, fp, "xp", "fp")
  x, xp, fp = to_float(x), to_float(xp), to_float(fp)
  if period then
    if period == 0 then fail("interp", "period must not be 0") end
    period = math.abs(period)
    local order
    x, xp = x:remainder(period), xp:remainder(period)
    xp, order = xp:sort()
    fp = fp:index_select(1, order)
    xp = nacre.cat {xp:narrow(1, xp:size(1), 1) - period, xp,
                    xp:narrow(1, 1, 1) + period}
    fp = nacre.cat {fp:narrow(1, fp:size(1), 1), fp, fp:narrow(1, 1, 1)}
    left, right = nil, nil
  end
  local n = xp:size(1)
  if n == 1 then xp, fp, n = nacre.cat {xp, xp}, nacre.cat {fp, fp}, 2 end
  local at = nacre.searchsorted(xp, x:detach():contiguous(), {right = true})
  at = at:clamp(2, n)
  local function of(t, i)
    return t:index_select(1, i:flatten()):view(x:size())
  end
  local x0, x1, y0, y1 = of(xp, at - 1), of(xp, at), of(fp, at - 1), of(fp, at)
  local width = x1 - x0
  local share = (x - x0) / nacre.where(width:eq(0), 1.0, width)
  local y = y0 + share * (y1 - y0)
  y = nacre.where(x:eq(x1), y1, y)
  y = nacre.where(x:lt(xp[1]), left or fp[1], y)
  y = nacre.where(x:gt(xp[n]), right or fp[n], y)
  return nacre.where(x:isnan(), x, y)
end)

-- ---- differences

-- The slope at each end: of first order, or of the parabola through three.
local function end_slope(f, dim, h, order, last)
  local n = f:size(dim)
  local function value(i)
    return f:narrow(dim, last and n - i or i + 1, 1)
  end
  local function step(i) return h(last and n - 1 - i or i + 1) end
  local sign = last and -1 or 1
  if order == 1 then return (value(1) - value(0)) / step(0) * sign end
  local a, b = step(0), step(1)
  return (value(0) * (-(2 * a + b) / (a * (a + b))) +
          value(1) * ((a + b) / (a * b)) +
          value(2) * (-a / (b * (a + b)))) * sign
end

-- The slopes along dim; `spacing' is a number or a vector of positions.
local function slopes(f, dim, spacing, order)
  local n, w = f:size(dim), nil
  if nacre.is_tensor(spacing) then
    local shape = {}
    for d = 1, f:dim() do shape[d] = d == dim and n - 1 or 1 end
    w = spacing:to(f.dtype):diff():view(shape)
  end
  local function h(i) return w and w:narrow(dim, i, 1) or spacing end
  local parts = {end_slope(f, dim, h, order, false)}
  if n > 2 then
    local function from(i) return f:narrow(dim, i, n - 2) end
    local before, here, behind = from(1), from(2), from(3)
    if not w then parts[2] = (behind - before) / (2 * spacing)
    else
      local a, b = w:narrow(dim, 1, n - 2), w:narrow(dim, 2, n - 2)
      parts[2] = before * (-b / (a * (a + b))) + here * ((b - a) / (a * b)) +
                 behind * (a / (b * (a + b)))
    end
  end
  parts[#parts + 1] = end_slope(f, dim, h, order, true)
  return nacre.cat(parts, dim)
end

-- Central differences inside, one-sided ones at the edges, of order edge_order;
-- exact for parabolas where it is 2. spacing: a number for all dims, a list of
-- one for each, or of vectors of positions. Needs edge_order + 1 elements.
define("gradient", "self, spacing:any=1, dim:dims=nil, edge_order:int=1 "
       .. "-> tensors",
       "slopes along dims (default: all), a list of tensors",
function(self, spacing, dims, order)
  local op = "gradient"
  self = to_float(self)
  if order ~= 1 and order ~= 2 then
    fail(op, ("edge_order is %d, must be 1 or 2"):format(order))
  end
  dims = all.list_dims(op, self, dims)
  local list = type(spacing) == "table" and not nacre.is_tensor(spacing)
  if list and #spacing ~= #dims then
    fail(op, ("%d spacings for %d dimensions"):format(#spacing, #dims))
  end
  local out = {}
  for i, d in ipairs(dims) do
    local s = list and spacing[i] or spacing
    if type(s) ~= "number" and not nacre.is_tensor(s) then
      fail(op, ("a spacing is a number or a tensor, not a %s"):format(type(s)))
    end
    if self:size(d) <= order then
      fail(op, ("dimension %d of {self} has %s, edge_order %d needs %d")
               :format(d, all.elements(self:size(d)), order, order + 1), nil,
           "self", self)
    end
    if nacre.is_tensor(s) and s:numel() ~= self:size(d) then
      fail(op, ("spacing has %s for a dimension of %d")
               :format(all.elements(s:numel()), self:size(d)))
    end
    out[i] = slopes(self, d, s, order)
  end
  return out
end)

-- ---- Simpson's rule

-- Integrals over the first and the second of each two intervals, by the
-- parabola through their three points. h: widths along dim, or a number.
local function simpson_halves(y, dim, w)
  local n = y:size(dim)
  local a, b, c = y:narrow(dim, 1, n - 2), y:narrow(dim, 2, n - 2),
                  y:narrow(dim, 3, n - 2)
  local h, k
  if type(w) == "number" then h, k = w, w
  else h, k = w:narrow(dim, 1, n - 2), w:narrow(dim, 2, n - 2) end
  local sum = h + k
  local function first(f0, f1, f2, h, k)
    return h / 6 * (f0 * (3 - h / sum) + f1 * (3 + h * h / (k * sum) + h / sum)
                    - f2 * (h * h / (k * sum)))
  end
  return first(a, b, c, h, k), first(c, b, a, k, h)
end

local function widths(y, x, dx, dim)
  if x == nil then return dx end
  local d = dim < 0 and dim + y:dim() + 1 or dim
  if x:dim() == 1 then
    local shape = {}
    for i = 1, y:dim() do shape[i] = i == d and x:size(1) - 1 or 1 end
    return x:to(y.dtype):diff():view(shape)
  end
  return x:to(y.dtype):diff(1, d)
end

-- Integrals over each interval: those of the first of two, and at the end the
-- second.
local function intervals(y, x, dx, dim)
  local w, n = widths(y, x, dx, dim), y:size(dim)
  if n == 2 then
    local h = w
    return (y:narrow(dim, 1, 1) + y:narrow(dim, 2, 1)) / 2 * h
  end
  local first, second = simpson_halves(y, dim, w)
  return nacre.cat({first, second:narrow(dim, n - 2, 1)}, dim)
end

local signature = "self, x:tensor=nil, *, dx:num=1, dim:dim=-1"

-- An even number of points: the last interval by the parabola through the last
-- three (Cartwright 2017), as in SciPy.
define("simpson", signature,
       "area under self along dim by Simpson's rule, at positions x or dx "
       .. "apart",
function(self, x, dx, dim)
  self = to_float(self)
  local n = self:size(dim)
  if n < 2 then return self:sum(dim) * 0 end
  if n == 2 then return intervals(self, x, dx, dim):sum(dim) end
  local first, second = simpson_halves(self, dim, widths(self, x, dx, dim))
  local pairs_of = nacre.arange(1, n - 1, 2, {device = self.device})
  local area = (first + second):index_select(dim, pairs_of):sum(dim)
  if n % 2 == 1 then return area end
  return area + second:select(dim, n - 2)
end)

define("cumulative_simpson", signature,
       "running area under self along dim by Simpson's rule",
function(self, x, dx, dim)
  return intervals(to_float(self), x, dx, dim):cumsum(dim)
end)

-- ---- polynomials: coefficients, of the highest power first

define("polyval", "p:tensor, x:operand",
       "the polynomial with coefficients p, highest power first, at x",
function(p, x)
  all.check_dims("polyval", p, "p", 1)
  if not nacre.is_tensor(x) then x = nacre.tensor(x, all.like(p)) end
  local y = nacre.zeros_like(x + (p:numel() > 0 and p[1] or 0))
  for i = 1, p:size(1) do y = y * x + p[i] end
  return y
end)

-- w: weights of the residuals. Columns of y are fitted one by one. Least
-- squares over columns of norm 1, in float64.
define("polyfit", "x:tensor, y:tensor, deg:int, *, rcond:num=nil, w:tensor=nil",
       "coefficients, highest power first, of the polynomial of degree deg "
       .. "that fits y at x best",
function(x, y, degree, rcond, w)
  local op = "polyfit"
  all.check_dims(op, x, "x", 1)
  all.check_dims(op, y, "y", 1, 2)
  if degree < 0 then
    fail(op, ("deg is %d, must not be negative"):format(degree))
  end
  if x:size(1) ~= y:size(1) or x:size(1) == 0 then
    fail(op, ("{x} has %s, {y} %s"):format(all.elements(x:size(1)),
         y:size(1) == 1 and "1 row" or y:size(1) .. " rows"), nil, "x", x,
         "y", y)
  end
  local dtype = to_float(y).dtype
  local a = nacre.vander(x:double(), degree + 1)
  local b = y:double()
  if y:dim() == 1 then b = b:unsqueeze(2) end
  if w then
    local wide = w:double():unsqueeze(2)
    a, b = a * wide, b * wide
  end
  local scale = a:square():sum(1, true):sqrt()
  a = a / nacre.where(scale:eq(0), 1.0, scale)
  local cut = rcond or x:size(1) * 2^-52
  local u, s, v = nacre.linalg.svd(a, false)
  local kept = s:gt(cut * s[1])
  local inverse = nacre.where(kept, 1 / nacre.where(kept, s, 1.0), 0.0)
  local c = v:t():matmul(inverse:unsqueeze(2) * u:t():matmul(b))
            / nacre.where(scale:eq(0), 1.0, scale):t()
  return (y:dim() == 1 and c:squeeze(2) or c):to(dtype)
end)

define("polyder", "p:tensor, m:int=1",
       "coefficients of the derivative, taken m times",
function(p, m)
  all.check_dims("polyder", p, "p", 1)
  if p.dtype == "bool" then p = p:long() end
  for _ = 1, m do
    local n = p:size(1)
    if n <= 1 then return p:narrow(1, 1, 0) end
    p = p:narrow(1, 1, n - 1) *
        nacre.arange(n - 1, 0, -1, all.like(p))
  end
  return p
end)

define("polyint", "p:tensor, m:int=1",
       "coefficients of the integral that is 0 at 0, taken m times",
function(p, m)
  all.check_dims("polyint", p, "p", 1)
  p = to_float(p)
  for _ = 1, m do
    local n = p:size(1)
    local powers = nacre.arange(n, 0, -1, all.like(p))
    p = nacre.cat {p / powers, nacre.zeros(1, all.like(p))}
  end
  return p
end)

define("polymul", "a:tensor, b:tensor",
       "coefficients of the product of two polynomials",
       function(a, b) return nacre.convolve(a, b) end)

-- Of real roots.
define("poly", "roots:tensor",
       "coefficients of the polynomial with these roots and 1 for its highest "
       .. "power",
function(roots)
  all.check_dims("poly", roots, "roots", 1)
  local p = nacre.ones(1, all.like(to_float(roots)))
  for i = 1, roots:size(1) do
    p = nacre.cat {p, nacre.zeros(1, all.like(p))} -
        nacre.cat {nacre.zeros(1, all.like(p)), p} * roots[i]
  end
  return p
end)
