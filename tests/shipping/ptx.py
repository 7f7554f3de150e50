#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Looks at the kernels inside a plug-in, which holds them as PTX and as
machine code:

    ptx.py PLUGIN [--table]
    ptx.py --self-test NVCC     sees what it must in kernels that are wrong

* No kernel computes in float64, itself or in what it calls, but those named so
  (f64, c128) and templates whose first type is double: a stray constant or parameter in double makes a kernel many times
  slower and no test fails. Such numbers may be moved and converted, since
  operands may have that type. The way in which CUDA itself reduces large
  arguments of sin, cos and tan is known by its one constant.
* The registers of a block of the largest size that a kernel may be launched
  with are there.

Exit status 77: there is nothing to look at.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

FATBIN = struct.pack("<I", 0xBA55ED50)
PTX, CUBIN = 1, 2
ZSTD = 0x8000
REGISTERS = 65536
MAX_THREADS = 1024            # of a block, where a kernel says nothing
HAS_BYTES, MAX_BLOCK, REGCOUNT = 4, 0x05, 0x2F
ARITHMETIC = re.compile(
    r"^\s*(?:@!?%p\d+\s+)?((?!mov|ld|st|cvt|shfl|selp)[a-z0-9]+"
    r"(?:\.[a-z0-9_:]+)*\.f64)\b(.*)", re.M)
TRIGONOMETRY = "0d3BF921FB54442D19"
# Kernels that are in double for every type: sequences (start + i*step), sums of
# squared deviations, which the range of float does not hold, and conversions.
DOUBLE = ["f64", "c128", "fill9RangePlan", "6VarDim", "8RowStats", "9norm_rows",
          "12storage_cast"]
DOUBLE_TEMPLATE = re.compile(r"Id[a-z0-9_]*[LE]")  # mangled: <double, ...>


def unpacked(data):
    if not shutil.which("zstd"):
        print("the PTX is compressed and there is no zstd: left out")
        sys.exit(77)
    return subprocess.run(["zstd", "-dc"], input=data, check=True,
                          capture_output=True).stdout


def entries(data):
    """Each piece of code: what it is, for which architecture, the bytes."""
    at = data.find(FATBIN)
    while at >= 0:
        _, _, header, size = struct.unpack_from("<IHHQ", data, at)
        p, end = at + header, at + header + size
        while p < end:
            kind, _, head, size = struct.unpack_from("<HHIQ", data, p)
            packed, = struct.unpack_from("<I", data, p + 16)
            arch, = struct.unpack_from("<I", data, p + 28)
            flags, = struct.unpack_from("<Q", data, p + 40)
            body = data[p + head:p + head + size]
            if packed and flags & ZSTD:
                body = unpacked(body[:packed])
            elif packed:
                print("a compression that is not known here: left out")
                sys.exit(77)
            yield kind, arch, body
            p += head + size
        at = data.find(FATBIN, end)


def kernels_of(ptx):
    """What it is ("entry" or "func"), name and text of each function."""
    text = ptx.rstrip(b"\0").decode()
    parts = re.split(r"^(?:\.visible |\.weak |\.extern )*\.(entry|func)\b",
                     text, flags=re.M)
    for kind, part in zip(parts[1::2], parts[2::2]):
        name = re.search(r"(?:\(.*?\)\s*)?([\w$]+)", part, re.S).group(1)
        yield kind, name, part


def doubles(text):
    """The float64 arithmetic in a text."""
    return [m.group(0).strip() for m in ARITHMETIC.finditer(text)
            if TRIGONOMETRY not in m.group(2)]


def calls(text, names):
    """Those of some functions that a text calls."""
    return sorted(names & set(re.findall(r"[\w$]+", text))) \
        if "call" in text else []


def functions_in_double(functions):
    """Those that compute in float64, or call one that does."""
    found = {name for name, text in functions if doubles(text)}
    more = found
    while more:
        more = {name for name, text in functions if calls(text, more)} - found
        found |= more
    return found


def may_be_double(kernel):
    return DOUBLE_TEMPLATE.search(kernel) or \
        any(part in kernel for part in DOUBLE)


def wrong_doubles(ptx):
    """A line for each thing that is wrong in a piece of PTX."""
    all_of = list(kernels_of(ptx))
    callees = functions_in_double([(name, text) for kind, name, text in all_of
                                   if kind == "func"])
    return [f"{name}: computes in float64: {line}" for kind, name, text in
            all_of if kind == "entry" and not may_be_double(name)
            for line in (doubles(text) +
                         [f"it calls {f}" for f in calls(text, callees)])[:2]]


