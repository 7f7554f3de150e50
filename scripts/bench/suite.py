#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nacre beside other programs, row by row.

    suite.py NACRE [OPTIONS] [SUBJECT...]

The subjects are the files of rows/: operations (the default), numpy, order,
files, fusion, losses, training, gpu. Each side is a process, gets the same
operands, and the results are compared before anything is timed. Then their
turns alternate: Nacre, PyTorch, Nacre, ... With one thread the times are the
processor's, with more the wall's. A ratio is the least time of Nacre over the
least of PyTorch; on a device, of the medians.
"""
import argparse
import dataclasses
import functools
import importlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import suite_report
from suite_compare import broken, difference, results_of
from suite_rows import ROWS, short
from suite_sides import (Absent, Failure, NAMES, OURS, has, library_version,
                         sides, write_numbers)

HERE = pathlib.Path(__file__).parent
SUBJECTS = sorted(path.stem for path in (HERE / "rows").glob("*.py"))
OPTIONAL = ("numpy", "compile", "other")   # beside the first rival, if wished
WARM = 10                       # calls, or turns, of a warm-up at most
REST = 0.02     # seconds between two turns: PyTorch's threads look for work for
                # 10 ms after its last call, and would take a processor from us
SKIPPED = 77                    # what ctest takes for "skipped"


#
# A row
#
def several(side, row, seconds):
    """Calls that fill a turn, after a warm-up of the same length and of some
    calls, in which memory of the row before is given up; the seconds of one."""
    if row.timer or row.fresh == "turn":
        return row.calls, 0
    calls, spent, made, least = 1, 0, 0, 1e9
    while spent < seconds or (made < WARM and spent < WARM * seconds):
        wall = side.time(row, calls)[1]
        spent += wall * calls
        made += calls
        least = min(least, wall)
        calls = max(1, min(2 * calls, round(seconds / max(least, 1e-8))))
    return max(1, round(seconds / max(least, 1e-8))), least


def turns_of(options, row, longest):
    if options.turns:
        return options.turns
    if options.quick:
        return 1 if row.timer else 3
    return row.turns or (1 if longest > 2 else 11)


def timed(options, row, n, present, clock):
    """The least and the middle time of each side, and the quartiles of the
    ratios to each rival, of one turn each."""
    calls = [several(side, row, options.seconds) for side in present]
    turns = {side.name: [] for side in present}
    for _ in range(turns_of(options, row, max(s for _, s in calls))):
        for side, (count, _) in zip(present, calls):
            if row.fresh == "turn":
                side.end()
                side.prepare(row, n, options)
            if options.small and row.timer:
                count = min(count, 3)
            turns[side.name].append(side.time(row, count))
            time.sleep(REST)
    times, clocks = {}, (row.timer,) if row.timer else ("processor", "wall")
    for name, found in turns.items():
        times[name] = {}
        for kind, values in zip(clocks, zip(*found)):
            values = sorted(values)
            times[name][kind] = [values[0], statistics.median(values)]
    return {"times": times,
            "quartiles": quartiles(turns, clocks.index(clock))}


def quartiles(turns, which):
    ours, *others = turns
    found = {}
    for name in others if len(turns[ours]) > 1 else ():
        ratios = [a[which] / b[which]
                  for a, b in zip(turns[ours], turns[name])]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        found[name] = [low, high]
    return found


@functools.cache
def torch_version():
    return int(library_version("torch").partition(".")[0])


def compared(row, everything, gradient):
    """What Nacre's results are; Failure if the others' are not the same."""
    if row.timer == "process" or row.results is None and not row.work:
        return []
    ours, *others = everything
    count = 99 if gradient else max(1, row.results or 1)
    found = results_of(ours.request("check", count))
    for side in others if row.results is not None else ():
        answer = results_of(side.request("check", count))
        if side.name == "torch" and row.right > torch_version():
            continue
        from_0 = row.positions and not gradient and side.name not in OURS
        why = difference(row, found, answer, strict=side.name == "torch",
                         shift=1 if from_0 else 0)
        if why:
            raise Failure(f"nacre and {side.name} differ: {why}")
    if not gradient and row.results and broken(found):
        raise Failure("nacre: nan")
    return found


class Run:
    """The records of all rows, and how many rows failed."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.memory = suite_report.Memory()
        self.records, self.left, self.failed, self.failures = [], [], [], 0
        self.end = time.monotonic() + 60 * options.minutes

    def note(self, row, failure):
        """A rival that cannot run on a device is no failure of ours."""
        ours = row.timer == "" or str(failure).startswith("nacre")
        self.failures += ours and not isinstance(failure, Absent)
        self.failed.append(f"{row.group}: {row.name}: {failure}")
        print(self.failed[-1], file=sys.stderr, flush=True)

    def prepared(self, row, n, present):
        """The sides that could do it, Nacre's first."""
        if row.files:
            try:
                row.files(pathlib.Path(self.folder), n)
            except ImportError as error:
                raise Absent(str(error)) from error
        if row.timer == "process":
            return present
        ready = []
        for side in present:
            if row.fresh:
                side.end()
            try:
                side.prepare(row, n, self.options)
                ready.append(side)
            except Failure as failure:
                if side is present[0]:
                    raise
                self.note(row, failure)
        return ready

    def measured(self, row, n, present, threads):
        """A record for the row, and one for its gradient."""
        options = self.options
        present = self.prepared(row, n, present)
        for gradient in gradients(options, row):
            if gradient:
                present = [side for side in present if side.name in
                           (*OURS, "torch", "compile")]
                for side in present:
                    side.request("gradient", gradient)
            found = compared(row, present, gradient)
            record = {"group": row.group, "n": n, "threads": threads,
                      "name": row.name + (", gradient" if gradient else ""),
                      "clock": row.timer or options.clock or row.clock or
                      ("processor" if threads == 1 else "wall")}
            for name in ("goal", "most", "shown"):
                if getattr(row, name):
                    record[name] = getattr(row, name)
            if not options.check:
                if row.fresh == "row":
                    self.renew(row, n, present)
                record.update(self.times(row, n, present, record))
                record.update(suite_report.least_work(row, n, found, gradient,
                                                      options))
            yield record

    def renew(self, row, n, present):
        """Without the memory that comparing has taken."""
        for side in present:
            side.end()
            side.prepare(row, n, self.options)

    def times(self, row, n, present, record):
        peak = "memory" in row.shown
        if peak:
            present[0].collect()
            present[0].forget_peak()
        found = timed(self.options, row, n, present, record["clock"])
        if peak:
            bytes_ = present[0].memory("VmHWM") - present[0].empty
            found["memory"] = bytes_ / (
                n * suite_report.size(self.options.dtype))
        return found

    def sizes(self, row):
        if self.options.small and not row.on_device():
            return [row.n // 64 if row.n > 64 else row.n]
        return [row.n, 4 * row.n] if self.options.growth else [row.n]

    def all_rows(self, rows):
        for threads in self.options.threads:
            everything = sides(self.options, self.folder, threads)
            everything["nacre"].start()     # or there is no device
            for row in rows:
                if time.monotonic() > self.end:
                    self.left.append(row.name)
                    continue
                self.row(row, everything, threads)
            for side in everything.values():
                side.end()

    def row(self, row, everything, threads):
        present = [everything[name] for name in
                   ("nacre", *rivals(self.options, row))]
        try:
            for n in self.sizes(row):
                for record in self.measured(row, n, present, threads):
                    self.records.append(record)
                    if not self.options.check:
                        self.memory.measure(record)
                        suite_report.show(record)
        except Failure as failure:
            self.note(row, failure)

    def result(self):
        return {"machine": suite_report.machine(self.options),
                "memory": self.memory.known, "records": self.records,
                "left": self.left,
                "failed": self.failed}


#
# Which rows and which sides
#
def gradients(options, row):
    """What of a row is measured: "" for the value."""
    found = ["", row.gradient] if row.gradient else [""]
    return [g for g in found if not options.row or options.row in
            row.name + (", gradient" if g else "")]


def wanted(options, row):
    """The rivals of a row, whether they are here or not."""
    if options.alone:
        return []
    names = [name for name in row.sides if name != "nacre"]
    first = names[0] if names else ""
    names = [name for name in names if name == first or name not in OPTIONAL or
             getattr(options, name)]
    return names + ["other"] if options.other else names


def rivals(options, row):
    return [name for name in wanted(options, row)
            if has(name, row.on_device())]


def sized(rows, sizes):
    """Each row once for each of these sizes."""
    once = {(row.group, row.base): row for row in reversed(rows)}
    return [dataclasses.replace(row, n=n, name=f"{row.base}, {short(n)}")
            for row in reversed(once.values()) for n in sizes]


def chosen(options):
    rows = ROWS
    if options.group:
        rows = [row for row in rows if row.group in options.group]
    if options.sizes:
        rows = sized(rows, options.sizes)
    return [row for row in rows if gradients(options, row)][::options.every]


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("nacre", help="the program")
    add("subject", nargs="*", metavar="SUBJECT",
        help="some of: " + " ".join(SUBJECTS))
    add("--row", metavar="TEXT", help="only rows with TEXT in their name")
    add("--group", action="append", metavar="NAME", help="only this group")
    add("--every", type=int, default=1, metavar="K", help="each K-th row only")
    add("--sizes", type=lambda s: [int(float(n)) for n in s.split(",")],
        metavar="N,N", help="n of the rows, instead of their own")
    add("--dtype", default="float32", help="of operands that name none")
    add("--threads", default="1", type=lambda s: [int(n) for n in s.split(",")])
    add("--turns", type=int, help="of each side, for a row (11)")
    add("--seconds", type=float, help="of a turn (0.02)")
    add("--minutes", type=float, default=1e9,
        help="rows for which the time is too short are named")
    add("--clock", choices=("processor", "wall"),
        help="the processor's, for a machine that others use")
    add("--quick", action="store_true", help="few and short turns")
    add("--numpy", action="store_true", help="NumPy, too")
    add("--compile", action="store_true", help="torch.compile, too")
    add("--other", metavar="NACRE", help="another build of Nacre, too")
    add("--alone", action="store_true", help="Nacre only")
    add("--device", default="cuda:0", help="of the subject gpu (cuda:0)")
    add("--folder", help="for the files that are read")
    add("--check", action="store_true", help="compare results, time nothing")
    add("--small", action="store_true", help="n is a 64th, if above 64")
    add("--growth", action="store_true", help="also with four times n")
    add("--against", metavar="JSON", help="what became slower since that run")
    add("--read", metavar="JSON", help="report that run, measure nothing")
    add("--json", metavar="FILE", help="keep the run")
    add("--markdown", metavar="FILE", help="write the tables there")
    options = parser.parse_intermixed_args()
    for name in options.subject or ["operations"]:
        if name not in SUBJECTS:
            parser.error(f"no subject {name}: {' '.join(SUBJECTS)}")
        importlib.import_module("rows." + name)
    groups = {row.group: row for row in ROWS}
    for name in options.group or ():
        if name not in groups:
            parser.error(f"no group {name}: {', '.join(groups)}")
    options.seconds = options.seconds or (0.004 if options.quick else 0.02)
    for path in ("nacre", "other"):
        if getattr(options, path):
            setattr(options, path, os.path.abspath(getattr(options, path)))
    return options


def measure(options):
    rows = chosen(options)
    options.on_device = any(row.on_device() for row in rows)
    asked = {(n, row.on_device()) for row in rows for n in wanted(options, row)}
    options.beside = {name for row in rows for name in rivals(options, row)}
    options.missing = {name for name, _ in asked} - options.beside
    for name in sorted(options.missing):
        print(f"{sys.executable} has no {NAMES[name]}", file=sys.stderr)
    if asked and not options.beside and not options.on_device:
        return None
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_numbers(folder)
        run = Run(options, folder)
        run.all_rows(rows)
        return run.result(), run.failures


def main():
    options = arguments()
    if options.read:
        with open(options.read, encoding="utf-8") as f:
            found = json.load(f), 0
    else:
        found = measure(options)
    if not found:
        return SKIPPED
    result, failures = found
    if options.check:
        print(f"{len(result['records'])} rows agree, {failures} do not")
        return 1 if failures else 0
    if options.json:
        suite_report.keep(options.json, result)
    suite_report.report(options, result)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
