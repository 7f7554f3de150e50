# SPDX-License-Identifier: MIT
"""The processes that suite.py lets take turns."""
import array
import functools
import os
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
NUMBERS = (1 << 20) + 7         # operands are cut from this many numbers
NAMES = {"nacre": "Nacre", "other": "other build", "unfused": "unfused",
         "torch": "PyTorch", "compile": "torch.compile", "numpy": "NumPy",
         "numexpr": "numexpr", "cupy": "CuPy", "raw": "cudaMemcpyAsync"}
OURS = ("nacre", "other", "unfused")
MODULES = {"compile": "torch", "raw": "torch"}   # the others have their name


class Failure(Exception):
    """A side could not do what it was asked."""


class Absent(Failure):
    """An old library does not have what the row needs."""


class Side:
    """A process that prepares rows and times them."""

    def __init__(self, name, command, threads):
        self.name, self.command = name, [str(word) for word in command]
        self.environment = {
            k: v for k, v in os.environ.items()
            if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        for library in ("OMP", "OPENBLAS", "MKL"):
            self.environment[library + "_NUM_THREADS"] = str(threads)
        self.process, self.empty = None, 0

    def start(self):
        if self.process:
            return
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=self.environment)
        greeting = self.process.stdout.readline().strip()
        if greeting != "ready":
            sys.exit(f"{self.name}: {greeting or 'it does not start'}")

    def end(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None

    def request(self, *words):
        self.start()
        text = "\t".join(str(word) for word in words).replace("\n", "\v")
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().rstrip("\n")
        except OSError:
            answer = ""
        if not answer:
            status = self.process.wait()
            self.process = None         # the other rows may go well
            raise Failure(f"{self.name} ended with {status}")
        for kind, error in (("error: ", Failure), ("absent: ", Absent)):
            if answer.startswith(kind):
                raise error(f"{self.name}: {answer[len(kind):]}")
        return answer

    def prepare(self, row, n, options):
        """Makes the operands; then the row can be checked and timed."""
        self.start()
        self.empty = self.memory("VmRSS")   # of a process that is fresh
        self.request("row", n, options.dtype, row.timer,
                     "small" if options.small else "")
        lets = row.lets(n, options.dtype, options.small)
        for seed, (name, kind, dtype, limit, size) in enumerate(lets, 1):
            self.request("let", name, kind, dtype, limit,
                         ",".join(str(k) for k in size), seed)
        setup = row.setup[self.name not in OURS]
        if setup:
            self.request("setup", setup)
        self.request("forward", self.text(row), "keeps" if row.keeps else "")

    def text(self, row):
        return row.sides["nacre" if self.name == "other" else self.name]

    def time(self, row, calls):
        """Seconds of a call, the processor's and the wall's."""
        if row.timer == "process":
            return [self.process_time(row)] * 2
        if row.fresh:
            self.collect()
        return [float(t) for t in self.request("time", calls).split()]

    def process_time(self, row):
        flag = "-e" if self.name in OURS else "-c"
        start = time.perf_counter()
        text = self.text(row).replace("DEVICE", self.command[-1])
        done = subprocess.run([self.command[0], flag, text],
                              env=self.environment, check=False, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise Failure(f"{self.name}: {done.stderr.strip()[-200:]}")
        return time.perf_counter() - start

    #
    # Memory
    #
    def collect(self):
        if self.name in OURS:
            self.request("collect")

    def memory(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f
                        if line.startswith(name))

    def forget_peak(self):
        path = f"/proc/{self.process.pid}/clear_refs"
        with open(path, "w", encoding="ascii") as f:
            f.write("5")


def sides(options, folder, threads):
    """All that there may be, by name; none is started yet."""
    device = options.device if options.on_device else "cpu"
    words = [threads, folder, device]
    found = {name: Side(name, [program, HERE / "suite.lua", *words], threads)
             for name, program in zip(OURS, (options.nacre, options.other,
                                             options.nacre))}
    for name in NAMES:
        if name not in OURS:
            found[name] = Side(name, [sys.executable,
                                      HERE / "suite_python.py", name, *words],
                               threads)
    return found


@functools.cache
def has(name, device):
    """Can this rival be measured, on this device?"""
    if name in OURS:
        return True
    module = MODULES.get(name, name)
    found = {"torch": "assert torch.cuda.is_available()",
             "cupy": "assert cupy.cuda.runtime.getDeviceCount()"}
    text = found.get(module, "") if device else ""
    return subprocess.run([sys.executable, "-c", f"import {module}\n{text}"],
                          capture_output=True, check=False).returncode == 0


@functools.cache
def library_version(name):
    name = MODULES.get(name, name)
    return subprocess.run(
        [sys.executable, "-c", f"import {name}; print({name}.__version__)"],
        text=True, capture_output=True, check=True).stdout.strip()


def write_numbers(folder):
    """What all operands are made of, as files in NumPy's format."""
    source = random.Random(1)
    normal = array.array("f", (source.gauss(0, 1) for _ in range(NUMBERS)))
    whole = array.array("i")
    whole.frombytes(source.randbytes(4 * NUMBERS))
    whole = array.array("i", (n & 0x7fffffff for n in whole))
    for name, dtype, data in (("normal", "<f4", normal),
                              ("whole", "<i4", whole)):
        head = (f"{{'descr': '{dtype}', 'fortran_order': False, "
                f"'shape': ({NUMBERS},), }}")
        head = head.ljust(117) + "\n"
        with open(os.path.join(folder, name + ".npy"), "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little"))
            f.write(head.encode("ascii") + data.tobytes())
