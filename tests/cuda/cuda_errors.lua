-- SPDX-License-Identifier: MIT
-- What goes wrong on a CUDA device, and where that is said: a device works
-- later than it is asked, so its errors come with the next thing that waits.
-- Run by: nacre tests/cuda/cuda_errors.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local program = dofile(here .. "../lib/program.lua")
local cuda, fails = nacre.cuda, C.fails
if not cuda.is_available() then skip(cuda.why()) end

local g = nacre.arange(12, {device = 0}):view(3, 4)
local function index(...) return nacre.tensor({...}, {device = 0}) end

-- The work raises text, at the latest when the device is waited for, and is
-- then forgotten.
local function late(text, f, ...)
  local e = fails(text, nil, function(...)
    f(...)
    cuda.synchronize()
  end, ...)
  cuda.synchronize()
  assert((g + 1):sum():item() == 78, "everything goes on")
  return e
end

-- ---- wrong indices, found by the device

local e = late("index 4 is outside dim 1 of size 3", function()
  return g[index(1, 4)]
end)
assert(e.code == "EINDEX")
late("index -4 is outside dim 1 of size 3", function() return g[index(-4)] end)
late("index 0", function() return g[index(1, 0, 2)] end)
late("index 5 is outside dim 2 of size 4", function()
  return g[{{}, index(5)}]
end)
local copy = g:clone()
late("index 9", function() copy[index(9)] = 1 end)
late("index 9", function() return g[index(9)]:sum():item() end)
late("index 9", function() return g[index(9)]:cpu() end)
late("index 9", function() return g[index(9)]:totable() end)
late("index 9", function() return tostring(g[index(9)]) end)
-- classes and rows, from 1
do
  local F, x = nacre.nn.functional, g:float()
  for _, loss in ipairs {F.cross_entropy, F.nll_loss} do
    late("class 5 is outside the 4 classes", loss, x, index(1, 5, 2))
    late("class 0: classes count from 1", loss, x, index(1, 0, 2))
    late("class -1 is outside the 4 classes", loss, x, index(1, -1, 2))
  end
  late("index 5 is outside dim 2 of size 4", F.multi_margin_loss, x,
       index(1, 5, 2))
  late("index 0", F.multi_margin_loss, x, index(1, -1, 2))
  for _, rows in ipairs {F.embedding, F.embedding_bag} do
    late("index 4 is outside dim 1 of size 3", rows, index(1, 4):view(1, 2), x)
    late("index 0", rows, index(1, -1):view(1, 2), x)
  end
end
-- the first of several is told
late("index 9", function()
  local _ = g[index(9)]
  cuda.synchronize()
end)

