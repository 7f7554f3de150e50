-- SPDX-License-Identifier: MIT
-- GGUF files, damaged in their header or in what it says of the tensors.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local TYPES <const> = {float32 = 0, float16 = 1, int8 = 24, int16 = 25,
                       int32 = 26, int64 = 27, float64 = 28, bfloat16 = 30}
-- The bytes of a block of the quantized types, and its elements.
local BLOCKS <const> = {[2] = {18, 32}, [3] = {20, 32}, [6] = {22, 32},
  [7] = {24, 32}, [8] = {34, 32}, [10] = {84, 256}, [11] = {110, 256},
  [12] = {144, 256}, [13] = {176, 256}, [14] = {210, 256}}
local OTHER <const> = {4, 5, 9, 15, 16, 31, 39, 99, 1 << 31, 0xffffffff}

local function text(s) return string.pack("<s8", s) end

-- A value of the metadata: its type and its bytes.
local VALUES <const> = {
  function() return 4, string.pack("<I4", random(0, 1 << 20)) end,
  function() return 5, string.pack("<i4", -random(0, 99)) end,
  function() return 6, string.pack("<f", random()) end,
  function() return 7, string.pack("B", random(0, 1)) end,
  function() return 8, text(choose.name():sub(1, 3000)) end,
  function() return 12, string.pack("<d", random()) end,
  function() return 10, string.pack("<i8", random(0)) end,
  function()
    local n, parts = random(0, 5), {}
    for i = 1, n do parts[i] = text(choose.from {"a", "\"", "é", "\1"}) end
    return 9, string.pack("<I4I8", 8, n) .. table.concat(parts)
  end,
  function() return 9, string.pack("<I4I8fff", 6, 3, 1, 0 / 0, -2.5) end,
}

local function pair()
  local kind, bytes = choose.from(VALUES)()
  return {name = "k" .. random(1 << 30), kind = kind, value = bytes}
end

-- An entry of a tensor, and what it holds if that is not chance.
local function dense_entry(name, t)
  return {name = name, sizes = t:size(), type = TYPES[t.dtype],
          data = t:contiguous():tobytes()}
end

-- Blocks of integers times 1, so that the elements are known.
local function entry_of_q8(name)
  local parts, rows = {}, random(0, 3)
  local t = nacre.randint(-128, 128, {rows, 64}, {dtype = "int8"})
  local bytes = t:tobytes()
  for i = 1, #bytes, 32 do
    parts[#parts + 1] = "\0\60" .. bytes:sub(i, i + 31)
  end
  return {name = name, sizes = {rows, 64}, type = 8,
          data = table.concat(parts)}, t:float()
end

local function entry_of_blocks(name)
  local type = choose.from {2, 3, 6, 7, 8, 10, 11, 12, 13, 14}
  local bytes, elements = table.unpack(BLOCKS[type])
  local n, data = random(3), {}
  for i = 1, n * bytes do data[i] = string.char(random(0, 255)) end
  return {name = name, sizes = {1, n * elements}, type = type,
          data = table.concat(data)}
end

local entry_changes = {
  function(e) e.type = choose.from(OTHER) end,
  function(e) e.type = random(0, 40) end,
  function(e) e.at = choose.other_integer(e.at or 0) end,
  function(e) e.name = choose.name():sub(1, 3000) end,
  function(e) e.dims = choose.other_integer(#e.sizes) end,
  function(e)
    local d = #e.sizes
    if d > 0 then e.sizes[random(d)] = choose.other_integer(3) end
  end,
  function(e) e.data = choose.damage(e.data) end,
}

local pair_changes = {
  function(p) p.kind = random(0, 13) end,
  function(p) p.value = choose.damage(p.value) end,
  function(p) p.name = choose.name():sub(1, 3000) end,
  function(p)
    p.name, p.kind = "general.alignment", 4
    p.value = string.pack("<I4", choose.other_integer(32) & 0xffffffff)
  end,
  function(p)                   -- lists in lists
    p.kind, p.value = 9, string.pack("<I4I8", 9, 1):rep(random(1, 2000))
  end,
}

local header_changes = {
  function(h) h.version = choose.from {0, 1, 4, 0x03000000, 0xffffffff} end,
  function(h) h.tensors = choose.other_integer(#h.entries) end,
  function(h) h.count = choose.other_integer(#h.pairs) end,
  function(h) h.cut = true end,
  function(h) h.entries = choose.rearrange(h.entries) end,
}

-- The bytes of an entry in the header; its data go to `data' of `at' bytes.
local function entry_bytes(e, data, at)
  data[#data + 1] = e.data .. ("\0"):rep(-#e.data % 32)
  local dims = (e.dims or #e.sizes) & 0xffffffff
  local s = text(e.name) .. string.pack("<I4", dims)
  for d = #e.sizes, 1, -1 do s = s .. string.pack("<i8", e.sizes[d]) end
  return s .. string.pack("<I4i8", e.type, e.at or at), at + #data[#data]
end

local function assemble(h)
  local s = "GGUF" .. string.pack("<I4i8i8", h.version or choose.from {2, 3},
                                  h.tensors or #h.entries, h.count or #h.pairs)
  for _, p in ipairs(h.pairs) do
    s = s .. text(p.name) .. string.pack("<I4", p.kind) .. p.value
  end
  local data, at, bytes = {}, 0, nil
  local bounds = {4, 8, 24, #s}
  for _, e in ipairs(h.entries) do
    bytes, at = entry_bytes(e, data, at)
    s = s .. bytes
    bounds[#bounds + 1] = #s
  end
  s = s .. ("\0"):rep(-#s % 32) .. table.concat(data)
  bounds[#bounds + 1] = #s
  return h.cut and choose.cut(s, bounds) or s
end

local function damage(h)
  for _ = 1, random(2) do
    local kind = random(3)
    if kind == 1 and h.entries[1] then
      choose.from(entry_changes)(choose.from(h.entries))
    elseif kind == 2 and h.pairs[1] then
      choose.from(pair_changes)(choose.from(h.pairs))
    else
      choose.from(header_changes)(h)
    end
  end
end

-- ratio: blocks of 84 bytes become 1 KiB; a list of bools becomes its names
local maker = {ratio = 40, map = true, format = "gguf"}

function maker.write(tensors)
  local h = {entries = {}, pairs = {}}
  for name, t in pairs(tensors) do
    h.entries[#h.entries + 1] = dense_entry("t" .. name, t)
  end
  return assemble(h)
end

function maker.make(damaged)
  local h, want = {entries = {}, pairs = {}}, {}
  for i = 1, random(0, 4) do h.pairs[i] = pair() end
  for i = 1, random(0, 3) do
    local name, e, t = choose.from {"w", "a.b", "é"} .. i, nil, nil
    if choose.once_in(3) then e, t = entry_of_q8(name)
    elseif damaged and choose.once_in(2) then e = entry_of_blocks(name)
    else
      repeat t = choose.tensor() until TYPES[t.dtype]
      e = dense_entry(name, t)
    end
    h.entries[i], want[name] = e, t
  end
  if damaged then damage(h) end
  return {{"x.gguf", assemble(h)}}, not damaged and want or nil
end

return maker
