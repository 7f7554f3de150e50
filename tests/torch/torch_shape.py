# SPDX-License-Identifier: MIT
"""Shapes: flips, pads, diagonals, stacks and the like; see diff_torch.py."""
import torch

from diff_torch import ALL, FLOATS, INTS, Case, lua, operation

F = torch.nn.functional
NUMBERS = INTS + FLOATS


def up(i):
    """A position or dimension as Lua counts it."""
    return i + 1 if i >= 0 else i


@operation()
def flip(r):
    x = r.tensor()
    d, e = r.dims(x)
    return Case(f"a:flip({lua(e)})", [x], lambda a: a.flip(d), times=0)


@operation()
def flipone(r):
    x = r.tensor(shape=r.shape(most=3))
    op = r.choice(["fliplr", "flipud"])
    return Case(f"a:{op}()", [x], getattr(torch, op), times=0)


@operation()
def roll(r):
    x = r.tensor()
    if r.flag(0.3):
        n = r.integer(-9, 9)
        return Case(f"a:roll({n})", [x], lambda a: a.roll(n), times=0)
    d, e = r.dims(x)
    if not d:
        return None
    n = [r.integer(-9, 9) for _ in d]
    return Case(f"a:roll({lua(n)}, {lua(e)})", [x], lambda a: a.roll(n, d),
                times=0)


@operation()
def rot90(r):
    x = r.tensor(shape=r.shape(most=4, least=1))
    k = r.integer(-5, 5)
    d, e = r.dim(x)
    f, g = r.dim(x)
    return Case(f"a:rot90({k}, {{ {e}, {g} }})", [x],
                lambda a: a.rot90(k, (d, f)), times=0)


@operation(2)
def triangle(r):
    x = r.tensor(shape=r.shape(most=4, least=1 if r.flag(0.1) else 2))
    op, k = r.choice(["tril", "triu"]), r.integer(-4, 4)
    return Case(f"a:{op}({k})", [x], lambda a: getattr(a, op)(k), times=0)


@operation()
def triangle_indices(r):
    op = r.choice(["tril_indices", "triu_indices"])
    n, m, k = r.integer(0, 5), r.integer(0, 5), r.integer(-6, 6)
    return Case(f"nacre.{op}({n}, {m}, {k}) - 1", [],
                lambda: getattr(torch, op)(n, m, k), times=0)


@operation()
def diag(r):
    x = r.tensor(shape=r.shape(most=3, least=0 if r.flag(0.1) else 1))
    if 0 in x.shape:
        return None
    k = r.integer(-3, 3)
    if x.dim() == 2 and not -x.shape[0] <= k <= x.shape[1]:
        return None
    return Case(f"a:diag({k})", [x], lambda a: a.diag(k), times=0)


@operation()
def diagflat(r):
    x = r.tensor(shape=r.shape(most=2))
    k = r.integer(-3, 3)
    return Case(f"a:diagflat({k})", [x], lambda a: a.diagflat(k), times=0)


