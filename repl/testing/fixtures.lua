-- SPDX-License-Identifier: MIT
--
-- fixtures.lua - code that runs around tests: setup and teardown once for a
-- file, before_each and after_each for each of its tests. A conftest.lua
-- defines them for all tests in its folder and below.

local root = require "nacre.project_root"

local fixtures = {}

local NAMES = {"setup", "teardown", "before_each", "after_each"}

local lists, definers = {}, {} -- by name
for _, name in ipairs(NAMES) do
  lists[name] = {}
  definers[name] = function(f)
    if type(f) ~= "function" then
      error(("%s(function): bad argument, a %s"):format(name, type(f)), 2)
    end
    table.insert(lists[name], f)
  end
end

function fixtures.open()
  for _, name in ipairs(NAMES) do rawset(_G, name, definers[name]) end
end

-- A chunk may call setup(f), or have a function setup.
function fixtures.take()
  for _, name in ipairs(NAMES) do
    local f = rawget(_G, name)
    if type(f) == "function" and f ~= definers[name] then
      table.insert(lists[name], f)
    end
  end
  fixtures.open()
end

-- The names are only defined in test files: a session keeps its own.
function fixtures.close()
  for _, name in ipairs(NAMES) do rawset(_G, name, nil) end
end

-- Runs each conftest.lua that holds for a test, that of the root first.
function fixtures.conftest(unit)
  fixtures.open()
  for _, path in ipairs(root.each(unit, "conftest.lua")) do
    dofile(path)
    fixtures.take()
  end
end

-- The fixtures of one name in order; those that end something in reverse.
function fixtures.each(name)
  local list, ordered = lists[name], {}
  local ends = name == "teardown" or name == "after_each"
  for k, f in ipairs(list) do
    ordered[ends and #list + 1 - k or k] = f
  end
  return ipairs(ordered)
end

return fixtures
