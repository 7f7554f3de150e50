# SPDX-License-Identifier: MIT
"""What the comparisons share: Nacre as a process that answers lines from stdin,
turns, and a row of the table."""
import os
import platform
import statistics
import subprocess
import sys
import time

LEAST = 0.02                  # seconds of a turn


class Program:
    """Nacre, which runs a script of this folder."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        """The number that the script answers."""
        self.send(line)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"nacre ended with {self.process.wait()}")
        return float(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class CaseProgram(Program):
    """Nacre, which prepares a case by its number, and times it."""

    def case(self, number, _):
        self.send(f"case {number}")

    def time(self, what, calls):
        return self.ask(f"{what} {calls}")


def print_row(name, times, unit, more, goal=None):
    """The medians of both sides, and of the ratios with their quartiles."""
    ratios = [a / b for a, b in zip(*times)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    factor = {"s": 1, "ms": 1e3}[unit]
    ours, theirs = (statistics.median(side) * factor for side in times)
    if goal is not None:
        more += [f"<= {goal}", "yes" if middle <= goal else "**no**"]
    cells = [name, f"{ours:.3f} {unit}", f"{theirs:.3f} {unit}",
             f"{middle:.2f}", f"{low:.2f} to {high:.2f}", *more]
    print("| " + " | ".join(cells) + " |", flush=True)


def at_least_two_turns(parser, options):
    if options.turns < 2:
        parser.error("at least 2 turns")


def several(side, what):
    """Calls that fill a turn, after a warm-up."""
    side.time(what, 1)
    return max(1, round(LEAST / max(side.time(what, 1), 1e-7)))


def measure(sides, what, turns):
    calls = [several(side, what) for side in sides]
    times = [[], []]
    for _ in range(turns):
        for i, side in enumerate(sides):
            times[i].append(side.time(what, calls[i]))
            time.sleep(0.002)     # threads that wait for work go to sleep
    return times


def machine(nacre, options, torch):
    version = subprocess.run([nacre, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    model = platform.processor()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        model = next((line.split(":")[1].strip() for line in f
                      if line.startswith("model name")), model)
    print(f"* {time.strftime('%Y-%m-%d', time.gmtime())}\n* {model}\n"
          f"* {len(os.sched_getaffinity(0))} processors visible, load "
          f"{os.getloadavg()[0]:.2f}\n* {version}\n* PyTorch "
          f"{torch.__version__}\n* {options.turns} turns, threads: "
          f"{options.threads}\n")
