-- SPDX-License-Identifier: MIT
-- json_values.lua - nacre.json: JSON as values of Lua, and files of it.
local all = ...
local fail, define = all.fail, all.define
local text = require "nacre.json_text"
local json = all.space "json"

json.null = text.null

-- The result of f(v, options); its error is one of the function `name'.
local function guarded(name, path, f, v, options)
  local ok, result = pcall(f, v, options)
  if ok then return result end
  if type(result) ~= "table" or not result.message then error(result, 0) end
  fail(name, path .. result.message, result.hint)
end

local function decode(name, path, source, nulls, big)
  return guarded(name, path, text.decode, source,
                 {null = nulls and text.null or nil, big = big})
end

local function encode(name, value, indent, nan)
  if indent and (indent < 0 or indent > 16) then
    fail(name, "indent is from 0 to 16")
  end
  return guarded(name, "", text.encode, value,
                 {step = indent and (" "):rep(indent), nan = nan})
end

define("json.decode",
       "text:text, *, nulls:bool=true, big:float|text|error=\"float\" "
       .. "-> value",
       "the value of a text of JSON: objects and lists as tables",
function(source, nulls, big)
  return decode("decode", "", source, nulls, big)
end)

-- Defines a function whose argument may be a table of any fields, which the
-- reader of arguments would take for options: those are a table after the
-- `count' first.
local function define_of_values(name, signature, options, doc, count, f)
  local s = all.parse(name, options ~= "" and "*, " .. options or "", true)
  local function call(...)
    local given = select("#", ...)
    if given < count or given > count + 1 then
      fail(name, ("takes %d argument%s and a table of options, not %d"):format(
             count, count > 1 and "s" or "", given))
    end
    local o = select(count + 1, ...)
    if o ~= nil and type(o) ~= "table" then
      fail(name, ("options must be a table, not a %s"):format(type(o)))
    end
    local v = all.read(name, s, o or {})
    return f(v, ...)
  end
  local path, last = name:match "^(.-)%.?([^.]+)$"
  all.space(path)[last] = call
  all.describe(name, call, doc, all.parse(name, signature .. options ..
                                          " -> value", true))
end

define_of_values("json.encode", "value:any, *, ",
  "indent:int=nil, nan:error|null=\"error\"",
  "a value as a text of JSON, with sorted keys", 1,
function(o, value) return encode("encode", value, o[1], o[2]) end)

define_of_values("json.save", "path:file, value:any, *, ",
  "indent:int=2, nan:error|null=\"error\"",
  "writes a value to a file of JSON; the old file is replaced at once", 2,
function(o, path, value)
  local source = encode("save", value, o[1], o[2]) .. "\n"
  nacre.frombuffer(source, {dtype = "uint8"}):tofile(path)
end)

define_of_values("json.object", "fields:table", "",
  "the table, which is an object in JSON even without fields", 1,
function(_, fields)
  if type(fields) ~= "table" then
    fail("object", ("fields must be a table, not a %s"):format(type(fields)))
  end
  return text.object(fields)
end)

define("json.load",
       "path:file, *, nulls:bool=true, big:float|text|error=\"float\" "
       .. "-> value",
       "reads a file of JSON",
function(path, nulls, big)
  local file <close>, source, wrong = io.open(path, "rb")
  if not file then fail("load", source) end
  source, wrong = file:read "a"
  if not source then fail("load", ("%s: %s"):format(path, wrong)) end
  return decode("load", path .. ": ", source, nulls, big)
end)
