-- SPDX-License-Identifier: MIT
-- sharded_state.lua - nacre.distributed.checkpoint: a state in one file for
-- each rank and an index, which nacre.load reads as one file, on any number of
-- ranks.
--
-- A tensor that several ranks have is written by one of them. The files of a
-- new state have new names; then the index is replaced, then the old files are
-- removed, so that there is a whole state at any time.
local all = ...
local fail = all.fail

local SUFFIX = ".safetensors.index.json"
local TENSOR = "tensor "      -- in an outline, before the name of a tensor

-- What v keeps on this rank: an object's state, of a shard its part.
local function own_state(v, rank)
  if all.is_shard(v) then
    return {["nacre.shard"] = v.dim, [rank + 1] = v.part}
  end
  if type(v) == "table" and getmetatable(v) and v.local_state_dict then
    return v:local_state_dict()
  end
  return all.state_of(v)
end

-- ---- an outline: the nested tables, with texts in place of tensors

-- Adds the tensors of v to `tensors' by name. Other texts get a blank in front.
local function outline(v, path, rank, tensors, names)
  v = own_state(v, rank)
  if nacre.is_tensor(v) then
    local name = names[v] or path
    while not names[v] and tensors[name] do name = name .. "_" end
    tensors[name], names[v] = v, name
    return TENSOR .. name
  elseif type(v) == "string" then return " " .. v
  elseif type(v) == "number" or type(v) == "boolean" then return v
  elseif type(v) ~= "table" then
    fail("checkpoint.save", ("%s is a %s, which a file cannot hold"):format(
           path, type(v)))
  end
  local out = {}
  for _, key in ipairs(all.sorted_keys(v)) do
    out[key] = outline(v[key], all.path_of(key, path), rank, tensors, names)
  end
  return out
end

-- Adds to a what only b has.
local function merge(a, b)
  for key, v in pairs(b) do
    if a[key] == nil then a[key] = v
    elseif type(a[key]) == "table" and type(v) == "table" then
      merge(a[key], v)
    end
  end
  return a
end

-- The value of an outline, with stand(name) in place of a tensor.
local function filled(v, stand)
  if type(v) == "string" then
    local name = v:match("^" .. TENSOR .. "(.*)$")
    return name and stand(name) or v:sub(2)
  elseif type(v) ~= "table" then return v end
  local out = {}
  for key, element in pairs(v) do out[key] = filled(element, stand) end
  return out
end

-- ---- who writes what

-- Rank 0 decides: a table from name to the rank that writes the tensor, large
-- ones first, each by the rank with the fewest bytes among those that have it.
local function plan(parts)
  local sizes, holders, list, load, owner = {}, {}, {}, {}, {}
  for r, part in ipairs(parts) do
    load[r] = 0
    for name, bytes in pairs(part.sizes) do
      if not sizes[name] then list[#list + 1] = name end
      sizes[name] = bytes
      holders[name] = holders[name] or {}
      table.insert(holders[name], r)
    end
  end
  table.sort(list, function(a, b)
    if sizes[a] ~= sizes[b] then return sizes[a] > sizes[b] end
    return a < b
  end)
  for _, name in ipairs(list) do
    local least
    for _, r in ipairs(holders[name]) do
      if not least or load[r] < load[least] then least = r end
    end
    owner[name], load[least] = least - 1, load[least] + sizes[name]
  end
  return owner
end

-- The structure of the whole state as text, for the metadata of each file.
local function structure(parts)
  local whole, names = {}, {}
  for _, part in ipairs(parts) do merge(whole, part.outline) end
  local value = filled(whole, function(name)
    local t = nacre.zeros(0)
    names[t] = name
    return t
  end)
  return all.structure_text(value, names)
end

-- ---- files

-- The path without the ending of an index.
local function stem_of(path)
  local stem = path:sub(-#SUFFIX) == SUFFIX and path:sub(1, -#SUFFIX - 1) or
               path
  if stem == "" or stem:sub(-1) == "/" then
    fail("checkpoint", ("%q is not the name of a file"):format(path),
         ("checkpoint_id = %q"):format(stem .. "model"))
  end
  return stem
end

-- The files that an index names, and the number of the state.
local function old_files(stem)
  local f, list, number = io.open(stem .. SUFFIX), {}, 0
  local text = f and f:read "a" or ""
  if f then f:close() end
  for name in text:gmatch '"([^"/]+%.safetensors)"' do
    list[name] = true
    local n = name:match "%-(%d+)%-%d+%-of%-%d+%.safetensors$"
    number = math.max(number, math.tointeger(n) or 0)
  end
  return list, number
end

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function write_index(stem, owner, files)
  local lines = {}
  for _, name in ipairs(all.sorted_keys(owner)) do
    lines[#lines + 1] = ("    %s: %s"):format(quoted(name),
                                              quoted(files[owner[name]]))
  end
  local text = '{\n  "metadata": {},\n  "weight_map": {\n'
               .. table.concat(lines, ",\n") .. "\n  }\n}\n"
  nacre.frombuffer(text, {dtype = "uint8", device = "cpu"})
       :tofile(stem .. SUFFIX)
end

-- Fails on every rank if f fails on one.
local function together(group, f, ...)
  local ok, err = pcall(f, ...)
  local failed = nacre.distributed.all_reduce(
    nacre.tensor({ok and 0 or 1}, {dtype = "int64", device = "cpu"}),
    {op = "sum", group = group})
  if not ok then error(err, 0) end
  if failed[1] > 0 then
    fail("checkpoint", ("%d other rank%s failed; the state that was there is "
                        .. "whole"):format(failed[1],
                                           failed[1] == 1 and "" or "s"))
  end
end

local function save_own(path, tensors, owner, rank, text)
  local own = {}
  for name, t in pairs(tensors) do
    if owner[name] == rank then own[name] = t:detach() end
  end
  if next(own) then
    nacre.save(path, own, {metadata = {format = "pt", nacre = text}})
  end
end

-- What rank 0 tells all: their plan, or why there is none.
local function decide(stem, parts)
  for r, part in ipairs(parts) do
    if part.error then
      return {error = ("rank %d: %s"):format(r - 1, part.error)}
    end
  end
  local _, number = old_files(stem)
  return {owner = plan(parts), text = structure(parts), number = number + 1}
end

-- The outlines and sizes of all ranks, at rank 0; then its plan at all.
local function agree(stem, own, rank, group)
  local dist = nacre.distributed
  local first = dist.get_global_rank(group, 0)
  local parts = dist.gather_object(own, first, group)
  local plan_of_all = dist.broadcast_object(rank == 0 and decide(stem, parts)
                                            or nil, first, group)
  if plan_of_all.error then fail("checkpoint.save", plan_of_all.error) end
  return plan_of_all
end

-- The tensors of this rank by name, and what the others must know of them. An
-- error is one of all ranks: none of them waits for this one.
local function describe(state, rank)
  local tensors, own = {}, {sizes = {}}
  local ok, result = pcall(outline, state, "", rank, tensors, {})
  if not ok then
    own.error = type(result) == "table" and result.message or tostring(result)
  elseif type(result) ~= "table" or next(tensors) == nil then
    own.error = "state_dict must be a table with tensors in it"
  else own.outline = result end
  for name, t in pairs(tensors) do
    own.sizes[name] = t:numel() * t:element_size()
  end
  return tensors, own
end

local function finish(stem, owner, files)
  local old = old_files(stem)
  write_index(stem, owner, files)
  for _, name in pairs(files) do old[name] = nil end
  local folder = stem:match "^(.*/)" or ""
  for name in pairs(old) do os.remove(folder .. name) end
end

all.define("distributed.checkpoint.save",
  "state_dict:any, checkpoint_id:text, process_group:any=nil -> text",
  "writes a state: a .safetensors file for each rank and the index "
  .. "checkpoint_id.safetensors.index.json, whose path it gives; every rank "
  .. "calls it",
function(state, path, group)
  all.check_group("checkpoint.save", group)
  local dist, stem = nacre.distributed, stem_of(path)
  local rank, size = dist.get_rank(group), dist.get_world_size(group)
  local tensors, own = describe(state, rank)
  local decided = agree(stem, own, rank, group)
  local files = {}
  for r = 0, size - 1 do
    files[r] = ("%s-%d-%05d-of-%05d.safetensors"):format(
                 stem:match "[^/]*$", decided.number, r + 1, size)
  end
  together(group, save_own, (stem:match "^(.*/)" or "") .. files[rank], tensors,
           decided.owner, rank, decided.text)
  together(group, rank == 0 and finish or function() end, stem, decided.owner,
           files)
  return stem .. SUFFIX
end)

-- ---- reading

local fill

local function fill_table(state, saved, path)
  for _, key in ipairs(all.sorted_keys(state)) do
    local where = all.path_of(key, path)
    if saved[key] == nil then
      fail("checkpoint.load", ("the state has no '%s'"):format(where))
    end
    state[key] = fill(state[key], saved[key], where)
  end
  return state
end

-- Puts what was saved into v; gives v, or what takes its place.
function fill(v, saved, path)
  if all.is_shard(v) then v:load_whole(saved)
  elseif nacre.is_tensor(v) then
    if not nacre.is_tensor(saved) or not saved:is_same_size(v) then
      fail("checkpoint.load", ("'%s' has another shape"):format(path))
    end
    nacre.no_grad(v.copy_, v, saved)
  elseif type(v) == "table" and getmetatable(v) and v.load_state_dict then
    v:load_state_dict(saved)
  elseif type(v) == "table" then
    if type(saved) ~= "table" or nacre.is_tensor(saved) then
      fail("checkpoint.load", ("'%s' is not a table in the state"):format(path))
    end
    return fill_table(v, saved, path)
  else return saved end
  return v
end

all.define("distributed.checkpoint.load",
  "state_dict:any, checkpoint_id:text, process_group:any=nil -> any",
  "reads a state saved by any number of ranks into the tensors, modules and "
    .. "optimizers of state_dict; each rank reads what it needs",
function(state, path)
  local saved = nacre.load(stem_of(path) .. SUFFIX, {mmap = true})
  return fill(state, saved, "")
end)
