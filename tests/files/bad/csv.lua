-- SPDX-License-Identifier: MIT
-- Texts of numbers: quotes, comments, blanks, ends of lines, and odd fields.

local choose = dofile(HERE .. "bad/random.lua")
local random = math.random

local FIELDS <const> = {"", "nan", "NaN", "-nan", "nan(7)", "inf", "-Infinity",
  "1e999", "-1e-999", "0x10", "1_000", "1,5", "+", "-", ".", "1.", ".5", "1e",
  "1e+", "--1", "+1", "1 2", '"1"', '"1', '1"', '""', '"""', '"a""b"', "'1'",
  "9223372036854775807", "9223372036854775808", "-9223372036854775809",
  "9007199254740993", "99999999999999999999", ("9"):rep(399), ("9"):rep(400),
  ("1"):rep(5000), "1e" .. ("0"):rep(300) .. "1", "true", "None", "N/A", "1\0",
  "\0001", "١", "１", "\xff\xfe", "\xef\xbb\xbf1", "1\v", "\f1", "#", "a#b",
  "\27[31m", "1\r2", "=1+1"}
local ENDS <const> = {"\n", "\r\n", "\r", "", "\n\n", "\n\r", "\0\n"}

local function utf16(s)
  return "\xff\xfe" .. s:gsub(".", "%0\0")
end

local function rows(t, d, ending)
  local lines = {}
  for i = 1, #t do
    local fields = {}
    for k = 1, #t[i] do
      local text = t[i][k]
      fields[k] = choose.once_in(9) and '"' .. text .. '"' or
                  choose.once_in(9) and " " .. text .. " " or text
    end
    lines[i] = table.concat(fields, d) .. ending
    if i > 1 and choose.once_in(9) then
      lines[i] = "# a comment" .. ending .. lines[i]
    end
  end
  return lines
end

local changes = {
  function(t) choose.from(t)[random(#t[1])] = choose.from(FIELDS) end,
  function(t) choose.from(t)[random(#t[1])] = choose.from(FIELDS) end,
  function(t) table.remove(choose.from(t)) end,
  function(t) table.insert(choose.from(t), "1") end,
}

-- A matrix of numbers, and the texts of its elements.
local function matrix()
  local n, m, texts = random(1, 6), random(1, 4), {}
  local x = (nacre.randn(n, m) * 1000):to "int64"
  for i = 1, n do
    texts[i] = {}
    for k = 1, m do texts[i][k] = tostring(x[{i, k}]) end
  end
  return x, texts
end

-- How the text is read, and so written: with names of the columns, by another
-- delimiter, with -1 for a field that is missing.
local function options(x, texts)
  local o = {header = choose.once_in(4) or nil,
             delimiter = choose.once_in(4) and ";" or nil,
             missing = #texts[1] > 1 and choose.once_in(4) and -1 or nil}
  if o.missing then
    x[{1, 1}] = o.missing
    texts[1][1] = ""
  end
  if o.header then
    local names = {}
    for k = 1, #texts[1] do names[k] = "c " .. k end
    table.insert(texts, 1, names)
  end
  return o
end

local maker = {ratio = 40, text = true, format = "csv"}

function maker.make(damaged)
  local x, texts = matrix()
  local o = options(x, texts)
  if damaged and not choose.once_in(3) then choose.from(changes)(texts) end
  local ending = damaged and choose.from(ENDS) or choose.from {"\n", "\r\n"}
  local s = table.concat(rows(texts, o.delimiter or ",", ending))
  if damaged and choose.once_in(3) then s = choose.damage(s) end
  if damaged and choose.once_in(30) then s = utf16(s) end
  return {{"x.csv", s}}, not damaged and x or nil, o
end

return maker
