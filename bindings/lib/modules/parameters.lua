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

-- The lists of the tensors of each device and dtype.
local function groups_of(list)
  local groups, by_key = {}, {}
  for _, t in ipairs(list) do
    local key = t.device .. t.dtype
    local group = by_key[key]
    if group then group[#group + 1] = t
    else
      group = {t}
      by_key[key], groups[#groups + 1] = group, group
    end
  end
  return groups
end

-- Tensors of fewer elements than this are joined: a copy costs less than a
-- reduction of each.
local SMALL = 1 << 16

-- The tensors in a list, small ones of a device and dtype joined to one.
local function joined(list)
  local out = {}
  for _, group in ipairs(groups_of(list)) do
    local small = {}
    for _, t in ipairs(group) do
      if t:numel() < SMALL then small[#small + 1] = t:reshape(-1)
      else out[#out + 1] = t end
    end
    if #small > 0 then
      out[#out + 1] = #small > 1 and nacre.cat(small) or small[1]
    end
  end
  return out
end

-- The norm of all elements of the tensors in a list, as a tensor on the device
-- of the first; of halves in float32, in whose range it is. norm_type 0 counts
-- the tensors that are not 0, as PyTorch does.
local function total_norm(list, norm_type)
  if #list == 0 then return nacre.zeros({}) end
  local norms, device = {}, list[1].device
  for i, t in ipairs(norm_type == 0 and list or joined(list)) do
    norms[i] = all.widen(t):norm(norm_type):to(device)
  end
  return nacre.linalg.vector_norm(nacre.stack(norms), norm_type)
end

define("get_total_norm", "tensors:tensors, norm_type:num=2",
       "the norm of all elements of several tensors", total_norm)

-- Multiplies the tensors in a list by a scalar tensor: those of one device and
-- dtype in one request.
local function scale_all(list, factor)
  for _, group in ipairs(groups_of(list)) do
    local f = factor:to(group[1].device)
    if all.is_half[group[1].dtype] then     -- in float16 it may be 0
      for _, t in ipairs(group) do t:copy_(t:float():mul_(f)) end
    elseif not nacre._list_scale(group, f:to(group[1].dtype)) then
      for _, t in ipairs(group) do t:mul_(f) end
    end
  end
end

-- Multiplies the tensors in a list by a number. Is none of their elements nan
-- or infinite then? A boolean tensor on the device of the first.
function all.scale_finite(list, factor)
  local some = {}
  for _, group in ipairs(groups_of(list)) do
    local t = group[1]
    -- in float16 the factor would be rounded
    local f = t.itemsize >= 4 and t:new_tensor(factor)
    if not f or not nacre._list_scale(group, f) then
      for _, g in ipairs(group) do g:mul_(factor) end
    end
    for _, g in ipairs(group) do
      if g:numel() > 0 then some[#some + 1] = g end
    end
  end
  return total_norm(some, math.huge):isfinite()
end

-- Nothing waits for the device, so a norm that is not finite is only an error
-- if it is asked for.
define("clip_grad_norm_",
       "parameters:parameters, max_norm:num, norm_type:num=2, "
       .. "error_if_nonfinite:bool=false",
       "scales gradients so that the norm of all is at most max_norm; returns "
         .. "the norm before",
function(params, max_norm, norm_type, strict)
  local list = with_gradients(params)
  return nacre.no_grad(function()
    local norm = total_norm(list, norm_type)
    if strict and not norm:isfinite():item() then
      fail("clip_grad_norm_", "the norm of the gradients is not finite")
    end
    local scale = (max_norm / (norm + 1e-6)):clamp {max = 1}
    scale_all(list, scale)
    return norm
  end)
end)

define("clip_grad_value_", "parameters:parameters, clip_value:num -> ",
       "limits each element of the gradients to -clip_value .. clip_value",
function(params, limit)
  nacre.no_grad(function()
    for _, g in ipairs(with_gradients(params)) do g:clamp_(-limit, limit) end
  end)
end)

-- The options that end a list of arguments, or nil.
local function options_of(args)
  local last = args[args.n]
  if type(last) == "table" and getmetatable(last) == nil and #last == 0 then
    return last
  end
end

local function skip_init(class, ...)
  if type(class) ~= "table" or not class.forward then
    fail("nn.utils.skip_init", "a class of modules is expected",
         "nn.utils.skip_init(nn.Linear, 3, 4)")
  end
  local args, before = table.pack(...), nacre.get_default_device()
  local device = before
  local options = options_of(args)
  if options and options.device then
    local rest = {}
    for k, v in pairs(options) do rest[k] = k ~= "device" and v or nil end
    args[args.n], device = rest, options.device
  end
  nacre.set_default_device "meta"
  local ok, net = pcall(class, table.unpack(args, 1, args.n))
  nacre.set_default_device(before)
  if not ok then error(net, 0) end
  return net:to_empty(device)
end
all.space "nn.utils".skip_init = skip_init
all.describe("nn.utils.skip_init", skip_init,
             "module_cls(...) whose parameters have memory and no values: "
               .. "nothing is drawn; the option device says where",
             all.parse("nn.utils.skip_init", "module_cls:any, ... -> module"))

define("parameters_to_vector", "parameters:parameters",
       "all parameters as one vector",
function(params)
  local list = {}
  if all.is_module(params) then params = params:parameters() end
  for i, p in ipairs(params) do list[i] = p:reshape(-1) end
  return nacre.cat(list)
end)

define("vector_to_parameters", "vec:tensor, parameters:parameters -> ",
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
