-- SPDX-License-Identifier: MIT
-- nacre.nn.functional: values that can be worked out by hand, errors,
-- gradients. tests/torch/torch_nn.py compares it with PyTorch.
-- Run by: nacre tests/ops/nn.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape, grads = C.fails, C.is, C.shape, C.grads
local F = nacre.nn.functional
local t = nacre.tensor
nacre.manual_seed(5)
assert(torch.nn.functional == F)
assert(F.relu == nacre.relu and F.softmax == nacre.softmax)

-- ---- layers
local x = nacre.arange(16):float():reshape(1, 1, 4, 4)
local ones = nacre.ones(1, 1, 2, 2)
is(F.conv2d(x, ones),
   "{{{{10.0,14.0,18.0},{26.0,30.0,34.0},{42.0,46.0,50.0}}}}")
is(F.conv2d(x, ones, {stride = 2}), "{{{{10.0,18.0},{42.0,50.0}}}}")
is(F.conv2d(x, ones, t{1.0}, 2), "{{{{11.0,19.0},{43.0,51.0}}}}")
shape(F.conv2d(x, ones, {padding = "same"}), 1, 1, 4, 4)
shape(F.conv2d(x[1], nacre.ones(3, 1, 3, 2), {padding = {1, 0}}), 3, 4, 3)
shape(F.conv2d(nacre.ones(0, 1, 4, 4), ones), 0, 1, 3, 3)
is(F.conv1d(t{{{1.0, 2.0, 3.0}}}, t{{{1.0, 10.0}}}),
   "{{{21.0,32.0}}}")
is(F.conv_transpose1d(t{{{1.0, 2.0}}}, t{{{1.0, 10.0}}}),
   "{{{1.0,12.0,20.0}}}")
for _, dtype in ipairs {"float16", "bfloat16"} do
  assert(F.conv2d(x:to(dtype), ones:to(dtype)).dtype == dtype)
end
fails("input has 1 channel, the weight takes 2 in 1 group", nil, F.conv2d, x,
      nacre.ones(1, 2, 2, 2))
fails("input has 1 dimension, not 3 or 4", nil, F.conv2d, nacre.ones(2), ones)
fails("kernel_size is 1099511627776, and must be 2147483647 or less", nil,
      F.max_pool1d, nacre.ones(1, 1, 4), 1 << 40)
fails("one_hot: int64[1099511627776] needs", nil, F.one_hot, t {1 << 40})
fails("input has 2 dimensions, not 3 or 4", nil, F.conv2d, nacre.ones(2, 2),
      ones)
fails("does not fit in 4 elements", nil, F.conv2d, x, nacre.ones(1, 1, 5, 5))
fails("input is int64, a float dtype is needed", nil, F.conv2d, x:long(), ones)
fails("dtypes differ", nil, F.conv2d, x:double(), ones)
fails('padding "same" needs stride 1', nil, F.conv2d, x, ones,
      {padding = "same", stride = 2})
fails("padding must be numbers", nil, F.conv2d, x, ones, {padding = "all"})
fails("stride is 0, and must be 1 or more", nil, F.conv2d, x, ones,
      {stride = 0})
fails("no multiple of 2 groups", nil, F.conv2d, nacre.ones(1, 2, 3, 3),
      nacre.ones(3, 1, 2, 2), {groups = 2})
fails("bias must have 1 element", nil, F.conv2d, x, ones, nacre.ones(2))
fails("geometry has 1 numbers, not 8", nil, nacre._conv, x, ones, 1, 1)
fails("another shape", nil, nacre._conv_input, x, ones,
      {1, 1, 0, 0, 1, 1, 9, 9}, 1)

-- Tiles, samples and groups at once; and threads, which must not matter.
local big = nacre.randn(11, 6, 70, 70, {requires_grad = true})
local w = nacre.randn(4, 3, 3, 3, {requires_grad = true})
local function run()
  big.grad, w.grad = nil, nil
  local y = F.conv2d(big, w, {padding = 1, groups = 2, stride = {1, 2}})
  y:pow(2):sum():backward()
  return y:detach(), big.grad, w.grad
