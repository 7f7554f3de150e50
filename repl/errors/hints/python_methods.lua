-- SPDX-License-Identifier: MIT
--
-- python_methods.lua - methods of Python's lists, dictionaries and texts, and
-- its functions of those, as expressions and statements of Lua: the forms of
-- python_idioms.lua with the arguments in them.

local lexer = require "nacre.lexer"
local forms = require "nacre.python_idioms"
local names = require "nacre.python_names"

local python_methods = {}

local lists, texts = forms.lists, forms.texts
local functions, libraries = forms.functions, forms.libraries

local function plain(v)
  return type(v) == "table" and debug.getmetatable(v) == nil
end

local magic = "[%^%$%(%)%%%.%[%]%*%+%-%?]"

-- What fills the $x, $y, $z, $p, $N of a form; nil if an argument has no text.
local function fills(p, object, list)
  local set = {x = object and p:settle(object)}
  for i, name in ipairs {"y", "z"} do
    local n = list[i] and p:settle(list[i].node)
    if n and (n.text == "" or list[i].name or list[i].star) then return nil end
    set[name] = n
  end
  local n = list[1] and list[1].node
  local k = n and n.kind == "number" and math.tointeger(tonumber(n.text))
  set.N = k and ("%d"):format(k + 1) or n and n.text .. " + 1"
  set.p = n and n.kind == "string" and
          p.node(n.text:gsub(magic, "%%%0"), p.LITERAL) or n
  for name in ("ikvw"):gmatch "." do set[name] = p:unused(name) end
  return set
end

-- The text of a form with what fills it.
local function filled_text(p, form, set)
  return (" " .. form):gsub("()%$(%a)()", function(from, name, to)
    local part = (form:sub(to - 1, to - 1) .. " "):find "[:%[(]"
    local operand = form:find("^ [%^/%%-]", to - 1) or
                    form:sub(from - 2, from - 2) == "#"
    local n = set[name]
    if type(n) ~= "table" then return n end
    return (part or operand and n.rank < p.LITERAL or
            n.rank < 9 and not form:find("^[,)]", to - 1)) and
           p.enclosed(n) or n.text
  end):sub(2)
end

local wants = {t = "t", n = "n", f = "found", b = "value", s = "s"}

-- The node of a form with what fills it; a statement is no part of another.
local function filled(p, name, form, set)
  if not set then return nil end
  local letter = form:match "^%$([tnfbs]) = "
  if letter then
    return p:made(function(target)
      set[letter] = target
      if form:find "local %$n" then set.n = p:unused "n" end
      return filled_text(p, form, set)
    end, wants[letter], {gives = letter == "t" and "list" or
                         letter == "s" and "text" or nil,
                         texts = name == "split" or name == "splitlines"})
  end
  local text = filled_text(p, form, set)
  local statement = not load("return " .. text, "=", "t")
  local tight = text:find "^[%w_%.]+%b()$" or text:find "^[%w_%.]+%b[]$" or
                text:find "^[%w_%.]+:[%w_]+%b()$" or text:find "^%b()$"
  return p.node(text, not statement and tight and p.OPERAND or 0,
                {kind = statement and "append" or nil,
                 form = text:find " or " ~= nil,
                 gives = forms.gives_text[name] and "text" or
                         forms.gives_list[name] and "list" or nil})
end

local function is_text(p, n)
  local kind = p.kinds[n.path or ""]
  return n.kind == "string" or n.gives == "text" or kind == "text" or
         kind == nil and n.path ~= nil and type(p.value(n.path)) == "string"
end
python_methods.is_text = is_text

local function is_list(p, n)
  return n.kind == "list" or n.gives == "list" or
         p.kinds[n.path or ""] == "list" or
         n.path and plain(p.value(n.path))
end
python_methods.is_list = is_list

