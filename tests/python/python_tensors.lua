-- SPDX-License-Identifier: MIT
-- Tensors and arrays that share memory, both ways: dtypes, strides, memory that
-- can only be read, who frees what. With PyTorch where it is installed.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails

local ok, py = pcall(nacre.python)
if not ok then skip(tostring(py)) end
local array = py.import "array".array
local has_numpy, np = pcall(py.import, "numpy")

-- ---- the buffer protocol, without NumPy

local buffer = array("f", {1, 2, 3})
local t = py.tensor(buffer)
assert(t.dtype == "float32")
C.is(t, "{1.0,2.0,3.0}")
t[1] = 10
assert(buffer[0] == 10)
buffer[2] = 30
C.is(t, "{10.0,2.0,30.0}")
fails("BufferError", function() buffer:append(4) end)
local view = py.builtins.memoryview(py.bytes "abcdef")
C.is(py.tensor(view), "{97,98,99,100,101,102}")
assert(py.tensor(view).dtype == "uint8")
C.shape(py.tensor(view:cast("B", {2, 3})), 2, 3)
C.is(py.tensor(view[py.slice(nil, nil, 2)]), "{97,99,101}")
for code, dtype in pairs {b = "int8", B = "uint8", h = "int16", i = "int32",
                          l = "int64", q = "int64", f = "float32",
                          d = "float64", H = "uint16", I = "uint32",
                          Q = "uint64"} do
  assert(py.tensor(array(code, {0, 1})).dtype == dtype, code)
