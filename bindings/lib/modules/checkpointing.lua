-- SPDX-License-Identifier: MIT
-- checkpointing.lua - nacre.utils.checkpoint(fn, ...): calls fn without keeping
-- what its gradient needs, and calls it again in backward (Chen et al. 2016).
--
-- The second call has the same random numbers and the same region of autocast.
-- Gradients of tensors that fn uses without receiving them go to their grad
-- fields at once, so autograd.grad does not see them.
local all = ...
local fail = all.fail

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

-- The arguments as leaves of their own.
local function detached(args)
  local list = {n = args.n}
  for i = 1, args.n do
    local v = args[i]
    if nacre.is_tensor(v) then
      v = v:detach()
      if args[i].requires_grad then v:requires_grad_() end
    end
    list[i] = v
  end
  return list
end

local function backward(ctx, ...)
  if nacre.is_grad_enabled() then
    fail("checkpoint", "create_graph: a gradient of a gradient cannot go "
                       .. "through a checkpoint")
  end
  local inputs = detached(ctx.args)
  local outputs = table.pack(nacre.enable_grad(call_again, ctx.lower, ctx.state,
                                               ctx.fn, table.unpack(inputs, 1,
                                                                    inputs.n)))
  local begin, given, list = {...}, {}, {}
  for i = 1, outputs.n do
    if outputs[i].requires_grad then
      list[#list + 1], given[#given + 1] = outputs[i], begin[i]
    end
  end
  if #list > 0 then nacre.autograd.backward(list, given) end
  local grads = {}
  for i = 1, inputs.n do
    grads[i] = nacre.is_tensor(inputs[i]) and inputs[i].grad or nil
  end
  return nil, nil, table.unpack(grads, 1, inputs.n)
end

local Checkpoint

local function checkpoint(fn, ...)
  local meta = getmetatable(fn)
  if type(fn) ~= "function" and not (type(meta) == "table" and meta.__call) then
    fail("checkpoint", ("takes a function, not a %s"):format(type(fn)))
  end
  if not nacre.is_grad_enabled() then return fn(...) end
  Checkpoint = Checkpoint or nacre.autograd.Function {
    name = "checkpoint", backward = backward,
    -- The first argument makes it recorded if only weights need gradients.
    forward = function(ctx, _, call, ...)
      ctx.fn, ctx.args, ctx.state = call.fn, table.pack(...), call.state
      ctx.lower = call.lower
      return call.fn(...)
    end,
  }
  local call = {
    fn = fn, state = nacre.get_rng_state(),
    lower = {nacre._autocast_dtype(false) or "none",
             nacre._autocast_dtype(true) or "none"},
  }
  return Checkpoint(nacre.zeros({}, {requires_grad = true}), call, ...)
end

all.alias("utils.checkpoint", checkpoint)
all.describe("utils.checkpoint", checkpoint,
             "calls fn, and again in backward: saves the memory of what its "
             .. "gradient needs",
             all.parse("utils.checkpoint", "fn:any -> results"))
