#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_batch.py - the program without a terminal: exit statuses, pipes.

import os
import re
import subprocess
import tempfile
import unittest

import launch
from launch import Program

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")

# A sanitizer takes more memory and time, and addresses for itself.
unsanitized = unittest.skipIf(os.environ.get("ASAN_OPTIONS"), "a sanitizer")


class Batch(Program):
    # ---- exit statuses

    def test_statuses(self):
        self.file("bad.lua", "x = = 1")
        self.file("fail.lua", "error 'x'")
        table = [
            (0, ["-e", ""]), (0, ["-h"]), (0, ["--help"]), (0, ["-v"]),
            (0, ["-V"]), (0, ["--version"]), (0, ["-e", "os.exit(true)"]),
            (1, ["-e", "error('x')"]), (1, ["-e", "x = = 3"]),
            (1, ["-e", "os.exit(false)"]), (1, ["-p", "1 +"]),
            (1, ["-l", "no.such.module"]), (1, ["bad.lua"]),
            (1, ["fail.lua"]), (1, ["-e", "error()"]),
            (1, ["-e", "error({})"]),
            (2, ["--tiem"]), (2, ["-x"]), (2, ["nosuch.lua"]),
            (2, ["."]), (2, ["--seed", "x"]), (2, ["--threads", "0"]),
            (2, ["--width", "1e"]), (2, ["--color=red"]), (2, ["-e"]),
            (3, ["-e", "os.exit(3)"]), (77, ["-e", "skip('no reason')"]),
        ]
        for status, args in table:
            got, out, err = self.run_(*args)
            self.assertEqual(got, status, (args, err))
            self.assertEqual(bool(err), status in (1, 2, 77) and
                             "os.exit" not in args[-1], (args, err))

    def test_hint_of_sessions_on_stdin(self):
        status, out, err = self.run_(text="x = nacre.ones(2)\nx\n")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("hint: nacre -i takes its input line by line", err)

    def test_heads_of_blocks_of_python(self):
        self.file("p.lua", "for epoch in range(3):\n    y = model(x)\n")
        self.assertEqual(
            self.run_("p.lua"),
            (1, "", "p.lua:1: 'do' expected\n"
                    "  p.lua:1   for epoch in range(3):\n"
                    "  hint: for epoch = 1, 3 do ... end, counted from 1\n"))

    def test_tour(self):
        # What it prints is a session, whose outputs are what the prompt shows.
        shown = self.run_("--tour")[1]
        with open(os.path.join(SOURCES, "repl/session/tour.nacre"),
                  encoding="utf-8") as f:
            inputs = re.findall("^> .*", f.read(), re.M)
        self.assertGreater(len(inputs), 20)
        self.assertEqual(re.findall("^> .*", shown, re.M), inputs)
        self.assertNotIn("Enter", shown)
        self.file("shown.nacre", shown)
        status, out, err = self.run_("--test", "shown.nacre")
        self.assertEqual(status, 0, out + err)

    def test_work_of_a_long_session(self):
        # Each collection looks at all lists that grew, so there must not be
        # one for each line.
        n = 3000
        text = ("n = 0 function arm() setmetatable({}, {__gc = function() "
                "n = n + 1 arm() end}) end arm()\n")
        text += "".join("x = %d\n" % i for i in range(n)) + "n\n"
        out = self.run_("-i", text=text)[1]
        self.assertLess(int(out.split("\n")[-2]), n // 4, out[-100:])

    @unsanitized
    def test_memory_of_a_long_line(self):
        peak = ("for l in io.lines '/proc/self/status' do "
                "io.write(l:match 'VmHWM:%s*(%d+) kB' or '') end\n")
        many = 60000
        lines = [
            "x = {%s}" % ",".join(["1"] * many),
            "x = %s%s" % ("{" * many, "}" * many),
            "x = {%s} = 1" % ",".join(["1"] * many),
            "x = {%s} error 'x'" % ",".join(["1"] * many),
            "x = {%s}" % ",".join(["None"] * (many // 3)),
            "x = '%s' error 'x'" % ("a" * 2 * many),
            "x = %s" % "+".join(["a"] * many),
            "x = '%s' y: = 1" % ("a" * 2 * many),
        ]
        for line in lines:
            out = self.run_("-i", text=line + "\n" + peak)[1]
            kb = int(out.split("\n")[-2 if out.endswith("\n") else -1])
            self.assertLess(kb, 40000, line[:20])

    @unsanitized
    def test_answers_go_to_the_file(self):
        """What a command answers is its output, whatever stdout is."""
        text = "x = nacre.ones(9)\n"
        for i, line in enumerate((":time x + 1", ":bench x + 1", ":shape x",
                                  ":diff x x", ":whos")):
            text += f"{line} > {i}.txt\n{line} >> {i}.txt\n" \
                    f"n = #shell.lines '{line}'\nprint(n > 0, " \
                    f"#io.open('{i}.txt'):read 'a' > 2 * n)\n"
        _, out, err = self.run_("-i", text=text)
        self.assertEqual((out.count("true\ttrue"), err), (5, ""), out)

    def test_blocks_of_many_lines(self):
        rows = "".join("{%d, 2},\n" % i for i in range(4000))
        out = self.run_("-i", text="x = {\n" + rows + "}\n#x\n")[1]
        self.assertTrue(out.endswith("> #x\n4000\n"), out[-100:])
        # an error, a long string and a bracket in a comment do not hide the end
        text = "x = {\n%s[[\n}\n]], -- }\n}\n#x\n" % rows
        out = self.run_("-i", text=text)[1]
        self.assertTrue(out.endswith("> #x\n4001\n"), out[-100:])
        text = "x = {\n%s1 1\n%s}\n1 + 1\n" % (rows, rows)
        out = self.run_("-i", text=text)[1]
        self.assertTrue(out.endswith("> 1 + 1\n2\n"), out[-100:])

    def test_skip(self):
        self.file("s.lua", "skip 'no gpu here' print 'not reached'")
        status, out, err = self.run_("s.lua")
        self.assertEqual((status, out), (77, ""))
        self.assertIn("no gpu here", err)

    # ---- programs

    def test_arguments(self):
        self.file("a.lua", "print(arg[0], #arg, arg[-1], ...)")
        status, out, err = self.run_("-q", "a.lua", "x", "-i", "--", "y")
        self.assertEqual(out, "a.lua\t4\t-q\tx\t-i\t--\ty\n")

    def test_options_run_in_order(self):
        self.file("m.lua", "return {n = 4}")
        status, out, err = self.run_(
            "-e", "x = 1", "-p", "x + 1", "-eprint(x)", "-l", "g=m",
            "-p", "g.n", LUA_PATH=self.home + "/?.lua")
        self.assertEqual((status, out), (0, "2\n1\n4\n"))

    def test_print_option(self):
        status, out, err = self.run_("-p", '1, "a", {2}, nil')
        self.assertEqual(out, '1\t"a"\t{2}\tnil\n')

    def test_modules_beside_the_script(self):
        self.file("lib.lua", "return 'current'")
        self.file("sub/lib.lua", "return 'beside'")
        self.file("sub/main.lua", "print((require 'lib'))")
        self.assertEqual(self.run_("sub/main.lua")[1], "beside\n")
        self.assertEqual(self.run_("-e", "print((require 'lib'))")[1],
                         "current\n")
        self.assertEqual(self.run_("-l", "lib", "-e", "print(lib)")[1],
                         "current\n")
        self.assertEqual(self.run_(text="print((require 'lib'))")[1],
                         "current\n")

    def test_init(self):
        self.assertEqual(self.run_("-p", "x", LUA_INIT="x = 5")[1], "5\n")
        self.assertEqual(self.run_("-E", "-p", "x", LUA_INIT="x = 5")[1],
                         "nil\n")
        path = self.file("init.lua", "x = 6")
        self.assertEqual(self.run_("-p", "x", LUA_INIT="@" + path)[1], "6\n")

    def test_only_text_is_loaded(self):
        dump = "string.dump(load 'return 1')"
        for call in ("load(%s)", "load(%s, 'x', 'b')", "load(%s, 'x', 'bt')"):
            out = self.run_("-p", (call % dump))[1]
            self.assertRegex(out, r"^nil\t.*binary", call)
        with open(os.path.join(self.home, "bin.lua"), "wb") as f:
            f.write(subprocess.run(
                [launch.NACRE, "-e", "io.write(%s)" % dump], env=self.env(),
                stdout=subprocess.PIPE).stdout)
        self.assertIn("binary", self.run_("-p", "loadfile 'bin.lua'")[1])
        for program in ("dofile 'bin.lua'",
                        "package.path = '?.lua' require 'bin'"):
            status, out, err = self.run_("-e", program)
            self.assertEqual(status, 1)
            self.assertIn("binary", err)
        self.assertEqual(self.run_("bin.lua")[0], 1)
        self.assertEqual(
            self.run_("-p", "load('return ...', 'x', 't', {})(3)")[1], "3\n")

    def test_warnings(self):
        status, out, err = self.run_(
            "-e", "warn('a', 'b') warn '@off' warn 'c' warn '@on' warn 'd'")
        self.assertEqual((out, err), ("", "warning: ab\nwarning: d\n"))

    def test_coroutines_are_as_in_lua(self):
        program = """
        local co = coroutine.create(function(a) local b = coroutine.yield(a)
          error({b}) end)
        local ok, x = coroutine.resume(co, 1)
        local bad, e = coroutine.resume(co, 2)
        print(ok, x, bad, e[1], coroutine.resume(co))
        local w = coroutine.wrap(function() error 'in' end)
        print(pcall(w))
        print(select('#', coroutine.resume(coroutine.create(function() end))))
        print((pcall(coroutine.resume, 1)))
        print(pcall(coroutine.wrap(function() pcall(coroutine.yield, 7) end)))
        """
        mine = self.run_("-e", program)[1]
        self.assertIn("true\t1\tfalse\t2\tfalse\tcannot resume dead", mine)
        lua = "/usr/bin/lua5.4"
        if os.path.exists(lua):
            self.assertEqual(mine, subprocess.run(
                [lua, "-e", program], stdout=subprocess.PIPE,
                encoding="utf-8").stdout)

    # ---- stdin and stdout

    def test_stdin_is_one_chunk(self):
        self.assertEqual(self.run_(text="local x = 1\nprint(x)\n")[:2],
                         (0, "1\n"))
        self.assertEqual(self.run_(text="1+1"), (0, "2\n", ""))
        self.assertEqual(self.run_(text="collectgarbage() + 1"),
                         (0, "1\n", ""))
        self.assertEqual(self.run_(text="#!x\nprint(...)", )[:2], (0, "\n"))
        self.assertEqual(self.run_(text="print(1)\nerror 'x'\nprint(2)")[:2],
                         (1, "1\n"))
        self.assertEqual(self.run_("-", "a", text="print(...)")[:2],
                         (0, "a\n"))
        self.assertEqual(self.run_(text="")[:2], (0, ""))
        self.assertEqual(self.run_(text="f(")[0], 1)

    def test_no_escapes_in_pipes(self):
        for args in (["-p", "nil"], ["-e", "error 'x'"], ["-i"]):
            status, out, err = self.run_(*args, text="nil\nerror 'x'\n'a'\n")
            self.assertNotIn("\x1b", out + err, args)
        out = self.run_("--color=always", "-p", "nil")[1]
        self.assertIn("\x1b[2mnil", out)
        out = self.run_("-p", "nil", CLICOLOR_FORCE="1")[1]
        self.assertIn("\x1b[2mnil", out)
        out = self.run_("-p", "nil", CLICOLOR_FORCE="1", NO_COLOR="1")[1]
        self.assertNotIn("\x1b", out)

    def test_names_do_not_steer_the_terminal(self):
        inputs = """e = "\\27[31m"; _G["a" .. e] = nacre.ones(2)
:whos
nacre.zeros(2, {dtype="f" .. e})
nacre.zeros(2, {device="f" .. e})
nacre.zeros(2, {["k" .. e]=1})
nacre.einsum("a" .. e, nacre.ones(2))
nacre["f" .. e]()
nacre.ones(2)["m" .. e]()
require("mod" .. e)
dofile("no" .. e)
error("boom\\155" .. e .. "\\tof two\\nlines")
error(setmetatable({}, {__tostring = function() return "t" .. e end}))
assert(io.open("no" .. e))
load("error 'x'", "@" .. e)()
"""
        out = self.run_("-i", text=inputs)[1]
        self.assertNotIn("\x1b", out)
        self.assertIn("a\\x1b[31m  float32[2]", out)
        self.assertIn("module 'mod\\x1b[31m' not found", out)
        self.assertIn("boom\\x9b\\x1b[31m\tof two\nlines", out)
        path = self.file("e.lua", inputs.split("\n")[0] + "\nrequire(e)")
        for args in ([path], [path + "\x1b[2J"], ["--\x1b[2J"],
                     ["--test", "\x1b[2J"], ["--doctor"]):
            out = "".join(self.run_(*args, NACRE_BLAS="none\x1b[2J",
                                    NACRE_HISTORY="\x1b[2J")[1:])
            self.assertIn("\\x1b[", out, args)
            self.assertNotIn("\x1b", out, args)

    @unsanitized
    def test_decompositions_under_a_limit_of_memory(self):
        """They are right, or refused for want of memory: a library never
        waits for room that does not come. Products are right."""
        self.file("d.lua", """
          nacre.set_num_threads(4)
          local x = nacre.eye(200):mul(2)
          assert(x:mm(x):sum():item() == 800)
          local ok, u, s = pcall(nacre.linalg.svd, nacre.eye(80):mul(3))
          print(ok and s:sum():item() == 240 or tostring(u))
          ok, u = pcall(nacre.linalg.inv, x:expand(9, 200, 200))
          print(not ok and tostring(u) or u:sum():item() == 900)
        """)
        refused = done = 0
        for mib in (20, 24, 32, 48, 64, 72, 100, 128, 150, 160, 170, 180, 190,
                    200, 250, 300, 400):
            status, out, err = self.shell(
                'ulimit -v %d; exec timeout 20 "$0" d.lua' % (mib << 10))
            self.assertIn(status, (0, 1), (mib, out, err))
            if out == "true\ntrue\n":
                done += 1
            else:
                refused += 1
                self.assertRegex(out + err, r"memory|needs .*; cpu has .* free",
                                 mib)
        self.assertGreater(done, 0)
        self.assertGreater(refused, 3)

    @unsanitized
    def test_libraries_that_do_not_fit_in_memory(self):
        """What the loader says is said: nothing needs to be installed."""
        said = ""
        for kib in range(16000, 30000, 1000):
            _, out, err = self.shell("ulimit -v %d; \"$0\" -e 'nacre.save("
                                     "\"a.npz\", {nacre.ones(2)})'" % kib)
            self.assertNotIn("was not found", out + err, kib)
            said += err
        self.assertIn("could not be opened: lib", said)
        for code, what in (("nacre.python()", "Python"), ("nacre.save('a.h5', "
                           "{nacre.ones(1)})", "HDF5")):
            for kib in range(16000, 40000, 4000):
                out, err = self.shell("ulimit -v %d; \"$0\" -e \"%s\"" % (
                    kib, code))[1:]
                if "could not be opened" in err:
                    self.assertIn(what, err)
                    self.assertNotIn("install", err)
                else:
                    self.assertNotRegex(err, "not found|no shared library")

    def test_texts_from_outside_are_escaped(self):
        """Those of commands, of code with errors, of paths and of warnings:
        no control character, none of UTF-8, and none that turns the direction
        of writing."""
        bad = "\x1b[8m\x07\x0e\x9b31m\u202e\u2066\u061c"
        raw = set(bad) - set("[8m31")
        inputs = "e = " + "".join("\\u{%x}" % ord(c) for c in bad).join('""')
        lines = [inputs, "e", "{[e] = e}", "x = " + bad, 'x = "' + bad,
                 "warn('@on') warn(e)", "f = load('return function() end', '=' "
                 ".. e)()", "?f", "f??", ":save " + bad, ":load " + bad,
                 ":save " + bad + ".safetensors", ":load " + bad +
                 ".safetensors", ":save --transcript " + bad + "2",
                 "os.execute('mkdir \"q' .. e .. '\"')", ":cd q" + bad,
                 ":nosuch" + bad, ":help " + bad, ":set " + bad, ":time " + bad,
                 ":history " + bad, "nacre.load(e)", "local t <close> = "
                 "setmetatable({}, {__close = function() error(e) end})"]
        out = self.run_("-i", text="\n".join(lines))[1]
        self.assertEqual(raw & set(out), set(), out)
        self.assertNotIn("internal error", out)
        self.assertIn('"\\x1B[8m\\x07\\x0E\\xC2\\x9B31m\\xE2\\x80\\xAE', out)
        self.assertIn("1 variable", out)

    def test_what_is_left_of_lua(self):
        """The shell works on whatever a user removes or replaces."""
        for text in ("pairs = nil", "table.concat = nil", "string.find = nil",
                     "getmetatable('').__index = nil", "tostring = 5",
                     "debug.setmetatable('', nil)", "math.max = nil",
                     "getmetatable('').__index = function() end",
                     "getmetatable('').__index = error", "string = 1",
                     "for k in pairs(string) do string[k] = nil end",
                     "for k in pairs(table) do table[k] = print end"):
            out = self.run_("-i", "-q", text=text + "\n"
                            "('x'):rep(3), 6 * 7\n{1, {2}}\nx y\n:whos\n")
            self.assertNotIn("internal error", "".join(map(str, out)), text)
            for part in ('"xxx"\t42', "{1, {2}}", "near 'y'"):
                self.assertIn(part, "".join(map(str, out)), text)
        out = self.run_("-i", "-q", text="function string.twice(s) return s:rep"
                        "(2) end\nfunction string.len() return 7 end\n"
                        "('ab'):twice(), ('abc'):len()\n")[1]
        self.assertIn('"abab"\t7\n', out)

    def test_rep(self):
        """As in Lua."""
        self.file("r.lua", """
          local function plain(s, n, sep)
            local t = {}
            for i = 1, n do t[i] = s end
            return table.concat(t, sep)
          end
          for _, s in ipairs {"", "a", "ab", "abc", ("x"):rep(100) .. "y"} do
            for _, sep in ipairs {"", "-", ", "} do
              for n = -1, 40 do
                assert(s:rep(n, sep) == plain(s, n, sep), n)
              end
            end
          end
          local long = ("0123456"):rep(6000000, "abcd")
          assert(#long == 66000000 - 4)
          for i = 1, #long, 11 * 9973 do
            assert(long:sub(i, i + 10) == "0123456abcd")
          end
          assert(long:sub(-7) == "0123456")
          for _, args in ipairs {{"a", 1 << 62, "b"}, {"ab", 1 << 62},
                                 {("x"):rep(1000), 1 << 60}} do
            local ok, why = pcall(string.rep, table.unpack(args))
            assert(why:find "resulting string too large", why)
          end
          print(select(2, pcall(string.rep)), select(2, pcall(string.rep, "a")))
        """)
        self.assertEqual(self.run_("r.lua"), (
            0, "bad argument #1 to 'string.rep' (string expected, got no value)"
            "\tbad argument #2 to 'string.rep' (number expected, got no value)"
            "\n", ""))

    def test_messages_of_load(self):
        """As in Lua they are texts, wherever load is called."""
        self.file("deep.lua", "return " + "(" * 500 + "2" + ")" * 500)
        self.file("l.lua", """
          for _, args in ipairs {
            {function() error "hhi" end}, {"return " .. ("("):rep(500) ..
            "2" .. (")"):rep(500)}, {function() local x return x.y end},
            {"x y"},
          } do
            local f, why = load(table.unpack(args))
            assert(f == nil and type(why) == "string", type(why))
            coroutine.wrap(function()
              assert(type(select(2, load(table.unpack(args)))) == "string")
            end)()
          end
          assert(type(select(2, loadfile "deep.lua")) == "string")
          assert(type(select(2, pcall(dofile, "deep.lua"))) == "string")
          print(select(2, pcall(require, "deep")))
          package.path = {}
          require "x"
        """)
        status, out, err = self.run_("l.lua")
        self.assertEqual(status, 1)
        self.assertIn("error loading module 'deep' from file './deep.lua':\n"
                      "\tC stack overflow", out)
        self.assertIn("'package.path' must be a string", err)

    def test_arguments_are_those_of_arg(self):
        self.file("a.lua", "print(...)")
        for words, out in ((["-e", "arg[1]=100", "a.lua"], "100\n"),
                           (["-e", "arg[1]=100", "-"], "100\n"),
                           (["-e", "arg={3,nil,4}", "a.lua", "x"],
                            "3\tnil\t4\n"), (["a.lua", "x", "y z"], "x\ty z\n")):
            self.assertEqual(self.run_(*words, text="print(...)"), (0, out, ""))
        status, _, err = self.run_("-e", "arg = 1", "a.lua")
        self.assertEqual(status, 1)
        self.assertIn("'arg' is not a table", err)

    def test_a_library_that_is_none(self):
        """The reason is said of that library, and of no other."""
        self.file("text", "no library")
        self.file("s.lua", """
          local function says(f, ...)
            print((tostring(select(2, pcall(f, ...))):match "needs? .*"))
          end
          local image = nacre.zeros(2, 2, {dtype = "uint8"})
          for _ = 1, 2 do
            says(nacre.encode_png, image)
            says(nacre.load, "x.npz", {format = "npz"})
            says(nacre.serialize, image, {format = "jpg"})
            says(nacre.deserialize, "\\x1f\\x8b\\8")
          end
        """)
        self.file("x.npz", "PK")
        _, out, err = self.run_("s.lua", NACRE_PNG="none", NACRE_ZIP="./text",
                                NACRE_JPEG="none", NACRE_ZLIB="./text")
        png, npz, jpeg, gzip = out.split("\n")[:4]
        self.assertEqual(out, "\n".join((png, npz, jpeg, gzip, "")) * 2, err)
        self.assertIn("libturbojpeg, which was not found: NACRE_JPEG", jpeg)
        self.assertIn("zlib, which could not be opened: ./text: ", gzip)
        self.assertIn("libpng 1.6, which was not found: NACRE_PNG is none", png)
        self.assertIn("libzip, which could not be opened: ./text: ", npz)

    def test_a_kernel_without_its_libraries(self):
        self.file("c.json", '{"transport": "tcp", "ip": "127.0.0.1", "key": '
                  '"k", "signature_scheme": "hmac-sha256"%s}' % "".join(
                      ', "%s_port": 0' % s for s in
                      ("shell", "iopub", "stdin", "control", "hb")))
        for name, what in (("ZMQ", "notebooks need libzmq 4"), (
                "SODIUM", "signed notebook messages need libsodium")):
            status, _, err = self.run_("--kernel", "c.json",
                                       **{"NACRE_" + name: "none"})
            if "libzmq 4" in err and name == "SODIUM":
                continue
            self.assertEqual(status, 1)
            self.assertRegex(err, r"^error: %s, which was not found: NACRE_%s "
                             r"is none\n  hint: install it" % (what, name))

    def test_every_command_takes_any_text(self):
        """No text, whatever it is, is an internal error."""
        odd = ["\x1b", "\x1bLua", "]]", ")", "return", "'", "%", "\\", ";;",
               "0/0", "99999999999999999999", "--", "--bogus", "> ", "\x01",
               "error(nil)", "coroutine.yield()", "::a::",
               "setmetatable({}, {__index = error, __tostring = error})"]
        names = re.findall(r"(?m)^ +:(\w+)", self.run_(
            "-i", text=":help all\n")[1])
        self.assertGreater(len(set(names)), 40)
        quiet = {"watch", "peak", "sweep", "quit", "help", "py"}
        text = "\n".join(":%s %s" % (name, word) for word in odd
                         for name in sorted(set(names) - quiet))
        out = "".join(self.run_("-i", text=text + "\n'still ' .. 'here'")[1:])
        self.assertNotIn("internal error", out)
        self.assertIn("still here", out)

    def test_blas_of_a_python_environment(self):
        library = next((line.split("=> ")[1] for line in subprocess.run(
            ["ldconfig", "-p"], capture_output=True, text=True, check=False,
            env={"PATH": "/sbin:/usr/sbin:/bin"}).stdout.splitlines()
            if "libopenblas.so.0 " in line), None)
        if library is None:
            self.skipTest("there is no library to take for it")
        for version in "23":
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "lib"))
                path = os.path.join(folder, "lib", "libmkl_rt.so." + version)
                os.symlink(library, path)
                for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
                    out = self.run_("--doctor", **{name: folder})[1]
                    self.assertIn("products  " + path, out)
        self.assertIn("own loops", self.run_("--doctor", NACRE_BLAS="own")[1])

    def test_library_of_convolutions(self):
        code = ("x, w = nacre.ones(8, 16, 32, 32), nacre.ones(16, 16, 3, 3) "
                "print(nacre.nn.functional.conv2d(x, w):sum():item())")
        status, _, err = self.run_("--threads", "1", "-e", code,
                                   NACRE_ONEDNN="/nosuch")
        self.assertEqual(status, 1)
        self.assertIn("NACRE_ONEDNN is '/nosuch', which is not oneDNN 2 or 3",
                      err)
        for name in ("", "none"):
            out = self.run_("--threads", "1", "-e", code, NACRE_ONEDNN=name)[1]
            self.assertEqual(out, "16588800.0\n")
        out = self.run_("-e", "nacre.show_config()", NACRE_ONEDNN="none")[1]
        self.assertIn("\nconvolve  own loops\n", out)
        self.assertIn("\nproducts  ", out)

    def test_libraries_have_no_threads(self):
        if not os.path.isdir("/proc/self/task"):
            self.skipTest("threads cannot be counted here")
        code = ("x, w = nacre.ones(8, 16, 32, 32), nacre.ones(16, 16, 3, 3) "
                "nacre.nn.functional.conv2d(x, w) "
                "nacre.linalg.inv(nacre.eye(300):mm(nacre.eye(300))) "
                "os.execute('ls /proc/$PPID/task | wc -l') "
                "print(os.getenv 'OMP_NUM_THREADS')")
        out = self.run_("--threads", "1", "-e", code, OMP_NUM_THREADS="5",
                        OPENBLAS_NUM_THREADS="5")[1]
        self.assertEqual(out, "1\n5\n")

    @unsanitized
    def test_limit_of_the_process(self):
        said = subprocess.run(
            ["sh", "-c", 'ulimit -v 600000; exec "$@"', "sh", launch.NACRE,
             "-e", "nacre.zeros(200000000)"], text=True, check=False,
            stderr=subprocess.PIPE).stderr
        room = re.search(r"needs 762.9 MiB; cpu has ([\d.]+) MiB free", said)
        self.assertTrue(room, said)
        self.assertLess(float(room[1]), 586)

    def test_transcript(self):
        status, out, err = self.run_(
            "-i", text="a = 1\na\nfor i = 1, 2 do\n  print(i)\nend\n"
                       "nosuch()\na + 1\n")
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith(
            "> a = 1\n> a\n1\n> for i = 1, 2 do\n>>   print(i)\n>> end\n"
            "1\n2\n> nosuch()\nerror: "), out)
        self.assertTrue(out.endswith("\n> a + 1\n2\n"), out)
        self.assertEqual(err, "")
        self.assertFalse(os.path.exists(os.path.join(
            self.home, ".local/state/nacre/history")))

    def test_transcript_of_unfinished_input(self):
        status, out, err = self.run_("-i", text="for i = 1, 2 do\n")
        self.assertEqual(status, 0)
        self.assertIn("error", out)

    def test_transcript_with_blank_lines(self):
        text = "function f(x)\n\n  local y = x\n  \n  return y\nend\n\nf(3)\n"
        self.assertEqual(self.run_("-i", text=text), (0,
            "> function f(x)\n>> \n>>   local y = x\n>>   \n>>   return y\n"
            ">> end\n> \n> f(3)\n3\n", ""))

    def test_script_then_shell(self):
        self.file("s.lua", "x = 41 error 'oops'")
        status, out, err = self.run_("-i", "s.lua", text="x + 1\n")
        self.assertEqual((status, out), (0, "> x + 1\n42\n"))
        self.assertIn("oops", err)
        self.assertIn("the script stopped", err)

    def test_closed_files(self):
        for redirect in ("<&-", "<&- -p 1", ">&-"):
            status, out, err = self.shell('"$0" -e "x = 1" ' + redirect)
            self.assertEqual(status, 0, (redirect, err))
        for program in ("print(1)", "io.write(1)", "print(1) os.exit(0)",
                        "f = io.open('x', 'w') print(1) f:close()"):
            status, out, err = self.shell('"$0" -e "%s" >&-' % program)
            self.assertEqual(status, 1, program)
            self.assertIn("write error: Bad file descriptor", err, program)
        self.assertEqual(os.path.getsize(os.path.join(self.home, "x")), 0)

    def test_width(self):
        program = "{'aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'}"
        self.assertEqual(self.run_("-p", program)[1].count("\n"), 1)
        self.assertEqual(
            self.run_("--width", "30", "-p", program)[1].count("\n"), 4)
        self.assertEqual(
            self.run_("-p", program, COLUMNS="30")[1].count("\n"), 4)

    def test_ascii(self):
        self.assertEqual(self.run_("-p", "'\u00e9'")[1], '"\u00e9"\n')
        self.assertEqual(self.run_("--ascii", "-p", "'\u00e9'")[1],
                         '"\\xC3\\xA9"\n')
        self.assertEqual(self.run_("-p", "'\u00e9'", LC_ALL="C")[1],
                         '"\\xC3\\xA9"\n')

    # ---- tensors

    def test_globals(self):
        self.assertEqual(self.run_("-p", "nacre == torch")[1], "true\n")

    def test_seed_and_threads(self):
        one = self.run_("--seed", "7", "-p", "nacre.rand(1):sum():item()")
        two = self.run_("--seed=7", "--threads=1", "-p",
                        "nacre.rand(1):sum():item()")
        other = self.run_("--seed=8", "-p", "nacre.rand(1):sum():item()")
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)
        self.assertEqual(one[0], 0)
        status, _, err = self.run_("--threads", "1000", "-e", "")
        self.assertEqual(status, 2)
        self.assertIn("must be 1 to 256, not 1000", err)

    def test_device(self):
        default = ["-p", "nacre.get_default_device()"]
        off = {"NACRE_CUDA": "off"}
        for args, variables in [
                (default, {}), (["--device", "cpu"] + default, {}),
                (["--device=auto"] + default, {}), (default, {
                    "NACRE_DEVICE": "auto"}), (default, {"NACRE_DEVICE": ""}),
                (["-E"] + default, {"NACRE_DEVICE": "cuda"}),
                (["--device=cpu"] + default, {"NACRE_DEVICE": "cuda"})]:
            self.assertEqual(self.run_(*args, **variables, **off),
                             (0, '"cpu"\n', ""))
        for args, variables in [(["--device", "cuda:1"], {}),
                                ([], {"NACRE_DEVICE": "cuda"})]:
            status, out, err = self.run_(*args, *default, **variables, **off)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("no usable CUDA device: NACRE_CUDA=off", err)
        for args, variables in [(["--device", "gpu"], {}),
                                (["--device=cuda:x"], {}),
                                ([], {"NACRE_DEVICE": "gpu"})]:
            status, out, err = self.run_(*args, *default, **variables)
            self.assertEqual((status, out), (2, ""))
            self.assertRegex(err, r"nacre: (--device|NACRE_DEVICE): "
                                  "no device is named '(gpu|cuda:x)'\nusage")

    def test_values_that_cannot_be(self):
        for words, text in [
                (["--dtype", "float99"], "--dtype: 'float99' is not a float"),
                (["--dtype=int64"], "--dtype: 'int64' is not a float dtype"),
                (["--seed", "x"], "--seed needs an integer"),
                (["--width", "3"], "--width needs an integer"),
                (["--nan", "on"], "--nan is off, warn or trap")]:
            status, out, err = self.run_(*words, "-p", "1")
            self.assertEqual((status, out), (2, ""), words)
            self.assertIn("nacre: " + text, err)
            self.assertIn("usage: nacre", err)

    def test_doctor(self):
        status, out, err = self.run_("--doctor", NACRE_CUDA="off")
        self.assertEqual((status, err), (0, ""))
        for text in ["nacre ", "Lua 5.4", "threads", "free", "columns",
                     "variable  NACRE_CUDA=off", "NACRE_CUDA=off turns it off"]:
            self.assertIn(text, out)
        self.assertNotIn("not opened", out)
        for row in ["images", "npz", "start-up", "history", "peaks"]:
            self.assertRegex(out, r"(?m)^%-9s \S" % row)
        out = self.run_("--doctor", NACRE_CUDA="off", NACRE_ZIP="/nosuch")[1]
        self.assertIn("variable  NACRE_ZIP=/nosuch\n", out)
        self.assertIn("npz       none: .npz and .pt files need libzip, which was "
                      "not found: NACRE_ZIP is /nosuch\n", out)
        self.file("text", "no library")
        off = {"NACRE_" + name: "none" for name in (
            "PNG", "ZIP", "HDF5", "RSVG", "ZMQ", "SODIUM", "BLAS", "ONEDNN",
            "PYTHON")}
        off.update(NACRE_HISTORY="", NACRE_FUSE="0", NACRE_PNG="./text",
                   LUA_CPATH="x")
        out = self.run_("--doctor", NACRE_CUDA="off", **off)[1]
        for name, value in off.items():
            self.assertIn("variable  %s=%s\n" % (name, value), out)
        for row in ("npz", "hdf5", "pictures", "notebooks", ""):
            self.assertRegex(out, r"(?m)^%-9s none: [^,]* needs? [^,]*, which "
                             r"was not found: NACRE_\w+ is none$" % row)
        self.assertRegex(out, r"(?m)^images    none: [^,]*, which could not be "
                         r"opened: \./text: \w")
        self.assertIn("history   none: NACRE_HISTORY is empty\n", out)
        self.assertIn("convolve  own loops\n", out)
        status, out, _ = self.run_("-i", "-q", NACRE_CUDA="off",
                                   text=":doctor\n:dev\n:dev cuda\n:dev cpu\n")
        self.assertIn("threads", out)
        self.assertRegex(out, r"device +cpu +where new tensors are created\n"
                         r"cuda  no usable CUDA device")
        self.assertIn("error: set_default_device: no usable CUDA device", out)
        self.assertIn("default device cpu (was cpu)", out)

    @unsanitized
    def test_memory_of_the_start(self):
        """At most 8 MiB; test_budgets.py measures the time."""
        program = ("for l in io.lines '/proc/self/status' do "
                   "local k = l:match 'VmHWM:%s*(%d+)' "
                   "if k then print(k) end end")
        peak = int(self.run_("-e", program)[1])
        self.assertLess(peak, 8 * 1024)


if __name__ == "__main__":
    launch.main()
