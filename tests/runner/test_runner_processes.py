#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_runner_processes.py - nacre --test among programs: the reports that it
# writes for them, jobs side by side, signals; no process and no file is left.
#
#   test_runner_processes.py NACRE [unittest options]

import json
import os
import resource
import signal
import subprocess
import time
import xml.dom.minidom

import runner_case
from runner_case import Case, FAILED, PASSED

# Of no other run of these tests, as processes of this user are listed.
SLEEP, SEED = "sleep 4321.%07d" % os.getpid(), "9%07d" % os.getpid()


class Processes(Case):
    # ---- for programs

    def test_formats(self):
        self.file("a.nacre", FAILED.replace("1 + 1", "'<&\\1'"))
        self.file("b.nacre", PASSED)
        self.file("c.nacre", '--: skip "a \\"b\\" <c>"\n')
        self.file("d.nacre", '--: xfail "later"\n' + FAILED)
        out = self.nacre("--tap")[1].split("\n")
        self.assertEqual(out[:3], ["TAP version 14", "1..4",
                                   "not ok 1 - a.nacre [cpu]"])
        self.assertIn("ok 3 - c.nacre [cpu] # SKIP a \\\"b\\\" <c>", out)
        self.assertIn("not ok 4 - d.nacre [cpu] # TODO later", out)
        got = json.loads(self.nacre("--json")[1])["results"]
        self.assertEqual([r["status"] for r in got],
                         ["fail", "pass", "skip", "xfail"])
        self.assertEqual(got[0]["line"], 2)
        self.assertIn("FAIL a.nacre:2", got[0]["text"])
        status, out, err = self.nacre("--junit", "out.xml")
        suite = xml.dom.minidom.parse(os.path.join(self.tests, "out.xml")) \
            .getElementsByTagName("testsuite")[0]
        self.assertEqual([suite.getAttribute(k) for k in
                          ("tests", "failures", "skipped")], ["4", "1", "2"])
        self.assertEqual(len(suite.getElementsByTagName("testcase")), 4)
        self.assertEqual(self.nacre("--junit", "no/such/out.xml")[0], 1)

    def test_all_that_differs(self):
        """Some of it for people, all of it for programs."""
        self.file("a.nacre", "".join("> 'in%d'\n\"out\"\n" % n
                                     for n in range(20)))
        out = self.nacre()[1]
        self.assertIn("... 17 more inputs differ, in lines 7, 9, 11, 13, 15, "
                      "17, 19, 21, ...\n", out)
        self.assertNotIn("in19", out)
        self.nacre("--junit", "out.xml")
        for out in (self.nacre("--json")[1], self.nacre("--tap")[1],
                    self.read("out.xml")):
            for n in range(20):
                self.assertIn("in%d" % n, out)

    def test_colours(self):
        self.file("a.nacre", FAILED)
        red, green, off = "\x1b[31m", "\x1b[32m", "\x1b[0m"
        for words, variables, colours in (
                ((), {}, False), (("--color=always",), {}, True),
                (("--color", "always"), {"NO_COLOR": "1"}, True),
                ((), {"CLICOLOR_FORCE": "1"}, True),
                ((), {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
                (("--color=never",), {"CLICOLOR_FORCE": "1"}, False),
                (("--color=always", "--json"), {}, False),
                (("--color=always", "--tap"), {}, False)):
            out = self.nacre(*words, **variables)[1]
            if not colours:
                self.assertNotIn("\x1b", out, words)
                continue
            self.assertIn("%s-   2  3%s\n%s+   2  2   abs" %
                          (red, off, green), out, words)
        self.assertEqual(self.nacre("--color=some")[0], 2)

    def test_closed_output(self):
        for name in "abc":
            self.file(name + ".nacre", "> os.execute 'sleep 0.3';\n")
        p = self.started("-j1", sleeps=0)
        p.stdout.read(1)
        p.stdout.close()
        p.stderr.read()
        p.stderr.close()
        self.assertEqual(p.wait(60), -signal.SIGPIPE)
        self.assertEqual(os.listdir(self.tmp), [])

    def test_ci(self):
        self.file("a.nacre", FAILED)
        out = self.nacre("--ci", GITHUB_ACTIONS="true")[1]
        self.assertIn("::error file=a.nacre,line=2::FAIL a.nacre:2", out)
        self.assertNotIn("::error", self.nacre("--ci")[1])
        self.assertNotIn("\x1b", out)

    # ---- several at once

    def test_jobs_run_side_by_side(self):
        for name in "abcd":
            self.file(name + ".nacre", "> os.execute 'sleep 0.5';\n")
        begin = time.time()
        self.assertEqual(self.nacre("-j4")[0], 0)
        side = time.time() - begin
        begin = time.time()
        self.assertEqual(self.nacre("-j1")[0], 0)
        self.assertGreater(time.time() - begin, 2.0)
        self.assertLess(side, time.time() - begin)

    def started(self, *words, sleeps=1):
        """The runner, when so many tests of it have come to their sleep."""
        p = subprocess.Popen([runner_case.NACRE, "--test", *words], env=self.env(),
                             cwd=self.tests, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, encoding="utf-8",
                             preexec_fn=lambda: resource.setrlimit(
                                 resource.RLIMIT_CORE, (0, 0)))
        for _ in range(1000):
            time.sleep(0.05)
            if self.processes().count("\n" + SLEEP) >= sleeps:
                break
        return p

    def processes(self):
        return subprocess.run(["ps", "-eo", "args"], encoding="utf-8",
                              stdout=subprocess.PIPE).stdout

    def test_signals_leave_nothing(self):
        self.file("a.nacre", "> os.execute '%s'\n" % SLEEP)
        self.file("b_test.lua", "test('x', function() while true do end end)")
        for sig in ("INT", "TERM", "HUP", "QUIT", "USR1", "ALRM", "PIPE",
                    "KILL"):
            sig = getattr(signal, "SIG" + sig)
            p = self.started("-j2", "--seed", SEED)
            p.send_signal(sig)
            p.communicate(timeout=60)
            self.assertEqual(p.returncode, -sig)
            for _ in range(100):  # those of a killed runner need a moment
                left = self.processes()
                if (SLEEP not in left and SEED not in left and
                        not os.listdir(self.tmp)):
                    break
                time.sleep(0.05)
            self.assertEqual(os.listdir(self.tmp), [], sig)
            self.assertNotIn(SLEEP, left, sig)
            self.assertNotIn(SEED, left, sig)

    def test_a_signal_ends_what_has_no_report(self):
        self.file("a.nacre", "> os.execute '%s'\n" % SLEEP)
        for words in ("--update", "--review"):
            p = self.started(words)
            p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=60)
            self.assertEqual((p.returncode, err),
                             (-signal.SIGINT, "error: interrupted\n"))
            self.assertEqual(os.listdir(self.tmp), [])

    def test_a_signal_does_not_lose_what_failed(self):
        sleep = "os.execute '%s'" % SLEEP
        self.file("a_test.lua", "test('one', function(t) t.eq(1, 2) end)\n"
                  "test('two', function(t) end)\n"
                  "test('three', function(t) %s end)\n" % sleep)
        self.file("b.nacre", FAILED + "> %s\n> 3\n4\n" % sleep)
        self.file("c.nacre", PASSED + "> %s\n> 3\n4\n" % sleep)
        self.file("d.nacre", FAILED)
        for sig, words in ((signal.SIGINT, []), (signal.SIGTERM, ["--tap"]),
                           (signal.SIGINT, ["--json"])):
            p = self.started("-j3", "--junit", "out.xml", *words, sleeps=3)
            p.send_signal(sig)
            p.send_signal(sig)  # as timeout(1) does
            out, err = p.communicate(timeout=60)
            self.assertEqual(p.returncode, -sig)
            self.assertIn("interrupted by %s, 4 files not finished"
                          % sig.name, err)
            self.assertIn("got 1, expected 2", out)
            suite = xml.dom.minidom.parse(os.path.join(self.tests, "out.xml"))
            names = [(c.getAttribute("file"), c.getAttribute("name"),
                      len(c.getElementsByTagName("failure")))
                     for c in suite.getElementsByTagName("testcase")]
            self.assertEqual(names, [("a_test.lua", "cpu: one", 1),
                                     ("a_test.lua", "cpu: two", 0),
                                     ("b.nacre", "cpu", 1)])
            said = {p.getAttribute("name"): p.getAttribute("value")
                    for p in suite.getElementsByTagName("property")}
            self.assertEqual(said, {"interrupted": sig.name,
                                    "unfinished": "4"})
            told, = suite.getElementsByTagName("system-err")
            self.assertIn("4 files not finished", told.firstChild.data)
            if words == ["--json"]:
                outcome = json.loads(out)
                self.assertEqual(len(outcome["results"]), 3)
                self.assertEqual((outcome["interrupted"],
                                  outcome["unfinished"]), (sig.name, 4))
            elif words == ["--tap"]:
                self.assertIn("Bail out! interrupted by SIGTERM", out)
            else:
                self.assertIn("FAIL b.nacre:2", out)
                self.assertIn("2 failed, 1 passed", out)
        self.file("b.nacre", PASSED)
        self.assertIn("1 failed", self.nacre("--last-failed", "-k", "one")[1])


if __name__ == "__main__":
    runner_case.main()
