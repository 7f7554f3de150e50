-- SPDX-License-Identifier: MIT
-- A fused function does what the function does where a trace could be taken for
-- something that it is not: numbers that compare equal, numbers that the
-- function looks at, functions that cannot be traced, results without a
-- gradient.

nacre.manual_seed(3)
local fuses = nacre.get_default_device() == "cpu" and  -- other devices do not
              os.getenv "NACRE_FUSE" ~= "0"
local x = nacre.tensor {1.0, -2.0, 3.0}

local function same(a, b, what)
  if nacre.is_tensor(a) then
    assert(a.dtype == b.dtype, what)
    assert(a.requires_grad == b.requires_grad, what)
    assert(nacre.equal(a, b), what)
    return
  end
  assert(rawequal(a, b) and math.type(a) == math.type(b), what)
end

-- Both give the same for each list of arguments, in this order.
local function agree(what, f, ...)
  local fused = nacre.fuse(f)
  for _, args in ipairs {...} do
    local want = table.pack(f(table.unpack(args)))
    local got = table.pack(fused(table.unpack(args)))
    assert(want.n == got.n, what)
    for i = 1, want.n do same(got[i], want[i], what) end
  end
  return fused
end

do -- numbers that compare equal are not the same
  local i = nacre.tensor {1, 2, 3}
  agree("1 and 1.0", function(a, k) return a * k + a end, {i, 1}, {i, 1.0})
  local inverse = function(a, k) return 1 / (a * 0 + k) end
  agree("signs of zero", inverse, {i, 0.0}, {i, -0.0}, {i, 0.0})
  local k, t = 1, {k = 1}
  local fused = nacre.fuse(function(a) return a * k + a end)
  local field = nacre.fuse(function(a) return a * t.k + a end)
  assert(fused(i).dtype == "int64" and field(i).dtype == "int64")
  k, t.k = 1.0, 1.0
  assert(fused(i).dtype == "float32" and field(i).dtype == "float32")
  agree("nan", function(a, v) return a + v, v ~= v end, {x, 0.3})
  local nan = nacre.fuse(function(a, v) return a * v + 1 end)
  for _ = 1, 3 do nan(x, 0 / 0) end
  assert(not fuses or tostring(nan):find " 1 trace;")
end

do -- a function that looks at a number
  local limit, names, kind = 0.7, {[0.3] = "yes"}, type
  agree("==", function(a, v)
    if v == 0.3 then return a * 2 + 1 end
    return a * 3 + 1
  end, {x, 0.7}, {x, 0.3}, {x, 0.4})
  agree("upvalue", function(a, v)
    if limit == v then return a * 2 + 1 end
    return a * 3 + 1
  end, {x, 0.3}, {x, 0.7})
  agree("key", function(a, v) return a * 2 + 1, names[v] end,
        {x, 0.7}, {x, 0.3})
  agree("type", function(a, v)
    return type(v) == "number" and a + v * 2 or a,
           math.type(v), kind(v), tonumber(v)
  end, {x, 0.3}, {x, 0.7})
  agree("text", function(a, v) return a * 2 + 1, tostring(v), v .. "" end,
        {x, 0.3}, {x, 0.7})
  bound = 0.3
  agree("global", function(a, v) return v == bound and a * 2 or a * 3 end,
        {x, 0.3}, {x, 0.7})
  bound = nil
end

