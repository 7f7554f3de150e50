-- SPDX-License-Identifier: MIT
-- positive_distributions.lua - distributions of one number from 0 on, or
-- between 0 and 1.
local all = ...
all.require("nacre.real_distributions")
local distribution, C = all.distribution, all.constraints
local log, pi = math.log, math.pi

local function support(name) return function() return C[name] end end

-- Gamma numbers of scale 1, with a gradient for the shapes; never 0.
function all.standard_gamma(shapes)
  return nacre._standard_gamma(shapes):clamp {
    min = nacre.finfo(shapes.dtype).tiny}
end

-- x*log(y), 0 if x is 0
local xlogy = nacre.xlogy

distribution("Exponential", {{"rate", C.positive}},
  "the exponential distribution of mean 1/rate", {
  _reparametrized = true,
  _draw = function(self, shape)
    return nacre.empty(shape, all.like(self.rate)):exponential_() / self.rate
  end,
  _log_prob = function(self, x) return self.rate:log() - self.rate * x end,
  _cdf = function(self, x) return -(-self.rate * x):expm1() end,
  _icdf = function(self, p) return -(-p):log1p() / self.rate end,
  entropy = function(self) return 1 - self.rate:log() end,
}, {mean = function(self) return 1 / self.rate end,
    mode = function(self) return nacre.zeros_like(self.rate) end,
    stddev = function(self) return 1 / self.rate end,
    variance = function(self) return 1 / self.rate:square() end,
    support = support "nonnegative"})

local gamma = {
  _reparametrized = true,
  _draw = function(self, shape)
    return all.standard_gamma(self.concentration:expand(shape)) / self.rate
  end,
  _log_prob = function(self, x)
    local a, rate = self.concentration, self.rate
    return xlogy(a, rate) + xlogy(a - 1, x) - rate * x - a:lgamma()
  end,
  entropy = function(self)
    local a = self.concentration
    return a - self.rate:log() + a:lgamma() + (1 - a) * a:digamma()
  end}
local gamma_fields = {
  mean = function(self) return self.concentration / self.rate end,
  mode = function(self)
    return ((self.concentration - 1) / self.rate):clamp {min = 0}
  end,
  variance = function(self) return self.concentration / self.rate:square() end,
  support = support "nonnegative"}
local Gamma = distribution("Gamma",
  {{"concentration", C.positive}, {"rate", C.positive}},
  "the gamma distribution of mean concentration/rate", gamma, gamma_fields)

distribution("Chi2", {{"df", C.positive}},
  "the sum of squares of df normal numbers", {
  parent = Gamma,
  _made = function(self)
    rawset(self, "concentration", self.df / 2)
    rawset(self, "rate", nacre.full_like(self.df, 0.5))
  end})

distribution("InverseGamma",
  {{"concentration", C.positive}, {"rate", C.positive}},
  "the distribution of 1/x, where x has a gamma distribution", {
  _reparametrized = true,
  _draw = function(self, shape) return 1 / gamma._draw(self, shape) end,
  _log_prob = function(self, x)
    return gamma._log_prob(self, 1 / x) - 2 * x:log()
  end,
  entropy = function(self)
    local a = self.concentration
    return a + self.rate:log() + a:lgamma() - (1 + a) * a:digamma()
  end,
}, {mean = function(self)
      local a = self.concentration
      return nacre.where(a:gt(1), self.rate / (a - 1), math.huge)
    end,
    mode = function(self) return self.rate / (self.concentration + 1) end,
    variance = function(self)
      local a = self.concentration
      return nacre.where(a:gt(2), (self.rate / (a - 1)):square() / (a - 2),
                         math.huge)
    end,
    support = support "positive"})

-- The ratio x/(x+y) of gamma numbers: of logarithms, for small shapes.
distribution("Beta", {{"concentration1", C.positive},
                      {"concentration0", C.positive}},
  "the beta distribution, of numbers between 0 and 1", {
  _reparametrized = true,
  _draw = function(self, shape)
    local x = all.standard_gamma(self.concentration1:expand(shape))
    local y = all.standard_gamma(self.concentration0:expand(shape))
    local limits = nacre.finfo(x.dtype)
    return (x / (x + y)):clamp(limits.tiny, 1 - limits.eps / 2)
  end,
  _log_prob = function(self, x)
    local a, b = self.concentration1, self.concentration0
    return xlogy(a - 1, x) + xlogy(b - 1, 1 - x) + (a + b):lgamma()
           - a:lgamma() - b:lgamma()
  end,
  entropy = function(self)
    local a, b = self.concentration1, self.concentration0
    return a:lgamma() + b:lgamma() - (a + b):lgamma()
           - (a - 1) * a:digamma() - (b - 1) * b:digamma()
           + (a + b - 2) * (a + b):digamma()
  end,
}, {mean = function(self)
      return self.concentration1 / (self.concentration1 + self.concentration0)
    end,
    mode = function(self)
      local a, b = self.concentration1, self.concentration0
      local up, down = (a - 1):clamp {min = 0}, (b - 1):clamp {min = 0}
      -- below 1 both ends are modes: the one with more of the density
      return nacre.where(a:lt(1):logical_and(b:lt(1)), a:ge(b):to(a.dtype),
                         up / (up + down))
    end,
    variance = function(self)
      local a, b = self.concentration1, self.concentration0
      return a * b / ((a + b):square() * (a + b + 1))
    end,
    support = support "unit_interval"})

