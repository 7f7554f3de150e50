-- SPDX-License-Identifier: MIT
-- PNG images: what is written is what is read, bit for bit; what is damaged
-- is an error and nothing worse.
local here = arg[0]:match "^(.*/)" or ""
local C = dofile(here .. "../lib/common.lua")

-- Without the library there is one clear error.
local ok, e = pcall(nacre.encode_png, nacre.zeros(1, 1))
if not ok and tostring(e):find "libpng 1.6, which was not found" then
  skip "there is no libpng"
end
assert(ok, e)

local path = os.tmpname()
local same = C.same

-- ---- round trips

nacre.manual_seed(1)
for _, size in ipairs {{1, 1}, {1, 7}, {5, 1}, {31, 17}, {64, 200}} do
  local h, w = table.unpack(size)
  for channels = 1, 4 do
    local x = nacre.randint(0, 256, {channels, h, w}, {dtype = "uint8"})
    nacre.png(path, x)
    same(x, nacre.readpng(path))
    same(x, nacre.decode_png(nacre.encode_png(x)))
    same(x, nacre.decode_png(nacre.encode_png(x, {compression_level = 0})))
    local deep = nacre.randint(0, 65536, {channels, h, w}, {dtype = "int32"})
    same(deep, nacre.decode_png(nacre.encode_png(deep)))
    same(deep, nacre.decode_png(nacre.encode_png(deep:long())))
  end
end

local x = nacre.randint(0, 256, {9, 12}, {dtype = "uint8"})
same(x, nacre.decode_png(nacre.encode_png(x))[1])
same(x:t():contiguous(), nacre.decode_png(nacre.encode_png(x:t()))[1])
local rgb = nacre.randint(0, 256, {9, 12, 3}, {dtype = "uint8"}):permute(3, 1,
    2)
same(rgb:contiguous(), nacre.decode_png(nacre.encode_png(rgb)))

-- ---- other dtypes

local function read(t) return nacre.decode_png(nacre.encode_png(t)) end
C.is(read(nacre.tensor {{0, 0.5, 1}, {-3.0, 7.5, 0 / 0}})[1],
     "{{0,128,255},{0,255,0}}")
C.is(read(nacre.tensor {{0, 0.25}}:half())[1], "{{0,64}}")
C.is(read(nacre.tensor {{true, false}})[1], "{{255,0}}")
C.is(read(nacre.tensor {{0, 300}})[1], "{{0,300}}")
C.fails("an element is -1, a PNG image has 0 to 65535", nacre.png, path,
        nacre.tensor {{1, -1}})
C.fails("an element is 65536", nacre.encode_png, nacre.tensor {{65536}})

-- ---- arguments

C.fails("an image is HxW or CxHxW", nacre.png, path, nacre.zeros(3))
C.fails("an image is HxW or CxHxW", nacre.png, path, nacre.zeros(0, 4))
C.fails("an image is HxW or CxHxW", "image:permute(3, 1, 2)", nacre.encode_png,
        nacre.zeros(8, 9, 3))
C.fails("the path comes first", nacre.png, x, path)
C.fails("compression_level is 0 to 9", nacre.png, path, x, 10)
C.fails("No such file", nacre.readpng, path .. ".no")
nacre.png(path, x) -- a file is no folder
C.fails("Not a directory", nacre.readpng, path .. "/x.png")
C.fails("Not a directory", nacre.png, path .. "/x.png", x)
C.fails("this is a directory", nacre.readpng, "/")

-- What cannot be written leaves what was there.
nacre.png(path, x)
C.works(nacre.png, path, nacre.tensor {{-1}})
same(x, nacre.readpng(path)[1])

-- ---- what is damaged

local function spoilt(text) return C.fails("decode_png", nacre.decode_png,
                                           text) end
local good = nacre.encode_png(nacre.randint(0, 256, {3, 20, 30},
                                            {dtype = "uint8"}))
C.fails("this is not a PNG image", nacre.decode_png, "")
C.fails("this is not a PNG image", nacre.decode_png, "GIF89a and so on")
for n = 0, #good - 1 do spoilt(good:sub(1, n)) end

