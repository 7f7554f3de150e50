-- SPDX-License-Identifier: MIT
--
-- match_line.lua - does a printed line match the expected one?
--
-- Equal lines match. Otherwise a line is numbers and text. Text must be equal,
-- runs of blanks count as one, and a number may differ by
--
--   its tolerance        where one is given: max(atol, rtol * |expected|)
--   half a unit          of the last digit, if the display rounded it: a
--   number of a tensor with 4 decimals, a power of ten or 5 significant
--   digits, a statistic with 4
--   the dtype's rtol     if it was shown in full: that of the tensor that
--   shows it, of float64 for any other number
--
-- An integer must be equal, and is not a float. nan, inf and the shape in a
-- header ("float32[3] cpu") are text; -nan is nan.
--
--   <...>    any text within a line
--   #~ rtol=1e-3 atol=1e-6    at the end of a line: its own tolerance
--
-- A device in a header also matches the device under test, and a dtype the one
-- under test if a file runs with several; the memory is then not compared.

local closeness = require "nacre.closeness"
local numbers = require "nacre.number_text"

local match_line = {}

--
-- Lines into tokens: {num =}, {text =} or {any = true}, each with `at`
--
local NUMBERS = {
  "^[+-]?%d*%.?%d+%.?[eE][+-]?%d+", "^[+-]?%d+%.%d*", "^[+-]?%.%d+",
  "^[+-]?%d+",
}

-- The end of the number at i. x1 and 3x4 hold none, and 02 is part of a date
-- or the like.
local function number(s, i)
  if i > 1 and s:find("^[%w_]", i - 1) or s:find("^[+-]?0%d", i) then
    return nil
  end
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
  return word ~= nil and closeness.kind(word) ~= nil
end

local STATISTICS = {min = true, max = true, mean = true, std = true,
                    all = true}

