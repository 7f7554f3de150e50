# SPDX-License-Identifier: MIT
"""Nacre beside PyTorch and NumPy on the CPU: 250 rows."""
from suite_rows import Group, K, M, lines, short

# ---- element by element
row = Group("elementwise", work="memory")
row("a + b", (10 * K, 100 * K, M, 16 * M), "a=n b=n", "a + b", numpy="a + b")
row("a * b + c", (100 * K, M, 16 * M), "a=n b=n c=n", "a * b + c",
    numpy="a * b + c")
row("abs", (100 * K, M), "x=n", "x:abs()", numpy="np.abs(x)")
row("relu", (100 * K, M), "x=n", "x:relu()")
row("clamp", M, "x=n", "x:clamp(-1, 1)", numpy="np.clip(x, -1, 1)")
row("sqrt", M, "x=n>0", "x:sqrt()", numpy="np.sqrt(x)")
row("abs ^ 0.5", M, "x=n", "x:abs() ^ 0.5", "x.abs() ** 0.5")
row("pow 2.5", M, "x=n>0", "x ^ 2.5", "x ** 2.5", numpy="x ** np.float32(2.5)")
row("exp", (10 * K, 100 * K, M), "x=n", "x:exp()", numpy="np.exp(x)")
row("log", M, "x=n>0", "x:log()", numpy="np.log(x)")
row("sin", M, "x=n", "x:sin()", numpy="np.sin(x)")
row("tanh", M, "x=n", "x:tanh()", numpy="np.tanh(x)")
row("sigmoid", M, "x=n", "x:sigmoid()")
row("erf", M, "x=n", "x:erf()")
row("gelu", (10 * K, 100 * K, M), "x=n", "F.gelu(x)")
row("silu", M, "x=n", "F.silu(x)")
row("a > b", M, "a=n b=n", "a:gt(b)", "a > b", numpy="a > b")
row("where", M, "m=n:bool a=n b=n", "nacre.where(m, a, b)",
    numpy="np.where(m, a, b)")
row("atan2", M, "a=n b=n", "nacre.atan2(a, b)", numpy="np.arctan2(a, b)")
row("lerp", M, "a=n b=n", "a:lerp(b, 0.3)")
row("add_", M, "a=n b=n", "a:add_(b)")
row("x + row", 4096, "x=n,1024 r=1024", "x + r", numpy="x + r")
row("x + column", 4096, "x=n,1024 c=n,1", "x + c", numpy="x + c")
row("column + row", 4096, "c=n,1 r=1024", "c + r", numpy="c + r")
row("x * channels of images", 32, "x=n,64,56,56 c=64,1,1", "x * c")
row("x:t() + y", 1024, "x=n,1024 y=1024,n", "x:t() + y", numpy="x.T + y")
row("every second column * 2", 4096, "x=n,1024", 'x[":, 1:-1:2"] * 2',
    "x[:, ::2] * 2", numpy="x[:, ::2] * 2", work=None)

# ---- types
row = Group("dtypes", work="memory")
for dtype, tolerance in (("float16", 2e-3), ("bfloat16", 1e-2)):
    x = f"x=4*n,1024:{dtype}"
    row(f"a + b {dtype}", 4 * M, f"a=n:{dtype} b=n:{dtype}", "a + b",
        tolerance=tolerance)
    row(f"sum {dtype}", 4 * M, f"x=n:{dtype}", "x:sum()", tolerance=3e-2)
    row(f"max {dtype}", 4 * M, f"x=n:{dtype}", "x:max()", tolerance=tolerance)
    row(f"exp {dtype}", M, f"x=n:{dtype}", "x:exp()", tolerance=tolerance)
    row(f"softmax {dtype}", 1024, x, "x:softmax(2)", "x.softmax(1)",
        tolerance=tolerance)
    row(f"{dtype} to float32", 4 * M, f"x=n:{dtype}", "x:float()")
    row(f"float32 to {dtype}", 4 * M, "x=n", f"x:to(nacre.{dtype})",
        tolerance=tolerance)
row("uint8 to float32", 4 * M, "x=n:uint8", "x:float()",
    numpy="x.astype(np.float32)")
row("float32 to float64", M, "x=n", "x:double()", numpy="x.astype(np.float64)")
row("int64 to float32", M, "x=n:int64", "x:float()",
    numpy="x.astype(np.float32)")
