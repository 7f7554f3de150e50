-- SPDX-License-Identifier: MIT
-- What scripts/bench/torch_bench.py measures. Every row:
--   group, name, operands, ours, PyTorch's, goal, goal of the gradient
--
-- Operands: "NAME=SIZES" of normal float32 numbers, or "NAME=SIZES<LIMIT" of
-- positions in a dimension of LIMIT elements. PyTorch's expression is ours if
-- it is nil. A goal is the most that our time may be of PyTorch's; with the
-- second one the gradient to all operands but positions is measured, too.

local cases = {}
local function case(...)
  cases[#cases + 1] = table.pack(...)
end

for _, size in ipairs {{"4096x1024", 1024}, {"64x197x768", 768},
                       {"16384x64", 64}, {"8x1048576", 1048576}} do
  local sizes, n = table.unpack(size)
  case("norm", "layer_norm " .. sizes,
       ("x=%s w=%d b=%d"):format(sizes, n, n),
       ("F.layer_norm(x, %d, w, b)"):format(n),
       ("F.layer_norm(x, (%d,), w, b)"):format(n), 1.1, 1.2)
end
local images = "x=32x64x56x56 w=64 b=64"
case("norm", "batch_norm 32x64x56x56", images,
     "F.batch_norm(x, nil, nil, w, b, true)",
     "F.batch_norm(x, None, None, w, b, True)", 1.1, 1.2)
case("norm", "batch_norm 4096x512", "x=4096x512 w=512 b=512",
     "F.batch_norm(x, nil, nil, w, b, true)",
     "F.batch_norm(x, None, None, w, b, True)", 1.1, 1.2)
case("norm", "group_norm 32x64x56x56, 8", images, "F.group_norm(x, 8, w, b)",
     nil, 1.1, 1.2)
case("norm", "instance_norm 32x64x56x56", images,
     "F.instance_norm(x, nil, nil, w, b)",
     "F.instance_norm(x, None, None, w, b)", 1.1, 1.2)

case("softmax", "softmax 1024x1024", "x=1024x1024", "x:softmax(2)",
     "x.softmax(1)", 1.1, 1.2)
case("softmax", "softmax 8192x1000", "x=8192x1000", "x:softmax(2)",
     "x.softmax(1)", 1.1, 1.2)

case("conv", "conv2d 16x64x56x56, 64 3x3", "x=16x64x56x56 w=64x64x3x3",
     "F.conv2d(x, w, nil, 1, 1)", "F.conv2d(x, w, None, 1, 1)", 1.1, 1.2)
case("conv", "conv2d 128x1x28x28, 32 3x3", "x=128x1x28x28 w=32x1x3x3",
     "F.conv2d(x, w, nil, 1, 1)", "F.conv2d(x, w, None, 1, 1)", 1.1, 1.2)

case("order", "cumsum 16777216", "x=16777216", "x:cumsum(1)", "x.cumsum(0)",
     1.1)
case("order", "cumsum 4096x4096, dim 1", "x=4096x4096", "x:cumsum(1)",
     "x.cumsum(0)", 1.1)
case("order", "sort 1048576", "x=1048576", "x:sort()", "x.sort()", 1.1)
case("order", "sort 4096x256", "x=4096x256", "x:sort(2)", "x.sort(1)", 1.1)
case("order", "scatter_add 1024x1024, dim 1", "x=1024x1024 i=1024x1024<1024",
     "x:scatter_add(1, i, x)", "x.scatter_add(0, i, x)", 1.1)

case("product", "matmul 256", "a=256x256 b=256x256", "a:mm(b)", "a.mm(b)", 1.1,
     1.2)
case("product", "matmul 1024", "a=1024x1024 b=1024x1024", "a:mm(b)", "a.mm(b)",
     1.1)
for _, n in ipairs {1, 10000, 16777216} do
  case("add", "a + b, " .. n, ("a=%d b=%d"):format(n, n), "a + b", nil, 1.1)
end
case("copy", "transpose copy 4096x4096", "x=4096x4096", "x:t():contiguous()",
     "x.t().contiguous()", 1.1)

return cases
