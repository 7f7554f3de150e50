#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_shell.py - the shell through a pseudo-terminal, as a user meets it:
# results, blocks, kinds of terminals.
#
#   test_shell.py NACRE [unittest options]

import os
import time

import pexpect

import terminal
from terminal import (CTRL_C, CTRL_D, DOWN, ENTER, PASTE, PASTED, READY,
                      Shell, TAB, UP)


class Basics(Shell):
    # ---- results

    def test_values(self):
        s = self.open()
        self.assertEqual(s.run("1+1"), "2\n")
        self.assertEqual(s.run("nil"), "nil\n")
        self.assertEqual(s.run(r'"a\n\"b\""'), '"a\\n\\"b\\""\n')
        self.assertEqual(s.run('"\\27[31m"'), '"\\x1B[31m"\n')
        self.assertEqual(s.run("x = 5"), "")
        self.assertEqual(s.run("x"), "5\n")
        self.assertEqual(s.run("x;"), "")
        self.assertEqual(s.run("x -- no; result"), "5\n")
        self.assertEqual(s.run("=x"), "5\n")
        self.assertEqual(s.run("1, nil, 'a'"), '1\tnil\t"a"\n')
        self.assertEqual(s.run("{3, b=1, a={2}}"), "{3, a = {2}, b = 1}\n")
        self.assertEqual(s.run("t = {} t.t = t; t"), "{t = <cycle>}\n")
        self.assertIn("... 70 more", s.run(
            "(function() local r = {} for i=1,100 do r[i]=i end "
            "return r end)()"))

    def test_last_results(self):
        s = self.open()
        for n in (1, 2, 3):
            s.run(str(n))
        self.assertEqual(s.run("_, __, ___, ans"), "3\t2\t1\t3\n")
        s.run("_ = 'mine'")
        s.run("7")
        self.assertEqual(s.run("_;"), "")
        self.assertEqual(s.run("_"), '"mine"\n')

    def test_tail_expression(self):
        s = self.open()
        self.assertEqual(s.run("a=1; a"), "1\n")
        self.assertEqual(s.run("for i=1,2 do end a"), "1\n")
        self.assertEqual(s.run("s = 'a;b'; s"), '"a;b"\n')
        self.assertEqual(s.run("q=1 q"), "1\n")

    def test_locals_are_kept(self):
        """P14"""
        s = self.open()
        self.assertIn("kept as a session variable", s.run("local x = 3; x*2"))
        self.assertEqual(s.run("x"), "3\n")
        self.assertIn("kept", s.run("local y <const> = 4"))
        self.assertEqual(s.run("y"), "4\n")
        s.run("local z = 6 error 'late'")
        self.assertEqual(s.run("z"), "6\n")
        s.run("local w = 8 return w")
        self.assertEqual(s.run("w"), "8\n")
        s.run("local function twice(n) local deep = 2 return n * deep end")
        self.assertEqual(s.run("twice(4), deep"), "8\tnil\n")
        s.run("do local scratch = 1 end")
        self.assertEqual(s.run("scratch"), "nil\n")
        self.assertEqual(s.run("__keep"), "nil\n")

    def test_inner_locals_are_not_kept_after_an_error(self):
        s = self.open()
        s.run("local out = 1 for deep = 1, 2 do error 'x' end")
        self.assertEqual(s.run("out, deep"), "1\tnil\n")

    def test_errors_come_at_once(self):
        s = self.open()
        self.assertIn("error", s.run("'abc"))
        self.assertIn("error", s.run("x = = 3"))
        self.assertIn("error", s.run("nosuch()"))
        self.assertEqual(s.run("1"), "1\n")

    def test_stack_overflow(self):
        s = self.open()
        out = s.run("function f() return 1 + f() end f()")
        self.assertIn("stack overflow", out)
        self.assertLess(out.count("\n"), 40)
        self.assertEqual(s.run("1"), "1\n")

    # ---- blocks

    def test_block(self):
        """P8: one buffer, indented; end moves out."""
        s = self.open()
        s.send("for i = 1, 2 do" + ENTER + "if i then" + ENTER +
               "print(i)" + ENTER + "end" + ENTER)
        self.assertIn("\n1\n2\n", s.run("end"))
        self.assertEqual(self.entries(), [
            "for i = 1, 2 do\n  if i then\n    print(i)\n  end\nend\n"])

    def test_block_of_a_command(self):
        s = self.open()
        s.send(":time for i = 1, 2 do" + ENTER + "n = i" + ENTER)
        self.assertRegex(s.run("end"), r"[num]?s")
        self.assertEqual(self.entries(),
                         [":time for i = 1, 2 do\n  n = i\nend\n"])

    def test_word_that_begins_like_end(self):
        s = self.open()
        s.send("function f()" + ENTER + "ended = 1" + ENTER)
        s.run("end")
        self.assertEqual(self.entries(), ["function f()\n  ended = 1\nend\n"])

    def test_empty_line_submits(self):
        s = self.open()
        s.send("for i = 1, 2 do" + ENTER)
        s.settle(0.1)
        self.assertIn("error", s.run(""))
        self.assertEqual(s.run("2"), "2\n")

    def test_empty_line_is_explained_and_kept(self):
        s = self.open()
        s.send("function g(x)" + ENTER + "local y = 2" + ENTER)
        out = s.run("")
        self.assertIn("'end' expected", out)
        self.assertIn("(a blank line ends the input", out)
        s.run(UP + "return x + y end")
        self.assertEqual(s.run("g(3)"), "5\n")

    def test_keys_are_named_only_where_they_are(self):
        s = self.open(TERM="dumb")
        s.send("for i = 1, 2 do\r\r")
        out = s.settle()
        self.assertIn("(a blank line ends the input)", out)
        self.assertNotIn("Alt-Enter", out)

    def test_unmarked_paste_with_blank_lines(self):
        text = "function g(x)\n\n  local y = 2\n\n  return x + y\nend\n"
        for term, enter in (("xterm", "\r"), ("dumb", "\n")):
            s = self.open(TERM=term)
            s.send(text.replace("\n", enter))
            self.assertNotIn("error", s.settle())
            s.send("g(3) * 10" + enter)
            self.assertIn("\n50\n", s.settle())

    def test_alt_enter(self):
        s = self.open()
        s.send("x = 1\x1b\r")
        s.run("y = 2")
        self.assertEqual(self.entries(), ["x = 1\ny = 2\n"])
        self.assertEqual(s.run("x, y"), "1\t2\n")

    def test_moving_inside_a_block(self):
        """P8: Up and Down stay in the block."""
        s = self.open()
        s.send("x = {" + ENTER + "1," + ENTER + "2" + UP + "0" + DOWN)
        s.run(ENTER + "}")
        self.assertEqual(s.run("x"), "{10, 2}\n")

    def test_paste(self):
        """P9: a paste is one block, which waits for Enter."""
        s = self.open()
        s.send(PASTE + "local k = 20\nfor i = 1, 2 do\n\n  k = k + 1\nend\n"
               "k\n" + PASTED)
        s.settle(0.2)
        self.assertFalse(os.path.exists(self.history()) and self.entries())
        self.assertIn("22\n", s.run(""))
        self.assertEqual(s.run("k"), "22\n")

    def test_paste_with_prompts(self):
        s = self.open()
        s.send(PASTE + "> y = 2\n> z = {y,\n>> 5}\n17\n> z\n" + PASTED)
        s.run("")
        self.assertEqual(s.prompt(), "z = {y,\n5}\n")
        self.assertEqual(s.prompt(), "z\n{2, 5}\n")
        self.assertEqual(self.entries(), ["y = 2\n", "z = {y,\n5}\n", "z\n"])

    def test_paste_of_several_inputs(self):
        """Lines that are no block together run one by one, with an echo."""
        s = self.open()
        s.send(PASTE + "x = nacre.ones(2)\n  :mul(3)\nx\nfor i = 1, 2 do\n\n"
               "  print(i)\nend\nx:sum()\n:seed 3\n" + PASTED)
        s.run("")
        self.assertEqual(s.prompt(), "x\nfloat32[2] cpu  8 B\n  3.0  3.0\n")
        self.assertEqual(s.prompt(),
                         "for i = 1, 2 do\n\n  print(i)\nend\n1\n2\n")
        self.assertEqual(s.prompt(), "x:sum()\n6.0  float32[] cpu\n")
        self.assertTrue(s.prompt().startswith(":seed 3\n"))
        self.assertEqual(s.run("1"), "1\n")
        self.assertEqual(len(self.entries()), 6)

    def test_paste_that_is_wrong(self):
        """Where a line is wrong by itself, none runs."""
        s = self.open()
        s.send(PASTE + "x = 1\nx[0, :]\nx\n" + PASTED)
        self.assertIn("stdin:2   x[0, :]", s.run(""))
        self.assertEqual(s.run("x == nil"), "true\n")

    def test_paste_of_text_with_prompts_in_it(self):
        s = self.open()
        s.send(PASTE + "s = [[\n> 1\n]]\n#s\n" + PASTED)
        self.assertTrue(s.run("").endswith("#s\n4\n"))
        self.assertEqual(self.entries(), ["s = [[\n> 1\n]]\n#s\n"])

    def test_paste_of_a_comparison(self):
        """A line in brackets may begin with "> "."""
        s = self.open()
        s.send(PASTE + "ok = (5\n> 3)\nok\n" + PASTED)
        self.assertTrue(s.run("").endswith("ok\ntrue\n"))
        self.assertEqual(self.entries(), ["ok = (5\n> 3)\nok\n"])
        s.send("a = (2" + ENTER)
        s.settle(0.2)
        s.run("> 1)")
        self.assertEqual(s.run("a"), "true\n")

    def test_paste_of_a_command_alone(self):
        """A command that may take Lua needs none."""
        s = self.open()
        s.send(PASTE + "x = 1\n:debug\nx + 41\n" + PASTED)
        s.run("")
        s.prompt()
        self.assertEqual(s.prompt(), "x + 41\n42\n")
        self.assertEqual(self.entries(), ["x = 1\n", ":debug\n", "x + 41\n"])

    def test_paste_of_indented_lines(self):
        """As code is in a page."""
        s = self.open()
        s.send(PASTE + "    v = 40\n    v + 1\n    v + 2\n" + PASTED)
        s.run("")
        self.assertEqual(s.prompt(), "v + 1\n41\n")
        self.assertEqual(s.prompt(), "v + 2\n42\n")

    def test_paste_is_dropped_by_an_interrupt(self):
        s = self.open()
        s.send(PASTE + "> x = 1\n> repeat until false\n> x = 2\n" + PASTED)
        s.run("")
        time.sleep(0.3)
        s.send(CTRL_C)
        self.assertIn("interrupted", s.prompt())
        self.assertEqual(s.run("x"), "1\n")

    # ---- terminals

    def test_forty_columns(self):
        s = self.open(columns=40)
        self.assertEqual(s.run("1000000000000 + 2000000000000 + "
                               "3000000000000 + 4"), "6000000000004\n")
        s.send("nacre.ran" + TAB + TAB)
        for row in s.settle(0.3).split("\n"):
            self.assertLess(len(row), 41)

    def test_dumb(self):
        s = self.open(TERM="dumb")
        s.send("for i = 1, 2 do\rprint(i)\rend\r")
        out = s.settle(0.4)
        self.assertIn("1\n2\n> ", out)
        s.send("half")
        s.settle(0.1)
        s.send(CTRL_C)
        s.settle(0.2)
        s.send("1+1\r")
        out = s.settle(0.3)
        self.assertIn("\n2\n", out)
        s.send("while true do end\r")
        time.sleep(0.2)
        s.send(CTRL_C)
        self.assertIn("interrupted", s.settle(0.4))
        self.assertEqual(s.quit(), 0)

    def test_dumb_has_no_escapes(self):
        """P9, P13"""
        s = self.open(TERM="dumb", NO_COLOR="")
        s.send("nil\rerror 'x'\rio.write 'y'\r")
        s.send(CTRL_D)
        s.child.expect(pexpect.EOF)
        self.assertIn("error", s.child.before)
        self.assertNotIn("\x1b", s.child.before)

    def test_colour(self):
        s = self.open(NO_COLOR="")
        s.send("error 'x'" + ENTER)
        s.child.expect(READY)
        s.child.expect_exact("\x1b[31m> ")
        s = self.open()
        s.send("error 'x'" + ENTER)
        s.child.expect(READY)
        self.assertNotRegex(s.child.before, "\x1b\\[[0-9;]*m")

    def test_output_without_newline(self):
        """P12: the prompt has a line of its own."""
        s = self.open()
        s.send("io.write 'abc'" + ENTER)
        s.child.expect("[\r\n]abc")
        s.child.expect_exact("% ")
        s.prompt()
        self.assertEqual(s.run("1"), "1\n")

    def test_own_prompt(self):
        s = self.open()
        s.send("_PROMPT = function() return 'hey> ' end" + ENTER)
        s.child.expect_exact("hey> ")

    def test_no_inputrc_surprise(self):
        rc = os.path.join(self.home, "inputrc")
        with open(rc, "w") as f:
            f.write('"\\e[A": history-search-backward\n'
                    '$if nacre\n"\\C-o": nacre-newline\n$endif\n')
        s = self.open(INPUTRC=rc)
        s.send("x = 1\x0f")
        s.run("y = 2")
        self.assertEqual(self.entries(), ["x = 1\ny = 2\n"])


if __name__ == "__main__":
    terminal.main()
