-- SPDX-License-Identifier: MIT
--
-- python_methods.lua - methods of Python's lists, dictionaries and texts, and
-- its functions of those, as expressions and statements of Lua.

local lexer = require "nacre.lexer"

local python_methods = {}

-- By the number of arguments: $x is the object, $y and $z are the arguments, $N
-- is the first of them counted from 1.
local lists = {
  sort = {[0] = "table.sort($x)"},
  reverse = {[0] = "for i = 1, #$x // 2 do " ..
             "$x[i], $x[#$x + 1 - i] = $x[#$x + 1 - i], $x[i] end"},
  pop = {[0] = "table.remove($x)", "table.remove($x, $N)"},
  insert = {nil, "table.insert($x, $N, $z)"},
  remove = {"for i, v in ipairs($x) do " ..
            "if v == $y then table.remove($x, i) break end end"},
  index = {"for i, v in ipairs($x) do if v == $y then print(i) break end end"},
  count = {"n = 0; for _, v in ipairs($x) do " ..
           "if v == $y then n = n + 1 end end"},
  extend = {"table.move($y, 1, #$y, #$x + 1, $x)"},
  clear = {[0] = "$x = {}"}, copy = {[0] = "table.move($x, 1, #$x, 1, {})"},
  keys = {[0] = "for k in pairs($x) do print(k) end"},
  values = {[0] = "for _, v in pairs($x) do print(v) end"},
  items = {[0] = "for k, v in pairs($x) do print(k, v) end"},
  get = {"$x[$y]", "$x[$y] or $z"},
  update = {"for k, v in pairs($y) do $x[k] = v end"}}

-- A text $y that is written there is a plain one: no pattern.
local texts = {
  replace = {nil, "$x:gsub($y, $z)"}, split = {[0] = "t = {}; " ..
    'for w in $x:gmatch "%S+" do t[#t + 1] = w end',
    't = {}; for w in $x:gmatch("[^" .. $y .. "]+") do t[#t + 1] = w end'},
  startswith = {"$x:sub(1, #$y) == $y"}, endswith = {"$x:sub(-#$y) == $y"},
  strip = {[0] = '$x:match "^%s*(.-)%s*$"'},
  lstrip = {[0] = '$x:match "^%s*(.*)$"'},
  rstrip = {[0] = '$x:match "^(.-)%s*$"'},
  find = {"$x:find($y, 1, true)"}, index = {"$x:find($y, 1, true)"},
  count = {"select(2, $x:gsub($y, $y))"},
  capitalize = {[0] = '$x:gsub("^%l", string.upper)'},
  title = {[0] = '$x:gsub("%f[%a]%l", string.upper)'},
  isdigit = {[0] = '$x:find "^%d+$" ~= nil'},
  isalpha = {[0] = '$x:find "^%a+$" ~= nil'}}

-- Functions; $x is the first argument.
local functions = {
  sum = {"n = 0; for _, v in ipairs($x) do n = n + v end"},
  max = {"math.max(table.unpack($x))"}, min = {"math.min(table.unpack($x))"},
  sorted = {"t = table.move($x, 1, #$x, 1, {}); table.sort(t)"},
  any = {"for _, v in ipairs($x) do if v then print(true) break end end"},
  all = {"for _, v in ipairs($x) do if not v then print(false) break end end"},
  set = {"t = {}; for _, v in ipairs($x) do t[v] = true end"},
  tuple = {"$x"}, eval = {'load("return " .. $x)()'},
  map = {nil, "t = {}; for i, v in ipairs($y) do t[i] = $x(v) end"},
  filter = {nil, "t = {}; for _, v in ipairs($y) do " ..
            "if $x(v) then t[#t + 1] = v end end"},
  round = {nil, 'tonumber(("%.$yf"):format($x))'}, pow = {nil, "$x ^ $y"},
  divmod = {nil, "$x // $y, $x % $y"}, ord = {"$x:byte()"},
  chr = {"string.char($x)"}, hex = {'("0x%x"):format($x)'},
  id = {'("%p"):format($x)'}, bool = {"$x ~= 0"},
  dir = {"for k in pairs($x) do print(k) end"},
  input = {[0] = "io.read()", "io.write($x) and io.read()"}}

