-- SPDX-License-Identifier: MIT
--
-- foreign_syntax.lua - hints for syntax errors: code that is valid in Python,
-- Julia, MATLAB, C or JavaScript, and how it is written in Lua.

local index_base = require "nacre.index_base"
local value_of = require "nacre.stack_frames".value_of
local runtime_errors = require "nacre.runtime_errors"
local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local expressions = require "nacre.expression_at"
local python_calls = require "nacre.python_calls"
local python_definitions = require "nacre.python_definitions"
local python_statements = require "nacre.python_statements"
local unknown_names = require "nacre.unknown_names"

local beginning, ending = expressions.beginning, expressions.ending
local first, last = expressions.first, expressions.last
local enclosed = expressions.enclosed
local call = expressions.call

local nacre = package.loaded.nacre or _G.nacre

local foreign_syntax = {}

local inplace = {["+"] = "add_", ["-"] = "sub_", ["*"] = "mul_",
                 ["/"] = "div_"}

local function compound_assignment(before, rest)
  local op, tail = rest:match "^(%.%.)=(.*)$"
  if not op then op, tail = rest:match "^(//)=(.*)$" end
  if not op then op, tail = rest:match "^([-+*/%%^])=(.*)$" end
  local spelled = op
  if op == "*" and before:find "%*%s*$" then
    before, op, spelled = before:match "^(.-)%*%s*$", "^", "**"
  end
  local x, y = op and ending(before), op and first(tail)
  if not x or not y or x:find "%)$" then return nil end
  y = python_statements.expression(y)
  local plus = op == "+" or op == ".."
  local owner = x:match "^([%a_][%w_.]*)%.data$"
  if inplace[op] and owner and istensor(value_of(owner)) then
    return ("Lua has no %s=; nacre.no_grad(function() %s:%s(%s) end)"):format(
             spelled, owner, inplace[op], y)
  end
  local note = x:find "%[%s*0%s*%]$" and index_base.note or ""
  x = x:gsub("%[%s*0%s*%]$", "[1]")
  local text = ("Lua has no %s=; %s = %s %s %s%s"):format(spelled, x, x, op,
                 plus and y or enclosed(y), note)
  local v = value_of(x)
  if inplace[op] and (istensor(v) or v == nil and x:find "^[%w_]+$") then
    text = ("%s, or in place %s:%s(%s)"):format(text, x, inplace[op], y)
  end
  return text
end

local function increment(before, rest)
  local x = rest:find "^%+%+" and ending(before)
  return x and ("Lua has no ++; %s = %s + 1"):format(x, x)
end

local function power(before, rest)
  local times = before:match "%.%s*$" and rest:match "^[-+*/^]%s*([%w_%.]+)"
  if times then                         -- Julia's and MATLAB's a .* b
    return ("%s %s %s"):format(before:match "^%s*(.-)%s*%.%s*$",
                               rest:sub(1, 1), times)
  end
  local base = before:match "^(.-)%s*%*$"
  local x = base and (ending(base) or base:match "%f[%w_%.][%d%.]+$")
  local y = beginning(rest:sub(2)) or rest:match "^%*%s*(-?[%d%.]+)"
  return x and y and x .. " ^ " .. y
end

-- nn.Sequential(*layers), nn.Sequential(*list(net.children())[:-1])
local function unpacked(before, rest)
  if not before:find "[(,]%s*$" then return nil end
  local net, n = rest:match
    "^%*%s*list%(([%w_.]+)[.:]children%(%)%)%[:%-(%d+)%]"
  if net then
    return ("table.unpack(%s:children(), 1, #%s:children() - %s)")
           :format(net, net, n)
  end
  local list = beginning(rest:sub(2))
  return list and ("table.unpack(%s)"):format(
    expressions.methods(list:match "^list(%b())$" and list:sub(6, -2) or list,
                        value_of))
end

-- Is a path surely no tensor?  x.shape is a table.
local function is_other_value(path)
  local v = value_of(path)
  local owner, field = path:match "^(.*)%.([%a_][%w_]*)$"
  local object = v == nil and owner and value_of(owner)
  if istensor(object) then
    local ok, value = pcall(function() return object[field] end)
    v = ok and value or nil
  end
  return v ~= nil and not istensor(v)
end

local function index(before, rest)
  local x, a = before:match "([%a_][%w_%.]*)%[([^%[%]]*)$"
  local b = rest:match "^([^%[%]]*)%]"
  return x and b and not is_other_value(x) and index_base.index(x, a .. b)
end

