-- SPDX-License-Identifier: MIT
--
-- file_conversion.lua - nacre --convert: reads a file and writes what it holds
-- in another format.

local files = require "nacre.files"
local facts = require "nacre.tensor_facts"
local file_formats = require "nacre.file_formats"
local tensor_file = require "nacre.tensor_file"
local units = require "nacre.units"

local nacre = package.loaded.nacre

local conversion = {}

-- Does a file with this name hold one tensor? One without an extension does.
local function holds_one(path)
  local format = file_formats.of(path, false)
  return not path:find "%.[^./]+$" or format ~= nil and format.one
end

local function cast(v, dtype)
  if facts.istensor(v) then return v:to(dtype) end
  if type(v) ~= "table" then return v end
  local copy = {}
  for key, element in next, v do copy[key] = cast(element, dtype) end
  return copy
end

-- The one tensor of v, which may be a table: that with this name, or the only
-- one.
local function one_of(v, name, path)
  if facts.istensor(v) then return v end
  if name then
    local t = v[name]
    if facts.istensor(t) then return t end
    error(("%s has no tensor '%s'"):format(path, name), 0)
  end
  local key = next(v)
  if key ~= nil and next(v, key) == nil and facts.istensor(v[key]) then
    return v[key]
  end
  error("such a file holds one tensor: --name NAME chooses it", 0)
end

-- The texts by name that a file says of itself; of an HDF5 file those of its
-- root. Nil if there are none, as of column names.
local function texts(about)
  local found
  for name, text in pairs(about["/"] or about) do
    if type(name) == "string" and type(text) == "string" then
      found = found or {}
      found[name] = text
    end
  end
  return found
end

-- Writes v; `about` is the metadata of the old file or its column names.
local function write(path, v, about)
  local format, options = file_formats.of(path, false), {}
  if format and type(about) == "table" then
    if format.text and format.name ~= "txt" then
      options.header = about[1] and about
    elseif format.metadata then options.metadata = texts(about)
    end
  end
  nacre.save(path, v, options)
end

function conversion.run(paths, o)
  local from, to = paths[1], paths[2]
  if to == "-" then
    error("the result is a file whose name says its format, not '-'", 0)
  end
  local old <close> = io.open(to, "rb")
  if old and not o.force then
    error(to .. " is there already; --force replaces it", 0)
  end
  local v, about = tensor_file.read(from)
  if holds_one(to) then
    v = one_of(v, o.name, from)
  elseif facts.istensor(v) then
    v = {[o.name or tensor_file.stem(from)] = v}
  elseif o.name then
    v = {[o.name] = one_of(v, o.name, from)}
  end
  if o.dtype then v = cast(v, o.dtype) end
  write(to, v, about)
  local file <close> = assert(io.open(to, "rb"))
  io.stdout:write(("%s: %s\n"):format(files.shown(to),
                                      units.bytes(file:seek "end")))
  return 0
end

return conversion
