-- SPDX-License-Identifier: MIT
-- .csv, .tsv and .txt files: what is read, what is refused and where, and that
-- what is written has the digits that give the same elements again.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local read, write = C.read, C.write

local base = os.tmpname()
local csv, tsv, txt = base .. ".csv", base .. ".tsv", base .. ".txt"

local function load(text, options, name)
  write(name or csv, text)
  return nacre.load(name or csv, options)
end

-- ---- what is read

-- The elements decide, as in nacre.tensor.
local t = load "1,2\n3,4\n"
is(t, "{{1,2},{3,4}}")
assert(t.dtype == "int64")
t = load "1,2\n3,4.5"
is(t, "{{1.0,2.0},{3.0,4.5}}")
assert(t.dtype == "float32")
is(load "9223372036854775807,-9223372036854775808\n",
   "{{9223372036854775807,-9223372036854775808}}")
assert(load("9223372036854775808\n").dtype == "float32")
is(load "+1, -0 ,\t3\n", "{{1,0,3}}")
is(load "1e3,-2.5E-1,.5,5.\n", "{{1000.0,-0.25,0.5,5.0}}")
t = load "nan,inf,-Infinity,NaN\n"
assert(t[1][1] ~= t[1][1] and t[1][2] == 1 / 0 and t[1][3] == -1 / 0)
shape(load "5", 1, 1)
shape(load "1\n2\n3", 3, 1)

-- Line ends of every system, a byte order mark, comments, empty lines.
is(load "\xef\xbb\xbf1,2\r\n\r\n# a comment, with 7\r\n3,4\r\n  \r\n",
   "{{1,2},{3,4}}")
is(load '"1","2"\n"3" , " 4 "\n', "{{1,2},{3,4}}")
shape(load "", 0, 0)
shape(load "# nothing\n\n", 0, 0)
assert(load("").dtype == "float32")

-- Delimiters: of the name, or given.
is(load("1\t2\n3\t4\n", nil, tsv), "{{1,2},{3,4}}")
is(load("  1   2\t3 \n4 5 6\n\t\n", nil, txt), "{{1,2,3},{4,5,6}}")
is(load("1;2\n", {delimiter = ";"}), "{{1,2}}")
is(load("1|2\n", {delimiter = "|"}, txt), "{{1,2}}")
is(load("1 2  3\n", {delimiter = " "}), "{{1,2,3}}")
is(load("1\t2\n", {delimiter = "\t"}), "{{1,2}}")

