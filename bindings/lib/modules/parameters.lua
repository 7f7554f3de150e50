-- SPDX-License-Identifier: MIT
-- parameters.lua - nn.utils: the gradients of a list of parameters, and
-- parameters as one vector.
local all = ...
local fail = all.fail

local function define(name, signature, doc, f)
  all.define("nn.utils." .. name, signature, doc, f)
end

-- The parameters in a list, a module or one tensor, and those with a gradient.
local function with_gradients(params)
  if nacre.is_tensor(params) then params = {params}
  elseif all.is_module(params) then params = params:parameters() end
  local list = {}
  for _, p in ipairs(params) do
    if p.grad then list[#list + 1] = p.grad end
  end
  return list
end

-- The norm of all elements of the tensors in a list, as a tensor.
local function total_norm(list, norm_type)
  local norms = {}
  for i, g in ipairs(list) do
    norms[i] = nacre.linalg.vector_norm(g, norm_type)
  end
  if #norms == 0 then return nacre.zeros({}) end
  return nacre.linalg.vector_norm(nacre.stack(norms), norm_type)
end

define("get_total_norm", "tensors:tensors, norm_type:num=2",
       "the norm of all elements of several tensors", total_norm)

-- Nothing waits for the device, so a norm that is not finite is only an error
-- if it is asked for.
define("clip_grad_norm_",
       "parameters:any, max_norm:num, norm_type:num=2, "
       .. "error_if_nonfinite:bool=false",
       "scales gradients so that the norm of all is at most max_norm; gives "
       .. "the norm before",
function(params, max_norm, norm_type, strict)
  local list = with_gradients(params)
  return nacre.no_grad(function()
    local norm = total_norm(list, norm_type)
    if strict and not norm:isfinite():item() then
      fail("clip_grad_norm_", "the norm of the gradients is not finite")
    end
    local scale = (max_norm / (norm + 1e-6)):clamp {max = 1}
    for _, g in ipairs(list) do g:mul_(scale:to(g.device)) end
    return norm
  end)
end)

define("clip_grad_value_", "parameters:any, clip_value:num -> ",
       "limits each element of the gradients to -clip_value .. clip_value",
function(params, limit)
  nacre.no_grad(function()
    for _, g in ipairs(with_gradients(params)) do g:clamp_(-limit, limit) end
  end)
end)

define("parameters_to_vector", "parameters:any",
       "all parameters as one vector",
function(params)
  local list = {}
  if all.is_module(params) then params = params:parameters() end
  for i, p in ipairs(params) do list[i] = p:reshape(-1) end
  return nacre.cat(list)
end)

define("vector_to_parameters", "vec:tensor, parameters:any -> ",
       "the elements of a vector as parameters",
function(vec, params)
  if all.is_module(params) then params = params:parameters() end
  local at = 1
  nacre.no_grad(function()
    for _, p in ipairs(params) do
      p:copy_(vec:narrow(1, at, p:numel()):view_as(p))
      at = at + p:numel()
    end
  end)
end)
