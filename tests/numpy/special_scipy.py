#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares nacre.special with scipy.special in float64.

    tests/numpy/special_scipy.py build/nacre [seed]

At random points, relative to the result, or, of functions that oscillate, to
their largest value near by. Exits with 77 (skipped) where there is no SciPy.
"""
import os
import sys

from numpy_or_skip import np

try:
    from scipy import special
except ImportError:
    print("no SciPy: skipped")
    sys.exit(77)

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import lua, run  # noqa: E402  pylint: disable=C0413

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ULP = 2.0 ** -52
COUNT = 400

# name: (function, lowest and highest x, tolerance in ulp, of the size 1?)
ONE = {
    "bessel_j0": (special.j0, -60, 60, 8, True),
    "bessel_j1": (special.j1, -60, 60, 8, True),
    "bessel_y0": (special.y0, 1e-3, 60, 8, True),
    "bessel_y1": (special.y1, 0.1, 60, 16, True),
    "modified_bessel_i0": (special.i0, -50, 50, 8, False),
    "modified_bessel_i1": (special.i1, -50, 50, 8, False),
    "modified_bessel_k0": (special.k0, 1e-6, 300, 8, False),
    "modified_bessel_k1": (special.k1, 1e-6, 300, 8, False),
    "scaled_modified_bessel_k0": (special.k0e, 1e-6, 1e4, 8, False),
    "scaled_modified_bessel_k1": (special.k1e, 1e-6, 1e4, 8, False),
    "spherical_bessel_j0": (lambda x: special.spherical_jn(0, x), 0, 60, 4,
                            True),
    "airy_ai": (lambda x: special.airy(x)[0], -20, 20, 32, True),
    "erfcx": (special.erfcx, -2, 100, 8, False),
    "ndtr": (special.ndtr, -5, 10, 32, False),
    "log_ndtr": (special.log_ndtr, -1e3, 5, 8, False),
    "ndtri": (special.ndtri, 1e-9, 1, 64, False),
    "entr": (special.entr, 0, 20, 8, True),
    "expit": (special.expit, -30, 30, 8, False),
    "gammaln": (special.gammaln, 0.1, 200, 16, True),
    "psi": (special.psi, 0.1, 200, 16, True),
    "log1p": (np.log1p, -0.9, 20, 4, False),
    "sinc": (np.sinc, -20, 20, 4, True),
}
# name: (function, ranges of both operands, tolerance)
TWO = {
    "gammainc": (special.gammainc, (1e-3, 100), (1, 200), 1000),
    "gammaincc": (special.gammaincc, (1e-3, 100), (1, 100), 1000),
    "zeta": (special.zeta, (1.1, 20), (0.1, 30), 16),
    "xlogy": (special.xlogy, (0, 20), (0.1, 20), 8),
    "xlog1py": (special.xlog1py, (0, 20), (0, 20), 8),
}
POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}

PRINT = """
local function show(t)
  for _, v in ipairs(t:reshape(-1):totable()) do print(("%.17g"):format(v)) end
end
local function wide(list) return nacre.tensor(list, {dtype = "float64"}) end
"""


def cases(rng):
    """(name, what is called in Lua, expected values, sizes, tolerance)"""
    for name, (f, low, high, ulps, unit) in ONE.items():
        x = rng.uniform(low, high, COUNT)
        want = f(x)
        size = np.maximum(np.abs(want), 1 if unit else 0)
        yield name, f"{name}(wide {lua(x.tolist())})", want, size, ulps
    for name, (f, first, second, ulps) in TWO.items():
        a, b = rng.uniform(*first, COUNT), rng.uniform(*second, COUNT)
        want = f(a, b)
        text = f"{name}(wide {lua(a.tolist())}, wide {lua(b.tolist())})"
        yield name, text, want, np.abs(want), ulps
    for name, f in POLYNOMIALS.items():
        low = 0 if name.startswith(("sh", "la")) else -1
        x, n = rng.uniform(low, 1, 50), rng.integers(0, 30, 50)
        want = f(n, x)
        size = np.maximum(np.abs(want), np.abs(f(n, 1.0)))
        text = (f"{name}(wide {lua(x.tolist())}, "
                f"nacre.tensor({lua(n.tolist())}))")
        yield name, text, want, size, 256


def main():
    wrong = 0
    listed = list(cases(np.random.default_rng(SEED)))
    text = PRINT + "\n".join(f"show(nacre.special.{code})"
                             for _, code, _, _, _ in listed)
    got = np.array([float(v) for v in run(sys.argv[1], text).split()])
    at = 0
    for name, _, want, size, ulps in listed:
        have = got[at:at + len(want)]
        at += len(want)
        off = np.abs(have - want) / np.maximum(size * ULP, 1e-300)
        if not np.all(off <= ulps):
            k = int(np.nanargmax(off)) if not np.isnan(off).all() else 0
            print(f"{name}: {have[k]!r}, not {want[k]!r}: {off[k]:.3g} ulp, "
                  f"{ulps} are allowed")
            wrong += 1
    if wrong:
        sys.exit(f"special_scipy: {wrong} of {len(listed)} functions differ")
    print(f"special_scipy: {len(listed)} functions agree with SciPy")


if __name__ == "__main__":
    main()