-- Lines before the first, and names.
is(load("made by hand\n\n1,2\n", {skip = 2}), "{{1,2}}")
local names
t, names = load("x, \"y, z\" ,\"a \"\"b\"\"\"\n1,2,3\n", {header = true})
is(t, "{{1,2,3}}")
assert(table.concat(names, "|") == 'x|y, z|a "b"', table.concat(names, "|"))
t, names = load("#x,y\n1,2\n", {header = true})  -- as NumPy writes it
assert(names[1] == "x" and names[2] == "y" and t[1][2] == 2)
t, names = load("x,y\n", {header = true})
shape(t, 0, 2)
t, names = load("first\nx y\n1 2\n", {skip = 1, header = true}, txt)
assert(#names == 2 and names[2] == "y")
assert(select("#", load "1\n") == 1)

-- A dtype, a device, a gradient.
for _, dtype in ipairs(C.dtypes) do
  t = load("0,1\n1,1\n", {dtype = dtype})
  assert(t.dtype == dtype and t == nacre.tensor({{0, 1}, {1, 1}},
                                                {dtype = dtype}))
end
is(load("true,False\n", {dtype = "bool", device = "cpu"}), "{{true,false}}")
assert(load("1\n", {dtype = "float64", requires_grad = true}).requires_grad)
assert(load("0.1\n", {dtype = "float64"})[1][1] == 0.1)

-- A -0 is one of the integers until there is a float.
for _, options in ipairs {{}, {columns = true}} do
  t = load("-0\n1\n0.5\n", options)
  assert(1 / t[1][1] == -1 / 0)
end
t = load('"-0"\n1\n0.5\n')
assert(1 / t[1][1] == -1 / 0)
is(load("-0,1\n"), "{{0,1}}")

-- What is missing.
t = load("1,,3\n,5,\n", {missing = 0 / 0})
assert(t.dtype == "float32" and t[1][2] ~= t[1][2] and t[2][3] ~= t[2][3])
is(load("1,,3\n", {missing = -1}), "{{1,-1,3}}")
is(load('1,""\n', {missing = -1}), "{{1,-1}}")
is(load("1\t\t3\n", {missing = 0}, tsv), "{{1,0,3}}")
is(load("\t2\n", {missing = 0}, tsv), "{{0,2}}")

-- ---- what is refused, and where

local function refused(text, says, hint, options, name)
  write(name or csv, text)
  local e = fails(says, hint, nacre.load, name or csv, options)
  assert(tostring(e):find("load: ", 1, true))
end
refused("1,2\n3,x4\n", 'line 2, column 2: "x4" is not a valid number')
refused("x,y\n1,2\n", 'line 1, column 1: "x" is not a valid number',
        "{header=true} reads the first line as names")
refused("1;2\n3;4\n", 'line 1, column 1: "1;2" is not a valid number',
        '{delimiter=";"}')
refused("1\t2\n", 'column 1: "1\\x092" is not a valid number',
        '{delimiter="\\t"}')
refused("1,2\n", 'column 1: "1,2" is not a valid number', '{delimiter=","}',
        nil, txt)
refused("1,2\n\n# x\n3\n", "line 4 has 1 columns, the line before it has 2")
refused("a,b,c\n1,2\n", "line 2 has 2 columns, the header has 3", nil,
        {header = true})
refused("1,,2\n", "line 1, column 2: the field is empty",
        "{missing=0/0} makes it nan")
refused("1,2,\n", "line 1, column 3: the field is empty")
refused("1,\n", 'column 2: "" is not a valid int64', nil,
        {missing = 0.5, dtype = "int64"})
refused("1,300\n", 'line 1, column 2: "300" is not a valid uint8', nil,
        {dtype = "uint8"})
refused("1,2.0\n", '"2.0" is not a valid int32', nil, {dtype = "int32"})
refused("1,2\n", '"2" is not a valid bool', nil, {dtype = "bool"})
refused("1,9223372036854775808\n",
        '"9223372036854775808" is not a valid int64', nil,
        {dtype = "int64"})
refused("0x10\n", '"0x10" is not a valid number')
refused("1 2\n", '"1 2" is not a valid number', '{delimiter=" "}')
refused("1,--2\n", '"--2" is not a valid number')
refused(("9"):rep(500) .. "\n", "is not a valid number")
refused("1,\0002\n", '"\\x002" is not a valid number')
refused("1,\27[2J\n", '"\\x1b[2J" is not a valid number')
refused('"1,2\n3,4\n', 'column 1: ""1" is not a valid number')
refused("1\n", "skip is 3, the file has 1 lines", nil, {skip = 3})
refused("1\n", "skip is -1, but must not be negative", nil, {skip = -1})
refused("", "there is no header", nil, {header = true})
refused("# \n1 2 3\n", "line 1, the header, has no names", nil,
        {header = true, delimiter = " "})
for _, d in ipairs {"", ",,", "\n", "1", "-", ".", "#", '"'} do
  refused("1\n", "cannot be a delimiter", nil, {delimiter = d})
end
refused("1\n", "names is for files of several tensors", nil, {names = {}})
refused("1\n", "no argument 'delimeter', did you mean 'delimiter'?", nil,
        {delimeter = ","})

-- Bytes that end a text of C, and blanks that strtod passes over.
refused("\0001,2\n3,4\n", 'line 1, column 1: "\\x001" is not a valid number')
refused("1,2\n\0003,4\n", 'line 2, column 1: "\\x003" is not a valid number')
refused(("\0"):rep(4096), 'line 1, column 1: "\\x00\\x00',
        "it is not text in UTF-8; iconv converts it from UTF-16")
refused("\0001\0,\0002\0\n", 'column 1: "\\x001\\x00" is not a valid number')
refused("\xff\xfe1\0\n\0", "the text is in UTF-16, but must be in UTF-8",
        "convert it with iconv -f UTF-16 -t UTF-8")
refused("\xfe\xff\0001\0\n", "the text is in UTF-16, but must be in UTF-8")
refused("x\0y,z\n1,2\n", "line 1, the header, holds a zero byte", nil,
        {header = true})
for _, blank in ipairs {"\v", "\f"} do
  refused("1\n" .. blank .. "2\n", "line 2, column 1: ")
  refused("1\n" .. blank .. "2.5\n", "line 2, column 1: ")
  refused("1\n2" .. blank .. "3\n", "line 2, column 1: ")
end

-- ---- what float32 would change

local function becomes(dtype, text, options)
  local x = load(text, options)
  assert(x.dtype == dtype, text .. " gave " .. tostring(x.dtype))
  return x
end
t = becomes("float64", "20240101,1.5\n1704110400,1\n")
assert(t[1][1] == 20240101 and t[2][1] == 1704110400)
becomes("float64", "1.5,20240101\n")
becomes("float64", "20240101.0,1.5\n")           -- as pandas writes them
becomes("float64", "1704110400.25,1\n")
becomes("float64", "-16777217,0.5\n")
becomes("float64", ",20240101\n", {missing = 0 / 0})
becomes("float64", ("1.5\n"):rep(1000) .. "16777217\n")
becomes("float32", "16777216,0.5\n16777218,1\n") -- float32 has them
-- digits after the point count too, and numbers beyond the range
becomes("float64", "0.123456789012,1.5\n")
becomes("float64", "3.1415926536\n")
becomes("float64", "619999.99\n")
becomes("float64", "1.2345678912e10,1\n")
becomes("float64", "1e39\n")
becomes("float64", "1e-50\n")
becomes("float32", "0.1,3.14159,-2.5e10,1e-40,0.0000001,.5,1.\n")
becomes("float32", "3.14159274,16777216.00,1e38,nan,-inf\n")
-- what was a float32, written with enough digits or more, is one again
for _, format in ipairs {"%.9g", "%.18e", "%.12f"} do
  local v = nacre.tensor{0.1, 1/3, 123456.789, 2/3e4}
  local text = ""
  for i = 1, 4 do text = text .. format:format(v[i]) .. "\n" end
  t = becomes("float32", text)
  assert(t:reshape(-1)[{{1, 3}}]:eq(v[{{1, 3}}]):all():item())
end
t = nacre.tensor({{0.1, 1/3, 1e300}}, {dtype = "float64"})
assert(becomes("float64", nacre.serialize(t, {format = "csv"})):eq(t):all()
       :item())
becomes("float32", "20240101,1.5\n", {dtype = "float32"})
becomes("int64", "20240101,1\n")
becomes("int64", "9007199254740993,1\n")
becomes("float32", "20240101,1.5\n", {usecols = {2}})
nacre.set_default_dtype "float16"
becomes("float16", "2048,1.5\n")
becomes("float64", "2049,1.5\n")
nacre.set_default_dtype "float32"
refused("1.5,1\n2.5,9007199254740993\n", 'line 2, column 2: ' ..
        '"9007199254740993" lies between two float64 numbers',
        '{dtype="float64"} rounds it, {usecols={2}} reads the column alone')
refused("18446744073709551615\n", "lies between two float64 numbers",
        '{dtype="float64"} rounds it')
t = load("1.5,9007199254740993\n", {dtype = "float64"})
assert(t[1][2] == 2 ^ 53)
t = becomes("int64", "1.5,9007199254740993\n", {usecols = {2}})
assert(t[1][1] == 9007199254740993)
becomes("float32", "1.5,9007199254740992\n")

-- ---- columns

local mixed = "day,x,y,what\n2024-01-01,1,2.5,a\n2024-01-02,3,4.5,b\n"
t, names = load(mixed, {header = true, usecols = {2, 3}})
is(t, "{{1.0,2.5},{3.0,4.5}}")
assert(table.concat(names, "|") == "x|y")
t, names = load(mixed, {header = true, usecols = {"y", "x"}})
is(t, "{{2.5,1.0},{4.5,3.0}}")
assert(table.concat(names, "|") == "y|x")
is(load(mixed, {skip = 1, usecols = 2}), "{{1},{3}}")
is(load(mixed, {header = true, usecols = "x", dtype = "uint8"}), "{{1},{3}}")
refused(mixed, 'line 1, column 1: "day" is not a valid number',
        "{header=true, usecols={2,3}} reads the columns of numbers")
refused(mixed, 'line 2, column 1: "2024-01-01" is not a valid number',
        "{header=true, usecols={2,3}} reads the columns of numbers",
        {header = true})
refused("a,b\nc,d\n", '"a" is not a valid number', 
        "a tensor holds numbers; io.lines(path) reads texts")
refused("2024-01-01 10:00,3\n", "is not a valid number",
        "{usecols={2}} reads the columns of numbers")
refused("x;y\n1;2\n", '"x;y" is not a valid number',
        '{delimiter=";", header=true}')
refused(mixed, 'usecols: no column is called "z"', nil,
        {header = true, usecols = {"x", "z"}})
refused(mixed, "usecols: no header was read",
        '{header=true, usecols={"x"}}', {usecols = "x"})
refused(mixed, "usecols: there is no column 5, they are 1 to 4", nil,
        {usecols = {5}})
refused(mixed, "usecols: there is no column 0", nil, {usecols = 0})
refused(mixed, "usecols: there is no column -1", nil, {usecols = {-1}})
refused(mixed, "usecols: column 2 is given twice", nil,
        {header = true, usecols = {2, "x"}})
for _, wrong in ipairs {{}, {1.5}, {true}, false, {{}}} do
  refused(mixed, "usecols must be a list of columns' numbers", nil,
          {usecols = wrong})
end
refused("1,2\n3\n", "line 2 has 1 columns", nil, {usecols = {1}})
refused("1\n", "no argument 'converters'", 
        "it takes path, device, dtype, names, delimiter, decimal, skip, " ..
        "header, missing, na_values, usecols, columns, dtypes, unknown, " ..
        "format, mmap, slice, ...",
        {converters = {}})

-- ---- columns by themselves

local table_text = "id,x,ok,y\n20240101,0.5,1,1e39\n" ..
                   "9007199254740993,2.5,0,7\n"
local c
c, names = load(table_text, {header = true, columns = true})
assert(table.concat(names, "|") == "id|x|ok|y")
is(c.id, "{20240101,9007199254740993}")
assert(c.id.dtype == "int64" and c.x.dtype == "float32" and
       c.ok.dtype == "int64" and c.y.dtype == "float64")
is(c.x, "{0.5,2.5}")
c, names = load(table_text, {header = true,
                             dtype = {ok = "bool", x = "float64"}})
assert(c.ok.dtype == "bool" and c.x.dtype == "float64" and
       c.id.dtype == "int64" and #names == 4)
is(c.ok, "{true,false}")
c = load(table_text, {skip = 1, columns = true})
assert(#c == 4 and c[4].dtype == "float64" and c[1][2] == 9007199254740993)
c = load(table_text, {skip = 1, usecols = {3, 1}, dtypes = {"uint8"}})
assert(#c == 2 and c[1].dtype == "uint8" and c[2].dtype == "int64")
c = load(table_text, {header = true, usecols = {"y", "x"}, columns = true,
                      dtype = "float64"})
assert(c.id == nil and c.x.dtype == "float64" and c.y.dtype == "float64")
c = load("1,,3\n4,5,\n", {columns = true, missing = 0 / 0})
assert(c[1].dtype == "int64" and c[2][1] ~= c[2][1] and c[3][2] ~= c[3][2])
c, names = load("a,b\n", {header = true, columns = true})
shape(c.a, 0)
assert(c.a.dtype == "float32" and #load("", {columns = true}) == 0)
c = load("a\n1.5\n", {header = true, columns = true, requires_grad = true})
assert(c.a.requires_grad)
c = nacre.deserialize("1,2\n", {format = "csv", columns = true})
is(c[2], "{2}")
refused(table_text, 'line 2, column 2: "0.5" is not a valid int64', nil,
        {header = true, dtype = {x = "int64"}})
refused("1,300\n", 'line 1, column 2: "300" is not a valid uint8', nil,
        {columns = true, dtype = "uint8"})
refused("1.5,9007199254740993\n1,1.5\n",
        '"9007199254740993" lies between two float64 numbers', nil,
        {columns = true})
refused(table_text, 'dtype: no column that is read is called "z"', nil,
        {header = true, dtype = {z = "int64"}})
refused(table_text, 'dtype: no column that is read is called "x"', nil,
        {header = true, usecols = "id", dtype = {x = "int64"}})
refused("1,2\n", "dtype: no header was read",
        '{header=true, dtype={x="int64"}}', {dtype = {x = "int64"}})
refused("1,2\n", "dtype: there is no column 3, they are 1 to 2", nil,
        {dtypes = {[3] = "int64"}})
refused("1,2\n", "no dtype 'int46', did you mean 'int16'?", nil,
        {dtypes = {"int46"}})
refused("x,y,x\n1,2,3\n", "two columns are called 'x'",
        "usecols chooses columns; {skip=1} instead of header=true gives a list",
        {header = true, columns = true})
refused("1\n", "dtype is for all columns, dtypes for single ones", nil,
        {dtype = "int64", dtypes = {"int64"}})
refused("1\n", "dtypes and dtype mean the same: give one of them", nil,
        {dtype = {"int64"}, dtypes = {"int64"}})
for _, wrong in ipairs {{5}, {[1.5] = "int64"}, {[true] = "int64"}, {{}}} do
  refused("1\n", "dtypes has the names of dtypes by columns' numbers", nil,
          {dtypes = wrong})
end
refused("1\n", "dtypes must be a table, not a number", nil, {dtypes = 1})
fails("columns is for texts: .csv, .tsv and .txt", nacre.deserialize,
      nacre.serialize(nacre.ones(1)), {columns = true})
fails("dtypes is for texts: .csv, .tsv and .txt", nacre.deserialize,
      nacre.serialize(nacre.ones(1)), {dtype = {"int64"}})

-- ---- what is written

-- The digits give the element again, in every dtype.
nacre.manual_seed(1)
local odd = {0, -0.0, 0.1, 1 / 3, 1e-300, 5e-324, 1.7976931348623157e308,
             123456789, 1 / 0, -1 / 0, 2 ^ 53 + 1, 1e22, 65504, 1e-7}
for _, dtype in ipairs(C.dtypes) do
  local float = dtype:find "float"
  local x = float and nacre.cat({nacre.tensor(odd, {dtype = "float64"}),
                                 nacre.randn(500, {dtype = "float64"})})
            or nacre.randint(0, 100, {514})
  x = x:to(dtype):reshape(257, 2)
  nacre.save(csv, x)
  assert(nacre.load(csv, {dtype = dtype}) == x, dtype)
  -- Of 123456789.0 and 2^53 + 1 a float32 would keep neither.
  local read = dtype == "float64" and "float64" or "float32"
  if float then assert(nacre.load(csv).dtype == read) end
end
local big = nacre.tensor {math.mininteger, math.maxinteger}
nacre.save(csv, big)
assert(nacre.load(csv):flatten() == big)

nacre.save(csv, nacre.tensor {{1, 2.5}, {-0.0, 0 / 0}})
assert(read(csv) == "1.0,2.5\n-0.0,nan\n", read(csv))
nacre.save(csv, nacre.tensor({0.1, 1e10, 1e-5}, {dtype = "float64"}))
assert(read(csv) == "0.1\n10000000000.0\n1e-05\n", read(csv))
nacre.save(tsv, nacre.tensor {{true, false}})
assert(read(tsv) == "1\t0\n")
nacre.save(txt, nacre.tensor {{1, 2}, {3, 4}}:t())
assert(read(txt) == "1 3\n2 4\n")
nacre.save(csv, nacre.tensor(5))
assert(read(csv) == "5\n")
nacre.save(csv, nacre.zeros(0, 3))
assert(read(csv) == "")
nacre.save(csv, nacre.zeros(2, 2)["::2, :"], {delimiter = ";"})
assert(read(csv) == "0.0;0.0\n")

-- Names.
names = {"x", 'a "b"', "c,d", "", "#e"}
nacre.save(csv, nacre.ones(2, 5), {header = names})
assert(read(csv):match "[^\n]*" == 'x,"a ""b""","c,d","","#e"')
local back, got = nacre.load(csv, {header = true})
assert(back == nacre.ones(2, 5))
for i, name in ipairs(names) do assert(got[i] == name) end

-- Through the buffer.
local wide = nacre.randn(1000, 300)
nacre.save(csv, wide)
assert(#read(csv) > 1 << 20 and nacre.load(csv) == wide)

-- What is refused leaves the old file.
local before = read(csv)
fails("a text file holds a matrix, not 3 dimensions",
      "t:flatten(2), or a name that ends in .npy", nacre.save, csv,
      nacre.zeros(2, 2, 2))
fails("header has 1 names, the matrix 2 columns", nacre.save, csv,
      nacre.ones(2, 2), {header = {"a"}})
fails("header must be a list of texts, not a boolean", nacre.save, csv,
      nacre.ones(2, 2), {header = true})
fails("header must be a list of texts", nacre.save, csv, nacre.ones(2, 2),
      {header = {"a", 2}})
fails("'1' cannot be a delimiter", nacre.save, csv, nacre.ones(2),
      {delimiter = "1"})
fails("compressed is for .npz and .h5 files", nacre.save, csv, nacre.ones(2),
      {compressed = true})
fails("t must be a tensor, not a table", nacre.save, csv, {1, 2})
assert(read(csv) == before)

for _, name in ipairs {base, csv, tsv, txt} do os.remove(name) end
