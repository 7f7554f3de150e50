-- SPDX-License-Identifier: MIT
-- nacre.nn.functional: values that can be worked out by hand, and errors.
-- tests/torch/ compares it with PyTorch, tests/autograd/ has the
-- gradients.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails, is, shape = C.fails, C.is, C.shape
local F = nacre.nn.functional
local t = nacre.tensor
nacre.manual_seed(5)
assert(torch.nn.functional == F)
assert(F.relu == nacre.relu and F.softmax == nacre.softmax)

-- ---- layers
local x = nacre.arange(16):float():reshape(1, 1, 4, 4)
local ones = nacre.ones(1, 1, 2, 2)
is(F.conv2d(x, ones, t{1.0}, 2), "{{{{11.0,19.0},{43.0,51.0}}}}")
shape(F.conv2d(x, ones, {padding = "same"}), 1, 1, 4, 4)
shape(F.conv2d(x[1], nacre.ones(3, 1, 3, 2), {padding = {1, 0}}), 3, 4, 3)
shape(F.conv2d(nacre.ones(0, 1, 4, 4), ones), 0, 1, 3, 3)
for _, dtype in ipairs {"float16", "bfloat16"} do
  assert(F.conv2d(x:to(dtype), ones:to(dtype)).dtype == dtype)
end
fails("input has 1 channel, the weight takes 2 in 1 group", F.conv2d, x,
      nacre.ones(1, 2, 2, 2))
fails("input has 1 dimension, not 3 or 4", F.conv2d, nacre.ones(2), ones)
fails("kernel_size is 1099511627776, but must be 2147483647 or less",
      F.max_pool1d, nacre.ones(1, 1, 4), 1 << 40)
fails("one_hot: int64[1x1099511627776] needs", F.one_hot, t {1 << 40})
fails("input has 2 dimensions, not 3 or 4", F.conv2d, nacre.ones(2, 2), ones)
fails("does not fit in 4 elements", F.conv2d, x, nacre.ones(1, 1, 5, 5))
fails("input is int64, expected a float dtype", F.conv2d, x:long(), ones)
fails("dtypes differ", F.conv2d, x:double(), ones)
fails('padding "same" needs stride 1', F.conv2d, x, ones,
      {padding = "same", stride = 2})
fails("padding must be numbers", F.conv2d, x, ones, {padding = "all"})
fails("stride is 0, but must be 1 or more", F.conv2d, x, ones, {stride = 0})
fails("not divisible by 2 groups", F.conv2d, nacre.ones(1, 2, 3, 3),
      nacre.ones(3, 1, 2, 2), {groups = 2})
fails("bias must have 1 element", F.conv2d, x, ones, nacre.ones(2))
fails("bias must have 1 element", nacre._conv, x, ones,
      {1, 1, 0, 0, 1, 1, 1, 1}, 1, nacre.ones(2))
fails("dtypes differ", nacre._conv, x, ones, {1, 1, 0, 0, 1, 1, 1, 1}, 1,
      nacre.ones(1):double())
fails("geometry has 1 numbers, not 8", nacre._conv, x, ones, 1, 1)
fails("the shapes do not match", nacre._conv_input, x, ones, {1, 1, 0, 0, 1, 1,
                                                              9, 9}, 1)

-- ---- pools
local p, at = F.max_pool2d(x, 2, {return_indices = true})
is(p, "{{{{5.0,7.0},{13.0,15.0}}}}")
is(at, "{{{{6,8},{14,16}}}}")
is(F.max_pool1d(t{{1.0, 0 / 0, 2.0, 3.0}}, 2):isnan(), "{{true,false}}")
is(F.adaptive_avg_pool1d(t {{1, 2, 3, math.huge, 5, 6}}, 3),
   "{{1.5,inf,5.5}}")         -- of a window nothing but its elements
nacre.set_memory_limit(100 << 20)   -- reported before anything is made
for _, name in ipairs {"adaptive_avg_pool1d", "adaptive_max_pool1d"} do
  fails(name .. ": int64[4194304x4] needs", F[name],
        nacre.ones(2, 3, {device = "cpu"}), 1 << 22)
end
fails("adaptive_avg_pool1d: float64[20000x30001] needs", F.adaptive_avg_pool1d,
      nacre.ones(1, 30001, {device = "cpu"}), 20000)
nacre.set_memory_limit(0)
fails("output_size has 3 numbers, not 2", F.adaptive_avg_pool2d, x, {2, 2, 2})
-- of one image one value, without a nil behind it
assert(select("#", F.conv2d(x[1], ones)) == 1)
assert(select("#", F.max_pool2d(x[1], 2)) == 1)
assert(select("#", F.max_pool2d(x[1], 2, {return_indices = true})) == 2)
shape(F.adaptive_avg_pool2d(x, {3, nil}), 1, 1, 3, 4)
do -- one window is rounded once
  local planes = nacre.rand(20, 3, 50, 70, {device = "cpu"})
  assert(F.adaptive_avg_pool2d(planes, 1):equal(
           planes:double():mean({3, 4}, true):float()))
  assert(F.adaptive_avg_pool2d(planes[1], {1, 1}):numel() == 3)
