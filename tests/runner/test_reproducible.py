#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_reproducible.py - what passes under nacre --test passes again: the order
# of tables, the clock, errors that nobody has seen, files that are lost,
# tests that change the session of others.

import os
import re
import sys
import unittest

import runner_case as runner


class Reproducible(runner.Case):
    # Each prints what another process need not: the order of pairs, where
    # things lie, or the time.
    ORDERS = (
        "t = {} for i = 1, 40 do t['key' .. i] = i end s = '' "
        "for k in pairs(t) do s = s .. k .. ' ' end print(s)",
        "s = '' for k in pairs{alpha = 1, b = 2, gamma = 3, d = 4} do "
        "s = s .. k end print(s)",
        "print(next{x = 1, y = 2, z = 3})",
        "for k, v in pairs{[print] = 'p', [pairs] = 'q', [next] = 'n', "
        "[type] = 't', [error] = 'e', [select] = 's'} do print(v) end",
        # by addresses, which are at random: three sizes, as one table has the
        # same order in one of 31 runs
        "for _, n in ipairs{20, 40, 80} do local t = {} for i = 1, n do "
        "t[{}] = i end for k, v in pairs(t) do io.write(v, ' ') end end "
        "print()")
    TIMES = ('"%Y"', '"%m"', '"%d"', '"%A"', '"%H:%M"', '"!%j"', '"*t".year')

    def settles(self, name, text, again):
        """An update refuses what that prints, or it is the same each time."""
        self.file(name, text)
        status, out, err = self.nacre("--update", "--ok", name)
        if status == 0 and "1 file written" in out:
            for _ in range(again):
                self.assertEqual(self.nacre(name)[0], 0, text)
            return True
        refused = "refused" in out or "because the test failed" in out
        self.assertEqual(status, 1 if refused else 0, out)
        return False

    def test_orders_of_tables(self):
        for text in self.ORDERS[:3]:
            self.settles("a.nacre", "> %s\n" % text, 4)
        for text in self.ORDERS[:1] + self.ORDERS[4:]:
            self.assertFalse(self.settles("a.nacre", "> %s\n" % text, 0), text)
        self.file("s.out", "")
        self.assertFalse(self.settles("s.lua", self.ORDERS[0], 0))
        self.assertFalse(self.settles(
            "g_test.lua", "test('a', function(t) local list = {} "
            "for k in pairs{a = 1, b = 2, c = 3, d = 4, e = 5, f = 6} do "
            "list[#list + 1] = k:byte() end t.golden(list) end)", 0))

    def test_an_order_is_that_of_every_run(self):
        text = "> %s\n" % self.ORDERS[1]
        first = self.fails(text).split("\n+")[1].split("\n")[0]
        for _ in range(3):
            self.assertIn(first, self.fails(text))

    def test_repeated_runs_have_other_orders(self):
        out = self.fails("> %s\n" % self.ORDERS[0], "--repeat", "4")
        self.assertEqual(len(set(line for line in out.split("\n")
                                 if line.startswith("+"))), 4)

    def test_times(self):
        for what in self.TIMES:
            name, dot, field = what.partition("*t\".")
            call = "os.date('*t').%s" % field if dot else "os.date(%s)" % what
            out = self.nacre_of("> %s\n" % call)
            self.assertIn("refused: differs between two runs", out, call)
        self.assertIn("refused", self.nacre_of("> os.time() // 86400\n"))
        # what does not depend on the day
        self.assertTrue(self.settles("a.nacre", "> t = os.time(); "
                                     "os.time() - t < 50\n> os.date('!%H', 0)\n"
                                     "> os.time{year=2000,month=1,day=1}\n", 1))

    def nacre_of(self, text):
        self.file("a.nacre", text)
        return self.nacre("--update", "--ok", "a.nacre")[1]

    # ---- errors

    def test_an_update_takes_no_new_error(self):
        for text in ("> x = nosuch.field\n", "> 1\n1\n> nacre.ones(2):mm(1)\n",
                     "> f = nil\n> f()\n7\n", "> for\n", "> :load gone.npy\n",
                     "> nacre.python().nosuch\n3\n"):
            self.file("a.nacre", text)
            status, out, err = self.nacre("--update", "--ok")
            self.assertEqual(status, 1, text)
            self.assertRegex(out, r"a.nacre:\d: refused: it now ends in an "
                             "error: .*; --update=errors writes it")
            self.assertEqual(self.read("a.nacre"), text)
            self.assertEqual(self.nacre("--update=errors", "--ok")[0], 0)
            self.assertIn("error", self.read("a.nacre"))
            self.assertEqual(self.nacre()[0], 0)
        # another text of an error that was expected
        self.change("a.nacre", "nosuch", "other")
        self.assertEqual(self.nacre("--update", "--ok")[0], 0)
        self.assertEqual(self.nacre("--update=all")[0], 2)
        # what is printed is none
        self.assertTrue(self.settles("b.nacre", "> print 'error: x'\n", 1))

    def test_a_review_may_take_an_error(self):
        self.file("a.nacre", "> nosuch()\n1\n")
        self.assertEqual(self.nacre("--review", text="a\n")[0], 0)
        self.assertIn("error: ", self.read("a.nacre"))

    # ---- files

    def test_a_file_that_is_lost_is_a_failure(self):
        for name in ("gone.csv", "sub/gone.csv", "../gone.csv", "/no/such"):
            for kind, text in (("a.nacre", runner.PASSED),
                               ("a_test.lua", "test('a', function() end)")):
                head = "--: needs file%s %s\n"
                out = self.fails(head % ("", name) + text, name=kind)
                self.assertIn("needs file %s: there is no such file" % name,
                              out)
                self.fails(head % ("", name) + text, "--ci", name=kind)
                out = self.passes(head % ("?", name) + text, name=kind)
                self.assertIn("1 skipped (needs file? %s: 1)" % name, out)
        self.file("d.txt", "here")
        self.passes("--: needs file? d.txt\n> io.open('d.txt'):read()\n"
                    "\"here\"\n")
        self.assertIn("invalid value", self.fails("--: needs file?\n> 1\n1\n"))

    # ---- tests of a file

    def test_a_test_changes_no_other(self):
        changes = ("nacre.set_default_dtype 'float64'",
                   "nacre.set_num_threads(2)", "nacre.set_grad_enabled(false)",
                   "require 'nacre.host'.working_folder '/'",
                   "io.output(io.open('x', 'w'))", "package.path = ''",
                   "io.input(io.open('/dev/null'))",
                   "getmetatable('').__index = {}",
                   "debug.sethook(function() end, 'l')",
                   "collectgarbage 'stop'")
        look = """\
test(%%q, function(t)
  t.eq(nacre.ones(1).dtype, "float32")
  t.eq(nacre.get_num_threads(), 1)
  t.ok(nacre.is_grad_enabled())
  t.eq(require "nacre.host".working_folder(), here)
  t.ok(io.output() == io.stdout and io.input() == io.stdin)
  t.eq(package.path, path)
  t.eq(("x"):rep(2), "xx")
  t.ok(not debug.gethook())
  t.ok(collectgarbage "isrunning")
end)
"""
        text = ("here = require 'nacre.host'.working_folder()\n"
                "path = package.path\n")
        for k, change in enumerate(changes):
            text += "test('change %d', function(t) %s end)\n" % (k, change)
            text += look.replace("%%q", "'see %d'" % k)
        self.passes(text, name="a_test.lua")
        # what the file itself sets stays
        self.passes("nacre.set_default_dtype 'float64'\n"
                    "setup(function() nacre.set_num_threads(2) end)\n" +
                    "".join("test('%s', function(t) "
                            "t.eq(nacre.ones(1).dtype, 'float64') "
                            "t.eq(nacre.get_num_threads(), 2) end)\n" % name
                            for name in "ab"), name="a_test.lua")

    def test_two_tests_of_one_name(self):
        one = "test('same', function(t) t.golden(nacre.ones(%d)) end)\n"
        self.each_fails("%s", (
            (one % 1 + one % 2, "u_test.lua:2: two tests have the name 'same', "
             "the other is in line 1"),
            ("test('a', {n = {2, 1, 2}}, function() end)",
             "two tests have the name 'a (n=2)'"),
            ("test('a', {n = 1}, function() end)\n"
             "test('a (n=1)', function() end)", "have the name 'a (n=1)'"),
            ("for i = 1, 2 do test('loop', function() end) end",
             "have the name 'loop'")), name="u_test.lua")

    def test_names_are_those_of_every_run(self):
        self.file("u_test.lua", "test('a', {n = {{1}, {1}, print, nacre.eye(2),"
                  " '1', 1, 1.0, true, 'true', 'x'}}, function(t, p) "
                  "t.golden(1) end)\n")
        names = ["#1", "#2", "#3", "#4", '"1"', "1", "1.0", "true", '"true"',
                 "x"]
        self.assertEqual(self.nacre("--list")[1], "".join(
            "u_test.lua  cpu  a (n=%s)\n" % name for name in names))
        self.nacre("--update")
        self.assertEqual(self.nacre()[0], 0)

    def test_tests_that_test_nothing(self):
        out = self.passes("test('none', {n = {}, m = {1}}, function() end)\n"
                          "test('one', function(t) t.ok(true) end)\n"
                          "test('open', function() end)\n"
                          "test('loop', function(t) for _, x in ipairs{} do "
                          "t.ok(x) end end)\n", name="u_test.lua")
        self.assertIn("\n2 tests passed without a check: open, loop\n"
                      "3 passed, 1 skipped (no value for the parameter n: 1)",
                      out)
        out = self.passes("test('a', {n = {}}, function() end)",
                          name="u_test.lua")
        self.assertIn("0 passed, 1 skipped", out)
        self.file("helper.lua", "local assert = assert\n"
                  "return {same = function(a, b) assert(a == b) end}")
        for body in ("t.err('x', error, 'x')", "assert(1 == 1)",
                     "local check = _G.assert check(true)",
                     "require 'helper'.same(1, 1)"):
            self.assertNotIn("without", self.passes(
                "test('a', function(t) %s end)" % body, name="u_test.lua"))
        self.assertIn("assertion failed!", self.fails(
            "test('a', function() assert(false) end)", name="u_test.lua"))

    # ---- tests that depend on others

    def test_failures_that_pass_alone(self):
        says = "it passes alone: it depends on the tests before it\n"
        file = ("test('first', function(t) n = (n or 0) + 1 t.ok(true) end)\n"
                "test('second', function(t) t.eq(n, %s) end)\n"
                "test('third', function(t) t.eq(1, 2) end)\n")
        out = self.fails(file % "nil", name="u_test.lua")
        self.assertEqual(out.count(says), 1, out)
        self.assertIn("got 1, expected nil\n       " + says, out)
        for text in (file % 1, "test('a', function(t) n = n or 1 t.eq(n, 2) "
                     "end)\ntest('b', function(t) t.eq(n, 1) end)"):
            self.assertNotIn(says, self.fails(text, name="u_test.lua"))
        self.file("u_test.lua", file % 1)
        self.assertNotIn(says, self.nacre("u_test.lua:2")[1])

    # ---- hashes of Python

    def test_hashes_of_python(self):
        """Sets of texts have one order in all runs; --update tries another."""
        code = "> !%s -c 'print(hash(\"a\"))'\n" % sys.executable
        of = [re.search(r"(?m)^\+ .*?(-?\d{6,})$", self.fails(
            code + "none\n", PYTHONHASHSEED=seed)).group(1)
              for seed in ("random", "7")]
        self.assertEqual(of[0], of[1])
        self.file("p.nacre", code)
        status, out, err = self.nacre("--update")
        self.assertIn("differ", out + err)
        self.passes(code + "...\n")

    # ---- values of t.golden

    GOLDEN = ("test('a', function(t) t.golden(nacre.ones(2), 'x') "
              "t.golden(1) end)\ntest('b', function(t) t.golden(2) end)\n")

    def test_values_of_no_test(self):
        self.file("g_test.lua", self.GOLDEN)
        self.nacre("--update")
        says = "g_test.lua.safetensors has %d value%s of no test"
        self.change("g_test.lua", "'x'", "'y'")
        self.nacre("--update")
        self.assertEqual(self.nacre()[0], 0)
        self.change("g_test.lua", "test('b'", "test('zed'")
        self.change("g_test.lua", "t.golden(2)", "t.ok(true)")
        status, out, err = self.nacre()
        self.assertEqual(status, 0)
        self.assertIn(says % (1, "") + ", which --update removes: b: #1", out)
        self.assertNotIn("of no test", self.nacre("g_test.lua:1")[1])
        self.assertNotIn("of no test", self.nacre("-k", "zed")[1])
        self.assertIn("as no test has them: b: #1", self.nacre("--update")[1])
        self.assertNotIn("of no test", self.nacre()[1])
        self.assertIn("0 files written", self.nacre("--update")[1])
        # a test that did not come to its end keeps its own
        self.change("g_test.lua", "t.golden(nacre", "t.skip 'now' t.golden(nacre")
        self.assertNotIn("of no test", self.nacre()[1])
        self.file("g_test.lua", "test('z', function(t) t.ok(true) end)")
        self.nacre("--update")
        self.assertEqual(os.listdir(self.tests), ["g_test.lua"])

    def test_texts_and_tables(self):
        text = ("test('a', function(t)\n  t.golden('one\\ntwo\\n', 'text')\n"
                "  t.golden{name = 'x', n = 3, list = {0.1, true, {}}, "
                "w = nacre.ones(2)}\n  t.golden{{1, 2}, {3}}\nend)\n")
        self.file("g_test.lua", text)
        self.assertIn("3 values in", self.nacre("--update")[1])
        self.passes(text, name="g_test.lua")
        for old, new, says in (
                ("two", "too", "       - two\n       + too\n"),
                ("'x'", "'y'", 'at .name: got "y", expected "x"'),
                ("n = 3", "n = 3.0", "at .n: got 3.0, expected 3"),
                ("0.1", "0.2", "at .list[1]: 0.2"),
                ("0.1", "0.100001", "at .list[1]: 0.100001"),
                ("true", "false", "at .list[2]: got false, expected true"),
                ("{}", "{1}", "at .list[3][1]: got 1, expected nil"),
                ("ones(2)", "zeros(2)", "at .w:"),
                ("{3}", "{3, 4}", "at [2][2]: got 4, expected nil"),
                ("'one\\ntwo\\n'", "5", "5, expected")):
            self.assertIn(says, self.fails(text.replace(old, new),
                                           name="g_test.lua"), new)
        self.passes(text.replace("0.1", "0.1 + 1e-12"), name="g_test.lua")
        for held, other in (
                ("{n = {nil, 2}}", "{n = {2}}"), ("{nil, 2}", "{2}"),
                ("{nil, 2, x = 1}", "{2, 1}"), ("{[0] = 1, 2}", "{1, 2}"),
                ("{[0] = 'a', nil, 'b'}", "{'a', 'b'}"),
                ("{n = 2}", "{n = 3}"), ("{n = {1, nil, 'x'}}", "{n = {1}}"),
                ("{[-1] = 'a', nil, 'b'}", "{'a', 'b'}")):
            text = "test('a', function(t) t.golden(%s) end)"
            self.file("h_test.lua", text % held)
            self.nacre("--update", "h_test.lua")
            self.passes(text % held, name="h_test.lua")
            self.fails(text % other, name="h_test.lua")
        self.each_fails("test('a', function(t) t.golden(%s) end)", (
            ("print", "takes a tensor, a number, a text, or a table of them"),
            ("{print}", "takes a tensor"), ("nil", "takes a tensor"),
            ("{[{}] = 1, x = io.stdout}", "takes a tensor")),
            name="h_test.lua")


if __name__ == "__main__":
    runner.main()
