# SPDX-License-Identifier: MIT
"""Nacre on a GPU beside PyTorch, CuPy and bare copies, for scripts/gpu-check.

Times are the device's own, by events; those of the group "host" are what a call
takes until it returns. Operands change from one sample to the next if they
would otherwise stay in the device's cache. The bytes behind a rate are those
that must be moved, once each. A turn takes five samples, and six turns of each
make thirty. Each side draws its operands on the device; results are not
compared. --small makes everything small, for the emulated device.
"""
from suite_rows import Group, lines


def group(name, **more):
    more = {"work": "memory", "timer": "device", **more}
    return Group(name, turns=6, results=None,
                 shown=("rate", "goal", "quartiles"), **more)


LARGE = 1 << 26

row = group("start", timer="process", work=None)
row("first result of a new process", 1, "",
    "print((nacre.ones(1, {device='DEVICE'}) + 1):item())",
    "import torch; print((torch.ones(1, device='DEVICE') + 1).item())",
    goal=0.3)

row = group("elementwise on a device", goal=1.03)
row("a+b float32", LARGE, "a=n b=n", "a + b", cupy="a + b")
row("a+b bfloat16", LARGE, "a=n:bfloat16 b=n:bfloat16", "a + b")
row("exp float32", LARGE, "a=n", "a:exp()", cupy="cp.exp(a)")
row("sigmoid bfloat16", LARGE, "a=n:bfloat16", "a:sigmoid()")
row("a+b int8", LARGE, "a=n:int8 b=n:int8", "a + b", goal=0.95, cupy="a + b")
row("a and b, bool", LARGE, "a=n:bool b=n:bool", "a:logical_and(b)",
    goal=0.95, cupy="cp.logical_and(a, b)")
row("lt float32", LARGE, "a=n b=n", "a:lt(b)", "a < b", cupy="a < b")
row("where float32", LARGE, "m=n:bool a=n b=n", "nacre.where(m, a, b)",
    cupy="cp.where(m, a, b)")

row = group("strided", goal=1)
row("matrix + row", 16384, "a=n,4096 b=4096", "a + b", cupy="a + b")
row("matrix + column", 16384, "a=n,4096 b=n,1", "a + b", cupy="a + b")
row("half of each row", 16384, "a=n,8192", "a:narrow(2, 1, #a // 4):neg()",
    "a.narrow(1, 0, len(a) // 4).neg()", work="move y y")
row("permuted + dense", 512, "a=n,512,256 b=n,512,256", "a:transpose(1, 2) + b",
    "a.transpose(0, 1) + b", goal=1.05, cupy="a.swapaxes(0, 1) + b")
row("transposed + dense", 8192, "a=n,8192 b=n,8192", "a:t() + b", goal=1.05,
    cupy="a.T + b")

row = group("copies", goal=1)
row("float32 to bfloat16", LARGE, "a=n", "a:to('bfloat16')",
    "a.to(torch.bfloat16)")
row("bfloat16 to float32", LARGE, "a=n:bfloat16", "a:to('float32')",
    "a.to(torch.float32)")
row("clone float32", LARGE, "a=n", "a:clone()", cupy="a.copy()")
row("fill float32", LARGE, "a=n", "a:fill_(1)", work="move y", keeps=True)
row("transposed float32", 8192, "a=n,8192", "a:t():contiguous()", goal=0.95,
    cupy="cp.ascontiguousarray(a.T)")
row("transposed bfloat16", 8192, "a=n,8192:bfloat16", "a:t():contiguous()",
    goal=0.95)
row("transposed int8", 16384, "a=n,16384:int8", "a:t():contiguous()",
    goal=0.95)
row("transposed float32 to bfloat16", 8192, "a=n,8192",
    "a:t():to('bfloat16'):contiguous()",
    "a.t().to(torch.bfloat16, memory_format=torch.contiguous_format)")

row = group("reductions on a device", goal=1)
for op in ("sum", "max"):
    row(f"{op}, all", LARGE, "a=n", f"a:{op}()", cupy=f"a.{op}()")
row("sum of rows", 16384, "a=n,4096", "a:sum(2)", "a.sum(1)", cupy="a.sum(1)")
row("sum of rows of 64, bfloat16", 2097152, "a=n,64:bfloat16", "a:sum(2)",
    "a.sum(1)")
row("sum of columns", 16384, "a=n,4096", "a:sum(1)", "a.sum(0)", goal=0.95,
    cupy="a.sum(0)")
row("sum, middle", 256, "a=n,512,512", "a:sum(2)", "a.sum(1)", goal=0.95,
    cupy="a.sum(1)")
row("max of rows with places", 16384, "a=n,4096", "a:argmax(2)", "a.argmax(1)",
    cupy="a.argmax(1)")
row("var of rows", 16384, "a=n,4096", "a:var(2)", "a.var(1)")

