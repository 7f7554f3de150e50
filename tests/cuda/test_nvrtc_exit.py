# SPDX-License-Identifier: MIT
"""A program that ends while NVRTC compiles, in its first text or in a later
one, ends as it should: exit() destroys objects of NVRTC, which its thread must
not use then. The device is emulated, the compiler is the real one.

test_nvrtc_exit.py NACRE NVRTC
"""
import os
import subprocess
import sys
import tempfile

SCRIPT = """
local x = nacre.ones(100, {device = "cuda:0"})
local many = {}
for k = 1, 50 do
  many[k] = nacre.fuse(function(a) return (a * k + 1):sigmoid():exp() end)
  many[k](x)
end
local machine = require "nacre.machine"
while machine.figure "fused_compiled" < %d do nacre.cuda.synchronize() end
local stop = os.clock() + %g
while os.clock() < stop do end
assert(machine.figure "fused_waiting" > 0, "nothing is left to compile")
%s
"""
ENDS = {"": 0, "os.exit(3)": 3, "error 'stop'": 1}


def run(nacre, nvrtc, compiled, delay, end):
    with tempfile.TemporaryDirectory() as cache:
        r = subprocess.run(
            [nacre, "-e", SCRIPT % (compiled, delay, end)], check=False,
            env={**os.environ, "NACRE_CUDA": "emulated",
                 "NACRE_NVRTC": nvrtc, "XDG_CACHE_HOME": cache},
            capture_output=True, text=True, timeout=100)
    assert r.returncode == ENDS[end], (
        f"{compiled} compiled, {delay} s later, {end!r}: status "
        f"{r.returncode}\n{r.stdout}{r.stderr}")


def main():
    nacre, nvrtc = sys.argv[1:3]
    for end in ENDS:
        for compiled in 0, 1:
            for step in range(6):
                run(nacre, nvrtc, compiled, 0.03 * step, end)
    print("nvrtc_exit: all passed")


if __name__ == "__main__":
    main()
