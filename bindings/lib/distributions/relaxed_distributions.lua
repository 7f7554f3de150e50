-- SPDX-License-Identifier: MIT
-- relaxed_distributions.lua - continuous forms of discrete distributions, whose
-- draws have gradients (Maddison, Mnih and Teh, "The concrete distribution",
-- 2017; Jang, Gu and Poole, "Categorical reparameterization with
-- Gumbel-softmax", 2017).
local all = ...
all.require("nacre.discrete_distributions")
local distribution, C = all.distribution, all.constraints
local F = nacre.nn.functional

distribution("RelaxedBernoulli", {
  {"temperature", C.positive},
  {"probs", C.unit_interval, default = "nil"},
  {"logits", C.real, default = "nil"}},
  "numbers between 0 and 1, near to Bernoulli's at a low temperature", {
  _choose = all.probs_or_logits, _reparametrized = true,
  _draw = function(self, shape)
    local u = all.open_uniform(shape, self.temperature)
    u = u:clamp {max = 1 - nacre.finfo(u.dtype).eps / 2}
    local x = (u:log() - (-u):log1p() + self.logits) / self.temperature
    local limits = nacre.finfo(x.dtype)
    return x:sigmoid():clamp(limits.tiny, 1 - limits.eps)
  end,
  _log_prob = function(self, y)
    local x = y:log() - (-y):log1p()
    local d = self.logits - x * self.temperature
    return self.temperature:log() + d - 2 * F.softplus(d) + F.softplus(-x)
           + F.softplus(x)
  end,
}, {probs = function(self) return self.logits:sigmoid() end,
    logits = function(self)
      local eps = nacre.finfo(self.probs.dtype).eps
      local p = self.probs:clamp(eps, 1 - eps)
      return p:log() - (-p):log1p()
    end,
    support = function() return C.unit_interval end})

distribution("RelaxedOneHotCategorical", {
  {"temperature", C.positive},
  {"probs", C.independent(C.nonnegative, 1), event = 1, default = "nil"},
  {"logits", C.real_vector, event = 1, default = "nil"}},
  "positive vectors whose sum is 1, near to OneHotCategorical's at a low "
  .. "temperature", {
  _choose = all.probs_or_logits, _reparametrized = true,
  _made = all.keep_event,
  _draw = function(self, shape)
    local g = -(-all.open_uniform(shape, self.temperature):log()):log()
    return ((self.logits + g) / self.temperature:unsqueeze(-1)):softmax(-1)
  end,
  _log_prob = function(self, y)
    local T, k, x = self.temperature, self.event_shape[1], y:log()
    local score = self.logits - x * T:unsqueeze(-1)
    score = score:log_softmax(-1):sum(-1)
    return score + nacre.full_like(T, k):lgamma() + (k - 1) * T:log()
           - x:sum(-1)
  end,
}, {probs = function(self) return self.logits:softmax(-1) end,
    logits = function(self)
      local eps = nacre.finfo(self.probs.dtype).eps
      return self.probs:clamp(eps, 1 - eps):log()
    end,
    support = function() return C.simplex end})
