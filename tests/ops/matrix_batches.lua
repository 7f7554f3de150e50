-- SPDX-License-Identifier: MIT
-- nacre.linalg of matrices that hold nan or inf, by one rule: what iterates, or
-- needs a positive definite matrix, refuses them; elimination carries them into
-- its result. A matrix does not depend on the others of its batch. Tolerances
-- for each matrix, powers of integers, gradients of LU factors.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local L = nacre.linalg
local nan, inf = 0 / 0, math.huge
nacre.manual_seed(2)
local function T(x) return x:transpose(-1, -2) end
local function positive(n, dtype)
  local x = nacre.randn(n, n, {dtype = dtype})
  x = x:mm(x:t()) + n * nacre.eye(n, {dtype = dtype})
  return (x + x:t()) / 2
end

-- ---- nan and inf

local symmetric = {eigh = L.eigh, eigvalsh = L.eigvalsh}
local general = {svd = L.svd, svdvals = L.svdvals, pinv = L.pinv,
                 matrix_rank = L.matrix_rank, cond = L.cond, eig = L.eig,
                 eigvals = L.eigvals,
                 nuc = function(x) return L.matrix_norm(x, "nuc") end,
                 lstsq = function(x) return L.lstsq(x, x) end}
for _, dtype in ipairs {"float32", "float64"} do
  for _, n in ipairs {1, 2, 3, 20, 60} do
    for _, bad in ipairs {nan, inf, -inf} do
      local good = positive(n, dtype)
      local x = good:clone()
      local i, j = math.random(n), math.random(n)
      i, j = math.max(i, j), math.min(i, j)
      x[{i, j}] = bad
      fails(("its leading minor of order %d is not"):format(i), L.cholesky, x)
      fails("is not positive definite", L.cholesky, T(x), {upper = true})
      for name, f in pairs(symmetric) do
        fails("does it hold nan or inf", f, nacre.stack {good, x})
        fails("does the matrix hold nan or inf", f, x)
        fails("does the matrix hold nan or inf", f, T(x), "U")
        fails("does the matrix hold nan or inf", f, x:clone():requires_grad_())
        if i > j then              -- the other triangle is not read
          assert(nacre.equal((f(T(x))), (f(good))), name)
          assert(nacre.equal((f(x, "U")), (f(good, "U"))), name)
        end
      end
      if i > j then
        assert(L.cholesky(T(x)):equal(L.cholesky(good)))
      end
      for name, f in pairs(general) do
        fails("hold nan or inf", f, x)
      end
    end
    local x = positive(n, dtype)
    x[{n, 1}] = nan
    for name, y in pairs {inv = L.inv(x), det = L.det(x),
                          solve = L.solve(x, nacre.eye(n, {dtype = dtype})),
                          matrix_exp = L.matrix_exp(x),
                          qr = select(2, L.qr(x))} do
      assert(y:isnan():any():item(), name .. " loses nan")
    end
  end
end

-- ---- a matrix beside others

local A = nacre.randn(4, 3, 3, {dtype = "float64"})
local spoilt = A:clone()
spoilt[2] = nan
spoilt[{3, 1, 1}] = inf
local function beside(name, f)
  local want, got = f(A), f(spoilt)
  for _, i in ipairs {1, 4} do
    assert(got:narrow(1, i, 1):equal(want:narrow(1, i, 1)),
           name .. " reads another matrix")
  end
  assert(got:narrow(1, 2, 1):isnan():all():item(), name)