local libraries = {
  ["os.getcwd"] = {[0] = 'os.getenv "PWD"'},
  ["os.listdir"] = {[0] = 'shell.lines "ls"', 'shell.lines("ls " .. $x)'},
  ["os.path.exists"] = {"io.open($x) ~= nil"},
  ["os.getenv"] = {"os.getenv($x)"}, ["os.environ.get"] = {"os.getenv($x)",
  "os.getenv($x) or $y"}, ["sys.exit"] = {[0] = "os.exit()", "os.exit($x)"},
  ["time.time"] = {[0] = "nacre.clock()"},
  ["time.perf_counter"] = {[0] = "nacre.clock()"},
  ["time.sleep"] = {"os.execute('sleep ' .. $x)"},
  ["math.factorial"] = {"n = 1; for i = 2, $x do n = n * i end"},
  ["random.random"] = {[0] = "math.random()"},
  ["random.randint"] = {nil, "math.random($x, $y)"},
  ["random.choice"] = {"$x[math.random(#$x)]"},
  ["random.shuffle"] = {"for i = #$x, 2, -1 do local j = math.random(i); " ..
                        "$x[i], $x[j] = $x[j], $x[i] end"},
  ["gc.collect"] = {[0] = "collectgarbage()"}}

local function plain(v)
  return type(v) == "table" and debug.getmetatable(v) == nil
end

local magic = "[%^%$%(%)%%%.%[%]%*%+%-%?]"

-- What fills the $x, $y, $z, $N of a form; nil if an argument has no text.
local function fills(p, object, list, pattern)
  local set = {x = object}
  for i, name in ipairs {"y", "z"} do
    local n = list[i] and list[i].node
    if n and (n.text == "" or list[i].name or list[i].star) then return nil end
    set[name] = n
  end
  local n = list[1] and list[1].node
  local k = n and n.kind == "number" and math.tointeger(tonumber(n.text))
  set.N = k and ("%d"):format(k + 1) or n and n.text .. " + 1"
  if pattern and n and n.kind == "string" then
    set.y = p.node(n.text:gsub(magic, "%%%0"), p.LITERAL)
  end
  return set
end

-- The node of a form with what fills it; a statement is no part of another.
local function filled(p, form, set)
  local text = set and (" " .. form):gsub("()%$(%a)()", function(from, name, to)
    local part = (form:sub(to - 1, to - 1) .. " "):find "[:%[(]"
    local operand = form:find("^ [%^/%%]", to - 1) or
                    form:sub(from - 2, from - 2) == "#"
    local n = set[name]
    if name == "N" or not n then return n end
    return (part or operand and n.rank < p.LITERAL) and p.enclosed(n) or n.text
  end):sub(2)
  if not text then return nil end
  local statement = not load("return " .. text, "=", "t")
  local tight = text:find "^[%w_%.]+%b()$" or text:find "^[%w_%.]+%b[]$"
  return p.node(text, not statement and tight and p.OPERAND or 0,
                {kind = statement and "append" or nil})
end

