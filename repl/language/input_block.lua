-- SPDX-License-Identifier: MIT
--
-- input_block.lua - classifies and compiles what was submitted at the prompt.
-- A block is
--
--   expression        return nil, BLOCK compiles. (The nil keeps a call from
--                     being a tail call, whose errors have no line.)
--   statements        BLOCK compiles
--   both              BLOCK compiles when its last part is made an expression:
--                     "a = 1; a", a pasted block that ends in a value, a last
--                     statement that is a call ("a = 1; f(a)")
--   method            a method without a call: a:sum
--   incomplete        the compiler's message ends in <eof>
--   error             everything else

local lex = require "nacre.lex"
local lexer = require "nacre.lexer"
local python_block = require "nacre.python_block"

local input_block = {}

local NAME = "=stdin"
-- Statements get a local function __keep, which makes their locals variables
-- of the session. (A global would be visible.) It is on the first line of the
-- block, so line numbers stay the same.
local HEAD = "local __keep <const> = ...; "

-- The message is a text also if the handler of a guarded call made an object of
-- it, as of the overflow of the stack by nested brackets.
local function compile(text)
  local f, message = load(text, NAME, "t")
  return f, message and tostring(message)
end

-- Words that begin a block in Python.
local python = lexer.set "for if while else elif elseif try except finally"

-- The first word of a line with the colon of a Python block: "if x == 3:" or
-- "for i in range(3): print(i)"; else nil.
function input_block.python_colon(text)
  if #text > 4096 then return nil end -- the patterns take its square
  local word = text:match "([%a_]+)[^\n]*:%s*$"
  if not word and not text:find "%f[%w_]do%f[^%w_]" and
     not text:find "%f[%w_]then%f[^%w_]" then
    word = text:match "^%s*(%a+)%s[^\n]*[%w_)]:%s+[%a_][^\n]*$"
  end
  return python[word] and word
end

