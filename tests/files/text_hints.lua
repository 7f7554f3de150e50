-- SPDX-License-Identifier: MIT
-- Hints for text files: the options of a hint, typed as they stand instead of
-- those that were given, read the file, or lead to a refusal without options.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, write = C.is, C.write

local base = os.tmpname()

-- Reads the text by the hints; returns the result, and how many were followed.
local function follow(text, options, ending)
  local path = base .. (ending or ".csv")
  write(path, text)
  for step = 0, 3 do
    local ok, t = pcall(nacre.load, path, options)
    if ok then return t, step end
    local given = tostring(t.hint):match "^%b{}"
    if not given then return t, step end
    options = assert(load("return " .. given), given)()
  end
  error("the hints lead in a circle: " .. text)
end

local function reads(wanted, steps, text, options, ending)
  local t, n = follow(text, options, ending)
  assert(nacre.is_tensor(t), tostring(t))
  is(t:nan_to_num(-9), wanted)
  assert(n == steps, text)
end

-- Delimiters, decimal commas, headers, and several of them.
reads("{{1.5,2.5}}", 1, "1,5;2,5\n")
reads("{{1.5,2.5}}", 1, "1,5;2,5\n", {delimiter = ";"})
reads("{{1.5,-9.0},{3.0,-4.25}}", 1, "1,5;\n3;-4,25\n", {delimiter = ";"})
reads("{{1.5,2.5},{3.0,-4.25}}", 1, "a\tb\n1,5\t2,5\n3\t-4,25\n")
reads("{{1.5,2.5}}", 1, "1,5\t2,5\n", nil, ".tsv")
reads("{{1,2}}", 1, "1;2\n")
reads("{{1,2}}", 1, "a|b\n1|2\n")
reads("{{1,2}}", 1, "1,2\n", nil, ".txt")
reads("{{1,2},{3,4}}", 1, "x,y\r1,2\r3,4\r")
reads("{{1,2}}", 0, "1,2\r")

-- Missing values, and what stands for them, in one step.
reads("{{1.0,-9.0,3.0}}", 1, "1,,3\n")
reads("{{1.0,-9.0},{-9.0,2.0},{3.0,-9.0}}", 1, "1,NA\n-,2\n3,\n")
reads("{{1,0,3}}", 1, "1,,3\n", {dtype = "int32"})
reads("{{1,0},{2,5}}", 1, "1,N/A\n2,5\n", {dtype = "int64"})
reads("{{1.0,5.0},{-9.0,2.0}}", 1, "t,a,b\nx,1,5\ny,null,2\n")
reads("{{1.0},{2.0}}", 1, "1.0,\n2.0,\n")
reads("{{1},{2}}", 1, "1,x,\n2,y,\n")
reads("{{1,2},{3,4}}", 1, "a,b,\n1,2,\n3,4,\n")
for _, word in ipairs {"NA", "n/a", "N/A", "NULL", "null", "None", "?", "-",
                       ".", "missing", "#N/A"} do
  reads("{{1.0,-9.0},{2.0,3.5}}", 1, ("1,%s\n2,3.5\n"):format(word))
end
is(nacre.load(base .. ".csv", {na_values = {"#N/A", "2"}}):nan_to_num(-9),
   "{{1.0,-9.0},{-9.0,3.5}}")
is(nacre.load(base .. ".csv", {na_values = "#N/A", missing = 7}),
   "{{1.0,7.0},{2.0,3.5}}")

-- A table of dates, texts and missing values, whatever is given already.
local sales = "date,shop,n,price,left\n2020-01-01,Kiel,3,2.5,\n" ..
              "2020-01-02,Bonn,NA,0.25,7\n2020-01-03,,5,-,9\n"
local SALES = "{{3.0,2.5,-9.0},{-9.0,0.25,7.0},{5.0,-9.0,9.0}}"
reads(SALES, 1, sales)
reads(SALES, 1, sales, {header = true})
reads("{{2.5},{0.25},{-9.0}}", 1, sales, {header = true, usecols = {"price"}})
reads("{{2.5,-9.0},{0.25,7.0},{-9.0,9.0}}", 1, sales,
      {header = true, usecols = {4, 5, 1}})
reads("{{0.25,7.0},{-9.0,9.0}}", 1, sales,
      {skip = 2, usecols = {4, 5}, missing = 0 / 0})
local t = follow(sales, {header = true, columns = true})
assert(t.n.shape[1] == 3 and t.left[2] == 7 and not t.date)
write(base .. ".csv", sales)
local pipe <close> = io.popen("cat " .. base .. ".csv")
local _, e = pcall(nacre.load, pipe, {format = "csv", header = true,
                                      dtype = "float64"})
assert(e.hint:find('{format="csv", dtype="float64", header=true, usecols={3',
                   1, true), e.hint)

-- R writes one name fewer than there are columns.
reads("{{1,5},{2,6}}", 1, "a b\n1 5\n2 6\n", {header = true}, ".csv")
reads("{{1,5},{2,6}}", 1, '"x","y"\n"r1",1,5\n"r2",2,6\n', {header = true})
reads("{{1.0,1.0,-9.0},{2.0,2.0,6.0}}", 1,
      '"x","y"\n"1",1.0,NA\n"2",2,6\n', {header = true})
reads("{{1,2},{3,4}}", 1, "a,b\n1,2,\n3,4,\n", {header = true})

-- What is too large or too small for float64.
for _, text in ipairs {"1e400", "-1e400", "1e-400", "-0.5e-330", "1.5e309",
                       "123456789e301", ("9"):rep(309) .. ".5",
                       "1" .. ("0"):rep(320), "1e99999"} do
  for _, row in ipairs {text .. ",2\n", "0.5\n" .. text .. "\n", "2," .. text,
                        '"' .. text .. '"'} do
    write(base .. ".csv", row)
    for _, options in ipairs {{}, {columns = true}} do
      local ok, e = pcall(nacre.load, base .. ".csv", options)
      assert(not ok, row)
      assert(tostring(e):find "float64", tostring(e))
      local v, n = follow(row, options)
      assert(n == 1, row)
      v = nacre.is_tensor(v) and v or nacre.cat(v)
      assert(v.dtype == "float64")
    end
  end
end
write(base .. ".csv", "inf,-Infinity,0e5,-0.0e-999,0.000e400\n")
assert(nacre.load(base .. ".csv").shape[2] == 5)

-- Texts alone are refused, and nothing is promised.
for _, text in ipairs {"a,b\nc,d\n", "x\n", "2020-01-01\n", "1,2\nx,y\n"} do
  local e, n = follow(text)
  assert(not nacre.is_tensor(e) and n == 0, text)
  assert(e.hint:find("io.lines", 1, true), e.hint)
end

local fails = C.fails
write(base .. ".csv", "1,2\n")
fails("decimal and delimiter are the same", '{delimiter=";", decimal=","}',
      nacre.load, base .. ".csv", {decimal = ","})
fails("decimal must be", nacre.load, base .. ".csv", {decimal = ";"})
fails("na_values must be a list of strings", nacre.load, base .. ".csv",
      {na_values = {-1}})

for _, ending in ipairs {"", ".csv", ".tsv", ".txt"} do
  os.remove(base .. ending)
end
