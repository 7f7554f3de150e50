-- SPDX-License-Identifier: MIT
-- Calls in PyTorch's other forms: t:where, norms with names, atleast_1d of
-- several tensors, map_location, the statistics of memory; names that a part of
-- the library does not have.

local here = arg[0]:match "^(.*/)" or ""
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape, grads = C.fails, C.is, C.shape, C.grads
local T = nacre.tensor

-- ---- where

local x, c = T {1, -2, 3}, T {true, false, true}
is(x:where(c, 0), "{1,0,3}")
is(x:where(c, x * 10), "{1,-20,3}")
is(c:where(x, 0), "{1,0,3}")            -- t can be the condition alone
is(nacre.where(c, x, 0), "{1,0,3}")
local a, b = T {true, true, false}, T {true, false, false}
is(a:where(b, c), "{true,false,true}")  -- the argument is the condition
is(nacre.where(a, b, c), "{true,false,true}")
assert(x:where(c, 0.5).dtype == "float32")
fails("the condition must be a bool tensor", x.where, x, x, 0)
fails("other is missing", x.where, x, c)
local r = nacre.empty(3, {dtype = "int64"})
x:where(c, 7, {out = r})
is(r, "{1,7,3}")
grads("where", function(p, q) return p:where(c, q) end,
      nacre.rand(3, {dtype = "float64", requires_grad = true}),
      nacre.rand(3, {dtype = "float64", requires_grad = true}))

-- ---- norms with names

local m = T {{3.0, 0}, {0, -4}}
is(m:norm "fro", "5.0")
is(m:norm {p = "fro", dim = 1}, "{3.0,4.0}")
is(m:norm {p = "fro", keepdim = true}, "{{5.0}}")
assert(m:norm "nuc":allclose(T(7.0)))
assert(nacre.norm(m, {p = "nuc"}):allclose(T(7.0)))
shape(m:norm("nuc", {1, 2}, true), 1, 1)
shape(m:norm {p = "nuc", keepdim = true}, 1, 1)
assert(m:norm {p = "nuc", dtype = "float64"}.dtype == "float64")
shape(nacre.rand(2, 3, 4):norm("nuc", {1, 3}), 3)
local options = {p = "nuc"}
m:norm(options)
assert(options.p == "nuc", "what is given stays")
fails('p must be a number, "fro" or "nuc", not \'inf\'', m.norm, m, "inf")
fails("A has 1 dimension", x.norm, m[1], "nuc")
local one = nacre.empty {}
nacre.norm(m, "nuc", {out = one})
assert(one:allclose(T(7.0)))
nacre.manual_seed(1)
for _, p in ipairs {"fro", "nuc"} do
  grads(p, function(v) return v:norm(p) end,
        nacre.rand(3, 2, {dtype = "float64", requires_grad = true}))
end

-- ---- at least so many dimensions, of several

local function shapes(list, want)
  local text = {}
  for i, t in ipairs(list) do text[i] = tostring(t:size()) end
  assert(table.concat(text) == want, table.concat(text))
end
shapes(nacre.atleast_1d(T(1), T {1, 2}), "{1}{2}")
shapes(nacre.atleast_2d {T(1), T {1, 2}, m}, "{1, 1}{1, 2}{2, 2}")
shapes(nacre.atleast_3d(T(1), m), "{1, 1, 1}{2, 2, 1}")
shapes(nacre.atleast_1d {}, "")
shape(nacre.atleast_2d(T {1, 2}), 1, 2)
assert(C.shares(nacre.atleast_2d {x} [1], x), "they are views")
fails("self must be a tensor", nacre.atleast_1d, {x, 3})
fails("self must be a tensor", nacre.atleast_1d, 3)
fails("element 2 of the list is a table", nacre.atleast_2d, {x, {x}})

-- ---- map_location

local path = os.tmpname() .. ".npy"
nacre.save(path, x)
for _, place in ipairs {"cpu", nacre.get_default_device()} do
  local given = {map_location = place}
  assert(nacre.load(path, given).device == nacre.zeros(1, {device = place})
         .device)
  assert(given.map_location == place and given.device == nil)
end
assert(nacre.load(path, {map_location = "cpu", dtype = "float64"}).dtype
       == "float64")
fails("device and map_location mean the same", nacre.load, path,
      {map_location = "cpu", device = "cpu"})
fails("'nowhere'", nacre.load, path, {map_location = "nowhere"})
os.remove(path)
os.remove((path:gsub("%.npy$", "")))

-- ---- memory

if nacre.cuda.is_available() then
  local held = nacre.zeros(1 << 20, {device = "cuda"})
  local s = nacre.cuda.memory_stats()
  assert(s["allocated_bytes.all.current"] == nacre.cuda.memory_allocated())
  assert(s["allocated_bytes.all.peak"] >= held:numel() * 4)
  assert(s["reserved_bytes.all.current"] == nacre.cuda.memory_reserved())
  assert(s["reserved_bytes.all.peak"] >= s["reserved_bytes.all.current"])
  assert(s["segment.all.current"] > 0 and s["num_alloc_retries"] >= 0)
  assert(s["allocation.all.current"] ==
         s["allocation.all.allocated"] - s["allocation.all.freed"])
  local more = nacre.zeros(4, {device = "cuda"})
  local now = nacre.cuda.memory_stats {device = 0}
  assert(now["allocation.all.allocated"] > s["allocation.all.allocated"])
  held, more = nil, nil
end

-- ---- names that a part does not have

local parts = {["nn.functional"] = nacre.nn.functional, nn = nacre.nn,
               linalg = nacre.linalg, cuda = nacre.cuda,
               autograd = nacre.autograd, backends = nacre.backends,
               ["backends.cuda"] = nacre.backends.cuda}
local function get(t, k) return t[k] end
for name, t in pairs(parts) do
  fails(("nacre.%s has no 'zzzzzz'"):format(name), get, t, "zzzzzz")
  assert(rawget(t, "zzzzzz") == nil and t._zzzzzz == nil and t[1] == nil)
  for k in pairs(t) do assert(type(k) == "string") end
end
fails("did you mean 'nacre.linalg.svd'?", get, nacre.linalg, "svdd")
fails("did you mean 'nacre.linear'?", get, nacre.linalg,
      "linear")
fails("did you mean 'nacre.gather'?", get, nacre.nn.functional, "gather")
fails("nacre.linalg has no 'item'", "t:item(...)", get, nacre.linalg, "item")
fails("matmul has no 'allow_tf'", get, nacre.backends.cuda.matmul, "allow_tf")
nacre.linalg.mine = 3                   -- what is added is there
assert(nacre.linalg.mine == 3)
nacre.linalg.mine = nil

-- ---- norm, with p by name
local square = nacre.ones(2, 2)
fails("norm: p is given twice", m.norm, square, 2, {p = "fro"})
assert(nacre.allclose(square:norm(nil, 1, {p = "fro"}), T {1, 1} * 2^0.5))

-- a nil behind the arguments is none
assert(square:numel(nil) == 4)

print("forms: passed")
