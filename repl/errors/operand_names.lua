-- SPDX-License-Identifier: MIT
--
-- operand_names.lua - the operands of an error: what the source calls them, and the
-- hint with those names in the place of self, arg 1 and the like.

local display = require "nacre.display"
local frames = require "nacre.stack_frames"

local nacre = package.loaded.nacre or _G.nacre

local roles = {}

-- The names that a tensor has on a line, in their order.  What is assigned
-- to is not what the operation was given, unless nothing else is there.
local function written(t, line, names)
  local list = {}
  local function add(path)
    if rawequal(frames.valueof(path, names), t) then
      list[#list + 1] = path
    end
  end
  local rest = line:match "^[%w_%s,%.]*=([^=].*)$"
  if rest then frames.paths(rest, add) end
  if #list == 0 then frames.paths(line, add) end
  return list
end

-- The name of a tensor that is on the line in another form, or not at all:
-- in sight, of the session.
local function insight(t, names)
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

-- The operands of an error object: role, name, what, note.  One tensor may be
-- several operands, which the line may call differently.
function roles.operands(err, line, names)
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
      local found = written(t, line, names)
      before[t] = (before[t] or 0) + 1
      name = found[before[t]] or found[#found] or insight(t, names)
    end
    list[i] = {role = a.role or "", name = name, note = note,
               values = a.values, what = ("%s[%s] %s"):format(a.dtype,
                 table.concat(a.shape or {}, "x"), a.device)}
  end
  return list
end

-- Where what starts at i ends if it is all names, calls and elements of
-- such: a:t()[1].b, (a + 1):t()
local function chain(text, i)
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
local function subject(line, op)
  local at, more
  for from in line:gmatch("():" .. op .. "%f[^%w_]") do
    at, more = from, at
  end
  if not at or more then return nil end
  local head = line:sub(1, at - 1)
  for i in head:gmatch "%f[%w_(]()[%a_(]" do
    if chain(head, i) == at then return head:sub(i) end
  end
end

-- The one argument of ":op(...)", if the line has one such call and that is
-- all names and calls.
local function argument(line, op)
  local args, more = line:match(":" .. op .. "%s*(%b())()")
  if not args or line:find(op .. "%f[^%w_]", more) then return nil end
  local text = args:sub(2, -2):match "^%s*(.-)%s*$"
  return chain(text, 1) == #text + 1 and text or nil
end

local function mentions(text, role)
  return text:find("%f[%w_]" .. role .. "%f[^%w_]")
end

-- The core calls some operands as their parameters: "mask" is arg 1.
local function numbered(text, o)
  local f = o.op and (rawget(nacre._functions, o.op) or nacre._methods[o.op])
  local params = f and nacre._info(f) and nacre._info(f).params or {}
  for _, a in ipairs(o.args) do
    local k = math.tointeger(a.role:match "^arg (%d+)$")
    local name = k and params[k + 1] and params[k + 1].name
    if name then text = text:gsub("%f[%w_]" .. name .. ":", a.role .. ":") end
  end
  return text
end

-- What cannot be typed can still be told: 'move arg 1 with :to("cuda:0")'.
local function moves(text)
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

-- The hint of an error with its operands' names, and the expression that
-- self is; none if a role is left of which the user cannot know what it is.
function roles.hint(o, line)
  local same = {left = "self", right = "arg 1"}
  local text, isself = numbered(o.hint, o), false
  local function replace(role, name)
    text = text:gsub("%f[%w_]" .. role .. "%f[^%w_]",
                     (name:gsub("%%", "%%%%")))
    isself = isself or name == "self"
  end
  for _, a in ipairs(o.args) do
    local name = a.name
    local op = o.op or o.message:match "^tensor has no method '(.*)'"
    if a.role == "self" and not name and op and op:find "^[%w_]+$" then
      name = subject(line, op)
    elseif a.role == "arg 1" and not name and op and op:find "^[%w_]+$" then
      name = argument(line, op)
    end
    if name and a.role:find "^%a[%w ]*$" then
      if name ~= a.role or name == "self" then replace(a.role, name) end
      if same[a.role] then replace(same[a.role], name) end
    end
  end
  local function told()       -- operands of a sign are left and right
    local said = moves(text)
    for _, a in ipairs(o.args) do
      if said and same[a.role] then
        said = said:gsub("%f[%w]" .. same[a.role] .. "%f[^%w]",
                         "the " .. a.role .. " operand")
      end
    end
    return said
  end
  for _, role in ipairs {"arg %d", "left:", "right:"} do
    if text:find("%f[%w]" .. role) then return told() end
  end
  for _, a in ipairs(o.args) do      -- "tensors 2" is no expression
    if not a.name and a.role:find " %d" and mentions(text, a.role) then
      return told()
    end
  end
  for _, a in ipairs(o.args) do      -- an expression, not a variable
    if not a.name and a.role:find "^%l+$" and a.role ~= "self" and
       text:find("%f[%w_]" .. a.role .. ":") then
      return told()
    end
  end
  if not isself and mentions(text, "self") then return told() end
  return text
end

return roles
