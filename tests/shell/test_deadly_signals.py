#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_deadly_signals.py - signals that end the program leave no temporary file;
# those that say that a call has failed end no prompt.

import os
import signal
import subprocess
import time

import launch

PASSED = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
          signal.SIGTTOU, signal.SIGCONT, signal.SIGCHLD, signal.SIGURG,
          signal.SIGWINCH, signal.SIGINT, signal.SIGXFSZ}
DEADLY = sorted(set(signal.Signals) - PASSED) + [signal.SIGRTMIN + 3]
SAVES = "t = nacre.ones(1e6):mul(2) while true do nacre.save('a.npy', t) end"
TRIES = {signal.SIGBUS: 40}         # threads that compute take it, too


def is_sanitized():
    with open(launch.NACRE, "rb") as file:
        return b"__asan_init" in file.read()


def standard_signals():
    """For a child: as a shell with job control starts it."""
    for number in {*DEADLY, signal.SIGXFSZ}:
        signal.signal(number, signal.SIG_DFL)


class DeadlySignals(launch.Program):
    def temporaries(self):
        return [name for name in os.listdir(self.home) if ".tmp" in name or
                name.startswith("nacre")]

    def start(self, *words, **variables):
        p = subprocess.Popen([launch.NACRE, *words], cwd=self.home,
                             env=self.env(**variables),
                             stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             preexec_fn=standard_signals)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def until(self, p, there):
        """Waits for a temporary file; gives up when the program has ended."""
        while p.poll() is None and not there():
            time.sleep(0.001)

    def test_no_temporary_file_of_a_save_stays(self):
        mine = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
        for number in DEADLY:
            if is_sanitized() and number in mine:
                continue                # AddressSanitizer has handlers
            for _ in range(TRIES.get(number, 3)):
                p = self.start("-e", SAVES)
                self.until(p, self.temporaries)
                os.kill(p.pid, number)
                self.assertEqual(p.wait(60), -number)
                self.assertEqual(self.temporaries(), [], number)

    # ---- what ends no prompt

    def prompt(self, *lines, limit=""):
        """What a prompt says to these lines; its exit status."""
        p = subprocess.run(["/bin/bash", "-c", limit + 'exec "$0" -i --no-history',
                            launch.NACRE], input="\n".join(lines), text=True,
                           env=self.env(), cwd=self.home, timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           preexec_fn=standard_signals, check=False)
        return p.returncode, p.stdout

    def test_a_closed_pipe_is_an_error_of_the_write(self):
        status, out = self.prompt(
            'f = io.popen("true", "w")',
            'for i = 1, 1e5 do f:write("xxxxxxxxxx") end',
            'f:write(("x"):rep(1e5))',
            'nacre.save(io.popen("true", "w"), nacre.ones(1e6))',
            '"still " .. "here"')
        self.assertEqual(status, 0, out)
        self.assertIn("nil\tBroken pipe\t32", out.replace('"', ""))
        self.assertIn("still here", out)

    def test_children_have_the_standard_actions(self):
        self.file("ask", "for s in PIPE XFSZ XCPU USR1 TERM\n"
                  "do (kill -$s $BASHPID; echo survived); done; echo asked\n")
        for words in (["-e"], ["-i", "--no-history", "-e"]):
            for line in ('os.execute "bash ask"',
                         'print(io.popen("bash ask"):read "a")'):
                got = self.run_(*words, line, text="")
                self.assertEqual(got[1].split()[0], "asked", got)

    def test_limits_of_the_process_end_no_prompt(self):
        status, out = self.prompt(
            "keep = 6 * 7",
            "pcall(nacre.save, 'a.npy', nacre.ones(1e6))",
            "f = io.open('b', 'w') for i = 1, 1e4 do f:write(('x'):rep(1e3)) end",
            "nacre.ones(4):tofile('c') keep",
            limit="ulimit -f 1000; ")
        self.assertEqual(status, 0, out)
        self.assertIn("File too large", out)
        self.assertIn("42", out)
        self.assertEqual(self.temporaries(), [])
        status, out = self.prompt("keep = 6 * 7", "while true do end", "keep",
                                  limit="ulimit -St 1; ")
        self.assertIn("interrupted", out)
        self.assertIn("42", out)
        self.assertEqual(status, 0, out)

    def test_scripts_end_by_them(self):
        got = self.shell("set -o pipefail; "
                         '"$0" -e "while true do print(1) end" | head -1')
        self.assertEqual(got[0], 128 + signal.SIGPIPE)
        got = self.shell('ulimit -St 1; exec "$0" -e "while true do end"')
        self.assertEqual(got[0], -signal.SIGXCPU)
        got = self.shell("ulimit -f 1000; \"$0\" -e 'print(pcall(nacre.save, "
                         "\"a.npy\", nacre.ones(1e6)))'")
        self.assertEqual(got[0], 0)
        self.assertIn("File too large", got[1])

    def test_a_prompt_without_anybody_ends(self):
        """Its input is no terminal, its output has no reader."""
        got = self.shell("set -o pipefail; yes 'print(1)' | "
                         '"$0" -i --no-history 2>/dev/null | head -3')
        self.assertEqual(got[0], 1)


if __name__ == "__main__":
    launch.main()
