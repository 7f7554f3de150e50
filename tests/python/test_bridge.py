#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which Python the bridge opens, Ctrl-C, output in order, and the end.

    tests/python/test_bridge.py build/nacre
"""
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
import unittest
import venv

PROGRAM = ""
LIMIT = 20  # seconds: only what hangs takes as long


def environment(**variables):
    env = {k: v for k, v in os.environ.items()
           if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    env.setdefault("NACRE_PYTHON", sys.executable)
    env.update({"NACRE_HISTORY": "", **variables})
    return {k: v for k, v in env.items() if v is not None}


def run(code, *args, stdin=None, **variables):
    """What a script prints; its errors are in it."""
    done = subprocess.run([PROGRAM, *args, "-e", textwrap.dedent(code)],
                          env=environment(**variables), text=True, input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, check=False)
    return done.returncode, done.stdout


class Choice(unittest.TestCase):
    def test_interpreter(self):
        status, out = run("print(nacre.python().executable)")
        self.assertEqual((status, out.strip()), (0, sys.executable))

    def test_argument(self):
        code = f"print(nacre.python('{sys.executable}').version)"
        status, out = run(code, NACRE_PYTHON="none")
        self.assertEqual((status, out.strip()),
                         (0, sys.version.split()[0].rstrip("+")))

    def test_path(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(sys.executable, f"{folder}/python3")
            status, out = run("print(nacre.python().version)",
                              NACRE_PYTHON=None,
                              PATH=folder + ":" + os.environ["PATH"])
        self.assertEqual((status, out.strip()), (0, sys.version.split()[0]))

    def test_environments(self):
        """Of a virtual environment, active or named, the packages are found."""
        with tempfile.TemporaryDirectory() as folder:
            place = f"{folder}/it's an env"
            venv.create(place, symlinks=True, with_pip=False)
            site = sysconfig.get_path("purelib", vars={
                "base": place, "platbase": place}, scheme="posix_prefix")
            site = site.replace("/local/lib", "/lib")
            for found, _, _ in os.walk(f"{place}/lib"):
                if found.endswith("-packages"):
                    site = found
            with open(f"{site}/only_here.py", "w", encoding="utf-8") as f:
                f.write("x = 5\n")
            code = """
                local py = nacre.python()
                print(py.import "only_here".x, py.import "sys".prefix)"""
            for variables in ({"NACRE_PYTHON": None, "VIRTUAL_ENV": place},
                              {"NACRE_PYTHON": place},
                              {"NACRE_PYTHON": f"{place}/bin/python3"}):
                status, out = run(code, **variables)
                self.assertEqual((status, out), (0, f"5\t{place}\n"))

    def test_library(self):
        status, out = run("print(nacre.python().import 'sys'.executable)")
        name = run("print((tostring(nacre.python()):gsub('.*, ', '')))")[1]
        code = "print(nacre.python().eval '6 * 7')"
        self.assertEqual(run(code, NACRE_PYTHON=name.strip()), (0, "42\n"))

    def test_none(self):
        hint = "hint: install it (Debian: libpython"
        for value, text in [
                ("none", "NACRE_PYTHON is none"),
                ("/no/such", "NACRE_PYTHON is /no/such, which is not a Python"),
                ("/bin/false", "/bin/false, which is not a Python that can be"),
                ("/no/libpython3.11.so", "which is not a Python that can be")]:
            status, out = run("nacre.python()", NACRE_PYTHON=value)
            self.assertEqual(status, 1)
            self.assertIn(text, out)
            self.assertIn(hint, out)

    def fake(self, folder, text):
        path = f"{folder}/python3"
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def test_unusable(self):
        with tempfile.TemporaryDirectory() as folder:
            path = self.fake(folder, f"echo {folder}/python3\necho 3.7\n")
            out = run("nacre.python()", NACRE_PYTHON=path)[1]
            self.assertIn(f"{path} is Python 3.7, but 3.8 or later is "
                          "needed", out)
            path = self.fake(folder, f"echo {folder}/python3\necho 3.99\n")
            out = run("nacre.python()", NACRE_PYTHON=path)[1]
            self.assertIn(f"Python 3.99 of {path} has no shared library that "
                          "can be opened", out)
            self.assertIn("install it (Debian: libpython3.99), or name another"
                          " Python in NACRE_PYTHON", out)
            # the next call may name one that works
            code = f"""
                print(pcall(nacre.python) == false)
                print(nacre.python("{sys.executable}").eval "1")"""
            self.assertEqual(run(code, NACRE_PYTHON=path), (0, "true\n1\n"))


class Output(unittest.TestCase):
    def test_order(self):
        """Through a pipe, where C and Python would buffer by themselves."""
        out = run("""
            local py = nacre.python()
            for i = 1, 3 do
              print("lua", i)
              py.builtins.print("python", i)
              io.write("write ", i, "\\n")
              py.import "sys".stdout:write("stdout\\n")
            end""")[1]
        self.assertEqual(out, "".join(
            f"lua\t{i}\npython {i}\nwrite {i}\nstdout\n" for i in (1, 2, 3)))

    def test_input(self):
        """Python's exit() does not close what input() reads."""
        out = run("""
            local py = nacre.python()
            print(pcall(py.exec, "exit()"))
            print(py.builtins.input "name? ")""", stdin="bob\n")[1]
        self.assertIn("name? bob\n", out)

    def test_streams(self):
        code = """
            local py = nacre.python()
            local sys = py.import "sys"
            py.builtins.print("out")
            py.builtins.print("err", {file = sys.stderr, flush = true})
            print(sys.stdout:isatty(), sys.stdout:fileno())
            py.exec "import threading"
            local t = py.main.threading.Thread({target = py.builtins.print,
                                                args = py.tuple {"thread"}})
            t:start() t:join()
            print(pcall(sys.stdout.write, sys.stdout, 5))"""
        done = subprocess.run([PROGRAM, "-e", code], env=environment(),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr, "err\n")
        self.assertEqual(done.stdout.splitlines()[:3],
                         ["out", "false\t1", "thread"])
        self.assertIn("TypeError: a str is written, not int", done.stdout)

    def test_session(self):
        """At the prompt: the text that is shown, errors with their lines."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/mine.py", "w", encoding="utf-8") as f:
                f.write("def f(x):\n    return g(x)\n"
                        "def g(x):\n    return x.foo\n")
            done = subprocess.run(
                [PROGRAM, "-i", "--no-rc"], env=environment(), cwd=folder,
                capture_output=True, text=True, check=False, input="\n".join([
                    'py = nacre.python()', 'm = py.import "mine"',
                    'py.list {1, "x"}', 'py.str(py.list {1})', 'm.f(3)',
                    '?m.f', 'py.import "json".dumps({a = 1})', "py.none", ""]))
        out = done.stdout + done.stderr
        self.assertIn("[1, 'x']\n", out)
        self.assertIn('"[1]"\n', out)
        self.assertIn("error: AttributeError: 'int' object has no attribute "
                      "'foo'\n", out)
        self.assertIn(f"mine.py:2, in f   return g(x)\n", out)
        self.assertIn(f"mine.py:4, in g   return x.foo\n", out)
        self.assertIn("m.f(x)\n", out)
        self.assertIn("hint: a last table of names gives keyword arguments; "
                      "py.dict{...} is a dict", out)
        self.assertIn("None\n", out)


class End(unittest.TestCase):
    def test_atexit(self):
        """os.exit leaves to the system what is still held."""
        for leave in "", "os.exit(0)", "os.exit(0, true)":
            out = run(f"""
                local py = nacre.python()
                py.exec "import atexit; atexit.register(print, 'bye')"
                py.main.atexit.register(function() print "lua" end)
                keep = py.list {{nacre.ones(1000)}}
                local x <const> = py.tensor(py.import "array".array("f", {{1}}))
                kept = x
                print "last"
                {leave}""", ASAN_OPTIONS=f"detect_leaks={int(not leave)}")
            self.assertEqual(out, (0, "last\nlua\nbye\n"))

    def test_last_objects(self):
        """What the modules hold is destroyed at the end."""
        out = run("""
            local py = nacre.python()
            py.exec("import os\\nclass Last:\\n" ..
                    "  def __del__(self, write=os.write): write(1, b'gone')\\n" ..
                    "  def f(self): pass\\n" ..
                    "kept = Last()")
            local last = py.main.Last()
            py.main.kept:f()
            last:f()""")
        self.assertEqual(out, (0, "gonegone"))

    def test_exit_from_python(self):
        out = run("""
            local py = nacre.python()
            py.eval("lambda f: f()")(function() os.exit(3) end)""")
        self.assertEqual(out, (3, ""))

    def test_interrupt_at_the_end(self):
        """One Ctrl-C ends the wait for a thread."""
        code = """
            py = nacre.python()
            py.exec "import threading, time"
            py.exec "def f():\\n  while True: time.sleep(0.05)"
            py.exec "threading.Thread(target=f).start()"
            io.write "go" io.flush()"""
        with subprocess.Popen([PROGRAM, "-e", textwrap.dedent(code)],
                              env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as child:
            self.assertEqual(child.stdout.read(2), b"go")
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            try:
                child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                child.kill()
                self.fail("it waits on")

    def test_thread_at_the_end(self):
        out = run("""
            local py = nacre.python()
            py.exec "import threading, time"
            py.exec("threading.Thread(target=time.sleep, args=(60,), " ..
                    "daemon=True).start()")""")
        self.assertEqual(out, (0, ""))


WORK = {
    "a loop": "py.exec 'while True: pass'",
    "a sleep": "py.import 'time'.sleep(60)",
    "a loop that catches": """
        py.exec('while True:\\n  try:\\n    while True: pass\\n' ..
                '  except KeyboardInterrupt: break')
        while true do end""",
    "Lua inside of Python": """
        py.eval('lambda f: f()')(function() while true do end end)""",
    "Python inside of Lua inside of Python": """
        py.eval('lambda f: f()')(function() py.exec 'while True: pass' end)""",
    "pcall": "while true do pcall(py.exec, 'while True: pass') end",
    "short calls": "while true do py.eval '1' end",
    "after another handler": """
        py.exec('import signal\\n' ..
          'signal.signal(signal.SIGINT, lambda *a: None)')
        while true do end""",
}


class CtrlC(unittest.TestCase):
    def test_script(self):
        for what, code in WORK.items():
            with self.subTest(what), subprocess.Popen(
                    [PROGRAM, "-e", "py = nacre.python() io.write 'go' "
                     "io.flush() " + code], env=environment(),
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
                self.assertEqual(child.stdout.read(2), b"go")
                time.sleep(0.1)
                child.send_signal(signal.SIGINT)
                try:
                    self.assertEqual(child.wait(LIMIT), -signal.SIGINT)
                except subprocess.TimeoutExpired:
                    child.kill()
                    self.fail(what)

    def test_prompt(self):
        """The session goes on, and so does Python."""
        try:
            import pexpect
        except ImportError:
            self.skipTest("python3-pexpect is not installed")
        child = pexpect.spawn(PROGRAM, ["--no-rc"], encoding="utf-8",
                              timeout=60, env={**environment(), "TERM": "dumb",
                                               "NO_COLOR": "1"})
        child.expect("> $")
        child.sendline("py = nacre.python()")
        child.expect("> $")
        for code in ("py.exec 'print(1 + 1)\\nwhile True: pass'",
                     "py.exec 'print(2)\\nimport time; time.sleep(60)'"):
            child.sendline(code)
            child.expect("\n2\r\n")
            child.sendintr()
            child.expect("interrupted")
            child.expect("> $")
        child.sendline("py.eval '6 * 7'")
        child.expect("42\r\n")
        child.expect("> $")
        child.sendline("py.exec 'raise KeyboardInterrupt'")
        child.expect("interrupted")
        child.expect("> $")
        child.sendeof()
        child.expect(pexpect.EOF)


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    status, out = run("nacre.python()")
    if "has no shared library" in out:
        print("skipped:", out)
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