-- The named arguments of a call as the text of a table; and a note if some are
-- dimensions, by the operation's `info'.
local function arguments(info, list)
  local counted = false
  list = list:gsub("([%a_][%w_]*)%s*=%s*([^,=]+)", function(name, value)
    local tail = value:match "%s*$"
    local mine
    name = runtime_errors.arguments[name] or name
    value, mine = index_base.argument(info, name, value:sub(1, #value - #tail))
    counted = counted or mine
    return name .. "=" ..
           value:gsub("%f[%w_]%a+%f[^%w_]", runtime_errors.words) .. tail
  end)
  return list, counted and index_base.note or ""
end

-- device=d among the named arguments of a layer, which is no argument of it:
-- the others, and the call that moves the layer.
local function without_device(info, list)
  if not info or info.results ~= "module" then return list, "" end
  local left, moves = {}, ""
  for _, item in ipairs(expressions.items(list)) do
    local name, value = item:match "^%s*([%a_][%w_]*)%s*=%s*(.-)%s*$"
    if name == "device" or name == "dtype" then
      moves = ("%s:to(%s)"):format(moves, value)
    else
      left[#left + 1] = item
    end
  end
  return table.concat(left, ","), moves
end

-- The info of the operation whose path ends a text, or nil.
local function info_of(text)
  local path = text:match "%f[%w_.:]([%a_][%w_.]*)%s*$"
  return path and python_calls.info_of(path)
end

-- Of several results, the one that [1] or .indices after the call selects.
local function select_result(info, text, tail)
  if not (info and info.results or ""):find(",", 1, true) then
    return text, tail
  end
  local which, rest = tail:match "^%[%s*([01])%s*%](.*)$"
  if not which then
    which, rest = tail:match "^%.(%l+)%f[^%w_](.*)$"
  end
  if which == "0" or which == "values" then return "(" .. text .. ")", rest end
  if which == "1" or which == "indices" then
    return ("(select(2, %s))"):format(text), rest
  end
  return text, tail
end

-- f(a, name=value) is f(a, {name=value})
local function named_arguments(before, rest)
  local head, inside = call(before)
  if not head then return nil end
  if head:find "%f[%w_]function%f[^%w_][%s%w_.:]*$" then
    local params = rest:match "^([^()]*)%)"
    return params and python_definitions.defaults(head, inside .. params)
  end
  local args, name = inside:match "^(.-)%s*([%a_][%w_]*)%s*$"
  local value, tail = rest:match "^=%s*([^()]*)(%).*)$"
  if not name or not value or value == "" or
     args ~= "" and not args:find ",$" then
    return nil
  end
  local before = head:sub(1, -#(ending(head) or "") - 1)
  local path = head:match "([%a_][%w_.]*)%.[%a_][%w_]*$"
  head = expressions.methods(head .. "(", value_of):sub(1, -2)
  local list, note = name .. "=" .. value, ""
  local method = head:match ":([%a_][%w_]*)$"
  local info = method and nacre._info(method) or info_of(head)
  if method or info or path and rawequal(value_of(path), nacre) then
    list, note = arguments(info, list)
  else
    list = list:gsub("%f[%w_]%a+%f[^%w_]", runtime_errors.words)
  end
  if not load("return {" .. list .. "}", "=", "t") then return nil end
  local moves
  list, moves = without_device(info, list)
  args = args:match "^(.-),?$"
  if list ~= "" then
    args = ("%s%s{%s}"):format(args, args ~= "" and ", " or "", list)
  end
  local whole = ("%s(%s)%s"):format(head:sub(#before + 1), args, moves)
  whole, tail = select_result(info, whole, tail:match "^%)(.-)%s*$")
  return before:match "^%s*(.*)$" ..
         expressions.methods(whole .. tail, value_of) .. note
end

-- x:repeat(2), torch.and(a, b), np.repeat(x, 2), which repeats each element
local function reserved(before, rest)
  local path = before:match "([%a_][%w_%.]*[.:])%s*$"
  local word, args = rest:match "^(%l+)%s*(%b())"
  if not path or not args then return nil end
  local numpy = path == "np." or path == "numpy."
  word = word ~= "repeat" and "logical_" .. word or
         numpy and "repeat_interleave" or "tile"
  if numpy and value_of(path:sub(1, -2)) == nil then path = "nacre." end
  if istensor(value_of(path:sub(1, -2))) then path = path:sub(1, -2) .. ":" end
  return path .. word .. args
end

-- c and y or z; torch.device("cuda" if torch.cuda.is_available() else "cpu")
local function and_or(c, y, z)
  if c:find "cuda%.is_available" then return 'nacre.device "auto"' end
  c = (c:find "%f[%w_]or%f[^%w_]") and "(" .. c .. ")" or c
  return (("%s and %s or %s"):format(c, y, z)
            :gsub("%f[%w_]%a+%f[^%w_]", runtime_errors.words))
end

local function conditional(before, rest)
  local x = last(before)
  local y, z = rest:match "^%?%s*(.-)%s+:%s+(.-)%s*$"
  if not y then y, z = rest:match "^%?%s*(.-)%s*:%s*(.-)%s*$" end
  z = z and first(z)
  if not z or x == "" then return "x and y or z" end
  return and_or(x, y, z)
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
    tail = tail:gsub("([=~]=%s*)%(([^()]*,[^()]*)%)", "%1{%2}")
    return ("%s(%s)"):format(word, tail)     -- x.shape == {2, 2}
  end
  if word == "del" then return tail .. " = nil" end
  if word == "import" or word == "from" or word == "using" then
    local name = rest:match "^[%w_]+"
    return python_statements.import(rest) or runtime_errors.modules[name] or
           rawget(_G, name) and name .. " is available without an import" or
           name and python_statements.module(name)
  end
  if word == "raise" or word == "throw" then
    return ("error(%s)"):format(tail:match "%((.*)%)" or '"..."')
  end
  if word == "global" then
    return "variables are global unless declared local"
  end
  if rest:find "^is%f[^%w_]" then
    local x = last(before)
    local y, behind = rest:match "^is%s+([%w_]+)%s*([%w_]*)"
    local no = y == "not" and behind ~= ""
    if no then y = behind end
    return y and ("%s %s %s"):format(x, no and "~=" or "==",
                                     runtime_errors.words[y] or y)
  end
  if word == "let" or word == "var" or word == "const" then
    return "local " .. tail
  end
  if word == "elif" or word == "elsif" then return "elseif" end
  return python_definitions.of(word, rest)
end

local list = "a list is written {1, 2, 3}"

-- Julia's and psql's commands.
local macros = {time = "time", elapsed = "time", btime = "bench",
                benchmark = "bench", timev = "time", q = "quit", d = "whos",
                e = "edit", i = "run", s = "history"}

local function command(rest)
  local decorated = python_definitions.decorator(rest)
  if decorated then return decorated end
  local word, tail = rest:match "^[\\@](%l+)%s*(.*)$"
  return word and require "nacre.commands".line(macros[word] or word, tail) or
         "commands begin with a colon; :help lists them"
end

-- x if y else z
local function ternary(before, rest)
  local y, z = rest:match "^if%s+(.-)%s+else%s+(.-)%s*$"
  z = z and first(z)
  return z and and_or(y, last(before), z)
end

-- y = x if c else z: `y = x' is whole, and what is refused is `else'
local function misplaced_else(before, rest)
  local x, c = before:match "^(.-%S)%s+if%s+(.-)%s*$"
  local z = x and first(rest:match "^else%s*(.*)$" or "")
  x = x and last(x)
  if not z or x == "" or c:find "%f[%w_]then%f[^%w_]" then return nil end
  return and_or(c, x, z)
end

-- f(x) = x + 1, as in Julia; x(1, 2) = 5; a = b = 1
local tests = lexer.set "if elseif while until and or not"

local function assignment(before, rest)
  if tests[before:match "%f[%w_](%l+)%s*%([^()]*$"] then
    return "== compares"
  end
  if before:find "==%s*$" then return "== compares" end
  local name, args = before:match "^%s*([%a_][%w_]*)%s*(%b())%s*$"
  local body = rest:match "^=%s*([^=].-)%s*$"
  if name then
    body = body and first(body)
    args = args:match "^%(%s*(.-)%s*%)$"
    local v, names = value_of(name), true
    for arg in args:gmatch "[^,]+" do
      names = names and arg:find "^%s*[%a_][%w_]*%s*$"
    end
    if not body then return nil end
    if names and (v == nil or type(v) == "function") then
      return ("function %s(%s) return %s end"):format(name, args, body)
    end
    if args == "" or type(v) == "function" then return nil end
    return ((args:find ",") and "%s[{%s}] = %s" or "%s[%s] = %s")
           :format(name, args, body)
  end
  local a, b = before:match "^%s*([%a_][%w_%.]*)%s*=%s*([%a_][%w_%.]*)%s*$"
  local names, n = {a, b}, 2
  while a and body do
    local c, more = body:match "^([%a_][%w_%.]*)%s*=%s*([^=].*)$"
    if not c then break end
    n = n + 1
    names[n], body = c, more
  end
  body = a and body and first(body)
  return body and ("%s = %s"):format(table.concat(names, ", "),
                                     body .. (", " .. body):rep(n - 1))
end

-- 'a'.upper(), "{}".format(x), ", ".join(list): methods of a text in quotes
local function string_method(before, rest)
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

-- Is the offending token in the head of a function without a name, which
-- Lua takes to be something else?
local function near_lambda(before)
  for _, t in ipairs(lexer.tokens(before)) do
    local tail = t.kind == "name" and t.text == "lambda" and
                 before:sub(t.to + 1)
    if tail and (tail:find "^[%w_,%s]*:?[%w_%.%s]*$" or
                 tail:find "^[%w_,%s]*:[%w_%.%s]*%b()%s*$") then
      return true
    end
  end
end

local function nearrow(before, rest)
  if rest:find "%f[%w_]then%f[^%w_]" or
     before:find "%f[%w_]function%f[^%w_]" then
    return false
  end
  return rest:find "^[-=]>" or before:find "[-=]$" and rest:find "^>" or
         before:find "%([%w_,%s]*$" and rest:find "^[%w_,%s]*%)%s*[-=]>"
end

-- A function without a name.
local function inline(before, rest)
  local line, args, body = before .. rest, nil, nil
  if near_lambda(before) or rest:find "^lambda%f[^%w_]" then
    args, body = line:match "%f[%w_]lambda%s*([%w_,%s]-)%s*:%s*(.-)%s*$"
  elseif nearrow(before, rest) then
    args, body = line:match "%(([%w_,%s]*)%)%s*[-=]>%s*(.-)%s*$"
    if not args then
      args, body = line:match "([%a_][%w_]*)%s*[-=]>%s*(.-)%s*$"
    end
  end
  if not args then return nil end
  body = first(body) or body:match "^[^,(){}]*%b()[^,(){}]*" or
         body:match "^[^,(){}]*"
  body = python_statements.expression(body)
  return ("function(%s) return %s end"):format(args, body ~= "" and body or
                                               "...")
end

-- x @ y @ z
local function product(before, rest)
  local x = ending(before)
  while x do
    local y, more = beginning(rest:match "^@(.*)$" or "")
    if not y then return nil end
    x, rest = ("%s:matmul(%s)"):format(x, y), more:match "^%s*(.*)$"
    if not rest:find "^@" then return x end
  end
end

-- Each row: the token that is rejected, and the hint as a text or a function.
local tokens = {
  {"!", function(before, rest)
    local x = rest:match "^!%s*([%w_%.]+)"
    local list = before:match "^%s*([%a_][%w_]*%s*=%s*)$"
    if list and x and #x > 1 and rawget(_G, x) == nil then
      return ("%sshell.lines %q, or not %s"):format(list, rest:sub(2), x)
    end
    return x and "write: not " .. x
  end},
  {"**", power}, {"*", unpacked}, {"*", power},
  {"\\", function(before, rest)
    if before:find "^%s*$" then return command(rest) end
    local a, b = ending(before), beginning(rest:sub(2))
    return a and b and ("nacre.linalg.solve(%s, %s)"):format(a, b)
  end},
  {"if", ternary}, {"else", misplaced_else},
  {"@", function(before, rest)
    if before:find "^%s*$" then return command(rest) end
    return product(before, rest)
  end},
  {"?", conditional},
  {"(", function(before, rest)          -- for i, (x, y) in enumerate(list):
    if not before:find "^%s*for%s+[%w_,%s]*$" then return nil end
    local flat = (before .. rest):gsub("%(([%w_,%s]+)%)", "%1", 1)
    return flat:find "%sin%s" and python_statements.loop(flat) or nil
  end},
  {",", function(before, rest, message)
    local out, parts, call = (before .. rest)
      :match "^%s*([%a_][%w_]*)%s*,%s*%(([%w_,%s]+)%)%s*=%s*(.-)%s*$"
    if out then                         -- out, (h, c) = lstm(x, (h, c))
      call = call:gsub(",%s*%([%w_,%s]+%)", ", state")
      return ("%s, state = %s; %s = table.unpack(state)"):format(out, call,
                                                                 parts)
    end
    if before:find "[({,=]%s*[(%[][^()%[%]]*$" or
       before:find "^%s*%([^()]*$" then
      return python_calls.line(before .. rest) or list
    end
    return message:find "^'%]' expected" and index(before, rest)
  end},
  {":", function(before, rest, message)
    local head, a = before:match "^(%s*for%s+[%a_][%w_]*%s*=%s*)([%w_.]+)%s*$"
    local b, tail = rest:match "^:%s*([%w_.]+)(.*)$"
    if before:find ";%s*$" and rest:find "^:%l" then
      return rest:match "^(.-)%s*$" .. "  (a command has a line of its own)"
    end
    if head and b then            -- Julia's for i = 1:10
      tail = tail:find "do" and tail or " do ... end"
      return ("%s%s, %s%s"):format(head, a, b, tail)
    end
    a = not head and before:match "^%s*(-?%d+)%s*$"
    if a and b and tonumber(b) then
      return ("nacre.arange(%s, %d)"):format(a, tonumber(b) + 1)
    end
    if message:find "^'%]'" or before:find "%[[^%]]*$" then
      return index(before, rest)
    end
    if message:find "^'}'" then return "{name = value}" end
    if message:find "^'then'" then return "if ... then ... end" end
    if message:find "^'do'" then return "... do ... end" end
  end},
  {"::", index},
  {"end", function(before, rest)
    if before:find "%[%s*$" then return index(before, rest) end
  end},
  {"{", function(before, _, message)
    if before:find "%f[%w]do%s*$" or before:find "%f[%w]then%s*$" or
       before:find "%f[%w]function[%s%w_.:]*%b()%s*$" then
      return "a block ends with end and has no { }"
    end
    if message:find "^'then'" then return "if ... then ... end" end
    if message:find "^'do'" then return "... do ... end" end
  end},
  {"=", function(before, rest, message)
    if message:find "^'then'" then return "== compares" end
    local value = rest:match "^:(=.*)$"
    if value then return before .. value end
    return message:find "^'%)' expected" and
           (not before:find "[(,]%s*%[" and
            not before:find "^[%w_,%s]-=?%s*%u%w*%(" and
            named_arguments(before, rest) or
            python_calls.line(before .. rest)) or
           assignment(before, rest)
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
  {".", string_method},
  {"for", function(before, rest)        -- sum(f(x) for x in list)
    local head, inside = call(before)
    return head and python_statements.comprehension(head .. "(",
                                                    inside .. rest)
  end},
  {"[", function(before, rest)
    local literal, i = before:match "(%b{})%s*$", rest:match "^%b[]"
    if literal and i then return ("(%s)%s"):format(literal, i) end
    return python_statements.comprehension(before, rest) or
           python_calls.line(before .. rest) or list
  end},
}

-- Returns a better message and a hint for a syntax error at the token `near'.
function foreign_syntax.hint(message, near, before, rest)
  if near == "!" and rest:find "^!=" then
    local x, y = before:match "([%a_][%w_]*)%s*$", rest:match "^!=%s*([%w_%.]+)"
    local each = x and y and istensor(rawget(_G, x)) and
                 not before:find "%f[%w]if%f[%W]" and
                 ("; %s:ne(%s) compares each element"):format(x, y) or ""
    return "'!=' is written ~= in Lua" .. each
  end
  local f = inline(before, rest)
  if f then return nil, f end
  local better = compound_assignment(before, rest) or increment(before, rest)
  if better then return better end
  if before:find "^%s*#%s" or near == "#" then
    return nil, "a comment starts with --"
  end
  if near:find "^<\\%d+>$" then
    return nil, "names are ASCII letters, digits and _"
  end
  if before:find "%f[%w_]continue%s*;?%s*$" and near ~= "=" then
    return nil, "goto continue, with ::continue:: before the loop's end"
  end
  local line = before .. rest
  local short = line:find "^%s*for%s+[%w_,%s]+%sin%s.*:%s*$" and
                python_statements.loop(line) or python_statements.oneline(line)
  if short then return nil, short end
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

local opening = {["if"] = "if ... then ... end", elif = "elseif ... then",
                 ["elseif"] = "elseif ... then", ["else"] = "else",
                 ["while"] = "while ... do ... end"}
local missing = {["for"] = "'do' expected", ["while"] = "'do' expected",
                 ["if"] = "'then' expected", elif = "Lua has no elif",
                 try = "Lua has no try", except = "Lua has no except",
                 finally = "Lua has no finally"}

-- For a block that ends too early: the hint, and a better message than `what',
-- if it looks like another language; else nil.
function foreign_syntax.unfinished(what, text)
  local word = require "nacre.input_block".python_colon(text)
  if word then
    return word == "for" and python_statements.loop(text) or
           not text:find "\n" and python_statements.oneline(text) or
           opening[word] or
           "pcall(function() ... end)", missing[word]
  end
  local x = what:find "^unfinished string" and
            text:match "^%s*([%a_][%w_%.]*)'[%s%w_%.*/+-]*$"
  return x and x:gsub("%.$", "") .. ":t()"
end

return foreign_syntax
