-- SPDX-License-Identifier: MIT
-- layer_norm, rms_norm, group_norm, instance_norm and batch_norm and their
-- gradients are compared with their definitions in float64, in every float
-- dtype and for sizes that are computed in different ways.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local fails = dofile(here .. "../lib/common.lua").fails
local F = nacre.nn.functional
local device = nacre.get_default_device()

nacre.manual_seed(17)

-- ---- the definitions, in float64 on the CPU

local function normal(x, dims, eps, centered)
  if centered then x = x - x:mean(dims, true) end
  return x * ((x * x):mean(dims, true) + eps):rsqrt()
end

local function scaled(y, weight, bias, size)
  if weight then y = y * weight:reshape(size) end
  if bias then y = y + bias:reshape(size) end
  return y
end

local function perchannel(x)
  local size = {1, x:size(2)}
  for d = 3, x:dim() do size[d] = 1 end
  return size
end

local defined = {}

function defined.layer(x, w, b, eps, shape)
  local dims = {}
  for i = 1, #shape do dims[i] = -i end
  return scaled(normal(x, dims, eps, true), w, b, shape)
end

function defined.rms(x, w, _, eps, shape)
  local dims = {}
  for i = 1, #shape do dims[i] = -i end
  return scaled(normal(x, dims, eps, false), w, nil, shape)
end

function defined.group(x, w, b, eps, groups)
  local y = normal(x:reshape(x:size(1), groups, -1), 3, eps, true)
  return scaled(y:reshape(x:size()), w, b, perchannel(x))
end

