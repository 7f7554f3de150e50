-- SPDX-License-Identifier: MIT
-- Losses and distances whose formulas run in one pass have the bits, gradients
-- and errors of their operations one by one, which run under a debug hook: also
-- with create_graph, and where an operand is changed in place before backward.
-- Second derivatives are sums in another order.
-- Run by: nacre tests/autograd/fused_losses.lua

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check = O.check

local F = nacre.nn.functional

local losses = {
  {"kl_div", function(x, t) return F.kl_div(x, t, "none") end},
  {"kl_div, mean", function(x, t) return F.kl_div(x, t) end},
  {"kl_div, log_target", function(x, t)
    return F.kl_div(x, t, "none", true)
  end},
  {"poisson_nll_loss", function(x, t)
    return F.poisson_nll_loss(x, t, {reduction = "none"})
  end},
  {"poisson_nll_loss, full", function(x, t)
    return F.poisson_nll_loss(x, t * 3, false, true, 1e-6, "none")
  end},
  {"gaussian_nll_loss", function(x, t, v)
    return F.gaussian_nll_loss(x, t, v, {reduction = "none"})
  end},
  {"gaussian_nll_loss, full", function(x, t, v)
    return F.gaussian_nll_loss(x, t, v:mean(-1), true, 1e-6, "sum")
  end},
  {"binary_cross_entropy", function(x, t)
    return F.binary_cross_entropy(x, t, {reduction = "none"})
  end},
  {"binary_cross_entropy_with_logits", function(x, t, v)
    return F.binary_cross_entropy_with_logits(x, t, nil, "none", v)
  end},
  {"binary_cross_entropy_with_logits, weights of classes", function(x, t, v)
    return F.binary_cross_entropy_with_logits(x, t, nil, "none",
                                              v:select(1, 1))
  end},
  {"hinge_embedding_loss", function(x, t)
    return F.hinge_embedding_loss(x, t, 0.7, "none")
  end},
  {"margin_ranking_loss", function(x, t, v)
    return F.margin_ranking_loss(x, t, v, 0.3, "none")
  end},
  {"soft_margin_loss", function(x, t)
    return F.soft_margin_loss(x, t, "none")
  end},
  {"multilabel_soft_margin_loss", function(x, t)
    return F.multilabel_soft_margin_loss(x, t, {reduction = "none"})
  end},
  {"pairwise_distance", function(x, t) return F.pairwise_distance(x, t) end},
  {"pairwise_distance, p=1", function(x, t)
    return F.pairwise_distance(x, t, 1, 1e-6, true)
  end},
  {"pairwise_distance, p=3", function(x, t)
    return F.pairwise_distance(x, t, 3)
  end},
  {"pairwise_distance, p=inf", function(x, t)
    return F.pairwise_distance(x, t, math.huge)
  end},
  {"normalize", function(x) return F.normalize(x, 2, -1) end},
  {"normalize, p=1", function(x) return F.normalize(x, 1, -1, 0.1) end},
  {"triplet_margin_loss", function(x, t, v)
    return F.triplet_margin_loss(x, t, v, {margin = 0.7, reduction = "none"})
  end},
  {"triplet_margin_loss, swap", function(x, t, v)
    return F.triplet_margin_loss(x, t, v, 0.7, 1, 1e-6, true, "none")
  end},
  {"triplet_margin_with_distance_loss", function(x, t, v)
    return F.triplet_margin_with_distance_loss(x, t, v, nil, 0.7, true, "none")
  end},
  {"cdist", function(x, t) return nacre.cdist(x, t, 1) end},
  {"cdist by a product", function(x, t)
    return nacre.cdist(x:narrow(-1, 1, 20), t:narrow(-1, 1, 20))
  end},
  {"pdist", function(x) return nacre.pdist(x:flatten(1, -2)) end},
}

local function bits(t)
  if not nacre.is_tensor(t) then return tostring(t) end
  t = t:detach()
  return t.dtype .. table.concat(t:size(), "x") ..
         t:nan_to_num():contiguous():tobytes() ..
         t:isnan():contiguous():tobytes()
end

