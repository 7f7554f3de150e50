#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# runner_case.py - the base class of the tests of nacre --test: a home, a folder
# of tests, and ways to run the program over them.

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "shell"))
from launch import Home, surroundings  # noqa: E402

NACRE = ""
PASSED = "> 1 + 1\n2\n"
FAILED = "> 1 + 1\n3\n"


class Case(Home):
    cuda = "off"  # NACRE_CUDA of the tests

    def setUp(self):
        super().setUp()
        self.home = os.path.realpath(self.home)
        self.tests = os.path.join(self.home, "tests")
        self.tmp = os.path.join(self.home, "tmp")
        os.mkdir(self.tests)
        os.mkdir(self.tmp)

    def env(self, **variables):
        more = {"NACRE_CUDA": self.cuda} if self.cuda is not None else {}
        return surroundings(self.home, **{"TMPDIR": self.tmp, **more,
                                          **variables})

    def nacre(self, *words, text=None, wait=60, **variables):
        """Gives (status, stdout, stderr) of nacre --test WORDS."""
        p = subprocess.run(
            [NACRE, "--test", *words], env=self.env(**variables),
            cwd=self.tests, input=text or "", timeout=wait, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(os.listdir(self.tmp), [], "folders were left")
        return p.returncode, p.stdout, p.stderr

    def program(self, *words, **options):
        """Runs nacre WORDS in the folder of tests."""
        return subprocess.run(
            [NACRE, *words], env=self.env(), encoding="utf-8", timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            **{"cwd": self.tests, **options})

    def typed(self, text, *words):
        """What a session prints in which this is typed."""
        return self.program("-E", "-q", "-i", *words, input=text).stdout

    def change(self, name, old, new):
        text = self.read(name)
        self.assertIn(old, text)
        self.file(name, text.replace(old, new))

    def file(self, name, *rest):
        return super().file(os.path.join(self.tests, name), *rest)

    def read(self, name):
        return super().read(os.path.join(self.tests, name))

    def one(self, text, *words, name="a.nacre", **variables):
        """Runs one file of this text; gives the status and what is said."""
        self.file(name, text)
        status, out, err = self.nacre(*words, name, **variables)
        self.assertEqual(err, "")
        return status, out

    def passes(self, text, *words, **options):
        status, out = self.one(text, *words, **options)
        self.assertEqual(status, 0, out)
        return out

    def fails(self, text, *words, **options):
        status, out = self.one(text, *words, **options)
        self.assertEqual(status, 1, out)
        return out

    def each_fails(self, form, cases, *words, **options):
        """Each text of (text, says) fails within the form, and says that."""
        for text, says in cases:
            out = self.fails(form % text, *words, **options)
            self.assertIn(says, out, text)


def main():
    """Runs the tests of the file that calls it: FILE NACRE [OPTIONS]."""
    global NACRE
    NACRE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
