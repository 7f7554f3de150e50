# SPDX-License-Identifier: MIT
"""The hints that the sources of the core, of the bindings and of the CUDA
plug-in can give: texts(root) yields the place and the pattern of each."""
import re

STRING = r'"(?:\\.|[^"\\])*"'
# The calls that make one, and which of the arguments it is.
MAKERS = {
    ".c": [(r"(?:nc_hint|h->hint)", 0), ("wrong", 1), ("badtype", 1),
           ("failsave", 2)],
    ".lua": [("fail", 2)],
}
# Those of tables: of files of other programs, of libraries.
TABLES = {"core/io/foreign_formats.c": r'"[^"]*",\s*("(?:in Python|tar|sqlite3|git lfs|'
                            r'bunzip2|unxz|unzstd|nacre|convert)[^"]*")',
          "core/io/zip/zip.c": '("install [^"]*")',
          "core/io/images/png.c": '("install [^"]*")'}
# What no input reaches: a test in C has its words; or the machine that it is
# said on can be neither had nor emulated.
APART = {"cuda/runtime/probe.c": "unit/test_cuda_probe.c",
         "core/base/transport.c": "distributed/test_faults.py",
         "cuda/runtime/cuda_plugin.c": "unit/test_cuda_streams.c",
         "bindings/lib/distributed/gradient_buckets.lua":
         "distributed/training.lua",
         "bindings/lib/distributed/zero_optimizer.lua: opt:consolidate":
         "distributed/zero_optimizer.lua",
         "core/io/hdf5/hdf5_": "numpy/hdf5_h5py.py",
         "core/io/hdf5/hdf5.c": "files/hdf5.lua",
         "core/io/hdf5/reader_process.c": "files/hdf5.lua",
         "core/pointwise/apply.c: {0}:clone() can be":
         "python/python_tensors.lua",
         "bindings/python/tensor_": "python/python_tensors.lua",
         "bindings/tensors/userdata.c: py.tensor(object)":
         "python/python_tensors.lua",
         "bindings/tensors/index_keys.c: py.tensor(object)":
         "python/python_tensors.lua",
         "bindings/python/libpython.c": "python/test_bridge.py",
         "bindings/python/": "python/python_values.lua",
         "core/io/pt/pt.c: in Python": "files/pt.lua",
         "core/io/archive.c: in Python": "files/pt.lua",
         "core/base/accelerator.c": None,   # a build without the emulated device
         "core/cpu/product/lapack.c": None,  # a system without LAPACK
         "cuda/fusion/raw_kernels.c": None,  # a CUDA plug-in without NVRTC
         "cuda/reduce/reduce.c": None,              # 2^32 elements behind one result
         "cuda/runtime/cuda_error.c: this build has": None}  # a GPU of another kind


def arguments(text, at):
    """The arguments of the call whose parenthesis is at `at'."""
    found, depth, start = [], 0, at + 1
    while True:
        char = text[at]
        if char in "\"'":
            close = at + 1
            while text[close] != char:
                close += 2 if text[close] == "\\" else 1
            at = close
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return [*found, text[start:at]]
        elif char == "," and depth == 1:
            found.append(text[start:at])
            start = at + 1
        at += 1


def literals(code):
    """Its texts, with those that are parts of one joined."""
    for found in re.finditer(rf"{STRING}(?:\s*(?:\.\.)?\s*{STRING})*", code):
        text = "".join(s[1:-1] for s in re.findall(STRING, found[0]))
        yield re.sub(r"\\(.)", r"\1", text)


def pattern(text):
    """What a text made with this format looks like."""
    parts = re.split(r"\{(?:[0-7]|%s|[A-Za-z]\w*)\}|"
                     r"%(?:\.\*)?(?:ll)?[sdguq]", text)
    return ".*".join(map(re.escape, parts))


def codes(path, source):
    """Each part of a file that makes a hint: where, and its code."""
    for maker, which in MAKERS[path.suffix]:
        for call in re.finditer(rf"\b{maker}\(", source):
            given = arguments(source, call.end() - 1)
            code = given[which] if len(given) > which else ""
            if code.strip().startswith("{cause ="):
                code = code.partition("hint =")[2]
            yield call.start(), code


def apart(root, place):
    """Is a text given elsewhere: for want of a machine, or as a test in C
    says?"""
    where, _, text = place.partition(": ")
    name = f"{where.partition(':')[0]}: {text}"
    begin = text.partition("%")[0]
    for start, test in APART.items():
        if name.startswith(start):
            return test is None or any(
                len(said) > 5 and (said in text or begin and
                                   said.startswith(begin))
                for said in literals((root / "tests" / test).read_text()))
    return False


def texts(root):
    for folder in ("core", "bindings", "cuda"):
        for path in sorted((root / folder).rglob("*.*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in MAKERS or "emulation/" in name:
                continue
            source = path.read_text("utf-8")
            found = list(codes(path, source))
            found += [(m.start(), m[1]) for m in
                      re.finditer(TABLES.get(name, r"(?!)"), source)]
            for at, code in found:
                for text in literals(code):
                    if re.search(r"[a-z]{2}", re.sub(r"%\w+", "", text)):
                        line = source.count("\n", 0, at) + 1
                        yield f"{name}:{line}: {text}", pattern(text)
