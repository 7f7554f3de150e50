-- SPDX-License-Identifier: MIT
-- decoder.lua - the layers of a decoder: of a configuration and a table of
-- weights by Hugging Face's names.
--
--   local decoder = dofile "decoder.lua"
--   model = decoder.new(c, weights)
--   cache = model:new_cache(200)            -- room for 200 tokens
--   logits = model:forward(ids, cache)      -- [#ids x vocabulary]
--
-- ids are numbers from 0, of the tokens that follow those in the cache.

local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local refuse = dofile(here .. "configuration.lua").refuse
local F = nacre.nn.functional

local Decoder = {}
Decoder.__index = Decoder

local ACTIVATIONS <const> = {
  silu = F.silu, swish = F.silu, relu = F.relu, gelu = F.gelu,
  gelu_new = function(x) return F.gelu(x, {approximate = "tanh"}) end,
}
ACTIVATIONS.gelu_pytorch_tanh = ACTIVATIONS.gelu_new
ACTIVATIONS.gelu_fast = ACTIVATIONS.gelu_new

-- ---- weights

-- Takes the weights of a model by name; what is missing is an error.
local function taker(weights, prefix)
  return function(name, optional)
    local t = weights[prefix .. name]
    if not t and not optional then
      refuse("the weights have no %s%s", prefix, name)
    end
    return t
  end
end

local function linear(take, name)
  return {weight = take(name .. ".weight"), bias = take(name .. ".bias", true)}
end

-- A norm's weight; those of Gemma are stored less 1.
local function norm(c, take, name, optional)
  local w = take(name .. ".weight", optional)
  return w and c.gemma and not c.norms_are_whole and w + 1 or w
end

local function llama_layer(c, take, i)
  local p = ("layers.%d."):format(i - 1)
  local four = take(p .. "pre_feedforward_layernorm.weight", true) ~= nil
  local after = p .. "post_attention_layernorm"
  return {
    q = linear(take, p .. "self_attn.q_proj"),
    k = linear(take, p .. "self_attn.k_proj"),
    v = linear(take, p .. "self_attn.v_proj"),
    o = linear(take, p .. "self_attn.o_proj"),
    q_norm = norm(c, take, p .. "self_attn.q_norm", true),
    k_norm = norm(c, take, p .. "self_attn.k_norm", true),
    gate = linear(take, p .. "mlp.gate_proj"),
    up = linear(take, p .. "mlp.up_proj"),
    down = linear(take, p .. "mlp.down_proj"),
    norm1 = norm(c, take, p .. "input_layernorm"),
    post1 = four and norm(c, take, after) or nil,
    norm2 = norm(c, take, four and p .. "pre_feedforward_layernorm" or after),
    post2 = four and norm(c, take, p .. "post_feedforward_layernorm") or nil,
    kind = c.kinds[i]}
end

-- The weights of GPT-2 are stored as [in x out].
local function turned(take, name)
  return {weight = take(name .. ".weight"):t(), bias = take(name .. ".bias")}
end

local function layer_norm(take, name)
  return {weight = take(name .. ".weight"), bias = take(name .. ".bias")}
end

local function gpt2_layer(take, i)
  local p = ("h.%d."):format(i - 1)
  return {
    qkv = turned(take, p .. "attn.c_attn"),
    o = turned(take, p .. "attn.c_proj"), up = turned(take, p .. "mlp.c_fc"),
    down = turned(take, p .. "mlp.c_proj"),
    norm1 = layer_norm(take, p .. "ln_1"),
    norm2 = layer_norm(take, p .. "ln_2"),
    kind = "full_attention"}
end

local function has_prefix(weights, prefix)
  for name in pairs(weights) do
    if name:sub(1, #prefix) == prefix then return prefix end
  end
  return ""
end

-- A decoder of these weights, which stay as they are.
function Decoder.new(c, weights)
  local self = setmetatable({c = c, layer = {}}, Decoder)
  local gpt2 = c.family == "gpt2"
  local take = taker(weights, has_prefix(weights, gpt2 and "transformer." or
                                         "model."))
  self.act = ACTIVATIONS[c.act] or
             refuse("the activation %s is not supported", tostring(c.act))
  self.embedding = take(gpt2 and "wte.weight" or "embed_tokens.weight")
  self.positions = gpt2 and take "wpe.weight" or nil
  self.norm = gpt2 and layer_norm(take, "ln_f") or norm(c, take, "norm")
  self.head = weights["lm_head.weight"] or self.embedding
  for i = 1, c.layers do
    self.layer[i] = gpt2 and gpt2_layer(take, i) or llama_layer(c, take, i)
  end
  return self
end

-- ---- the cache

-- Keys and values of at most n tokens.
function Decoder:new_cache(n)
  local c, cache = self.c, {used = 0, room = n}
  local o = {dtype = self.embedding.dtype, device = self.embedding.device}
  for i = 1, c.layers do
    cache[i] = {k = nacre.empty({c.kv_heads, n, c.head_size}, o),
                v = nacre.empty({c.kv_heads, n, c.head_size}, o)}
  end
  return cache
end

-- Stores keys and values; gives all of them.
local function extend(cache, i, k, v)
  local n, all = k:size(2), cache.used + k:size(2)
  cache[i].k:narrow(2, cache.used + 1, n):copy_(k)
  cache[i].v:narrow(2, cache.used + 1, n):copy_(v)
  return cache[i].k:narrow(2, 1, all), cache[i].v:narrow(2, 1, all)
end

-- ---- the parts of a layer

local function apply(layer, x) return F.linear(x, layer.weight, layer.bias) end

-- [n x heads*size] as [heads x n x size].
local function as_heads(x, heads, size)
  return x:reshape(x:size(1), heads, size):transpose(1, 2)
end

function Decoder:normalized(x, w)
  if self.c.family == "gpt2" then
    return F.layer_norm(x, {x:size(-1)}, w.weight, w.bias, self.c.eps)
  end
  return F.rms_norm(x, {x:size(-1)}, w, self.c.eps)
end

-- Cosines and sines of the angles of n tokens from position `first' on.
function Decoder:angles(kind, first, n)
  local list = self.c.frequencies and self.c.frequencies[kind]
  if not list then return nil end
  local at = nacre.arange(first, first + n, {dtype = "float64"}):unsqueeze(2)
  local half = at * nacre.tensor(list, {dtype = "float64"})
  local all = nacre.cat({half, half}, 2)
  local o = {device = self.embedding.device, dtype = self.embedding.dtype}
  return {cos = all:cos():to(o), sin = all:sin():to(o)}
end

local function rotated(x, angles)
  if not angles then return x end
  local half = x:size(-1) // 2
  local turned_x = nacre.cat({-x:narrow(3, half + 1, half),
                              x:narrow(3, 1, half)}, 3)
  return x * angles.cos + turned_x * angles.sin
end

-- Which of the keys a token sees: nil if all.
function Decoder:mask(kind, first, n)
  local all, window = first + n, self.c.window
  local slides = kind == "sliding_attention" and window and all > window
  if n == 1 and not slides then return nil end
  local o = {device = self.embedding.device}
  local i = nacre.arange(first, all, o):unsqueeze(2)
  local j = nacre.arange(0, all, o)
  local seen = j:le(i)
  return slides and seen:logical_and(j:gt(i - window)) or seen
end

-- Attention whose weights are capped, which scaled_dot_product_attention
-- cannot do.
local function capped_attention(q, k, v, mask, scale, cap)
  local times = q:size(1) // k:size(1)
  if times > 1 then
    k, v = k:repeat_interleave(times, 1), v:repeat_interleave(times, 1)
  end
  local w = ((q:matmul(k:transpose(2, 3)) * scale) / cap):tanh() * cap
  if mask then w = w:masked_fill(mask:logical_not(), -math.huge) end
  return w:softmax(3):matmul(v)
end

function Decoder:attention(layer, i, x, cache, step)
  local c = self.c
  local q, k, v
  if layer.qkv then
    q, k, v = apply(layer.qkv, x):chunk(3, 2)
    if type(q) == "table" then q, k, v = q[1], q[2], q[3] end
  else q, k, v = apply(layer.q, x), apply(layer.k, x), apply(layer.v, x) end
  q = as_heads(q, c.heads, c.head_size)
  k, v = as_heads(k, c.kv_heads, c.head_size),
         as_heads(v, c.kv_heads, c.head_size)
  if layer.q_norm then
    q, k = self:normalized(q, layer.q_norm), self:normalized(k, layer.k_norm)
  end
  local angles, mask = step.angles[layer.kind], step.mask[layer.kind]
  q, k = rotated(q, angles), rotated(k, angles)
  k, v = extend(cache, i, k, v)
  local scale = c.scale or c.head_size ^ -0.5
  local y = c.weight_cap and
            capped_attention(q, k, v, mask, scale, c.weight_cap) or
            F.scaled_dot_product_attention(q, k, v, {attn_mask = mask,
              scale = scale, enable_gqa = c.kv_heads < c.heads})
  return apply(layer.o, y:transpose(1, 2):reshape(x:size(1), -1))
end

function Decoder:feed_forward(layer, x)
  local up = apply(layer.up, x)
  if not layer.gate then return apply(layer.down, self.act(up)) end
  return apply(layer.down, self.act(apply(layer.gate, x)) * up)
end

function Decoder:run_layer(i, x, cache, step)
  local layer = self.layer[i]
  local y = self:attention(layer, i, self:normalized(x, layer.norm1), cache,
                           step)
  if layer.post1 then y = self:normalized(y, layer.post1) end
  x = x + y
  y = self:feed_forward(layer, self:normalized(x, layer.norm2))
  if layer.post2 then y = self:normalized(y, layer.post2) end
  return x + y
end

-- ---- the whole

function Decoder:embed(ids, first)
  local o = {device = self.embedding.device}
  local x = F.embedding(nacre.tensor(ids, o) + 1, self.embedding)
  if self.positions then
    x = x + self.positions:narrow(1, first + 1, #ids)
  end
  local scale = self.c.embedding_scale
  -- the factor has the dtype of the weights
  return scale and x * nacre.tensor(scale, {dtype = x.dtype, device = x.device})
         or x
end

local function check_room(self, ids, cache)
  local n = cache.used + #ids
  if n > cache.room then
    refuse("the cache has room for %d tokens, not %d", cache.room, n)
  end
  if self.positions and n > self.positions:size(1) then
    refuse("the model has %d positions, not %d", self.positions:size(1), n)
  end
end

-- The logits of the tokens that follow; with last only those behind the last
-- one, [1 x vocabulary].
function Decoder:forward(ids, cache, last)
  check_room(self, ids, cache)
  local first, n, step = cache.used, #ids, {angles = {}, mask = {}}
  for _, layer in ipairs(self.layer) do
    local kind = layer.kind
    if step[kind] == nil then
      step[kind] = true
      step.angles[kind] = self:angles(kind, first, n)
      step.mask[kind] = self:mask(kind, first, n)
    end
  end
  return nacre.no_grad(function()
    local x = self:embed(ids, first)
    for i in ipairs(self.layer) do x = self:run_layer(i, x, cache, step) end
    cache.used = first + n
    if last then x = x:narrow(1, n, 1) end
    local logits = F.linear(self:normalized(x, self.norm), self.head)
    local cap = self.c.logit_cap
    return cap and (logits / cap):tanh() * cap or logits
  end)
end

return Decoder
