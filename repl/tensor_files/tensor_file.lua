-- SPDX-License-Identifier: MIT
--
-- tensor_file.lua - a file of any format as a list of tensors with names. Those
-- of a file in binary form are read one at a time, and their dtypes and shapes
-- come from headers; texts are read as a whole.

local files = require "nacre.files"
local facts = require "nacre.tensor_facts"
local file_formats = require "nacre.file_formats"

local nacre = package.loaded.nacre

local tensor_file = {}

-- The last part of a path without its ending: "model" of "a/model.npz".
function tensor_file.stem(path)
  local name = path:gsub("/+$", ""):match "[^/]*$"
  return name:match "^(.+)%.[^.]*$" or name
end

-- The text of an error: no tensor of Nacre holds what a file has.
function tensor_file.why(e)
  return files.shown(type(e) == "table" and e.message or tostring(e))
end

-- A text file whose first line holds names is read with {header=true}.
local function read_text(path)
  local ok, t = pcall(nacre.load, path)
  if ok then return t end
  local headed, t2, names = pcall(nacre.load, path, {header = true})
  if not headed then error(t, 0) end
  return t2, names
end

-- What a file holds, as nacre.load returns it.
function tensor_file.read(path)
  local format = file_formats.of(path)
  if format and format.text then return read_text(path) end
  return nacre.load(path)
end

-- Adds the tensors in v, and in tables in it, to the lists.
local function collect(v, name, names, tensors)
  if facts.istensor(v) then
    names[#names + 1], tensors[#tensors + 1] = name, v
  elseif type(v) == "table" then
    local keys = {}
    for key in next, v do keys[#keys + 1] = key end
    table.sort(keys, function(a, b)
      if math.type(a) and math.type(b) then return a < b end
      return tostring(a) < tostring(b)
    end)
    for _, key in ipairs(keys) do
      local inner = tostring(key)
      collect(v[key], name == "" and inner or name .. "." .. inner, names,
              tensors)
    end
  end
end

local File = {}
File.__index = File

-- The dtype, the shape and the bytes of the i-th tensor. Of one with a dtype
-- that no tensor has, the file's name of it, and no bytes.
function File:info(i)
  local t = self.tensors and self.tensors[i]
  if t then return t.dtype, t:size(), facts.bytes(t) end
  local dtype, shape, foreign = nacre._archive_info(self.archive, i)
  if foreign then return dtype, shape end
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return dtype, shape, n * nacre.empty(0, {dtype = dtype}):element_size()
end

function File:tensor(i)
  return self.tensors and self.tensors[i] or
         nacre._archive_load(self.archive, i)
end

-- The number of the tensor with this name, or nil.
function File:find(name)
  if not self.places then
    self.places = {}
    for i, known in ipairs(self.names) do self.places[known] = i end
  end
  return self.places[name]
end

-- Opens a file: {path =, names =}, with the methods above.
function tensor_file.open(path)
  local file = setmetatable({path = path}, File)
  file.archive, file.names = nacre._archive(path)
  if not file.archive then
    file.names, file.tensors = {}, {}
    collect(tensor_file.read(path), "", file.names, file.tensors)
  end
  return file
end

-- "float32[2x3]" of a tensor, "3 tensors" of a table.
local function described(v)
  if facts.istensor(v) then return facts.kind(v) end
  local names = {}
  collect(v, "", names, {})
  return require "nacre.units".count(#names, "tensor")
end

-- Makes the files of the command line the globals file, or files; returns the
-- line that says so.
function tensor_file.bring(paths)
  local parts, values = {}, {}
  for i, path in ipairs(paths) do
    local v = tensor_file.read(path)
    values[i] = v
    parts[i] = ("%s = %s: %s"):format(
      #paths == 1 and "file" or ("files[%d]"):format(i),
      files.shown(path), described(v))
  end
  if #paths == 1 then _G.file = values[1] else _G.files = values end
  require "nacre.state".brought = #paths == 1 and "file" or "files"
  return table.concat(parts, ", ")
end

return tensor_file
