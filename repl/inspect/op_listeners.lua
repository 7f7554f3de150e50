-- SPDX-License-Identifier: MIT
--
-- op_listeners.lua - calls functions after each operation.  The core reports to
-- one listener only; this module shares its reports among several.

local listeners = {}

-- By name: {wanted = "steps nan trap dry", report = function, before = the
-- listener of that name that was there before}.
local active = {}

local function report(steps, warning)
  for _, l in pairs(active) do
    if l.wanted:find "steps" and #steps > 0 then l.report(steps) end
    if l.wanted:find "nan" and warning then l.report(nil, warning) end
  end
end

-- Tells the core what all listeners together want.
local function register()
  local wanted = ""
  for _, l in pairs(active) do wanted = wanted .. " " .. l.wanted end
  nacre._watch(wanted, wanted ~= "" and report or nil)
end

-- Calls report(steps) after each operation, and report(nil, warning) with an
-- error object for a warning, until listeners.stop(name), which restores the
-- listener that had the name before.
function listeners.start(name, wanted, f)
  active[name] = {wanted = wanted, report = f, before = active[name]}
  register()
end

function listeners.stop(name)
  local l = active[name]
  active[name] = l and l.before
  register()
end

-- Returns f(...), which runs with `listener` registered.
function listeners.during(name, wanted, listener, f, ...)
  listeners.start(name, wanted, listener)
  local results = table.pack(pcall(f, ...))
  listeners.stop(name)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- Returns the list of all steps that f(...) reports, then its results.
function listeners.steps(name, wanted, f, ...)
  local list = {}
  local function add(steps)
    table.move(steps, 1, #steps, #list + 1, list)
  end
  return list, listeners.during(name, wanted, add, f, ...)
end

return listeners
