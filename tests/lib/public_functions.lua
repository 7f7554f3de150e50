-- SPDX-License-Identifier: MIT
-- Everything that a user can call, found by walking the tables: the functions
-- below `nacre', methods of tensors, classes, and methods and metamethods of
-- instances. Instances are those that the examples of the reference make, and
-- what constructors give for arguments that fit their signatures.
--   local subjects = dofile(here .. "../lib/public_functions.lua")(skip)
-- is a list of {name=, f=, fresh=, params=}: fresh() makes a new self of a
-- method; params are those of the signature. skip has names, and pages whose
-- examples are not played; without it, what waits, measures, ends or changes
-- the program. A second argument, {name = table}, is walked instead of the
-- library.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local reference = require "nacre.reference"
local play = dofile(here .. "play_example.lua")
local C = dofile(here .. "small_calls.lua")

local UNSUITABLE = {
  ["nacre.bench"] = true, ["nacre.bench_compare"] = true,
  ["nacre.set_memory_limit"] = true, ["nacre.set_num_threads"] = true,
  ["timer:timeit"] = true, ["timer:blocked_autorange"] = true,
  ["timer:adaptive_autorange"] = true,
  python = true, files = true, images = true, commands = true,
}
local subjects, known, classes, skip

local function is_public(key)
  return type(key) == "string" and not key:find "^_"
end

local function sorted(t)
  local keys = {}
  for key in next, t do
    if type(key) == "string" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

local function add(name, f, fresh, params)
  if known[f] or skip[name] or
     debug.getinfo(f, "S").source == "=example" then     -- the user's
    return
  end
  known[f] = true
  if not params then
    local info = nacre._info(f)
    params = info and info.params or {}
  end
  subjects[#subjects + 1] = {name = name, f = f, fresh = fresh,
                             params = params}
end

-- ---- instances

-- The metamethods of an object, and its methods, which are fields of its
-- metatable or of what that inherits from.
local function add_methods(class, object, fresh)
  local meta = debug.getmetatable(object)
  local t = meta
  while type(t) == "table" do
    for _, key in ipairs(sorted(t)) do
      local f = rawget(t, key)
      if type(f) == "function" and (is_public(key) or
         rawequal(t, meta) and key:find "^__%l+$") and
         key ~= "__gc" and key ~= "__close" then
        add(class .. ":" .. key, f, fresh)
      end
    end
    local up = rawget(t, "__index")
    if type(up) ~= "table" or rawequal(up, t) then
      up = debug.getmetatable(t)
      up = type(up) == "table" and rawget(up, "__index") or nil
    end
    t = up
  end
  local prefix = "^" .. class:match "%w+$" .. ":(%w+)$"
  for _, page in ipairs(reference.pages()) do
    for _, entry in ipairs(page.entries) do
      local key = entry.name:match(prefix)
      local ok, f = pcall(function() return key and object[key] end)
      if ok and type(f) == "function" then
        add(class .. ":" .. key, f, fresh)
      end
    end
  end
end

local function is_object(v)
  if nacre.is_tensor(v) or io.type(v) then return false end
  local meta = debug.getmetatable(v)
  return (type(v) == "table" or type(v) == "userdata") and
         type(meta) == "table" and next(meta) ~= nil and meta
end

local function class_name(v, meta)
  local name = rawget(meta, "__name") or rawget(meta, "name")
  return type(name) == "string" and name:gsub("^nacre%.", "") or
         tostring(v):match "^[%w_]+" or type(v)
end

-- Notes the object, and those that it has as fields.
local function note_object(v, fresh, depth)
  local meta = is_object(v)
  if not meta or classes[meta] then return end
  classes[meta] = true
  add_methods(class_name(v, meta), v, fresh)
  if type(v) ~= "table" or depth > 2 then return end
  for _, key in ipairs(sorted(v)) do
    note_object(rawget(v, key), function()
      local again = fresh()
      return again and rawget(again, key)
    end, depth + 1)
  end
end

local function note_example(entry)
  play(entry, function(env, at)
    for _, key in ipairs(sorted(env)) do
      note_object(env[key], function()
        local found
        play(entry, function(again, i)
          found = again[key]
          return i < at
        end)
        return found
      end, 1)
    end
  end)
end

-- What a constructor gives for arguments that fit its signature.
local function construct(f, info)
  local args = {}
  for _, p in ipairs(info.params) do
    if p.optional or p.byname then break end
    local v = p.type == "table" and {nacre.ones(2, {requires_grad = true})} or
              p.type == "any" and nacre.ones(2, 2) or C.value(p, "float32")
    args[#args + 1] = p.type == "fn" and function(x) return x end or v
  end
  local ok, v = pcall(f, table.unpack(args))
  return ok and v or nil
end

-- ---- the tables

local makes = {module = true, optimizer = true, schedule = true,
               loader = true, dataset = true, sampler = true, scaler = true,
               stream = true, event = true, work = true}

local function note_function(name, f)
  local info = nacre._info(f)
  local call = f
  if type(f) == "table" then
    call = function(...) return f(...) end
    known[f] = true
  end
  add(name, call, nil, info and info.params)
  if info and info.params and makes[info.results] and not skip[name] then
    note_object(construct(f, info), function() return construct(f, info) end,
                1)
  end
end

local function walk(t, path, seen)
  if seen[t] then return end
  seen[t] = true
  for _, key in ipairs(sorted(t)) do
    local v, name = t[key], path .. "." .. key
    local meta = type(v) == "table" and getmetatable(v)
    if not is_public(key) or known[v] then goto continue end
    if type(v) == "function" or meta and meta.__call then
      note_function(name, v)
    end
    if type(v) == "table" then walk(v, name, seen) end
    if type(v) == "userdata" then
      note_object(v, function() return v end, 1)
    end
    ::continue::
  end
end

return function(left_out, others)
  subjects, known, classes, skip = {}, {}, {}, left_out or UNSUITABLE
  local _ = nacre.nn.Module   -- loads what is loaded when it is first used
  local functions = {}
  for key, v in pairs(nacre) do functions[key] = v end
  for name, t in pairs(others or {nacre = functions}) do walk(t, name, {}) end
  if others then return subjects end
  for _, key in ipairs(sorted(nacre._methods)) do
    if is_public(key) then
      add("t:" .. key, nacre._methods[key],
          function() return nacre.ones(2, 3) end)
    end
  end
  for _, page in ipairs(reference.pages()) do
    for _, entry in ipairs(skip[page.name] and {} or page.entries) do
      if not skip["nacre." .. entry.name] then note_example(entry) end
    end
  end
  note_object(nacre.Generator(), nacre.Generator, 1)
  add_methods("tensor", nacre.ones(1), function() return nacre.ones(2, 3) end)
  return subjects
end
