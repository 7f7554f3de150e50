# SPDX-License-Identifier: MIT
"""nacre.func against torch.func: transforms, and transforms of transforms, of
random functions.
Run by: transforms_torch.py NACRE [--seed N] [--cases N] [--device cuda:0]
Without torch, or with one that has no torch.func (before 2.0), the test is
skipped (77)."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from torch import func
except ImportError:
    print("transforms_torch: no torch.func, skipped")
    sys.exit(77)

N = 4                         # elements of a vector, rows and columns of W
# one step of a function of a vector v: Lua, Python
STEPS = [
    ("v:tanh()", lambda v, w: v.tanh()),
    ("v:sin() * v", lambda v, w: v.sin() * v),
    ("w:mv(v)", lambda v, w: w.mv(v)),
    ("nacre.linalg.inv(w + 5 * nacre.eye(4, F64)):mv(v)",
     lambda v, w: torch.linalg.inv(
         w + 5 * torch.eye(4, dtype=torch.float64)).mv(v)),
    ("nacre.linear(v, w, v)", lambda v, w: torch.nn.functional.linear(v, w, v)),
    ("v:softmax(1) + v", lambda v, w: v.softmax(0) + v),
    ("v:log_softmax(-1)", lambda v, w: v.log_softmax(-1)),
    ("v:cumsum(1) * 0.3", lambda v, w: v.cumsum(0) * 0.3),
    ("v:flip(1)", lambda v, w: v.flip(0)),
    ("v:outer(v):sum(2)", lambda v, w: v.outer(v).sum(1)),
    ("nacre.cat({v:narrow(1, 3, 2), v:narrow(1, 1, 2)})",
     lambda v, w: torch.cat([v[2:], v[:2]])),
    ("nacre.stack({v, v * 2}):mean(1)",
     lambda v, w: torch.stack([v, v * 2]).mean(0)),
    ("nacre.where(v:gt(0), v, v * 0.1)",
     lambda v, w: torch.where(v > 0, v, v * 0.1)),
    ("v / (1 + v:square():sum())", lambda v, w: v / (1 + v.square().sum())),
    ("v - v:mean()", lambda v, w: v - v.mean()),
    ("v * v:var()", lambda v, w: v * v.var()),
    ("v:view(2, 2):t():reshape(4)", lambda v, w: v.view(2, 2).t().reshape(4)),
    ("w:t():matmul(v:unsqueeze(2)):squeeze(2)",
     lambda v, w: w.t().matmul(v.unsqueeze(1)).squeeze(1)),
    ("v:roll(1, 1)", lambda v, w: v.roll(1, 0)),
    ("(v ^ 2 + 1):log()", lambda v, w: (v ** 2 + 1).log()),
    ("(v:sort(1))", lambda v, w: v.sort(0)[0]),
    ("v:index_select(1, nacre.tensor{4, 1, 1, 2})",
     lambda v, w: v.index_select(0, torch.tensor([3, 0, 0, 1]))),
    ("v * v[2]", lambda v, w: v * v[1]),
    ("nacre.nn.functional.gelu(v)", lambda v, w: torch.nn.functional.gelu(v)),
    ("nacre.nn.functional.layer_norm(v, {4})",
     lambda v, w: torch.nn.functional.layer_norm(v, [4])),
]
# what is computed of f (a vector) and s (a number), at x with W; X has rows
# like x, Ws matrices like W
TRANSFORMS = [
    ("F.grad(s)(x, W)", lambda f, s, a: func.grad(s)(a["x"], a["W"])),
    ("F.grad(s, 2)(x, W)",
     lambda f, s, a: func.grad(s, 1)(a["x"], a["W"])),
    ("F.jacrev(f)(x, W)", lambda f, s, a: func.jacrev(f)(a["x"], a["W"])),
    ("F.jacfwd(f)(x, W)", lambda f, s, a: func.jacfwd(f)(a["x"], a["W"])),
    ("F.jacrev(f, 2)(x, W)",
     lambda f, s, a: func.jacrev(f, 1)(a["x"], a["W"])),
    ("F.jacfwd(f, 2)(x, W)",
     lambda f, s, a: func.jacfwd(f, 1)(a["x"], a["W"])),
    ("F.hessian(s)(x, W)", lambda f, s, a: func.hessian(s)(a["x"], a["W"])),
    ("select(2, F.jvp(f, {x, W}, {t, 2 * W}))",
     lambda f, s, a: func.jvp(f, (a["x"], a["W"]), (a["t"], 2 * a["W"]))[1]),
    ("select(2, F.vjp(f, x, W))(t)",
     lambda f, s, a: func.vjp(f, a["x"], a["W"])[1](a["t"])[0]),
    ("nacre.vmap(f, {1, false})(X, W)",
     lambda f, s, a: torch.vmap(f, (0, None))(a["X"], a["W"])),
    ("nacre.vmap(f, {false, 1}, 2)(x, Ws)",
     lambda f, s, a: torch.vmap(f, (None, 0), 1)(a["x"], a["Ws"])),
    ("nacre.vmap(f, {2, 3})(X:t(), Ws:permute(2, 3, 1))",
     lambda f, s, a: torch.vmap(f, (1, 2))(a["X"].t(),
                                           a["Ws"].permute(1, 2, 0))),
    ("nacre.vmap(F.grad(s), {1, false})(X, W)",
     lambda f, s, a: torch.vmap(func.grad(s), (0, None))(a["X"], a["W"])),
    ("nacre.vmap(F.grad(s, 2), {1, false})(X, W)",
     lambda f, s, a: torch.vmap(func.grad(s, 1), (0, None))(a["X"], a["W"])),
    ("nacre.vmap(F.jacrev(f), {1, 1})(X, Ws)",
     lambda f, s, a: torch.vmap(func.jacrev(f), (0, 0))(a["X"], a["Ws"])),
    ("nacre.vmap(F.hessian(s), {1, false})(X, W)",
     lambda f, s, a: torch.vmap(func.hessian(s), (0, None))(a["X"], a["W"])),
    ("F.grad(function(v) return F.grad(s)(v, W):square():sum() end)(x)",
     lambda f, s, a: func.grad(
         lambda v: func.grad(s)(v, a["W"]).square().sum())(a["x"])),
    ("F.jacrev(nacre.vmap(f, {1, false}))(X, W)",
     lambda f, s, a: func.jacrev(torch.vmap(f, (0, None)))(a["X"], a["W"])),
    ("nacre.vmap(function(v) return nacre.vmap(function(m) return f(v, m) end)"
     "(Ws) end)(X)",
     lambda f, s, a: torch.vmap(
         lambda v: torch.vmap(lambda m: f(v, m))(a["Ws"]))(a["X"])),
    ("select(2, F.jvp(F.grad(s), {x, W}, {t, 0 * W}))",
     lambda f, s, a: func.jvp(lambda v: func.grad(s)(v, a["W"]), (a["x"],),
                              (a["t"],))[1]),
    ("nacre.vmap(f, {1, false}, {chunk_size = 2})(X, W)",
     lambda f, s, a: torch.vmap(f, (0, None), chunk_size=2)(a["X"], a["W"])),
]


def draw(r):
    """A function of a vector and a matrix, as Lua and as Python."""
    steps = [r.choice(STEPS) for _ in range(r.randint(1, 4))]
    lua = "".join(f" v = {code}" for code, _ in steps)

    def f(v, w):
        for _, step in steps:
            v = step(v, w)
        return v
    return f"function(v, w){lua} return v end", f


def operands(r):
    def numbers(*size):
        count = int(np.prod(size))
        return torch.tensor([r.uniform(-1, 1) for _ in range(count)],
                            dtype=torch.float64).view(size)
    return {"x": numbers(N), "t": numbers(N), "W": numbers(N, N),
            "X": numbers(3, N), "Ws": numbers(3, N, N)}


def literal(t):
    flat = ",".join(repr(v) for v in t.flatten().tolist())
    return f"nacre.tensor({{{flat}}}, F64):view({', '.join(map(str, t.shape))})"


def write(path, cases, device):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'local F64 = {{dtype = "float64", device = "{device}"}}\n'
                  "local F = nacre.func\n"
                  "local function show(i, y)\n"
                  '  y = y:detach():to("cpu"):reshape(-1):totable()\n'
                  '  for k, v in ipairs(y) do y[k] = ("%.17g"):format(v) end\n'
                  '  print(i, table.concat(y, " "))\nend\n')
        for i, (code, text, _, a) in enumerate(cases):
            out.write("do\n")
            for name, t in a.items():
                out.write(f"local {name} = {literal(t)}\n")
            out.write(f"local f = {code}\n"
                      "local function s(...) return f(...):square():sum() end\n"
                      f"local ok, y = pcall(function() return {text} end)\n"
                      f"if ok then show({i}, y) else print({i}, 'error', "
                      "(tostring(y):gsub('\\n', ' '))) end\nend\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("nacre")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=400)
    p.add_argument("--device", default="cpu")
    o = p.parse_args()
    r, cases, wrong = random.Random(o.seed), [], 0
    for i in range(o.cases):
        code, f = draw(r)
        text, want = TRANSFORMS[i % len(TRANSFORMS)]
        a = operands(r)
        s = lambda *v, f=f: f(*v).square().sum()
        cases.append((code, text, want(f, s, a), a))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cases.lua")
        write(path, cases, o.device)
        out = subprocess.run([o.nacre, path], capture_output=True, text=True,
                             check=False)
    lines = dict(l.split("\t", 1) for l in out.stdout.splitlines() if "\t" in l)
    for i, (code, text, want, _) in enumerate(cases):
        got = lines.get(str(i), "error\tno answer " + out.stderr[:200])
        if got.startswith("error"):
            message = got
        else:
            y = np.array([float(v) for v in got.split()])
            message = "" if y.size == want.numel() and np.allclose(
                y, want.detach().numpy().ravel(), 1e-9, 1e-9) else "differs"
        if message:
            wrong += 1
            print(f"{text}\n  of {code}\n  {message}")
    print(f"transforms_torch: {len(cases)} cases, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
