#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# fuzz_sigint.py - a thousand Ctrl-C at random moments over fifty programs: no
# hang, no lost key, no damaged state.  (P1, P2, P3, P4, P6)
#
#   fuzz_sigint.py NACRE [SEED]

import random
import re
import signal
import sys
import tempfile
import time

import terminal
from terminal import CTRL_R, ENTER, PASTE, PASTED, TAB, UP

EACH = 20  # signals for each program
ACCEPTED = "\x1b[?2004l"  # readline leaves the terminal to the program

# What is typed, with its Enter where it has one.
LUA = """
while true do end
while true do pcall(error, 'x') end
while true do pcall(function() while true do end end) end
while true do pcall(pcall, pcall, error) end
for i = 1, 1e9 do local t = {i, i} end
for i = 1, 1e9 do local s = tostring(i) .. 'x' end
repeat local x = math.sin(1) until x > 2
::again:: goto again
local function f(n) return n == 0 and 0 or f(n - 1) end while true do f(1000) end
local function f(n) return 1 + f(n + 1) end f(1)
co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end
while true do coroutine.wrap(function() while true do pcall(error) end end)() end
co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end
while true do coroutine.close(coroutine.create(print)) end
('x'):rep(1e6):gsub('.', function(c) return c end)
while true do ('a'):rep(20):find(('a*'):rep(4) .. 'b') end
for i = 1, 1e6 do ('%d %s'):format(i, 'x') end
local t = {} for i = 1, 2e5 do t[i] = (i * 7919) % 200003 end while true do table.sort(t, function(a, b) return a < b end) end
while true do table.concat({1, 2, 3}, ',') end
while true do local t <close> = setmetatable({}, {__close = function() local n = 0 for i = 1, 100 do n = n + i end end}) end
while true do setmetatable({}, {__gc = function() local n = 0 for i = 1, 100 do n = n + i end end}) end
while true do collectgarbage() end
while true do load('return 1 + 1')() end
while true do local ok, e = pcall(load, '= =') end
while true do string.pack('i8', 1) end
local o = setmetatable({}, {__index = function(_, k) return k end, __add = function(a, b) return a end}) while true do local x = o.a, o + o end
for i = 1, 1e6 do print(i) end
for i = 1, 1e6 do io.write(i, ' ') end
while true do io.stderr:write '' end
while true do local f = io.open(path .. '.txt', 'w') f:write('x') f:close() end
for l in io.lines '/proc/self/maps' do for i = 1, 1e4 do end end
while true do require 'string' end
local a = nacre.rand(300, 300) while true do local b = a:mm(a) end
local a = nacre.rand(1500, 1500) a:mm(a)
local a = nacre.rand(1000000) while true do a:exp() end
local a = nacre.rand(1000000) while true do a:add_(1) end
while true do nacre.rand(300000):sort() end
while true do nacre.rand(1000, 1000):sum(1) end
while true do nacre.rand(1000, 100):t():contiguous() end
while true do nacre.save(path, keep) end
while true do local t = nacre.load(path) end
while true do local a = nacre.rand(100, {requires_grad = true}) (a * a):sum():backward() end
while true do nacre.cat({keep, keep}) end
while true do pcall(nacre.mm, keep, keep) end
while true do tostring(nacre.rand(100, 100)) end
nacre.rand(2000, 2000)
:time for i = 1, 1e9 do end
:watch 0.001 keep:sum()
:trace for i = 1, 100 do keep:add(1) end
error({}) error(nil) while true do end
""".strip().split("\n")

# What stands in the line while Ctrl-C comes.
TYPED = ["half a line", "for i = 1, 2 do" + ENTER, UP, UP * 3, CTRL_R + "ke",
         "keep:su" + TAB, "nacre." + TAB + TAB, "keep:add(" + TAB,
         PASTE + "a = 1\nb = 2" + PASTED, "'open", "\x1b", "\x1bh", ""]


def rounds(dice):
    """How many signals each time, EACH of them in all."""
    left = EACH
    while left > 0:
        n = min(left, dice.choice([1, 1, 1, 2, 3]))
        left -= n
        yield n


class Run:
    def __init__(self, home, seed):
        self.dice = random.Random(seed)
        self.session = terminal.Session(home, "--no-history", "--no-rc",
                                        NO_COLOR="")
        self.marks = 0
        self.signals = 0
        self.slowest = 0

    def strike(self, key):
        """One Ctrl-C: the key, or the signal from elsewhere."""
        time.sleep(self.dice.random() * 0.02)
        if key:
            self.session.send("\x03")
        else:
            self.session.child.kill(signal.SIGINT)
        self.signals += 1

    def pending(self):
        """Has the program not yet let the signal in? It may not be running."""
        path = "/proc/%d/status" % self.session.child.pid
        with open(path) as file:
            masks = re.findall(r"^(?:Shd|Sig)Pnd:\s*(\w+)", file.read(), re.M)
        return any(int(m, 16) >> signal.SIGINT - 1 & 1 for m in masks)

    def answers(self):
        """A line typed at once behind the last Ctrl-C runs, whole."""
        self.marks += 1
        begin = time.time()
        self.session.send("'mark' .. %d + 0" % self.marks + ENTER)
        self.session.child.expect_exact('"mark%d"' % self.marks)
        self.slowest = max(self.slowest, time.time() - begin)

    def program(self, text):
        for n in rounds(self.dice):
            key = self.dice.random() < 0.7
            if key and self.dice.random() < 0.2:
                self.session.send(self.dice.choice(TYPED))
            else:
                self.session.send(text + ENTER)
            if not key:  # a signal may overtake keys that were sent before
                self.session.child.expect_exact(ACCEPTED)
            for _ in range(n):
                self.strike(key)
            # a terminal sends signals and keys on different ways
            time.sleep(0.005)
            while self.pending():
                time.sleep(0.001)
            self.answers()

    def check(self):
        """What was there before is there, and right."""
        self.session.send(
            "'state' .. keep:sum():item() .. #list .. nacre.load(path):size(1)"
            " .. tostring(coroutine.running()):sub(1, 6)" + ENTER)
        self.session.child.expect_exact('"state499500.031000thread"')


def main():
    seed = int(sys.argv.pop(2)) if len(sys.argv) > 2 else 20
    terminal.needs_readline()
    assert len(LUA) == 50, len(LUA)
    with tempfile.TemporaryDirectory() as home:
        run = Run(home, seed)
        run.session.run(
            "keep = nacre.arange(1000, {dtype='float32'}) list = {1, 2, 3} "
            "path = '%s/keep.npy' nacre.save(path, keep)" % home)
        run.check()
        for text in LUA:
            run.program(text)
            run.check()
        # the terminal takes a Ctrl-D that comes before the prompt for itself
        run.session.child.expect_exact("> ")
        assert run.session.quit() == 0
    print("%d signals over %d programs, seed %d; slowest answer %.0f ms"
          % (run.signals, len(LUA), seed, run.slowest * 1e3))


if __name__ == "__main__":
    main()