end
beside("matrix_exp", L.matrix_exp)
beside("inv", L.inv)
beside("det", L.det)
beside("matrix_power", function(x) return L.matrix_power(x, 5) end)
do
  -- a small matrix is computed as well beside a large one
  local small = nacre.randn(3, 3) * 1e-3
  local both = L.matrix_exp(nacre.stack {small, nacre.eye(3) * 60})
  assert(both[1]:equal(L.matrix_exp(small)))
  assert(both[2]:allclose(L.matrix_exp(nacre.eye(3) * 60)))
  -- condition numbers and gradients of determinants, beside a singular one
  local x = nacre.stack {nacre.zeros(2, 2), nacre.eye(2),
                         nacre.tensor {{1.0, 2}, {2, 4}}}
  for _, p in ipairs {1, -1, inf, -inf, "fro"} do
    local c = L.cond(x, p)
    assert(c[1] == inf and c[3] == inf and
           c[2] == L.cond(nacre.eye(2), p):item())
  end
  for _, p in ipairs {2, -2} do
    assert(L.cond(x, p)[1] == inf and L.cond(x, p)[2] == 1)
    assert(L.cond(nacre.zeros(3, 2), p):item() == inf)
  end
  assert(L.cond(nacre.zeros(2, 2)):item() == inf)
  local y = nacre.cat {x, nacre.full({1, 2, 2}, nan)}:requires_grad_()
  L.det(y):sum():backward()
  assert(y.grad[4]:isnan():all():item())
  assert(y.grad[2]:allclose(nacre.eye(2)) and
         y.grad[3]:allclose(nacre.tensor {{4.0, -2}, {-2, 1}}, 1e-4, 1e-4))
end

-- ---- tolerances: one for each matrix

do
  local d = nacre.tensor {{4.0, 2, 1}, {4, 2, 1}, {8, 4, 0}}
  local x = nacre.diag_embed(d)
  is(L.matrix_rank(x, {atol = nacre.tensor {0.5, 1.5, 0.5}}), "{3,2,2}")
  is(L.matrix_rank(x, nacre.tensor {0.5, 1.5, 0.5}), "{3,2,2}")
  is(L.matrix_rank(x, {atol = nacre.tensor({0.5, 1.5, 0.5},
                                           {requires_grad = true})}), "{3,2,2}")
  for _, tol in ipairs {0.4, nacre.tensor {0.3, 0.6, 0.1}} do
    local got, want = L.pinv(x, tol), L.pinv(x, {atol = 0.0, rtol = tol})
    assert(got:eq(want):all():item())
  end
  fails("rcond is a tolerance already", L.pinv, x, 0.1, {atol = 0.1})
  fails("tol is a tolerance already", L.matrix_rank, x, 0.1, {rtol = 0.1})
  is(L.matrix_rank(x, {atol = nacre.tensor {1, 3, 0}}), "{2,1,2}")
  is(L.matrix_rank(x, {rtol = nacre.tensor {0.3, 0.6, 0.1}}), "{2,1,2}")
  local rtol = nacre.tensor {0.1, 0.6, 0.1}
  is(L.matrix_rank(x, {atol = nacre.tensor(1.5), rtol = rtol}), "{2,1,2}")
  is(L.matrix_rank(x, {atol = 1.5, rtol = nacre.tensor {0.1, 0.6, 0.1}}),
     "{2,1,2}")
  is(L.matrix_rank(x[1], {atol = nacre.tensor {0.5, 1.5, 9}}), "{3,2,0}")
  is(L.matrix_rank(x, {atol = nacre.tensor {{0.5}, {3}}}), "{{3,3,2},{1,1,2}}")
  is(L.matrix_rank(x[3], {atol = nacre.tensor {0.0}}), "{2}")
  local p = L.pinv(x, {atol = nacre.tensor {0.5, 1.5, 0.5}})
  assert(p:equal(nacre.diag_embed(nacre.tensor {
    {0.25, 0.5, 1}, {0.25, 0.5, 0}, {0.125, 0.25, 0}})))
  local one = x[1]:clone():requires_grad_()
  p = L.pinv(one, {rtol = nacre.tensor {0.1, 0.3, 0.6}})
  shape(p, 3, 3, 3)
  p:sum():backward()
  local want = nacre.zeros(3, 3)
  for _, r in ipairs {0.1, 0.3, 0.6} do
    local again = x[1]:clone():requires_grad_()
    L.pinv(again, {rtol = r}):sum():backward()
    want = want + again.grad
  end
  assert(one.grad:allclose(want, 1e-4, 1e-5))
  fails("atol requires a gradient", L.pinv, x,
        {atol = nacre.tensor(1.0):requires_grad_()})
  fails("rtol must be a number or a tensor", L.matrix_rank, x, {rtol = true})
end

