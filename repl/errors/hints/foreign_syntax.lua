-- SPDX-License-Identifier: MIT
--
-- foreign_syntax.lua - hints for syntax errors: code that is valid in Python,
-- Julia, MATLAB, C or JavaScript, and how it is written in Lua. A line that is
-- understood is translated as a whole (foreign_statements.lua); here is what
-- is said of the others.

local foreign_definitions = require "nacre.foreign_definitions"
local translate = require "nacre.foreign_statements".translate
local istensor = require "nacre.tensor_facts".istensor
local Parser = require "nacre.foreign_expressions"
local value_of = require "nacre.stack_frames".value_of

local foreign_syntax = {}

-- Julia's and psql's commands.
local macros = {time = "time", elapsed = "time", btime = "bench",
                benchmark = "bench", timev = "time", q = "quit", d = "whos",
                e = "edit", i = "run", s = "history"}

-- A line that begins with \ or @
local function command(line)
  local p = line:find "^%s*@" and Parser.new(line, value_of, {})
  local decorated = p and foreign_definitions.decorator(p)
  if decorated then return decorated end
  local word, tail = line:match "^%s*[\\@](%l+)%s*(.*)$"
  if p and tail == "" and not macros[word] then
    return "Lua has no decorators: f = decorate(f) calls one"
  end
  return word and require "nacre.commands".line(macros[word] or word, tail) or
         "commands begin with a colon; :help lists them"
end

local opening = {try = "pcall(function() ... end)", elif = "elseif ... then",
                 ["if"] = "if ... then ... end", ["else"] = "else",
                 ["while"] = "while ... do ... end",
                 ["for"] = "for i = 1, n do ... end"}
opening.except, opening.finally = opening.try, opening.try

local programs = {pip = true, python = true, conda = true, git = true}
local words = {match = "there is no match: if %s == 1 then ... elseif ... end",
               async = "Lua has coroutines; nothing is async",
               yield = "coroutine.yield(%s) in a coroutine"}

-- Words that begin a line: what is said of it.
local function by_word(line)
  local word, tail = line:match "^%s*(%a+)%s+(.-)%s*;?%s*$"
  if not word then return nil end
  if word == "except" then return opening.except end
  if word == "help" then return "?" .. tail end
  if programs[word] then return "!" .. line:match "^%s*(.-)%s*$" end
  if words[word] then return words[word]:format(tail:match "^[^:]*") end
  if word == "elif" or word == "elsif" then return "elseif" end
  return require "nacre.commands".line(word, tail)
end

-- What is said by the rejected token: a text, or a function of the text before
-- it, from it on, and of the message.
local braces = "a block ends with end and has no { }"
local tokens = {
  ["!"] = function(before, rest)
    local x = rest:match "^!%s*([%w_%.]+)"
    local list = before:match "^%s*([%a_][%w_]*%s*=%s*)$"
    if list and x and #x > 1 and rawget(_G, x) == nil then
      return ("%sshell.lines %q, or not %s"):format(list, rest:sub(2), x)
    end
  end,
  [":"] = function(before, rest)
    if before:find ";%s*$" and rest:find "^:%l" then
      return rest:match "^(.-)%s*$" .. "  (a command has a line of its own)"
    end
  end,
  ["//"] = function(before)
    return before:find "^%s*$" and "a comment starts with --"
  end,
  ["{"] = function(before)
    return (before:find "%f[%w]do%s*$" or before:find "%f[%w]then%s*$" or
            before:find "%f[%w]function[%s%w_.:]*%b()%s*$") and braces
  end,
  ["="] = function(before, rest, message)
    if before:find ":%s*$" or rest:find "^:=" and before:find "%(" then
      return "an assignment is a statement of its own, before this one"
    end
    return (message:find "^'then'" or before:find "==%s*$" or
            before:find "%f[%w_]if%s*%([^()]*$" or
            before:find "%f[%w_]while%s*%([^()]*$") and "== compares"
  end,
  ["?"] = function() return "x and y or z" end,
  [","] = function(before)
    return before:find "[({,=]%s*[(%[][^()%[%]]*$" and
           "a list is written {1, 2, 3}"
  end,
  ["["] = function(_, rest)
    return not rest:find "%sfor%s" and "a list is written {1, 2, 3}"
  end,
  ["&"] = function(_, rest) return rest:find "^&&" and "and" end,
  ["|"] = function(_, rest) return rest:find "^||" and "or" end,
}

