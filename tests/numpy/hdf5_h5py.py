#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares HDF5 files with h5py: what it writes is read with the same elements
and attributes, and what nacre writes it reads.

    tests/numpy/hdf5_h5py.py build/nacre

Exits with 77 (skipped) where there is no h5py, or nacre finds no HDF5 library.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

from numpy_or_skip import module_or_skip, np

h5py = module_or_skip("h5py", "h5py")

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1

# Every tensor of argument 1 into a .npz file by its path.
READ = """
local flat = {}
local function walk(t, path)
  for name, v in pairs(t) do
    if nacre.is_tensor(v) then flat[path .. name] = v
    else walk(v, path .. name .. "/") end
  end
end
walk(nacre.load(arg[1]), "")
nacre.save(arg[2], flat)
"""

WRITE = """
local t = nacre.load(arg[1])
local tree = {group = {inner = {}}}
for name, v in pairs(t) do tree.group.inner[name] = v end
nacre.save(arg[2], tree, {compressed = arg[3] == "true",
                          metadata = {made = "here, \\u{e9}", empty = ""}})
"""

ATTRIBUTES = """
local _, a = nacre.load(arg[1])
assert(a["/"].title == "a title" and a.group.n == 3)
local x = a["group/x"]
assert(x.unit == "mm" and x.scale == 2.5 and x.on == true)
assert(x.names[1] == "a" and x.names[2] == "b\\u{e9}" and #x.names == 2)
assert(x.fixed == "abc" and x.none == "" and x.big == 7)
assert(x.ids.dtype == "int64" and x.ids[3] == 2)
assert(x.refer == nil)
"""

FOREIGN = {
    "text": "holds texts", "compound": "holds compound data",
    "swapped": "holds compound data", "mixed": "holds compound data",
    "integers": "holds compound data", "null": "it has no shape",
    "deep": "it has 10 dimensions", "external": "its data are in other files",
    "virtual": "its data are in other files",
    "huge": "read parts of it: {names={...}, slice={{1,100}}}",
}


