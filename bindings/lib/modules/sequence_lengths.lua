-- SPDX-License-Identifier: MIT
-- sequence_lengths.lua - the samples of [time x samples x ...] that have a
-- step, where sequences end at different steps.
local all = ...

local methods = {}

-- For each step the samples that have it, as [samples x 1] booleans.
function methods:masks()
  if not self._masks then
    local n = nacre.tensor(self.lengths, {dtype = "int64", device = "cpu"})
              :to(self.device):unsqueeze(2)
    self._masks = {}
    for t = 1, self.time do self._masks[t] = n:ge(t) end
  end
  return self._masks
end

-- The order of falling lengths, or nil if they fall.
local function falling_order(lengths)
  for i = 2, #lengths do
    if lengths[i] > lengths[i - 1] then
      return nacre.tensor(lengths, {dtype = "int64", device = "cpu"})
             :argsort {descending = true, stable = true}
    end
  end
end

-- What _recurrent needs, with the samples in the order of falling lengths:
--   sizes     the number of samples in each step, on the CPU
--   rows      the rows of [time*samples x ..] of these, step after step
--   sorted    the same of a tensor whose samples are in the falling order
--   padding   [time x samples x 1], is this beyond the end? in falling order
--   order     the falling order, and inverse, the way back; nil if it is given
function methods:steps()
  if self._steps then return self._steps end
  local n, time = #self.lengths, self.time
  local order = falling_order(self.lengths)
  local lengths = nacre.tensor(self.lengths, {dtype = "int64", device = "cpu"})
  if order then lengths = lengths:index_select(1, order) end
  local function count(from, to)
    return nacre.arange(from, to + 1, {dtype = "int64", device = "cpu"})
  end
  local valid = count(1, time):unsqueeze(2):le(lengths)
  local at = count(1, time * n):view(time, n)
  local given = order and at:index_select(2, order) or at
  local function here(t) return t and t:to(self.device) end
  self._steps = {
    sizes = valid:sum(2), rows = here(given:masked_select(valid)),
    sorted = here(at:masked_select(valid)),
    padding = here(valid:logical_not():unsqueeze(3)),
    order = here(order), inverse = here(order and order:argsort()),
  }
  return self._steps
end

-- The object for `lengths', a list with a number for each sample, of tensors of
-- `time' steps on a device.
function all.sequence_lengths(lengths, time, device)
  return setmetatable({lengths = lengths, time = time, device = device},
                      {__index = methods})
end
