-- SPDX-License-Identifier: MIT
-- On a device the gradient of a row takes one launch for an operand, whatever
-- its text, its types and its steps, and has the values that the CPU gives. A
-- new row needs no line here.
-- Run by: nacre tests/cuda/cuda_grad_launches.lua, with a device or
-- NACRE_CUDA=emulated

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local check, grad = O.check, nacre.autograd
if not nacre.cuda.is_available() then skip(nacre.cuda.why()) end
local machine = require "nacre.machine"

local function uses() return (select(6, machine.counters())) end

local inside, tolerance = {0.2, 0.85}, {float64 = 1e-12, float32 = 2e-6,
                                          float16 = 2e-3, bfloat16 = 2e-2}
local domain = {acosh = {1.2, 2.5}, zeta = {2.2, 3}}

nacre.manual_seed(4)

-- An operand on the host; `bool' for a condition.
local function sample(row, i, shape, dtype)
  local d = domain[row.name] or inside
  local t = nacre.rand(shape, {dtype = "float64"}) * (d[2] - d[1]) + d[1]
  if row.kind == "choose" and i == 1 then return t:gt(0.5) end
  return t:to(dtype)
end

-- Gradients of the operands `of' of f(list), given g; and the uses of a device
-- that each took.
local function gradients(f, list, of, g)
  local result, taken = {}, {}
  for n, i in ipairs(of) do
    local x = {}
    for k, t in ipairs(list) do x[k] = t end
    x[i] = list[i]:detach():requires_grad_()
    local y = f(table.unpack(x))
    if y.requires_grad then
      local before = uses()
      local ok, d = pcall(grad.grad, y, x[i], {grad_outputs = g:to(y.device)})
      taken[n] = uses() - before
      result[n] = ok and d or nil
    end
  end
  return result, taken
end

local function compare(row, what, f, list, of)
  local y = f(table.unpack(list))
  local g = nacre.linspace(0.5, 1.5, y:numel(), {dtype = "float64"})
              :reshape(y:size()):to(y.dtype)
  local there = {}
  for i, t in ipairs(list) do there[i] = t:to("cuda:0") end
  for i, t in ipairs(list) do     -- with the host's steps
    if t.ndim == 2 and not t:is_contiguous() then
      there[i] = t:t():contiguous():to("cuda:0"):t()
    end
  end
  local want = gradients(f, list, of, g)
  local got, taken = gradients(f, there, of, g:to("cuda:0"))
  for n, i in ipairs(of) do
    if want[n] then
      local w, have = want[n]:to("float64"), got[n]:cpu():to("float64")
      local tol = tolerance[want[n].dtype]
      check(nacre.allclose(have, w, tol, tol, true), "%s, %s, operand %d: %s, not %s",
            row.name, what, i, tostring(got[n]), tostring(want[n]))
      check(got[n].dtype == want[n].dtype, "%s, %s: of type %s", row.name, what,
            got[n].dtype)
      -- sums of halves are kept in float32: conversions are operations, too
      local most = row.kind == "reduce" and tol > 1e-3 and 3 or 1
      check(taken[n] <= most, "%s, %s, operand %d: %d launches for %s",
            row.name, what, i, taken[n], row.grad[i])
    end
  end
end

local function several(row)
  for i = 1, row.arity do
    if (row.grad[i] or ""):find "^BY" then return true end
  end
end

for _, row in ipairs(O.operations()) do
  local of = {}
  for i = 1, row.arity do
    if row.grad[i] and row.grad[i] ~= "NONE" then of[#of + 1] = i end
  end
  if #of > 0 and not row.class:find "^IN" and not several(row) then
    local f = nacre[row.name]
    local function args(dtype, shape, turned)
      local list = {}
      for i = 1, row.arity do
        list[i] = sample(row, i, shape, dtype)
        if turned then list[i] = list[i]:t() end
      end
      return list
    end
    for dtype in pairs(tolerance) do
      compare(row, dtype, f, args(dtype, {3, 5}), of)
      compare(row, dtype .. ", turned", f, args(dtype, {3, 5}, true), of)
    end
    if row.kind ~= "reduce" and row.arity > 1 then
      local list = args("float32", {3, 5}, true)      -- steps that differ
      list[row.arity] = list[row.arity]:contiguous()
      compare(row, "mixed steps", f, list, of)
    end
  end
end
O.done "grad_launches"
