-- SPDX-License-Identifier: MIT
-- gguf_models.lua - a GGUF file as a config.json and weights by Hugging Face's
-- names.

local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local refuse = dofile(here .. "configuration.lua").refuse

local gguf = {}

-- By names of parts; "%d" is the number of a layer.
local LLAMA <const> = {
  token_embd = "model.embed_tokens", output_norm = "model.norm",
  output = "lm_head", ["blk.%d.attn_q"] = "self_attn.q_proj",
  ["blk.%d.attn_k"] = "self_attn.k_proj",
  ["blk.%d.attn_v"] = "self_attn.v_proj",
  ["blk.%d.attn_output"] = "self_attn.o_proj",
  ["blk.%d.attn_q_norm"] = "self_attn.q_norm",
  ["blk.%d.attn_k_norm"] = "self_attn.k_norm",
  ["blk.%d.ffn_gate"] = "mlp.gate_proj", ["blk.%d.ffn_up"] = "mlp.up_proj",
  ["blk.%d.ffn_down"] = "mlp.down_proj",
  ["blk.%d.attn_norm"] = "input_layernorm",
  ["blk.%d.ffn_norm"] = "post_attention_layernorm"}
-- Those of Gemma 2 and 3, which has four norms in a layer.
local FOUR_NORMS <const> = {
  ["blk.%d.ffn_norm"] = "pre_feedforward_layernorm",
  ["blk.%d.post_attention_norm"] = "post_attention_layernorm",
  ["blk.%d.post_ffw_norm"] = "post_feedforward_layernorm"}
local GPT2 <const> = {
  token_embd = "wte", position_embd = "wpe", output_norm = "ln_f",
  output = "lm_head", ["blk.%d.attn_qkv"] = "attn.c_attn",
  ["blk.%d.attn_output"] = "attn.c_proj", ["blk.%d.ffn_up"] = "mlp.c_fc",
  ["blk.%d.ffn_down"] = "mlp.c_proj", ["blk.%d.attn_norm"] = "ln_1",
  ["blk.%d.ffn_norm"] = "ln_2"}

local TYPES <const> = {llama = "llama", mistral = "mistral", qwen2 = "qwen2",
  qwen3 = "qwen3", gemma = "gemma", gemma2 = "gemma2", gemma3 = "gemma3_text",
  gpt2 = "gpt2"}

-- Rows of pairs as rows of halves: how Llama's queries and keys are stored.
local function unpaired(t, heads)
  local size, shape = t:size(1) // heads, t:size()
  local x = t:reshape(heads, size // 2, 2, -1):transpose(2, 3)
  return x:reshape(shape)
end

-- The name of Hugging Face for one of GGUF, or nil.
local function name_of(name, map, layer_prefix)
  local part, kind = name:match "^(.*)%.(%a+)$"
  if not part then return nil end
  local layer, rest = part:match "^blk%.(%d+)%.(.*)$"
  if not layer then return map[part] and map[part] .. "." .. kind end
  local to = map["blk.%d." .. rest]
  return to and ("%s%s.%s.%s"):format(layer_prefix, layer, to, kind)
end

local function names_for(arch)
  if arch == "gpt2" then return GPT2, "h." end
  local map = {}
  for from, to in pairs(LLAMA) do map[from] = to end
  if arch == "gemma2" or arch == "gemma3" then
    for from, to in pairs(FOUR_NORMS) do map[from] = to end
  end
  return map, "model.layers."
end

local function renamed(tensors, arch, config)
  local map, prefix = names_for(arch)
  local weights = {}
  for name, t in pairs(tensors) do
    local to = name_of(name, map, prefix)
    if to and arch == "llama" and to:find "%.[qk]_proj%." then
      t = unpaired(t, to:find "q_proj" and config.num_attention_heads or
                   config.num_key_value_heads)
    end
    -- [out x in], which the decoder turns round
    if to and arch == "gpt2" and to:find "%.c_%a+%.weight$" then t = t:t() end
    if to then weights[to] = t end
  end
  return weights
end

-- ---- the metadata

-- The fields that config.json calls otherwise, and those of gpt2.
local FIELDS <const> = {
  hidden_size = "embedding_length", num_hidden_layers = "block_count",
  num_attention_heads = "attention.head_count",
  num_key_value_heads = "attention.head_count_kv",
  head_dim = "attention.key_length",
  max_position_embeddings = "context_length",
  rms_norm_eps = "attention.layer_norm_rms_epsilon",
  layer_norm_epsilon = "attention.layer_norm_epsilon",
  rope_theta = "rope.freq_base", sliding_window = "attention.sliding_window",
  attn_logit_softcapping = "attn_logit_softcapping",
  final_logit_softcapping = "final_logit_softcapping"}
local OF_GPT2 <const> = {n_embd = "hidden_size", n_layer = "num_hidden_layers",
  n_head = "num_attention_heads", n_positions = "max_position_embeddings"}

local function config_of(metadata, arch)
  local config = {model_type = TYPES[arch]}
  for name, key in pairs(FIELDS) do
    config[name] = tonumber(metadata[arch .. "." .. key])
  end
  for name, other in pairs(OF_GPT2) do config[name] = config[other] end
  config.eos_token_id = math.tointeger(
    tonumber(metadata["tokenizer.ggml.eos_token_id"]))
  local scaling = metadata[arch .. ".rope.scaling.type"]
  if scaling and scaling ~= "none" then
    config.rope_scaling = {rope_type = scaling, factor = tonumber(
      metadata[arch .. ".rope.scaling.factor"])}
  end
  if arch:find "^gemma" then config.hidden_act = "gelu_pytorch_tanh" end
  return config
end

-- The configuration and the weights of the tensors and metadata of a file.
function gguf.read(tensors, metadata, of_table)
  local arch = metadata["general.architecture"]
  if not TYPES[arch] then
    refuse("a GGUF file of %s is not supported", tostring(arch))
  end
  local config = config_of(metadata, arch)
  local c = of_table(config)
  c.norms_are_whole = true
  local factors = tensors["rope_freqs.weight"]
  for _, list in pairs(factors and c.frequencies or {}) do
    for i, factor in ipairs(factors:tolist()) do list[i] = list[i] / factor end
  end
  return c, renamed(tensors, arch, config)
end

return gguf
