-- SPDX-License-Identifier: MIT
-- function_layers.lua - modules without parameters, each made from a function
-- of nn.functional: the first operands of the function are the arguments of
-- forward, its other arguments are those of the constructor. `training' is
-- that of the module; tensors, such as the weight of a loss, become
-- buffers.
local all = ...
all.require "nacre.module"
local nn, F = all.space "nn", all.space "nn.functional"

-- The parameter p as text for a signature.
local function declaration(p)
  local default = p.default
  if type(default) == "number" then default = plain_format("%.17g", default) end
  local kind = p.choices and not p.open and "" or p.type
  if p.choices then kind = kind .. (p.open and "|" or "") .. p.choices end
  return p.name .. ":" .. kind ..
         (p.optional and "=" .. tostring(default) or "")
end
all.declaration = declaration

-- Splits the parameters of a function: the number of operands, the declarations
-- of those of the constructor, and all names after the operands in order.
local function split(params, operands)
  local options, names = {}, {}
  for i, p in ipairs(params) do
    if not operands and not (p.type == "tensor" and not p.optional) then
      operands = i - 1
    end
    if operands and i > operands and p.name ~= "dtype" then
      names[#names + 1] = p.name
      if p.name ~= "training" then options[#options + 1] = declaration(p) end
    end
  end
  return operands or #params, options, names
end

-- Registers the tensors among the arguments as buffers.
local function init_buffers(self, ...)
  for i, p in ipairs(self._signature.params) do
    local v = select(i, ...)
    if nacre.is_tensor(v) then self:register_buffer(p.name, v) end
  end
end

-- How many operands forward takes, where they are not the leading tensors.
local OPERANDS = {CTCLoss = 4}

-- PyTorch's inplace is accepted and not needed: the result is the same.
local INPLACE = {}
for name in ([[ReLU ReLU6 LeakyReLU RReLU ELU SELU CELU SiLU Mish Hardtanh
    Hardsigmoid Hardswish Threshold Dropout Dropout1d Dropout2d Dropout3d
    AlphaDropout FeatureAlphaDropout]]):gmatch "%w+" do
  INPLACE[name] = true
end

local function layer_of(name, f)
  local info = nacre._info("nn.functional." .. f) or nacre._info(f)
  local n, options, names = split(info.params, OPERANDS[name])
  if INPLACE[name] then options[#options + 1] = "inplace:bool=false" end
  local call = F[f]
  local class = all.layer(name, table.concat(options, ", "), info.doc, nil,
                          init_buffers)
  if #names == 0 then
    function class.forward(_, ...) return call(...) end
    all.forward_limits[class.forward] = n
    return
  end
  local known = {}
  for _, p in ipairs(class._signature.params) do known[p.name] = p end
  function class:forward(...)
    local v = {...}
    for i, key in ipairs(names) do
      local value = rawget(self, key)
      if value == nil and key == "training" then value = self.training end
      v[n + i] = value
    end
    return call(table.unpack(v, 1, n + #names))
  end
  all.forward_limits[class.forward] = n
end

for name, f in ([[
    ReLU=relu ReLU6=relu6 LeakyReLU=leaky_relu RReLU=rrelu ELU=elu SELU=selu
    CELU=celu GELU=gelu SiLU=silu Mish=mish Softplus=softplus
    Softshrink=softshrink Hardshrink=hardshrink Tanhshrink=tanhshrink
    Softsign=softsign Tanh=tanh Sigmoid=sigmoid LogSigmoid=logsigmoid
    Hardtanh=hardtanh Hardsigmoid=hardsigmoid Hardswish=hardswish
    Threshold=threshold GLU=glu Softmax=softmax LogSoftmax=log_softmax
    Softmin=softmin

    Dropout=dropout Dropout1d=dropout1d Dropout2d=dropout2d
    Dropout3d=dropout3d AlphaDropout=alpha_dropout
    FeatureAlphaDropout=feature_alpha_dropout

    MaxPool1d=max_pool1d MaxPool2d=max_pool2d MaxPool3d=max_pool3d
    AvgPool1d=avg_pool1d AvgPool2d=avg_pool2d AvgPool3d=avg_pool3d
    LPPool1d=lp_pool1d LPPool2d=lp_pool2d LPPool3d=lp_pool3d
    AdaptiveAvgPool1d=adaptive_avg_pool1d AdaptiveAvgPool2d=adaptive_avg_pool2d
    AdaptiveAvgPool3d=adaptive_avg_pool3d AdaptiveMaxPool1d=adaptive_max_pool1d
    AdaptiveMaxPool2d=adaptive_max_pool2d AdaptiveMaxPool3d=adaptive_max_pool3d

    PixelShuffle=pixel_shuffle PixelUnshuffle=pixel_unshuffle
    ChannelShuffle=channel_shuffle Fold=fold Unfold=unfold Upsample=upsample
    LocalResponseNorm=local_response_norm
    CosineSimilarity=cosine_similarity PairwiseDistance=pairwise_distance

    MSELoss=mse_loss L1Loss=l1_loss SmoothL1Loss=smooth_l1_loss
    HuberLoss=huber_loss CrossEntropyLoss=cross_entropy NLLLoss=nll_loss
    BCELoss=binary_cross_entropy
    BCEWithLogitsLoss=binary_cross_entropy_with_logits KLDivLoss=kl_div
    PoissonNLLLoss=poisson_nll_loss GaussianNLLLoss=gaussian_nll_loss
    HingeEmbeddingLoss=hinge_embedding_loss
    CosineEmbeddingLoss=cosine_embedding_loss
    MarginRankingLoss=margin_ranking_loss TripletMarginLoss=triplet_margin_loss
    TripletMarginWithDistanceLoss=triplet_margin_with_distance_loss
    MultiMarginLoss=multi_margin_loss
    MultiLabelMarginLoss=multilabel_margin_loss
    MultiLabelSoftMarginLoss=multilabel_soft_margin_loss
    SoftMarginLoss=soft_margin_loss CTCLoss=ctc_loss
  ]]):gmatch "(%w+)=([%w_]+)" do
  layer_of(name, f)
end

-- Softmax over the channels of images.
local Softmax2d = all.layer("Softmax2d", "",
                            "softmax over the channels of [n x c x h x w]")
function Softmax2d.forward(_, x) return F.softmax(x, -3) end

for name, mode in pairs {Nearest = "nearest", Bilinear = "bilinear"} do
  local class = all.layer(("Upsampling%s2d"):format(name),
    "size:ints=nil, scale_factor:any=nil",
    "images of another size, like Upsample with the mode " .. mode ..
    (mode == "bilinear" and " and align_corners" or ""))
  function class:forward(x)
    return F.interpolate(x, {size = rawget(self, "size"), mode = mode,
                             scale_factor = rawget(self, "scale_factor"),
                             align_corners = mode == "bilinear" or nil})
  end
end

for d = 1, 3 do
  local unpool = F[("max_unpool%dd"):format(d)]
  local Unpool = all.layer(("MaxUnpool%dd"):format(d),
    "kernel_size:ints, stride:ints=nil, padding:ints=0",
    "the inverse of max_pool; elements that are not a maximum are 0")
  function Unpool:forward(x, indices, output_size)
    return unpool(x, indices, self.kernel_size, rawget(self, "stride"),
                  self.padding, output_size)
  end
end

for name, size in pairs {["1d"] = 2, ["2d"] = 4, ["3d"] = 6} do
  for class, mode in pairs {ReflectionPad = "reflect", CircularPad = "circular",
                            ReplicationPad = "replicate", ZeroPad = "constant",
                            ConstantPad = "constant"} do
    local Pad = all.layer(class .. name, "padding:ints" ..
      (class == "ConstantPad" and ", value:num" or ""),
      "pads the last dimensions; one number pads all sides")
    function Pad:forward(x)
      local p = self.padding
      if type(p) == "number" then
        p = {}
        for i = 1, size do p[i] = self.padding end
      end
      return F.pad(x, p, mode, rawget(self, "value"))
    end
  end
end

-- ---- shapes

local Identity = all.layer("Identity", "", "returns its argument")
function Identity.forward(_, x) return x end

local Flatten = all.layer("Flatten", "start_dim:int=2, end_dim:int=-1",
                          "joins dimensions; by default all but the first")
function Flatten:forward(x)
  return nacre.flatten(x, self.start_dim, self.end_dim)
end

local Unflatten = all.layer("Unflatten", "dim:int, unflattened_size:ints",
                            "splits a dimension into several")
function Unflatten:forward(x)
  return nacre.unflatten(x, self.dim, self.unflattened_size)
end