end
fails("at most half of kernel_size 2 is allowed", F.max_pool2d, x, 2,
      {padding = 2})
fails("window 1 contains only padding", F.max_pool2d, nacre.ones(1, 3, 4),
      2, {padding = 1, dilation = 4})
fails("does not fit", F.max_pool2d, x, 9)

-- ---- lookup
local table_ = t{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}
local host = table_:cpu()     -- a GPU says it later: cuda_errors.lua
fails("row 4 does not exist: weight has 3", F.embedding, t{4}:cpu(), host)
fails("row 0 does not exist: they count from 1", F.embedding, t{0}:cpu(), host)
table_.requires_grad = true
F.embedding(t{1, 2, 2}, table_, {padding_idx = 1}):sum():backward()
is(table_.grad, "{{0.0,0.0},{2.0,2.0},{0.0,0.0}}")
fails("class 0: they count from 1", F.one_hot, t{0, 1})
fails("class 3 is outside the 2 classes", F.one_hot, t{3}, 2)

-- ---- dropout
local d = F.dropout(nacre.ones(10000), 0.25)
local zeros = d:eq(0):sum():item()
assert(zeros > 2300 and zeros < 2700, zeros)
assert(math.abs(d:max():item() - 4 / 3) < 1e-6)
is(F.dropout(t{1.0, 2.0}, 0.5, false), "{1.0,2.0}")
is(F.dropout(t{1.0, 2.0}, 1), "{0.0,0.0}")
local planes = F.dropout2d(nacre.ones(2, 40, 3, 3))
assert(planes:sum({3, 4}):unique():numel() == 2)
fails("p is 2, but must be from 0 to 1", F.dropout, d, 2)

-- ---- norms; norms.lua has their values
local mean, var = nacre.zeros(2), nacre.ones(2)
local b = nacre.randn(8, 2, 3)
fails("training needs more than one value of each channel", F.batch_norm,
      nacre.ones(1, 2), mean, var, {training = true})
fails("running_mean and running_var are needed", F.batch_norm, b)
fails("input does not end in the shape [4]", F.layer_norm, b, 4)
fails("2 channels are not divisible by 3 groups", F.group_norm, b, 3)

-- ---- losses: classes count from 1
local logits = t{{0.0, 0.0}, {0.0, math.log(3)}}
assert(F.cross_entropy(logits, t{-100, -100}):isnan():item())
host = logits:cpu()
fails("class 0: classes count from 1", F.cross_entropy, host, t{0, 1}:cpu())
fails("class 3 is outside the 2 classes", F.cross_entropy, host, t{3, 1}:cpu())
fails("class -1 is outside the 2 classes", F.nll_loss, host, t{-1, 1}:cpu())
fails("target is [3], but an input of [2x2] needs [2]", F.cross_entropy, logits,
      t{1, 1, 1})
fails("weight must have 2 elements, one for each class", F.cross_entropy,
      logits, t{1, 1}, nacre.ones(3))
fails("reduction must be one of none|mean|sum, not 'all'", F.cross_entropy,
      logits, t{1, 1}, {reduction = "all"})
fails("input is [2], target is [2x1]: shapes must be equal",
      "target:reshape(input:size())",
      F.mse_loss, t{1.0, 2.0}, t{{1.0}, {2.0}})
is(F.binary_cross_entropy_with_logits(t{1000.0, -1000.0}, t{1.0, 1.0},
                                      {reduction = "none"}),
   "{0.0,1000.0}")
fails("input must be from 0 to 1", F.binary_cross_entropy, t{1.5}, t{1.0})

do                                        -- finite where the logarithm is not
  local p = t({0.0, 1, 0.5}, {requires_grad = true})
  F.binary_cross_entropy(p, t{1.0, 0, 1}, {reduction = "sum"}):backward()
  assert(p.grad:allclose(t{-1e12, 1e12, -2.0}))
end

-- ---- positions in images that are nan, infinite or far away

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

local logp = nacre.randn(5, 3):log_softmax(-1)
is(F.ctc_loss(logp, t{2, 2, 2, 2}, {5}, {4}), "inf")
is(F.ctc_loss(logp, t{2, 2, 2, 2}, {5}, {4}, {zero_infinity = true}),
   "0.0")
do -- the gradient without a path is nan for the steps that count, as PyTorch's
  local x = nacre.randn(4, 2, 3):requires_grad_()
  local y = F.ctc_loss(x:log_softmax(-1), t{{2, 2, 2}, {3, 2, 3}}, {3, 4},
                       {3, 1}, {reduction = "none"})
  y:sum():backward()
  assert(y[1]:item() == math.huge and y[2]:isfinite():item())
  assert(x.grad:narrow(1, 1, 3):select(2, 1):isnan():all():item())
  assert(x.grad[4][1]:eq(0):all():item())
  assert(x.grad:select(2, 2):isfinite():all():item())
