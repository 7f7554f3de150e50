-- SPDX-License-Identifier: MIT
--
-- last_results.lua - the variables _, __, ___ and ans. Small values are plain
-- globals; memory above the setting `result_keep` that only a result refers to
-- is held weakly, so that the result history never keeps a large tensor alive.

local globals = require "nacre.globals"
local settings = require "nacre.settings"
local facts = require "nacre.tensor_facts"
local units = require "nacre.units"

local results = {}

local NAMES = {"_", "__", "___"}

-- The newest first. value: a table with the value, whose mode makes it weak or
-- not; was: the description of a released value. nil is a value, too.
local entries = {}

-- Calls each(tensor) for a tensor, or for those in a table's own fields.
local function tensors(value, each)
  if facts.is_alive(value) then return each(value) end
  if type(value) ~= "table" then return end
  for _, v in next, value do
    if facts.is_alive(v) then each(v) end
  end
end

-- The bytes that only this value (and other results) keep alive.
local function own_bytes(value, ours)
  local sum, where, seen = 0, "cpu", {}
  tensors(value, function(t)
    local id, bytes, refs, _, basis = nacre._storage_id(t)
    local mine = ours[id]
    -- a view holds its base, which looks into the storage as well
    local base = basis > 0 and basis == mine.views and 1 or 0
    if not seen[id] and refs <= mine.boxes + base then
      seen[id] = true
      sum, where = sum + bytes, tostring(t.device)
    end
  end)
  return sum, where
end

-- By storage: how many results use it, and how many of them are views.
local function storage_uses()
  local ours, seen = {}, {}
  for _, e in ipairs(entries) do
    tensors(e.value[1], function(t)
      local id, _, _, _, basis = nacre._storage_id(t)
      local mine = ours[id] or {boxes = 0, views = 0}
      ours[id] = mine
      if seen[t] then return end
      seen[t] = true
      mine.boxes = mine.boxes + 1
      if basis > 0 then mine.views = mine.views + 1 end
    end)
  end
  return ours
end

local function release(e, bytes, where)
  local what = facts.istensor(e.value[1]) and
               facts.kind(e.value[1]) or "a table"
  e.was = ("%s, %s on %s,"):format(what, units.bytes(bytes), where)
  setmetatable(e.value, {__mode = "v"})
end

-- Releases results that became large because their variable is gone.
local function release_large()
  local ours, limit = storage_uses(), settings.get "result_keep"
  for _, e in ipairs(entries) do
    local bytes, where = own_bytes(e.value[1], ours)
    if not e.was and bytes > limit then release(e, bytes, where) end
  end
end

-- The value of a result that is held weakly and so is not a global.
local function weak_result(name)
  local of = name == "ans" and "_" or name
  for i, e in ipairs(entries) do
    if NAMES[i] == of and e.was then
      if e.value[1] ~= nil then return e.value[1] end
      error(("%s was %s and was released (:set result_keep keeps more)")
        :format(name, e.was), 3)
    end
  end
end

local function publish()
  local weak = false
  for i, name in ipairs(NAMES) do
    local e = entries[i]
    weak = weak or e ~= nil and e.was ~= nil
    local value
    if e and not e.was then value = e.value[1] end
    rawset(_G, name, value)
  end
  rawset(_G, "ans", rawget(_G, "_"))
  globals.missing("results", weak and weak_result or nil)
end

-- Did the user assign to _?
local function is_taken()
  local now, first = rawget(_G, "_"), entries[1]
  local ours = first and (rawequal(now, first.value[1]) or
                          now ~= now and first.value[1] ~= first.value[1])
  return now ~= nil and not ours
end

-- Forgets the results after _ = nil.
local function forget_dropped()
  local first = entries[1]
  return first ~= nil and not first.was and rawget(_G, "_") == nil
end

function results.remember(value)
  if forget_dropped() then results.forget() end
  if value == nil or is_taken() then return end
  table.insert(entries, 1, {value = {value}})
  entries[#NAMES + 1] = nil
  release_large()
  publish()
end

-- Called between blocks, to see what was dropped.
function results.check()
  if forget_dropped() then results.forget() end
  if #entries == 0 or is_taken() then return end
  release_large()
  publish()
end

function results.forget()
  for i = #entries, 1, -1 do entries[i] = nil end
  publish()
end

return results
