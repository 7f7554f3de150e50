-- SPDX-License-Identifier: MIT
-- net:summary: figures of layers by a dry run, which changes nothing; ResNet-50
-- at batch 256 without its memory.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local nn = nacre.nn

-- ---- figures

local net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(),
                          nn.Flatten(), nn.Linear(32, 5))
local s = net:summary {3, 1, 6, 6}
local paths = {}
for i, row in ipairs(s) do paths[i] = row.path end
eq(table.concat(paths, " "), " [1] [2] [3] [4] [5]")
local all, conv, norm, relu, flatten, linear = table.unpack(s)
eq(table.concat(conv.output, "x"), "3x2x4x4")
eq(conv.layer, "Conv2d(1, 2, 3)")
eq(conv.parameters, 20)
assert(rawequal(conv.module, net[1]))
eq(conv.dtype, "float32")
eq(conv.calls, 1)
-- 9 products and 9 sums for each element, and the bias
local elements = 3 * 2 * 4 * 4
eq(conv.flops, elements * (2 * 9 + 1))
eq(linear.flops, 3 * 5 * 2 * 32)
-- what is kept: nothing of the input; the operands of the others, each once
eq(conv.kept, 0)
assert(norm.kept >= 4 * elements and norm.kept < 4 * elements + 64)
eq(relu.kept, 4 * elements)
eq(flatten.kept, 0)
eq(linear.kept, 4 * elements)
-- a layer has the figures of its parts
eq(all.kept, norm.kept + relu.kept + linear.kept)
eq(all.parameters, 20 + 4 + 165)
eq(all.flops, conv.flops + norm.flops + relu.flops + linear.flops)
-- nothing has changed
eq(net[2].running_mean:abs():sum():item(), 0)
eq(net[2].num_batches_tracked:item(), 0)
assert(not rawget(net[1], "_hooks"))
assert(nacre.ones(2):add(1):sum():item() == 4)

eq(tostring(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
            :to("cpu"):summary {5, 4}), [[
layer                output  parameters      work  kept
(all)  Sequential    5x2             23  195 FLOP  60 B
[1]    Linear(4, 3)  5x3             15  120 FLOP
[2]    Tanh()        5x3                  15 FLOP  60 B
[3]    Linear(3, 2)  5x2              8   60 FLOP
for float32[5x4] cpu; nothing was computed]])

-- ---- inputs: tensors, several, other dtypes

local Words = nn.Module "Words"
function Words:init()
  self.embedding, self.lstm = nn.Embedding(10, 4), nn.LSTM(4, 6)
  self.heads = {nn.Linear(6, 2), nn.Linear(6, 2)}
  self.unused = nn.Linear(2, 2)
end
function Words:forward(x)
  local y = self.lstm(self.embedding(x))
  return self.heads[1](y), self.heads[1](y:relu())
end
s = Words():summary(nacre.ones(7, 3, {dtype = "int64"}))
eq(table.concat(s[2].output, "x"), "7x3x4")
eq(table.concat(s[3].output, "x"), "7x3x6")
eq(s[4].path, "heads[1]")
eq(s[4].calls, 2)
eq(table.concat(s.unused, " "), "heads[2] unused")
assert(s.inputs[1]:find "^int64%[7x3%] ", s.inputs[1])
eq(nn.Linear(4, 2):half():summary({3, 4})[1].dtype, "float16")
for _, mode in ipairs {"sum", "mean", "max"} do
  local rows, starts = nacre.tensor {1, 2, 3, 4}, nacre.tensor {1, 3}
  local bags = nn.EmbeddingBag(10, 3, {mode = mode})
  eq(table.concat(bags:summary(rows, starts)[1].output, "x"), "2x3")
end
eq(#nn.Bilinear(3, 4, 2):summary({6, 3}, nacre.ones(6, 4)), 1)
local loss = nn.CrossEntropyLoss():summary({4, 10},
                                           nacre.ones(4, {dtype = "int64"}))
eq(#loss[1].output, 0)
eq(nacre.no_grad(net.summary, net, {3, 1, 6, 6})[1].kept, 0)

-- ---- errors name the layer and leave no hooks

local e = fails("linear: input has 18 features, weight takes 32", net.summary,
                net, {3, 1, 5, 5})
eq(e.module, "[5]: Linear(32, 5), of Sequential")
assert(not rawget(net[5], "_hooks"))
fails("takes the input of the network, or its size", net.summary, net)

-- ---- ResNet-50

-- The most memory that the process had, in bytes; nil where /proc has none.
local function peak_memory()
  local f = io.open "/proc/self/status"
  local text = f and f:read "a"
  if f then f:close() end
  local kib = text and text:match "VmHWM:%s*(%d+) kB"
  return kib and tonumber(kib) * 1024
end

local resnet = dofile(here .. "../../scripts/networks.lua").resnet50()
local before, least = peak_memory(), math.huge
for _ = 1, 3 do
  local begin = os.clock()
  s = resnet:summary {256, 3, 224, 224}
  least = math.min(least, os.clock() - begin)
end
eq(s[1].parameters, 25557032)
eq(table.concat(s[1].output, "x"), "256x1000")
-- 4.1 G products for an image
assert(s[1].flops > 256 * 8.1e9 and s[1].flops < 256 * 8.5e9)
assert(s[1].kept > 15 * 2^30 and s[1].kept < 30 * 2^30)
assert(least < 3, least) -- processor seconds; the products would take minutes
assert(not before or peak_memory() - before < 2^28)
