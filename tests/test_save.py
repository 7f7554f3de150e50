#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_save.py - :save --test: what was seen is in the test, or there is none.
#
# And --review, which asks.
#
#   test_save.py NACRE [unittest options]

import os
import signal
import subprocess
import sys
import time
import unittest

import test_runner as runner


class Save(runner.Case):
    def save(self, typed, *words):
        """Types that and :save --test t.nacre; gives what is said of it, and
        the test, None if there is none."""
        p = subprocess.run([runner.NACRE, "-E", "-q", *words, "-i"],
                           env=self.env(), input=typed + ":save --test t.nacre\n",
                           cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(os.listdir(self.tmp), [])
        said = p.stdout.split("> :save --test t.nacre\n")[1]
        path = os.path.join(self.tests, "t.nacre")
        if not os.path.exists(path):
            return said, None
        self.assertEqual(self.nacre("t.nacre")[0], 0, self.read("t.nacre"))
        text = self.read("t.nacre")
        os.remove(path)
        return said, text

    def test_what_a_replay_cannot_give_is_no_test(self):
        self.file("m.lua", "m = 7")
        self.file("s.lua", "s = 5")
        for typed, first, words in (
                ("x = 1\ndofile 'm.lua'\nm\n", "dofile 'm.lua'", ()),
                ("1\ns\n", "s", ("s.lua",)),
                ("t = os.time()\nt\n", "t", ())):
            p = subprocess.run([runner.NACRE, "-E", "-q", "-i", *words],
                               input=typed + ":save --test t.nacre\n",
                               env=self.env(), cwd=self.tests,
                               encoding="utf-8", stdout=subprocess.PIPE,
                               timeout=60)
            self.assertIn("no test was made", p.stdout, typed)
            self.assertIn("  > %s\n" % first, p.stdout)
            self.assertFalse(os.path.exists(
                os.path.join(self.tests, "t.nacre")))

    def test_what_was_asked_of_the_debugger(self):
        typed = ("function f(c) local y = c + 1 error 'x' end\nf(1)\n:debug\n"
                 "locals\ny = 7\nz = 9\nfor i = 1, 2 do\nprint(i)\nend\n"
                 "print '> debug'\nprint 'debug> '\n:h\n%s\nz + 1\n")
        for leave in ("q", ":q", "quit"):
            said, text = self.save(typed % leave)
            self.assertIn("12 inputs, replayed twice", said)
            self.assertIn("> :debug\nf at stdin:1\n", text)
            self.assertIn("debug> locals\n  c  1\n  y  2\ndebug> y = 7\n"
                          "debug> z = 9\ndebug> for i = 1, 2 do\n"
                          ">> print(i)\n>> end\n1\n2\n", text)
            self.assertIn("debug> %s\n> z + 1\n10\n" % leave, text)
        p = subprocess.run(
            [runner.NACRE, "-E", "-q", "-i"], env=self.env(),
            cwd=self.tests, input=typed % "q" + ":save a.lua\n:edit\n"
            ":transcript a.nacre\n", encoding="utf-8",
            stdout=subprocess.PIPE, timeout=60)
        self.assertIn("a.lua: 3 inputs", p.stdout)
        self.assertNotIn("locals", self.read("a.lua"))
        self.assertIn("\ndebug> locals\n  c  1\n", self.read("a.nacre"))

    def test_random_numbers_need_their_seed(self):
        said, text = self.save("nacre.rand(2)\n:seed 5\nnacre.rand(2)\n",
                               "--seed", "3")
        self.assertIn("--: seed 3\n", text, said)
        p = subprocess.run([runner.NACRE, "-E", "-q", "-i"], input=
                           "x = nacre.rand(2)\nnacre.rand(2)\n"
                           ":save --test t.nacre 2\n", env=self.env(),
                           cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("come again behind :seed N", p.stdout)

    def test_how_a_session_was_started_goes_into_its_test(self):
        said, text = self.save("nacre.randn(3)\n", "--dtype", "float64",
                               "--seed", "3")
        self.assertIn("--: seed 3\n--: dtype float64\n", text, said)
        said, text = self.save("nacre.tensor{-1}:log()\nnosuch\n",
                               "--nan=warn", "--strict")
        self.assertIn("warning: log: made 1 nan", text, said)
        self.assertIn("no variable 'nosuch' (--strict)", text)
        said, text = self.save("nacre.arange(900):view(30,30)\n",
                               "--width", "132")
        self.assertLess(max(map(len, text.split("\n"))), 81, said)
        said, text = self.save("warn 'careful'\n")
        self.assertIn("> warn 'careful'\nwarning: careful\n", text, said)
        said, text = self.save("a = nacre.ones(2)\n:whos\n")
        self.assertRegex(text, "a +float32.2. cpu +8 B\n\\.\\.\\.\n")

    def test_what_was_interrupted_is_not_saved(self):
        p = subprocess.Popen([runner.NACRE, "-E", "-q", "-i"], env=self.env(),
                             cwd=self.tests, encoding="utf-8", bufsize=1,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdin.write("print 'on' while true do end\n")
        while p.stdout.readline() != "on\n":
            pass
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        out = p.communicate("1 + 1\n:save --test t.nacre\n:save s.lua\n",
                            timeout=60)[0]
        self.assertEqual(out.count("was interrupted is left out: 1 input"), 2)
        self.assertNotIn("while", self.read("t.nacre"))
        self.assertEqual(self.read("s.lua"), "print(1 + 1)\n")

    def test_an_interrupted_save_leaves_nothing(self):
        p = subprocess.Popen([runner.NACRE, "-E", "-q", "-i"], env=self.env(),
                             cwd=self.tests, encoding="utf-8", bufsize=1,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             start_new_session=True)
        p.stdin.write("os.execute 'sleep 2';\n:save --test t.nacre\n")
        while p.stdout.readline() != "> :save --test t.nacre\n":
            pass
        for _ in range(500):
            if os.listdir(self.tmp):
                break
            time.sleep(0.02)
        time.sleep(0.3)
        os.killpg(p.pid, signal.SIGINT)
        p.communicate("1\n", timeout=60)
        self.assertEqual(os.listdir(self.tests), [])
        self.assertEqual(os.listdir(self.tmp), [])

    # ---- --review and --within

    WRONG = "> 1.5\n1.6\n> 'b'\n\"a\"\n> 2.5\n2.6\n"

    def test_review_can_be_left(self):
        """What was accepted before is written, the rest stays, in all files."""
        self.file("a.nacre", self.WRONG)
        self.file("b.nacre", self.WRONG)
        status, out, err = self.nacre("--review", text="a\nq\n")
        self.assertEqual((status, err), (1, ""))
        self.assertEqual(self.read("a.nacre"),
                         self.WRONG.replace("1.6", "1.5"))
        self.assertEqual(self.read("b.nacre"), self.WRONG)
        self.assertEqual(out.count("[q]uit"), 2)
        self.assertIn("1 file written", out)

    def test_review_explains_itself(self):
        self.file("a.nacre", self.WRONG)
        out = self.nacre("--review", text="?\ns\nt\ns\n")[1]
        for line in ("a  write what was printed", "e  keep the numbers",
                     "q  leave this and the rest"):
            self.assertIn("\n  " + line if line[0] != "a" else line, out)
        # what cannot be chosen is not explained
        second = out.split("> 'b'")[1].split("> 2.5")[0]
        self.assertIn("r  the expected text is right", second)
        self.assertNotIn("keep the numbers", second)
        self.assertEqual(self.read("a.nacre"), self.WRONG)

    def test_within_goes_with_update(self):
        self.file("a.nacre", runner.PASSED)
        status, out, err = self.nacre("--within", "1e-4")
        self.assertEqual(status, 2)
        self.assertIn("--within goes with --update", err)


if __name__ == "__main__":
    runner.NACRE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
