#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes unicode_tables.inc, which unicode.c includes:

    bindings/text/unicode_tables.py > bindings/text/unicode_tables.inc

Numbers are written in characters from '0' on, five bits each, the lowest
first; a character from 'P' on has another one after it. Categories are those of
the module regex, decompositions those of Python itself.
"""
import sys
import unicodedata

import regex

CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po "
              "Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn").split()
WIDTH = 68
MOST = 4000     # bytes of a string, of which C promises 4095


def number(n):
    text = ""
    while n > 31:
        text += chr(ord("P") + (n & 31))
        n >>= 5
    return text + chr(ord("0") + n)


def signed(n):
    return number(2 * n if n >= 0 else -2 * n - 1)


def c_text(name, numbers):
    print("static const char *const %s[] = {" % name)
    text = ""
    for item in [*numbers, None]:
        if item is None or len(text) + len(item) > MOST:
            lines = [text[i:i + WIDTH].replace("\\", "\\\\")
                     for i in range(0, len(text), WIDTH)]
            print("".join('  "%s"\n' % line for line in lines) + "  ,")
            text = ""
        text += item or ""
    print("  NULL\n};\n")


def categories():
    """Runs of one category: length, category."""
    kind = ["Cn"] * 0x110000
    everything = "".join(map(chr, range(0xd800))) + \
        "".join(map(chr, range(0xe000, 0x110000)))
    for name in CATEGORIES:
        if name not in ("Cs", "Cn"):
            for c in regex.findall(r"\p{%s}" % name, everything):
                kind[ord(c)] = name
    kind[0xd800:0xe000] = ["Cs"] * 0x800
    first = 0
    for c in range(1, 0x110001):
        if c == 0x110000 or kind[c] != kind[first]:
            yield number(c - first) + number(CATEGORIES.index(kind[first]))
            first = c


def classes():
    """Runs of one combining class that is not 0: distance, length, class."""
    c = end = 0
    while c < 0x110000:
        k, first = unicodedata.combining(chr(c)), c
        while c < 0x110000 and unicodedata.combining(chr(c)) == k:
            c += 1
        if k:
            yield number(first - end) + number(c - first) + number(k)
            end = c


def excluded(c, a, b):
    """Is the decomposition one that is not composed again?"""
    return unicodedata.normalize("NFC", chr(a) + chr(b)) != chr(c)


def decompositions():
    """Distance of the character, first and second one (0: none), each as
    difference from the one before; twice the second plus 1: not composed."""
    last = (0, 0, 0)
    for c in range(0x110000):
        text = unicodedata.decomposition(chr(c))
        if not text or text[0] == "<":
            continue
        a, b = ([int(x, 16) for x in text.split()] + [0])[:2]
        flag = 1 if not b or excluded(c, a, b) else 0
        yield number(c - last[0]) + signed(a - last[1]) + \
            signed(b - last[2]) + number(flag)
        last = (c, a, b)


def main():
    print("/* Written by unicode_tables.py, with the categories of regex %s "
          "and\n   decompositions of Unicode %s. */\n/* clang-format off */"
          % (regex.__version__, unicodedata.unidata_version))
    c_text("category_runs", categories())
    c_text("class_runs", classes())
    c_text("decomposition_list", decompositions())
    print("/* clang-format on */")


if __name__ == "__main__":
    sys.exit(main())
