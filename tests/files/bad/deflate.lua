-- SPDX-License-Identifier: MIT
-- Streams of deflate and zlib, made without a compressor.

local deflate = {}

-- The bytes in blocks that are stored.
function deflate.stored(s)
  local parts = {}
  repeat
    local part = s:sub(1, 65535)
    s = s:sub(65536)
    parts[#parts + 1] = string.pack("<BI2I2", #s == 0 and 1 or 0, #part,
                                    ~#part & 0xffff) .. part
  until #s == 0
  return table.concat(parts)
end

-- The bytes of a list of bits, the lowest first.
local function packed(bits)
  local out = {}
  for i = 1, #bits, 8 do
    local byte = 0
    for k = 0, 7 do byte = byte | (bits[i + k] or 0) << k end
    out[#out + 1] = string.char(byte)
  end
  return table.concat(out)
end

-- A block of fixed codes that expands to 1 + 258 * n zeros.
local function zero_block(n)
  local bits = {1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0} -- last, fixed, a zero byte
  for _ = 1, n do                 -- 258 bytes from one byte before
    for _, bit in ipairs {1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0} do
      bits[#bits + 1] = bit
    end
  end
  for _ = 1, 7 do bits[#bits + 1] = 0 end
  return packed(bits)
end

local known = {}

-- The bytes s and n zeros, n = 1 + 258 * k, of which 158 take a byte.
function deflate.zeros(s, n)
  assert((n - 1) % 258 == 0)
  known[n] = known[n] or zero_block((n - 1) // 258)
  return string.pack("<BI2I2", 0, #s, ~#s & 0xffff) .. s .. known[n]
end

local function adler32(s)
  local a, b = 1, 0
  for i = 1, #s do
    a = (a + s:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b << 16 | a
end

-- The bytes as a stream of zlib.
function deflate.zlib(s)
  return "\x78\1" .. deflate.stored(s) .. string.pack(">I4", adler32(s))
end

-- n = 1 + 258 * k zeros as such a stream.
function deflate.zlib_zeros(n)
  return "\x78\1" .. deflate.zeros("", n) ..
         string.pack(">I4", n % 65521 << 16 | 1)
end

return deflate
