-- SPDX-License-Identifier: MIT
-- .safetensors files, damaged in their header or in what it says of the data.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local DTYPES <const> = {bool = "BOOL", uint8 = "U8", int8 = "I8", int16 = "I16",
  int32 = "I32", int64 = "I64", float16 = "F16", bfloat16 = "BF16",
  float32 = "F32", float64 = "F64"}
local OTHER <const> = {"U16", "U32", "U64", "F8_E4M3", "F4", "C64", "", "f32",
                       "F3\\u0032", "\255"}
local ORDER <const> = {"dtype", "shape", "data_offsets"}

local function json_text(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return ("\\u%04x"):format(c:byte())
  end) .. '"'
end

-- An entry of the header: its name, and its fields as text.
local function entry(name, t, at)
  local n = t:numel() * t:element_size()
  return {name = json_text(name), order = ORDER, dtype = '"' ..
          DTYPES[t.dtype] .. '"', first = ("%d"):format(at),
          last = ("%d"):format(at + n), at = at, size = n,
          shape = "[" .. table.concat(t:size(), ",") .. "]"}
end

local entry_changes = {
  function(e) e.first = choose.number_text(e.at) end,
  function(e) e.last = choose.number_text(e.at + e.size) end,
  function(e) e.dtype = '"' .. choose.from(OTHER) .. '"' end,
  function(e) e.name = '"' .. choose.name():sub(1, 3000) .. '"' end,
  function(e) e.name = json_text(choose.name()) end,
  function(e) e.order = choose.rearrange(ORDER) end,
  function(e)
    local sizes = {}
    for d = 1, choose.from {1, 1, 2, 3, 8, 9, 100} do
      sizes[d] = choose.number_text(random(0, 5))
    end
    e.shape = "[" .. table.concat(sizes, ",") .. "]"
  end,
  function(e)
    e.shape = choose.from {"{}", "[[1]]", "3", "[", "null", "[1,]"}
  end,
  function(e) e.more = choose.from {',"x":1', ',"dtype":"F32"', ","} end,
}

local function entry_text(e)
  local fields = {}
  for i, key in ipairs(e.order) do
    fields[i] = ('"%s":%s'):format(key, key == "data_offsets" and
                  ("[%s,%s]"):format(e.first, e.last) or e[key])
  end
  return ("%s:{%s%s}"):format(e.name, table.concat(fields, ","), e.more or "")
end

local METADATA <const> = {'{"a":1}', '{"a":"b","a":"c"}', "[]", "null",
  '{"a":null}', '{"":""}', '{"nacre":"{}"}', '{"nacre":"[[[["}',
  '{"nacre":"\\u0000"}', '{"\\ud800":"x"}', '{"a":"\\ud83d\\ude00"}',
  ('{"a":"%s"}'):format(("b"):rep(9000)), ("["):rep(3000), '{"a":"\\x"}'}

local header_changes = {
  function(h) h.length = choose.other_integer end,
  function(h) h.text = choose.damage(h.text) end,
  function(h) h.text = choose.damage(h.text) end,
  function(h)
    h.text = h.text .. choose.from {" ", "}", "\0", "x", (" "):rep(99)}
  end,
  function(h) h.text = choose.from {" ", "\xef\xbb\xbf", "[", "\n"} .. h.text
  end,
  function(h) h.cut = true end,
  function(h) h.data = choose.damage(h.data) end,
}

local function assemble(h)
  local n = h.length and h.length(#h.text) or #h.text
  local s = string.pack("<i8", n) .. h.text .. h.data
  return h.cut and choose.cut(s, {8, 8 + #h.text, #s}) or s
end

local maker = {ratio = 4, map = true, format = "safetensors"}

-- The bytes of a file of these tensors, a list of {name, tensor}; metadata: as
-- JSON, or nil.
function maker.build(tensors, metadata, damaged)
  local entries, data, at = {}, {}, 0
  for i, pair in ipairs(tensors) do
    entries[i] = entry(pair[1], pair[2], at)
    data[i] = pair[2]:contiguous():tobytes()
    at = at + #data[i]
  end
  if damaged and entries[1] and choose.once_in(2) then
    choose.from(entry_changes)(choose.from(entries))
    damaged = choose.once_in(4)
  end
  if damaged and choose.once_in(4) then
    entries, damaged = choose.rearrange(entries), choose.once_in(2)
  end
  for i, e in ipairs(entries) do entries[i] = entry_text(e) end
  if metadata then
    table.insert(entries, random(#entries + 1), '"__metadata__":' .. metadata)
  end
  local h = {text = "{" .. table.concat(entries, ",") .. "}",
             data = table.concat(data)}
  h.text = h.text .. (" "):rep(-#h.text % 8)
  if damaged then choose.from(header_changes)(h) end
  return assemble(h)
end

function maker.tensors()
  local list, want = {}, {}
  for i = 1, random(0, 3) do
    list[i] = {choose.from {"w", "a.b", "é", "x/y"} .. i, choose.tensor()}
    want[list[i][1]] = list[i][2]
  end
  return list, want
end

function maker.make(damaged)
  local list, want = maker.tensors()
  local metadata = damaged and choose.once_in(4) and choose.from(METADATA) or
                   choose.once_in(3) and '{"format":"pt"}' or nil
  return {{"x.safetensors", maker.build(list, metadata, damaged)}},
         not damaged and want or nil
end

return maker
