-- SPDX-License-Identifier: MIT
--
-- input_history.lua - the inputs by number: :history lists them, :again runs
-- one again, In[17] is the text of one.

local host = require "nacre.host"

local input_history = {}

local LISTED = 20             -- inputs that :history shows by itself

-- The number of an input that was just submitted; nil if the history does not
-- keep it.
function input_history.number(text)
  local n = host.history_size()
  return host.history_entry(n) == text and n or nil
end

--
-- :history
--
local DAY <const> = 24 * 60 * 60

-- The day of a time, "2026-11-25".
local function day(time) return os.date("%Y-%m-%d", time) end

-- The days of the inputs.
function input_history.days()
  local list, last = {}, nil
  for i = 1, host.history_size() do
    local time = select(2, host.history_entry(i))
    local now = time and day(time)
    if now and now ~= last then
      list[#list + 1] = now
      last = now
    end
  end
  return list
end

-- What a day of the user's words begins with: "2026-11-25", or "2026-11" for
-- the month; nil if the word is not a date.
local function date(word)
  local now = os.time()
  if word == "today" then return day(now) end
  if word == "yesterday" then return day(now - DAY) end
  return word:match "^%d%d%d%d%-%d%d%-%d%d$" or word:match "^%d%d%d%d%-%d%d$"
end

-- "[N] [DATE] [TEXT or /TEXT/]" as {n =, date =, text =}. A list without N has
-- all that is found.
local function wanted(words)
  local part = words:match "/(.-)/?$"
  local o = {text = part}
  for word in (part and words:match "^[^/]*" or words):gmatch "%S+" do
    local n = math.tointeger(tonumber(word))
    if n and not o.n then
      o.n = n
    elseif date(word) and not o.date then
      o.date = date(word)
    else
      o.text = o.text and o.text .. " " .. word or word
    end
  end
  return o
end

local function is_wanted(o, text, time)
  return (not o.text or text:find(o.text, 1, true) ~= nil) and
         not (o.searching and text:find "^[:%%]his") and
         (not o.date or time ~= nil and
          day(time):sub(1, #o.date) == o.date)
end

-- The entries that are wanted, oldest first: {number =, text =, time =}.
local function entries(o)
  local list = {}
  for i = host.history_size(), 1, -1 do
    local text, time = host.history_entry(i)
    if #list == o.n then break end
    if is_wanted(o, text, time) then
      list[#list + 1] = {number = i, text = text, time = time}
    end
  end
  for i = 1, #list // 2 do
    list[i], list[#list + 1 - i] = list[#list + 1 - i], list[i]
  end
  return list
end

-- The entries as lines, with the day where it is not that of the line before.
local function lines_of(list)
  local lines, last = {}, day(os.time())
  local width = host.columns()
  for _, entry in ipairs(list) do
    local now = entry.time and day(entry.time) or last
    if now ~= last then
      lines[#lines + 1] = now
      last = now
    end
    local time = entry.time and os.date("%H:%M", entry.time) or ""
    local first = entry.text:match "[^\n]*"
    local more = #first < #entry.text and " ..." or ""
    first = require "nacre.lua_values".escape_controls(first)
    local head = ("%5d  %5s  "):format(entry.number, time)
    lines[#lines + 1] = head ..
      require "nacre.wrap_lines".cut(first, width - #head - #more) .. more
  end
  return lines
end

-- :history [N] [DATE] [TEXT]
function input_history.run(shell, words)
  local o = wanted(words)
  if o.n and o.n < 1 then return shell.fail ":history takes N of 1 or more" end
  if not (o.n or o.date or o.text) then o.n = LISTED end
  o.searching = o.text ~= nil -- what was searched before is not wanted
  local list = entries(o)
  if #list == 0 then return shell.note "no such input" end
  io.stdout:write(table.concat(lines_of(list), "\n"), "\n")
end

-- shell.history([N or part]): the texts, the oldest first
function input_history.call(which)
  local n = math.tointeger(which)
  local list = entries {n = n, text = not n and which or nil}
  for i, entry in ipairs(list) do list[i] = entry.text end
  return list
end

--
-- :again
--
-- The texts of the inputs from one number to another; nil and why not.
local function texts(first, last, before)
  local list = {}
  if first > last then return nil, ("%d is after %d"):format(first, last) end
  for i = first, last do
    local text = i < before and host.history_entry(i)
    if not text then return nil, ("there is no input %d before this"):format(i)
    end
    local again, rest = input_history.words(text)
    local more, why = {text}, nil
    if again then more, why = input_history.inputs(rest, i) end
    if not more then return nil, why end
    table.move(more, 1, #more, #list + 1, list)
  end
  return list
end

-- Is a line the command :again? Then its arguments, too.
function input_history.words(text)
  if not text:find "^%s*[:%%]%l" then return false end
  local command, rest = require "nacre.commands".of(text)
  return command ~= nil and command.name == "again", rest
end

-- What ":again N", ":again N-M" or ":again" runs: a list of texts; nil and why
-- there is none. `before` is the number of that line itself.
function input_history.inputs(words, before)
  local first, last = words:match "^(%d+)%s*%-?%s*(%d*)$"
  if words == "" then first, last = before - 1, before - 1 end
  first, last = math.tointeger(first), math.tointeger(last) or first
  if not first then
    return nil, ":again takes the number of an input, or N-M"
  end
  return texts(first, math.tointeger(last), before)
end

-- :again where it is not a line of the prompt itself.
function input_history.again(shell, words)
  local list, why = input_history.inputs(words, host.history_size() + 1)
  if not list then return shell.fail(why) end
  for _, text in ipairs(list) do shell.dispatch(text) end
end

-- shell.again([first[, last]])
function input_history.call_again(first, last)
  local words = first and ("%d-%d"):format(first, last or first) or ""
  local list, why = input_history.inputs(words, host.history_size())
  if not list then error(why, 2) end
  for _, text in ipairs(list) do require "nacre.shell".dispatch(text) end
end

--
-- In
--
local In = {}

function In.__index(_, n)
  return math.tointeger(n) and (host.history_entry(math.tointeger(n))) or nil
end

function In.__len() return host.history_size() end

function In.__newindex() error("the inputs of In cannot be changed", 2) end

function In.__tostring()
  return ("%d inputs: In[N] is one, :history lists them"):format(
    host.history_size())
end

function In.__pairs(t)
  return function(_, i)
    local text = host.history_entry(i + 1)
    if text then return i + 1, text end
  end, t, 0
end

input_history.In = setmetatable({}, In)

return input_history
