-- SPDX-License-Identifier: MIT
-- JPEG images: what is written is read as nearly the same, and exactly as an
-- image that was made by hand; EXIF data change nothing.
-- Run by: nacre tests/files/jpeg.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
HERE = here
local C = dofile(here .. "../lib/common.lua")
local maker = dofile(here .. "bad/jpg.lua")
local fails = C.fails

local ok, e = pcall(maker.probe)
if not ok and tostring(e):find "libturbojpeg, which was not found" then
  skip "there is no libturbojpeg"
end
assert(ok, e)

local path = os.tmpname() .. ".jpg"
local function encode(x, o)
  o = o or {}
  o.format = "jpg"
  return nacre.serialize(x, o)
end

-- ---- what is written

local ramp = nacre.linspace(0, 1, 40)
for _, x in ipairs {ramp:expand(1, 30, 40), ramp:expand(3, 30, 40),
                    ramp:expand(30, 40), ramp:expand(1, 1, 40)} do
  nacre.save(path, x, {quality = 95})
  local y = nacre.load(path)
  local want = (x * 255):round():expand(y:size())
  assert(y.dtype == "uint8")
  assert((y:float() - want):abs():max():item() <= 3)
  C.same(nacre.deserialize(encode(x, {quality = 95})), y)
  C.same(nacre.deserialize(encode((x * 255):round():to "uint8",
                                  {quality = 95})), y)
  C.same(nacre.deserialize(encode((x * 255):round():long(), {quality = 95})),
         y)
end
nacre.manual_seed(1)
local noise = nacre.randint(0, 256, {3, 64, 64}, {dtype = "uint8"})
local before = 0
for _, quality in ipairs {1, 30, 75, 100} do
  local n = #encode(noise, {quality = quality})
  assert(n > before, "a better quality takes more bytes")
  before = n
end
assert(encode(noise) == encode(noise, {quality = 75}))

-- ---- arguments

fails("quality is 1 to 100, not 0", nacre.save, path, noise, {quality = 0})
fails("quality is 1 to 100, not 101", nacre.save, path, noise, {quality = 101})
for _, other in ipairs {"npy", "png", "csv", "safetensors"} do
  local what = other == "safetensors" and {noise} or noise
  fails("quality is for .jpg files", nacre.save, path .. "." .. other, what,
        {quality = 9})
end
fails("CxHxW with 1 or 3 channels", nacre.save, path, nacre.zeros(4, 5, 6))
fails("CxHxW with 1 or 3 channels", "image:permute(3, 1, 2)", nacre.save, path,
      nacre.zeros(5, 6, 3))
fails("an element is 256, a JPEG image has 0 to 255", nacre.save, path,
      nacre.tensor {{256}})
fails("at most 65500 rows", nacre.save, path, nacre.zeros(1, 65501))
fails("names is for files of several", nacre.load, path, {names = {"a"}})

-- ---- what is read

math.randomseed(7)
for _ = 1, 50 do
  local files, want = maker.make(false)
  local bytes = files[1][2]
  C.same(nacre.deserialize(bytes), want)
  -- an orientation, that the image is turned
  local exif = "Exif\0\0MM\0*\0\0\0\8\0\1\1\18\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
  C.same(nacre.deserialize(bytes:sub(1, 2) ..
    string.pack(">BBI2", 255, 0xe1, #exif + 2) .. exif .. bytes:sub(3)), want)
end
local good = encode(noise)
for _, n in ipairs {0, 1, 2, 3, 20, 200, #good // 2, #good - 3} do
  fails("", nacre.deserialize, good:sub(1, n), {format = "jpg"})
end
fails("this is not a JPEG image", nacre.deserialize, "GIF89a",
      {format = "jpg"})
local function changed(at, to)  -- in the header of the frame
  local frame = good:find("\255\xc0", 1, true)
  return good:sub(1, frame + at - 1) .. to .. good:sub(frame + at + #to)
end
fails("65535x65535 pixels cannot be unpacked from", nacre.deserialize,
      changed(5, "\255\255\255\255"))
fails("it has 12 bits, 8 are read", nacre.deserialize, changed(4, "\12"))
fails("4 channels (CMYK)", nacre.deserialize, changed(9, "\4"))
fails("it has 2 channels", nacre.deserialize, changed(9, "\2"))
fails("its coding, SOF9, is not read", nacre.deserialize, changed(1, "\xc9"))
fails("the header is damaged", nacre.deserialize, changed(7, "\0\0"))
fails("scans, at most 200 are read", nacre.deserialize,
      good:sub(1, -3) .. ("\255\218"):rep(300) .. "\255\217")
os.remove(path)
print "jpeg: ok"
