#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_runner.py - nacre --test: the files that it finds, the text of failures,
# the files that it writes.

import os
import re
import subprocess

import runner_case
from runner_case import Case, FAILED, PASSED


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
        p = self.program("-q", "--test")
        self.assertEqual(p.returncode, 2)
        self.assertIn("--test must be the first option", p.stderr)

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
                         "> for i = 1, 3 do\n>>   print(i)\n>> end\n1\n3\n",
                         "-j8")
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
        self.assertTrue(out.endswith(" s, 8 jobs\n"), out)

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
        self.assertIn("needs file? no.txt",
                      self.passes("--: needs file? no.txt\n" + FAILED))
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
        out = self.typed("math.random(1000000)\n:save --test a.nacre\n"
                         ":seed 4\nmath.random(1000000)\n"
                         "nacre.rand(1):item()\n:save --test b.nacre\n")
        self.assertIn("a.nacre: 1 input, replayed twice", out)
        self.assertIn("b.nacre: 4 inputs, replayed twice", out)

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
                ["sh", "-c", '"$0" --test a.nacre ' + closed, runner_case.NACRE],
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
        out = self.fails("--: memory 50M\n> !%s -e \"%s\"\n" % (runner_case.NACRE, lua))
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
        self.assertIn("neither input", self.fails("hello\n" + PASSED))

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
        self.each_fails("%s", (
            ("> os.exit(3)\n> 1\n1\n", "line 1: the program ended with "
             "status 3; 1 input was not run"),
            ("> 1\n1\n> !kill -KILL $PPID\n> 2\n2\n", "killed by signal 9"),
            ("> 1\n> :quit\n> 1\n> 2\n",
             "ended before line 3; 2 inputs were not run"),
            ("--: timeout 300ms\n> while true do end\n",
             "timed out after 0.3 s")))
        out = self.fails("> while true do end\n", "--timeout", "300ms")
        self.assertIn("timed out after 0.3 s", out)
        self.passes(PASSED + "> :quit\n")

    def test_output_that_looks_like_something_else(self):
        printed = "> print '--: seed 5' print 'a #~ y'\n"
        self.assertIn("a.nacre:3: '--: seed 5' follows the output of "
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
                      "that this is expected", self.nacre("--update")[1])
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
        p = self.program("a.lua", cwd=os.path.join(self.tests, "s"))
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
        self.assertIn("a.nacre:3: refused: differs between two runs", out)
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
        out = self.typed(
            "a = nacre.randn(3)\na\nnosuch()\nfor i = 1, 2 do\nprint(i)\n"
            "end\n:save --test t.nacre\n:save --test t.nacre\n"
            ":save s.lua\n:save --test t.lua\n:save --tset x\n"
            ":save r.lua 1-2\n:save q.lua zwei\n:save v.lua 90\n")
        for text in ("t.nacre: 4 inputs, replayed twice on cpu, identical",
                     "t.nacre exists already", "ends in .nacre",
                     "no option '--tset'", "neither a number nor a range",
                     "nothing to save"):
            self.assertIn(text, out)
        self.assertEqual(self.read("r.lua"), "a = nacre.randn(3)\nprint(a)\n")
        shown = re.search(r"> a\n(.*\n.*\n)", out).group(1)
        self.assertIn(shown, self.read("t.nacre"))
        self.assertEqual(self.nacre("t.nacre")[0], 0)
        self.assertEqual(self.read("s.lua"), "a = nacre.randn(3)\nprint(a)\n"
                         "for i = 1, 2 do\nprint(i)\nend\n")
        self.assertIn("> os.clock() * 1e9\n  - ", self.typed(
            "os.clock() * 1e9\n:save --test u.nacre\n"))
        self.assertFalse(os.path.exists(os.path.join(self.tests, "u.nacre")))
        self.assertEqual(os.listdir(self.tmp), [])


if __name__ == "__main__":
    runner_case.main()
