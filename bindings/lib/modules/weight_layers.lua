-- SPDX-License-Identifier: MIT
-- weight_layers.lua - linear layers, convolutions, normalization and embedding:
-- modules with parameters. Names, arguments, keys, shapes and initial
-- distributions are those of PyTorch.
local all = ...
all.require("nacre.guards", "nacre.module")
local fail, layer = all.fail, all.weight_layer
local nn, F = all.space "nn", all.space "nn.functional"
local Parameter = nn.Parameter

-- A parameter drawn from the uniform distribution between -bound and bound.
local function uniform(bound, ...)
  return Parameter(nacre.empty(...):uniform_(-bound, bound))
end
all.uniform_parameter = uniform

-- ---- linear layers

local Linear = layer("Linear",
                     "in_features:int, out_features:int, bias:bool=true",
                     "input times the transpose of weight, plus bias", nil,
function(self, n, m, bias)
  local bound = n > 0 and 1 / math.sqrt(n) or 0
  self.weight = uniform(bound, m, n)
  if bias then self.bias = uniform(bound, m) end
end)
function Linear:forward(x) return F.linear(x, self.weight, self.bias) end

local Bilinear = layer("Bilinear", "in1_features:int, in2_features:int, "
                       .. "out_features:int, bias:bool=true",
                       "x1 times weight[k] times x2 for each output k, plus "
                       .. "bias", nil,
function(self, a, b, out, bias)
  self.weight = uniform(1 / math.sqrt(a), out, a, b)
  if bias then self.bias = uniform(1 / math.sqrt(a), out) end
end)
function Bilinear:forward(x, y)
  return F.bilinear(x, y, self.weight, self.bias or nil)
end

-- ---- convolutions

-- A list of n numbers: v itself, or the number v n times.
local function repeated(v, n)
  if type(v) == "table" then return v end
  local list = {}
  for i = 1, n do list[i] = v end
  return list
end

local function product(list)
  local n = 1
  for _, v in ipairs(list) do n = n * v end
  return n
end

local function check_groups(name, channels, what, groups)
  if groups < 1 or channels % groups ~= 0 then
    fail(name, ("%d %s are not divisible by %d groups")
               :format(channels, what, groups))
  end
end

