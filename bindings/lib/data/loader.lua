-- SPDX-License-Identifier: MIT
-- loader.lua - nacre.utils.data.DataLoader: batches of a dataset.
--
--   for x, y in loader do ... end              -- the loader is the iterator
--   for i, x, y in pairs(loader) do ... end    -- with the number of the batch
--   #loader                                    -- batches
--
-- The order of the samples is drawn when a loop begins. With device, the next
-- batch is gathered and copied while the caller works on this one: to a GPU
-- through page-locked memory, on a stream of its own.
local all = ...
all.require "nacre.module_tensors"
local fail, data, map_tensors = all.fail, all.space "utils.data",
                                all.map_tensors

local Loader = {}

function Loader:__index(key)
  if math.type(key) ~= "integer" then return Loader[key] end
  fail("DataLoader", "a loader cannot be indexed: iterate over it",
       "for i, x, y in pairs(loader) do ... end")
end

function Loader:__len()
  if self.batch_sampler then return #self.batch_sampler end
  local n = self.sampler and #self.sampler or #self.dataset
  if self.drop_last then return n // self.batch_size end
  return (n + self.batch_size - 1) // self.batch_size
end

function Loader:__tostring()
  if self.batch_sampler then return "DataLoader of batches of a sampler" end
  if self.dataset.is_iterable and not self.dataset.len then
    return ("DataLoader of batches of %d"):format(self.batch_size)
  end
  return ("DataLoader of %d batches of %d"):format(#self, self.batch_size)
end

-- The numbers of the samples of one epoch, an int64 tensor.
local function order_of(self)
  if self.sampler then
    local order = self.sampler(self.generator)
    return nacre.is_tensor(order) and order or
           nacre.tensor(order, {dtype = "int64", device = "cpu"})
  end
  local options = {generator = self.generator, device = "cpu"}
  if self.shuffle then return nacre.randperm(#self.dataset, options) end
  return nacre.arange(1, #self.dataset + 1, {device = "cpu"})
end

-- The values of the samples with these numbers.
local function gather(self, indices)
  if self.dataset.batch and not self.collate_fn then
    local list = self.dataset:batch(indices)
    list.n = list.n or #list
    return list
  end
  return all.batch_by_samples(self.dataset, indices, self.collate_fn)
end

-- The batch on its way to the device, and the event after which it is there.
local function send(self, batch)
  local device, stream = self.device, self._stream
  if not device then
    if self.pin_memory then
      batch = map_tensors(batch, function(t) return t:pin_memory() end)
    end
    return batch
  end
  local function move(t)
    if t.device == "cpu" and stream then t = t:pin_memory() end
    return t:to(device, {non_blocking = true})
  end
  if not stream then return map_tensors(batch, move) end
  return nacre.cuda.stream(stream, function()
    return map_tensors(batch, move), stream:record_event()
  end)
end

-- A function that gives the numbers of the samples of the next batch, a tensor.
local function numbers_of_batches(self)
  local order, at = order_of(self), 1
  local n, size = order:size(1), self.batch_size
  return function()
    local count = math.min(size, n - at + 1)
    if count < 1 or self.drop_last and count < size then return end
    at = at + count
    return order:narrow(1, at - count, count)
  end
end

-- The same of a batch_sampler.
local function numbers_of_sampler(self)
  local list, i = self.batch_sampler, 0
  if getmetatable(list) then list = list(self.generator) end
  return function()
    i = i + 1
    local numbers = list[i]
    if numbers == nil or nacre.is_tensor(numbers) then return numbers end
    if type(numbers) ~= "table" then
      fail("DataLoader", ("batch_sampler gives lists of numbers of samples, "
                          .. "not a %s"):format(type(numbers)))
    end
    return nacre.tensor(numbers, {dtype = "int64", device = "cpu"})
  end
end

-- The samples of the next batch of an IterableDataset, as their values.
local function iterated_batches(self)
  local next_sample = all.samples_of(self.dataset)
  return function()
    local samples = {}
    while next_sample and #samples < self.batch_size do
      local sample = next_sample()
      if not sample then next_sample = nil else samples[#samples + 1] = sample
      end
    end
    if #samples == 0 or self.drop_last and #samples < self.batch_size then
      return
    end
    return all.batch_of(samples, self.collate_fn)
  end
end

-- The values of the next batch.
local function values_of_batches(self)
  if self.dataset.is_iterable then return iterated_batches(self) end
  local numbers = self.batch_sampler and numbers_of_sampler(self) or
                  numbers_of_batches(self)
  return function()
    local indices = numbers()
    return indices and gather(self, indices)
  end
end

-- A function that gives the next batch of an epoch, prefetched.
local function batches(self)
  local next_values = values_of_batches(self)
  local function prepare()
    local values = next_values()
    return values and table.pack(send(self, values))
  end
  local waiting = {}
  return function()
    for i = #waiting + 1, 1 + self.prefetch do waiting[i] = prepare() end
    local ready = table.remove(waiting, 1)
    if not ready then return end
    local batch, event = ready[1], ready[2]
    if event then nacre.cuda.current_stream():wait_event(event) end
    return table.unpack(batch, 1, batch.n)
  end
end

-- The iterator of `for x, y in loader': `last' is nil at the beginning of a
-- loop and then the first value of the batch before.
function Loader:__call(_, last)
  if last == nil then
    self._next = batches(self)
  elseif not rawequal(last, self._last) then
    fail("DataLoader", "two loops over one loader at the same time",
         "for i, x in pairs(loader) do ... end")
  end
  local function remember(first, ...)
    self._last = first
    return first, ...
  end
  return remember(self._next())
end

function Loader:__pairs()
  local next_batch, i = batches(self), 0
  local function counted(first, ...)
    if first == nil then return end
    i = i + 1
    return i, first, ...
  end
  return function() return counted(next_batch()) end
end

-- Fails unless o[key] has a length and can be called.
local function check_sampler(o, key, gives)
  local v = o[key]
  local meta = getmetatable(v)
  if v == nil or type(meta) == "table" and meta.__len and meta.__call then
    return
  end
  if key == "batch_sampler" and type(v) == "table" and not meta then return end
  fail("DataLoader", ("a %s has a length and gives %s when it is called")
                     :format(key, gives))
end

-- Fails for options that are of no use together, as in PyTorch.
local function check_exclusions(o)
  if o.dataset.is_iterable then
    for _, key in ipairs {"shuffle", "sampler", "batch_sampler"} do
      if o[key] then
        fail("DataLoader", ("an IterableDataset gives its samples in its own "
                            .. "order: %s is not for it"):format(key))
      end
    end
  end
  if o.shuffle and o.sampler then
    fail("DataLoader", "sampler and shuffle exclude each other")
  end
  if o.batch_sampler and (o.batch_size ~= 1 or o.shuffle or o.sampler or
                          o.drop_last) then
    fail("DataLoader", "batch_sampler excludes batch_size, shuffle, sampler "
                       .. "and drop_last")
  end
end

local function check_workers(o)
  if o.num_workers < 0 then
    fail("DataLoader", "num_workers must not be negative")
  end
  if o.prefetch_factor and o.num_workers == 0 then
    fail("DataLoader", "prefetch_factor needs num_workers above 0")
  elseif o.prefetch_factor and o.prefetch_factor < 0 then
    fail("DataLoader", "prefetch_factor must not be negative")
  end
  if o.persistent_workers and o.num_workers == 0 then
    fail("DataLoader", "persistent_workers needs num_workers above 0")
  end
end

local function check_options(o)
  if o.batch_size < 1 then
    fail("DataLoader", ("batch_size is %d, but must be positive")
                       :format(o.batch_size))
  end
  if o.prefetch < 0 then fail("DataLoader", "prefetch must not be negative") end
  check_workers(o)
  check_exclusions(o)
  check_sampler(o, "sampler", "the numbers of the samples")
  check_sampler(o, "batch_sampler", "lists of the numbers of samples")
end

-- Options of PyTorch that ask something of worker processes. How many there
-- are, how long they stay and how far each is ahead is of no account.
local function refuse_workers(options)
  if type(options) ~= "table" or getmetatable(options) ~= nil then return end
  for _, key in ipairs {"timeout", "worker_init_fn",
                        "multiprocessing_context"} do
    if options[key] then
      fail("DataLoader",
           ("'%s' is for worker processes, which Nacre does not have")
           :format(key))
    end
  end
end

local signature = all.parse("utils.data.DataLoader",
  "dataset:any, batch_size:int=1, shuffle:bool=false, sampler:any=nil, "
  .. "batch_sampler:any=nil, num_workers:int=0, collate_fn:fn=nil, "
  .. "pin_memory:bool=false, "
  .. "drop_last:bool=false, generator:any=nil, device:any|device=nil, "
  .. "prefetch:int=1, persistent_workers:bool=false, "
  .. "prefetch_factor:int=nil -> loader")

function data.DataLoader(...)
  refuse_workers((select(-1, nil, ...)))
  local v = all.read("DataLoader", signature, ...)
  local self = {}
  for i, p in ipairs(signature.params) do self[p.name] = v[i] end
  self.dataset = all.dataset(self.dataset, "DataLoader", true)
  check_options(self)
  if self.device then
    self.device = nacre.zeros(0, {device = self.device}).device
    if self.device ~= "cpu" then
      self._stream = nacre.cuda.Stream(self.device)
    end
  end
  return setmetatable(self, Loader)
end
all.describe("utils.data.DataLoader", data.DataLoader,
             "batches of a dataset, to iterate over", signature)

-- ---- samplers: they have a length, and give the numbers of samples

-- The next number of a loop, like Loader:__call, over those in order.
local function next_number(self, order, last)
  if last == nil then
    local numbers = order(self)
    self._numbers = nacre.is_tensor(numbers) and numbers:tolist() or numbers
    self._at = 0
  elseif not self._numbers or last ~= self._numbers[self._at] then
    fail("sampler", "two loops over one sampler at the same time",
         "ipairs(sampler():tolist())")
  end
  self._at = self._at + 1
  return self._numbers[self._at]
end

-- The event by which sampler(generator) gives all numbers of an epoch, a
-- tensor that order(self, generator) makes, and `for i in sampler' each: a loop
-- calls with a state, too.
function all.sampler_call(order)
  return function(self, generator, ...)
    if select("#", ...) == 0 then return order(self, generator) end
    return next_number(self, order, (...))
  end
end

-- How many samples there are in what has a length.
local function length_of(op, samples)
  local ok, n = pcall(function() return #samples end)
  if not ok or not math.tointeger(n) then
    fail(op, "data_source must have a length, like a dataset or a list")
  end
  return n
end

local function sampler(name, text, doc, order)
  local s = all.parse("utils.data." .. name, text .. " -> sampler")
  local class = {__len = function(self) return self.n end,
                 __call = all.sampler_call(order)}
  data[name] = function(...)
    local self = {}
    for i, value in pairs(all.read(name, s, ...)) do
      self[s.params[i].name] = value
    end
    self.n = self.num_samples or length_of(name, self.data_source)
    if self.n < 0 then
      fail(name, ("num_samples is %d, but must not be negative"):format(self.n))
    end
    return setmetatable(self, class)
  end
  all.describe("utils.data." .. name, data[name], doc, s)
end

sampler("SequentialSampler", "data_source:any", "all samples in order",
function(self) return nacre.arange(1, self.n + 1, {device = "cpu"}) end)

sampler("RandomSampler",
  "data_source:any, replacement:bool=false, num_samples:int=nil",
  "all samples in random order, or num_samples of them (if more than there "
    .. "are, all again in another order); with replacement, each drawn from "
    .. "all",
function(self, generator)
  local options = {generator = generator, device = "cpu"}
  local total = #self.data_source
  if total == 0 and self.n > 0 then
    fail("RandomSampler", "there are no samples")
  end
  if self.replacement then
    return nacre.randint(1, total + 1, {self.n}, options)
  end
  local rounds = {nacre.randperm(total, options)}
  for i = 2, total > 0 and (self.n + total - 1) // total or 1 do
    rounds[i] = nacre.randperm(total, options)
  end
  return nacre.cat(rounds):narrow(1, 1, self.n)
end)

sampler("WeightedRandomSampler",
  "weights:any, num_samples:int, replacement:bool=true",
  "num_samples samples, each drawn in proportion to its weight",
function(self, generator)
  local w = nacre.is_tensor(self.weights) and self.weights or
            nacre.tensor(self.weights, {dtype = "float64", device = "cpu"})
  return nacre.multinomial(w, self.n, self.replacement,
                           {generator = generator})
end)

-- ---- batches of the numbers that a sampler gives

local Batches = {}
Batches.__index = Batches

function Batches:__len()
  local n = #self.sampler
  return self.drop_last and n // self.batch_size or
         (n + self.batch_size - 1) // self.batch_size
end

-- The list of the batches of an epoch, of which each is a tensor.
local function list_of_batches(self, generator)
  local order = self.sampler(generator)
  if not nacre.is_tensor(order) then
    order = nacre.tensor(order, {dtype = "int64", device = "cpu"})
  end
  local list, size = {}, self.batch_size
  for at = 1, order:size(1), size do
    local count = math.min(size, order:size(1) - at + 1)
    if count == size or not self.drop_last then
      list[#list + 1] = order:narrow(1, at, count)
    end
  end
  return list
end

-- batches(generator): all of them; `for batch in batches' each.
function Batches:__call(generator, ...)
  if select("#", ...) == 0 then return list_of_batches(self, generator) end
  local last = (...)
  if last == nil then self._list, self._at = list_of_batches(self), 0
  elseif not self._list or not rawequal(last, self._list[self._at]) then
    fail("BatchSampler", "two loops over one sampler at the same time: "
                         .. "sampler() gives the list of all batches")
  end
  self._at = self._at + 1
  return self._list[self._at]
end

local batch_signature = all.parse("utils.data.BatchSampler",
  "sampler:any, batch_size:int, drop_last:bool=false -> sampler")

function data.BatchSampler(...)
  local v = all.read("BatchSampler", batch_signature, ...)
  local self = {sampler = v[1], batch_size = v[2], drop_last = v[3]}
  local meta = getmetatable(self.sampler)
  if type(meta) ~= "table" or not meta.__len or not meta.__call then
    fail("BatchSampler", "a sampler has a length and gives the numbers of the "
                         .. "samples when it is called")
  end
  if self.batch_size < 1 then
    fail("BatchSampler", ("batch_size is %d, but must be positive")
                         :format(self.batch_size))
  end
  return setmetatable(self, Batches)
end
all.describe("utils.data.BatchSampler", data.BatchSampler,
             "lists of the numbers of samples, of one size each: the "
             .. "batch_sampler of a DataLoader", batch_signature)
