# SPDX-License-Identifier: MIT
"""Products of tensors: calls for diff_torch.py."""
import torch

from diff_torch import WIDE, Case, lua, name, operation, options

TYPES = WIDE * 4 + ["int64"]


def tensors(r, *shapes, types=TYPES):
    dtype = r.choice(types)
    return [r.tensor(dtype, shape, special=0.03) for shape in shapes]


def off(r, n):
    """n, now and then a wrong one"""
    return n + 1 if r.flag(0.03) else n


EQUATIONS = ["ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ii",
             "ij->", "ij->i", "i,j->ij", "ij,ij->", "ij,ij->ij", "i,ij,j",
             "bij,bkj->bik", "abc,cd,de->abe", "ijk,ikl->jl", "a,b,c->abc",
             "...ij,...jk->...ik", "...i,...i->...", "b...,b...->...b",
             "ij,jk", "ba", "iij->j", "ij,jk,kl->il", "i,i->", "bhwk,bhqk->bhwq",
             " a b , b -> a ", "ab,ab,ab->ba"]


@operation(6)
def einsum(r):
    equation = r.choice(EQUATIONS)
    sizes = {c: r.integer(1, 4) for c in "abcdehijklqw"}
    extra = [r.integer(1, 3) for _ in range(r.integer(0, 2))]
    shapes = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        shape, i = [], 0
        while i < len(term):
            if term[i] == ".":
                shape += [1 if r.flag(0.2) else n for n in extra]
                i += 3
            else:
                n = sizes[term[i]]
                shape.append(1 if r.flag(0.05) else off(r, n))
                i += 1
        shapes.append(shape)
    given = tensors(r, *shapes)
    names = ", ".join("abc"[:len(given)])
    text = f"nacre.einsum({lua(equation)}, {names})" if r.flag() else \
        f"nacre.einsum({lua(equation)}, {{{names}}})"
    return Case(text, given, lambda *t: torch.einsum(equation, *t), times=64,
                norm=True)


@operation(2)
def tensordot(r):
    k = r.integer(0, 2)
    mid = [r.integer(1, 3) for _ in range(k)]
    a, b = tensors(r, r.shape(2, size=3, empty=0) + mid,
                   [off(r, n) for n in mid] + r.shape(2, size=3, empty=0))
    if r.flag():
        return Case(f"a:tensordot(b, {k})", [a, b],
                    lambda x, y: torch.tensordot(x, y, k), 64, norm=True)
    da, db = [d - k for d in range(k)], list(range(k))
    return Case(f"a:tensordot(b, {{{lua(da)}, {lua([d + 1 for d in db])}}})",
                [a, b], lambda x, y: torch.tensordot(x, y, (da, db)), 64,
                norm=True)


def added(r, product, shapes, out):
    """beta*self + alpha*product"""
    own = r.broadcast(out)
    given = tensors(r, own, *shapes)
    float_ = given[0].is_floating_point()
    beta, alpha = ((r.number(-2, 2), r.number(-2, 2)) if float_ else
                   (r.integer(-2, 2), r.integer(-2, 2)))
    beta = r.choice([beta, 0, 1])
    return Case(f"a:{product}(b, c, {options(beta=beta, alpha=alpha)})", given,
                lambda x, a, b: getattr(torch, product)(
                    x, a, b, beta=beta, alpha=alpha), 64, norm=True)


@operation()
def baddbmm(r):
    b, n, k, m = (r.integer(0 if r.flag(0.1) else 1, 4) for _ in range(4))
    return added(r, "baddbmm", [[b, n, k], [off(r, b), k, m]], [b, n, m])


@operation()
def addbmm(r):
    b, n, k, m = (r.integer(1, 4) for _ in range(4))
    return added(r, "addbmm", [[b, n, k], [b, off(r, k), m]], [n, m])


@operation()
def addmv(r):
    n, m = r.integer(1, 5), r.integer(1, 5)
    return added(r, "addmv", [[n, m], [off(r, m)]], [n])


