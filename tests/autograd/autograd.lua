-- SPDX-License-Identifier: MIT
-- What differentiation does beyond the gradients of single operations:
-- accumulation, the life of graphs, hooks, views and in-place changes,
-- recording on and off, custom functions, errors, long chains, leaks.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, text = C.fails, C.is, C.text
local grad = nacre.autograd

local leaf = C.leaf

local function same(t, want)
  assert(t, "no gradient")
  is(t, want)
end

-- ---- leaves and results
do
  local x = leaf {1, 2, 3}
  assert(x.requires_grad and x.is_leaf and x.grad == nil and x.grad_fn == nil)
  local y = x * 2
  assert(y.requires_grad and not y.is_leaf and tostring(y.grad_fn) == "<mul>")
  assert(y.grad_fn == y.grad_fn and y.grad_fn ~= (x * 2).grad_fn)
  assert(not x:detach().requires_grad and C.shares(x:detach(), x))
  assert(not nacre.ones(2).requires_grad)
  assert(nacre.ones(2, {requires_grad = true}).requires_grad)
  for _, name in ipairs {"zeros", "ones", "rand", "randn", "empty"} do
    assert(nacre[name](2, {requires_grad = true}).requires_grad, name)
  end
  assert(nacre.full({2}, 1.5, {requires_grad = true}).is_leaf)
  assert(nacre.eye(2, {requires_grad = true}).requires_grad)
  assert(nacre.arange(0, 1, 0.5, {requires_grad = true}).requires_grad)
  assert(nacre.linspace(0, 1, 3, {requires_grad = true}).requires_grad)
  assert(nacre.zeros_like(x, {requires_grad = true}).requires_grad)
  assert(not nacre.zeros_like(x, {requires_grad = false}).requires_grad)
  assert(x:requires_grad_(false) == x and not x.requires_grad)
  x.requires_grad = true
  assert((x + 1).requires_grad)
  assert(not nacre.tensor(x).requires_grad, "tensor() copies without a history")
  fails("only float tensors", function()
    nacre.arange(3):requires_grad_()
  end)
  fails("only float tensors", nacre.tensor, {1, 2}, {requires_grad = true})
  fails("only float tensors", nacre.zeros, 2,
        {dtype = "bool", requires_grad = true})
  fails("only leaves", function() y:requires_grad_(false) end)
  fails("no argument 'requires_grad'",
        function() x:sum {requires_grad = true} end)
  fails("cannot be set", function() x.is_leaf = false end)
end

-- ---- accumulation
do
  local x = leaf {1, 2}
  local y = (x * x):sum()
  y:backward()
  same(x.grad, "{2.0,4.0}");
  (x * 3):sum():backward()
  same(x.grad, "{5.0,7.0}")
  x.grad = nil
  assert(x.grad == nil)
  x.grad = nacre.tensor({1, 1}, {dtype = "float64"});
  (x * 3):sum():backward()
  same(x.grad, "{4.0,4.0}")
  x.grad:zero_()
  same(x.grad, "{0.0,0.0}")
  fails("cannot be a", function() x.grad = nacre.ones(3,
      {dtype = "float64"}) end)
  fails("cannot be a", function() x.grad = nacre.ones(2) end)
  fails("a tensor or nil", function() x.grad = 3 end)
  fails("its own gradient", function() x.grad = x end)
  -- the same leaf several times, and in several roles
  local z = leaf {3};
  (z * z * z + z):sum():backward()
  same(z.grad, "{28.0}")
  -- a gradient to begin with
  local w = leaf {{1, 2}, {3, 4}};
  (w * 2):backward(nacre.tensor({{1, 0}, {0, 1}}, {dtype = "float64"}))
  same(w.grad, "{{2.0,0.0},{0.0,2.0}}")
  -- backward of a leaf itself
  local v = leaf(2)
  v:backward()
  same(v.grad, "1.0")
  -- gradients do not share memory with what they came from
  local a, b = leaf {1, 2}, leaf {3, 4};
  (a + b):sum():backward()
  a.grad:add_(1)
  same(b.grad, "{1.0,1.0}")
