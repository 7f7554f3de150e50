-- SPDX-License-Identifier: MIT
-- kl_divergence.lua - nacre.distributions.kl_divergence: the mean of
-- log(p(x)/q(x)) over x from p, by formulas for pairs of classes.
local all = ...
all.require("nacre.transforms", "nacre.relaxed_distributions")
local fail = all.fail
local log, pi, inf = math.log, math.pi, math.huge

-- Formulas by the names of the two classes.
local formulas = {}

-- The class that this name stands for, in a formula for it or for a class
-- above.
local function find(p, q)
  local a = p
  while a and a.name do
    local b = q
    while b and b.name do
      local f = formulas[a.name .. " " .. b.name]
      if f then return f end
      b = getmetatable(b) and rawget(getmetatable(b), "__index")
    end
    a = getmetatable(a) and rawget(getmetatable(a), "__index")
  end
end

local function kl(p, q)
  local f = find(getmetatable(p), getmetatable(q))
  if not f then
    fail("kl_divergence", ("no formula is known for %s and %s")
                          :format(p.name, q.name),
         ('nacre.distributions.register_kl("%s", "%s", f) adds f(p, q)')
         :format(p.name, q.name))
  end
  return f(p, q)
end

all.define("distributions.kl_divergence", "p:any, q:any -> tensor",
           "the Kullback-Leibler divergence of q from p, for each of the batch",
           function(p, q)
  all.check_distribution("kl_divergence", p, "p")
  all.check_distribution("kl_divergence", q, "q")
  return kl(p, q)
end)

all.define("distributions.register_kl", "p:text, q:text, f:fn -> ",
           "f(p, q) is the divergence of distributions of these classes",
           function(p, q, f) formulas[p .. " " .. q] = f end)

local function between(p, q, f) formulas[p .. " " .. (q or p)] = f end

between("Normal", nil, function(p, q)
  local ratio = (p.scale / q.scale):square()
  local away = ((p.loc - q.loc) / q.scale):square()
  return (ratio + away - 1 - ratio:log()) / 2
end)
formulas["LogNormal LogNormal"] = formulas["Normal Normal"]

between("HalfNormal", nil, function(p, q)
  local ratio = (p.scale / q.scale):square()
  return (ratio - 1 - ratio:log()) / 2
end)

between("Laplace", nil, function(p, q)
  local ratio, d = p.scale / q.scale, (p.loc - q.loc):abs()
  return -ratio:log() + d / q.scale + ratio * (-d / p.scale):exp() - 1
end)

between("Laplace", "Normal", function(p, q)
  local v = q.scale:square()
  return (2 * pi * v):log() / 2 - 1 - (2 * p.scale):log()
         + (2 * p.scale:square() + (p.loc - q.loc):square()) / (2 * v)
end)

between("Normal", "Laplace", function(p, q)
  local d = p.loc - q.loc
  local z = d / p.scale
  local away = p.scale * math.sqrt(2 / pi) * (-z:square() / 2):exp()
               + d * (z / math.sqrt(2)):erf()
  return -p.scale:log() - log(2 * pi) / 2 - 0.5 + (2 * q.scale):log()
         + away / q.scale
end)

between("Cauchy", nil, function(p, q)
  local s = (p.scale + q.scale):square() + (p.loc - q.loc):square()
  return s:log() - (4 * p.scale * q.scale):log()
end)

local EULER <const> = 0.57721566490153286
between("Gumbel", nil, function(p, q)
  local ratio, moved = p.scale / q.scale, q.loc / q.scale
  local d = p.loc / q.scale
  return ratio * EULER - ratio:log() + d - moved
         + (moved + (1 + ratio):lgamma() - d):exp() - (1 + EULER)
end)

between("Uniform", nil, function(p, q)
  local y = ((q.high - q.low) / (p.high - p.low)):log()
  local outside = q.low:gt(p.low):logical_or(q.high:lt(p.high))
  return nacre.where(outside, inf, y)
end)
between("Uniform", "Normal", function(p, q)
  local width, middle = p.high - p.low, (p.high + p.low) / 2
  return (math.sqrt(2 * pi) * q.scale / width):log()
         + ((middle - q.loc):square() + width:square() / 12)
         / (2 * q.scale:square())
end)
between("Exponential", nil, function(p, q)
  local ratio = q.rate / p.rate
  return ratio - 1 - ratio:log()
end)
between("Exponential", "Normal", function(p, q)
  local v, rate = q.scale:square(), p.rate
  return (rate:square() * v * (2 * pi)):log() / 2 - 1
         + (1 / rate:square() - q.loc / rate + q.loc:square() / 2) / v
end)
between("Exponential", "Gamma", function(p, q)
  local ratio, a = q.rate / p.rate, q.concentration
  return -a * ratio:log() + ratio + a:lgamma() + a * EULER - (1 + EULER)
end)

between("Gamma", nil, function(p, q)
  local a, b = p.concentration, q.concentration
  return b * (p.rate / q.rate):log() + b:lgamma() - a:lgamma()
         + (a - b) * a:digamma() + (q.rate - p.rate) * (a / p.rate)
end)
between("Gamma", "Exponential", function(p, q)
  local a = p.concentration
  return -p:entropy() - q.rate:log() + q.rate * a / p.rate
end)
between("Gamma", "Normal", function(p, q)
  local v, mean = q.scale:square(), p.concentration / p.rate
  return -p:entropy() + (2 * pi * v):log() / 2
         + (p.variance + (mean - q.loc):square()) / (2 * v)
end)

