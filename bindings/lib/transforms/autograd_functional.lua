-- SPDX-License-Identifier: MIT
-- autograd_functional.lua - nacre.autograd.functional: products with Jacobians
-- and Hessians at given inputs; and nacre.autograd.forward_ad, duals.
local all = ...
all.require("nacre.levels", "nacre.gradients", "nacre.jacobians")
local fail, A, T = all.fail, nacre.autograd, all.transforms
local func = all.space "func"

local function as_list(op, v, what)
  if nacre.is_tensor(v) then return {v}, true end
  if type(v) ~= "table" or #v == 0 then
    fail(op, ("%s is a tensor or a list of tensors, not a %s")
             :format(what, type(v)))
  end
  for i, t in ipairs(v) do
    if not nacre.is_tensor(t) then
      fail(op, ("entry %d of %s is a %s, not a tensor")
               :format(i, what, type(t)))
    end
  end
  return v, false
end

-- Results without a history, unless create_graph asks for one.
local function finish(tree, create)
  if create then return tree end
  return T.map(tree, function(t) return t:detach() end)
end

-- With create_graph what is computed can be differentiated by the inputs.
local function prepare(list, create)
  local out = {}
  for i, x in ipairs(list) do
    out[i] = x
    if create and not x.requires_grad then
      out[i] = x:detach():requires_grad_()
    end
  end
  return out
end

-- The one vector v for n outputs or inputs; ones if it may be left out.
local function vectors(op, v, list, optional)
  if v == nil then
    if not optional or #list ~= 1 or list[1]:numel() ~= 1 then
      fail(op, "v is missing: a vector in the shape of each "
               .. (optional and "output" or "input"))
    end
    return {nacre.ones_like(list[1]:detach())}
  end
  return T.check_like(op, v, list, "vector")
end

local function check_strict(op, strict, c)
  if not strict then return end
  for i, y in ipairs(c.wide) do
    if not y.requires_grad then
      fail(op, ("output %d does not depend on the inputs"):format(i),
           "strict = false gives zeros")
    end
    local zeros = nacre.zeros_like(y:detach())
    local _, unused = T.gradients({y}, {zeros}, c.leaves, true, false)
    if unused then
      fail(op, ("output %d does not depend on input %d"):format(i, unused),
           "strict = false gives zeros")
    end
  end
end

local function run(op, f, inputs, create, strict)
  local list, single = as_list(op, inputs, "inputs")
  list = prepare(list, create)
  local c = T.run(op, f, false, table.pack(table.unpack(list)))
  check_strict(op, strict, c)
  c.inputs, c.single = list, single
  return c
end

local function unpacked(list, single) return single and list[1] or list end

local plain = "create_graph:bool=false, strict:bool=false"

T.define("autograd.functional.vjp", "func:fn, inputs:any, v:any=nil, " .. plain
         .. " -> outputs, vjp",
         "the value of func, and the product of v and its Jacobian",
function(f, inputs, v, create, strict)
  local c = run("vjp", f, inputs, create, strict)
  local given = vectors("vjp", v, c.list, true)
  return finish(c.result, create),
         finish(unpacked(T.pull_back(c, given), c.single), create)
end)

