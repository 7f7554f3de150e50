-- SPDX-License-Identifier: MIT
-- token_models.lua - the models of tokenizer.json that divide a text into
-- pieces of a vocabulary: BPE and Unigram.
--
-- all.text.model(description, bytes) gives {names =, ids =, divide =}: the
-- names of the pieces by their numbers plus 1, the numbers by name, and a
-- function that appends the numbers of the pieces of parts. bytes: the
-- names have the characters that GPT-2 uses for bytes.
local all = ...
all.require "nacre.text_steps"
local text = all.text

-- ---- the characters of GPT-2 for bytes

local byte_of = {}
do
  local next_free = 256
  for b = 0, 255 do
    local shown = b >= 33 and b <= 126 or b >= 161 and b <= 172 or b >= 174
    byte_of[utf8.char(shown and b or next_free)] = string.char(b)
    if not shown then next_free = next_free + 1 end
  end
end

-- The bytes that a name stands for: itself if it has another character.
local function to_bytes(name)
  local known = true
  local bytes = name:gsub(utf8.charpattern, function(c)
    known = known and byte_of[c] ~= nil
    return byte_of[c]
  end)
  return known and bytes or name
end
text.to_bytes = to_bytes

-- ---- the vocabulary

local MOST_IDS <const> = 1 << 24

local function check_id(id, name)
  if math.type(id) ~= "integer" or id < 0 or id >= MOST_IDS then
    text.refuse(("the number of '%s' is not from 0 to %d"):format(name,
                  MOST_IDS - 1))
  end
end

-- The names by number plus 1, false where there is none, of a table of numbers
-- by name.
local function names_of(vocab)
  local names, most = {}, -1
  for name, id in pairs(vocab) do
    check_id(id, name)
    if id > most then most = id end
  end
  for i = 1, most + 1 do names[i] = false end
  for name, id in pairs(vocab) do names[id + 1] = name end
  return names
end

-- The number for each byte: of the piece that is the byte, or that is named so.
local function byte_ids(ids, name_of)
  local list, any = {}, false
  for b = 0, 255 do
    local id = ids[name_of(b)]
    list[b + 1] = id or -1
    any = any or id ~= nil
  end
  return any and list or nil
end

local function byte_name(b) return ("<0x%02X>"):format(b) end

-- A function that appends the numbers of pieces, with a cache of parts.
local function divider(vocabulary, unigram)
  local cache, kept = {}, 0
  return function(parts, ids)
    kept = kept + text.divide(vocabulary, parts, ids, cache, unigram)
    if kept > 50000 then cache, kept = {}, 0 end
  end
end

-- ---- BPE

local function split_merge(merge, i)
  if type(merge) == "table" then return merge[1], merge[2] end
  local a, b = tostring(merge):match "^(.-) (.+)$"
  if a == "" then a, b = tostring(merge):match "^( .-) (.+)$" end
  if not a then text.refuse(("merge %d is not a pair"):format(i)) end
  return a, b
end

-- The numbers of the parts of merges, and of what they make.
local function merge_ids(merges, ids)
  local left, right, merged = {}, {}, {}
  for i, merge in ipairs(merges) do
    local a, b = split_merge(merge, i)
    left[i], right[i], merged[i] = ids[a], ids[b], ids[a .. b]
    if not (left[i] and right[i] and merged[i]) then
      text.refuse(("merge %d, of '%s' and '%s', is not in the vocabulary")
                    :format(i, a, b))
    end
  end
  return left, right, merged
end

local models = {}

function models.BPE(d, bytes)
  for _, name in ipairs {"continuing_subword_prefix", "end_of_word_suffix"} do
    if (d[name] or "") ~= "" then
      text.refuse(("BPE with %s is not supported"):format(name))
    end
  end
  local ids, names = d.vocab, names_of(d.vocab)
  local left, right, merged = merge_ids(d.merges, ids)
  local pieces = names
  if bytes then
    pieces = {}
    for i, name in ipairs(names) do pieces[i] = name and to_bytes(name) end
  end
  local of_bytes = {}
  for i, piece in ipairs(pieces) do
    if piece and #piece == 1 then of_bytes[piece] = i - 1 end
  end
  return {names = pieces, ids = ids, divide = divider(text.vocabulary {
    pieces = pieces, left = left, right = right, merged = merged,
    unknown = d.unk_token and ids[d.unk_token], fuse_unknown = d.fuse_unk,
    ignore_merges = d.ignore_merges, by_bytes = bytes,
    bytes = bytes and byte_ids(of_bytes, string.char) or
            d.byte_fallback and byte_ids(ids, byte_name) or nil}, false)}
end

-- ---- Unigram

function models.Unigram(d)
  local names, scores, ids = {}, {}, {}
  for i, pair in ipairs(d.vocab) do
    names[i], scores[i] = pair[1], pair[2]
    if type(pair[1]) ~= "string" or type(pair[2]) ~= "number" then
      text.refuse(("piece %d is not a name with a score"):format(i - 1))
    end
    ids[pair[1]] = i - 1
  end
  return {names = names, ids = ids, divide = divider(text.vocabulary {
    pieces = names, scores = scores, unknown = d.unk_id, fuse_unknown = true,
    bytes = d.byte_fallback and byte_ids(ids, byte_name) or nil}, true)}
end

function text.model(d, bytes)
  -- files of before 2022 do not name it
  local kind = d.type or d.merges and "BPE" or "Unigram"
  if not models[kind] then
    text.refuse(("the model %s is not supported: BPE and Unigram are"):format(
                  tostring(kind)))
  end
  return models[kind](d, bytes)
end
