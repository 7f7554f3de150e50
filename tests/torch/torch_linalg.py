# SPDX-License-Identifier: MIT
"""nacre.linalg: calls for diff_torch.py."""
import torch

from diff_torch import WIDE, Case, Position, Redraw, call, lua, operation

L = torch.linalg
PREFIX = "nacre.linalg."


def linalg(name, *args, times=4096, **kw):
    return call(PREFIX + name, *args, times=times, norm=True, **kw)


def matrix(r, *sizes, like=None, batch=None):
    lead = r.shape(2, size=3) if batch is None else batch
    return r.tensor(WIDE if like is None else like, lead + list(sizes),
                    special=0, ties=0.1, low=-2, high=2)


def any_matrix(r, least=1):
    return matrix(r, r.integer(least, 4), r.integer(least, 4))


def issquare(x):
    return x.shape[-1] == x.shape[-2]


def square(r, **kw):
    n = r.integer(1, 5)
    x = matrix(r, n, n + 1 if r.flag(0.03) else n, **kw)
    return x + 3 * torch.eye(n, dtype=x.dtype) if issquare(x) else x


def right_side(r, a, left, least=1):
    """What a system of equations with the matrices `a' may have to be."""
    n, k = a.shape[-1], r.integer(least, 3)
    return matrix(r, *([n, k] if left else [k, n]), like=a,
                  batch=list(a.shape[:-2]) if r.flag() else [])


@operation(2)
def one_matrix(r):
    which = r.choice(["inv", "det", "slogdet", "matrix_exp", "svdvals", "pinv",
                      "matrix_rank"])
    oblong = which in ("svdvals", "pinv", "matrix_rank") and r.flag()
    return linalg(which, any_matrix(r) if oblong else square(r),
                  times=1 << 14,
                  grad=which not in ("slogdet", "matrix_rank", "pinv"))


@operation()
def singular(r):
    n = r.integer(2, 4)
    return linalg("inv", torch.zeros_like(matrix(r, n, n)), grad=False)


@operation(2)
def solve(r):
    a = square(r, batch=r.shape(1, size=3))
    left = r.flag(0.7)
    b = right_side(r, a, left, least=0)
    if r.flag(0.3) and left and issquare(a):
        b = matrix(r, a.shape[-1], like=a, batch=list(a.shape[:-2]))
    return linalg("solve", a, b, left=left, times=1 << 14,
                  grad=b.dim() != a.dim() - 1)    # PyTorch 1.13 fails there


@operation(2)
def solve_triangular(r):
    a = square(r, batch=r.shape(1, size=3))
    left = r.flag()
    return linalg("solve_triangular", a, right_side(r, a, left), left=left,
                  upper=r.flag(), unitriangular=r.flag(0.3), times=1 << 14)


@operation(2)
def cholesky(r):
    x = square(r)
    if issquare(x):
        x = x @ x.mT + torch.eye(x.shape[-1], dtype=x.dtype)
    if r.flag(0.1):
        x = -x
    return linalg("cholesky", x, upper=r.flag(), grad=False)


@operation()
def cholesky_solve(r):
    x = square(r, batch=[])
    if not issquare(x):
        raise Redraw
    b = matrix(r, x.shape[0], r.integer(1, 3), like=x, batch=[])
    return call("cholesky_solve", b, x, r.flag(), times=1 << 14, norm=True,
                grad=False)


@operation(2)
def qr(r):
    x = any_matrix(r, least=0)
    mode = r.choice(["reduced", "complete", "r"])
    f = (lambda t, mode: L.qr(t, mode)[1]) if mode == "r" else L.qr
    return linalg("qr", x, mode, f=f, grad=False)


@operation(2)
def eigh(r):
    x = square(r)
    if issquare(x) and r.flag():
        x = x + x.mT
    return linalg("eigvalsh", x, r.choice(["L", "U"]), times=1 << 13,
                  grad=False)


@operation(2)
def svd(r):
    full = r.flag()
    text = (f"(function() local u, s, v = {PREFIX}svd(a, {lua(full)}) "
            "return s, u:narrow(-1, 1, s:size(-1)):mul(s:unsqueeze(-2))"
            ":matmul(v:narrow(-2, 1, s:size(-1))) end)()")

    def run(t):
        u, s, v = L.svd(t, full)
        k = s.shape[-1]
        return s, u[..., :k] * s.unsqueeze(-2) @ v[..., :k, :]
    return Case(text, [any_matrix(r)], run, 1 << 13, norm=True, grad=False)


