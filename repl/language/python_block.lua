-- SPDX-License-Identifier: MIT
--
-- python_block.lua - does a block of Python go on? Its first line ends in ":",
-- those of its body are indented, and a blank line ends it, like at Python's
-- own prompt. Asked only of text that is no Lua.

local lexer = require "nacre.lexer"

local python_block = {}

local LONGEST <const> = 8192

local heads = lexer.set "for while if try with def class async"
local joins = lexer.set "elif else except finally"

-- Where a text in quotes that begins at `from' ends; nil if it is left open.
local function text_end(source, from)
  local quote = source:sub(from, from)
  local three = quote:rep(3)
  if source:sub(from, from + 2) == three then
    local _, last = source:find(three, from + 3, true)
    return last
  end
  local at = from + 1
  while true do
    local found = source:match("^[^\\\n" .. quote .. "]*()", at)
    if not found then return nil end
    local c = source:sub(found, found)
    if c ~= "\\" then return found end
    at = found + 2
  end
end

-- The lines of a text, of which one that leaves a bracket open ends with that:
-- {indent =, code = without its comment}. Is a bracket open at the end, a text
-- of three quotes?
local function read(source)
  local list, depth, at, line = {}, 0, 1, nil
  while at <= #source do
    local from, c = source:match("^[^\n#\"'%[%](){}]*()(.?)", at)
    if not line and source:find("^[ \t]*[^%s#]", at) then
      line = {indent = #source:match("^[ \t]*", at), from = at, code = ""}
      list[#list + 1] = line
    end
    local stop = from
    if c == '"' or c == "'" then
      stop = text_end(source, from)
      if not stop then return list, depth, true end
    elseif c == "#" then
      if line then line.to = line.to or from - 1 end
      stop = source:match("^[^\n]*()", from) - 1
    elseif lexer.opens[c] then depth = depth + 1
    elseif lexer.closes[c] then depth = depth - 1
    elseif (c == "\n" or c == "") and depth <= 0 and line then
      line.to, line = line.to or from - 1, nil
    end
    if c ~= "#" and line then line.to = nil end
    at = stop + 1
  end
  for _, l in ipairs(list) do
    l.code = source:sub(l.from, l.to or #source):match "^%s*(.-)%s*$"
  end
  return list, depth, false
end

local function is_head(line)
  return heads[line.code:match "^%l+"] and line.code:find ":$" ~= nil
end

-- Does a line open the body of a block, also of "else:"?
local function opens_body(line)
  return is_head(line) or
         joins[line.code:match "^%l+"] and line.code:find ":$" ~= nil
end

local function is_decorator(line)
  return line.code:find "^@%a[%w_%.]*$" or line.code:find "^@%a[%w_%.]*%b()$"
end

-- The first line of a block of Python that has more; nil of other text. Lua
-- would take "try:" and the name below it for the call of a method.
function python_block.head(source)
  local line = source:match "^([^\n]*:[ \t]*)\n" or
               source:match "^([^\n]*:[ \t]*#[^\n]*)\n"
  local word = line and line:match "^%s*(%l+)"
  local list = heads[word] and rawget(_G, word) == nil and read(line)
  return list and is_head(list[1]) and line or nil
end

-- Does a line end in a bracket or a comma that a list goes on after? The { of
-- other languages that stands for a block is none.
local function goes_on(code)
  return code:find "[(%[,]$" ~= nil or code:find "[=(%[{,:]%s*{$" ~= nil or
         code:find "^{$" ~= nil or code:find "^return%s*{$" ~= nil
end

-- Does the text wait for more lines?
function python_block.waits(source)
  if #source > LONGEST then return false end
  local list, depth, in_text = read(source)
  local first, last = list[1], list[#list]
  if in_text then return true end
  if not first or source:find "\n[ \t]*$" then return false end
  if depth > 0 then
    return #list > 1 or source:find "\n" ~= nil or goes_on(last.code)
  end
  if not is_head(first) and not is_decorator(first) then return false end
  return last == first or last.indent > first.indent or
         is_decorator(last) ~= nil or is_head(last) or
         joins[last.code:match "^%l+"] == true
end

local leaves = lexer.set "return pass break continue raise"

-- The column of the line after `source' that begins with `rest'; nil if that is
-- no block of Python.
function python_block.indent(source, rest)
  local list, depth, in_text = read(source)
  local first, last = list[1], list[#list]
  if not first or depth > 0 or in_text or
     not is_head(first) and not is_decorator(first) then return nil end
  local less = leaves[last.code:match "^%l+"] or joins[rest:match "^%l+"]
  local column = last.indent + (opens_body(last) and 4 or 0)
  return math.max(column - (less and 4 or 0), first.indent)
end

-- The lines of text behind a first one that begins a block, if the second is
-- none of its body.
function python_block.behind_head(source)
  local first, rest = source:match "^([^\n]*)\n([^%s].*)$"
  if not rest or joins[rest:match "^%l+"] or
     not python_block.waits(first) then return nil end
  local list, depth = read(first)
  local word = is_decorator(list[1]) and rest:match "^[%l@]+"
  if depth > 0 or word == "@" or word and heads[word] then return nil end
  return first, rest
end

-- The lines of a session of Python without its prompts and its output; nil for
-- other text.
function python_block.session(source)
  if not source:find "^%s*>>>%f[%s%z]" then return nil end
  local list, inside = {}, false
  for line in source:gmatch "[^\n]+" do
    local code = line:match "^%s*>>> ?(.*)$"
    local more = inside and not code and line:match "^%s*%.%.%. ?(.*)$"
    inside = (code or more) ~= nil
    if (code or more or ""):find "%S" then list[#list + 1] = code or more end
  end
  return table.concat(list, "\n")
end

return python_block
