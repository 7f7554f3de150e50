#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rules for the form of the source files:

* a header guard belongs to one header;
* a file of the product (core, cuda, mpi, bindings, library, repl) shares its name with
  another only if the two are halves of one operator: one in core, one in
  core/cpu, one in cuda;
* the folders of core include each other without a cycle, and the headers
  directly in core, which all may include, include none of their files;
* lines of C, CUDA and Lua have at most 80 columns, except addresses;
* tables in Lua are written {a}, not { a };
* files of C, CUDA and Lua have at most 600 lines, functions at most 60;
* numbers are read and written as text by core/numerals.h, which no locale
  changes;
* comments, errors and pages are in plain English: see STUMBLES;
* .c and .cu files are as clang-format writes them; the tables and comments of
  headers are aligned by hand.

exceptions.txt says how often a file may still break one of the rules of
lines, length and format: "RULE COUNT FILE". It only shrinks: what is mended is taken out, by
house_rules.py --exceptions DIR >tests/sources/exceptions.txt

    house_rules.py DIR                check the tree
    house_rules.py --exceptions DIR   print what exceptions.txt should hold
    house_rules.py --self-test        plant violations, see each reported
"""
import os
import re
import shutil
import subprocess
import sys

C = (".c", ".h", ".cu", ".cuh", ".inc")
PRODUCT = ("core", "cuda", "mpi", "bindings", "library", "repl")
ALL = (*PRODUCT, "scripts", "tests"), (*C, ".lua")
FORMATTER = "clang-format version 14"    # others break lines otherwise
WIDTH = 80
FILE_LENGTH, FUNCTION_LENGTH = 600, 60
PROSE = (*PRODUCT, "docs", "scripts", "tests"), (
    *C, ".lua", ".def", ".py", ".md", ".nacre", ".cmake")
BEGIN = {"c": re.compile(r"\{$|[a-z][^=]*\([^=]*\{$", re.I),
         "lua": re.compile(r"(local )?function |(local )?[\w.]+ = function")}


def sources(root, folders, suffixes):
    """The texts of all source files by their paths."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith(suffixes):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        found[os.path.relpath(path, root)] = f.read()
    return dict(sorted(found.items()))


def guards(files):
    owner = {}
    for path, text in files.items():
        guard = re.search(r"^#ifndef (\w+)\n#define \1\n", text, re.M)
        if guard and path.endswith(".h"):
            first = owner.setdefault(guard[1], path)
            if first != path:
                yield f"{path}: its guard {guard[1]} is that of {first}"


def side(path):
    """Which half of an operator a file is; None if it can be none."""
    for folder in ("core/cpu/", "core/", "cuda/"):
        if path.startswith(folder):
            return folder
    return None


def names(files):
    owners = {}
    for path in files:
        # the emulator has the headers of CUDA under their own names
        if path.split("/")[0] in PRODUCT and not \
                path.startswith("cuda/emulation/include/"):
            owners.setdefault(os.path.basename(path), []).append(path)
    for paths in owners.values():
        sides = [side(path) for path in paths]
        if len(paths) > 1 and (None in sides or len(set(sides)) < len(sides)):
            yield f"{paths[-1]}: the name of {', '.join(paths[:-1])}"


NUMERALS = "core/base/numerals.c"
# what the locale of the process changes
TEXT_OF_NUMBER = re.compile(
    r"\b(strtod|strtof|strtold|atof|setlocale)\(|"
    r"\bv?snprintf\([^;]*?\"[^\";\n]*%[-+ #0-9.*]*l?[aefgAEFG]")
CHARACTERS = ("repl/host/main.c", "repl/editor/terminal.c",
              "repl/testing/process.c")  # LC_CTYPE alone


def numerals(files):
    """A plug-in and an emulator see no header of the core for that."""
    for path, text in files.items():
        if not path.endswith(C) or path == NUMERALS or \
                not path.startswith(("core/", "bindings/", "repl/")):
            continue
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text,
                      flags=re.S)
        for m in TEXT_OF_NUMBER.finditer(text):
            if m[1] == "setlocale" and path in CHARACTERS:
                continue
            yield (f"{path}:{text.count(chr(10), 0, m.start()) + 1}: depends "
                   "on the locale: see core/numerals.h")


