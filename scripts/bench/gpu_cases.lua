-- SPDX-License-Identifier: MIT
-- What scripts/bench/gpu.lua measures. Every row:
--   group, name, operands, our expression, PyTorch's, options
--
-- Operands: "a,b=KIND DTYPE SIZES; ..." makes tensors of these names on the
-- device. Kinds: randn; int, from -100 to 100; mask; index, of a dimension of
-- `limit` elements; pinned and pageable, normal numbers on the host.
--
-- Options:
--   cupy    CuPy's expression, where it has one
--   raw     an expression of gpu_compare.py that is measured beside it
--   goal    our time over PyTorch's is to be at most this
--   moved   what is read and written, by name (y is the result); if it is not
--           given, every operand and the result, once each
--   flops   operations
--   calls   runs in a sample (1)
--   host    the time of the call is taken, not that of the device
--   keeps   the result is an operand
--   limit   see index
--   tf32    float32 products may be rounded to tf32

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
for _, dtype in ipairs { "float32", "bfloat16" } do
  case("elementwise", "a+b " .. dtype,
       ("a,b=randn %s %s"):format(dtype, large), "a + b", nil,
       { goal = 1.03, cupy = dtype == "float32" and "a + b" or nil })
end
case("elementwise", "exp float32", "a=randn float32 " .. large, "a:exp()",
     "a.exp()", { goal = 1.03, cupy = "cp.exp(a)" })
case("elementwise", "sigmoid bfloat16", "a=randn bfloat16 " .. large,
     "a:sigmoid()", "a.sigmoid()", { goal = 1.03 })
case("elementwise", "a+b int8", "a,b=int int8 " .. large, "a + b", nil,
     { goal = 0.95, cupy = "a + b" })
case("elementwise", "lt float32", "a,b=randn float32 " .. large, "a:lt(b)",
     "a < b", { goal = 1.03, cupy = "a < b" })
case("elementwise", "where float32",
     ("m=mask bool %s; a,b=randn float32 %s"):format(large, large),
     "nacre.where(m, a, b)", "torch.where(m, a, b)",
     { goal = 1.03, cupy = "cp.where(m, a, b)" })

case("strided", "matrix + row",
     "a=randn float32 16384x4096; b=randn float32 4096", "a + b", nil, { goal = 1, cupy = "a + b" })
case("strided", "matrix + column",
     "a=randn float32 16384x4096; b=randn float32 16384x1", "a + b", nil,
     { goal = 1, cupy = "a + b" })
case("strided", "half of each row", "a=randn float32 16384x8192",
     "a:narrow(2, 1, #a // 4):neg()", "a.narrow(1, 0, len(a) // 4).neg()",
     { goal = 1, moved = "y y" })
case("strided", "permuted + dense", "a,b=randn float32 512x512x256",
     "a:transpose(1, 2) + b", "a.transpose(0, 1) + b",
     { goal = 1.05, cupy = "a.swapaxes(0, 1) + b" })
case("strided", "transposed + dense", "a,b=randn float32 8192x8192",
     "a:t() + b", "a.t() + b", { goal = 1.05, cupy = "a.T + b" })

case("copies", "float32 to bfloat16", "a=randn float32 " .. large,
     "a:to('bfloat16')", "a.to(torch.bfloat16)", { goal = 1 })
case("copies", "clone float32", "a=randn float32 " .. large, "a:clone()",
     "a.clone()", { goal = 1, cupy = "a.copy()" })
case("copies", "fill float32", "a=randn float32 " .. large, "a:fill_(1)",
     "a.fill_(1)", { goal = 1, moved = "y", keeps = true })
case("copies", "transposed float32", "a=randn float32 8192x8192",
     "a:t():contiguous()", "a.t().contiguous()",
     { goal = 0.95, cupy = "cp.ascontiguousarray(a.T)" })
case("copies", "transposed bfloat16", "a=randn bfloat16 8192x8192",
     "a:t():contiguous()", "a.t().contiguous()", { goal = 0.95 })

for _, op in ipairs { "sum", "max" } do
  local cupy = { "a." .. op .. "()" }
  case("reductions", op .. ", all", "a=randn float32 " .. large,
       ("a:%s()"):format(op), cupy[1], { goal = 1, cupy = cupy[1] })
end
case("reductions", "sum of rows", "a=randn float32 16384x4096", "a:sum(2)",
     "a.sum(1)", { goal = 1, cupy = "a.sum(1)" })
case("reductions", "sum of columns", "a=randn float32 16384x4096", "a:sum(1)",
     "a.sum(0)", { goal = 0.95, cupy = "a.sum(0)" })
case("reductions", "sum, middle", "a=randn float32 256x512x512", "a:sum(2)",
     "a.sum(1)", { goal = 0.95, cupy = "a.sum(1)" })
case("reductions", "max of rows with places", "a=randn float32 16384x4096",
     "a:argmax(2)", "a.argmax(1)", { goal = 1, cupy = "a.argmax(1)" })
