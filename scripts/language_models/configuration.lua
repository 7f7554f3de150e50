-- SPDX-License-Identifier: MIT
-- configuration.lua - what a decoder needs to know of a model, from the
-- config.json of Hugging Face:
--
--   local configuration = dofile "configuration.lua"
--   c = configuration.of_table(config)
--
-- c.family is "llama" (Llama, Mistral, Qwen2, Qwen3, Gemma: the same layers
-- with other parts) or "gpt2".

local configuration = {}

local function refuse(...) error(("language model: " .. ...):format(
  select(2, ...)), 0) end
configuration.refuse = refuse

local FAMILIES <const> = {llama = true, mistral = true, qwen2 = true,
  qwen3 = true, gemma = true, gemma2 = true, gemma3_text = true, gpt2 = true}

local function number(config, name, otherwise)
  local v = config[name]
  if v == nil then v = otherwise end
  if type(v) ~= "number" then
    refuse("the configuration has no number %s", name)
  end
  return v
end

local function whole(config, name, otherwise)
  local v = math.tointeger(number(config, name, otherwise))
  if not v or v < 1 or v > 1 << 40 then
    refuse("%s is %s", name, tostring(config[name]))
  end
  return v
end

-- ---- positions

-- The frequencies of rotary positions, halves of a head, by kind of scaling.
local scalings = {}

function scalings.default(_, list) return list end

function scalings.linear(rope, list)
  local factor = number(rope, "factor")
  for i, f in ipairs(list) do list[i] = f / factor end
  return list
end

-- Low frequencies are divided, high ones are not, those between are mixed.
function scalings.llama3(rope, list)
  local factor = number(rope, "factor")
  local low, high = number(rope, "low_freq_factor"),
                    number(rope, "high_freq_factor")
  local context = number(rope, "original_max_position_embeddings")
  for i, f in ipairs(list) do
    local turns = context * f / (2 * math.pi)
    local share = math.min(math.max((turns - low) / (high - low), 0), 1)
    list[i] = f * (share + (1 - share) / factor)
  end
  return list
end

local function frequencies(rope, size)
  local kind = rope.rope_type or rope.type or "default"
  if not scalings[kind] then
    refuse("positions scaled by %s are not supported", tostring(kind))
  end
  local list, base = {}, number(rope, "rope_theta", 10000.0)
  for i = 0, size // 2 - 1 do list[i + 1] = base ^ (-2 * i / size) end
  return scalings[kind](rope, list)
end

-- The parameters of positions in layers of this kind.
local function rope_of(config, kind)
  local p = config.rope_parameters
  if p and p[kind] then return p[kind] end
  if p then return p end
  if kind == "sliding_attention" and config.rope_local_base_freq then
    return {rope_theta = config.rope_local_base_freq}
  end
  local rope = {rope_theta = config.rope_theta}
  for name, v in pairs(config.rope_scaling or {}) do rope[name] = v end
  return rope
end

-- ---- layers

-- "full_attention" or "sliding_attention" of each layer.
local function kinds_of_layers(config, n)
  local kinds = {}
  for i = 1, n do
    local kind = config.layer_types and config.layer_types[i]
    if not kind and config.model_type == "gemma2" then
      kind = i % 2 == 1 and "sliding_attention" or "full_attention"
    elseif not kind and config.model_type == "gemma3_text" then
      local pattern = config.sliding_window_pattern or 6
      kind = i % pattern > 0 and "sliding_attention" or "full_attention"
    elseif not kind and config.model_type == "mistral" and
           config.sliding_window then
      kind = "sliding_attention"
    end
    kinds[i] = kind or "full_attention"
    if not kinds[i]:find "^full_" and not kinds[i]:find "^sliding_" then
      refuse("layers of %s are not supported", kinds[i])
    end
  end
  return kinds
end

local function of_gpt2(config)
  local width, heads = whole(config, "n_embd"), whole(config, "n_head")
  return {family = "gpt2", width = width, heads = heads, kv_heads = heads,
          head_size = width // heads, layers = whole(config, "n_layer"),
          eps = number(config, "layer_norm_epsilon", 1e-5),
          act = config.activation_function or "gelu_new",
          most = whole(config, "n_positions", 1024), vocab = config.vocab_size}
end

local function of_llama(config)
  local gemma = config.model_type:find "^gemma" ~= nil
  local width = whole(config, "hidden_size")
  local heads = whole(config, "num_attention_heads")
  local c = {
    family = "llama", width = width, heads = heads, gemma = gemma,
    kv_heads = whole(config, "num_key_value_heads", heads),
    head_size = whole(config, "head_dim", width // heads),
    layers = whole(config, "num_hidden_layers"), vocab = config.vocab_size,
    eps = number(config, "rms_norm_eps", 1e-6),
    act = config.hidden_activation or config.hidden_act or "silu",
    most = config.max_position_embeddings or math.maxinteger,
    window = config.use_sliding_window ~= false and config.sliding_window or
             nil,
    weight_cap = config.attn_logit_softcapping,
    logit_cap = config.final_logit_softcapping,
    embedding_scale = gemma and math.sqrt(width) or nil}
  if gemma and c.act == "gelu" then c.act = "gelu_pytorch_tanh" end
  c.scale = (config.query_pre_attn_scalar or c.head_size) ^ -0.5
  c.kinds = kinds_of_layers(config, c.layers)
  c.frequencies = {}
  for _, kind in ipairs(c.kinds) do
    c.frequencies[kind] = c.frequencies[kind] or
                          frequencies(rope_of(config, kind), c.head_size)
  end
  return c
end

-- The ends of a text: a number, or a list of them.
local function list_of_ends(v)
  if math.type(v) == "integer" then return {v} end
  return type(v) == "table" and v or {}
end

function configuration.of_table(config)
  local kind = config.model_type
  if not FAMILIES[kind] then
    refuse("a model of type %s is not supported: llama, mistral, qwen2, qwen3, "
           .. "gemma, gemma2, gemma3_text and gpt2 are", tostring(kind))
  end
  local c = (kind == "gpt2" and of_gpt2 or of_llama)(config)
  if c.heads % c.kv_heads > 0 then
    refuse("%d heads do not share %d of keys", c.heads, c.kv_heads)
  end
  c.ends = list_of_ends(config.eos_token_id)
  return c
end

return configuration
