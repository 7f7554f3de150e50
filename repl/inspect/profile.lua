-- SPDX-License-Identifier: MIT
--
-- profile.lua - :profile shows a table of the operations that ran, and of the
-- layers in which they ran: calls, time, throughput, memory.

local trace = require "nacre.op_trace"
local units = require "nacre.units"
local listeners = require "nacre.op_listeners"

local profile = {}

-- Adds a step to the row of these names.
local function add_step(rows, name, place, step)
  local key = name .. "\0" .. place
  local row = rows[key]
  if not row then
    row = {op = name, device = place, calls = 0, seconds = 0, flops = 0,
           bytes = 0, allocated = 0, least = math.huge, most = 0}
    rows[key] = row
    rows[#rows + 1] = row
  end
  row.calls = row.calls + 1
  for _, field in ipairs {"seconds", "flops", "bytes", "allocated"} do
    row[field] = row[field] + step[field]
  end
  row.least = math.min(row.least, step.seconds)
  row.most = math.max(row.most, step.seconds)
end

-- Adds steps to the totals by operation and device, and those of networks to
-- rows.layers, by layer.
local function add_steps(rows, steps)
  for _, step in ipairs(steps) do
    local _, place = trace.shapes(step)
    add_step(rows, trace.name(step), place, step)
    if step.module then
      rows.layers = rows.layers or {}
      add_step(rows.layers, trace.place(step), place, step)
    end
  end
end

local function sorted_rows(rows)
  table.sort(rows, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.op < b.op
  end)
  return rows
end

local head = {"", "calls", "time", "%", "each", "least .. most",
              "FLOP/s", "B/s", "memory", "device"}

local function cells(row, total)
  local s = row.seconds
  return {
    row.op, ("%d"):format(row.calls), units.seconds(s),
    ("%.1f%%"):format(100 * s / total), units.seconds(s / row.calls),
    row.calls > 1 and units.seconds(row.least) .. " .. " ..
                      units.seconds(row.most) or "",
    (units.rate(row.flops / s, "FLOP/s")) or "",
    (units.rate(row.bytes / s, "B/s")) or "",
    row.allocated > 0 and "+" .. units.bytes(row.allocated) or "", row.device,
  }
end

-- The rows as lines below a heading, the slowest first.
local function columns(first, rows, total)
  local lines = {table.move(head, 2, #head, 2, {first})}
  for _, row in ipairs(rows) do lines[#lines + 1] = cells(row, total) end
  return require "nacre.wrap_lines".columns(lines, "lrrrrrrrrl", "  ", true)
end

-- The table as text, the slowest rows first, and one of layers; `wall' is the
-- total time.
function profile.text(rows, wall)
  local inside, calls = 0, 0
  for _, row in ipairs(sorted_rows(rows)) do
    inside, calls = inside + row.seconds, calls + row.calls
  end
  local total = math.max(wall, inside)
  local lines = columns("operation", rows, total)
  if rows.layers then
    local layers = columns("layer", sorted_rows(rows.layers), total)
    lines[#lines + 1] = ""
    table.move(layers, 1, #layers, #lines + 1, lines)
  end
  lines[#lines + 1] = ("  %s in %s of %s; the rest is Lua and the measuring%s")
    :format(units.count(calls, "operation"), units.seconds(inside),
            units.seconds(total), units.emulated_mark())
  return table.concat(lines, "\n") .. "\n"
end

function profile.run(shell, text)
  local unit = shell.compile(text)
  if not unit then return end
  local rows = {}
  local _, n, _, wall = trace.block(shell, unit, function(step)
    add_steps(rows, {step})
  end)
  if n == 0 then
    io.stdout:write "  no operations of tensors; all of it is Lua\n"
  else
    require "nacre.wrap_lines".say(profile.text(rows, wall))
  end
end

-- shell.profile(f, ...): the rows as a list of tables, with those of layers in
-- its field `layers', then what f gave.
function profile.call(f, ...)
  local rows = {}
  local function on_steps(steps) add_steps(rows, steps) end
  local results = table.pack(listeners.during("profile", "steps", on_steps,
                                              f, ...))
  local list = table.move(sorted_rows(rows), 1, #rows, 1, {})
  if rows.layers then
    list.layers = table.move(sorted_rows(rows.layers), 1, #rows.layers, 1, {})
  end
  return list, table.unpack(results, 1, results.n)
end

-- For a whole program (--profile): all operations from the start are counted.
local whole = {}

function profile.start()
  listeners.start("profile", "steps", function(steps)
    if steps then add_steps(whole, steps) end
  end)
end

function profile.report(wall)
  listeners.stop "profile"
  if #whole == 0 then return "  no operations\n" end
  return profile.text(whole, wall)
end

return profile
