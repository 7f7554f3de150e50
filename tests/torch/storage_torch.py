# SPDX-License-Identifier: MIT
"""Storage dtypes (float8_e4m3fn, float8_e5m2, uint16, uint32, uint64) against
PyTorch: conversions of all codes and of every other dtype, at ties, at the
limits, of nan and infinities; equality, views, moves, finfo and iinfo. Exits
with 77 where there is no PyTorch that has these dtypes.
Run by: storage_torch.py NACRE [--device cuda:0]"""
import argparse
import os
import sys
import tempfile

try:
    import torch
    FLOATS = [torch.float8_e4m3fn, torch.float8_e5m2]
    UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
except (ImportError, AttributeError):
    print("no PyTorch with float8 and uint16: skipped")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import run  # pylint: disable=wrong-import-position

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REALS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
CONVERT = """
local device = arg[2]
for line in io.lines(arg[1] .. "/cases") do
  local i, from, to = line:match "^(%d+) (%S+) (%S+)$"
  local x = nacre.fromfile(arg[1] .. "/in" .. i, from):to(device)
  local y = x:to(to)
  assert(y.dtype == to and y.device == x.device)
  if x:numel() > 1 then       -- strided on both sides
    local wide = nacre.zeros(x:numel(), 2, {dtype = from, device = device})
    local into = nacre.zeros(x:numel(), 3, {dtype = to, device = device})
    wide:select(2, 2):copy_(x)
    into:select(2, 2):copy_(wide:select(2, 2))
    local got = into:select(2, 2)
    assert(got:eq(y):logical_or(got:ne(got):logical_and(y:ne(y))):all():item(),
           line)
  end
  y:tofile(arg[1] .. "/out" .. i)
end
"""


def name(dtype):
    return str(dtype).replace("torch.", "")


def raw(t):
    """The bytes; those of bool are numbers of uint8."""
    return t.contiguous().view(torch.uint8)


def codes(dtype, bits):
    kind = torch.uint8 if bits == 8 else torch.int16
    return torch.arange(1 << bits).to(kind).view(dtype)


def numbers(dtype):
    """float32 numbers around each number of the dtype and each tie."""
    x = codes(dtype, 8).float()
    x = x[x.isfinite()].sort().values
    ties = (x[1:].double() + x[:-1].double()) / 2
    all_ = torch.cat([x, ties.float(), x * 1.5, torch.tensor(
        [0.0, -0.0, 1e-30, -1e-30, 1e-45, 448., 449, 463.99, 464, 464.01, 480,
         57344., 61439, 61440, 61441, 65504, 65536, 1e6, 3e38, torch.inf,
         torch.nan])])
    up = torch.nextafter(all_, torch.tensor(torch.inf))
    down = torch.nextafter(all_, torch.tensor(-torch.inf))
    return torch.cat([all_, -all_, up, -up, down, -down])


def float8_cases():
    gen = torch.Generator().manual_seed(5)
    some = torch.randint(-2**31, 2**31, (200000,), generator=gen,
                         dtype=torch.int64).to(torch.int32).view(torch.float32)
    for f8 in FLOATS:
        all_ = codes(f8, 8)
        finite = all_[all_.float().isfinite()]
        for to in REALS + FLOATS + [torch.bool, torch.complex64]:
            yield all_, to
        for to in INTEGERS[2:] + UNSIGNED:
            low = 0 if to in UNSIGNED else -2.0**15
            inside = finite[(finite.float() >= low) &
                            (finite.float() < 2.0**15)]
            yield inside, to
        x = numbers(f8)
        yield x, f8
        yield some, f8
        yield torch.cat([x, some]).double(), f8
        # which float32 rounds to a tie, or away from one
        tie = x[x.isfinite()].double()
        yield torch.cat([tie * (1 + 2.0**-40), tie * (1 - 2.0**-40)]), f8
        for half in torch.float16, torch.bfloat16:
            yield codes(half, 16), f8
        yield torch.tensor([True, False]), f8
        for integer in INTEGERS + UNSIGNED:
            high = min(torch.iinfo(integer).max, 70000)
            low = max(torch.iinfo(integer).min, -70000)
            yield torch.arange(low, high + 1).to(integer), f8
        yield torch.tensor([2**53 + 1, -2**62, 2**63 - 1]), f8


