-- SPDX-License-Identifier: MIT
-- constraints.lua - nacre.distributions.constraints: sets of numbers, vectors
-- and matrices, with which distributions check parameters and values. A
-- constraint c has c:check(x), a bool tensor without the last c.event_dim
-- dimensions of x, and a text.
local all = ...
all.require("nacre.guards")
local constraints = all.space "distributions.constraints"

local Constraint = {name = "Constraint"}
Constraint.__index = Constraint
Constraint.__tostring = function(self) return self.text end
local function is_constraint(v) return all.is_instance(v, Constraint) end

function Constraint:check(value) return self._holds(value) end
all.guard_methods(Constraint, is_constraint, "constraint",
                  {check = "value:tensor"})

local function constraint(text, event_dim, holds, discrete)
  return setmetatable({text = text, event_dim = event_dim, _holds = holds,
                       is_discrete = discrete or false}, Constraint)
end

local function both(a, b) return a:logical_and(b) end
local function whole(x) return x:eq(x:floor()) end

-- The constraints without parameters.
local function named(name, ...) constraints[name] = constraint(...) end

named("real", "a real number", 0, function(x) return x:eq(x) end)
named("positive", "greater than 0", 0, function(x) return x:gt(0) end)
named("nonnegative", "0 or more", 0, function(x) return x:ge(0) end)
named("unit_interval", "from 0 to 1", 0,
      function(x) return both(x:ge(0), x:le(1)) end)
named("boolean", "0 or 1", 0,
      function(x) return x:eq(0):logical_or(x:eq(1)) end, true)
named("nonnegative_integer", "an integer from 0 on", 0,
      function(x) return both(x:ge(0), whole(x)) end, true)
named("positive_integer", "an integer from 1 on", 0,
      function(x) return both(x:ge(1), whole(x)) end, true)
named("real_vector", "a vector of real numbers", 1,
      function(x) return x:eq(x):all(-1) end)
named("simplex", "a vector of numbers from 0 on whose sum is 1", 1,
      function(x)
  return both(x:ge(0):all(-1), (x:sum(-1) - 1):abs():lt(1e-6))
end)
named("one_hot", "a vector of one 1 and else 0", 1, function(x)
  return both(x:eq(0):logical_or(x:eq(1)):all(-1), x:sum(-1):eq(1))
end, true)
named("lower_cholesky", "a lower triangular matrix with a positive diagonal",
      2, function(x)
  return both(x:tril():eq(x):all(-1):all(-1),
              x:diagonal(0, -2, -1):gt(0):all(-1))
end)
named("positive_definite", "a symmetric positive definite matrix", 2,
      function(x)
  local even = x:isclose(x.mT, 1e-5, 1e-6):all(-1):all(-1)
  return both(even, nacre.linalg.eigvalsh(x):gt(0):all(-1))
end)

-- nacre.distributions.constraints[name](a, ...): a constraint, whose parameters
-- are tensors or numbers if check is nil, else what check(op, a, ...) takes.
local function made(name, signature, doc, f, check)
  all.define("distributions.constraints." .. name,
             signature .. " -> constraint", doc, function(...)
    for i, v in ipairs {...} do
      if check then
        check(name, ...)
      elseif not nacre.is_tensor(v) and type(v) ~= "number" then
        all.fail(name, ("bound %d must be a tensor or a number, not a %s")
                       :format(i, type(v)))
      end
    end
    return f(...)
  end)
end

local function text_of(v)
  return nacre.is_tensor(v) and (v:dim() == 0 and ("%g"):format(v:item()) or
         "its parameters") or ("%g"):format(v)
end

made("interval", "lower_bound:any, upper_bound:any",
     "the numbers from lower_bound to upper_bound", function(a, b)
  return constraint(("from %s to %s"):format(text_of(a), text_of(b)), 0,
                    function(x) return both(x:ge(a), x:le(b)) end)
end)
made("integer_interval", "lower_bound:any, upper_bound:any",
     "the integers from lower_bound to upper_bound", function(a, b)
  return constraint(
    ("an integer from %s to %s"):format(text_of(a), text_of(b)), 0,
    function(x) return both(whole(x), both(x:ge(a), x:le(b))) end, true)
end)
made("greater_than", "lower_bound:any", "the numbers above lower_bound",
     function(a)
  return constraint("greater than " .. text_of(a), 0,
                    function(x) return x:gt(a) end)
end)
made("greater_than_eq", "lower_bound:any", "the numbers from lower_bound on",
     function(a)
  return constraint("at least " .. text_of(a), 0,
                    function(x) return x:ge(a) end)
end)
made("less_than", "upper_bound:any", "the numbers below upper_bound",
     function(a)
  return constraint("less than " .. text_of(a), 0,
                    function(x) return x:lt(a) end)
end)
made("independent", "base:any, reinterpreted_batch_ndims:int",
     "the constraint holds for all of the last dimensions", function(base, n)
  return constraint(("%s, in each of %d dimensions"):format(base.text, n),
                    base.event_dim + n, function(x)
    local ok = base._holds(x)
    for _ = 1, n do ok = ok:all(-1) end
    return ok
  end, base.is_discrete)
end, function(op, base)
  if not is_constraint(base) then
    all.fail(op, "base must be a constraint, not a " .. type(base))
  end
end)

all.constraints = constraints
