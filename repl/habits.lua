-- SPDX-License-Identifier: MIT
--
-- habits.lua - what Lua says to the habits of other languages, said better;
-- names that do not exist, with the nearest that does; syntax errors with a
-- caret.

local host = require "nacre.host"
local lexer = require "nacre.lexer"

local nacre = package.loaded.nacre or _G.nacre

local habits = {}

-- Line n of a text, or nil.
function habits.line(text, n)
  local at = 1
  for _ = 2, n or 1 do
    at = text:find("\n", at, true)
    if not at then return nil end
    at = at + 1
  end
  return text:match("^[^\n]*", at)
end

-- A function of the library, which may be made when it is first asked for.
local function offers(name)
  local ok, v = pcall(function() return nacre[name] end)
  return ok and v ~= nil
end

-- The key of t that is nearest to a word.
local function nearest(word, t)
  local list = t == nacre and nacre._names() or {}
  for name in next, t do
    if type(name) == "string" and not name:find "^_" then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  local found = host.suggest(word, list)
  return (t ~= nacre or found and offers(found)) and found or nil
end

local function meant(text, name)
  return name and ("%s, did you mean '%s'?"):format(text, name) or text
end

--
-- Errors of running programs
--
local words = {None = "nil", null = "nil", NULL = "nil", undefined = "nil",
               True = "true", TRUE = "true", False = "false",
               FALSE = "false"}

-- What is imported elsewhere.
local here = "nacre, also called torch, is there without an import"
local modules = {torch = here, nacre = here, numpy = here, np = here}

-- A global that is nil.
local function novariable(name)
  local text = ("no variable '%s'"):format(name)
  if name == "exit" or name == "quit" then return text .. ", :quit leaves" end
  if words[name] then return text .. ", did you mean " .. words[name] .. "?" end
  if offers(name) then return meant(text, "nacre." .. name) end
  return meant(text, nearest(name, _G))
end

local function istensor(v)
  return type(v) == "userdata" and nacre.is_tensor(v)
end

-- What stands before ".name" or ":name" on a line: its path and value.
local function owner(line, mark, name, value)
  local path = line:match("([%a_][%w_%.]*)%s*" .. mark .. "%s*" .. name ..
                          "%f[^%w_]")
  return path, path and value(path)
end

-- Where a name that `nacre' or a part of it lacks is, as nacre.conv2d is.
local parts = {"", "nn.functional.", "linalg.", "autograd.", "cuda."}

local function elsewhere(name)
  for _, part in ipairs(parts) do
    local t = nacre
    for word in part:gmatch "[%w_]+" do t = t[word] end
    for _, form in ipairs {name, name:lower()} do
      local ok, v = pcall(function() return t[form] end)
      if ok and v ~= nil then return "nacre." .. part .. form end
    end
  end
end

-- What to say of a name alone that is nil: a variable or what `nacre' lacks.
-- Nil if there is nothing to say.
function habits.unknown(name)
  local owner, field = name:match "^(.*)%.(.*)$"
  if owner then
    local other = elsewhere(field) or nearest(field, nacre)
    return other and meant(("%s has no '%s'"):format(owner, field), other)
  end
  local command = require "nacre.commands".line(name)
  if command then
    return ("no variable '%s'; the command is %s"):format(name, command)
  end
  local text = #name > 2 and novariable(name)
  return text and text:find(",", 1, true) and text or nil
end

-- "attempt to call a nil value (method 'uper')"
local function nofield(o, line, value)
  local kind, name =
    o.message:match "^attempt to %l+ a nil value %((%l+) '([%w_]+)'%)"
  if kind ~= "method" and kind ~= "field" then return end
  local path, v = owner(line, kind == "method" and ":" or "%.", name, value)
  local fields = type(v) == "string" and string or v
  if type(fields) ~= "table" then return end
  local what = kind == "method" and "method" or "function"
  if o.message:find "^attempt to index" then
    if rawequal(v, nacre) then
      o.message = ("%s has no '%s'"):format(path, name)
    end
    return
  end
  local close = path:find "^%a+" and rawequal(value(path:match "^%a+"), nacre)
                and elsewhere(name) or nearest(name, fields)
  o.message = meant(("%s has no %s '%s'"):format(path, what, name), close)
end

