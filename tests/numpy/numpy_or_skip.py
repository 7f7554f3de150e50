# SPDX-License-Identifier: MIT
"""np is NumPy, of the system's Python if this one has none; a test that
imports it is skipped, status 77, where there is none at all."""
import os
import sys

try:
    import numpy as np
except ImportError:
    if sys.executable != "/usr/bin/python3" and os.path.exists(
            "/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)
    print("skipped: this Python has no NumPy")
    sys.exit(77)
