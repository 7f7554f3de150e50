# SPDX-License-Identifier: MIT
#
# terminal.py - the shell behind a pseudo-terminal, for the tests of it.

import contextlib
import functools
import glob
import os
import re
import sys
import time
import unittest

try:
    import pexpect
except ImportError:
    print("skip: python3-pexpect is not installed")
    sys.exit(77)

from launch import Home, surroundings
from screen import Screen

PROGRAM = ""
UP, DOWN, TAB, ENTER = "\x1b[A", "\x1b[B", "\t", "\r"
CTRL_C, CTRL_D, CTRL_R, CTRL_Z = "\x03", "\x04", "\x12", "\x1a"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
READY = "\x1b\\[\\?2004h"  # readline asks for bracketed paste at each prompt
TAKEN = "\x1b\\[\\?2004l"  # and no longer once it has a line
PASTE_OFF = "\x1b[?2004l"   # and no longer when the line is accepted


def clean(text):
    """What stays on the screen, more or less: no escapes, no fresh line."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    text = re.sub(r"% +\r", "", text)
    return text.replace("\r\n", "\n").replace("\r", "")


class Log:
    """All that came, as a file that pexpect writes to."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


class Session:
    def __init__(self, home, *args, rows=24, columns=80, **variables):
        env = surroundings(home, **{"NO_COLOR": "1", **variables})
        # of these terminfo may know nothing
        self.dumb = env["TERM"] in ("dumb", "xterm-kitty")
        self.log, self.shown = Log(), 0
        self.screen = Screen(rows, columns)
        # through env, for pexpect splits a lone command at its blanks
        self.child = pexpect.spawn("/usr/bin/env", [PROGRAM, *args], env=env,
                                   timeout=60, dimensions=(rows, columns),
                                   encoding="utf-8")
        self.child.delaybeforesend = None
        self.child.logfile_read = self.log
        self.greeting = self.prompt()

    def show(self, upto):
        """The screen gets what came, up to a place in it."""
        self.screen.feed(self.log.text[self.shown:upto])
        self.shown = max(self.shown, upto)

    def prompt(self):
        """Waits for the prompt; gives what stands before it, from where the
        last thing that a test waited for was."""
        if self.dumb:
            self.child.expect("> $")
            return clean(self.child.before)
        self.child.expect(READY)
        end = len(self.log.text) - len(self.child.buffer)
        begin = end - len(self.child.before) - len(self.child.after)
        self.show(begin)
        row, column = self.screen.place(), self.screen.x
        self.show(end)
        text = self.screen.since(row, self.screen.place())[column:]
        self.child.expect("> ")
        return re.sub("%\n? *$", "", text)

    def send(self, keys):
        self.child.send(keys)

    def run(self, text):
        """Types a block; gives what it printed, without its echo."""
        self.child.send(text + ENTER)
        out = self.prompt()
        return out.split("\n", 1)[1] if "\n" in out else ""

    def waits(self):
        """Whether each thread of the program sleeps; a program that a busy
        machine did not let run yet does not."""
        states = []
        for path in glob.glob("/proc/%d/task/*/stat" % self.child.pid):
            with contextlib.suppress(OSError), open(path) as file:
                states.append(file.read().rpartition(")")[2].split()[0])
        return all(state in "SZX" for state in states)

    def raw(self, seconds=0.2, patience=20):
        """Everything that comes until nothing does while the program waits, or
        has not done so for long, with its escapes."""
        out, self.child.buffer = self.child.buffer, ""
        end = time.monotonic() + patience
        while True:
            try:
                out += self.child.read_nonblocking(4096, seconds)
            except pexpect.EOF:
                return out
            except pexpect.TIMEOUT:
                if self.waits() or time.monotonic() > end:
                    return out

    def settle(self, seconds=0.3):
        """What stands on the screen then, from the row on where the cursor
        was."""
        if self.dumb:
            return clean(self.raw(seconds))
        self.show(len(self.log.text) - len(self.child.buffer))
        row = self.screen.place()
        self.raw(seconds)
        self.show(len(self.log.text))
        return self.screen.since(row)

    def press(self, keys, seconds=0.08):
        """Types keys; gives what comes, which the screen shows then."""
        self.child.send(keys)
        came = self.raw(seconds)
        self.show(len(self.log.text))
        return came

    def expect(self, text):
        """Waits for exactly this text."""
        self.child.expect_exact(text)

    def sees(self, pattern):
        """Waits until a row that the screen shows from now on matches; what
        comes behind it can be waited for."""
        end = time.monotonic() + 60
        row = None
        while True:
            if self.child.buffer == "":
                try:
                    self.child.buffer = self.child.read_nonblocking(4096, 0.1)
                except pexpect.TIMEOUT:
                    if time.monotonic() > end:
                        raise
                    continue
            came = re.match("[^\n\x1b]+|\x1b[^\n\x1b]*|\n", self.child.buffer)
            self.child.buffer = self.child.buffer[came.end():]
            if row is None:
                row = self.screen.place()
            self.show(len(self.log.text) - len(self.child.buffer))
            if re.search(pattern, self.screen.since(row)):
                return

    def drop(self):
        """Ctrl-C at the prompt: the line is dropped."""
        self.send(CTRL_C)
        self.prompt()

    def end(self, keys=""):
        """Types keys that end the program; gives its exit status, or the
        number of the signal that ended it, negative."""
        self.send(keys)
        self.child.expect(pexpect.EOF)
        self.child.wait()  # close would kill what still searches for leaks
        self.child.close()
        if self.child.signalstatus is not None:
            return -self.child.signalstatus
        return self.child.exitstatus

    def quit(self):
        return self.end(CTRL_D)


