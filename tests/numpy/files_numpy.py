#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the files of several tensors, and texts, with Python's libraries.

    tests/numpy/files_numpy.py build/nacre [seed]

What numpy.savez and savetxt write must be read with the same elements, and
what nacre writes must be read by numpy.load and loadtxt; the same, byte for
byte, for safetensors where its library is installed. Exits with 77 (skipped)
where there is no NumPy.
"""
import os
import sys
import tempfile
import zipfile

from numpy_or_skip import np

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import run  # noqa: E402  pylint: disable=C0413

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
DTYPES = "b1 u1 i1 i2 i4 i8 f2 f4 f8".split()
SHAPES = [(), (1,), (0,), (2, 3), (3, 0, 2), (2, 3, 4), (300, 1001)]

# Every tensor of a .npz file as a .npy file, and all of them in one again.
READ = """
local d = nacre.load(arg[1])
local names = {}
for name, t in pairs(d) do
  local of = math.type(name) and "arr_" .. name - 1 or name
  nacre.save(arg[2] .. "/" .. of:gsub("/", "%%") .. ".npy", t)
end
nacre.save(arg[3], d, {compressed = arg[4] == "true"})
"""


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and \
        a.tobytes() == b.tobytes()


def arrays():
    rng = np.random.default_rng(SEED)
    for code in DTYPES:
        for shape in SHAPES:
            size = int(np.prod(shape)) * int(code[1])
            raw = rng.integers(0, 2 if code == "b1" else 256, size,
                               dtype=np.uint8)
            yield np.frombuffer(raw.tobytes(), code).reshape(shape)


def compare(nacre, folder, name, given, compressed):
    """given, by its names in the file, which is at `name' already."""
    out = f"{folder}/out"
    os.makedirs(out, exist_ok=True)
    again = f"{folder}/again.npz"
    run(nacre, READ, name, out, again, str(compressed).lower())
    for key, want in given.items():
        if not same(np.load(f"{out}/{key.replace('/', '%')}.npy"), want):
            sys.exit(f"{name}: {key} is read otherwise than by NumPy")
    got = np.load(again)
    if sorted(got.files) != sorted(given):
        sys.exit(f"{again}: NumPy finds {got.files}, not {list(given)}")
    for key, want in given.items():
        if not same(got[key], want):
            sys.exit(f"{again}: {key} is not what was read")
    with zipfile.ZipFile(again) as z:
        if z.testzip() is not None:
            sys.exit(f"{again}: a checksum is wrong")


def check_npz(nacre, folder):
    named = {f"layer.{i}/w é": a for i, a in enumerate(arrays())}
    listed = {f"arr_{i}": a for i, a in enumerate(arrays())}
    for compressed in (False, True):
        save = np.savez_compressed if compressed else np.savez
        save(f"{folder}/named.npz", **named)
        compare(nacre, folder, f"{folder}/named.npz", named, compressed)
        save(f"{folder}/listed.npz", *listed.values())
        compare(nacre, folder, f"{folder}/listed.npz", listed, compressed)
    mixed = {"arr_0": np.arange(3), "w": np.ones((2, 2), ">f8")}
    np.savez(f"{folder}/mixed.npz", mixed["arr_0"], w=mixed["w"])
    mixed["w"] = mixed["w"].astype("f8")
    compare(nacre, folder, f"{folder}/mixed.npz", mixed, False)
    return 4 * len(named) + 2


def check_mixed(nacre, folder):
    """Of an archive with a text the tensors can be read."""
    path = f"{folder}/mixed.npz"
    np.savez(path, a=np.ones(2), b=np.array(["x"]), c=np.ones(1))
    shown = run(nacre, "_, e = pcall(nacre.load, arg[1]) print(e.hint)", path)
    assert '{names={"a","c"}} reads the others' in shown, shown


def check_texts(nacre, folder):
    rng = np.random.default_rng(SEED)
    text = f"{folder}/x.csv"
    count = 0
    for dtype, fmt in ("float64", "%.18e"), ("float32", "%.9g"), \
                      ("int64", "%d"):
        a = (rng.standard_normal((50, 7)) * 1e3).astype(dtype)
        np.savetxt(text, a, fmt, ",", header="a,b,c,d,e,f,g")
        run(nacre, "local o = {dtype = arg[3]} "
            "nacre.save(arg[2], nacre.load(arg[1], o)) "
            "nacre.save(arg[1], nacre.load(arg[1], o))",
            text, f"{folder}/x.npy", dtype)
        if not same(np.load(f"{folder}/x.npy"), a):
            sys.exit(f"a text of {dtype} is read otherwise than by NumPy")
        if not same(np.loadtxt(text, dtype, delimiter=","), a):
            sys.exit(f"NumPy reads another text of {dtype} than was written")
        count += 2
    return count


def random_table(rng):
    """Columns of integers and floats, and rows of their texts; "" is nan."""
    rows = int(rng.integers(1, 30))
    columns, texts = [], []
    for _ in range(int(rng.integers(1, 6))):
        if rng.integers(2):
            column = rng.integers(-2**40, 2**53, rows)
            text = [str(v) for v in column]
        else:
            column = rng.standard_normal(rows) * 10.0**rng.integers(-9, 30)
            column[rng.random(rows) < 0.2] = np.nan
            text = ["" if np.isnan(v) else repr(float(v)) for v in column]
        columns.append(column)
        texts.append(text)
    return columns, list(zip(*texts))


def table_text(rng, rows, delimiter, quoted):
    """The rows as a text: comments and quotes, lines of either end."""
    end = str(rng.choice(["\n", "\r\n"]))
    lines = [delimiter.join(f"c{i}" for i in range(len(rows[0])))]
    for row in rows:
        if rng.random() < 0.2:
            lines.append("# a comment, 1" if quoted else "# 1")
        fields = [f'"{t}"' if quoted and rng.random() < 0.3 else t for t in row]
        lines.append(delimiter.join(fields))
    return end.join(["not of the table"] * 2 + lines) + end


COLUMNS = """
local o = {skip = 2, header = true, delimiter = arg[3], missing = 0/0}
local matrix = nacre.load(arg[1], {skip = 2, header = true, missing = 0/0,
                                   delimiter = arg[3], dtype = "float64"})
o.columns = true
local columns, names = nacre.load(arg[1], o)
for i, name in ipairs(names) do
  assert(name == "c" .. i - 1)
  assert(columns[name]:double():allclose(matrix[{{}, i}], 0, 0, true))
  nacre.save(arg[2] .. "/" .. name .. ".npy", columns[name])
end
nacre.save(arg[2] .. "/all.npy", matrix)
"""


def check_tables(nacre, folder, seed):
    """Random tables: as NumPy reads those without quotes, and as pandas, where
    it is, reads all."""
    try:
        import pandas
    except ImportError:
        pandas = None
    rng = np.random.default_rng(seed)
    path = f"{folder}/t.csv"
    for i in range(60):
        columns, rows = random_table(rng)
        if all(row == ("",) for row in rows) or len(columns) == 1:
            continue            # an empty line is no row
        delimiter, quoted = str(rng.choice([",", ";", "\t"])), i % 2 == 1
        with open(path, "w", newline="", encoding="utf-8") as f:
            f.write(table_text(rng, rows, delimiter, quoted))
        run(nacre, COLUMNS, path, folder, delimiter)
        whole = np.load(f"{folder}/all.npy")
        want = np.stack([c.astype("f8") for c in columns], 1)
        assert np.array_equal(whole, want, equal_nan=True), (seed, i)
        if not quoted:
            theirs = np.genfromtxt(path, delimiter=delimiter, skip_header=3)
            theirs = theirs.reshape(want.shape)
            assert np.array_equal(theirs, want, equal_nan=True), (seed, i)
        if pandas:
            theirs = pandas.read_csv(path, sep=delimiter, skiprows=2,
                                     comment="#")
        for k, column in enumerate(columns):
            got = np.load(f"{folder}/c{k}.npy")
            if column.dtype == "i8":
                assert same(got, column), (seed, i, k)
            else:
                assert got.dtype.kind == "f" or np.isnan(column).all() or \
                    np.array_equal(got, column), (seed, i, k)
            if pandas:
                other = theirs[f"c{k}"].to_numpy()
                assert np.array_equal(other.astype("f8"), want[:, k],
                                      equal_nan=True), (seed, i, k)
    return f"60 tables, as by NumPy{' and pandas' if pandas else ''}"


def check_safetensors(nacre, folder):
    try:
        from safetensors.numpy import load_file, save_file
    except ImportError:
        print("safetensors: left out, its library is not installed")
        return
    theirs, ours = f"{folder}/theirs.safetensors", f"{folder}/ours.safetensors"
    given = {f"layer.{i}\n\"é\"": a for i, a in enumerate(arrays())}
    for metadata in None, {"format": "np\t\"\\"}:
        save_file(given, theirs, metadata)
        run(nacre, "local d, m = nacre.load(arg[1]) "
            "nacre.save(arg[2], d, {metadata = m})", theirs, ours)
        with open(theirs, "rb") as a, open(ours, "rb") as b:
            if a.read() != b.read():
                sys.exit("the bytes are others than those of safetensors")
        got = load_file(ours)
        for key, want in given.items():
            if not same(got[key], want):
                sys.exit(f"safetensors reads another {key}")
    print(f"safetensors: {2 * len(given)} tensors, byte for byte")


def main():
    nacre = sys.argv[1] if len(sys.argv) > 1 else "build/nacre"
    with tempfile.TemporaryDirectory() as folder:
        print(f"texts: {check_texts(nacre, folder)}, as by NumPy")
        print(f"tables: {check_tables(nacre, folder, SEED)}")
        check_safetensors(nacre, folder)
        probe = run(nacre, "print(pcall(nacre.save, arg[1], "
                    "{nacre.ones(1)}))", f"{folder}/probe.npz")
        if "libzip, which was not found" in probe:
            print("npz: left out, there is no libzip")
            return
        check_mixed(nacre, folder)
        print(f"npz: {check_npz(nacre, folder)} tensors, read and written as "
              "by NumPy")


if __name__ == "__main__":
    main()
