-- SPDX-License-Identifier: MIT
-- Convolutions and their gradients are compared with sums over shifted slices,
-- for sizes that are cut into tiles and blocks, and for every
-- algorithm that a device has.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local by_slices = dofile(here .. "../lib/conv_slices.lua")
local options, seen = by_slices.options, by_slices.seen
local padded, byslices = by_slices.padded, by_slices.sum
local F = nacre.nn.functional
nacre.manual_seed(11)

local function close(a, b, tolerance, what) C.same(a, b, what, tolerance) end

local tolerance = {float16 = 3e-2, bfloat16 = 2e-1, float32 = 1e-3,
                   float64 = 1e-9}

-- y and what a weighted sum of it gives to x and w, by f
local function run(f, x, w, o)
  x, w = x:detach():requires_grad_(), w:detach():requires_grad_()
  local y = f(x, w, o)
  local weights = nacre.arange(y:numel(), {dtype = "float64",
                                           device = y.device})
                  :mul(0.37):sin():reshape_as(y)
  y:backward(weights:to(y.dtype))
  return {y:detach(), x.grad, w.grad}
end

local function conv(x, w, o, bias)
  return F.conv2d(x, w, bias, o.stride, o.padding, o.dilation, o.groups)
end

local function case(xs, ws, o, dtype)
  o, dtype = options(o), dtype or "float32"
  local x = nacre.randn(xs):mul(0.5):to(dtype)
  local w = nacre.randn(ws):mul(0.5):to(dtype)
  local mine = run(conv, x, w, o)
  local by = run(byslices, x:double(), w:double(), o)
  local threads = nacre.get_num_threads()
  local bias = nacre.randn(ws[1]):to(dtype)
  local biased = conv(x, w, o, bias)
  nacre.set_num_threads(1)
  local alone = run(conv, x, w, o)
  local biased_alone = conv(x, w, o, bias)
  nacre.set_num_threads(threads)
  local name = ("%s %s %s"):format(table.concat(xs, "x"),
                                   table.concat(ws, "x"), dtype)
  for i, what in ipairs {"result", "input", "weight"} do
    close(mine[i], by[i]:to(dtype), tolerance[dtype], name .. ": " .. what)
    assert(mine[i] == alone[i], name .. ": threads change the " .. what)
  end
  close(biased, (by[1] + bias:double():reshape(-1, 1, 1)):to(dtype),
        tolerance[dtype], name .. ": result with bias")
  assert(biased == biased_alone, name .. ": threads change it, with bias")
end

for dtype in pairs(tolerance) do
  case({2, 4, 6, 7}, {6, 4, 3, 2}, {padding = 1}, dtype)
  case({2, 4, 6, 7}, {4, 2, 2, 2}, {groups = 2, stride = {2, 3}}, dtype)
end
-- one column a patch, and no patches at all
case({3, 5, 4, 6}, {7, 5, 1, 1}, {})
case({3, 5, 5, 6}, {7, 5, 1, 1}, {stride = 2})
case({2, 5, 3, 3}, {7, 5, 1, 1}, {padding = 1})
case({2, 5, 1, 2}, {7, 5, 1, 1}, {stride = 2})   -- one place of several
case({3, 5, 3, 1}, {7, 5, 1, 1}, {stride = {3, 1}})
case({2, 5, 2, 3}, {7, 5, 1, 1}, {stride = 4})
case({2, 6, 40, 40}, {10, 3, 1, 1}, {groups = 2})
-- several samples a tile; more channels than a block
case({9, 8, 5, 5}, {12, 8, 3, 3}, {padding = 1})
case({2, 150, 12, 12}, {8, 150, 3, 3},
     {padding = {2, 0}, dilation = {2, 1}})
case({11, 6, 70, 70}, {4, 3, 3, 3}, {padding = 1, groups = 2,
                                     stride = {1, 2}})
-- work enough for oneDNN: parts of the samples, and of the channels
for _, dtype in ipairs {"float32", "bfloat16"} do
  case({9, 20, 12, 12}, {40, 20, 3, 3}, {padding = 1}, dtype)
  case({4, 16, 16, 16}, {64, 16, 3, 3}, {padding = 1}, dtype)
end
-- tiles of rows, and of columns
case({1, 3, 50, 61}, {6, 3, 5, 3}, {stride = 2, padding = 2})
case({2, 3, 1, 2500}, {8, 3, 1, 5},
     {padding = {0, 3}, stride = {1, 2}})
case({1, 2, 1, 5000}, {2, 2, 1, 7}, {padding = {0, 3}})
case({1, 2, 3000, 1}, {5, 2, 4, 1}, {stride = {3, 1}})
-- few results a group: channel by channel
case({3, 6, 9, 70}, {6, 1, 3, 3}, {groups = 6, padding = 1})
case({2, 4, 60, 50}, {12, 1, 3, 5},
     {groups = 4, stride = {2, 1}, padding = 2})
case({2, 6, 11, 13}, {3, 6, 3, 2},
     {stride = {3, 2}, dilation = {2, 3}})
case({1, 8, 20, 20}, {8, 4, 3, 3}, {groups = 2, padding = 1})
-- strides beyond the kernel, kernels beyond the plane
case({2, 3, 20, 20}, {6, 3, 2, 2}, {stride = {9, 7}})
case({2, 3, 4, 4}, {6, 3, 4, 4}, {stride = 1000000})
case({2, 3, 4, 4}, {6, 3, 7, 7}, {padding = 3, stride = {5, 1}})
case({2, 3, 4, 4}, {2, 3, 7, 7}, {padding = 3, stride = {5, 1}})

