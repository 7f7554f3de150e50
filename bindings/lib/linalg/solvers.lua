-- SPDX-License-Identifier: MIT
-- solvers.lua - nacre.linalg: triangular and general systems, LU, determinants
-- and Cholesky, with their gradients; and the helpers that the other files of
-- linalg/ use.
--
-- Matrices are float32, float64 or complex, [... x n x n]. LAPACK stores them
-- by columns, so it is passed, and returns, transposed ones. Functions fail for
-- another dtype, for matrices that are not square or do not match, and for
-- singular ones; the error names the matrix of the batch. Formulas of gradients
-- are in Giles 2008 where no other source is named.

local all = ...
all.require "nacre.checks"
local fail, like = all.fail, all.like
local Function = nacre.autograd.Function

local define = all.definer "linalg."

local function T(x) return x:transpose(-2, -1) end
local function H(x) return x.mH end    -- the adjoint, of which gradients are

-- ---- checks

local function name(op) return "linalg." .. op end

-- `also': another dtype that will do
local function matrices(op, A, what, also)
  if A:dim() < 2 then
    fail(name(op),
         ("{%s} must be a matrix or a batch of matrices, it has %d dimension%s")
                   :format(what or "A", A:dim(), A:dim() == 1 and "" or "s"),
                     nil, what or "A", A)
  end
  if A.dtype ~= "float32" and A.dtype ~= "float64" and not A:is_complex() and
     A.dtype ~= also then
    fail(name(op), ("needs float32 or float64, not %s"):format(A.dtype),
         ('{%s}:to("float32")'):format(what or "A"), what or "A", A)
  end
end

local function square(op, A, also)
  matrices(op, A, "A", also)
  if A:size(-1) ~= A:size(-2) then
    fail(name(op),
         ("needs square matrices, not %d by %d"):format(A:size(-2), A:size(-1)),
         nil, "A", A)
  end
end

-- The first matrix of a batch whose info is not 0, as text, and its info.
local function first_failure(info)
  if info:dim() == 0 or info:numel() == 1 then
    return "the matrix", info:reshape(1)[1]
  end
  local at = info:ne(0):nonzero()[1]:totable()
  return ("matrix %s of the batch"):format(table.concat(at, ",")),
         info[at] or info:select(1, at[1]):item()
end

-- True if LAPACK reported a failure for some matrix.
local function isbad(info) return info:ne(0):any():item() end

local function head(A, n)             -- the sizes except the last n
  local out = {}
  for d = 1, A:dim() - (n or 2) do out[d] = A:size(d) end
  return out
end

-- The list followed by the other arguments.
local function with(list, ...)
  local out = {table.unpack(list)}
  for _, v in ipairs {...} do out[#out + 1] = v end
  return out
end

-- Expands two batches of matrices to their common shape. Fails if they do not
-- broadcast.
local function broadcast_batches(op, A, B)
  local a, b, size = head(A), head(B), {}
  local n = math.max(#a, #b)
  for i = 1, n do
    local x, y = a[i - n + #a] or 1, b[i - n + #b] or 1
    if x ~= y and x ~= 1 and y ~= 1 then
      fail(name(op), ("batches [%s] and [%s] do not broadcast")
                     :format(table.concat(a, "x"), table.concat(b, "x")), nil,
                       "A", A, "B", B)
    end
    size[i] = x == 1 and y or x
  end
  return A:expand(with(size, A:size(-2), A:size(-1))),
         B:expand(with(size, B:size(-2), B:size(-1)))
end

local function sametype(op, A, B)
  all.check_same_dtype(name(op), "A", A, "B", B)
end

-- Fails unless A, square, times B is defined, or B times A if left is false.
local function checksizes(op, nameA, A, nameB, B, left)
  local n = B:size(left and -2 or -1)
  if A:size(-1) ~= n then
    fail(op, ("{%s} is %d by %d, {%s} has %d %s"):format(nameA, A:size(-2),
         A:size(-1), nameB, n, left and "rows" or "columns"), nil, nameA, A,
         nameB, B)
  end
end

-- The same, and their other properties, for a call X with A X = B.
local function check_system(op, nameA, A, B, left)
  square(op, A)
  matrices(op, B, "B")
  sametype(op, A, B)
  checksizes(name(op), nameA, A, "B", B, left)
end

-- The numbers 1 to n, on the device of x.
local function range_like(n, x, dtype)
  return nacre.range(1, n, {dtype = dtype, device = x.device})
end

-- Identity matrices for the batch of A.
local function eye(A, n)
  return nacre.eye(n or A:size(-1), like(A)):expand(with(head(A), n or
      A:size(-1), n or A:size(-1)))
end

-- x where row - column >= k, or where it is <= k for `upper'; 0 elsewhere
local function triangle(x, k, upper)
  local row = range_like(x:size(-2), x):unsqueeze(2)
  local column = range_like(x:size(-1), x)
  local d = row - column
  return nacre.where(upper and d:le(k) or not upper and d:ge(k), x, 0.0)
