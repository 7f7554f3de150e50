-- SPDX-License-Identifier: MIT
-- Dropout and random numbers in a fused function: the numbers, gradients and
-- state of the generator are those of the function itself, for several lengths,
-- dtypes and numbers of threads. Halves that are rounded in results alone.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local F = nacre.nn.functional
nacre.manual_seed(11)

local function same(a, b)
  return a.dtype == b.dtype and
         a:contiguous():tobytes() == b:contiguous():tobytes()
end

local functions = {
  dropout = function(x) return F.dropout(x * 2 + 1, 0.3) * 3 end,
  two = function(x)
    return F.dropout(x:relu(), 0.3) * nacre.randn_like(x) + F.dropout(x, 0.1)
  end,
  doubles = function(x)
    return nacre.rand(x:size(), {dtype = "float64"}) * x +
           nacre.randn(x:size(), {dtype = "float64"})
  end,
  lines = function(x) return F.dropout((x - x:amax(-1, true)):exp()) end,
  slopes = function(x)
    return F.alpha_dropout(x * 1.5, 0.25, true) + F.rrelu(x, 0.1, 0.3, true)
  end,
  alone = function(x) return x + 1, nacre.rand(4), nacre.rand(x:size()) end,
}

local function gradient(f, x, create)
  nacre.manual_seed(7)
  local a = x:clone():requires_grad_()
  local y = f(a)
  local g = nacre.autograd.grad({(y * y):sum()}, {a},
                                {create_graph = create or false})
  if not create then return y, g end
  return y, g, (nacre.autograd.grad({(g * g):sum()}, {a}))
end

local function compare(name, f, x)
  local fused = nacre.fuse(f)
  local what = ("%s of %s[%s]"):format(name, x.dtype,
                                       table.concat(x:size(), "x"))
  for turn = 1, 3 do
    nacre.set_num_threads(turn)
    nacre.manual_seed(turn)
    local want = {f(x)}
    want[#want + 1] = nacre.rand(5)       -- the state that is left
    nacre.manual_seed(turn)
    local got = {fused(x)}
    got[#got + 1] = nacre.rand(5)
    for i = 1, #want do
      check(same(got[i], want[i]), "%s: result %d", what, i)
    end
    for _, create in ipairs {false, true} do
      if create and x.dtype == "float16" then break end  -- sums in parts
      want, got = {gradient(f, x, create)}, {gradient(fused, x, create)}
      for i = 1, #want do
        check(same(got[i], want[i]), "%s: gradients, %d", what, i)
      end
    end
  end
  if name ~= "alone" and name ~= "lines" then
    check(not fused:explain(x):find "part 2", "%s: %s", what, fused:explain(x))
  end
end

local sizes = {{1}, {10}, {1023}, {5000}, {37, 33}, {7, 100}, {70000}}
for _, size in ipairs(sizes) do
  for _, t in ipairs {"float32", "float64", "float16"} do
    local x = ((nacre.randn(size) * 4):round() / 4):to(t)
    for name, f in pairs(functions) do
      if not (name == "two" and t == "float16") then compare(name, f, x) end
    end
  end
end

-- each call draws anew; one tensor drawn twice is not one
do
  local x = nacre.ones(100)
  local f = nacre.fuse(function(a)
    return F.dropout(a) + 0, F.dropout(a) + 0
  end)
  local a, b = f(x)
  local c = f(x)
  check(not nacre.equal(a, b) and not nacre.equal(a, c), "one draw for all")
  -- a size that is a number of the function, not one of the operands
  local g = nacre.fuse(function(v) return nacre.rand(8) * v + 1 end)
  check(#g(nacre.ones(8)) == 8 and not pcall(g, nacre.ones(9)), "a fixed size")
end

-- ---- extremes with positions that nobody uses

for _, t in ipairs {"float32", "float64"} do
  for _, n in ipairs {33, 64, 1000} do
    local x = (nacre.randn(9, n) * 3):round():to(t)
    for name, f in pairs {
      max = function(v) return (v - v:max(-1, true)):exp() end,
      min = function(v) return v * v:min(-1, true) + 1 end} do
      local fused = nacre.fuse(f)
      check(same(fused(x), f(x)), "%s of %d", name, n)
      local _, want = gradient(f, x)
      local _, got = gradient(fused, x)
      check(same(got, want), "gradient of %s of %d, %s", name, n, t)
      check(n < 64 or fused:explain(x):find "^part 1, fused.*: m[axin]+ ",
            "%s: %s", name, fused:explain(x))
    end
    local both = function(v)
      local m, at = v:max(-1, true)
      return v - m + 1, at
    end
    local m, at = nacre.fuse(both)(x)
    local want, place = both(x)
    check(same(m, want) and same(at, place), "positions of %d", n)
  end
end

-- ---- results that are computed twice, one of them in place

do
  local function f(x)
    local t = x * 0.9
    local u = x + 1
    x:mul_(0.9)
    return u * 2 + t, x * 1, t, x + 0
  end
  local a, b = nacre.randn(50), nil
  b = a:clone()
  local want, got = {f(a)}, {nacre.fuse(f)(b)}
  for i = 1, #want do check(same(want[i], got[i]), "in place, %d", i) end
  check(same(a, b), "what is overwritten")
  local g = nacre.fuse(function(x) return x * 2 + 1, x * 2 + 1, x * 2 end)
  check(g:explain(a):find "^part 1, fused", "one value twice: %s", g:explain(a))
  local p, q, r = g(a)
  check(same(p, q) and same(r, a * 2) and same(p, a * 2 + 1), "one value twice")
  p:add_(1)
  check(not nacre.equal(p, q), "two results are two tensors")
end

-- ---- {rounding = "end"}

for _, t in ipairs {"float16", "bfloat16"} do
  local function f(a, b)
    local c = ((a * b + 8) - 8):tanh() / 4
    return c * c + c, c:gt(0.1), (a:float() / 3):to(a.dtype):float() * 2
  end
  local a, b = nacre.randn(3000):to(t), nacre.randn(3000):to(t)
  local wide = {f(a:float(), b:float())}
  local got = {nacre.fuse(f, {rounding = "end"})(a, b)}
  local each = {nacre.fuse(f, {rounding = "each"})(a, b)}
  for i, y in ipairs {f(a, b)} do check(same(each[i], y), "%s: each", t) end
  check(not same(got[1], each[1]), "%s is rounded after each operation", t)
  local function far(y) return (y:float() - wide[1]):abs():sum():item() end
  check(far(got[1]) < far(each[1]) / 4, "%s: %g, %g", t, far(got[1]),
        far(each[1]))
  check(same(got[3], each[3]), "%s: a cast rounds", t)
  -- gradients, too; a function without halves is as ever
  local function grad(g, x)
    x = x:clone():requires_grad_()
    local y = g(x, b:to(x.dtype))
    y:float():sum():backward()
    return x.grad
  end
  local exact = grad(f, a:double()):float()
  local near = grad(nacre.fuse(f, {rounding = "end"}), a)
  local rough = grad(f, a)
  check(near.dtype == t, "gradient of %s", near.dtype)
  check((near:float() - exact):abs():sum():item() <=
        (rough:float() - exact):abs():sum():item(), "%s: gradients", t)
  local x = nacre.randn(100)
  local y = f(x, x)
  check(same((nacre.fuse(f, {rounding = "end"})(x, x)), y), "float32")
end
for _, bad in ipairs {{rounding = "never"}, {rounding = 1}, "never"} do
  local ok, e = pcall(nacre.fuse, print, bad)
  check(not ok and tostring(e):find "rounding", "%s", e)
end
O.done "fused_draws"
