-- SPDX-License-Identifier: MIT
--
-- value_readers.lua - functions that convert the text of an option or a setting
-- to its value, or give nil if it is invalid.

local readers = {}

function readers.integer(low, high)
  return function(s)
    local n = math.tointeger(tonumber(s))
    return n and n >= (low or n) and n <= (high or n) and n or nil
  end
end

-- A number of 0 or more.
function readers.unsigned(s)
  local n = tonumber(s)
  return n and n >= 0 and n or nil
end

function readers.text(s) return s ~= "" and s or nil end

function readers.one_of(...)
  local words = {}
  for _, w in ipairs {...} do words[w] = w end
  return function(s) return words[s] end
end

-- Devices separated by commas or blanks; `all' is a word that may stand there.
function readers.devices(all)
  return function(s)
    local list = {}
    for word in s:gmatch "[^%s,]+" do
      if word ~= "cpu" and word ~= all and not word:find "^cuda:?%d*$" then
        return nil
      end
      list[#list + 1] = word
    end
    return #list > 0 and list or nil
  end
end

return readers
