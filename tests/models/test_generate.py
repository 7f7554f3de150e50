#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/generate.lua from the outside, with a small random model: options,
what is printed and when, Ctrl-C, and errors.

    tests/models/test_generate.py build/nacre
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

NACRE = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "nacre"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPT = os.path.join(ROOT, "scripts", "generate.lua")

# The pieces are the bytes and three words; the model has two layers.
MAKE = """
nacre.manual_seed(4)
local folder, vocab = arg[1], {}
local shown = {}
for b = 0, 255 do
  shown[b] = (b >= 33 and b <= 126 or b >= 161 and b <= 172 or b >= 174) and b
end
local free = 256
for b = 0, 255 do
  vocab[utf8.char(shown[b] or free)] = b
  if not shown[b] then free = free + 1 end
end
for i, word in ipairs {"th", "the", "the\\u{120}"} do vocab[word] = 255 + i end
nacre.json.save(folder .. "/tokenizer.json", {
  model = {type = "BPE", vocab = vocab,
           merges = {{"t", "h"}, {"th", "e"}, {"the", "\\u{120}"}}},
  pre_tokenizer = {type = "ByteLevel"}, decoder = {type = "ByteLevel"},
  added_tokens = {{id = 259, content = "<end>", special = true}}})
local config = {model_type = "llama", hidden_size = 16, vocab_size = 260,
  num_attention_heads = 2, num_key_value_heads = 1, num_hidden_layers = 2,
  intermediate_size = 24, eos_token_id = 999, rope_theta = 1e4,
  rms_norm_eps = 1e-6, sliding_window = nacre.json.null}
nacre.json.save(folder .. "/config.json", config)
local w = {["model.norm.weight"] = nacre.ones(16),
           ["model.embed_tokens.weight"] = nacre.randn(260, 16),
           ["lm_head.weight"] = nacre.randn(260, 16) * 0.5}
for i = 0, 1 do
  local p = ("model.layers.%d."):format(i)
  local function add(name, ...) w[p .. name .. ".weight"] = nacre.randn(...) end
  add("self_attn.q_proj", 16, 16)
  add("self_attn.k_proj", 8, 16)
  add("self_attn.v_proj", 8, 16)
  add("self_attn.o_proj", 16, 16)
  add("mlp.gate_proj", 24, 16)
  add("mlp.up_proj", 24, 16)
  add("mlp.down_proj", 16, 24)
  w[p .. "input_layernorm.weight"] = nacre.ones(16)
  w[p .. "post_attention_layernorm.weight"] = nacre.ones(16)
end
nacre.save(folder .. "/model.safetensors", w)
"""


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp()
        cls.model = os.path.join(cls.home, "model")
        os.mkdir(cls.model)
        script = os.path.join(cls.home, "make.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(MAKE)
        subprocess.run([NACRE, script, cls.model], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def run_script(self, *options, status=0):
        done = subprocess.run([NACRE, SCRIPT, *options], timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr.decode()

    def generate(self, *options):
        out, err = self.run_script(self.model, "--prompt", "the cat", *options)
        self.assertEqual(err, "")
        self.assertTrue(out.startswith(b"the cat") and out.endswith(b"\n"), out)
        out.decode()    # whole characters
        return out

    def test_greedy(self):
        a = self.generate("--temperature", "0", "--tokens", "30")
        self.assertEqual(a, self.generate("--temperature", "0", "--tokens",
                                          "30", "--seed", "5"))
        short = self.generate("--temperature", "0", "--tokens", "8")
        self.assertTrue(a.startswith(short[:-1]))
        one = self.generate("--top-k", "1", "--tokens", "30", "--seed", "3")
        self.assertEqual(a, one)
        least = self.generate("--top-p", "0", "--tokens", "30", "--seed", "3")
        self.assertEqual(a, least)

    def test_seed(self):
        options = "--tokens", "40", "--temperature", "1.5", "--top-k", "0"
        a = self.generate(*options, "--seed", "1")
        self.assertEqual(a, self.generate(*options, "--seed", "1"))
        self.assertNotEqual(a, self.generate(*options, "--seed", "2"))

    def test_dtype(self):
        self.generate("--dtype", "bfloat16", "--tokens", "5")

    def test_end(self):
        """A token that the configuration names ends the text."""
        path = os.path.join(self.model, "generation_config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"eos_token_id": list(range(260))}, f)
        try:
            out = self.generate("--tokens", "9")
        finally:
            os.remove(path)
        self.assertEqual(out, b"the cat\n")

    def test_interrupt(self):
        """The text comes before its end; Ctrl-C ends it quietly."""
        with subprocess.Popen(
                [NACRE, SCRIPT, self.model, "--prompt", "the", "--tokens",
                 "100000"], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE) as p:
            got = b""
            while len(got) < 20:
                more = os.read(p.stdout.fileno(), 1000)
                self.assertTrue(more, p.stderr)
                got += more
            p.send_signal(signal.SIGINT)
            rest, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (130, b""))
        self.assertTrue((got + rest).endswith(b"\n"))

    def test_usage(self):
        for options in ([], ["--prompt"], [self.model, "--tokens", "x"],
                        [self.model, "--nothing", "1"]):
            _, err = self.run_script(*options, status=2)
            self.assertIn(f"usage: nacre {SCRIPT} ", err)

    def test_refused(self):
        _, err = self.run_script(self.model, status=1)
        self.assertIn("--prompt is needed", err)
        _, err = self.run_script("/nosuch", "--prompt", "a", status=1)
        self.assertIn("/nosuch/config.json: No such file", err)
        other = shutil.copytree(self.model, os.path.join(self.home, "other"))
        config = os.path.join(other, "config.json")
        with open(config, encoding="utf-8") as f:
            c = json.load(f)
        for name, value, text in (
                ("model_type", "bert", "type bert is not supported"),
                ("num_hidden_layers", 3, "no model.layers.2.self_attn.q_proj"),
                ("hidden_act", "x", "the activation x is not supported"),
                ("hidden_size", "a", "has no number hidden_size"),
                ("rope_scaling", {"rope_type": "yarn"}, "scaled by yarn")):
            with open(config, "w", encoding="utf-8") as f:
                json.dump({**c, name: value}, f)
            _, err = self.run_script(other, "--prompt", "a", status=1)
            self.assertIn(text, err)


unittest.main()
