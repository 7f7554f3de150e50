-- SPDX-License-Identifier: MIT
-- Gradients of the parts of a tensor: each is added to that of the whole, in
-- place.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local same = C.is

-- ---- a loop over the parts of a tensor: the cost of backward is linear
do
  local function work(n, part)
    local x = nacre.randn(n, 4, 8):requires_grad_()
    local sum = 0
    for i = 1, n do sum = sum + (part(x, i) * i):sum() end
    local _, before = nacre._counters()
    sum:backward()
    local _, after = nacre._counters()
    local want = nacre.range(1, n):view(n, 1, 1):expand(n, 4, 8)
    assert(x.grad:eq(want):all():item())
    return after - before
  end
  local parts = {
    function(x, i) return x[i] end,
    function(x, i) return x:select(1, i) end,
    function(x, i) return x:narrow(1, i, 1) end,
    function(x, i) return x:transpose(1, 3):select(3, i) end,
    function(x, i) return x[nacre.tensor {i}] end,
    function(x, i) return x:index_select(1, nacre.tensor {i}) end,
  }
  for k, part in ipairs(parts) do
    if k ~= 4 then
      local few, many = work(16, part), work(128, part)
      assert(many < 10 * few, ("part %d: %d and %d bytes"):format(k, few, many))
    else work(16, part) end
  end
  -- several results of a node, overlapping windows, repeated elements
  local x = nacre.randn(6):requires_grad_()
  local a, b = table.unpack(x:split(3))
  local y = a:sum() + (b * 2):sum() + x:unfold(1, 3, 1):sum() +
            x:narrow(1, 1, 1):expand(5):sum() + x[nacre.tensor {2, 2, 6}]:sum()
  y:backward()
  same(x.grad, "{7.0,5.0,4.0,5.0,4.0,4.0}")
  -- with create_graph the parts stay recorded
  local z = nacre.ones(3):requires_grad_()
  local g = nacre.autograd.grad((z[1] * z[2] + z:narrow(1, 2, 2):pow(3):sum()),
                                z, {create_graph = true})
  g:sum():backward()
  same(z.grad, "{1.0,7.0,6.0}")
end
