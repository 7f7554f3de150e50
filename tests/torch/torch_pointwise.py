# SPDX-License-Identifier: MIT
"""Rows: calls for diff_torch.py; see there."""
import torch

from diff_torch import ALL, FLOATS, Case, name, operation

F = torch.nn.functional

# name: the function of PyTorch, the range of the operand, dtypes, steps
UNARY = {
    "abs": (torch.abs,), "neg": (torch.neg,), "sign": (torch.sign,),
    "square": (torch.square,), "ceil": (torch.ceil,),
    "floor": (torch.floor,), "trunc": (torch.trunc,), "frac": (torch.frac,),
    "sqrt": (torch.sqrt, -1, 20), "rsqrt": (torch.rsqrt, 0, 20),
    "exp": (torch.exp,), "exp2": (torch.exp2,), "expm1": (torch.expm1, -2, 2),
    "log": (torch.log, 0, 20), "log2": (torch.log2, 0, 20),
    "log10": (torch.log10, 0, 20), "log1p": (torch.log1p, -1, 9),
    "sin": (torch.sin,), "cos": (torch.cos,), "tan": (torch.tan, -1, 1),
    "asin": (torch.asin, -1, 1), "acos": (torch.acos, -1, 1),
    "atan": (torch.atan,), "sinh": (torch.sinh, -5, 5),
    "cosh": (torch.cosh, -5, 5), "tanh": (torch.tanh, -3, 3),
    "asinh": (torch.asinh,), "acosh": (torch.acosh, 0, 9),
    "atanh": (torch.atanh, -1, 1), "erf": (torch.erf, -3, 3),
    "erfc": (torch.erfc, -3, 3), "sigmoid": (torch.sigmoid,),
    "reciprocal": (torch.reciprocal,), "deg2rad": (torch.deg2rad,),
    "rad2deg": (torch.rad2deg,), "erfinv": (torch.erfinv, -1, 1),
    "lgamma": (torch.lgamma,), "digamma": (torch.digamma, 0.1, 9),
    "sinc": (torch.sinc, -3, 3), "logit": (torch.logit, 0, 1),
    "i0": (torch.i0, -9, 9), "i1": (torch.special.i1, -9, 9),
    "i0e": (torch.special.i0e,), "i1e": (torch.special.i1e,),
    "positive": (torch.positive,), "sgn": (torch.sgn,),
    "signbit": (torch.signbit,), "round": (torch.round,),
    "isnan": (torch.isnan,), "isinf": (torch.isinf,),
    "isfinite": (torch.isfinite,), "logical_not": (torch.logical_not,),
    "bitwise_not": (torch.bitwise_not,), "nan_to_num": (torch.nan_to_num,),
    "relu": (torch.relu,), "isposinf": (torch.isposinf,),
    "isneginf": (torch.isneginf,),
}


@operation(8)
def unary(r):
    op = r.choice(list(UNARY))
    f, *span = UNARY[op]
    low, high = span[:2] if span else (-10, 10)
    x = r.tensor(low=low, high=high)
    return Case(f"a:{op}()", [x], f, times=16)


ACTIVATIONS = {
    "relu6": F.relu6, "hardsigmoid": F.hardsigmoid, "selu": F.selu,
    "mish": F.mish, "logsigmoid": F.logsigmoid, "tanhshrink": F.tanhshrink,
    "silu": F.silu, "hardswish": F.hardswish, "softsign": F.softsign,
    "gelu": F.gelu,
}


@operation(3)
def activation(r):
    op = r.choice(list(ACTIVATIONS))
    x = r.tensor(r.choice([FLOATS, ALL]), special=0)
    return Case(f"nacre.{op}(a)", [x], ACTIVATIONS[op], times=32)


