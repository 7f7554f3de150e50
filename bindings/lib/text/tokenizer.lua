-- SPDX-License-Identifier: MIT
-- tokenizer.lua - nacre.text.tokenizer: a text as numbers of tokens and back,
-- as Hugging Face's tokenizer.json describes it.
--
-- The parts that a file may have are functions that are made from their
-- descriptions when it is read; what is not known is refused then.
local all = ...
all.require("nacre.text_steps", "nacre.token_models", "nacre.added_tokens",
            "nacre.token_decoders", "nacre.gguf_tokenizers")
local text, fail = all.text, all.fail
local json = require "nacre.json_text"

local Tokenizer = {__name = "nacre.text.tokenizer"}
Tokenizer.__index = Tokenizer

-- ---- reading

-- Is there a step of this type in a description?
local function has_step(d, kind)
  if not d then return false end
  if d.type == kind then return true end
  for _, step in ipairs(d.pretokenizers or d.decoders or {}) do
    if has_step(step, kind) then return true end
  end
  return false
end

-- The tokens before and behind a single text.
local processors = {}

local function ends_of(d, ids)
  if not d or d.type == "ByteLevel" then return {}, {} end
  if not processors[d.type] then
    text.refuse(("the post-processor %s is not supported"):format(
                  tostring(d.type)))
  end
  return processors[d.type](d, ids)
end

