-- SPDX-License-Identifier: MIT
--
-- syntax_errors.lua - shows an error of the compiler: the line with a caret,
-- and a hint what to write instead (foreign_syntax.lua).

local foreign_syntax = require "nacre.foreign_syntax"
local runtime_errors = require "nacre.runtime_errors"
local lexer = require "nacre.lexer"
local input_block = require "nacre.input_block"
local values = require "nacre.lua_values"

local syntax_errors = {}

-- The token that causes `message': the first for which the text up to it fails
-- with the same message. With more text it fails so, too, so the token is found
-- by halving.
local function offender(message, text, head)
  local line = math.tointeger(message:match ":(%d+): ")
  if #text > 1 << 18 or message:find "<eof>$" or
     not (line and runtime_errors.line(text, line)) then
    return nil
  end
  local said = message:match ":%d+: .*$"
  local list = lexer.tokens(text, line)
  local low, high = 1, #list + 1 -- the first is one of these
  while low < high do
    local middle = (low + high) // 2
    local _, got = load(head .. text:sub(1, list[middle].to), "=stdin", "t")
    if got and got:match ":%d+: .*$" == said then
      high = middle
    else
      low = middle + 1
    end
  end
  return list[low]
end

-- The token that causes a message of the compiler, or nil. In a long text it is
-- the first of the line that the message names.
function syntax_errors.place(message, text)
  if #text < 4096 then return offender(message, text, "") end
  local line = math.tointeger(message:match ":(%d+): ")
  local near = message:match " near '(.*)'$"
  if not runtime_errors.line(text, line) then return nil end
  for _, token in ipairs(lexer.tokens(text, line)) do
    if token.text == near then return token end
  end
end

-- The line of a token, the text before it in the line, the text from it on.
local function around(text, token)
  local line = runtime_errors.line(text, token.line)
  local start = token.from
  while start > 1 and text:sub(start - 1, start - 1) ~= "\n" do
    start = start - 1
  end
  local column = token.from - start
  return line, line:sub(1, column), line:sub(column + 1)
end

local function show(what, place, line, before, hint, paint)
  local lines = {what}
  if line then
    local indent = #line:match "^%s*"
    local head = "  " .. place .. "   "
    lines[2] = head .. values.blank_controls(line:sub(indent + 1))
    if before then
      local width = utf8.len(before) or #before
      lines[3] = (" "):rep(#head + width - indent) .. "^"
    end
  end
  if hint then
    hint = values.escape_controls(hint)
    lines[#lines + 1] = "  " .. paint("hint:", "cyan") .. " " .. hint
  end
  return table.concat(lines, "\n")
end

-- The line above, if it begins a block of Python. Lua takes its colon for that
-- of a method call and rejects what follows the first name below.
local function python_head_above(e, text)
  local number = math.tointeger(e.number)
  local line = number and number > 1 and
               e.what:find "^function arguments expected" and
               runtime_errors.line(text, number - 1)
  return line and input_block.python_colon(line) and line
end

-- Returns the token of a message, its line, the text before it and from it on,
-- a better message, a hint.
local function examine(message, text, head)
  local e = {message = message, token = offender(message, text, head)}
  e.number, e.what = message:match ":(%d+): (.*)$"
  if not e.token then return e end
  e.above = python_head_above(e, text)
  if e.above then
    e.token, e.number = nil, math.tointeger(e.number) - 1
    return e
  end
  e.line, e.before, e.rest = around(text, e.token)
  local near = e.what:match " near '(.*)'$" or ""
  e.better, e.hint = foreign_syntax.hint(e.what, near, e.before, e.rest)
  return e
end

-- Lua compiles a block as statements and as an expression. Of the two errors,
-- the one that has a hint, or the one that is further in the text.
local function examine_both(message, text)
  local a = examine(message, text, "")
  local f, other = load("return " .. text, "=stdin", "t")
  if f or a.better or not a.token then return a end
  local b = examine(other, text, "return ")
  local further = b.token and b.token.from > a.token.from
  local same = a.hint == b.hint and a.token.text ~= "#"
  return further and (same or not a.hint) and b or a
end

-- A simpler text for "'end' expected (to close 'for' at line 1) near <eof>".
local function unfinished(what)
  if not what:find "%f[%a]expected.*<eof>$" then return what end
  return (what:gsub(" near <eof>$", "")
              :gsub("%((to close .*) at line (%d+)%)$", "%1 at line %2"))
end

-- The text of a syntax error, the hint in it and the message. message is Lua's;
-- text is the block.
function syntax_errors.render(message, text, opts, paint)
  local escaped = values.escape_controls
  local chunk = escaped(message:match "^(.-):%d+: " or "stdin")
  local e = opts.script and examine(message, text, "") or
            examine_both(message, text)
  if not e.number then
    return paint("error:", "red") .. " " .. escaped(message)
  end
  local place = chunk .. ":" .. e.number
  local head = opts.script and place .. ": " or paint("error:", "red") .. " "
  local several = opts.script or text:find "\n%s*%S"
  if not e.token then
    local line = several and not e.what:find "<eof>$" and
                 runtime_errors.line(text, math.tointeger(e.number))
    local hint, what = foreign_syntax.unfinished(e.what, e.above or text)
    what, hint = escaped(what or unfinished(e.what)), opts.whole or hint
    return show(head .. what, place, line, nil, hint, paint), hint, what
  end
  e.hint = opts.whole or e.hint
  local line = (several or not e.better) and e.line or nil
  local what = escaped(e.better or e.what)
  return show(head .. what, place, line, line and e.before, e.hint, paint),
         e.hint, what
end

-- The same for a message that names a file; nil if it is no syntax error.
function syntax_errors.script(message, read, opts, paint)
  local chunk = message:match "^([^\n:]+):%d+: [^\n]* near [^\n]+$"
  local text = chunk and read(chunk)
  if not text then return nil end
  text = text:gsub("^#[^\n]*", "")
  if load(text, "=stdin", "t") then return nil end
  return syntax_errors.render(message, text, opts, paint)
end

return syntax_errors
