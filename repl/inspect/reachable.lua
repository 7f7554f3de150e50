-- SPDX-License-Identifier: MIT
--
-- reachable.lua - finds which tensors the program can reach, and through what:
-- walks all Lua objects as the garbage collector does.

local facts = require "nacre.tensor_facts"
local lookup = require "nacre.lookup"

local reachable = {}

-- A walk over more objects is given up: it would take about half a second.
-- A count, not a time, so that the answer does not depend on the load.
local MOST_OBJECTS = 1000000

-- Records a tensor: its storage, and the largest part of it that one tensor
-- shows.
local function note(found, t)
  local id, bytes, _, held_bytes = nacre._storage_id(t)
  local s = found[id]
  if not s then
    s = {bytes = bytes, held_bytes = held_bytes, device = tostring(t.device),
         most = 0}
    found[id] = s
  end
  s.most = math.max(s.most, facts.bytes(t))
  if t.requires_grad then
    found.graphs = found.graphs or t.grad_fn ~= nil
    if t.grad then note(found, t.grad) end
  end
end

-- What each kind of value refers to.
local inside = {}

function inside.table(t, add)
  local meta = debug.getmetatable(t)
  local mode = type(meta) == "table" and rawget(meta, "__mode") or ""
  local keys, values = not mode:find "k", not mode:find "v"
  for k, v in next, t do
    if keys then add(k) end
    if values then add(v) end
  end
end

inside["function"] = function(f, add)
  for _, value in lookup.upvalues(f) do add(value) end
end

function inside.userdata(u, add)
  for i = 1, 8 do
    local value, is = debug.getuservalue(u, i)
    if not is then break end
    add(value)
  end
end

function inside.thread(co, add)
  local level = 0
  while true do
    local info = debug.getinfo(co, level, "f")
    if not info then break end
    add(info.func)
    for i = 1, 255 do
      local name, value = debug.getlocal(co, level, i)
      if not name then break end
      add(value)
    end
    level = level + 1
  end
end

-- The storages of all tensors reachable from the roots, by id: {bytes =,
-- held_bytes =, device =, most =}. `graphs' says whether graphs of operations
-- keep tensors that are not seen. Nil if there are more than MOST_OBJECTS
-- objects.
function reachable.from(...)
  local found, seen, list, n = {}, {}, {}, 0
  local walked = 0
  local function add(v)
    if inside[type(v)] and not seen[v] then
      seen[v] = true
      n = n + 1
      list[n] = v
    end
  end
  seen[found], seen[seen], seen[list] = true, true, true
  for i = 1, select("#", ...) do add((select(i, ...))) end
  while n > 0 do
    local v = list[n]
    list[n], n = nil, n - 1
    walked = walked + 1
    if walked > MOST_OBJECTS then return nil end
    if facts.is_alive(v) then note(found, v)
    else
      inside[type(v)](v, add)
      add(debug.getmetatable(v))
    end
  end
  return found
end

-- The same for the whole program.
function reachable.all()
  return reachable.from(debug.getregistry())
end

return reachable
