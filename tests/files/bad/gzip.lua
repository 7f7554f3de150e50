-- SPDX-License-Identifier: MIT
-- .npy files that are compressed by gzip, stored or zeros alone, and what is
-- wrong with what is around them.

local choose = dofile(HERE .. "bad/random.lua")
local crc32 = dofile(HERE .. "../lib/crc32.lua")
local deflate = dofile(HERE .. "bad/deflate.lua")
local npy = dofile(HERE .. "bad/npy.lua")
local random = math.random

-- A member of gzip: its header with optional fields, and its trailer.
local function member(p)
  local flags = (p.extra and 4 or 0) | (p.name and 8 or 0)
  local head = string.pack("<BBBBI4BB", p.magic, 0x8b, p.method,
                           p.flags or flags, 0, 0, 255)
  if p.extra then head = head .. string.pack("<s2", p.extra) end
  if p.name then head = head .. p.name .. "\0" end
  return head .. p.packed .. string.pack("<I4I4", p.crc, p.size & 0xffffffff)
end

local function pieces(s)
  return {magic = 0x1f, method = 8, packed = deflate.stored(s),
          crc = crc32(s), size = #s, name = choose.once_in(2) and "x.npy",
          extra = choose.once_in(2) and "ab\1\0x"}
end

local changes = {
  function(p) p.magic = random(0, 255) end,
  function(p) p.method = random(0, 255) end,
  function(p) p.flags = random(0, 255) end,
  function(p) p.crc = random(0, 1 << 31) end,
  function(p) p.size = choose.other_integer(p.size) end,
  function(p) p.packed = choose.damage(p.packed) end,
  function(p) p.packed = deflate.zlib_zeros(1 + 258 * 4000):sub(3, -5) end,
  function(p) p.name = ("n"):rep(70000) end,
}

-- A byte may become 1032, in memory that was doubled; the result is copied.
local maker = {format = "npy", ratio = 8 * 1032}

function maker.make(damaged)
  local s, t = npy.bytes(false)
  local cut = choose.once_in(4) and random(0, #s) or #s
  if damaged and choose.once_in(4) then s, t = npy.bytes(true) end
  local parts = {pieces(s:sub(1, cut))}
  if cut < #s then parts[2] = pieces(s:sub(cut + 1)) end
  for i, p in ipairs(parts) do
    if damaged then choose.from(changes)(p) end
    parts[i] = member(p)
  end
  if damaged and choose.once_in(4) then parts = choose.rearrange(parts) end
  s = table.concat(parts)
  if damaged and choose.once_in(4) then s = choose.cut(s, {0, 3, 10, #s}) end
  return {{"x.npy.gz", s}}, not damaged and t or nil
end

return maker
