-- SPDX-License-Identifier: MIT
--
-- operand_names.lua - the operands of an error by the names they have in the
-- source: the list of operands, and the hint with those names in place of
-- "self", "arg 1" and the like.

local display = require "nacre.display"
local frames = require "nacre.stack_frames"

local nacre = package.loaded.nacre or _G.nacre

local operand_names = {}

-- The names of a tensor on a line, in order. The target of an assignment is
-- left out unless there is no other: the operation was not given it.
local function names_on_line(t, line, names)
  local list = {}
  local function add(path)
    if rawequal(frames.value_of(path, names), t) then
      list[#list + 1] = path
    end
  end
  local rest = line:match "^[%w_%s,%.]*=([^=].*)$"
  if rest then frames.paths(rest, add) end
  if #list == 0 then frames.paths(line, add) end
  return list
end

-- The name of a tensor that a line does not name directly, among the visible
-- variables and those of the session.
local function visible_name(t, names)
  local function least(list)
    local best
    for name, v in next, list do
      if rawequal(v, t) and type(name) == "string" and
         name:find "^%a[%w_]*$" and name ~= "ans" and
         (not best or name < best) then
        best = name
      end
    end
    return best
  end
  return least(names) or least(_G)
end

-- The operands of an error object as {role, name, what, note}. One tensor may
-- be several operands with different names on the line.
function operand_names.operands(err, line, names)
  local list, before = {}, {}
  for i, a in ipairs(err.args or {}) do
    local t, note, name = a.tensor, a.note, nil
    if type(t) == "userdata" and nacre.is_tensor(t) then
      local ok, base = pcall(display.baseof, t, names)
      base = ok and base or nil
      if not base then
        ok, base = pcall(display.baseof, t)
        base = ok and base or nil
      end
      note = base and "view of " .. base or note
    end
    if t ~= nil then
      local found = names_on_line(t, line, names)
      before[t] = (before[t] or 0) + 1
      name = found[before[t]] or found[#found] or visible_name(t, names)
    end
    list[i] = {role = a.role or "", name = name, note = note,
               values = a.values, what = ("%s[%s] %s"):format(a.dtype,
                 table.concat(a.shape or {}, "x"), a.device)}
  end
  return list
end

-- The end of the chain of names, calls and indices that starts at i:
-- a:t()[1].b, (a + 1):t()
local function chain_end(text, i)
  local at = text:match("^[%a_][%w_]*()", i) or text:match("^%b()()", i)
  while at do
    local stop = text:match("^[.:][%a_][%w_]*()", at) or
                 text:match("^%b()()", at) or text:match("^%b[]()", at) or
                 text:match("^%b{}()", at)
    if not stop then return at end
    at = stop
  end
end

-- The expression before ":op(", if the line has one such call.
local function method_object(line, op)
  local at, more
  for from in line:gmatch("():" .. op .. "%f[^%w_]") do
    at, more = from, at
  end
  if not at or more then return nil end
  local head = line:sub(1, at - 1)
  for i in head:gmatch "%f[%w_(]()[%a_(]" do
    if chain_end(head, i) == at then return head:sub(i) end
  end
end

-- The argument of ":op(...)", if the line has one such call with one argument
-- that is a chain of names and calls.
local function only_argument(line, op)
  local args, more = line:match(":" .. op .. "%s*(%b())()")
  if not args or line:find(op .. "%f[^%w_]", more) then return nil end
  local text = args:sub(2, -2):match "^%s*(.-)%s*$"
  return chain_end(text, 1) == #text + 1 and text or nil
end

local function mentions(text, role)
  return text:find("%f[%w_]" .. role .. "%f[^%w_]")
end

-- Replaces parameter names in a hint by their position: "mask" becomes arg 1.
-- The core uses both.
local function number_roles(text, o)
  local f = o.op and (rawget(nacre._functions, o.op) or nacre._methods[o.op])
  local params = f and nacre._info(f) and nacre._info(f).params or {}
  for _, a in ipairs(o.args) do
    local k = math.tointeger(a.role:match "^arg (%d+)$")
    local name = k and params[k + 1] and params[k + 1].name
    if name then text = text:gsub("%f[%w_]" .. name .. ":", a.role .. ":") end
  end
  return text
end

-- A hint with an operand that has no name, in words: 'move arg 1 with
-- :to("cuda:0")'.
local function move_in_words(text)
  local alone = text:match "^[%l_]+ ?%d*(:to%b())$" or
                not mentions(text, "self") and
                text:match "^[%l_]+ ?%d*(:%l+%([%d, ]*%))$"
  if alone then return "(...)" .. alone end
  local one, like = text:match "^(%l+):reshape%((%l+):size%(%)%)$"
  if one then return ("reshape %s to the size of %s"):format(one, like) end
  local each = text:match "^left(:l[te]%b())$" or
               text:match "^right(:g[te]%b())$"
  if each and not mentions(each, "right") then return "(...)" .. each end
  local from, there, other, back =
    text:match '^(.-)(:to%b()), or (.-)(:to%b())$'
  return from and ("move %s with %s, or %s with %s"):format(from, there,
                                                            other, back)
end

-- The hint of an error with the names of its operands, and the expression that
-- self stands for; nil if an operand remains whose role means nothing to the
-- user.
function operand_names.hint(o, line)
  local same = {left = "self", right = "arg 1"}
  local text, isself = number_roles(o.hint, o), false
  local function replace(role, name)
    text = text:gsub("%f[%w_]" .. role .. "%f[^%w_]",
                     (name:gsub("%%", "%%%%")))
    isself = isself or name == "self"
  end
  for _, a in ipairs(o.args) do
    local name = a.name
    local op = o.op or o.message:match "^tensor has no method '(.*)'"
    if a.role == "self" and not name and op and op:find "^[%w_]+$" then
      name = method_object(line, op)
    elseif a.role == "arg 1" and not name and op and op:find "^[%w_]+$" then
      name = only_argument(line, op)
    end
    if name and a.role:find "^%a[%w ]*$" then
      if name ~= a.role or name == "self" then replace(a.role, name) end
      if same[a.role] then replace(same[a.role], name) end
    end
  end
  local function in_words()       -- operands of a sign are left and right
    local said = move_in_words(text)
    for _, a in ipairs(o.args) do
      if said and same[a.role] then
        said = said:gsub("%f[%w]" .. same[a.role] .. "%f[^%w]",
                         "the " .. a.role .. " operand")
      end
    end
    return said
  end
  for _, role in ipairs {"arg %d", "left:", "right:"} do
    if text:find("%f[%w]" .. role) then return in_words() end
  end
  for _, a in ipairs(o.args) do      -- "tensors 2" is no expression
    if not a.name and a.role:find " %d" and mentions(text, a.role) then
      return in_words()
    end
  end
  for _, a in ipairs(o.args) do      -- an expression, not a variable
    if not a.name and a.role:find "^%l+$" and a.role ~= "self" and
       text:find("%f[%w_]" .. a.role .. ":") then
      return in_words()
    end
  end
  if not isself and mentions(text, "self") then return in_words() end
  return text
end

return operand_names
