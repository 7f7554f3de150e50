-- SPDX-License-Identifier: MIT
--
-- complete.lua - what the word before the cursor can become.

local help = require "nacre.help"
local inspect = require "nacre.inspect"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"

local complete = {}

local NOTES = 24 -- the list shows notes up to so many candidates

local function firstline(text) return (text or ""):match "[^\n]*" end

-- No user's __tostring may run here.
local function valuenote(value)
  if inspect.istensor(value) then return inspect.kind(value) end
  local kind = type(value)
  if kind == "table" or kind == "userdata" then return kind end
  return firstline(inspect.brief(value))
end

local function noteof(name, value, method)
  local info = type(value) == "function" and
               (nacre._info(value) or nacre._info(name))
  if info then
    local text = help.signature(info, method):gsub("%s*%->.*$", "")
    text = text:gsub("^%a+[.:]", "") -- of what is not in nacre itself
    return ("%-28s  %s"):format(text:gsub("^[%w_]+", name, 1),
                                firstline(info.doc))
  elseif type(value) == "function" then
    local written = debug.getinfo(value, "S").what ~= "C"
    return name .. (written and lookup.parameters(value) or "(...)")
  elseif value ~= nil then
    return ("%-28s  %s"):format(name, valuenote(value))
  end
end

-- A list that takes names, keeps those that begin with `word`.
local function collector(word)
  local list = {word = word}
  function list.add(name, value, method)
    if name:sub(1, #word) ~= word then return end
    if name:sub(1, 1) == "_" and word == "" then return end
    list[#list + 1] = {name, value, method}
  end
  return list
end

local function finish(list, right)
  local call = right:sub(1, 1) ~= "("
  table.sort(list, function(a, b) return a[1] < b[1] end)
  for i, item in ipairs(list) do
    local name, value, method = item[1], item[2], item[3]
    local note = item.note
    if not note and #list <= NOTES then note = noteof(name, value, method) end
    local open = call and type(value) == "function" and "(" or ""
    list[i] = {name .. open, note}
  end
  return list
end

local function commands(word)
  local list = collector(word)
  for _, command in ipairs(require "nacre.commands".list) do
    list.add(command.name)
    local last = list[#list]
    if last and last[1] == command.name then
      last.note = (":%s %s"):format(command.name, command.args or "")
      last.note = ("%-24s  %s"):format(last.note, command.doc)
    end
  end
  finish(list, "")
  for _, item in ipairs(list) do item[1] = item[1] .. " " end
  return list
end

-- The object before "." or ":": its value, or the text "call" if only
-- running it could tell.
local function object(before)
  if before:find "[\"']%s*%)?$" and not before:find "%]$" then return "" end
  local path = before:match "[%a_][%w_.:%[%]\"']*$"
  if not path or before:find "[%)%}]$" then return nil, true end
  return lookup.value(path), path:find ":" ~= nil
end

local function members(before, separator, list)
  local value, unknown = object(before)
  local method = separator == ":"
  if value == nil and unknown and method then
    value = nacre._methods -- most calls give a tensor
    for name, f in next, value do list.add(name, f, true) end
  elseif inspect.istensor(value) and not method then
    for _, name in ipairs(lookup.properties()) do list.add(name) end
  elseif value ~= nil then
    lookup.members(value, function(name, field)
      if not method or type(field) == "function" then
        list.add(name, field, method)
      end
    end)
  end
end

local function globals(list)
  lookup.members(_G, function(name, value) list.add(name, value) end)
  for word in next, lexer.keywords do list.add(word) end
end

-- Candidates for the end of `left`; `right` is what stands behind it.
function complete.candidates(left, right)
  local command = left:match "^%s*[:%%](%a*)$"
  if command then return commands(command) end
  left = left:gsub("^%s*[:%%]%a+%s", "", 1):gsub("^%s*%?+", "", 1)
  local tokens = lexer.tokens(left)
  local last = tokens[#tokens]
  if last and last.to == #left then
    if last.kind == "comment" then return {} end
    if last.kind == "string" and not last.closed then
      return {files = last.text:find "^[\"']" ~= nil}
    end
  end
  local word = left:match "[%a_][%w_]*$" or ""
  local before = left:sub(1, #left - #word)
  local list = collector(word)
  local separator = before:match "([.:])%s*$"
  if separator and not before:find "%.%.%s*$" then
    members(before:gsub("[.:]%s*$", "", 1), separator, list)
  elseif not before:find "%d$" then
    globals(list)
  end
  return finish(list, right)
end

return complete