# forms at which a reader stops, and what to write instead
STUMBLES = (
    (r"but for(?! the time being)", "except"),
    (r"(?:has|have)(?: it| they)? not(?=\s*(?:[.,;:)\"]|\*/|(?:let|what)\b|$))",
     "does not have"),
    (r"in the place of", "in place of, instead of"),
    (r"what is no(?! (?:more|longer)\b) \w+", "what is not a ..."),
    (r"gives whether", "returns whether"),
)
STUMBLE = re.compile(r"\b(?:" + "|".join(f"({form})" for form, _ in STUMBLES) +
                     ")", re.I)
# a line break in a comment or between the parts of a text
BREAK = re.compile(r"\"?\s*(?:\.\.)?\s*\n\s*(?:(?:\*\*|\*|--|#|//|\.\.)[ \t]+)?\"?")


def english(files):
    for path, text in files.items():
        if path.startswith(("tests/sources/", "docs/measurements/")):
            continue                  # these name the forms; these are dated
        for m in STUMBLE.finditer(" ".join(BREAK.sub(" ", text).split())):
            yield f"{path}: '{m[0]}': say '{STUMBLES[m.lastindex - 1][1]}'"


def cycles(files):
    for path, text in files.items():
        if path.count("/") == 1 and path.endswith(".h"):
            for to in includes(path, text, 1):
                yield f"{path}: includes a file of core/{to}"
    # core/cpu as one folder, then core/cpu/conv as one of its own
    yield from {*cycles_between(files, 1), *cycles_between(files, 2)}


def includes(path, text, depth):
    """The folders of core, cut to `depth' names, whose files `path' includes."""
    if path.startswith("core/"):
        for to in re.findall(r'^#\s*include "core/([\w/]+)/\w+\.', text, re.M):
            yield "/".join(to.split("/")[:depth])


def cycles_between(files, depth):
    graph = {}
    for path, text in files.items():
        folder = "/".join(path.split("/")[1:-1][:depth])
        for to in includes(path, text, depth):
            if folder and to != folder:
                graph.setdefault(folder, {}).setdefault(to, path)

    def walk(folder, way):
        if folder in way:
            return way[way.index(folder):]
        for to in sorted(graph.get(folder, ())):
            found = walk(to, way + [folder])
            if found:
                return found
        return None
    for folder in sorted(graph):
        found = walk(folder, [])
        if found and found[0] == folder:
            last = graph[found[-1]][folder]
            yield f"{last}: a cycle, core/{' core/'.join(found)} core/{folder}"


def bare(line):
    """Lua without its texts and comments, as far as a line shows."""
    line = re.sub(r"\"(\\.|[^\"\\])*\"|'(\\.|[^'\\])*'", '""', line)
    return re.sub(r"--.*|\[=*\[.*", "", line)


def lines(path, text):
    """Rule and number of each line that breaks one of the rules of lines."""
    long_text = False
    for n, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDTH and not re.search(r"https?://", line):
            yield "width", n
        if not path.endswith(".lua"):
            continue
        if not long_text and re.search(r"\{ +[^ ]|[^ ] +\}$|[^ ,] +\}[^\"']",
                                       bare(line).lstrip()):
            yield "braces", n
        if re.search(r"\[=*\[", line) and not re.search(r"\]=*\]", line):
            long_text = True
        elif re.search(r"\]=*\]", line):
            long_text = False


def lengths(path, text):
    """As of lines(): a function is what begins and ends at the margin."""
    begin, end = (BEGIN["lua"], "end") if path.endswith(".lua") else \
        (BEGIN["c"], "}")
    start = None
    for n, line in enumerate(text.splitlines(), 1):
        if start is None and begin.match(line) and not line.endswith(" end"):
            start = n
        elif start and line.startswith(end):
            if n - start >= FUNCTION_LENGTH:
                yield "function", n
            start = None
    if text.count("\n") > FILE_LENGTH:
        yield "file", FILE_LENGTH + 1


