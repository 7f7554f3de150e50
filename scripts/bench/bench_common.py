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
    """A program that answers lines, mostly Nacre with a script of this
    folder."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, **options)

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self, line):
        self.send(line)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.process.args[0]} ended with "
                     f"{self.process.wait()}")
        return answer.rstrip("\n")

    def ask(self, line):
        """The number that the script answers."""
        return float(self.answer(line))

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class CaseProgram(Program):
    """Nacre, which prepares a case by its number, and times it."""

    def case(self, number, _):
        self.send(f"case {number}")

    def time(self, what, calls):
        return self.ask(f"{what} {calls}")


def print_row(name, times, unit, more):
    """The medians of both sides, and of the ratios with their quartiles."""
    ratios = [a / b for a, b in zip(*times)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    factor = {"s": 1, "ms": 1e3}[unit]
    ours, theirs = (statistics.median(side) * factor for side in times)
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


def machine_lines(nacre):
    """What a measurement begins with."""
    version = subprocess.run([nacre, "--version"], check=True, text=True,
                             capture_output=True).stdout.splitlines()[0]
    model = platform.processor()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        model = next((line.split(":")[1].strip() for line in f
                      if line.startswith("model name")), model)
    return [time.strftime("%Y-%m-%d", time.gmtime()), model,
            f"{len(os.sched_getaffinity(0))} processors visible, load "
            f"{os.getloadavg()[0]:.2f}", version]


def machine(nacre, options, torch):
    lines = [*machine_lines(nacre), f"PyTorch {torch.__version__}",
             f"{options.turns} turns, threads: {options.threads}"]
    print("".join(f"* {line}\n" for line in lines))
