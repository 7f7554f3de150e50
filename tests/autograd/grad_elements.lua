-- SPDX-License-Identifier: MIT
-- An element of a tensor that is recorded keeps its gradient; any other one
-- is a number.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is = C.fails, C.is

local leaf = C.leaf

local function gradient(f, v)
  local x = leaf(v)
  f(x):backward()
  return x.grad
end

local function scalar(t)
  return nacre.is_tensor(t) and t:dim() == 0 and t.requires_grad
end

-- ---- every way to write a full index
do
  is(gradient(function(q) return (q * q):sum() + 5 * q[1] end, {2, 3}),
     "{9.0,6.0}")
  local p = leaf {-1.2, 1}
  local f = (1 - p[1]) ^ 2 + 100 * (p[2] - p[1] ^ 2) ^ 2
  f:backward()
  assert(p.grad:allclose(nacre.tensor({-215.6, -88},
                                      {dtype = "float64"})))
  local forms = {
    function(m) return m[2][1] end, function(m) return m[{2, 1}] end,
    function(m) return m(2, 1) end, function(m) return m["2, 1"] end,
    function(m) return m(-1, 1) end, function(m) return m["2, ..., 1"] end,
  }
  for i, element in ipairs(forms) do
    is(gradient(function(m) return 3 * element(m) end,
                {{1, 2}, {3, 4}}), "{{0.0,0.0},{3.0,0.0}}")
    assert(scalar(element(leaf {{1, 2}, {3, 4}})), i)
  end
end

-- ---- results, views, and going through them
do
  local x = leaf {1, 2, 3}
  local y = x * 2
  assert(scalar(y[1]) and scalar(x:view(3)[2]) and scalar(x["2:3"][1]))
  is(gradient(function(t)
    local sum = 0
    for i, v in pairs(t) do sum = sum + i * v end
    for v in t:iter() do sum = sum + v end
    local a, b, c = table.unpack(t)
    return sum + a * b * c
  end, {1, 2, 3}), "{8.0,6.0,6.0}")
  is(gradient(function(t)
    local z = nacre.zeros(2, {dtype = "float64"})
    z[1], z[2] = t[2] * 3, t[1]
    return (z * z):sum()
  end, {1, 2}), "{2.0,36.0}")
  -- a view made before its base is recorded
  local base = nacre.zeros(3, {dtype = "float64"})
  local view = base["1:2"]
  assert(view[1] == 0)
  base:add_(x)
  assert(scalar(view[1]) and scalar(base[1]))
end

-- ---- elsewhere numbers
do
  local x = leaf {1, 2, 3}
  assert(nacre.tensor {5}[1] == 5 and x:detach()[3] == 3)
  assert(nacre.no_grad(function() return x[2] end) == 2)
  assert(nacre.no_grad(function() return x(2) end) == 2)
  assert((x:gt(1))[1] == false and x:long()[2] == 2)
  local seen
  local y = x * 2
  y:register_hook(function(g) seen = {g[1], x[3]} end)
  y:sum():backward()
  assert(seen[1] == 1 and seen[2] == 3)
end

-- ---- comparison, and where Lua wants a number
do
  local x = leaf {1, 2}
  assert(x[1] < 2 and x[2] >= x[1] and 1 <= x[1] and not (x[2] < x[1]))
  assert(x[1] ~= 1 and x[1]:item() == 1)
  fails("number expected, got tensor", math.floor, x[1])
  fails("number expected, got tensor", string.format, "%g", x[1])
  fails("outside dim 1", function() return x[3] end)
  fails("indices start at 1", function() return x[0] end)
end

-- ---- what is not recorded because recording is off
fails("operations are not recorded inside", function()
  local x = leaf {1, 2}
  x:register_hook(function()
    leaf {1}:sum():backward()
  end)
  x:sum():backward()
end)
