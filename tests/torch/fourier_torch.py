# SPDX-License-Identifier: MIT
"""torch.fft, stft, istft and windows against PyTorch: lengths, dimensions,
norms, values and gradients.
Run by: fourier_torch.py NACRE [--seed N] [--device cuda:0]"""
import argparse
import random
import sys

from complex_torch import Cases, numbers, torch
from lua_text import lua

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
REAL = {"rfft", "ihfft"}                    # take real numbers
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 16, 30, 31, 64]
WINDOWS = {
    "bartlett": {}, "blackman": {}, "nuttall": {}, "hann": {}, "hamming": {},
    "cosine": {}, "general_hamming": {"alpha": 0.6}, "gaussian": {"std": 1.5},
    "exponential": {"tau": 2.0}, "kaiser": {"beta": 8.0}}
OLDER = ["hann_window", "hamming_window", "blackman_window", "bartlett_window",
         "kaiser_window"]


def reshaped(shape, real):
    """An operand of this shape from the vector a, in both languages"""
    size = 1
    for n in shape:
        size *= n
    text = "a" + (".real" if real else "") + f":view({lua(shape)})"
    return size, text, lambda a: (a.real if real else a).view(shape)


def add(cases, r, name, shape, options, f, real):
    size, text, view = reshaped(shape, real)
    z = [[complex(r.uniform(-1, 1), r.uniform(-1, 1)) for _ in range(size)]]
    code = f"nacre.{name}({text}, {lua(options)})"
    call = lambda a: f(view(a))
    dtype = r.choice(["complex64", "complex128"])
    cases.value(code, dtype, z, code, call)
    cases.gradient(code, dtype, z, code, call, False)


def transforms(cases, r):
    for name in ONE:
        f = getattr(torch.fft, name)
        for _ in range(12):
            shape = [r.choice(LENGTHS)] if r.random() < 0.5 else \
                [r.randint(1, 6) for _ in range(3)]
            d = r.randrange(len(shape))
            if name in ("irfft", "hfft") and shape[d] == 1:
                shape[d] = 4
            options, given = {"dim": d + 1}, {"dim": d}
            if r.random() < 0.5:
                given["n"] = options["n"] = r.choice(LENGTHS)
            if r.random() < 0.7:
                norm = r.choice(["backward", "ortho", "forward"])
                given["norm"] = options["norm"] = norm
            add(cases, r, f"fft.{name}", shape, options,
                lambda x, f=f, given=given: f(x, **given), name in REAL)
    for name in ONE:
        for ending in ("2", "n"):
            f = getattr(torch.fft, name + ending)
            for _ in range(5):
                shape = [r.randint(2, 5) for _ in range(3)]
                options, given = {}, {}
                if r.random() < 0.5:
                    dims = r.sample(range(3), 2)
                    given["dim"] = dims
                    options["dim"] = [d + 1 for d in dims]
                    if r.random() < 0.5:
                        given["s"] = options["s"] = [r.randint(2, 6)
                                                     for _ in dims]
                norm = r.choice(["backward", "ortho", "forward"])
                given["norm"] = options["norm"] = norm
                add(cases, r, f"fft.{name}{ending}", shape, options,
                    lambda x, f=f, given=given: f(x, **given), name in REAL)


def spectrograms(cases, r):
    for n_fft, length in ((8, 40), (9, 50), (16, 64)):
        for options in ({}, {"hop_length": 3}, {"win_length": 6},
                        {"normalized": True}, {"onesided": False},
                        {"center": False, "hop_length": 2}):
            given = dict(options, n_fft=n_fft, return_complex=True)
            win = given.get("win_length", n_fft)
            w = torch.hann_window(win, dtype=torch.float64)
            text = f'nacre.hann_window({win}, {{dtype = "float64"}})'
            code = ("nacre.stft(a.real, " + lua(dict(options, n_fft=n_fft))[:-1]
                    + f", window = {text}}})")
            z = [[complex(r.uniform(-1, 1), 0) for _ in range(length)]]
            def forward(a, given=given, w=w):
                return torch.stft(a.real, window=w, **given)
            cases.value(code, "complex128", z, code, forward)
            cases.gradient(code, "complex128", z, code, forward, False)
            if options.get("center", True) is False:
                continue                 # a hann window begins with 0
            back = dict(given)
            del back["return_complex"]
            code2 = (f"nacre.istft({code}, " + lua(dict(options, n_fft=n_fft))
                     [:-1] + f", window = {text}}})")
            def both(a, given=given, back=back, w=w):
                return torch.istft(torch.stft(a.real, window=w, **given),
                                   window=w, **back)
            cases.value(code2, "complex128", z, code2, both)
            cases.gradient(code2, "complex128", z, code2, both, False)


def windows(cases):
    signal = getattr(torch, "signal", None)
    for name, options in WINDOWS.items():
        f = getattr(signal.windows, name, None) if signal else None
        for m in (0, 1, 2, 7, 12):
            for sym in (True, False):
                if f is None or (name == "exponential" and not sym):
                    continue
                given = dict(options, sym=sym)
                code = (f"nacre.signal.windows.{name}({m}, "
                        + lua(dict(given, dtype="float64")) + ")")
                want = f(m, dtype=torch.float64, **given)
                cases.line(code, "complex128", [], f"show({code})",
                           numbers(want))
    for name in OLDER:
        for m in (1, 2, 9):
            for periodic in (True, False):
                code = f'nacre.{name}({m}, {lua(periodic)}, ' \
                       '{dtype = "float64"})'
                want = getattr(torch, name)(m, periodic, dtype=torch.float64)
                cases.line(code, "complex128", [], f"show({code})",
                           numbers(want))


def rest(cases):
    for n in (1, 2, 5, 8):
        for name in ("fftfreq", "rfftfreq"):
            code = f'nacre.fft.{name}({n}, 0.25, {{dtype = "float64"}})'
            cases.line(code, "complex128", [], f"show({code})", numbers(
                getattr(torch.fft, name)(n, 0.25, dtype=torch.float64)))
        for name in ("fftshift", "ifftshift"):
            code = f"nacre.fft.{name}(nacre.arange({2 * n}):view({n}, 2))"
            cases.line(code, "complex128", [], f"show({code})", numbers(
                getattr(torch.fft, name)(torch.arange(2 * n).view(n, 2))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    r = random.Random(args.seed)
    cases = Cases(args.device)
    transforms(cases, r)
    spectrograms(cases, r)
    windows(cases)
    rest(cases)
    return 1 if cases.check(args.nacre) else 0


if __name__ == "__main__":
    sys.exit(main())
