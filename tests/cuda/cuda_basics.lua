-- SPDX-License-Identifier: MIT
-- Tensors on a CUDA device: how they get there and back, where results are.
-- That they are those of the CPU, tests/parity/ sees.
-- Run by: nacre tests/cuda/cuda_basics.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local cuda, fails, is = nacre.cuda, C.fails, C.is
if not cuda.is_available() then skip(cuda.why()) end
local GPU = "cuda:0"

assert(cuda.is_available() and cuda.is_initialized())
assert(cuda.why() == nil and cuda.device_count() >= 1)
assert(cuda.current_device() == 0)

-- the requests that a device leaves out, by their names
local function left_out(device)
  return table.concat(nacre._missing_requests(device), " ")
end
assert(left_out "cpu" == "" and left_out "cuda" == left_out(GPU))
assert(left_out(GPU):find "^[%l_ ]*$" and not left_out(GPU):find "fused")

-- ---- there and back

local a = nacre.tensor {{1, 2, 3}, {4, 5, 6.5}}
local g = a:cuda()
assert(g.device == GPU and g.is_cuda and g:get_device() == 0)
assert(a.device == "cpu" and not a.is_cuda and a:get_device() == -1)
assert(rawequal(g:cuda(), g) and rawequal(g:cuda(0), g))
assert(rawequal(g:to("cuda"), g) and rawequal(g:to(GPU), g))
assert(g:cpu().device == "cpu" and g:cpu() == a)
for _, same in ipairs {a:cuda(0), a:cuda("cuda"), a:cuda {device = 0},
                       a:to(0), a:to(GPU), a:to {device = GPU}, a:to(g),
                       a:cuda(0, true), a:cuda {non_blocking = true},
                       a:to("cuda", true), a:to("auto"),
                       nacre.tensor(a, {device = "cuda"})} do
  assert(same.device == GPU and same:cpu() == a)
end
for _, dtype in ipairs(C.dtypes) do
  for _, size in ipairs {{}, {0}, {5}, {3, 0}, {3, 4}, {2, 3, 4}} do
    local t = nacre.ones(size, {dtype = dtype})
    local there = t:cuda()
    assert(there.dtype == dtype and C.text(there:size()) == C.text(size))
    assert(there:cpu() == t, dtype)
  end
end
-- views arrive as what they show
is(a:t():cuda(), "{{1.0,4.0},{2.0,5.0},{3.0,6.5}}")
is(g:t():cpu(), "{{1.0,4.0},{2.0,5.0},{3.0,6.5}}")
is(g:narrow(2, 2, 2):cpu(), "{{2.0,3.0},{5.0,6.5}}")
is(nacre.ones(1, 2):expand(3, 2):cuda(), "{{1.0,1.0},{1.0,1.0},{1.0,1.0}}")
-- type and device at once
local h = a:to("cuda", "float16")
assert(h.dtype == "float16" and h.device == GPU)
h = a:to(nacre.ones(1, {dtype = "int32", device = GPU}))
assert(h.dtype == "int32" and h.device == GPU)
is(h, "{{1,2,3},{4,5,6}}")
assert(a:type_as(h).device == GPU)
assert(g:double().device == GPU and g:double().dtype == "float64")
-- copies are asked for
assert(not C.shares(g:to {copy = true}, g) and C.shares(g:to(GPU), g))
assert(not C.shares(g:to("cuda", false, true), g))
local big = nacre.randn(1000, 1200)
assert(big:cuda():cpu() == big)

-- ---- pinned memory

local p = a:pin_memory()
assert(p:is_pinned() and not a:is_pinned() and p.device == "cpu" and p == a)
assert(rawequal(p:pin_memory(), p) and p[1]:is_pinned())
local q = p:cuda {non_blocking = true}
assert(q:cpu() == a)
local back = nacre.zeros(2, 3):pin_memory()
back:copy_(g * 2, true)
cuda.synchronize()
assert(back == a * 2)
fails("page-locked", nil, g.pin_memory, g)
for _, made in ipairs {nacre.empty(2, 3, {pin_memory = true}),
                       nacre.zeros({2, 3}, {pin_memory = true}),
                       nacre.zeros_like(a, {pin_memory = true}),
                       nacre.tensor({1, 2}, {pin_memory = true})} do
  assert(made:is_pinned() and made.device == "cpu")
end
p = nacre.ones(2, {pin_memory = true, requires_grad = true})
assert(p:is_pinned() and p.requires_grad and p.is_leaf)
is(p:detach(), "{1.0,1.0}")
assert(not nacre.ones(2, {pin_memory = false}):is_pinned())
fails("page-locked", nil, nacre.ones, 2, {pin_memory = true, device = GPU})
fails("pin_memory must be true or false", nil, nacre.ones, 2,
      {pin_memory = 1})
