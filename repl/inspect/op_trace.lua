-- SPDX-License-Identifier: MIT
--
-- op_trace.lua - :trace shows every operation as it runs: operands, result,
-- time and memory allocated.

local units = require "nacre.units"
local listeners = require "nacre.op_listeners"

local nacre = package.loaded.nacre

local trace = {}

-- "float32[3x4]" of "float32[3x4] cpu", and "cpu".
local function split(text) return text:match "^(%S+) (%S+)$" end

function trace.name(step)
  return step.op:gsub("^_", "") .. (step.backward and " backward" or "")
end

-- "[3x4] [4x2] -> float32[3x2]" and the device. Of an operand it says only
-- what differs from the result.
function trace.shapes(step)
  local model = step.results[1] or step.operands[1] or "? ?"
  local kind, place = model:match "^(.-)%[", select(2, split(model))
  local function list(given, whole)
    local out = {}
    for i, text in ipairs(given) do
      local what, where = split(text)
      if not whole and what:match "^(.-)%[" == kind then
        what = what:sub(#kind + 1)
      end
      out[i] = where == place and what or what .. " " .. where
    end
    return table.concat(out, " ")
  end
  local to = list(step.results, true)
  local from = list(step.operands, to == "")
  if step.more then from = from .. " ..." end
  if from ~= "" and to ~= "" then to = " -> " .. to end
  return from .. to, place
end

-- One step as a line. A long name moves the following columns for later lines
-- too.
local function line(step)
  local shapes, place = trace.shapes(step)
  local what = ("%-13s  %s"):format(trace.name(step), shapes)
  local parts = {("  %-52s  %s"):format(what, place)}
  if step.view then
    parts[2] = "view"
  else
    parts[2] = units.seconds(step.seconds)
    if step.allocated > 0 then
      parts[3] = "+" .. units.bytes(step.allocated)
    end
  end
  return table.concat(parts, "  ")
end

-- "fc1, of Net" for a step of a layer, "Net" for one of the network itself, ""
-- for others. The path is as get_submodule takes it.
function trace.place(step)
  if not step.module then return "" end
  return step.module == step.network and step.module or
         ("%s, of %s"):format(step.module, step.network)
end

local LARGE = 1 << 18         -- elements from which fusion pays
local noted = false           -- once a session is enough

local function is_row(step)
  if step.backward or step.view then return false end
  local known, info = pcall(nacre._info, step.op)  -- not of "fused: mul add"
  return known and info and info.class and info.kind ~= "reduce"
end

-- "float32[1000x1000] cpu" of a pointwise operation over many elements.
local function large_row(step)
  local result = step.results[1]
  if not result or not result:find " cpu$" then return nil end
  local n = 1
  for size in result:match "%[(.-)%]":gmatch "%d+" do n = n * size end
  return n >= LARGE and is_row(step) and result or nil
end

-- What to say if more than half of the seconds went to three or more pointwise
-- operations in succession over one large shape; nil otherwise.
function trace.fusible(steps, seconds)
  local count, spent, shape = 0, 0, nil
  for i, step in ipairs(steps) do
    local result = large_row(step)
    if result ~= shape then count, spent, shape = 0, 0, result end
    count, spent = count + 1, spent + step.seconds
    if result and count >= 3 and spent > seconds / 2 then
      local after = steps[i + 1]
      if not after or large_row(after) ~= shape then
        return ("%d operations over %s would be one pass: ?fuse")
               :format(count, shape:match "^%S+")
      end
    end
  end
end

-- Runs a compiled block and calls each(step) for every operation; returns
-- false if it failed.
function trace.block(shell, unit, each)
  local begin, inside, n = nacre.clock(), 0, 0
  listeners.start("trace", "steps", function(steps)
    for _, step in ipairs(steps) do
      n, inside = n + 1, inside + step.seconds
      each(step)
    end
  end)
  local results = shell.run(unit)
  listeners.stop "trace"
  return results, n, inside, nacre.clock() - begin
end

function trace.run(shell, text)
  local unit = shell.compile(text)
  if not unit then return end
  local say, last, steps = require "nacre.wrap_lines".say, "", {}
  local _, n, inside = trace.block(shell, unit, function(step)
    local place = trace.place(step)
    if place ~= last then
      say(" in " .. (place == "" and "no layer" or place))
      last = place
    end
    say(line(step))
    io.stdout:flush()
    steps[#steps + 1] = step
  end)
  if n == 0 then return io.stdout:write "  no operations\n" end
  say(("  %s, %s%s"):format(units.count(n, "operation"),
    units.seconds(inside), units.emulated_mark()))
  local note = not noted and trace.fusible(steps, inside)
  if note then
    noted = true
    say("  " .. note)
  end
end

-- shell.trace(f, ...): the steps as a list of tables, then what f gave.
function trace.call(f, ...)
  return listeners.steps("trace", "steps", f, ...)
end

return trace
