#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who includes and calls whom, and what the core must never do: prints every
violation, by FILE:LINE where it has one, and fails if there is one.

    layers.py DIR           check the source tree DIR
    layers.py DIR OBJECTS   and the floors of the core by the symbols of its
                            objects, which lie in the folder OBJECTS
    layers.py --self-test   plant violations, see each reported

An #include whose file is a macro is not followed; the macro's definition
(#define GENERIC "vectorized.inc") counts as the include.
"""
import os
import re
import subprocess
import sys

from house_rules import conclude, judge, sources

FOLDERS = ("core", "cuda", "mpi", "bindings", "library", "repl", "tests")
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".inc", ".def")
LIMIT = 400     # lines of the public header

# What others may see of core. An operation's expression is compiled for every
# device, so also what it is made of; random numbers are the same on all.
PUBLIC = {"core/" + name for name in (
    "tensor.h", "accelerator.h", "autograd.h", "device_teams.h", "files.h",
    "batch.h", "fusion.h", "host.h", "library.h", "trace.h", "signature.h", "suggest.h",
    "ops.h", "ops.def", "operators.h", "operators.def", "transport.h", "dtype.h")}
FOR_DEVICES = PUBLIC | {"core/" + name for name in (
    "pointwise/scalar.h", "pointwise/for_each_compute_type.h",
    "pointwise/op_classes.h", "pointwise/complex_words.h",
    "pointwise/parts_iter.h", "base/philox.h",
    "optimizer_step.h",
    "portable.h", "base/indexed_dims.h")}
# libnacre calls what is written in Lua.
FOR_LIBRARY = {"bindings/" + name for name in (
    "binding.h", "nacre.h", "state.h", "lua_library.h", "calls/functions.h")}
# A transport is compiled on the user's machine, with these alone.
FOR_TRANSPORTS = {"core/transport.h"}

# Headers of others: the name of a kind, its form, who may not include it.
FOREIGN = [
    ("Lua", r"(lua[0-9.-]*/)?(lua|lualib|lauxlib|luaconf)\.h",
     ("core", "cuda", "mpi")),
    ("CUDA", r"cuda|cublas|cudnn|curand|cusolver|cusparse|cufft|cutensor|nvrtc"
     r"|nvml|nvtx|nccl|cub/|thrust/|cooperative_groups",
     ("core", "mpi", "bindings", "library", "repl")),
    ("MPI", r"mpi\.h",
     ("core", "cuda", "bindings", "library", "repl", "tests")),
    ("readline", r"(readline|editline)/|(readline|history)\.h",
     ("core", "cuda", "mpi", "bindings", "library", "tests"))]

# Whom the files of a folder of core may call; of the others, all but io. The
# folders pointwise, ops, indexing, autograd, trace, batch, fusion are the
# engine: they call each other by design.
FLOORS = {"base": {"base"}, "cpu": {"base", "pointwise", "cpu"}}
ABOVE = {"io"}
# Tables, which base passes on without calling what they name.
MAY_NAME = {("base", "nc_cpu"), ("base", "nc_meta"),
            ("base", "nc_forplugins"),
            ("base", "nc_fortransports"), ("trace", "nc_writefile")}

TOKENS = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:\\.|[^\"\\\n])*\""
                    r"|'(?:\\.|[^'\\\n])+'", re.S)
INCLUDE = re.compile(r"\s*#\s*include\s*([\"<])([^\">]*)"
                     r"|\s*#\s*define\s+\w+\s+(\")([^\"]*\.(?:h|inc|def|cu?))\"")
CALLS = re.compile(
    r"(?<![A-Za-z0-9_.>])(abort|exit|_exit|_Exit|quick_exit|(?:sig)?longjmp"
    r"|(?:sig)?setjmp|v?printf|puts|putchar|perror|assert)\s*\(")
# The process that this file makes ends itself; errors of libpng jump to the
# function that called it.
MAY_CALL = {("core/io/hdf5/reader_process.c", "_exit"),
            *(("core/io/images/png.c", f) for f in ("setjmp", "longjmp"))}
DEVICE = re.compile(r"\bDevice\s+(nc_[a-z0-9_]+)\s*[;=]")
DEVICE_LIST = re.compile(r"Device\s*\*\s*(?:const\s*)?\w+\s*\[[^\]]*\]\s*=")


def stripped(text, keep_literals):
    """The lines without comments, with literals or with empty ones."""
    def replace(token):
        if token[0].startswith("/"):
            return " " + "\n" * token[0].count("\n")
        return token[0] if keep_literals else token[0][0] * 2
    return TOKENS.sub(replace, text).split("\n")


def find(files, path, name, angle):
    """Which of our files an #include means; None if none."""
    if angle:
        return name if name in files else None
    for place in (os.path.dirname(path), "", *FOLDERS):
        found = os.path.normpath(os.path.join(place, name))
        if found in files:
            return found
    return None


def included(files, path, name, angle):
    """What is wrong with an #include of `name' in the file `path'."""
    folder = path.split("/")[0]
    for kind, form, forbidden in FOREIGN:
        if folder in forbidden and re.match(form, name):
            yield f"{folder} includes {kind}: {name}"
    to = find(files, path, name, angle)
    where = to and to.split("/")[0]
    if where in (None, folder) or folder == "tests":
        return
    if folder == "core" or \
            where in ("tests", "repl", "cuda", "mpi", "library") or \
            folder in ("cuda", "mpi") and where != "core":
        yield f"{folder} includes {to}"
    elif folder == "library" and where == "bindings":
        if to not in FOR_LIBRARY:
            yield f"library includes a private file of bindings: {to}"
    elif folder in ("bindings", "library") and to not in PUBLIC or \
            folder == "mpi" and to not in FOR_TRANSPORTS or \
            folder == "cuda" and to not in FOR_DEVICES and \
            not to.endswith(".inc"):
        yield f"{folder} includes a private file of core: {to}"


def violations(files):
    """Each violation as FILE:LINE: WHY, of texts by their paths."""
    bare = {path: stripped(text, False) for path, text in files.items()}
    devices = {name for path, lines in bare.items() if path.startswith("core/")
               for line in lines for name in DEVICE.findall(line)}
    named = re.compile(r"\b(%s)\b" % "|".join(devices)) if devices else None
    first_list = None
    for path, text in sorted(files.items(),
                             key=lambda f: (not f[0].startswith("core"), f[0])):
        folder = path.split("/")[0]
        for n, code in enumerate(stripped(text, True), 1):
            line, found = bare[path][n - 1], []
            include = INCLUDE.match(code)
            if include:
                found += included(files, path, include[2] or include[4],
                                  include[1] == "<")
            if folder == "core":
                found += [f"core calls {call}" for call in CALLS.findall(line)
                          if (path, call) not in MAY_CALL]
                if re.search(r"\b(stdout|stderr)\b", line):
                    found.append("core uses stdout or stderr")
            if path == "core/tensor.h" and n == LIMIT + 1 and (
                    text.count("\n") > LIMIT):
                found.append(f"the public header has more than {LIMIT} lines")
            if DEVICE_LIST.search(line):
                if first_list:
                    found.append("a second list of devices, the first is at "
                                 + first_list)
                elif folder != "core":
                    found.append("a list of devices outside core")
                first_list = f"{path}:{n}"
            if folder in ("cuda", "bindings", "library", "repl") and named:
                found += [f"{folder} names the device {name}"
                          for name in named.findall(line)]
            for why in found:
                yield f"{path}:{n}: {why}"


def symbols_of(root, objects):
    """What nm -A prints of the objects whose source is there, by the path of
    that in core. Built folders keep objects of files that have moved."""
    paths = [os.path.join(place, name) for place, _, names in os.walk(objects)
             for name in names if name.endswith(".c.o")]
    names = [os.path.relpath(path, objects) for path in paths]
    there = [name for name in names
             if os.path.exists(os.path.join(root, "core", name[:-2]))]
    return subprocess.run(["nm", "-A", *there], text=True, check=True,
                          cwd=objects, capture_output=True).stdout


def wrong_calls(symbols):
    """Each call to a higher floor, of what nm -A prints."""
    home, used = {}, set()
    for line in symbols.split("\n"):
        found = re.match(r"((\w+)/\S+)\.o: *[0-9a-f]* ([A-Za-z]) (\S+)$", line)
        if not found:
            continue
        name, folder, kind, symbol = found.groups()
        if kind == "U":
            used.add((folder, name, symbol))
        elif kind.isupper():
            home[symbol] = folder
    for folder, name, symbol in sorted(used):
        to = home.get(symbol, folder)
        if (to not in FLOORS.get(folder, {to}) or
                to in ABOVE and folder not in ABOVE) and \
                (folder, symbol) not in MAY_NAME:
            yield f"core/{name} calls {symbol} of core/{to}"


# The self-test: these files and one of the plants, whose last line is reported.
TREE = {"bindings/planted.h": "", "library/planted.h": "",
        "bindings/nacre.h": "",
        "repl/planted.h": "", "cuda/planted.h": "",
        "core/hidden.h": "", "core/aaa.h": "extern const Device nc_planted;",
        "core/tensor.h": "\n" * LIMIT, "core/transport.h": "",
        "core/pointwise/scalar.h": ""}
REPORTED = {
    "core/planted.c": [
        '#include "../bindings/planted.h"', '#include "bindings/planted.h"',
        '#include "planted.h"', "#  include <repl/planted.h>",
        "#include <lua.h>", '#include "lauxlib.h"',
        "#include <lua5.4/lualib.h>", "#include <cuda_runtime.h>",
        "#include <cublas_v2.h>", "#include <readline/readline.h>",
        *(f"int f(void) {{ {name} (1); }}" for name in (
            "abort", "exit", "_exit", "longjmp", "siglongjmp", "printf",
            "assert", "puts")),
        "/* a */ abort(); /* b */", "c = '\"'; exit(1);",
        '  fprintf(stderr, "x");',
        "static const Device *const l1[] = { 0 }; /*\n"
        "*/ static const Device *l2[2] = { 0 };"],
    "core/planted.inc": ["  assert(n > 0);"],
    "core/tensor.h": ["\n" * LIMIT + "/* the line too many */\n"],
    "cuda/planted.cu": [
        '#include "core/hidden.h"', '#define GENERIC "../core/hidden.h"',
        '#include "bindings/planted.h"', "#include <lua.h>",
        "  run(&nc_planted);"],
    "bindings/planted.c": [
        '#include "../core/hidden.h"', '#include "hidden.h"',
        '#include "core/pointwise/scalar.h"', '#include "../cuda/planted.h"',
        "#include <cuda.h>", '#include "../repl/planted.h"',
        "#include <readline/history.h>", "  d = &nc_planted;",
        "const Device *all[] = { 0 };"],
    "library/planted.c": ['#include "bindings/planted.h"',
                          '#include "repl/planted.h"',
                          '#include "core/hidden.h"', "f(nc_planted);"],
    "mpi/planted.c": ['#include "core/tensor.h"', "#include <lua.h>"],
    "repl/planted.c": ['#include "../cuda/planted.h"', "#include <mpi.h>",
                       "f(nc_planted);", '#include "library/planted.h"'],
    "tests/planted.c": ["#include <readline/readline.h>"]}
PASSED = {
    "core/planted.c": [
        '  snprintf(s, n, "exit(1)"); /* abort() */',
        '  static_assert(sizeof(int) == 4, "int"); // abort()',
        "  nc_exit(d->exit(1), print_exit(2));", "#include <memory.h>",
        '#include "tensor.h"', '#include "../core/hidden.h"',
        "/* #include <lua.h> */"],
    "cuda/planted.cu": ['#include "../core/tensor.h"',
                        "#include <cuda_runtime.h>"],
    "mpi/planted.c": ["#include <mpi.h>", '#include "core/transport.h"'],
    "bindings/planted.c": ['#include "core/tensor.h"', "#include <lauxlib.h>",
                           "  d = nc_planted_name; /* nc_planted */"],
    "library/planted.c": ["#include <lua.h>", '#include "bindings/nacre.h"'],
    "repl/planted.c": ["#include <readline/readline.h>",
                       '#include "../bindings/planted.h"']}


def plants():
    """What is planted, the reports, how many are wanted."""
    for texts_of, count in ((REPORTED, 1), (PASSED, 0)):
        for path, texts in texts_of.items():
            for text in texts:
                last = f"{path}:{text.rstrip().count(chr(10)) + 1}: "
                found = list(violations({**TREE, path: text}))
                if count:
                    found = [x for x in found[-1:] if x.startswith(last)]
                yield f"{path}, {text.strip()!r}", found, count
    homes = "".join(f"{folder}/a.c.o: 00 T nc_{folder}\n"
                    for folder in ("base", "cpu", "ops", "io"))
    for user, target, bad in (
            ("base", "base", 0), ("base", "ops", 1), ("base", "io", 1),
            ("cpu", "base", 0), ("cpu", "ops", 1), ("ops", "cpu", 0),
            ("ops", "base", 0), ("ops", "io", 1), ("io", "ops", 0)):
        text = f"{homes}{user}/b.c.o:      U nc_{target}\n"
        yield f"{user} calls {target}", list(wrong_calls(text)), bad


def main(words):
    if words == ["--self-test"]:
        return judge("layers", plants())
    root = words[0] if words else "."
    files = sources(root, FOLDERS, SUFFIXES)
    found = list(violations(files))
    if len(words) > 1:
        found += wrong_calls(symbols_of(os.path.abspath(root), words[1]))
    return conclude("layers", files, found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