end
local y, dx, dw = run()
local threads = nacre.get_num_threads()
nacre.set_num_threads(1)
local y1, dx1, dw1 = run()
nacre.set_num_threads(threads)
assert(y == y1 and dx == dx1 and dw == dw1)
local by = nacre.zeros_like(y)
local padded = nacre.zeros(11, 6, 72, 72)
padded[{{}, {}, {2, 71}, {2, 71}}] = big:detach()
for o = 1, 4 do
  local c = o <= 2 and 0 or 3
  for ch = 1, 3 do
    for i = 1, 3 do
      for j = 1, 3 do
        by[{{}, o}]:add_(w[{o, ch, i, j}] *
                           padded[{{}, c + ch, {i, i + 69},
                                   {j, j + 68, 2}}])
      end
    end
  end
end
assert(nacre.allclose(y, by, 1e-4, 1e-4))

-- ---- pools
local p, at = F.max_pool2d(x, 2, {return_indices = true})
is(p, "{{{{5.0,7.0},{13.0,15.0}}}}")
is(at, "{{{{6,8},{14,16}}}}")
is(F.max_pool1d(t{{1.0, 0 / 0, 2.0, 3.0}}, 2):isnan(), "{{true,false}}")
is(F.avg_pool2d(x, 2), "{{{{2.5,4.5},{10.5,12.5}}}}")
is(F.avg_pool2d(x, 2, {divisor_override = 1}),
   "{{{{10.0,18.0},{42.0,50.0}}}}")
is(F.adaptive_avg_pool2d(x, 1), "{{{{7.5}}}}")
is(F.adaptive_avg_pool1d(t {{1, 2, 3, math.huge, 5, 6}}, 3),
   "{{1.5,inf,5.5}}")         -- of a window nothing but its elements
nacre.set_memory_limit(100 << 20)   -- told before anything is made
for _, name in ipairs {"adaptive_avg_pool1d", "adaptive_max_pool1d"} do
  fails(name .. ": int64[4194304x4] needs", nil, F[name],
        nacre.ones(2, 3, {device = "cpu"}), 1 << 22)
end
fails("adaptive_avg_pool1d: float64[20000x30001] needs", nil,
      F.adaptive_avg_pool1d, nacre.ones(1, 30001, {device = "cpu"}),
      20000)
nacre.set_memory_limit(0)
fails("output_size has 3 numbers, not 2", nil, F.adaptive_avg_pool2d, x,
      {2, 2, 2})
-- of one image one value, without a nil behind it
assert(select("#", F.conv2d(x[1], ones)) == 1)
assert(select("#", F.max_pool2d(x[1], 2)) == 1)
assert(select("#", F.max_pool2d(x[1], 2, {return_indices = true})) == 2)
shape(F.adaptive_avg_pool2d(x, {3, nil}), 1, 1, 3, 4)
is(F.adaptive_max_pool2d(x, 2), "{{{{5.0,7.0},{13.0,15.0}}}}")
fails("at most half of kernel_size 2 is allowed", nil, F.max_pool2d, x, 2,
      {padding = 2})
fails("window 1 holds nothing but padding", nil, F.max_pool2d,
      nacre.ones(1, 3, 4),
      2, {padding = 1, dilation = 4})
fails("does not fit", nil, F.max_pool2d, x, 9)

-- ---- lookup
local table_ = t{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}
is(F.embedding(t{{1, 3}, {2, 2}}, table_),
   "{{{1.0,2.0},{5.0,6.0}},{{3.0,4.0},{3.0,4.0}}}")
fails("row 4 does not exist: weight has 3", nil, F.embedding, t{4}, table_)
fails("row 0 does not exist: they count from 1", nil, F.embedding, t{0},
      table_)
table_.requires_grad = true
F.embedding(t{1, 2, 2}, table_, {padding_idx = 1}):sum():backward()
is(table_.grad, "{{0.0,0.0},{2.0,2.0},{0.0,0.0}}")
is(F.one_hot(t{1, 3}), "{{1,0,0},{0,0,1}}")
is(F.one_hot(t{1}, 2), "{{1,0}}")
fails("class 0: they count from 1", nil, F.one_hot, t{0, 1})
fails("class 3 of 2", nil, F.one_hot, t{3}, 2)