def run(nacre, text, *args):
    done = subprocess.run([nacre, "-", *args], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if "HDF5 library, which was not found" in done.stdout:
        print("skipped:", done.stdout)
        sys.exit(77)
    return done


def good(nacre, text, *args):
    done = run(nacre, text, *args)
    if done.returncode != 0:
        sys.exit(f"nacre {args}: {done.stdout}")


def arrays(codes, order):
    rng = np.random.default_rng(SEED)
    for code in codes:
        for i, shape in enumerate([(), (0, 3), (7,), (30, 41), (2, 3, 4)]):
            a = rng.standard_normal(shape) * 100
            if code[0] == "c":
                a = a + 1j * rng.standard_normal(shape)
            a = np.abs(a) if "u" in code else a
            yield f"{code}_{i}", np.asarray(a > 0 if code == "b1" else
                                                     a, order + code)


def write(path):
    """Files as h5py writes them, in both byte orders, chunked and not."""
    codes = "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split()
    with h5py.File(path, "w") as f:
        for order, name in [("<", "little"), (">", "big")]:
            for key, a in arrays(codes, order):
                f[f"{name}/{key}"] = a
                if a.ndim and a.size:
                    f.create_dataset(f"{name}/chunks/{key}", data=a,
                                     chunks=tuple(max(1, n // 3)
                                                  for n in a.shape),
                                     compression="gzip", shuffle=True,
                                     fletcher32=True, maxshape=(None,) * a.ndim)
        for key, a in arrays(["b1"], "="):
            f["bool/" + key] = a
        f.create_dataset("filled", shape=(3, 5), dtype="f4", fillvalue=7)
        f["other name"] = f["filled"]
        f["loop"] = f["/"]
        f["soft"] = h5py.SoftLink("/filled")
        f["outside"] = h5py.ExternalLink("nowhere.h5", "x")


def check_reading(nacre, folder):
    path, out = os.path.join(folder, "a.h5"), os.path.join(folder, "a.npz")
    write(path)
    good(nacre, READ, path, out)
    got, count = np.load(out), 0
    with h5py.File(path) as f:
        for name in got.files:
            want = f[name][()]
            assert got[name].dtype == np.dtype(want.dtype.str[1:]), name
            assert got[name].shape == want.shape, name
            assert np.array_equal(got[name], want), name
            count += 1
        names = []
        f.visit(lambda n: names.append(n) if isinstance(f[n], h5py.Dataset)
                else None)
        # an object is visited once, the links to one are read all
        assert set(names) | {"other name"} == set(got.files)
    return count


def check_attributes(nacre, folder):
    path = os.path.join(folder, "b.h5")
    with h5py.File(path, "w") as f:
        f["group/x"] = np.arange(3)
        f.attrs["title"] = "a title"
        f["group"].attrs["n"] = 3
        a = f["group/x"].attrs
        a["unit"], a["scale"], a["on"], a["ids"] = "mm", 2.5, True, np.arange(3)
        a["names"], a["fixed"], a["none"] = ["a", "bé"], np.bytes_("abc"), ""
        a["big"] = np.array(7, ">i2")
        a["refer"] = f["group"].ref
    good(nacre, ATTRIBUTES, path)


def check_left_out(nacre, folder):
    """An attribute that no tensor holds hides neither data nor others."""
    path = f"{folder}/left_out.h5"
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(3.)
        for at in f["x"], f:
            at.attrs["_FillValue"] = np.uint64(2**64 - 2)
            at.attrs["list"] = np.array([1, 2**63], dtype=np.uint64)
            at.attrs["deep"] = np.zeros((1,) * 9)
            at.attrs["ok"] = np.uint64(5)
    for options in "", ", {names={'x'}}":
        good(nacre, f"local t, a = nacre.load(arg[1]{options}) "
             "assert(t.x[3] == 2 and a.x.ok == 5 and a['/'].ok == 5) "
             "for _, o in pairs(a) do assert(not o.deep and "
             "o._FillValue == 2.0^64 and o.list.dtype == 'uint64' and "
             "o.list:view('int64')[2] == math.mininteger) end", path)


def check_writing(nacre, folder, compressed):
    given, path = os.path.join(folder, "c.npz"), os.path.join(folder, "c.h5")
    codes = "b1 i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 c16".split()
    want = dict(arrays(codes, "="))
    np.savez(given, **want)
    good(nacre, WRITE, given, path, compressed)
    with h5py.File(path) as f:
        assert f.attrs["made"] == "here, é" and f.attrs["empty"] == ""
        assert set(f["group/inner"]) == set(want)
        for name, a in want.items():
            b = f["group/inner"][name]
            assert b.dtype == a.dtype and np.array_equal(b[()], a), name
            assert (b.compression == "gzip") == (
                compressed == "true" and a.ndim > 0 and a.size > 0), name
    return len(want)


def check_foreign(nacre, folder):
    """What no tensor holds, or lies in another file, is refused by name."""
    path, secret = os.path.join(folder, "d.h5"), os.path.join(folder, "secret")
    with open(secret, "wb") as f:
        f.write(b"0123456789abcdef")
    with h5py.File(path, "w") as f:
        f["x"] = np.arange(3)
        f["text"] = ["a", "b"]
        f["compound"] = np.zeros(2, [("a", "i4"), ("b", "f4")])
        for name, members in (("swapped", [("i", "f4"), ("r", "f4")]),
                              ("mixed", [("r", "f4"), ("i", "f8")]),
                              ("integers", [("r", "i4"), ("i", "i4")])):
            f[name] = np.zeros(2, members)
        f["null"] = h5py.Empty("f4")
        f["deep"] = np.zeros((1,) * 10)
        f.create_dataset("external", shape=(4,), dtype="f4",
                         external=[(secret, 0, 16)])
        layout = h5py.VirtualLayout(shape=(3,), dtype="i8")
        layout[:] = h5py.VirtualSource("b.h5", "group/x", shape=(3,))
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("huge", shape=(1 << 40,), dtype="f8", chunks=(1024,))
    for name, what in FOREIGN.items():
        done = run(nacre, f"nacre.load(arg[1], {{names = {{'{name}'}}}})", path)
        assert done.returncode == 1 and what in done.stdout, done.stdout
    good(nacre, """
      local names = {names = {"x"}}
      assert(nacre.load(arg[1], names).x[3] == 2)
      names = {names = {"huge"}, slice = {{-3, -1}}}
      assert(nacre.load(arg[1], names).huge[1] == 0)""", path)
    listed = subprocess.run([nacre, "--ls", path], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    assert "x         int64    [3]" in listed, listed
    assert "compound holds compound data, which a tensor cannot" in listed, listed


def check_links(nacre, folder):
    """The name of a link may hold a slash, at which the library splits a path:
    so it can lead into another file."""
    inner, path = os.path.join(folder, "e.h5"), os.path.join(folder, "f.h5")
    with h5py.File(inner, "w") as f:
        f["d"] = np.full(4, 7)
    with h5py.File(path, "w") as f:
        f["ext"] = h5py.ExternalLink(inner, "/")
        f["ext@d"] = np.arange(4)
    patch(path, b"ext@d", b"ext/d")
    done = run(nacre, "print(nacre.load(arg[1]))", path)
    assert done.returncode == 1, done.stdout
    assert "a path leads to another file" in done.stdout, done.stdout


def patch(path, old, new):
    with open(path, "rb") as f:
        data = f.read()
    assert old in data and len(old) == len(new)
    with open(path, "wb") as f:
        f.write(data.replace(old, new))


def check_texts(nacre, folder):
    """A list of texts may refer to one text many times."""
    path = os.path.join(folder, "g.h5")
    many = [f"name {i}" for i in range(2000)]
    with h5py.File(path, "w") as f:
        f.attrs["many"] = many
    good(nacre, """local _, a = nacre.load(arg[1])
      assert(#a["/"].many == 2000 and a["/"].many[2000] == "name 1999")""", path)
    with h5py.File(path, "w") as f:
        f["x"] = np.zeros(1 << 18)
        f.attrs["many"], f.attrs["some"] = many, many[:1000]
    good(nacre, """local _, a = nacre.load(arg[1])
      assert(a["/"].many == nil and #a["/"].some == 1000)""", path)
    with h5py.File(path, "w") as f:
        for name, size in zip("abc", [65000, 9, 9]):
            f.attrs[name] = ["x" * size] + [""] * 1000
    with open(path, "rb") as f:
        data = f.read()
    # each text becomes the long one: a length and a place in the heap
    lists = b"(%s.{12})(?:\0{4}.{12}){1000}"
    long = re.search(lists % struct.pack("<I", 65000), data, re.DOTALL)
    data = data.replace(long[0], long[1] * 1001)
    data, n = re.subn(lists % struct.pack("<I", 9),
                      lambda _: long[1] * 1001, data, flags=re.DOTALL)
    assert n == 2
    with open(path, "wb") as f:
        f.write(data)
    done = run(nacre, "nacre.load(arg[1])", path)
    assert done.returncode == 1, done.stdout
    assert "its attributes take more than" in done.stdout, done.stdout


def main(nacre):
    with tempfile.TemporaryDirectory() as folder:
        count = check_reading(nacre, folder)
        check_attributes(nacre, folder)
        check_left_out(nacre, folder)
        for compressed in ["false", "true"]:
            count += check_writing(nacre, folder, compressed)
        check_foreign(nacre, folder)
        check_links(nacre, folder)
        check_texts(nacre, folder)
    print(f"hdf5: {count} tensors")


if __name__ == "__main__":
    main(sys.argv[1])
