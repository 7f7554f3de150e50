#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares .pt files with PyTorch.

    tests/torch/files_torch.py build/nacre [seed]

What torch.save writes must be read with the same elements, structure and
sharing, in every protocol of pickles; what nacre writes must be opened by
torch.load(weights_only=True). What PyTorch refuses is refused, or a table if
that is wanted. Files of before 1.6 and programs of TorchScript are read. Exits
with 77 (skipped) where there is no PyTorch. .safetensors files go both ways,
too, where their library is.
"""
import argparse
import collections
import enum
import fractions
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch")
    sys.exit(77)

try:
    import numpy
except ImportError:
    numpy = None

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import run  # noqa: E402  pylint: disable=C0413

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32,
          torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64]
DTYPES += [getattr(torch, name) for name in
           "uint16 uint32 uint64 float8_e4m3fn float8_e5m2".split()
           if hasattr(torch, name)]
LEGACY = "_use_new_zipfile_serialization"
AGAIN = "nacre.save(arg[2], nacre.load(arg[1]))"

# The restricted reader of PyTorch 1 knows no floats.
SAFE = {"weights_only": True} if torch.__version__ >= "2" else {}


def elements(t):
    return t.detach().contiguous().flatten().view(torch.uint8)


def same(a, b, place="the value"):
    """Fails unless the values are alike; a tuple may come back as a list, and
    what is None is left out."""
    if isinstance(a, torch.Tensor):
        ok = isinstance(b, torch.Tensor) and a.dtype == b.dtype and \
            a.shape == b.shape and a.requires_grad == b.requires_grad and \
            torch.equal(elements(a), elements(b))
    elif isinstance(a, dict):
        a = {k: v for k, v in a.items() if v is not None}
        if set(a) != set(b):
            sys.exit(f"{place}: keys {list(a)} became {list(b)}")
        for k in a:
            same(a[k], b[k], f"{place}[{k!r}]")
        return
    elif isinstance(a, (list, tuple)) and len(a) > 0:
        if len(a) != len(b):
            sys.exit(f"{place}: {a} became {b}")
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{place}[{i}]")
        return
    elif isinstance(a, (list, tuple)):
        ok = len(b) == 0
    else:
        ok = type(a) is type(b) and a == b
    if not ok:
        sys.exit(f"{place}: {a} became {b}")


def compare(nacre, folder, value, want=None, **options):
    """Saves the value, lets nacre read it and save it, and compares; before
    that in the format of before 1.6."""
    one, two = f"{folder}/one.pt", f"{folder}/two.pt"
    if LEGACY not in options:
        try:
            compare(nacre, folder, value, want, **options, **{LEGACY: False})
        except KeyError as e:           # PyTorch's: a dtype that is new
            print(f"the format of before 1.6 is left out: {e}")
    torch.save(value, one, **options)
    run(nacre, AGAIN, one, two)
    got = torch.load(two, **SAFE)
    same(value if want is None else want, got)
    if "mmap" in inspect.signature(torch.load).parameters:
        mapped = torch.load(two, mmap=True, **SAFE)
        same(value if want is None else want, mapped)
    return got


def check_tensors(nacre, folder):
    torch.manual_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    values = {}
    for dtype in DTYPES:
        for shape in [(), (0,), (3,), (2, 3), (2, 0, 4), (100, 70)]:
            values[f"{dtype} {shape}"] = (torch.randn(shape) * 9).to(dtype)
    x = torch.arange(24.).reshape(2, 3, 4)
    values |= {"t": x.transpose(0, 2), "part": x[:, 1:], "step": x[..., ::2],
               "expanded": torch.ones(3, 1).expand(3, 5),
               "leaf": torch.ones(2, requires_grad=True)}
    compare(nacre, folder, values)
    for value in values.values():
        if isinstance(value, torch.Tensor) and value.numel() < 20:
            compare(nacre, folder, value)


def check_structure(nacre, folder):
    value = {
        "epoch": 3, "loss": 0.25, "name": "é\n", "bytes": b"\xff\x00a",
        "big": 1 << 60, "low": -(1 << 63), "yes": True, "no": False,
        "none": None, "list": [1, 2.5, "x", [torch.ones(2)]],
        "tuple": (1, (2, 3)), "empty": {}, 7: "seven", 1.5: "f",
        "ordered": collections.OrderedDict(b=1, a=2),
        "size": torch.Size([2, 3]), "long": "x" * 1000,
    }
    for protocol in (2, 3, 4):
        compare(nacre, folder, value, pickle_protocol=protocol)
    names = {"dtype": torch.bfloat16, "device": torch.device("cuda:1")}
    compare(nacre, folder, names, {"dtype": "bfloat16", "device": "cuda:1"})
    if hasattr(torch, "uint16"):
        check_unsigned(nacre, folder)


def check_unsigned(nacre, folder):
    compare(nacre, folder, {
        "a": torch.tensor([1, 65535], dtype=torch.uint16),
        "b": torch.tensor([2**32 - 1], dtype=torch.uint32),
        "c": torch.tensor([2**63 - 1, 2**64 - 1], dtype=torch.uint64)})


def check_training(nacre, folder):
    """A network and an optimizer, as programs keep them."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5),
                              torch.nn.Linear(5, 2))
    net[2].weight.data[0] = 0.5
    step = torch.optim.AdamW(net.parameters())
    net(torch.randn(3, 4)).sum().backward()
    step.step()
    compare(nacre, folder, {"net": net.state_dict(),
                            "optimizer": step.state_dict(), "epoch": 1})
    got = compare(nacre, folder, net.state_dict())
    net.load_state_dict(got)
    # tensors with attributes of their own
    p = torch.nn.Parameter(torch.ones(2))
    p.note = "x"
    compare(nacre, folder, {"p": p})


