#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Nacre's time of a training step over PyTorch's on the CPU, as Markdown.

    training_bench.py NACRE [--threads N] [--turns N] [CASE...]

The cases are the networks of networks.lua, whose steps take up to seconds; all
if none is named. Smaller ones are rows of suite.py. Both sides use N threads
(1). Their turns alternate; what is printed is the median over the turns, and
the median and the quartiles of the ratios of one turn each.
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
        self.step = None

    def case(self, _, name):
        self.step = None
        self.step = self.makers()[name]()

    def time(self, _, calls):
        start = time.perf_counter()
        for _ in range(calls):
            self.step()
        return (time.perf_counter() - start) / calls

    def trained(self, net, x, y):
        """A step of training with cross entropy."""
        torch = self.torch
        opt = torch.optim.SGD(net.parameters(), lr=0.01)

        def step():
            loss = torch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        return step

    def fcn5(self):
        nn, n = self.torch.nn, 2048
        net = nn.Sequential(
            nn.Linear(26752, n), nn.Sigmoid(), nn.Linear(n, n), nn.Sigmoid(),
            nn.Linear(n, n), nn.Sigmoid(), nn.Linear(n, 26752))
        return self.trained(net, self.torch.randn(64, 26752),
                            self.torch.randint(26752, [64]))

    def alexnet(self):
        nn = self.torch.nn
        net = nn.Sequential(
            nn.Conv2d(3, 96, 11, stride=4, padding=2), nn.ReLU(),
            nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(),
            nn.MaxPool2d(3, 2), nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Flatten(), nn.Linear(9216, 4096), nn.ReLU(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))
        return self.trained(net, self.torch.randn(16, 3, 224, 224),
                            self.torch.randint(1000, [16]))

    def resnet50(self):
        return self.trained(resnet50(self.torch),
                            self.torch.randn(16, 3, 224, 224),
                            self.torch.randint(1000, [16]))

    def words(self):
        torch, nn = self.torch, self.torch.nn
        embedding, lstm = nn.Embedding(10000, 256), nn.LSTM(256, 256, 2)
        fc = nn.Linear(256, 10000)

        class Words(nn.Module):
            """As in networks.lua."""

            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleList([embedding, lstm, fc])

            def forward(self, x):
                return fc(lstm(embedding(x))[0].flatten(0, 1))
        return self.trained(Words(), torch.randint(10000, [64, 128]),
                            torch.randint(10000, [64 * 128]))

    def makers(self):
        return {"FCN-5": self.fcn5, "AlexNet": self.alexnet,
                "ResNet-50": self.resnet50, "LSTM-64": self.words}


def resnet50(torch):
    """As in networks.lua."""
    nn = torch.nn

    def conv_norm(n, m, kernel, **options):
        return [nn.Conv2d(n, m, kernel, bias=False, **options),
                nn.BatchNorm2d(m)]

    class Bottleneck(nn.Module):
        """A block; `skip' changes its input to the shape of its output."""

        def __init__(self, n, width, stride):
            super().__init__()
            self.main = nn.Sequential(
                *conv_norm(n, width, 1), nn.ReLU(),
                *conv_norm(width, width, 3, stride=stride, padding=1),
                nn.ReLU(), *conv_norm(width, 4 * width, 1))
            self.skip = nn.Identity()
            if stride > 1 or n != 4 * width:
                self.skip = nn.Sequential(
                    *conv_norm(n, 4 * width, 1, stride=stride))

        def forward(self, x):
            return torch.relu(self.main(x) + self.skip(x))

    parts = [*conv_norm(3, 64, 7, stride=2, padding=3), nn.ReLU(),
             nn.MaxPool2d(3, 2, 1)]
    n = 64
    for i, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            parts.append(Bottleneck(n, 64 << i, 2 if k == 0 and i else 1))
            n = 256 << i
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(n, 1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nacre")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_intermixed_args()
    at_least_two_turns(parser, options)
    script = HERE / "training_bench.lua"
    sides = [CaseProgram(options.nacre, script, options.threads),
             Theirs(options.threads)]
    machine(options.nacre, options, sides[1].torch)
    print("|  | Nacre | PyTorch | Nacre / PyTorch | quartiles |")
    print("|---|---:|---:|---:|---:|")
    lines = subprocess.run([options.nacre, str(script), "--list"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    for number, name in enumerate(lines, 1):
        if options.cases and name not in options.cases:
            continue
        for side in sides:
            side.case(number, name)
        print_row(name, measure(sides, "step", options.turns), "ms", [])


if __name__ == "__main__":
    main()
