#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares nacre.load and nacre.save with NumPy.

    tests/numpy/npy_numpy.py build/nacre [damaged files [seed]]

Good files of every dtype, order, byte order and version must be read as NumPy
reads them and be written as NumPy writes them, byte for byte. Damaged files
must be refused or read as NumPy reads them. Exits with 77 (skipped) where
there is no NumPy.
"""
import io
import pathlib
import subprocess
import sys
import tempfile
import warnings

from numpy_or_skip import np

CORPUS = pathlib.Path(__file__).parent / "../files/fuzz/corpus.lua"
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
DTYPES = "?1 u1 i1 i2 i4 i8 f2 f4 f8 c8 c16".replace("?1", "b1").split()
SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0, 2), (1, 5, 1), (2, 3, 4),
          (1, 2, 1, 2, 1, 2, 1, 2), (300, 1001)]

DRIVER = """
local dir, n = arg[1], tonumber(arg[2])
for i = 0, n - 1 do
  local ok, t = pcall(nacre.load, dir .. "/" .. i .. ".npy", {format = "npy"})
  if ok and not nacre.is_tensor(t) then
    print "several arrays"
  elseif ok then
    nacre.save(dir .. "/" .. i .. "-out.npy", t)
    print("ok")
  else
    print((tostring(t):gsub("\\n", " ")))
  end
end
"""


def read_all(nacre, images):
    """What nacre makes of each image: (bytes it saves or None, message)."""
    with tempfile.TemporaryDirectory() as folder:
        for i, image in enumerate(images):
            with open(f"{folder}/{i}.npy", "wb") as f:
                f.write(image)
        with open(f"{folder}/driver.lua", "w") as f:
            f.write(DRIVER)
        done = subprocess.run(
            [nacre, f"{folder}/driver.lua", folder, str(len(images))],
            stdout=subprocess.PIPE, text=True, errors="replace", check=False)
        lines = done.stdout.splitlines()
        if done.returncode != 0 or len(lines) != len(images):
            sys.exit(f"nacre ended with {done.returncode} after "
                     f"{len(lines)} of {len(images)} files")
        results = []
        for i, line in enumerate(lines):
            saved = None
            if line == "ok":
                with open(f"{folder}/{i}-out.npy", "rb") as f:
                    saved = f.read()
            results.append((saved, line))
        return results


def written(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def numpy_reads(image):
    """The array, or None if NumPy refuses."""
    try:
        return np.lib.format.read_array(io.BytesIO(image), allow_pickle=False)
    except Exception:  # whatever it is, it is a refusal
        return None


def expected(array):
    """The file that nacre is to write for it: what is true is 1."""
    if array.dtype == bool:
        array = (np.ascontiguousarray(array).view(np.uint8) != 0
                 ).reshape(array.shape)
    native = array.dtype.newbyteorder("=")
    return written(np.ascontiguousarray(array.astype(native))
                   .reshape(array.shape))


def good_arrays():
    rng = np.random.default_rng(SEED)
    for code in DTYPES:
        for shape in SHAPES:
            size = int(np.prod(shape)) * int(code[1:])
            raw = rng.integers(0, 256, size, dtype=np.uint8)
            if code == "b1":
                raw &= 1
            for order in "<>":
                array = np.frombuffer(raw.tobytes(), order + code)
                array = array.reshape(shape)
                yield array
                yield np.asfortranarray(array)


def check_good(nacre):
    cases = []
    for i, array in enumerate(good_arrays()):
        cases.append((array, written(array, (1 + i % 3, 0))))
    results = read_all(nacre, [image for _, image in cases])
    for (array, _), (saved, message) in zip(cases, results):
        what = f"{array.dtype.str}{array.shape}"
        if saved is None:
            sys.exit(f"{what}: {message}")
        if saved != expected(array):
            sys.exit(f"{what}: differs from NumPy's file")
    return len(cases)


def check_foreign(nacre):
    arrays = [np.zeros(2, code) for code in
              "G g S5 U3 V4 M8[s] m8[s]".split()]
    arrays.append(np.zeros(2, [("a", "f4"), ("b", "i2")]))
    images = [written(a) for a in arrays]
    images.append(written(np.array([{}, 1], object)))
    for (saved, message), image in zip(read_all(nacre, images), images):
        if saved is not None or "descr" not in message:
            sys.exit(f"{image[10:40]!r}: {message}")
    return len(images)


def made(nacre, count):
    """Files of the maker of bad files, of four one whole."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([nacre, CORPUS, f"folder={folder}", "only=npy",
                        f"files={count}", f"seed={SEED}"], check=True,
                       stdout=subprocess.DEVNULL)
        return [pathlib.Path(folder, "npy", str(i + 1)).read_bytes()
                for i in range(count)]


def check_damaged(nacre, count):
    images = made(nacre, count)
    read = strict = 0
    for image, (saved, message) in zip(images, read_all(nacre, images)):
        array = numpy_reads(image)
        if saved is None:
            strict += array is not None
            continue
        read += 1
        if array is None:
            sys.exit(f"NumPy refuses what nacre reads: {image!r}")
        if saved != expected(array):
            sys.exit(f"nacre reads otherwise than NumPy: {image!r}")
    return read, strict


def main():
    nacre = sys.argv[1] if len(sys.argv) > 1 else "build/nacre"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4000
    warnings.simplefilter("ignore")         # of files of Python 2
    print(f"good files: {check_good(nacre)}, read and written as by NumPy")
    print(f"foreign dtypes: {check_foreign(nacre)}, refused")
    read, strict = check_damaged(nacre, count)
    print(f"damaged files: {count}; {read} read as by NumPy, the others "
          f"refused ({strict} of these NumPy would read)")


if __name__ == "__main__":
    main()
