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

-- What the words of a call stand for; WORD_at_root is nil on other ranks.
local function operands(c, t, o)
  local w = {t = t, root = c.root, fold = c.fold, slots = {}, slot = {false},
             list = {}, blocks = {}, values = {}, to = {}, given = {},
             wide = t:new_zeros {o.n * c.shape[1], table.unpack(c.shape, 2)},
             objects = rank == c.root and {"a", c.id, {rank, 2.5}} or {0, 0, 0},
             tagged = {rank, "x", t}, short = {rank, ("y"):rep(rank)}}
  local rows, all = 0, 0
  for i = 1, o.n do
    w.list[i], w.blocks[i] = nacre.zeros_like(t), data(c, rank, c.shape, i)
    w.values[i] = {i, ("z"):rep(i * c.id)}
    w.given[i], w.to[i] = c.splits[o.me + 1][i], c.splits[i][o.me + 1]
    rows, all = rows + w.given[i], all + w.to[i]
  end
  w.joined, w.cut = nacre.cat(w.blocks), data(c, rank, {rows, 2})
  w.rows = w.cut:new_zeros(all, 2)
  return setmetatable(w, {__index = function(_, word)
    return rank == c.root and w[word:match "(.*)_at_root"] or nil
  end})
end

local function call(c, t, o)
  local w, args, n = operands(c, t, o), {}, #c.words
  for i, word in ipairs(c.words) do args[i] = w[word] end
  args[n + 1] = o.group
  if not c.op:find "object" then
    n = n + 1
    args[n + 1] = c.async
  end
  local work = dist[c.op](table.unpack(args, 1, n + 1))
  if c.async and not c.op:find "object" then work:wait() end
  return w[c.result]
end

local run = {}

local function list_like(t, n)
  local list = {}
  for i = 1, n do list[i] = nacre.zeros_like(t) end
  return list
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
  if o.me >= 0 then
    result = (run[c.op] or call)(c, data(c, rank, c.shape), o)
  end
  out:write(c.id, " ", result and text(result) or "-", "\n")
end
out:close()
