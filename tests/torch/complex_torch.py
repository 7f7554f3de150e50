# SPDX-License-Identifier: MIT
"""Complex tensors against PyTorch: values, gradients by its convention and
second derivatives, at random points, on axes and branch cuts, at both zeros and
infinities. Exits with 77 where there is no PyTorch.
Run by: complex_torch.py NACRE [--seed N] [--device cuda:0]"""
import argparse
import math
import os
import random
import re
import sys

try:
    import torch
except ImportError:
    print("no PyTorch: skipped")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import lua, run  # pylint: disable=wrong-import-position

TOLERANCE = {"complex64": 4e-6, "complex128": 4e-14}
DTYPES = {"complex64": torch.complex64, "complex128": torch.complex128}

# name, the call in Lua of a (and b, c), the same in PyTorch
UNARY = [(f, f"a:{f}()", getattr(torch, f)) for f in
         "neg abs square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 "
         "log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
         "sinc sigmoid sgn angle sum mean prod var std".split()
         ] + [
    ("conj", "a:conj()", lambda a: a.conj().resolve_conj()),
    ("silu", "a:silu()", torch.nn.functional.silu),
    ("real", "a.real", torch.real), ("imag", "a.imag", torch.imag),
    ("view_as_real", "nacre.view_as_real(a)", torch.view_as_real),
    ("square by pow", "a^2", lambda a: a ** 2),
    ("cube", "a^3", lambda a: a ** 3),
    ("root by pow", "a^0.5", lambda a: a ** 0.5),
    ("number", "a*(1 + 2*nacre.i) - nacre.i", lambda a: a * (1 + 2j) - 1j),
    ("quotient", "nacre.i/a", lambda a: 1j / a),
    ("norm", "a:norm()", torch.linalg.vector_norm),
    ("norm1", "a:norm(1)", lambda a: torch.linalg.vector_norm(a, 1)),
    ("norm3", "a:norm(3)", lambda a: torch.linalg.vector_norm(a, 3)),
    ("cumsum", "a:cumsum(1)", lambda a: a.cumsum(0)),
    ("cumprod", "a:cumprod(1)", lambda a: a.cumprod(0)),
    ("cumprod with zeros", "(a*nacre.tensor{1, 0, 1, 1, 0, 1}):cumprod(1)",
     lambda a: (a * torch.tensor([1, 0, 1, 1, 0, 1])).cumprod(0)),
    ("prod with a zero", "(a*nacre.tensor{1, 0, 1, 1, 1, 1}):prod()",
     lambda a: (a * torch.tensor([1, 0, 1, 1, 1, 1])).prod()),
    ("flip", "a:flip(1)", lambda a: a.flip(0)),
    ("roll", "a:roll(2, 1)", lambda a: a.roll(2, 0)),
    ("index", 'a["2:4"]', lambda a: a[1:4]),
    ("gather", "a:index_select(1, nacre.tensor{3, 1, 3})",
     lambda a: a.index_select(0, torch.tensor([2, 0, 2]))),
    ("diff", "a:diff()", torch.diff),
    ("softsign", "a:softsign()", torch.nn.functional.softsign),
    ("logsumexp", "a:logsumexp(1)", lambda a: a.logsumexp(0)),
    ("normalize", "nacre.nn.functional.normalize(a, 2, 1)",
     lambda a: torch.nn.functional.normalize(a, 2, 0)),
    ("pairwise_distance", "nacre.nn.functional.pairwise_distance(a, a:conj())",
     lambda a: torch.nn.functional.pairwise_distance(a, a.conj())),
    ("complex alpha", "nacre.sub(a, a:conj(), {alpha = 2 - nacre.i})",
     lambda a: torch.sub(a, a.conj(), alpha=2 - 1j)),
]
BINARY = [
    ("add with a complex alpha", "nacre.add(a, b, {alpha = 1 - 2*nacre.i})",
     lambda a, b: torch.add(a, b, alpha=1 - 2j)),
    ("addcmul with a complex value",
     "a:addcmul(b, a, {value = 0.5 - 2*nacre.i})",
     lambda a, b: a.addcmul(b, a, value=0.5 - 2j)),
    ("addcdiv with a complex value", "a:addcdiv(b, a, {value = -nacre.i})",
     lambda a, b: a.addcdiv(b, a, value=-1j)),
    ("addmm with complex factors",
     "nacre.addmm(a:view(-1, 2):mm(b:view(2, -1)), a:view(-1, 2), "
     "b:view(2, -1), {beta = 1 + nacre.i, alpha = -2*nacre.i})",
     lambda a, b: torch.addmm(a.view(-1, 2).mm(b.view(2, -1)), a.view(-1, 2),
                              b.view(2, -1), beta=1 + 1j, alpha=-2j)),
    ("l1_loss", "nacre.nn.functional.l1_loss(a, b)",
     torch.nn.functional.l1_loss),
    ("add", "nacre.add(a, b, {alpha = 0.5})",
     lambda a, b: torch.add(a, b, alpha=0.5)),
    ("sub", "a - b", torch.sub), ("mul", "a*b", torch.mul),
    ("div", "a/b", torch.div), ("pow", "a^b", torch.pow),
    ("addcmul", "a:addcmul(b, a, {value = 2})",
     lambda a, b: a.addcmul(b, a, value=2)),
    ("addcdiv", "a:addcdiv(b, a, {value = 2})",
     lambda a, b: a.addcdiv(b, a, value=2)),
    ("lerp", "a:lerp(b, 0.25)", lambda a, b: a.lerp(b, 0.25)),
    ("where", "nacre.where(a.real:gt(0), a, b)",
     lambda a, b: torch.where(a.real > 0, a, b)),
    ("cat", "nacre.cat({a, b}, 1)", lambda a, b: torch.cat([a, b])),
    ("stack", "nacre.stack({a, b}, 2)", lambda a, b: torch.stack([a, b], 1)),
    ("complex", "nacre.complex(a.real, b.imag)",
     lambda a, b: torch.complex(a.real, b.imag)),
    ("polar", "nacre.polar(a:abs(), b.real)",
     lambda a, b: torch.polar(a.abs(), b.real)),
    ("real times complex", "a.real*b", lambda a, b: a.real * b),
    ("dot", "a:dot(b)", torch.dot), ("vdot", "a:vdot(b)", torch.vdot),
    ("outer", "a:outer(b)", torch.outer),
    ("mm", "a:view(-1, 2):mm(b:view(2, -1))",
     lambda a, b: a.view(-1, 2).mm(b.view(2, -1))),
    ("mv", "a:view(2, -1):mv(b:narrow(1, 1, a:numel()//2))",
     lambda a, b: a.view(2, -1).mv(b[:a.numel() // 2])),
    ("bmm", "nacre.bmm(a:view(1, -1, 2):expand(3, -1, -1), "
            "b:view(1, 2, -1):expand(3, -1, -1))",
     lambda a, b: a.view(1, -1, 2).expand(3, -1, -1).bmm(
         b.view(1, 2, -1).expand(3, -1, -1))),
    ("addmm", "nacre.addmm(a:view(-1, 2):mm(b:view(2, -1)), a:view(-1, 2), "
              "b:view(2, -1):conj(), {beta = 0.5, alpha = 2})",
     lambda a, b: torch.addmm(a.view(-1, 2).mm(b.view(2, -1)), a.view(-1, 2),
                              b.view(2, -1).conj(), beta=0.5, alpha=2)),
    ("einsum", 'nacre.einsum("ij,jk->ki", a:view(-1, 2), b:view(2, -1))',
     lambda a, b: torch.einsum("ij,jk->ki", a.view(-1, 2), b.view(2, -1))),
    ("adjoint", "a:view(2, -1).mH:mm(b:view(2, -1))",
     lambda a, b: a.view(2, -1).mH.mm(b.view(2, -1))),
]
# Of the vector a: a square matrix, a tall one, and a Hermitian one.
SQUARE, TALL = "a:view(4, 4)", "a:view(8, 2)"
MATRICES = [
    ("inv", "nacre.linalg.inv(M)", lambda m: torch.linalg.inv(m(4))),
    ("det", "nacre.linalg.det(M)", lambda m: torch.linalg.det(m(4))),
    ("slogdet", "nacre.stack({nacre.linalg.slogdet(M)}, 1)",
     lambda m: torch.stack([x + 0j for x in torch.linalg.slogdet(m(4))])),
    ("solve", "nacre.linalg.solve(M, M:mm(M) + 1)",
     lambda m: torch.linalg.solve(m(4), m(4) @ m(4) + 1)),
    ("solve from the right", "nacre.linalg.solve(M, M:t() + 1, {left = false})",
     lambda m: torch.linalg.solve(m(4), m(4).t() + 1, left=False)),
    ("triangular",
     "nacre.linalg.solve_triangular(M:triu(), M + 1, {upper = true})",
     lambda m: torch.linalg.solve_triangular(m(4).triu(), m(4) + 1,
                                             upper=True)),
    ("lu", "select(3, nacre.linalg.lu(M))",
     lambda m: torch.linalg.lu(m(4))[2]),
    ("cholesky", "nacre.linalg.cholesky(M:mm(M.mH) + nacre.eye(4))",
     lambda m: torch.linalg.cholesky(m(4) @ m(4).mH + torch.eye(4))),
    ("qr", "nacre.linalg.qr(N):abs()",
     lambda m: torch.linalg.qr(m(8, 2))[0].abs()),
    ("eigvalsh", "nacre.linalg.eigvalsh(M + M.mH)",
     lambda m: torch.linalg.eigvalsh(m(4) + m(4).mH)),
    ("eigh", "select(2, nacre.linalg.eigh(M + M.mH)):abs()",
     lambda m: torch.linalg.eigh(m(4) + m(4).mH)[1].abs()),
    ("svdvals", "nacre.linalg.svdvals(N)",
     lambda m: torch.linalg.svdvals(m(8, 2))),
    ("svd", "nacre.linalg.svd(N, false):abs()",
     lambda m: torch.linalg.svd(m(8, 2), False)[0].abs()),
    ("svd, wide", "select(3, nacre.linalg.svd(N:t(), false)):abs()",
     lambda m: torch.linalg.svd(m(8, 2).t(), False)[2].abs()),
    ("pinv", "nacre.linalg.pinv(N)", lambda m: torch.linalg.pinv(m(8, 2))),
    ("lstsq", "nacre.linalg.lstsq(N, N:sum(2, true) + 1)",
     lambda m: torch.linalg.lstsq(m(8, 2), m(8, 2).sum(1, True) + 1)[0]),
    ("eigvals", "nacre.linalg.eigvals(M):abs():sort()",
     lambda m: torch.linalg.eigvals(m(4)).abs().sort()[0]),
    ("eigvals of a real matrix", "nacre.linalg.eigvals(M.real):abs():sum()",
     lambda m: torch.linalg.eigvals(m(4).real).abs().sum()),
    ("eig", "select(2, nacre.linalg.eig(M)):abs():sum()",
     lambda m: torch.linalg.eig(m(4))[1].abs().sum()),
    ("eig of a real matrix", "select(2, nacre.linalg.eig(M.real)):abs():sum()",
     lambda m: torch.linalg.eig(m(4).real)[1].abs().sum()),
    ("matrix_norm", "nacre.linalg.matrix_norm(M, 'nuc')",
     lambda m: torch.linalg.matrix_norm(m(4), "nuc")),
]
TESTS = [
    ("eq", "a:eq(b)", torch.eq), ("ne", "a:ne(b)", torch.ne),
    ("isnan", "a:isnan()", lambda a, b: a.isnan()),
    ("isfinite", "a:isfinite()", lambda a, b: a.isfinite()),
    ("not", "a:logical_not()", lambda a, b: a.logical_not()),
    ("and", "a:logical_and(b)", torch.logical_and),
    ("any", "a:any()", lambda a, b: a.any()),
    ("all", "a:all()", lambda a, b: a.all()),
    ("count", "a:count_nonzero()", lambda a, b: a.count_nonzero()),
    ("isreal", "a:isreal()", lambda a, b: a.isreal()),
    ("isclose", "a:isclose(b)", torch.isclose),
]
# Points where values are compared, besides random ones.  PyTorch's own values
# at infinities are those of its vector code; what it gives there is nan often.
AXES = [complex(x, y) for x in (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0)
        for y in (0.0, -0.0)] + \
       [complex(x, y) for x in (0.0, -0.0) for y in (0.5, -0.5, 2.0, -2.0)]

HEAD = """
local function show(t)
  if type(t) ~= "userdata" or not nacre.is_tensor(t) then print(t) return end
  if t:is_complex() then t = nacre.view_as_real(t:contiguous()) end
  local list = {}
  for i, x in ipairs(t:reshape(-1):double():totable()) do
    list[i] = ("%.17g"):format(x)
  end
  print(table.concat(list, " "))
end
local function given(list, dtype)
  return nacre.view_as_complex(nacre.tensor(list, {dtype = "float64"}))
              :to(dtype)
end
local function try(f, ...)
  local ok, e = pcall(f, ...)
  if not ok then print("error " .. tostring(e):gsub("\\n", " ")) end
end
"""


def text(z):
    return lua([[x.real, x.imag] for x in z])


def numbers(t):
    if t.is_complex():
        t = torch.view_as_real(t.detach().resolve_conj())
    return [float(x) for x in t.detach().reshape(-1).double()]


def attempt(f):
    """What f gives; None where this PyTorch has no such operation or gradient,
    as of silu"""
    try:
        return f()
    except RuntimeError as e:            # NotImplementedError is one
        if re.search("not implemented|does not support|not support|"
                     "Expected floating point type", str(e)):
            return None
        raise


def graph(a):
    return [x.clone().requires_grad_() for x in a]


class Cases:
    """Lua and what PyTorch gives, line for line."""

    def __init__(self, device):
        choice = f'nacre.set_default_device "{device}"\n'
        self.text, self.want = [choice + HEAD], []
        self.names, self.eps = [], []

    def line(self, what, dtype, operands, body, want):
        """One line of output; want: a function without arguments"""
        names = ["a", "b"][:len(operands)]
        self.text.append("try(function()")
        for name, z in zip(names, operands):
            self.text.append(f'local {name} = given({text(z)}, "{dtype}")')
        self.text.append(body + "\nend)")
        self.want.append(want)
        self.names.append(f"{what} {dtype} {operands}")
        self.eps.append(TOLERANCE[dtype])

    def value(self, name, dtype, operands, code, f):
        x = [torch.tensor(z, dtype=torch.complex128).to(DTYPES[dtype])
             for z in operands]
        want = attempt(lambda: f(*x))
        if want is not None:
            self.line(name, dtype, operands, f"show({code})", numbers(want))

    def gradient(self, name, dtype, operands, code, f, second):
        x = graph([torch.tensor(z, dtype=torch.complex128).to(DTYPES[dtype])
                   for z in operands])
        y = attempt(lambda: f(*x))
        if y is None:
            return
        k = torch.arange(1, y.numel() + 1, dtype=torch.float64)
        g = (torch.complex(k.cos(), k.sin()) if y.is_complex() else k.cos())
        g = g.reshape(y.shape).to(y.dtype)
        d = attempt(lambda: torch.autograd.grad(
            y, x, g, create_graph=second, allow_unused=True))
        if d is None:
            return
        leaves = ["a", "b"][:len(x)]
        out = [n for n, t in zip(leaves, d) if t is not None]
        used = [t for t in d if t is not None]
        body = "".join(f"{n}:requires_grad_()\n" for n in leaves)
        body += f"local y = {code}\n"
        body += f"local k = nacre.arange(1, {y.numel() + 1}):double()\n"
        body += ("local g = nacre.complex(k:cos(), k:sin())\n"
                 if y.is_complex() else "local g = k:cos()\n")
        body += "g = g:reshape(y:size()):to(y.dtype)\n"
        body += (f"local d = {{nacre.autograd.grad(y, {{{', '.join(out)}}}, g"
                 + (", {create_graph = true}" if second else "") + ")}\n"
                 "if type(d[1]) == 'table' then d = d[1] end\n")
        if second:
            scalar = sum((t * t.conj()).real.sum() + t.real.sum() for t in used)
            if not scalar.requires_grad:
                return
            d = attempt(lambda: torch.autograd.grad(scalar, x,
                                                    allow_unused=True))
            if d is None:
                return
            used = [t for t in d if t is not None]
            out = [n for n, t in zip(leaves, d) if t is not None]
            body += "local s = 0\nfor _, t in ipairs(d) do\n"
            body += "if t:is_complex() then s = s + (t*t:conj()).real:sum()"
            body += " + t.real:sum() else s = s + (t*t):sum() + t:sum() end"
            body += "\nend\n"
            body += f"d = {{nacre.autograd.grad(s, {{{', '.join(out)}}})}}\n"
            body += "if type(d[1]) == 'table' then d = d[1] end\n"
        if not used:
            return
        body += "show(nacre.cat(d, 1))"
        self.line(("second " if second else "gradient ") + name, dtype,
                  operands, body, numbers(torch.cat(used)))

    def check(self, nacre):
        got = run(nacre, "\n".join(self.text)).splitlines()
        if len(got) != len(self.want):
            sys.exit(f"{len(got)} lines, not {len(self.want)}: {got[-1]}")
        wrong = 0
        for name, line, want, eps in zip(self.names, got, self.want, self.eps):
            if not same(line, want, eps):
                wrong += 1
                print(f"{name[:300]}\n  got  {line[:300]}\n  want {want}")
        print(f"{len(got)} cases, {wrong} differ")
        return wrong


def close(x, y, size, eps):
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    if math.isinf(x) or math.isinf(y):
        return x == y
    return abs(x - y) <= eps * max(1.0, size)


def same(line, want, eps):
    if line in ("true", "false"):
        return (line == "true") == bool(want[0])
    try:
        got = [float(x) for x in line.split()]
    except ValueError:
        return False
    finite = [abs(w) for w in want if math.isfinite(w)]
    size = max(finite, default=1.0)
    return len(got) == len(want) and all(
        close(x, y, size, eps) for x, y in zip(got, want))


def points(r, n):
    return [complex(r.uniform(-2, 2), r.uniform(-2, 2)) for _ in range(n)]


def add_cases(cases, r):
    if int(torch.__version__.split(".")[0]) < 2:   # wrong there
        BINARY[:] = [b for b in BINARY if b[0] not in ("dot", "vdot")]
        UNARY[:] = [u for u in UNARY if u[0] != "atan"]
    for dtype in DTYPES:
        for name, code, f in UNARY:
            z = points(r, 6)
            cases.value(name, dtype, [z], code, f)
            cases.gradient(name, dtype, [z], code, f, False)
            if dtype == "complex128":
                cases.gradient(name, dtype, [z], code, f, True)
        for name, code, f in BINARY:
            z = [points(r, 6), points(r, 6)]
            cases.value(name, dtype, z, code, f)
            cases.gradient(name, dtype, z, code, f, False)
            if dtype == "complex128":
                cases.gradient(name, dtype, z, code, f, True)
        for name, code, f in MATRICES:
            z = points(r, 16)
            code = code.replace("M", SQUARE).replace("N", TALL)
            g = lambda a, f=f: f(lambda m, n=4: a.view(m, n))
            cases.value(name, dtype, [z], code, g)
            cases.gradient(name, dtype, [z], code, g, False)
            cases.eps[-2:] = [1000 * e for e in cases.eps[-2:]]
        for name, code, f in TESTS:
            z = points(r, 3) + [0j, complex(math.nan, 1), complex(1, math.inf)]
            b = z[:2] + points(r, 2) + z[4:]
            cases.value(name, dtype, [z, b], code, f)
            cases.value(name, dtype, [z[:2], z[:2]], code, f)
    for name, code, f in UNARY[:30]:
        if name in ("rsqrt", "reciprocal", "log", "log2", "log10", "sgn"):
            continue                     # at 0: see tests/ops/complex.lua
        for z in AXES:
            cases.value(name, "complex128", [[z]], code, f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    cases = Cases(args.device)
    add_cases(cases, random.Random(args.seed))
    return 1 if cases.check(args.nacre) else 0


if __name__ == "__main__":
    sys.exit(main())
