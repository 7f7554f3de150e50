-- SPDX-License-Identifier: MIT
--
-- value_diff.lua - where two values differ: tables by path, strings of several
-- lines as a diff, long strings around the first byte that differs.

local alignment = require "nacre.alignment"
local closeness = require "nacre.closeness"
local styled = require "nacre.styled_output"
local lexer = require "nacre.lexer"
local match = require "nacre.match_output"
local facts = require "nacre.tensor_facts"

local diff = {}

local MOST, LINES, LONG, AROUND = 10, 40, 60, 20

--
-- Strings
--
local function split(text)
  local list = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do list[#list + 1] = line end
  return list
end

-- The steps from list A to list B: {"-" or "+" or " ", line}, and the number
-- of the first that is no " ".
local function steps(A, B)
  local list, first = {}, nil
  for _, s in ipairs(alignment.steps(#A, #B, {
    pair = math.huge, gap = function() return false end,
    same = function(i, j) return A[i] == B[j] end})) do
    if s.same then
      list[#list + 1] = {" ", A[s.e]}
    else
      first = first or #list + 1
      if s.e then list[#list + 1] = {"-", A[s.e]} end
      if s.a then list[#list + 1] = {"+", B[s.a]} end
    end
  end
  return list, first
end

-- The lines in which `got` differs from the expected text, marked - and +,
-- with one line of context.
function diff.lines(got, expected)
  local list, first = steps(split(expected), split(got))
  local last = #list
  while list[last][1] == " " do last = last - 1 end
  list = table.move(list, math.max(1, first - 1), math.min(last + 1, #list), 1,
                    {})
  local lines = {("line %d: - expected, + got"):format(first)}
  for k, step in ipairs(list) do
    if k > LINES then
      lines[#lines + 1] = ("... %d more lines"):format(#list - LINES)
      break
    end
    local text = styled.brief(step[2]):sub(2, -2):gsub('\\"', '"')
    lines[#lines + 1] = step[1] .. " " .. match.cut(text, 300)
  end
  return lines
end

-- A part of s around byte i, in quotes.
local function around(s, i)
  local from, to = math.max(1, i - AROUND), math.min(#s, i + AROUND)
  return (from > 1 and "..." or "") .. styled.brief(s:sub(from, to)) ..
         (to < #s and "..." or "")
end

local function strings(got, expected)
  if got:find "\n" and expected:find "\n" then
    return diff.lines(got, expected)
  end
  if #got <= LONG and #expected <= LONG then
    return {("got %s, expected %s"):format(styled.brief(got),
                                           styled.brief(expected))}
  end
  local i = 1
  while got:byte(i) == expected:byte(i) do i = i + 1 end
  return {("got %s, expected %s from byte %d on (%d and %d bytes)"):format(
    around(got, i), around(expected, i), i, #got, #expected)}
end

--
-- Values
--
local function brief(v)
  local text = styled.brief(v):gsub("%s*\n%s*", " ")
  return match.cut(text, 300)
end

diff.brief = brief

-- Are they the same number? An integer is not equal to a float, nan is equal
-- to nan.
local function samenumber(a, b)
  return math.type(a) == math.type(b) and (a == b or a ~= a and b ~= b)
end

-- The difference of two values that are not tables, or nil.
local function leaf(got, expected)
  if facts.istensor(got) or facts.istensor(expected) then
    local says = closeness.compare(got, expected, {rtol = 0, atol = 0})
    return says and split(says)
  end
  if type(got) == "number" and type(expected) == "number" then
    if samenumber(got, expected) then return nil end
    local a, b = brief(got), brief(expected)
    if a == b then a, b = ("%.17g"):format(got), ("%.17g"):format(expected) end
    return {("got %s, expected %s"):format(a, b)}
  end
  if rawequal(got, expected) or got == expected then return nil end
  if type(got) == "string" and type(expected) == "string" then
    return strings(got, expected)
  end
  return {("got %s, expected %s"):format(brief(got), brief(expected))}
end

diff.leaf = leaf

local function step(path, k)
  if type(k) == "string" and k:find "^[%a_][%w_]*$" and
     not lexer.keywords[k] then
    return path .. "." .. k
  end
  return ("%s[%s]"):format(path, brief(k))
end

local order = {number = 1, string = 2}

local function before(a, b)
  local x, y = order[type(a)] or 3, order[type(b)] or 3
  if x ~= y then return x < y end
  if x == 3 then return tostring(a) < tostring(b) end
  return a < b
end

-- The keys of both tables, in order.
local function keys(a, b)
  local list = {}
  for k in next, a do list[#list + 1] = k end
  for k in next, b do
    if rawget(a, k) == nil then list[#list + 1] = k end
  end
  table.sort(list, before)
  return list
end

local function istable(v) return type(v) == "table" end

-- Appends to `out` {path, lines} for each place where a and b differ.  `seen`
-- are the pairs of tables on the way here, which may go in circles.
local function walk(out, path, a, b, compare, seen)
  if not (istable(a) and istable(b)) then
    local says = compare(a, b)
    if says then out[#out + 1] = {path, says} end
    return
  end
  if rawequal(a, b) or seen[a] == b then return end
  local was = seen[a]
  seen[a] = b
  for _, k in ipairs(keys(a, b)) do
    walk(out, step(path, k), rawget(a, k), rawget(b, k), compare, seen)
  end
  seen[a] = was
end

-- Nil if the values are equal, else where they differ. Numbers, strings and
-- tensors are compared by compare(got, expected), which returns lines or nil;
-- by default they must be identical.
function diff.values(got, expected, compare)
  local out, lines = {}, {}
  walk(out, "", got, expected, compare or leaf, {})
  if #out == 0 then return nil end
  for k, place in ipairs(out) do
    if k > MOST then
      lines[#lines + 1] = ("... %d more places"):format(#out - MOST)
      break
    end
    local path, says = place[1], place[2]
    if path == "" then return table.concat(says, "\n") end
    if #says == 1 then
      lines[#lines + 1] = ("at %s: %s"):format(path, says[1])
    else
      lines[#lines + 1] = ("at %s:"):format(path)
      for _, line in ipairs(says) do lines[#lines + 1] = "  " .. line end
    end
  end
  return table.concat(lines, "\n")
end

return diff
