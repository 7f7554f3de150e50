-- SPDX-License-Identifier: MIT
-- gradients.lua - nacre.func: grad, grad_and_value, vjp, jvp, linearize, over
-- the tape. Inside of vmap the tape sees whole batches: the gradient of the sum
-- over all samples has that of each sample, since none depends on another.
local all = ...
all.require "nacre.levels"
local fail, A, T = all.fail, nacre.autograd, all.transforms

-- What f returns after the first, which has_aux asks for.
local function check_aux(op, results, has_aux)
  if results.n > 1 and not has_aux then
    fail(op, ("the function returned %d values, not one tensor")
             :format(results.n), "has_aux = true passes on what follows the "
                                 .. "first")
  end
end

local function check_scalar(op, y)
  if not nacre.is_tensor(y) then
    fail(op, ("the function returned a %s, not a tensor"):format(type(y)))
  end
  if y:dim() > 0 then
    fail(op, ("the function returned [%s], not one number")
             :format(table.concat(y:size(), "x")),
         "y:sum() is one; nacre.func.jacrev differentiates each element")
  end
end

local function grad_and_value(op, f, argnums, has_aux)
  return function(...)
    local args = table.pack(...)
    local at, several = T.positions(op, argnums, args.n)
    local levels, region = A._levels(), A._region()
    local leaves, tree = T.prepare(op, args, at, levels)
    local results = table.pack(T.record(f, table.unpack(args, 1, args.n)))
    check_aux(op, results, has_aux)
    local y = results[1]
    check_scalar(op, y)
    local total = T.widen(y, levels)
    local create = total.requires_grad and
                   T.needs_graph({total}, region, leaves)
    if total:dim() > 0 then total = nacre.enable_grad(total.sum, total) end
    local found = T.gradients({total}, nil, leaves, false, create)
    for i, g in ipairs(found) do found[i] = T.narrow(g, levels) end
    if not create then y = y:detach() end
    return tree(found, not several), y,
           table.unpack(results, 2, results.n)
  end
end

local grad_signature =
  "func:fn, argnums:any=1, has_aux:bool=false -> function"

T.define("func.grad", grad_signature,
         "the function that gives the gradient of func, whose result is one "
         .. "number, for the arguments argnums; with has_aux also what func "
         .. "returns after it",
function(f, argnums, has_aux)
  local both = grad_and_value("grad", f, argnums, has_aux)
  return function(...)
    local function drop_value(g, _, ...) return g, ... end
    return drop_value(both(...))
  end
end)

T.define("func.grad_and_value", grad_signature,
         "the function that gives the gradient of func and its value, like "
         .. "grad",
function(f, argnums, has_aux)
  return grad_and_value("grad_and_value", f, argnums, has_aux)
end)

-- ---- products with a Jacobian

-- Calls f with leaves for all arguments. Returns what is known of the call.
local function run(op, f, has_aux, args)
  local c = {op = op, levels = A._levels(), at = {}}
  local region = A._region()
  for i = 1, args.n do c.at[i] = i end
  if args.n == 0 then fail(op, "the function has no argument") end
  local own = table.pack(table.unpack(args, 1, args.n))
  c.leaves, c.tree = T.prepare(op, own, c.at, c.levels)
  local results = table.pack(T.record(f, table.unpack(own, 1, own.n)))
  c.aux = has_aux and table.pack(table.unpack(results, 2, results.n)) or {n = 0}
  c.result = results[1]
  if results.n > 1 and not has_aux then
    results.n = nil
    c.result = results
  end
  c.wide, c.list = T.outputs(op, c.result, c.levels)
  c.create = T.needs_graph(c.wide, region, c.leaves)
  return c
end
T.run = run

-- The result of f, without a history that nobody needs.
local function value_of(c)
  if c.create then return c.result end
  return T.map(c.result, function(y) return y:detach() end)
end
T.value_of = value_of

local function shape_text(t)
  return "[" .. table.concat(t:size(), "x") .. "]"
end

