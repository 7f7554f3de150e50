-- SPDX-License-Identifier: MIT
-- Convolutions by chance, of sizes that take every way that the CPU has for
-- them: results and gradients are those of unfold and a product in float64.
-- Run by: nacre tests/ops/conv_sizes.lua [seed]

local F, grad = nacre.nn.functional, nacre.autograd.grad
local seed = tonumber(arg and arg[1]) or 1
nacre.manual_seed(seed)
math.randomseed(seed)
local random = math.random
local threads = nacre.get_num_threads()

local function by_products(x, w, bias, o)
  local n, groups = x:size(1), o.groups
  local rows = F.unfold(x, {w:size(3), w:size(4)}, o.dilation, o.padding,
                        o.stride)
  rows = rows:reshape(n, groups, -1, rows:size(3))
  local parts = w:reshape(1, groups, w:size(1) // groups, -1):matmul(rows)
  return parts:reshape(n, w:size(1), -1) + bias:reshape(1, -1, 1)
end

local function options()
  return {groups = random(3) == 1 and random(2, 3) or 1,
          stride = {random(3) == 1 and 2 or 1, random(3) == 1 and 3 or 1},
          padding = {random(0, 3), random(0, 3)},
          dilation = {random(4) == 1 and 2 or 1, random(4) == 1 and 2 or 1}}
end

-- Sizes that are large enough for the kernel.
local function operands(o, dtype)
  local c, out = random(1, 24) * o.groups, random(1, 40) * o.groups
  if random(4) == 1 then c, out = 16 * random(1, 6), 32 * random(1, 5) end
  local k1, k2 = random(1, 5), random(1, 5)
  local h = random(1, 40) + (k1 - 1) * o.dilation[1]
  local v = random(1, 40) + (k2 - 1) * o.dilation[2]
  local n = random(3) == 1 and random(1, 20) or random(1, 3)
  if c % o.groups + out % o.groups > 0 then o.groups = 1 end
  return nacre.randn(n, c, h, v):to(dtype), nacre.randn(out, c // o.groups, k1,
         k2):to(dtype), nacre.randn(out):to(dtype)
end

local function check(what, a, b, dtype, scale)
  local worst = ((a:double() - b):abs():max() / (b:abs():max() + 1)):item()
  assert(worst < (dtype == "float64" and 1e-13 or
                  dtype == "bfloat16" and 0.01 or 3e-6 * scale),
         ("seed %d, %s, %s: %g"):format(seed, what, dtype, worst))
end

for round = 1, 60 do
  local dtype = ({"float64", "bfloat16"})[random(5)] or "float32"
  local o = options()
  local ours, theirs = {operands(o, dtype)}, {}
  for i, t in ipairs(ours) do
    theirs[i] = t:double():requires_grad_()
    t:requires_grad_()
  end
  local what = ("case %d, [%s] [%s] groups %d"):format(round,
    table.concat(ours[1]:size(), "x"), table.concat(ours[2]:size(), "x"),
    o.groups)
  local y = F.conv2d(ours[1], ours[2], ours[3], o)
  local z = by_products(theirs[1], theirs[2], theirs[3], o)
  local scale = math.sqrt(y:numel() / y:size(2))
  check(what, y:reshape(z:size()), z, dtype, scale)
  local g = nacre.randn(z:size()):to(dtype)
  local a = {grad(y:reshape(z:size()), ours,
                  {grad_outputs = g, retain_graph = true})}
  local b = {grad(z, theirs, {grad_outputs = g:double()})}
  for i = 1, 3 do
    check(what .. ", gradient " .. i, a[i], b[i], dtype, scale)
  end
  nacre.set_num_threads(1)
  local alone = {grad(y:reshape(z:size()), ours, {grad_outputs = g})}
  assert(F.conv2d(ours[1], ours[2], ours[3], o) == y, what)
  nacre.set_num_threads(threads)
  for i = 1, 3 do assert(alone[i] == a[i], what) end
end

-- Long sums of few output channels, which one float32 would add up with an
-- error of 3e-6 to 1e-5.
for _, case in ipairs {{1, 1, 2048, 7, 3, 1}, {2, 1, 3000, 5, 3, 1},
                       {3, 2, 1024, 6, 4, 1}, {4, 1, 4096, 4, 2, 2},
                       {1, 4, 2048, 5, 3, 1}, {2, 1, 1024, 9, 5, 2}} do
  local out, n, c, size, kernel, groups = table.unpack(case)
  local x = nacre.rand(n, c, size, size)
  local w = nacre.rand(out, c // groups, kernel, kernel)
  local o = {padding = kernel // 2, groups = groups}
  local y, exact = F.conv2d(x, w, o), F.conv2d(x:double(), w:double(), o)
  local off = ((y:double() - exact):abs():max() / exact:abs():max()):item()
  assert(off < 1.2e-6, ("%d outputs of %d channels: %g"):format(out, c, off))
end
print "conv_sizes: ok"
