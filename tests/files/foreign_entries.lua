-- SPDX-License-Identifier: MIT
-- One entry of a file that no tensor can hold does not hide the others: they
-- are listed, and read by their names.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local zip = dofile(here .. "../lib/zip.lua")
local fails, is, write = C.fails, C.is, C.write

local path = os.tmpname()

-- Follows hints of names until the file is read; returns what is read.
local function follow(path, options)
  for _ = 1, 6 do
    local ok, t = pcall(nacre.load, path, options)
    if ok then return t end
    local given = tostring(t.hint):match "^%b{}"
    assert(given, tostring(t) .. tostring(t.hint))
    options = load("return " .. given)()
  end
  error "the hints lead in a circle"
end

-- ---- .safetensors

local function safetensors(entries, meta)
  local parts, at, data = {meta}, 0, ""
  for _, e in ipairs(entries) do
    parts[#parts + 1] = ('"%s":{"dtype":"%s","shape":[%s],%s' ..
      '"data_offsets":[%d,%d]}'):format(e[1], e[2], e[3], e[5] or "", at,
                                        at + e[4])
    at, data = at + e[4], data .. ("\0"):rep(e[4])
  end
  local text = "{" .. table.concat(parts, ",") .. "}"
  write(path, string.pack("<I8", #text) .. text .. data)
end

local S = {"s", "F32", "2", 8}
for _, odd in ipairs {{"q", "F8_E8M0", "", 1},
                      {"q", "F8_E4M3FNUZ", "4", 4},
                      {"q", "F8_E5M2FNUZ", "2,2", 4},
                      {"q", "F4", "3", 2}, {"q", "F6_E2M3", "4", 3},
                      {"q", "F77", "9,9", 5}, {"q", "", "0", 0},
                      {"q", "F32", "1,1,1,1,1,1,1,1,2", 8},
                      {"q", "F32", "0,1,1,1,1,1,1,1,9223372036854775807", 0}} do
  for _, entries in ipairs {{odd, S}, {S, odd}} do
    safetensors(entries)
    is(nacre.load(path, {names = {"s"}}).s, "{0.0,0.0}")
    fails('"q"', '{names={"s"}} reads the others', nacre.load, path)
    is(follow(path, {device = "cpu"}).s, "{0.0,0.0}")
    fails('"q"', nil, nacre.load, path, {names = {"q"}})
    local archive, names = nacre._archive(path)
    assert(#names == 2)
    local i = names[1] == "q" and 1 or 2
    local ok, dtype, shape, foreign = pcall(nacre._archive_info, archive, i)
    if ok then assert(dtype == odd[2] and foreign) end
    assert(ok == not odd[3]:find "1,1,1")
  end
end
safetensors({{"q", "F8_E8M0", "4", 4}, {"c", "F4", "2", 1}, S,
             {"t", "I16", "1", 2}})
assert(follow(path).t.dtype == "int16")
assert(next(follow(path, {names = {"c", "t", "q"}})) == "t")

-- What the format's library skips is skipped; a NUL in a text is pictured.
safetensors({{"a", "F32", "1", 4, '"x":{"y":[1,-2.5e3,null,"\\u0041",{}]},'},
             {"b\\u0000c", "U8", "1", 1}},
            '"__metadata__":{"k\\u0000":"v\\u0000"}')
local t, about = nacre.load(path)
assert(t.a.shape[1] == 1 and t["b␀c"].dtype == "uint8")
assert(about["k␀"] == "v␀")
safetensors({S}, '"__metadata__":null')
assert(nacre.load(path).s.shape[1] == 2)

local x = nacre.serialize(nacre.arange(3))
if not pcall(nacre.deserialize, zip {{"a.npy", x}}) then
  print "foreign_entries: there is no libzip, .npz and .pt are left out"
  os.remove(path)
  os.exit(0)
end

-- ---- .npz

local function odd_array(descr, bytes)
  local head = ("{'descr': '%s', 'fortran_order': False, 'shape': (1,), }\n")
    :format(descr)
  return "\x93NUMPY\1\0" .. string.pack("<s2", head) .. ("\0"):rep(bytes)
end
local odd = {{"names.npy", odd_array("<U4", 16)}, {"o.npy", odd_array("|O", 9)},
             {"c.npy", odd_array("<c24", 24)}, {"readme.txt", "a text"},
             {"d/", ""}, {"m.npy", odd_array("<M8[s]", 8)}}
for i, member in ipairs(odd) do
  write(path, zip {{"x.npy", x}, member, {"y.npy", x}})
  local t = follow(path)
  assert(t.x[3] == 2 and t.y[1] == 0)
  local t = follow(path, {names = {"y", (member[1]:gsub("%.npy$", ""))}})
  assert(t.y[2] == 1 and not t.x)
end
write(path, zip {odd[1], odd[2], {"x.npy", x}, odd[3], odd[4], odd[5], odd[6]})
assert(next(follow(path)) == "x")
local e = fails("text, which is not supported",
                '{names={"x"}} reads the others', nacre.load, path)
write(path, zip {odd[1], odd[2]})         -- nothing can be read
e = fails("text, which is not supported", nil, nacre.load, path)
assert(not tostring(e.hint):find "names=")

-- ---- .pt

local function u(text) return string.pack("<c1s4", "X", text) end
local function global(module, name)
  return ("c%s\n%s\n"):format(module, name)
end
local function storage(kind, n)
  return "(" .. u "storage" .. global("torch", kind) .. u "0" .. u "cpu" ..
         "K" .. string.char(n) .. "tQ"
end
local HOOKS = global("collections", "OrderedDict") .. ")R"
local function tensor(storage)
  return global("torch._utils", "_rebuild_tensor_v2") .. "(" .. storage ..
         "K\0K\2\x85K\1\x85\x89" .. HOOKS .. "tR"
end
local T = tensor(storage("FloatStorage", 2))
local function pt(pickle)
  return zip {{"x/data.pkl", pickle}, {"x/byteorder", "little"},
              {"x/data/0", string.pack("<ff", 1, 2)}}
end

-- A value that is not known, as pickles write it; what it names.
local OBJECT = global("m", "Config") .. ")\x81}" .. u "lr" .. "K\1sb"
local others = {
  {OBJECT, "m.Config"},
  {global("numpy._core.multiarray", "scalar") .. u "a" .. u "b" .. "\x86R",
   'refuses "scalar"'},
  {global("pathlib", "PosixPath") .. "K\1\x85R", "PosixPath"},
  {global("builtins", "complex") .. "G" .. string.pack(">d", 1) .. "G" ..
   string.pack(">d", 2) .. "\x86R", "builtins.complex"},
  {global("os", "system") .. u "true" .. "\x85R", "os.system"},
  {global("m", "L") .. ")\x81(K\1K\2eK\3a", "m.L"},
  {global("m", "D") .. ")}\x92(K\1K\2uK\3K\4s}b", "m.D"},
  {global("m", "Color"), "m.Color"},
  {u "m" .. u "E" .. "\x93)R", "m.E"},
  {global("torch._utils", "_rebuild_sparse_tensor") .. "K\1" .. T .. "\x86R",
   "torch._utils._rebuild_sparse_tensor"},
  {global("torch.nn.parameter", "Parameter"), "Parameter"},
  {"(" .. u "storage" .. global("torch", "FloatStorage") .. u "0" .. u "cpu" ..
   "K\2tQ", nil},
  {"}K\1K\2\x86K\3s", "a key of a dict"},
  {"}N" .. OBJECT .. "s", "a key of a dict"},
}
for _, o in ipairs(others) do
  for _, pickle in ipairs {
    "}" .. u "a" .. o[1] .. "s" .. u "t" .. T .. "s",
    "}" .. u "t" .. T .. "s" .. u "a" .. o[1] .. "s",
    "}(" .. u "l" .. "]" .. o[1] .. "a" .. u "t" .. T .. "u"} do
    write(path, pt("\x80\2" .. pickle .. "."))
    local e = fails(o[2] or "a storage without", nil, nacre.load, path)
    assert(e.hint:find '^{names={.*"t"', e.hint)
    assert(e.hint:find('{unknown="table"} reads it as a table', 1, true))
    is(nacre.load(path, {unknown = "table"}).t, "{1.0,2.0}")
    is(nacre.load(path, {names = {"t"}}).t, "{1.0,2.0}")
    is(follow(path).t, "{1.0,2.0}")
    local archive, names = nacre._archive(path)
    assert(#names >= 1)
  end
end

-- Tensors in an object have names, too; those of no dtype of ours are listed.
write(path, pt("\x80\2" .. global("m", "Net") .. ")\x81}" .. u "w" .. T ..
               "sb."))
is(nacre.load(path, {names = {"w"}}).w, "{1.0,2.0}")
for _, kind in ipairs {
  {"ComplexHalfStorage", "complex32"}, {"QInt8Storage", "qint8"},
  {"NewStorage", "NewStorage"}} do
  write(path, pt("\x80\2}" .. u "c" .. tensor(storage(kind[1], 2)) .. "s" ..
                 u "t" .. T .. "s."))
  fails(("\"c\": the dtype %s is not supported"):format(kind[2]),
        '{names={"t"}} reads the others', nacre.load, path)
  is(follow(path).t, "{1.0,2.0}")
  local archive, names = nacre._archive(path)
  local dtype, shape, foreign = nacre._archive_info(archive, 1)
  assert(names[1] == "c" and dtype == kind[2] and shape[1] == 2 and foreign)
end

-- Integers beyond 64 bits are texts; a defaultdict and a Counter are dicts.
local function long(v)
  return "\x8a" .. string.char(#v) .. v
end
local function value(pickle)
  write(path, pt("\x80\2}" .. u "v" .. pickle .. "s" .. u "t" .. T .. "s."))
  return nacre.load(path).v
end
assert(value(long("\0\0\0\0\0\0\0\x80\0")) == "9223372036854775808")
assert(value(long(("\xff"):rep(8) .. "\0")) == "18446744073709551615")
assert(value(long("\xff\xff\xff\xff\xff\xff\xff\x7f\xff")) ==
       "-9223372036854775809")
assert(value(long("\0\0\0\0\0\0\0\0\1")) == "18446744073709551616")
assert(value(long(("\0"):rep(15) .. "\x80")) ==
       "-170141183460469231731687303715884105728")
assert(value(long("\5\0\0\0\0\0\0\0\0\0")) == 5)
assert(value(long(("\xff"):rep(12))) == -1)
assert(value("\x8b" .. string.pack("<s4", ("\1"):rep(200))):find "200 bytes")
local d = value(global("collections", "defaultdict") ..
                global("builtins", "list") .. "\x85R" .. u "k" .. "K\1s")
assert(d.k == 1)
d = value(global("collections", "Counter") .. "}" .. u "k" .. "K\2s\x85R")
assert(d.k == 2)
d = value(global("collections", "deque") .. ")RK\1aK\2a")
assert(d[1] == 1 and d[2] == 2)
d = value(global("collections", "deque") .. "]K\7aK\5\x86R")
assert(d[1] == 7 and d[2] == nil)
assert(value(global("builtins", "frozenset") .. "]K\7a\x85R")[1] == 7)
fails("a deque has other arguments", value,
      global("collections", "deque") .. "K\1\x85R")

-- Paths are texts, options of programs tables.
local function path_of(module, name, ...)
  local parts = {...}
  for i, part in ipairs(parts) do parts[i] = u(part) end
  return value(global(module, name) .. "(" .. table.concat(parts) .. "tR")
end
assert(path_of("pathlib", "PosixPath", "/", "a", "b") == "/a/b")
assert(path_of("pathlib._local", "PurePosixPath", "a", "b") == "a/b")
assert(path_of("pathlib", "WindowsPath", "C:\\", "a") == "C:\\a")
assert(path_of("pathlib", "PosixPath") == "")
local NAMESPACE = global("argparse", "Namespace") .. ")\x81}" .. u "lr" ..
                  "K\1sb"
d = value(NAMESPACE)
assert(d.lr == 1 and d.__class == nil)
assert(value(global("types", "SimpleNamespace") .. ")R").lr == nil)
assert(nacre.load(path, {unknown = "table"}).v.__class ==
       "types.SimpleNamespace")
fails('refuses "argparse.Namespace"', value, global("argparse", "Namespace"))
-- what is in it is looked at
fails('refuses "m.Config"', value, (NAMESPACE:gsub("K\1sb$", OBJECT .. "sb")))

-- NumPy's numbers.
local function scalar(code, order, bytes, module)
  local dtype = global("numpy", "dtype") .. u(code) .. "\x89\x88\x87R(K\3" ..
                u(order) .. "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
  return value(global(module or "numpy.core.multiarray", "scalar") .. dtype ..
               "C" .. string.char(#bytes) .. bytes .. "\x86R")
end
assert(scalar("i8", "<", string.pack("<i8", -3)) == -3)
assert(scalar("i2", ">", "\xff\xfe") == -2)
assert(scalar("u4", "<", "\xff\xff\xff\xff") == 4294967295)
assert(scalar("f4", "<", string.pack("<f", 0.5)) == 0.5)
assert(scalar("f8", ">", string.pack(">d", 1 / 3), "numpy._core.multiarray") ==
       1 / 3)
assert(scalar("b1", "|", "\1") == true)
-- bytes of protocol 2
d = value(global("numpy.core.multiarray", "scalar") .. global("numpy", "dtype")
          .. u "u1" .. "\x89\x88\x87R(K\3" .. u "|" .. "NNNK\0K\0K\0tb" ..
          global("_codecs", "encode") .. u "\xc3\xbf" .. u "latin1" ..
          "\x86R\x86R")
assert(d == 255)
for _, odd in ipairs {{"u8", "<", ("\xff"):rep(8)}, {"f2", "<", "ab"},
                      {"i4", "<", "abc"}, {"M8", "<", ("a"):rep(8)},
                      {"i4", "<", "abcde"}} do
  fails('refuses "scalar"', scalar, table.unpack(odd))
  assert(nacre.load(path, {unknown = "table"}).v.__class == "scalar")
end

-- Bytes.
assert(value(global("__builtin__", "bytes") .. ")R") == "")
assert(value(global("builtins", "bytearray") .. "C\2a\xff\x85R") == "a\xff")
assert(value(global("__builtin__", "bytearray") .. u "a\xc3\xbf" ..
             u "latin-1" .. "\x86R") == "a\xff")
fails('refuses "bytearray"', value, global("builtins", "bytearray") ..
      "K\1\x85R")
fails('refuses "bytearray"', value, global("builtins", "bytearray") ..
      u "\xe2\x82\xac" .. u "latin-1" .. "\x86R")

-- NumPy's arrays are tensors.
local function array(code, order, shape, bytes, fortran)
  local size = {"("}
  for i, n in ipairs(shape) do size[i + 1] = "K" .. string.char(n) end
  return global("numpy.core.multiarray", "_reconstruct") ..
         global("numpy", "ndarray") .. "K\0\x85C\1b\x87R(K\1" ..
         table.concat(size) .. "t" .. global("numpy", "dtype") .. u(code) ..
         "\x89\x88\x87R(K\3" .. u(order) .. "NNNK\0K\0K\0tb" ..
         (fortran and "\x88" or "\x89") .. "C" .. string.char(#bytes) ..
         bytes .. "tb"
end
local six = string.pack("<i2i2i2i2i2i2", 0, 1, 2, 3, 4, -5)
d = value(array("i2", "<", {2, 3}, six))
is(d, "{{0,1,2},{3,4,-5}}")
assert(d.dtype == "int16")
is(value(array("i2", "<", {2, 3}, six, true)), "{{0,2,4},{1,3,-5}}")
is(value(array("i2", ">", {1}, "\1\2")), "{258}")
is(value(array("u2", "<", {1}, "\xff\xff")), "{65535}")
is(value(array("f8", "<", {}, string.pack("<d", 0.5))), "0.5")
is(value(array("b1", "|", {2}, "\0\1")), "{false,true}")
assert(value(array("c16", "<", {1}, ("\0"):rep(16))).dtype == "complex128")
assert(value(array("f4", "<", {0, 3}, "")):numel() == 0)
is(nacre.load(path, {names = {"t", "v"}}).t, "{1.0,2.0}")
-- two arrays with the same bytes are two
d = value("](" .. array("u1", "|", {1}, "a") .. array("u1", "|", {1}, "a") ..
          "e")
assert(d[1][1] == 97 and not C.shares(d[1], d[2]))
-- bytes of protocol 2
d = value((array("u1", "|", {2}, ""):gsub("C\0tb$", function()
  return global("_codecs", "encode") .. u "\xc3\xbf\1" .. u "latin1" ..
         "\x86Rtb"
end)))
is(d, "{255,1}")
is(value(array("u8", "<", {1}, ("\xff"):rep(8))):view "int64", "{-1}")
for _, odd in ipairs {array("O8", "|", {1}, ("a"):rep(8)),
                      array("i4", "<", {2}, "abcd"),
                      array("i4", "<", {255, 255, 255, 255, 255}, "abcd"),
                      array("U2", "<", {1}, ("a"):rep(8))} do
  fails('refuses "numpy.core.multiarray._reconstruct"', value, odd)
  is(nacre.load(path, {names = {"t"}}).t, "{1.0,2.0}")
end

-- ---- objects as tables

-- The value of a pickle.
local function object(pickle)
  write(path, pt("\x80\2}" .. u "v" .. pickle .. "s" .. u "t" .. T .. "s."))
  return nacre.load(path, {unknown = "table"}).v
end
d = object(OBJECT)
assert(d.__class == "m.Config" and d.lr == 1)
-- what it is made from, the elements of a list, the entries of a dict
d = object(global("m", "L") .. "K\5\x85\x81(K\1K\2e")
assert(d.__class == "m.L" and d[1] == 5 and d[2] == 1 and d[3] == 2)
d = object(global("m", "D") .. ")}" .. u "a" .. "K\7s\x92(" .. u "b" ..
           "K\2u}" .. u "c" .. "K\4sb")
assert(d.a == 7 and d.b == 2 and d.c == 4)
d = object(global("m", "L") .. T .. "\x85\x81(" .. T .. "K\2e" .. T .. "b")
assert(d[1]:numel() == 2 and d[2]:numel() == 2 and d[3] == 2 and d[4][1] == 1)
d = select(2, nacre._archive(path))
assert(table.concat(d, " ") == "v.1 v.2 v.4 t")
-- attributes in slots; an object in two places, and in itself
d = object(global("m", "S") .. ")\x81N}" .. u "a" .. "K\7s\x86b")
assert(d.a == 7 and d[1] == nil)
d = object("]q\0" .. global("m", "S") .. ")\x81q\1}" .. u "me" .. "h\1sbah\1a")
assert(rawequal(d[1], d[2]) and rawequal(d[1].me, d[1]))
-- a class, a function, its bound arguments
d = object(global("m", "Net"))
assert(d.__class == "m.Net" and d[1] == nil)
d = object(global("__builtin__", "getattr") .. global("m", "Net") .. u "f" ..
           "\x86R")
assert(d.__class == "__builtin__.getattr" and d[1].__class == "m.Net" and
       d[2] == "f")
-- keys that no table has are texts
d = object("}K\1" .. u "a" .. "\x86K\3sNK\4sG\x7f\xf8\0\0\0\0\0\0K\5sG?\xe0\0\0"
           .. "\0\0\0\0K\6s(NG?\xe0\0\0\0\0\0\0\x88]tK\7s")
assert(d["(1, 'a')"] == 3 and d.None == 4 and d.nan == 5 and d[0.5] == 6 and
       d["(None, 0.5, True, ?)"] == 7)
d = object("}" .. T .. "K\1s" .. T .. "\x85K\2s")
assert(d["?"] == 1 and d["(None)"] == 2)
-- a tensor of no dtype of ours
d = object(tensor(storage("ComplexHalfStorage", 2)))
assert(d.__class == "torch.Tensor" and d.dtype == "complex32" and
       d.shape[1] == 2)
d = object(global("torch._utils", "_rebuild_tensor_v2") .. "(" ..
           storage("FloatStorage", 2) .. "K\0(" .. ("K\1"):rep(9) .. "t(" ..
           ("K\1"):rep(9) .. "t\x89" .. HOOKS .. "tR")
assert(d.__class == "torch.Tensor" and d.shape == nil)
d = object(global("torch._utils", "_rebuild_qtensor") .. "(" ..
           storage("QUInt8Storage", 2) .. "K\0K\2\x85K\1\x85)\x89" .. HOOKS ..
           "tR")
assert(d.dtype == "quint8" and d.shape[1] == 2)
local archive, names = nacre._archive(path)
assert(names[1] == "v" and nacre._archive_info(archive, 1) == "quint8")
archive = nil

fails("unknown must be error or table, not 'ignore'", nacre.load, path,
      {unknown = "ignore"})
fails("unknown is for .pt files", nacre.deserialize, x, {unknown = "table"})

os.remove(path)
