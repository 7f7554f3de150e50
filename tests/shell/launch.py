# SPDX-License-Identifier: MIT
#
# launch.py - the program run from a test: in a home of its own, with nothing
# around it but what the test asks for.

import os
import subprocess
import sys
import tempfile
import unittest

NACRE = ""
PATIENCE = 300  # seconds; only what hangs takes so long, on any machine


def surroundings(home, **variables):
    """The environment: a terminal that can do everything, an empty home."""
    env = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm",
           "LC_ALL": "C.UTF-8", "INPUTRC": "/dev/null", "NACRE_PAGER": "off"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
        env[name] = os.environ.get(name, "")
    env.update(variables)
    return env


class Home(unittest.TestCase):
    """A test with an empty home, self.home."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def file(self, name, text="", mode=0o644):
        """Writes a file of the home; gives its path."""
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.home, name), encoding="utf-8") as f:
            return f.read()


class Program(Home):
    """A test of the program without a terminal."""

    def env(self, **variables):
        return surroundings(self.home, **variables)

    def run_(self, *args, text=None, **variables):
        """Gives (status, stdout, stderr); text goes to stdin."""
        options = {"input": text} if text is not None else {
            "stdin": subprocess.DEVNULL}
        p = subprocess.run([NACRE, *args], env=self.env(**variables),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=PATIENCE, encoding="utf-8", cwd=self.home,
                           **options)
        return p.returncode, p.stdout, p.stderr

    def shell(self, line):
        """The same of a line of bash, in which "$0" is the program."""
        p = subprocess.run(["/bin/bash", "-c", line, NACRE], env=self.env(),
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=PATIENCE,
                           encoding="utf-8", cwd=self.home)
        return p.returncode, p.stdout, p.stderr


def main():
    """For a test file run as a script: FILE NACRE [unittest options]."""
    global NACRE
    if len(sys.argv) < 2:
        sys.exit("usage: %s NACRE [unittest options]" % sys.argv[0])
    NACRE = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