@operation()
def diag_embed(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    k, n = r.integer(-3, 3), x.dim()
    d, e = (r.integer(-n - 1, n) for _ in "ab")
    return Case(f"a:diag_embed({k}, {up(d)}, {up(e)})", [x],
                lambda a: a.diag_embed(k, d, e), times=0)


@operation(2)
def pad(r):
    x = r.tensor(shape=r.shape(most=4, least=1))
    n = r.integer(1, x.dim())
    sizes = [r.integer(-2, 4) for _ in range(2 * n)]
    if any(a + sum(b) == 0 for a, b in zip(
            reversed(x.shape), zip(sizes[::2], sizes[1::2]))):
        return None                     # PyTorch refuses to crop all
    v = r.choice([0, 0, 3])
    return Case(f'a:pad({lua(sizes)}, "constant", {v})', [x],
                lambda a: F.pad(a, sizes, value=v), times=0)


@operation(2)
def pad_with_own(r):
    mode = r.choice(["reflect", "replicate", "circular"])
    n = r.integer(1, 3)
    x = r.tensor(["float32", "float64"], shape=r.shape(
        most=n + 2, least=n + 1 + (mode == "circular"), empty=0))
    sizes = [r.integer(0, 3) for _ in range(2 * n)]
    return Case(f'a:pad({lua(sizes)}, "{mode}")', [x],
                lambda a: F.pad(a, sizes, mode=mode), times=8)


@operation()
def repeat_interleave(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    d, e = r.dim(x)
    n = r.integer(0, 3)
    if r.flag(0.2):
        return Case(f"a:repeat_interleave({n})", [x],
                    lambda a: a.repeat_interleave(n), times=8)
    if r.flag() or not -x.dim() <= d < x.dim():
        return Case(f"a:repeat_interleave({n}, {e})", [x],
                    lambda a: a.repeat_interleave(n, d), times=8)
    times = r.tensor("int64", [x.shape[d]], low=0, high=3)
    return Case(f"a:repeat_interleave(b, {e})", [x, times],
                lambda a, b: a.repeat_interleave(b, d), times=8)


@operation()
def stacks(r):
    op = r.choice(["hstack", "vstack", "dstack", "column_stack"])
    shape = r.shape(most=4, empty=0)
    several = [r.tensor(shape=shape) for _ in range(r.integer(1, 3))]
    names = ", ".join("abc"[:len(several)])
    return Case(f"nacre.{op}({{ {names} }})", several,
                lambda *t: getattr(torch, op)(t), times=0)


@operation()
def unfold(r):
    x = r.tensor()
    d, e = r.dim(x)
    size, step = r.integer(0, 4), r.integer(1, 3)
    return Case(f"a:unfold({e}, {size}, {step})", [x],
                lambda a: a.unfold(d, size, step), times=8,
                grad=size > 0)


@operation()
def tensor_split(r):
    x = r.tensor(shape=r.shape(most=3, least=1))
    d, e = r.dim(x)
    if r.flag():
        n = r.integer(0, 5)
        return Case(f"a:tensor_split({n}, {e})", [x],
                    lambda a: a.tensor_split(n, d), times=0)
    at = [r.integer(-4, 6) for _ in range(r.integer(0, 3))]
    return Case(f"a:tensor_split({lua([up(i) for i in at])}, {e})", [x],
                lambda a: a.tensor_split(at, d), times=0)


@operation()
def namedsplit(r):
    op = r.choice(["hsplit", "vsplit", "dsplit"])
    x = r.tensor(shape=r.shape(most=4, least=1))
    n = r.integer(1, 3)
    return Case(f"a:{op}({n})", [x], lambda a: getattr(a, op)(n), times=0)


@operation()
def as_strided(r):
    x = r.tensor(shape=r.shape(most=2, least=1, empty=0))
    size = [r.integer(1, 3) for _ in range(r.integer(1, 3))]
    step = [r.integer(0, 2) for _ in size]
    return Case(f"a:contiguous():clone():as_strided({lua(size)}, {lua(step)})", [x],
                lambda a: a.contiguous().clone().as_strided(size, step),
                times=8, grad=False)


@operation()
def meshgrid(r):
    xs = [r.tensor("float32", r.shape(most=1)) for _ in range(r.integer(1, 3))]
    names = ", ".join("abc"[:len(xs)])
    how = r.choice(["ij", "xy"])
    return Case(f'nacre.meshgrid({{ {names} }}, {{ indexing = "{how}" }})', xs,
                lambda *t: torch.meshgrid(*t, indexing=how), times=8)


@operation()
def cartesian_prod(r):
    xs = [r.tensor("float64", [r.integer(0, 3)]) for _ in range(r.integer(1, 3))]
    names = ", ".join("abc"[:len(xs)])
    return Case(f"nacre.cartesian_prod({{ {names} }})", xs,
                torch.cartesian_prod, times=8)


@operation()
def combinations(r):
    x = r.tensor(shape=[r.integer(0, 5)])
    n, again = r.integer(1, 3), r.flag()
    return Case(f"a:combinations({n}, {lua(again)})", [x],
                lambda a: torch.combinations(a, n, again), times=8)


@operation()
def block_diag(r):
    xs = [r.tensor("float32", r.shape(most=2)) for _ in range(r.integer(1, 3))]
    names = ", ".join("abc"[:len(xs)])
    return Case(f"nacre.block_diag({{ {names} }})", xs, torch.block_diag,
                times=0)


@operation()
def kron(r):
    a, b = (r.tensor(NUMBERS, r.shape(most=3, size=3)) for _ in "ab")
    return Case("a:kron(b)", [a, b], torch.kron, times=16)


@operation()
def vander(r):
    x = r.tensor(["float32", "float64", "int64"], [r.integer(0, 4)], low=-3,
                 high=3, special=0)
    n, up_ = r.integer(0, 5), r.flag()
    return Case(f"a:vander({n}, {lua(up_)})", [x],
                lambda a: torch.vander(a, n, up_), times=32, grad=False)


@operation()
def atleast(r):
    x = r.tensor()
    n = r.integer(1, 3)
    return Case(f"a:atleast_{n}d()", [x], getattr(torch, f"atleast_{n}d"),
                times=0)


@operation()
def into_view(r):
    x = r.tensor(shape=r.shape(most=3, least=2, empty=0))
    t = str(x.dtype)[6:]
    if r.flag():
        d, i = r.integer(0, x.dim() - 1), 0
        i = r.integer(0, x.shape[d] - 1)
        src = r.tensor(t, list(x.select(d, i).shape))
        return Case(f"a:select_scatter(b, {d + 1}, {i + 1})", [x, src],
                    lambda a, b: a.select_scatter(b, d, i), times=0)
    k = r.integer(-1, 1)
    src = r.tensor(t, list(x.diagonal(k).shape))
    return Case(f"a:diagonal_scatter(b, {k})", [x, src],
                lambda a, b: a.diagonal_scatter(b, k), times=0)
