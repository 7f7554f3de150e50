-- SPDX-License-Identifier: MIT
-- jacobians.lua - nacre.func: jacrev, jacfwd, hessian. The Jacobian of a result
-- [a x b] for an argument [c] is [a x b x c].
local all = ...
all.require("nacre.levels", "nacre.vmap", "nacre.gradients")
local T = all.transforms

-- The sizes of a, then those of b.
local function joined_size(a, b)
  local size = a:size()
  for _, s in ipairs(b:size()) do size[#size + 1] = s end
  return size
end

-- The unit tensors in the shape of x, one behind the other in a new dimension.
local function units(x)
  local n = x:numel()
  local eye = nacre.eye(n, {dtype = x.dtype, device = x.device})
  return eye:reshape(n, table.unpack(x:size()))
end

-- Calls f with the arguments at `at' as leaves and the others as they are.
local function run_at(op, f, argnums, has_aux, args)
  local at, several = T.positions(op, argnums, args.n)
  local trees = {}
  for i, k in ipairs(at) do trees[i] = args[k] end
  local function g(...)
    local own, given = table.pack(table.unpack(args, 1, args.n)), {...}
    for i, k in ipairs(at) do own[k] = given[i] end
    return f(table.unpack(own, 1, own.n))
  end
  local c = T.run(op, g, has_aux, table.pack(table.unpack(trees)))
  c.several, c.inputs = several, T.flatten(trees)
  return c
end

-- table[i][j], the Jacobian of output i for input j, as a tree of outputs of
-- trees of inputs.
local function as_trees(c, jacobians)
  local list = {}
  for i, row in ipairs(jacobians) do list[i] = c.tree(row, not c.several) end
  if nacre.is_tensor(c.result) then return list[1] end
  return T.unflatten(c.result, list)
end

-- f of each slice of x along its first dimension, all at once, or `chunk_size'
-- at a time: a list of tensors, each with a new first dimension.
local function for_each(x, chunk_size, f)
  return T.vmap(f, 1, 1, "same", chunk_size)(x)
end

local function zeros_like_all(list)
  local zeros = {}
  for k, t in ipairs(list) do zeros[k] = nacre.zeros_like(t:detach()) end
  return zeros
end

-- The gradients of output i, a row for each element of it.
local function reverse(c, i, chunk_size)
  local y, begin, out = c.list[i], zeros_like_all(c.list), {}
  local rows = y:numel() > 0 and
    for_each(units(begin[i]), chunk_size, function(unit)
      begin[i] = unit
      return T.pull_back(c, begin)
    end)
  for j, x in ipairs(c.inputs) do
    local size = joined_size(y, x)
    out[j] = rows and rows[j]:reshape(size) or x:detach():new_zeros(size)
  end
  return out
end

-- The derivatives for input j, a column for each element of it.
local function forward(c, push, j)
  local x, tangents, out = c.inputs[j], zeros_like_all(c.inputs), {}
  local columns = x:numel() > 0 and
    for_each(units(tangents[j]), nil, function(unit)
      tangents[j] = unit
      return push(tangents, true)
    end)
  for i, y in ipairs(c.list) do
    local size = joined_size(y, x)
    out[i] = columns and columns[i]:movedim(1, -1):reshape(size):contiguous() or
             y:detach():new_zeros(size)
  end
  return out
end

local function by_rows(op)
  return function(f, argnums, has_aux, chunk_size)
    return function(...)
      local c = run_at(op, f, argnums, has_aux, table.pack(...))
      local jacobians = {}
      for i in ipairs(c.list) do jacobians[i] = reverse(c, i, chunk_size) end
      return as_trees(c, jacobians), table.unpack(c.aux, 1, c.aux.n)
    end
  end
end

local signature = "func:fn, argnums:any=1, has_aux:bool=false, *, "
T.define("func.jacrev", signature .. "chunk_size:int=nil -> function",
         "the function that gives the Jacobian of func by reverse mode: a row "
         .. "for each element of the result", by_rows "jacrev")

T.define("func.jacfwd", signature .. "randomness:error|same|different=error "
         .. "-> function",
         "the function that gives the Jacobian of func by forward mode: a "
         .. "column for each element of the argument",
function(f, argnums, has_aux)
  return function(...)
    local c = run_at("jacfwd", f, argnums, has_aux, table.pack(...))
    local push, jacobians = T.push_forward(c), {}
    for i in ipairs(c.list) do jacobians[i] = {} end
    for j in ipairs(c.inputs) do
      for i, d in ipairs(forward(c, push, j)) do jacobians[i][j] = d end
    end
    return as_trees(c, jacobians), table.unpack(c.aux, 1, c.aux.n)
  end
end)

T.define("func.hessian", "func:fn, argnums:any=1 -> function",
         "the function that gives the second derivatives of func: the "
         .. "Jacobian of its Jacobian",
function(f, argnums)
  local jacrev = by_rows "hessian"
  return jacrev(jacrev(f, argnums), argnums)
end)
