#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's and NumPy's side of suite.py.

    suite_python.py torch|numpy THREADS FOLDER

The requests and the answers are those of suite.lua. Line
ends within a text come as vertical tabs.
"""
import importlib
import os
import sys
import time

KIND, THREADS, FOLDER = sys.argv[1:]
BASE = {"normal": "float32", "whole": "int32"}


def body(name):
    """The bytes of the numbers in a file of NumPy's format."""
    with open(os.path.join(FOLDER, name + ".npy"), "rb") as f:
        text = f.read()
    return bytearray(text[10 + int.from_bytes(text[8:10], "little"):])


class Torch:
    """What of PyTorch differs from NumPy."""

    def __init__(self):
        import torch
        self.lib = torch
        self.old = not hasattr(torch, "compile")   # PyTorch 1 lacks some rows
        torch.set_num_threads(int(THREADS))
        torch.manual_seed(1)
        self.base = {name: torch.frombuffer(body(name),
                                            dtype=getattr(torch, dtype))
                     for name, dtype in BASE.items()}
        self.words = {"torch": torch, "F": torch.nn.functional,
                      "nn": torch.nn, "linalg": torch.linalg,
                      "optim": torch.optim, "same": self.same}

    def numbers(self, kind, count, seed):
        base = self.base[kind]
        first = seed * 7919 % len(base)
        copies = -(-(first + count) // len(base))
        return base.tile(copies)[first:first + count]

    def typed(self, x, dtype, size):
        return x.to(getattr(self.lib, dtype)).reshape(size).clone()

    def same(self, net):
        """Gives a network the weights that it has on Nacre's side."""
        leaves = net.parameters() if hasattr(net, "parameters") else net
        for i, p in enumerate(leaves, 1):
            p.data.copy_(self.numbers("normal", p.numel(), i)
                         .reshape(p.shape) * 0.1)
        return net

    def summary(self, y):
        torch = self.lib
        y = torch.as_tensor(y).detach()
        flat = y.reshape(-1)
        count = len(flat)
        words = [str(y.dtype).replace("torch.", ""),
                 ",".join(str(n) for n in y.shape)]
        if count == 0:
            return words + [0.0]
        some = flat[::count // 1000 | 1].double().tolist()
        return words + [flat.double().mean().item()] + some


class Numpy(Torch):
    def __init__(self):
        np = importlib.import_module("numpy")
        self.lib, self.old = np, False
        self.base = {name: np.frombuffer(body(name), dtype=dtype)
                     for name, dtype in BASE.items()}
        self.base["whole"] = self.base["whole"].astype("int64")
        self.words = {"np": np, "rng": np.random.default_rng(1)}

    def numbers(self, kind, count, seed):
        base = self.base[kind]
        first = seed * 7919 % len(base)
        copies = -(-(first + count) // len(base))
        return self.lib.tile(base, copies)[first:first + count]

    def typed(self, x, dtype, size):
        return x.astype(dtype).reshape(size)

    def summary(self, y):
        np = self.lib
        y = np.asarray(y)
        flat = y.reshape(-1)
        count = len(flat)
        words = [str(y.dtype), ",".join(str(n) for n in y.shape)]
        if count == 0:
            return words + [0.0]
        some = flat[::count // 1000 | 1].astype("float64").tolist()
        return words + [float(flat.mean(dtype="float64"))] + some


class Side:
    def __init__(self):
        self.library = Torch() if KIND == "torch" else Numpy()
        self.values = {}
        self.measured = None

    def row(self, n):
        self.measured = None
        self.values = dict(self.library.words, n=int(n))
        return "ok"

    def let(self, name, kind, dtype, limit, sizes, seed):
        size = [int(n) for n in sizes.split(",") if n]
        count = 1
        for n in size:
            count *= n
        x = self.library.numbers("normal" if kind == "normal" else "whole",
                                 count, int(seed))
        if kind in ("whole", "position"):
            x = x % int(limit) + (kind == "whole")
        if kind == "positive":
            x = (x % 1000 + 1) / 500
        self.values[name] = self.library.typed(x, dtype, size)
        return "ok"

    def setup(self, text):
        exec(text.replace("\v", "\n"), self.values)
        return "ok"

    def forward(self, text):
        self.measured = eval("lambda: " + text, self.values)
        return "ok"

    def gradient(self, names):
        leaves = [self.values[name].requires_grad_() for name in names.split()]
        forward, grad = self.measured, self.library.lib.autograd.grad
        y = forward()
        g = self.library.numbers("normal", y.numel(), 99).reshape(y.shape)
        g = g.clone()
        self.measured = lambda: grad(forward(), leaves, g)
        return "ok"

    def check(self, count):
        results = self.measured()
        if not isinstance(results, (tuple, list)):
            results = [results]
        return "\t".join(
            " ".join(v if isinstance(v, str) else f"{v:.9g}"
                     for v in self.library.summary(y))
            for y in list(results)[:int(count)])

    def time(self, calls):
        f = self.measured
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(int(calls)):
            y = f()
        processor = time.process_time() - processor
        wall = time.perf_counter() - wall
        del y
        return f"{processor:.9g} {wall:.9g}"


def main():
    side = Side()
    for line in sys.stdin:
        word, *rest = line.rstrip("\n").split("\t")
        try:
            answer = getattr(side, word)(*rest)
        except Exception as e:               # the driver says which row it was
            kind = "absent" if side.library.old else "error"
            answer = f"{kind}: {type(e).__name__}: {e}".split("\n")[0]
        print(answer, flush=True)


if __name__ == "__main__":
    main()
