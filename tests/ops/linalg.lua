-- SPDX-License-Identifier: MIT
-- nacre.linalg: what the factors must satisfy, what fails and how.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local L = nacre.linalg
nacre.manual_seed(1)
local f64 = {dtype = "float64"}
local function T(x) return x:transpose(-1, -2) end
local function same(a, b, tolerance) C.same(a, b, nil, tolerance or 1e-9) end

for _, dtype in ipairs {"float32", "float64"} do
  local o, e = {dtype = dtype}, dtype == "float32" and 2e-3 or 1e-9
  for _, n in ipairs {1, 3, 40} do
    local I = nacre.eye(n, o):expand(2, n, n)
    local A = nacre.randn(2, n, n, o) + 3 * I
    local B = nacre.randn(2, n, 2, o)
    same(L.inv(A):matmul(A), I:contiguous(), e)
    same(A:matmul(L.solve(A, B)), B, e)
    same(L.solve(A, T(B), {left = false}):matmul(A), T(B), e)
    same(A[1]:mv(L.solve(A[1], B[1]:select(2, 1))), B[1]:select(2, 1), e)
    local P, l, u = L.lu(A)
    same(P:matmul(l):matmul(u), A, e)
    local LU, pivots = L.lu_factor(A)
    assert(pivots.dtype == "int32" and pivots:min():item() >= 1)
    same(A:matmul(L.lu_solve(LU, pivots, B)), B, e)
    same(T(A):matmul(L.lu_solve(LU, pivots, B, {adjoint = true})), B, e)
    local sign, log = L.slogdet(A)
    if n < 10 then same(L.det(A), sign * log:exp(), e * 10) end
    local S = A:matmul(T(A)) + I
    local c = L.cholesky(S)
    same(c:matmul(T(c)), S, e * n)
    same(L.cholesky(S, {upper = true}), T(c), e * n)
    same(S:matmul(B:cholesky_solve(c)), B, e * n)
    local w, V = L.eigh(S)
    same((V * w:unsqueeze(-2)):matmul(T(V)), S, e * n)
    same(L.eigvalsh(S), w, e * n)
    same(c:cholesky_inverse():matmul(S), I:contiguous(), e * n)
    same(T(c):cholesky_inverse(true), c:cholesky_inverse(), e * n)
    -- a similar matrix, which is not symmetric
    local G = A:matmul(S):matmul(L.inv(A))
    if n < 10 then
      w, V = L.eig(G)
      same(w.imag, w.real * 0, e * 100)
      w, V = w.real, V.real
      same(G:matmul(V), V * w:unsqueeze(-2), e * 100)
      same((V * V):sum(-2), nacre.ones(2, n, o), e)
      same(L.eigvals(G).real:sort(), L.eigvalsh(S), e * 100)
    end
  end
  for _, mn in ipairs {{5, 3}, {3, 5}, {4, 4}, {1, 4}} do
    local M = nacre.randn(2, mn[1], mn[2], o)
    for _, mode in ipairs {"reduced", "complete"} do
      local Q, R = L.qr(M, mode)
      same(Q:matmul(R), M, e)
      same(T(Q):matmul(Q),
           nacre.eye(Q:size(-1), o):expand(2, -1, -1):contiguous(), e)
    end
    local a, tau = M:geqrf()
    local m, k = mn[1], math.min(mn[1], mn[2])
    local Q = a:ormqr(tau, nacre.eye(m, o):expand(2, m, m))
    same(Q:matmul(a:triu()), M, e)
    same(Q, L.qr(M, "complete"), e)
    same(a:narrow(-1, 1, k):orgqr(tau), L.qr(M), e)
    for _, left in ipairs {true, false} do
      for _, adjoint in ipairs {false, true} do
        local X = nacre.randn(2, left and m or 2, left and 2 or m, o)
        local q = adjoint and T(Q) or Q
        same(a:ormqr(tau, X, left, adjoint), left and q:matmul(X) or
             X:matmul(q), e)
      end
    end
    local U, s, Vh = L.svd(M, false)
    same((U * s:unsqueeze(-2)):matmul(Vh), M, e)
    same(L.svdvals(M), s, e)
    U, s, Vh = L.svd(M)
    shape(U, 2, mn[1], mn[1])
    shape(Vh, 2, mn[2], mn[2])
    same(U:matmul(T(U)), nacre.eye(mn[1], o):expand(2, -1, -1):contiguous(), e)
    local P = L.pinv(M)
    same(M:matmul(P):matmul(M), M, e)
  end
