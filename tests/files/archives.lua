-- SPDX-License-Identifier: MIT
-- .npz and .safetensors files: names, options, every malformed header and its
-- message; a failed save leaves the old file as it was.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, read, write = C.fails, C.is, C.read, C.write

local base = os.tmpname()
local files = {}
local function path(extension)
  local name = base .. extension
  files[name] = true
  return name
end

local safe, npz = path ".safetensors", path ".npz"
local haszip = pcall(nacre.save, npz, {nacre.ones(1)})
if not haszip then
  fails("libzip, which was not found", nacre.save, npz, {nacre.ones(1)})
  print "archives: there is no libzip, .npz files are left out"
end

-- ---- names, sizes, order

local function same(got, want, what)
  local n = 0
  for name, t in pairs(want) do
    local u = got[name]
    assert(u, ("%s: %s is missing"):format(what, name))
    assert(u.dtype == t.dtype and u == t, ("%s: %s"):format(what, name))
    n = n + 1
  end
  for _ in pairs(got) do n = n - 1 end
  assert(n == 0, what .. ": there is more than was saved")
end

nacre.save(safe, {["a/b é"] = nacre.ones(2), [" "] = nacre.arange(3)})
same(nacre.load(safe), {["a/b é"] = nacre.ones(2), [" "] = nacre.arange(3)},
     "safetensors")
if haszip then
  local mixed = {nacre.ones(2), nacre.arange(3), ["a/b é"] = nacre.zeros(1)}
  nacre.save(npz, mixed)
  same(nacre.load(npz), mixed, "npz")
end

-- Larger than any buffer, dense and strided; deflate finds zeros small.
local large = {t = C.range(700, 1000):t(), z = nacre.zeros(3000000)}
for _, name in ipairs(haszip and {safe, npz} or {safe}) do
  nacre.save(name, large)
  same(nacre.load(name), large, name)
