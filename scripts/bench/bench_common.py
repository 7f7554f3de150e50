# SPDX-License-Identifier: MIT
"""What torch_bench.py and order_bench.py share: Nacre as a process that answers
lines from stdin, and a row of the table."""
import statistics
import subprocess
import sys


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
