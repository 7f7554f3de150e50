-- SPDX-License-Identifier: MIT
-- Classes of nacre.distributions: what they refuse, how they are shown, classes
-- of the user, shapes.
local D = nacre.distributions
local C = D.constraints

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  assert(not ok, "no error: " .. text)
  err = tostring(err)
  assert(err:find(text, 1, true), err .. "\nnot: " .. text)
end

-- parameters
fails("scale must be greater than 0, but has -1", D.Normal, 0, -1)
fails("scale must be greater than 0, but has 0", D.Normal,
      nacre.zeros(2), nacre.tensor {1.0, 0.0})
fails("loc must be a real number, but has nan", D.Normal, 0 / 0, 1)
fails("scale must be a tensor or a number, not a string", D.Normal, 0, "1")
fails("does not broadcast with the other parameters, whose shape is {2}",
      D.Normal, nacre.zeros(2), nacre.ones(3))
fails("low must be less than high", D.Uniform, 1, 0)
fails("one of probs and logits must be given", D.Bernoulli)
fails("one of probs and logits must be given", D.Categorical, nacre.ones(2),
      nacre.ones(2))
fails("at least 1 are needed", D.Categorical, nacre.tensor(0.5))
fails("one of covariance_matrix, precision_matrix and scale_tril must be given",
      D.MultivariateNormal, nacre.zeros(2))
fails("must be a symmetric positive definite matrix", D.MultivariateNormal,
      nacre.zeros(2), nacre.tensor {{1.0, 2.0}, {2.0, 1.0}})
fails("is not 3 x 3, as", D.MultivariateNormal, nacre.zeros(3), nacre.eye(2))
fails("no argument 'sigma'", D.Normal, 0, {sigma = 1})
fails("base_distribution must be a distribution, not a tensor", D.Independent,
      nacre.ones(2), 1)
fails("reinterpreted_batch_ndims is 2, but batch_shape has 1 dimension",
      D.Independent, D.Normal(nacre.zeros(3), 1), 2)
fails("the mixture has 2 components", D.MixtureSameFamily,
      D.Categorical(nacre.ones(2)), D.Normal(nacre.zeros(3), 1))
fails("element 1 of transforms is a number, not a transform",
      D.TransformedDistribution, D.Normal(0, 1), {2})

-- values
local d = D.Normal(nacre.zeros(2), 1)
fails("value does not fit batch_shape {2} and event_shape {}", d.log_prob, d,
      nacre.zeros(3))
fails("value must be a tensor or a number, not a string", d.log_prob, d, "1")
fails("a method is called with a colon", d.log_prob, nacre.zeros(2))
fails("takes at most 1 argument", function() d:log_prob(0, 1) end)
fails("value must be an integer from 0 on, but has 0.5", function()
  D.Poisson(2):log_prob(0.5)
end)
fails("value must be an integer from 1 to 3, but has 0", function()
  D.Categorical(nacre.ones(3)):log_prob(0)
end)
fails("value must be from 0 to 1, but has 2", function() d:icdf(2) end)
fails("Poisson does not have a rsample", function() D.Poisson(2):rsample() end)
fails("Poisson does not have a entropy", function() D.Poisson(2):entropy() end)
fails("no formula is known for Normal and Poisson", D.kl_divergence, d,
      D.Poisson(1))

-- unchecked: what PyTorch gives then
assert(D.Normal(0, 1, {validate_args = false}):log_prob(0 / 0):isnan():item())
D.set_default_validate_args(false)
assert(D.Normal(0, -1).scale:item() == -1)
D.set_default_validate_args(true)
fails("scale must be greater than 0", D.Normal, 0, -1)

-- shapes and dtypes
local function shape(t) return table.concat(t, "x") end
for _, case in ipairs {
  {D.Normal(0, 1), "", ""}, {D.Normal(nacre.zeros(2, 1), nacre.ones(3)), "2x3",
                             ""},
  {D.Categorical(nacre.ones(2, 4)), "2", ""},
  {D.OneHotCategorical(nacre.ones(2, 4)), "2", "4"},
  {D.MultivariateNormal(nacre.zeros(5, 2), nacre.eye(2)), "5", "2"},
  {D.Independent(D.Normal(nacre.zeros(5, 2), 1), 1), "5", "2"},
} do
  local of, batch, event = table.unpack(case)
  assert(shape(of.batch_shape) == batch and shape(of.event_shape) == event,
         tostring(of))
  local x = of:sample(7)
  assert(of:log_prob(x):dim() == 1 + #of.batch_shape)
  assert(shape(of:expand {6, table.unpack(of.batch_shape)}.batch_shape) ==
         shape {6, table.unpack(of.batch_shape)})
end
assert(D.Normal(nacre.tensor(0, {dtype = "float64"}), 1):sample().dtype ==
       "float64")
assert(D.Normal(0, 1):sample(2, 3):dim() == 2)
assert(D.Normal(0, 1):sample {2, 3}:size(1) == 2)
assert(tostring(D.Normal(0, nacre.ones(3))) ==
       "Normal(loc: float32[3], scale: float32[3])")
assert(tostring(D.Exponential(2)) == "Exponential(rate: 2.0)")
fails("does not expand to {4}", function() d:expand(4) end)

-- constraints
assert(tostring(C.positive) == "greater than 0")
assert(C.simplex:check(nacre.tensor {{0.5, 0.5}, {0.5, 0.6}}):sum():item() == 1)
assert(C.one_hot:check(nacre.eye(3)):all():item())
assert(C.lower_cholesky:check(nacre.eye(3)):item())
assert(not C.lower_cholesky:check(nacre.ones(3, 3)):item())

-- classes of the user
local Zero = D.Distribution "Zero"
function Zero:init(n) D.Distribution.init(self, {n}, {}) end
function Zero:log_prob(value) return nacre.zeros_like(value) end
function Zero:sample(...) return nacre.zeros(..., 3) end
Zero:property("mean", function(self) return nacre.zeros(self.batch_shape) end)
local z = Zero(3)
assert(z.mean:numel() == 3 and z.batch_shape[1] == 3)
assert(z:log_prob(nacre.ones(3)):sum():item() == 0)
assert(z:sample(2):numel() == 6)
fails("Zero does not have a entropy", function() z:entropy() end)
D.register_kl("Zero", "Zero", function(p) return nacre.zeros(p.batch_shape) end)
assert(D.kl_divergence(z, Zero(3)):numel() == 3)
assert(D.Independent(z, 1):log_prob(nacre.ones(3)):dim() == 0)
local More = Zero:extend "More"
assert(D.kl_divergence(More(3), z):numel() == 3)

-- REINFORCE: the gradient of log_prob
local logits = nacre.zeros(4):requires_grad_()
local policy = D.Categorical {logits = logits}
local action = policy:sample()
policy:log_prob(action):backward()
assert(math.abs(logits.grad[action:item()] - 0.75) < 1e-6)
print "ok"
