-- SPDX-License-Identifier: MIT
-- layers.lua - layers of nacre.nn.functional without state: linear, embedding,
-- dropout, normalization, attention. Names, shapes and defaults are those of
-- PyTorch, but rows and classes count from 1.

local all = ...
local fail, widen = all.fail, all.widen
local check_float, check_dims = all.check_float, all.check_dims
local check_same_dtype = all.check_same_dtype

local define = all.definer "nn.functional."

-- ---- operations that the core has under the same name

for _, name in ipairs {"relu", "gelu", "silu", "leaky_relu", "softmax",
    "log_softmax", "softmin", "elu", "selu", "celu", "softplus", "hardtanh",
    "relu6", "hardswish", "hardsigmoid", "mish", "softsign", "logsigmoid",
    "tanhshrink", "softshrink", "hardshrink", "threshold", "glu", "prelu",
    "tanh", "sigmoid", "pad"} do
  all.alias("nn.functional." .. name, nacre[name])
end

-- ---- linear layers

-- input [... x in], weight [out x in] or [in], bias [out] give [... x out] or
-- [...]. Fails if features, dtypes or the size of bias differ.
define("linear", "input:tensor, weight:tensor, bias:tensor=nil",
       "input times the transpose of weight [out x in], plus bias",
function(x, w, bias)
  local op = "linear"
  check_dims(op, w, "weight", 1, 2)
  check_same_dtype(op, "input", x, "weight", w)
  if x:dim() == 0 or x:size(-1) ~= w:size(-1) then
    fail(op, ("{input} has %s features, {weight} takes %d")
             :format(x:dim() > 0 and x:size(-1) or "no", w:size(-1)),
         nil, "input", x, "weight", w)
  end
  if bias then check_same_dtype(op, "input", x, "bias", bias) end
  if w:dim() == 1 then
    local y = x:matmul(w)
    return bias and y + bias or y
  end
  if bias and x:dim() == 2 and bias:dim() == 1 and
      bias:size(1) == w:size(1) then
    return bias:addmm(x, w:t())
  end
  local y = x:matmul(w:t())
  if bias and (bias:dim() > 1 or
      bias:numel() ~= 1 and bias:size(-1) ~= w:size(1)) then
    fail(op,
         "{bias} must have " .. all.elements(w:size(1)), nil, "bias", bias)
  end
  return bias and y + bias or y
end)

-- input1 [... x in1], input2 [... x in2] give [... x out].
define("bilinear",
       "input1:tensor, input2:tensor, weight:tensor, bias:tensor=nil",
       "products of two inputs by weight [out x in1 x in2], plus bias",
function(x1, x2, w, bias)
  check_dims("bilinear", w, "weight", 3)
  local y = nacre.einsum("...i,oij,...j->...o", x1, w, x2)
  return bias and y + bias or y
end)

