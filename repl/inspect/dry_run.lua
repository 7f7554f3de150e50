-- SPDX-License-Identifier: MIT
--
-- dry_run.lua - :shape runs an expression on shapes alone and shows the
-- result, memory and work of each operation. Nothing is computed and no tensor
-- changes; an operation that needs values ends it.

local styled = require "nacre.styled_output"
local trace = require "nacre.op_trace"
local facts = require "nacre.tensor_facts"
local units = require "nacre.units"
local listeners = require "nacre.op_listeners"

local dry_run = {}

local function work(flops)
  if flops < 1e6 then return ("%d FLOP"):format(flops) end
  return (units.rate(flops, "FLOP"))
end

local function line(step)
  local shapes = trace.shapes(step)
  local parts = {("  %-10s  %-40s"):format(trace.name(step), shapes)}
  if step.view then
    parts[2] = "view"
  elseif step.allocated > 0 then
    parts[2] = units.bytes(step.allocated)
  end
  if step.flops > 0 then parts[#parts + 1] = work(step.flops) end
  return table.concat(parts, "  ")
end

-- "float32[3x4] cpu", for each result.
local function shown(results)
  local list = {}
  for i = 1, results.n do
    local v = results[i]
    list[i] = facts.istensor(v) and facts.kind_and_device(v) or styled.brief(v)
  end
  return table.concat(list, "  ")
end

-- The peak memory of the new tensors on each device.
local function memory()
  local parts = {}
  for _, d in ipairs(nacre._devices()) do
    local _, peak = nacre._drymemory(d.name)
    if peak > 0 then
      parts[#parts + 1] = ("%s at most on %s"):format(units.bytes(peak),
                                                     d.name)
    end
  end
  return parts
end

-- The variables that the block sets have no values, so they stay in an
-- environment of its own.
local function isolate(unit)
  unit.locals = nil
  debug.setupvalue(unit.f, 1, setmetatable({}, {__index = _G}))
end

function dry_run.run(shell, text)
  local unit = shell.compile(text)
  if not unit then return end
  local flops = 0
  isolate(unit)
  collectgarbage() -- of an earlier run; twice, for what has a __gc
  collectgarbage()
  listeners.start("shape", "steps dry", function(steps)
    for _, step in ipairs(steps) do
      flops = flops + step.flops
      require "nacre.wrap_lines".say(line(step))
    end
  end)
  local results = shell.run(unit)
  listeners.stop "shape"
  if not results then return end
  local parts = memory()
  if flops > 0 then parts[#parts + 1] = work(flops) end
  if results.n > 0 then table.insert(parts, 1, shown(results)) end
  parts[#parts + 1] = "nothing was computed"
  require "nacre.wrap_lines".say("  " .. table.concat(parts, ", "))
end

-- shell.shape(f, ...): the steps as a list of tables, then the results of f,
-- tensors with a shape but without values.
function dry_run.call(f, ...)
  return listeners.steps("shape", "steps dry", f, ...)
end

return dry_run