end
if haszip then
  nacre.save(npz, large, {compressed = true})
  same(nacre.load(npz), large, "compressed")
  assert(#read(npz) < 3000000)
end

-- The same tensors are the same file, whatever the order of a table.
if haszip then
  local a, b = {}, {}
  for i = 1, 20 do a["t" .. i] = nacre.ones(i) end
  for i = 20, 1, -1 do b["t" .. i] = nacre.ones(i) end
  nacre.save(npz, a)
  local bytes = read(npz)
  nacre.save(npz, b)
  assert(read(npz) == bytes)
end

-- ---- what comes back

-- A list is a list again; NumPy calls its elements arr_0, arr_1, ...
local five = {}
for i = 1, 11 do five[i] = nacre.full({}, i) end
nacre.save(safe, five)
local got = nacre.load(safe)
assert(#got == 11)
for i = 1, 11 do assert(got[i]:item() == i) end
nacre.save(safe, {nacre.ones(1), arr_2 = nacre.ones(2)})
got = nacre.load(safe)                  -- there is no arr_1: names, then
assert(got.arr_0 and got.arr_2 and #got == 0)
nacre.save(safe, {arr_01 = nacre.ones(1), arr_ = nacre.ones(2)})
got = nacre.load(safe)
assert(got.arr_01 and got["arr_"])
nacre.save(safe, {arr_0 = nacre.ones(1),
                  arr_9223372036854775807 = nacre.ones(2)})
got = nacre.load(safe)                  -- no place is behind the last
assert(got.arr_9223372036854775807)
fails("two tensors have the name arr_0", nacre.save, safe,
      {nacre.ones(1), arr_0 = nacre.ones(1)})

-- Options: some of the tensors, a dtype, the metadata, a gradient.
local w, b = nacre.randn(2, 3), nacre.arange(4)
nacre.save(safe, {w = w, b = b}, {metadata = {format = "pt",
                                                ["q\"\n\1"] = "é\\"}})
local d, meta = nacre.load(safe)
assert(d.w == w and meta.format == "pt" and meta["q\"\n\1"] == "é\\")
d = nacre.load(safe, {names = {"b"}})
assert(d.b == b and d.w == nil)
d = nacre.load(safe, {dtype = "float64", device = "cpu"})
assert(d.b.dtype == "float64" and d.w == w:cpu():to("float64"))
assert(nacre.load(safe, {names = {"w"}, requires_grad = true})
       .w.requires_grad)
nacre.save(safe, {w = w})
assert(select("#", nacre.load(safe)) == 1)
fails("no tensor 'weight', did you mean 'weights'?", function()
  nacre.save(safe, {weights = w})
  nacre.load(safe, {names = {"weight"}})
end)
fails("names must be a list, not a string", nacre.load, safe, {names = "w"})
fails("names must be a list of strings, not of numbers", nacre.load, safe,
      {names = {1}})

-- What requires a gradient is saved as what it is.
nacre.save(safe, {w = nacre.ones(2):requires_grad_()})
assert(not nacre.load(safe).w.requires_grad)

-- ---- what cannot be saved leaves the old file as it was

local before = read(safe)
local x = nacre.ones(2)
fails("w must be a tensor, not a number",
      "nacre.tensor(1) makes one of a number or a table", nacre.save, npz,
      {w = 1})
fails("layer must be a tensor, not a table",
      ".safetensors, .pt and .h5 files hold nested tables", nacre.save, npz,
      {layer = {w = x}})
fails("w is a function, which a file cannot hold", nacre.save, safe,
      {w = print})
fails("the key 0 is neither", nacre.save, safe, {[0] = x})
fails("the key true is neither", nacre.save, safe, {[true] = x})
fails("the table has no tensors", nacre.save, safe, {})
fails("a name has 1 to 1000 bytes, not 0", nacre.save, safe, {[""] = x})
fails("a name has 1 to 1000 bytes, not 1001", nacre.save, safe,
      {[("x"):rep(1001)] = x})
fails('a name must be a string in UTF-8, not "a\\xff"', nacre.save, safe,
      {["a\xff"] = x})
fails('a name must be a string in UTF-8, not "a\\x00b"', nacre.save, safe,
      {["a\0b"] = x})
fails("cannot name a tensor", nacre.save, safe, {__metadata__ = x})
fails("metadata must be a table of texts, not a string", nacre.save, safe, {x},
      {metadata = "pt"})
fails("metadata must be a table of texts by name", nacre.save, safe, {x},
      {metadata = {a = 1}})
fails("compressed is for .npz and .h5 files", nacre.save, safe, {x},
      {compressed = true})
fails("delimiter is for texts", nacre.save, safe, {x}, {delimiter = ","})
fails("no argument 'metdata', did you mean 'metadata'?", nacre.save, safe, {x},
      {metdata = {}})
fails("such a file holds tensors by name",
      "{x = t}, or {t, u} without names", nacre.save, safe, x)
fails("t must be a tensor, not a table", nacre.save, base .. ".npy", {w = x})
local freed = nacre.ones(1)
freed:free()
fails("freed", nacre.save, safe, {w = freed})
assert(read(safe) == before)
nacre.save(safe, {x}, {atomic = false})
assert(read(safe) ~= before)
if haszip then
  before = read(npz)
  fails("the .npy format has no bfloat16", nacre.save, npz,
        {a = x, b = x:to("bfloat16")})
  fails("metadata is for .safetensors and .h5 files", nacre.save, npz, {x},
        {metadata = {}})
  assert(read(npz) == before)
end

-- Names of files that stand for nothing.
fails("there is no format .bin", "PyTorch reads .pt and .safetensors",
      nacre.save, base .. ".bin", x)
fails("there is no format .tar", ".npy, .idx, .png, .jpg, .csv, .tsv and .txt "
      .. "hold one tensor, .npz, .safetensors, .pt and .h5 several", nacre.save,
      base .. ".tar", x)
local plain = path ".bz2"
write(plain, "BZh91AY&SY")
fails("this is compressed by bzip2", "bunzip2 unpacks it", nacre.load, plain)
local numbers = path ".csv"
nacre.save(numbers, nacre.zeros(2, 2))
fails("names is for files of several tensors", nacre.load, numbers,
      {names = {}})
fails("skip is for texts", nacre.load, safe, {skip = 1})

-- A device without room: the error is the system's, nothing stays behind.
local full = path "full.safetensors"
if os.execute("ln -s /dev/full '" .. full .. "' 2>&-") then
  fails("No space left on device", nacre.save, full, {x})
end

-- ---- the bytes of a .safetensors file

-- As the format's own library writes them: wide elements first.
nacre.save(safe, {w = nacre.tensor {{1, 2}}, ["a\"b"] = nacre.ones(1),
                  m = nacre.tensor {true}}, {metadata = {k = "v"}})
local header = '{"__metadata__":{"k":"v"},'
  .. '"w":{"dtype":"I64","shape":[1,2],"data_offsets":[0,16]},'
  .. '"a\\"b":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},'
  .. '"m":{"dtype":"BOOL","shape":[1],"data_offsets":[20,21]}}'
header = header .. (" "):rep(-#header % 8)
local data = string.pack("<i8i8fB", 1, 2, 1, 1)
assert(read(safe) == string.pack("<I8", #header) .. header .. data)

local function file(text, bytes)
  write(safe, string.pack("<I8", #text) .. text .. (bytes or ""))
end

-- Blanks, fields in any order, every escape, bytes that are no 0 or 1.
file(' { "\\u0061\\n\\ud83d\\ude00\\u00e9" : { "data_offsets" : [ 0 , 4 ] ,\n'
     .. '"shape":[4],"dtype":"BOOL" } }\t', "\0\1\2\255")
is(nacre.load(safe)["a\n😀é"], "{false,true,true,true}")
file "{}"
assert(next(nacre.load(safe)) == nil)
file '{"__metadata__":{}}'
assert(next(nacre.load(safe)) == nil)

local function entry(dtype, shape, from, to)
  return ('{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(dtype,
                                                        shape, from, to)
end
local good = entry("F32", "1", 0, 4)
local bad = {
  {"", "an object expected, it ends here"},
  {"[]", 'an object expected at byte 1, found "[]"'},
  {"{", "a string expected"},
  {'{"a"}', "a colon expected"},
  {'{"a":1}', "the description of a tensor expected"},
  {'{"a":{}}', '"a": dtype is missing'},
  {'{"a":{"dtype":"F32","shape":[1]}}', '"a": data_offsets is missing'},
  {'{"a":{"dtype":"F32","dtype":"F32"}}', "dtype occurs twice"},
  {'{"a":{"dtype":"F32","strides":[1]}}', "shape is missing"},
  {'{"a":{"dtype":"F32","strides":' .. ("["):rep(99) .. "1", "less nesting"},
  {'{"a":{"dtype":"F32","strides":[1', "a comma or a bracket expected"},
  {'{"a":{"dtype":"F32","x":{"y" 1}', "a colon expected"},
  {'{"a":{"shape":[1,2}}', "a comma or ] expected"},
  {'{"a":{"shape":[-1]}}', "a number expected"},
  {'{"a":{"shape":[1.5]}}', "a comma or ] expected"},
  {'{"a":{"shape":[01]}}', "without leading zeros"},
  {'{"a":{"shape":[99999999999999999999]}}', "beyond 64 bits"},
  {'{"a":' .. entry("F32", "1,1,1,1,1,1,1,1,1", 0, 4) .. "}",
   '"a" has 9 dimensions, a tensor has at most 8', "1234"},
  {'{"a":{"data_offsets":[1]}}', "two offsets expected"},
  {'{"a":' .. entry("F99", "1", 0, 4) .. "}",
   '"a": the dtype F99 is not supported', "1234"},
  {'{"a":' .. entry("F8_E4M3", "2", 0, 1) .. "}",
   '"a": float8_e4m3fn[2] does not take bytes 0 to 1', "1"},
  {'{"a":' .. entry("F32", "2", 0, 4) .. "}",
   '"a": float32[2] does not take bytes 0 to 4'},
  {'{"a":' .. entry("F32", "1", 4, 0) .. "}", "does not take bytes 4 to 0"},
  {'{"a":' .. entry("F32", "4294967296,4294967296,4294967296", 0, 4) .. "}",
   "beyond 64 bits"},
  {'{"a":' .. good .. ',"a":' .. entry("F32", "1", 4, 8) .. "}",
   'the name "a" occurs twice', "12345678"},
  {'{"a":' .. good .. ',"b":' .. good .. "}",
   "begins at byte 0, the tensor before it ends at 4", "12345678"},
  {'{"a":' .. good .. ',"b":' .. entry("F32", "1", 8, 12) .. "}",
   '"b" begins at byte 8, the tensor before it ends at 4', "123456789012"},
  {'{"a":' .. good .. "}", "take 4 bytes, the file has 5", "12345"},
  {'{"a":' .. good .. "}", "take 4 bytes, the file has 3", "123"},
  {'{"a":' .. entry("U8", "4000000000000", 0, 4000000000000) .. "}",
   "take 4000000000000 bytes, the file has 4", "1234"},
  {'{"a":' .. good .. "} x", "nothing more expected", "1234"},
  {'{"a":' .. good .. ",}", "a string expected", "1234"},
  {'{"a\\x":' .. good .. "}", "an escape expected", "1234"},
  {'{"\\ud800":' .. good .. "}", "the second half of a character", "1234"},
  {'{"\\ud800\\u0041":' .. good .. "}", "a character expected", "1234"},
  {'{"\\udc00":' .. good .. "}", "a character expected", "1234"},
  {'{"\xff":' .. good .. "}", "a character expected", "1234"},
  {'{"a\nb":' .. good .. "}", "a character expected", "1234"},
  {'{"__metadata__":{"a":1}}', "a string expected"},
  {'{"__metadata__":{},"__metadata__":{}}', "occurs twice"},
}
for _, case in ipairs(bad) do
  file(case[1], case[3])
  local e = fails(case[2], nacre.load, safe)
  assert(tostring(e):find("load: ", 1, true))
end
for n = 0, #header + 7 do               -- cut anywhere, it is refused
  write(safe, (string.pack("<I8", #header) .. header .. data):sub(1, n))
  fails(safe:match "[^/]+$", nacre.load, safe)
end
write(safe, string.pack("<I8", 1 << 40) .. header)
fails("header length: 1099511627776 bytes", nacre.load, safe)
write(safe, string.pack("<I8", 90000000) .. header)
fails("header: 90000000 bytes are needed", nacre.load, safe)

-- ---- damaged archives

if haszip then
  nacre.save(npz, {w = nacre.arange(100), b = nacre.ones(3)})
  local whole = read(npz)
  local refused = 0
  for n = 0, #whole - 1, 7 do           -- the directory is at the end
    write(npz, whole:sub(1, n))
    fails(npz:match "[^/]+$", nacre.load, npz)
  end
  for at = 1, #whole, 3 do              -- one wrong byte: refused, or no harm
    write(npz, whole:sub(1, at - 1) .. string.char(whole:byte(at) ~ 0x55)
               .. whole:sub(at + 1))
    local ok, e = pcall(nacre.load, npz)
    refused = refused + (ok and 0 or 1)
    assert(ok or tostring(e):find("load: ", 1, true), tostring(e))
  end
  assert(refused > #whole // 6, refused)
  -- a wrong element is found by its checksum
  local at = whole:find(string.pack("<i8", 77), 1, true)
  write(npz, whole:sub(1, at - 1) .. "\78" .. whole:sub(at + 1))
  fails("w.npy: end: its checksum is wrong", nacre.load, npz)
  assert(nacre.load(npz, {names = {"b"}}).b == nacre.ones(3))
  -- a member that declares what cannot come out of it
  nacre.save(npz, {z = nacre.zeros(100000)}, {compressed = true})
  whole = read(npz)
  local size = string.pack("<I4", 400128)
  local hit = whole:find(size, 100, true)
  write(npz, whole:sub(1, hit - 1) .. string.pack("<I4", 0xfffffff0)
             .. whole:sub(hit + 4))
  fails("bytes cannot be unpacked from", nacre.load, npz)
  -- no archive, and one of another kind
  -- the directory and the members' own headers
  nacre.save(npz, {w = nacre.arange(4), b = nacre.ones(3)})
  whole = read(npz)
  local second = whole:find("PK\1\2", whole:find "PK\1\2" + 1, true)
  local function patched(why, place, text)
    write(npz, whole:sub(1, place - 1) .. text .. whole:sub(place + #text))
    fails(why, nacre.load, npz, {names = {"b"}})
    fails(why, nacre.load, npz, {names = {"w"}})
  end
  patched("member 1: the directory has another name for it", 31, "v")
  patched("member 1: the directory has another name for it", 27, "\4")
  patched("member 2: it is a patch", second + 8, "\32")
  patched("member 2: it is encrypted", second + 8, "\64")
  patched("member 2: it needs a newer version", second + 6, "\64")
  patched("its directory points beyond its end", second + 42, "\0\0\0\x70")
  patched("member 2: its header is not where", second + 42, "\1\0")

  write(npz, "no archive at all, but text")
  fails('this is text, not a .npz file: it begins with "no archive at all, ' ..
        'but t"', nacre.load, npz)
  write(npz, "\1no archive")
  fails("this is not a zip archive: its first bytes are wrong", nacre.load,
        npz)
  write(npz, "PK\3")
  fails("this is not a zip archive: it is too short", nacre.load, npz)
  nacre.save(npz, {nacre.ones(1000)})
  write(npz, read(npz):sub(1, 2000))
  fails("it is not complete: the list of members", nacre.load, npz)
  -- what stands before an archive, as before one that unpacks itself
  nacre.save(npz, {nacre.ones(1)})
  for _, junk in ipairs {"j", "#!/bin/sh\n", ("\0"):rep(512)} do
    local bytes = junk .. read(npz)
    fails("its first bytes are wrong", nacre.deserialize, bytes,
          {format = "npz"})
  end
end

-- ---- tables whose keys are nearly those of a list keep them

local function text_of(v)
  if nacre.is_tensor(v) then return "t" .. v:sum():item() end
  if type(v) ~= "table" then return ("%q"):format(v) end
  local parts = {}
  for key, value in pairs(v) do
    parts[#parts + 1] = ("[%s]=%s"):format(text_of(key), text_of(value))
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local t, u = nacre.ones(1), nacre.ones(2)
for _, v in ipairs {
  {n = {nil, 2}}, {nil, 2, x = 1}, {[0] = 1, nil, 2}, {[-1] = "a", nil, "b"},
  {1, nil, 3, y = "z"}, {{t, nil, u}, 1}, {t, nil, u}, {nil, u},
  {[1.5] = 1, [2] = 2, [3] = 3}, {a = {t, nil, u}}, {1, 2}, {t, u}, {t, x = u},
} do
  for _, name in ipairs {safe, path ".pt"} do
    if haszip or name == safe then
      nacre.save(name, v)
      assert(text_of(nacre.load(name)) == text_of(v), name .. text_of(v) ..
             text_of(nacre.load(name)))
    end
  end
end
if haszip then
  fails("element 2 of a list is nil: a list has no holes", nacre.save, npz,
        {t, nil, u})
end

for name in pairs(files) do os.remove(name) end
os.remove(base)
-- What a file or a user calls something does not act on the terminal.
local red = "wei\27[31mght"
nacre.save(safe, {[red] = nacre.ones(2)})
for _, f in ipairs {
  function() nacre.load(safe, {names = {"wei31mght"}}) end,
  function() nacre.save(safe, {[red] = print}) end,
  function() nacre.save("x." .. red, nacre.ones(1)) end,
  function() nacre.ones(2, {dtype = red}) end,
  function() nacre.ones(2, {device = red}) end,
  function() nacre.sum(nacre.ones(1), {[red] = 1}) end,
  function() nacre.einsum(red, nacre.ones(1)) end,
  function() return nacre[red] end,
  function() nacre.ones(2, {dtype = "a\xc2\x9bb\xe2\x80\xaec\xff"}) end,
} do
  local ok, e = pcall(f)
  assert(not ok and not (tostring(e) .. tostring(e.hint)):find "[\27\x9b\xff]",
         tostring(e))
  assert(tostring(e):find "\\x", tostring(e))
end
