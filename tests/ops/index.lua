-- SPDX-License-Identifier: MIT
-- Indexing in every form; every message.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local dtypes, odd, fails, range = C.dtypes, C.odd, C.fails, C.range
local text, shape, is, shares = C.text, C.shape, C.is, C.shares
local minint, maxint = math.mininteger, math.maxinteger
local new = nacre.newaxis
local T = nacre.tensor

local function get(t, key) return t[key] end
local function set(t, key, value) t[key] = value end

local v = nacre.arange(10, 70, 10)            -- 10 20 30 40 50 60
local a = range(3, 4)
local cube = range(2, 3, 4)
local scalar = T(5)
local empty = nacre.zeros(0, 3)
local eight = range(1, 2, 1, 2, 1, 2, 1, 2)

do -- a full index is a Lua number, exact, or a boolean
  assert(v[1] == 10 and v[6] == 60 and v[-1] == 60 and v[-6] == 10)
  assert(v[2.0] == 20 and v[{2}] == 20 and v["2"] == 20 and v(2) == 20)
  assert(math.type(v[1]) == "integer")
  assert(a[{2, 3}] == 6 and a[2][3] == 6 and a(2, 3) == 6)
  assert(a["2, 3"] == 6 and a[{"...", -1, -1}] == 11 and a["2,3,..."] == 6)
  assert(scalar[{}] == 5 and scalar() == 5 and scalar["..."] == 5)
  assert(eight[{1, 2, 1, 2, 1, 2, 1, -1}] == 15)
  assert(T {maxint, minint}[1] == maxint)
  assert(T {maxint, minint}[-1] == minint)
  assert(T({(1 << 53) + 1})[1] == (1 << 53) + 1)
  local e = nacre.zeros(2, 3):expand(4, 2, 3)
  assert(e[{4, 2, 3}] == 0.0 and a:t()[{4, 1}] == 3)
  for _, dtype in ipairs(dtypes) do
    local t = T {{0, 1}, {1, 0}}:to(dtype)
    local x = t[{2, 1}]
    if dtype == "bool" then assert(x == true and t[{1, 1}] == false)
    else
      assert(x == 1)
      assert(math.type(x) == (dtype:find "int" and "integer" or "float"))
    end
    assert(t[1][2] == x)
  end
  assert(T({1.5, -2.25}, {dtype = "float16"})[2] == -2.25)
  assert(T({1.5, -2.25}, {dtype = "bfloat16"})[2] == -2.25)
  assert(T({200}, {dtype = "uint8"})[1] == 200)
  assert(T({-100}, {dtype = "int8"})[1] == -100)
end

do -- views
  assert(shares(a, a[1]) and shares(a, a[{{}, 2}]))
  is(a[2], "{4,5,6,7}")
  is(a[-1], "{8,9,10,11}")
  is(a[{{}, 2}], "{1,5,9}")
  is(a[{{2, 3}}], "{{4,5,6,7},{8,9,10,11}}")
  is(a[{2, {2, 3}}], "{5,6}")
  is(a[{{1, 2}, {3, 4}}], "{{2,3},{6,7}}")
  is(a[{{}, {1, -1, 2}}], "{{0,2},{4,6},{8,10}}")
  is(a[{"...", 1}], "{0,4,8}")
  is(a[{1, "..."}], "{0,1,2,3}")
  is(cube[{1, "...", 2}], "{1,5,9}")
  is(cube[{"...", 2, 1}], "{4,16}")
  shape(cube[{}], 2, 3, 4)
  shape(cube[{"..."}], 2, 3, 4)
  shape(cube(), 2, 3, 4)
  shape(cube[{2}], 3, 4)
  shape(cube[{{}, {}, {}, "..."}], 2, 3, 4)
  is(cube(2, 3), "{20,21,22,23}")
  is(cube({1, 2}, 1, {2, 3}), "{{1,2},{13,14}}")
  shape(scalar[{new}], 1)
  shape(scalar[{new, "...", new}], 1, 1)
  is(v[{new, {1, 2}}], "{{10,20}}")
  is(v[{{1, 2}, new}], "{{10},{20}}")
  shape(v[new], 1, 6)
  shape(a[{new, 1, new, {}, new}], 1, 1, 4, 1)
  shape(eight[{new, 1}], 1, 2, 1, 2, 1, 2, 1, 2)
  shape(eight[{1, new}], 1, 2, 1, 2, 1, 2, 1, 2)
  shape(empty[{{}, 2}], 0)
  shape(empty[{{1, 5}}], 0, 3)
  local keep = a:clone()
  a[{{2, 3}, {1, -1, 3}}]:fill_(-1)
  is(a, "{{0,1,2,3},{-1,5,6,-1},{-1,9,10,-1}}")
  a:copy_(keep)
