#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_extensions.py - what a package in the start-up file adds to the prompt:
# the example of the guide, found by require beside init.lua.

import os

import terminal
from terminal import CTRL_D, ENTER, Shell, TAB

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "docs", "guide")


class Extensions(Shell):
    def open(self, *args, init="", **options):
        with open(os.path.join(GUIDE, "journal.lua"), encoding="utf-8") as f:
            self.file(".config/nacre/journal.lua", f.read())
        self.journal = os.path.join(self.home, "journal.txt")
        self.file(".config/nacre/init.lua",
                  f"require('journal').open({self.journal!r})\n{init}")
        return super().open(*args, **options)

    def test_journal(self, s):
        self.assertEqual(s.run(":note it is  warm"), "")
        s.run("1 + nil")
        s.run(":nosuch")
        self.assertEqual(s.run(":journal"),
                         "* it is warm\n! 1 + nil\n! :nosuch\n")
        self.assertEqual(s.run(":journal warm"), "* it is warm\n")
        self.assertIn("write a line to the journal", s.run(":help note"))
        s.run(":jour" + TAB)
        self.assertIn("it is warm", s.run(":jour" + TAB))

    def test_exit(self):
        s = self.open(init="shell.on('exit', function() "
                           "io.open('%s/left', 'w'):write 'x':close() end)"
                           % self.home)
        s.send(CTRL_D)
        s.child.expect(terminal.pexpect.EOF)
        self.assertEqual(self.read("left"), "x")

    def test_errors(self):
        s = self.open(init="shell.command{name='bad', doc='x', run=function() "
                           "error 'one' end}\n"
                           "shell.on('input', function() error 'two' end)\n"
                           "shell.on('result', function() error 'three' end)\n"
                           "shell.on('error', function() error 'four' end)\n")
        out = s.run(":bad")
        for text in ("one", "in the command :bad", "two",
                     'in shell.on "input"', "four", 'in shell.on "error"'):
            self.assertIn(text, out)
        out = s.run("6 * 7")
        self.assertIn("42", out)
        self.assertIn("three", out)
        self.assertNotIn("two", out)
        self.assertEqual(s.run("6 * 8"), "48\n")

    def test_completion(self):
        s = self.open(init="function train(model, n) return model end\n"
                           "shell.complete(train, 'model', {'linear', "
                           "{'cubic', 'four weights'}})\n"
                           "shell.complete(':note', 'words', function(w) "
                           "if w == 'b' then error 'lost' end "
                           "while w == 'c' do end "
                           "return {'apple', 'pear'} end)\n")
        self.assertEqual(s.run('train("li' + TAB + ")"), '"linear"\n')
        s.send('train("' + TAB)
        s.expect("four weights")
        s.drop()
        s.run(":note ap" + TAB)
        self.assertEqual(s.run(":journal"), "* apple\n")
        s.send(":note b" + TAB)
        self.assertNotIn("lost", s.settle(0.3))
        s.drop()
        out = s.run("6 * 7")
        self.assertIn("error: lost", out)
        self.assertIn("in shell.complete", out)
        self.assertIn("42", out)
        s.run(":note d" + TAB) # the function is right again
        self.assertIn("it took more than 2 s", s.run(":note c" + TAB))
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_keys(self):
        s = self.open(init="shell.key('\\\\C-t', function(line, at) "
                           "return 'x = ' .. line, at + 4 end)\n"
                           "shell.key('\\\\et', function() return nil end)\n"
                           "shell.key('\\\\C-y', function() return 7 end)\n"
                           "shell.key('\\\\eq', function() while true do end "
                           "end)\n")
        s.run("67\x1b[D\x14*\x1bt")
        self.assertEqual(s.run("x"), "42\n")
        out = s.run("\x19x")
        self.assertIn("got a number", out)
        self.assertIn('in shell.key "\\C-y"', out)
        self.assertTrue(out.endswith("42\n"), out)
        self.assertEqual(s.run("\x19x"), "42\n") # told once
        self.assertIn("it took more than 2 s", s.run("\x1bqx"))
        for key, why in (("\\\\C-i", "uses it: nacre-complete"),
                         ("\\\\C-a", "the shell itself uses it"),
                         ("\\\\C-x", "other keys begin with it"),
                         ("a", "it is text"), ("\\\\C-d", "leaves"),
                         ("\\\\C-g", "takes back"),
                         ("", "it is no key")):
            out = s.run(f"shell.key('{key}', print)")
            out = " ".join(out.split())      # the window may break it
            self.assertIn("cannot be bound: ", out)
            self.assertIn(why, out)
        s.run("shell.key('\\\\C-t', nil)")
        self.assertEqual(s.run("21\x14"), "12\n")  # exchanges letters again

    def test_hint_is_suggested(self):
        s = self.open(init="shell.hint(function(e) return "
                           "e.message:find 'scale' and 'scale = 1' end)")
        self.assertIn("hint: scale = 1", s.run("error 'no scale'"))
        s.run("\x1b[C")
        self.assertEqual(s.run("scale"), "1\n")

    def test_loop_is_interrupted(self):
        s = self.open(init="shell.on('input', function(text) "
                           "if text == 'loop' then while true do end end end)")
        s.send("loop" + ENTER)
        s.settle(0.3)
        s.send(terminal.CTRL_C)
        s.expect('interrupted in shell.on "input"')
        s.prompt()
        self.assertEqual(s.run("6 * 7"), "42\n")


if __name__ == "__main__":
    terminal.main()
