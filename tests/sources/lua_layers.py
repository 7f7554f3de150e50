#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which Lua modules of the shell name each other: prints every violation and
fails if there is one.

* A folder of repl names modules of its own and of the folders before it in
  ORDER, never of those behind.
* Inside a folder, a circle of modules that name each other has at most CIRCLE.

A module is named by any string "nacre.NAME", wherever it stands: by a require
at the top, by one inside a function, by package.loaded. The column `module' of
the tables of commands and settings names none: these tables are how a lower
folder reaches what a higher one adds.

    lua_layers.py DIR           check the source tree DIR
    lua_layers.py --self-test   plant violations, see each reported
"""
import os
import re
import sys

from house_rules import conclude, judge, sources

# What stands on what: repl/README.md says what each folder is.
ORDER = ("language", "state", "display", "errors", "help", "session",
         "pictures", "inspect", "timing", "tensor_files", "testing", "editor",
         "distributed", "notebook")
CIRCLE = 8

TOKENS = re.compile(r"--\[(=*)\[.*?\]\1\]|--[^\n]*|\[(=*)\[.*?\]\2\]"
                    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
NAME = re.compile(r"[\"']nacre\.(\w+)[\"']")
COLUMN = re.compile(r"\bmodule\s*=\s*$")


def named(text):
    """(line, module) for each module that a text names."""
    for token in TOKENS.finditer(text):
        name = NAME.fullmatch(token[0])
        if name and not COLUMN.search(text, 0, token.start()):
            yield text.count("\n", 0, token.start()) + 1, name[1]


def folder_of(path):
    return path.split("/")[1]


def circles(edges):
    """The sets of nodes that reach each other, of two nodes or more."""
    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            for node in edges[waiting.pop()]:
                if node not in seen:
                    seen.add(node)
                    waiting.append(node)
        return seen
    reach = {node: reached(node) for node in edges}
    found = {frozenset(other for other in reach[node] if node in reach[other])
             for node in edges if node in reach[node]}
    return sorted((c for c in found if len(c) > 1), key=sorted)


def violations(files):
    """Each violation, of texts by their paths."""
    paths = {os.path.basename(path)[:-4]: path for path in files}
    within = {path: set() for path in files}
    for path, text in files.items():
        folder = folder_of(path)
        if folder not in ORDER:
            yield f"{path}: the folder {folder} has no place in the order"
            continue
        for line, name in named(text):
            to = paths.get(name, path)
            if folder_of(to) == folder:
                within[path] |= {to} - {path}
            elif folder_of(to) not in ORDER[:ORDER.index(folder)]:
                yield (f"{path}:{line}: {folder} names {to}, "
                       f"but {folder_of(to)} stands on {folder}")
    for circle in circles(within):
        if len(circle) > CIRCLE:
            yield f"a circle of {len(circle)} modules: {' '.join(sorted(circle))}"


def ring(count, form):
    """The modules m0, m1, ... of a folder, each of which names the next."""
    return {f"repl/help/m{i}.lua": form % f"nacre.m{(i + 1) % count}"
            for i in range(count)}


# The self-test: files, and how many violations they have.
PLANTS = [
    ({"repl/language/a.lua": 'local b = require "nacre.b"',
      "repl/help/b.lua": ""}, 1),
    ({"repl/language/a.lua": "function f()\n  return require('nacre.b').g\nend",
      "repl/help/b.lua": ""}, 1),
    ({"repl/language/a.lua": 'local b = package.loaded["nacre.b"]',
      "repl/help/b.lua": ""}, 1),
    ({"repl/help/a.lua": 'local b = require "nacre.b"',
      "repl/language/b.lua": '-- require "nacre.a"'}, 0),
    ({"repl/language/a.lua": 'say "> require \\"nacre.b\\""; {module = "nacre.b"}',
      "repl/help/b.lua": ""}, 0),
    ({"repl/language/a.lua": 'require "nacre.tensor_facts"'}, 0),
    ({"repl/nowhere/a.lua": ""}, 1),
    (ring(CIRCLE, 'require "%s"'), 0), (ring(CIRCLE + 1, 'require "%s"'), 1)]


def main(words):
    if words == ["--self-test"]:
        return judge("lua_layers", [(files, list(violations(files)), count)
                                    for files, count in PLANTS])
    files = sources(words[0] if words else ".", ("repl",), (".lua",))
    return conclude("lua_layers", files, list(violations(files)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
