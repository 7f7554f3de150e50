-- SPDX-License-Identifier: MIT
-- real_distributions.lua - distributions of one real number: of all real
-- numbers, of an interval, of directions.
local all = ...
all.require("nacre.distribution")
local distribution, C = all.distribution, all.constraints
local log, pi = math.log, math.pi

local LOCATION = {"loc", C.real}
local SCALE = {"scale", C.positive}

local function randn(shape, like) return nacre.randn(shape, all.like(like)) end

-- Uniform numbers in (0, 1): of which logarithms are finite.
local function open_uniform(shape, like)
  local least = nacre.finfo(like.dtype).tiny
  return nacre.rand(shape, all.like(like)):clamp {min = least}
end
all.open_uniform = open_uniform

local function constant(name) return function(self) return self[name] end end

local Normal = distribution("Normal", {LOCATION, SCALE},
  "the normal distribution of mean loc and standard deviation scale", {
  _reparametrized = true,
  _draw = function(self, shape)
    return self.loc + self.scale * randn(shape, self.loc)
  end,
  _log_prob = function(self, x)
    return -((x - self.loc) / self.scale):square() / 2 - self.scale:log()
           - log(2 * pi) / 2
  end,
  _cdf = function(self, x)
    return ((self.loc - x) / (self.scale * math.sqrt(2))):erfc() / 2
  end,
  _icdf = function(self, p)
    return self.loc + self.scale * math.sqrt(2) * (2 * p - 1):erfinv()
  end,
  entropy = function(self) return 0.5 + log(2 * pi) / 2 + self.scale:log() end,
}, {mean = constant "loc", mode = constant "loc", stddev = constant "scale",
    variance = function(self) return self.scale:square() end,
    support = function() return C.real end})
all.Normal = Normal

distribution("Laplace", {LOCATION, SCALE},
  "the Laplace distribution: exponential on both sides of loc", {
  _reparametrized = true,
  _draw = function(self, shape)
    local u = nacre.rand(shape, all.like(self.loc)) - 0.5
    u = u:clamp {min = nacre.finfo(u.dtype).eps / 2 - 0.5}
    return self.loc - self.scale * u:sign() * (-2 * u:abs()):log1p()
  end,
  _log_prob = function(self, x)
    return -(2 * self.scale):log() - (x - self.loc):abs() / self.scale
  end,
  _cdf = function(self, x)
    local d = x - self.loc
    return 0.5 - 0.5 * d:sign() * (-d:abs() / self.scale):expm1()
  end,
  _icdf = function(self, p)
    local d = p - 0.5
    return self.loc - self.scale * d:sign() * (-2 * d:abs()):log1p()
  end,
  entropy = function(self) return 1 + (2 * self.scale):log() end,
}, {mean = constant "loc", mode = constant "loc",
    variance = function(self) return 2 * self.scale:square() end,
    support = function() return C.real end})

distribution("Cauchy", {LOCATION, SCALE},
  "the Cauchy distribution of median loc; it has no mean", {
  _reparametrized = true,
  _draw = function(self, shape)
    local u = nacre.rand(shape, all.like(self.loc)) - 0.5
    return self.loc + self.scale * (u * pi):tan()
  end,
  _log_prob = function(self, x)
    return -log(pi) - self.scale:log()
           - ((x - self.loc) / self.scale):square():log1p()
  end,
  _cdf = function(self, x)
    return ((x - self.loc) / self.scale):atan() / pi + 0.5
  end,
  _icdf = function(self, p)
    return (pi * (p - 0.5)):tan() * self.scale + self.loc
  end,
  entropy = function(self) return log(4 * pi) + self.scale:log() end,
}, {mean = function(self) return nacre.full_like(self.loc, 0 / 0) end,
    variance = function(self) return nacre.full_like(self.loc, math.huge) end,
    mode = constant "loc", support = function() return C.real end})

local EULER <const> = 0.57721566490153286

distribution("Gumbel", {LOCATION, SCALE},
  "the Gumbel distribution, of the largest of many numbers", {
  _reparametrized = true,
  _draw = function(self, shape)
    local e = -open_uniform(shape, self.loc):log()
    return self.loc - self.scale * e:clamp {
      min = nacre.finfo(e.dtype).tiny}:log()
  end,
  _log_prob = function(self, x)
    local z = (self.loc - x) / self.scale
    return z - z:exp() - self.scale:log()
  end,
  _cdf = function(self, x)
    return (-((self.loc - x) / self.scale):exp()):exp()
  end,
  _icdf = function(self, p)
    return self.loc - self.scale * (-p:log()):log()
  end,
  entropy = function(self) return self.scale:log() + (1 + EULER) end,
}, {mean = function(self) return self.loc + self.scale * EULER end,
    variance = function(self) return self.scale:square() * (pi * pi / 6) end,
    mode = constant "loc", support = function() return C.real end})

