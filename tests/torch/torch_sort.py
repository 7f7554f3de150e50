# SPDX-License-Identifier: MIT
"""Reductions, scans, sorting and searching: calls for diff_torch.py."""
import torch

from diff_torch import (ALL, FLOATS, INTS, WIDE, Case, lua, name, operation,
                        options, plus1)


def second(f):
    """f gives values and positions."""
    def g(*args):
        values, at = f(*args)
        return values, plus1(at)
    return g


def lines(r, **kw):
    """A tensor whose lines are long enough to be sorted in several ways."""
    shape = r.shape(most=3)
    if shape and r.flag(0.3):
        shape[r.integer(0, len(shape) - 1)] = r.choice([17, 100, 900, 3000])
    return r.tensor(shape=shape, **kw)


# ---- sorting

@operation(4)
def sort(r):
    x = lines(r)
    d, luad = r.dim(x)
    down = r.flag()
    text = f"a:sort({luad}, {lua(down)})" if r.flag() else \
        f"a:sort{options(dim=luad, descending=down, stable=True)}"
    return Case(text, [x], second(
        lambda t: torch.sort(t, dim=d, descending=down, stable=True)), times=0)


@operation()
def argsort(r):
    x = lines(r)
    d, luad = r.dim(x)
    down = r.flag()
    return Case(f"a:argsort({luad}, {lua(down)})", [x], lambda t: plus1(
        torch.sort(t, dim=d, descending=down, stable=True)[1]))


@operation()
def msort(r):
    return Case("a:msort()", [lines(r)], torch.msort, times=0)


def distinct(x):
    """The same without ties, so that positions are of one kind."""
    n = x.numel()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(n))
    return order.reshape(x.shape).to(x.dtype) - n // 2


@operation(2)
def topk(r):
    x = distinct(r.tensor(WIDE, special=0))
    d, luad = r.dim(x)
    n = x.shape[d] if x.dim() and -x.dim() <= d < x.dim() else 1
    k = r.integer(0, n + (1 if r.flag(0.1) else 0))
    up = r.flag()
    return Case(f"a:topk({k}, {luad}, {lua(up)})", [x], second(
        lambda t: torch.topk(t, k, d, up)), times=0)


@operation(2)
def topk_values(r):
    x = lines(r, dtypes=INTS + FLOATS)
    if x.dim() == 0:
        return None
    k = r.integer(0, x.shape[-1])
    return Case(f"(a:topk({k}))", [x], lambda t: torch.topk(t, k)[0], times=0,
                grad=False)


@operation()
def kthvalue(r):
    x = distinct(r.tensor(WIDE, special=0))
    d, luad = r.dim(x)
    n = x.shape[d] if x.dim() and -x.dim() <= d < x.dim() else 1
    k = r.integer(0 if r.flag(0.1) else 1, n + (1 if r.flag(0.1) else 0))
    keep = r.flag()
    return Case(f"a:kthvalue({k}, {luad}, {lua(keep)})", [x], second(
        lambda t: torch.kthvalue(t, k, d, keep)), times=0)


@operation(2)
def median(r):
    op = r.choice(["median", "nanmedian"])
    f = getattr(torch, op)
    x = lines(r, dtypes=INTS + WIDE)
    way = r.integer(0, 2)
    if way == 0:
        return Case(f"a:{op}()", [x], f, times=0, grad=False)
    d, luad = r.dim(x)
    keep = r.flag()
    if way == 1:
        return Case(f"(a:{op}({luad}, {lua(keep)}))", [x],
                    lambda t: f(t, d, keep)[0], times=0, grad=False)
    x = distinct(r.tensor(WIDE, special=0))
    d, luad = r.dim(x)
    return Case(f"a:{op}({luad}, {lua(keep)})", [x],
                second(lambda t: f(t, d, keep)), times=0)


@operation()
def mode(r):
    x = lines(r, ties=1, special=0.05)
    d, luad = r.dim(x)
    keep = r.flag()
    return Case(f"(a:mode({luad}, {lua(keep)}))", [x],
                lambda t: torch.mode(t, d, keep)[0], times=0, grad=False)


