-- SPDX-License-Identifier: MIT
--
-- foreign_loops.lua - what loops and comprehensions of Python go through, as
-- the head of a loop of Lua: range(3), enumerate(loader), zip(a, b), d.items().

local istensor = require "nacre.tensor_facts".istensor
local lexer = require "nacre.lexer"
local lookup = require "nacre.lookup"
local python_methods = require "nacre.python_methods"

local foreign_loops = {}

local functions

-- The first argument of a call.
local function first_of(p, n)
  return n.list[1] and n.list[1].node or p.fail()
end

-- The text of a number and another, as short as it can be.
local function plus(text, n)
  local base, sign, k = text:match "^(.-)%s*([+-])%s*(%d+)$"
  if tonumber(text) then return tostring(math.tointeger(text) + n) end
  if not base or base == "" or base:find "[%%*/]" then base, k = text, 0
  else k = sign == "-" and -k or k end
  n = math.tointeger(k + n)
  return n == 0 and base or
         ("%s %s %d"):format(base, n > 0 and "+" or "-", math.abs(n))
end

-- The head of a numeric loop over range(...), to the last element; nil if the
-- step is none that is known.
local function counted(p, names, list)
  local from, to, step = list[1], list[2], list[3]
  if not from then p.fail() end
  from, to, step = from.node.text, to and to.node.text, step and step.node.text
  local use = p.loops[names[1]]
  if not to and use ~= "value" then
    return {names = names, text = ("%s = 1, %s"):format(names[1], from),
            shifted = true}
  elseif not to then from, to = "0", from end
  local down = step and step:match "^%-(%d+)$"
  if step and not down and not step:find "^%d+$" then p.fail() end
  local more = use == "index" and 1 or 0
  return {names = names, shifted = more == 1,
          text = ("%s = %s, %s%s"):format(names[1], plus(from, more),
                                          plus(to, more + (down and 1 or -1)),
          step and step ~= "1" and ", " .. step or "")}
end

local function in_loop(names, iterator)
  return {names = names,
          text = ("%s in %s"):format(table.concat(names, ", "), iterator)}
end

-- Is this an iterator or a loader, which a loop of Lua takes as it is?
local function is_iterator(p, n)
  local v = n.path and p.value(n.path)
  local meta = debug.getmetatable(v or nil)
  if v then
    return type(meta) == "table" and rawget(meta, "__pairs") and
           lookup.is_method(v, "__call"), true
  end
  if n.text:find "[lL]oader$" then return true, true end
  return n.text:find ":[%l_]*parameters%(%)$" or
         n.text:find ":[%l_]*children%(%)$" or
         n.text:find ":[%l_]*modules%(%)$" or n.text:find ":[%l_]*buffers%(%)$"
end

-- The head of the loop over the characters of a text.
local function over_text(p, names, n)
  p.found.kinds[names[1]] = "text"
  return in_loop(names, ('%s:gmatch "."'):format(p.enclosed(n)))
end

-- The head of the loop over what a value has.
local function over_value(p, names, n)
  p:settle(n)
  if n.text == "" then p.fail() end
  local file = n.text:match "^io%.open(%b())$"
  if file then return in_loop(names, "io.lines" .. file) end
  local iterator, loader = is_iterator(p, n)
  if iterator then
    local head = in_loop(names, n.text)
    head.loader = loader and not names[2]
    return head
  end
  if python_methods.is_text(p, n) and not names[2] then
    return over_text(p, names, n)
  end
  local v = n.path and p.value(n.path)
  if not names[2] and (n.texts or type(v) == "table" and
                       type(rawget(v, 1)) == "string") then
    p.found.kinds[names[1]] = "text"
  end
  if not names[2] and n.kind ~= "list" and type(v) == "table" and
     #v == 0 and type(next(v)) == "string" then  -- a dictionary gives its keys
    return in_loop(names, ("pairs(%s)"):format(n.text))
  end
  if not names[2] then names = {"_", names[1]} end
  if n.kind == "list" or n.kind == "tuple" then
    return in_loop(names, "ipairs" .. n.text)
  end
  local lists = n.field == "param_groups"
  return in_loop(names, (lists and "ipairs(%s)" or "pairs(%s)"):format(n.text))
end

local function over_view(p, names, n)
  local of = p:settle(n.of)
  if of.text == "" then p.fail() end
  if n.view == "values" then names = {"_", names[1]} end
  return in_loop(names, ("pairs(%s)"):format(of.text))
end

