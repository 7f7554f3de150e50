-- SPDX-License-Identifier: MIT
-- Convolutions as sums over shifted slices, for the tests of them:
--   local by = dofile(here .. "../lib/conv_slices.lua")
-- o has stride, padding, dilation, of two numbers each, and groups:
-- by.options(o) completes it.

-- Of x, padded, what element (i, j) of a kernel sees: [n x c x oh x ow].
local function seen(x, i, j, o, out)
  local function range(d, k)
    local from = 1 + (k - 1) * o.dilation[d]
    return {from, from + (out[d] - 1) * o.stride[d], o.stride[d]}
  end
  return x[{{}, {}, range(1, i), range(2, j)}]
end

local function places(x, k, o)
  local out = {}
  for d = 1, 2 do
    local reach = o.dilation[d] * (k[d] - 1) + 1
    out[d] = (x:size(2 + d) + 2 * o.padding[d] - reach) // o.stride[d] + 1
  end
  return out
end

local function padded(x, o)
  local a, b = o.padding[1], o.padding[2]
  return x:pad({b, b, a, a})
end

local function byslices(x, w, o)
  local g, y = o.groups, nil
  local n, k = x:size(1), {w:size(3), w:size(4)}
  local out, t = places(x, k, o), padded(x, o)
  for i = 1, k[1] do
    for j = 1, k[2] do
      local part = seen(t, i, j, o, out):reshape(n, g, -1, out[1] * out[2])
      local by = w[{{}, {}, i, j}]:reshape(g, w:size(1) // g, -1)
      local one = by:matmul(part)
      y = y and y + one or one
    end
  end
  return y:reshape(n, w:size(1), out[1], out[2])
end

local function options(o)
  for name, default in pairs {stride = 1, padding = 0, dilation = 1} do
    local v = o[name] or default
    o[name] = type(v) == "table" and v or {v, v}
  end
  o.groups = o.groups or 1
  return o
end

return {options = options, seen = seen, padded = padded, sum = byslices}
