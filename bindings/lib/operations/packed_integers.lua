-- SPDX-License-Identifier: MIT
-- packed_integers.lua - integers of four bits, which files keep two in a byte.

local all = ...
local define, fail = all.define, all.fail

-- The bytes of x, as uint8, its last dimension as much longer.
local function bytes_of(x)
  if x.dtype == "uint8" then return x end
  local wide, parts = x:to "int64", {}
  for i = 0, x.itemsize - 1 do
    parts[i + 1] = (wide >> (8 * i) & 255):to "uint8"
  end
  return nacre.stack(parts, -1):flatten(-2)
end

-- PyTorch has no such function; libraries for quantized weights have one each.
define("unpack_int4", "self, dim:dim=-1, *, signed:bool=false",
       "the numbers of 4 bits that an integer tensor holds, the lowest first, "
       .. "in place of each element along dim; 0 .. 15, or -8 .. 7",
function(self, dim, signed)
  if self:is_floating_point() or self:is_complex() or self.dtype == "bool" then
    fail("unpack_int4", ("{self} is %s, not an integer"):format(self.dtype))
  end
  local b = bytes_of(self:transpose(dim, -1):contiguous())
  local y = nacre.stack({b & 15, b >> 4}, -1):flatten(-2)
  if signed then y = ((y ~ 8):to "int8" - 8) end
  return y:transpose(dim, -1):contiguous()
end)
