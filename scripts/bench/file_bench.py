#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that are loaded, beside NumPy, safetensors and PyTorch, as Markdown.

    file_bench.py NACRE [--sizes MB,MB] [--pairs N] [--threads N]
                  [--folder FOLDER] [--processor] [CASE...]

Each sample is a process that loads a file of 1 MB, to be warm, and then one
of MB million bytes, float32, in the page cache: the memory is new on both
sides. The sides alternate; medians, quartiles, and the median of the ratios
of the pairs. "+ sum" adds the sum of the elements, for what maps a file reads
nothing before it is used. --threads: Nacre's; the others read with one.
--processor measures the processor's time, for a machine that others use.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import safetensors.numpy

SMALL = 1                     # MB, of the file that warms up

PYTHON = """
import sys, time
clock = time.{clock}
{imports}
def load(path):
    return {load}
for path in sys.argv[1:]:
    start = clock()
    x = load(path)
    loaded = clock() - start
    total = float(x.sum())
    summed = clock() - start
    del x
print(loaded, summed, total)
"""

LUA = """
local clock = {clock}
local function load(path) return {load} end
for _, path in ipairs(arg) do
  local start = clock()
  local x <close> = load(path)
  local loaded = clock() - start
  local total = x:sum():item()
  last = {{loaded, clock() - start, total}}
end
print(table.concat(last, " "))
"""

NPY, SAFE, PT = ".npy", ".safetensors", ".pt"

# name: extension, Nacre's expression, Python's imports and expression
CASES = {
    "npy, numpy.load":
        (NPY, "nacre.load(path)", "import numpy", "numpy.load(path)"),
    "npy mapped, numpy.load(mmap_mode='c')":
        (NPY, "nacre.load(path, {mmap = true})", "import numpy",
         "numpy.load(path, mmap_mode='c')"),
    "safetensors, safetensors.numpy":
        (SAFE, "nacre.load(path).x",
         "from safetensors.numpy import load_file", "load_file(path)['x']"),
    "safetensors mapped, safetensors.torch":
        (SAFE, "nacre.load(path, {mmap = true}).x",
         "import torch; torch.set_num_threads(1)\n"
         "from safetensors.torch import load_file", "load_file(path)['x']"),
    "pt, torch.load":
        (PT, "nacre.load(path).x",
         "import torch; torch.set_num_threads(1)", "torch.load(path)['x']"),
    "pt mapped, torch.load(mmap=True)":
        (PT, "nacre.load(path, {mmap = true}).x",
         "import torch; torch.set_num_threads(1)",
         "torch.load(path, mmap=True)['x']"),
}


def write_file(folder, megabytes, extension):
    path = folder / f"{megabytes}{extension}"
    x = numpy.random.default_rng(megabytes).random(
        megabytes * 1000000 // 4, numpy.float32)
    if extension == NPY:
        numpy.save(path, x)
    elif extension == SAFE:
        safetensors.numpy.save_file({"x": x}, path)
    else:
        import torch
        torch.save({"x": torch.from_numpy(x)}, path)
    return str(path)


def sample(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded, summed, total = (float(word) for word in done.stdout.split())
    return 1e3 * loaded, 1e3 * summed, total


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3g} ({low:.3g}-{high:.3g})"


def measure(args, folder, name, megabytes):
    extension, lua, imports, load = CASES[name]
    files = [write_file(folder, mb, extension) for mb in (SMALL, megabytes)]
    clocks = (("os.clock", "process_time") if args.processor
              else ("nacre.clock", "perf_counter"))
    chunk = LUA.format(load=lua, clock=clocks[0])
    if args.threads:
        chunk = f"nacre.set_num_threads({args.threads})\n{chunk}"
    script = folder / "load.lua"
    script.write_text(chunk, encoding="ascii")
    python = PYTHON.format(imports=imports, load=load, clock=clocks[1])
    sides = ([args.nacre, str(script), *files],
             [sys.executable, "-c", python, *files])
    samples = ([], [])
    for _ in range(args.pairs):
        for side, command in enumerate(sides):
            samples[side].append(sample(command))
        ours, theirs = samples[0][-1][2], samples[1][-1][2]
        assert abs(ours - theirs) < 1e-3 * abs(theirs), (name, ours, theirs)
    cells = []
    for part in (0, 1):
        ours, theirs = ([s[part] for s in side] for side in samples)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        cells += [quartiles(ours), quartiles(theirs), f"{ratio:.2f}"]
    print(f"| {name} | {megabytes} | " + " | ".join(cells) + " |", flush=True)
    for path in files:
        os.unlink(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nacre")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--folder")
    parser.add_argument("--processor", action="store_true")
    args = parser.parse_intermixed_args()
    args.nacre = os.path.abspath(args.nacre)
    print("| case | MB | Nacre, ms | other, ms | ratio "
          "| + sum: Nacre | other | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for name in CASES:
            if args.case and not any(name.startswith(c) for c in args.case):
                continue
            for megabytes in args.sizes.split(","):
                measure(args, pathlib.Path(folder), name, int(megabytes))


main()
