#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_narrow.py - what the shell prints on a screen of 40 columns: no line is
# wider, unless it is one word.  Every command is used.

import re
import unicodedata

import launch

COLUMNS = 40

SESSION = r"""
m = nacre.nn.Sequential(nacre.nn.Linear(16, 32), nacre.nn.ReLU())
x, w = nacre.randn(16, 16), nacre.randn(16, 16)
a_rather_long_name_of_a_variable = x:t()
cfg = {w = nacre.zeros(512, 512), {b = nacre.zeros(10), x}, n = 3}
:help
:help all
:help history
:help bench
:set
:set width
:set nosuch 1
:seed 1
:dev
:doctor
:clear
:whos
:whos nosuch
:mem
:gc
:time x:mm(w)
:bench -n 3 x:exp()
:bench --budget 0.01 x:exp()
:bench --budget 0.01 --save exp x:exp()
:compare --budget 0.02 x:exp() ;; x:tanh()
:compare --budget 0.02 x:exp()
:sweep n=16..32 x:exp()
:sweep n=16..32 -s "y = nacre.randn(n,n)" y:mm(y) ;; y + y
:peak
:diff x w
:diff x x
:diff 1 2
:parity x:exp()
:repeat x:sum()
:timing on
x:sum()
:timing off
:watch -n 2 0.01 x:sum()
:trace x:mm(w):exp()
:trace m(x)
:profile x:mm(w):exp()
:profile m(x)
:shape x:mm(w):exp():softmax(2)
:view x
:kernel x
:explain x*x + 1
:explain x:mm(w)
:explain 3
:nan warn
x:mul(-1):log();
:nan off
x:mm(nacre.ones(3))
:debug
where
locals
p x
help
q
:plot x[1]
:plot x
:plot math.sin 0 6
:scatter x[1] w[1]
:hist x
:heat x
:show x
:png image.png x
:plot x[1] -o curve.svg
:cd
:reload
:history
:history nothing of the kind was typed here
:again 1
:save session.lua
:save session.lua
:save variables.safetensors
:load variables.safetensors
:load nosuch.txt
:edit
:record record.txt
:record
:record off
:transcript transcript.txt
:run session.lua
?mm
?tensor
??convolution
?:bench
?nacre.nn.Linear
mm??
x:sum
x
cfg
nosuch
x.foo
x:sum(1,
2,,3)
nacre.linalg
nacre.nn
m
m:summary(x)
shell
nacre.arange(100000)
nacre.randn(3, 30, 30)
log = nacre.history()
log:add {loss = 1.5, accuracy_of_the_net = 2, rate = 0.001, another = 5}
log
nacre.show_config()
:reset
:foo
:quit
""".lstrip("\n")


def width(text):
    return sum(0 if unicodedata.combining(c) else
               2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in text)


class Narrow(launch.Program):
    def setUp(self):
        super().setUp()
        self.out = self.run_("-i", "-q", "--width", str(COLUMNS),
                             text=SESSION)[1]

    def test_lines(self):
        typed, wide = "", []
        for line in self.out.split("\n"):
            if re.match("(> |>> |debug> )", line):
                typed = line
            elif width(line) > COLUMNS and " " in line.strip():
                wide.append(typed + "\n    " + line)
        self.assertEqual(wide, [], "\n".join(wide))
        self.assertTrue(typed.startswith("> :quit"), self.out[-500:])

    def test_every_command_is_used(self):
        names = re.findall(r"(?m)^  :(\w+)", self.run_(
            "-i", "-q", text=":help all\n")[1])
        self.assertGreater(len(names), 30)
        used = set(re.findall(r"(?m)^:(\w+)", SESSION))
        self.assertEqual(set(names) - used, set())


if __name__ == "__main__":
    launch.main()
