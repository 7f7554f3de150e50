-- SPDX-License-Identifier: MIT
-- Gradients are brought to the shapes of their operands: the least work for
-- broadcasting, operands of linear with any dimensions.

-- The gradient of an operand that was broadcast along a dimension of size 1,
-- too, is one sum: no copy is made before it.
do
  local b = nacre.randn(8, 1, 1, {device = "cpu"}):requires_grad_()
  local g = nacre.randn(1, 8, 40, 40, {device = "cpu"})
  local y = g + b
  local _, before = nacre._counters()
  local d = nacre.autograd.grad(y, {b}, {grad_outputs = g})
  local _, after = nacre._counters()
  assert(after - before < 1.1 * 4 * g:numel())
  assert(d:allclose(g:sum({3, 4}):reshape(8, 1, 1)))
end

-- A vector as the weight of linear, with operands of any dimensions.
for _, size in ipairs {{4}, {3, 4}, {2, 3, 4}, {0, 4}, {3, 0}} do
  local function leaf(...)
    return nacre.randn({...}, {dtype = "float64", requires_grad = true})
  end
  local list = {leaf(table.unpack(size)), leaf(size[#size]), leaf()}
  local x, w, b = table.unpack(list)
  local y, z = nacre.nn.functional.linear(x, w, b), (x * w):sum(-1) + b
  assert(y:is_same_size(z) and y:allclose(z))
  local g = nacre.randn_like(y)
  local got = {nacre.autograd.grad(y, list, {grad_outputs = g})}
  local want = {nacre.autograd.grad(z, list, {grad_outputs = g})}
  for i, t in ipairs(want) do assert(got[i]:allclose(t)) end
end
