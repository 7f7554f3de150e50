-- SPDX-License-Identifier: MIT
--
-- match_output.lua - compares printed lines with the expected ones, line by
-- line (match_line.lua); a line "..." matches any number of lines.

local alignment = require "nacre.alignment"
local files = require "nacre.files"
local match_line = require "nacre.match_line"

local match = {trimmed = match_line.trimmed, note = match_line.note,
               badnote = match_line.badnote,
               istiming = match_line.istiming, isgap = match_line.isgap}

local PAIR = 21               -- of two lines that differ; see alignment.lua

-- The steps of alignment.lua from the expected lines to the printed ones. Of
-- two that differ, `of` are the lines as match_line.lua compares them.
function match.align(expected, printed, options)
  local E, A = match_line.parse(expected, true), match_line.parse(printed)
  options = options or {}
  local steps = alignment.steps(#E, #A, {
    pair = PAIR,
    gap = function(i) return match_line.isgap(E[i].text) end,
    same = function(i, j) return (match_line.same(E[i], A[j], options)) end})
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
  local list = files.lines(text)
  local first = 1
  while list[#list] and not list[#list]:find "%S" do list[#list] = nil end
  while list[first] and not list[first]:find "%S" do first = first + 1 end
  return first == 1 and list or table.move(list, first, #list, 1, {})
end

return match
