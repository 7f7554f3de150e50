-- SPDX-License-Identifier: MIT
--
-- json.lua - JSON as the program writes and reads it: inf and nan, which JSON
-- lacks, become null, so that a report can always be written; null is nil.

local text = require "nacre.json_text"

local json = {}

-- On several lines, with an indent.
function json.encode(v)
  return text.encode(v, {lenient = true, step = "  "}) .. "\n"
end

-- The same on one line, without its end.
function json.line(v) return text.encode(v, {lenient = true}) end

-- A field that is to be null rather than missing.
json.null = text.null

-- An object without fields, which {} would not be.
json.object = text.object {}

-- Returns the value, or nil and why the text is not JSON.
function json.decode(source)
  local ok, value = pcall(text.decode, source, {big = "float"})
  if ok then return value end
  return nil, type(value) == "table" and value.message or tostring(value)
end

-- Reads a file; nil and why if that fails.
function json.load(path)
  local source, wrong = require "nacre.files".read(path)
  if not source then return nil, wrong end
  local value, why = json.decode(source)
  if value == nil then return nil, ("%s: %s"):format(path, why or "null") end
  return value
end

-- Writes a file atomically: a new file is written and replaces the old one.
function json.save(path, value)
  return require "nacre.host".write_file(path, json.encode(value))
end

return json
