-- SPDX-License-Identifier: MIT
-- Operations whose operands are broadcast, strided or of several dtypes, on
-- rows that are longer than a conversion buffer, are what dense operands of one
-- dtype give; softmax along every dimension; extremes of short integers; every
-- float16.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
nacre.manual_seed(1)
local function same(what, a, b, tolerance)
  C.same(a, b, what, tolerance, true)
end

-- ---- rows

local function dense(t) return t:clone():contiguous() end
local wide = nacre.randn(6, 5001)
local operands = {
  whole = nacre.randn(6, 2500), row = nacre.randn(2500),
  column = nacre.randn(6, 1), number = nacre.tensor{0.75},
  odd = wide[":, 1:5000:2"], part = wide[":, 3:2502"],
  turned = nacre.randn(2500, 6):t(), half = nacre.randn(6, 2500):half(),
  bytes = nacre.randint(0, 200, {2500}):to("uint8"),
  bits = nacre.rand(6, 1):gt(0.5), wide = nacre.randn(6, 2500):double(),
}
for name, a in pairs(operands) do
  for other, b in pairs(operands) do
    local x, y = a:expand(6, 2500), b:expand(6, 2500)
    local what = name .. " and " .. other
    same(what .. ", add", a + b + x, dense(x) + dense(y) + dense(x))
    same(what .. ", lt", x:lt(b), dense(x):lt(dense(y)))
    same(what .. ", where", nacre.where(x:gt(0), a, b),
         nacre.where(dense(x):gt(0), dense(x), dense(y)))
  end
  local x = a:expand(6, 2500)
  for _, dtype in ipairs {"float16", "bfloat16", "float32", "float64", "int16",
                          "int64", "bool"} do
    same(name .. " to " .. dtype, x:to(dtype), dense(x):to(dtype))
  end
  local part = nacre.zeros(6, 5000)
  part[":, 11:2510"] = a
  same(name .. " into a part", part[":, 11:2510"], dense(x):float())
  assert(part:count_nonzero():item() == dense(x):float():count_nonzero():item())
end
local patches = nacre.randn(40, 300)
local windows = patches:unfold(2, 16, 8):contiguous()
for i = 1, 36 do
  assert(windows[{{}, i}]:equal(patches:narrow(2, 8 * i - 7, 16)))
end

-- ---- pairs of halves are those of float, rounded

local function equal(a, b)
  return ((a:eq(b) + (a:isnan() * b:isnan())):ne(0)):all():item()