def check_sharing(nacre, folder):
    x = torch.arange(10.)
    got = compare(nacre, folder, {"a": x[:6].view(2, 3), "b": x[4:], "c": x})
    got["c"][4] = 77
    if got["a"][1, 1] != 77 or got["b"][0] != 77:
        sys.exit("a shared storage is shared no more")


def check_refused(nacre, folder):
    path = f"{folder}/bad.pt"

    class Evil:
        def __reduce__(self):
            return os.system, ("true",)

    show = "_, e = pcall(nacre.load, arg[1]) print(e)"
    for value, why in [
            (Evil(), 'refuses "posix.system"'),
            (torch.nn.Linear(1, 1), 'refuses "torch.nn.modules.linear.Linear"'),
            (torch.ones(2, 2).to_sparse(), "_rebuild_sparse_tensor")]:
        torch.save(value, path)
        shown = run(nacre, show, path)
        if why not in shown:
            sys.exit(f"{value} is not refused: {shown}")


class Net(torch.nn.Module):
    """For TorchScript."""
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.register_buffer("steps", torch.arange(4))

    def forward(self, x):
        return self.fc(x) + torch.tensor([5.0, 6.0])


def check_programs(nacre, folder):
    """The tensors of a program have the names of its state_dict."""
    path, two = f"{folder}/a_program", f"{folder}/two.pt"
    net = Net()
    x = torch.ones(1, 3)
    for program in torch.jit.script(net), torch.jit.trace(net, x):
        torch.jit.save(program, path)
        run(nacre, AGAIN, path, two)
        got = torch.load(two, **SAFE)
        want = dict(net.state_dict(keep_vars=True))
        if len(got) > len(want):
            want["constants.1"] = torch.tensor([5.0, 6.0])
        same(want, got)


