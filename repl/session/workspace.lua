-- SPDX-License-Identifier: MIT
--
-- workspace.lua - `:save FILE.safetensors` writes the variables of the session
-- and `:load` of such a file brings them back: tensors, numbers, texts,
-- booleans, tables of them, and the states of networks and optimizers.
--
-- In the file each variable has its name. Another table there, ABOUT, says
-- which tensors require a gradient, on which devices tensors were, and which
-- variables are the state of an object.

local facts = require "nacre.tensor_facts"
local units = require "nacre.units"
local say = require "nacre.wrap_lines".tell
local shown = require "nacre.files".shown

local workspace = {}

local ABOUT <const> = "~workspace"
local DEEPEST <const> = 90
local PLAIN = {number = true, string = true, boolean = true}

function workspace.is_file(path) return path:find "%.safetensors$" ~= nil end

--
-- Saving
--

-- The state of an object that has one, a network or an optimizer.
local function state_of(v)
  if debug.getmetatable(v) == nil then return nil end
  local ok, state = pcall(function()
    local plain = {}
    for key, element in pairs(v:state_dict()) do plain[key] = element end
    return plain
  end)
  return ok and state or nil
end

-- Why a value cannot be saved, in one word; nil if it may be.
local function obstacle(v, level, open)
  if PLAIN[type(v)] then return nil end
  if facts.istensor(v) then
    return (not facts.is_alive(v) or nacre._isdry(v)) and "no values" or nil
  end
  if type(v) ~= "table" then return type(v) end
  if open[v] then return "contains itself" end
  if level > DEEPEST then return "too deep" end
  return debug.getmetatable(v) ~= nil and "object" or nil
end

-- What of the tensor a file does not hold.
local function note_tensor(s, t)
  if s.seen[t] then return t end
  s.seen[t] = true
  if t.requires_grad and t.is_leaf then
    table.insert(s.about.leaves, t)
  end
  local device = tostring(t.device)
  if device ~= "cpu" then
    s.about.devices[device] = s.about.devices[device] or {}
    table.insert(s.about.devices[device], t)
  end
  return t
end