end

-- ---- the graph
do
  local x = leaf {1, 2}
  local y = x:exp():sum()
  y:backward {retain_graph = true}
  y:backward()
  fails("freed by an earlier backward",
        "backward({retain_graph=true}) keeps it, and so does "
        .. "nacre.autograd.grad(y, x, {retain_graph=true})",
        function() y:backward() end)
  local z = (x + 1):sum()                -- keeps nothing that could be freed
  z:backward()
  z:backward()
  fails("does not require a gradient", function()
    nacre.ones(1):backward()
  end)
  fails("shape [2]", "self:sum():backward(), or self:backward(gradient)",
        function() (x * 2):backward() end)
  fails("is [3], expected [2]", function() (x * 2):backward(nacre.ones(3)) end)
  fails("list of inputs is empty",
        function() (x * 2):sum():backward {inputs = {}} end)
  -- only some leaves
  local a, b = leaf {1}, leaf {2};
  (a * b):sum():backward {inputs = {a}}
  same(a.grad, "{2.0}")
  assert(b.grad == nil)
  -- results
  local c = a * b
  local ga, gb = grad.grad(c:sum(), {a, b})
  same(ga, "{2.0}") same(gb, "{1.0}")
  assert(b.grad == nil, "grad() accumulates nothing")
  fails("input 1 is not used", grad.grad, (a * 2):sum(), b)
  assert(grad.grad((a * 2):sum(), b, {allow_unused = true}) == nil)
  fails("no argument", grad.grad, (a * 2):sum(), a, {retain = true})
  local d = a * 3                        -- a result as an input
  same(grad.grad((d * d):sum(), d), "{6.0}")
  -- several outputs
  same(grad.grad({(a * 2):sum(), (a * a):sum()}, a), "{4.0}")
  grad.backward {(a * 2):sum(), (a * b):sum()}
  same(b.grad, "{1.0}")
  same(a.grad, "{6.0}")
end

-- ---- second and higher derivatives
do
  local x = leaf {2}
  local y = x ^ 4
  local want = {"{32.0}", "{48.0}", "{48.0}", "{24.0}"}
  for i = 1, 4 do
    y = grad.grad(y:sum(), x, {create_graph = true})
    same(y:detach(), want[i])
  end
  local z = leaf {3};
  (z * z * z):sum():backward {create_graph = true}
  assert(z.grad.requires_grad)
  local g = z.grad
  z.grad = nil
  g:sum():backward()
  same(z.grad, "{18.0}")
  z.grad = nil
  -- of what is linear in pieces, and its gradient constant between them
  local F, w = nacre.nn.functional, leaf {-3, 0.5, 4}
  for _, f in ipairs {F.relu, F.relu6, F.leaky_relu, F.hardtanh,
                      F.softshrink} do
    g = grad.grad(f(w):sum(), w, {create_graph = true})
    assert(g.requires_grad)
    assert(nacre.equal(grad.grad((g * w):sum(), w, {retain_graph = true}),
                       g:detach()))
    g:sum():backward()
    same(w.grad, "{0.0,0.0,0.0}")
    w.grad = nil
    assert(not grad.grad(f(w):sum(), w).requires_grad)
  end
  -- what is given, or the program holds, is left alone
  local ones = nacre.ones(3)
  F.relu(w):backward {gradient = ones, create_graph = true}
  assert(not ones.requires_grad)
  w.grad = nil
end

-- ---- types and devices
do
  local x = nacre.ones(2, {requires_grad = true})
  local y = x:to("float64") * nacre.tensor({2, 3}, {dtype = "float64"})
  assert(y.dtype == "float64" and tostring(x:double().grad_fn) == "<to>")
  y:sum():backward()
  assert(x.grad.dtype == "float32")
  same(x.grad, "{2.0,3.0}")
  assert(not x:to("int64").requires_grad)
  local h = nacre.ones(3, {dtype = "float16", requires_grad = true});
  (h * 2 + x:sum()):sum():backward()
  assert(h.grad.dtype == "float16")
  same(x.grad, "{5.0,6.0}")
  local n = nacre.tensor {1, 2, 3};
  (h * n):sum():backward()
  same(h.grad, "{3.0,4.0,5.0}")