row("a + b uint8", 4 * M, "a=n:uint8 b=n:uint8", "a + b", numpy="a + b")
row("max uint8", 4 * M, "x=n:uint8", "x:max()", numpy="x.max()")
row("sum uint8", 4 * M, "x=n:uint8", "x:sum()", numpy="x.sum()")
row("a * b int32", M, "a=n:int32 b=n:int32", "a * b", numpy="a * b")
row("max int32", 4 * M, "x=n:int32", "x:max()", numpy="x.max()")
row("a // b int64", M, "a=n:int64 b=n:int64", "a // b", numpy="a // b")
row("a + b float64", M, "a=n:float64 b=n:float64", "a + b", numpy="a + b")
row("exp float64", M, "x=n:float64", "x:exp()", numpy="np.exp(x)")

# ---- reductions
row = Group("reductions", work="memory")
row("sum", (100 * K, M, 16 * M), "x=n", "x:sum()", numpy="x.sum()",
    tolerance=1e-3)
row("sum dim 1", 4096, "x=n,1024", "x:sum(1)", "x.sum(0)", numpy="x.sum(0)",
    tolerance=1e-3)
row("sum dim 2", 4096, "x=n,1024", "x:sum(2)", "x.sum(1)", numpy="x.sum(1)",
    tolerance=1e-3)
row("sum of the middle", 64, "x=n,256,256", "x:sum(2)", "x.sum(1)",
    numpy="x.sum(1)", tolerance=1e-3)
row("mean of rows of 10", 100 * K, "x=n,10", "x:mean(2)", "x.mean(1)",
    numpy="x.mean(1)", tolerance=1e-3)
row("max", 4 * M, "x=n", "x:max()", numpy="x.max()")
row("max dim 2", 4096, "x=n,1024", "x:max(2)", "x.max(1)")
row("argmax", 4 * M, "x=n", "x:argmax()", numpy="x.argmax()", positions=True)
row("amax dim 1", 4096, "x=n,1024", "x:amax(1)", "x.amax(0)",
    numpy="x.max(0)")
row("norm", 4 * M, "x=n", "x:norm()")
row("var dim 2", 4096, "x=n,1024", "x:var(2)", "x.var(1)",
    numpy="x.var(1, ddof=1)")
row("prod dim 2", 4096, "x=n,64", "(x * 0.1 + 1):prod(2)",
    "(x * 0.1 + 1).prod(1)")
row("logsumexp", 4096, "x=n,1024", "x:logsumexp(2)", "x.logsumexp(1)")
row("any", 4 * M, "x=n:bool>0", "x:all()", numpy="x.all()")
row("count_nonzero", 4 * M, "x=n:bool", "x:count_nonzero()",
    numpy="np.count_nonzero(x)")

# ---- scans and sorts
row = Group("order")
row("cumsum", (M, 16 * M), "x=n", "x:cumsum(1)", "x.cumsum(0)",
    numpy="x.cumsum()", tolerance=1e-3, work="memory")
row("cumsum dim 1", 4096, "x=n,1024", "x:cumsum(1)", "x.cumsum(0)",
    numpy="x.cumsum(0)", tolerance=1e-3, work="memory")
row("cumsum dim 2", 4096, "x=n,1024", "x:cumsum(2)", "x.cumsum(1)",
    numpy="x.cumsum(1)", tolerance=1e-3, work="memory")
row("cummax dim 2", 4096, "x=n,256", "x:cummax(2)", "x.cummax(1)")
row("sort", M, "x=n", "x:sort()", numpy="np.sort(x)")
row("sort int64", M, "x=n<1000000000", "x:sort()", positions=True,
    numpy="np.sort(x)")
row("sort rows of 256", 4096, "x=n,256", "x:sort(2)", "x.sort(1)",
    numpy="np.sort(x)")
row("argsort", 100 * K, "x=n", "x:argsort()", numpy="np.argsort(x)",
    results=0)
row("topk 10 of rows", 4096, "x=n,1024", "x:topk(10, 2)", "x.topk(10, 1)")
row("kthvalue", M, "x=n", "x:kthvalue(n // 3)")
row("median", M, "x=n", "x:median()")
row("quantile", M, "x=n", "x:quantile(0.3)", numpy="np.quantile(x, 0.3)")
row("unique", M, "x=n<5000", "x:unique()", numpy="np.unique(x)",
    positions=True)
row("searchsorted", M, "s=1000 x=n", "nacre.searchsorted(s, x)",
    setup=("s = s:sort()", "s = s.sort()[0]"), positions=True)
