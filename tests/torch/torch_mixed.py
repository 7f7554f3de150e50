# SPDX-License-Identifier: MIT
"""Pointwise operations and reductions of operands that differ in dtype, shape
and layout, written in place and to out=; writing through views of views: calls
for diff_torch.py."""
import re

import torch

from diff_torch import (ALL, EPS, FLOATS, INTS, Case, Redraw, lua, name,
                        operation, pytorch)
COMPARED = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
            "logical_xor"]
BINARY = COMPARED + [
    "add", "sub", "mul", "true_divide", "floor_divide", "remainder", "fmod",
    "pow", "maximum", "minimum", "fmax", "fmin", "atan2", "copysign",
    "heaviside", "hypot", "logaddexp", "logaddexp2", "xlogy", "xlog1py",
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "float_power"]
UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma
erf erfc erfinv exp exp2 expm1 floor frac i0 i0e i1 i1e lgamma log log10 log1p
log2 logical_not logit neg positive rad2deg reciprocal relu round rsqrt
sigmoid sign signbit sgn sin sinc sinh sqrt square tan tanh trunc isnan isinf
isfinite isposinf isneginf bitwise_not nan_to_num""".split()

# Those whose out= must have the dtype of the operand in PyTorch.
SAME = ["abs", "ceil", "floor", "neg", "round", "sgn", "sign", "trunc",
        "nan_to_num", "float_power", "clamp", "lerp"]

# A tensor of which every second element belongs to something else.
SPARSE = "nacre.stack({%s, %s}, -1):select(-1, 1)"


def sparse(t):
    return torch.stack([t, t], -1).select(-1, 0)


def number(r):
    return r.choice([0, 1, 2, 3, -1, -2, 7, 0.5, -1.5, 2.0, True, False,
                     float("inf"), float("nan")])


def small(r, dtypes=ALL, shape=None):
    return r.tensor(dtypes, shape, low=-4, high=4)


# What PyTorch does not have, and Nacre has.
ABSENT = re.compile("must be Tensor, not|not implemented|is not yet|addcdiv|"
                    "must be a 2-tuple|nanmean..: expected")


def probe(f, *given, **options):
    """f(*given), or the error; draws again for what PyTorch does not have."""
    try:
        return f(*given, **options)
    except (RuntimeError, TypeError, ValueError, IndexError) as e:
        if ABSENT.search(str(e).split("\n")[0]):
            raise Redraw from e
        return e


def way_of(f, method, how, texts, tensors, given):
    """A Case of f(*given) or of its in-place form or into out=.

    given: numbers, and indices of tensors for tensors, as lists of one."""
    def values(ts):
        return [ts[v[0]] if isinstance(v, list) else v for v in given]

    if how != "inplace":
        probe(f, *values(tensors))
    elif len(tensors) < len(given) and not isinstance(
            probe(f, *values(tensors)), torch.Tensor):
        raise Redraw
    elif method in ("float_power", "clamp") or \
            not hasattr(torch.Tensor, method + "_"):
        raise Redraw
    if how == "inplace":
        def want(*ts):
            first, *others = values(ts)
            return getattr(sparse(first), method + "_")(*others)
        target = SPARSE % (texts[0], texts[0])
        return Case(f"{target}:{method}_({', '.join(texts[1:])})", tensors,
                    want, 32)
    if how == "function":
        return Case(f"nacre.{method}({', '.join(texts)})", tensors,
                    lambda *ts: f(*values(ts)), 32)
    return Case(f"{texts[0]}:{method}({', '.join(texts[1:])})", tensors,
                lambda *ts: f(*values(ts)), 32)


def into(r, f, method, texts, tensors, given):
    """The same into a strided out= of some dtype."""
    y = probe(f, *[tensors[v[0]] if isinstance(v, list) else v for v in given])
    if isinstance(y, Exception):
        raise Redraw
    dtype = name(y.dtype)
    if r.flag(0.4) and y.is_floating_point() and method not in SAME:
        dtype = r.choice([t for t in FLOATS if EPS[t] >= EPS[dtype]])
    out = torch.zeros(y.shape, dtype=getattr(torch, dtype))

    def want(*ts):
        *ts, out = ts
        return f(*[ts[v[0]] if isinstance(v, list) else v for v in given],
                 out=sparse(out))
    letter = "abcd"[len(tensors)]
    text = (f"nacre.{method}({', '.join(texts)}, {{out = "
            f"{SPARSE % (letter, letter)}}})")
    case = Case(text, tensors + [out], want, 32)
    case.grad = False
    return case


def operands(r, count, numbers):
    """Tensors whose shapes broadcast, 0-d ones and numbers among them."""
    shape = r.shape(most=3, size=4)
    texts, tensors, given = [], [], []
    for k in range(count):
        if numbers and k == count - 1 and r.flag(0.3):
            v = number(r)
            texts.append(lua(v))
            given.append(v)
            continue
        own = [] if r.flag(0.2) else r.broadcast(shape) if r.flag(0.4) \
            else shape
        if k > 0 and r.flag(0.4):
            t = small(r, tensors[0], own)
        else:
            t = small(r, ALL, own)
        texts.append("abc"[len(tensors)])
        given.append([len(tensors)])
        tensors.append(t)
    return texts, tensors, given


@operation(8)
def pointwise_binary(r):
    method = r.choice(BINARY)
    texts, tensors, given = operands(r, 2, True)
    how = r.choice(["method", "function", "inplace", "out"])
    f = pytorch(method)
    if how == "out":
        return into(r, f, method, texts, tensors, given)
    return way_of(f, method, how, texts, tensors, given)


@operation(5)
def pointwise_unary(r):
    method = r.choice(UNARY)
    texts, tensors, given = operands(r, 1, False)
    how = r.choice(["method", "function", "inplace", "out"])
    f = pytorch(method)
    if how == "out" and method in ("isnan", "isinf", "isfinite", "relu",
                                   "positive"):
        raise Redraw                    # have none
    if how == "out":
        return into(r, f, method, texts, tensors, given)
    return way_of(f, method, how, texts, tensors, given)


@operation(4)
def pointwise_ternary(r):
    method = r.choice(["addcmul", "addcdiv", "lerp", "clamp", "where"])
    texts, tensors, given = operands(r, 3, method not in ("addcmul", "addcdiv"))
    if method == "where":
        tensors[0] = r.tensor("bool", tensors[0].shape)
    if method == "clamp" and not isinstance(given[2], list):
        low = number(r)
        texts, tensors = ["a", lua(low), texts[2]], tensors[:1]
        given = [[0], low, given[2]]
    if method == "lerp":
        tensors = [t.to(tensors[0].dtype) for t in tensors]
    how = r.choice(["method", "function", "inplace", "out"])
    if method == "where":
        how = "function"
    f = pytorch(method)
    if how == "out":
        return into(r, f, method, texts, tensors, given)
    return way_of(f, method, how, texts, tensors, given)


WIDE_TYPES = ["float32", "float64"]
REDUCED = ["sum", "prod", "mean", "amax", "amin", "var", "std", "all", "any",
           "logsumexp", "nansum", "nanmean", "count_nonzero", "norm", "argmax",
           "argmin"]


def dims_of(r, nd, most):
    """Some dimensions: a number or a list, and how Lua writes it."""
    dims = [int(d) for d in r.rng.permutation(max(nd, 1))]
    dims = dims[:r.integer(1, min(most, len(dims)))]
    dims = [d - nd if r.flag(0.3) and nd else d for d in dims]
    shown = [d + 1 if d >= 0 else d for d in dims]
    if len(dims) == 1 and (most == 1 or r.flag()):
        return dims[0], lua(shown[0])
    return dims, lua(shown)


@operation(6)
def reduction(r):
    """Over some dimensions, with keepdim and dtype."""
    method = r.choice(REDUCED)
    at = method.startswith("arg")
    types = WIDE_TYPES if at or method == "norm" else ALL
    x = r.tensor(types, r.shape(most=4, size=4), low=-3, high=3,
                 ties=0 if at else 0.4)
    options, texts = {}, []
    if r.flag(0.7) or method == "logsumexp":
        options["dim"], shown = dims_of(
            r, x.dim(), 1 if at or method == "prod" else 4)
        texts.append("dim = " + shown)
        if r.flag() and method != "count_nonzero":
            options["keepdim"] = True
            texts.append("keepdim = true")
    if method in ("sum", "prod", "mean", "nansum", "nanmean") and r.flag(0.3):
        dtype = r.choice(ALL)
        if x.is_floating_point() and dtype not in FLOATS:
            raise Redraw                # what does not fit
        options["dtype"] = getattr(torch, dtype)
        texts.append(f'dtype = "{dtype}"')
    f = getattr(torch, method)
    probe(f, x, **options)
    return Case(f"a:{method}({{{', '.join(texts)}}})" if texts
                else f"a:{method}()", [x],
                lambda a: f(a, **options) + 1 if at else f(a, **options),
                64, norm=True)


def view_of(r, shape):
    """(Lua's call, Python's function, the new shape) of a view."""
    nd = len(shape)
    way = r.integer(0, 7)
    if nd == 0 or way == 0:
        d = r.integer(0, nd)
        return f":unsqueeze({d + 1})", lambda t: t.unsqueeze(d)
    d, e = r.integer(0, nd - 1), r.integer(0, nd - 1)
    n = shape[d]
    if way == 1:
        return f":transpose({d + 1}, {e + 1})", lambda t: t.transpose(d, e)
    if way == 2 and n:
        i = r.integer(0, n - 1)
        return f":select({d + 1}, {i + 1})", lambda t: t.select(d, i)
    if way == 3 and n:
        i = r.integer(0, n - 1)
        k = r.integer(0, n - i)
        return (f":narrow({d + 1}, {i + 1}, {k})",
                lambda t: t.narrow(d, i, k))
    if way == 4 and n:
        i, step = r.integer(0, n - 1), r.integer(1, 3)
        key = (slice(None),) * d + (slice(i, None, step),)
        return f":slice({d + 1}, {i + 1}, -1, {step})", lambda t: t[key]
    if way == 5 and d != e:
        k = r.integer(-1, 1)
        return (f":diagonal({k}, {d + 1}, {e + 1})",
                lambda t: t.diagonal(k, d, e))
    if way == 6 and n:
        size = r.integer(1, n)
        step = r.integer(size, 4)       # what overlaps cannot be written to
        return (f":unfold({d + 1}, {size}, {step})",
                lambda t: t.unfold(d, size, step))
    if way == 7:
        return f":squeeze({d + 1})", lambda t: t.squeeze(d)
    raise Redraw


CHANGES = [
    ("add_(b)", lambda v, b: v.add_(b)), ("mul_(b)", lambda v, b: v.mul_(b)),
    ("copy_(b)", lambda v, b: v.copy_(b)), ("sub_(b)", lambda v, b: v.sub_(b)),
    ("zero_()", lambda v, b: v.zero_()), ("fill_(2)", lambda v, b: v.fill_(2)),
    ("clamp_(-1, 1)", lambda v, b: v.clamp_(-1, 1)),
    ("add_(v)", lambda v, b: v.add_(v)),
    ("exp_()", lambda v, b: v.exp_()), ("abs_()", lambda v, b: v.abs_()),
    ("masked_fill_(b:gt(0), 3)", lambda v, b: v.masked_fill_(b > 0, 3)),
    ("cumsum_(1)", lambda v, b: v.cumsum_(0))]


@operation(6)
def written_view(r):
    """A view of a view is changed: the base, the view and the gradients."""
    x = r.tensor(r.choice([FLOATS, FLOATS, INTS[1:]]), r.shape(most=3, size=4),
                 low=-2, high=2, special=0.02)
    t, text, steps = x, "t", []
    for _ in range(r.integer(1, 3)):
        shown, f = view_of(r, list(t.shape))
        try:
            t = f(t)
        except (RuntimeError, IndexError) as e:
            raise Redraw from e
        text += shown
        steps.append(f)
    if t.dim() > 6:
        raise Redraw
    b = r.tensor(x, r.broadcast(list(t.shape)), low=-2, high=2, special=0)
    (first, f), (second, g) = r.choice(CHANGES), r.choice(CHANGES)

    def want(x, b):
        t = x.clone()
        v = t
        for step in steps:
            v = step(v)
        f(v, b)
        y = (v * 2)
        g(v, b)
        return t, v, y
    return Case(f"(function(t, b) t = t:clone() local v = {text} v:{first} "
                f"local y = v * 2 v:{second} return {{t, v, y}} end)(a, b)",
                [x, b], want, 32, norm=True)
