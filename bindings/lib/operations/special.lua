-- SPDX-License-Identifier: MIT
-- special.lua - the names of torch.special: those of the core under
-- nacre.special too, and orthogonal polynomials by their recurrences.

local all = ...
local define, fail = all.define, all.fail

-- ---- other names

for name, of in pairs {expit = "sigmoid", gammaln = "lgamma", psi = "digamma",
    multigammaln = "mvlgamma", modified_bessel_i0 = "i0",
    modified_bessel_i1 = "i1"} do
  all.alias("special." .. name, nacre[of])
end
for _, name in ipairs {"airy_ai", "bessel_j0", "bessel_j1", "bessel_y0",
    "bessel_y1", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expm1", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "log1p",
    "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_k0",
    "modified_bessel_k1", "ndtr", "ndtri", "polygamma", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc", "softmax",
    "spherical_bessel_j0", "xlog1py", "xlogy", "zeta"} do
  all.alias("special." .. name, nacre[name])
end
all.alias("igamma", nacre.gammainc)
all.alias("igammac", nacre.gammaincc)

-- ---- orthogonal polynomials

local MOST = 10000                      -- the largest degree

-- x and the degrees as tensors of a float dtype, or the one degree as a number.
local function operands(op, x, n)
  if not nacre.is_tensor(x) and not nacre.is_tensor(n) then
    fail(op, "input or n must be a tensor")
  end
  if type(n) == "boolean" then fail(op, "n is a boolean, but counts") end
  if not nacre.is_tensor(x) then
    x = nacre.tensor(x, {device = n.device,
                         dtype = n:is_floating_point() and n.dtype or nil})
  end
  all.check_real(op, x, "input")
  if not x:is_floating_point() then x = x:to(nacre.get_default_dtype()) end
  if nacre.is_tensor(n) then
    all.check_real(op, n, "n")
    if n.dtype == "bool" then n = n:long() end
    if n:is_floating_point() then
      x = x:to(nacre.promote_types(x.dtype, n.dtype))
      n = n:trunc()
    end
    if n:dim() == 0 and not n.is_cuda then n = n:item() end
  end
  return x, n
end

-- The largest degree. Fails above MOST.
local function last_degree(op, n)
  local last = n
  if nacre.is_tensor(n) then last = n:numel() > 0 and n:max():item() or 0 end
  if not (last <= MOST) then
    fail(op, ("a degree is %s, but can be at most %d"):format(last, MOST))
  end
  return last // 1
end

-- The polynomials of degrees n at x: first(x) has degree 1, and step(k, x, p,
-- q) degree k + 1, by those of degrees k and k - 1. Degrees below 0 give 0.
local function evaluate(op, x, n, first, step)
  x, n = operands(op, x, n)
  local last = last_degree(op, n)
  local one = nacre.is_tensor(n) and nacre.ones_like(x + n:to(x.dtype)) or
              nacre.ones_like(x)
  if not nacre.is_tensor(n) then
    if last < 1 then return last == 0 and one or one * 0 end
  end
  local y = nacre.is_tensor(n) and
            nacre.where(n:eq(0), one, nacre.zeros_like(one)) or nil
  local q, p = one, first(x)
  for k = 1, last do
    if y then y = nacre.where(n:eq(k), p, y) end
    if k < last then q, p = p, step(k, x, p, q) end
  end
  return y or p
end

-- Any shapes that broadcast, of numbers or one tensor at least; the dtype is
-- that of floats, integers become the default float dtype. Fails for a degree
-- above 10000.
local function polynomial(name, doc, first, step)
  local op = "special." .. name
  define(op, "input:operand, n:operand", doc .. " of degree n",
         function(x, n) return evaluate(name, x, n, first, step) end)
end

local function chebyshev(_, x, p, q) return 2 * x * p - q end
local function shifted(f)
  return function(k, x, ...) return f(k, 2 * x - 1, ...) end
end
local kinds = {
  t = {"first", function(x) return x end},
  u = {"second", function(x) return 2 * x end},
  v = {"third", function(x) return 2 * x - 1 end},
  w = {"fourth", function(x) return 2 * x + 1 end},
}
for kind, about in pairs(kinds) do
  local doc, first = "Chebyshev polynomial of the %s kind", about[2]
  doc = doc:format(about[1])
  polynomial("chebyshev_polynomial_" .. kind, doc, first, chebyshev)
  polynomial("shifted_chebyshev_polynomial_" .. kind, doc .. " at 2*input - 1,",
             function(x) return first(2 * x - 1) end, shifted(chebyshev))
end

polynomial("hermite_polynomial_h", "Hermite polynomial of physicists",
           function(x) return 2 * x end,
           function(k, x, p, q) return 2 * x * p - 2 * k * q end)
polynomial("hermite_polynomial_he", "Hermite polynomial of probabilists",
           function(x) return x end,
           function(k, x, p, q) return x * p - k * q end)
polynomial("laguerre_polynomial_l", "Laguerre polynomial",
           function(x) return 1 - x end,
           function(k, x, p, q)
             return ((2 * k + 1 - x) * p - k * q) / (k + 1)
           end)
polynomial("legendre_polynomial_p", "Legendre polynomial",
           function(x) return x end,
           function(k, x, p, q)
             return ((2 * k + 1) * x * p - k * q) / (k + 1)
           end)
