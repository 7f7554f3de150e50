-- SPDX-License-Identifier: MIT
-- collectives.lua - every collective operation with every dtype, several
-- shapes, folds and roots, compared with what each rank computes alone: every
-- rank can make the data of all ranks from a seed. Rank 0 prints the number of
-- checks. With NACRE_TEST_DEVICE=cuda all tensors are on a device of the rank.
local dist = nacre.distributed
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()
local checks = 0
local DEVICE = os.getenv "NACRE_TEST_DEVICE" or "cpu"
local own_devices = DEVICE ~= "cpu" and nacre.cuda.device_count() >= size
if DEVICE ~= "cpu" then
  DEVICE = ("%s:%d"):format(DEVICE, own_devices and rank or 0)
  nacre.set_default_device(DEVICE)
end

local function same(got, want, what, ...)
  checks = checks + 1
  local equal = got.dtype == want.dtype and got:dim() == want:dim() and
                (got:numel() == 0 or
                 nacre.allclose(got:double(), want:double(), 0, 0, true))
  for d = 1, got:dim() do equal = equal and got:size(d) == want:size(d) end
  if not equal then
    error(("rank %d: %s\ngot  %s\nwant %s"):format(rank, what:format(...), got,
                                                   want), 2)
  end
end

local DTYPES = {"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                "bfloat16", "float32", "float64"}
-- These are not folded.
local STORED = {"uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"}
local SHAPES = {{}, {1}, {5}, {0}, {2, 3}, {3, 0, 2}, {7, 1, 5}}
local FOLDS = {"sum", "mean", "prod", "min", "max", "band", "bor", "bxor"}

local function is_float(dtype) return dtype:find "float" ~= nil end

-- What rank r has: small whole numbers, so that every order of a sum gives the
-- same.
local seed = 0
local function data(dtype, shape, r)
  local g = nacre.Generator("cpu"):manual_seed(seed * 64 + r)
  return nacre.randint(-2, 3, shape, {generator = g, device = "cpu"})
              :to(dtype):to(DEVICE)
end

-- The same elements in a tensor with gaps, and the tensor around it.
local function with_gaps(t)
  local shape = {}
  for d = 1, t:dim() do shape[d] = t:size(d) end
  shape[#shape + 1] = 2
  local around = nacre.zeros(shape):to(t.dtype)
  local view = around:select(-1, 1)
  view:copy_(t)
  return view, around:select(-1, 2)
end

local function folded(name, list)
  local dtype, y = list[1].dtype, list[1]
  for i = 2, #list do
    local x = list[i]
    if dtype == "bool" then
      local meets = name == "prod" or name == "min" or name == "band"
      y = name == "bxor" and y ~ x or meets and y & x or y | x
    elseif name == "sum" or name == "mean" then y = y + x
    elseif name == "prod" then y = y * x
    elseif name == "min" then y = nacre.minimum(y, x)
    elseif name == "max" then y = nacre.maximum(y, x)
    elseif name == "band" then y = y & x
    elseif name == "bor" then y = y | x
    else y = y ~ x end
  end
  return name == "mean" and (y / #list):to(dtype) or y
end

-- Calls fn for every dtype and shape, with the data of all ranks, and of this
-- one.
local function each_tensor(dtypes, fn)
  for _, dtype in ipairs(dtypes) do
    for _, shape in ipairs(SHAPES) do
      seed = seed + 1
      local all = {}
      for r = 0, size - 1 do all[r + 1] = data(dtype, shape, r) end
      fn(all, all[rank + 1], dtype, shape)
    end
  end
end

local function fits(fold, dtype)
  if fold == "mean" then return is_float(dtype) end
  return not (fold:sub(1, 1) == "b" and is_float(dtype))
end

-- ---- folds
each_tensor(DTYPES, function(all, mine, dtype)
  for i, fold in ipairs(FOLDS) do
    if fits(fold, dtype) then
      local want, root = folded(fold, all), i % size
      local x = mine:clone()
      assert(rawequal(dist.all_reduce(x, fold), x))
      same(x, want, "all_reduce %s %s", fold, dtype)
      local view, gaps = with_gaps(mine)
      dist.all_reduce(view, {op = fold, async_op = true}):wait()
      same(view, want, "all_reduce %s %s, strided", fold, dtype)
      same(gaps, nacre.zeros_like(gaps), "its gaps")
      x = mine:clone()
      dist.reduce(x, root, fold)
      same(x, rank == root and want or mine, "reduce %s %s", fold, dtype)
      local into = mine:clone()
      dist.reduce_scatter(into, all, fold)
      local same_of_all = {}
      for r = 1, size do same_of_all[r] = mine end
      same(into, folded(fold, same_of_all), "reduce_scatter %s %s", fold, dtype)
    end
  end
end)

for _, dtype in ipairs(STORED) do
  local ok, e = pcall(dist.all_reduce, nacre.ones(2):to(dtype))
  assert(not ok and tostring(e):find("sum does not compute with " .. dtype), e)
end

-- ---- copies
local function check_copies(all, mine, dtype, shape)
  local stacked = nacre.stack(all)
  local root = seed % size
  local x = with_gaps(mine)
  dist.broadcast(x, root)
  same(x, all[root + 1], "broadcast %s", dtype)
  same(dist.all_gather(mine), stacked, "all_gather %s", dtype)
  local list = {}
  for r = 1, size do list[r] = with_gaps(nacre.zeros_like(mine)) end
  local work = dist.all_gather(list, with_gaps(mine), {async_op = true})
  assert(work:wait() == list)
  for r = 1, size do same(list[r], all[r], "all_gather, list, %s", dtype) end
  local got = dist.gather(mine, {dst = root})
  assert((got ~= nil) == (rank == root))
  if got then same(got, stacked, "gather %s", dtype) end
  x = nacre.zeros_like(mine)
  dist.scatter(x, rank == root and all or nil, root)
  same(x, mine, "scatter %s", dtype)
  x = with_gaps(nacre.zeros_like(mine))
  dist.scatter(x, {scatter_list = rank == root and stacked or nil, src = root,
                   async_op = true}):wait()
  same(x, mine, "scatter of a tensor, %s", dtype)
  -- block r of rank q is all[q] + r
  local blocks, want, out = {}, {}, {}
  for r = 1, size do
    blocks[r] = (mine:long() + r):to(dtype)
    want[r] = (all[r]:long() + rank + 1):to(dtype)
    out[r] = nacre.zeros_like(mine)
  end
  dist.all_to_all(out, blocks)
  for r = 1, size do same(out[r], want[r], "all_to_all %s", dtype) end
  out = nacre.zeros_like(stacked)
  dist.all_to_all(out, nacre.stack(blocks))
  same(out, nacre.stack(want), "all_to_all of tensors, %s", dtype)
end
each_tensor(DTYPES, check_copies)
each_tensor(STORED, check_copies)

-- ---- tensors of other sizes for each rank
local sent, received = {}, {}
for r = 1, size do
  sent[r] = nacre.full({rank + r}, 10.0 * rank + r)
  received[r] = nacre.zeros(rank + r)
end
dist.all_to_all(received, sent, {async_op = true}):wait()
for r = 1, size do
  same(received[r], nacre.full({rank + r}, 10.0 * (r - 1) + rank + 1), "uneven")
end

-- ---- nan wins, but with NCCL
for _, dtype in ipairs(own_devices and {} or
                       {"float16", "bfloat16", "float32", "float64"}) do
  for _, fold in ipairs {"min", "max"} do
    local x = nacre.tensor({1, 2, rank == 0 and nacre.nan or 3}):to(dtype)
    dist.all_reduce(x, fold)
    assert(x[3] ~= x[3] and x[1] == 1 and x[2] == 2, fold .. " of a nan")
  end
end

-- ---- messages: tags in another order, any sender, both directions
if size > 1 then
  local right, left = (rank + 1) % size, (rank - 1) % size
  local works, tensors = {}, {}
  for tag = 3, 1, -1 do
    tensors[tag] = with_gaps(nacre.zeros(4))
    works[tag] = dist.irecv(tensors[tag], left, {tag = tag})
  end
  for tag = 1, 3 do
    dist.isend(nacre.full({4}, 10.0 * rank + tag), right, {tag = tag}):wait()
  end
  for tag = 1, 3 do
    works[tag]:wait()
    same(tensors[tag], nacre.full({4}, 10.0 * left + tag), "irecv")
  end
  dist.barrier()
  if rank == 0 then
    local seen = {}
    for _ = 1, size - 1 do
      local x = nacre.zeros(2, {dtype = "int64"})
      local from = dist.recv(x)
      assert(x[1] == from and not seen[from], "recv of any")
      seen[from] = true
    end
  else
    dist.send(nacre.tensor{rank, rank}, 0)
  end
  if rank == 0 then dist.send(nacre.ones(0), 1)
  elseif rank == 1 then dist.recv(nacre.ones(0), 0) end
end

-- ---- groups
local evens = {}
for r = 0, size - 1, 2 do evens[#evens + 1] = r end
local even = dist.new_group(evens)
assert(dist.get_rank(even) == (rank % 2 == 0 and rank // 2 or -1))
if rank % 2 == 0 then
  same(dist.all_gather(nacre.tensor(rank), {group = even}),
       nacre.tensor(evens), "group")
  local x = nacre.tensor{rank}
  dist.broadcast(x, evens[#evens], even)  -- ranks are those of the world
  assert(x[1] == evens[#evens])
end
local last_first = dist.split(0, size - rank)
assert(dist.get_rank(last_first) == size - 1 - rank)
assert(dist.get_process_group_ranks(last_first)[1] == size - 1)
assert(dist.get_global_rank(last_first, 0) == size - 1)
same(dist.all_gather(nacre.tensor(rank), {group = last_first}),
     nacre.arange(size):flip(1), "split")
if rank % 2 == 0 then dist.destroy_process_group(even)
else
  local ok, e = pcall(dist.all_gather, nacre.ones(1), {group = even})
  assert(not ok and e.message == "this process is not in the group")
end

assert(dist.get_world_size(dist.group.WORLD) == size)
same(dist.all_reduce(nacre.ones(2), {group = dist.group.WORLD}),
     nacre.full({2}, size * 1.0), "group.WORLD")
local backwards = {}
for r = size - 1, 0, -1 do backwards[#backwards + 1] = r end
local reversed = dist.split_group(nil, {backwards})
assert(dist.get_rank(reversed) == size - 1 - rank)
local x = nacre.tensor{rank}
dist.broadcast(x, {group_src = 0, group = reversed})
assert(x[1] == size - 1)
assert(dist.gather(x, {group_dst = 0, group = reversed}) == nil
       or rank == size - 1)
if size % 2 == 0 then
  local own, all = dist.new_subgroups(2)
  assert(dist.get_rank(own) == rank % 2 and #all == size // 2)
end

-- ---- values
local value = {rank = rank, "a", {1.5, true, false},
               [3] = ("x"):rep(rank * 999),
               t = data("bfloat16", {2, 3}, rank)}
for r, v in ipairs(dist.all_gather_object(value)) do
  assert(v.rank == r - 1 and v[1] == "a" and v[2][1] == 1.5 and v[2][2] == true
         and v[2][3] == false and #v[3] == (r - 1) * 999)
  same(v.t, data("bfloat16", {2, 3}, r - 1):cpu(), "a tensor in a table")
end
local root = size - 1
local got = dist.broadcast_object(rank == root and value or nil, root)
assert(got.rank == root)
local list = dist.broadcast_object_list(rank == root and {1, "b"} or {0, 0},
                                        root)
assert(list[1] == 1 and list[2] == "b")
local odd = dist.all_gather_object(rank % 2 == 1 and rank or nil)
assert(odd.n == size and odd[1] == nil and (size < 2 or odd[2] == 1))

-- ---- many at once, awaited backwards; and one that nobody awaits
local works, tensors = {}, {}
for i = 1, 20 do
  tensors[i] = nacre.full({100 * i}, i * (rank + 1))
  works[i] = dist.all_reduce(tensors[i], {async_op = true})
end
dist.all_reduce(nacre.ones(50), {async_op = true})
collectgarbage()
for i = 20, 1, -1 do
  works[i]:wait()
  same(tensors[i], nacre.full({100 * i}, i * size * (size + 1) // 2), "many")
  assert(works[i]:is_completed())
end

-- ---- a tensor that gives up its memory while it is under way
local given = nacre.full({100000}, rank * 1.0)
local part = given:view(-1)
local started = dist.all_reduce(given, {op = "mean", async_op = true})
given:set_(nacre.zeros(3))
collectgarbage()
started:wait()
same(part:narrow(1, 1, 2), nacre.full({2}, (size - 1) / 2.0), "set_ under way")
if not own_devices then  -- where the copy would race with NCCL's stream
  given = nacre.full({100000}, rank * 1.0)
  started = dist.all_reduce(given, {async_op = true})
  given:resize_(1000000)
  started:wait()
end

-- ---- what backward needs was written to
if size > 1 then
  local w = nacre.ones(2):requires_grad_()
  local y = w * 2
  local z = y * y
  dist.all_reduce(y)
  local ok, e = pcall(function() z:sum():backward() end)
  assert(not ok and tostring(e):find "changed", tostring(e))
end

-- ---- what no rank can ask for
local function refused(text, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end
local numbers = {}
for r = 1, size do numbers[r] = r end
refused("element 1 is not a tensor", dist.all_to_all, numbers, numbers)
refused(("there is no rank %d in the group"):format(size), dist.gather_object,
        1, size)
refused("src and group_src exclude each other", dist.broadcast, nacre.ones(1),
        {src = 0, group_src = 0})
refused("rank is ", function()
  dist.destroy_process_group()
  local _, e = pcall(dist.init_process_group, {rank = rank + 1})
  dist.init_process_group {rank = rank, world_size = size}
  error(e, 0)
end)
refused("color must be below 2^31, not 4294967296", dist.split, 1 << 32)

dist.barrier()
if rank == 0 then print(checks .. " checks") end