@operation(2)
def lu(r):
    return linalg(r.choice(["lu", "lu_factor"]), any_matrix(r), grad=False)


@operation()
def lu_solve(r):
    a = square(r, batch=[])
    if not issquare(a):
        raise Redraw
    left, adjoint = r.flag(), r.flag()
    text = (f"(function() local m, p = {PREFIX}lu_factor(a) return "
            f"{PREFIX}lu_solve(m, p, b, {{left = {lua(left)}, "
            f"adjoint = {lua(adjoint)}}}) end)()")
    return Case(text, [a, right_side(r, a, left)], lambda x, y: L.lu_solve(
        *L.lu_factor(x), y, left=left, adjoint=adjoint), 1 << 14, norm=True)


@operation()
def lstsq(r):
    m, n = r.integer(1, 5), r.integer(1, 4)
    lead = r.shape(1, size=3, empty=0)
    a = matrix(r, m, n, batch=lead)
    b = matrix(r, m, r.integer(1, 3), like=a, batch=lead)
    return linalg("lstsq", a, b, first=True, times=1 << 16, grad=False,
                  f=lambda x, y: L.lstsq(x, y, driver="gelsd"))


@operation(3)
def norms(r):
    x = r.tensor(WIDE, r.shape(3, least=2, size=4, empty=0), special=0)
    which = r.choice(["vector_norm", "matrix_norm", "norm", "cond"])
    order = r.choice([1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc",
                      3, 0])
    if which == "vector_norm" and order in ("fro", "nuc") or \
            which == "cond" and order in (0, 3):
        raise Redraw
    if which == "vector_norm":
        return linalg(which, x, order, r.dim(x), r.flag(), times=256,
                      grad=False)
    if which == "matrix_norm":
        dims = r.choice([[-2, -1], [0, 1], [1, 0]])
        return linalg(which, x, order, [Position(d) for d in dims], r.flag(),
                      times=1024, grad=False)
    if which == "norm":
        return linalg(which, x, order, times=1024, grad=False)
    return linalg(which, square(r, batch=[]), order, times=1 << 15, grad=False)


@operation()
def matrix_power(r):
    n = r.integer(-2, 5)
    return linalg("matrix_power", square(r), n, times=1 << 15, grad=n >= 0)


@operation()
def logdet(r):
    return call("logdet", square(r, batch=[]), times=1 << 14, norm=True,
                grad=False)


@operation(2)
def eig(r):
    x = square(r)
    if issquare(x):
        n = x.shape[-1]
        x = x.triu() + torch.diag(torch.arange(n).to(x.dtype) * 8)

    def run(t):
        if issquare(t) and not t.isfinite().all():
            raise RuntimeError("not finite")
        w = L.eigvals(t).real
        return w.sort()[0] if t.dim() == 2 else w.amax(-1)
    text = PREFIX + "eigvals(a):" + ("msort()" if x.dim() == 2 else "amax(-1)")
    return Case(text, [x], run, 1 << 14, norm=True, grad=False)


@operation(2)
def householder(r):
    m = r.integer(1, 5)
    x = matrix(r, m, r.integer(1, m))
    a, tau = torch.geqrf(x)
    if r.flag(0.2):
        return call("geqrf", x, times=1 << 13, norm=True, grad=False)
    if r.flag():
        return linalg("householder_product", a, tau, times=1 << 13)
    left, k = r.flag(), r.integer(1, 4)
    b = matrix(r, *([m, k] if left else [k, m]), like=x,
               batch=list(x.shape[:-2]))
    return call("ormqr", a, tau, b, left, r.flag(), times=1 << 13, norm=True,
                grad=False)


@operation()
def cholesky_inverse(r):
    x = square(r)
    if not issquare(x):
        raise Redraw
    return call("cholesky_inverse", x, r.flag(), times=1 << 14, norm=True,
                grad=False)


@operation(2)
def renorm(r):
    x = any_matrix(r)
    return call("renorm", x, r.choice([1, 2, 3, 0.5]),
                Position(r.integer(0, x.dim() - 1)), r.choice([0.25, 1, 3]),
                times=1 << 12, norm=True)
