#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares Nacre with PyTorch over random calls.

  diff_torch.py path/to/nacre [--seed N] [--cases N] [--only NAME]
                [--device NAME] [--verbose]

Of operations that opinfo_torch.py cannot compare, or not enough: each is one
function in a file torch_*.py beside this one, which draws a call from a Draw:
tensors of random dtype, shape and layout, and options. call() writes it in Lua
and makes it in PyTorch. Compared are dtype, shape, values, gradients, and
whether there is an error at all. A difference that has a reason stands in
diff_torch_known.txt; what is not there fails. With --device all tensors of
Nacre, and so its results, are there; PyTorch's stay on the CPU. Without torch
the test is skipped (77).
"""
import argparse
import collections
import importlib
import os
import re
import subprocess
import sys
import tempfile
import warnings
from string import ascii_lowercase

try:
    import numpy as np
    import torch
except ImportError:
    print("diff_torch: no Python module torch, skipped")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from lua_text import lua  # noqa: E402,F401  pylint: disable=C0413

INTS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
WIDE = ["float32", "float64"]
ALL = ["bool"] + INTS + FLOATS
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23,
       "float64": 2.0**-52}
LARGEST = {"float16": 65504, "bfloat16": 3e38, "float32": 3e38,
           "float64": 1e308}
OPERATIONS = {}


class Redraw(Exception):
    """What was drawn makes no call: another one is drawn."""


def operation(weight=1):
    """Enters a function Draw -> Case in the table."""
    def enter(f):
        OPERATIONS[f.__name__] = (f, weight)
        return f
    return enter


def name(dtype):
    return str(dtype).replace("torch.", "")


class Case:
    """text: Lua over a, b, c, ...; want: Python over the tensors.

    times: how many steps of the dtype a result may be off, relative to the
    largest of the result if `norm'; grad: may gradients be compared? second:
    compare those of the gradients.
    """
    second = False

    def __init__(self, text, inputs, want, times=8, grad=True, norm=False):
        self.text, self.inputs, self.want = text, inputs, want
        self.times, self.grad, self.norm = times, grad, norm
        self.views = [None] * len(inputs)

    def shown(self):
        kinds = [f"{name(t.dtype)}{list(t.shape)}" for t in self.inputs]
        return f"{self.text} of {', '.join(kinds)}"


def pytorch(name):
    """The function of PyTorch that has the name of one of Nacre."""
    space, _, last = name.rpartition(".")
    if space.endswith("linalg"):
        return getattr(torch.linalg, last)
    functional = torch.nn.functional
    if space.endswith("functional"):
        return getattr(functional, last)
    for space in torch, torch.special, torch.Tensor, functional:
        if hasattr(space, last):
            return getattr(space, last)
    raise AttributeError(name)


def writer(tensors):
    """A function that writes an argument in Lua and collects its tensors."""
    def written(v):
        if isinstance(v, torch.Tensor):
            tensors.append(v)
            return ascii_lowercase[len(tensors) - 1]
        if isinstance(v, (list, tuple)):
            return "{%s}" % ", ".join(written(x) for x in v)
        return lua(v)
    return written


def restored(v, tensors):
    """An argument with the next of `tensors', an iterator, for its own."""
    if isinstance(v, torch.Tensor):
        return next(tensors)
    if isinstance(v, (list, tuple)):
        return type(v)(restored(x, tensors) for x in v)
    return v


def call(name, *args, f=None, first=False, times=8, norm=False,
         grad=True, **options):
    """A call with the same arguments in Lua and in PyTorch.

    name: of a method of the first tensor or, with dots, of a function; f: what
    it is in PyTorch if not of the same name; args and options: numbers,
    tensors, lists; an option that is None is left out; first: only the first
    result is compared; times, norm, grad: of Case.
    """
    tensors = []
    written = writer(tensors)
    f = f or pytorch(name)
    options = {k: v for k, v in options.items() if v is not None}
    texts = [written(v) for v in args]
    named = ", ".join(f"{k} = {written(v)}" for k, v in options.items())
    texts += [f"{{{named}}}"] if named else []
    if "." not in name:
        name = f"{texts.pop(0)}:{name}"
    text = f"{name}({', '.join(texts)})"

    def want(*given):
        given = iter(given)
        y = f(*[restored(v, given) for v in args],
              **{k: restored(v, given) for k, v in options.items()})
        y = y if isinstance(y, (tuple, list)) else [y]
        return y[0] if first else y
    return Case(f"({text})" if first else text, tensors, want, times, grad,
                norm)


