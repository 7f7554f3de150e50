#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_protocol.py - the kernel for notebooks, message by message, on plain
# sockets; test_jupyter.py has Jupyter's own programs.

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(1, os.path.join(os.path.dirname(__file__), "../shell"))
import zmq

import launch
from kernel_client import DELIMITER, Kernel, gone, shown


def until_it_waits(pid):
    """Until a process has written nothing for a second."""
    before, same = "", 0
    while same < 5:
        time.sleep(0.2)
        with open(f"/proc/{pid}/io", encoding="ascii") as f:
            now = f.read()
        same = same + 1 if now == before else 0
        before = now


class Protocol(launch.Home):
    def kernel(self, *words, **more):
        kernel = Kernel(self.home, words=words, **more)
        self.addCleanup(kernel.close)
        return kernel

    # ---- cells

    def test_results(self):
        k = self.kernel()
        reply, found = k.run("6 * 7")
        self.assertEqual(reply, {
            "status": "ok", "execution_count": 1, "payload": [],
            "user_expressions": {}})
        self.assertEqual([(m["type"], m["content"]) for m in found], [
            ("execute_input", {"code": "6 * 7", "execution_count": 1}),
            ("execute_result", {"data": {"text/plain": "42"}, "metadata": {},
                                "execution_count": 1})])
        self.assertEqual(k.text("x = 5"), "")
        self.assertEqual(k.text("x;"), "")
        self.assertEqual(k.text("x = x + 1\nlocal y = x\ny * 2"),
                         "(y is kept as a session variable; use do ... end "
                         "for a scratch local)\n12")
        self.assertEqual(k.text("_ + y"), "18")
        self.assertEqual(k.text('"é", {1, 2}'), '"é"\t{1, 2}')
        self.assertEqual(k.text('io.write "a"'), "a")

    def test_tensors_as_tables(self):
        k = self.kernel()
        _, found = k.run("nacre.tensor{{1, 2}, {3, 40}}")
        data = found[1]["content"]["data"]
        self.assertEqual(data["text/plain"],
                         "int64[2x2] cpu  32 B\n    1    2\n    3   40")
        self.assertEqual(data["text/html"],
                         "<div><div><code>int64[2x2] cpu  32 B</code></div>\n"
                         "<table>\n<tr><td>1</td><td>2</td></tr>\n"
                         "<tr><td>3</td><td>40</td></tr>\n</table></div>")
        _, found = k.run("nacre.arange(1e6):reshape(1000, 1000)")
        data = found[1]["content"]["data"]
        self.assertIn("<td>...</td>", data["text/html"])
        self.assertLess(len(data["text/html"]), 5000)
        _, found = k.run("nacre.arange(300)")
        self.assertIn("<tr><th>[  1]</th><td>0</td>",
                      found[1]["content"]["data"]["text/html"])
        for code in "nacre.tensor(3)", "{nacre.ones(2)}", "'<b>'":
            data = k.run(code)[1][1]["content"]["data"]
            self.assertEqual(list(data), ["text/plain"], code)

    def test_a_cell_of_several_inputs(self):
        k = self.kernel()
        said = k.text("a = 3\n-- the variables\n:whos\n?nacre.exp\n"
                      "!echo child\nb = a\nb + 1")
        self.assertIn("a     3", said)
        self.assertIn("exp(self", said)
        self.assertTrue(said.endswith("child\n4"), said)
        self.assertEqual(k.text("1\n2"), "12")
        self.assertRegex(k.text(":time y = nacre.ones(10):exp()\ny:size()"),
                         r"^  \S+ .?s .*\n\{10\}$")
        self.assertEqual(k.text("> p = 1\n> p\n1"), "1")
        self.assertIn("sum(dim=", k.text("t = nacre.ones(3)\nt:sum\n"))
        self.assertEqual(k.text("t\n  :sum()\n  :item()"), "3.0")
        self.assertEqual(k.text("%%time\nx = 1\ny = 2\n").count("\n"), 1)
        self.assertEqual(k.text("-- nothing"), "")
        reply, found = k.run("print 'first'\n:nosuch\nprint 'last'")
        self.assertEqual(reply["status"], "error")
        self.assertEqual(shown(found[1]), "first\n")
        self.assertIn("no command :nosuch", reply["evalue"])
        self.assertEqual(k.text(":set precision 6\nnacre.tensor(1/3)"),
                         "0.333333  float32[] cpu")

    def test_errors(self):
        k = self.kernel()
        k.run("x = nacre.ones(2, 3)")
        reply, found = k.run("x:mm(x)")
        self.assertEqual(reply["ename"], "error")
        self.assertEqual(reply["evalue"], "mm: inner sizes differ: self has "
                         "3 columns, arg 1 has 2 rows")
        self.assertEqual(reply["traceback"][-1],
                         "  hint: x:mm(x:t()) gives float32[2x2]")
        self.assertEqual(found[1]["type"], "error")
        self.assertEqual(found[1]["content"], {
            name: reply[name] for name in ("ename", "evalue", "traceback")})
        for code, wrong in (("x = = 1", "unexpected symbol near '='"),
                            ("for i in", "unexpected symbol near <eof>"),
                            ("error {}", "the error is a table: {}"),
                            ("error()", "nil (error was called without a "
                             "message)"),
                            ("!exit 3", "a command has failed")):
            self.assertEqual(k.run(code)[0]["evalue"], wrong, code)
        self.assertTrue(k.alive())

    def test_counts(self):
        k = self.kernel()
        for more, code, count in (
                ({}, "1", 1), ({"silent": True}, "1", 1),
                ({"store_history": False}, "1", 1), ({}, "  \n", 1),
                ({}, "error 'x'", 2), ({}, "1", 3)):
            self.assertEqual(k.run(code, **more)[0]["execution_count"], count)
        # nothing of a silent cell is published
        _, found = k.run("print 'a'; x = 7; error 'b'", silent=True)
        self.assertEqual(found, [])
        self.assertEqual(k.text("x"), "7")

    def test_results_by_number(self):
        k = self.kernel()
        self.assertEqual(k.text("5 + 1"), "6")
        k.run("hidden = 1", store_history=False)
        self.assertEqual(k.text("y = _1 * 2\ny + 0"), "12")
        self.assertEqual(k.text("_2, In[1]"), '12\t"5 + 1"')
        self.assertEqual(k.text(":again 1"), "6")
        self.assertEqual(k.text(":whos > vars.txt"), "")
        self.assertIn("hidden", self.read("vars.txt"))
        self.assertEqual(k.text("#shell.lines ':whos' > 1"), "true")

    def test_user_expressions(self):
        k = self.kernel()
        reply, _ = k.run("x = nacre.ones(2)", user_expressions={
            "a": "x.shape", "b": "x + nil", "c": "x +"})
        got = reply["user_expressions"]
        self.assertEqual(got["a"], {"status": "ok", "metadata": {},
                                    "data": {"text/plain": "{2}"}})
        self.assertEqual([got[n]["status"] for n in "bc"], ["error"] * 2)

    def test_aborted_cells(self):
        k = self.kernel()
        cells = ["os.execute 'sleep 0.3'; error 'stop'", "1", "2"]
        names = [k.start(c) for c in cells]
        k.send("shell", "kernel_info_request", {})
        replies = [k.receive("shell") for _ in range(4)]
        self.assertEqual([m["content"]["status"] for m in replies],
                         ["error", "aborted", "aborted", "ok"])
        self.assertEqual([m["parent_header"]["msg_id"] for m in replies[:3]],
                         names)
        k.published(names[-1])
        names = [k.start(c, stop_on_error=False) for c in cells]
        self.assertEqual([k.receive("shell")["content"]["status"]
                          for _ in names], ["error", "ok", "ok"])
        k.published(names[-1])
        self.assertTrue(k.alive())

    def test_transcripts(self):
        """What a cell shows is in them, however it is shown."""
        k = self.kernel()
        for code in "1 + 1", "nacre.ones(2)", "print 'a'", "x.y":
            k.run(code)
        path = os.path.join(self.home, "t.nacre")
        k.text(":transcript " + path)
        self.assertIn("> 1 + 1\n2\n> nacre.ones(2)\nfloat32[2] cpu  8 B\n"
                      "  1.0  1.0\n> print 'a'\na\n> x.y\nerror: ",
                      self.read("t.nacre"))

    # ---- what is printed

    def test_streams(self):
        k = self.kernel()
        _, found = k.run("io.write 'a\\n'; os.execute 'echo b; echo c >&2'\n"
                         "print 'd'; io.stderr:write 'e'; warn 'f'")
        said = {"stdout": "", "stderr": ""}
        for m in found[1:]:
            self.assertEqual(m["type"], "stream")
            said[m["content"]["name"]] += m["content"]["text"]
        self.assertEqual(said, {"stdout": "a\nb\nd\n",
                                "stderr": "c\newarning: f\n"})
        # what was printed comes before what is shown
        self.assertEqual(k.text("io.write 'x'\n1\nio.write 'y'\n2"), "x1y2")
        self.assertEqual(k.text("io.write 'x'\n:whos nosuch\n"
                                ":show nacre.ones(2, 2)\nprint 'z'")[-2:],
                         "z\n")

    def test_output_is_live(self):
        k = self.kernel()
        flag = os.path.join(self.home, "go")
        name = k.start("print 'now'; while not io.open %r do end" % flag)
        self.assertEqual(k.wait_for("stream")["text"], "now\n")
        self.assertIsNone(k.process.poll())
        k.hb.send(b"ping")                  # while the cell runs
        self.assertTrue(k.hb.poll(20000))
        self.assertEqual(k.hb.recv(), b"ping")
        self.file("go")
        self.assertEqual(k.finish(name)[0]["status"], "ok")

    def test_large_outputs(self):
        k = self.kernel()
        self.assertEqual(k.text("for i = 1, 300000 do print(i) end"),
                         "".join("%d\n" % i for i in range(1, 300001)))
        self.assertEqual(k.text("io.write(('x'):rep(2e7))"), "x" * 20000000)
        self.assertEqual(len(k.text("!head -c 3000000 /dev/zero")), 3000000)
        _, found = k.run(":show nacre.rand(3, 1000, 1000)")
        png = base64.b64decode(found[1]["content"]["data"]["image/png"])
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(png), 1000000)

    def test_front_ends_that_are_slow(self):
        """The cell waits for them; nothing is lost, and nothing piles up."""
        k = self.kernel(queue=10)
        session = k.session_pid()
        name = k.start("for i = 1, 160 do io.write(('x'):rep(5e5)) end")
        k.pid = k.process.pid
        until_it_waits(session)
        self.assertFalse(k.shell.poll(0))
        if not k.is_sanitized():
            self.assertLess(k.memory(), 70 << 20)
        k.hb.send(b"ping")
        self.assertTrue(k.hb.poll(20000))
        self.assertEqual(len("".join(shown(m) for m in k.published(name))),
                         160 * 500000)
        self.assertEqual(k.receive("shell")["content"]["status"], "ok")
        # and one that reads nothing at all can interrupt it
        name = k.start("while true do io.write(('x'):rep(5e5)) end")
        until_it_waits(session)
        k.interrupt()
        self.assertEqual(k.receive("shell")["content"]["ename"], "interrupted")
        k.published(name)
        self.assertTrue(k.alive())

    def test_text_that_is_not_utf8(self):
        k = self.kernel()
        self.assertEqual(k.text(r"io.write '\xFF\xC3\xA9\xE2\x82'"),
                         "\ufffdé")
        # the end of a character comes later
        self.assertEqual(k.text(r"io.write '\xAC\n'"), "€\n")
        self.assertEqual(k.text("io.write(('é'):rep(200000), 'a')"),
                         "é" * 200000 + "a")
        self.assertEqual(k.text(r"'\xFF\0'"), r'"\xFF\x00"')

    def test_displays(self):
        k = self.kernel()
        _, found = k.run("for i in nacre.progress(8) do "
                         "os.execute 'sleep 0.1' end")
        found = found[1:]
        self.assertEqual(found[0]["type"], "display_data")
        self.assertEqual({m["type"] for m in found[1:]},
                         {"update_display_data"})
        self.assertEqual(len({m["content"]["transient"]["display_id"]
                              for m in found}), 1)
        self.assertRegex(shown(found[-1]), "^8 in ")
        _, found = k.run(":show nacre.zeros(4, 4)")
        self.assertEqual(found[1]["content"]["data"]["text/plain"],
                         "4x4 grey, 0..1")
        self.assertEqual(shown(found[2]), "4x4 grey, 0..1\n")
        self.assertEqual(k.run(":clear")[1][1]["type"], "clear_output")
        self.assertEqual([m["content"].get("wait") for m in k.run(
            "shell.watch(function() return 1 end, 0, 3)")[1]
            if m["type"] == "clear_output"], [True, True])
        for code in (":plot nacre.arange(9)", ":hist nacre.arange(99)",
                     ":heat nacre.arange(9):reshape(3, 3)",
                     "shell.plot(nacre.arange(9))"):
            data = k.run(code)[1][1]["content"]["data"]
            self.assertIn("</svg>", data["image/svg+xml"], code)
            self.assertIn("\n", data["text/plain"], code)
        path = os.path.join(self.home, "p.svg")
        self.assertIn("p.svg: ", k.text(":plot nacre.arange(9) -o " + path))
        self.assertIn("</svg>", self.read("p.svg"))
        path = os.path.join(self.home, "p.txt")
        self.assertEqual(k.text(":plot nacre.arange(9) > " + path), "")
        self.assertIn("nacre.arange(9)\n", self.read("p.txt"))

    # ---- input

    def test_input(self):
        k = self.kernel()

        def answer(name, *values):
            for value in values:
                m = k.receive("stdin")
                self.assertEqual(m["type"], "input_request")
                self.assertEqual(m["parent_header"]["msg_id"], name)
                self.assertIs(m["content"]["password"], False)
                k.send("stdin", "input_reply", {"value": value})
            reply, found = k.finish(name)
            self.assertEqual(reply["status"], "ok", reply)
            return "".join(map(shown, found))

        self.assertEqual(answer(k.start(
            "io.write 'name? '; io.read()", allow_stdin=True), "Ärger"),
            'name? "Ärger"')
        self.assertEqual(answer(k.start(
            "io.read('n', 'n', 'l')", allow_stdin=True), "1 2"), '1\t2\t""')
        self.assertEqual(answer(k.start(
            "io.stdin:read('L')", allow_stdin=True), "3"), '"3\\n"')
        self.assertEqual(answer(k.start(
            "for l in io.lines() do print(#l) end", allow_stdin=True),
            "a", "x" * 1000000, "\x04"), "1\n1000000\n")
        self.assertEqual(answer(k.start("io.read 'a'", allow_stdin=True),
                                "a", "b", "\x04"), '"a\\nb\\n"')
        for code in "io.read()", "io.stdin:read 'n'":
            reply, _ = k.run(code)
            self.assertEqual(reply["evalue"], "this front end takes no input")
        # children have no terminal to read from, either
        self.assertEqual(k.text("!cat; echo end"), "end\n")
        # after an interrupt, an answer that comes too late is forgotten
        name = k.start("io.read()", allow_stdin=True)
        k.receive("stdin")
        k.interrupt()
        self.assertEqual(k.finish(name)[0]["ename"], "interrupted")
        k.send("stdin", "input_reply", {"value": "late"})
        self.assertEqual(answer(k.start("io.read()", allow_stdin=True), "new"),
                         '"new"')

    # ---- interrupts

    LOOPS = ("print 'on'; while true do end",
             "print 'on'; while true do pcall(error) end",
             "x = nacre.ones(700, 700); print 'on'; while true do x:mm(x) end",
             "print 'on'\n!sleep 60")

    def interrupted(self, k, code, how):
        name = k.start(code)
        k.wait_for("stream")
        how()
        reply, _ = k.finish(name)
        self.assertEqual(reply["status"], "error", code)
        return reply

    def test_interrupts(self):
        k = self.kernel()
        for code in self.LOOPS:
            reply = self.interrupted(k, code, k.interrupt)
            if "!" not in code:
                self.assertEqual(reply["ename"], "interrupted", code)
                self.assertRegex(reply["evalue"], "^interrupted")
            self.assertTrue(k.alive())

        def by_message():
            k.send("control", "interrupt_request", {})
            self.assertEqual(k.receive("control")["content"],
                             {"status": "ok"})
        self.interrupted(k, self.LOOPS[0], by_message)
        self.assertEqual(k.text("x:size(1)"), "700")

    def test_interrupts_at_rest(self):
        """They end nothing, neither what was before nor what comes next."""
        k = self.kernel()
        for i in range(50):
            k.interrupt()
            self.assertEqual(k.ask("interrupt_request", {}, "control")[0],
                             {"status": "ok"})
            self.assertEqual(k.text("x = 0; for i = 1, 1e5 do x = x + i end; "
                                    "%d" % i), "%d" % i)

    def test_interrupts_at_the_end(self):
        """One that misses the end of a cell does not end the next one."""
        k = self.kernel()
        for i in range(150):
            name = k.start("x = 0; for i = 1, 2e4 do x = x + i end")
            time.sleep(random.uniform(0, 0.004))
            k.interrupt()
            self.assertIn(k.finish(name)[0].get("ename", "interrupted"),
                          ("interrupted",))
            self.assertEqual(k.text("%d" % i), "%d" % i)

    def test_interrupts_at_once(self):
        """One that is sent just after the cell ends it, however early."""
        k = self.kernel()
        for _ in range(30):
            name = k.start("while true do end")
            while k.receive("iopub")["content"] != {"execution_state": "busy"}:
                pass
            k.interrupt()
            self.assertEqual(k.finish(name)[0]["ename"], "interrupted")

    # ---- questions about code

    def test_completion(self):
        k = self.kernel()
        k.run("matrix = nacre.ones(2, 3)")

        def complete(code, at=None):
            at = len(code) if at is None else at
            r, _ = k.ask("complete_request", {"code": code, "cursor_pos": at})
            self.assertEqual(r["status"], "ok")
            return r["matches"], code[r["cursor_start"]:r["cursor_end"]]

        self.assertEqual(complete("matr"), (["matrix"], "matr"))
        self.assertEqual(complete("y = 'äöü'\nmatr + 1", 14),
                         (["matrix"], "matr"))
        found, word = complete("matrix:soft")
        self.assertEqual((found[0], word), ("softmax(", "soft"))
        self.assertEqual(complete("x = 1\n:who"), (["whos "], "who"))
        self.assertIn("cuda", complete(":dev c")[0])
        self.assertEqual(complete("nosuchname"), ([], "nosuchname"))
        self.assertEqual(complete(""), (complete("")[0], ""))
        self.file("data/some file.npy")
        self.file("data/.hidden")
        self.assertEqual(complete("nacre.load('data/so"),
                         (["some file.npy'"], "so"))
        self.assertEqual(complete("nacre.load('da"), (["data/"], "da"))
        self.assertEqual(complete(":run data/"),
                         (['"data/some file.npy" '], "data/"))
        # positions that cannot be
        for at in -1, 99, 1.5, "x", None:
            k.ask("complete_request", {"code": "matr", "cursor_pos": at})
        self.assertTrue(k.alive())

    def test_inspection(self):
        k = self.kernel()
        r, _ = k.ask("inspect_request", {"code": "nacre.exp(x)",
                                         "cursor_pos": 8, "detail_level": 0})
        self.assertTrue(r["found"])
        self.assertIn("exp(self", r["data"]["text/plain"])
        r, _ = k.ask("inspect_request", {"code": "nosuch", "cursor_pos": 3})
        self.assertEqual((r["found"], r["data"]), (False, {}))

    def test_completeness(self):
        k = self.kernel()
        for code, status in (("1 + 1", "complete"), ("x =", "incomplete"),
                             ("for i = 1, 3 do", "incomplete"),
                             ("x = = 1", "invalid"), (":whos", "complete"),
                             (":time for i = 1, 3 do", "incomplete"),
                             ("", "complete"), ("!ls (", "complete")):
            r, _ = k.ask("is_complete_request", {"code": code})
            self.assertEqual(r["status"], status, code)
        r, _ = k.ask("is_complete_request", {"code": "for i = 1, 3 do\n"})
        self.assertEqual(r["indent"], "  ")

    def test_history(self):
        k = self.kernel()
        for code in "a = 1", "b = 2", "a = 1", "print(b)":
            k.run(code)
        k.run("hidden = 1", store_history=False)

        def history(**more):
            r, _ = k.ask("history_request", {"output": False, "raw": True,
                                             **more})
            return r["history"]

        self.assertEqual(history(hist_access_type="tail", n=2),
                         [[0, 3, "a = 1"], [0, 4, "print(b)"]])
        self.assertEqual(history(hist_access_type="range", session=0,
                                 start=1, stop=3),
                         [[0, 1, "a = 1"], [0, 2, "b = 2"]])
        self.assertEqual(history(hist_access_type="search", pattern="a*",
                                 unique=True, n=9), [[0, 3, "a = 1"]])
        self.assertEqual(history(hist_access_type="search", pattern="*(b)"),
                         [[0, 4, "print(b)"]])
        self.assertEqual(history(hist_access_type="tail", n=1, output=True),
                         [[0, 4, ["print(b)", None]]])
        self.assertEqual(history(hist_access_type="nonsense"), [])

    def test_kernel_info_and_comms(self):
        k = self.kernel()
        info, _ = k.ask("kernel_info_request", {})
        self.assertEqual(info["language_info"]["file_extension"], ".lua")
        self.assertEqual(info["protocol_version"][:2], "5.")
        self.assertEqual(info["implementation"], "nacre")
        r, _ = k.ask("comm_info_request", {})
        self.assertEqual(r, {"status": "ok", "comms": {}})
        name = k.send("shell", "comm_open", {"comm_id": "c", "data": {},
                                             "target_name": "t"})
        self.assertEqual([(m["type"], m["content"]["comm_id"])
                          for m in k.published(name)], [("comm_close", "c")])

    # ---- messages that are wrong

    def test_malformed_messages(self):
        k = self.kernel()
        _, good = k.frames("execute_request", {"code": "x = 1"})

        def signed(*parts):
            return [DELIMITER, k.sign(parts), *parts]

        def changed(i, frame):
            return good[:i] + [frame] + good[i + 1:]

        deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
        for frames in (
                [b""], [DELIMITER], good[:-1], good[1:],
                changed(1, b""), changed(1, b"0" * 64), changed(1, b"x"),
                changed(5, b'{"code": "x = 2"}'),
                k.frames("execute_request", {"code": "x = 3"}, key="other")[1],
                signed(b"", b"", b"", b""), signed(b"{", b"{}", b"{}", b"{}"),
                signed(b"[]", b"{}", b"{}", b"{}"),
                signed(b"{}", b"{}", b"{}", b"{}"),
                signed(b'{"msg_type": 1}', b"{}", b"{}", b"{}"),
                signed(b"\xff\xfe", b"\0", b"{}", b"{}"),
                signed(good[2], b"{}", b"{}", b"[1]"),
                signed(good[2], b"{}", b"{}", b"{\"code\":"),
                signed(good[2], b"{}", b"{}", deep)):
            for s in k.shell, k.control, k.stdin:
                s.send_multipart(frames)
        k.hb.send_multipart([b"1", b"2"])
        self.assertEqual(k.hb.recv_multipart(), [b"1", b"2"])
        name = k.send("shell", "nonsense_request", {})
        self.assertEqual(k.published(name), [])
        k.send("stdin", "input_reply", {"value": 1})
        for code in 7, None, ["x"]:
            self.assertEqual(k.run(code)[0]["status"], "ok")
        self.assertEqual(k.text("x == nil"), "true")

    def test_messages_that_are_replayed(self):
        """What was signed once runs once, whoever sends it, and wherever."""
        k = self.kernel()
        k.text("n = 0")
        name, frames = k.frames("execute_request", {"code": "n = n + 1"})
        again = list(frames)            # the same bytes, otherwise cut
        again[3:5] = frames[3] + frames[4][:1], frames[4][1:]
        k.shell.send_multipart(frames)
        k.finish(name)
        k.session = "somebody else"
        for channel in "shell", "control", "stdin":
            other = k.connect(channel, zmq.DEALER)
            self.addCleanup(other.close)
            for s in getattr(k, channel), other:
                for replay in frames, again:
                    s.send_multipart(replay)
        _, asked = k.frames("complete_request", {"code": "n", "cursor_pos": 1})
        for _ in range(3):
            k.shell.send_multipart(asked)
        self.assertEqual(k.receive("shell")["type"], "complete_reply")
        self.assertEqual(k.text("n"), "1")
        # what is kept of signatures is not all: the last are
        for _ in range(200):
            k.text("n = n + 1")
        k.shell.send_multipart(frames)
        self.assertEqual(k.text("n"), "201")

    def test_keys_and_transports(self):
        k = self.kernel(key="")         # nothing is signed
        self.assertTrue(k.alive())
        k = self.kernel(transport="ipc")
        self.assertTrue(k.alive())

    def test_connections_that_are_wrong(self):
        good = {"ip": "127.0.0.1", "transport": "tcp", "key": "k",
                "shell_port": 1, "iopub_port": 1, "stdin_port": 1,
                "control_port": 1, "hb_port": 1}
        for text, wrong in (
                (None, "No such file"), ("[]", "port"),
                ("{", "a key in quotes was expected"),
                (json.dumps({**good, "signature_scheme": "hmac-md5"}), "md5"),
                (json.dumps({**good, "hb_port": None}), "there is no hb_port"),
                (json.dumps({**good, "transport": "udp"}), "udp://")):
            path = os.path.join(self.home, "c.json")
            if text is not None:
                self.file("c.json", text)
            p = subprocess.run([launch.NACRE, "--kernel", path], timeout=60,
                               capture_output=True, text=True,
                               env=launch.surroundings(self.home))
            self.assertEqual(p.returncode, 1, text)
            self.assertIn(wrong, p.stderr, text)

    def test_libraries_that_are_missing(self):
        self.file("c.json", json.dumps({
            "ip": self.home, "transport": "ipc", "key": "k", "shell_port": 1,
            "iopub_port": 2, "stdin_port": 3, "control_port": 4,
            "hb_port": 5}))
        for variable, hint in (("NACRE_ZMQ", "libzmq5"),
                               ("NACRE_SODIUM", "libsodium23")):
            p = subprocess.run(
                [launch.NACRE, "--kernel", os.path.join(self.home, "c.json")],
                env=launch.surroundings(self.home, **{variable: "none"}),
                capture_output=True, text=True, timeout=60)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(hint, p.stderr)

    # ---- how it ends

    def test_shutdown(self):
        for channel in "control", "shell":
            for restart in True, False:
                k = self.kernel()
                pid = k.session_pid()
                r, found = k.ask("shutdown_request", {"restart": restart},
                                 channel)
                self.assertEqual(r, {"status": "ok", "restart": restart})
                self.assertEqual(found[0]["type"], "shutdown_reply")
                self.assertEqual(k.process.wait(20), 0)
                self.assertTrue(gone(pid))
        k = self.kernel()                   # while a cell runs
        k.start("!sleep 100")
        k.wait_for("execute_input")
        k.send("control", "shutdown_request", {"restart": False})
        self.assertEqual(k.process.wait(20), 0)

    def test_sessions_that_end(self):
        for code, status, name in (
                ("os.exit(3)", 3, "exit"), ("os.exit()", 0, "exit"),
                ("io.write 'last'; os.exit(true)", 0, "exit"),
                ("!kill -KILL $PPID", 128 + signal.SIGKILL, "signal")):
            k = self.kernel()
            reply, found = k.run(code)
            self.assertEqual((reply["status"], reply["ename"]),
                             ("error", name))
            self.assertIn(str(status % 128), reply["evalue"])
            if "last" in code:
                self.assertEqual(shown(found[1]), "last")
            self.assertEqual(k.process.wait(20), status)
        k = self.kernel()
        reply, _ = k.run(":quit")
        self.assertEqual(reply["payload"], [
            {"source": "ask_exit", "keepkernel": False}])
        self.assertEqual(k.process.wait(20), 0)

    def test_signals_that_end_it(self):
        for sig in signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
            k = self.kernel()
            pid = k.session_pid()
            k.start("while true do end")
            k.wait_for("execute_input")
            os.kill(k.process.pid, sig)
            self.assertEqual(k.process.wait(20), -sig)
            self.assertTrue(gone(pid))

    def test_parents_that_end(self):
        """The kernel ends with the program that started it, if that says that
        it is a front end."""
        script = ("import os, subprocess, sys\n"
                  "p = subprocess.Popen([sys.argv[1], '--kernel', "
                  "sys.argv[2]], env={**os.environ, "
                  "'JPY_PARENT_PID': str(os.getpid())})\n"
                  "print(p.pid, flush=True)\nsys.stdin.read()\n")
        self.file("c.json", json.dumps({
            "ip": self.home, "transport": "ipc", "key": "k", "shell_port": 1,
            "iopub_port": 2, "stdin_port": 3, "control_port": 4,
            "hb_port": 5}))
        p = subprocess.Popen(
            [sys.executable, "-c", script, launch.NACRE,
             os.path.join(self.home, "c.json")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        pid = int(p.stdout.readline())
        time.sleep(0.2)
        self.assertFalse(gone(pid, 0))
        p.kill()
        p.communicate()
        self.assertTrue(gone(pid))

    # ---- what it takes

    def test_thousand_cells(self):
        k = self.kernel()
        k.pid = k.session_pid()
        for i in range(1000):
            self.assertEqual(k.text("x = nacre.ones(%d); x:size(1)" %
                                    (i + 1)), "%d" % (i + 1))
            if i == 100:
                before = k.memory()
        if k.is_sanitized():
            return
        self.assertLess(k.memory(), before + (8 << 20))
        for i in range(20):                 # one is kept, to be used again
            k.run("big = nacre.ones(%d, {dtype = 'uint8'}); big = nil" %
                  (100000000 + i))
        self.assertLess(k.memory(), before + (300 << 20))

    def test_startup_file_and_options(self):
        self.file(".config/nacre/init.lua",
                  "function twice(x) return 2 * x end")
        self.assertEqual(self.kernel().text("twice(4)"), "8")
        k = self.kernel("--no-rc", "--seed", "7", "-e", "y = 5")
        self.assertEqual(k.text("twice == nil, y, nacre.initial_seed()"),
                         "true\t5\t7")
        self.file(".config/nacre/init.lua", "error 'broken'")
        k = self.kernel()
        k.run("0")                  # the file's error may come with its output
        self.assertTrue(k.alive())

    def test_nothing_is_loaded_without_it(self):
        p = subprocess.run(
            [launch.NACRE, "-e", "for l in io.lines '/proc/self/maps' do "
             "print(l) end"], capture_output=True, text=True, timeout=60,
            env=launch.surroundings(self.home))
        self.assertNotRegex(p.stdout, "zmq|sodium")


if __name__ == "__main__":
    launch.main()
