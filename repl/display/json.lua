-- SPDX-License-Identifier: MIT
--
-- json.lua - converts Lua tables to JSON and back. A table with an element 1,
-- or an empty one, is a list; keys are sorted, so that equal tables give equal
-- text. null is nil; numbers keep all digits; inf and nan, which JSON lacks,
-- become null.

local json = {}

local OBJECT <const> = {}

--
-- Writing
--
local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
                 ["\t"] = "\\t", ["\r"] = "\\r"}

-- The text with U+FFFD for each byte that is not part of a character.
local function valid(s)
  local parts, from = {}, 1
  while true do
    local good, bad = utf8.len(s, from)
    if good then break end
    parts[#parts + 1] = s:sub(from, bad - 1)
    from = bad + 1
  end
  parts[#parts + 1] = s:sub(from)
  return table.concat(parts, "\u{FFFD}")
end

local function string(s)
  if not utf8.len(s) then s = valid(s) end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number(x)
  if x ~= x or x == math.huge or x == -math.huge then return "null" end
  if math.type(x) == "integer" then return ("%d"):format(x) end
  local text = ("%.15g"):format(x)
  return tonumber(text) == x and text or ("%.17g"):format(x)
end

local encode

local function list(t, indent)
  local parts = {}
  for i, v in ipairs(t) do parts[i] = encode(v, indent) end
  return "[" .. table.concat(parts, ", ") .. "]"
end

-- On lines of its own, or on one if there is no indent.
local function object(t, indent)
  local names, deeper = {}, indent and indent .. "  "
  for name in pairs(t) do names[#names + 1] = tostring(name) end
  table.sort(names)
  for i, name in ipairs(names) do
    names[i] = (deeper or "") .. string(name) .. ": " .. encode(t[name], deeper)
  end
  if not indent then return "{" .. table.concat(names, ", ") .. "}" end
  return "{\n" .. table.concat(names, ",\n") .. "\n" .. indent .. "}"
end

function encode(v, indent)
  local kind = type(v)
  if kind == "table" then
    local islist = v[1] ~= nil or next(v) == nil and v ~= OBJECT
    return (islist and list or object)(v, indent)
  end
  if kind == "number" then return number(v) end
  if kind == "string" then return string(v) end
  return kind == "boolean" and tostring(v) or "null"
end

function json.encode(v) return encode(v, "") .. "\n" end

-- The same on one line, without its end.
function json.line(v) return encode(v) end

-- A field that is to be null rather than missing.
json.null = 0 / 0

-- An object without fields, which {} would not be.
json.object = OBJECT

-- Reading. Each reader takes the text and a position, and returns a value and
-- the position after it; errors are raised.
local read

local function fail(text, at)
  local _, line = text:sub(1, at):gsub("\n", "")
  error({("line %d is not JSON"):format(line + 1)}, 0)
end

local function skip_blanks(text, at) return text:match("^[ \t\r\n]*()", at) end

local UNESCAPES = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}

local function unicode(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at) or fail(text, at), 16)
  if code >= 0xD800 and code < 0xDC00 then
    local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 4) or "0", 16)
    if low >= 0xDC00 and low < 0xE000 then
      return utf8.char(0x10000 + ((code - 0xD800) << 10) + low - 0xDC00),
             at + 10
    end
  end
  return utf8.char(code), at + 4
end

local function read_string(text, at)
  local parts = {}
  while true do
    local plain, stop = text:match('^([^"\\]*)()', at)
    parts[#parts + 1], at = plain, stop
    local c = text:sub(at, at)
    if c == '"' then return table.concat(parts), at + 1 end
    if c == "" then fail(text, at) end
    local what = text:sub(at + 1, at + 1)
    if what == "u" then
      parts[#parts + 1], at = unicode(text, at + 2)
    else
      parts[#parts + 1], at = UNESCAPES[what] or what, at + 2
    end
  end
end

-- Reads items between brackets, separated by commas.
local function items(text, at, stop, item)
  at = skip_blanks(text, at)
  if text:sub(at, at) == stop then return at + 1 end
  while true do
    at = skip_blanks(text, item(skip_blanks(text, at)))
    local c = text:sub(at, at)
    if c == stop then return at + 1 end
    if c ~= "," then fail(text, at) end
    at = at + 1
  end
end

local function read_list(text, at, depth)
  local t, n = {}, 0
  return t, items(text, at, "]", function(i)
    n = n + 1
    t[n], i = read(text, i, depth)
    return i
  end)
end

local function read_object(text, at, depth)
  local t = {}
  return t, items(text, at, "}", function(i)
    if text:sub(i, i) ~= '"' then fail(text, i) end
    local name, after = read_string(text, i + 1)
    after = skip_blanks(text, after)
    if text:sub(after, after) ~= ":" then fail(text, after) end
    t[name], after = read(text, after + 1, depth)
    return after
  end)
end

local WORDS = {["true"] = true, ["false"] = false}

function read(text, at, depth)
  at = skip_blanks(text, at)
  if depth > 100 then fail(text, at) end
  local c = text:sub(at, at)
  if c == "{" then return read_object(text, at + 1, depth + 1) end
  if c == "[" then return read_list(text, at + 1, depth + 1) end
  if c == '"' then return read_string(text, at + 1) end
  local word = text:match("^%a+", at)
  if word == "null" then return nil, at + 4 end
  if WORDS[word] ~= nil then return WORDS[word], at + #word end
  local digits = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  local value = digits and tonumber(digits)
  if not value then fail(text, at) end
  return value, at + #digits
end

-- Returns the value, or nil and why the text is not JSON.
function json.decode(text)
  local ok, value, at = pcall(read, text, 1, 1)
  if ok and not text:find("^%s*$", at) then
    ok, value = pcall(fail, text, at)
  end
  if ok then return value end
  return nil, type(value) == "table" and value[1] or tostring(value)
end

-- Reads a file; nil and why if that fails.
function json.load(path)
  local text, wrong = require "nacre.files".read(path)
  if not text then return nil, wrong end
  local value, why = json.decode(text)
  if value == nil then return nil, ("%s: %s"):format(path, why or "null") end
  return value
end

-- Writes a file atomically: a new file is written and replaces the old one.
function json.save(path, value)
  return require "nacre.host".write_file(path, json.encode(value))
end

return json
