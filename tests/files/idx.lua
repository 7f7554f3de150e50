-- SPDX-License-Identifier: MIT
-- .idx files, those that gzip compressed, and other formats behind .gz.
-- Run by: nacre tests/files/idx.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
HERE = here
local C = dofile(here .. "../lib/common.lua")
local crc32 = dofile(here .. "../lib/crc32.lua")
local deflate = dofile(here .. "bad/deflate.lua")
local fails, same = C.fails, C.same

local base = os.tmpname()
local remove <close> = setmetatable({}, {__close = function()
  os.execute("rm -f " .. base .. "*")
end})

-- ---- every dtype, layout and name

local path = base .. ".idx"
for _, dtype in ipairs {"uint8", "int8", "int16", "int32", "float32",
                        "float64"} do
  for _, shape in ipairs {{3}, {2, 3}, {2, 3, 4}, {0, 5}, {1, 1, 1, 1, 1, 1, 1,
                                                           2}} do
    local x = (nacre.randn(shape) * 50):to(dtype)
    nacre.save(path, x)
    same(nacre.load(path), x)
    nacre.save(path, x:transpose(1, -1))
    same(nacre.load(path), x:transpose(1, -1):contiguous())
    same(nacre.deserialize(nacre.serialize(x, {format = "idx"})), x)
  end
end
for _, dtype in ipairs {"int64", "bool", "float16", "bfloat16"} do
  fails("the .idx format has no " .. dtype, nacre.save, path,
        nacre.ones(2, {dtype = dtype}))
end

-- As MNIST's: two labels of a file without an ending.
local labels = "\0\0\8\1\0\0\0\2\7\2"
for _, name in ipairs {"-idx1-ubyte", ".idx1-ubyte", ".idx"} do
  C.write(base .. name, labels)
  C.is(nacre.load(base .. name), "{7,2}")
end
fails("uint8[2] takes 2 bytes, the file has 1 left", nacre.deserialize,
      labels:sub(1, -2))
fails("the file has 3 left", nacre.deserialize, labels .. "x")
fails("this is no .idx file", nacre.deserialize, "\0\0\10\1\0\0\0\2\7\2",
      {format = "idx"})
fails("beyond 64 bits", nacre.deserialize,
      "\0\0\14\3" .. ("\255"):rep(12), {format = "idx"})

-- ---- compressed by gzip

local function gzip(s)
  return string.pack("<BBBBI4BB", 0x1f, 0x8b, 8, 0, 0, 0, 255) ..
         deflate.stored(s) .. string.pack("<I4I4", crc32(s), #s)
end
local function pass(name, bytes)
  C.write(base .. name, bytes)
  return base .. name
end
C.is(nacre.load(pass("-idx1-ubyte.gz", gzip(labels))), "{7,2}")
C.is(nacre.deserialize(gzip(labels)), "{7,2}")
C.is(nacre.load(pass(".csv.gz", gzip "1,2\n3,4\n")), "{{1,2},{3,4}}")
C.is(nacre.load(pass(".tsv.GZ", gzip "1\t2\n")), "{{1,2}}")
C.is(nacre.load(pass(".gz", gzip "a\n5\n"), {format = "csv", header = true}),
     "{{5}}")
C.is(nacre.load(pass(".npy.gz", gzip(nacre.serialize(nacre.tensor {4})))),
     "{4}")
C.is(nacre.load(pass(".safetensors.gz",
                     gzip(nacre.serialize({w = nacre.tensor {4}})))).w, "{4}")
C.is(nacre.load(pass(".idx.gz", gzip(labels:sub(1, 5)) ..
                                gzip(labels:sub(6)))), "{7,2}")
fails("other bytes follow", nacre.load, pass(".idx.gz", gzip(labels) .. "x"))
fails("it is not complete", nacre.load,
      pass(".idx.gz", gzip(labels):sub(1, -2)))
fails("incorrect data check", nacre.deserialize,
      (gzip(labels):gsub("\7\2", "\7\3")))
fails("this is an HTML page", nacre.load, pass(".npy.gz", gzip "<html>404"))
fails("there is no format .gz", nacre.save, base .. ".csv.gz", nacre.ones(2))

-- The program takes them by their content; elements alone are as they are.
local listed <close> = io.popen(("%s --ls %s-idx1-ubyte.gz %s.csv.gz"):format(
  arg[-1], base, base))
local text = listed:read "a"
assert(text:find "uint8  %[2%]" and text:find "int64  %[2x2%]", text)
assert(nacre.fromfile(base .. ".csv.gz", "uint8")[1] == 0x1f)
print "idx: ok"
