-- SPDX-License-Identifier: MIT
-- attention.lua - MultiheadAttention and the layers of transformers (Vaswani et
-- al. 2017). Names, keys, defaults and masks are those of PyTorch: a boolean
-- mask is true at positions that attention ignores, the opposite of that of
-- scaled_dot_product_attention.
local all = ...
all.require "nacre.module"
local fail, layer = all.fail, all.weight_layer
local nn, F = all.space "nn", all.space "nn.functional"
local Parameter = nn.Parameter

-- The arguments of forward by this signature.
local function forward_reader(name, text)
  local s = all.parse(name, text .. " -> any")
  return function(...)
    return table.unpack(all.read(name, s, ...), 1, #s.params)
  end
end

-- ---- attention

local function xavier(...)
  return Parameter(nn.init.xavier_uniform_(nacre.empty(...)))
end

local Attention = layer("MultiheadAttention",
  "embed_dim:int, num_heads:int, dropout:num=0, bias:bool=true, "
  .. "add_bias_kv:bool=false, add_zero_attn:bool=false, kdim:int=nil, "
  .. "vdim:int=nil, batch_first:bool=false",
  "attention with num_heads heads; forward(query, key, value) returns the "
    .. "output and the weights", nil,
function(self, n, heads, _, bias, bias_kv, _, kdim, vdim)
  if heads < 1 or n % heads ~= 0 then
    fail("MultiheadAttention", ("embed_dim, %d, is not divisible by %d heads")
                               :format(n, heads))
  end
  kdim, vdim = kdim or n, vdim or n
  if kdim == n and vdim == n then self.in_proj_weight = xavier(3 * n, n)
  else
    self.q_proj_weight = xavier(n, n)
    self.k_proj_weight = xavier(n, kdim)
    self.v_proj_weight = xavier(n, vdim)
  end
  if bias then self.in_proj_bias = Parameter(nacre.zeros(3 * n)) end
  self.out_proj = nn.Linear(n, n, bias)
  if bias then nacre.no_grad(self.out_proj.bias.zero_, self.out_proj.bias) end
  if bias_kv then
    self.bias_k = Parameter(nn.init.xavier_normal_(nacre.empty(1, 1, n)))
    self.bias_v = Parameter(nn.init.xavier_normal_(nacre.empty(1, 1, n)))
  end
end)

-- Query, key and value [n x length x features] in the space of the heads.
local function project(self, q, k, v)
  local n, bias = self.embed_dim, rawget(self, "in_proj_bias")
  local w = rawget(self, "in_proj_weight")
  if w and rawequal(q, k) and rawequal(k, v) then
    return table.unpack(F.linear(q, w, bias):chunk(3, -1))
  end
  local weights = w and w:chunk(3) or {self.q_proj_weight, self.k_proj_weight,
                                       self.v_proj_weight}
  local biases = bias and bias:chunk(3) or {}
  return F.linear(q, weights[1], biases[1]),
         F.linear(k, weights[2], biases[2]),
         F.linear(v, weights[3], biases[3]), n
end

-- The mask as numbers that are added to the scores.
local function additive(mask, like)
  if mask.dtype ~= "bool" then return mask end
  return nacre.zeros(mask:size(), {dtype = like.dtype, device = like.device})
         :masked_fill(mask, -math.huge)
end

-- Fails unless a mask has this size.
local function check_mask(name, mask, ...)
  local want = table.concat({...}, "x")
  local size = table.concat(mask:size(), "x")
  if size ~= want then
    fail("MultiheadAttention", ("{%s} is [%s], queries and keys of this shape "
         .. "need [%s]"):format(name, size, want), nil, name, mask)
  end
end

local function check_masks(self, q, k, attn_mask, padding, single)
  local n, length, keys = q:size(1), q:size(2), k:size(2)
  if padding and single then
    check_mask("key_padding_mask", padding, keys)
  elseif padding then
    check_mask("key_padding_mask", padding, n, keys)
  end
  if attn_mask and attn_mask:dim() == 3 then
    check_mask("attn_mask", attn_mask, n * self.num_heads, length, keys)
  elseif attn_mask then
    check_mask("attn_mask", attn_mask, length, keys)
  end
end

-- Both masks as one, which broadcasts to [n x heads x length x keys]; nil if
-- there is none.
local function merge_masks(self, q, samples, attn_mask, padding)
  local mask
  if attn_mask then
    if attn_mask:dim() == 3 then
      attn_mask = attn_mask:reshape(samples, self.num_heads, attn_mask:size(2),
                                    attn_mask:size(3))
    end
    mask = additive(attn_mask, q)
  end
  if padding then
    padding = additive(padding, q):reshape(samples, 1, 1, padding:size(-1))
    mask = mask and mask + padding or padding
  end
  return mask
end

-- [n x length x features] as [n x heads x length x features of a head].
local function split_heads(self, x)
  return x:unflatten(3, {self.num_heads, -1}):transpose(2, 3)
end

-- Adds keys and values, and their columns of the mask: bias_k and bias_v, and
-- zeros.
local function extend(self, k, v, mask)
  local samples, more = k:size(1), 0
  local bias = rawget(self, "bias_k")
  if bias then
    local n = self.embed_dim
    k = nacre.cat({k, bias:expand(samples, 1, n)}, 2)
    v = nacre.cat({v, self.bias_v:expand(samples, 1, n)}, 2)
    more = more + 1
  end
  if self.add_zero_attn then
    local zero = k:new_zeros(samples, 1, k:size(3))
    k, v = nacre.cat({k, zero}, 2), nacre.cat({v, zero}, 2)
    more = more + 1
  end
  if mask and more > 0 then mask = F.pad(mask, {0, more}) end
  return k, v, mask
end

local read_attention = forward_reader("MultiheadAttention",
  "query:tensor, key:tensor, value:tensor, key_padding_mask:tensor=nil, "
  .. "need_weights:bool=true, attn_mask:tensor=nil, "
  .. "average_attn_weights:bool=true, is_causal:bool=false")

-- The heads' outputs and, if asked for, the weights.
local function attend(self, q, k, v, mask, need_weights)
  local p = self.training and self.dropout or 0
  if not need_weights then
    return F.scaled_dot_product_attention(q, k, v, {attn_mask = mask,
                                                    dropout_p = p})
  end
  local scores = (q / math.sqrt(q:size(-1))):matmul(k:transpose(-2, -1))
  local weights = (mask and scores + mask or scores):softmax(-1)
  if p > 0 then weights = F.dropout(weights, p, true) end
  return weights:matmul(v), weights
end

function Attention:forward(...)
  local q, k, v, padding, need_weights, mask, average, causal =
    read_attention(...)
  all.check_dims("MultiheadAttention", q, "query", 2, 3)
  local single = q:dim() == 2
  local same = rawequal(q, k) and rawequal(k, v)
  local function by_sample(x)
    if single then return x:unsqueeze(1) end
    return self.batch_first and x or x:transpose(1, 2)
  end
  if causal and not mask then
    fail("MultiheadAttention", "is_causal only says what attn_mask is: give it",
         "nacre.nn.Transformer.generate_square_subsequent_mask(n)")
  end
  q = by_sample(q)
  k, v = same and q or by_sample(k), same and q or by_sample(v)
  local samples = q:size(1)
  check_masks(self, q, k, mask, padding, single)
  mask = merge_masks(self, q, samples, mask, padding)
  q, k, v = project(self, q, k, v)
  k, v, mask = extend(self, k, v, mask)
  local out, weights = attend(self, split_heads(self, q), split_heads(self, k),
                              split_heads(self, v), mask, need_weights)
  out = self.out_proj(out:transpose(2, 3):flatten(3))
  if weights and average then weights = weights:mean(2) end
  if single then
    return out:squeeze(1), weights and weights:squeeze(1)
  end
  return self.batch_first and out or out:transpose(1, 2), weights
end

-- ---- transformer layers

local LAYER = "d_model:int, nhead:int, dim_feedforward:int=2048, "
  .. "dropout:num=0.1, activation:any|relu|gelu=nil, layer_norm_eps:num=1e-5, "
  .. "batch_first:bool=false, norm_first:bool=false, bias:bool=true"

-- The function of the two linear layers: its name, or the function; relu if
-- none is given.
local function activation_of(name, f)
  if f == nil then return F.relu end
  if type(f) ~= "string" then return f end
  if f ~= "relu" and f ~= "gelu" then
    fail(name, ("activation must be relu, gelu or a function, not '%s'")
               :format(f))
  end
  return F[f]
end

-- What encoder and decoder layers share.
local function init_layer(self, name, attention, n, heads, wide, p, f, eps,
                          batch_first, bias)
  for _, key in ipairs(attention) do
    self[key] = nn.MultiheadAttention(n, heads, {dropout = p, bias = bias,
                                                 batch_first = batch_first})
  end
  self.linear1 = nn.Linear(n, wide, bias)
  self.linear2 = nn.Linear(wide, n, bias)
  for i = 1, #attention + 1 do
    self["norm" .. i] = nn.LayerNorm(n, eps, true, bias)
    self["dropout" .. i] = nn.Dropout(p)
  end
  self.dropout_between = nn.Dropout(p)
  rawset(self, "_activation", activation_of(name, f))
end

-- x plus f(x), normalized before or after.
local function residual(self, x, norm, f)
  if self.norm_first then return x + f(norm(x)) end
  return norm(x + f(x))
end

local function feed_forward(self, x)
  x = self.dropout_between(self._activation(self.linear1(x)))
  return self.linear2(x)
end

local Encoder = layer("TransformerEncoderLayer", LAYER,
  "attention of a sequence to itself, then two linear layers", nil,
function(self, n, heads, wide, p, f, eps, batch_first, _, bias)
  init_layer(self, "TransformerEncoderLayer", {"self_attn"}, n, heads, wide, p,
             f, eps, batch_first, bias)
end)

local read_encoder = forward_reader("TransformerEncoderLayer",
  "src:tensor, src_mask:tensor=nil, src_key_padding_mask:tensor=nil, "
  .. "is_causal:bool=false")

function Encoder:forward(...)
  local x, mask, padding, causal = read_encoder(...)
  x = residual(self, x, self.norm1, function(y)
    return self.dropout1((self.self_attn(y, y, y, {attn_mask = mask,
      key_padding_mask = padding, need_weights = false, is_causal = causal})))
  end)
  return residual(self, x, self.norm2, function(y)
    return self.dropout2(feed_forward(self, y))
  end)
end

local Decoder = layer("TransformerDecoderLayer", LAYER,
  "attention of a sequence to itself and to memory, then two linear layers",
  nil,
function(self, n, heads, wide, p, f, eps, batch_first, _, bias)
  init_layer(self, "TransformerDecoderLayer", {"self_attn", "multihead_attn"},
             n, heads, wide, p, f, eps, batch_first, bias)
end)

local DECODER = "tgt:tensor, memory:tensor, tgt_mask:tensor=nil, "
  .. "memory_mask:tensor=nil, tgt_key_padding_mask:tensor=nil, "
  .. "memory_key_padding_mask:tensor=nil, tgt_is_causal:bool=false, "
  .. "memory_is_causal:bool=false"
local read_decoder = forward_reader("TransformerDecoderLayer", DECODER)

function Decoder:forward(...)
  local x, memory, mask, memory_mask, padding, memory_padding, causal,
        memory_causal = read_decoder(...)
  x = residual(self, x, self.norm1, function(y)
    return self.dropout1((self.self_attn(y, y, y, {attn_mask = mask,
      key_padding_mask = padding, need_weights = false, is_causal = causal})))
  end)
  x = residual(self, x, self.norm2, function(y)
    return self.dropout2((self.multihead_attn(y, memory, memory,
      {attn_mask = memory_mask, key_padding_mask = memory_padding,
       need_weights = false, is_causal = memory_causal})))
  end)
  return residual(self, x, self.norm3, function(y)
    return self.dropout3(feed_forward(self, y))
  end)
end

-- ---- stacks of layers

-- A stack of copies of the layer `what'. Its forward takes the arguments of
-- `text', and passes them on.
local function define_stack(name, what, text, doc, more)
  local read = forward_reader(name, text)
  local Stack = all.layer(name, what .. ":any, num_layers:int, norm:any=nil"
                          .. (more or ""), doc, nil,
  function(self, part, n, norm)
    if not all.is_module(part) then
      fail(name, ("%s must be a layer, not a %s"):format(what, type(part)))
    end
    all.check_layers(name, "num_layers", n)
    local layers = nn.ModuleList()
    -- the norm, which was made before, comes after the layers, as in PyTorch
    if all.is_module(norm) then layers._made = norm._made - 0.5 end
    self.layers, self.norm = layers, norm
    for _ = 1, n do layers:append(part:clone()) end
    rawset(self, what, false)       -- copies count, not the given layer
  end)
  function Stack:forward(...)
    local function run(x, ...)
      for i = 1, #self.layers do x = self.layers[i](x, ...) end
      return self.norm and self.norm(x) or x
    end
    return run(read(...))
  end
end

define_stack("TransformerEncoder", "encoder_layer",
             "src:tensor, mask:tensor=nil, src_key_padding_mask:tensor=nil, "
             .. "is_causal:bool=nil",
             "num_layers copies of an encoder layer",
             -- of PyTorch, which change nothing here
             ", enable_nested_tensor:bool=true, mask_check:bool=true")
define_stack("TransformerDecoder", "decoder_layer", DECODER,
             "num_layers copies of a decoder layer")

local Transformer = layer("Transformer",
  "d_model:int=512, nhead:int=8, num_encoder_layers:int=6, "
  .. "num_decoder_layers:int=6, dim_feedforward:int=2048, dropout:num=0.1, "
  .. "activation:any|relu|gelu=nil, layer_norm_eps:num=1e-5, "
  .. "batch_first:bool=false, "
  .. "norm_first:bool=false, bias:bool=true",
  "an encoder and a decoder", nil,
function(self, n, heads, encoders, decoders, wide, p, f, eps, batch_first,
         norm_first, bias)
  local function part(class)
    return nn[class](n, heads, wide, p, f, eps, batch_first, norm_first, bias)
  end
  self.encoder = nn.TransformerEncoder(part "TransformerEncoderLayer", encoders,
                                       nn.LayerNorm(n, eps, true, bias))
  self.decoder = nn.TransformerDecoder(part "TransformerDecoderLayer", decoders,
                                       nn.LayerNorm(n, eps, true, bias))
  for _, t in ipairs(self:parameters()) do
    if t:dim() > 1 then nn.init.xavier_uniform_(t) end
  end
end)

local read_transformer = forward_reader("Transformer",
  "src:tensor, tgt:tensor, src_mask:tensor=nil, tgt_mask:tensor=nil, "
  .. "memory_mask:tensor=nil, src_key_padding_mask:tensor=nil, "
  .. "tgt_key_padding_mask:tensor=nil, memory_key_padding_mask:tensor=nil, "
  .. "src_is_causal:bool=nil, tgt_is_causal:bool=nil, "
  .. "memory_is_causal:bool=false")

function Transformer:forward(...)
  local src, tgt, src_mask, tgt_mask, memory_mask, src_padding, tgt_padding,
        memory_padding, src_causal, tgt_causal, memory_causal =
    read_transformer(...)
  local memory = self.encoder(src, src_mask, src_padding, src_causal)
  return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_padding,
                      memory_padding, tgt_causal, memory_causal)
end

-- A mask [n x n] of 0, and -inf above the diagonal: no step looks at a later
-- one. May be called as a method, too.
local mask = all.parse("generate_square_subsequent_mask",
                       "sz:int, *, dtype:dtype=nil, device:device=nil")
rawset(Transformer, "generate_square_subsequent_mask", function(n, ...)
  if all.is_module(n) then
    return Transformer.generate_square_subsequent_mask(...)
  end
  local v = all.read("generate_square_subsequent_mask", mask, n, ...)
  return nacre.full({v[1], v[1]}, -math.huge,
                    {dtype = v[2], device = v[3]}):triu(1)
end)
