#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the figures of README.md and docs/guide/performance.md from the newest
measurements.

    figures.py [--check]

A part of a page between `<!-- figures: NAME -->` and `<!-- figures end -->` is
what the function of that NAME makes of docs/measurements. --check changes
nothing, and fails if a part is stale.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASUREMENTS = ROOT / "docs/measurements"
PART = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- figures end -->)", re.S)
SLOW = 1.1     # a ratio up to which two times are "the same"

FAST = (
    ("MLP 64-64-10, Adam", "a training step of a small network with Adam",
     "a call goes from Lua to the loop through few functions"),
    ("Adam of 100 x 1K", "a step of Adam for 100 tensors of 1000 elements",
     "one operation for all parameters"),
    ("a + b, 16M", "a sum of 16M elements",
     "the memory of results is used again"),
    ("10000 additions in a loop", "10,000 additions of small tensors in a loop",
     "the same few functions"),
)


class Measurement:
    """The newest file of a kind: its tables, a list for each heading."""

    def __init__(self, kind):
        self.path = max(MEASUREMENTS.glob(f"*-{kind}.md"))
        self.date = self.path.name[:10]
        self.text = self.path.read_text(encoding="utf-8")

    def rows(self, head):
        """The cells of the rows below a heading of two signs, without heads."""
        body = re.search(rf"^## {head}\n(.*?)(?=^## |\Z)", self.text,
                         re.M | re.S).group(1)
        cells = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in re.findall(r"^\|.*\|$", body, re.M)]
        return [row for row, below in zip(cells, cells[1:] + [[""]])
                if row[0].strip("-:") and not below[0].startswith("---")]

    def table(self, head):
        return {row[0].strip("`"): row[1:] for row in self.rows(head)}

    def link(self, page, text=None):
        folder = "docs" if page.parent == ROOT else ".."
        return f"[{text or self.date}]({folder}/measurements/{self.path.name})"


def start(page):
    """The table of the README."""
    file = Measurement("start")
    runs, sizes = file.table("Start, beside PyTorch"), file.table("Installed")
    ours, python = runs["nacre, to the prompt"], runs["ipython -c 'import torch'"]
    blas = next(row[0] for name, row in sizes.items() if "openblas" in name)
    rows = [
        ("from the command to the prompt", ours[0], python[0]),
        ("memory at the prompt", ours[1], python[1]),
        ("installed",
         f"{sizes['Nacre, with the libraries for Lua and C'][0]}, with OpenBLAS "
         f"{blas}; the program alone {sizes['the program alone'][0]}",
         f"{sizes['PyTorch, with what it requires'][0]} with CUDA's libraries; "
         f"`torch` alone {sizes['PyTorch alone'][0]}")]
    link = file.link(page, "how they were measured")
    return ("| | Nacre | IPython with PyTorch |\n|---|---:|---:|\n" +
            "".join(f"| {' | '.join(row)} |\n" for row in rows) +
            f"\nMedians of 11 runs ({link}).\n")


def suite_rows(file):
    """The ratio of each row on one thread."""
    found = {row[0]: float(row[3]) for row in file.rows("1 thread")
             if len(row) == 6 and row[1][-1:] == "s"}
    assert len(found) > 200, len(found)
    return found


def overall(file):
    return next(row for row in file.rows("1 thread") if row[0] == "all")


def fast(page):
    file, begin = Measurement("suite"), Measurement("start")
    runs, ratios = begin.table("Start, beside PyTorch"), suite_rows(file)
    rows = [("to the prompt", f"{runs['nacre, to the prompt'][0]} against "
             + runs["ipython -c 'import torch'"][0],
             "one program; libraries are opened at their first use", begin),
            (f"the geometric mean of {overall(file)[1]} rows", overall(file)[2],
             "", file)]
    rows += [(text, f"{ratios[name]:.2f}", why, file)
             for name, text, why in FAST]
    return ("| | time of Nacre / PyTorch | why | measured |\n|---|---:|---|---|\n"
            + "".join(f"| {text} | {ratio} | {why} | {source.link(page)} |\n"
                      for text, ratio, why, source in rows))


def slow(page):
    file = Measurement("suite")
    ratios = suite_rows(file)
    rows = sorted(((ratio, name) for name, ratio in ratios.items()
                   if ratio > SLOW), reverse=True)
    return (f"{len(rows)} of the {len(ratios)} rows take longer than in PyTorch "
            "by more than 10 %; a single\nrow is good to 10 or 20 %.\n\n"
            "| | time of Nacre / PyTorch | measured |\n|---|---:|---|\n" +
            "".join(f"| {name} | {ratio:.2f} | {file.link(page)} |\n"
                    for ratio, name in rows))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true",
                        help="fail if a page is stale")
    check = parser.parse_args().check
    stale = []
    for page in (ROOT / "README.md", ROOT / "docs/guide/performance.md"):
        text = page.read_text(encoding="utf-8")
        assert PART.search(text), page
        new = PART.sub(lambda m, at=page:
                       f"{m[1]}\n{globals()[m[2]](at)}\n{m[3]}", text)
        if new != text:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new, encoding="utf-8")
    if check and stale:
        sys.exit(f"stale: {', '.join(stale)}; run scripts/bench/figures.py")


if __name__ == "__main__":
    main()
