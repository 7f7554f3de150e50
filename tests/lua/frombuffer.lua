-- SPDX-License-Identifier: MIT
-- frombuffer and tobytes: tensors of the bytes of a string, and back.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local from = nacre.frombuffer

for _, dtype in ipairs(C.dtypes) do
  local t = nacre.arange(6):reshape(2, 3):to(dtype)
  local bytes = t:tobytes()
  assert(#bytes == 6 * t:element_size() and bytes == t:tostring_bytes(), dtype)
  local same = from(bytes, dtype, {shape = {2, 3}})
  assert(same.dtype == dtype and same == t, dtype)
  assert(from(t:t():tobytes(), dtype, {shape = {3, 2}}) == t:t(), dtype)
  assert(from(t["2, ::2"]:tobytes(), {dtype = dtype}) == t["2, ::2"], dtype)
end
is(from(string.pack("<i4i4", 7, -1), "int32"), "{7,-1}")
assert(nacre.tensor {1.5}:tobytes() == string.pack("<f", 1.5))
assert(nacre.zeros(0, 3):tobytes() == "" and from "".dtype == "float32")
assert(nacre.ones(2, {requires_grad = true}):tobytes() ==
       nacre.ones(2):tobytes())

-- count and offset
is(from("abcd", "uint8", 2, 1), "{98,99}")
is(from("abcd", "uint8", -1, 3), "{100}")
is(from("abcde", "int16", 2), "{25185,25699}")
is(from("abcd", "uint8", 0), "{}")
shape(from("abcdef", "uint8", {shape = {-1, 3}}), 2, 3)
shape(from("", "uint8", {shape = {0, 5}}), 0, 5)
is(from("\0\2\255", "bool"), "{false,true,true}")
is(from("\0\2\255", "bool"):to("uint8"), "{0,1,1}")
assert(from("abcd", {requires_grad = true}).requires_grad)
do
  local text = "abcd"
  from(text, "uint8"):fill_(0)
  assert(text == "abcd", "it is a copy")
end

fails("3 bytes are not a whole number", from, "abc", "int16")
fails("3 elements of 1 bytes were requested", from, "abc", "uint8", 3, 1)
fails("elements of 8 bytes were requested", from, "abc", "int64",
      math.maxinteger)
fails("count is -2", from, "abc", "uint8", -2)
fails("offset is 4", from, "abc", "uint8", -1, 4)
fails("offset is -1", from, "abc", "uint8", -1, -1)
for text, sizes in pairs {
  ["shape has 4 elements, but there are 3; count chooses how many, and a " ..
   "size of -1 is computed"] = {{4}, {2, 2}, {4, 1}},
  ["shape has 0 elements, but there are 3"] = {{0}, {2, 0}},
  ["shape: the sizes except -1 have 2 elements, and 3 is not a multiple"] =
    {{-1, 2}, {2, -1}},
  ["shape: the sizes except -1 have 0 elements"] = {{-1, 0}},
  ["shape has the size -1; only one size may be -1"] = {{-1, -1}},
  ["shape has the size -2; only one"] = {{-2, -3}},
  ["shape: it is beyond 64 bits"] = {{1 << 62, 4}, {1 << 32, 1 << 32}}} do
  for _, size in ipairs(sizes) do
    fails(text, from, "abc", "uint8", {shape = size})
  end
end
fails("shape: it is beyond 64 bits", from, "", "uint8", {shape = {1 << 62, 4}})
fails("buffer must be a string", from, 5)
fails("buffer comes first", from, {buffer = "abcd"})
fails("no dtype", from, "abc", "uint9")
