-- SPDX-License-Identifier: MIT
-- Integers of 4 bits that are packed, and linear layers that keep such weights,
-- or int8: values, and how near the layer stays to the one that it was.
-- Run by: nacre tests/ops/packed_weights.lua

local nn = nacre.nn
nacre.manual_seed(5)

local function same(a, b) assert(nacre.equal(a, b), tostring(a)) end

local b = nacre.tensor({0x21, 0xf8}, {dtype = "uint8"})
same(b:unpack_int4(), nacre.tensor({1, 2, 8, 15}, {dtype = "uint8"}))
same(b:unpack_int4 {signed = true},
     nacre.tensor({1, 2, -8, -1}, {dtype = "int8"}))
same(nacre.tensor({0x21, -8}, {dtype = "int8"}):unpack_int4(), b:unpack_int4())
local word = nacre.tensor({0x76543210, -1}, {dtype = "int32"})
same(word:unpack_int4(), nacre.tensor({0, 1, 2, 3, 4, 5, 6, 7, 15, 15, 15, 15,
                                       15, 15, 15, 15}, {dtype = "uint8"}))
local columns = nacre.unpack_int4(b:view(2, 1), 1)
same(columns, nacre.tensor({{1}, {2}, {8}, {15}}, {dtype = "uint8"}))
assert(nacre.zeros(2, 0):to "uint8":unpack_int4():numel() == 0)
local ok, e = pcall(nacre.unpack_int4, nacre.ones(2))
assert(not ok and tostring(e):find "float32, not an integer", tostring(e))

-- packed again, they are what they were
local any = nacre.randint(0, 256, {5, 8}):to "uint8"
local four = any:unpack_int4()
same(four[":, 1::2"] | four[":, 2::2"] << 4, any)

for _, dtype in ipairs {"float32", "bfloat16"} do
  local linear = nn.Linear(128, 60):to(dtype)
  local x = nacre.randn(3, 2, 128):to(dtype)
  local y = nacre.no_grad(function() return linear(x):float() end)
  for bits, most in pairs {[8] = 0.02, [4] = 0.2} do
    local small = nn.quantized.Linear(linear, {bits = bits, group_size = 32})
    local z = small(x)
    assert(z.dtype == dtype and nacre.equal(nacre.tensor(z:size()),
                                            nacre.tensor(y:size())))
    local off = ((z:float() - y):norm() / y:norm()):item()
    assert(off > 1e-4 and off < most, ("%d bits: %g"):format(bits, off))
    -- what the layer computes is a product by what it keeps
    local full = x:float():matmul(small:dequantize():float():t()) +
                 small.bias:float()
    assert((z:float() - full):abs():max():item() < 0.02)
    local bytes = small.weight:numel() * small.weight.itemsize
    assert(bytes == 128 * 60 * bits // 8)
    assert(#small:parameters() == 0)
    local copy = nn.quantized.Linear(nn.Linear(128, 60):to(dtype),
                                     {bits = bits})
    copy:load_state_dict(small:state_dict())
    same(copy(x), z)
  end
end

local function fails(text, ...)
  local ok, e = pcall(nn.quantized.Linear, ...)
  assert(not ok and tostring(e):find(text, 1, true), tostring(e))
end
fails("an nn.Linear is expected", nn.ReLU())
fails("bits is 3, not 8 or 4", nn.Linear(4, 4), {bits = 3})
fails("40 features are not groups of 32", nn.Linear(40, 4), {bits = 4})
