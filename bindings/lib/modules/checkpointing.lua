-- SPDX-License-Identifier: MIT
-- checkpointing.lua - nacre.utils.checkpoint(fn, ...): calls fn without keeping
-- what its gradient needs, and calls it again in backward (Chen et al. 2016).
--
-- Both calls are recorded. The first tells which tensors fn uses, arguments or
-- not: they are the operands of the checkpoint in the graph, so its gradients
-- go where they would go without it; what it saved is released. The second has
-- the same random numbers and the same region of autocast, and leaves in
-- place of those tensors.
local all = ...
local fail, A = all.fail, nacre.autograd

-- Calls f(...) in the regions of autocast that `lower' says, and with the
-- random numbers that follow `state'; then puts the generator back.
local function call_again(lower, state, f, ...)
  local now = nacre.get_rng_state()
  nacre.set_rng_state(state)
  local results = table.pack(pcall(nacre._autocast, false, lower[1],
                                   nacre._autocast, true, lower[2], f, ...))
  nacre.set_rng_state(now)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- The results of f(...), each the result of an operation of the part of the
-- graph that begins here; the number of that part (lua_backward.c).
local function record(f, ...)
  local region, results = A._region(), table.pack(f(...))
  for i = 1, results.n do
    local y = results[i]
    if nacre.is_tensor(y) and y.requires_grad then
      results[i] = y:view_as(y)
    end
  end
  return results, region
end

local function recorded_tensors(results)
  local list = {}
  for i = 1, results.n do
    local y = results[i]
    if nacre.is_tensor(y) and y.requires_grad then list[#list + 1] = y end
  end
  return list
end

-- Leaves like the tensors in a list.
local function leaves_like(list)
  local leaves = {}
  for i, t in ipairs(list) do
    leaves[i] = nacre.empty({}, all.like(t)):expand(t:size()):detach()
                :requires_grad_()
  end
  return leaves
end

local function backward(ctx, ...)
  if nacre.is_grad_enabled() then
    fail("checkpoint", "create_graph: a gradient of a gradient cannot go "
                       .. "through a checkpoint")
  end
  local results, region = nacre.enable_grad(record, call_again, ctx.lower,
    ctx.state, ctx.fn, table.unpack(ctx.args, 1, ctx.args.n))
  local begin, given, list = {...}, {}, {}
  for i = 1, results.n do
    local y = results[i]
    if nacre.is_tensor(y) and y.requires_grad then
      list[#list + 1], given[#given + 1] = y, begin[i]
    end
  end
  local leaves = leaves_like(ctx.inputs)
  A._redirect(list, region, ctx.inputs, leaves)
  local grads = #list > 0 and A._backward(list, given, leaves) or {}
  for i = 1, #leaves do grads[i] = grads[i] or nil end
  return nil, table.unpack(grads, 1, #leaves)
end

local Checkpoint

-- The options of PyTorch; nothing of them changes what is done here.
local OPTIONS = {use_reentrant = true, preserve_rng_state = true,
                 determinism_check = true, debug = true}

local function is_options(v)
  if type(v) ~= "table" or getmetatable(v) ~= nil or next(v) == nil then
    return false
  end
  for key in next, v do if not OPTIONS[key] then return false end end
  return true
end

local function checkpoint(fn, ...)
  local meta = getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    fail("checkpoint", ("takes a function, not a %s"):format(type(fn)))
  end
  local args = table.pack(...)
  if is_options(args[args.n]) then args.n = args.n - 1 end
  if not nacre.is_grad_enabled() then
    return fn(table.unpack(args, 1, args.n))
  end
  Checkpoint = Checkpoint or A.Function {
    name = "checkpoint", backward = backward,
    forward = function(ctx, call, ...)
      ctx.fn, ctx.args, ctx.state = call.fn, call.args, call.state
      ctx.lower, ctx.inputs = call.lower, {...}
      return table.unpack(call.results, 1, call.results.n)
    end,
  }
  local call = {
    fn = fn, args = args, state = nacre.get_rng_state(),
    lower = {nacre._autocast_dtype(false) or "none",
             nacre._autocast_dtype(true) or "none"},
  }
  local region
  call.results, region = record(fn, table.unpack(args, 1, args.n))
  local inputs = A._inputs(recorded_tensors(call.results), region)
  if #inputs == 0 then return table.unpack(call.results, 1, call.results.n) end
  return Checkpoint(call, table.unpack(inputs))
end

-- torch.utils.checkpoint is a module, and its function has the same name.
local callable = setmetatable({checkpoint = checkpoint}, {
  __call = function(_, ...) return checkpoint(...) end,
  __tostring = function() return "function: utils.checkpoint" end})
all.alias("utils.checkpoint", callable)
all.describe("utils.checkpoint", callable,
             "calls fn, and again in backward instead of keeping what its "
               .. "gradient needs: saves memory",
             all.parse("utils.checkpoint", "fn:any, ... -> results"))