row("histc", M, "x=n", "x:histc(100, -3, 3)", tolerance=1e-2)
row("bincount", M, "x=n:int64", "x:bincount()", numpy="np.bincount(x)")

# ---- indexing
row = Group("indexing")
row("gather dim 1", 1024, "x=n,1024 i=n,1024<n", "x:gather(1, i)",
    "x.gather(0, i)")
row("gather dim 2", 1024, "x=n,1024 i=n,1024<1024", "x:gather(2, i)",
    "x.gather(1, i)")
row("scatter_add", M, "s=1000 x=n i=n<1000", "s:scatter_add(1, i, x)",
    "s.scatter_add(0, i, x)", tolerance=1e-3)
row("scatter_add dim 1", 1024, "x=n,1024 i=n,1024<n",
    "x:scatter_add(1, i, x)", "x.scatter_add(0, i, x)", tolerance=1e-3)
row("index_add rows", 4096, "x=n,1024 i=n<n", "x:index_add(1, i, x)",
    "x.index_add(0, i, x)")
row("index_select rows", 4096, "x=n,1024 i=n<n", "x:index_select(1, i)",
    "x.index_select(0, i)", numpy="x[i]")
row("index_select columns", 4096, "x=n,1024 i=1024<1024",
    "x:index_select(2, i)", "x.index_select(1, i)", numpy="x[:, i]")
row("embedding", 8192, "w=50000,256 i=n<50000", "F.embedding(i, w)")
row("x[i]", M, "x=n i=n<n", "x[i]", numpy="x[i]")
row("masked_select", M, "x=n m=n:bool", "x:masked_select(m)", numpy="x[m]")
row("masked_fill", M, "x=n m=n:bool", "x:masked_fill(m, 0)")
row("nonzero", M, "m=n:bool", "m:nonzero()", positions=True)
row("index_put", 100 * K, "x=1000000 i=n<1000000 v=n",
    "x:clone():index_put_({i}, v, true)",
    "x.clone().index_put_((i,), v, True)")
row("one_hot", 10 * K, "i=n<100", "F.one_hot(i, 100)")
row("take_along_dim", 4096, "x=n,256 i=n,256<256", "x:take_along_dim(i, 2)",
    "x.take_along_dim(i, 1)")

# ---- shaping and copies
row = Group("shaping", work="memory")
row("clone", (M, 16 * M), "x=n", "x:clone()", numpy="x.copy()")
row("cat rows", 2048, "x=n,1024 y=n,1024", "nacre.cat({x, y}, 1)",
    "torch.cat((x, y), 0)", numpy="np.concatenate((x, y))")
row("cat columns", 2048, "x=n,1024 y=n,1024", "nacre.cat({x, y}, 2)",
    "torch.cat((x, y), 1)", numpy="np.concatenate((x, y), 1)")
row("stack", M, "x=n y=n", "nacre.stack({x, y}, 2)",
    "torch.stack((x, y), 1)", numpy="np.stack((x, y), 1)")
row("transpose", 2048, "x=n,2048", "x:t():contiguous()",
    numpy="np.ascontiguousarray(x.T)")
row("permute 3 1 2", 64, "x=n,256,64", "x:permute(3, 1, 2):contiguous()",
    "x.permute(2, 0, 1).contiguous()",
    numpy="np.ascontiguousarray(x.transpose(2, 0, 1))")
row("pad", 4096, "x=n,1024", "F.pad(x, {1, 1, 1, 1})",
    "F.pad(x, (1, 1, 1, 1))", numpy="np.pad(x, 1)")
row("roll", 4096, "x=n,1024", "x:roll(7, 1)", "x.roll(7, 0)",
    numpy="np.roll(x, 7, 0)")
row("flip", 4096, "x=n,1024", "x:flip(2)", "x.flip(1)")
row("repeat", 512, "x=n,1024", "x:tile({4, 2})", "x.repeat(4, 2)",
    numpy="np.tile(x, (4, 2))")
row("repeat_interleave", 4096, "x=n,1024", "x:repeat_interleave(2, 2)",
    "x.repeat_interleave(2, 1)", numpy="x.repeat(2, 1)")
row("expand and copy", 4096, "x=n,1", "x:expand(n, 1024):contiguous()",
    "x.expand(n, 1024).contiguous()")
row("windows", 4096, "x=n,1024", "x:unfold(2, 16, 8):contiguous()",
    "x.unfold(1, 16, 8).contiguous()")