-- A crc over a changed header: libpng itself must not be asked to believe it.
local crc32 = dofile(here .. "../lib/crc32.lua")
local function chunk(kind, data)
  return (">I4"):pack(#data) .. kind .. data ..
         (">I4"):pack(crc32(kind .. data))
end
local function header(w, h, depth, color, interlace)
  return "\137PNG\r\n\26\n" ..
         chunk("IHDR", (">I4I4BBBBB"):pack(w, h, depth, color, 0, 0,
                                           interlace or 0))
end
local function rest(text) return text:sub(34) end
C.fails("cannot be unpacked from", nacre.decode_png,
        header(1000000, 1000000, 8, 2) .. rest(good))
C.fails("cannot be unpacked from", nacre.decode_png,
        header(2147483647, 2147483647, 16, 6) .. rest(good))
for _, h in ipairs {{0, 5, 8, 2}, {5, 0, 8, 2}, {1 << 31, 1, 8, 0},
                    {4, 4, 3, 0}, {4, 4, 16, 3}, {4, 4, 8, 1}, {4, 4, 8, 7},
                    {4, 4, 8, 255}} do
  C.fails("the header is damaged", nacre.decode_png,
          header(table.unpack(h)) .. rest(good))
end
for _, h in ipairs {{31, 20, 8, 2}, {30, 21, 8, 2}, {30, 20, 8, 6},
                    {30, 20, 16, 2},
                    {30, 20, 8, 3}, {30, 20, 8, 2, 9}} do
  spoilt(header(table.unpack(h)) .. rest(good))
end

-- Palettes, few bits, transparency and interlacing, made by hand: the rows
-- are stored, not compressed.
local function adler(text)
  local a, b = 1, 0
  for _, c in ipairs {text:byte(1, -1)} do
    a = (a + c) % 65521
    b = (b + a) % 65521
  end
  return (">I4"):pack(b << 16 | a)
end
local function pixels(rows)
  return chunk("IDAT", "\x78\x01\1" .. ("<I2I2"):pack(#rows, ~#rows & 0xffff) ..
               rows ..
               adler(rows)) .. chunk("IEND", "")
end
local palette = chunk("PLTE", "\1\2\3\4\5\6\7\8\9")
C.is(nacre.decode_png(header(3, 1, 2, 3) .. palette .. pixels "\0\x18"),
     "{{{1,4,7}},{{2,5,8}},{{3,6,9}}}")
C.is(nacre.decode_png(header(3, 1, 2, 3) .. palette .. chunk("tRNS",
    "\0\100") ..
                      pixels "\0\x18"),
     "{{{1,4,7}},{{2,5,8}},{{3,6,9}},{{0,100,255}}}")
C.is(nacre.decode_png(header(8, 1, 1, 0) .. pixels "\0\x81"),
     "{{{255,0,0,0,0,0,0,255}}}")
C.is(nacre.decode_png(header(2, 1, 8, 0) .. chunk("tRNS", "\0\9") ..
                      pixels "\0\9\8"),
     "{{{9,8}},{{0,255}}}")
-- 3x3 by Adam7: passes of 1, 1, 1, 2, 1 and 3 pixels
C.is(nacre.decode_png(header(3, 3, 8, 0, 1) ..
                      pixels "\0\1\0\3\0\7\9\0\2\0\8\0\4\5\6"),
     "{{{1,2,3},{4,5,6},{7,8,9}}}")

-- 16 bits by Adam7: a line is read in parts
C.is(nacre.decode_png(header(2, 2, 16, 0, 1) ..
                      pixels "\0\1\0\0\2\0\0\3\0\4\0"),
     "{{{256,512},{768,1024}}}")

-- ---- what a chunk or the header declares takes no memory

local dot = header(1, 1, 8, 0)
for _, kind in ipairs {"iTXt", "tEXt", "zTXt", "sPLT", "pCAL", "sCAL", "iCCP",
                       "eXIf", "noNe", "IDAT", "PLTE", "tRNS"} do
  C.fails('chunk "' .. kind .. '" has 2147483632 bytes', nacre.decode_png,
          dot .. "\x7f\xff\xff\xf0" .. kind .. "abc" .. ("\0"):rep(40))
end
C.fails('chunk "\\x1b[m\\x00" has', nacre.decode_png,
        dot .. "\1\0\0\0\27[m\0" .. ("\0"):rep(40))
-- Texts that deflate makes 64 MiB of, before and behind the pixels.
local zeros = nacre.encode_png(nacre.zeros(4096, 4096, {dtype = "uint8"}),
                               {compression_level = 9})
local stream = zeros:sub(42, 41 + (">I4"):unpack(zeros, 34))
local texts = ""
for _ = 1, 4 do
  texts = texts .. chunk("zTXt", "a\0\0" .. stream) ..
      chunk("iTXt", "b\0\1\0\0\0" .. stream) ..
      chunk("iCCP", "c\0\0" .. stream)
end
local one = pixels "\0\9"
local limit = nacre.set_memory_limit
collectgarbage()              -- what was encoded counts
limit(4 << 20)
C.is(nacre.decode_png(dot .. texts .. one:sub(1, -13) .. texts ..
                      one:sub(-12)), "{{{9}}}")
-- The image is judged before a pixel is read.
C.fails("needs 16.0 MiB", nacre.decode_png, zeros)
limit(0)

os.remove(path)
