#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What scripts/bench.lua can only measure from outside the process.

    process_bench.py start NACRE RUNS
    process_bench.py interrupt NACRE full|quick
    process_bench.py torch NACRE PYTHON RUNS

start: milliseconds from the call to the end of a program that does nothing,
a line "command<TAB>ms" each, ours first; the runs alternate.
interrupt: milliseconds from Ctrl-C at a terminal, during one long operation,
to the next prompt: a line "operation<TAB>median<TAB>slowest" each.
torch: the start and the peak of the resident memory, of Nacre and of a Python
that has PyTorch and IPython: medians, the runs alternate. What a package takes
on the disk is `du -sh` of its folder.
"""
import os
import pty
import random
import re
import select
import shutil
import signal
import statistics
import sys
import time


def run_once(command):
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null",
                                        os.O_RDONLY, 0)])
    os.waitpid(pid, 0)
    return 1e3 * (time.perf_counter() - start)


def start(nacre, runs):
    commands = {"nacre -e ''": [nacre, "-e", ""]}
    for name, *words in (("lua5.4", "-e", ""), ("true",)):
        path = shutil.which(name)
        if path:
            commands[" ".join([name] + [w or "''" for w in words])] = [
                path, *words]
    times = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(run_once(command))
    for name, values in times.items():
        print(f"{name}\t{statistics.median(values):.3f}")


def start_and_peak(command):
    """Milliseconds to the end, and MiB."""
    begin = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0)
             for fd in (0, 1, 2)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, (command, status)
    return 1e3 * (time.perf_counter() - begin), usage.ru_maxrss / 1024


def at_the_prompt(nacre):
    """Milliseconds to the first prompt, and MiB there."""
    begin = time.perf_counter()
    shell = Shell(nacre)
    elapsed = 1e3 * (time.perf_counter() - begin)
    with open(f"/proc/{shell.pid}/status", encoding="ascii") as f:
        peak = int(re.search(r"VmHWM:\s*(\d+) kB", f.read()).group(1)) / 1024
    shell.close()
    return elapsed, peak


def torch(nacre, python, runs):
    rows = {
        "nacre, to the prompt": lambda: at_the_prompt(nacre),
        "python -c 'import torch'":
            lambda: start_and_peak([python, "-c", "import torch"]),
        "ipython -c 'import torch'":
            lambda: start_and_peak([python, "-m", "IPython", "-c",
                                    "import torch"]),
    }
    samples = {name: [] for name in rows}
    for turn in range(runs + 1):
        for name, measure in rows.items():
            sample = measure()
            if turn > 0:              # the first one reads the files
                samples[name].append(sample)
    for name, values in samples.items():
        times, peaks = zip(*values)
        print(f"{name}\t{statistics.median(times):.1f} ms\t"
              f"{statistics.median(peaks):.1f} MiB")


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
    """Milliseconds from Ctrl-C to the prompt, or None: it was over before."""
    shell.send(line)
    time.sleep(0.2 + random.random() * 0.2)
    begin = time.perf_counter()
    os.write(shell.fd, b"\x03")
    plain = shell.prompt(b"\n")
    elapsed = 1e3 * (time.perf_counter() - begin)
    return elapsed if b"interrupt" in plain else None


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def interrupt(nacre, size):
    quick = size == "quick"
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
    for name, prepare, line in operations:
        shell = Shell(nacre)
        shell.do(prepare)
        times = [t for t in (latency(shell, line) for _ in range(count))
                 if t is not None]
        shell.close()
        if len(times) < count:
            print(f"{name}: it ended before Ctrl-C in "
                  f"{count - len(times)} of {count} runs")
        else:
            print(f"{name}\t{statistics.median(times):.1f}\t{max(times):.1f}")


if __name__ == "__main__":
    if sys.argv[1] == "start":
        start(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "torch":
        torch(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        interrupt(sys.argv[2], sys.argv[3])
