-- SPDX-License-Identifier: MIT
--
-- json_text.lua - JSON as text and as values of Lua, for nacre.json and the
-- program. A table with an element 1, or an empty one, is a list, any other an
-- object; json.object(t) is one in any case. Keys are sorted, so that equal
-- tables give equal texts.
--
-- decode and encode raise {message = ..., hint = ...}.

local byte, find, match = string.byte, string.find, string.match

local json = {}

local MOST_LEVELS <const> = 1000

local function refuse(message, hint)
  error({message = message, hint = hint}, 0)
end

-- What stands for null, where nil would leave a hole.
json.null = setmetatable({}, {
  __name = "nacre.json.null",
  __tostring = function() return "null" end,
  __newindex = function()
    error({message = "json.null has no fields"}, 0)
  end,
})

local Object = {__name = "nacre.json.object"}

function json.object(t)
  if getmetatable(t) == nil then return setmetatable(t, Object) end
  return t
end

-- ---- writing

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n",
                 ["\t"] = "\\t", ["\r"] = "\\r"}

-- The text with U+FFFD for each byte that is not part of a character.
function json.valid_text(s)
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

local function escape(c)
  return ESCAPES[c] or ("\\u%04x"):format(c:byte())
end

local function string_text(s, o, path)
  if not utf8.len(s) then
    if not o.lenient then
      refuse(path .. " is not UTF-8, as texts of JSON are")
    end
    s = json.valid_text(s)
  end
  return '"' .. s:gsub('[\0-\31\127"\\]', escape) .. '"'
end

-- The shortest of 15 to 17 digits that reads back as x; a float has a point.
local function number_text(x, o, path)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  if x ~= x or x == math.huge or x == -math.huge then
    if o.lenient or o.nan == "null" then return "null" end
    refuse(("%s is %s, which JSON does not have"):format(path,
             x ~= x and "nan" or x > 0 and "inf" or "-inf"),
           '{nan = "null"} writes null instead')
  end
  local text
  for digits = 15, 17 do
    text = plain_format("%." .. digits .. "g", x)
    if tonumber(text) == x then break end
  end
  if o.lenient or text:find "[.e]" then return text end
  return text .. ".0"
end

local function inner(path, key)
  if path == "the value" then return tostring(key) end
  return path .. "." .. tostring(key)
end

local encode

local function list_text(t, n, o, indent, level, path)
  local parts = {}
  for i = 1, n do
    parts[i] = encode(t[i], o, indent, level + 1, inner(path, i))
  end
  return "[" .. table.concat(parts, ", ") .. "]"
end

