-- SPDX-License-Identifier: MIT
--
-- candidates.lua - which names can take the place of a word, and in which
-- order.
--
-- A name matches if it begins with the word. If none does, case is ignored,
-- and if still none does, the letters of the word in their order are enough:
-- "sfm" finds softmax. What fits comes first, then what was typed in this
-- session, then the rest, each by name.

local help = require "nacre.help"
local styled = require "nacre.styled_output"
local lookup = require "nacre.lookup"
local lua_functions = require "nacre.lua_functions"
local facts = require "nacre.tensor_facts"

local candidates = {}

local NOTES = 200 -- more than these have no notes: they are not read

local function firstline(text) return (text or ""):match "[^\n]*" end

-- A table as its class, if it is one or has one.
local function tablenote(t)
  local meta = debug.getmetatable(t)
  local name = rawget(t, "__index") ~= nil and rawget(t, "__name")
  if type(name) == "string" then return "class " .. name end
  name = type(meta) == "table" and rawget(meta, "__name")
  return type(name) == "string" and name or "table"
end

-- A note on a value. It must not run a user's __tostring.
local function valuenote(value)
  if facts.istensor(value) then return facts.kind_and_device(value) end
  local kind = type(value)
  if kind == "table" then return tablenote(value) end
  if kind == "userdata" then return kind end
  return firstline(styled.brief(value))
end

-- Was a function written in this session, or in a file of the user's?
local function is_written(f)
  local info = debug.getinfo(f, "S")
  return info.what ~= "C" and not info.source:find "^=nacre%."
end

local function noteof(name, value, method)
  local kind = type(value)
  local info = kind == "function" and
               (nacre._info(value) or lua_functions.info(value) or
                not is_written(value) and nacre._info(name)) or
               kind == "table" and nacre._info(value)
  if info then
    local text = help.signature(info, method):gsub("%s*%->.*$", "")
    text = text:gsub("^[%w_.]+[.:]", "") -- of what is not in nacre itself
    return ("%-28s  %s"):format(text:gsub("^[%w_]+", name, 1),
                                firstline(info.doc))
  elseif kind == "function" then
    local written = debug.getinfo(value, "S").what ~= "C"
    local params = written and lookup.parameters(value) or "(...)"
    if method then params = params:gsub("^%(self,?%s*", "(") end
    return name .. params
  elseif lookup.python(value) and lookup.is_callable(value) then
    return name .. "(...)"
  elseif value ~= nil then
    return ("%-28s  %s"):format(name, valuenote(value))
  end
end

-- The names in what was typed.
local function used_names()
  local log = require "nacre.session_log"
  return log.words(log.entries)
end

-- The letters of a word in their order, in either case, as a pattern.
local function subsequence(word)
  local parts = {}
  for c in word:gmatch "." do
    local low, high = c:lower(), c:upper()
    parts[#parts + 1] = c:find "%a" and "[" .. low .. high .. "]" or
                        c:find "[%w\x80-\xff]" and c or "%" .. c
  end
  return table.concat(parts, ".-")
end

-- Calls fill(add) and returns the names that begin with the word, or else those
-- that resemble it; then, by name, what they stand for and how they are put in.
-- add(name, value, how): the fields of how are text, which is put in if it is
-- not the name; bare: no parenthesis follows; note; fits; method, if the value
-- is one. Of a value that is no
-- function nothing is kept unless there may be a note on it.
local function matching(word, fill)
  local list, values, hows = {}, {}, {}
  local near, seen = {}, {}
  local length, n, hidden = #word, 0, word == ""
  local function keep(into, name, value, how)
    if seen[name] or hows[name] then return end
    if not how and n <= NOTES then seen[name] = true end
    n = n + 1
    into[#into + 1] = name
    if n <= NOTES or lookup.is_callable(value) then values[name] = value end
    hows[name] = how
  end
  fill(function(name, value, how)
    if name:sub(1, length) == word and not (hidden and name:byte() == 95) then
      keep(list, name, value, how)
    end
  end)
  if n > 0 or length == 0 then return list, values, hows end
  local pattern, low = subsequence(word), word:lower()
  local underscore = word:byte() == 95
  fill(function(name, value, how)
    if name:find(pattern) and (underscore or name:byte() ~= 95) then
      local begins = name:sub(1, length):lower() == low
      keep(begins and list or near, name, value, how)
    end
  end)
  return #list > 0 and list or length > 1 and near or {}, values, hows
end

local SORTED <const> = 2000
local SAMPLE <const> = 200

-- Sorts names. Of very many only the first ones, about SORTED, are in order:
-- nobody walks further, and sorting all would be felt.
local function sort_names(list)
  local n = #list
  if n <= 2 * SORTED then return table.sort(list) end
  local sample, head, tail = {}, {}, {}
  for i = 1, SAMPLE do sample[i] = list[i * n // SAMPLE] end
  table.sort(sample)
  local limit = sample[math.max(1, SAMPLE * SORTED // n)]
  for _, name in ipairs(list) do
    local into = name < limit and head or tail
    into[#into + 1] = name
  end
  table.sort(head)
  table.move(head, 1, #head, 1, list)
  table.move(tail, 1, #tail, #head + 1, list)
end

-- The names by rank and name. Of those that only resemble a word those that
-- begin with another letter than `letter` come last.
local function ranked(list, hows, letter)
  local names, groups = used_names(), {{}, {}, {}, {}}
  for _, name in ipairs(list) do
    local how = hows[name]
    local rank = how and how.fits and 1 or names[name] and 2 or 3
    if letter and name:sub(1, 1):lower() ~= letter then rank = 4 end
    local group = groups[rank]
    group[#group + 1] = name
  end
  local sorted = {}
  for _, group in ipairs(groups) do
    sort_names(group)
    table.move(group, 1, #group, #sorted + 1, sorted)
  end
  return sorted
end

-- The candidates for a word: a list of texts and of {text, note}. `right` is
-- the text behind the cursor: a function is followed by a parenthesis unless
-- one is there.
function candidates.of(word, fill, right)
  local list, values, hows = matching(word, fill)
  local resembles = list[1] and list[1]:sub(1, #word) ~= word
  list = ranked(list, hows, resembles and word:sub(1, 1):lower())
  local call, notes = right and right:sub(1, 1) ~= "(", #list <= NOTES
  for i, name in ipairs(list) do
    local how, value = hows[name], values[name]
    local open = call and lookup.is_callable(value) and "(" or ""
    local text = how and (how.text or how.bare and name) or name .. open
    local note = how and how.note or
                 notes and noteof(name, value, how and how.method)
    list[i] = note and {text, note} or text
  end
  return list
end

return candidates
