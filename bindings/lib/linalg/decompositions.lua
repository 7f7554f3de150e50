-- SPDX-License-Identifier: MIT
-- decompositions.lua - nacre.linalg: QR, eigenvalues, singular values, and
-- pseudoinverse, rank and least squares, which are computed from them.
--
-- Matrices are float32, float64 or complex, [... x m x n], and transposed for
-- LAPACK as in solvers.lua. Functions fail for other dtypes, for matrices that
-- are not square where a square one is needed, and where LAPACK does not
-- converge. Gradients assume distinct eigenvalues or singular values (Giles
-- 2008).

local all = ...
all.require("nacre.checks", "nacre.solvers")
local fail, M = all.fail, all.matrix
local Function = nacre.autograd.Function
local T, H, diag, diagonal = M.T, M.H, M.diag, M.diagonal
local eye, head = M.eye, M.head
local inverse, like, matrices, name = M.inverse, all.like, M.matrices, M.name
local sametype, square, with = M.sametype, M.square, M.with
local triangle, trisolve = M.triangle, M.trisolve

local define = all.definer "linalg."

-- A boolean mask of the diagonal of the matrices with values w.
local function diagonal_mask(w)
  return nacre.eye(w:size(-1), {dtype = "bool", device = w.device})
end

-- ---- QR (LAPACK's geqrf and orgqr)

-- For m >= n the gradient is (gQ + Q S) R^-T, S the symmetric matrix whose
-- upper triangle is that of gR R' - Q' gQ. For m < n it is Q gR plus, in the
-- first m columns, Q S X^-T, where X is the first m columns of R and S the
-- lower triangle of M' - M, M = gR R' - Q' gQ. Mode complete has none for m >
-- n.
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
      fail("linalg.qr", "mode complete has no gradient where there are more "
           .. "rows than columns")
    end
    local inner = gR:matmul(H(R)) - H(Q):matmul(gQ)
    if m >= n then
      local s = triangle(inner, 0, true)
      s = s + H(s) - diag(diagonal(s).real)
      return H(trisolve(R, H(Q:matmul(s) + gQ), true))
    end
    local s = triangle(H(inner) - inner, 0)
    s = s - diag(diagonal(s)) / 2          -- imaginary: 0 of real matrices
    local X = R:narrow(-1, 1, m)
    local g = H(trisolve(X, H(Q:matmul(s)), true))
    local size = g:size()
    size[#size] = n - m
    return nacre.cat({g, nacre.zeros(size, like(g))}, -1) + Q:matmul(gR)
  end,
}

-- A [... x m x n] gives Q [... x m x k], R [... x k x n], k = min(m, n), or m
-- for mode complete.
define("qr", "A:tensor, mode:reduced|complete|r=reduced -> Q, R",
       "A = Q R, Q with orthonormal columns, R upper triangular; mode r gives "
       .. "R alone",
function(A, mode)
  matrices("qr", A)
  local Q, R = QR(A, mode == "complete")
  if mode == "r" then return R end
  return Q, R
end)

-- ---- eigenvalues of symmetric matrices (LAPACK's syevd)

-- s / (w_j - w_i) off the diagonal, gw on it: the middle factor of the
-- gradient. s is V' gV, where 0 / 0 is 0.
local function eigen_gradient(w, gw, s)
  local gap = w:unsqueeze(-2) - w:unsqueeze(-1)
  local one = diagonal_mask(w)
  return nacre.where(one, gw:unsqueeze(-2), nacre.where(s:eq(0), s,
                     s / nacre.where(one, 1.0, gap)))
end

-- gA = V (diag(gw) + skew(V' gV) / (w_j - w_i)) V' (Giles 2008). V stays
-- orthogonal, so only the skew part counts, and gA is symmetric.
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
    local inner = H(V):matmul(gV)
    local s = eigen_gradient(w, gw, (inner - H(inner)) / 2)
    return V:matmul(s):matmul(H(V))
  end,
}

-- True for "L", false for "U"; fails for anything else.
local function checkside(op, side)
  if side:upper() ~= "L" and side:upper() ~= "U" then
    fail(name(op), ("UPLO must be L or U, not '%s'"):format(side))
  end
  return side:upper() == "L"
end

-- A [... x n x n] gives [... x n], [... x n x n].
define("eigh", "A:tensor, UPLO:text|L|U=L -> eigenvalues, eigenvectors",
       "eigenvalues, ascending, and eigenvectors, the columns, of a symmetric "
       .. "matrix; reads its lower or upper triangle",
function(A, side)
  square("eigh", A)
  return Eigh(A, checkside("eigh", side))
end)

define("eigvalsh",
       "A:tensor, UPLO:text|L|U=L",
       "eigenvalues, ascending, of a symmetric matrix",
function(A, side)
  square("eigvalsh", A)
  local lower = checkside("eigvalsh", side)
  if A.requires_grad then return (Eigh(A, lower)) end
  return (nacre._lapack_eigh(T(A), lower, false))
end)

-- ---- eigenvalues of other matrices (LAPACK's geev)

-- Of a real matrix, eigenvalues are real, or pairs that are conjugate; the real
-- and the imaginary part of the vector of a pair are two columns.
local function complex_eigen(re, im, V)
  if re:is_complex() then return re, V end
  local w = nacre.complex(re, im)
  if not V then return w end
  local first, second = im:gt(0):unsqueeze(-2), im:lt(0):unsqueeze(-2)
  local part = nacre.where(first, V:roll(-1, -1), nacre.where(second, -V, 0.0))
  return w, nacre.complex(nacre.where(second, V:roll(1, -1), V), part)
end

-- A loss that depends on the phases of eigenvectors has no gradient: LAPACK
-- gives them phases as it likes.
local function check_phases(op, inner)
  local off = diagonal(inner).imag:abs()
  if off:numel() == 0 then return end
  if off:gt(1e-2 * (1 + inner:abs():max())):any():item() then
    fail(name(op), "the gradient depends on the phases of eigenvectors, which "
         .. "are arbitrary")
  end
end

local Eig = Function {
  name = "eig",
  forward = function(ctx, A)
    local re, im, V = nacre._lapack_eig(T(A), true)
    local w
    w, V = complex_eigen(re, im, T(V))
    ctx.complex = A:is_complex()
    ctx:save_for_backward(w, V)
    return w, V
  end,
  -- eigenvectors have length 1, so the part of gV that changes the length is
  -- projected out
  backward = function(ctx, gw, gV)
    local w, V = table.unpack(ctx.saved_tensors)
    local s = H(V):matmul(gV)
    check_phases("eig", s)
    s = s - H(V):matmul(V) * diagonal(s).real:unsqueeze(-2)
    s = eigen_gradient(w:conj(), gw, s)
    local g = M.solve(H(V), s:matmul(H(V)), "eig")
    return ctx.complex and g or g.real
  end,
}

define("eig", "A:tensor -> eigenvalues, eigenvectors",
       "eigenvalues and eigenvectors, the columns, of length 1, of a square "
       .. "matrix; both are complex",
function(A)
  square("eig", A)
  return Eig(A)
end)

define("eigvals", "A:tensor",
       "eigenvalues of a square matrix, which are complex",
function(A)
  square("eigvals", A)
  if A.requires_grad then return (Eig(A)) end
  return (complex_eigen(nacre._lapack_eig(T(A), false)))
end)

-- ---- singular values (LAPACK's gesdd)

-- The gradient is that of Giles 2008, with terms for the parts of gU and gVh
-- outside the spans of U and Vh. What S does not reach has none.
local Svd = Function {
  name = "svd",
  forward = function(ctx, A, full)
    local S, U, Vh = nacre._lapack_svd(T(A), full, true)
    U, Vh = T(U), T(Vh)
    ctx:save_for_backward(U, S, Vh)
    return U, S, Vh
  end,
  backward = function(ctx, gU, gS, gVh)
    local U, S, Vh = table.unpack(ctx.saved_tensors)
    local k, m, n = S:size(-1), U:size(-2), Vh:size(-1)
    U, gU = U:narrow(-1, 1, k), gU:narrow(-1, 1, k)
    Vh, gVh = Vh:narrow(-2, 1, k), gVh:narrow(-2, 1, k)
    local one = diagonal_mask(S)
    local function skew(x) return x - H(x) end
    local function over(x, by) return nacre.where(x:eq(0), x, x / by) end
    local E = nacre.where(one, 1.0,
                          (S * S):unsqueeze(-2) - (S * S):unsqueeze(-1))
    local turned = skew(H(U):matmul(gU))
    local s = over(turned, E) * S:unsqueeze(-2) +
              S:unsqueeze(-1) * over(skew(Vh:matmul(H(gVh))), E)
    s = nacre.where(one, gS:unsqueeze(-2), s)
    if U:is_complex() then       -- the phases of a pair of vectors turn as one
      s = s + diag(over(diagonal(turned), 2 * S))
    end
    local g = U:matmul(s):matmul(Vh)
    if m > k then
      local x = gU - U:matmul(H(U):matmul(gU))
      g = g + over(x, S:unsqueeze(-2)):matmul(Vh)
    end
    if n > k then
      local x = gVh - gVh:matmul(H(Vh)):matmul(Vh)
      g = g + U:matmul(over(x, S:unsqueeze(-1)))
    end
    return g
  end,
}

-- The reduced decomposition: U [... x m x k], S [... x k], Vh [... x k x n], k
-- = min(m, n).
local function svd(A)
  if A:numel() > 0 then return Svd(A, false) end
  local k = math.min(A:size(-1), A:size(-2))
  return nacre.eye(A:size(-2), k, like(A)):expand(with(head(A), A:size(-2), k)),
         nacre.zeros(with(head(A), k), like(A)):abs(),
         nacre.eye(k, A:size(-1), like(A)):expand(with(head(A), k, A:size(-1)))
end

-- With full_matrices U is [... x m x m] and Vh [... x n x n].
define("svd", "A:tensor, full_matrices:bool=true -> U, S, Vh",
       "A = U diag(S) Vh, S descending; full_matrices=false leaves out the "
         .. "vectors that have no singular value",
function(A, full)
  matrices("svd", A)
  local m, n = A:size(-2), A:size(-1)
  if not full or m == n then return svd(A) end
  if A:numel() > 0 then return Svd(A, true) end
  return eye(A, m), (select(2, svd(A))), eye(A, n)
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

local epsilon = {float32 = 2.0^-23, float64 = 2.0^-52,
                 complex64 = 2.0^-23, complex128 = 2.0^-52}
local parts = {complex64 = "float32", complex128 = "float64"}

-- A tolerance for each matrix, as a column: a number, or a tensor of numbers
-- for the batch.
local function tolerance(op, what, v, A)
  if type(v) == "boolean" then
    fail(name(op), what .. " must be a number or a tensor, not a boolean")
  end
  if not nacre.is_tensor(v) then return v end
  if v.requires_grad then
    fail(name(op), ("{%s} requires a gradient, and a tolerance has none")
                   :format(what), nil, what, v)
  end
  return v:to(parts[A.dtype] or A.dtype):to(A.device):unsqueeze(-1)
end

-- Fails if a tolerance is given twice: by its old name, and by its new one.
local function onetolerance(op, what, atol, rtol)
  if atol or rtol then
    fail(name(op), ("%s is a tolerance already: atol and rtol are given "
                    .. "without it"):format(what))
  end
end

-- A, expanded to the batch to which tolerances broadcast.
local function expanded(A, ...)
  local list = {nacre.empty(with(head(A), 1), like(A))}
  for _, v in pairs {...} do
    if nacre.is_tensor(v) then list[#list + 1] = v end
  end
  if #list == 1 then return A end
  local size = nacre.broadcast_tensors(list)[1]:size()
  size[#size] = nil
  return A:expand(with(size, A:size(-2), A:size(-1)))
end

-- The threshold max(atol, rtol * largest) up to which singular values count as
-- 0, [... x 1]. Where atol is above 0, rtol is 0 if it is not given.
local function cutoff(A, S, atol, rtol)
  if S:size(-1) == 0 then return nacre.zeros(with(head(A), 1), like(S)) end
  local largest = S:narrow(-1, 1, 1)
  if not rtol then
    rtol = math.max(A:size(-1), A:size(-2)) * epsilon[A.dtype]
    if nacre.is_tensor(atol) then rtol = nacre.where(atol:gt(0), 0.0, rtol)
    elseif atol and atol > 0 then rtol = 0 end
  end
  return (largest * rtol):clamp {min = atol or 0.0}
end

-- Result [...], int64; has no gradient.
define("matrix_rank",
       "A:tensor, tol:operand=nil, *, atol:operand=nil, rtol:operand=nil, "
       .. "hermitian:bool=false",
       "number of singular values above max(atol, rtol*largest); tol is an "
       .. "atol whose rtol is 0; a tolerance may be a tensor of one for each "
       .. "matrix",
function(A, tol, atol, rtol)
  local op = "matrix_rank"
  matrices(op, A)
  if tol then
    onetolerance(op, "tol", atol, rtol)
    atol, rtol = tol, 0.0
  end
  -- A count has no gradient, whatever its tolerance has.
  if nacre.is_tensor(atol) then atol = atol:detach() end
  if nacre.is_tensor(rtol) then rtol = rtol:detach() end
  local S = svdvals(A:detach())
  return S:gt(cutoff(A, S, tolerance(op, "atol", atol, A),
                     tolerance(op, "rtol", rtol, A))):sum(-1)
end)

local Pinv
-- The gradient is that of Golub and Pereyra 1973; it does not need distinct
-- singular values.
Pinv = Function {
  name = "pinv",
  forward = function(ctx, A, atol, rtol)
    local U, S, Vh = svd(A)
    local kept = S:gt(cutoff(A, S, atol, rtol))
    local inverse = nacre.where(kept, 1 / nacre.where(kept, S, 1.0), 0.0)
    local y = H(Vh):matmul(inverse:unsqueeze(-1) * H(U))
    ctx:save_for_backward(A, y)
    return y
  end,
  backward = function(ctx, g)
    local A, P = table.unpack(ctx.saved_tensors)
    local gt, Pt = H(g), H(P)
    if A:size(-2) <= A:size(-1) then
      local K = gt:matmul(P)
      local KP = K:matmul(Pt)
      return KP - H(P:matmul(K)) - A:matmul(P):matmul(KP) +
             Pt:matmul(P):matmul(gt - K:matmul(A))
    end
    local K = P:matmul(gt)
    local PK = Pt:matmul(K)
    return PK - H(K:matmul(P)) + (gt - A:matmul(K)):matmul(P):matmul(Pt) -
           PK:matmul(P):matmul(A)
  end,
}

local function pinv(A, atol, rtol) return Pinv(A, atol, rtol) end

define("pinv",
       "A:tensor, rcond:operand=nil, *, atol:operand=nil, rtol:operand=nil, "
       .. "hermitian:bool=false",
       "Moore-Penrose inverse; singular values up to max(atol, rtol*largest) "
       .. "count as 0; rcond is an rtol whose atol is 0; a tolerance may be a "
       .. "tensor of one for each matrix",
function(A, rcond, atol, rtol)
  local op = "pinv"
  matrices(op, A)
  if rcond then
    onetolerance(op, "rcond", atol, rtol)
    atol, rtol = 0.0, rcond
  end
  atol, rtol = tolerance(op, "atol", atol, A), tolerance(op, "rtol", rtol, A)
  return pinv(expanded(A, atol, rtol), atol, rtol)
end)

-- The solution, the rank and the singular values: by the pseudoinverse if a
-- gradient is needed, otherwise by LAPACK's gelsd.
local function leastsquares(A, B, rcond)
  local needed = nacre.is_grad_enabled() and (A.requires_grad or
      B.requires_grad)
  local n = A:size(-1)
  if needed or A:numel() == 0 or B:numel() == 0 then
    local S = svdvals(A:detach())
    return pinv(A, nil, rcond):matmul(B),
           S:gt(cutoff(A, S, nil, rcond)):sum(-1), S
  end
  rcond = rcond or math.max(A:size(-2), n) * epsilon[A.dtype]
  local size = with(head(A), A:size(-2), B:size(-1))
  local X, S, rank = nacre._lapack_lstsq(T(A), T(B:expand(size)), rcond)
  return T(X):narrow(-2, 1, n), rank:squeeze(-1):to("int64"), S
end

-- A [... x m x n], B [... x m x k] or [... x m] give X [... x n x k] or [... x
-- n], the residuals [... x k] (empty unless m > n and the rank is n), the rank
-- and the singular values. Fails if the rows of A and B differ in number.
define("lstsq", "A:tensor, B:tensor, rcond:num=nil "
       .. "-> solution, residuals, rank, singular_values",
       "X that minimizes |A X - B|, the shortest of several; B is a matrix, "
       .. "or a vector",
function(A, B, rcond)
  local op = "lstsq"
  matrices(op, A)
  sametype(op, A, B)
  local vector = B:dim() == 1 or B:dim() == A:dim() - 1
  if vector then B = B:unsqueeze(-1) end
  matrices(op, B, "B")
  if A:size(-2) ~= B:size(-2) then
    fail(name(op), ("{A} has %d rows, {B} has %d")
                   :format(A:size(-2), B:size(-2)), nil, "A", A, "B", B)
  end
  local X, rank, S = leastsquares(A, B, rcond)
  local residuals = nacre.zeros({0}, like(S))
  if A:size(-2) > A:size(-1) and rank:eq(A:size(-1)):all():item() then
    residuals = (A:matmul(X) - B):abs():pow(2):sum(-2)
  end
  if vector then X = X:squeeze(-1) end
  return X, residuals, rank, S
end)

M.svd, M.svdvals, M.pinv = svd, svdvals, pinv
