-- SPDX-License-Identifier: MIT
-- vmap.lua - nacre.func.vmap: a function of one sample as a function of a
-- batch. The core makes the calls on the batch (core/batch/); here arguments
-- become samples and results batches.
local all = ...
all.require "nacre.levels"
local fail, A, T = all.fail, nacre.autograd, all.transforms

-- ---- dimensions: a number, false, or a tree of these like the arguments

local function check_dim(op, d, x, what)
  if d == false then return false end
  if math.type(d) ~= "integer" then
    fail(op, ("%s are dimensions, or false for what is the same for all, not "
              .. "a %s"):format(what, math.type(d) or type(d)))
  end
  local rank = x:dim() + (what == "out_dims" and 1 or 0)
  local at = d < 0 and d + rank + 1 or d
  if at < 1 or at > rank then
    fail(op, ("%s is %d for a tensor of %d dimension%s"):format(what, d,
         x:dim(), x:dim() == 1 and "" or "s"), nil, "input", x)
  end
  return at
end

-- f(x, dim) of each tensor of a tree, with its dimension from `dims'.
local function map_dims(op, tree, dims, what, f)
  if nacre.is_tensor(tree) then
    if dims == nil then dims = false end
    return f(tree, check_dim(op, dims, tree, what))
  end
  if not T.is_tree(tree) then return tree end
  local out = {}
  for k, v in pairs(tree) do
    local d = dims
    if type(dims) == "table" then d = dims[k] end
    out[k] = map_dims(op, v, d, what, f)
  end
  return out
end

-- The dims of argument (or result) i of n.
local function dims_of(op, dims, i, n, what)
  if type(dims) ~= "table" then return dims end
  if #dims ~= n then
    fail(op, ("%s has %d entr%s for %d %s%s"):format(what, #dims,
         #dims == 1 and "y" or "ies", n,
         what == "in_dims" and "argument" or "result", n == 1 and "" or "s"),
         "false for what is the same for all samples")
  end
  return dims[i]
end

-- f(x, dim, i) of each tensor of the arguments.
local function map_arguments(o, args, f)
  local out = {n = args.n}
  for i = 1, args.n do
    local d = dims_of("vmap", o.in_dims, i, args.n, "in_dims")
    out[i] = map_dims("vmap", args[i], d, "in_dims",
                      function(x, dim) return f(x, dim, i) end)
  end
  return out
end

-- The number of samples, the same along all mapped dimensions.
local function count_samples(o, args)
  local n, first
  map_arguments(o, args, function(x, dim, i)
    if not dim then return end
    local size = x:size(dim)
    if n and size ~= n then
      fail("vmap", ("argument %d has %d samples along dim %d, argument %d has "
                    .. "%d"):format(i, size, dim, first, n), nil, "input", x)
    end
    n, first = n or size, first or i
  end)
  if not n then
    fail("vmap", "no argument is mapped over",
         "in_dims gives the dimension of the samples, from 1, of a tensor")
  end
  return n
end

-- ---- results

-- A result of all samples, with the batch along dim.
local function result_of(y, dim, depth, n)
  local value, at = A._open(y)
  if not dim then
    if at == depth then
      fail("vmap", "out_dims is false for a result that differs from sample "
                   .. "to sample")
    end
    return y
  end
  if at ~= depth then value = T.batch(y, depth, n) end
  return dim == 1 and value or value:movedim(1, dim)
end

local function results_of(o, results, depth, n)
  for i = 1, results.n do
    local y = results[i]
    if not nacre.is_tensor(y) and not T.is_tree(y) then
      fail("vmap", ("result %d of the mapped function is a %s, not a tensor")
                   :format(i, type(y)), "nacre.tensor(x)")
    end
    local d = o.out_dims
    if type(d) == "table" and (results.n > 1 or not T.is_tree(y)) then
      d = dims_of("vmap", d, i, results.n, "out_dims")
    end
    results[i] = map_dims("vmap", y, d, "out_dims", function(t, dim)
      return result_of(t, dim, depth, n)
    end)
  end
  return results
end

-- ---- calls

-- Calls f with the arguments as samples of a new level.
local function call_mapped(f, o, n, args)
  local moved = map_arguments(o, args, function(x, dim)
    return (dim and dim ~= 1) and x:movedim(dim, 1) or x
  end)
  local dims = map_arguments(o, args, function(_, dim) return dim end)
  local depth = A._enter(n, o.randomness)
  local function run()
    local samples = {n = args.n}
    for i = 1, args.n do
      samples[i] = T.map_with(moved[i], dims[i], function(x, dim)
        return dim and A._sample(x, depth) or x
      end)
    end
    local results = table.pack(f(table.unpack(samples, 1, args.n)))
    return results_of(o, results, depth, n)
  end
  local ok, results = pcall(run)
  while #A._levels() >= depth do A._leave() end
  if not ok then error(results, 0) end
  return results
end

-- f(x, y) of the tensors of a tree, with what `other' has in their places.
function T.map_with(tree, other, f)
  if nacre.is_tensor(tree) then return f(tree, other) end
  if not T.is_tree(tree) then return tree end
  local out = {}
  for k, v in pairs(tree) do out[k] = T.map_with(v, other[k], f) end
  return out
end

local function join_trees(parts, dims)
  local first = parts[1]
  if nacre.is_tensor(first) then
    if dims == nil then dims = false end
    return dims and nacre.cat(parts, dims) or first
  end
  if not T.is_tree(first) then return first end
  local out = {}
  for k in pairs(first) do
    local list, d = {}, dims
    for i, part in ipairs(parts) do list[i] = part[k] end
    if type(dims) == "table" then d = dims[k] end
    out[k] = join_trees(list, d)
  end
  return out
end

-- At most `chunk_size' samples at a time.
local function call_in_chunks(f, o, n, args)
  local all_parts, results = {}, {}
  local state = o.randomness == "same" and nacre.get_rng_state()
  for from = 1, n, o.chunk_size do
    local count = math.min(o.chunk_size, n - from + 1)
    if state then nacre.set_rng_state(state) end
    all_parts[#all_parts + 1] = call_mapped(f, o, count,
      map_arguments(o, args, function(x, dim)
        return dim and x:narrow(dim, from, count) or x
      end))
  end
  results.n = all_parts[1].n
  for i = 1, results.n do
    local parts, d = {}, o.out_dims
    for k, part in ipairs(all_parts) do parts[k] = part[i] end
    if type(d) == "table" and (results.n > 1 or not T.is_tree(parts[1])) then
      d = d[i]
    end
    results[i] = join_trees(parts, d)
  end
  return results
end

local function vmap(f, in_dims, out_dims, randomness, chunk_size)
  local o = {in_dims = in_dims, out_dims = out_dims, randomness = randomness,
             chunk_size = chunk_size}
  if chunk_size and chunk_size < 1 then
    fail("vmap", ("chunk_size is %d, must be at least 1"):format(chunk_size))
  end
  return function(...)
    local args = table.pack(...)
    local n = count_samples(o, args)
    local cut = chunk_size and n > chunk_size
    local results = (cut and call_in_chunks or call_mapped)(f, o, n, args)
    return table.unpack(results, 1, results.n)
  end
end
T.vmap = vmap

local signature = "func:fn, in_dims:any=1, out_dims:any=1, "
  .. "randomness:error|same|different=error, *, chunk_size:int=nil -> function"
local doc = "func, of one sample, as a function of batches: in_dims is the "
  .. "dimension of the samples in each argument, false where all have the "
  .. "same; out_dims that in the results"
T.define("func.vmap", signature, doc, vmap)
T.define("vmap", signature, doc, vmap)