-- A copy of v without what cannot be saved, whose path goes to s.left.
local function copied(s, v, path, level)
  local why = obstacle(v, level, s.open)
  if why then
    s.left[#s.left + 1] = {path, why}
    return nil
  end
  if facts.istensor(v) then return note_tensor(s, v) end
  if PLAIN[type(v)] then return v end
  local copy = {}
  s.open[v] = true
  for key, element in next, v do
    local name = ("%s.%s"):format(path, tostring(key))
    if PLAIN[type(key)] then
      copy[key] = copied(s, element, name, level + 1)
    else
      s.left[#s.left + 1] = {path, facts.typename(key) .. " as a key"}
    end
  end
  s.open[v] = nil
  return copy
end

-- "f, g (function); log (object)"
local function listed(left)
  local whys, of = {}, {}
  for _, row in ipairs(left) do
    local path, why = row[1], row[2]
    if not of[why] then whys[#whys + 1], of[why] = why, {} end
    table.insert(of[why], path)
  end
  for i, why in ipairs(whys) do
    table.sort(of[why])
    whys[i] = ("%s (%s)"):format(table.concat(of[why], ", "), why)
  end
  return table.concat(whys, "; ")
end

-- The variables with these names as {variables =, names =, left =}.
local function collected(names)
  local s = {left = {}, open = {}, seen = {}, names = {}, variables = {},
             about = {version = 1, leaves = {}, devices = {}, states = {}}}
  for _, name in ipairs(names) do
    local v = rawget(_G, name)
    local state = type(v) == "table" and state_of(v)
    local copy = copied(s, state or v, name, 0)
    if copy ~= nil then
      s.variables[name] = copy
      s.names[#s.names + 1] = name
      if state then table.insert(s.about.states, name) end
    end
  end
  s.variables[ABOUT] = s.about
  return s
end

-- Writes the variables with these names, by default all; nil and why not.
function workspace.save(shell, path, names)
  for _, name in ipairs(names) do
    if rawget(_G, name) == nil then
      return nil, ("no variable '%s'"):format(name)
    end
  end
  local s = collected(names[1] and names or shell.userglobals())
  if not s.names[1] then
    return nil, s.left[1] and "nothing can be saved: " .. listed(s.left) or
                "there are no variables"
  end
  nacre.save(path, s.variables)
  local file <close> = assert(io.open(path, "rb"))
  say(("%s: %s, %s"):format(path, units.count(#s.names, "variable"),
                            units.bytes(file:seek "end")))
  if s.left[1] then say("not saved: " .. listed(s.left)) end
  return true
end

--
-- Loading
--

-- The tensors that go to another device, by the tensors of the file.
local function moved(about)
  local map, missing = {}, nil
  for device, list in pairs(about.devices or {}) do
    for _, t in ipairs(list) do
      local ok, there = pcall(t.to, t, device)
      map[t] = ok and there or t
      missing = missing or not ok and device or nil
    end
  end
  for _, t in ipairs(about.leaves or {}) do
    (map[t] or t):requires_grad_()
  end
  return map, missing
end

-- Replaces the tensors in a table by those that `map` has for them.
local function replaced(v, map)
  if facts.istensor(v) then return map[v] or v end
  if type(v) ~= "table" then return v end
  for key, element in next, v do v[key] = replaced(element, map) end
  return v
end

-- Does every element of v, which may be nil, pass the test?
local function all_are(v, test)
  if v == nil then return true end
  if type(v) ~= "table" then return false end
  for _, element in next, v do
    if not test(element) then return false end
  end
  return true
end

local function is_name(v) return type(v) == "string" end

-- Is this table of variables what workspace.save writes?
local function is_whole(all)
  local about = all[ABOUT]
  for name in next, all do if not is_name(name) then return false end end
  for device in next, type(about.devices) == "table" and about.devices or {} do
    if not is_name(device) then return false end
  end
  return all_are(about.leaves, function(t)
    return facts.istensor(t) and t:is_floating_point()
  end) and all_are(about.states, is_name) and
    all_are(about.devices, function(list)
      return type(list) == "table" and all_are(list, facts.istensor)
    end)
end

-- Gives a variable its value. The state of an object goes into the object, if
-- there is one.
local function restore(name, value, is_state)
  local object = is_state and rawget(_G, name)
  if type(object) == "table" and state_of(object) then
    object:load_state_dict(value)
  else
    rawset(_G, name, value)
    return is_state
  end
end

-- Brings the variables of a file back; nil and why not.
function workspace.load(shell, path)
  local all = nacre.load(path)
  local about = type(all) == "table" and all[ABOUT]
  if type(about) ~= "table" then
    return nil, ("%s has tensors, not the variables of a session; " ..
                 "t = nacre.load(%q) reads it"):format(path, path)
  end
  if not is_whole(all) then
    return nil, path .. ": its list of variables is damaged"
  end
  all[ABOUT] = nil
  local map, missing = moved(about)
  local names, left, states, is_state = {}, {}, {}, {}
  for _, name in ipairs(about.states or {}) do is_state[name] = true end
  for name in pairs(all) do names[#names + 1] = name end
  table.sort(names)
  for i = #names, 1, -1 do
    local name = names[i]
    if shell.is_own_name(name) then
      left[#left + 1] = {table.remove(names, i), "a name of Nacre"}
    elseif restore(name, replaced(all[name], map), is_state[name]) then
      states[#states + 1] = name
    end
  end
  say(shown(("%s: %s"):format(path, table.concat(names, ", "))))
  if left[1] then say(shown("not loaded: " .. listed(left))) end
  for _, name in ipairs(states) do
    say(shown(("%s is a state: object:load_state_dict(%s)"):format(name, name)))
  end
  if missing then
    say(shown(("there is no %s: its tensors are on the CPU"):format(missing)))
  end
  return true
end

return workspace
