-- SPDX-License-Identifier: MIT
--
-- variables.lua - :whos shows the session's variables, their memory and which
-- of them share it.

local styled = require "nacre.styled_output"
local facts = require "nacre.tensor_facts"
local lookup = require "nacre.lookup"
local wrap = require "nacre.wrap_lines"
local reachable = require "nacre.reachable"
local values = require "nacre.lua_values"
local escape_controls = values.escape_controls
local units = require "nacre.units"

local variables = {}

-- The names of the variables that owned memory at the last look.
local before = {}           -- by storage: {name =, bytes =}

-- The storages of the variables by id: the variable that owns each (its
-- largest dense tensor, the first by name), its size, and how many variables
-- use it.
local function owners(vars)
  local owner = {}
  for _, var in ipairs(vars) do
    if facts.is_alive(var.value) then
      local id, all = nacre._storage_id(var.value)
      local size = facts.bytes(var.value)
      local dense = var.value:is_contiguous() and 1 or 0
      local now = owner[id] or {all = all, views = 0}
      if not owner[id] or size > now.size or
         size == now.size and dense > now.dense then
        now.name, now.size, now.dense = var.name, size, dense
      end
      now.views = now.views + 1
      owner[id] = now
    end
  end
  return owner
end

-- For the last variable on a larger memory: a note, and what a copy would
-- release.
local function orphan_view(var, id, owner)
  local old = before[id]
  local what = "view of memory without a variable"
  if old and old.bytes == owner.all and rawget(_G, old.name) == nil then
    what = ("view of %s (no longer a variable)"):format(old.name)
  end
  if owner.views == 1 then var.release = owner.all - owner.size end
  return ("%s, keeps %s alive"):format(what, units.bytes(owner.all))
end

