-- SPDX-License-Identifier: MIT
-- householder.lua - orthogonal matrices as products of Householder reflections
-- I - tau v v', with LAPACK's geqrf, orgqr and ormqr, and cholesky_inverse. The
-- vectors v are below the diagonal of a matrix, with an implicit 1 on it.

local all = ...
all.require "nacre.solvers"
local fail, M = all.fail, all.matrix
local T, H, head, matrices = M.T, M.H, M.head, M.matrices
local sametype = M.sametype
local triangle, with = M.triangle, M.with

-- Fails unless tau is [... x k], k at most the smaller side of A, with the
-- dtype and batch of A.
local function checktau(op, A, tau)
  matrices(op, A, "A")
  sametype(op, A, tau)
  local k = math.min(A:size(-2), A:size(-1))
  local size = tau:size()
  local fits = tau:dim() == A:dim() - 1 and tau:size(-1) <= k
  for d = 1, fits and #size - 1 or 0 do fits = fits and size[d] == A:size(d) end
  if fits then return end
  fail(M.name(op), ("{tau} must be a vector of at most %d factors for each "
                    .. "matrix"):format(k), nil, "A", A, "tau", tau)
end

-- [... x m x n] gives a [... x m x n], tau [... x min(m, n)]. Has no gradient.
all.define("geqrf", "self -> a, tau",
           "R of a QR decomposition, and below it the Householder vectors "
           .. "that Q is made of; tau are their factors",
function(A)
  matrices("geqrf", A)
  local a, tau = nacre._lapack_geqrf(T(A:detach()))
  return T(a), tau
end)

-- Q X, or Q' X for `adjoint', one reflection after the other with recorded
-- operations; used if a gradient is needed.
local function apply_reflections(A, tau, X, adjoint)
  local k = tau:size(-1)
  local v = triangle(A, 1):narrow(-1, 1, k) +
            nacre.eye(A:size(-2), k, all.like(A))
  if adjoint and tau:is_complex() then tau = tau:conj() end
  for i = adjoint and 1 or k, adjoint and k or 1, adjoint and 1 or -1 do
    local vi = v:narrow(-1, i, 1)
    X = X - vi * tau:narrow(-1, i, 1):unsqueeze(-1) * H(vi):matmul(X)
  end
  return X
end

-- True if one of the tensors requires a gradient.
local function needs_gradient(...)
  if not nacre.is_grad_enabled() then return false end
  for _, x in ipairs {...} do
    if x.requires_grad then return true end
  end
end

-- A [... x m x n], m >= n, and tau [... x k] give the first n columns of Q.
local function product(A, tau)
  local op = "householder_product"
  checktau(op, A, tau)
  local m, n = A:size(-2), A:size(-1)
  if m < n then
    fail(M.name(op), ("{A} is %d by %d: it needs as many rows as columns, or "
                      .. "more"):format(m, n), nil, "A", A)
  end
  if not needs_gradient(A, tau) then
    return T(nacre._lapack_orgqr(T(A), tau))
  end
  local I = nacre.eye(m, n, all.like(A)):expand(with(head(A), m, n))
  return apply_reflections(A, tau, I)
end

all.define("linalg.householder_product", "A:tensor, tau:tensor",
           "the first columns of the orthogonal matrix whose Householder "
           .. "vectors stand below the diagonal of A", product)
all.define("orgqr", "self, tau:tensor",
           "the first columns of the orthogonal matrix whose Householder "
           .. "vectors stand below the diagonal of self", product)

-- self [... x m x k]; other [... x m x n], or [... x n x m] if left is false.
-- Float32 or float64, all of one dtype.
all.define("ormqr", "self, tau:tensor, other:tensor, left:bool=true, "
           .. "transpose:bool=false",
           "Q other, or other Q: Q is the orthogonal matrix whose Householder "
           .. "vectors stand below the diagonal of self",
function(A, tau, X, left, adjoint)
  local op = "ormqr"
  checktau(op, A, tau)
  matrices(op, X, "other")
  sametype(op, A, X)
  local m = A:size(-2)
  if X:size(left and -2 or -1) ~= m or
     table.concat(head(X), "x") ~= table.concat(head(A), "x") then
    fail("ormqr", ("{self} is [%s], {other} is [%s]")
                  :format(table.concat(A:size(), "x"),
                          table.concat(X:size(), "x")), nil, "self", A,
         "other", X)
  end
  if not needs_gradient(A, tau, X) then
    return T(nacre._lapack_ormqr(T(A), tau, T(X), left, adjoint))
  end
  if left then return apply_reflections(A, tau, X, adjoint) end
  return H(apply_reflections(A, tau, H(X), not adjoint))
end)

-- self [... x n x n]: (L L')^-1 = X' X with X = L^-1.
all.define("cholesky_inverse", "self, upper:bool=false",
           "the inverse of a matrix, by its Cholesky factor",
function(L, upper)
  M.square("cholesky_inverse", L)
  if upper then L = H(L) end
  local X = M.trisolve(L, M.eye(L), false)
  return H(X):matmul(X)
end)
