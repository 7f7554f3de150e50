-- SPDX-License-Identifier: MIT
--
-- session_log.lua - the inputs of the session, as a list that only grows. It is
-- kept in parts, because the collector looks through the whole of a table that
-- has grown: with one table, a session would cost the square of its length.

local session_log = {}

local PART <const> = 512
local RECENT <const> = 1000  -- the inputs in which an explanation is looked for
local LONGEST <const> = 4096  -- bytes of an input that is read

function session_log.new()
  local parts, n, size = {}, 0, PART
  local log = {}
  function log.__index(_, i)
    if math.type(i) ~= "integer" or i < 1 or i > n then return nil end
    return parts[(i - 1) // PART + 1][(i - 1) % PART + 1]
  end
  function log.__newindex(_, i, entry)
    assert(i == n + 1, "an entry is added at the end")
    if size == PART then parts[#parts + 1], size = {}, 0 end
    n, size = i, size + 1
    parts[#parts][size] = entry
  end
  function log.__len() return n end
  return setmetatable({}, log)
end

-- The words of what was typed, as a set.
local words, read = {}, 0

function session_log.words(log)
  while read < #log do
    read = read + 1
    for word in log[read].text:sub(1, LONGEST):gmatch "[%a_][%w_]*" do
      words[word] = true
    end
  end
  return words
end

session_log.entries = session_log.new() -- the session's

-- An iterator over the texts of the last inputs, the latest first, and their
-- numbers. Long texts, which hold data, seem empty. The log of a script is
-- empty.
function session_log.recent()
  local log = session_log.entries
  local i = #log + 1
  local last = math.max(1, i - RECENT)
  return function()
    i = i - 1
    if i < last then return nil end
    local text = log[i].text
    return #text <= LONGEST and text or "", i
  end
end

return session_log
