-- SPDX-License-Identifier: MIT
--
-- paste_blocks.lua - splits pasted text into inputs that run one after the
-- other, as if they had been typed: text copied from a session, where inputs
-- begin with "> ", and lines that compile one by one but not together.

local lexer = require "nacre.lexer"
local input_block = require "nacre.input_block"
local python_block = require "nacre.python_block"

local paste_blocks = {}

local waiting = {}

-- Removes output and the first prompt from text copied from a session, and all
-- prompts from one of Python; nil for other text.
function paste_blocks.strip(text)
  local lines = python_block.session(text)
  if lines then return lines end
  local list = require "nacre.test_file".inputs(text)
  return list and table.concat(list, "\n> ")
end

local opens, closes = lexer.opens, lexer.closes

-- The ranges of strings, comments and brackets, which may span lines.
local function spans(text)
  local list, depth, from = {}, 0, nil
  for _, token in ipairs(lexer.tokens(text)) do
    if token.kind == "string" or token.kind == "comment" then
      list[#list + 1] = token
    elseif opens[token.text] then
      from = depth == 0 and token.from or from
      depth = depth + 1
    elseif closes[token.text] and depth > 0 then
      depth = depth - 1
      if depth == 0 then list[#list + 1] = {from = from, to = token.to} end
    end
  end
  if depth > 0 then list[#list + 1] = {from = from, to = #text} end
  return list
end

-- The lines that begin with "> ", except in a string, a comment or brackets.
local function prompts(text)
  local list = {}
  if not text:find("\n> ", 1, true) then return list end
  local inside, i = spans(text), 1
  for at in text:gmatch "\n()> " do
    while inside[i] and inside[i].to < at do i = i + 1 end
    local within = inside[i] and inside[i].from < at
    if not within then list[#list + 1] = at end
  end
  return list
end

local function split_at_prompts(text)
  local list, from = {}, 1
  for _, at in ipairs(prompts(text)) do
    list[#list + 1] = text:sub(from, at - 2)
    from = at + 2
  end
  list[#list + 1] = text:sub(from)
  return list
end

-- The last input of a block, the only one that may be incomplete.
function paste_blocks.last(text)
  local list = split_at_prompts(text)
  return list[#list]
end

-- Does a line begin an input? Indented lines, and lines that continue the one
-- before with a method call, do not.
local function begins_input(line)
  return not line:find "^%s" and not line:find "^[.)%]}]" and
         not line:find "^:%a+[%({\"']"
end

-- Removes the indentation of the first line, as code in a page has it, from
-- all lines.
local function outdent(text)
  local indent = text:match "^[ \t]+"
  return indent and ("\n" .. text):gsub("\n" .. indent, "\n"):sub(2) or text
end

-- Splits a text into lines that are an input each; nil if one is not.
local function split_lines(text, islua)
  local list, block = {}, nil
  text = outdent(text)
  local function whole(is_last)
    local part = input_block.lua_part(block, islua)
    local unit = part and input_block.compile(part)
    return not part or unit.f ~= nil or unit.kind == "empty" or
           is_last and unit.kind == "method"
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if block and line:find "%S" and begins_input(line) and whole() then
      list[#list + 1], block = block, nil
    end
    if block or line:find "%S" then
      block = block and block .. "\n" .. line or line
    end
  end
  if not block or not whole(true) then return nil end
  list[#list + 1] = block:match "^(.-)%s*$"
  return list
end

-- Is the text one input? A command that takes no Lua is a single line.
local function is_single(text, islua)
  local part = input_block.lua_part(text, islua)
  if part then return input_block.compile(part).kind ~= "error" end
  return not input_block.command(text)
end

-- All inputs of the cell of a notebook; it may begin with a command that takes
-- Lua, and go on with other lines.
function paste_blocks.inputs(text, islua)
  text = paste_blocks.strip(text) or text
  if #prompts(text) > 0 then return split_at_prompts(text) end
  local part = not input_block.command(text) and
               input_block.lua_part(text, islua)
  if part and input_block.compile(part).f then return {text} end
  return split_lines(text, islua) or {text}
end

-- The first of several inputs; the others are kept for next(). Nil if there is
-- one.
function paste_blocks.split(text, islua)
  local list
  local head, rest = python_block.behind_head(text)
  if head then
    waiting = {rest}
    return head
  end
  if not text:find "\n" then return nil end
  if #prompts(text) > 0 then list = split_at_prompts(text)
  elseif not is_single(text, islua) then list = split_lines(text, islua) end
  if not list or #list < 2 then return nil end
  waiting = list
  return table.remove(waiting, 1)
end

-- The next input, or nil.
function paste_blocks.next() return table.remove(waiting, 1) end

function paste_blocks.drop() waiting = {} end

return paste_blocks
