# SPDX-License-Identifier: MIT
"""Reductions, scans, sorting and searching: calls for diff_torch.py."""
import torch

from diff_torch import (ALL, FLOATS, INTS, WIDE, Position, Redraw, call,
                        inside, operation)


def lines(r, dtypes=ALL, **kw):
    """A tensor whose lines are long enough to be sorted in several ways."""
    shape = r.shape(most=3)
    if shape and r.flag(0.3):
        shape[r.integer(0, len(shape) - 1)] = r.choice([17, 100, 900, 3000])
    return r.tensor(dtypes, shape=shape, **kw)


def distinct(r):
    """Numbers without ties, so that positions are determined."""
    x = r.tensor(WIDE, special=0)
    n = x.numel()
    return r.order(n, n).reshape(x.shape).to(x.dtype) - n // 2


def size(x, d):
    return x.shape[d] if x.dim() and inside(x, d) else 1


def stable(x, d=-1, descending=False):
    return torch.sort(x, dim=d, descending=descending, stable=True)


# ---- sorting

@operation(4)
def sort(r):
    x = lines(r)
    if r.flag():
        return call("sort", x, r.dim(x), r.flag(), f=stable, found=[1],
                    times=0)
    return call("sort", x, dim=r.dim(x), descending=r.flag(), stable=True,
                found=[1], times=0)


@operation()
def argsort(r):
    x = lines(r)
    return call("argsort", x, r.dim(x), r.flag(), found=[0],
                f=lambda *args: stable(*args)[1])


@operation()
def msort(r):
    return call("msort", lines(r), times=0)


@operation(2)
def topk(r):
    x = distinct(r)
    d = r.dim(x)
    k = r.integer(0, size(x, d) + (1 if r.flag(0.1) else 0))
    return call("topk", x, k, d, r.flag(), found=[1], times=0)


@operation(2)
def topk_values(r):
    x = lines(r, INTS + FLOATS)
    if x.dim() == 0:
        raise Redraw
    return call("topk", x, r.integer(0, x.shape[-1]), first=True, times=0,
                grad=False)


@operation()
def kthvalue(r):
    x = distinct(r)
    d = r.dim(x)
    k = r.integer(0 if r.flag(0.1) else 1,
                  size(x, d) + (1 if r.flag(0.1) else 0))
    return call("kthvalue", x, k, d, r.flag(), found=[1], times=0)


@operation(2)
def median(r):
    op = r.choice(["median", "nanmedian"])
    x, way = lines(r, INTS + WIDE), r.integer(0, 2)
    if way == 0:
        return call(op, x, times=0, grad=False)
    if way == 1:
        return call(op, x, r.dim(x), r.flag(), first=True, times=0, grad=False)
    x = distinct(r)
    return call(op, x, r.dim(x), r.flag(), found=[1], times=0)


@operation()
def mode(r):
    x = lines(r, ties=1, special=0.05)
    return call("mode", x, r.dim(x), r.flag(), first=True, times=0, grad=False)


@operation(3)
def quantile(r):
    x = lines(r, WIDE + ["int32"] if r.flag(0.1) else WIDE, ties=0)
    q = r.number(0, 1) if r.flag() else r.tensor(
        x if r.flag(0.9) else WIDE, [r.integer(1, 4)] if r.flag(0.9) else [],
        low=0, high=1, special=0.02)
    return call(r.choice(["quantile", "nanquantile"]), x, q,
                dim=r.dim(x) if r.flag(0.7) else None, keepdim=r.flag(),
                interpolation=r.choice(["linear", "lower", "higher", "nearest",
                                        "midpoint"]),
                times=64, norm=True, grad=isinstance(q, float))


# ---- sets

@operation(3)
def unique(r):
    x = lines(r, ties=1, special=0)
    inverse = r.flag()
    return call("unique", x, return_inverse=inverse, return_counts=r.flag(),
                dim=r.dim(x) if r.flag(0.4) else None,
                found=[1] if inverse else [], times=0, grad=False)


@operation(2)
def unique_consecutive(r):
    x = lines(r, ties=1, low=0, high=3)
    inverse = r.flag()
    return call("unique_consecutive", x, return_inverse=inverse,
                return_counts=r.flag(), dim=r.dim(x) if r.flag(0.4) else None,
                found=[1] if inverse else [], times=0, grad=False)


@operation(2)
def isin(r):
    return call("nacre.isin", r.tensor(INTS + WIDE), r.tensor(INTS + WIDE),
                invert=r.flag(), grad=False)


# ---- searching

@operation(3)
def searchsorted(r):
    dtype = r.choice(INTS + WIDE)
    edges = torch.sort(r.tensor(dtype, least=1, special=0))[0]
    shape = list(edges.shape[:-1]) + [r.integer(0, 5)] if r.flag() \
        else r.shape()
    if r.flag(0.2):
        x = r.choice([3, 2.5, -1])
        return call("nacre.searchsorted", edges, x, right=r.flag(), found=[0],
                    grad=False)
    x = r.tensor(dtype if r.flag(0.9) else INTS, shape=shape)
    return call("nacre.searchsorted", edges, x, right=r.flag(),
                out_int32=r.flag(0.2), found=[0], grad=False)


@operation()
def bucketize(r):
    dtype = r.choice(INTS + WIDE)
    edges = torch.sort(r.tensor(dtype, shape=[r.integer(0, 9)], special=0))[0]
    return call("bucketize", r.tensor(dtype), edges, right=r.flag(), found=[0],
                grad=False)


