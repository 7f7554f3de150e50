-- SPDX-License-Identifier: MIT
-- Assigning through an index, in every form; every message.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local dtypes, fails, is, range = C.dtypes, C.fails, C.is, C.range
local minint, maxint = math.mininteger, math.maxinteger
local new = nacre.newaxis
local T = nacre.tensor

local function set(t, key, value) t[key] = value end

local a = range(3, 4)

do -- assigning: one element
  for _, dtype in ipairs(dtypes) do
    local t = nacre.zeros(2, 3, {dtype = dtype})
    t[{2, -1}] = 1
    t[1][2] = 1
    t["1,1"] = true
    is(t:to "int64", "{{1,1,0},{0,0,1}}")
    t[{1, 1}] = 2.7
    local got = t[{1, 1}]
    if dtype == "bool" then assert(got == true)
    elseif dtype:find "int" then assert(got == 2)
    else assert(math.abs(got - 2.7) < .02) end
    t[{1, 1}] = false
    assert(t[{1, 1}] == (dtype ~= "bool" and 0))
    t[{1, 1}] = T(1.0)
    assert(t[{1, 1}] == (dtype == "bool" or 1))
    t[1] = nacre.zeros(3, {dtype = "float64"})
    assert(t:sum():item() == 1)
  end
  local t = T {0, 0}
  t[1] = maxint
  t[-1] = minint
  assert(t[1] == maxint and t[2] == minint)
  t[1] = T(maxint)
  assert(t[1] == maxint)
  local s = T(1.5)
  s[{}] = 2
  assert(s:item() == 2)
  s["..."] = 3
  assert(s:item() == 3)
  local u = nacre.zeros(3, {dtype = "uint8"})
  u[1], u[{{2, 2}}], u[T {3}] = -1, -1, -1     -- wraps, as integers do
  is(u, "{255,255,255}")
  local f = nacre.zeros(2)
  f[1], f[2] = 0 / 0, -math.huge
  assert(f[1] ~= f[1] and f[2] == -math.huge)
  local i = nacre.zeros(3, {dtype = "int32"})
  for _, key in ipairs {1, {{1, 2}}, T {1, 2}, i:eq(0)} do
    fails("300 does not fit in uint8", set, u, key, 300)
    fails("3e+09 does not fit in int32", set, i, key, 3e9)
    fails("nan does not fit in int32", set, i, key, 0 / 0)
  end
  fails("1e+300 does not fit in float32", set, f, 1, 1e300)
  is(u, "{255,255,255}")
  is(i, "{0,0,0}")
end

do -- assigning: views
  local t = nacre.zeros(3, 4, {dtype = "int64"})
  t[1] = 1
  t[{{}, 4}] = 2
  t[{{2, 3}, {1, 2}}] = T {3, 4}
  is(t, "{{1,1,1,2},{3,4,0,2},{3,4,0,2}}")
  t["2:, 3"] = T {5, 6}
  t[{1, "::2"}] = 9.99
  is(t, "{{9,1,9,2},{3,4,5,2},{3,4,6,2}}")
  t[{}] = T {{1}, {2}, {3}}
  is(t, "{{1,1,1,1},{2,2,2,2},{3,3,3,3}}")
  t["..."] = 0
  t[{new, 1}] = 7
  t[{2, new}] = T {{8}}
  t[3] = nacre.ones(1, 1, 4)                   -- leading ones go
  is(t, "{{7,7,7,7},{8,8,8,8},{1,1,1,1}}")
  t[{{3, 2}}] = 5                          -- nothing
  t[{{3, 2}}] = nacre.ones(0, 4)
  t[{{}, {1, 0}}] = nacre.ones(4, 1, 1, 1):narrow(1, 1, 1)
  is(t, "{{7,7,7,7},{8,8,8,8},{1,1,1,1}}")
  t:t()[1] = T {4, 5, 6}
  is(t[{{}, 1}], "{4,5,6}")
  local e = fails("a [2] tensor does not broadcast to [4]", set, t, 1, T {1, 2})
  assert(e.args[1].role == "self" and e.args[2].role == "value")
  fails("a [2x4] tensor does not broadcast to [4]", set, t, 1, nacre.ones(2, 4))
  fails("a function cannot be assigned to elements: use a number, a boolean, "
        .. "a list or a tensor", set, t, 1, print)
  t[1] = {1, 2, 3, 4}
  t[{2, {}}] = {5}
  t["3, 1:2"] = {6, 7.9}
  is(t, "{{1,2,3,4},{5,5,5,5},{6,7,1,1}}")
  fails("a [2] tensor does not broadcast to [4]", set, t, 1, {1, 2})
  fails("a [2] tensor does not broadcast to []", set, t, {1, 1}, {1, 2})
  fails("an element is a string", set, t, 1, {1, 2, 3, "x"})
  fails("a list has the key 0", set, t, 1, {[0] = 1, 1, 2, 3, 4})
  local double = nacre.zeros(2, {dtype = "float64"})
  double[{{}}] = {0.1, 0.2}
  assert(double[1] == 0.1 and double[2] == 0.2)
  local whole = nacre.zeros(2, {dtype = "int64"})
  whole["1:2"] = {1 << 53 | 1, 2}
  assert(whole[1] == 1 << 53 | 1)
  whole["1:2"] = {16777217.5, -2.5}
  assert(whole[1] == 16777217 and whole[2] == -2)
  fails("a nil cannot be assigned to elements", set, t, 1, nil)
  fails("a string cannot be assigned to elements", set, t, 1, "1")
  fails("dtype cannot be assigned", 'self = self:to("int8")', set, t, "dtype",
        "int8")
  fails("shape cannot be assigned", "self = self:reshape(...)", set, t,
        "shape", {4})
  fails("a tensor has no field 'foo'", set, t, "foo", 3)
  fails("index 4 is outside dim 1", set, t, 4, 1)
  fails("3 indices for a tensor of 2 dimensions", set, t, {1, 1, 1}, 1)
  for _, from in ipairs(dtypes) do
    for _, to in ipairs(dtypes) do
      local x = nacre.zeros(2, 2, {dtype = to})
      x[{{}, 1}] = T({1, 0}):to(from)
      x[{2, T {2}}] = T({1}):to(from)
      is(x:to "int64", "{{1,0},{0,1}}")
    end
  end
