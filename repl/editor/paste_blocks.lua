-- SPDX-License-Identifier: MIT
--
-- paste_blocks.lua - splits pasted text into inputs that run one after the
-- other, as if they had been typed: text copied from a session, where inputs
-- begin with "> ", and lines that compile one by one but not together.

local lexer = require "nacre.lexer"
local input_block = require "nacre.input_block"

local paste_blocks = {}

local waiting = {}

-- Text copied from a session without what was printed and without the first
-- prompt; nil for other text.
function paste_blocks.strip(text)
  local list = require "nacre.test_file".inputs(text)
  return list and table.concat(list, "\n> ")
end

local opens = {["("] = true, ["["] = true, ["{"] = true}
local closes = {[")"] = true, ["]"] = true, ["}"] = true}

-- What goes on over lines: texts, comments, and what is in brackets.
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

-- Where lines begin with "> ", but not in a text, a comment or brackets.
local function prompts(text)
  local list, inside = {}, spans(text)
  for at in text:gmatch "\n()> " do
    local within = false
    for _, token in ipairs(inside) do
      within = within or token.from < at and at <= token.to
    end
    if not within then list[#list + 1] = at end
  end
  return list
end

local function marked(text)
  local list, from = {}, 1
  for _, at in ipairs(prompts(text)) do
    list[#list + 1] = text:sub(from, at - 2)
    from = at + 2
  end
  list[#list + 1] = text:sub(from)
  return list
end

-- The last input of a block, of which alone more may follow.
function paste_blocks.last(text)
  local list = marked(text)
  return list[#list]
end

-- Does a line begin an input?  What is indented goes on, and so does what
-- would be a method of the line before.
local function begins(line)
  return not line:find "^%s" and not line:find "^[.)%]}]" and
         not line:find "^:%a+[%({\"']"
end

-- The indentation of the first line, as code in a page has it, goes from all
-- lines that have it.
local function outdented(text)
  local indent = text:match "^[ \t]+"
  return indent and ("\n" .. text):gsub("\n" .. indent, "\n"):sub(2) or text
end

-- The lines that make an input each, nil if one is none of its own.
local function byline(text, islua)
  local list, block = {}, nil
  text = outdented(text)
  local function whole()
    local part = input_block.lua_part(block, islua)
    return not part or not part:find "%S" or input_block.compile(part).f ~= nil
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if block and line:find "%S" and begins(line) and whole() then
      list[#list + 1], block = block, nil
    end
    if block or line:find "%S" then
      block = block and block .. "\n" .. line or line
    end
  end
  if not block or not whole() then return nil end
  list[#list + 1] = block:match "^(.-)%s*$"
  return list
end

-- Is text one input?  A command that takes no Lua is a line.
local function single(text, islua)
  local part = input_block.lua_part(text, islua)
  if part then return input_block.compile(part).kind ~= "error" end
  return not input_block.command(text)
end

-- The first of several inputs, while the others wait; nil if it is one.
function paste_blocks.split(text, islua)
  local list
  if not text:find "\n" then return nil end
  if #prompts(text) > 0 then list = marked(text)
  elseif not single(text, islua) then list = byline(text, islua) end
  if not list or #list < 2 then return nil end
  waiting = list
  return table.remove(waiting, 1)
end

-- The next that waits, or nil.
function paste_blocks.next() return table.remove(waiting, 1) end

function paste_blocks.drop() waiting = {} end

return paste_blocks