-- The characters of a text, the keys of a dictionary, as a list; others stay.
local function as_list(p, n)
  local v = n and n.path and p.value(n.path)
  return n and (is_text(p, n) or plain(v) and #v == 0 and next(v) ~= nil) and
         p:builtin("list", {{node = n}}) or n
end
local of_elements = lexer.set "sorted set max min Counter"

-- A text with `name' for the variable `param'.
local function renamed(text, param, name)
  local parts, at = {}, 1
  for _, t in ipairs(lexer.tokens(text)) do
    if t.kind == "name" and t.text == param then
      parts[#parts + 1] = text:sub(at, t.from - 1) .. name
      at = t.to + 1
    end
  end
  return table.concat(parts) .. text:sub(at)
end

-- The call f(name) of a function, or name without one.
local function applied(p, f, name)
  if not f then return name end
  if f.body and #f.params == 1 then
    return renamed(f.body, f.params[1], name)
  end
  local x = p.node(name, nil, {path = name})
  local of = f.path and f.path:match "^([%a_][%w_]*)%.get$"
  if of and plain(p.value(of)) then return ("%s[%s]"):format(of, name) end
  local method = f.path and f.path:match "^str%.(%l+)$"
  local made = method and filled(p, method, texts[method] and texts[method][0]
                                 or p.fail(), fills(p, x, {})) or
               f.path and p.value(f.path) == nil and
               p:builtin(f.path, {{node = x}})
  return made and made.text or ("%s(%s)"):format(p.enclosed(f), name)
end

-- x.sort(key=f, reverse=True), sorted(x, key=f), max(x, key=f): the node, or
-- nil. `name' is what is called, `options' its arguments behind x.
local function with_key(p, name, x, options)
  local key, down
  for _, item in ipairs(options) do
    if item.name == "key" then key = item.node
    elseif item.name == "reverse" then down = item.node.text == "true"
    else return nil end
  end
  p:settle(x)
  local a, b = p:unused "a", p:unused "b"
  local mark = (down or name == "max") and ">" or "<"
  if name == "max" or name == "min" then
    local v = p:unused "v"
    return p:made(function(target)
      return ("%s = %s[1]; for _, %s in ipairs(%s) do " ..
              "if %s %s %s then %s = %s end end"):format(target, p.enclosed(x),
                v, x.text, applied(p, key, v), mark, applied(p, key, target),
                target, v)
    end, "best")
  end
  local order = ("function(%s, %s) return %s %s %s end"):format(a, b,
    applied(p, key, a), mark, applied(p, key, b))
  if name == "sort" then
    return p.node(("table.sort(%s, %s)"):format(x.text, order), 0,
                  {kind = "append"})
  end
  return p:made(function(target)
    return ("%s = table.move(%s, 1, #%s, 1, {}); table.sort(%s, %s)"):format(
      target, x.text, p.enclosed(x), target, order)
  end, "t", {gives = "list"})
end

-- map(f, x), filter(f, x)
local function each(p, name, f, x)
  p:settle(x)
  local i, v = p:unused "i", p:unused "v"
  local call = f.text == "nil" and v or applied(p, f, v)
  return p:made(function(target)
    local body = name == "map" and ("%s[%s] = %s"):format(target, i, call) or
      ("if %s then %s[#%s + 1] = %s end"):format(call, target, target, v)
    return ("%s = {}; for %s, %s in ipairs(%s) do %s end"):format(target,
      name == "map" and i or "_", v, x.text, body)
  end, "t", {gives = "list"})
end

-- The call of a method `name' of a list or a text, or nil.
function python_methods.method(p, owner, name, list)
  local v = owner.path and p.value(owner.path)
  local text = is_text(p, owner) or
               v == nil and not owner.tensor and forms.of_text_alone[name]
  if not text and not is_list(p, owner) or
     plain(v) and v[name] ~= nil then return nil end
  if not text and name == "sort" and list[1] then
    return with_key(p, name, owner, list)
  elseif not text and name == "pop" and list[1] and
         list[1].node.kind == "string" then
    return filled(p, name, forms.pop_key, fills(p, owner, list))
  end
  if name == "format" then return nil end
  local rows = (text and texts or lists)[name]
  local form = rows and rows[#list]
  return form and filled(p, name, form, fills(p, owner, list))
end

-- Is a path of Python's libraries one that `call' knows?
function python_methods.is_known(path) return libraries[path] ~= nil end

local of_numbers = lexer.set "sum max min sorted"

local new_value = "setmetatable({}, {__index = function(t, k) t[k] = %s; " ..
                  "return t[k] end})"
local default_of = {int = new_value:format "0", float = new_value:format "0.0",
                    list = new_value:format "{}", dict = new_value:format "{}",
                    str = new_value:format '""'}

-- Of a function that is none of Lua's, sum(list), math.factorial(5), or nil.
function python_methods.call(p, path, list)
  local first = list[1] and list[1].node
  if of_elements[path] and (path ~= "max" and path ~= "min" or not list[2] or
                            list[2].name) then
    first = as_list(p, first)
  end
  if (path == "map" or path == "filter") and #list == 2 then
    return each(p, path, first, list[2].node)
  elseif (path == "sorted" or path == "max" or path == "min") and list[2] and
         list[2].name and not first.tensor then
    return with_key(p, path, first, {table.unpack(list, 2)})
  end
  if path:find "defaultdict$" and #list == 1 then
    local default = default_of[first.text]
    return default and filled(p, path, default, {}) or p.fail()
  end
  local rows = functions[path] or libraries[path]
  local form = rows and rows[#list]
  if not form or first and (first.tensor and path ~= "id" or list[1].name or
     first.loops and (path == "sum" or path == "any" or path == "all")) then
    return nil
  end
  local v = first and first.path and p.value(first.path)
  if of_numbers[path] and first and not is_list(p, first) and
     not (path == "sorted" and v == nil) then
    return path ~= "sorted" and v == nil and
           p.node(("nacre.tensor(%s):%s():item()"):format(first.text, path))
  end
  if path == "round" and list[2].node.kind ~= "number" then return nil end
  return filled(p, path, form, fills(p, first, {table.unpack(list, 2)}))
end

-- A bound of a slice: a number from 0 is one more, below 0 it is from the end.
local function bound(n, of, more)
  local k = n.kind == "number" and math.tointeger(tonumber(n.text))
  if not k then return n.text .. (more > 0 and " + " .. more or "") end
  if k < 0 and of then
    k = k + more
    return "#" .. of .. (k == 0 and "" or " - " .. -k)
  end
  return tostring(k < 0 and k - 1 + more or k + more)
end

-- numbers[-1], and [1, 2][0] of a list that is written there
local function element(p, x, n)
  local k = n and n.kind == "number" and math.tointeger(tonumber(n.text))
  if not k or k >= 0 and x.kind ~= "list" and not x.texts then return nil end
  p.found.python, p.found.counted = true, true
  local of = p.enclosed(x)
  return p.node(("%s[%s]"):format(of, k < 0 and bound(n, of, 1) or k + 1), nil,
                {gives = x.texts and "text" or nil})
end

-- x[a:b:step] of a list or a text.
local function stepped(p, of, text, first, last, step)
  local back, i = step:find "^-", p:unused "i"
  if text and step == "-1" and not first and not last then
    return p.node(of .. ":reverse()", nil, {gives = "text"})
  end
  local low = first and bound(first, of, 1) or back and "#" .. of or "1"
  local high = last and bound(last, of, back and 2 or 0) or
               back and "1" or "#" .. of
  local loop = ("for %s = %s, %s, %s do"):format(i, low, high, step)
  return p:made(function(target)
    if text then
      return ('%s = ""; %s %s = %s .. %s:sub(%s, %s) end'):format(target, loop,
        target, target, of, i, i)
    end
    return ("%s = {}; %s %s[#%s + 1] = %s[%s] end"):format(target, loop,
      target, target, of, i)
  end, text and "s" or "t", {gives = text and "text" or "list"})
end

-- numbers[1:3], numbers[-1], "hello"[0], "hello"[::-1] as a node; nil if x is
-- no list or text.
function python_methods.slice(p, x, part)
  local text, first, last = is_text(p, x), part[1], part[2]
  if not text and is_list(p, x) and not part.slice then
    return element(p, x, first)
  end
  if not text and not (is_list(p, x) and part.slice) then return nil end
  local of = p.enclosed(x)
  local step = part[3] and part[3].text
  p.found.python, p.found.counted = true, true
  if first and first.text == "0" then p.found.zero = true end
  if step then
    return stepped(p, of, text, first, last, step)
  elseif text then
    local use = first and first.path and p.loops[first.path]
    if use and use ~= "value" then       -- the variable counts from 1 already
      if part.slice then p.fail() end
      return p.node(("%s:sub(%s, %s)"):format(of, first.text, first.text), nil,
                    {gives = "text"})
    end
    local from = first and bound(first, nil, 1) or "1"
    local to = part.slice and (last and bound(last, nil, 0) or "-1") or from
    return p.node(("%s:sub(%s, %s)"):format(of, from, to), nil,
                  {gives = "text"})
  end
  return p.node(("table.move(%s, %s, %s, 1, {})"):format(of,
    first and bound(first, of, 1) or "1", last and bound(last, of, 0) or
    "#" .. of), nil, {gives = "list"})
end

-- x in y of a text, a list or a dictionary.
function python_methods.contains(p, x, y, no)
  p.found.python = true
  if is_text(p, y) then
    return p.node(("%s:find(%s, 1, true) %s= nil"):format(p.enclosed(y), x.text,
                  no and "=" or "~"), 3)
  end
  local v = y.path and p.value(y.path)
  p:settle(y)
  if v and not plain(v) or y.text == "" then return nil end
  if y.kind == "tuple" or is_list(p, y) and not (v and #v == 0) then
    local form = no and "$f = true; for _, $v in ipairs($y) do $f = " ..
                 "$f and $v ~= $x end" or
                 "$f = false; for _, $v in ipairs($y) do $f = " ..
                 "$f or $v == $x end"
    return filled(p, "in", form, fills(p, x, {{node = y}}))
  end
  return p.node(("%s[%s] %s= nil"):format(p.enclosed(y), x.text,
                                          no and "=" or "~"), 3)
end

-- [0] * 3, "ab" * 3, list + [6]; nil if they are no lists or texts.
function python_methods.operator(p, op, a, b)
  if op == "*" and is_text(p, a) then
    return p.node(("%s:rep(%s)"):format(p.enclosed(a), b.text), nil,
                  {gives = "text"})
  elseif op == "*" and a.kind == "list" and a.items[1] and not a.items[2] and
         a.items[1].kind == "number" then
    return p.node(("nacre.tensor%s:expand(%s):tolist()"):format(a.text, b.text),
                  nil, {gives = "list"})
  elseif op == "*" and is_list(p, a) then
    return filled(p, "*", "$t = {}; for _ = 1, $y do " ..
                  "table.move($x, 1, #$x, #$t + 1, $t) end",
                  fills(p, a, {{node = b}}))
  elseif op == "+" and is_list(p, a) and is_list(p, b) then
    local x, y = p.enclosed(a), p.enclosed(b)
    return p.node(("table.move(%s, 1, #%s, #%s + 1, table.move(%s, 1, #%s, " ..
                   "1, {}))"):format(b.text, y, x, a.text, x), nil,
                  {gives = "list"})
  end
end

-- Does a line fail for what means something in Python alone: 1 < n < 3,
-- string.digits + "."?
function python_methods.fails(o, line)
  if o.message:find "^attempt to compare boolean with" or
     line:find "%[0%]" and o.message:find " counted from 1" or
     line:find "%[0%]%s*[[.:]" and o.message:find "indices start at 1" or
     o.message:find "^attempt to index a nacre.grad_fn value" or
     o.message:find "%(field '[%a ?]*'%)$" and line:find "%[%-%d" or
     o.message:find "%(field 'integer index'%)$" and line:find "%[0%]" then
    return true
  end
  local missing = o.message:match "^attempt to call a nil value %(%l+ '(.*)'%)$"
  if missing and texts[missing] or
     o.message:find "^attempt to perform arithmetic on a table value" or
     o.message:find "self is missing" and line:find "%.tolist%(%)%." then
    return true
  end
  for path in line:gmatch "[%a_][%w_]*%.[%a_][%w_]*" do
    if names.constants[path] then return true end
  end
end

-- len(d) of a dictionary, or nil
function python_methods.count_keys(p, x)
  local v = x.path and p.value(x.path)
  if not plain(v) or #v > 0 or next(v) == nil then return nil end
  return filled(p, "len", "$n = 0; for _ in pairs($x) do $n = $n + 1 end",
                fills(p, x, {}))
end

-- The text of a list of which == compares the elements.
local function joined(n)
  local inside = n.kind ~= "made" and n.items and
                 n.text:match "^{([%d, ]*)}$"
  return inside and ('"%s"'):format((inside:gsub(" ", ""))) or
         ('table.concat(%s, ",")'):format(n.text)
end

-- nums == [1, 2]; nil if these are no lists, of which one is written there. A
-- shape can be compared as it is.
function python_methods.equal(p, op, a, b)
  if not a.items and not b.items or not is_list(p, a) or
     not is_list(p, b) then return nil end
  return p.node(("%s %s %s"):format(joined(a), op, joined(b)), 3)
end

-- nums += [4, 5]; nil if they are no lists.
function python_methods.extended(p, x, y)
  if not is_list(p, y) or not is_list(p, x) then return nil end
  return ("table.move(%s, 1, #%s, #%s + 1, %s)"):format(
    y.text, p.enclosed(y), x.text, x.text)
end

-- May an error that says one of these names come from a line of Python?
python_methods.names = {}
for _, set in ipairs {lists, texts, functions} do
  for name in pairs(set) do python_methods.names[name] = true end
end
for path in pairs(libraries) do
  for name in path:gmatch "[%w_]+" do python_methods.names[name] = true end
end
for _, name in ipairs {"environ", "pop", "map", "filter", "items", "keys",
                       "values", "path"} do
  python_methods.names[name] = true
end

-- print of a list alone: the line shows it; nil of other values.
function python_methods.shown(p, list)
  local n = list[1] and not list[2] and not list[1].name and
            not list[1].star and list[1].node
  return n and p.tokens[1].text == "print" and not p:token() and
         is_list(p, n) and n or nil
end

-- print("a", end=""): what is written without a new line.
function python_methods.print(p, list)
  local parts, last, between = {}, nil, '"\\t"'
  for _, item in ipairs(list) do
    if item.name == "sep" then between = item.node.text end
  end
  for _, item in ipairs(list) do
    if item.name == "end" then last = item.node.text
    elseif item.name == "sep" then goto continue
    elseif item.star and between:find "^[\"']" then
      parts[#parts + 1] = ("table.concat(%s, %s)"):format(
        p:settle(item.node).text, between)
    elseif item.name or item.star then return nil
    else
      local n = p:settle(item.node)
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
