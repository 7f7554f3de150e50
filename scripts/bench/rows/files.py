# SPDX-License-Identifier: MIT
"""Loads of n bytes of float32, beside NumPy, safetensors and PyTorch.

Each turn is a process that has loaded a small file, to be warm, and then loads
one of n bytes that is in the page cache: the memory is new on both sides.
"+ sum" adds the elements up, for what maps a file reads nothing before it is
used. With several threads Nacre's loads use them; the others read with one.
"""
import importlib

from suite_rows import Group

SMALL = 10**6
row = Group("files", fresh="turn", turns=11, clock="wall", torch="",
            tolerance=1e-3, shown=("quartiles",))


def write(path, count, extension):
    numpy = importlib.import_module("numpy")
    x = numpy.random.default_rng(count).random(count // 4, numpy.float32)
    if extension == "npy":
        numpy.save(path, x)
    elif extension == "safetensors":
        importlib.import_module("safetensors.numpy").save_file({"x": x}, path)
    else:
        torch = importlib.import_module("torch")
        torch.save({"x": torch.from_numpy(x)}, path)


def files(folder, n, extension):
    """Both files of a row; those of the row before are deleted."""
    paths = [folder / f"{count}.{extension}" for count in (SMALL, n)]
    for path in folder.glob("[0-9]*.*"):
        if path not in paths:
            path.unlink()
    for path, count in zip(paths, (SMALL, n)):
        if not path.exists():
            write(path, count, extension)


def loads(name, extension, ours, theirs, imports="", **more):
    """The load, and the load with the sum."""
    warm = "load(path(1000000))"
    start = (f'function path(n) return folder .. "/" .. math.tointeger(n) .. '
             f'".{extension}" end\nfunction load(path) return {ours} end\n'
             f"{warm}:sum()",
             f"def path(n): return f'{{folder}}/{{n}}.{extension}'\n"
             f"{imports}\ndef load(path): return {theirs}\n{warm}.sum()")
    side, = more
    for title, call in ((name, ""), (name + " + sum", "sum")):
        row(title, (10**7, 10**8, 10**9), "",
            "load(path(n))" + (":sum()" if call else ""), setup=start,
            files=lambda folder, n: files(folder, n, extension),
            **{side: "load(path(n))" + (".sum()" if call else "")})


loads("npy, numpy.load", "npy", "nacre.load(path)", "np.load(path)", numpy=1)
loads("npy mapped, numpy.load(mmap_mode='c')", "npy",
      "nacre.load(path, {mmap = true})", "np.load(path, mmap_mode='c')",
      numpy=1)
loads("safetensors, safetensors.numpy", "safetensors", "nacre.load(path).x",
      "load_file(path)['x']", "from safetensors.numpy import load_file",
      numpy=1)
loads("safetensors mapped, safetensors.torch", "safetensors",
      "nacre.load(path, {mmap = true}).x", "load_file(path)['x']",
      "from safetensors.torch import load_file", torch=1)
loads("pt, torch.load", "pt", "nacre.load(path).x", "torch.load(path)['x']",
      torch=1)
loads("pt mapped, torch.load(mmap=True)", "pt",
      "nacre.load(path, {mmap = true}).x", "torch.load(path, mmap=True)['x']",
      torch=1)
