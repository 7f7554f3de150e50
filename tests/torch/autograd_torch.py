#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gradients against PyTorch: expressions drawn at random, the same in both
languages, with random shapes, first and second derivatives.

  autograd_torch.py NACRE [SEED]      exits 77 where there is no PyTorch
"""
import random
import subprocess
import sys

try:
    import torch
except ImportError:
    print("no PyTorch: nothing to compare with")
    sys.exit(77)

CASES = 400

# What is applied: Lua, Python, and how many operands it takes. {0} and {1} are
# operands of one shape [n x m]; so is the result.
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
    ("set({0} * 1, {1})", "set({0} * 1, {1})"),
    ("part({0} * 1, {1})", "part({0} * 1, {1})"),
    ("{0}:diagonal():sum() * {1}", "{0}.diagonal().sum() * {1}"),
]

LUA_HELPERS = """
local function set(y, v) y[1] = v[-1] ; return y end
local function part(y, v) y['1:1']:mul_(v['1:1']) ; return y end
"""


def set(y, v):  # pylint: disable=redefined-builtin
    y[0] = v[-1]
    return y


def part(y, v):
    y[:1].mul_(v[:1])
    return y


def expression(rng, leaves, depth):
    """The same expression in Lua and in Python."""
    if depth == 0:
        name = rng.choice(leaves)
        return name, name
    lua, py = rng.choice(STEPS)
    a = expression(rng, leaves, depth - 1)
    b = expression(rng, leaves, rng.randrange(depth))
    return (f"({lua.format(a[0], b[0])})", f"({py.format(a[1], b[1])})")


def flat(t):
    return [float(v) for v in t.detach().reshape(-1)]


def literal(t):
    rows = ["{" + ", ".join(repr(float(v)) for v in row) + "}" for row in t]
    return "{" + ", ".join(rows) + "}"


def main():
    nacre = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    rng = random.Random(seed)
    torch.manual_seed(seed)
    print("seed", seed)
    lines, wants, texts = [LUA_HELPERS], [], []
    for _ in range(CASES):
        n, m = rng.randint(2, 3), rng.randint(2, 4)
        leaves = {name: torch.randn(n, m, dtype=torch.float64,
                                    requires_grad=True) for name in "abc"}
        lua, py = expression(rng, list(leaves), rng.randint(1, 3))
        lua, py = f"({lua}) + 0 * (a + b + c)", f"({py}) + 0 * (a + b + c)"
        y = eval(py, {"torch": torch, "set": set, "part": part, **leaves})
        first = torch.autograd.grad(y.sum(), leaves.values(), create_graph=True)
        total = sum((g * g).sum() for g in first)
        total = total + 0 * sum(t.sum() for t in leaves.values())
        second = torch.autograd.grad(total, leaves.values())
        wants.append([flat(t) for t in (y, *first, *second)])
        texts.append((lua, py))
        lines.append("do")
        for name, t in leaves.items():
            lines.append(f"local {name} = nacre.tensor({literal(t)}, "
                         "{dtype='float64', requires_grad=true})")
        lines.append(f"""
local y = {lua}
local first = {{nacre.autograd.grad(y:sum(), {{a, b, c}},
                                    {{create_graph = true}})}}
local total = nacre.zeros({{}}, {{dtype='float64'}}) + 0 * (a + b + c):sum()
for _, g in ipairs(first) do total = total + (g * g):sum() end
local second = {{nacre.autograd.grad(total, {{a, b, c}})}}
local out = {{}}
for _, list in ipairs {{{{y}}, first, second}} do
  for _, t in ipairs(list) do
    local v = t:detach():reshape(-1):totable()
    for i = 1, #v do v[i] = ('%.17g'):format(v[i]) end
    out[#out + 1] = table.concat(v, ' ')
  end
end
print(table.concat(out, ';'))
end""")
    run = subprocess.run([nacre, "-"], input="\n".join(lines), text=True,
                         capture_output=True, check=False)
    got = run.stdout.splitlines()
    if run.returncode or len(got) != CASES:
        print(run.stdout[-2000:], run.stderr[-2000:])
        return 1
    bad = 0
    for line, want, (lua, py) in zip(got, wants, texts):
        values = [[float(v) for v in part.split()] for part in line.split(";")]
        for a, b in zip(values, want):
            for v, w in zip(a, b):
                both = v != v and w != w
                if both or abs(v - w) <= 1e-8 * (1 + abs(w)):
                    continue
                bad += 1
                print(f"{lua}\n{py}\n  got {a}\n  want {b}")
                break
    print(f"{CASES} expressions, {bad} gradients differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
