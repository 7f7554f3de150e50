-- SPDX-License-Identifier: MIT
--
-- zero_based.lua - indices, classes and rows that count from 0, like those of
-- PyTorch's data, given to an operation whose own count from 1.

local expressions = require "nacre.expression_at"

local nacre = package.loaded.nacre or _G.nacre

local zero_based = {}

local says = {"^index 0: ", "^class 0: ", "^row 0 does", "^position 0 is",
              "^a position along dimension %d+ is not from 1",
              "^a class is not from 1"}
-- Where functions that are no operations have them.
local places = {target = 2, targets = 2, indices = 2, input = 1, tensor = 1,
                index = 2}

local function fails(o)
  for _, text in ipairs(says) do
    if o.message:find(text) then return true end
  end
end

-- The operand of the error that has the indices.
local function operand(o)
  for _, a in ipairs(o.args) do
    if a.what:find "^int%d" and a.role ~= "self" then return a end
  end
end

-- The place of an operand among the parameters of an operation, self being 1.
local function place_of(op, role)
  local number = math.tointeger(tonumber(role:match "^arg (%d+)$"))
  if number then return number + 1 end
  local ok, info = pcall(nacre._info, op)
  for i, param in ipairs(ok and info and info.params or {}) do
    if param.name == role then return i end
  end
  return places[role]
end

-- The line with `+ 1' behind the argument of the operation's call; nil if that
-- is not found.
local function in_call(line, op, role)
  local call = expressions.calls(line, op:match "[%w_]+$")[1]
  local place = call and place_of(op, role)
  if not place or not call.args:find "^%(" then return nil end
  if call.mark == ":" then place = place - 1 end
  local list, at = expressions.arguments(call.args), call.to - #call.args + 2
  if not list[place] or list[place]:find '^[%d"{-]' then return nil end
  for i = 1, place - 1 do
    at = select(2, line:find(list[i], at, true)) + 1
  end
  local _, stop = line:find(list[place], at, true)
  return line:sub(1, stop) .. " + 1" .. line:sub(stop + 1)
end

-- The line with `+ 1' behind its only use of a variable, or behind the only
-- variable in brackets.
local function at_name(line, name)
  local from, count = nil, 0
  for at in line:gmatch("%f[%w_]()" .. name:gsub("%p", "%%%0") .. "%f[^%w_]") do
    local char = line:sub(at - 1, at - 1)
    if char ~= "." and char ~= ":" then from, count = at, count + 1 end
  end
  if count ~= 1 then return nil end
  local stop = from + #name
  return line:find("^%s*[%],)]", stop) and
         line:sub(1, stop - 1) .. " + 1" .. line:sub(stop) or nil
end

-- x[torch.tensor{0, 2}]
local function in_brackets(line)
  local from, inside, stop = line:match "()%[([^%[%]]*)()%]%s*$"
  if not from or inside:find '^[%s%d"{]' or from == 1 then return nil end
  return line:sub(1, stop - 1) .. " + 1" .. line:sub(stop)
end

-- Sets the hint of an error for operands that count from 0; true if it is one.
function zero_based.explain(o, line)
  if not fails(o) then return nil end
  local a = operand(o) or {role = "index"}
  local name = a.name and a.name:find "^[%a_][%w_%.]*$" and a.name
  local whole = o.op and in_call(line, o.op, a.role) or
                name and at_name(line, name) or
                not o.op and a.what and in_brackets(line)
  local note = "they count from 1 here, from 0 in PyTorch"
  if not whole and not a.what then return nil end
  o.hint = whole and ("%s  (%s)"):format(whole:match "^%s*(.-)%s*$", note) or
           ("%s + 1: %s"):format(a.name or a.role, note)
  o.whole = whole ~= nil
  return true
end

return zero_based
