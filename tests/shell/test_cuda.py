#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_cuda.py - Ctrl-C at a terminal while a device is at work: the emulated
# one, which is told to be slow.
#
#   test_cuda.py NACRE [unittest options]

import os
import subprocess

import terminal
from terminal import ENTER, Shell


class Cuda(Shell):
    def open(self):
        s = super().open(NACRE_CUDA="emulated",
                         NACRE_EMULATION="devices=1,busy=1500")
        self.assertNotIn("cuda", self.maps(s))
        s.run("g = nacre.zeros(4):cuda()")
        return s

    def maps(self, s):
        """P18: a device is opened by the first use of it, and not before."""
        with open("/proc/%d/maps" % s.child.pid) as f:
            return f.read()

    def test_opened_by_the_first_use(self):
        s = self.open()
        self.assertIn("cuda", self.maps(s))
        self.assertEqual(s.run("!echo a child"), "a child\n")
        self.assertTrue(s.run("g:sum():item()").startswith("0.0\n"))

    def test_interrupt_while_a_line_ends(self):
        """The prompt waits for devices, so that errors stay with their line."""
        s = self.open()
        out = self.timed(s, "y = g:exp()" + ENTER)
        self.assertIn("interrupted: cuda:0 is still running exp; the next "
                      "use of cuda:0 waits for it\n", out)
        self.assertEqual(out.count("interrupted"), 1)
        self.assertTrue(s.run("y:sum():item()").startswith("4.0\n"))

    def test_interrupt_of_a_value(self):
        s = self.open()
        out = self.timed(s, "y = g:cumprod(1) v = y:sum():item()" + ENTER)
        self.assertIn("interrupted: cuda:0 is still running sum; the next "
                      "use of cuda:0 waits for it\n", out)
        self.assertTrue(s.run("y[4]").startswith("0.0\n"))

    def test_printed_too_early(self):
        """What -p prints is waited for: a wrong index is an error, and no
        row of zeros."""
        code = ("nacre.ones(5, 5):cuda():index_select(1, "
                "nacre.tensor{99}:cuda())")
        env = dict(os.environ, NACRE_CUDA="emulated")
        done = subprocess.run([terminal.PROGRAM, "-p", code], env=env,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("index 99 is outside", done.stderr)


if __name__ == "__main__":
    terminal.main()
