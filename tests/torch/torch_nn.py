# SPDX-License-Identifier: MIT
"""nacre.nn.functional: calls for diff_torch.py."""
import torch
import torch.nn.functional as F

from diff_torch import (WIDE, Case, Position, Positions, Redraw, call, lua,
                        operation)

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


# ---- layers

@operation(2)
def linear(r):
    i, o = r.integer(1, 6), r.integer(1, 5)
    shapes = [r.shape(2, size=3) + [i], [o, off(r, i)]]
    if r.flag():
        shapes.append([off(r, o)])
    return functional("linear", *floats(r, *shapes), times=64)


@operation()
def bilinear(r):
    i, j, o = sizes(r, 1, 4, 3)
    lead = r.shape(2, least=1, size=3, empty=0)
    return functional("bilinear", *floats(
        r, lead + [i], lead + [j], [o, i, j], [o], special=0), times=64)


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


@operation(2)
def conv_transpose(r):
    nd = r.choice([1, 2, 2, 3])
    groups = r.choice([1, 1, 2])
    c, o = groups * r.integer(1, 3), r.integer(1, 3)
    shape = [c] + sizes(r, 1, 5, nd)
    if r.flag(0.8):
        shape.insert(0, r.integer(1, 3))
    t = floats(r, shape, [off(r, c), o] + sizes(r, 1, 3, nd),
               *([[o * groups]] if r.flag() else []))
    stride = r.choice([1, 2, 3])
    return functional(f"conv_transpose{nd}d", *t, stride=stride,
                      padding=r.integer(0, 1), groups=groups,
                      output_padding=r.integer(0, stride - 1),
                      dilation=r.choice([1, 1, 2]), times=128)


@operation()
def unfold_images(r):
    shape = sizes(r, 1, 3, 2) + sizes(r, 2, 6, 2)
    return functional("unfold", *floats(r, shape, special=0),
                      kernel_size=r.integer(1, 3), stride=r.integer(1, 2),
                      padding=r.integer(0, 1), dilation=r.integer(1, 2))


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


# ---- pooling

def images(r, nd):
    shape = [r.integer(1, 3)] + sizes(r, 1, 9 if nd < 3 else 6, nd)
    return [r.integer(1, 3)] + shape if r.flag(0.8) else shape


