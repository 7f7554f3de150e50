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
  local n = self.sampler and #self.sampler or #self.dataset
  if self.drop_last then return n // self.batch_size end
  return (n + self.batch_size - 1) // self.batch_size
end

function Loader:__tostring()
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

-- A function that gives the next batch of an epoch, prefetched.
local function batches(self)
  local order, at = order_of(self), 1
  local n, size = order:size(1), self.batch_size
  local function prepare()
    local count = math.min(size, n - at + 1)
    if count < 1 or self.drop_last and count < size then return end
    local indices = order:narrow(1, at, count)
    at = at + count
    return table.pack(send(self, gather(self, indices)))
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

local function check_options(o)
  if o.batch_size < 1 then
    fail("DataLoader", ("batch_size is %d, but must be positive")
                       :format(o.batch_size))
  end
  if o.prefetch < 0 then fail("DataLoader", "prefetch must not be negative") end
  if o.shuffle and o.sampler then
    fail("DataLoader", "sampler and shuffle exclude each other")
  end
  local meta = getmetatable(o.sampler)
  if o.sampler and not (type(meta) == "table" and meta.__len and meta.__call)
  then
    fail("DataLoader", "a sampler has a length and gives the numbers of the "
                       .. "samples when it is called")
  end
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
  .. "num_workers:int=0, collate_fn:fn=nil, pin_memory:bool=false, "
  .. "drop_last:bool=false, generator:any=nil, device:any|device=nil, "
  .. "prefetch:int=1, persistent_workers:bool=false, "
  .. "prefetch_factor:int=nil -> loader")

function data.DataLoader(...)
  refuse_workers((select(-1, nil, ...)))
  local v = all.read("DataLoader", signature, ...)
  local self = {}
  for i, p in ipairs(signature.params) do self[p.name] = v[i] end
  self.dataset = all.dataset(self.dataset, "DataLoader")
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
