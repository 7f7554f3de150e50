#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_commands.py - help, commands and completion at a terminal.
#
#   test_commands.py NACRE [unittest options]

import os
import re

import terminal
from terminal import CTRL_C, ENTER, Shell, TAB


class Commands(Shell):
    # ---- help, commands, completion

    def test_method_reference(self):
        s = self.open()
        s.run("a = nacre.zeros(2, 3)")
        self.assertRegex(s.run("a:sum"), r"^sum\([^\n]*\n  \S")
        self.assertIn("did you mean 'sum'", s.run("a:summ"))
        self.assertRegex(s.run("a:sum(1):mean"), r"^mean\([^\n]*\n  \S")
        self.assertIn("did you mean 'mean'", s.run("a:sum(1):meen"))
        self.assertEqual(s.run("a:ndim"),
                         "error: ndim is no method: a.ndim\n")
        self.assertIn("no method: a.T\n", s.run("a:T"))
        self.assertIn("did you mean", s.run("nacer:sum"))

    def test_help(self):
        s = self.open()
        for text in ("?sum", "sum?", "?nacre.sum", ":help sum"):
            self.assertRegex(s.run(text), r"^sum\(", text)
        self.assertIn(":whos", s.run(":help"))
        self.assertIn("error: no help for 'summ', did you mean 'sum'?",
                      s.run("?summ"))
        self.assertIn(":whos", s.run("help"))
        self.assertIn("library", s.run("?torch"))
        self.assertIn("nacre.load(path", s.run("?load"))
        self.assertIn("nacre.pi is a number", s.run("?pi"))
        self.assertRegex(s.run("torch"), r"^nacre [\d.]+\n$")
        s.run("a = nacre.zeros(2)")
        self.assertIn("a is a tensor: float32[2] cpu", s.run("?a"))
        for row in s.run("?tensor").split("\n"):
            self.assertLess(len(row), 81)
        self.assertRegex(s.run("?where"), r"\n  grad   where")
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

    def test_names_of_ipython(self):
        s = self.open()
        s.run("one = 1")
        self.assertIn("1  one = 1", s.run("%hist"))
        self.assertIn("one", s.run("%whos"))
        for name in ("timeit", "time", "run", "load"):
            self.assertIn("error: :", s.run("%" + name), name)
        self.assertIn("error: no command :nosuch", s.run("%nosuch"))
        s.run("%reset")
        self.assertEqual(s.run("one"), "nil\n")

    def test_commands(self):
        s = self.open()
        self.assertIn("error: no command :tiem, did you mean :time?",
                      s.run(":tiem"))
        s.run("a = nacre.zeros(4, 2)  b = a:view(8)  n = 5")
        out = s.run(":wh")
        self.assertRegex(out, r"a +float32\[4x2\] cpu +32 B\n")
        self.assertRegex(out, r"b +float32\[8\] cpu +view of a\n")
        self.assertRegex(out, r"n +5\n")
        self.assertNotIn("float32[8]", s.run(":whos a"))
        self.assertRegex(s.run(":time c = a + 1"), r"^  [\d.]+ [num]?s")
        self.assertEqual(s.run("c ~= nil"), "true\n")
        self.assertIn("error", s.run(":time nosuch()"))
        s.run(":seed 3")
        s.run("x = nacre.rand(1):sum():item()")
        s.run(":seed 3")
        self.assertEqual(s.run("x == nacre.rand(1):sum():item()"), "true\n")
        self.assertIn("variables removed", s.run(":reset"))
        self.assertEqual(s.run("a"), "nil\n")
        self.assertIn("freed", s.run(":gc"))
        self.assertIn("in use", s.run(":mem"))

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

    def test_completion(self):
        s = self.open()
        s.run("subject = {field = 1, fields = 2}")
        s.run("result = subj" + TAB + ".field" + TAB)
        self.assertEqual(s.run("result"), "1\n")
        self.assertEqual(s.run("('x'):re" + TAB + "p" + TAB + "3)"),
                         '"xxx"\n')
        s.send("nacre.ran" + TAB + TAB)
        out = s.settle(0.3)
        self.assertRegex(out, r"\n  random_\([^\n]*\)  +\S")
        self.assertRegex(out, r"\n  range\(")
        s.send(CTRL_C)
        s.prompt()
        s.send("('x'):rep():mul" + TAB + TAB)
        self.assertRegex(s.settle(0.3), r"\n  mul\(other\)[^\n]*\n  mul_\(o")
        s.send(CTRL_C)
        s.prompt()
        s.run("t = nacre.zeros(2)")
        s.send("t:su" + TAB + TAB)
        self.assertRegex(s.settle(0.3), r"sum\(")
        s.send(CTRL_C)
        s.prompt()
        self.assertIn("name", s.run(":who" + TAB))

    def test_completion_runs_no_user_code(self):
        """P6: what Tab looks at is not run, so it cannot fail either."""
        s = self.open()
        s.run("ran = 0")
        s.run("trap = setmetatable({}, {__index = function() ran = 1 end,"
              " __tostring = function() ran = 1 return '' end})")
        s.send("trap.x" + TAB + TAB + CTRL_C)
        s.prompt()
        s.send("tra" + TAB + TAB + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("ran"), "0\n")

    def test_completion_of_file_names(self):
        s = self.open()
        path = os.path.join(self.home, "unlikely-name.txt")
        open(path, "w").close()
        out = s.run("f = '%s/unli" % self.home + TAB)
        self.assertEqual(s.run("f == '%s'" % path), "true\n", out)


if __name__ == "__main__":
    terminal.main()