-- Adds to the numbers of a line what the display says: the dtype, and is it a
-- statistic? `dtype' is that of the tensor whose elements the line shows.
local function place(list, dtype)
  local word -- the last before the number
  for i, t in ipairs(list) do
    local text = function(k) return (list[i + k] or {}).text end
    if t.text and isdtype(t.text) and text(1) == "[" then dtype = t.text end
    if t.num then
      local scalar = text(1) == " " and text(3) == "[" and text(4) == "]" and
                     isdtype(text(2)) and text(2)
      t.dtype, t.statistic = scalar or dtype, STATISTICS[word]
    end
    if t.num or t.text and t.text:find "^%a" then word = t.text end
  end
end

-- Marks what touches "<...>", which may be part of a word; the n of
-- "float32[n]" is text.
local function mark_partial(list, dtype)
  for i, t in ipairs(list) do
    local before, after = list[i - 1] or {}, list[i + 1] or {}
    t.tail, t.head = before.any, after.any
    local shape = before.text == "[" and after.text == "]" and
                  isdtype((list[i - 2] or {}).text)
    if t.num and (t.tail or t.head or shape) then t.text, t.num = t.num, nil end
  end
  place(list, dtype)
  return list
end

local function lex(s, dtype)
  local list, i = {}, 1
  s = s:match "^%s*(.-)%s*$"
  while i <= #s do
    local t, to = token(s, i)
    list[#list + 1] = t
    i = to + 1
  end
  return mark_partial(list, dtype)
end

--
-- Numbers
--
local FLOAT64 = closeness.kind "float64"

local function written(s) return s:find "[%.eE]" ~= nil end

-- Is a number a float? A tensor shows the float 0 as "0", and whole statistics
-- without a point.
local function isfloat(t)
  if written(t.num) then return true end
  local kind = t.dtype and closeness.kind(t.dtype)
  return kind ~= nil and kind.bits ~= nil and
         (t.statistic or tonumber(t.num) == 0) or false
end

-- Half a unit of the last digit that was written.
local function halfunit(s)
  local body, exponent = s:match "^([^eE]*)[eE]?([+-]?%d*)$"
  local digits = body:match "%.(%d*)" or ""
  return 0.5 * 10.0 ^ ((tonumber(exponent) or 0) - #digits)
end

-- Did the display round it?
local function rounded(t)
  local kind = t.dtype and closeness.kind(t.dtype)
  return kind ~= nil and kind.bits ~= nil and
         numbers.rounded(t.num, t.statistic)
end

-- How far the number e may be off, and whose rule that is.
local function tolerance(e, o)
  local x, values_match = math.abs(tonumber(e.num)), o.values_match and e.dtype
  if o.rtol or o.atol then
    local r, a = (o.rtol or 0) * x, o.atol or 0
    return math.max(r, a), r > a and "rtol" or "atol"
  end
  if rounded(e) then
    return (values_match and 2 or 1) * halfunit(e.num), "digits as written"
  end
  local kind = e.dtype and closeness.kind(e.dtype) or FLOAT64
  if not kind.bits then kind = FLOAT64 end
  return math.max(kind.rtol * x, values_match and kind.atol or 0),
         "precision of " .. kind.name
end

-- Does number a match e? Also returns how far it is off and may be. A rounded
-- number may differ by half a unit from one shown in full, unless its value is
-- known otherwise (`values_match`).
local function number_matches(e, a, o)
  local x, y = tonumber(e.num), tonumber(a.num)
  local off, how = math.abs(x - y), {expected = x}
  local integer = not isfloat(e)
  how.doubt = not integer and not o.values_match and not rounded(e) and
              rounded(a) and halfunit(a.num) or 0
  how.abs, how.rel = off, off / math.abs(x)
  if not o.own and integer ~= not isfloat(a) then
    how.kinds = integer and "a float where an integer was" or
                "an integer where a float was"
    return false, how
  end
  if integer and not o.own then
    how.allowed, how.by = 0, "an integer as written"
    return e.num == a.num, how
  end
  how.allowed, how.by = tolerance(e, o)
  return off + how.doubt <= how.allowed * (1 + 1e-9), how
end

--
-- One line
--
local function isdevice(word) return word == "cpu" or word == "cuda" end

-- The word after "]" or "B", as in the headers of tensors and modules, and a
-- blank; with ":0" if it is a device with a number.
local function deviceat(tokens, i)
  local a, b = tokens[i - 2], tokens[i - 1]
  if not (a and (a.text == "]" or a.text == "B") and b.text == " ") then
    return nil
  end
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

-- Is e, which touches "<...>", a prefix or a suffix of a?
local function is_part(e, a)
  local text, all = e.text, a.text or a.num
  if not all or text == " " then return false end
  if e.head and e.tail then return all:find(text, 1, true) ~= nil end
  return e.head and all:sub(1, #text) == text or
         e.tail and all:sub(-#text) == text
end

-- How many tokens of both lists match at i and j.
local function match_tokens(E, i, A, j, o)
  local e, a = E[i], A[j]
  if not e or not a then return nil end
  local want, n = deviceat(E, i)
  local got, m = deviceat(A, j)
  if want and got and got == o.device then return n, m end
  if e.num and a.num then
    if e.num == a.num then return 1, 1 end
    local ok, how = number_matches(e, a, o)
    if not ok then o.off = o.off or how end
    return ok and 1 or nil, 1
  end
  local same = e.text and (e.text == (a.text or a.num) or is_part(e, a) or
                           samedtype(e.text, a.text, o))
  return same and 1 or nil, 1
end

local function match_from(E, i, A, j, o)
  while i <= #E do
    if E[i].any then
      if i == #E then return true end
      local within = i > 1 and E[i - 1].head and E[i + 1].tail
      for k = within and j - 1 or j, #A + 1 do -- "a<...>c" is "abc", too
        if match_from(E, i + 1, A, k, o) then return true end
      end
      return false
    end
    local n, m = match_tokens(E, i, A, j, o)
    if not n then return false end
    i, j = i + n, j + m
  end
  return j > #A
end

-- The tolerance of "#~" at the end of a line, and the line without it.
function match_line.note(text)
  if not text:find("#~", 1, true) then return text, nil end
  local body, note = text:match "^(.-)%s+#~(.*)$"
  if not body then return text, nil end
  local o = {rtol = tonumber(note:match "rtol=([%d%.eE+-]+)"),
             atol = tonumber(note:match "atol=([%d%.eE+-]+)")}
  return body, (o.rtol or o.atol) and o
end

-- What is wrong with the note of a line, or nil.
function match_line.badnote(text)
  local _, note = text:match "^(.-)%s+#~(.*)$"
  for word in (note or ""):gmatch "%S+" do
    local value = word:match "^[ra]tol=(.*)$"
    if not tonumber(value) or tonumber(value) < 0 then
      return ("'%s' is not a tolerance (#~ rtol=1e-3 atol=1e-6); if it was " ..
              "printed, write <...> for the #"):format(word)
    end
  end
  if note and not note:find "%S" then return "'#~' without a tolerance" end
end

-- "float32[2x2] cpu  16 B" without the bytes, if the dtype differs.
local function bare(text, o)
  if o.dtype == o.written then return text end
  return (text:gsub("(%] %S+)  [%d%.]+ [KMGT]?i?B", "%1"))
end

-- The dtype of the tensor whose elements follow a header line; nil if none.
local function header(text)
  local dtype
  for word in text:gmatch "%f[%w](%w+)%[[%dx]+%] [%w:]+  [%d%.]+ [KMGT]?i?B" do
    dtype = isdtype(word) and word or nil
  end
  return dtype
end

-- May a line show elements or statistics?
local function iselements(text)
  return text:find "^%s+%S" or text:find "^%[" or text:find "^min " or
         text:find "^!" or text:find "^%.%.%."
end

-- Prepares lines for comparison: the text, the dtype of the elements it shows,
-- the tolerance if it is `expected`, and the tokens, which are made when
-- needed.
function match_line.parse(lines, expected)
  local list, dtype = {}, nil
  for i, text in ipairs(lines) do
    local own
    if expected then text, own = match_line.note(text) end
    if not iselements(text) then dtype = nil end
    list[i] = {text = text, own = own, dtype = dtype}
    dtype = header(text) or dtype
  end
  return list
end

local function tokens(l, o)
  l.tokens = l.tokens or lex(bare(l.text, o), l.dtype)
  return l.tokens
end

local function settings(o, own)
  return {rtol = (own or o).rtol, atol = (own or o).atol, own = own,
          device = o.device, dtype = o.dtype, written = o.written,
          values_match = o.values_match}
end

-- Does the parsed line a match e? If not, also how far the first number is
-- off.
function match_line.same(e, a, options)
  if e.text == a.text then return true end
  local o = settings(options, e.own)
  if match_from(tokens(e, options), 1, tokens(a, options), 1, o) then
    return true
  end
  if o.off and o.off.by then
    o.off.own, o.off.rtol = e.own ~= nil, o.rtol
  end
  return false, o.off
end

-- The numbers that differ in two lines, {{e, a, how}, ...}; nil if none do or
-- if the text differs too.
local function differing_numbers(e, a, options)
  local o = settings(options, {rtol = math.huge, atol = math.huge})
  local E, A = tokens(e, options), tokens(a, options)
  local i, j, list = 1, 1, {}
  while E[i] do
    local n, m = match_tokens(E, i, A, j, o)
    if not n then return nil end
    if n == 1 and E[i].num and E[i].num ~= A[j].num then
      local _, how = number_matches(E[i], A[j], o)
      if how.abs + how.doubt > 0 then list[#list + 1] = {E[i], A[j], how} end
    end
    i, j = i + n, j + m
  end
  return j > #A and list[1] and list or nil
end

local function short(x) return (("%.0e"):format(x):gsub("e([+-])0", "e%1")) end

-- The unit of the last digit if all differences are within one and come from
-- rounding; else nil.
function match_line.lastdigit(e, a, options)
  local most = 0
  for _, one in ipairs(differing_numbers(e, a, options) or {}) do
    local x, y, how = table.unpack(one)
    local last = rounded(x) and x or rounded(y) and y
    if not last or not isfloat(x) then return nil end
    local unit = 2 * halfunit(last.num)
    if how.abs + how.doubt > unit * (1 + 1e-6) then return nil end
    most = math.max(most, unit)
  end
  return most > 0 and short(most) or nil
end

-- The smallest rtol, with one digit, with which a would match e; nil if more
-- than numbers differ.
function match_line.covers(e, a, options)
  local worst = 0
  for _, one in ipairs(differing_numbers(e, a, options) or {}) do
    local x = math.abs(tonumber(one[1].num))
    if x == 0 then return nil end
    worst = math.max(worst, (one[3].abs + one[3].doubt) / x)
  end
  if worst == 0 or worst == math.huge then return nil end
  local unit = 10.0 ^ (math.floor(math.log(worst, 10)))
  return short(math.ceil(worst / unit - 1e-9) * unit)
end

-- Is this the output of :time?
function match_line.istiming(text)
  return text:find "^  [%d%.]+ [num]?s%f[^%a]" ~= nil or
         text:find "^  %d+ min %d+ s%f[^%a]" ~= nil
end

function match_line.isgap(text) return text:find "^%s*%.%.%.%s*$" ~= nil end

return match_line
