-- SPDX-License-Identifier: MIT
--
-- notebook_streams.lua - collects what the session and its children print, so
-- that many small pieces become few messages, soon.

local kernel_host = require "nacre.kernel_host"
local host = require "nacre.host"

local streams = {}

local PAUSE = 0.03            -- seconds that a piece waits for others
local MOST = 1 << 18          -- bytes that are not kept back for so long
local PIPE = 1 << 20          -- the most bytes that a pipe holds

local names = {}              -- by file descriptor: "stdout", "stderr"
local halves = {}             -- the start of a character whose rest is to come
local pieces, bytes = {}, 0   -- {name =, text =}: what was read
local since                   -- when the first of them was read

function streams.start(out, err)
  names = {[out] = "stdout", [err] = "stderr"}
end

-- The descriptors that have not come to their end.
function streams.open()
  local list = {}
  for fd in pairs(names) do list[#list + 1] = fd end
  table.sort(list)
  return list
end

-- Splits off a character of several bytes that is not complete.
local function cut(text)
  local last = text:sub(-3)
  local half = last:match "[\xC2-\xDF]$" or
               last:match "[\xE0-\xEF][\x80-\xBF]?$" or
               last:match "[\xF0-\xF4][\x80-\xBF]?[\x80-\xBF]?$"
  if not half then return text, nil end
  return text:sub(1, -#half - 1), half
end

local function add(name, text)
  if text == "" then return end
  if bytes == 0 then since = host.clock() end
  bytes = bytes + #text
  local piece = pieces[#pieces]
  if piece and piece.name == name then
    piece[#piece + 1] = text
  else
    pieces[#pieces + 1] = {name = name, text}
  end
end

-- Reads what is there; at the end of the stream false.
function streams.read(fd)
  local name = names[fd]
  local text = kernel_host.read(fd)
  if text then
    text, halves[name] = cut((halves[name] or "") .. text)
    add(name, text)
  elseif text == false then
    names[fd] = nil
  end
  return text
end

-- Reads all that was printed until now: no more than a pipe holds, for somebody
-- may go on printing.
function streams.drain()
  for _, fd in ipairs(streams.open()) do
    local most = bytes + PIPE
    while streams.read(fd) and bytes < most do end
  end
end

-- Is it time for a message?
function streams.due()
  return bytes > MOST or bytes > 0 and host.clock() - since >= PAUSE
end

-- The milliseconds until then, at most `most`.
function streams.patience(most)
  if bytes == 0 then return most end
  local left = math.ceil(1000 * (since + PAUSE - host.clock()))
  return math.max(0, math.min(most, left))
end

-- The contents of the messages for what was read, which is forgotten.
function streams.take()
  local list = {}
  for i, piece in ipairs(pieces) do
    list[i] = {name = piece.name, text = table.concat(piece)}
  end
  pieces, bytes = {}, 0
  return list
end

return streams