@operation()
def addr(r):
    n, m = r.integer(1, 5), r.integer(1, 5)
    return added(r, "addr", [[n], [m]], [n, m])


@operation()
def inner(r):
    n = r.integer(1, 4)
    a, b = tensors(r, r.shape(2, size=3, empty=0) + [n],
                   r.shape(2, size=3, empty=0) + [off(r, n)])
    return Case("a:inner(b)", [a, b], torch.inner, 64, norm=True)


@operation()
def vdot(r):
    n = r.integer(0, 9)
    return Case("a:vdot(b)", tensors(r, [n], [off(r, n)]), torch.vdot, 64,
                norm=True)


@operation()
def ger(r):
    return Case("a:ger(b)", tensors(r, [r.integer(1, 4)], [r.integer(1, 4)]),
                torch.ger)


@operation()
def trace(r):
    shape = [r.integer(0, 5), r.integer(0, 5)]
    return Case("a:trace()", tensors(r, shape + ([2] if r.flag(0.05) else [])),
                torch.trace, norm=True)


@operation()
def multi_dot(r):
    sizes = [r.integer(1, 6) for _ in range(r.integer(3, 5))]
    shapes = [[a, b] for a, b in zip(sizes, sizes[1:])]
    if r.flag(0.2):
        shapes[0] = shapes[0][1:]
    if r.flag(0.2):
        shapes[-1] = shapes[-1][:1]
    given = tensors(r, *shapes, types=WIDE)
    names = ", ".join("abcd"[:len(given)])
    return Case(f"nacre.linalg.multi_dot({{{names}}})", given,
                lambda *t: torch.linalg.multi_dot(t), 256, norm=True)


@operation(2)
def cdist(r):
    k = r.integer(1, 4)
    batch = r.shape(2, size=2, empty=0)
    p = r.choice([2.0, 1.0, 3.0, 0.0, float("inf")])
    a, b = tensors(r, batch + [r.integer(1, 4), k],
                   batch + [r.integer(1, 4), off(r, k)], types=WIDE)
    if p in (0.0, float("inf")):     # of nan PyTorch has its own mind
        a, b = (torch.nan_to_num(t) for t in (a, b))
    return Case(f"nacre.cdist(a, b, {lua(p)})", [a, b],
                lambda x, y: torch.cdist(
                    x, y, p, "donot_use_mm_for_euclid_dist"), 64, norm=True,
                grad=p not in (0.0, float("inf")))


@operation()
def cross(r):
    shape = r.shape(2, size=4, empty=0)
    at = r.integer(0, len(shape))
    shape.insert(at, off(r, 3))
    return Case(f"a:cross(b, {at + 1})", tensors(r, shape, shape),
                lambda a, b: torch.cross(a, b, at), 64, norm=True)


@operation(2)
def cov(r):
    n = r.integer(1, 5)
    shape = [r.integer(1, 3), n] if r.flag(0.8) else [n]
    given = [r.tensor(WIDE, shape, special=0)]
    kw = {"correction": r.integer(0, 1)}
    text = f"correction = {kw['correction']}"
    which = []
    if r.flag(0.3):
        given.append(r.tensor("int64", [n], low=1, high=3))
        which.append("fweights")
    if r.flag(0.3):
        given.append(r.tensor(name(given[0].dtype), [n], low=1, high=3,
                              special=0))
        which.append("aweights")
    for letter, way in zip("bc", which):
        text += f", {way} = {letter}"
    return Case(f"a:cov({{{text}}})", given, lambda x, *w: torch.cov(
        x, **kw, **dict(zip(which, w))), 256, norm=True, grad=not which)


@operation()
def corrcoef(r):
    x = r.tensor(WIDE, [r.integer(1, 4), r.integer(3, 6)], special=0, ties=0)
    return Case("a:corrcoef()", [x], torch.corrcoef, 256, norm=True)
