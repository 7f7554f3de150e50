# SPDX-License-Identifier: MIT
"""Products and linear algebra: calls for diff_torch.py."""
import re

import torch

from diff_torch import Case, WIDE, call, lua, operation

TYPES = WIDE * 4 + ["int64"]
EQUATIONS = ["ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ii",
             "ij->", "ij->i", "i,j->ij", "ij,ij->", "ij,ij->ij", "i,ij,j",
             "bij,bkj->bik", "abc,cd,de->abe", "ijk,ikl->jl", "a,b,c->abc",
             "...ij,...jk->...ik", "...i,...i->...", "b...,b...->...b",
             "ij,jk", "ba", "iij->j", "ij,jk,kl->il", "i,i->",
             "bhwk,bhqk->bhwq", " a b , b -> a ", "ab,ab,ab->ba"]


def tensors(r, *shapes, types=TYPES):
    dtype = r.choice(types)
    return [r.tensor(dtype, shape, special=0.03) for shape in shapes]


def off(r, n):
    """n, now and then a wrong one"""
    return n + 1 if r.flag(0.03) else n


@operation(6)
def einsum(r):
    equation = r.choice(EQUATIONS)
    sizes = {c: r.integer(1, 4) for c in "abcdehijklqw"}
    extra = [r.integer(1, 3) for _ in range(r.integer(0, 2))]
    shapes = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        shape = []
        for word in re.findall(r"\.\.\.|.", term):
            if word == "...":
                shape += [1 if r.flag(0.2) else n for n in extra]
            else:
                shape.append(1 if r.flag(0.05) else off(r, sizes[word]))
        shapes.append(shape)
    given = tensors(r, *shapes)
    given = given if r.flag() else [given]
    return call("nacre.einsum", equation, *given, times=64, norm=True)


@operation(3)
def matmul(r):
    n, k, m = (r.integer(0 if r.flag(0.1) else 1, 19) for _ in range(3))
    batch = r.shape(3, size=4)
    left = r.choice([[n, k], [k], r.broadcast(batch) + [n, k]])
    right = r.choice([[off(r, k), m], [k], r.broadcast(batch) + [k, m]])
    return call(r.choice(["matmul", "nacre.matmul"]),
                *tensors(r, left, right,
                         types=TYPES + ["float16", "bfloat16", "int32"]),
                times=64, norm=True)


@operation()
def ger(r):
    return call("ger", *tensors(r, [r.integer(1, 4)], [r.integer(1, 4)]))


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
    text = PREFIX + "eigvals(a).real:" + ("msort()" if x.dim() == 2 else "amax(-1)")
    return Case(text, [x], run, 1 << 14, norm=True, grad=False)


@operation(2)
def vectors(r):
    """Their squares, for their signs are free, and gradients."""
    x = square(r)
    if issquare(x):
        n = x.shape[-1]
        x = x + x.mT + torch.diag(torch.arange(n).to(x.dtype) * 8)
    if r.flag():
        text = (f"(function() local w, v = {PREFIX}eigh(a) "
                "return {w, v * v} end)()")

        def run(t):
            w, v = L.eigh(t)
            return w, v * v
    else:
        text = (f"(function() local u, s, v = {PREFIX}svd(a) "
                "return {u * u, s, v * v} end)()")

        def run(t):
            u, s, v = L.svd(t)
            return u * u, s, v * v
    return Case(text, [x], run, 1 << 14, norm=True)


@operation()
def lstsq(r):
    m, n = r.integer(1, 5), r.integer(1, 4)
    lead = r.shape(1, size=3, empty=0)
    a = matrix(r, m, n, batch=lead)
    b = matrix(r, m, r.integer(1, 3), like=a, batch=lead)
    return linalg("lstsq", a, b, first=True, times=1 << 16, grad=False,
                  f=lambda x, y: L.lstsq(x, y, driver="gelsd"))


@operation()
def vander(r):
    x = r.tensor(["float32", "float64", "int64"], [r.integer(0, 4)], low=-3,
                 high=3, special=0)
    return call("vander", x, r.integer(0, 5), r.flag(), times=32, grad=False)
