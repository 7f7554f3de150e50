-- SPDX-License-Identifier: MIT
-- sync_batch_norm.lua - nn.SyncBatchNorm: batch normalization with the mean and
-- the variance of the batches of all ranks together.
local all = ...
all.require("nacre.guards", "nacre.weight_layers")
local fail, nn, F = all.fail, all.space "nn", all.space "nn.functional"

-- The dimensions but the second, and the shape of channels beside x.
local function around_channels(x)
  local dims, shape = {}, {}
  for d = 1, x:dim() do
    if d ~= 2 then dims[#dims + 1] = d end
    shape[d] = d == 2 and x:size(2) or 1
  end
  return dims, shape
end

-- Number, mean and sum of squared deviations of the elements of each channel on
-- this rank, as one vector.
local function own_statistics(x, dims)
  local c, n = x:size(2), x:numel() // math.max(x:size(2), 1)
  local mean, m2 = x:new_zeros {c}, x:new_zeros {c}
  if n > 0 then
    m2, mean = nacre.var_mean(x, {dim = dims, correction = 0})
    m2 = m2 * n
  end
  return nacre.cat {x:new_full({1}, n), mean, m2}:double()
end

-- The same of all ranks: their number n, mean and variance. Ranks are merged in
-- their order, so that all have the same bits (Chan, Golub and LeVeque 1979).
local function all_statistics(x, dims, group)
  local c = x:size(2)
  local parts = nacre.distributed.all_gather(own_statistics(x, dims),
                                             {group = group})
  local n = parts:narrow(2, 1, 1)
  local total = n:sum():item()
  local means, m2 = parts:narrow(2, 2, c), parts:narrow(2, c + 2, c)
  local mean = (means * n):sum(1) / total
  m2 = m2:sum(1) + ((means - mean):square() * n):sum(1)
  return total, mean, m2 / total
end

local function forward(ctx, x, weight, bias, call)
  local wide = all.widen(x)
  local dims, shape = around_channels(x)
  local n, mean, var = all_statistics(wide, dims, call.group)
  if n <= 1 then
    fail("SyncBatchNorm", "the ranks have one element of each channel together",
         nil, "input", x)
  end
  call.n, call.mean, call.var = n, mean, var
  mean, var = mean:to(wide.dtype), var:to(wide.dtype)
  ctx.n, ctx.group = n, call.group
  ctx.mean = mean:view(shape)
  ctx.scale = (var + call.eps):rsqrt():view(shape)
  ctx:save_for_backward(x, weight)
  local y = F.batch_norm(wide, mean, var, weight and weight:to(wide.dtype),
                         bias and bias:to(wide.dtype), false, 0, call.eps)
  return all.convert_back(y, x)
end

local function backward(ctx, g)
  local x, weight = table.unpack(ctx.saved_tensors)
  local dims, shape = around_channels(x)
  local wide, c = all.widen(g), x:size(2)
  local normal = (all.widen(x) - ctx.mean) * ctx.scale
  local sums = nacre.cat {wide:sum(dims), (wide * normal):sum(dims)}
  local for_bias, for_weight = sums:narrow(1, 1, c), sums:narrow(1, c + 1, c)
  local dx
  if ctx.needs_input_grad[1] then
    local mean = nacre.distributed.all_reduce(sums:clone(),
      {op = "sum", group = ctx.group}) / ctx.n
    dx = wide - mean:narrow(1, 1, c):view(shape)
         - normal * mean:narrow(1, c + 1, c):view(shape)
    dx = dx * ctx.scale
    if weight then dx = dx * weight:view(shape) end
    dx = all.convert_back(dx, x)
  end
  return dx, weight and for_weight:to(weight.dtype), weight and
         for_bias:to(weight.dtype)
end

local Normalize

-- Moves running statistics to those of this batch; var is that of n elements.
local function track(running_mean, running_var, momentum, call)
  nacre.no_grad(function()
    running_mean:lerp_(call.mean:to(running_mean.dtype), momentum)
    local unbiased = call.var * (call.n / (call.n - 1))
    running_var:lerp_(unbiased:to(running_var.dtype), momentum)
  end)
end

local Sync = all.batch_norm_layer("SyncBatchNorm", ", process_group:any=nil",
  "normalizes each channel over the batches of all ranks; evaluation uses the "
  .. "running statistics",
  function(x) all.check_min_dims("SyncBatchNorm", x, "input", 2) end)

function Sync:_normalize(x, mean, var, weight, bias, training, momentum, eps)
  local dist, group = nacre.distributed, rawget(self, "process_group")
  if not (training and self.training and dist.is_initialized() and
          dist.get_world_size(group) > 1) then
    return F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
  end
  Normalize = Normalize or nacre.autograd.Function {
    name = "sync_batch_norm", forward = forward, backward = backward}
  local call = {group = group, eps = eps}
  local y = Normalize(x, weight, bias, call)
  if mean then track(mean, var, momentum, call) end
  return y
end

function all.is_sync_batch_norm(m) return Sync:is(m) end

-- A SyncBatchNorm with the tensors and options of a BatchNorm layer.
local function converted(old, group)
  local new = Sync(old.num_features, old.eps, old.momentum, old.affine,
                   old.track_running_stats, group)
  for _, key in ipairs {"weight", "bias", "running_mean", "running_var",
                        "num_batches_tracked"} do
    rawset(new, key, rawget(old, key))
  end
  rawset(new, "_made", old._made)
  rawset(new, "training", old.training)
  return new
end

local function convert(m, group, done)
  if done[m] then return done[m] end
  done[m] = m.is_batch_norm and not Sync:is(m) and converted(m, group) or m
  for _, part in ipairs(all.members(m)) do
    if part.kind == "part" then
      local new = convert(part.value, group, done)
      if new ~= part.value then rawset(part.owner, part.key, new) end
    end
  end
  return done[m]
end

-- The module with a SyncBatchNorm in place of each BatchNorm layer; the
-- module itself, unless it is such a layer.
all.class_function(nn.SyncBatchNorm, "convert_sync_batchnorm",
                   "module:module, process_group:any=nil -> module",
function(module, process_group) return convert(module, process_group, {}) end)