-- The call of a method `name' of a list or a text, or nil.
function python_methods.method(p, owner, name, list)
  local v = owner.path and p.value(owner.path)
  local text = owner.kind == "string" or type(v) == "string"
  if not text and not plain(v) and owner.kind ~= "list" or
     plain(v) and v[name] ~= nil then return nil end
  local forms = (text and texts or lists)[name]
  local form = forms and forms[#list]
  return form and filled(p, form, fills(p, owner, list,
                         name == "replace" or name == "count"))
end

local conversions = {str = "tostring", int = "tonumber", float = "tonumber"}
local of_numbers = lexer.set "sum max min sorted"

-- Of a function that is none of Lua's, sum(list), math.factorial(5), or nil.
function python_methods.call(p, path, list)
  local forms = functions[path] or libraries[path]
  local form, first = forms and forms[#list], list[1] and list[1].node
  if not form or first and (first.tensor or first.kind == "comprehension" or
     list[1].name) then return nil end
  local v = first and first.path and p.value(first.path)
  if of_numbers[path] and not plain(v) then
    return path ~= "sorted" and v == nil and
           p.node(("nacre.tensor(%s):%s():item()"):format(first.text, path))
  end
  if path == "round" and list[2].node.kind ~= "number" then return nil end
  local ours = first and conversions[first.path]
  return filled(p, form, first and fills(p, ours and p.node(ours) or first,
                {table.unpack(list, 2)}) or {})
end

local function is_text(p, n)
  return n.kind == "string" or n.path and type(p.value(n.path)) == "string"
end

local function is_list(p, n)
  return n.kind == "list" or n.path and plain(p.value(n.path))
end

-- A bound of a slice: a number from 0 is one more, below 0 it is from the end.
local function bound(n, of, more)
  local k = n.kind == "number" and math.tointeger(tonumber(n.text))
  if not k then return n.text .. (more > 0 and " + 1" or "") end
  if k < 0 and of then
    k = k + more
    return "#" .. of .. (k == 0 and "" or " - " .. -k)
  end
  return tostring(k < 0 and k - 1 + more or k + more)
end

-- numbers[1:3], "hello"[0], "hello"[::-1]; nil if x is no list or text.
function python_methods.slice(p, x, part)
  local text, first, last = is_text(p, x), part[1], part[2]
  if not text and not (is_list(p, x) and part.slice) then return nil end
  local of = p.enclosed(x)
  local step = part[3] and part[3].text
  p.found.python, p.found.counted = true, true
  if step then
    if first or last then return nil end
    if text then return step == "-1" and of .. ":reverse()" or nil end
    return ("t = {}; for i = %s, %s do t[#t + 1] = %s[i] end"):format(
      step:find "^-" and "#" .. of or "1",
      (step:find "^-" and "1" or "#" .. of) .. ", " .. step, of), "append"
  elseif text then
    local from = first and bound(first, nil, 1) or "1"
    local to = part.slice and (last and bound(last, nil, 0) or "-1") or from
    return ("%s:sub(%s, %s)"):format(of, from, to)
  end
  return ("table.move(%s, %s, %s, 1, {})"):format(of,
    first and bound(first, of, 1) or "1", last and bound(last, of, 0) or
    "#" .. of)
end

-- x in y of a text, a list or a dictionary.
function python_methods.contains(p, x, y, no)
  p.found.python = true
  if is_text(p, y) then
    return p.node(("%s:find(%s, 1, true) %s= nil"):format(p.enclosed(y), x.text,
                  no and "=" or "~"), 3)
  end
  local v = y.path and p.value(y.path)
  if v and not plain(v) or y.text == "" then return nil end
  if y.kind == "list" or v and #v > 0 then
    local form = no and "found = true; for _, v in ipairs(%s) do found = " ..
                 "found and v ~= %s end" or
                 "found = false; for _, v in ipairs(%s) do found = " ..
                 "found or v == %s end"
    return p.node(form:format(y.text, x.text), 0, {kind = "append"})
  end
  return p.node(("%s[%s] %s= nil"):format(p.enclosed(y), x.text,
                                          no and "=" or "~"), 3)
end

-- [0] * 3, "ab" * 3, list + [6]; nil if they are no lists or texts.
function python_methods.operator(p, op, a, b)
  if op == "*" and is_text(p, a) then
    return p.node(("%s:rep(%s)"):format(p.enclosed(a), b.text))
  elseif op == "*" and a.kind == "list" and a.items[1] and not a.items[2] and
         a.items[1].kind == "number" then
    return p.node(("nacre.tensor%s:expand(%s):tolist()"):format(a.text, b.text))
  elseif op == "+" and is_list(p, a) and is_list(p, b) then
    local x, y = p.enclosed(a), p.enclosed(b)
    return p.node(("table.move(%s, 1, #%s, #%s + 1, table.move(%s, 1, #%s, " ..
                   "1, {}))"):format(b.text, y, x, a.text, x))
  end
end

-- May an error that says one of these names come from a line of Python?
python_methods.names = {}
for _, set in ipairs {lists, texts, functions} do
  for name in pairs(set) do python_methods.names[name] = true end
end
for path in pairs(libraries) do
  for name in path:gmatch "[%w_]+" do python_methods.names[name] = true end
end
python_methods.names.environ = true

-- print("a", end=""): what is written without a new line.
function python_methods.print(p, list)
  local parts, last, between = {}, nil, '"\\t"'
  for _, item in ipairs(list) do
    if item.name == "sep" then between = item.node.text end
  end
  for _, item in ipairs(list) do
    if item.name == "end" then last = item.node.text
    elseif item.name == "sep" then goto continue
    elseif item.name or item.star or item.node.text == "" then return nil
    else
      local n = item.node
      if parts[1] and between ~= '""' then parts[#parts + 1] = between end
      parts[#parts + 1] = n.kind == "string" and n.text or
                          ("tostring(%s)"):format(n.text)
    end
    ::continue::
  end
  last = last or '"\\n"'
  if last ~= '""' and last ~= "''" then parts[#parts + 1] = last end
  return p.node(("io.write(%s)"):format(table.concat(parts, ", ")))
end

return python_methods