function defined.batch(x, w, b, eps)
  local dims = {1}
  for d = 3, x:dim() do dims[#dims + 1] = d end
  return scaled(normal(x, dims, eps, true), w, b, perchannel(x))
end

local ours = {
  layer = function(x, w, b, eps, shape)
    return F.layer_norm(x, shape, w, b, eps)
  end,
  rms = function(x, w, _, eps, shape) return F.rms_norm(x, shape, w, eps) end,
  group = function(x, w, b, eps, groups)
    return F.group_norm(x, groups, w, b, eps)
  end,
  batch = function(x, w, b, eps)
    return F.batch_norm(x, nil, nil, w, b, true, 0.1, eps)
  end,
}

-- ---- agreement

-- Of results about 1 in size, and of gradients that may be sums of many.
local bound = {float16 = 2e-3, bfloat16 = 1.5e-2, float32 = 2e-6,
               float64 = 1e-13}

-- How far a is from b, in the size of the largest element of b.
local function off(a, b)
  if a:numel() == 0 then return 0 end
  assert(a:isfinite():all():item(), "not finite")
  local scale = math.max(b:abs():max():item(), 1)
  return (a:double() - b:to(a.device)):abs():max():item() / scale
end

local function leaf(t)
  return t and t:detach():requires_grad_()
end

local function near(what, got, want, tolerance)
  local d = off(got, want)
  assert(d <= tolerance, ("%s is off by %.3g, %.3g is allowed")
                         :format(what, d, tolerance))
end

-- How much the gradient to x magnifies rounding: it is a difference of numbers
-- that the deviation of a group divides, and that of few values may be small.
local function magnifies(name, x, groups)
  if name ~= "group" or x:numel() == 0 then return 1 end
  local var = x:to("cpu", "float64"):reshape(x:size(1), groups, -1):var(-1,
    {correction = 0})
  return math.max(1, (1 / (var + 1e-5):sqrt()):max():item())
end

-- One norm of x, which may have any strides, and its gradients.
local function agree(name, x, w, b, last)
  local eps = 1e-5
  local text = ("%s %s %s%s"):format(name, x.dtype, table.concat(x:size(), "x"),
                                     w and "" or ", no weights")
  local function wide(t) return t and leaf(t:to("cpu", "float64")) end
  local inputs = {leaf(x), leaf(w), leaf(b)}
  local Inputs = {wide(x), wide(w), wide(b)}
  local y = ours[name](inputs[1], inputs[2], inputs[3], eps, last)
  local Y = defined[name](Inputs[1], Inputs[2], Inputs[3], eps, last)
  local g = nacre.randn(Y:size(), {dtype = "float64", device = "cpu"})
            :to(x.dtype):to(device)
  local G = g:to("cpu", "float64")
  assert(y.dtype == x.dtype and tostring(y.device) == tostring(x.device))
  near(text, y:detach(), Y:detach(), bound[x.dtype])
  local got = table.pack(nacre.autograd.grad(y, inputs, {grad_outputs = g}))
  local want = table.pack(nacre.autograd.grad(Y, Inputs,
                                              {grad_outputs = G}))
  local allowed = 8 * bound[x.dtype] * magnifies(name, x, last)
  for i = 1, #inputs do
    near(text .. ", gradient " .. i, got[i], want[i], allowed)
  end
  -- one at a time
  for i = 1, #inputs do
    local again = nacre.autograd.grad(ours[name](
      i == 1 and inputs[1] or x, w and (i == 2 and inputs[2] or w),
      b and (i == 3 and inputs[3] or b), eps, last), inputs[i],
      {grad_outputs = g})
    near(text .. ", gradient " .. i .. " alone", again, want[i], allowed)
  end
end

local function random(dtype, ...)
  return (nacre.randn({...}, {device = "cpu"}) + 0.5):to(dtype):to(device)
end

local rows = {{3, 1}, {5, 7}, {2, 64}, {130, 64}, {37, 48},
              {3, 1024}, {2, 5000}, {2, 9000}, {1, 70000}}
local planes = {{2, 4, 1}, {3, 6, 5}, {2, 4, 16}, {2, 4, 6, 8},
                {5, 2, 1500}, {3, 33, 2}}

for _, dtype in ipairs {"float32", "float64", "float16", "bfloat16"} do
  for _, size in ipairs(rows) do
    local x, n = random(dtype, table.unpack(size)), size[2]
    local w, b = random(dtype, n), random(dtype, n)
    agree("layer", x, w, b, {n})
    agree("layer", x, nil, nil, {n})
    agree("rms", x, w, nil, {n})
    if size[1] > 4 then       -- of fewer values little is left
      agree("batch", x, w, b)
    end
  end
  for _, size in ipairs(planes) do
    local x, c = random(dtype, table.unpack(size)), size[2]
    local w, b = random(dtype, c), random(dtype, c)
    for _, groups in ipairs {1, c % 2 == 0 and 2 or 3, c} do
      agree("group", x, w, b, groups)
    end
    agree("group", x, nil, nil, 1)
    if size[1] * (size[3] or 1) * (size[4] or 1) >= 5 then
      agree("batch", x, w, b)
      agree("batch", x)
    end
  end
end

-- ---- any strides, weights of another type, a mean far from 0
local x = random("float32", 8, 6, 10)
agree("layer", x:transpose(1, 3), random("float32", 8),
      random("float32", 16)["::2"], {8})
agree("layer", x:narrow(3, 2, 8), random("float32", 8), random("float32", 8),
      {8})
agree("layer", x, random("float32", 6, 10), random("float32", 6, 10), {6, 10})
agree("layer", random("bfloat16", 4, 32), random("float32", 32),
      random("float32", 32), {32})

-- far from 0 no way of doing it is worse than another: rows that registers
-- hold (up to 4096 columns as neighbours), longer ones, pieces of long ones,
-- channels that lie apart, in planes, in whole vectors
for _, size in ipairs {{4, 1024}, {3, 4096}, {3, 4097}, {3, 9000},
                       {2, 70000}, {512, 5}, {512, 8}, {64, 3, 33},
                       {64, 3, 64}, {4, 2, 40, 500}} do
  local far = random("float32", table.unpack(size)) + 1e5
  local wide, text = far:to("cpu", "float64"), table.concat(size, "x")
  local n = size[#size]
  if n >= 500 then
    near("layer_norm far from 0, " .. text, F.layer_norm(far, n),
         defined.layer(wide, nil, nil, 1e-5, {n}), bound.float32)
  end
  if size[1] > 3 then
    near("batch_norm far from 0, " .. text, ours.batch(far, nil, nil, 1e-5),
         defined.batch(wide, nil, nil, 1e-5), bound.float32)
  end
  if #size > 2 then
    near("group_norm far from 0, " .. text,
         ours.group(far, nil, nil, 1e-5, 1),
         defined.group(wide, nil, nil, 1e-5, 1), bound.float32)
  end
end

-- ---- running statistics
local t = random("float32", 16, 4, 9)
local T = t:to("cpu", "float64")
local mean, var = nacre.zeros(4), nacre.ones(4)
local y = F.instance_norm(t, mean, var, nil, nil, true, 0.25)
near("instance_norm", y, normal(T, 3, 1e-5, true), 2e-6)
near("its running mean", mean, T:mean({1, 3}) * 0.25, 1e-6)
near("its running variance", var, T:var(3):mean(1) * 0.25 + 0.75, 1e-6)
near("by running statistics", F.batch_norm(t, mean, var, mean, var),
     (T - mean:to("cpu", "float64"):reshape(4, 1)) *
       (var:to("cpu", "float64") + 1e-5):rsqrt():reshape(4, 1) *
       mean:to("cpu", "float64"):reshape(4, 1) +
       var:to("cpu", "float64"):reshape(4, 1), 2e-6)

-- ---- nothing, nan and infinity
assert(F.layer_norm(nacre.zeros(0, 3), 3):numel() == 0)
assert(F.group_norm(nacre.zeros(0, 4, 3), 2):numel() == 0)
local w = nacre.ones(3):requires_grad_()
F.layer_norm(nacre.zeros(0, 3), 3, w):sum():backward()
assert(w.grad:eq(0):all():item())
local bad = nacre.ones(2, 4)
bad[1] = nacre.tensor {1.0, 0 / 0, 2, 3}
assert(F.layer_norm(bad, 4)[1]:isnan():all():item())
assert(F.layer_norm(bad, 4)[2]:eq(0):all():item())

-- ---- the same for any number of threads, and each time
local a, g = random("float32", 700, 96), random("float32", 700, 96)
local function gradients()
  local inputs = {leaf(a), leaf(random("float32", 96):fill_(0.7)),
                  leaf(random("float32", 96))}
  local out = F.layer_norm(inputs[1], 96, inputs[2], inputs[3])
  return nacre.autograd.grad(out, inputs, {grad_outputs = g})
end
local threads = nacre.get_num_threads()
local before = table.pack(gradients())
nacre.set_num_threads(1)
local after = table.pack(gradients())
nacre.set_num_threads(threads)
for i = 1, 3 do assert(nacre.equal(before[i], after[i])) end

-- ---- batch_norm of matrices: parts of rows, strips of columns

for _, size in ipairs {{2, 1}, {19, 1500}, {700, 130}, {40, 2049}} do
  local F = nacre.nn.functional
  for dtype, tolerance in pairs {float32 = 2e-6, float64 = 1e-13} do
    local x = (nacre.randn(size):double() * 3 + 100):to(dtype):requires_grad_()
    local w = nacre.randn(size[2]):to(dtype):requires_grad_()
    local b = nacre.randn(size[2]):to(dtype):requires_grad_()
    local g = nacre.randn(size):to(dtype)
    local function run()
      local y = F.batch_norm(x, nil, nil, w, b, true)
      return {y, nacre.autograd.grad({y}, {x, w, b}, {grad_outputs = {g}})}
    end
    local threads = nacre.get_num_threads()
    local got = run()
    nacre.set_num_threads(threads == 1 and 3 or 1)
    for i, t in ipairs(run()) do assert(t:equal(got[i])) end
    nacre.set_num_threads(threads)
    local u, v = leaf(x:double()), leaf(w:double())
    local centered = u - u:mean(1)
    local want = centered / ((centered * centered):mean(1) + 1e-5):sqrt() * v +
                 b:double()
    local what = ("batch_norm %s %dx%d"):format(dtype, size[1], size[2])
    near(what, got[1], want:detach(), tolerance)
    local du, dv = nacre.autograd.grad({want}, {u, v},
                                       {grad_outputs = {g:double()}})
    near(what .. ", dx", got[2], du, 100 * tolerance)
    near(what .. ", dw", got[3], dv, 100 * tolerance)
    near(what .. ", db", got[4], g:double():sum(1), tolerance)
  end
end

-- ---- what is refused
fails("input does not end in the shape [4]", F.rms_norm, a, 4)
fails("weight must have the shape [96]", F.rms_norm, a, 96, nacre.ones(3))
do
  local x = nacre.randn(4, 3):requires_grad_()
  local _, mean = nacre._norm(x, nil, nil, {3, 1, 1}, 1e-5)
  fails("result 2 has no gradient", function() mean:sum():backward() end)
  _, mean = nacre._norm(nacre.zeros(0, 3), nil, nil, {3, 1, 3}, 1e-5, true,
                        true)
  assert(mean:isnan():all():item())
end
fails("input is int64", F.rms_norm, nacre.ones(3, {dtype = "int64"}), 3)

print("norms: passed")

-- a zero keeps its sign
do
  local x = nacre.tensor{{-0.0, 0.0, -1, 2}}
  local y = 1 / nacre.nn.functional.rms_norm(x, 4)
  assert(y[1][1] == -math.huge and y[1][2] == math.huge)
end

-- cosine_similarity has the range of its operands; halves are as float32
do
  local F = nacre.nn.functional
  for _, v in ipairs {1e20, 3e-5, 1e-30} do
    local a, eps = nacre.tensor {v, v}, v < 1e-8 and 0 or 1e-8
    local b = nacre.tensor {0.0, -v}:requires_grad_()
    assert((F.cosine_similarity(a, a, 1, eps) - 1):abs():item() < 1e-6)
    local y = F.cosine_similarity(a, b, 1, eps)
    assert((y + math.sqrt(0.5)):abs():item() < 1e-6)
    y:backward()
    assert((b.grad * v - nacre.tensor {math.sqrt(0.5), 0}):abs():max():item() <
           1e-6)
  end
  for _, dtype in ipairs {"float16", "bfloat16"} do
    local a = nacre.full({2, 512}, 20.0, {dtype = dtype}):requires_grad_()
    local y = F.cosine_similarity(a, a:detach() * -1)
    assert(y.dtype == dtype and y:eq(-1):all():item())
    y:sum():backward()
    assert(a.grad:abs():max():item() < 1e-3)
  end
end
