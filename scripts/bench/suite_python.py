#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other side of suite.py: PyTorch, NumPy and what else is compared.

    suite_python.py torch|compile|raw|numpy|numexpr|cupy THREADS FOLDER DEVICE

The requests and the answers are those of suite.lua. Line ends within a text
come as vertical tabs. compile: PyTorch, with the function f of the row given to
torch.compile; raw: copies by CUDA, between tensors of PyTorch.
"""
import ctypes
import importlib
import math
import os
import statistics
import sys
import time

KIND, THREADS, FOLDER, DEVICE = sys.argv[1:]
BASE = {"normal": "float32", "whole": "int32"}
CACHE = 300e6
SAMPLES, WARMUPS = 5, 3


def body(name):
    """The bytes of the numbers in a file of NumPy's format."""
    with open(os.path.join(FOLDER, name + ".npy"), "rb") as f:
        text = f.read()
    return bytearray(text[10 + int.from_bytes(text[8:10], "little"):])


class Numpy:
    """What of NumPy differs from the others."""
    old = False                     # PyTorch 1 lacks some rows

    def __init__(self):
        self.lib = np = importlib.import_module("numpy")
        self.base = {}              # the numbers, when they are first needed
        self.words = {"np": np, "rng": np.random.default_rng(1)}

    def prepared(self, values):
        """Called after the setup of a row."""

    def all_numbers(self, kind):
        numbers = self.lib.frombuffer(body(kind), dtype=BASE[kind])
        return numbers.astype("int64") if kind == "whole" else numbers

    def numbers(self, kind, count, seed):
        if kind not in self.base:
            self.base[kind] = self.all_numbers(kind)
        base = self.base[kind]
        first = seed * 7919 % len(base)
        copies = -(-(first + count) // len(base))
        return self.lib.tile(base, (copies,))[first:first + count]

    def typed(self, x, dtype, size):
        return x.astype(dtype).reshape(size)

    def sampled(self, flat, step):
        """The mean, and every STEP-th element."""
        return (float(flat.mean(dtype="float64")),
                flat[::step].astype("float64").tolist())

    def summary(self, y):
        y = self.array(y)
        flat = y.reshape(-1)
        words = [str(y.dtype).replace("torch.", ""),
                 ",".join(str(n) for n in y.shape)]
        if len(flat) == 0:
            return words + [0.0]
        mean, some = self.sampled(flat, len(flat) // 1000 | 1)
        return words + [mean] + some

    def array(self, y):
        return self.lib.asarray(y)

    def drop(self):
        """Gives memory of the row before back."""


class Numexpr(Numpy):
    def __init__(self):
        super().__init__()
        numexpr = importlib.import_module("numexpr")
        numexpr.set_num_threads(int(THREADS))
        self.words["numexpr"] = numexpr


class Torch(Numpy):
    def __init__(self):  # pylint: disable=super-init-not-called
        self.lib = torch = importlib.import_module("torch")
        self.old = not hasattr(torch, "compile")
        torch.set_num_threads(int(THREADS))
        torch.manual_seed(1)
        torch.backends.cudnn.benchmark = True
        self.base = {}
        self.words = {"torch": torch, "F": torch.nn.functional,
                      "nn": torch.nn, "linalg": torch.linalg,
                      "optim": torch.optim, "same": self.same, "raw": raw_copy}
        self.event = lambda: torch.cuda.Event(enable_timing=True)
        self.synchronize = lambda: torch.cuda.synchronize()

    def all_numbers(self, kind):
        return self.lib.frombuffer(body(kind),
                                   dtype=getattr(self.lib, BASE[kind]))

    def typed(self, x, dtype, size):
        return x.to(getattr(self.lib, dtype)).reshape(size).clone()

    def on_device(self, kind, dtype, limit, size):
        torch, there = self.lib, {"device": DEVICE}
        if kind == "pageable":
            return torch.randn(size)
        if kind == "pinned":
            return torch.randn(size).pin_memory()
        if kind == "bit":
            return torch.rand(size, **there) > 0.5
        if kind in ("whole", "position"):
            first = int(kind == "whole")
            x = torch.randint(first, limit + first, size, **there)
        else:
            x = torch.randn(size, **there)
        return x.to(getattr(torch, dtype), memory_format=torch.channels_last
                    if kind == "image" else torch.preserve_format)

    def bytes_of(self, x):
        return x.numel() * x.element_size()

    def elapsed(self, start, stop):
        return start.elapsed_time(stop)

    def same(self, net):
        """Gives a network the weights that it has on Nacre's side."""
        leaves = net.parameters() if hasattr(net, "parameters") else net
        for i, p in enumerate(leaves, 1):
            p.data.copy_(self.numbers("normal", p.numel(), i)
                         .reshape(p.shape) * 0.1)
        return net

    def array(self, y):
        return self.lib.as_tensor(y).detach()

    def sampled(self, flat, step):
        return flat.double().mean().item(), flat[::step].double().tolist()

    def drop(self):
        if DEVICE != "cpu":
            self.lib.cuda.empty_cache()
            self.lib.backends.cuda.matmul.allow_tf32 = False
            self.lib.use_deterministic_algorithms(False)


class Compiled(Torch):
    def prepared(self, values):
        values["f"] = self.lib.compile(values["f"])


class Cupy(Numpy):
    """CuPy, which has no bfloat16."""

    def __init__(self):  # pylint: disable=super-init-not-called
        self.lib = cp = importlib.import_module("cupy")
        self.words = {"cp": cp}
        self.event = lambda: cp.cuda.Event()
        self.elapsed = cp.cuda.get_elapsed_time
        self.synchronize = lambda: cp.cuda.Device().synchronize()

    def on_device(self, kind, dtype, limit, size):
        random = self.lib.random
        if kind == "bit":
            return random.random(size) > 0.5
        if kind in ("whole", "position"):
            first = int(kind == "whole")
            return random.randint(first, limit + first, size, dtype=dtype)
        return random.standard_normal(size, dtype=dtype)

    def bytes_of(self, x):
        return x.nbytes

    def drop(self):
        self.lib.get_default_memory_pool().free_all_blocks()


def raw_copy(to, source):
    """What a bare copy by CUDA takes."""
    torch = importlib.import_module("torch")
    status = cudart().cudaMemcpyAsync(
        ctypes.c_void_p(to.data_ptr()), ctypes.c_void_p(source.data_ptr()),
        ctypes.c_size_t(to.numel() * to.element_size()), 4,
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    if status:
        raise RuntimeError(f"cudaMemcpyAsync failed ({status})")
    return to


def cudart(found=[]):  # pylint: disable=dangerous-default-value
    names = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")
    while not found:
        if not names:
            raise RuntimeError("there is no libcudart")
        try:
            found.append(ctypes.CDLL(names[0]))
        except OSError:
            names = names[1:]
    return found[0]


LIBRARIES = {"torch": Torch, "compile": Compiled, "raw": Torch,
             "numpy": Numpy, "numexpr": Numexpr, "cupy": Cupy}


class Side:
    """Answers the requests."""

    def __init__(self):
        self.library = LIBRARIES[KIND]()
        self.values, self.timer, self.lets = {}, "", {}
        self.measured = self.run = None
        self.sets = []

    def row(self, n, dtype, timer, small):
        self.measured = self.run = None
        self.lets, self.sets, self.timer = {}, [], timer
        self.values = dict(self.library.words, n=int(n), dtype=dtype,
                           small=small == "small", folder=FOLDER)
        self.library.drop()
        return "ok"

    def let(self, name, kind, dtype, limit, sizes, seed):
        size = [int(n) for n in sizes.split(",") if n]
        self.lets[name] = (kind, dtype, int(limit), size)
        self.values[name] = (
            self.library.on_device(*self.lets[name]) if self.timer
            else self.on_cpu(*self.lets[name], int(seed)))
        return "ok"

    def on_cpu(self, kind, dtype, limit, size, seed):
        x = self.library.numbers("normal" if kind == "normal" else "whole",
                                 math.prod(size), seed)
        if kind in ("whole", "position"):
            x = x % limit + (kind == "whole")
        if kind == "bit":
            x = x % 2
        if kind == "positive":
            x = (x % 1000 + 1) / 500
        return self.library.typed(x, dtype, size)

    def setup(self, text):
        exec(text.replace("\v", "\n"), self.values)
        return "ok"

    def forward(self, text, _):
        self.library.prepared(self.values)
        names = ", ".join(self.lets)
        try:
            self.measured = eval("lambda: " + text, self.values)
            statement = "y_ = " + text
        except SyntaxError:             # it is a statement, and has no result
            statement = f"{text}; y_ = None"
        exec(f"def run_(calls_, {names}):\n for _ in range(calls_): {statement}"
             f"\n return y_", self.values)
        loop = self.values["run_"]
        operands = [{name: self.values[name] for name in self.lets}]
        if self.timer == "device":
            size = sum(map(self.library.bytes_of, operands[0].values()))
            while len(operands) < 16 and len(operands) * size <= CACHE:
                operands.append({name: self.library.on_device(*o)
                                 for name, o in self.lets.items()})
        self.sets = [lambda calls, o=o: loop(calls, **o) for o in operands]
        self.run = self.sets[0]
        return "ok"

    def gradient(self, names):
        leaves = [self.values[name].requires_grad_() for name in names.split()]
        forward, grad = self.measured, self.library.lib.autograd.grad

        def first():
            y = forward()
            return y[0] if isinstance(y, tuple) else y
        y = first()
        g = self.library.numbers("normal", y.numel(), 99).reshape(y.shape)
        g = g.clone()

        def run(calls):
            for _ in range(calls):
                y = grad(first(), leaves, g)
            return y
        self.measured, self.run = lambda: run(1), run
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
        timer = getattr(self, "time_" + (self.timer or "process"))
        return " ".join(f"{t:.9g}" for t in timer(int(calls)))

    def time_process(self, calls):
        wall, processor = time.perf_counter(), time.process_time()
        y = self.run(calls)
        processor = time.process_time() - processor
        wall = time.perf_counter() - wall
        del y
        return processor / calls, wall / calls

    def time_device(self, calls):
        library = self.library
        events = [(library.event(), library.event()) for _ in range(SAMPLES)]
        for k in range(WARMUPS):
            self.sets[k % len(self.sets)](calls)
        for k, (start, stop) in enumerate(events, WARMUPS):
            start.record()
            self.sets[k % len(self.sets)](calls)
            stop.record()
        library.synchronize()
        return [statistics.median(library.elapsed(*e) / 1e3 / calls
                                  for e in events)] * 2

    def time_host(self, calls):
        seconds = []
        for _ in range(SAMPLES + 2):
            self.library.synchronize()
            start = time.perf_counter()
            self.run(calls)
            seconds.append((time.perf_counter() - start) / calls)
        self.library.synchronize()
        return [statistics.median(seconds[2:])] * 2


def main():
    side = Side()
    print("ready", flush=True)
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
