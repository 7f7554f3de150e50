#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_shell.py - the shell at a terminal: blocks, pastes, kinds of terminals.
# What it says of a line is tested by the sessions in tests/transcripts/.

import time

import terminal
from terminal import (CTRL_C, DOWN, ENTER, PASTE, PASTED, READY, Shell, TAB,
                      UP)


class Basics(Shell):
    # ---- blocks

    def test_block(self, s):
        """P8: one buffer, indented; end moves out."""
        s.send("for i = 1, 2 do" + ENTER + "if i then" + ENTER +
               "print(i)" + ENTER + "end" + ENTER)
        self.assertIn("\n1\n2\n", s.run("end"))
        self.assertEqual(self.entries(), [
            "for i = 1, 2 do\n  if i then\n    print(i)\n  end\nend\n"])

    def test_block_of_a_command(self, s):
        s.send(":time for i = 1, 2 do" + ENTER + "n = i" + ENTER)
        self.assertRegex(s.run("end"), r"[num]?s")
        self.assertEqual(self.entries(),
                         [":time for i = 1, 2 do\n  n = i\nend\n"])

    def test_word_that_begins_like_end(self, s):
        s.send("function f()" + ENTER + "ended = 1" + ENTER)
        s.run("end")
        self.assertEqual(self.entries(), ["function f()\n  ended = 1\nend\n"])

    def test_blank_lines_in_a_block(self, s):
        s.send("function g(x)" + ENTER * 2 + "local y = 2" + ENTER * 2 +
               "return x + y" + ENTER)
        s.run("end")
        self.assertEqual(s.run("g(3)"), "5\n")
        self.assertIn("\n\n  local y = 2\n\n", self.entries()[0])
        s = self.open(TERM="dumb")
        s.send("for i = 7, 8 do\r\rprint(i)\rend\r")
        self.assertIn("7\n8\n", s.settle())

    def test_unmarked_paste_with_blank_lines(self):
        text = "function g(x)\n\n  local y = 2\n\n  return x + y\nend\n"
        for term, enter in (("xterm", "\r"), ("dumb", "\n")):
            s = self.open(TERM=term)
            s.send(text.replace("\n", enter))
            self.assertNotIn("error", s.settle())
            s.send("g(3) * 10" + enter)
            self.assertIn("\n50\n", s.settle())

    def test_alt_enter(self, s):
        s.send("x = 1\x1b\r")
        s.run("y = 2")
        self.assertEqual(self.entries(), ["x = 1\ny = 2\n"])
        self.assertEqual(s.run("x, y"), "1\t2\n")

    def test_moving_inside_a_block(self, s):
        """P8: Up and Down stay in the block."""
        s.send("x = {" + ENTER + "1," + ENTER + "2" + UP + "0" + DOWN)
        s.run(ENTER + "}")
        self.assertEqual(s.run("x"), "{10, 2}\n")

    def paste(self, text, blocks=1):
        """Pastes a text and presses Enter; gives the session and what each
        block printed."""
        s = self.open()
        s.send(PASTE + text + PASTED)
        return s, [s.run("")] + [s.prompt() for _ in range(blocks - 1)]

    def test_paste(self, s):
        """P9: a paste is one block, which waits for Enter."""
        s.send(PASTE + "local k = 20\nfor i = 1, 2 do\n\n  k = k + 1\nend\n"
               "k\n" + PASTED)
        s.settle(0.2)
        self.assertEqual(self.entries(), [])
        self.assertIn("22\n", s.run(""))
        self.assertEqual(s.run("k"), "22\n")

    def test_paste_with_prompts(self):
        _, out = self.paste("> y = 2\n> z = {y,\n>> 5}\n17\n> z\n", 3)
        self.assertEqual(out[1:], ["z = {y,\n  5}\n", "z\n{2, 5}\n"])
        self.assertEqual(self.entries(), ["y = 2\n", "z = {y,\n5}\n", "z\n"])

    def test_paste_of_several_inputs(self):
        """Lines that are no block together run one by one, with an echo."""
        s, out = self.paste("x = nacre.ones(2)\n  :mul(3)\nx\n"
                            "for i = 1, 2 do\n\n  print(i)\nend\n"
                            "x:sum()\n:seed 3\n", 5)
        self.assertEqual(out[1:4], [
            "x\nfloat32[2] cpu  8 B\n  3.0  3.0\n",
            "for i = 1, 2 do\n\n    print(i)\n  end\n1\n2\n",
            "x:sum()\n6.0  float32[] cpu\n"])
        self.assertTrue(out[4].startswith(":seed 3\n"))
        self.assertEqual(s.run("1"), "1\n")
        self.assertEqual(len(self.entries()), 6)

    def test_paste_that_is_wrong(self):
        """Where a line is wrong by itself, none runs."""
        s, out = self.paste("x = 1\nx[0, :]\nx\n")
        self.assertIn("stdin:2   x[0, :]", out[0])
        self.assertEqual(s.run("x == nil"), "true\n")

    def test_paste_that_looks_like_prompts(self):
        """A line in a text or in brackets may begin with "> "."""
        for text, end in (("s = [[\n> 1\n]]\n#s\n", "#s\n4\n"),
                          ("ok = (5\n> 3)\nok\n", "ok\ntrue\n")):
            s, out = self.paste(text)
            self.assertTrue(out[0].endswith(end), out)
            self.assertEqual(self.entries()[-1], text)
        s.send("a = (2" + ENTER)
        s.settle(0.2)
        s.run("> 1)")
        self.assertEqual(s.run("a"), "true\n")

    def test_a_session_in_the_block_is_no_error(self, s):
        """Its prompts are no operators."""
        for text in ("> x = 3\n> x + 1\n> for i = 1, 2 do\n>> print(i)\n>> end",
                     "> f = 1\n1\n> local k = 2\n> return k"):
            s.send(PASTE + text + PASTED)
            self.assertNotIn("unexpected", s.settle(1.2))
            s.drop()
        s.send(PASTE + "x = 3\nfor = 1" + PASTED)
        s.sees("line 2: <name> expected near '='")

    def test_paste_of_a_command_alone(self):
        """A command that may take Lua needs none."""
        _, out = self.paste("x = 1\n:debug\nx + 41\n", 3)
        self.assertEqual(out[2], "x + 41\n42\n")
        self.assertEqual(self.entries(), ["x = 1\n", ":debug\n", "x + 41\n"])

    def test_paste_of_indented_lines(self):
        """As code is in a page."""
        _, out = self.paste("    v = 40\n    v + 1\n    v + 2\n", 3)
        self.assertEqual(out[1:], ["v + 1\n41\n", "v + 2\n42\n"])

    def test_paste_is_dropped_by_an_interrupt(self, s):
        s.send(PASTE + "> x = 1\n> repeat until false\n> x = 2\n" + PASTED)
        s.run("")
        time.sleep(0.3)
        s.send(CTRL_C)
        self.assertIn("interrupted", s.prompt())
        self.assertEqual(s.run("x"), "1\n")

    # ---- terminals

    def test_forty_columns(self):
        s = self.open(columns=40)
        self.assertRegex(s.run("1000000000000 + 2000000000000 + "
                               "3000000000000 + 4"),
                         r"000 \+ 4\n6000000000004\n$")
        s.send("nacre.ran" + TAB)
        for row in s.settle(0.3).split("\n"):
            self.assertLess(len(row), 41)

    def test_doctor_knows_the_terminal(self):
        """Its output goes through a file on its way there."""
        for columns in (61, 132):
            s = self.open(columns=columns)
            self.assertIn("terminal  %d columns" % columns, s.run(":doctor"))

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
        s.quit()
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

    def test_output_without_newline(self, s):
        """P12: the prompt has a line of its own."""
        s.send("io.write 'abc'" + ENTER)
        s.expect(terminal.PASTE_OFF + "abc% ")
        s.prompt()
        self.assertEqual(s.run("1"), "1\n")

    def test_own_prompt(self, s):
        s.send("_PROMPT = function() return 'hey> ' end" + ENTER)
        s.child.expect_exact("hey> ")

    def test_no_inputrc_surprise(self):
        s = self.open(INPUTRC=self.file(
            "inputrc", '"\\e[A": history-search-backward\n'
            '$if nacre\n"\\C-o": nacre-newline\n$endif\n'))
        s.send("x = 1\x0f")
        s.run("y = 2")
        self.assertEqual(self.entries(), ["x = 1\ny = 2\n"])


if __name__ == "__main__":
    terminal.main()
