# SPDX-License-Identifier: MIT
"""Complex tensors beside PyTorch's on the CPU. Operands are drawn as pairs of
real numbers, and results are compared as such."""
from suite_rows import Group, K, M


def group(name, **common):
    """A Group whose operands a, b and c are made complex first."""
    row = Group(name, **common)

    def add(title, n, operands, ours, torch=None, **more):
        names = [word.split("=")[0] for word in operands.split()]
        pairs = " ".join(word + ",2" for word in operands.split())
        torch = torch or ours.replace(":", ".").replace("nacre.", "torch.")
        real = more.pop("real", False)
        made = ["\n".join(f"{a} = {lib}.view_as_complex({a})" for a in names)
                for lib in ("nacre", "torch")]
        if not real:
            ours = f"nacre.view_as_real({ours})"
            torch = f"torch.view_as_real({torch})"
        row(title, n, pairs, ours, torch, setup=tuple(made), **more)
    return add


row = group("complex, elementwise")
row("a + b complex64", (10 * K, M), "a=n b=n", "a + b")
row("a * b complex64", (10 * K, M), "a=n b=n", "a * b")
row("a / b complex64", M, "a=n b=n", "a / b")
row("a * b + c complex64", M, "a=n b=n c=n", "a * b + c")
row("a * number complex64", M, "a=n", "a * 2.5")
row("conj complex64", M, "a=n", "a:conj()", "a.conj().resolve_conj()")
row("abs complex64", M, "a=n", "a:abs()", real=True)
row("angle complex64", M, "a=n", "a:angle()", real=True)
row("exp complex64", M, "a=n", "a:exp()")
row("log complex64", M, "a=n", "a:log()")
row("sqrt complex64", M, "a=n", "a:sqrt()")
row("sin complex64", M, "a=n", "a:sin()")
row("tanh complex64", M, "a=n", "a:tanh()")
row("sum complex64", M, "a=n", "a:sum()", tolerance=1e-2)
row("prod of rows complex64", 1024, "a=n,32", "a:prod(2)", "a.prod(1)")
row("cumsum complex64", 1024, "a=n,1024", "a:cumsum(2)", "a.cumsum(1)",
    tolerance=1e-2)
row("a:t() complex64, in rows", 1024, "a=n,1024", "a:t():contiguous()")

row = group("complex, products", tolerance=1e-3)
row("mm complex64", (64, 256, 1024), "a=n,n b=n,n", "a:mm(b)",
    work="8 * n ** 3")
row("bmm complex64", 64, "a=n,32,32 b=n,32,32", "a:bmm(b)")
row("mv complex64", 1024, "a=n,n b=n", "a:mv(b)")
row("a.mH mm b complex64", 512, "a=n,n b=n,n", "a.mH:mm(b)")

row = group("complex, Fourier", tolerance=1e-3)
row("fft complex64", (256, 4096, 65536, 1 << 20), "a=n", "nacre.fft.fft(a)")
row("fft of 256 lines complex64", (64, 1024, 4096), "a=256,n",
    "nacre.fft.fft(a)")
row("fft of columns complex64", 1024, "a=n,256", "nacre.fft.fft(a, nil, 1)",
    "torch.fft.fft(a, None, 0)")
row("fft2 complex64", 512, "a=n,n", "nacre.fft.fft2(a)")
row("ifft of a prime complex64", 10007, "a=n", "nacre.fft.ifft(a)")

row = Group("real, Fourier", tolerance=1e-3)
row("rfft of 256 lines", (64, 1024), "x=256,n",
    "nacre.view_as_real(nacre.fft.rfft(x))",
    "torch.view_as_real(torch.fft.rfft(x))")
row("rfft", 1 << 20, "x=n", "nacre.view_as_real(nacre.fft.rfft(x))",
    "torch.view_as_real(torch.fft.rfft(x))")