end

-- ---- a number of batches; threads do not matter
local A = nacre.randn(3, 1, 6, 6, f64)
local B = nacre.randn(4, 6, 2, f64)
shape(L.solve(A, B), 3, 4, 6, 2)
local one = L.inv(A)
local threads = nacre.get_num_threads()
nacre.set_num_threads(1)
assert(L.inv(A) == one)
nacre.set_num_threads(threads)

-- ---- nothing is something, too
shape(L.inv(nacre.zeros(0, 0)), 0, 0)
shape(L.inv(nacre.zeros(0, 3, 3)), 0, 3, 3)
is(L.det(nacre.zeros(0, 0)), "1.0")
shape(L.solve(nacre.eye(3), nacre.zeros(3, 0)), 3, 0)
shape(L.svdvals(nacre.zeros(0, 3)), 0)
shape(L.cholesky(nacre.zeros(0, 0)), 0, 0)
shape(L.qr(nacre.zeros(3, 0), "complete"), 3, 3)
shape((L.eigh(nacre.zeros(0, 0))), 0)
shape((L.lu(nacre.zeros(2, 3, 0))), 2, 3, 3)
shape((L.lu(nacre.zeros(0, 2, 2))), 0, 2, 2)

-- ---- norms, powers, others
local M = nacre.tensor({{3.0, 0.0}, {4.0, 5.0}}, f64)
shape(L.matrix_norm(nacre.ones(2, 3, 4), "nuc", {1, 3}, true), 1, 3, 1)
fails("ord must be fro", L.matrix_norm, M, 3)
is(L.cond(nacre.ones(2, 2), 1), "inf")
same(L.matrix_power(M, -2):mm(M):mm(M), nacre.eye(2, f64))
same(L.matrix_exp(nacre.tensor({{0, 1}, {-1, 0}}, f64) * 30),
     nacre.tensor({{math.cos(30), math.sin(30)},
                   {-math.sin(30), math.cos(30)}}, f64))
local X, residuals, rank, S = L.lstsq(
  nacre.tensor({{1, 1}, {1, 2}, {1, 3}}, f64),
                                      nacre.tensor({1, 2, 4}, f64))
same(X, nacre.tensor({-2 / 3, 1.5}, f64))
same(residuals, nacre.tensor({1 / 6}, f64))
is(rank, "2")
shape(S, 2)
same(M:inverse(), L.inv(M))
same(M:logdet(), L.slogdet(M) * math.log(15))

-- ---- what fails
fails("the matrix is singular: pivot 2 is zero", L.inv, nacre.ones(2, 2))
fails("matrix 2 of the batch is singular: pivot 2 is zero", L.solve,
      nacre.stack{nacre.eye(2), nacre.ones(2, 2)}, nacre.ones(2, 1))
fails("the matrix is singular: pivot 2 is zero", L.lu_factor, nacre.ones(2, 2))
fails("matrix 1,2 of the batch is singular", L.inv,
      nacre.stack({nacre.eye(2), nacre.ones(2, 2)}):unsqueeze(1))
fails("the matrix is not positive definite: its leading minor of order 2 is",
      L.cholesky, nacre.tensor{{1.0, 2.0}, {2.0, 1.0}})
fails("needs square matrices, not 2 by 3", L.inv, nacre.ones(2, 3))
fails("needs float32 or float64, not float16", L.inv, nacre.ones(2, 2):half())
fails("needs float32 or float64, not int64", L.svd, nacre.tensor{{1}})
fails("A must be a matrix or a batch of matrices, it has 1 dimension", L.det,
      nacre.ones(3))
