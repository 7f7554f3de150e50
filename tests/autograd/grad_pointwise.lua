-- SPDX-License-Identifier: MIT
-- Gradients of every operation of core/ops.def: the compiled kernel of its text
-- is compared with differences and with the text evaluated word by word, in
-- every float dtype, for every way to broadcast and with numbers for operands;
-- so are second derivatives. A new operation needs no line here.
-- Run by: nacre tests/autograd/grad_pointwise.lua [operation ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check
local grad = nacre.autograd

-- Where an operation is defined and has no kinks; of all operands, or of each.
local inside = {0.2, 0.85}
local domain = {acosh = {1.2, 2.5}, remainder = {{3.2, 3.4}, {0.9, 1}},
  fmod = {{3.2, 3.4}, {0.9, 1}}, floor_divide = {{3.2, 3.4}, {0.9, 1}},
  trunc_divide = {{3.2, 3.4}, {0.9, 1}},
  lerp = {inside, inside, {0.1, 0.4}},
  _clamp = {{0.2, 0.9}, {0.35, 0.4}, {0.6, 0.65}},
  round = {0.6, 0.9}, zeta = {{2.2, 3}, {0.5, 1.5}}}

nacre.manual_seed(20)

local function sample(op, i, shape, dtype)
  local d = domain[op.name] or inside
  if type(d[1]) == "table" then d = d[i] end
  local t = nacre.rand(shape, {dtype = "float64"}) * (d[2] - d[1]) + d[1]
  if op.kind == "choose" and i == 1 then return t:gt(0.5) end
  return t:to(dtype):requires_grad_(op.kind == "reduce" or op.grad[i] ~= nil)
end

local function differentiable(op)
  if op.kind == "test" or op.kind == "compare" then return false end
  if op.class:find("^IN") or op.class == "TO_BOOL" or op.class == "COUNT" then
    return false
  end
  return true
end

-- Shapes of operands that broadcast to each other.
local forms = {
  {{{2, 3}}, {{}}, {{0, 2}}},
  {{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3}, {2, 3}},
   {{2, 1}, {1, 3}}, {{}, {3}}, {{2, 2}, {}}, {{}, {}}},
  {{{2, 3}, {2, 3}, {2, 3}}, {{3}, {2, 1}, {1, 3}},
   {{2, 3}, {}, {3}}, {{}, {}, {2}}},
}

