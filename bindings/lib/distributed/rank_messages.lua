-- SPDX-License-Identifier: MIT
-- rank_messages.lua - nacre.distributed: what is made of messages from rank to
-- rank, and of several operations at once.
local all = ...
all.require "nacre.collective_lists"
local fail, blocks = all.fail, all.blocks
local dist = all.space "distributed"

local ALL_TO_ALL_TAG = 32767  -- the largest that every MPI has

-- Tensors for different ranks may have different sizes, so they are messages.
local function exchange(outputs, inputs, group)
  local works, me = {}, dist.get_rank(group)
  for i, rank in ipairs(dist.get_process_group_ranks(group)) do
    if i - 1 == me then
      nacre.no_grad(outputs[i].copy_, outputs[i], inputs[i])
    else
      works[#works + 1] = dist.irecv(outputs[i], rank, group, ALL_TO_ALL_TAG)
      works[#works + 1] = dist.isend(inputs[i], rank, group, ALL_TO_ALL_TAG)
    end
  end
  return works
end

-- Ends several operations as one, whose result this is.
local function end_of_all(works, result, group, async)
  local last = table.remove(works) or dist.barrier(group, true) -- of one rank
  local function rest()
    for _, w in ipairs(works) do w:wait() end
  end
  if async then return blocks.after(last, result, rest) end
  last:wait()
  rest()
  return result
end

all.define("distributed.all_to_all",
  "output_tensor_list:any, input_tensor_list:any, group:any=nil, "
  .. "async_op:bool=false -> result",
  "sends input_tensor_list[i] to the i-th rank, and fills "
  .. "output_tensor_list with what the ranks send here; or the same with the "
  .. "first dimension of two tensors",
function(outputs, inputs, group, async)
  local n = dist.get_world_size(group)
  if nacre.is_tensor(outputs) and nacre.is_tensor(inputs) then
    return dist.all_to_all_single(outputs, inputs, nil, nil, group, async)
  end
  for name, list in pairs {output_tensor_list = outputs,
                           input_tensor_list = inputs} do
    if type(list) ~= "table" or #list ~= n then
      fail("all_to_all", ("%s must have a tensor for each of %d ranks")
                         :format(name, n))
    end
  end
  for i = 1, n do
    local to, from = outputs[i], inputs[i]
    if not (nacre.is_tensor(to) and nacre.is_tensor(from)) then
      fail("all_to_all", ("element %d is not a tensor"):format(i))
    elseif to.dtype ~= inputs[1].dtype or from.dtype ~= inputs[1].dtype then
      fail("all_to_all", "the tensors are of different dtypes")
    end
  end
  return end_of_all(exchange(outputs, inputs, group), outputs, group, async)
end)

-- Rows of t for each rank, a list of views.
local function rows_of(op, t, sizes, name, n)
  local total, list = 0, {}
  if type(sizes) ~= "table" or #sizes ~= n then
    fail(op, ("%s must have a number of rows for each of %d ranks"):format(name,
                                                                           n))
  end
  for i, k in ipairs(sizes) do
    if math.type(k) ~= "integer" or k < 0 then
      fail(op, ("%s[%d] is not a number of rows"):format(name, i))
    end
    total = total + k
  end
  local rows = t:dim() > 0 and t:size(1) or 1
  if total ~= rows then
    fail(op, ("%s adds up to %d rows, but there are %d"):format(name, total,
                                                                rows))
  end
  local at = 1
  for i, k in ipairs(sizes) do
    list[i] = t:narrow(1, k > 0 and at or 1, k)
    at = at + k
  end
  return list
end

-- Equal numbers of rows.
local function equal_parts(op, t, n)
  local rows, list = t:dim() > 0 and t:size(1) or 1, {}
  if rows % n ~= 0 then
    fail(op, ("%d rows cannot be cut into %d equal parts"):format(rows, n))
  end
  for i = 1, n do list[i] = rows // n end
  return list
end

all.define("distributed.all_to_all_single",
  "output:tensor, input:tensor, output_split_sizes:any=nil, "
  .. "input_split_sizes:any=nil, group:any=nil, async_op:bool=false -> result",
  "input has rows for each rank, equally many or by input_split_sizes; output "
    .. "gets the rows for this rank from all, by output_split_sizes",
function(out, input, out_sizes, in_sizes, group, async)
  local op, n = "all_to_all_single", dist.get_world_size(group)
  if not (out_sizes or in_sizes) then
    return blocks.all_to_all(out, input, group, async)
  end
  local to = rows_of(op, out, out_sizes or equal_parts(op, out, n),
                     "output_split_sizes", n)
  local from = rows_of(op, input, in_sizes or equal_parts(op, input, n),
                       "input_split_sizes", n)
  if out.dtype ~= input.dtype then
    fail(op, ("output is %s, input %s"):format(out.dtype, input.dtype))
  end
  return end_of_all(exchange(to, from, group), out, group, async)
end)

-- ---- several messages at once

local Message = {__tostring = function(m)
  return ("P2POp(%s %s, %s)"):format(m.op == dist.isend and "isend to"
                                    or "irecv from",
                                    m.peer or m.group_peer or "any",
                                    m.tensor.dtype)
end}

all.define("distributed.P2POp",
  "op:fn, tensor:tensor, peer:int=nil, group:any=nil, tag:int=0, "
  .. "group_peer:int=nil -> message",
  "a message for batch_isend_irecv: op is distributed.isend or irecv",
function(op, t, peer, group, tag, group_peer)
  if op ~= dist.isend and op ~= dist.irecv then
    fail("P2POp", "op must be nacre.distributed.isend or irecv")
  end
  return setmetatable({op = op, tensor = t, peer = peer, group = group,
                       tag = tag, group_peer = group_peer}, Message)
end)

all.define("distributed.batch_isend_irecv", "p2p_op_list:table -> list",
  "starts the messages of a list of P2POp; returns a work for each",
function(list)
  local works = {}
  if #list == 0 then
    fail("batch_isend_irecv", "p2p_op_list must be a list of P2POp")
  end
  for i, m in ipairs(list) do
    if getmetatable(m) ~= Message then
      fail("batch_isend_irecv", ("element %d is not a P2POp"):format(i))
    end
  end
  for i, m in ipairs(list) do
    works[i] = m.op(m.tensor, m.peer, m.group, m.tag, m.group_peer)
  end
  return works
end)

all.define("distributed.all_reduce_coalesced",
  "tensors:table, " .. all.fold_param .. "group:any=nil, "
  .. "async_op:bool=false -> result",
  "all_reduce of each tensor in a list, all at once",
function(list, op, group, async)
  local works = {}
  for i, t in ipairs(list) do works[i] = dist.all_reduce(t, op, group, true) end
  return end_of_all(works, list, group, async)
end)

all.define("distributed.monitored_barrier",
  "group:any=nil, timeout:num=nil, wait_all_ranks:bool=false -> result",
  "like barrier, but errors name the ranks that did not come within timeout "
    .. "seconds; wait_all_ranks is always true",
function(group, timeout)
  return dist.barrier(group, false, nil, timeout)
end)

-- ---- groups

all.define("distributed.new_subgroups_by_enumeration",
  "ranks_per_subgroup_list:table -> group, list",
  "one group for each list of ranks; returns the group of this process (or "
    .. "nil) and all groups; every process must call it",
function(lists)
  local groups, own = {}, nil
  for i, list in ipairs(lists) do
    groups[i] = dist.new_group(list)
    if dist.get_rank(groups[i]) >= 0 then own = groups[i] end
  end
  return own, groups
end)

all.define("distributed.new_subgroups",
  "group_size:int=nil -> group, list",
  "groups of group_size consecutive ranks, by default of those of each "
    .. "machine; returns the group of this process and all groups; every "
    .. "process calls "
  .. "it",
function(size)
  local n, lists = dist.get_world_size(), {}
  size = size or dist.info().local_size
  if size < 1 or n % size ~= 0 then
    fail("new_subgroups", ("%d ranks cannot be cut into groups of %d")
                          :format(n, size))
  end
  for first = 0, n - 1, size do
    local list = {}
    for r = first, first + size - 1 do list[#list + 1] = r end
    lists[#lists + 1] = list
  end
  return dist.new_subgroups_by_enumeration(lists)
end)

all.define("distributed.split_group",
  "parent_pg:any=nil, split_ranks:table -> group",
  "the group of the list in split_ranks that has the rank of this process in "
    .. "parent_pg, or nil; every process of parent_pg calls it",
function(parent, lists)
  local rank, color, key = dist.get_rank(parent), -1, 0
  for i, list in ipairs(lists) do
    if type(list) ~= "table" then
      fail("split_group", "split_ranks must be a list of lists of ranks")
    end
    for k, r in ipairs(list) do if r == rank then color, key = i, k end end
  end
  local group = dist.split(color, key, parent)
  return color >= 0 and group or nil
end)

-- ---- names of PyTorch

all.alias("distributed.all_gather_single", dist.all_gather_into_tensor)
all.alias("distributed.reduce_scatter_single", dist.reduce_scatter_tensor)
all.alias("distributed.gather_single", dist.gather)
all.alias("distributed.gather_into_tensor", dist.gather)

all.define("distributed.is_backend_available", "backend:text -> boolean",
  "is the backend mpi, which carries tensors here, or single, for one process?",
function(name) return name == "mpi" or name == "single" end)

all.define("distributed.is_mpi_available", "-> boolean",
  "does MPI carry tensors? True where its plug-in was built",
function() return true end)

all.define("distributed.is_gloo_available", "-> boolean",
  "is PyTorch's library gloo available? Always false",
function() return false end)