-- Appends the gradients of y to out; with create those of the sum of their
-- squares, too.
local function add_gradients(out, y, leaves, create)
  local g = {nacre.autograd.grad({y}, leaves, {
    allow_unused = true, create_graph = create})}
  local squares
  for i = 1, #leaves do
    out[#out + 1] = bits(g[i])
    if create and g[i] and g[i].requires_grad then
      local s = (g[i] * g[i]):sum()
      squares = squares and squares + s or s
    end
  end
  if squares then
    g = {nacre.autograd.grad({squares}, leaves, {allow_unused = true})}
    for i = 1, #leaves do out[#out + 1] = g[i] or "none" end
  end
end

-- What a loss gives: texts. case: dtype, shape, mask of what requires a
-- gradient, changed operand, create, plain.
local nodes = {}
local function run(f, case)
  local leaves, x, out = {}, {}, {}
  nacre.manual_seed(5)
  for i = 1, 3 do
    local leaf = (nacre.rand(case.shape) * 0.9 + 0.05):to(case.dtype)
    if case.mask >> (i - 1) & 1 == 1 then
      leaves[#leaves + 1] = leaf:requires_grad_()
    end
    x[i] = leaf:view(leaf:size())             -- may be changed in place
  end
  local ok, e = pcall(function()
    local y = f(table.unpack(x))
    out[1] = bits(y)
    if not y.requires_grad then return end
    nodes[tostring(y.grad_fn):match "[%w_]+"] = true
    local w = nacre.linspace(-1, 1.3, y:numel(), {dtype = y.dtype})
                   :view(y:size())
    if case.changed then x[case.changed]:add_(1) end
    add_gradients(out, (case.plain and y or y * w):sum(), leaves, case.create)
  end)
  if not ok then
    e = tostring(e)
    out[#out + 1] = e:find "changed in place" and "changed in place" or e
  end
  return out
end

local function nothing() end

local function compare(loss, case)
  debug.sethook(nothing, "", 1 << 30)
  local want = run(loss[2], case)
  debug.sethook()
  local got = run(loss[2], case)
  local what = ("%s of %s [%s], mask %d, %s changed, create %s")
               :format(loss[1], case.dtype, table.concat(case.shape, "x"),
                       case.mask, case.changed, case.create)
  check(#want == #got, "%s: %s", what, got[#got])
  for i = 1, #want do
    local same = want[i] == got[i]
    if nacre.is_tensor(want[i]) and nacre.is_tensor(got[i]) then
      same = nacre.allclose(want[i], got[i], 1e-12, 1e-12)
    end
    check(same, "%s: %d differs: %s", what, i,
          type(got[i]) == "string" and #got[i] < 200 and got[i] or "bits")
  end
end

for _, loss in ipairs(losses) do
  for _, dtype in ipairs {"float32", "float64", "bfloat16"} do
    for mask = 0, 7 do
      for _, plain in ipairs {false, true} do
        compare(loss, {dtype = dtype, shape = {60, 70}, mask = mask,
                       plain = plain})
      end
      compare(loss, {dtype = dtype, shape = {3, 1, 1500}, mask = mask})
      for changed = 1, 3 do
        compare(loss, {dtype = dtype, shape = {60, 70}, mask = mask,
                       changed = changed})
      end
    end
  end
  for mask = 1, 7 do
    compare(loss, {dtype = "float64", shape = {60, 70}, mask = mask,
                   create = true})
  end
end

-- were they fused?
for _, name in ipairs {"kl_div", "poisson_nll_loss", "gaussian_nll_loss",
                       "margin_ranking_loss", "hinge_embedding_loss",
                       "soft_margin_loss",
                       "pairwise_distance", "normalize", "pdist",
                       "triplet_margin_loss",
                       "binary_cross_entropy_with_logits"} do
  check(nodes[name], "%s had no node of its own", name)
end

-- A second backward, once the graph is freed, fails as ever.
local x = nacre.rand(5000):requires_grad_()
local y = F.kl_div(x, nacre.rand(5000))
y:backward()
local ok, e = pcall(y.backward, y)
check(not ok and tostring(e):find "graph was freed", "freed: %s", e)

O.done("fused_losses")
