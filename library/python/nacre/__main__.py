# SPDX-License-Identifier: MIT
"""Runs the program that pip installed together with this module."""
import importlib.metadata
import os
import sys


def program():
    """The path of the command, wherever this kind of environment has it."""
    for file in importlib.metadata.files("nacre-shell") or ():
        if file.parts[-2:] == ("bin", "nacre"):
            return os.path.realpath(file.locate())
    sys.exit("nacre: the package nacre-shell has no bin/nacre; install it again")


if __name__ == "__main__":
    os.execv(program(), ["nacre", *sys.argv[1:]])
