-- SPDX-License-Identifier: MIT
-- nacre.vmap of every call in grad_operator_calls.lua and
-- grad_public_calls.lua, of the rows of ops.def and of operators without a
-- gradient: each is compared with a loop over the samples, with all inputs
-- mapped and with each alone, and so are its gradients for each sample.
-- Run by: nacre tests/autograd/transforms_vmap.lua [operation]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local G = dofile(here .. "../lib/gradient_calls.lua")
local chosen = arg and arg[1]
local N = 3                   -- samples
local calls, refused = 0, 0

-- What vmap refuses: a shape that follows from values, a write of what differs
-- into what is the same.
local REFUSALS = {
  "would have a result of a shape of its own", "a mask of vmap selects",
  "into a tensor that is the same for all", "is one sample of vmap",
  "duals do not work inside of vmap"}
local UNSET = {new_empty = true, empty_like = true}

local function is_refusal(e)
  for _, text in ipairs(REFUSALS) do
    if tostring(e):find(text, 1, true) then return true end
  end
  return false
end

-- Three inputs like x: near it, so that they are in the same domain.
local function samples_of(x)
  x = x:detach()
  local list = {}
  for i = 1, N do
    list[i] = x:is_floating_point() and x * (1 + 0.01 * (i - 1)) or x
  end
  return nacre.stack(list)
end

