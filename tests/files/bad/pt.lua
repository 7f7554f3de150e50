-- SPDX-License-Identifier: MIT
-- .pt checkpoints: pickles made opcode by opcode, in zip archives.

local choose = dofile(HERE .. "bad/random.lua")
local archive = dofile(HERE .. "bad/archive.lua")
local random = math.random

local STORAGES <const> = {bool = "Bool", uint8 = "Byte", int8 = "Char",
  int16 = "Short", int32 = "Int", int64 = "Long", float16 = "Half",
  bfloat16 = "BFloat16", float32 = "Float", float64 = "Double"}
local GLOBALS <const> = {"os\nsystem", "builtins\neval", "torch\nFloatStorage",
  "torch\nLongStorage", "torch\nUntypedStorage", "torch\nComplexFloatStorage",
  "collections\nOrderedDict", "torch._utils\n_rebuild_parameter", "torch\nSize",
  "torch._utils\n_rebuild_tensor_v2", "torch\ndevice", "torch\nfloat16",
  "builtins\nset", "__builtin__\ndict", "torch._utils\n_rebuild_tensor",
  "numpy.core.multiarray\nscalar", "numpy\ndtype",
  "numpy.core.multiarray\n_reconstruct", "builtins\nbytearray",
  "pathlib\nPosixPath",
  "collections\ndeque", "argparse\nNamespace", "torch._utils\n_rebuild_qtensor",
  "torch\nQUInt8Storage", "torch.jit._pickle\nrestore_type_tag", "m\nC",
  "a\27\nb", "\n", ("x"):rep(3000) .. "\ny"}

local function text(s)
  if #s < 256 and choose.once_in(3) then return string.pack("<Bs1", 0x8c, s) end
  return string.pack("<c1s4", "X", s)
end

local function integer(n)
  if n >= 0 and n < 256 and choose.once_in(2) then
    return "K" .. string.char(n)
  end
  if n >= 0 and n < 65536 and choose.once_in(2) then
    return string.pack("<c1I2", "M", n)
  end
  if n >= -(1 << 31) and n < 1 << 31 and choose.once_in(2) then
    return string.pack("<c1i4", "J", n)
  end
  return string.pack("<BBi8", 0x8a, 8, n)
end

local function list(numbers)
  local parts = {"("}
  for i, n in ipairs(numbers) do parts[i + 1] = integer(n) end
  return table.concat(parts) .. "t"
end

local function global(name) return "c" .. name .. "\n" end

