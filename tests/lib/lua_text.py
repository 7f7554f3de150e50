# SPDX-License-Identifier: MIT
"""Values of Python as Lua writes them, for tests that do the same in both."""
import math
import subprocess
import sys


class Lua:
    """A value that is written otherwise in Lua: in Python it is `value`."""

    def __init__(self, value, text):
        self.value, self.text = value, text


def lua(v):
    if isinstance(v, Lua):
        return v.text
    if v is None:
        return "nil"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, float) and v != v:
        return "-(0/0)"                 # whose sign is Python's
    if isinstance(v, float) and abs(v) == math.inf:
        return "math.huge" if v > 0 else "-math.huge"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k} = {lua(e)}" for k, e in v.items()) + "}"
    if isinstance(v, (tuple, list)):
        return "{" + ", ".join(map(lua, v)) + "}"
    if isinstance(v, str):
        return f'"{v}"'
    return repr(v) if isinstance(v, float) else str(v)


def plain(v):
    """The value of Python."""
    if isinstance(v, dict):
        return {k: plain(e) for k, e in v.items()}
    if isinstance(v, (tuple, list)):
        return type(v)(map(plain, v))
    return v.value if isinstance(v, Lua) else v


def run(nacre, text, *args):
    """What the program prints when it runs this Lua."""
    done = subprocess.run([nacre, "-", *args], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"nacre {args}: {done.stdout}")
    return done.stdout
