# SPDX-License-Identifier: MIT
"""The texts of fused kernels compile by NVRTC, which needs no GPU, for sm_90.

nvrtc_texts.py NACRE LIBNVRTC [dtype ...]

The program runs tests/cuda/cuda_fused.lua on the emulated device with the real
NVRTC: what that makes cannot run there, but is kept in the cache on disk. The
texts, which are in the files of the cache, are compiled once more for their
PTX: it calls nothing but the larger special functions and parts of NVIDIA's
own, and computes in double only if a tensor is of it. Sines of large numbers
are NVIDIA's, which multiply once in double.
"""
import ctypes
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OWN = os.path.join(ROOT, "cuda", "fusion", "headers")
STANDS_FOR = {"nvrtc_device.h": "cuda/device.h",
              "nvrtc_tensor.h": "core/tensor.h"}
HEAD = struct.Struct("<16sQQQ")
CUDA_MACHINE = 190
SINES = re.compile(r"\b(?:sin|cos|tan|sinc)_\w*(?:f32|\()")


def headers():
    """By the names by which a text includes them."""
    found = {}
    for name in os.listdir(OWN):
        with open(os.path.join(OWN, name), encoding="ascii") as f:
            found[STANDS_FOR.get(name, name)] = f.read()
    for name in ("cuda/fusion/fused_kernel.h", "cuda/fusion/fused_lines.h",
                 "cuda/fusion/fused_args.h", "core/base/philox.h",
                 "cuda/element.h", "cuda/offsets.h", "core/dtype.h",
                 "core/ops.def", "core/pointwise/scalar.h",
                 "core/pointwise/special.inc",
                 "core/pointwise/bessel.inc",
                 "core/pointwise/incomplete_gamma.inc",
                 "core/pointwise/op_functions.inc",
                 "core/pointwise/op_classes.h"):
        with open(os.path.join(ROOT, name), encoding="ascii") as f:
            found[name] = f.read()
    return found


def ptx_of(nvrtc, text, names, contents):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    n = len(names)
    array = ctypes.c_char_p * n
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"fused.cu",
                             n, array(*contents), array(*names))
    options = (ctypes.c_char_p * 3)(b"--gpu-architecture=compute_90",
                                    b"--std=c++17", b"-default-device")
    status = nvrtc.nvrtcCompileProgram(program, 3, options)
    if status:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(text + "\n" + log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


def wrong(text, ptx):
    """What is wrong with the PTX of a text, or None."""
    ptx = re.sub(r"//.*", "", ptx)      # "// callseq 3, 0"
    for target in re.findall(r"\bcall(?:\.\w+)*\s*(?:\([^)]*\),)?\s*(\w+)",
                             ptx):
        if "nc_" not in target and not target.startswith("__internal_"):
            return "calls " + target
    if "double" not in text and "f64" not in text and not SINES.search(text):
        body = re.sub(r"\.func.*?\n}", "", ptx, flags=re.S)
        if ".f64" in body:
            return "computes in double"
    return None


def cached(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        magic, key, image, _ = HEAD.unpack_from(data)
        assert magic == b"nacre kernel 1\n\0", magic
        assert len(data) == HEAD.size + key + image
        yield (data[HEAD.size:HEAD.size + key].decode().split("\n", 1),
               data[HEAD.size + key:])


def main(nacre, library, *dtypes):
    if not os.path.exists(library):
        print("no", library)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run(
            [nacre, os.path.join(HERE, "cuda_fused.lua"), *dtypes], check=True,
            env={**os.environ, "NACRE_CUDA": "emulated", "NACRE_FUSE": "wait",
                 "NACRE_NVRTC": library, "XDG_CACHE_HOME": cache})
        found = list(cached(os.path.join(cache, "nacre", "kernels")))
    own = headers()
    names = [n.encode() for n in own]
    contents = [c.encode() for c in own.values()]
    nvrtc = ctypes.CDLL(library)
    bad = 0
    for (compiler, text), image in found:
        assert compiler.startswith("sm_90 nvrtc 1"), compiler
        machine, = struct.unpack_from("<H", image, 18)
        assert image[:4] == b"\x7fELF" and machine == CUDA_MACHINE
        why = wrong(text, ptx_of(nvrtc, text, names, contents))
        if why:
            bad += 1
            print(why, text, sep="\n")
    print(len(found), "texts,", bad, "wrong")
    sys.exit(bad > 0 or not found)


if __name__ == "__main__":
    main(*sys.argv[1:])
