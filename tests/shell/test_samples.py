#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_samples.py - the sample sessions that a transcript cannot hold, as far as
# no other test has them: keys and pipes.

import os
import re
import subprocess

import terminal
from launch import surroundings
from terminal import ENTER, Shell


class Samples(Shell):
    # ---- 6: Ctrl-C everywhere

    def test_6_interrupts(self, s):
        self.timed(s, "half a line", 0.1)
        self.timed(s, "for i = 1,10 do" + ENTER + "print(i)", 0.1)
        s.run("function work() while true do end end")
        out = self.timed(s, "while true do pcall(work) end" + ENTER)
        self.assertRegex(out, r"interrupted[^\n]* \(\d\.\d s\)\n")
        out = self.timed(s, "x = work()" + ENTER)
        self.assertRegex(out, r"interrupted in work \(\d\.\d s\)\n")
        out = self.timed(s, "work()" + ENTER)   # which the prompt calls last
        self.assertRegex(out, r"interrupted in work \(\d\.\d s\)\n")
        # how far it came, where the work that is left is known
        s.run("nacre.set_num_threads(1) big = nacre.ones(8000, 8000)")
        out = self.timed(s, "y = big:mm(big)" + ENTER)
        self.assertRegex(out, r"interrupted \(\d\.\d s\), \d\.\d s of about "
                         r"\d+ s into a product of \[8000x8000\] and\s+"
                         r"\[8000x8000\]\n")
        self.assertEqual(s.run("y"), "nil\n")
        # of many short ones, nothing
        s.run("big = nacre.ones(300, 300)")
        out = self.timed(s, "while true do big:mm(big) end" + ENTER)
        self.assertRegex(out, r"interrupted \(\d\.\d s\)\n")
        # the result was discarded, big is unchanged
        self.assertEqual(s.run("big:eq(1):all():item()"), "true\n")
        self.assertEqual(s.quit(), 0)

    # ---- 10: scripts and pipes

    SCRIPTS = {
        "hello.lua": "#!/usr/bin/env -S nacre --seed 1\n"
                     'print(("%s, %d arguments"):format(arg[0], #arg))\n',
        "train.lua": "for epoch = 1, 1e6 do\n  print((\"epoch %d  loss %.4f\")"
                     ":format(epoch, 2.3012 / epoch))\nend\n",
        "step.lua": "x = nacre.zeros(64, 784)\nw2 = nacre.zeros(128, 10)\n"
                    "h = x:mm(w2)\n"}

    PIPES = """\
$ nacre -p 'nacre.range(1,4):sum():item()'
10
$ echo 'print(nacre.eye(2))' | nacre
float32[2x2] cpu  16 B
  1.0  0.0
  0.0  1.0
$ ./hello.lua a b
./hello.lua, 2 arguments
$ nacre train.lua | head -1 ; echo ${PIPESTATUS[0]}
epoch 1  loss 2.3012
141
$ nacre nosuch.lua ; echo $?
nacre: cannot open nosuch.lua: No such file or directory
2
$ nacre --tiem x.lua ; echo $?
nacre: unknown option --tiem, did you mean --time?
usage: nacre [options] [script [args]]   (--help for the list)
2
$ echo x | nacre -i step.lua
step.lua:3: mm: inner sizes differ: self has 784 columns, arg 1 has 128 rows
  at step.lua:3   h = x:mm(w2)
  self   x   float32[64x784] cpu
  arg 1  w2  float32[128x10] cpu
  hint: neither x:t() nor w2:t() fits
the script stopped; its globals are here, :debug opens the stack
> x
float32[64x784] cpu  196.0 KiB  all 0
"""

    def bash(self, line):
        """What a line of bash prints, in a folder that has the scripts."""
        for name, text in self.SCRIPTS.items():
            self.file(name, text, 0o755)
        env = surroundings(self.home, PATH=self.home + "/bin:" +
                           os.environ["PATH"])
        if not os.path.exists(self.home + "/bin"):
            os.mkdir(self.home + "/bin")
            os.symlink(terminal.PROGRAM, self.home + "/bin/nacre")
        return subprocess.run(
            ["/bin/bash", "-c", line], env=env, cwd=self.home, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8").stdout

    def test_10_scripts_and_pipes(self):
        inputs = re.findall(r"(?m)^\$ (.*)$", self.PIPES)
        self.assertEqual(len(inputs), 7)
        shown = "".join("$ %s\n%s" % (line, self.bash(line))
                        for line in inputs)
        self.assertEqual(shown, self.PIPES)


if __name__ == "__main__":
    terminal.main()
