#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ctrl-C in a script: wherever it is, the program ends soon, by SIGINT.
P2, P3, P4.

    tests/shell/test_interrupt.py build/nacre
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 60.0  # seconds, for machines that do much else; the figure is printed

# Each tells that it is about to start and would go on for long.
SCRIPTS = {
    "a loop of Lua": "while true do end",
    "a loop with pcall": "while true do pcall(error, 1) end",
    "pcall in a coroutine": """
        coroutine.wrap(function()
          while true do pcall(function() local x = {} end) end
        end)()""",
    "small tensors": "local a = nacre.ones(3) while true do a = a * 1 end",
    "small tensors with pcall": """
        local a = nacre.ones(3)
        while true do pcall(function() a = a * 1 end) end""",
    "mm": """
        local a = nacre.ones(6000, 6000)
        go() while true do local c = a:mm(a) end""",
    "mm with pcall": """
        local a = nacre.ones(4000, 4000)
        go() while true do pcall(a.mm, a, a) end""",
    "exp of 1e8": """
        local a = nacre.zeros(100000000)
        go() while true do a:exp_() end""",
    "exp of a strided 5e7": """
        local a = nacre.zeros(50000000, 2):select(2, 1)
        go() while true do a:exp_() end""",
    "sum of a huge view": """
        local a = nacre.ones(1):expand(1 << 40)
        go() while true do a:sum() end""",
    "var of 1e8": """
        local a = nacre.zeros(100000000)
        go() while true do a:var() end""",
    "cumsum of one long line": """
        local a = nacre.zeros(50000000)
        go() while true do a:cumsum(1) end""",
    "randn of 5e7": "go() while true do local a = nacre.randn(50000000) end",
    "randperm of 3e7": "go() while true do local a = nacre.randperm(30000000) end",
    "mask of 1e8": """
        local a = nacre.ones(100000000)
        local m = a:gt(0)
        go() while true do a[m] = 2 end""",
    "nonzero of 5e7": """
        local a = nacre.ones(50000000)
        go() while true do local i = a:nonzero() end""",
    "totable of 3e7": """
        local a = nacre.zeros(30000000)
        go() while true do local t = a:totable() end""",
    "backward of a long chain": """
        local x = nacre.ones(1, { requires_grad = true })
        local y = x
        for _ = 1, 300000 do y = y * 1 end
        go() while true do y:backward{retain_graph = true} end""",
    "a handler": "xpcall(error, function() while true do end end)",
    "a handler in place of another": """
        local function f() while true do pcall(error) end end
        xpcall(f, f)""",
    "a handler of a coroutine": """
        local f = function() while true do end end
        coroutine.wrap(function() xpcall(f, f) end)()""",
    "texts of 1e9 bytes": """
        go() while true do pcall(string.rep, "abc", 1 << 28, "-") end""",
    "a line without end": "go() io.open('/dev/zero'):read 'l'",
    "a file without end, with pcall": """
        go() while true do pcall(function() io.lines("/dev/zero", "a")() end) end
        """,
    "cat of many": """
        local a = nacre.zeros(30000000)
        go() while true do local t = nacre.cat{a, a, a} end""",
}

GO = """
local started = false
function go() if not started then io.write("go\\n") io.flush() end started = true end
"""


def interrupt(nacre, name, text):
    """Seconds from the signal to the end; exits if the end is not by SIGINT."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.lua")
        with open(path, "w") as f:
            f.write(GO + ("" if "go()" in text else "go()\n") + text)
        p = subprocess.Popen([nacre, path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        try:
            if p.stdout.readline() != "go\n":
                print(f"FAILED: {name}: {p.communicate()[1].strip()}")
                return None
            time.sleep(0.15)
            start = time.monotonic()
            p.send_signal(signal.SIGINT)
            p.wait(timeout=60)
            took = time.monotonic() - start
        except subprocess.TimeoutExpired:
            print(f"FAILED: {name}: still running after 60 s")
            return None
        finally:
            p.kill()
            p.wait()
        said = p.stderr.read().strip()
        if p.returncode != -signal.SIGINT or "interrupted" not in said:
            print(f"FAILED: {name}: ended with {p.returncode}, not by SIGINT: "
                  f"{said[:300]}")
            return None
        return took


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    failed = 0
    for name, text in SCRIPTS.items():
        took = interrupt(sys.argv[1], name, text)
        if took is None:
            failed += 1
            continue
        print(f"{name:28} {1000 * took:7.0f} ms")
        if took > LIMIT:
            print(f"FAILED: {name}: {took:.1f} s")
            failed += 1
    if failed:
        sys.exit(f"interrupt: {failed} of {len(SCRIPTS)} failed")
    print(f"interrupt: {len(SCRIPTS)} ended in time")


if __name__ == "__main__":
    main()
