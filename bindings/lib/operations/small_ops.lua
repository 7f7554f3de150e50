-- SPDX-License-Identifier: MIT
-- small_ops.lua - small operations: sequences, conversion to tensors, one-sided
-- clamps, promotion and limits of dtypes, queries. Names and shapes are
-- PyTorch's.

local all = ...
local define, fail = all.define, all.fail

-- Result [steps], computed in float64, or in complex128. For an integer dtype
-- start and end are rounded down first.
define("logspace", "start:operand, end:operand, steps:int, base:num=10, *, "
       .. "dtype:dtype=nil, device:any|device=nil",
       "steps powers of base, whose exponents go from start to end",
function(first, last, steps, base, dtype, device)
  if dtype and not dtype:find "^b?float" and not dtype:find "^complex" then
    -- as linspace does
    if nacre.is_tensor(first) then first = first:item() end
    if nacre.is_tensor(last) then last = last:item() end
    first, last = first // 1, last // 1
  end
  -- an exponent may be complex, as its dtype tells
  local given = nacre.linspace(first, last, 0).dtype
  local wide = given:find "^complex" and "complex128" or "float64"
  local at = nacre.linspace(first, last, steps, {dtype = wide, device = device})
  return nacre.pow(base, at):to(dtype or given)
end)

-- Copies only if the dtype or the device differs.
define("as_tensor", "data:any, *, dtype:dtype=nil, device:any|device=nil",
       "data itself if it is a tensor of that dtype and device, else converted",
function(data, dtype, device)
  if not nacre.is_tensor(data) then
    if not (dtype or device) then return nacre.tensor(data) end
    return nacre.tensor(data, {dtype = dtype, device = device})
  end
  if dtype then data = data:to(dtype) end
  return device and data:to(device) or data
end)

-- Always copies; the result is not recorded by autograd.
define("new_tensor",
       "self, data:any, *, dtype:dtype=nil, device:any|device=nil",
       "a tensor of data with the dtype and on the device of self",
function(self, data, dtype, device)
  dtype, device = dtype or self.dtype, device or self.device
  if nacre.is_tensor(data) then
    return data:detach():clone():to(dtype):to(device)
  end
  return nacre.tensor(data, {dtype = dtype, device = device})
end)

define("clamp_min",
       "self:inplace, min:operand",
       "self, with elements below min replaced by min",
       function(self, min) return self:clamp {min = min} end)
define("clamp_max",
       "self:inplace, max:operand",
       "self, with elements above max replaced by max",
       function(self, max) return self:clamp {max = max} end)

