#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_units.py - *_test.lua and --last-failed: the messages; a test that ends
# its process hides no other test; what failed runs again.

import os
import re
import unittest

import runner_case as runner

LOST = """\
test("first", function(t) t.ok(true) end)
test("endless", {n = {1, 2}}, function(t, p)
  print("n is", p.n)
  while p.n == 1 do end
end)
test("wrong", function(t)
  t.eq(1, 2)
end)
test("leaves", function(t) print "bye" os.exit(true) end)
test("good", function(t) t.ok(true) end)
test("killed", function(t) os.execute "kill -KILL $PPID" end)
"""


class Units(runner.Case):
    def test_units(self):
        out = self.fails("""\
test("good", function(t) t.eq({1, {2}}, {1, {2}}) end)
test("grid", {n = {1, 2}, s = {"a", "b"}}, function(t, p)
  t.ok(p.n < 2 or p.s == "a", "no")
end)
test("skipped", function(t) t.skip "why" end)
test("error", function(t) t.err("12", error, "12") local x = nil + 1 end)
test("none", function(t) t.err("x", print) end)
""", name="u_test.lua")
        self.assertIn("FAIL u_test.lua:3  grid (n=2, s=b)", out)
        self.assertIn("FAIL u_test.lua:6  error", out)
        self.assertIn("FAIL u_test.lua:7  none", out)
        self.assertIn("3 failed, 4 passed, 1 skipped (why: 1)", out)
        self.assertIn("--test u_test.lua:2 --device cpu", out)
        out = self.nacre("u_test.lua:4")[1]
        self.assertIn("1 failed, 3 passed", out)

    def test_names_and_output_of_units(self):
        self.file("u_test.lua", "test('alpha', {n = {1, 2}}, function(t, p)\n"
                  "  print('seen', p.n) t.ok(p.n == 1)\nend)\n"
                  "test('beta', function(t) print 'quiet' end)\n")
        self.assertEqual(self.nacre("--list")[1], "".join(
            "u_test.lua  cpu  %s\n" % name for name in
            ("alpha (n=1)", "alpha (n=2)", "beta")))
        status, out, err = self.nacre("-k", "n=2")
        self.assertIn("1 failed, 0 passed", out)
        self.assertRegex(out, "it printed:\n +seen\t2\n")
        self.assertNotIn("quiet", out)
        self.assertIn("1 passed", self.nacre("-k", "beta")[1])
        self.assertEqual(self.nacre("-k", "gamma")[0], 5)

    def test_the_example_of_the_guide(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                            "..", "docs", "guide", "testing.md")
        with open(path, encoding="utf-8") as f:
            text = re.search("```lua\n(.*?)```", f.read(), re.S).group(1)
        self.assertIn("2 passed", self.passes(text, name="guide_test.lua"))

    def test_a_check_that_is_called_wrongly(self):
        out = self.fails("test('a', function(t)\n  t.ok(true)\n"
                         "  t.err(function() error 'x' end)\nend)\n"
                         "test('b', function(t)\n"
                         "  t.close(1, 1, 'text')\nend)\n",
                         name="u_test.lua")
        self.assertRegex(out, r"FAIL u_test.lua:3  a .*\n +3  t.err\(function"
                         r".*\n +t.err\(text, .*the text of the error comes "
                         "first, not function")
        self.assertRegex(out, r"FAIL u_test.lua:6  b .*\n +6  t.close.*\n"
                         r" +t.close\(\.\.\., .* is \"text\"")

    # ---- t.golden

    GOLDEN = """\
test("a", {n = {1, 2}}, function(t, p)
  t.golden(nacre.arange(50) / 7 * p.n, "sevenths")
  t.golden(0.125)
  t.golden({1, 2, 3}, "list")
end)
test("b", function(t) t.golden(nacre.eye(2), "eye", {rtol = 1e-2}) end)
"""

    def values(self):
        with open(os.path.join(self.tests, "g_test.lua.safetensors"),
                  "rb") as f:
            return f.read()

    def test_golden_tensors(self):
        out = self.fails(self.GOLDEN, name="g_test.lua")
        self.assertIn("no value of this name in g_test.lua.safetensors: "
                      "--update writes it\n         a (n=1): sevenths", out)
        self.assertIn("3 failed", out)
        status, out, err = self.nacre("--update", "--ok")
        self.assertIn("g_test.lua: 7 tensors in g_test.lua.safetensors", out)
        self.assertEqual(status, 0)
        self.assertEqual(self.nacre()[0], 0)
        first = self.values()
        self.assertIn("0 files written", self.nacre("--update")[1])
        self.passes(self.GOLDEN.replace("/ 7", "/ 7.000001")
                    .replace("eye(2)", "eye(2) * 1.009"), name="g_test.lua")
        self.nacre("--update")
        self.assertEqual(self.values(), first)
        changed = self.GOLDEN.replace("/ 7", "/ 7.1").replace("0.125", "0.2")
        out = self.fails(changed, name="g_test.lua")
        self.assertIn("49 of 50 elements differ", out)
        self.assertIn("[2]: got 0.140845075, expected 0.142857149", out)
        self.nacre("--update", "-k", "n=2")
        self.assertIn("1 failed, 2 passed", self.nacre()[1])
        self.nacre("--update")
        self.assertEqual(self.nacre()[0], 0)
        self.file("g_test.lua", changed.replace('"list"', '"items"'))
        self.assertIn("7 tensors", self.nacre("--update")[1])
        self.assertNotIn(b"list", self.values())

    def test_golden_tensors_beside_tests_that_fail(self):
        def text(x, y):
            return ("test('a', function(t) t.golden(nacre.ones(3) * %d, 'g') "
                    "end)\ntest('b', function(t) t.golden(nacre.eye(2) * %d, "
                    "'e') t.close(1, %d) end)\ntest('c', function(t) "
                    "t.close(3, %d) end)\n" % (x, x, y, y + 2))
        self.file("g_test.lua", text(1, 1))
        self.assertIn("2 tensors", self.nacre("--update")[1])
        self.file("g_test.lua", text(2, 2))
        status, out, err = self.nacre("--update", "--ok")
        self.assertEqual(status, 1)
        self.assertIn("1 and 2 differ", out)
        self.assertIn("3 and 4 differ", out)
        self.assertIn("g_test.lua: b: e: not written, because the test failed",
                      out)
        self.assertIn("g_test.lua: 2 tensors in", out)
        self.file("g_test.lua", text(2, 1))
        out = self.nacre()[1]
        self.assertIn("1 failed, 2 passed", out)
        self.assertIn("FAIL g_test.lua:2  b", out)

    def test_golden_tensors_are_reviewed(self):
        self.file("g_test.lua", self.GOLDEN)
        self.nacre("--update")
        first = self.values()
        self.file("g_test.lua", self.GOLDEN.replace("/ 7", "/ 8")
                  .replace("eye(2)", "eye(2) * 2").replace('"list"', '"l2"'))
        status, out, err = self.nacre("--review", text="r\n?\nq\n")
        self.assertEqual((status, self.values()), (1, first))
        self.assertIn("g_test.lua:1  t.golden  a (n=1): sevenths\n  49 of 50 "
                      "elements differ", out)
        self.assertIn("\n[a]ccept  [r]eject  [s]kip  [q]uit  [?] ", out)
        self.assertIn("a  write what there is now into the file\n", out)
        # sevenths and l2 of n=1 and n=2, and the eye
        out = self.nacre("--review", text="a\nr\na\na\na\n")[1]
        self.assertIn("8 tensors in g_test.lua.safetensors", out)
        status, out, err = self.nacre()
        self.assertIn("1 failed, 2 passed", out)
        self.assertIn("no value of this name", out)
        self.assertEqual(self.nacre("--review", text="a\n")[0], 0)
        self.assertEqual(self.nacre()[0], 0)
        self.assertNotIn(b"list", self.values())

    def test_golden_infinities(self):
        text = "test('a', function(t) t.golden(nacre.tensor{%s, 2}) end)"
        self.file("g_test.lua", text % "1/0")
        self.nacre("--update")
        self.passes(text % "1/0", name="g_test.lua")
        for other in "-1/0", "5.0", "0/0":
            self.assertIn("expected inf", self.fails(text % other, "--rtol=9",
                                                     name="g_test.lua"))
        self.file("g_test.lua", text % "3.5")
        self.nacre("--update")
        self.assertIn("got -inf", self.fails(text % "-1/0", "--rtol=9",
                                             name="g_test.lua"))

    def test_golden_tensors_that_cannot_be(self):
        self.file("g_test.lua", "test('a', function(t) "
                  "t.golden(nacre.clock() % 1) end)")
        status, out, err = self.nacre("--update", "--ok")
        self.assertEqual(status, 1)
        self.assertIn("1 of 1 elements differ", out)
        self.assertEqual(os.listdir(self.tests), ["g_test.lua"])
        self.each_fails("test('a', function(t) t.golden(%s) end)", (
            ("1, 2", "the name is a string"), ("nil", "takes a"),
            ("1, 'x', {rtl = 1}", "not rtl = 1"),
            ("1, 'x', {equal_nan = true}",
             "t.golden takes {rtol = number, atol = number}, "
             "not equal_nan = true")), name="g_test.lua")

    def test_operands_of_ok(self):
        head = ("#!/usr/bin/env nacre\nlocal n = 0\n"
                "local function up() n = n + 1 return n, 9 end\n")
        self.each_fails(head + "test('a', function(t) %s end)", (
                ("local a, b = 3, 4 t.ok(a == b)",
                 "not true\n         a is 3\n         b is 4\n"),
                ("t.ok(up() > 1.5, 'why')", "why\n         up() is 1\n"),
                ("t.ok(n\n   ~= 0 and up() == 1)",
                 "not true\n         n is 0\n       rerun"),
                ("t.ok(up() == 1 and (n) == 2 or t.seed < -1)",
                 "         up() is 1\n         (n) is 1\n"
                 "         t.seed is 0\n"),
                ("t.ok(0.1 + 0.2 == 0.3)", "is 0.30000000000000004\n"),
                ("t.ok(n == 0) t.ok(nil)", "       nil is not true\n"),
                ("t.ok(({1, 2})[1] == #'abc')",
                 "({1, 2})[1] is 1\n         #'abc' is 3\n"),
                ("local require t.ok(n == 1)", "       false is not true\n")),
                name="o_test.lua")
        self.passes(head + "test('a', function(t) t.ok(up() == 1)\n"
                    "t.ok(n == 1) t.ok(not (n == 2)) end)", name="o_test.lua")

    def test_what_a_test_prints_is_cut(self):
        text = "print(('x'):rep(1000000))"
        self.assertLess(len(self.fails("test('a', function(t) %s t.ok(false) "
                                       "end)" % text, name="u_test.lua")), 2000)
        self.assertLess(len(self.fails("%s error 'at once'" % text,
                                       name="u_test.lua")), 20000)
        self.assertLess(len(self.fails("> %s\n1\n" % text)), 2000)

    def test_broken_units(self):
        self.each_fails("%s", (
            ("x = = 1", "unexpected symbol"), ("error 'at once'", "at once"),
            ("local x = 1", "no test()"), ("test(1)", "bad arguments"),
            ("os.exit(4)", "status 4"),
            ("test('a', function() os.exit(5) end)", "status 5")),
            name="b_test.lua")

    # ---- tests that are lost

    def test_a_lost_test_hides_no_other(self):
        out = self.fails(LOST, "--timeout", "1s", name="u_test.lua")
        self.assertTrue(out.startswith(".F.FF.F\n"), out)
        self.assertIn("4 failed, 3 passed", out)
        for text in ("FAIL u_test.lua:2  endless (n=1)  cpu",
                     "timed out after 1 s\n         at u_test.lua:4   "
                     "while p.n == 1 do end\n         in test\n"
                     "       it printed:\n         n is\t1\n",
                     "FAIL u_test.lua:7  wrong  cpu",
                     "    7  t.eq(1, 2)\n       got 1, expected 2\n",
                     "the program ended with status 0\n       it printed:\n"
                     "         bye\n       rerun",
                     "killed by signal 9 (Killed)"):
            self.assertIn(text, out)

    def test_a_time_out_says_where(self):
        text = """\
local function deep(n) while true do pcall(function() n = n + 1 end) end end
test("loop", function(t)
  deep(3)
end)
test("coroutine", function()
  coroutine.wrap(function() while true do end end)()
end)
test("operation", function()
  local a = nacre.ones(3000, 3000)
  for i = 1, 9999 do a = a:mm(a) end
end)
test("read", function() io.popen("sleep 9"):read "a" end)
test("outside", function() os.execute "sleep 9" end)
test("last", function(t) t.ok(true) end)
"""
        out = self.fails(text, "--timeout", "1s", name="u_test.lua")
        self.assertIn("5 failed, 1 passed", out)
        for says in ("at u_test.lua:1   local function deep(n) while true",
                     "in deep, called from u_test.lua:3   deep(3)\n",
                     "at u_test.lua:6   coroutine.wrap",
                     "u_test.lua:10 ", "at u_test.lua:12 "):
            self.assertIn(says, out)
        self.assertNotIn("interrupted\n", out)
        self.assertRegex(out, "outside.*\n.*\n +timed out after 1 s\n"
                         " +rerun")
        out = self.fails("setup(function() while true do end end)\n"
                         "test('a', function() end)", "--timeout", "1s",
                         name="u_test.lua")
        self.assertRegex(out, "timed out after 1 s\n +at u_test.lua:1 ")
        self.file("s.out", "")
        out = self.fails("local function f() while true do end end\nf()\n",
                         "--timeout", "1s", name="s.lua")
        self.assertIn("in f, called from s.lua:2   f()\n", out)
        out = self.fails("> function f() while true do end end\n> f()\n",
                         "--timeout", "1s")
        self.assertRegex(out, r"\+ +interrupted in f \(")
        self.assertIn("line 2: timed out after 1 s", out)

    def test_each_test_has_its_own_time(self):
        text = 'test("a", {n = {1, 2, 3}}, function() os.execute "sleep 1.2"' \
               ' end)\n'
        out = self.passes(text, "--timeout", "3s", name="u_test.lua")
        self.assertIn("3 passed", out)

    def test_expected_failures_of_lost_tests(self):
        self.assertIn("3 passed, 4 failed as expected",
                      self.passes('--: xfail "later"\n' + LOST, "--timeout",
                                  "1s", name="u_test.lua"))

    def test_where_an_error_was(self):
        out = self.fails("test('x', function(t)\n\n  local y = nil + 1\nend)\n",
                         name="u_test.lua")
        self.assertIn("FAIL u_test.lua:3  x", out)
        self.assertIn("--test u_test.lua:1 ", out)
        self.assertEqual(out.count("local y = nil + 1"), 1)

    def test_fail_fast_within_a_file(self):
        out = self.fails(LOST, "--timeout", "1s", "--fail-fast",
                         name="u_test.lua")
        self.assertIn("1 failed, 1 passed", out)

    # ---- --last-failed

    def test_of_a_file_what_failed_in_it(self):
        self.fails(LOST, "--timeout", "1s", name="u_test.lua")
        out = self.nacre("--last-failed", "--timeout", "1s")[1]
        self.assertIn("4 failed, 0 passed", out)
        out = self.nacre("--last-failed", "--list")[1]
        self.assertEqual([line.split("  ")[2] for line in
                          out.strip().split("\n")],
                         ["endless (n=1)", "wrong", "leaves", "killed"])

    def test_what_failed_in_the_last_run(self):
        self.file("a.nacre", runner.FAILED)
        self.file("b.nacre", runner.FAILED)
        self.nacre("a.nacre")
        self.nacre("b.nacre")
        self.assertEqual(self.nacre("--last-failed", "--list")[1],
                         "b.nacre  cpu\n")
        self.nacre()
        self.assertEqual(self.nacre("--last-failed", "--list")[1],
                         "a.nacre  cpu\nb.nacre  cpu\n")

    def test_a_run_elsewhere_changes_nothing_here(self):
        self.file("a.nacre", runner.FAILED)
        self.nacre()
        here = self.tests
        self.tests = os.path.join(self.home, "other")
        os.mkdir(self.tests)
        self.file("c.nacre", runner.PASSED)
        self.assertEqual(self.nacre()[0], 0)
        self.assertIn("no test failed", self.nacre("--last-failed")[2])
        self.tests = here
        self.assertIn("1 failed", self.nacre("--last-failed")[1])

    def test_of_the_dtypes_the_one_that_failed(self):
        self.file("a.nacre", "--: dtype float32 float64\n> nacre.ones(1).dtype"
                  " == 'float32'\ntrue\n")
        self.assertIn("1 failed, 1 passed", self.nacre()[1])
        self.assertIn("1 failed, 0 passed", self.nacre("--last-failed")[1])

    # ---- files that test nothing

    def test_a_file_without_input(self):
        for text in ("", "-- only prose\n", "--: seed 1\n"):
            self.assertIn("it has no input", self.fails(text), repr(text))
        self.passes('--: skip "later"\n')

    def test_names_that_are_nearly_right(self):
        self.assertIn("no directive 'device cuda', did you mean 'devices'?",
                      self.fails("--: device cuda\n" + runner.PASSED))


if __name__ == "__main__":
    runner.main()