def broken(files):
    """How often a file breaks a rule of lines or lengths, and where."""
    found = {}
    for path, text in files.items():
        for rule, n in [*lines(path, text), *lengths(path, text)]:
            found.setdefault((rule, path), []).append(n)
    return found


def excess(found, excused):
    for (rule, path), where in found.items():
        may = excused.get((rule, path), 0)
        if len(where) > may:
            yield f"{path}:{where[-1]}: {rule}: {len(where)}, excused: {may}"


def mended(found, excused):
    """How many exceptions are needed no more."""
    return sum(max(0, may - len(found.get(key, ())))
               for key, may in excused.items())


def unformatted(root, files):
    """As of broken(): 1 for each file that clang-format would change."""
    tool = shutil.which("clang-format")
    if tool is None or FORMATTER not in subprocess.run(
            [tool, "--version"], capture_output=True, text=True,
            check=False).stdout:
        return None
    paths = [p for p in files if p.endswith((".c", ".cu"))]
    done = subprocess.run([tool, "--dry-run", *paths], cwd=root, check=False,
                          capture_output=True, text=True)
    found = {}
    for path, line in re.findall(r"^(\S+?):(\d+):\d+: warning: code should be "
                                 r"clang-formatted", done.stderr, re.M):
        found["format", path] = [int(line)]
    return found


def exceptions(text):
    found = {}
    for line in text.splitlines():
        rule, count, path = line.split()
        found[rule, path] = int(count)
    return found


def check(root):
    files = sources(root, *ALL)
    with open(os.path.join(root, "tests/sources/exceptions.txt"),
              encoding="utf-8") as f:
        excused = exceptions(f.read())
    counted = broken(files)
    formatted = unformatted(root, files)
    if formatted is None:
        print(f"house rules: no {FORMATTER}: the format of C is not checked")
    counted.update(formatted or {})
    found = [*guards(files), *names(files), *cycles(files),
             *numerals(files), *english(sources(root, *PROSE)),
             *excess(counted, excused)]
    stale = mended(counted, excused) if formatted is not None else 0
    failed = conclude(f"house rules, {sum(excused.values())} exceptions", files,
                      found)
    if stale:
        print(f"house rules: {stale} exceptions are needed no more: write "
              "exceptions.txt anew with --exceptions")
    return failed or stale > 0


