#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The steps of CONTRIBUTING.md that add something work, and are all.

Each block of code there that says where it goes is put into a copy of the
sources; the copy is built, quickly rather than well, and what is new is
tried on the CPU and on the emulated device. The files of each section
are counted: an operation that needs more is a defect of the mechanism.

    adding_operations.py PROGRAM SOURCES FOLDER CMAKE [-DNAME=VALUE ...]

The copy stays in FOLDER, so that another run compiles what has changed.
"""
import os
import re
import subprocess
import sys

SOURCES, FOLDER, CMAKE = sys.argv[2:5]
COPY, BUILD = FOLDER + "/sources", FOLDER + "/build"

# Sections of CONTRIBUTING.md; how many files of the product each may touch, and
# how many with the example and the line of a test.
ALLOWED = {
    "A pointwise operation": (1, 2),
    "A reduction": (1, 2),
    "A composed operation": (1, 3),
    "An operator": (5, 7),
    "Adding a command of the shell": (1, 2),
    "Adding a dtype": (5, 5),
    "Adding a file format": (2, 2),
}

COPIED = ["CMakeLists.txt", "core", "cuda", "mpi", "bindings", "library", "repl",
          "scripts", "LICENSE", "docs", "tests/autograd", "tests/docs",
          "tests/lib"]

CHECK = r"""
local function same(name, t, want)
  local got = t:cpu():tolist()
  for i, v in ipairs(want) do
    assert(math.abs(got[i] - v) < 1e-6,
           ("%s on %s: element %d is %s, not %s")
           :format(name, t.device, i, got[i], v))
  end
  assert(#got == #want, name)
end
local function grad(x) return x.grad:flatten() end
for _, device in ipairs {"cpu", "cuda"} do
  local function leaf(v)
    return nacre.tensor(v, { device = device, requires_grad = true })
  end
  local x = leaf {{1.0, 2}, {3, -4}}
  same("cube", x:cube():flatten(), {1, 8, 27, -64})
  same("cube.t", x:t():cube():flatten(), {1, 27, 8, -64})
  x:cube():sum():backward()
  same("cube's gradient", grad(x), {3, 12, 27, 48})
  same("cube_", nacre.tensor({2.0}, { device = device }):cube_(), {8})

  x = leaf {{1.0, 2}, {3, -4}}
  same("sum_squares", x:sum_squares(1), {10, 20})
  same("sum_squares", x:sum_squares(2), {5, 25})
  x:sum_squares():backward()
  same("sum_squares' gradient", grad(x), {2, 4, 6, -8})

  x = leaf {1.5, 2}
  same("relative_error", x:relative_error(leaf {1.0, 4}), {0.5, 0.5})
  x:relative_error(nacre.tensor({1.0, 4}, { device = device })):sum():backward()
  same("relative_error's gradient", grad(x), {1, -0.25})

  x = leaf {{1.0, 2}, {3, 4}}
  same("cycle", x:cycle():flatten(), {4, 1, 2, 3})
  same("cycle.t", x:t():cycle(-1):flatten(), {3, 2, 4, 1})
  for _, dtype in ipairs {"bool", "int16", "float32", "int64"} do
    local y = nacre.tensor({1, 0, 1}, { dtype = dtype, device = device })
    same("cycle of " .. dtype, y:cycle(2):to("float64"), {0, 1, 1})
  end
  (x:cycle(1) * nacre.tensor({{1.0, 2}, {3, 4}}, { device = device }))
      :sum():backward()
  same("cycle's gradient", grad(x), {2, 3, 4, 1})
  assert(nacre.cycle(x, 1).device == x.device)

  local function uint16(v)
    return nacre.tensor(v, { dtype = "uint16", device = device })
  end
  x = uint16 {1, 65535, 300}
  assert((x + 1).dtype == "uint16")
  same("uint16 + 1", x + 1, {2, 0, 301})
  same("uint16 * uint16", x * x, {1, 1, 90000 % 65536})
  same("uint16 / 2", x / 2, {0.5, 32767.5, 150})
  same("sum of uint16", x:sum():flatten(), {65836})
  same("amax of uint16", x:amax():flatten(), {65535})
  same("argmax of uint16", x:argmax():flatten(), {2})
  same("sort of uint16", (x:sort()), {1, 300, 65535})
  same("cumsum of uint16", x:cumsum(1), {1, 65536, 65836})
  same("uint16 > 2", x:gt(2):int(), {0, 1, 1})
  same("index_add_", x:clone():index_add_(1, nacre.tensor({1},
       { device = device }), uint16 {5}), {6, 65535, 300})
  same("strided uint16", uint16({{1, 2}, {3, 65535}}):t():flatten(),
       {1, 3, 2, 65535})
  same("to uint16", nacre.tensor({-5.0, 7e4, 2.5}, { device = device })
                        :to "uint16", {0, 65535, 2})
  for dtype, common in pairs {uint8 = "uint16", int8 = "int32", int16 = "int32",
                              int32 = "int32", float16 = "float16"} do
    local y = nacre.ones(3, { dtype = dtype, device = device })
    assert((x + y).dtype == common and (y + x).dtype == common, dtype)
  end
  assert(not pcall(nacre.full, {2}, 65536, { dtype = "uint16" }))
end

local x = nacre.tensor({1, 65535}, {dtype = "uint16"})
for _, format in ipairs {"npy", "safetensors", "pt"} do
  local bytes = nacre.serialize(format == "npy" and x or {x}, {format = format})
  local y = nacre.deserialize(bytes)
  y = format == "npy" and y or y[1]
  assert(y.dtype == "uint16" and nacre.equal(y, x), format)
end
assert(nacre._info("cycle").doc:find "moved by shift")

local path = os.tmpname() .. ".fbin"
x = nacre.tensor {{1, 2, 3}, {4, 5, 0.5}}
nacre.save(path, x:t())
assert(nacre.equal(nacre.load(path), x:t()))
assert(nacre.equal(nacre.deserialize(nacre.serialize(x, {format = "fbin"}),
                                     {format = "fbin"}), x))
for text, call in pairs {
  ["it holds a matrix of float32"] = function() nacre.save(path, x:long()) end,
  ["data: 24 bytes are needed, the file has 23 left"] = function()
    nacre.deserialize(nacre.serialize(x, {format = "fbin"}):sub(1, -2),
                      {format = "fbin"})
  end,
  ["names is for files of several tensors"] = function()
    nacre.load(path, {names = {"a"}})
  end,
  ["npy, fbin, idx"] = function() nacre.load(path, {format = "xls"}) end,
} do
  local ok, e = pcall(call)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end
assert(nacre._info("load").doc:find(".npy .fbin .idx", 1, true))
os.remove(path)
"""


def steps(text):
    """The blocks of a section: (path, "new", "at the end", "after" or "instead of"
    with an anchor, code)."""
    form = (r"^`([^`\n]+)`, (new|at the end|(after|instead of) `([^`\n]+)`):\n\n"
            r"```\w*\n(.*?)^```$")
    for path, how, where, anchor, code in re.findall(form, text, re.M | re.S):
        yield path, (where or how, anchor), code


def recipes():
    with open(SOURCES + "/CONTRIBUTING.md", encoding="utf-8") as f:
        parts = re.split(r"^##+ (.*)$", f.read(), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2]))
    return {name: list(steps(sections[name])) for name in ALLOWED}


def added(old, place, code, path):
    how, anchor = place
    if how == "new":
        assert old is None, f"{path} is not new"
        return code
    assert old is not None, f"there is no {path}"
    if how == "at the end":
        return old + code
    lines = old.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if line.startswith(anchor)]
    assert at, f"{path} has no line that begins with {anchor}"
    kept = at[0] + (how == "after")
    return "".join(lines[:kept]) + code + "".join(lines[at[0] + 1:])


def originals():
    """The files to be copied: path and content."""
    for top in COPIED:
        if os.path.isfile(f"{SOURCES}/{top}"):
            yield top
        for folder, _, names in os.walk(f"{SOURCES}/{top}"):
            for name in names:
                yield os.path.relpath(f"{folder}/{name}", SOURCES)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return None


def write(path, content):
    """Writes what is different, so that only that is compiled again."""
    if read(path) == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)


def changed():
    """The files that the recipes make or change; counts those of each."""
    files = {}
    for name, list_ in recipes().items():
        assert list_, f"CONTRIBUTING.md, {name}: no steps were found"
        touched = {path for path, _, _ in list_}
        product = {path for path in touched
                   if not path.startswith(("repl/reference/", "tests/"))}
        print(f"{name}: {len(touched)} files, {len(product)} of the product")
        assert len(product) <= ALLOWED[name][0], f"{name}: {sorted(product)}"
        assert len(touched) <= ALLOWED[name][1], f"{name}: {sorted(touched)}"
        for path, place, code in list_:
            old = files.get(path)
            if old is None:
                old = read(f"{SOURCES}/{path}")
                old = old and old.decode()
            files[path] = added(old, place, code, path)
    return files


def copy():
    files = {path: text.encode() for path, text in changed().items()}
    for path in originals():
        files.setdefault(path, read(f"{SOURCES}/{path}"))
    for folder, _, names in os.walk(COPY):
        for name in names:
            if os.path.relpath(f"{folder}/{name}", COPY) not in files:
                os.remove(f"{folder}/{name}")
    for path, content in files.items():
        write(f"{COPY}/{path}", content)


def run(*command, **environment):
    result = subprocess.run(command, env=dict(os.environ, **environment),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, check=False)
    if result.returncode != 0:
        print("\n".join(result.stdout.splitlines()[-60:]))
        sys.exit(f"failed: {' '.join(command)[:200]}")
    return result.stdout


def main():
    copy()
    run(CMAKE, "-S", COPY, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
        "-DNACRE_CUDA=OFF", "-DNACRE_EMULATED=ON", "-DBUILD_TESTING=OFF",
        *sys.argv[5:])
    run(CMAKE, "--build", BUILD, "--parallel", "2",
        "--target", "nacre", "nacre_cuda_emulated",
        CCACHE_BASEDIR=COPY, CCACHE_NOHASHDIR="true")
    nacre = BUILD + "/nacre"
    run(nacre, "-e", CHECK, NACRE_CUDA="emulated")
    assert " .npy .fbin .idx " in run(nacre, "--help")
    greeting = run(nacre, "-e", "shell.greet 'world'")
    assert greeting == "hello world\n", greeting
    pages = {p for list_ in recipes().values() for p, _, _ in list_
             if p.startswith("repl/reference/")}
    run(nacre, "--test", *(f"{COPY}/{p}" for p in sorted(pages)))
    for name, operation in (("grad_operators", "cycle"),
                            ("grad_public", "relative_error")):
        run(nacre, f"{COPY}/tests/autograd/{name}.lua", operation)
    run(nacre, f"{COPY}/scripts/reference.lua", f"{COPY}/docs/reference")
    run(nacre, f"{COPY}/tests/docs/reference.lua")


main()