-- The tensors of a tree, checked to be like those of `list'.
local function check_like(op, tree, list, what)
  local given = T.flatten(tree)
  if #given ~= #list then
    fail(op, ("%d %ss for %d tensors"):format(#given, what, #list))
  end
  for i, t in ipairs(given) do
    local same = t:dim() == list[i]:dim()
    for d = 1, same and t:dim() or 0 do
      same = same and t:size(d) == list[i]:size(d)
    end
    if not same then
      fail(op, ("%s %d is %s, the tensor is %s"):format(what, i, shape_text(t),
           shape_text(list[i])), nil, what, t)
    end
    if t.dtype ~= list[i].dtype then given[i] = t:to(list[i].dtype) end
  end
  return given
end
T.check_like = check_like

local function widen_list(list, levels)
  local wide = {}
  for i, t in ipairs(list) do wide[i] = T.widen(t, levels) end
  return wide
end

local function narrow_list(list, levels)
  for i, t in ipairs(list) do list[i] = T.narrow(t, levels) end
  return list
end

-- The gradients for the arguments of c, of cotangents for its results.
function T.pull_back(c, cotangents)
  local given = widen_list(cotangents, c.levels)
  return narrow_list(T.gradients(c.wide, given, c.leaves, true, c.create),
                     c.levels)
end

-- The derivative of c, as a function of a list of tangents.
function T.push_forward(c)
  local derivative = T.derivative(c.wide, c.leaves)
  return function(tangents, retain)
    local given = widen_list(tangents, c.levels)
    return narrow_list(derivative(given, retain, c.create), c.levels)
  end
end

-- The results of f, if there are several as a list, and what the transform
-- gives beside them.
local function with_aux(c, y, second)
  return y, second, table.unpack(c.aux, 1, c.aux.n)
end

-- vjp(f, x, ...) and, with an auxiliary result, vjp(f, x, ..., {has_aux=true})
local function options_of(args)
  local last = args[args.n]
  if args.n > 1 and T.is_tree(last) and last.has_aux ~= nil and
     next(last, next(last)) == nil then
    args.n = args.n - 1
    return last
  end
  return {}
end

local function describe(name, doc, f)
  all.space("func")[name] = f
  all.describe("func." .. name, f, doc,
               all.parse("func." .. name, "func:fn, ... -> results"))
end

local function check_function(op, f)
  local meta = getmetatable(f)
  if type(f) ~= "function" and not (type(meta) == "table" and meta.__call) then
    fail(op, ("takes a function, not a %s"):format(type(f)))
  end
end

local function vjp(f, ...)
  check_function("vjp", f)
  local args = table.pack(...)
  local c = run("vjp", f, options_of(args).has_aux, args)
  return with_aux(c, value_of(c), function(...)
    local given = check_like("vjp", {...}, c.list, "cotangent")
    local list = T.pull_back(c, given)
    return table.unpack(c.tree(list), 1, #c.at)
  end)
end
describe("vjp", "the value of func at arguments, and the function that gives "
         .. "for a cotangent of it the gradient for each argument", vjp)

local function linearize(f, ...)
  check_function("linearize", f)
  local args = table.pack(...)
  local c = run("linearize", f, false, args)
  local push, inputs = T.push_forward(c), T.flatten(args)
  return value_of(c), function(...)
    local given = check_like("linearize", {...}, inputs, "tangent")
    return T.unflatten(c.result, push(given, true))
  end
end
describe("linearize", "the value of func at arguments, and the function that "
         .. "gives for a tangent of each argument the derivative in that "
         .. "direction, without calling func again", linearize)

local function as_list(v) return nacre.is_tensor(v) and {v} or v end

T.define("func.jvp", "func:fn, primals:any, tangents:any, *, "
         .. "has_aux:bool=false -> results",
         "the value of func at a list of arguments, and its derivative in the "
         .. "direction of a list of tangents; with has_aux also what func "
         .. "returns after the value",
function(f, primals, tangents, has_aux)
  local args = as_list(primals)
  if type(args) ~= "table" or type(tangents) == "number" then
    fail("jvp", "primals and tangents are tensors, or lists of arguments")
  end
  local given = check_like("jvp", tangents, T.flatten(args), "tangent")
  local c = run("jvp", f, has_aux, table.pack(table.unpack(args)))
  local list = T.push_forward(c)(given)
  return with_aux(c, value_of(c), T.unflatten(c.result, list))
end)
