#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Signals at random moments: to a script that saves files, and to
`nacre --test`, also while it writes tests and reports.  The program ends by
the signal that it got; a file is whole, the old one or the new one; nothing
is left beside it, nor in the folder of temporary files, and no process. A
signal that is ignored when the program starts stays so.  Ctrl-C at a terminal
is shell/fuzz_sigint.py.

    tests/runner/fuzz_signals.py PROGRAM [seed=N] [seconds=N]

Each signal comes to each program at least once, in an order of the seed."""
import contextlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

PROGRAM = os.path.abspath(sys.argv[1])
PATIENCE = 300  # seconds until what has not come never will
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
           signal.SIGKILL)


def until(holds):
    end = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.002)
    return holds()


def processes(mark):
    """What runs with that in its environment: {process: command}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark.encode() in f.read().split(b"\0"):
                    with open("/proc/%s/cmdline" % pid, "rb") as g:
                        found[pid] = g.read()
        except OSError:
            pass  # it has ended, or is not ours
    return found


class Round:
    """A program in a folder of its own, which signals end."""
    FILES = {}
    statuses = ()  # with which it may have ended before they came

    def __init__(self, number, dice):
        self.folder = tempfile.mkdtemp()
        self.work, self.tmp = self.folder + "/work", self.folder + "/tmp"
        os.mkdir(self.work)
        os.mkdir(self.tmp)
        self.mark = "NACRE_FUZZED=%d.%d" % (os.getpid(), number)
        self.dice = dice
        self.begun = self.folder + "/begun"
        for name, text in self.FILES.items():
            with open(os.path.join(self.work, name), "w") as f:
                f.write(text)

    def environment(self):
        env = dict(os.environ, HOME=self.folder, TMPDIR=self.tmp,
                   XDG_STATE_HOME=self.folder + "/state", NACRE_CUDA="off",
                   BEGUN=self.begun)
        name, value = self.mark.split("=")
        env[name] = value
        return env

    def strike(self, first):
        """Signals until it ends; those that were sent."""
        if self.dice.random() < 0.8:  # else perhaps while it starts
            assert until(lambda: os.path.exists(self.begun)), "it has no start"
        time.sleep(self.dice.random() ** 3 * 0.3)
        sent = [first]
        self.child.send_signal(first)
        if self.dice.random() < 0.25:
            time.sleep(self.dice.random() ** 3 * 0.05)
            sent.append(self.dice.choice(SIGNALS))
            self.child.send_signal(sent[-1])
        return sent

    def run(self, first):
        with open(self.folder + "/out", "wb") as out:
            self.child = subprocess.Popen(
                [PROGRAM, *self.words], cwd=self.work, stdout=out,
                stderr=out, stdin=subprocess.DEVNULL, env=self.environment())
        sent = self.strike(first)
        try:
            self.child.wait(PATIENCE)
        finally:
            self.child.kill()
        with open(self.folder + "/out") as f:
            self.said = f.read()
        status = self.child.returncode
        assert -status in sent or status in self.statuses, (
            "it ended with %d after %s" % (status, sent))
        assert until(lambda: not processes(self.mark)), (
            "it left %s" % processes(self.mark))
        assert until(lambda: not os.listdir(self.tmp)), (
            "it left %s" % os.listdir(self.tmp))
        if signal.SIGKILL not in sent:
            litter = [x for x in os.listdir(self.work) if x.endswith(".tmp")]
            assert not litter, "it left %s" % litter
        self.check(sent)

    def clear(self):
        """Removes what a round that failed has left."""
        for pid in processes(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Saving(Round):
    """A script that saves a tensor of ones, of twos, of threes, ..."""
    SCRIPT = """
local format = %r
local options = {format = format}
for n = 1, math.huge do
  local t = nacre.full({80, 500}, n)
  if format == "npz" or format == "safetensors" then t = {t = t, u = t} end
  nacre.save("x." .. format, t, options)
  if n == 1 then io.open(os.getenv "BEGUN", "w"):close() end
end
"""
    LOAD = """
local t = nacre.load(arg[1])
for _, t in pairs(nacre.is_tensor(t) and {t} or t) do
  assert(t:numel() == 40000 and t:min():item() == t:max():item())
end
"""

    def __init__(self, form, *rest):
        super().__init__(*rest)
        self.path = os.path.join(self.work, "x." + form)
        self.words = ["-e", self.SCRIPT % form]

    def check(self, sent):
        if not os.path.exists(self.path):  # it did not come that far
            assert not os.path.exists(self.begun)
            return
        subprocess.run([PROGRAM, "-", self.path], input=self.LOAD.encode(),
                       check=True, timeout=PATIENCE)


class Ignoring(Saving):
    """The same under nohup(1): SIGHUP changes nothing."""

    def run(self, first):
        with open(self.folder + "/out", "wb") as out:
            self.child = subprocess.Popen(
                ["sh", "-c", 'trap "" HUP; exec "$0" "$@"', PROGRAM,
                 *self.words], cwd=self.work, stdout=out, stderr=out,
                env=self.environment())
        assert until(lambda: os.path.exists(self.begun)), "it has no start"
        self.child.send_signal(signal.SIGHUP)
        time.sleep(0.05)
        assert self.child.poll() is None, "SIGHUP ended it"
        self.child.terminate()
        assert self.child.wait(PATIENCE) == -signal.SIGTERM
        self.check([signal.SIGTERM])


class Testing(Round):
    """nacre --test of files of every kind, none of which ends."""
    BEGIN = 'io.open(os.getenv "BEGUN", "w"):close()'
    WAIT = "os.execute 'sleep 4321 & sleep 4321'"
    FILES = {
        "a.nacre": "> 1 + 1\n3\n> %s\n> %s\n" % (BEGIN, WAIT),
        "b_test.lua": """
for k = 1, 50 do
  test("case " .. k, function(t)
    nacre.save("scratch.npy", nacre.rand(50, 50))
    t.eq(k % 3, 0)
  end)
end
test("busy", function() while true do pcall(error) end end)
""",
        "c.lua": "print(1) " + WAIT, "c.out": "1\n"}

    def __init__(self, options, *rest):
        super().__init__(*rest)
        self.words = ["--test", "-j%d" % self.dice.randint(1, 4), *options]

    def whole(self, name, text):
        return text == self.FILES[name]

    def check(self, sent):
        for name in self.FILES:
            with open(os.path.join(self.work, name)) as f:
                text = f.read()
            assert self.whole(name, text), (name, text)
        report = os.path.join(self.work, "out.xml")
        if os.path.exists(report):
            xml.dom.minidom.parse(report)
        if "--json" in self.words and "{" in self.said and len(sent) == 1:
            outcome = json.loads(self.said[:self.said.rindex("}") + 1])
            assert outcome["interrupted"] == sent[0].name, outcome


class Updating(Testing):
    """nacre --test --update of many sessions, which soon writes them."""
    statuses = 0, 1
    FILES = {"a_test.lua": Testing.BEGIN,
             **{"u%d.nacre" % k: "--: values\n> nacre.ones(9) / 7\n> 1\n2\n"
                for k in range(40)}}

    def whole(self, name, text):
        return super().whole(name, text) or (
            text.startswith("--: values\n") and text.endswith("> 1\n1\n"))


PROGRAMS = [
    *(lambda *rest, form=form: Saving(form, *rest)
      for form in ("npy", "npz", "safetensors", "csv")),
    *(lambda *rest, words=words: Testing(words, *rest)
      for words in ((), ("--json", "--junit", "out.xml"), ("--tap",),
                    ("--cover", "--lcov", "out.info"))),
    lambda *rest: Updating(("--update",), *rest),
]


def main():
    option = {"seed": 1, "seconds": 5}
    for word in sys.argv[2:]:
        name, value = word.split("=")
        option[name] = int(value)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dice = random.Random(option["seed"])
    ignoring = Ignoring("npy", 0, dice)
    ignoring.run(signal.SIGHUP)
    ignoring.clear()
    begin, number = time.monotonic(), 0
    rounds = list(itertools.product(PROGRAMS, SIGNALS))
    while number == 0 or time.monotonic() - begin < option["seconds"]:
        dice.shuffle(rounds)
        for program, first in rounds:
            one = program(number, random.Random(dice.random()))
            number += 1
            try:
                one.run(first)
            except BaseException:
                print("round %d of seed %d: %s %s\n%s" % (
                    number, option["seed"], " ".join(one.words)[:200],
                    first.name, getattr(one, "said", "")[-2000:]))
                raise
            finally:
                one.clear()
            if number > len(rounds) and (
                    time.monotonic() - begin > option["seconds"]):
                break
    print("fuzz_signals: %d rounds" % number)


if __name__ == "__main__":
    main()