def unsigned_cases():
    for u in UNSIGNED:
        top = torch.iinfo(u).max
        v = [0, 1, 2, 127, 128, 255, 256, 300, top // 2, top // 2 + 1, top - 1,
             top, 2**24 + 1 & top, 2**53 + 1 & top, (2**63 + 2**39) & top,
             (2**63 + 2**39 + 1) & top, (2**63 + 2**10) & top,
             (2**63 + 2**10 + 1) & top, (2**64 - 2**39) & top]
        x = torch.tensor(v, dtype=u)
        for to in INTEGERS + UNSIGNED + REALS + [torch.bool, torch.complex128]:
            yield x, to
        for integer in INTEGERS:
            info = torch.iinfo(integer)
            yield torch.tensor([info.min, -1 if info.min else 1, 0, 77,
                                info.max], dtype=integer), u
        yield torch.tensor([True, False]), u
        for real in REALS:
            y = torch.tensor([0., 0.5, 1, 1.99, 250, 255.9, 65280, 4294967040,
                              2.0**40, 2.0**63, 2.0**63 + 2.0**40,
                              2.0**64 - 2.0**11], dtype=torch.float64)
            y = y.to(real).double()
            yield y[y < 2.0**(8 * x.element_size())].to(real), u


def agree(got, want):
    """As bits, but nan is nan."""
    if want.is_complex():
        return agree(torch.view_as_real(got), torch.view_as_real(want))
    if got.dtype in FLOATS or not want.is_floating_point():
        return torch.equal(raw(got), raw(want))
    nan = want.isnan()
    return torch.equal(got.isnan(), nan) and \
        torch.equal(raw(got[~nan]), raw(want[~nan]))


def check_conversions(nacre, device):
    cases = list(float8_cases()) + list(unsigned_cases())
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/cases", "w", encoding="ascii") as f:
            for i, (x, to) in enumerate(cases):
                raw(x).numpy().tofile(f"{folder}/in{i}")
                print(i, name(x.dtype), name(to), file=f)
        run(nacre, CONVERT, folder, device)
        wrong = 0
        for i, (x, to) in enumerate(cases):
            with open(f"{folder}/out{i}", "rb") as f:
                got = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)
            got, want = got.view(to), x.to(to)
            if agree(got, want):
                continue
            wrong += 1
            at = [k for k in range(len(want)) if not agree(got[k:k + 1],
                                                           want[k:k + 1])]
            print(f"{name(x.dtype)} to {name(to)}: {len(at)} of {len(want)}, "
                  f"first {x[at[0]].double().item()!r}: {got[at[0]]}, not "
                  f"{want[at[0]]}")
        assert wrong == 0, f"{wrong} of {len(cases)} conversions differ"
    return len(cases)


EQUAL = """
local a = nacre.fromfile(arg[1] .. "/a", arg[2]):to(arg[3])
local b = a[{{1, -1, 3}}]
print(table.concat(a:unsqueeze(2):eq(b):sum(2):tolist(), " "))
print(table.concat(a:unsqueeze(2):ne(b):sum(2):tolist(), " "))
print(a:eq(a):all():item(), a:equal(a), a:eq(1):sum():item(),
      a:ne(0):sum():item())
"""


def check_equality(nacre, device):
    for dtype in FLOATS + UNSIGNED:
        size = torch.empty(0, dtype=dtype).element_size()
        a = torch.arange(256, dtype=torch.uint8).repeat_interleave(size) \
            .view(dtype)
        b = a[::3].clone()
        with tempfile.TemporaryDirectory() as folder:
            raw(a).numpy().tofile(folder + "/a")
            got = run(nacre, EQUAL, folder, name(dtype), device)
        wide = a if dtype not in FLOATS else a.float()
        other = b if dtype not in FLOATS else b.float()
        want = [" ".join(str(n) for n in f(wide[:, None], other).sum(1).tolist())
                for f in (torch.eq, torch.ne)]
        one, zero = torch.ones(1).to(a.dtype), torch.zeros(1).to(a.dtype)
        want.append("\t".join([
            *[str(bool((a == a).all())).lower()] * 2,
            str((a == one).sum().item()), str((a != zero).sum().item())]))
        assert got.split("\n")[:3] == want, (dtype, got, want)


def check_info(nacre):
    for dtype in FLOATS:
        info = torch.finfo(dtype)
        got = run(nacre, f"""
          local f = nacre.finfo "{name(dtype)}"
          print(f.bits, f.eps, f.max, f.min, f.tiny, f.smallest_normal,
                f.resolution)""").split()
        assert [float(v) for v in got] == [
            info.bits, info.eps, info.max, info.min, info.tiny,
            info.smallest_normal, info.resolution], (dtype, got, info)
    for dtype in UNSIGNED:
        info = torch.iinfo(dtype)
        got = run(nacre, f"""
          local f = nacre.iinfo "{name(dtype)}"
          print(f.bits, ("%.17g"):format(f.max), f.min)""").split()
        assert [float(v) for v in got] == [info.bits, float(info.max),
                                           info.min], (dtype, got, info)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    n = check_conversions(args.nacre, args.device)
    check_equality(args.nacre, args.device)
    check_info(args.nacre)
    print(f"storage_torch: {n} conversions agree on {args.device}")


if __name__ == "__main__":
    main()