end

do -- assigning: what overlaps
  local t = nacre.arange(6)
  t[{{2, 5}}] = t[{{1, 4}}]
  is(t, "{0,0,1,2,3,5}")
  t = nacre.arange(6)
  t[{{1, 4}}] = t[{{2, 5}}]
  is(t, "{1,2,3,4,4,5}")
  t = range(3, 3)
  t["..."] = t:t()
  is(t, "{{0,3,6},{1,4,7},{2,5,8}}")
  t = range(3, 3)
  t[{{}, 1}] = t[2]
  is(t, "{{3,1,2},{4,4,5},{5,7,8}}")
  t = nacre.arange(6)
  t[T {2, 3, 4}] = t[{{1, 3}}]
  is(t, "{0,0,1,2,4,5}")
  t = T {2, 3, 1}
  t[t] = t
  is(t, "{1,2,3}")
  t = T {3, 1, 2}
  t[t] = 7
  is(t, "{7,7,7}")
  t = T {true, false, true}
  t[t] = false
  is(t, "{false,false,false}")
  local big = nacre.arange(200000)
  big[{{2, -1}}] = big[{{1, -2}}]
  assert(big[-1] == 199998 and big[1] == 0 and big[2] == 0 and big[3] == 1)

  local e = nacre.zeros(3):expand(2, 3)
  for _, key in ipairs {1, {1, 1}, {}, {{}, 1}, T {1}, e:eq(0)} do
    fails("several elements of the tensor share memory, it "
          .. "cannot be written to", "self:clone() first", set, e, key, 1)
  end
  fails("share memory", set, nacre.zeros(1):expand(3), 2, 1)
  is(e, "{{0.0,0.0,0.0},{0.0,0.0,0.0}}")
  nacre.zeros(1, 3):expand(1, 3)[1] = 1        -- nothing is shared
end

