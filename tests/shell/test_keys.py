#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_keys.py - the keys of the line, and what opens the user's editor.

import signal
import time

import terminal
from terminal import CTRL_C, CTRL_R, CTRL_Z, DOWN, ENTER, Shell, TAB, UP

CTRL_L, CTRL_O, CTRL_S, EDIT = "\x0c", "\x0f", "\x13", "\x18\x05"
QUIT, F1 = "\x1c", "\x1bOP"


class Keys(Shell):
    def editor(self, script):
        return "'%s'" % self.file("editor with a blank",
                                  "#!/bin/sh\n" + script, 0o755)

    def test_edit_the_block(self):
        s = self.open(VISUAL=self.editor(
            'cat "$1" > "$1.seen"; mv "$1.seen" "$HOME/seen"\n'
            'printf "x = 40\\nx + 2\\n\\n" > "$1"\n'), EDITOR="false")
        s.send("y = 1" + EDIT)
        s.sees(r"x \+ 2")
        self.assertIn("42\n", s.run(""))
        self.assertEqual(self.read("seen"), "y = 1\n")
        self.assertEqual(self.entries(), ["x = 40\nx + 2\n"])
        self.assertEqual(s.run("y"), "nil\n(no variable 'y')\n")

    def test_editor_that_fails_loses_nothing(self):
        s = self.open(VISUAL="false")
        s.send("6 *" + EDIT)
        s.settle(0.3)
        self.assertEqual(s.run(" 7"), "42\n")

    def test_keys_of_the_editor_are_its_own(self):
        """Ctrl-C in the editor is not the shell's."""
        s = self.open(VISUAL=self.editor(
            "trap 'echo caught; echo \"'got'\" > \"$1\"; exit 0' INT\n"
            'echo "waiting"; while :; do sleep 0.05; done\n'))
        s.send("old" + EDIT)
        s.child.expect("waiting")
        s.send(CTRL_C)
        s.child.expect("caught")
        s.child.expect("got")
        self.assertEqual(s.run(" = 1"), "")
        self.assertEqual(s.run("got"), "1\n")

    def test_edit_command(self):
        s = self.open(EDITOR=self.editor(
            'sed -i "s/1/2/" "$1"; echo "$@" > "$HOME/args"\n'))
        s.run("x = 10 + 1")
        s.send(":edit" + ENTER)
        s.prompt()
        s.sees(r"x = 20 \+ 1")
        s.run("")
        self.assertEqual(s.run("x"), "21\n")
        s.run("function f() return 1 end")
        s.send(":edit f" + ENTER)
        s.prompt()
        s.sees("return 2 end")
        s.run("")
        self.assertEqual(s.run("f()"), "2\n")

    def test_edit_a_module(self):
        self.file("mod.lua", "local M = {}\nfunction M.f()\n  return 1\n"
                  "end\nreturn M\n")
        s = self.open(EDITOR=self.editor(
            'sed -i "s/return 1/return 2/" "$2"; echo "$1" > "$HOME/at"\n'),
            LUA_PATH=self.home + "/?.lua")
        s.run("m = require 'mod'")
        self.assertEqual(s.run("m.f()"), "1\n")
        self.assertEqual(s.run(":edit m.f"), "(reloaded mod)\n")
        self.assertEqual(s.run("m.f()"), "2\n")
        self.assertEqual(self.read("at"), "+2\n")

    def test_load(self):
        path = self.file("two lines.lua", "a = 5\na * 2\n\n")
        s = self.open()
        s.send(":load '%s'" % path + ENTER)
        s.prompt()
        s.sees(r"a \* 2")
        self.assertIn("10\n", s.run(""))
        self.assertIn("error: cannot open", s.run(":load /no/such/file"))

    def test_submit_and_fetch(self, s):
        for text in ("a = 1", "a = a * 2", "a = a + 3", "other = 0"):
            s.run(text)
        s.send(UP * 4 + CTRL_O)
        for expected in (r"a = a \* 2", r"a = a \+ 3", "other = 0"):
            s.prompt()
            s.sees(expected)
            s.send(CTRL_O)
        s.prompt()
        s.sees("a = 1")  # what Ctrl-O sent is behind the rest
        s.drop()
        self.assertEqual(s.run("a"), "5\n")

    def test_fetch_waits_for_a_whole_block(self, s):
        s.send("for i = 1, 2 do" + CTRL_O + "print(i)" + CTRL_O)
        self.assertIn("\n1\n2\n", s.run("end"))

    def test_clear_keeps_the_line(self, s):
        s.send("20 +" + CTRL_L)
        s.child.expect_exact("> 20 +")
        self.assertEqual(s.run(" 2"), "22\n")

    def test_search_both_ways(self, s):
        for text in ("aa = 11", "bb = 22", "aa = 33"):
            s.run(text)
        s.send(CTRL_R + "aa" + CTRL_R)
        s.settle(0.2)
        s.send(CTRL_S + CTRL_S)  # the first one turns the search round
        s.settle(0.2)
        s.run("")
        self.assertEqual(len(self.entries()), 3)  # the last one again
        self.assertEqual(s.run("aa"), "33\n")

    def test_help_keys(self, s):
        for key in ("\x1bh", F1):
            s.send("x = nacre.mm" + key)
            self.assertIn("mm(self, mat2)", s.settle(0.2))
            s.drop()

    def test_submit_always(self, s):
        s.send("for i = 1, 2 do\x18\x13")
        out = s.prompt()
        self.assertIn("error: 'end' expected", out)

    def test_up_stays_in_the_block(self, s):
        s.run("first = 1")
        s.send("t = {" + ENTER + "1" + UP + UP + DOWN + DOWN)
        s.settle(0.2)
        s.drop()
        self.assertEqual(s.run("first"), "1\n")

    def test_tab_indents(self, s):
        s.run(TAB + "y = 5")
        self.assertEqual(s.run("y"), "5\n")

    def test_vi_commands_move_inside_a_block(self):
        s = self.open(INPUTRC=self.file(
            "inputrc", "set editing-mode vi\nset keyseq-timeout 50\n"))
        s.run("first = 1")
        s.send("for i = 1, 2 do\r")
        s.send("last = i\r")
        s.run("end")
        s.send("\x1b")
        s.settle()
        for key in "kk":               # the block, its second line
            s.send(key)
            s.settle()
        s.send("iv\x1b")               # "vlast = i"
        s.settle()
        s.send("j")                    # its third
        s.settle()
        s.send(ENTER)
        s.prompt()
        self.assertEqual(s.run("vlast"), "2\n")

    # ---- Ctrl-\

    def ask(self, s):
        """Presses Ctrl-\\ while a loop runs; waits for the question."""
        s.send("while true do end" + ENTER)
        time.sleep(0.2)
        s.send(QUIT)
        s.expect("[y/N] ")

    def test_quit_asks_while_running(self, s):
        s.run("kept = 7")
        self.ask(s)
        s.send("n" + ENTER)
        time.sleep(0.1)
        s.send(CTRL_C)
        s.expect("interrupted")
        s.prompt()
        self.assertEqual(s.run("kept"), "7\n")
        self.ask(s)
        self.assertEqual(s.end("y" + ENTER), 128 + signal.SIGQUIT)

    def test_quit_at_the_prompt(self, s):
        s.send("half" + QUIT)
        s.expect(terminal.PASTE_OFF)
        self.assertEqual(s.end(), -signal.SIGQUIT)

    # ---- Ctrl-Z and what follows

    def test_stop_inside_a_block(self):
        c = self.job_shell()
        c.send("for i = 7, 8 do" + ENTER + "print(i)")
        c.expect_exact("print")
        c.send(CTRL_Z)
        c.expect_exact("sh$ ")
        c.send("stty -a | grep -o '.icanon'; fg" + ENTER)
        c.expect_exact(" icanon")  # the terminal is as it was
        c.expect_exact("print")
        c.send(ENTER + "end" + ENTER)
        c.expect("l7\r\n8\r\n")


if __name__ == "__main__":
    terminal.main()
