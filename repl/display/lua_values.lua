-- SPDX-License-Identifier: MIT
--
-- lua_values.lua - Lua values other than tensors as text: strings quoted,
-- tables sorted, shortened and on one line if they fit.

local lexer = require "nacre.lexer"
local numbers = require "nacre.number_text"

local values = {}

local STRING, MAXLINES = 2000, 25

-- Limits of depth and of items for a table: the first that shortens it to the
-- fewest lines. Lists lose items, other tables depth. A depth that was asked
-- for stays.
local function limits(list, depth, most)
  if depth then return {{depth, most}, {depth, 5}} end
  return list and {{3, most}, {3, 5}, {1, most}} or
         {{3, most}, {2, most}, {1, most}}
end

local escapes = {["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r",
                 ['"'] = '\\"', ["\\"] = "\\\\"}

local function escape(c)
  return escapes[c] or ("\\x%02X"):format(c:byte())
end

-- Characters of UTF-8 that control a terminal, end a line or turn the direction
-- of writing.
local CONTROLS = {"\xC2[\x80-\x9F]", "\xD8\x9C", "\xE2\x80[\x8E\x8F\xA8-\xAE]",
                  "\xE2\x81[\xA6-\xA9]"}

-- The text with each of them replaced by what f gives for it.
local function without_controls(s, f)
  if not s:find "[\xC2\xD8\xE2]" then return s end
  for _, pattern in ipairs(CONTROLS) do s = s:gsub(pattern, f) end
  return s
end

-- Quotes a string; escapes what is not text or would control the terminal.
local function quote(s, opts)
  local cut = s
  if #s > STRING then cut = s:sub(1, utf8.offset(s, 0, STRING + 1) - 1) end
  local plain = opts.utf8 and utf8.len(cut)
  local body = cut:gsub(plain and '[%c"\\]' or '[%c"\\\x80-\xFF]', escape)
  body = without_controls(body, function(c) return (c:gsub(".", escape)) end)
  if #s == #cut then return '"' .. body .. '"' end
  return ('"%s"... (%d bytes)'):format(body, #s)
end

-- The text unchanged except for control characters: names in messages come
-- from files and users.
function values.escape_controls(s)
  local function escaped(text)
    return (text:gsub(".", function(c) return ("\\x%02x"):format(c:byte()) end))
  end
  s = s:gsub(utf8.len(s) and "[\0-\8\11-\31\127]" or
             "[\0-\8\11-\31\127-\255]", escaped)
  return without_controls(s, escaped)
end

-- A line of source with a blank for each of them: a caret below it has its
-- place.
function values.blank_controls(s)
  return without_controls(s:gsub("%c", " "), " ")
end

-- As it is shown: an object of Python has two texts.
local function text(v)
  local meta = type(v) == "userdata" and debug.getmetatable(v)
  local ok, s = pcall(meta and rawget(meta, "__repr") or tostring, v)
  if ok then return s end
  return ("%s (its __tostring fails)"):format(type(v))
end

local function scalar(v, opts)
  if type(v) == "string" then return quote(v, opts) end
  if type(v) == "number" then return numbers.show(v, opts.precision) end
  local brief = (type(v) == "userdata" or type(v) == "function") and
                opts.brief(v)
  if brief then return brief end
  return text(v)
end

local order = {number = 1, string = 2, boolean = 3}

-- A sort key that puts k2 before k10.
local function natural_key(a, b)
  local at, x, from, to = 1, nil, nil, nil
  while true do
    from, to, x = a:find("(%d+)", at)
    local y = from and a:sub(1, from - 1) == b:sub(1, from - 1) and
              b:match("^%d+", from)
    if not y then return a < b end
    if x ~= y then
      local m, n = tonumber(x), tonumber(y)
      if m ~= n then return m < n end
      return a < b
    end
    at = to + 1
  end
end

local function before(a, b)
  local x, y = order[type(a)] or 9, order[type(b)] or 9
  if x ~= y then return x < y end
  if x == 2 then return natural_key(a, b) end
  if x < 2 then return a < b end
  return text(a) < text(b)
end

local function key(k, opts)
  local name = type(k) == "string" and k:find "^[%a_][%w_]*$"
  if name and not lexer.keywords[k] then return k end
  return "[" .. scalar(k, opts) .. "]"
end

-- The keys of a table in the order in which it is shown.
function values.keys(t)
  local list = {}
  for k in next, t do list[#list + 1] = k end
  table.sort(list, before)
  return list
end

-- The field k of what a name stands for: "m.w", 'm["1.weight"]'.
function values.path(name, k)
  local text = key(k, {utf8 = true, brief = tostring})
  return name .. (text:sub(1, 1) == "[" and "" or ".") .. text
end

local any                     -- shows any value, at a depth

local function items(t, depth, opts)
  local list, keys, n = {}, {}, rawlen(t)
  for i = 1, math.min(n, opts.items) do
    list[i] = any(rawget(t, i), depth + 1, opts)
  end
  for k in next, t do
    if math.type(k) ~= "integer" or k < 1 or k > n then keys[#keys + 1] = k end
  end
  table.sort(keys, before)
  for i = 1, math.min(#keys, opts.items - #list) do
    list[#list + 1] = key(keys[i], opts) .. " = " ..
                      any(rawget(t, keys[i]), depth + 1, opts)
  end
  local more = n + #keys - #list
  if more > 0 then list[#list + 1] = ("... %d more"):format(more) end
  return list
end

-- On one line if that fits, else an item a line.
local function layout(list, depth, opts)
  local line = "{" .. table.concat(list, ", ") .. "}"
  if #line + 2 * depth <= opts.width and not line:find "\n" then
    return line
  end
  local pad = ("  "):rep(depth + 1)
  return "{\n" .. pad .. table.concat(list, ",\n" .. pad) .. "\n" ..
         ("  "):rep(depth) .. "}"
end

function any(v, depth, opts)
  local own = depth > 0 and opts.own and opts.own(v)
  if own and not own:find "\n" then return own end
  local meta = type(v) == "table" and debug.getmetatable(v)
  if type(v) ~= "table" or meta and rawget(meta, "__tostring") then
    return scalar(v, opts)
  end
  if opts.seen[v] then return "<cycle>" end
  if next(v) == nil then return "{}" end
  if depth >= opts.depth then return "{...}" end
  opts.seen[v] = true
  local list = items(v, depth, opts)
  opts.seen[v] = nil
  return layout(list, depth, opts)
end

-- The text of any value. opts: width, utf8, depth (of tables), and brief(v),
-- which returns a tensor or a function in one line and nil for other values;
-- own(v), if given, the user's text for a value inside a table, or nil.
-- maxlines: of a table about as many items, and at most twice as many lines;
-- false: all of them.
function values.show(v, opts)
  local text
  local list = type(v) == "table" and rawlen(v) > 0
  local lines = opts.maxlines == nil and MAXLINES or opts.maxlines or math.huge
  for _, limit in ipairs(limits(list, opts.depth, lines + 5)) do
    local depth, items = limit[1], limit[2]
    text = any(v, 0, setmetatable({seen = {}, depth = depth, items = items},
                                  {__index = opts}))
    local _, n = text:gsub("\n", "")
    if n < 2 * lines then break end
  end
  return text
end

return values