do -- assigning: index tensors
  local t = nacre.zeros(6, {dtype = "int64"})
  t[T {1, 3, -1}] = T {1, 2, 3}
  is(t, "{1,0,2,0,0,3}")
  t[T {2, 4}] = 9
  is(t, "{1,9,2,9,0,3}")
  t[T {5, 5, 5}] = T {1, 2, 3}             -- the last one stays
  assert(t[5] == 3 or t.device ~= "cpu")    -- on a device, any one
  t[5] = 3
  t[T {{1, 2}, {3, 4}}] = T {{10, 20}, {30, 40}}
  is(t, "{10,20,30,40,3,3}")
  t[T {{1, 2}, {3, 4}}] = T {{1}, {2}}
  is(t, "{1,1,2,2,3,3}")
  t[T {{1, 2}, {3, 4}}] = T {{1, 2}, {3, 4}}:t()
  is(t, "{1,3,2,4,3,3}")
  t[T(1)] = 8
  assert(t[1] == 8)
  local m = nacre.zeros(3, 4, {dtype = "int64"})
  m[T {1, 3}] = T {1, 2, 3, 4}
  is(m, "{{1,2,3,4},{0,0,0,0},{1,2,3,4}}")
  m[{{}, T {1, -1}}] = T {{7, 8}}
  is(m, "{{7,2,3,8},{7,0,0,8},{7,2,3,8}}")
  m[{T {1, 2}, T {2, 3}}] = T {5, 6}
  is(m, "{{7,5,3,8},{7,0,6,8},{7,2,3,8}}")
  m[{2, T {1, 2}}] = 0
  m[{{3, 3}, T {1, 2}}] = -1.9
  is(m, "{{7,5,3,8},{0,0,6,8},{-1,-1,3,8}}")
  m:t()[T {1, 2}] = T {{1, 2, 3}, {4, 5, 6}}
  is(m, "{{1,4,3,8},{2,5,6,8},{3,6,3,8}}")
  m[nacre.zeros(0, {dtype = "int64"})] = 5
  local c = nacre.zeros(2, 3, 4)
  c[{T {1, 2}, {}, T {1, 4}}] = T {{1}, {2}}
  assert(c:sum():item() == 9 and c[{2, 3, 4}] == 2 and c[{1, 2, 1}] == 1)
  c[{T {1, 2}, {}, T {1, 4}}] = T {1, 2, 3}
  is(c[{2, {}, 4}], "{1.0,2.0,3.0}")
  local keep = m:clone()
  fails("index 5 is outside dim 2 of size 4", set, m, {{}, T {1, 5}}, 0)
  fails("index 0: indices start at 1", set, m, {1, T {1, 0}}, 0)
  fails("index 4 is outside dim 1", set, m, {T {1, 4}, T {1, 1}}, 0)
  fails("index tensors of [2] and [3] do not broadcast", set, m,
        {T {1, 2}, T {1, 2, 3}}, 0)
  fails("cannot be expanded to 2", set, m, {T {1, 2}, T {1, 2}}, T {1, 2, 3})
  fails("indices must be integers or bool, not float64", set, m,
        T {1.0}:to "float64", 0)
  if m.device == "cpu" then                    -- others find out too late
    assert(m:equal(keep))                      -- nothing was written
  end
end

do -- assigning: masks
  local t = nacre.arange(6)
  t[t:gt(3)] = 0
  is(t, "{0,1,2,3,0,0}")
  t[t:eq(0)] = T {7, 8, 9}
  is(t, "{7,1,2,3,8,9}")
  t[t:eq(0)] = 5                               -- nothing
  t[t:eq(0)] = nacre.zeros(0)
  t[t:gt(6)] = T {4}
  is(t, "{4,1,2,3,4,4}")
  t[t:gt(3)] = T(2.9)
  t[t:eq(1)] = true
  is(t, "{2,1,2,3,2,2}")
  local m = range(3, 4)
  m[m:remainder(2):eq(1)] = -1
  is(m, "{{0,-1,2,-1},{4,-1,6,-1},{8,-1,10,-1}}")
  m[T {true, false, true}] = 0
  is(m, "{{0,0,0,0},{4,-1,6,-1},{0,0,0,0}}")
  m[{{}, T {true, false, false, true}}] = 1
  is(m, "{{1,0,0,1},{1,-1,6,1},{1,0,0,1}}")
  m[{2, T {true, true, false, false}}] = T {3, 4}
  is(m[2], "{3,4,6,1}")
  m[T {true, true, false}] = T {1, 2, 3, 4}
  is(m, "{{1,2,3,4},{1,2,3,4},{1,0,0,1}}")
  m:t()[m:t():eq(4)] = 0
  is(m, "{{1,2,3,0},{1,2,3,0},{1,0,0,1}}")
  m[T {true, false, true}] = T {{5}, {6}}
  is(m, "{{5,5,5,5},{1,2,3,0},{6,6,6,6}}")
  m[T {false, true, false}] = m[1][{{1, 1}}]
  is(m[2], "{5,5,5,5}")
  m[T(false)] = 1
  is(m[2], "{5,5,5,5}")
  m[T(true)] = 1
  is(m, "{{1,1,1,1},{1,1,1,1},{1,1,1,1}}")
  local c = nacre.zeros(2, 3, 4)
  c[{{}, range(3, 4):ge(10)}] = T {1, 2}
  is(c[{2, 3}], "{0.0,0.0,1.0,2.0}")
  c[{1, range(3, 4):ge(10)}] = 5
  is(c[{1, 3}], "{0.0,0.0,5.0,5.0}")
  local keep = t:clone()
  fails("the mask is [5], dim 1 of the tensor is [6]", set, t,
        nacre.ones(5):gt(0), 0)
  fails("cannot be expanded", set, t, t:eq(2), T {1, 2})
  fails("a uint8 tensor cannot be an index", set, t, t:eq(2):to "uint8", 1)
  assert(t:equal(keep))
  for _, dtype in ipairs(dtypes) do
    local x = nacre.zeros(2, 2, {dtype = dtype})
    x[T {{true, false}, {false, true}}] = 1
    is(x:to "int64", "{{1,0},{0,1}}")
    x[T {{true, true}, {false, false}}] = T {0.0, 1.0}
    is(x:to "int64", "{{0,1},{0,1}}")
  end
end
