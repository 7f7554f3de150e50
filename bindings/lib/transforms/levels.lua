-- SPDX-License-Identifier: MIT
-- levels.lua - what the function transforms share: trees of tensors, and the
-- levels of vmap that are open, whose samples the tape sees as whole batches.
local all = ...
local fail, A = all.fail, nacre.autograd
local T = {}
all.transforms = T

-- The table of a path; nacre.autograd is not one of composed.lua.
function T.space(path)
  local own = path:match "^autograd%.(.*)$"
  return own and A[own] or all.space(path)
end

-- Defines a function that calls functions of the user: their errors pass
-- through as they are.
function T.define(name, signature, doc, fn)
  local path, last = name:match "^(.-)%.?([^.]+)$"
  local s = all.parse(name, signature)
  local function f(...)
    local v = all.read(name, s, ...)
    return fn(table.unpack(v, 1, #s.params))
  end
  rawset(T.space(path), last, f)
  all.describe(name, f, doc, s)
  return f
end

-- ---- trees: a tensor, or a table of trees

function T.is_tree(v)
  return type(v) == "table" and getmetatable(v) == nil
end

-- The keys of a table in an order that is the same each time.
function T.keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    local x, y = math.type(a) == "integer", math.type(b) == "integer"
    if x ~= y then return x end
    if x then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

-- f of each tensor of a tree; what is neither stays.
function T.map(tree, f)
  if nacre.is_tensor(tree) then return f(tree) end
  if not T.is_tree(tree) then return tree end
  local out = {}
  for _, k in ipairs(T.keys(tree)) do out[k] = T.map(tree[k], f) end
  return out
end

-- Appends the tensors of a tree to a list, in the order of their keys.
function T.flatten(tree, list)
  list = list or {}
  if nacre.is_tensor(tree) then list[#list + 1] = tree
  elseif T.is_tree(tree) then
    for _, k in ipairs(T.keys(tree)) do T.flatten(tree[k], list) end
  end
  return list
end

-- The tree with the tensors of a list, as T.flatten gives it, in their places.
function T.unflatten(tree, list, at)
  at = at or {0}
  if nacre.is_tensor(tree) then
    at[1] = at[1] + 1
    return list[at[1]]
  end
  if not T.is_tree(tree) then return tree end
  local out = {}
  for _, k in ipairs(T.keys(tree)) do
    out[k] = T.unflatten(tree[k], list, at)
  end
  return out
end

-- ---- values of the levels that are open

-- The value of x, a sample of this level; x repeated if it is the same for all
-- samples.
function T.batch(x, depth, n)
  local value, at = A._open(x)
  if at == depth then return value end
  return x:unsqueeze(1):expand(n, table.unpack(x:size()))
end

-- x with the batches of these levels, the outermost, in front. It stays a
-- sample of those above them.
function T.widen(x, levels)
  local value, at = A._open(x)
  if value and at > #levels then
    local inner = T.widen(value, levels)
    if #levels > 0 then inner = inner:movedim(#levels + 1, 1) end
    return A._sample(inner, at)
  end
  for depth = #levels, 1, -1 do x = T.batch(x, depth, levels[depth]) end
  return x
end

-- The sample of a tensor that T.widen has made.
function T.narrow(x, levels)
  if #levels == 0 then return x end
  local value, at = A._open(x)
  if value and at > #levels then
    return A._sample(T.narrow(value:movedim(1, #levels + 1), levels), at)
  end
  for depth = 1, #levels do x = A._sample(x, depth) end
  return x
end

-- ---- differentiation of a function

-- A leaf for x, or a node of its own if x is recorded already: the wide tensor
-- and its sample.
function T.leaf(op, x, levels)
  if not x:is_floating_point() and not x:is_complex() then
    fail(op, ("differentiates float tensors, not %s"):format(x.dtype),
         'x:to("float32"), or another argnums', "input", x)
  end
  local wide = T.widen(x, levels)
  wide = wide.requires_grad and wide:view_as(wide) or
         wide:detach():requires_grad_()
  return wide, T.narrow(wide, levels)
end

local open = 0 -- transforms whose function runs

-- Calls f(...) recorded. Meanwhile what is differentiated inside must have a
-- graph.
function T.record(f, ...)
  open = open + 1
  local results = table.pack(pcall(nacre.enable_grad, f, ...))
  open = open - 1
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- Must the graph of the gradients of `outputs' be recorded? If somebody outside
-- may differentiate them: a transform, or tensors that f has captured.
function T.needs_graph(outputs, region, leaves)
  if open > 0 then return true end
  return A._others(outputs, region, leaves)
end

-- The gradients of outputs (wide) for leaves, zeros where there is none, and
-- the first leaf that has none. begin: a gradient for each output, or nil.
function T.gradients(outputs, begin, leaves, retain, create)
  local from, given = {}, begin and {}
  for i, y in ipairs(outputs) do
    if y.requires_grad then
      from[#from + 1] = y
      if begin then given[#from] = begin[i] end
    end
  end
  local found, unused = {}, nil
  if #from > 0 then
    found = nacre.enable_grad(A._backward, from, given, leaves,
                              retain or create, create)
  end
  for i, x in ipairs(leaves) do
    unused = unused or not found[i] and i or nil
    found[i] = found[i] or nacre.zeros_like(x:detach())
  end
  return found, unused
end

-- The derivative of outputs (wide) at the leaves, as a function of tangents,
-- one for each leaf: reverse mode twice. The gradients are linear in what they
-- begin with, and the gradient of that is the derivative.
function T.derivative(outputs, leaves)
  local from, begin, at = {}, {}, {}
  for i, y in ipairs(outputs) do
    if y.requires_grad then
      from[#from + 1], at[#at + 1] = y, i
      begin[#begin + 1] = nacre.zeros_like(y:detach()):requires_grad_()
    end
  end
  local g = #from > 0 and
            nacre.enable_grad(A._backward, from, begin, leaves, true, true)
  return function(tangents, retain, create)
    local found, gs, given = {}, {}, {}
    for j, t in ipairs(tangents) do
      if g and g[j] and g[j].requires_grad and t then
        gs[#gs + 1], given[#given + 1] = g[j], t
      end
    end
    local d = #gs > 0 and nacre.enable_grad(A._backward, gs, given, begin,
                                            retain or create, create) or {}
    for k, i in ipairs(at) do found[i] = d[k] or nil end
    for i, y in ipairs(outputs) do
      found[i] = found[i] or nacre.zeros_like(y:detach())
    end
    return found
  end
end

-- ---- arguments

-- Checks argnums, a position or a list of them, for n arguments.
function T.positions(op, argnums, n)
  local list = type(argnums) == "table" and argnums or {argnums}
  if #list == 0 then fail(op, "argnums names no argument") end
  local out = {}
  for i, k in ipairs(list) do
    if math.type(k) ~= "integer" then
      fail(op, ("argnums are positions of arguments, from 1, not a %s")
               :format(math.type(k) or type(k)))
    end
    local at = k < 0 and k + n + 1 or k
    if at < 1 or at > n then
      fail(op, ("argnums is %d, but the function was called with %d argument%s")
               :format(k, n, n == 1 and "" or "s"))
    end
    out[i] = at
  end
  return out, type(argnums) == "table"
end

-- Replaces the tensors of the arguments at these positions by leaves. Returns
-- the leaves (wide) as a list, and a function that makes a tree, like those
-- arguments, of a list like it.
function T.prepare(op, args, at, levels)
  local leaves, trees = {}, {}
  for i, k in ipairs(at) do
    trees[i] = args[k]
    local before = #leaves
    local list, samples = T.flatten(args[k]), {}
    for j, x in ipairs(list) do
      leaves[before + j], samples[j] = nacre.enable_grad(T.leaf, op, x, levels)
    end
    if #list == 0 then
      fail(op, ("argument %d has no tensor to differentiate"):format(k))
    end
    args[k] = T.unflatten(trees[i], samples)
  end
  return leaves, function(list, single)
    local counter, out = {0}, {}
    for i in ipairs(at) do out[i] = T.unflatten(trees[i], list, counter) end
    return single and out[1] or out
  end
end

-- The tensors among results as wide ones; fails if there is none.
function T.outputs(op, results, levels)
  local wide, list = {}, T.flatten(results)
  for i, y in ipairs(list) do wide[i] = T.widen(y, levels) end
  if #list == 0 then
    fail(op, ("the function returned %s, not a tensor")
             :format(results == nil and "nothing" or "a " .. type(results)))
  end
  return wide, list
end
