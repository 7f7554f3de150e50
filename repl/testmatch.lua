-- SPDX-License-Identifier: MIT
--
-- testmatch.lua - is what was printed what was expected?
--
-- A line is numbers and text.  Text must be the same, runs of blanks are
-- equal.  A number may be off by the greatest of atol, rtol times its size
-- and half a unit of the last digit as written; one written as an integer
-- must be equal to an integer, and one written with a point is no integer but
-- 0 (as tensors show it), unless there is a tolerance.  nan, inf and
-- the shape in a header ("float32[3] cpu") are text.
--   ...      alone on a line: any lines, also none
--   <...>    any text within a line
--   #~ rtol=1e-3 atol=1e-6    at the end of a line: its own tolerance
-- The device in a header also matches the one under test, and so does a dtype
-- where a file runs with several; how much memory that takes is left open.

local match = {}

--
-- Lines into tokens: {num =}, {text =} or {any = true}, each with `at`
--
local NUMBERS = {
  "^[+-]?%d*%.?%d+%.?[eE][+-]?%d+", "^[+-]?%d+%.%d*", "^[+-]?%.%d+",
  "^[+-]?%d+",
}

-- Where a number that starts at i ends.  x1 and 3x4 hold none.
local function number(s, i)
  if i > 1 and s:find("^[%w_]", i - 1) then return nil end
  for _, pattern in ipairs(NUMBERS) do
    local _, to = s:find(pattern, i)
    if to then return not s:find("^[%a_]", to + 1) and to or nil end
  end
end

local function token(s, i)
  local to = number(s, i)
  if to then return {num = s:sub(i, to), at = i}, to end
  if s:find("^<%.%.%.>", i) then return {any = true, at = i}, i + 4 end
  if s:find("^-nan%f[^%w_]", i) then return {text = "nan", at = i}, i + 3 end
  local _, blanks = s:find("^%s+", i)
  if blanks then return {text = " ", at = i}, blanks end
  _, to = s:find("^[%a_][%w_]*", i)
  to = to or i
  return {text = s:sub(i, to), at = i}, to
end

local function isdtype(word)
  return word and (word:find "^u?int%d+$" or word:find "^b?float%d+$" or
                   word == "bool")
end

-- What touches "<...>" may be a part of a word, the n of "float32[n]" is text.
local function settle(list)
  for i, t in ipairs(list) do
    local before, after = list[i - 1] or {}, list[i + 1] or {}
    t.tail, t.head = before.any, after.any
    local shape = before.text == "[" and after.text == "]" and
                  isdtype((list[i - 2] or {}).text)
    if t.num and (t.tail or t.head or shape) then t.text, t.num = t.num, nil end
  end
  return list
end

