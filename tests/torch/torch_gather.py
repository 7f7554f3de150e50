# SPDX-License-Identifier: MIT
"""Picking elements and writing to them: calls for diff_torch.py; see there.

Positions are drawn as PyTorch counts them; the calls in Lua add 1.
"""
import torch

from diff_torch import ALL, FLOATS, INTS, Case, lua, operation, options

NUMBERS = INTS + FLOATS


def positions(r, shape, size, distinct=None):
    """int64 in 0 .. size-1, seldom beyond; `distinct' along a dimension."""
    if size == 0:
        return None
    if distinct is not None:
        order = r.tensor("float64", shape, special=0, ties=0)
        index = order.argsort(distinct)
    else:
        index = r.tensor("int64", shape, low=0, high=size - 1)
    if r.flag(0.05) and index.numel():
        index.view(-1)[0] = size
    return index.to(r.choice([torch.int64, torch.int64, torch.int32]))


def sliced(r, dtypes, distinct=False, dtype=None):
    """x, (d, Lua's d), positions along it, the shape of their slices"""
    x = r.tensor(dtypes, shape=r.shape(most=3))
    d, e = r.dim(x, wrong=0.02)
    if x.dim() == 0 or not -x.dim() <= d < x.dim():
        return None
    size = x.shape[d]
    n = r.integer(0, size if distinct else size + 2)
    index = positions(r, [n], size)
    if index is None:
        return None
    if distinct:
        index = torch.randperm(size, generator=torch.Generator().manual_seed(
            r.integer(0, 999)))[:n]
    shape = list(x.shape)
    shape[d] = n
    return x, d, e, index, shape


@operation(2)
def index_select(r):
    got = sliced(r, ALL)
    if got is None:
        return None
    x, d, e, index, _ = got
    return Case(f"a:index_select({e}, b + 1)", [x, index],
                lambda a, b: a.index_select(d, b), times=0)


