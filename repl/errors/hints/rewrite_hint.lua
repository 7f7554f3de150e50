-- SPDX-License-Identifier: MIT
--
-- rewrite_hint.lua - hints that end in "...", as the user's own line would say
-- them: zeros(..., {device="cuda"}) becomes nacre.zeros(8, {device="cuda"}).

local lexer = require "nacre.lexer"
local names = require "nacre.unknown_names"
local phrases = require "nacre.expression_at"

local nacre = package.loaded.nacre or _G.nacre

local respell = {}

local opens = {["("] = true, ["{"] = true, ["["] = true}
local closes = {[")"] = true, ["}"] = true, ["]"] = true}

-- The arguments of a call, "(a, {1, 2})", as a list of texts.
local function arguments(text)
  local list, from, depth = {}, 2, 0
  for _, t in ipairs(lexer.tokens(text)) do
    if closes[t.text] then depth = depth - 1 end
    if depth == 1 and t.text == "," or depth == 0 and t.text == ")" then
      local part = text:sub(from, t.from - 1):match "^%s*(.-)%s*$"
      if part ~= "" then list[#list + 1] = part end
      from = t.to + 1
    end
    if opens[t.text] then depth = depth + 1 end
  end
  return list
end

-- The one call of a name on a line: the owner and the mark behind it, "x" and
-- ":", the name as it stands there, the arguments.
local function callof(line, name)
  local found
  for at, word, args in line:gmatch("%f[%w_]()(" .. name .. "_?)%s*(%b())") do
    if found then return nil end
    local head, mark = line:sub(1, at - 1):match "^(.-)%s*([.:])%s*$"
    found = {owner = head and phrases.ending(head) or "", mark = mark or "",
             name = word, args = arguments(args)}
    if mark and found.owner == "" then return nil end
  end
  return found
end

-- add(..., {alpha=0.1}): what stood by position goes into the table.
local function byname(o, line)
  local op, options = o.hint:match "^([%w_.]+)%(%.%.%., (%b{})%)$"
  local call = op and callof(line, op:match "[%w_]+$")
  if not call then return nil end
  local list, _, given = call.args, options:gsub("=", "")
  local last = list[#list]
  if last and last:find "^{%s*[%a_][%w_]*%s*=" then
    options = options:sub(1, -2) .. ", " .. last:sub(2)
    list[#list] = nil
  end
  for _ = 1, given do list[#list] = nil end
  list[#list + 1] = options
  return ("%s%s%s(%s)"):format(call.owner, call.mark, call.name,
                               table.concat(list, ", "))
end

-- t:abs_(...) for nacre.abs_(x); "" where x is a constant, which has no such
-- method
local function asmethod(o, line)
  local name = o.hint:match "^t:([%w_]+)%(%.%.%.%)$" or
               o.hint:match "is a method: t:([%w_]+)%(%.%.%.%)$"
  local call = name and callof(line, name)
  if not call or call.mark ~= "." or not call.args[1] then return nil end
  if call.args[1]:find "^[%d\"'{]" then return "" end
  return ("%s:%s(%s)"):format(phrases.enclosed(call.args[1]), name,
                              table.concat(call.args, ", ", 2))
end

-- nacre.searchsorted(...) for x:searchsorted(y), nacre.cat{self, ...}
local function asfunction(o, line)
  local path, open = o.hint:match "^(nacre[%w_.]*)([({])[%w, ]*%.%.%.[)}]$"
  local call = path and callof(line, path:match "[%w_]+$")
  if not call or call.mark ~= ":" then return nil end
  local info = nacre._info(path:match "^nacre%.(.*)$")
  local kind = info and info.params and info.params[1] and
               info.params[1].type or "tensor"
  if not kind:find "^tensor" and kind ~= "operand" then
    local like = names.offers(call.name .. "_like")
    return like and ("%s_like(%s)"):format(path, call.owner) or nil
  end
  table.insert(call.args, 1, call.owner)
  return path .. open .. table.concat(call.args, ", ") ..
         (open == "(" and ")" or "}")
end

-- save("x.npy", t), which the user gave by another name
local function saved(o, line)
  local head = o.hint:match "^(nacre%.save%(%b\"\", )t%)$"
  local call = head and callof(line, "save")
  return call and call.args[1] and head .. call.args[1] .. ")"
end

-- The hint of an error at `line', with the user's own words if it has them.
function respell.hint(o, line)
  if not o.hint then return nil end
  if not o.hint:find("...", 1, true) then return saved(o, line) or o.hint end
  local hint = byname(o, line) or asmethod(o, line) or asfunction(o, line) or
               o.hint
  return hint ~= "" and hint or nil
end

return respell
