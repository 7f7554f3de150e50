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

local lexer = require "nacre.lexer"

local input_block = {}

local NAME = "=stdin"
-- Statements get a local function __keep, which makes their locals variables
-- of the session. (A global would be visible.) It is on the first line of the
-- block, so line numbers stay the same.
local HEAD = "local __keep <const> = ...; "

local function compile(text) return load(text, NAME, "t") end

-- Words that begin a block in Python.
local python = lexer.set "for if while else elif elseif try except finally"

-- The first word of a line with the colon of a Python block: "if x == 3:" or
-- "for i in range(3): print(i)"; else nil.
function input_block.python_colon(text)
  local word = text:match "([%a_]+)[^\n]*:%s*$"
  if not word and not text:find "%f[%w_]do%f[^%w_]" and
     not text:find "%f[%w_]then%f[^%w_]" then
    word = text:match "^%s*(%a+)%s[^\n]*[%w_)]:%s+[%a_][^\n]*$"
  end
  return python[word] and word
end

local function incomplete(text, message)
  if not message:find "<eof>$" or input_block.python_colon(text) then
    return false
  end
  if message:find("unfinished string", 1, true) then
    return text:find "\\%s*$" ~= nil -- only a backslash carries it on
  end
  return true
end

-- A final ";" hides the result; it may also be the end of a comment.
local function strip(tokens, text)
  local n = #tokens
  while n > 0 and tokens[n].kind == "comment" do n = n - 1 end
  local hide = n > 0 and tokens[n].text == ";" and tokens[n].kind == "op"
  while n > 0 and (tokens[n].text == ";" and tokens[n].kind == "op" or
                   tokens[n].kind == "comment") do
    n = n - 1
  end
  if not hide then return text, false end
  return text:sub(1, n > 0 and tokens[n].to or 0), true
end

-- Removes <const> and <close> of the outer locals: they become session
-- variables, and a constant does not exist at run time, a variable to be
-- closed would be closed when the block ends.
local function plain_locals(tokens, text)
  local parts, from, note = {}, 1, nil
  lexer.depth(tokens, function(token, depth)
    if depth > 0 or token.text ~= "<" then return end
    local attribute = text:match("^<%s*%a+%s*>", token.from)
    local name = text:sub(1, token.from - 1)
      :match "%f[%w_]local%s[%w_%s,<>]-([%a_][%w_]*)%s*$"
    if not name or not attribute or not attribute:find "const" and
       not attribute:find "close" then return end
    parts[#parts + 1] = text:sub(from, token.from - 1)
    parts[#parts + 1] = (" "):rep(#attribute)
    from = token.from + #attribute
    note = name .. " is kept as a session variable; it " ..
           (attribute:find "const" and "can be changed" or "is not closed")
  end)
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts), note
end

-- Lua's message if a block assigns to its own constant.
local function constant_assignment(text)
  local _, message = compile(text)
  return message and message:find("assign to const variable", 1, true) and
         message or nil
end

-- The names of the block's own locals, not those of blocks inside it.
local function outer_locals(tokens)
  local names, expecting = {}, false -- "function": its name comes next
  lexer.depth(tokens, function(token, depth)
    local word = token.text
    if token.kind == "comment" or depth > 0 and expecting ~= "function" then
      return
    elseif token.kind == "name" and expecting then
      names[word] = true
      if expecting == "function" then expecting = false end
    elseif word == "function" and expecting then
      expecting = "function"
    elseif word ~= "," then
      expecting = word == "local"
    end
  end)
  return names
end

-- The positions where the last expression may begin, from the end: at a line,
-- after a semicolon, after a final `return'; and at any word if Lua missed
-- only the start of a statement around it.
local function expression_starts(tokens, message)
  local anywhere = message:find("syntax error near <eof>", 1, true)
  local list = {}
  for i = #tokens, math.max(2, #tokens - 200), -1 do
    local token, last = tokens[i], tokens[i - 1]
    if anywhere or token.line > last.line or last.text == ";" or
       last.text == "return" then
      list[#list + 1] = token
    end
  end
  return list
end

-- The block with `__keep(...)` around its last expression: a call that is
-- not in tail position, so the block's locals are still there.
local function keep_tail(tokens, text, message)
  for _, token in ipairs(expression_starts(tokens, message)) do
    local head, tail = text:sub(1, token.from - 1), text:sub(token.from)
    if compile(head .. "return " .. tail) or
       head:find "return%s*$" and compile(text) then
      head = head:gsub("return%s*$", "")
      local f = compile(HEAD .. head .. "__keep(" .. tail .. "\n)")
      if f then return f end
    end
  end
end

-- The start of the last statement if it is a call on a line of its own or
-- after a semicolon, which is both a statement and an expression. A line that
-- begins with `(' continues the one before.
local function last_call(tokens, text)
  local starts, before = {}, nil
  lexer.depth(tokens, function(token, depth)
    local cut = before and depth == 0 and
                (before.text == ";" and token.text == "(" or
                 token.kind == "name" and
                 (before.text == ";" or token.line > before.line))
    if cut then starts[#starts + 1] = token end
    if token.kind ~= "comment" then before = token end
  end)
  for i = #starts, math.max(1, #starts - 20), -1 do
    local from = starts[i].from
    local tail = text:sub(from)
    if compile(tail) and compile("return nil, " .. tail .. "\n") and
       compile(text:sub(1, from - 1)) then
      return from
    end
  end
end

-- The block with `__keep` after it, or around the call it ends with.
local function statements(text)
  local f = compile(HEAD .. text .. "\n;__keep()")
  local from = f and last_call(lexer.tokens(text), text)
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
  local tokens = lexer.tokens(text)
  if #tokens == 0 then return {kind = "empty"} end
  local body, hide = strip(tokens, text)
  local unit = {text = text, hide = hide}
  local asvalue
  unit.f, asvalue = compile("return nil, " .. body .. "\n")
  if unit.f and body:find "%S" then
    unit.kind = "expression"
    return unit
  end
  local whole = body
  body, unit.note = plain_locals(lexer.tokens(body), body)
  unit.kind = "statements"
  local wrong = unit.note and constant_assignment(whole)
  if wrong then
    unit.kind, unit.message = "error", wrong
    return unit
  end
  unit.locals = outer_locals(lexer.tokens(body))
  unit.f = statements(body)
  if unit.f then return unit end
  local plain, message = compile(body)
  tokens = lexer.tokens(body)
  unit.f = keep_tail(tokens, body, message or "") or plain
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

-- Is the block complete?
function input_block.ready(text, islua)
  local part = input_block.lua_part(text, islua)
  return not part or input_block.compile(part).kind ~= "incomplete"
end

-- The compiler's message of the first error that more text cannot mend, or nil.
function input_block.fault(text)
  local f, message = compile(text)
  if f or message:find "<eof>$" then return nil end
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
