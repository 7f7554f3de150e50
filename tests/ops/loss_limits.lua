-- SPDX-License-Identifier: MIT
-- Losses and layers at their limits: what has the weight 0 is not read, squares
-- do not overflow, and no samples are an empty result.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local eq, fails, is = C.eq, C.fails, C.is
local F, nn, T = nacre.nn.functional, nacre.nn, nacre.tensor
local inf, nan = math.huge, 0 / 0
local device = nacre.cuda.is_available() and "cuda" or "cpu"

local function near(t, ...)
  local want = T({...}, {dtype = "float64"})
  local bound = t.dtype == "float16" and 2e-3 or 1e-6
  assert(nacre.allclose(t:cpu():double():reshape(-1), want, bound, bound),
         tostring(t))
end

local function put(v, dtype) return T(v):to(device, dtype) end

for _, dtype in ipairs {"float32", "float64", "float16"} do
  local none = {reduction = "none"}

  -- a probability of 0
  local x = put({{-inf, 0.0, 0.0}}, dtype):requires_grad_()
  local t = put({{0.0, 0.5, 0.5}}, dtype):requires_grad_()
  local y = F.cross_entropy(x, t)
  near(y, math.log(2))
  y:backward()
  near(x.grad, 0, 0, 0)
  near(t.grad, 0, math.log(2), math.log(2))
  assert(F.cross_entropy(x, put({{0.5, 0.5, 0.0}}, dtype)):item() == inf)
  near(F.kl_div(put({-inf, 0.0}, dtype), put({0.0, 1.0}, dtype), none), 0, 0)
  near(F.kl_div(put({-inf, 0.0}, dtype), put({-inf, 0.0}, dtype),
                {reduction = "none", log_target = true}), 0, 0)
  assert(F.kl_div(put({-inf}, dtype), put({0.5}, dtype)):item() == inf)
  near(F.poisson_nll_loss(put({-inf, 0.0}, dtype), put({0.0, 1}, dtype), none),
       0, 1)
  near(F.multilabel_soft_margin_loss(put({{-inf, inf}}, dtype),
                                     put({{0.0, 1}}, dtype)), 0)
  near(F.binary_cross_entropy_with_logits(put({-inf, inf, 0}, dtype),
    put({0.0, 1, 1}, dtype), {reduction = "none",
                              pos_weight = put({3.0}, dtype)}),
    0, 0, 3 * math.log(2))

  -- a class of weight 0
  local w = put({0.0, 1}, dtype)
  for _, weight in ipairs {w, w:clone():requires_grad_()} do
    local scores = put({{-inf, 0.0}, {0, 0}, {nan, 1}}, dtype):requires_grad_()
    local o = {weight = weight, reduction = "none"}
    y = F.cross_entropy(scores, put({1, 2, 1}), o)
    near(y, 0, math.log(2), 0)
    near(F.nll_loss(scores, put({1, 2, 1}), o), 0, 0, 0)
    if not weight.requires_grad then
      y:sum():backward()
      near(scores.grad, 0, 0, 0.5, -0.5, 0, 0)
      o.label_smoothing = 1.0
      near(F.cross_entropy(scores[{{1, 2}}], put({1, 2}), o), 0,
           math.log(2) / 2)
    end
    near(F.cross_entropy(scores[{{1, 2}}], put({{0.5, 0.5}, {0.5, 0.5}}, dtype),
                         {weight = weight, reduction = "none"}), 0,
         math.log(2) / 2)
  end

  -- the exponential of what is large
  local big = dtype == "float16" and 300 or 1000
  near(F.soft_margin_loss(put({-big, big, 0}, dtype), put({1.0, 1, -1}, dtype),
                          none), big, 0, math.log(2))
  local far = put({-big}, dtype):requires_grad_()
  F.soft_margin_loss(far, put({1.0}, dtype)):backward()
  near(far.grad, -1)

  -- the squares of what is large, and of what is small
  local sizes = dtype == "float16" and {6e4, 1e-2} or {1e30, 1e10, 1}
  for _, size in ipairs(sizes) do
    local a = nacre.full({2, 40}, size):to(device, dtype):requires_grad_()
    local b = nacre.full({2, 40}, size):to(device, dtype)
    near(F.cosine_embedding_loss(a, b, put({1, -1}), none), 0, 1)
    y = F.cosine_embedding_loss(a, -b, put({1, -1}), none)
    near(y, 2, 0)
    y:sum():backward()
    near(a.grad:sum(), 0)
  end
  near(F.cosine_embedding_loss(put({{0.0, 0}, {3, 4}}, dtype),
                               put({{1.0, 1}, {4, 3}}, dtype), put({1, 1}),
                               none), 1, 1 - 24 / 25)
