-- SPDX-License-Identifier: MIT
-- ResNet-50 has the layout of torchvision's: 320 keys in its order, with its
-- shapes. Such a table loads strictly; one that differs is refused.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local networks = dofile(here .. "../../scripts/networks.lua")

-- The keys and shapes that torchvision's resnet50().state_dict() has, in order.
local function layout()
  local keys, shapes = {}, {}
  local function add(key, ...)
    keys[#keys + 1], shapes[key] = key, table.concat({...}, "x")
  end
  local function norm(name, n)
    for _, field in ipairs {"weight", "bias", "running_mean", "running_var"} do
      add(name .. "." .. field, n)
    end
    add(name .. ".num_batches_tracked")
  end
  add("conv1.weight", 64, 3, 7, 7)
  norm("bn1", 64)
  local n = 64
  for i, count in ipairs {3, 4, 6, 3} do
    local width = 32 << i
    for k = 0, count - 1 do
      local block = ("layer%d.%d."):format(i, k)
      add(block .. "conv1.weight", width, n, 1, 1)
      norm(block .. "bn1", width)
      add(block .. "conv2.weight", width, width, 3, 3)
      norm(block .. "bn2", width)
      add(block .. "conv3.weight", 4 * width, width, 1, 1)
      norm(block .. "bn3", 4 * width)
      if k == 0 then
        add(block .. "downsample.0.weight", 4 * width, n, 1, 1)
        norm(block .. "downsample.1", 4 * width)
      end
      n = 4 * width
    end
  end
  add("fc.weight", 1000, 2048)
  add("fc.bias", 1000)
  return keys, shapes
end

local keys, shapes = layout()
assert(#keys == 320)
local net = networks.resnet50()
local parameters, count = {}, 0
for name, p in net:named_parameters() do
  parameters[#parameters + 1] = name
  count = count + p:numel()
end
assert(count == 25557032)

-- the order of the parameters
local expected = {}
for _, key in ipairs(keys) do
  if not key:find "running_" and not key:find "num_batches" then
    expected[#expected + 1] = key
  end
end
assert(table.concat(parameters, " ") == table.concat(expected, " "))

-- a strict load
local state = {}
for _, key in ipairs(keys) do
  local size = {}
  for n in shapes[key]:gmatch "%d+" do size[#size + 1] = tonumber(n) end
  state[key] = key:find "num_batches" and
               nacre.tensor(7, {dtype = "int64"}) or
               nacre.zeros(size)
end
state["layer4.2.bn3.bias"]:fill_(3)
net:load_state_dict(state)
assert(net.layer4[3].bn3.bias:eq(3):all():item())
assert(net.bn1.num_batches_tracked:item() == 7)
local own = net:state_dict()
for _, key in ipairs(keys) do
  assert(table.concat(own[key]:size(), "x") == shapes[key], key)
end

-- one that does not fit, and nothing is loaded
state["fc.bias"] = nacre.zeros(10)
state["layer1.0.conv1.weight"] = nil
state["layer4.2.bn3.bias"] = nacre.ones(2048)
local ok, e = pcall(net.load_state_dict, net, state)
assert(not ok and tostring(e):find("fc.bias is [1000]", 1, true) and
       tostring(e):find("layer1.0.conv1.weight", 1, true))
assert(net.layer4[3].bn3.bias:eq(3):all():item())
