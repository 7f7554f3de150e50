-- SPDX-License-Identifier: MIT
-- JPEG images made segment by segment: blocks of one value each, so that what
-- they decode to is known without an encoder.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local SOF <const>, DHT <const>, DQT <const>, SOS <const> = 0xc0, 0xc4, 0xdb,
                                                           0xda
local OTHERS <const> = {0xc1, 0xc2, 0xc3, 0xc5, 0xc9, 0xca, 0xcc, 0xcf, 0xd8,
  0xd9, 0xdc, 0xdd, 0xe0, 0xe1, 0xee, 0xfe, 0x00, 0x01, 0xff}

-- The bits of the difference d: its length in 4 bits, and as many of its own,
-- those of a negative one less 1; then one 0, the end of the block.
local function block(d)
  local n = 0
  while math.abs(d) >= 1 << n do n = n + 1 end
  local bits, v = {}, d < 0 and d + (1 << n) - 1 or d
  for i = 3, 0, -1 do bits[#bits + 1] = n >> i & 1 end
  for i = n - 1, 0, -1 do bits[#bits + 1] = v >> i & 1 end
  bits[#bits + 1] = 0
  return table.concat(bits)
end

-- The bytes of the bits, filled up with ones; 255 has a zero behind it.
local function packed(bits)
  bits = bits .. ("1"):rep(-#bits % 8)
  return (bits:gsub("........", function(b)
    local c = string.char(tonumber(b, 2))
    return c == "\255" and "\255\0" or c
  end))
end

-- The values of all blocks, row by row, and their code; a channel of colour has
-- none.
local function scan(p)
  local values, bits, last = {}, {}, 0
  for i = 1, p.rows * p.columns do
    values[i] = random(0, 255)
    bits[#bits + 1] = block(values[i] - 128 - last)
    last = values[i] - 128
    for _ = 2, p.channels do bits[#bits + 1] = block(0) end
  end
  return values, packed(table.concat(bits))
end

-- The image: in a block all pixels have its value.
local function pixels(p)
  local t = nacre.tensor(p.values, {dtype = "uint8"}):reshape(p.rows, p.columns)
  t = t:repeat_interleave(8, 1):repeat_interleave(8, 2)
  t = t[{{1, p.height}, {1, p.width}}]
  return t:expand(p.channels, p.height, p.width):contiguous()
end

local function image()
  local p = {rows = random(3), columns = random(3),
             channels = choose.from {1, 3}}
  p.height = p.rows * 8 - random(0, 7)
  p.width = p.columns * 8 - random(0, 7)
  p.values, p.data = scan(p)
  return p
end

local function segments_of(p)
  local parts, ids = {}, {}
  for c = 1, p.channels do
    parts[c] = string.char(c, p.sampling or 0x11, 0)
    ids[c] = string.char(c, 0)
  end
  return {
    {0xe0, "JFIF\0\1\1\0\0\1\0\1\0\0"},
    {DQT, "\0" .. ("\8"):rep(64)},
    {p.frame or SOF, string.pack(">BI2I2B", p.bits or 8, p.height & 0xffff,
                                 p.width & 0xffff, p.told or p.channels) ..
                     table.concat(parts)},
    {DHT, "\0\0\0\0\12" .. ("\0"):rep(12) .. "\0\1\2\3\4\5\6\7\8\9\10\11"},
    {DHT, "\16\1" .. ("\0"):rep(15) .. "\0"},
    {SOS, string.char(p.told or p.channels) .. table.concat(ids) .. "\0\63\0",
     p.data},
  }
end

local image_changes = {
  function(p) p.width = choose.other_integer(p.width) end,
  function(p) p.height = choose.other_integer(p.height) end,
  function(p) p.told = random(0, 5) end,
  function(p) p.bits = random(0, 17) end,
  function(p) p.sampling = random(0, 255) end,
  function(p) p.frame = random(0xc0, 0xcf) end,
  function(p) p.data = choose.damage(p.data) end,
  function(p) p.data = p.data .. ("\255\218\0\3\0\0"):rep(random(0, 300)) end,
}

local segment_changes = {
  function(s) s.length = choose.other_integer(#s[2]) end,
  function(s) s[1] = choose.from(OTHERS) end,
  function(s) s[2] = choose.damage(s[2]) end,
  function(s) s[2] = "Exif\0\0" .. s[2] end,
}

-- 512 pixels of a byte, of 3 channels, which libjpeg-turbo holds as 16 bits.
local maker = {format = "jpg", ratio = 512 * 3 * 4}

function maker.make(damaged)
  local p = image()
  if damaged and choose.once_in(2) then choose.from(image_changes)(p) end
  local list, s, bounds = segments_of(p), "\255\216", {2}
  if damaged and choose.once_in(2) then
    choose.from(segment_changes)(choose.from(list))
  end
  if damaged and choose.once_in(4) then list = choose.rearrange(list) end
  for i, segment in ipairs(list) do
    local length = (segment.length or #segment[2]) + 2 & 0xffff
    s = s .. string.pack(">BBI2", 255, segment[1], length) .. segment[2] ..
        (segment[3] or "")
    bounds[i + 1] = #s
  end
  s = s .. "\255\217"
  if damaged and choose.once_in(6) then s = choose.cut(s, bounds) end
  if damaged and choose.once_in(6) then s = choose.damage(s) end
  return {{"x.jpg", s}}, not damaged and pixels(p) or nil
end

-- Fails if there is no library for such files.
function maker.probe() nacre.serialize(nacre.zeros(1, 1), {format = "jpg"}) end

return maker
