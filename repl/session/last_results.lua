-- SPDX-License-Identifier: MIT
--
-- last_results.lua - the variables _, __, ___ and ans, and _17, the result of
-- the input with that number. The last three are plain globals; memory above
-- the setting `result_keep` that only a result refers to is held weakly, so
-- that they never keep a large tensor alive. The older ones together keep no
-- more than that.

local globals = require "nacre.globals"
local settings = require "nacre.settings"
local facts = require "nacre.tensor_facts"
local units = require "nacre.units"

local results = {}

local NAMES = {"_", "__", "___"}
local KEPT = 200              -- results that have a number
local MANY = 100              -- fields of a table that is measured

-- The newest first. value: a table with the value, whose mode makes it weak or
-- not; was: the description of a released value; number: of its input. nil is
-- a value, too.
local entries = {}

-- Could this value keep memory that is worth a look?
local function is_object(value)
  local kind = type(value)
  return kind ~= "number" and kind ~= "string" and kind ~= "boolean"
end

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
    if e.object then tensors(e.value[1], function(t)
      local id, _, _, _, basis = nacre._storage_id(t)
      local mine = ours[id] or {boxes = 0, views = 0}
      ours[id] = mine
      if seen[t] then return end
      seen[t] = true
      mine.boxes = mine.boxes + 1
      if basis > 0 then mine.views = mine.views + 1 end
    end) end
  end
  return ours
end

local function release(e, what)
  e.was = what
  setmetatable(e.value, {__mode = "v"})
end

local function description(value, bytes, where)
  local what = facts.istensor(value) and facts.kind(value) or "a table"
  return ("%s, %s on %s,"):format(what, units.bytes(bytes), where)
end

-- Is this a value whose memory is known? Of others a number keeps none: a
-- model, a file, what a function holds.
local function is_measured(value)
  if type(value) ~= "table" then
    return facts.is_alive(value) or type(value) ~= "function" and
           type(value) ~= "userdata" and type(value) ~= "thread"
  end
  local n = 0
  for _, v in next, value do
    n = n + 1
    if n > MANY or type(v) == "table" or not is_measured(v) then
      return false
    end
  end
  return debug.getmetatable(value) == nil
end

-- Releases results that became large because their variable is gone, and older
-- ones that are large together.
local function release_large()
  local ours, limit, sum = storage_uses(), settings.get "result_keep", 0
  for i, e in ipairs(entries) do
    local value = e.value[1]
    local bytes, where = 0, nil
    if e.object then bytes, where = own_bytes(value, ours) end
    if i > #NAMES and not e.was then sum = sum + bytes end
    if e.was then
      -- its memory is not ours
    elseif bytes > limit or sum > limit then
      release(e, description(value, bytes, where))
      if i > #NAMES then sum = sum - bytes end
    elseif i > #NAMES and e.object and not is_measured(value) then
      release(e, ("a %s"):format(type(value)))
    end
  end
end

local function weak_value(e, name)
  if e.value[1] ~= nil then return e.value[1] end
  error(("%s was %s and was released (:set result_keep keeps more)")
    :format(name, e.was), 4)
end

-- The value of a result that is not a global: one that is held weakly, or that
-- has a number.
local function hidden_result(name)
  local of = name == "ans" and "_" or name
  local number = type(name) == "string" and
                 math.tointeger(tonumber(name:match "^_(%d+)$"))
  for i, e in ipairs(entries) do
    if NAMES[i] == of and e.was then return weak_value(e, name) end
    if number and e.number == number then
      return e.was and weak_value(e, name) or e.value[1]
    end
  end
end

local function publish()
  for i, name in ipairs(NAMES) do
    local e = entries[i]
    local value
    if e and not e.was then value = e.value[1] end
    rawset(_G, name, value)
  end
  rawset(_G, "ans", rawget(_G, "_"))
  globals.missing("results", entries[1] and hidden_result or nil)
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

-- Adds the result of the input `number', if it has one. An input that is
-- repeated has the number of the first time: its result is the last.
function results.remember(value, number)
  if forget_dropped() then results.forget() end
  if value == nil or is_taken() then return end
  for _, e in ipairs(entries) do
    if e.number == number then e.number = nil end
  end
  table.insert(entries, 1, {value = {value}, number = number,
                            object = is_object(value)})
  entries[KEPT + 1] = nil
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
