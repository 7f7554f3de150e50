#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_jupyter.py - the kernel under Jupyter's own programs: jupyter_client
# starts, interrupts and restarts it, nbconvert runs the notebook of the guide.
#   test_jupyter.py NACRE --update    writes the outputs of that notebook

import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(1, os.path.join(os.path.dirname(__file__), "../shell"))
import launch

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TOUR = os.path.join(ROOT, "docs/guide/tour.ipynb")


def install(home):
    """Installs the kernel below home, for Jupyter in this process, too."""
    os.environ["JUPYTER_DATA_DIR"] = os.path.join(home, "jupyter")
    os.environ["HOME"] = home
    p = subprocess.run([launch.NACRE, "--install-kernel"], timeout=60,
                       capture_output=True, text=True, check=True)
    return p.stdout.strip()


def execute(path, *words):
    """Runs a notebook; gives it and what nbconvert said."""
    out = os.path.join(os.environ["HOME"], "out.ipynb")
    p = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute",
         "--ExecutePreprocessor.kernel_name=nacre", "--output", out, *words,
         path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300)
    if p.returncode != 0:
        return None, p.stderr
    with open(out, encoding="utf-8") as f:
        return json.load(f), p.stderr


def plain(notebook):
    """The cells: source and outputs, without what differs between versions
    of nbconvert and between two runs, as the memory that is free."""
    def same(text):
        return re.sub("^  cpu .* free$", "  cpu ...", "".join(text),
                      flags=re.M)
    cells = []
    for c in notebook["cells"]:
        outputs = []
        for o in c.get("outputs", []):
            one = [o["output_type"], o.get("name"), o.get("traceback"),
                   same(o.get("text", "")),
                   {k: "".join(v) for k, v in o.get("data", {}).items()}]
            if outputs and outputs[-1][:2] == one[:2] == ["stream", one[1]]:
                outputs[-1][3] += one[3]
            else:
                outputs.append(one)
        cells.append(("".join(c["source"]), outputs))
    return cells


class Jupyter(launch.Home):
    def setUp(self):
        super().setUp()
        self.folder = install(self.home)

    def start(self):
        from jupyter_client.manager import start_new_kernel
        manager, client = start_new_kernel(kernel_name="nacre",
                                           startup_timeout=60)
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        return manager, client

    def run_(self, client, code, **more):
        """The reply and the outputs of a cell."""
        found = []
        reply = client.execute_interactive(
            code, output_hook=found.append, timeout=60, **more)
        return reply["content"], [m for m in found if m["msg_type"] not in
                                  ("status", "execute_input")]

    def test_the_kernelspec(self):
        with open(os.path.join(self.folder, "kernel.json"),
                  encoding="utf-8") as f:
            spec = json.load(f)
        self.assertEqual(spec["argv"], [os.path.realpath(launch.NACRE),
                                        "--kernel", "{connection_file}"])
        from jupyter_client.kernelspec import KernelSpecManager
        found = KernelSpecManager().get_kernel_spec("nacre")
        self.assertEqual((found.display_name, found.language),
                         ("Nacre", "lua"))
        self.assertTrue(os.path.exists(os.path.join(found.resource_dir,
                                                    "logo-svg.svg")))

    def test_where_it_is_installed(self):
        def where(*words, **variables):
            p = subprocess.run([launch.NACRE, "--install-kernel", *words],
                               env=launch.surroundings(self.home, **variables),
                               capture_output=True, text=True, timeout=60)
            return p.returncode, p.stdout.strip(), p.stderr
        usual = self.home + "/.local/share/jupyter/kernels/nacre"
        self.assertEqual(where()[:2], (0, usual))
        self.assertEqual(where("--user")[:2], (0, usual))
        self.assertEqual(where(XDG_DATA_HOME=self.home + "/d")[:2],
                         (0, self.home + "/d/jupyter/kernels/nacre"))
        self.assertEqual(where("--prefix", self.home + "/p")[:2],
                         (0, self.home + "/p/share/jupyter/kernels/nacre"))
        self.assertEqual(where("--prefix", "p", "--user")[0], 2)
        self.file("file")
        status, _, said = where("--prefix", self.home + "/file")
        self.assertEqual(status, 1)
        self.assertIn("cannot make", said)

    def test_cells(self):
        _, client = self.start()
        reply, found = self.run_(client, "print 'a'\nnacre.ones(2) + 1")
        self.assertEqual(reply["status"], "ok")
        self.assertEqual([m["msg_type"] for m in found],
                         ["stream", "execute_result"])
        self.assertIn("2.0  2.0", found[1]["content"]["data"]["text/plain"])
        reply = client.complete("nacre.soft", reply=True, timeout=60)
        self.assertIn("softmax(", reply["content"]["matches"])

    def test_input(self):
        _, client = self.start()
        reply, found = self.run_(
            client, "'<' .. io.read() .. '>'", allow_stdin=True,
            stdin_hook=lambda m: client.input("answer"))
        self.assertEqual(found[0]["content"]["data"]["text/plain"],
                         '"<answer>"')

    def test_interrupt_and_restart(self):
        manager, client = self.start()
        self.run_(client, "x = 5")

        def on_output(message):
            if message["msg_type"] == "stream":
                manager.interrupt_kernel()
        reply = client.execute_interactive(
            "print 'on'; while true do end", output_hook=on_output, timeout=60)
        self.assertEqual(reply["content"]["ename"], "interrupted")
        self.assertEqual(self.run_(client, "x")[1][0]["content"]["data"],
                         {"text/plain": "5"})
        manager.restart_kernel(now=False)
        client.wait_for_ready(timeout=60)
        self.assertEqual(self.run_(client, "x == nil")[1][0]["content"]["data"],
                         {"text/plain": "true"})

    def notebook(self, *sources):
        return self.file("n.ipynb", json.dumps({
            "nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [
                {"cell_type": "code", "metadata": {}, "outputs": [],
                 "execution_count": None, "source": s} for s in sources]}))

    def test_nbconvert(self):
        ran, said = execute(self.notebook("a = 1", "a + 1"))
        self.assertIsNotNone(ran, said)
        self.assertEqual(plain(ran)[1][1], [
            ["execute_result", None, None, "", {"text/plain": "2"}]])
        ran, said = execute(self.notebook("error 'stop here'"))
        self.assertIsNone(ran)
        self.assertIn("stop here", said)
        ran, said = execute(self.notebook("io.read()"))
        self.assertIn("this front end takes no input", said)

    def test_the_tour(self):
        with open(TOUR, encoding="utf-8") as f:
            written = json.load(f)
        ran, said = execute(TOUR, "--allow-errors")
        self.assertIsNotNone(ran, said)
        self.maxDiff = None
        self.assertEqual(plain(ran), plain(written))


def update():
    import tempfile
    with tempfile.TemporaryDirectory() as home:
        install(home)
        ran, said = execute(TOUR, "--allow-errors")
        assert ran, said
        for c in ran["cells"]:
            c.get("metadata", {}).pop("execution", None)
            c.pop("id", None)
        with open(TOUR, encoding="utf-8") as f:
            metadata = json.load(f)["metadata"]
        ran["metadata"], ran["nbformat_minor"] = metadata, 4
        with open(TOUR, "w", encoding="utf-8") as f:
            json.dump(ran, f, indent=1, ensure_ascii=False, sort_keys=True)
            f.write("\n")


if __name__ == "__main__":
    if sys.argv[2:] == ["--update"]:
        launch.NACRE = os.path.abspath(sys.argv[1])
        update()
    else:
        launch.main()
