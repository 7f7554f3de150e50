-- SPDX-License-Identifier: MIT
-- Convolutions of two dimensions and their gradients against sums over slices
-- in float64: small ones and transposed ones of all kernels, strides,
-- dilations, paddings, groups, channels last and other layouts; and by chance
-- of sizes that take every way that the CPU has for them, on one thread and on
-- several.
-- Run by: nacre tests/ops/sweep_conv2d.lua [part=N] [seed=N] [only=PATTERN]
--   only= is for the words of a case, such as "depthwise.*bfloat16"

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 11}
local by_slices = dofile(here .. "../lib/conv_slices.lua")
local F, grad, random = nacre.nn.functional, nacre.autograd.grad, math.random
local threads = nacre.get_num_threads()

local layouts = {
  "channels last", "dense", "stepped", "transposed",
  ["channels last"] = function(x)
    return x:permute(1, 3, 4, 2):contiguous():clone():permute(1, 4, 2, 3)
  end,
  dense = sweep.layouts.dense, stepped = sweep.layouts.stepped,
  transposed = sweep.layouts.transposed,
}

-- Channels of the input, of the output, and groups.
local channels = {
  {"plain", 3, 5, 1}, {"groups", 4, 6, 2}, {"depthwise", 5, 5, 5},
  {"multiplied depthwise", 3, 6, 3}, {"wide", 16, 32, 1},
}

-- The result, and the gradients of a sum weighted with g.
local function outcome(f, g, ...)
  local given = {}
  for i, t in ipairs {...} do given[i] = t:detach():requires_grad_() end
  local y = f(table.unpack(given))
  return {y:detach(), grad(y, given, {grad_outputs = g})}
end

local limits = {float32 = 2e-6, float64 = 1e-14, bfloat16 = 0.01}

local function compare(what, want, got, limit)
  for i, part in ipairs {"result", "gradient of the input",
                         "gradient of the weight", "gradient of the bias"} do
    if want[i] then
      sweep.check(sweep.off(want[i], got[i], limit), "%s, %s", what, part)
    end
  end
end

local function reference(o)
  return function(x, w, bias)
    local y = by_slices.sum(x, w, o)
    return bias and y + bias:reshape(1, -1, 1, 1) or y
  end
end

local function convolve(o)
  return function(x, w, bias) return F.conv2d(x, w, bias, o) end
end

-- ---- small ones

local function try(what, layout, kind, o, k, dtype)
  local lay, cin, cout = layouts[layout], kind[2], kind[3]
  local reach = {o.dilation[1] * (k[1] - 1), o.dilation[2] * (k[2] - 1)}
  local size = {reach[1] + random(1, 9), reach[2] + random(1, 9)}
  local x = nacre.randn(random(1, 4), cin, size[1], size[2]):to(dtype)
  local w = nacre.randn(cout, cin // kind[4], k[1], k[2]):to(dtype)
  local shape = reference(o)(x:double(), w:double()):size()
  local g = nacre.randn(shape):to(dtype)
  local want = outcome(reference(o), g:double(), x:double(), w:double())
  compare(what, want, outcome(convolve(o), lay(g), lay(x), lay(w)),
          limits[dtype])
  local left = {}
  for d = 1, 2 do
    left[d] = (size[d] + 2 * o.padding[d] - reach[d] - 1) % o.stride[d]
  end
  compare("transposed " .. what, {want[2], want[1], want[3]},
          outcome(function(a, b)
    return F.conv_transpose2d(a, b, nil, o.stride, o.padding, left, o.groups,
                              o.dilation)
  end, lay(x), lay(g), lay(w)), limits[dtype])
end

local steps = {{1, 1}, {2, 2}, {1, 2}, {3, 1}}
for kind, k, stride, dilation, padding, layout, dtype in
    sweep.cases(channels, {{1, 1}, {3, 3}, {2, 3}, {5, 1}}, steps, steps,
                {{0, 0}, {1, 1}, {0, 2}}, layouts,
                {"float32", "float64", "bfloat16"}) do
  local o = {stride = stride, dilation = dilation, padding = padding,
             groups = kind[4]}
  local what = ("%s %dx%d, %s, %s,"):format(kind[1], k[1], k[2], layout,
                                           dtype)
  for _, name in ipairs {"stride", "dilation", "padding"} do
    what = ("%s %s %d,%d"):format(what, name, o[name][1], o[name][2])
  end
  if sweep.wanted(what) then try(what, layout, kind, o, k, dtype) end
end

-- ---- of many sizes

local function any_options()
  return {groups = random(3) == 1 and random(2, 3) or 1,
          stride = {random(3) == 1 and 2 or 1, random(3) == 1 and 3 or 1},
          padding = {random(0, 3), random(0, 3)},
          dilation = {random(4) == 1 and 2 or 1, random(4) == 1 and 2 or 1}}
end

-- Sizes that are large enough for the kernel.
local function any_operands(o, dtype)
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

local on_cpu = nacre.get_default_device() == "cpu"
for round = 1, on_cpu and 60 or 0 do
  local dtype = ({"float64", "bfloat16"})[random(5)] or "float32"
  local o = any_options()
  local x, w, bias = any_operands(o, dtype)
  local what = ("case %d, [%s] [%s] groups %d, %s"):format(round,
    table.concat(x:size(), "x"), table.concat(w:size(), "x"), o.groups, dtype)
  if sweep.wanted(what) then
    local g = nacre.randn(F.conv2d(x, w, bias, o):size()):to(dtype)
    local want = outcome(reference(o), g:double(), x:double(), w:double(),
                         bias:double())
    local got = outcome(convolve(o), g, x, w, bias)
    local rounded = dtype == "float64" and 10 or 1.5
    compare(what, want, got, dtype == "bfloat16" and 0.01 or
            rounded * limits[dtype] * math.sqrt(g:numel() / g:size(2)))
    nacre.set_num_threads(1)
    for i, alone in ipairs(outcome(convolve(o), g, x, w, bias)) do
      sweep.check(sweep.differs(got[i], alone), "%s on one thread, %d", what, i)
    end
    nacre.set_num_threads(threads)
  end
end

-- Long sums of few output channels, which one float32 would add up with an
-- error of 3e-6 to 1e-5.
local long = {{1, 1, 2048, 7, 3, 1}, {2, 1, 3000, 5, 3, 1},
              {3, 2, 1024, 6, 4, 1}, {4, 1, 4096, 4, 2, 2},
              {1, 4, 2048, 5, 3, 1}, {2, 1, 1024, 9, 5, 2}}
for _, case in ipairs(on_cpu and long or {}) do
  local out, n, c, size, kernel, groups = table.unpack(case)
  local x = nacre.rand(n, c, size, size)
  local w = nacre.rand(out, c // groups, kernel, kernel)
  local o = {padding = kernel // 2, groups = groups}
  local y, exact = F.conv2d(x, w, o), F.conv2d(x:double(), w:double(), o)
  local off = ((y:double() - exact):abs():max() / exact:abs():max()):item()
  sweep.check(off >= 1.2e-6 and ("off by %g"):format(off) or nil,
              "%d outputs of %d channels", out, c)
end
sweep.finish(50000)
