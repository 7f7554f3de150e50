-- SPDX-License-Identifier: MIT
-- The gradients of a fused function have the bits of those of the function
-- itself: for every pointwise operation, followed by others at random, for
-- results that are used in several ways, with broadcast operands, with
-- create_graph.
-- Run by: nacre tests/autograd/fused_grad.lua [operation ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check, bits = O.check, O.bits
local apply = dofile(here .. "../lib/fused.lua")(O).apply

math.randomseed(11)
nacre.manual_seed(11)
local rows = {}
for _, op in ipairs(O.operations()) do
  if op.kind ~= "reduce" and op.class ~= "INTEGER" and
     op.class ~= "INT_OR_BOOL" and op.kind ~= "test" and
     op.kind ~= "compare" then
    rows[#rows + 1] = op
  end
end

local function operands(shapes, t, place)
  local x = {}
  for i, s in ipairs(shapes) do
    local n = 1
    for _, k in ipairs(s) do n = n * k end
    local list = {}
    for k = 1, n do
      list[k] = ((k * 7919 + i * 104729) % 10007) / 10007 * 1.9 - 0.9
    end
    x[i] = place(nacre.tensor(list, {dtype = t}):view(s), i)
    x[i] = x[i]:detach():requires_grad_()
  end
  return x
end

-- Gradients of the weighted sum of all results of f.
local function gradients(f, x, weigh)
  local ok, e = pcall(function()
    local y, total = table.pack(f(table.unpack(x))), nil
    for i = 1, y.n do
      local v = weigh(y[i], i):sum()
      total = total and total + v or v
    end
    if y.n == 0 or not total.requires_grad then return {} end
    return {grads = {nacre.autograd.grad({total}, x, {allow_unused = true})},
            name = tostring(y[1].grad_fn)}
  end)
  return ok, e
end

local weights = {
  {"the sum", function(y) return y end},
  {"a weighted sum", function(y, i)
    return y * nacre.linspace(-1, i, y:numel(), {dtype = y.dtype})
               :view(y:size())
  end},
}

local fused_nodes = 0
local function compare(f, what, x)
  local fused = nacre.fuse(f)
  for _, w in ipairs(weights) do
    local ok, want = gradients(f, x, w[2])
    local same, got = gradients(fused, x, w[2])
    check(ok == same, "%s, %s: %s, not %s", what, w[1], got, want)
    if ok and same and want.grads then
      if got.name:find "fused" then fused_nodes = fused_nodes + 1 end
      for i = 1, #x do
        check(bits(got.grads[i]) == bits(want.grads[i]),
              "%s, %s: gradient %d differs", what, w[1], i)
      end
    end
  end
end

local function chain(op, second)
  local f = nacre[op.name]
  return function(a, b, c)
    local x = {a, b, c}
    if op.kind == "choose" then x[1] = a:gt(0) end
    local y = f(table.unpack(x, 1, op.arity))
    local z = apply(second, y, c)
    return z * y + z, y:mul(0.37)
  end
end

local function any() return rows[math.random(#rows)] end
local function as_is(t) return t end

local function test(op)
  local even = {{300}, {300}, {300}}
  for _, t in ipairs {"float32", "float64", "float16", "bfloat16"} do
    for _ = 1, 3 do
      local second = any()
      compare(chain(op, second), ("%s %s of %s"):format(op.name, second.name,
                                                        t),
              operands(even, t, as_is))
    end
  end
  for _, s in ipairs {{{20, 15}, {15}, {20, 15}}, {{20, 15}, {20, 1}, {15}},
                      {{20, 15}, {}, {20, 15}}} do
    local second = any()
    compare(chain(op, second), op.name .. " " .. second.name .. ", broadcast",
            operands(s, "float32", as_is))
  end
  local second = any()
  compare(chain(op, second), op.name .. " " .. second.name .. ", transposed",
          operands({{20, 15}, {20, 15}, {20, 15}}, "float32",
                   function(t) return t:t() end))
  compare(chain(op, second), op.name .. " " .. second.name .. ", strided",
          operands({{20, 32}, {20, 32}, {20, 32}}, "float32",
                   function(t, i)
                     return i == 2 and t:narrow(2, 3, 17) or
                            t:narrow(2, 1, 17):contiguous()
                   end))
end

-- ---- other things

local function second_order()
  local f = function(a, b) return (a * b):sin() * a + b:exp() end
  local fused = nacre.fuse(f)
  local function twice(g)
    local x = operands({{50}, {50}}, "float64", as_is)
    local y = g(x[1], x[2])
    local d = {nacre.autograd.grad({y:sum()}, x, {create_graph = true})}
    local dd = {nacre.autograd.grad({(d[1] * d[2]):sum()}, x)}
    return bits(d[1]), bits(d[2]), bits(dd[1]), bits(dd[2])
  end
  local want, got = {twice(f)}, {twice(fused)}
  for i = 1, 4 do check(want[i] == got[i], "second order, %d differs", i) end
end

-- A tensor that is given twice, a number that changes, one gradient of two.
local function calls()
  local f = function(a, b, s) return (a * b * s):tanh() + a end
  local fused = nacre.fuse(f)
  for _, s in ipairs {0.3, 0.7} do
    local x = operands({{64}}, "float32", as_is)[1]
    local function grad(g)
      x.grad = nil
      g(x, x, s):sum():backward()
      return bits(x.grad)
    end
    check(grad(f) == grad(fused), "an operand that is given twice")
    local y = operands({{64}}, "float32", as_is)[1]:detach()
    local function one(g)
      x.grad = nil
      local z = g(x, y, s)
      check(z.requires_grad, "the result wants a gradient")
      z:sum():backward()
      return bits(x.grad)
    end
    check(one(f) == one(fused), "one gradient of two")
  end
  local x = operands({{64}}, "float32", as_is)[1]
  check(not nacre.no_grad(fused, x, x, 0.3).requires_grad, "no_grad")
  -- what was saved is changed
  local y = fused(x, x * 2, 0.3)
  nacre.no_grad(function() x:add_(1) end)
  local ok, e = pcall(function() y:sum():backward() end)
  check(not ok and tostring(e):find "changed", "a saved operand: %s", e)
  -- a broadcast operand that is used several times: each use is summed alone
  local function row(g)
    nacre.manual_seed(1)
    local a, b = nacre.randn(4000, 15), nacre.randn(15):requires_grad_()
    g(a, b):sum():backward()
    return bits(b.grad)
  end
  f = function(a, b) return (a * b + b) * b end
  check(row(f) == row(nacre.fuse(f)), "a row that is used three times")
  -- a view of one element with more dimensions than the part
  local function one_element(h)
    local c, d = table.unpack(operands({{1}, {300}}, "float32", as_is))
    local p, q = h(c, d)
    local total = p * p + q
    total:sum():backward()
    return bits(c.grad) .. bits(d.grad)
  end
  f = function(c, d)
    local w = c:unsqueeze(-1) * (d * 2)
    return w + 1, w * 3
  end
  check(one_element(f) == one_element(nacre.fuse(f)), "a view of one element")
  -- in place on what wants a gradient
  local g = function(a) local t = a * 2 t:mul_(a) return t:exp() end
  local a = operands({{64}}, "float32", as_is)
  compare(g, "in place", a)
end

-- A value whose gradient from a later part comes before those of its own part.
local function two_parts()
  compare(function(x)
    local y = x + 0.5
    return y / (y * y):sum(-1, true)
  end, "used in two parts", operands({{20, 13}}, "float64", as_is))
end

-- A line with a nan has gradients that are nan.
local function nan_in_a_line()
  local x = nacre.randn(10, 64)
  x[2][3] = 0 / 0
  for _, extreme in ipairs {"amax", "amin"} do
    compare(function(t) return (t * 2)[extreme](t * 2, -1, true) end,
            extreme .. " of nan", {x:clone():requires_grad_()})
  end
end

local chosen = {}
for _, name in ipairs(arg) do chosen[name] = true end
for _, op in ipairs(rows) do
  if #arg == 0 or chosen[op.name] then test(op) end
end
second_order()
calls()
two_parts()
nan_in_a_line()
check(fused_nodes > 500 or #arg > 0, "only %d nodes were fused", fused_nodes)
print(fused_nodes .. " fused nodes")
O.done("fused_grad")
