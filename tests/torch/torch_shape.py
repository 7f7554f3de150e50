# SPDX-License-Identifier: MIT
"""Copies in other orders and shapes, pads, diagonals, pieces, lists: calls for
diff_torch.py."""
import torch

from diff_torch import (ALL, FLOATS, INTS, Case, Position, Redraw, call,
                        inside, operation)

NUMBERS = INTS + FLOATS


def several(r, *args, **kw):
    return [r.tensor(*args, **kw) for _ in range(r.integer(1, 3))]


@operation()
def flip(r):
    x = r.tensor()
    return call("flip", x, r.dims(x), times=0)


@operation()
def flipone(r):
    x = r.tensor(shape=r.shape(most=3))
    return call(r.choice(["fliplr", "flipud"]), x, times=0)


@operation()
def roll(r):
    x = r.tensor()
    if r.flag(0.3):
        return call("roll", x, r.integer(-9, 9), times=0)
    dims = r.dims(x)
    if not dims:
        raise Redraw
    return call("roll", x, [r.integer(-9, 9) for _ in dims], dims, times=0)


@operation()
def rot90(r):
    x = r.tensor(shape=r.shape(most=4, least=1))
    return call("rot90", x, r.integer(-5, 5), [r.dim(x), r.dim(x)], times=0)


@operation(2)
def triangle(r):
    x = r.tensor(shape=r.shape(most=4, least=1 if r.flag(0.1) else 2))
    return call(r.choice(["tril", "triu"]), x, r.integer(-4, 4), times=0)


@operation()
def triangle_indices(r):
    op = r.choice(["tril_indices", "triu_indices"])
    return call("nacre." + op, r.integer(0, 5), r.integer(0, 5),
                r.integer(-6, 6), found=[0], times=0)


@operation()
def diag(r):
    x = r.tensor(shape=r.shape(most=3, least=0 if r.flag(0.1) else 1))
    k = r.integer(-3, 3)
    if 0 in x.shape or x.dim() == 2 and not -x.shape[0] <= k <= x.shape[1]:
        raise Redraw
    return call("diag", x, k, times=0)


@operation()
def diagflat(r):
    return call("diagflat", r.tensor(shape=r.shape(most=2)), r.integer(-3, 3),
                times=0)


