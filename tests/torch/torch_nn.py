# SPDX-License-Identifier: MIT
"""nacre.nn.functional: calls for diff_torch.py."""
import torch
import torch.nn.functional as F

from diff_torch import WIDE, Case, lua, operation, options, plus1

PREFIX = "nacre.nn.functional."


def floats(r, *shapes, **kw):
    dtype = r.choice(WIDE)
    kw.setdefault("special", 0.03)
    return [r.tensor(dtype, shape, **kw) for shape in shapes]


def off(r, n):
    return n + 1 if r.flag(0.03) else n


def given(**kw):
    """The same options for Lua and for Python, nil ones left out."""
    some = {k: v for k, v in kw.items() if v is not None}
    return options(**some), some


def letters(tensors):
    return "abcdefgh"[:len(tensors)]


# ---- layers

@operation(2)
def linear(r):
    i, o = r.integer(1, 6), r.integer(1, 5)
    shapes = [r.shape(2, size=3) + [i], [o, off(r, i)]]
    if r.flag():
        shapes.append([off(r, o)])
    t = floats(r, *shapes)
    return Case(f"{PREFIX}linear({', '.join(letters(t))})", t, F.linear, 64,
                norm=True)


@operation()
def bilinear(r):
    i, j, o = (r.integer(1, 4) for _ in range(3))
    lead = r.shape(2, least=1, size=3, empty=0)
    t = floats(r, lead + [i], lead + [j], [o, i, j], [o], special=0)
    return Case(f"{PREFIX}bilinear(a, b, c, d)", t, F.bilinear, 64, norm=True)


