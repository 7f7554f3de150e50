-- SPDX-License-Identifier: MIT
--
-- shell_functions.lua - fills the global table `shell`, the commands as
-- functions. main.c makes the table empty; the first look into it fills it.

local commands = require "nacre.commands"
local host = require "nacre.host"
local run_command = require "nacre.run_command"

local shell_functions = {}

-- The list of its functions that `shell' shows as a value.
local function function_list()
  local wrapped = require "nacre.reference".wrapped
  local width = host.columns()
  local parts = {wrapped("the commands as functions; :help NAME says how " ..
                         "one is called", "", width)}
  local function add(name, text)
    local head = ("  shell.%-11s "):format(name)
    local doc = wrapped(text, (" "):rep(#head), width)
    parts[#parts + 1] = head .. doc:sub(#head + 1)
  end
  commands.each_function(function(name, row) add(name, row.doc) end)
  return table.concat(parts, "\n")
end

local filled                  -- the table, when it is

-- Adds a function. A command's module is required when that is called.
function shell_functions.add(name)
  if not filled then return end
  filled[name] = run_command.callable(name) and function(...)
    return run_command.callable(name)(...)
  end
end

-- Fills the table.
local function fill(t)
  debug.setmetatable(t, {__tostring = function_list})
  local function add(name)
    t[name] = function(...) return run_command.callable(name)(...) end
  end
  commands.each_function(add)
  for name in next, commands.aliases do add(name) end
  filled = t
end

-- The metamethods of the empty table: the first access calls one of them, which
-- fills it and replaces them all. lookup.lua calls __fill.
shell_functions.__fill = fill

function shell_functions.__index(t, name)
  fill(t)
  return rawget(t, name)
end

function shell_functions.__pairs(t)
  fill(t)
  return next, t
end

function shell_functions.__tostring(t)
  fill(t)
  return function_list()
end

return shell_functions
