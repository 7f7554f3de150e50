# SPDX-License-Identifier: MIT
"""What Nacre promises beside NumPy: a goal for each row. process_bench.py has
the promises of start, memory and Ctrl-C."""
from suite_rows import Group

row = Group("one element, in a loop", turns=9, torch="", results=None,
            shown=("quartiles", "goal"))
row("a+b", 1, "a=n b=n", "a + b", numpy="a + b", goal=1, most=0.25e-6)
row("a:add_(b)", 1, "a=n b=n", "a:add_(b)", numpy="a += b", goal=1, most=1e-7)

row = Group("vectors", turns=9, torch="", work="memory", tolerance=1e-3,
            shown=("quartiles", "goal"))
for n, more in ((10000, 1), (16 << 20, 1.5)):     # NumPy's time over ours
    title = "10,000" if n == 10000 else "16M"
    row(f"a+b, {title}", n, "a=n b=n", "a + b", numpy="a + b", goal=1 / more)
    row(f"a*b+c, {title}", n, "a=n b=n c=n", "a * b + c", numpy="a * b + c",
        goal=1)
    row(f"exp, {title}", n, "a=n", "a:exp()", numpy="np.exp(a)",
        goal=1 / more)
    row(f"sigmoid, {title}", n, "a=n", "a:sigmoid()",
        numpy="1 / (1 + np.exp(-a))", goal=1)
    row(f"where, {title}", n, "m=n:bool a=n b=n", "nacre.where(m, a, b)",
        numpy="np.where(m, a, b)", goal=1)
    row(f"sum, {title}", n, "a=n", "a:sum()", numpy="a.sum()", goal=1)
    row(f"var, {title}", n, "a=n", "a:var{unbiased = false}",
        numpy="a.var()", goal=1)
