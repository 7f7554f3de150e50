#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares nacre.text with the package tokenizers: tokenizers of the kinds that
models have, trained on a few texts, divide texts in many scripts into the same
tokens, and make the same texts of them.

    tests/models/tokenizers_python.py build/nacre [SEED]
"""
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

try:
    import sentencepiece
except ImportError:
    sentencepiece = None

SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1

TEXTS = [
    "The quick brown fox jumps over the lazy dog. It's 3.14159, isn't it?",
    "def f(x):\n    return x**2 + 1  # comment\n\n\n\tif x != 0: pass\r\n",
    "Größe, naïve café, Ñandú, Œuvre, ß, ÅÄÖ; l'été où l'on dansait",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. 2024 год",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Ὀδυσσεύς ἐν Ἰθάκῃ",
    "いろはにほへと ちりぬるを。東京タワーは高さ333メートルです。カタカナ",
    "敏捷的棕色狐狸跳过了懒狗。中文分词没有空格，二〇二四年。",
    "다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다 각",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ١٢٣٤",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน",
    "যে কোনো ভাষা শিখতে সময় লাগে। தமிழ் மொழி அழகானது",
    "👋🏽 👨‍👩‍👧‍👦 🇩🇪 emoji ✨ and ∑∫√ math ½ ² ﬁ Ⅷ 𝔘𝔫𝔦",
    "  leading,   inner   and trailing spaces   ",
    "Tabs\tand\u00a0no-break\u3000wide \u200bzero\x85next\u2028line",
    "e\u0301 vs \u00e9, \u1112\u1161\u11ab vs \ud55c, q\u0307\u0323 \u212b \u0344",
    "", " ", "\n", "a", "<s>", "x<|end|>y <|end|>  z", "<pad> <mask> here",
    "WE'LL SEE you'RE it'S 'tis 12345678 1,000.50 __init__ a_b C++ #!",
]

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}"
    r"\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}"
    r"\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)",
    r"\s+"])

SCRIPT = """
local texts = nacre.json.load(arg[1])
local out = {}
local wants = {{}, {add_special_tokens = false}}
for k = 2, #arg do
  local tok = nacre.text.tokenizer(arg[k])
  local rows = {}
  for i, s in ipairs(texts) do
    local row = {}
    for j, o in ipairs(wants) do
      local ids = tok:encode(s, o)
      row[j] = {ids, tok:decode(ids),
                tok:decode(ids, {skip_special_tokens = false})}
    end
    rows[i] = row
  end
  out[k - 1] = rows
