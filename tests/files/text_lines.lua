-- SPDX-License-Identifier: MIT
-- Lines of CSV text: every line end, and line ends in quotes, give the same
-- table, with a header and without, from files and from pipes.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, read, write = C.fails, C.is, C.read, C.write

local csv = os.tmpname() .. ".csv"
local ENDS = {LF = "\n", CRLF = "\r\n", CR = "\r", ["CR CR LF"] = "\r\r\n"}

local function load(text, options)
  write(csv, text)
  local t, names = nacre.load(csv, options)
  local pipe <close> = io.popen("cat " .. csv)
  local given = {format = "csv"}
  for key, v in pairs(options or {}) do given[key] = v end
  local t2, names2 = nacre.load(pipe, given)
  if nacre.is_tensor(t) then assert(t == t2) end
  assert(not names or table.concat(names, "|") == table.concat(names2, "|"))
  return t, names
end

-- The rows as text, each with the same end; the last one with or without.
local function joined(rows, ending, last)
  return table.concat(rows, ending) .. (last and ending or "")
end

for name, ending in pairs(ENDS) do
  for _, last in ipairs {true, false} do
    -- plain numbers take another path than quoted ones and long ones
    for _, rows in ipairs {{"1,2", "3,4"}, {'"1","2"', "3,4"},
                           {"1.5e-7,-2", "3, 4 "},
                           {"1,0000000000000000000000000002", "3,4"}} do
      local t = load(joined(rows, ending, last))
      assert(t.shape[1] == 2 and t.shape[2] == 2, name)
      assert(t[2][1] == 3 and t[2][2] == 4, name)
      local with, names = load(joined({"a,b", "", rows[1], rows[2]}, ending,
                                      last), {header = true})
      assert(with == t and names[1] == "a" and names[2] == "b", name)
      assert(load(joined({"x;y", rows[1], rows[2]}, ending, last),
                  {skip = 1}) == t, name)
      local columns = load(joined(rows, ending, last), {columns = true})
      assert(columns[2][2] == 4, name)
    end
    local text = joined({"# 7", "1,true", "", "  ", "0,False", "# 8"}, ending,
                        last)
    is(load(text, {dtype = "bool"}), "{{true,true},{false,false}}")
    is(load(joined({"1,", ",2"}, ending, last), {missing = 0}),
       "{{1,0},{0,2}}")
    is(load(joined({"1", "2", "3"}, ending, last)), "{{1},{2},{3}}")
  end
  -- each CR ends a line, unless LF follows
  local n = name == "CR CR LF" and 3 or 2
  write(csv, joined({"1,2", "3,x"}, ending, true))
  fails(("line %d, column 2: \"x\""):format(n), nacre.load, csv)
end

-- A line end of its own for each line, as in files that were joined.
is(load "1,2\r3,4\n5,6\r\n7,8\n\r\n\r9,10", "{{1,2},{3,4},{5,6},{7,8},{9,10}}")

-- A line end in quotes belongs to the field.
for name, ending in pairs(ENDS) do
  for _, inner in pairs(ENDS) do
    local head = ('"a%sb","c""%s,"'):format(inner, inner)
    local t, names = load(joined({head, "1,2", "3,4"}, ending),
                          {header = true})
    is(t, "{{1,2},{3,4}}")
    assert(names[1] == "a" .. inner .. "b", name)
    assert(names[2] == 'c"' .. inner .. ",", name)
    is(load(joined({head, "1,2", "3,4"}, ending), {skip = 1}), "{{1,2},{3,4}}")
    t = load(joined({"n,t", '1,"x' .. inner .. 'y"', "2," .. '"z"'}, ending),
             {header = true, usecols = "n"})
    is(t, "{{1},{2}}")
    is(load(joined({'# "not closed', "1,2"}, ending)), "{{1,2}}")
  end
end
write(csv, 'n,t\n1,"x\ny\rz"\n2,q\nr,3\n')
fails('line 6, column 1: "r"', nacre.load, csv, {header = true, usecols = "n"})

-- Quotes that begin no field, or are not closed, are characters.
local t, names = load('5" disk,b\n1,2\n', {header = true})
assert(names[1] == '5" disk' and t.shape[1] == 1)
t, names = load('"a"x",b\n1,2\n', {header = true})
is(t, "{{1,2}}")
write(csv, '1,2\n"3,4\n5,6\n')
fails('line 2, column 1: ""3" is not a valid number', nacre.load, csv)

-- What is written is read.
for _, odd in ipairs {"a\nb", "a\rb", "a\r\nb", "\n", "#", 'a"b\n"', ",",
                      " a "} do
  nacre.save(csv, nacre.ones(2, 2), {header = {odd, "c"}})
  t, names = nacre.load(csv, {header = true})
  assert(t == nacre.ones(2, 2) and names[2] == "c")
  assert(names[1] == odd or odd == " a ", names[1])
  assert(nacre.load(csv, {header = true, usecols = 2}).shape[2] == 1)
end

-- Random texts, put together of fields by the rules.
math.randomseed(7)
for _ = 1, 300 do
  local rows, wanted = {}, {}
  local columns = math.random(3)
  for r = 1, math.random(4) do
    local fields = {}
    wanted[r] = {}
    for c = 1, columns do
      local v = math.random(0, 999)
      wanted[r][c] = v
      fields[c] = math.random(4) == 1 and ('"%d"'):format(v) or ("%d"):format(v)
    end
    local ends = {"\n", "\r", "\r\n", "\r\r\n"}
    rows[r] = table.concat(fields, ",") .. ends[math.random(4)]
  end
  assert(load(table.concat(rows)) == nacre.tensor(wanted))
end

os.remove(csv)
