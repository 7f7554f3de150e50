-- SPDX-License-Identifier: MIT
-- {mmap = true}: tensors that are pages of a file have the same elements, take
-- no memory, change alone, and fail when the file becomes shorter.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, read, write = C.fails, C.read, C.write

local base = os.tmpname()
local files = {base}
local function path(extension)
  files[#files + 1] = base .. extension
  return files[#files]
end

local n = 1 << 16
local w = nacre.arange(n):float():reshape(256, 256)
local model = {w = w, b = nacre.arange(5), m = nacre.tensor {true, false, true}}
local haszip = pcall(nacre.serialize, w, {format = "pt"})
local MAP = {mmap = true}

-- Bytes that tensors hold while f's result is alive.
local function held(f)
  local before = C.live()
  local kept = f()
  local bytes = C.live() - before
  return bytes, kept
end

-- ---- the same elements, no memory

local npy, safe, pt = path ".npy", path ".safetensors", path ".pt"
nacre.save(npy, w)
nacre.save(safe, model)
local bytes, t = held(function() return nacre.load(npy, MAP) end)
assert(t == w and t:is_contiguous())
assert(bytes < 4096, bytes)
bytes, t = held(function() return nacre.load(safe, MAP) end)
assert(t.w == w and t.b == model.b and t.m == model.m)
assert(bytes < 8192, bytes)
t = nil
if haszip then
  nacre.save(pt, model)
  bytes, t = held(function() return nacre.load(pt, MAP) end)
  assert(t.w == w and t.b == model.b and t.m == model.m)
  assert(bytes < 8192, bytes)
  t = nil
  -- An encrypted member is refused: both of its headers say so.
  nacre.save(pt, {w})
  local secret, name = read(pt), "archive/data/0"
  local at = secret:find(name, 1, true)
  secret = secret:sub(1, at - 25) .. "\1" .. secret:sub(at - 23)
  at = secret:find(name, at + 1, true)
  write(pt, secret:sub(1, at - 39) .. "\1" .. secret:sub(at - 37))
  fails("it is encrypted", nacre.load, pt, MAP)
  local npz = path ".npz"               -- read as ever
  nacre.save(npz, model)
  assert(nacre.load(npz, MAP).w == w)
end
-- Several files by their index.
local index = path ".safetensors.index.json"
write(index, ('{"weight_map":{"w":"%s","b":"%s"}}')
             :format(safe:match "[^/]*$", safe:match "[^/]*$"))
bytes, t = held(function() return nacre.load(index, MAP) end)
assert(t.w == w and t.b == model.b)
assert(bytes < 8192, bytes)
t = nil
-- Without it the memory is the tensor's.
bytes, t = held(function() return nacre.load(npy) end)
assert(bytes >= 4 * n, bytes)

-- Fortran order keeps its strides; other byte orders, dtypes and small members
-- are read.
local function header(descr, order, shape, data)
  local text = ("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }")
               :format(descr, order, shape)
  text = text .. (" "):rep(-(#text + 11) % 64) .. "\n"
  return "\x93NUMPY\1\0" .. string.pack("<s2", text) .. data
end
local column = nacre.arange(2000)
write(npy, header("<i8", "True", "(1000, 2)", column:tobytes()))
bytes, t = held(function() return nacre.load(npy, MAP) end)
assert(bytes < 4096 and t == column:reshape(2, 1000):t(), bytes)
t = nil
write(npy, header(">i4", "False", "(2,)", string.pack(">i4i4", 1, 2)))
C.is(nacre.load(npy, MAP), "{1,2}")
write(npy, header("<i4", "False", "(0,)", ""))
assert(nacre.load(npy, MAP):numel() == 0)
write(npy, header("<u2", "False", "(2,)", "\1\0\2\0"))
C.is(nacre.load(npy, MAP), "{1,2}")
fails("data: int32[3] takes 12 bytes, the file has 8 left", nacre.load,
      (write(npy, header("<i4", "False", "(3,)", ("\0"):rep(8))) or npy), MAP)
assert(nacre.load(safe, {mmap = true, dtype = "float64"}).w ==
       w:to "float64")
fails("mmap is for files of elements", nacre.deserialize, nacre.serialize(w),
      MAP)
write(base, "1,2\n")
fails("mmap is for files of elements", nacre.load, base,
      {mmap = true, format = "csv"})

-- ---- a change is this program's alone

local before = read(safe)
t = nacre.load(safe, MAP)
t.w[{1, 1}] = 77
t.w:add_(1)
assert(t.w[{1, 1}] == 78 and t.w[{1, 2}] == 2)
assert(read(safe) == before)
assert(nacre.load(safe, MAP).w == w)

-- The pages stay when the file is replaced by a save, and when it is removed.
nacre.save(safe, {w = nacre.zeros(2)})
assert(t.w[{1, 2}] == 2 and t.w:sum():item() > 0)
nacre.save(safe, model)
t = nacre.load(safe, MAP)
os.remove(safe)
assert(t.w == w)
-- A save in place would destroy them first: it is refused.
nacre.save(npy, w)
local v = nacre.load(npy, MAP)
for _, x in ipairs {v, nacre.ones(2)} do
  fails("it is mapped into tensors of this program", nacre.save, npy, x,
        {atomic = false})
end
assert(v == w)
v = nil
collectgarbage()
nacre.save(npy, nacre.ones(2), {atomic = false})
assert(nacre.load(npy) == nacre.ones(2))

-- Views and gradients of it.
v = t.w[{{1, 10}}]
t = nil
collectgarbage()
assert(v:requires_grad_():sum():item() == w[{{1, 10}}]:sum():item())
v = nil

-- ---- a file that becomes shorter

local short = "the file became shorter while it was mapped"
local function shortened(i, f)
  nacre.save(npy, w)
  local t = nacre.load(npy, MAP)
  write(npy, "")
  for _ = 1, 2 do                       -- and again
    local ok, e = pcall(f, t)
    assert(not ok and tostring(e):find(short, 1, true),
           ("%s: %s"):format(i, ok and "no error" or tostring(e)))
  end
  collectgarbage()
end
for i, f in ipairs {
  function(t) return t:sum() end,
  function(t) return t + 1 end,
  function(t) return t:exp() end,
  function(t) return t:mm(t) end,
  function(t) return t:softmax(1) end,
  function(t) return nacre.cat {t, t} end,
  function(t) return t:sort() end,
  function(t) return t:clone() end,
  function(t) return t:to "float64" end,
  function(t) return t[{3, 3}] end,
  function(t) return t[{{}, 3}]:sum() end,
  function(t) return t:totable() end,
  function(t) return t:tobytes() end,
  function(t) return tostring(t:sum()) end,
  function(t) return t == w end,
  function(t) return t:add_(1) end,
  function(t) return nacre.zeros(256, 256):copy_(t) end,
  function(t) return nacre.serialize(t) end,
  function(t) return nacre.serialize(t, {format = "csv"}) end,
  function(t) return nacre.serialize {t:t()} end,
  function(t) return t[nacre.tensor {200, 201}] end,
  function(t) return t[w:gt(60000)] end,
  function(t) nacre.zeros(256, 256)[nacre.arange(1, 257)] = t end,
  function(t) t[nacre.tensor {1}] = 5 end,
} do shortened(i, f) end
if pcall(nacre.serialize, model, {format = "h5"}) then
  local h5 = path ".h5"
  for i, compressed in ipairs {false, true} do
    write(h5, "old")
    shortened("h5 " .. i, function(t)
      return nacre.serialize({t}, {format = "h5", compressed = compressed})
    end)
    shortened("h5 " .. i, function(t)
      return nacre.save(h5, {t}, {compressed = compressed})
    end)
    assert(read(h5) == "old")
  end
end
-- Positions in a lost file.
nacre.save(npy, nacre.arange(n))
t = nacre.load(npy, MAP)
write(npy, "")
fails(short, function() return w:view(-1)[t] end)
fails(short, function() w:view(-1)[t] = 0 end)
t = nil
collectgarbage()
-- Within a page nothing tells: so small tensors are read.
nacre.save(npy, nacre.arange(100))
t = nacre.load(npy, MAP)
write(npy, read(npy):sub(1, 200))
assert(t == nacre.arange(100))
-- Other tensors work as before; so does a new mapping.
nacre.save(npy, w)
assert(nacre.load(npy, MAP) == w and (w + 1):sum():item() > 0)

for _, name in ipairs(files) do os.remove(name) end
