-- SPDX-License-Identifier: MIT
--
-- editor_hooks.lua - what shell_hooks.c calls: the questions of the line
-- editors here, the session's functions through it. Modules are required where
-- they are used, to keep the start fast.

local input_block = require "nacre.input_block"
local lexer = require "nacre.lexer"
local state = require "nacre.state"

local hooks = setmetatable({}, {__index = require "nacre.shell"})

local function takes_lua(name)
  return require "nacre.commands".takes_lua(name)
end

function hooks.ready(text)
  if text:find "\n> " then text = require "nacre.paste_blocks".last(text) end
  if state.reader then return state.reader.ready(text) end
  return input_block.ready(text, takes_lua)
end

-- For pasted text: what to insert; for a block of several inputs: the first;
-- then the next ones, unless Ctrl-C ended the one before. Nil where there is
-- none.
function hooks.pasted(text)
  if not text:find "^%s*[%w:]*>" then return nil end
  return require "nacre.paste_blocks".strip(text)
end

function hooks.split(text)
  if not text:find "\n" then return nil end
  return require "nacre.paste_blocks".split(text, takes_lua)
end

function hooks.next()
  local paste = package.loaded["nacre.paste_blocks"]
  if paste and state.interrupted then paste.drop() end
  return paste and paste.next()
end

function hooks.indent(text, rest)
  local python = require "nacre.python_block".indent(text, rest)
  if python and not input_block.ready(text, takes_lua) then return python end
  return lexer.indent(text:gsub("^%s*[:%%=]%%?%a*", "", 1), rest)
end

function hooks.complete(text, point)
  local ask = state.reader and state.reader.candidates or
              require "nacre.completion".candidates
  return ask(text:sub(1, point), text:sub(point + 1))
end

-- What a global is: "tensor", "known", "unknown"; nil if only a metamethod or
-- the call of a method could tell.
function hooks.role(name)
  local value = rawget(_G, name)
  if value ~= nil then
    return require "nacre.tensor_facts".istensor(value) and "tensor" or "known"
  end
  if name == "self" or name:find "^_+$" or name == "ans" or
     require "nacre.globals".are_foreign() then
    return nil
  end
  return "unknown"
end

-- The position at which Lua begins in a block; nil: nowhere. The text is its
-- first line and as much of what follows as matters.
function hooks.code(text)
  local part = text
  if state.reader then
    if state.reader.own(text) then return nil end
  else
    part = input_block.lua_part(text, takes_lua)
  end
  return part and #text - #part
end

-- What a block lacks whose last two lines are blank: who waits for it to end
-- should know.
local function lacking(part)
  if not part:find "\n[ \t]*\n[ \t]*$" then return nil end
  local unit = input_block.compile(part)
  local what = unit.kind == "incomplete" and
               unit.message:match ":%d+: (.*) near [^ ]*$"
  return what and {what .. "; Ctrl-C drops the block"}
end

-- The first error that more text cannot mend: what the compiler says, and
-- where the token is that it names.
function hooks.fault(text)
  local from = hooks.code(text)
  local part = from and text:sub(from + 1) or ""
  local message = part:find "%S" and not text:find "\n> " and -- a session
                  input_block.fault(part)
  if not message then return lacking(part) end
  local line, what = message:match ":(%d+): (.*)$"
  local token = require "nacre.syntax_errors".place(message, part)
  if not line then what = message
  elseif part:find "\n" then what = ("line %d: %s"):format(line, what) end
  return token and {what, from + token.from, from + token.to + 1} or {what}
end

function hooks.signature(text, point)
  local found = {require "nacre.completion".signature(text:sub(1, point))}
  return found[1] and found
end

-- The corrected line of the last error, once.
function hooks.correction()
  local line = state.correction
  state.correction, state.suggested = nil, line
  return line
end

-- What the key makes of the line: {text, position of the cursor from 1 twice},
-- or nil.
function hooks.key(left, right, id)
  local key = require "nacre.user_hooks".keys[id]
  if not key then return nil end
  local _, answer = require "nacre.user_hooks".call_quietly(
    'shell.key "' .. key.name .. '"', key.call, left .. right, #left)
  return answer
end

function hooks.helpat(...) return require "nacre.help".at(...) end

return hooks
