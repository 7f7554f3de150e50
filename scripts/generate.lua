-- SPDX-License-Identifier: MIT
-- Continues a text with a language model: a folder as Hugging Face has it
-- (config.json, tokenizer.json, .safetensors), or a GGUF file. Models of the
-- families Llama, Mistral, Qwen2, Qwen3, Gemma and GPT-2.
--
--   nacre scripts/generate.lua FOLDER_OR_GGUF [--prompt TEXT] [--tokens 200]
--         [--temperature 0.8] [--top-k 40] [--top-p 0.95] [--seed N]
--         [--device cuda] [--dtype float32]
--
-- --temperature 0 always takes the likeliest token. The text is printed token
-- by token; Ctrl-C ends it.

local here = arg[0]:match "^(.*/)" or "./"
local models = dofile(here .. "language_models/models.lua")
local refuse = models.refuse

local o = nacre.options {
  "Continues a text with a language model.",
  {"path", "a folder as Hugging Face has it, or a GGUF file"},
  {"--prompt", "the text", default = ""},
  {"--tokens", "how many come at most", default = 200},
  {"--temperature", "0 takes the likeliest token", default = 0.8},
  {"--top-k", "chooses among so many tokens; 0: all", default = 40},
  {"--top-p", "and among those that have this share", default = 0.95},
  {"--seed", "of the random numbers", type = "integer"},
  {"--device", "where to compute", default = "cpu"},
  {"--dtype", "of the weights, if not that of the file"},
}

-- ---- a token of logits

-- The positions of the likeliest tokens, and their logits.
local function likeliest(logits, o)
  local k = o.top_k
  if k < 1 or k > logits:size(1) then k = logits:size(1) end
  return logits:topk(k)
end

-- A token from 0.
local function choose(logits, o)
  logits = logits:reshape(-1):float():cpu()
  if o.temperature <= 0 then return logits:argmax():item() - 1 end
  local values, places = likeliest(logits / o.temperature, o)
  local p = values:softmax(1)
  if o.top_p < 1 then
    -- those before which the sum is below it, at least the first
    local before = p:cumsum(1) - p
    p = p:masked_fill(before:ge(math.max(o.top_p, 1e-9)), 0)
  end
  return places[p:multinomial(1):item()] - 1
end

-- ---- the text

-- A function that prints the tokens that it is given, each as soon as its
-- characters are complete.
local function new_printer(tok)
  local ids, from, shown = {}, 1, 0
  return function(id)
    ids[#ids + 1] = id
    local before = tok:decode(table.move(ids, from, shown, 1, {}))
    local after = tok:decode(table.move(ids, from, #ids, 1, {}))
    if #after > #before and not after:find "\u{FFFD}$" then
      io.stdout:write(after:sub(#before + 1))
      io.stdout:flush()
      from, shown = shown + 1, #ids
    end
  end
end

local function is_end(model, id)
  for _, other in ipairs(model.c.ends) do
    if other == id then return true end
  end
  return false
end

local function generate(model, tok, o)
  local ids = tok:encode(o.prompt)
  if not ids[1] then refuse "--prompt is needed: the text has no tokens" end
  local cache = model:new_cache(#ids + o.tokens)
  local print_token = new_printer(tok)
  for _, id in ipairs(ids) do print_token(id) end
  for _ = 1, o.tokens do
    local id = choose(model:forward(ids, cache, true), o)
    if is_end(model, id) then break end
    print_token(id)
    ids = {id}
  end
end

if o.seed then nacre.manual_seed(o.seed) end
local model = models.load(o.path, o)
local tok = nacre.text.tokenizer(o.path)
-- Ctrl-C ends the line and the program.
local finish <close> = setmetatable({}, {__close = function(_, e)
  print()
  if e and tostring(e):find "interrupted" then os.exit(130, true) end
end})
generate(model, tok, o)
