# SPDX-License-Identifier: MIT
"""Quantiles, histograms and sorting of 1e8 elements beside NumPy: time, and the
peak of the memory over that of the data, the data with it.

Each side draws its own numbers; every hundredth element of holes is nan. NumPy
uses one thread. It has no histc and is compared with histogram.
"""
from suite_rows import Group

row = Group("large order", fresh="row", turns=7, tolerance=1e-2, results=0,
            torch="", shown=("quartiles", "memory"))
UNIFORM = ("x = nacre.rand(n, {dtype = dtype})", "x = rng.random(n, dtype)")
NORMAL = ("x = nacre.randn(n, {dtype = dtype})",
          "x = rng.standard_normal(n, dtype)")
HOLES = (NORMAL[0] + ":index_fill_(1, nacre.arange(1, n + 1, 100), 0/0)",
         NORMAL[1] + "\nx[::100] = np.nan")
N = 10**8

row("quantile", N, "", "x:quantile(0.3)", setup=NORMAL,
    numpy="np.quantile(x, x.dtype.type(0.3))")
row("nanquantile", N, "", "x:nanquantile(0.3)", setup=HOLES,
    numpy="np.nanquantile(x, x.dtype.type(0.3))")
row("median", N, "", "x:median()", setup=NORMAL, numpy="np.median(x)")
row("nanmedian", N, "", "x:nanmedian()", setup=HOLES, numpy="np.nanmedian(x)")
row("histogram", N, "", "nacre.histogram(x, 100)", setup=NORMAL,
    numpy="np.histogram(x, 100)")
row("histc", N, "", "x:histc(100)", setup=NORMAL,
    numpy="np.histogram(x, 100)[0]")
row("msort", N, "", "x:msort()", setup=NORMAL, numpy="np.sort(x)")
row("msort, uniform", N, "", "x:msort()", setup=UNIFORM, numpy="np.sort(x)")
