#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_pictures.py - pictures at a terminal: which way :show goes, and the line
# of nacre.progress.

import base64
import re
import subprocess

import terminal
from launch import surroundings
from terminal import CTRL_C, ENTER, PASTE_OFF, Shell

SHOW = ":show nacre.linspace(0,1,64):reshape(8,8)"
ASK = "\x1b_Gi=1,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
# Runs for a twentieth of a second.
WAIT = "local t = nacre.clock() while nacre.clock() < t + 0.05 do end"


class Pictures(Shell):
    def open(self, **variables):
        return super().open("-q", "--no-rc", "--no-history", **{
            "NO_COLOR": "", "TERM": "xterm-256color", **variables})

    def show(self, s, answer=None):
        """What stands between the line typed and the note below."""
        s.send(SHOW + ENTER)
        if answer is not None:
            s.expect(ASK)
            s.send(answer)
        s.child.expect(r"8x8 grey, 0\.\.1\r\n")
        out = s.child.before
        if answer is None:  # then the line typed stands before it
            out = out[out.index("\r\n") + 2:]
        s.prompt()
        return out.replace(PASTE_OFF, "")

    def shown(self, answer=None, **variables):
        s = self.open(**variables)
        out = self.show(s, answer)
        self.assertEqual(s.run("6 * 7"), "42\n")  # no key went astray
        return out

    def image(self, data):
        """The PNG image that base64 digits stand for."""
        raw = base64.b64decode(data, validate=True)
        self.assertEqual(raw[:8], b"\x89PNG\r\n\x1a\n")

    def test_protocols(self):
        out = self.shown(KITTY_WINDOW_ID="1")
        m = re.search("\x1b_Gf=100,a=T,q=2,c=8,r=4,m=0;([^\x1b]*)\x1b\\\\", out)
        self.assertTrue(m, out)
        self.image(m.group(1))
        self.assertIn(m.group(0), self.shown(TERM="xterm-kitty"))
        self.assertIn(m.group(0), self.shown(TERM_PROGRAM="ghostty"))
        out = self.shown(TERM_PROGRAM="WezTerm")
        m = re.search("\x1b]1337;File=inline=1;size=(\\d+);width=8;height=4:"
                      "([^\x07]*)\x07", out)
        self.assertTrue(m, out)
        self.assertEqual(len(base64.b64decode(m.group(2))), int(m.group(1)))
        self.image(m.group(2))

    def test_questions(self):
        self.assertIn("\x1b_Gf=100", self.shown("\x1b_Gi=1;OK\x1b\\\x1b[?62c"))
        out = self.shown("\x1b[?62;4;22c")
        self.assertIn('\x1bPq"1;1;64;64#0;2;0;0;0', out)
        self.assertIn("\x1b\\", out)
        self.assertIn("▀", self.shown("\x1b[?62;14;22c"))

    def test_a_terminal_that_answers_nothing(self, s):
        self.assertIn("▀", self.show(s, ""))
        self.assertNotIn(ASK, self.show(s))  # it is asked once
        self.assertEqual(s.run("6 * 7"), "42\n")

    def test_blocks(self):
        exact = self.shown(TMUX="x", KITTY_WINDOW_ID="1", COLORTERM="truecolor")
        self.assertIn("\x1b[0;38;2;0;0;0;48;2;", exact)
        self.assertNotIn(ASK, exact)
        self.assertIn("\x1b[0;38;5;16;48;5;", self.shown(STY="x"))
        for line in exact.rstrip("\r\n").split("\r\n"):
            self.assertTrue(line.endswith("\x1b[0m"), line)
            self.assertEqual(line.count("▀"), 32, line)

    def test_plain(self):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            out = self.shown(KITTY_WINDOW_ID="1", **variables)
            self.assertIn("@@@@", out)
            for escape in ("\x1b_", "\x1bP", "\x1b[0"):
                self.assertNotIn(escape, out)

    def test_set(self):
        s = self.open(KITTY_WINDOW_ID="1")
        s.run(":set graphics sixel")
        self.assertIn("\x1bPq", self.show(s))
        s.run(":set graphics off")
        self.assertNotIn("\x1b_", self.show(s))

    def test_heat(self):
        s = self.open(COLORTERM="truecolor")
        s.send(":heat nacre.tensor{{-1,0},{1,2}}" + ENTER)
        s.child.expect("-2 .* 2\r\n")  # on both sides of 0: as far on each
        self.assertIn("▀", s.child.before + s.child.after)

    def piped(self, *args, text="", **variables):
        """What the program prints where nothing is a terminal."""
        done = subprocess.run(
            [terminal.PROGRAM, *args], input=text.encode(), check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=surroundings(self.home, TERM="xterm-256color", **variables))
        return done.stdout

    def test_pipe(self):
        """No escape goes into a pipe, whatever the environment wants."""
        text = SHOW + ("\n:heat nacre.eye(3)\n:plot nacre.rand(9)\n"
                       "for i in nacre.progress(3) do end\n")
        for variables in ({"KITTY_WINDOW_ID": "1"}, {"CLICOLOR_FORCE": "1"}):
            out = self.piped("-i", "--no-rc", text=text, **variables)
            self.assertIn(b"@@", out)
            for escape in (b"\x1b_", b"\x1bP", b"\x1b]", b"38;"):
                self.assertNotIn(escape, out)

    def test_silence(self):
        self.assertEqual(self.piped("-e", "for i in nacre.progress(16) do %s "
                                    "end" % WAIT), b"")

    def test_progress(self):
        loop = 'for i in nacre.progress(%d, "epochs") do ' + WAIT + " %s end"
        s = self.open()
        s.send(loop % (24, "") + ENTER)
        s.child.expect(r"epochs +\d+%  \d+/24  [\d.]+/s  [\d.]+ m?s left")
        s.child.expect(r"\repochs  24 in [\d.]+ s  [\d.]+/s\r\n")
        s.send(loop % (100, "if i == 16 then break end") + ENTER)
        s.child.expect(r"\repochs  15 of 100 in [\d.]+ (m?)s  [\d.]+/s\r\n")
        s.send(loop % (1000, "") + ENTER)
        s.child.expect("left")
        s.send(CTRL_C)
        s.child.expect(r"epochs  \d+ of 1000 in ")
        s.child.expect("interrupted")

    def test_progress_values(self, s):
        s.send('for i in nacre.progress(24, "epochs") do ' + WAIT +
               " nacre.progress.set {loss = nacre.tensor(1 / i)} end" + ENTER)
        s.child.expect("left  loss 0[.][0-9]+ [\u2581-\u2588]+")
        s.child.expect(r"\repochs  24 in [\d.]+ s  [\d.]+/s  loss 0.04167\r\n")

    def test_progress_and_print(self, s):
        """What the loop prints has its lines for itself."""
        s.run("p, w = print, io.write")
        s.send('for i in nacre.progress(24, "epochs") do ' + WAIT +
               ' (i % 2 == 0 and print or io.write)("row ", i, "\\n") end' +
               ENTER)
        for _ in range(2):
            s.child.expect(r"epochs +\d+%[^\r]*left *\r")
            s.child.expect(r"\r +\rrow [\t ]*\d+[\t ]*\r\n")
        s.child.expect(r"epochs  24 in [\d.]+ s  [\d.]+/s\r\n")
        s.prompt()
        self.assertEqual(s.run('print == p and io.write == w and "same"'),
                         '"same"\n')

    def test_progress_below_an_open_line(self, s):
        """What has no line end yet is not overwritten."""
        s.send('for i in nacre.progress(24) do ' + WAIT +
               ' if i > 12 then io.write("row ", i) end end' + ENTER)
        s.child.expect(r"\r +\rrow 1[3-9](row \d+)*\r\n\r *\d+%  \d+/24")
        s.child.expect(r"row 24\r\n([^\n]*\r)?24 in [\d.]+ s")

    def test_live_plot(self, s):
        """It is drawn again in its place, and left there at the end."""
        s.run("log = nacre.history()")
        s.run(":set live log.loss")
        step = WAIT + " log:add {loss = 1 / i} "
        s.send("for i in nacre.progress(24) do " + step + "end" + ENTER)
        s.child.expect(r" log.loss\r\n +1 ")
        s.child.expect(r"\d/24  [\d.]+/s  [\d.]+ m?s left")
        s.child.expect("\x1b\\[(\\d+)A\r\x1b\\[J")
        self.assertEqual(int(s.child.match.group(1)), 13)
        s.child.expect(r" 24\r\n24 in [\d.]+ s  [\d.]+/s\r\n")
        s.prompt()
        s.send("for i = 1, 15 do " + step + " end print 'end'" + ENTER)
        s.child.expect(r" log.loss\r\n +1 ")
        s.child.expect("\x1b\\[13A\r\x1b\\[Jend\r\n +log.loss")
        s.child.expect(r" 39\r\n")
        s.prompt()
        s.run(":set live nothing")
        s.send("for i in nacre.progress(14) do " + WAIT + " end" + ENTER)
        s.child.expect("live: no plot of nothing: nothing is nil")
        s.prompt()
        self.assertRegex(s.run(":set live ("), "must be an expression such as")


if __name__ == "__main__":
    terminal.main()
