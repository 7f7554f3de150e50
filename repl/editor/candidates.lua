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
local LONGEST = 4096 -- bytes of a block whose names count as typed

local function firstline(text) return (text or ""):match "[^\n]*" end

-- A note on a value. It must not run a user's __tostring.
local function valuenote(value)
  if facts.istensor(value) then return facts.kind_and_device(value) end
  local kind = type(value)
  if kind == "table" or kind == "userdata" then return kind end
  return firstline(styled.brief(value))
end

local function noteof(name, value, method)
  local info = type(value) == "function" and
               (nacre._info(value) or lua_functions.info(value) or
                nacre._info(name))
  if info then
    local text = help.signature(info, method):gsub("%s*%->.*$", "")
    text = text:gsub("^[%w_.]+[.:]", "") -- of what is not in nacre itself
    return ("%-28s  %s"):format(text:gsub("^[%w_]+", name, 1),
                                firstline(info.doc))
  elseif type(value) == "function" then
    local written = debug.getinfo(value, "S").what ~= "C"
    return name .. (written and lookup.parameters(value) or "(...)")
  elseif value ~= nil then
    return ("%-28s  %s"):format(name, valuenote(value))
  end
end

-- The names in what was typed, kept up with the session's log.
local used, read = {}, 0

local function used_names()
  local log = require "nacre.shell".log
  if read > #log then used, read = {}, 0 end
  while read < #log do
    read = read + 1
    for name in log[read].text:sub(1, LONGEST):gmatch "[%a_][%w_]*" do
      used[name] = true
    end
  end
  return used
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

-- Calls fill(add) and returns the items that begin with the word, or else
-- those that resemble it. add(name, value, how): the fields of how are text,
-- which is put in if it is not the name; note; fits; method, if the value is
-- one.
local function matching(word, fill)
  local list, near, prefixed, seen = {}, {}, {}, {}
  local length, hidden = #word, word == ""
  fill(function(name, value, how)
    if name:sub(1, length) ~= word or hidden and name:byte() == 95 or
       seen[name] then return end
    seen[name] = true
    list[#list + 1] = {name = name, value = value, how = how}
  end)
  if #list > 0 or length == 0 then return list end
  local pattern, low = subsequence(word), word:lower()
  local underscore = word:byte() == 95
  fill(function(name, value, how)
    if not name:find(pattern) or not underscore and name:byte() == 95 or
       seen[name] then return end
    seen[name] = true
    local begins = name:sub(1, length):lower() == low
    local into = begins and prefixed or near
    into[#into + 1] = {name = name, value = value, how = how}
  end)
  return #prefixed > 0 and prefixed or length > 1 and near or {}
end

-- Sorts items by rank and name.
local function sort(list)
  local names, groups, of = used_names(), {{}, {}, {}}, {}
  for _, item in ipairs(list) do
    local rank = item.how and item.how.fits and 1 or
                 names[item.name] and 2 or 3
    local group = groups[rank]
    group[#group + 1] = item.name
    of[item.name] = item
  end
  local n = 0
  for _, group in ipairs(groups) do
    table.sort(group)
    for _, name in ipairs(group) do
      n = n + 1
      list[n] = of[name]
    end
  end
end

-- The candidates for a word: a list of texts and of {text, note}. `right` is
-- the text behind the cursor: a function is followed by a parenthesis unless
-- one is there.
function candidates.of(word, fill, right)
  local list = matching(word, fill)
  sort(list)
  local call, notes = right and right:sub(1, 1) ~= "(", #list <= NOTES
  for i, item in ipairs(list) do
    local how = item.how
    local open = call and type(item.value) == "function" and "(" or ""
    local text = how and how.text or item.name .. open
    local note = how and how.note or
                 notes and noteof(item.name, item.value, how and how.method)
    list[i] = note and {text, note} or text
  end
  return list
end

return candidates
