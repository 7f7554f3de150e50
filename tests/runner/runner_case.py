#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal that ends the program while it saves leaves the old file, or the
new one, and nothing beside it.  Run by: tests/runner/test_save_signals.py PROGRAM"""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
SAVES = """
local t = nacre.ones(%d, 500)
nacre.save("x.%s", %s)
io.stdout:write("begun\\n") io.stdout:flush()
while true do nacre.save("x.%s", %s) end
"""
SIGNALS = signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT
FORMATS = (("npy", "t", 2000), ("safetensors", "{t = t}", 2000),
           ("csv", "t", 200))


def litter(folder):
    return [name for name in os.listdir(folder) if ".tmp" in name]


def caught_saving(folder, delay):
    """Waits until a temporary file is there, and a moment more."""
    end = time.monotonic() + 60
    while not litter(folder) and time.monotonic() < end:
        pass
    time.sleep(delay)


def ends(form, number, delay):
    extension, what, rows = form
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen(
            [PROGRAM, "-e", SAVES % (rows, extension, what, extension, what)],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdout.readline()
        caught_saving(folder, delay)
        child.send_signal(number)
        assert child.wait(60) == -number, (form, number, child.returncode)
        assert os.listdir(folder) == ["x." + extension], os.listdir(folder)
        child.stdout.close()


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for index, number in enumerate(SIGNALS):
    for k, form in enumerate(FORMATS):
        ends(form, number, 0.001 * ((index + k) % 4))

# What is ignored stays so: nohup(1).
with tempfile.TemporaryDirectory() as folder:
    child = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$0" "$@"', PROGRAM, "-e",
         SAVES % (2000, "npy", "t", "npy", "t")], cwd=folder,
        stdout=subprocess.PIPE)
    child.stdout.readline()
    child.send_signal(signal.SIGHUP)
    time.sleep(0.05)
    assert child.poll() is None
    child.terminate()
    assert child.wait(60) == -signal.SIGTERM
    assert os.listdir(folder) == ["x.npy"], os.listdir(folder)
    child.stdout.close()
