# SPDX-License-Identifier: MIT
"""Chains of operations on n elements: fused and unfused in Nacre, PyTorch
eager, and, where they are there, torch.compile and numexpr.

torch.compile (--compile) needs a C++ compiler and seconds for each row. f is
the chain; the operands are x0, x1, ...
"""
from suite_rows import Group, lines

row = Group("fusion", turns=5, shown=("quartiles",), tolerance=1e-3)
SIZES = (9 * 1024, 976 * 1024, 15625 * 1024)


def chain(name, count, ours, theirs, numexpr="", rows=False, gradient=""):
    names = [f"x{i}" for i in range(count)]
    shape = "n//1024,1024" if rows else "n"
    operands = " ".join(f"{name}={shape}>0" for name in names)
    ready = "\n".join(f"{name} = {name} / 2 + 0.5" for name in names) + "\n"
    call = f"f({', '.join(names)})"
    row(name, SIZES, operands, "fused" + call[1:], call,
        setup=(ready + lines(ours) + "\nfused = nacre.fuse(f)",
               ready + lines(theirs)),
        unfused=call, compile=call,
        numexpr=numexpr and f"numexpr.evaluate('{numexpr}', "
        f"dict({', '.join(f'{x}={x}' for x in names)}))",
        gradient=gradient or " ".join(names))


chain("sigmoid", 3, """
    function f(a, b, c) return (a * b + c):sigmoid() end""", """
    def f(a, b, c): return (a * b + c).sigmoid()""",
    "1 / (1 + exp(-(x0 * x1 + x2)))")
chain("gelu", 1, """
    function f(x)
      return 0.5 * x *
             (1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)):tanh())
    end""", """
    def f(x):
        return 0.5 * x * (
            1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh())
    """, "0.5 * x0 * (1 + tanh(0.7978845608028654 * "
    "(x0 + 0.044715 * x0 * x0 * x0)))")
chain("Adam", 4, """
    function f(p, m, v, g)
      m = 0.9 * m + 0.1 * g
      v = 0.999 * v + 0.001 * g * g
      return p - 1e-3 * m / (v:sqrt() + 1e-8), m, v
    end""", """
    def f(p, m, v, g):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v
    """)
chain("Black-Scholes", 3, """
    local function normal(d)
      return 0.5 * (1 + (d * 0.7071067811865476):erf())
    end
    function f(s, k, t)
      local rate, sigma = 0.03, 0.2
      local q = t:sqrt() * sigma
      local d = ((s / k):log() + (rate + 0.5 * sigma * sigma) * t) / q
      local paid = k * (-rate * t):exp()
      local call = s * normal(d) - paid * normal(d - q)
      return call, call - s + paid
    end""", """
    def normal(d): return 0.5 * (1 + (d * 0.7071067811865476).erf())

    def f(s, k, t):
        rate, sigma = 0.03, 0.2
        q = t.sqrt() * sigma
        d = ((s / k).log() + (rate + 0.5 * sigma * sigma) * t) / q
        paid = k * (-rate * t).exp()
        call = s * normal(d) - paid * normal(d - q)
        return call, call - s + paid
    """)
chain("Mandelbrot", 5, """
    function f(x, y, cx, cy, n)
      local u = x * x - y * y + cx
      local v = 2 * x * y + cy
      return u, v, n + (u * u + v * v):le(4)
    end""", """
    def f(x, y, cx, cy, n):
        u = x * x - y * y + cx
        v = 2 * x * y + cy
        return u, v, n + (u * u + v * v).le(4)
    """, gradient="x0 x1 x2")       # those that the first result depends on
chain("softmax", 1, """
    function f(x)
      local e = (x - x:amax(-1, true)):exp()
      return e / e:sum(-1, true)
    end""", """
    def f(x):
        e = (x - x.amax(-1, True)).exp()
        return e / e.sum(-1, True)
    """, rows=True)
chain("standardize", 1, """
    function f(x)
      local d = x - x:mean(-1, true)
      return d / (d * d):mean(-1, true):sqrt()
    end""", """
    def f(x):
        d = x - x.mean(-1, True)
        return d / (d * d).mean(-1, True).sqrt()
    """, rows=True)