-- Appends to the opcodes what builds a tensor of storage `key'.
local function put_tensor(ops, t, key, wrong)
  local numel, offset = t:numel(), 0
  local size, stride = t:size(), {table.unpack(t:stride())}
  local kind, storage = STORAGES[t.dtype], ("%d"):format(key)
  local requires = t:is_floating_point() and choose.from {"\x88", "\x89"} or
                   "\x89"
  if wrong == 1 then numel = choose.other_integer(numel) end
  if wrong == 2 then offset = choose.other_integer(0) end
  if wrong == 3 then size[random(4)] = choose.other_integer(2) end
  if wrong == 4 then stride[random(4)] = choose.other_integer(1) end
  if wrong == 5 then kind = choose.from {"Double", "Bool", "Byte", "X"} end
  if wrong == 6 then storage = choose.name():sub(1, 3000) end
  for _, op in ipairs {
    global "torch._utils\n_rebuild_tensor_v2", "(", "(", text "storage",
    global("torch\n" .. kind .. "Storage"), text(storage), text "cpu",
    integer(numel), "t", "Q", integer(offset), list(size), list(stride),
    requires, global "collections\nOrderedDict", ")", "R", "t", "R"} do
    ops[#ops + 1] = op
  end
end

-- NumPy's dtype of 16-bit integers.
local DTYPE <const> = global "numpy\ndtype" .. text "i2" ..
  "\x89\x88\x87R(K\3" .. text "<" .. "NNNK\0K\0K\0tb"

-- A value of NumPy, or of Python's library, and what it is read as.
local function library_value()
  local kind = random(3)
  if kind == 1 then
    return global "numpy.core.multiarray\nscalar" .. DTYPE .. "C\2\5\0\x86R", 5
  elseif kind == 2 then
    return global "pathlib\nPosixPath" .. text "a" .. text "b" .. "\x86R", "a/b"
  end
  return global "numpy.core.multiarray\n_reconstruct" ..
         global "numpy\nndarray" .. "K\0\x85C\1b\x87R(K\1" .. list {1, 2} ..
         DTYPE .. "\x89C\4\1\0\2\0tb", nacre.tensor({{1, 2}}, {dtype = "int16"})
end

-- A value that is no tensor; what it is read as.
local function other_value(depth)
  local kind = random(depth > 4 and 5 or 8)
  if kind == 8 then return library_value() end
  if kind == 1 then return integer(7), 7 end
  if kind == 2 then return text "té", "té" end
  if kind == 3 then return "\x88", true end
  if kind == 4 then return string.pack(">c1d", "G", 0.5), 0.5 end
  if kind == 5 then return "]", {} end
  local code, v = other_value(depth + 1)
  if kind == 6 then return "](" .. code .. "e", {v} end
  return "}" .. text "k" .. code .. "s", {k = v}
end

local function replace_opcode(ops)
  ops[random(#ops)] = choose.from {
    "(", ")", "t", "R", "Q", "0", "1", "2", "a", "e", "s", "u", "]", "}", "N",
    ".", "q\0", "h\0", "h\255", string.pack("<c1I4", "j", 1 << 31), "\x94",
    "\x93", "\x81", "b", "i", "P0\n", "\x8f", "\x90", "\x85", "\x86", "\x87",
    string.pack("<c1I4", "X", 0xffffffff), "I01\n", "L1L\n", "F1e999\n",
    "S''\n", string.pack("<BI8", 0x8d, 1 << 40), string.pack("<Bi4", 0x8b, -1),
    "\x8a\0", string.pack("<BI8", 0x95, random(0, 1) * (1 << 62)),
    "\x8a\0091234567", string.char(random(0, 255)),
    global(choose.from(GLOBALS)), integer(choose.other_integer(3)),
    text(choose.name())}
end

local changes = {
  replace_opcode, replace_opcode, replace_opcode,
  function(ops) ops[random(#ops)] = "" end,
  function(ops) table.insert(ops, random(#ops), ops[random(#ops)]) end,
  function(ops)
    local a, b = random(#ops), random(#ops)
    ops[a], ops[b] = ops[b], ops[a]
  end,
  function(ops) ops[random(#ops)] = global(choose.from(GLOBALS)) end,
  function(ops)
    local i = random(#ops)
    ops[i] = choose.damage(ops[i])
  end,
  function(ops) table.insert(ops, 1, ("("):rep(5000)) end,
  function(ops)
    table.insert(ops, 1, ("]"):rep(5000) .. ("a"):rep(4999))
  end,
  function(ops)
    for i = #ops, random(math.min(2, #ops), #ops), -1 do ops[i] = nil end
  end,
}

local OPCODES <const> = "NKMJGXTUBC]}(()tasequhjrcRbQ.\x85\x86\x87\x88\x89" ..
                        "\x8a\x8c\x90\x91\x93\x94\x95"

-- The pickle with another opcode somewhere, or another damage.
local function damage_pickle(s)
  if #s == 0 or not choose.once_in(4) then return choose.damage(s) end
  local i, k = random(#s), random(#OPCODES)
  return s:sub(1, i - 1) .. OPCODES:sub(k, k) .. s:sub(i + random(0, 1))
end

local maker = {ratio = 1200, map = true, format = "pt", nested = true}

-- The members of an archive, the pickle first, damaged or not; the value, and
-- the number of elements of each storage.
local function make_members(damaged)
  local wrong = damaged and choose.once_in(3) and random(6)
  local ops, want = {"\x80" .. choose.from {"\2", "\3", "\4"}, "}", "("}, {}
  local storages, counts = {}, {}
  for i = 1, random(1, 3) do
    local t, key = choose.tensor(), "t" .. i
    ops[#ops + 1] = text(key)
    put_tensor(ops, t, i, i == 1 and wrong)
    storages[i], counts[i] = {"x/data/" .. i, t:tobytes()}, t:numel()
    want[key] = t
  end
  ops[#ops + 1] = text "v"
  ops[#ops + 1], want.v = other_value(0)
  ops[#ops + 1] = "u"
  ops[#ops + 1] = "."
  if damaged and not wrong then
    for _ = 1, random(3) do choose.from(changes)(ops) end
  end
  local members = {{"x/data.pkl", table.concat(ops)},
                   {"x/byteorder", damaged and choose.once_in(20) and
                                   choose.name():sub(1, 99) or "little"},
                   {"x/version", "3\n"}}
  table.move(storages, 1, #storages, #members + 1, members)
  return members, want, counts
end
maker.make_members = make_members

-- What is not known is an error or, of every second file, a table.
function maker.options()
  return choose.once_in(2) and {unknown = "table"} or nil
end

function maker.make(damaged)
  local inside = damaged and not choose.once_in(3)
  local members, want = make_members(inside)
  return {{"x.pt", archive.build(members, damaged and not inside)}},
         not damaged and want or nil, maker.options()
end

-- A pickle, damaged or not.
function maker.pickle(damaged)
  return make_members(damaged)[1][2]
end

-- An archive whose pickle has damaged bytes.
function maker.mutant()
  local members = make_members()
  members[1][2] = choose.mutant(members[1][2], damage_pickle)
  return archive.build(members)
end

-- Fails if there is no library for such files.
function maker.probe() nacre.serialize({nacre.ones(1)}, {format = "pt"}) end

return maker
