# SPDX-License-Identifier: MIT
"""nacre.linalg: calls for diff_torch.py."""
import torch

from diff_torch import WIDE, Case, lua, name, operation, options

L = torch.linalg
PREFIX = "nacre.linalg."


def matrix(r, *sizes, dtype=None, batch=None):
    lead = r.shape(2, size=3) if batch is None else batch
    return r.tensor(dtype or WIDE, lead + list(sizes), special=0, ties=0.1,
                    low=-2, high=2)


def square(r, **kw):
    n = r.integer(1, 5)
    x = matrix(r, n, n + 1 if r.flag(0.03) else n, **kw)
    if n == x.shape[-1]:
        x = x + 3 * torch.eye(n, dtype=x.dtype)
    return x


def case(text, inputs, want, times=4096, **kw):
    return Case(PREFIX + text, inputs, want, times, norm=True, **kw)


@operation(2)
def one_matrix(r):
    which = r.choice(["inv", "det", "slogdet", "matrix_exp", "svdvals", "pinv",
                      "matrix_rank"])
    x = matrix(r, r.integer(1, 4), r.integer(1, 4)) \
        if which in ("svdvals", "pinv", "matrix_rank") and r.flag() else square(r)
    return case(f"{which}(a)", [x], getattr(L, which), 1 << 14,
                grad=which not in ("slogdet", "matrix_rank", "pinv"))


@operation()
def singular(r):
    n = r.integer(2, 4)
    x = matrix(r, n, n)
    if x.numel():
        x.select(-1, 1).copy_(x.select(-1, 0))
        x.zero_()
    return case("inv(a)", [x], L.inv, grad=False)


@operation(2)
def solve(r):
    a = square(r, batch=r.shape(1, size=3))
    n, k = a.shape[-1], r.integer(0, 3)
    left = r.flag(0.7)
    lead = list(a.shape[:-2]) if r.flag() else []
    b = matrix(r, *([n, k] if left else [k, n]), dtype=name(a.dtype),
               batch=lead)
    if r.flag(0.3) and left and a.shape[-2] == n:
        b = matrix(r, n, dtype=name(a.dtype), batch=list(a.shape[:-2]))
    return case(f"solve(a, b, {{left = {lua(left)}}})", [a, b],
                lambda x, y: L.solve(x, y, left=left), 1 << 14,
                grad=b.dim() != a.dim() - 1)    # PyTorch 1.13 fails there


@operation(2)
def solve_triangular(r):
    a = square(r, batch=r.shape(1, size=3))
    n, k = a.shape[-1], r.integer(1, 3)
    kw = {"upper": r.flag(), "left": r.flag(), "unitriangular": r.flag(0.3)}
    b = matrix(r, *([n, k] if kw["left"] else [k, n]), dtype=name(a.dtype),
               batch=list(a.shape[:-2]) if r.flag() else [])
    return case(f"solve_triangular(a, b, {options(**kw)})", [a, b],
                lambda x, y: L.solve_triangular(x, y, **kw), 1 << 14)


@operation(2)
def cholesky(r):
    x = square(r)
    if x.shape[-1] == x.shape[-2]:
        x = x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)
    if r.flag(0.1):
        x = -x
    upper = r.flag()
    return case(f"cholesky(a, {{upper = {lua(upper)}}})", [x],
                lambda t: L.cholesky(t, upper=upper), grad=False)


@operation()
def cholesky_solve(r):
    x = square(r, batch=[])
    n = x.shape[-1]
    if x.shape[0] != n:
        return None
    b = matrix(r, n, r.integer(1, 3), dtype=name(x.dtype), batch=[])
    upper = r.flag()
    return Case(f"a:cholesky_solve(b, {lua(upper)})", [b, x],
                lambda y, l: torch.cholesky_solve(y, l, upper), 1 << 14,
                norm=True, grad=False)


@operation(2)
def qr(r):
    x = matrix(r, r.integer(0, 4), r.integer(0, 4))
    mode = r.choice(["reduced", "complete", "r"])
    if mode == "r":
        return case('qr(a, "r")', [x], lambda t: L.qr(t, "r")[1], grad=False)
    return case(f"qr(a, {lua(mode)})", [x], lambda t: L.qr(t, mode),
                grad=False)


@operation(2)
def eigh(r):
    x = square(r)
    if x.shape[-1] == x.shape[-2] and r.flag():
        x = x + x.mT
    side = r.choice(["L", "U"])
    return case(f"eigvalsh(a, {lua(side)})", [x],
                lambda t: L.eigvalsh(t, side), 1 << 13, grad=False)


@operation(2)
def svd(r):
    x = matrix(r, r.integer(1, 4), r.integer(1, 4))
    full = r.flag()
    text = (f"(function() local u, s, v = {PREFIX}svd(a, {lua(full)}) "
            "return s, u:narrow(-1, 1, s:size(-1)):mul(s:unsqueeze(-2))"
            ":matmul(v:narrow(-2, 1, s:size(-1))) end)()")

    def run(t):
        u, s, v = L.svd(t, full)
        k = s.shape[-1]
        return s, u[..., :k] * s.unsqueeze(-2) @ v[..., :k, :]
    return Case(text, [x], run, 1 << 13, norm=True, grad=False)


@operation(2)
def lu(r):
    x = matrix(r, r.integer(1, 4), r.integer(1, 4))
    if r.flag():
        return case("lu(a)", [x], L.lu, grad=False)
    return case("lu_factor(a)", [x], L.lu_factor, grad=False)


