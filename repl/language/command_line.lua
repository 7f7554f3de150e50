-- SPDX-License-Identifier: MIT
--
-- command_line.lua - reads the words of a command line: those of nacre --test
-- and of the tools for files.
--
-- Its options are rows by name: {field, read, what, repeated}. read converts
-- the text of the value, or gives nil if it is not `what', "a number"; true is
-- a flag. What is `repeated' becomes a list. With set(o, value) a value may
-- follow "=", else it is nil; set gives what is wrong with it.

local command_line = {}

-- "--name", "value" of "--name=value", "-j8" and plain words
local function parts(word)
  if word:find "^%-%-" then
    local name, value = word:match "^(%-%-[%w%-]+)=(.*)$"
    return name or word, value
  end
  if word:find "^%-%a." then return word:sub(1, 2), word:sub(3) end
  return word, nil
end

-- Puts the value of an option into o; what is wrong with it.
local function take_value(o, row, name, text)
  local field, read, what, repeated = table.unpack(row)
  if not text then return name .. " needs a value" end
  local v = read(text)
  if v == nil then return ("%s needs %s, not '%s'"):format(name, what, text) end
  if repeated then
    o[field] = o[field] or {}
    table.insert(o[field], v)
  else
    o[field] = v
  end
end

-- Takes the option at words[i]; the next i, and what is wrong.
local function take(o, rows, words, i)
  local name, value = parts(words[i])
  local row = rows[name]
  if not row then
    return i, ("unknown option %s%s"):format(name,
      require "nacre.suggestion".text(name, rows, "%s"))
  elseif row.set then
    return i + 1, row.set(o, value)
  elseif row[2] == true then
    o[row[1]] = true
    return i + 1, value and name .. " takes no value"
  end
  if not value then i = i + 1 end
  return i + 1, take_value(o, row, name, value or words[i])
end

-- Reads words into o; the words that are no options, or nil and what is wrong.
function command_line.read(words, rows, o)
  local rest, i, only = {}, 1, false
  while words[i] do
    local wrong
    if words[i] == "--" and not only then
      only, i = true, i + 1
    elseif only or not words[i]:find "^%-." then
      rest[#rest + 1], i = words[i], i + 1
    else
      i, wrong = take(o, rows, words, i)
    end
    if wrong then return nil, wrong end
  end
  return rest
end

return command_line
