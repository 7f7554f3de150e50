-- SPDX-License-Identifier: MIT
-- cumsum, cumprod, cummax, cummin, logcumsumexp, and diff: dtypes, strides,
-- errors, infinities, gradients where dividing would fail. opinfo_torch.py
-- compares the values with PyTorch.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local inf, nan = math.huge, 0 / 0
local T = nacre.tensor

-- ---- running

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

is(T({math.maxinteger, 1}):cumsum(1), ("{%d,%d}"):format(math.maxinteger,
                                                        math.mininteger))
fails("dim", nacre.cumsum, T {3, -4, 0.0})
fails("EINDEX: cumsum", nacre.cumsum, T {3, -4, 0.0}, 2)
local z = T {1.0, 2, 3}
assert(z:cumsum_(1) == z)
is(z, "{1.0,3.0,6.0}")
assert(not pcall(function() T({true, false}):cumsum_(1) end))
local many = nacre.full(100000, 0.1):cumsum(1)
assert(math.abs(many[100000] / 10000 - 1) < 1e-6)

-- down the columns and along the rows: of a transpose, of every second column,
-- of the first columns
local grid = T {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}
is(grid:t():cumsum(1), "{{1,5,9},{3,11,19},{6,18,30},{10,26,42}}")
is(grid:t():cumsum(2), "{{1,6,15},{2,8,18},{3,10,21},{4,12,24}}")
is(grid[{{}, {1, 4, 2}}]:cumsum(1), "{{1,3},{6,10},{15,21}}")
is(grid[{{}, {1, 4, 2}}]:cumsum(2), "{{1,4},{5,12},{9,20}}")
is(grid[{{}, {1, 2}}]:cumsum(1), "{{1,2},{6,8},{15,18}}")
is(grid[{{}, {1, 2}}]:cumsum(2), "{{1,3},{5,11},{9,19}}")
is(grid:t():cumprod(1), "{{1,5,9},{2,30,90},{6,210,990},{24,1680,11880}}")

-- Rows that are summed side by side: each as it is alone, on the CPU bit for
-- bit.
local tolerance = nacre.zeros(1).is_cuda and 1e-2 or 0
for _, dtype in ipairs {"float16", "float32", "float64"} do
  for rows = 1, 9 do
    for _, n in ipairs {1, 3, 16, 70001} do
      local x = (nacre.randn(rows, n) * 3):to(dtype)
      if rows > 5 then x[{6, n}], x[{2, 1}] = inf, nan end
      local all = x:cumsum(2)
      for r = 1, rows do
        local want = x[r]:cumsum(1)
        assert(nacre.allclose(all[r], want, tolerance, tolerance, true), rows)
      end
    end
  end
end

local y, at = T({1, 3, 3, 2}):cummax(1)
is(y, "{1,3,3,3}")
is(at, "{1,2,3,3}")
local long = nacre.randn(3, 200001)
assert(long:cummax(2):select(2, 200001) == long:amax(2))
local l = T({1000.0, 1000.0}):logcumsumexp(1)
assert(math.abs(l[2] - 1000.6931) < 1e-3)
is(T({-inf, -inf}):logcumsumexp(1), "{-inf,-inf}")
is(T({inf, 1.0}):logcumsumexp(1), "{inf,inf}")
fails("needs a float dtype", "self:to(\"float32\") first", nacre.logcumsumexp,
      T {1}, 1)

-- ---- differences

is(T({1, 4}):diff(9), "{}")
is(T({1, 4}):diff(1, 1, T {0}, T {5}), "{1,3,1}")
fails("n is -1", nacre.diff, T {1}, -1)
fails("at least one dimension", nacre.diff, T(1))

-- ---- reductions

fails("needs a float dtype", "self:nanmean{dtype=\"float32\"}", nacre.nanmean,
      T {1})
-- ---- gradients, and theirs, where dividing or exp would fail

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
  for _, v in ipairs {{2.0, 0, 3, 4}, {0.0, 2, 0, 3}, {2.0, 3, 4, 0},
                      {0.0, 0, 0, 0}} do
    C.grads("cumprod", function(t) return t:cumprod(1) end, x(v))
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