-- a.sum(1) where a:sum(1) is meant: `self' is no tensor, but `a' is one.
local function nocolon(o, line, value)
  local name = o.hint and o.hint:match "^([%w_]+) is a method"
  local missing = o.op and o.message:find " is missing: "
  if name then o.hint = nil end
  name = name or missing and o.op or
         o.message:match "^bad argument #1 to '([%w_]+)' %(tensor expected"
  if not name then return end
  local path, form, args =
    line:match("([%a_][%w_%.]*)%.(" .. name .. "_?)%s*(%b())")
  local first = args and args:match "^%(%s*([%w_%.]*)"
  if path and istensor(value(path)) and first ~= path then
    o.message = ("%s is a method: %s:%s%s"):format(form, path, form, args)
    o.op, o.object = nil, nil
  end
end

-- What of a tensor is no function, for what is no variable either.
local fields = {grad = true, requires_grad = true, is_leaf = true,
                grad_fn = true, dtype = true, device = true, shape = true,
                ndim = true, is_cuda = true}

-- A property that is called, as a.shape() or a:shape().
local function nocall(o, line, value)
  local kind, name =
    o.message:match "^attempt to call a %l+ value %((%l+) '([%w_]+)'"
  for _, tensor in ipairs {"T", "grad"} do    -- which are called: an index
    if not name and o.object and line:find(":" .. tensor .. "%s*%(") then
      kind, name = "method", tensor
    end
  end
  if kind ~= "field" and kind ~= "method" then return end
  local mark = kind == "method" and ":" or "%."
  local path, v = owner(line, mark, name, value)
  if kind == "method" and not path and fields[name] then
    o.message = ("%s is no method: leave out ()"):format(name)
    return
  end
  if not istensor(v) then return end
  if kind == "method" then
    o.message = ("%s is no method: %s.%s"):format(name, path, name)
    o.op, o.object, o.hint, o.args = nil, nil, nil, {}
  elseif name == "shape" then
    o.hint = ("%s:size() is {%s}"):format(path, table.concat(v:size(), ", "))
  else
    o.hint = ("%s.%s is no function: leave out ()"):format(path, name)
  end
end

-- True, None and the like in a block that compiles: they would be nil in
-- silence.  Gives what to say; nil if there are none, or the block sets them.
function habits.constant(text)
  local some
  for word in text:gmatch "%f[%w_]%a+%f[^%w_]" do
    some = some or words[word] and rawget(_G, word) == nil
  end
  if not some then return nil end
  local tokens, found = lexer.tokens(text), nil
  for i, t in ipairs(tokens) do
    local before = i > 1 and tokens[i - 1].text
    local after = tokens[i + 1] and tokens[i + 1].text
    if t.kind == "name" and words[t.text] and before ~= "." and
       before ~= ":" then
      if after == "=" or before == "local" then return nil end
      found = found or rawget(_G, t.text) == nil and t.text
    end
  end
  return found and novariable(found) or nil
end

-- The first global on the line that is nil.
local function undefined(line, value)
  local tokens = lexer.tokens(line)
  for i, t in ipairs(tokens) do
    local before = i > 1 and tokens[i - 1].text
    local after = tokens[i + 1] and tokens[i + 1].text
    if t.kind == "name" and before ~= "." and before ~= ":" and
       before ~= "local" and before ~= "function" and after ~= "=" and
       value(t.text) == nil then
      return t.text
    end
  end
end

-- for row in t do
local function noiterator(o, line)
  local list = o.message:find "^a nil is no index" and
               line:match "%f[%w_]for%f[^%w_].-%f[%w_]in%s+(.-)%s+do%f[^%w_]"
  if list then
    o.hint = ("for i, row in pairs(%s) do ... end"):format(list)
  end
end

local function nilargument(o, line, value)
  local text = " " .. o.message .. " "
  if o.hint or not (text:find "%Wnothing%W" or text:find "%Wnil%W" or
                    text:find "%Wmissing%W") then return end
  local name = undefined(line, value)
  if name then o.hint = novariable(name) end
end

-- What functions of other languages are, of x.
local calls = {len = "#x", size = "x:size()", dir = "x:<Tab><Tab> lists them",
               shape = "x.shape", typeof = "type(x)", str = "tostring(x)"}

