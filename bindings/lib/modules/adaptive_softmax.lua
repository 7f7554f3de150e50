-- SPDX-License-Identifier: MIT
-- adaptive_softmax.lua - nn.AdaptiveLogSoftmaxWithLoss (Grave et al. 2017): the
-- frequent classes are in the head, beside one entry for each cluster of rare
-- ones; a cluster is computed only for the samples that have a class of it.
local all = ...
all.require "nacre.module"
local fail, nn = all.fail, all.space "nn"

local Adaptive = all.weight_layer("AdaptiveLogSoftmaxWithLoss",
  "in_features:int, n_classes:int, cutoffs:ints, div_value:num=4, "
  .. "head_bias:bool=false",
  "log softmax of many classes, in clusters that end at cutoffs: the value of "
    .. "each target, and the loss", nil,
function(self, features, classes, cutoffs, div_value, head_bias)
  local ends = type(cutoffs) == "table" and {table.unpack(cutoffs)} or {cutoffs}
  local last = 0
  for _, c in ipairs(ends) do
    if c <= last or c >= classes then
      fail(self.__name, "cutoffs must increase, from 1 to n_classes - 1")
    end
    last = c
  end
  if last == 0 then fail(self.__name, "there are no cutoffs") end
  ends[#ends + 1] = classes
  self.cutoffs, self.shortlist_size = ends, ends[1]
  self.head = nn.Linear(features, ends[1] + #ends - 1, head_bias)
  self.tail = nn.ModuleList()
  for i = 1, #ends - 1 do
    local hidden = math.floor(features // div_value ^ i)
    self.tail:append(nn.Sequential(
      nn.Linear(features, hidden, false),
      nn.Linear(hidden, ends[i + 1] - ends[i], false)))
  end
end)

-- The rows and the place in cluster i of the targets that are of it.
local function in_cluster(self, target, i)
  local low, high = self.cutoffs[i], self.cutoffs[i + 1]
  local rows = (target:gt(low) & target:le(high)):nonzero():squeeze(2)
  return rows, target:index_select(1, rows) - low
end

-- input [n x in_features] or [in_features], target [n] or []: the logarithms of
-- the targets, and the mean of their negatives.
function Adaptive:forward(input, target)
  local op, single = self.__name, target:dim() == 0
  all.check_dims(op, target, "target", 0, 1)
  all.check_dims(op, input, "input", single and 1 or 2)
  if single then input, target = input:unsqueeze(1), target:unsqueeze(1) end
  if input:size(1) ~= target:size(1) then
    fail(op, ("{input} has %d rows, {target} has %d: they must match"):format(
           input:size(1), target:size(1)), nil,
         "input", input, "target", target)
  elseif (target:lt(1) | target:gt(self.n_classes)):any():item() then
    fail(op, ("a class is not from 1 to %d"):format(self.n_classes), nil,
         "target", target)
  end
  local at, parts = target:clone(), {}
  for i, cluster in ipairs(self.tail) do
    local rows, places = in_cluster(self, target, i)
    if rows:numel() > 0 then
      at:index_fill_(1, rows, self.shortlist_size + i)
      local log = cluster(input:index_select(1, rows)):log_softmax(2)
      parts[#parts + 1] = {rows, log:gather(2, places:unsqueeze(2)):squeeze(2)}
    end
  end
  local output = self.head(input):log_softmax(2):gather(2, at:unsqueeze(2))
                 :squeeze(2)
  for _, p in ipairs(parts) do output = output:index_add(1, p[1], p[2]) end
  local loss = -output:mean()
  return single and output:squeeze(1) or output, loss
end

-- The logarithms of all classes, [n x n_classes].
function Adaptive:log_prob(input)
  local head = self.head(input):log_softmax(2)
  local list = {head:narrow(2, 1, self.shortlist_size)}
  for i, cluster in ipairs(self.tail) do
    list[i + 1] = cluster(input):log_softmax(2) +
                  head:narrow(2, self.shortlist_size + i, 1)
  end
  return nacre.cat(list, 2)
end

-- The most likely class of each row.
function Adaptive:predict(input) return self:log_prob(input):argmax(2) end