end

local function diagonal(x) return x:diagonal(0, -2, -1) end
local function diag(v) return nacre.diag_embed(v) end

-- ---- triangular systems

-- Rows in memory are the columns of the transposed matrices, so that A X = B is
-- solved as X' A' = B' without a copy of A.
local function trisolve_rows(A, B, upper, unit)
  return nacre._lapack_trisolve(A, B, not upper, false, unit, true)
end

local function trisolve_columns(A, B, upper, unit)
  return T(nacre._lapack_trisolve(T(A), T(B), upper, false, unit, false))
end

local trisolve
-- gB = A^-T g, gA = -gB X', restricted to the triangle.
local Triangular = Function {
  name = "solve_triangular",
  forward = function(ctx, A, B, upper, unit)
    local by = T(A):is_contiguous() and trisolve_columns or trisolve_rows
    local X = by(A, B, upper, unit)
    ctx.upper, ctx.unit = upper, unit
    ctx:save_for_backward(A, X)
    return X
  end,
  backward = function(ctx, g)
    local A, X = table.unpack(ctx.saved_tensors)
    local gB = trisolve(H(A), g, not ctx.upper, ctx.unit)
    if not ctx.needs_input_grad[1] then return nil, gB end
    local gA = -gB:matmul(H(X))
    local k = ctx.unit and 1 or 0
    return triangle(gA, ctx.upper and -k or k, ctx.upper), gB
  end,
}
function trisolve(A, B, upper, unit)
  return Triangular(A, B, upper, unit or false)
end

-- A [... x n x n], B [... x n x k] give [... x n x k]. Does not check for zeros
-- on the diagonal.
define("solve_triangular",
       "A:tensor, B:tensor, *, upper:bool, left:bool=true, "
       .. "unitriangular:bool=false",
       "X with A X = B (or X A = B) for triangular A, whose other half is not "
         .. "read",
function(A, B, upper, left, unit)
  local op = "solve_triangular"
  check_system(op, "A", A, B, left)
  A, B = broadcast_batches(op, A, B)
  if left then return trisolve(A, B, upper, unit) end
  return T(trisolve(T(A), T(B), not upper, unit))
end)

