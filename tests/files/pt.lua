-- SPDX-License-Identifier: MIT
-- .pt files: what is saved is read back, shared storages stay shared, every
-- malformed or hostile pickle is refused by a message, in little memory.
-- tests/torch/files_torch.py compares with PyTorch.
-- bad_files.lua damages such files.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local zip = dofile(here .. "../lib/zip.lua")
local fails, is, read, write = C.fails, C.is, C.read, C.write

local path = os.tmpname() .. ".pt"
if not pcall(nacre.save, path, nacre.ones(1)) then
  fails("libzip, which was not found", nacre.save, path, nacre.ones(1))
  print "pt: there is no libzip, .pt files are left out"
  os.exit(0)
end

local function again(v)
  return nacre.deserialize(nacre.serialize(v, {format = "pt"}))
end

-- ---- what is saved comes back

for _, dtype in ipairs(C.dtypes) do
  local t = nacre.arange(6):to(dtype):reshape(2, 3)
  for _, x in ipairs {t, t:t(), t[{{}, 2}], nacre.zeros(0, 4):to(dtype),
                      nacre.tensor(1):to(dtype)} do
    local y = again(x)
    assert(y.dtype == dtype and y == x, dtype)
  end
end
local s = again(nacre.arange(6):reshape(2, 3):t())
assert(not s:is_contiguous(), "strides are kept")

local w = nacre.arange(6):float():reshape(2, 3)
local same = {1, 2}
local tree = {w = w, ["a.b"] = {n = 3, x = 0.5, big = 1 << 40, low = -(1 << 62),
              small = -7, yes = true, no = false, s = "é", bytes = "\255\0\200",
              inf = math.huge}, list = {1, "two", {w}}, [5] = "five",
              [1.5] = "key", [true] = "bool", empty = {}, one = same,
              other = same}
local r = again(tree)
assert(r.w == w and r.list[3][1] == w and r.list[1] == 1 and r.list[2] == "two")
assert(rawequal(r.list[3][1], r.w) and rawequal(r.one, r.other))
local ab = r["a.b"]
assert(ab.n == 3 and math.type(ab.n) == "integer" and ab.x == 0.5 and
       ab.big == 1 << 40 and ab.low == -(1 << 62) and ab.small == -7 and
       ab.yes == true and ab.no == false and ab.s == "é" and
       ab.bytes == "\255\0\200" and ab.inf == math.huge)
assert(r[5] == "five" and r[1.5] == "key" and r[true] == "bool")
assert(next(r.empty) == nil)
local loop = {}
loop.me = loop
local back = again(loop)
assert(back.me == back)
assert(again {nacre.ones(2):requires_grad_()}[1].requires_grad)

-- Shared storages stay shared; of what nobody shares the rest is left out.
local base = nacre.arange(10)
r = again {a = base["2:4"], b = base["3:5"]}
assert(C.shares(r.a, r.b))
r.a[2] = 77
is(r.b, "{77,3,4}")
local size = #nacre.serialize({nacre.zeros(100000)["1:3"]}, {format = "pt"})
assert(size < 2000, size)

