-- SPDX-License-Identifier: MIT
-- nacre.text without other packages: what each part of a tokenizer.json does,
-- what is refused, and that a damaged file is an error of ours.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
local json, text = nacre.json, nacre.text

local base = os.tmpname()
os.remove(base)
local path = base .. ".json"

local function make(d)
  json.save(path, d)
  return text.tokenizer(path)
end

local function is(got, want, what)
  got = type(got) == "table" and table.concat(got, " ") or got
  assert(got == want, ("%s: %q, not %q"):format(what or "", got, want))
end

local function with(fields)
  local d = {model = {type = "BPE", merges = {"a b", "ab c", "b c"}, vocab =
    {a = 0, b = 1, c = 2, ab = 3, abc = 4, bc = 5, x = 6, ["▁"] = 7, A = 8}},
    decoder = {type = "Fuse"}}
  for name, v in pairs(fields or {}) do d[name] = v end
  return d
end

-- ---- models

local tok = make(with())
is(tok:encode "abc", "4")
is(tok:encode "bca", "5 0")
is(tok:encode "abab", "3 3")
is(tok:encode "axbc", "0 6 5")
is(tok:encode "a?c", "0 2", "what has no piece is left out")
is(tok:encode "", "")
is(tok:decode {4, 6}, "abcx")
is(tok:decode(nacre.tensor {4, 6}), "abcx")
is(tok:decode {99, -1, 4}, "abc", "numbers that are no tokens")
is(tok:token_to_id "bc", 5)
is(tok:id_to_token(5), "bc")
assert(tok:token_to_id "no" == nil and tok:id_to_token(99) == nil)
is(tok:vocab_size(), 9)
is(tostring(tok), "tokenizer of 9 tokens")
local long = ("abc"):rep(20000)
is(#tok:encode(long), 20000)

local d = with()
d.model.unk_token = "x"
is(make(d):encode "a??c", "0 6 6 2", "unknown")
d.model.fuse_unk = true
is(make(d):encode "a??c", "0 6 2", "fused")
d = with()
d.model.ignore_merges, d.model.merges = true, {}
is(make(d):encode "abc", "4", "a word that is a piece")
d.model.ignore_merges = false
is(make(d):encode "abc", "0 1 2")
d = with {decoder = {type = "ByteFallback"}}
d.model.byte_fallback = true
for b = 0, 255 do d.model.vocab[("<0x%02X>"):format(b)] = 10 + b end
tok = make(d)
is(tok:encode "aé", ("0 %d %d"):format(10 + 0xC3, 10 + 0xA9), "bytes")
is(tok:decode(tok:encode "é😀"), "é😀")
is(tok:decode {10 + 0xC3, 0, 10 + 0xA9}, "\u{FFFD}a\u{FFFD}")

tok = make {model = {type = "Unigram", unk_id = 0, vocab = {{"<unk>", 0},
  {"a", -1}, {"b", -1.5}, {"ab", -2}, {"abb", -3.75}, {"c", -9}}},
  decoder = {type = "Fuse"}}
is(tok:encode "ab", "3", "the better score")
is(tok:encode "abb", "3 2")
is(tok:encode "a??c", "1 0 5", "unknown")

-- ---- normalizers

local function normalized(n, s, want)
  local t = make {normalizer = n, decoder = {type = "Fuse"}, model =
    {type = "Unigram", vocab = {{"<", 0}}, unk_id = 0, byte_fallback = true}}
  return is(t.normalize(s), want, n.type)
end

normalized({type = "NFC"}, "e\u{301}\u{323}", "ẹ\u{301}")
normalized({type = "NFC"}, "\u{1112}\u{1161}\u{11AB}", "한")
normalized({type = "NFC"}, "\u{212B}\u{2126}", "ÅΩ")
normalized({type = "NFD"}, "한ẹ\u{301}",
           "\u{1112}\u{1161}\u{11AB}e\u{323}\u{301}")
normalized({type = "NFD"}, "plain", "plain")
normalized({type = "Prepend", prepend = "_"}, "a", "_a")
normalized({type = "Replace", pattern = {String = "."}, content = "!"}, "a.b",
           "a!b")
normalized({type = "Replace", pattern = {Regex = "[a-c]+|\\d{2}"},
            content = "!"}, "abcd123", "!d!3")
normalized({type = "Strip", strip_left = true, strip_right = false}, " a ",
           "a ")
normalized({type = "Sequence", normalizers = {{type = "NFC"},
           {type = "Strip", strip_left = true, strip_right = true}}}, " a\n",
           "a")

-- A map of SentencePiece: a size, units, texts. It replaces "a" by "xy": unit 0
-- leads by 96 to the unit of "a", whose value is at the distance 2.
local function base64(bytes)
  local set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" ..
              "0123456789+/"
  local s = (bytes .. "\0\0"):gsub("(.)(.)(.)", function(a, b, c)
    local v = a:byte() << 16 | b:byte() << 8 | c:byte()
    local out = ""
    for shift = 18, 0, -6 do
      local i = (v >> shift & 63) + 1
      out = out .. set:sub(i, i)
    end
    return out
  end)
  local n = (#bytes + 2) // 3 * 4
  local pad = -#bytes % 3
  return s:sub(1, n - pad) .. ("="):rep(pad)
end

local function charsmap(units, texts)
  local list = {}
  for i = 0, 99 do list[i + 1] = string.pack("<I4", units[i] or 0) end
  return base64(string.pack("<I4", 400) .. table.concat(list) .. texts)
end

local units = {[0] = 96 << 10, [1] = 2 << 10 | 1 << 8 | 97, [3] = 1 << 31 | 1}
normalized({type = "Precompiled", precompiled_charsmap =
            charsmap(units, "\0xy\0")}, "abba", "xybbxy")
for i = 1, 300 do
  for k = 0, 99 do
    units[k] = math.random(0, (1 << 32) - 1) >> math.random(0, 31)
  end
  local ok, t = pcall(make, {model = {type = "Unigram", vocab = {{"<", 0}}},
    normalizer = {type = "Precompiled", precompiled_charsmap =
                  charsmap(units, ("x"):rep(i % 5))}})
  if ok then t.normalize "abc e\u{301} \u{1F600} \r\n" end
end
for _, map in ipairs {"", "AAA", "AAAA", "*AAA", base64(("\255"):rep(99))} do
  fails("map of characters is", make, {model = {type = "Unigram",
    vocab = {{"<", 0}}}, normalizer = {type = "Precompiled",
    precompiled_charsmap = map}})
end

-- ---- pre-tokenizers: the parts between bars

local function parts(p, s, want, inside)
  local t = make(with {pre_tokenizer = p})
  is(table.concat(t.pre_tokenize({s}, not inside), "|"), want, p.type)
end

local function split(behavior, s, want, invert)
  parts({type = "Split", pattern = {Regex = "-+"}, behavior = behavior,
         invert = invert or false}, s, want)
end

split("Isolated", "a--b-", "a|--|b|-")
split("Removed", "a--b-", "a|b")
split("Removed", "a--b-", "--|-", true)
split("MergedWithPrevious", "-a--b-", "-|a--|b-")
split("MergedWithNext", "-a--b-", "-a|--b|-")
split("Contiguous", "-a--b-", "-|a|--|b|-")
parts({type = "ByteLevel", add_prefix_space = true}, "it's 12 a!!  b",
      " it|'s| 12| a|!!| | b")
parts({type = "Metaspace", replacement = "▁", prepend_scheme = "always"},
      "a b", "▁a|▁b")
parts({type = "Metaspace", replacement = "▁", prepend_scheme = "first"},
      "a b", "a|▁b", true)
parts({type = "Metaspace", replacement = "▁", prepend_scheme = "never",
       split = false}, "a b", "a▁b")
parts({type = "Digits", individual_digits = true}, "a12", "a|1|2")
parts({type = "Digits", individual_digits = false}, "a12", "a|12")
parts({type = "Punctuation"}, "a,.b", "a|,|.|b")
parts({type = "WhitespaceSplit"}, " a b ", "a|b")
parts({type = "Whitespace"}, " a,b ", "a|,|b")
parts({type = "Sequence", pretokenizers = {{type = "WhitespaceSplit"},
       {type = "Digits", individual_digits = true}}}, "a1 2", "a|1|2")

-- ---- patterns

local function matched(regex, s, want)
  parts({type = "Split", pattern = {Regex = regex}, behavior = "Removed",
         invert = true}, s, want)
end

matched("a|ab", "aab", "a|a")
matched("(?:a|b)+c", "abcac", "abc|ac")
matched("a{2}", "aaaaa", "aa|aa")
matched("a{1,2}b?", "aaab", "aa|ab")
matched("(?:ab){2,}", "abababab", "abababab")
matched("(?:ab){1,2}", "ababab", "abab|ab")
matched("(?:ab)?c", "abcc", "abc|c")
matched("a+?b|a", "aaab", "aaab")
matched("(?i:straße)", "STRAßE straße", "STRAßE|straße")
matched("\\s+(?!\\S)", "a  b ", " | ")
matched("a(?=b)", "abac", "a")
matched("^a", "aa", "a")
matched("a$", "aa", "a")
matched("[^a-c\\s]+", "abxy z", "xy|z")
matched("\\p{Lu}\\p{Ll}*", "Éa bÜ", "Éa|Ü")
matched("[\\p{N}\\-]+", "1-٣a½", "1-٣|½")
matched("\\P{L}", "aé1", "1")
matched("\\x{41}\\u0042", "AB", "AB")
matched("a++b", "aab", "aab")
matched("a++ab|b", "aab", "b")
matched(".", "é\n😀", "é|😀")

for regex, why in pairs {
  [""] = "has no pattern", ["("] = "missing", [")"] = "has no '('",
  ["[a"] = "missing", ["*"] = "nothing is repeated", ["a**"] = "repeated",
  ["(?<=a)b"] = "kind of group", ["\\q"] = "escape",
  ["\\p{Greek}"] = "property",
  ["a{3,2}"] = "repetitions", ["a{9999999}"] = "repetitions",
  ["(?:a*)*"] = "may be empty", ["[[a]]"] = "sets in sets",
  ["(?:a?){900}{900}"] = "repeated", [("(?:"):rep(99)] = "too deep",
  ["[b-a]"] = "range", [("(?:abcdefgh){1000}")] = "too long"
} do
  if regex ~= "" then
    fails(why, make, with {normalizer = {type = "Replace", content = "",
                                         pattern = {Regex = regex}}})
  end
end
tok = make(with {normalizer = {type = "Replace", content = "",
                               pattern = {Regex = "(?:a|a)+(?:a|a)+b"}}})
fails("too many steps", tok.encode, tok, ("a"):rep(4000))

-- ---- added tokens, the ends of a text

tok = make(with {added_tokens = {
  {id = 20, content = "<s>", special = true},
  {id = 21, content = "<s><s>", special = true},
  {id = 22, content = "[m]", special = true, lstrip = true, rstrip = true},
  {id = 23, content = "bc", single_word = true}},
  post_processor = {type = "TemplateProcessing", single = {
    {SpecialToken = {id = "<s>"}}, {Sequence = {id = "A"}}},
    special_tokens = {["<s>"] = {ids = {20}}}}})
is(tok:encode "a<s>b", "20 0 20 1")
is(tok:encode("a<s><s>b", {add_special_tokens = false}), "0 21 1")
is(tok:encode("a  [m] b", {add_special_tokens = false}), "0 22 1")
is(tok:encode("bc abc", {add_special_tokens = false}), "23 4")
is(tok:decode {20, 0, 20, 1}, "ab")
is(tok:decode({20, 0}, {skip_special_tokens = false}), "<s>a")
is(tok:vocab_size(), 24)
is(tok:id_to_token(20), "<s>")

-- ---- GGUF

local function gguf_text(s) return string.pack("<s8", s) end
local function pair(name, kind, bytes)
  return gguf_text("tokenizer.ggml." .. name) .. string.pack("<I4", kind) ..
         bytes
end
local function list(kind, items, pack)
  local bytes = {}
  for i, v in ipairs(items) do bytes[i] = pack(v) end
  return string.pack("<I4I8", kind, #items) .. table.concat(bytes)
end
local function gguf(pairs_of)
  local name = path .. ".gguf"
  local f <close> = io.open(name, "wb")
  f:write("GGUF", string.pack("<I4I8I8", 3, 0, #pairs_of),
          table.concat(pairs_of))
  f:close()
  local ok, t = pcall(text.tokenizer, name)
  os.remove(name)
  return ok and t or error(t, 0)
end
local function f32(x) return string.pack("<f", x) end
local function i32(x) return string.pack("<i4", x) end

tok = gguf {pair("model", 8, gguf_text "llama"),
  pair("tokens", 9, list(8, {"<unk>", "<s>", "▁", "a", "b", "ab", "▁ab"},
                         gguf_text)),
  pair("scores", 9, list(6, {0, 0, -3, -4, -5, -2, -1}, f32)),
  pair("token_type", 9, list(5, {2, 3, 1, 1, 1, 1, 1}, i32)),
  pair("bos_token_id", 4, string.pack("<I4", 1))}
is(tok:encode "ab", "1 6")
is(tok:encode "a ab", "1 2 3 6")
is(tok:decode {1, 6, 6}, "ab ab")
tok = gguf {pair("model", 8, gguf_text "gpt2"),
  pair("tokens", 9, list(8, {"a", "b", "Ġ", "ab", "Ġab"}, gguf_text)),
  pair("merges", 9, list(8, {"a b", "Ġ ab"}, gguf_text))}
is(tok:encode "ab ab", "3 4")
is(tok:decode {3, 4}, "ab ab")
fails("tokenizer bert of the file", gguf, {pair("model", 8, gguf_text "bert"),
      pair("tokens", 9, list(8, {"a"}, gguf_text))})
fails("has no tokenizer", gguf, {})

-- ---- what is refused

fails("No such file", text.tokenizer, "/nosuch")
fails("it has no model", make, {})
fails("the model WordPiece is not supported", make, {model =
      {type = "WordPiece", vocab = json.object {}}})
fails("normalizer Lowercase is not supported", make,
      with {normalizer = {type = "Lowercase"}})
fails("pre-tokenizer Bert is not supported", make,
      with {pre_tokenizer = {type = "Bert"}})
fails("decoder X is not supported", make, with {decoder = {type = "X"}})
fails("post-processor X is not supported", make,
      with {post_processor = {type = "X"}})
d = with()
d.model.merges[4] = "a q"
fails("merge 4, of 'a' and 'q', is not in the vocabulary", make, d)
d = with()
d.model.end_of_word_suffix = "</w>"
fails("end_of_word_suffix is not supported", make, d)
d = with()
d.model.vocab.a = -1
fails("is not from 0 to", make, d)
tok = make(with())
fails("not UTF-8 at byte 2", tok.encode, tok, "a\xff")
fails("a text is needed, not a number", tok.encode, tok, 1)
fails("line 1, column", function()
  local f <close> = io.open(path, "w")
  f:write "{"
  f:close()
  text.tokenizer(path)
end)

-- Damaged: a tokenizer, or an error of ours.
d = json.encode(with {normalizer = {type = "NFC"}, pre_tokenizer =
  {type = "ByteLevel"}, added_tokens = {{id = 20, content = "<s>"}}})
HERE = here .. "../files/"
local choose = dofile(HERE .. "bad/random.lua")
math.randomseed(1)
for i = 1, 2000 do
  local f <close> = io.open(path, "wb")
  f:write(i % 2 == 0 and choose.mutant(d) or
          (d:gsub('[%w"{}%[%]]+', function(word)
            return choose.once_in(30) and choose.from {"1", "null", "{}", "[]",
              '"x"', "-1", "1e9", '"a"'} or word
          end)))
  f:close()
  local ok, e = pcall(text.tokenizer, path)
  if ok then ok, e = pcall(e.encode, e, "ab <s>") end
  assert(ok or type(e) == "table" and e.code, tostring(e))
end
os.remove(path)