@operation(3)
def quantile(r):
    op = r.choice(["quantile", "nanquantile"])
    f = getattr(torch, op)
    x = lines(r, dtypes=WIDE + ["int32"] if r.flag(0.1) else WIDE, ties=0)
    how = r.choice(["linear", "lower", "higher", "nearest", "midpoint"])
    keep = r.flag()
    d, luad = r.dim(x) if r.flag(0.7) else (None, None)
    text = options(dim=luad, keepdim=keep, interpolation=how)
    if r.flag():
        q = r.number(0, 1)
        return Case(f"a:{op}({q}, {text})", [x], lambda t: f(
            t, q, d, keep, interpolation=how), times=64, norm=True)
    q = r.tensor(name(x.dtype) if r.flag(0.9) else WIDE,
                 shape=[r.integer(1, 4)] if r.flag(0.9) else [], low=0, high=1,
                 special=0.02)
    return Case(f"a:{op}(b, {text})", [x, q], lambda t, s: f(
        t, s, d, keep, interpolation=how), times=64, norm=True, grad=False)


# ---- sets

@operation(3)
def unique(r):
    x = lines(r, ties=1, special=0)
    inverse, counts = r.flag(), r.flag()
    if r.flag(0.6):
        text = options(return_inverse=inverse, return_counts=counts)
        def want(t):
            y = torch.unique(t, return_inverse=inverse, return_counts=counts)
            y = list(y) if isinstance(y, tuple) else [y]
            if inverse:
                y[1] = plus1(y[1])
            return y
        return Case(f"a:unique({text})", [x], want, times=0, grad=False)
    d, luad = r.dim(x)
    text = options(return_inverse=inverse, return_counts=counts, dim=luad)
    def along(t):
        y = torch.unique(t, return_inverse=inverse,
                         return_counts=counts, dim=d)
        y = list(y) if isinstance(y, tuple) else [y]
        if inverse:
            y[1] = plus1(y[1])
        return y
    return Case(f"a:unique({text})", [x], along, times=0, grad=False)


@operation(2)
def unique_consecutive(r):
    x = lines(r, ties=1, low=0, high=3)
    inverse, counts = r.flag(), r.flag()
    d, luad = r.dim(x) if r.flag(0.4) else (None, None)
    text = options(return_inverse=inverse, return_counts=counts, dim=luad)
    def want(t):
        y = torch.unique_consecutive(t, return_inverse=inverse,
                                     return_counts=counts, dim=d)
        y = list(y) if isinstance(y, tuple) else [y]
        if inverse:
            y[1] = plus1(y[1])
        return y
    return Case(f"a:unique_consecutive({text})", [x], want, times=0,
                grad=False)


@operation(2)
def isin(r):
    a, b = r.tensor(INTS + WIDE), r.tensor(INTS + WIDE)
    invert = r.flag()
    return Case(f"nacre.isin(a, b, {{invert = {lua(invert)}}})", [a, b],
                lambda x, y: torch.isin(x, y, invert=invert), grad=False)


# ---- searching

@operation(3)
def searchsorted(r):
    dtype = r.choice(INTS + WIDE)
    seq = torch.sort(r.tensor(dtype, least=1, special=0))[0]
    shape = list(seq.shape[:-1]) + [r.integer(0, 5)] if r.flag() \
        else r.shape()
    x = r.tensor(dtype if r.flag(0.9) else INTS, shape=shape)
    right, narrow = r.flag(), r.flag(0.2)
    if r.flag(0.2):
        v = r.choice([3, 2.5, -1])
        return Case(f"nacre.searchsorted(a, {v}, {{right = {lua(right)}}})",
                    [seq], lambda s: plus1(torch.searchsorted(
                        s, v, right=right)), grad=False)
    return Case("nacre.searchsorted(a, b, "
                f"{options(right=right, out_int32=narrow)})", [seq, x],
                lambda s, t: plus1(torch.searchsorted(
                    s, t, right=right, out_int32=narrow)), grad=False)