end
near(F.normalize(nacre.full({1, 4}, 60000.0):to(device, "float16")), 0.5, 0.5,
     0.5, 0.5)
near(F.normalize(nacre.full({2, 3}, 60000.0):to(device, "float16"), {p = 1}),
     1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3)

-- probabilities have no class to ignore
fails("cross_entropy: ignore_index is 2, but target holds probabilities",
      F.cross_entropy, nacre.ones(2, 3), nacre.ones(2, 3), {ignore_index = 2})
fails("cross_entropy: ignore_index is 0, but target holds probabilities",
      nn.CrossEntropyLoss {ignore_index = 0}, nacre.ones(2, 3),
      nacre.ones(2, 3))
F.cross_entropy(nacre.ones(2, 3), nacre.ones(2, 3), {ignore_index = -1})

-- ---- no samples

for _, case in ipairs {{1, {0, 3}}, {1, {0, 3, 4}}, {1, {2, 3, 0}},
                       {2, {0, 3, 2, 2}}, {3, {0, 3, 1, 2, 2}}} do
  for _, options in ipairs {{}, {affine = false},
                            {track_running_stats = false}} do
    local norm = nn["BatchNorm" .. case[1] .. "d"](3, options):to(device)
    local x = nacre.ones(case[2]):to(device):requires_grad_()
    local y = norm(x)
    eq(tostring(y:size()[2]), "3")
    eq(y:numel(), 0)
    y:sum():backward()
    if norm.weight then near(norm.weight.grad, 0, 0, 0) end
    if rawget(norm, "running_mean") then
      near(norm.running_mean, 0, 0, 0)
      near(norm.running_var, 1, 1, 1)
    end
  end
end
fails("training needs more than one value", nn.BatchNorm1d(3), nacre.ones(1, 3))
C.shape(nn.Conv3d(3, 2, 2)(nacre.ones(0, 3, 4, 4, 4)), 0, 2, 3, 3, 3)

-- no steps show the empty target alone
local logs = nacre.randn(4, 3, 3):log_softmax(3):to(device):requires_grad_()
local classes = put {{2, 2}, {2, 3}, {2, 3}}
local y = F.ctc_loss(logs, classes, {0, 0, 4}, {0, 2, 2}, {reduction = "none"})
local list = y:tolist()
assert(list[1] == 0 and list[2] == inf and list[3] < inf)
y = F.ctc_loss(logs, classes, {0, 0, 4}, {0, 2, 2},
               {reduction = "sum", zero_infinity = true})
y:backward()
near(logs.grad[{{}, {1, 2}}]:abs():sum(), 0)
assert(logs.grad:isfinite():all():item())
assert(F.ctc_loss(logs, classes, {0, 0, 0}, {0, 0, 0}):item() == 0)
fails("input_lengths 1 is -1, not from 0 to 4", F.ctc_loss, logs, classes,
      {-1, 4, 4}, {1, 1, 1})

-- ---- padding

-- what is beyond the end of a sequence comes back as the padding
local rnn = nn.utils.rnn
local function padded(x, lengths, batch_first, options)
  return (rnn.pad_packed_sequence(
    rnn.pack_padded_sequence(x, lengths, batch_first), options))
end
is(padded(nacre.ones(3, 2), {3, 1}), "{{1.0,1.0},{1.0,0.0},{1.0,0.0}}")
is(padded(nacre.full({3, 2, 1}, nan), {1, 0}):isnan():long(),
   "{{{1},{0}}}")
local wide = padded(nacre.full({2, 3, 2, 2}, inf), {1, 3}, true,
                    {batch_first = true})
C.shape(wide, 2, 3, 2, 2)
is(wide:isinf():long():sum({3, 4}), "{{4,0,0},{4,4,4}}")
is(padded(nacre.ones(3, 2), {1, 3}, false,
          {total_length = 4, padding_value = 7}),
   "{{1.0,1.0},{7.0,1.0},{7.0,1.0},{7.0,7.0}}")
local x = nacre.ones(2, 2):requires_grad_()
padded(x, {2, 1}):sum():backward()
is(x.grad, "{{1.0,1.0},{1.0,0.0}}")
