# SPDX-License-Identifier: MIT
"""Expressions drawn at random, of which first or second derivatives are
compared: calls for diff_torch.py."""
from diff_torch import Case, operation

import torch

# What is applied: Lua and Python. {0} and {1} are operands of one shape [n x m];
# so is the result.
STEPS = [
    ("({0} + {1})", "({0} + {1})"), ("({0} * {1})", "({0} * {1})"),
    ("({0} - 2 * {1})", "({0} - 2 * {1})"),
    ("({0} / ({1} * {1} + 1))", "({0} / ({1} * {1} + 1))"),
    ("{0}:sin()", "{0}.sin()"), ("{0}:tanh()", "{0}.tanh()"),
    ("{0}:sigmoid()", "{0}.sigmoid()"),
    ("({0}:abs() + 0.5):log()", "({0}.abs() + 0.5).log()"),
    ("({0}:square() + 1):sqrt()", "({0}.square() + 1).sqrt()"),
    ("{0}:relu()", "{0}.relu()"),
    ("{0}:clamp(-0.7, 0.8)", "{0}.clamp(-0.7, 0.8)"),
    ("nacre.maximum({0}, {1})", "torch.maximum({0}, {1})"),
    ("nacre.atan2({0}, {1} * {1} + 1)", "torch.atan2({0}, {1} * {1} + 1)"),
    ("nacre.where({0}:gt(0), {0}, {1})", "torch.where({0} > 0, {0}, {1})"),
    ("nacre.lerp({0}, {1}, 0.3)", "torch.lerp({0}, {1}, 0.3)"),
    ("({0}:softmax(2) * {1})", "({0}.softmax(1) * {1})"),
    ("{0}:log_softmax(1)", "{0}.log_softmax(0)"),
    ("{0}:cumsum(2)", "{0}.cumsum(1)"),
    ("({0} - {0}:mean(1, true))", "({0} - {0}.mean(0, True))"),
    ("({0} * {1}:sum(2, true))", "({0} * {1}.sum(1, True))"),
    ("({0} + {1}:amax(1, true))", "({0} + {1}.amax(0, True))"),
    ("({0} + ({1}:max(2, true)))", "({0} + {1}.max(1, True)[0])"),
    ("({0} + {1}:prod(2, true))", "({0} + {1}.prod(1, True))"),
    ("({0} + {1}:logsumexp(2, true))", "({0} + {1}.logsumexp(1, True))"),
    ("({0} + {1}:var(2, true, true))", "({0} + {1}.var(1, True, True))"),
    ("({0} * {1}:norm())", "({0} * {1}.norm())"),
    ("{0}:mm({1}:t()):mm({0})", "{0}.mm({1}.t()).mm({0})"),
    ("{0}:matmul({1}[1]):unsqueeze(2) * {1}",
     "{0}.matmul({1}[0]).unsqueeze(1) * {1}"),
    ("{0}:t():reshape({0}:size(1), {0}:size(2))", "{0}.t().reshape({0}.shape)"),
    ("nacre.cat({{{0}['1:1'], {1}['2:-1']}})", "torch.cat([{0}[:1], {1}[1:]])"),
    ("nacre.stack({{{0}, {1}}}):sum(1)", "torch.stack([{0}, {1}]).sum(0)"),
    ("({0} + {1}[nacre.tensor{{1}}])", "({0} + {1}[torch.tensor([0])])"),
    ("(function(y, v) y[1] = v[-1] return y end)({0} * 1, {1})",
     "first_row({0} * 1, {1})"),
    ("(function(y, v) y['1:1']:mul_(v['1:1']) return y end)({0} * 1, {1})",
     "scaled_row({0} * 1, {1})"),
    ("{0}:diagonal():sum() * {1}", "{0}.diagonal().sum() * {1}"),
]


def first_row(y, v):
    y[0] = v[-1]
    return y


def scaled_row(y, v):
    y[:1].mul_(v[:1])
    return y


NAMES = {"torch": torch, "first_row": first_row, "scaled_row": scaled_row}


def compose(r, depth):
    """The same expression of a, b and c in Lua and in Python."""
    if depth == 0:
        leaf = r.choice("abc")
        return leaf, leaf
    lua, python = r.choice(STEPS)
    first, second = compose(r, depth - 1), compose(r, r.integer(0, depth - 1))
    return (f"({lua.format(first[0], second[0])})",
            f"({python.format(first[1], second[1])})")


@operation()
def expression(r):
    shape = [r.integer(2, 3), r.integer(2, 4)]
    lua, python = compose(r, r.integer(1, 3))
    code = compile(python, "expression", "eval")
    case = Case(lua, [r.tensor("float64", shape, low=-3, high=3, special=0,
                               ties=0) for _ in "abc"],
                lambda a, b, c: eval(code, {**NAMES, "a": a, "b": b, "c": c}),
                times=2**11, norm=True)
    case.second = r.flag()
    return case
