#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What nacre.load reads besides files: pipes, standard input, open files of
Lua's; formats that are asked for; files of other programs, named as what they
are.  Run by: tests/files/test_streams.py PROGRAM"""
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
import threading

PROGRAM = os.path.abspath(sys.argv[1])


def run(code, stdin=b""):
    done = subprocess.run([PROGRAM, "-e", code], input=stdin, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode()


def gives(wanted, code, stdin=b""):
    text = run(code, stdin)
    assert wanted in text, f"{code}\n{text}\nhas not: {wanted}"


CSV = b"1,2\n3,4.5\n"
os.chdir(tempfile.mkdtemp())
for path in '"-"', '"/dev/stdin"', "io.stdin":
    gives("float32[2x2]", f'print(nacre.load({path}, {{format="csv"}}))', CSV)
    gives("float32[1x2]",
          f'print(nacre.load({path}, {{format="tsv", skip=1}}))',
          b"1\t2\n3\t4.5\n")
gives("float32[1x2]", 'io.read() print(nacre.load(io.stdin, {format="csv"}))',
      CSV)
gives("a 2", 't, n = nacre.load("-", {format="csv", header=true, '
      'usecols="a"}) print(n[1] .. " " .. t:numel())', b"a,b\n1,x\n2,y\n")
gives('stdin: line 1, column 2: "x" is not a valid number',
      'nacre.load("-", {format="csv"})', b"1,x\n")

# The formats that tell what they are, from a file and from a pipe.
run('nacre.save("w.npy", nacre.ones(2)) '
    'nacre.save("w.safetensors", {a = nacre.ones(2)}) '
    'pcall(nacre.save, "w.npz", {a = nacre.ones(2)})')
for name in "w.npy", "w.safetensors", "w.npz":
    if not os.path.exists(name):
        continue                # there is no libzip
    data = open(name, "rb").read()
    open("unnamed.bin", "wb").write(data)
    for path in "-", "unnamed.bin":
        gives("float32[2]", f'x = nacre.load("{path}") '
              'print(nacre.is_tensor(x) and x or x.a)', data)
    gives("false", f'print(pcall(nacre.load, "-"))', data[:-1])
    gives("false", 'print(pcall(nacre.load, "-", {format="csv"}))', data)
gives('format must be npy, idx', 'nacre.load("-", {format="xls"})')
open("t.dat", "wb").write(CSV)
gives("float32[2x2]", 'print(nacre.load("t.dat", {format="csv"}))')
gives('{format="csv"}', 'nacre.load("t.dat")')
gives('{format="csv"}', 'nacre.load("t.dat", {delimiter=","})')
gives("1.0,1.0", 'nacre.save("/dev/stdout", nacre.ones(1, 2), '
      '{format="csv"})')
gives("there is no format .xls", 'nacre.save("x", nacre.ones(1), '
      '{format="xls"})')

# A pipe that a name leads to: opening waits for who writes.
os.mkfifo("pipe")
writer = threading.Timer(0.2, lambda: open("pipe", "wb").write(CSV))
writer.start()
gives("float32[2x2]", 'print(nacre.load("pipe", {format="csv"}))')
writer.join()
gives("float32[2x2]", 'f = io.popen "printf \'1,2\\\\n3,4.5\\\\n\'" '
      'print(nacre.load(f, {format="csv"}))')
gives("the file is closed", 'f = io.open("t.dat") f:close() nacre.load(f)')
gives("this is not a regular file", 'nacre.load "/dev/zero"')
gives("path must be a string, not an integer", "nacre.load(3)")

# What a shell writes <(...).
out, into = os.pipe()
os.write(into, CSV)
os.close(into)
done = subprocess.run([PROGRAM, "-e", f'print(nacre.load("/dev/fd/{out}", '
                       '{format="csv"}))'], timeout=60, pass_fds=[out],
                      stdout=subprocess.PIPE)
assert b"float32[2x2]" in done.stdout, done.stdout

# No more is read than there may be.
endless = subprocess.Popen(["yes", "1"], stdout=subprocess.PIPE)
done = subprocess.run([PROGRAM, "-e", 'nacre.set_memory_limit(1 << 25) '
                       'nacre.load("-", {format="csv"})'], timeout=60,
                      stdin=endless.stdout, stderr=subprocess.PIPE)
endless.stdout.close()
endless.wait()
assert b"the limit of 32.0 MiB" in done.stderr, done.stderr

# Files of others.
with tarfile.open("x.tar", "w") as tar:
    tar.add("t.dat")
foreign = [("a Parquet file", b"PAR1"),
           ("compressed by bzip2", b"BZh91AY&SY"),
           ("a file of torch.save before 0.1.12, a tar archive",
            b"sys_info"),
           ("a tar archive", open("x.tar", "rb").read())]
foreign += [("a Python pickle", pickle.dumps([1.5], p)) for p in (2, 3, 4, 5)]
for name, data in foreign:
    for path in "x.npy", "x.csv", "x.pt", "x":
        open(path, "wb").write(data + bytes(600))
        gives(f"this is {name}, which cannot be read", f'nacre.load("{path}")')

# Several arrays in one file.
one = open("w.npy", "rb").read()
open("two.npy", "wb").write(one + one)
gives("2 float32",
      'local l = nacre.load "two.npy" print(#l .. " " .. l[2].dtype)')
open("long.npy", "wb").write(one + b"123456")
gives("takes 8 bytes, the file has 14 left", 'nacre.load "long.npy"')
print("streams: ok")