fails("did you mean 'pin_memory'", nil, nacre.ones, 2, {pin_memry = true})
fails("t:pin_memory()", nil, nacre.load, "x.npy", {pin_memory = true})
p = a:pin_memory()

-- ---- creation

for name, args in pairs {
  zeros = {2, 3}, ones = {2, 3}, empty = {2, 3}, rand = {2, 3},
  randn = {2, 3}, full = {{2}, 7}, arange = {5}, linspace = {0, 1, 5},
  range = {1, 5}, eye = {3}, randperm = {6}, randint = {0, 9, {4}},
  tensor = {{1, 2}},
} do
  args[#args + 1] = {device = GPU}
  assert(nacre[name](table.unpack(args)).device == GPU, name)
end
assert(nacre.zeros_like(g).device == GPU)
assert(nacre.zeros_like(g, {device = "cpu"}).device == "cpu")
assert(nacre.ones_like(a, {device = GPU}).device == GPU)
is(nacre.arange(2, 8, 2, {device = GPU}), "{2,4,6}")
assert(nacre.tensor(g).device == GPU, "a tensor's copy stays where it is")
for _, name in ipairs {"rand", "randn"} do
  nacre.manual_seed(3)
  local x = nacre[name](1000)
  nacre.manual_seed(3)
  local y = nacre[name](1000, {device = GPU}):cpu()
  assert(nacre.allclose(x, y, 1e-6, 1e-6), name .. ": a seed gives the same")
end

-- ---- the default device

nacre.set_default_device "cuda"
assert(nacre.get_default_device() == GPU)
assert(nacre.zeros(2).device == GPU and nacre.tensor({1}).device == GPU)
assert(nacre.randn(2, 2):mm(nacre.eye(2)).device == GPU)
assert(nacre.zeros(2, {device = "cpu"}).device == "cpu")
assert(nacre.tensor(a).device == "cpu")
nacre.set_default_device(nil)
assert(nacre.get_default_device() == "cpu" and nacre.zeros(2).device == "cpu")
nacre.set_default_device "auto"
assert(nacre.get_default_device() == GPU)
nacre.set_default_device "cpu"
assert(nacre.device "auto" == "cuda" and nacre.device "cuda" == "cuda")
assert(nacre.device("cuda", 0) == GPU and nacre.device(0) == GPU)
assert(nacre.device(0.0) == GPU and a:cuda(0.0).device == GPU)
assert(nacre.device "cpu:0" == "cpu" and nacre.device("cpu", 0) == "cpu")
assert(a:to(GPU, nil, true).device == GPU, "no dtype; and non_blocking")
for _, name in ipairs {"gpu", "CUDA", "cuda:", "cuda:x", "cpu:1"} do
  local e = fails("no device is named '" .. name .. "'", nil, nacre.device,
                  name)
  assert(e.hint:find("cuda:0", 1, true), e.hint)
end
fails("device is missing", nil, nacre.device)
fails("0.5 is not the number of a device", nil, nacre.device, 0.5)
fails("not a tensor", nil, nacre.device, a)

-- ---- values, and writing them

assert(g[{2, 3}] == 6.5 and g:sum():item() == 21.5)
assert(g:eq(g):all():item() == true and #g == 2)
assert(math.type(nacre.arange(3, {device = GPU})[3]) == "integer")
g[{1, 1}] = 10
g[2] = a[1]                      -- from the other side of the bus
is(g, "{{10.0,2.0,3.0},{1.0,2.0,3.0}}")
g[g:gt(2)] = 0
is(g, "{{0.0,2.0,0.0},{1.0,2.0,0.0}}")
g:copy_(a)
is(g, "{{1.0,2.0,3.0},{4.0,5.0,6.5}}")
local c = nacre.zeros(2, 3)
c:copy_(g)
assert(c == a)
c:copy_(g:t():t(), true)
assert(c == a)
is(nacre.zeros(3, 2):copy_(g:t()), "{{1.0,4.0},{2.0,5.0},{3.0,6.5}}")
is(nacre.zeros(2, 3, {dtype = "int64", device = GPU}):copy_(a),
   "{{1,2,3},{4,5,6}}")
is(nacre.zeros(2, 3, {dtype = "int64"}):copy_(g), "{{1,2,3},{4,5,6}}")
local rows = {}
for i, row in pairs(g) do rows[i] = row:sum():item() end
assert(rows[1] == 6 and rows[2] == 15.5)

-- ---- one operation, one device

local b = nacre.ones(2, 3)
local e = fails("different devices", nil, nacre.add, g, b)
assert(e.args[1].device == GPU and e.args[2].device == "cpu")
assert(e.hint:find("cpu", 1, true) and e.hint:find(GPU, 1, true), e.hint)
fails("different devices", nil, function() return g + b end)
fails("different devices", nil, nacre.mm, g, b:t())
fails("different devices", nil, nacre.cat, {g, b})
fails("different devices", nil, nacre.where, g:gt(0), b, g)
fails("different devices", nil, g.add_, g, b)
fails("the result is on cuda:0", nil, nacre.add, g, g, {out = b})
for name, args in pairs {sum = {}, mean = {1}, softmax = {2}, argmax = {},
                         cumsum = {1}, mm = {g:t()}, norm = {}} do
  local want = g[name](g, table.unpack(args))
  args[#args + 1] = {out = want:cpu()}
  fails("on cpu", nil, g[name], g, table.unpack(args))
end
is(g:sum():cpu() + 1, "22.5")
-- a number that happens to be a tensor of the CPU
is(g + nacre.tensor(1), "{{2.0,3.0,4.0},{5.0,6.0,7.5}}")
is(nacre.tensor(2) * g, "{{2.0,4.0,6.0},{8.0,10.0,13.0}}")
assert((nacre.tensor(2) * g).device == GPU)
fails("different devices", nil, function() return b + g:sum() end)

-- ---- comparisons

local x = nacre.randn(37, 53)
local y = x:cuda()
assert(nacre.equal(y, y:clone()) and y == y:clone() and not (y == y + 1))
assert(nacre.allclose(y, y + 1e-9))

-- ---- files, and what is shown

local path = os.tmpname()
nacre.save(path, y)
assert(nacre.load(path).device == "cpu" and nacre.load(path) == x)
assert(nacre.load(path, {device = GPU}).device == GPU)
os.remove(path)
local text = tostring(a:cuda())
assert(text == tostring(a):gsub("cpu", GPU), text)
assert(tostring(nacre.tensor(2, {device = GPU})) == "2  int64[] cuda:0")
assert(tostring(p):find("pinned", 1, true))
local s, t = nacre._summary(x), nacre._summary(y)
assert(s.min == t.min and s.max == t.max and s.n == t.n)
assert(math.abs(s.mean - t.mean) < 1e-6)

-- ---- what a device is

assert(#cuda.get_device_name() > 0)
local major, minor = cuda.get_device_capability()
assert(math.type(major) == "integer" and math.type(minor) == "integer")
local props = cuda.get_device_properties(GPU)
assert(props.name == cuda.get_device_name(0) and props.major == major)
assert(props.total_memory > 0 and props.multi_processor_count > 0)
assert(cuda.device(0, function(...) return select("#", ...), ... end, 1, nil)
       == 2)
-- arguments by name, as everywhere
for _, name in ipairs {"get_device_name", "memory_allocated", "mem_get_info",
                       "synchronize", "memory_summary", "current_stream",
                       "get_device_capability", "default_stream"} do
  cuda[name] {device = 0}
  fails("no argument 'devise'", nil, cuda[name], {devise = 0})
  fails("there is no cuda:99", nil, cuda[name], {device = 99})
end
cuda.set_device {device = GPU}
cuda.manual_seed {seed = 3}
assert(nacre.initial_seed() == 3)
fails("manual_seed: seed must be an integer", nil, cuda.manual_seed, "x")
fails("there is no cuda:99", nil, a.cuda, a, 99)
fails("there is no cuda:99", nil, cuda.get_device_name, 99)
fails("no device is named", nil, cuda.set_device, -1)
fails("is not a CUDA device", nil, cuda.synchronize, "cpu")
fails("is not a CUDA device", nil, a.cuda, a, "cpu")
fails("fn must be a function", nil, cuda.device, 0, 1)

-- ---- settings

local matmul = nacre.backends.cuda.matmul
assert(matmul.allow_tf32 == false, "float32 is exact unless it is asked for")
matmul.allow_tf32 = true
assert(matmul.allow_tf32 == true)
matmul.allow_tf32 = false
nacre.synchronize()
print "ok"
-- what a kernel finds wrong is told under the name of the operation
if os.getenv "NACRE_CUDA_SYNC" then
  local seven, none = nacre.tensor({7}, {device = GPU}),
                      nacre.tensor({0}, {device = GPU})
  fails("trunc_divide: integer division by zero", nil, seven.trunc_divide,
        seven, none)
  fails("remainder: integer division by zero", nil, seven.remainder, seven,
        none)
  fails("bernoulli: a probability is not", nil, nacre.bernoulli,
        seven:float())
end