-- ---- dropout
local d = F.dropout(nacre.ones(10000), 0.25)
local zeros = d:eq(0):sum():item()
assert(zeros > 2300 and zeros < 2700, zeros)
assert(math.abs(d:max():item() - 4 / 3) < 1e-6)
is(F.dropout(t{1.0, 2.0}, 0.5, false), "{1.0,2.0}")
is(F.dropout(t{1.0, 2.0}, 1), "{0.0,0.0}")
local planes = F.dropout2d(nacre.ones(2, 40, 3, 3))
assert(planes:sum({3, 4}):unique():numel() == 2)
fails("p is 2, a probability is from 0 to 1", nil, F.dropout, d, 2)

-- ---- norms
local mean, var = nacre.zeros(2), nacre.ones(2)
local b = nacre.randn(8, 2, 3)
local n = F.batch_norm(b, mean, var, {training = true, momentum = 1})
assert(nacre.allclose(n:mean({1, 3}), nacre.zeros(2), 1e-5, 1e-5))
assert(nacre.allclose(mean, b:mean({1, 3}), 1e-5, 1e-5))
assert(nacre.allclose(var, b:var({1, 3}), 1e-4, 1e-5))
fails("training needs more than one value of each channel", nil, F.batch_norm,
      nacre.ones(1, 2), mean, var, {training = true})
fails("running_mean and running_var are needed", nil, F.batch_norm, b)
fails("input does not end in the shape [4]", nil, F.layer_norm, b, 4)
fails("2 channels are no multiple of 3 groups", nil, F.group_norm, b, 3)

-- ---- losses: classes count from 1
local logits = t{{0.0, 0.0}, {0.0, math.log(3)}}
local want = (math.log(2) + math.log(4 / 3)) / 2
assert(math.abs(F.cross_entropy(logits, t{1, 2}):item() - want) < 1e-6)
assert(math.abs(F.cross_entropy(logits,
                                t{1, -100}):item() - math.log(2)) < 1e-6)
assert(F.cross_entropy(logits, t{-100, -100}):isnan():item())
fails("class 0: classes count from 1", nil, F.cross_entropy, logits, t{0, 1})
fails("class 3 of 2", nil, F.cross_entropy, logits, t{3, 1})
fails("class -1 of 2", nil, F.nll_loss, logits, t{-1, 1})
fails("target is [3], an input of [2x2] needs [2]", nil, F.cross_entropy,
      logits, t{1, 1, 1})
fails("weight must have 2 elements, one for each class", nil, F.cross_entropy,
      logits,
      t{1, 1}, nacre.ones(3))
fails("reduction must be one of none|mean|sum, not 'all'", nil, F.cross_entropy,
      logits,
      t{1, 1}, {reduction = "all"})
fails("input is [2], target is [2x1]: shapes must be equal",
      "target:reshape(input:size())",
      F.mse_loss, t{1.0, 2.0}, t{{1.0}, {2.0}})
is(F.mse_loss(t{1.0, 2.0}, t{3.0, 2.0}), "2.0")
is(F.binary_cross_entropy_with_logits(t{1000.0, -1000.0}, t{1.0, 1.0},
                                      {reduction = "none"}),
   "{0.0,1000.0}")
fails("input must be from 0 to 1", nil, F.binary_cross_entropy, t{1.5},
      t{1.0})

-- ---- gradients, twice
local function g(...)
  return nacre.randn({...}, {dtype = "float64", requires_grad = true})
end
grads("conv1d", function(a, k, c) return F.conv1d(a, k, c, 2, 1) end,
      g(2, 2, 5), g(2, 2, 3), g(2))