-- input [...] of int64 or int32, weight [n x k] give [... x k]. Fails for a row
-- out of 1 to n.
define("embedding", "input:tensor, weight:tensor, padding_idx:int=nil",
       "rows of weight by their numbers, from 1; padding_idx gets no gradient",
function(at, w, padding)
  local op = "embedding"
  check_dims(op, w, "weight", 2)
  if at.dtype ~= "int64" and at.dtype ~= "int32" then
    fail(op,
         ("{input} is %s, numbers of rows are int64 or int32"):format(at.dtype),
         nil, "input", at)
  end
  if at:numel() > 0 and at:min():item() < 1 then
    fail(op,
         ("row %d does not exist: they count from 1"):format(at:min():item()),
         nil, "input", at)
  end
  local n = w:size(1)
  if at:numel() > 0 and at:max():item() > n then
    fail(op,
         ("row %d does not exist: {weight} has %d"):format(at:max():item(), n),
         nil, "input", at, "weight", w)
  end
  local y = w[at:reshape(-1):to("int64")]
  local size = at:size()
  size[#size + 1] = w:size(2)
  y = y:reshape(size)
  if not padding then return y end
  if padding < 0 then padding = padding + n + 1 end
  if padding < 1 or padding > n then
    fail(op, ("padding_idx must be a row of weight, which has %d"):format(n))
  end
  return nacre.where(at:eq(padding):unsqueeze(-1), y:detach(), y)
end)

-- [...] of int64 gives [... x num_classes] of int64. Fails for a class out of 1
-- to num_classes.
define("one_hot", "tensor, num_classes:int=-1",
       "classes, from 1, as rows with a 1; by default as many as the largest",
function(t, n)
  local op = "one_hot"
  if t.dtype ~= "int64" then
    fail(op,
         ("classes must be int64, not %s"):format(t.dtype), nil, "tensor", t)
  end
  if t:numel() == 0 and n < 1 then
    fail(op, "num_classes is needed if there are no classes", nil, "tensor", t)
  end
  local low = t:numel() > 0 and t:min():item() or 1
  local high = t:numel() > 0 and t:max():item() or 1
  if low < 1 then
    fail(op, ("class %d: they count from 1"):format(low), nil, "tensor", t)
  end
  if n == -1 then n = high end
  if n < 1 then
    fail(op, ("num_classes is %d, but must be above 0"):format(n))
  end
  if high > n then
    fail(op, ("class %d of %d"):format(high, n), nil, "tensor", t)
  end
  all.room(op, t, {n})
  return t:unsqueeze(-1):eq(nacre.range(1, n,
                                        {device = t.device})):to("int64")
end)

-- ---- dropout (Srivastava et al. 2014)

-- Multiplies x by a random mask of shape `size', which broadcasts. Fails if p
-- is outside 0 to 1.
local function drop(op, x, p, training, size)
  if not (p >= 0 and p <= 1) then
    fail(op, ("p is %g, but must be from 0 to 1"):format(p))
  end
  if not training or p == 0 then return x end
  if p == 1 then return x * 0 end
  local keep = nacre.rand(size, {dtype = "float32", device = x.device}):ge(p)
  return x * (keep:to(x.dtype) / (1 - p))
end

define("dropout", "input:tensor, p:num=0.5, training:bool=true",
       "elements become 0 with probability p, the others grow by 1/(1-p)",
       function(x, p, training) return drop("dropout", x, p, training,
                                               x:size()) end)

-- dropout of whole channels: the mask has size 1 in the last nd dimensions.
local function channel_dropout(op, nd)
  return function(x, p, training)
    check_dims(op, x, "input", nd + 1, nd + 2)
    local size = x:size()
    for i = #size - nd + 1, #size do size[i] = 1 end
    return drop(op, x, p, training, size)
  end
end

define("dropout1d", "input:tensor, p:num=0.5, training:bool=true",
       "dropout of whole channels [n x c x l]", channel_dropout("dropout1d", 1))
define("dropout2d", "input:tensor, p:num=0.5, training:bool=true",
       "dropout of whole channels [n x c x h x w]",
       channel_dropout("dropout2d", 2))

-- ---- normalization

-- The arguments of _norm for the last dimensions, which must be `shape', as
-- must those of weight and bias, which are in `list' by name.
local function norm_arguments(op, x, shape, list)
  check_float(op, x, "input")
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

-- Zhang and Sennrich 2019.
define("rms_norm",
       "input:tensor, normalized_shape:ints, weight:tensor=nil, eps:num=nil",
       "input over the root of its mean square over the last dimensions, of "
       .. "that shape; eps: the dtype's own",
function(x, shape, weight, eps)
  local over = norm_arguments("rms_norm", x, shape, {weight = weight})
  eps = eps or epsilon[x.dtype]
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
    if rmean then
      rmean:mul_(1 - momentum):add_((mean * momentum):to(rmean.dtype))
    end
    if rvar then
      local unbiased = var * (momentum * n / (n - 1))
      rvar:mul_(1 - momentum):add_(unbiased:to(rvar.dtype))
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
  if training then
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
  local y = (widen(x) - widen(rmean):reshape(size)) * scale:reshape(size)
  if bias then y = y + widen(bias):reshape(size) end
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
-- each group. Fails unless groups divides c.
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
  local y, mean, var = groupnorm(op, x, x:size(2), weight, bias, eps)
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
  return x / x:norm(p, dim, true):clamp(eps):expand_as(x)
end)

-- ---- distances

define("cosine_similarity", "x1:tensor, x2:tensor, dim:int=2, eps:num=1e-8",
       "cosine of the angle between x1 and x2 along dim",
function(a, b, dim, eps)
  check_float("cosine_similarity", a, "x1")
  check_float("cosine_similarity", b, "x2")
  if not a:is_same_size(b) then
    a, b = table.unpack(nacre.broadcast_tensors {a, b})
  end
  return (a * b):sum(dim) / (a:norm(2, dim):clamp(eps) *
                             b:norm(2, dim):clamp(eps))
end)

define("pairwise_distance",
       "x1:tensor, x2:tensor, p:num=2, eps:num=1e-6, keepdim:bool=false",
       "norm of order p of x1 - x2 + eps along the last dimension",
       function(a, b, p, eps, keepdim) return (a - b + eps):norm(p, -1,
                                                                 keepdim) end)

-- ---- attention

-- Vaswani et al. 2017. query [... x n x e], key [... x m x e], value [... x m x
-- v] give [... x n x v]; mask [... x n x m]. Fails for fewer than 2 dimensions
-- and for a mask together with is_causal.
define("scaled_dot_product_attention",
       "query:tensor, key:tensor, value:tensor, attn_mask:tensor=nil, "
       .. "dropout_p:num=0, is_causal:bool=false, *, scale:num=nil",
       "softmax(query key' scale + mask) value; a bool mask says what takes "
       .. "part",
function(q, k, v, mask, p, causal, scale)
  local op = "scaled_dot_product_attention"
  if q:dim() < 2 or k:dim() < 2 or v:dim() < 2 then
    fail(op, "needs matrices, or batches of them", nil, "query", q, "key", k)
  end
  if mask and causal then
    fail(op, "attn_mask and is_causal exclude each other")
  end
  local s = q:matmul(k:transpose(-2, -1)) * (scale or 1 / math.sqrt(q:size(-1)))
  if causal then
    local n, m = q:size(-2), k:size(-2)
    mask = nacre.range(1, n, {device = q.device}):unsqueeze(2)
           :ge(nacre.range(1, m, {device = q.device}))
  end
  if mask and mask.dtype == "bool" then s = nacre.where(mask, s, -math.huge)
  elseif mask then s = s + mask end
  return drop(op, s:softmax(-1), p, true, s:size()):matmul(v)
end)
