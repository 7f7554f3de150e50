-- SPDX-License-Identifier: MIT
-- Distributions other than the uniform one, generators, and the state of the
-- default one; random.lua has the numbers themselves.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local is, shape, fails = C.is, C.shape, C.fails
local N = 50000
nacre.manual_seed(11)

-- Mean and deviation of many, within five standard errors (the deviation
-- within 5 %).
local function near(t, mean, std)
  t = t:double()
  local m, s = t:mean():item(), t:std():item()
  assert(math.abs(m - mean) < 5 * std / math.sqrt(N),
         ("mean %g, not %g"):format(m, mean))
  assert(math.abs(s - std) < 0.05 * std, ("std %g, not %g"):format(s, std))
end

do -- moments
  local x = nacre.empty(N)
  assert(rawequal(x:exponential_(2), x))
  near(x, 0.5, 0.5)
  assert(x:gt(0):all():item())
  near(x:geometric_(0.25), 4, math.sqrt(12))
  near(nacre.empty(N, {dtype = "int32"}):geometric_(0.5), 2, math.sqrt(2))
  near(x:log_normal_(0, 0.5), math.exp(0.125),
       math.exp(0.125) * math.sqrt(math.exp(0.25) - 1))
  near(x:cauchy_(1, 2):gt(3), 0.25, math.sqrt(0.25 * 0.75))
  near(x:cauchy_(1, 2):lt(1), 0.5, 0.5)
  near(x:bernoulli_(0.3), 0.3, math.sqrt(0.21))
  near(nacre.full({N}, 0.7):bernoulli(), 0.7, math.sqrt(0.21))
  near(nacre.zeros(N, {dtype = "bool"}):bernoulli_(0.7), 0.7, math.sqrt(0.21))
  near(nacre.normal(3, 2, {N}), 3, 2)
  near(nacre.normal(nacre.full({N}, 3.0), 2), 3, 2)
  near(nacre.normal(3, nacre.full({N}, 2.0)), 3, 2)
  near(nacre.empty(N, {dtype = "int64"}):random_(-5, 5), -0.5,
       math.sqrt(99 / 12))
  near(nacre.empty(N, {dtype = "uint8"}):random_(), 127.5,
       256 / math.sqrt(12))
  near(nacre.full({N}, 2.5):poisson(), 2.5, math.sqrt(2.5))
  near(nacre.full({N}, 400.0):poisson(), 400, 20)
end

do -- extremes
  is(nacre.zeros(3):bernoulli(), "{0.0,0.0,0.0}")
  is(nacre.ones(3):bernoulli(), "{1.0,1.0,1.0}")
  is(nacre.zeros(3):poisson(), "{0.0,0.0,0.0}")
  shape(nacre.normal(nacre.zeros(2, 1), nacre.ones(3)), 2, 3)
  assert(nacre.normal(0, 1, 2, {dtype = "float64"}).dtype == "float64")
  for _, name in ipairs {"exponential_", "cauchy_", "log_normal_", "random_",
                         "bernoulli_"} do
    local y = nacre.zeros(0)
    shape(y[name](y), 0)
  end
end

do -- categories count from 1
  local w = nacre.tensor({1, 0, 3, 6.0})
  local counts = w:multinomial(N, true):bincount(nil, 5):double() / N
  for i, p in ipairs {0, 0.1, 0, 0.3, 0.6} do
    assert(math.abs(counts[i] - p) < 0.02)
  end
  is((w:multinomial(3):sort()), "{1,3,4}")
  local first = nacre.stack({w}):expand(N, 4):multinomial(2):select(2, 1)
  assert(math.abs(first:eq(4):double():mean():item() - 0.6) < 0.02)
  shape(nacre.ones(2, 3):multinomial(5, true), 2, 5)
  fails("too few weights are above 0", w.multinomial, w, 4)
  fails("too few weights are above 0", w.multinomial, w * 0, 1, true)
  fails("negative, nan or infinite", w.multinomial, w - 2, 1)
  fails("cannot draw 5 numbers from 4 categories", w.multinomial, w, 5)
  fails("num_samples is 0, but must be 1 or more", w.multinomial, w, 0)
end

do -- what is wrong
  local x = nacre.zeros(2)
  fails("lambd must be above 0, not 0", x.exponential_, x, 0)
  fails("p must lie between 0 and 1, not 1", x.geometric_, x, 1)
  fails("p must lie between 0 and 1, not 2", x.bernoulli_, x, 2)
  fails("not between 0 and 1", nacre.bernoulli, x + 2)
  fails("not between 0 and 1", nacre.bernoulli, x + 0 / 0)
  fails("a standard deviation is negative", nacre.normal, 0, x - 1)
  fails("needs a size", nacre.normal, 0, 1)
  fails("no integer in [3, 3)", x.random_, x, 3, 3)
  fails("needs a float dtype", nacre.bernoulli, x:long())
  fails("rate", nacre.poisson, x - 1)
  is(x, "{0.0,0.0}")
  local leaf = nacre.zeros(2):requires_grad_()
  for _, name in ipairs {"exponential_", "bernoulli_", "random_"} do
    assert(not pcall(leaf[name], leaf), name)
  end
end

do -- generators
  local g = nacre.Generator():manual_seed(5)
  assert(g:initial_seed() == 5 and g.device == "cpu")
  is(g:get_state(), "{5,0}")
  nacre.manual_seed(5)
  local default = nacre.get_rng_state()
  local function draws(o)
    return {nacre.rand(5, o), nacre.randn(3, {dtype = "float64",
            generator = o.generator}), nacre.randint(9, {4}, o),
            nacre.randperm(6, o), nacre.zeros(3):uniform_(o),
            nacre.zeros(3):normal_(o), nacre.rand_like(nacre.zeros(2), o),
            nacre.normal(0, 1, {3}, o), nacre.zeros(3):exponential_(o),
            nacre.ones(4):multinomial(2, o), nacre.zeros(2):bernoulli_(o),
            nacre.full({5}, 30.0):poisson(o)}
  end
  local one = draws {generator = g}
  is(nacre.get_rng_state(), C.text(default:totable()))
  assert(nacre.rand(5) == one[1])
  local two = draws {generator = nacre.Generator("cpu"):manual_seed(5)}
  for i, t in ipairs(one) do assert(t == two[i], "draw " .. i) end
  local copy, state = g:clone(), g:get_state()
  local a = nacre.rand(3, {generator = g})
  assert(a == nacre.rand(3, {generator = copy}))
  assert(rawequal(g:set_state(state), g))
  assert(a == nacre.rand(3, {generator = g}))
  assert(g:seed() == g:initial_seed() and g:get_state()[2] == 0)
  fails("must be a generator, not an integer", nacre.rand, 3, {generator = 3})
  fails("a state is an int64 tensor", g.set_state, g, nacre.zeros(2))
  fails("seed must be an integer", g.manual_seed, g, "x")
  fails("has no 'sed'", function() return g.sed end)
end

do -- the default one
  local state = nacre.get_rng_state()
  local a = nacre.rand(3)
  nacre.set_rng_state(state)
  assert(nacre.rand(3) == a)
  local b = nacre.fork_rng(function(n) return nacre.rand(n) end, 3)
  assert(nacre.rand(3) == b)
  state = nacre.get_rng_state()
  fails("within", nacre.fork_rng, function()
    nacre.rand(3)
    error("within")
  end)
  assert(nacre.get_rng_state() == state)
  assert(nacre.seed() == nacre.initial_seed())
end