-- Patches are moved, not computed with; those that meet are added up.
do
  local x = nacre.tensor {{{{1, 1 / 0, 2}, {3, 4, -1 / 0}}}}
  local y = F.unfold(x, {1, 2})
  assert(y == nacre.tensor {{{1, 1 / 0, 3, 4}, {1 / 0, 2, 4, -1 / 0}}})
  local o = {dilation = {2, 1}, padding = {1, 2}, stride = {1, 3}}
  for dtype in pairs(tolerance) do
    local a = nacre.randn(2, 3, 6, 7):to(dtype)
    local columns = F.unfold(a, {2, 3}, o)
    local by = {}
    for i = 1, 2 do
      for j = 1, 3 do
        by[#by + 1] = seen(padded(a, o), i, j, o, {6, 3}):flatten(3)
      end
    end
    assert(columns == nacre.stack(by, 3):flatten(2, 3))
    local b = F.fold(nacre.ones_like(columns), {6, 7}, {2, 3}, o)
    local at = nacre.zeros(1, 1, 6, 7, {requires_grad = true})
    F.unfold(at, {2, 3}, o):sum():backward()
    assert(b:float() == at.grad:expand_as(b))
  end
end

-- What is not a number stays where it is seen.
do
  local x = nacre.zeros(1, 2, 5, 5)
  x[{1, 1, 3, 3}] = 0 / 0
  for _, out in ipairs {2, 8} do
    local y = F.conv2d(x, nacre.ones(out, 2, 2, 2))
    assert(y:isnan():sum():item() == 4 * out)
  end
end

-- ---- the largest of windows; opinfo_torch.py compares them with PyTorch

-- The windows of max_pool2d, of a plane x, by loops: a nan before all, else the
-- first of the largest, and its place.
local function maxima(x, k, s, pad, dilation)
  local value, place = {}, {}
  local rows, cols = x:size(1), x:size(2)
  local reach = dilation * (k - 1)
  for i = 1, (rows + 2 * pad - reach - 1) // s + 1 do
    value[i], place[i] = {}, {}
    for j = 1, (cols + 2 * pad - reach - 1) // s + 1 do
      local top, left, best = 1 + (i - 1) * s - pad, 1 + (j - 1) * s - pad, nil
      for r = top, top + reach, dilation do
        for q = left, left + reach, dilation do
          local v = r >= 1 and r <= rows and q >= 1 and q <= cols and x[{r, q}]
          if v and (not best or v > best or v ~= v and best == best) then
            best, place[i][j] = v, (r - 1) * cols + q
          end
        end
      end
      value[i][j] = best
    end
  end
  return nacre.tensor(value), nacre.tensor(place)
end

for _, size in ipairs {{5, 7}, {9, 40}} do
  for _, o in ipairs {{2, 2, 0, 1}, {3, 1, 1, 1}, {3, 2, 1, 1}, {2, 3, 1, 2}} do
    local x = nacre.randint(-3, 4, size):float()
    x:flatten()[3] = 0 / 0
    x:flatten()[4] = 0 / 0
    x[{{}, -1}] = -1 / 0
    local y, at = F.max_pool2d(x:unsqueeze(1), o[1], o[2], o[3], o[4],
                               {return_indices = true})
    local value, place = maxima(x, table.unpack(o))
    assert(nacre.allclose(y[1], value:float(), {equal_nan = true}))
    assert(at[1]:equal(place))
  end
end

do
  local x = nacre.tensor {{{{1, 0 / 0, 3, 3}, {4, 0 / 0, 3, 3}}}}
  local y, at = F.max_pool2d(x, 2, {return_indices = true})
  assert(y:isnan():tolist()[1][1][1][1] and at:flatten():tolist()[1] == 2)
  assert(at:flatten():tolist()[2] == 3)       -- the first of equals
end
local bad = nacre.ones(1, 1, 1, 1, {dtype = "int64"}) * 9
if nacre.ones(1).device == "cpu" then       -- elsewhere it adds to nothing
  local ok, e = pcall(nacre._max_pool_back, nacre.ones(1, 1, 1, 1), bad,
                      {2, 2}, 2, 2, 0, 1)
  assert(not ok and tostring(e):find("9 is not in a plane of 2 x 2", 1, true),
         e)
end
-- Sizes whose products are beyond 64 bits: refused, or worked out as any.
do
  local apart = 127 << 24
  local pad = apart + (1 << 23)
  local function toolarge(...)
    local ok, e = pcall(...)
    assert(not ok and tostring(e):find("padding included, is too large", 1,
                                       true), e)
  end
  local x = nacre.ones(1, 8, 1, 1)
  for _, w in ipairs {nacre.ones(8, 8, 3, 3), nacre.ones(8, 1, 3, 3)} do
    toolarge(F.conv2d, x, w, nil, 1 << 24, pad, apart, 8 // w:size(2))
  end
  toolarge(F.unfold, x, 3,
           {stride = 1 << 24, padding = pad, dilation = apart})
  local big = 1 << 30
  if x.device == "cpu" then             -- elsewhere it looks at the padding
    local y = F.max_pool2d(x:expand(1, 8, 3, 3), big,
                           {stride = 1, padding = big // 2})
    assert(y == nacre.ones(1, 8, 4, 4))
  end
end
print("conv: passed")
