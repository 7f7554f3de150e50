-- SPDX-License-Identifier: MIT
-- The device "meta": tensors of a shape and a dtype without memory; networks
-- that are made on it, and get tensors from a state, or memory without values.
-- Run by: nacre tests/nn/meta_networks.lua

local nn = nacre.nn

local function fails(text, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end

local x = nacre.randn(3, 4, {device = "meta"})
assert(x.device == "meta" and x.dtype == "float32" and not x.is_cuda)
assert(x:size(1) == 3 and x:numel() == 12)
local y = (x:t():mm(x) + 1):softmax(1):sum(2)
assert(y.device == "meta" and y:size(1) == 4 and y:dim() == 1)
assert(x:to "float16".dtype == "float16" and x[{1}]:size(1) == 4)
assert(nacre.ones(2, 5):to("meta"):size(2) == 5)
assert(nacre.empty_like(x, {device = "cpu"}):fill_(2):sum():item() == 24)
assert(tostring(x) == "float32[3x4] meta  no values", tostring(x))

-- There are no values to read.
local none = "a tensor on the meta device has no values"
fails(none, function() return x:cpu() end)
fails(none, function() return x[{1, 1}]:item() end)
fails(none, function() return x:tolist() end)
fails(none, function() return x:nonzero() end)
fails(none, function() return nacre.ones(2):copy_(x[1][{"1:2"}]) end)
fails(none, nacre.save, os.tmpname() .. ".npy", x)
fails("operands are on different devices", function()
  return x + nacre.ones(3, 4)
end)

-- A network without memory, then with the tensors of a state.
local Net = nn.Module:extend "Net"
function Net:init()
  self.fc1 = nn.Linear(40, 30)
  self.norm = nn.BatchNorm1d(30)
  self.fc2 = nn.Linear(30, 2, {bias = false})
end
function Net:forward(v) return self.fc2(self.norm(self.fc1(v)):relu()) end

local before = nacre.get_default_device()
nacre.set_default_device "meta"
local net = Net()
nacre.set_default_device(before)
for _, p in ipairs(net:parameters()) do assert(p.device == "meta") end
assert(net(nacre.ones(5, 40, {device = "meta"})):size(2) == 2)
local real = Net()
fails("fc1.weight is on the meta device and cannot keep values", function()
  net:load_state_dict(real:state_dict())
end)
net:load_state_dict(real:state_dict(), {assign = true})
real:eval() net:eval()
local v = nacre.randn(5, 40)
assert(nacre.equal(net(v), real(v)))
assert(net.fc1.weight.requires_grad and net.fc1.weight.device == "cpu")

local layer = nn.Linear(3, 4, {device = "meta"})
fails(none, function() layer:to "cpu" end)
layer:to_empty "cpu"
assert(layer.weight.device == "cpu")
assert(layer.weight:detach():zero_():sum():item() == 0)

-- skip_init draws nothing.
nacre.manual_seed(1)
local first = nacre.rand(1)
nacre.manual_seed(1)
local skipped = nn.utils.skip_init(nn.Linear, 20, 10, {dtype = "float64"})
assert(skipped.weight.device == before and skipped.weight.dtype == "float64")
assert(skipped.weight:size(1) == 10 and nacre.get_default_device() == before)
local on = nn.utils.skip_init(nn.Linear, 2, 3, {device = "meta"})
assert(on.weight.device == "meta")
assert(nacre.equal(nacre.rand(1), first))
fails("a class of modules is expected", nn.utils.skip_init, 3)

-- 7 B parameters take no memory.
local large = nn.ModuleList()
for i = 1, 32 do
  large:append(nn.Linear(4096, 53000, {bias = false, device = "meta"}))
end
local count = 0
for _, p in ipairs(large:parameters()) do count = count + p:numel() end
assert(count == 32 * 4096 * 53000)
