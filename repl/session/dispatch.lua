-- SPDX-License-Identifier: MIT
--
-- dispatch.lua - what an input is: a command, a question, a system command, or
-- Lua, if no row here fits it. `shell` is that of shell.lua.

local evaluate = require "nacre.evaluate"
local input_block = require "nacre.input_block"

local dispatch = {}

local function takes_lua(name)
  return require "nacre.commands".takes_lua(name)
end

-- Words of other shells that are accepted, alone or as a call without
-- arguments.
local elsewhere = {exit = "quit", quit = "quit", help = "help"}

local function word_of_others(text)
  local word = text:match "^%s*(%l+)%s*$" or text:match "^%s*(%l+)%(%)%s*$"
  return rawget(_G, word) == nil and elsewhere[word] or nil
end

local function help_call(text)
  return rawget(_G, "help") == nil and
         text:match "^%s*help%s*%(([%w_%.:]+)%)%s*$" or nil
end

local function redirected(text) return require "nacre.redirect".parse(text) end
local function command(text) return require "nacre.commands".parse(text) end

local function run_redirected(shell, ...)
  shell.protected(require "nacre.redirect".run, shell, ...)
end

local function run_command(shell, name, rest)
  require "nacre.run_command".run(shell, name, rest or "")
end

local function help(shell, name, wide)
  require "nacre.pager".run(shell, require "nacre.help".show, shell, name, wide)
end

local function ask(shell, marks, name) help(shell, name, #marks > 1) end

local function show_source(shell, name)
  require "nacre.pager".run(shell, require "nacre.source_view".show, shell,
                            name)
end

-- Runs a system command; notes its status unless that is 0.
local function system(shell, line)
  local ok, how, status = os.execute(line)
  if ok then return end
  shell.failed = true
  shell.note((how == "signal" and "signal " or "exit status ") .. status)
end

function dispatch.system(shell, line)
  io.stdout:flush()
  system(shell, line)
end

local function run_system(shell, line)
  io.stdout:flush()
  shell.protected(system, shell, line)
end

-- The first row whose pattern, or function, finds something in the text tells
-- what the input is: `run` gets what was found.
local rows = {
  {find = redirected, run = run_redirected},         -- :whos > FILE
  {find = help_call, run = help},                    -- help(sum)
  {find = word_of_others, run = run_command},        -- exit()
  {find = "^%s*(:%a+)%s*%?+%s*$", run = help},       -- :save?
  {find = command, run = run_command},               -- :save FILE
  {find = "^%s*(%?+)%s*(.-)%s*$", run = ask},        -- ?sum, ??matrix
  {find = "^%s*([%w_%.:]+)%?%?%s*$", run = show_source},
  {find = "^%s*([%w_%.:]+)%?%s*$", run = help},      -- sum?
  {find = "^%s*!(.*)$", run = run_system},           -- !ls
}

local function run_found(shell, row, first, ...)
  if first == nil then return false end
  row.run(shell, first, ...)
  return true
end

function dispatch.run(shell, text)
  for _, row in ipairs(rows) do
    local find = type(row.find) == "function" and row.find or string.match
    if run_found(shell, row, find(text, row.find)) then return end
  end
  evaluate.input(input_block.lua_part(text, takes_lua) or text)
end

return dispatch
