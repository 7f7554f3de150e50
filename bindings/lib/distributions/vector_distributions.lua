-- SPDX-License-Identifier: MIT
-- vector_distributions.lua - distributions of vectors, and those made of
-- others: Independent, MixtureSameFamily.
local all = ...
all.require("nacre.positive_distributions", "nacre.discrete_distributions")
local fail, distribution, C = all.fail, all.distribution, all.constraints
local log, pi = math.log, math.pi
local linalg = nacre.linalg

distribution("Dirichlet", {{"concentration", C.independent(C.positive, 1)}},
  "the Dirichlet distribution, of vectors of positive numbers whose sum is 1", {
  _reparametrized = true,
  _made = function(self)
    rawset(self, "_event", {self.concentration:size(-1)})
  end,
  _draw = function(self, shape)
    local x = all.standard_gamma(self.concentration:expand(shape))
    return x / x:sum(-1, true)
  end,
  _log_prob = function(self, x)
    local a = self.concentration
    return nacre.xlogy(a - 1, x):sum(-1) + a:sum(-1):lgamma()
           - a:lgamma():sum(-1)
  end,
  entropy = function(self)
    local a = self.concentration
    local sum, k = a:sum(-1), a:size(-1)
    return a:lgamma():sum(-1) - sum:lgamma() - (k - sum) * sum:digamma()
           - ((a - 1) * a:digamma()):sum(-1)
  end,
}, {mean = function(self)
      return self.concentration / self.concentration:sum(-1, true)
    end,
    mode = function(self)
      local less = (self.concentration - 1):clamp {min = 0}
      local y = less / less:sum(-1, true)
      local none = self.concentration:lt(1):all(-1, true)
      local first = y:new_zeros(y.shape):scatter(
        -1, self.concentration:argmax(-1, true), 1)
      return nacre.where(none, first, y)
    end,
    variance = function(self)
      local a = self.concentration
      local sum = a:sum(-1, true)
      return a * (sum - a) / (sum:square() * (sum + 1))
    end,
    support = function() return C.simplex end})

--
-- MultivariateNormal
--
-- The lower triangle L with L*L' = inverse of the precision P: of P with its
-- rows and columns reversed, the factor of Cholesky is the inverse of L,
-- reversed.
local function of_precision(P)
  local factor = linalg.cholesky(P:flip {-2, -1}):flip {-2, -1}.mT
  return linalg.solve_triangular(factor, nacre.eye(P:size(-1), all.like(P)),
                                 {upper = false})
end

local MATRICES = {"covariance_matrix", "precision_matrix", "scale_tril"}

