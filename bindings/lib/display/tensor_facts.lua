-- SPDX-License-Identifier: MIT
--
-- tensor_facts.lua - facts about tensors and dtypes that several modules need.

local facts = {}

-- By float dtype: the bits of the fraction, the exponent of the least normal
-- number, and the significant decimal digits that a float always keeps and
-- those that always distinguish it from its neighbours.
facts.floats = {
  float64 = {bits = 52, least = -1022, kept = 15, needed = 17},
  float32 = {bits = 23, least = -126, kept = 6, needed = 9},
  float16 = {bits = 10, least = -14, kept = 3, needed = 5},
  bfloat16 = {bits = 7, least = -126, kept = 2, needed = 4},
  float8_e4m3fn = {bits = 3, least = -6, kept = 1, needed = 3},
  float8_e5m2 = {bits = 2, least = -14, kept = 1, needed = 2},
}

function facts.istensor(v)
  return type(v) == "userdata" and nacre.is_tensor(v)
end

-- Is this a tensor that was not freed?
function facts.is_alive(v)
  return type(v) == "userdata" and (pcall(nacre._storage_id, v))
end

-- "tensor", or what type gives.
function facts.typename(v) return facts.istensor(v) and "tensor" or type(v) end

function facts.isfloat(t) return facts.floats[t.dtype] ~= nil end

-- By storage dtype: the one to compute in.
local computed = {uint16 = "int32", uint32 = "int64", uint64 = "float64",
                  float8_e4m3fn = "float32", float8_e5m2 = "float32"}

-- t, or what it holds in a dtype to compute with.
function facts.computable(t) return t:to(computed[t.dtype] or t.dtype) end

function facts.iscomplex(t) return t.dtype:find "^complex" ~= nil end

-- By complex dtype: that of the parts.
facts.parts = {complex64 = "float32", complex128 = "float64"}

-- "float32[2x3]", without reading the elements.
function facts.kind(t) return ("%s[%s]"):format(t.dtype, facts.shape(t)) end

-- "float32[2x3] cpu"
function facts.kind_and_device(t)
  return facts.kind(t) .. " " .. tostring(t.device)
end

-- The bytes of the elements.
function facts.bytes(t) return t:numel() * t:element_size() end

-- "2x3"
function facts.shape(t) return table.concat(t:size(), "x") end

function facts.same_shape(a, b)
  return a:dim() == b:dim() and facts.shape(a) == facts.shape(b)
end

-- The indices of the k-th element, counted row by row from 1.
function facts.indices(k, size)
  local at = {}
  for d = #size, 1, -1 do
    at[d] = (k - 1) % size[d] + 1
    k = (k - 1) // size[d] + 1
  end
  return at
end

-- "[2,3]"
function facts.index(k, size)
  return "[" .. table.concat(facts.indices(k, size), ",") .. "]"
end

-- Of two dtypes the float one with fewer bits; nil if neither is a float.
function facts.coarser(a, b)
  local x, y = facts.floats[a], facts.floats[b]
  if not x or not y then return x and a or y and b or nil end
  return x.bits <= y.bits and a or b
end

return facts