-- ---- powers of integers, and of halves

is(L.matrix_power(nacre.tensor {{1, 1}, {1, 0}}, 10), "{{89,55},{55,34}}")
is(L.matrix_power(nacre.tensor {{1, 1}, {1, 0}}, 90),
   "{{4660046610375530309,2880067194370816120},"
   .. "{2880067194370816120,1779979416004714189}}")
is(nacre.tensor({{1, 1}, {1, 0}}, {dtype = "uint8"}):matrix_power(15),
   "{{219,98},{98,121}}")                 -- 987 and 610 modulo 256
for _, dtype in ipairs(C.ints) do
  local x = nacre.randint(0, 3, {2, 3, 3}):to(dtype)
  assert(L.matrix_power(x, 0):equal(nacre.eye(3, {dtype = dtype})
                                      :expand(2, 3, 3)))
  assert(L.matrix_power(x, 1):equal(x))
  assert(L.matrix_power(x, 5):equal(x:matmul(x):matmul(x):matmul(x):matmul(x)))
  assert(L.matrix_power(x, 5).dtype == dtype)
  fails("needs float32 or float64", L.matrix_power, x, -1)
end
fails("needs float32 or float64, not bool", L.matrix_power,
      nacre.ones(2, 2):bool(), 2)
for _, dtype in ipairs {"float16", "bfloat16"} do
  local x = nacre.randn(2, 3, 3):to(dtype)
  for _, n in ipairs {-2, 0, 3, 7} do
    assert(L.matrix_power(x, n):equal(L.matrix_power(x:float(), n):to(dtype)))
  end
  local y = L.matrix_exp(x)
  assert(y:equal(L.matrix_exp(x:float()):to(dtype)) and y.dtype == dtype)
end

-- ---- gradients of LU factors, also of what is not square

local function slope(f, x, i, j)
  local h, values = 1e-6, {}
  for k, s in ipairs {h, -h} do
    local y = x:detach():clone()
    y[{i, j}] = y[{i, j}] + s
    values[k] = f(y):item()
  end
  return (values[1] - values[2]) / (2 * h)
end
for _, mn in ipairs {{3, 3}, {2, 4}, {4, 2}, {1, 3}, {3, 1}, {5, 4}, {4, 5}} do
  local m, n = mn[1], mn[2]
  local k = math.min(m, n)
  local x = nacre.randn(m, n, {dtype = "float64"})
  local wl, wu = nacre.randn(m, k, {dtype = "float64"}),
                 nacre.randn(k, n, {dtype = "float64"})
  local w = nacre.randn(m, n, {dtype = "float64"})
  local parts = {
    both = function(a)
      local _, l, u = L.lu(a)
      return (l * wl):sum() + (u * u * wu):sum()
    end,
    l = function(a) return (select(2, L.lu(a)) * wl):sum() end,
    u = function(a) return (select(3, L.lu(a)) * wu):sum() end,
    factor = function(a) return ((L.lu_factor(a)) * w):sum() end,
  }
  for name, f in pairs(parts) do
    local a = x:clone():requires_grad_()
    f(a):backward()
    for i = 1, m do
      for j = 1, n do
        local want = slope(f, x, i, j)
        assert(math.abs(a.grad[{i, j}] - want) < 1e-4 * (1 + math.abs(want)),
               ("%s of %dx%d at %d,%d: %g, not %g"):format(name, m, n, i, j,
                 a.grad[{i, j}], want))
      end
    end
  end
end
do                                    -- a batch, some of it pivoted
  local x = nacre.randn(3, 4, 2, {dtype = "float64"}):requires_grad_()
  local _, l, u = L.lu(x)
  nacre.add(l:sum(), u:pow(2):sum()):backward()
  for b = 1, 3 do
    local one = x:detach()[b]:clone():requires_grad_()
    local _, l1, u1 = L.lu(one)
    nacre.add(l1:sum(), u1:pow(2):sum()):backward()
    assert(one.grad:allclose(x.grad[b]))
  end
  local none = nacre.zeros(3, 0):requires_grad_()
  select(2, L.lu(none)):sum():backward()
  shape(none.grad, 3, 0)
end
