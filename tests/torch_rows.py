# SPDX-License-Identifier: MIT
"""Rows: calls for diff_torch.py; see there."""
import torch

from diff_torch import ALL, FLOATS, INTS, Case, operation

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
    "rad2deg": (torch.rad2deg,),
}


@operation(8)
def unary(r):
    op = r.choice(list(UNARY))
    f, *span = UNARY[op]
    low, high = span[:2] if span else (-10, 10)
    x = r.tensor(low=low, high=high)
    return Case(f"a:{op}()", [x], f, times=16)


BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul,
    "true_divide": torch.true_divide, "maximum": torch.maximum,
    "minimum": torch.minimum, "atan2": torch.atan2, "eq": torch.eq,
    "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
    "ge": torch.ge, "logical_and": torch.logical_and,
    "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
}


@operation(5)
def binary(r):
    op = r.choice(list(BINARY))
    a = r.tensor()
    b = r.tensor(shape=r.broadcast(list(a.shape)))
    return Case(f"nacre.{op}(a, b)", [a, b], BINARY[op], times=16)
