-- SPDX-License-Identifier: MIT
-- Running products, extremes and logarithmic sums; differences; reductions
-- that give several results or pass over nan.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local inf, nan = math.huge, 0 / 0
local T = nacre.tensor

-- ---- running

is(T({2, 3, 4}):cumprod(1), "{2,6,24}")
is(T({{1, 2}, {3, 4}}):cumprod(1), "{{1,2},{3,8}}")
assert(T({true, true}):cumprod(1).dtype == "int64")
assert(T({2, 3}):cumprod(1, {dtype = "float16"}).dtype == "float16")
for t, want in pairs {bool = "{true,true,true}", int8 = "{100,-56,-112}",
                      uint8 = "{100,200,144}", int32 = "{100,200,400}"} do
  local v = T({100, 2, 2}):cumprod(1, {dtype = t})
  is(v, want)
  assert(v.dtype == t)
  v = T({0.0, 127, 127}):cumsum(1, {dtype = t})
  assert(v.dtype == t and v == T({0, 127, t == "bool" and 1 or 254}):to(t))
end
local p = T {2.0, 3}
p:cumprod_(1)
is(p, "{2.0,6.0}")
is(T({4}, {dtype = "int8"}):cumprod(1), "{4}")
assert(T(3.0):cumprod(1):item() == 3)
shape(nacre.zeros(2, 0):cumprod(2), 2, 0)

local y, at = T({1, 3, 3, 2}):cummax(1)
is(y, "{1,3,3,3}")
is(at, "{1,2,3,3}")
y, at = T({3.0, nan, 1, nan}):cummin(-1)
is(at, "{1,2,2,4}")
for _, t in ipairs(C.dtypes) do
  local x = T({1, 0, 1, 1}, {dtype = t})
  local v, i = x:cummax(1)
  assert(v.dtype == t and i.dtype == "int64")
  is(i, "{1,1,3,4}")
  is(select(2, x:cummin(1)), "{1,2,2,2}")
end
local long = nacre.randn(3, 200001)
assert(long:cummax(2):select(2, 200001) == long:amax(2))
local l = T({1000.0, 1000.0}):logcumsumexp(1)
assert(math.abs(l[2] - 1000.6931) < 1e-3)
is(T({-inf, -inf}):logcumsumexp(1), "{-inf,-inf}")
is(T({inf, 1.0}):logcumsumexp(1), "{inf,inf}")
fails("needs a float dtype", "self:to(\"float32\") first", nacre.logcumsumexp,
      T {1}, 1)

-- ---- differences

is(T({1, 4, 9, 16}):diff(), "{3,5,7}")
is(T({1, 4, 9, 16}):diff(2), "{2,2}")
is(T({1, 4}):diff(9), "{}")
is(T({1, 4}):diff(1, 1, T {0}, T {5}), "{1,3,1}")
is(T({true, false, false}):diff(), "{true,false}")
is(T({{1, 2}, {5, 9}}):diff(1, 1), "{{4,7}}")
fails("n is -1", nil, nacre.diff, T {1}, -1)
fails("at least one dimension", nil, nacre.diff, T(1))
assert(T({1, 2, 3}):trapezoid():item() == 4)
is(T({1, 2, 3}):cumulative_trapezoid(T {0, 1, 3}), "{1.5,6.5}")

-- ---- reductions

assert(T({1.0, nan, 2}):nansum():item() == 3)
assert(T({1.0, nan, 2}):nanmean():item() == 1.5)
is(T({{1.0, nan}, {nan, nan}}):nansum(2), "{1.0,0.0}")
fails("needs a float dtype", "self:nanmean{dtype=\"float32\"}", nacre.nanmean,
      T {1})
local v, m = T({{1.0, 3}, {2, 2}}):var_mean(2)
is(v, "{2.0,0.0}")
is(m, "{2.0,2.0}")
v, m = T({1.0, 3}):std_mean(false)
assert(v:item() == 1 and m:item() == 2)
local low, high = T({{1, 5}, {7, 3}}):aminmax {dim = 1}
is(low, "{1,3}")
is(high, "{7,5}")
assert(T({3.0, 0}):dist(T {0.0, 4}):item() == 5)

-- ---- gradients, also with zeros

if pcall(function() return nacre.ones(1):requires_grad_() end) then
  local function grad(f, list)
    local t = T(list, {dtype = "float64"}):requires_grad_()
    f(t):backward()
    return t.grad
  end
  local w = T({1.0, 10, 100, 1000}, {dtype = "float64"})
  local function weighted(t) return (t:cumprod(1) * w):sum() end
  local function differences(f, list)
    local g = {}
    for i = 1, #list do
      local a, b = {table.unpack(list)}, {table.unpack(list)}
      a[i], b[i] = list[i] + 1e-5, list[i] - 1e-5
      g[i] = (f(T(a, {dtype = "float64"})):item() -
              f(T(b, {dtype = "float64"})):item()) / 2e-5
    end
    return T(g, {dtype = "float64"})
  end
  for _, list in ipairs {{2.0, 3, -1, 0.5}, {2.0, 0, 3, 4},
                         {0.0, 2, 0, 3}, {2.0, 3, 4, 0},
                         {0.0, 0, 0, 0}} do
    assert(grad(weighted, list):allclose(differences(weighted, list), 1e-6,
                                         1e-6), C.text(list))
  end
  local function logs(t) return (t:logcumsumexp(1) * (w - 50)):sum() end
  local list = {0.5, -1, 2, 0.1}
  assert(grad(logs, list):allclose(differences(logs, list), 1e-6, 1e-6))
  is(grad(function(t) return t:cummax(1):sum() end, {1.0, 3, 2, 4}),
     "{1.0,2.0,0.0,1.0}")
end

-- ---- gradients of gradients, where dividing or exp would fail

do
  local function x(v)
    return T(v, {dtype = "float64", requires_grad = true})
  end
  for _, v in ipairs {{{2.0, 0, 3}, {0, 0, 2}, {1.5, 2, -1}},
                      {{0, 1.0, 2}, {3, 0, 4}, {1, 2, 0}}} do
    for _, dim in ipairs {1, 2, {1, 2}} do
      C.grads("prod", function(t) return t:prod {dim = dim} end, x(v))
    end
    C.grads("cumprod", function(t) return t:cumprod(1) end, x(v))
    C.grads("cumprod", function(t) return t:cumprod(-1) end, x(v))
  end
  local logs = function(t) return t:logcumsumexp(-1) end
  C.grads("logcumsumexp", logs, x {0.1, -2, 3})
  C.grads("logcumsumexp", logs, x {{-800.0, 0.1, 800}, {1, 2, 3}})
  for _, again in ipairs {true, false} do
    local t = T({-inf, 1.0, 2000}, {requires_grad = true})
    is(nacre.autograd.grad(logs(t):sum(), {t}, {create_graph = again})
       :detach(), "{0.0,1.0,1.0}")
  end
end
print("scan: passed")
