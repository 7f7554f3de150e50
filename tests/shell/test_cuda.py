#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_cuda.py - Ctrl-C at a terminal while a device is at work: the emulated
# one, which is told to be slow.

import os
import signal
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

    def test_opened_by_the_first_use(self, s):
        self.assertIn("cuda", self.maps(s))
        self.assertEqual(s.run("!echo a child"), "a child\n")
        self.assertTrue(s.run("g:sum():item()").startswith("0.0\n"))

    def test_interrupt_while_a_line_ends(self, s):
        """The prompt waits for devices, so that errors stay with their line."""
        out = self.timed(s, "y = g:exp()" + ENTER)
        self.assertIn("interrupted: cuda:0 is still running exp; the next "
                      "use of cuda:0 waits for it\n", out)
        self.assertEqual(out.count("interrupted"), 1)
        self.assertTrue(s.run("y:sum():item()").startswith("4.0\n"))

    def test_interrupt_of_a_value(self, s):
        out = self.timed(s, "y = g:cumprod(1) v = y:sum():item()" + ENTER)
        self.assertIn("interrupted: cuda:0 is still running sum; the next "
                      "use of cuda:0 waits for it\n", out)
        self.assertTrue(s.run("y[4]").startswith("0.0\n"))

    def test_interrupt_of_every_wait(self, s):
        """Whatever waits for a device answers Ctrl-C."""
        s.run("e = nacre.cuda.Event(); s = nacre.cuda.Stream()")
        s.run("h = nacre.zeros(4):pin_memory()")
        for wait in ("nacre.synchronize()", "nacre.cuda.synchronize()",
                     "e:record() e:synchronize()",
                     "nacre.cuda.current_stream():synchronize()",
                     "s:wait_stream(nacre.cuda.current_stream()) "
                     "s:synchronize()",
                     "h:copy_(y)", "v = y:cpu()", "v = y:totable()",
                     "v = tostring(y)", "v = y[y:gt(0)]", "v = y:nonzero()",
                     "v = nacre.equal(y, g)", "nacre.cuda.empty_cache()"):
            out = self.timed(s, "y = g:exp() " + wait + ENTER)
            self.assertRegex(out, "is still running|may be partly updated")
            self.assertEqual(out.count("interrupted"), 1, (wait, out))
        self.assertTrue(s.run("y:sum():item()").startswith("4.0\n"))

    def test_interrupt_of_a_script(self):
        """A script that waits ends as one that was interrupted."""
        code = ('g = nacre.ones(4):cuda() print "asked" io.stdout:flush() '
                'print((g + 1):sum():item())')
        env = dict(os.environ, NACRE_CUDA="emulated",
                   NACRE_EMULATION="devices=1,busy=20000")
        with subprocess.Popen([terminal.PROGRAM, "-e", code], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as p:
            self.assertEqual(p.stdout.readline(), "asked\n")
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
        self.assertEqual((out, p.returncode), ("", -signal.SIGINT), err)
        self.assertIn("interrupted", err)

    def test_one_that_failed_for_good(self):
        """What failed is told once; the CPU goes on, the exit code says it."""
        lines = ("g = nacre.ones(3):cuda()\n"
                 "for i = 1, 50 do v = (g + 1):sum():item() end\n"
                 "nacre.ones(2):sum():item()\ng + 1\n:dev\n1 + 1\n")
        env = dict(os.environ, NACRE_CUDA="emulated",
                   NACRE_EMULATION="devices=1,failat=60,failcode=700")
        done = subprocess.run([terminal.PROGRAM, "-q", "-i"], env=env,
                              input=lines, capture_output=True, text=True)
        out = done.stdout
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(out.count("cuda:0 failed: "), 1, out)
        self.assertIn(":sum():item()\n2.0\n", out)
        self.assertIn("error: add: the CUDA device failed earlier", out)
        self.assertIn("\ncuda:0  the CUDA device failed earlier", out)
        self.assertTrue(out.endswith("> 1 + 1\n2\n"), out)
        self.assertEqual(done.stderr.count("failed earlier"), 1, done.stderr)

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
