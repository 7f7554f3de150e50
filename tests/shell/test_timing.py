#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_timing.py - timing at a terminal: Ctrl-C while something is measured,
# and the curves of :sweep.

import re

import terminal
from terminal import ENTER, Shell


class Timing(Shell):
    def test_interrupt(self):
        s = self.open("-q")
        s.run("a = nacre.ones(300, 300)")
        for block in (":bench for i = 1, 1e12 do local x = i end",
                      ":bench --budget 60 a:mm(a)",
                      ":compare --budget 60 a:mm(a) ;; a:exp()",
                      ':sweep n=1..4 -s "while true do end" n',
                      ":repeat 100000 a:mm(a)"):
            out = self.timed(s, block + ENTER)
            self.assertRegex(out, r"interrupted \(\d+\.\d s\)\n", block)
            self.assertEqual(s.run("collectgarbage 'isrunning'"), "true\n")

    def test_what_prints(self):
        """It is shown once, and the screen is there again afterwards."""
        s = self.open("-q")
        out = s.run(":bench --budget 0.05 print 'pp'")
        self.assertEqual(out.count("pp\n"), 1, out)
        self.assertIn("its output was shown once", out)
        self.timed(s, ":bench --budget 60 print 'pp'" + ENTER)
        self.assertEqual(s.run("print 'here'"), "here\n")

    def test_interrupt_while_output_is_discarded(self):
        """The screen is there again wherever Ctrl-C comes: as stdout has just
        been replaced, or is about to be restored."""
        s = self.open("-q")
        s.run("function press() io.popen('kill -INT $PPID'):close() end")
        s.run("machine = require 'nacre.machine'")
        s.run("mute, unmute = machine.mute, machine.unmute")
        press = "function machine.%s(...) n = n - 1 if n == 0 then " \
                "press() end return %s(...) end"
        pressed = "function machine.mute(...) n = n - 1 local done = " \
                  "mute(...) if n == 0 then press() end return done end"
        for change in (press % ("mute", "mute"), pressed,
                       press % ("unmute", "unmute")):
            s.run(change)
            for n in (1, 2, 9):
                s.run("n = %d" % n)
                out = s.run(":bench --budget 0.05 1 + 1")
                self.assertIn("interrupted", out, (change, n))
                self.assertEqual(s.run("print 'here'"), "here\n")
                self.assertEqual(s.run("collectgarbage 'isrunning'"), "true\n")
            s.run("machine.mute, machine.unmute = mute, unmute")

    def test_curves(self):
        s = self.open("-q", columns=60)
        s.send(':sweep n=2..32*2 --budget 0.01 -s "a = nacre.ones(n, n)" '
               "a:mm(a) ;; a + a" + ENTER)
        out = s.prompt()
        self.assertIn("* a:mm(a)   + a + a", out)
        axis = [line for line in out.split("\n") if "└" in line]
        self.assertEqual(len(axis), 1, out)
        self.assertLessEqual(len(axis[0]), 60)
        self.assertRegex(out, r"\n +2 +.*4 .*8 .*16 .*32\n")

    def test_ascii(self):
        s = self.open("-q", "--ascii")
        out = s.run(":bench --budget 0.05 nacre.ones(100):sum()")
        self.assertTrue(out.isascii(), out)
        self.assertRegex(out, r"median .*middle half")
        out = s.run(":sweep n=2..32 --budget 0.01 "
                    '-s "a = nacre.ones(n)" a:sum()')
        self.assertTrue(out.isascii(), out)
        self.assertIn("+---", out)

    def test_peak_is_asked_for_once(self):
        s = self.open("-q", "--device", "cpu")
        s.run("a = nacre.ones(300, 300)")
        out = s.run(":time a:mm(a)") + s.run(":time a:mm(a)")
        self.assertEqual(len(re.findall(r"\(:peak to measure\)", out)), 1, out)


if __name__ == "__main__":
    terminal.main()