@operation()
def diag_embed(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    n = x.dim()
    return call("diag_embed", x, r.integer(-3, 3),
                *(Position(r.integer(-n - 1, n)) for _ in "ab"), times=0)


@operation(2)
def pad(r):
    x = r.tensor(shape=r.shape(most=4, least=1))
    n = r.integer(1, x.dim())
    sizes = [r.integer(-2, 4) for _ in range(2 * n)]
    if any(a + sum(b) == 0 for a, b in zip(
            reversed(x.shape), zip(sizes[::2], sizes[1::2]))):
        raise Redraw                    # PyTorch refuses to crop all
    return call("pad", x, sizes, "constant", r.choice([0, 0, 3]),
                times=0)


@operation(2)
def pad_with_own(r):
    mode = r.choice(["reflect", "replicate", "circular"])
    n = r.integer(1, 3)
    x = r.tensor(["float32", "float64"], shape=r.shape(
        most=n + 2, least=n + 1 + (mode == "circular"), empty=0))
    return call("pad", x, [r.integer(0, 3) for _ in range(2 * n)], mode)


@operation()
def repeat_interleave(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    d, n = r.dim(x), r.integer(0, 3)
    if r.flag(0.2):
        return call("repeat_interleave", x, n)
    if not r.flag() and inside(x, d):
        n = r.tensor("int64", [x.shape[d]], low=0, high=3)
    return call("repeat_interleave", x, n, d)


@operation()
def stacks(r):
    op = r.choice(["hstack", "vstack", "dstack", "column_stack"])
    return call("nacre." + op, several(r, shape=r.shape(most=4, empty=0)),
                times=0)


@operation(2)
def joined(r):
    """Tensors that are of one shape but along one dimension."""
    x = r.tensor()
    d = r.dim(x)
    if r.flag():
        return call("nacre.stack", [x, r.tensor(shape=x.shape)], d, times=0)
    shape = list(x.shape)
    if inside(x, d):
        shape[d] = r.integer(0, 5)
    return call("nacre.cat", [x, r.tensor(shape=shape), x], d, times=0)


@operation()
def tile(r):
    x = r.tensor(shape=r.shape(most=3))
    times = [r.integer(0 if r.flag(0.1) else 1, 3)
             for _ in range(r.integer(1, 4))]
    return call("tile", x, times, times=8)


@operation(3)
def view(r):
    """What shows the same elements otherwise."""
    x = r.tensor()
    d, e = r.dim(x), r.dim(x)
    n = x.shape[d] if x.dim() and inside(x, d) else 1
    at = r.integer(0, n - 1)
    dims = [Position(int(p)) for p in r.rng.permutation(x.dim())]
    return call(*r.choice([
        ("permute", x, dims), ("transpose", x, d, e), ("flatten", x, d, e),
        ("reshape", x, [n, -1]), ("unsqueeze", x, d), ("squeeze", x),
        ("squeeze", x, d), ("movedim", x, d, e),
        ("diagonal", x, at - n // 2, d, e),
        ("narrow", x, d, Position(at), r.integer(0, n - at)),
        ("select", x, d, Position(at)), ("unbind", x, d),
        ("chunk", x, r.integer(1, 4), d), ("split", x, r.integer(1, 4), d),
    ]), times=0)


@operation()
def unfold(r):
    x = r.tensor()
    size = r.integer(0, 4)
    return call("unfold", x, r.dim(x), size, r.integer(1, 3), grad=size > 0)


@operation()
def tensor_split(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    at = [Position(r.integer(-4, 6)) for _ in range(r.integer(0, 3))]
    return call("tensor_split", x, at if r.flag() else r.integer(0, 5),
                r.dim(x), times=0)


@operation()
def namedsplit(r):
    x = r.tensor(shape=r.shape(most=4, least=1))
    return call(r.choice(["hsplit", "vsplit", "dsplit"]), x, r.integer(1, 3),
                times=0)


@operation()
def as_strided(r):
    x = r.tensor(shape=r.shape(most=2, least=1, empty=0))
    size = [r.integer(1, 3) for _ in range(r.integer(1, 3))]
    case = call("as_strided", x, size, [r.integer(0, 2) for _ in size],
                f=lambda a, *args: a.contiguous().as_strided(*args),
                grad=False)
    case.text = case.text.replace("a:", "a:contiguous():clone():", 1)
    return case


@operation()
def meshgrid(r):
    how = r.choice(["ij", "xy"])
    return call("nacre.meshgrid", several(r, "float32", r.shape(most=1)),
                indexing=how)


@operation()
def cartesian_prod(r):
    return call("nacre.cartesian_prod", several(r, "float64",
                                                [r.integer(0, 3)]),
                f=lambda xs: torch.cartesian_prod(*xs))


@operation()
def combinations(r):
    return call("combinations", r.tensor(shape=[r.integer(0, 5)]),
                r.integer(1, 3), r.flag())


@operation()
def block_diag(r):
    return call("nacre.block_diag", [r.tensor("float32", r.shape(most=2))
                                     for _ in range(r.integer(1, 3))],
                f=lambda xs: torch.block_diag(*xs), times=0)


@operation()
def kron(r):
    return call("kron", *(r.tensor(NUMBERS, r.shape(most=3, size=3))
                          for _ in "ab"), times=16)


@operation()
def vander(r):
    x = r.tensor(["float32", "float64", "int64"], [r.integer(0, 4)], low=-3,
                 high=3, special=0)
    return call("vander", x, r.integer(0, 5), r.flag(), times=32, grad=False)


@operation()
def atleast(r):
    return call(f"atleast_{r.integer(1, 3)}d", r.tensor(), times=0)


@operation()
def into_view(r):
    x = r.tensor(shape=r.shape(most=3, least=2, empty=0))
    if r.flag():
        d = Position(r.integer(0, x.dim() - 1))
        i = Position(r.integer(0, x.shape[d] - 1))
        return call("select_scatter", x, r.tensor(x, x.select(d, i).shape), d,
                    i, times=0)
    k = r.integer(-1, 1)
    return call("diagonal_scatter", x, r.tensor(x, x.diagonal(k).shape), k,
                times=0)


@operation(3)
def basic_index(r):
    """t[...] by numbers and ranges, in both ways to write them."""
    x = r.tensor(shape=r.shape(most=4, least=1, empty=0))
    key, parts, text = [], [], []
    for n in x.shape[:r.integer(1, x.dim())]:
        way = r.integer(0, 3)
        first = r.integer(0, n - 1)
        last, step = r.integer(first, n - 1), r.integer(1, 3)
        if way == 0:
            number = first + 1 if r.flag() else first - n
            key.append(first)
            parts.append(str(number))
            text.append(str(number))
        elif way == 1:
            key.append(slice(None))
            parts.append("{}")
            text.append(":")
        else:
            key.append(slice(first, last + 1, step))
            parts.append(f"{{{first + 1}, {last + 1}, {step}}}")
            text.append(f"{first + 1}:{last - n}:{step}")
    if len(key) == x.dim() and all(isinstance(k, int) for k in key):
        raise Redraw                    # it gives a number
    lua = "{%s}" % ", ".join(parts) if r.flag() else '"%s"' % ", ".join(text)
    return Case(f"a[{lua}]", [x], lambda a: a[tuple(key)], times=0)


def assigned(t, key, value):
    t = t.clone()
    t[key] = value
    return t


SET = "(function(t, key, v) t = t:clone() t[key] = v return t end)"


@operation(3)
def advanced_index(r):
    """t[...] by tensors of positions and masks, read and assigned to."""
    x = r.tensor(shape=r.shape(most=3, least=2, empty=0))
    n, m = x.shape[:2]
    count = r.integer(0 if r.flag(0.1) else 1, 5)
    i, j = (r.tensor("int64", [count], low=0, high=size - 1)
            for size in (n, m))
    if r.flag(0.3):
        i = i - n                       # counted from the end
    at = "b" if count and i[0] < 0 else "b + 1"
    mask = r.tensor("bool", x.shape[:r.integer(1, x.dim())])
    text, others, want = r.choice([
        ("a[b]", [mask], lambda a, b: a[b]),
        (SET + "(a, b, 1)", [mask], lambda a, b: assigned(a, b, 1)),
        (f"a[{at}]", [i], lambda a, b: a[b]),
        (f"a[{{{{}}, c + 1}}]", [i, j], lambda a, b, c: a[:, c]),
        (f"a[{{{at}, c + 1}}]", [i, j], lambda a, b, c: a[b, c]),
        (SET + f"(a, {at}, 1)", [i], lambda a, b: assigned(a, b, 1)),
    ])
    return Case(text, [x, *others], want, times=0)


@operation(2)
def chosen(r):
    """where and clamp"""
    x = r.tensor()
    if r.flag():
        c = r.tensor("bool", r.broadcast(list(x.shape)))
        return call("nacre.where", c, x, r.tensor(
            x if r.flag() else ALL, shape=r.broadcast(list(x.shape))), times=0)
    low = r.integer(0, 5)
    return call("clamp", x, low, low + r.integer(0, 5), times=0)
