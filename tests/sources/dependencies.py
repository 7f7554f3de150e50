#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an edit of a table or of a header compiles again, by Ninja's log of the
dependencies that the compiler found.

    dependencies.py NINJA SOURCES BUILD
"""
import collections
import os
import re
import subprocess
import sys
import unittest

# At most so many objects of the product, each counted once if several libraries
# are made of it, and which kernels (.cu) at all.
LIMITS = {"core/operators.def": (69, r"$."),
          "core/ops.def": (139, r"/((complex_)?pointwise|reduce)\w*\.cu"),
          "core/files.h": (85, r"$."), "core/fusion.h": (20, r"$."),
          "core/trace.h": (41, r"$."), "core/accelerator.h": (45, r"$."),
          "core/autograd.h": (78, r"$."), "core/library.h": (25, r"$."),
          "core/tape.h": (62, r"$."), "core/op.h": (98, r"$.")}


def users(log, sources, build):
    """For each of our files the objects that are compiled from it."""
    found, target = collections.defaultdict(set), None
    for line in log.splitlines():
        if line.startswith(" "):
            path = os.path.normpath(os.path.join(build, line.strip()))
            if path.startswith(sources + os.sep):
                found[os.path.relpath(path, sources)].add(target)
        elif ": #deps" in line:
            target = line.split(": #deps")[0]
    return found


def violations(found):
    """A sentence of each limit that does not hold."""
    for path, (most, kernels) in LIMITS.items():
        objects = {o for o in found[path] if not o.startswith("tests/")}
        count = len({(o.split("/")[0], os.path.basename(o)) for o in objects})
        if count > most:
            yield f"{path}: {count} objects, at most {most}"
        for o in sorted(objects):
            if ".cu.o" in o and not re.search(kernels, o):
                yield f"{path}: the kernel {o} is compiled again"


class Planted(unittest.TestCase):
    """Violations are reported; what is not ours, or a test's, is none."""

    def said(self, path, *objects):
        log = "".join(f"{o}: #deps 2, deps mtime 1 (VALID)\n    ../{path}\n"
                      f"    /usr/include/stdio.h\n\n" for o in objects)
        return list(violations(users(log, "/s", "/s/build")))

    def test_too_many(self):
        many = [f"core/{i}.c.o" for i in range(70)]
        self.assertEqual(self.said("core/operators.def", *many[1:]), [])
        self.assertEqual(self.said("core/operators.def", *many[1:],
                                   "tests/unit/x.c.o"), [])
        self.assertIn("70 objects", *self.said("core/operators.def", *many))

    def test_two_libraries(self):
        twice = [f"cuda/{name}.dir/{i}.c.o" for name in ("a", "b")
                 for i in range(60)]
        self.assertEqual(self.said("core/operators.def", *twice), [])

    def test_kernels(self):
        self.assertIn("sort.cu.o",
                      *self.said("core/operators.def", "cuda/sort.cu.o"))
        self.assertIn("sort.cu.o", *self.said(
            "core/ops.def", "cuda/sort.cu.o", "cuda/reduce_f32.cu.o"))


def main(ninja, sources, build):
    log = subprocess.run([ninja, "-C", build, "-t", "deps"], check=True,
                         capture_output=True, text=True).stdout
    found = users(log, os.path.realpath(sources), os.path.realpath(build))
    if len(found["core/tensor.h"]) < 100:
        print("the log does not have all objects: not everything was built")
        return 77
    wrong = list(violations(found))
    print("\n".join(wrong) or "ok")
    planted = unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.loadTestsFromTestCase(Planted))
    return 1 if wrong or not planted.wasSuccessful() else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
