-- SPDX-License-Identifier: MIT
-- lua_states.lua: what test_lua_states.c runs in the state A, a function for
-- each test. Both states load this file; other(code) runs code in B, also in
-- the middle of what the caller does.
function is(got, want)
  if got ~= want then
    error(("got %s, not %s"):format(got, want), 2)
  end
end

function random()
  return table.concat({nacre.rand(3):totable()[1], nacre.randn(7):totable()[7],
    nacre.randperm(9):totable()[1], math.random()}, " ")
end

function check_dtype(dtype)
  is(nacre.get_default_dtype(), dtype)
  is(nacre.zeros(2).dtype, dtype)
  is(nacre.tensor({1.5}).dtype, dtype)
  local i = nacre.tensor({1, 2})
  is((i + 1.5).dtype, dtype)
  is((i / 2).dtype, dtype)
  is(i:sqrt().dtype, dtype)
  is(nacre.linspace(0, 1, 3).dtype, dtype)
  is(nacre.rand(1).dtype, dtype)
end

function dtype()
  nacre.set_default_dtype("float64")
  for _ = 1, 3 do
    check_dtype("float64")
    other "check_dtype('float32')"
  end
  local i = nacre.tensor({1, 2})
  other "nacre.zeros(1)"
  is((i / 2).dtype, "float64")
  local options = setmetatable({}, {__pairs = function()
    other "nacre.zeros(1)"
    return next, {}
  end})
  is(nacre.zeros(1, options).dtype, "float64")
end

function seeded(seed)
  nacre.manual_seed(seed)
  one, two = random(), random()
  nacre.manual_seed(seed)
end

-- The numbers of a state are those of the same seed alone.
function random_numbers()
  seeded(1)
  other "seeded(2)"
  is(random(), one)
  other "is(random(), one) is(random(), two)"
  is(random(), two)
  is(nacre.initial_seed(), 1)
  other "is(nacre.initial_seed(), 2)"
  local was = nacre.get_rng_state()
  other "nacre.seed() nacre.rand(9)"
  is(nacre.get_rng_state():equal(was), true)
  nacre.fork_rng(function() other "nacre.manual_seed(3)" end)
  other "is(nacre.initial_seed(), 3)"
  nacre.manual_seed(1)
  nacre._watch "dry"
  nacre.rand(5)
  other "nacre._watch [[dry]] nacre.rand(6) nacre._watch [[]]"
  nacre._watch ""
  is(random(), one)
end

function is_recording(yes)
  local x = nacre.ones(3, {requires_grad = true})
  is(nacre.is_grad_enabled(), yes)
  is((x * 2).requires_grad, yes)
end

function recording()
  other "nacre.set_grad_enabled(false)"
  is_recording(true)
  other "is_recording(false)"
  nacre.no_grad(function()
    other "nacre.set_grad_enabled(true) is_recording(true)"
    is_recording(false)
  end)
  is_recording(true)
end

function work()
  local x = nacre.ones(2, {requires_grad = true})
  local y = (x * 3):exp():sum()
  is(y.requires_grad, true)
  y:backward()
end

-- The other state computes, and runs its own backward, in a hook.
function hook()
  local x = nacre.ones(2, {requires_grad = true})
  local y = x * 2
  y:register_hook(function() other "work()" end)
  local z = (y:sqrt() + y):sum()
  z:backward()
  is(x.grad.requires_grad, false)
  is_recording(true)
  other "work() is_recording(true)"
end

-- The other state runs, and turns its recording off, in a custom function.
function custom_function()
  local twice = nacre.autograd.Function {
    forward = function(_, x)
      local y = x * 2
      other "nacre.set_grad_enabled(false) nacre.ones(1)"
      return y
    end,
    backward = function(_, g)
      other "nacre.ones(1)"
      return g * 2
    end}
  local x = nacre.ones(3, {requires_grad = true})
  local y = twice(x)
  is(y.requires_grad, true);
  (y * x):sum():backward()
  is(x.grad[1], 4.0)
end

function tracing()
  local names = {}
  nacre._watch("steps", function(steps)
    for _, step in ipairs(steps) do names[#names + 1] = step.op end
  end)
  local x = nacre.ones(3)
  other "local y = nacre.ones(3) y:exp()"
  x:log()
  nacre._watch ""
  is(table.concat(names, " "), "ones log")
end

-- A device of its own; one that follows the current device of the process.
function device()
  if not nacre.cuda.is_available() then return end
  nacre.set_default_device("cuda:1")
  other "is(nacre.zeros(1).device, [[cpu]])"
  is(nacre.zeros(1).device, "cuda:1")
  nacre.set_default_device("cuda")
  is(nacre.zeros(1).device, "cuda:0")
  other "nacre.cuda.set_device(1) is(nacre.zeros(1).device, [[cpu]])"
  is(nacre.get_default_device(), "cuda:1")
  is(nacre.zeros(1).device, "cuda:1")
end
