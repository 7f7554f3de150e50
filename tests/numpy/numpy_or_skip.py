# SPDX-License-Identifier: MIT
"""np is NumPy. A test that imports it is skipped where there is none."""
import importlib
import os
import sys


def module_or_skip(name, title):
    """The module, of the system's Python if this one has none; the test ends
    with status 77 where there is none at all."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if sys.executable != "/usr/bin/python3" and os.path.exists(
                "/usr/bin/python3"):
            os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)
        print(f"skipped: this Python has no {title}")
        sys.exit(77)


np = module_or_skip("numpy", "NumPy")
