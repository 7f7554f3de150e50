-- SPDX-License-Identifier: MIT
--
-- operand_names.lua - the operands of an error by the names they have in the
-- source: the list of operands, and the hint with those names in it.

local display = require "nacre.display"
local expressions = require "nacre.expression_at"
local frames = require "nacre.stack_frames"
local runtime_errors = require "nacre.runtime_errors"

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

-- What the user calls a module that the frames call: a path on one of their
-- lines, the outermost first, or a variable. Nil if it is only a self.
function operand_names.module(m, thread, list)
  local all = {}
  for i = #list, 1, -1 do
    local f = list[i]
    local line = f.text and runtime_errors.line(f.text, f.line) or ""
    all[i] = frames.variables(thread, f)
    for _, name in ipairs(names_on_line(m, line, all[i])) do
      if name ~= "self" then return name end
    end
  end
  for i = #list, 1, -1 do
    all[i].self = nil
    local name = visible_name(m, all[i])
    if name then return name end
  end
end

-- The operands of an error object as {role, name, what, note, fills}. One
-- tensor may be several operands with different names on the line.
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
    list[i] = {role = a.role, name = name, note = note, fills = a.fills,
               values = a.values, what = ("%s[%s] %s"):format(a.dtype,
                 table.concat(a.shape or {}, "x"), a.device)}
  end
  return list
end

-- The expression on the line that is an operand without a name, or nil: what
-- the method is called on, or its only argument, a chain of names and calls.
local function expression(o, a, line)
  local op = o.op or o.cause == "method" and o.name
  local list = op and op:find "^[%w_]+$" and expressions.calls(line, op) or {}
  local call = #list == 1 and list[1]
  if not call or call.mark ~= ":" or call.name ~= op then return nil end
  if a.role == "self" then return call.owner end
  local args = a.role == "arg 1" and expressions.arguments(call.args) or {}
  return #args == 1 and expressions.chain_end(args[1], 1) == #args[1] + 1 and
         args[1] or nil
end

-- A hint that is no code without the names of its operands, in words: 'move arg
-- 1 with :to("cuda:0")'. Nil if there are none.
local function in_words(hint, role)
  local convert = role ~= "self" and hint:match "^\2%d(:to%b())$"
  if convert then return ("convert %s with %s"):format(role, convert) end
  local call = hint:match "^\2%d(:to%b())$" or
               role ~= "self" and hint:match "^\2%d(:%l+%([%d, ]*%))$" or
               hint:match "^\2%d(:[lg][te]%([^\2]*%))$"
  if call then return "(...)" .. call end
  local one, like = hint:match "^(.-):reshape%((.-):size%(%)%)$"
  if one then return ("reshape %s to the size of %s"):format(one, like) end
  local from, there, other, back =
    hint:match "^(.-)(:to%b()), or (.-)(:to%b())$"
  return from and ("move %s with %s, or %s with %s"):format(from, there,
                                                            other, back)
end

local sides = {left = "the left operand", right = "the right operand"}

-- The hint of an error with its placeholders; as it is if the program has
-- changed it.
function operand_names.hint_template(err)
  local template = type(err.template) == "table" and err.template.hint
  if not template then return err.hint end
  local roles = {}
  for _, a in ipairs(err.args or {}) do
    for j in (a.fills or ""):gmatch "%d" do roles[j] = a.role end
  end
  local text = template:gsub("\2(%d)", function(j)
    return roles[j] or (j == "0" and "self" or "arg " .. j)
  end)
  return text == err.hint and template or err.hint
end

-- The hint of an error, a template, with the names of its operands; nil if an
-- operand has none and the hint says nothing without it.
function operand_names.hint(o, line)
  local names, roles = {}, {}
  for _, a in ipairs(o.args) do
    for j in (a.fills or ""):gmatch "%d" do
      names[j], roles[j] = a.name or expression(o, a, line), a.role
    end
  end
  local text = o.hint:gsub("\2(%d)", names)
  for j, after in text:gmatch "\2(%d)(.?)" do
    local role = roles[j]
    if not role then return nil end
    if after == ":" or role == "self" or role:find " " then
      text = in_words(text, role)
      return text and (text:gsub("\2(%d)", function(k)
        return sides[roles[k]] or roles[k]
      end))
    end
  end
  return (text:gsub("\2(%d)", roles))
end

return operand_names