-- Is a line with [[ one of lists, [[0] * 3 for i in x], and no text that goes
-- on?
local function is_list(text)
  local _, opened = text:gsub("%[", "")
  local _, closed = text:gsub("%]", "")
  return not text:find "\n" and opened == closed
end

local function incomplete(text, message)
  if not message:find "<eof>$" or input_block.python_colon(text) or
     message:find("unfinished long string", 1, true) and is_list(text) then
    return false
  end
  if message:find("unfinished string", 1, true) then
    return text:find "\\z?%s*$" ~= nil -- only a backslash carries it on
  end
  return true
end

-- A final ";" hides the result; it may also be the end of a comment. Nil of a
-- text without tokens.
local function strip(text)
  local to, hide = lex.ending(text)
  if not to then return nil end
  return hide and text:sub(1, to) or text, hide
end

-- Removes <const> and <close> of the outer locals: they become session
-- variables, and a constant does not exist at run time, a variable to be
-- closed would be closed when the block ends.
local function plain_locals(text)
  local parts, from, note = {}, 1, nil
  for _, found in ipairs(lex.attributes(text)) do
    local first, last, name, attribute = table.unpack(found)
    if attribute == "const" or attribute == "close" then
      parts[#parts + 1] = text:sub(from, first - 1)
      parts[#parts + 1] = (" "):rep(last - first + 1)
      from = last + 1
      note = name .. " is kept as a session variable; it " ..
             (attribute == "const" and "can be changed" or "is not closed")
    end
  end
  if not note then return text end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts), note
end

-- Lua's message if a block assigns to its own constant.
local function constant_assignment(text)
  local _, message = compile(text)
  return message and message:find("assign to const variable", 1, true) and
         message or nil
end

-- Calls try(position) for positions from the last on, until it answers. In all,
-- it is given no more text than this, so that a long block is not compiled
-- hundreds of times.
local ROOM <const> = 1 << 20

local function last_first(positions, length, try)
  local room = ROOM
  for i = #positions, 1, -1 do
    local got = try(positions[i])
    room = room - length(positions[i])
    if got or room < 0 then return got end
  end
end

-- Can a `return' before the last expression mend what the message says? What
-- else is missing at the end, a bracket or an `end', is missing still.
local function is_mendable(message)
  return not message:find "<eof>$" or
         message:find("syntax error near <eof>", 1, true) or
         message:find("'=' expected near <eof>", 1, true)
end

-- The block with `__keep(...)` around its last expression: a call that is
-- not in tail position, so the block's locals are still there.
local function keep_tail(text, message)
  if not is_mendable(message) then return nil end
  local anywhere = message:find("syntax error near <eof>", 1, true) ~= nil
  local function length() return #text end
  return last_first(lex.values(text, anywhere), length, function(from)
    local head, tail = text:sub(1, from - 1), text:sub(from)
    if compile(head .. "return " .. tail) or
       head:find("return%s*$", -100) and compile(text) then
      head = head:gsub("return%s*$", "")
      return (compile(HEAD .. head .. "__keep(" .. tail .. "\n)"))
    end
  end)
end

-- The start of the last statement if it is a call on a line of its own or
-- after a semicolon, which is both a statement and an expression.
local function last_call(text)
  local function length(from) return #text - from end
  return last_first(lex.statements(text), length, function(from)
    local tail = text:sub(from)
    return compile(tail) and compile("return nil, " .. tail .. "\n") and
           compile(text:sub(1, from - 1)) and from
  end)
end

-- The block with `__keep` after it, or around the call it ends with.
local function statements(text)
  local f = compile(HEAD .. text .. "\n;__keep()")
  local from = f and last_call(text)
  return from and compile(HEAD .. text:sub(1, from - 1) .. "__keep(" ..
                          text:sub(from) .. "\n)") or f
end

local heads = lexer.set "if while for"

-- The method without a call that ends a line; and whether it is no such line
-- but one of Python ("for i in list: pass").
local function trailing_method(text, message)
  if not message:find("function arguments expected near <eof>", 1, true) then
    return nil
  end
  if heads[text:match "^%s*(%l+)%f[^%w_]"] and text:find ":%s+[%w_]+%s*$" then
    return nil, nil, true
  end
  text = text:sub(-2000)
  local object, name =
    text:match "([%w_%.%[%]\"':]+)%s*:%s*([%a_][%w_]*)%s*$"
  if object then return object, name end
  name = text:match "[%)}]%s*:%s*([%a_][%w_]*)%s*$"
  return name and "", name        -- of what a call gives
end

-- Returns {kind=, f=, hide=, ...}. kind is "expression", "statements",
-- "method" (with object, name), "incomplete", "error" (with message), or
-- "empty".
function input_block.compile(text)
  local body, hide = strip(text)
  if not body then return {kind = "empty"} end
  local unit = {text = text, hide = hide}
  local head = python_block.head(text)
  if head then
    unit.kind, unit.message = "error", select(2, compile(head))
    return unit
  end
  local asvalue
  unit.f, asvalue = compile("return nil, " .. body .. "\n")
  if unit.f and body:find "%S" then
    unit.kind = "expression"
    return unit
  end
  local whole = body
  body, unit.note = plain_locals(body)
  unit.kind = "statements"
  local wrong = unit.note and constant_assignment(whole)
  if wrong then
    unit.kind, unit.message = "error", wrong
    return unit
  end
  unit.locals = lex.locals(body)
  unit.f = statements(body)
  if unit.f then return unit end
  local plain, message = compile(body)
  unit.f = keep_tail(body, message or "") or plain
  if unit.f then return unit end
  -- as an expression it may have got further: "1 +", "{1,"
  if not message:find "<eof>$" and asvalue and asvalue:find "<eof>$" then
    message = asvalue
  end
  unit.message = message
  local foreign
  unit.object, unit.name, foreign = trailing_method(body, message)
  unit.kind = unit.object and "method" or not foreign and
              incomplete(text, message) and "incomplete" or "error"
  return unit
end

-- The name and the arguments of a block that is a command, and its mark: ":",
-- or "%" as in IPython, where cells have two.
function input_block.command(text)
  local sign, name, rest = text:match "^%s*([:%%])%%?(%a+)%s?(.*)$"
  return name, rest, sign
end

-- The Lua code in a block: all of it, or what follows "=" or a command that
-- takes Lua (see `islua'); nil if there is none.
function input_block.lua_part(text, islua)
  local first = text:match "^%s*(.)" or ""
  if first == "=" then return (text:gsub("^%s*=", "", 1)) end
  local name, rest = input_block.command(text)
  if name then return islua(name) and rest or nil end
  if first:find "[?!%%>]" or text:find "^%s*[%w_%.:]+%?%??%s*$" then
    return nil
  end
  return text
end

-- What ready() compiled, for the one who runs it next.
local waiting

-- Is the block complete? One of Python waits for its body, too.
function input_block.ready(text, islua)
  local part = input_block.lua_part(text, islua)
  waiting = part and input_block.compile(part)
  return not part or waiting.kind ~= "incomplete" and
         not (waiting.kind == "error" and python_block.waits(part))
end

-- The same as compile(), for text that runs once: its unit is the caller's.
function input_block.prepared(text)
  local unit = waiting
  waiting = nil
  return unit and unit.text == text and unit or input_block.compile(text)
end

-- The compiler's message of the first error that more text cannot mend, or nil.
function input_block.fault(text)
  local f, message = compile(text)
  if f or message:find "<eof>$" or python_block.waits(text) then return nil end
  local value, why = compile("return nil, " .. text .. "\n")
  if value or why:find "<eof>$" then return nil end
  -- Statements may end in an expression, which makes them no error.
  local line = tonumber(message:match ":(%d+):")
  local _, lines = text:gsub("\n", "")
  if lines - line < 50 and input_block.compile(text).kind ~= "error" then
    return nil
  end
  return message
end

return input_block
