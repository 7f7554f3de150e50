#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Chains of operations: fused and unfused in Nacre, PyTorch eager, and, where
they are there, torch.compile and numexpr, as Markdown.

    fusion_bench.py NACRE [--sizes N,N] [--threads N] [--turns N] [--compile]
                    [--gradients] [--processor] [CASE...]

Medians over the turns, which alternate, of one call on float32 vectors of N
elements (1e4, 1e6, 1.6e7). --compile adds torch.compile, which needs a C++
compiler and seconds for each case; --gradients measures forward and backward.
--processor measures the processor's time, for a machine that others use.
"""
import argparse
import importlib.util
import math
import pathlib
import statistics
import time

import torch

from bench_common import Program, at_least_two_turns

HERE = pathlib.Path(__file__).parent
LEAST = 0.02                  # seconds of a turn


def sigmoid(a, b, c):
    return (a * b + c).sigmoid()


def gelu(x):
    return 0.5 * x * (
        1 + (0.7978845608028654 * (x + 0.044715 * x * x * x)).tanh())


def adam(p, m, v, g):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


def normal(d):
    return 0.5 * (1 + (d * 0.7071067811865476).erf())


def black_scholes(s, k, t):
    rate, sigma = 0.03, 0.2
    q = t.sqrt() * sigma
    d = ((s / k).log() + (rate + 0.5 * sigma * sigma) * t) / q
    paid = k * (-rate * t).exp()
    call = s * normal(d) - paid * normal(d - q)
    return call, call - s + paid


def mandelbrot(x, y, cx, cy, n):
    u = x * x - y * y + cx
    v = 2 * x * y + cy
    return u, v, n + (u * u + v * v).le(4)


def softmax(x):
    e = (x - x.amax(-1, True)).exp()
    return e / e.sum(-1, True)


def standardize(x):
    d = x - x.mean(-1, True)
    return d / (d * d).mean(-1, True).sqrt()


# case: function, operands, rows of 1024, numexpr's text
CASES = {
    "sigmoid": (sigmoid, 3, False, "1 / (1 + exp(-(x0 * x1 + x2)))"),
    "gelu": (gelu, 1, False, "0.5 * x0 * (1 + tanh(0.7978845608028654 * "
             "(x0 + 0.044715 * x0 * x0 * x0)))"),
    "Adam": (adam, 4, False, None),
    "Black-Scholes": (black_scholes, 3, False, None),
    "Mandelbrot": (mandelbrot, 5, False, None),
    "softmax": (softmax, 1, True, None),
    "standardize": (standardize, 1, True, None),
}


def operands(case, size):
    _, count, rows, _ = CASES[case]
    x = [torch.rand(size) + 0.5 for _ in range(count)]
    return [t.view(-1, 1024) for t in x] if rows else x


def with_gradients(f, x):
    for t in x:
        t.requires_grad_()
        t.grad = None
    y = f(*x)
    (y[0] if isinstance(y, tuple) else y).sum().backward()


def sides(options, case, size):
    """The columns: name, and a function that times so many calls."""
    ours = Program(options.nacre, HERE / "fusion_bench.lua", size,
                   options.threads,
                   "processor" if options.processor else "wall")
    ours.ask(f"case {case}")
    f, _, _, text = CASES[case]
    x = operands(case, size)
    clock = time.process_time if options.processor else time.perf_counter

    def timed(call):
        def run(calls):
            start = clock()
            for _ in range(calls):
                call()
            return (clock() - start) / calls
        return run

    if options.gradients:
        found = {"fused": lambda calls: ours.ask(f"grad {calls}"),
                 "PyTorch": timed(lambda: with_gradients(f, x))}
    else:
        found = {"fused": lambda calls: ours.ask(f"fused {calls}"),
                 "Nacre": lambda calls: ours.ask(f"plain {calls}"),
                 "PyTorch": timed(lambda: f(*x))}
    if options.compile:
        compiled = torch.compile(f)
        found["torch.compile"] = timed(
            (lambda: with_gradients(compiled, x)) if options.gradients else
            lambda: compiled(*x))
    if text and not options.gradients and importlib.util.find_spec("numexpr"):
        import numexpr        # pylint: disable=import-outside-toplevel
        numexpr.set_num_threads(options.threads)
        names = {f"x{i}": t.numpy() for i, t in enumerate(x)}
        found["numexpr"] = timed(lambda: numexpr.evaluate(text, names))
    return ours, found


def measure(options, case, size):
    ours, found = sides(options, case, size)
    times = {name: [] for name in found}
    calls = {name: max(1, math.ceil(LEAST / max(run(1), run(1))))
             for name, run in found.items()}
    for _ in range(options.turns):
        for name, run in found.items():
            times[name].append(run(calls[name]))
    ours.end()
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nacre")
    parser.add_argument("--sizes", default="1e4,1e6,1.6e7")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_intermixed_args()
    at_least_two_turns(parser, options)
    torch.set_num_threads(options.threads)
    head = None
    for case in options.cases or CASES:
        for size in options.sizes.split(","):
            n = int(float(size)) // 1024 * 1024
            found = measure(options, case, n)
            if head is None:
                head = [name for name in found if name != "numexpr"]
                head += ["numexpr", "PyTorch / fused"]
                print("| chain | elements | " + " | ".join(head) + " |")
                print("|---|---:|" + "---:|" * len(head))
            ratio = found["PyTorch"] / found["fused"]
            cells = [f"{found[name] * 1e3:.3g} ms" if name in found else ""
                     for name in head[:-1]]
            print(f"| {case} | {n} | " + " | ".join(cells) +
                  f" | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
