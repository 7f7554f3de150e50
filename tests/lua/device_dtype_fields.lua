-- SPDX-License-Identifier: MIT
-- Fields of names, which are strings: x.device.type, x.dtype.itemsize,
-- nacre.version.cuda; and strings that name nothing.
-- Run by: nacre tests/lua/device_dtype_fields.lua, with and without a CUDA
-- device

assert(nacre.zeros(2, {device = "cpu"}).device.type == "cpu")
assert(nacre.zeros(2, {device = "cpu"}).device.index == nil)
assert(nacre.device("cpu").type == "cpu")
assert(("cuda").type == "cuda" and ("cuda").index == nil)
assert(("cuda:0").type == "cuda" and ("cuda:0").index == 0)
assert(("cuda:12").index == 12 and math.type(("cuda:12").index) == "integer")

for name, bytes in pairs {float32 = 4, float64 = 8, bfloat16 = 2, int64 = 8,
                          uint8 = 1, bool = 1} do
  assert(nacre[name].itemsize == bytes, name)
  assert(nacre[name].is_floating_point == (name:find "float" ~= nil), name)
  assert(nacre[name].is_signed == not (name == "uint8" or name == "bool"))
end

-- all other strings are as they were
for _, s in ipairs {"", "abc", "cuda:", "cuda:x", "cuda:1x", "cpux", "CUDA",
                    "cuda: 1", "cuda:99999999999999999999", "cuda:1\0"} do
  assert(s.type == nil and s.index == nil, s)
  assert(s.itemsize == nil and s.cuda == nil, s)
end
assert(("abc").upper == string.upper and ("abc"):len() == 3)
assert(("abc").nothing == nil and ("cuda:0").nothing == nil)
assert(("abc")[1] == nil and ("cuda:0")[true] == nil)
function string.twice(s) return s .. s end
assert(("ab"):twice() == "abab")
function string.type() return "mine" end        -- a program's own is first
assert(("cuda:0").type() == "mine")
string.type, string.twice = nil, nil

-- the version
assert(nacre.__version__ == nacre.version and type(nacre.version) == "string")
assert("nacre " .. nacre.version == tostring(nacre))
local runtime = nacre.version.cuda
if nacre.cuda.is_available() then
  assert(runtime:find "^%d+%.%d+$", runtime)
  local x = nacre.zeros(2, {device = "cuda"})
  assert(x.device.type == "cuda" and x.device == "cuda:" .. x.device.index)
  assert(x.device.index == x:get_device())
else
  assert(runtime == nil)
end