do -- functions that change what they read, or what others see
  local n, list = 0, {}
  local f = nacre.fuse(function(a)
    n = n + 1
    list[#list + 1] = n
    return a * n + 1
  end)
  for i = 1, 3 do same(f(x), x * i + 1, "a counter") end
  assert(n == 3 and #list == 3)
  local y = x:clone()
  local fails = nacre.fuse(function(a) a:add_(1) error("bad", 0) end)
  local ok, e = pcall(fails, y)
  assert(not ok and e == "bad")
  same(y, x + 1, "an error after an operation in place")
  math.randomseed(4)
  local want = {math.random(), math.random()}
  math.randomseed(4)
  local g = nacre.fuse(function(a) return a * 1 + math.random() end)
  math.randomseed(4)
  for i = 1, 2 do
    if i == 1 then g(x) math.randomseed(4) end
    same(g(x), x + want[i], "math.random")
    if i == 1 then same(g(x), x + want[2], "math.random") break end
  end
  assert(not fuses or g:explain(x):find "math.random")
end

do -- what a trace cannot hold
  local function make(name)
    return function(a)
      local b = a * 2 + 1
      if name == "hook" then b:register_hook(function(d) return d * 3 end)
      else b:sum():backward() end
      return b
    end
  end
  for _, name in ipairs {"hook", "backward"} do
    local grads = {}
    for i, f in ipairs {make(name), nacre.fuse(make(name))} do
      local w = nacre.ones(3):requires_grad_()
      local v = f(w)
      if name == "hook" then v:sum():backward() end
      grads[i] = w.grad
      assert(i == 1 or not fuses or f:explain(w):find "^not fused: .*ward" or
             f:explain(w):find "^not fused: .*hook")
    end
    same(grads[1], grads[2], name)
  end
  local yields = nacre.fuse(function(a) return coroutine.yield(a * 2 + 1) end)
  local co = coroutine.wrap(function() return yields(x) end)
  same(co(), x * 2 + 1, "yield")
  assert(co(7) == 7)
end

do -- one tensor twice, a tensor of outside, defaults in a metatable
  local w, defaults = nacre.randn(3), {k = 2}
  local object = setmetatable({}, {__index = defaults})
  agree("twice", function(a, b)
    a = a + 0
    return rawequal(a, b) and a * 2 or a * 3
  end, {x, w}, {x, x})
  agree("equal", function(a, b) return rawequal(a, b) and -a * 2 or a * 3 end,
        {x, w}, {x, x}, {w, x})
  assert(rawequal(nacre.fuse(function() return w end)(x), w))
  local f = nacre.fuse(function(a) return a * object.k + 1 end)
  same(f(x), x * 2 + 1)
  defaults.k = 5
  same(f(x), x * 5 + 1, "a metatable")
end

do -- what is printed; a library of the user
  local texts = {}
  local f = nacre.fuse(function(a)
    texts[1] = tostring(a)
    return a * 2 + 1
  end)
  same(f(x), x * 2 + 1)
  assert(texts[1] == tostring(x))
  local settings = {scale = 2}
  package.loaded.fuse_settings = settings
  local g = nacre.fuse(function(a)
    return a * require "fuse_settings".scale + settings.scale
  end)
  same(g(x), x * 2 + 2)
  settings.scale = 3
  same(g(x), x * 3 + 3, "a library")
  package.loaded.fuse_settings = nil
end

do -- a library of nacre in a variable is not watched
  local F = nacre.nn.functional
  local f = agree("a library", function(a)
    return F.relu(a) * 2 + nacre.linalg.vector_norm(a)
  end, {x})
  assert(not fuses or tostring(f):find "2 operations in one pass")
end

do -- more views than a part shows; one of each side of a chain
  local f = agree("views", function(a)
    local y = a * 2
    for i = 1, 200 do y = y + a:unsqueeze(1):squeeze(1) end
    return y, a:view(-1, 1)
  end, {x})
  assert(not fuses or f:explain(x):find "views: unsqueeze")
end

do -- operators keep the defaults of arguments that are left out
  agree("norm", function(a) return a:norm() end, {x})
  agree("quantiles", function(a)
    return a:topk(2), a:sort(), a:var(), a:softmax(1):std()
  end, {x})
end

do -- operands whose elements do not lie side by side, in several blocks
  for _, n in ipairs {1000, 1025, 5000} do
    local wide = nacre.randn(2 * n)
    local a = wide[{{1, 2 * n, 2}}]
    agree("steps", function(t) return t:abs() * 2, t + 1 end, {a})
    local b = nacre.arange(3 * n):view(n, 3):t()[2]
    agree("steps", function(t, s) return t * 2 + s end, {a, b})
  end
end

do -- only results that depend on an operand with a gradient have one
  local w = nacre.randn(3):requires_grad_()
  agree("no gradient", function(a, b)
    local c = a * 2 + 1
    return c, b * 3 + 1, a:gt(0) * 2.5, c * b
  end, {w, x}, {x, w}, {x, x})
end

do -- operations in place, with gradients
  local function grads(f)
    nacre.manual_seed(5)
    local a, b = nacre.rand(5):requires_grad_(), nacre.rand(5):requires_grad_()
    f(a, b):sum():backward()
    return a.grad, b.grad
  end
  for _, f in ipairs {
    function(a, b) local t = a * b t:clamp_(0.2, 0.4) return t * t end,
    function(a, b) local t = a * b t:clamp_(b, 0.1) return t * t end,
    function(a, b) local t = a * 1 t:div_(b):mul_(a) return t * 2 + 1 end,
    function(a, b)
      local t = a * b
      local kept = t:gt(0.2)
      t:add_(b)
      return t * kept + 1
    end} do
    local p, q = grads(f)
    local r, s = grads(nacre.fuse(f))
    same(p, r, "in place")
    same(q, s, "in place")
  end
end

do -- what is shown
  local f = nacre.fuse(function(a) return a * 2 + 1 end)
  assert(tostring(f):find ", not called yet$")
  local report = f:explain(x)
  if fuses then
    assert(tostring(report):find "^part 1, fused over %[3%]: mul")
    assert(report[1].fused and #report[1].steps == 2)
  end
end

print "fuse_same: all passed"
