-- SPDX-License-Identifier: MIT
-- The gradients of what works along short rows are in float32 those of float64,
-- for operands that lie in several ways. A new operation needs no line here.
-- Run by: nacre tests/ops/sweep_row_gradients.lua [part=N] [seed=N]
--         [only=PATTERN]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local sweep = dofile(here .. "../lib/sweep.lua") {part = 3}
local calls = dofile(here .. "../lib/row_calls.lua")

-- Weights that tell elements apart.
local function weights(y)
  local w = nacre.arange(y:numel(), {dtype = "float64"})
  return (w % 7 + 1):reshape(y:size()):to(y.dtype)
end

-- Of a sum of all results; nil if none has one.
local function gradient(f, x)
  local leaf, sum = x:requires_grad_(), nil
  for _, y in ipairs(f(leaf)) do
    if y.requires_grad then
      local part = (y * weights(y)):sum()
      sum = sum and sum + part or part
    end
  end
  return sum and nacre.autograd.grad(sum, leaf)
end

local function outcome(...)
  local ok, v = pcall(...)
  if not ok then -- whose text may name the dtype
    return nil, (sweep.same.message(v):gsub("float64", "float32"))
  end
  return v
end

local function try(call, x, layout, what)
  local f = call.draw()
  local want, why = outcome(gradient, f, x:double())
  local got, other = outcome(gradient, f, sweep.layouts[layout](x))
  if not (want and got) then
    if why or other then
      sweep.check(sweep.differs(why, other), "%s of %s", call.name, what)
    end
    return
  end
  sweep.check(sweep.off(want, got, 2e-5), "%s of %s, %s", call.name, what,
              layout)
end

local columns = {}
for n = 1, 31 do columns[n] = n end
for call, rows, n, layout in
    sweep.cases(calls, {1, 15, 16, 17, 40}, columns,
                {"dense", "stepped", "transposed"}) do
  if sweep.wanted(call.name) then
    -- what is next to 0, or to its neighbours, cancels
    local x = (nacre.randn(rows, n) * 16):round() / 16
    try(call, nacre.where(x:lt(0), x - 0.125, x + 0.125), layout,
        ("%dx%d"):format(rows, n))
  end
end
sweep.finish(10000)