end
io.write(nacre.json.encode(out))
"""

SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "<|end|>"]


def byte_trainer(size=700):
    return trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(TEXTS, byte_trainer())
    return t


def roberta():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXTS, byte_trainer())
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return t


def by_words(words, **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXTS, byte_trainer(900))
    return t


def llama3():
    t = by_words(LLAMA3, ignore_merges=True)
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])])
    return t


def qwen2():
    t = by_words(QWEN2)
    t.normalizer = normalizers.NFC()
    return t


def decomposed():
    t = by_words(O200K)
    t.normalizer = normalizers.NFD()
    return t


def digits():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXTS, byte_trainer())
    return t


def pieces_trainer(size=600):
    return trainers.BpeTrainer(
        vocab_size=size, show_progress=False, max_token_length=8,
        special_tokens=SPECIAL + ["<0x%02X>" % b for b in range(256)])


def only_special(t):
    """The tokens of bytes are not looked for in a text."""
    d = json.loads(t.to_str())
    d["added_tokens"] = [a for a in d["added_tokens"]
                         if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(d))


def llama2():
    """Trained with words, then used without, as the model is."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True,
                             byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(TEXTS[:6] + TEXTS[7:9], pieces_trainer())
    t.pre_tokenizer = None
    t.normalizer = normalizers.Sequence([
        normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(),
        decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A $B", [("<s>", 1), ("</s>", 2)])
    return only_special(t)


def mistral():
    t = llama2()
    t.normalizer = None
    t.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "first", split=False)
    return t


def gemma():
    t = llama2()
    t.normalizer = normalizers.Replace(" ", "\u2581")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([
        decoders.Replace("\u2581", " "), decoders.ByteFallback(),
        decoders.Fuse()])
    return t


def unknowns():
    """Characters without a piece and without bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.train_from_iterator(TEXTS[:4], trainers.BpeTrainer(
        vocab_size=200, show_progress=False, special_tokens=SPECIAL))
    return t


def unigram(scheme, fallback=False):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(" {2,}"), " "),
        normalizers.Strip(left=False, right=True)])
    t.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", scheme)
    t.decoder = decoders.Metaspace("\u2581", scheme)
    t.train_from_iterator(TEXTS[:9], trainers.UnigramTrainer(
        vocab_size=400, show_progress=False, unk_token="<unk>",
        special_tokens=SPECIAL))
    if fallback:
        d = json.loads(t.to_str())
        d["model"]["byte_fallback"] = True
        d["model"]["vocab"] += [["<0x%02X>" % b, -20.0] for b in range(256)]
        d["decoder"] = {"type": "Sequence", "decoders": [
            {"type": "ByteFallback"}, d["decoder"]]}
        t = Tokenizer.from_str(json.dumps(d))
    return t


def t5():
    """The map of characters is one that sentencepiece compiles."""
    t = unigram("always")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[:4]), model_writer=model, vocab_size=300,
        hard_vocab_limit=False, minloglevel=2)
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    t.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap_of(sp.serialized_model_proto())),
        normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.post_processor = processors.TemplateProcessing(
        "$A </s>", "$A </s> $B </s>", [("</s>", 2)])
    return t


def charsmap_of(proto):
    """Field 2 of field 3, the normalizer, of a model."""
    def fields(data):
        at = 0

        def varint():
            nonlocal at
            v = shift = 0
            while True:
                b = data[at]
                at += 1
                v |= (b & 127) << shift
                shift += 7
                if b < 128:
                    return v
        while at < len(data):
            key = varint()
            if key & 7 == 0:
                varint()
            elif key & 7 == 2:
                n = varint()
                yield key >> 3, data[at:at + n]
                at += n
            else:
                at += 4 if key & 7 == 5 else 8
    spec = next(v for k, v in fields(proto) if k == 3)
    return next(v for k, v in fields(spec) if k == 2)


def whitespace():
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(TEXTS, trainers.UnigramTrainer(
        vocab_size=500, show_progress=False, unk_token="<unk>",
        special_tokens=SPECIAL))
    return t


def stripped(t):
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True),
                          AddedToken("<sep>", rstrip=True, special=True)])
    t.add_tokens([AddedToken("here", single_word=True, normalized=True)])
    return t


KINDS = {
    "gpt2": gpt2, "roberta": lambda: stripped(roberta()), "llama3": llama3,
    "qwen2": qwen2, "decomposed": decomposed, "digits": digits,
    "llama2": llama2, "mistral": lambda: stripped(mistral()), "gemma": gemma,
    "unknowns": unknowns, "unigram": lambda: unigram("always"),
    "unigram first": lambda: unigram("first", True),
    "whitespace": whitespace,
}


if sentencepiece:
    KINDS["t5"] = t5


def mixed_texts(rng):
    """Pieces of the texts, one after another."""
    for _ in range(300):
        parts = []
        for _ in range(rng.randint(1, 6)):
            text = rng.choice(TEXTS)
            at = rng.randint(0, len(text))
            parts.append(text[at:at + rng.randint(0, 12)])
        yield "".join(parts)
    # characters that every version of Unicode in use has
    known = [chr(c) for c in range(1, 0x20000)
             if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    for _ in range(100):
        yield "".join(rng.choice(known[:800] if rng.random() < 0.4 else known)
                      for _ in range(rng.randint(1, 20)))
    yield " ".join(TEXTS)
    yield "word " * 2000


def compare(name, t, texts, rows):
    wrong = 0
    for s, row in zip(texts, rows):
        for special, (ids, plain, full) in zip((True, False), row):
            want = t.encode(s, add_special_tokens=special).ids
            if ids != want:
                print(f"{name}: {s!r}\n  {ids}\n  not {want}")
            elif (plain, full) != (t.decode(ids), t.decode(
                    ids, skip_special_tokens=False)):
                print(f"{name}: {s!r} is {plain!r} and {full!r}\n  not "
                      f"{t.decode(ids)!r}\n"
                      f"  and {t.decode(ids, skip_special_tokens=False)!r}")
            else:
                continue
            wrong += 1
            if wrong > 3:
                return wrong
    return wrong


def main():
    texts = TEXTS + list(mixed_texts(random.Random(SEED)))
    kinds = {name: make() for name, make in KINDS.items()}
    with tempfile.TemporaryDirectory() as folder:
        def path(name):
            return os.path.join(folder, name)
        paths = []
        for name, t in kinds.items():
            paths.append(path(name.replace(" ", "_") + ".json"))
            t.save(paths[-1])
        with open(path("texts.json"), "w", encoding="utf-8") as f:
            json.dump(texts, f)
        with open(path("encode.lua"), "w", encoding="utf-8") as f:
            f.write(SCRIPT)
        done = subprocess.run(
            [sys.argv[1], path("encode.lua"), path("texts.json"), *paths],
            check=True, stdout=subprocess.PIPE)
    out = json.loads(done.stdout)
    wrong = sum(compare(name, t, texts, rows)
                for (name, t), rows in zip(kinds.items(), out))
    print(f"{len(kinds)} tokenizers, {len(texts)} texts, {wrong} differ")
    sys.exit(wrong > 0)


main()
