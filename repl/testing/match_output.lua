-- SPDX-License-Identifier: MIT
--
-- match_output.lua - compares printed lines with the expected ones, line by
-- line (match_line.lua); a line "..." matches any number of lines.

local match_line = require "nacre.match_line"

local match = {note = match_line.note, badnote = match_line.badnote,
               istiming = match_line.istiming, isgap = match_line.isgap}

-- A list of steps that turns the expected lines into the printed ones:
-- {same = true, e =, a =}, {e =} for what is missing, {a =} for what is new,
-- {gap = e, a =} for what a "..." stands for.  Of two that differ, `of` are the
-- lines as match_line.lua compares them.  Found as a cheapest way; the
-- costs see to it that a line stands for itself before a gap takes it.
local GAP, LONE, PAIR = 1, 20, 21

local function costs(E, A, same)
  local c = {}
  for i = #E + 1, 1, -1 do
    c[i] = {}
    local gap = E[i] and match_line.isgap(E[i].text)
    for j = #A + 1, 1, -1 do
      local best = (i > #E and j > #A) and 0 or math.huge
      local function take(n) if n < best then best = n end end
      if i <= #E then take(c[i + 1][j] + (gap and 0 or LONE)) end
      if j <= #A then take(c[i][j + 1] + (gap and GAP or LONE)) end
      if i <= #E and j <= #A and not gap then
        take(c[i + 1][j + 1] + (same(i, j) and 0 or PAIR))
      end
      c[i][j] = best
    end
  end
  return c
end

-- Appends the steps of the cheapest alignment.
local function walk(steps, E, A, c, same)
  local i, j = 1, 1
  while i <= #E or j <= #A do
    local gap, here = E[i] and match_line.isgap(E[i].text), c[i][j]
    if E[i] and A[j] and not gap and
       here == c[i + 1][j + 1] + (same(i, j) and 0 or PAIR) then
      steps[#steps + 1] = {e = i, a = j, same = same(i, j)}
      i, j = i + 1, j + 1
    elseif gap and here == c[i + 1][j] then
      steps[#steps + 1] = {e = i, same = true}
      i = i + 1
    elseif A[j] and here == c[i][j + 1] + (gap and GAP or LONE) then
      steps[#steps + 1] = {a = j, gap = gap and i or nil}
      j = j + 1
    else
      steps[#steps + 1] = {e = i}
      i = i + 1
    end
  end
end

-- For texts too long for a search: line by line.
local function pairwise(steps, E, A, options)
  for i = 1, math.max(#E, #A) do
    local same = E[i] and A[i] and match_line.same(E[i], A[i], options)
    steps[#steps + 1] = {e = E[i] and i, a = A[i] and i, same = same or nil}
  end
end

local LONGEST = 90000 -- lines times lines

local function between(steps, E, A, options)
  local known = {}
  local function same(i, j)
    local key = i * (#A + 1) + j
    if known[key] == nil then
      known[key] = (match_line.same(E[i], A[j], options))
    end
    return known[key]
  end
  if #E * #A > LONGEST then return pairwise(steps, E, A, options) end
  walk(steps, E, A, costs(E, A, same), same)
end

-- How many lines match at the start; at the end if `step` is -1.
local function common(E, A, step, most, options)
  local n = 0
  while n < most do
    local e = step > 0 and E[n + 1] or E[#E - n]
    local a = step > 0 and A[n + 1] or A[#A - n]
    if match_line.isgap(e.text) or not match_line.same(e, a, options) then
      break
    end
    n = n + 1
  end
  return n
end

local function align(E, A, options)
  local most, steps = math.min(#E, #A), {}
  local head = common(E, A, 1, most, options)
  local tail = common(E, A, -1, most - head, options)
  for i = 1, head do steps[i] = {e = i, a = i, same = true} end
  between(steps, table.move(E, head + 1, #E - tail, 1, {}),
          table.move(A, head + 1, #A - tail, 1, {}), options)
  for k = head + 1, #steps do
    local s = steps[k]
    s.e, s.a = s.e and s.e + head, s.a and s.a + head
    s.gap = s.gap and s.gap + head
  end
  for k = tail - 1, 0, -1 do
    steps[#steps + 1] = {e = #E - k, a = #A - k, same = true}
  end
  return steps
end

function match.align(expected, printed, options)
  local E, A = match_line.parse(expected, true), match_line.parse(printed)
  local steps = align(E, A, options or {})
  for _, s in ipairs(steps) do
    if s.e and s.a and not s.same then s.of = {E[s.e], A[s.a]} end
  end
  return steps
end

-- For a step of two lines that differ: what match_line.lua says of their
-- numbers; nil if more than numbers differ.
local function about(f)
  return function(step, options)
    if not step.of then return nil end
    return f(step.of[1], step.of[2], options or {})
  end
end

match.off = about(function(...) return select(2, match_line.same(...)) end)
match.covers = about(match_line.covers)
match.lastdigit = about(match_line.lastdigit)

-- Most texts match line by line, without a search.
local function plainly(E, A, options)
  if #E ~= #A then return false end
  for i = 1, #E do
    if not match_line.same(E[i], A[i], options) then return false end
  end
  return true
end

-- Do the printed lines match the expected ones?
function match.lines(expected, printed, options)
  local E, A = match_line.parse(expected, true), match_line.parse(printed)
  options = options or {}
  if plainly(E, A, options) then return true end
  local reach = {[1] = true} -- where in A the lines before i may end
  for i = 1, #E do
    local now, gap, open = {}, match_line.isgap(E[i].text), false
    for j = 1, #A + 1 do
      open = open or reach[j]
      if gap and open then now[j] = true end
      if not gap and reach[j] and A[j] and
         match_line.same(E[i], A[j], options) then
        now[j + 1] = true
      end
    end
    reach = now
  end
  return reach[#A + 1] == true
end

-- Text of at most n bytes, and how many it had.
function match.cut(text, n)
  if #text <= n then return text end
  return ("%s... (%d bytes)"):format(text:sub(1, utf8.offset(text, 0, n) - 1),
                                     #text)
end

-- Text as lines, without blank ones at either end.
function match.split(text)
  local list = {}
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do list[#list + 1] = line end
  while list[#list] and not list[#list]:find "%S" do list[#list] = nil end
  while list[1] and not list[1]:find "%S" do table.remove(list, 1) end
  return list
end

return match
