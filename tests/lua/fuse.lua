-- SPDX-License-Identifier: MIT
-- nacre.fuse traces a function anew when something that it depends on has
-- changed, and only then; writes in place where the function does; fails as the
-- function does. fused_rows.lua and fused_grad.lua compare its values.

local here = arg[0]:match("^(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
nacre.manual_seed(3)
local fuses = nacre.get_default_device() == "cpu"  -- others by a compiler

local function is(have, want, what)
  if have ~= want then
    error(("%s: %s, not %s"):format(what or "", tostring(have),
                                    tostring(want)), 2)
  end
end

local function equal(a, b)
  assert(nacre.equal(a, b), "the values differ")
end

-- f, fused, and a function that says how often f has run since it was asked.
local function counted(f)
  local runs = 0
  local fused = nacre.fuse(f)
  local hook = function(g, ...)
    -- what f itself calls while it is traced
    local before = COUNT
    local r = table.pack(g(...))
    runs = runs + (COUNT - before)
    return table.unpack(r, 1, r.n)
  end
  return function(...) return hook(fused, ...) end, function()
    local n = runs
    runs = 0
    return n
  end
end
COUNT = 0
local function tick() rawset(_G, "COUNT", COUNT + 1) end
package.loaded["nacre.tick"] = {tick}  -- not watched: a library

local x, y = nacre.randn(40, 50), nacre.randn(40, 50)
local row = nacre.randn(50)

-- ---- what traces anew

do
  local scale, flags = 2.5, {bias = 0.25}
  local ticks = require "nacre.tick"
  local function helper(t) return t * scale end
  local f, runs = counted(function(a, b)
    ticks[1]()
    return helper(a):exp() + b + flags.bias
  end)
  equal(f(x, y), (x * 2.5):exp() + y + 0.25)
  is(runs(), 1, "the first call")
  equal(f(y, x), (y * 2.5):exp() + x + 0.25)
  is(runs(), 0, "other values")
  local z, other = nacre.randn(3, 4, 5), nacre.randn(3, 4, 5)
  equal(f(z, other), (z * 2.5):exp() + other + 0.25)
  is(runs(), 0, "another shape")
  equal(f(z, z), (z * 2.5):exp() + z + 0.25)
  is(runs(), 1, "one tensor twice")
  equal(f(x, row), (x * 2.5):exp() + row + 0.25)
  is(runs(), 1, "broadcast")
  equal(f(x:double(), y), (x:double() * 2.5):exp() + y + 0.25)
  is(runs(), 1, "another dtype")
  equal(f(x:t(), y:t()), (x:t() * 2.5):exp() + y:t() + 0.25)
  is(runs(), 1, "other strides")
  scale = 0.75
  equal(f(x, y), (x * 0.75):exp() + y + 0.25)
  is(runs(), 1, "an upvalue of an upvalue")
  flags.bias = 1.25
  equal(f(x, y), (x * 0.75):exp() + y + 1.25)
  is(runs(), 1, "a field")
  flags.more = true
  f(x, y)
  is(runs(), 1, "a new field")
  f(x, y)
  is(runs(), 0, "nothing new")
end

do -- globals, and what they hold is not kept in the function's environment
  factor = 1.5
  local f = nacre.fuse(function(a) return a * factor + factor end)
  equal(f(x), x * 1.5 + 1.5)
  factor = 2.75
  equal(f(x), x * 2.75 + 2.75)
  factor = y
  equal(f(x), x * y + y)
  factor = nil
  fails("", f, x)
  factor = 1.5
  equal(f(x), x * 1.5 + 1.5)
  local function g(a) seen = a.ndim return a + 1 end
  equal(nacre.fuse(g)(x), x + 1)
  is(seen, 2, "a global that is set")
  factor, seen = nil, nil
end

do -- numbers are arguments, integers and halves are parts of the key
  local ticks = require "nacre.tick"
  local f, runs = counted(function(a, lr, k)
    ticks[1]()
    local rate = lr * 2 - lr / 3
    return a * rate + k, rate
  end)
  for i, lr in ipairs {0.3, 0.7, 1e-3, 123.4} do
    local v, rate = f(x, lr, 3)
    equal(v, x * (lr * 2 - lr / 3) + 3)
    is(rate, lr * 2 - lr / 3, "a number that is computed")
    is(runs(), i == 1 and 1 or 0, "a number")
  end
  f(x, 0.3, 4)
  is(runs(), 1, "an integer")
  local g = nacre.fuse(function(a, v)
    if v == 0 then return a + 1 end
    return (a * v):exp()
  end)
  equal(g(x, 0.3), (x * 0.3):exp())
  equal(g(x, 0.0), x + 1)
  equal(g(x, 0), x + 1)
  local h = nacre.fuse(function(a, v)          -- compares: traced with values
    if v > 0.4 then return a:exp() * v end
    return a:sin() * math.sqrt(v)
  end)
  for _, v in ipairs {0.3, 0.7, 0.1, 0.45} do
    equal(h(x, v), v > 0.4 and x:exp() * v or x:sin() * math.sqrt(v))
  end
  local p = nacre.fuse(function(a, e) return (a:abs() ^ e) * 2 end)
  for _, e in ipairs {0.3, 0.5, 2.0, 3, -1.0, 1.7} do
    equal(p(x, e), (x:abs() ^ e) * 2)
  end
  local w = nacre.fuse(function(a, s) return s:rep(2) == "abab" and -a or a end)
  equal(w(x, "ab"), -x)
  equal(w(x, "a"), x)
end

do -- at most 8 programs: the ninth replaces the oldest
  local ticks = require "nacre.tick"
  local f, runs = counted(function(a, k) ticks[1]() return a * k + k end)
  for k = 1, 9 do f(x, k) end
  is(runs(), 9)
  for k = 9, 2, -1 do f(x, k) end
  is(runs(), 0, "eight are kept")
  equal(f(x, 1), x + 1)
  is(runs(), 1, "the first is gone")
end

do -- a size that the function looks at, and the recording of gradients
  local f = nacre.fuse(function(a) return (a - 1) * a.shape[2] + #a end)
  equal(f(x), (x - 1) * 50 + 40)
  local z = nacre.randn(3, 7)
  equal(f(z), (z - 1) * 7 + 3)
  local g = nacre.fuse(function(a) return (a * 2 + 1):exp() end)
  local w = nacre.randn(9):requires_grad_()
  assert(g(w).requires_grad and not nacre.no_grad(g, w).requires_grad)
  assert(not g(w:detach()).requires_grad)
end

-- ---- what a function may hold

do -- operations that are no rows
  local w = nacre.randn(50, 8)
  local f = function(a)
    local h = ((a * 2 + 1):mm(w) * 0.37):tanh()
    local s = h:sort(2, true)
    local p, q = table.unpack((h + s):chunk(2, 2))
    local all = nacre.cat({p * 2 + 1, q}, 2)
    return all, all:sum(2), all[{{1, 3}}] * 2 + 1, h:to "float64" + 1,
           nil, "text", 7
  end
  local fused = nacre.fuse(f)
  for _ = 1, 2 do
    local want, got = table.pack(f(x)), table.pack(fused(x))
    is(got.n, want.n, "results")
    for i = 1, 4 do equal(got[i], want[i]) end
    is(got[5], nil) is(got[6], "text") is(got[7], 7)
  end
  local text = fused:explain(x)
  assert(not fuses or text:find "one by one: mm" and
         text:find "fused over %[40x50%]: mul", text)
end

do -- random numbers go on, and are those of the function
  local f = function(a) return a * nacre.rand(40, 50) + 1 end
  local fused = nacre.fuse(f)
  for _ = 1, 3 do
    nacre.manual_seed(5)
    local want = {f(x), f(x)}
    nacre.manual_seed(5)
    equal(fused(x), want[1])
    equal(fused(x), want[2])
  end
end

do -- results that are arguments, or one tensor twice
  local f = nacre.fuse(function(a, b) local t = a * b + 1 return a, t, t end)
  for _ = 1, 2 do
    local a, t, u = f(x, y)
    assert(rawequal(a, x) and rawequal(t, u))
  end
  local one = nacre.fuse(function(a) return a end)
  assert(rawequal(one(x), x))
end

do -- within another
  local inner = nacre.fuse(function(a) return a * 2 + 1 end)
  local outer = nacre.fuse(function(a) return inner(a):exp() end)
  equal(outer(x), (x * 2 + 1):exp())
  assert(outer:explain(x):find "mul.*add.*exp")
end

do -- without arguments: of the last call
  local f = nacre.fuse(function(a, b) return a * b + 1 end)
  assert(tostring(f:explain()) == "not called yet: explain(a, b) traces it")
  assert(tostring(nacre.kernel[[ y = a*b + 1 ]]:explain()) ==
         "not called yet: explain(a, b) traces it")
  f(x, x)
  if fuses then
    assert(tostring(f:explain()) == tostring(f:explain(x, x)))
    assert(f:explain():find "mul.*add")
  end
end

do -- values that the trace does not know
  local why = "depends on values, which nacre.fuse does not know when it " ..
              "traces the function"
  for _, f in ipairs {
    function(a) return a:sum():item() > 0 and a or -a end,
    function(a) if a[1][1] > 0 then return a end return -a end,
    function(a) return a[a:gt(0)] end} do
    local g = nacre.fuse(f)
    for _ = 1, 2 do equal(g(x), f(x)) end
    assert(not fuses or g:explain(x):find(why, 1, true), g:explain(x))
  end
  equal(x * 2, nacre.fuse(function(a) return a * 2 end)(x)) -- not left inside
  assert(not nacre.is_tensor(x:sum():item()))
end

do -- what cannot be traced runs as it is
  local f = nacre.fuse(function(a) return {a * 2 + 1} end)
  for _ = 1, 2 do equal(f(x)[1], x * 2 + 1) end
  assert(f:explain(x):find "^not fused: it returns a value that is not")
  local w = nacre.ones(9):requires_grad_()
  local wants = nacre.fuse(function(a)
    return a.requires_grad and a * 2 + 1 or a * 3 + 1
  end)
  equal(wants(w), w * 2 + 1)
  equal(wants(w:detach()), w * 3 + 1)
  local n = 0
  local g = nacre.fuse(function(a) n = n + 1 return a * n + 1 end)
  for i = 1, 3 do
    local before = n
    equal(g(x), x * n + 1)
    assert(n > before or i == 1)
  end
  assert(g:explain(x):find "it changes a value that it reads")
end

do -- a network as an upvalue: its parameters, its mode, detach
  local net = nacre.nn.Sequential(nacre.nn.Linear(50, 8), nacre.nn.GELU(),
                                  nacre.nn.Dropout(0.5))
  local w = nacre.randn(50):requires_grad_()
  local f = function(t)
    local h = net((t * w + 1):tanh())
    return (h * 2 + 1):exp() * (h * 3):detach()
  end
  local fused = nacre.fuse(f)
  local function grads(g, seed)
    nacre.manual_seed(seed)
    for _, p in ipairs(net:parameters()) do p.grad = nil end
    w.grad = nil
    local v = g(x)
    v:sum():backward()
    return {v, w.grad, net[1].weight.grad, net[1].bias.grad}
  end
  local opt = nacre.optim.SGD(net, {lr = 1e-6})
  for seed = 1, 3 do
    local want, got = grads(f, seed), grads(fused, seed)
    for i = 1, 4 do equal(got[i], want[i]) end
    opt:step()
  end
  net:eval()
  equal(fused(x), f(x))
  net:train()
  local want, got = grads(f, 9), grads(fused, 9)
  equal(got[1], want[1])
end

-- ---- in place

do
  local f = function(m, v, g, out)
    m:mul_(0.9):add_(g * 0.1)
    v:mul_(0.99):addcmul_(g, g, {value = 0.01})
    nacre.mul(m, v, {out = out})
    return m:abs() + v
  end
  local fused = nacre.fuse(f)
  local function state()
    nacre.manual_seed(8)
    return nacre.randn(40, 50), nacre.rand(40, 50), nacre.randn(40, 50),
           nacre.zeros(40, 50)
  end
  local want, got = {state()}, {state()}
  for _ = 1, 3 do
    local a, b = f(table.unpack(want)), fused(table.unpack(got))
    equal(a, b)
    for i = 1, 4 do equal(want[i], got[i]) end
  end
  assert(not fuses or
         fused:explain(table.unpack(got)):find "fused over.*addcmul")
end

do -- operands that share memory with what is written: in the order of the steps
  local f = function(a, b, c)
    local t = c * 2 + b
    a:mul_(3):add_(1)
    return t + b
  end
  for _, view in ipairs {
    function(m) return m:narrow(1, 2, 3000), m:narrow(1, 1, 3000) end,
    function(m) return m:narrow(1, 1, 3000), m:narrow(1, 2, 3000) end,
    function(m) local v = m:narrow(1, 1, 3000) return v, v end,
    function(m) local v = m:narrow(1, 1, 3000) return v, v:view(3000) end} do
    local c = nacre.randn(3000)
    local p = nacre.randn(3001)
    local q = p:clone()
    local a, b = view(p)
    local d, e = view(q)
    equal(f(a, b, c), nacre.fuse(f)(d, e, c))
    equal(p, q)
  end
  local wide = nacre.ones(1):expand(7)
  fails("share memory", nacre.fuse(function(a, b)
    return a:add_(b):mul_(2)
  end), wide, nacre.ones(7))
end

if fuses then -- results larger than the cache
  local n = 9 * 1024 * 1024 + 5
  local a = nacre.linspace(-1, 1, n)
  local f = nacre.fuse(function(t) return t * 2 + 1, t * t - 0.25 end)
  local p, q = f(a)
  equal(p, a * 2 + 1)
  equal(q, a * a - 0.25)
end

-- ---- counters, and watching

if fuses then
  local steps = {}
  local f = nacre.fuse(function(a, b) return (a * b + 1):exp() end)
  f(x, y)
  nacre._watch("steps", function(list)
    for _, s in ipairs(list) do steps[#steps + 1] = s end
  end)
  f(x, y)
  nacre._watch ""
  is(#steps, 1, "one step")
  is(steps[1].op, "fused: mul add exp (3)")
  is(steps[1].flops, 3 * 2000)
  is(steps[1].launches, 1)
  is(steps[1].bytes, 3 * 4 * 2000)
  steps = {}
  local softmax = nacre.fuse(function(t)         -- of a view
    local e = (t - t:amax(-1, true)):exp()
    return e / e:sum(-1, true)
  end)
  local view = nacre.randn(6400):view(64, 100)
  softmax(view)
  nacre._watch("steps", function(list)
    for _, s in ipairs(list) do steps[#steps + 1] = s.op end
  end)
  softmax(view)
  nacre._watch ""
  is(table.concat(steps, ";"), "fused: amax sub exp sum (5)")
  steps = {}
  nacre._watch("nan", function(_, warning) steps[1] = warning end)
  f(x, y:log())
  nacre._watch ""
  debug.sethook(function() end, "l")           -- a debugger
  equal(f(x, y), (x * y + 1):exp())
  debug.sethook()
end

do -- errors
  fails("fn must be a function, not an integer", nacre.fuse, 3)
  fails("fn must be a function, not a table", nacre.fuse,
        setmetatable({}, {__call = print}))
  fails("rounding must be one of each|end, not 'up'", nacre.fuse, print, "up")
  fails("rounding must be one of each|end, not an integer", nacre.fuse, print,
        {rounding = 1})
  local f = nacre.fuse(function(a, b) return a * 2 + b end)
  fails("ESHAPE: add: shapes do not broadcast", f, x, nacre.ones(7))
  equal(f(x, y), x * 2 + y)
  assert(not fuses or tostring(f):find(
    "^fused function: .*fuse.lua:%d+, 1 trace; the last call: " ..
    "2 operations in one pass$"), tostring(f))
  assert(tostring(nacre.fuse(print)) == "fused function: not called yet")
  local g = nacre.fuse(function(a, b) return (a + 1):floor_divide(b) * 2 end)
  local k = nacre.tensor {3, 4, 5}
  equal(g(k, k), (k + 1):floor_divide(k) * 2)
  local line = debug.getinfo(1, "l").currentline - 3
  local text = "floor_divide (line %d): integer division by zero"
  fails(fuses and text:format(line) or "integer division by zero", g, k,
        nacre.tensor {1, 0, 2})
end

do -- each allocation fails in turn, in the trace, a call and a backward
  local w = nacre.randn(50, 8)
  local function f(a, b)
    local h = ((a * b + 1):exp() * 0.37):mm(w)
    return h * 2 + 1, nacre.cat({a * 2, b}, 2)[{{1, 3}}]
  end
  local want = f(x, y)
  local failures = 0
  for n = 1, 400 do
    local fused = nacre.fuse(f)
    local p, q = x:clone():requires_grad_(), y:clone()
    nacre._fail_alloc(n, true)
    local ok, e = pcall(function()
      fused(p, q):sum():backward()
      return fused(x, y)
    end)
    nacre._fail_alloc(0)
    if ok then break end
    failures = failures + 1
    assert(e.code == "ENOMEM", tostring(e))
    equal(fused(x, y), want)
  end
  assert(failures > 20, failures .. " failures")
end

do -- in a coroutine, which stays open after an error
  local f = nacre.fuse(function(a, b) return a * 2 + b end)
  local function call(...) return f(...) end
  local co = coroutine.create(call)
  local ok, e = coroutine.resume(co, x, nacre.ones(7))
  assert(not ok and tostring(e):find "do not broadcast")
  is((x * 0):sum():item(), 0.0, "a value, after the error")
  local results = table.pack(coroutine.wrap(call)(x, y))
  equal(results[1], x * 2 + y)
  local g = nacre.fuse(function(a) coroutine.yield() return a * 2 + 1 end)
  assert(coroutine.resume(coroutine.create(function() return g(x) end)))
  is((x * 0):sum():item(), 0.0, "a value, after the yield")
  assert(co)
end

do -- 32 arguments are as many as a trace takes
  local list = {}
  for i = 1, 33 do list[i] = nacre.full({5}, i) end
  local f = nacre.fuse(function(...)
    local sum = ...
    for i = 2, select("#", ...) do sum = sum + (select(i, ...)) end
    return sum
  end)
  for n = 31, 33 do
    equal(f(table.unpack(list, 1, n)), nacre.full({5}, n * (n + 1) // 2))
  end
end

do -- programs are collected with their function
  local weak = setmetatable({}, {__mode = "v"})
  for _ = 1, 3 do
    local t = nacre.randn(10)
    weak[#weak + 1] = t
    nacre.fuse(function(a) return a * t + t end)(t)
    t = nil
  end
  collectgarbage()
  collectgarbage()
  is(next(weak), nil, "a tensor is still held")
end
print "fuse: all passed"
