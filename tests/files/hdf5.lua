-- SPDX-License-Identifier: MIT
-- HDF5 files: every dtype, groups, slices, attributes, errors.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, read, write = C.fails, C.read, C.write

local path = os.tmpname() .. ".h5"
local remove <close> = setmetatable({}, {__close = function()
  os.remove(path)
end})

if not pcall(nacre.save, path, {x = nacre.ones(1)}) then
  fails("HDF5 library, which was not found", nacre.save, path,
        {x = nacre.ones(1)})
  skip "there is no HDF5 library"
end

local same = C.same

-- ---- dtypes and shapes, compressed and not

local tensors = {scalar = nacre.tensor(2.5), none = nacre.empty(0, 3),
                 strided = C.range(40, 30):t(), step = C.range(9)[{{1, 9, 2}}],
                 large = C.range(700, 900):float(),
                 long = nacre.arange(300000):double()}
for _, dtype in ipairs {"bool", "uint8", "int8", "int16", "int32", "int64",
                        "float16", "bfloat16", "float32", "float64",
                        "complex64", "complex128"} do
  tensors[dtype] = nacre.tensor({{0, 1, 2}, {3, 0, 5}}, {dtype = dtype})
end
tensors.float64[1][1] = 0.1
tensors.complex64[1][1] = 1 - 2*nacre.i
tensors.int64[1][1] = math.mininteger
for _, compressed in ipairs {false, true} do
  nacre.save(path, tensors, {compressed = compressed})
  local got, more = nacre.load(path)
  assert(more == nil)
  for name, t in pairs(tensors) do same(got[name], t, name) end
  local again = nacre.deserialize(nacre.serialize(tensors, {
    format = "h5", compressed = compressed}))
  for name, t in pairs(tensors) do same(again[name], t, name) end
