#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nacre's time over PyTorch's on the CPU, as Markdown.

    torch_bench.py NACRE [--threads N] [--turns N] [GROUP...]

The cases are those of torch_cases.lua, in groups; all if none is named. Both
sides use N threads (1). Their turns alternate, a case after the other; what is
printed is the median over the turns, and the median and the quartiles of the
ratios of one turn each. A turn calls the expression as often as fills 20 ms.
"""
import argparse
import pathlib
import subprocess
import time

from bench_common import (CaseProgram, at_least_two_turns, machine, measure,
                          print_row)

HERE = pathlib.Path(__file__).parent


class Theirs:
    """PyTorch, in this process."""

    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.calls = {}

    def operand(self, text):
        sizes, _, limit = text.partition("<")
        size = [int(n) for n in sizes.split("x")]
        if limit:
            return self.torch.randint(0, int(limit), size)
        return self.torch.randn(size)

    def case(self, _, row):
        torch = self.torch
        values = {name: self.operand(text) for name, text in
                  (pair.split("=") for pair in row["operands"].split())}
        leaves = [t for t in values.values() if t.is_floating_point()]
        values.update(torch=torch, F=torch.nn.functional)
        run = eval("lambda: " + row["torch"], values)
        self.calls = {"forward": run}
        if not row["back"]:
            return

        def backward():
            if not leaves[0].requires_grad:
                for t in leaves:
                    t.requires_grad_()
                self.y = run()
                self.g = self.y.detach().clone()
            return torch.autograd.grad(self.y, leaves, self.g,
                                       retain_graph=True)
        self.calls["backward"] = backward

    def time(self, what, calls):
        run = self.calls[what]
        start = time.perf_counter()
        for _ in range(calls):
            run()
        return (time.perf_counter() - start) / calls


def cases(nacre, groups):
    lines = subprocess.run([nacre, str(HERE / "torch_bench.lua"), "--list"],
                           check=True, capture_output=True, text=True).stdout
    names = ("group", "name", "operands", "ours", "torch", "goal", "back")
    for number, line in enumerate(lines.splitlines(), 1):
        row = dict(zip(names, line.split("\t")))
        row["torch"] = row["torch"] or row["ours"]
        if not groups or row["group"] in groups:
            yield number, row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nacre")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    options = parser.parse_intermixed_args()
    at_least_two_turns(parser, options)
    sides = [CaseProgram(options.nacre, HERE / "torch_bench.lua", options.threads),
             Theirs(options.threads)]
    machine(options.nacre, options, sides[1].torch)
    print("|  | Nacre | PyTorch | Nacre / PyTorch | quartiles | goal | met |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for number, row in cases(options.nacre, options.groups):
        for side in sides:
            side.case(number, row)
        print_row(f"`{row['name']}`", measure(sides, "forward", options.turns),
                  "ms", [], float(row["goal"]))
        if row["back"]:
            print_row(f"`{row['name']}`, gradient",
                      measure(sides, "backward", options.turns), "ms", [],
                      float(row["back"]))


if __name__ == "__main__":
    main()
