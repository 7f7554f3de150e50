-- SPDX-License-Identifier: MIT
-- When gradients arrive: a leaf's as soon as its last consumer was visited;
-- hooks after a leaf has accumulated, by the rules of PyTorch; what is called
-- at the end of backward; gradients that are views.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is = C.fails, C.is
local F, grad = nacre.nn.functional, nacre.autograd

local leaf = C.leaf

local function expect(got, want)
  got = table.concat(got, " ")
  assert(got == want, ("%s, not %s"):format(got, want))
end

-- ---- the order in which leaves have their gradients
-- The names of the leaves of a chain of layers, in this order.
local function arrivals(layer)
  local seen, y = {}, nacre.ones(3, 3)
  local function watched(key)
    local t = nacre.randn(3, 3, {requires_grad = true})
    t:register_hook(function() seen[#seen + 1] = key end)
    return t
  end
  for i = 1, 4 do y = layer(y, watched("w" .. i), watched("b" .. i)) end
  y:sum():backward()
  return table.concat(seen, " ")
end

local function interleaved(order) return order:gsub("[wb]", "p") end

for name, layer in pairs {
  addmm = function(x, w, b) return nacre.addmm(b, x, w) end,
  weight_first = function(x, w, b) return (b + w:matmul(x)):tanh() end,
  linear = function(x, w, b) return F.linear(x, w, b[1]) end,
} do
  local got = arrivals(layer)
  assert(interleaved(got) == "p4 p4 p3 p3 p2 p2 p1 p1", name .. ": " .. got)
end

do -- an inner result's hook: the leaves behind it do not wait for the end
  local a, b, seen = leaf {1}, leaf {2}, {}
  local y = a + leaf {3}
  a:register_hook(function() seen[#seen + 1] = "a" end)
  b:register_hook(function() seen[#seen + 1] = "b" end)
  y:register_hook(function() seen[#seen + 1] = "y" end);
  (b + y * 2):backward()
  expect(seen, "b y a")
end

-- A leaf with several consumers waits for the last one, and its hook is called
-- once with the sum; so does one that is an output, or used twice by one.
do
  local x, seen = leaf {2}, {}
  x:register_hook(function(g) seen[#seen + 1] = g:item() end)
  local y = x * x
  y:register_hook(function() seen[#seen + 1] = "y" end)
  grad.backward({(y * 3 + x:exp() * 0):sum(), x:sum(), x})
  expect(seen, "y 14.0")
  is(x.grad, "{14.0}")
  x.grad = nil
  x:backward()
  expect(seen, "y 14.0 1.0")
  -- a consumer without a gradient: the rest arrives nevertheless
  local a, b = leaf {1, 2}, leaf {3, 4}
  local pair = nacre.stack({a, b})
  local top, where = pair:max(1)
  b:register_hook(function(g) seen[#seen + 1] = "b" end)
  grad.grad(top:sum(), {a, b})
  expect(seen, "y 14.0 1.0 b")
  -- of one input alone, the others' hooks are silent
  grad.grad((a * b):sum(), a)
  expect(seen, "y 14.0 1.0 b")
end

-- ---- hooks after a leaf has accumulated
local AFTER = "register_post_accumulate_grad_hook"
do
  local x, log = leaf {1}, {}
  local function note(text) log[#log + 1] = text end
  local h = x[AFTER](x, function(p)
    assert(rawequal(p, x) and not nacre.is_grad_enabled())
    note("a" .. p.grad:item())
  end)
  x:register_hook(function(g) note "h" return g * 10 end)
  x[AFTER](x, function() note "b" end);
  (x * 3):backward()
  expect(log, "h a30.0 b")
  grad.grad(x * 3, x)                    -- accumulates nothing
  expect(log, "h a30.0 b h")
  log = {};
  (x * 3):backward({inputs = {x}})
  expect(log, "h a60.0 b")
  local y = leaf {1};
  (x * y):backward({inputs = {y}})
  expect(log, "h a60.0 b")
  h:remove()
  h:remove()
  log = {};
  (x * 3):backward()
  expect(log, "h b")
end

do -- a hook may take the gradient, change the leaf, fail
  local x, y = leaf {1, 2}, leaf {5}
  local seen
  local h = x[AFTER](x, function(p) seen, p.grad = p.grad, nil end);
  (x * 3 + y):sum():backward()
  is(seen, "{3.0,3.0}")
  assert(x.grad == nil)
  is(y.grad, "{2.0}")
  h:remove()
  -- a step in backward, for the memory of one gradient at a time
  h = x[AFTER](x, function(p) p:sub_(p.grad) p.grad = nil end)
  local w = leaf {4};
  (x * w):sum():backward()
  is(x, "{-3.0,-2.0}")
  is(w.grad, "{3.0}")                    -- of the x before the step
  h:remove()
  w.grad = nil
  h = w[AFTER](w, function() error("no", 0) end)
  local ok, e = pcall(function() (x * w):sum():backward() end)
  assert(not ok and e == "no" and x.grad == nil)
  is(w.grad, "{-5.0}")                   -- it had accumulated
  h:remove()
  h = w[AFTER](w, function() return 5 end)
  fails("must return nothing, not a number", function() (w * 2):backward() end)
  h:remove()
  w.grad = nil
  local recorded                         -- create_graph records in hooks, too
  w[AFTER](w, function(p) recorded = (p.grad * 1).requires_grad end);
  (w * w):sum():backward({create_graph = true})
  assert(recorded)
  w.grad = nil
  fails("not a leaf", "self:register_hook(f) is called with its gradient",
        function() (x * 2)[AFTER](x * 2, print) end)
  fails("does not require", function()
    nacre.ones(1)[AFTER](nacre.ones(1), print)
  end)
  fails("a hook must be a function", function() w[AFTER](w, 3) end)
end

do -- another pass through the same leaf from a hook
  local x, log = leaf {3}, {}
  x[AFTER](x, function(p)
    log[#log + 1] = p.grad:item()
    if #log == 1 then
      nacre.enable_grad(function() (p * 2):sum():backward() end)
    end
  end);
  (x * x):sum():backward()
  assert(#log == 2 and log[1] == 6 and log[2] == 8)
end

-- ---- the end of backward
do
  local x, log = leaf {1}, {}
  local function at_end(name, f)
    grad._at_end(function(ok)
      log[#log + 1] = name .. tostring(ok)
      if f then f(ok) end
    end)
  end
  fails("no backward pass is running", grad._at_end, print)
  local h = x:register_hook(function()
    at_end("a", function() assert(x.grad == nil) at_end "c" end)
    at_end "b"
  end);
  (x * 2):backward()
  expect(log, "atrue btrue ctrue")
  is(x.grad, "{2.0}")
  fails("no backward pass is running", grad._at_end, print)
  h:remove()

  -- one that fails makes backward fail; those after it hear of that
  x.grad, log = nil, {}
  h = x:register_hook(function()
    at_end "a"
    at_end("b", function() error("late", 0) end)
    at_end("c", function() error("later", 0) end)
  end)
  local ok, e = pcall(function() (x * 2):backward() end)
  assert(not ok and e == "late" and x.grad == nil, e)
  expect(log, "atrue btrue cfalse")
  h:remove()

  -- a pass that fails: its error stays, also one of the core
  log = {}
  local y = leaf {1}
  y:register_hook(function() error("first", 0) end)
  h = x:register_hook(function()
    at_end("a", function() error("second", 0) end)
  end)
  local z = y * 1
  ok, e = pcall(function() (z + x):backward() end)
  assert(not ok and e == "first", e)
  expect(log, "afalse")
  log = {}
  local once = x * 1
  x:register_hook(function() return nacre.ones(7) end)
  fails("is [7], expected [1]", function() once:backward() end)
  expect(log, "afalse")
  h:remove()

  -- of the innermost pass
  log = {}
  local u, v = leaf {1}, leaf {2}
  v:register_hook(function() at_end "inner" end)
  local sum = v * 2
  u:register_hook(function()
    at_end "outer"
    grad.grad(sum, v)
    log[#log + 1] = "hook"
  end);
  (u * 2):backward()
  expect(log, "innertrue hook outertrue")
end

-- ---- a gradient that is a view of another tensor takes what is added
do
  local flat = nacre.zeros(5, {dtype = "float64"})
  local a, b = leaf {1, 2}, leaf {3, 4, 5}
  a.grad, b.grad = flat:narrow(1, 1, 2), flat:narrow(1, 3, 3);
  ((a * 2):sum() + (b * b):sum()):backward()
  is(flat, "{2.0,2.0,6.0,8.0,10.0}")
  assert(C.shares(a.grad, flat) and C.shares(b.grad, flat))
end

-- ---- a hook that refers to its own tensor is collected with it
do
  local weak = setmetatable({}, {__mode = "v"})
  do
    local x = leaf {1}
    x[AFTER](x, function(p) return x and nil end)
    weak[1] = x;
    (x * 2):backward()
  end
  collectgarbage()
  collectgarbage()
  assert(weak[1] == nil)
end
