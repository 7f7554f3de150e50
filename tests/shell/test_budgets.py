#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_budgets.py - how long the shell takes to answer, measured at a terminal
# and printed. Other work slows a machine down: only SLACK times a budget fails.

import os
import re
import select
import statistics
import sys
import time

import terminal
from terminal import CTRL_C, ENTER, Shell, TAB

SLACK = 25
PROMPT = b"\x1b[?2004h"


class Budgets(Shell):
    def setUp(self):
        super().setUp()
        cuda = os.environ.get("NACRE_CUDA")
        self.s = self.open("-q", **({"NACRE_CUDA": cuda} if cuda else {}))

    def until(self, mark, keys=None, limit=10.0, s=None):
        """Seconds from the keys to the mark, and what was read till then."""
        fd = (s or self.s).child.child_fd
        seen, begin = b"", time.perf_counter()
        if keys is not None:
            os.write(fd, keys.encode())
        while mark not in seen:
            left = limit - (time.perf_counter() - begin)
            self.assertGreater(left, 0, "%r does not come: %r" % (mark, seen))
            if select.select([fd], [], [], left)[0]:
                seen += os.read(fd, 65536)
        return time.perf_counter() - begin, seen

    def told(self, what, seconds, budget, note=""):
        """Prints the median against its budget."""
        median = statistics.median(seconds)
        unit, scale = ("us", 1e6) if budget < 1e-3 else ("ms", 1e3)
        print("%-34s %8.2f %s   most %8.2f   budget %g %s%s" % (
            what, median * scale, unit, max(seconds) * scale, budget * scale,
            unit, note), file=sys.stderr)
        self.assertLess(median, SLACK * budget, what)

    def test_start(self):
        taken = []
        for _ in range(7):
            begin = time.perf_counter()
            s = self.open("-q")
            taken.append(time.perf_counter() - begin)
            s.quit()
        self.told("start to the prompt", taken, 50e-3)

    def test_echo(self):
        taken = []
        for key in "abcdefghijklmnopqrstuvwyz":
            time.sleep(0.01)
            self.s.settle(0)
            taken.append(self.until(key.encode(), key)[0])
        self.told("key to echo", taken, 5e-3)

    def test_tab(self):
        self.s.run("for i = 1, 10000 do _G['v' .. i] = i end")
        self.s.send("v99")
        self.s.settle()
        seconds, seen = self.until(b"v990", TAB)
        self.told("first list, 10000 globals", [seconds], 50e-3)

    def interrupted(self, keys, wait=0.3):
        self.s.send(keys)
        self.s.raw(wait, patience=0 if ENTER in keys else 20)
        self.s.show(len(self.s.log.text))
        return self.until(PROMPT, CTRL_C)[0]

    def test_interrupt(self):
        loop = "while true do end" + ENTER
        self.told("Ctrl-C at the prompt", [self.interrupted("abc", 0.05)
                                           for _ in range(9)], 20e-3)
        self.told("Ctrl-C in a loop", [self.interrupted(loop)
                                       for _ in range(3)], 50e-3)
        self.s.run("big = nacre.ones(3000, 3000)")
        product = "for i = 1, 99 do big:mm(big) end" + ENTER
        self.told("Ctrl-C in a product", [self.interrupted(product)
                                          for _ in range(3)], 100e-3)

    def test_interrupt_device(self):
        if "true" not in self.s.run("nacre.cuda.is_available()"):
            self.skipTest("no CUDA device to wait for")
        self.s.run("g = nacre.ones(200, 200):cuda()")
        wait = "while true do g:mm(g) nacre.cuda.synchronize() end" + ENTER
        self.told("Ctrl-C while a device is waited for",
                  [self.interrupted(wait) for _ in range(3)], 100e-3)

    def shown(self, expression, budget, what):
        taken, lines = [], 0
        for _ in range(5):
            seconds, seen = self.until(PROMPT, expression + ENTER)
            taken.append(seconds)
            text = terminal.clean(seen.decode(errors="replace"))
            lines = len(text.strip().split("\n")) - 1  # without the echo
        self.told(what, taken, budget, "   %d lines" % lines)
        self.assertLessEqual(lines, 25, text)

    def test_display(self):
        self.s.run("t = nacre.randn(3000, 3000)")
        self.shown("t", 100e-3, "display of 3000 x 3000")
        self.s.run("t = nacre.randn(64, 3, 64, 64)")
        self.shown("t", 100e-3, "display of 64 x 3 x 64 x 64")
        # 1e8 elements that take no memory
        self.s.run("t = nacre.randn(1, 10000):expand(10000, 10000)")
        self.shown("t", 100e-3, "display of 1e8 elements")

    def test_time(self):
        taken = []
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
        for _ in range(20):
            out = self.s.run(":time do end")
            number, unit = re.search(r"([\d.]+) ([num]?s)\b", out).groups()
            taken.append(float(number) * scale[unit])
        self.told("what :time adds", taken, 2e-6)

    def test_history(self):
        def blocks(s):
            return [self.until(PROMPT, "x = %d" % i + ENTER, s=s)[0]
                    for i in range(60)]
        without = statistics.median(blocks(self.open("-q", "--no-history")))
        taken = [max(t - without, 0) for t in blocks(self.s)]
        self.told("a block in the history", taken, 1e-3)


if __name__ == "__main__":
    terminal.main()
