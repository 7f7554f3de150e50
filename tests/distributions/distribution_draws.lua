-- SPDX-License-Identifier: MIT
-- Draws of nacre.distributions: their mean, variance and distribution function
-- are the ones that the class says, and the gradients of rsample are those of
-- the mean. All limits are about six standard errors.
-- arguments: device=cpu n=40000
local device = arg and table.concat(arg, " "):match "device=(%w+)" or "cpu"
local N = tonumber(arg and table.concat(arg, " "):match "n=(%d+)" or 40000)
local D, sqrt = nacre.distributions, math.sqrt
local o = {dtype = "float64", device = device}
nacre.manual_seed(3)

local function t(list) return nacre.tensor(list, o) end

-- The parameters that a distribution is made from; whether its draws are
-- vectors.
local cases = {
  {"Normal", {loc = t {1, -2}, scale = t {0.5, 3}}},
  {"Laplace", {loc = t {1, -2}, scale = t {0.5, 3}}},
  {"Gumbel", {loc = t {1, -2}, scale = t {0.5, 3}}},
  {"StudentT", {df = t {9, 20}, loc = t {1, -2}, scale = t {0.5, 3}}},
  {"Uniform", {low = t {1, -2}, high = t {1.5, 3}}},
  {"Exponential", {rate = t {0.3, 5}}},
  {"Gamma", {concentration = t {0.2, 1, 7}, rate = t {1, 0.3, 4}}},
  {"Chi2", {df = t {0.5, 3}}},
  {"InverseGamma", {concentration = t {9, 20}, rate = t {1, 4}}},
  {"Beta", {concentration1 = t {0.4, 2}, concentration0 = t {0.7, 9}}},
  {"HalfNormal", {scale = t {0.5, 3}}},
  {"LogNormal", {loc = t {0.5, -1}, scale = t {0.2, 0.4}}},
  {"Pareto", {scale = t {0.5, 3}, alpha = t {9, 20}}},
  {"Weibull", {scale = t {0.5, 3}, concentration = t {0.9, 4}}},
  {"Bernoulli", {probs = t {0.2, 0.9}}},
  {"Geometric", {probs = t {0.2, 0.9}}},
  {"Binomial", {total_count = t {3, 100, 1000}, probs = t {0.3, 0.5, 0.97}}},
  {"NegativeBinomial", {total_count = t {3, 10}, probs = t {0.3, 0.5}}},
  {"Poisson", {rate = t {0.3, 30}}},
  {"OneHotCategorical", {probs = t {{0.2, 0.8}, {0.5, 0.5}}}},
  {"Multinomial", {total_count = 5, probs = t {{0.2, 0.8}, {0.6, 0.4}}}},
  {"Dirichlet", {concentration = t {{0.3, 2, 1}, {5, 5, 1}}}},
  {"MultivariateNormal", {loc = t {1, 2}, covariance_matrix = t {{2, 1},
                                                                 {1, 3}}}},
}

local function largest(x) return x:abs():max():item() end

-- Fails unless the mean over the first dimension of x is that, as far as N
-- draws say.
local function near(name, what, x, mean)
  local spread = (x:var(1, {correction = 0}) / N):sqrt():clamp {min = 1e-12}
  local off = largest((x:mean(1) - mean) / spread)
  assert(off < 6, ("%s: the %s is off by %g standard errors")
                  :format(name, what, off))
end

local function check_moments(name, d, x)
  near(name, "mean", x, d.mean)
  near(name, "variance", (x - d.mean):square(), d.variance)
end

-- Kolmogorov's distance of x to the distribution function.
local function check_cdf(name, d, x)
  local ok, p = pcall(d.cdf, d, x)
  if not ok then return end
  p = p:sort(1)
  local at = nacre.arange(1, N + 1, o):unsqueeze(-1) / N
  local off = largest(p - at) * sqrt(N)
  assert(off < 3, ("%s: the distance is %g"):format(name, off))
end

