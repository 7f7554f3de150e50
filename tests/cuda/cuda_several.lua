-- SPDX-License-Identifier: MIT
-- Several CUDA devices: which is current, tensors between them, streams of
-- each.
-- Run by: nacre tests/cuda/cuda_several.lua, with devices or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda, fails = nacre.cuda, C.fails
if not cuda.is_available() then skip(cuda.why()) end
local n = cuda.device_count()
if n < 2 then skip("there is one device") end

-- ---- which is current

assert(cuda.current_device() == 0 and nacre.device "cuda" == "cuda")
local current = nacre.device "cuda"
assert(nacre.ones(2, {device = current}).device == "cuda:0")
cuda.set_device(1)
assert(cuda.current_device() == 1 and nacre.device "auto" == "cuda")
assert(nacre.ones(2, {device = current}).device == "cuda:1")
assert(nacre.ones(2):to(current).device == "cuda:1")
assert(nacre.ones(2):to {device = current}.device == "cuda:1")
assert(cuda.get_device_name(current) == cuda.get_device_name(1))
assert(nacre.ones(2):cuda().device == "cuda:1")
assert(nacre.ones(2, {device = "cuda"}).device == "cuda:1")
assert(nacre.ones(2, {device = 0}).device == "cuda:0")
cuda.set_device "cuda:0"
local got, extra = cuda.device(1, function(...)
  assert(cuda.current_device() == 1)
  cuda.device(0, function() assert(cuda.current_device() == 0) end)
  assert(cuda.current_device() == 1)
  return nacre.zeros(3, {device = "cuda"}).device, ...
end, 7)
assert(got == "cuda:1" and extra == 7 and cuda.current_device() == 0)
assert(not pcall(cuda.device, 1, error, "x") and cuda.current_device() == 0)
local co = coroutine.create(cuda.device)
assert(not coroutine.resume(co, 1, error) and cuda.current_device() == 0)

-- a default called "cuda" is the current one; with a number it stays
nacre.set_default_device "cuda"
cuda.device(1, function() assert(nacre.zeros(1).device == "cuda:1") end)
assert(nacre.zeros(1).device == "cuda:0")
nacre.set_default_device "cuda:1"
cuda.device(0, function() assert(nacre.zeros(1).device == "cuda:1") end)
assert(nacre.zeros(1).device == "cuda:1")
nacre.set_default_device "cpu"

-- ---- the page on CUDA in PyTorch's manual, with its eight tensors

if n > 2 then
  local torch, x, y, z, a, b, b2, c, d, e, f = nacre, nil, nil, nil, nil, nil,
                                               nil, nil, nil, nil, nil
  local cuda = torch.device("cuda")       -- default CUDA device
  local cuda0 = torch.device("cuda:0")
  local cuda2 = torch.device("cuda:2")
  x = torch.tensor({1., 2.}, {device = cuda0})
  y = torch.tensor({1., 2.}):cuda()
  torch.cuda.device(1, function()
    a = torch.tensor({1., 2.}, {device = cuda})
    b = torch.tensor({1., 2.}):cuda()
    b2 = torch.tensor({1., 2.}):to({device = cuda})
    c = a + b
    z = x + y
    d = torch.randn(2, {device = cuda2})
    e = torch.randn(2):to(cuda2)
    f = torch.randn(2):cuda(cuda2)
  end)
  for at, list in pairs {[0] = {x, y, z}, {a, b, b2, c}, {d, e, f}} do
    for _, t in ipairs(list) do
      assert(t.device.type == "cuda" and t.device.index == at)
    end
  end
end

-- ---- tensors on each, and between them

local x = nacre.randn(200, 300)
local g = {}
for i = 0, n - 1 do
  g[i] = x:cuda(i)
  assert(g[i].device == "cuda:" .. i and g[i]:get_device() == i)
  assert(nacre.allclose((g[i] * 2):sum():cpu(), (x * 2):sum(), 1e-4, 1e-2))
  assert((g[i] + 1).device == g[i].device)
  assert(nacre.allclose(g[i]:mm(g[i]:t()):cpu(), x:mm(x:t()), 1e-3, 1e-3))
