#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_viewer.py - what takes the whole window: the pager and :view.  Ctrl-L
# draws everything afresh, so that the rows can be read one by one.

import os
import re
import signal

import terminal
from terminal import CTRL_C, CTRL_Z, ENTER, READY, Shell

CTRL_L = "\x0c"
OPENED, CLOSED = "\x1b[?1049h", "\x1b[?1049l"


class Window(Shell):
    def open(self, *args, **options):
        return super().open("-q", *args, **{"NACRE_PAGER": "auto", **options})

    def drawn(self, s, keys=""):
        """The rows of the window after some keys, and the last one."""
        s.send(keys)
        s.settle(0.1)
        s.send(CTRL_L)
        text = s.raw(0.1).rpartition("\x1b[J")[2]
        rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split("\r\n")
        return [row.rstrip("\r ") for row in rows[:-1]], rows[-1].rstrip("\r")

    def rows(self, s, keys=""):
        return self.drawn(s, keys)[0]

    def status(self, s, keys=""):
        return self.drawn(s, keys)[1]

    def leave(self, s, keys="q"):
        """What stands below the window when it is left."""
        s.send(keys)
        s.expect(CLOSED)
        return s.prompt()

    def enter(self, s, command):
        s.send(command + ENTER)
        s.expect(OPENED)


class Pager(Window):
    def test_help(self, s):
        self.enter(s, ":help all")
        rows, status = self.drawn(s)
        self.assertEqual(len(rows), 23)
        self.assertTrue(rows[0].startswith("  :help [NAME]  "), rows[0])
        total = re.match(r"lines 1-23 of (\d+)   q leaves, / searches$",
                         status)
        self.assertTrue(total, status)
        later, status = self.drawn(s, "j")
        self.assertEqual(later[:-1], rows[1:])
        self.assertTrue(status.startswith("lines 2-24 of "), status)
        self.assertEqual(self.rows(s, "k"), rows)
        self.assertEqual(self.rows(s, " ")[0], rows[22])
        self.assertEqual(self.rows(s, "b"), rows)
        n = int(total[1])
        self.assertIn("lines %d-%d of %d" % (n - 22, n, n),
                      self.status(s, "G"))
        self.assertEqual(self.rows(s, "g"), rows)
        for row in rows:
            self.assertLess(len(row), 80)
        self.assertEqual(self.leave(s).strip(), "(%d lines)" % n)
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_search(self, s):
        self.enter(s, ":help all")
        self.assertIn(":save", "".join(self.rows(s, "/:save" + ENTER)))
        self.assertIn(":whos", self.rows(s, "g/:whos" + ENTER)[0])
        self.assertEqual(self.status(s, "/nowhere" + ENTER),
                         "'nowhere' is not there")
        self.assertTrue(self.status(s, "j").startswith("lines"))
        first = self.rows(s, "g/shape" + ENTER)
        self.assertNotEqual(self.rows(s, "n"), first)
        self.assertEqual(self.rows(s, "N"), first)
        # a question is dropped, and its last letter too
        s.send("/sha\x7f\x7f\x7f\x7f")
        self.assertTrue(self.status(s).startswith("lines"))
        s.send("/sha" + CTRL_C)
        self.assertTrue(self.status(s).startswith("lines"))
        self.leave(s, CTRL_C)
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_what_is_paged(self, s):
        """Lists of the shell that are too long, and nothing else."""
        self.assertIn(":quit", s.run(":help quit"))
        self.assertEqual(s.run("for i = 1, 60 do print(i) end").count("\n"),
                         60)
        s.run("for i = 1, 40 do _G['v' .. i] = i end")
        self.enter(s, ":whos")
        self.assertIn("v9", "".join(self.rows(s, "/v9" + ENTER)))
        self.leave(s)
        self.enter(s, "??matrix")
        self.leave(s)
        self.assertEqual(s.run(":whos > ~/whos.txt"), "")
        self.assertEqual(s.run("#shell.lines ':whos' > 40"), "true\n")
        s.run(":set pager off")
        self.assertIn("v9", s.run(":whos"))
        s.run(":set pager auto")
        s.run(":record ~/paged.nacre")
        self.enter(s, ":help all")
        self.leave(s)
        self.assertIn("\n  :whos [PATTERN]", self.read("paged.nacre"))

    def test_other_pager(self, s):
        s.run(":set pager head -2")
        out = s.run(":help all")
        self.assertEqual(out.count("\n"), 3)
        self.assertTrue(out.startswith("  :help [NAME]"), out)
        self.assertIn(" lines)", out)
        s.run(":set pager nosuchpager")
        out = s.run(":help all")
        self.assertIn("nosuchpager gives status 127", out)
        self.assertIn("  :whos [PATTERN]", out)
        s.run(":set pager echo $LESS;")
        self.assertIn("FRX\n", s.run(":help all"))
        self.assertIn("no setting 'paper'", s.run(":set paper x"))

    def test_no_window(self):
        s = self.open(TERM="dumb")
        s.send(":help all" + ENTER)
        out = s.prompt()
        self.assertNotIn("\x1b", out)
        self.assertIn(":whos [PATTERN]", out)

    def test_resized(self, s):
        self.enter(s, ":help all")
        s.child.setwinsize(12, 60)
        rows, status = self.drawn(s)
        self.assertEqual(len(rows), 11)
        self.assertIn("lines 1-11 of", status)
        s.child.setwinsize(30, 80)
        self.assertEqual(len(self.rows(s)), 29)
        self.leave(s)

    def test_terminal_is_restored(self, s):
        self.enter(s, ":help all")
        s.settle()
        os.kill(s.child.pid, signal.SIGTERM)
        s.expect(CLOSED)
        self.assertEqual(s.end(), -signal.SIGTERM)
        s = self.open()
        self.enter(s, ":help all")
        s.settle()
        os.kill(s.child.pid, signal.SIGINT)
        s.expect(CLOSED)
        s.prompt()
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_suspended(self):
        c = self.job_shell(NACRE_PAGER="auto")
        c.send(":help all" + ENTER)
        c.expect("q leaves")
        c.send(CTRL_Z)
        c.expect_exact(CLOSED)
        c.expect_exact("sh$ ")
        c.send("fg" + ENTER)
        c.expect_exact(OPENED)
        c.expect("q leaves")
        c.send("q")
        c.expect(READY)
        c.expect_exact("> ")
        c.send("6 * 7" + ENTER)
        c.expect_exact("42")