grads("conv2d", function(a, k, c)
  return F.conv2d(a, k, c, {groups = 2, padding = {1, 0},
                            dilation = {1, 2}, stride = 2})
end, g(2, 2, 4, 5), g(4, 1, 2, 2), g(4))
grads("conv_transpose2d", function(a, k)
  return F.conv_transpose2d(a, k, {stride = 2, padding = 1,
                                   output_padding = 1})
end, g(1, 2, 3, 2), g(2, 1, 3, 2))
grads("_conv_weight", function(a, k)
  return nacre._conv_weight(a, k, {1, 1, 0, 0, 1, 1, 2, 2}, 1)
end, g(2, 1, 2, 2), g(2, 2, 3, 3))
grads("max_pool2d", function(a) return (F.max_pool2d(a, 2, 1)) end,
      g(1, 2, 3, 3))
grads("avg_pool2d", function(a)
  return F.avg_pool2d(a, 2, 2, 1, true, false)
end, g(1, 2, 3, 4))
grads("linear", F.linear, g(2, 3), g(2, 3), g(2))
grads("bilinear", F.bilinear, g(2, 2), g(2, 3), g(2, 2, 3), g(2))
grads("embedding", function(a) return F.embedding(t{1, 2, 2}, a) end, g(3, 2))
grads("layer_norm", function(a, k, c) return F.layer_norm(a, 3, k, c) end,
      g(2, 3), g(3), g(3))
