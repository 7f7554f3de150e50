-- SPDX-License-Identifier: MIT
-- The gradients where a function has a corner, operands are equal, or are nan:
-- those of PyTorch 2.15.

local nan <const>, inf <const> = 0 / 0, math.huge

-- The gradients of the sum of f of tensors with the elements in `lists'.
local function gradients(f, lists, dtype)
  local given, out = {}, {}
  for k, list in ipairs(lists) do
    given[k] = nacre.tensor(list, {dtype = dtype}):requires_grad_()
  end
  f(table.unpack(given)):sum():backward()
  for k, x in ipairs(given) do
    for i, v in ipairs(x.grad:totable()) do
      out[#out + 1] = (i == 1 and k > 1 and "| " or "") ..
                      (v ~= v and "nan" or ("%g"):format(v))
    end
  end
  return table.concat(out, " ")
end

local function check(want, f, ...)
  for _, dtype in ipairs {"float64", "float32", "bfloat16"} do
    local got = gradients(f, {...}, dtype)
    assert(got == want, ("%s, not %s (%s)"):format(got, want, dtype))
  end
end

-- Numbers: the limit itself has none.
local line = {-2, -1, 0, 1, 2, nan, inf, -inf}
check("0 0 1 0 0 0 0 0", function(x) return x:clamp(-1, 1) end, line)
check("0 0 1 1 1 0 1 0", function(x) return x:clamp {min = -1} end, line)
check("1 1 1 0 0 0 0 1", function(x) return x:clamp {max = 1} end, line)
check("0 0 0 0 0 0 0 0", function(x) return x:clamp(1, -1) end, line)
check("0 0 1 0 0 0 0 0", function(x)
  return (x * 1):clamp_(-1, 1)
end, line)
-- Tensors share it; all equal, it is that of x; nan gives it to x.
check("1 0.5 0 0 0.5 0 1 1 | 0 0.5 0 1 0 0 0 0 | 0 0 1 0 0.5 1 0 0",
      function(x, low, high) return x:clamp(low, high) end,
      {1, 1, 1, 1, 2, 2, nan, 0}, {1, 1, 2, 2, 0, 0, 0, nan},
      {1, 2, 1, 2, 2, 1, 1, 1})
check("0 0.5 1 1 | 1 0.5 0 1", function(x, low)
  return x:clamp {min = low}
end, {0, 1, 2, nan}, {1, 1, 1, 1})
check("0 0.5 1 1 1 | 1 0.5 0 1 1", nacre.maximum, {0, 1, 1, nan, 1},
      {1, 1, 0, 1, nan})
check("1 0.5 0 1 1 | 0 0.5 1 1 1", nacre.minimum, {0, 1, 1, nan, 1},
      {1, 1, 0, 1, nan})
check("0 0 1 1 1 0", nacre.relu, {-1, 0, 1, nan, inf, -inf})
check("0 0 1 0 1 0 0", nacre.relu6, {-1, 0, 1, 6, nan, inf, -inf})
check("0 0 1 0 1 0 0", nacre.hardtanh, {-2, -1, 0, 1, nan, inf, -inf})
local with_nan = {1, nan, 2, nan}
for _, f in ipairs {nacre.max, nacre.min, nacre.median} do
  check("0 0.5 0 0.5", f, with_nan)
end
check("1 0 0 0", nacre.nanmedian, with_nan)
for _, f in ipairs {nacre.median, nacre.nanmedian} do
  check("0.5 0.5 0", f, {1, 1, 2})
end
check("nan nan nan nan 0 0.5 0.5 0", function(x)
  return x:view(2, 4):amax(2)
end, {1, nan, 2, nan, 1, 2, 2, 1})
check("0.5 1 0 1 1 | 0.5 0 1 0 0", nacre.fmax, {0, 1, 1, 3, nan},
      {0, 0, 2, nan, nan})
check("0.5 0 1 1 1 | 0.5 1 0 0 0", nacre.fmin, {0, 1, 1, 3, nan},
      {0, 0, 2, nan, nan})
check("0 1 | 0 -0", nacre.atan2, {0, 0}, {0, 1})
for _, name in ipairs {"huber_loss", "smooth_l1_loss"} do
  check("nan 1 -1 0 0.5 1", function(x)
    return nacre.nn.functional[name](x, nacre.zeros_like(x),
                                     {reduction = "none"})
  end, {nan, inf, -inf, 0, 0.5, 2})
end
check("nan 0 0 4", function(x) return x:logit(0.125) end, {nan, 0, 1, 0.5})
-- it is x - 1 that is 0 at -inf
assert(gradients(nacre.selu, {{-inf}}, "float64") == "0")
-- there are second derivatives, too
local function with_second(f)
  local x = nacre.tensor({-1.5, -0.3, 0.4}, {dtype = "float64"})
  local y = nacre.tensor({-1.1, 0.2, 0.1}, {dtype = "float64"})
  assert(nacre.autograd.gradgradcheck(function(a, b)
    return f(a, b):square() + b:square()
  end, {x:requires_grad_(), y:requires_grad_()}))
end
with_second(function(x) return x:clamp(-1, 1) end)
with_second(function(x) return x:clamp {min = -1} end)
with_second(function(x, y) return x:clamp(y, x + 1) end)
with_second(nacre.maximum)
with_second(nacre.minimum)
for _, f in ipairs {nacre.relu, nacre.relu6, nacre.selu, nacre.hardtanh} do
  with_second(function(x) return f(x) end)
end

-- At 0 the second derivatives of norms of orders above 2 are 0, of one element
-- and of all.
for _, p in ipairs {2.25, 3, 3.5, 4, 7} do
  for _, list in ipairs {{0, 0, 0}, {0, 2, -1}} do
    local x = nacre.tensor(list, {dtype = "float64"}):requires_grad_()
    local g = nacre.autograd.grad(x:norm(p), x, {create_graph = true})
    g:sum():backward()
    assert(x.grad:isfinite():all():item(), tostring(x.grad))
    assert(x.grad[1] == 0)
  end
end

-- The gradient of a function of a symmetric matrix is symmetric: here it is 0,
-- since rows of an orthogonal matrix have the norm 1.
do
  local A = nacre.tensor({{2, 1, 0.5}, {1, 3, -0.3}, {0.5, -0.3, 1}},
                         {dtype = "float64"}):requires_grad_()
  local _, V = nacre.linalg.eigh(A)
  local rows = nacre.tensor({{1.0}, {2}, {5}}, {dtype = "float64"})
  local g = nacre.autograd.grad((V * V * rows):sum(), A, {create_graph = true})
  assert(g:abs():max():item() < 1e-13, tostring(g))
end
-- and what full_matrices adds to U and Vh changes no other gradient
for _, size in ipairs {{2, 4}, {4, 2}} do
  nacre.manual_seed(1)
  local A = nacre.randn(size[1], size[2], {dtype = "float64"}):requires_grad_()
  local function gradient(full)
    local U, S, Vh = nacre.linalg.svd(A, full)
    U, Vh = U:narrow(-1, 1, 2), Vh:narrow(-2, 1, 2)
    return nacre.autograd.grad((U * U * 3):cumsum(1):sum() + S:sum() +
                               (Vh * Vh):cumsum(2):sum(), A)
  end
  assert(gradient(true):allclose(gradient(false), 1e-10))
end

-- An infinite result of logsumexp changes no second derivative of others.
do
  local x = nacre.tensor({{1, 2}, {inf, inf}}, {dtype = "float64"})
  local v = nacre.tensor({3, 1}, {dtype = "float64"}):requires_grad_()
  x:requires_grad_()
  local g = nacre.autograd.grad((x:logsumexp(2) * v):sum(), x,
                                {create_graph = true})
  assert(g[2]:equal(nacre.tensor({0.5, 0.5}, {dtype = "float64"})))
  local d = nacre.autograd.grad((g * g):sum(), v)
  local weights = x:detach()[1]:softmax(1)
  assert(math.abs(d[1] - 6 * weights:square():sum():item()) < 1e-12)
end
print("grad_at_corners: passed")
