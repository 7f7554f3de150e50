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
  local count, hole = #t, all.hole_in(t)
  if hole then
    fail("save", ("element %d of a list is nil: a list has no holes")
                 :format(hole))
  end
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

-- The number of the element of a list that has this name, or nil.
local function number_of(name)
  local digits = name:match "^arr_(%d+)$"
  local n = digits and math.tointeger(tonumber(digits))
  return n and tostring(n) == digits and n + 1 or nil
end

-- The keys arr_0, arr_1, ... of a table become those of a list, if none is
-- missing, as those of an .npz file.
local function listed(t)
  local out, numbers = {}, 0
  for key, v in next, t do
    if type(v) == "table" then
      v = listed(v)
      t[key] = v
    end
    local number = number_of(key)
    out[number or key] = v
    numbers = numbers + (number and 1 or 0)
  end
  for i = 1, numbers do
    if out[i] == nil then return t end
  end
  return out
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
