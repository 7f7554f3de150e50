#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nacre beside PyTorch and NumPy on the CPU, row by row.

    suite.py NACRE [OPTIONS]

The rows are those of suite_rows.py. Nacre and PyTorch are a process each,
get the same operands, and their results are compared before anything is timed.
Then their turns alternate: Nacre, PyTorch, Nacre, ... With one thread the times
are the processor's, with more the wall's. A ratio is the least time of Nacre
over the least of PyTorch.
"""
import argparse
import array
import functools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import suite_report
from bench_common import Program
from suite_compare import broken, difference, results_of
from suite_rows import ROWS

HERE = pathlib.Path(__file__).parent
NUMBERS = (1 << 20) + 7         # operands are cut from this many numbers
WARM = 10                       # calls, or turns, of a warm-up at most
REST = 0.02     # seconds between two turns: PyTorch's threads look for work for
                # 10 ms after its last call, and would take a processor from us
SKIPPED = 77                    # what ctest takes for "skipped"


class Failure(Exception):
    """A side could not do what it was asked."""


class Absent(Exception):
    """An old library does not have what the row needs."""


class Side(Program):
    """A process that prepares rows and times them."""

    def __init__(self, name, command, threads):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
        for library in ("OMP", "OPENBLAS", "MKL"):
            environment[library + "_NUM_THREADS"] = str(threads)
        super().__init__(*command, env=environment)
        self.name = name

    def request(self, *words):
        text = "\t".join(str(word) for word in words).replace("\n", "\v")
        answer = self.answer(text)
        for kind, error in (("error: ", Failure), ("absent: ", Absent)):
            if answer.startswith(kind):
                raise error(f"{self.name}: {answer[len(kind):]}")
        return answer

    def prepare(self, row, n):
        """Makes the operands; then the row can be checked and timed."""
        self.request("row", n)
        for seed, (name, kind, dtype, limit, size) in enumerate(row.lets(n), 1):
            self.request("let", name, kind, dtype, limit,
                     ",".join(str(k) for k in size), seed)
        setup = row.setup[self.name != "nacre"]
        if setup:
            self.request("setup", setup)
        self.request("forward", {"nacre": row.ours, "torch": row.torch,
                             "numpy": row.numpy}[self.name])

    def time(self, calls):
        """Seconds of a call, the processor's and the wall's."""
        return [float(t) / calls for t in self.request("time", calls).split()]


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


def has(library):
    return subprocess.run([sys.executable, "-c", f"import {library}"],
                          capture_output=True, check=False).returncode == 0


def sides(options, folder, threads):
    """The processes by name; Nacre is the first."""
    commands = {"nacre": [options.nacre, HERE / "suite.lua", threads, folder]}
    for library in options.beside:
        commands[library] = [sys.executable, HERE / "suite_python.py", library,
                             threads, folder]
    return [Side(name, command, threads) for name, command in commands.items()]


def several(side, seconds):
    """Calls that fill a turn, after a warm-up of the same length and of some
    calls, in which memory of the row before is given up; the seconds of one."""
    calls, spent, made, least = 1, 0, 0, 1e9
    while spent < seconds or (made < WARM and spent < WARM * seconds):
        wall = side.time(calls)[1]
        spent += wall * calls
        made += calls
        least = min(least, wall)
        calls = max(1, min(2 * calls, round(seconds / max(least, 1e-8))))
    return max(1, round(seconds / max(least, 1e-8))), least


def timed(options, present):
    """The least and the middle time of each side, processor's and wall's."""
    calls = [several(side, options.seconds) for side in present]
    turns = [[] for _ in present]
    long = max(seconds for _, seconds in calls) > 2
    for _ in range(1 if long else options.turns):
        for side, (count, _), found in zip(present, calls, turns):
            found.append(side.time(count))
            time.sleep(REST)
    times = {}
    for side, found in zip(present, turns):
        times[side.name] = {}
        for clock, values in zip(("processor", "wall"), zip(*found)):
            values = sorted(values)
            times[side.name][clock] = [values[0], values[len(values) // 2]]
    return times


@functools.cache
def torch_version():
    return int(suite_report.library_version("torch").partition(".")[0])


def compared(row, everything, gradient):
    """What Nacre's results are; Failure if the others' are not the same."""
    count = 99 if gradient else max(1, row.results)
    answers = [results_of(side.request("check", count)) for side in everything]
    for side, answer in zip(everything[1:], answers[1:]):
        if side.name == "torch" and row.right > torch_version():
            continue
        why = difference(row, answers[0], answer, gradient,
                         strict=side.name == "torch")
        if why:
            raise Failure(f"nacre and {side.name} differ: {why}")
    if not gradient and not row.results == 0 and broken(answers[0]):
        raise Failure("nacre: nan")
    return answers[0]


def measured(options, row, n, everything, threads):
    """A record for the row, and one for its gradient."""
    present = [side for side in everything
               if side.name != "numpy" or row.numpy]
    for side in present:
        side.prepare(row, n)
    for gradient in ("", row.gradient) if row.gradient else ("",):
        if gradient:
            present = [side for side in present if side.name != "numpy"]
            for side in present:
                side.request("gradient", gradient)
        found = compared(row, present, gradient)
        record = {"group": row.group, "n": n, "threads": threads,
                  "name": row.name + (", gradient" if gradient else "")}
        if not options.check:
            record["times"] = timed(options, present)
            record.update(suite_report.least_work(row, n, found, gradient))
        yield record


def run(options, rows, folder, memory):
    """The records of all rows, and how many rows failed."""
    records, failures = [], 0
    for threads in options.threads:
        everything = sides(options, folder, threads)
        for row in rows:
            sizes = [row.n, 4 * row.n] if options.growth else [row.n]
            if options.small:
                sizes = [row.n // 64 if row.n > 64 else row.n]
            try:
                for n in sizes:
                    for record in measured(options, row, n, everything,
                                           threads):
                        records.append(record)
                        if not options.check:
                            memory.measure(record)
                            suite_report.show(record)
            except (Failure, Absent) as failure:
                failures += isinstance(failure, Failure)
                print(f"{row.group}: {row.name}: {failure}", file=sys.stderr,
                      flush=True)
        for side in everything:
            side.end()
    return records, failures


def chosen(options):
    rows = ROWS
    if options.group:
        rows = [row for row in rows if row.group in options.group]
    if options.row:
        rows = [row for row in rows if options.row in row.name]
    return rows[::options.every]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("nacre", help="the program")
    add("--row", metavar="TEXT", help="only rows with TEXT in their name")
    add("--group", action="append", metavar="NAME",
        choices=sorted({row.group for row in ROWS}), help="only this group")
    add("--every", type=int, default=1, metavar="K", help="each K-th row only")
    add("--threads", default="1", type=lambda s: [int(n) for n in s.split(",")])
    add("--turns", type=int, help="of each side, for a row (11)")
    add("--seconds", type=float, help="of a turn (0.02)")
    add("--quick", action="store_true", help="few and short turns")
    add("--numpy", action="store_true", help="NumPy, too")
    add("--alone", action="store_true", help="Nacre only")
    add("--check", action="store_true", help="compare results, time nothing")
    add("--small", action="store_true", help="n is a 64th, if above 64")
    add("--growth", action="store_true", help="also with four times n")
    add("--against", metavar="JSON", help="what became slower since that run")
    add("--read", metavar="JSON", help="report that run, measure nothing")
    add("--json", metavar="FILE", help="keep the run")
    add("--markdown", metavar="FILE", help="write the tables there")
    options = parser.parse_args()
    options.turns = options.turns or (3 if options.quick else 11)
    options.seconds = options.seconds or (0.004 if options.quick else 0.02)
    options.beside = [] if options.alone else ["torch"]
    if options.numpy:
        options.beside.append("numpy")
    return options


def main():
    options = arguments()
    for library in options.beside:
        if not options.read and not has(library):
            print(f"{sys.executable} has no {library}")
            return SKIPPED
    failures = 0
    if options.read:
        with open(options.read, encoding="utf-8") as f:
            result = json.load(f)
    else:
        machine = suite_report.machine(options)
        with tempfile.TemporaryDirectory() as folder:
            write_numbers(folder)
            memory = suite_report.Memory()
            records, failures = run(options, chosen(options), folder, memory)
        result = {"machine": machine, "memory": memory.known,
                  "records": records}
    if options.check:
        print(f"{len(result['records'])} rows agree, {failures} do not")
        return 1 if failures else 0
    if options.json:
        suite_report.keep(options.json, result)
    suite_report.report(options, result)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
