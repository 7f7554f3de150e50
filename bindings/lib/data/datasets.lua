-- SPDX-License-Identifier: MIT
-- datasets.lua - nacre.utils.data: datasets and the samples in a batch.
--
-- A dataset has a length, #dataset, and get(i), which gives sample i, counted
-- from 1, as one or several values. It may have batch(indices), which gives
-- the list of the values for an int64 tensor of indices: the fast way.
-- dataset[i] is sample i as one value, a list if there are several.
local all = ...
all.require "nacre.guards"
local fail, data = all.fail, all.space "utils.data"

local function describe(name, class, signature, doc)
  data[name] = class
  all.describe("utils.data." .. name, class, doc,
               all.parse("utils.data." .. name, signature))
end

-- ---- batches

-- The value of several samples as one: tensors are stacked, numbers become a
-- tensor, tables go by key, anything else is a list.
local function collate(values)
  local first = values[1]
  if nacre.is_tensor(first) then return nacre.stack(values) end
  if type(first) == "number" or type(first) == "boolean" then
    return nacre.tensor(values)
  end
  if type(first) ~= "table" or getmetatable(first) ~= nil then return values end
  local out = {}
  for key in pairs(first) do
    local column = {}
    for i, sample in ipairs(values) do
      if type(sample) ~= "table" then
        fail("collate", ("sample %d of the batch is a %s, but the first is a "
          .. "table")
                        :format(i, type(sample)))
      end
      column[i] = sample[key]
      if column[i] == nil then
        fail("collate", ("sample %d of the batch has no '%s'"):format(i, key))
      end
    end
    out[key] = collate(column)
  end
  return out
end
all.define("utils.data.default_collate", "values:table -> value",
           "the values of several samples as one: tensors stacked, numbers as "
           .. "a tensor", collate)

-- The list of the values of samples, each a list of its values with their
-- number n.
function all.batch_of(samples, collate_fn)
  if collate_fn then
    for k, s in ipairs(samples) do samples[k] = s.n == 1 and s[1] or s end
    return table.pack(collate_fn(samples))
  end
  local out = {n = samples[1].n}
  for j = 1, samples[1].n do
    local values = {}
    for k, s in ipairs(samples) do values[k] = s[j] end
    out[j] = collate(values)
  end
  local first = out[1]
  if out.n == 1 and type(first) == "table" and getmetatable(first) == nil and
     type(samples[1][1]) == "table" and first[1] ~= nil then
    first.n = #first          -- samples that are lists {x, y}
    return first
  end
  return out
end

-- The same for samples i of a dataset that has only get.
function all.batch_by_samples(dataset, indices, collate_fn)
  local samples = {}
  for k, i in ipairs(indices:tolist()) do
    samples[k] = table.pack(dataset:get(i))
  end
  return all.batch_of(samples, collate_fn)
end

-- ---- datasets

-- Guards the methods of a class of datasets.
local function guard(class)
  all.guard_methods(class, function(v) return getmetatable(v) == class end,
                    "dataset", {get = "i:int", batch = "indices:tensor"})
end

-- dataset[i]: sample i, from the end if i is negative; nil beyond the end, as
-- a list has it.
local function sample(self, i)
  local n = #self
  if i == 0 then
    fail(self.__name, ("there is no sample 0: they count from 1 to %d")
                      :format(n))
  end
  if i > n or i < -n then return nil end
  local values = table.pack(self:get(i > 0 and i or i + n + 1))
  if values.n == 1 then return values[1] end
  values.n = nil
  return values
end