row = group("softmax", goal=0.9)
for columns in (1024, 4096, 16384, 65536, 262144):
    for op in ("softmax", "log_softmax"):
        row(f"{op} of rows of {columns}", LARGE // columns, f"a=n,{columns}",
            f"a:{op}(2)", f"a.{op}(1)", goal=0.75 if columns > 16384 else 0.9)
row("softmax of rows of 4096, bfloat16", 16384, "a=n,4096:bfloat16",
    "a:softmax(2)", "a.softmax(1)")
row("log_softmax of rows of 128256, bfloat16", 1024, "a=n,128256:bfloat16",
    "a:log_softmax(2)", "a.log_softmax(1)", goal=0.75)

row = group("norms", goal=0.9)
for norm in ("layer_norm", "rms_norm"):
    row(f"{norm} of rows of 4096", 16384, "a=n,4096",
        f"F.{norm}(a, {{a:size(2)}})",
        f"torch.nn.functional.{norm}(a, (a.shape[1],))")
    row(f"{norm} and its gradient", 16384, "a=n,4096 b=n,4096", lines(f"""
        (function()
          local x = a:detach():requires_grad_()
          F.{norm}(x, {{a:size(2)}}):backward(b)
          return x.grad
        end)()"""),
        f"torch.autograd.grad(torch.nn.functional.{norm}("
        f"x := a.detach().requires_grad_(), (a.shape[1],)), x, b)[0]",
        work="move a y a b y")
row("layer_norm, weights and their gradients", 16384,
    "a=n,4096 b=n,4096 m=4096", lines("""
    (function()
      local x, w = a:detach():requires_grad_(), m:detach():requires_grad_()
      F.layer_norm(x, {a:size(2)}, w, w):backward(b)
      return x.grad
    end)()"""),
    "torch.autograd.grad(torch.nn.functional.layer_norm("
    "x := a.detach().requires_grad_(), (a.shape[1],), "
    "w := m.detach().requires_grad_(), w), (x, w), b)[0]",
    work="move a y a b y")

row = group("scans", goal=1)
row("cumsum, one dimension", LARGE, "a=n", "a:cumsum(1)", "a.cumsum(0)",
    cupy="a.cumsum()")
row("cumsum of int64, one dimension", LARGE, "a=n:int64", "a:cumsum(1)",
    "a.cumsum(0)", cupy="a.cumsum()")
row("cumsum of rows", 8192, "a=n,8192", "a:cumsum(2)", "a.cumsum(1)", goal=0.8,
    cupy="a.cumsum(1)")
row("cumsum of columns", 8192, "a=n,8192", "a:cumsum(1)", "a.cumsum(0)",
    goal=0.8, cupy="a.cumsum(0)")

row = group("indexing on a device", goal=1)
table = "a=1000000,128 i=n<1000000"
row("rows of 512 bytes", 500000, table, "a[i]", work="move y y i", cupy="a[i]")
row("rows of 512 bytes, index_select", 500000, table, "a:index_select(1, i)",
    "a.index_select(0, i)", work="move y y i")
row("rows of 8 KiB, embedding", 16384, "a=128256,4096:bfloat16 i=n<128256",
    "F.embedding(i, a)", work="move y y i")
row("gather along rows", 16384, "a=n,4096 i=n,4096<4096", "a:gather(2, i)",
    "a.gather(1, i)")
for way in ("atomic", "deterministic"):
    row(f"index_add_, to PyTorch's {way} one", 500000,
        "a=1000000,128 b=n,128 i=n<1000000", "a:index_add_(1, i, b)",
        "a.index_add_(0, i, b)", work="move b b b i", keeps=True,
        setup=("", f"torch.use_deterministic_algorithms({way[0] == 'd'})"))
row("scatter_add_ along rows", 16384, "a=n,1024 b=n,1024 i=n,1024<1024",
    "a:scatter_add_(2, i, b)", "a.scatter_add_(1, i, b)",
    work="move a a b i", keeps=True)
row("single elements", 1 << 24, f"a={LARGE} i=n<{LARGE}", "a[i]",
    work="move y y i", cupy="a[i]")
row("by a mask", LARGE, "a=n m=n:bool", "a[m]", cupy="a[m]")

row = group("sorting", goal=1)
row("argsort, one dimension of 2^28", 1 << 28, "a=n", "a:argsort()", goal=0.9)
for columns in (256, 1024, 4096):
    row(f"argsort of rows of {columns}", LARGE // columns, f"a=n,{columns}",
        "a:argsort(2)", "a.argsort(1)")
for columns, k in ((32768, 64), (131072, 256), (1048576, 256), (131072, 2048)):
    row(f"topk of {k} in rows of {columns}", LARGE // columns, f"a=n,{columns}",
        f"(a:topk(math.min({k}, a:size(2)), 2))",
        f"a.topk(min({k}, a.shape[1]), 1)[0]", goal=0.5 if k <= 256 else 1,
        work="move a y y y")