def with_session(test):
    """A test that takes a session is given one."""
    @functools.wraps(test)
    def run(self):
        test(self, self.open())
    return run if test.__code__.co_argcount == 2 else test


class Shell(Home):
    """A test of the shell at a terminal."""

    def __init_subclass__(cls):
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, with_session(test))

    def open(self, *args, **options):
        s = Session(self.home, *args, **options)
        self.addCleanup(s.child.close, force=True)
        return s

    def job_shell(self, **variables):
        """A shell with job control that has started the program."""
        env = surroundings(self.home, PS1="sh$ ", NO_COLOR="1",
                           PATH="/usr/bin:/bin", **variables)
        c = pexpect.spawn("/bin/sh", ["-i", "-m"], env=env, timeout=60,
                          encoding="utf-8", dimensions=(24, 80))
        self.addCleanup(c.close, force=True)
        c.expect_exact("sh$ ")
        c.send('"%s" -q --no-rc' % PROGRAM + ENTER)
        c.expect(READY)
        c.expect_exact("> ")
        return c

    HISTORY = ".local/state/nacre/history"

    def entries(self):
        """The blocks in the history file."""
        if not os.path.exists(os.path.join(self.home, self.HISTORY)):
            return []
        return re.split(r"(?m)^#\d+\n", self.read(self.HISTORY))[1:]

    def shows(self, s, *pairs):
        """Each pair is a block and what it prints."""
        for typed, printed in pairs:
            self.assertEqual(s.run(typed), printed, typed)

    def timed(self, s, keys, wait=0.3):
        """Types, presses Ctrl-C a little after the line is taken; gives what
        comes then."""
        s.send(keys)
        if keys.endswith(ENTER) and not s.dumb:
            s.child.expect(TAKEN)
        time.sleep(wait)
        s.send(CTRL_C)
        return s.prompt()


def needs_readline():
    """Takes the program from the command line; ends where it edits no lines."""
    global PROGRAM
    if len(sys.argv) < 2:
        sys.exit("usage: %s NACRE [unittest options]" % sys.argv[0])
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    if "editor    readline" not in os.popen("'%s' -V" % PROGRAM).read():
        print("skip: built without readline")
        sys.exit(77)


def main():
    """For a test file run as a script: FILE NACRE [unittest options]."""
    needs_readline()
    unittest.main()
