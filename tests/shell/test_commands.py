#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_commands.py - help and commands at a terminal; see also the sessions help
# and commands in tests/transcripts/.

import os
import re

import pexpect
import terminal
from launch import surroundings
from terminal import CTRL_C, CTRL_D, ENTER, Shell


class Commands(Shell):
    def test_help(self, s):
        for row in s.run("?tensor").split("\n"):
            self.assertLess(len(row), 81)
        s.send("nacre.zeros\x1bh")
        self.assertIn("zeros(", s.settle(0.2).replace("nacre.zeros", ""))

    def test_list_of_commands(self, s):
        out = s.run(":help")
        self.assertLess(out.count("\n"), 35)
        for row in out.split("\n"):
            self.assertLess(len(row), 80)
        every = re.findall(r"(?m)^  :(\w+)", s.run(":help all"))
        self.assertGreater(len(every), 30)
        for name in every:
            self.assertRegex(out, r":%s\b" % name)
            usage = s.run("?:" + name)
            called = re.search(r"(?m)^  (shell\.\w+)\(", usage)
            self.assertTrue(called, usage)
            self.assertEqual(s.run("type(%s)" % called.group(1)),
                             '"function"\n')

    def test_tour_waits(self):
        c = pexpect.spawn("/usr/bin/env", [terminal.PROGRAM, "--tour"],
                          env=surroundings(self.home, NO_COLOR="1"), timeout=60,
                          encoding="utf-8", dimensions=(60, 80))
        self.addCleanup(c.close, force=True)

        def after(keys):
            c.send(keys)
            c.expect_exact("leaves the tour: ")
            return c.before
        self.assertNotIn("a[{2, 3}]", after(""))
        self.assertIn("> a[{2, 3}], a[-1]\r\n6\t", after(ENTER))
        self.assertIn("\r\n7\r\n", after("a:sum():item() // 3" + ENTER))
        c.send("print 'now' while true do end" + ENTER)
        c.expect_exact("now\r\n")
        self.assertIn("interrupted", after(CTRL_C))
        c.send("q" + ENTER)                # the prompt has the tour's variables
        c.expect("> ")
        c.send("#a * 1000" + ENTER)
        c.expect_exact("2000\r\n")
        c.send(CTRL_D)
        c.expect(pexpect.EOF)

    def test_home(self, s):
        s.run("x = 1")
        self.assertIn("/typed.lua: 1 input", s.run(":save ~/typed.lua"))
        self.assertIn("exists already", s.run(":save ~/typed.lua"))
        self.assertNotIn("error", s.run(":run ~/typed.lua"))
        self.assertEqual("", s.run(":record ~/log.txt"))
        self.assertIn("is closed", s.run(":record off"))
        names = ["log.txt", "typed.lua"]
        if "not found" not in s.run("nacre.encode_png(nacre.eye(2))"):
            self.assertIn("/x.png 2x2", s.run(":png ~/x.png nacre.eye(2)"))
            self.assertIn("2x2", s.run(":show ~/x.png"))
            names.append("x.png")
        self.assertEqual([name for name in sorted(os.listdir(self.home))
                          if name[0] != "."], names)


if __name__ == "__main__":
    terminal.main()
