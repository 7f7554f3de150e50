-- SPDX-License-Identifier: MIT
-- collective_lists.lua - nacre.distributed: the collective operations with a
-- tensor for each rank. Those with lists use one tensor of all blocks, which is
-- cut up when the operation is done.
local all = ...
local fail, blocks = all.fail, all.blocks
local dist = all.space "distributed"

for name, f in pairs(all.distributed) do dist[name] = f end
dist._deafen, dist._tell = blocks.deafen, blocks.tell  -- for the session

-- The group of all processes: what nil is, too.
dist.group = {WORLD = blocks.world_group()}

-- The rank among all processes that a call names as one of them, or as one of
-- the group by the argument group_NAME; 0 without either.
function all.root_of(op, name, rank, of_group, group)
  if of_group == nil then return rank or 0 end
  if rank ~= nil then
    fail(op, ("%s and group_%s exclude each other"):format(name, name))
  end
  return dist.get_global_rank(group, of_group)
end

-- The words that all_reduce and others take, by PyTorch's names.
dist.ReduceOp = {SUM = "sum", AVG = "mean", PRODUCT = "prod", MIN = "min",
                 MAX = "max", BAND = "band", BOR = "bor", BXOR = "bxor"}
all.fold_param = "op:sum|mean|avg|prod|product|min|max|band|bor|bxor=sum, "

-- The number of ranks in the group, which this process must be in.
local function size_of(op, group)
  local n = dist.get_world_size(group)
  if n < 0 then fail(op, "this process is not in the group") end
  return n
end

-- An uninitialized tensor with a block like t for each of n ranks.
local function new_blocks(t, n)
  local size = {n}
  for d = 1, t:dim() do size[d + 1] = t:size(d) end
  return t:new_empty(size)
end

-- Checks that list has a tensor for each of n ranks, all like t, whose name is
-- `like'.
local function check_list(op, list, name, n, t, like)
  if type(list) ~= "table" then
    fail(op, ("%s must be a list of tensors, not a %s"):format(name,
              type(list)))
  elseif #list ~= n then
    fail(op, ("%s has %d tensors for %d ranks"):format(name, #list, n))
  end
  for i, x in ipairs(list) do
    if not nacre.is_tensor(x) then
      fail(op, ("element %d of %s is not a tensor"):format(i, name))
    elseif x.dtype ~= t.dtype or x:numel() ~= t:numel() then
      fail(op, ("{element %d} differs from {%s}"):format(i, like), nil,
           "element " .. i, x, like, t)
    end
  end
end

local function copy_blocks(from, list)
  nacre.no_grad(function()
    for i, t in ipairs(list) do t:copy_(from:select(1, i):view(t:size())) end
  end)
end

-- The blocks in one tensor, of a list, or of a tensor that has them already.
local function joined(op, v, name, n, t, like)
  if nacre.is_tensor(v) then return v end
  check_list(op, v, name, n, t, like)
  return nacre.no_grad(function()
    local all_blocks = new_blocks(t, n)
    for i, x in ipairs(v) do all_blocks:select(1, i):copy_(x:view(t:size())) end
    return all_blocks
  end)
end

-- Ends an operation: `started' is a work or what it gave; then fn cuts up.
local function ending(started, async, result, fn)
  if async then return blocks.after(started, result, fn) end
  if fn then fn() end
  return result
end

all.define("distributed.all_gather",
  "tensor_list:any, tensor:tensor=nil, group:any=nil, async_op:bool=false "
  .. "-> result",
  "the tensors of all ranks in one, along a new first dimension; or in "
  .. "tensor_list, if a list is given before the tensor",
function(list, t, group, async)
  local op = "all_gather"
  if nacre.is_tensor(list) then list, t = nil, t or list end
  if not t then fail(op, "a tensor is missing") end
  local n = size_of("all_gather", group)
  if list then check_list(op, list, "tensor_list", n, t, "tensor") end
  local out = new_blocks(t, n)
  local started = dist.all_gather_into_tensor(out, t, group, async)
  return ending(started, async, list or out,
                list and function() copy_blocks(out, list) end)
end)

all.define("distributed.gather",
  "tensor:tensor, gather_list:any=nil, dst:int=nil, group:any=nil, "
  .. "async_op:bool=false, group_dst:int=nil -> result",
  "on rank dst, the tensors of all ranks: in gather_list, or in one tensor, "
  .. "along a new first dimension; nil on other ranks",
function(t, list, dst, group, async, group_dst)
  local n = size_of("gather", group)
  dst = all.root_of("gather", "dst", dst, group_dst, group)
  local here = dist.get_rank() == dst
  if list and not here then
    fail("gather", "gather_list is for rank dst only")
  elseif nacre.is_tensor(list) then
    return blocks.gather(t, list, dst, group, async)
  elseif list then check_list("gather", list, "gather_list", n, t, "tensor") end
  local out = here and new_blocks(t, n) or nil
  local started = blocks.gather(t, out, dst, group, async)
  return ending(started, async, list or out,
                list and function() copy_blocks(out, list) end)
end)

all.define("distributed.scatter",
  "tensor:tensor, scatter_list:any=nil, src:int=nil, group:any=nil, "
  .. "async_op:bool=false, group_src:int=nil -> result",
  "on every rank, tensor = its element of scatter_list of rank src, or of "
  .. "a tensor whose first dimension is the ranks",
function(t, list, src, group, async, group_src)
  src = all.root_of("scatter", "src", src, group_src, group)
  local here = dist.get_rank() == src
  if here and not list then fail("scatter", "rank src needs scatter_list") end
  if list and not here then
    fail("scatter", "scatter_list is for rank src only")
  end
  local n = size_of("scatter", group)
  local from = here and joined("scatter", list, "scatter_list", n, t, "tensor")
  return blocks.scatter(t, from or nil, src, group, async)
end)

all.define("distributed.reduce_scatter",
  "output:tensor, input_list:any, " .. all.fold_param
  .. "group:any=nil, async_op:bool=false -> result",
  "output = the sum over all ranks of the tensor for this rank in input_list, "
    .. "or in a tensor whose first dimension is the ranks",
function(out, list, op, group, async)
  local n = size_of("reduce_scatter", group)
  local from = joined("reduce_scatter", list, "input_list", n, out, "output")
  return dist.reduce_scatter_tensor(out, from, op, group, async)
end)
