-- SPDX-License-Identifier: MIT
-- nacre.serialize gives the bytes that nacre.save writes, nacre.deserialize
-- reads what nacre.load reads, and neither keeps memory when it fails.
-- Run by: nacre tests/files/serialize.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, read, live = C.fails, C.read, C.live

local function is(got, want, what)
  assert(got == want, ("%s: %s, not %s"):format(what, got, want))
end

local base = os.tmpname()
local function saved(what, format, options)
  local name = base .. "." .. format
  nacre.save(name, what, options)
  local bytes = read(name)
  os.remove(name)
  return bytes
end

local function with(options, format)
  local all = {format = format}
  for k, v in pairs(options or {}) do all[k] = v end
  return all
end

local haszip = pcall(nacre.save, base .. ".npz", {nacre.ones(1)})
os.remove(base .. ".npz")

-- ---- the same bytes, and the same tensors again

nacre.manual_seed(1)
for _, dtype in ipairs(C.dtypes) do
  local t = (nacre.rand(4, 3) * 100):to(dtype)
  for _, x in ipairs {t, t:t(), t["::2"], t[{1, {1, 1}}]:reshape({}),
                   nacre.zeros(0, 3, {dtype = dtype})} do
    if dtype ~= "bfloat16" then
      local data = nacre.serialize(x)
      assert(data == saved(x, "npy"), dtype)
      assert(nacre.deserialize(data) == x, dtype)
    end
    local model = {x = x, ["y.z"] = t}
    local options = {metadata = {a = "b"}}
    local data = nacre.serialize(model, options)
    assert(data == saved(model, "safetensors", options), dtype)
    local again, metadata = nacre.deserialize(data)
    assert(again.x == x and again.x.dtype == dtype and again["y.z"] == t)
    is(metadata.a, "b", "metadata")
    if haszip and dtype ~= "bfloat16" then
      for _, compressed in ipairs {false, true} do
        local zip = {compressed = compressed}
        data = nacre.serialize(model, with(zip, "npz"))
        assert(data == saved(model, "npz", zip), dtype)
        assert(nacre.deserialize(data)["y.z"] == t)
      end
    end
  end
  for _, format in ipairs {"csv", "tsv", "txt"} do
    local data = nacre.serialize(t, {format = format})
    assert(data == saved(t, format), dtype)
    local again = nacre.deserialize(data, {format = format, dtype = dtype})
    assert(again == t, dtype)
  end
end

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
fails("serialize: t must be a tensor", nil, nacre.serialize, 3)
fails("serialize: t must be a tensor, not nothing", nil, nacre.serialize)
fails("serialize: a must be a tensor", nil, nacre.serialize, {a = 3})
fails("serialize: there is no format .t7", nil, nacre.serialize,
      nacre.ones(1), {format = "t7"})
fails("such a file holds tensors by name", nil, nacre.serialize,
      nacre.ones(1), {format = "npz"})
fails("serialize: compressed is for .npz files", nil, nacre.serialize,
      nacre.ones(1), {compressed = true})
fails("the .npy format has no bfloat16", nil, nacre.serialize,
      nacre.ones(1):bfloat16())
fails("a text holds a matrix", nil, nacre.serialize, nacre.ones(1, 1, 1),
      {format = "csv"})
fails("deserialize: data must be a string", nil, nacre.deserialize, 3)
fails("deserialize: data: ", nil, nacre.deserialize, "")
fails("deserialize: data: line 1, column 2", nil, nacre.deserialize, "1,x",
      {format = "csv"})
fails("deserialize: no tensor 'b'", nil, nacre.deserialize,
      nacre.serialize {a = nacre.ones(1)}, {names = {"b"}})
for k = 0, 143 do
  assert(not pcall(nacre.deserialize, nacre.serialize(nacre.ones(4)):sub(1, k)))
end
for _, format in ipairs {"npy", "safetensors", haszip and "npz" or nil} do
  local t = nacre.ones(1000, 100)
  local what = format == "npy" and t or {t = t}
  nacre.set_memory_limit(500000)
  fails("the limit of", nil, nacre.serialize, what, {format = format})
  nacre.set_memory_limit(0)
end
for n = 1, 12 do                -- every allocation may fail
  for _, format in ipairs {"npy", "safetensors", "csv"} do
    local t = nacre.ones(40, 30):t()
    nacre._fail_alloc(n, true)
    local ok, e = pcall(nacre.serialize, format == "safetensors" and {t} or t,
                        {format = format})
    nacre._fail_alloc(0)
    assert(ok or e.code == "ENOMEM", tostring(e))
  end
end
is(live(), before, "live bytes")

os.remove(base)
print("serialize: ok")
