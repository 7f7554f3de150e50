-- SPDX-License-Identifier: MIT
-- linalg.lua - nacre.linalg: what is made of the factorizations that the core
-- gets from LAPACK, and their gradients. LAPACK wants matrices column by
-- column: it is given, and gives, transposes.
local all = ...
local fail = all.fail
local Function = nacre.autograd.Function

local function define(name, signature, doc, fn)
  return all.define("linalg." .. name, signature, doc, fn)
end

local function T(x) return x:transpose(-2, -1) end

-- ---- checks

local function name(op) return "linalg." .. op end

local function matrices(op, A, what)
  if A:dim() < 2 then
    fail(name(op), ("%s must be a matrix or a batch of them, it has %d dimension%s")
                   :format(what or "A", A:dim(), A:dim() == 1 and "" or "s"), nil, what or "A", A)
  end
  if A.dtype ~= "float32" and A.dtype ~= "float64" then
    fail(name(op), ("needs float32 or float64, not %s"):format(A.dtype),
         'A:to("float32")', what or "A", A)
  end
end

local function square(op, A)
  matrices(op, A)
  if A:size(-1) ~= A:size(-2) then
    fail(name(op), ("needs square matrices, not %d by %d"):format(A:size(-2), A:size(-1)),
         nil, "A", A)
  end
end

-- The first matrix of a batch whose info is not 0, in words, and its info.
local function broken(info)
  if info:dim() == 0 or info:numel() == 1 then
    return "the matrix", info:reshape(1)[1]
  end
  local at = info:ne(0):nonzero()[1]:totable()
  return ("matrix %s of the batch"):format(table.concat(at, ",")),
         info[at] or info:select(1, at[1]):item()
end

local function isbad(info) return info:ne(0):any():item() end

local function head(A, n)             -- the sizes but for the last n
  local out = {}
  for d = 1, A:dim() - (n or 2) do out[d] = A:size(d) end
  return out
end

