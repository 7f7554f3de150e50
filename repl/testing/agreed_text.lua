-- SPDX-License-Identifier: MIT
--
-- agreed_text.lua - the printed text of a tensor whose values are the stored
-- ones stands for the expected text of it: rounding moves its digits, its
-- columns and its statistics, and says nothing that the values do not.

local files = require "nacre.files"
local match_line = require "nacre.match_line"

local agreed_text = {}

-- "float32[2x2]" and what follows the memory, without "all 0.5"
local function header(line)
  local kind, rest = line:match("^(%w+%[[%dx]+%]) [%w:]+  [%d%.]+ " ..
                                "[KMGT]?i?B(.*)$")
  if kind then return kind, (rest:gsub("  all %S+$", "")) end
end

local WORDS = {nan = true, ["-nan"] = true, inf = true, ["-inf"] = true,
               ["true"] = true, ["false"] = true, ["..."] = true}

local function isstatistics(line)
  return line:find "^min " or line:find "^true %d" or line:find "^!"
end

-- May a line be one of elements?
local function isrow(line)
  for word in line:gsub("^%[[^%]]*%]", ""):gmatch "%S+" do
    if not tonumber(word) and not WORDS[word] then return false end
  end
  return true
end

-- How many lines from line i on, a header, belong to a tensor.
local function count(lines, i)
  local last = i
  for k = i + 1, #lines do
    local text = match_line.note(lines[k])
    if isstatistics(text) then
      last = k
    elseif not isrow(text) or isstatistics(lines[last]) then
      break
    elseif text:find "%S" then
      last = k
    end
  end
  return last - i + 1
end

-- How many lines are expected for a tensor of n lines, if it is unclear where
-- they end: what follows may be numbers, too.
local function expected_count(expect, e, got, i, n)
  local wants = count(expect, e)
  return wants > n and count(got, i) > n and n or wants
end

-- Does the list have these lines from i on?
local function has(list, lines, i)
  for k, line in ipairs(lines) do
    if list[i + k - 1] ~= line then return false end
  end
  return true
end

-- The first place from `from` on where a tensor like that is expected.
local function like(expect, line, from)
  local kind, notes = header(line)
  for i = from, #expect do
    local other, its = header((match_line.note(expect[i])))
    if kind and other == kind and its == notes then return i end
  end
end

-- Replaces lines i..j of a list.
local function put(list, i, j, lines)
  local rest = table.move(list, j + 1, #list, 1, {})
  for k = #list, i, -1 do list[k] = nil end
  table.move(lines, 1, #lines, i, list)
  table.move(rest, 1, #rest, #list + 1, list)
end

-- A tensor of several elements: the lines of `got` from line i on become those
-- that are expected. Returns the next lines of both.
local function block(expect, got, lines, i, from)
  local e = like(expect, lines[1], from)
  if not e then return i + #lines, from end
  local last = e + expected_count(expect, e, got, i, #lines) - 1
  local new = table.move(expect, e, last, 1, {})
  new[1] = lines[1]:gsub("  all %S+$", "") ..
           (match_line.note(expect[e]):match "  all %S+$" or "")
  for k = 2, #new do new[k] = match_line.note(new[k]) end
  put(got, i, i + #lines - 1, new)
  return i + #new, last + 1
end

-- A tensor of one element, in a line: the number becomes the expected one.
local function scalar(expect, got, text, i, from)
  local kind = text:match "%S+  (%w+%[%]) "
  local at, to = got[i]:find(text, 1, true)
  for e = from, kind and #expect or 0 do
    local number = expect[e]:match("(%S+)  " .. kind:gsub("%p", "%%%0") .. " ",
                                   math.min(at, #expect[e]))
    if number then
      got[i] = got[i]:sub(1, at - 1) .. text:gsub("^%S+", number) ..
               got[i]:sub(to + 1)
      return i, e
    end
  end
  return i, from
end

-- Changes the printed lines; texts: of the tensors that agree, in order.
function agreed_text.apply(expect, got, texts)
  local i, from = 1, 1
  for _, text in ipairs(texts) do
    local lines = files.lines(text)
    for k = i, #got do
      if #lines > 1 or header(text) then
        if has(got, lines, k) then
          i, from = block(expect, got, lines, k, from)
          break
        end
      elseif got[k]:find(text, 1, true) then
        i, from = scalar(expect, got, text, k, from)
        break
      end
    end
  end
  return got
end

return agreed_text
