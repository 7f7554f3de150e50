-- SPDX-License-Identifier: MIT
-- layers.lua - layers of nacre.nn.functional without state: linear,
-- normalization, attention. Names, shapes and defaults are those of PyTorch.

local all = ...
all.require "nacre.checks"
local fail, widen = all.fail, all.widen
local check_float, check_dims = all.check_float, all.check_dims

local define = all.definer "nn.functional."

-- ---- operations that the core has under the same name

for _, name in ipairs {"relu", "gelu", "silu", "leaky_relu", "softmax",
    "log_softmax", "softmin", "elu", "selu", "celu", "softplus", "hardtanh",
    "relu6", "hardswish", "hardsigmoid", "mish", "softsign", "logsigmoid",
    "tanhshrink", "softshrink", "hardshrink", "threshold", "glu", "prelu",
    "tanh", "sigmoid", "pad", "linear"} do
  all.alias("nn.functional." .. name, nacre[name])
end

-- In place, as PyTorch has them as functions.
for _, name in ipairs {"relu_", "leaky_relu_", "elu_", "selu_", "celu_",
    "hardtanh_", "threshold_"} do
  all.alias("nn.functional." .. name, nacre._methods[name])
end

-- input1 [... x in1], input2 [... x in2] give [... x out].
define("bilinear",
       "input1:tensor, input2:tensor, weight:tensor, bias:tensor=nil",
       "products of two inputs by weight [out x in1 x in2], plus bias",
function(x1, x2, w, bias)
  check_dims("bilinear", w, "weight", 3)
  local y = nacre.einsum("...i,oij,...j->...o", x1, w, x2)
  return bias and y + bias or y
end)

-- ---- normalization

-- The arguments of _norm for the last dimensions, which must be `shape', as
-- must those of weight and bias, which are in `list' by name.
local function norm_arguments(op, x, shape, list)
  if op ~= "rms_norm" or not x:is_complex() then check_float(op, x, "input") end
  if type(shape) == "number" then shape = {shape} end
  local n, elements = #shape, 1
  local ok = n > 0 and n <= x:dim()
  for i = 1, n do
    ok = ok and x:size(i - n - 1) == shape[i]
    elements = elements * shape[i]
  end
  local text = table.concat(shape, "x")
  if not ok then
    fail(op, ("{input} does not end in the shape [%s]"):format(text), nil,
         "input", x)
  end
  for what, t in pairs(list) do
    if table.concat(t:size(), "x") ~= text then
      fail(op, ("{%s} must have the shape [%s]"):format(what, text), nil, what,
           t)
    end
  end
  return {elements, 1, 1}
end

-- Ba et al. 2016. The shape of the result is that of input.
define("layer_norm",
       "input:tensor, normalized_shape:ints, weight:tensor=nil, "
       .. "bias:tensor=nil, eps:num=1e-5",
       "mean 0 and variance 1 over the last dimensions, of that shape",
function(x, shape, weight, bias, eps)
  local over = norm_arguments("layer_norm", x, shape,
                          {weight = weight, bias = bias})
  return (nacre._norm(x, weight, bias, over, eps))
end)

-- the distance from 1 to the next number of the dtype
local epsilon = {float16 = 0x1p-10, bfloat16 = 0x1p-7, float32 = 0x1p-23,
                 float64 = 0x1p-52}

epsilon.complex64, epsilon.complex128 = epsilon.float32, epsilon.float64

-- rms_norm of complex numbers: the squares are not those of absolute values, as
-- in PyTorch.
local function complex_rms_norm(x, n, weight, eps)
  local dims = {}
  for d = 1, n do dims[d] = -d end
  local y = x * ((x * x):mean(dims, true) + eps):rsqrt()
  return weight and y * weight or y
end

-- Zhang and Sennrich 2019.
define("rms_norm",
       "input:tensor, normalized_shape:ints, weight:tensor=nil, eps:num=nil",
       "input over the root of its mean square over the last dimensions, of "
       .. "that shape; eps: the dtype's own",
function(x, shape, weight, eps)
  local over = norm_arguments("rms_norm", x, shape, {weight = weight})
  eps = eps or epsilon[x.dtype]
  if x:is_complex() then
    return complex_rms_norm(x, type(shape) == "table" and #shape or 1, weight,
                            eps)
  end
  return (nacre._norm(x, weight, nil, over, eps, false))
end)

