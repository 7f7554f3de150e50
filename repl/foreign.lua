-- SPDX-License-Identifier: MIT
--
-- foreign.lua - what does not compile because it is another language: what to
-- write here.  Python's, Julia's, MATLAB's, C's and JavaScript's habits.

local habits = require "nacre.habits"
local istensor = require "nacre.inspect".istensor

local foreign = {}

local inplace = {["+"] = "add_", ["-"] = "sub_", ["*"] = "mul_",
                 ["/"] = "div_"}

local function compound(before, rest)
  local op = rest:match "^%.%.=" and ".." or rest:match "^(//)=" or
             rest:match "^([-+*/%%^])="
  local x = before:match "([%a_][%w_%.%[%]]*)%s*$"
  if not op or not x then return nil end
  local y = rest:sub(#op + 2):match "^%s*([^;]-)%s*$"
  local text = ("Lua has no %s=; %s = %s %s %s"):format(op, x, x, op, y)
  local v = x:find "^[%w_]+$" and rawget(_G, x)
  if inplace[op] and (v == nil or istensor(v)) then
    text = ("%s, or in place %s:%s(%s)"):format(text, x, inplace[op], y)
  end
  return text
end

local function increment(before, rest)
  local x = before:match "([%a_][%w_%.%[%]]*)%s*$"
  if x and rest:find "^%+%+" then
    return ("Lua has no ++; %s = %s + 1"):format(x, x)
  end
end

local function power(before, rest)
  local times = before:match "%.%s*$" and rest:match "^[-+*/^]%s*([%w_%.]+)"
  if times then                         -- Julia's and MATLAB's a .* b
    return ("%s %s %s"):format(before:match "^%s*(.-)%s*%.%s*$",
                               rest:sub(1, 1), times)
  end
  local x = before:match "([%w_%.%]%)]+)%s*%*$"
  local y = rest:match "^%*%s*([%w_%.]+)"
  return x and y and x .. " ^ " .. y
end

local function index(before, rest)
  local x, a = before:match "([%a_][%w_%.]*)%[([^%[%]]*)$"
  local b = rest:match "^([^%[%]]*)%]"
  if not x or not b then return nil end
  if (a .. b):find ":" or (a .. b):find("...", 1, true) then
    local text = (a .. b):gsub("%f[%w]0:", "1:")
    if text:find "[^%d%s:,.-]" then return nil end
    return ('%s["%s"]'):format(x, text)
  end
  return ("%s[{%s%s}] or %s(%s%s)"):format(x, a, b, x, a, b)
end

-- f(a, name=value) is f(a, {name=value})
local function byname(before, rest)
  local head, name = before:match "^(.*[(,]%s*)([%a_][%w_]*)%s*$"
  local value, tail = rest:match "^=%s*([^()]*)(%).*)$"
  if not head or not value or value == "" then return nil end
  value = value:gsub("%f[%w_]%a+%f[^%w_]", habits.words)
  return ("%s{%s=%s}%s"):format(head:match "^%s*(.*)$", name, value, tail)
end

-- x:repeat(2), torch.and(a, b)
local function reserved(before, rest)
  local path = before:match "([%a_][%w_%.]*[.:])%s*$"
  local word, args = rest:match "^(%l+)%s*(%b())"
  if not path or not args then return nil end
  word = word == "repeat" and "tile" or "logical_" .. word
  return path .. word .. args
end

local function conditional(before, rest)
  local x = before:match "([^=,({]-)%s*$":gsub("^%s*return%s+", "")
  local y, z = rest:match "^%?%s*(.-)%s*:%s*([^,;)}]-)%s*$"
  if not y then return "x and y or z" end
  return ("%s and %s or %s"):format(x:match "^%s*(.*)$", y, z)
end

local function statement(before, rest)
  local word = before:match "%f[%w_]([%a]+)%s+$"
  local tail = rest:match "^(.-)%s*;?%s*$"
  if word == "help" then return "?" .. tail end
  if before:find "^%s*%a+%s+$" then
    local line = require "nacre.commands".line(word, tail)
    if line then return line end
  end
  if word == "print" or word == "assert" then
    return ("%s(%s)"):format(word, tail)
  end
  if word == "del" then return tail .. " = nil" end
  if word == "import" or word == "from" or word == "using" then
    local name = rest:match "^[%w_]+"
    return habits.modules[name] or
           rawget(_G, name) and name .. " is there already" or
           name and ('require "%s"'):format(name)
  end
  if word == "class" then
    local name = rest:match "^[%w_]+"
    return ("%s = {}; function %s:forward(x) ... end"):format(name, name)
  end
  if word == "raise" or word == "throw" then
    return ("error(%s)"):format(tail:match "%((.*)%)" or '"..."')
  end
  if word == "global" then return "what is not local is global" end
  if rest:find "^is%f[^%w_]" then
    local x = before:match "([^=,({]-)%s*$":gsub("^%s*return%s+", "")
    local no, y = rest:match "^is%s+(n?o?t?)%s*([%w_]+)"
    return y and ("%s %s %s"):format(x:match "^%s*(.*)$",
      no == "not" and "~=" or "==", habits.words[y] or y)
  end
  if word == "def" then
    return ("function %s ... end"):format(rest:match "^[%w_]+%s*%b()" or "f()")
  end
  if word == "let" or word == "var" or word == "const" then
    return "local " .. tail
  end
  if word == "elif" or word == "elsif" then return "elseif" end
  if word == "with" then
    local call, args, body = rest:match "^([%w_.]+)%s*(%b()):%s*(.-)%s*$"
    args = args and args:match "^%(%s*(.-)%s*%)$" or ""
    return ("%s(%sfunction() %s end)"):format(call or "f",
      args ~= "" and args .. ", " or "", (body or "") ~= "" and body or "...")
  end
end

local list = "a list is written {1, 2, 3}"

-- Julia's and psql's commands.
local macros = {time = "time", elapsed = "time", btime = "bench",
                benchmark = "bench", timev = "time", q = "quit", d = "whos",
                e = "edit", i = "run", s = "history"}

local function command(rest)
  local word, tail = rest:match "^[\\@](%l+)%s*(.*)$"
  return word and require "nacre.commands".line(macros[word] or word, tail) or
         "commands begin with a colon, :help lists them"
end

-- x if y else z
local function choice(before, rest)
  local x = before:match "([^=,({]-)%s*$":gsub("^%s*return%s+", "")
  local y, z = rest:match "^if%s+(.-)%s+else%s+([^,;)}]-)%s*$"
  return y and ("%s and %s or %s"):format(y, x:match "^%s*(.*)$", z)
end

-- f(x) = x + 1, as in Julia; a = b = 1
local function equals(before, rest)
  local head = before:match "^%s*([%a_][%w_]*%s*%([%w_%s,]*%))%s*$"
  local body = rest:match "^=%s*([^=].-)%s*$"
  if head and body then
    return ("function %s return %s end"):format(head, body)
  end
  local a, b = before:match "^%s*([%a_][%w_%.]*)%s*=%s*([%a_][%w_%.]*)%s*$"
  return a and body and ("%s, %s = %s, %s"):format(a, b, body, body)
end

-- 'a'.upper(), "{}".format(x), ", ".join(list): methods of a text in quotes
local function ofstring(before, rest)
  local text = before:match "([\"'][^\"']*[\"'])%s*$"
  local name, args = rest:match "^%.([%a_][%w_]*)%s*(%b())"
  if not text or not name then return nil end
  if name == "join" then
    return ("table.concat(%s, %s)"):format(args:sub(2, -2), text)
  end
  if name == "format" then text = text:gsub("{[%w_]*:?([^{}]*)}",
    function(f) return "%" .. (f:find "%a$" and f or f .. "s") end) end
  return ("(%s):%s%s"):format(text, name, args)
end

-- [f(x) for x in list]
local function comprehension(rest)
  local each, v, list = rest:match
    "^%[%s*(.-)%s+for%s+([%a_][%w_]*)%s+in%s+(.-)%s*%]"
  if not each then return nil end
  local n = list:match "^range%(%s*([^,]-)%s*%)$"
  if n then
    return ("t = {}; for %s = 1, %s do t[%s] = %s end"):format(v, n, v, each)
  end
  local i = v == "i" and "k" or "i"
  return ("t = {}; for %s, %s in pairs(%s) do t[%s] = %s end"):format(i, v,
    list, i, each)
end

-- What shows in a line as a whole: a function without a name.
local function inline(line)
  local args, body = line:match "%f[%w_]lambda%s*([%w_,%s]-)%s*:%s*(.-)%s*$"
  if not args then
    args, body = line:match "%(([%w_,%s]*)%)%s*[-=]>%s*(.-)%s*$"
  end
  if not args then
    args, body = line:match "([%a_][%w_]*)%s*[-=]>%s*(.-)%s*$"
  end
  if not args then return nil end
  body = body:match "^[^,(){}]*%b()[^,(){}]*" or body:match "^[^,(){}]*"
  return ("function(%s) return %s end"):format(args, body ~= "" and body or
                                               "...")
end

-- Each: near which token, and a function that gives the hint, or a text.
local tokens = {
  {"!", function(before, rest)
    local x = rest:match "^!%s*([%w_%.]+)"
    local list = before:match "^%s*([%a_][%w_]*%s*=%s*)$"
    if list and x and #x > 1 and rawget(_G, x) == nil then
      return ("%sshell.lines %q, or not %s"):format(list, rest:sub(2), x)
    end
    return x and "write: not " .. x
  end},
  {"**", power}, {"*", power},
  {"\\", function(before, rest)
    if before:find "^%s*$" then return command(rest) end
    local a, b = before:match "([%w_%.]+)%s*$", rest:match "^.%s*([%w_%.]+)"
    return a and b and ("nacre.linalg.solve(%s, %s)"):format(a, b)
  end},
  {"if", choice},
  {"@", function(before, rest)
    if before:find "^%s*$" then return command(rest) end
    local x = before:match "([%w_%.]+)%s*$"
    local y = rest:match "^@%s*([%w_%.]+)"
    return x and y and ("%s:matmul(%s)"):format(x, y)
  end},
  {"?", conditional},
  {",", function(before, rest, message)
    if before:find "[({,=]%s*[(%[][^()%[%]]*$" or
       before:find "^%s*%([^()]*$" then
      return list
    end
    return message:find "^'%]' expected" and index(before, rest)
  end},
  {":", function(before, rest, message)
    if message:find "^'%]'" or before:find "%[[^%]]*$" then
      return index(before, rest)
    end
    if message:find "^'}'" then return "{name = value}" end
    if message:find "^'then'" then return "if ... then ... end" end
    if message:find "^'do'" then return "... do ... end" end
  end},
  {"::", index},
  {"{", function(before, _, message)
    if before:find "%f[%w]do%s*$" or before:find "%f[%w]then%s*$" then
      return "a block ends with end and has no { }"
    end
    if message:find "^'then'" then return "if ... then ... end" end
    if message:find "^'do'" then return "... do ... end" end
  end},
  {"=", function(before, rest, message)
    if message:find "^'then'" then return "== compares" end
    local value = rest:match "^:(=.*)$"
    if value then return before .. value end
    return message:find "^'%)' expected" and byname(before, rest) or
           equals(before, rest)
  end},
  {"repeat", reserved}, {"and", reserved}, {"or", reserved},
  {"not", reserved},
  {"&", function(_, rest) return rest:find "^&" and "and" end},
  {"|", function(_, rest) return rest:find "^|" and "or" end},
  {"//", function(before)
    return before:find "^%s*$" and "a comment starts with --"
  end},
  {"+", power}, {"-", power}, {"/", power}, {"^", power},
  {"(", function(before, rest)          -- Julia's sin.(x)
    local f = before:match "([%w_%.]+)%.$"
    return f and rest:find "^%b()" and f .. rest:match "^%b()"
  end},
  {".", ofstring},
  {"[", function(_, rest) return comprehension(rest) or list end},
}

-- A better message, a hint: what the place looks like.
function foreign.hint(message, near, before, rest)
  if near == "!" and rest:find "^!=" then
    local x, y = before:match "([%a_][%w_]*)%s*$", rest:match "^!=%s*([%w_%.]+)"
    local each = x and y and istensor(rawget(_G, x)) and
                 not before:find "%f[%w]if%f[%W]" and
                 ("; %s:ne(%s) compares each element"):format(x, y) or ""
    return "'!=' is written ~= in Lua" .. each
  end
  local f = inline(before .. rest)
  if f then return nil, f end
  local better = compound(before, rest) or increment(before, rest)
  if better then return better end
  if before:find "^%s*#%s" or near == "#" then
    return nil, "a comment starts with --"
  end
  if near:find "^<\\%d+>$" then
    return nil, "names are ASCII letters, digits and _"
  end
  for _, entry in ipairs(tokens) do
    if entry[1] == near then
      local hint = entry[2]
      if type(hint) == "function" then hint = hint(before, rest, message) end
      if hint then return nil, hint end
    end
  end
  if before:find "[{,]%s*[%a_][%w_]*%s*:%s*$" then
    return nil, "{name = value}"
  end
  return nil, statement(before, rest)
end

-- The head of a loop over what Python loops over.
local function loop(text)
  local i, range = text:match "for%s+([%a_][%w_]*)%s+in%s+range%s*(%b())"
  local from, to = (range or ""):match "^%(%s*([^,]-)%s*,%s*([^,]-)%s*%)$"
  if from then
    local last = math.tointeger(tonumber(to))
    last = last and last - 1 or to .. " - 1"
    return ("for %s = %s, %s do ... end"):format(i, from, last)
  end
  local n = range and range:match "^%(%s*([^,]-)%s*%)$"
  if n then return ("for %s = 1, %s do ... end"):format(i, n) end
  local v, list = text:match "for%s+([%a_][%w_,%s]-)%s+in%s+([^:]-)%s*:"
  if not v then return "for i = 1, n do ... end" end
  list = list:match "^enumerate%s*%(%s*(.-)%s*%)$" or list
  return ("for %s in pairs(%s) do ... end"):format(
    v:find "," and v or "_, " .. v, list)
end

local opening = {["if"] = "if ... then ... end", elif = "elseif ... then",
                 ["elseif"] = "elseif ... then", ["else"] = "else",
                 ["while"] = "while ... do ... end"}
local missing = {["for"] = "'do' expected", ["while"] = "'do' expected",
                 ["if"] = "'then' expected", elif = "Lua has no elif",
                 try = "Lua has no try", except = "Lua has no except",
                 finally = "Lua has no finally"}

-- What a block that ends too early may be in another language: what to write,
-- and a better message than `what', or nil.
function foreign.unfinished(what, text)
  local word = require "nacre.submit".colon(text)
  if word then
    return word == "for" and loop(text) or opening[word] or
           "pcall(function() ... end)", missing[word]
  end
  local x = what:find "^unfinished string" and
            text:match "^%s*([%a_][%w_%.]*)'[%s%w_%.*/+-]*$"
  return x and x .. ":t()"
end

return foreign
