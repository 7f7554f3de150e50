-- SPDX-License-Identifier: MIT
--
-- foreign_blocks.lua - lines of Python whose blocks are shown by their indent,
-- as one line of Lua: the loop or the class that was pasted.

local lexer = require "nacre.lexer"
local translate = require "nacre.foreign_statements".translate
local value_of = require "nacre.stack_frames".value_of

local foreign_blocks = {}

-- Does a line say nothing in Lua?
local function is_idle(code)
  return code == "" or code:find '^"""[^"]*"""$' or code:find "^'''[^']*'''$" or
         code:find "^import%f[%W]" or code:find "^from%f[%W]"
end

-- The brackets that a line leaves open, and where its comment begins.
local function read(line)
  local depth, stop = 0, #line
  for _, t in ipairs(lexer.tokens(line)) do
    if t.kind == "op" and t.text == "#" then
      stop = t.from - 1
      break
    end
    if t.kind == "op" and lexer.opens[t.text] then depth = depth + 1 end
    if t.kind == "op" and lexer.closes[t.text] then depth = depth - 1 end
  end
  return depth, stop
end

-- The lines that say something: {indent =, code =}; those of a bracket that is
-- left open are one.
local function lines_of(text)
  local list, depth = {}, 0
  for line in text:gmatch "[^\n]+" do
    local more, stop = read(line)
    local code = line:sub(1, stop):match "^%s*(.-)%s*$"
    if depth > 0 then
      list[#list].code = list[#list].code .. " " .. code
    elseif not is_idle(code) then
      list[#list + 1] = {indent = #line:match "^%s*", code = code}
    elseif more > 0 then return {} end
    depth = depth + more
  end
  return list
end

local joins = lexer.set "elif else except finally"
local heads = lexer.set [[if for while with def class try elif else except
  finally]]

-- A line with \1 and \2 around the block that follows its colon: without them
-- the lines below were a part of that.
local function with_block(code)
  local depth = 0
  for _, t in ipairs(heads[code:match "^%a*"] and lexer.tokens(code) or {}) do
    if lexer.opens[t.text] then depth = depth + 1 end
    if lexer.closes[t.text] then depth = depth - 1 end
    if t.text == ":" and depth == 0 and t.to < #code then
      return ("%s \1 %s \2"):format(code:sub(1, t.to), code:sub(t.to + 1))
    end
  end
  return code
end

local decorated -- was a function in a block of the library's?

-- The function that begins in the i-th line, which a decorator of the library
-- stands before: its body is run by that. Nil if it is another decorator.
local function without_decorator(list, i)
  local head = list[i]
  local path = head.code:match "^@([%w_]+%.[%w_%.]*grad)%b()$" or
               head.code:match "^@([%w_]+%.[%w_%.]*inference_mode)%b()$"
  local def = list[i + 1]
  if not path or not def or not def.code:find "^def%f[%W]" then return nil end
  decorated = true
  local body, k = {indent = def.indent + 1, code = "with " .. path .. "():"},
                  i + 2
  while list[k] and list[k].indent > def.indent do
    list[k].indent = list[k].indent + 1
    k = k + 1
  end
  list[i] = def
  list[i + 1] = body
end

local is_library = lexer.set "Module LightningModule Dataset IterableDataset"

-- super().f(x) in the lines of a class, which begins in the i-th, is a call of
-- its parent's function; __init__ of the library's classes needs none.
local function call_parent(list, i)
  local head, k = list[i], i + 1
  local parent = head.code:match "^class%s+[%w_]+%s*%(%s*([%w_%.]+)%s*%)"
  local ours = not parent or is_library[parent:match "[%w_]+$"]
  local class, inside = head.code:match "^class%s+([%w_]+)",
                        list[k] and list[k].indent
  while list[k] and list[k].indent > head.indent do
    local code = list[k].code:gsub("super%([%w_]+%s*,%s*self%)", "super()")
    if list[k].indent == inside then     -- a field of the class
      code = code:gsub("^([%a_][%w_]*)%s*:%s*[^=]-(=[^=])", "%1 %2")
                 :gsub("^[%a_][%w_]*%s*=[^=]", class .. ".%0")
    end
    if ours and code:find "^super%(%)%.__init__%b()$" then
      table.remove(list, k)
    else
      list[k].code = ours and code or
        code:gsub("super%(%)%.([%w_]+)%(([^)]?)", function(name, c)
          return ("(%s).%s(self%s%s"):format(parent,
            name == "__init__" and "init" or name, c == "" and "" or ", ", c)
        end)
      k = k + 1
    end
  end
end

-- The lines from the i-th on that are indented by `indent', with \1 and \2
-- around the blocks in them, and the number of the next one.
local function nested(list, i, indent)
  local parts = {}
  while list[i] and list[i].indent == indent do
    if list[i].code:find "^@" then without_decorator(list, i) end
    if list[i].code:find "^class%s" then call_parent(list, i) end
    local code, after = list[i].code, list[i + 1]
    i = i + 1
    if after and after.indent > indent and code:find ":$" then
      local body
      body, i = nested(list, i, after.indent)
      code = ("%s \1 %s \2"):format(code, body)
    else code = with_block(code) end
    local word = code:match "^%a+"
    parts[#parts + 1] = (parts[1] and (joins[word] and " " or "; ") or "") ..
                        code
  end
  return table.concat(parts), i
end

-- The line of Lua for lines of Python; nil if they are not understood.
function foreign_blocks.line(text)
  if #text > 2000 then return nil end
  local list = lines_of(text)
  decorated = false
  if not list[1] then return nil end
  local code, stop = nested(list, 1, list[1].indent)
  if list[stop] then return nil end
  local line, found = translate(code, value_of)
  if line and decorated then             -- what the body returns is the result
    line = line:gsub("(function [%w_.:]+%b() )([%w_.]+%(function%(%) )",
                     "%1return %2")
  end
  return line and not found.said and not line:find("\1", 1, true) and line
end

return foreign_blocks
