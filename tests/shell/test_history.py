#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_history.py - what the shell keeps of its lines.
#
#   test_history.py NACRE [unittest options]

import os
import stat

import pexpect

import terminal
from terminal import ENTER, Shell, UP


class History(Shell):
    # ---- history

    def test_history_of_two_sessions(self):
        a, b = self.open(), self.open()
        a.run("a1 = 1")
        b.run("b1 = 1")
        a.run("a2 = 1")
        b.run("b2 = 1")
        self.assertEqual(a.quit() + b.quit(), 0)
        self.assertEqual(self.entries(),
                         ["a1 = 1\n", "b1 = 1\n", "a2 = 1\n", "b2 = 1\n"])
        mode = stat.S_IMODE(os.stat(self.history()).st_mode)
        self.assertEqual(mode, 0o600)

    def test_block_comes_back_in_a_new_session(self):
        s = self.open()
        s.send("for i = 8, 9 do" + ENTER + "print(i)" + ENTER)
        s.run("end")
        s.quit()
        s = self.open()
        s.send(UP)
        self.assertIn("\n8\n9\n", s.run(""))

    def test_history_by_beginning(self):
        s = self.open()
        for text in ("alpha = 3", "beta = 4", "gamma = 5"):
            s.run(text)
        s.send("al" + UP)
        self.assertIn("alpha = 3", s.settle(0.2))
        s.run("; alpha = alpha + 1")
        self.assertEqual(s.run("alpha"), "4\n")

    def test_what_is_not_kept(self):
        s = self.open()
        for text in (" secret = 1", "x = 1", "x = 1", "y = 2"):
            s.run(text)
        self.assertEqual(self.entries(), ["x = 1\n", "y = 2\n"])
        s.quit()
        s = self.open("--no-history")
        s.run("z = 3")
        s.quit()
        self.assertEqual(len(self.entries()), 2)

    def test_written_before_it_runs(self):
        s = self.open()
        s.send("os.exit(1)" + ENTER)
        s.child.expect(pexpect.EOF)
        self.assertEqual(self.entries(), ["os.exit(1)\n"])

    def test_history_is_trimmed(self):
        path = os.path.join(self.home, "hist")
        with open(path, "w") as f:
            for i in range(50):
                f.write("#1700000000\nx = %d\ny = %d\n" % (i, i))
        s = self.open(NACRE_HISTORY=path, NACRE_HISTSIZE="10")
        s.run("last = 1")
        s.quit()
        with open(path) as f:
            text = f.read()
        self.assertEqual(text.count("#"), 10)
        self.assertTrue(text.startswith("#1700000000\nx = 41\ny = 41\n"))
        self.assertTrue(text.endswith("\nlast = 1\n"))

    def test_history_command(self):
        s = self.open()
        s.run("one = 1")
        s.run("two = 2")
        self.assertIn("    1  one = 1\n", s.run(":history"))
        out = s.run(":history /two/")
        self.assertIn("two = 2", out)
        self.assertNotIn("one = 1", out)


if __name__ == "__main__":
    terminal.main()