row("tril", 2048, "x=n,2048", "x:tril()", numpy="np.tril(x)")
row("part of the columns", 4096, "x=n,1024",
    "x:narrow(2, 101, 500):contiguous()",
    "x.narrow(1, 100, 500).contiguous()", work=None)
row("zeros", 4 * M, "", "nacre.zeros(n)", numpy="np.zeros(n)")
row("arange", M, "", "nacre.arange(n)", numpy="np.arange(n)")

# ---- products
row = Group("products")
row("mm", (64, 128, 256, 512, 1024), "a=n,n b=n,n", "a:mm(b)", numpy="a @ b",
    work="2 * n**3", tolerance=1e-3)
row("mm float64 512", 512, "a=n,n:float64 b=n,n:float64", "a:mm(b)",
    numpy="a @ b")
for dtype, tolerance in (("bfloat16", 2e-2), ("float16", 4e-3)):
    row(f"mm {dtype}", (64, 128, 256, 512, 1024),
        f"a=n,n:{dtype} b=n,n:{dtype}", "a:mm(b)", work="2 * n**3",
        tolerance=tolerance)
row("a:t() mm", 512, "a=n,n b=n,n", "a:t():mm(b)", numpy="a.T @ b",
    work="2 * n**3", tolerance=1e-3)
row("linear 128x784, 256", 128, "x=n,784 w=256,784 b=256",
    "F.linear(x, w, b)", work="2 * n * 784 * 256", tolerance=1e-3)
for dtype, tolerance in (("bfloat16", 2e-2), ("float16", 4e-3)):
    for k, n in ((768, 768), (2048, 768), (768, 32000)):
        row(f"linear of one row {k}, {n} {dtype}", n,
            f"x=1,{k}:{dtype} w=n,{k}:{dtype}", "F.linear(x, w)",
            tolerance=tolerance)
    row(f"mm of 4 rows {dtype}", 2048, f"a=4,768:{dtype} b=768,n:{dtype}",
        "a:mm(b)", tolerance=tolerance)
row("linear 128x784, 256 bfloat16", 128,
    "x=n,784:bfloat16 w=256,784:bfloat16 b=256:bfloat16", "F.linear(x, w, b)",
    work="2 * n * 784 * 256", tolerance=2e-2)
row("linear 128x256, 10", 128, "x=n,256 w=10,256 b=10", "F.linear(x, w, b)",
    work="2 * n * 256 * 10", tolerance=1e-3)
row("mm with 8 columns", 4096, "a=n,1024 b=1024,8", "a:mm(b)",
    numpy="a @ b", work="2 * n * 1024 * 8", tolerance=1e-3)
row("bmm 8x8", 4096, "a=n,8,8 b=n,8,8", "a:bmm(b)", numpy="a @ b",
    work="2 * n * 8**3")
row("bmm 16x16", 2048, "a=n,16,16 b=n,16,16", "a:bmm(b)", numpy="a @ b",
    work="2 * n * 16**3")
row("bmm 32x32", 512, "a=n,32,32 b=n,32,32", "a:bmm(b)", numpy="a @ b",
    work="2 * n * 32**3", tolerance=1e-3)
row("bmm 64x64", 128, "a=n,64,64 b=n,64,64", "a:bmm(b)", numpy="a @ b",
    work="2 * n * 64**3", tolerance=1e-3)
row("bmm 64x64 bfloat16", 128, "a=n,64,64:bfloat16 b=n,64,64:bfloat16",
    "a:bmm(b)", work="2 * n * 64**3", tolerance=2e-2)
row("bmm 128x128", 64, "a=n,128,128 b=n,128,128", "a:bmm(b)",
    numpy="a @ b", work="2 * n * 128**3", tolerance=1e-3)
row("mv", 4096, "a=n,4096 v=4096", "a:mv(v)", numpy="a @ v", tolerance=1e-3)
row("v @ a", 4096, "a=4096,n v=4096", "v:matmul(a)", numpy="v @ a",
    tolerance=1e-3)
row("dot", M, "a=n b=n", "a:dot(b)", numpy="a @ b", tolerance=1e-3)
row("outer", 4096, "a=n b=4096", "a:outer(b)", numpy="np.outer(a, b)")
row("einsum bij,bkj->bik", 32, "a=n,64,64 b=n,64,64",
    'nacre.einsum("bij,bkj->bik", a, b)', tolerance=1e-3)
