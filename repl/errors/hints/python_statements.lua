-- SPDX-License-Identifier: MIT
--
-- python_statements.lua - translates Python's imports, loops, comprehensions
-- and one-line blocks to Lua.

local expressions = require "nacre.expression_at"
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local value_of = require "nacre.stack_frames".value_of
local unknown_names = require "nacre.unknown_names"

local python_statements = {}

-- torch.nn.functional as F; torch import nn, optim: what is there already
function python_statements.import(rest)
  local path, tail = rest:match "^([%w_%.]+)%s*(.*)$"
  local top = path and path:match "^[%w_]+"
  if top ~= "torch" and top ~= "nacre" then return nil end
  local place = "nacre" .. path:sub(#top + 1)
  local function there(name)            -- parts are made when asked for
    return pcall(function()
      local v = package.loaded.nacre
      for word in name:gmatch "%.([%w_]+)" do v = assert(v[word]) end
    end)
  end
  local alias = tail:match "^as%s+([%a_][%w_]*)"
  if alias then
    return there(place) and ("%s = %s"):format(alias, place) or nil
  end
  local sets = {}
  for name in (tail:match "^import%s+(.*)$" or ""):gmatch "[%a_][%w_]*" do
    if there(place .. "." .. name) then
      sets[#sets + 1] = ("%s = %s.%s"):format(name, place, name)
    end
  end
  return sets[1] and table.concat(sets, "; ")
end

-- The Lua statement that loads a module, if there is one of that name.
function python_statements.module(name)
  if package.preload[name] or package.searchpath(name, package.path) or
     package.searchpath(name, package.cpath) then
    return ('require "%s"'):format(name)
  end
  return 'no module has that name; require "x" loads x.lua'
end

-- Splits a line at the colon that ends a Python head: outside brackets, and
-- not before a method's name and arguments.
local function split_head(line)
  local depth, list = 0, lexer.tokens(line)
  for i, t in ipairs(list) do
    if t.text:find "^[({[]$" then depth = depth + 1 end
    if t.text:find "^[)}%]]$" then depth = depth - 1 end
    local after = list[i + 1]
    if t.text == ":" and depth == 0 and after and after.from > t.to + 1 then
      return line:sub(1, t.from - 1), line:sub(t.to + 1)
    end
  end
end

-- Translates what is written otherwise in an expression: len(x), methods with
-- dots, (a == b).all().
function python_statements.expression(text)
  text = text:gsub("%f[%w_.]len%s*(%b())", function(args)
    return "#" .. expressions.enclosed(args:sub(2, -2))
  end)
  text = text:gsub("(%b())(%s*[.:])", function(inner, mark)
    local a, op, b = inner:match "^%(%s*(.-)%s*([=~]=)%s*(.-)%s*%)$"
    return a and ("%s:%s(%s)%s"):format(expressions.enclosed(a),
      op == "==" and "eq" or "ne", b, mark) or nil
  end)
  return expressions.methods(text, value_of)
end

-- Translates a condition or a statement of Python.
local function to_lua(text)
  text = text:match "^%s*(.-)%s*;?%s*$"
  text = text:gsub("%f[%w_]is%s+not%f[^%w_]", "~=")
             :gsub("%f[%w_]is%f[^%w_]", "==")
             :gsub("%[[\"']([%a_][%w_]*)[\"']%]", ".%1")
             :gsub("^([%a_][%w_.]*)%s*([-+*/])=%s*(.*)$", "%1 = %1 %2 %3")
             :gsub("^pass$", "")
  text = text:gsub("%f[%w_]%a+%f[^%w_]", unknown_names.constants)
  text = text:gsub("!=", "~=")
             :gsub("%f[%w_]isinstance%s*%(([^(),]+),%s*[%w_.]-([%w_]+)%)",
                   '%1.__name == "%2"')
  return python_statements.expression(text)
end

-- A condition. Each tensor is true in Lua, so all() and any() need item().
local function condition_of(text)
  text = to_lua(text):gsub(":all%(%)$", "%0:item()")
  return (text:gsub(":any%(%)$", "%0:item()"))
end

local function oneline(line)
  local head, body = split_head(line)
  if not head or line:find "%f[%w_]then%f[^%w_]" or
     line:find "%f[%w_]do%f[^%w_]" then
    return nil
  end
  local word, condition = head:match "^%s*(%l+)%s*(.-)%s*$"
  if word == "for" and condition:find "%sin%s" then
    return python_statements.loop(line)
  end
  if word == "else" and condition == "" then
    return ("if ... then ... else %s end"):format(to_lua(body))
  end
  local word2 = word == "elif" and "if" or word
  if word2 ~= "if" and word2 ~= "while" or condition == "" then return nil end
  local first, second = body:match "^(.-)%f[%w_]else%s*:(.*)$"
  if first and word2 == "if" then
    return ("if %s then %s else %s end"):format(condition_of(condition),
                                                to_lua(first),
                                                to_lua(second))
  end
  return ("%s %s %s %s end"):format(word2, condition_of(condition),
    word2 == "if" and "then" or "do", to_lua(body))
end

-- Removes the blank of an empty body.
local function tidy(text)
  return text and (text:gsub("(%f[%w_]%l+ ) end", "%1end"))
end

-- if f(): x = 1; else: x = 2; while x: f()
function python_statements.oneline(line) return tidy(oneline(line)) end

-- The body of a one-line loop, or "...".
local function body_of(text)
  local body = text:match "%f[%w_]do%f[^%w_]%s*(.-)%s*%f[%w_]end%f[^%w_]" or
               text:match "^[^\n]*%):%s*([^\n]+)$" or
               text:match "^%s*for%s[^\n:]*:%s+([^\n]+)$"
  return body and body:find "%S" and to_lua(body) or "..."
end

-- What Python iterates over as Lua's `for' takes it, by the value if it is
-- known, else by its form.
local function iterated(list, names)
  local literal = list:match "^%[(.*)%]$" or list:match "^%((.*,.*)%)$"
  if literal then return "_, " .. names, ("ipairs{%s}"):format(literal) end
  list = python_statements.expression(list)
  local v = list:find "^[%w_.%[%]]+$" and value_of(list)
  local meta = debug.getmetatable(v or nil)
  local batches = v and type(meta) == "table" and rawget(meta, "__pairs") and
                  lookup.is_method(v, "__call") or not v and
                  list:find "[lL]oader$"
  if batches or list:find ":[%l_]*parameters%(%)$" or
     list:find ":[%l_]*children%(%)$" or list:find ":[%l_]*modules%(%)$" or
     list:find ":[%l_]*buffers%(%)$" then
    return names, list, batches
  end
  if list:find "%.param_groups$" then
    return "_, " .. names, ("ipairs(%s)"):format(list)
  end
  return names:find "," and names or "_, " .. names,
         ("pairs(%s)"):format(list)
end

-- for i = 1, 3 of range(3); nil if it is no such loop
local function counted(i, range, body)
  local list = expressions.items(range)
  for k, item in ipairs(list) do
    list[k] = python_statements.expression(item:match "^%s*(.-)%s*$")
  end
  local from, to, step = list[1], list[2], list[3]
  if step and not step:find "^%d+$" or #list > 3 then return nil end
  if from and to then
    local last = math.tointeger(tonumber(to))
    last = last and last - 1 or to:match "^(.-)%s*%+%s*1$" or to .. " - 1"
    return ("for %s = %s, %s%s do %s end"):format(i, from, last,
      step and ", " .. step or "", body)
  end
  local n = from
  local note = body:find("%f[%w_]" .. i .. "%f[^%w_]") and
               ", counted from 1" or ""
  return ("for %s = 1, %s do %s end%s"):format(i, n, body, note)
end

-- for a, b in zip(x, y)
local function side_by_side(names, list, body)
  local a, b = names:match "^([%w_]+)%s*,%s*([%w_]+)$"
  local x, y = list:match "^zip%s*%(%s*([%w_.]+)%s*,%s*([%w_.]+)%s*%)$"
  return a and x and
         ("for i = 1, #%s do local %s, %s = %s[i], %s[i] %s end"):format(
           x, a, b, x, y, body)
end

-- What tqdm(list) shows the progress of.
local function without_progress(list)
  local args = list:match "^tqdm%s*%((.*)%)$" or
               list:match "^tqdm%.tqdm%s*%((.*)%)$"
  return args and expressions.items(args)[1] or list
end

-- The names and the list of a loop over enumerate(list), whose first name is
-- the number. Of a loader all that a batch has is given, not a list of it.
local function enumerated(names, list, body)
  list = without_progress(list)
  local _, over, batches = iterated(list, names)
  local first, rest = names:match "^([%a_][%w_]*)%s*,%s*([%a_][%w_]*)$"
  if batches and first and body == "..." then
    names = ("%s, x, y"):format(first)
  elseif not rest and not names:find "," then names = "i, " .. names end
  over = expressions.methods(list, value_of)
  local lists = over:find "%)$" and not batches
  return names, (lists and "ipairs(%s)" or "pairs(%s)"):format(over)
end

-- The names and the iterable of a head, "x, y in loader"; nil if it has none.
local function head_of(text)
  local head = split_head(text) or text:match "^(.-)%s*:%s*$" or
               text:match "^(.-)%s+do%f[^%w_]"
  return (head or ""):match
    "%f[%w_]for%s+([%a_][%w_,%s]-)%s+in%s+(.-)%s*$"
end

local function loop(text)
  local body = body_of(text)
  local names, list = head_of(text)
  if not names then return "for i = 1, n do ... end" end
  local shown = without_progress(list)
  local steps = list:match "^trange%s*%((.*)%)$" or
                shown ~= list and shown:match "^range%s*(%b())$"
  if steps and not steps:find ",[^)]*,?" then
    return ("for %s in nacre.progress(%s) do %s end"):format(names,
      steps:match "^%((.*)%)$" or steps, body)
  end
  list = shown
  local down = list:match "^reversed%s*%(%s*range%s*%(([^,]-)%)%s*%)$"
  if down then
    return ("for %s = %s, 1, -1 do %s end"):format(names, down, body)
  end
  local range = list:match "^range%s*%((.*)%)$"
  if range then
    local text = counted(names, range, body)
    if text then return text end
  end
  local both = side_by_side(names, list, body)
  if both then return both end
  local inner = list:match "^enumerate%s*%((.*)%)$"
  if inner then
    names, list = enumerated(names, expressions.items(inner)[1], body)
  else
    local bare, what = list:match "^(.-)%.(%l+)%(%)$"
    bare = bare and python_statements.expression(bare)
    if what == "items" then list = ("pairs(%s)"):format(bare)
    elseif what == "keys" then list = ("pairs(%s)"):format(bare)
    elseif what == "values" then
      names, list = "_, " .. names, ("pairs(%s)"):format(bare)
    else names, list = iterated(list, names) end
  end
  return ("for %s in %s do %s end"):format(names, list, body)
end

-- The list of a comprehension as Lua's `for' takes it: names, iterable.
local function numbered(v, list)
  local i = v == "i" and "k" or "i"
  local names, over, batches = iterated(list, v)
  if over:find "^%a*pairs%(" then return ("%s, %s"):format(i, v), over, i end
  return ("%s, %s"):format(i, v),
         (batches and "pairs(%s)" or "ipairs(%s)"):format(over), i
end

-- [f(x) for x in list], and sum(f(x) for x in list), where `before' is the text
-- before it.
function python_statements.comprehension(before, text)
  local each, v, list = text:match
    "^%[?%s*(.-)%s+for%s+([%a_][%w_]*)%s+in%s+(.-)%s*%]"
  if not each then
    each, v, list = text:match
      "^(.-)%s+for%s+([%a_][%w_]*)%s+in%s+(.-)%s*%)%s*$"
  end
  if not each or list:find "%sif%s" then return nil end
  each = python_statements.expression(each)
  local adds = before:find "%f[%w_.]sum%(%s*$"
  local from, to = list:match "^([%w_%.]+):([%w_%.]+)$" -- Julia's 1:3
  local n = list:match "^range%(%s*([^,]-)%s*%)$"
  local names, over, i
  if n or from then
    names, over, i = v .. " =", ("%s, %s"):format(from or "1", n or to), v
  else
    names, over, i = numbered(v, list)
    names = (adds and names:gsub("^[^,]*", "_", 1) or names) .. " in"
  end
  if adds then
    return ("n = 0; for %s %s do n = n + %s end"):format(names, over, each)
  end
  return ("t = {}; for %s %s do t[%s] = %s end"):format(names, over, i, each)
end

-- Translates a Python loop.
function python_statements.loop(text) return tidy(loop(text)) end

return python_statements