@operation()
def index_add(r):
    got = sliced(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index, shape = got
    source = r.tensor(str(x.dtype)[6:], shape)
    alpha = r.choice([1, 1, 2])
    return Case(f"a:index_add({e}, b + 1, c, {{ alpha = {alpha} }})",
                [x, index, source],
                lambda a, b, c: a.index_add(d, b, c, alpha=alpha), times=32,
                norm=True)


@operation()
def index_reduce(r):
    got = sliced(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index, shape = got
    source = r.tensor(str(x.dtype)[6:], shape)
    how = r.choice(["prod", "mean", "amax", "amin"])
    own = r.flag()
    return Case(f'a:index_reduce({e}, b + 1, c, "{how}", '
                f"{{ include_self = {lua(own)} }})", [x, index, source],
                lambda a, b, c: a.index_reduce(d, b.long(), c, how,
                                               include_self=own),
                times=64, norm=True)


@operation()
def index_copy(r):
    got = sliced(r, ALL, distinct=True)
    if got is None:
        return None
    x, d, e, index, shape = got
    source = r.tensor(str(x.dtype)[6:], shape)
    return Case(f"a:index_copy({e}, b + 1, c)", [x, index, source],
                lambda a, b, c: a.index_copy(d, b, c), times=0)


@operation()
def index_fill(r):
    got = sliced(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index, _ = got
    v = r.integer(0, 9)
    return Case(f"a:index_fill({e}, b + 1, {v})", [x, index],
                lambda a, b: a.index_fill(d, b.long(), v), times=0)


def along(r, dtypes, distinct=False):
    """x, (d, Lua's d), an index along d that is no larger elsewhere"""
    x = r.tensor(dtypes, shape=r.shape(most=3, least=1))
    d, e = r.dim(x, wrong=0)
    shape = [r.integer(0 if r.flag(0.05) else min(1, n), n) for n in x.shape]
    if not distinct:
        shape[d] = r.integer(0, x.shape[d] + 2)
    index = positions(r, shape, x.shape[d], d if distinct else None)
    if index is None:
        return None
    return x, d, e, index.long()


@operation(2)
def gather(r):
    got = along(r, ALL)
    if got is None:
        return None
    x, d, e, index = got
    return Case(f"a:gather({e}, b + 1)", [x, index],
                lambda a, b: a.gather(d, b), times=0)


def source(r, x, index):
    shape = [n + (r.integer(0, 2) if r.flag(0.2) else 0) for n in index.shape]
    return r.tensor(str(x.dtype)[6:], shape)


@operation(2)
def scatter(r):
    got = along(r, ALL, distinct=True)
    if got is None:
        return None
    x, d, e, index = got
    src = source(r, x, index)
    return Case(f"a:scatter({e}, b + 1, c)", [x, index, src],
                lambda a, b, c: a.scatter(d, b, c), times=0,
                grad=src.shape == index.shape)


@operation()
def scatter_number(r):
    got = along(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index = got
    v = r.integer(0, 9)
    reduce = r.choice([None, None, "add", "multiply"])
    kw = {} if reduce is None else {"reduce": reduce}
    more = f", {options(**kw)}" if kw else ""
    return Case(f"a:scatter({e}, b + 1, {v}{more})", [x, index],
                lambda a, b: a.scatter(d, b, v, **kw), times=32,
                grad=reduce is None)


@operation(2)
def scatter_add(r):
    got = along(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index = got
    src = source(r, x, index)
    return Case(f"a:scatter_add({e}, b + 1, c)", [x, index, src],
                lambda a, b, c: a.scatter_add(d, b, c), times=32, norm=True,
                grad=src.shape == index.shape)


@operation(3)
def scatter_reduce(r):
    got = along(r, NUMBERS)
    if got is None:
        return None
    x, d, e, index = got
    src = source(r, x, index)
    how = r.choice(["sum", "prod", "mean", "amax", "amin"])
    own = r.flag()
    return Case(f'a:scatter_reduce({e}, b + 1, c, "{how}", '
                f"{{ include_self = {lua(own)} }})", [x, index, src],
                lambda a, b, c: a.scatter_reduce(d, b, c, how,
                                                 include_self=own),
                times=64, norm=True, grad=src.shape == index.shape)


@operation()
def take(r):
    x = r.tensor()
    index = positions(r, r.shape(most=3), x.numel())
    if index is None:
        return None
    return Case("a:take(b + 1)", [x, index.long()],
                lambda a, b: a.take(b), times=0)


@operation()
def put(r):
    x = r.tensor()
    if x.numel() == 0:
        return None
    n = r.integer(0, x.numel())
    index = torch.randperm(x.numel(), generator=torch.Generator().manual_seed(
        r.integer(0, 999)))[:n]
    adds = r.flag(0.3)
    return Case(f"a:put(b + 1, c, {lua(adds)})",
                [x, index, r.tensor(str(x.dtype)[6:], [n])],
                lambda a, b, c: a.put(b, c, adds), times=8)


@operation()
def take_along_dim(r):
    got = along(r, ALL)
    if got is None:
        return None
    x, d, e, index = got
    if r.flag(0.3):
        index = index.clamp(0, max(0, x.numel() - 1))
        return Case("a:take_along_dim(b + 1)", [x, index],
                    torch.take_along_dim, times=0)
    index = index.narrow(0, 0, min(1, index.shape[0])) if d % x.dim() else index
    return Case(f"a:take_along_dim(b + 1, {e})", [x, index],
                lambda a, b: torch.take_along_dim(a, b, d), times=0)


@operation()
def index_put(r):
    x = r.tensor(shape=r.shape(most=3, least=2))
    shape = r.shape(most=2, empty=0)
    one, two = (positions(r, r.broadcast(shape), n) for n in x.shape[:2])
    if one is None or two is None:
        return None
    shape = list(torch.broadcast_shapes(one.shape, two.shape))
    values = r.tensor(str(x.dtype)[6:], r.broadcast(shape + list(x.shape[2:])))
    if x.dtype == torch.bool:
        return None
    return Case("a:index_put({ b + 1, c + 1 }, d, true)",
                [x, one.long(), two.long(), values],
                lambda a, b, c, d: a.index_put((b, c), d, accumulate=True),
                times=32, norm=True)


@operation()
def masked_fill(r):
    x = r.tensor()
    mask = r.tensor("bool", r.broadcast(list(x.shape)))
    v = r.choice([0, 1, 2.5, 7])
    return Case(f"a:masked_fill(b, {v})", [x, mask],
                lambda a, b: a.masked_fill(b, v), times=0)


@operation()
def masked_select(r):
    x = r.tensor()
    mask = r.tensor("bool", r.broadcast(list(x.shape)))
    return Case("a:masked_select(b)", [x, mask],
                lambda a, b: a.masked_select(b), times=0)


@operation()
def masked_scatter(r):
    x = r.tensor()
    mask = r.tensor("bool", r.broadcast(list(x.shape)))
    src = r.tensor(str(x.dtype)[6:], [x.numel() + r.integer(-1, 2)]
                   if x.numel() else [2])
    return Case("a:masked_scatter(b, c)", [x, mask, src],
                lambda a, b, c: a.masked_scatter(b, c), times=0)