end
for _, dtype in ipairs {"float16", "bfloat16"} do
  local function check(x, y)
    local n = x:numel()
    local a, b = x:float(), y:float()
    assert(equal(x + y, (a + b):to(dtype)))
    assert(equal(x - y, (a - b):to(dtype)))
    assert(equal(x:add(y, {alpha = 0.3}), a:add(b, {alpha = 0.3}):to(dtype)))
    assert(equal(x:sub(y, {alpha = -3}), a:sub(b, {alpha = -3}):to(dtype)))
    assert(equal(x * y, (a * b):to(dtype)))
    assert(equal(x / y, (a / b):to(dtype)))
    assert(equal(x:clone():mul_(y), (a * b):to(dtype)))
    local part = nacre.zeros({n + 2}, {dtype = dtype})
    part:narrow(1, 2, n):add_(y)      -- nothing beside it is written
    assert(equal(part:narrow(1, 2, n), y))
    assert(part[1] == 0 and part[n + 2] == 0)
  end
  local bits = {}
  for i = -32768, 32767 do bits[#bits + 1] = string.pack("<i2", i) end
  local all = nacre.frombuffer(table.concat(bits), {dtype = dtype})
  for _, shift in ipairs {0, 1, 1000, 32768, 47104} do
    check(all, all:roll(shift))
  end
  for n = 1, 70 do
    check(nacre.randn(n):to(dtype), nacre.randn(n):to(dtype))
  end
end

-- ---- softmax along each dimension, in rows and columns

local function by_formula(x, dim)
  local e = (x:double() - x:double():amax(dim, true)):exp()
  return e / e:sum(dim, true)
end
for _, size in ipairs {{7}, {3, 10}, {50, 3}, {5, 2049}, {2, 40, 300},
                       {3, 600, 2}, {2, 5000}, {1, 70000}} do
  for dim = 1, #size do
    for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
      local x = (nacre.randn(size) * 3):to(dtype)
      local want = by_formula(x, dim)
      local most = dtype == "float64" and 1e-14 or dtype == "float32" and 1e-6
                   or dtype == "float16" and 1e-3 or 8e-3
      local what = ("softmax(%d) %s"):format(dim, dtype)
      same(what, x:softmax(dim):double(), want, most)
      same("log_" .. what, x:log_softmax(dim):double(), want:log(),
           dtype:find "16" and 2e-2 or 4 * most)
      assert(x:softmax(dim).dtype == dtype)
    end
  end
end
local inf = math.huge
local m = nacre.tensor {{-inf, 0, 1}, {-inf, -inf, -inf}, {0/0, 1, 2},
                        {inf, 1, 2}}
for _, p in ipairs {m:softmax(2), m:t():softmax(1):t()} do
  assert(p[{1, 1}] == 0 and math.abs(p[{1, 3}] - 0.7310586) < 1e-6)
  assert(p["2:4"]:isnan():sum():item() == 9)
end

-- ---- extremes

for _, dtype in ipairs {"uint8", "int8", "int16", "int32", "float32"} do
  local low = dtype == "uint8" and 0 or -100
  for _, n in ipairs {1, 7, 63, 64, 65, 4097, 200001} do
    local x = nacre.randint(low, 120, {n}):to(dtype)
    local at = math.random(n)
    x[at] = 125
    local wide = x:to "int64"
    assert(x:amax():item() == 125 and x:amax().dtype == dtype)
    assert(x:amin():item() == wide:amin():item())
    local y = nacre.randint(low, 120, {n, 3}):to(dtype)
    for dim = 1, 2 do
      assert(y:amax(dim):to("int64"):equal(y:to("int64"):amax(dim)))
      assert(y:t():amin(dim):to("int64"):equal(y:t():to("int64"):amin(dim)))
    end
  end
end
local x = nacre.randn(1000)
x[500] = 0/0
assert(x:amax():isnan():item() and x:amin():isnan():item())
assert(nacre.stack{x, x}:amax(2):isnan():all():item())

-- ---- clamp by numbers, and by tensors of one element

local x = nacre.tensor {-2, -1, 0, 0/0, 1, 2.0}
for _, limit in ipairs {{-1, 1}, {1, -1}, {0, 0}, {-math.huge, 0.5}} do
  same("clamp", x:clamp(limit[1], limit[2]),
       x:clamp(nacre.tensor(limit[1] * 1.0), nacre.tensor(limit[2] * 1.0)))
end
local g = nacre.tensor({-2, -1, 0, 1, 2.0}):requires_grad_()
g:clamp(-1, 1):sum():backward()
assert(g.grad:equal(nacre.tensor {0, 0, 1, 0, 0.0}))

-- ---- every float16, there and back, in rows of all lengths up to 20

local list = {}
for i = -32768, 32767 do list[#list + 1] = string.pack("<i2", i) end
local h = nacre.frombuffer(table.concat(list), {dtype = "float16"})
local wide = h:float()
assert(wide:isnan():sum():item() == 2 * 1023)
assert(nacre.allclose(wide:half():float(), wide, 0, 0, true))
assert(wide[1] == 0 and 1 / wide[1] < 0)
for n = 1, 20 do
  local part = h:narrow(1, 30000, n)
  same("halves", part:float(), wide:narrow(1, 30000, n))
  same("halves", (part + 1), (part:float() + 1):half())
end
local between = nacre.tensor {65519, 65520, 6e-8, 2.9e-8, 1 + 2^-11,
                              1 + 3 * 2^-11, -65520, 1e10}
assert(between:half():float():equal(nacre.tensor {65504, math.huge, 2^-24, 0, 1,
  1 + 2^-9, -math.huge, math.huge}))