row("cdist", 512, "a=n,64 b=512,64", "nacre.cdist(a, b)", tolerance=1e-3)

# ---- linear algebra
row = Group("linalg", tolerance=1e-3)
well = "a = a:mm(a:t()) / n + nacre.eye(n, {dtype = nacre.float64})"
well = (well, "a = a.mm(a.t()) / n + torch.eye(n, dtype=torch.float64)\n")
row("solve", 512, "a=n,n:float64 b=n,16:float64", "linalg.solve(a, b)",
    setup=well)
row("inv", 512, "a=n,n:float64", "linalg.inv(a)", setup=well)
row("det", 512, "a=n,n:float64", "linalg.slogdet(a)", setup=well)
row("cholesky", 512, "a=n,n:float64", "linalg.cholesky(a)", setup=well)
row("qr", 256, "a=n,n:float64", "linalg.qr(a)", setup=well)
row("svdvals", 256, "a=n,n:float64", "linalg.svdvals(a)", setup=well)
row("eigvalsh", 256, "a=n,n:float64", "linalg.eigvalsh(a)", setup=well)
row("solve_triangular", 512, "a=n,n:float64 b=n,64:float64",
    "linalg.solve_triangular(a, b, {upper = true})",
    "linalg.solve_triangular(a, b, upper=True)", setup=well)
few = ("a = a + 8 * nacre.eye(16)", "a = a + 8 * torch.eye(16)")
row("inv of 16x16", 256, "a=n,16,16", "linalg.inv(a)", setup=few)
row("solve of 16x16", 256, "a=n,16,16 b=n,16,1", "linalg.solve(a, b)",
    setup=few)

# ---- convolution and pooling
row = Group("convolution", tolerance=1e-3)
for n, c, size, k, r, stride, pad in (
        (16, 64, 56, 64, 3, 1, 1), (8, 3, 224, 64, 7, 2, 3),
        (1, 64, 56, 64, 3, 1, 1), (16, 256, 14, 256, 3, 1, 1),
        (16, 64, 56, 256, 1, 1, 0), (128, 1, 28, 32, 3, 1, 1),
        (128, 3, 32, 32, 5, 1, 2), (16, 128, 28, 128, 3, 2, 1)):
    out = (size + 2 * pad - r) // stride + 1
    row(f"conv2d {n}x{c}x{size}x{size}, {k} {r}x{r}/{stride}", n,
        f"x=n,{c},{size},{size} w={k},{c},{r},{r} b={k}",
        f"F.conv2d(x, w, b, {stride}, {pad})",
        work=f"n * {2 * c * k * r * r * out * out}",
        gradient="x w b")
for n, c, size, k, r in ((16, 64, 56, 64, 3), (16, 256, 14, 256, 3),
                         (128, 3, 32, 32, 5)):
    row(f"conv2d {n}x{c}x{size}x{size}, {k} {r}x{r}/1 bfloat16", n,
        f"x=n,{c},{size},{size}:bfloat16 w={k},{c},{r},{r}:bfloat16 "
        f"b={k}:bfloat16", f"F.conv2d(x, w, b, 1, {r // 2})",
        work=f"n * {2 * c * k * r * r * size * size}", tolerance=2e-2,
        right=2)  # 1.13 is off by a sixth of the largest element
row("conv2d depthwise", 16, "x=n,64,56,56 w=64,1,3,3",
    "F.conv2d(x, w, nil, 1, 1, 1, 64)", "F.conv2d(x, w, None, 1, 1, 1, 64)",
    gradient="x w")
row("conv1d", 32, "x=n,64,1024 w=64,64,5", "F.conv1d(x, w, nil, 1, 2)",
    "F.conv1d(x, w, None, 1, 2)")
row("conv_transpose2d", 16, "x=n,64,28,28 w=64,32,2,2",
    "F.conv_transpose2d(x, w, nil, 2)", "F.conv_transpose2d(x, w, None, 2)")
row("max_pool2d", 32, "x=n,64,56,56", "F.max_pool2d(x, 2)", gradient="x")
row("avg_pool2d 3x3", 32, "x=n,64,56,56", "F.avg_pool2d(x, 3, 2, 1)")
row("adaptive_avg_pool2d 1", 32, "x=n,64,56,56",
    "F.adaptive_avg_pool2d(x, 1)", work="n * 64 * 56 * 56")
