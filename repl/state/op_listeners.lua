-- SPDX-License-Identifier: MIT
--
-- op_listeners.lua - calls functions after each operation.  The core reports to
-- one listener only; this module shares its reports among several.

local suggestion = require "nacre.suggestion"

local listeners = {}

-- By name: {events = "steps nan trap dry lines", report = function, before =
-- the listener of that name that was there before}.
local active = {}

-- Where each node of the graph was recorded: {layer, network, func = the user's
-- function, line =}; these if a listener wants lines.
local places, lines = {}, false

-- Adds the user's function that runs to a place.
local function add_line(place)
  for level = 4, math.maxinteger do
    local info = debug.getinfo(level, "Slf")
    if not info then return end
    if info.what ~= "C" and not info.source:find "^=nacre%." then
      place.func, place.line = info.func, info.currentline
      return
    end
  end
end

-- The function and the line that recorded a node; nil if they are not known.
function listeners.origin(node)
  local place = places[node]
  if place and place.func then return place.func, place.line end
end

-- Sets step.module and step.network: of the module that runs, or in backward
-- of the one that recorded the operation, also for a sum of its gradients. A
-- node that is not known is inside of an operation, as the one before it.
local function set_places(steps, module, network)
  local here, of_backward = {module, network}, nil
  if lines then add_line(here) end
  for _, step in ipairs(steps) do
    local node = step.backward and step.node or step.within
    if node then of_backward = places[node] or of_backward or here end
    local place = of_backward or here
    if step.node and not step.backward then places[step.node] = place end
    step.module, step.network = place[1], place[2]
    step.node, step.within = nil, nil
  end
end

local function report(steps, warning, module, network)
  set_places(steps, module, network)
  for _, l in pairs(active) do
    if l.events:find "steps" and #steps > 0 then l.report(steps) end
    if l.events:find "nan" and warning then l.report(nil, warning) end
  end
end

-- Tells the core what all listeners together want.
local function register()
  local events = ""
  for _, l in pairs(active) do events = events .. " " .. l.events end
  lines = events:find "lines" ~= nil
  if events == "" then places = {} end
  nacre._watch(events, events ~= "" and report or nil)
end

-- Calls report(steps) after each operation, and report(nil, warning) with an
-- error object for a warning, until listeners.stop(name), which restores the
-- listener that had the name before.
function listeners.start(name, events, f)
  active[name] = {events = events, report = f, before = active[name]}
  register()
end

function listeners.stop(name)
  register()                  -- reports what a backward at the end has done
  local l = active[name]
  active[name] = l and l.before
  register()
end

-- Returns f(...), which runs with `listener` registered.
function listeners.during(name, events, listener, f, ...)
  suggestion.check_function(f, name)
  listeners.start(name, events, listener)
  local results = table.pack(pcall(f, ...))
  listeners.stop(name)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- Returns the list of all steps that f(...) reports, then its results.
function listeners.steps(name, events, f, ...)
  local list = {}
  local function add(steps)
    table.move(steps, 1, #steps, #list + 1, list)
  end
  return list, listeners.during(name, events, add, f, ...)
end

return listeners