end
for i = 0, n - 1 do
  for j = 0, n - 1 do
    local y = g[i]:to("cuda:" .. j)
    assert(y.device == "cuda:" .. j and y:cpu() == x)
    assert((i == j) == rawequal(y, g[i]))
    assert(g[i]:cuda(j, true):cpu() == x)
    assert(g[i]:t():to(g[j]):cpu() == x:t())
    y = nacre.zeros(200, 300, {dtype = "float64", device = j})
    y:copy_(g[i])
    assert(y:cpu() == x:double())
    if i ~= j then
      local e = fails("different devices", nil, nacre.add, g[i], g[j])
      assert(e.args[1].device == "cuda:" .. i)
      assert(e.args[2].device == "cuda:" .. j)
      fails("different devices", nil, nacre.mm, g[i], g[j]:t())
    end
  end
end
-- made there, changed there, read elsewhere at once
for _ = 1, 20 do
  local a = nacre.full({5000}, 1, {device = 0})
  local b = (a + 1):to("cuda:1")
  a:fill_(9)
  local c = (b * 3):to("cuda:0")
  b:fill_(9)
  assert(c:eq(6):all():item())
end

-- ---- one seed, every device

for i = 0, n - 1 do
  nacre.manual_seed(5)
  local a = nacre.rand(777, {device = i}):cpu()
  nacre.manual_seed(5)
  assert(nacre.allclose(a, nacre.rand(777), 1e-6, 1e-6))
end

-- ---- streams

local s = {}
for i = 0, n - 1 do
  s[i] = cuda.Stream(i)
  assert(s[i].device == "cuda:" .. i)
  assert(cuda.current_stream(i) == cuda.default_stream(i))
  assert(cuda.default_stream(i).device == "cuda:" .. i)
end
cuda.stream(s[1], function()
  assert(cuda.current_device() == 1 and cuda.current_stream() == s[1])
  assert(cuda.current_stream(0) == cuda.default_stream(0))
  cuda.stream(s[0], function()
    assert(cuda.current_device() == 0 and cuda.current_stream() == s[0])
    assert(cuda.current_stream(1) == s[1])
  end)
  assert(cuda.current_device() == 1 and cuda.current_stream() == s[1])
end)
assert(cuda.current_device() == 0)
assert(cuda.current_stream(1) == cuda.default_stream(1))
s[1]:wait_stream(s[0])
local event = s[0]:record_event()
s[1]:wait_event(event)
fails("the event is of cuda:0, the stream of cuda:1", nil, event.record, event,
      s[1])
local y = cuda.stream(s[0], function() return g[0] * 2 end)
s[1]:wait_stream(s[0])
y = cuda.stream(s[1], function() return y:to("cuda:1") + 1 end)
s[1]:synchronize()
assert(y:cpu() == x * 2 + 1)

-- ---- memory and facts of each

for i = 0, n - 1 do
  local before = cuda.memory_allocated(i)
  local t = nacre.empty(1 << 20, {device = i})
  assert(cuda.memory_allocated(i) == before + (4 << 20))
  assert(cuda.memory_allocated(i) == cuda.memory_allocated("cuda:" .. i))
  assert(t.device == "cuda:" .. i)
  assert(#cuda.get_device_name(i) > 0)
  cuda.synchronize(i)
  for j = 0, n - 1 do
    assert(type(cuda.can_device_access_peer(i, j)) == "boolean")
  end
end
assert(#nacre._devices() == n + 1)
cuda.empty_cache()
fails("there is no cuda:" .. n, nil, x.cuda, x, n)
fails("peer_device is missing", nil, cuda.can_device_access_peer, 0)
nacre.synchronize()
