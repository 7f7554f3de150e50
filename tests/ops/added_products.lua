-- SPDX-License-Identifier: MIT
-- Products that are added to a tensor: beta*self + alpha*(a b) by its
-- definition, in every dtype and in place; what has the factor 0 is not read,
-- in results and in gradients; halves are rounded once.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local C = dofile(here .. "../lib/common.lua")
local fails = C.fails
local nan, inf = 0 / 0, math.huge
nacre.manual_seed(7)

-- The shapes of the two operands, and of the product; the product alone.
local ops = {
  addmm = {{3, 5}, {5, 4}, {3, 4}, function(a, b) return a:mm(b) end},
  addmv = {{3, 5}, {5}, {3}, function(a, b) return a:mv(b) end},
  baddbmm = {{2, 3, 5}, {2, 5, 4}, {2, 3, 4},
             function(a, b) return a:bmm(b) end},
  addbmm = {{2, 3, 5}, {2, 5, 4}, {3, 4},
            function(a, b) return a:bmm(b):sum(1) end},
  addr = {{3}, {4}, {3, 4}, function(a, b) return a:outer(b) end},
}

-- The shapes that broadcast to `size'.
local function addends(size)
  local last, ones = {size[#size]}, {}
  for i = 1, #size do ones[i] = 1 end
  return {size, last, ones, {1}, {}}
end

local function draw(size, dtype)
  local x = nacre.randint(-3, 4, #size > 0 and size or {1})
  return (#size > 0 and x or x:reshape({})):to(dtype)
end

for name, op in pairs(ops) do
  for _, dtype in ipairs {"float64", "float32", "float16", "bfloat16", "int64",
                          "int32", "int8", "uint8"} do
    local a, b = draw(op[1], dtype), draw(op[2], dtype)
    local product = op[4](a, b)
    for _, size in ipairs(addends(op[3])) do
      local x = draw(size, dtype)
      for _, beta in ipairs {0, 1, 2} do
        for _, alpha in ipairs {0, 1, -3} do
          local o = {beta = beta, alpha = alpha}
          local y = x[name](x, a, b, o)
          local what = ("%s of %s[%s], %d, %d"):format(name, dtype,
            table.concat(size, "x"), beta, alpha)
          assert(y.dtype == dtype and
                 y:equal((x * beta + product * alpha):to(dtype)), what)
          if #size == #op[3] and size[1] == op[3][1] then
            local into = x:clone()
            into[name .. "_"](into, a, b, o)
            assert(into:equal(y), what .. " in place")
          end
        end
      end
    end
  end
end

-- ---- what has the factor 0 is not read

local function same_gradient(x, want, what)
  assert(x.grad and x.grad:equal(nacre.full(x:size(), want)), what)
end

for _, bad in ipairs {nan, inf, -inf} do
  for name, op in pairs(ops) do
    local function full(size, v)
      return nacre.full(size, v):requires_grad_()
    end
    local x, a, b = full(op[3], 2.0), full(op[1], bad), full(op[2], bad)
    local y = x[name](x, a, b, {alpha = 0, beta = 3})
    assert(y:equal(nacre.full(op[3], 6.0)), name .. " reads a product")
    y:sum():backward()
    same_gradient(x, 3.0, name)
    same_gradient(a, 0.0, name)
    same_gradient(b, 0.0, name)
    x, a, b = full(op[3], bad), full(op[1], 1.0), full(op[2], 1.0)
    y = x[name](x, a, b, {beta = 0})
    assert(y:isfinite():all():item(), name .. " reads self")
    y:sum():backward()
    same_gradient(x, 0.0, name)
    assert(a.grad:gt(0):all():item())
    x, a, b = full(op[3], bad), full(op[1], bad), full(op[2], bad)
    y = x[name](x, a, b, {beta = 0, alpha = 0})
    assert(y:equal(nacre.zeros(op[3])), name .. " reads something")
    -- gradients that are not finite do not come through a factor 0
    y:backward(nacre.full(op[3], bad))
    same_gradient(x, 0.0, name)
    same_gradient(a, 0.0, name)
  end
end

-- A matrix that is not finite stays in its own place of the batch.
do
  local a = nacre.randn(9, 3, 3)
  local want = nacre.zeros(3, 3):baddbmm(a, a)
  local spoilt = a:clone()
  spoilt[4] = nan
  local y = nacre.zeros(3, 3):baddbmm(spoilt, spoilt)
  for i = 1, 9 do
    assert(i == 4 and y[i]:isnan():all():item() or y[i]:equal(want[i]))
  end
end

-- ---- halves: the sum, alpha and beta in float32, rounded once

for _, dtype in ipairs {"float16", "bfloat16"} do
  for name, op in pairs(ops) do
    local function draw(size) return nacre.randn(size):to(dtype) end
    local x, a, b = draw(op[3]), draw(op[1]), draw(op[2])
    local o = {beta = 0.3, alpha = 1.7}
    local want = x:float()[name](x:float(), a:float(), b:float(), o)
    assert(x[name](x, a, b, o):equal(want:to(dtype)), name .. " of " .. dtype)
  end
end
for name, op in pairs(ops) do          -- 60000 + 60000 is not in between
  local a, b = nacre.full(op[1], 250.0), nacre.full(op[2], 240.0)
  local x = nacre.full(op[3], -60000.0)
  local want = x[name](x, a, b)
  local half = x:half()[name](x:half(), a:half(), b:half())
  assert(half:equal(want:half()), name)
end

-- ---- what fails

local one = nacre.ones(2, 2, 2)
local function refuses(text, ...)
  local e = fails(text, ...)
  assert(not tostring(e):find "{", e)
end
refuses("batch sizes differ", nacre.baddbmm, one, one, nacre.ones(3, 2, 2))
refuses("[3x2x2] does not broadcast to the product [2x2x2]", nacre.baddbmm,
        nacre.ones(3, 2, 2), one, one)
refuses("[2x2x2] does not broadcast to the product [2x2]", nacre.addbmm, one,
        one, one)
refuses("inner sizes differ", nacre.addmv, nacre.ones(2), nacre.ones(2, 2),
        nacre.ones(3))
refuses("has 2 dimensions, not 1", nacre.addmv, nacre.ones(2), nacre.ones(2, 2),
        nacre.ones(2, 2))
refuses("has 2 dimensions, not 1", nacre.addr, one[1], one[1], one[1][1])
refuses("alpha is 0.5, but int64 tensors need an integer", nacre.addmv,
        nacre.tensor {1, 2}, nacre.ones(2, 2):long(), nacre.tensor {1, 2},
        {alpha = 0.5})

-- Without elements to multiply the sign of a zero stays, and beta counts.
local zero = nacre.full({2, 2}, -0.0)
for _, y in ipairs {zero:addmm(nacre.ones(2, 0), nacre.ones(0, 2)),
                    zero:addbmm(nacre.ones(0, 2, 3), nacre.ones(0, 3, 2)),
                    zero[1]:addmv(nacre.ones(2, 0), nacre.ones(0)),
                    zero:addmm(nacre.ones(2, 3), nacre.ones(3, 2),
                               {alpha = 0})} do
  assert((1 / y):eq(-inf):all():item())
end
assert(nacre.ones(2):addmm(nacre.ones(2, 0), nacre.ones(0, 2), {beta = 3})
         :eq(3):all():item())
