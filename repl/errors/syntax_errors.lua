-- SPDX-License-Identifier: MIT
--
-- syntax_errors.lua - errors of the compiler: where, with a caret, and what to write
-- instead (foreign_syntax.lua).

local foreign = require "nacre.foreign_syntax"
local habits = require "nacre.runtime_errors"
local lexer = require "nacre.lexer"
local submit = require "nacre.input_block"

local syntax = {}

-- The token at which `message' arises: the first with which the text up to
-- there fails in the same way.
local function offender(message, text, head)
  if #text > 1 << 18 or message:find "<eof>$" then return nil end
  local line = math.tointeger(message:match ":(%d+): ")
  for _, token in ipairs(lexer.tokens(text)) do
    if token.line > line then break end
    if token.line == line then
      local _, got = load(head .. text:sub(1, token.to), "=stdin", "t")
      if got and got:match ":%d+: .*$" == message:match ":%d+: .*$" then
        return token
      end
    end
  end
end

-- Where in its line a token stands: the line, what is before it, the rest.
local function around(text, token)
  local line = habits.line(text, token.line)
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
    lines[2] = head .. line:sub(indent + 1):gsub("%c", " ")
    if before then
      local width = utf8.len(before) or #before
      lines[3] = (" "):rep(#head + width - indent) .. "^"
    end
  end
  if hint then
    lines[#lines + 1] = "  " .. paint("hint:", "cyan") .. " " .. hint
  end
  return table.concat(lines, "\n")
end

-- The line above, if that is the head of a block of Python, whose colon Lua
-- takes for a method's: it refuses what follows the first name below.
local function headabove(e, text)
  local number = math.tointeger(e.number)
  local line = number and number > 1 and
               e.what:find "^function arguments expected" and
               habits.line(text, number - 1)
  return line and submit.colon(line) and line
end

-- What is known of a message: the token, its line, what is before it and from
-- it on, a better text, a hint.
local function examine(message, text, head)
  local e = {message = message, token = offender(message, text, head)}
  e.number, e.what = message:match ":(%d+): (.*)$"
  if not e.token then return e end
  e.above = headabove(e, text)
  if e.above then
    e.token, e.number = nil, math.tointeger(e.number) - 1
    return e
  end
  e.line, e.before, e.rest = around(text, e.token)
  local near = e.what:match " near '(.*)'$" or ""
  e.better, e.hint = foreign.hint(e.what, near, e.before, e.rest)
  return e
end

-- Of what Lua says to the block as statements and as an expression: what
-- there is a hint for, or what got further.
local function examineboth(message, text)
  local a = examine(message, text, "")
  local f, other = load("return " .. text, "=stdin", "t")
  if f or a.better or a.hint or not a.token then return a end
  local b = examine(other, text, "return ")
  return b.token and b.token.from > a.token.from and b or a
end

-- "'end' expected (to close 'for' at line 1) near <eof>", put simply.
local function unfinished(what)
  if not what:find "%f[%a]expected.*<eof>$" then return what end
  return (what:gsub(" near <eof>$", "")
              :gsub("%((to close .*) at line (%d+)%)$", "%1 at line %2"))
end

-- The text of a syntax error: message is Lua's, text the block.
function syntax.render(message, text, opts, paint)
  local chunk = message:match "^(.-):%d+: " or "stdin"
  local e = opts.script and examine(message, text, "") or
            examineboth(message, text)
  if not e.number then return paint("error:", "red") .. " " .. message end
  local place = chunk .. ":" .. e.number
  local head = opts.script and place .. ": " or paint("error:", "red") .. " "
  local several = opts.script or text:find "\n%s*%S"
  if not e.token then
    local line = several and not e.what:find "<eof>$" and
                 habits.line(text, math.tointeger(e.number))
    local hint, what = foreign.unfinished(e.what, e.above or text)
    return show(head .. (what or unfinished(e.what)), place, line, nil, hint,
                paint)
  end
  local line = (several or not e.better) and e.line or nil
  return show(head .. (e.better or e.what), place, line, line and e.before,
              e.hint, paint)
end

-- The same for a message that names a file; nil if it is no syntax error.
function syntax.script(message, read, opts, paint)
  local chunk = message:match "^([^\n:]+):%d+: [^\n]* near [^\n]+$"
  local text = chunk and read(chunk)
  if not text then return nil end
  text = text:gsub("^#[^\n]*", "")
  if load(text, "=stdin", "t") then return nil end
  return syntax.render(message, text, opts, paint)
end

return syntax
