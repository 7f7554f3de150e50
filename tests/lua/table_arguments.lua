-- SPDX-License-Identifier: MIT
-- Tables as lists and named arguments: metamethods are respected, and other
-- values are refused.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local n = nacre

local function proxy(t)
  return setmetatable({}, {__index = t, __len = function() return #t end,
                           __pairs = function() return pairs(t) end})
end
local function inherits(t) return setmetatable({}, {__index = t}) end

-- ---- lists read by __index and __len
shape(n.ones(proxy {2, 3}), 2, 3)
shape(n.zeros(setmetatable({2, 2}, inherits {})), 2, 2)
is(n.tensor(proxy {2, 3}), "{2,3}")
is(n.tensor {proxy {1, 2}, {3, 4}}, "{{1,2},{3,4}}")
is(n.tensor(proxy {proxy {1.5}}), "{{1.5}}")
is(n.cat(proxy {n.ones(1), n.zeros(1)}), "{1.0,0.0}")
is(n.ones(2, 3):sum(proxy {1, 2}), "6.0")
shape(n.nn.functional.pad(n.ones(2), proxy {1, 1}), 4)
assert(n.arange(6):reshape(2, 3)[proxy {2, 3}] == 5)
is(n.arange(6):reshape(2, 3)[{proxy {2, 2}, {}}], "{{3,4,5}}")
do
  local t = n.zeros(2, 2)
  t[proxy {1, 2}] = 4
  is(t, "{{0.0,4.0},{0.0,0.0}}")
  local x = n.ones(1):requires_grad_()
  is(n.autograd.grad(proxy {(x * 3):sum()}, proxy {x}), "{3.0}")
  is(n.atleast_2d(proxy {n.ones(1)})[1], "{{1.0}}")
end
for _, f in ipairs {n.tensor, n.ones, n.cat, n.linalg.multi_dot} do
  fails("through __index, but no __len", f, inherits {2, 3})
end
fails("through __index, but no __len", function()
  return n.ones(2, 2)[inherits {1, 2}]
end)
fails("no element 2", n.ones, setmetatable({2}, {
  __len = function() return 2 end}))
fails("not an integer", n.ones, setmetatable({2}, {
  __len = function() return 2.5 end}))
fails("oops", n.tensor, setmetatable({}, {
  __len = function() return 1 end, __index = function() error "oops" end}))

-- ---- named arguments
assert(n.ones(2, inherits {dtype = "float64"}).dtype == "float64")
assert(n.ones(2, proxy {dtype = "int8"}).dtype == "int8")
assert(n.ones(2, setmetatable({}, {__index = function(_, key)
  return ({dtype = "int16"})[key]
end})).dtype == "int16")
assert(n.ones(2, setmetatable({dtype = "bool"}, {__index = {new = print}
                            })).dtype == "bool")
assert(n.ones(2, inherits {requires_grad = true}).requires_grad)
assert(n.ones(2):to(inherits {dtype = "float64"}).dtype == "float64")
is(n.ones(2, 3):sum(inherits {dim = 1, keepdim = true}),
   "{{2.0,2.0,2.0}}")
is(n.norm(n.tensor {3., 4.}, inherits {p = 1}), "7.0")
is(n.nn.functional.pad(n.ones(1), {1, 0}, inherits {value = 5}),
   "{5.0,1.0}")
do
  local out = n.zeros(2)
  n.add(n.ones(2), 1, inherits {out = out})
  is(out, "{2.0,2.0}")
end
fails("no argument 'dtyp'", n.ones, 2, proxy {dtyp = "int8"})
fails("no argument 'dtyp'", n.ones, 2,
      setmetatable({dtyp = "int8"}, {__index = {}}))
fails("no argument 'foo'", n.linalg.inv, n.eye(2), proxy {foo = 1})

-- ---- what is not a list
local gap = {1, 2, 3, [5] = 5}
for _, f in ipairs {n.tensor, n.ones} do
  fails("a list has the key 0", f, {[0] = 9, 1, 2})
  fails("a list has the key 0", f, {[0] = 9})
  fails("no element 4, but an element 5", f, gap)
  fails("no element 1, but an element 5", f, {[5] = 5})
  fails("is nil: a list has no holes", f, {1, nil, 3})
  fails("a list has the key 1.5", f, {1, [1.5] = 2})
  fails("a list has a boolean as a key", f, {1, [true] = 2})
  fails("either a list or named arguments", f, {1, x = 2})
end
fails("element 2 of a list is nil", n.tensor, {{1, nil, 2}})
fails("cat: a list has the key 0", n.cat, {[0] = n.ones(1), n.ones(1)})
fails("element 2 of tensors is nil", n.cat, {n.ones(1), nil, n.ones(1)})
fails("a list has the key 0", n.nn.functional.pad, n.ones(2),
      {[0] = 1, 1, 1})
fails("element 2 of pad is nil", n.nn.functional.pad, n.ones(2),
      {1, nil, 1, 1})
fails("a list has the key 0", function() return n.ones(2)[{[0] = 1, 1}] end)
fails("indices have no names", function() return n.ones(2)[{1, x = 2}] end)
fails("a range is", function() return n.ones(2)[{{1, 2, x = 2}}] end)

-- ---- what table.pack makes is a list
is(n.tensor(table.pack(1, 2, 3)), "{1,2,3}")
is(n.tensor(table.pack()), "{}")
is(n.cat(table.pack(n.ones(1), n.ones(1))), "{1.0,1.0}")
shape(n.ones(table.pack(2, 3)), 2, 3)
assert(n.ones(2, 3)[table.pack(2, 3)] == 1)
fails("n = 2 has no element 2", n.tensor, table.pack(1, nil))
fails("either a list or named arguments", n.tensor, {1, 2, n = "2"})

-- ---- a list of results that stands for a tensor says so
do
  local hint = "a, b = table.unpack(list)"
  local a, b = n.arange(6):reshape(3, 2):unbind()
  assert(#a == 3 and b == nil and a[4] == nil and a.foo == nil)
  for _, f in ipairs {function() return a * 2 end, function() return 2 - a end,
                      function() return -a end, function() return a.shape end,
                      function() return a:sum() end,
                      function() return a:pad({1, 1}) end,
                      function() return a < 1 end} do
    fails("not a list of 3 tensors", hint, f)
  end
  is(n.cat(a), "{0,1,2,3,4,5}")
  shape(n.stack(n.meshgrid(n.arange(2), n.arange(3))), 2, 2, 3)
  is(n.cat {table.unpack(a, 2)}, "{2,3,4,5}")
  for _, list in ipairs {n.ones(4):split(2), n.ones(4):chunk(2)} do
    fails("a list of 2 tensors", hint, function() return list + 1 end)
  end
end

-- ---- files
do
  local path = os.tmpname() .. ".safetensors"
  n.save(path, proxy {a = n.ones(2)})
  is(n.load(path).a, "{1.0,1.0}")
  is(n.load(path, {names = proxy {"a"}}).a, "{1.0,1.0}")
  fails("a list has the key 0", n.load, path, {names = {[0] = "a"}})
  n.save(path, table.pack(n.ones(1), n.zeros(1)))
  is(n.load(path)[2], "{0.0}")
  os.remove(path)
end
