-- SPDX-License-Identifier: MIT
-- quantile and nanquantile next to infinities, and where the difference of two
-- neighbours overflows; the rest is in sort_values.lua and opinfo_torch.py.

local nan <const>, inf <const> = 0 / 0, math.huge

local function T(v, dtype) return nacre.tensor(v, {dtype = dtype}) end

local function same(a, b)
  return a ~= a and b ~= b or a == b or math.abs(a - b) <= 1e-12 * math.abs(b)
end

local function quantile(v, q, how, name)
  local x = T(v, "float64")
  local plain = x[name or "quantile"](x, q, {interpolation = how})
  local many = x:view(1, -1):expand(20, -1):contiguous()
  many = many[name or "quantile"](many, q, 2, {interpolation = how})
  assert(same(many[20], plain:item()))
  x:requires_grad_()
  assert(same(x[name or "quantile"](x, q, {interpolation = how}):item(),
              plain:item()))
  return plain:item()
end
local cases = {
  {{0, inf}, 0, 0}, {{0, inf}, 0.25, inf}, {{0, inf}, 0.5, inf},
  {{0, inf}, 1, inf}, {{-inf, 0}, 0.75, -inf}, {{-inf, 0}, 1, 0},
  {{-inf, -inf, 3, 4}, 0, -inf}, {{-inf, -inf, 3, 4}, 1 / 6, -inf},
  {{-inf, -inf, 3, 4}, 1, 4}, {{-inf, inf}, 0.5, nan}, {{inf, inf}, 0.3, inf},
  {{1, 2, inf}, 0.25, 1.5}, {{-1e308, 1.5e308}, 0.5, 2.5e307},
  {{1, nan}, 0, nan},
}
for _, c in ipairs(cases) do
  local got = quantile(c[1], c[2], "linear")
  assert(same(got, c[3]), ("quantile %g: %g, not %g"):format(c[2], got, c[3]))
  if c[1][2] == c[1][2] then
    assert(same(quantile(c[1], c[2], "linear", "nanquantile"), c[3]))
  end
end
assert(quantile({-inf, -inf, 3, 4}, 0.1, "midpoint") == -inf)
assert(quantile({0, inf}, 1, "midpoint") == inf)
assert(quantile({0, inf, nan}, 1, "linear", "nanquantile") == inf)
do
  local x = T({1.0, 2, inf}, "float64"):requires_grad_()
  x:quantile(0.25):backward()
  assert(x.grad:equal(T({0.5, 0.5, 0}, "float64")))
end