row("interpolate bilinear x2", 32, "x=n,64,56,56",
    'F.interpolate(x, {scale_factor = 2, mode = "bilinear"})',
    'F.interpolate(x, scale_factor=2, mode="bilinear")')
row("interpolate nearest x2", 32, "x=n,64,56,56",
    "F.interpolate(x, {scale_factor = 2})", "F.interpolate(x, scale_factor=2)")

# ---- softmax, attention, normalisation, losses
row = Group("networks' functions", work="memory")
row("softmax", 8192, "x=n,1000", "x:softmax(2)", "x.softmax(1)",
    gradient="x")
row("softmax of rows of 10", 100 * K, "x=n,10", "x:softmax(2)",
    "x.softmax(1)")
row("softmax dim 1", 8192, "x=n,1000", "x:softmax(1)", "x.softmax(0)")
row("softmax of the middle", 64, "x=n,128,256", "x:softmax(2)",
    "x.softmax(1)")
row("log_softmax", 8192, "x=n,1000", "x:log_softmax(2)", "x.log_softmax(1)",
    gradient="x")
for b, h, s in ((4, 8, 256), (1, 8, 1024)):
    for kind, ours, theirs in (
            ("causal", ", {is_causal = true}", ", is_causal=True"),
            ("full", "", "")):
        row(f"attention {kind} {b}x{h}x{s}x64", b,
            " ".join(f"{c}=n,{h},{s},64" for c in "qkv"),
            f"F.scaled_dot_product_attention(q, k, v{ours})",
            f"F.scaled_dot_product_attention(q, k, v{theirs})", work=None,
            gradient="q k v" if (kind, s) == ("causal", 256) else "")
row("layer_norm", 4096, "x=n,1024 w=1024 b=1024",
    "F.layer_norm(x, {1024}, w, b)", "F.layer_norm(x, (1024,), w, b)",
    gradient="x w b")
row("layer_norm of rows of 64", 16384, "x=n,64 w=64 b=64",
    "F.layer_norm(x, {64}, w, b)", "F.layer_norm(x, (64,), w, b)",
    gradient="x w b")
row("layer_norm of long rows", 8, "x=n,1048576 w=1048576 b=1048576",
    "F.layer_norm(x, {1048576}, w, b)", "F.layer_norm(x, (1048576,), w, b)",
    gradient="x w b", tolerance=1e-3)
row("instance_norm", 32, "x=n,64,56,56 w=64 b=64",
    "F.instance_norm(x, nil, nil, w, b)",
    "F.instance_norm(x, None, None, w, b)", gradient="x w b")
row("batch_norm images", 32, "x=n,64,56,56 w=64 b=64",
    "F.batch_norm(x, nil, nil, w, b, true)",
    "F.batch_norm(x, None, None, w, b, True)", gradient="x w b")
row("batch_norm 4096x512", 4096, "x=n,512 w=512 b=512",
    "F.batch_norm(x, nil, nil, w, b, true)",
    "F.batch_norm(x, None, None, w, b, True)", gradient="x w b")
row("group_norm", 32, "x=n,64,56,56 w=64 b=64", "F.group_norm(x, 8, w, b)",
    gradient="x w b")
row("cross_entropy", 8192, "x=n,1000 i=n<1000", "F.cross_entropy(x, i)",
    gradient="x")
row("mse_loss", M, "x=n y=n", "F.mse_loss(x, y)", gradient="x")
row("binary_cross_entropy", M, "x=n y=n:bool",
    "F.binary_cross_entropy_with_logits(x, y)", gradient="x",
    setup=("y = y:float()", "y = y.float()"))

# ---- random numbers
row = Group("random numbers", results=0)
row("rand", M, "", "nacre.rand(n)", numpy="rng.random(n, np.float32)")
row("randn", M, "", "nacre.randn(n)",
    numpy="rng.standard_normal(n, np.float32)")
row("randint", M, "", "nacre.randint(0, 100, {n})",
    "torch.randint(0, 100, (n,))", numpy="rng.integers(0, 100, n)")
row("bernoulli", M, "p=n>0", "nacre.bernoulli(p)",
    setup=("p = p / 2", "p = p / 2"))
row("randperm", M, "", "nacre.randperm(n)", numpy="rng.permutation(n)")
row("multinomial", 10 * K, "p=1000>0", "p:multinomial(n, true)",
    "p.multinomial(n, True)")
