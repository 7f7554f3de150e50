-- SPDX-License-Identifier: MIT
-- The cases of collectives_torch.py, whose path is the first argument, on
-- several ranks: each rank writes a line for each case into PATH.RANK.
local dist = nacre.distributed
dist.init_process_group()
local rank, size = dist.get_rank(), dist.get_world_size()
local cases = dofile(arg[1])
local groups = {}
for i, list in ipairs(cases.groups) do groups[i] = dist.new_group(list) end

-- The data of rank r in this case, as in collectives_torch.py.
local function data(c, r, shape, block)
  local n, list = 1, {}
  for _, k in ipairs(shape) do n = n * k end
  for k = 1, n do
    local i = k - 1
    local v = (i * 7 + r * 5 + c.id * 3 + i * i * r + (block or 0) * 11) % 7 - 3
    list[k] = c.dtype == "bool" and v % 2 or
              c.dtype == "uint8" and v + 3 or v
  end
  local t = nacre.tensor(list, {dtype = "float64"}):to(c.dtype)
  return n == 0 and nacre.zeros(shape):to(c.dtype) or t:reshape(shape)
end

local function text(v)
  if nacre.is_tensor(v) then
    local list = v:double():flatten():tolist()
    for i, x in ipairs(list) do list[i] = ("%.6g"):format(x) end
    return ("%s[%s] %s"):format(v.dtype, table.concat(v:size(), ","),
                                table.concat(list, " "))
  elseif type(v) == "table" then
    local list = {}
    for i = 1, v.n or #v do list[i] = text(v[i]) end
    return "{" .. table.concat(list, "; ") .. "}"
  end
  return math.type(v) == "float" and ("%.6g"):format(v) or tostring(v)
end

local function finish(c, work)
  if c.async then work:wait() end
end

local run = {}

function run.all_reduce(c, mine, o)
  finish(c, dist.all_reduce(mine, c.fold, o.group, c.async))
  return mine
end

function run.reduce(c, mine, o)
  finish(c, dist.reduce(mine, c.root, c.fold, o.group, c.async))
  return rank == c.root and mine
end

function run.broadcast(c, mine, o)
  finish(c, dist.broadcast(mine, c.root, o.group, c.async))
  return mine
end

local function list_like(t, n)
  local list = {}
  for i = 1, n do list[i] = nacre.zeros_like(t) end
  return list
end

function run.all_gather(c, mine, o)
  local list = list_like(mine, o.n)
  finish(c, dist.all_gather(list, mine, o.group, c.async))
  return list
end

function run.all_gather_into_tensor(c, mine, o)
  local out = mine:new_zeros {o.n * c.shape[1], table.unpack(c.shape, 2)}
  finish(c, dist.all_gather_into_tensor(out, mine, o.group, c.async))
  return out
end

function run.gather(c, mine, o)
  local list = rank == c.root and list_like(mine, o.n) or nil
  finish(c, dist.gather(mine, list, c.root, o.group, c.async))
  return list
end

local function blocks(c, o)
  local list = {}
  for i = 1, o.n do list[i] = data(c, rank, c.shape, i) end
  return list
end

function run.scatter(c, mine, o)
  finish(c, dist.scatter(mine, rank == c.root and blocks(c, o) or nil, c.root,
                         o.group, c.async))
  return mine
end

function run.reduce_scatter(c, mine, o)
  finish(c, dist.reduce_scatter(mine, blocks(c, o), c.fold, o.group, c.async))
  return mine
end

function run.reduce_scatter_tensor(c, mine, o)
  finish(c, dist.reduce_scatter_tensor(mine, nacre.cat(blocks(c, o)), c.fold,
                                       o.group, c.async))
  return mine
end

function run.all_to_all(c, mine, o)
  local out = list_like(mine, o.n)
  finish(c, dist.all_to_all(out, blocks(c, o), o.group, c.async))
  return out
end

function run.all_to_all_single(c, _, o)
  local to, from, rows, all = {}, {}, 0, 0
  for i = 1, o.n do
    from[i] = c.splits[o.me + 1][i]
    to[i] = c.splits[i][o.me + 1]
    rows, all = rows + from[i], all + to[i]
  end
  local input = data(c, rank, {rows, 2})
  local out = input:new_zeros(all, 2)
  finish(c, dist.all_to_all_single(out, input, to, from, o.group, c.async))
  return out
end

function run.messages(c, mine)
  local right, left = (rank + 1) % size, (rank - 1) % size
  local got = list_like(mine, 2)
  local works = {dist.irecv(got[2], left, nil, 8),
                 dist.irecv(got[1], left, nil, 7),
                 dist.isend(mine, right, nil, 7),
                 dist.isend(mine + mine, right, nil, 8)}
  for _, w in ipairs(works) do w:wait() end
  return got
end

function run.batch(c, mine)
  local right, left = (rank + 1) % size, (rank - 1) % size
  local got = nacre.zeros_like(mine)
  local works = dist.batch_isend_irecv {dist.P2POp(dist.isend, mine, right),
                                        dist.P2POp(dist.irecv, got, left)}
  for _, w in ipairs(works) do w:wait() end
  return got
end

function run.send_recv(c, mine)
  if rank == 0 then dist.send(mine, 1, {tag = c.id})
  elseif rank == 1 then
    local from = dist.recv(mine, 0, {tag = c.id})
    return {mine, from}
  end
end

function run.broadcast_object_list(c, mine, o)
  local list = rank == c.root and {"a", c.id, {rank, 2.5}} or {0, 0, 0}
  dist.broadcast_object_list(list, c.root, o.group)
  return list
end

function run.all_gather_object(_, mine, o)
  local list = {}
  dist.all_gather_object(list, {rank, "x", mine}, o.group)
  return list
end

function run.gather_object(c, mine, o)
  local list = rank == c.root and {} or nil
  dist.gather_object({rank, ("y"):rep(rank)}, list, c.root, o.group)
  return list
end

function run.scatter_object_list(c, mine, o)
  local out, values = {false}, nil
  if rank == c.root then
    values = {}
    for i = 1, o.n do values[i] = {i, ("z"):rep(i * c.id)} end
  end
  dist.scatter_object_list(out, values, c.root, o.group)
  return out
end

function run.send_object_list(c)
  local list = {rank, c.id, {"v"}}
  if rank == 0 then dist.send_object_list(list, 1)
  elseif rank == 1 then
    return {list, dist.recv_object_list(list, 0)}
  end
end

function run.ranks(c, _, o)
  dist.monitored_barrier(o.group)
  local members = dist.get_process_group_ranks(o.group)
  return {dist.get_rank(o.group), dist.get_world_size(o.group), members,
          dist.get_global_rank(o.group, 0),
          dist.get_group_rank(o.group, members[1]), dist.is_initialized()}
end

local out = assert(io.open(("%s.%d"):format(arg[1], rank), "w"))
for _, c in ipairs(cases) do
  local o = {group = groups[c.group]}
  o.me, o.n = dist.get_rank(o.group), dist.get_world_size(o.group)
  local result
  if o.me >= 0 then result = run[c.op](c, data(c, rank, c.shape), o) end
  out:write(c.id, " ", result and text(result) or "-", "\n")
end
out:close()