class Draw:
    """What the calls are made of."""
    def __init__(self, rng):
        self.rng = rng

    def integer(self, low, high):
        """low <= n <= high; low if there is none"""
        return int(self.rng.integers(low, max(low, high) + 1))

    def flag(self, p=0.5):
        return bool(self.rng.random() < p)

    def choice(self, values):
        return values[int(self.rng.integers(0, len(values)))]

    def shape(self, most=4, least=0, size=6, empty=0.05):
        nd = self.integer(least, most)
        return [0 if self.flag(empty) else self.integer(1, size)
                for _ in range(nd)]

    def broadcast(self, shape):
        """A shape that broadcasts with `shape'."""
        own = [1 if self.flag(0.3) else n for n in shape]
        return own[self.integer(0, len(own)):] if self.flag(0.3) else own

    def tensor(self, dtypes=ALL, shape=None, low=-10, high=10, special=0.15,
               ties=0.4, **kw):
        """Random elements; now and then nan and infinities, or many ties.
        dtypes: a list to choose from, one, or a tensor that has it."""
        if isinstance(dtypes, torch.Tensor):
            dtypes = name(dtypes.dtype)
        dtype = self.choice(dtypes) if isinstance(dtypes, list) else dtypes
        shape = self.shape(**kw) if shape is None else list(shape)
        rng = self.rng
        if dtype == "bool":
            return torch.from_numpy(np.array(rng.random(shape) < 0.5))
        if dtype in INTS:
            low = max(low, 0) if dtype == "uint8" else low
            return torch.from_numpy(np.array(
                rng.integers(int(low), int(high) + 1, shape))).to(
                    getattr(torch, dtype))
        a = np.array(rng.uniform(low, high, shape))
        if self.flag(ties):
            a = np.array(np.rint(a) + 0.0)
        if self.flag(special) and a.size:
            for v in rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0],
                                self.integer(1, 3)):
                a.flat[self.integer(0, a.size - 1)] = v
        return torch.from_numpy(a).to(getattr(torch, dtype))

    def layout(self, t):
        """(memory, Lua function): t strided, transposed or expanded."""
        way = self.integer(0, 5)
        nd = t.dim()
        if way == 1 and nd >= 2:
            i, j = (int(d) for d in self.rng.permutation(nd)[:2])
            return (t.transpose(i, j).contiguous(),
                    f"return t:transpose({i + 1}, {j + 1})")
        if way == 2 and nd >= 1:
            d = self.integer(0, nd - 1)
            memory = t.repeat_interleave(2, d)
            return memory, f"return t:slice({d + 1}, 1, -1, 2)"
        if way == 3 and nd >= 1 and t.numel() > 0:
            d = self.integer(0, nd - 1)
            memory = torch.cat([t, t], d)
            return memory, (f"return t:narrow({d + 1}, {t.shape[d] + 1}, "
                            f"{t.shape[d]})")
        return t, None


# ---- running


def has_gradient(t):
    return t.is_floating_point() or t.is_complex()


def loss(results):
    """A sum that tells the elements apart; None if none has a gradient."""
    total = None
    for y in results:
        if y.requires_grad:
            dtype = getattr(torch, PARTS.get(name(y.dtype), name(y.dtype)))
            w = torch.arange(y.numel(), dtype=dtype).reshape(y.shape) % 7 + 1
            part = (y * w).sum()
            if y.is_complex():
                part = part.real + 2 * part.imag
            total = part if total is None else total + part
    return total


def expected(case):
    """The results of PyTorch and its gradients, or the error."""
    given = [t.clone() for t in case.inputs]
    if case.grad:
        given = [t.requires_grad_() if has_gradient(t) else t
                 for t in given]
    results = case.want(*given)
    if not isinstance(results, (tuple, list)):
        results = [results]
    results = [r if isinstance(r, torch.Tensor) else torch.tensor(r)
               for r in results]
    if not case.grad:
        return results, []
    total = loss(results)
    if case.second and total is not None:
        leaves = [t for t in given if has_gradient(t)]
        total = loss(g for g in torch.autograd.grad(
            total, leaves, create_graph=True, allow_unused=True)
            if g is not None)
    if total is not None:
        total.backward()
    return ([r.detach() for r in results],
            [t.grad if has_gradient(t) else None for t in given])


HALVES = (torch.float16, torch.bfloat16)