row("dropout", M, "x=n", "F.dropout(x, 0.5, true)", "F.dropout(x, 0.5, True)")
row("normal_", M, "x=n", "x:normal_()")
row("exponential_", M, "x=n", "x:exponential_()")

# ---- gradients
row = Group("gradients")
row("chain of functions", 100 * K, "x=n", "(x:sin() * x:exp()):sum()",
    gradient="x")
row("mm 256", 256, "a=n,n b=n,n", "a:mm(b)", gradient="a b", tolerance=1e-3)
row("linear, gelu", 128, "x=n,256 w=256,256 b=256",
    "F.gelu(F.linear(x, w, b))", gradient="x w b", tolerance=1e-3)
row("embedding of 1024", 1024, "w=10000,64 i=n<10000", "F.embedding(i, w)",
    gradient="w")
row("slices", 1024, "x=n,1024", 'x["2:, :"] - x["1:-2, :"]',
    "x[1:] - x[:-1]", gradient="x")
row("sum of broadcast", 4096, "x=n,1024 r=1024", "x * r", gradient="x r",
    tolerance=1e-3)

# ---- short rows, special functions, and what is rarely measured
row = Group("rare")
for call, theirs in (("median(2)", "median(1)"), ("flip(2)", "flip(1)"),
                     ("cumprod(2)", "cumprod(1)"),
                     ("logsumexp(2)", "logsumexp(1)"),
                     ("diff(1, 2)", "diff(dim=1)"),
                     ("argmax(2)", "argmax(1)"), ("std(2)", "std(1)"),
                     ("cumsum(2)", "cumsum(1)"), ("prod(2)", "prod(1)"),
                     ("sort(2)", "sort(1)")):
    row(f"{call.split('(')[0]} of rows of 4", 25 * K, "x=n,4",
        f"x:{call}", f"x.{theirs}", positions="argmax" in call)
row("softplus", M, "x=n", "F.softplus(x)")
row("i0", 100 * K, "x=n", "nacre.i0(x)")
row("lgamma", 100 * K, "x=n>0", "x:lgamma()")
row("digamma", 100 * K, "x=n>0", "x:digamma()")
row("atanh", 100 * K, "x=n>0", "x:atanh()",
    setup=("x = x / 2.1", "x = x / 2.1"))
row("asinh", 100 * K, "x=n", "x:asinh()")
row("huber_loss", M, "x=n y=n", "F.huber_loss(x, y)", gradient="x")
row("prelu", M, "x=n w=1", "F.prelu(x, w)", gradient="x w")
row("bilinear", 128, "x=n,20 y=n,30 w=40,20,30", "F.bilinear(x, y, w)",
    tolerance=1e-3)
row("kron", 32, "a=n,n b=n,n", "nacre.kron(a, b)")
row("vander", 1000, "x=n", "nacre.vander(x, 8)", tolerance=1e-3)
row("trace", 1000, "x=n,n", "x:trace()", tolerance=1e-3)
row("repeat_interleave of 1K", 1000, "x=n", "x:repeat_interleave(3)")
row("one_hot, few", 32, "i=n<10", "F.one_hot(i, 10)")

# ---- small calls
row = Group("small calls")
row("a + b, one element", 1, "a=n b=n", "a + b", numpy="a + b")
row("a:add_(b), one element", 1, "a=n b=n", "a:add_(b)")
row("relu of 16", 16, "x=n", "x:relu()")
row("sum of 16", 16, "x=n", "x:sum()", numpy="x.sum()")
row("mm 4x4", 4, "a=n,n b=n,n", "a:mm(b)", numpy="a @ b")
row("x[2]", 16, "x=n,4", "x[2]", "x[1]", numpy="x[1]")
row("item", 1, "x=n", "x:item()", numpy="x.item()")
row("view", 16, "x=n,4", "x:view(4, n)")
row("zeros 4", 4, "", "nacre.zeros(n)", numpy="np.zeros(n)")
row("softmax of 10", 10, "x=n", "x:softmax(1)", "x.softmax(0)")
row("layers 16-16-4", 1, "x=n,16 w=16,16 b=16 v=4,16 c=4",
    "F.linear(F.relu(F.linear(x, w, b)), v, c)", gradient="w b v c")
row("10000 additions in a loop", 10 * K, "a=1 b=1", "loop()", setup=(lines("""
    function loop()
      local s = a
      for _ = 1, n do s = s + b end
      return s
    end"""), lines("""
    def loop():
        s = a
        for _ in range(n):
            s = s + b
        return s
    """)), tolerance=1e-2)

