-- SPDX-License-Identifier: MIT
-- Losses and distances, which are rows of core/ops.def or operators that work
-- block by block, have the values, gradients and second derivatives of their
-- definitions, written here by plain operations: at sizes of one block and of
-- several, with operands that broadcast and that are not dense.
-- Run by: nacre tests/autograd/loss_formulas.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local F, grad = nacre.nn.functional, nacre.autograd.grad
local device = nacre.cuda.is_available() and "cuda" or "cpu"
local none = {reduction = "none"}

-- A row: name; the loss; its definition. x, t and v are from 0.05 to 0.95.
local losses = {
  {"mse_loss", function(x, t) return F.mse_loss(x, t, none) end,
   function(x, t) return (x - t) ^ 2 end},
  {"l1_loss", function(x, t) return F.l1_loss(x, t, none) end,
   function(x, t) return (x - t):abs() end},
  {"smooth_l1_loss", function(x, t)
    return F.smooth_l1_loss(x, t, {beta = 0.3, reduction = "none"})
  end, function(x, t)
    local d = (x - t):abs()
    return nacre.where(d:lt(0.3), d * d / 0.6, d - 0.15)
  end},
  {"huber_loss", function(x, t)
    return F.huber_loss(x, t, {delta = 0.3, reduction = "none"})
  end, function(x, t)
    local d = (x - t):abs()
    return nacre.where(d:lt(0.3), d * d / 2, (d - 0.15) * 0.3)
  end},
  {"kl_div", function(x, t) return F.kl_div(x, t, none) end,
   function(x, t) return t * (t:log() - x) end},
  {"kl_div, log_target", function(x, t)
    return F.kl_div(x, t, "none", true)
  end, function(x, t) return t:exp() * (t - x) end},
  {"poisson_nll_loss", function(x, t) return F.poisson_nll_loss(x, t, none) end,
   function(x, t) return x:exp() - t * x end},
  {"poisson_nll_loss, full", function(x, t)
    return F.poisson_nll_loss(x, t * 3, false, true, 1e-6, "none")
  end, function(x, t)
    t = t * 3
    local more = t * t:log() - t + (t * (2 * math.pi)):log() / 2
    return x - t * (x + 1e-6):log() + nacre.where(t:gt(1), more, 0.0)
  end},
  {"gaussian_nll_loss", function(x, t, v)
    return F.gaussian_nll_loss(x, t, v, none)
  end, function(x, t, v) return (v:log() + (x - t) ^ 2 / v) / 2 end},
  {"gaussian_nll_loss, full", function(x, t, v)
    return F.gaussian_nll_loss(x, t, v:mean(-1), true, 1e-6, "none")
  end, function(x, t, v)
    v = v:mean(-1, true)
    return (v:log() + (x - t) ^ 2 / v + math.log(2 * math.pi)) / 2
  end},
  {"binary_cross_entropy", function(x, t)
    return F.binary_cross_entropy(x, t, none)
  end, function(x, t) return -(t * x:log() + (1 - t) * (1 - x):log()) end},
  {"binary_cross_entropy_with_logits", function(x, t)
    return F.binary_cross_entropy_with_logits(x, t, none)
  end, function(x, t)
    return -(t * x:logsigmoid() + (1 - t) * (-x):logsigmoid())
  end},
  {"binary_cross_entropy_with_logits, pos_weight", function(x, t, v)
    return F.binary_cross_entropy_with_logits(x, t, nil, "none", v)
  end, function(x, t, v)
    return -(v * t * x:logsigmoid() + (1 - t) * (-x):logsigmoid())
  end},
  {"binary_cross_entropy_with_logits, weights of classes", function(x, t, v)
    return F.binary_cross_entropy_with_logits(x, t, nil, "none", v:select(1, 1))
  end, function(x, t, v)
    return -(v:select(1, 1) * t * x:logsigmoid() + (1 - t) * (-x):logsigmoid())
  end},
  {"hinge_embedding_loss", function(x, t)
    return F.hinge_embedding_loss(x, t:gt(0.5):long() * 2 - 1, 0.7, "none")
  end, function(x, t)
    return nacre.where(t:gt(0.5), x, (0.7 - x):relu())
  end},
  {"margin_ranking_loss", function(x, t, v)
    return F.margin_ranking_loss(x, t, v, 0.3, "none")
  end, function(x, t, v) return (0.3 - v * (x - t)):relu() end},
  {"soft_margin_loss", function(x, t)
    return F.soft_margin_loss(x, t, "none")
  end, function(x, t) return (1 + (-t * x):exp()):log() end},
  {"multilabel_soft_margin_loss", function(x, t)
    return F.multilabel_soft_margin_loss(x, t, none)
  end, function(x, t)
    return -(t * x:logsigmoid() + (1 - t) * (-x):logsigmoid()):mean(-1)
  end},
  {"triplet_margin_loss", function(x, t, v)
    return F.triplet_margin_loss(x, t, v, {margin = 0.7, reduction = "none"})
  end, function(x, t, v)
    local far = (x - v + 1e-6):norm(2, -1)
    return ((x - t + 1e-6):norm(2, -1) - far + 0.7):relu()
  end},
  {"triplet_margin_loss, swap", function(x, t, v)
    return F.triplet_margin_loss(x, t, v, 0.7, 1, 1e-6, true, "none")
  end, function(x, t, v)
    local far = (x - v + 1e-6):norm(1, -1):minimum((t - v + 1e-6):norm(1, -1))
    return ((x - t + 1e-6):norm(1, -1) - far + 0.7):relu()
  end},
  {"cdist by a product", function(x, t)
    return nacre.cdist(x:narrow(-1, 1, 3), t:narrow(-1, 1, 3),
                       {compute_mode = "use_mm_for_euclid_dist"})
  end, function(x, t)
    return (x:narrow(-1, 1, 3):unsqueeze(-2) -
            t:narrow(-1, 1, 3):unsqueeze(-3)):norm(2, -1)
  end},
}

