-- SPDX-License-Identifier: MIT
-- Gathering and scattering by index tensors and masks: errors, in-place forms,
-- tensors without dimensions. opinfo_torch.py compares the values with PyTorch.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails

local function at(...) return nacre.tensor({...}) end
local x = nacre.arange(6):reshape(2, 3)

do -- reading
  is(nacre.tensor(7):index_select(1, at(1)), "7")
  shape(x:index_select(1, nacre.zeros(0, {dtype = "int64"})), 0, 3)
  is(x:gather(2, at({-1}, {1})), "{{2},{3}}")
  is(x:take(nacre.tensor(4)), "3")
  is(nacre.tensor(3):masked_select(nacre.tensor(true)), "{3}")
  shape(x:masked_select(nacre.zeros(3, {dtype = "bool"})), 0)
end

do -- picking copies
  local y = x:take(nacre.tensor(1))
  y:fill_(9)
  is(x, "{{0,1,2},{3,4,5}}")
end

do -- writing gives self; the other form leaves it alone
  local y = x:clone()
  assert(rawequal(y:index_add_(1, at(1, 1), x), y))
  is(y, "{{3,6,9},{3,4,5}}")
  is(x:index_put({at(1, 2), at(1, 2)}, nacre.tensor(0)),
     "{{0,1,2},{3,0,5}}")
  is(x:index_put({at(1, 1), at(2, 2)}, 5, true), "{{0,11,2},{3,4,5}}")
  is(x:index_put({x:gt(3)}, 0), "{{0,1,2},{3,0,0}}")
  local t = x:t():clone():t()           -- strided
  t:put_(at(2), at(9))
  is(t, "{{0,9,2},{3,4,5}}")
  is(x, "{{0,1,2},{3,4,5}}")
  local z = nacre.tensor(1)
  z:index_fill_(1, at(1), 4)
  is(z, "4")
end

do -- folding of bools and of nan; opinfo_torch.py has the other types
  local b = nacre.tensor({false, true})
  is(b:scatter_add(1, at(1, 1), nacre.tensor({true, false})), "{true,true}")
  local nan = nacre.zeros(1):scatter_reduce(1, at(1), nacre.tensor({0 / 0}),
                                            "amax")
  assert(nan:isnan():item())
end

do -- masks
  is(x:masked_fill(x:eq(4), 2.7), "{{0,1,2},{3,2,5}}")
  is(x:masked_fill(x:eq(4), nacre.tensor(8)), "{{0,1,2},{3,8,5}}")
  local y = x:clone()
  assert(rawequal(y:masked_fill_(at(1, 0, 0):to("bool"), 9), y))
  is(y, "{{9,1,2},{9,4,5}}")
  is(x:masked_scatter(x:gt(9), at(7, 8, 9)), "{{0,1,2},{3,4,5}}")
end

do -- what is wrong is said, and nothing is written
  local y = x:clone()
  fails("index 4 is outside dim 2 of size 3", y.index_select, y, 2, at(4))
  fails("index 0: indices start at 1", y.gather, y, 1, at({0}))
  fails("index 3 is outside dim 1", y.index_add_, y, 1, at(1, 3), x)
  fails("index -9 is outside dim 1", y.scatter_reduce, y, 1, at({-9}), y,
        "amax")
  fails("the index must be int64", 'arg 2:to("int64")', y.index_select, y, 1,
        nacre.tensor({1.0}))
  fails("the index must be a vector", y.index_select, y, 1, at({1}))
  fails("source is [2x3], but must be [1x3]", y.index_copy_, y, 1, at(1), x)
  fails("source is float32, self is int64", 'arg 3:to("int64")', y.index_add_,
        y, 1, at(1, 2), x:float())
  fails("only along dim 1 may the index be larger", y.gather, y, 1,
        nacre.ones(1, 4, {dtype = "int64"}))
  fails("larger than src, [1x3]", y.scatter_, y, 1, at({1, 1, 1}, {1, 1, 1}),
        at({1, 1, 1}))
  fails("the mask must be bool", 'arg 1:to("bool")', y.masked_fill_, y, x, 1)
  fails("true at 3 places", y.masked_scatter_, y, x:gt(2), at(1, 2))
  fails("no indices are given", y.index_put_, y, {}, 1)
  fails("without dimensions", y.index_fill_, y, 1, at(1), at(1))
  local wide = nacre.zeros(1):expand(3)
  fails("share memory", wide.index_fill_, wide, 1, at(1), 1)
  is(y, "{{0,1,2},{3,4,5}}")
end

do -- large ones, against a loop
  local n = 20000
  local index = nacre.randint(1, 101, {n})
  local sums = nacre.zeros(100, {dtype = "int64"})
      :index_add(1, index, nacre.ones(n, {dtype = "int64"}))
  assert(sums:equal((index - 1):bincount(nil, 100)))
end

do -- an index that is expanded over whole slices, against the same one, dense
  local index = at(3, -1, 1, 3)
  local function put(a, dim, e, src, f)
    f(a:scatter(dim, e, src))
    f(a:scatter(dim, e, 7))
    f(a:scatter_add(dim, e, src))
    f(a:clone():scatter_(dim, e, src))
    for _, how in ipairs {"sum", "prod", "mean", "amax", "amin"} do
      f(a:scatter_reduce(dim, e, src, how))
      f(a:scatter_reduce(dim, e, src, how, {include_self = false}))
    end
  end
  for _, dtype in ipairs {"float32", "int64", "float16"} do
    for dim = 1, 3 do
      local size, count = {5, 6, 7}, {5, 6, 7}
      count[dim] = 4
      local a = nacre.randint(-4, 5, size):to(dtype)
      local src = nacre.randint(-4, 5, count):to(dtype)
      local form = {1, 1, 1}
      form[dim] = 4
      local e = index:reshape(form):expand(count)
      local want, i = {}, 0
      put(a, dim, e:contiguous(), src, function(y) want[#want + 1] = y end)
      put(a, dim, e, src, function(y)
        i = i + 1
        assert(y:equal(want[i]), dtype .. dim .. ": " .. i)
      end)
    end
  end
  local e = at(1, 4):unsqueeze(2):expand(2, 9)
  local y = nacre.zeros(3, 9)
  fails("index 4 is outside dim 1", y.scatter_, y, 1, e, nacre.ones(2, 9))
  assert(y:eq(0):all():item())
end