local function with(list, ...)
  local out = { table.unpack(list) }
  for _, v in ipairs { ... } do out[#out + 1] = v end
  return out
end

-- Two batches of matrices expanded to one.
local function together(op, A, B)
  local a, b, size = head(A), head(B), {}
  local n = math.max(#a, #b)
  for i = 1, n do
    local x, y = a[i - n + #a] or 1, b[i - n + #b] or 1
    if x ~= y and x ~= 1 and y ~= 1 then
      fail(name(op), ("batches [%s] and [%s] do not broadcast")
                     :format(table.concat(a, "x"), table.concat(b, "x")), nil, "A", A, "B", B)
    end
    size[i] = x == 1 and y or x
  end
  return A:expand(with(size, A:size(-2), A:size(-1))),
         B:expand(with(size, B:size(-2), B:size(-1)))
end

local function sametype(op, A, B)
  if A.dtype ~= B.dtype then
    fail(name(op), ("dtypes differ: A is %s, B is %s"):format(A.dtype, B.dtype), nil,
         "A", A, "B", B)
  end
end

local function like(A) return { dtype = A.dtype, device = A.device } end

local function eye(A, n)
  return nacre.eye(n or A:size(-1), like(A)):expand(with(head(A), n or A:size(-1), n or A:size(-1)))
end

-- x where row - column >= k (lower), or <= k
local function triangle(x, k, upper)
  local row = nacre.range(1, x:size(-2), { device = x.device }):unsqueeze(2)
  local column = nacre.range(1, x:size(-1), { device = x.device })
  local d = row - column
  return nacre.where(upper and d:le(k) or not upper and d:ge(k), x, 0.0)
end

local function diagonal(x) return x:diagonal(0, -2, -1) end
local function diag(v) return nacre.eye(v:size(-1), like(v)) * v:unsqueeze(-2) end

-- ---- triangular systems

local trisolve
local Triangular = Function {
  name = "solve_triangular",
  forward = function(ctx, A, B, upper, unit)
    local X = T(nacre._lapack_trisolve(T(A), T(B), upper, false, unit, false))
    ctx.upper, ctx.unit = upper, unit
    ctx:save_for_backward(A, X)
    return X
  end,
  backward = function(ctx, g)
    local A, X = table.unpack(ctx.saved_tensors)
    local gB = trisolve(T(A), g, not ctx.upper, ctx.unit)
    if not ctx.needs_input_grad[1] then return nil, gB end
    local gA = -gB:matmul(T(X))
    local k = ctx.unit and 1 or 0
    return triangle(gA, ctx.upper and -k or k, ctx.upper), gB
  end,
}
function trisolve(A, B, upper, unit) return Triangular(A, B, upper, unit or false) end

define("solve_triangular", "A:tensor, B:tensor, *, upper:bool, left:bool=true, unitriangular:bool=false",
       "X with A X = B (or X A = B) for triangular A, of which the rest is not read",
function(A, B, upper, left, unit)
  local op = "solve_triangular"
  square(op, A)
  matrices(op, B, "B")
  sametype(op, A, B)
  if A:size(-1) ~= B:size(left and -2 or -1) then
    fail(name(op), ("A is %d by %d, B is %d by %d"):format(A:size(-2), A:size(-1), B:size(-2), B:size(-1)),
         nil, "A", A, "B", B)
  end
  A, B = together(op, A, B)
  if left then return trisolve(A, B, upper, unit) end
  return T(trisolve(T(A), T(B), not upper, unit))
end)

-- ---- general systems

local function checksingular(op, info)
  if not isbad(info) then return end
  local which, pivot = broken(info)
  fail(name(op), ("%s is singular: pivot %d is zero"):format(which, pivot))
end

local solve
local Solve = Function {
  name = "solve",
  forward = function(ctx, A, B, op)
    local LU, pivots, info = nacre._lapack_lu(T(A))
    checksingular(op, info)
    local X = T(nacre._lapack_lusolve(LU, pivots, T(B)))
    ctx.LU, ctx.pivots, ctx.op = LU, pivots, op
    ctx:save_for_backward(A, X)
    return X
  end,
  backward = function(ctx, g)
    local A, X = table.unpack(ctx.saved_tensors)
    local gB = nacre.is_grad_enabled() and solve(T(A), g, ctx.op) or
               T(nacre._lapack_lusolve(ctx.LU, ctx.pivots, T(g), true))
    return ctx.needs_input_grad[1] and -gB:matmul(T(X)) or nil, gB
  end,
}
function solve(A, B, op) return Solve(A, B, op) end

-- Is B a vector for each matrix of A?
local function isvector(A, B)
  if B:dim() == 1 then return true end
  if B:dim() ~= A:dim() - 1 then return false end
  for d = 1, B:dim() do
    if B:size(d) ~= A:size(d) then return false end
  end
  return true
end

define("solve", "A:tensor, B:tensor, *, left:bool=true",
       "X with A X = B (or X A = B); B is a matrix, or a vector",
function(A, B, left)
  local op = "solve"
  square(op, A)
  sametype(op, A, B)
  local vector = isvector(A, B)
  if vector then
    if not left then fail(name(op), "left=false needs matrices, B is a vector", nil, "B", B) end
    B = B:unsqueeze(-1)
  else matrices(op, B, "B") end
  if A:size(-1) ~= B:size(left and -2 or -1) then
    fail(name(op), ("A is %d by %d, B has %d %s"):format(A:size(-2), A:size(-1),
         B:size(left and -2 or -1), left and "rows" or "columns"), nil, "A", A, "B", B)
  end
  A, B = together(op, A, B)
  local X = left and solve(A, B, op) or T(solve(T(A), T(B), op))
  return vector and X:squeeze(-1) or X
end)

local function inverse(A, op) return solve(A, eye(A), op or "inv") end

define("inv", "A:tensor", "inverse of a square matrix; fails if it is singular",
function(A)
  square("inv", A)
  return inverse(A)
end)

-- ---- LU

-- -1 where the exchanges of rows are odd in number
local function parity(pivots)
  local moved = pivots:ne(nacre.range(1, pivots:size(-1), { dtype = "int32" })):sum(-1)
  return 1 - 2 * (moved % 2)
end

local svd

local Det = Function {
  name = "det",
  forward = function(ctx, A)
    local LU, pivots = nacre._lapack_lu(T(A))
    local y = diagonal(LU):prod(-1) * parity(pivots):to(A.dtype)
    ctx:save_for_backward(A, y)
    return y
  end,
  -- the cofactors, which a singular matrix has, too
  backward = function(ctx, g)
    local A, y = table.unpack(ctx.saved_tensors)
    g = g:unsqueeze(-1):unsqueeze(-1)
    if A:numel() == 0 then return A * 0 end
    if y:ne(0):all():item() then
      return g * y:unsqueeze(-1):unsqueeze(-1) * T(inverse(A, "det"))
    end
    local U, S, Vh = svd(A)
    local n, others = S:size(-1), {}
    for i = 1, n do
      local one = nacre.range(1, n):eq(i)
      others[i] = nacre.where(one, 1.0, S):prod(-1)
    end
    local sign = nacre.linalg.det(U:detach()) * nacre.linalg.det(Vh:detach())
    return g * sign:unsqueeze(-1):unsqueeze(-1) * (U * nacre.stack(others, -1):unsqueeze(-2)):matmul(Vh)
  end,
}

local function det(A)
  square("det", A)
  return Det(A)
end
define("det", "A:tensor", "determinant", det)

local Slogdet = Function {
  name = "slogdet",
  forward = function(ctx, A)
    local LU, pivots = nacre._lapack_lu(T(A))
    local d = diagonal(LU)
    local sign = d:sign():prod(-1) * parity(pivots):to(A.dtype)
    local log = d:abs():log():sum(-1)
    ctx:save_for_backward(A)
    ctx:mark_non_differentiable(sign)
    return sign, log
  end,
  backward = function(ctx, _, g)
    local A = table.unpack(ctx.saved_tensors)
    return g:unsqueeze(-1):unsqueeze(-1) * T(inverse(A, "slogdet"))
  end,
}

local function slogdet(A)
  square("slogdet", A)
  return Slogdet(A)
end
define("slogdet", "A:tensor -> sign, logabsdet", "sign of the determinant, and the log of its absolute value", slogdet)

-- Rows in the order that the pivots give them: the positions for each matrix.
local function permutation(pivots, m)
  local n = pivots:size(-1)
  local lists = pivots:reshape(-1, n):totable()
  for b, list in ipairs(lists) do
    local perm = {}
    for i = 1, m do perm[i] = i end
    for i, p in ipairs(list) do perm[i], perm[p] = perm[p], perm[i] end
    lists[b] = perm
  end
  return lists
end

-- P with A = P L U
local function permuted(pivots, m, A)
  local size = with(head(pivots, 1), m)
  local rows = pivots:numel() == 0 and nacre.range(1, m):expand(size) or
               nacre.tensor(permutation(pivots, m)):view(size)
  local P = rows:unsqueeze(-2):eq(nacre.range(1, m):unsqueeze(-1))
  return P:to(A.dtype)
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
    local n = LU:size(-1)
    if LU:size(-2) ~= n then
      fail("linalg.lu", "a gradient needs square matrices", nil, "A", LU)
    end
    local L, U = triangle(LU, 1) + nacre.eye(n, like(LU)), triangle(LU, 0, true)
    local inner = triangle(T(L):matmul(triangle(g, 1)), 1) +
                  triangle(triangle(g, 0, true):matmul(T(U)), 0, true)
    local x = trisolve(T(L), inner, true)
    x = T(trisolve(U, T(x), true))
    return permuted(pivots, n, LU):matmul(x)
  end,
}

local function factor(op, A)
  matrices(op, A)
  return Factor(A, op)
end

define("lu_factor", "A:tensor -> LU, pivots",
       "L and U of A = P L U in one matrix, and the rows, from 1, that were exchanged",
       function(A) return factor("lu_factor", A) end)

define("lu", "A:tensor -> P, L, U", "factors: A = P L U, P a permutation, L lower with ones on its diagonal, U upper",
function(A)
  local LU, pivots = factor("lu", A)
  local m, n = A:size(-2), A:size(-1)
  local k = math.min(m, n)
  local L = triangle(LU:narrow(-1, 1, k), 1) +
            nacre.eye(m, k, like(A))
  return permuted(pivots, m, A), L, triangle(LU:narrow(-2, 1, k), 0, true)
end)

define("lu_solve", "LU:tensor, pivots:tensor, B:tensor, *, left:bool=true, adjoint:bool=false",
       "X with A X = B (or X A = B, or with the transpose of A), by what lu_factor gave",
function(LU, pivots, B, left, adjoint)
  local op = "lu_solve"
  square(op, LU)
  matrices(op, B, "B")
  sametype(op, LU, B)
  local n = LU:size(-1)
  if n ~= B:size(left and -2 or -1) then
    fail(name(op), ("LU is %d by %d, B is %d by %d"):format(n, n, B:size(-2), B:size(-1)),
         nil, "LU", LU, "B", B)
  end
  local P = permuted(pivots, n, LU)
  LU, B = together(op, LU, left and B or T(B))
  if not left then adjoint = not adjoint end
  local X
  if adjoint then
    X = trisolve(T(LU), B, false)
    X = P:matmul(trisolve(T(LU), X, true, true))
  else
    X = trisolve(LU, T(P):matmul(B), false, true)
    X = trisolve(LU, X, true)
  end
  return left and X or T(X)
end)

-- ---- Cholesky

local Cholesky = Function {
  name = "cholesky",
  forward = function(ctx, A)
    local L, info = nacre._lapack_cholesky(T(A), true)
    if isbad(info) then
      local which, order = broken(info)
      fail("linalg.cholesky", ("%s is not positive definite: its leading minor of order %d is not")
                              :format(which, order))
    end
    L = T(L)
    ctx:save_for_backward(L)
    return L
  end,
  backward = function(ctx, g)
    local L = table.unpack(ctx.saved_tensors)
    local P = triangle(T(L):matmul(g), 0)
    P = P - diag(diagonal(P)) * 0.5
    local S = trisolve(T(L), P, true)
    S = T(trisolve(T(L), T(S), true))
    return (S + T(S)) * 0.5
  end,
}

define("cholesky", "A:tensor, *, upper:bool=false",
       "lower triangular L with A = L L', or upper U with A = U' U; reads that triangle only",
function(A, upper)
  square("cholesky", A)
  if upper then return T(Cholesky(T(A))) end
  return Cholesky(A)
end)

all.define("cholesky_solve", "self, L:tensor, upper:bool=false",
           "X with A X = self, by the Cholesky factor of A",
function(B, L, upper)
  matrices("cholesky", B, "B")
  square("cholesky", L)
  sametype("cholesky", L, B)
  if L:size(-1) ~= B:size(-2) then
    fail("cholesky_solve", ("L is %d by %d, self has %d rows"):format(L:size(-1), L:size(-1), B:size(-2)),
         nil, "self", B, "L", L)
  end
  L, B = together("cholesky", L, B)
  if upper then L = T(L) end
  return trisolve(T(L), trisolve(L, B, false), true)
end)

-- ---- QR

local QR = Function {
  name = "qr",
  forward = function(ctx, A, complete)
    local Q, R = nacre._lapack_qr(T(A), complete)
    Q, R = T(Q), T(R)
    ctx.complete = complete
    ctx:save_for_backward(Q, R)
    return Q, R
  end,
  backward = function(ctx, gQ, gR)
    local Q, R = table.unpack(ctx.saved_tensors)
    local m, n = Q:size(-2), R:size(-1)
    if ctx.complete and m > n then
      fail("linalg.qr", "mode complete has no gradient where there are more rows than columns")
    end
    local inner = gR:matmul(T(R)) - T(Q):matmul(gQ)
    if m >= n then
      local s = triangle(inner, 0, true)
      s = s + T(s) - diag(diagonal(s))
      return T(trisolve(R, T(Q:matmul(s) + gQ), true))
    end
    local s = triangle(T(inner) - inner, 0)
    local X = R:narrow(-1, 1, m)
    local g = T(trisolve(X, T(Q:matmul(s)), true))
    local size = g:size()
    size[#size] = n - m
    return nacre.cat({ g, nacre.zeros(size, like(g)) }, -1) + Q:matmul(gR)
  end,
}

define("qr", "A:tensor, mode:reduced|complete|r=reduced -> Q, R",
       "A = Q R, Q with orthonormal columns, R upper triangular; mode r gives R alone",
function(A, mode)
  matrices("qr", A)
  local Q, R = QR(A, mode == "complete")
  if mode == "r" then return R end
  return Q, R
end)

-- ---- eigenvalues of symmetric matrices

local Eigh = Function {
  name = "eigh",
  forward = function(ctx, A, lower)
    local w, V = nacre._lapack_eigh(T(A), lower, true)
    V = T(V)
    ctx:save_for_backward(w, V)
    return w, V
  end,
  backward = function(ctx, gw, gV)
    local w, V = table.unpack(ctx.saved_tensors)
    local gap = w:unsqueeze(-2) - w:unsqueeze(-1)
    local one = nacre.eye(w:size(-1), { dtype = "bool" })
    local s = T(V):matmul(gV)
    s = nacre.where(one, gw:unsqueeze(-2), nacre.where(s:eq(0), s, s / nacre.where(one, 1.0, gap)))
    return V:matmul(s):matmul(T(V))
  end,
}

local function checkside(op, side)
  if side:upper() ~= "L" and side:upper() ~= "U" then
    fail(name(op), ("UPLO must be L or U, not '%s'"):format(side))
  end
  return side:upper() == "L"
end

define("eigh", "A:tensor, UPLO:text=L -> eigenvalues, eigenvectors",
       "eigenvalues, ascending, and eigenvectors, the columns, of a symmetric matrix; reads its lower or upper triangle",
function(A, side)
  square("eigh", A)
  return Eigh(A, checkside("eigh", side))
end)

define("eigvalsh", "A:tensor, UPLO:text=L", "eigenvalues, ascending, of a symmetric matrix",
function(A, side)
  square("eigvalsh", A)
  local lower = checkside("eigvalsh", side)
  if A.requires_grad then return (Eigh(A, lower)) end
  return (nacre._lapack_eigh(T(A), lower, false))
end)

-- ---- singular values

local Svd = Function {
  name = "svd",
  forward = function(ctx, A)
    local S, U, Vh = nacre._lapack_svd(T(A), false, true)
    U, Vh = T(U), T(Vh)
    ctx:save_for_backward(U, S, Vh)
    return U, S, Vh
  end,
  backward = function(ctx, gU, gS, gVh)
    local U, S, Vh = table.unpack(ctx.saved_tensors)
    local k, m, n = S:size(-1), U:size(-2), Vh:size(-1)
    local one = nacre.eye(k, { dtype = "bool" })
    local function skew(x) return x - T(x) end
    local function over(x, by) return nacre.where(x:eq(0), x, x / by) end
    local E = nacre.where(one, 1.0, (S * S):unsqueeze(-2) - (S * S):unsqueeze(-1))
    local s = over(skew(T(U):matmul(gU)), E) * S:unsqueeze(-2) +
              S:unsqueeze(-1) * over(skew(Vh:matmul(T(gVh))), E)
    local g = U:matmul(nacre.where(one, gS:unsqueeze(-2), s)):matmul(Vh)
    if m > k then
      local x = gU - U:matmul(T(U):matmul(gU))
      g = g + over(x, S:unsqueeze(-2)):matmul(Vh)
    end
    if n > k then
      local x = gVh - gVh:matmul(T(Vh)):matmul(Vh)
      g = g + U:matmul(over(x, S:unsqueeze(-1)))
    end
    return g
  end,
}

function svd(A)
  if A:numel() > 0 then return Svd(A) end
  local k = math.min(A:size(-1), A:size(-2))
  return nacre.eye(A:size(-2), k, like(A)):expand(with(head(A), A:size(-2), k)),
         nacre.zeros(with(head(A), k), like(A)),
         nacre.eye(k, A:size(-1), like(A)):expand(with(head(A), k, A:size(-1)))
end

define("svd", "A:tensor, full_matrices:bool=true -> U, S, Vh",
       "A = U diag(S) Vh, S descending; full_matrices=false leaves out what S does not reach, and has gradients",
function(A, full)
  matrices("svd", A)
  local m, n = A:size(-2), A:size(-1)
  if not full or m == n then return svd(A) end
  if A:numel() == 0 then
    return eye(A, m), (select(2, svd(A))), eye(A, n)
  end
  local S, U, Vh = nacre._lapack_svd(T(A:detach()), true, true)
  if A.requires_grad then S = select(2, svd(A)) end
  return T(U), S, T(Vh)
end)

local function svdvals(A)
  if A.requires_grad or A:numel() == 0 then return (select(2, svd(A))) end
  return (nacre._lapack_svd(T(A), false, false))
end

define("svdvals", "A:tensor", "singular values, descending",
function(A)
  matrices("svdvals", A)
  return svdvals(A)
end)

local epsilon = { float32 = 2.0^-23, float64 = 2.0^-52 }

-- Singular values below it count as 0.
local function cutoff(A, S, atol, rtol)
  if S:size(-1) == 0 then return nacre.zeros(with(head(A), 1), like(A)) end
  local largest = S:narrow(-1, 1, 1)
  rtol = rtol or atol and atol > 0 and 0 or
         math.max(A:size(-1), A:size(-2)) * epsilon[A.dtype]
  return (largest * rtol):clamp(atol or 0.0)
end

define("matrix_rank", "A:tensor, *, atol:num=nil, rtol:num=nil, hermitian:bool=false",
       "number of singular values above max(atol, rtol*largest)",
function(A, atol, rtol)
  matrices("matrix_rank", A)
  local S = svdvals(A:detach())
  return S:gt(cutoff(A, S, atol, rtol)):sum(-1)
end)

local Pinv
Pinv = Function {
  name = "pinv",
  forward = function(ctx, A, atol, rtol)
    local U, S, Vh = svd(A)
    local cut = cutoff(A, S, atol, rtol)
    local y = T(Vh):matmul(nacre.where(S:gt(cut), 1 / S, 0.0):unsqueeze(-1) * T(U))
    ctx:save_for_backward(A, y)
    return y
  end,
  backward = function(ctx, g)
    local A, P = table.unpack(ctx.saved_tensors)
    local gt, Pt = T(g), T(P)
    if A:size(-2) <= A:size(-1) then
      local K = gt:matmul(P)
      local KP = K:matmul(Pt)
      return KP - T(P:matmul(K)) - A:matmul(P):matmul(KP) +
             Pt:matmul(P):matmul(gt - K:matmul(A))
    end
    local K = P:matmul(gt)
    local PK = Pt:matmul(K)
    return PK - T(K:matmul(P)) + (gt - A:matmul(K)):matmul(P):matmul(Pt) -
           PK:matmul(P):matmul(A)
  end,
}

local function pinv(A, atol, rtol) return Pinv(A, atol, rtol) end

define("pinv", "A:tensor, *, atol:num=nil, rtol:num=nil, hermitian:bool=false",
       "Moore-Penrose inverse; singular values up to max(atol, rtol*largest) count as 0",
function(A, atol, rtol)
  matrices("pinv", A)
  return pinv(A, atol, rtol)
end)

define("lstsq", "A:tensor, B:tensor, rcond:num=nil -> solution, residuals, rank, singular_values",
       "X that minimizes |A X - B|, the shortest of several; B is a matrix, or a vector",
function(A, B, rcond)
  local op = "lstsq"
  matrices(op, A)
  sametype(op, A, B)
  local vector = B:dim() == 1 or B:dim() == A:dim() - 1
  if vector then B = B:unsqueeze(-1) end
  matrices(op, B, "B")
  if A:size(-2) ~= B:size(-2) then
    fail(name(op), ("A has %d rows, B has %d"):format(A:size(-2), B:size(-2)), nil, "A", A, "B", B)
  end
  local X = pinv(A, nil, rcond):matmul(B)
  local S = svdvals(A:detach())
  local rank = S:gt(cutoff(A, S, nil, rcond)):sum(-1)
  local residuals = nacre.zeros({ 0 }, like(A))
  if A:size(-2) > A:size(-1) and rank:eq(A:size(-1)):all():item() then
    residuals = (A:matmul(X) - B):pow(2):sum(-2)
  end
  if vector then X = X:squeeze(-1) end
  return X, residuals, rank, S
end)

-- ---- norms

local function real(op, x)
  if not x:is_floating_point() then
    fail(name(op), ("needs a float dtype, not %s"):format(x.dtype), nil, "x", x)
  end
end

local function vectornorm(op, x, p, dim, keepdim, dtype)
  real(op, x)
  if dtype then x = x:to(dtype) end
  return x:norm(p, dim, keepdim)
end

define("vector_norm", "x:tensor, ord:num=2, dim:any=nil, keepdim:bool=false, *, dtype:dtype=nil",
       "norm of order ord of vectors: (sum |x|^ord)^(1/ord)",
       function(...) return vectornorm("vector_norm", ...) end)

local inf = math.huge
local sums = { [1] = 1, [-1] = 1, [inf] = 2, [-inf] = 2 }

local function matrixnorm(op, A, ord, dim, keepdim, dtype)
  real(op, A)
  if A:dim() < 2 then
    fail(name(op), ("A has %d dimension%s, at least 2 are needed")
                   :format(A:dim(), A:dim() == 1 and "" or "s"), nil, "A", A)
  end
  if dtype then A = A:to(dtype) end
  dim = dim or { -2, -1 }
  if type(dim) ~= "table" or #dim ~= 2 then fail(name(op), "dim must be two dimensions") end
  dim = all.dimsof(name(op), A, dim)
  if ord == "fro" then return A:norm(2, dim, keepdim) end
  local y
  if sums[ord] then
    local first, second = dim[sums[ord]], dim[3 - sums[ord]]
    y = A:abs():sum(first, true)
    y = ord > 0 and y:amax(second, true) or y:amin(second, true)
  elseif ord == 2 or ord == -2 or ord == "nuc" then
    local S = svdvals(A:movedim(dim, { -2, -1 }))
    S = ord == "nuc" and S:sum(-1) or S:select(-1, ord == 2 and 1 or -1)
    y = S:unsqueeze(-1):unsqueeze(-1):movedim({ -2, -1 }, dim)
  else
    fail(name(op), ("ord must be fro, nuc, inf, -inf, 1, -1, 2 or -2, not %s"):format(tostring(ord)))
  end
  if keepdim then return y end
  return y:squeeze(dim)
end

define("matrix_norm", "A:tensor, ord:any=fro, dim:ints=nil, keepdim:bool=false, *, dtype:dtype=nil",
       "norm of matrices: fro, nuc, inf, -inf, 1, -1, 2 or -2",
       function(...) return matrixnorm("matrix_norm", ...) end)

define("norm", "A:tensor, ord:any=nil, dim:any=nil, keepdim:bool=false, *, dtype:dtype=nil",
       "vector_norm, or matrix_norm if dim are two dimensions or ord is given for a matrix",
function(A, ord, dim, keepdim, dtype)
  local two = type(dim) == "table" and #dim == 2
  if ord and not dim and A:dim() > 2 then
    fail("linalg.norm", "dim is needed for more than two dimensions", nil, "A", A)
  end
  if type(ord) == "string" or ord and (two or not dim and A:dim() == 2) then
    return matrixnorm("norm", A, ord, dim, keepdim, dtype)
  end
  return vectornorm("norm", A, ord or 2, dim, keepdim, dtype)
end)

define("cond", "A:tensor, p:any=nil", "condition number: norm of order p of A times that of its inverse",
function(A, p)
  matrices("cond", A)
  if p == nil or p == 2 or p == -2 then
    local S = svdvals(A)
    local high, low = S:select(-1, 1), S:select(-1, -1)
    return p == -2 and low / high or high / low
  end
  square("cond", A)
  local _, _, info = nacre._lapack_lu(T(A:detach()))
  if isbad(info) and info:numel() == 1 then
    return nacre.full(head(A), inf, like(A))
  end
  return matrixnorm("cond", A, p) * matrixnorm("cond", inverse(A, "cond"), p)
end)

-- ---- powers

local function power(A, n, op)
  square(op or "matrix_power", A)
  if n < 0 then A, n = inverse(A, op or "matrix_power"), -n end
  if n == 0 then return eye(A):clone() end
  local y
  while true do
    if n % 2 == 1 then y = y and y:matmul(A) or A end
    n = n // 2
    if n == 0 then break end
    A = A:matmul(A)
  end
  return y
end

define("matrix_power", "A:tensor, n:int", "A times itself n times; of its inverse if n < 0",
       function(A, n) return power(A, n) end)

-- Scaling and squaring with a Pade approximant of order 13 (Higham 2005).
local pade = { 64764752532480000.0, 32382376266240000.0, 7771770303897600.0,
  1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
  33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0 }

define("matrix_exp", "A:tensor", "exponential of a square matrix",
function(A)
  square("matrix_exp", A)
  if A:numel() == 0 then return A:clone() end
  local norm = A:detach():abs():sum(-2):amax():item()
  if norm ~= norm or norm == inf then return A * (0 / 0) end
  local s = math.max(0, math.ceil(math.log(norm / 5.37 + 1e-300, 2)))
  local X, I = A / 2.0^s, eye(A)
  local X2 = X:matmul(X)
  local X4 = X2:matmul(X2)
  local X6 = X4:matmul(X2)
  local function poly(k)              -- of the powers of X with c[k], c[k+2] ...
    local c = pade
    local low = X6 * c[k + 6] + X4 * c[k + 4] + X2 * c[k + 2] + I * c[k]
    local high = X4 * c[k + 10] + X2 * c[k + 8]
    if c[k + 12] then high = high + X6 * c[k + 12] end
    return X6:matmul(high) + low
  end
  local V, U = poly(1), X:matmul(poly(2))
  local y = solve(V - U, V + U, "matrix_exp")
  for _ = 1, s do y = y:matmul(y) end
  return y
end)

-- ---- products

define("multi_dot", "tensors:tensors", "product of several matrices, in the cheapest order; the first and last may be vectors",
       function(list) return all.chain("linalg.multi_dot", list) end)
define("cross", "input:tensor, other:tensor, *, dim:int=-1", "cross product along a dimension of size 3",
       function(a, b, dim) return nacre.cross(a, b, dim) end)
define("vecdot", "x:tensor, y:tensor, *, dim:int=-1", "inner products along a dimension",
       function(a, b, dim) return (a * b):sum(dim) end)
define("diagonal", "A:tensor, *, offset:int=0, dim1:int=-2, dim2:int=-1", "the diagonals of matrices (a view)",
       function(A, offset, a, b) return A:diagonal(offset, a, b) end)
define("matmul", "input:tensor, other:tensor", "matrix product", function(a, b) return a:matmul(b) end)

-- ---- old names

all.define("det", "self", "determinant", det)
all.define("slogdet", "self -> sign, logabsdet",
           "sign of the determinant, and the log of its absolute value", slogdet)
all.define("logdet", "self", "log of the determinant; nan where that is negative",
function(A)
  square("slogdet", A)
  local sign, log = slogdet(A)
  return nacre.where(sign:lt(0), 0 / 0, log)
end)
all.define("inverse", "self", "inverse of a square matrix",
function(A)
  square("inv", A)
  return inverse(A)
end)
all.define("pinverse", "self, rcond:num=1e-15", "Moore-Penrose inverse",
function(A, rcond)
  matrices("pinv", A)
  return pinv(A, nil, rcond)
end)
all.define("matrix_power", "self, n:int", "self times itself n times; of its inverse if n < 0",
           function(A, n) return power(A, n) end)
all.define("matrix_exp", "self", "exponential of a square matrix",
           function(A) return nacre.linalg.matrix_exp(A) end)
