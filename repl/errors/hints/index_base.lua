-- SPDX-License-Identifier: MIT
--
-- index_base.lua - translates indices and dimensions of Python (from 0, the
-- end excluded) and Julia to Nacre's, which count from 1 and include the end
-- of a slice.

local index_base = {}

local note = ", counted from 1"

-- x[:, None]: a dimension more
local function newaxis(inside)
  local dim, at = 0, nil
  for part in inside:gmatch "[^,]+" do
    part = part:match "^%s*(.-)%s*$"
    dim = dim + 1
    if part == "None" and not at then at = dim
    elseif part ~= ":" and part ~= "..." then return nil end
  end
  if inside:find("...", 1, true) then at = at == dim and -1 end
  return at and (":unsqueeze(%d)"):format(at)
end

-- The bounds of a slice as texts, "" for an omitted one; nil if a part is
-- neither a number nor, in Julia, `end'.
local function slice_bounds(part)
  local list = {}
  for word in (part:gsub("%s", "") .. ":"):gmatch "(.-):" do
    if word ~= "" and word ~= "end" and not word:find "^%-?%d+$" then
      return nil
    end
    list[#list + 1] = tonumber(word) or word
  end
  return #list <= 3 and list or nil
end

local function join_slice(first, last, step)
  return ("%s:%s%s"):format(first, last, step == "" and "" or ":" .. step)
end

-- Translates one part of a Python index; nil if that is impossible. The second
-- result: is it valid in Python only?
local function python_part(part)
  if part == "..." then return part, true end
  local list = slice_bounds(part)
  if not list then return nil end
  local first, last, step = list[1], list[2], list[3] or ""
  if first == "end" or last == "end" or step == "end" then return nil end
  if #list == 1 then
    if first == "" then return nil end
    return tostring(first < 0 and first or first + 1), first <= 0
  end
  if step ~= "" and step < 1 or last == 0 then return nil end
  local alone = first == "" and last == "" and #list == 2
  local sure = not alone and (first == "" or last == "" or first <= 0 or
                              last < 0)
  if first ~= "" and first >= 0 then
    if last ~= "" and last >= 0 and last <= first then return nil end
    first = first == 0 and "" or first + 1
    if first == "" and last ~= "" then first = 1 end
  end
  if last ~= "" and last < 0 then last = last - 1 end
  return join_slice(first, last, step), sure
end

-- The same for Julia, where the step is in the middle.
local function julia_part(part)
  local list = slice_bounds(part)
  if not list then return nil end
  local first, last, step = list[1], list[#list], list[3] and list[2] or ""
  if #list == 1 then
    if first == "" then return nil end
    return first == "end" and "-1" or tostring(first), first == "end"
  end
  if first == "end" or step == "end" then return nil end
  for _, n in ipairs(list) do
    if n ~= "end" and n ~= "" and n < 1 then return nil end
  end
  if (first == "") ~= (last == "") or
     math.type(first) and math.type(last) and last < first then return nil end
  return join_slice(first, last == "end" and "" or last, step), last == "end"
end

-- Translates all parts, nil if one cannot be; the second result: is one
-- certainly of that language?
local function translate(inside, language)
  local list, sure = {}, false
  for blanks, part in inside:gmatch "(%s*)([^,]+)" do
    local text, mine = language(part:match "^(.-)%s*$")
    if not text then return nil end
    list[#list + 1], sure = blanks .. text, sure or mine
  end
  return table.concat(list, ","), sure
end

-- x[i, 0]: only the number shows that it is Python.
local function with_zero(inside)
  local list, sure = {}, false
  for part in inside:gmatch "[^,]+" do
    part = part:match "^%s*(.-)%s*$"
    local n = math.tointeger(tonumber(part))
    sure = sure or n == 0
    list[#list + 1] = not n and part .. " + 1" or n < 0 and part or
                      tostring(n + 1)
  end
  return sure and table.concat(list, ", "), sure
end

-- What [1:3, 0] is here, where `inside' is the text in the brackets: a text
-- that follows the operand, nil if that is not known; is it counted from 1,
-- and would it be another one if it were Julia's? Of `language', {python =,
-- julia =} says which it is, if that is known.
function index_base.index(inside, language)
  local julia = language.julia
  if inside:find "%f[%w_]None%f[^%w_]" then return newaxis(inside) end
  if inside:find "^%s*::%s*%-%s*1%s*$" then return ":flip(1)" end
  if inside:find "^%s*end%s*$" then return "[-1]" end
  local theirs, sure = translate(inside, python_part)
  local ours, certain = translate(inside, julia_part)
  if not inside:find ":" and not inside:find("...", 1, true) then
    if not theirs and not ours then theirs, sure = with_zero(inside) end
    sure = sure or theirs and language.python and not julia
    local list = sure and theirs or certain and ours or
                 not inside:find "%f[%w]end%f[%W]" and inside
    return list and ("[{%s}]"):format(list), sure and not certain,
           list and theirs and theirs ~= list and not sure and not certain
  end
  if certain then theirs = nil end
  if sure then ours = nil end
  local text = julia and ours or theirs or ours
  return text and ('["%s"]'):format(text), text == theirs and text ~= inside,
         theirs and ours and theirs ~= ours
end

-- A text whose indices count from 1 in Julia, from 0 in Python, with the line
-- of the other one, which read(the language) gives.
function index_base.other(text, read)
  local julia = read {julia = true}
  if text:sub(1, #julia) ~= julia then
    return ("%s; Julia's is %s"):format(text, julia)
  end
  return ("%s; Python's is %s"):format(text, read {python = true})
end

-- The parameters that count from 1, by their type or, if that is not enough,
-- as for layers, by their name.
local types = {dim = true, dims = true, dimortensor = true, index = true}
local numbered = {dim = true, dim1 = true, dim2 = true, start_dim = true,
                  end_dim = true, ignore_index = true, padding_idx = true}
-- Operations that take any number of dimensions as their last parameter.
local lists = {flip = "dims", permute = "dims"}

local function counts_from_one(info, name)
  for _, param in ipairs(info and info.params or {}) do
    if param.name == name then
      return types[param.type] or numbered[name] or lists[info.name] == name
    end
  end
  return false
end

-- Translates an argument of an operation with this `info', or returns nil; the
-- second result: does the parameter count from 1?
function index_base.argument(info, name, value)
  local n = math.tointeger(tonumber(value))
  if not n or n < 0 or not counts_from_one(info, name) then
    return value, false
  end
  return tostring(n + 1), true
end

-- The name of the i-th parameter of an operation, if it has one.
function index_base.parameter(info, i)
  local params = info and info.params or {}
  local param = params[i] or lists[info and info.name] and params[#params]
  return param and param.name
end

index_base.note = note

return index_base
