-- SPDX-License-Identifier: MIT
-- Results and gradients at infinities, and where a square, a power or a sum on
-- the way to a number would leave the range of its dtype: the limit, not nan.

local nan <const>, inf <const> = 0 / 0, math.huge
local F = nacre.nn.functional

local function same(a, b, e)
  return a ~= a and b ~= b or a == b or
         math.abs(a - b) <= (e or 1e-6) * math.abs(b)
end

local function list(t)
  local v = t:detach():double():tolist()
  return type(v) == "table" and v or {v}
end

local function near(got, want, what, e)
  got = list(got)
  assert(#got == #want, what)
  for i, v in ipairs(want) do
    assert(same(got[i], v, e), ("%s: element %d is %.17g, not %.17g")
                               :format(what, i, got[i], v))
  end
end

local function T(v, dtype)
  return nacre.tensor(v, {dtype = dtype or "float32"})
end

-- f of tensors with these elements, and its gradients
local function check(what, dtype, f, given, want, gradients, e)
  local x = {}
  for i, v in ipairs(given) do x[i] = T(v, dtype):requires_grad_() end
  local y = f(table.unpack(x))
  near(y, want, what .. " of " .. dtype, e)
  y:sum():backward()
  for i, g in ipairs(gradients or {}) do
    near(x[i].grad, g, what .. "'s gradient of " .. dtype, e)
  end
end

-- ---- activations: their limits

local limits = {
  silu = {{0, inf}, {0, 1}}, gelu = {{0, inf}, {0, 1}},
  mish = {{0, inf}, {0, 1}}, hardswish = {{0, inf}, {0, 1}},
  relu = {{0, inf}, {0, 1}}, elu = {{-1, inf}, {0, 1}},
  softplus = {{0, inf}, {0, 1}}, logsigmoid = {{-inf, 0}, {1, 0}},
  sigmoid = {{0, 1}, {0, 0}}, hardsigmoid = {{0, 1}, {0, 0}},
  tanh = {{-1, 1}, {0, 0}}, relu6 = {{0, 6}, {0, 0}},
  hardtanh = {{-1, 1}, {0, 0}}, celu = {{-1, inf}, {0, 1}},
}
for name, want in pairs(limits) do
  local f = F[name]
  for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
    for _, n in ipairs {2, 70} do         -- vectors have loops of their own
      local x = T({-inf, inf}, dtype):tile(n // 2):requires_grad_()
      local y = f(x)
      y:sum():backward()
      for k = 1, n - 1, n - 2 > 0 and n - 2 or 1 do
        near(y:narrow(1, k, 2), want[1], name .. " of " .. dtype)
        near(x.grad:narrow(1, k, 2), want[2], name .. "'s gradient, " .. dtype)
      end
      assert(f(T({nan}, dtype)):isnan():item(), name .. " hides nan")
    end
  end
end
local function tanh_gelu(x) return F.gelu(x, "tanh") end
for _, dtype in ipairs {"float32", "float64", "bfloat16"} do
  check("gelu by tanh", dtype, tanh_gelu, {{-inf, inf}}, {0, inf}, {{0, 1}})
  check("gelu by tanh", dtype, tanh_gelu, {{-1e30, 1e30}},
        {0, T({1e30}, dtype):item()}, {{0, 1}})
end

-- ---- sums of exponentials: the largest terms share the gradient

for _, dtype in ipairs {"float32", "float64", "bfloat16"} do
  local function lse(x) return x:logsumexp(1) end
  check("logsumexp", dtype, lse, {{inf, 2}}, {inf}, {{1, 0}})
  check("logsumexp", dtype, lse, {{-inf, -inf}}, {-inf}, {{0.5, 0.5}})
  check("logsumexp", dtype, lse, {{-inf, 0}}, {0}, {{0, 1}})
  check("logsumexp", dtype, lse, {{inf, -inf, inf, 1}}, {inf},
        {{0.5, 0, 0.5, 0}})
  check("logaddexp", dtype, nacre.logaddexp,
        {{-inf, inf, inf, inf, -inf, 0}, {-inf, 2, inf, -inf, 3, 0}},
        {-inf, inf, inf, inf, 3, T({math.log(2)}, dtype):item()},
        {{0.5, 1, 0.5, 1, 0, 0.5}, {0.5, 0, 0.5, 0, 1, 0.5}}, 1e-2)
  check("logaddexp2", dtype, nacre.logaddexp2,
        {{-inf, inf, inf, 0}, {-inf, 2, inf, 0}}, {-inf, inf, inf, 1},
        {{0.5, 1, 0.5, 0.5}, {0.5, 0, 0.5, 0.5}}, 1e-2)
end
do                                  -- a row that is infinite leaves the others
  local x = nacre.randn(5, 40, {dtype = "float64"})
  x[2], x[{4, 7}] = -inf, inf
  x:requires_grad_()
  x:logsumexp(2):sum():backward()
  local g = x:detach():softmax(2)
  g[2], g[4] = 1 / 40, 0
  g[{4, 7}] = 1
  assert(x.grad:allclose(g))
  x = nacre.randn(4, 3):requires_grad_()
  x:logsumexp({1, 2}):backward()
  assert(x.grad:allclose(x:detach():view(-1):softmax(1):view(4, 3)))
  x = nacre.zeros(2, {dtype = "float64"}):requires_grad_()
  local g1 = nacre.autograd.grad(nacre.logaddexp(x[1], x[2]), {x},
                                 {create_graph = true})
  g1 = nacre.is_tensor(g1) and g1 or g1[1]
  g1[1]:backward()                  -- the second derivative of equal numbers
  near(x.grad, {0.25, -0.25}, "second derivative of logaddexp")
end

-- ---- powers of two beyond the range of exp2

for _, dtype in ipairs {"float32", "float64"} do
  local wide = dtype == "float64"
  local most, least = wide and 1023 or 127, wide and -1074 or -149
  local a, b, want = {}, {}, {}
  local function add(x, n, y)
    a[#a + 1], b[#b + 1], want[#want + 1] = x, n, y
  end
  add(0.5, most + 1, 2.0 ^ most)
  add(2.0 ^ least, most - least, 2.0 ^ most)
  add(2.0 ^ most, least - most, 2.0 ^ least)
  add(1.5 * 2.0 ^ most, -2 * most, 1.5 * 2.0 ^ -most)
  add(1, least, 2.0 ^ least)
  add(-1, most, -2.0 ^ most)
  add(1, most + 1, inf)
  add(1, least - 2, 0)
  add(3, least - 1, 2 * 2.0 ^ least)   -- 1.5 of the least: halves to even
  add(5, least - 1, 2 * 2.0 ^ least)
  add(1, 100000, inf)
  add(-1, -100000, 0)
  add(1, 0.5, math.sqrt(2))
  add(1, -1.5, math.sqrt(0.125))
  add(1, inf, inf)
  add(2, -inf, 0)
  add(inf, -5, inf)
  add(0, inf, nan)
  add(nan, 1, nan)
  add(1, nan, nan)
  add(0, 2000, 0)
  near(nacre.ldexp(T(a, dtype), T(b, dtype)), want, "ldexp of " .. dtype)
  check("ldexp", dtype, function(x) return x:ldexp(T({most + 1}, dtype)) end,
        {{2.0 ^ -9}}, {2.0 ^ (most - 8)}, {{inf}})
end
near(nacre.ldexp(T {1.0, 3}, nacre.tensor {3, -1}), {8, 1.5}, "of integers")
near(nacre.tensor {3, 2}:ldexp(nacre.tensor {1, -1}), {6, 1}, "of integers")
do
  local n = nacre.arange(-300, 301)       -- each power, in a vector loop
  local y = nacre.ldexp(nacre.ones(601), n):double()
  local want = nacre.pow(2.0, n:double()):float():double()
  assert(y:equal(want), "a power of two is not exact")
end

-- ---- rounded to decimals: where these do not fit, nothing is rounded away

near(T {1e38, -3e38, inf, -inf, nan, 1.2345}:round {decimals = 3},
     {1e38, -3e38, inf, -inf, nan, 1.234}, "round", 1e-3)
near(T({1e308, 1.5}, "float64"):round {decimals = 300}, {1e308, 1.5}, "round")
near(T {5.5, 1e38}:round {decimals = 40}, {5.5, 1e38}, "round")
near(T {5.5, 1e38, -7}:round {decimals = -39}, {0, 0, 0}, "round")
near(T({2.5, 1e308}, "float64"):round {decimals = -400}, {0, 0}, "round")

-- ---- gradients whose squares leave the range

check("atan2", "float32", nacre.atan2,
      {{1e-25, 1e30, 0, 3}, {1e-25, 1e30, 1, 4}},
      {math.pi / 4, math.pi / 4, 0, math.atan(3, 4)},
      {{5e24, 5e-31, 1, 0.16}, {-5e24, -5e-31, 0, -0.12}})
check("asinh", "float32", nacre.asinh, {{1e20, -1e20, 1}},
      {math.log(2e20), -math.log(2e20), math.log(1 + math.sqrt(2))},
      {{1e-20, 1e-20, math.sqrt(0.5)}})
check("acosh", "float64", nacre.acosh, {{1e200, 2}},
      {math.log(2) + 200 * math.log(10), math.log(2 + math.sqrt(3))},
      {{1e-200, 1 / math.sqrt(3)}})
check("addcdiv", "float32", nacre.addcdiv, {{0}, {1e-30}, {1e-25}}, {1e-5},
      {{1}, {1e25}, {-1e20}})