def reference(case):
    """The same; what this PyTorch does not have for halves is done in
    float32."""
    try:
        return expected(case)
    except (RuntimeError, IndexError, ValueError, TypeError,
            NotImplementedError) as e:
        kept = [t.dtype for t in case.inputs if t.dtype in HALVES]
        if "not implemented for" not in str(e) or not kept:
            return e
        wide = Case(case.text, [t.float() if t.dtype in HALVES else t
                                for t in case.inputs], case.want,
                    grad=case.grad)
        try:
            results, grads = expected(wide)
        except (RuntimeError, IndexError, ValueError, TypeError) as other:
            return other
        return [r.to(kept[0]) if r.dtype == torch.float32 else r
                for r in results], grads


def make(rng, count, only):
    table = [(f, w) for n, (f, w) in OPERATIONS.items()
             if only is None or re.search(only, n)]
    weights = np.array([w for _, w in table], float)
    cases = []
    while len(cases) < count:
        f = table[rng.choice(len(table), p=weights / weights.sum())][0]
        draw = Draw(rng)
        try:
            case = f(draw)
        except Redraw:
            continue
        case.operation = f.__name__
        wide = all(t.dtype in (torch.float32, torch.float64)
                   for t in case.inputs if t.is_floating_point())
        finite = all(bool(torch.isfinite(t).all()) for t in case.inputs)
        case.grad = (case.grad and wide and finite and
                     (case.second or draw.flag(0.5)) and
                     any(t.is_floating_point() for t in case.inputs))
        case.laid = [draw.layout(t) for t in case.inputs]
        case.result = reference(case)
        cases.append(case)
    return cases


def write(cases, folder):
    files = 0
    with open(f"{folder}/cases.lua", "w", encoding="utf-8") as f:
        f.write("local cases = {}\n")
        for i, case in enumerate(cases):
            given = []
            for memory, view in case.laid:
                t = memory.float() if memory.dtype == torch.bfloat16 else memory
                np.save(f"{folder}/{files}.npy", t.numpy())
                given.append("{ file = %d%s%s }" % (
                    files,
                    ', dtype = "bfloat16"'
                    if memory.dtype == torch.bfloat16 else "",
                    f", view = function(t) {view} end" if view else ""))
                files += 1
            f.write("cases[%d] = { f = function(%s) return %s end, inputs = "
                    "{ %s }, grad = %s, second = %s }\n" % (
                        i + 1, ", ".join(ascii_lowercase[:len(given)]) or "_",
                        case.text, ", ".join(given), lua(case.grad),
                        lua(case.second)))
        f.write("return cases\n")


def run(args, folder):
    done = subprocess.run([args.nacre, "--device", args.device,
                           os.path.join(HERE, "diff_torch.lua"), folder],
                          stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"nacre ended with {done.returncode}: {done.stdout[-500:]}")
    return done.stdout.splitlines()


# ---- comparing

PARTS = {"complex64": "float32", "complex128": "float64"}


def values(got, want, dtype, times, norm):
    """Text of the first difference of two arrays, or None. Complex numbers are
    pairs in the last dimension, each as exact as the largest."""
    norm = norm or dtype in PARTS
    dtype = PARTS.get(dtype, dtype)
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, not {list(want.shape)}"
    if dtype not in EPS or times == 0:
        same = (got == want) | ((got != got) & (want != want))
    else:
        tolerance = EPS[dtype] * times
        floor = max(EPS[dtype], 1e-30 if dtype != "float16" else 6e-8)
        if norm and want.size:
            finite = np.abs(want[np.isfinite(want)])
            floor = max(floor, tolerance * finite.max() if finite.size else 0)
        with np.errstate(all="ignore"):
            same = np.isclose(got, want, tolerance, floor * max(1, times / 8),
                              equal_nan=True)
            large = LARGEST[dtype] * 0.98       # overflow lies within rounding
            same |= np.isinf(got) & (np.abs(want) > large) & (got * want > 0)
            same |= np.isinf(want) & (np.abs(got) > large) & (got * want > 0)
    if np.all(same):
        return None
    at = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(same)))
    got, want = (np.atleast_1d(a)[at].item() for a in (got, want))
    return f"{got!r}, not {want!r}, at {list(at)}"


def array(t):
    if t.is_complex():
        t = torch.view_as_real(t.resolve_conj())
    if t.is_floating_point():
        return t.double().numpy(force=True)
    return t.numpy()