-- who waits is not who failed
for _, wait in ipairs {g.cpu, g.totable, tostring,
                       function() nacre.synchronize() end,
                       function(t) return t:sum():item() end,
                       function(t) return t:nonzero() end} do
  local y = g[index(9)]
  local ok, err = pcall(wait, y)
  if ok then ok, err = pcall(cuda.synchronize) end
  if os.getenv "NACRE_CUDA_SYNC" == nil then
    assert(not ok and err.op == "cuda:0" and #err.args == 0, tostring(err))
    assert(err.hint:find "NACRE_CUDA_SYNC=1", err.hint)
  end
end

-- ---- two devices in one operation: both are named, and what to type

local x, half = nacre.ones(3, 4), g:float()
local F, image = nacre.nn.functional, nacre.ones(1, 1, 4, 4)
local mixed = {
  function() return half + x end, function() return x * half:sum() end,
  function() return half:mm(x:t()) end, function() return half:matmul(x[1]) end,
  function() return nacre.bmm(half:unsqueeze(1), x:t():unsqueeze(1)) end,
  function() return half[1]:dot(x[1]) end,
  function() return nacre.addmm(nacre.ones(3, 3), half, half:t()) end,
  function() return nacre.outer(half[1], x[1]) end,
  function() return nacre.where(half:gt(0), half, x) end,
  function() return nacre.where(x:gt(0), half, half) end,
  function() return nacre.cat {half, x} end,
  function() return nacre.stack {half, x} end,
  function() return half .. x end,
  function() return half:masked_fill(x:gt(0), 1) end,
  function() return half:clamp(x) end, function() return half:lerp(x, 0.5) end,
  function() return half:addcmul(half, x) end,
  function() return half == x end, function() return half:allclose(x) end,
  function() return half:clone():add_(x) end,
  function() return half:clone():pow_(x) end,
  function() return nacre.add(half, x, {out = half:clone()}) end,
  function() return nacre.einsum("ij,kj->ik", half, x) end,
  function() return nacre.tensordot(half, x, 2) end,
  function() return nacre.kron(half, x) end,
  function() return nacre.cdist(half, x) end,
  function() return half[1]["1:3"]:cross(x[1]["1:3"]) end,
  function() return nacre.searchsorted(half[1], x[1]) end,
  function() return nacre.isin(half, x) end,
  function() return F.linear(half, x) end,
  function() return F.mse_loss(half, x) end,
  function() return F.cross_entropy(half, nacre.tensor {1, 2, 3}) end,
  function() return F.layer_norm(half, {4}, x[1]) end,
  function() return F.batch_norm(half, x[1], x[1]) end,
  function()                  -- one channel: not a number, though 0-d
    return F.batch_norm(half["1:, 1:1"], nil, nil, nacre.tensor(2.0), nil, true)
  end,
  function() return F.conv2d(image:cuda(), image) end,
  function() return F.conv2d(image:cuda(), image:cuda(), nacre.ones(1)) end,
  function() return nacre.linalg.solve(nacre.eye(2):cuda(), nacre.eye(2)) end,
}
for i, f in ipairs(mixed) do
  e = fails("operands are on different devices", nil, f)
  assert(e.code == "EDEVICE", i)
  local seen = {}
  for _, operand in ipairs(e.args) do seen[operand.device] = true end
  assert(seen["cpu"] and seen["cuda:0"], ("%d: both are named"):format(i))
  assert(e.hint and (e.hint:find(":to(", 1, true) or
                     e.hint:find "must move to c"),
         ("%d, %s: what to type?"):format(i, e.op))
end
for _, f in ipairs {
  function() return nacre.add(half, half, {out = x:clone()}) end,
  function() return nacre.add(x, x, {out = half:clone()}) end,
  function() return nacre.mm(half, half:t(), {out = nacre.ones(3, 3)}) end,
} do
  e = fails("the tensor it is written to is on", nil, f)
  assert(e.hint:find("copy_", 1, true), e.hint)
end

-- ---- gradients stay on the device of their tensor

local leaf = nacre.ones(3, {requires_grad = true, device = 0})
e = fails("the output is on cuda:0, but its gradient is on cpu", nil,
          leaf.backward,
          leaf * 2, nacre.ones(3))
assert(e.code == "EDEVICE" and e.hint == 'gradient:to("cuda:0")', e.hint)
fails("the output is on cpu, but its gradient is on cuda:0", nil, leaf.backward,
      leaf:cpu() * 2, nacre.ones(3, {device = 0}))
fails("on cuda:0 cannot be a float32[3] on cpu", nil, function()
  leaf.grad = nacre.ones(3)
end)
assert(leaf.grad == nil)
local out = (leaf * 2):sum()
out:backward(nacre.tensor(1.0))  -- a number
assert(leaf.grad.device == "cuda:0" and leaf.grad:sum():item() == 6)
local handle = leaf:register_hook(function(d) return d:cpu() end)
fails("a hook's tensor is on cuda:0, but its gradient is on cpu", nil,
      leaf.backward, (leaf * 2):sum())
handle:remove()
leaf:register_hook(function(d) return d * 2 end)
leaf.grad = nil;
(leaf:cpu() * 3):sum():backward()
assert(leaf.grad.device == "cuda:0" and leaf.grad:sum():item() == 18)

-- ---- what is known at once is said at once

fails("index 4 is outside dim 1", nil, function() return g[4] end)
fails("index 0", nil, function() return g[0] end)
fails("do not broadcast", nil, function() return g + index(1, 2) end)
fails("inner sizes", nil, g.mm, g, g)
fails("has 12", nil, g.view, g, 5)
fails("randn", nil, nacre.randn, 2, {dtype = "int32", device = 0})
fails("must have one element", nil, function() return g:item() end)
local small = index(200):to("uint8")
fails("", nil, function() small[1] = 300 end)
fails("", nil, nacre.bitwise_and, g:float(), g:float())
e = late("integer division by zero", function()
  return index(7, 7) // index(2, 0)
end)
assert(e.code == "EVALUE", e.code)

-- ---- a script learns of it at its end

local function run(code, options)
  local text, status = program(("%s -e '%s'"):format(options or "", code))
  return status, text
end
local bad = "local g = nacre.zeros(3, {device=0}); "
local wrong = "x = g[nacre.tensor({9}, {device=0})] "
local status, text = run(bad .. wrong)
assert(status == 1 and text:find("index 9", 1, true), text)
status, text = run(bad .. wrong .. "os.exit(0)")
assert(status == 1 and text:find("index 9", 1, true), text)
status = run(bad .. wrong .. "os.exit(3)")
assert(status == 3)
status, text = run(bad .. "x = g + 1")
assert(status == 0 and text == "", text)
status, text = run("print(nacre.ones(2).device)", "--device cuda")
assert(status == 0 and text == "cuda:0\n", text)
status, text = run("print(nacre.get_default_device())", "--device auto")
assert(status == 0 and text == "cuda:0\n", text)
status, text = run("print(1)", "--device cuda:99")
assert(status == 1 and text:find("there is no cuda:99", 1, true), text)
status, text = run("print(1)", "--device toaster")
assert(status == 2 and text:find("no device is named", 1, true), text)

-- ---- at the prompt it belongs to its line

local function transcript(lines) return (program("-i -q", lines)) end
local out = transcript [[
g = nacre.zeros(3, {device=0})
x = g[nacre.tensor({9}, {device=0})]
1 + 1
]]
local at = out:find("index 9", 1, true)
assert(at and at < out:find("1 + 1", 1, true), out)
assert(not out:find("index 9", at + 1, true), "once: " .. out)
assert(out:find("\n2\n"), out)
out = transcript("g = nacre.ones(1000):cuda()\nh = g:cpu():pin_memory()\n" ..
                 ":whos\n:mem\n:time g + g\n" ..
                 ":doctor\n:gc\n")
assert(out:find("float32%[1000%] cuda:0%s+3.9 KiB"), out)
assert(out:find("  h  +float32%[1000%] cpu +3.9 KiB  pinned\n"), out)
assert(out:find("cuda:0%s+3.*in use.*free of"), out)
assert(out:find("cuda:0 .*capability"), out)
assert(out:find("\n%a+ed [%d.]+ %a+ o[fn] "), out)
out = transcript("a = nacre.ones(2)\nb = nacre.ones(2):cuda()\n" ..
                 ":shape a:cuda() + b\n:shape a + b\n")
assert(out:find("float32[2] cuda:0, ", 1, true), out)
assert(out:find("operands are on different devices", 1, true), out)
out = transcript("a = nacre.ones(2)\nb = nacre.ones(2):cuda()\na + b\n")
assert(out:find("operands are on different devices", 1, true), out)
assert(out:find("left   a  float32[2] cpu", 1, true), out)
assert(out:find("right  b  float32[2] cuda:0", 1, true), out)
assert(out:find("hint: .*b:to") or out:find("hint: .*a:to"), out)
