#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the tensors of ONNX models with the package onnx, which writes them
as bytes, as numbers, and into a file beside the model.

    tests/models/onnx_python.py build/nacre
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1

READ = """
local names = {}
local want = nacre.load(arg[2])
for name in pairs(want) do names[#names + 1] = name end
for _, o in ipairs {{names = names}, {names = names, mmap = true}} do
  local t, meta = nacre.load(arg[1], o)
  assert(meta.k == "v \\u{e9}" and meta.producer_name == "me")
  for name, v in pairs(want) do
    assert(t[name].dtype == v.dtype, name .. " is " .. t[name].dtype)
    assert(t[name]:tobytes() == v:tobytes(), name)
  end
end
local half = nacre.load(arg[1], {names = {"half"}}).half
assert(half.dtype == "bfloat16" and half:float() == nacre.tensor{1.5, -2, 3.25})
local e4m3 = nacre.load(arg[1], {names = {"e4m3"}}).e4m3
assert(e4m3.dtype == "float8_e4m3fn")
for name, text in pairs {text = "string is not supported"} do
  local ok, e = pcall(nacre.load, arg[1], {names = {name}})
  assert(not ok and tostring(e):find(text), e)
end
"""

def tensors(rng):
    x = rng.standard_normal((3, 4)) * 50
    for code in "f4 f8 f2 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 c16".split():
        if code == "b1":
            yield code, x > 0
        elif code[0] == "c":
            yield code, (x + 1j * x[::-1]).astype(code)
        else:
            yield code, (abs(x) if code[0] == "u" else x).astype(code)
    yield "scalar", np.array(2.5, "f4")
    yield "none", np.zeros((0, 3), "f4")
    yield "large", rng.standard_normal((100, 100)).astype("f4")


def write(path, rng):
    """Writes a model, also with a file beside it; its tensors."""
    want, list_ = {}, []
    for name, x in tensors(rng):
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        list_ += [numpy_helper.from_array(x, name),
                  helper.make_tensor(name + " typed", kind, x.shape,
                                     x.flatten().tolist())]
        want[name] = want[name + " typed"] = x
    list_ += [helper.make_tensor("half", TensorProto.BFLOAT16, (3,),
                                 [1.5, -2.0, 3.25]),
              helper.make_tensor("e4m3", TensorProto.FLOAT8E4M3FN, (2,), [1, 2]),
              helper.make_tensor("text", TensorProto.STRING, (1,), [b"a"])]
    graph = helper.make_graph([], "g", [], [], initializer=list_)
    model = helper.make_model(graph, producer_name="me")
    helper.set_model_props(model, {"k": "v \u00e9"})
    onnx.save(model, path + ".onnx")
    onnx.save(model, path + "2.onnx", save_as_external_data=True,
              location="x.data", size_threshold=0)
    return want


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, script = os.path.join(folder, "x"), os.path.join(folder, "r.lua")
        want = write(path, np.random.default_rng(SEED))
        np.savez(path + ".npz", **want)
        with open(script, "w", encoding="utf-8") as f:
            f.write(READ)
        for model in (path + ".onnx", path + "2.onnx"):
            subprocess.run([sys.argv[1], script, model, path + ".npz"],
                           check=True)
    print(f"onnx: {len(want)} tensors")


main()
