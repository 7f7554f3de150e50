-- SPDX-License-Identifier: MIT
-- gather, scatter and index_add of every dtype, over tensors with all kinds of
-- strides, against a loop in Lua.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local checks = 0
nacre.manual_seed(4)

-- Tensors of these sizes, with the values of x, that lie differently.
local layouts = {
  function(x) return x:contiguous():clone() end,
  function(x)                                    -- the last dimension first
    local order = {}
    for d = 1, x:dim() do order[d] = x:dim() + 1 - d end
    return x:permute(order):contiguous():clone():permute(order)
  end,
  function(x)                                    -- every second element
    local wide = nacre.stack({x, x}, -1):contiguous()
    return wide:select(-1, 2)
  end,
  function(x)                                    -- rows with a gap
    local size = x:size()
    size[#size] = size[#size] + 3
    local wide = nacre.zeros(size, {dtype = x.dtype})
    local part = wide:narrow(-1, 2, x:size(-1))
    part:copy_(x)
    return part
  end,
}

local folds = {
  set = function(_, b) return b end,
  sum = function(a, b) return a + b end,
  prod = function(a, b) return a * b end,
  amax = math.max, amin = math.min,
}

-- Calls f(element number of index, coordinates) for all of these sizes.
local function each(sizes, f)
  local at, n = {}, 1
  for d, s in ipairs(sizes) do at[d], n = 1, n * s end
  for i = 1, n do
    f(i, at)
    for d = #sizes, 1, -1 do
      at[d] = at[d] + 1
      if at[d] <= sizes[d] then break end
      at[d] = 1
    end
  end
end

local function number(sizes, at)
  local k = 0
  for d, s in ipairs(sizes) do k = k * s + at[d] - 1 end
  return k + 1
end

local function elements(t) return t:reshape(-1):to("int64"):tolist() end

-- The place in x of each element of the index.
local function places(x, dim, index)
  local size, to, v = x:size(), {}, elements(index)
  each(index:size(), function(i, at)
    local own = table.move(at, 1, #at, 1, {})
    own[dim] = v[i] > 0 and v[i] or v[i] + size[dim] + 1
    to[i] = number(size, own)
  end)
  return to
end

local function expect(got, want, like, ...)
  checks = checks + 1
  want = nacre.tensor(want, {dtype = "int64"}):reshape(got:size())
  assert(nacre.equal(got, want:to(like.dtype)), table.concat({...}, " "))
end

-- Positions along dim, some from the end.
local function positions(sizes, limit)
  local p = nacre.randint(1, limit + 1, sizes)
  return nacre.where(nacre.rand(sizes):lt(0.3), p - limit - 1, p)
end

local function reduced(x, to, src, fold)
  local y, f = elements(x), folds[fold]
  local isbool = x.dtype == nacre.bool
  for i, k in ipairs(to) do
    y[k] = f(y[k], src[i])
    if isbool then y[k] = y[k] ~= 0 and 1 or 0 end
  end
  return y
end

local function check(dtype, xsize, isize, dim, layout)
  local like = nacre.randint(0, 3, xsize):to(dtype)
  local src = layout(nacre.randint(0, 3, isize):to(dtype))
  local index = positions(isize, xsize[dim])
  local x = layout(like)
  local to, v = places(x, dim, index), elements(src)
  local what = table.concat(xsize, "x") .. " by " .. table.concat(isize, "x")
  local found, own = {}, elements(x)
  for i, k in ipairs(to) do found[i] = own[k] end
  expect(x:gather(dim, index), found, x, "gather", dtype, what, dim)
  expect(x:scatter(dim, index, src), reduced(x, to, v, "set"), x, "scatter",
         dtype, what, dim)
  expect(x:scatter_add(dim, index, src), reduced(x, to, v, "sum"), x,
         "scatter_add", dtype, what, dim)
  for _, fold in ipairs {"prod", "amax", "amin"} do
    expect(x:scatter_reduce(dim, index, src, fold), reduced(x, to, v, fold), x,
           fold, dtype, what, dim)
  end
  local y = layout(like)
  assert(rawequal(y:scatter_add_(dim, index, src), y))
  expect(y, reduced(x, to, v, "sum"), x, "scatter_add_", dtype, what, dim)
end

-- index_add is scatter_add with an index that is the same for each slice.
local function check_slices(dtype, sizes, n, dim, layout)
  local x = layout(nacre.randint(0, 3, sizes):to(dtype))
  local ssize, isize = x:size(), {}
  ssize[dim] = n
  local src = layout(nacre.randint(0, 3, ssize):to(dtype))
  local index = positions({n}, sizes[dim])
  for d = 1, #sizes do isize[d] = d == dim and n or 1 end
  local to = places(x, dim, index:reshape(isize):expand(ssize))
  expect(x:index_add(dim, index, src), reduced(x, to, elements(src), "sum"), x,
         "index_add", dtype, table.concat(sizes, "x"), dim)
  local found, own = {}, elements(x)
  for i, k in ipairs(to) do found[i] = own[k] end
  expect(x:index_select(dim, index), found, x, "index_select", dtype,
         table.concat(sizes, "x"), dim)
end

for _, dtype in ipairs(C.dtypes) do
  for _, layout in ipairs(layouts) do
    check(dtype, {1}, {1}, 1, layout)
    check(dtype, {300}, {290}, 1, layout)
    check(dtype, {300, 1}, {299, 1}, 2, layout)
    check(dtype, {5, 7}, {3, 9}, 2, layout)
    check(dtype, {5, 7}, {11, 6}, 1, layout)
    check(dtype, {1, 70}, {1, 70}, 2, layout)
    check(dtype, {3, 4, 5}, {2, 4, 4}, 2, layout)
    check(dtype, {3, 1, 5, 2}, {3, 1, 5, 2}, 3, layout)
    check_slices(dtype, {40}, 35, 1, layout)
    check_slices(dtype, {7, 300}, 9, 1, layout)
    check_slices(dtype, {6, 5, 3}, 7, 2, layout)
    check_slices(dtype, {6, 9}, 7, 2, layout)
  end
end

do -- what is not finite
  local inf, nan = 1 / 0, 0 / 0
  for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
    local x = nacre.tensor({1, -inf, inf, 2, nan}):to(dtype)
    local src = nacre.tensor({nan, inf, -inf, 5, 1}):to(dtype)
    local index = nacre.arange(1, 6)
    for _, call in ipairs {
      {"sum", {nan, nan, nan, 7, nan}}, {"prod", {nan, -inf, -inf, 10, nan}},
      {"amax", {nan, inf, inf, 5, nan}}, {"amin", {nan, -inf, -inf, 2, nan}},
    } do
      local got = x:scatter_reduce(1, index, src, call[1])
      local want = nacre.tensor(call[2]):to(dtype)
      assert(nacre.allclose(got, want, {equal_nan = true}), call[1] .. dtype)
      local rows = x:reshape(5, 1):index_reduce(1, index, src:reshape(5, 1),
        call[1] == "sum" and "mean" or call[1])
      if call[1] ~= "sum" then
        assert(nacre.allclose(rows:reshape(5), want, {equal_nan = true}))
      end
    end
  end
end

do -- a wrong position far along: it is named, and nothing is written in place
  for _, at in ipairs {1, 63, 64, 65, 255, 256, 700, 1000} do
    for _, wrong in ipairs {0, 8, -8, math.mininteger, math.maxinteger} do
      local x, src = nacre.zeros(7), nacre.ones(1000)
      local index = nacre.ones(1000, {dtype = "int64"})
      index[at] = wrong
      local text = wrong == 0 and "index 0: indices start at 1" or
                   ("index %d is outside dim 1 of size 7"):format(wrong)
      C.fails(text, x.scatter_add_, x, 1, index, src)
      C.fails(text, x.index_add_, x, 1, index, src)
      C.fails(text, x.scatter_add, x, 1, index, src)
      C.fails(text, x.gather, x, 1, index)
      assert(x:eq(0):all():item())
    end
  end
  local none = nacre.zeros(0)
  C.fails("which is empty", none.gather, none, 1, nacre.tensor {1})
end

do -- the same for any number of threads
  local x, src = nacre.randn(700, 90), nacre.randn(700, 200)
  local index = positions({700, 200}, 90)
  -- along the first dimension, equal places in one column
  local places, wide = positions({300, 500}, 11), nacre.randn(300, 500)
  local tall = nacre.randn(11, 600)
  local cube = nacre.randn(11, 25, 20):transpose(2, 3)
  local function results()
    return {x:scatter_add(2, index, src), src:gather(2, index),
            x:scatter_add(1, positions({300, 90}, 1) * 0 + 7,
                          src:narrow(2, 1, 90)),
            x:index_add(1, index:select(2, 1), src:narrow(2, 1, 90)),
            tall:scatter_add(1, places, wide),
            cube:scatter_add(1, places:reshape(300, 20, 25),
                             wide:reshape(300, 20, 25))}
  end
  local threads = nacre.get_num_threads()
  nacre.set_num_threads(1)
  local want = results()
  nacre.set_num_threads(2)
  for i, y in ipairs(results()) do assert(nacre.equal(y, want[i]), i) end
  for row = 1, 11 do
    local here = places:eq(row):float() + places:eq(row - 12):float()
    local sum = (here * wide):double():sum(1)
    local got = (want[5] - tall)[row]:narrow(1, 1, 500)
    assert(nacre.allclose(got:double(), sum, {rtol = 1e-4, atol = 1e-4}))
  end
  nacre.set_num_threads(threads)
end

print(("scatter_layouts: ok, %d results"):format(checks))
