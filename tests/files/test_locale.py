#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numbers in files, and in what is shown, keep their point in a locale whose
decimal mark is a comma, whoever sets it: a script, or code of Python.  Exits
with 77 where no such locale can be made.  Run by: test_locale.py PROGRAM"""
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
NAME = "de_DE.UTF-8"
os.chdir(tempfile.mkdtemp())
try:
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8",
                           os.path.join(os.getcwd(), NAME)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
except OSError as error:
    print(error)
    sys.exit(77)
if made.returncode:
    print(made.stdout.decode())
    sys.exit(77)
HOME = os.path.join(os.getcwd(), "home")
os.mkdir(HOME)
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": HOME, "LOCPATH": os.getcwd(),
               "ASAN_OPTIONS": "detect_leaks=0"}  # glibc's copy of LOCPATH

SET = f'assert(os.setlocale("{NAME}"))\n'
FROM_PYTHON = ('local l = nacre.python().import "locale" '
               f'l.setlocale(l.LC_ALL, "{NAME}")\n')

# Each line is run with the locale and without, and gives the same text and the
# same bytes of files.
CODE = r"""
local function bytes(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end
local x = nacre.tensor({{1.5, 2}, {-0.25, 1e-30}}, {dtype = "float64"})
nacre.save("t.csv", x, {header = {"a", "b"}})
io.write(bytes "t.csv")
assert(nacre.load("t.csv", {header = true, dtype = "float64"}) == x)
io.open("l.csv", "w"):write("1.50000000000000000000001;2,5\n"):close()
print(pcall(nacre.load, "l.csv", {delimiter = ";"}))
print(nacre.load("l.csv", {delimiter = ";", usecols = 1}))
local tree = {x = 0.25, [0.5] = {nacre.ones(2) * 1.5}, list = {1.5, 1e100, -0.1}}
for _, name in ipairs {"n.safetensors", "n.h5", "n.pt"} do
  local ok = pcall(nacre.save, name, name == "n.h5" and {x = x} or tree)
  if ok then
    local again = nacre.load(name)
    print(name, again.x, again[0.5] and again[0.5][1], again.list and again.list[2])
  end
end
print(#bytes "n.safetensors", (bytes "n.safetensors":gsub("[^ -~]", "")))
print(nacre.deserialize(nacre.serialize(tree)).list[3])
print(x, x:summary(), x:mean(), nacre.zeros(2):fill_(1 / 3))
print(nacre.nn.LeakyReLU(), nacre.nn.LeakyReLU(0.125), nacre.nn.Dropout(0.25))
print(nacre.nn.functional.elu(nacre.tensor{-1.0}), nacre.celu(nacre.tensor{-2.0}),
      nacre.nn.functional.huber_loss(nacre.tensor{1.5}, nacre.tensor{0.25}))
local y = nacre.tensor({0.5}, {requires_grad = true})
local g = nacre.autograd.grad(y:gelu(), {y}, {create_graph = true})[1]
print(g, nacre.autograd.grad(g, {y})[1])
print(nacre.kernel[[ y = a*1.5 + 0.25 ]](nacre.ones(2)))
print(pcall(nacre.zeros, 1.5), pcall(nacre.arange, 0, 1, -0.5))
print(1.5, tostring(0.25), "0.5" + 0, ("%.2f"):format(1 / 3), 2 .. "", 0.5 .. "")
local shown = nacre.plot
nacre.plot({1.5, 2.5, 0.25}, {file = "p.svg"})
io.write(bytes "p.svg")
"""

SESSION = r"""
x = 0.25
w = {rate = 1.5, nacre.ones(2)}
:save work.safetensors --force
x, w = nil
:load work.safetensors
x, w.rate
:set precision 6
nacre.tensor{1/3}
1/3
"""


def run(*args, stdin=""):
    done = subprocess.run([PROGRAM, *args], input=stdin.encode(),
                          env=ENVIRONMENT, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode()


def script(code):
    with open("s.lua", "w") as f:
        f.write(code)
    text = run("s.lua")
    assert "traceback" not in text and "error:" not in text, text
    return text


def same(a, b):
    for x, y in zip(a.splitlines(), b.splitlines()):
        assert x == y, f"without: {x}\nwith:    {y}"
    assert a == b


plain = script("\n" + CODE)
same(plain, script(SET + CODE))
# the rest of the locale is set
assert script(SET + 'print(os.date("%A", 0))') in ("Donnerstag\n", "Mittwoch\n")
assert script(SET + 'os.setlocale "C" print(os.date("%A", 0), 0.5)') in (
    "Thursday\t0.5\n", "Wednesday\t0.5\n")
if "true" in run("-e", "print((pcall(nacre.python)))"):
    same(plain, script(FROM_PYTHON + CODE))

plain = run("-i", stdin="1" + SESSION)
shown = run("-i", stdin=SET.strip() + SESSION)
same(plain[plain.index("x = 0.25"):], shown[shown.index("x = 0.25"):])
assert "work.safetensors" in plain and "0.25\t1.5" in plain, plain
