-- SPDX-License-Identifier: MIT
--
-- python_statements.lua - translates Python's imports, loops and one-line
-- blocks to Lua.

local lexer = require "nacre.lexer"
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

-- Translates a condition or a statement of Python.
local function to_lua(text)
  text = text:match "^%s*(.-)%s*;?%s*$"
  text = text:gsub("%f[%w_]is%s+not%f[^%w_]", "~=")
             :gsub("%f[%w_]is%f[^%w_]", "==")
             :gsub("^([%a_][%w_.]*)%s*([-+*/])=%s*(.*)$", "%1 = %1 %2 %3")
             :gsub("^pass$", "")
  text = text:gsub("%f[%w_]%a+%f[^%w_]", unknown_names.constants)
  return (text:gsub("!=", "~="))
end

local function oneline(line)
  local head, body = split_head(line)
  if not head or line:find "%f[%w_]then%f[^%w_]" or
     line:find "%f[%w_]do%f[^%w_]" then
    return nil
  end
  local word, condition = head:match "^%s*(%l+)%s*(.-)%s*$"
  if word == "else" and condition == "" then
    return ("if ... then ... else %s end"):format(to_lua(body))
  end
  local word2 = word == "elif" and "if" or word
  if word2 ~= "if" and word2 ~= "while" or condition == "" then return nil end
  local first, second = body:match "^(.-)%f[%w_]else%s*:(.*)$"
  if first and word2 == "if" then
    return ("if %s then %s else %s end"):format(to_lua(condition),
                                                to_lua(first),
                                                to_lua(second))
  end
  return ("%s %s %s %s end"):format(word2, to_lua(condition),
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

local function loop(text)
  local body = body_of(text)
  local i, range = text:match "for%s+([%a_][%w_]*)%s+in%s+range%s*(%b())"
  local from, to = (range or ""):match "^%(%s*([^,]-)%s*,%s*([^,]-)%s*%)$"
  if from then
    local last = math.tointeger(tonumber(to))
    last = last and last - 1 or to .. " - 1"
    return ("for %s = %s, %s do %s end"):format(i, from, last, body)
  end
  local first, stop, step = (range or ""):match
    "^%(%s*([^,]-)%s*,%s*(%d+)%s*,%s*(%d+)%s*%)$"
  if first then
    return ("for %s = %s, %d, %s do %s end"):format(i, first, stop - 1, step,
                                                    body)
  end
  local n = range and range:match "^%(%s*([^,]-)%s*%)$"
  if n then
    n = n:gsub("^len%s*%((.*)%)$", "#%1")
    local note = body:find("%f[%w_]" .. i .. "%f[^%w_]") and
                 ", counted from 1" or ""
    return ("for %s = 1, %s do %s end%s"):format(i, n, body, note)
  end
  local v, list = text:match "for%s+([%a_][%w_,%s]-)%s+in%s+([^:]-)%s*:"
  if not v then return "for i = 1, n do ... end" end
  local a, b, x, y = (v .. " in " .. list):match
    "^([%w_]+)%s*,%s*([%w_]+) in zip%s*%(%s*([%w_.]+)%s*,%s*([%w_.]+)%s*%)$"
  if a then
    return ("for i = 1, #%s do local %s, %s = %s[i], %s[i] %s end"):format(
             x, a, b, x, y, body)
  end
  list = list:match "^enumerate%s*%(%s*(.-)%s*%)$" or
         list:match "^(.-)%.items%(%)$" or list
  return ("for %s in pairs(%s) do %s end"):format(
    v:find "," and v or "_, " .. v, list, body)
end

-- Translates a Python loop.
function python_statements.loop(text) return tidy(loop(text)) end

return python_statements
