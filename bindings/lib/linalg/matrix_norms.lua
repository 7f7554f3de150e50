-- SPDX-License-Identifier: MIT
-- matrix_norms.lua - nacre.linalg: norms, condition number, powers, exponential
-- and products; and the functions that are also in nacre itself.
--
-- Matrices are float32 or float64, [... x n x n] or [... x m x n]. Functions
-- fail for other dtypes (norms and the exponential accept every float dtype,
-- powers integers too), and for matrices that are not square where a square one
-- is needed.

local all = ...
all.require("nacre.checks", "nacre.decompositions", "nacre.solvers")
local fail, M = all.fail, all.matrix
local name, matrices, square, T, eye = M.name, M.matrices, M.square, M.T, M.eye
local solve = M.solve
local inverse, svdvals, pinv, slogdet = M.inverse, M.svdvals, M.pinv, M.slogdet

local define = all.definer "linalg."

-- ---- norms

-- [...] without the dimensions dim.
local function vectornorm(op, x, p, dim, keepdim, dtype)
  if x:is_complex() then x = x:abs() end
  all.check_float(name(op), x, "x")
  if dtype then x = x:to(dtype) end
  return x:norm(p, dim, keepdim)
end

define("vector_norm",
       "x:tensor, ord:num=2, dim:any=nil, keepdim:bool=false, *, "
       .. "dtype:dtype=nil",
       "norm of order ord of vectors: (sum |x|^ord)^(1/ord)",
       function(...) return vectornorm("vector_norm", ...) end)

-- The largest of numbers that are not negative; 0 of none.
local function largest(x, dim, keepdim)
  if x:size(dim) == 0 then return x:sum(dim, keepdim) end
  return x:amax(dim, keepdim)
end

local inf = math.huge
local sums = {[1] = 1, [-1] = 1, [inf] = 2, [-inf] = 2}

-- 1 and inf are the largest sums of a column and a row of |A|, -1 and -inf the
-- smallest; 2, -2 and nuc come from the singular values. Fails for another ord
-- and for a vector.
local function matrixnorm(op, A, ord, dim, keepdim, dtype)
  if A:is_complex() then           -- which only singular values look at
    if ord ~= 2 and ord ~= -2 and ord ~= "nuc" then A = A:abs() end
  else all.check_float(name(op), A, "A") end
  all.check_min_dims(name(op), A, "A", 2)
  if dtype then A = A:to(dtype) end
  dim = dim or {-2, -1}
  if type(dim) ~= "table" or
      #dim ~= 2 then fail(name(op), "dim must be two dimensions") end
  dim = all.dimsof(name(op), A, dim)
  if ord == "fro" then return A:norm(2, dim, keepdim) end
  local y
  if sums[ord] then
    local first, second = dim[sums[ord]], dim[3 - sums[ord]]
    y = A:abs():sum(first, true)
    y = ord > 0 and largest(y, second, true) or y:amin(second, true)
  elseif ord == 2 or ord == -2 or ord == "nuc" then
    local S = svdvals(A:movedim(dim, {-2, -1}))
    S = ord == "nuc" and S:sum(-1) or ord == 2 and largest(S, -1) or S:amin(-1)
    y = S:unsqueeze(-1):unsqueeze(-1):movedim({-2, -1}, dim)
  else
    fail(name(op), ("ord must be fro, nuc, inf, -inf, 1, -1, 2 or -2, not %s")
                   :format(tostring(ord)))
  end
  if keepdim then return y end
  return y:squeeze(dim)
end

define("matrix_norm",
       "A:tensor, ord:any|fro|nuc=fro, dim:ints=nil, keepdim:bool=false, *, "
       .. "dtype:dtype=nil",
       "norm of matrices: fro, nuc, inf, -inf, 1, -1, 2 or -2",
       function(...) return matrixnorm("matrix_norm", ...) end)

define("norm",
       "A:tensor, ord:any|fro|nuc=nil, dim:any=nil, keepdim:bool=false, *, "
       .. "dtype:dtype=nil",
       "vector_norm, or matrix_norm if dim are two dimensions or ord is given "
       .. "for a matrix",
function(A, ord, dim, keepdim, dtype)
  local two = type(dim) == "table" and #dim == 2
  if ord and not dim and A:dim() > 2 then
    fail("linalg.norm",
         "dim is needed for more than two dimensions", nil, "A", A)
  end
  if type(ord) == "string" or ord and (two or not dim and A:dim() == 2) then
    return matrixnorm("norm", A, ord, dim, keepdim, dtype)
  end
  return vectornorm("norm", A, ord or 2, dim, keepdim, dtype)
end)

-- Result [...]; inf for a singular matrix, zeros too.
define("cond",
       "A:tensor, p:any|fro|nuc=nil",
       "condition number: norm of order p of A times that of its inverse",
function(A, p)
  matrices("cond", A)
  if p == nil or p == 2 or p == -2 then
    local S = svdvals(A)
    local high, low = S:select(-1, 1), S:select(-1, -1)
    local y = p == -2 and low / high or high / low
    return nacre.where(high:eq(0), inf, y)
  end
  square("cond", A)
  local _, _, info = nacre._lapack_lu(T(A:detach()))
  local bad, regular = info:ne(0), A
  if bad:any():item() then
    regular = nacre.where(bad:unsqueeze(-1):unsqueeze(-1), eye(A), A)
  end
  local y = matrixnorm("cond", regular, p) *
            matrixnorm("cond", inverse(regular, "cond"), p)
  return nacre.where(bad, inf, y)
end)