local function class_of(name)
  local class = {__name = name}
  class.__index = function(self, key)
    if math.type(key) == "integer" then return sample(self, key) end
    return class[key]
  end
  class.__len = function(self) return self:len() end
  class.__tostring = function(self)
    return ("%s of %d samples"):format(name, #self)
  end
  return class
end

-- A function that makes classes of the user, of which class_of(name) is a new
-- one; `example' is how it is called.
local function class_maker(op, new_class, example)
  return function(name)
    if type(name) ~= "string" then
      fail(op, "a class has a name: " .. example)
    end
    return setmetatable(new_class(name), {__call = function(class, ...)
      local self = setmetatable({}, class)
      if class.init then class.init(self, ...) end
      return self
    end, __newindex = function(class, key, v)
      all.check_key(name, key)
      all.check_method_name(name, key)
      rawset(class, key, v)
    end})
  end
end

-- A class of datasets: Squares = nacre.utils.data.Dataset "Squares", then
-- Squares:init(...), Squares:len() and Squares:get(i).
describe("Dataset",
         class_maker("Dataset", class_of, 'nacre.utils.data.Dataset "Squares"'),
         "name:text -> class", "a class of datasets with init, len and get(i)")

-- ---- datasets without numbers: samples come from an iterator

local function length_of_iterable(self)
  if self.len then return self:len() end
  fail(self.__name, "the dataset has no length: its class has no len")
end

local function iterable_class(name)
  local class = {__name = name, is_iterable = true}
  class.__index = function(self, key)
    if math.type(key) ~= "integer" then return class[key] end
    fail(name, "the samples have no numbers: dataset:iter() gives them one "
               .. "after the other")
  end
  class.__len = length_of_iterable
  class.__tostring = function(self)
    if not self.len then return name .. ", samples by iter()" end
    return ("%s of %d samples"):format(name, #self)
  end
  function class.iter()
    fail(name, "the class has no iter, which gives an iterator over samples")
  end
  return class
end

-- Words = nacre.utils.data.IterableDataset "Words", then Words:init(...) and
-- Words:iter(), which gives what a for loop takes; len is optional.
describe("IterableDataset",
         class_maker("IterableDataset", iterable_class,
                     'nacre.utils.data.IterableDataset "Words"'),
         "name:text -> class", "a class of datasets with init and iter(), "
         .. "which gives an iterator over samples")

-- A function that gives the next sample, packed, or nil.
function all.samples_of(dataset)
  local next_sample, state, key = dataset:iter()
  if type(next_sample) ~= "function" and
     not (getmetatable(next_sample) or {}).__call then
    fail(dataset.__name, ("iter gives an iterator, not a %s")
                         :format(type(next_sample)))
  end
  return function()
    local sample = table.pack(next_sample(state, key))
    key = sample[1]
    return key ~= nil and sample or nil
  end
end

local Chain = iterable_class "ChainDataset"
function Chain:len()
  local n = 0
  for _, d in ipairs(self.datasets) do n = n + #d end
  return n
end
function Chain:iter()
  local k, next_sample = 0, nil
  return function()
    while true do
      local sample = next_sample and next_sample()
      if sample then return table.unpack(sample, 1, sample.n) end
      k = k + 1
      if not self.datasets[k] then return nil end
      next_sample = all.samples_of(self.datasets[k])
    end
  end
end
all.guard_methods(Chain, function(v) return getmetatable(v) == Chain end,
                  "dataset")
describe("ChainDataset", function(...)
  local list = {...}
  if #list == 1 and type(list[1]) == "table" and
     getmetatable(list[1]) == nil then
    list = list[1]
  end
  for i, d in ipairs(list) do
    if type(d) ~= "table" or not d.is_iterable then
      fail("ChainDataset", ("argument %d is no IterableDataset"):format(i))
    end
  end
  return setmetatable({datasets = list}, Chain)
end, "datasets:any -> dataset",
  "the samples of several IterableDatasets, one after the other")

local Tensors = class_of "TensorDataset"
function Tensors:len() return self.tensors[1]:size(1) end
function Tensors:get(i)
  local list = {}
  for k, t in ipairs(self.tensors) do list[k] = t:select(1, i) end
  return table.unpack(list)
end
function Tensors:batch(indices)
  local list = {n = #self.tensors}
  for k, t in ipairs(self.tensors) do
    list[k] = t:index_select(1, indices:to(t.device))
  end
  return list
end

guard(Tensors)
describe("TensorDataset", function(...)
  local tensors = {...}
  if #tensors == 0 then fail("TensorDataset", "no tensors") end
  for i, t in ipairs(tensors) do
    if not nacre.is_tensor(t) or t:dim() == 0 then
      fail("TensorDataset", ("argument %d has no rows"):format(i))
    end
    if t:size(1) ~= tensors[1]:size(1) then
      fail("TensorDataset", ("{first} has %d rows, {other} has %d")
                            :format(tensors[1]:size(1), t:size(1)), nil,
           "first", tensors[1], "other", t)
    end
  end
  return setmetatable({tensors = tensors}, Tensors)
end, "tensors:any -> dataset", "the rows of one or several tensors")

local Subset = class_of "Subset"
function Subset:len() return self.indices:size(1) end
function Subset:get(i) return self.dataset:get(self.indices[i]) end

guard(Subset)

-- The batch of another dataset at these indices.
local function forward_batch(self, at)
  return self.dataset:batch(self.indices:index_select(1, at))
end

-- The indices of samples of a dataset of n, each from 1 to n: those below 0
-- count from the end.
local function checked_indices(indices, n)
  if not nacre.is_tensor(indices) then
    local list = indices
    indices = nacre.tensor(list, {dtype = "int64", device = "cpu"})
    for _, i in ipairs(type(list) == "table" and list or {}) do
      if type(i) == "number" and not math.tointeger(i) then
        fail("Subset", ("sample %s: indices are integers"):format(i))
      end
    end
  end
  if indices:dim() ~= 1 or not all.is_exact(indices) then
    fail("Subset", "indices must be a list or a vector of integers", nil,
         "indices", indices)
  end
  if indices:numel() == 0 then return indices end
  local least, most = indices:min():item(), indices:max():item()
  if least >= 1 and most <= n then return indices end
  local wrong = indices:eq(0):any():item() and 0 or most > n and most or
                least < -n and least
  if wrong then
    fail("Subset", ("there is no sample %d: they count from 1 to %d")
                   :format(wrong, n))
  end
  return nacre.where(indices:lt(0), indices + n + 1, indices)
end

local function subset(dataset, indices)
  dataset = all.dataset(dataset, "Subset")
  local self = setmetatable({dataset = dataset,
                             indices = checked_indices(indices, #dataset)},
                            Subset)
  if self.dataset.batch then self.batch = forward_batch end
  return self
end
describe("Subset", subset, "dataset:any, indices:any -> dataset",
         "samples of another dataset, by number")

local Concat = class_of "ConcatDataset"
function Concat:len()
  local n = 0
  for _, d in ipairs(self.datasets) do n = n + #d end
  return n
end
function Concat:get(i)
  for _, d in ipairs(self.datasets) do
    if i <= #d then return d:get(i) end
    i = i - #d
  end
end
guard(Concat)
describe("ConcatDataset", function(...)
  local self = setmetatable({datasets = {}}, Concat)
  local list = {...}
  -- one list, as in PyTorch: each element is a dataset
  if #list == 1 and type(list[1]) == "table" and
     getmetatable(list[1]) == nil and list[1].get == nil then
    list = list[1]
  end
  for i, d in ipairs(list) do
    self.datasets[i] = all.dataset(d, "ConcatDataset")
  end
  return self
end, "datasets:any -> dataset", "several datasets, one after the other")

-- A list whose elements are the samples.
local Samples = class_of "samples"
function Samples:len() return #self.list end
function Samples:get(i) return self.list[i] end
function Samples:__tostring() return ("a list of %d samples"):format(#self) end

-- v as a dataset: a tensor and a list of tensors stand for their rows, any
-- other list for its elements. An iterable one must be allowed.
function all.dataset(v, op, iterable)
  if type(v) == "table" and v.is_iterable == true then
    if iterable then return v end
    fail(op, "the samples of an IterableDataset have no numbers")
  end
  if nacre.is_tensor(v) then return data.TensorDataset(v) end
  local meta = type(v) == "table" and getmetatable(v)
  if type(v) == "table" and not meta and nacre.is_tensor(v[1]) then
    return data.TensorDataset(table.unpack(v))
  end
  if type(v) == "table" and (v.get or v.batch) and
     (meta and meta.__len or #v > 0) then
    return v
  end
  if type(v) == "table" and not meta and #v > 0 then
    return setmetatable({list = v}, Samples)
  end
  fail(op, "a dataset is a tensor, a list of tensors or of samples, or has a "
           .. "length and get(i)")
end

-- The sizes of the parts of n samples: numbers of samples, or fractions.
local function part_sizes(lengths, n)
  local sum, sizes, fractions = 0, {}, false
  for i, part in ipairs(lengths) do
    if type(part) ~= "number" or part < 0 then
      fail("random_split", ("part %d is %s, but must be a number of 0 or more")
                           :format(i, tostring(part)))
    end
    sum, sizes[i] = sum + part, part
    fractions = fractions or part % 1 ~= 0
  end
  if math.abs(sum - 1) < 1e-9 and n ~= 1 then
    local left = n
    for i, part in ipairs(lengths) do
      sizes[i] = math.floor(n * part + 1e-9)
      left = left - sizes[i]
    end
    for i = 1, left do
      local at = (i - 1) % #sizes + 1
      sizes[at] = sizes[at] + 1
    end
  elseif fractions then
    fail("random_split", ("the fractions add up to %g, not to 1"):format(sum))
  elseif sum ~= n then
    fail("random_split", ("the parts have %g samples, but the dataset has %d")
                         :format(sum, n))
  end
  return sizes
end

all.define("utils.data.random_split",
           "dataset:any, lengths:table, generator:any=nil -> datasets",
           "parts of a dataset in random order; sizes or fractions",
function(dataset, lengths, generator)
  dataset = all.dataset(dataset, "random_split")
  local sizes = part_sizes(lengths, #dataset)
  local order = nacre.randperm(#dataset,
                               {generator = generator, device = "cpu"})
  local from, parts = 1, {}
  for i, n in ipairs(sizes) do
    parts[i] = subset(dataset, order:narrow(1, from, n))
    from = from + n
  end
  return table.unpack(parts)
end)