@operation(3)
def convolution(r):
    nd = r.choice([1, 2, 2, 3])
    groups = r.choice([1, 1, 2, 3])
    c, o = groups * r.integer(1, 3), groups * r.integer(1, 3)
    k = [r.integer(1, 3) for _ in range(nd)]
    dilation = r.choice([1, 1, 2])
    shape = [off(r, c)] + [r.integer(dilation * (n - 1) + (0 if r.flag(0.1) else 1), 8)
                           or 1 for n in k]
    if r.flag(0.8):
        shape.insert(0, r.integer(1, 3))
    t = floats(r, shape, [o, c // groups] + k, *([[o]] if r.flag() else []))
    stride = r.choice([1, 1, 2, 3])
    padding = r.choice([0, 1, 2, "valid", "same"])
    if padding == "same" and r.flag(0.9):
        stride = 1
    text, kw = given(stride=stride, padding=padding, dilation=dilation,
                     groups=groups)
    f = getattr(F, f"conv{nd}d")
    return Case(f"{PREFIX}conv{nd}d({', '.join(letters(t))}, {text})", t,
                lambda *x: f(*x, **kw), 128, norm=True)


@operation(2)
def conv_transpose(r):
    nd = r.choice([1, 2, 2, 3])
    groups = r.choice([1, 1, 2])
    c, o = groups * r.integer(1, 3), r.integer(1, 3)
    k = [r.integer(1, 3) for _ in range(nd)]
    shape = [c] + [r.integer(1, 5) for _ in k]
    if r.flag(0.8):
        shape.insert(0, r.integer(1, 3))
    t = floats(r, shape, [off(r, c), o] + k, *([[o * groups]] if r.flag() else []))
    stride = r.choice([1, 2, 3])
    text, kw = given(stride=stride, padding=r.integer(0, 1), groups=groups,
                     output_padding=r.integer(0, stride - 1),
                     dilation=r.choice([1, 1, 2]))
    if kw["output_padding"] >= stride:
        return None
    f = getattr(F, f"conv_transpose{nd}d")
    return Case(f"{PREFIX}conv_transpose{nd}d({', '.join(letters(t))}, {text})",
                t, lambda *x: f(*x, **kw), 128, norm=True)


@operation()
def unfold_images(r):
    shape = [r.integer(1, 2), r.integer(1, 3), r.integer(2, 6), r.integer(2, 6)]
    text, kw = given(kernel_size=r.integer(1, 3), stride=r.integer(1, 2),
                     padding=r.integer(0, 1), dilation=r.integer(1, 2))
    return Case(f"{PREFIX}unfold(a, {text})", floats(r, shape, special=0),
                lambda x: F.unfold(x, **kw))


@operation()
def fold_images(r):
    text, kw = given(kernel_size=r.integer(1, 3), stride=r.integer(1, 2),
                     padding=r.integer(0, 1), dilation=1, output_size=[5, 4])
    places = 1
    for n in kw["output_size"]:
        places *= (n + 2 * kw["padding"] - kw["kernel_size"]) // kw["stride"] + 1
    shape = [2, 2 * kw["kernel_size"] ** 2, off(r, places)]
    return Case(f"{PREFIX}fold(a, {text})", floats(r, shape, special=0),
                lambda x: F.fold(x, **kw), 32, norm=True)


# ---- pooling

def images(r, nd, least=1):
    most = 9 if nd < 3 else 6
    shape = [r.integer(1, 3)] + [r.integer(least, most) for _ in range(nd)]
    return [r.integer(1, 3)] + shape if r.flag(0.8) else shape


@operation(2)
def max_pool(r):
    nd = r.choice([1, 2, 2, 3])
    k = r.integer(1, 3)
    text, kw = given(kernel_size=k, stride=r.choice([None, 1, 2, 3]),
                     padding=r.integer(0, k // 2), dilation=r.choice([1, 1, 2]),
                     ceil_mode=r.flag())
    if kw["padding"] and kw["dilation"] > 1:    # a window of padding alone
        return None
    f = getattr(F, f"max_pool{nd}d")
    if r.flag():
        text = text[:-1] + ", return_indices = true}"
        return Case(f"{PREFIX}max_pool{nd}d(a, {text})",
                    floats(r, images(r, nd), special=0),
                    lambda x: (lambda y, at: (y, plus1(at)))(
                        *f(x, return_indices=True, **kw)))
    return Case(f"{PREFIX}max_pool{nd}d(a, {text})", floats(r, images(r, nd)),
                lambda x: f(x, **kw))


@operation(2)
def avg_pool(r):
    nd = r.choice([1, 2, 2, 3])
    k = r.integer(1, 3)
    by = r.choice([None, None, 2, -3]) if nd > 1 else None
    text, kw = given(kernel_size=k, stride=r.choice([None, 1, 2, 3]),
                     padding=r.integer(0, k // 2), ceil_mode=r.flag(),
                     count_include_pad=r.flag(), divisor_override=by)
    f = getattr(F, f"avg_pool{nd}d")
    return Case(f"{PREFIX}avg_pool{nd}d(a, {text})",
                floats(r, images(r, nd), special=0), lambda x: f(x, **kw), 32,
                norm=True)


@operation(2)
def adaptive_pool(r):
    nd = r.choice([1, 2, 2, 3])
    size = [r.integer(1, 5) for _ in range(nd)]
    if nd > 1 and r.flag(0.2):
        size = size[0]
    x = floats(r, images(r, nd), special=0)
    if r.flag():
        f = getattr(F, f"adaptive_avg_pool{nd}d")
        return Case(f"{PREFIX}adaptive_avg_pool{nd}d(a, {lua(size)})", x,
                    lambda x: f(x, size), 32, norm=True)
    f = getattr(F, f"adaptive_max_pool{nd}d")
    return Case(f"{PREFIX}adaptive_max_pool{nd}d(a, {lua(size)}, true)", x,
                lambda x: (lambda y, at: (y, plus1(at)))(
                    *f(x, size, return_indices=True)))


# ---- places in images

@operation(3)
def grid_sample(r):
    nd = r.choice([2, 2, 3])
    x = images(r, nd)
    if len(x) < nd + 2:
        x.insert(0, r.integer(1, 3))
    mode = r.choice(["bilinear", "nearest"] + ["bicubic"] * (nd == 2))
    a, grid = floats(r, x, [x[0]] + [r.integer(1, 4) for _ in range(nd)] + [nd],
                     special=0, ties=0)
    grid = grid / 2
    text, kw = given(mode=mode, align_corners=r.flag(),
                     padding_mode=r.choice(["zeros", "border", "reflection"]))
    return Case(f"{PREFIX}grid_sample(a, b, {text})", [a, grid],
                lambda x, g: F.grid_sample(x, g, **kw), 256, norm=True)


@operation()
def affine_grid(r):
    nd = r.choice([2, 2, 3])
    size = [r.integer(1, 3), 2] + [r.integer(1, 5) for _ in range(nd)]
    corners = r.flag()
    return Case(f"{PREFIX}affine_grid(a, {lua(size)}, {lua(corners)})",
                floats(r, [off(r, size[0]), nd, nd + 1], special=0),
                lambda t: F.affine_grid(t, size, align_corners=corners), 64,
                norm=True)


# ---- sequences

@operation(2)
def ctc_loss(r):
    t, n, c = r.integer(2, 12), r.integer(1, 4), r.integer(2, 6)
    most = r.integer(1, 4)
    counts = [r.integer(0, most) for _ in range(n)]
    steps = [r.integer(1, t) for _ in range(n)]
    if r.flag():
        steps = [t] * n
    blank = r.integer(1, c)
    rows = r.integer(0, 1)
    shape = [n, most] if rows else [sum(counts)]
    if 0 in shape:
        return None
    targets = r.tensor("int64", shape, low=1, high=c - 1)
    targets = targets + (targets >= blank).to(torch.int64)
    text, kw = given(reduction=r.choice(["none", "mean", "sum"]),
                     zero_infinity=r.flag(0.7))
    text = f"{text[:-1]}, blank = {blank}}}"
    call = f"{PREFIX}ctc_loss(a:log_softmax(-1), b, {lua(steps)}, {lua(counts)}"
    x = floats(r, [t, n, c], special=0)

    def run(x, targets):
        return F.ctc_loss(x.log_softmax(-1), targets - 1, steps, counts,
                          blank - 1, **kw)
    return Case(f"{call}, {text})", x + [targets], run, 256, norm=True)


# ---- lookup

@operation()
def embedding(r):
    n, d = r.integer(1, 6), r.integer(1, 4)
    at = r.tensor("int64", None, low=1, high=n)
    if at.numel() and r.flag(0.05):
        at.view(-1)[0] = n + 1
    pad = r.integer(1, n) if r.flag(0.3) else None
    text = f", {{padding_idx = {pad}}}" if pad else ""
    return Case(f"{PREFIX}embedding(a, b{text})", [at] + floats(r, [n, d]),
                lambda i, w: F.embedding(i - 1, w, pad - 1 if pad else None))


@operation()
def one_hot(r):
    n = r.integer(1, 5)
    at = r.tensor("int64", r.shape(empty=0), low=1, high=n)
    classes = r.choice([-1, n, n + 2, n - 1 if n > 1 else n])
    text = f"{PREFIX}one_hot(a, {classes})"
    return Case(text, [at], lambda t: F.one_hot(t - 1, classes))


# ---- normalisation

@operation(2)
def layer_norm(r):
    shape = r.shape(4, least=1, size=5, empty=0)
    n = r.integer(1, len(shape))
    last = shape[-n:]
    if max(last) == 1:          # where PyTorch 1.13 leaves rounding errors
        return None
    t = floats(r, shape, *([last] if r.flag() else []), special=0)
    if len(t) == 2 and r.flag():
        t += [torch.rand_like(t[1])]
    text = ", ".join(["a", lua(last)] + list("bc"[:len(t) - 1]))
    return Case(f"{PREFIX}layer_norm({text})", t,
                lambda x, *w: F.layer_norm(x, last, *w), 512, norm=True)


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
    t = floats(r, shape, *([shape[1:2]] * 2 if r.flag() else []), special=0,
               ties=0)
    text = ", ".join(["a", str(groups)] + list("bc"[:len(t) - 1]))
    if t[0][0, 0].numel() * shape[1] // groups < 2:
        return None
    return Case(f"{PREFIX}group_norm({text})", t,
                lambda x, *w: F.group_norm(x, groups, *w), 1024, norm=True)


@operation()
def normalize(r):
    x = floats(r, r.shape(3, least=1, empty=0))[0]
    d, luad = r.dim(x)
    p = r.choice([2.0, 1.0, 3.0])
    return Case(f"{PREFIX}normalize(a, {lua(p)}, {luad})", [x],
                lambda t: F.normalize(t, p, d), 64)


# ---- distances, sizes

@operation()
def cosine_similarity(r):
    shape = r.shape(3, least=1, empty=0)
    x, y = floats(r, shape, shape)
    d, luad = r.dim(x)
    return Case(f"{PREFIX}cosine_similarity(a, b, {luad})", [x, y],
                lambda a, b: F.cosine_similarity(a, b, d), 64, norm=True)


@operation()
def pairwise_distance(r):
    shape = r.shape(3, least=1, empty=0)
    p = r.choice([2.0, 1.0, 3.0])
    return Case(f"{PREFIX}pairwise_distance(a, b, {lua(p)})",
                floats(r, shape, shape),
                lambda a, b: F.pairwise_distance(a, b, p), 64)


@operation(2)
def interpolate(r):
    nd = r.integer(1, 3)
    shape = [r.integer(1, 2), r.integer(1, 2)] + [r.integer(1, 6) for _ in range(nd)]
    mode = r.choice(["nearest", "nearest-exact", "area"] +
                    [["linear"], ["bilinear", "bicubic"], ["trilinear"]][nd - 1])
    corners = r.flag() if mode[:4] not in ("near", "area") else None
    if r.flag():
        text, kw = given(size=[r.integer(1, 8) for _ in range(nd)], mode=mode,
                         align_corners=corners)
    else:
        least = 1.0 if mode == "area" else 0.5       # no result that is empty
        text, kw = given(scale_factor=r.choice([least, 1.5, 2.0, 3.0]), mode=mode,
                         align_corners=corners)
    return Case(f"{PREFIX}interpolate(a, {text})", floats(r, shape, special=0),
                lambda x: F.interpolate(x, **kw), 64, norm=True)


@operation()
def pixel_shuffle(r):
    k = r.integer(1, 3)
    shape = [r.integer(1, 2), off(r, k * k * r.integer(1, 2)), 2, 3]
    return Case(f"{PREFIX}pixel_shuffle(a, {k})", floats(r, shape),
                lambda x: F.pixel_shuffle(x, k))


# ---- losses

REDUCTIONS = ["mean", "sum", "none"]


@operation(3)
def difference_loss(r):
    which = r.choice(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
    shape = r.shape(3)
    kw = {"reduction": r.choice(REDUCTIONS)}
    if which == "smooth_l1_loss":
        kw["beta"] = r.choice([1.0, 0.5, 0.0])
    if which == "huber_loss":
        kw["delta"] = r.choice([1.0, 2.5])
    text, kw = given(**kw)
    return Case(f"{PREFIX}{which}(a, b, {text})", floats(r, shape, shape),
                lambda x, y: getattr(F, which)(x, y, **kw), 64)


@operation(4)
def class_loss(r):
    which = r.choice(["cross_entropy", "nll_loss"])
    c = r.integer(1, 5)
    lead = [r.integer(0 if r.flag(0.05) else 1, 4)] if r.flag(0.85) else []
    rest = r.shape(2, size=3, empty=0) if lead else []
    x = r.tensor(WIDE, lead + [c] + rest, special=0)
    t = r.tensor("int64", lead + rest, low=1, high=c)
    kw = {"reduction": r.choice(REDUCTIONS)}
    ignore = r.integer(1, c) if r.flag(0.3) else None
    if t.numel() and r.flag(0.04):
        t.view(-1)[0] = r.choice([c + 1, 0])
        if ignore is not None:
            return None
    if which == "cross_entropy" and r.flag():
        kw["label_smoothing"] = 0.3
    text, _ = given(**kw, ignore_index=ignore)
    inputs = [x, t]
    if r.flag(0.4):
        inputs.append(torch.rand(c, dtype=x.dtype) + 0.1)
        text = text[:-1] + ", weight = c}"
    if ignore is not None:
        kw["ignore_index"] = ignore - 1
    return Case(f"{PREFIX}{which}(a, b, {text})", inputs,
                lambda a, b, w=None: getattr(F, which)(a, b - 1, weight=w, **kw),
                128, norm=True, grad=len(inputs) == 2)


@operation(2)
def probability_loss(r):
    c = r.integer(1, 5)
    shape = [r.integer(1, 4), c] + r.shape(1, size=3, empty=0)
    x = r.tensor(WIDE, shape, special=0)
    t = torch.rand(shape, dtype=x.dtype)
    text, kw = given(reduction=r.choice(REDUCTIONS),
                     label_smoothing=r.choice([0.0, 0.2]))
    return Case(f"{PREFIX}cross_entropy(a, b, {text})", [x, t],
                lambda a, b: F.cross_entropy(a, b, **kw), 128, norm=True)


@operation(2)
def binary_loss(r):
    shape = r.shape(3, empty=0)
    logits = r.flag()
    x = r.tensor(WIDE, shape, special=0)
    if not logits:
        x = torch.sigmoid(x)
    t = torch.rand(shape, dtype=x.dtype)
    text, kw = given(reduction=r.choice(REDUCTIONS))
    which = "binary_cross_entropy" + ("_with_logits" if logits else "")
    inputs = [x, t]
    if logits and r.flag():
        inputs.append(torch.rand(shape, dtype=x.dtype))
        text = text[:-1] + ", pos_weight = c}"
        return Case(f"{PREFIX}{which}(a, b, {text})", inputs,
                    lambda a, b, w: getattr(F, which)(a, b, pos_weight=w, **kw),
                    128, norm=True, grad=False)
    return Case(f"{PREFIX}{which}(a, b, {text})", inputs,
                lambda a, b: getattr(F, which)(a, b.detach(), **kw), 256,
                norm=True, grad=False)


@operation(2)
def divergence(r):
    shape = r.shape(3, least=1, empty=0)
    log = r.flag()
    x = r.tensor(WIDE, shape, special=0)
    t = torch.rand(shape, dtype=x.dtype)
    text, kw = given(reduction=r.choice(REDUCTIONS + ["batchmean"]),
                     log_target=log)
    return Case(f"{PREFIX}kl_div(a, b, {text})", [x, t],
                lambda a, b: F.kl_div(a, b, **kw), 512, norm=True, grad=False)


@operation(3)
def margin_loss(r):
    n = r.integer(1, 5)
    text, kw = given(reduction=r.choice(REDUCTIONS),
                     margin=r.choice([0.0, 0.5, 1.0]))
    which = r.choice(["hinge_embedding_loss", "margin_ranking_loss",
                      "cosine_embedding_loss", "triplet_margin_loss"])
    sign = torch.tensor([r.choice([1.0, -1.0]) for _ in range(n)])
    if which == "hinge_embedding_loss":
        x = floats(r, [n], special=0, ties=0)
        inputs = x + [sign.to(x[0].dtype)]
    elif which == "margin_ranking_loss":
        x = floats(r, [n], [n], special=0, ties=0)
        inputs = x + [sign.to(x[0].dtype)]
    elif which == "cosine_embedding_loss":
        x = floats(r, [n, 3], [n, 3], special=0, ties=0)
        inputs = x + [sign.to(x[0].dtype)]
    else:
        inputs = floats(r, [n, 3], [n, 3], [n, 3], special=0, ties=0)
    return Case(f"{PREFIX}{which}({', '.join(letters(inputs))}, {text})", inputs,
                lambda *t: getattr(F, which)(*t, **kw), 128, norm=True,
                grad=which == "triplet_margin_loss")


@operation()
def likelihood_loss(r):
    shape = r.shape(2, least=1, empty=0)
    x, t = floats(r, shape, shape, special=0, low=0.1, high=5, ties=0)
    full = r.flag()
    if r.flag():
        text, kw = given(full=full, log_input=r.flag())
        return Case(f"{PREFIX}poisson_nll_loss(a, b, {text})", [x, t],
                    lambda a, b: F.poisson_nll_loss(a, b, **kw), 64, norm=True,
                    grad=False)
    v = torch.rand(shape, dtype=x.dtype)
    return Case(f"{PREFIX}gaussian_nll_loss(a, b, c, {{full = {lua(full)}}})",
                [x, t, v], lambda a, b, c: F.gaussian_nll_loss(a, b, c, full=full),
                64, norm=True)
