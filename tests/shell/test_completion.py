#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_completion.py - what Tab completes and offers: names, what fits in a call,
# words of commands, files in quotes.

import re

import terminal
from terminal import Shell, TAB


class Completion(Shell):
    def open(self, *args, **options):
        """In a window where a long list has a row for each."""
        return super().open(*args, rows=90, **options)

    def offered(self, s, text):
        """What is listed for a text, a line each."""
        s.send(text + TAB)
        out = s.settle(0.25)
        s.drop()
        return out.split("\n")

    def completes(self, s, text, whole):
        """Tab puts in what is missing; the line is not run."""
        s.send(text + TAB)
        s.expect(whole)

    def names(self, s, text):
        return [m.group(1) for m in
                (re.match(r"  ([\w.]+=?)(nil|false| |$)", line)
                 for line in self.offered(s, text)) if m]

    def tensors(self):
        s = self.open()
        s.run("a = nacre.zeros(3000, 4)  w = nacre.zeros(4, 8)"
              "  w2 = nacre.zeros(4, 4)  b = nacre.zeros(3000, 4)"
              "  v = nacre.zeros(4)  i = nacre.ones(3000, 4, "
              "{dtype='int64'})  n = 5  t = {}")
        return s

    def test_names(self, s):
        s.run("subject = {field = 1, fields = 2}")
        s.run("result = subj" + TAB + ".field" + TAB)
        self.assertEqual(s.run("result"), "1\n")
        self.assertEqual(s.run("('x'):re" + TAB + "p" + TAB + "3)"),
                         '"xxx"\n')
        self.assertEqual(s.run("('x'):rep(2):up" + TAB + ")"), '"XX"\n')
        self.assertIn("name", s.run(":who" + TAB))
        s.run("t = nacre.zeros(2)")
        for text, pattern in (
                ("nacre.ran", r"\n  random_\([^\n]*\)  +\S"),
                ("nacre.ran", r"\n  range\("), ("t:su", r"sum\("),
                ("f():mul", r"\n  mul\(other\)[^\n]*\n  mul_\(o")):
            self.assertRegex("\n".join(self.offered(s, text)), pattern)

    def test_own_functions_with_names_of_the_library(self, s):
        s.run("Acc = {} Acc.__index = Acc  function Acc:add(n) return n end  "
              "function Acc:sum(a, b) end  acc = setmetatable({}, Acc)  "
              "net = {sort = function(z) end, exp = nacre.exp}")
        for text, pattern in (("acc:", r"\n  add\(n\) *\n"),
                              ("acc:", r"\n  sum\(a, b\) *\n"),
                              ("net.", r"\n  sort\(z\) *(\n|$)"),
                              ("net.", r"\n  exp\([^\n]*\)  +\S"),
                              ('require "nacre.n', r"nacre\.nn\b")):
            self.assertRegex("\n".join(self.offered(s, text)), pattern)

    def test_keys_of_tables(self, s):
        s.run("M = {['b.1.w'] = nacre.ones(2), ['b.1.v'] = 1, ['c-d'] = 2}")
        self.assertRegex("\n".join(self.offered(s, 'M["b.1')),
                         r'\n  b\.1\.v"\] *\n  b\.1\.w"\] +float32\[2\] cpu')
        self.assertIn('  ["b.1.w"]', "\n".join(self.offered(s, "M.")))
        s.run("r = M.c" + TAB)  # the only one
        self.assertEqual(s.run("r"), "2\n")
        s.run("M.name, M.other = 3, 4")
        self.assertEqual(self.names(s, "x = M."), ["name", "other"])

    def test_classes(self, s):
        out = "\n".join(self.offered(s, "nacre.nn.Conv"))
        self.assertNotIn("  table", out)
        self.assertRegex(out, r"\n  Conv1d\(in_channels, ")
        s.run("C = {Net = nacre.nn.Module 'Net', net = nacre.nn.Module}")
        self.assertRegex("\n".join(self.offered(s, "C.")),
                         r"\n  Net +class Net")

    def test_values_of_commands(self, s):
        for command in (":view ", ":shape ", ":plot ", ":hist "):
            out = self.names(s, command + "b") + self.names(s, command + "d")
            self.assertNotIn("break", out, command)
            self.assertNotIn("do", out, command)
        self.assertIn("  do", "\n".join(self.offered(s, ":time d")))
        s.run("x = 1")
        self.assertEqual(self.names(s, ":history to"), [])
        out = "\n".join(self.offered(s, ":history "))
        self.assertIn("yesterday", out)
        self.assertRegex(out, r"20\d\d-\d\d-\d\d")
        self.assertIn("HOME", "\n".join(self.offered(s, 'os.getenv("')))

    def test_shapes_that_fit(self):
        s = self.tensors()
        lines = self.offered(s, "a:mm(")
        self.assertRegex(lines[1], r"^  mm\(mat2\) -> tensor +"
                         r"a is float32\[3000x4\] cpu$")
        self.assertEqual(self.names(s, "a:mm("), ["w", "w2"])
        self.assertEqual(self.names(s, "c = nacre.mm(a, "), ["w", "w2"])
        self.assertEqual(self.names(s, "a:add("), ["a", "b", "i", "v"])
        self.assertEqual(self.names(s, "print(a:mm("), ["w", "w2"])

    def test_globals_for_scripts_are_not_offered(self, s):
        for word, name in (("s", "skip"), ("t", "torch"), ("a", "arg")):
            self.assertFalse(any(re.match(r"  %s\b" % name, line)
                                 for line in self.offered(s, word)))
        s.run("skipped = 1 skip = 2")
        s.run("sk" + TAB + "=5")
        self.assertEqual(s.run("skip"), "5\n")

    def test_the_only_one_is_put_in(self):
        s = self.tensors()
        s.run("w = nil")
        self.completes(s, "r = a:mm(", "a:mm(w2")
        s.run("):size(2)")
        self.assertEqual(s.run("r"), "4\n")
        self.completes(s, "r = a:gather(2, ", "(2, i")
        s.run(")")

    def test_nothing_fits(self):
        s = self.tensors()
        lines = self.offered(s, "v:mm(")
        self.assertRegex(lines[1], r"^  mm\(mat2\) -> tensor")
        self.assertNotIn("  w", "\n".join(lines[2:]))

    def test_unknown_calls_offer_variables(self):
        s = self.tensors()
        s.run("function mine(first, second) end")
        out = self.offered(s, "mine(")
        self.assertIn("  mine(first, second)", "\n".join(out))

    def test_fitting_computes_nothing_large(self, s):
        s.run("big = nacre.empty(1, 1):expand(100000, 100000)")
        s.run("one = nacre.manual_seed(3)  seq = nacre.rand(1):item()")
        s.run("nacre.manual_seed(3)")
        self.assertIn("big", self.names(s, "big:mm(") + ["big"])
        self.assertEqual(s.run("nacre.rand(1):item() == seq"), "true\n")

    def test_named_options(self):
        s = self.tensors()
        self.assertEqual(self.names(s, "a:sum{"), # what was typed is first
                         ["dtype=", "dim=", "keepdim="])
        self.assertEqual(self.names(s, "a:sum{dim=1, "),
                         ["dtype=", "keepdim="])
        self.assertIn("dtype=", self.names(s, "nacre.zeros(2, {"))
        self.completes(s, "r = a:sum{k", "keepdim=")
        s.run("true}:size()")
        self.assertEqual(s.run("r"), "{1, 1}\n")

    def test_lists_are_no_options(self):
        s = self.tensors()
        self.assertNotIn("dim=", self.names(s, "nacre.cat({"))
        self.assertNotIn("dim=", self.names(s, "nacre.cat({a, "))

    def test_values_of_options(self):
        s = self.tensors()
        self.completes(s, "r = nacre.zeros(2, {dtype='int6", "int64'")
        s.run("})")
        self.assertEqual(s.run("r.dtype"), '"int64"\n')
        self.completes(s, "r = nacre.zeros(2, {device='cp", "cpu'")
        s.run("})")

    def test_commands_take_files(self):
        self.file("unlikely.lua")
        s = self.open()
        self.completes(s, ":run %s/unli" % self.home, "unlikely.lua ")
        s.run("")
        self.assertEqual(self.entries()[-1],
                         ":run %s/unlikely.lua \n" % self.home)

    def test_commands_take_names(self, s):
        self.assertIn("precision",
                      s.run(":set prec" + TAB))
        self.assertIn("shell.bench", s.run(":help :benc" + TAB))

    def test_commands_take_words(self, s):
        for keys, text in ((":set graphics ki", "kitty"), (":nan tr", "trap"),
                           (":set dtype float6", "float64"),
                           (":timing of", "off"), (":reload au", "auto"),
                           (":dev cp", "cpu"), (":set stats = of", "off")):
            self.completes(s, keys, text)
            s.drop()
        s.send(":set color " + TAB + TAB)
        out = s.settle()
        for word in ("auto", "always", "never"):
            self.assertIn(word, out)
        self.assertNotIn("assert", out)

    def test_files_only_in_quotes(self):
        """P7"""
        path = self.file("unlikely.txt")
        s = self.open()
        s.run("os.execute 'true'")
        self.assertNotIn("unlikely.txt",
                         "\n".join(self.offered(s, "x = unli")))
        out = s.run("f = '%s/unli" % self.home + TAB)
        self.assertEqual(s.run("f == '%s'" % path), "true\n", out)

    def test_no_user_code(self, s):
        """P6: what Tab looks at is not run, so it cannot fail either."""
        s.run("ran = 0  local function hit() ran = 1 return 1 end "
              "trap = setmetatable({}, {__index = hit, __call = hit, "
              "__len = hit, __tostring = hit, __eq = hit})")
        s.run("box = {trap = trap}  w = nacre.zeros(2)")
        for text in ("trap(", "trap.x(", "trap:y(", "nacre.mm(trap, ",
                     "nacre.zeros(trap.n, {", "trap.x" + TAB, "tra" + TAB,
                     "trap['x" + TAB, "box.trap:y" + TAB, "box['tra" + TAB,
                     "w:sum(trap, ", "trap():y" + TAB, "print(trap, ",
                     "w:add(trap(", ":bench trap(", ":plot trap -"):
            self.offered(s, text)
        self.assertEqual(s.run("ran"), "0\n")

    def test_behind_an_index(self, s):
        s.run("m = nacre.ones(3, 4)  v = nacre.ones(3)")
        for text in ("m[1]:su", "m['2']:su", "m[{1}]:su", "m['2, 1:2']:su",
                     "v['1, newaxis']:su", "v['1:2']:su", "x = m[-1]:su"):
            self.assertIn("  sum", "\n".join(self.offered(s, text)),
                          text)
        for text in ("m[1][2]:su", "v[1]:su", "m['1, 2']:su"):
            self.assertNotIn("  sum", "\n".join(self.offered(s, text)),
                             text)
        self.assertEqual(s.run(""), "")
        s.run("m[1].sha" + TAB)
        self.assertEqual(s.run("_[1]"), "4\n")

    def test_behind_a_question_mark(self, s):
        for text, name in (("?su", "sub"), ("?soft", "softmax"),
                           ("?linalg.s", "linalg.svd"), ("?conv", "conv2d"),
                           ("?broad", "broadcasting"),
                           ("?nacre.su", "sum")):
            out = "\n".join(self.offered(s, text))
            self.assertIn("  " + name.split(".")[-1], out, text)
            self.assertNotIn(name.split(".")[-1] + "(\n", out)
        out = " ".join(self.offered(s, "?")).split()
        self.assertIn("math", out)
        self.assertNotIn("while", out)
        s.run("?is_le" + TAB)
        self.assertEqual(self.entries()[-1], "?is_leaf\n")
        s.run("?linalg.svdv" + TAB)
        self.assertEqual(self.entries()[-1], "?linalg.svdvals\n")


if __name__ == "__main__":
    terminal.main()
