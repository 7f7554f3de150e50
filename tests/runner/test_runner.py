#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_runner.py - nacre --test as seen from outside: what it finds, what it
# says of failures, what it writes, and that nothing of it stays behind.
#
#   test_runner.py NACRE [unittest options]

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

NACRE = ""
PASSED = "> 1 + 1\n2\n"
FAILED = "> 1 + 1\n3\n"


class Case(unittest.TestCase):
    cuda = "off"  # NACRE_CUDA of the tests

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = os.path.realpath(folder.name)
        self.tests = os.path.join(self.home, "tests")
        self.tmp = os.path.join(self.home, "tmp")
        os.mkdir(self.tests)
        os.mkdir(self.tmp)

    def env(self, **variables):
        env = {"HOME": self.home, "PATH": os.environ["PATH"],
               "TMPDIR": self.tmp, "TERM": "xterm"}
        if self.cuda is not None:
            env["NACRE_CUDA"] = self.cuda
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            env[name] = os.environ.get(name, "")
        env.update(variables)
        return env

    def nacre(self, *words, text=None, **variables):
        """Gives (status, stdout, stderr) of nacre --test WORDS."""
        p = subprocess.run(
            [NACRE, "--test", *words], env=self.env(**variables),
            cwd=self.tests, input=text or "", timeout=60, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(os.listdir(self.tmp), [], "folders were left")
        return p.returncode, p.stdout, p.stderr

    def file(self, name, text):
        path = os.path.join(self.tests, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(os.path.join(self.tests, name), encoding="utf-8") as f:
            return f.read()

    def one(self, text, *words, name="a.nacre", **variables):
        """Runs one file of this text; gives the status and what is said."""
        self.file(name, text)
        status, out, err = self.nacre(*words, name, **variables)
        self.assertEqual(err, "")
        return status, out

    def passes(self, text, *words, **options):
        status, out = self.one(text, *words, **options)
        self.assertEqual(status, 0, out)
        return out

    def fails(self, text, *words, **options):
        status, out = self.one(text, *words, **options)
        self.assertEqual(status, 1, out)
        return out


class Runner(Case):
    # ---- which files

    def test_kinds_of_files(self):
        self.file("a.nacre", PASSED)
        self.file("b/c_test.lua", 'test("x", function(t) t.eq(1, 1) end)')
        self.file("d.lua", "print(1.0)")
        self.file("d.out", "1.0\n")
        self.file("alone.lua", "error 'not a test'")
        self.file("e.md", "# A\n```\n> 9\n```\n```nacre\n> 1\n1\n```\n")
        self.file("plain.md", "```\n> 9\n```\n")
        self.file(".hidden/f.nacre", FAILED)
        os.symlink("..", os.path.join(self.tests, "b", "circle"))
        status, out, err = self.nacre("--list")
        self.assertEqual(out.split(), ["a.nacre", "cpu", "b/c_test.lua", "cpu",
                                       "x", "d.lua", "cpu", "e.md", "cpu"])
        status, out, err = self.nacre()
        self.assertEqual((status, out.split("\n")[0], err), (0, "....", ""))
        self.assertIn("4 passed   in ", out)

    def test_statuses(self):
        self.assertEqual(self.nacre()[0], 5)
        self.file("a.nacre", PASSED)
        self.file("x.txt", "")
        table = [(0, []), (0, ["--help"]), (0, ["--list"]), (2, ["nosuch"]),
                 (2, ["x.txt"]), (2, ["--tiem"]), (2, ["-j", "0"]),
                 (2, ["--device", "tpu"]), (2, ["--timeout", "x"]),
                 (2, ["--ci", "--update"]), (2, ["--ci", "--review"]),
                 (2, ["--tap", "--json"]), (2, ["--junit"]),
                 (5, ["-k", "zzz"]), (0, ["--", "a.nacre"])]
        for want, words in table:
            status, out, err = self.nacre(*words)
            self.assertEqual(status, want, (words, out, err))
            self.assertEqual(bool(err), want in (2, 5), words)
        self.assertIn("did you mean --time", self.nacre("--tiemout")[2])
        p = subprocess.run([NACRE, "-q", "--test"], env=self.env(),
                           stderr=subprocess.PIPE, encoding="utf-8")
        self.assertEqual(p.returncode, 2)
        self.assertIn("--test comes first", p.stderr)

    def test_selection(self):
        self.file("a.nacre", "> x = 1\n> x\n1\n> x + 1\n9\n")
        self.file("b.nacre", PASSED)
        self.assertEqual(self.nacre("a.nacre:3")[0], 0)
        self.assertEqual(self.nacre("a.nacre:5")[0], 1)
        self.assertEqual(self.nacre("-k", "b.nac")[0], 0)
        self.assertEqual(self.nacre()[0], 1)
        out = self.nacre("--last-failed")[1]
        self.assertIn("1 failed, 0 passed", out)
        self.file("a.nacre", PASSED)
        self.assertEqual(self.nacre("--last-failed")[0], 0)
        self.assertIn("no test failed", self.nacre("--last-failed")[2])

    def test_order_and_repetition(self):
        for name in "abcdef":
            self.file(name + ".nacre", FAILED)
        first = self.nacre("--shuffle=7", "-j1")[1]
        again = self.nacre("--shuffle=7", "-j1")[1]
        places = re.findall("FAIL (.*):2", first)
        self.assertEqual(places, re.findall("FAIL (.*):2", again))
        self.assertNotEqual(places, sorted(places))
        self.assertIn("--shuffle=7", first)
        out = self.nacre("--repeat", "3", "a.nacre")[1]
        self.assertIn("run 3 of 3", out)
        self.assertIn("3 failed", out)
        out = self.nacre("--fail-fast", "-j1")[1]
        self.assertIn("1 failed, 0 passed", out)

    # ---- sessions

    def test_failure_text(self):
        out = self.fails("--: seed 5\n> x = 2\n> x * 1.25\n2.6\n"
                         "> for i = 1, 3 do\n>>   print(i)\n>> end\n1\n3\n")
        out = re.sub(r"\(\d\.\d\d s\)", "(0.00 s)", out)
        self.assertIn("""\
FAIL a.nacre:4  cpu  (0.00 s)
    3  > x * 1.25
-   4  2.6
+   4  2.5   abs 0.1  rel 0.038   allowed 2.6e-7 (precision of float64)
    5  > for i = 1, 3 do
    6  >>   print(i)
    7  >> end
+      2
       rerun   nacre --test a.nacre:4 --device cpu --seed 5
       accept  nacre --test a.nacre:4 --update

1 failed, 0 passed   in """, out)

    def test_tolerances(self):
        self.assertIn("allowed rel 0.001 (--: rtol)",
                      self.fails("--: rtol 1e-3\n> 2.5\n2.6000\n"))
        self.passes("--: rtol 0.1\n> 2.5\n2.6000\n")
        self.passes("--: atol 0.1\n> 2.5\n2.6000\n")
        self.passes("> 2.5\n2.6000\n", "--rtol", "0.1")
        self.passes("> 2.5\n2.6000  #~ rtol=0.1\n")
        self.assertIn("(#~)", self.fails("> 2.5\n2.6000  #~ rtol=1e-3\n"))

    # What was seen when all numbers were whole, and what is wrong now.
    WRONG = """\
> nacre.tensor{1.04, 2.04, 2.96}
float32[3] cpu  12 B
  1.0  2.0  3.0
> 5.001
5.0
> nacre.eye(2) * 1.049 + 0.0009
float32[2x2] cpu  16 B
  1.0  0.0
  0.0  1.0
> nacre.tensor(0.96)
1.0  float32[] cpu
> 3, 1 + 5e-6
3	1.0
"""

    def test_wrong_numbers_are_seen(self):
        for head in ("", "--: rtol 1e-6\n", "--: atol 1e-6\n", "--: rtol 0\n"):
            out = self.fails(head + self.WRONG, "--json")
            for text in ("1.0400", "5.001", "1.0499", "0.9600", "1.000005"):
                self.assertIn(text, out, head)
        self.fails(self.WRONG, "--rtol", "1e-6", "--atol", "0")
        self.fails("> 5.001\n5.0 #~ rtol=1e-6 atol=0\n")
        self.file("p.lua", "print(1.04)")
        self.file("p.out", "1.0\n")
        self.assertEqual(self.nacre("p.lua")[0], 1)

    def test_update_takes_wrong_numbers_out(self):
        self.file("a.nacre", self.WRONG)
        self.nacre("--update", "--ok")
        self.assertIn("  1.0400  2.0400  2.9600\n> 5.001\n5.001\n",
                      self.read("a.nacre"))
        self.assertEqual(self.nacre()[0], 0)

    def test_directives(self):
        out = self.passes('--: skip "not now"\n' + FAILED)
        self.assertIn("1 skipped (not now: 1)", out)
        out = self.passes('--: xfail "issue 12"\n' + FAILED)
        self.assertIn("1 failed as expected", out)
        out = self.fails('--: xfail "issue 12"\n' + PASSED)
        self.assertIn("was expected to fail: issue 12", out)
        self.assertIn("needs file no.txt",
                      self.passes("--: needs file no.txt\n" + FAILED))
        self.passes("--: needs file a.nacre\n" + PASSED)
        self.assertIn("needs mem 900 TiB",
                      self.passes("--: needs mem 900 TiB\n" + FAILED))
        for needs in ("--: needs cuda\n", "--: devices cuda\n"):
            self.assertIn("(cuda not available: 1)",
                          self.passes(needs + FAILED))
            self.assertIn("--require", self.fails(needs + FAILED, "--require",
                                                  "cuda"))
        self.assertIn("needs cuda>=2",
                      self.passes("--: needs cuda>=2\n" + FAILED))
        self.passes("--: only cuda {\n" + FAILED + "--: }\n" + PASSED)
        self.passes("--: serial\n" + PASSED)
        self.passes("--: seed 3   -- a remark\n> nacre.initial_seed()\n3\n")
        self.passes("> nacre.initial_seed()\n0\n")
        self.passes("> nacre.initial_seed()\n4\n", "--seed", "4")

    def test_math_random_is_under_the_seed(self):
        test = ("test('%s', function(t) error(math.random(1000000) .. ' ' .. "
                "nacre.rand(1):item(), 0) end)\n")
        self.file("a_test.lua", test % "x" + test % "y")
        drawn = re.compile(r"\n +(?:error: )?(\d+ 0\.\d+)\n")
        whole = drawn.findall(self.nacre("--seed", "3")[1])
        self.assertEqual(len(whole), 2)
        for line in ("1", "2"):
            one = drawn.findall(self.nacre("a_test.lua:" + line, "--seed",
                                           "3")[1])
            self.assertEqual(one, [whole[0]])
        typed = ("math.random(1000000)\n:save --test a.nacre\n:seed 4\n"
                 "math.random(1000000)\nnacre.rand(1):item()\n"
                 ":save --test b.nacre\n")
        p = subprocess.run([NACRE, "-E", "-q", "-i"], input=typed,
                           env=self.env(), cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("a.nacre: 1 input, replayed twice", p.stdout)
        self.assertIn("b.nacre: 4 inputs, replayed twice", p.stdout)

    def test_bad_tolerances(self):
        for note in ("#~ rtoll=1", "#~ rtol=x", "#~ atol", "#~", "#~ rtol=-1"):
            out = self.fails("> 1.5\n1.5  %s\n" % note)
            self.assertIn("a.nacre:2: ", out, note)
        self.passes("> 1.5\n1.6  #~ rtol=1e-1 atol=0\n")

    def test_integers_are_no_floats(self):
        self.assertIn("an integer where a float was", self.fails("> 5\n5.0\n"))
        self.passes("> 5\n5.0  #~ atol=0.1\n> nacre.zeros(1):item()\n0.0\n")

    def test_numbers_in_texts_are_written_the_same(self):
        for text, other in (("2024-01-02", "2024-01-2"), ("007", "7"),
                            ("+5", "5"), ("at 07.5", "at 7.5"),
                            ("1" * 30, "1" * 29 + "2")):
            self.passes("> '%s'\n\"%s\"\n" % (text, text))
            self.fails("> '%s'\n\"%s\"\n" % (text, other))
            self.fails("> '%s'\n\"%s\"\n" % (other, text))

    def test_closed_streams(self):
        self.file("a.nacre", PASSED)
        for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
            p = subprocess.run(
                ["sh", "-c", '"$0" --test a.nacre ' + closed, NACRE],
                env=self.env(), cwd=self.tests, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE)
            self.assertEqual(p.returncode, 0, (closed, p.stdout))

    def test_memory_limit(self):
        lua = "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e5) .. i end"
        self.file("a_test.lua",
                  "test('lua', function() %s end)\n"
                  "test('tensor', function() nacre.ones(1 << 26) end)\n"
                  "test('fits', function(t) t.eq(nacre.ones(1 << 20):sum()"
                  ":item(), 1048576.0) end)\n"
                  "test('other', function(t) t.eq(1, 2) end)\n" % lua)
        out = self.nacre("--memory-limit", "100M")[1]
        self.assertIn("3 failed, 1 passed", out)
        # a sanitizer's allocator does not come back from a refusal
        sanitized = "ERROR: Failed to mmap" in out
        for name in ("tensor",) if sanitized else ("lua", "tensor"):
            block = out.split("  %s  cpu" % name)[1].split("FAIL")[0]
            self.assertIn("the memory limit is 100.0 MiB", block)
            self.assertIn(" --memory-limit 104857600", block)
        self.assertNotIn("limit is", out.split("  other  cpu")[1])
        text = "--: memory 50M\n> #('x'):rep(1000000)\n1000000\n"
        self.passes(text)
        for size in ("x", "-1", "5X", "1Mi", ""):
            self.assertEqual(self.nacre("--memory-limit", size)[0], 2)
        if sanitized:
            return
        out = self.fails(text + "> %s\n" % lua)
        self.assertIn("the memory limit is 50.0 MiB", out)
        out = self.fails("--: memory 50M\n> !%s -e \"%s\"\n" % (NACRE, lua))
        self.assertIn("not enough memory", out)

    def test_a_device_that_is_not_there_is_no_success(self):
        if self.cuda != "off":
            self.skipTest("is for a program without CUDA")
        self.file("a.nacre", PASSED)
        status, out, err = self.nacre("--device", "cuda")
        self.assertEqual(status, 5)
        self.assertEqual(err, "nacre: no test was run: cuda not available\n")
        self.assertIn("1 skipped (cuda not available: 1)", out)
        self.assertEqual(self.nacre("--device", "cpu,cuda")[0], 0)

    def test_require_cuda(self):
        if self.cuda != "off":
            self.skipTest("is for a program without CUDA")
        out = self.fails(PASSED, "--require", "cuda")
        self.assertIn("cuda not available, and --require cuda was given", out)
        self.fails(PASSED, "--require", "cuda", "--device", "all")
        self.passes("--: devices cpu\n" + PASSED, "--require", "cuda")

    def test_bad_directives(self):
        for line in ("sead 1", "seed x", "devices tpu", "rtol -1", "needs x",
                     "needs mem lots", "timeout soon", "only cuda {"):
            out = self.fails("--: %s\n%s" % (line, PASSED))
            self.assertRegex(out, "a.nacre(:1)?: ", line)
        self.assertIn("is no input", self.fails("hello\n" + PASSED))

    def test_dtypes(self):
        text = ("--: dtype float32 float64\n> nacre.ones(2)\n"
                "float32[2] cpu  8 B\n  1.0  1.0\n")
        self.assertIn("2 passed", self.passes(text))
        self.assertIn("2 failed", self.fails(text.replace("1.0", "2.0")))

    def test_surroundings(self):
        self.passes("> os.getenv 'TZ', os.getenv 'COLUMNS'\n"
                    '"UTC"\t"80"\n> os.getenv "NO_COLOR"\n"1"\n'
                    "> nacre.get_num_threads()\n1\n> io.read 'a'\n\"\"\n"
                    "> io.open('x', 'w'):close();\n> !ls\nx\n"
                    "> rawget(_G, 'secret')\nnil\n", COLUMNS="40", CLICOLOR_FORCE="1",
                    LUA_INIT="secret = 1")
        self.assertFalse(os.path.exists(os.path.join(self.tests, "x")))

    def test_ends(self):
        out = self.fails("> os.exit(3)\n> 1\n1\n")
        self.assertIn("line 1: the program ended with status 3", out)
        out = self.fails("> 1\n1\n> !kill -KILL $PPID\n> 2\n2\n")
        self.assertIn("killed by signal 9", out)
        self.assertIn("status 3; 1 input was not run",
                      self.fails("> os.exit(3)\n> 1\n1\n"))
        self.assertIn("was over before line 3; 2 inputs were not run",
                      self.fails("> 1\n> :quit\n> 1\n> 2\n"))
        out = self.fails("--: timeout 300ms\n> while true do end\n")
        self.assertIn("no end within 0.3 s", out)
        out = self.fails("> while true do end\n", "--timeout", "300ms")
        self.assertIn("no end within 0.3 s", out)
        self.passes(PASSED + "> :quit\n")

    def test_output_that_looks_like_something_else(self):
        printed = "> print '--: seed 5' print 'a #~ y'\n"
        self.assertIn("a.nacre:3: '--: seed 5' stands behind the output of "
                      "line 1", self.fails("> print 'x\\n--: seed 5'\nx\n"
                                           "--: seed 5\n"))
        self.assertIn("if it was printed, write <...> for the #",
                      self.fails("> print 'a #~ y'\na #~ y\n"))
        self.assertIn("begins with -- or >: in a test it is written <...>",
                      self.fails("> print '-- x'\n-- x\n"))
        self.assertNotIn("in a test it is written", self.fails(
            "> print '-- x' print(1)\n<...>- x\n2\n"))
        self.passes(printed + "<...>-: seed 5\na <...>~ y\n")
        self.passes("> 1\n1\n\n--: seed 5\n> nacre.initial_seed()\n5\n")

    def test_a_byte_order_mark(self):
        bom = "\ufeff"
        self.passes(bom + PASSED)
        self.file("a.nacre", bom + "> 1\n2\n")
        self.nacre("--update", "--ok")
        self.assertEqual(self.read("a.nacre"), bom + "> 1\n1\n")
        self.file("s.lua", bom + "print(1)\n")
        self.file("s.out", bom + "1\n")
        self.assertEqual(self.nacre("s.lua")[0], 0)

    def test_copied_blocks(self):
        self.passes("> for i = 1, 2 do\n    print(i)\n  end\n1\n2\n"
                    "> (function()\nerror: <...>\n"
                    "cuda:0> 1\n1\n-- prose\n\n> 2\n2\n")

    def test_timing_is_never_compared(self):
        self.passes("> :time 1 + 1\n  3.25 s  12 GB/s  cpu\n")
        self.fails("> :time error 'x'\n  3.25 s  12 GB/s\n")

    # ---- other kinds

    def test_scripts(self):
        self.file("m.lua", "return 4")
        self.file("a.lua", "print(require 'm', ...) io.stderr:write 'e\\n'\n"
                           "error 'stop'\n")
        self.file("a.out", "4\ne\na.lua:2: stop\n...\n")
        status, out, err = self.nacre("a.lua")
        self.assertEqual(status, 0, out)
        self.file("a.out", "5\n")
        status, out, err = self.nacre("a.lua")
        self.assertIn("-   1  5\n+   1  4", out)
        self.file("s.lua", "skip 'no luck'")
        self.file("s.out", "")
        self.assertIn("1 skipped (no luck: 1)", self.nacre("s.lua")[1])

    def test_errors_apart(self):
        text = "print 'out' io.stderr:write 'err\\n' print 'more'"
        self.file("s.lua", text)
        self.file("s.out", "out\nmore\n")
        self.assertEqual(self.nacre()[0], 1)
        self.file("s.err", "err\n")
        self.assertEqual(self.nacre()[0], 0, self.nacre()[1])
        self.file("s.lua", "--: exit 2\n" + text + " os.exit(2)")
        self.assertEqual(self.nacre()[0], 0, self.nacre()[1])
        self.file("s.err", "")
        self.assertIn("       stderr:\n+      err\n", self.nacre()[1])
        self.nacre("--update")
        self.assertEqual(self.read("s.err"), "err\n")
        self.assertEqual(self.read("s.out"), "out\nmore\n")
        failing = "print 'out' print 'more' error 'bad'"
        self.file("s.lua", failing)
        self.assertIn("refused: it ended with status 1; '--: exit 1' says "
                      "that it is to", self.nacre("--update")[1])
        self.assertEqual(self.read("s.err"), "err\n")
        self.file("s.lua", "--: exit 1\n" + failing)
        self.nacre("--update")
        self.assertIn("s.lua:2: bad", self.read("s.err"))
        self.file("s.lua", text + " os.exit(2)")
        self.assertIn("ended with status 2", self.nacre()[1])

    def test_the_status_of_a_script(self):
        self.file("s.out", "1\n")
        for text, good in (("print(1) os.exit(3)", True),
                           ("print(1) os.exit(4)", False),
                           ("print(1)", False), ("print(2) os.exit(3)", False)):
            self.file("s.lua", "--: exit 3\n" + text)
            self.assertEqual(self.nacre("s.lua")[0], 0 if good else 1, text)
        self.assertIn("ended with status 0 instead of 3",
                      self.one("--: exit 3\nprint(1)", name="s.lua")[1])
        self.file("s.out", "s.lua:2: bad\n...\n")
        self.assertEqual(self.one("--: exit 1\nerror 'bad'", name="s.lua")[0],
                         0)
        self.passes("--: exit 3\n> os.exit(3)\n")
        self.fails("--: exit 3\n> os.exit(3)\n> 1\n1\n")
        self.fails("--: exit 300\n> os.exit(3)\n")

    def test_a_failing_script_says_what_a_run_says(self):
        self.file("s/a.lua", "local function f()\n  error 'bad'\nend\nf()\n")
        p = subprocess.run([NACRE, "a.lua"], env=self.env(),
                           cwd=os.path.join(self.tests, "s"),
                           stderr=subprocess.PIPE, encoding="utf-8")
        self.assertIn("  at a.lua:2   error 'bad'", p.stderr)
        self.file("s/a.out", p.stderr)
        status, out, err = self.nacre("s")
        self.assertEqual(status, 0, out)

    # ---- expected text

    def test_update(self):
        self.file("a.nacre", "-- kept\n> 1.5\n1.6\n> 2/3\n0.667 #~ atol=1e-3\n"
                  "> for i = 1, 5 do print(i) end\n1\n...\n7\n"
                  "> print('-- x') print('> y')\n\n> 4.0\n4.1 #~ rtol=1\n")
        self.assertEqual(self.nacre("--update", "a.nacre:3")[0], 1)
        self.assertIn("1.5\n> 2/3\n0.667 #~ atol=1e-3\n",
                      self.read("a.nacre"))
        self.assertIn("...\n7\n", self.read("a.nacre"))
        self.assertEqual(self.nacre("--update", "--ok")[0], 0)
        self.assertEqual(
            self.read("a.nacre"),
            "-- kept\n> 1.5\n1.5\n> 2/3\n0.667 #~ atol=1e-3\n"
            "> for i = 1, 5 do print(i) end\n1\n...\n5\n"
            "> print('-- x') print('> y')\n<...>- x\n<...> y\n\n"
            "> 4.0\n4.1 #~ rtol=1\n")
        self.assertEqual(self.nacre("--update")[0], 0)
        self.assertEqual(self.nacre()[0], 0)

    def test_update_keeps_the_ends_of_lines(self):
        path = os.path.join(self.tests, "a.nacre")
        with open(path, "wb") as f:
            f.write(b"> 1\r\n2\r\n-- x\r\n")
        self.nacre("--update")
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"> 1\r\n1\r\n-- x\r\n")

    def test_update_of_markdown_and_scripts(self):
        self.file("a.md", "# A\n\n```nacre\n> 1\n```\n\ntext\n\n"
                          "~~~\n```nacre\n> 1\n~~~\n1. a\n\n"
                          "   ~~~~nacre\n   > x = nacre.ones(2)\n   > x\n"
                          "   ~~~~\nend\n")
        self.file("b.lua", "print(1)")
        self.file("b.out", "2\n")
        self.nacre("--update", "--ok")
        self.assertEqual(self.read("a.md"), "# A\n\n```nacre\n> 1\n1\n```\n\n"
                         "text\n\n~~~\n```nacre\n> 1\n~~~\n1. a\n\n"
                         "   ~~~~nacre\n   > x = nacre.ones(2)\n   > x\n"
                         "   float32[2] cpu  8 B\n     1.0  1.0\n   ~~~~\n"
                         "end\n")
        self.assertEqual(self.read("b.out"), "1\n")

    def test_update_refuses(self):
        text = "> 1\n2\n> os.clock() * 1e9\n"
        self.file("a.nacre", text)
        status, out, err = self.nacre("--update", "--ok")
        self.assertEqual(status, 1)
        self.assertIn("a.nacre:3: refused: not the same in two runs", out)
        self.assertEqual(self.read("a.nacre"), text)
        self.file("a.nacre", "> os.exit(1)\n> 1\n")
        self.assertEqual(self.nacre("--update", "--ok")[0], 1)

    def test_review(self):
        text = "> 1.5\n1.6\n> 'b'\n\"a\"\n> 2.5\n2.6\n> 3.5\n3.6\n"
        self.file("a.nacre", text)
        answers = "t\na\ne\n1e-9\ne\n0.5\nr\n"
        status, out, err = self.nacre("--review", text=answers)
        self.assertEqual(status, 1)
        self.assertIn("-  1.6\n+  1.5\n", out)
        self.assertIn("at least", out)
        self.assertEqual(self.read("a.nacre"), "> 1.5\n1.6  #~ rtol=7e-2\n"
                         "> 'b'\n\"b\"\n> 2.5\n2.6  #~ rtol=0.5\n"
                         "> 3.5\n3.6\n")
        self.assertEqual(self.nacre("--review", text="a\n")[0], 0)
        self.assertEqual(self.nacre()[0], 0)
        self.file("a.nacre", text)
        self.assertEqual(self.nacre("--review", text="")[0], 1)
        self.assertEqual(self.read("a.nacre"), text)

    def test_a_session_becomes_a_test(self):
        typed = ("a = nacre.randn(3)\na\nnosuch()\nfor i = 1, 2 do\nprint(i)\n"
                 "end\n:save --test t.nacre\n:save --test t.nacre\n"
                 ":save s.lua\n:save --test t.lua\n:save --tset x\n"
                 ":save r.lua 1-2\n:save q.lua zwei\n:save v.lua 90\n")
        p = subprocess.run([NACRE, "-E", "-q", "-i"], input=typed,
                           env=self.env(), cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("t.nacre: 4 inputs, replayed twice on cpu, identical",
                      p.stdout)
        self.assertIn("t.nacre exists already", p.stdout)
        self.assertIn("ends in .nacre", p.stdout)
        self.assertIn("no option --tset", p.stdout)
        self.assertIn("neither a number nor a range", p.stdout)
        self.assertIn("nothing to save", p.stdout)
        self.assertEqual(self.read("r.lua"), "a = nacre.randn(3)\nprint(a)\n")
        shown = re.search(r"> a\n(.*\n.*\n)", p.stdout).group(1)
        self.assertIn(shown, self.read("t.nacre"))
        self.assertEqual(self.nacre("t.nacre")[0], 0)
        self.assertEqual(self.read("s.lua"), "a = nacre.randn(3)\nprint(a)\n"
                         "for i = 1, 2 do\nprint(i)\nend\n")
        p = subprocess.run([NACRE, "-E", "-q", "-i"], env=self.env(),
                           input="os.clock() * 1e9\n:save --test u.nacre\n",
                           cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("> os.clock() * 1e9\n  - ", p.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.tests, "u.nacre")))
        self.assertEqual(os.listdir(self.tmp), [])

    # ---- for programs

    def test_formats(self):
        self.file("a.nacre", FAILED.replace("1 + 1", "'<&\\1'"))
        self.file("b.nacre", PASSED)
        self.file("c.nacre", '--: skip "a \\"b\\" <c>"\n')
        self.file("d.nacre", '--: xfail "later"\n' + FAILED)
        out = self.nacre("--tap")[1].split("\n")
        self.assertEqual(out[:3], ["TAP version 14", "1..4",
                                   "not ok 1 - a.nacre [cpu]"])
        self.assertIn("ok 3 - c.nacre [cpu] # SKIP a \\\"b\\\" <c>", out)
        self.assertIn("not ok 4 - d.nacre [cpu] # TODO later", out)
        got = json.loads(self.nacre("--json")[1])["results"]
        self.assertEqual([r["status"] for r in got],
                         ["fail", "pass", "skip", "xfail"])
        self.assertEqual(got[0]["line"], 2)
        self.assertIn("FAIL a.nacre:2", got[0]["text"])
        status, out, err = self.nacre("--junit", "out.xml")
        suite = xml.dom.minidom.parse(os.path.join(self.tests, "out.xml")) \
            .getElementsByTagName("testsuite")[0]
        self.assertEqual([suite.getAttribute(k) for k in
                          ("tests", "failures", "skipped")], ["4", "1", "2"])
        self.assertEqual(len(suite.getElementsByTagName("testcase")), 4)
        self.assertEqual(self.nacre("--junit", "no/such/out.xml")[0], 1)

    def test_all_that_differs(self):
        """Some of it for people, all of it for programs."""
        self.file("a.nacre", "".join("> 'in%d'\n\"out\"\n" % n
                                     for n in range(20)))
        out = self.nacre()[1]
        self.assertIn("... 17 inputs more differ, in lines 7, 9, 11, 13, 15, "
                      "17, 19, 21, ...\n", out)
        self.assertNotIn("in19", out)
        self.nacre("--junit", "out.xml")
        for out in (self.nacre("--json")[1], self.nacre("--tap")[1],
                    self.read("out.xml")):
            for n in range(20):
                self.assertIn("in%d" % n, out)

    def test_colours(self):
        self.file("a.nacre", FAILED)
        red, green, off = "\x1b[31m", "\x1b[32m", "\x1b[0m"
        for words, variables, colours in (
                ((), {}, False), (("--color=always",), {}, True),
                (("--color", "always"), {"NO_COLOR": "1"}, True),
                ((), {"CLICOLOR_FORCE": "1"}, True),
                ((), {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
                (("--color=never",), {"CLICOLOR_FORCE": "1"}, False),
                (("--color=always", "--json"), {}, False),
                (("--color=always", "--tap"), {}, False)):
            out = self.nacre(*words, **variables)[1]
            if not colours:
                self.assertNotIn("\x1b", out, words)
                continue
            self.assertIn("%s-   2  3%s\n%s+   2  2   abs" %
                          (red, off, green), out, words)
        self.assertEqual(self.nacre("--color=some")[0], 2)

    def test_closed_output(self):
        for name in "abc":
            self.file(name + ".nacre", "> os.execute 'sleep 0.3';\n")
        p = subprocess.Popen([NACRE, "--test", "-j1"], env=self.env(),
                             cwd=self.tests, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        p.stdout.read(1)
        p.stdout.close()
        p.stderr.read()
        p.stderr.close()
        self.assertEqual(p.wait(60), -signal.SIGPIPE)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_ci(self):
        self.file("a.nacre", FAILED)
        out = self.nacre("--ci", GITHUB_ACTIONS="true")[1]
        self.assertIn("::error file=a.nacre,line=2::FAIL a.nacre:2", out)
        self.assertNotIn("::error", self.nacre("--ci")[1])
        self.assertNotIn("\x1b", out)

    # ---- several at once

    def test_jobs_run_side_by_side(self):
        for name in "abcd":
            self.file(name + ".nacre", "> os.execute 'sleep 0.5';\n")
        begin = time.time()
        self.assertEqual(self.nacre("-j4")[0], 0)
        side = time.time() - begin
        begin = time.time()
        self.assertEqual(self.nacre("-j1")[0], 0)
        self.assertGreater(time.time() - begin, 2.0)
        self.assertLess(side, time.time() - begin)

    def started(self, *words, sleeps=1):
        """The runner, when so many tests of it have come to their sleep."""
        p = subprocess.Popen([NACRE, "--test", *words], env=self.env(),
                             cwd=self.tests, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8",
                             preexec_fn=lambda: resource.setrlimit(
                                 resource.RLIMIT_CORE, (0, 0)))
        for _ in range(200):
            time.sleep(0.05)
            if self.processes().count("\nsleep 4321.5") >= sleeps:
                break
        return p

    def processes(self):
        return subprocess.run(["ps", "-eo", "args"], encoding="utf-8",
                              stdout=subprocess.PIPE).stdout

    def test_signals_leave_nothing(self):
        self.file("a.nacre", "> os.execute 'sleep 4321.5'\n")
        self.file("b_test.lua", "test('x', function() while true do end end)")
        for sig in ("INT", "TERM", "HUP", "QUIT", "USR1", "ALRM", "PIPE",
                    "KILL"):
            sig = getattr(signal, "SIG" + sig)
            p = self.started("-j2", "--seed", "987123")
            p.send_signal(sig)
            p.communicate(timeout=60)
            self.assertEqual(p.returncode, -sig)
            for _ in range(100):  # those of a killed runner need a moment
                left = self.processes()
                if ("sleep 4321.5" not in left and "987123" not in left and
                        not os.listdir(self.tmp)):
                    break
                time.sleep(0.05)
            self.assertEqual(os.listdir(self.tmp), [], sig)
            self.assertNotIn("sleep 4321.5", left, sig)
            self.assertNotIn("987123", left, sig)

    def test_a_signal_ends_what_has_no_report(self):
        self.file("a.nacre", "> os.execute 'sleep 4321.5'\n")
        for words in ("--update", "--review"):
            p = self.started(words)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
            self.assertEqual((p.returncode, err),
                             (-signal.SIGINT, "error: interrupted\n"))
            self.assertEqual(os.listdir(self.tmp), [])

    def test_a_signal_does_not_lose_what_failed(self):
        sleep = "os.execute 'sleep 4321.5'"
        self.file("a_test.lua", "test('one', function(t) t.eq(1, 2) end)\n"
                  "test('two', function(t) end)\n"
                  "test('three', function(t) %s end)\n" % sleep)
        self.file("b.nacre", FAILED + "> %s\n> 3\n4\n" % sleep)
        self.file("c.nacre", PASSED + "> %s\n> 3\n4\n" % sleep)
        self.file("d.nacre", FAILED)
        for sig, words in ((signal.SIGINT, []), (signal.SIGTERM, ["--tap"]),
                           (signal.SIGINT, ["--json"])):
            p = self.started("-j3", "--junit", "out.xml", *words, sleeps=3)
            p.send_signal(sig)
            p.send_signal(sig)  # as timeout(1) does
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, -sig)
            self.assertIn("interrupted by %s, 4 files not finished"
                          % sig.name, err)
            self.assertIn("got 1, expected 2", out)
            suite = xml.dom.minidom.parse(os.path.join(self.tests, "out.xml"))
            names = [(c.getAttribute("file"), c.getAttribute("name"),
                      len(c.getElementsByTagName("failure")))
                     for c in suite.getElementsByTagName("testcase")]
            self.assertEqual(names, [("a_test.lua", "cpu: one", 1),
                                     ("a_test.lua", "cpu: two", 0),
                                     ("b.nacre", "cpu", 1)])
            said = {p.getAttribute("name"): p.getAttribute("value")
                    for p in suite.getElementsByTagName("property")}
            self.assertEqual(said, {"interrupted": sig.name,
                                    "unfinished": "4"})
            told, = suite.getElementsByTagName("system-err")
            self.assertIn("4 files not finished", told.firstChild.data)
            if words == ["--json"]:
                outcome = json.loads(out)
                self.assertEqual(len(outcome["results"]), 3)
                self.assertEqual((outcome["interrupted"],
                                  outcome["unfinished"]), (sig.name, 4))
            elif words == ["--tap"]:
                self.assertIn("Bail out! interrupted by SIGTERM", out)
            else:
                self.assertIn("FAIL b.nacre:2", out)
                self.assertIn("2 failed, 1 passed", out)
        self.file("b.nacre", PASSED)
        self.assertIn("1 failed", self.nacre("--last-failed", "-k", "one")[1])


class Devices(Case):
    """On the CPU and a CUDA device, the real one or that of NACRE_CUDA."""
    cuda = os.environ.get("NACRE_CUDA")

    @classmethod
    def setUpClass(cls):
        p = subprocess.run([NACRE, "-p", "nacre.cuda.is_available()"],
                           stdout=subprocess.PIPE, encoding="utf-8")
        if p.stdout != "true\n":
            raise unittest.SkipTest("cuda not available")

    ONES = "> a = nacre.ones(16,16)\n"
    OFF = "> if nacre.get_default_device() ~= 'cpu' then a[{3,4}] = 1.5 end\n"

    def test_one_text_for_all(self):
        text = self.ONES + "> a\nfloat32[16x16] cpu  1.0 KiB  all 1\n"
        self.assertIn("2 passed", self.passes(text))
        self.assertIn("2 passed", self.passes(text.replace("cpu", "cuda:0")))
        self.assertIn("1 passed", self.passes(text, "--device", "cuda"))
        self.assertIn("1 passed", self.passes("--: devices cpu\n" + text))
        self.assertIn("1 passed", self.passes(text, "--device", "cpu"))
        self.passes("--: devices cpu cuda\n--: only cuda {\n"
                    "> tostring(nacre.ones(2).device)\n\"cuda:0\"\n--: }\n")

    def test_one_device_differs(self):
        text = self.ONES + self.OFF + "> a:mul(2):sum():item()\n512.0\n"
        out = self.fails(text)
        self.assertIn("1 failed, 1 passed", out)
        self.assertRegex(out, "FAIL a.nacre:4  cuda:0 ")
        for line in ("cpu gives 512.0, inside tolerance: only cuda:0 differs",
                     "tensor a:mul(2): 1 of 256 elements outside, worst at "
                     "[3,4]: 3 / 2 (4194304 ulp)",
                     "rerun   nacre --test a.nacre:4 --device cuda:0 --seed 0"):
            self.assertIn("\n       " + line + "\n", out)
        out = self.fails(text, "--update", "--ok")
        self.assertIn("refused: cpu gives 512.0, cuda:0 gives 513.0", out)
        self.assertEqual(self.read("a.nacre"), text)

    def test_devices_that_differ_a_little(self):
        """A tolerance is noted where --within allows it."""
        off = self.OFF.replace("1.5", "1 + 2^-12")
        text = (self.ONES + off + "> a:sum():item() / 3\n> a:sum() / 3\n"
                "> a:sum():item()\n")
        self.file("a.nacre", text)
        self.assertEqual(self.nacre("--update", "--ok")[0], 1)
        self.assertEqual(self.read("a.nacre"), text)
        out = self.nacre("--update", "--ok", "--within", "1e-5")[1]
        self.assertIn("or within the #~ of 3 lines", out)
        self.assertRegex(self.read("a.nacre"), r"""
85\.33+  #~ rtol=1e-6
> a:sum\(\) / 3
85\.3333  float32\[\] cpu  #~ atol=1e-4
> a:sum\(\):item\(\)
256\.0  #~ rtol=1e-6
""")
        self.assertEqual(self.nacre()[0], 0)
        text = text.replace("2^-12", "2^-3")
        self.file("a.nacre", text)
        self.assertEqual(self.nacre("--update", "--within", "1e-5")[0], 1)
        self.assertEqual(self.read("a.nacre"), text)

    def test_jobs_on_a_device(self):
        for name in "abc":
            self.file(name + ".nacre", "--: devices cuda\n"
                      "> nacre.ones(1):sum():item()\n1.0\n"
                      "> os.execute 'sleep 0.5';\n")
        begin = time.time()
        self.assertEqual(self.nacre("-j4")[0], 0)
        self.assertGreater(time.time() - begin, 1.5)
        self.assertEqual(self.nacre("-j4", "--gpu-jobs", "3")[0], 0)

    def test_units(self):
        self.assertIn("2 passed", self.passes(
            "test('x', function(t) t.eq(tostring(nacre.ones(1).device), "
            "t.device) t.close(nacre.ones(3), nacre.ones(3)) end)",
            name="u_test.lua"))

    def test_a_session_becomes_a_test(self):
        p = subprocess.run([NACRE, "-E", "-q", "-i"], env=self.env(),
                           input=":seed 1\nnacre.randn(64, 32):mm(nacre.randn("
                           "32, 16)):sum():item()\n:save --test t.nacre\n",
                           cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("t.nacre: 2 inputs, replayed twice on cpu and cuda:0, "
                      "identical within written digits", p.stdout)
        # what devices round differently is in the test, and passes
        self.assertEqual(self.nacre("t.nacre")[0], 0, self.read("t.nacre"))


if __name__ == "__main__":
    NACRE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
