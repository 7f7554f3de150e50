-- SPDX-License-Identifier: MIT
--
-- command_arguments.lua - the candidates for an argument or an option of a
-- command, by its signature.

local candidates = require "nacre.candidates"
local commands = require "nacre.commands"
local file_names = require "nacre.file_names"
local kinds = require "nacre.kinds"
local options = require "nacre.command_options"

local command_arguments = {}

-- The names of commands, each with a blank.
function command_arguments.names(word, colon)
  return candidates.of(word, function(add)
    for _, command in ipairs(commands.list) do
      local form = require "nacre.command_help".form(command)
      add(command.name, nil, {
        text = command.name .. (colon and " " or ""),
        note = ("%-24s  %s"):format(form, command.doc)})
    end
  end)
end

-- The candidates for a word that a parameter takes; `before' are the words
-- before it. `of' is how long the word is: a name in quotes may have blanks.
local function of_word(p, word, before, right)
  local list = candidates.of(word, function(add)
    kinds.fill(p, add, {param = p, word = word, before = before})
  end)
  local kind = kinds.file(p)
  list.of = #word
  if not kind then return list end
  local found = file_names.of(word, {style = "word", right = right,
                                     folders = kind == "folders"})
  found.of = #word
  if #list == 0 then return found end
  for _, file in ipairs(found.start == 0 and found or {}) do
    if file[1]:sub(1, #word) == word then list[#list + 1] = file end
  end
  return list
end

-- The options that are not given yet.
local function option_names(params, word, given)
  return candidates.of(word, function(add)
    for _, p in ipairs(params) do
      local name = options.word(p)
      if p.byname and not (" " .. given):find(" " .. name .. " ", 1, true) then
        add(name, nil, {text = name .. " ", note = ("%-22s  %s"):format(
          options.form(p, true), p.doc or "")})
      end
    end
  end)
end

local function has_code(params)
  for _, p in ipairs(params) do
    if kinds.iscode(p) and not p.byname then return true end
  end
end

-- May an option stand behind `before`? Not where code has begun.
local function option_fits(command, params, before)
  if command.trailing then return before:find "%S%s$" ~= nil end
  if not has_code(params) then return true end
  local o, rest = options.leading(params, before)
  if not o then return false end
  local behind = command.between and rest:match "^%S+%s+(.*)$"
  if behind then o, rest = options.leading(params, behind) end
  return o ~= nil and rest == ""
end

-- The argument that is being written: its parameter, the text of it, and the
-- words before it; nil if there are too many.
local function position(params, tail)
  local before, i = {}, 1
  while params[i] and not params[i].byname do
    local p, following = params[i], params[i + 1]
    if kinds.iscode(p) then return p, tail, before end
    local word, more = options.value(tail)
    local complete = word and (more ~= "" or tail:find "%s$")
    local code = following and kinds.iscode(following)
    if p.optional and code and not tail:find "^[%d.]*%f[%s\0]" then
      i = i + 1               -- left out
    elseif not complete then
      return p, tail, before
    else
      before[#before + 1], tail = word, more
      if not p.name:find "%.%.%.$" then i = i + 1 end
    end
  end
end

-- The value of an option: candidates, or nil and the code that is written.
local function option_value(p, word, rest, right)
  if kinds.iscode(p) then
    return nil, rest:match ".*%s[\"'](.*)$" or word
  end
  return of_word(p, word, {}, right)
end

-- The candidates for what `left' ends in, the arguments of a command, or nil,
-- the code of Lua that stands there, files if these may be there, too, and
-- whether it is an expression; nil alone if it is no such text.
function command_arguments.of(left, right)
  local name, rest = left:match "^%s*[:%%](%a+)!?%s+(.*)$"
  local command, given = commands.find(name or "")
  if not name or not command then return nil end
  if given ~= "" then rest = given .. " " .. rest end
  if command.equals then rest = rest:gsub("^(%a+)%s*=%s*", "%1 ") end
  local params = commands.params(command)
  local word = rest:match "%S*$"
  local before = rest:sub(1, #rest - #word)
  local last = before:match "(%-%-?[%a-]+)%s+$"
  local p = last and options.find(params, last)
  local quoted = rest:match "^.*%s(%-%-?[%a-]+)%s+[\"'][^\"']*$" or
                 rest:match "^(%-%-?[%a-]+)%s+[\"'][^\"']*$"
  p = p or quoted and options.find(params, quoted)
  if p and not options.isflag(p) then
    return option_value(p, word, rest, right)
  end
  if word:find "^%-" and option_fits(command, params, before) then
    return option_names(params, word, before)
  end
  local o, tail
  if command.trailing then
    tail = rest
  elseif has_code(params) then
    o, tail = options.leading(params, rest)
    if not o then return {} end
  else
    tail = rest:gsub("%-%-[%a-]+%s+", "")
  end
  local argument, text, words = position(params, tail)
  if not argument then return {} end
  if not kinds.iscode(argument) then
    return of_word(argument, text, words, right)
  end
  if command.between then
    local ok, code = options.leading(params, text)
    text = ok and code or text
  end
  if kinds.file(argument) and text:find "^%S+$" then
    return nil, text, of_word(argument, text, words, right)
  end
  return nil, text, nil, command.needs == "an expression"
end

return command_arguments