@operation(2)
def bincount(r):
    x = r.tensor(INTS if r.flag(0.95) else ALL, shape=[r.integer(0, 40)],
                 low=0 if r.flag(0.95) else -3, high=12)
    n = r.integer(0, 20)
    if r.flag():
        return call("bincount", x, minlength=n, grad=False)
    return call("bincount", x, r.tensor(special=0, shape=list(x.shape)), n,
                grad=False, times=32)


@operation()
def histc(r):
    x = r.tensor(WIDE, special=0, ties=0)
    low, high = r.choice([(0, 0), (-5, 5), (2, 9), (3, 1)])
    return call("histc", x, r.integer(1, 12), low, high, grad=False, times=0)


@operation()
def histogram(r):
    x = r.tensor(WIDE, special=0, ties=0)
    if r.flag():
        return call("histogram", x, r.integer(1, 9), density=r.flag(),
                    grad=False, times=64, norm=True)
    edges = torch.unique(r.tensor(x, shape=[8], special=0))
    w = r.tensor(x, shape=list(x.shape), special=0, low=0)
    return call("histogram", x, edges, weight=w, density=r.flag(), grad=False,
                times=64)


@operation()
def nonzero(r):
    return call(r.choice(["nonzero", "argwhere"]),
                r.tensor(low=-1, high=1, special=0), found=[0], grad=False)


# ---- scans

@operation(4)
def scan(r):
    op = r.choice(["cumsum", "cumprod"])
    x = r.tensor(low=-2, high=2, special=0.05)
    dtype = r.choice([None] * 4 + ["float64", "int32", "float32"])
    return call(op, x, r.dim(x), dtype=dtype, times=32, norm=True,
                grad=dtype is None, f=lambda t, d, dtype=None: getattr(
                    torch, op)(t, d, dtype=dtype and getattr(torch, dtype)))


@operation(2)
def extremes(r):
    x = r.tensor()
    return call(r.choice(["cummax", "cummin"]), x, r.dim(x), found=[1],
                times=0)


@operation()
def logcumsumexp(r):
    x = r.tensor(ALL if r.flag(0.2) else WIDE, special=0)
    return call("logcumsumexp", x, r.dim(x), times=16, norm=True)


@operation(2)
def diff(r):
    x = r.tensor(special=0)
    d, n = r.dim(x), r.integer(0, 3)
    if r.flag(0.6) or x.dim() == 0:
        return call("diff", x, n, d, times=16)
    if not inside(x, d):
        raise Redraw
    shape = list(x.shape)
    shape[d] = r.integer(0, 2)
    ends = [r.tensor(x, shape=shape, special=0) for _ in "ab"]
    return call("diff", x, n, d, *ends, times=16)


# ---- reductions

@operation(4)
def fold(r):
    op = r.choice(["sum", "mean", "amax", "amin", "nansum", "nanmean",
                   "count_nonzero", "logsumexp", "prod", "any", "all"])
    x = r.tensor(low=-3, high=3)
    dims = r.dims(x)
    if op in ("prod", "any", "all"):    # PyTorch has them for one dimension
        return call(op, x, r.dim(x), r.flag(), times=32, norm=True)
    if op == "count_nonzero":
        return call(op, x, *([dims] if dims else []), grad=False)
    dims = dims or [Position(d) for d in range(x.dim())]
    return call(op, x, dims, r.flag(), times=32, norm=True)


@operation(2)
def moments(r):
    x = r.tensor(special=0.05, ties=0)
    dims, unbiased = r.dims(x), r.flag()
    more = [dims, unbiased, r.flag()] if dims else [unbiased]
    return call(r.choice(["var", "std", "var_mean", "std_mean"]), x, *more,
                times=64, norm=True)


@operation()
def aminmax(r):
    x = r.tensor()
    if r.flag(0.3):
        return call("aminmax", x, times=0, grad=False)
    return call("aminmax", x, dim=r.dim(x), keepdim=r.flag(), times=0,
                grad=False)


@operation()
def extreme(r):
    x = distinct(r)
    return call(r.choice(["max", "min"]), x, r.dim(x), r.flag(), found=[1],
                times=0)


@operation()
def extreme_position(r):
    op = r.choice(["argmax", "argmin"])
    x = distinct(r)
    more = [r.dim(x), r.flag()] if r.flag(0.7) else []
    return call(op, x, *more, found=[0], grad=False)


@operation()
def dist(r):
    a = r.tensor(WIDE, special=0)
    b = r.tensor(a, shape=r.broadcast(list(a.shape)), special=0)
    p = r.choice([0, 1, 2, 3, float("inf")])
    return call("dist", a, b, p, times=64, norm=True, grad=p in (1, 2))


@operation()
def norm(r):
    x = r.tensor(WIDE)
    p = r.choice([1, 2, 3, 0.5, 0, float("inf"), -float("inf")])
    dims = r.dims(x) or [Position(d) for d in range(x.dim())]
    return call("norm", x, p, dims, r.flag(), times=64, norm=True,
                grad=p in (1, 2))


@operation(2)
def trapezoid(r):
    op = r.choice(["trapezoid", "cumulative_trapezoid"])
    y = r.tensor(INTS + WIDE, special=0, least=1, empty=0)
    d = r.dim(y, wrong=0)
    if r.flag():
        return call(op, y, dx=r.choice([1, 0.5, 2]), dim=d, times=64,
                    norm=True)
    x = r.tensor(WIDE, shape=[y.shape[d]] if r.flag() else list(y.shape),
                 special=0)
    return call(op, y, x, dim=d, times=64, norm=True)
