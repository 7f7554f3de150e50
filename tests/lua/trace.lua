-- SPDX-License-Identifier: MIT
-- A listener hears of each operation once, also when some fail, memory is
-- short, coroutines run them or the listener itself fails.

local steps, warnings = {}, {}
local function listen(list, warning)
  for _, s in ipairs(list) do steps[#steps + 1] = s end
  warnings[#warnings + 1] = warning
end

local function watch(what, f, ...)
  steps, warnings = {}, {}
  nacre._watch(what, listen)
  local results = table.pack(pcall(f, ...))
  nacre._watch ""
  return table.unpack(results, 1, results.n)
end

local function names()
  local list = {}
  for i, s in ipairs(steps) do
    list[i] = s.op .. (s.backward and "'" or "")
  end
  return table.concat(list, " ")
end

local function is(have, want)
  if have ~= want then
    error(("%s, not %s"):format(tostring(have), tostring(want)), 2)
  end
end

local a, b = nacre.ones(2, 3), nacre.ones(3, 2)

-- Each once, in order; what an operation is made of is not reported.
assert(watch("steps", function()
  local c = a:mm(b) + 1
  c:add_(2)
  c = -c
  c = c:max(1)
  return nacre.cat({a, a}, 1):std() .. ""
end) == false)
is(names(), "mm add add neg max cat std")
is(steps[1].operands[2]:match "%S+", "float32[3x2]")
is(steps[1].results[1], "float32[2x2] " .. nacre.get_default_device())
is(steps[1].flops, 24)
is(steps[3].allocated, 0)
assert(steps[1].seconds > 0 and not steps[1].view and not steps[1].more)
is(#steps[6].operands, 2)

local places = nacre.tensor {2, 1}
watch("steps", function()
  local t = a:t():select(1, 2)
  return t:to "float64", a[1], a[{1, 2}], a[places]
end)
is(names(), "t select to index index index")
assert(steps[1].view and steps[4].view and not steps[6].view)
is(steps[3].results[1]:match "%S+", "float64[2]")

-- What reads values, and so waits for a device; single elements set.
watch("steps", function()
  local x = nacre.ones(2, 2)
  x[{1, 2}] = 4
  local list = x:tolist()
  assert(list[1][2] == 4 and x(1, 2) == 4 and x[1][2] == 4)
  return x:sum():item()
end)
is(names(), "ones setindex totable index index index sum item")
is(steps[#steps].operands[1], "float32[] " .. nacre.get_default_device())
assert(#steps[#steps].results == 0 and not steps[4].view)
assert(not watch("steps", function() return a:item() end))
is(names(), "")

watch("steps", function()
  local list = {}
  for i = 1, 9 do list[i] = a end
  return nacre.stack(list)
end)
assert(steps[1].more and #steps[1].operands == 4)

-- Backward too.
local w = nacre.ones(3, {requires_grad = true})
assert(watch("steps", function() w:exp():sum():backward() end))
is(names(), "exp sum sum' exp'")

-- One that fails is not reported; the next ones are.
local ok, err = watch("steps", function()
  pcall(a.mm, a, a)
  a:exp()
  return a:mm(a)
end)
is(ok, false)
is(names(), "exp")
is(err.args[1].tensor, a)

-- In a coroutine; a listener that fails; nobody watches the listener.
watch("steps", coroutine.wrap(function() a:exp() coroutine.yield() end))
is(names(), "exp")
nacre._watch("steps", function(list)
  a:log()
  if list[1].op == "sqrt" then error "enough" end
end)
a:exp()
is(select(2, pcall(a.sqrt, a)):match "%w+$", "enough")
nacre._watch ""
a:exp()

-- nan: finite in, not finite out.
local half = nacre.full({100}, 60000, {dtype = "float16"})
assert(watch("nan trap", half.neg, half))     -- whose sum is not finite
ok, err = watch("nan trap", half.mul, half, 2)
is(ok, false)
is(err.message, "made 100 inf from finite input")
is(err.first, "[1]: mul(60000, 2) = inf")
is(err.args[1].values, "min 6e+04  max 6e+04")
ok, err = watch("nan", half.mul, half, 2)
is(ok, true)
is(#warnings, 1)
is(warnings[1].op, "mul")
assert(nacre.is_tensor(err) and err[1] == nacre.inf)

-- The operands of one in place are those before it.
local x = nacre.tensor {1, 2, -3.5}
ok, err = watch("nan trap", x.log_, x)
is(err.first, "[3]: log(-3.5) = nan")
x = nacre.tensor {{1, 2}, {0, 1.5}}
ok, err = watch("nan trap", function() return 1 / x end)
is(err.first:match "^%S+", "[2,1]:")
ok, err = watch("nan trap", nacre.tensor({1, 0}).log,
                nacre.tensor {1, 0})        -- integers are finite
is(err.message, "made 1 -inf from finite input")

-- Broadcast operands, and what was nan before.
ok, err = watch("nan trap", function()
  return x / nacre.tensor {1, 0}
end)
is(err.first, "[1,2]: true_divide(2, 0) = inf")
local bad = nacre.tensor {nacre.nan, 1}
assert(watch("nan trap", function() return (bad * 2 + bad):sum() end))

-- Gradients are recorded as without it.
w = nacre.tensor({4, 9.0}, {requires_grad = true})
assert(watch("nan trap", function()
  local y = w * 1
  y:sqrt_()
  y:sum():backward()
end))
assert((w.grad - nacre.tensor {0.25, 1 / 6}):abs():max():item() < 1e-6)

-- An operation whose result is finite makes nothing else on its way there.
local function finite(v)
  if type(v) == "table" then
    for _, x in ipairs(v) do
      if not finite(x) then return false end
    end
  end
  return not nacre.is_tensor(v) or nacre.isfinite(v):all():item()
end

local tried = 0
for _, name in ipairs(nacre._names()) do
  local f = nacre._methods[name]
  for _, t in ipairs {nacre.tensor {{0.5, 0.25}, {0.75, 1}},
                      nacre.zeros(2, 2),
                      nacre.tensor {{-2.0, 3}, {40, -100}}} do
    local results = table.pack(watch("nan", f or error, t))
    local all = results[1] and not name:find "empty"   -- may hold anything
    for i = 2, results.n do all = all and finite(results[i]) end
    if all then
      tried = tried + 1
      is(warnings[1], nil)
    end
  end
end
assert(tried > 300, tried)

-- When memory runs out, the error says so and watching goes on.
local function work()
  local c = a:mm(b):exp() + 1
  c:add_(1)
  c = nacre.cat({c, c}, 1)
  c[{1, 1}] = 4
  return c[nacre.tensor {1, 2}]:sum(1)
end
for _, what in ipairs {"steps", "nan", "steps nan trap", "dry",
                       "steps dry"} do
  local done = false
  for n = 1, 400 do
    nacre._fail_alloc(n)
    local ok, err = watch(what, work)
    nacre._fail_alloc(0)
    assert(ok or tostring(err):find "memory" or tostring(err):find "needs",
           tostring(err))
    done = ok
    if done then break end
  end
  assert(done, what)
end
a:exp()
