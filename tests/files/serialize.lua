-- SPDX-License-Identifier: MIT
-- Tensors of every dtype and layout are the same after save and load, in every
-- format. nacre.serialize gives the bytes that nacre.save writes,
-- nacre.deserialize reads what nacre.load reads, and neither keeps memory when
-- it fails.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, read, live = C.fails, C.read, C.live

local function is(got, want, what)
  assert(got == want, ("%s: %s, not %s"):format(what, got, want))
end

local base = os.tmpname()
local function with(options, format)
  local all = {format = format}
  for k, v in pairs(options or {}) do all[k] = v end
  return all
end

-- The bytes that nacre.save writes, and what nacre.load makes of them.
local function saved(what, format, options, reading)
  local name = base .. "." .. format
  nacre.save(name, what, options)
  local bytes, again = read(name), nacre.load(name, reading)
  os.remove(name)
  return bytes, again
end

-- Writing to a file and to memory gives the same bytes; what is read from both
-- is what was written: one tensor, or two by name.
local function back(what, format, options, reading)
  local all = with(options, format)
  local data = nacre.serialize(what, all)
  local bytes, loaded = saved(what, format, options, reading)
  assert(data == bytes, format)
  local again = nacre.deserialize(data, with(reading, format))
  if nacre.is_tensor(what) then
    what, loaded, again = {x = what}, {x = loaded}, {x = again}
  end
  for name, t in pairs(what) do
    for _, got in ipairs {loaded[name], again[name]} do
      assert(got.dtype == t.dtype and got == t, format .. " " .. t.dtype)
    end
  end
end

local haszip = pcall(nacre.save, base .. ".npz", {nacre.ones(1)})
os.remove(base .. ".npz")

-- ---- the same bytes, and the same tensors again

nacre.manual_seed(1)
for _, dtype in ipairs(C.dtypes) do
  local t = (nacre.rand(4, 3) * 100):to(dtype)
  local cube = (nacre.rand(4, 3, 5) * 100):to(dtype)
  for _, x in ipairs {t, t:t(), t["::2"], t[{1, {1, 1}}]:reshape({}),
                      cube:permute(3, 1, 2), cube["::2, :, 2:4"],
                      cube:narrow(1, 1, 1):expand(4, 3, 5),
                      nacre.zeros(0, 3, {dtype = dtype}),
                      nacre.zeros(2, 0, 3, {dtype = dtype})} do
    local model = {x = x, ["y.z"] = t}
    back(model, "safetensors", {metadata = {a = "b"}})
    if dtype ~= "bfloat16" then
      back(x, "npy")
      for _, compressed in ipairs(haszip and {false, true} or {}) do
        back(model, "npz", {compressed = compressed})
      end
    end
  end
  for _, format in ipairs {"csv", "tsv", "txt"} do
    back(t, format, nil, {dtype = dtype})
  end
end
local _, metadata = nacre.deserialize(
  nacre.serialize({nacre.ones(1)}, {metadata = {a = "b"}}))
is(metadata.a, "b", "metadata")

-- ---- more bytes than a writer has room for at first, and than a block

local large = nacre.rand(1200, 500)
assert(nacre.deserialize(nacre.serialize(large)) == large)
assert(nacre.deserialize(nacre.serialize({large:t(), large}))[1] == large:t())
local names
large, names = nacre.deserialize(nacre.serialize(nacre.eye(2),
  {format = "csv", header = {"a", "b"}}), {format = "csv", header = true})
is(names[2] .. large:sum():item(), "b2.0", "a text with names")
is(nacre.deserialize("1 2\n", {format = "txt", dtype = "int8"}).dtype, "int8",
   "dtype")

-- ---- what fails says so, under its own name, and keeps nothing

local before = live()
fails("serialize: t must be a tensor", nacre.serialize, 3)
fails("serialize: t must be a tensor, not nothing", nacre.serialize)
fails("serialize: a must be a tensor", nacre.serialize, {a = 3},
      {format = "npz"})
fails("serialize: there is no format .t7", nacre.serialize, nacre.ones(1),
      {format = "t7"})
fails("such a file holds tensors by name", nacre.serialize, nacre.ones(1),
      {format = "npz"})
fails("serialize: compressed is for .npz and .h5 files", nacre.serialize,
      nacre.ones(1), {compressed = true})
fails("the .npy format has no bfloat16", nacre.serialize,
      nacre.ones(1):bfloat16())
fails("a text file holds a matrix", nacre.serialize, nacre.ones(1, 1, 1),
      {format = "csv"})
fails("deserialize: data must be a string", nacre.deserialize, 3)
fails("deserialize: data: ", nacre.deserialize, "")
fails("deserialize: data: line 1, column 2", nacre.deserialize, "1,x",
      {format = "csv"})
fails("deserialize: no tensor 'b'", nacre.deserialize,
      nacre.serialize {a = nacre.ones(1)}, {names = {"b"}})
for k = 0, 143 do
  assert(not pcall(nacre.deserialize, nacre.serialize(nacre.ones(4)):sub(1, k)))
end
for _, format in ipairs {"npy", "safetensors", haszip and "npz" or nil} do
  local t = nacre.ones(1000, 100)
  local what = format == "npy" and t or {t = t}
  nacre.set_memory_limit(500000)
  fails("the limit of", nacre.serialize, what, {format = format})
  nacre.set_memory_limit(0)
end
is(live(), before, "live bytes")

os.remove(base)
