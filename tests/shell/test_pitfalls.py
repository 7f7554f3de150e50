#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_pitfalls.py - what goes wrong where readline, Lua, signals and threads
# meet, as far as no other test shows it.  tests/README.md lists them all.

import glob
import os
import re
import shutil
import subprocess
import termios

import terminal
from launch import surroundings
from terminal import ENTER, Shell

HOME_KEY, LEFT, RIGHT = "\x01", "\x1b[D", "\x1b[C"


class Pitfalls(Shell):
    def test_signals_come_to_the_main_thread(self):
        """P5: all other threads block SIGINT, whoever made them."""
        s = self.open("--threads", "4")
        s.run("a = nacre.rand(600, 600)  b = a:mm(a):exp():sum()")
        blocked = {}
        for path in glob.glob("/proc/%d/task/*/status" % s.child.pid):
            with open(path) as f:
                mask = re.search(r"(?m)^SigBlk:\s*(\w+)$", f.read()).group(1)
            blocked[int(path.split("/")[4])] = bool(int(mask, 16) & 2)
        self.assertGreater(len(blocked), 1)
        del blocked[s.child.pid]
        self.assertTrue(all(blocked.values()), blocked)

    def test_errors_stay_out_of_readline(self, s):
        """P6: a prompt that fails is replaced, and the line works on."""
        for prompt in ("function() error 'no prompt' end", "{}", "42",
                       "setmetatable({}, {__tostring = error})",
                       "function() return {} end"):
            s.send("_PROMPT = " + prompt + ENTER)
            s.child.expect(terminal.READY)
            s.send("6*7" + ENTER)
            s.expect("42\r\n")
            s.child.expect(terminal.READY)
        s.send("_PROMPT = nil" + ENTER)
        s.prompt()
        self.assertEqual(s.run("1 + 1"), "2\n")

    def test_prompt_width_with_colours(self):
        """P11: what is typed at the front of a line that wraps stands there,
        with colours in the prompt and without."""
        text = "x = '" + "abcdefghij" * 5
        for colours in ("1", ""):
            s = self.open(columns=40, NO_COLOR=colours)
            s.send("error 'x'" + ENTER)  # the next prompt is red
            s.child.expect(terminal.READY)
            s.child.expect("> ")
            sent = s.child.before + s.child.after
            self.assertEqual("\x1b[31m" in sent, colours == "")
            for keys in (text, HOME_KEY, "y, ", RIGHT * 43, "Z", LEFT * 44):
                s.press(keys)
            want = "y, " + text[:43] + "Z" + text[43:]
            y, x = s.screen.cursor
            self.assertEqual(x, 5)
            self.assertEqual([s.screen.line(y), s.screen.line(y + 1)],
                             ["> " + want[:37], "  " + want[37:]])

    def cooked(self, s):
        return bool(termios.tcgetattr(s.child.child_fd)[3] &
                    termios.ICANON)

    def test_programs_get_the_terminal_as_it_was(self, s):
        """P9, P12: while a line runs the terminal is cooked, without
        bracketed paste; io.read has the terminal's own keys."""
        s.settle(0.1)
        self.assertFalse(self.cooked(s))
        s.send("text = io.read()" + ENTER)
        s.expect(terminal.PASTE_OFF)
        for _ in range(100):
            if self.cooked(s):
                break
            s.settle(0.02)
        self.assertTrue(self.cooked(s))
        s.send("wrong\x15right\x7f" + ENTER)  # the line, then one character
        s.prompt()
        self.assertEqual(s.run("text"), '"righ"\n')
        for leaving in ("os.exit(3)", "os.exit(3, true)",
                        "local t <close> = setmetatable({}, {__close = "
                        "function() end}) os.exit(3)"):
            s = self.open()
            s.send(leaving + ENTER)
            s.expect(terminal.PASTE_OFF)
            self.assertEqual(s.end(), 3)
            self.assertNotIn("\x1b[?2004h", s.child.before)

    def test_lines_are_chunks(self, s):
        """P14: what Lua would join or lose between lines is not."""
        s.run("f = print  g = 5")
        self.assertIn("function", s.run("f"))  # and no call of it
        self.assertEqual(s.run("(g)"), "5\n")
        self.assertIn("no variable 'nosuch'", s.run("nosuch.field"))
        self.assertIn("kept as a session variable", s.run("local k = 1"))
        self.assertEqual(s.run("k, 1//1, 2^1, 1/0"), "1\t1\t2.0\tinf\n")
        self.assertIn("divide by zero", s.run("1//0"))
        s.run("_ = 'mine'")
        s.run("1 + 1")
        self.assertEqual(s.run("_"), '"mine"\n')

    def test_the_editor_is_named(self):
        """P17: what edits the line is said, for not all can the same."""
        said = subprocess.run([terminal.PROGRAM, "-V"], encoding="utf-8",
                              stdout=subprocess.PIPE).stdout
        self.assertRegex(said, r"(?m)^editor    readline \d")

    def test_numbers_in_other_countries(self):
        """P11, P19: a decimal comma is none of ours, read or written."""
        folder = os.path.join(self.home, "locales")
        os.mkdir(folder)
        if not shutil.which("localedef") or subprocess.run(
                ["localedef", "-i", "de_DE", "-f", "UTF-8",
                 folder + "/de_DE.UTF-8"], stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode > 1 or \
                not os.path.exists(folder + "/de_DE.UTF-8/LC_NUMERIC"):
            self.skipTest("no German locale can be made")
        env = surroundings(self.home, LOCPATH=folder, LC_ALL="de_DE.UTF-8")
        out = subprocess.run(
            ["/bin/bash", "-c", "printf %.1f 1,5"], env=env, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if out != "1,5":
            self.skipTest("the locale has no effect")
        out = subprocess.run(
            [terminal.PROGRAM, "-p", "1.5, tonumber '2.5', nacre.full({2}, "
             "0.25), ('%.1f'):format(3.5)"], env=env, encoding="utf-8",
            stdout=subprocess.PIPE).stdout
        self.assertIn("1.5\t2.5\t", out)
        self.assertIn('"3.5"', out)
        self.assertNotIn(",", out)

    def test_letters_in_the_c_locale(self):
        """What is typed stays; what is written is ASCII."""
        for name in "C", "POSIX":
            s = self.open("--no-history", LC_ALL=name)
            self.assertEqual(s.run("#'\u65e5\u672c \u00e9'"), "9\n")
            self.assertEqual(s.run("'\u00e9'"), '"\\xC3\\xA9"\n')
            self.assertIn("error", s.run("x.\u65e5"))
            out = s.run(":plot nacre.tensor{1,2}")
            self.assertTrue(out.isascii(), out)


if __name__ == "__main__":
    terminal.main()