case("reductions", "var of rows", "a=randn float32 16384x4096", "a:var(2)",
     "a.var(1)", { goal = 1 })

for _, columns in ipairs { 1024, 4096, 16384, 65536, 262144 } do
  local rows = (1 << 26) // columns
  for _, op in ipairs { "softmax", "log_softmax" } do
    case("softmax", ("%s of rows of %d"):format(op, columns),
         ("a=randn float32 %dx%d"):format(rows, columns),
         ("a:%s(2)"):format(op), ("a.%s(1)"):format(op),
         { goal = columns > 16384 and 0.75 or 0.9 })
  end
end
case("softmax", "softmax of rows of 4096, bfloat16",
     "a=randn bfloat16 16384x4096", "a:softmax(2)", "a.softmax(1)",
     { goal = 0.9 })

case("scans", "cumsum, one dimension", "a=randn float32 " .. large,
     "a:cumsum(1)", "a.cumsum(0)", { goal = 1, cupy = "a.cumsum()" })
case("scans", "cumsum of rows", "a=randn float32 8192x8192", "a:cumsum(2)",
     "a.cumsum(1)", { goal = 0.8, cupy = "a.cumsum(1)" })
case("scans", "cumsum of columns", "a=randn float32 8192x8192", "a:cumsum(1)",
     "a.cumsum(0)", { goal = 0.8, cupy = "a.cumsum(0)" })

case("indexing", "rows of 512 bytes",
     "a=randn float32 1000000x128; i=index int64 500000", "a[i]", nil,
     { goal = 1, moved = "y y i", limit = 1000000, cupy = "a[i]" })
case("indexing", "single elements",
     "a=randn float32 67108864; i=index int64 16777216", "a[i]", nil,
     { goal = 1, moved = "y y i", limit = 67108864, cupy = "a[i]" })
case("indexing", "by a mask", "a=randn float32 67108864; m=mask bool 67108864",
     "a[m]", nil, { goal = 1, cupy = "a[m]" })

matmul("float32", 8192, {})
matmul("float32", 8192, { tf32 = true, label = "float32 8192, tf32" })
matmul("bfloat16", 8192, {})
matmul("float16", 8192, {})
matmul("float64", 8192, {})
case("products", "batch of 64, bfloat16 1024",
     "a,b=randn bfloat16 64x1024x1024", "a:bmm(b)", "a.bmm(b)",
     { goal = 1.02, flops = 64 * 2 * 1024 ^ 3 })
case("products", "heads side by side, bfloat16",
     "a,b=randn bfloat16 32x512x16x64",
     "a:transpose(2, 3):matmul(b:permute(1, 3, 4, 2))",
     "a.transpose(1, 2).matmul(b.permute(0, 2, 3, 1))",
     { goal = 1.02, flops = 32 * 16 * 2 * 512 * 512 * 64 })
case("products", "16 rows, bfloat16",
     "a=randn bfloat16 16x8192; b=randn bfloat16 8192x8192", "a:mm(b)",
     "a.mm(b)", { goal = 1, calls = 4 })
case("products", "matrix and vector, float32",
     "a=randn float32 8192x8192; b=randn float32 8192", "a:mv(b)", "a.mv(b)",
     { goal = 1 })
case("products", "float32 128", "a,b=randn float32 128x128", "a:mm(b)",
     "a.mm(b)", { goal = 1, calls = 20 })

case("host", "a+b of 1000 elements, submitted", "a,b=randn float32 1000",
     "a + b", nil, { goal = 0.6, host = true, calls = 400, cupy = "a + b" })
case("host", "a:add_(b) of 1000 elements, submitted",
     "a,b=randn float32 1000", "a:add_(b)", "a.add_(b)",
     { goal = 0.6, host = true, calls = 400, keeps = true })
case("host", "view", "a=randn float32 1000", "a:view(10, 100)",
     "a.view(10, 100)", { goal = 0.5, host = true, calls = 4000 })

case("transfers", "to the device, 1 GiB pinned",
     "p=pinned float32 268435456; a=randn float32 268435456",
     "a:copy_(p, true)", "a.copy_(p, non_blocking=True)",
     { goal = 1, moved = "y", keeps = true, raw = "raw(a, p)" })
case("transfers", "to the host, 1 GiB pinned",
     "p=pinned float32 268435456; a=randn float32 268435456",
     "p:copy_(a, true)", "p.copy_(a, non_blocking=True)",
     { goal = 1, moved = "y", keeps = true, raw = "raw(p, a)" })
case("transfers", "to the device, 256 MiB pageable",
     "p=pageable float32 67108864; a=randn float32 67108864", "a:copy_(p)",
     "a.copy_(p)", { goal = 0.5, moved = "y", keeps = true })
case("transfers", "to the host, 256 MiB pageable",
     "p=pageable float32 67108864; a=randn float32 67108864", "p:copy_(a)",
     "p.copy_(a)", { goal = 0.5, moved = "y", keeps = true })

return cases