-- x != y
local function unequal(before, rest)
  local x, y = before:match "([%a_][%w_]*)%s*$", rest:match "^!=%s*([%w_%.]+)"
  local each = x and y and istensor(rawget(_G, x)) and
               not before:find "%f[%w]if%f[%W]" and
               ("; %s:ne(%s) compares each element"):format(x, y) or ""
  return "'!=' is written ~= in Lua" .. each, translate(before .. rest,
                                                        value_of)
end

-- What is said before a line is translated.
local function by_token(message, near, before, rest)
  if before:find "^%s*#%s" or near == "#" then
    local code = before:match "^%s*(.-%S)%s*$"
    local line = code and not code:find "^#" and
                 (translate(code, value_of) or code)
    return (line and line .. "  (%s)" or "%s")
             :format "a comment starts with --"
  end
  if near:find "^<\\%d+>$" then
    return "names are ASCII letters, digits and _"
  end
  if before:find "%f[%w_]continue%s*;?%s*$" and near ~= "=" and
     not translate(before .. rest, value_of) then
    return "goto continue, with ::continue:: before the loop's end"
  end
  if (near == "\\" or near == "@") and before:find "^%s*$" then
    return command(rest)
  end
  local said = tokens[near]
  return said and said(before, rest, message)
end

-- Returns a better message and a hint for a syntax error at the token `near'.
function foreign_syntax.hint(message, near, before, rest)
  if near == "!" and rest:find "^!=" then return unequal(before, rest) end
  if (before .. rest):find '^%s*"""' then
    return nil, "a comment is --[[ ... ]], a text of several lines [[ ... ]]"
  end
  local first = near ~= "?" and near ~= "," and near ~= "[" and
                near ~= "&" and near ~= "|" and
                by_token(message, near, before, rest)
  if first then return nil, first end
  local line = before .. rest
  local text, found = translate(line, value_of)
  local op = text and found.compound
  if op and (before:match "[-+*/%%^.]*$" .. rest):find(op, 1, true) == 1 then
    return ("Lua has no %s; %s"):format(op, text)
  end
  return nil, text or by_word(line) or by_token(message, near, before, rest)
end

-- A line of Lua for one of another language that Lua compiles, or nil.
function foreign_syntax.line(text)
  if text:find "\n%s*%S" then return nil end
  local line, found = translate(text, value_of)
  line = line and found.line
  return line and not found.said and not line:find("...", 1, true) and
         not line:find "%(%l+%)%." and line or nil
end

local missing = {["for"] = "'do' expected", ["while"] = "'do' expected",
                 ["if"] = "'then' expected", elif = "Lua has no elif",
                 try = "Lua has no try", except = "Lua has no except",
                 finally = "Lua has no finally"}
-- For a block that ends too early: the hint, and a better message than `what',
-- if it looks like another language; else nil.
function foreign_syntax.unfinished(what, text)
  local head = require "nacre.python_block".head(text)
  local word = require "nacre.input_block".python_colon(head or text)
  if word then
    local line = text:match "^[^\n]*"
    return line and translate(line, value_of) or opening[word], missing[word]
  end
  if what:find "^unfinished long string" and text:find "%[%[" then
    return (translate(text:match "^[^\n]*", value_of))
  end
  local x = what:find "^unfinished string" and
            text:match "^%s*([%a_][%w_%.]*)'[%s%w_%.*/+-]*$"
  return x and x:gsub("%.$", "") .. ":t()"
end

return foreign_syntax
