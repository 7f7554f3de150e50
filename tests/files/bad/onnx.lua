-- SPDX-License-Identifier: MIT
-- ONNX models with initializers, damaged in their messages.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local TYPES <const> = {float32 = 1, uint8 = 2, int8 = 3, int16 = 5, int32 = 6,
  int64 = 7, bool = 9, float16 = 10, float64 = 11, bfloat16 = 16}
-- The field of the numbers of a type, and how they are packed there.
local FIELDS <const> = {float32 = {4, "<f"}, float64 = {10, "<d"},
  int64 = {7}, int32 = {5}, int16 = {5}, int8 = {5}, uint8 = {5}, bool = {5}}

local function varint(v)
  local s = ""
  while v > 127 or v < 0 do
    s = s .. string.char(v & 127 | 128)
    v = v >> 7
  end
  return s .. string.char(v)
end

local function number(field, v) return varint(field << 3) .. varint(v) end
local function bytes(field, s) return varint(field << 3 | 2) .. varint(#s) .. s
end

-- The elements in a field of numbers.
local function typed(t)
  local field, form = table.unpack(FIELDS[t.dtype])
  local parts = {}
  for i, v in ipairs(t:reshape(-1):tolist()) do
    if type(v) == "boolean" then v = v and 1 or 0 end
    parts[i] = form and string.pack(form, v) or varint(v)
  end
  return bytes(field, table.concat(parts))
end

local function external(location, ...)
  local s = number(14, 1) ..
            bytes(13, bytes(1, "location") .. bytes(2, location))
  for i, v in ipairs {...} do
    s = s .. bytes(13, bytes(1, ({"offset", "length"})[i]) .. bytes(2, v))
  end
  return s
end

-- The pieces of a message TensorProto.
local function pieces(name, t)
  local p = {name = bytes(8, name), type = number(2, TYPES[t.dtype])}
  local sizes = {}
  for d, n in ipairs(t:size()) do sizes[d] = varint(n) end
  if choose.once_in(2) then p.sizes = bytes(1, table.concat(sizes))
  else
    for d, n in ipairs(t:size()) do sizes[d] = number(1, n) end
    p.sizes = table.concat(sizes)
  end
  local few = FIELDS[t.dtype] and choose.once_in(3)
  p.data = few and typed(t) or bytes(9, t:contiguous():tobytes())
  return p
end

local changes = {
  function(p) p.type = number(2, random(0, 30)) end,
  function(p) p.sizes = p.sizes .. number(1, choose.other_integer(2)) end,
  function(p) p.sizes = bytes(1, varint(choose.other_integer(9)):rep(random(9)))
  end,
  function(p) p.data = choose.damage(p.data) end,
  function(p) p.data = number(9, 1) end,
  function(p)
    p.data = bytes(choose.from {4, 5, 6, 7, 10, 11}, "\1\2\3\4\5")
  end,
  function(p) p.data = "" end,
  function(p) p.name = choose.from {"", bytes(8, choose.name():sub(1, 3000))}
  end,
  function(p)
    p.data = external(choose.from {"x.onnx", "nosuch", "../x.onnx", "/dev/zero",
                                   "", ".", "a\0b"},
                      choose.number_text(0), choose.number_text(4))
  end,
}

local function assemble(tensors, extra)
  local graph = {}
  for i, p in ipairs(tensors) do
    graph[i] = bytes(5, p.sizes .. p.type .. p.data .. p.name)
  end
  return number(1, 8) .. bytes(2, "maker") .. (extra or "") ..
         bytes(7, table.concat(graph))
end

local EXTRA <const> = {bytes(14, bytes(1, "k") .. bytes(2, "é")),
  bytes(14, bytes(1, "k")), bytes(14, ""), bytes(14, bytes(1, "\xff")),
  number(5, -1), "\11", "\7", bytes(1, "x"), number(7, 3), bytes(14, "\10\99")}

-- ratio: a number of one byte becomes 8 in two places
local maker = {ratio = 40, map = true, format = "onnx"}

function maker.write(tensors)
  local list = {}
  for name, t in pairs(tensors) do
    list[#list + 1] = pieces("t" .. name, t)
  end
  return assemble(list)
end

function maker.make(damaged)
  local list, want = {}, {}
  for i = 1, random(0, 3) do
    local name, t = choose.from {"w", "a.b", "é"} .. i, choose.tensor()
    list[i], want[name] = pieces(name, t), t
  end
  if not damaged then return {{"x.onnx", assemble(list, EXTRA[1])}}, want end
  if list[1] and not choose.once_in(3) then
    choose.from(changes)(choose.from(list))
  end
  local s = assemble(list, choose.from(EXTRA))
  if choose.once_in(2) then s = choose.damage(s) end
  return {{"x.onnx", s}}
end

return maker
