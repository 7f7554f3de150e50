-- SPDX-License-Identifier: MIT
-- nacre.utils.data: datasets, samplers, loaders and their loops.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails, is = C.eq, C.fails, C.is
local data = nacre.utils.data

local X, y = nacre.arange(1, 11):reshape(5, 2), nacre.arange(1, 6)

local function batches(loader)
  local list = {}
  for _, b in loader do list[#list + 1] = tostring(b:totable()[1]) .. "+" ..
                                          b:numel() end
  return table.concat(list, " ")
end

-- ---- order, sizes

local loader = data.DataLoader({X, y}, {batch_size = 2})
eq(#loader, 3)
eq(batches(loader), "1+2 3+2 5+1")
eq(batches(data.DataLoader({X, y}, 2, {drop_last = true})), "1+2 3+2")
eq(#data.DataLoader({X, y}, 2, {drop_last = true}), 2)
for prefetch = 0, 3 do
  eq(batches(data.DataLoader({X, y}, {batch_size = 2, prefetch = prefetch})),
     "1+2 3+2 5+1")
end
local shuffled = data.DataLoader({X, y}, {batch_size = 5, shuffle = true})
nacre.manual_seed(3)
local _, one = shuffled(nil, nil)
nacre.manual_seed(3)
local x, two = shuffled(nil, nil)
assert(one == two)
is(two:sort(), "{1,2,3,4,5}")
assert(x:select(2, 1) == two * 2 - 1)
local g = nacre.Generator():manual_seed(5)
local own = data.DataLoader(y, {batch_size = 5, shuffle = true, generator = g})
local first = own(nil, nil)
g:manual_seed(5)
assert(own(nil, nil) == first)

-- a batch is no view of the data
for b in data.DataLoader(X, 5) do b:zero_() end
eq(X[1][1], 1)

-- ---- loops

local seen = {}
for i, b in pairs(data.DataLoader(y, 2)) do
  seen[#seen + 1] = i
  for _, c in pairs(data.DataLoader(y, 2)) do assert(c) end
  assert(b)
end
eq(table.concat(seen, " "), "1 2 3")
for _ in loader do break end
eq(batches(loader), "1+2 3+2 5+1")
fails("two loops over one loader", function()
  for _ in loader do for _ in loader do break end end
end)

local shown = {}
for a, b in nacre.progress(data.DataLoader({X, y}, 2), "epoch 1") do
  shown[#shown + 1] = #a .. "+" .. b:numel()
end
eq(table.concat(shown, " "), "2+2 2+2 1+1")

-- ---- samples of one's own

local Squares = data.Dataset "Squares"
function Squares:init(n) self.n = n end
function Squares:len() return self.n end
function Squares:get(i) return nacre.tensor(i), i * i, "n" .. i end
for a, b, names in data.DataLoader(Squares(3), 3) do
  is(a, "{1,2,3}")
  is(b, "{1,4,9}")
  eq(table.concat(names, " "), "n1 n2 n3")
end
function Squares:get(i) return {x = nacre.ones(2) * i, at = {i, -i}} end
for batch in data.DataLoader(Squares(2), 2) do
  is(batch.x, "{{1.0,1.0},{2.0,2.0}}")
  is(batch.at[2], "{-1,-2}")
end
function Squares:get(i) return {nacre.tensor(i), i} end
for a, b in data.DataLoader(Squares(2), 2) do
  is(a, "{1,2}")
  is(b, "{1,2}")
end
function Squares:get(i) return i == 1 and {x = 1} or {z = 1} end
fails("sample 2 of the batch has no 'x'", data.DataLoader(Squares(2), 2))
function Squares:get(i) return i end
for sum in data.DataLoader(Squares(4), 4, {collate_fn = function(samples)
  local s = 0
  for _, v in ipairs(samples) do s = s + v end
  return s
end}) do eq(sum, 10) end

-- ---- samples by number

local set = data.TensorDataset(X, y)
is(set[2][1], "{3,4}")
eq(set[2][2]:item(), 2)
eq(set[-1][2]:item(), 5)
eq(set[6], nil)
eq(set[-6], nil)
eq(#set.tensors, 2)
local count = 0
for i, sample in ipairs(set) do
  count = count + 1
  eq(sample[2]:item(), i)
end
eq(count, 5)
fails("TensorDataset: there is no sample 0: they count from 1 to 5",
      function() return set[0] end)
eq(data.TensorDataset(y)[3]:item(), 3)
eq(data.Subset(set, {5, 1})[1][2]:item(), 5)
eq(data.ConcatDataset(set, set)[7][2]:item(), 2)
eq((data.random_split(set, {5}))[1][1]:numel(), 2)
function Squares:get(i) return i, i * i end
eq(Squares(3)[2][2], 4)
eq(Squares(3).get, Squares.get)
for _, f in ipairs {function() return loader[1] end,
                    function() for _ in ipairs(loader) do break end end} do
  fails("DataLoader: a loader cannot be indexed",
        "for i, x, y in pairs(loader) do ... end", f)
end

-- ---- parts

local a, b = data.random_split({X, y}, {3, 2})
eq(#a + #b, 5)
local all = {}
for _, part in ipairs {a, b} do
  for _, t in data.DataLoader(part, 5) do
    table.move(t:tolist(), 1, #t, #all + 1, all)
  end
end
table.sort(all)
eq(table.concat(all, " "), "1 2 3 4 5")
local parts = {data.random_split(nacre.arange(10), {0.5, 0.3, 0.2})}
eq(#parts[1] .. " " .. #parts[2] .. " " .. #parts[3], "5 3 2")
fails("the parts have 4 samples, but the dataset has 5", data.random_split, {X,
                                                                             y},
      {2, 2})
fails("the fractions add up to 1.1, not to 1", data.random_split, {X, y},
      {0.8, 0.3})
fails("part 2 is -1, but must be a number of 0 or more", data.random_split,
      {X, y}, {6, -1})
local both = data.ConcatDataset(a, b)
eq(#both, 5)
assert(both:get(5))
eq(data.Subset(y, {5, 1}):get(1):item(), 5)
for t in data.DataLoader(data.Subset(y, {5, 1}), 2) do is(t, "{5,1}") end

-- ---- samplers

for t in data.DataLoader(y, 4, {sampler =
    data.WeightedRandomSampler({0, 1, 0, 0, 0}, 4)}) do
  is(t, "{2,2,2,2}")
end
eq(#data.DataLoader(y, 2, {sampler = data.RandomSampler(y, true, 7)}), 4)

-- more samples than there are: all of them again, in another order
for _, n in ipairs {0, 1, 5, 6, 12, 15} do
  local sampler = data.RandomSampler(y, {num_samples = n})
  local order, seen = sampler(), {}
  eq(order:numel(), n)
  eq(#sampler, n)
  for _, i in ipairs(order:tolist()) do seen[i] = (seen[i] or 0) + 1 end
  for i = 1, 5 do
    assert((seen[i] or 0) == n // 5 or (seen[i] or 0) == n // 5 + 1)
  end
  local count = 0
  for batch in data.DataLoader(y, 2, {sampler = sampler}) do
    count = count + batch:numel()
  end
  eq(count, n)
end
fails("RandomSampler: num_samples is -1, but must not be negative",
      data.RandomSampler, y, {num_samples = -1})
fails("RandomSampler: there are no samples",
      data.RandomSampler(nacre.zeros(0), {num_samples = 2}))

-- one list has the datasets
eq(#data.ConcatDataset {y, y}, 10)
eq(#data.ConcatDataset {y}, 5)
eq(#data.ConcatDataset {X, y}, 10)
eq(#data.ConcatDataset {{X, y}, {X, y}}, 10)
eq(#data.ConcatDataset {data.TensorDataset(X, y), {X, y}, y}, 15)
eq(#data.ConcatDataset(y, X), 10)
eq(#data.ConcatDataset(data.TensorDataset(y)), 5)
eq(data.ConcatDataset {y, y + 10}[7]:item(), 12)
fails("ConcatDataset: a dataset is a tensor", data.ConcatDataset, {1, 2})
is(data.SequentialSampler(y)(), "{1,2,3,4,5}")

-- a loop over a sampler ends, may be left, and begins anew
local function numbers(sampler)
  local list = {}
  for i in sampler do
    list[#list + 1] = i
    assert(#list <= 100, "the loop over a sampler does not end")
  end
  return table.concat(list, " ")
end
local sequential = data.SequentialSampler(y)
for i in sequential do if i == 2 then break end end
eq(numbers(sequential), "1 2 3 4 5")
eq(numbers(data.WeightedRandomSampler({0, 1, 0, 0, 0}, 4)), "2 2 2 2")
fails("two loops over one sampler", function()
  for _ in sequential do for i in sequential do if i == 2 then break end end end
end)

-- the ranks take turns; as in PyTorch, the last samples are left out, or the
-- first are taken again
local function turn(n, ranks, rank, drop_last)
  return data.DistributedSampler(nacre.arange(n), {num_replicas = ranks,
           rank = rank, shuffle = false, drop_last = drop_last})
end
eq(numbers(turn(10, 4, 0)), "1 5 9")
eq(numbers(turn(10, 4, 3)), "4 8 2")
eq(numbers(turn(10, 4, 3, true)), "4 8")
eq(numbers(turn(2, 5, 4)), "1")
eq(#turn(10, 4, 1), 3)
eq(turn(10, 4, 1).total_size, 12)
local part = {}
for rank = 0, 2 do
  local sampler = data.DistributedSampler(nacre.arange(9), {num_replicas = 3,
                                          rank = rank, seed = 4})
  local before = numbers(sampler)
  eq(numbers(sampler), before)
  sampler:set_epoch(1)
  assert(numbers(sampler) ~= before)
  for i in before:gmatch "%d" do part[tonumber(i)] = rank end
end
eq(#part, 9)

-- ---- a list of samples

do
  local list = {}
  for i = 1, 5 do list[i] = {nacre.full({i}, i), i % 2 == 0, "n" .. i} end
  local seen = {}
  for t, even, names in data.DataLoader(list, 2, {collate_fn = function(samples)
    local ts, flags = {}, {}
    for i, s in ipairs(samples) do ts[i], flags[i] = s[1], s[2] end
    return nacre.nn.utils.rnn.pad_sequence(ts, true), nacre.tensor(flags),
           samples[1][3]
  end}) do
    seen[#seen + 1] = ("%dx%d %s"):format(t:size(1), t:size(2), names)
    assert(even.dtype == "bool")
  end
  eq(table.concat(seen, ", "), "2x2 n1, 2x4 n3, 1x5 n5")
  local pairs_of = {{nacre.ones(2), 3}, {nacre.zeros(2), 4}}
  for t, n in data.DataLoader(pairs_of, 2) do
    is(t, "{{1.0,1.0},{0.0,0.0}}")
    is(n, "{3,4}")
  end
  local keyed = {{x = nacre.ones(1)}, {x = nacre.zeros(1)}}
  for batch in data.DataLoader(keyed, 2) do
    is(batch.x, "{{1.0},{0.0}}")
  end
  for batch in data.DataLoader({"a", "b"}, 2) do eq(batch[2], "b") end
  local first = data.random_split(list, {2, 3})
  assert(#first == 2 and #data.Subset(list, {1, 5})[2] == 3)
end
fails("a dataset is a tensor", data.DataLoader, {})

-- ---- errors

fails("batch_size is 0, but must be positive", data.DataLoader, y, 0)
fails("a dataset is a tensor, a list of tensors", data.DataLoader, 3)
for _, key in ipairs {"timeout", "worker_init_fn"} do
  fails(("'%s' is for worker processes, which Nacre does not have"):format(key),
        data.DataLoader, y, {[key] = 1})
end
data.DataLoader(y, {persistent_workers = true, num_workers = 4,
                    prefetch_factor = 2})
fails("persistent_workers needs num_workers above 0", data.DataLoader, y,
      {persistent_workers = true})
fails("prefetch_factor needs num_workers above 0", data.DataLoader, y,
      {prefetch_factor = 2})
fails("num_workers must not be negative", data.DataLoader, y,
      {num_workers = -1})
fails("first has 5 rows, other has 3", data.TensorDataset, y, nacre.ones(3))
fails("sampler and shuffle exclude each other", data.DataLoader, y,
      {shuffle = true, sampler = data.SequentialSampler(y)})
fails("a sampler has a length", data.DataLoader, y, {sampler = {1, 2}})
fails("a class has a name", data.Dataset)

-- ---- a device: the same batches there

if nacre.cuda.is_available() then
  local there = data.DataLoader({X:cpu(), y:cpu()},
                                {batch_size = 2, device = "cuda"})
  local n = 0
  for u, v in there do
    assert(u.device == "cuda:0" and v.device == "cuda:0")
    n = n + v:sum():item()
  end
  eq(n, 15)
end

-- ---- the samples of a subset are checked when it is made

do
  local rows = {nacre.arange(3)}
  local function refuses(i)
    fails(("Subset: there is no sample %d: they count from 1 to 3"):format(i),
          data.Subset, rows, {1, i})
  end
  refuses(0)
  refuses(4)
  refuses(-4)
  assert(data.Subset(rows, {-1, 1})[1]:item() == 2)
end

-- ---- batch_sampler

do
  local sampler = data.BatchSampler(data.SequentialSampler(y), 2)
  eq(#sampler, 3)
  local seen = {}
  for batch in sampler do seen[#seen + 1] = batch:numel() end
  eq(table.concat(seen, " "), "2 2 1")
  eq(#data.BatchSampler(data.SequentialSampler(y), 2, true), 2)
  eq(#data.BatchSampler(data.SequentialSampler(y), 2, true)(), 2)
  local by = data.DataLoader({X, y}, {batch_sampler = sampler})
  eq(#by, 3)
  eq(batches(by), "1+2 3+2 5+1")
  eq(batches(by), "1+2 3+2 5+1")
  local own = data.DataLoader(y, {batch_sampler = {{5, 1}, {2}}})
  eq(#own, 2)
  local lists = {}
  for b in own do lists[#lists + 1] = table.concat(b:tolist(), ",") end
  eq(table.concat(lists, " "), "5,1 2")
  nacre.manual_seed(4)
  local random = data.DataLoader(y, {batch_sampler =
    data.BatchSampler(data.RandomSampler(y), 3), generator = nil})
  local all, n = {}, 0
  for b in random do
    n = n + 1
    table.move(b:tolist(), 1, #b, #all + 1, all)
  end
  table.sort(all)
  eq(n .. ": " .. table.concat(all, " "), "2: 1 2 3 4 5")
  for _, o in ipairs {{batch_size = 2}, {shuffle = true}, {drop_last = true},
                      {sampler = data.SequentialSampler(y)}} do
    o.batch_sampler = sampler
    fails("batch_sampler excludes batch_size, shuffle, sampler and drop_last",
          data.DataLoader, y, o)
  end
  fails("a batch_sampler has a length and gives lists", data.DataLoader, y,
        {batch_sampler = 3})
  fails("batch_sampler gives lists of numbers of samples, not a number",
        data.DataLoader(y, {batch_sampler = {1}}))
  fails("BatchSampler: batch_size is 0", data.BatchSampler,
        data.SequentialSampler(y), 0)
  fails("BatchSampler: a sampler has a length", data.BatchSampler, {1}, 2)
end

-- ---- samples of an iterator

do
  local Count = data.IterableDataset "Count"
  function Count:init(n) self.n = n end
  function Count:iter()
    local i = 0
    return function()
      i = i + 1
      if i <= self.n then return nacre.tensor(i), i * i end
    end
  end
  local count = Count(5)
  local function sums(loader)
    local list = {}
    for a, b in loader do
      list[#list + 1] = a:sum():item() .. ":" .. b:sum():item()
    end
    return table.concat(list, " ")
  end
  for prefetch = 0, 7 do
    local l = data.DataLoader(count, {batch_size = 2, prefetch = prefetch})
    eq(sums(l), "3:5 7:25 5:25")
    eq(sums(l), "3:5 7:25 5:25")
  end
  eq(sums(data.DataLoader(count, 2, {drop_last = true})), "3:5 7:25")
  eq(sums(data.DataLoader(Count(0), 2)), "")
  local loader = data.DataLoader(count, 2)
  eq(tostring(loader), "DataLoader of batches of 2")
  fails("Count: the dataset has no length", function() return #loader end)
  fails("Count: the samples have no numbers", function() return count[1] end)
  for _, key in ipairs {"shuffle", "sampler", "batch_sampler"} do
    fails(("in its own order: %s is not for it"):format(key), data.DataLoader,
          count, {[key] = key == "shuffle" or data.SequentialSampler(y)})
  end
  fails("Subset: the samples of an IterableDataset have no numbers",
        data.Subset, count, {1})
  function Count:len() return self.n end
  eq(#loader, 3)
  eq(tostring(loader), "DataLoader of 3 batches of 2")
  eq(tostring(count), "Count of 5 samples")

  -- a coroutine; a triple of a for loop; a collate_fn
  local Lines = data.IterableDataset "Lines"
  function Lines:iter()
    return coroutine.wrap(function()
      for word in ("a bb ccc"):gmatch "%a+" do coroutine.yield(word) end
    end)
  end
  local joined = {}
  for text in data.DataLoader(Lines(), 2, {collate_fn = table.concat}) do
    joined[#joined + 1] = text
  end
  eq(table.concat(joined, " "), "abb ccc")
  function Lines:iter() return ipairs {"x", "y"} end
  for i, names in data.DataLoader(Lines(), 2) do
    is(i, "{1,2}")
    eq(table.concat(names), "xy")
  end
  function Lines:iter() return 3 end
  fails("Lines: iter gives an iterator, not a number",
        data.DataLoader(Lines(), 2))
  local Nothing = data.IterableDataset "Nothing"
  fails("Nothing: the class has no iter", data.DataLoader(Nothing(), 2))
  fails("IterableDataset: a class has a name", data.IterableDataset)

  local chain = data.ChainDataset(Count(2), Count(1))
  eq(#chain, 3)
  eq(sums(data.DataLoader(chain, 2)), "3:5 1:1")
  eq(#data.ChainDataset {Count(2), Count(1)}, 3)
  fails("ChainDataset: argument 2 is no IterableDataset", data.ChainDataset,
        Count(2), y)
end
