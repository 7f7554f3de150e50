-- SPDX-License-Identifier: MIT
-- Times losses and distances of several operations, which are fused inside: the
-- value, and the value with its gradient, in microseconds; one thread, the best
-- of five. NACRE_FUSE=0 times the operations one by one.
-- Run by: nacre scripts/bench/loss_bench.lua [elements,... [part of a name]]

local F = nacre.nn.functional
nacre.set_num_threads(1)

local losses = {
  {"kl_div", function(x, t) return F.kl_div(x, t) end},
  {"poisson_nll_loss, full", function(x, t)
    return F.poisson_nll_loss(x, t, true, true)
  end},
  {"gaussian_nll_loss", F.gaussian_nll_loss},
  {"binary_cross_entropy", function(x, t)
    return F.binary_cross_entropy(x, t)
  end},
  {"with_logits, pos_weight", function(x, t, v)
    return F.binary_cross_entropy_with_logits(x, t, nil, "mean", v)
  end},
  {"margin_ranking_loss", function(x, t, v)
    return F.margin_ranking_loss(x, t, v, 0.3)
  end},
  {"hinge_embedding_loss", function(x, t)
    return F.hinge_embedding_loss(x, t, 0.3)
  end},
  {"soft_margin_loss", function(x, t) return F.soft_margin_loss(x, t) end},
  {"multilabel_soft_margin", function(x, t)
    return F.multilabel_soft_margin_loss(x, t)
  end},
  {"cosine_similarity", function(x, t)
    return F.cosine_similarity(x, t, -1):sum()
  end},
  {"pairwise_distance", function(x, t)
    return F.pairwise_distance(x, t):sum()
  end},
  {"normalize", function(x) return F.normalize(x, 2, -1):sum() end},
  {"cosine_embedding_loss", function(x, t, v)
    return F.cosine_embedding_loss(x, t, v:select(-1, 1):gt(0.6) * 2 - 1)
  end},
  {"triplet_margin_loss", function(x, t, v)
    return F.triplet_margin_loss(x, t, v)
  end},
  {"cdist, 10 rows, p=1", function(x, t)
    return nacre.cdist(x, t:narrow(1, 1, 10), 1):sum()
  end},
}

local chosen = {}
for _, loss in ipairs(losses) do
  if not arg[2] or loss[1]:find(arg[2], 1, true) then
    chosen[#chosen + 1] = loss
  end
end

local function best(f, n)
  local calls, least = math.max(1, math.min(4000, 3000000 // n)), math.huge
  for _ = 1, 3 do f() end
  for _ = 1, 5 do
    local start = os.clock()
    for _ = 1, calls do f() end
    least = math.min(least, (os.clock() - start) / calls)
  end
  return least * 1e6
end

for text in (arg[1] or "1000,1000000,16000000"):gmatch "%d+" do
  local n = tonumber(text)
  local shape = {n // 100, 100}
  for _, loss in ipairs(chosen) do
    local x = nacre.rand(shape) * 0.9 + 0.05
    local t = nacre.rand(shape) * 0.9 + 0.05
    local v = nacre.rand(shape) + 0.1
    local value = nacre.no_grad(function()
      return best(function() loss[2](x, t, v) end, n)
    end)
    local leaf = x:clone():requires_grad_()
    local both = best(function()
      leaf.grad = nil
      loss[2](leaf, t, v):backward()
    end, n)
    print(("%-26s %9d %12.2f us %12.2f us"):format(loss[1], n, value, both))
  end
end
