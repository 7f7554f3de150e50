# SPDX-License-Identifier: MIT
"""nacre.nn.functional: calls for diff_torch.py."""
import torch
import torch.nn.functional as F

from diff_torch import Case, Redraw, WIDE, call, lua, operation

PREFIX = "nacre.nn.functional."
REDUCTIONS = ["mean", "sum", "none"]


def functional(name, *args, times=8, norm=True, **kw):
    return call(PREFIX + name, *args, times=times, norm=norm, **kw)


def floats(r, *shapes, **kw):
    dtype = r.choice(WIDE)
    kw.setdefault("special", 0.03)
    return [r.tensor(dtype, shape, **kw) for shape in shapes]


def off(r, n):
    """n, now and then one more"""
    return n + 1 if r.flag(0.03) else n


def sizes(r, least, most, n):
    return [r.integer(least, most) for _ in range(n)]


@operation(3)
def convolution(r):
    nd = r.choice([1, 2, 2, 3])
    groups = r.choice([1, 1, 2, 3])
    c, o = groups * r.integer(1, 3), groups * r.integer(1, 3)
    k = sizes(r, 1, 3, nd)
    dilation = r.choice([1, 1, 2])
    least = 0 if r.flag(0.1) else 1
    shape = [off(r, c)] + [r.integer(dilation * (n - 1) + least, 8) or 1
                           for n in k]
    if r.flag(0.8):
        shape.insert(0, r.integer(1, 3))
    t = floats(r, shape, [o, c // groups] + k, *([[o]] if r.flag() else []))
    stride = r.choice([1, 1, 2, 3])
    padding = r.choice([0, 1, 2, "valid", "same"])
    if padding == "same" and r.flag(0.9):
        stride = 1
    return functional(f"conv{nd}d", *t, stride=stride, padding=padding,
                      dilation=dilation, groups=groups, times=128)


@operation()
def fold_images(r):
    k, stride, padding = r.integer(1, 3), r.integer(1, 2), r.integer(0, 1)
    size, places = [5, 4], 1
    for n in size:
        places *= (n + 2 * padding - k) // stride + 1
    return functional("fold", *floats(r, [2, 2 * k * k, off(r, places)],
                                      special=0),
                      kernel_size=k, stride=stride, padding=padding,
                      dilation=1, output_size=size, times=32)


@operation()
def affine_grid(r):
    nd = r.choice([2, 2, 3])
    size = [r.integer(1, 3), 2] + sizes(r, 1, 5, nd)
    return functional("affine_grid", *floats(
        r, [off(r, size[0]), nd, nd + 1], special=0), size, r.flag(), times=64)


@operation(2)
def ctc_loss(r):
    t, n, c = r.integer(2, 12), r.integer(1, 4), r.integer(2, 6)
    most = r.integer(1, 4)
    counts = sizes(r, 0, most, n)
    steps = [t] * n if r.flag() else sizes(r, 1, t, n)
    blank = r.integer(1, c)
    shape = [n, most] if r.integer(0, 1) else [sum(counts)]
    if 0 in shape:
        raise Redraw
    targets = r.tensor("int64", shape, low=1, high=c - 1)
    targets = targets + (targets >= blank).to(torch.int64)
    reduction, zero = r.choice(REDUCTIONS), r.flag(0.7)
    text = (f"{PREFIX}ctc_loss(a:log_softmax(-1), b, {lua(steps)}, "
            f'{lua(counts)}, {{reduction = "{reduction}", '
            f"zero_infinity = {lua(zero)}, blank = {blank}}})")
    return Case(text, floats(r, [t, n, c], special=0) + [targets],
                lambda x, targets: F.ctc_loss(
                    x.log_softmax(-1), targets - 1, steps, counts, blank - 1,
                    reduction, zero), 256, norm=True)


@operation(2)
def batch_norm(r):
    shape = [r.integer(1, 4), r.integer(1, 4)] + r.shape(2, size=4, empty=0)
    c = [shape[1]]
    t = floats(r, shape, c, c, c, special=0, ties=0)
    t.append(torch.rand(c, dtype=t[0].dtype) + 0.5)
    training = r.flag()

    def run(x, mean, w, b, var):
        mean, var = mean.detach().clone(), var.detach().clone()
        y = F.batch_norm(x, mean, var, w, b, training, 0.3, 1e-3)
        return y, mean, var
    text = ("(function() local m, v = b:detach():clone(), e:detach():clone() "
            f"return {PREFIX}batch_norm(a, m, v, c, d, {lua(training)}, 0.3, "
            "1e-3), m, v end)()")
    return Case(text, t, run, 1024, norm=True)


@operation()
def channel_shuffle(r):
    k = r.integer(1, 3)
    shape = [r.integer(1, 2), off(r, k * r.integer(1, 3)), r.integer(1, 3)]

    def want(x, _):                    # that of 1.13 has no gradient
        return x.unflatten(1, (k, -1)).transpose(1, 2).flatten(1, 2)
    return functional("channel_shuffle", *floats(r, shape), k, f=want,
                      norm=False)


@operation()
def lp_pool(r):
    nd = r.integer(1, 3 if hasattr(F, "lp_pool3d") else 2)
    x = floats(r, sizes(r, 1, 3, 2) + sizes(r, 3, 6, nd), special=0, low=0.1,
               high=3)
    return functional(f"lp_pool{nd}d", *x, r.choice([1.0, 2.0, 3.0]),
                      r.integer(1, 3), stride=r.choice([None, 1, 2]),
                      ceil_mode=r.flag(), times=256)


@operation()
def cells(r):
    which = r.choice(["rnn_tanh_cell", "rnn_relu_cell", "gru_cell"])
    n, i, h = sizes(r, 1, 4, 3)
    g = 3 if which == "gru_cell" else 1
    t = floats(r, [n, i], [n, h], [g * h, i], [g * h, h], [g * h], [g * h],
               special=0, low=-2, high=2)
    return call("nacre." + which, *t, times=128)


@operation()
def lstm_cell(r):
    n, i, h = sizes(r, 1, 4, 3)
    x, a, c, *w = floats(r, [n, i], [n, h], [n, h], [4 * h, i], [4 * h, h],
                         [4 * h], [4 * h], special=0, low=-2, high=2)
    return call("nacre.lstm_cell", x, [a, c], *w, times=128)


@operation()
def grouped_attention(r):
    heads, group, n, m, e, v = sizes(r, 1, 3, 6)
    t = floats(r, [1, heads * group, n, e], [1, heads, m, e], [1, heads, m, v],
               special=0, low=-2, high=2)

    def want(q, k, v, enable_gqa):     # that of PyTorch 2.5 on
        k, v = (x.repeat_interleave(group, -3) for x in (k, v))
        return (q @ k.transpose(-2, -1) / e ** 0.5).softmax(-1) @ v
    return functional("scaled_dot_product_attention", *t, enable_gqa=True,
                      f=want, times=64)