local function parameters(op)
  local sets = {{}}
  for _, p in ipairs(O.parameters(op)) do
    if p.words then
      for _, w in ipairs(p.words) do sets[#sets + 1] = {[p.name] = w} end
    else
      sets[#sets + 1] = {[p.name] = p.default == 1 and 2 or p.default * 1.5}
    end
  end
  return sets
end

local function operands(op, shapes, dtype)
  local list = {}
  for i = 1, op.arity do list[i] = sample(op, i, shapes[i], dtype) end
  return list
end

local function wanted(list)
  local of = {}
  for _, t in ipairs(list) do
    if nacre.is_tensor(t) and t.requires_grad then of[#of + 1] = t end
  end
  return of
end

local tolerance = {float64 = 1e-12, float32 = 2e-5, float16 = 4e-3,
                   bfloat16 = 3e-2}

local function close(a, b, dtype)
  if a.dtype ~= b.dtype then return false end
  a, b = a:detach():to("float64"), b:detach():to("float64")
  return nacre.allclose(a, b, tolerance[dtype], tolerance[dtype], true)
end

-- The kernel against the text.
local function fusedtext(op, what, f, list, dtype)
  local of = wanted(list)
  local y = f(table.unpack(list))
  if not y.requires_grad then return end
  local g = nacre.linspace(0.5, 1.5, y:numel(), {dtype = "float64"})
              :reshape(y:size()):to(y.dtype)
  local kernel = table.pack(grad.grad(y, of, {grad_outputs = g,
    retain_graph = true, allow_unused = true}))
  local text = table.pack(grad.grad(y, of, {grad_outputs = g,
    create_graph = true, allow_unused = true}))
  for i = 1, #of do
    if not kernel[i] then goto continue end     -- it has none: NONE
    check(close(kernel[i], text[i], dtype),
          "%s %s: operand %d: kernel %s, text %s", what, dtype, i,
          tostring(kernel[i]), tostring(text[i]))
    check(kernel[i].dtype == of[i].dtype, "%s: a gradient of another dtype",
          what)
    ::continue::
  end
end

local function verify(what, ok, e)
  check(ok, "%s: %s", what, tostring(e))
end

local function one(op, what, f, shapes)
  local list = operands(op, shapes, "float64")
  verify(what, pcall(grad.gradcheck, f, list))
  verify(what .. ", second order", pcall(grad.gradgradcheck, f, list))
  for _, dtype in ipairs(O.floats) do
    fusedtext(op, what, f, operands(op, shapes, dtype), dtype)
  end
end

local function elementwise(op)
  local f = nacre[op.name]
  for _, shapes in ipairs(forms[op.arity]) do
    local text = {}
    for i, s in ipairs(shapes) do text[i] = table.concat(s, "x") end
    local what = op.name .. "[" .. table.concat(text, "],[") .. "]"
    one(op, what, f, shapes)
  end
  local same = {}
  for i = 1, op.arity do same[i] = {2, 2} end
  for _, set in ipairs(parameters(op)) do
    if next(set) then
      local k, v = next(set)
      one(op, ("%s{%s=%s}"):format(op.name, k, v), function(...)
        local args = {...}
        args[#args + 1] = set
        return f(table.unpack(args))
      end, same)
    end
  end
  -- numbers for all operands but one; transposes; mixed types
  for i = 1, op.arity do
    if op.arity > 1 and op.grad[i] then
      local list = operands(op, same, "float64")
      local function f1(x)
        local args = {}
        for k = 1, op.arity do
          args[k] = k == i and x or list[k].dtype == "bool" and list[k]
                    or list[k][{1, 1}]
        end
        return f(table.unpack(args))
      end
      verify(op.name .. " with numbers", pcall(grad.gradcheck, f1, {list[i]}))
      verify(op.name .. " with numbers, second order",
             pcall(grad.gradgradcheck, f1, {list[i]}))
    end
  end
  local list = operands(op, same, "float64")
  local function ft(...)
    local args = {...}
    for i, t in ipairs(args) do args[i] = t:t() end
    return f(table.unpack(args))
  end
  verify(op.name .. " of transposes", pcall(grad.gradcheck, ft, list))
end

local function reduction(op)
  local f = nacre[op.name]
  for _, shape in ipairs {{2, 3, 2}, {4}, {}} do
    for _, o in ipairs {{}, {dim = 1}, {dim = -1, keepdim = true},
                        {dim = {1, -1}}, {keepdim = true}} do
      local dims = type(o.dim) == "table" and 2 or o.dim and 1 or 0
      if #shape >= dims then
        local what = ("%s[%s] dim %s"):format(op.name, table.concat(shape, "x"),
                                              tostring(o.dim))
        one(op, what, function(x)
          return f(x, {dim = o.dim, keepdim = o.keepdim})
        end, {shape})
      end
    end
  end
  for _, set in ipairs(parameters(op)) do
    if next(set) then
      one(op, op.name .. " with a parameter", function(x) return f(x, set) end,
          {{2, 3}})
    end
  end
  local x = sample(op, 1, {0, 3}, "float64")
  if pcall(f, x) then
    f(x):sum():backward()
    check(x.grad:numel() == 0, "%s of nothing", op.name)
  end
end

local chosen = {}
for _, name in ipairs(arg or {}) do chosen[name] = true end
for _, op in ipairs(O.operations()) do
  if differentiable(op) and (next(chosen) == nil or chosen[op.name]) then
    if op.kind == "reduce" then reduction(op)
    elseif next(op.grad) then elementwise(op) end
  elseif next(chosen) == nil then
    local list = {}
    for i = 1, op.arity do
      list[i] = op.class:find("^IN") and nacre.ones(2, {dtype = "int32"})
                or nacre.ones(2, {requires_grad = true})
    end
    check(not nacre[op.name](table.unpack(list)).requires_grad,
          "%s requires a gradient", op.name)
  end
end

-- ---- at the kinks, as PyTorch has it

local function at(f, values, want)
  local x = nacre.tensor(values, {dtype = "float64", requires_grad = true})
  f(x):sum():backward()
  local got = x.grad:totable()
  for i, v in ipairs(want) do
    check(got[i] == v or v ~= v and got[i] ~= got[i],
          "element %d: %s, not %s", i, got[i], v)
  end
end

if next(chosen) == nil then
  local inf = math.huge
  if nacre.zeta then                   -- NONE is an error, not a zero
    local s = nacre.ones(1, {requires_grad = true}) + 1
    fails("EVALUE: no gradient with respect to operand 1",
          function() nacre.zeta(s, 1):sum():backward() end)
  end
  at(nacre.abs, {-1, 0, 2}, {-1, 0, 1})
  at(nacre.relu, {-1, 0, 2}, {0, 0, 1})
  at(nacre.sign, {-1, 0, 2}, {0, 0, 0})
  at(nacre.sqrt, {0, 4}, {inf, 0.25})
  at(function(x) return x:norm() end, {0, 0}, {0, 0})
  at(function(x) return x:norm(1) end, {0, -2}, {0, -1})
  at(function(x) return x:norm(3) end, {0, 0}, {0, 0})
  at(function(x) return x:clamp(0, 1) end, {-1, 0, 0.5, 1, 2}, {0, 0, 1, 0, 0})
  at(function(x) return nacre.maximum(x, nacre.ones(3)) end, {0, 1, 2},
     {0, 0.5, 1})
  at(function(x) return nacre.minimum(x, nacre.ones(3)) end, {0, 1, 2},
     {1, 0.5, 0})
  at(function(x) return x:amax() end, {3, 1, 3}, {0.5, 0, 0.5})
  at(function(x) return x:max() end, {3, 1, 3}, {0.5, 0, 0.5})
  at(function(x) return x:amin() end, {1, 1, 3}, {0.5, 0.5, 0})
  at(function(x) return x:max(1) end, {3, 1, 3}, {1, 0, 0})
  at(function(x) return x:min(1) end, {3, 1, 1}, {0, 1, 0})
  at(function(x) return x:prod() end, {2, 3, 4}, {12, 8, 6})
  at(function(x) return x:prod() end, {2, 0, 4}, {0, 8, 0})
  at(function(x) return x:prod() end, {0, 3, 0}, {0, 0, 0})
  at(function(x) return x ^ 2 end, {0, 3}, {0, 6})
  at(function(x) return x ^ 0 end, {0, 3}, {0, 0})
  at(function(x) return x:std(1) end, {2, 2}, {0, 0})
  at(function(x) return x:round() + x:floor() + x:ceil() + x:trunc() end,
     {0.3, 2}, {0, 0})
end

O.done "grad_pointwise"
