#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quantiles, histograms and sorting over NumPy's time, as Markdown.

    order_bench.py NACRE [--size N] [--dtype T] [--threads N] [--turns N]
                   [--processor] [CASE...]

A vector of N elements (1e8), float32. Turns alternate, after a warm-up that
touches the memory; what is printed is the median over the turns, the median
and the quartiles of the ratios of one turn each, and the peak of the memory
over that of the data, the data with it. NumPy uses one thread, Nacre as many
as are asked for (1). --processor measures the processor's time, for a machine
that others use.
"""
import argparse
import pathlib
import time

import numpy as np

from bench_common import Program, at_least_two_turns, print_row

HERE = pathlib.Path(__file__).parent

# data: ours, NumPy's; every hundredth element of holes is nan
DATA = {
    "uniform": ("nacre.rand(n, {dtype=dtype})",
                lambda rng, n, dtype: rng.random(n, dtype)),
    "normal": ("nacre.randn(n, {dtype=dtype})",
               lambda rng, n, dtype: rng.standard_normal(n, dtype)),
    "holes": ("nacre.randn(n, {dtype=dtype}):index_fill_(1, "
              "nacre.arange(1, n + 1, 100), 0/0)",
              lambda rng, n, dtype: holes(rng.standard_normal(n, dtype))),
}
# case: data, our call, NumPy's
CASES = {
    "quantile": ("normal", "x:quantile(0.3)",
                 lambda x: np.quantile(x, x.dtype.type(0.3))),
    "nanquantile": ("holes", "x:nanquantile(0.3)",
                    lambda x: np.nanquantile(x, x.dtype.type(0.3))),
    "median": ("normal", "x:median()", np.median),
    "nanmedian": ("holes", "x:nanmedian()", np.nanmedian),
    "histogram": ("normal", "nacre.histogram(x, 100)",
                  lambda x: np.histogram(x, 100)),
    "histc": ("normal", "x:histc(100)", lambda x: np.histogram(x, 100)),
    "msort": ("normal", "x:msort()", np.sort),
    "msort, uniform": ("uniform", "x:msort()", np.sort),
}


def holes(x):
    x[::100] = np.nan
    return x


class Ours(Program):
    def __init__(self, options):
        super().__init__(
            options.nacre, HERE / "order_bench.lua", options.size,
            options.threads, options.dtype,
            "processor" if options.processor else "wall")

    def memory(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f
                        if line.startswith(name))


def measure(options, case):
    """Times of both sides, and our peak of memory over that of the data."""
    data, ours, theirs = CASES[case]
    side = Ours(options)
    empty = side.memory("VmRSS")
    make, numpys = DATA[data]
    side.ask(f"data {make}")
    with open(f"/proc/{side.process.pid}/clear_refs", "w") as f:
        f.write("5")          # the peak starts again
    x = numpys(np.random.default_rng(1), options.size, np.dtype(options.dtype))
    clock = time.process_time if options.processor else time.perf_counter
    times = [[], []]
    for turn in range(options.turns + 1):
        seconds = side.ask(f"run {ours}")
        start = clock()
        theirs(x)
        if turn > 0:
            times[0].append(seconds)
            times[1].append(clock() - start)
    peak = (side.memory("VmHWM") - empty) / x.nbytes
    side.end()
    return times, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nacre")
    parser.add_argument("--size", type=lambda s: int(float(s)),
                        default=10**8)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_intermixed_args()
    at_least_two_turns(parser, options)
    print("|  | Nacre | NumPy | Nacre / NumPy | quartiles | memory |")
    print("|---|---:|---:|---:|---:|---:|")
    for case in options.cases or CASES:
        times, peak = measure(options, case)
        print_row(f"`{case}`", times, "s", [f"{peak:.2f}"])


if __name__ == "__main__":
    main()
