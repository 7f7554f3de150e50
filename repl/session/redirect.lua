-- SPDX-License-Identifier: MIT
--
-- redirect.lua - the output of a command or of a question as a text, or in a
-- file: ":whos > vars.txt", "?mm >> notes.txt".

local host = require "nacre.host"
local output_of = require "nacre.diverted_output".of

local redirect = {}

-- The output of a command, as ":whos", or of a question, as "?mm", as a list
-- of lines. Its failure is an error.
function redirect.lines(text)
  local shell, list = require "nacre.shell", {}
  local failed, held = shell.failed, nil
  shell.failed = false
  text, held = output_of(false, shell.dispatch, text)
  failed, shell.failed = shell.failed, failed
  held = table.concat(held, "\n")
  if failed then error((held:gsub("\27%[%d*m", ""):gsub("^error: ", "")), 0) end
  if held ~= "" then shell.complain(held) end
  for line in (text:gsub("([^\n])$", "%1\n")):gmatch "([^\n]*)\n" do
    list[#list + 1] = line
  end
  return list
end

-- Is a text Lua to its end? An option, as --budget 1, begins a comment.
local function is_lua(text)
  local function compiles(code) return load("return " .. code) or load(code) end
  return compiles(text) and not compiles(text .. " ]")
end

-- Is ">" in a command that takes Lua a comparison? Then what follows it is
-- Lua, and no file whose name begins with an unknown variable.
local function is_comparison(text, name)
  local takes_lua = require "nacre.commands".takes_lua
  local lua = require "nacre.input_block".lua_part(text, takes_lua)
  if not lua or not is_lua(lua) then return false end
  local first = name:match "^([%a_][%w_]*)[./]"
  return first == nil or rawget(_G, first) ~= nil
end

-- A line that ends in "> FILE" or ">> FILE": the command, the sign and the
-- name; nil if it does not.
function redirect.parse(text)
  if not text:find "^%s*[:%%?]" then return nil end
  local body, sign, quote, name =
    text:match "^(.*%S)%s+(>>?)%s*([\"'])([^\"']+)%3%s*$"
  if not body then
    body, sign, name = text:match "^(.*%S)%s+(>>?)%s*([^%s>\"']+)%s*$"
  end
  if not body or tonumber(name) or name:find "/$" then return nil end
  if is_comparison(text, quote and "" or name) then return nil end
  return body, sign, require "nacre.file_commands".path(name)
end

-- Writes a text to a file, or adds it to one; nil and why that failed.
local function write(sign, path, text)
  if sign == ">" then return host.write_file(path, text) end
  local file, why = io.open(path, "ab")
  if not file then return nil, why end
  local ok, early = file:write(text)
  local closed, late = file:close()
  return ok and closed, ("%s: %s"):format(path, early or late)
end

-- Runs a command whose output goes to a file.
function redirect.run(shell, body, sign, path)
  local text, held = output_of(false, shell.dispatch, body)
  for _, message in ipairs(held) do shell.complain(message) end
  local ok, why = write(sign, path, text)
  if not ok then shell.fail("cannot write " .. why) end
end

return redirect