@operation()
def lu_solve(r):
    a = square(r, batch=[])
    if a.shape[0] != a.shape[1]:
        return None
    n, k = a.shape[-1], r.integer(1, 3)
    kw = {"left": r.flag(), "adjoint": r.flag()}
    b = matrix(r, *([n, k] if kw["left"] else [k, n]), dtype=name(a.dtype),
               batch=[])
    text = (f"(function() local m, p = {PREFIX}lu_factor(a) return "
            f"{PREFIX}lu_solve(m, p, b, {options(**kw)}) end)()")
    return Case(text, [a, b], lambda x, y: L.lu_solve(
        *L.lu_factor(x), y, **kw), 1 << 14, norm=True)


@operation()
def lstsq(r):
    m, n = r.integer(1, 5), r.integer(1, 4)
    lead = r.shape(1, size=3, empty=0)
    a = matrix(r, m, n, batch=lead)
    b = matrix(r, m, r.integer(1, 3), dtype=name(a.dtype), batch=lead)
    return case("lstsq(a, b):clone()", [a, b],
                lambda x, y: L.lstsq(x, y, driver="gelsd").solution, 1 << 16,
                grad=False)


@operation(3)
def norms(r):
    x = r.tensor(WIDE, r.shape(3, least=2, size=4, empty=0), special=0)
    which = r.choice(["vector_norm", "matrix_norm", "norm", "cond"])
    order = r.choice([1, -1, 2, -2, "inf", "-inf", "fro", "nuc", 3, 0])
    luaorder = {"inf": "math.huge", "-inf": "-math.huge"}.get(order, lua(order))
    pyorder = float(order) if order in ("inf", "-inf") else order
    if which == "vector_norm":
        if order in ("fro", "nuc"):
            return None
        d, luad = r.dim(x)
        keep = r.flag()
        return case(f"vector_norm(a, {luaorder}, {luad}, {lua(keep)})", [x],
                    lambda t: L.vector_norm(t, pyorder, d, keep), 256,
                    grad=False)
    if which == "matrix_norm":
        dims = r.choice([[-2, -1], [0, 1], [1, 0]])
        luadims = [d + 1 if d >= 0 else d for d in dims]
        keep = r.flag()
        return case(f"matrix_norm(a, {luaorder}, {lua(luadims)}, {lua(keep)})",
                    [x], lambda t: L.matrix_norm(t, pyorder, dims, keep), 1024,
                    grad=False)
    if which == "norm":
        return case(f"norm(a, {luaorder})", [x], lambda t: L.norm(t, pyorder),
                    1024, grad=False)
    if order in (0, 3):
        return None
    x = square(r, batch=[])
    return case(f"cond(a, {luaorder})", [x], lambda t: L.cond(t, pyorder),
                1 << 15, grad=False)


@operation()
def matrix_power(r):
    n = r.integer(-2, 5)
    return case(f"matrix_power(a, {n})", [square(r)],
                lambda t: L.matrix_power(t, n), 1 << 15, grad=n >= 0)


@operation()
def logdet(r):
    return Case("a:logdet()", [square(r, batch=[])], torch.logdet, 1 << 14,
                norm=True, grad=False)


@operation(2)
def eig(r):
    x = square(r)
    if x.shape[-1] == x.shape[-2]:
        n = x.shape[-1]
        x = x.triu() + torch.diag(torch.arange(n).to(x.dtype) * 8)

    def run(t):
        if t.shape[-1] == t.shape[-2] and not t.isfinite().all():
            raise RuntimeError("not finite")
        w = L.eigvals(t).real
        return w.sort()[0] if t.dim() == 2 else w.amax(-1)
    return case("eigvals(a):msort()" if x.dim() == 2 else
                "eigvals(a):amax(-1)", [x], run, 1 << 14, grad=False)


@operation(2)
def householder(r):
    m = r.integer(1, 5)
    n = r.integer(1, m)
    x = matrix(r, m, n)
    a, tau = torch.geqrf(x)
    if r.flag(0.2):
        return Case("a:geqrf()", [x], torch.geqrf, 1 << 13, norm=True,
                    grad=False)
    if r.flag():
        return case("householder_product(a, b)", [a, tau],
                    L.householder_product, 1 << 13)
    left, adjoint = r.flag(), r.flag()
    k = r.integer(1, 4)
    b = matrix(r, *([m, k] if left else [k, m]), dtype=name(x.dtype),
               batch=list(x.shape[:-2]))
    return Case(f"a:ormqr(b, c, {lua(left)}, {lua(adjoint)})", [a, tau, b],
                lambda p, q, s: torch.ormqr(p, q, s, left, adjoint), 1 << 13,
                norm=True, grad=False)


@operation()
def cholesky_inverse(r):
    x = square(r)
    if x.shape[-1] != x.shape[-2]:
        return None
    upper = r.flag()
    return Case(f"a:cholesky_inverse({lua(upper)})", [x],
                lambda t: torch.cholesky_inverse(t, upper), 1 << 14,
                norm=True, grad=False)


@operation(2)
def renorm(r):
    x = matrix(r, r.integer(1, 4), r.integer(1, 4))
    p, most = r.choice([1, 2, 3, 0.5]), r.choice([0.25, 1, 3])
    dim = r.integer(1, x.dim())
    return Case(f"a:renorm({p}, {dim}, {most})", [x],
                lambda t: t.renorm(p, dim - 1, most), 1 << 12, norm=True)