-- The shape that broadcasts a value for each channel (dimension 2) to x. Fails
-- unless each tensor in `list' has one.
local function channel_shape(op, x, list)
  local size = {-1}
  for d = 3, x:dim() do size[d - 1] = 1 end
  for what, t in pairs(list) do
    if t:numel() ~= x:size(2) then
      fail(op,
           ("{%s} must have %s"):format(what, all.elements(x:size(2))), nil,
           what, t)
    end
  end
  return size
end

-- Moves the running statistics towards those of n elements by momentum; the
-- variance is the unbiased one, over n - 1.
local function update_running(rmean, rvar, mean, var, n, momentum)
  nacre.no_grad(function()
    if rmean then rmean:lerp_(mean:to(rmean.dtype), momentum) end
    if rvar then
      rvar:mul_(1 - momentum):add_(var:to(rvar.dtype),
                                   {alpha = momentum * n / (n - 1)})
    end
  end)
end

-- Ioffe and Szegedy 2015. x [n x c x ...]. Fails for fewer than 2 dimensions,
-- for training with one value in each channel, and without running statistics
-- otherwise.
local function batchnorm(op, x, rmean, rvar, weight, bias, training, momentum,
                         eps)
  check_float(op, x, "input")
  all.check_min_dims(op, x, "input", 2)
  local size = channel_shape(op, x, {running_mean = rmean, running_var = rvar,
                                  weight = weight, bias = bias})
  if training and x:numel() == 0 then   -- no values move no statistics
    rmean, rvar = x:new_zeros(x:size(2)), x:new_ones(x:size(2))
  elseif training then
    local n, channels = x:numel() // math.max(x:size(2), 1), x:size(2)
    if n <= 1 then
      fail(op, "training needs more than one value of each channel", nil,
           "input", x)
    end
    local y, mean, var = nacre._norm(x, weight, bias,
                                     {channels, n // x:size(1), channels},
                                     eps, true, true)
    update_running(rmean, rvar, mean, var, n, momentum)
    return y
  end
  if not rmean or not rvar then
    fail(op, "running_mean and running_var are needed unless training")
  end
  local scale = (widen(rvar) + eps):rsqrt()
  if weight then scale = scale * widen(weight):reshape(-1) end
  local shift = -scale * widen(rmean):reshape(-1)
  if bias then shift = shift + widen(bias):reshape(-1) end
  local y = nacre.addcmul(shift:reshape(size), widen(x), scale:reshape(size))
  return all.convert_back(y, x)
end

define("batch_norm",
       "input:tensor, running_mean:tensor=nil, running_var:tensor=nil, "
       .. "weight:tensor=nil, bias:tensor=nil, training:bool=false, "
       .. "momentum:num=0.1, eps:num=1e-5",
       "mean 0 and variance 1 of each channel, over the batch; training also "
       .. "moves the running statistics, which are used otherwise",
       function(...) return batchnorm("batch_norm", ...) end)

-- Wu and He 2018. x [n x c x ...]; returns the result, and mean and variance of
-- each group. Fails unless groups divides c; group_norm also where samples have
-- no elements.
local function groupnorm(op, x, groups, weight, bias, eps)
  check_float(op, x, "input")
  all.check_min_dims(op, x, "input", 2)
  if groups < 1 or x:size(2) % groups ~= 0 then
    fail(op,
         ("%d channels are not divisible by %d groups"):format(x:size(2),
                                                               groups),
         nil, "input", x)
  end
  channel_shape(op, x, {weight = weight, bias = bias})
  local channels = x:size(2)
  for d = 2, op == "group_norm" and x:dim() or 1 do
    if x:size(d) == 0 then
      fail(op, "a sample has no elements", nil, "input", x)
    end
  end
  local inner = x:numel() // math.max(x:size(1) * channels, 1)
  return nacre._norm(x, weight, bias, {channels, inner, groups}, eps)
end

define("group_norm",
       "input:tensor, num_groups:int, weight:tensor=nil, bias:tensor=nil, "
       .. "eps:num=1e-5",
       "mean 0 and variance 1 of groups of channels, each sample by itself",
       function(...) return (groupnorm("group_norm", ...)) end)
-- group_norm with one channel in each group, for 3 to 5 dimensions.
define("instance_norm",
       "input:tensor, running_mean:tensor=nil, running_var:tensor=nil, "
       .. "weight:tensor=nil, bias:tensor=nil, use_input_stats:bool=true, "
       .. "momentum:num=0.1, eps:num=1e-5",
       "mean 0 and variance 1 of each channel of each sample; also moves the "
       .. "running statistics, which are used without use_input_stats",
function(x, rmean, rvar, weight, bias, own, momentum, eps)
  local op = "instance_norm"
  check_dims(op, x, "input", 3, 4, 5)
  if not own then
    return batchnorm(op, x, rmean, rvar, weight, bias, false, momentum, eps)
  end
  channel_shape(op, x, {running_mean = rmean, running_var = rvar})
  local y, mean, var = groupnorm(op, x, math.max(1, x:size(2)), weight, bias,
                                 eps)
  if (rmean or rvar) and x:numel() > 0 then
    local rows = {x:size(1), x:size(2)}
    mean, var = mean:reshape(rows):mean(1), var:reshape(rows):mean(1)
    local n = x:numel() // (rows[1] * rows[2])
    update_running(rmean, rvar, mean, var, n, momentum)
  end
  return y
end)

define("normalize", "input:tensor, p:num=2, dim:any=2, eps:num=1e-12",
       "input over its norm of order p along dim",
       function(x, p, dim, eps)
  if x:is_complex() then return x / x:norm(p, dim, true):clamp(eps) end
  return all.convert_back(nacre._normalize(widen(x), p, dim, eps), x)
end)

-- ---- distances

-- May products of vectors with these norms leave the range of float32?
local function has_extremes(norm)
  return all.may_be(norm:gt(1e15):logical_or(norm:lt(1e-15)))
end

-- x1 is divided first where the products would not have the range of x2.
define("cosine_similarity", "x1:tensor, x2:tensor, dim:int=2, eps:num=1e-8",
       "cosine of the angle between x1 and x2 along dim",
function(a, b, dim, eps)
  check_float("cosine_similarity", a, "x1")
  check_float("cosine_similarity", b, "x2")
  if not a:is_same_size(b) then
    a, b = table.unpack(nacre.broadcast_tensors {a, b})
  end
  local x, y, z = widen(a), widen(b), nil
  local of, by = x:norm(2, dim, true), y:norm(2, dim)
  if has_extremes(of) or has_extremes(by) then
    z = (x / of:clamp(eps) * y):sum(dim) / by:clamp(eps)
  else
    z = (x * y):sum(dim) / (of:squeeze(dim):clamp(eps) * by:clamp(eps))
  end
  return a.dtype == b.dtype and all.convert_back(z, a) or z
end)

define("pairwise_distance",
       "x1:tensor, x2:tensor, p:num=2, eps:num=1e-6, keepdim:bool=false",
       "norm of order p of x1 - x2 + eps along the last dimension",
       all.distance)

-- input [n x c x ...] or [c x ...] of a float dtype (Krizhevsky et al. 2012).
-- Sums run over `size' neighbouring channels. Fails for fewer than 3 dimensions
-- and for size 0.
define("local_response_norm",
       "input:tensor, size:int, alpha:num=1e-4, beta:num=0.75, k:num=1",
       "input / (k + alpha/size * sum of squares over neighbouring "
       .. "channels)^beta",
function(x, size, alpha, beta, k)
  local op = "local_response_norm"
  check_float(op, x, "input")
  all.check_min_dims(op, x, "input", 3)
  if size < 1 then
    fail(op, ("size is %d, but must be above 0"):format(size))
  end
  local squares = (x * x):flatten(3):transpose(2, 3)
  local sums = nacre.pad(squares, {size // 2, (size - 1) // 2})
               :unfold(-1, size, 1):mean(-1)
  local scale = (sums:transpose(2, 3) * alpha + k) ^ beta
  return x / scale:reshape(x:size())
end)

-- ---- attention

-- Repeats the heads of key or value t [... x h x m x e] for those of query, of
-- which several share one.
local function repeat_heads(op, q, t)
  local have, want = t:size(-3), q:size(-3)
  if want % have ~= 0 then
    fail(op, ("{query} has %d heads, which is not a multiple of %d")
           :format(want, have),
         nil, "query", q, "key", t)
  end
  return t:repeat_interleave(want // have, -3)
end

-- The sizes before the last `skip' to which those of all tensors broadcast, or
-- nil.
local function broadcast_sizes(skip, ...)
  local sizes = {}
  for _, t in ipairs {...} do
    local n = t:dim() - skip
    for i = 1, n do                     -- counted from the last one
      local size = t:size(n + 1 - i)
      if sizes[i] and sizes[i] ~= 1 and size ~= 1 and sizes[i] ~= size then
        return nil
      end
      if not sizes[i] or sizes[i] == 1 then sizes[i] = size end
    end
  end
  local list = {}
  for i = #sizes, 1, -1 do list[#list + 1] = sizes[i] end
  return list
end

-- Does the mask broadcast to [leading x n x m]?
local function fits_mask(mask, q, k, leading)
  local extra = #leading + 2 - mask:dim()
  for i = 1, mask:dim() do
    local size = mask:size(-i)
    local want = i == 1 and k:size(-2) or i == 2 and q:size(-2) or
                 leading[#leading + 3 - i]
    if size ~= 1 and size ~= want then return false end
  end
  return extra >= 0
end

-- The leading sizes of all matrices if it is work for the operator _attention,
-- which leaves no scores in memory. Errors of shapes, dtypes and devices are
-- those of the operations that do it otherwise.
local function attention_sizes(q, k, v, mask)
  if k.device ~= q.device or v.device ~= q.device or
     not q:is_floating_point() or
     k.dtype ~= q.dtype or v.dtype ~= q.dtype or q:size(-1) ~= k:size(-1) or
     k:size(-2) ~= v:size(-2) then
    return nil
  end
  local leading = broadcast_sizes(2, q, k, v)
  if not mask or not leading then return leading end
  if mask.requires_grad or mask.device ~= q.device or
     mask.dtype ~= "bool" and mask.dtype ~= q.dtype then
    return nil
  end
  return fits_mask(mask, q, k, leading) and leading or nil
end

-- t with these leading sizes.
local function with_leading(t, leading)
  local size = table.move(leading, 1, #leading, 1, {})
  size[#size + 1], size[#size + 2] = t:size(-2), t:size(-1)
  return t:expand(size)
end

-- An additive mask [n x m] for all matrices.
local function additive_mask(mask, q, k, leading)
  local size = table.move(leading, 1, #leading, 1, {})
  size[#size + 1], size[#size + 2] = q:size(-2), k:size(-2)
  if mask.dtype == "bool" then
    mask = nacre.zeros(mask:size(), {dtype = q.dtype, device = mask.device})
           :masked_fill(mask:logical_not(), -math.huge)
  end
  return mask:expand(size)
end

-- Key and value with 0 where no query sees a key, so that nothing is read of
-- it: padding may hold nan.
local function hide_unseen(mask, k, v)
  local m, sees = mask:dim() > 0 and mask:size(-1) or 1, mask
  if k:size(-2) ~= v:size(-2) or m ~= 1 and m ~= k:size(-2) or
     mask.device ~= k.device or not broadcast_sizes(2, k, v, mask) or
     k.dtype == "bool" or v.dtype == "bool" then
    return k, v                         -- the operations say what is wrong
  end
  if mask.dtype ~= "bool" then sees = mask:detach():ne(-math.huge) end
  while sees:dim() < 2 do sees = sees:unsqueeze(1) end
  local unseen = sees:any(-2, true):logical_not():transpose(-2, -1)
  if not all.may_be(unseen) then return k, v end
  return nacre.where(unseen, 0, k), nacre.where(unseen, 0, v)
end

-- Vaswani et al. 2017. query [... x n x e], key [... x m x e], value [... x m x
-- v] give [... x n x v]; mask [... x n x m]. With enable_gqa (Ainslie et al.
-- 2023) the dimension before the last two are heads, fewer in key and value.
-- Fails for fewer than 2 dimensions and for a mask together with is_causal.
define("scaled_dot_product_attention",
       "query:tensor, key:tensor, value:tensor, attn_mask:tensor=nil, "
       .. "dropout_p:num=0, is_causal:bool=false, *, scale:num=nil, "
       .. "enable_gqa:bool=false",
       "softmax(query key' scale + mask) value; a bool mask says what takes "
       .. "part",
function(q, k, v, mask, p, causal, scale, gqa)
  local op = "scaled_dot_product_attention"
  local least = gqa and 3 or 2
  if q:dim() < least or k:dim() < least or v:dim() < least then
    fail(op, gqa and "needs heads of matrices: at least 3 dimensions"
             or "needs matrices, or batches of them", nil, "query", q, "key", k)
  end
  if mask and causal then
    fail(op, "attn_mask and is_causal exclude each other")
  end
  if gqa then k, v = repeat_heads(op, q, k), repeat_heads(op, q, v) end
  scale = scale or 1 / math.sqrt(math.max(q:size(-1), 1))
  local leading = p == 0 and attention_sizes(q, k, v, mask)
  if mask then k, v = hide_unseen(mask, k, v) end
  if leading then
    q, k, v = with_leading(q, leading), with_leading(k, leading),
              with_leading(v, leading)
    mask = mask and additive_mask(mask, q, k, leading)
    return (nacre._attention(q, k, v, mask, causal, scale))
  end
  local weights = nacre._attention_weights(q, k, mask, causal, scale)
  return all.drop(op, weights, p, true, weights:size()):matmul(v)
end)