end

do -- ranges: both ends included, cut off as string.sub does
  local s = "abcdef"
  for i = -9, 9 do
    for j = -9, 9 do
      if i ~= 0 then
        local want = {}
        for c in s:sub(i, j):gmatch "." do
          want[#want + 1] = tostring((c:byte() - 96) * 10)
        end
        want = "{" .. table.concat(want, ",") .. "}"
        is(v[{{i, j}}], want)
        is(v[("%d:%d"):format(i, j)], want)
        assert(v[{{i, j, 2}}]:numel() == (v[{{i, j}}]:numel() + 1) // 2)
      end
    end
  end
  is(v[{{3, 2}}], "{}")
  is(v[{{1, 0}}], "{}")
  is(v[{{2, -1, 2}}], "{20,40,60}")
  is(v[{{1, 6, 5}}], "{10,60}")
  is(v[{{1, 6, 6}}], "{10}")
  is(v[{{1.0, 2.0}}], "{10,20}")
  for _, i in ipairs(odd) do
    for _, j in ipairs(odd) do
      local ok, r = pcall(get, v, {{i, j}})
      assert(ok == (i ~= 0), tostring(r))
      ok = pcall(get, v, {{1, i, j}})
      assert(ok == (j > 0))
    end
  end
end

do -- as text
  is(a["2"], "{4,5,6,7}")
  is(a["1:2, ::3"], "{{0,3},{4,7}}")
  is(a[" :, -1 "], "{3,7,11}")
  is(a["...,1"], "{0,4,8}")
  is(a["2:,:2"], "{{4,5},{8,9}}")
  is(a["-2:-1,1"], "{4,8}")
  is(a["::2,2:4:2"], "{{1,3},{9,11}}")
  is(a["1:0"], "{}")
  is(a["2, "], "{4,5,6,7}")
  shape(a["newaxis, :, newaxis"], 1, 3, 1, 4)
  shape(a[":"], 3, 4)
  shape(a["::"], 3, 4)
  is(a[{"1:2", 2}], "{1,5}")
  is(a[{2, "::2"}], "{4,6}")
  is(a("2:3", "1, ..."), "{4,8}")
  is(a["1 : 2 : 1 ,1"], "{0,4}")
  is(v["99999999999999999999:"], "{}")
  is(v["-99999999999999999999:2"], "{10,20}")
  is(v["5:99999999999999999999"], "{50,60}")
  is(v["-9223372036854775808:-9223372036854775808"], "{}")
  fails("index 9223372036854775807 is outside dim 1", get, v,
        "9223372036854775808")
  fails("index -9223372036854775808 is outside dim 1", get, v,
        "-99999999999999999999")
  for _, bad in ipairs {",", "1,,", ",1", "1:2:3:4", "1:x", "1 2", "--1", "1.5",
                        "..", "1:2.", "1,,2", "0x1", "1e1", "[1]", "1;2",
                        "- 1", "::0x", "1\0"} do
    fails("is not a valid index",
          "indices as text: numbers, a:b, a:b:step, :, ... "
          .. "and newaxis", get, cube, {bad})
  end
  fails("'' is not a valid index", get, cube, {""})
  fails("'1:q' is not a valid index", get, cube, "1:q")
  fails("index 0: indices start at 1", get, v, "0:2")
  fails("step 0: steps must be positive", get, v, "::0")
  fails("step -1: steps must be positive", get, v, "::-1")
end

do -- what is outside
  fails("index 4 is outside dim 1 of size 3 (indices run from 1 to 3, or -3 to "
        .. "-1)", get, a, 4)
  local e = fails("index -5 is outside dim 2 of size 4 (indices run from 1 to "
                  .. "4, or -4 to -1)", get, a, {1, -5})
  assert(#e.args == 1 and e.args[1].role == "self" and e.code == "EINDEX" and
         rawequal(e.args[1].tensor, a) and e.op == nil)
  fails("index 5 is outside dim 3", get, cube, {"...", 5})
  fails("index 0: indices start at 1",
        "self[1] is the first row, self[-1] the last", get, a, 0)
  fails("index 0: indices start at 1",
        "self[1] is the first element, self[-1] the last", get, v, 0)
  fails("index 0: indices start at 1",
        "1 is the first of dim 2, -1 the last", get, a, {1, 0})
  fails("index 0: indices start at 1", get, a, {{0, 2}})
  fails("index 1 is outside dim 1, which is empty", get, empty, 1)
  fails("3 indices for a tensor of 2 dimensions", get, a, {1, 1, 1})
  fails("1 index for a tensor of 0 dimensions", get, scalar, 1)
  fails("2 indices for a tensor of 1 dimension", get, v, {{}, {}})
  fails("2 indices for a tensor of 1 dimension", get, v, nacre.ones(2, 2):gt(0))
  fails("'...' occurs twice among the indices", get, a, {"...", "..."})
  fails("'...' occurs twice among the indices", get, a, {1, "...", 1, "..."})
  fails("9 dimensions, at most 8 are supported", get, eight, new)
  fails("step 0: steps must be positive", get, v, {{1, 2, 0}})
  fails("step -2: steps must be positive", get, v, {{6, 1, -2}})
  for _, i in ipairs(odd) do
    assert(pcall(get, v, i) == (i ~= 0 and i >= -6 and i <= 6))
    assert(pcall(get, a, {i, 1}) == (i ~= 0 and i >= -3 and i <= 3))
    assert(pcall(set, v:clone(), i, 1) == (i ~= 0 and i >= -6 and i <= 6))
  end
end

do -- what is not a valid index
  fails("index 1.5 is not an integer", get, v, 1.5)
  fails("index inf is not an integer", get, v, math.huge)
  fails("index 2.5 is not an integer", get, v, {{1, 2.5}})
  fails("a boolean is not a valid index: use an integer, {first, last}, {}, " ..
        "a tensor "
        .. "or a string", get, v, true)
  fails("a function is not a valid index", get, v, print)
  fails("a nil is not a valid index", get, v, nil)
  fails("a userdata is not a valid index", get, v, io.stdout)
  fails("a range is made of integers, not of a table", get, v, {{1, {}}})
  fails("a range is made of integers, not of a string", get, v, {{"1", 2}})
  fails("a range needs a first and a last number",
        "{2,-1} goes from 2 to the end, {2,2} is 2 alone", get, v, {{2}})
  fails("a range has two or three numbers, not 4",
        "nacre.tensor{...} as an index picks elements", get, v,
        {{1, 2, 3, 4}})
  fails("a range is {first, last} or {first, last, step}", get, v,
        {{first = 1}})
  fails("indices have no names", get, v, {dim = 1})
  local many = {}
  for i = 1, 17 do many[i] = 1 end
  fails("more than 16 indices",
        "nacre.tensor{...} as an index picks elements", get, v, many)
  fails("more than 16 indices", get, v, {(":,"):rep(15) .. ":", 1})
  fails("more than 16 indices", function() v(table.unpack(many)) end)
  fails("is not a valid index", get, v, (":,"):rep(99) .. ":")
  fails("indices must be integers or bool, not float32", 'index:to("int64")',
        get, v, nacre.ones(2))
  local e = fails("a uint8 tensor cannot be an index: a mask must be bool, " ..
                  "positions "
                  .. "int64", 'index:to("bool")', get, v,
                  T({1, 0}, {dtype = "uint8"}))
  assert(e.args[2].role == "index" and e.args[2].dtype == "uint8")
end

do -- index tensors
  is(a[{T {{1}, {3}}, T {1, -1}}], "{{0,3},{8,11}}")
  is(a[{{2, 3}, T {2}}], "{{5},{9}}")
  is(a[{2, T {2, 2}}], "{5,5}")
  is(a(T {2}, {1, 2}), "{{4,5}}")
  is(cube[{T {2, 1}, {}, T {1, 4}}], "{{12,16,20},{3,7,11}}")
  is(cube[{{}, T {1, 3}, T {1, 4}}], "{{0,11},{12,23}}")
  is(cube[{T {1}, {1, 2}, T {{1}, {2}}}], "{{{0,4}},{{1,5}}}")
  shape(cube[{{}, T {{1, 2, 3}}, {}}], 2, 1, 3, 4)
  shape(cube[{T {1, 2}, new, T {1, 2}}], 2, 1, 4)
  shape(cube[{{}, T {1, 2}, new}], 2, 2, 1, 4)
  is(cube:permute(3, 1, 2)[{T {2, 1}, 2}], "{{13,17,21},{12,16,20}}")
  is(cube[{{1, 2}, {1, 3, 2}, T {1}}],
     "{{{0},{8}},{{12},{20}}}")
  for _, i in ipairs {"int8", "int16", "int32", "int64"} do
    is(v[T({2, -2}):to(i)], "{20,50}")
  end
  is(v[T {1, 2, 3, 4}:slice(1, 1, -1, 2)], "{10,30}")
  is(v[T {2}:expand(3)], "{20,20,20}")
  shape(v[nacre.zeros(0, {dtype = "int64"})], 0)
  is(cube[{1, {}, T {4, 2}}], "{{3,1},{7,5},{11,9}}")
  shape(cube[{T {1, 2}, "...", T {1, 2}}], 2, 3)
  shape(cube[{{}, T {1, 2}, "...", T {1, 2}}], 2, 2)
  shape(a[nacre.zeros(0, {dtype = "int64"})], 0, 4)
  shape(a[{{}, nacre.zeros(2, 0, {dtype = "int64"})}], 3, 2, 0)
  shape(empty[{{}, T {1, 2}}], 0, 2)
  assert(not shares(v, v[T {1}]))
  assert(shares(v, v[T(2)]))                   -- 0-d: as a number, a view
  is(v[T(2)], "20")
  is(a[{T(-1), T(2)}], "9")
  is(a[T(2)], "{4,5,6,7}")
  shape(eight[{"...", T {1}}], 1, 2, 1, 2, 1, 2, 1, 1)
  fails("index 7 is outside dim 1 of size 6 (indices run from 1 to 6, or -6 to "
        .. "-1)", get, v, T {1, 7, 99})
  fails("index 0: indices start at 1", get, v, T {1, 0})
  fails("index -4 is outside dim 1 of size 3", get, a, T {1, -4})
  fails("index 5 is outside dim 2 of size 4", get, a, {1, T {5}})
  fails("index 9 is outside dim 1 of size 6", get, v, T(9))
  fails("index 1 is outside dim 1, which is empty", get, empty, T {1})
  local e = fails("index tensors of [2] and [3] do not broadcast", get, a,
                  {T {1, 2}, T {1, 2, 3}})
  assert(e.args[1].role == "self" and e.args[2].role == "index")
  fails("9 dimensions, at most 8 are supported", get, eight, T {{1}})
  for _, i in ipairs(odd) do
    local ok = i ~= 0 and i >= -6 and i <= 6
    assert(C.works(get, v, T {i}) == ok and C.works(get, v, T(i)) == ok)
  end
  for _, dtype in ipairs(dtypes) do
    local t = T {{1, 0}, {0, 1}, {1, 1}}:to(dtype)
    local r = t[T {3, 1}]
    assert(r.dtype == dtype)
    is(r:to "int64", "{{1,1},{1,0}}")
    is(t[{{}, T {2, 2, 1}}]:to "int64", "{{0,0,1},{1,1,0},{1,1,1}}")
    is(t:t()[{{}, T {2}}]:to "int64", "{{0},{1}}")
  end
end

do -- masks
  is(a[{{}, T {true, false, false, true}}], "{{0,3},{4,7},{8,11}}")
  is(a[{2, T {true, false, false, true}}], "{4,7}")
  is(a:t()[a:t():gt(8)], "{9,10,11}")
  is(a:t()[a:t():lt(6)], "{0,4,1,5,2,3}")
  is(cube[{{}, range(3, 4):ge(10)}], "{{10,11},{22,23}}")
  is(cube[{2, range(3, 4):ge(10)}], "{22,23}")
  is(cube[{{1, 1}, T {true, false, true}, T {1, 4}}], "{{0,11}}")
  is(cube[{T {true, true}, {}, T {1, 4}}], "{{0,4,8},{15,19,23}}")
  is(cube:slice(3, 1, -1, 2)[{"...", T {false, true}}],
     "{{{2},{6},{10}},{{14},{18},{22}}}")
  shape(v[v:gt(99)], 0)
  shape(a[T {false, false, false}], 0, 4)
  shape(empty[empty:gt(0)], 0)
  shape(empty[nacre.zeros(0):gt(0)], 0, 3)
  shape(v[T(true)], 1, 6)                      -- 0-d: takes no dimension
  shape(v[T(false)], 0, 6)
  shape(scalar[T(true)], 1)
  shape(a[{{}, T(true)}], 3, 1, 4)
  assert(not shares(v, v[v:gt(0)]))
  local e = fails("the mask is [3x3], dims 1 to 2 of the tensor are [3x4]", get,
                  a, nacre.ones(3, 3):gt(0))
  assert(e.args[2].role == "mask" and e.code == "ESHAPE")
  fails("the mask is [5], dim 1 of the tensor is [6]", get, v,
        nacre.ones(5):gt(0))
  fails("the mask is [3], dim 2 of the tensor is [4]", get, a,
        {{}, nacre.ones(3):gt(0)})
  fails("3 indices for a tensor of 2 dimensions", get, a,
        {1, nacre.ones(3, 4):gt(0)})
  fails("index tensors of [2] and [3] do not broadcast", get, a,
        {T {true, true, false}, T {1, 2, 3}})
  for _, dtype in ipairs(dtypes) do
    local t = T {1, 0, 1}:to(dtype)
    local r = t[T {true, true, false}]
    assert(r.dtype == dtype)
    is(r:to "int64", "{1,0}")
  end
end

do -- many elements, on several threads, against sums known beforehand
  local n = 300000
  local x = nacre.arange(n)
  local back = nacre.arange(n, 0, -1)          -- n .. 1
  local r = x[back]
  assert(r[1] == n - 1 and r[-1] == 0 and r:sum():item() == x:sum():item())
  assert((r + x):eq(n - 1):all():item())
  local even = x:remainder(2):eq(0)
  assert(x[even]:equal(nacre.arange(0, n, 2)))
  assert(x:reshape(-1, 10)[even:reshape(-1, 10)]:equal(nacre.arange(0, n, 2)))
  local tall = x:reshape(-1, 3)
  local rows = nacre.arange(n // 3, 0, -1)
  assert(tall[rows]:equal(r:reshape(-1, 3)[{{}, T {3, 2, 1}}]))
  assert(tall[{{}, T {3, 1}}]:sum(1):equal(tall:sum(1)[T {3, 1}]))
  local wide = x:reshape(3, -1)
  assert(wide[{{}, T {5, n // 3}}]:equal(
    nacre.stack({wide[{{}, 5}], wide[{{}, -1}]}, 2)))
  assert(wide[T {3, 1}]:equal(nacre.stack {wide[3], wide[1]}))
  assert(wide:t()[{{}, T {3, 1}}]:equal(wide[T {3, 1}]:t()))
  local y = nacre.zeros(n, {dtype = "int64"})
  y[back] = x
  assert(y:equal(r))
  y[even] = x[even]
  assert(y[even]:equal(x[even]) and y[2] == n - 2)
  y[x + 1] = x
  assert(y:equal(x))
  y[nacre.ones(n, {dtype = "int64"})] = x    -- the last one stays
  assert(y[1] == n - 1 or y.device ~= "cpu")    -- on a device, any one
  local z = nacre.zeros(n // 3, 3, {dtype = "int64"})
  z[rows] = tall
  assert(z:equal(tall[rows]))
  local bad = back:clone()
  bad[200001], bad[100001] = n + 1, 0
  fails(x.device == "cpu" and "index 0: indices start at 1" or "indices ",
        get, x, bad)                        -- on a device, either
  bad[100001] = 1
  fails("index 300001 is outside dim 1 of size 300000", get, x, bad)
end

do -- pairs and iter give what indexing gives
  local got = {}
  for i, row in pairs(a) do got[i] = text(row:totable()) end
  assert(text(got) == "{{0,1,2,3},{4,5,6,7},{8,9,10,11}}")
end

do -- a freed tensor is no operand
  local t, i = nacre.ones(3), T {1}
  i:free()
  fails("the tensor was freed", get, t, i)
  fails("the tensor was freed", set, t, 1, i)
  t:free()
  fails("the tensor was freed", get, t, 1)
  fails("the tensor was freed", set, t, 1, 1)
end

-- ---- of nothing there is no element
do
  local one = nacre.tensor {1, 1}
  local function empty(...)
    return nacre.zeros({...}, {requires_grad = true})
  end
  local function waited(f)
    return function() f() nacre.synchronize() end
  end
  for dim, f in pairs {
    function() return empty(0, 3):index_add(1, one, nacre.ones(2, 3)) end,
    function()                -- nobody reads what was not written
      local y = empty(3, 0, 2):index_select(2, one)
      y:backward(nacre.ones(y:size()))
    end,
  } do
    fails(("index 1 is outside dim %d, which is empty"):format(dim), waited(f))
  end
  fails("index 1 is outside dim 1, which is empty", waited(function()
    empty(0, 3):detach():index_put_({one}, nacre.ones(2, 3), true)
  end))
end
