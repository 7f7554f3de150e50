#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_project.py - tests of a library of one's own: where they find it, and
# that they pass in another checkout.

import os
import shutil
import subprocess
import unittest

import runner_case as runner

LIBRARY = """\
local M = {}
function M.inner(x)
  return x.shape.size
end
function M.refuse() error "bad thing" end
function M.here() return (debug.getinfo(1, "S").source:match "@(.*)/") end
M.file = select(2, ...)
return M
"""

SESSION = """\
> stats = require "stats"
> deep = require "stats.deep"
> deep.n
7
> stats.inner {}
error: attempt to index a nil value (field 'shape')
  at stats/init.lua:3   return x.shape.size
  in inner, called from the prompt
> print(pcall(stats.refuse))
false	stats/init.lua:5: bad thing
> require "near"
3	"tests/near.lua"
> require "broken"
error: error loading module 'broken' from file 'broken.lua':
	broken.lua:1: unexpected symbol near <eof>
...
> require "nosuch"
error: module 'nosuch' not found
  hint: searched in tests/nosuch.lua, nosuch.lua and the rest of package.path
> io.open(stats.here() .. "/deep.lua"):read "l"
"return {n = 7}"
> io.open(stats.file):read "l"
"local M = {}"
> #arg, arg[0]
0	"nacre"
"""


