# SPDX-License-Identifier: MIT
"""Pointwise operations: calls for diff_torch.py."""
from diff_torch import ALL, FLOATS, INTS, call, operation

UNARY = """
abs neg sign square ceil floor trunc frac sqrt rsqrt exp exp2 expm1 log log2
log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc
sigmoid reciprocal deg2rad rad2deg erfinv lgamma digamma sinc logit i0 i1 i0e
i1e positive sgn signbit round isnan isinf isfinite logical_not bitwise_not
nan_to_num relu isposinf isneginf clone
""".split()
# Where an operation is defined, if not everywhere.
RANGE = {
    "sqrt": (-1, 20), "rsqrt": (0, 20), "expm1": (-2, 2), "log": (0, 20),
    "log2": (0, 20), "log10": (0, 20), "log1p": (-1, 9), "tan": (-1, 1),
    "asin": (-1, 1), "acos": (-1, 1), "sinh": (-5, 5), "cosh": (-5, 5),
    "tanh": (-3, 3), "acosh": (0, 9), "atanh": (-1, 1), "erf": (-3, 3),
    "erfc": (-3, 3), "erfinv": (-1, 1), "digamma": (0.1, 9), "sinc": (-3, 3),
    "logit": (0, 1), "i0": (-9, 9), "i1": (-9, 9),
}


@operation(8)
def unary(r):
    op = r.choice(UNARY)
    low, high = RANGE.get(op, (-10, 10))
    return call(op, r.tensor(low=low, high=high), times=16)


ACTIVATIONS = ["relu6", "hardsigmoid", "selu", "mish", "logsigmoid",
               "tanhshrink", "silu", "hardswish", "softsign", "gelu"]


@operation(3)
def activation(r):
    x = r.tensor(r.choice([FLOATS, ALL]), special=0)
    return call("nacre." + r.choice(ACTIVATIONS), x, times=32)


@operation(3)
def activation_with(r):
    x = r.tensor(FLOATS, special=0)
    p, q = sorted([r.number(-2, 1), r.number(1.01, 3)])
    op = r.choice(["hardtanh", "threshold", "nacre.leaky_relu", "celu", "elu",
                   "softshrink", "hardshrink", "softplus"])
    args = [p, q] if op in ("hardtanh", "threshold") else [q]
    return call(op, x, *args, times=32)


@operation()
def glu(r):
    x = r.tensor(special=0, least=0)
    return call("glu", x, r.dim(x), times=16)


@operation()
def prelu(r):
    x = r.tensor(FLOATS, special=0, empty=0)
    n = x.shape[1] if x.dim() > 1 and r.flag() else 1
    return call("prelu", x, r.tensor(x, shape=[n], special=0))


@operation()
def numbers(r):
    """Operations with numbers as parameters."""
    x = r.tensor()
    p, n = r.number(-3, 3), r.integer(-2, 3)
    if r.flag(0.1):
        return call("round", x, decimals=n, times=16)
    op, *args = r.choice([
        ("nan_to_num", x, p, p + 1, p - 1), ("logit", x, 0.25),
        ("float_power", x, n), ("nacre.float_power", abs(p), x),
        ("clamp", x, p), ("remainder", x, n or 1), ("fmod", x, n or 1)])
    return call(op, *args, times=16)


@operation()
def polygamma(r):
    return call("nacre.polygamma", r.integer(0, 4),
                r.tensor(low=1, high=9, special=0), times=64)


@operation()
def mvlgamma(r):
    x = r.tensor(["float32", "float64", "int32"], low=4, high=20, special=0)
    return call("mvlgamma", x, r.integer(1, 4), times=32)


@operation()
def zeta(r):
    s = r.tensor(["float32", "float64"], low=1.5, high=9, special=0)
    q = r.tensor(s, shape=r.broadcast(list(s.shape)), low=0.1, high=20,
                 special=0)
    return call("nacre.zeta", s, q, times=64, grad=False)


BINARY = """
add sub mul true_divide maximum minimum atan2 eq ne lt le gt ge logical_and
logical_or logical_xor copysign xlogy xlog1py gcd lcm ldexp fmax fmin hypot
logaddexp logaddexp2 heaviside nextafter remainder fmod pow bitwise_and
bitwise_or bitwise_xor floor_divide float_power
""".split()
SAME = {"heaviside", "nextafter"}     # PyTorch takes one dtype only


@operation(5)
def binary(r):
    op = r.choice(BINARY)
    a = r.tensor(INTS if op.startswith("bitwise") and r.flag(0.8) else ALL)
    kind = a if op in SAME or r.flag(0.6) else ALL
    b = r.tensor(kind, shape=r.broadcast(list(a.shape)))
    if r.flag():
        a, b = b, a
    return call("nacre." + op, a, b, times=16)
