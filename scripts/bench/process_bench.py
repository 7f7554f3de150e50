#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What Nacre promises of its start, its memory and Ctrl-C, as Markdown.

    process_bench.py NACRE [--quick] [PART...]

Parts: start memory interrupt, all if none is named; torch, installed.

start: from the call to the end of a program that does nothing; the runs
alternate. memory: a loop of c = a + b. interrupt: from Ctrl-C at a terminal,
during one long operation, to the next prompt. torch: the start and the peak of
the resident memory, of Nacre and of this Python with PyTorch and IPython.
installed: the bytes of the files that `cmake --install` of the program's build
folder writes, and of those of PyTorch's packages. --quick takes few and small
samples, to see that it works; its figures mean nothing. What is promised beside
NumPy is a subject of suite.py: numpy.
"""
import argparse
import importlib.util
from importlib import metadata
import os
import pathlib
import pty
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from suite_report import duration, machine_lines, table

LOOP = pathlib.Path(__file__).parent / "loop.lua"
MIB = 1 << 20


def loop(nacre, *words):
    """The numbers that loop.lua prints."""
    said = subprocess.run([nacre, LOOP, *map(str, words)], check=True,
                          text=True, capture_output=True).stdout
    return [float(line) for line in said.split()]


def verdict(met):
    return "yes" if met else "**no**"


def show(title, head, rows):
    print(f"\n## {title}\n")
    print("\n".join(table(head, rows)), end="", flush=True)


def start_and_peak(command):
    """Seconds to the end, and bytes: at least those of this process."""
    begin = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0)
             for fd in (0, 1, 2)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (command, status)
    return time.perf_counter() - begin, 1024 * usage.ru_maxrss


def at_the_prompt(nacre):
    """Seconds to the first prompt, and bytes there."""
    begin = time.perf_counter()
    shell = Shell(nacre)
    elapsed = time.perf_counter() - begin
    with open(f"/proc/{shell.pid}/status", encoding="ascii") as f:
        peak = int(re.search(r"VmHWM:\s*(\d+) kB", f.read()).group(1))
    shell.close()
    return elapsed, 1024 * peak


def alternate(programs, runs):
    """The medians of the time and of the peak, by name; the runs alternate."""
    samples = {name: [] for name in programs}
    for turn in range(runs + 1):
        for name, measure in programs.items():
            sample = measure()
            if turn > 0:              # the first one reads the files
                samples[name].append(sample)
    return {name: [statistics.median(v) for v in zip(*values)]
            for name, values in samples.items()}


def start(nacre, quick):
    programs = {"`nacre -e ''`": [nacre, "-e", ""]}
    for name, *words in (("lua5.4", "-e", ""), ("true",)):
        path = shutil.which(name)
        if path:
            text = " ".join([name] + [w or "''" for w in words])
            programs[f"`{text}`"] = [path, *words]
    found = alternate({name: lambda c=command: start_and_peak(c)
                       for name, command in programs.items()},
                      9 if quick else 100)
    rows = [[name, duration(seconds), "", "", ""]
            for name, (seconds, _) in found.items()]
    peak = statistics.median(loop(nacre, "peak")[0] for _ in range(9)) / 1024
    seconds = next(iter(found.values()))[0]
    rows[0][2:] = [f"{peak:.1f} MiB", "<= 5 ms, 8 MiB",
                   verdict(seconds <= 5e-3 and peak <= 8)]
    show("Start", ["program", "time", "peak memory", "goal", "met"], rows)


def memory(nacre, quick):
    rows = []
    for size, count in ((10**6, 1000 if quick else 100000),
                        (10**8, 20 if quick else 300)):
        seconds, kib, live, share = loop(nacre, size, count)
        peak, most = 1024 * kib, 2.5 * live + 16e6
        rows.append([
            f"{size // 10**6} MB", str(count), duration(seconds),
            *(f"{bytes_ / 1e6:.0f} MB" for bytes_ in (peak, live)),
            f"<= {most / 1e6:.0f} MB", f"{share:.1%}", "<= 5 %",
            verdict(peak <= most and share <= 0.05)])
    show("Memory: `for i=1,n do c = a+b end`",
         ["tensors", "n", "a round", "peak", "live", "goal", "collector",
          "goal", "met"], rows)
    print("\nLive: a, b, the old c and the new one. The collector's time is "
          "without that of giving memory back to the system.")


def torch(nacre, quick):
    programs = {"nacre, to the prompt": lambda: at_the_prompt(nacre)}
    for name, module, *words in (("python", "torch"),
                                 ("ipython", "IPython", "-m", "IPython")):
        command = [sys.executable, *words, "-c", "import torch"]
        if importlib.util.find_spec(module):
            programs[f"`{name} -c 'import torch'`"] = (
                lambda c=command: start_and_peak(c))
    found = alternate(programs, 1 if quick else 11)
    show("Start, beside PyTorch", ["program", "time", "peak memory"],
         [[name, duration(seconds), f"{peak / MIB:.1f} MiB"]
          for name, (seconds, peak) in found.items()])


def bytes_of(paths):
    """What the files take, one that has several names once."""
    return sum({(f.st_dev, f.st_ino): f.st_size
                for f in (os.stat(p) for p in paths if os.path.isfile(p))
                }.values())


def megabytes(size):
    return (f"{size / 1e9:.1f} GB" if size >= 1e9 else
            f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB")


def blas_of(nacre):
    """The library that a product opens."""
    return subprocess.run(
        [nacre, "-e", "a = nacre.ones(2000, 2000); a:mm(a) "
         "for line in io.lines '/proc/self/maps' do "
         "local path = line:match '/%S*blas%S*' "
         "if path then print(path) break end end"],
        check=True, text=True, capture_output=True).stdout.strip()


def required(name, seen):
    """A package and what it requires here, of those that are installed; `seen'
    gets the names, and whether each is there."""
    from packaging.requirements import Requirement
    if name in seen:
        return
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        seen[name] = False
        return
    seen[name] = True
    yield package
    for other in map(Requirement, package.requires or ()):
        if not other.marker or other.marker.evaluate({"extra": ""}):
            yield from required(other.name, seen)


def installed(nacre, _):
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(["cmake", "--install", os.path.dirname(nacre),
                        "--prefix", prefix], check=True, stdout=sys.stderr)
        ours = bytes_of(pathlib.Path(prefix).rglob("*"))
        program = bytes_of([os.path.join(prefix, "bin/nacre")])
    rows = [["the program alone", megabytes(program)],
            ["Nacre, with the libraries for Lua and C", megabytes(ours)]]
    blas = blas_of(nacre)
    if blas:
        rows.append([f"the same, with {os.path.basename(blas)}",
                     megabytes(ours + bytes_of([blas]))])
    absent = []
    if importlib.util.find_spec("torch"):
        seen = {}
        files = [package.locate_file(file) for package in required("torch", seen)
                 for file in package.files or ()]
        absent = [name for name, there in seen.items() if not there]
        folder, = importlib.util.find_spec("torch").submodule_search_locations
        rows += [["PyTorch alone",
                  megabytes(bytes_of(pathlib.Path(folder).rglob("*")))],
                 ["PyTorch, with what it requires", megabytes(bytes_of(files))]]
    show("Installed", ["what", "size"], rows)
    if absent:
        print(f"\nRequired, but not installed here: {', '.join(absent)}.")


class Shell:
    """Nacre at a terminal of its own."""

    ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[a-zA-Z]|\x1b[=>]|[\x01\x02]")

    def __init__(self, nacre):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME="/nonexistent")
            os.execv(nacre, [nacre])
        self.prompt()

    def prompt(self, after=b"", timeout=120):
        """Waits for a prompt that follows `after'; gives what came."""
        seen = b""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.5)[0]:
                seen += os.read(self.fd, 65536)
                plain = self.ESCAPE.sub(b"", seen)
                plain = re.sub(rb"\r+\n?", b"\n", plain)
                at = plain.find(after)
                if at >= 0 and re.search(rb"(^|\n)> $", plain[at:]):
                    return plain
        raise TimeoutError(f"no prompt; it said {seen[-300:]!r}")

    def send(self, line):
        os.write(self.fd, line.encode() + b"\r")

    def do(self, line):
        """Runs a line that ends by itself."""
        self.send(line + " print('do' .. 'ne')")
        return self.prompt(b"done\n")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def latency(shell, line):
    """Seconds from Ctrl-C to the prompt, or None: it was over before."""
    shell.send(line)
    time.sleep(0.2 + random.random() * 0.2)
    begin = time.perf_counter()
    os.write(shell.fd, b"\x03")
    plain = shell.prompt(b"\n")
    elapsed = time.perf_counter() - begin
    return elapsed if b"interrupt" in plain else None


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def interrupt(nacre, quick):
    # As large as they are: the time must not depend on the size.
    n, count = (4000, 3) if quick else (6000, 10)
    elements = 300_000_000 if quick else 1_000_000_000
    operations = [
        (f"a:mm(b) of {n}x{n}",
         f"a = nacre.rand({n}, {n}) b = nacre.rand({n}, {n})", "c = a:mm(b)"),
        (f"a:exp() of {elements:.0e} elements",
         f"a = nacre.zeros({elements})", "c = a:exp()"),
    ]
    if available() < 10 * elements:
        name, _, line = operations[1]
        operations[1] = (name + ", expanded",
                         f"a = nacre.ones(1):expand({elements})", line)
    rows = []
    for name, prepare, line in operations:
        shell = Shell(nacre)
        shell.do(prepare)
        times = [t for t in (latency(shell, line) for _ in range(count))
                 if t is not None]
        shell.close()
        if len(times) < count:
            rows.append([f"{name}: it ended before Ctrl-C in "
                         f"{count - len(times)} of {count} runs", "", "",
                         "<= 100 ms", ""])
            continue
        middle = statistics.median(times)
        rows.append([f"`{name}`", duration(middle), duration(max(times)),
                     "<= 100 ms", verdict(middle <= 0.1)])
    show("Ctrl-C", ["during", "median", "slowest", "goal", "met"], rows)


def main():
    parts = {"start": start, "memory": memory, "interrupt": interrupt}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("part", nargs="*", help=" ".join([*parts, "torch", "installed"]))
    options = parser.parse_intermixed_args()
    wanted = options.part or list(parts)
    parts.update(torch=torch, installed=installed)
    for name in wanted:
        if name not in parts:
            parser.error(f"no part {name}")
    nacre = os.path.abspath(options.nacre)
    print("# Measurements\n")
    print("".join(f"* {line}\n" for line in machine_lines(nacre)), end="")
    if options.quick:
        print("* QUICK: no figures")
    for name in wanted:
        parts[name](nacre, options.quick)


if __name__ == "__main__":
    main()
