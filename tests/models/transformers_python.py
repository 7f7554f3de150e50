#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares scripts/language_models with the package transformers: small random
models of each family give the same logits, at once and token by token, and the
same greedy tokens.

    tests/models/transformers_python.py build/nacre [SEED]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

try:
    import numpy as np
    import torch
    import transformers as T
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

try:
    import gguf
except ImportError:
    gguf = None

T.utils.logging.disable_progress_bar()
T.utils.logging.set_verbosity_error()

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODELS = os.path.join(ROOT, "scripts", "language_models", "models.lua")
VOCAB, PROMPT, MORE = 97, 21, 12

SCRIPT = """
local models = dofile(arg[1])
for i = 2, #arg, 2 do
  local path = arg[i]
  local model = models.load(arg[i + 1])
  local ids = nacre.json.load(path .. "/ids.json")
  local cache = model:new_cache(#ids)
  local whole = model:forward(ids, cache)
  -- five tokens, then three, then one at a time
  cache = model:new_cache(#ids)
  local parts, from = {}, 1
  for _, n in ipairs {5, 3, 1} do
    repeat
      local part = table.move(ids, from, from + n - 1, 1, {})
      parts[#parts + 1] = model:forward(part, cache)
      from = from + n
    until n > 1 or from > #ids
  end
  -- greedy
  local greedy, id = {}, nil
  cache = model:new_cache(#ids + MORE)
  local next_ids = ids
  for k = 1, MORE do
    id = model:forward(next_ids, cache, true):argmax():item() - 1
    greedy[k], next_ids = id, {id}
  end
  nacre.save(path .. "/logits.npz", {whole = whole, parts = nacre.cat(parts, 1),
                                     greedy = nacre.tensor(greedy)})
end
""".replace("MORE", str(MORE))

SMALL = dict(vocab_size=VOCAB, hidden_size=48, intermediate_size=80,
             num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)

ROPE3 = dict(rope_type="llama3", rope_theta=500.0, factor=8.0,
             low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=32)


def models():
    yield "llama", T.LlamaForCausalLM(T.LlamaConfig(**SMALL))
    yield "llama3", T.LlamaForCausalLM(T.LlamaConfig(
        **SMALL, rope_parameters=ROPE3, tie_word_embeddings=True,
        attention_bias=True, mlp_bias=True, head_dim=16))
    yield "mistral", T.MistralForCausalLM(T.MistralConfig(
        **SMALL, sliding_window=8))
    yield "qwen2", T.Qwen2ForCausalLM(T.Qwen2Config(**SMALL))
    yield "qwen3", T.Qwen3ForCausalLM(T.Qwen3Config(**SMALL, head_dim=16))
    yield "gemma", T.GemmaForCausalLM(T.GemmaConfig(**SMALL, head_dim=16))
    yield "gemma2", T.Gemma2ForCausalLM(T.Gemma2Config(
        **SMALL, head_dim=16, sliding_window=8, query_pre_attn_scalar=24,
        attn_logit_softcapping=5.0, final_logit_softcapping=3.0,
        attn_implementation="eager"))
    yield "gemma3", T.Gemma3ForCausalLM(T.Gemma3TextConfig(
        **SMALL, head_dim=16, sliding_window=8, query_pre_attn_scalar=24,
        layer_types=["sliding_attention", "full_attention",
                     "sliding_attention"]))
    yield "gpt2", T.GPT2LMHeadModel(T.GPT2Config(
        vocab_size=VOCAB, n_embd=48, n_layer=3, n_head=4, n_positions=64,
        bos_token_id=1, eos_token_id=2))


def spread(model):
    """Weights that are larger than those of a new model, and norms and biases
    that are not 0 and 1."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(std=0.15)
            else:
                p.add_(0.3 * torch.randn(p.shape))


def paired(weight, heads):
    """Rows of halves as rows of pairs, as llama.cpp stores Llama's."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2,
                          *weight.shape[1:]).swapaxes(1, 2).reshape(
                              weight.shape)


def gguf_tensors(model, arch):
    c = model.config
    names = gguf.get_tensor_name_map(arch, SMALL["num_hidden_layers"])
    for name, p in model.state_dict().items():
        x = p.numpy()
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        if arch == gguf.MODEL_ARCH.LLAMA and ".q_proj." in name:
            x = paired(x, c.num_attention_heads)
        if arch == gguf.MODEL_ARCH.LLAMA and ".k_proj." in name:
            x = paired(x, c.num_key_value_heads)
        if arch == gguf.MODEL_ARCH.GPT2 and x.ndim == 2 and ".c_" in name:
            x = x.T
        if "gemma" in c.model_type and name.endswith("norm.weight"):
            x = x + 1
        yield names.get_name(name, (".weight", ".bias")), \
            np.ascontiguousarray(x)


def write_gguf(path, model, arch):
    c, writer = model.config, gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[arch])
    gpt2 = arch == gguf.MODEL_ARCH.GPT2
    writer.add_block_count(c.num_hidden_layers)
    writer.add_embedding_length(c.hidden_size)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_head_count(c.num_attention_heads)
    if gpt2:
        writer.add_layer_norm_eps(c.layer_norm_epsilon)
    else:
        writer.add_head_count_kv(c.num_key_value_heads)
        writer.add_layer_norm_rms_eps(c.rms_norm_eps)
        writer.add_rope_freq_base(c.rope_parameters["rope_theta"])
        writer.add_key_length(getattr(c, "head_dim", None) or
                              c.hidden_size // c.num_attention_heads)
    for name, x in gguf_tensors(model, arch):
        assert name, "a name that the package does not know"
        writer.add_tensor(name, x)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def expected(model, ids):
    with torch.no_grad():
        x = torch.tensor([ids])
        logits = model(x).logits[0]
        greedy = []
        for _ in range(MORE):
            greedy.append(int(model(x).logits[0, -1].argmax()))
            x = torch.cat([x, torch.tensor([[greedy[-1]]])], 1)
    return logits.numpy(), greedy


def compare(name, path, want, greedy):
    got = np.load(os.path.join(path, "logits.npz"))
    scale = max(1.0, float(abs(want).max()))
    wrong = {part: float(abs(got[part] - want).max()) / scale
             for part in ("whole", "parts")}
    same = got["greedy"].tolist() == greedy
    print(f"{name}: whole {wrong['whole']:.1e}, in parts "
          f"{wrong['parts']:.1e}, greedy {'equal' if same else 'differ'}")
    return same and max(wrong.values()) < 1e-5


def main():
    torch.manual_seed(SEED)
    good, cases = True, []
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models():
            path = os.path.join(folder, name)
            model.eval()
            spread(model)
            model.save_pretrained(path)
            ids = torch.randint(3, VOCAB, (PROMPT,)).tolist()
            with open(os.path.join(path, "ids.json"), "w",
                      encoding="utf-8") as f:
                json.dump(ids, f)
            want = expected(model, ids)
            cases.append((name, path, path, *want))
            if gguf and name in ("llama", "qwen2", "qwen3", "gemma", "gpt2"):
                other = shutil.copytree(path, path + " gguf")
                file = os.path.join(other, "x.gguf")
                write_gguf(file, model,
                           getattr(gguf.MODEL_ARCH, name.upper()))
                cases.append((name + " gguf", other, file, *want))
        script = os.path.join(folder, "logits.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        paths = [path for case in cases for path in case[1:3]]
        subprocess.run([sys.argv[1], script, MODELS, *paths], check=True)
        for name, path, _, want, greedy in cases:
            good = compare(name, path, want, greedy) and good
    sys.exit(not good)


main()
