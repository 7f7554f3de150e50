#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random calls of operations that have NumPy's names, compared with NumPy's.

    tests/numpy/science_numpy.py build/nacre [seed [cases]]

Exits with 77 (skipped) where there is no NumPy.
"""
import os
import subprocess
import sys
import tempfile
import warnings

from numpy_or_skip import np

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 200
RNG = np.random.default_rng(SEED)
# Relative to the largest element.
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "int64": 0, "bool": 0}

SAVED = {}      # arrays that the calls take


def size(most=12):
    return int(RNG.integers(1, most + 1))


def keep(a):
    """The text of an array in Lua."""
    name = f"a{len(SAVED)}"
    SAVED[name] = a
    return f"d.{name}"


def floats(*shape):
    return RNG.standard_normal(shape).astype(RNG.choice(["f4", "f8"]))


def with_nan(*shape):
    a = floats(*shape)
    a[RNG.random(shape) < 0.3] = np.nan
    return a


def either(*shape):
    return floats(*shape) if RNG.random() < 0.7 else \
        RNG.integers(-9, 9, shape)


def convolution(name):
    a, v = either(size(40)), either(size(40))
    if RNG.random() < 0.3:
        a, v = floats(size(900)), floats(size(900))
    mode = str(RNG.choice(["full", "same", "valid"]))
    return f'nacre.{name}({keep(a)}, {keep(v)}, "{mode}")', \
        getattr(np, name)(a, v, mode)


def fftconvolve():
    nd = int(RNG.integers(1, 4))
    a, b = ([size(7) for _ in range(nd)] for _ in range(2))
    a, b = floats(*a), floats(*b)
    want = np.zeros([n + k - 1 for n, k in zip(a.shape, b.shape)],
                    np.promote_types(a.dtype, b.dtype))
    for at, x in np.ndenumerate(a):
        part = tuple(slice(i, i + k) for i, k in zip(at, b.shape))
        want[part] += x * b.astype(want.dtype)
    if RNG.random() < 0.5:
        return f"nacre.fftconvolve({keep(a)}, {keep(b)})", want
    part = tuple(slice((k - 1) // 2, (k - 1) // 2 + n)
                 for n, k in zip(a.shape, b.shape))
    return f'nacre.fftconvolve({keep(a)}, {keep(b)}, "same")', want[part]


def nan_reduction():
    name = str(RNG.choice(["nanmax", "nanmin", "nanvar", "nanstd", "nanprod",
                           "nansum", "nanmean"]))
    a = with_nan(size(5), size(6), size(4)) if RNG.random() < 0.8 else \
        floats(size(5), size(6), size(4))
    given = {}
    numpys = {}
    if RNG.random() < 0.7:
        axis = int(RNG.integers(3))
        given["dim"], numpys["axis"] = axis + 1, axis
        if RNG.random() < 0.5:
            given["keepdim"], numpys["keepdims"] = "true", True
    if name in ("nanvar", "nanstd"):
        numpys["ddof"] = given["correction"] = int(RNG.integers(2))
    options = ", ".join(f"{k} = {v}" for k, v in given.items())
    want = getattr(np, name)(a, **numpys)
    return f"{keep(a)}:{name}{{{options}}}", want


def nan_scan():
    name = str(RNG.choice(["nancumsum", "nancumprod"]))
    a, axis = with_nan(size(5), size(9)), int(RNG.integers(2))
    return f"{keep(a)}:{name}({axis + 1})", getattr(np, name)(a, axis)


def nan_position():
    name = str(RNG.choice(["nanargmax", "nanargmin"]))
    a = with_nan(size(5), size(9))
    a[:, 0] = 0.1
    return f"{keep(a)}:{name}(2)", getattr(np, name)(a, 1) + 1


def percentile():
    a = floats(size(9), size(9)).astype("f8")
    q = RNG.random(3) * 100
    name = str(RNG.choice(["percentile", "nanpercentile"]))
    if name[0] == "n":
        a[0] = np.nan if len(a) > 1 else a[0]
    how = str(RNG.choice(["linear", "lower", "higher", "midpoint"]))
    return f'{keep(a)}:{name}({keep(q)}, 1, {{interpolation = "{how}"}})', \
        getattr(np, name)(a, q, 0, method=how)


def interp():
    n = size()
    xp = np.cumsum(RNG.random(n) + 0.01)
    x, fp = RNG.random(size()) * n * 0.7 - 0.3, RNG.standard_normal(n)
    kind = RNG.integers(3)
    text = f"nacre.interp({keep(x)}, {keep(xp)}, {keep(fp)}"
    if kind == 0:
        return text + ")", np.interp(x, xp, fp)
    if kind == 1:
        return text + ", -3, 7.5)", np.interp(x, xp, fp, -3, 7.5)
    return text + ", {period = 2.5})", np.interp(x, xp, fp, period=2.5)


def gradient():
    shape = [int(RNG.integers(3, 8)) for _ in range(2)]
    a, order = floats(*shape).astype("f8"), int(RNG.integers(1, 3))
    axis = int(RNG.integers(2))
    if RNG.random() < 0.5:
        s = float(RNG.random() + 0.1)
        given = str(s)
    else:
        s = np.cumsum(RNG.random(shape[axis]) + 0.1)
        given = "{" + keep(s) + "}"
    return f"{keep(a)}:gradient({given}, {axis + 1}, {order})[1]", \
        np.gradient(a, s, axis=axis, edge_order=order)


def unwrap():
    a = np.cumsum(RNG.standard_normal((size(4), size(20))) * 3, 1)
    if RNG.random() < 0.5:
        return f"{keep(a)}:unwrap()", np.unwrap(a)
    return f"{keep(a)}:unwrap(3.5, 1, {{period = 5}})", \
        np.unwrap(a, 3.5, 0, period=5)


def polynomial():
    kind, p = RNG.integers(4), floats(size(6)).astype("f8")
    x = RNG.standard_normal(size(20) + 6)
    if kind == 0:
        return f"nacre.polyval({keep(p)}, {keep(x)})", np.polyval(p, x)
    if kind == 1:
        m = int(RNG.integers(4))
        return f"nacre.polyder({keep(p)}, {m})", \
            np.asarray(np.polyder(p, m)) if m < len(p) else np.zeros(0)
    if kind == 2:
        m = int(RNG.integers(3))
        return f"nacre.polyint({keep(p)}, {m})", np.polyint(p, m)
    y, degree = RNG.standard_normal(len(x)), int(RNG.integers(5))
    if RNG.random() < 0.5:
        return f"nacre.polyfit({keep(x)}, {keep(y)}, {degree})", \
            np.polyfit(x, y, degree)
    w = RNG.random(len(x)) + 0.1
    return f"nacre.polyfit({keep(x)}, {keep(y)}, {degree}, " \
        f"{{w = {keep(w)}}})", np.polyfit(x, y, degree, w=w)


def sets():
    name = str(RNG.choice(["union1d", "intersect1d", "setdiff1d",
                           "setxor1d"]))
    a, b = (RNG.integers(0, 12, size(15)) for _ in range(2))
    return f"nacre.{name}({keep(a)}, {keep(b)})", getattr(np, name)(a, b)


def bins():
    kind = RNG.integers(3)
    x = RNG.standard_normal(size(60) + 3)
    if kind == 0:
        edges = np.sort(RNG.standard_normal(size(8)))
        if RNG.random() < 0.5:
            edges = edges[::-1].copy()
        right = bool(RNG.random() < 0.5)
        return f"nacre.digitize({keep(x)}, {keep(edges)}, " \
            f"{str(right).lower()})", np.digitize(x, edges, right) + 1
    y = RNG.standard_normal(len(x))
    density = bool(RNG.random() < 0.5)
    more = f"density = {str(density).lower()}"
    if kind == 1:
        return f"(nacre.histogram2d({keep(x)}, {keep(y)}, {{4, 3}}, " \
            f"{{{more}}}))", np.histogram2d(x, y, [4, 3], density=density)[0]
    edges = np.array([-2.0, -0.5, 0.1, 3])
    return f"(nacre.histogram2d({keep(x)}, {keep(y)}, {keep(edges)}, " \
        f"{{{more}}}))", np.histogram2d(x, y, edges, density=density)[0]


def positions():
    shape = [size(5) for _ in range(3)]
    at = RNG.integers(0, np.prod(shape), 6)
    sizes = "{" + ", ".join(map(str, shape)) + "}"
    if RNG.random() < 0.5:
        return f"nacre.stack(nacre.unravel_index({keep(at + 1)}, {sizes}))", \
            np.stack(np.unravel_index(at, shape)) + 1
    places = [keep(p + 1) for p in np.unravel_index(at, shape)]
    return f"nacre.ravel_multi_index({{{', '.join(places)}}}, {sizes})", at + 1


def sequences():
    kind, a = RNG.integers(3), either(size(4), size(4))
    if kind == 0:
        return f"{keep(a)}:flatnonzero()", np.flatnonzero(a) + 1
    if kind == 1:
        return f"{keep(a)}:ediff1d()", np.ediff1d(a)
    n, first, last = size(9), RNG.random() + 0.1, RNG.random() * 99 + 0.1
    end = bool(RNG.random() < 0.5)
    return f'nacre.geomspace({first!r}, {last!r}, {n}, {{endpoint = ' \
        f'{str(end).lower()}, dtype = "float64"}})', \
        np.geomspace(first, last, n, endpoint=end)


def window():
    name = str(RNG.choice(["hamming", "blackman", "bartlett", "hanning"]))
    n = size(30)
    ours = "hann" if name == "hanning" else name
    if RNG.random() < 0.3:
        return f'nacre.kaiser_window({n}, false, 5.5, {{dtype = "float64"}})', \
            np.kaiser(n, 5.5)
    return f'nacre.{ours}_window({n}, false, {{dtype = "float64"}})', \
        getattr(np, name)(n)


def simpson():
    """Exact for parabolas."""
    n = int(RNG.integers(3, 12))
    x = np.cumsum(RNG.random(n) + 0.05)
    p = np.poly1d(RNG.standard_normal(3))
    area = p.integ()(x) - p.integ()(x[0])
    y = keep(p(x))
    if RNG.random() < 0.5:
        return f"{y}:simpson({keep(x)})", area[-1]
    return f"{y}:cumulative_simpson({keep(x)})", area[1:]


KINDS = [lambda: convolution("convolve"), lambda: convolution("correlate"),
         fftconvolve, nan_reduction, nan_reduction, nan_scan, nan_position,
         percentile, interp, gradient, unwrap, polynomial, polynomial, sets,
         bins, positions, sequences, window, simpson]


def compare(text, got, want):
    """What is wrong, or None."""
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if not (np.isnan(got) == np.isnan(want)).all():
        return f"{got}, not {want}"
    off = np.nan_to_num(np.abs(got.astype("f8") - want))
    scale = np.nan_to_num(np.abs(want.astype("f8"))).max(initial=1)
    limit = TOLERANCE[str(got.dtype)] * scale
    return None if off.max(initial=0) <= limit else f"{got}, not {want}"


def main():
    warnings.filterwarnings("ignore")
    cases = [KINDS[i % len(KINDS)]() for i in range(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        given, out = os.path.join(folder, "in.npz"), os.path.join(folder, "o")
        np.savez(given, **SAVED)
        text = f'local d, out = nacre.load("{given}"), {{}}\n'
        for i, (call, _) in enumerate(cases):
            text += f"do local ok, y = pcall(function() return {call} end)\n" \
                f"if ok then out.y{i} = y else print({i}, y) end end\n"
        text += f'nacre.save("{out}.npz", out)\n'
        done = subprocess.run([sys.argv[1], "-"], input=text, text=True,
                              capture_output=True, check=False)
        bad = 0
        if done.returncode != 0:
            sys.exit(done.stderr)
        sys.stdout.write(done.stdout)
        got = np.load(out + ".npz")
        for i, (call, want) in enumerate(cases):
            wrong = compare(call, got[f"y{i}"], want) if f"y{i}" in got else \
                "failed"
            if wrong:
                bad += 1
                print(f"seed {SEED}, case {i}: {call}: {wrong}")
    print(f"science_numpy: {len(cases)} calls, {bad} differ")
    sys.exit(bad > 0)


main()
