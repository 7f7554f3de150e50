-- SPDX-License-Identifier: MIT
-- .npy files: special values, errors, options. serialize.lua has dtypes and
-- layouts.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local path = os.tmpname()

-- Special values, bit by bit.
local odd = nacre.tensor({0 / 0, 1 / 0, -1 / 0, -0.0, 5e-324},
                         {dtype = "float64"})
nacre.save(path, odd)
local u = nacre.load(path)
assert(u[1] ~= u[1] and u[2] == 1 / 0 and u[3] == -1 / 0)
assert(1 / u[4] == -1 / 0 and u[5] == 5e-324)
local big = nacre.tensor({math.mininteger, math.maxinteger})
nacre.save(path, big)
assert(nacre.load(path) == big)

-- The data of the examples.
local images = nacre.load(here .. "../../scripts/data/digits-images.npy")
assert(images.dtype == "uint8" and #images == 1797)
assert(images:max():item() == 16)

-- A file is replaced as a whole; in place if that is asked for.
nacre.save(path, nacre.zeros(3))
nacre.save(path, nacre.ones(2), {atomic = false})
assert(nacre.load(path) == nacre.ones(2))

-- An option of PyTorch that changes nothing, also beside another one.
assert(nacre.load(path, {weights_only = true}) == nacre.ones(2))
assert(nacre.load(path, {weights_only = false, map_location = "cpu"}) ==
       nacre.ones(2, {device = "cpu"}))
fails("load: no argument 'foo'", nacre.load, path,
      {weights_only = true, foo = 1})

-- Errors.
fails("load: /nowhere/x.npy: No such file", nacre.load, "/nowhere/x.npy")
fails("directory", nacre.load, here)
fails("save: /nowhere/", nacre.save, "/nowhere/x.npy", nacre.ones(2))
local e = fails("the .npy format has no bfloat16", nacre.save, path,
                nacre.ones(2):to("bfloat16"))
assert(e.args[1].dtype == "bfloat16", "the error shows the tensor")
fails("save: ", nacre.save, nacre.ones(2), path)
fails("save: ", nacre.save, path)
fails("load: ", nacre.load)
assert(nacre.load(path) == nacre.ones(2), "a failed save changed the file")

-- A file that lies about itself allocates nothing, and its text is escaped.
local function write(bytes) C.write(path, bytes) end
local function npy(header, data)
  header = header .. "\n"
  return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. data
end
local dict = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
write(npy(dict:format("<f4", "(1000000000000,)"), "1234"))
fails("takes 4000000000000 bytes, the file has 4 left", nacre.load, path)
write(npy(dict:format("<c24", "(2,)"), ("1234"):rep(12)))
fails("complex192", nacre.load, path)

-- Complex numbers, also in the other byte order.
local function load() return nacre.load(path, {device = "cpu"}) end
local z = nacre.tensor({nacre.complex(1, 2), nacre.complex(-0.5, 1e9)},
                       {dtype = "complex64", device = "cpu"})
nacre.save(path, z)
assert(load().dtype == "complex64" and
       nacre.equal(load(), z))
write(npy(dict:format(">c16", "(2,)"), string.pack(">dddd", 1, 2, -0.5, 1e9)))
z = z:to "complex128"
assert(load().dtype == "complex128" and
       nacre.equal(load(), z))
nacre.save(path, z:expand(3, 2):t())
assert(nacre.equal(load(), z:expand(3, 2):t()))

-- Unsigned integers.
write(npy(dict:format("<u2", "(2,)"), "\1\0\xff\xff"))
assert(nacre.load(path).dtype == "uint16")
C.is(nacre.load(path), "{1,65535}")
write(npy(dict:format("uint16", "(2,)"), string.pack("=I2I2", 1, 65535)))
C.is(nacre.load(path), "{1,65535}")
write(npy(dict:format(">u4", "(2,)"), "\0\0\0\1\xff\xff\xff\xff"))
assert(nacre.load(path).dtype == "uint32")
C.is(nacre.load(path), "{1,4294967295}")
write(npy(dict:format("<u8", "(2,)"), string.pack("<i8i8", 1, math.maxinteger)))
C.is(nacre.load(path), "{1,9223372036854775807}")
write(npy(dict:format("<u8", "(2,)"), string.pack("<i8i8", 1, -1)))
assert(nacre.load(path).dtype == "uint64")
C.is(nacre.load(path):view "int64", "{1,-1}")
for _, dtype in ipairs {"uint16", "uint32", "uint64"} do
  local u = nacre.tensor({{0, 1}, {2, -1}}, {dtype = dtype, device = "cpu"})
  nacre.save(path, u:t())
  assert(load().dtype == dtype and nacre.equal(load(), u:t()))
end
fails("the .npy format has no float8_e4m3fn", nacre.save, path,
      nacre.zeros(2, {dtype = "float8_e4m3fn"}))

-- Several arrays in sequence are a list.
local two = nacre.serialize(nacre.arange(3)) ..
            nacre.serialize(nacre.ones(2, 2))
write(two)
local list = nacre.load(path)
assert(#list == 2 and list[1] == nacre.arange(3) and
       list[2] == nacre.ones(2, 2))
assert(nacre.deserialize(two)[2] == list[2])
write(two .. "\x93NUMPY\1\0")
fails("header length", nacre.load, path)
write(two .. "x")
fails("takes 16 bytes, the file has 17 left", nacre.load, path)

write(npy(dict:format("|O", "(2,)"), "1234"))
fails("Python objects", nacre.load, path)
write(npy(dict:format("\27[2J", "(2,)"), "1234"))
e = fails("load: ", nacre.load, path)
assert(not tostring(e):find("\27", 1, true), "an escape reached the message")
write("")
fails("the file is empty", nacre.load, path)

-- options are read as Lua reads a table; what fails there leaves the file
local given = setmetatable({}, {__index = {atomic = false}})
nacre.save(path, nacre.ones(3), given)
assert(nacre.load(path) == nacre.ones(3))
given = setmetatable({}, {__index = function() error("asked", 0) end})
local ok, why = pcall(nacre.save, path, nacre.ones(4), given)
assert(not ok and why == "asked")
assert(nacre.load(path) == nacre.ones(3))

os.remove(path)