end

-- ---- recording on and off
do
  local x = leaf {1}
  nacre.no_grad(function()
    assert(not nacre.is_grad_enabled() and not (x * 2).requires_grad)
    nacre.enable_grad(function() assert((x * 2).requires_grad) end)
    assert(not nacre.is_grad_enabled())
    x:mul_(3)                            -- a leaf may be changed unrecorded
  end)
  assert(nacre.is_grad_enabled())
  same(x:detach(), "{3.0}")
  local a, b, c = nacre.no_grad(function(...) return ... end, 1, nil, 3)
  assert(a == 1 and b == nil and c == 3)
  local thrown = {}
  local ok, e = pcall(nacre.no_grad, function() error(thrown) end)
  assert(not ok and e == thrown and nacre.is_grad_enabled())
  local co = coroutine.create(function(...)
    local v = nacre.no_grad(function(...) return ... end, ...)
    nacre.no_grad(function() error(thrown) end, v)
  end)
  ok, e = coroutine.resume(co, 7)        -- fails, and is not closed
  assert(not ok and e == thrown and nacre.is_grad_enabled())
  nacre.set_grad_enabled(false)
  assert(not (x * 2).requires_grad)
  nacre.set_grad_enabled(true)
  assert((x * 2).requires_grad)
  fails("takes a function", nacre.no_grad, 3)
end