local function lex(s)
  local list, i = {}, 1
  s = s:match "^%s*(.-)%s*$"
  while i <= #s do
    local t, to = token(s, i)
    list[#list + 1] = t
    i = to + 1
  end
  return settle(list)
end

--
-- Numbers
--
local function isinteger(s) return not s:find "[%.eE]" end

-- Half a unit of the last digit that was written.
local function halfunit(s)
  local body, exponent = s:match "^([^eE]*)[eE]?([+-]?%d*)$"
  local digits = body:match "%.(%d*)" or ""
  return 0.5 * 10.0 ^ ((tonumber(exponent) or 0) - #digits)
end

local function allowed(e, a, o)
  local given = math.max(o.atol or 0, (o.rtol or 0) * math.abs(tonumber(e)))
  if isinteger(e) then return isinteger(a) and not o.own and 0 or given end
  return math.max(given, halfunit(e))
end

-- Does number text `a` match `e`?  Also how far it is off and may be.
local function near(e, a, o)
  local x, y = tonumber(e), tonumber(a)
  local off, most = math.abs(x - y), allowed(e, a, o)
  local bad = off > most * (1 + 1e-9) and x ~= y
  local float = e:find("%.") and isinteger(a) and y ~= 0 and
                (o.rtol or 0) == 0 and (o.atol or 0) == 0
  return not (bad or float),
         {expected = x, integer = isinteger(e), float = float, abs = off,
          allowed = most,
          rel = off / math.max(math.abs(x), 2.0 ^ -1022)}
end

--
-- One line
--
local function isdevice(word) return word == "cpu" or word == "cuda" end

-- The word behind "]" and a blank, with ":0" if it is a device with a number.
local function deviceat(tokens, i)
  local a, b = tokens[i - 2], tokens[i - 1]
  if not (a and a.text == "]" and b.text == " ") then return nil end
  local word = tokens[i].text
  if not isdevice(word) then return nil end
  local colon, n = tokens[i + 1], tokens[i + 2]
  if word == "cuda" and colon and colon.text == ":" and n and n.num then
    return "cuda:" .. n.num, 3
  end
  return word, 1
end

local function samedtype(e, a, o)
  return o.dtype and a == o.dtype and e == o.written
end

-- Is e, which touches "<...>", the beginning or the end of a?
local function partly(e, a)
  local text, all = e.text, a.text or a.num
  if not all or text == " " then return false end
  if e.head and e.tail then return all:find(text, 1, true) ~= nil end
  return e.head and all:sub(1, #text) == text or
         e.tail and all:sub(-#text) == text
end

-- Tokens used up on both sides if those at i and j match.
local function pair(E, i, A, j, o)
  local e, a = E[i], A[j]
  if not e or not a then return nil end
  local want, n = deviceat(E, i)
  local got, m = deviceat(A, j)
  if want and got and got == o.device then return n, m end
  if e.num and a.num then
    local ok, how = near(e.num, a.num, o)
    if not ok then o.off = o.off or how end
    return ok and 1 or nil, 1
  end
  local same = e.text and (e.text == (a.text or a.num) or partly(e, a) or
                           samedtype(e.text, a.text, o))
  return same and 1 or nil, 1
end

local function from(E, i, A, j, o)
  while i <= #E do
    if E[i].any then
      if i == #E then return true end
      local within = i > 1 and E[i - 1].head and E[i + 1].tail
      for k = within and j - 1 or j, #A + 1 do -- "a<...>c" is "abc", too
        if from(E, i + 1, A, k, o) then return true end
      end
      return false
    end
    local n, m = pair(E, i, A, j, o)
    if not n then return false end
    i, j = i + n, j + m
  end
  return j > #A
end

-- What "#~" at the end of a line says; the line without it.
function match.note(line)
  local text, note = line:match "^(.-)%s+#~(.*)$"
  if not text then return line, nil end
  local o = {rtol = tonumber(note:match "rtol=([%d%.eE+-]+)"),
             atol = tonumber(note:match "atol=([%d%.eE+-]+)")}
  return text, (o.rtol or o.atol) and o
end

-- What is wrong with the note of a line, or nil.
function match.badnote(line)
  local _, note = line:match "^(.-)%s+#~(.*)$"
  for word in (note or ""):gmatch "%S+" do
    local value = word:match "^[ra]tol=(.*)$"
    if not tonumber(value) or tonumber(value) < 0 then
      return ("'%s' is no tolerance (#~ rtol=1e-3 atol=1e-6)"):format(word)
    end
  end
  if note and not note:find "%S" then return "'#~' without a tolerance" end
end

local function settings(o, own)
  return {rtol = (own or o).rtol, atol = (own or o).atol, own = own ~= nil,
          device = o.device, dtype = o.dtype, written = o.written}
end

-- "float32[2x2] cpu  16 B" without the bytes, where the dtype is another one.
local function bare(line, o)
  if o.dtype == o.written then return line end
  return (line:gsub("(%] %S+)  [%d%.]+ [KMGT]?i?B", "%1"))
end

-- Does line a match e?  If not, also how far the first number is off.
function match.line(e, a, options)
  local text, own = match.note(e)
  local o = settings(options or {}, own)
  if text == a then return true end
  if from(lex(bare(text, o)), 1, lex(bare(a, o)), 1, o) then return true end
  if o.off then o.off.own = own ~= nil end
  return false, o.off
end

-- The numbers that differ in two lines, {{e, a}, ...}; nil if there are none,
-- or if it is not only numbers.
local function different(e, a, options)
  local o = settings(options or {}, {rtol = math.huge, atol = math.huge})
  local E, A, i, j, list = lex((match.note(e))), lex(a), 1, 1, {}
  while E[i] do
    local n, m = pair(E, i, A, j, o)
    if not n then return nil end
    if n == 1 and E[i].num and tonumber(E[i].num) ~= tonumber(A[j].num) then
      list[#list + 1] = {E[i].num, A[j].num}
    end
    i, j = i + n, j + m
  end
  return j > #A and list[1] and list or nil
end

-- The unit of the last digit as written, if no number is off by more; else
-- nil.
function match.lastdigit(e, a, options)
  local most = 0
  for _, pair in ipairs(different(e, a, options) or {}) do
    local unit = 2 * halfunit(pair[1])
    local off = math.abs(tonumber(pair[1]) - tonumber(pair[2]))
    if isinteger(pair[1]) or off > unit * (1 + 1e-6) then return nil end
    most = math.max(most, unit)
  end
  return most > 0 and ("%.0e"):format(most):gsub("e([+-])0", "e%1") or nil
end

-- The smallest rtol, in two digits, with which a would match e; nil if it is
-- not only numbers that differ.
function match.covers(e, a, options)
  local worst = 0
  for _, pair in ipairs(different(e, a, options) or {}) do
    if tonumber(pair[1]) == 0 then return nil end
    worst = math.max(worst, select(2, near(pair[1], pair[2], {})).rel)
  end
  if worst == 0 then return nil end
  local unit = 10.0 ^ (math.floor(math.log(worst, 10)))
  return ("%.0e"):format(math.ceil(worst / unit - 1e-9) * unit)
    :gsub("e([+-])0", "e%1")
end

-- Is it what :time says?
function match.istiming(line)
  return line:find "^  [%d%.]+ [num]?s%f[^%a]" ~= nil or
         line:find "^  %d+ min %d+ s%f[^%a]" ~= nil
end

function match.isgap(line) return line:find "^%s*%.%.%.%s*$" ~= nil end

--
-- Many lines
--

-- A list of steps that turns the expected lines into the printed ones:
-- {same = true, e =, a =}, {e =} for what is missing, {a =} for what is new,
-- {gap = e, a =} for what a "..." stands for.  Found as a cheapest way; the
-- costs see to it that a line stands for itself before a gap takes it.
local GAP, LONE, PAIR = 1, 20, 21

local function costs(E, A, same)
  local c = {}
  for i = #E + 1, 1, -1 do
    c[i] = {}
    local gap = E[i] and match.isgap(E[i])
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

-- Appends the steps of the cheapest way.
local function walk(steps, E, A, c, same)
  local i, j = 1, 1
  while i <= #E or j <= #A do
    local gap, here = E[i] and match.isgap(E[i]), c[i][j]
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
    local same = E[i] and A[i] and match.line(E[i], A[i], options)
    steps[#steps + 1] = {e = E[i] and i, a = A[i] and i, same = same or nil}
  end
end

local LONGEST = 90000 -- lines times lines

local function between(steps, E, A, options)
  local known = {}
  local function same(i, j)
    local key = i * (#A + 1) + j
    if known[key] == nil then
      known[key] = (match.line(E[i], A[j], options))
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
    if match.isgap(e) or not match.line(e, a, options) then break end
    n = n + 1
  end
  return n
end

function match.align(E, A, options)
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

-- Most texts need no search: they match line by line.
local function plainly(E, A, options)
  if #E ~= #A then return false end
  for i = 1, #E do
    if not match.line(E[i], A[i], options) then return false end
  end
  return true
end

-- Do the printed lines match the expected ones?
function match.lines(E, A, options)
  if plainly(E, A, options) then return true end
  local reach = {[1] = true} -- where in A the lines before i may end
  for i = 1, #E do
    local now, gap, open = {}, match.isgap(E[i]), false
    for j = 1, #A + 1 do
      open = open or reach[j]
      if gap and open then now[j] = true end
      if not gap and reach[j] and A[j] and
         match.line(E[i], A[j], options) then
        now[j + 1] = true
      end
    end
    reach = now
  end
  return reach[#A + 1] == true
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