-- The head of the loop in which `names' are what n gives, in turn:
-- {text = "i = 1, 3" or "_, v in pairs(x)", names =, before = what the body
-- begins with, shifted = does it begin with 1 where Python's does with 0?}.
function foreign_loops.head(p, names, n)
  n = n.over or n
  if n.kind == "range" then
    return {names = names, text = ("%s = %s, %s"):format(names[1], n.first.text,
                                                        n.last.text)}
  elseif n.kind == "view" then return over_view(p, names, n)
  elseif n.kind == "loop" then
    if not n.list[1] then p.fail() end
    return functions[n.callee](p, names, n.list)
  end
  return over_value(p, names, n)
end

-- list(zip(*rows)) as statements
local function transposed(rows, target)
  local form = "$t = {}; for i = 1, #$x[1] do $t[i] = {}; " ..
               "for j = 1, #$x do $t[i][j] = $x[j][i] end end"
  return (form:gsub("%$(%a)", {t = target, x = rows}))
end

-- zip(*rows): each name is of one row, or a name is of the columns in turn.
local function of_rows(p, names, rows, i)
  local items = {}
  for k = 1, #names do items[k] = ("%s[%d][%s]"):format(rows, k, i) end
  if not names[2] then
    local columns = p:settle(p:made(function(target)
      return transposed(rows, target)
    end))
    return in_loop({"_", names[1]}, ("ipairs(%s)"):format(columns.text))
  end
  return {names = names, text = ("%s = 1, #%s[1]"):format(i, rows),
          before = ("local %s = %s "):format(table.concat(names, ", "),
                                             table.concat(items, ", "))}
end

-- The length of the shortest of several lists.
local function shortest(p, list)
  local texts, length, same = {}, nil, true
  for k, item in ipairs(list) do
    local n = item.node
    local v = n.path and p.value(n.path)
    local its = n.items and #n.items or (type(v) == "table" or
                istensor(v) and v:dim() > 0) and #v or nil
    length = length or its
    same = same and its ~= nil and its == length
    texts[k] = "#" .. p.enclosed(n)
  end
  return same and texts[1] or
         ("math.min(%s)"):format(table.concat(texts, ", "))
end

-- zip(x, y), with the name of the number
local function side_by_side(p, names, list, i)
  local items = {}
  i = i or "i"
  for _, item in ipairs(list) do p:settle(item.node) end
  if list[1] and list[1].star and not list[2] then
    return of_rows(p, names, p.enclosed(list[1].node), i)
  end
  for k, item in ipairs(list) do
    items[k] = ("%s[%s]"):format(p.enclosed(item.node), i)
  end
  if #items ~= #names or not items[1] then p.fail() end
  return {names = names,
          text = ("%s = 1, %s"):format(i, shortest(p, list)),
          before = ("local %s = %s "):format(table.concat(names, ", "),
                                             table.concat(items, ", "))}
end

-- What a loop from 1 begins with where its body has the number from `first'.
local function numbered_from(p, name, first)
  if p.loops[name] ~= "value" or first == 1 then return "" end
  return ("local %s = %s %s %d "):format(name, name, first < 1 and "-" or "+",
                                        math.abs(first - 1))
end