fails("dtypes differ", L.solve, nacre.eye(2), nacre.ones(2, 1, f64))
fails("A is 2 by 2, B has 3 rows", L.solve, nacre.eye(2), nacre.ones(3, 1))
fails("batches [2] and [3] do not broadcast", L.solve, nacre.ones(2, 2, 2),
      nacre.ones(3, 2, 2))
fails("does not converge", L.svd, nacre.full({3, 3}, 0 / 0))
fails("upper is missing", L.solve_triangular, nacre.eye(2), nacre.eye(2))
fails("pivot 5 of 2", nacre._lapack_lusolve, nacre.eye(2),
      nacre.tensor({5, 1}, {dtype = "int32"}), nacre.eye(2))
fails("L is 3 by 3, self has 2 rows", function()
  return nacre.eye(2):cholesky_solve(nacre.eye(3))
end)

fails("mode complete has no gradient", function()
  local x = nacre.randn(4, 3, {requires_grad = true})
  L.qr(x, "complete"):sum():backward()
end)

-- ---- eigenvalues that are not real, nan, what lost it
for _, bad in ipairs {0 / 0, math.huge} do   -- LAPACK itself would print it
  fails("does not converge: does the matrix hold nan or inf?", L.svdvals,
        nacre.full({3, 3}, bad))
end

local turn = nacre.tensor({{0, 1}, {-1, 0}}, f64)
local batch = nacre.stack {nacre.eye(2, f64), turn}
do
  local w, V = L.eig(batch)
  assert(w[{2, 1}] == nacre.i and w[{2, 2}] == -nacre.i, tostring(w))
  assert(nacre.allclose(batch:to "complex128":matmul(V), V * w:unsqueeze(-2)))
  assert(nacre.equal(L.eigvals(batch), w))
  for _, n in ipairs {1, 2, 5, 12} do
    local A = nacre.randn({3, n, n}, f64)
    w, V = L.eig(A)
    A = A:to "complex128"
    assert(nacre.allclose(A:matmul(V), V * w:unsqueeze(-2)))
    assert(nacre.allclose(V:abs():square():sum(-2),
                          nacre.ones({3, n}, f64)))
    w, V = L.eig(A + nacre.i * A:flip(-1))
    assert(nacre.allclose((A + nacre.i * A:flip(-1)):matmul(V),
                          V * w:unsqueeze(-2)))
  end
  fails("linalg.eigvals: does not converge", L.eigvals, turn * (0 / 0))
  shape(L.eigvals(nacre.zeros(3, 0, 0)), 3, 0)
