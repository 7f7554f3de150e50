-- SPDX-License-Identifier: MIT
-- quantized.lua - nn.quantized.Linear: a linear layer whose weight is integers
-- of 8 or 4 bits with scales; what it multiplies stays floating point.
local all = ...
all.require("nacre.module", "nacre.weight_layers")
local fail = all.fail
local nn, F = all.space "nn", all.space "nn.functional"
local Module = nn.Module

local Linear = Module:extend "quantized.Linear"
all.space "nn.quantized".Linear = Linear

local options = all.parse("nn.quantized.Linear",
                          "linear:any, bits:int=8, group_size:int=32 -> module")

-- w [n x k] in steps of scales: of each row; or of each group of a row.
local function quantize(self, w)
  local most = self.bits == 8 and 127 or 7
  local groups = self.bits == 8 and w:unsqueeze(2) or
                 w:unflatten(2, {-1, self.group_size})
  local scale = (groups:float():abs():amax(3) / most):clamp {min = 1e-12}
  local q = (groups:float() / scale:unsqueeze(3)):round():clamp(-most, most)
  return q:flatten(2):to "int8", scale:to(w.dtype)
end

function Linear:init(...)
  all.check_module(Linear, self)
  local v = all.read("nn.quantized.Linear", options, ...)
  local linear, bits, group = v[1], v[2], v[3]
  local w = type(linear) == "table" and linear.weight
  if not nacre.is_tensor(w) or w:dim() ~= 2 then
    fail("nn.quantized.Linear", "an nn.Linear is expected",
         "nn.quantized.Linear(net.fc, {bits = 8})")
  end
  if bits ~= 8 and bits ~= 4 then
    fail("nn.quantized.Linear", ("bits is %d, not 8 or 4"):format(bits))
  end
  if bits == 4 and (w:size(2) % group ~= 0 or group % 2 ~= 0) then
    fail("nn.quantized.Linear", ("%d features are not groups of %d, an even "
         .. "number"):format(w:size(2), group))
  end
  self.out_features, self.in_features = w:size(1), w:size(2)
  self.bits, self.group_size = bits, group
  nacre.no_grad(function()
    local q, scales = quantize(self, w)
    if bits == 4 then
      q = (q + 8):to "uint8"
      q = q[":, 1::2"] | q[":, 2::2"] << 4
    else scales = scales:reshape(-1) end
    self:register_buffer("weight", q)
    self:register_buffer("scales", scales)
    if linear.bias then self:register_buffer("bias", linear.bias:detach()) end
  end)
end

function Linear:dequantize()
  if self.bits == 8 then
    return self.weight:to(self.scales.dtype) * self.scales:unsqueeze(2)
  end
  local q = (self.weight:unpack_int4():to "int8" - 8):to(self.scales.dtype)
  return (q:unflatten(2, {-1, self.group_size}) * self.scales:unsqueeze(3))
    :flatten(2)
end

function Linear:forward(x)
  if self.bits == 4 then
    return F.linear(x, self:dequantize(), self.bias or nil)
  end
  local rows = x:detach():reshape(-1, self.in_features)
  local y = nacre._weight_int8pack_mm(rows, self.weight, self.scales)
  local size = x:size()
  size[#size] = self.out_features
  y = y:reshape(size)
  return self.bias and y + self.bias or y
end

all.describe("nn.quantized.Linear", Linear,
             "a linear layer whose weight is kept in 8 bits with a scale for "
               .. "each row, or in 4 with one for each group of a row; without "
               .. "gradients", options)