local function is_whole(name)
  return ("Bernoulli Geometric Binomial NegativeBinomial Poisson "
          .. "OneHotCategorical Multinomial"):find(name, 1, true)
end

-- The gradient of the mean of draws by each parameter is that of d.mean.
local function check_gradients(name, given)
  for key, value in pairs(given) do
    if nacre.is_tensor(value) and key ~= "covariance_matrix" then
      local p = value:unsqueeze(1):expand {N, table.unpack(value:size())}
      p = p:clone():requires_grad_()
      local args, exact = {}, value:clone():requires_grad_()
      local mean = {}
      for k, v in pairs(given) do args[k], mean[k] = v, v end
      args[key], mean[key] = p, exact
      local d = D[name](args)
      local weights = nacre.arange(1, d.mean:size(-1) + 1, o)
      local g = nacre.autograd.grad((d:rsample() * weights):sum(), p)
      local y = (D[name](mean).mean * weights):sum()
      local want = y.requires_grad and nacre.autograd.grad(
        y, exact, {allow_unused = true}) or nil
      near(name .. " " .. key, "gradient", g, want or 0 * value)
    end
  end
end

for _, case in ipairs(cases) do
  local name, given = case[1], case[2]
  local d = D[name](given)
  local x = d:sample(N)
  assert(not x.requires_grad and x.device:find(device))
  local shape = {N}
  for _, list in ipairs {d.batch_shape, d.event_shape} do
    table.move(list, 1, #list, #shape + 1, shape)
  end
  assert(table.concat(x:size(), " ") == table.concat(shape, " "), name)
  d:log_prob(x) -- they are in the support
  check_moments(name, d, x)
  if not is_whole(name) and #d.event_shape == 0 then check_cdf(name, d, x) end
  if d.has_rsample then check_gradients(name, given) end
end

-- covariances
do
  local cov = t {{2, 1}, {1, 3}}
  local x = D.MultivariateNormal(t {1, 2}, cov):sample(N)
  near("MultivariateNormal", "covariance",
       (x:select(2, 1) - 1) * (x:select(2, 2) - 2), 1)
end

-- categories
do
  local d = D.Categorical(t {{0.1, 0.2, 0.7}, {0.5, 0.5, 0}})
  local x = d:sample(N)
  for k = 1, 3 do
    near("Categorical", "frequency", x:eq(k):double(),
         d.probs:select(2, k))
  end
  local m = D.MixtureSameFamily(D.Categorical(t {0.3, 0.7}),
                                D.Normal(t {-4, 1}, t {1, 0.5}))
  check_moments("MixtureSameFamily", m, m:sample(N):reshape(N, 1))
  check_cdf("MixtureSameFamily", m, m:sample(N):reshape(N, 1))
end

-- directions, by their distance to loc: the mean cosine is i1/i0
do
  local k = t {0.1, 2, 50}
  local x = D.VonMises(t {-3, 0, 1}, k):sample(N)
  assert(largest(x) <= math.pi)
  near("VonMises", "mean cosine", (x - t {-3, 0, 1}):cos(), k:i1e() / k:i0e())
  near("VonMises", "mean sine", (x - t {-3, 0, 1}):sin(), 0 * k)
end

-- relaxed, at a low temperature, those of the discrete ones
do
  local d = D.RelaxedOneHotCategorical(t(0.05), {probs = t {0.2, 0.3, 0.5}})
  local x = d:rsample(N)
  near("RelaxedOneHotCategorical", "largest",
       x:eq(x:amax(-1, true)):double(), t {0.2, 0.3, 0.5})
  local b = D.RelaxedBernoulli(t(0.05), {probs = t {0.2, 0.7}})
  near("RelaxedBernoulli", "largest", b:rsample(N):gt(0.5):double(),
       t {0.2, 0.7})
end

-- the same seed, the same draws
for _, case in ipairs(cases) do
  local d = D[case[1]](case[2])
  nacre.manual_seed(7)
  local x = d:sample(5)
  nacre.manual_seed(7)
  assert(x:equal(d:sample(5)), case[1])
end
print "ok"