-- ---- general systems (LAPACK's getrf)

local function checksingular(op, info)
  if not isbad(info) then return end
  local which, pivot = first_failure(info)
  fail(name(op), ("%s is singular: pivot %d is zero"):format(which, pivot))
end

local solve
-- gB = A^-T g, gA = -gB X'. If it inverts, B is the identity.
local Solve = Function {
  name = "solve",
  forward = function(ctx, A, B, op, inverts)
    local LU, pivots, info = nacre._lapack_lu(T(A))
    checksingular(op, info)
    local X = T(inverts and nacre._lapack_luinverse(LU, pivots) or
                nacre._lapack_lusolve(LU, pivots, T(B)))
    ctx.LU, ctx.pivots, ctx.op = LU, pivots, op
    ctx:save_for_backward(A, X)
    return X
  end,
  backward = function(ctx, g)
    local A, X = table.unpack(ctx.saved_tensors)
    local gB = nacre.is_grad_enabled() and solve(H(A), g, ctx.op) or
               T(nacre._lapack_lusolve(ctx.LU, ctx.pivots, T(g), true))
    return ctx.needs_input_grad[1] and -gB:matmul(H(X)) or nil, gB
  end,
}
function solve(A, B, op, inverts) return Solve(A, B, op, inverts) end

-- True if B is a vector for each matrix of A.
local function isvector(A, B)
  if B:dim() == 1 then return true end
  if B:dim() ~= A:dim() - 1 then return false end
  for d = 1, B:dim() do
    if B:size(d) ~= A:size(d) then return false end
  end
  return true
end

-- A [... x n x n], B [... x n x k] or [... x n] give a result of the shape of
-- B.
define("solve", "A:tensor, B:tensor, *, left:bool=true",
       "X with A X = B (or X A = B); B is a matrix, or a vector",
function(A, B, left)
  local op = "solve"
  square(op, A)
  sametype(op, A, B)
  local vector = isvector(A, B)
  if vector then
    if not left then
      fail(name(op), "left=false needs matrices, {B} is a vector", nil, "B", B)
    end
    B = B:unsqueeze(-1)
  else matrices(op, B, "B") end
  checksizes(name(op), "A", A, "B", B, left)
  A, B = broadcast_batches(op, A, B)
  local X = left and solve(A, B, op) or T(solve(T(A), T(B), op))
  return vector and X:squeeze(-1) or X
end)

-- Smaller matrices are solved by loops of our own, many at once.
local SMALL = 32

local function inverse(A, op)
  return solve(A, eye(A), op or "inv", A:size(-1) > SMALL)
end

define("inv", "A:tensor", "inverse of a square matrix; fails if it is singular",
function(A)
  square("inv", A)
  return inverse(A)
end)

-- ---- LU and determinants

-- The diagonal of U, and the sign of the permutation.
local function diagonal_and_parity(A)
  local LU, pivots = nacre._lapack_lu(T(A))
  local still = range_like(pivots:size(-1), pivots, "int32")
  local moved = pivots:ne(still):sum(-1)
  return diagonal(LU), (1 - 2 * (moved % 2)):to(A.dtype)
end

local Det = Function {
  name = "det",
  forward = function(ctx, A)
    local d, parity = diagonal_and_parity(A)
    local y = d:prod(-1) * parity
    ctx:save_for_backward(A, y)
    return y
  end,
  -- g times the matrix of cofactors. For a singular matrix it is computed from
  -- the singular value decomposition.
  backward = function(ctx, g)
    local A, y = table.unpack(ctx.saved_tensors)
    g = g:unsqueeze(-1):unsqueeze(-1)
    if A:numel() == 0 then return A * 0 end
    if y:ne(0):all():item() then
      return g * y:conj():unsqueeze(-1):unsqueeze(-1) * H(inverse(A, "det"))
    end
    -- a matrix with nan or inf has none, but others of the batch do
    local finite = A:isfinite():all(-1):all(-1):unsqueeze(-1):unsqueeze(-1)
    local U, S, Vh = all.matrix.svd(nacre.where(finite, A, 0.0))
    local n, others = S:size(-1), {}
    for i = 1, n do
      local one = range_like(n, S):eq(i)
      others[i] = nacre.where(one, 1.0, S):prod(-1)
    end
    local sign = nacre.linalg.det(U:detach()) * nacre.linalg.det(Vh:detach())
    local cofactors = sign:conj():unsqueeze(-1):unsqueeze(-1) *
                      (U * nacre.stack(others, -1):unsqueeze(-2)):matmul(Vh)
    return g * nacre.where(finite, cofactors, 0 / 0)
  end,
}

local function det(A)
  square("det", A)
  return Det(A)
end
define("det", "A:tensor", "determinant", det)

-- gA = g A^-H. The sign of a real determinant has no gradient; that of a
-- complex one is a phase.
local Slogdet = Function {
  name = "slogdet",
  forward = function(ctx, A)
    local d, parity = diagonal_and_parity(A)
    local sign = d:sgn():prod(-1) * parity
    local log = d:abs():log():sum(-1)
    ctx:save_for_backward(A, sign)
    if not A:is_complex() then ctx:mark_non_differentiable(sign) end
    return sign, log
  end,
  backward = function(ctx, gsign, g)
    local A, sign = table.unpack(ctx.saved_tensors)
    if A:is_complex() then
      g = nacre.complex(g, -(gsign:conj() * sign).imag)
    end
    return g:unsqueeze(-1):unsqueeze(-1) * H(inverse(A, "slogdet"))
  end,
}

local function slogdet(A)
  square("slogdet", A)
  return Slogdet(A)
end
define("slogdet",
       "A:tensor -> sign, logabsdet",
       "sign of the determinant, and the log of its absolute value",
       slogdet)

-- The rows in the order that the pivots give: a list of positions for each
-- matrix.
local function permutation(pivots, m)
  local n = pivots:size(-1)
  local lists = pivots:reshape(-1, n):totable()
  for b, list in ipairs(lists) do
    local perm = {}
    for i = 1, m do perm[i] = i end
    for i, p in ipairs(list) do
      if not perm[p] then
        fail("linalg.lu", ("a pivot is %s, of %d rows"):format(p, m))
      end
      perm[i], perm[p] = perm[p], perm[i]
    end
    lists[b] = perm
  end
  return lists
end

-- The permutation matrices P of A = P L U.
local function permutation_matrices(pivots, m, A)
  local size = with(head(pivots, 1), m)
  local rows = pivots:numel() == 0 and range_like(m, A):expand(size) or
               nacre.tensor(permutation(pivots, m), {device = A.device})
                 :view(size)
  local P = rows:unsqueeze(-2):eq(range_like(m, A):unsqueeze(-1))
  return P:to(A.dtype)
end

-- P X for matrices of permutations.
local function permuted(P, X)
  if X:size(-2) == 0 then return X end
  return X:gather(-2, P.real:argmax(-1):unsqueeze(-1):expand(X:size()))
end

-- Gradients of L and U of A = P L U (Wan and Zhang 2019, and as PyTorch's for
-- matrices that are not square). gL and gU are triangular, as L and U are.
-- Wide, or square: gA = P L^-H [tril(L' gL - gU U', -1) U1^-H + gU1, gU2],
-- where U1 are the first columns of U, and U2 the others.
local function wide_grad(L, U, gL, gU)
  local k, n = U:size(-2), U:size(-1)
  local inner = triangle(H(L):matmul(gL) - gU:matmul(H(U)), 1)
  inner = H(trisolve(U:narrow(-1, 1, k), H(inner), true))
  local x = gU:narrow(-1, 1, k) + inner
  if n > k then x = nacre.cat({x, gU:narrow(-1, k + 1, n - k)}, -1) end
  return trisolve(H(L), x, true, true)
end

-- Tall: gA = P [L1^-T triu(gU U' - L' gL) + gL1; gL2] U^-T, of the rows.
local function tall_grad(L, U, gL, gU)
  local k, m = L:size(-1), L:size(-2)
  local inner = triangle(gU:matmul(H(U)) - H(L):matmul(gL), 0, true)
  inner = trisolve(H(L:narrow(-2, 1, k)), inner, true, true)
  local x = nacre.cat({gL:narrow(-2, 1, k) + inner,
                       gL:narrow(-2, k + 1, m - k)}, -2)
  return H(trisolve(U, H(x), true))
end

local Factor = Function {
  name = "lu_factor",
  forward = function(ctx, A, op)
    local LU, pivots, info = nacre._lapack_lu(T(A))
    if op == "lu_factor" then checksingular(op, info) end
    LU = T(LU)
    ctx:save_for_backward(LU, pivots)
    ctx:mark_non_differentiable(pivots)
    return LU, pivots
  end,
  backward = function(ctx, g)
    local LU, pivots = table.unpack(ctx.saved_tensors)
    local m, n = LU:size(-2), LU:size(-1)
    local k = math.min(m, n)
    if k == 0 then return g end
    local function lower(x) return triangle(x:narrow(-1, 1, k), 1) end
    local function upper(x) return triangle(x:narrow(-2, 1, k), 0, true) end
    local L = lower(LU) + nacre.eye(m, k, like(LU))
    local grad = m > n and tall_grad or wide_grad
    return permuted(permutation_matrices(pivots, m, LU),
                    grad(L, upper(LU), lower(g), upper(g)))
  end,
}

local function factor(op, A)
  matrices(op, A)
  return Factor(A, op)
end

-- A [... x m x n] gives LU [... x m x n] and pivots [... x min(m, n)]. Fails
-- for a singular matrix.
define("lu_factor", "A:tensor -> LU, pivots",
       "L and U of A = P L U in one matrix, and the rows, from 1, that were "
       .. "exchanged",
       function(A) return factor("lu_factor", A) end)

-- P [... x m x m], L [... x m x k], U [... x k x n], k = min(m, n). Also for
-- singular matrices.
define("lu",
       "A:tensor -> P, L, U",
       "factors: A = P L U, P a permutation, L lower with ones on its "
       .. "diagonal, U upper",
function(A)
  local LU, pivots = factor("lu", A)
  local m, n = A:size(-2), A:size(-1)
  local k = math.min(m, n)
  local L = triangle(LU:narrow(-1, 1, k), 1) +
            nacre.eye(m, k, like(A))
  return permutation_matrices(pivots, m, A), L,
         triangle(LU:narrow(-2, 1, k), 0, true)
end)

define("lu_solve",
       "LU:tensor, pivots:tensor, B:tensor, *, left:bool=true, "
       .. "adjoint:bool=false",
       "X with A X = B (or X A = B, or with the transpose of A), from the "
         .. "result of lu_factor",
function(LU, pivots, B, left, adjoint)
  local op = "lu_solve"
  check_system(op, "LU", LU, B, left)
  local n = LU:size(-1)
  local P = permutation_matrices(pivots, n, LU)
  LU, B = broadcast_batches(op, LU, left and B or H(B))
  if not left then adjoint = not adjoint end
  local X
  if adjoint then
    X = trisolve(H(LU), B, false)
    X = permuted(P, trisolve(H(LU), X, true, true))
  else
    X = trisolve(LU, permuted(T(P), B), false, true)
    X = trisolve(LU, X, true)
  end
  return left and X or H(X)
end)

-- ---- Cholesky (LAPACK's potrf)

-- gA = L^-T F L^-1, symmetrized, where F is the lower triangle of L' gL with
-- its diagonal halved (Murray 2016). Fails if A is not positive definite.
local Cholesky = Function {
  name = "cholesky",
  forward = function(ctx, A)
    local L, info = nacre._lapack_cholesky(T(A), true)
    if isbad(info) then
      local which, order = first_failure(info)
      fail("linalg.cholesky",
           ("%s is not positive definite: its leading minor of order %d is not")
                              :format(which, order))
    end
    L = T(L)
    ctx:save_for_backward(L)
    return L
  end,
  backward = function(ctx, g)
    local L = table.unpack(ctx.saved_tensors)
    local P = triangle(H(L):matmul(g), 0)
    P = P - diag(diagonal(P)) * 0.5
    local S = trisolve(H(L), P, true)
    S = H(trisolve(H(L), H(S), true))
    return (S + H(S)) * 0.5
  end,
}

define("cholesky", "A:tensor, *, upper:bool=false",
       "lower triangular L with A = L L', or upper U with A = U' U; reads that "
       .. "triangle only",
function(A, upper)
  square("cholesky", A)
  if upper then return H(Cholesky(H(A))) end
  return Cholesky(A)
end)

-- self [... x n x k], L [... x n x n] give [... x n x k].
all.define("cholesky_solve", "self, L:tensor, upper:bool=false",
           "X with A X = self, by the Cholesky factor of A",
function(B, L, upper)
  matrices("cholesky", B, "B")
  square("cholesky", L)
  sametype("cholesky", L, B)
  checksizes("cholesky_solve", "L", L, "self", B, true)
  L, B = broadcast_batches("cholesky", L, B)
  if upper then L = H(L) end
  return trisolve(H(L), trisolve(L, B, false), true)
end)

-- what the other files of linalg/ use
all.matrix = {T = T, H = H, det = det, diag = diag, diagonal = diagonal,
  eye = eye, head = head, inverse = inverse, isbad = isbad,
  matrices = matrices, name = name, sametype = sametype, slogdet = slogdet,
  solve = solve, square = square, triangle = triangle, trisolve = trisolve,
  with = with}