-- ---- another storage for a leaf
do
  local x = leaf {1, 2}
  local same_leaf = x
  x:square():sum():backward()
  x.data = x.data * 3
  assert(rawequal(x, same_leaf) and x.requires_grad and x.is_leaf)
  assert(not x.data.requires_grad)
  same(x:detach(), "{3.0,6.0}")
  same(x.grad, "{2.0,4.0}")
  x.data = x.data:half()                 -- a gradient that does not fit goes
  assert(x.dtype == "float16" and x.requires_grad and x.grad == nil)
  x:square():sum():backward()
  same(x.grad, "{6.0,12.0}")
  fails("a leaf that requires a gradient", x.set_, x, nacre.zeros(2))
  nacre.no_grad(function() x:set_(nacre.zeros(3)) end)
  assert(x.requires_grad and x.dtype == "float32" and #x == 3)
  fails("only float tensors", function() x.data = nacre.tensor {1} end)
  fails("data must be a tensor, not a number", function() x.data = 3 end)
  local plain, other = nacre.ones(2), nacre.zeros(2, 2)
  plain.data = other
  other:fill_(7)
  same(plain, "{{7.0,7.0},{7.0,7.0}}")
end

-- ---- in place
do
  local x = leaf {1, 2, 3}
  fails("a leaf that requires a gradient", function() x:add_(1) end)
  fails("a leaf that requires a gradient", function() x[1] = 5 end)
  fails("a leaf that requires a gradient", function() x["1:2"] = 5 end)
  fails("a leaf that requires a gradient", function() x:zero_() end)
  fails("a leaf that requires a gradient", function() x:uniform_() end)
  fails("a leaf that requires a gradient", function() x:clamp_(0, 1) end)
  fails("a leaf that requires a gradient", nacre.add, x, x, {out = x})
  fails("a view of a leaf", function() x["1:2"]:mul_(2) end)
  fails("a view of a leaf", function() x["1:2"][1] = 2 end)
  is(x:detach(), "{1.0,2.0,3.0}")
  -- versions
  local y = x * 2
  local z = y:exp()
  z:add_(1)
  fails("the result of exp", function() z:sum():backward() end)
  y = x * 2
  z = y * y
  y:add_(1)
  local e = fails("an operand of mul", function() z:sum():backward() end)
  assert(tostring(e):find("version 1, expected 0", 1, true), tostring(e))
  y = x * 2
  z = y + 1                              -- does not need y
  y:add_(1)
  z:sum():backward()
  same(x.grad, "{2.0,2.0,2.0}")
  x.grad = nil
  y = x * 2
  z = y:sin()
  y:detach():zero_()                     -- shares the version
  fails("an operand of sin", function() z:sum():backward() end)
  -- an operand whose values are not needed may change
  local w = leaf {4, 5, 6}
  local k = nacre.tensor({1, 1, 1}, {dtype = "float64"})
  z = w * k
  w.requires_grad = true
  nacre.no_grad(function() w:add_(1) end)
  z:sum():backward()
  same(w.grad, "{1.0,1.0,1.0}")
end

-- ---- views
do
  local x = leaf {{1, 2}, {3, 4}}
  local base = x * 1
  local row, column = base[1], base:t()[2]
  row:mul_(10)
  assert(tostring(row.grad_fn) == "<view>" and
         tostring(base.grad_fn) == "<set>");
  (base * 1 + 0):sum():backward {retain_graph = true}
  same(x.grad, "{{10.0,10.0},{1.0,1.0}}")
  x.grad = nil
  column:sum():backward {retain_graph = true}  -- sees what row did
  same(x.grad, "{{0.0,10.0},{0.0,1.0}}")
  -- a tensor that needs no gradient comes to need one
  local w = leaf {5, 6}
  local z = nacre.zeros(3, 2, {dtype = "float64"})
  local part = z[2]
  assert(not z.requires_grad)
  z[1] = w
  assert(z.requires_grad and not z.is_leaf and part.requires_grad)
  part:copy_(w * 2);
  (z * z):sum():backward()
  same(w.grad, "{50.0,60.0}")
  -- by elements
  local y = nacre.zeros(3, {dtype = "float64"})
  y["1:1"] = w["2:2"]
  y[3] = 7
  y:sum():backward()
  same(w.grad, "{50.0,61.0}")
  -- overwriting cuts the history
  y = w * 2
  y:fill_(1)
  assert(not y.requires_grad)
  y = w * 2
  y[1] = 0
  w.grad = nil
  y:sum():backward()
  same(w.grad, "{0.0,2.0}")
  -- views made while nothing is recorded take no part
  local q = leaf {1, 2} * 1
  local v = nacre.no_grad(function() return q["1:1"] end)
  assert(not v.requires_grad)
  fails("cannot be detached", function() q["1:1"]:detach_() end)
  assert(q:detach_() == q and not q.requires_grad)
end

-- ---- hooks
do
  local x = leaf {1, 2}
  local seen = {}
  local h = x:register_hook(function(g) seen[#seen + 1] = text(g:totable()) end)
  local y = x * 3
  local h2 = y:register_hook(function(g) return g * 10 end);
  (y * 2):sum():backward()
  assert(seen[1] == "{60.0,60.0}", seen[1])
  same(x.grad, "{60.0,60.0}")
  h:remove()
  h:remove();
  (x * 1):sum():backward()
  assert(#seen == 1)
  h2:remove()
  local z = x * 2
  z:retain_grad();
  (z * z):sum():backward()
  same(z.grad, "{4.0,8.0}")
  -- what a hook raises comes through unchanged, and nothing else changes
  local thrown = setmetatable({}, {__tostring = function() return "mine" end})
  local w = leaf {1}
  local bad = w:register_hook(function() error(thrown) end)
  local ok, e = pcall(function() (w * 2):sum():backward() end)
  assert(not ok and e == thrown and w.grad == nil)
  bad:remove()
  bad = w:register_hook(function() return nacre.ones(2) end)
  fails("is [2], expected [1]", function() (w * 2):sum():backward() end)
  bad:remove()
  bad = w:register_hook(function() return 5 end)
  fails("must return a tensor or nothing", function()
    (w * 2):sum():backward()
  end)
  bad:remove()
  -- a hook that goes through the same graph
  local inner
  local u = w * w
  local sum = u:sum()
  u:register_hook(function()
    if not inner then
      inner = true
      inner = grad.grad(sum, w, {retain_graph = true})
    end
  end);
  (u * 3):sum():backward()
  same(inner, "{2.0}")
  same(w.grad, "{6.0}")
  fails("does not require", function()
    nacre.ones(1):register_hook(print)
  end)
  fails("a hook must be a function", function() w:register_hook(3) end)
end

-- ---- custom functions
do
  local Exp = grad.Function {
    name = "Exp",
    forward = function(ctx, x, k)
      local y = (x * k):exp()
      ctx.k = k
      ctx:save_for_backward(y)
      return y
    end,
    backward = function(ctx, g)
      local y = table.unpack(ctx.saved_tensors)
      assert(ctx.needs_input_grad[1] and not ctx.needs_input_grad[2])
      return g * y * ctx.k
    end,
  }
  local x = leaf {0.1, 0.2}
  local y = Exp(x, 2)
  assert(tostring(y.grad_fn) == "<Exp>")
  assert(grad.gradcheck(function(t) return Exp.apply(t, 2) end, x))
  assert(grad.gradgradcheck(function(t) return Exp(t, 2) end, x))
  y:sum():backward()
  fails("freed by an earlier", function() y:sum():backward() end)
  assert(not nacre.no_grad(Exp, x, 2).requires_grad)
  assert(not Exp(x:detach(), 2).requires_grad)
  -- several operands and results, one without a gradient
  local Both = grad.Function {
    forward = function(ctx, a, b)
      ctx:save_for_backward(a, b)
      local n = a:gt(b):to("float64")
      ctx:mark_non_differentiable(n)
      return a * b, a + b, n
    end,
    backward = function(ctx, g, h, k)
      local a, b = table.unpack(ctx.saved_tensors)
      assert(k:eq(0):all():item())
      return g * b + h, g * a + h
    end,
  }
  local a, b = leaf {1, 2}, leaf {3, 4}
  assert(grad.gradcheck(Both.apply, {a, b}))
  assert(grad.gradgradcheck(Both.apply, {a, b}))
  local _, s, n = Both(a, b)
  assert(not n.requires_grad)
  s:sum():backward()
  same(a.grad, "{1.0,1.0}")
  -- a saved result, changed
  y = Exp(x, 2)
  y:add_(1)
  fails("the result of Exp", function() y:sum():backward() end)
  -- wrong ones
  local Wrong = grad.Function {forward = function(_, t) return t * 2 end,
                               backward = function() return nacre.ones(7) end}
  fails("Function returned a gradient of [7] for a tensor of [2]",
        function() Wrong(a):sum():backward() end)
  local Sum = grad.Function {name = "Sum",
                             forward = function(_, t) return t:sum() end,
                             backward = function(_, g) return g end}
  fails("Sum returned a gradient of [] for a tensor of [2]",
        function() Sum(a):backward() end)
  -- an argument that forward changes becomes the result, with its views
  local Twice = grad.Function {
    forward = function(ctx, t)
      ctx:mark_dirty(t)
      return t:mul_(2)
    end,
    backward = function(_, g) return g * 2 end,
  }
  a.grad = nil
  local changed = a * 3
  local view = changed:view(2, 1)
  assert(rawequal(Twice(changed), changed))
  local both = changed * changed + view:squeeze()
  both:sum():backward()
  same(a.grad, "{78.0,150.0}")
  fails("a leaf that requires a gradient cannot be changed", Twice, leaf {1})
  fails("a view was changed in place", Twice, (a * 1)["1:1"])
  local Lost = grad.Function {
    forward = function(ctx, t) ctx:mark_dirty(t) return t * 1 end,
    backward = function(_, g) return g end}
  fails("a tensor marked dirty is an argument and a result", Lost, a * 1)
  local thrown = {}
  Wrong = grad.Function {forward = function(_, t) return t end,
                         backward = function() error(thrown) end}
  local ok, e = pcall(function() Wrong(a):sum():backward() end)
  assert(not ok and e == thrown)
  fails("Function: takes a table", grad.Function, {})
  fails("Function: no field 'foo'", grad.Function,
        {forward = print, backward = print, foo = 1})
  -- gradients that are too few or too many
  local function product(...)
    local given = table.pack(...)
    return grad.Function {
      forward = function(_, t, u) return t * u end,
      backward = function() return table.unpack(given, 1, given.n) end,
    }
  end
  local two = nacre.ones(2)
  local other = nacre.ones(2):requires_grad_()
  fails("returned 1 gradient, but argument 2 of forward needs one", function()
    product(two)(a, other):sum():backward()
  end)
  fails("gradient 2 is one too many: forward took 2", function()
    product(two, two)(a, 2):sum():backward()
  end)
  fails("gradient 3 is one too many", function()
    product(two, two, two)(a, other):sum():backward()
  end)
  product(two, nil)(a, other):sum():backward()  -- none, said so
  product(two, nil, nil)(a, other):sum():backward()
  product(two)(a, 2):sum():backward()
  product(two)(a, two):sum():backward()
  assert(other.grad == nil)
  -- the context outlives the graph
  local kept
  local Keep = grad.Function {forward = function(ctx, t)
    kept = ctx
    ctx:save_for_backward(t)
    return t * 1
  end, backward = function(_, g) return g end}
  Keep(a)
  collectgarbage()
  collectgarbage()
  fails("the graph was freed", function() return kept.saved_tensors end)
  local bad = grad.Function {forward = function(_, t) return t * t end,
                             backward = function(_, g) return g end}
  fails("is off by", grad.gradcheck, bad.apply, a)
  assert(grad.gradcheck(bad.apply, a, {raise = false}) == false)
  local worse = grad.Function {forward = function(_, t) return t * t end,
                               backward = function(_, g) return g / 0 * 0 end}
  fails("is off by nan\n", grad.gradcheck, worse.apply, a)
  fails("differences need float64", grad.gradcheck, nacre.exp,
        nacre.ones(2, {requires_grad = true}))
end

-- ---- long chains, and what is left
do
  -- more steps than the C stack has room for calls of any size, 8 MiB by 28
  -- bytes; a device and sanitizers, which are slow, change nothing about that
  local slow = nacre.get_default_device() ~= "cpu" or os.getenv "ASAN_OPTIONS"
  local long = slow and 3000 or 300000
  local before = C.live()
  do
    local x = nacre.ones(1, {requires_grad = true})
    local y = x
    for _ = 1, long do y = y + 1 end
    y:backward()
    same(x.grad, "{1.0}")
    y = x
    for _ = 1, long do y = y * 1 end
    local wide = nacre.stack {y, y}    -- let go of without backward
    assert(wide.requires_grad)
  end
  local after = C.live()
  assert(after == before, after - before .. " bytes are left of a long chain")
end

local function leaks(what, f)
  f()
  local before = C.live()
  for _ = 1, 10 do f() end
  local after = C.live()
  assert(after == before, ("%s leaves %d bytes"):format(what, after - before))
end
leaks("a graph that nobody walked", function()
  local x = leaf {1, 2}
  return x:softmax(1):cumsum(1):matmul(x)
end)
leaks("create_graph", function()
  local x = leaf {1, 2};
  (x ^ 3):sum():backward {create_graph = true}
end)
leaks("in-place changes", function()
  local x = leaf {1, 2, 3}
  local y = x * 1
  local v = y["1:2"]
  v:mul_(x["2:3"])
  y:add_(y * y)
  y[1] = y[2]
  return y:sum(), v
end)
leaks("failures", function()
  local x = leaf {1, 2}
  pcall(function() (x * 2):backward() end)
  local y = x * 1
  y:register_hook(function() error("no") end)
  pcall(function() (y * y):sum():backward() end)
  pcall(grad.grad, (x * 2):sum(), leaf {1})
end)

-- ---- display
do
  local x = nacre.ones(2, {requires_grad = true})
  assert(tostring(x):find("requires_grad", 1, true), tostring(x))
  assert(tostring(x * 2):find("grad <mul>", 1, true), tostring(x * 2))
end
