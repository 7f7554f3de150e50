-- SPDX-License-Identifier: MIT
--
-- python.lua - Python's imports, loops and blocks in one line: what to write
-- here.

local lexer = require "nacre.lexer"
local names = require "nacre.names"

local python = {}

-- torch.nn.functional as F; torch import nn, optim: what is there already
function python.import(rest)
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

-- How a module is loaded, if there is one of that name.
function python.module(name)
  if package.preload[name] or package.searchpath(name, package.path) or
     package.searchpath(name, package.cpath) then
    return ('require "%s"'):format(name)
  end
  return 'there is no module of that name; require "x" loads x.lua'
end

-- The colon of Python that ends the head of a line, outside brackets and not
-- before a method's name and its arguments; what is before and behind it.
local function headed(line)
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

-- if f(): x = 1; else: x = 2; while x: f()
function python.oneline(line)
  local head, body = headed(line)
  if not head or line:find "%f[%w_]then%f[^%w_]" or
     line:find "%f[%w_]do%f[^%w_]" then
    return nil
  end
  local function lua(text)
    text = text:match "^%s*(.-)%s*;?%s*$"
    return (text:gsub("%f[%w_]%a+%f[^%w_]", names.constants)
                :gsub("!=", "~="))
  end
  local word, condition = head:match "^%s*(%l+)%s*(.-)%s*$"
  if word == "else" and condition == "" then
    return ("if ... then ... else %s end"):format(lua(body))
  end
  local word2 = word == "elif" and "if" or word
  if word2 ~= "if" and word2 ~= "while" or condition == "" then return nil end
  local first, second = body:match "^(.-)%f[%w_]else%s*:(.*)$"
  if first and word2 == "if" then
    return ("if %s then %s else %s end"):format(lua(condition), lua(first),
                                                lua(second))
  end
  return ("%s %s %s %s end"):format(word2, lua(condition),
    word2 == "if" and "then" or "do", lua(body))
end

-- What a loop in one line does, or "...".
local function bodyof(text)
  local body = text:match "%f[%w_]do%f[^%w_]%s*(.-)%s*%f[%w_]end%f[^%w_]" or
               text:match "^[^\n]*%):%s*([^\n]+)$" or
               text:match "^%s*for%s[^\n:]*:%s+([^\n]+)$"
  return body and body:find "%S" and body or "..."
end

-- A loop over what Python loops over.
function python.loop(text)
  local body = bodyof(text)
  local i, range = text:match "for%s+([%a_][%w_]*)%s+in%s+range%s*(%b())"
  local from, to = (range or ""):match "^%(%s*([^,]-)%s*,%s*([^,]-)%s*%)$"
  if from then
    local last = math.tointeger(tonumber(to))
    last = last and last - 1 or to .. " - 1"
    return ("for %s = %s, %s do %s end"):format(i, from, last, body)
  end
  local n = range and range:match "^%(%s*([^,]-)%s*%)$"
  if n then return ("for %s = 1, %s do %s end"):format(i, n, body) end
  local v, list = text:match "for%s+([%a_][%w_,%s]-)%s+in%s+([^:]-)%s*:"
  if not v then return "for i = 1, n do ... end" end
  list = list:match "^enumerate%s*%(%s*(.-)%s*%)$" or list
  return ("for %s in pairs(%s) do %s end"):format(
    v:find "," and v or "_, " .. v, list, body)
end

return python
