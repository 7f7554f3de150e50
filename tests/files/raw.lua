-- SPDX-License-Identifier: MIT
-- fromfile and tofile: elements of a file without a header.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, read, write = C.fails, C.is, C.read, C.write
local from = nacre.fromfile
local path = os.tmpname()

for _, dtype in ipairs(C.dtypes) do
  local t = nacre.arange(6):reshape(2, 3):to(dtype)
  for _, x in ipairs {t, t:t(), t["2, ::2"], nacre.zeros(0):to(dtype)} do
    for _, order in ipairs {"native", "little", "big"} do
      x:tofile(path, {byteorder = order})
      assert(#read(path) == x:numel() * x:element_size())
      for _, mmap in ipairs {false, true} do
        local y = from(path, {dtype = dtype, byteorder = order, mmap = mmap,
                              shape = x:size()})
        assert(y.dtype == dtype and y == x, dtype .. order)
      end
    end
  end
  t:tofile(path)
  assert(read(path) == t:tobytes())
end

write(path, string.pack(">i2i2i2", 1, -2, 3))
is(from(path, "int16", {byteorder = "big"}), "{1,-2,3}")
is(from(path, "int16", 2, {byteorder = "big"}), "{1,-2}")
is(from(path, "int16", 1, 2, {byteorder = "big"}), "{-2}")
is(from(path, "int16", -1, 4, {byteorder = "big"}), "{3}")
is(from(path, {dtype = "int16", count = 1, offset = 3, mmap = true}),
   "{" .. string.unpack("<i2", read(path), 4) .. "}")
is(nacre.frombuffer(read(path), "int16", {byteorder = "big"}), "{1,-2,3}")
is(from(path, "uint8", {shape = {3, -1}})[1], "{0,1}")
assert(from(path, {dtype = "int16", requires_grad = false}).dtype == "int16")

-- Unsigned integers.
local options = {dtype = "uint16", byteorder = "big"}
is(from(path, options), "{1,65534,3}")
assert(from(path, options).dtype == "uint16")
is(from(path, "uint16", 1, 2), "{65279}")
write(path, string.pack("<I4I4", 7, 0xffffffff))
is(from(path, "uint32", {mmap = true}), "{7,4294967295}")
is(nacre.frombuffer(read(path), "uint32"), "{7,4294967295}")
write(path, string.pack("<i8i8", 7, -1))
is(from(path, "uint64", 1), "{7}")
is(from(path, "uint64"):view "int64", "{7,-1}")
is(from(path, "int64"), "{7,-1}")

-- A pipe, and an open file.
do
  local f <close> = assert(io.popen("printf abc"))
  is(from(f, "uint8"), "{97,98,99}")
end

-- ---- what is refused

write(path, "abc")
fails("3 bytes are not a whole number", from, path, "int16")
fails("3 elements of 1 bytes were requested", from, path, "uint8", 3, 1)
fails("elements of 8 bytes were requested", from, path, "int64",
      math.maxinteger)
fails("count is -2", from, path, "uint8", -2)
fails("offset is 4, but the file has 3 bytes", from, path, "uint8", -1, 4)
fails("offset is -1", from, path, "uint8", -1, -1)
fails("shape has 4 elements, but there are ", from, path, "uint8",
      {shape = {2, 2}})
fails("byteorder must be little, big or native, not 'middle'", from, path,
      "uint8", {byteorder = "middle"})
fails("byteorder must be", nacre.ones(1).tofile, nacre.ones(1), path,
      {byteorder = ""})
fails("no dtype", from, path, "uint9")
fails("fromfile: path must be a string", from, 5)
fails("fromfile: ", from, path .. ".none")
fails("fromfile: ", from, "/")
assert(read(path) == "abc")
local freed = nacre.ones(1)
freed:free()
fails("freed", freed.tofile, freed, path)
fails("tofile: ", nacre.ones(1).tofile, nacre.ones(1), "/no/such/folder")

os.remove(path)
-- A copy of halves has the same bits, those of a nan included.
for _, dtype in ipairs {"float16", "bfloat16"} do
  local nans = string.pack("<I2I2I2I2", 0xffdc, 0x7f81, 0x7c01, 0xfe1c)
  local h = nacre.frombuffer(nans:rep(300), {dtype = dtype}):reshape(300, 4)
  assert(h:clone():tobytes() == nans:rep(300))
  assert(h:t():contiguous():t():tobytes() == nans:rep(300))
  assert(h[{{}, {1, 3}}]:contiguous():tobytes() == nans:sub(1, 6):rep(300))
  assert(nacre.cat({h[{{}, {1, 2}}], h[{{}, {3, 4}}]}, 2):tobytes() ==
         nans:rep(300))
  assert(nacre.empty(300, 4, {dtype = dtype}):copy_(h):tobytes() ==
         nans:rep(300))
end
