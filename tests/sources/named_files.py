#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file or folder that a comment or a page of documentation names exists.

    named_files.py DIR           check the source tree DIR
    named_files.py --self-test   plant violations, see each reported

A comment may leave out the folder. Pages name users' files, too: theirs are
those without a folder of ours.
"""
import os
import re
import sys

from house_rules import conclude, judge

FOLDERS = ("core", "cuda", "mpi", "bindings", "library", "repl", "scripts",
           "tests", "docs")
COMMENTS = {"c": r"/\*.*?\*/", "lua": r"--[^\n]*", "py": r"(?m)^\s*#[^\n]*"}
KINDS = {"c": "c", "h": "c", "cu": "c", "cuh": "c", "inc": "c", "def": "c",
         "lua": "lua", "py": "py", "cmake": "py", "sh": "py", "txt": "py"}
FILE = re.compile(r"(?<![\w./*$<>~-])((?:[\w-]+/)*[\w-]+\."
                  r"(?:c|h|cu|cuh|inc|def|lua|py|md|cmake|sh|txt))\b(?![\w(*])")
FOLDER = re.compile(rf"(?<![\w./-])((?:{'|'.join(FOLDERS)})/(?:[\w-]+/)*)"
                    r"(?![\w*<{.$])")
# of other projects; of users; made or installed by a build; of recipes
OTHERS = {"lundump.c", "mpi.h", "dnnl_types.h", "pickletools.py", "conftest.lua",
          "program.c", "notes.txt", "vars.txt", "installed_files.txt",
          "CPackConfig.cmake", "cycle.c", "cycle.cu", "fbin.c",
          "include/nacre/tensors.h"}
PLACEHOLDER = re.compile(r"[A-Z_]+(_test)?\.")      # FILE.c, NAME.lua


def tree(root):
    """All files by their paths, with the text of those that can be read."""
    files = {}
    for top in ("", *FOLDERS):
        for folder, below, names in os.walk(os.path.join(root, top)):
            if not top:
                below.clear()
            for name in names:
                path = os.path.join(folder, name)
                files[os.path.relpath(path, root)] = path
    return files


def prose(path, text):
    """What a file says in comments, or all of a page."""
    suffix = path.rsplit(".", 1)[-1]
    if suffix == "md":
        return text
    kind = KINDS.get(suffix)
    if kind is None or path.startswith("tests/") and suffix == "txt" and \
            not path.endswith("CMakeLists.txt"):
        return ""
    return "\n".join(m[0] for m in re.finditer(COMMENTS[kind], text, re.S))


def is_there(name, path, files, known):
    base = os.path.basename(name)
    if base in OTHERS or name in OTHERS or PLACEHOLDER.match(base):
        return True
    if path.endswith(".md") and name.split("/")[0] not in FOLDERS:
        return True
    if "/" not in name:
        return name in known
    return any(("/" + p).endswith("/" + name) for p in files)


def missing(texts):
    """A sentence for each name of a file that is not there."""
    files = set(texts)
    known = {os.path.basename(f) for f in files}
    folders = {"/".join(f.split("/")[:n]) for f in files
               for n in range(1, f.count("/") + 1)}
    for path, text in texts.items():
        for m in FILE.finditer(prose(path, text)):
            if not is_there(m[1], path, files, known):
                yield f"{path}: there is no {m[1]}"
        for m in FOLDER.finditer(prose(path, text)):
            if m[1].rstrip("/") not in folders:
                yield f"{path}: there is no folder {m[1]}"


PLANTS = [  # files, how many reports
    ({"core/a.h": "/* see b.c */", "core/b.c": ""}, 0),
    ({"core/a.h": "/* see base/b.c */", "core/b.c": ""}, 1),
    ({"core/a.h": "/* see base/b.c */", "core/base/b.c": ""}, 0),
    ({"core/a.h": '#include "gone.h"\n/* gone.c */'}, 1),
    ({"core/a.lua": "x = 'gone.lua' -- as in gone.lua"}, 1),
    ({"docs/a.md": "`mine.lua`, `core/gone.c`, `core/gone/`"}, 2),
    ({"core/a.c": "/* FILE.c, core/ and a.c */"}, 0),
]


def main(words):
    if words == ["--self-test"]:
        return judge("named files", [(texts, list(missing(texts)), want)
                                     for texts, want in PLANTS])
    texts = {}
    for name, path in tree(words[0] if words else ".").items():
        if name.startswith("docs/measurements/"):
            texts[name] = ""
            continue
        try:
            with open(path, encoding="utf-8") as f:
                texts[name] = f.read()
        except UnicodeDecodeError:
            texts[name] = ""
    return conclude("named files", texts, sorted(missing(texts)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
