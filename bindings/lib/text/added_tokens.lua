-- SPDX-License-Identifier: MIT
-- added_tokens.lua - the tokens beside the vocabulary, such as <|endoftext|>,
-- which are found in a text before anything else is done to it.
local all = ...
all.require "nacre.text_steps"
local text = all.text

local white_before, white_after

-- The finder of these tokens: their list by first byte, the longest first, and
-- a pattern of Lua for the first bytes.
local function new_finder(tokens)
  local by_byte, bytes = {}, {}
  for _, token in ipairs(tokens) do
    local b = token.content:byte()
    if not by_byte[b] then
      by_byte[b] = {}
      bytes[#bytes + 1] = ("%%%c"):format(b)
    end
    table.insert(by_byte[b], token)
  end
  for _, list in pairs(by_byte) do
    table.sort(list, function(x, y) return #x.content > #y.content end)
  end
  for i, byte in ipairs(bytes) do
    -- only marks of ASCII need the escape, and letters must not have it
    if not byte:find "^%%%p$" then bytes[i] = byte:sub(2) end
  end
  return by_byte, bytes[1] and "[" .. table.concat(bytes) .. "]"
end

local function stands_alone(s, from, to)
  local before = s:sub(1, from - 1):match("[%z\1-\127\194-\244][\128-\191]*$")
  return not (before and text.is_word(before) or
              to < #s and text.is_word(s:sub(to + 1)))
end

-- The token that begins at `at' of s, or nil.
local function token_at(list, s, at)
  for _, token in ipairs(list) do
    local n = #token.content
    if s:sub(at, at + n - 1) == token.content and
       (not token.single_word or stands_alone(s, at, at + n - 1)) then
      return token
    end
  end
end

-- A function that divides a text into a list of texts and tokens.
function text.token_finder(tokens)
  local by_byte, first = new_finder(tokens)
  if not first then return function(s) return {s} end end
  white_before = white_before or assert(text.pattern "\\s+$")
  white_after = white_after or assert(text.pattern "^\\s+")
  return function(s)
    local parts, from, at = {}, 1, 1
    while true do
      at = s:find(first, at)
      if not at then break end
      local token = token_at(by_byte[s:byte(at)], s, at)
      if not token then at = at + 1 goto continue end
      local before, after = s:sub(from, at - 1), at + #token.content
      if token.lstrip then before = text.replace(white_before, before, "") end
      if before ~= "" then parts[#parts + 1] = before end
      parts[#parts + 1] = token
      if token.rstrip then
        after = #s - #text.replace(white_after, s:sub(after), "") + 1
      end
      from, at = after, after
      ::continue::
    end
    if from <= #s then parts[#parts + 1] = s:sub(from) end
    return parts
  end
end
