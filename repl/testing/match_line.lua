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

-- Text without blanks at both ends. A search for those at the end from every
-- place would take long where there are many.
function match_line.trimmed(text)
  local from = text:find "%S"
  return from and text:match("^.*%S", from) or ""
end

local LONGEST = 400           -- characters of a number
local WIDEST = 1 << 15        -- bytes of a line in which numbers are looked for

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
  local _, digits = s:find("^[+-]?%d+", i)
  if digits and digits - i > LONGEST then
    return {text = s:sub(i, digits), at = i}, digits
  end
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
local function place(list, dtype, block)
  local word -- the last before the number
  for i, t in ipairs(list) do
    local text = function(k) return (list[i + k] or {}).text end
    if t.text and isdtype(t.text) and text(1) == "[" then dtype = t.text end
    if t.num then
      local scalar = text(1) == " " and text(3) == "[" and text(4) == "]" and
                     isdtype(text(2)) and text(2)
      t.dtype, t.statistic = scalar or dtype, STATISTICS[word]
      t.block = not scalar and block or nil
    end
    if t.num or t.text and t.text:find "^%a" then word = t.text end
  end
end

-- Marks what touches "<...>", which may be part of a word; the n of
-- "float32[n]" is text.
local function mark_partial(list, dtype, block)
  for i, t in ipairs(list) do
    local before, after = list[i - 1] or {}, list[i + 1] or {}
    t.tail, t.head = before.any, after.any
    local shape = before.text == "[" and after.text == "]" and
                  isdtype((list[i - 2] or {}).text)
    if t.num and (t.tail or t.head or shape) then t.text, t.num = t.num, nil end
  end
  place(list, dtype, block)
  return list
end

local function lex(s, dtype, block)
  local list, i = {}, 1
  s = match_line.trimmed(s)
  if #s > WIDEST then return {{text = s, at = 1}} end
  while i <= #s do
    local t, to = token(s, i)
    list[#list + 1] = t
    i = to + 1
  end
  return mark_partial(list, dtype, block)
end

--
-- Numbers
--
local FLOAT64, FLOAT32 = closeness.kind "float64", closeness.kind "float32"

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

-- May a number be the value of a float32, as item() gives it, and how many
-- digits has it?
local function single(text)
  local x = tonumber(text)
  local digits = text:gsub("[eE].*", ""):gsub("%D", ""):gsub("^0+", "")
  if math.abs(x) > 3.4e38 then return false, 0 end
  local near = string.unpack("f", string.pack("f", x))
  return near == x or #digits >= 12 and math.abs(near - x) <= halfunit(text),
         #digits
end

-- Are two numbers values of float32, and not by chance? A number of ten digits
-- hardly ever is.
local function both_single(a, b)
  local yes, n = single(a)
  local too, m = single(b)
  return yes and too and math.max(n, m) >= 10
end

-- The largest number in the lines of a tensor, of which the first of a line may
-- be an index and the last line statistics.
local function largest(block)
  if block.most then return block.most end
  block.most = 0
  for _, text in ipairs(block) do
    text = text:gsub("^%[[^%]]*%]", ""):gsub("  mean .*$", "")
    for word in text:gmatch "%S+" do
      local x = math.abs(tonumber(word) or 0)
      if x < math.huge then block.most = math.max(block.most, x) end
    end
  end
  return block.most
end

-- How far rounding may move an element that is small beside the largest.
local function noise(e, kind)
  if not e.block or not kind or not kind.bits then return 0 end
  return math.min(kind.atol, kind.rtol * largest(e.block))
end

-- How far the number e may be off, and whose rule that is.
local function tolerance(e, a, o)
  local x, values_match = math.abs(tonumber(e.num)), o.values_match and e.dtype
  if o.rtol or o.atol then
    local r, a = (o.rtol or 0) * x, o.atol or 0
    return math.max(r, a), r > a and "rtol" or "atol"
  end
  local kind = e.dtype and closeness.kind(e.dtype)
  local least = noise(e, kind)
  if rounded(e) then
    local most = (values_match and 2 or 1) * halfunit(e.num)
    if most >= least then return most, "digits as written" end
    return least, ("precision of %s, of the largest"):format(kind.name)
  end
  if not kind or not kind.bits then
    kind = both_single(e.num, a.num) and FLOAT32 or FLOAT64
  end
  return math.max(kind.rtol * x, values_match and kind.atol or 0, least),
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
  how.allowed, how.by = tolerance(e, a, o)
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
function match_line.iselements(text)
  return text:find "^%s+%S" or text:find "^%[" or text:find "^min " or
         text:find "^!" or text:find "^%.%.%." or text:find "^true %d"
end

-- Prepares lines for comparison: the text, the dtype of the elements it shows,
-- the tolerance if it is `expected`, and the tokens, which are made when
-- needed.
function match_line.parse(lines, expected)
  local list, dtype, block = {}, nil, nil
  for i, text in ipairs(lines) do
    local own
    if expected then text, own = match_line.note(text) end
    if not match_line.iselements(text) then dtype = nil end
    list[i] = {text = text, own = own, dtype = dtype,
               block = expected and dtype and block or nil}
    if list[i].block then block[#block + 1] = text end
    local new = header(text)
    if new then dtype, block = new, {} end
  end
  return list
end

local function tokens(l, o)
  l.tokens = l.tokens or lex(bare(l.text, o), l.dtype, l.block)
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
