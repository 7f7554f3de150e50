-- SPDX-License-Identifier: MIT
-- backward_hooks.lua - register_full_backward_hook and its pre_hook: functions
-- that see the gradients of a module's results and arguments. A call with such
-- hooks passes its tensors through operations that change nothing; what these
-- get in backward are the gradients.
local all = ...
all.require "nacre.module"
local fail, Module = all.fail, all.Module

-- Replaces the tensors of `list', a packed table, that require a gradient by
-- others of the same memory. backward(gradients) is called with theirs by
-- position, and may change these. Returns whether there are any.
local function pass(list, backward)
  local at, before, after = {}, {}, {}
  for i = 1, list.n do
    local t = list[i]
    if nacre.is_tensor(t) and t.requires_grad then
      local k = #at + 1
      at[k], before[k], after[k] = i, t, t:detach()
      list[i] = after[k]
    end
  end
  local n = list.n
  if #at > 0 then
    nacre.autograd._custom("hook", before, after, {}, function(g)
      local by_position, result = {n = n}, {}
      for k, i in ipairs(at) do by_position[i] = g[k] or nil end
      backward(by_position)
      for k, i in ipairs(at) do result[k] = by_position[i] or false end
      return result
    end)
  end
  return #at > 0
end

local HOOK, PRE_HOOK = "register_full_backward_hook",
                       "register_full_backward_pre_hook"

-- Replaces gradients by those that a hook gave: a tensor if there is one, or a
-- list.
local function replace(op, gradients, new)
  if new == nil then return end
  if nacre.is_tensor(new) and gradients.n == 1 then new = {new} end
  if nacre.is_tensor(new) or type(new) ~= "table" then
    fail(op, "a hook gives a list of gradients, one for each "
             .. (op == HOOK and "argument" or "result") .. ", or nothing")
  end
  for i = 1, gradients.n do
    local old, g = gradients[i], new[i]
    if old and g and not (nacre.is_tensor(g) and g:is_same_size(old)) then
      fail(op, ("the gradient of %s %d does not have its shape, [%s]")
               :format(op == HOOK and "argument" or "result", i,
                       table.concat(old:size(), "x")))
    end
    gradients[i] = g
  end
end

-- Calls the hooks of a module.
local function run(self, hooks, grad_input, grad_output)
  for _, h in ipairs(hooks) do
    if h.backward then
      replace(HOOK, grad_input, h.backward(self, grad_input, grad_output))
    end
  end
end

-- For a call of a module with hooks: passes the arguments, and returns what
-- passes the results. The hooks run when the gradients of the arguments are
-- known; if none requires one, when those of the results are.
function all.watch_backward(self, hooks, args)
  local grad_output
  local wanted = pass(args, function(grad_input)
    run(self, hooks, grad_input, grad_output or {n = 0})
    grad_output = nil
  end)
  local n = args.n
  return function(results)
    pass(results, function(gradients)
      for _, h in ipairs(hooks) do
        if h.before_backward then
          replace(PRE_HOOK, gradients, h.before_backward(self, gradients))
        end
      end
      grad_output = table.move(gradients, 1, gradients.n, 1,
                               {n = gradients.n})
      if wanted then return end
      run(self, hooks, {n = n}, grad_output)
      grad_output = nil
    end)
  end
end

-- f(module, grad_input, grad_output) in backward, with lists of the gradients
-- of the arguments and the results; it may give others for the arguments.
function Module:register_full_backward_hook(f)
  return all.add_hook(self, "backward", f)
end

-- f(module, grad_output) before that; it may give others for the results.
function Module:register_full_backward_pre_hook(f)
  return all.add_hook(self, "before_backward", f)
end
