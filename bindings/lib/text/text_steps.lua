-- SPDX-License-Identifier: MIT
-- text_steps.lua - normalizers and pre-tokenizers of tokenizer.json: what is
-- done to a text before it becomes pieces.
--
-- all.text.normalizer(description) gives a function from a text to a text,
-- all.text.pre_tokenizer(description) one from a list of parts and whether the
-- first is the beginning of the text to a list of parts.
local all = ...
local text = all.text

-- Raises an error of the file.
function text.refuse(message, hint)
  all.fail("tokenizer", message, hint)
end

-- The pattern of {Regex = ...} or {String = ...}.
local function pattern_of(p, what)
  local source = type(p) == "table" and (p.Regex or p.String)
  if type(source) ~= "string" then
    text.refuse(what .. " has no pattern")
  end
  local pattern, why = text.pattern(source, p.String ~= nil)
  if not pattern then
    text.refuse(("the pattern %s of %s cannot be used: %s"):format(
                  source:sub(1, 60), what, why))
  end
  return pattern
end

-- The function that `makers' has for a description.
local function make(makers, description, what)
  local maker = makers[description.type]
  if not maker then
    text.refuse(("the %s %s is not supported"):format(what,
                  tostring(description.type)))
  end
  return maker(description)
end

-- ---- normalizers

local normalizers = {}

function text.normalizer(description)
  if not description then return function(s) return s end end
  return make(normalizers, description, "normalizer")
end

function normalizers.Sequence(d)
  local steps = {}
  for i, step in ipairs(d.normalizers) do steps[i] = text.normalizer(step) end
  return function(s)
    for _, step in ipairs(steps) do s = step(s) end
    return s
  end
end

function normalizers.NFC() return function(s) return text.normalize(s, true) end
end

function normalizers.NFD()
  return function(s) return text.normalize(s, false) end
end

function normalizers.Prepend(d)
  return function(s) return s == "" and s or d.prepend .. s end
end

function normalizers.Replace(d)
  local pattern = pattern_of(d.pattern, "Replace")
  return function(s) return text.replace(pattern, s, d.content) end
end

function normalizers.Strip(d)
  local left = d.strip_left and assert(text.pattern "^\\s+")
  local right = d.strip_right and assert(text.pattern "\\s+$")
  return function(s)
    if left then s = text.replace(left, s, "") end
    return right and text.replace(right, s, "") or s
  end
end

-- ---- the bytes of base 64

local value_of = {}
for i, c in ipairs {("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" ..
                     "0123456789+/"):byte(1, 64)} do
  value_of[string.char(c)] = i - 1
end

local function from_base64(s)
  local known = s:match "^[%w+/]*=?=?$" and #s % 4 == 0
  if not known then text.refuse "the map of characters is not base 64" end
  local bytes = s:gsub("(.)(.)(.)(.)", function(a, b, c, d)
    local v = value_of[a] << 18 | value_of[b] << 12 |
              (value_of[c] or 0) << 6 | (value_of[d] or 0)
    return string.char(v >> 16, v >> 8 & 255, v & 255)
  end)
  return bytes:sub(1, #bytes - #s:match "=*$")
end

function normalizers.Precompiled(d)
  local map = text.charsmap(from_base64(d.precompiled_charsmap))
  return function(s) return text.apply_charsmap(map, s) end
end

-- ---- pre-tokenizers

local pre_tokenizers = {}

function text.pre_tokenizer(description)
  if not description then return function(parts) return parts end end
  return make(pre_tokenizers, description, "pre-tokenizer")
end

function pre_tokenizers.Sequence(d)
  local steps = {}
  for i, step in ipairs(d.pretokenizers) do
    steps[i] = text.pre_tokenizer(step)
  end
  return function(parts, at_start)
    for _, step in ipairs(steps) do parts = step(parts, at_start) end
    return parts
  end
end

local function splitter(pattern, behavior, invert)
  return function(parts)
    local out = {}
    for _, part in ipairs(parts) do
      text.split(pattern, part, behavior, invert, out)
    end
    return out
  end
end

local function by_pattern(source, behavior, invert)
  return splitter(assert(text.pattern(source)), behavior, invert)
end

function pre_tokenizers.Split(d)
  return splitter(pattern_of(d.pattern, "Split"), d.behavior, d.invert)
end

-- The words of GPT-2.
local WORDS <const> = [['s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|]] ..
                      [[ ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+]]

-- Bytes stand for themselves: the model has them in place of the characters of
-- the file.
function pre_tokenizers.ByteLevel(d)
  local words = d.use_regex ~= false and by_pattern(WORDS, "Isolated")
  return function(parts)
    if d.add_prefix_space then
      local out = {}
      for i, part in ipairs(parts) do
        out[i] = part:find "^ " and part or " " .. part
      end
      parts = out
    end
    return words and words(parts) or parts
  end
end

-- Blanks become d.replacement, and a word begins with it.
function pre_tokenizers.Metaspace(d)
  local mark, blank = d.replacement, assert(text.pattern(" ", true))
  local scheme = d.prepend_scheme or
                 (d.add_prefix_space == false and "never" or "always")
  local words = d.split ~= false and
                splitter(assert(text.pattern(mark, true)), "MergedWithNext")
  return function(parts, at_start)
    local out = {}
    for i, part in ipairs(parts) do
      part = text.replace(blank, part, mark)
      local prepends = scheme == "always" or
                       scheme == "first" and at_start and i == 1
      if prepends and part:sub(1, #mark) ~= mark then part = mark .. part end
      out[i] = part
    end
    return words and words(out) or out
  end
end

function pre_tokenizers.Digits(d)
  return by_pattern("\\p{N}", d.individual_digits and "Isolated" or
                    "Contiguous")
end

function pre_tokenizers.Punctuation(d)
  return by_pattern("[\\p{P}!-/:-@\\[-`{-~]", d.behavior or "Isolated")
end

-- What Rust calls a character of a word.
local WORD <const> = "\\w\\p{Nl}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}" ..
  "\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"

function pre_tokenizers.Whitespace()
  return by_pattern(("[%s]+|[^%s\\s]+"):format(WORD, WORD), "Removed", true)
end

function pre_tokenizers.WhitespaceSplit()
  return by_pattern("\\s", "Removed")
end

