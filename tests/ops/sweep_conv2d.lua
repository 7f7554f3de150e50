-- SPDX-License-Identifier: MIT
-- Small convolutions of two dimensions, their gradients, and transposed ones
-- with theirs, against sums over slices in float64: kernels, strides,
-- dilations, paddings, groups, channels last and other layouts.
-- Run by: nacre tests/ops/sweep_conv2d.lua [part=N] [seed=N] [only=PATTERN]
--   only= is for the words of a case, such as "depthwise.*bfloat16"

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 11}
local by_slices = dofile(here .. "../lib/conv_slices.lua")
local F, grad = nacre.nn.functional, nacre.autograd.grad

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
local function outcome(f, x, w, g)
  x, w = x:detach():requires_grad_(), w:detach():requires_grad_()
  local y = f(x, w)
  return {y:detach(), grad(y, {x, w}, {grad_outputs = g})}
end

local limits = {float32 = 2e-6, float64 = 1e-14, bfloat16 = 0.01}

local function compare(what, want, got, dtype)
  for i, part in ipairs {"result", "gradient of the input",
                         "gradient of the weight"} do
    sweep.check(sweep.off(want[i], got[i], limits[dtype]), "%s, %s", what, part)
  end
end

local function try(what, layout, kind, o, k, dtype)
  local lay, cin, cout = layouts[layout], kind[2], kind[3]
  local reach = {o.dilation[1] * (k[1] - 1), o.dilation[2] * (k[2] - 1)}
  local size = {reach[1] + math.random(1, 9), reach[2] + math.random(1, 9)}
  local x = nacre.randn(math.random(1, 4), cin, size[1], size[2]):to(dtype)
  local w = nacre.randn(cout, cin // kind[4], k[1], k[2]):to(dtype)
  local function reference(a, b) return by_slices.sum(a, b, o) end
  local shape = reference(x:double(), w:double()):size()
  local g = nacre.randn(shape):to(dtype)
  local want = outcome(reference, x:double(), w:double(), g:double())
  compare(what, want, outcome(function(a, b)
    return F.conv2d(a, b, nil, o.stride, o.padding, o.dilation, o.groups)
  end, lay(x), lay(w), lay(g)), dtype)
  local left = {}
  for d = 1, 2 do
    left[d] = (size[d] + 2 * o.padding[d] - reach[d] - 1) % o.stride[d]
  end
  compare("transposed " .. what, {want[2], want[1], want[3]},
          outcome(function(a, b)
    return F.conv_transpose2d(a, b, nil, o.stride, o.padding, left, o.groups,
                              o.dilation)
  end, lay(g), lay(w), lay(x)), dtype)
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
sweep.finish(50000)