grads("batch_norm", function(a, k, c)
  return F.batch_norm(a, nil, nil, k, c, true)
end, g(3, 2, 2), g(2), g(2))
grads("group_norm", function(a) return F.group_norm(a, 2) end, g(2, 4, 2))
grads("interpolate", function(a)
  return F.interpolate(a, {size = {3, 4}, mode = "bilinear"})
end, g(1, 1, 2, 3))
for mode, shape in pairs {bicubic = {1, 1, 2, 3}, area = {1, 1, 5, 3},
                          trilinear = {1, 1, 2, 1, 2},
                          ["nearest-exact"] = {1, 1, 3}} do
  grads(mode, function(a)
    local size = table.move({3, 2, 4}, 1, #shape - 2, 1, {})
    return F.interpolate(a, {size = size, mode = mode})
  end, g(table.unpack(shape)))
end
grads("attention", function(a, b2, c)
  return F.scaled_dot_product_attention(a, b2, c, {is_causal = true})
end, g(3, 2), g(3, 2), g(3, 2))
grads("cross_entropy", function(a)
  return F.cross_entropy(a, t{1, 3}, {
    label_smoothing = 0.2, weight = t({1, 2, 3}, {dtype = "float64"})})
end, g(2, 3))
grads("binary_cross_entropy_with_logits", function(a)
  return F.binary_cross_entropy_with_logits(
    a, nacre.full({3}, 0.3, {dtype = "float64"}))
end, g(3))
grads("binary_cross_entropy", F.binary_cross_entropy,
      g(3):detach():sigmoid():requires_grad_(), g(3))
do                                        -- finite where the logarithm is not
  local p = t({0.0, 1, 0.5}, {requires_grad = true})
  F.binary_cross_entropy(p, t{1.0, 0, 1}, {reduction = "sum"}):backward()
  assert(p.grad:allclose(t{-1e12, 1e12, -2.0}))
end
grads("conv3d", function(a, k, c)
  return F.conv3d(a, k, c, {1, 2, 1}, {1, 0, 1}, {2, 1, 1})
end, g(1, 2, 3, 3, 2), g(2, 2, 2, 2, 2), g(2))
grads("huber_loss", F.huber_loss, g(4), g(4))
-- ---- volumes, places and sequences, by other ways to the same

local function near(what, a, b)
  assert(a:allclose(b, 1e-4, 1e-5), what)
end

nacre.manual_seed(5)
local v = nacre.randn(2, 3, 4, 5, 6)
local cubes = v:unfold(3, 2, 2):unfold(4, 3, 1):unfold(5, 2, 2):flatten(6)
near("max_pool3d", F.max_pool3d(v, {2, 3, 2}, {2, 1, 2}), cubes:amax(-1))
near("avg_pool3d", F.avg_pool3d(v, {2, 3, 2}, {2, 1, 2}), cubes:mean(-1))
local top, place = F.max_pool3d(v, 3, 2, 1, {return_indices = true})
near("max_pool3d", top, v:flatten(3):gather(3, place:flatten(3))
                         :view(top:size()))
near("adaptive_avg_pool3d", F.adaptive_avg_pool3d(v, 1):flatten(),
     v:mean({3, 4, 5}):flatten())
near("adaptive_max_pool3d", (F.adaptive_max_pool3d(v, {4, 5, 1})),
     v:amax(5, true))

local w3 = nacre.randn(2, 3, 2, 3, 1)
local g3 = F.conv3d(v, w3, nil, {2, 1, 2}, {1, 0, 0}):randn_like()
local input = v:clone():requires_grad_()
F.conv3d(input, w3, nil, {2, 1, 2}, {1, 0, 0}):backward(g3)
near("conv_transpose3d", F.conv_transpose3d(g3, w3, nil, {2, 1, 2},
                                            {1, 0, 0}, {0, 0, 1}),
     input.grad)

local plane = v:select(3, 1)
local same = nacre.tensor {{{1.0, 0, 0}, {0, 1, 0}}}:expand(2, 2, 3)
local turn = nacre.tensor {{{-1.0, 0, 0}, {0, 1, 0}}}:expand(2, 2, 3)
for _, mode in ipairs {"nearest", "bilinear", "bicubic"} do
  for _, corners in ipairs {false, true} do
    local size = plane:size()
    near(mode, F.grid_sample(plane, F.affine_grid(same, size, corners),
                             {mode = mode, align_corners = corners}), plane)
    near(mode, F.grid_sample(plane, F.affine_grid(turn, size, corners),
                             {mode = mode, align_corners = corners}),
         plane:flip(-1))
  end
end
local far = nacre.tensor {{{{1e30, 0}, {-math.huge, 0}, {5.0, 0}}}}
local one = nacre.tensor {{{{1.0, math.huge}}}}
is(F.grid_sample(one, far), "{{{{0.0,0.0,0.0}}}}")
is(F.grid_sample(t{{{{3.0, 4.0}}}}, t{{{{0 / 0, 0}}}},
                 {align_corners = true}), "{{{{3.0}}}}")
for _, mode in ipairs {"nearest", "bilinear", "bicubic"} do
  for _, outside in ipairs {"zeros", "border", "reflection"} do
    assert(F.grid_sample(nacre.ones(1, 1, 2, 3), far,
                         {mode = mode, padding_mode = outside})
            :isfinite():all():item(), mode .. " " .. outside)
  end
end

-- All the ways to show a target: paths of classes whose repetitions, then
-- blanks, are left out.
local function brute(logp, target, blank)
  local total, T, C = 0, logp:size(1), logp:size(2)
  local rows, path = logp:exp():totable(), {}
  local function go(t, p)
    if t > T then
      local read = {}
      for i, c in ipairs(path) do
        if c ~= path[i - 1] and c ~= blank then read[#read + 1] = c end
      end
      if table.concat(read, ",") == target then total = total + p end
      return
    end
    for c = 1, C do
      path[t] = c
      go(t + 1, p * rows[t][c])
    end
  end
  go(1, 1)
  return -math.log(total)
end
local logp = nacre.randn(5, 3):log_softmax(-1)
for target, blank in pairs {["2,3"] = 1, ["3,3"] = 1, ["1,2,1"] = 3, [""] = 2,
                            ["1"] = 2} do
  local classes = {}
  for c in target:gmatch "%d" do classes[#classes + 1] = math.tointeger(c) end
  local got = F.ctc_loss(logp, nacre.tensor(classes, {dtype = "int64"}), 5,
                         #classes, {blank = blank, reduction = "sum"})
  assert(math.abs(got:item() - brute(logp, target, blank)) < 1e-4, target)
end
is(F.ctc_loss(logp, t{2, 2, 2, 2}, {5}, {4}), "inf")
is(F.ctc_loss(logp, t{2, 2, 2, 2}, {5}, {4}, {zero_infinity = true}),
   "0.0")
fails("class 0: classes count from 1", nil, F.ctc_loss, logp, t{0}, 5, 1)
fails("class 1 is the blank", nil, F.ctc_loss, logp, t{1}, 5, 1)
fails("input_lengths 1 is 6, not from 1 to 5", nil, F.ctc_loss, logp, t{2}, 6,
      1)

print("nn: passed")
