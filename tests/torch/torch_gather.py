# SPDX-License-Identifier: MIT
"""Gathering, scattering and filling by positions and masks: calls for
diff_torch.py."""
import torch

from diff_torch import (ALL, FLOATS, INTS, Positions, Redraw, call, inside,
                        operation)

NUMBERS = INTS + FLOATS


def positions(r, shape, size, distinct=None):
    """Positions below size, seldom beyond; `distinct' along a dimension."""
    if size == 0:
        raise Redraw
    if distinct is not None:
        order = r.tensor("float64", shape, special=0, ties=0)
        index = order.argsort(distinct)
    else:
        index = r.tensor("int64", shape, low=0, high=size - 1)
    if r.flag(0.05) and index.numel():
        index.view(-1)[0] = size
    return index


def sliced(r, dtypes, distinct=False):
    """x, a dimension, positions along it, the shape of their slices"""
    x = r.tensor(dtypes, shape=r.shape(most=3))
    d = r.dim(x, wrong=0.02)
    if x.dim() == 0 or not inside(x, d):
        raise Redraw
    size = x.shape[d]
    n = r.integer(0, size if distinct else size + 2)
    index = positions(r, [n], size)
    if distinct:
        index = r.order(size)[:n]
    shape = list(x.shape)
    shape[d] = n
    return x, d, index, shape


def narrow(r, index):
    """Now and then an int32 tensor."""
    return index.to(r.choice([torch.int64, torch.int64, torch.int32]))


def with_int64(f):
    """f of PyTorch, which takes int64 positions only."""
    return lambda x, d, index, *more, **kw: f(x, d, index.long(), *more, **kw)


@operation(2)
def index_select(r):
    x, d, index, _ = sliced(r, ALL)
    return call("index_select", x, d, Positions(narrow(r, index)), times=0)


@operation()
def index_add(r):
    x, d, index, shape = sliced(r, NUMBERS)
    return call("index_add", x, d, Positions(narrow(r, index)),
                r.tensor(x, shape), alpha=r.choice([1, 1, 2]), times=32,
                norm=True)


@operation()
def index_reduce(r):
    x, d, index, shape = sliced(r, NUMBERS)
    how = r.choice(["prod", "mean", "amax", "amin"])
    return call("index_reduce", x, d, Positions(narrow(r, index)),
                r.tensor(x, shape), how, f=with_int64(torch.index_reduce),
                include_self=r.flag(), times=64, norm=True)


@operation()
def index_copy(r):
    x, d, index, shape = sliced(r, ALL, distinct=True)
    return call("index_copy", x, d, Positions(index), r.tensor(x, shape),
                times=0)


@operation()
def index_fill(r):
    x, d, index, _ = sliced(r, NUMBERS)
    return call("index_fill", x, d, Positions(narrow(r, index)),
                r.integer(0, 9), f=with_int64(torch.index_fill), times=0)


def along(r, dtypes, distinct=False):
    """x, a dimension, an index along it that is no larger elsewhere"""
    x = r.tensor(dtypes, shape=r.shape(most=3, least=1))
    d = r.dim(x, wrong=0)
    shape = [r.integer(0 if r.flag(0.05) else min(1, n), n) for n in x.shape]
    if not distinct:
        shape[d] = r.integer(0, x.shape[d] + 2)
    return x, d, positions(r, shape, x.shape[d], d if distinct else None)


@operation(2)
def gather(r):
    x, d, index = along(r, ALL)
    return call("gather", x, d, Positions(index), times=0)


def written(r, name, x, d, index, *args, **kw):
    """A call that writes a tensor, now and then larger than the index."""
    shape = [n + (r.integer(0, 2) if r.flag(0.2) else 0) for n in index.shape]
    return call(name, x, d, Positions(index), r.tensor(x, shape), *args,
                grad=shape == list(index.shape), **kw)


@operation(2)
def scatter(r):
    return written(r, "scatter", *along(r, ALL, distinct=True), times=0)


@operation()
def scatter_number(r):
    x, d, index = along(r, NUMBERS)
    reduce = r.choice([None, None, "add", "multiply"])
    return call("scatter", x, d, Positions(index), r.integer(0, 9),
                reduce=reduce, times=32, grad=reduce is None)


@operation(2)
def scatter_add(r):
    return written(r, "scatter_add", *along(r, NUMBERS), times=32, norm=True)


@operation(3)
def scatter_reduce(r):
    how = r.choice(["sum", "prod", "mean", "amax", "amin"])
    return written(r, "scatter_reduce", *along(r, NUMBERS), how,
                   include_self=r.flag(), times=64, norm=True)


@operation()
def take(r):
    x = r.tensor()
    index = positions(r, r.shape(most=3), x.numel())
    return call("take", x, Positions(index), times=0)


@operation()
def put(r):
    x = r.tensor()
    if x.numel() == 0:
        raise Redraw
    n = r.integer(0, x.numel())
    return call("put", x, Positions(r.order(x.numel())[:n]), r.tensor(x, [n]),
                r.flag(0.3))


@operation()
def take_along_dim(r):
    x, d, index = along(r, ALL)
    if r.flag(0.3):
        index = index.clamp(0, max(0, x.numel() - 1))
        return call("take_along_dim", x, Positions(index), times=0)
    if d % x.dim():
        index = index.narrow(0, 0, min(1, index.shape[0]))
    return call("take_along_dim", x, Positions(index), d, times=0)


@operation()
def index_put(r):
    x = r.tensor(NUMBERS, shape=r.shape(most=3, least=2))
    shape = r.shape(most=2, empty=0)
    pair = [positions(r, r.broadcast(shape), n) for n in x.shape[:2]]
    shape = list(torch.broadcast_shapes(*(i.shape for i in pair)))
    values = r.tensor(x, r.broadcast(shape + list(x.shape[2:])))
    return call("index_put", x, tuple(Positions(i) for i in pair), values,
                True, times=32, norm=True)


def masked(r):
    x = r.tensor()
    return x, r.tensor("bool", r.broadcast(list(x.shape)))


@operation()
def masked_fill(r):
    return call("masked_fill", *masked(r), r.choice([0, 1, 2.5, 7]), times=0)


@operation()
def masked_select(r):
    return call("masked_select", *masked(r), times=0)


@operation()
def masked_scatter(r):
    x, mask = masked(r)
    n = x.numel() + r.integer(-1, 2) if x.numel() else 2
    return call("masked_scatter", x, mask, r.tensor(x, [n]), times=0)