@operation(2)
def max_pool(r):
    nd = r.choice([1, 2, 2, 3])
    k, dilation = r.integer(1, 3), r.choice([1, 1, 2])
    padding, indices = r.integer(0, k // 2), r.flag()
    if padding and dilation > 1:    # a window of padding alone
        raise Redraw
    return functional(f"max_pool{nd}d",
                      *floats(r, images(r, nd), special=0 if indices else 0.03),
                      kernel_size=k, stride=r.choice([None, 1, 2, 3]),
                      padding=padding, dilation=dilation, ceil_mode=r.flag(),
                      return_indices=indices, found=[1], norm=False)


@operation(2)
def avg_pool(r):
    nd = r.choice([1, 2, 2, 3])
    k = r.integer(1, 3)
    by = r.choice([None, None, 2, -3]) if nd > 1 else None
    return functional(f"avg_pool{nd}d", *floats(r, images(r, nd), special=0),
                      kernel_size=k, stride=r.choice([None, 1, 2, 3]),
                      padding=r.integer(0, k // 2), ceil_mode=r.flag(),
                      count_include_pad=r.flag(), divisor_override=by,
                      times=32)


@operation(2)
def adaptive_pool(r):
    nd = r.choice([1, 2, 2, 3])
    size = sizes(r, 1, 5, nd)
    if nd > 1 and r.flag(0.2):
        size = size[0]
    x, = floats(r, images(r, nd), special=0)
    if r.flag():
        return functional(f"adaptive_avg_pool{nd}d", x, size, times=32)
    return functional(f"adaptive_max_pool{nd}d", x, size, True, found=[1],
                      norm=False)


# ---- places in images

@operation(3)
def grid_sample(r):
    nd = r.choice([2, 2, 3])
    shape = images(r, nd)
    if len(shape) < nd + 2:
        shape.insert(0, r.integer(1, 3))
    x, grid = floats(r, shape, [shape[0]] + sizes(r, 1, 4, nd) + [nd],
                     special=0, ties=0)
    return functional("grid_sample", x, grid / 2, mode=r.choice(
                          ["bilinear", "nearest"] + ["bicubic"] * (nd == 2)),
                      align_corners=r.flag(), padding_mode=r.choice(
                          ["zeros", "border", "reflection"]), times=256)


@operation()
def affine_grid(r):
    nd = r.choice([2, 2, 3])
    size = [r.integer(1, 3), 2] + sizes(r, 1, 5, nd)
    return functional("affine_grid", *floats(
        r, [off(r, size[0]), nd, nd + 1], special=0), size, r.flag(), times=64)


# ---- sequences

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


# ---- lookup

@operation()
def embedding(r):
    n, d = r.integer(1, 6), r.integer(1, 4)
    at = r.tensor("int64", None, low=0, high=n - 1)
    if at.numel() and r.flag(0.05):
        at.view(-1)[0] = n
    pad = Position(r.integer(0, n - 1)) if r.flag(0.3) else None
    return functional("embedding", Positions(at), *floats(r, [n, d]),
                      padding_idx=pad, norm=False)


@operation(2)
def embedding_bag(r):
    n, d = r.integer(1, 6), r.integer(1, 4)
    mode = r.choice(["sum", "mean", "max"])
    flat = r.flag()
    at = r.tensor("int64", [r.integer(1, 7)] if flat else sizes(r, 1, 4, 2),
                  low=0, high=n - 1)
    options = {"mode": mode}
    if flat:
        bags = sorted(r.integer(0, len(at)) for _ in range(r.integer(0, 3)))
        options["offsets"] = Positions(torch.tensor([0] + bags))
    if r.flag(0.3):
        options["padding_idx"] = Position(r.integer(0, n - 1))
    if mode == "sum" and r.flag():
        options["per_sample_weights"] = torch.rand(at.shape)
    return functional("embedding_bag", Positions(at), torch.rand([n, d]),
                      times=16, **options)


@operation()
def one_hot(r):
    n = r.integer(1, 5)
    at = r.tensor("int64", r.shape(empty=0), low=0, high=n - 1)
    classes = r.choice([-1, n, n + 2, n - 1 if n > 1 else n])
    return functional("one_hot", Positions(at), classes, norm=False)


# ---- normalisation

@operation(2)
def layer_norm(r):
    shape = r.shape(4, least=1, size=5, empty=0)
    last = shape[-r.integer(1, len(shape)):]
    if max(last) == 1:          # where PyTorch 1.13 leaves rounding errors
        raise Redraw
    x, *weights = floats(r, shape, *([last] if r.flag() else []), special=0)
    if weights and r.flag():
        weights += [torch.rand_like(weights[0])]
    return functional("layer_norm", x, last, *weights, times=512)


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
def group_norm(r):
    groups = r.integer(1, 3)
    shape = [r.integer(1, 3), off(r, groups * r.integer(1, 3))] + \
        r.shape(2, least=1, size=4, empty=0)
    x, *weights = floats(r, shape, *([shape[1:2]] * 2 if r.flag() else []),
                         special=0, ties=0)
    if x[0, 0].numel() * shape[1] // groups < 2:
        raise Redraw
    return functional("group_norm", x, groups, *weights, times=1024)


@operation()
def normalize(r):
    x, = floats(r, r.shape(3, least=1, empty=0))
    return functional("normalize", x, r.choice([2.0, 1.0, 3.0]), r.dim(x),
                      times=64, norm=False)


# ---- distances, sizes

@operation()
def cosine_similarity(r):
    shape = r.shape(3, least=1, empty=0)
    x, y = floats(r, shape, shape)
    return functional("cosine_similarity", x, y, r.dim(x), times=64)


@operation()
def pairwise_distance(r):
    shape = r.shape(3, least=1, empty=0)
    return functional("pairwise_distance", *floats(r, shape, shape),
                      r.choice([2.0, 1.0, 3.0]), times=64, norm=False)


@operation(2)
def interpolate(r):
    nd = r.integer(1, 3)
    x, = floats(r, sizes(r, 1, 2, 2) + sizes(r, 1, 6, nd), special=0)
    mode = r.choice(["nearest", "nearest-exact", "area"] +
                    [["linear"], ["bilinear", "bicubic"],
                     ["trilinear"]][nd - 1])
    corners = r.flag() if mode[:4] not in ("near", "area") else None
    least = 1.0 if mode == "area" else 0.5           # no result that is empty
    how = {"size": sizes(r, 1, 8, nd)} if r.flag() else \
        {"scale_factor": r.choice([least, 1.5, 2.0, 3.0])}
    return functional("interpolate", x, mode=mode, align_corners=corners,
                      times=64, **how)


@operation()
def pixel_shuffle(r):
    k = r.integer(1, 3)
    shape = [r.integer(1, 2), off(r, k * k * r.integer(1, 2)), 2, 3]
    return functional("pixel_shuffle", *floats(r, shape), k, norm=False)


@operation()
def pixel_unshuffle(r):
    k = r.integer(1, 3)
    shape = [r.integer(1, 2), 2, off(r, k * r.integer(1, 2)), k * 2]
    return functional("pixel_unshuffle", *floats(r, shape), k, norm=False)


@operation()
def channel_shuffle(r):
    k = r.integer(1, 3)
    shape = [r.integer(1, 2), off(r, k * r.integer(1, 3)), r.integer(1, 3)]

    def want(x, _):                    # that of 1.13 has no gradient
        return x.unflatten(1, (k, -1)).transpose(1, 2).flatten(1, 2)
    return functional("channel_shuffle", *floats(r, shape), k, f=want,
                      norm=False)


@operation()
def local_response_norm(r):
    x = floats(r, r.shape(4, least=3, empty=0), special=0)
    return functional("local_response_norm", *x, r.integer(1, 4),
                      alpha=r.choice([1e-4, 0.5]), beta=r.choice([0.75, 1.0]),
                      k=r.choice([1.0, 2.0]), times=64)


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
def max_unpool(r):
    nd = r.integer(1, 3)
    x = floats(r, sizes(r, 1, 2, 2) + [4] * nd, special=0, ties=0)[0]
    y, at = getattr(F, f"max_pool{nd}d")(x, 2, return_indices=True)
    return functional(f"max_unpool{nd}d", y, Positions(at), 2)


@operation()
def pdist(r):
    x = floats(r, sizes(r, 1, 5, 2), special=0)
    return call("nacre.pdist", *x, r.choice([0.5, 1.0, 2.0, 3.0]), times=64)


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


# ---- losses

@operation(3)
def difference_loss(r):
    which = r.choice(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
    shape = r.shape(3)
    beta = r.choice([1.0, 0.5, 0.0]) if which == "smooth_l1_loss" else None
    delta = r.choice([1.0, 2.5]) if which == "huber_loss" else None
    return functional(which, *floats(r, shape, shape),
                      reduction=r.choice(REDUCTIONS), beta=beta, delta=delta,
                      times=64, norm=False)


@operation(4)
def class_loss(r):
    which = r.choice(["cross_entropy", "nll_loss"])
    c = r.integer(1, 5)
    lead = [r.integer(0 if r.flag(0.05) else 1, 4)] if r.flag(0.85) else []
    rest = r.shape(2, size=3, empty=0) if lead else []
    x = r.tensor(WIDE, lead + [c] + rest, special=0)
    t = r.tensor("int64", lead + rest, low=0, high=c - 1)
    ignore = Position(r.integer(0, c - 1)) if r.flag(0.3) else None
    if t.numel() and r.flag(0.04):
        t.view(-1)[0] = r.choice([c, -1])
        if ignore is not None:
            raise Redraw
    smooth = 0.3 if which == "cross_entropy" and r.flag() else None
    weight = torch.rand(c, dtype=x.dtype) + 0.1 if r.flag(0.4) else None
    return functional(which, x, Positions(t), reduction=r.choice(REDUCTIONS),
                      label_smoothing=smooth, ignore_index=ignore,
                      weight=weight, times=128, grad=weight is None)


@operation(2)
def probability_loss(r):
    shape = [r.integer(1, 4), r.integer(1, 5)] + r.shape(1, size=3, empty=0)
    x = r.tensor(WIDE, shape, special=0)
    return functional("cross_entropy", x, torch.rand(shape, dtype=x.dtype),
                      reduction=r.choice(REDUCTIONS),
                      label_smoothing=r.choice([0.0, 0.2]), times=128)


@operation(2)
def binary_loss(r):
    shape = r.shape(3, empty=0)
    logits = r.flag()
    x = r.tensor(WIDE, shape, special=0)
    x = x if logits else torch.sigmoid(x)
    t, w = (torch.rand(shape, dtype=x.dtype) for _ in "tw")
    which = "binary_cross_entropy" + ("_with_logits" if logits else "")
    return functional(which, x, t, reduction=r.choice(REDUCTIONS),
                      pos_weight=w if logits and r.flag() else None,
                      times=256, grad=False)


@operation(2)
def divergence(r):
    shape = r.shape(3, least=1, empty=0)
    x = r.tensor(WIDE, shape, special=0)
    return functional("kl_div", x, torch.rand(shape, dtype=x.dtype),
                      reduction=r.choice(REDUCTIONS + ["batchmean"]),
                      log_target=r.flag(), times=512, grad=False)


# name: the shapes of its tensors, of n samples, but for the signs
MARGINS = {
    "hinge_embedding_loss": [[]],
    "margin_ranking_loss": [[], []],
    "cosine_embedding_loss": [[3], [3]],
    "triplet_margin_loss": [[3], [3], [3]],
}


@operation(3)
def margin_loss(r):
    n = r.integer(1, 5)
    which = r.choice(list(MARGINS))
    x = floats(r, *([n] + shape for shape in MARGINS[which]), special=0,
               ties=0)
    triplet = which == "triplet_margin_loss"
    if not triplet:
        x.append(torch.tensor([r.choice([1.0, -1.0]) for _ in range(n)],
                              dtype=x[0].dtype))
    return functional(which, *x, reduction=r.choice(REDUCTIONS),
                      margin=r.choice([0.0, 0.5, 1.0]), times=128,
                      grad=triplet)


@operation()
def class_margin_loss(r):
    n, c = sizes(r, 1, 4, 2)
    x = floats(r, [n, c], special=0, ties=0)
    if r.flag():
        at = r.tensor("int64", [n], low=0, high=c - 1)
        weight = torch.rand(c, dtype=x[0].dtype) if r.flag() else None
        return functional("multi_margin_loss", *x, Positions(at),
                          p=r.choice([1, 2]), margin=r.choice([1.0, 0.5]),
                          weight=weight, reduction=r.choice(REDUCTIONS),
                          times=64, grad=weight is None)
    at = torch.stack([torch.randperm(c) for _ in range(n)])
    at[:, r.integer(0, c - 1):] = -1
    return functional("multilabel_margin_loss", *x, Positions(at),
                      reduction=r.choice(REDUCTIONS), times=64)


@operation()
def likelihood_loss(r):
    shape = r.shape(2, least=1, empty=0)
    x, t = floats(r, shape, shape, special=0, low=0.1, high=5, ties=0)
    if r.flag():
        return functional("poisson_nll_loss", x, t, full=r.flag(),
                          log_input=r.flag(), times=64, grad=False)
    return functional("gaussian_nll_loss", x, t,
                      torch.rand(shape, dtype=x.dtype), full=r.flag(),
                      times=64)
