#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_project.py - tests of a library of one's own: where they find it, and
# that they pass in another checkout.
#
#   test_project.py NACRE [unittest options]

import os
import shutil
import subprocess
import sys
import unittest

import test_runner as runner

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
error: module 'nosuch' not found:
...
	no file 'tests/nosuch.lua'
	no file 'tests/nosuch/init.lua'
	no file 'nosuch.lua'
	no file 'nosuch/init.lua'
...
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
        self.file("tests/h.nacre", "--: needs file /no/such\n> 1\n2\n")
        self.assertIn("needs file /no/such", self.passing("tests/h.nacre"))

    def test_a_saved_session_passes_elsewhere(self):
        self.project()
        os.remove(os.path.join(self.tests, "tests", "s.nacre"))
        typed = ("stats = require 'stats'\nstats.inner {}\n"
                 "print(pcall(stats.refuse))\nrequire 'stats.deep'\n:save --test tests/t.nacre\n")
        p = subprocess.run([runner.NACRE, "-E", "-q", "-i"], input=typed,
                           env=self.env(), cwd=self.tests, encoding="utf-8",
                           stdout=subprocess.PIPE, timeout=60)
        self.assertIn("tests/t.nacre: 4 inputs, replayed twice", p.stdout)
        self.assertIn("at stats/init.lua:3   return", self.read("tests/t.nacre"))
        self.passing()
        shutil.move(self.tests, self.home + "/a folder that is not the other")
        self.tests = self.home + "/a folder that is not the other"
        self.passing()


if __name__ == "__main__":
    runner.NACRE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
