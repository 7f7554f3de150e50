#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_matrix.py - where the program runs: at a terminal or in a pipe, with and
# without colours, 40 columns, no UTF-8, stdin closed, a full disk, a reader
# that leaves.  And the options that change how it runs.

import os
import pty
import re
import select
import time

import launch
from launch import Program

ESCAPE = "\x1b"
# Values, an error, a note, a table, a picture of characters, help.
SESSION = ("1 + 1\nnacre.linspace(0, 1, 40)\nnil\nnosuch()\nlocal x = 2\n"
           "'\\u{e9}'\n{1, 2, {3}}\n?sum\n:help\n:whos\n:set\n"
           "io.write 'no newline'\nerror 'last'\n")


class Matrix(Program):
    def terminal(self, *args, keys=SESSION, columns=80, **variables):
        """All that a session at a terminal prints, and its exit status."""
        env = self.env(COLUMNS=str(columns), **variables)
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(launch.NACRE, [launch.NACRE, *args], env)
        os.write(fd, (keys + ":quit\n").replace("\n", "\r").encode())
        out = self.until_end(fd)
        status = os.waitpid(pid, 0)[1]
        os.close(fd)
        return os.waitstatus_to_exitcode(status), out

    def until_end(self, fd):
        """What comes until nobody holds the terminal any more."""
        out, end = b"", time.time() + 20
        while select.select([fd], [], [], max(0, end - time.time()))[0]:
            try:
                got = os.read(fd, 65536)
            except OSError:
                got = b""
            if not got:
                return out.decode()
            out += got
        self.fail("no end: " + out.decode(errors="replace")[-400:])

    # ---- where it runs

    def test_terminal(self):
        status, out = self.terminal("-q")
        self.assertEqual(status, 0)
        for text in ("float32[40]", "no variable 'nosuch'", "last",
                     ESCAPE + "[31m", "\u2588"):
            self.assertIn(text, out)

    def test_colours_off(self):
        status, out = self.terminal("-q", NO_COLOR="1")
        self.assertEqual(status, 0)
        self.assertNotRegex(out, "\x1b\\[[0-9;]*m")
        self.assertIn("no variable 'nosuch'", out)

    def test_dumb(self):
        status, out = self.terminal("-q", TERM="dumb")
        self.assertEqual(status, 0)
        self.assertNotIn(ESCAPE, out)
        self.assertIn("no variable 'nosuch'", out)

    def test_no_utf8(self):
        for options, variables in ((["--ascii"], {}), ([], {"LC_ALL": "C"})):
            status, out = self.terminal("-q", *options, TERM="dumb",
                                        **variables)
            self.assertEqual(status, 0)
            out.encode("ascii")
            self.assertIn(r"\xC3\xA9", out)

    def test_forty_columns(self):
        status, out = self.terminal("-q", "--width", "40", TERM="dumb",
                                    NO_COLOR="1", columns=40)
        self.assertEqual(status, 0)
        part = out[out.index("float32[40]"):out.index("nosuch()")]
        for line in part.replace("\r", "").split("\n"):
            self.assertLessEqual(len(line), 40, line)

    def test_transcripts_hold_no_escapes(self):
        """P13"""
        for variables in ({}, {"TERM": "dumb"}, {"NO_COLOR": "1"},
                          {"LC_ALL": "C"}):
            status, out, err = self.run_("-i", text=SESSION, **variables)
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn(ESCAPE, out)
            self.assertIn("error: no variable 'nosuch'", out)

    def test_output_elsewhere(self):
        """P13: nacre | tee: the keyboard is a terminal, stdout is none."""
        env = self.env()
        pid, fd = pty.fork()
        if pid == 0:
            os.execve("/bin/sh", ["sh", "-c", '"$0" -q | cat > "$HOME/log"',
                                  launch.NACRE], env)
        os.write(fd, b"6 * 7\r:quit\r")
        self.until_end(fd)
        os.waitpid(pid, 0)
        os.close(fd)
        self.assertEqual(self.read("log"), "42\n")

    def test_closed_stdin(self):
        for line, status, says in (
                ('"$0" <&-', 1, "cannot read stdin"),
                ('"$0" -i -q <&-', 0, ""), ('"$0" -p 1 <&-', 0, "")):
            got, out, err = self.shell(line)
            self.assertEqual(got, status, (line, err))
            self.assertIn(says, err)

    def test_full_disk(self):
        for line in ('"$0" -p "nacre.rand(100)" > /dev/full',
                     '"$0" -e "print(1) os.exit(0)" > /dev/full',
                     'echo 1 + 1 | "$0" -i > /dev/full',
                     '"$0" -h > /dev/full', '"$0" -V > /dev/full'):
            status, out, err = self.shell(line)
            self.assertEqual(status, 1, line)
            self.assertIn("No space left", err, line)
        # what is said of the failure may itself not be written
        status, out, err = self.shell('"$0" -e "error(1)" 2> /dev/full')
        self.assertEqual(status, 1)

    def test_reader_that_leaves(self):
        for program in ("for i = 1, 1e6 do print(i) end",
                        "while true do io.write('x\\n') end",
                        "while true do print(nacre.rand(20)) end"):
            status, out, err = self.shell(
                '"$0" -e "%s" | head -1 | wc -l; echo ${PIPESTATUS[0]}'
                % program)
            self.assertEqual((out, err), ("1\n141\n", ""))
        status, out, err = self.shell(
            'yes "nacre.rand(50)" | "$0" -i | head -1 | wc -l; '
            'echo ${PIPESTATUS[1]}')
        self.assertEqual(out.split(), ["1", "1"])  # the prompt says it
        self.assertEqual(err, "nacre: write error\n")

    # ---- options

    def test_check(self):
        self.file("good.lua", "#!/usr/bin/env nacre\nprint 'ran' nosuch()")
        self.file("bad.lua", "x = = 1")
        self.assertEqual(self.run_("--check", "good.lua"), (0, "", ""))
        status, out, err = self.run_("--check", "bad.lua")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("bad.lua:1", err)
        self.assertEqual(self.run_("--check", "-e", "print(1)", "-p", "2",
                                   "-l", "no.such"), (0, "", ""))
        self.assertEqual(self.run_("--check", "-e", "= =")[0], 1)
        self.assertEqual(self.run_("--check", text="print(1)"), (0, "", ""))
        self.assertEqual(self.run_("--check", text="print(")[0], 1)
        self.assertEqual(self.run_("--check", "nosuch.lua")[0], 2)
        self.assertEqual(self.run_("--check", "-e", "", LUA_INIT="print(1)"),
                         (0, "", ""))

    def test_strict(self):
        program = "x = 1 print(x, rawget(_G, 'y')) print(y)"
        status, out, err = self.run_("--strict", "-e", program)
        self.assertEqual((status, out), (1, "1\tnil\n"))
        self.assertIn("no variable 'y'", err)
        self.assertEqual(self.run_("-e", program)[0], 0)
        status, out, _ = self.run_("--strict", "-i", "-q",
                                   text="_\nz\n5\n_ + 1\n")
        self.assertIn("> z\nerror: no variable 'z'", out)
        self.assertTrue(out.endswith("> _ + 1\n6\n"), out)

    def test_time(self):
        status, out, err = self.run_(
            "--time", "-e", "local a = nacre.rand(200, 200) a:mm(a) print(1)")
        self.assertEqual((status, out), (0, "1\n"))
        self.assertRegex(err, r"^  wall [\d.]+ [mun]?s  cpu [\d.]+ m?s  "
                         r"[\d.]+ [MG]FLOP/s  .*peak [\d.]+ MiB\n$")
        status, out, err = self.run_("--time", "-e", "os.exit(3)")
        self.assertEqual(status, 3)
        self.assertIn("wall", err)
        status, out, err = self.run_("--time", "-e", "error 'x'")
        self.assertEqual(status, 1)
        self.assertIn("wall", err)

    def test_profile(self):
        program = "local a = nacre.rand(9, 9) for i = 1, 3 do a:mm(a) end"
        status, out, err = self.run_("--profile", "-e", program)
        self.assertEqual((status, out), (0, ""))
        self.assertRegex(err, r"\n  mm +3 ")
        status, out, err = self.run_("--profile=table.txt", "-e", program)
        self.assertEqual((status, out, err), (0, "", ""))
        self.assertRegex(self.read("table.txt"), r"\n  mm +3 ")
        status, out, err = self.run_("--profile=no/where", "-e", program)
        self.assertEqual(status, 1)
        self.assertIn("no/where", err)

    def test_nan(self):
        program = "print((nacre.zeros(1):log():item()))"
        self.assertEqual(self.run_("-e", program)[:2], (0, "-inf\n"))
        status, out, err = self.run_("--nan=warn", "-e", program)
        self.assertEqual((status, out), (0, "-inf\n"))
        self.assertIn("warning: log", err)
        status, out, err = self.run_("--nan=trap", "-e", program)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("log(0) = -inf", err)
        self.assertEqual(self.run_("--nan=maybe", "-e", "")[0], 2)

    def test_defaults(self):
        self.assertEqual(self.run_("--dtype", "float64", "-p",
                                   "nacre.zeros(1).dtype")[1], '"float64"\n')
        status, _, err = self.run_("--dtype=int8", "-e", "")
        self.assertEqual(status, 2)
        self.assertIn("not a float dtype", err)
        numbers = [self.run_("--deterministic", "-p", "nacre.rand(2)")[1]
                   for _ in range(2)]
        self.assertEqual(numbers[0], numbers[1])
        self.assertNotEqual(numbers[0], self.run_("-p", "nacre.rand(2)")[1])
        self.assertEqual(
            self.run_("--deterministic", "-p",
                      "os.getenv 'CUBLAS_WORKSPACE_CONFIG'")[1], '":4096:8"\n')

    # ---- the start-up file

    def test_start_up_file(self):
        self.file(".config/nacre/init.lua", "print 'started' mine = 7")
        status, out = self.terminal("-q", keys="mine + 1\n", TERM="dumb")
        self.assertIn("started", out)
        self.assertIn("8", out)
        for options in (["--no-rc"], ["-E"]):
            out = self.terminal("-q", *options, keys="mine\n",
                                TERM="dumb")[1]
            self.assertNotIn("started", out)
        # only for the shell at a terminal
        self.assertEqual(self.run_("-p", "mine")[1], "nil\n")
        self.assertEqual(self.run_("-i", "-q", text="mine\n")[1],
                         "> mine\nnil\n(no variable 'mine')\n")
        self.file("xdg/nacre/init.lua", "print 'elsewhere'")
        out = self.terminal("-q", keys="", TERM="dumb",
                            XDG_CONFIG_HOME=self.home + "/xdg")[1]
        self.assertIn("elsewhere", out)

    def test_start_up_file_by_name(self):
        self.file("my.lua", "mine = 9 shell.set('precision', 2)")
        status, out, _ = self.run_("-i", "-q", "--rc", "my.lua",
                                   text="mine\n:set precision\n")
        self.assertTrue(out.startswith("> mine\n9\n"), out)
        self.assertRegex(out, r"precision +2 ")
        status, out, _ = self.run_("-i", "-q", "--rc=nosuch.lua",
                                   text="1\n")
        self.assertIn("cannot open nosuch.lua", out)
        self.assertTrue(out.endswith("> 1\n1\n"))

    def test_broken_start_up_file(self):
        for text in ("error 'early'", "= =", "while true do break"):
            self.file(".config/nacre/init.lua", text)
            out = self.terminal("-q", keys="1 + 1\n", TERM="dumb")[1]
            self.assertIn("error", out)
            self.assertIn("2", out)
            self.assertNotIn("nacre.shell", out)
            self.assertNotIn("traceback", out)

    def test_not_from_the_current_folder(self):
        self.file("init.lua", "print 'trap'")
        self.file(".nacre/init.lua", "print 'trap'")
        home = os.path.join(self.home, "no-home")
        out = self.terminal("-q", keys="1\n", TERM="dumb", HOME=home)[1]
        self.assertNotIn("trap", out)
        self.assertFalse(os.path.exists(home), "a home is not made")

    def test_settings_that_stay(self):
        path = self.file(".config/nacre/init.lua",
                         '-- mine\nshell.set("edge", "3")\nx = 1\n')
        out = self.run_("-i", "-q", text=":set! edge 2\n:set! timing off\n"
                        ":set! edge 4\n")[1]
        self.assertEqual(out.count(" in " + path), 3)
        self.assertEqual(self.read(".config/nacre/init.lua"),
                         '-- mine\nshell.set("edge", "4")\n'
                         'x = 1\nshell.set("timing", "off")\n')
        status, out = self.terminal("-q", keys=":set edge\n", TERM="dumb")
        self.assertRegex(out, r"edge +4 ")

    # ---- timing

    def test_timing(self):
        rest = "os.execute 'sleep %s';\n"
        out = self.terminal("-q", keys="1\n" + rest % 0.6 + ":timing off\n" +
                            rest % 0.6 + ":timing 1ms\n" + rest % 0.01,
                            TERM="dumb")[1]
        self.assertEqual(len(re.findall(r"\([\d.]+ m?s\)", out)), 2, out)
        out = self.run_("-i", "-q", text=rest % 0.6)[1]
        self.assertEqual(out, "> " + rest % 0.6)
        out = self.run_("-i", "-q", text=":timing on\n1\n")[1]
        self.assertRegex(out, r"> 1\n1\n\([\d.]+ \w?s\)\n")


if __name__ == "__main__":
    launch.main()