class Redirected(Window):
    def test_interrupted(self, s):
        """Ctrl-C in a command whose output goes to a file: the next line is
        shown again."""
        s.run("x = nacre.ones(1000000)")
        for command in (":bench --budget 60 x:exp() > ~/bench.txt",
                        ":watch 0.1 x > ~/watch.txt",
                        ":time while true do end > ~/time.txt"):
            self.timed(s, command + ENTER)
            self.assertEqual(s.run("6 * 7"), "42\n", command)


    def test_options(self, s):
        """An option before the expression is no comment that hides the > ."""
        s.run("x = nacre.ones(3)")
        for command in (":bench --budget 0.01 x:exp()",
                        ":compare --budget 0.01 x:exp() ;; x:log()",
                        ":bench --budget 0.01 x:sum():item() > 2 and 1 or 0"):
            self.assertEqual(s.run(command + " > ~/out.txt"), "", command)
            self.assertRegex(self.read("out.txt"), r"[mun]s\b", command)
            os.remove(os.path.join(self.home, "out.txt"))


class View(Window):
    def setUp(self):
        super().setUp()
        self.s = self.open()
        self.s.run("x = nacre.arange(3000):reshape(100, 30):float();"
                   "x[5][3] = 0/0; x[8][1] = -7.25")

    def test_elements(self):
        s = self.s
        self.enter(s, ":view x")
        rows, status = self.drawn(s)
        self.assertEqual(status, "x[1,1] = 0.0   float32[100x30] cpu   "
                         "q leaves, ? keys")
        self.assertEqual(len(rows), 23)
        self.assertEqual(rows[0].split()[:4], ["1", "2", "3", "4"])
        self.assertEqual([float(v) for v in rows[8].split()[:3]],
                         [8, -7.25, 211])
        self.assertEqual(self.status(s, "jjll\x1b[B\x1b[C")[:16],
                         "x[4,4] = 93.0   ")
        rows, status = self.drawn(s, "G$")
        self.assertTrue(status.startswith("x[100,30] = 2999.0 "), status)
        self.assertEqual(rows[0].split()[-1], "30")
        self.assertEqual(rows[-1].split()[0], "100")
        self.assertTrue(self.status(s, "g0").startswith("x[1,1] "))
        self.assertTrue(self.status(s, ":50,20" + ENTER)
                        .startswith("x[50,20] = 1489.0 "))
        self.assertTrue(self.status(s, ":999,999" + ENTER)
                        .startswith("x[100,30] "))
        self.assertEqual(self.leave(s).strip(), "")
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_sorted(self):
        s = self.s
        self.enter(s, ":view x")
        rows = self.rows(s, "s")
        self.assertEqual([r.split()[0] for r in rows[1:4]], ["8", "1", "2"])
        rows, status = self.drawn(s, "s")
        self.assertIn("sorted by 1 down", status)
        self.assertEqual(rows[-1].split()[0], "1")  # the chosen row stays
        self.assertTrue(status.startswith("x[1,1] = 0.0"), status)
        self.assertNotIn("sorted", self.status(s, "s"))
        # nan is last in both directions
        for direction in "up", "down":
            rows, status = self.drawn(s, "gllsG" if direction == "up" else
                                      "sG")
            self.assertIn("sorted by 3 " + direction, status)
            self.assertTrue(status.startswith("x[5,3] = nan"), status)
        self.leave(s)

    def test_search(self):
        s = self.s
        self.enter(s, ":view x")
        for text, place in (("nan", "x[5,3] = nan"), ("n", "x[5,3]"),
                            ("-7.25", "x[8,1]"), (">= 2990", "x[100,21]"),
                            ("<0", "x[8,1]"), ("45", "x[2,16]")):
            keys = text if text == "n" else "/" + text + ENTER
            self.assertTrue(self.status(s, keys).startswith(place), text)
        self.assertEqual(self.status(s, "/5000" + ENTER), "there is none")
        self.assertIn("a number, nan, or", self.status(s, "/what" + ENTER))
        # in the order that is seen
        self.assertEqual(self.status(s, "g0ss/>100" + ENTER)[:9],
                         "x[8,2] = ")
        self.leave(s)

    def test_forms(self):
        s = self.s
        s.run("y = nacre.tensor{1/3, 100}")
        self.enter(s, ":view y")
        cell = lambda keys="": self.rows(s, keys)[1].split()[1]
        self.assertEqual(cell(), "0.3333")
        self.assertEqual(cell("++"), "0.333333")
        self.assertEqual(cell("---"), "0.333")
        self.assertEqual(cell("e"), "3.333e-01")
        self.assertEqual(cell("e"), "0.33333334")
        self.assertEqual(cell("e"), "0.333")
        self.assertTrue(self.status(s, "j").startswith("y[2] = 100.0 "))
        self.assertIn("a page up, down", "".join(self.rows(s, "?")))
        self.assertEqual(cell("z"), "0.333")
        self.leave(s)

    def test_slices(self):
        s = self.s
        s.run("t = nacre.arange(120):reshape(2, 3, 4, 5)")
        self.enter(s, ":view t")
        self.assertTrue(self.status(s, "]")
                        .startswith("t[1,2,1,1] = 20   int64[2x3x4x5]"))
        self.assertTrue(self.status(s, "{]").startswith("t[2,2,1,1] = 80 "))
        self.assertTrue(self.status(s, "}[[").startswith("t[2,3,1,1] = 100 "))
        self.leave(s)

    def test_each_dimension_can_be_sliced(self):
        s = self.s
        s.run("t = nacre.arange(60):reshape(3, 4, 5)")
        self.enter(s, ":view t")
        status = self.status(s, "}]")
        self.assertTrue(status.startswith("t[1,2,1] = 5 "), status)
        self.assertIn("slice of dim 2", status)
        rows = [row.split() for row in self.rows(s)]
        self.assertEqual(rows[1:4], [["1", "5", "6", "7", "8", "9"],
                                     ["2", "25", "26", "27", "28", "29"],
                                     ["3", "45", "46", "47", "48", "49"]])
        self.assertTrue(self.status(s, "}jl").startswith("t[2,2,1] = 25 "))
        self.assertEqual(self.rows(s)[1].split(), ["1", "0", "5", "10", "15"])
        self.leave(s)

    def test_index_is_taken(self):
        s = self.s
        self.enter(s, ":view x")
        self.assertEqual(self.leave(s, "jjly").strip(), "")
        self.assertEqual(s.run(" + 0.5"), "61.5\n")
        self.enter(s, ":view x * 2")
        self.leave(s, "jy")
        self.assertEqual(s.run(""), "60.0\n")

    def test_what_is_no_matrix(self):
        s = self.s
        self.assertIn("error", s.run(":view nosuch + 1"))
        self.assertEqual(s.run(":view nacre.tensor(3)"),
                         "3  int64[] cpu\n")
        self.assertIn("(empty)", s.run(":view nacre.zeros(0, 3)"))
        self.assertIn(":view needs an expression", s.run(":view"))
        self.enter(s, ":view {1, 2, {a = 3}}")
        self.assertEqual(self.rows(s)[0], "{1, 2, {a = 3}}")
        self.leave(s)
        self.enter(s, ":view x:gt(5)")
        self.assertTrue(self.status(s, "/true" + ENTER)
                        .startswith("x:gt(5)[1,7] = true"))
        self.leave(s)

    def test_colours(self):
        """nan is red, but not under NO_COLOR."""
        for value, red in ("", True), ("1", False):
            s = self.open(NO_COLOR=value)
            s.send(":view nacre.tensor{1, 0/0}" + ENTER)
            s.expect(OPENED)
            self.assertEqual("\x1b[31m" in s.raw(), red)

    def test_without_a_terminal(self):
        s = self.open(TERM="dumb")
        s.send(":view nacre.ones(3)" + ENTER)
        self.assertIn("error: :view needs a terminal", s.prompt())


del Window

if __name__ == "__main__":
    terminal.main()
