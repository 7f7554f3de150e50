-- SPDX-License-Identifier: MIT
-- The calls that the examples of the reference make:
--   each_call(visit, skip)
-- plays all examples and, before every call of an operation that has a
-- description, calls visit(name, f, info, args), whose calls are not visited.
-- name is that of a function, or t:NAME, linalg.NAME ...; args has a field n;
-- skip has the names of pages that are left out.
--   local each_call = dofile(here .. "../lib/example_calls.lua")

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local reference = require "nacre.reference"
local play = dofile(here .. "play_example.lua")

local spaces = {
  [""] = nacre._functions, ["t:"] = nacre._methods,
  ["linalg."] = nacre.linalg, ["nn.functional."] = nacre.nn.functional,
  ["autograd."] = nacre.autograd, ["cuda."] = nacre.cuda,
}

return function(visit, skip)
  local info, original, undo, inside = nacre._info, {}, {}, false

  local function wrap(space, key, name)
    local f = space[key]
    local about = info(f)
    if not (about and about.params) or key:find "^_" then return end
    local function wrapped(...)
      if inside then return f(...) end
      inside = true
      visit(name, f, about, table.pack(...))
      inside = false
      return f(...)
    end
    original[wrapped] = f
    undo[#undo + 1] = {space, key, f}
    rawset(space, key, wrapped)
  end

  for prefix, space in pairs(spaces) do
    local keys = {}
    for key, f in next, space do
      if type(f) == "function" then keys[#keys + 1] = key end
    end
    for _, key in ipairs(keys) do wrap(space, key, prefix .. key) end
  end
  nacre._info = function(x) return info(original[x] or x) end
  for _, page in ipairs(reference.pages()) do
    for _, entry in ipairs(skip and skip[page.name] and {} or page.entries) do
      play(entry, function() inside = false end)
    end
  end
  for _, u in ipairs(undo) do rawset(u[1], u[2], u[3]) end
  nacre._info = info
end
