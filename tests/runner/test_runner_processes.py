#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_runner_processes.py - nacre --test among programs: the reports that it
# writes for them, jobs side by side, signals; no process and no file is left.

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


# A test that writes the most memory that the runner has had into a file; the
# runner is the parent of the parent of the test.
PEAK = """\
local function status(pid, field)
  for line in io.lines("/proc/" .. pid .. "/status") do
    local text = line:match("^" .. field .. ":%%s*(%%d+)")
    if text then return text end
  end
end
test("peak", function(t)
  local runner = status(status("self", "PPid"), "PPid")
  io.open("%s", "w"):write(status(runner, "VmHWM")):close()
end)
"""


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
        self.file("e_test.lua", "test('a\\1\\27[8m#b', function(t) "
                  "t.eq('x\\7', 1) end)\n"
                  "test('s', function(t) t.skip 'no\\27\\nway' end)\n")
        tap = self.nacre("--tap", "e_test.lua")[1]
        self.assertIn("not ok 1 - e_test.lua [cpu]: a\\\\x01\\\\x1b[8m\\#b\n",
                      tap)
        self.assertIn("# SKIP no\\x1b way\n", tap)
        self.assertNotRegex(tap, "[\0-\x09\x0b-\x1f]")
        self.assertNotRegex(self.nacre("e_test.lua")[1],
                            "[\0-\x09\x0b-\x1f]")
        os.remove(os.path.join(self.tests, "e_test.lua"))
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

    # ---- the runner's own memory

    def test_long_output_is_not_held(self):
        """Of a test that prints very much, the ends."""
        write = "local s = ('%s'):rep(1 << 17) for i = 1, %d do io.write(s) end"
        self.file("a_test.lua", "".join(
            "test('%d', function(t) %s error 'so' end)\n" % (
                k, write % (unit, 320 // len(unit))) for k, unit in
            enumerate(("x", "1", "1 ", "1.5,", "line\\n", " ", "\\n"))))
        self.file("b.nacre", "".join("> %s\nfirst\n...\n" % (write % (unit, 320))
                                     for unit in ("y ", "2", "7\\n")))
        self.file("c.lua", "print 'begin' for i = 1, 1e6 do print(i) end")
        self.file("c.out", "begin\n1\n...\n999999\n1000000\n")
        self.file("d_test.lua", "test('a', function() "
                  "error(('long '):rep(1 << 18)) end)")
        self.file("e_test.lua", PEAK % os.path.join(self.home, "peak"))
        status, out, err = self.nacre("-j1", "--timeout", "10m", wait=600)
        self.assertIn("9 failed, 2 passed", out)
        self.assertGreater(out.count(" bytes left out ..."), 4, out[:2000])
        self.assertLess(len(out), 300000)
        if "ASAN_OPTIONS" not in os.environ:
            with open(os.path.join(self.home, "peak")) as f:
                self.assertLess(int(f.read()), 64 << 10)

    # ---- several at once

    def test_jobs_run_side_by_side(self):
        here = os.path.join(self.home, "here")
        for name in "abcd":  # each waits for all others
            self.file(name + ".nacre", "> os.execute('mkdir -p %s; touch %s/%s;"
                      " until [ $(ls %s | wc -l) = 4 ]; do sleep 0.05; done');\n"
                      % (here, here, name, here))
        self.assertEqual(self.nacre("-j4")[0], 0)
        for name in "abcd":  # each is alone
            self.file(name + ".nacre", "> os.execute('mkdir %s/x && sleep 0.1 && "
                      "rmdir %s/x')\ntrue\t\"exit\"\t0\n" % (here, here))
        self.assertEqual(self.nacre("-j1")[0], 0)

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

    def test_the_processes_of_a_test_end_with_it(self):
        """Also those in a session of their own, and those whose parent has
        ended, however the test did."""
        starts = ("setsid %s &", "(setsid %s &) ; true", "%s &",
                  "setsid sh -c '%s & %s' &", "nohup setsid %s >x 2>&1 &")
        ends = ("", "t.ok(false)", "os.exit(true)", "os.execute "
                "'kill -KILL $PPID'", "while true do end")
        text = ""
        for k, start in enumerate(starts):
            for n, end in enumerate(ends[:4 if k > 0 else 5]):
                text += ("test('%d %d', function(t) os.execute(%s) "
                         "os.execute 'sleep 0.05' %s end)\n" %
                         (k, n, '"%s"' % start.replace("%s", SLEEP), end))
        self.file("a_test.lua", text)
        self.file("b.nacre", "> os.execute \"setsid %s &\";\n> 1\n1\n" % SLEEP)
        self.file("c.lua", "os.execute 'setsid %s &'\n" % SLEEP)
        self.file("c.out", "")
        out = self.nacre("--timeout", "3s", "-j4")[1]
        self.assertNotIn(SLEEP, self.processes())
        self.assertIn("16 failed, 7 passed", out)

    def test_a_process_serves_its_test_and_no_other_disturbs(self):
        for name in "abcd":
            self.file(name + "_test.lua", "test('x', function(t)\n"
                      "  os.execute 'mkfifo p; setsid sh -c "
                      "\"sleep 0.5; echo %s >p\" &'\n"
                      "  t.eq(io.lines('p')(), '%s')\nend)\n"
                      "test('y', function(t) t.ok(true) end)\n" % (name, name))
        self.assertEqual(self.nacre("-j4")[0], 0)

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