# ---- training
row = Group("training", tolerance=1e-3)
trained = (lines("""
    function step()
      local loss = F.cross_entropy(net(x), i)
      opt:zero_grad()
      loss:backward()
      opt:step()
      return loss
    end"""), lines("""
    def step():
        loss = F.cross_entropy(net(x), i)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    """))
summed = (lines("""
    function step()
      local y = net(x):sum()
      y:backward()
      return y
    end"""), lines("""
    def step():
        y = net(x)
        y = (y[0] if isinstance(y, tuple) else y).sum()
        y.backward()
        return y
    """))


def step(name, n, operands, ours, theirs=None, how=trained):
    theirs = theirs or ours
    row(name, n, operands, "step()", setup=(ours + "\n" + how[0],
                                            theirs + "\n" + how[1]))


mlp = "net = same(nn.Sequential(nn.Linear(%s), nn.ReLU(), nn.Linear(%s)))\n"
for sizes, last, n in (("64, 64", "64, 10", 32), ("784, 256", "256, 10", 128)):
    for kind in ("SGD", "Adam"):
        step(f"MLP {sizes.replace(', ', '-')}-10, {kind}", n,
             f"x=n,{sizes.split(',')[0]} i=n<10",
             mlp % (sizes, last) + f"opt = optim.{kind}(net, {{lr = 1e-3}})",
             mlp % (sizes, last) +
             f"opt = optim.{kind}(net.parameters(), lr=1e-3)")
step("CNN of 8x8 digits", 32, "x=n,1,8,8 i=n<10", lines("""
    net = same(nn.Sequential(
      nn.Conv2d(1, 16, 3, {padding = 1}), nn.BatchNorm2d(16), nn.ReLU(),
      nn.Conv2d(16, 32, 3, {padding = 1}), nn.BatchNorm2d(32), nn.ReLU(),
      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10)))
    opt = optim.SGD(net, {lr = 1e-3})"""), lines("""
    net = same(nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10)))
    opt = optim.SGD(net.parameters(), lr=1e-3)"""))
step("LSTM 64-64, 20x32", 32, "x=20,n,64", "net = same(nn.LSTM(64, 64))",
     how=summed)
step("GRU 64-64, 20x32", 32, "x=20,n,64", "net = same(nn.GRU(64, 64))",
     how=summed)
packed = (lines("""
    lengths = {}
    for i = 1, n do lengths[i] = 20 - (i - 1) % 20 end
    function step()
      local y = net(x, nil, {lengths = lengths}):sum()
      y:backward()
      return y
    end"""), lines("""
    lengths = [20 - i % 20 for i in range(n)]
    def step():
        y = nn.utils.rnn.pack_padded_sequence(x, lengths,
                                              enforce_sorted=False)
        y = nn.utils.rnn.pad_packed_sequence(net(y)[0])[0].sum()
        y.backward()
        return y
    """))
for kind in ("LSTM", "GRU"):
    step(f"{kind} 64-64, lengths to 20, 32", 32, "x=20,n,64",
         f"net = same(nn.{kind}(64, 64))", how=packed)
step("encoder layer, 8x128x256", 8, "x=n,128,256",
     "net = same(nn.TransformerEncoderLayer(256, 8, 1024, "
     "{dropout = 0, batch_first = true}))",
     "net = same(nn.TransformerEncoderLayer(256, 8, 1024, dropout=0, "
     "batch_first=True))", how=summed)
for kind, count, size in (("Adam", 100, 1000), ("Adam", 4, M),
                          ("SGD", 4, M)):
    more = ((", momentum = 0.9", ", momentum=0.9") if kind == "SGD" else
            ("", ""))
    row(f"{kind} of {count} x {short(size)}", size, "", "step()", setup=(
        lines(f"""
        list = {{}}
        for i = 1, {count} do
          list[i] = nacre.zeros(n):requires_grad_()
          list[i].grad = nacre.ones(n)
        end
        same(list)
        opt = optim.{kind}(list, {{lr = 1e-3{more[0]}}})
        function step() opt:step() return list[1] end"""),
        lines(f"""
        list = [torch.zeros(n).requires_grad_() for _ in range({count})]
        for p in list: p.grad = torch.ones(n)
        same(list)
        opt = optim.{kind}(list, lr=1e-3, fused=True{more[1]})
        def step():
            opt.step()
            return list[0]
        """)))