-- Slices are the parts of self at each position of dim. Fails for fewer than
-- two dimensions, p <= 0 and maxnorm < 0.
all.define("renorm", "self:inplace, p:num, dim:dim, maxnorm:num",
           "self with the slices along dim scaled down whose norm of order p "
           .. "is above maxnorm",
function(x, p, dim, most)
  if x:dim() < 2 then
    fail("renorm", ("needs two dimensions or more, {self} has %d")
                   :format(x:dim()), nil, "self", x)
  elseif p <= 0 then
    fail("renorm", ("p must be above 0, not %s"):format(p))
  elseif most < 0 then
    fail("renorm", ("maxnorm must not be negative, it is %s"):format(most))
  end
  local others = {}
  local _ = x:size(dim)               -- fails if there is no such dimension
  if dim < 0 then dim = dim + x:dim() + 1 end
  for d = 1, x:dim() do if d ~= dim then others[#others + 1] = d end end
  -- widened: squares of float16 overflow
  local norm = all.widen(x):norm(p, others, true)
  local scale = nacre.where(norm:gt(most), most / (norm + 1e-7), 1.0)
  return x * scale:to(x.dtype)
end)

-- ---- powers

-- Repeated squaring; products of integers wrap. Fails for a singular matrix,
-- and for integers, if n < 0.
local function power(A, n)
  local op, given = "matrix_power", A
  A = all.widen(A)
  square(op, A, n >= 0 and A.dtype:find "int" and A.dtype)
  if n < 0 then A, n = inverse(A, op), -n end
  -- n as unsigned bits: -math.mininteger is math.mininteger
  if n == 0 then return all.convert_back(eye(A):clone(), given) end
  local y
  while true do
    if n & 1 == 1 then y = y and y:matmul(A) or A end
    n = n >> 1
    if n == 0 then break end
    A = A:matmul(A)
  end
  return all.convert_back(y, given)
end

define("matrix_power",
       "A:tensor, n:int",
       "A times itself n times; of its inverse if n < 0",
       function(A, n) return power(A, n) end)

-- Scaling and squaring with a Pade approximant of order 13 (Higham 2005).
local pade = {64764752532480000.0, 32382376266240000.0, 7771770303897600.0,
  1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
  33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0}

-- How often each matrix is halved before its 1-norm is at most 5.37, [... x 1 x
-- 1]; and which have a finite norm.
local function halvings(A)
  local norm = A:detach():abs():sum(-2):amax(-1):unsqueeze(-1):unsqueeze(-1)
  local finite = norm:isfinite()
  local least = nacre.where(finite, norm, 0.0):clamp {min = 5.37}
  return (least / 5.37):log2():ceil(), finite
end

-- The approximant at A / 2^s is squared s times. A matrix of a batch has an s
-- of its own: others may be large, or hold NaN. NaN for a matrix with NaN or
-- inf.
define("matrix_exp", "A:tensor", "exponential of a square matrix",
function(given)
  local A = all.widen(given)
  square("matrix_exp", A)
  if A:numel() == 0 then return given:clone() end
  local s, finite = halvings(A)
  if not finite:all():item() then A = nacre.where(finite, A, 0.0) end
  local most, least = s:amax():item(), s:amin():item()
  local X, I = A * (-s):exp2(), eye(A)
  local X2 = X:matmul(X)
  local X4 = X2:matmul(X2)
  local X6 = X4:matmul(X2)
  local function poly(k) -- the terms of the odd (1) or even (2) coefficients
    local c = pade
    local low = X6 * c[k + 6] + X4 * c[k + 4] + X2 * c[k + 2] + I * c[k]
    local high = X4 * c[k + 10] + X2 * c[k + 8]
    if c[k + 12] then high = high + X6 * c[k + 12] end
    return X6:matmul(high) + low
  end
  local V, U = poly(1), X:matmul(poly(2))
  local y = solve(V - U, V + U, "matrix_exp")
  for i = 1, most do
    local squared = y:matmul(y)
    y = i <= least and squared or nacre.where(s:ge(i), squared, y)
  end
  if not finite:all():item() then y = nacre.where(finite, y, 0 / 0) end
  return all.convert_back(y, given)
end)

-- ---- products

define("multi_dot",
       "tensors:tensors",
       "product of several matrices, in the cheapest order; the first and last "
       .. "may be vectors",
       function(list) return all.chain("linalg.multi_dot", list) end)
define("cross",
       "input:tensor, other:tensor, *, dim:int=-1",
       "cross product along a dimension of size 3",
       function(a, b, dim) return nacre.cross(a, b, dim) end)
define("vecdot",
       "x:tensor, y:tensor, *, dim:int=-1",
       "inner products along a dimension; x is conjugated",
       function(a, b, dim)
         if a:is_complex() then a = a:conj() end
         return (a * b):sum(dim)
       end)
define("diagonal",
       "A:tensor, *, offset:int=0, dim1:int=-2, dim2:int=-1",
       "the diagonals of matrices (a view)",
       function(A, offset, a, b) return A:diagonal(offset, a, b) end)
define("matmul",
       "input:tensor, other:tensor",
       "matrix product",
       function(a, b) return a:matmul(b) end)

-- ---- functions that are also in nacre

all.define("det", "self", "determinant", M.det)
all.define("slogdet", "self -> sign, logabsdet",
           "sign of the determinant, and the log of its absolute value",
             slogdet)
all.define("logdet", "self",
           "log of the determinant; nan where that is negative",
function(A)
  square("slogdet", A)
  local sign, log = slogdet(A)
  if A:is_complex() then return sign:log() + log end
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
all.define("matrix_power", "self, n:int",
           "self times itself n times; of its inverse if n < 0",
           function(A, n) return power(A, n) end)
all.define("matrix_exp", "self", "exponential of a square matrix",
           function(A) return nacre.linalg.matrix_exp(A) end)
