-- SPDX-License-Identifier: MIT
-- autograd.lua - nacre.autograd: grad and backward of several tensors, custom
-- functions, and gradcheck. autograd.c loads it and passes the table to fill,
-- the signatures, the functions of lua_values.c and the function that raises
-- errors.
local A, signatures, arguments, fail = ...

-- lib/transforms/autograd_functional.lua fills them.
A.functional, A.forward_ad = {}, {}

-- Defines A.name: reads the arguments by the signature, then calls fn.
local function define(name, fn)
  local s = arguments.parse(name, signatures[name])
  A[name] = function(...)
    local v = arguments.read(name, s, ...)
    return fn(table.unpack(v, 1, #s.params))
  end
end

local function as_list(v) return nacre.is_tensor(v) and {v} or v end

-- The list of initial gradients, or nil. Fails unless there is one for each
-- output.
local function initial_gradients(op, what, given, outputs)
  local begin = given ~= nil and as_list(given) or nil
  if begin and #begin ~= #outputs then
    fail(op, ("%s has %d entries, expected %d, one for each output")
             :format(what, #begin, #outputs))
  end
  return begin
end

-- retain_graph defaults to create_graph.
local function retain_or_create(retain, create)
  if retain == nil then return create end
  return retain
end

-- The gradients for a batch of initial gradients, as a list.
local function backward_of_batch(outputs, begin, inputs, retain, create)
  if not begin then
    fail("grad", "is_grads_batched needs grad_outputs, whose first dimension "
                 .. "is the batch")
  end
  return nacre.vmap(function(list)
    return A._backward(outputs, list, inputs, retain, create)
  end)(begin)
end

-- Returns one gradient for each input. An input that is not used in the graph
-- raises an error, or gives nil (allow_unused) or zeros (materialize_grads).
-- With is_grads_batched the graph is walked for all gradients at once.
define("grad", function(outputs, inputs, begin, retain, create, only, unused,
                        batched, zeros)
  outputs, inputs = as_list(outputs), as_list(inputs)
  begin = initial_gradients("grad", "grad_outputs", begin, outputs)
  if not only then
    fail("grad", "only_inputs is always true",
         "{outputs}:backward() adds up the gradients of leaves", "outputs",
         outputs[1])
  end
  retain = retain_or_create(retain, create)
  local found
  if batched then
    found = backward_of_batch(outputs, begin, inputs, retain, create)
  else found = A._backward(outputs, begin, inputs, retain, create) end
  for i, x in ipairs(inputs) do
    if not found[i] and not unused and not zeros then
      fail("grad", ("input %d is not used in the graph of the outputs")
                   :format(i), "{allow_unused=true} gives nil for it",
           "input", x)
    end
    found[i] = found[i] or zeros and nacre.zeros_like(x) or nil
  end
  return table.unpack(found, 1, #inputs)
end)

-- backward of several tensors; adds to the grad fields of leaves, or of
-- `inputs' alone.
define("backward", function(tensors, begin, retain, create, inputs)
  tensors = as_list(tensors)
  begin = initial_gradients("backward", "grad_tensors", begin, tensors)
  A._backward(tensors, begin, inputs and as_list(inputs),
              retain_or_create(retain, create), create, true)
end)

-- ---- samples of vmap

-- The depth of the innermost level that has a sample among the values; 0: none.
local function level_of(v, n)
  local most = 0
  for i = 1, n or #v do
    local x, depth = v[i], 0
    if nacre.is_tensor(x) then
      local _, at = A._open(x)
      depth = at or 0
    elseif type(x) == "table" and getmetatable(x) == nil then
      depth = level_of(x)
    end
    most = math.max(most, depth)
  end
  return most
end

-- Sample i of the level, of the tensors among the values.
local function sample_of(v, n, depth, i)
  local one = {n = n}
  for k = 1, n do
    local x = v[k]
    one[k] = x
    if nacre.is_tensor(x) then
      local value, at = A._open(x)
      if at == depth then one[k] = value:select(1, i) end
    elseif type(x) == "table" and getmetatable(x) == nil then
      one[k] = sample_of(x, #x, depth, i)
      for key, y in pairs(x) do
        if one[k][key] == nil then one[k][key] = y end
      end
      one[k].n = x.n
    end
  end
  return one
end

-- The results of all samples as those of one sample.
local function stack_results(parts, depth)
  local results = {n = parts[1].n}
  for k = 1, results.n do
    local list, first = {}, parts[1][k]
    for i, part in ipairs(parts) do list[i] = part[k] end
    if nacre.is_tensor(first) then
      results[k] = A._sample(nacre.stack(list), depth)
    elseif type(first) == "table" then
      for _, t in ipairs(list) do t.n = #t end
      results[k] = stack_results(list, depth)
      results[k].n = nil
    else results[k] = first end
  end
  return results
end

-- f(...), once for each sample if there are samples of vmap among the
-- arguments: for a function of Lua that reads values.
function A._each_sample(f, ...)
  local args = table.pack(...)
  local depth = level_of(args, args.n)
  if depth == 0 then return f(...) end
  local parts, count = {}, A._levels()[depth]
  for i = 1, count do
    local one = sample_of(args, args.n, depth, i)
    parts[i] = table.pack(A._each_sample(f, table.unpack(one, 1, one.n)))
  end
  local results = stack_results(parts, depth)
  return table.unpack(results, 1, results.n)
end

-- ---- custom functions

-- local Exp = nacre.autograd.Function{
--   forward = function(ctx, x)
--     local y = x:exp()
--     ctx:save_for_backward(y)
--     return y
--   end,
--   backward = function(ctx, g)
--     local y = table.unpack(ctx.saved_tensors)
--     return g * y
--   end,
-- }
-- local y = Exp(x)

-- The methods of ctx.
local context = {}

function context:save_for_backward(...)
  rawset(self, "_saved", table.pack(...))
end

function context:mark_non_differentiable(...)
  for _, t in ipairs {...} do self._plain[#self._plain + 1] = t end
end

-- Arguments that forward has changed in place and gives as results.
function context:mark_dirty(...)
  for _, t in ipairs {...} do self._dirty[#self._dirty + 1] = t end
end

function context:set_materialize_grads(on)
  rawset(self, "_zeros", on)
end

local meta = {
  __index = function(ctx, key)
    if key == "saved_tensors" then
      local saved = {}
      for i = 1, ctx._count do saved[i] = A._saved(ctx._node, i) end
      return saved
    end
    return context[key]
  end,
}

local function contains(t, set)
  for _, v in ipairs(set) do if rawequal(v, t) then return true end end
  return false
end

-- Checks the results of backward: a gradient or nil for each of the n arguments
-- of forward; trailing nils may be omitted.
local function checkgradients(f, all, need, n)
  for i = 1, math.max(n, all.n) do
    if all[i] and need[i] == nil then
      error(("backward of %s: gradient %d is one too many: forward took "
             .. "%d argument%s"):format(f.name, i, n, n == 1 and "" or "s"), 0)
    elseif need[i] and i > all.n then
      error(("backward of %s returned %d gradient%s, but argument %d of "
        .. "forward needs one, too (or nil)"):format(f.name, all.n,
                                        all.n == 1 and "" or "s", i), 0)
    end
  end
end

-- The function that autograd.c calls with the gradients of the outputs. It
-- returns those of the tensors among forward's arguments; at[k] is the position
-- of the k-th such tensor. zeros[i]() makes the gradient of an unused output.
local function gradients(f, ctx, at, zeros, n)
  return function(g, needs)
    for i = 1, #zeros do
      if not g[i] and ctx._zeros ~= false then g[i] = zeros[i]() end
    end
    local need = {}
    for k, i in ipairs(at) do need[i] = needs[k] end
    ctx.needs_input_grad = need
    local all = table.pack(f.backward(ctx, table.unpack(g, 1, #zeros)))
    checkgradients(f, all, need, n)
    local d = {}
    for k, i in ipairs(at) do d[k] = all[i] or false end
    return d
  end
end

-- A function that makes zeros of the shape, dtype and device of t without
-- keeping t alive.
local function zeros_like_later(t)
  local shape, dtype, device = t:size(), t.dtype, t.device
  return function()
    return nacre.zeros(shape, {dtype = dtype, device = device})
  end
end

-- Fails unless forward took each tensor that it marks dirty, and gave it.
local function check_dirty(f, ctx, inputs, results)
  for _, t in ipairs(ctx._dirty) do
    if not contains(t, inputs) or not contains(t, results) then
      fail("mark_dirty", ("a tensor marked dirty is an argument and a result "
                          .. "of the forward of %s"):format(f.name))
    end
  end
end

-- Calls forward without recording, then records a node that connects its
-- outputs to the tensors among its arguments.
local function apply(f, ...)
  local args = table.pack(...)
  local ctx = setmetatable({_plain = {}, _dirty = {}, _count = 0,
                            needs_input_grad = {}}, meta)
  local at, inputs = {}, {}
  for i = 1, args.n do
    if nacre.is_tensor(args[i]) then
      at[#at + 1], inputs[#inputs + 1] = i, args[i]
      ctx.needs_input_grad[i] = args[i].requires_grad
    else
      ctx.needs_input_grad[i] = false
    end
  end
  local results = table.pack(nacre.no_grad(f.forward, ctx, ...))
  if not nacre.is_grad_enabled() then
    return table.unpack(results, 1, results.n)
  end
  check_dirty(f, ctx, inputs, results)
  local outputs, zeros = {}, {}
  for i = 1, results.n do
    local y = results[i]
    if not nacre.is_tensor(y) then
      fail("Function", ("forward of %s returned a %s, not a tensor")
                       :format(f.name, type(y)))
    end
    if not contains(y, ctx._dirty) and
       (contains(y, inputs) or y.requires_grad) then
      y = y:detach()
    end
    results[i] = y
    outputs[i] = not contains(y, ctx._plain) and y
    zeros[i] = zeros_like_later(y)
  end
  local saved = ctx._saved or {n = 0}
  rawset(ctx, "_saved", nil)
  local list = {}
  for i = 1, saved.n do list[i] = saved[i] or false end
  rawset(ctx, "_count", saved.n)
  local node = A._custom(f.name, inputs, outputs, list,
                         gradients(f, ctx, at, zeros, args.n))
  if node then rawset(ctx, "_node", node) end
  return table.unpack(results, 1, results.n)
end

define("Function", function(f)
  if type(f) ~= "table" or type(f.forward) ~= "function" or
     type(f.backward) ~= "function" then
    fail("Function", "takes a table with the functions forward and backward")
  end
  for key in pairs(f) do
    if key ~= "forward" and key ~= "backward" and key ~= "name" then
      fail("Function", ("no field '%s'; there are forward, backward and name")
                       :format(tostring(key)))
    end
  end
  if f.name ~= nil and type(f.name) ~= "string" then
    fail("Function", ("name must be a string, not a %s"):format(type(f.name)))
  end
  local made = {forward = f.forward, backward = f.backward,
                name = f.name or "Function"}
  -- the functions of the user see one sample of vmap at a time
  made.apply = function(...)
    if A._levels()[1] then return A._each_sample(apply, made, ...) end
    return apply(made, ...)
  end
  return setmetatable(made, {
    __call = function(_, ...) return made.apply(...) end,
    __tostring = function() return "autograd.Function: " .. made.name end,
  })
end)

-- ---- gradcheck

-- The float tensors among the arguments.
local function tensors(...)
  local all = table.pack(...)
  local found = {}
  for i = 1, all.n do
    local t = all[i]
    if nacre.is_tensor(t) and t:is_floating_point() then
      found[#found + 1] = t
    end
  end
  return found
end

-- The gradient of value() with respect to x by central differences, (f(x + eps)
-- - f(x - eps)) / (2 eps); x is changed in place and restored.
local function differences(value, x, eps)
  local place = x:detach()
  local flat = place:clone():reshape(-1)
  local out = flat:zeros_like()
  local function at(i, v)
    flat[i] = v
    place:copy_(flat:view(x:size()))
    return value()
  end
  for i = 1, #flat do
    local before = flat[i]
    out[i] = (at(i, before + eps) - at(i, before - eps)) / (2 * eps)
    at(i, before)
  end
  return out:view(x:size())
end

-- The initial gradient of y: different weights, so that errors of different
-- elements do not cancel.
local function weights(y, from, to)
  return nacre.linspace(from, to, y:numel(), {dtype = y.dtype,
                                              device = y.device})
           :reshape(y:size())
end

local function max_or_zero(t)
  return t:numel() == 0 and 0 or t:max():item()
end

-- The arguments of the function: a tensor, or a list of values.
local function input_list(op, inputs)
  if nacre.is_tensor(inputs) then return {inputs} end
  if type(inputs) == "table" and #inputs > 0 then return inputs end
  fail(op, ("inputs must be a tensor or a list of tensors, not a %s")
           :format(type(inputs)),
       {cause = "tensor", name = "inputs", got = type(inputs)})
end

-- The inputs that require a gradient and their positions. Fails if there are
-- none, or if one is not float64.
local function differentiable_inputs(op, inputs)
  local of, at = {}, {}
  for i, x in ipairs(inputs) do
    if nacre.is_tensor(x) and x.requires_grad then
      if x.dtype ~= "float64" then
        fail(op, ("input %d is %s, but finite differences need float64")
                 :format(i, x.dtype))
      end
      of[#of + 1], at[#at + 1] = x, i
    end
  end
  if #of == 0 then fail(op, "no input requires a gradient") end
  return of, at
end

-- Compares backward with central differences for each input that requires a
-- gradient: |difference| <= atol + rtol |numeric|. Raises an error that says
-- where they differ, or returns false if raise is false.
define("gradcheck", function(f, inputs, eps, atol, rtol, raise)
  inputs = input_list("gradcheck", inputs)
  local of, at = differentiable_inputs("gradcheck", inputs)
  local outputs = tensors(f(table.unpack(inputs)))
  local weight, got, graph = {}, {}, false
  for k, y in ipairs(outputs) do
    weight[k] = weights(y, 0.3, 1.7)
    got[k] = y.requires_grad and A._backward({y}, {weight[k]}, of, true)
    graph = graph or got[k]
  end
  for k in ipairs(outputs) do
    local function value()
      local y = tensors(nacre.no_grad(f, table.unpack(inputs)))[k]
      return (y * weight[k]):sum():item()
    end
    -- if no output has a graph, none may depend on the inputs
    for n, x in ipairs((got[k] or not graph) and of or {}) do
      local want = differences(value, x, eps)
      local have = got[k] and got[k][n] or want:zeros_like()
      local off = max_or_zero((have - want):abs() - rtol * want:abs())
      if not (off <= atol) then
        if not raise then return false end
        error(("the gradient of output %d with respect to input %d is off by "
               .. "%.3g\nbackward: %s\ndifferences: %s")
              :format(k, at[n], math.abs(off), -- the sign of NaN varies
                      tostring(have), tostring(want)), 2)
      end
    end
  end
  return true
end)

-- Applies gradcheck to the function that maps the inputs to the gradients of f.
define("gradgradcheck", function(f, inputs, ...)
  inputs = input_list("gradgradcheck", inputs)
  local _, at = differentiable_inputs("gradgradcheck", inputs)
  local function first(...)
    local all, of = {...}, {}
    for n, i in ipairs(at) do of[n] = all[i] end
    local outputs, begin = {}, {}
    for _, y in ipairs(tensors(nacre.enable_grad(f, ...))) do
      if y.requires_grad then
        outputs[#outputs + 1], begin[#begin + 1] = y, weights(y, 0.6, 1.4)
      end
    end
    local got, found = A._backward(outputs, begin, of, true, true), {}
    for n = 1, #of do
      if got[n] then found[#found + 1] = got[n] end
    end
    return table.unpack(found)
  end
  return A.gradcheck(first, inputs, ...)
end)
