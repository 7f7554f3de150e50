-- SPDX-License-Identifier: MIT
-- What scripts/bench/gpu.lua measures. Every row:
--   group, name, operands, our expression, PyTorch's, options
--
-- Operands: "a,b=KIND DTYPE SIZES; ..." makes tensors of these names on the
-- device. Kinds: randn; image, the same, to PyTorch with its channels last;
-- int, from -100 to 100; mask; index, of a dimension of `limit` elements;
-- pinned and pageable, normal numbers on the host.
--
-- Options:
--   cupy    CuPy's expression, where it has one
--   raw     an expression of gpu_compare.py that is measured beside it
--   goal    our time over PyTorch's should be at most this
--   moved   what is read and written, by name (y is the result); if it is not
--           given, every operand and the result, once each
--   flops   operations
--   calls   runs in a sample (1)
--   host    the time of the call is taken, not that of the device
--   keeps   the result is an operand
--   limit   see index
--   tf32    float32 products may be rounded to tf32
--   deterministic   PyTorch is to give the same bits each time, as we do

local cases = {}
local function case(group, name, operands, ours, torch, options)
  options = options or {}
  options.group, options.name, options.operands = group, name, operands
  options.ours, options.torch = ours, torch or ours
  cases[#cases + 1] = options
end

local function matmul(dtype, n, options)
  options.flops, options.goal = 2 * n ^ 3, 1.02
  case("products", options.label or ("%s %d"):format(dtype, n),
       ("a,b=randn %s %dx%d"):format(dtype, n, n), "a:mm(b)", "a.mm(b)",
       options)
end

local large = "67108864"
for _, dtype in ipairs {"float32", "bfloat16"} do
  case("elementwise", "a+b " .. dtype,
       ("a,b=randn %s %s"):format(dtype, large), "a + b", nil,
       {goal = 1.03, cupy = dtype == "float32" and "a + b" or nil})
end
case("elementwise", "exp float32", "a=randn float32 " .. large, "a:exp()",
     "a.exp()", {goal = 1.03, cupy = "cp.exp(a)"})
case("elementwise", "sigmoid bfloat16", "a=randn bfloat16 " .. large,
     "a:sigmoid()", "a.sigmoid()", {goal = 1.03})
case("elementwise", "a+b int8", "a,b=int int8 " .. large, "a + b", nil,
     {goal = 0.95, cupy = "a + b"})
case("elementwise", "a and b, bool", "a,b=mask bool " .. large,
     "a:logical_and(b)", "a.logical_and(b)",
     {goal = 0.95, cupy = "cp.logical_and(a, b)"})
case("elementwise", "lt float32", "a,b=randn float32 " .. large, "a:lt(b)",
     "a < b", {goal = 1.03, cupy = "a < b"})
case("elementwise", "where float32",
     ("m=mask bool %s; a,b=randn float32 %s"):format(large, large),
     "nacre.where(m, a, b)", "torch.where(m, a, b)",
     {goal = 1.03, cupy = "cp.where(m, a, b)"})

case("strided", "matrix + row",
     "a=randn float32 16384x4096; b=randn float32 4096", "a + b", nil,
     {goal = 1, cupy = "a + b"})
case("strided", "matrix + column",
     "a=randn float32 16384x4096; b=randn float32 16384x1", "a + b", nil,
     {goal = 1, cupy = "a + b"})
case("strided", "half of each row", "a=randn float32 16384x8192",
     "a:narrow(2, 1, #a // 4):neg()", "a.narrow(1, 0, len(a) // 4).neg()",
     {goal = 1, moved = "y y"})
case("strided", "permuted + dense", "a,b=randn float32 512x512x256",
     "a:transpose(1, 2) + b", "a.transpose(0, 1) + b",
     {goal = 1.05, cupy = "a.swapaxes(0, 1) + b"})
case("strided", "transposed + dense", "a,b=randn float32 8192x8192",
     "a:t() + b", "a.t() + b", {goal = 1.05, cupy = "a.T + b"})

case("copies", "float32 to bfloat16", "a=randn float32 " .. large,
     "a:to('bfloat16')", "a.to(torch.bfloat16)", {goal = 1})
case("copies", "bfloat16 to float32", "a=randn bfloat16 " .. large,
     "a:to('float32')", "a.to(torch.float32)", {goal = 1})
case("copies", "clone float32", "a=randn float32 " .. large, "a:clone()",
     "a.clone()", {goal = 1, cupy = "a.copy()"})
case("copies", "fill float32", "a=randn float32 " .. large, "a:fill_(1)",
     "a.fill_(1)", {goal = 1, moved = "y", keeps = true})
case("copies", "transposed float32", "a=randn float32 8192x8192",
     "a:t():contiguous()", "a.t().contiguous()",
     {goal = 0.95, cupy = "cp.ascontiguousarray(a.T)"})
case("copies", "transposed bfloat16", "a=randn bfloat16 8192x8192",
     "a:t():contiguous()", "a.t().contiguous()", {goal = 0.95})
case("copies", "transposed int8", "a=int int8 16384x16384",
     "a:t():contiguous()", "a.t().contiguous()", {goal = 0.95})
case("copies", "transposed float32 to bfloat16", "a=randn float32 8192x8192",
     "a:t():to('bfloat16'):contiguous()",
     "a.t().to(torch.bfloat16, memory_format=torch.contiguous_format)",
     {goal = 1})

for _, op in ipairs {"sum", "max"} do
  local cupy = {"a." .. op .. "()"}
  case("reductions", op .. ", all", "a=randn float32 " .. large,
       ("a:%s()"):format(op), cupy[1], {goal = 1, cupy = cupy[1]})
end
case("reductions", "sum of rows", "a=randn float32 16384x4096", "a:sum(2)",
     "a.sum(1)", {goal = 1, cupy = "a.sum(1)"})
case("reductions", "sum of rows of 64, bfloat16",
     "a=randn bfloat16 2097152x64", "a:sum(2)", "a.sum(1)", {goal = 1})
case("reductions", "sum of columns", "a=randn float32 16384x4096", "a:sum(1)",
     "a.sum(0)", {goal = 0.95, cupy = "a.sum(0)"})
case("reductions", "sum, middle", "a=randn float32 256x512x512", "a:sum(2)",
     "a.sum(1)", {goal = 0.95, cupy = "a.sum(1)"})
case("reductions", "max of rows with places", "a=randn float32 16384x4096",
     "a:argmax(2)", "a.argmax(1)", {goal = 1, cupy = "a.argmax(1)"})
case("reductions", "var of rows", "a=randn float32 16384x4096", "a:var(2)",
     "a.var(1)", {goal = 1})

for _, columns in ipairs {1024, 4096, 16384, 65536, 262144} do
  local rows = (1 << 26) // columns
  for _, op in ipairs {"softmax", "log_softmax"} do
    case("softmax", ("%s of rows of %d"):format(op, columns),
         ("a=randn float32 %dx%d"):format(rows, columns),
         ("a:%s(2)"):format(op), ("a.%s(1)"):format(op),
         {goal = columns > 16384 and 0.75 or 0.9})
  end
end
case("softmax", "softmax of rows of 4096, bfloat16",
     "a=randn bfloat16 16384x4096", "a:softmax(2)", "a.softmax(1)",
     {goal = 0.9})

case("softmax", "log_softmax of rows of 128256, bfloat16",
     "a=randn bfloat16 1024x128256", "a:log_softmax(2)", "a.log_softmax(1)",
     {goal = 0.75})

for _, norm in ipairs {"layer_norm", "rms_norm"} do
  case("norms", norm .. " of rows of 4096", "a=randn float32 16384x4096",
       ("nacre.nn.functional.%s(a, { a:size(2) })"):format(norm),
       ("torch.nn.functional.%s(a, (a.shape[1],))"):format(norm),
       {goal = 0.9})
  case("norms", norm .. " and its gradient", "a,b=randn float32 16384x4096",
       ([[(function()
            local x = a:detach():requires_grad_()
            nacre.nn.functional.%s(x, { a:size(2) }):backward(b)
            return x.grad
          end)()]]):format(norm),
       ("torch.autograd.grad(torch.nn.functional.%s(x := a.detach()" ..
        ".requires_grad_(), (a.shape[1],)), x, b)[0]"):format(norm),
       {goal = 0.9, moved = "a y a b y"})
end
case("norms", "layer_norm, weights and their gradients",
     "a,b=randn float32 16384x4096; m=randn float32 4096",
     [[(function()
         local x, w = a:detach():requires_grad_(), m:detach():requires_grad_()
         nacre.nn.functional.layer_norm(x, { a:size(2) }, w, w):backward(b)
         return x.grad
       end)()]],
     "torch.autograd.grad(torch.nn.functional.layer_norm(" ..
     "x := a.detach().requires_grad_(), (a.shape[1],), " ..
     "w := m.detach().requires_grad_(), w), (x, w), b)[0]",
     {goal = 0.9, moved = "a y a b y"})

case("scans", "cumsum, one dimension", "a=randn float32 " .. large,
     "a:cumsum(1)", "a.cumsum(0)", {goal = 1, cupy = "a.cumsum()"})
case("scans", "cumsum of int64, one dimension", "a=int int64 " .. large,
     "a:cumsum(1)", "a.cumsum(0)", {goal = 1, cupy = "a.cumsum()"})
case("scans", "cumsum of rows", "a=randn float32 8192x8192", "a:cumsum(2)",
     "a.cumsum(1)", {goal = 0.8, cupy = "a.cumsum(1)"})
case("scans", "cumsum of columns", "a=randn float32 8192x8192", "a:cumsum(1)",
     "a.cumsum(0)", {goal = 0.8, cupy = "a.cumsum(0)"})

case("indexing", "rows of 512 bytes",
     "a=randn float32 1000000x128; i=index int64 500000", "a[i]", nil,
     {goal = 1, moved = "y y i", limit = 1000000, cupy = "a[i]"})
case("indexing", "rows of 512 bytes, index_select",
     "a=randn float32 1000000x128; i=index int64 500000",
     "a:index_select(1, i)", "a.index_select(0, i)",
     {goal = 1, moved = "y y i", limit = 1000000})
case("indexing", "rows of 8 KiB, embedding",
     "a=randn bfloat16 128256x4096; i=index int64 16384",
     "nacre.nn.functional.embedding(i, a)",
     "torch.nn.functional.embedding(i, a)",
     {goal = 1, moved = "y y i", limit = 128256})
case("indexing", "gather along rows",
     "a=randn float32 16384x4096; i=index int64 16384x4096",
     "a:gather(2, i)", "a.gather(1, i)", {goal = 1, limit = 4096})
for _, way in ipairs {"atomic", "deterministic"} do
  case("indexing", "index_add_, to PyTorch's " .. way .. " one",
       "a=randn float32 1000000x128; b=randn float32 500000x128; " ..
       "i=index int64 500000", "a:index_add_(1, i, b)",
       "a.index_add_(0, i, b)",
       {goal = 1, moved = "b b b i", limit = 1000000, keeps = true,
        deterministic = way == "deterministic"})
end
case("indexing", "scatter_add_ along rows",
     "a,b=randn float32 16384x1024; i=index int64 16384x1024",
     "a:scatter_add_(2, i, b)", "a.scatter_add_(1, i, b)",
     {goal = 1, moved = "a a b i", limit = 1024, keeps = true})
case("indexing", "single elements",
     "a=randn float32 67108864; i=index int64 16777216", "a[i]", nil,
     {goal = 1, moved = "y y i", limit = 67108864, cupy = "a[i]"})
case("indexing", "by a mask", "a=randn float32 67108864; m=mask bool 67108864",
     "a[m]", nil, {goal = 1, cupy = "a[m]"})

case("sorting", "argsort, one dimension of 2^28",
     "a=randn float32 268435456", "a:argsort()", "a.argsort()",
     {goal = 0.9})
for _, columns in ipairs {256, 1024, 4096} do
  case("sorting", ("argsort of rows of %d"):format(columns),
       ("a=randn float32 %dx%d"):format((1 << 26) // columns, columns),
       "a:argsort(2)", "a.argsort(1)", {goal = 1})
end
for _, case_ in ipairs {{32768, 64}, {131072, 256}, {1048576, 256},
                        {131072, 2048}} do
  local columns, k = table.unpack(case_)
  case("sorting", ("topk of %d in rows of %d"):format(k, columns),
       ("a=randn float32 %dx%d"):format((1 << 26) // columns, columns),
       ("(a:topk(math.min(%d, a:size(2)), 2))"):format(k),
       ("a.topk(min(%d, a.shape[1]), 1)[0]"):format(k),
       {goal = k <= 256 and 0.5 or 1, moved = "a y y y"})
end

matmul("float32", 8192, {})
matmul("float32", 8192, {tf32 = true, label = "float32 8192, tf32"})
for _, n in ipairs {4096, 8192, 16384} do matmul("bfloat16", n, {}) end
matmul("float16", 8192, {})
matmul("float64", 8192, {})
case("products", "batch of 64, bfloat16 1024",
     "a,b=randn bfloat16 64x1024x1024", "a:bmm(b)", "a.bmm(b)",
     {goal = 1.02, flops = 64 * 2 * 1024 ^ 3})
case("products", "heads side by side, bfloat16",
     "a,b=randn bfloat16 32x512x16x64",
     "a:transpose(2, 3):matmul(b:permute(1, 3, 4, 2))",
     "a.transpose(1, 2).matmul(b.permute(0, 2, 3, 1))",
     {goal = 1.02, flops = 32 * 16 * 2 * 512 * 512 * 64})
case("products", "16 rows, bfloat16",
     "a=randn bfloat16 16x8192; b=randn bfloat16 8192x8192", "a:mm(b)",
     "a.mm(b)", {goal = 1, calls = 4})
case("products", "matrix and vector, float32",
     "a=randn float32 8192x8192; b=randn float32 8192", "a:mv(b)", "a.mv(b)",
     {goal = 1})
case("products", "float32 128", "a,b=randn float32 128x128", "a:mm(b)",
     "a.mm(b)", {goal = 1, calls = 20})

case("products", "linear with bias and gelu, bfloat16",
     "a=randn bfloat16 8192x4096; b=randn bfloat16 4096x4096; " ..
     "p=randn bfloat16 4096", "nacre.nn.functional.linear(a, b, p):gelu()",
     "torch.nn.functional.gelu(torch.nn.functional.linear(a, b, p))",
     {goal = 0.93, flops = 2 * 8192 * 4096 ^ 2})
case("products", "conv2d 3x3, bfloat16",
     "a=image bfloat16 64x256x56x56; b=image bfloat16 256x256x3x3",
     "nacre.nn.functional.conv2d(a, b, nil, 1, 1)",
     "torch.nn.functional.conv2d(a, b, None, 1, 1)",
     {goal = 1.03, flops = 2 * 64 * 256 * 56 * 56 * 256 * 9})
for _, size in ipairs {64, 128} do
  case("products", ("attention, heads of %d, bfloat16"):format(size),
       ("a,b,p=randn bfloat16 4x16x4096x%d"):format(size),
       "nacre.nn.functional.scaled_dot_product_attention(a, b, p)",
       "torch.nn.functional.scaled_dot_product_attention(a, b, p)",
       {goal = 1.03, flops = 4 * 4 * 16 * 4096 ^ 2 * size})
end

case("fused", "sigmoid(a*b + c) float32",
     "a,b,p=randn float32 " .. large, "fused.chain(a, b, p)",
     "torch.sigmoid(a * b + p)", {goal = 0.6})
case("fused", "gelu by its formula, float32", "a=randn float32 " .. large,
     "fused.gelu(a)", "0.5 * a * (1 + torch.tanh(0.7978845608028654 * " ..
     "(a + 0.044715 * a * a * a)))", {goal = 0.3})
case("fused", "gelu by its formula, bfloat16", "a=randn bfloat16 " .. large,
     "fused.gelu(a)", "0.5 * a * (1 + torch.tanh(0.7978845608028654 * " ..
     "(a + 0.044715 * a * a * a)))", {goal = 0.3})
case("fused", "softmax by hand, rows of 1024", "a=randn float32 65536x1024",
     "fused.softmax(a)",
     "(lambda e: e / e.sum(-1, True))((a - a.amax(-1, True)).exp())",
     {goal = 0.5})
case("host", "a+b of 1000 elements, submitted", "a,b=randn float32 1000",
     "a + b", nil, {goal = 0.6, host = true, calls = 400, cupy = "a + b"})
case("host", "a:add_(b) of 1000 elements, submitted",
     "a,b=randn float32 1000", "a:add_(b)", "a.add_(b)",
     {goal = 0.6, host = true, calls = 400, keeps = true})
case("host", "view", "a=randn float32 1000", "a:view(10, 100)",
     "a.view(10, 100)", {goal = 0.5, host = true, calls = 4000})
case("host", "a block of the device, taken and given back",
     "a=randn float32 1000", "nacre.empty_like(a)", "torch.empty_like(a)",
     {goal = 0.7, host = true, calls = 4000})

case("transfers", "to the device, 1 GiB pinned",
     "p=pinned float32 268435456; a=randn float32 268435456",
     "a:copy_(p, true)", "a.copy_(p, non_blocking=True)",
     {goal = 1, moved = "y", keeps = true, raw = "raw(a, p)"})
case("transfers", "to the host, 1 GiB pinned",
     "p=pinned float32 268435456; a=randn float32 268435456",
     "p:copy_(a, true)", "p.copy_(a, non_blocking=True)",
     {goal = 1, moved = "y", keeps = true, raw = "raw(p, a)"})
case("transfers", "to the device, 256 MiB pageable",
     "p=pageable float32 67108864; a=randn float32 67108864", "a:copy_(p)",
     "a.copy_(p)", {goal = 0.5, moved = "y", keeps = true})
case("transfers", "to the host, 256 MiB pageable",
     "p=pageable float32 67108864; a=randn float32 67108864", "p:copy_(a)",
     "p.copy_(a)", {goal = 0.5, moved = "y", keeps = true})

return cases