distribution("HalfNormal", {{"scale", C.positive}},
  "the absolute value of a normal number of mean 0", {
  _reparametrized = true,
  _draw = function(self, shape)
    return (nacre.randn(shape, all.like(self.scale)) * self.scale):abs()
  end,
  _log_prob = function(self, x)
    local y = -(x / self.scale):square() / 2 - self.scale:log()
              + log(2 / pi) / 2
    return nacre.where(x:ge(0), y, -math.huge)
  end,
  _cdf = function(self, x) return (x / (self.scale * math.sqrt(2))):erf() end,
  _icdf = function(self, p)
    return self.scale * math.sqrt(2) * p:erfinv()
  end,
  entropy = function(self) return self.scale:log() + log(pi / 2) / 2 + 0.5 end,
}, {mean = function(self) return self.scale * math.sqrt(2 / pi) end,
    mode = function(self) return nacre.zeros_like(self.scale) end,
    variance = function(self) return self.scale:square() * (1 - 2 / pi) end,
    support = support "nonnegative"})

distribution("HalfCauchy", {{"scale", C.positive}},
  "the absolute value of a Cauchy number of median 0", {
  _reparametrized = true,
  _draw = function(self, shape)
    local u = nacre.rand(shape, all.like(self.scale))
    return self.scale * (u * (pi / 2)):tan()
  end,
  _log_prob = function(self, x)
    local y = log(2 / pi) - self.scale:log()
              - (x / self.scale):square():log1p()
    return nacre.where(x:ge(0), y, -math.huge)
  end,
  _cdf = function(self, x) return 2 / pi * (x / self.scale):atan() end,
  _icdf = function(self, p) return self.scale * (p * (pi / 2)):tan() end,
  entropy = function(self) return log(2 * pi) + self.scale:log() end,
}, {mean = function(self) return nacre.full_like(self.scale, math.huge) end,
    mode = function(self) return nacre.zeros_like(self.scale) end,
    variance = function(self)
      return nacre.full_like(self.scale, math.huge)
    end,
    support = support "nonnegative"})

distribution("LogNormal", {{"loc", C.real}, {"scale", C.positive}},
  "the exponential of a normal number", {
  _reparametrized = true,
  _draw = function(self, shape)
    return all.Normal._draw(self, shape):exp()
  end,
  _log_prob = function(self, x)
    return all.Normal._log_prob(self, x:log()) - x:log()
  end,
  _cdf = function(self, x) return all.Normal._cdf(self, x:log()) end,
  _icdf = function(self, p) return all.Normal._icdf(self, p):exp() end,
  entropy = function(self) return all.Normal.entropy(self) + self.loc end,
}, {mean = function(self)
      return (self.loc + self.scale:square() / 2):exp()
    end,
    mode = function(self) return (self.loc - self.scale:square()):exp() end,
    variance = function(self)
      local v = self.scale:square()
      return v:expm1() * (2 * self.loc + v):exp()
    end,
    support = support "positive"})

distribution("Pareto", {{"scale", C.positive}, {"alpha", C.positive}},
  "the Pareto distribution, of numbers from scale on", {
  _reparametrized = true,
  _draw = function(self, shape)
    local e = nacre.empty(shape, all.like(self.scale)):exponential_()
    return self.scale * (e / self.alpha):exp()
  end,
  _log_prob = function(self, x)
    local a = self.alpha
    return a:log() + a * self.scale:log() - (a + 1) * x:log()
  end,
  _cdf = function(self, x) return 1 - (self.scale / x):pow(self.alpha) end,
  _icdf = function(self, p)
    return self.scale * (-(-p):log1p() / self.alpha):exp()
  end,
  entropy = function(self)
    return (self.scale / self.alpha):log() + 1 + 1 / self.alpha
  end,
}, {mean = function(self)
      local a = self.alpha:clamp {min = 1}
      return a * self.scale / (a - 1)
    end,
    mode = function(self) return self.scale end,
    variance = function(self)
      local a = self.alpha:clamp {min = 2}
      return self.scale:square() * a / ((a - 1):square() * (a - 2))
    end,
    support = function(self) return C.greater_than_eq(self.scale) end})

local EULER <const> = 0.57721566490153286

distribution("Weibull", {{"scale", C.positive}, {"concentration", C.positive}},
  "the Weibull distribution, of times to a failure", {
  _reparametrized = true,
  _draw = function(self, shape)
    local e = nacre.empty(shape, all.like(self.scale)):exponential_()
    return self.scale * e:pow(1 / self.concentration)
  end,
  _log_prob = function(self, x)
    local k, z = self.concentration, x / self.scale
    return (k / self.scale):log() + xlogy(k - 1, z) - z:pow(k)
  end,
  _cdf = function(self, x)
    return -(-(x / self.scale):pow(self.concentration)):expm1()
  end,
  _icdf = function(self, p)
    return self.scale * (-(-p):log1p()):pow(1 / self.concentration)
  end,
  entropy = function(self)
    local k = self.concentration
    return EULER * (1 - 1 / k) + (self.scale / k):log() + 1
  end,
}, {mean = function(self)
      return self.scale * (1 + 1 / self.concentration):lgamma():exp()
    end,
    mode = function(self)
      local k = self.concentration
      return self.scale * ((k - 1) / k):clamp {min = 0}:pow(1 / k)
    end,
    variance = function(self)
      local k = 1 / self.concentration
      return self.scale:square() * ((1 + 2 * k):lgamma():exp()
                                    - (2 * (1 + k):lgamma()):exp())
    end,
    support = support "positive"})