row = group("products on a device", goal=1.02)
for dtype, n, label in (
        ("float32", 8192, ""), ("float32", 8192, ", tf32"),
        ("bfloat16", 4096, ""), ("bfloat16", 8192, ""), ("bfloat16", 16384, ""),
        ("float16", 8192, ""), ("float64", 8192, "")):
    row(f"{dtype} {n}{label}", n, f"a=n,n:{dtype} b=n,n:{dtype}", "a:mm(b)",
        work="2 * n**3",
        setup=("nacre.backends.cuda.matmul.allow_tf32 = true",
               "torch.backends.cuda.matmul.allow_tf32 = True")
        if label else ("", ""))
row("batch of 64, bfloat16 1024", 64,
    "a=n,1024,1024:bfloat16 b=n,1024,1024:bfloat16", "a:bmm(b)",
    work="n * 2 * 1024**3")
row("heads side by side, bfloat16", 32,
    "a=n,512,16,64:bfloat16 b=n,512,16,64:bfloat16",
    "a:transpose(2, 3):matmul(b:permute(1, 3, 4, 2))",
    "a.transpose(1, 2).matmul(b.permute(0, 2, 3, 1))",
    work="n * 16 * 2 * 512 * 512 * 64")
row("16 rows, bfloat16", 8192, "a=16,n:bfloat16 b=n,n:bfloat16", "a:mm(b)",
    goal=1, calls=4)
row("matrix and vector, float32", 8192, "a=n,n b=n", "a:mv(b)", goal=1)
row("float32 128", 128, "a=n,n b=n,n", "a:mm(b)", goal=1, calls=20)
row("linear with bias and gelu, bfloat16", 8192,
    "a=n,4096:bfloat16 b=4096,4096:bfloat16 p=4096:bfloat16",
    "F.linear(a, b, p):gelu()", "F.gelu(F.linear(a, b, p))", goal=0.93,
    work="2 * n * 4096**2")
row("conv2d 3x3, bfloat16", 64,
    "a=n,256,56,56:bfloat16@image b=256,256,3,3:bfloat16@image",
    "F.conv2d(a, b, nil, 1, 1)", "F.conv2d(a, b, None, 1, 1)", goal=1.03,
    work="2 * n * 256 * 56 * 56 * 256 * 9")
for size in (64, 128):
    row(f"attention, heads of {size}, bfloat16", 4,
        " ".join(f"{name}=n,16,4096,{size}:bfloat16" for name in "abp"),
        "F.scaled_dot_product_attention(a, b, p)", goal=1.03,
        work=f"4 * n * 16 * 4096**2 * {size}")

row = group("fused")
gelu = ("0.5*x*(1 + tanh(0.7978845608028654*(x + 0.044715*x*x*x)))",
        "0.5 * a * (1 + torch.tanh(0.7978845608028654 * "
        "(a + 0.044715 * a * a * a)))")
row("sigmoid(a*b + c) float32", LARGE, "a=n b=n p=n", "fused(a, b, p)",
    "torch.sigmoid(a * b + p)", goal=0.6,
    setup=('fused = nacre.kernel "y = sigmoid(a*b + c)"', ""))
for dtype in ("float32", "bfloat16"):
    row(f"gelu by its formula, {dtype}", LARGE, f"a=n:{dtype}", "fused(a)",
        gelu[1], goal=0.3, setup=(f'fused = nacre.kernel "y = {gelu[0]}"', ""))
row("softmax by hand, rows of 1024", 65536, "a=n,1024", "fused(a)",
    "(lambda e: e / e.sum(-1, True))((a - a.amax(-1, True)).exp())", goal=0.5,
    setup=(lines("""
    fused = nacre.fuse(function(x)
      local e = (x - x:amax(-1, true)):exp()
      return e / e:sum(-1, true)
    end)"""), ""))

row = group("host", timer="host", calls=4000)
row("a+b of 1000 elements, submitted", 1000, "a=n b=n", "a + b", goal=0.6,
    calls=400, cupy="a + b")
row("a:add_(b) of 1000 elements, submitted", 1000, "a=n b=n", "a:add_(b)",
    goal=0.6, calls=400, keeps=True)
row("view", 1000, "a=n", "a:view(10, 100)", goal=0.5)
row("a block of the device, taken and given back", 1000, "a=n",
    "nacre.empty_like(a)", goal=0.7)

row = group("transfers", work="move y", keeps=True)
for kind, count, title in (("pinned", 1 << 28, "1 GiB"),
                           ("pageable", 1 << 26, "256 MiB")):
    pinned = kind == "pinned"
    for way, to, source in (("device", "a", "p"), ("host", "p", "a")):
        row(f"to the {way}, {title} {kind}", count, f"p=n@{kind} a=n",
            f"{to}:copy_({source}{', true' if pinned else ''})",
            f"{to}.copy_({source}{', non_blocking=True' if pinned else ''})",
            raw=f"raw({to}, {source})" if pinned else "",
            goal=1 if pinned else 0.5)