local function compare(what, got, want)
  G.check(#got == #want, "%s: %d results, not %d", what, #got, #want)
  for i = 1, math.min(#got, #want) do
    local ok, e = pcall(C.same, got[i]:detach(), want[i]:detach(), what, 1e-9,
                        true)
    G.check(ok, "%s: %s", what, tostring(e))
  end
end

-- The results of f for sample i, one after the other, stacked.
local function loop(f, inputs, mapped)
  local parts, out = {}, {}
  for i = 1, N do
    local one = {}
    for k, x in ipairs(inputs) do one[k] = mapped[k] and x[i]:clone() or x end
    parts[i] = {f(table.unpack(one))}
  end
  for k in ipairs(parts[1]) do
    local list = {}
    for i = 1, N do list[i] = parts[i][k] end
    out[k] = nacre.stack(list)
  end
  return out
end

-- Compares vmap(f) with a loop. Returns whether it was not refused.
local function check(what, f, inputs, mapped)
  local dims = {}
  for k = 1, #inputs do dims[k] = mapped[k] and 1 or false end
  local ok, want = pcall(loop, f, inputs, mapped)
  if not ok then return false end -- sizes that follow from values
  local got = {pcall(nacre.vmap(f, dims, 1, "same"), table.unpack(inputs))}
  calls = calls + 1
  if not got[1] then
    refused = refused + 1
    G.check(is_refusal(got[2]), "%s: %s", what, tostring(got[2]))
    return false
  end
  compare(what, table.move(got, 2, #got, 1, {}), want)
  return true
end

-- The gradients of the sum of f, for each sample.
local function check_gradients(what, f, inputs, mapped)
  local at, dims = {}, {}
  for k, x in ipairs(inputs) do
    if x:is_floating_point() then at[#at + 1] = k end
    dims[k] = mapped[k] and 1 or false
  end
  local function total(...)
    local sum = nacre.zeros({}, {dtype = "float64"})
    for _, y in ipairs {f(...)} do
      if y:is_floating_point() then sum = sum + (y * y):sum() end
    end
    return sum
  end
  if #at == 0 then return end
  local g = nacre.func.grad(total, at)
  local function gradients(...) return table.unpack(g(...)) end
  local ok, want = pcall(loop, gradients, inputs, mapped)
  if not ok then return end
  local got = {pcall(nacre.vmap(gradients, dims, 1, "same"),
                     table.unpack(inputs))}
  G.check(got[1] or is_refusal(got[2]), "gradients of %s: %s", what,
          tostring(got[2]))
  if got[1] then
    compare("gradients of " .. what, {table.unpack(got, 2)}, want)
  end
end

local function check_call(text, f, inputs)
  local values, plain, none = {}, {}, {}
  for k, x in ipairs(inputs) do
    plain[k], values[k] = x:detach(), samples_of(x)
  end
  if #inputs == 0 then return none end
  local all = {}
  for k in ipairs(inputs) do all[k] = true end
  if check(text, f, values, all) then check_gradients(text, f, values, all) end
  for k in ipairs(#inputs > 1 and inputs or none) do
    local own, mapped = {table.unpack(plain)}, {[k] = true}
    own[k] = values[k]
    local what = ("%s, input %d mapped"):format(text, k)
    if check(what, f, own, mapped) then
      check_gradients(what, f, own, mapped)
    end
  end
end

local function walk(lines)
  for name, list in pairs(lines) do
    if not chosen or chosen == name then
      for _, l in ipairs(list) do
        local f, inputs = G.compile(l[1])
        if f and not UNSET[name] then check_call(l[1], f, inputs) end
      end
    end
  end
end

walk(G.lines(dofile(here .. "grad_operator_calls.lua")))
walk(G.lines(dofile(here .. "grad_public_calls.lua")))

-- ---- rows of ops.def, and operators without a gradient

local info = nacre._info
for _, name in ipairs(nacre._rows()) do
  local f = nacre[name]
  local about = not name:find "^_" and info(f)
  if about and (not chosen or chosen == name) then
    local n = 0
    for _, p in ipairs(about.params) do
      if p.type == "tensor" or p.type == "operand" then n = n + 1 end
    end
    local inputs = {}
    for k = 1, n do
      inputs[k] = nacre.rand({2, 3}, {dtype = "float64"}) * 0.8 + 0.1
    end
    local function call(...)
      local y = f(...)
      return y
    end
    if pcall(call, table.unpack(inputs)) then
      check_call(name, call, inputs)
    else
      for k = 1, n do inputs[k] = nacre.randint(1, 5, {2, 3}) end
      if pcall(call, table.unpack(inputs)) then
        check_call(name .. " of integers", call, inputs)
      end
    end
  end
end

walk(G.lines [==[
argmax(c(3, 4), 2)
argmin(c(3, 4))
argsort(c(3, 4), 1)
sort(c(3, 4), 1, true)
topk(c(3, 5), 2)
isclose(c(3), c(2, 3))
zeros_like(c(2, 3))
ones_like(c(2, 3))
full_like(c(2, 3), 7)
new_zeros(c(2, 3), 4)
new_full(c(2, 3), {2, 2}, 3)
rand_like(c(2, 3))
searchsorted(cumsum(p(5), 1), c(3))
nextafter(c(3), c(3))
histc(q(20), 4, 0, 1)
median(c(3, 5), 2)
median(c(3, 5))
mode(c(3, 5))
unfold(c(6), 1, 3, 2)
as_strided(c(6), {2, 2}, {1, 2})
tensor_split(c(7), 3)
roll(c(3, 4), 1)
roll(c(3, 4), 1, 2)
rot90(c(3, 4))
squeeze(c(1, 3, 1), 1)
squeeze(c(3, 2))
linalg.qr(c(3, 2))
linalg.eigvalsh(d(3))
any(c(2, 3):gt(0), 2)
all(c(2, 3):gt(0))
get: get(c(2, 3, 4), "2, :, 1:3")
get: get(c(2, 3), {})
clone(c(2, 3))
to(c(2, 3), "float32")
masked_select(c(2, 3), c(2, 3):gt(0))
nonzero(c(4))
]==])

assert(calls > 0, "no call of " .. tostring(chosen))
assert(chosen or refused * 10 < calls, "most calls are refused")
assert(G.failures == 0, G.failures .. " calls are wrong")
print(("transforms_vmap: %d calls, %d refused"):format(calls, refused))
