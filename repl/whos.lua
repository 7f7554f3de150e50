-- SPDX-License-Identifier: MIT
--
-- whos.lua - the session's variables, what they weigh and who shares what.

local inspect = require "nacre.inspect"
local lookup = require "nacre.lookup"
local units = require "nacre.units"

local whos = {}

local function bytes(t) return t:numel() * t:element_size() end

-- Who stands for a storage: its largest dense tensor, the first by name.
local function owners(vars)
  local owner = {}
  for _, var in ipairs(vars) do
    if inspect.istensor(var.value) then
      local id, size = nacre._storage_id(var.value), bytes(var.value)
      local dense = var.value:is_contiguous() and 1 or 0
      local now = owner[id]
      if not now or size > now.size or size == now.size and dense > now.dense
      then
        owner[id] = {name = var.name, size = size, dense = dense}
      end
    end
  end
  return owner
end

local function tensornote(var, owner)
  local t, notes = var.value, {}
  if owner.name == var.name then
    var.memory = units.bytes(bytes(t))
  else
    notes[1] = "view of " .. owner.name
  end
  if not t:is_contiguous() then
    notes[#notes + 1] = "strides " .. table.concat(t:stride(), ",")
  end
  var.note = table.concat(notes, ", ")
end

-- A table's own tensors, not those of the tables in it.
local function tablenote(var)
  local keys, tensors, size = 0, 0, 0
  for _, v in next, var.value do
    keys = keys + 1
    if inspect.istensor(v) then
      tensors, size = tensors + 1, size + bytes(v)
    end
  end
  var.text = ("table, %d key%s"):format(keys, keys == 1 and "" or "s")
  if tensors > 0 then
    var.note = ("holds %d tensor%s, %s"):format(tensors,
      tensors == 1 and "" or "s", units.bytes(size))
  end
end

local function describe(vars)
  local owner = owners(vars)
  for _, var in ipairs(vars) do
    if type(var.value) == "table" then
      tablenote(var)
    elseif type(var.value) == "function" then
      var.text = "function" .. lookup.parameters(var.value)
    else
      var.text = inspect.brief(var.value):match "[^\n]*"
      if #var.text > 40 then var.text = var.text:sub(1, 37) .. "..." end
    end
    if inspect.istensor(var.value) then
      tensornote(var, owner[nacre._storage_id(var.value)])
    end
  end
end

local function widest(vars, field, least)
  for _, var in ipairs(vars) do
    least = math.max(least, utf8.len(var[field] or "") or #var[field])
  end
  return least
end

local function pad(text, width)
  return text .. (" "):rep(width - (utf8.len(text) or #text))
end

local function row(var, name, text)
  local line = ("  %s  %s  %10s  %s"):format(pad(var.name, name),
    pad(var.text, text), var.memory or "", var.note or "")
  return (line:gsub("%s+$", ""))
end

-- "a*" as the command shell means it, or a Lua pattern.
local function matcher(pattern)
  if pattern:find "^[%w_*]+$" then
    return "^" .. pattern:gsub("%*", ".*") .. "$"
  end
  return pattern
end

function whos.print(names, pattern)
  local vars = {}
  pattern = pattern ~= "" and matcher(pattern) or "."
  for _, name in ipairs(names) do
    if name:find(pattern) then
      vars[#vars + 1] = {name = name, value = rawget(_G, name)}
    end
  end
  if #vars == 0 then
    io.stdout:write "no variables\n"
    return
  end
  describe(vars)
  local noted
  for _, var in ipairs(vars) do
    noted = noted or (var.note or "") ~= ""
  end
  local name, text = widest(vars, "name", 4), widest(vars, "text", 5)
  table.insert(vars, 1, {name = "name", text = "value", memory = "memory",
                         note = noted and "note" or nil})
  for _, var in ipairs(vars) do
    io.stdout:write(row(var, name, text), "\n")
  end
  for _, line in ipairs(whos.memory()) do
    io.stdout:write("  ", line, "\n")
  end
end

-- "cpu  4.1 GiB in use  1.0 MiB cached"
local function inuse(m)
  local parts = {m.name, units.bytes(m.live) .. " in use"}
  if m.cached > 0 then parts[#parts + 1] = units.bytes(m.cached) .. " cached" end
  parts[#parts + 1] = "peak " .. units.bytes(m.peak)
  if m.free then
    parts[#parts + 1] = ("%s free of %s"):format(units.bytes(m.free),
                                                 units.bytes(m.total))
  end
  return table.concat(parts, "  ")
end

-- A line for each device that is open.
function whos.memory()
  local lines = {}
  for i, m in ipairs(nacre._devices()) do lines[i] = inuse(m) end
  return lines
end

return whos
