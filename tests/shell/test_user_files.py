#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of the user that the program rewrites: what cannot be read is not
replaced, a link stays a link, and nobody can prepare a temporary name.  Run by: tests/shell/test_user_files.py PROGRAM"""
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])


def run(*args, text=""):
    done = subprocess.run([PROGRAM, *args], input=text.encode(), timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode()


def write(name, text):
    with open(name, "w") as f:
        f.write(text)


def holds(name, text):
    with open(name) as f:
        found = f.read()
    assert found == text, (name, found)


def setting(value):
    return run("-i", "-q", text=f":set! edge {value}\n")


os.chdir(tempfile.mkdtemp())
os.environ["XDG_CONFIG_HOME"] = os.getcwd()
write("victim", "victim")
INIT = "nacre/init.lua"

# A new file, then a link to one elsewhere, whose mode stays.
assert "edge = 4" in setting(4)
holds(INIT, 'shell.set("edge", "4")\n')
os.remove(INIT)
write("real.lua", "-- mine\n")
os.chmod("real.lua", 0o640)
os.symlink("../real.lua", INIT)
os.symlink("../victim", INIT + ".new")
assert "edge = 2" in setting(2)
assert os.path.islink(INIT)
assert os.stat("real.lua").st_mode & 0o777 == 0o640
holds("real.lua", '-- mine\nshell.set("edge", "2")\n')
assert sorted(os.listdir("nacre")) == ["init.lua", "init.lua.new"]

# What cannot be read: a folder; a file without the right (root reads all).
os.remove(INIT)
os.mkdir(INIT)
assert "error: cannot read" in setting(3)
os.rmdir(INIT)
if os.geteuid() != 0:
    write(INIT, "-- mine\n")
    os.chmod(INIT, 0o200)
    assert "error: cannot read" in setting(3)
    os.chmod(INIT, 0o600)
    holds(INIT, "-- mine\n")

# A session that is brought up to date.
write("x.nacre", "> 1 + 1\n3\n")
os.symlink("victim", "x.nacre.new")
run("--test", "--update", "x.nacre")
holds("x.nacre", "> 1 + 1\n2\n")
assert os.path.islink("x.nacre.new")

holds("victim", "victim")