@operation()
def bucketize(r):
    dtype = r.choice(INTS + WIDE)
    seq = torch.sort(r.tensor(dtype, shape=[r.integer(0, 9)], special=0))[0]
    x = r.tensor(dtype)
    right = r.flag()
    return Case(f"a:bucketize(b, {{right = {lua(right)}}})", [x, seq],
                lambda t, s: plus1(torch.bucketize(t, s, right=right)),
                grad=False)


@operation(2)
def bincount(r):
    x = r.tensor(INTS if r.flag(0.95) else ALL, shape=[r.integer(0, 40)],
                 low=0 if r.flag(0.95) else -3, high=12)
    n = r.integer(0, 20)
    if r.flag():
        return Case(f"a:bincount({{minlength = {n}}})", [x],
                    lambda t: torch.bincount(t, minlength=n), grad=False)
    w = r.tensor(special=0, shape=list(x.shape))
    return Case(f"a:bincount(b, {n})", [x, w],
                lambda t, v: torch.bincount(t, v, n), grad=False, times=32)


@operation()
def histc(r):
    x = r.tensor(WIDE, special=0, ties=0)
    bins = r.integer(1, 12)
    low, high = r.choice([(0, 0), (-5, 5), (2, 9), (3, 1)])
    return Case(f"a:histc({bins}, {low}, {high})", [x],
                lambda t: torch.histc(t, bins, low, high), grad=False, times=0)


@operation()
def histogram(r):
    x = r.tensor(WIDE, special=0, ties=0)
    density = r.flag()
    if r.flag():
        bins = r.integer(1, 9)
        return Case(f"a:histogram({bins}, {options(density=density)})", [x],
                    lambda t: torch.histogram(t, bins, density=density),
                    grad=False, times=64, norm=True)
    edges = torch.unique(r.tensor(name(x.dtype), shape=[8], special=0))
    w = r.tensor(name(x.dtype), shape=list(x.shape), special=0, low=0)
    return Case(f"a:histogram(b, {{weight = c, density = {lua(density)}}})",
                [x, edges, w], lambda t, e, v: torch.histogram(
                    t, e, weight=v, density=density), grad=False, times=64)


@operation()
def nonzero(r):
    x = r.tensor(low=-1, high=1, special=0)
    op = r.choice(["nonzero", "argwhere"])
    return Case(f"a:{op}()", [x], lambda t: plus1(getattr(torch, op)(t)),
                grad=False)


# ---- scans

@operation(4)
def scan(r):
    op = r.choice(["cumsum", "cumprod"])
    x = r.tensor(low=-2, high=2, special=0.05)
    d, luad = r.dim(x)
    dtype = r.choice([None] * 4 + ["float64", "int32", "float32"])
    f = getattr(torch, op)
    return Case(f"a:{op}({luad}, {options(dtype=dtype)})", [x],
                lambda t: f(t, d, dtype=getattr(torch, dtype) if dtype
                            else None), times=32, norm=True,
                grad=dtype is None)


@operation(2)
def extremes(r):
    op = r.choice(["cummax", "cummin"])
    x = r.tensor()
    d, luad = r.dim(x)
    f = getattr(torch, op)
    return Case(f"a:{op}({luad})", [x], second(lambda t: f(t, d)), times=0)


@operation()
def logcumsumexp(r):
    x = r.tensor(ALL if r.flag(0.2) else WIDE, special=0)
    d, luad = r.dim(x)
    return Case(f"a:logcumsumexp({luad})", [x],
                lambda t: torch.logcumsumexp(t, d), times=16, norm=True)