local function tensornote(var, id, owner, reached)
  local t, notes = var.value, {}
  local most = reached and reached[id] and reached[id].most or owner.size
  if owner.name ~= var.name then
    notes[1] = "view of " .. owner.name
  elseif most > owner.size then
    notes[1] = "view of a tensor that is not a variable"
  elseif owner.all >= 2 * owner.size and owner.all > owner.size + 1024 then
    notes[1] = orphan_view(var, id, owner)
  else
    var.memory = units.bytes(facts.bytes(t))
  end
  if not t:is_contiguous() then
    notes[#notes + 1] = "strides " .. table.concat(t:stride(), ",")
  end
  if t:is_pinned() then notes[#notes + 1] = "pinned" end
  if t.requires_grad then
    local g = t.is_leaf and t.grad
    notes[#notes + 1] = "requires grad" .. (g and ", has one of " ..
                        units.bytes(facts.bytes(g)) or "")
  end
  var.note = table.concat(notes, ", ")
end

-- Calls each(t) for the tensors in a table and the tables in it.
local function each_tensor(v, each, seen)
  if facts.is_alive(v) then return each(v) end
  if type(v) ~= "table" or seen[v] or v == _G or v == package.loaded then
    return
  end
  seen[v] = true
  for _, item in next, v do each_tensor(item, each, seen) end
end

-- "128.0 MiB on cuda:0, shares a"
local function sizes(list, owner)
  local size, devices, shares, seen = {}, {}, {}, {}
  for _, t in ipairs(list) do
    local id, all = nacre._storage_id(t)
    local d = tostring(t.device)
    if not seen[id] and owner[id] then
      shares[#shares + 1] = owner[id].name
    elseif not seen[id] then
      if not size[d] then devices[#devices + 1] = d end
      size[d] = (size[d] or 0) + all
    end
    seen[id] = true
  end
  local parts = {}
  table.sort(devices)
  for i, d in ipairs(devices) do
    parts[i] = units.bytes(size[d]) .. (d == "cpu" and "" or " on " .. d)
  end
  table.sort(shares)
  if #shares > 3 then shares = {table.concat(shares, " ", 1, 3), "..."} end
  if #shares > 0 then
    parts[#parts + 1] = "shares " .. table.concat(shares, " ")
  end
  return table.concat(parts, ", ")
end

-- "holds 2 tensors, 128.0 MiB on cuda:0"; nil if there are none.
local function holdings(value, owner)
  local list = {}
  each_tensor(value, function(t) list[#list + 1] = t end, {})
  if #list == 0 then return nil end
  return ("holds %s, %s"):format(units.count(#list, "tensor"),
                                 sizes(list, owner))
end

-- The variables that a function keeps.
local function upvalues(f)
  local list = {}
  for name, value in lookup.upvalues(f) do
    if name ~= "_ENV" then list[#list + 1] = value end
  end
  return list
end

-- The function of a table's class that describes it briefly, as nn.Module has.
local function brief_of(t)
  local meta = debug.getmetatable(t)
  return type(meta) == "table" and rawget(meta, "__brief")
end

local function tablenote(var, owner)
  local brief, keys = brief_of(var.value), 0
  local ok, text, bytes, note = pcall(brief or error, var.value)
  if ok then
    var.text, var.note = text, note
    var.memory = (bytes or 0) > 0 and units.bytes(bytes) or nil
    return
  end
  for _ in next, var.value do keys = keys + 1 end
  var.text = "table, " .. units.count(keys, "key")
  var.note = holdings(var.value, owner)
end

local function describe(vars, reached)
  local owner = owners(vars)
  for _, var in ipairs(vars) do
    if facts.is_alive(var.value) then
      local id = nacre._storage_id(var.value)
      var.text = styled.brief(var.value):match "[^\n]*"
      tensornote(var, id, owner[id], reached)
    elseif type(var.value) == "table" then
      tablenote(var, owner)
    elseif type(var.value) == "function" then
      var.text = "function" .. lookup.parameters(var.value)
      var.note = holdings(upvalues(var.value), owner)
    else
      var.text = styled.brief(var.value):match "[^\n]*"
    end
  end
  for id, o in next, owner do
    if o.size == o.all and not o.name:find "[.[]" then
      before[id] = {name = o.name, bytes = o.all}
    end
  end
end

-- Converts "a*" (as in a command shell) or a Lua pattern to a function.
local function matcher(pattern)
  if pattern:find "^[%w_*]+$" then
    return "^" .. pattern:gsub("%*", ".*") .. "$"
  end
  return pattern
end

-- "hint: r = r:clone() would release 4.0 GiB", for the variable with the most
-- to release.
local function hint(vars)
  local best
  for _, var in ipairs(vars) do
    if (var.release or 0) > (best and best.release or 1 << 20) then
      best = var
    end
  end
  return best and ("hint: %s = %s:clone() would release %s"):format(best.name,
    best.name, units.bytes(best.release))
end

-- The variables as lines in columns.
local function table_lines(vars)
  local rows, noted = {{"name", "value", "    memory"}}, ""
  for i, var in ipairs(vars) do
    local note = var.note or ""
    rows[i + 1] = {var.name, wrap.cut(var.text, 40), var.memory or "", note}
    if note ~= "" then noted = "note" end
  end
  rows[1][4] = noted
  return wrap.columns(rows, "llrl", "  ")
end

-- The tensors in the table that a variable is, unless its class describes it.
local function fields_of(var)
  local list = {}
  if type(var.value) ~= "table" or brief_of(var.value) then return list end
  for _, key in ipairs(values.keys(var.value)) do
    local value = rawget(var.value, key)
    if facts.is_alive(value) then
      list[#list + 1] = {name = values.path(var.name, key), value = value}
    end
  end
  return list
end

-- :whos [PATTERN]
function variables.whos(shell, pattern)
  local names, vars, asked = shell.userglobals(), {}, pattern
  pattern = pattern ~= "" and matcher(pattern) or "."
  for _, name in ipairs(names) do
    if name:find(pattern) then
      vars[#vars + 1] = {name = name, value = rawget(_G, name)}
    end
  end
  if #vars == 0 then
    return wrap.say(#names == 0 and "no variables" or
      ("none of %s matches"):format(units.count(#names, "variable")))
  end
  local reached = reachable.all()
  describe(vars, reached)
  if vars[1].name == asked then
    local fields = fields_of(vars[1])
    describe(fields, reached)
    table.move(fields, 1, #fields, 2, vars)
  end
  for _, line in ipairs(table_lines(vars)) do
    wrap.say(escape_controls(line))
  end
  for _, line in ipairs(variables.memory(reached)) do
    wrap.say("  " .. line)
  end
  local tip = hint(vars)
  if tip then wrap.say("  " .. tip) end
end

-- Less unreachable memory is not reported; a device's libraries use some
-- themselves.
local LEAST, LEAST_THERE = 1 << 20, 1 << 26

-- The memory of a device that the program cannot reach. It may belong to
-- graphs that keep tensors for gradients.
local function unreachable(m, reached)
  local size = m.live
  for id, s in next, reached or {} do
    if id ~= "graphs" and s.device == m.name then size = size - s.held_bytes end
  end
  local least = m.name == "cpu" and LEAST or LEAST_THERE
  if not reached or size < least then return nil end
  return units.bytes(size) .. (reached.graphs and " in graphs or" or "") ..
         " unreachable (:gc)"
end

-- "4.1 GiB in use", "1.0 MiB cached", ...
local function figures(m, reached)
  local total = m.total and " of " .. units.bytes(m.total) or ""
  return {
    m.name, units.bytes(m.live) .. " in use", unreachable(m, reached) or "",
    m.cached > 0 and units.bytes(m.cached) .. " cached" or "",
    "peak " .. units.bytes(m.peak),
    m.free and units.bytes(m.free) .. " free" .. total or "",
  }
end

-- A line for each device that is open, in columns.
function variables.memory(reached)
  local rows = {{"", "", "", "", "", ""}}
  for i, m in ipairs(nacre._devices()) do rows[i + 1] = figures(m, reached) end
  local lines = wrap.columns(rows, "llllll", "  ", true)
  table.remove(lines, 1)
  for i, line in ipairs(lines) do lines[i] = line:sub(3) end
  return lines
end

-- What a device released between two looks at it.
local function released_on(parts, old, new)
  local freed = math.max(0, old.live - new.live)
  local cache = old.live + old.cached - new.live - new.cached - freed
  if freed > 0 then
    parts[#parts + 1] = ("freed %s on %s"):format(units.bytes(freed), new.name)
  end
  if cache > 0 then
    parts[#parts + 1] = ("returned %s of cache on %s"):format(
      units.bytes(cache), new.name)
  end
end

-- Calls f, collects garbage and returns what that released on each device:
-- "freed 128.0 MiB on cpu, returned 512.0 MiB of cache on cuda:0".
function variables.released(f)
  local was, lua, parts = {}, collectgarbage "count", {}
  for _, m in ipairs(nacre._devices()) do was[m.name] = m end
  f()
  nacre.empty_cache()
  for _, m in ipairs(nacre._devices()) do
    released_on(parts, was[m.name] or m, m)
  end
  local rest = math.max(0, (lua - collectgarbage "count") * 1024 // 1 | 0)
  if rest >= 1 << 16 or #parts == 0 then
    parts[#parts + 1] = ("freed %s of Lua"):format(units.bytes(rest))
  end
  return table.concat(parts, ", ")
end

return variables