def check_objects(nacre, folder):
    """Objects of classes as tables."""
    net = Net()
    options = argparse.Namespace(lr=0.5, layers=[1, 2])
    compare(nacre, folder, {"args": options, "path": pathlib.Path("/a/b")},
            {"args": vars(options), "path": "/a/b"})
    compare(nacre, folder, {"a": {3}, "d": collections.deque([1, 2]),
                            "c": collections.Counter("aab"),
                            "f": frozenset(["x"])},
            {"a": [3], "d": [1, 2], "c": {"a": 2, "b": 1}, "f": ["x"]})
    if numpy:
        compare(nacre, folder,
                {"i": numpy.int64(-3), "f": numpy.float32(0.5),
                 "b": numpy.bool_(True), "u": numpy.uint8(200)},
                {"i": -3, "f": 0.5, "b": True, "u": 200})
        a = numpy.arange(-3, 3.0).reshape(2, 3)
        given = {"a": a, "t": a.T, "big": a.astype(">f4"),
                 "none": numpy.zeros((0, 3)), "one": numpy.array(7),
                 "bytes": bytearray(b"a\xff")}
        want = {"a": torch.tensor(a), "t": torch.tensor(a.T),
                "big": torch.tensor(a).float(),
                "none": torch.zeros(0, 3).double(), "one": torch.tensor(7),
                "bytes": b"a\xff"}
        if hasattr(torch, "uint16"):
            state = numpy.random.RandomState(1).get_state()[:2]
            given |= {"u": numpy.array([1, 65535], "u2"), "state": state}
            want |= {"u": torch.tensor([1, 65535], dtype=torch.uint16),
                     "state": ("MT19937", torch.tensor(state[1]))}
        for protocol in 2, 4:
            compare(nacre, folder, given, want, pickle_protocol=protocol)
    path = f"{folder}/objects.pt"
    script = """
local c = nacre.load(arg[1], {unknown = "table"})
print(c.net.__class, c.net.training, c.net._modules.fc._parameters.weight ==
      c.weight, c.args.__class, c.half.__class, c.half[1], c.half[2])
"""
    for new in True, False:
        torch.save({"net": net, "weight": net.fc.weight, "args": options,
                    "half": fractions.Fraction(1, 2)}, path, **{LEGACY: new})
        want = ["__main__.Net", "true", "true", "argparse.Namespace",
                "fractions.Fraction"]
        shown = run(nacre, script, path).split()
        if shown[:5] != want:
            sys.exit(f"objects as tables: {shown}")


def check_beside(nacre, folder):
    """What no value of ours is does not hide the tensor beside it."""
    path = f"{folder}/beside.pt"
    others = [
        argparse.Namespace(a=1), torch.nn.Linear(2, 1), 2**63, -2**200,
        torch.ones(2, dtype=torch.complex64), torch.ones(2, 2).to_sparse(),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        torch.ones((1,) * 9), collections.Counter("aab"), {(1, 2): 3},
        collections.defaultdict(list, a=[1]), 1j, {None: 1}, pathlib.Path("x"),
        torch.ones(2).storage(), torch.float32, torch.nn.ReLU,
        fractions.Fraction(1, 3), enum.Enum("E", "A").A.__class__]
    if hasattr(torch, "float8_e4m3fnuz"):
        others.append(torch.ones(2).to(torch.float8_e4m3fnuz))
    if numpy:
        others += [numpy.float64(1), numpy.ones(2), {"rng":
                   numpy.random.default_rng(1).bit_generator.state}]
    show = "print(nacre.load(arg[1], {names={'t'}}).t:sum():item())"
    for value in others:
        for protocol in 2, 4:
            try:
                torch.save({"a": [value], "t": torch.ones(3)}, path,
                           pickle_protocol=protocol)
            except (AttributeError, TypeError, pickle.PicklingError):
                continue
            shown = run(nacre, show, path)
            if shown.strip() != "3.0":
                sys.exit(f"beside {value!r}: {shown}")
            done = subprocess.run([nacre, "--ls", path], capture_output=True)
            if done.returncode or b"t " not in done.stdout:
                sys.exit(f"--ls with {value!r}: {done.stdout} {done.stderr}")


def random_bits(dtype, shape):
    """Elements of any bits, nan with a payload and denormal numbers too."""
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    size = torch.empty(0, dtype=dtype).element_size()
    n = torch.Size(shape).numel()
    return torch.randint(0, 256, (n * size,), dtype=torch.uint8) \
        .view(dtype).reshape(shape)


def check_safetensors(nacre, folder):
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        print("safetensors: left out, its library is not installed")
        return
    one, two = f"{folder}/a.safetensors", f"{folder}/b.safetensors"
    given = {f"{dtype} {shape}": random_bits(dtype, shape)
             for dtype in DTYPES
             for shape in [(), (0,), (3, 0), (5,), (40, 90)]}
    save_file(given, one)
    for load in "nacre.load(arg[1])", "nacre.load(arg[1], {mmap = true})":
        run(nacre, f"nacre.save(arg[2], {load})", one, two)
        same(given, load_file(two))


def main():
    nacre = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for check in (check_tensors, check_structure, check_training,
                      check_sharing, check_refused, check_programs,
                      check_objects, check_beside,
                      check_safetensors):
            check(nacre, folder)
    print("files_torch: ok")


if __name__ == "__main__":
    main()
