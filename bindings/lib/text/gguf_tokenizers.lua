-- SPDX-License-Identifier: MIT
-- gguf_tokenizers.lua - the tokenizer that the metadata of a GGUF file have, as
-- a description like that of tokenizer.json.
local all = ...
all.require "nacre.text_steps"
local text = all.text
local json = require "nacre.json_text"

-- How llama.cpp names what divides a text into words.
local LLAMA3 <const> = [[(?i:'s|'t|'re|'ve|'m|'ll|'d)|]] ..
  [[[^\r\n\p{L}\p{N}]?\p{L}+|]] ..
  [[\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+]]
local QWEN2 <const> = LLAMA3:gsub("{1,3}", "")
local WORDS <const> = {["llama-bpe"] = LLAMA3, ["llama3"] = LLAMA3,
  ["llama-v3"] = LLAMA3, qwen2 = QWEN2, ["gpt-2"] = true, default = true}

local NORMAL <const>, CONTROL <const>, USER <const> = 1, 3, 4

local function list(metadata, name)
  local source = metadata["tokenizer.ggml." .. name]
  return source and json.decode(source, {big = "float"})
end

local function flag(metadata, name, otherwise)
  local v = metadata["tokenizer.ggml." .. name]
  if v == nil then return otherwise end
  return v == "true"
end

-- The tokens that are not found by the model.
local function added_tokens(tokens, types)
  local added = {}
  for i, name in ipairs(tokens) do
    local kind = types and types[i] or NORMAL
    if kind == CONTROL or kind == USER then
      added[#added + 1] = {id = i - 1, content = name, normalized = false,
                           special = kind == CONTROL}
    end
  end
  return added
end

local function ids_of(tokens)
  local ids = {}
  for i, name in ipairs(tokens) do
    if ids[name] == nil then ids[name] = i - 1 end
  end
  return ids
end

-- The merges of SentencePiece: each division of a piece into two others, in the
-- order of the scores.
local function merges_of(tokens, scores, ids)
  local merges = {}
  for i, name in ipairs(tokens) do
    for at in utf8.codes(name) do
      local a, b = name:sub(1, at - 1), name:sub(at)
      if ids[a] and ids[b] then
        merges[#merges + 1] = {a, b, score = scores[i], x = ids[a], y = ids[b]}
      end
    end
  end
  table.sort(merges, function(p, q)
    if p.score ~= q.score then return p.score > q.score end
    if p.x ~= q.x then return p.x < q.x end
    return p.y < q.y
  end)
  return merges
end

local function processor(metadata, bos, eos)
  local single, special = {}, {}
  local function add(name)
    local id = math.tointeger(tonumber(metadata["tokenizer.ggml." .. name]))
    if not id then return end
    special[name] = {ids = {id}}
    single[#single + 1] = {SpecialToken = {id = name}}
  end
  if bos then add "bos_token_id" end
  single[#single + 1] = {Sequence = {id = "A"}}
  if eos then add "eos_token_id" end
  return {type = "TemplateProcessing", single = single,
          special_tokens = special}
end

local function of_llama(metadata, tokens)
  local ids, mark = ids_of(tokens), "\u{2581}"
  local scores = list(metadata, "scores") or
                 text.refuse "the tokenizer has no scores"
  local steps = {{type = "Replace", pattern = {String = " "}, content = mark}}
  local strip = {}
  if flag(metadata, "add_space_prefix", true) then
    table.insert(steps, 1, {type = "Prepend", prepend = mark})
    strip = {{type = "Strip", content = " ", start = 1, stop = 0}}
  end
  return {
    normalizer = {type = "Sequence", normalizers = steps},
    model = {type = "BPE", vocab = ids, merges = merges_of(tokens, scores, ids),
             byte_fallback = true, fuse_unk = true, unk_token = "<unk>"},
    decoder = {type = "Sequence", decoders = {
      {type = "Replace", pattern = {String = mark}, content = " "},
      {type = "ByteFallback"}, {type = "Fuse"}, table.unpack(strip)}},
    post_processor = processor(metadata, flag(metadata, "add_bos_token", true),
                               flag(metadata, "add_eos_token", false))}
end

local function of_gpt2(metadata, tokens)
  local pre = metadata["tokenizer.ggml.pre"] or "default"
  local words = WORDS[pre] or text.refuse(
    ("the words of the tokenizer %s are not known"):format(pre),
    "a folder with tokenizer.json has them")
  local steps = {{type = "ByteLevel", use_regex = words == true}}
  if words ~= true then
    table.insert(steps, 1, {type = "Split", behavior = "Isolated",
                            pattern = {Regex = words}})
  end
  return {
    normalizer = pre == "qwen2" and {type = "NFC"} or nil,
    pre_tokenizer = {type = "Sequence", pretokenizers = steps},
    model = {type = "BPE", vocab = ids_of(tokens),
             merges = list(metadata, "merges") or {},
             ignore_merges = words == LLAMA3},
    decoder = {type = "ByteLevel"},
    post_processor = processor(metadata,
                               flag(metadata, "add_bos_token", words == LLAMA3),
                               flag(metadata, "add_eos_token", false))}
end

-- The description that the metadata have.
function text.of_gguf(metadata)
  local kind = metadata["tokenizer.ggml.model"]
  local tokens = list(metadata, "tokens")
  if not tokens then text.refuse "the file has no tokenizer" end
  local of = kind == "llama" and of_llama or kind == "gpt2" and of_gpt2
  if not of then
    text.refuse(("the tokenizer %s of the file is not supported"):format(kind))
  end
  local d = of(metadata, tokens)
  d.added_tokens = added_tokens(tokens, list(metadata, "token_type"))
  return d
end