-- A global that is nil, at `line'.
local function noglobal(o, line, name, value)
  o.message = novariable(name)
  local arg = line:match("%f[%w_]" .. name .. "%s*%(([%w_%.:]+)%)")
  if calls[name] and arg and value(arg) ~= nil then
    o.hint = calls[name]:gsub("x", arg, 1)
  end
  if name == "help" then o.hint = "?" .. (arg or "name") end
  if modules[name] then o.hint = modules[name] end
  local rest = line:match("^%s*" .. name .. "%s+(.*)")
  if rest and not rest:find "^[=({]" then
    o.hint = require "nacre.commands".line(name, rest) or o.hint
  end
end

-- NumPy's names of arguments.
local arguments = {axis = "dim", axes = "dims", keepdims = "keepdim"}

local function noargument(o)
  local name = not o.hint and o.message:match "^no argument '(%l+)'$"
  local ours = arguments[name]
  if ours then o.hint = ("%s is called %s"):format(name, ours) end
end

-- x:conv2d(w): a function, and elsewhere.
local function nomethod(o)
  local name = not o.hint and o.message:match "^tensor has no method '([%w_]+)'"
  local place = name and elsewhere(name)
  if place and place:find "%.%w+%." then o.hint = place .. "(...)" end
end

-- Improves the message and the hint of an error at `line'; value(path) is
-- what a variable stands for there.
function habits.running(o, line, value)
  local name = o.message:match
    "^attempt to [%l ]+ a nil value %(global '([%w_]+)'%)"
  if name then return noglobal(o, line, name, value) end
  nofield(o, line, value)
  nocolon(o, line, value)
  nocall(o, line, value)
  noiterator(o, line)
  if o.object then
    nilargument(o, line, value)
    noargument(o)
    nomethod(o)
  end
end

--
-- Errors of the compiler
--

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
  value = value:gsub("%f[%w_]%a+%f[^%w_]", words)
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
  if word == "import" or word == "from" then
    local name = rest:match "^[%w_]+"
    return modules[name] or name and ('require "%s"'):format(name)
  end
  if word == "def" then
    return ("function %s ... end"):format(rest:match "^[%w_]+%s*%b()" or "f()")
  end
  if word == "let" or word == "var" or word == "const" then
    return "local " .. tail
  end
  if word == "elif" or word == "elsif" then return "elseif" end
  if word == "with" then
    local call = rest:match "^([%w_.]+)%s*%("
    return (call or "f") .. "(function() ... end)"
  end
  if word == "lambda" then return "function(x) return ... end" end
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

-- Each: near which token, and a function that gives the hint, or a text.
local foreign = {
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
    return before:find "^%s*$" and command(rest)
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
    if before:find "[({,]%s*[(%[][^()%[%]]*$" then return list end
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
    return message:find "^'%)' expected" and byname(before, rest)
  end},
  {"repeat", reserved}, {"and", reserved}, {"or", reserved},
  {"not", reserved},
  {"&", function(_, rest) return rest:find "^&" and "and" end},
  {"|", function(_, rest) return rest:find "^|" and "or" end},
  {"#", "a comment starts with --"},
  {"[", list},
}

-- A better message, a hint: what the place looks like.
local function foreignhint(message, near, before, rest)
  if near == "!" and rest:find "^!=" then
    return "'!=' is written ~= in Lua"
  end
  local better = compound(before, rest) or increment(before, rest)
  if better then return better end
  if near:find "^<\\%d+>$" then
    return nil, "names are ASCII letters, digits and _"
  end
  for _, entry in ipairs(foreign) do
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

-- What is known of a message: the token, its line, what is before it and from
-- it on, a better text, a hint.
local function examine(message, text, head)
  local e = {message = message, token = offender(message, text, head)}
  e.number, e.what = message:match ":(%d+): (.*)$"
  if not e.token then return e end
  e.line, e.before, e.rest = around(text, e.token)
  local near = e.what:match " near '(.*)'$" or ""
  e.better, e.hint = foreignhint(e.what, near, e.before, e.rest)
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

-- What a block that ends too early may be in another language.
local function unfinishedhint(what, text)
  local word = require "nacre.submit".colon(text)
  if word == "for" then return "for i = 1, n do ... end" end
  if word == "try" or word == "except" or word == "finally" then
    return "pcall(function() ... end)"
  end
  if word then
    return word == "while" and "while ... do ... end" or "if ... then ... end"
  end
  local x = what:find "^unfinished string" and
            text:match "^%s*([%a_][%w_%.]*)'%s*$"
  return x and x .. ":t()"
end

-- The text of a syntax error: message is Lua's, text the block.
function habits.syntax(message, text, opts, paint)
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
    return show(head .. unfinished(e.what), place, line, nil,
                unfinishedhint(e.what, text), paint)
  end
  local line = (several or not e.better) and e.line or nil
  return show(head .. (e.better or e.what), place, line, line and e.before,
              e.hint, paint)
end

-- The same for a message that names a file; nil if it is no syntax error.
function habits.script(message, read, opts, paint)
  local chunk = message:match "^([^\n:]+):%d+: [^\n]* near [^\n]+$"
  local text = chunk and read(chunk)
  if not text then return nil end
  text = text:gsub("^#[^\n]*", "")
  if load(text, "=stdin", "t") then return nil end
  return habits.syntax(message, text, opts, paint)
end

return habits