def coarsest(case):
    """The float type of the inputs that has the fewest digits."""
    return max((PARTS.get(name(t.dtype), name(t.dtype)) for t in case.inputs
                if has_gradient(t)), key=lambda dtype: EPS[dtype])


def loaded(path):
    a = np.load(path)
    if a.dtype.kind == "c":
        a = np.stack((a.real, a.imag), -1)
    return a.astype("float64") if a.dtype.kind == "f" else a


def differs(case, line, i, folder):
    """Text of the first difference, or None."""
    if isinstance(case.result, Exception):
        why = str(case.result).split("\n")[0][:120]
        return f"no error, PyTorch says: {why}" if line.startswith("ok") \
            else None
    if not line.startswith("ok"):
        return line
    results, grads = case.result
    dtypes = line.split()[1:]
    if len(dtypes) != len(results):
        return f"{len(dtypes)} results, not {len(results)}"
    for k, want in enumerate(results):
        if dtypes[k] != name(want.dtype):
            return f"result {k + 1} is {dtypes[k]}, not {name(want.dtype)}"
        why = values(loaded(f"{folder}/out{i + 1}_{k + 1}.npy"), array(want),
                     dtypes[k], case.times, case.norm)
        if why:
            return f"result {k + 1}: {why}"
    for k, want in enumerate(grads if line.startswith("ok+") else []):
        path = f"{folder}/grad{i + 1}_{k + 1}.npy"
        if want is None or not os.path.exists(path):
            if want is not None and bool((want != 0).any()):
                return f"no gradient of input {k + 1}"
            continue
        got = loaded(path)
        why = values(got, array(want), coarsest(case), case.times * 8, True)
        if why and case.second:         # which may cancel to nothing
            want = array(want)
            why = None if got.shape == want.shape and np.allclose(
                got, want, 1e-7, 1e-9, equal_nan=True) else why
        if why:
            return f"gradient of input {k + 1}: {why}"
    return None


def known(name):
    """The patterns of NAME_known.txt for this PyTorch: what follows " # " is
    the reason, which "PyTorch 1: " begins if others need no excuse."""
    path = os.path.join(HERE, name + "_known.txt")
    with open(path, encoding="utf-8") as f:
        lines = [line.split(" # ") for line in f
                 if line.strip() and not line.startswith("#")]
    return [re.compile(pattern.strip()) for pattern, reason in lines
            if not reason.startswith("PyTorch 1: ") or
            torch.__version__.startswith("1.")]


def compare(name, args, cases, judge):
    """Runs the cases; how many differ for a known reason. Ends the program if
    one differs for another."""
    failed = excused = 0
    reasons = known(name)
    used = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        write(cases, folder)
        lines = run(args, folder)
        for i, case in enumerate(cases):
            why = judge(case, lines[i] if i < len(lines) else "no answer", i,
                        folder)
            if why is None:
                continue
            text = f"{case.operation}: {case.shown()}: {why}"
            reason = next((p for p in reasons if p.search(text)), None)
            if reason:
                excused += 1
                used[reason.pattern] += 1
                continue
            failed += 1
            if failed <= 25 or args.verbose:
                print(f"FAILED (case {i}): {text}")
    for pattern, count in used.most_common() if args.verbose else []:
        print(f"{count:6} excused by {pattern}")
    if failed:
        sys.exit(f"{name}: {failed} of {len(cases)} cases differ; repeat with "
                 f"--seed {args.seed} --cases {args.cases} "
                 f"--device {args.device}")
    return excused


def arguments(cases):
    """The arguments that all such comparisons have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--only", help="operations whose name matches")
    parser.add_argument("--device", default="cpu",
                        help="where Nacre's tensors are")
    parser.add_argument("--verbose", action="store_true")
    return parser


def main():
    parser = arguments(2000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for file in sorted(os.listdir(HERE)):
        if re.fullmatch(r"torch_\w+\.py", file):
            importlib.import_module(file[:-3])
    cases = make(np.random.default_rng(args.seed), args.cases, args.only)
    errors = sum(isinstance(case.result, Exception) for case in cases)
    excused = compare("diff_torch", args, cases, differs)
    print(f"diff_torch: {len(cases)} cases of {len(OPERATIONS)} operations "
          f"agree with PyTorch {torch.__version__} ({errors} of them in being "
          f"errors, {excused} differ for a known reason)")


if __name__ == "__main__":
    sys.modules["diff_torch"] = sys.modules["__main__"]
    main()
