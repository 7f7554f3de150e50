-- SPDX-License-Identifier: MIT
-- The networks of Shi, Wang, Xu and Chu, "Benchmarking State-of-the-Art Deep
-- Learning Software Tools" (2016/17), after their published configurations:
-- FCN-5, AlexNet, ResNet-50 and LSTM-64. frameworks.lua times them, tests
-- compare ResNet-50 with the layout of torchvision.
--
--   local networks = dofile "networks.lua"
--   local net, x, y = networks[1].make(small)   -- the loss is cross_entropy
--
-- With `small', for tests, the layers are narrow and the batches short.
local nn = nacre.nn
local F = nn.functional

local networks = {}

local function randclass(n, size) return nacre.randint(1, n + 1, size) end

-- ---- FCN-5

function networks.fcn5(inputs, hidden)
  local function layer(n, m) return nn.Linear(n, m), nn.Sigmoid() end
  local list = {}
  for _, n in ipairs {inputs, hidden, hidden} do
    local linear, sigmoid = layer(n, hidden)
    list[#list + 1], list[#list + 2] = linear, sigmoid
  end
  list[#list + 1] = nn.Linear(hidden, inputs)
  return nn.Sequential(list)
end

-- ---- AlexNet, without dropout and without response normalization

-- `divisor' makes it narrower.
function networks.alexnet(divisor)
  local function conv(n, m, kernel, options)
    return nn.Conv2d(n == 3 and 3 or n // divisor, m // divisor, kernel,
                     options)
  end
  local function linear(n, m)
    return nn.Linear(n // divisor, m == 1000 and 1000 or m // divisor)
  end
  return nn.Sequential(
    conv(3, 96, 11, {stride = 4, padding = 2}), nn.ReLU(), nn.MaxPool2d(3, 2),
    conv(96, 256, 5, {padding = 2}), nn.ReLU(), nn.MaxPool2d(3, 2),
    conv(256, 384, 3, {padding = 1}), nn.ReLU(),
    conv(384, 384, 3, {padding = 1}), nn.ReLU(),
    conv(384, 256, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(3, 2),
    nn.Flatten(), linear(256 * 6 * 6, 4096), nn.ReLU(), linear(4096, 4096),
    nn.ReLU(), linear(4096, 1000))
end

-- ---- ResNet-50 (He et al. 2016), with the stride in the 3x3 convolution

local function conv_norm(n, m, kernel, options)
  options.bias = false
  return nn.Conv2d(n, m, kernel, options), nn.BatchNorm2d(m)
end

local Bottleneck = nn.Module "Bottleneck"

function Bottleneck:init(n, width, stride)
  self.conv1, self.bn1 = conv_norm(n, width, 1, {})
  self.conv2, self.bn2 = conv_norm(width, width, 3,
                                   {stride = stride, padding = 1})
  self.conv3, self.bn3 = conv_norm(width, 4 * width, 1, {})
  if stride > 1 or n ~= 4 * width then
    self.downsample = nn.Sequential(conv_norm(n, 4 * width, 1,
                                              {stride = stride}))
  end
end

function Bottleneck:forward(x)
  local y = self.bn1(self.conv1(x)):relu()
  y = self.bn2(self.conv2(y)):relu()
  y = self.bn3(self.conv3(y))
  return (y + (self.downsample and self.downsample(x) or x)):relu()
end

local ResNet = nn.Module "ResNet"

function ResNet:init(blocks, width)
  self.conv1, self.bn1 = conv_norm(3, width, 7, {stride = 2, padding = 3})
  local n = width
  for i, count in ipairs(blocks) do
    local list, wide = {}, width << (i - 1)
    for k = 1, count do
      list[k] = Bottleneck(n, wide, k == 1 and i > 1 and 2 or 1)
      n = 4 * wide
    end
    self["layer" .. i] = nn.Sequential(list)
  end
  self.fc = nn.Linear(n, 1000)
end

function ResNet:forward(x)
  x = F.max_pool2d(self.bn1(self.conv1(x)):relu(), 3, 2, 1)
  x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
  return self.fc(F.adaptive_avg_pool2d(x, 1):flatten(2))
end

function networks.resnet50(width) return ResNet({3, 4, 6, 3}, width or 64) end

-- ---- LSTM-64: the next word of texts, 64 steps

local Words = nn.Module "Words"

function Words:init(words, size)
  self.embedding = nn.Embedding(words, size)
  self.lstm = nn.LSTM(size, size, 2)
  self.fc = nn.Linear(size, words)
end

-- x [steps x samples]; the scores of the next words, [steps*samples x words].
function Words:forward(x)
  local out = self.lstm(self.embedding(x))
  return self.fc(out:flatten(1, 2))
end

networks.words = Words

-- ---- the table: a network, its input and its classes

local function images(batch, size) return nacre.randn(batch, 3, size, size) end

networks[1] = {
  name = "FCN-5", items = "samples",
  make = function(small)
    local n, batch = small and 200 or 26752, small and 4 or 64
    return networks.fcn5(n, small and 32 or 2048), nacre.randn(batch, n),
           randclass(n, {batch})
  end,
}
networks[2] = {
  name = "AlexNet", items = "images",
  make = function(small)
    local batch = small and 1 or 16
    return networks.alexnet(small and 16 or 1), images(batch, 224),
           randclass(1000, {batch})
  end,
}
networks[3] = {
  name = "ResNet-50", items = "images",
  make = function(small)
    local batch = small and 2 or 16
    return networks.resnet50(small and 4 or 64),
           images(batch, small and 64 or 224), randclass(1000, {batch})
  end,
}
networks[4] = {
  name = "LSTM-64", items = "tokens",
  make = function(small)
    local words, size = small and 50 or 10000, {small and 5 or 64,
                                                small and 3 or 128}
    return Words(words, small and 8 or 256), randclass(words, size),
           randclass(words, {size[1] * size[2]})
  end,
}

return networks
