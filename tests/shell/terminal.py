# SPDX-License-Identifier: MIT
#
# terminal.py - the shell behind a pseudo-terminal, for the tests of it.

import os
import re
import sys
import tempfile
import time
import unittest

try:
    import pexpect
except ImportError:
    print("skip: python3-pexpect is not installed")
    sys.exit(77)

from launch import surroundings

PROGRAM = ""
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
        env = surroundings(home, **{"NO_COLOR": "1", **variables})
        self.dumb = env["TERM"] == "dumb"
        # through env, for pexpect splits a lone command at its blanks
        self.child = pexpect.spawn("/usr/bin/env", [PROGRAM, *args], env=env,
                                   timeout=60, dimensions=(24, columns),
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

    def timed(self, s, keys, wait=0.3):
        """Types, presses Ctrl-C a little later; gives what comes then."""
        s.send(keys)
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