-- The sides of F.pad that pad each of nd dimensions as the convolution would;
-- F.pad begins with the last.
local function pad_sides(self, nd)
  local sides = {}
  local kernel, dilation = repeated(self.kernel_size, nd),
                           repeated(self.dilation, nd)
  for d = nd, 1, -1 do
    local before, after
    if self.padding == "same" then
      local total = dilation[d] * (kernel[d] - 1)
      before, after = total // 2, total - total // 2
    else
      before = self.padding == "valid" and 0 or repeated(self.padding, nd)[d]
      after = before
    end
    sides[#sides + 1] = before
    sides[#sides + 1] = after
  end
  return sides
end

local function define_conv(nd)
  local name, conv = ("Conv%dd"):format(nd), F[("conv%dd"):format(nd)]
  local Conv = layer(name,
    "in_channels:int, out_channels:int, kernel_size:ints, stride:ints=1, "
    .. "padding:any|same|valid=0, dilation:ints=1, groups:int=1, "
    .. "bias:bool=true, "
    .. "padding_mode:zeros|reflect|replicate|circular=zeros",
    "convolution with " .. nd .. (nd == 1 and " dimension" or " dimensions"),
    nil,
  function(self, n, m, kernel, _, _, _, groups, bias)
    check_groups(name, n, "in_channels", groups)
    check_groups(name, m, "out_channels", groups)
    kernel = repeated(kernel, nd)
    local bound = 1 / math.sqrt(n // groups * product(kernel))
    self.weight = uniform(bound, {m, n // groups, table.unpack(kernel)})
    if bias then self.bias = uniform(bound, m) end
  end)
  function Conv:forward(x)
    local padding = self.padding
    if self.padding_mode ~= "zeros" then
      x, padding = F.pad(x, pad_sides(self, nd), self.padding_mode), 0
    end
    return conv(x, self.weight, self.bias or nil, self.stride, padding,
                self.dilation, self.groups)
  end
end

local function define_conv_transpose(nd)
  local name = ("ConvTranspose%dd"):format(nd)
  local conv = F[("conv_transpose%dd"):format(nd)]
  local Conv = layer(name,
    "in_channels:int, out_channels:int, kernel_size:ints, stride:ints=1, "
    .. "padding:ints=0, output_padding:ints=0, groups:int=1, bias:bool=true, "
    .. "dilation:ints=1",
    "the gradient of a convolution with respect to its input, as a layer", nil,
  function(self, n, m, kernel, _, _, _, groups, bias)
    check_groups(name, n, "in_channels", groups)
    check_groups(name, m, "out_channels", groups)
    kernel = repeated(kernel, nd)
    local bound = 1 / math.sqrt(m // groups * product(kernel))
    self.weight = uniform(bound, {n, m // groups, table.unpack(kernel)})
    if bias then self.bias = uniform(bound, m) end
  end)
  -- The output padding that gives the sizes output_size.
  local function output_padding(self, x, output_size)
    if output_size == nil then return self.output_padding end
    all.check_dims(name, x, "input", nd + 1, nd + 2)
    if type(output_size) ~= "table" or
       not math.tointeger(output_size[#output_size]) then
      fail(name, "output_size must be a list of sizes")
    end
    local list, first = {}, #output_size - nd
    local kernel, stride = repeated(self.kernel_size, nd),
                           repeated(self.stride, nd)
    local padding, dilation = repeated(self.padding, nd),
                              repeated(self.dilation, nd)
    for d = 1, nd do
      local least = (x:size(d - nd - 1) - 1) * stride[d] - 2 * padding[d] +
                    dilation[d] * (kernel[d] - 1) + 1
      list[d] = output_size[first + d] - least
      if list[d] < 0 or list[d] >= stride[d] then
        fail(name, ("an output size of %d is not between %d and %d")
                   :format(output_size[first + d], least,
                           least + stride[d] - 1))
      end
    end
    return list
  end
  function Conv:forward(x, output_size)
    return conv(x, self.weight, self.bias or nil, self.stride, self.padding,
                output_padding(self, x, output_size), self.groups,
                self.dilation)
  end
end

for nd = 1, 3 do
  define_conv(nd)
  define_conv_transpose(nd)
end

-- ---- normalization

-- Sets weight 1 and bias 0 of these sizes.
local function set_affine(self, sizes, bias)
  self.weight = Parameter(nacre.ones(sizes))
  if bias then self.bias = Parameter(nacre.zeros(sizes)) end
end

local function set_running(self, n)
  self:register_buffer("running_mean", nacre.zeros(n))
  self:register_buffer("running_var", nacre.ones(n))
  self:register_buffer("num_batches_tracked",
                       nacre.zeros({}, {dtype = "int64"}))
end

local function reset_running_stats(self)
  if not rawget(self, "running_mean") then return end
  self.running_mean:zero_()
  self.running_var:fill_(1)
  self.num_batches_tracked:zero_()
end

-- The weight of this batch in the running statistics. With momentum false all
-- batches count alike.
local function momentum_of(self)
  if self.momentum then return self.momentum end
  return 1 / self.num_batches_tracked:item()
end

-- Fails unless x has n channels, in dimension d.
local function check_channels(name, x, d, n)
  if x:size(d) ~= n then
    fail(name, ("{input} has %d channels, the layer takes %d")
               :format(x:size(d), n), nil, "input", x)
  end
end

-- A layer that normalizes each channel over the batch, by _normalize, which has
-- the arguments of F.batch_norm; check(x) fails for a wrong number of
-- dimensions.
function all.batch_norm_layer(name, more, doc, check)
  local Norm = layer(name,
    "num_features:int, eps:num=1e-5, momentum:any=0.1, affine:bool=true, "
    .. "track_running_stats:bool=true" .. more, doc, nil,
  function(self, n, _, _, affine, track)
    if affine then set_affine(self, {n}, true) end
    if track then set_running(self, n) end
  end)
  Norm.is_batch_norm, Norm.reset_running_stats = true, reset_running_stats
  function Norm._normalize(_, ...) return F.batch_norm(...) end
  function Norm:forward(x)
    check(x)
    check_channels(name, x, 2, self.num_features)
    local mean = rawget(self, "running_mean")
    local momentum = 0
    if self.training and mean then
      self.num_batches_tracked:add_(1)
      momentum = momentum_of(self)
    end
    return self:_normalize(x, mean, rawget(self, "running_var"),
                           rawget(self, "weight"), rawget(self, "bias"),
                           self.training or mean == nil, momentum, self.eps)
  end
  return Norm
end

local function define_batch_norm(nd, ...)
  local name, dims = ("BatchNorm%dd"):format(nd), {...}
  all.batch_norm_layer(name, "", "normalizes each channel over the batch; "
                                 .. "evaluation uses the running statistics",
    function(x) all.check_dims(name, x, "input", table.unpack(dims)) end)
end

local function define_instance_norm(nd)
  local name = ("InstanceNorm%dd"):format(nd)
  local Norm = layer(name,
    "num_features:int, eps:num=1e-5, momentum:any=0.1, affine:bool=false, "
    .. "track_running_stats:bool=false",
    "normalizes each channel of each sample", nil,
  function(self, n, _, _, affine, track)
    if affine then set_affine(self, {n}, true) end
    if track then set_running(self, n) end
  end)
  Norm.reset_running_stats = reset_running_stats
  function Norm:forward(x)
    all.check_dims(name, x, "input", nd + 1, nd + 2)
    local single = x:dim() == nd + 1
    local mean = rawget(self, "running_mean")
    if mean or self.affine then     -- as in PyTorch any number else
      check_channels(name, x, -nd - 1, self.num_features)
    end
    local y = F.instance_norm(single and x:unsqueeze(1) or x, mean,
      rawget(self, "running_var"), rawget(self, "weight"),
      rawget(self, "bias"), self.training or mean == nil,
      self.momentum or 0, self.eps)
    return single and y:squeeze(1) or y
  end
end

define_batch_norm(1, 2, 3)
define_batch_norm(2, 4)
define_batch_norm(3, 5)
for nd = 1, 3 do define_instance_norm(nd) end

local GroupNorm = layer("GroupNorm",
  "num_groups:int, num_channels:int, eps:num=1e-5, affine:bool=true",
  "normalizes groups of channels of each sample", nil,
function(self, groups, n, _, affine)
  check_groups("GroupNorm", n, "channels", groups)
  if affine then set_affine(self, {n}, true) end
end)
function GroupNorm:forward(x)
  all.check_min_dims("GroupNorm", x, "input", 2)
  check_channels("GroupNorm", x, 2, self.num_channels)
  return F.group_norm(x, self.num_groups, rawget(self, "weight"),
                      rawget(self, "bias"), self.eps)
end

local LayerNorm = layer("LayerNorm",
  "normalized_shape:ints, eps:num=1e-5, elementwise_affine:bool=true, "
  .. "bias:bool=true",
  "normalizes the last dimensions", nil,
function(self, sizes, _, affine, bias)
  self.normalized_shape = repeated(sizes, 1)
  if affine then set_affine(self, self.normalized_shape, bias) end
end)
function LayerNorm:forward(x)
  return F.layer_norm(x, self.normalized_shape,
                      self.elementwise_affine and self.weight or nil,
                      self.elementwise_affine and self.bias or nil, self.eps)
end

local RMSNorm = layer("RMSNorm",
  "normalized_shape:ints, eps:num=nil, elementwise_affine:bool=true",
  "divides by the root mean square of the last dimensions", nil,
function(self, sizes, _, affine)
  self.normalized_shape = repeated(sizes, 1)
  if affine then set_affine(self, self.normalized_shape) end
end)
function RMSNorm:forward(x)
  return F.rms_norm(x, self.normalized_shape, rawget(self, "weight"),
                    rawget(self, "eps"))
end

-- ---- others

local PReLU = layer("PReLU", "num_parameters:int=1, init:num=0.25",
                    "x, or weight*x below 0", nil,
function(self, n, init) self.weight = Parameter(nacre.full({n}, init)) end)
function PReLU:forward(x) return F.prelu(x, self.weight) end

-- Rows drawn from N(0, 1); that of padding_idx is 0.
local function embedding_rows(op, n, m, padding)
  local row = all.padding_row(op, padding, n)
  local w = nacre.randn(n, m)
  if row then w[row] = 0 end
  return Parameter(w)
end

local Embedding = layer("Embedding",
  "num_embeddings:int, embedding_dim:int, padding_idx:int=nil, "
  .. "max_norm:num=nil, norm_type:num=2, scale_grad_by_freq:bool=false",
  "rows of weight by number, counted from 1", nil,
function(self, n, m, padding)
  self.weight = embedding_rows("Embedding", n, m, padding)
end)
function Embedding:forward(x)
  return F.embedding(x, self.weight, rawget(self, "padding_idx"),
                     rawget(self, "max_norm"), self.norm_type,
                     self.scale_grad_by_freq)
end

local EmbeddingBag = layer("EmbeddingBag",
  "num_embeddings:int, embedding_dim:int, max_norm:num=nil, norm_type:num=2, "
  .. "scale_grad_by_freq:bool=false, mode:sum|mean|max=mean, "
  .. "include_last_offset:bool=false, padding_idx:int=nil",
  "sums, means or maxima of bags of rows of weight", nil,
function(self, n, m, _, _, _, _, _, padding)
  self.weight = embedding_rows("EmbeddingBag", n, m, padding)
end)
function EmbeddingBag:forward(x, offsets, weights)
  return F.embedding_bag(x, self.weight, offsets, rawget(self, "max_norm"),
                         self.norm_type, self.scale_grad_by_freq, self.mode,
                         weights,
                         self.include_last_offset,
                         rawget(self, "padding_idx"))
end

-- A table instead of F.embedding's weight, as PyTorch's from_pretrained.
all.class_function(Embedding, "from_pretrained",
  "embeddings:tensor, freeze:bool=true, padding_idx:int=nil -> module",
function(weight, freeze, padding)
  all.check_dims("from_pretrained", weight, "embeddings", 2)
  local self = nn.Embedding(weight:size(1), weight:size(2),
                            {padding_idx = padding})
  self.weight = all.declare(weight:detach())
  self.weight:requires_grad_(not freeze)
  return self
end)