function processors.TemplateProcessing(d)
  local before, after, into = {}, {}, nil
  into = before
  for _, item in ipairs(d.single) do
    if item.Sequence then into = after
    else
      for _, id in ipairs(d.special_tokens[item.SpecialToken.id].ids) do
        into[#into + 1] = id
      end
    end
  end
  return before, after
end

function processors.BertProcessing(d) return {d.cls[2]}, {d.sep[2]} end
processors.RobertaProcessing = processors.BertProcessing

function processors.Sequence(d, ids)
  local before, after = {}, {}
  for _, step in ipairs(d.processors) do
    local b, a = ends_of(step, ids)
    table.move(before, 1, #before, #b + 1, b)
    table.move(a, 1, #a, #after + 1, after)
    before = b
  end
  return before, after
end

-- Adds the tokens beside the vocabulary to the names; those that are looked for
-- in the text as it is, and in the normalized one.
local function add_tokens(self, list)
  local plain, normalized = {}, {}
  for _, token in ipairs(list) do
    if type(token.content) ~= "string" or token.content == "" or
       math.type(token.id) ~= "integer" or token.id < 0 or
       token.id > 1 << 24 then
      text.refuse "an added token has no text or no number"
    end
    for i = #self.names + 1, token.id do self.names[i] = false end
    self.names[token.id + 1] = token.content
    self.ids[token.content] = token.id
    self.added[token.id] = token
    table.insert(token.normalized and normalized or plain, token)
  end
  for _, token in ipairs(normalized) do
    token.content = self.normalize(token.content)
  end
  return text.token_finder(plain), text.token_finder(normalized)
end

-- The tokenizer of a description.
local function new_tokenizer(d)
  local self = setmetatable({added = {}}, Tokenizer)
  local bytes = has_step(d.pre_tokenizer, "ByteLevel") or
                has_step(d.decoder, "ByteLevel")
  local model = text.model(d.model, bytes)
  self.names, self.ids, self.divide = model.names, model.ids, model.divide
  self.normalize = text.normalizer(d.normalizer)
  self.pre_tokenize = text.pre_tokenizer(d.pre_tokenizer)
  self.find_plain, self.find_normalized = add_tokens(self, d.added_tokens or {})
  self.before, self.after = ends_of(d.post_processor, self.ids)
  self.join = text.decoder(d.decoder)
  return self
end

local function read_file(path)
  local file <close>, why = io.open(path, "rb")
  if not file then return nil, why end
  local source, wrong = file:read "a"
  return source, source or ("%s: %s"):format(path, wrong)
end

-- The description in a file of JSON.
local function read_description(path)
  local source, why = read_file(path)
  if not source then fail("tokenizer", why) end
  local ok, d = pcall(json.decode, source, {big = "float"})
  if not ok and d.message then
    fail("tokenizer", ("%s: %s"):format(path, d.message))
  elseif not ok then error(d, 0) end
  if type(d) ~= "table" or type(d.model) ~= "table" then
    fail("tokenizer", path .. ": this is not a tokenizer.json: it has no model")
  end
  return d
end

-- Raises the error again, as one of ours: of a file whose parts are missing or
-- of other types Lua itself says so.
local function fail_plain(op, where, e)
  if type(e) ~= "string" then error(e, 0) end
  fail(op, where .. (all.is_internal(e) and
                     "a part of the tokenizer is missing or of another type" or
                     e))
end

all.define("text.tokenizer", "path:file -> tokenizer",
  "reads a tokenizer: tokenizer.json, a folder with such a file, or a .gguf "
  .. "file",
function(path)
  if path:find "%.gguf$" then
    local _, metadata = nacre.load(path, {names = {}})
    return new_tokenizer(text.of_gguf(metadata or {}))
  end
  if not path:find "%.json$" then path = path .. "/tokenizer.json" end
  local d = read_description(path)
  local ok, result = pcall(new_tokenizer, d)
  if ok then return result end
  fail_plain("tokenizer", path .. ": ", result)
end)

-- ---- from a text to numbers

local function check_text(s)
  if type(s) ~= "string" then
    fail("encode", ("a text is needed, not a %s"):format(type(s)))
  end
  local good, bad = utf8.len(s)
  if not good then
    fail("encode", ("the text is not UTF-8 at byte %d"):format(bad))
  end
end

-- Appends the numbers of a text without added tokens as they are.
local function add_text(self, s, at_start, ids)
  for i, part in ipairs(self.find_normalized(self.normalize(s))) do
    if type(part) == "table" then ids[#ids + 1] = part.id
    elseif part ~= "" then
      self.divide(self.pre_tokenize({part}, at_start and i == 1), ids)
    end
  end
end

local function encode(self, s, special)
  local ids = {}
  if special then table.move(self.before, 1, #self.before, 1, ids) end
  for i, part in ipairs(self.find_plain(s)) do
    if type(part) == "table" then ids[#ids + 1] = part.id
    else add_text(self, part, i == 1, ids) end
  end
  if special then
    table.move(self.after, 1, #self.after, #ids + 1, ids)
  end
  return ids
end

-- tok:encode(text, {add_special_tokens =}): the numbers of its tokens.
function Tokenizer:encode(s, options)
  check_text(s)
  local special = not (options and options.add_special_tokens == false)
  local ok, ids = pcall(encode, self, s, special)
  return ok and ids or fail_plain("encode", "", ids)
end

-- ---- back

-- tok:decode(ids, {skip_special_tokens =}): the text of numbers.
function Tokenizer:decode(ids, options)
  if nacre.is_tensor(ids) then ids = ids:reshape(-1):tolist() end
  if type(ids) ~= "table" then
    fail("decode", "ids are a list or a tensor, not a " .. type(ids))
  end
  local skip, list = true, {}
  if options and options.skip_special_tokens == false then skip = false end
  for i, id in ipairs(ids) do
    if math.type(id) ~= "integer" then
      fail("decode", ("element %d is a %s, not an integer"):format(i, type(id)))
    end
    local name, added = self.names[id + 1], self.added[id]
    if name and not (skip and added and added.special) then
      list[#list + 1] = name
    end
  end
  return self.join(list)
end

-- The number of a token, and its name, or nil.
function Tokenizer:token_to_id(name) return self.ids[name] end

function Tokenizer:id_to_token(id)
  if not self.name_of then
    self.name_of = {}
    for name, other in pairs(self.ids) do self.name_of[other] = name end
  end
  return self.name_of[id]
end

-- One more than the greatest number.
function Tokenizer:vocab_size() return #self.names end

function Tokenizer:__tostring()
  return ("tokenizer of %d tokens"):format(#self.names)
end

all.guard_methods(Tokenizer, function(v)
  return all.is_instance(v, Tokenizer)
end, "tok", {
  encode = "text:any, options:table=nil", decode = "ids:any, options:table=nil",
  token_to_id = "name:text", id_to_token = "id:int", vocab_size = ""})
