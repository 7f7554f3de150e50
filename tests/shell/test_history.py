#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_history.py - the history at a terminal, :record, :transcript and :save.

import fcntl
import os
import stat
import subprocess

import terminal
from terminal import ENTER, Shell, UP


class History(Shell):
    # ---- history

    def test_history_of_two_sessions(self):
        """P10: two sessions lose no line of each other."""
        a, b = self.open(), self.open()
        a.run("a1 = 1")
        b.run("b1 = 1")
        a.run("a2 = 1")
        b.run("b2 = 1")
        self.assertEqual(a.quit() + b.quit(), 0)
        self.assertEqual(self.entries(),
                         ["a1 = 1\n", "b1 = 1\n", "a2 = 1\n", "b2 = 1\n"])
        status = os.stat(os.path.join(self.home, self.HISTORY))
        self.assertEqual(stat.S_IMODE(status.st_mode), 0o600)

    def test_block_comes_back_in_a_new_session(self, s):
        """P8, P10"""
        s.send("for i = 8, 9 do" + ENTER + "print(i)" + ENTER)
        s.run("end")
        s.quit()
        s = self.open()
        s.run("x = 1")
        s.send(UP + UP)
        self.assertIn("\n8\n9\n", s.run(""))
        self.assertRegex(s.run(":history /print/"),
                         r"(?m)^ +3  \d\d:\d\d  for i = 8, 9 do \.\.\.$")

    def test_history_by_beginning(self, s):
        for text in ("alpha = 3", "beta = 4", "gamma = 5"):
            s.run(text)
        s.send("al" + UP)
        self.assertIn("alpha = 3", s.settle(0.2))
        s.run("; alpha = alpha + 1")
        self.assertEqual(s.run("alpha"), "4\n")

    def test_what_is_not_kept(self, s):
        for text in (" secret = 1", "x = 1", "x = 1", "y = 2"):
            s.run(text)
        self.assertEqual(self.entries(), ["x = 1\n", "y = 2\n"])
        s.quit()
        s = self.open("--no-history")
        s.run("z = 3")
        s.quit()
        self.assertEqual(len(self.entries()), 2)

    def test_written_before_it_runs(self):
        self.assertEqual(self.open().end("os.exit(1)" + ENTER), 1)
        self.assertEqual(self.entries(), ["os.exit(1)\n"])

    def test_history_is_trimmed(self):
        path = self.file("hist", "".join(
            "#1700000000\nx = %d\ny = %d\n" % (i, i) for i in range(50)))
        s = self.open(NACRE_HISTORY=path, NACRE_HISTSIZE="10")
        s.run("last = 1")
        s.quit()
        text = self.read("hist")
        self.assertEqual(text.count("#"), 10)
        self.assertTrue(text.startswith("#1700000000\nx = 41\ny = 41\n"))
        self.assertTrue(text.endswith("\nlast = 1\n"))

    def test_history_through_links(self):
        """The links stay, and the file that they lead to is written."""
        target = self.file("dotfiles/hist", "".join(
            "#1700000000\nx = %d\n" % i for i in range(30)))
        os.symlink("dotfiles/hist", self.home + "/second")
        os.symlink(self.home + "/second", self.home + "/first")
        s = self.open(NACRE_HISTORY=self.home + "/first", NACRE_HISTSIZE="20")
        s.run("last = 1")
        s.quit()
        for link in "first", "second":
            self.assertTrue(os.path.islink(os.path.join(self.home, link)))
        text = self.read(target)
        self.assertEqual(text.count("#"), 20)
        self.assertTrue(text.endswith("\nlast = 1\n"))
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)

    def test_history_that_is_read_only(self):
        """It is read, and stays as it is."""
        text = "".join("#1700000000\nx = %d\n" % i for i in range(30))
        path = self.file("hist", text, 0o444)
        s = self.open(NACRE_HISTORY=path, NACRE_HISTSIZE="20")
        s.run("y = 1")
        self.assertIn("x = 29", s.run(":history"))
        s.quit()
        self.assertEqual(self.read("hist"), text)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o400)

    def test_folders_that_cannot_be_made(self):
        """What is wrong is said of the first of them."""
        self.file("file")
        os.mkdir(self.home + "/closed")
        for path, why in (("file/a/b/hist", "Not a directory"),
                          ("/proc/self/a/b/hist", "No such file")):
            s = self.open(NACRE_HISTORY=os.path.join(self.home, path))
            self.assertIn(why, s.greeting)
        os.chmod(self.home + "/closed", 0o555)
        if os.geteuid() != 0:
            s = self.open(NACRE_HISTORY=self.home + "/closed/a/b/hist")
            self.assertIn("Permission denied", s.greeting)

    def test_history_that_cannot_be_had(self):
        """The shell starts without it and says why."""
        os.mkfifo(self.home + "/pipe")
        os.mkdir(self.home + "/folder")
        with open(self.file("locked")) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for name, why in (("pipe", "this is not a regular file"),
                              ("folder", ""), ("locked", "it is locked")):
                path = "%s/%s" % (self.home, name)
                s = self.open(NACRE_HISTORY=path)
                self.assertIn("no history: %s: %s" % (path, why), s.greeting)
                self.assertEqual(s.run("40 + 2"), "42\n")

    def test_what_lies_behind_a_zero_byte_is_not_lost(self):
        path = self.file("zero", "#1\na = \0001\n#2\nb = 2\n")
        s = self.open(NACRE_HISTORY=path)
        s.run("c = 3")
        s.quit()
        text = self.read("zero")
        self.assertIn("b = 2", text)
        self.assertIn("c = 3", text)

    def test_history_command(self, s):
        s.run("one = 1")
        s.run("two = 2")
        for command in (":history", "%hist"):
            self.assertRegex(s.run(command),
                             r"(?m)^    1  \d\d:\d\d  one = 1$")
        out = s.run(":history /two/")
        self.assertIn("two = 2", out)
        self.assertNotIn("one = 1", out)
        s.run("three = math.max(15, 3)")
        self.assertIn("three = ", s.run(":history /max(15/"))
        self.assertEqual(s.run("#shell.history('max(15')"), "3\n")

    def test_history_does_not_steer_the_terminal(self):
        bad = "\x1b]52;c;QUJD\x07\x1b[8m\x0e\x9b31m\u202e"
        path = self.file("hist", '#1700000000\nx = "' + bad + '"\n')
        s = self.open(NACRE_HISTORY=path)
        for line in ":history", ":history /52/", "shell.history()", "In[1]":
            s.send(line + ENTER)
            s.expect("52;c;QUJD")
            came = s.child.before + s.child.buffer + s.raw()
            for text in "\x1b]52", "\x07", "\x1b[8m", "\x0e", "\x9b", "\u202e":
                self.assertNotIn(text, came, line)

    def test_history_by_day(self):
        path = self.file("hist", "#1700000000\nold = 1\n#1700000060\nold = 2\n"
                         "#1732600000\nyoung = 3\n")
        s = self.open(NACRE_HISTORY=path, TZ="UTC")
        self.assertEqual(s.run(":history 2023-11-14"), "2023-11-14\n"
                         "    1  22:13  old = 1\n    2  22:14  old = 2\n")
        self.assertEqual(s.run(":history 2024-11"),
                         "2024-11-26\n    3  05:46  young = 3\n")
        self.assertEqual(s.run(":history 2023-11-14 /old = 2/"),
                         "2023-11-14\n    2  22:14  old = 2\n")
        self.assertEqual(s.run(":history 1 old"),
                         "2023-11-14\n    2  22:14  old = 2\n")
        self.assertEqual(s.run(":history yesterday"), "(no such input)\n")
        s.run("now = 4")
        out = s.run(":history today now")
        self.assertRegex(out, r"^ +9  \d\d:\d\d  now = 4\n$")
        self.assertIn("N of 1 or more", s.run(":history 0"))

    def test_history_without_times(self):
        """The file of a program that writes a line for each input."""
        path = self.file("hist", "a = 1\nb = 2\n\n#1700000000\nc = 3\nd = 4\n")
        s = self.open(NACRE_HISTORY=path, NACRE_HISTSIZE="2", TZ="UTC")
        self.assertEqual(s.run(":history 10 ="), "    1         a = 1\n"
                         "    2         b = 2\n2023-11-14\n"
                         "    3  22:13  c = 3 ...\n")
        s.quit()
        text = self.read("hist")
        self.assertNotIn("a = 1", text)
        self.assertTrue(text.startswith("#1700000000\nc = 3\nd = 4\n"), text)

    def test_numbers(self, s):
        s.run("x = 20")
        self.assertEqual(s.run("x + 1"), "21\n")
        self.assertEqual(s.run("_2 + 1"), "22\n")
        self.assertEqual(s.run("In[1]"), '"x = 20"\n')
        self.assertEqual(s.run(":again 2"), "> x + 1\n21\n")
        self.assertEqual(s.run(":again 1-2"), "> x = 20\n> x + 1\n21\n")
        self.assertIn("no input 70 before this", s.run(":again 70"))
        self.assertIn("no input 8 before this", s.run(":again 8"))
        s.run("nosuch() x = 5")
        s.run("x = 7")
        s.run("x")
        self.assertIn("no variable", s.run(":again 9-11"))
        s.send(":set numbers on" + ENTER)
        s.expect("14> ")
        s.send(":record ~/again.nacre" + ENTER)
        s.send(":again 1-2" + ENTER)
        s.expect("16> ")
        self.assertEqual(self.read("again.nacre"), "> x = 20\n> x + 1\n21\n")

    def test_again_of_itself(self):
        path = self.file("hist", "#1\n:again 2\n#2\n:again 1\n")
        s = self.open(NACRE_HISTORY=path)
        self.assertIn("no input 2 before this", s.run(":again 2"))

    # ---- the session as it looks

    def test_record_and_transcript(self):
        path = os.path.join(self.home, "record.nacre")
        s = self.open("--seed", "5")
        s.run("early = 1")
        s.run(":record " + path)
        s.run("a = nacre.eye(2)")
        s.run("a")
        s.send("for i = 1, 2 do" + ENTER + "print(i, nil, 2.5)" + ENTER)
        s.run("end")
        s.run("io.write('x', 1, '\\n') io.stdout:write 'z'")
        s.run("nosuch()")
        s.run("!echo out")
        recorded = self.read("record.nacre")  # before it is closed
        self.assertEqual(recorded, "> a = nacre.eye(2)\n> a\n"
                         "float32[2x2] cpu  16 B\n  1.0  0.0\n  0.0  1.0\n"
                         "> for i = 1, 2 do\n>>   print(i, nil, 2.5)\n"
                         ">> end\n1\tnil\t2.5\n2\tnil\t2.5\n"
                         "> io.write('x', 1, '\\n') io.stdout:write 'z'\n"
                         "x1\nz\n> nosuch()\nerror: no variable 'nosuch'\n"
                         "> !echo out\n...\n")
        self.assertIn("is closed", s.run(":record off"))
        self.assertIn("error: %s exists" % path, s.run(":record " + path))
        self.assertIn("error: cannot write", s.run(":record /no/such/file"))
        whole = os.path.join(self.home, "whole.nacre")
        self.assertIn("whole.nacre: 11 inputs", s.run(":transcript " + whole))
        text = self.read("whole.nacre")
        self.assertTrue(text.startswith("--: seed 5\n> early = 1\n"), text)
        self.assertIn(recorded, text)
        s.quit()
        run = subprocess.run([terminal.PROGRAM, "--test", path],
                             stdout=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_record_of_much(self, s):
        s.run(":record ~/much.nacre")
        s.run("io.write(('x'):rep(79, '\\n'), ('\\n'):rep(100000));")
        s.run("1")
        text = self.read("much.nacre")
        self.assertLess(len(text), 70000)
        self.assertTrue(text.endswith("\n...\n> 1\n1\n"))

    def test_save_all(self, s):
        for text in ("x = 1", "nosuch()", ":history", "x + 1"):
            s.run(text)
        self.assertIn("2 inputs", s.run(":save ~/one.lua"))
        self.assertIn("3 inputs", s.run(":save --all ~/all.lua"))
        self.assertEqual(self.read("one.lua"), "x = 1\nprint(x + 1)\n")
        self.assertEqual(self.read("all.lua"),
                         "x = 1\nnosuch()\nprint(x + 1)\n")


if __name__ == "__main__":
    terminal.main()