between("Beta", nil, function(p, q)
  local a, b = p.concentration1, p.concentration0
  local c, d = q.concentration1, q.concentration0
  return c:lgamma() + d:lgamma() + (a + b):lgamma() - a:lgamma() - b:lgamma()
         - (c + d):lgamma() + (a - c) * a:digamma() + (b - d) * b:digamma()
         + (c + d - a - b) * (a + b):digamma()
end)

between("Pareto", nil, function(p, q)
  local ratio = q.alpha / p.alpha
  local y = q.alpha * (p.scale / q.scale):log() - ratio:log() + ratio - 1
  return nacre.where(p.scale:lt(q.scale), inf, y)
end)

between("Dirichlet", nil, function(p, q)
  local a, b = p.concentration, q.concentration
  local sum = a:sum(-1, true)
  return sum:squeeze(-1):lgamma() - b:sum(-1):lgamma()
         - (a:lgamma() - b:lgamma()):sum(-1)
         + ((a - b) * (a:digamma() - sum:digamma())):sum(-1)
end)

--
-- Counts and categories
--
-- x*log(a/b), 0 if x is 0 and infinite if b alone is 0
local function part(x, b)
  local y = nacre.xlogy(x, x) - nacre.xlogy(x, b)
  return nacre.where(x:eq(0), 0, y)
end

between("Bernoulli", nil, function(p, q)
  local a, b = p.probs, q.probs
  return part(a, b) + part(1 - a, 1 - b)
end)
between("Poisson", nil, function(p, q)
  return nacre.xlogy(p.rate, p.rate) - nacre.xlogy(p.rate, q.rate)
         - (p.rate - q.rate)
end)
between("Bernoulli", "Poisson", function(p, q)
  return -p:entropy() - p.probs * q.rate:log() + q.rate
end)
between("Geometric", nil, function(p, q)
  return -p:entropy() - (-q.probs):log1p() / p.probs - q.logits
end)
between("Binomial", nil, function(p, q)
  local y = p.total_count * (p.probs * (p.logits - q.logits)
                             + (-p.probs):log1p() - (-q.probs):log1p())
  if p.total_count:lt(q.total_count):any():item() then
    fail("kl_divergence",
         "the total_count of a binomial p is less than that of q")
  end
  return nacre.where(p.total_count:gt(q.total_count), inf, y)
end)
local function of_categories(p, q)
  local a = p.probs
  local y = a * (p.logits - q.logits)
  y = nacre.where(q.probs:eq(0), inf, y)
  return nacre.where(a:eq(0), 0, y):sum(-1)
end
between("Categorical", nil, of_categories)
between("OneHotCategorical", nil, of_categories)

--
-- Of vectors, and made of others
--
between("MultivariateNormal", nil, function(p, q)
  local L, M = p._scale, q._scale
  local n = p.loc:size(-1)
  local shape = all.broadcast_shape(L.shape, M.shape)
  local A = nacre.linalg.solve_triangular(M:expand(shape), L:expand(shape),
                                          {upper = false})
  local d = (q.loc - p.loc):unsqueeze(-1)
  local wide = all.joined_shapes(table.move(shape, 1, #shape - 1, 1, {}), {1})
  local z = nacre.linalg.solve_triangular(M:expand(shape), d:expand(wide),
                                          {upper = false})
  local halves = M:diagonal(0, -2, -1):log():sum(-1)
                 - L:diagonal(0, -2, -1):log():sum(-1)
  return halves + (A:square():sum({-2, -1}) + z:square():sum({-2, -1}) - n) / 2
end)

between("Independent", nil, function(p, q)
  if p.reinterpreted_batch_ndims ~= q.reinterpreted_batch_ndims then
    fail("kl_divergence", "reinterpreted_batch_ndims differ")
  end
  return all.sum_last(kl(p.base_dist, q.base_dist),
                      p.reinterpreted_batch_ndims)
end)

-- Have two transforms the same class and the same parameters?
local function same_transform(a, b)
  if getmetatable(a) ~= getmetatable(b) then return false end
  for name, v in pairs(a) do
    local w = b[name]
    local same
    if type(v) == "table" and name == "parts" then
      same = #v == #w
      for i, t in ipairs(v) do same = same and same_transform(t, w[i]) end
    elseif nacre.is_tensor(v) then same = nacre.is_tensor(w) and v:equal(w)
    else same = rawequal(v, w) or type(v) == "number" and v == w end
    if not same then return false end
  end
  return true
end

between("TransformedDistribution", nil, function(p, q)
  local same = #p.transforms == #q.transforms
  for i, t in ipairs(p.transforms) do
    same = same and same_transform(t, q.transforms[i])
  end
  if not same then fail("kl_divergence", "the transforms differ") end
  local n = #p.event_shape - #p.base_dist.event_shape
  return all.sum_last(kl(p.base_dist, q.base_dist), n)
end)
