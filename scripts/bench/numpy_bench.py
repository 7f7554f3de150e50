#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One turn of NumPy for scripts/bench.lua.

    numpy_bench.py CASES

The file has the number of elements, the calls of a sample and a statement a
line. Prints the seconds of one call of each (median of three samples after a
warm-up), timed as bench.lua times its own.
"""
import statistics
import sys
from time import perf_counter

import numpy as np

# The arrays are locals of the loop, as they are in Lua.
LOOP = """
def run(n, a, b, c, m):
    y = None
    start = perf_counter()
    for _ in range(n):
        {}
    return (perf_counter() - start) / n
"""


def main():
    with open(sys.argv[1], encoding="ascii") as f:
        size, calls, *statements = f.read().splitlines()
    rng = np.random.default_rng(1)
    a, b, c = (rng.random(int(size), np.float32) for _ in range(3))
    for statement in statements:
        scope = {"np": np, "perf_counter": perf_counter}
        exec(LOOP.format(statement), scope)
        samples = [scope["run"](int(calls), a, b, c, a > b)
                   for _ in range(4)]
        print(statistics.median(samples[1:]))


if __name__ == "__main__":
    main()
