-- SPDX-License-Identifier: MIT
--
-- command_options.lua - the arguments of a command by its signature, in the
-- syntax of operators.def: "expr:lua, *, n=false, s:setup=nil". What follows
-- "*" are options: -n, and -s with a value; a longer name is --save.
--
-- Texts of usage, the reader of options and completion come from it. Where a
-- command takes code, its options stand before the code ("leading"), or behind
-- it ("trailing": -y log); code may begin with a minus.

local suggestion = require "nacre.suggestion"

local command_options = {}

-- How an option is typed: "-n", "--export-json".
function command_options.word(p)
  return (#p.name == 1 and "-" or "--") .. p.name:gsub("_", "-")
end

-- Does an option stand alone?
function command_options.isflag(p) return p.type == "bool" end

-- The parameter of the option that a word names, or nil.
function command_options.find(params, word)
  for _, p in ipairs(params) do
    if p.byname and command_options.word(p) == word then return p end
  end
end

-- What stands for a value in the usage: "on|off", "FILE".
local function placeholder(p)
  if p.shown then return p.shown end
  if p.choices and p.type == "text" then return p.choices end
  local name = p.byname and p.type or p.name
  return name:upper() .. (p.choices and "|" .. p.choices or "")
end

-- "[-n]", "[-c cold]" or "-s SETUP" without brackets.
function command_options.form(p, bare)
  local text = command_options.word(p)
  if not command_options.isflag(p) then
    text = text .. " " .. placeholder(p)
  end
  return bare and text or "[" .. text .. "]"
end

-- The texts of arguments; what is left out leaves out the optional ones behind
-- it, "[NAME [VALUE]]".
local function nested(params)
  local list, n = {}, #params
  while n > 0 and params[n].optional do n = n - 1 end
  for i, p in ipairs(params) do
    local text = placeholder(p)
    if i > n then
      text = "[" .. text .. (i == #params and ("]"):rep(#params - n) or "")
    elseif p.optional then
      text = "[" .. text .. "]"
    end
    list[i] = text
  end
  return list
end

-- The usage of a command: its options before its arguments, or behind them.
-- Several are only mentioned.
function command_options.usage(params, trailing)
  local args, options = {}, {}
  for _, p in ipairs(params) do
    if p.byname then
      options[#options + 1] = command_options.form(p)
    else
      args[#args + 1] = p
    end
  end
  args = nested(args)
  if #options > 1 then options = {"[OPTIONS]"} end
  local first, last = options, args
  if trailing then first, last = args, options end
  table.move(last, 1, #last, #first + 1, first)
  return table.concat(first, " ")
end

-- The next word of a text, in quotes or up to a blank, and the rest.
local function value(rest)
  local quote = rest:match "^[\"']"
  if not quote then return rest:match "^(%S+)%s*(.*)$" end
  local i = 2
  while i <= #rest do
    local c = rest:sub(i, i)
    if c == "\\" then
      i = i + 1
    elseif c == quote then
      local inside = rest:sub(2, i - 1):gsub("\\([\"'\\])", "%1")
      return inside, rest:sub(i + 1):match "^%s*(.*)$"
    end
    i = i + 1
  end
end

command_options.value = value

local function whole(text)
  local n = math.tointeger(tonumber(text))
  return n and n > 0 and n or nil
end

-- Readers of values by type, and their names in messages; others stay texts.
local readers = {
  seconds = {"seconds", function(text)
    local n = tonumber(text)
    return n and n > 0 and n or nil
  end},
  count = {"a number above 0", whole},
  number = {"a number", tonumber},
  center = {"a number", tonumber},
}

-- The value of an option from its text; nil and what is wrong.
local function convert(p, text)
  local word = p.byname and command_options.word(p) or
               p.name:match "^[^.]+":upper()
  if p.choices and p.type == "text" then
    for choice in p.choices:gmatch "[^|]+" do
      if choice == text then return text end
    end
    return nil, ("%s is: %s%s"):format(word, p.byname and word .. " " or "",
                                       (p.choices:gsub("|", " or ")))
  end
  local reader = readers[p.type]
  if not reader then return text end
  local v = reader[2](text)
  if v == nil then return nil, ("%s needs %s"):format(word, reader[1]) end
  return v
end

-- Why the words before an expression are not options; nil if they may belong
-- to the expression, as in -x + 1 (--x would be a comment).
local function not_an_option(params, words)
  local word = words:match "^%-%-%a%S*" or words:match "^(%-%a)%s+[%w_\"']"
  if not word then return nil end
  local name, known = word:match "^[^=]*", {}
  for _, p in ipairs(params) do
    if p.byname then known[#known + 1] = command_options.word(p) end
  end
  return ("no option '%s'%s"):format(word,
    command_options.find(params, name) and
    (", did you mean %s with its value after a blank?"):format(name) or
    #name > 2 and suggestion.text(name, known, "%s") or "")
end

-- The options that begin a text, {name = value}, a flag true, and the rest; nil
-- and what is wrong.
function command_options.leading(params, words)
  local o = {}
  while true do
    local word, rest = words:match "^(%-%-?[%a-]+)%s+(.*)$"
    local p = word and command_options.find(params, word)
    if not p then
      local wrong = not_an_option(params, words)
      return not wrong and o or nil, wrong or words
    end
    if command_options.isflag(p) then
      o[p.name] = true
    else
      local given, wrong
      given, rest = value(rest)
      if not given then
        local reader = readers[p.type]
        return nil, ("%s needs %s"):format(word, reader and reader[1] or
                                                 "a " .. p.type)
      end
      o[p.name], wrong = convert(p, given)
      if wrong then return nil, wrong end
    end
    words = rest
  end
end

-- The options anywhere among words, and the words; nil and what is wrong.
function command_options.among(params, text)
  local o, words = {}, {}
  for word in text:gmatch "%S+" do
    local p = command_options.find(params, word)
    if p then
      o[p.name] = true
    elseif word:find "^%-%-" then
      return nil, not_an_option(params, word)
    else
      words[#words + 1] = word
    end
  end
  return o, words
end

-- The options that end a text, and what precedes them. What is not one
-- of these belongs to the expression. The value may stand close if it is one of
-- a few words: -ylog, -y=log.
function command_options.trailing(params, text)
  local o = {}
  while true do
    local head, word, given = text:match "^(.-)%s+(%-%a)%s+(%S+)%s*$"
    local close = not word
    if close then
      head, word, given = text:match "^(.-)%s+(%-%a)=?(%a+)%s*$"
    end
    local p = word and command_options.find(params, word)
    if close and p and not p.choices then p = nil end -- x -offset
    local v = p and convert(p, given)
    if v == nil then return text, o end
    o[p.name], text = v, head
  end
end

-- The parameter of an argument by its position, without dots, and whether it
-- takes all that follow; nil if there are not so many.
local function positional(params, i)
  local p = nil
  for k, candidate in ipairs(params) do
    if candidate.byname or k > i then break end
    p = (k == i or candidate.name:find "%.$") and candidate or nil
  end
  if p then return p, p.name:match "^[^.]+", p.name:find "%.$" ~= nil end
end

-- Adds the values of what is left out; nil and what is wrong if that must not
-- be.
function command_options.with_defaults(params, o)
  for _, p in ipairs(params) do
    local name = p.name:match "^[^.]+"
    if o[name] == nil and not p.optional then
      return nil, "needs " .. placeholder(p)
    end
    if o[name] == nil and p.default ~= nil then o[name] = p.default end
  end
  return o
end

-- Reads an option from the begin of a text into o; returns the rest, or nil and
-- what is wrong.
local function read_option(p, text, o)
  local word, rest = text:match "^(%S+)%s*(.*)$"
  if command_options.isflag(p) then
    o[p.name] = true
    return rest
  end
  local given, wrong
  given, rest = value(rest)
  if not given then return nil, word .. " needs a value" end
  o[p.name], wrong = convert(p, given)
  if wrong then return nil, wrong end
  return rest
end

-- Reads the i-th argument likewise; returns also the position of the next one.
local function read_argument(params, i, text, o)
  local p, name, several = positional(params, i)
  if not p then
    return nil, ("too many arguments, from '%s' on"):format(text)
  end
  if p.type == "lua" then
    o[name] = text
    return "", i
  end
  local given, rest = value(text)
  if not given then return nil, "no quote ends " .. text end
  local v, wrong = convert(p, given)
  if wrong then return nil, wrong end
  if not several then
    o[name] = v
    return rest, i + 1
  end
  o[name] = o[name] or {}
  table.insert(o[name], v)
  return rest, i
end

-- All arguments and options of a text, {name = value}: a list where several are
-- taken, of Lua the text from there on. Nil and what is wrong.
function command_options.read(params, text)
  local o, i, wrong = {}, 1, nil
  text = text:match "^%s*(.-)%s*$"
  while text ~= "" do
    local p = command_options.find(params, text:match "^%S+")
    local behind = nil
    if p then
      text, wrong = read_option(p, text, o)
    else
      wrong = text:find "^%-%-%a" and not_an_option(params, text)
      if wrong then return nil, wrong end
      text, behind = read_argument(params, i, text, o)
    end
    if not text then return nil, wrong or behind end
    i = behind or i
  end
  return command_options.with_defaults(params, o)
end

return command_options