end
for _, dtype in ipairs {"float32", "float64"} do
  for _, n in ipairs {2, 3, 5, 20} do
    local o = {dtype = dtype}
    for k = 0, n * n - 1, n > 5 and 7 or 1 do
      local A, B = nacre.randn(n, n, o), nacre.randn(n, 2, o)
      local where = {k // n + 1, k % n + 1}
      local bad = A:clone()
      bad[where] = 0 / 0
      assert(L.solve(bad, B):isnan():all():item(), "solve loses nan")
      assert(L.inv(bad):isnan():all():item(), "inv loses nan")
      assert(L.det(bad):isnan():item(), "det loses nan")
      B[{where[1], 1}] = 0 / 0
      local X = L.solve(A, B):isnan():sum(1)
      assert(X[1] == n and X[2] == 0, "solve spreads nan of a column")
    end
  end
end
local two = nacre.tensor({{2, 1}, {0, 2}}, f64)
for _, n in ipairs {math.mininteger, math.mininteger + 1, math.maxinteger} do
  assert(L.matrix_power(nacre.eye(2), n) == nacre.eye(2), n)
end
assert(L.matrix_power(two, math.mininteger):eq(0):all():item())

-- ---- renorm

local R = nacre.tensor {{3.0, 4}, {0.3, 0.4}}
same(R:renorm(1, -2, 0.5), R:renorm(1, 1, 0.5), 1e-7)
assert(not pcall(R.renorm, R, 1, 3, 1))
assert(rawequal(R:renorm_(2, 1, 100), R) and R[{1, 1}] == 3)
fails("renorm: needs two dimensions", nacre.renorm, R[1], 2, 1, 1)
fails("renorm: p must be above 0", nacre.renorm, R, 0, 1, 1)
fails("renorm: maxnorm must not be negative", nacre.renorm, R, 2, 1, -1)
fails("renorm_: needs two", R.renorm_, R[1], 2, 1, 1)
fails("tau must be", nacre.orgqr, nacre.ones(3, 2), nacre.ones(3))
fails("as many rows as columns", nacre.orgqr, nacre.ones(2, 3), nacre.ones(2))
-- ---- norms of no elements

for _, size in ipairs {{0, 5}, {5, 0}, {0, 0}} do
  for _, ord in ipairs {1, 2, math.huge, "nuc", "fro"} do
    assert(L.matrix_norm(nacre.ones(size), ord) == nacre.tensor(0.0))
    assert(L.norm(nacre.ones(size), ord, nil, true) == nacre.zeros(1, 1))
  end
  fails("no elements", L.matrix_norm, nacre.ones(size), -2)
end

-- ---- batches of small matrices, which have loops of their own

for round = 1, 40 do
  local dtype = round % 2 == 0 and "float32" or "float64"
  local bound = dtype == "float32" and 2e-5 or 4e-14
  local n, batch, sides = math.random(34), math.random(40), math.random(70)
  local a = nacre.randn(batch, n, n, {dtype = dtype})
  if round % 3 == 0 then a = a:mul(2):round() end    -- equals among pivots
  local what = ("%d of %d x %d, %s"):format(batch, n, n, dtype)
  local p, l, u = L.lu(a)
  local off = (p:matmul(l):matmul(u) - a):abs():max():item()
  assert(off < bound * n, ("lu of %s: %g"):format(what, off))
  assert(l:abs():max():item() <= 1, what .. " has no partial pivoting")
  if dtype == "float64" and round % 3 ~= 0 then
    local f, pivots = L.lu_factor(a)
    local f1, pivots1 = L.lu_factor(a[batch])
    assert(pivots[batch] == pivots1, what .. " has other pivots")
    assert((f[batch] - f1):abs():max():item() < 1e-11, what)
  end
  a = a + 4 * math.sqrt(n) * nacre.eye(n, {dtype = dtype})
  local b = nacre.randn(batch, n, sides, {dtype = dtype})
  off = (a:matmul(L.solve(a, b)) - b):abs():max():item()
  assert(off < bound * 4, ("solve of %s: %g"):format(what, off))
  local threads = nacre.get_num_threads()
  nacre.set_num_threads(1)
  local alone = L.solve(a, b)
  nacre.set_num_threads(threads)
  assert(alone == L.solve(a, b), "threads change " .. what)
end
do
  local a = nacre.eye(5):expand(9, 5, 5):clone()
  a[7][3] = 0
  fails("matrix 7 of the batch is singular: pivot 3 is zero", L.inv, a)
  a[7][3] = 0 / 0
  local x = L.solve(a, nacre.ones(9, 5))
  assert(x[7]:isnan():all():item() and x[8]:isfinite():all():item(),
        "nan in one of a batch")
  local b = nacre.ones(9, 5, 1)
  b[2][4] = 0 / 0
  a[7] = nacre.eye(5)
  x = L.solve(a, b)
  assert(x[2]:isnan():all():item() and x[3]:isfinite():all():item(),
        "nan in a right side")
end

-- a system of no rows
same(L.lu_solve(nacre.zeros(0, 0), nacre.zeros(0):int(), nacre.zeros(0, 4)),
     nacre.zeros(0, 4), 0)

print("linalg: passed")