def sections(elf):
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    head = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size)
            for i in range(count)]
    base = head[names][4]
    for h in head:
        name = elf[base + h[0]:elf.index(b"\0", base + h[0])].decode()
        yield name, elf[h[4]:h[4] + h[5]]


def attributes(info):
    """Number and bytes of each attribute that has bytes."""
    p = 0
    while p + 4 <= len(info):
        form, number, size = struct.unpack_from("<BBH", info, p)
        p += 4
        if form == HAS_BYTES:
            yield number, info[p:p + size]
            p += size


def resources(cubin):
    """Name, registers and largest block of each kernel."""
    part = dict(sections(cubin))
    symbols, strings = part[".symtab"], part[".strtab"]
    for number, value in attributes(part[".nv.info"]):
        if number != REGCOUNT:
            continue
        symbol, registers = struct.unpack("<II", value)
        at, = struct.unpack_from("<I", symbols, 24 * symbol)
        name = strings[at:strings.index(b"\0", at)].decode()
        own = dict(attributes(part.get(".nv.info." + name, b"")))
        x, y, z = struct.unpack("<III", own[MAX_BLOCK]) \
            if MAX_BLOCK in own else (MAX_THREADS, 1, 1)
        yield name, registers, x * y * z


def main(path, table):
    with open(path, "rb") as f:
        data = f.read()
    seen, used, wrong = set(), [], []
    for kind, arch, body in entries(data):
        if kind == PTX:
            seen.update(name for kind, name, _ in kernels_of(body)
                        if kind == "entry")
            wrong += wrong_doubles(body)
        elif kind == CUBIN:
            for name, registers, threads in resources(body):
                used.append((registers, threads, arch, name))
                room = (registers + 7) // 8 * 8 * threads
                if room > REGISTERS:
                    wrong.append(f"{name}: {registers} registers for "
                                 f"{threads} threads (sm_{arch})")
    if not seen or not used:
        print(f"{path}: no kernels" if not used else f"{path}: no PTX")
        return 77 if not used else 1
    if table:
        for registers, threads, arch, name in sorted(used):
            print(f"{registers:4} {threads:5} sm_{arch} {name}")
    for line in wrong:
        print(line)
    print(f"{len(seen)} kernels in PTX, {len(used)} in machine code, at most "
          f"{max(used)[0]} registers; {len(wrong)} wrong")
    return 1 if wrong else 0


KERNELS = """
__global__ void sum_f64(double *p) { p[0] += 1; }
__global__ void sine_f32(float *p) { p[0] = sinf(p[0]); }
__global__ void cast_f32(float *p, double *q) { p[0] = (float)q[0]; }
__global__ void wrong_f32(float *p) { p[0] = p[0] + 0.1; }
__global__ void worse_f32(float *p) { p[0] = p[0] > 0.1 ? 1 : 2; }
__global__ void calls_f32(float *p) { p[0] = (float)pow((double)p[0], p[1]); }
__device__ __noinline__ double half(double x) { return x / 2; }
__device__ __noinline__ float quarter(float x) { return half(x) / 2; }
__global__ void hides_f32(float *p) { p[0] = quarter(p[0]); }
__global__ void __launch_bounds__(1024) full_f32(float *p) { p[0] = 1; }
template <class T> __global__ void twice(T *p) { p[0] += p[0]; }
template __global__ void twice<double>(double *p);
template <class T, class U> __global__ void mixes_f32(T *p) {
  p[0] = (T)((U)p[0] * (U)0.1 + 1);
}
template __global__ void mixes_f32<float, double>(float *p);
"""


def self_test(nvcc):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "k.cu")
        made = os.path.join(folder, "k.o")
        with open(source, "w", encoding="utf-8") as f:
            f.write(KERNELS)
        subprocess.run([nvcc, "-gencode",
                        "arch=compute_90,code=[sm_90,compute_90]", "-c",
                        source, "-o", made], check=True)
        with open(made, "rb") as f:
            pieces = list(entries(f.read()))
    wrong = {re.search(r"[a-z]+_f\d\d", line).group(0)
             for kind, _, body in pieces if kind == PTX
             for line in wrong_doubles(body)}
    assert wrong == {"wrong_f32", "worse_f32", "calls_f32", "hides_f32",
                     "mixes_f32"}, wrong
    found = [use for kind, _, body in pieces if kind == CUBIN
             for use in resources(body)]
    assert len(found) == 10, found
    assert all(0 < registers < 64 and threads == 1024
               for _, registers, threads in found), found
    print("ok")


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1], "--table" in sys.argv))