for _, p in ipairs {1, 2, 3, 0.5, -1, math.huge, -math.huge} do
  local function add(name, f, definition)
    losses[#losses + 1] = {("%s, p=%g"):format(name, p), f, definition}
  end
  add("pairwise_distance",
      function(x, t) return F.pairwise_distance(x, t, p, 1e-3, true) end,
      function(x, t) return (x - t + 1e-3):norm(p, -1, true) end)
  add("normalize", function(x) return F.normalize(x, p, -1) end,
      function(x) return x / x:norm(p, -1, true) end)
  add("normalize the first", function(x) return F.normalize(x, p, 1, 0.1) end,
      function(x) return x / x:norm(p, 1, true):clamp(0.1) end)
  add("cdist", function(x, t)
    return p < 0 and x or nacre.cdist(x, t, p, "donot_use_mm_for_euclid_dist")
  end, function(x, t)
    return p < 0 and x or (x:unsqueeze(-2) - t:unsqueeze(-3)):norm(p, -1)
  end)
  add("pdist", function(x)
    return p < 0 and x or nacre.pdist(x:flatten(1, -2), p)
  end, function(x)
    if p < 0 then return x end
    x = x:flatten(1, -2)
    local at = nacre.triu_indices(x:size(1), x:size(1), 1):to(x.device)
    return (x[at[1]] - x[at[2]]):norm(p, -1)
  end)
end

local function near(name, what, a, b, bound)
  if a == nil and b == nil then return end
  a = a or nacre.zeros_like(b)
  b = b or nacre.zeros_like(a)
  local scale = b:numel() > 0 and math.max(1, b:abs():max():item()) or 1
  assert(nacre.allclose(a:double(), b:double(), bound, bound * scale),
         ("%s: %s differs"):format(name, what))
end

-- x, t and v of this shape: dense, or transposed
local function operands(shape, dtype, transposed)
  local list = {}
  for i = 1, 3 do
    local size = table.move(shape, 1, #shape, 1, {})
    if transposed then size[1], size[2] = size[2], size[1] end
    local x = nacre.rand(size, {dtype = "float64"}):to(device, dtype)
    x = x * 0.9 + 0.05
    list[i] = (transposed and x:transpose(1, 2) or x):requires_grad_()
  end
  return list
end

local function compare(loss, shape, dtype, second, transposed)
  local bound = dtype == "float64" and 1e-9 or 2e-4
  local x = operands(shape, dtype, transposed)
  local name = loss[1] .. " of " .. table.concat(shape, "x") .. " " .. dtype
  local y, want = loss[2](table.unpack(x)), loss[3](table.unpack(x))
  near(name, "the value", y, want, bound)
  local w = nacre.linspace(-1, 1.3, y:numel()):to(device, dtype):view(y:size())
  local options = {allow_unused = true, create_graph = second}
  local g = {grad({(y * w):sum()}, x, options)}
  local h = {grad({(want * w):sum()}, x, options)}
  local a, b = 0, 0
  for i = 1, 3 do
    near(name, "gradient " .. i, g[i], h[i], bound)
    if second and h[i] and h[i].requires_grad then
      a, b = a + (g[i] * g[i]):sum(), b + (h[i] * h[i]):sum()
    end
  end
  if not nacre.is_tensor(a) then return end
  g, h = {grad({a}, x, options)}, {grad({b}, x, options)}
  for i = 1, 3 do
    near(name, "second derivative " .. i, g[i], h[i], bound * 100)
  end
end

nacre.manual_seed(5)
for _, loss in ipairs(losses) do
  compare(loss, {3, 5}, "float64", true)
  compare(loss, {5, 3}, "float64", true, true)
  compare(loss, {30, 4}, "float32", false)
  compare(loss, {1, 7}, "float64", false)
  if not loss[1]:find "^pdist" and not loss[1]:find "cdist" then
    compare(loss, {60, 1500}, "float64", false)
    compare(loss, {3, 1, 30000}, "float32", false)
    compare(loss, {700, 90}, "float32", false, true)
  end
end
-- of several blocks; equal points have the gradient 0
compare(losses[#losses - 1], {50, 40}, "float64", false)
for _, p in ipairs {1, 2, 3} do
  local x = nacre.ones(3, 4):to(device):requires_grad_()
  F.pairwise_distance(x, nacre.ones(3, 4):to(device), p, 0):sum():backward()
  assert(x.grad:eq(0):all():item(), p)
end

-- targets 0 and 1 of infinite logits, and padding of kl_div, count as nothing
local inf = math.huge
C.is(F.binary_cross_entropy_with_logits(nacre.tensor{-inf, inf},
                                        nacre.tensor{0.0, 1}, none),
     "{0.0,0.0}")

-- an operand that is changed before backward is noticed
for _, f in ipairs {F.kl_div, F.soft_margin_loss, F.pairwise_distance} do
  local x, t = nacre.rand(3, 4):requires_grad_(), nacre.rand(3, 4)
  local y = f(x, t):sum()
  t:add_(1)
  C.fails("changed in place", y.backward, y)
end
print "loss_formulas: ok"
