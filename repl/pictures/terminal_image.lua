-- SPDX-License-Identifier: MIT
--
-- terminal_image.lua - shows an image in the best way the terminal supports:
-- the protocol of kitty or iTerm2, sixels, half blocks, characters.

local host = require "nacre.host"
local image = require "nacre.tensor_image"
local character_image = require "nacre.character_image"

local nacre = package.loaded.nacre or _G.nacre

local terminal_image = {}

terminal_image.ways = {"kitty", "iterm", "sixel", "blocks", "ascii", "off"}

--
-- Which way
--
local function variable(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

local PROGRAMS = {["iTerm.app"] = "iterm", WezTerm = "iterm",
                  vscode = "iterm", ghostty = "kitty"}

-- The way that the environment indicates, or nil.
local function environment()
  local term = variable "TERM" or ""
  if variable "TMUX" or variable "STY" or term:find "^screen" or
     term:find "^tmux" then
    return "blocks" -- a multiplexer would not hand pixels on
  end
  if variable "KITTY_WINDOW_ID" or term == "xterm-kitty" or
     term == "xterm-ghostty" then
    return "kitty"
  end
  return PROGRAMS[variable "TERM_PROGRAM" or ""]
end

-- Asks the terminal whether it knows kitty's protocol, then what it is, which
-- every terminal answers.
local function answers()
  local question = "\27_Gi=1,s=1,v=1,a=q,t=d,f=24;AAAA\27\\\27[c"
  local reply = host.query_terminal(question, 100)
  if not reply then return nil end
  if reply:find("\27_Gi=1;OK", 1, true) then return "kitty" end
  local attributes = reply:match "\27%[%?([%d;]*)c"
  if attributes and (";" .. attributes .. ";"):find(";4;", 1, true) then
    return "sixel"
  end
  return "blocks"
end

local detected -- asked once

-- The way to show images; `wanted` is the setting, or nil to detect it. No
-- escapes are sent to what is not a terminal or wants none.
function terminal_image.way(wanted)
  if not host.is_terminal "stdout" or not host.has_color "stdout" then
    return wanted == "off" and "off" or "ascii"
  end
  if wanted and wanted ~= "auto" then return wanted end
  detected = detected or environment() or
          host.is_terminal "stdin" and answers() or nil
  if detected and detected ~= "blocks" then return detected end
  return host.has_utf8() and "blocks" or "ascii"
end

--
-- Base64
--
local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" ..
               "abcdefghijklmnopqrstuvwxyz0123456789+/"

local digit = {}
for i = 0, 63 do digit[i] = DIGITS:sub(i + 1, i + 1) end

function terminal_image.base64(text)
  local parts = {}
  for i = 1, #text - 2, 3 do
    local a, b, c = text:byte(i, i + 2)
    local n = a << 16 | b << 8 | c
    parts[#parts + 1] = digit[n >> 18] .. digit[n >> 12 & 63] ..
                        digit[n >> 6 & 63] .. digit[n & 63]
  end
  local rest = #text % 3
  if rest == 1 then
    local a = text:byte(#text)
    parts[#parts + 1] = digit[a >> 2] .. digit[a << 4 & 63] .. "=="
  elseif rest == 2 then
    local a, b = text:byte(#text - 1, #text)
    parts[#parts + 1] = digit[a >> 2] .. digit[a << 4 & 63 | b >> 4] ..
                        digit[b << 2 & 63] .. "="
  end
  return table.concat(parts)
end

-- The size in characters for h x w pixels, a character being twice as tall as
-- wide: small images are enlarged, large ones reduced.
local function extent(h, w, o, least)
  local columns = math.max(1, math.min((o.width or 80) - 2,
                                       math.max(w // 8, math.min(w, least))))
  local lines = math.max(1, math.floor(columns * h / w / 2 + 0.5))
  if lines > 24 then
    lines = 24
    columns = math.max(1, math.floor(48 * w / h + 0.5))
  end
  return math.min(columns, (o.width or 80) - 2), lines
end

-- In pieces of 4096 digits, as the protocol has it; q=2: no answer.
function terminal_image.kitty(data, columns, lines)
  local text, parts = terminal_image.base64(data), {}
  for i = 1, #text, 4096 do
    local head = i == 1 and
      ("f=100,a=T,q=2,c=%d,r=%d,"):format(columns, lines) or ""
    parts[#parts + 1] = ("\27_G%sm=%d;%s\27\\"):format(head,
      i + 4096 <= #text and 1 or 0, text:sub(i, i + 4095))
  end
  return table.concat(parts)
end

function terminal_image.iterm(data, columns, lines)
  return ("\27]1337;File=inline=1;size=%d;width=%d;height=%d:%s\7")
         :format(#data, columns, lines, terminal_image.base64(data))
end

local function blocks(img, o)
  local h, w = img:size(2), img:size(3)
  local columns = math.min((o.width or 80) - 2, w * math.max(1, 32 // w))
  local rows = math.max(1, math.floor(columns * h / w + 0.5))
  if rows > 48 then
    columns, rows = math.max(1, math.floor(48 * w / h + 0.5)), 48
    columns = math.min(columns, (o.width or 80) - 2)
  end
  local pixel = image.pixels(img, rows, columns)
  local function rgb(x, y) return character_image.rgb(pixel(x, y)) end
  return character_image.blocks(rgb, columns, rows, character_image.exact())
end

local function ascii(img, o)
  local h, w = img:size(2), img:size(3)
  local columns, lines = extent(h, w * (w <= 30 and 2 or 1), o, 64)
  if w <= 30 then lines = math.min(24, math.max(1, columns * h // w // 2)) end
  local pixel = image.pixels(img, lines, columns)
  return character_image.text(function(x, y)
    local r, g, b = pixel(x, y)
    return (0.299 * r + 0.587 * g + 0.114 * b) / 255
  end, columns, lines)
end

-- The text that shows an image in the given way; o.width is the terminal's.
function terminal_image.draw(img, way, o)
  local h, w = img:size(2), img:size(3)
  if way == "blocks" then return table.concat(blocks(img, o), "\n") end
  if way == "ascii" then return table.concat(ascii(img, o), "\n") end
  local columns, lines = extent(h, w, o, 32)
  if way == "sixel" then
    local down, across = lines * 16, columns * 8
    return require "nacre.sixel".encode(image.pixels(img, down, across),
                                        across, down)
  end
  return terminal_image[way](nacre.encode_png(img), columns, lines)
end

return terminal_image
