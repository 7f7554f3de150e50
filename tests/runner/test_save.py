#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_save.py - :save --test, the values beside a session, and --review.

import os
import signal
import subprocess
import time
import unittest

import runner_case as runner


class Save(runner.Case):
    def save(self, typed, *words):
        """Types that and :save --test t.nacre; gives what is said of it, and
        the test, None if there is none."""
        said = self.typed(typed + ":save --test t.nacre\n", *words)
        self.assertEqual(os.listdir(self.tmp), [])
        said = said.split("> :save --test t.nacre\n")[1]
        path = os.path.join(self.tests, "t.nacre")
        if not os.path.exists(path):
            return said, None
        self.assertEqual(self.nacre("t.nacre")[0], 0, self.read("t.nacre"))
        text = self.read("t.nacre")
        for name in os.listdir(self.tests):
            if name.startswith("t.nacre"):
                os.remove(os.path.join(self.tests, name))
        return said, text

    def test_what_a_replay_cannot_give_is_no_test(self):
        self.file("s.lua", "s = 5")
        self.file("sub/m.lua", "m = 7")
        for typed, first, words in (
                ("x = 1\nrequire 'nacre.host'.working_folder 'sub';\ndofile 'm.lua'\n"
                 "require 'nacre.host'.working_folder '..';\n",
                 "dofile 'm.lua'", ()),
                ("1\ns\n", "s", ("s.lua",)),
                ("t = os.time()\nt\n", "t", ())):
            out = self.typed(typed + ":save --test t.nacre\n", *words)
            self.assertIn("no test was written", out, typed)
            self.assertIn("  > %s\n" % first, out)
            self.assertFalse(os.path.exists(
                os.path.join(self.tests, "t.nacre")))

    def test_what_comes_from_outside_is_not_expected(self):
        """It was not compared with what the screen showed, which here has the
        file, where the replay has none."""
        self.file("d.txt", "line one\n")
        _, text = self.save("1 + 1\n!cat d.txt\nos.execute 'cat d.txt';\n2\n")
        self.assertIn("> 1 + 1\n2\n> !cat d.txt\n...\n", text)
        self.assertNotIn("No such file", text)

    def test_files_that_it_reads(self):
        self.file("d.csv", "1,2\n")
        self.file("sub/e.txt", "three\n")
        self.file("m.lua", "return {text = io.open('sub/e.txt'):read()}")
        self.file("unread.csv", "5,6\n")
        said, text = self.save(
            "x = nacre.load './d.csv'\nx\nnacre.save('y.npy', x * 2)\n"
            "nacre.load 'y.npy'\nrequire 'm'.text\nio.open('sub/e.txt', 'w')"
            ":write('four'):close();\nio.open 'unread.csv' ~= nil\n"
            "io.open('d.csv', 'a'):close();\nnacre.load 'nosuch.csv'\n")
        self.assertIsNone(text, said) # e.txt is another one by now
        os.remove(os.path.join(self.tests, "y.npy"))
        self.file("sub/e.txt", "three\n")
        said, text = self.save(
            "x = nacre.load './d.csv'\nx\nnacre.save('y.npy', x * 2)\n"
            "nacre.load 'y.npy'\nrequire 'm'.text\n")
        self.assertIn("; needs d.csv, sub/e.txt\n", said)
        self.assertTrue(text.startswith("--: needs file d.csv\n"
                                        "--: needs file sub/e.txt\n"), text)
        self.assertNotIn("needs", self.save("1\n")[1])

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
        self.assertIn("a.lua: 3 inputs", self.typed(
            typed % "q" + ":save a.lua\n:edit\n:transcript a.nacre\n"))
        self.assertNotIn("locals", self.read("a.lua"))
        self.assertIn("\ndebug> locals\n  c  1\n", self.read("a.nacre"))

    def test_names_of_the_project_in_the_output(self):
        self.file(".nacre-root", "")
        self.file("lib/m.lua", "local m = {} function m.f() error 'in m' end "
                  "return m\n")
        here = os.path.join(self.tests, "a b.txt")
        said, text = self.save(
            'print("%s", "%s/lib")\nio.open("%s")\n:load %s/gone.npy\n'
            'm = require "lib.m"\nm.f()\nprint("./lib/m.lua:3: x")\n'
            'error("%s: no")\n' % (here, self.tests, here, self.tests, here))
        self.assertIn("7 inputs, replayed twice", said)
        self.assertIn("\n%s\t%s/lib\n" % (here, self.tests), text)
        self.assertIn("  at lib/m.lua:1 ", text)
        # what differs otherwise still does
        self.assertIn("no test was written", self.save(
            'n = "%s/" .. tostring({}):sub(-9)\nn\n' % self.tests)[0])

    def test_coloured_output(self):
        said, text = self.save(
            "print '\\27[31mred\\27[0m \\27[1;38;5;12mx\\27[m'\n"
            "print '\\27]8;;http://x\\27\\\\link\\27]8;;\\27\\\\, "
            "\\27[4:3mwave\\27[m'\nio.write('\\27[1Kb\\n')\n")
        self.assertIn("\nred x\n", text, said)
        self.assertIn("\nlink, wave\n", text)
        self.assertIn("\nb\n", text)
        self.assertNotIn("\x1b", text)
        self.passes("> print '\\27[31mred\\27[0m'\nred\n> print 'red'\n"
                    "\x1b[31mred\x1b[0m\n")
        self.fails("> print '\\27[31mred\\27[0m'\nblue\n")

    def test_random_numbers_need_their_seed(self):
        said, text = self.save("nacre.rand(2)\n:seed 5\nnacre.rand(2)\n",
                               "--seed", "3")
        self.assertIn("--: seed 3\n", text, said)
        self.assertIn("repeat if :seed N is one of", self.typed(
            "x = nacre.rand(2)\nnacre.rand(2)\n:save --test t.nacre 2\n"))

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

    def session(self, typed, line):
        """A session in which that is typed, when it has printed the line."""
        p = subprocess.Popen([runner.NACRE, "-E", "-q", "-i"], env=self.env(),
                             cwd=self.tests, encoding="utf-8", bufsize=1,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             start_new_session=True)
        p.stdin.write(typed)
        while p.stdout.readline() != line:
            pass
        return p

    def test_what_was_interrupted_is_not_saved(self):
        p = self.session("print 'on' while true do end\n", "on\n")
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        out = p.communicate("1 + 1\n:save --test t.nacre\n:save s.lua\n",
                            timeout=60)[0]
        self.assertEqual(out.count("interrupted inputs are left out: 1 input"), 2)
        self.assertNotIn("while", self.read("t.nacre"))
        self.assertEqual(self.read("s.lua"), "print(1 + 1)\n")

    def test_an_interrupted_save_leaves_nothing(self):
        p = self.session("os.execute 'sleep 2';\n:save --test t.nacre\n",
                         "> :save --test t.nacre\n")
        for _ in range(500):
            if os.listdir(self.tmp):
                break
            time.sleep(0.02)
        time.sleep(0.3)
        os.killpg(p.pid, signal.SIGINT)
        p.communicate("1\n", timeout=60)
        self.assertEqual(os.listdir(self.tests), [])
        self.assertEqual(os.listdir(self.tmp), [])

    # ---- the values

    SHOWN = (":seed 1\nx = nacre.randn(100,100)\nx\n"
             "nacre.tensor(1/3, {dtype='float64'})\nx:sum()\n:save --test ")

    def test_what_a_text_leaves_open_is_kept(self):
        out = self.typed(self.SHOWN + "t.nacre\n:save --test t.nacre\n")
        self.assertIn("3 tensors in t.nacre.safetensors", out)
        self.assertIn("t.nacre exists already (:save --force replaces it)",
                      out)
        self.assertTrue(self.read("t.nacre").startswith("--: values\n"))
        self.assertEqual(self.nacre("t.nacre")[0], 0)
        # what nobody sees has changed
        self.change("t.nacre", "randn(100,100)",
                    "randn(100,100); x['50,50'] = 0.1")
        self.change("t.nacre", "1/3", "1/3*(1+1e-6)")
        status, out, err = self.nacre("t.nacre")
        self.assertEqual(status, 1)
        for text in ("1 of 10000 elements differ", "[50,50]: got 0.1",
                     "got 0.333333667, expected 0.333333333"):
            self.assertIn(text, out)
        self.assertEqual(self.nacre("t.nacre", "--no-values",
                                    "--rtol", "1")[0], 0)
        self.assertEqual(self.nacre("--update", "--ok")[0], 0)
        self.assertEqual(self.nacre("t.nacre")[0], 0)
        # comments and other inputs may come between
        self.change("t.nacre", "> x\n", "-- a remark\n> 1\n1\n> x\n")
        self.assertEqual(self.nacre("t.nacre")[0], 0, self.nacre()[1])
        os.remove(os.path.join(self.tests, "t.nacre.safetensors"))
        self.assertIn("no value in t.nacre.safetensors: --update writes it",
                      self.nacre("t.nacre")[1])

    def test_values_are_left_out(self):
        out = self.typed(self.SHOWN + "--no-values t.nacre\n")
        self.assertIn("t.nacre: 5 inputs, replayed twice", out)
        self.assertEqual(os.listdir(self.tests), ["t.nacre"])
        self.assertNotIn("values", self.read("t.nacre"))
        self.typed("nacre.eye(2)\n:save --test --force t.nacre\n")
        self.assertEqual(os.listdir(self.tests), ["t.nacre"])
        self.assertNotIn("values", self.read("t.nacre"))
        self.typed(self.SHOWN + "--force t.nacre\n")
        self.assertEqual(len(os.listdir(self.tests)), 2)
        self.change("t.nacre", "1/3", "1/7")
        self.nacre("--update", "--no-values")
        self.assertEqual(os.listdir(self.tests), ["t.nacre"])
        self.assertNotIn("values", self.read("t.nacre"))
        # also where nothing else has changed
        self.typed(self.SHOWN + "--force t.nacre\n")
        text = self.read("t.nacre")
        self.assertIn("1 file written", self.nacre("--update",
                                                   "--no-values")[1])
        self.assertEqual(os.listdir(self.tests), ["t.nacre"])
        self.assertEqual("--: values\n" + self.read("t.nacre"), text)
        self.assertIn("needs --test",
                      self.typed("1\n:save --no-values x.lua\n"))

    def test_values_that_are_too_many(self):
        said, text = self.save("nacre.arange(9000000):float() / 7\n")
        self.assertIsNone(text)
        self.assertIn("refused: the values of this test take more than 32 MiB",
                      said)

    def test_values_of_whole_tensors_are_in_the_text(self):
        self.file("a.nacre", "--: values\n> nacre.eye(3)\n> nacre.arange(5)\n"
                  "> nacre.zeros(900)\n> nacre.empty(0)\n> 1/3\n")
        self.nacre("--update")
        self.assertEqual(os.listdir(self.tests), ["a.nacre"])
        self.assertEqual(self.nacre()[0], 0)
        self.file("a.nacre", "--: values\n> nacre.arange(900)\n"
                  "> {w = nacre.ones(2)}\n> nacre.full(900, 0.1)\n")
        self.assertIn("3 tensors in", self.nacre("--update")[1])
        self.change("a.nacre", "> {w = nacre.ones(2)}",
                    "> {w = nacre.ones(2) * 2}")
        self.assertIn("2 of 2 elements differ", self.nacre()[1])

    def test_values_go_by_the_tolerance_of_their_lines(self):
        self.file("a.nacre", "--: values\n> nacre.ones(3)/3\n> 1\n")
        self.nacre("--update")
        self.change("a.nacre", "/3", "/3.0001")
        self.assertEqual(self.nacre()[0], 1)
        self.assertEqual(self.nacre("--rtol", "1e-3")[0], 0)
        self.change("a.nacre", "12 B", "12 B  #~ rtol=1e-3")
        self.assertEqual(self.nacre()[0], 0, self.nacre()[1])

    def test_values_that_round_the_other_way(self):
        self.file("a.nacre", "--: values\n> nacre.tensor{0.33335001, 1/3}\n")
        self.nacre("--update")
        self.assertIn("0.3334", self.read("a.nacre"))
        self.change("a.nacre", "0.33335001", "0.33334995")
        self.assertEqual(self.nacre()[0], 0, self.nacre()[1])
        self.change("a.nacre", "0.33334995", "0.33336995")
        self.assertEqual(self.nacre()[0], 1)

    # Tensors whose text depends on rounding: small ones beside large ones, a
    # mean that is 0, a histogram, what is equal or nearly so, the last digit.
    ROUNDED = """\
> e = 1;
> nacre.tensor{{1, 3e-9 * e}, {-5e-9 * e, 1}}
> x = nacre.randn(400); x = x - x:mean() + e * 1e-9;
> x
> y = nacre.full(1000, 1/3); y[e] = y[e] * (1 + (e - 1) * 1.2e-7);
> y, 7
> {0.33335001 - (e - 1) * 6e-8, w = nacre.tensor(0.33335001 - (e - 1) * 6e-8)}
> {v = x:narrow(1, 1, 3), s = nacre.tensor(0.25)}
> print("  loss  0.5") print(x:view(20, 20)) print("  loss " .. 0.75 - 0.5)
> print(x:view(20, 20):narrow(1, 1, 2)) print "  3.0  4.0"
> x:view(4, 10, 10):narrow(1, 1, 2)
"""

    def test_a_text_that_rounding_changes(self):
        text = "--: values\n" + self.ROUNDED.replace("{0.33335001 - (e - 1) * "
                                                     "6e-8, w", "{1, w")
        self.file("a.nacre", text)
        self.nacre("--update")
        before = self.read("a.nacre")
        self.change("a.nacre", "> e = 1;", "> e = 2;")
        self.assertEqual(self.nacre()[0], 0, self.nacre()[1])
        self.assertEqual(self.nacre("--no-values")[0], 1)
        self.assertIn("0 files written", self.nacre("--update")[1])
        # what is not a text of a tensor is compared
        for old, new in (("loss 0.25", "loss 0.26"),
                         ("\t7", "\t8"), ("[2x2]", "[1x4]")):
            self.file("a.nacre", before.replace(old, new))
            self.assertEqual(self.nacre()[0], 1, new)
        self.file("a.nacre", before.replace("3e-9 * e", "3e-5 * e"))
        self.assertIn("1 of 4 elements differ", self.nacre()[1])

    def test_rounding_of_what_is_small_beside_the_rest(self):
        """The same where no values are stored."""
        text = ("> e = 1;\n> nacre.tensor{{1, 3e-9 * e}, {-5e-9 * e, 100}}\n"
                "> x = nacre.randn(400); x - x:mean() + e * 1e-9\n")
        self.file("a.nacre", text)
        self.nacre("--update")
        before = self.read("a.nacre")
        for e in "2", "90", "-50":
            self.file("a.nacre", before.replace("e = 1;", "e = %s;" % e))
            self.assertEqual(self.nacre()[0], 0, self.nacre()[1])
        self.file("a.nacre", before.replace("3e-9 * e", "3e-4 * e"))
        self.assertEqual(self.nacre()[0], 1)
        self.file("a.nacre", before.replace("100}", "100.01}"))
        self.assertEqual(self.nacre()[0], 1)
        self.file("a.nacre", before.replace("e * 1e-9", "e * 1e-3"))
        self.assertEqual(self.nacre()[0], 1)

    def test_items_of_float32(self):
        for number, close, off in (
                ("nacre.tensor(%s / 3):item()", "1 + 2e-7", "1 + 1e-5"),
                ("nacre.tensor(%s / 3):item() * 2", "1 + 2e-7", "1 + 1e-5"),
                ("-nacre.tensor(%s / 256):item()", "1 + 2e-7", "1 + 1e-5"),
                ("(%s) / 3", "1 + 2e-8", "1 + 3e-7"),
                ("(%s) * 1234567.5", "1 + 2e-8", "1 + 1e-6"),
                ("(%s) * 0.25", "1 + 2e-8", "1 + 3e-7")):
            text = "> x = %s\n> " + (number % "(x)") + "\n"
            self.file("a.nacre", text % "1")
            self.nacre("--update")
            self.change("a.nacre", "x = 1", "x = " + close)
            self.assertEqual(self.nacre()[0], 0, number)
            self.change("a.nacre", close, off)
            self.assertEqual(self.nacre()[0], 1, number)

    def test_values_of_a_script(self):
        self.file("s.lua", "--: values\nlocal x = nacre.arange(9e4) / 7\n"
                  "print(x)\nprint('done')\n")
        self.file("s.out", "")
        out = self.nacre("--update")[1]
        self.assertIn("1 tensor in s.out.safetensors", out)
        self.assertEqual(self.nacre()[0], 0)
        self.change("s.lua", "print(x)", "x['700'] = 1 print(x)")
        self.change("s.lua", "print('done')", "print('done') os.exit(3)")
        self.change("s.lua", "--: values", "--: values\n--: exit 3")
        self.assertIn("[700]: got 1, expected 99.857139", self.nacre()[1])

    def test_values_that_change_are_refused(self):
        self.file("a.nacre", "--: values\n"
                  "> nacre.arange(900) / 7 + os.clock() * 1e-3;\n"
                  "> x = nacre.arange(900) / 7; x['500'] = os.time() % 7 + "
                  "os.clock(); x\n")
        status, out, err = self.nacre("--update", "--ok")
        self.assertEqual(status, 1)
        self.assertIn("refused: differs between two runs: 1 of 900", out)

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
        for line in ("a  write what there is", "e  keep the numbers",
                     "q  leave this and the rest"):
            self.assertIn("\n  " + line if line[0] != "a" else line, out)
        # what cannot be chosen is not explained
        second = out.split("> 'b'")[1].split("> 2.5")[0]
        self.assertIn("r  what was expected is right", second)
        self.assertNotIn("keep the numbers", second)
        self.assertEqual(self.read("a.nacre"), self.WRONG)

    def test_within_goes_with_update(self):
        self.file("a.nacre", runner.PASSED)
        status, out, err = self.nacre("--within", "1e-4")
        self.assertEqual(status, 2)
        self.assertIn("--within needs --update", err)


if __name__ == "__main__":
    runner.main()
