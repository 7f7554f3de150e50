-- SPDX-License-Identifier: MIT
-- .npy files from Lua: what is saved is loaded again, errors are plain.
-- Run by: nacre tests/files/npy.lua

local path = os.tmpname()
local dtypes = {"bool", "uint8", "int8", "int16", "int32", "int64",
                "float16", "float32", "float64"}

-- Saves t, loads it and compares.
local function back(t, what)
  nacre.save(path, t)
  local u = nacre.load(path)
  assert(u.dtype == t.dtype, what)
  assert(u == t, what .. ": values differ")
  local size, same = u:size(), t:size()
  assert(#size == #same, what)
  for i = 1, #size do assert(size[i] == same[i], what) end
end

-- The call fails; its message has each of the texts.
local function fails(texts, f, ...)
  local ok, e = pcall(f, ...)
  assert(not ok, "no error; expected: " .. texts[1])
  for _, text in ipairs(texts) do
    assert(tostring(e):find(text, 1, true),
           ("%q is not in %q"):format(text, tostring(e)))
  end
  return e
end

nacre.manual_seed(1)
for _, dtype in ipairs(dtypes) do
  local t = (nacre.rand(4, 3, 5) * 100):to(dtype)
  back(t, dtype)
  back(t:permute(3, 1, 2), dtype .. " permuted")
  back(t["::2, :, 2:4"], dtype .. " sliced")
  back(t[{1, 2, {3, 3}}]:reshape({}), dtype .. " 0-d")
  back(t:narrow(1, 1, 1):expand(4, 3, 5), dtype .. " expanded")
  back(nacre.zeros(2, 0, 3, {dtype = dtype}), dtype .. " empty")
end

-- Special values, bit by bit.
local odd = nacre.tensor({0 / 0, 1 / 0, -1 / 0, -0.0, 5e-324},
                         {dtype = "float64"})
nacre.save(path, odd)
local u = nacre.load(path)
assert(u[1] ~= u[1] and u[2] == 1 / 0 and u[3] == -1 / 0)
assert(1 / u[4] == -1 / 0 and u[5] == 5e-324)
local big = nacre.tensor({math.mininteger, math.maxinteger})
back(big, "int64 limits")

-- The data of the examples.
local here = arg[0]:match("^(.*)/[^/]*$") or "."
local images = nacre.load(here .. "/../../scripts/data/digits-images.npy")
assert(images.dtype == "uint8" and #images == 1797)
assert(images:max():item() == 16)

-- A file is replaced as a whole; in place if that is asked for.
nacre.save(path, nacre.zeros(3))
nacre.save(path, nacre.ones(2), {atomic = false})
assert(nacre.load(path) == nacre.ones(2))

-- Errors.
fails({"load", "/nowhere/x.npy", "No such file"}, nacre.load,
      "/nowhere/x.npy")
fails({"load", "directory"}, nacre.load, here)
fails({"save", "/nowhere/"}, nacre.save, "/nowhere/x.npy", nacre.ones(2))
fails({"save", "bfloat16"}, nacre.save, path,
      nacre.ones(2):to("bfloat16"))
fails({"save"}, nacre.save, nacre.ones(2), path)
fails({"save"}, nacre.save, path)
fails({"load"}, nacre.load)
assert(nacre.load(path) == nacre.ones(2), "a failed save changed the file")

-- A file that lies about itself allocates nothing, and its text is escaped.
local function write(text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end
local function npy(header, data)
  header = header .. "\n"
  return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. data
end
local dict = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"
write(npy(dict:format("<f4", "(1000000000000,)"), "1234"))
fails({"data", "4000000000000", "has 4 left"}, nacre.load, path)
write(npy(dict:format("<u2", "(2,)"), "1234"))
fails({"descr", "uint16"}, nacre.load, path)
write(npy(dict:format("|O", "(2,)"), "1234"))
fails({"descr", "Python objects"}, nacre.load, path)
write(npy(dict:format("\27[2J", "(2,)"), "1234"))
local e = fails({"load"}, nacre.load, path)
assert(not tostring(e):find("\27", 1, true), "an escape reached the message")
write("")
fails({"magic"}, nacre.load, path)

-- options are read as Lua reads a table; what fails there leaves the file
local given = setmetatable({}, {__index = {atomic = false}})
nacre.save(path, nacre.ones(3), given)
assert(nacre.load(path) == nacre.ones(3))
given = setmetatable({}, {__index = function() error("asked", 0) end})
local ok, why = pcall(nacre.save, path, nacre.ones(4), given)
assert(not ok and why == "asked")
assert(nacre.load(path) == nacre.ones(3))

os.remove(path)
print("npy: ok")
