-- SPDX-License-Identifier: MIT
-- nacre.utils.checkpoint: gradients are those without it, bit for bit, with
-- random numbers, weights that fn uses, regions of autocast, and inside each
-- other; and it keeps less memory. Also what saved_tensors are in backward.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local common = dofile(here .. "../lib/common.lua")
local check, fails = O.check, common.fails
local nn, F, checkpoint = nacre.nn, nacre.nn.functional, nacre.utils.checkpoint

local net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.5),
                          nn.Linear(16, 3))

-- The gradients of x, if it is there, and of the net after f().
local function gradients(x, f)
  nacre.manual_seed(3)
  net:zero_grad()
  if x then x.grad = nil end
  local y = f()
  local after = nacre.rand(1):item()
  y:square():sum():backward()
  local list = {y:detach(), nacre.tensor(after)}
  if x then list[#list + 1] = x.grad end
  for p in net:parameters() do list[#list + 1] = p.grad end
  list[#list + 1] = nacre.rand(2)  -- backward leaves the generator alone
  return list
end

local function same(what, x, f, g)
  local a, b = gradients(x, f), gradients(x, g)
  check(#a == #b, "%s: %d gradients, not %d", what, #b, #a)
  for i, t in ipairs(a) do
    check(b[i] and t:equal(b[i]), "%s: number %d differs", what, i)
  end
end

-- tensors without dimensions, and without elements
local scale = nn.Parameter(nacre.tensor(2.0))
for _, size in ipairs {{}, {4}, {0, 3}, {1, 1}} do
  local v = nacre.ones(size):requires_grad_()
  checkpoint(function(t) return t * scale + scale end, v):sum():backward()
  check(v.grad:equal(nacre.full(size, 2.0)), "the gradient of [%s]",
        table.concat(size, "x"))
end
check(scale.grad:item() == 12, "the scale %s", scale.grad)

local x = nacre.randn(5, 4):requires_grad_()
same("an input", x, function() return net(x) end,
     function() return checkpoint(net, x) end)
same("the name of the module", x, function() return net(x) end,
     function() return checkpoint.checkpoint(net, x) end)
local fixed = x:detach()
same("weights alone", nil, function() return net(fixed) end,
     function() return checkpoint(net, fixed) end)
same("one in another", x, function() return net(x) * 2 end, function()
  return checkpoint(function(t) return checkpoint(net, t) * 2 end, x)
end)
same("several results", x, function()
  local y = net(x)
  return y + y:exp()
end, function()
  local a, b = checkpoint(function(t)
    local y = net(t)
    return y, y:exp()
  end, x)
  return a + b
end)
same("a region", x, function()
  return nacre.autocast(x.device, net, x):float()
end, function()
  return nacre.autocast(x.device, checkpoint, net, x):float()
end)
check(checkpoint(net, fixed).requires_grad, "it is recorded")
nacre.no_grad(function()
  check(not checkpoint(net, x).requires_grad, "without recording")
end)

do  -- memory that waits for backward
  local deep = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64),
                             nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
  local big = nacre.randn(100, 64)
  local function held(f)
    collectgarbage()
    local before = common.live()
    local y = f()
    collectgarbage()
    return common.live() - before, y
  end
  local whole = held(function() return deep(big) end)
  local part = held(function() return checkpoint(deep, big) end)
  check(part < whole / 2, "%d bytes, and %d without it", part, whole)
end

do  -- gradients of some tensors alone, arguments or not
  local grad, linear = nacre.autograd.grad, nn.Linear(4, 3)
  local h = (x * 2):detach():requires_grad_() * 1
  local f = function(t) return linear(t * h):tanh() end
  local list = {x, linear.weight, linear.bias, h}
  local keep = {retain_graph = true}
  local want = {grad(f(x):square():sum(), list, keep)}
  local got = {grad(checkpoint(f, x):square():sum(), list, keep)}
  for i in ipairs(list) do check(got[i]:equal(want[i]), "number %d", i) end
  check(grad(checkpoint(f, x):square():sum(), x, keep):equal(want[1]),
        "x alone")
  check(grad(checkpoint(f, x):square():sum(), h):equal(want[4]), "h alone")
  linear:zero_grad()
  h = h:detach()              -- the history of the other is freed
  checkpoint(f, x):square():sum():backward {inputs = {linear.weight}}
  check(linear.weight.grad:equal(want[2]), "backward with inputs")
  check(linear.bias.grad == nil, "the others are not written")
  linear:zero_grad()
  local calls = 0
  linear.weight:register_hook(function() calls = calls + 1 end)
  checkpoint(f, x, {use_reentrant = false}):square():sum():backward()
  check(calls == 1 and linear.weight.grad:equal(want[2]), "%d hooks", calls)
  check(grad(checkpoint(function(t) return t end, x):sum(), x):equal(
          nacre.ones(5, 4)), "an argument that is the result")
  linear:zero_grad()
  nacre.autocast(x.device, function()
    local first = linear(x):float():sum()
    return (first + checkpoint(linear, x):float():sum()):backward()
  end)
  check(nacre.allclose(linear.bias.grad, nacre.full({3}, 10)), "a kept cast")
  local other = linear
  local y = checkpoint(function(t) return other(t) end, x)
  other = nn.Linear(4, 3)
  fails("the function used different tensors when it was called again",
        y.backward, y:sum())
end

fails("takes a function, not a nil", checkpoint)
fails("broken", function()
  local calls = 0
  checkpoint(function(t)
    calls = calls + 1
    if calls == 2 then error "broken" end
    return t * 2
  end, x):sum():backward()
end)
fails("a gradient of a gradient cannot go through a checkpoint", function()
  nacre.autograd.grad(checkpoint(net, x):sum(), x, {create_graph = true})
end)

-- ---- saved tensors have the history of the inputs

do
  local seen
  local Double = nacre.autograd.Function {
    forward = function(ctx, t)
      ctx:save_for_backward(t)
      return t * 2
    end,
    backward = function(ctx, g)
      local t = ctx.saved_tensors[1]
      seen = t.requires_grad
      local y
      nacre.enable_grad(function() y = t:detach():requires_grad_() * 2 end)
      return g * 2 + 0 * y:detach()
    end,
  }
  Double(x):sum():backward()
  check(seen == true, "a saved input requires a gradient")
  Double(F.relu(x)):sum():backward()
  check(seen == true, "a saved result requires a gradient")
end

O.done "checkpoint"
