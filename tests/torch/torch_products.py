# SPDX-License-Identifier: MIT
"""Products of tensors: calls for diff_torch.py."""
import re

import torch

from diff_torch import WIDE, Position, call, operation

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
             "ij,jk", "ba", "iij->j", "ij,jk,kl->il", "i,i->",
             "bhwk,bhqk->bhwq", " a b , b -> a ", "ab,ab,ab->ba"]


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


@operation(2)
def tensordot(r):
    k = r.integer(0, 2)
    mid = [r.integer(1, 3) for _ in range(k)]
    a, b = tensors(r, r.shape(2, size=3, empty=0) + mid,
                   [off(r, n) for n in mid] + r.shape(2, size=3, empty=0))
    dims = k if r.flag() else ([Position(d - k) for d in range(k)],
                               [Position(d) for d in range(k)])
    return call("tensordot", a, b, dims, times=64, norm=True)


def added(r, product, shapes, out):
    """beta*self + alpha*product"""
    given = tensors(r, r.broadcast(out), *shapes)
    number = r.number if given[0].is_floating_point() else r.integer
    beta, alpha = number(-2, 2), number(-2, 2)
    return call(product, *given, beta=r.choice([beta, 0, 1]), alpha=alpha,
                times=64, norm=True)


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
def inner(r):
    n = r.integer(1, 4)
    return call("inner", *tensors(r, r.shape(2, size=3, empty=0) + [n],
                                  r.shape(2, size=3, empty=0) + [off(r, n)]),
                times=64, norm=True)


@operation()
def vdot(r):
    n = r.integer(0, 9)
    return call("vdot", *tensors(r, [n], [off(r, n)]), times=64, norm=True)


@operation()
def ger(r):
    return call("ger", *tensors(r, [r.integer(1, 4)], [r.integer(1, 4)]))


@operation()
def trace(r):
    shape = [r.integer(0, 5), r.integer(0, 5)]
    return call("trace", *tensors(r, shape + ([2] if r.flag(0.05) else [])),
                norm=True)


@operation()
def multi_dot(r):
    sizes = [r.integer(1, 6) for _ in range(r.integer(3, 5))]
    shapes = [[a, b] for a, b in zip(sizes, sizes[1:])]
    if r.flag(0.2):
        shapes[0] = shapes[0][1:]
    if r.flag(0.2):
        shapes[-1] = shapes[-1][:1]
    return call("nacre.linalg.multi_dot", tensors(r, *shapes, types=WIDE),
                times=256, norm=True)


@operation(2)
def cdist(r):
    k = r.integer(1, 4)
    batch = r.shape(2, size=2, empty=0)
    p = r.choice([2.0, 1.0, 3.0, 0.0, float("inf")])
    a, b = tensors(r, batch + [r.integer(1, 4), k],
                   batch + [r.integer(1, 4), off(r, k)], types=WIDE)
    if p in (0.0, float("inf")):     # of nan PyTorch has its own mind
        a, b = (torch.nan_to_num(t) for t in (a, b))
    return call("nacre.cdist", a, b, p, times=64, norm=True,
                f=lambda x, y, p: torch.cdist(
                    x, y, p, "donot_use_mm_for_euclid_dist"),
                grad=p not in (0.0, float("inf")))


@operation()
def cross(r):
    shape = r.shape(2, size=4, empty=0)
    at = r.integer(0, len(shape))
    shape.insert(at, off(r, 3))
    return call("cross", *tensors(r, shape, shape), Position(at), times=64,
                norm=True)


@operation(2)
def cov(r):
    n = r.integer(1, 5)
    x = r.tensor(WIDE, [r.integer(1, 3), n] if r.flag(0.8) else [n], special=0)
    weights = {}
    if r.flag(0.3):
        weights["fweights"] = r.tensor("int64", [n], low=1, high=3)
    if r.flag(0.3):
        weights["aweights"] = r.tensor(x, [n], low=1, high=3, special=0)
    return call("cov", x, correction=r.integer(0, 1), **weights, times=256,
                norm=True, grad=not weights)


@operation()
def corrcoef(r):
    x = r.tensor(WIDE, [r.integer(1, 4), r.integer(3, 6)], special=0, ties=0)
    return call("corrcoef", x, times=256, norm=True)
