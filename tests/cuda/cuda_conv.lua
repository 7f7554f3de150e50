-- SPDX-License-Identifier: MIT
-- Convolutions of halves, and of float32 that may be rounded to TF32, which
-- cuDNN computes where it is: results and both gradients against float32 on the
-- CPU. On the emulated device, which has cuDNN for all sizes, small ones.
-- Run by: nacre tests/cuda/cuda_conv.lua, with a device, or NACRE_CUDA=emulated

local cuda = nacre.cuda
if not cuda.is_available() then skip(cuda.why()) end
local conv2d = nacre.nn.functional.conv2d
local emulated = cuda.get_device_name():find "Emulated" ~= nil
local times = emulated and 1 or 8            -- channels, samples
local size = emulated and 9 or 56

-- {samples, channels, results, kernel, stride, pad, dilation}
local cases = {
  {3, 8, 16, {3, 3}, 1, 1, 1},
  {2, 16, 8, {3, 2}, 2, 0, 1},
  {2, 8, 8, {3, 5}, {1, 2}, {2, 1}, 2},
  {1, 8, 8, {5, 5}, 1, 0, 1},
  {2, 8, 12, {3, 3}, 1, 1, 1},               -- not for tensor cores
}

local function draw(dtype, ...)              -- what the dtype can represent
  return nacre.randn(...):mul(0.25):to(dtype)
end

-- y, and the gradients of x and w, for a gradient g of y
local function all(device, dtype, x, w, g, case)
  x = x:detach():to(device):to(dtype):requires_grad_()
  w = w:detach():to(device):to(dtype):requires_grad_()
  local y = conv2d(x, w, nil, table.unpack(case, 5))
  y:backward(g:to(device):to(dtype))
  return {y, x.grad, w.grad}
end

local bound = {float16 = 1e-3, bfloat16 = 8e-3, float32 = 2e-3}

local function compare(dtype, case)
  local n, c, o, k = case[1] * times, case[2] * times, case[3] * times, case[4]
  local x, w = draw(dtype, n, c, size, size + 3), draw(dtype, o, c, k[1], k[2])
  local g = draw(dtype, conv2d(x:float(), w:float(), nil,
                               table.unpack(case, 5)):size())
  local want = all("cpu", "float32", x, w, g, case)
  local got = all("cuda", dtype, x, w, g, case)
  local again = all("cuda", dtype, x, w, g, case)
  for i, name in ipairs {"result", "gradient of x", "gradient of w"} do
    local off = (got[i]:cpu():float() - want[i]):abs():max():item() /
                want[i]:abs():max():item()
    assert(off <= bound[dtype], ("%s %dx%d, %s: off by %g"):format(
             dtype, k[1], k[2], name, off))
    assert(got[i]:equal(again[i]), "the bits differ from one time to the next")
  end
end

nacre.manual_seed(7)
for _, case in ipairs(cases) do
  compare("float16", case)
  compare("bfloat16", case)
end
local matmul = nacre.backends.cuda.matmul
matmul.allow_tf32 = true
compare("float32", cases[1])
matmul.allow_tf32 = false

-- on two streams, one handle
local a, w = draw("float16", 8, 16, 20, 20):cuda(),
             draw("float16", 32, 16, 3, 3):cuda()
local want = conv2d(a, w)
local s = cuda.Stream()
s:wait_stream(cuda.current_stream())
local got = cuda.stream(s, function() return conv2d(a, w) end)
cuda.current_stream():wait_stream(s)
assert(got:equal(want) and conv2d(a, w):equal(want))
print "cuda_conv: all passed"
