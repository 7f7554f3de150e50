-- SPDX-License-Identifier: MIT
-- sent_objects.lua - nacre.distributed: Lua values from rank to rank. A value
-- is packed as a string, with the elements of the tensors in it; what arrives
-- is read as data and never run.
local all = ...
local fail = all.fail
local dist = all.space "distributed"

local MOST_LEVELS = 100
local unpack_value

-- ---- values as strings: a letter for the type, then the value

local put = {}

local function pack_value(op, v, out, level)
  local kind = nacre.is_tensor(v) and "tensor" or math.type(v) or type(v)
  if not put[kind] then
    fail(op, ("a %s cannot be sent to other processes"):format(kind))
  end
  put[kind](op, v, out, level)
end

put["nil"] = function(_, _, out) out[#out + 1] = "n" end
put.boolean = function(_, v, out) out[#out + 1] = v and "t" or "f" end
for kind, form in pairs {integer = "i8", float = "d", string = "s8"} do
  local letter = kind == "float" and "d" or kind:sub(1, 1)
  put[kind] = function(_, v, out)
    out[#out + 1] = string.pack("<c1" .. form, letter, v)
  end
end

function put.tensor(_, t, out)
  out[#out + 1] = string.pack("<c1s1B", "T", t.dtype, t:dim())
  for d = 1, t:dim() do out[#out + 1] = string.pack("<i8", t:size(d)) end
  out[#out + 1] = string.pack("<s8", t:detach():tobytes())
end

function put.table(op, v, out, level)
  if level > MOST_LEVELS then
    fail(op, "the tables are nested too deep, or contain themselves")
  end
  local state = all.state_of(v)
  if type(state) ~= "table" then return pack_value(op, state, out, level) end
  local count = 0
  for _ in next, state do count = count + 1 end
  out[#out + 1] = string.pack("<c1i8", "{", count)
  for key, x in next, state do
    pack_value(op, key, out, level + 1)
    pack_value(op, x, out, level + 1)
  end
end

local function pack(op, v)
  local out = {}
  pack_value(op, v, out, 1)
  return table.concat(out)
end

-- ---- and back; each function gives the value and where the next one begins

local get = {
  n = function(_, at) return nil, at end,
  t = function(_, at) return true, at end,
  f = function(_, at) return false, at end,
  i = function(s, at) return string.unpack("<i8", s, at) end,
  d = function(s, at) return string.unpack("<d", s, at) end,
  s = function(s, at) return string.unpack("<s8", s, at) end,
}

function get.T(s, at)
  local size, dtype, dims, bytes = {}, nil, nil, nil
  dtype, dims, at = string.unpack("<s1B", s, at)
  for d = 1, dims do size[d], at = string.unpack("<i8", s, at) end
  bytes, at = string.unpack("<s8", s, at)
  return nacre.frombuffer(bytes, dtype, {shape = size}), at
end

get["{"] = function(s, at)
  local count, key, v
  local t = {}
  count, at = string.unpack("<i8", s, at)
  for _ = 1, count do
    key, at = unpack_value(s, at)
    v, at = unpack_value(s, at)
    t[key] = v
  end
  return t, at
end

function unpack_value(s, at)
  return get[s:sub(at, at)](s, at + 1)
end

local function bytes_of(s) return nacre.frombuffer(s, "uint8") end

-- ---- from rank to rank

-- Defines a function whose first argument is the value, also a table of names.
local function define(name, rest, gives, doc, fn)
  local s = all.parse(name, rest .. " -> " .. gives)
  local function f(v, ...)
    return fn(name, v, table.unpack(all.read(name, s, ...), 1, #s.params))
  end
  dist[name] = f
  all.describe("distributed." .. name, f, doc,
               all.parse("distributed." .. name,
                         "obj:any=nil, " .. rest .. " -> " .. gives))
end

local function broadcast_object(name, v, src, group)
  local here = dist.get_rank() == src
  local s = here and pack(name, v) or ""
  local n = dist.broadcast(nacre.tensor({#s}, {dtype = "int64"}), src, group)
  local buffer = here and bytes_of(s) or nacre.empty(n[1], {dtype = "uint8"})
  dist.broadcast(buffer, src, group)
  if here then return v end
  return (unpack_value(buffer:tobytes(), 1))
end
define("broadcast_object", "src:int=0, group:any=nil", "value",
  "the value of rank src on every rank: numbers, strings, tensors, and tables "
  .. "of them", broadcast_object)

define("broadcast_object_list", "src:int=0, group:any=nil", "list",
  "on every rank, the elements of the list become those of rank src",
function(name, list, src, group)
  if type(list) ~= "table" then fail(name, "the first argument is no list") end
  local from = broadcast_object(name, list, src, group)
  for i = 1, math.max(#list, #from) do list[i] = from[i] end
  return list
end)

-- The strings of all ranks, in a table with n.
local function gather_strings(s, group)
  local n = dist.get_world_size(group)
  local sizes = dist.all_gather(nacre.tensor({#s}, {dtype = "int64"}), nil,
                                group):flatten():tolist()
  local most = 0
  for _, size in ipairs(sizes) do most = math.max(most, size) end
  local buffer = bytes_of(s .. ("\0"):rep(most - #s))
  local whole = dist.all_gather(buffer, nil, group)
  local list = {n = n}
  for i = 1, n do list[i] = whole[i]:narrow(1, 1, sizes[i]):tobytes() end
  return list
end

local function gather_objects(name, v, group)
  local list = gather_strings(pack(name, v), group)
  for i = 1, list.n do list[i] = unpack_value(list[i], 1) end
  return list
end
define("all_gather_object", "group:any=nil", "list",
  "the values of all ranks, in a list with n, as a value may be nil",
  gather_objects)

local function check_rank(op, rank, group)
  for _, r in ipairs(dist.get_process_group_ranks(group)) do
    if r == rank then return end
  end
  fail(op, ("there is no rank %d in the group"):format(rank))
end

define("gather_object", "dst:int=0, group:any=nil", "list",
  "as all_gather_object, but rank dst only gets the list",
function(name, v, dst, group)
  check_rank(name, dst, group)
  local list = gather_objects(name, v, group)
  return dist.get_rank() == dst and list or nil
end)
