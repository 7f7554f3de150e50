#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_signals.py - Ctrl-C and other signals at a terminal.

import os
import random
import signal
import time

import pexpect

import terminal
from terminal import (CTRL_C, CTRL_D, CTRL_R, CTRL_Z, ENTER, PASTE, PASTED,
                      Shell)


class Signals(Shell):
    # ---- Ctrl-C and other signals

    def test_interrupt_at_the_prompt(self, s):
        """P1: no key behind a Ctrl-C is eaten, also in a block or a search."""
        self.timed(s, "half a line", 0.1)
        self.assertEqual(s.run("1+1"), "2\n")
        for _ in range(5):
            s.drop()
        s.send("for i = 1, 2 do" + ENTER + "x(" + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("3+4"), "7\n")
        s.send("3+" + CTRL_R + "1+" + CTRL_C)
        s.prompt()
        self.assertEqual(s.run("5"), "5\n")

    def test_interrupt_closes_variables(self, s):
        """Whatever catches the interrupt on its way, and also if the scope
        ends just then; a function that does not end can be ended."""
        s.run("function value() return setmetatable({}, {__close = function()"
              " for i = 1, 1000 do pcall(error) end closed = true end}) end")
        s.run("function f() local v <close> = value() while true do end end")
        s.run("function hold() while true do pcall(f) end end")
        s.run("function press() io.popen('kill -INT $PPID'):close() end")
        s.run("a = nacre.ones(2000, 2000)")
        for block in ("f()", "pcall(f)", "pcall(pcall, f)", "hold()",
                      "xpcall(f, print)", "coroutine.wrap(f)()",
                      "pcall(coroutine.wrap(f))",
                      "coroutine.wrap(function() pcall(f) end)()",
                      "pcall(function() local v <close> = value() "
                      "while true do a:mm(a) end end)",
                      "pcall(string.gsub, 'x', 'x', f)",
                      "do local v <close> = value() while true do "
                      "xpcall(f, function() while true do end end) end end"):
            s.run("closed = nil")
            self.assertIn("interrupted", self.timed(s, block + ENTER), block)
            self.assertEqual(s.run("closed"), "true\n", block)
        s.run("closed = nil")
        s.run("do local v <close> = setmetatable({}, {__close = function() "
              "press() closed = true end}) end")
        self.assertEqual(s.run("closed"), "true\n")
        for block in ("do local v <close> = setmetatable({}, {__close = hold}) "
                      "end",
                      "pcall(function() local v <close> = setmetatable({}, "
                      "{__close = hold}) while true do end end)"):
            self.assertIn("interrupted", self.timed(s, block + ENTER), block)

    def test_interrupted_time_is_said_once(self, s):
        s.run(":timing 1ms")
        out = self.timed(s, "while true do end" + ENTER)
        self.assertEqual(out.count("s)"), 1, out)

    def test_interrupt_loops(self, s):
        """P2, P3: neither pcall nor a coroutine nor a handler hides from
        Ctrl-C."""
        endless = "function() while true do end end"
        loops = [
            "while true do end",
            "while true do pcall(function() while true do end end) end",
            "co = coroutine.wrap(function() while true do end end) co()",
            "while true do pcall(coroutine.wrap(function() "
            "  while true do pcall(error) end end)) end",
            "while true do ('x'):rep(1e6):gsub('x', function() end) end",
            "xpcall(%s, %s)" % (endless, endless),
            "xpcall(error, %s)" % endless,
            "xpcall(function() coroutine.wrap(%s)() end, %s)" %
            (endless, endless),
            "pcall(xpcall, error, function() xpcall(error, %s) end)" % endless,
            "do local t <close> = setmetatable({}, {__close = function() "
            "  xpcall(error, %s) end}) end" % endless,
        ]
        for loop in loops:
            self.assertIn("interrupted", self.timed(s, loop + ENTER), loop)
            self.assertEqual(s.run("6*7"), "42\n")

    def ask(self, s):
        """Presses Ctrl-C until the shell asks."""
        for _ in range(100):
            s.send(CTRL_C)
            if s.child.expect_exact(["[y/N] ", pexpect.TIMEOUT],
                                    timeout=0.3) == 0:
                return
        self.fail("it did not ask: " + s.settle())

    def test_unanswered_interrupts_ask(self):
        """Where Lua calls no hook, Ctrl-C again asks after a second."""
        loop = "function() while true do end end"
        for line in [
                "do setmetatable({}, {__gc = %s}) end collectgarbage()" % loop,
                "debug.sethook(%s, 'l') x = 1" % loop,
                "('a'):rep(50):find(('a*'):rep(30) .. 'b')"]:
            s = self.open()
            s.send("print 'begun'; " + line + ENTER)
            for _ in range(2):  # as typed, and as printed
                s.expect("begun")
            time.sleep(0.1)
            self.ask(s)
            if "__gc" in line:
                s.send("n" + ENTER)
                time.sleep(0.5)  # a Ctrl-C would take the answer away
                self.ask(s)
            self.assertEqual(s.end("y" + ENTER), 128 + signal.SIGINT, line)

    def test_ended_read(self):
        """What ends io.read does not end the input of the shell."""
        for term in "xterm", "dumb":
            for key in CTRL_C, CTRL_D:
                s = self.open("--no-history", TERM=term)
                s.send("print('be' .. 'gun') io.read()" + ENTER)
                s.expect("begun")
                s.send(key)
                s.prompt()
                self.assertEqual(s.run("6 * 7"), "42\n", (term, key))

    def test_interrupted_work_keeps_variables(self, s):
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
                s.expect('"now%d"' % i)
        s.send("'end' .. 6*7" + ENTER)
        s.expect('"end42"')

    def test_interrupt_tensor_operation(self, s):
        """P4: operations look for Ctrl-C themselves."""
        s.run("a = nacre.randn(5000, 5000)")
        out = self.timed(s, "for i = 1, 100 do b = a:mm(a) end" + ENTER, 0.5)
        self.assertIn("interrupted", out)
        self.assertEqual(s.run("1"), "1\n")

    def test_interrupted_while_writing(self, s):
        """P4: what was changed in place is said to be half done; what was
        not, is not."""
        s.run("x = nacre.zeros(50000000)")
        for line, name in (("x:exp_()", "exp"), ("x:fill_(3)", "fill_"),
                           ("nacre.exp(x, {out = x})", "exp"),
                           ("x['1:20000000'] = x['30000001:']", "assignment")):
            for _ in range(20):  # until it falls into the writing
                out = self.timed(s, "while true do %s end" % line + ENTER)
                self.assertIn("interrupted", out)
                if "was writing" in out:
                    break
            self.assertIn("interrupted: %s was writing to a tensor, which may "
                          "be partly updated\n" % name, out)
        out = self.timed(s, "while true do local y = x:exp() end" + ENTER)
        self.assertRegex(out, r"interrupted \(\d\.\d s\)\n")

    def test_bytes_of_a_paste_are_no_keys(self, s):
        """Not those that end a program, interrupt it or stop it; nothing of
        the paste runs before Enter."""
        s.run("kept = 6 * 7")
        for byte in "\x1c", CTRL_C, CTRL_Z, CTRL_D, "\x11", "\x13", "\x7f":
            s.send(PASTE + "s = [[a" + byte + "\nran = true\n]]" + PASTED)
            s.settle(0.05)
            s.run("")
            self.assertEqual(s.run("kept, ran, #s, s:byte(2)"),
                             "42\tnil\t14\t%d\n" % ord(byte), repr(byte))
        whole = PASTE + "s = [[a\x1cb\x1ac\x04d\x00e\r\nf]]" + PASTED
        for size in 1, 2, 5:
            for at in range(0, len(whole), size):
                s.send(whole[at:at + size])
                time.sleep(0.01)
            s.run("")
            self.assertEqual(s.run("kept, #s, s:byte(-2)"), "42\t10\t10\n")
        s.send(CTRL_R + PASTE + "ke\x1c" + CTRL_C + "pt" + PASTED + CTRL_C)
        s.prompt()
        s.run("s = [[" + PASTE + "a\r\nb\rc\nd\r\n\r\ne\x00f" + PASTED + "]]")
        self.assertEqual(s.run("(s:gsub('\\n', '|'))"), '"a|b|c|d||ef"\n')

    def test_keys_outside_of_a_paste(self, s):
        """Ctrl-\\ leaves at once; a Ctrl-C also ends a paste without end."""
        s.send(PASTE + "lost = 1")
        s.settle(0.3)
        s.drop()
        self.assertEqual(s.run("lost == nil"), "true\n")
        self.assertEqual(s.end("1 + \x1c"), -signal.SIGQUIT)

    def test_what_is_pasted_is_no_answer(self, s):
        """A Ctrl-\\ in a paste that comes while code runs asks."""
        s.send("print('be' .. 'gun') while true do end" + ENTER)
        s.expect("begun")
        s.send("x = 1 \x1cy = 2" + ENTER)
        s.expect("[y/N] ")
        s.settle(0.2)
        s.send(CTRL_C)
        s.prompt()
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_no_text_in_an_editor_stays(self):
        """Its file goes when a signal ends the program, though the editor has
        it open."""
        self.file("editor", "#!/bin/sh\necho be''gun; exec sleep 60\n", 0o755)
        for keys in "x = 1\x18\x05", ":help all" + ENTER:
            for number in signal.SIGUSR2, signal.SIGVTALRM:
                folder = os.path.join(self.home, "tmp")
                os.makedirs(folder, exist_ok=True)
                s = self.open("-q", TMPDIR=folder,
                              EDITOR=self.home + "/editor",
                              NACRE_PAGER=self.home + "/editor")
                s.send(keys)
                s.expect("begun")
                self.assertEqual(len(os.listdir(folder)), 1)
                os.kill(s.child.pid, number)
                s.child.wait()  # the editor still has the terminal
                self.assertEqual(s.child.signalstatus, number)
                self.assertEqual(os.listdir(folder), [])

    def test_limits_end_no_prompt(self, s):
        s.send("print('be' .. 'gun') while true do end" + ENTER)
        s.expect("begun")
        s.child.kill(signal.SIGXCPU)
        self.assertIn("interrupted", s.prompt())
        for number in signal.SIGXCPU, signal.SIGXFSZ, signal.SIGPIPE:
            s.child.kill(number)
            self.assertEqual(s.run("6 * 7"), "42\n")

    def test_stop_and_continue(self):
        """P12: Ctrl-Z and fg bring the line back."""
        c = self.job_shell()
        c.send("20 +")
        c.expect_exact("20 +")
        c.send(CTRL_Z)
        c.expect_exact("sh$ ")
        c.send("fg" + ENTER)
        c.expect_exact("> 20 +")
        c.send(" 2" + ENTER)
        c.expect("l22\r\n")

    def test_terminated_at_the_prompt(self, s):
        """P9: bracketed paste ends with the program."""
        s.child.kill(signal.SIGTERM)
        s.expect(terminal.PASTE_OFF)
        self.assertEqual(s.end(), -signal.SIGTERM)

    def test_leaving(self):
        self.assertEqual(self.open().quit(), 0)
        for text, status in ((":quit", 0), ("exit", 0), ("quit()", 0),
                             ("os.exit(5)", 5)):
            self.assertEqual(self.open().end(text + ENTER), status)

    def test_resize(self, s):
        s.send("12345")
        s.settle(0.1)
        s.child.setwinsize(24, 40)
        s.settle(0.2)
        self.assertEqual(s.run("+1"), "12346\n")


if __name__ == "__main__":
    terminal.main()