-- By name, and to a dtype.
nacre.save(path, tree)
is(nacre.load(path, {names = {"w"}}).w, "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
fails("no tensor 'list.3.2', did you mean 'list.3.1'?", nacre.load, path,
      {names = {"list.3.2"}})
assert(nacre.load(path, {dtype = "float64"}).w.dtype == "float64")
local named = os.tmpname()
write(named, read(path))                -- known by its content
assert(nacre.load(named).w == w)
fails("this is a file of torch.save", '{format="pt"}', nacre.load, named,
      {format = "npz"})
os.remove(named)

-- A module is its state.
local net = nacre.nn.Linear(2, 3)
nacre.save(path, net)
assert(nacre.load(path).weight == net.weight:detach())
nacre.save(path, {net = net, step = 3})
assert(nacre.load(path).net.bias == net.bias:detach())

fails("slice is for .h5 files", nacre.load, path, {slice = {1}})
fails("slice is for .h5 files", nacre.load, path,
      {slice = {1}, names = {"step"}})

local before = read(path)
fails("f is a function, which a file cannot hold", nacre.save, path,
      {f = print})
local deep = {}
for _ = 1, 200 do deep = {deep} end
fails("nested too deep", nacre.save, path, deep)
fails("has a table as a key", nacre.save, path, {[{}] = 1})
fails("1 and true are the same key in Python", nacre.save, path,
      {"a", [true] = "b"})
fails("x.0 and x.false are the same key in Python", nacre.save, path,
      {x = {[0] = "a", [false] = "b"}})
fails("compressed is for .npz and .h5 files", nacre.save, path, {w},
      {compressed = true})
assert(read(path) == before)

-- ---- pickles by hand

local function u(text) return string.pack("<c1s4", "X", text) end
local function pt(pickle, more)
  local members = {{"x/data.pkl", pickle}, {"x/byteorder", "little"},
                   {"x/data/0", string.pack("<ffffff", 0, 1, 2, 3, 4, 5)}}
  for _, m in ipairs(more or {}) do members[#members + 1] = m end
  return zip(members)
end
local function global(module, name)
  return ("c%s\n%s\n"):format(module, name)
end
local STORAGE = u "storage" .. global("torch", "FloatStorage") .. u "0" ..
                u "cpu" .. "K\6"
local HOOKS = global("collections", "OrderedDict") .. ")R"
local function tensor(storage, rest)
  return global("torch._utils", "_rebuild_tensor_v2") .. "((" .. storage ..
         "tQ" .. rest .. "tR"
end
local MATRIX = "K\0K\2K\3\x86K\3K\1\x86\x89" .. HOOKS
local function load(pickle, more)
  return nacre.deserialize(pt(pickle, more), {format = "pt"})
end

is(load("\x80\2" .. tensor(STORAGE, MATRIX) .. "."),
   "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
-- Protocol 4: a frame, short texts, the memo counts, a global from the stack.
local function v(text) return string.pack("<Bs1", 0x8c, text) end
r = load("\x80\4\x95\xff\0\0\0\0\0\0\0}\x94(" .. v "k" .. "\x94" .. v "v" ..
         "\x94" .. v "o" .. v "collections" .. "\x94" .. v "OrderedDict" ..
         "\x94\x93\x94)R\x94h\1h\2s" .. v "t" .. "(K\1h\1tu.")
assert(r.k == "v" and r.o.k == "v" and r.t[1] == 1 and r.t[2] == "k")
-- Python 2 counts what it keeps from 1.
r = load("\x80\2](K\7q\1K\8q\2h\1h\2e.")
assert(r[3] == 7 and r[4] == 8)
-- POP, POP_MARK and DUP.
r = load("\x80\2](K\1K\0020(K\3K\0041K\0052e.")
assert(r[1] == 1 and r[2] == 5 and r[3] == 5 and r[4] == nil)
fails("the stack is too short", load, "\x80\0020.")
fails("the stack is too short", load, "\x80\2(2.")
fails("the stack is too short", load, "\x80\2K\0011.")
-- Every kind of value.
r = load("\x80\2](K\1M\0\1J\xff\xff\xff\xff\x8a\1\x80\x8a\0G" ..
         string.pack(">d", 1.5) .. "N\x88\x89U\1aT\2\0\0\0bc\x85K\5K\6\x86" ..
         global("torch", "Size") .. "K\7\x85\x85R" ..
         global("torch", "float16") .. global("torch", "device") ..
         u "cuda" .. "K\1\x86R" .. global("builtins", "set") ..
         "]K\3a\x85R" .. global("_codecs", "encode") .. u "\xc3\xbfa" ..
         u "latin1" .. "\x86R" .. global("collections", "OrderedDict") ..
         "](" .. u "k" .. "K\4\x86e\x85R}" .. u "meta" .. "K\1sbe.")
assert(r[1] == 1 and r[2] == 256 and r[3] == -1 and r[4] == -128 and r[5] == 0
       and r[6] == 1.5 and r[7] == nil and r[8] == true and r[9] == false and
       r[10] == "a" and r[11][1] == "bc", "values")
assert(r[12][1] == 5 and r[12][2] == 6 and r[13][1] == 7 and
       r[14] == "float16" and r[15] == "cuda:1" and r[16][1] == 3 and
       r[17] == "\255a" and r[18].k == 4 and r[18].meta == nil, "objects")

-- The byte order, unsigned integers, a parameter, a tensor with attributes.
r = nacre.deserialize(zip {
  {"y/data.pkl", "\x80\2" .. tensor(STORAGE, MATRIX) .. "."},
  {"y/byteorder", "big"},
  {"y/data/0", string.pack(">ffffff", 0, 1, 2, 3, 4, 5)}}, {format = "pt"})
is(r, "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
local function unsigned(dtype, bytes)
  return load("\x80\2" .. global("torch._utils", "_rebuild_tensor_v3") ..
              "((" .. u "storage" .. global("torch.storage", "UntypedStorage")
              .. u "u" .. u "cpu" .. "K" .. string.char(#bytes) ..
              "tQK\0K\2\x85K\1\x85\x89" .. HOOKS .. global("torch", dtype) ..
              "tR.", {{"x/data/u", bytes}})
end
local t = unsigned("uint16", "\1\0\xff\xff")
assert(t.dtype == "uint16")
is(t, "{1,65535}")
is(unsigned("uint32", "\1\0\0\0\xff\xff\xff\xff"), "{1,4294967295}")
is(unsigned("uint64", string.pack("<I8I8", 7, math.maxinteger)),
   "{7,9223372036854775807}")
-- A tensor of n elements of a storage, and a storage `u' of 16 bytes.
local function third(storage, n, dtype)
  return global("torch._utils", "_rebuild_tensor_v3") .. "(" .. storage ..
         "K\0K" .. string.char(n) .. "\x85K\1\x85\x89" .. HOOKS ..
         global("torch", dtype) .. "tR"
end
local function sixteen(type, n)
  return "(" .. u "storage" .. global("torch", type) .. u "u" .. u "cpu" ..
         "K" .. string.char(n) .. "tQ"
end
local BYTES = sixteen("UntypedStorage", 16)
local U = {{"x/data/u", string.pack("<I4I4I4I4", 1, 2, 3, 4)}}
r = load("\x80\2](" .. third(BYTES .. "q\0", 4, "uint32") ..
         third("h\0", 2, "uint32") .. "e.", U)
is(r[1], "{1,2,3,4}")
is(r[2], "{1,2}")
assert(C.shares(r[1], r[2]))
is(unsigned("uint64", string.pack("<I8I8", 7, math.mininteger)):view "int64",
   "{7,-9223372036854775808}")
is(unsigned("float8_e4m3fn", "\x38\xfe"), "{1.0,-448.0}")
is(unsigned("float8_e5m2", "\x3c\xfc"), "{1.0,-inf}")
t = load("\x80\2" .. global("torch._utils", "_rebuild_parameter") ..
         tensor(STORAGE, MATRIX) .. "\x88" .. HOOKS .. "\x87R.")
assert(t.requires_grad)
t = load("\x80\2" .. global("torch._tensor", "_rebuild_from_type_v2") .. "(" ..
         global("torch._utils", "_rebuild_tensor_v2") ..
         global("torch.nn.parameter", "Parameter") .. "((" .. STORAGE ..
         "tQ" .. MATRIX .. "t}tR.")
assert(t:numel() == 6)

-- ---- what is refused

local bad = {
  {global("os", "system") .. u "true" .. "\x85R", 'refuses "os.system"'},
  {"cposix\nsystem\n", 'refuses "posix.system"'},
  {"cbuiltins\neval\n", 'refuses "builtins.eval"'},
  {"c__builtin__\ngetattr\n", 'refuses "__builtin__.getattr"'},
  {"ctorch._utils\n__import__\n", 'refuses "torch._utils.__import__"'},
  {"cos\27[31m\nx\n", 'refuses "os\\x1b[31m.x"'},
  {"ctorch\nComplexHalfStorage\n", 'refuses "torch.ComplexHalfStorage"'},
  {u "os" .. u "system" .. "\x93", 'refuses "os.system"'},
  {"K\1K\2\x93", "the name of a global is not a string"},
  {"(ios\nsystem\n", "refuses to make an object of a class"},
  {")\x81", "the stack is too short"},
  {"K\1)\x81", "a key of a dict"},
  {u "os" .. u "system" .. "\x93)\x81", 'refuses "os.system"'},
  {global("os", "system") .. ")}\x92}b", 'refuses "os.system"'},
  {global("os", "system") .. ")\x81K\1a(K\1K\2e(K\1K\2u",
   'refuses "os.system"'},
  {"\x82\1", "refuses the registry of extensions"},
  {"K\1)R", "what is called is no function"},
  {global("torch", "FloatStorage") .. ")R", "what is called is no function"},
  {"I1\n", "opcode 'I' of protocols 0 and 1"},
  {"\xff", "0xff is not an opcode"},
  {"K\1K\2", "something follows its end"},
  {"", "the stack is too short"},
  {"(", "the stack is too short"},
  {"e", "the stack is too short"},
  {"K\1e", "the stack is too short"},
  {"(K\1e", "the stack is too short"},
  {"((e", "the stack is too short"},
  {"\x85", "the stack is too short"},
  {"R", "the stack is too short"},
  {"q\0", "the stack is too short"},
  {"K\1q\2", "value 2 is kept after 0"},
  {"K\1q\1q\3", "value 3 is kept after 2"},
  {"K\1q\1h\0", "there is no value 0"},
  {"K\1r\xff\xff\xff\xff", "value 4294967295 is kept after 0"},
  {"h\0", "there is no value 0"},
  {"K\1K\2a", "items are added to a value that is not a list"},
  {")K\2a", "items are added to a value that is not a list"},
  {"]K\1K\2s", "items are added to a value that is not a dict"},
  {"}(K\1u", "a key has no value"},
  {"}]K\1s", "a key of a dict is not a string"},
  {"}NK\1s", "a key of a dict is not a string"},
  {"}G\x7f\xf8\0\0\0\0\0\0K\1s", "a key of a dict is not a string"},
  {"K\1K\2b", "attributes are set on a value that is not a dict"},
  {"X\xff\xff\xff\x7f", "it ends too early"},
  {"\x8e\xff\xff\xff\xff\xff\xff\xff\xff", "it ends too early"},
  {"\x8b\xff\xff\xff\xff", "it ends too early"},
  {"cos", "a line has no end"},
  {"(tQ", "a storage has other arguments"},
  {"(" .. u "storage" .. "K\1" .. u "0" .. u "cpu" .. "K\6tQ",
   "a storage has other arguments"},
  {"(" .. u "storage" .. global("torch", "FloatStorage") .. u "0" .. u "cpu" ..
   "J\xff\xff\xff\xfftQ", "a storage has -1 elements"},
  {"(" .. STORAGE .. "tQ", "a storage without a tensor"},
  {global("torch._utils", "_rebuild_tensor_v2"),
   'refuses "_rebuild_tensor_v2"'},
  {global("torch._utils", "_rebuild_tensor_v2") .. ")R",
   "a tensor has other arguments"},
  {global("torch._utils", "_rebuild_parameter") .. ")R",
   "a parameter has other arguments"},
  {global("torch", "device") .. ")R", "a device has other arguments"},
  {global("torch", "Size") .. "K\1\x85R", "a list has other arguments"},
  {global("_codecs", "encode") .. u "a" .. u "hex" .. "\x86R",
   "_codecs.encode has other arguments"},
  {global("_codecs", "encode") .. u "\xc4\x80" .. u "latin1" .. "\x86R",
   "bytes are not written as characters"},
  {global("_codecs", "encode") .. u "\xc3" .. u "latin1" .. "\x86R",
   "bytes are not written as characters"},
  {global("collections", "OrderedDict") .. "]K\1a\x85R",
   "an OrderedDict has other arguments"},
  {tensor(STORAGE, "K\1K\2K\3\x86K\3K\1\x86\x89" .. HOOKS),
   "a tensor reaches beyond its storage"},
  {tensor(STORAGE, "K\0K\2K\3\x86K\4K\1\x86\x89" .. HOOKS),
   "a tensor reaches beyond its storage"},
  {tensor(STORAGE, "K\7K\0\x85K\1\x85\x89" .. HOOKS),
   "a tensor reaches beyond its storage"},
  {tensor(STORAGE, "J\xff\xff\xff\xffK\1\x85K\1\x85\x89" .. HOOKS),
   "a tensor reaches beyond its storage"},
  {tensor(STORAGE, "K\0K\2\x85\x8a\8\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x89"
          .. HOOKS), "a tensor reaches beyond its storage"},
  {tensor(STORAGE, "K\0J\xff\xff\xff\xff\x85K\1\x85\x89" .. HOOKS),
   "the sizes and strides of a tensor are not numbers"},
  {tensor(STORAGE, "K\0(" .. ("K\1"):rep(9) .. "t(" .. ("K\1"):rep(9) ..
          "t\x89" .. HOOKS), "has 9 dimensions, a tensor has at most 8"},
  {tensor(STORAGE, "K\0K\2\x85)\x89" .. HOOKS),
   "the sizes and strides of a tensor"},
  {tensor(STORAGE, "K\0(" .. ("\x8a\5\0\0\0\0\1"):rep(2) .. "tK\0K\0\x86\x89"
          .. HOOKS), "the size of a tensor is beyond 64 bits"},
  {tensor(STORAGE, MATRIX .. "}" .. u "conj" .. "\x88s"),
   'refuses "_rebuild_tensor_v2"'},
  {tensor(STORAGE:gsub("K\6$", "K\5"), "K\0K\5\x85K\1\x85\x89" .. HOOKS),
   "data/0: 24 bytes, but the pickle says 20"},
  {tensor(u "storage" .. global("torch", "FloatStorage") .. u "9\27" ..
          u "cpu" .. "K\6", MATRIX), "storage 9\\x1b is not in the file"},
  {"](" .. tensor(STORAGE, MATRIX) .. tensor(u "storage" ..
   global("torch", "IntStorage") .. u "0" .. u "cpu" .. "K\6", MATRIX) .. "e",
   "a storage is used with two dtypes or sizes"},
  {("]"):rep(200) .. ("a"):rep(199), "nested too deep"},
  -- the arguments of a call, to which something is added afterwards
  {"](]q\0" .. u "cuda" .. "a" .. global("torch", "device") .. "h\0Rq\1" ..
   "h\0h\1ae", "the arguments of a call are not a tuple"},
  {"](]q\0" .. u "cuda" .. "a" .. global("torch", "device") .. "h\0R" ..
   "h\0}ae", "the arguments of a call are not a tuple"},
}
-- All tensors of a storage have the same type.
for _, types in ipairs {{"uint32", "int64"}, {"int64", "uint32"},
                        {"uint32", "uint64"}, {"uint16", "int32"}} do
  bad[#bad + 1] = {"](" .. third(BYTES .. "q\0", 2, types[1]) ..
                   third("h\0", 2, types[2]) .. "e",
                   "a storage is used with two dtypes"}
  bad[#bad + 1] = {"](" .. third(BYTES, 2, types[1]) ..
                   third(BYTES, 2, types[2]) .. "e",
                   "a storage is used with two dtypes"}
end
bad[#bad + 1] = {third(sixteen("LongStorage", 2), 4, "uint32"),
                 "a storage is used with two dtypes"}
for _, case in ipairs(bad) do
  local ok, e = pcall(load, "\x80\2" .. case[1] .. ".", U)
  assert(not ok and tostring(e):find(case[2], 1, true) and
         tostring(e):find("deserialize: ", 1, true),
         ("%q: %s"):format(case[1], ok and "no error" or tostring(e)))
end
fails("it does not name its protocol", load, "K\1.")
fails("protocol 1 is not supported", load, "\x80\1K\1.")
fails("something follows its end", load, "\x80\2K\1.K\1.")
fails("it has no data.pkl", nacre.deserialize, zip {{"x/y", "z"}},
      {format = "pt"})
fails("it does not name its protocol", load, "\x80\2K\1.",
      {{"x/constants.pkl", "z"}})
fails("byteorder: neither", nacre.deserialize,
      zip {{"x/data.pkl", "\x80\2K\1."}, {"x/byteorder", "middle"}},
      {format = "pt"})
local whole = "\x80\2" .. tensor(STORAGE, MATRIX) .. "."
for n = 0, #whole - 1 do
  fails("pickle: byte ", load, whole:sub(1, n))
end
fails("a Python pickle", nacre.deserialize, "\x80\4K\1.")
fails("a file of torch.save before 0.1.12, a tar archive", nacre.deserialize,
      "sys_info" .. ("\0"):rep(600))

-- ---- TorchScript: the tensors of the program and of its code by their names

local SECOND = STORAGE:gsub("K\6$", "K\2")
local PROGRAM = "\x80\2" .. global("__torch__", "Net") .. ")\x81}(" .. u "fc" ..
  global("__torch__", "Linear") .. ")\x81}" .. u "w" .. tensor(STORAGE, MATRIX)
  .. "sb" .. u "sizes" .. global("torch.jit._pickle", "build_intlist") ..
  "](K\7K\8e\x85R" .. u "training" .. "\x88ub."
local CONSTANTS = "\x80\2" .. tensor(SECOND, "K\0K\2\x85K\1\x85\x89" .. HOOKS)
                  .. "\x85."
local program = zip {
  {"x/data/0", string.pack("<ffffff", 0, 1, 2, 3, 4, 5)},
  {"x/data.pkl", PROGRAM}, {"x/code/__torch__.py", "print(1)"},
  {"x/constants/0", string.pack("<ff", 8, 9)}, {"x/constants.pkl", CONSTANTS}}
r = nacre.deserialize(program)
is(r["fc.w"], "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
is(r["constants.1"], "{8.0,9.0}")
r = nacre.deserialize(program, {names = {"constants.1"}})
assert(not r["fc.w"] and r["constants.1"][2] == 9)
r = nacre.deserialize(program, {unknown = "table"})
assert(r.__class == "__torch__.Net" and r.training == true and
       r.sizes[2] == 8 and r.fc.__class == "__torch__.Linear")
is(r.fc.w, "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
fails("something follows its end", nacre.deserialize,
      zip {{"x/data.pkl", PROGRAM}, {"x/constants.pkl", CONSTANTS .. "K\1."}},
      {format = "pt"})
fails("storage 0 is not in the file", nacre.deserialize,
      zip {{"x/data.pkl", PROGRAM}, {"x/constants.pkl", CONSTANTS}},
      {format = "pt"})

-- ---- files of before 1.6

local MAGIC = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
local START = MAGIC .. "\x80\2M\xe9\3.\x80\2}" .. u "little_endian" .. "\x88s."
local FLOATS = string.pack("<i8ffffff", 6, 0, 1, 2, 3, 4, 5)
local function persistent(kind, key, n, view)
  return "(" .. u "storage" .. global("torch", kind) .. u(key) .. u "cpu" ..
         "K" .. string.char(n) .. (view or "N") .. "tQ"
end
local function legacy(value, keys, storages, start)
  local list = {}
  for i, key in ipairs(keys) do list[i] = u(key) end
  return (start or START) .. "\x80\2" .. value .. ".\x80\2](" ..
         table.concat(list) .. "e." .. storages
end
local function of(storage, rest)
  return global("torch._utils", "_rebuild_tensor_v2") .. "(" .. storage ..
         (rest or MATRIX) .. "tR"
end
local VECTOR = "K\0K\2\x85K\1\x85\x89" .. HOOKS
local F = persistent("FloatStorage", "94", 6)
r = nacre.deserialize(legacy(of(F), {"94"}, FLOATS))
is(r, "{{0.0,1.0,2.0},{3.0,4.0,5.0}}")
-- by a file of any name, as pages of it, by names
local two = legacy("}(" .. u "a" .. of(F) .. u "b" .. of(F, VECTOR) .. u "n" ..
  "K\3" .. u "l" .. of(persistent("LongStorage", "7", 2), VECTOR) .. "u",
  {"7", "94"}, string.pack("<i8i8i8", 2, -1, 1 << 40) .. FLOATS)
write(named, two)
for _, o in ipairs {{}, {mmap = true}} do
  r = nacre.load(named, o)
  assert(r.n == 3 and C.shares(r.a, r.b))
  is(r.l, "{-1,1099511627776}")
  is(r.b, "{0.0,1.0}")
end
is(nacre.load(named, {names = {"l"}}).l, "{-1,1099511627776}")
os.remove(named)
-- Python 3's protocol 4 has frames; 0.3 had storages that are parts of others.
r = nacre.deserialize(legacy(of(F), {"94"}, FLOATS, "\x80\4\x95" ..
  string.pack("<I8", 13) .. MAGIC:sub(3) .. START:sub(#MAGIC + 1)))
assert(r:numel() == 6)
r = nacre.deserialize(legacy(of(persistent("FloatStorage", "94", 6,
  "(" .. u "95" .. "K\3K\3t"), VECTOR), {"94"}, FLOATS))
is(r, "{3.0,4.0}")
-- classes come with their source, which is not read
r = nacre.deserialize(legacy("(" .. u "module" .. global("m", "Net") ..
  u "m.py" .. u "import os" .. "tQ)\x81}" .. u "w" .. of(F) .. "sb",
  {"94"}, FLOATS), {unknown = "table"})
assert(r.__class == "m.Net" and r.w:numel() == 6)
-- a storage of no dtype of ours does not hide what follows it
local q = persistent("QInt8Storage", "1", 3)
local odd = legacy("}(" .. u "q" .. global("torch._utils", "_rebuild_qtensor")
  .. "(" .. q .. "K\0K\3\x85K\1\x85)\x89" .. HOOKS .. "tR" .. u "t" .. of(F) ..
  "u", {"1", "94"}, string.pack("<i8", 3) .. "abc" .. FLOATS)
fails('"q": the dtype qint8 is not supported', '{names={"t"}} reads the others',
      nacre.deserialize, odd)
r = nacre.deserialize(odd, {unknown = "table"})
assert(r.q.dtype == "qint8" and r.q.shape[1] == 3 and r.t:numel() == 6)

for _, case in ipairs {
  {legacy(of(F), {"94"}, FLOATS, MAGIC .. "\x80\2K\1.\x80\2}."),
   "this version of files of torch.save is not known"},
  {legacy(of(F), {}, FLOATS), "storage 94 is not in the file"},
  {legacy(of(F), {"94", "94"}, FLOATS .. FLOATS), "storage 94 is there twice"},
  {legacy(of(F), {"1", "94"}, FLOATS), "storage 1 is of no known type"},
  {legacy(of(F), {"94"}, FLOATS:sub(1, -2)),
   "storage 94 is longer than the rest of the file"},
  {legacy(of(F), {"94"}, FLOATS:sub(1, 7)), "the size of a storage: "},
  {legacy(of(F), {"94"}, string.pack("<i8", 5) .. FLOATS:sub(9)),
   "storage 94 has another size than the pickle says"},
  {legacy(of(persistent("NewStorage", "2", 3), VECTOR), {"2"}, FLOATS),
   "storage 2 is of no known type"},
  {legacy(of(persistent("FloatStorage", "94", 6, "(" .. u "95" .. "K\7K\1t"),
             VECTOR), {"94"}, FLOATS), "a part of a storage is not in it"},
  {legacy(of(persistent("FloatStorage", "94", 6, "(" .. u "95" .. "K\5K\1t"),
             VECTOR), {"94"}, FLOATS), "a tensor reaches beyond its storage"},
  {(legacy(of(F), {"94"}, FLOATS):gsub("%](%(X.-e%.)", "N.")),
   "the keys of the storages are not a list"},
} do
  fails(case[2], nacre.deserialize, case[1])
end
for n = #MAGIC, #two - 1 do
  local ok, e = pcall(nacre.deserialize, two:sub(1, n))
  assert(not ok and tostring(e):find "data: ", n)
end

-- An encrypted member is not read, nor shown as pages of the file.
local secret = pt("\x80\2" .. third(sixteen("ByteStorage", 16), 16, "uint8") ..
                  ".", U)
write(path, secret)
assert(nacre.load(path, {mmap = true}):numel() == 16)
local at = secret:find("x/data/u", 1, true)   -- after 30 bytes, then after 46
secret = secret:sub(1, at - 25) .. "\1" .. secret:sub(at - 23)
at = secret:find("x/data/u", at + 1, true)
write(path, secret:sub(1, at - 39) .. "\1" .. secret:sub(at - 37))
for _, mmap in ipairs {false, true} do
  fails("data/u: it is encrypted", nacre.load, path, {mmap = mmap})
end

-- ---- little memory for what is small

-- A pair of one pair twice, 60 deep, would be 2^60 lists if written out.
local pairs_of = {"\x80\2]q\0"}
for i = 0, 59 do
  pairs_of[i + 2] = ("h%c\x86q%c"):format(i, i + 1)
end
r = load(table.concat(pairs_of) .. ".")
assert(rawequal(r[1], r[2]) and rawequal(r[1][1], r[2][2]))

C.live()
local function peak(f, ...)
  local before = nacre._devices()[1].peak
  local ok, e = pcall(f, ...)
  return nacre._devices()[1].peak - before, ok, e
end
for _, pickle in ipairs {("]"):rep(100000), ("("):rep(100000),
                         ("N"):rep(100000), ("}q\0"):rep(30000),
                         "X\xff\xff\xff\x7f" .. ("a"):rep(100000)} do
  local most = peak(load, "\x80\2" .. pickle .. ".")
  assert(most < 8 << 20, most)
end
-- A list of pairs is copied by each OrderedDict that is made of it.
local copies = "\x80\2](NN\x86q\0]q\1(" .. ("h\0"):rep(1000) .. "e" ..
               global("collections", "OrderedDict") .. "q\2" ..
               ("h\2h\1\x85R"):rep(5000) .. "e."
local most, ok, e = peak(load, copies)
assert(not ok and most < 4 << 20 and tostring(e):find(
       "more values than its bytes can describe", 1, true), tostring(e))
-- a storage that declares what the file does not have
local huge = tensor(u "storage" .. global("torch", "FloatStorage") .. u "0" ..
                    u "cpu" .. "\x8a\6\0\0\0\0\0\1", MATRIX)
most, ok, e = peak(load, "\x80\2" .. huge .. ".")
assert(not ok and tostring(e):find "the pickle says" and most < 1 << 20, most)

-- Each allocation fails in turn: an error of ours, and nothing is lost.
r = nil
local rich = "\x80\2}(" .. u "a" .. tensor(STORAGE, MATRIX) .. u "b" .. "](" ..
             tensor(STORAGE, MATRIX) .. u "x" .. "eu."
local bytes = pt(rich)
collectgarbage()
local n = 0
repeat
  n = n + 1
  collectgarbage "stop"
  nacre._fail_alloc(n, true)
  ok, e = pcall(nacre.deserialize, bytes)
  nacre._fail_alloc(0)
  collectgarbage "restart"
  assert(ok or e.code == "ENOMEM", tostring(e))
until ok
assert(n > 10, n)

os.remove(path)
