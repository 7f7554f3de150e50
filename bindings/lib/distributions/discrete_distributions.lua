-- SPDX-License-Identifier: MIT
-- discrete_distributions.lua - distributions of counts, and of categories,
-- which count from 1.
local all = ...
all.require("nacre.distribution")
local fail, distribution, C = all.fail, all.distribution, all.constraints
local F = nacre.nn.functional
local either = all.probs_or_logits

local function support(name) return function() return C[name] end end

-- probs, from which logits can be had.
local function clamped(probs)
  local eps = nacre.finfo(probs.dtype).eps
  return probs:clamp(eps, 1 - eps)
end

-- probs and logits of trials with two outcomes, of which one is given.
local function two_outcomes(fields)
  function fields.probs(self) return self.logits:sigmoid() end
  function fields.logits(self)
    local p = clamped(self.probs)
    return p:log() - (-p):log1p()
  end
  return fields
end

local TRIAL = {{"probs", C.unit_interval, default = "nil"},
               {"logits", C.real, default = "nil"}}

-- TRIAL after other parameters.
local function with_trial(...)
  local list = {...}
  return table.move(TRIAL, 1, 2, #list + 1, list)
end

-- log(1 - p) and log(p)
local function log_failure(logits) return F.logsigmoid(-logits) end
local function log_success(logits) return F.logsigmoid(logits) end

distribution("Bernoulli", TRIAL,
  "1 with the probability probs, else 0; or with logits", {
  _choose = either,
  _draw = function(self, shape)
    return nacre.bernoulli(self.probs:expand(shape))
  end,
  _log_prob = function(self, x)
    local logits = self.logits
    return x * logits - F.softplus(logits)
  end,
  entropy = function(self)
    local logits = self.logits
    return F.softplus(logits) - self.probs * logits
  end,
  _enumerate = function(self)
    local p = self.probs
    return nacre.arange(0, 2, all.like(p))
  end,
}, two_outcomes {
  mean = function(self) return self.probs end,
  mode = function(self)
    local p = self.probs
    return nacre.where(p:eq(0.5), 0 / 0, p:gt(0.5):to(p.dtype))
  end,
  variance = function(self) return self.probs * (1 - self.probs) end,
  support = support "boolean"})

distribution("Geometric", TRIAL,
  "the number of failures before the first success", {
  _choose = either,
  _draw = function(self, shape)
    local u = all.open_uniform(shape, self.probs)
    return (u:log() / (-self.probs):log1p()):floor()
  end,
  _log_prob = function(self, x)
    local p = self.probs
    local none = p:eq(1):logical_and(x:eq(0))
    p = nacre.where(none, 0, p)
    return x * (-p):log1p() + self.probs:log()
  end,
  entropy = function(self)
    return F.binary_cross_entropy_with_logits(
      self.logits, self.probs, {reduction = "none"}) / self.probs
  end,
}, two_outcomes {
  mean = function(self) return 1 / self.probs - 1 end,
  mode = function(self) return nacre.zeros_like(self.probs) end,
  variance = function(self) return (1 / self.probs - 1) / self.probs end,
  support = support "nonnegative_integer"})

distribution("Binomial", with_trial({"total_count", C.nonnegative_integer,
                                     default = "1"}),
  "the number of successes among total_count trials", {
  _choose = either,
  _draw = function(self, shape)
    return nacre.binomial(self.total_count:expand(shape),
                          self.probs:expand(shape))
  end,
  _log_prob = function(self, x)
    local n, logits = self.total_count, self.logits
    -- n*log(1 - p) where that is small, n*log(p) - n*logits where it is not
    local base = n * logits:clamp {min = 0} + n * (-logits:abs()):exp():log1p()
    return (n + 1):lgamma() - (x + 1):lgamma() - (n - x + 1):lgamma()
           + x * logits - base
  end,
  entropy = function(self)
    local x = self:enumerate_support(false)
    local logp = self:_log_prob(x)
    return -(logp:exp() * logp):sum(1)
  end,
  _enumerate = function(self)
    local n = self.total_count
    local most = n:amax():item()
    if n:amin():item() ~= most then
      fail("enumerate_support", "the total_count differ")
    end
    return nacre.arange(0, most + 1, all.like(n))
  end,
}, two_outcomes {
  mean = function(self) return self.total_count * self.probs end,
  mode = function(self)
    local n = self.total_count
    return ((n + 1) * self.probs):floor():minimum(n)
  end,
  variance = function(self)
    return self.total_count * self.probs * (1 - self.probs)
  end,
  support = function(self) return C.integer_interval(0, self.total_count) end})

distribution("NegativeBinomial", with_trial({"total_count", C.positive}),
  "the number of successes of probability probs before total_count failures", {
  _choose = either,
  _draw = function(self, shape)
    local rate = all.standard_gamma(self.total_count:expand(shape))
                 * self.logits:exp()
    return rate:poisson()
  end,
  _log_prob = function(self, x)
    local n, logits = self.total_count, self.logits
    local y = n * log_failure(logits) + x * log_success(logits)
    local ways = (n + x):lgamma() - (x + 1):lgamma() - n:lgamma()
    return y + nacre.where((n + x):eq(0), 0, ways)
  end,
}, two_outcomes {
  mean = function(self) return self.total_count * self.logits:exp() end,
  mode = function(self)
    return ((self.total_count - 1) * self.logits:exp()):floor()
           :clamp {min = 0}
  end,
  variance = function(self) return self.mean / (-self.logits):sigmoid() end,
  support = support "nonnegative_integer"})

distribution("Poisson", {{"rate", C.nonnegative}},
  "the number of events, of which rate are expected", {
  _draw = function(self, shape) return self.rate:expand(shape):poisson() end,
  _log_prob = function(self, x)
    return nacre.xlogy(x, self.rate) - self.rate - (x + 1):lgamma()
  end,
}, {mean = function(self) return self.rate end,
    mode = function(self) return self.rate:floor() end,
    variance = function(self) return self.rate end,
    support = support "nonnegative_integer"})

--
-- Categories
--
-- Logits less their logsumexp, probs over their sum.
local function normalize(self)
  local logits, probs = rawget(self, "logits"), rawget(self, "probs")
  if logits then
    rawset(self, "logits", logits - logits:logsumexp(-1, true))
  else
    rawset(self, "probs", probs / probs:sum(-1, true))
  end
end

local function categories(fields)
  function fields.probs(self) return self.logits:softmax(-1) end
  function fields.logits(self) return clamped(self.probs):log() end
  return fields
end

local nonnegative_vector = C.independent(C.nonnegative, 1)
local CATEGORIES = {
  {"probs", nonnegative_vector, event = 1, default = "nil"},
  {"logits", C.real_vector, event = 1, default = "nil"}}

-- Categories, from 1, drawn for a shape without that of an event.
local function draw_categories(self, shape)
  local p = self.probs
  local k, batch = p:size(-1), p:dim() - 1
  local times = 1
  for i = 1, #shape - batch do times = times * shape[i] end
  local rows = p:reshape(-1, k)
  if times == 0 or rows:size(1) == 0 then
    return nacre.zeros(shape, {dtype = "int64", device = p.device})
  end
  return rows:multinomial(times, true):t():reshape(shape)
end

local function entropy_of_categories(self)
  local least = -nacre.finfo(self.logits.dtype).max
  return -(self.logits:clamp {min = least} * self.probs):sum(-1)
end

local Categorical = distribution("Categorical", CATEGORIES,
  "categories from 1 on, whose probabilities are the last dimension of probs, "
  .. "over their sum, or the softmax of logits", {
  _choose = either, _made = normalize,
  _draw = draw_categories,
  _log_prob = function(self, x)
    local wide = all.broadcast_shape(x.shape, self.batch_shape)
    local k = self.logits:size(-1)
    local at = x:long():expand(wide):unsqueeze(-1)
    wide[#wide + 1] = k
    return self.logits:expand(wide):gather(-1, at):squeeze(-1)
  end,
  entropy = entropy_of_categories,
  _enumerate = function(self)
    return nacre.arange(1, self.logits:size(-1) + 1,
                        {dtype = "int64", device = self.logits.device})
  end,
}, categories {
  param_shape = function(self) return self.logits.shape end,
  mean = function(self)
    return nacre.full(self.batch_shape, 0 / 0, all.like(self.logits))
  end,
  variance = function(self) return self.mean end,
  mode = function(self) return self.probs:argmax(-1) end,
  support = function(self)
    return C.integer_interval(1, self.logits:size(-1))
  end})
all.Categorical = Categorical

-- The vectors of one 1 for categories.
local function one_hot(at, k, like)
  local shape = at.shape
  shape[#shape + 1] = k
  return nacre.zeros(shape, all.like(like)):scatter(-1, at:unsqueeze(-1), 1)
end

-- An event is a vector of as many elements as there are categories.
local function keep_event(self)
  normalize(self)
  rawset(self, "_event", {(rawget(self, "logits") or self.probs):size(-1)})
end

all.keep_event = keep_event

-- A shape without its last size.
local function without_event(shape)
  return table.move(shape, 1, #shape - 1, 1, {})
end

local one_hot_methods = {
  _choose = either, _made = keep_event,
  _draw = function(self, shape)
    local at = draw_categories(self, without_event(shape))
    return one_hot(at, self.event_shape[1], self.probs)
  end,
  _log_prob = function(self, x)
    local at = x:argmax(-1, true)
    local wide = all.broadcast_shape(x.shape, self.logits.shape)
    local shape = table.move(wide, 1, #wide - 1, 1, {})
    shape[#wide] = 1
    return self.logits:expand(wide):gather(-1, at:expand(shape)):squeeze(-1)
  end,
  entropy = entropy_of_categories,
  _enumerate = function(self)
    return nacre.eye(self.event_shape[1], all.like(self.probs))
  end}
local one_hot_fields = {
  mean = function(self) return self.probs end,
  mode = function(self)
    return one_hot(self.probs:argmax(-1), self.event_shape[1], self.probs)
  end,
  variance = function(self) return self.probs * (1 - self.probs) end,
  support = support "one_hot"}
local OneHot = distribution("OneHotCategorical", CATEGORIES,
  "categories like Categorical's, each a vector of one 1", one_hot_methods,
  categories(one_hot_fields))

distribution("OneHotCategoricalStraightThrough", CATEGORIES,
  "OneHotCategorical, whose rsample gives probs the gradient of the draw", {
  parent = OneHot, _reparametrized = true,
  _draw = function(self, shape)
    local p = self.probs
    return one_hot_methods._draw(self, shape) + (p - p:detach())
  end})

distribution("Multinomial", {
  {"total_count", C.nonnegative_integer, default = "1"}, CATEGORIES[1],
  CATEGORIES[2]},
  "how often each category comes among total_count draws, which are the same "
  .. "number for the whole batch", {
  _choose = function(op, given)
    either(op, given)
    if math.type(given.total_count) ~= "integer" then
      fail(op, "total_count must be an integer")
    end
  end,
  _made = keep_event,
  _draw = function(self, shape)
    local n = self.total_count:reshape(-1)[1]
    local draws = table.move(without_event(shape), 1, #shape - 1, 2,
                             {math.tointeger(n)})
    return one_hot(draw_categories(self, draws), self.event_shape[1],
                   self.probs):sum(1)
  end,
  _log_prob = function(self, x)
    local ways = (x:sum(-1) + 1):lgamma() - (x + 1):lgamma():sum(-1)
    local logits = self.logits
    local none = x:eq(0):logical_and(logits:eq(-math.huge))
    return ways + (x * nacre.where(none, 0, logits)):sum(-1)
  end,
  -- of the counts of each category, which are binomial
  entropy = function(self)
    local n = self.total_count:reshape(-1)[1]
    local p, steps = self.probs:unsqueeze(-1), nacre.arange(1, n + 1, all.like(
      self.probs))
    local log_ways = nacre.lgamma(self.total_count + 1)
    local all_of = (log_ways:reshape(-1)[1] - (steps + 1):lgamma()
                    - (n - steps + 1):lgamma() + steps * p:log()
                    + (n - steps) * (-p):log1p()):exp()
    return n * entropy_of_categories(self) - log_ways
           + (all_of * (steps + 1):lgamma()):sum({-2, -1})
  end,
}, categories {
  mean = function(self) return self.probs * self.total_count:unsqueeze(-1) end,
  variance = function(self)
    local p = self.probs
    return self.total_count:unsqueeze(-1) * p * (1 - p)
  end,
  support = function(self)
    local n = self.total_count
    return C.independent(C.integer_interval(0, n:amax()), 1)
  end})