distribution("StudentT", {{"df", C.positive}, {"loc", C.real, default = "0"},
                          {"scale", C.positive, default = "1"}},
  "Student's t distribution with df degrees of freedom", {
  _reparametrized = true,
  _draw = function(self, shape)
    local x = randn(shape, self.loc)
    local half = (self.df / 2):expand(shape)
    local chi2 = 2 * all.standard_gamma(half)
    return self.loc + self.scale * x * (self.df / chi2):sqrt()
  end,
  _log_prob = function(self, x)
    local y, df = (x - self.loc) / self.scale, self.df
    local z = self.scale:log() + (df:log() + log(pi)) / 2
              + (df / 2):lgamma() - ((df + 1) / 2):lgamma()
    return -(df + 1) / 2 * (y:square() / df):log1p() - z
  end,
  entropy = function(self)
    local df = self.df
    local beta = (df / 2):lgamma() + log(pi) / 2
                 - ((df + 1) / 2):lgamma()
    return self.scale:log() + (df + 1) / 2
           * (((df + 1) / 2):digamma() - (df / 2):digamma())
           + df:log() / 2 + beta
  end,
}, {mean = function(self)
      return nacre.where(self.df:gt(1), self.loc, 0 / 0)
    end,
    variance = function(self)
      local df = self.df
      local v = self.scale:square() * df / (df - 2)
      v = nacre.where(df:gt(2), v, math.huge)
      return nacre.where(df:gt(1), v, 0 / 0)
    end,
    mode = constant "loc", support = function() return C.real end})

distribution("Uniform", {{"low", C.real}, {"high", C.real}},
  "the uniform distribution from low to high", {
  _reparametrized = true,
  _made = function(self, op)
    if self.validate_args and not self.low:lt(self.high):all():item() then
      all.fail(op, "{low} must be less than {high}", nil, "low", self.low,
               "high", self.high)
    end
  end,
  _draw = function(self, shape)
    local u = nacre.rand(shape, all.like(self.low))
    return self.low + u * (self.high - self.low)
  end,
  _log_prob = function(self, x)
    local inside = x:ge(self.low):logical_and(x:lt(self.high))
    return inside:to(self.low.dtype):log() - (self.high - self.low):log()
  end,
  _cdf = function(self, x)
    return ((x - self.low) / (self.high - self.low)):clamp(0, 1)
  end,
  _icdf = function(self, p) return self.low + p * (self.high - self.low) end,
  entropy = function(self) return (self.high - self.low):log() end,
}, {mean = function(self) return (self.low + self.high) / 2 end,
    mode = function(self) return nacre.full_like(self.low, 0 / 0) end,
    variance = function(self) return (self.high - self.low):square() / 12 end,
    support = function(self) return C.interval(self.low, self.high) end})

-- Directions by rejection from a wrapped Cauchy distribution (Best and Fisher,
-- 1979), all elements of the shape in each round.
local function von_mises(loc, k, shape)
  local wide = k:to "float64":expand(shape)
  local tau = 1 + (1 + 4 * wide:square()):sqrt()
  local rho = (tau - (2 * tau):sqrt()) / (2 * wide)
  local r = nacre.where(wide:lt(1e-5), 1 / wide + wide,
                        (1 + rho:square()) / (2 * rho))
  local o = {dtype = "float64", device = k.device}
  local x, done = nacre.zeros(shape, o), nacre.zeros(shape, {
    dtype = "bool", device = k.device})
  while not done:all():item() do
    local z = (pi * nacre.rand(shape, o)):cos()
    local f = (1 + r * z) / (r + z)
    local c, u = wide * (r - f), nacre.rand(shape, o)
    local take = (c * (2 - c) - u):gt(0):logical_or(
      ((c / u):log() + 1 - c):ge(0))
    local angle = (nacre.rand(shape, o) - 0.5):sign() * f:clamp(-1, 1):acos()
    x = nacre.where(take:logical_and(done:logical_not()), angle, x)
    done = done:logical_or(take)
  end
  return (x + pi + loc):remainder(2 * pi) - pi
end

-- log(i0(k)) without overflow
local function log_i0(k) return k:i0e():log() + k end

distribution("VonMises", {LOCATION, {"concentration", C.positive}},
  "the von Mises distribution of directions, in radians around loc", {
  _draw = function(self, shape)
    return von_mises(self.loc, self.concentration, shape):to(self.loc.dtype)
  end,
  _log_prob = function(self, x)
    local k = self.concentration
    return k * (x - self.loc):cos() - log(2 * pi) - log_i0(k)
  end,
}, {mean = constant "loc", mode = constant "loc",
    variance = function(self) -- the circular one
      local k = self.concentration
      return 1 - k:i1e() / k:i0e()
    end,
    support = function() return C.real end})
