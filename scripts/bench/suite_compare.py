#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether the two sides of suite.py computed the same.

    suite_compare.py --self-test    plant differences, see each reported
"""
import math
import sys
import types


class Result:
    """What a side says of a tensor: its type and sizes, the mean of its
    elements, and about a thousand of them."""

    def __init__(self, text):
        self.dtype, self.sizes, mean, *elements = text.split(" ")
        self.mean = float(mean)
        self.elements = [float(x) for x in elements]
        self.count = math.prod(int(n) for n in self.sizes.split(",") if n)

    def deviation(self):
        mean = sum(self.elements) / len(self.elements)
        return math.sqrt(sum((x - mean) ** 2 for x in self.elements) /
                         len(self.elements))


def results_of(answer):
    return [Result(text) for text in answer.split("\t")]


def close(a, b, limit):
    return a == b or abs(a - b) <= limit or (math.isnan(a) and math.isnan(b))


def alike(row, a, b):
    """Random numbers of one distribution."""
    spread = max(a.deviation(), b.deviation(), row.tolerance)
    if abs(a.deviation() - b.deviation()) > 0.2 * spread:
        return f"deviations {a.deviation():g} and {b.deviation():g}"
    if abs(a.mean - b.mean) > 8 * spread / math.sqrt(a.count):
        return f"means {a.mean:g} and {b.mean:g}"
    return ""


def different(row, a, b, shift):
    """Why a, of Nacre, is not b; positions are `shift' greater in a."""
    scale = max((abs(x) for x in b.elements if math.isfinite(x)), default=0)
    limit = row.tolerance * max(scale, 1e-6)
    if not close(a.mean - shift, b.mean, limit):
        return f"means {a.mean - shift:g} and {b.mean:g}"
    for i, (x, y) in enumerate(zip(a.elements, b.elements)):
        if not close(x - shift, y, limit):
            return f"element {i} of the sample: {x - shift:g} and {y:g}"
    return ""


def difference(row, ours, theirs, strict, shift=0):
    """Why the results differ, or "". Types need not agree unless strict."""
    if len(ours) != len(theirs):
        return f"{len(ours)} and {len(theirs)} results"
    for a, b in zip(ours, theirs):
        if a.sizes != b.sizes:
            return f"sizes {a.sizes} and {b.sizes}"
        if strict and a.dtype != b.dtype:
            return f"types {a.dtype} and {b.dtype}"
        if row.results == 0:
            why = alike(row, a, b)
        else:
            why = different(row, a, b, shift)
        if why:
            return why
    return ""


def broken(results):
    """No row is about nan."""
    return any(math.isnan(r.mean) for r in results)


def self_test():
    row = types.SimpleNamespace(tolerance=1e-3, results=1)
    one = "float32 2,2 2.5 1 2 3 4"
    cases = (
        (one, "", ""),
        ("float32 2,2 2.501 1 2 3.001 4", "", ""),
        ("float32 2,2 2.5 1 2.1 3 3.9", "element 1", ""),
        ("float32 2,2 2.6 1 2 3 4", "means", ""),
        ("float32 4 2.5 1 2 3 4", "sizes", "sizes"),
        ("float64 2,2 2.5 1 2 3 4", "types", "types"),
        (one + "\t" + one, "results", "results"),
        ("float32 2,2 2.5 nan 2 3 4", "element 0", ""),
        ("float32 2,2 9 1 2 3 4", "means", "means"),
        ("float32 2,2 2.5 0 0 0 10", "element", "deviations"))
    for text, exact, random in cases:
        ours, theirs = results_of(one), results_of(text)
        row.results = 1
        why = difference(row, ours, theirs, True)
        assert exact in why and bool(why) == bool(exact), (text, why)
        row.results = 0
        if "nan" not in text:
            why = difference(row, ours, theirs, True)
            assert random in why and bool(why) == bool(random), (text, why)
    row.results = 1
    zero_based = results_of("float32 2,2 1.5 0 1 2 3")
    assert not difference(row, results_of(one), zero_based, True, shift=1)
    assert difference(row, results_of(one), results_of(one), True, shift=1)
    print("ok")


if __name__ == "__main__" and sys.argv[1:] == ["--self-test"]:
    self_test()