end
assert(py.tensor(array "d").dtype == "float64" and #py.tensor(array "d") == 0)
fails("of the type ", 'convert it in Python first: a:astype("float32")',
      py.tensor, array("u", "a"))
fails("TypeError: memoryview: a bytes-like object is required, not 'list'",
      "nacre.tensor(py.table(x)) copies lists of numbers", py.tensor,
      py.list {1})
fails("a stride is negative, which a tensor does not support",
      "copy it in Python first: a:copy(), numpy.ascontiguousarray(a)",
      py.tensor, view[py.slice(nil, nil, -1)])
assert(py.tensor(t) == t, "a tensor stays")
fails("argument 1 must be an object of Python, not a number", py.tensor, 5)

-- an object where a tensor is asked for
local use = "py.tensor(object) is a tensor of the elements of an array"
fails("an element is an object of Python, not a number", use, nacre.tensor,
      buffer)
fails("element 1 of tensors is an object of Python", use, nacre.cat, {buffer})
fails("mat2 must be a tensor, not an object of Python", use, t.mm, t, buffer)
fails("an object of Python is not a valid index", use, function()
  return t[buffer]
end)
fails("an element is a function, not a number", nacre.tensor, print)

-- ---- a consumer of DLPack frees without the lock of Python

local has_ctypes, ctypes = pcall(py.import, "ctypes")
if has_ctypes then
  py.exec [[
import ctypes, _nacre, sys
class Memory(bytearray):
    def __del__(self): freed.append(sum(range(100)))
freed = []
def deleter_of(t):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object,
                                                  ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = get.argtypes
    capsule = t.__dlpack__()
    at = get(capsule, b"dltensor")
    rename(capsule, name)
    # behind 48 bytes of the tensor stands the owner
    f = ctypes.cast(at + 56, ctypes.POINTER(ctypes.c_void_p))[0]
    # a function of ctypes gives the lock away
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(f), at
name = b"used_dltensor"
hidden = sys.modules.get("numpy")
sys.modules["numpy"] = None # a tensor is an object with __dlpack__
]]
  local main = py.main
  local memory = py.tensor(main.Memory(16))
  local delete, at = py.unpack(main.deleter_of(memory))
  memory = nil
  collectgarbage()
  collectgarbage()
  assert(#main.freed == 0)
  delete(at)
  py.eval "1"
  assert(#main.freed == 1)
  py.exec [[
if hidden: sys.modules["numpy"] = hidden
else: del sys.modules["numpy"]
]]
end

-- ---- memory that can only be read

local read = py.tensor(py.bytes "\1\2")
for _, write in ipairs {
  function() read[1] = 5 end, function() read:add_(1) end,
  function() read:fill_(0) end,
  function() read:copy_(nacre.zeros(2):byte()) end,
  function() nacre.add(read, 1, {out = read}) end,
  function() read:random_() end, function() read[read:gt(0)] = 0 end,
  function() read[{{1, 2}}]:zero_() end,
  function() read:index_fill_(1, nacre.tensor {1}, 0) end,
  function() read:scatter_(1, nacre.tensor {1}, 3) end,
  function() read:masked_fill_(read:gt(0), 0) end,
  function() nacre.sort(read, {out = {read, nacre.empty(2):long()}}) end} do
  fails("the memory of the tensor can only be read", write)
end
local refused = fails("the memory of the tensor can only be read",
                      function() read:zero_() end)
assert(refused.hint:find(":clone() can be written to", 1, true))
C.is(read, "{1,2}")
C.is(read:clone():add_(1), "{2,3}")
local function two()
  return py.tensor(py.builtins.memoryview(py.bytes(("f"):pack(2))):cast "f")
end
local floats = two()
fails("the memory of the tensor can only be read", floats.mul_, floats, 2)
local leaf = two()
leaf:requires_grad_()
local sgd = nacre.optim.SGD({leaf}, {lr = 0.1})
leaf:sum():backward()
fails("the memory of the tensor can only be read", sgd.step, sgd)
assert(leaf:item() == 2)

-- ---- who frees what

local function collected() collectgarbage() collectgarbage() end
local before = C.live()
do
  local source = py.eval("bytearray")(64)
  local x = py.tensor(source)
  local w = x:view(8, 8)[{2}]
  x, source = nil, nil
  collected()
  w:fill_(7) -- the view holds the memory
  C.is(w, "{7,7,7,7,7,7,7,7}")
end

if not has_numpy then
  local x = nacre.ones(2)
  local shared = py.array(x)
  assert(py.builtins.repr(shared) == "<Lua tensor float32[2] cpu>")
  assert(py.tensor(shared):equal(x))
  print "without NumPy"
  return
end

-- ---- NumPy: every dtype, bit for bit

local function bits(dtype)
  local raw = {}
  for i = 0, 255 do raw[i + 1] = string.char(i) end
  local text = table.concat(raw)
  if dtype == "bool" then text = ("\0\1"):rep(128) end
  return nacre.frombuffer(text, {dtype = dtype}), text
end
local names = {"bool", "uint8", "int8", "int16", "int32", "int64", "uint16",
               "uint32", "uint64", "float16", "float32", "float64"}
for _, dtype in ipairs(names) do
  local x, text = bits(dtype)
  local a = py.array(x)
  assert(tostring(a.dtype) == dtype)
  assert(a:tobytes() == text, dtype)
  assert(py.tensor(a):tobytes() == text and py.tensor(a).dtype == dtype)
  local own = np.frombuffer(py.bytes(text), {dtype = dtype}):copy()
  local back = py.tensor(own)
  assert(back:tobytes() == text and back.dtype == dtype, dtype)
  back[1] = 1
  assert(own:item(0) == own[0] and own:tobytes() == back:tobytes(), dtype)
  assert(type(own[0]) == (dtype == "bool" and "boolean" or "number"))
end
local half = nacre.ones(3):bfloat16()
fails("TypeError: NumPy cannot have this tensor: bfloat16[3] cpu", np.asarray,
      half)
fails("TypeError: NumPy cannot have this tensor: float8_e5m2[3] cpu",
      np.asarray, half:to "float8_e5m2")

-- ---- shapes and strides

local x = C.range(24):view(2, 3, 4)
for _, v in ipairs {x, x:permute(3, 1, 2), x[{1}]:t(),
                    x[{{1, 2}, {2, 3}, {1, -1}}],
                    nacre.tensor(5), nacre.empty(0, 3), x:narrow(3, 2, 2),
                    nacre.ones(3):expand(2, 3), x:view(24)[{{1, 24, 5}}]} do
  local a = py.array(v)
  assert(tostring(py.table(a.shape)[1]) == tostring(v:size()[1]))
  assert(py.tensor(a):equal(v))
  for d, s in ipairs(v:stride()) do
    if v:numel() > 0 and v:size()[d] > 1 then
      assert(a.strides[d - 1] == s * v:element_size())
    end
  end
end
local a = np.arange(24, {dtype = "float32"}):reshape(2, 3, 4)
for _, v in ipairs {a, a.T, a[{0, py.slice(nil), 1}], a[{py.slice(nil), 1}],
                    a:reshape(24)[py.slice(nil, nil, 7)], np.array(3.5),
                    np.zeros {0, 4}} do
  local b = py.tensor(v)
  assert(np.array_equal(v, b), tostring(v))
end
local wide = np.broadcast_to(np.ones(1), {3})
fails("can only be read", function() py.tensor(wide)[1] = 5 end)
fails("a stride is not a whole number of elements", py.tensor,
      np.zeros(3, {dtype = py.eval "[('a', 'f8'), ('b', 'i4')]"}):
      __getitem__ "a")
fails("its elements are not aligned", py.tensor,
      np.frombuffer(py.eval "bytearray(9)", {dtype = "f4", offset = 1}))
for _, dtype in ipairs {"clongdouble", "float128", "S3"} do
  fails("no dtype of Nacre has elements of the type", py.tensor,
        np.zeros(2, {dtype = dtype}))
end
fails("no dtype of Nacre has elements of the type >f", py.tensor,
      np.zeros(2, {dtype = ">f4"}))
fails("it has 9 dimensions", "a:reshape(...) joins some of them", py.tensor,
      np.zeros {1, 1, 1, 1, 1, 1, 1, 1, 1})

-- What is masked is no number.
local masked = np.ma.masked_greater(np.arange(4.0), 2)
local row = np.ma.masked_equal(np.ones {2, 3}, 1)
for _, v in ipairs {masked, row, row[1], masked[py.slice(3, 4)]} do
  fails("it has masked elements, and a tensor has no mask", py.tensor, v)
end
C.is(py.tensor(masked:filled(-1)), "{0.0,1.0,2.0,-1.0}")
C.is(py.tensor(masked[py.slice(3)]), "{0.0,1.0,2.0}")
C.is(py.tensor(np.ma.masked_greater(np.arange(2.0), 9)), "{0.0,1.0}")

-- ---- writes are seen on both sides

local shared = py.array(x)
shared[{0, 0, 0}] = 100
assert(x[{1, 1, 1}] == 100)
x:zero_()
assert(shared:sum() == 0)
assert(np.sum(nacre.ones(4)) == 4 and np.dot({1, 2}, nacre.ones(2)) == 3)
assert(tostring(py.eval("lambda t: type(t).__name__")(x)) == "ndarray")
local got = py.eval("lambda f, a: f(a)")(function(o) return py.tensor(o) end, x)
assert(got.data)
assert(a:reshape(24) + py.tensor(np.ones(24)) == a:reshape(24) + 1)

-- ---- operators: a tensor may be the left one, and the result is Python's

local p, q = nacre.tensor {5.0, 7}, np.array {2, 3}
for _, f in ipairs {function(l, r) return l + r end,
                    function(l, r) return l - r end,
                    function(l, r) return l * r end,
                    function(l, r) return l / r end,
                    function(l, r) return l // r end,
                    function(l, r) return l % r end,
                    function(l, r) return l ^ r end} do
  assert(py.tensor(f(p, q)):double():equal(f(p:double(), py.tensor(q))))
end
assert(py.tensor(p:gt(0) & np.array {true, false}):equal(p:eq(5)))
assert(p == np.array {5, 7} and np.array {5, 7} == p and p ~= q and q ~= p)
assert(nacre.tensor(2.0) < np.array(3) and np.array(3) >= nacre.tensor(3.0))
assert(p:add(q) == np.array {7, 10})
fails("other must be a tensor or a number, not an object of Python", use,
      p.add_, p, q)
fails("requires grad", function() return nacre.ones(2):requires_grad_() + q end)
fails("The truth value", "Lua has one boolean for a comparison: " ..
      "numpy.greater(a, b), numpy.less(a, b) compare each element",
      function() return q > 2 end)
assert(np.zeros(3) ~= np.zeros(4) and np.zeros {2, 2} ~= np.zeros(2),
       "of other shapes")
assert(np.zeros {0, 3} ~= np.zeros(3) and np.zeros {2, 2} == np.zeros {2, 2})
local nested = py.table(py.eval("{'a': [x, 1]}", {x = np.arange(2)}))
assert(nested.a[1][2] == 1 and nested.a[2] == 1)
assert(type(np.timedelta64(5, "ns")) == "userdata", "it keeps its unit")

-- ---- an array of a part of the tensor that is written to

do
  local whole
  local function shifted(f)
    whole = C.range(1000):float()
    local part = py.tensor(py.array(whole)[py.slice(0, 999)])
    local expected = whole:clone()
    f(expected[{{2, 1000}}], part:clone())
    f(whole[{{2, 1000}}], part)
    assert(whole:equal(expected))
  end
  local back = nacre.arange(999, 0, -1)
  shifted(function(y, x) y:add_(x) end)
  shifted(function(y, x) nacre.add(y, x, {out = y}) end)
  shifted(function(y, x) y:copy_(x) end)
  shifted(function(y, x) y:scatter_(1, back, x) end)
  shifted(function(y, x) y:index_copy_(1, back, x) end)
  shifted(function(y, x) y[back] = x end)
  shifted(function(y, x) y:masked_scatter_(y:gt(0), x) end)
  shifted(function(y, x) nacre.cumsum(x, 1, {out = y}) end)
  shifted(function(y, x) y:lerp_(x, 0.5) end)
  local fused = nacre.fuse(function(y, x) return y:add_(x * 0.5) end)
  shifted(fused)
  local one, two = np.arange(10.0), nil
  one, two = py.tensor(one[py.slice(1, nil)]), py.tensor(one[py.slice(0, 9)])
  one:add_(two)
  C.is(one, "{1.0,3.0,5.0,7.0,9.0,11.0,13.0,15.0,17.0}")
end

-- ---- gradients are not lost in silence

local w = nacre.ones(2, {requires_grad = true})
refused = fails("the tensor requires grad, but operations of Python are " ..
                "not recorded", py.array, w)
assert(refused.hint:find(":detach() shares its elements", 1, true))
fails("requires grad", np.sum, w * 2)
py.array(w:detach())[0] = 5
assert(w[1]:item() == 5)

-- ---- either side may be freed first

do
  local y = nacre.zeros(1000)
  local b = py.array(y)
  y:free()
  y = nil
  collected()
  b:fill(3)
  assert(b:sum() == 3000)
end
do
  local b = np.zeros(1000)
  local y = py.tensor(b)
  b = nil
  collected()
  y:fill_(2)
  assert(y:sum():item() == 2000)
end
do -- the elements of a tensor that gets others
  local y = nacre.zeros(1000)
  local b = py.array(y)
  y.data = nacre.ones(3)
  collected()
  assert(b:sum() == 0)
end
collected()
assert(C.live() <= before + 4096, "the tensors are freed")

-- ---- 20,000 conversions leave nothing

local process = py.import "resource"
local function peak()
  return process.getrusage(process.RUSAGE_SELF).ru_maxrss
end
local function many(n)
  for i = 1, n do
    local y = py.tensor(py.array(nacre.zeros(500)))
    y[1] = i
    np.add(y, 1)
    py.eval("lambda f: f({'a': [1, 'x']})")(function(o) return o.a end)
    pcall(py.eval, "1/0")
  end
  collected()
end
many(1000)
local first = peak()
many(4000)
local grown = peak() - first
assert(grown < 6000 or os.getenv "ASAN_OPTIONS", grown .. " KiB more")

-- ---- threads of Python

py.exec [[
import threading, time
done = []
def drop(o):
    def run():
        nonlocal_box.clear()
        done.append(1)
    nonlocal_box = [o]
    del o
    t = threading.Thread(target=run)
    t.start()
    return t
def call_from_thread(f):
    seen = []
    def run():
        try: f()
        except RuntimeError as e: seen.append(str(e))
    t = threading.Thread(target=run)
    t.start()
    t.join()
    return seen[0] if seen else None
class Counter(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.n, self.go = 0, True
    def run(self):
        while self.go:
            self.n += 1
            time.sleep(0.0005)
]]
local main = py.main
local live = C.live()
for _ = 1, 20 do -- what a thread frees is freed on this one
  main.drop(nacre.zeros(5000)):join()
end
collected()
py.eval "1"
assert(C.live() <= live + 4096)
assert(main.call_from_thread(function() end):find "the thread that runs Lua")
local counter = main.Counter()
counter:start()
local deadline = nacre.clock() + 20
repeat -- it goes on while Lua computes
  nacre.randn(100, 100):mm(nacre.randn(100, 100))
until counter.n > 5 or nacre.clock() > deadline
assert(counter.n > 5, "the thread of Python stands still")
counter.go = false
counter:join()

-- ---- PyTorch, by DLPack

local has_torch, torch = pcall(py.import, "torch")
if not has_torch then return print "without PyTorch" end
names[#names + 1] = "bfloat16"
for _, dtype in ipairs(names) do
  if not py.builtins.hasattr(torch, dtype) then goto unknown end
  local y, text = bits(dtype)
  -- older versions of NumPy and PyTorch have no DLPack of bool
  local b = dtype == "bool" and torch.from_numpy(y) or torch.from_dlpack(y)
  local shared = dtype == "bool" and b:numpy() or b
  assert(tostring(b.dtype) == "torch." .. dtype)
  assert(py.tensor(shared):tobytes() == text, dtype)
  assert(py.tensor(shared).dtype == dtype)
  b:zero_()
  assert(y:tobytes() == ("\0"):rep(256), dtype)
  b = torch.zeros(4, {dtype = torch[dtype]})
  local back = py.tensor(dtype == "bool" and b:numpy() or b)
  assert(back.dtype == dtype and #back == 4)
  ::unknown::
end
local b = torch.arange(24):reshape(2, 3, 4).T
local u = py.tensor(b)
C.shape(u, 4, 3, 2)
u[{1, 1, 1}] = 77
assert(b[{0, 0, 0}]:item() == 77)
fails("require gradient", py.tensor, torch.ones(2, {requires_grad = true}))
fails("requires grad", torch.from_dlpack, w * 2)
fails("must be Tensor, not numpy.ndarray", "torch.from_numpy(x) is a tensor " ..
      "of PyTorch with the elements of x", torch.nn.functional.relu, x,
      {inplace = true})
assert(torch.nn.functional.relu(torch.from_numpy(x)):sum():item() == 0)
do
  local y = nacre.zeros(1000):bfloat16()
  local c = torch.from_dlpack(y)
  y:free()
  collected()
  c:fill_(1)
  assert(c:sum():item() == 1000)
  local z = py.tensor(c)
  c = nil
  collected()
  assert(z:float():sum():item() == 1000)
end
for _ = 1, 20 do
  main.drop(torch.from_dlpack(nacre.ones(9):bfloat16())):join()
end
print "with PyTorch"
