-- SPDX-License-Identifier: MIT
-- The second derivatives of f at the inputs, all of them along one random
-- direction: an error where backward and differences disagree. nacre.autograd's
-- gradgradcheck moves each element of each input by itself and says which one
-- is wrong; this takes two evaluations of the gradient, however many there are.
--   local second_order = dofile(here .. "../lib/second_order.lua")
--   second_order(f, inputs)
local grad = nacre.autograd

-- Weights of the outputs that differ, so that no error is summed to nothing.
local function weights(y)
  return nacre.linspace(0.6, 1.4, y:numel(), {dtype = y.dtype,
                                              device = y.device})
           :reshape(y:size())
end

-- The gradients of f at inputs + t * directions, with a graph.
local function first(f, inputs, directions, t)
  local at, of, outputs, begin = {}, {}, {}, {}
  for i, v in ipairs(inputs) do
    at[i] = v
    if directions[i] then
      at[i] = v:detach() + t * directions[i]
      if not at[i].requires_grad then at[i]:requires_grad_() end
      of[#of + 1] = at[i]
    end
  end
  for _, y in ipairs {f(table.unpack(at))} do
    if nacre.is_tensor(y) and y.requires_grad then
      outputs[#outputs + 1], begin[#begin + 1] = y, weights(y)
    end
  end
  local got, found = grad._backward(outputs, begin, of, true, true), {}
  for i = 1, #of do
    if got[i] then found[#found + 1] = got[i] end
  end
  return table.unpack(found)
end

return function(f, inputs)
  local directions = {}
  nacre.manual_seed(7)
  for i, v in ipairs(inputs) do
    if nacre.is_tensor(v) and v.requires_grad then
      directions[i] = v:detach():zeros_like():normal_()
    end
  end
  local t = nacre.zeros({}, {dtype = "float64", requires_grad = true})
  grad.gradcheck(function(step)
    return nacre.enable_grad(first, f, inputs, directions, step)
  end, t)
end
