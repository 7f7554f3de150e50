#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_shell.py - the shell through a pseudo-terminal, as a user meets it.
#
#   test_shell.py NACRE [unittest options]

import os
import random
import re
import signal
import stat
import sys
import tempfile
import time
import unittest

try:
    import pexpect
except ImportError:
    print("skip: python3-pexpect is not installed")
    sys.exit(77)

NACRE = ""
UP, DOWN, TAB, ENTER = "\x1b[A", "\x1b[B", "\t", "\r"
CTRL_C, CTRL_D, CTRL_R, CTRL_Z = "\x03", "\x04", "\x12", "\x1a"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
READY = "\x1b\\[\\?2004h"  # readline asks for bracketed paste at each prompt


def clean(text):
    """What stays on the screen, more or less: no escapes, no fresh line."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    text = re.sub(r"% +\r", "", text)
    return text.replace("\r\n", "\n").replace("\r", "")


class Session:
    def __init__(self, home, *args, columns=80, **variables):
        env = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm",
               "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "INPUTRC": "/dev/null"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            env[name] = os.environ.get(name, "")
        env.update(variables)
        self.dumb = env["TERM"] == "dumb"
        # through env, for pexpect splits a lone command at its blanks
        self.child = pexpect.spawn("/usr/bin/env", [NACRE, *args], env=env,
                                   timeout=8, dimensions=(24, columns),
                                   encoding="utf-8")
        self.child.delaybeforesend = None
        self.prompt()

    def prompt(self):
        """Waits for the prompt; gives what came before it."""
        self.child.expect("> $" if self.dumb else READY)
        text = clean(self.child.before)
        if not self.dumb:
            self.child.expect("> ")
        return text

    def send(self, keys):
        self.child.send(keys)

    def run(self, text):
        """Types a block; gives what it printed, without its echo."""
        self.child.send(text + ENTER)
        out = self.prompt()
        return out.split("\n", 1)[1] if "\n" in out else ""

    def settle(self, seconds=0.3):
        """Everything that comes until nothing does."""
        out = ""
        while True:
            try:
                out += self.child.read_nonblocking(4096, seconds)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return clean(out)

    def quit(self):
        self.child.send(CTRL_D)
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus


class Shell(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.home = self.folder.name
        self.sessions = []

    def tearDown(self):
        for s in self.sessions:
            s.child.close(force=True)
        self.folder.cleanup()

    def open(self, *args, **options):
        s = Session(self.home, *args, **options)
        self.sessions.append(s)
        return s

    def history(self):
        return os.path.join(self.home, ".local/state/nacre/history")

    def entries(self):
        with open(self.history()) as f:
            return re.split(r"(?m)^#\d+\n", f.read())[1:]

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
        s.run("do local inner = 1 end")
        self.assertEqual(s.run("inner"), "nil\n")
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

    def test_alt_enter(self):
        s = self.open()
        s.send("x = 1\x1b\r")
        s.run("y = 2")
        self.assertEqual(self.entries(), ["x = 1\ny = 2\n"])
        self.assertEqual(s.run("x, y"), "1\t2\n")

    def test_moving_inside_a_block(self):
        s = self.open()
        s.send("x = {" + ENTER + "1," + ENTER + "2" + UP + "0" + DOWN)
        s.run(ENTER + "}")
        self.assertEqual(s.run("x"), "{10, 2}\n")

    def test_paste(self):
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
        self.assertIn("{2, 5}\n", s.run(""))
        self.assertEqual(self.entries(), ["y = 2\nz = {y,\n5}\nz\n"])

    # ---- Ctrl-C and other signals

    def timed(self, s, keys, wait=0.3):
        s.send(keys)
        time.sleep(wait)
        begin = time.time()
        s.send(CTRL_C)
        out = s.prompt()
        self.assertLess(time.time() - begin, 2.0)
        return out

    def test_interrupt_at_the_prompt(self):
        s = self.open()
        self.timed(s, "half a line", 0.1)
        self.assertEqual(s.run("1+1"), "2\n")
        for _ in range(5):
            s.send(CTRL_C)
            s.prompt()
        s.send("for i = 1, 2 do" + ENTER + "x(" + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("3+4"), "7\n")
        s.send("3+" + CTRL_R + "1+" + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("5"), "5\n")

    def test_interrupt_loops(self):
        s = self.open()
        loops = [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "co = coroutine.wrap(function() while true do end end) co()",
            "while true do pcall(coroutine.wrap(function() "
            "  while true do pcall(error) end end)) end",
            "while true do ('x'):rep(1e6):gsub('x', function() end) end",
        ]
        for loop in loops:
            self.assertIn("interrupted", self.timed(s, loop + ENTER), loop)
            self.assertEqual(s.run("6*7"), "42\n")

    def test_interrupt_names_the_function(self):
        s = self.open()
        s.run("function work() while true do end end")
        out = self.timed(s, "x = work()" + ENTER)
        self.assertRegex(out, r"interrupted in work \(0\.\d s\)")

    def test_interrupted_work_keeps_variables(self):
        s = self.open()
        self.timed(s, "local n = 11 while true do end" + ENTER)
        self.assertEqual(s.run("n"), "11\n")

    def test_many_interrupts(self):
        """At any moment: no hang, no lost key, nothing left over."""
        work = ["while true do end", "half", "for i = 1, 2 do", "x = = 1",
                "while true do pcall(string.rep, 'x', 1000) end",
                "co = coroutine.wrap(function() while true do "
                "coroutine.yield() end end) while true do co() end",
                "for i = 1, 300 do print(i) end",
                "t = {} for i = 1, 1e8 do t[i % 100] = tostring(i) end"]
        s = self.open("--no-history")
        dice = random.Random(4)
        for i in range(60):
            s.send(dice.choice(work) + dice.choice(["", ENTER, ENTER]))
            for _ in range(dice.choice([1, 1, 2, 3])):
                time.sleep(dice.random() * 0.02)
                s.send(CTRL_C)
            if i % 6 == 0:
                time.sleep(0.05)
                s.send(CTRL_C + "'now' .. %d + 0" % i + ENTER)
                s.child.expect_exact('"now%d"' % i)
        s.send("'end' .. 6*7" + ENTER)
        s.child.expect_exact('"end42"')

    def test_interrupt_tensor_operation(self):
        s = self.open()
        s.run("a = nacre.randn(5000, 5000)")
        out = self.timed(s, "for i = 1, 100 do b = a:mm(a) end" + ENTER, 0.5)
        self.assertIn("interrupted", out)
        self.assertEqual(s.run("1"), "1\n")

    def test_stop_and_continue(self):
        env = {"HOME": self.home, "TERM": "xterm", "PS1": "sh$ ",
               "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PATH": "/usr/bin:/bin"}
        c = pexpect.spawn("/bin/sh", ["-i", "-m"], env=env, timeout=8,
                          encoding="utf-8", dimensions=(24, 80))
        c.expect_exact("sh$ ")
        c.send('"%s" -q' % NACRE + ENTER)
        c.expect(READY + "> ")
        c.send("20 +")
        c.expect_exact("20 +")
        c.send(CTRL_Z)
        c.expect_exact("sh$ ")
        c.send("fg" + ENTER)
        c.expect_exact("> 20 +")
        c.send(" 2" + ENTER)
        c.expect("[\r\n]22\r\n")
        c.close(force=True)

    def test_terminated_at_the_prompt(self):
        s = self.open()
        s.child.kill(signal.SIGTERM)
        s.child.expect(re.escape("\x1b[?2004l"))
        s.child.expect(pexpect.EOF)
        s.child.close()
        self.assertEqual(s.child.signalstatus, signal.SIGTERM)

    def test_leaving(self):
        self.assertEqual(self.open().quit(), 0)
        for text, status in ((":quit", 0), ("exit", 0), ("quit()", 0),
                             ("os.exit(5)", 5)):
            s = self.open()
            s.send(text + ENTER)
            s.child.expect(pexpect.EOF)
            s.child.close()
            self.assertEqual(s.child.exitstatus, status)

    def test_resize(self):
        s = self.open()
        s.send("12345")
        s.settle(0.1)
        s.child.setwinsize(24, 40)
        s.settle(0.2)
        self.assertEqual(s.run("+1"), "12346\n")

    # ---- history

    def test_history_of_two_sessions(self):
        a, b = self.open(), self.open()
        a.run("a1 = 1")
        b.run("b1 = 1")
        a.run("a2 = 1")
        b.run("b2 = 1")
        self.assertEqual(a.quit() + b.quit(), 0)
        self.assertEqual(self.entries(),
                         ["a1 = 1\n", "b1 = 1\n", "a2 = 1\n", "b2 = 1\n"])
        mode = stat.S_IMODE(os.stat(self.history()).st_mode)
        self.assertEqual(mode, 0o600)

    def test_block_comes_back_in_a_new_session(self):
        s = self.open()
        s.send("for i = 8, 9 do" + ENTER + "print(i)" + ENTER)
        s.run("end")
        s.quit()
        s = self.open()
        s.send(UP)
        self.assertIn("\n8\n9\n", s.run(""))

    def test_history_by_beginning(self):
        s = self.open()
        for text in ("alpha = 3", "beta = 4", "gamma = 5"):
            s.run(text)
        s.send("al" + UP)
        self.assertIn("alpha = 3", s.settle(0.2))
        s.run("; alpha = alpha + 1")
        self.assertEqual(s.run("alpha"), "4\n")

    def test_what_is_not_kept(self):
        s = self.open()
        for text in (" secret = 1", "x = 1", "x = 1", "y = 2"):
            s.run(text)
        self.assertEqual(self.entries(), ["x = 1\n", "y = 2\n"])
        s.quit()
        s = self.open("--no-history")
        s.run("z = 3")
        s.quit()
        self.assertEqual(len(self.entries()), 2)

    def test_written_before_it_runs(self):
        s = self.open()
        s.send("os.exit(1)" + ENTER)
        s.child.expect(pexpect.EOF)
        self.assertEqual(self.entries(), ["os.exit(1)\n"])

    def test_history_is_trimmed(self):
        path = os.path.join(self.home, "hist")
        with open(path, "w") as f:
            for i in range(50):
                f.write("#1700000000\nx = %d\ny = %d\n" % (i, i))
        s = self.open(NACRE_HISTORY=path, NACRE_HISTSIZE="10")
        s.run("last = 1")
        s.quit()
        with open(path) as f:
            text = f.read()
        self.assertEqual(text.count("#"), 10)
        self.assertTrue(text.startswith("#1700000000\nx = 41\ny = 41\n"))
        self.assertTrue(text.endswith("\nlast = 1\n"))

    def test_history_command(self):
        s = self.open()
        s.run("one = 1")
        s.run("two = 2")
        self.assertIn("    1  one = 1\n", s.run(":history"))
        out = s.run(":history /two/")
        self.assertIn("two = 2", out)
        self.assertNotIn("one = 1", out)

    # ---- help, commands, completion

    def test_method_reference(self):
        s = self.open()
        s.run("a = nacre.zeros(2, 3)")
        self.assertRegex(s.run("a:sum"), r"^sum\([^\n]*\n  \S")
        self.assertIn("did you mean 'sum'", s.run("a:summ"))
        self.assertRegex(s.run("a:sum(1):mean"), r"^mean\([^\n]*\n  \S")
        self.assertIn("did you mean 'mean'", s.run("a:sum(1):meen"))
        self.assertEqual(s.run("a:ndim"),
                         "error: ndim is no method: a.ndim\n")
        self.assertIn("no method: a.T\n", s.run("a:T"))
        self.assertIn("did you mean", s.run("nacer:sum"))

    def test_help(self):
        s = self.open()
        for text in ("?sum", "sum?", "?nacre.sum", ":help sum"):
            self.assertRegex(s.run(text), r"^sum\(", text)
        self.assertIn(":whos", s.run(":help"))
        self.assertIn("error: no help for 'summ', did you mean 'sum'?",
                      s.run("?summ"))
        self.assertIn(":whos", s.run("help"))
        self.assertIn("library", s.run("?torch"))
        self.assertIn("nacre.load(path", s.run("?load"))
        self.assertIn("nacre.pi is a number", s.run("?pi"))
        self.assertRegex(s.run("torch"), r"^nacre [\d.]+\n$")
        s.run("a = nacre.zeros(2)")
        self.assertIn("a is a tensor: float32[2] cpu", s.run("?a"))
        for row in s.run("?tensor").split("\n"):
            self.assertLess(len(row), 81)
        self.assertRegex(s.run("?where"), r"\n  grad   where")
        s.send("nacre.zeros\x1bh")
        self.assertIn("zeros(", s.settle(0.2).replace("nacre.zeros", ""))

    def test_commands(self):
        s = self.open()
        self.assertIn("error: no command :tiem, did you mean :time?",
                      s.run(":tiem"))
        s.run("a = nacre.zeros(4, 2)  b = a:view(8)  n = 5")
        out = s.run(":wh")
        self.assertRegex(out, r"a +float32\[4x2\] cpu +32 B\n")
        self.assertRegex(out, r"b +float32\[8\] cpu +view of a\n")
        self.assertRegex(out, r"n +5\n")
        self.assertNotIn("float32[8]", s.run(":whos a"))
        self.assertRegex(s.run(":time c = a + 1"), r"^  [\d.]+ [num]?s")
        self.assertEqual(s.run("c ~= nil"), "true\n")
        self.assertIn("error", s.run(":time nosuch()"))
        s.run(":seed 3")
        s.run("x = nacre.rand(1):sum():item()")
        s.run(":seed 3")
        self.assertEqual(s.run("x == nacre.rand(1):sum():item()"), "true\n")
        self.assertIn("variables removed", s.run(":reset"))
        self.assertEqual(s.run("a"), "nil\n")
        self.assertIn("freed", s.run(":gc"))
        self.assertIn("in use", s.run(":mem"))

    def test_completion(self):
        s = self.open()
        s.run("subject = {field = 1, fields = 2}")
        s.run("result = subj" + TAB + ".field" + TAB)
        self.assertEqual(s.run("result"), "1\n")
        self.assertEqual(s.run("('x'):re" + TAB + "p" + TAB + "3)"),
                         '"xxx"\n')
        s.send("nacre.ran" + TAB + TAB)
        out = s.settle(0.3)
        self.assertRegex(out, r"\n  randn\([^\n]*\)  +\S")
        self.assertRegex(out, r"\n  range\(")
        s.send(CTRL_C)
        s.prompt()
        s.send("('x'):rep():mul" + TAB + TAB)
        self.assertRegex(s.settle(0.3), r"\n  mul\(other\)[^\n]*\n  mul_\(o")
        s.send(CTRL_C)
        s.prompt()
        s.run("t = nacre.zeros(2)")
        s.send("t:su" + TAB + TAB)
        self.assertRegex(s.settle(0.3), r"sum\(")
        s.send(CTRL_C)
        s.prompt()
        self.assertIn("name", s.run(":who" + TAB))

    def test_completion_runs_no_user_code(self):
        s = self.open()
        s.run("ran = 0")
        s.run("trap = setmetatable({}, {__index = function() ran = 1 end,"
              " __tostring = function() ran = 1 return '' end})")
        s.send("trap.x" + TAB + TAB + CTRL_C)
        s.prompt()
        s.send("tra" + TAB + TAB + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("ran"), "0\n")

    def test_completion_of_file_names(self):
        s = self.open()
        path = os.path.join(self.home, "unlikely-name.txt")
        open(path, "w").close()
        out = s.run("f = '%s/unli" % self.home + TAB)
        self.assertEqual(s.run("f == '%s'" % path), "true\n", out)

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
    if len(sys.argv) < 2:
        sys.exit("usage: test_shell.py NACRE [unittest options]")
    NACRE = os.path.abspath(sys.argv.pop(1))
    if "editor    readline" not in os.popen("'%s' -V" % NACRE).read():
        print("skip: built without readline")
        sys.exit(77)
    unittest.main()