end
assert(#read(path) < 3000000) -- deflated: 7.5 MB before
assert(nacre.serialize(tensors, {format = "h5"}) ==
       nacre.serialize(tensors, {format = "h5"}))
local special = nacre.tensor{0/0, 1/0, -1/0, -0.0}
for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64"} do
  nacre.save(path, {x = special:to(dtype)})
  local t = nacre.load(path).x
  assert(t[1] ~= t[1] and t[2] == 1/0 and t[3] == -1/0 and 1 / t[4] == -1/0,
         dtype)
end

-- ---- groups

local model = {layer = {weight = nacre.eye(2), ["b é"] = nacre.zeros(2)},
               list = {nacre.ones(1), {x = nacre.ones(2)}, nacre.ones(3)},
               ["a/b"] = nacre.arange(4)}
nacre.save(path, model)
local got = nacre.load(path)
same(got.layer.weight, nacre.eye(2))
same(got.layer["b é"], nacre.zeros(2))
same(got.list[2].x, nacre.ones(2))
assert(#got.list == 3)
same(got.a.b, nacre.arange(4))
got = nacre.load(path, {names = {"layer/weight"}})
same(got.layer.weight, nacre.eye(2))
assert(got.list == nil and got.layer["b é"] == nil)
nacre.save(path, {nacre.ones(1), nacre.ones(2)})
same(nacre.load(path)[2], nacre.ones(2))
nacre.save(path, {nacre.ones(1), x = nacre.ones(2),
                  y = {nacre.ones(3), nacre.ones(4), z = nacre.ones(5)}})
got = nacre.load(path)
same(got[1], nacre.ones(1))
same(got.x, nacre.ones(2))
same(got.y[2], nacre.ones(4))
same(got.y.z, nacre.ones(5))
nacre.save(path, {arr_01 = nacre.ones(1), arr_2 = {a = {nacre.ones(2)}}})
got = nacre.load(path)
same(got.arr_01, nacre.ones(1))
same(got.arr_2.a[1], nacre.ones(2))
for _, v in ipairs {{nacre.ones(1), nil, nacre.ones(1)},
                    {x = {nacre.ones(1), nil, nacre.ones(1)}}} do
  fails("element 2 of a list is nil: a list has no holes", nacre.save, path, v)
end
local net = nacre.nn.Linear(3, 2)
nacre.save(path, net)
same(nacre.load(path).weight, net.weight:detach())

-- ---- slices

local m = C.range(50, 40, 3)
for _, compressed in ipairs {false, true} do
  nacre.save(path, {m = m, s = nacre.tensor(1)}, {compressed = compressed})
  local function slice(s)
    return nacre.load(path, {names = {"m"}, slice = s}).m
  end
  same(slice{}, m)
  same(slice{{2, 5}}, m[{{2, 5}}]:contiguous())
  same(slice{{-2, -1}, {}, 3}, m[{{-2, -1}, {}, 3}]:contiguous())
  same(slice{{1, 50, 7}, 4}, m[{{1, 50, 7}, 4}]:contiguous())
  same(slice{3, 4, 2}, m[{{3, 3}, 4, 2}]:reshape{})
  C.shape(slice{{1, 0}}, 0, 40, 3)
  for _, bad in ipairs {{0}, {51}, {{1, 51}}, {{3, 1}}, {{1, 5, 0}}} do
    fails("slice: dimension 1 has the indices 1 to 50", slice, bad)
  end
  fails("is a number, {first, last}", slice, {"x"})
  fails("is a number, {first, last}", slice, {{1}})
  fails("slice has 4 entries, the tensor 3 dimensions", slice, {1, 1, 1, 1})
end
nacre.save(path .. "x.npz", {m = m})
fails("slice is for .h5 files", nacre.load, path .. "x.npz", {slice = {1}})
os.remove(path .. "x.npz")

-- ---- attributes

nacre.save(path, {x = nacre.ones(2)}, {metadata = {made = "é", empty = ""}})
local _, attributes = nacre.load(path)
assert(attributes["/"].made == "é" and attributes["/"].empty == "")

-- ---- errors: the old file stays

local before = read(path)
for what, value in pairs {
  ["x/y must be a tensor, not a number"] = {x = {y = 1}},
  ["has an empty part"] = {["a//b"] = nacre.ones(1)},
  ["nested too deep"] = (function() local t = {} t.t = t return t end)(),
  ["save: " .. path .. ": a/b: "] = {a = nacre.ones(1),
                                     ["a/b"] = nacre.ones(1)},
} do
  fails(what, nacre.save, path, value)
end
fails("tensors by name", nacre.save, path, nacre.ones(2))
assert(read(path) == before)
fails("no tensor 'z'", nacre.load, path, {names = {"z"}})
write(path, before:sub(1, 300))
fails("the file cannot be read: truncated file", nacre.load, path)
write(path, "no file of HDF5")
fails("the file cannot be read: file signature not found", nacre.load, path)
write(path, "")
fails("the file cannot be read", nacre.load, path)

-- ---- the process that reads: its end is an error, and another one is started

local function first(pattern, file)
  local f <close> = io.open(file)
  return f and f:read("a"):match(pattern)
end

local me = first("^(%d+)", "/proc/self/stat")
local function reader()
  return me and first("(%d+)%s*$", ("/proc/%s/task/%s/children"):format(me, me))
end

if me then
  m = C.range(50, 40)
  nacre.save(path, {m = m}, {compressed = true})
  local archive <close> = nacre._archive(path)
  local pid = reader()
  if pid then -- or the system does not tell of children
    os.execute("kill -SEGV " .. pid)
    fails("the library that reads it crashed: Segmentation fault",
          "the file is damaged, or larger in memory than it may be",
          nacre._archive_load, archive, 1)
    same(nacre._archive_load(archive, 1), m)
    pid = reader()
    os.execute("kill -PROF " .. pid)
    fails("the library that reads it did not finish",
          nacre._archive_info, archive, 1)
    same(nacre._archive_load(archive, 1), m)
    -- a reader that does not go on is interrupted
    local script = ([[local a = nacre._archive(%q)
      local f = io.open "/proc/self/stat"
      local me = f:read "a":match "^%%d+"
      f = io.open("/proc/" .. me .. "/task/" .. me .. "/children")
      os.execute(("kill -STOP %%s; (sleep 0.2; kill -INT %%s) &"):format(
        f:read "a":match "(%%d+)%%s*$", me))
      nacre._archive_load(a, 1)]]):format(path)
    write(path .. ".lua", script)
    local p = io.popen(("%s %s.lua 2>&1"):format(arg[-1], path))
    local text = p:read "a"
    p:close()
    os.remove(path .. ".lua")
    assert(text:find "interrupted", text)
    nacre.save(path, {other = m})
    os.execute("kill -KILL " .. reader())
    fails("the library that reads it crashed", nacre._archive_info, archive, 1)
    fails("the file has changed", nacre._archive_info, archive, 1)
  end
end

-- ---- elements that are as in memory are read, or mapped, without the library

nacre.save(path, {m = m, c = m:float(), none = nacre.empty(0, 3)})
got = nacre.load(path, {mmap = true})
same(got.m, m)
same(got.c, m:float())
got.m[1] = 0 -- a copy
same(nacre.load(path).m, m)
before = read(path)
write(path, before:sub(1, -4000))
fails("truncated file", nacre.load, path, {mmap = true})

-- ---- a type of elements that the library is too old for

nacre.save(path, {m = nacre.ones(3)})
before = read(path)
local at = assert(before:find("\x11\x20\x1f\0\4\0\0\0", 1, true))
write(path, before:sub(1, at - 1) .. "\x61" .. before:sub(at + 1))
local e = fails("bad version number for datatype message", nacre.load, path)
assert(e.hint:find("writes files that both can read", 1, true))