end
fails("class 0: classes count from 1", F.ctc_loss, logp, t{0}, 5, 1)
fails("class 1 is the blank", F.ctc_loss, logp, t{1}, 5, 1)
fails("input_lengths 1 is 6, not from 0 to 5", F.ctc_loss, logp, t{2}, 6, 1)

-- ---- interpolation leaves its input alone; its gradient is the transpose

for _, mode in ipairs {"bilinear", "bicubic"} do
  for _, corners in ipairs {false, true} do
    local options = {size = {7, 5}, mode = mode, align_corners = corners}
    local function resize(t) return F.interpolate(t, options) end
    local x = nacre.randn(2, 3, 4, 6):double():requires_grad_()
    local before, g = x:detach():clone(), nacre.randn(2, 3, 7, 5):double()
    local y = resize(x)
    local dx = nacre.autograd.grad({y}, {x}, {grad_outputs = {g}})
    local d = nacre.randn(2, 3, 4, 6):double()
    assert(nacre.allclose((y * g):sum(), (x * dx):sum()))
    assert(nacre.allclose((resize(d) * g):sum(), (d * dx):sum()))
    assert(x:detach():equal(before))
    local sides = {resize(d:narrow(4, 1, 1):expand(2, 3, 4, 6)),
                   resize(d:narrow(3, 1, 1):expand(2, 3, 4, 6))}
    assert(nacre.allclose(sides[1]:narrow(4, 1, 1), sides[1]:narrow(4, 5, 1)))
    assert(nacre.allclose(sides[2]:narrow(3, 1, 1), sides[2]:narrow(3, 7, 1)))
  end
end
is(F.interpolate(t{{{0.0, 4.0}}}, {scale_factor = 2, mode = "linear"}),
   "{{{0.0,1.0,3.0,4.0}}}")

-- ---- circular padding: what a negative pad crops does not come back
for n = 1, 5 do
  local x = nacre.range(1, n):float():view(1, 1, n)
  for before = -n, n do
    for after = -n, n do
      local low, high = math.max(-before, 0), n - math.max(-after, 0)
      local left = high - low
      local most = math.max(before, after)
      local function pad() return nacre.pad(x, {before, after}, "circular") end
      if left < 0 or most > left then C.fails("cannot be", pad)
      else
        local want = {}
        for i = -math.max(before, 0), left + math.max(after, 0) - 1 do
          want[#want + 1] = low + i % left + 1
        end
        local y = pad()
        assert(y:size(3) == #want)
        for i, v in ipairs(want) do assert(y[{1, 1, i}] == v) end
      end
    end
  end
end
is(nacre.pad(nacre.range(1, 12):view(1, 1, 3, 4), {-1, 1, 1, -1}, "circular"),
   "{{{{6,7,8,6},{2,3,4,2},{6,7,8,6}}}}")
for mode, want in pairs {reflect = "{{{2,3,2,1}}}",
                         replicate = "{{{2,3,3,3}}}"} do
  is(nacre.pad(nacre.range(1, 3):view(1, 1, 3), {-1, 2}, mode), want)
end

-- ---- distances by a product, whose squares are columns of it, and without
for _, size in ipairs {{30, 20}, {2, 40, 3}, {1, 26, 1}} do
  local a = nacre.randn(size):double()
  local b = nacre.randn(size):double():narrow(-2, 2, 17)
  local direct = nacre.cdist(a, b, 2, "donot_use_mm_for_euclid_dist")
  assert(nacre.allclose(nacre.cdist(a, b), direct, 1e-7, 1e-7))
  assert(nacre.allclose(nacre.cdist(a:float(), b:float()), direct:float(),
                        1e-3, 1e-3))
  assert(nacre.cdist(a, b).dtype == "float64")
end

-- Far from 0 the squares have no digits left for the distances; those of halves
-- overflow.
assert(nacre.cdist(nacre.full({30, 1}, 512695.0),
                   nacre.full({2, 1}, 512804.0))[30][2] == 109)
for _, offset in ipairs {1e4, -3e5} do
  local a = (nacre.randn(2, 40, 20) + offset):requires_grad_()
  local b = nacre.randn(2, 30, 20) + offset
  local exact = a:detach():double():requires_grad_()
  local y = nacre.cdist(a, b)
  local direct = nacre.cdist(exact, b:double(), 2,
                             "donot_use_mm_for_euclid_dist")
  assert(y:double():allclose(direct, 1e-4, 1e-4))
  y:sum():backward()
  direct:sum():backward()
  assert(a.grad:double():allclose(exact.grad, 1e-3, 1e-3))
end
for _, n in ipairs {3, 30} do
  for p, want in pairs {[2] = 800, [1] = 1600, [math.huge] = 400} do
    for _, dtype in ipairs {"float16", "bfloat16"} do
      local x = nacre.full({n, 4}, 200.0):to(dtype)
      local y = nacre.cdist(x, -x, p)
      assert(y.dtype == dtype and y[n][1] == want)
    end
  end
end

print("nn: passed")