-- The names of the fields, sorted, and the value of each.
local function fields_of(t, path)
  local names, values = {}, {}
  for key, value in pairs(t) do
    local name = key
    if math.type(key) == "integer" then name = ("%d"):format(key) end
    if type(name) ~= "string" then
      refuse(("%s has a %s as a key; those of JSON are texts"):format(path,
               math.type(key) or type(key)))
    end
    if values[name] ~= nil then
      refuse(("%s has two keys that are %s as texts"):format(path, name))
    end
    names[#names + 1], values[name] = name, value
  end
  table.sort(names)
  return names, values
end

-- On lines of its own, or on one if there is no indent.
local function object_text(t, o, indent, level, path)
  local deeper = indent and indent .. o.step
  local names, values = fields_of(t, path)
  for i, name in ipairs(names) do
    names[i] = (deeper or "") .. string_text(name, o, "a key of " .. path) ..
               ": " .. encode(values[name], o, deeper, level + 1,
                              inner(path, name))
  end
  if not indent then return "{" .. table.concat(names, ", ") .. "}" end
  if not names[1] then return "{}" end
  return "{\n" .. table.concat(names, ",\n") .. "\n" .. indent .. "}"
end

-- The length of t if it is a list, else nil.
local function list_length(t, o, path)
  if getmetatable(t) == Object then return nil end
  if next(t) == nil then return 0 end
  if t[1] == nil then return nil end
  if o.lenient then return #t end
  local n, most = 0, 0
  for key in pairs(t) do
    if math.type(key) ~= "integer" or key < 1 then
      refuse(("%s has elements of a list and fields of an object"):format(path))
    end
    n, most = n + 1, math.max(most, key)
  end
  if n == most then return n end
  local i = 1
  while t[i] ~= nil do i = i + 1 end
  refuse(("%s has %d, but no %d"):format(path, most, i),
         "nacre.json.null stands for an element that is not there")
end

local function table_text(t, o, indent, level, path)
  if level > MOST_LEVELS then
    refuse(("%s... is nested deeper than %d levels, or contains itself"):format(
             path:sub(1, 40), MOST_LEVELS))
  end
  local n = list_length(t, o, path)
  if n then return list_text(t, n, o, indent, level, path) end
  return object_text(t, o, indent, level, path)
end

function encode(v, o, indent, level, path)
  local kind = type(v)
  if kind == "string" then return string_text(v, o, path) end
  if kind == "number" then return number_text(v, o, path) end
  if kind == "boolean" then return tostring(v) end
  if v == nil or rawequal(v, json.null) then return "null" end
  if kind == "table" then return table_text(v, o, indent, level, path) end
  if nacre.is_tensor(v) then
    return encode(v:tolist(), o, nil, level, path)
  end
  if o.lenient then return "null" end
  refuse(("%s is a %s, which JSON does not have"):format(path, kind))
end

-- o.step: blanks, by which fields are indented, each on a line; or nil: all on
-- one line. o.nan = "null": what JSON lacks is null. o.lenient: so is all that
-- is no value of JSON, and bytes that are not UTF-8 are replaced.
function json.encode(v, o)
  return encode(v, o, o.step and "", 1, "the value")
end

-- ---- reading. Each reader takes the text and a position, and returns a value
-- and the position after it.

-- Fails with the line and the column, in characters, of byte `at'.
local function fail_at(text, at, message, hint)
  local before = text:sub(1, at - 1)
  local _, lines = before:gsub("\n", "")
  local last = before:match "[^\n]*$"
  refuse(("line %d, column %d: %s"):format(lines + 1,
           (utf8.len(last) or #last) + 1, message), hint)
end

local WORDS = {["true"] = true, ["false"] = false}
local CONSTANTS = {NaN = 1, Infinity = 1, nan = 1, inf = 1, None = 1, nil_ = 1,
                   True = 1, False = 1, undefined = 1}

-- Fails because byte `at' does not begin what was expected.
local function fail_expected(text, at, expected)
  local c = text:match("^[\0-\127]", at) or
            text:match("^[\192-\255][\128-\191]*", at)
  if c == nil then
    fail_at(text, #text + 1, ("%s was expected, but the text ends here"):format(
              expected))
  end
  local word = text:match("^-?(%a+)", at)
  if word and CONSTANTS[word] then
    fail_at(text, at, word .. " is not JSON",
            "JSON has true, false and null, and neither nan nor inf")
  end
  fail_at(text, at, ("%s was expected, not %s"):format(expected,
            c:find "^[%g\128-\255]" and "'" .. c .. "'" or
            ("the byte %d"):format(c:byte())),
          c == "'" and 'texts are in "quotes"' or nil)
end

local UNESCAPES = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
                   ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}

