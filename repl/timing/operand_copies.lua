-- SPDX-License-Identifier: MIT
--
-- operand_copies.lua - copies the variables that an expression reads, so that
-- several runs of it start from the same operands, on any device, and leave
-- the session's unchanged.

local measure = require "nacre.measure"
local facts = require "nacre.tensor_facts"

local nacre = package.loaded.nacre

local operands = {}

-- A copy with its own memory; a tensor that requires gradients becomes a leaf.
function operands.tensor(t, device)
  local c = (t.grad_fn and t or t:detach()):to(device or t.device)
  if nacre._storage_id(c) == nacre._storage_id(t) then c = c:clone() end
  if t.requires_grad and t.is_leaf then
    c:requires_grad_()
    c.grad = t.grad and operands.tensor(t.grad, device)
  end
  return c
end

local function isgenerator(v)
  local meta = type(v) == "userdata" and debug.getmetatable(v)
  return meta and meta.__name == "nacre.generator"
end

-- The tables of libraries, which hold no operands.
local function libraries()
  local set = {[_G] = true, [package.loaded] = true}
  for _, v in pairs(package.loaded) do
    if type(v) == "table" then set[v] = true end
  end
  return set
end

-- Does v contain a tensor or a generator, at any depth?
local function holds(v, seen)
  if facts.istensor(v) or isgenerator(v) then return true end
  if type(v) ~= "table" or seen[v] then return false end
  seen[v] = true
  for _, item in next, v do
    if holds(item, seen) then return true end
  end
  return false
end

function operands.holds(v) return holds(v, libraries()) end

-- Replaces every tensor t of v by each(t) in copies of its tables; shared
-- tables and tensors stay shared.
local function copied(v, each, seen)
  if seen[v] ~= nil then return seen[v] end
  if facts.istensor(v) then
    seen[v] = each(v)
  elseif isgenerator(v) then
    seen[v] = v:clone()
  elseif type(v) == "table" then
    local copy = setmetatable({}, debug.getmetatable(v))
    seen[v] = copy
    for k, item in next, v do rawset(copy, k, copied(item, each, seen)) end
  else
    return v
  end
  return seen[v]
end

-- Puts copies of the named operands in `base' into env.
function operands.move(env, base, names, each)
  local seen = {}
  for lib in pairs(libraries()) do seen[lib] = lib end
  for _, name in ipairs(names) do
    env[name] = copied(base[name], each, seen)
  end
end

-- The names in a text that are operands.
function operands.names(text, env)
  local list = {}
  for _, name in ipairs(measure.named(text, env)) do
    if operands.holds(measure.value_of(env, name)) then
      list[#list + 1] = name
    end
  end
  return list
end

-- An environment for a run of the text, with copies of its operands made by
-- each(t).
function operands.environment(text, base, each)
  local env = measure.environment({text}, base)
  operands.move(env, env, operands.names(text, env), each or operands.tensor)
  return env
end

-- Calls f with the random numbers from `state' on. Returns its results in a
-- table, the uses of CUDA devices, and whether random numbers were drawn.
function operands.observed(state, f)
  nacre.set_rng_state(state)
  nacre.synchronize()
  local before = measure.counters()
  local results = table.pack(f())
  nacre.synchronize()
  local uses = measure.gained(before, 1).uses
  return results, uses, not nacre.get_rng_state():equal(state)
end

-- Did the run leave its device, or never use it?
function operands.elsewhere(device, uses)
  if device == "cpu" then return uses > 0 and "used a CUDA device" end
  return uses == 0 and "did not use it"
end

return operands