HEADER = "#ifndef a_h\n#define a_h\n#endif\n"
PLANTS = [  # rule, files, how many reports
    (guards, {"core/a.h": HEADER, "cuda/b.h": HEADER}, 1),
    (guards, {"core/a.h": HEADER, "cuda/b.h": HEADER.replace("a_h", "b_h")}, 0),
    (names, {"core/ops/a.c": "", "core/cpu/a.c": "", "cuda/x/a.c": ""}, 0),
    (names, {"core/ops/a.c": "", "core/io/a.c": ""}, 1),
    (names, {"core/ops/a.c": "", "bindings/a.c": ""}, 1),
    (names, {"repl/a.lua": "", "bindings/lib/a.lua": ""}, 1),
    (names, {"repl/a.lua": "", "tests/a.lua": ""}, 0),
    (numerals, {"core/a.c": "x = strtod(s, NULL);"}, 1),
    (numerals, {"core/a.c": 'snprintf(b, 9,\n  "%d %.*g", 1, 2, x);'}, 1),
    (numerals, {"core/a.c": '/* strtod(s) */ snprintf(b, 9, "%d age", i);'}, 0),
    (numerals, {"core/a.c": 'nc_format(b, 9, "%g", x); nc_fail(1, "%g", x);'},
     0),
    (numerals, {"bindings/a.c": 'setlocale(LC_ALL, "");', "mpi/a.c": "atof(s)"},
     1),
    (english, {"core/a.h": "/* all, but for the last */"}, 1),
    (english, {"core/a.h": "/* all, but\n** for the last */"}, 1),
    (english, {"core/a.c": 'f("all, but "\n  "for the last");'}, 1),
    (english, {"a.lua": 'fail("it has " ..\n     "not")'}, 1),
    (english, {"a.lua": "-- what a module has not.\n-- and have not run"}, 1),
    (english, {"docs/a.md": "which it has not,\nor has not read"}, 1),
    (english, {"docs/a.md": "It is used but for the time being it has not "
                            "changed."}, 0),
    (english, {"a.py": '"""Stands in the place\n    of what is no list."""'}, 2),
    (english, {"core/a.h": "/* Gives whether it did; in place of b */"}, 1),
    (cycles, {"core/ops/a.c": '#include "core/cpu/b.h"\n',
              "core/cpu/b.h": '#include "core/base/c.h"\n'}, 0),
    (cycles, {"core/ops/a.c": '#include "core/cpu/b.h"\n',
              "core/cpu/b.h": '#  include "core/ops/c.h"\n'}, 2),
    (cycles, {"core/cpu/a.c": '#include "core/cpu/x/b.h"\n',
              "core/cpu/x/b.h": '#include "core/cpu/y/c.h"\n'}, 0),
    (cycles, {"core/cpu/a.c": '#include "core/cpu/x/b.h"\n',
              "core/cpu/x/b.h": '#include "core/cpu/c.h"\n'}, 2),
    (cycles, {"core/a.h": '#include "core/base/b.h"\n'}, 1),
    (cycles, {"core/a.h": '#include "core/b.h"\n'}, 0),
    (lambda f: excess(broken(f), {}), {"core/a.c": "x" * 80 + "\n"}, 0),
    (lambda f: excess(broken(f), {}), {"core/a.c": "x" * 81 + "\n"}, 1),
    (lambda f: excess(broken(f), {}), {"a.lua": "-- https://" + "x" * 81}, 0),
    (lambda f: excess(broken(f), {("width", "a.c"): 1}), {"a.c": "x" * 81}, 0),
    (lambda f: excess(broken(f), {}), {"a.lua": "t = { 1, 2 }"}, 1),
    (lambda f: excess(broken(f), {}), {"a.c": "int x;\n" * 600}, 0),
    (lambda f: excess(broken(f), {}), {"a.c": "int x;\n" * 601}, 1),
    (lambda f: excess(broken(f), {}),
     {"a.c": "int f(int a,\n      int b) {\n" + "  a++;\n" * 58 + "}\n"}, 0),
    (lambda f: excess(broken(f), {}),
     {"a.c": "int f(void) {\n" + "  a++;\n" * 59 + "}\n"}, 1),
    (lambda f: excess(broken(f), {}),
     {"a.c": "int T(t) = {\n" + "  1,\n" * 99 + "};\n"}, 0),
    (lambda f: excess(broken(f), {}),
     {"a.lua": "function f()\n" + "  g()\n" * 59 + "end\n"}, 1),
    (lambda f: excess(broken(f), {}), {"a.lua": "f({1 })"}, 1),
    (lambda f: excess(broken(f), {}),
     {"a.lua": "t = {1, {2}}\nu = {\n  3,\n}\ns = '{ a }' -- { b }\n"
               "v = [[\n{ c }\n]]\n"}, 0),
]


def judge(name, plants):
    """Prints the plants that are judged wrongly, of which each is what was
    planted, the reports, and how many are wanted. Are there any?"""
    wrong = [(what, got) for what, got, want in plants if len(got) != want]
    for what, got in wrong:
        print(f"{what}: {got}")
    print(f"{name}: {len(wrong)} plants were judged wrongly")
    return len(wrong) > 0


def conclude(name, files, found):
    """Prints what was found in the files. Does the test fail?"""
    print(*found, f"{name}: {len(files)} files, {len(found)} violations",
          sep="\n")
    return not files or len(found) > 0


def main(words):
    if words == ["--self-test"]:
        return judge("house rules", [(files, list(rule(files)), want)
                                     for rule, files, want in PLANTS])
    if len(words) == 2 and words[0] == "--exceptions":
        files = sources(words[1], *ALL)
        found = {**broken(files), **(unformatted(words[1], files) or {})}
        for (rule, path), where in sorted(found.items()):
            print(rule, len(where), path)
        return 0
    return check(words[0] if words else ".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
