#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A history that is no file, or that somebody holds: the shell starts without
it and says why.  Run by: tests/shell/test_history_file.py PROGRAM"""
import fcntl
import os
import pty
import select
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
os.chdir(tempfile.mkdtemp())


def session(path, lines):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(NACRE_HISTORY=path, TERM="dumb")
        os.execl(PROGRAM, PROGRAM)
    shown, end, sent = b"", time.time() + 60, False
    while time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:     # the other end is closed
                break
            if not data:
                break
            shown += data
        if not sent and b"> " in shown:
            os.write(fd, lines + b"\nos.exit()\n")
            sent = True
    else:
        os.kill(pid, 9)
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (status, shown)
    return shown.decode(errors="replace")


def warns(path, why):
    shown = session(path, b"print(40 + 2)")
    assert f"no history: {path}: {why}" in shown and "42" in shown, shown


os.mkfifo("pipe")
warns("pipe", "this is not a regular file")
os.mkdir("folder")
warns("folder", "")
with open("locked", "w") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    warns("locked", "it is locked")

# What lies behind a zero byte is not lost.
with open("zero", "wb") as f:
    f.write(b"#1\na = \0001\n#2\nb = 2\n")
session("zero", b"c = 3")
assert b"b = 2" in open("zero", "rb").read()
assert b"c = 3" in open("zero", "rb").read()
print("history_file: ok")