@operation(3)
def activation_with(r):
    x = r.tensor(FLOATS, special=0)
    p, q = sorted([r.number(-2, 1), r.number(1.01, 3)])
    text, f = r.choice([
        (f"a:hardtanh({p}, {q})", lambda t: F.hardtanh(t, p, q)),
        (f"nacre.leaky_relu(a, {q})", lambda t: F.leaky_relu(t, q)),
        (f"a:celu({q})", lambda t: F.celu(t, q)),
        (f"a:elu({q})", lambda t: F.elu(t, q)),
        (f"a:softshrink({q})", lambda t: F.softshrink(t, q)),
        (f"a:hardshrink({q})", lambda t: F.hardshrink(t, q)),
        (f"a:threshold({p}, {q})", lambda t: F.threshold(t, p, q)),
        (f"a:softplus({q})", lambda t: F.softplus(t, q)),
    ])
    return Case(text, [x], f, times=32)


@operation()
def glu(r):
    x = r.tensor(special=0, least=0)
    d, luad = r.dim(x)
    return Case(f"a:glu({luad})", [x], lambda t: F.glu(t, d), times=16)


@operation()
def prelu(r):
    x = r.tensor(FLOATS, special=0, empty=0)
    n = x.shape[1] if x.dim() > 1 and r.flag() else 1
    w = r.tensor(name(x.dtype), shape=[n], special=0)
    return Case("a:prelu(b)", [x, w], F.prelu)


@operation()
def numbers(r):
    """Operations with numbers as parameters."""
    x = r.tensor()
    p, n = r.number(-3, 3), r.integer(-2, 3)
    text, f = r.choice([
        (f"a:nan_to_num({p}, {p + 1}, {p - 1})",
         lambda t: torch.nan_to_num(t, p, p + 1, p - 1)),
        (f"a:round{{decimals = {n}}}", lambda t: torch.round(t, decimals=n)),
        ("a:logit(0.25)", lambda t: torch.logit(t, 0.25)),
        (f"a:float_power({n})", lambda t: torch.float_power(t, n)),
        (f"nacre.float_power({abs(p)}, a)",
         lambda t: torch.float_power(abs(p), t)),
        (f"a:clamp({p})", lambda t: torch.clamp(t, p)),
        (f"a:remainder({n or 1})", lambda t: torch.remainder(t, n or 1)),
        (f"a:fmod({n or 1})", lambda t: torch.fmod(t, n or 1)),
    ])
    return Case(text, [x], f, times=16)


@operation()
def polygamma(r):
    x = r.tensor(low=1, high=9, special=0)
    n = r.integer(0, 4)
    return Case(f"nacre.polygamma({n}, a)", [x],
                lambda t: torch.polygamma(n, t), times=64)


@operation()
def mvlgamma(r):
    x = r.tensor(["float32", "float64", "int32"], low=4, high=20, special=0)
    p = r.integer(1, 4)
    return Case(f"a:mvlgamma({p})", [x], lambda t: torch.mvlgamma(t, p),
                times=32)


@operation()
def zeta(r):
    s = r.tensor(["float32", "float64"], low=1.5, high=9, special=0)
    q = r.tensor(name(s.dtype), shape=r.broadcast(list(s.shape)), low=0.1,
                 high=20, special=0)
    return Case("nacre.zeta(a, b)", [s, q], torch.special.zeta, times=64,
                grad=False)


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul,
    "true_divide": torch.true_divide, "maximum": torch.maximum,
    "minimum": torch.minimum, "atan2": torch.atan2, "eq": torch.eq,
    "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
    "ge": torch.ge, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "copysign": torch.copysign, "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py, "gcd": torch.gcd, "lcm": torch.lcm,
    "ldexp": torch.ldexp, "fmax": torch.fmax, "fmin": torch.fmin,
    "hypot": torch.hypot, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "heaviside": torch.heaviside,
    "nextafter": torch.nextafter, "remainder": torch.remainder,
    "fmod": torch.fmod, "pow": torch.pow, "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor,
    "floor_divide": torch.floor_divide, "float_power": torch.float_power,
}
SAME = {"heaviside", "nextafter"}     # PyTorch takes one dtype only


@operation(5)
def binary(r):
    op = r.choice(list(BINARY))
    a = r.tensor()
    kind = name(a.dtype) if op in SAME or r.flag(0.6) else ALL
    b = r.tensor(kind, shape=r.broadcast(list(a.shape)))
    return Case(f"nacre.{op}(a, b)", [a, b], BINARY[op], times=16)