@operation(2)
def diff(r):
    x = r.tensor(special=0)
    d, luad = r.dim(x)
    n = r.integer(0, 3)
    if r.flag(0.6) or x.dim() == 0:
        return Case(f"a:diff({n}, {luad})", [x],
                    lambda t: torch.diff(t, n, d), times=16)
    if not -x.dim() <= d < x.dim():
        return None
    shape = list(x.shape)
    shape[d] = r.integer(0, 2)
    b = r.tensor(name(x.dtype), shape=shape, special=0)
    return Case(f"a:diff({n}, {luad}, b, b)", [x, b],
                lambda t, u: torch.diff(t, n, d, u, u), times=16)


# ---- reductions

FOLDS = {
    "sum": torch.sum, "mean": torch.mean, "amax": torch.amax,
    "amin": torch.amin, "nansum": torch.nansum, "nanmean": torch.nanmean,
    "count_nonzero": None, "logsumexp": torch.logsumexp,
}


@operation(4)
def fold(r):
    op = r.choice(list(FOLDS))
    x = r.tensor(low=-3, high=3)
    dims, luad = r.dims(x)
    keep = r.flag()
    if op == "count_nonzero":
        return Case(f"a:count_nonzero({lua(luad) if luad else ''})", [x],
                    lambda t: torch.count_nonzero(t, dims) if dims
                    else torch.count_nonzero(t), grad=False)
    if not dims:
        dims = list(range(x.dim()))
        luad = [d + 1 for d in dims]
    return Case(f"a:{op}({lua(luad)}, {lua(keep)})", [x],
                lambda t: FOLDS[op](t, dims, keep), times=32, norm=True)


@operation(2)
def moments(r):
    op = r.choice(["var", "std", "var_mean", "std_mean"])
    x = r.tensor(special=0.05, ties=0)
    dims, luad = r.dims(x)
    keep, unbiased = r.flag(), r.flag()
    if not dims:
        return Case(f"a:{op}({lua(unbiased)})", [x],
                    lambda t: getattr(torch, op)(t, unbiased), times=64,
                    norm=True)
    return Case(f"a:{op}({lua(luad)}, {lua(unbiased)}, {lua(keep)})", [x],
                lambda t: getattr(torch, op)(t, dims, unbiased, keep),
                times=64, norm=True)


@operation()
def aminmax(r):
    x = r.tensor()
    if r.flag(0.3):
        return Case("a:aminmax()", [x], torch.aminmax, times=0, grad=False)
    d, luad = r.dim(x)
    keep = r.flag()
    return Case(f"a:aminmax({options(dim=luad, keepdim=keep)})", [x],
                lambda t: torch.aminmax(t, dim=d, keepdim=keep), times=0,
                grad=False)


@operation()
def extreme(r):
    op = r.choice(["max", "min"])
    x = distinct(r.tensor(WIDE, special=0))
    d, luad = r.dim(x)
    keep = r.flag()
    return Case(f"a:{op}({luad}, {lua(keep)})", [x],
                second(lambda t: getattr(torch, op)(t, d, keep)), times=0)


@operation()
def dist(r):
    a = r.tensor(WIDE, special=0)
    b = r.tensor(WIDE, shape=r.broadcast(list(a.shape)), special=0)
    p = r.choice([0, 1, 2, 3, float("inf")])
    return Case(f"a:dist(b, {lua(p)})", [a, b],
                lambda x, y: torch.dist(x, y, p), times=64, norm=True,
                grad=p in (1, 2))


@operation(2)
def trapezoid(r):
    op = r.choice(["trapezoid", "cumulative_trapezoid"])
    y = r.tensor(INTS + WIDE, special=0, least=1, empty=0)
    d, luad = r.dim(y, wrong=0)
    if r.flag():
        dx = r.choice([1, 0.5, 2])
        return Case(f"a:{op}({{dx = {dx}, dim = {luad}}})", [y],
                    lambda t: getattr(torch, op)(t, dx=dx, dim=d), times=64,
                    norm=True)
    x = r.tensor(WIDE, shape=[y.shape[d]] if r.flag() else list(y.shape),
                 special=0)
    return Case(f"a:{op}(b, {{dim = {luad}}})", [y, x],
                lambda t, u: getattr(torch, op)(t, u, dim=d), times=64,
                norm=True)