class Project(runner.Case):
    def project(self, folder="", mark=".nacre-root"):
        """A library, and its tests in a folder beside it."""
        self.file(folder + mark, "")
        self.file(folder + "stats/init.lua", LIBRARY)
        self.file(folder + "stats/deep.lua", "return {n = 7}")
        self.file(folder + "broken.lua", "x =")
        self.file(folder + "tests/near.lua", "return 3")
        self.file(folder + "tests/s.nacre", SESSION)

    def passing(self, *words, **options):
        status, out, err = self.nacre(*words, **options)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def test_a_session_finds_the_library(self):
        for mark in (".nacre-root", ".git/HEAD"):
            folder = mark.strip(".").split("/")[0] + "/sub/"
            self.project(folder, mark)
            self.passing(folder)
            here = self.tests
            for place in (folder, folder + "tests"):
                self.tests = os.path.join(here, place)
                self.passing()
            self.tests = here

    def test_every_kind_finds_it(self):
        self.project("p/")
        self.file("p/tests/u_test.lua",
                  "local stats = require 'stats'\n"
                  "test('x', function(t) t.eq(require 'near', 3) "
                  "t.err('bad thing', stats.refuse) end)\n")
        self.file("p/tests/m.md", "```nacre\n" + SESSION + "```\n")
        self.file("p/tests/x.lua", "print(require 'stats.deep'.n, arg[0])")
        self.file("p/tests/x.out", "7\t<...>/p/tests/x.lua\n")
        self.assertIn("4 passed", self.passing("p"))

    def test_the_root_is_named_or_the_current_folder(self):
        self.project("p/", "unmarked")
        self.assertEqual(self.nacre("p")[0], 1)
        self.passing("--root", "p", "p")
        self.tests = os.path.join(self.tests, "p")
        self.passing()
        self.assertEqual(self.nacre("--root", "nosuch")[0], 2)

    def test_lua_path_is_meant_from_the_start(self):
        self.file("other/far.lua", "return 9")
        self.file("tests/a.nacre", "> require 'far'\n9\t<...>\n")
        self.assertEqual(self.nacre("tests")[0], 1)
        for path in ("other/?.lua", "./other/?.lua;;", ";;other/?.lua"):
            self.passing("tests", LUA_PATH=path)
            self.passing("tests", LUA_PATH_5_4=path, LUA_PATH="x")

    MODULE = "\n".join((
        "void lua_pushinteger(void *, long long);",
        "int luaopen_%s(void *L) { return lua_pushinteger(L, %d), 1; }"))

    def compiled(self, name, value):
        """A module in C that is this number."""
        path = os.path.join(self.tests, name + ".so")
        source = self.MODULE % (os.path.basename(name), value)
        subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", path],
                       input=source, encoding="utf-8", check=True)

    @unittest.skipUnless(shutil.which("cc"), "no compiler")
    def test_modules_in_c(self):
        self.project("p/")
        self.compiled("p/stats/quick", 7)
        self.compiled("p/tests/beside", 8)
        self.compiled("p/tests/stats", 9)
        os.rename(os.path.join(self.tests, "p/tests/stats.so"),
                  os.path.join(self.tests, "p/wrong.so"))
        self.file("p/tests/c.nacre", """\
> require "stats.quick"
error: error loading module 'stats.quick' from file 'stats/quick.so':
<...>undefined symbol: luaopen_stats_quick
...
> require "beside"
8	"tests/beside.so"
> select(2, pcall(require, "nosuch")):match "no file 'tests/nosuch.so'"
"no file 'tests/nosuch.so'"
> require "wrong"
error: error loading module 'wrong' from file 'wrong.so':
<...>undefined symbol: luaopen_wrong
...
""")
        self.passing("p/tests/c.nacre")

    def test_files_that_a_test_needs(self):
        self.project()
        self.file("tests/d.csv", "1,2\n")
        self.file("tests/data/a/e.csv", "3,4\n")
        self.file("top.csv", "5,6\n")
        text = ("--: needs file d.csv\n--: needs file data\n"
                "--: needs file top.csv\n--: needs file ../stats/deep.lua\n"
                "> nacre.load 'd.csv'\nint64[1x2] cpu  16 B\n  1  2\n"
                "> nacre.load('data/a/e.csv')[{1, 2}]\n4\n"
                "> nacre.load('top.csv')[{1, 2}]\n6\n"
                "> dofile '../stats/deep.lua'.n\n7\n"
                "> io.open('d.csv', 'w'):write('9'):close();\n!ls ..\n")
        text = text.replace("!ls ..\n", "> !ls ..\nstats\ntest\n")
        self.file("tests/f.nacre", text)
        self.passing("tests/f.nacre")
        self.assertEqual(self.read("tests/d.csv"), "1,2\n")
        self.file("tests/g_test.lua", "--: needs file data/a/e.csv\n"
                  "test('x', function(t) t.eq(nacre.load('data/a/e.csv'), "
                  "nacre.tensor{{3,4}}) end)\n")
        self.passing("tests/g_test.lua")
        self.file("tests/h.nacre", "--: needs file? /no/such\n> 1\n2\n")
        self.assertIn("needs file? /no/such", self.passing("tests/h.nacre"))

    def test_fixtures(self):
        self.file(".nacre-root", "")
        self.file("conftest.lua", "log = {}\n"
                  "setup(function(t) log[1] = 's' .. t.device end)\n"
                  "after_each(function() log[#log + 1] = 'A' end)\n"
                  "teardown(function() print(table.concat(log, ' '))\n"
                  "error('the end', 0) end)\n")
        self.file("sub/conftest.lua",
                  "function before_each(t) log[#log + 1] = 'b' t.n = 1 end\n"
                  "function after_each(t) log[#log + 1] = 'a' .. t.n end\n")
        self.file("sub/a_test.lua", "setup(function() log[2] = 'own' end)\n"
                  "before_each(function(t) t.n = t.n + 1 end)\n"
                  "test('x', function(t) t.eq(t.n, 2) t.n = 3 end)\n"
                  "test('y', function(t) t.eq(t.n, 2) end)\n")
        status, out, err = self.nacre("sub/a_test.lua")
        self.assertEqual(status, 1)
        self.assertIn("1 failed, 2 passed", out)
        self.assertIn("  teardown  cpu", out)
        self.assertIn("the end", out)
        self.file("conftest.lua", self.read("conftest.lua").replace(
            "error('the end', 0)", ""))
        self.passing("sub")
        self.file("sub/b.nacre", "> setup == nil\ntrue\n> log\n"
                  '{"scpu", "b"}\n')
        self.file("sub/c.lua", "print(#log)")
        self.file("sub/c.out", "2\n")
        self.assertIn("4 passed", self.passing("sub"))
        self.assertIn("1 passed", self.passing("sub/a_test.lua:4"))
        self.passing("--list")

    def test_fixtures_that_fail(self):
        one = "test('x', function() end)\n"
        self.each_fails("%s", (
            ("setup(function() error 'no' end)\n" + one, "a_test.lua:1: no"),
            ("setup(function(t) t.eq(1, 2) end)\n" + one, "got 1, exp"),
            ("before_each(function() error 'no' end)\n" + one, "1: no"),
            ("after_each(function() error 'no' end)\n" + one, "1: no"),
            ("setup(1)\n" + one, "setup(function): bad argument"),
            ("after_each(function() error 'no' end)\n"
             "test('x', function() error 'yes' end)", "a_test.lua:2: yes")),
            name="a_test.lua")
        self.assertIn("1 skipped (not here: 1)", self.passes(
            "setup(function(t) t.skip 'not here' end)\n" + one,
            name="a_test.lua"))
        for text in ("error 'no'", "setup(function() error 'no' end)",
                     "before_each(function() error 'no' end)",
                     "after_each(function() error 'no' end)",
                     "teardown(function() error 'no' end)"):
            self.file("conftest.lua", text)
            out = self.fails(runner.PASSED)
            self.assertIn("conftest.lua:1: no", out, text)

    def test_modules_of_the_command_line(self):
        self.file("m.lua", "return {n = 7}")
        self.passes("> m.n, k.n\n7\t7\n", "-l", "m", "-lk=m")
        out = self.fails("> m.n\n8\n", "-l", "m", "--root", ".")
        self.assertIn(" --seed 0 -l m --root ", out)
        self.assertIn("module 'nosuch' not found",
                      self.fails(runner.PASSED, "-l", "nosuch"))

    COVERED = """\
#!/usr/bin/env nacre
local M = {}
function M.f(x)
  if x > 2 then
    return "large"
  end
  return "a constant that is longer than forty characters, to be sure", 1e300
end

function M.never()
  local t = {1.5, 7,
    nil}
  return t
end
function M.thread() coroutine.wrap(function()
  M.x = 1
end)() end
%s
M.y = 2
return M
"""

    def test_coverage(self):
        self.file(".nacre-root", "")
        # so many lines apart that Lua notes where they are from time to time
        far = "\n" * 300 + "M.z = 1;" * 200
        self.file("lib/m.lua", self.COVERED % far)
        self.file("lib/other.lua", "return 1\n")
        self.file("tests/a_test.lua", "local m = require 'lib.m'\n"
                  "test('x', function() m.f(1) m.thread() end)\n")
        self.file("tests/s.nacre", "> m = require 'lib.m'\n> m.f(1);\n")
        out = self.passing("--cover", "--lcov", "x.info")
        self.assertIn("\nlib/m.lua      17       4    76%  5, 11-13\n", out)
        self.assertIn("\ntotal          17       4    76%\n", out)
        self.assertNotIn("_test", out)
        info = self.read("x.info").split("\n")
        self.assertEqual(info[:2], ["TN:", "SF:%s/lib/m.lua" % self.tests])
        counts = dict(map(int, line[3:].split(",")) for line in info
                      if line.startswith("DA:"))
        self.assertEqual([n for n in counts if not counts[n]],
                         [5, 11, 12, 13])
        self.assertEqual((counts[7], counts[16], counts[320]), (2, 1, 2))
        self.assertEqual((min(counts), max(counts), counts.get(9)),
                         (2, 320, None))
        out = self.passing("--cover=lib", "tests/s.nacre")
        self.assertIn("\nlib/other.lua       1       1     0%  1\n", out)
        self.file("tests/b_test.lua", "test('x', function() "
                  "require 'lib.m'.f(3) os.exit(0) end)\n")
        status, out, err = self.nacre("--cover")
        self.assertIn("\nlib/m.lua      17       3    82%  11-13\n", out)
        self.assertEqual(self.nacre("--cover=nosuch")[0], 2)

    def test_a_saved_session_passes_elsewhere(self):
        self.project()
        os.remove(os.path.join(self.tests, "tests", "s.nacre"))
        out = self.typed("stats = require 'stats'\nstats.inner {}\n"
                         "print(pcall(stats.refuse))\n"
                         "require 'stats.deep'\n:save --test tests/t.nacre\n")
        self.assertIn("tests/t.nacre: 4 inputs, replayed twice", out)
        self.assertIn("at stats/init.lua:3   return", self.read("tests/t.nacre"))
        self.passing()
        shutil.move(self.tests, self.home + "/a folder that is not the other")
        self.tests = self.home + "/a folder that is not the other"
        self.passing()


if __name__ == "__main__":
    runner.main()