-- The inverse of broadcasting: sums the dimensions that `size' lacks or has
-- with size 1. Fails if size does not broadcast to the shape of self.
define("sum_to_size", "self, size:size",
       "self summed along what broadcasting from size would have repeated",
function(self, size)
  if type(size) == "number" then size = {size} end
  local extra, dims = self:dim() - #size, {}
  for d = 1, self:dim() do
    local want = size[d - extra]
    if not want or want == 1 and self:size(d) ~= 1 then dims[#dims + 1] = d
    elseif want ~= self:size(d) then dims = nil break end
  end
  if extra < 0 or not dims then
    fail("sum_to_size", ("[%s] does not broadcast to the shape of {self}")
         :format(table.concat(size, "x")), nil, "self", self)
  end
  if #dims > 0 then self = self:sum(dims, true) end
  return self:reshape(size)
end)

-- In place only, as in PyTorch. One fill of a strided view; for wrap one fill
-- for each block of columns + 1 rows. Fails for fewer than 2 dimensions and for
-- different sizes in more than 2.
define("fill_diagonal_", "self, value:num, wrap:bool=false",
       "sets the diagonal of self to value; wrap starts it again below, in a "
         .. "matrix that is taller than wide",
function(self, value, wrap)
  local size = self:size()
  local step, n = 0, math.huge
  for d = 1, #size do
    step = step + self:stride(d)
    n = math.min(n, size[d])
    if #size > 2 and size[d] ~= size[1] then
      fail("fill_diagonal_",
           "with more than 2 dimensions all sizes must be equal",
           nil, "self", self)
    end
  end
  if #size < 2 then
    fail("fill_diagonal_", "needs at least 2 dimensions", nil, "self", self)
  end
  if wrap and #size == 2 then
    for row = 1, size[1], size[2] + 1 do
      self:narrow(1, row, math.min(size[2], size[1] - row + 1))
          :diagonal():fill_(value)
    end
    return self
  end
  self:as_strided({n}, {step}, self:storage_offset()):fill_(value)
  return self
end)

-- ---- dtypes

-- An empty CPU tensor that promotes as any tensor of this dtype does.
local function model(dtype, size)
  return nacre.empty(size or {0}, {dtype = dtype, device = "cpu"})
end

local function modelof(v)
  if not nacre.is_tensor(v) then return v end
  return model(v.dtype, v:dim() == 0 and {} or nil)
end

-- The dtype is that of the product of two such models.
define("result_type", "self:operand, other:operand -> dtype",
       "the dtype of the result of an operation on self and other",
function(a, b)
  if not nacre.is_tensor(a) and not nacre.is_tensor(b) then
    a, b = nacre.tensor(a), nacre.tensor(b)
  end
  return nacre.mul(modelof(a), modelof(b)).dtype
end)

define("promote_types", "type1:dtype, type2:dtype -> dtype",
       "the dtype to which operands of both are promoted", function(a, b)
  return nacre.mul(model(a), model(b)).dtype
end)

-- bool < integers < floats < complex numbers
local function category(dtype)
  return dtype == "bool" and 1 or dtype:find "int" and 2 or
         dtype:find "complex" and 4 or 3
end

define("can_cast", "from:dtype, to:dtype -> boolean",
       "may a result of dtype from be written to a tensor of dtype to?",
       function(from, to) return category(from) <= category(to) end)

-- bits, bits of the fraction, largest exponent, reliable decimal digits; the
-- largest number where nan is in its place
local floats = {float16 = {16, 10, 15, 3}, bfloat16 = {16, 7, 127, 2},
                float32 = {32, 23, 127, 6}, float64 = {64, 52, 1023, 15},
                float8_e4m3fn = {8, 3, 7, 0, 448.0},
                float8_e5m2 = {8, 2, 15, 0}}

define("finfo", "dtype:dtype=nil -> table",
       "of a float dtype, the default one if none is given, or that of the "
       .. "parts of a complex one: bits, eps, max, min, "
       .. "tiny (which is smallest_normal), resolution",
function(dtype)
  dtype = dtype or nacre.get_default_dtype()
  local parts = {complex64 = "float32", complex128 = "float64"}
  dtype = parts[dtype] or dtype
  local f = floats[dtype]
  if not f then
    fail("finfo", ("%s is not a float dtype"):format(dtype),
         ("nacre.iinfo(\"%s\")"):format(dtype))
  end
  local eps, tiny = 2.0 ^ -f[2], 2.0 ^ (1 - f[3])
  local most = f[5] or (2 - eps) * 2.0 ^ f[3]
  return {dtype = dtype, bits = f[1], eps = eps, max = most, min = -most,
          tiny = tiny, smallest_normal = tiny,
          resolution = tonumber("1e-" .. f[4])}
end)

define("iinfo", "dtype:dtype -> table",
       "of an integer dtype: bits, max, min; max of uint64 is 2.0^64, the "
       .. "nearest number of Lua",
function(dtype)
  local bits = tonumber(dtype:match "int(%d+)$")
  if not bits then
    fail("iinfo", ("%s is not an integer dtype"):format(dtype),
         ("nacre.finfo(\"%s\")"):format(dtype))
  end
  local signed = dtype:sub(1, 1) == "i"
  local most = bits == 64 and not signed and 2.0 ^ 64 or
               (1 << (signed and bits - 1 or bits)) - 1
  return {dtype = dtype, bits = bits, max = most,
          min = signed and -most - 1 or 0}
end)

define("is_signed", "self -> boolean", "true if the dtype can hold negative numbers",
function(self)
  return self.dtype ~= "bool" and not self.dtype:find "^uint"
end)

define("is_same_size", "self, other:tensor -> boolean", "true if both have the same shape",
function(self, other)
  return table.concat(self:size(), "x") == table.concat(other:size(), "x")
end)

define("is_nonzero", "self -> boolean", "is the only element of self not zero?",
function(self)
  if self:numel() ~= 1 then
    fail("is_nonzero", ("has %d elements, not one"):format(self:numel()), nil,
         "self", self)
  end
  local v = self:item()
  return v ~= 0 and v ~= false
end)