T.define("autograd.functional.jvp", "func:fn, inputs:any, v:any=nil, " .. plain
         .. " -> outputs, jvp",
         "the value of func, and the product of its Jacobian and v",
function(f, inputs, v, create, strict)
  local c = run("jvp", f, inputs, create, strict)
  local given = vectors("jvp", v, c.inputs,
                        #c.inputs == 1 and c.inputs[1]:numel() == 1)
  local list = T.push_forward(c)(given)
  return finish(c.result, create),
         finish(T.unflatten(c.result, list), create)
end)

-- The gradients of f, one number, as a function of all inputs.
local function gradients_of(op, f, n)
  local at = {}
  for i = 1, n do at[i] = i end
  local g = func.grad(function(...)
    local y = f(...)
    if not nacre.is_tensor(y) or y:numel() ~= 1 then
      fail(op, "the function must return a tensor of one element")
    end
    return y:reshape {}
  end, at)
  return function(...) return table.unpack(g(...)) end
end

local function hessian_product(op, push)
  return function(f, inputs, v, create, strict)
    local list = as_list(op, inputs, "inputs")
    local value = f(table.unpack(list))
    local c = run(op, gradients_of(op, f, #list), inputs, create, strict)
    local given = vectors(op, v, c.inputs, false)
    local out = push and T.push_forward(c)(given) or T.pull_back(c, given)
    return finish(value, create), finish(unpacked(out, c.single), create)
  end
end

local vector = "func:fn, inputs:any, v:any=nil, " .. plain
T.define("autograd.functional.vhp", vector .. " -> output, vhp",
         "the value of func, one number, and the product of v and its Hessian",
         hessian_product("vhp", false))
T.define("autograd.functional.hvp", vector .. " -> output, hvp",
         "the value of func, one number, and the product of its Hessian and v",
         hessian_product("hvp", true))

-- Jacobians of all outputs for all inputs: a tensor, a list, a list of lists.
local function jacobian(op, f, inputs, create, strict, strategy)
  local list, single = as_list(op, inputs, "inputs")
  list = prepare(list, create)
  if strict then run(op, f, inputs, create, true) end
  local at = {}
  for i = 1, #list do at[i] = i end
  local by = strategy == "forward-mode" and func.jacfwd or func.jacrev
  return finish(by(f, single and 1 or at)(table.unpack(list)), create)
end

T.define("autograd.functional.jacobian", "func:fn, inputs:any, " .. plain
         .. ", vectorize:bool=false, strategy:any=reverse-mode -> jacobians",
         "the Jacobian of func at inputs; strategy \"forward-mode\" computes "
         .. "it by columns",
function(f, inputs, create, strict, _, strategy)
  if strategy ~= "reverse-mode" and strategy ~= "forward-mode" then
    fail("jacobian", 'strategy is "reverse-mode" or "forward-mode"')
  end
  return jacobian("jacobian", f, inputs, create, strict, strategy)
end)

T.define("autograd.functional.hessian", "func:fn, inputs:any, " .. plain
         .. ", vectorize:bool=false, "
         .. "outer_jacobian_strategy:any=reverse-mode -> hessians",
         "the Hessian of func, one number, at inputs",
function(f, inputs, create, strict, _, strategy)
  local list, single = as_list("hessian", inputs, "inputs")
  local g = gradients_of("hessian", f, #list)
  if single then
    return jacobian("hessian", g, inputs, create, strict, strategy)
  end
  return jacobian("hessian", function(...) return {g(...)} end, inputs, create,
                  strict, strategy)
end)

-- ---- duals

local level -- the open one: {leaves, tangents}

local function check_level(op)
  if not level then
    fail(op, "no dual level is open", "nacre.autograd.forward_ad.dual_level(f)")
  end
  if A._levels()[1] then
    fail(op, "duals do not work inside of vmap", "nacre.func.jvp does")
  end
  if not nacre.is_grad_enabled() then
    fail(op, "duals are recorded, and recording is off",
         "nacre.enable_grad(f)")
  end
end

T.define("autograd.forward_ad.enter_dual_level", "-> number",
         "opens a level in which tensors may be duals",
function()
  if level then
    fail("enter_dual_level", "a dual level is open already",
         "nacre.func.jvp may be nested")
  end
  level = {leaves = {}, tangents = {}, region = A._region()}
  return 1
end)

T.define("autograd.forward_ad.exit_dual_level", "*, level:int=nil",
         "closes the level: its duals have no tangent any more",
function()
  if not level then fail("exit_dual_level", "no dual level is open") end
  level = nil
end)

T.define("autograd.forward_ad.dual_level", "fn:fn -> results",
         "calls fn in a dual level and returns its results",
function(f)
  A.forward_ad.enter_dual_level()
  local results = table.pack(pcall(nacre.enable_grad, f))
  level = nil
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end)

T.define("autograd.forward_ad.make_dual", "tensor:tensor, tangent:tensor, *, "
         .. "level:int=nil -> tensor",
         "tensor with a tangent, which operations carry on",
function(x, tangent)
  check_level "make_dual"
  local t = T.check_like("make_dual", tangent, {x}, "tangent")[1]
  local dual = T.leaf("make_dual", x, {})
  local at = #level.leaves + 1
  level.leaves[at], level.tangents[at] = dual, t
  return dual
end)

T.define("autograd.forward_ad.unpack_dual", "tensor:tensor, *, level:int=nil "
         .. "-> primal, tangent",
         "a tensor without its tangent, and the tangent, nil if it has none",
function(y)
  check_level "unpack_dual"
  if not y.requires_grad then return y, nil end
  local g = A._backward({y}, {nacre.zeros_like(y:detach())}, level.leaves, true)
  local any = false
  for i in ipairs(level.leaves) do any = any or g[i] end
  if not any then return y, nil end
  local create = T.needs_graph({y}, level.region, level.leaves)
  local d = T.derivative({y}, level.leaves)(level.tangents, true, create)
  return create and y or y:detach(), d[1]
end)
