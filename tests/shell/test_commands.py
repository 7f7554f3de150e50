#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_commands.py - help and commands at a terminal; see also the sessions help
# and commands in tests/transcripts/.
#
#   test_commands.py NACRE [unittest options]

import os
import re

import terminal
from terminal import Shell


class Commands(Shell):
    def test_help(self):
        s = self.open()
        for row in s.run("?tensor").split("\n"):
            self.assertLess(len(row), 81)
        s.send("nacre.zeros\x1bh")
        self.assertIn("zeros(", s.settle(0.2).replace("nacre.zeros", ""))

    def test_list_of_commands(self):
        s = self.open()
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

    def test_home(self):
        s = self.open()
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
