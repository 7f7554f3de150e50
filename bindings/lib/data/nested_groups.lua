-- SPDX-License-Identifier: MIT
-- nested_groups.lua - nested tables in HDF5 files: a table is a group, and a
-- tensor has a path such as "layer/weight". save.c and load.c call it.
local all = ...
local fail = all.fail

local MOST_LEVELS = 100

local function key_name(key, count)
  if type(key) == "string" then return key end
  if math.type(key) == "integer" and key >= 1 and key <= count then
    return ("arr_%d"):format(key - 1)
  end
  fail("save", "groups have names or form a list, the key " ..
               tostring(key) .. " does neither")
end

local function add_paths(t, prefix, out, level)
  if level > MOST_LEVELS then
    fail("save", "the tables are nested too deep, or contain themselves")
  end
  local count = #t
  for key, v in next, t do
    local path = prefix .. key_name(key, count)
    v = all.state_of(v)
    if type(v) == "table" then
      add_paths(v, path .. "/", out, level + 1)
    else
      if out[path] ~= nil then
        fail("save", "two tensors have the name " .. path)
      end
      out[path] = v
    end
  end
end

-- The values in nested tables by their paths. Those of a list have the names
-- arr_0, arr_1, ..., as in NumPy's .npz files.
function all.to_paths(t)
  local out = {}
  add_paths(t, "", out, 0)
  return out
end

-- A table with the keys arr_0, arr_1, ... and no other becomes a list.
local function listed(t)
  local list, count = {}, 0
  for key, v in next, t do
    count = count + 1
    if type(v) == "table" then t[key] = listed(v) end
  end
  for i = 1, count do
    list[i] = t[("arr_%d"):format(i - 1)]
    if list[i] == nil then return t end
  end
  return list
end

-- The nested tables of values by their paths.
function all.from_paths(paths)
  local out = {}
  for path, v in next, paths do
    local at = out
    local group, name = path:match "^(.*)/([^/]*)$"
    for part in (group or ""):gmatch "[^/]+" do
      at[part] = at[part] or {}
      at = at[part]
    end
    at[name or path] = v
  end
  return listed(out)
end
