-- SPDX-License-Identifier: MIT
-- nested_safetensors.lua - nested tables in .safetensors files: the tensors
-- under dotted names, the rest as one line of JSON in the metadata "nacre".
-- save.c and load.c call it.
--
-- In the JSON a tensor is ["t", name], a list ["l", v...], another table
-- ["d", key, v, ...], a tensor in parts along a dimension ["c", dim, ["t",
-- name], ...], a number that JSON lacks ["n", "inf"], a string that is
-- not UTF-8 ["b", hexadecimal]. Nothing is executed when it is read.
local all = ...
local fail = all.fail

local MOST_LEVELS = 100

-- ---- writing

-- What stands for v: an object with state_dict is its state.
local function state_of(v)
  local meta = type(v) == "table" and getmetatable(v)
  if meta and type(v.state_dict) == "function" then return v:state_dict() end
  return v
end
all.state_of = state_of

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\"}

local function string_text(s)
  if not utf8.len(s) then
    return '["b","' .. s:gsub(".", function(c)
      return ("%02x"):format(c:byte())
    end) .. '"]'
  end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return ESCAPES[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number_text(x)
  if math.type(x) == "integer" then return ("%d"):format(x) end
  if x ~= x then return '["n","nan"]' end
  if x == math.huge or x == -math.huge then
    return x > 0 and '["n","inf"]' or '["n","-inf"]'
  end
  local text = plain_format("%.17g", x)
  return text:find "[.e]" and text or text .. ".0"
end

-- The keys of a table: integers in order, then strings in order, then others.
local function sorted_keys(v)
  local keys, rank = {}, {number = 1, string = 2, boolean = 3}
  for key in pairs(v) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then
      return (rank[type(a)] or 4) < (rank[type(b)] or 4)
    end
    return type(a) ~= "boolean" and type(a) ~= "table" and a < b
  end)
  return keys
end
all.sorted_keys = sorted_keys

-- Are these, which are sorted, the keys of a list: 1, 2, ...?
local function are_of_list(keys)
  for i, key in ipairs(keys) do
    if key ~= i then return false end
  end
  return true
end
all.are_of_list = are_of_list

