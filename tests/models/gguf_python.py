#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares GGUF files with the package gguf: what it writes is read with the
same elements, those of quantized types as it converts them, and metadata.

    tests/models/gguf_python.py build/nacre
"""
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1

# Of types that the package does not write: where a block has its factors.
FACTORS = {T.Q2_K: (80, 82), T.Q3_K: (108,), T.Q4_K: (0, 2), T.Q5_K: (0, 2),
           T.Q6_K: (208,)}

READ = """
local t, meta = nacre.load(arg[1])
local mapped = nacre.load(arg[1], {mmap = true})
local flat = {}
for name, v in pairs(t) do
  assert(mapped[name]:tobytes() == v:tobytes(), name)
  flat[name] = v.dtype == "bfloat16" and v:float() or v
end
local one = nacre.load(arg[1], {names = {"Q4_K"}})
assert(one.Q4_K:tobytes() == t.Q4_K:tobytes() and not one.f32)
nacre.save(arg[2], flat)
nacre.json.save(arg[3], meta)
"""


def random_blocks(rng, kind, rows):
    """Bytes of blocks in which the factors are numbers of a usual size."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    raw = rng.integers(0, 256, (rows, 2 * size), dtype=np.uint8)
    block = raw.reshape(2 * rows, size)
    for at in FACTORS[kind]:
        factor = rng.standard_normal((2 * rows, 1)).astype(np.float16)
        block[:, at:at + 2] = factor.view(np.uint8)
    return raw


def add_metadata(writer):
    writer.add_uint32("llama.block_count", 3)
    writer.add_float32("llama.epsilon", 1e-5)
    writer.add_string("general.name", "h\u00e9llo\n")
    writer.add_bool("flag", True)
    writer.add_int64("below", -(1 << 62))
    writer.add_float64("third", 1 / 3)
    writer.add_array("texts", ["a", "\"b\\", "\u00e9\x01", ""])
    writer.add_array("integers", [1, -2, 3])
    writer.add_array("floats", [0.5, -1.25])


def check_metadata(meta):
    assert meta["llama.block_count"] == "3" and meta["flag"] == "true"
    assert np.float32(meta["llama.epsilon"]) == np.float32(1e-5)
    assert meta["general.name"] == "h\u00e9llo\n"
    assert meta["below"] == str(-(1 << 62))
    assert float(meta["third"]) == 1 / 3
    assert json.loads(meta["texts"]) == ["a", "\"b\\", "\u00e9\x01", ""]
    assert json.loads(meta["integers"]) == [1, -2, 3]
    assert json.loads(meta["floats"]) == [0.5, -1.25]


def write(path, rng):
    """Writes a file; its tensors."""
    writer, want = gguf.GGUFWriter(path, "llama"), {}
    add_metadata(writer)
    x = rng.standard_normal((6, 512)).astype(np.float32)
    for name in ("f32", "f16", "f64", "i8", "i16", "i32", "i64"):
        want[name] = (x * 100).astype(name.replace("f", "float")
                                      .replace("i", "int"))
        writer.add_tensor(name, want[name])
    for kind in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.BF16, *FACTORS):
        raw = random_blocks(rng, kind, 6) if kind in FACTORS else \
            gguf.quants.quantize(x, kind)
        writer.add_tensor(kind.name, raw, raw_dtype=kind)
        want[kind.name] = gguf.quants.dequantize(raw, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return want


def main():
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        path, flat, meta, script = (os.path.join(folder, name) for name in (
            "x.gguf", "x.npz", "meta.json", "read.lua"))
        want = write(path, rng)
        with open(script, "w", encoding="utf-8") as f:
            f.write(READ)
        subprocess.run([sys.argv[1], script, path, flat, meta], check=True)
        got = np.load(flat)
        assert set(got) == set(want), set(got) ^ set(want)
        for name, x in want.items():
            assert got[name].dtype == x.dtype and got[name].shape == x.shape, \
                name
            assert np.array_equal(got[name], x), name
        with open(meta, encoding="utf-8") as f:
            check_metadata(json.load(f))
    print(f"gguf: {len(want)} tensors")


main()
