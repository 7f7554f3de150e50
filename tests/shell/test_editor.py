#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_editor.py - what the prompt shows while a block is edited: cells, their
# attributes, the cursor.

import random
import signal
import time

import terminal
from terminal import (CTRL_C, CTRL_R, CTRL_Z, DOWN, ENTER, PASTE,
                      PASTED, Shell, TAB, UP)

LEFT, RIGHT, END, HOME = "\x1b[D", "\x1b[C", "\x1b[F", "\x01"
WORD, BACKTAB, CTRL_G, CTRL_L = "\x1b[1;5C", "\x1b[Z", "\x07", "\x0c"
CTRL_U, UNDO, RUBOUT = "\x15", "\x1f", "\x7f"
KEYWORD, STRING, NUMBER, COMMENT, COMMAND = "35", "32", "36", "2", "36"
TENSOR, UNKNOWN, WRONG, SUGGESTED, CHOSEN = "1", "4", "4;31", "2", "7"
MATCH = {"1;4", "1;4;35", "1;4;36"}


def block(n):
    return "function f()\n" + "".join(
        "  v%d = x + %d\n" % (i, i) for i in range(n)) + "end"


class Editor(Shell):
    def edit(self, *args, rows=24, columns=80, history=(), **variables):
        """A session in colours whose history has these blocks."""
        self.file(self.HISTORY, "".join(
            "#%d\n%s\n" % (i + 1, text) for i, text in enumerate(history)))
        s = self.open("-q", "--no-rc", *args, rows=rows, columns=columns,
                      **{"NO_COLOR": "", "TERM": "xterm-256color",
                         **variables})
        s.press("")
        return s

    def rows(self, s, *lines):
        """These are the last rows of the screen, apart from blank ones and
        from what is said about an error."""
        have = s.screen.text().split("\n")
        if have[-1] != lines[-1] and s.screen.look_at(len(have) - 1, 2) == "31":
            del have[-1]
        self.assertEqual(have[-len(lines):], list(lines), s.screen.text())

    def looks(self, s, text, look):
        """The row of the cursor, or of the prompt, has this text, which looks
        so."""
        for y in range(s.screen.rows):
            x = s.screen.line(y).find(text)
            if x >= 0:
                got = {s.screen.look_at(y, x + i) for i in range(len(text))
                       if text[i] != " "}
                return self.assertEqual(got, {look}, text)
        self.fail("%r is not in\n%s" % (text, s.screen.text()))

    def matched(self, s):
        """The columns of the cursor's row that are marked as a pair."""
        y = s.screen.cursor[0]
        return [x for x in range(s.screen.columns)
                if s.screen.look_at(y, x) in MATCH]

    # ---- 1: colours

    def test_roles(self):
        s = self.edit()
        s.press("t = nacre.ones(2)" + ENTER)
        s.press("local y = t + 12 .. 'str' + nosuch(y) -- no")
        for text, look in (("local", KEYWORD), ("y =", ""), ("t +", ""),
                           ("12", NUMBER), ("'str'", STRING),
                           ("nosuch", UNKNOWN), ("-- no", COMMENT)):
            if text == "t +":
                y, x = s.screen.cursor
                self.assertEqual(s.screen.look_at(y, 12), TENSOR)
            else:
                self.looks(s, text, look)
        self.assertEqual(s.screen.cursor[1], 45)

    def test_names(self):
        s = self.edit()
        s.press("for k, v in pairs(t0) do local w = k end")
        self.looks(s, "t0", UNKNOWN)
        for name in ("k, v", "w =", "pairs"):
            self.looks(s, name, "")
        s.press(CTRL_U + "function g(a, b) return a.nosuch, b:no() end")
        self.looks(s, "g(a, b)", "")
        self.looks(s, "a.nosuch, b:no()", "")
        s.press(CTRL_U + "u1, u2 = 1, {field = u3}")
        self.looks(s, "u1, u2", "")
        self.looks(s, "field", "")
        self.looks(s, "u3", UNKNOWN)
        s.press(CTRL_U + "unfinished")
        self.looks(s, "unfinished", "")
        s.press(" ")
        self.looks(s, "unfinished", UNKNOWN)

    def test_commands(self):
        s = self.edit()
        s.press(":set color nosuch 12")
        self.looks(s, ":set", COMMAND)
        self.looks(s, "color nosuch 12", "")
        s.press(CTRL_U + ":time nosuch + 12 ")
        self.looks(s, ":time", COMMAND)
        self.looks(s, "nosuch", UNKNOWN)
        self.looks(s, "12", NUMBER)
        s.press(CTRL_U + "!ls nosuch 12 ")
        self.looks(s, "!", COMMAND)
        self.looks(s, "ls nosuch 12", "")

    def test_editing_and_undo(self):
        s = self.edit()
        s.press("print('a')" + HOME + "ab" + RIGHT * 2 + RUBOUT)
        self.rows(s, "> abpint('a')")
        self.assertEqual(s.screen.cursor[1], 5)
        s.press(UNDO * 2)
        self.rows(s, "> print('a')")

    # ---- 2: brackets

    def test_pairs(self):
        s = self.edit()
        s.press("f(a[1], {2})")
        self.assertEqual(self.matched(s), [3, 13])
        s.press(LEFT * 7)
        self.assertEqual(self.matched(s), [5, 7])
        s.press(CTRL_U + "\x0bif x then end")
        self.assertEqual(self.matched(s), [2, 3, 12, 13, 14])
        s.press(CTRL_U + "repeat f() until x" + LEFT * 3)
        self.assertEqual(self.matched(s), [*range(2, 8), *range(13, 18)])
        s.press("\x0b" + CTRL_U + "while x do y() end")
        self.assertEqual(self.matched(s), [*range(2, 7), *range(17, 20)])

    def test_wrong_brackets(self):
        s = self.edit()
        s.press("f(1))")
        self.assertEqual(s.screen.look_at(s.screen.cursor[0], 6), WRONG)
        s.press(CTRL_U + "g(2]")
        row = s.screen.cursor[0]
        self.assertEqual([s.screen.look_at(row, x) for x in (3, 5)],
                         [WRONG] * 2)
        s.press(CTRL_U + "f(g(1) end ")
        self.looks(s, "end", WRONG)

    def test_unclosed(self):
        s = self.edit()
        s.press("f(g(1)")
        row = s.screen.cursor[0]
        self.assertNotEqual(s.screen.look_at(row, 3), WRONG)
        s.press(LEFT * 4)
        self.assertEqual(s.screen.look_at(row, 3), WRONG)
        s.press(END)
        self.assertNotEqual(s.screen.look_at(row, 3), WRONG)

    # ---- 3: suggestions

    HISTORY_OF_W = ("weights = nacre.ones(3)", "print(1)", "while x do y() end")

    def test_suggestion(self):
        s = self.edit(history=self.HISTORY_OF_W)
        s.press("w")
        self.rows(s, "> while x do y() end")
        self.assertEqual(s.screen.cursor[1], 3)
        self.looks(s, "hile x do y() end", SUGGESTED)
        s.press("e")
        self.rows(s, "> weights = nacre.ones(3)")
        for key, column in ((WORD, 9), ("\x1bf", 17), (END, 25)):
            s.press(key)
            self.assertEqual(s.screen.cursor[1], column)
        s.press(UNDO)
        self.assertEqual(s.screen.cursor[1], 17)
        for key in (RIGHT, "\x06", "\x05"):
            s.press(CTRL_U + "p")
            self.rows(s, "> print(1)")
            s.press(key)
            self.assertEqual(s.screen.cursor[1], 10)

    def test_own_keys(self):
        s = self.edit(history=self.HISTORY_OF_W, INPUTRC=self.file(
            "inputrc", '"\\C-t": nacre-accept\n"\\C-y": nacre-accept-word\n'
            '"\\C-f": "f"\n"\\C-l": "l"\n'))
        s.press("we\x19")
        self.assertEqual(s.screen.cursor[1], 9)
        s.press("\x14")
        self.assertEqual(s.screen.cursor[1], 25)
        s.press(CTRL_U + "p\x06" + CTRL_L)  # as bound there
        self.rows(s, "> pfl")

    def test_suggestion_is_only_seen(self):
        s = self.edit(history=self.HISTORY_OF_W)
        s.press("p")
        s.press(ENTER)
        self.assertIn("> p\n", s.screen.text())
        self.assertEqual(self.entries()[-1], "p\n")
        s.press("q")
        self.rows(s, "> q")
        s.press(CTRL_U + "w" + LEFT)  # not at the end
        self.rows(s, "> w")

    def test_suggestions_off(self):
        s = self.edit(history=self.HISTORY_OF_W)
        s.press(":set suggestions off" + ENTER)
        s.press("w")
        self.rows(s, "> w")
        s.press(RIGHT)
        self.assertEqual(s.screen.cursor[1], 3)
        s.press(CTRL_C)
        s.press(":set suggestions on" + ENTER)
        s.press("pri")
        self.rows(s, "> print(1)")

    def test_corrected_line(self):
        """The empty prompt shows the line as an error corrects it: Right takes
        it, Enter runs it."""
        s = self.edit(history=("y = 1",))
        s.run("x, w = nacre.ones(2, 3), nacre.ones(5, 3)")
        for typed, line in (
                ("y = x:mm(w)", "y = x:mm(w:t())"),
                ("print(x.sum(1)[2])", "print(x:sum(2)[2])"),
                ("n = [1, 2]", "n = {1, 2}"), ("whos", ":whos"),
                ("y = x:summ()", "y = x:sum()"),
                ("x:sum{axis=1}", "x:sum{dim=1}"),
                ("q = x:softmx(1) + 1", "q = x:softmax(1) + 1"),
                ("nacer.ones(2)", "nacre.ones(2)")):
            s.press(typed + ENTER)
            y = s.screen.cursor[0]
            self.assertEqual(s.screen.line(y), "> " + line)
            self.assertEqual(s.screen.look_at(y, 2), SUGGESTED)
            s.press(RIGHT)
            self.assertEqual(s.screen.cursor, (y, len(line) + 2))
            row = s.screen.place()
            s.press(ENTER)
            self.assertNotIn("error", s.screen.since(row))

    def test_a_corrected_line_begins_a_block(self):
        s = self.edit()
        s.press("for i in range(3):" + ENTER + ENTER)
        s.press(RIGHT + ENTER)
        self.rows(s, "> for i = 1, 3 do")
        s.press("print(i)" + ENTER + "end" + ENTER)
        self.rows(s, "1", "2", "3", ">")

    def test_a_block_of_python(self):
        """It waits for its body, which is indented, and a blank line ends
        it."""
        s = self.edit()
        s.press("for v in range(5):" + ENTER + "if v > 3:" + ENTER +
                "print(v, 'big')" + ENTER)
        self.rows(s, "> for v in range(5):", "      if v > 3:",
                  "          print(v, 'big')")
        s.press(RUBOUT * 8 + "    else:" + ENTER + "pass" + ENTER + ENTER)
        s.press(RIGHT + ENTER)
        self.rows(s, "4\tbig", ">")

    def test_python_indented_by_hand(self):
        """The blanks that are typed count, not those that stand there."""
        s = self.edit()
        s.press("n = 0" + ENTER + "for v in range(3):" + ENTER +
                "    if v > 1:" + ENTER + "        n += 10" + ENTER +
                "    n += v" + ENTER)
        self.rows(s, "> for v in range(3):", "      if v > 1:",
                  "          n += 10", "      n += v")
        s.press(ENTER + RIGHT + ENTER + "n" + ENTER)
        self.rows(s, "13", ">")

    def test_a_pasted_session_of_python(self):
        s = self.edit()
        s.press(PASTE + ">>> total = 40\r>>> total\r40\r>>> n = 2\r" + PASTED)
        self.rows(s, "> total = 40", "  total", "  n = 2")
        s.press(ENTER + "n + total" + ENTER)
        self.rows(s, "42", ">")
        s.press(PASTE + ">>> m = [1, 2]\r>>> for v in m:\r...     print(v)\r"
                "... \r1\r2\r" + PASTED + ENTER + RIGHT + ENTER)
        self.rows(s, "1", "2", ">")

    def test_a_corrected_line_is_only_seen(self):
        s = self.edit(history=("y = 1",))
        note = "Right takes the corrected line"
        for keys in (ENTER, CTRL_C):
            s.press("n += 1" + ENTER)
            self.rows(s, "> n = n + 1", "  " + note)
            s.press(keys)
            self.rows(s, ">")
        s.press("n += 1" + ENTER + "y")
        self.rows(s, "> y = 1")
        s.press(RUBOUT + "n =")  # as far as it is the same
        self.rows(s, "> n = n + 1")
        s.press(END)
        self.rows(s, "> n = n + 1")
        s.press(CTRL_U + "y" + ENTER + "error 'y'" + ENTER)
        self.rows(s, ">")
        s.press("n += 1" + ENTER + RIGHT + ENTER + "n += 1" + ENTER)
        self.assertNotIn(note, s.screen.text().partition("error: y")[2])
        s.press(CTRL_C + ":set suggestions off" + ENTER + "n += 1" + ENTER)
        self.rows(s, ">")

    def test_no_color(self):
        s = self.edit(history=self.HISTORY_OF_W, NO_COLOR="1")
        came = s.press("w")
        self.looks(s, "hile x do y() end", SUGGESTED)
        came += s.press(CTRL_U + "local x = = 'a' + 1 (", 0.4)
        self.assertNotRegex(came, "\x1b\\[[0-9;]*[34][0-9]")
        s.press(CTRL_C)
        s.press(":set color never" + ENTER)
        came = s.press("wh")
        self.rows(s, "> wh")
        came += s.press(RIGHT + "(1]x = = 2", 0.4)
        self.assertNotRegex(came, "\x1b\\[[0-9;]*m")
        self.rows(s, "> wh(1]x = = 2", "  ')' expected near ']'")

    # ---- 4: tall blocks

    def test_tall_block(self):
        s = self.edit(rows=12, columns=40, history=[block(60)])
        s.press(UP)
        self.rows(s, "  end")
        self.assertRegex(s.screen.line(0), r"^\.\.\. \d+ more above$")
        s.press("X")
        self.rows(s, "    endX")  # which is no "end" any more
        self.assertEqual(s.screen.cursor[1], 8)
        s.press(RUBOUT + UP * 3)
        row = s.screen.cursor[0]
        self.assertIn("v57", s.screen.line(row))
        s.press("@")
        self.assertIn("@", s.screen.line(row))
        s.press(RUBOUT + UP * 30)
        self.assertIn("v27", s.screen.line(s.screen.cursor[0]))
        self.assertIn("above", s.screen.line(0))
        self.assertRegex(s.screen.line(11), r"^\.\.\. \d+ more below$")
        s.press(UP * 40)
        self.assertEqual(s.screen.line(0), "> function f()")
        s.press(CTRL_C)
        want = ["> function f()", *("    v%d = x + %d" % (i, i)
                                    for i in range(60)), "  end^C", ">"]
        have = s.screen.since(0).rstrip("\n").split("\n")
        self.assertEqual(have[-len(want):], want)

    # ---- 5: characters

    def test_wide_and_combining(self):
        s = self.edit(columns=21)
        s.press("s='日本é'")
        self.assertEqual(s.screen.cursor[1], 11)
        for keys, column in ((LEFT * 2, 9), (LEFT, 7)):
            s.press(keys)
            self.assertEqual(s.screen.cursor[1], column)
        s.press(RUBOUT)
        self.rows(s, "> s='本é'")
        s.press(CTRL_C)
        s.press("e\u0301x")
        self.rows(s, "> e\u0301x")
        s.press(LEFT * 2)
        self.assertEqual(s.screen.cursor[1], 2)

    def test_control_characters(self):
        s = self.edit(LC_ALL="C.UTF-8")
        s.press("\x16\x01\x16\tz")
        self.rows(s, "> ^A  z")

    def test_wrapping(self):
        s = self.edit(columns=21)
        s.press("a" * 17 + "日")
        self.rows(s, "> " + "a" * 17, "  日")
        s.press(CTRL_U + "b" * 18)
        y, x = s.screen.cursor
        self.assertEqual((s.screen.line(y - 1), x), ("> " + "b" * 18, 2))
        s.press("c" * 19)
        self.rows(s, "> " + "b" * 18, "  " + "c" * 18, "  c")
        s.press(HOME)
        self.assertEqual(s.screen.cursor[1], 2)

    def test_prompts(self):
        s = self.edit()
        s.press("_PROMPT = 'first row\\n\\1\\27[32m\\2日> \\1\\27[0m\\2'" +
                ENTER)
        self.rows(s, "first row", "日>")
        self.assertEqual(s.screen.cursor[1], 4)
        self.looks(s, "日", "32")
        s.press("1\x1b\r2")
        self.rows(s, "日> 1", "    2")

    # ---- 6: resizing

    def resize(self, s, rows, columns):
        s.screen.resize(rows, columns)
        s.child.setwinsize(rows, columns)
        s.press("", 0.3)

    def test_resize(self):
        s = self.edit(rows=10, columns=41)
        s.press("print('" + "a" * 25 + "')")
        self.resize(s, 10, 31)
        self.rows(s, "> print('" + "a" * 21, "  aaaa')")
        self.resize(s, 10, 61)
        self.rows(s, "> print('" + "a" * 25 + "')")
        self.assertEqual(s.screen.cursor[1], 36)

    def test_tiny_window(self):
        s = self.edit(rows=4, columns=13, history=[block(30)])
        s.press(UP)
        s.press(UP * 8 + "zz")
        y, x = s.screen.cursor
        self.assertTrue(s.screen.line(y)[:x].endswith("zz"), s.screen.text())
        self.resize(s, 20, 40)
        y, x = s.screen.cursor
        self.assertTrue(s.screen.line(y)[:x].endswith("zz"), s.screen.text())
        for rows in (1, 2, 3):
            self.resize(s, rows, 9)
            y, x = s.screen.cursor
            self.assertIn("zz"[:x], s.screen.text())

    # ---- 7: the menu

    def menu(self, **options):
        s = self.edit(rows=18, **options)
        s.press(":set suggestions off" + ENTER)
        s.press("word_a, word_ab, word_b, worth = 1, nacre.ones(2), 3, 4" +
                ENTER)
        return s

    def test_menu(self):
        s = self.menu()
        s.press("wor" + TAB)
        self.rows(s, "> wor", *(s.screen.line(s.screen.cursor[0] + i + 1)
                                for i in range(4)))
        below = s.screen.since(s.screen.place() + 1).split("\n")
        self.assertEqual([row.split()[0] for row in below[:4]],
                         ["word_a", "word_ab", "word_b", "worth"])
        self.assertIn("float32[2]", below[1])
        s.press("d" + TAB)  # what is common
        self.assertTrue(s.screen.line(s.screen.cursor[0]) == "> word_")
        s.press(TAB)
        self.assertEqual(s.screen.line(s.screen.cursor[0]), "> word_a")
        y = s.screen.cursor[0]
        self.assertEqual(s.screen.look_at(y + 1, 2), CHOSEN)
        for key, word in ((DOWN, "word_ab"), (DOWN, "word_b"),
                          (UP, "word_ab"), (RIGHT, "word_b"),
                          (LEFT, "word_ab"), (BACKTAB, "word_a"),
                          (BACKTAB, "word_"), (BACKTAB, "word_b")):
            s.press(key)
            self.assertEqual(s.screen.line(y), "> " + word)
        s.press(CTRL_G)
        self.rows(s, "> word_")
        s.press(TAB * 2)
        s.press(ENTER)  # takes it, and does not run it
        self.rows(s, "> word_a")
        s.press("b" + ENTER)
        self.assertIn("1.0", s.screen.text())

    def test_typing_filters(self):
        s = self.menu()
        s.press("wo" + TAB)
        s.press("d")
        y = s.screen.cursor[0]
        self.assertNotIn("worth", s.screen.since(s.screen.place()))
        self.assertIn("word_b", s.screen.line(y + 3))
        s.press(" ")
        self.rows(s, "> word")
        s.press(RUBOUT + TAB + RUBOUT)
        self.rows(s, "> word")

    def test_many_candidates(self):
        s = self.edit()
        s.press("for i = 1, 20000 do _G[('gl%05d'):format(i)] = i end" +
                ENTER, 0.3)
        came = s.press("gl" + TAB, 0.5)
        self.assertLess(len(came), 900)
        self.assertIn("of 20000", s.screen.text())
        s.press(TAB * 40, 0.3)
        self.assertIn("> gl00040", s.screen.text())
        s.press(CTRL_G)
        self.rows(s, "> gl")

    def test_own_lists_of_readline(self):
        s = self.edit(INPUTRC=self.file(
            "inputrc", '"\\C-y": possible-completions\n'
            '"\\C-t": dump-variables\n"\\C-n": menu-complete\n'))
        s.press("nacre.tan\x19")
        self.assertIn("tanh", s.screen.text())
        s.press(TAB)
        self.assertRegex(s.screen.line(s.screen.cursor[0]), r"> nacre\.tan")
        s.press(CTRL_G + CTRL_U + "\x14", 0.3)
        self.assertIn("editing-mode", s.screen.since(0))
        self.assertEqual(s.screen.line(s.screen.cursor[0]), ">")

    # ---- 8: the row below

    def test_signature(self):
        s = self.edit()
        s.press("x = nacre.ones(3, 4)" + ENTER)
        s.press("x:sum(")
        self.rows(s, "> x:sum(", "  " + s.screen.line(
            s.screen.cursor[0] + 1).strip())
        self.looks(s, "dim=nil", "4")
        s.press("1, ")
        self.looks(s, "keepdim=false", "4")
        self.looks(s, "dim=nil", "2")
        self.resize(s, 24, 28)  # the argument is seen in any case
        self.rows(s, "> x:sum(1,", "  ... keepdim=false, *, ...")
        self.looks(s, "keepdim=false", "4")
        s.press("true)")
        self.rows(s, "> x:sum(1, true)")
        s.press(ENTER)
        self.assertNotIn("keepdim", s.screen.text())

    def test_error(self):
        s = self.edit()
        s.press("local a = = 1", 0.4)
        self.rows(s, "> local a = = 1", "  unexpected symbol near '='")
        self.looks(s, "  unexpected symbol near '='", "31")
        self.assertEqual(s.screen.look_at(s.screen.cursor[0], 12), WRONG)
        s.press(CTRL_U + "x = 1", 0.4)
        self.rows(s, "> x = 1")
        for text in ("f(", "x = 'abc", "if x then", "a = 1; a + 1", "x:sum",
                     ":set precision", "?sum", "x = {1,", "!ls (("):
            s.press(CTRL_U + text, 0.3)
            self.assertNotIn("near", s.screen.since(s.screen.place()), text)

    def test_what_a_block_lacks(self):
        s = self.edit()
        s.press("for i = 1, 2 do" + ENTER, 0.3)
        self.rows(s, "> for i = 1, 2 do")
        s.press(ENTER * 2, 0.4)
        self.assertIn("  'end' expected (to close 'for' at line 1); Ctrl-C "
                      "drops the block", s.screen.text())
        s.press("end", 0.3)
        self.assertNotIn("expected", s.screen.text())

    # ---- 9: searches and arguments

    def test_search(self):
        s = self.edit(history=["alpha = 1", "beta = 2",
                               "for i = 1, 3 do\n  print(i, needle)\nend"])
        s.press(CTRL_R + "be")
        self.rows(s, "> beta = 2", "  (reverse-i-search)`be':")
        self.looks(s, "be", "30;43")
        for backspace in "\x7f", "\b":
            s.press("t" + backspace)
            self.rows(s, "> beta = 2", "  (reverse-i-search)`be':")
        s.press("\x05")
        self.rows(s, "> beta = 2")
        s.press("\x7f")
        self.rows(s, "> beta =")
        s.press(CTRL_C)
        s.press(CTRL_R + "needl")
        self.assertEqual(s.screen.line(s.screen.cursor[0] + 2),
                         "  (reverse-i-search)`needl':")
        y, x = s.screen.cursor
        self.assertTrue(s.screen.line(y)[x:].startswith("needle"))
        s.press("zz")
        self.assertIn("failed", s.screen.text())
        s.press(CTRL_G)
        self.rows(s, ">")
        s.press("\x1b5")
        self.assertIn("(arg: 5)", s.screen.text())
        s.press("a")
        self.rows(s, "> aaaaa")

    # ---- 10, 11: what comes at once

    def test_paste(self):
        s = self.edit(rows=15, columns=60)
        came = s.press(PASTE + block(98).replace("\n", "\r") + PASTED, 0.3)
        self.assertLess(len(came), 2500)
        self.rows(s, "  end")
        s.press(CTRL_C)
        s.press(PASTE + "a = 1\rb = 2" + PASTED)
        self.rows(s, "> a = 1", "  b = 2")
        s.press(UNDO)
        self.rows(s, ">")

    def test_type_ahead(self):
        s = self.edit()
        s.press("os.execute 'sleep 0.3'" + ENTER +
                "for i = 1, 2 do print(i) end" + ENTER + "2 + 40" + ENTER, 0.6)
        self.assertEqual(s.screen.since(0).count("> for i"), 1)
        self.rows(s, "> for i = 1, 2 do print(i) end", "1", "2", "> 2 + 40",
                  "42", ">")

    def test_home_and_end(self):
        s = self.edit()
        s.press("function f()" + ENTER + "return 1" + LEFT * 3)
        for key, place in ((HOME, (1, 2)), (HOME, (0, 2)), (END, (0, 14)),
                           (END, (1, 12)), ("\x1b[H", (1, 2))):
            s.press(key)
            y, x = s.screen.cursor
            first = s.screen.text().split("\n").index("> function f()")
            self.assertEqual((y - first, x), place, key)

    def test_commands_behind_blanks(self):
        s = self.edit()
        for text in (" :", " :time 1", " ::a:: x", "  ?ones", " !", "\t:", " ="):
            s.press(text)
            self.rows(s, "> " + text.replace("\t", "  "))
            s.press(CTRL_U)

    def test_closing_brackets_move_their_line(self):
        s = self.edit()
        s.press("t = {" + ENTER + "a = {" + ENTER + "1" + ENTER + "}" + ENTER +
                "}")
        self.rows(s, "> t = {", "    a = {", "      1", "    }", "  }")

    # ---- 12: signals

    def test_ended_by_a_signal(self):
        s = self.edit()
        s.press("print(")
        s.child.kill(signal.SIGTERM)
        s.child.expect(terminal.pexpect.EOF)
        s.show(len(s.log.text))
        self.rows(s, "> print(")
        self.assertNotIn("?2004", s.screen.modes)

    def test_stop_and_continue(self):
        c = self.job_shell()
        c.send("print(20 +")
        c.expect_exact("20 +")
        time.sleep(0.2)
        c.send(CTRL_Z)
        c.expect_exact("sh$ ")
        c.send("fg" + ENTER)
        c.expect("20")
        c.send("2)" + ENTER)
        c.expect_exact("22\r\n")
        # the output begins in a row of its own
        self.assertRegex(c.before, r"\r\n(\x1b\[[?\w]+|\r)*$")

    # ---- 14: vi

    def test_vi(self):
        s = self.edit(INPUTRC=self.file(
            "inputrc", "set editing-mode vi\nset show-mode-in-prompt on\n"
            'set vi-ins-mode-string "+"\nset vi-cmd-mode-string ":"\n'
            "set keyseq-timeout 20\n"))
        self.rows(s, "+>")
        s.press("foo(bar)")
        s.press("\x1b", 0.3)
        self.assertEqual(s.screen.line(s.screen.cursor[0]), ":> foo(bar)")
        self.assertEqual(s.screen.cursor[1], 10)
        self.assertEqual(self.matched(s), [6, 10])
        s.press("0cwqux", 0.3)
        self.assertEqual(s.screen.line(s.screen.cursor[0]), "+> qux(bar)")
        s.press("\x1b#", 0.3)  # readline ends the block
        self.assertIn("#qux(bar)", s.screen.since(0))

    # ---- 15: no display of our own

    def test_plain(self):
        for options in ({"TERM": "dumb"}, {"args": ["--plain"]}):
            s = self.edit(*options.pop("args", ()), history=["while x do"],
                          **options)
            came = s.press("wh")
            self.assertEqual(came, "wh")
            came = s.press(ENTER if s.dumb else "(", 0.3)
            self.assertNotIn("\x1b[?2026", came)
            self.assertNotIn("ile x", came)

    # ---- help, the editor, the screen

    def test_help_stands_above(self):
        s = self.edit()
        s.press("x = nacre.mm\x1bh", 0.3)
        self.assertIn("mm(self, mat2)", s.screen.text())
        self.rows(s, "> x = nacre.mm")
        s.press("z")
        self.rows(s, "> x = nacre.mmz")

    def test_clear(self):
        s = self.edit()
        s.press("1 + 1" + ENTER)
        s.press("x = {\x1b\r1")
        s.press(CTRL_L)
        self.assertEqual(s.screen.line(0), "> x = {")
        self.assertEqual(s.screen.cursor, (1, s.screen.cursor[1]))

    # ---- 16: any keys

    KEYS = ("a", "(", ")", '"', "'", "日", "e\u0301", " ", "end",
            "function ", UP, DOWN, LEFT, RIGHT, END, HOME, RUBOUT, "\x1b[3~",
            "\x1b\r", TAB, "\x0b", "\x19", "\x17", UNDO, "\x16\t", "\x16\x02",
            "\x1bb", "\x1bf", "\x1b5x", "\x14", "[[", "]]", "--",
            "nac" + TAB * 2, BACKTAB, "\x1b<", "\x1b>", WORD, "\x1bd",
            "x:sum(", "nacre.s" + TAB, CTRL_R + "a", "\x1bh")

    def fuzz(self, seed, resizing=False):
        """After any keys the picture is that of a fresh drawing."""
        dice = random.Random(seed)
        rows, columns = dice.choice([(24, 80), (8, 30), (5, 17), (12, 41)])
        s = self.edit(rows=rows, columns=columns,
                      history=["aaa(b)", "end()", block(dice.choice([2, 9]))])
        pressed = []
        for _ in range(60):
            pressed.append(dice.choice(self.KEYS))
            s.send(pressed[-1])
            if dice.random() < 0.3:
                time.sleep(0.003)
            if resizing and dice.random() < 0.05:
                s.press("", 0.05)
                pressed.append(dice.choice([(24, 80), (8, 30), (6, 20)]))
                self.resize(s, *pressed[-1])
        s.press(CTRL_G, 0.25)
        s.press(CTRL_G, 0.25)
        before, column = s.screen.text().split("\n"), s.screen.cursor[1]
        s.press(CTRL_L, 0.2)
        after = s.screen.text().split("\n")
        self.assertEqual((before[-len(after):], column),
                         (after, s.screen.cursor[1]),
                         "seed %d: %r" % (seed, pressed))
        s.child.close(force=True)

    def test_fuzz(self):
        for seed in range(6):
            with self.subTest(seed=seed):
                self.fuzz(seed, seed >= 4)


if __name__ == "__main__":
    terminal.main()