-- The path of the value at a key of the table at `path', "" for the whole one.
local function path_of(key, path)
  if type(key) == "table" or nacre.is_tensor(key) then
    fail("save", ("%s has a %s as a key"):format(path == "" and "the table" or
                 path, nacre.is_tensor(key) and "tensor" or "table"))
  end
  local name = math.type(key) == "float" and plain_format("%.14g", key) or
               tostring(key)
  return path == "" and name or path .. "." .. name
end
all.path_of = path_of

-- The text of a tensor that is in parts along a dimension, in a list.
local function shard_text(v, names)
  local parts = {}
  for i, t in ipairs(v) do
    parts[i] = ',["t",' .. string_text(names[t]) .. "]"
  end
  return ('["c",%d%s]'):format(v["nacre.shard"], table.concat(parts))
end

-- The text of v, whose tensors go to `tensors' under a name that begins with
-- path; names[t] is the name of a tensor that is there already.
local function encode(v, path, tensors, names, level)
  v = state_of(v)
  if nacre.is_tensor(v) then
    local name = names[v] or path
    while not names[v] and tensors[name] do name = name .. "_" end
    tensors[name], names[v] = v, name
    return '["t",' .. string_text(name) .. "]"
  elseif type(v) == "string" then return string_text(v)
  elseif type(v) == "number" then return number_text(v)
  elseif type(v) == "boolean" then return tostring(v)
  elseif type(v) ~= "table" then
    fail("save", ("%s is a %s, which a file cannot hold"):format(path, type(v)))
  elseif level > MOST_LEVELS then
    fail("save", ("%s... is nested too deep, or contains itself")
                 :format(path:sub(1, 40)))
  end
  local keys, parts = sorted_keys(v), {}
  if v["nacre.shard"] then return shard_text(v, names) end
  local is_list = are_of_list(keys)
  for _, key in ipairs(keys) do
    local name = path_of(key, path)
    if not is_list then
      parts[#parts + 1] = encode(key, name, tensors, names, level + 1)
    end
    parts[#parts + 1] = encode(v[key], name, tensors, names, level + 1)
  end
  table.insert(parts, 1, is_list and '"l"' or '"d"')
  return "[" .. table.concat(parts, ",") .. "]"
end

-- The first element that a list lacks, or nil.
function all.hole_in(v)
  for i = 1, #v do
    if v[i] == nil then return i end
  end
end

-- Is v a flat table of tensors, which needs no structure?
local function is_flat(v)
  if all.hole_in(v) then return false end
  for _, element in pairs(v) do
    if not nacre.is_tensor(element) then return false end
  end
  return true
end

-- The tensors of v by name and, unless v is a flat table, its structure as
-- text.
function all.to_flat(v)
  if is_flat(v) then return v end
  local tensors = {}
  local text = encode(v, "", tensors, {}, 0)
  -- a file has at least one tensor
  if next(tensors) == nil then tensors.none = nacre.zeros(0) end
  return tensors, text
end

-- The structure of v, whose tensors have these names.
function all.structure_text(v, names)
  return encode(v, "", {}, names, 0)
end

-- ---- reading

local function broken(what)
  fail("load", "the structure in the metadata is broken: " .. what)
end

local function read_string(s, at)
  local out = {}
  while true do
    local from, to = s:find('^[^"\\]+', at)
    if from then
      out[#out + 1] = s:sub(from, to)
      at = to + 1
    end
    local c = s:sub(at, at)
    if c == '"' then return table.concat(out), at + 1 end
    if c ~= "\\" then broken "a string has no end" end
    local code = s:match("^u(%x%x%x%x)", at + 1)
    out[#out + 1] = code and utf8.char(tonumber(code, 16)) or
                    s:sub(at + 1, at + 1)
    at = at + (code and 6 or 2)
  end
end

local SPECIAL = {inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0}

local function join_parts(list)
  for i = 3, #list do
    if not nacre.is_tensor(list[i]) then broken "a part is not a tensor" end
  end
  local ok, t = pcall(nacre.cat, table.move(list, 3, #list, 1, {}), list[2])
  return ok and t or broken "the parts of a tensor do not match"
end

-- The value of a list of values whose first is its kind.
local function build(list, tensors)
  local kind = list[1]
  if kind == "t" then
    local t = tensors[list[2]]
    return t == nil and broken("no tensor " .. tostring(list[2])) or t
  elseif kind == "c" then return join_parts(list)
  elseif kind == "n" then return SPECIAL[list[2]]
  elseif kind == "b" then
    return (tostring(list[2]):gsub("%x%x", function(h)
      return string.char(tonumber(h, 16))
    end))
  elseif kind == "l" then return table.move(list, 2, #list, 1, {})
  elseif kind ~= "d" then broken("no kind " .. tostring(kind)) end
  local out = {}
  for i = 2, #list, 2 do
    local key = list[i]
    if key == nil or key ~= key or list[i + 1] == nil then
      broken "a key without a value"
    end
    out[key] = list[i + 1]
  end
  return out
end

-- The value at position `at' of the text, and the position after it.
local function decode(s, at, tensors, level)
  local c = s:sub(at, at)
  if level > MOST_LEVELS + 1 then broken "nested too deep" end
  if c == '"' then return read_string(s, at + 1) end
  if c ~= "[" then
    local word = s:match("^[%w.+-]+", at) or broken("'" .. c .. "'")
    if word == "true" or word == "false" then
      return word == "true", at + #word
    end
    return tonumber(word) or broken(word), at + #word
  end
  local list, n = {}, 0
  repeat
    n = n + 1
    list[n], at = decode(s, at + 1, tensors, level + 1)
    c = s:sub(at, at)
  until c ~= ","
  if c ~= "]" then broken "a list has no end" end
  return build(list, tensors), at + 1
end

-- The nested tables for the tensors of a file and the text of their structure.
function all.from_flat(tensors, text)
  local v, at = decode(text, 1, tensors, 0)
  if at <= #text then broken "text after its end" end
  return v
end
