-- SPDX-License-Identifier: MIT
-- Gradients of every row of core/ops.def: the compiled kernel of its text
-- against differences and against the text word by word, in every float type,
-- for every way to broadcast, with numbers for operands, and once more for
-- second derivatives. A new row needs no line here.
-- Run by: nacre tests/autograd/grad_pointwise.lua [row ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check
local grad = nacre.autograd

-- Where a row is defined and has no kinks; of all operands, or of each.
local inside = {0.2, 0.85}
local domain = {acosh = {1.2, 2.5}, remainder = {{3.2, 3.4}, {0.9, 1}},
  fmod = {{3.2, 3.4}, {0.9, 1}}, floor_divide = {{3.2, 3.4}, {0.9, 1}},
  trunc_divide = {{3.2, 3.4}, {0.9, 1}},
  lerp = {inside, inside, {0.1, 0.4}},
  _clamp = {{0.2, 0.9}, {0.35, 0.4}, {0.6, 0.65}},
  round = {0.6, 0.9}, zeta = {{2.2, 3}, {0.5, 1.5}}}

nacre.manual_seed(20)

local function sample(row, i, shape, dtype)
  local d = domain[row.name] or inside
  if type(d[1]) == "table" then d = d[i] end
  local t = nacre.rand(shape, {dtype = "float64"}) * (d[2] - d[1]) + d[1]
  if row.kind == "choose" and i == 1 then return t:gt(0.5) end
  return t:to(dtype):requires_grad_(row.kind == "reduce" or row.grad[i] ~= nil)
end

local function differentiable(row)
  if row.kind == "test" or row.kind == "compare" then return false end
  if row.class:find("^IN") or row.class == "TO_BOOL" or row.class == "COUNT" then
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

local function parameters(row)
  local sets = {{}}
  for _, p in ipairs(O.parameters(row)) do
    if p.words then
      for _, w in ipairs(p.words) do sets[#sets + 1] = {[p.name] = w} end
    else
      sets[#sets + 1] = {[p.name] = p.default == 1 and 2 or p.default * 1.5}
    end
  end
  return sets
end

local function operands(row, shapes, dtype)
  local list = {}
  for i = 1, row.arity do list[i] = sample(row, i, shapes[i], dtype) end
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
local function fusedtext(row, what, f, list, dtype)
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
    check(close(kernel[i], text[i], dtype), "%s %s: operand %d: kernel %s, text %s",
          what, dtype, i, tostring(kernel[i]), tostring(text[i]))
    check(kernel[i].dtype == of[i].dtype, "%s: a gradient of another type", what)
    ::continue::
  end
end

local function verify(what, ok, e)
  check(ok, "%s: %s", what, tostring(e))
end

local function one(row, what, f, shapes)
  local list = operands(row, shapes, "float64")
  verify(what, pcall(grad.gradcheck, f, list))
  verify(what .. ", second order", pcall(grad.gradgradcheck, f, list))
  for _, dtype in ipairs(O.floats) do
    fusedtext(row, what, f, operands(row, shapes, dtype), dtype)
  end
end

local function elementwise(row)
  local f = nacre[row.name]
  for _, shapes in ipairs(forms[row.arity]) do
    local text = {}
    for i, s in ipairs(shapes) do text[i] = table.concat(s, "x") end
    local what = row.name .. "[" .. table.concat(text, "],[") .. "]"
    one(row, what, f, shapes)
  end
  local same = {}
  for i = 1, row.arity do same[i] = {2, 2} end
  for _, set in ipairs(parameters(row)) do
    if next(set) then
      local k, v = next(set)
      one(row, ("%s{%s=%s}"):format(row.name, k, v), function(...)
        local args = {...}
        args[#args + 1] = set
        return f(table.unpack(args))
      end, same)
    end
  end
  -- numbers for all operands but one; transposes; mixed types
  for i = 1, row.arity do
    if row.arity > 1 and row.grad[i] then
      local list = operands(row, same, "float64")
      local function f1(x)
        local args = {}
        for k = 1, row.arity do
          args[k] = k == i and x or list[k].dtype == "bool" and list[k]
                    or list[k][{1, 1}]
        end
        return f(table.unpack(args))
      end
      verify(row.name .. " with numbers", pcall(grad.gradcheck, f1, {list[i]}))
      verify(row.name .. " with numbers, second order",
             pcall(grad.gradgradcheck, f1, {list[i]}))
    end
  end
  local list = operands(row, same, "float64")
  local function ft(...)
    local args = {...}
    for i, t in ipairs(args) do args[i] = t:t() end
    return f(table.unpack(args))
  end
  verify(row.name .. " of transposes", pcall(grad.gradcheck, ft, list))
end

local function reduction(row)
  local f = nacre[row.name]
  for _, shape in ipairs {{2, 3, 2}, {4}, {}} do
    for _, o in ipairs {{}, {dim = 1}, {dim = -1, keepdim = true}, {dim = {1, -1}},
                        {keepdim = true}} do
      local dims = type(o.dim) == "table" and 2 or o.dim and 1 or 0
      if #shape >= dims then
        local what = ("%s[%s] dim %s"):format(row.name, table.concat(shape, "x"),
                                              tostring(o.dim))
        one(row, what, function(x) return f(x, {dim = o.dim, keepdim = o.keepdim}) end,
            {shape})
      end
    end
  end
  for _, set in ipairs(parameters(row)) do
    if next(set) then
      one(row, row.name .. " with a parameter", function(x) return f(x, set) end,
          {{2, 3}})
    end
  end
  local x = sample(row, 1, {0, 3}, "float64")
  if pcall(f, x) then
    f(x):sum():backward()
    check(x.grad:numel() == 0, "%s of nothing", row.name)
  end
end

local chosen = {}
for _, name in ipairs(arg or {}) do chosen[name] = true end
for _, row in ipairs(O.rows()) do
  if differentiable(row) and (next(chosen) == nil or chosen[row.name]) then
    if row.kind == "reduce" then reduction(row)
    elseif next(row.grad) then elementwise(row) end
  elseif next(chosen) == nil then
    local list = {}
    for i = 1, row.arity do
      list[i] = row.class:find("^IN") and nacre.ones(2, {dtype = "int32"})
                or nacre.ones(2, {requires_grad = true})
    end
    check(not nacre[row.name](table.unpack(list)).requires_grad,
          "%s requires a gradient", row.name)
  end
end

-- ---- at the kinks, as PyTorch has it

local function at(f, values, want)
  local x = nacre.tensor(values, {dtype = "float64", requires_grad = true})
  f(x):sum():backward()
  local got = x.grad:totable()
  for i, v in ipairs(want) do
    check(got[i] == v or v ~= v and got[i] ~= got[i], "element %d: %s, not %s", i,
          got[i], v)
  end
end

if next(chosen) == nil then
  local inf = math.huge
  if nacre.zeta then                   -- NONE is an error, not a zero
    local s = nacre.ones(1, {requires_grad = true}) + 1
    O.raises("NONE", "EVALUE", "no gradient with respect to operand 1",
             function() nacre.zeta(s, 1):sum():backward() end)
  end
  at(nacre.abs, {-1, 0, 2}, {-1, 0, 1})
  at(nacre.relu, {-1, 0, 2}, {0, 0, 1})
  at(nacre.sign, {-1, 0, 2}, {0, 0, 0})
  at(nacre.sqrt, {0, 4}, {inf, 0.25})
  at(function(x) return x:norm() end, {0, 0}, {0, 0})
  at(function(x) return x:norm(1) end, {0, -2}, {0, -1})
  at(function(x) return x:norm(3) end, {0, 0}, {0, 0})
  at(function(x) return x:clamp(0, 1) end, {-1, 0, 0.5, 1, 2}, {0, 1, 1, 1, 0})
  at(function(x) return nacre.maximum(x, nacre.ones(3)) end, {0, 1, 2}, {0, 0.5, 1})
  at(function(x) return nacre.minimum(x, nacre.ones(3)) end, {0, 1, 2}, {1, 0.5, 0})
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
  at(function(x) return x:round() + x:floor() + x:ceil() + x:trunc() end, {0.3, 2},
     {0, 0})
end

O.done("grad_rows")
