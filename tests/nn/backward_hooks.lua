-- SPDX-License-Identifier: MIT
-- register_full_backward_hook: the gradients that a hook sees are those of
-- autograd.grad, and what it gives replaces them.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails = C.eq, C.fails
local nn = nacre.nn

local function close(a, b) assert(nacre.allclose(a, b), tostring(a)) end

-- ---- what is seen

local net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
local seen = {}
local handle = net[2]:register_full_backward_hook(function(m, into, out)
  assert(rawequal(m, net[2]))
  seen = {into = into[1], out = out[1], n = into.n, m = out.n}
end)
local x = nacre.randn(5, 3)
local before = net[1](x)
local h = before:tanh()
local loss = net[3](h):square():sum()
local want_in, want_out = nacre.autograd.grad(loss, {before, h})
local y = net(x)
eq(tostring(y.grad_fn), "<linear>")
y:square():sum():backward()
close(seen.into, want_in)
close(seen.out, want_out)
eq(seen.n, 1)
eq(seen.m, 1)
-- the gradients of parameters are those without a hook
local with = net[1].weight.grad:clone()
handle:remove()
seen = {}
net:zero_grad()
net(x):square():sum():backward()
close(with, net[1].weight.grad)
eq(next(seen), nil)

-- ---- what a hook gives replaces the gradient, for later hooks too

local linear, order = nn.Linear(2, 2), {}
local first = linear:register_full_backward_hook(function(_, into)
  order[#order + 1] = "first"
  return into[1] * 3
end)
linear:register_full_backward_hook(function(_, into)
  order[#order + 1] = "second"
  return {into[1] + 1}
end)
local v = nacre.ones(1, 2, {requires_grad = true})
linear(v):sum():backward()
close(v.grad, linear.weight:detach():sum(1, true) * 3 + 1)
eq(table.concat(order, " "), "first second")
first:remove()
v.grad = nil
linear(v):sum():backward()
close(v.grad, linear.weight:detach():sum(1, true) + 1)

-- ---- several arguments and results, some without a gradient

local Pair = nn.Module "Pair"
function Pair:forward(a, k, b) return a * b, a + b, k end
local pair, got = Pair(), nil
pair:register_full_backward_hook(function(_, into, out)
  got = {into = into, out = out}
end)
local a = nacre.full({2}, 2.0, {requires_grad = true})
local b = nacre.full({2}, 5.0, {requires_grad = true})
local product, _, k = pair(a, 7, b)
eq(k, 7)
product:sum():backward()
eq(got.into.n, 3)
close(got.into[1], nacre.full({2}, 5.0))
eq(got.into[2], nil)
close(got.into[3], nacre.full({2}, 2.0))
eq(got.out.n, 3)
close(got.out[1], nacre.ones(2))
eq(got.out[2], nil)

-- no argument requires a gradient: the hook runs with those of the results
got = nil
linear:register_full_backward_hook(function(_, into, out)
  got = {into = into, out = out}
end)
local list = rawget(linear, "_hooks")
table.remove(list, 1)
linear(nacre.ones(1, 2)):sum():backward()
eq(got.into[1], nil)
eq(got.into.n, 1)
close(got.out[1], nacre.ones(1, 2))

-- ---- twice through one graph; second derivatives; no recording

got = nil
local z = linear(v):square():sum()
z:backward {retain_graph = true}
close(got.out[1], 2 * linear(v):detach())
got = nil
z:backward()
assert(got)
local w = nacre.ones(1, 2, {requires_grad = true, dtype = "float64"})
local tanh = nn.Tanh()
tanh:register_full_backward_hook(function(_, into) return into[1] * 2 end)
local g = nacre.autograd.grad(tanh(w):sum(), w, {create_graph = true})
local t = w:detach():tanh()
-- twice 2: the second derivative passes the layer, too, as in PyTorch
close(nacre.autograd.grad(g:sum(), w), -8 * t * (1 - t * t))
got = nil
assert(not nacre.no_grad(linear, v).requires_grad and not got)

-- ---- slips

fails("a hook is a function, not a nil", net.register_full_backward_hook, net)
fails("a method is called with a colon", net.register_full_backward_hook,
      print)
local bad = nn.Tanh()
bad:register_full_backward_hook(function() return 1 end)
local q = bad(v):sum()
fails("a hook gives a list of gradients", q.backward, q)
local wrong = nn.Tanh()
wrong:register_full_backward_hook(function() return nacre.ones(3) end)
q = wrong(v):sum()
fails("the gradient of argument 1 does not have its shape, [1x2]", q.backward,
      q)

-- ---- before that

local log = {}
local both = nn.Linear(2, 2, false)
both:register_full_backward_pre_hook(function(m, grad_output)
  assert(rawequal(m, both) and grad_output.n == 1)
  log[#log + 1] = grad_output[1]:sum():item()
  return {grad_output[1] * 3}
end)
local handle = both:register_full_backward_hook(function(_, _, grad_output)
  log[#log + 1] = grad_output[1]:sum():item()
end)
local input = nacre.ones(1, 2):requires_grad_()
both(input):sum():backward()
eq(table.concat(log, " "), "2.0 6.0")
assert(both.weight.grad == nacre.full({2, 2}, 3.0))
assert(nacre.allclose(input.grad, both.weight:detach():sum(1, true) * 3))
handle:remove()
both(nacre.ones(1, 2)):sum():backward()        -- no argument needs a gradient
eq(#log, 3)
wrong = nn.Tanh()
wrong:register_full_backward_pre_hook(function() return nacre.ones(3) end)
q = wrong(v):sum()
fails("the gradient of result 1 does not have its shape, [1x2]", q.backward, q)

-- a layer with a hook is collected
local weak = setmetatable({}, {__mode = "k"})
do
  local part = nn.Linear(2, 2)
  part:register_full_backward_hook(function() return part and nil end)
  weak[part] = true
  part(v):sum():backward()
end
collectgarbage()
collectgarbage()
eq(next(weak), nil)