-- The character of \uXXXX, whose digits begin at `at', or of two of them.
local function unicode(text, at)
  local digits = text:match("^%x%x%x%x", at)
  if not digits then
    fail_at(text, at - 2, "\\u is not followed by four hexadecimal digits")
  end
  local code = tonumber(digits, 16)
  if code < 0xD800 or code >= 0xE000 then return utf8.char(code), at + 4 end
  local low = tonumber(text:match("^\\u(%x%x%x%x)", at + 4) or "0", 16)
  if code >= 0xDC00 or low < 0xDC00 or low >= 0xE000 then
    fail_at(text, at - 2, ("\\u%s is half of a character"):format(digits))
  end
  return utf8.char(0x10000 + ((code - 0xD800) << 10) + low - 0xDC00), at + 10
end

-- Goes on with a string that has escapes, of which the first is at `at'.
local function read_escapes(text, from, at)
  local parts = {text:sub(from, at - 1)}
  while true do
    local plain, stop = text:match('^([^"\\\0-\31]*)()', at)
    parts[#parts + 1], at = plain, stop
    local c = text:sub(at, at)
    if c == '"' then return table.concat(parts), at + 1 end
    if c ~= "\\" then
      if c == "" then fail_at(text, from - 1, "the text has no end") end
      fail_at(text, at, ("a text has the control character \\u%04x"):format(
                c:byte()), "it is written as an escape")
    end
    local what = text:sub(at + 1, at + 1)
    if what == "u" then
      parts[#parts + 1], at = unicode(text, at + 2)
    elseif UNESCAPES[what] then
      parts[#parts + 1], at = UNESCAPES[what], at + 2
    else
      fail_at(text, at, ("\\%s is no escape"):format(
                what:find "^%g$" and what or ""))
    end
  end
end

-- A string whose first character is at `at'.
local function read_string(text, at)
  local _, stop, s = find(text, '^([^"\\\0-\31]*)"', at)
  if stop then return s, stop + 1 end
  return read_escapes(text, at, match(text, '^[^"\\\0-\31]*()', at))
end

local function read_integer(text, at, digits, o)
  local value = math.tointeger(tonumber(digits))
  -- tonumber makes a float of an integer beyond int64
  if math.type(tonumber(digits)) == "integer" then return value end
  if o.big == "text" then return digits end
  if o.big == "error" then
    fail_at(text, at, digits:sub(1, 40) .. " is beyond int64",
            '{big = "text"} keeps its digits')
  end
  return tonumber(digits)
end

local function read_number(text, at, o)
  local whole, stop = text:match("^(-?%d+)()", at)
  if not whole then fail_expected(text, at, "a value") end
  if whole:find "^-?0%d" then
    fail_at(text, at, "a number begins with 0")
  end
  local value
  if text:find("^[.eE]", stop) then
    stop = text:match("^%.%d+()", stop) or stop
    local power = text:match("^[eE][+-]?%d+()", stop)
    if not power and text:find("^[.eE]", stop) then
      fail_at(text, stop, "a number has no digit here")
    end
    stop = power or stop
    value = tonumber(text:sub(at, stop - 1))
  else
    value = read_integer(text, at, whole, o)
  end
  if value == math.huge or value == -math.huge then
    fail_at(text, at, "a number is beyond float64")
  end
  return value, stop
end

local function skip(text, at)
  if (byte(text, at) or 33) > 32 then return at end
  return match(text, "^[ \t\r\n]*()", at)
end

local read

-- Reads after "[".
local function read_list(text, at, o, level)
  local t, n = {}, 0
  at = skip(text, at)
  if byte(text, at) == 93 then return t, at + 1 end
  while true do
    n = n + 1
    t[n], at = read(text, at, o, level)
    at = skip(text, at)
    local c = byte(text, at)
    if c == 93 then return t, at + 1 end
    if c ~= 44 then fail_expected(text, at, "',' or ']'") end
    at = skip(text, at + 1)
  end
end

-- Reads after "{".
local function read_object(text, at, o, level)
  local t, name = {}, nil
  at = skip(text, at)
  if byte(text, at) == 125 then return setmetatable(t, Object), at + 1 end
  while true do
    if byte(text, at) ~= 34 then
      fail_expected(text, at, "a key in quotes")
    end
    name, at = read_string(text, at + 1)
    at = skip(text, at)
    if byte(text, at) ~= 58 then fail_expected(text, at, "':'") end
    t[name], at = read(text, skip(text, at + 1), o, level)
    at = skip(text, at)
    local c = byte(text, at)
    if c == 125 then break end
    if c ~= 44 then fail_expected(text, at, "',' or '}'") end
    at = skip(text, at + 1)
  end
  return next(t) == nil and setmetatable(t, Object) or t, at + 1
end

function read(text, at, o, level)
  local c = byte(text, at)
  if c == 34 then return read_string(text, at + 1) end
  if c == 123 or c == 91 then
    if level > MOST_LEVELS then
      fail_at(text, at, ("it is nested deeper than %d levels"):format(
                MOST_LEVELS))
    end
    return (c == 91 and read_list or read_object)(text, at + 1, o, level + 1)
  end
  local word = text:match("^%a+", at)
  if word == "null" then return o.null, at + 4 end
  if WORDS[word] ~= nil then return WORDS[word], at + #word end
  return read_number(text, at, o)
end

-- The value of the text. o.null stands for null, or nil: such fields are left
-- out. o.big: an integer beyond int64 is "float", "text" or "error".
function json.decode(text, o)
  local good, bad = utf8.len(text)
  if not good then fail_at(text, bad, "the text is not UTF-8") end
  local value, at = read(text, skip(text, text:find "^\u{FEFF}" and 4 or 1), o,
                         1)
  at = skip(text, at)
  if at <= #text then fail_expected(text, at, "the end of the text") end
  return value
end

return json
