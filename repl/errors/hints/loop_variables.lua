-- SPDX-License-Identifier: MIT
--
-- loop_variables.lua - how loops of Python use the variables that count: as
-- positions, x[i], which count from 1 here, or as numbers, 2 * i, which stay as
-- they are in Python.

local loop_variables = {}

local counting = {range = true, enumerate = true, reversed = true,
                  trange = true, tqdm = true}

-- The names in "for i, x in range(", as a set; nil if there are none.
local function counted_names(tokens)
  local names
  for i, t in ipairs(tokens) do
    if t.text == "for" then
      local first = tokens[i + 1]
      local k = i + 1
      while tokens[k] and tokens[k].text ~= "in" and k < i + 12 do k = k + 1 end
      local callee = tokens[k] and tokens[k].text == "in" and tokens[k + 1]
      if callee and counting[callee.text] and first.kind == "name" then
        names = names or {}
        names[first.text] = i
      end
    end
  end
  return names
end

-- Does a position end at token i, as in x[i], x[i - 1, j]? Returns whether.
local function ends_part(tokens, i)
  local t = tokens[i]
  if t and (t.text == "+" or t.text == "-") and tokens[i + 1] and
     tokens[i + 1].kind == "number" then
    t = tokens[i + 2]
  end
  return t and (t.text == "]" or t.text == ",")
end

local opens = {["["] = -1, ["("] = -1, ["{"] = -1, ["]"] = 1, [")"] = 1,
               ["}"] = 1}

-- Is token i a part of an index of an operand?
local function is_position(tokens, i)
  local before = tokens[i - 1]
  if not before or before.text ~= "[" and before.text ~= "," or
     not ends_part(tokens, i + 1) then return false end
  local depth, k = 0, i - 1
  while k > 0 do
    depth = depth + (opens[tokens[k].text] or 0)
    if depth < 0 then break end
    k = k - 1
  end
  local of = tokens[k - 1]
  return k > 1 and tokens[k].text == "[" and
         (of.kind == "name" or of.text == "]" or of.text == ")")
end

local function has_word(text, name)
  return text:find("%f[%w_]" .. name .. "%f[^%w_]") ~= nil
end

-- {i = "index"} for the variables that are only positions, "value" for those
-- that are used otherwise, too; nothing of those that are not used.
function loop_variables.uses(tokens)
  local names, uses = counted_names(tokens), {}
  if not names then return uses end
  for i, t in ipairs(tokens) do
    local before = tokens[i - 1]
    local head = names[t.text] and before and
                 (before.text == "for" or before.text == "," and
                  i - names[t.text] == 3)
    if t.kind == "string" then
      for name in pairs(names) do
        if t.text:find "{" and has_word(t.text, name) then
          uses[name] = "value"
        end
      end
    elseif names[t.text] and not head and
           not (before and before.text == ".") then
      uses[t.text] = uses[t.text] ~= "value" and is_position(tokens, i) and
                     "index" or "value"
    end
  end
  return uses
end

-- x[i - 1] with i as in Python: the text of the position here.
function loop_variables.position(text, use)
  if use ~= "value" then return text end
  local name, sign, n = text:match "^([%a_][%w_]*)%s*([+-])%s*(%d+)$"
  if not name then return text .. " + 1" end
  local more = (sign == "-" and -n or n) + 1
  return more == 0 and name or
         ("%s %s %d"):format(name, more > 0 and "+" or "-", math.abs(more))
end

return loop_variables