local MultivariateNormal = distribution("MultivariateNormal", {
  {"loc", C.real_vector},
  {"covariance_matrix", C.positive_definite, default = "nil"},
  {"precision_matrix", C.positive_definite, default = "nil"},
  {"scale_tril", C.lower_cholesky, default = "nil"}},
  "the normal distribution of vectors, by one of three matrices: the "
  .. "covariances, their inverse or their factor of Cholesky", {
  _reparametrized = true,
  _choose = function(op, given)
    local n = 0
    for _, name in ipairs(MATRICES) do n = n + (given[name] and 1 or 0) end
    if n ~= 1 then
      fail(op, "one of covariance_matrix, precision_matrix and scale_tril must "
               .. "be given")
    end
  end,
  _made = function(self, op)
    local n, L = self.loc:size(-1), rawget(self, "scale_tril")
    rawset(self, "_event", {n})
    for _, name in ipairs(MATRICES) do
      local M = rawget(self, name)
      if M and (M:size(-1) ~= n or M:size(-2) ~= n) then
        fail(op, ("{%s} is not %d x %d, as {loc} needs"):format(name, n, n),
             nil, name, M, "loc", self.loc)
      end
    end
    if not L then
      local cov = rawget(self, "covariance_matrix")
      L = cov and linalg.cholesky(cov) or of_precision(self.precision_matrix)
    end
    rawset(self, "_scale", L)
  end,
  _draw = function(self, shape)
    local x = nacre.randn(shape, all.like(self.loc)):unsqueeze(-1)
    return self.loc + (self._scale:matmul(x)):squeeze(-1)
  end,
  _log_prob = function(self, x)
    local d = (x - self.loc):unsqueeze(-1)
    local shape = all.broadcast_shape(d.shape, self._scale.shape)
    shape = table.move(shape, 1, #shape - 2, 1, {})
    local n = self.loc:size(-1)
    local L = self._scale:expand(all.joined_shapes(shape, {n, n}))
    local z = linalg.solve_triangular(L, d:expand(all.joined_shapes(
      shape, {n, 1})), {upper = false})
    local half = self._scale:diagonal(0, -2, -1):log():sum(-1)
    return -(n * log(2 * pi) + z:square():sum({-2, -1})) / 2 - half
  end,
  entropy = function(self)
    local n = self.loc:size(-1)
    return n / 2 * (1 + log(2 * pi))
           + self._scale:diagonal(0, -2, -1):log():sum(-1)
  end,
}, {mean = function(self) return self.loc end,
    mode = function(self) return self.loc end,
    scale_tril = function(self) return self._scale end,
    covariance_matrix = function(self)
      return self._scale:matmul(self._scale.mT)
    end,
    precision_matrix = function(self)
      return nacre.cholesky_inverse(self._scale)
    end,
    variance = function(self) return self._scale:square():sum(-1) end,
    support = function() return C.real_vector end})
all.MultivariateNormal = MultivariateNormal

--
-- Made of others
--
-- A class whose parameter `base' is a distribution; f(op, base, ...) gives the
-- fields of an instance.
local function composite(name, signature, doc, class, properties, f)
  local path = "distributions." .. name
  local s = all.parse(path, signature .. ", *, validate_args:bool=nil "
                      .. "-> distribution")
  class = all.derive_distribution(class.parent or all.Distribution, name, class,
                                  properties)
  local function construct(...)
    local v = all.read(name, s, ...)
    local self = setmetatable({}, class)
    local checks = v[#s.params]
    if checks == nil then checks = all.validates_args() end
    rawset(self, "validate_args", checks)
    for key, value in pairs(f(name, table.unpack(v, 1, #s.params - 1))) do
      rawset(self, key, value)
    end
    return self
  end
  all.space "distributions"[name] = construct
  all.describe(path, construct, doc, s)
  return class, construct
end
all.composite_distribution = composite

function all.check_distribution(op, v, name)
  if all.is_distribution(v) then return end
  fail(op, ("%s must be a distribution, not a %s"):format(name,
           nacre.is_tensor(v) and "tensor" or type(v)))
end

local function sum_last(x, n)
  for _ = 1, n do x = x:sum(-1) end
  return x
end
all.sum_last = sum_last

local function base(name)
  return function(self) return self.base_dist[name] end
end

local independent
local _, make_independent = composite("Independent",
  "base_distribution:any, reinterpreted_batch_ndims:int",
  "a distribution whose last dimensions of batch_shape are of the event: the "
  .. "log_prob is the sum of theirs", {
  _draw = function(self, shape)
    return self.base_dist:_draw(shape)
  end,
  log_prob = function(self, value)
    return sum_last(self.base_dist:log_prob(value),
                    self.reinterpreted_batch_ndims)
  end,
  entropy = function(self)
    return sum_last(self.base_dist:entropy(), self.reinterpreted_batch_ndims)
  end,
  expand = function(self, shape)
    local n, of = self.reinterpreted_batch_ndims, self.base_dist.batch_shape
    return independent(self.base_dist:expand(all.joined_shapes(
      shape, table.move(of, #of - n + 1, #of, 1, {}))), n)
  end,
}, {mean = base "mean", mode = base "mode", variance = base "variance",
    has_rsample = base "has_rsample",
    support = function(self)
      return C.independent(self.base_dist.support,
                           self.reinterpreted_batch_ndims)
    end},
function(op, of, n)
  all.check_distribution(op, of, "base_distribution")
  local batch = of.batch_shape
  if n < 0 or n > #batch then
    fail(op, ("reinterpreted_batch_ndims is %d, but batch_shape has %d "
              .. "dimensions"):format(n, #batch))
  end
  return {base_dist = of, reinterpreted_batch_ndims = n,
          _batch = table.move(batch, 1, #batch - n, 1, {}),
          _event = all.joined_shapes(
            table.move(batch, #batch - n + 1, #batch, 1, {}), of.event_shape)}
end)
independent = make_independent

-- x with `n' dimensions of size 1 at its end.
local function pad(x, n)
  for _ = 1, n do x = x:unsqueeze(-1) end
  return x
end

-- The mean over the components, with the weights of the mixture.
local function mixed(self, x)
  local event = #self.event_shape
  return (pad(self.mixture_distribution.probs, event) * x):sum(-1 - event)
end

composite("MixtureSameFamily",
  "mixture_distribution:any, component_distribution:any",
  "a mixture: a Categorical chooses among the distributions of the last "
  .. "dimension of batch_shape", {
  _draw = function(self, shape)
    local event = #self.event_shape
    local sample = table.move(shape, 1, #shape - event - #self.batch_shape, 1,
                              {})
    local at = pad(self.mixture_distribution:sample(sample), 1 + event)
    local x = self.component_distribution:sample(sample)
    local size = x.shape
    size[#size - event] = 1
    return x:gather(-1 - event, at:expand(size)):squeeze(-1 - event)
  end,
  log_prob = function(self, value)
    local x = nacre.is_tensor(value) and value:unsqueeze(
      -1 - #self.event_shape) or value
    return (self.component_distribution:log_prob(x)
            + self.mixture_distribution.logits:log_softmax(-1)):logsumexp(-1)
  end,
  cdf = function(self, value)
    local x = nacre.is_tensor(value) and value:unsqueeze(-1) or value
    return (self.component_distribution:cdf(x)
            * self.mixture_distribution.probs):sum(-1)
  end,
}, {mean = function(self)
      return mixed(self, self.component_distribution.mean)
    end,
    variance = function(self)
      local of = self.component_distribution
      local event = #self.event_shape
      local away = of.mean - self.mean:unsqueeze(-1 - event)
      return mixed(self, of.variance + away:square())
    end,
    support = function(self) return self.component_distribution.support end},
function(op, mixture, components)
  if not all.is_instance(mixture, all.Categorical) then
    fail(op, "mixture_distribution must be a Categorical")
  end
  all.check_distribution(op, components, "component_distribution")
  local batch = components.batch_shape
  local k = mixture.probs:size(-1)
  if batch[#batch] ~= k then
    fail(op, ("the mixture has %d components, the last dimension of the "
              .. "batch_shape is %s"):format(k, batch[#batch] or "missing"))
  end
  return {mixture_distribution = mixture, component_distribution = components,
          _batch = table.move(batch, 1, #batch - 1, 1, {}),
          _event = components.event_shape}
end)
