#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_debug.py - the stack of an error at a terminal: the debugger's prompt,
# the keys that leave it, a script that stopped.

import time

import terminal
from terminal import CTRL_D, ENTER, READY, Shell


class Debug(Shell):
    def stopped(self):
        """A session in the debugger, after an error."""
        s = self.open()
        s.run("function inner(t) local k = 7 error 'stop' end")
        s.run("function outer(t) inner(t) return 1 end")
        self.assertIn("stop", s.run("outer(nacre.ones(2))"))
        s.send(":debug" + ENTER)
        s.child.expect("debug> ")
        return s

    def test_end_of_input_leaves_the_debugger_alone(self):
        s = self.stopped()
        s.child.expect(READY + "|$")
        time.sleep(0.2)
        s.send(CTRL_D)
        s.prompt()
        for _ in range(2):  # no blank line comes before what is printed
            self.assertEqual("42\n", s.run("40 + 2"))
        self.assertEqual(s.quit(), 0)

    def test_interrupt_in_the_debugger(self):
        s = self.stopped()
        out = self.timed(s, "while true do end" + ENTER)
        self.assertIn("interrupted", out)
        self.assertRegex(s.run("locals"), r"k +7")

    def test_words_of_other_debuggers(self):
        s = self.stopped()
        self.assertEqual(s.run("list"), "*    1  function inner(t) local k = 7 "
                         "error 'stop' end\n")
        self.assertIn("outer", s.run("up"))
        self.assertIn("*    1  function outer(t)", s.run("list"))
        for text in ("break inner", "break", "step", "next", "continue"):
            self.assertIn("nothing can continue", s.run(text), text)
        s.run("step = 5")
        self.assertEqual(s.run("step"), "5\n")
        self.assertIn("function", s.run("p next"))
        s.run("q")
        path = self.file("m.lua", "".join(
            "local v%d = %d\n" % (i, i) for i in range(9)) +
            "error 'late'\nlocal after\n\n\n")
        s.run(":run " + path)
        s.send(":debug" + ENTER)
        s.child.expect("debug> ")
        out = s.run("list")
        self.assertTrue(out.startswith("     5  local v4 = 4\n"), out)
        self.assertTrue(out.endswith("*   10  error 'late'\n    11  local after"
                                     "\n"), out)

    def test_tail_calls(self, s):
        """A frame that is gone is said to be."""
        s.run("function inner(t) error 'stop' end")
        s.run("function outer(t) return inner(t) end")
        s.run("outer(1)")
        out = s.run(":debug where")
        self.assertRegex(out, r"inner at stdin:1 .*  \(by a tail call\)\n")
        self.assertRegex(out, r"the prompt at stdin:1   outer\(1\)\n")

    def test_script(self):
        s = self.open("-i", self.file(
            "train.lua", "function step(x)\n  local bad = x:view(5)\n"
            "  return bad\nend\nx = nacre.ones(3)\nlocal y = step(x)\n"))
        s.send(":debug locals" + ENTER)
        self.assertRegex(s.prompt(), r"x +float32\[3\] cpu")
        self.assertIn("step at train.lua:2",
                      s.run(":debug where").replace(self.home + "/", ""))

    def test_interrupt_of_a_watched_line(self, s):
        out = self.timed(s, ":profile while true do nacre.ones(10) end" +
                         ENTER)
        self.assertIn("interrupted", out)
        self.assertRegex(s.run(":trace nacre.ones(2)"), "1 operation,")
        s.run("y = nacre.ones(3) + 1")
        self.assertEqual(s.run("y:sum():item()"), "6.0\n")

    def test_tests_stop_in_the_debugger(self):
        self.file("a_test.lua", """\
local function check(t, n)
  local twice = 2 * n
  t.eq(twice, 5)
end
test("first", function(t) check(t, 3) end)
test("skipped", function(t) t.skip "now" end)
test("second", function(t) local z z.x = 1 end)
test("third", function(t) end)
""")
        self.file("b.nacre", "> y = 5\n> y + 1\n7\n> y\n5\n")
        self.file("c_test.lua", "test('x', function(t) t.eq(1, 2) end)\n"
                  "test('y', function(t) end)\n")
        s = self.open("--test", "--pdb", self.home)
        self.assertTrue(s.child.before.endswith("debug"))
        self.assertRegex(s.run("locals"), r"n +3\n  twice +6\n")
        self.assertIn("test at", s.run("up"))
        self.assertIn("interrupted", self.timed(s, "while true do end" + ENTER))
        self.assertIn("second  cpu", s.run("q"))
        s.send(CTRL_D)
        self.assertIn("- 7\n+ 6\n", s.prompt())
        self.assertEqual(s.run("y = y + 3"), "")
        s.send(CTRL_D)
        self.assertIn("- 5\n+ 8\n", s.prompt())
        s.send(CTRL_D)
        self.assertIn("got 1, expected 2", s.prompt())
        # the runner has its terminal again
        self.assertEqual(s.end("os.exit(4)" + ENTER), 1)
        out = terminal.clean(s.child.before)
        self.assertIn("the program ended with status 4", out)
        self.assertIn("-   5  5\n+   5  8 ", out)
        self.assertIn("4 failed, 2 passed, 1 skipped", out)


if __name__ == "__main__":
    terminal.main()
