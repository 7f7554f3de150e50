-- SPDX-License-Identifier: MIT
-- PNG images made chunk by chunk.

local choose = dofile(HERE .. "bad/random.lua")
local crc32 = dofile(HERE .. "../lib/crc32.lua")
local deflate = dofile(HERE .. "bad/deflate.lua")
local random = math.random

local ANCILLARY <const> = {"iTXt", "tEXt", "zTXt", "sPLT", "pCAL", "sCAL",
  "iCCP", "eXIf", "gAMA", "cHRM", "sRGB", "tRNS", "bKGD", "hIST", "pHYs",
  "tIME", "PLTE", "IDAT", "IHDR", "IEND", "acTL", "fcTL", "XXXX", "a\0b\1",
  "sBIT"}
local CHANNELS <const> = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4}

-- Scan lines of random bytes, each behind its filter.
local function lines(width, height, bits)
  local out = {}
  for y = 1, height do
    out[y] = choose.from {"\0", "\1", "\2", "\3", "\4"}
    for _ = 1, (width * bits + 7) // 8 do
      out[y] = out[y] .. string.char(random(0, 255))
    end
  end
  return table.concat(out)
end

local function image()
  local kind = choose.from {0, 2, 3, 4, 6}
  local depth = kind == 3 and choose.from {1, 2, 4, 8} or
                choose.from {8, 8, 16}
  local w, h = random(1, 9), random(1, 9)
  local p = {width = w, height = h, depth = depth, kind = kind, method = 0,
             filter = 0, interlace = 0,
             data = lines(w, h, depth * CHANNELS[kind])}
  return p
end

local function chunk(c)
  local length = c.length or #c.data
  return string.pack(">I4", length & 0xffffffff) .. c.kind .. c.data ..
         string.pack(">I4", c.crc or crc32(c.kind .. c.data))
end

local function chunks_of(p)
  local list = {{kind = "IHDR", data = string.pack(">I4I4BBBBB",
    p.width & 0xffffffff, p.height & 0xffffffff, p.depth & 255, p.kind & 255,
    p.method, p.filter, p.interlace)}}
  if p.kind == 3 then
    list[2] = {kind = "PLTE", data = ("\1\2\3"):rep(p.palette or
                                                    1 << p.depth)}
  end
  list[#list + 1] = {kind = "IDAT", data = p.packed or deflate.zlib(p.data)}
  list[#list + 1] = {kind = "IEND", data = ""}
  return list
end

local image_changes = {
  function(p) p.width = choose.other_integer(p.width) end,
  function(p) p.height = choose.other_integer(p.height) end,
  function(p) p.depth = random(0, 17) end,
  function(p) p.kind = random(0, 8) end,
  function(p) p.interlace = random(1, 2) end,
  function(p) p.method, p.filter = random(0, 1), random(0, 255) end,
  function(p) p.data = choose.damage(p.data) end,
  function(p) p.packed = choose.damage(deflate.zlib(p.data)) end,
  function(p) p.palette = choose.from {0, 1, 86, 257, 1000} end,
  function(p) p.packed = deflate.zlib_zeros(1 + 258 * 4000) end,
}

local chunk_changes = {
  function(list) choose.from(list).length = choose.other_integer(13) end,
  function(list) choose.from(list).crc = random(0, 1 << 31) end,
  function(list) choose.from(list).kind = choose.from(ANCILLARY) end,
  function(list) local c = choose.from(list) c.data = choose.damage(c.data) end,
  function(list)
    table.insert(list, random(#list + 1), {kind = choose.from(ANCILLARY),
      data = choose.from {"", "abc", "k\0\0" .. deflate.zlib "x",
        "k\0\0" .. deflate.zlib_zeros(1 + 258 * 4000),
        "k\0\1\0\0\0" .. deflate.zlib_zeros(1 + 258 * 4000), ("x"):rep(9000)}})
  end,
}

-- A compressed byte may be 1032 bytes, each of 8 pixels of 4 bytes.
local maker = {format = "png", ratio = 1032 * 8 * 4}

function maker.make(damaged)
  local p = image()
  if damaged and choose.once_in(2) then choose.from(image_changes)(p) end
  local list = chunks_of(p)
  if damaged and choose.once_in(2) then choose.from(chunk_changes)(list) end
  if damaged and choose.once_in(4) then list = choose.rearrange(list) end
  local s, bounds = "\x89PNG\r\n\26\n", {8}
  for i, c in ipairs(list) do
    s = s .. chunk(c)
    bounds[i + 1] = #s
  end
  if damaged and choose.once_in(6) then s = choose.cut(s, bounds) end
  if damaged and choose.once_in(6) then s = choose.damage(s) end
  return {{"x.png", s}}
end

-- Fails if there is no library for such files.
function maker.probe() nacre.encode_png(nacre.zeros(1, 1)) end

return maker