-- enumerate(list), enumerate(tqdm(loader), 0)
local function enumerated(p, names, list)
  local n = list[1].node
  if n.kind == "loop" and n.callee:find "^tqdm" then n = first_of(p, n) end
  local first = list[2] and math.tointeger(tonumber(list[2].node.text)) or 0
  if list[2] and p.loops[names[1]] then p.loops[names[1]] = "value" end
  local numbered = names[2] and numbered_from(p, names[1], first) or ""
  if n.kind == "loop" and n.callee == "zip" then
    local head = side_by_side(p, table.move(names, 2, #names, 1, {}), n.list,
                              names[1])
    head.before = head.before .. numbered
    return head
  end
  p:settle(n)
  if n.text == "" then p.fail() end
  local iterator, loader = is_iterator(p, n)
  if not names[2] then names = {"i", names[1]} end
  if python_methods.is_text(p, n) then
    return {names = names, text = ("%s = 1, #%s"):format(names[1],
                                                       p.enclosed(n)),
            before = ("local %s = %s:sub(%s, %s) %s"):format(names[2],
              p.enclosed(n), names[1], names[1], numbered)}
  end
  local call = iterator and not loader or n.list
  local head = in_loop(names, (call and "ipairs(%s)" or "pairs(%s)")
                                :format(n.text))
  head.batches = iterator and loader and not names[3]
  head.loader = head.batches
  head.before = numbered
  return head
end

local function backwards(p, names, list)
  local n = list[1].node
  if n.kind == "loop" and n.callee == "range" and not n.list[2] then
    local value = p.loops[names[1]] == "value"
    local last = first_of(p, n).text
    return {names = names, shifted = not value,
            text = ("%s = %s, %d, -1"):format(names[1],
              plus(last, value and -1 or 0), value and 0 or 1)}
  end
  p:settle(n)
  if n.text == "" then p.fail() end
  if python_methods.is_text(p, n) then
    return {names = names, text = ('%s in %s:reverse():gmatch "."'):format(
              names[1], p.enclosed(n))}
  end
  return {names = names, text = ("i = #%s, 1, -1"):format(p.enclosed(n)),
          before = ("local %s = %s[i] "):format(names[1], p.enclosed(n))}
end

local function progress(p, names, steps)
  local head = in_loop(names, ("nacre.progress(%s)"):format(steps.text))
  head.before = numbered_from(p, names[1], 0)
  return head
end

local function with_progress(p, names, list)
  local n = list[1].node
  if n.kind == "loop" and n.callee == "range" and not n.list[2] then
    return progress(p, names, first_of(p, n))
  end
  return foreign_loops.head(p, names, n)
end

functions = {
  range = counted, enumerate = enumerated, zip = side_by_side,
  reversed = backwards, tqdm = with_progress, ["tqdm.tqdm"] = with_progress,
  trange = function(p, names, list)
    return progress(p, names, list[1].node)
  end}

-- Is one of the names in a text?
local function uses(text, names)
  if text:find("...", 1, true) then return true end
  local known = lexer.set(table.concat(names, " "))
  for _, word in ipairs(lexer.variables(text)) do
    if known[word] then return true end
  end
  return false
end

-- for data in loader, of which the body takes the parts, a, b = data: they are
-- in a list.
function foreign_loops.pack_batch(p, head)
  local name, t = head.names[#head.names], p:token()
  if not head.loader or not t then return end
  local rest = p.text:sub(t.from) .. ";"
  if not rest:find(",%s*[%w_]+%s*=%s*" .. name .. "%s*[;\n\2]") and
     not rest:find("%f[%w_.]" .. name .. "%[") then return end
  local x, y = p:fresh "x", p:fresh "y"
  p.kinds[name] = "list"
  head.text = head.text:gsub("%f[%w_]" .. name .. " in ",
                             ("%s, %s in "):format(x, y))
  head.before = ("%slocal %s = {%s, %s} "):format(head.before or "", name, x, y)
end

-- for ... do body end
function foreign_loops.loop(p, head, body)
  if head.batches and body == "..." then
    head.text = head.text:gsub(",.- in ", ", x, y in ")
  end
  if head.shifted and uses(body, head.names) then p.found.counted = true end
  return ("for %s do %s%s end"):format(head.text, head.before or "", body)
end

-- What the names are in a loop over a call that is alone on its line.
local usual = {enumerate = {"i", "v"}, zip = {"a", "b"}, range = {"i"},
               keys = {"k"}, values = {"v"}, items = {"k", "v"}}

-- range(3), enumerate(list): the loop that is meant
function foreign_loops.alone(p, n)
  local head = foreign_loops.head(p, usual[n.callee or n.view] or {"v"}, n)
  return foreign_loops.loop(p, head, "...")
end

-- What is done with each element, by the function around a comprehension: what
-- is there first, and the element added.
local folds = {sum = {"0", "%s + %s"}, any = {"false", "%s or %s"},
               all = {"true", "%s and %s"}}

-- The loop of a comprehension and of those in it.
local function nested(p, n, body)
  local head, first = p:apart(foreign_loops.head, n.names, n.list)
  body = n.inner_loop and nested(p, n.inner_loop, body) or body
  if n.condition then
    body = ("%sif %s then %s end"):format(n.condition_first, n.condition.text,
                                         body)
  end
  return n.list_first .. first .. foreign_loops.loop(p, head, body)
end

-- target = [f(x) for x in list] or, for a fold, sum(f(x) for x in list), as
-- statements
function foreign_loops.comprehension(p, n, target, fold)
  fold = folds[fold]
  local each = p.enclosed(n.each) and n.each.text
  local key = n.key and n.key.text or "#" .. target .. " + 1"
  local body = fold and ("%s = "):format(target) .. fold[2]:format(target, each)
               or ("%s[%s] = %s"):format(target, key, each)
  return ("%s = %s; %s"):format(target, fold and fold[1] or "{}",
                                nested(p, n, n.first .. body))
end

-- x, y = next(iter(loader)): a loop that ends at once
function foreign_loops.first_batch(p, targets, n)
  local names, texts = {}, {}
  for i, target in ipairs(targets) do
    names[i], texts[i] = p:fresh("v" .. i), target.text
  end
  local head = foreign_loops.head(p, names, n)
  return ("for %s do %s%s = %s; break end"):format(head.text, head.before or "",
    table.concat(texts, ", "), table.concat(names, ", "))
end

-- What a loop goes through as a list: zip(a, b), d.keys().
function foreign_loops.list_of(p, n, target)
  local names = usual[n.callee or n.view] or {"v"}
  local first = n.list and n.list[1]
  if not first and n.kind == "loop" then p.fail() end
  if n.callee == "range" then
    local texts = {}
    for i, item in ipairs(n.list) do texts[i] = item.node.text end
    return ("%s = nacre.arange(%s):tolist()"):format(target,
                                                   table.concat(texts, ", "))
  elseif n.callee == "zip" and first.star then
    return transposed(p.enclosed(first.node), target)
  elseif n.callee == "zip" then
    names = {}
    for k in ipairs(n.list) do names[k] = ("v%d"):format(k) end
  end
  local head = foreign_loops.head(p, names, n)
  local shown = n.view == "values" and {"v"} or names
  local each = shown[2] and "{" .. table.concat(shown, ", ") .. "}" or shown[1]
  return ("%s = {}; "):format(target) ..
    foreign_loops.loop(p, head, ("%s[#%s + 1] = %s"):format(target, target,
                                                           each))
end

return foreign_loops
