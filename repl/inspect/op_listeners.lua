-- SPDX-License-Identifier: MIT
--
-- op_listeners.lua - who is told of operations as they pass.  The core tells one
-- listener what it asked for; here several ask.

local watching = {}

local listeners = {}    -- by name: {wanted = "steps nan trap dry", told =}

local function tell(steps, warning)
  for _, l in pairs(listeners) do
    if l.wanted:find "steps" and #steps > 0 then l.told(steps) end
    if l.wanted:find "nan" and warning then l.told(nil, warning) end
  end
end

local function renew()
  local wanted = ""
  for _, l in pairs(listeners) do wanted = wanted .. " " .. l.wanted end
  nacre._watch(wanted, wanted ~= "" and tell or nil)
end

-- Until watching.stop, which gives the turn back to who had it before,
-- told(steps) is called after each operation, told(nil, warning) with an
-- error object that is no error.
function watching.start(name, wanted, told)
  listeners[name] = {wanted = wanted, told = told, before = listeners[name]}
  renew()
end

function watching.stop(name)
  local l = listeners[name]
  listeners[name] = l and l.before
  renew()
end

-- Calls f(...) while told listens; gives what it gave.
function watching.during(name, wanted, told, f, ...)
  watching.start(name, wanted, told)
  local results = table.pack(pcall(f, ...))
  watching.stop(name)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The same, with a list of all that it told before them.
function watching.steps(name, wanted, f, ...)
  local list = {}
  local function told(steps)
    table.move(steps, 1, #steps, #list + 1, list)
  end
  return list, watching.during(name, wanted, told, f, ...)
end

return watching
