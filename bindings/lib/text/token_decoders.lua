-- SPDX-License-Identifier: MIT
-- token_decoders.lua - from the names of tokens to a text: a decoder takes a
-- list of names, {name, added = true} for an added token, and gives a list.
local all = ...
all.require "nacre.text_steps"
local text = all.text
local json = require "nacre.json_text"

local decoders = {}

local function decoder(d)
  if not decoders[d.type] then
    text.refuse(("the decoder %s is not supported"):format(tostring(d.type)))
  end
  return decoders[d.type](d)
end

function decoders.Sequence(d)
  local steps = {}
  for i, step in ipairs(d.decoders) do steps[i] = decoder(step) end
  return function(list)
    for _, step in ipairs(steps) do list = step(list) end
    return list
  end
end

-- The model has bytes for the characters of the file: text.model.
function decoders.ByteLevel()
  return function(list) return {table.concat(list)} end
end

function decoders.Replace(d)
  local source = d.pattern.String or d.pattern.Regex
  local pattern, why = text.pattern(source, d.pattern.String ~= nil)
  if not pattern then
    text.refuse(("the pattern %s of Replace cannot be used: %s"):format(source,
                  why))
  end
  return function(list)
    local out = {}
    for i, s in ipairs(list) do
      out[i] = text.replace(pattern, s, d.content)
    end
    return out
  end
end

function decoders.Fuse()
  return function(list) return {table.concat(list)} end
end

-- Runs of <0xE2> become bytes; each of a run that is not UTF-8 is U+FFFD.
function decoders.ByteFallback()
  return function(list)
    local out, run = {}, {}
    local function end_run()
      if not run[1] then return end
      local s = table.concat(run)
      out[#out + 1] = utf8.len(s) and s or ("\u{FFFD}"):rep(#run)
      run = {}
    end
    for _, s in ipairs(list) do
      local byte = s:match "^<0x(%x%x)>$"
      if byte then run[#run + 1] = string.char(tonumber(byte, 16))
      else
        end_run()
        out[#out + 1] = s
      end
    end
    end_run()
    return out
  end
end

-- Takes d.content away at most d.start times from the start, d.stop times from
-- the end of each.
function decoders.Strip(d)
  local n = #d.content
  return function(list)
    local out = {}
    for i, s in ipairs(list) do
      for _ = 1, d.start do
        if s:sub(1, n) == d.content then s = s:sub(n + 1) end
      end
      for _ = 1, d.stop do
        if s:sub(-n) == d.content then s = s:sub(1, -n - 1) end
      end
      out[i] = s
    end
    return out
  end
end

function decoders.Metaspace(d)
  local mark = assert(text.pattern(d.replacement, true))
  local never = d.prepend_scheme == "never" or d.add_prefix_space == false
  return function(list)
    local out = {}
    for i, s in ipairs(list) do
      s = text.replace(mark, s, " ")
      out[i] = i == 1 and not never and s:gsub("^ ", "") or s
    end
    return out
  end
end

-- A function from names to a text.
function text.decoder(d)
  local decode = d and decoder(d)
  return function(list)
    if not decode then return table.concat(list, " ") end
    return json.valid_text(table.concat(decode(list)))
  end
end
