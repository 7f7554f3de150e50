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
  return nacre.frombuffer(bytes, {dtype = dtype, shape = size, device = "cpu"}),
         at
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

-- On the CPU, whatever the default device is: other ranks have another one.
local function bytes_of(s)
  return nacre.frombuffer(s, {dtype = "uint8", device = "cpu"})
end

local function number(n)
  return nacre.tensor({n}, {dtype = "int64", device = "cpu"})
end

local function empty_bytes(n)
  return nacre.empty(n, {dtype = "uint8", device = "cpu"})
end

-- ---- from rank to rank

-- Describes f, a function whose first arguments are any values, so that a table
-- there is not taken for named arguments, and gives it its name.
local function describe(name, signature, doc, f)
  dist[name] = f
  all.describe("distributed." .. name, f, doc,
               all.parse("distributed." .. name, signature))
end

-- Defines a function whose first argument is a value.
local function define(name, first, rest, gives, doc, fn)
  local s = all.parse(name, rest .. " -> " .. gives)
  describe(name, first .. ", " .. rest .. " -> " .. gives, doc,
           function(v, ...)
    return fn(name, v, table.unpack(all.read(name, s, ...), 1, #s.params))
  end)
end

local function check_list(op, list)
  if type(list) ~= "table" then fail(op, "the first argument is not a list") end
end

local function broadcast_object(name, v, src, group, group_src)
  src = all.root_of(name, "src", src, group_src, group)
  local here = dist.get_rank() == src
  local s = here and pack(name, v) or ""
  local n = dist.broadcast(number(#s), src, group)
  local buffer = here and bytes_of(s) or empty_bytes(n[1])
  dist.broadcast(buffer, src, group)
  if here then return v end
  return (unpack_value(buffer:tobytes(), 1))
end
define("broadcast_object", "obj:any=nil",
  "src:int=nil, group:any=nil, group_src:int=nil", "value",
  "the value of rank src on every rank: numbers, strings, tensors, and tables "
  .. "of them", broadcast_object)

local function fill(list, from)
  for i = 1, math.max(#list, #from) do list[i] = from[i] end
  return list
end

define("broadcast_object_list", "object_list:table",
  "src:int=nil, group:any=nil, device:any=nil, group_src:int=nil", "list",
  "on every rank, the elements of the list become those of rank src",
function(name, list, src, group, _, group_src)
  check_list(name, list)
  return fill(list, broadcast_object(name, list, src, group, group_src))
end)

-- The strings of all ranks, in a table with n.
local function gather_strings(s, group)
  local n = dist.get_world_size(group)
  local sizes = dist.all_gather(number(#s), nil, group):flatten():tolist()
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

-- Are these the arguments behind a value? A group, or {group = g}.
local function is_end(v)
  return v == nil or type(v) == "userdata" and not nacre.is_tensor(v) or
         type(v) == "table" and next(v) == "group" and next(v, "group") == nil
end

local no_list = all.parse("all_gather_object", "group:any=nil -> list")
describe("all_gather_object",
  "object_list:any=nil, obj:any=nil, group:any=nil -> list",
  "the values of all ranks, in a list with a field n, because a value may be "
    .. "nil; or in object_list, if a list is given before the value",
function(list, v, ...)
  local name = "all_gather_object"
  if is_end(v) and select("#", ...) == 0 then
    local group = table.unpack(all.read(name, no_list, v), 1, 1)
    return gather_objects(name, list, group)
  end
  check_list(name, list)
  local group = table.unpack(all.read(name, no_list, ...), 1, 1)
  local from = gather_objects(name, v, group)
  return table.move(from, 1, from.n, 1, list)
end)

local function check_rank(op, rank, group)
  for _, r in ipairs(dist.get_process_group_ranks(group)) do
    if r == rank then return end
  end
  fail(op, ("there is no rank %d in the group"):format(rank))
end

local behind_list = all.parse("gather_object",
  "dst:int=nil, group:any=nil, group_dst:int=nil -> list")
describe("gather_object", "obj:any=nil, object_gather_list:any=nil, "
  .. "dst:int=nil, group:any=nil, group_dst:int=nil -> list",
  "like all_gather_object, but only rank dst gets the values; the list may be "
  .. "left out",
function(v, list, ...)
  local name, args = "gather_object", nil
  local given = type(list) == "table" and (next(list) == nil or #list > 0)
  if given or list == nil then args = all.read(name, behind_list, ...)
  else list, args = nil, all.read(name, behind_list, list, ...) end
  local dst, group, group_dst = table.unpack(args, 1, 3)
  dst = all.root_of(name, "dst", dst, group_dst, group)
  check_rank(name, dst, group)
  local here = dist.get_rank() == dst
  if given and not here then
    fail(name, "object_gather_list is for rank dst only")
  end
  local from = gather_objects(name, v, group)
  if not here then return nil end
  return given and table.move(from, 1, from.n, 1, list) or from
end)

-- The strings of rank src, one for each rank: the one for this.
local function scatter_strings(strings, src, group)
  local most, sizes, blocks = 0, {}, {}
  for i, s in ipairs(strings or {}) do
    sizes[i], most = number(#s), math.max(most, #s)
  end
  for i, s in ipairs(strings or {}) do
    blocks[i] = bytes_of(s .. ("\0"):rep(most - #s))
  end
  local room, size = dist.broadcast(number(most), src, group)[1], number(0)
  dist.scatter(size, strings and sizes or nil, src, group)
  local buffer = empty_bytes(room)
  dist.scatter(buffer, strings and blocks or nil, src, group)
  return buffer:narrow(1, 1, size[1]):tobytes()
end

define("scatter_object_list", "scatter_object_output_list:table",
  "scatter_object_input_list:any=nil, src:int=nil, group:any=nil, "
  .. "group_src:int=nil", "list",
  "the first element of the output list becomes the value for this rank in "
  .. "the input list of rank src",
function(name, list, values, src, group, group_src)
  check_list(name, list)
  src = all.root_of(name, "src", src, group_src, group)
  local strings
  if dist.get_rank() == src then
    local n = dist.get_world_size(group)
    if type(values) ~= "table" or #values ~= n then
      fail(name, ("rank src needs a list of a value for each of %d ranks")
                 :format(n))
    end
    strings = {}
    for i = 1, n do strings[i] = pack(name, values[i]) end
  end
  list[1] = unpack_value(scatter_strings(strings, src, group), 1)
  return list
end)

define("send_object_list", "object_list:table",
  "dst:int=nil, group:any=nil, device:any=nil, group_dst:int=nil", "nothing",
  "sends the values in the list to rank dst, which calls recv_object_list",
function(name, list, dst, group, _, group_dst)
  check_list(name, list)
  local s = pack(name, list)
  dst = all.root_of(name, "dst", dst, group_dst, group)
  dist.send(number(#s), dst, group)
  dist.send(bytes_of(s), dst, group)
end)

define("recv_object_list", "object_list:table",
  "src:int=nil, group:any=nil, device:any=nil, group_src:int=nil", "src",
  "the elements of the list become those that rank src, or any, sends; gives "
  .. "the sender",
function(name, list, src, group, _, group_src)
  check_list(name, list)
  local n = number(0)
  src = dist.recv(n, src, group, 0, group_src)
  local buffer = empty_bytes(n[1])
  dist.recv(buffer, src, group)
  fill(list, unpack_value(buffer:tobytes(), 1))
  return src
end)
