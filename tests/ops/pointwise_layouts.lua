-- SPDX-License-Identifier: MIT
-- Every pointwise operation gives the same for operands of every layout, on any
-- number of threads and with out=, as for dense operands, whose values
-- pointwise.lua tests. A new operation needs no line here.
-- Run by: nacre tests/ops/pointwise_layouts.lua [operation ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check

local big = 40000             -- enough for threads

local function vector(i, t) return O.vector(i, t, big) end

local function operands(op, t)
  local x = {}
  for i = 1, op.arity do x[i] = vector(i, t) end
  if op.kind == "choose" then x[1] = vector(1, "float32"):gt(0) end
  return x
end

-- The dtype in which most is tested.
local function main_dtype(op)
  return O.worktype(op.class, op.kind, "float32") and "float32" or "int32"
end

local function map(x, f)
  local y = {}
  for i, t in ipairs(x) do y[i] = f(t, i) end
  return y
end

-- The same, or nan in the same places?
local function exact(a, b)
  if a.dtype ~= b.dtype then return false end
  for d = 1, math.max(a.ndim, b.ndim) do
    if a.shape[d] ~= b.shape[d] then return false end
  end
  return nacre.equal(a, b) or
         (a:eq(b) | (a:isnan() & b:isnan())):all():item()
end

-- Vector and scalar code may differ by some ulp of what is added.
local close = {float16 = 1e-3, bfloat16 = 8e-3, float32 = 1e-6,
               float64 = 1e-14}
local function equal(a, b)
  if exact(a, b) then return true end
  local tolerance = close[a.dtype]
  return tolerance and a.dtype == b.dtype and
         nacre.allclose(a, b, tolerance, tolerance / 2, true)
end

local function layouts(op, t)
  local f, x = nacre[op.name], operands(op, t)
  local dense = f(table.unpack(x))
  local function is(y, part, what)
    check(equal(y, part), "%s of %s: %s differ from the dense ones", op.name,
          t, what)
  end
  for _, n in ipairs {1, 7, 8, 15, 16, 17, 31, 33, 63, 65, 1023, 1024,
                      1025} do
    local cut = map(x, function(t) return t:narrow(1, 3, n) end)
    is(f(table.unpack(cut)), dense:narrow(1, 3, n), n .. " elements")
  end
  for threads = 1, 3 do
    nacre.set_num_threads(threads)
    check(exact(f(table.unpack(x)), dense), "%s of %s on %d threads", op.name,
          t, threads)
  end
  nacre.set_num_threads(2)
  local function each(what, view)
    is(f(table.unpack(map(x, view))), view(dense), what)
  end
  each("strided elements", function(t) return t:slice(1, 2, -1, 3) end)
  each("transposed elements", function(t) return t:view(200, 200):t() end)
  each("permuted elements", function(t)
    return t:view(8, 50, 100):permute(3, 1, 2)
  end)
  each("elements of columns", function(t)
    return t:view(400, 100):narrow(2, 5, 9)
  end)
  each("expanded elements", function(t)
    return t:narrow(1, 1, 50):view(1, 50):expand(9, 50)
  end)
  each("0-d elements", function(t) return t:select(1, 77) end)
  each("no elements", function(t) return t:narrow(1, 5, 0) end)
  each("no rows", function(t) return t:narrow(1, 5, 0):view(2, 0, 3) end)
  if op.arity == 1 then return end
  for i = 1, op.arity do           -- operand i has one row only
    local wide = map(x, function(t, k)
      t = t:narrow(1, 1, 4 * 30):view(4, 30)
      return k == i and t:narrow(1, 1, 1) or t
    end)
    local full = map(wide, function(t) return t:expand(4, 30):contiguous() end)
    is(f(table.unpack(wide)), f(table.unpack(full)), "broadcast elements")
    wide[i] = wide[i]:view(30)
    is(f(table.unpack(wide)), f(table.unpack(full)), "lower dimensions")
  end
  fails("ESHAPE: " .. op.name .. ": shapes do not broadcast", f,
        table.unpack(map(x, function(t, i)
          return t:narrow(1, 1, i == op.arity and 4 or 3)
        end)))
end

-- ---- where results go

local function destinations(op)
  local f, x = nacre[op.name], operands(op, main_dtype(op))
  local n = 1000
  x = map(x, function(t) return t:narrow(1, 1, n):clone() end)
  local want = f(table.unpack(x))
  local function is(y, what)
    check(equal(y, want), "%s: %s differs", op.name, what)
  end
  local into = {out = want:zeros_like()}
  local args = map(x, function(t) return t end)
  args[#args + 1] = into
  check(f(table.unpack(args)) == into.out, "%s: out is not given back",
        op.name)
  is(into.out, "the result in out")
  local function into_out(out, what)
    args[#args] = {out = out}
    is(f(table.unpack(args)), what)
  end
  into_out(nacre.zeros(n, 3, {dtype = want.dtype}):select(2, 2),
           "out with gaps")
  for i = op.kind == "choose" and 2 or 1, op.arity do
    if x[i].dtype == want.dtype then
      local mem = nacre.zeros(n + 1, {dtype = want.dtype})
      local low, high = mem:narrow(1, 1, n), mem:narrow(1, 2, n)
      local keep = args[i]
      args[i] = keep:clone()
      into_out(args[i], "out that is operand " .. i)
      low:copy_(keep)
      args[i] = low
      into_out(high, "out that overlaps operand " .. i .. " above")
      high:copy_(keep)
      args[i] = high
      into_out(low, "out that overlaps operand " .. i .. " below")
      args[i] = keep
    end
  end
  fails("ESHAPE: ", function()
    args[#args] = {out = want:narrow(1, 1, 5)}
    f(table.unpack(args))
  end)
  fails("", function()
    args[#args] = {out = want:narrow(1, 1, 1):expand(n)}
    f(table.unpack(args))
  end)
  local inplace = op.kind ~= "choose" and
                  nacre._methods[op.name .. "_"]
  if not inplace then return end
  local self = x[1]:clone()
  local rest = {table.unpack(x, 2)}
  check(inplace(self, table.unpack(rest)) == self, "%s_ gives self", op.name)
  check(equal(self, want:to(self.dtype)), "%s_ differs", op.name)
  local whole = x[1]:to("int32")
  if op.class == "FLOAT" and want.dtype == "float32" then
    fails("EDTYPE: ", inplace, whole, table.unpack(rest))
  end
end

-- Numbers where tensors may stand.
local function numbers(op)
  if op.arity == 1 then return end
  local f = nacre[op.name]
  for _, case in ipairs {{"float32", 1.5}, {"int32", 3}, {"int32", 2.5},
                         {"float16", 2.5}, {"bool", 2}, {"uint8", true},
                         {"int8", 5}, {"bfloat16", 2}} do
    for i = op.kind == "choose" and 2 or 1, op.arity do
      local args, full, kinds = {}, {}, {}
      local bools = false
      for k = 1, op.arity do
        args[k] = op.kind == "choose" and k == 1 and
                  nacre.tensor {true, false}
                  or nacre.tensor({3, 7}, {dtype = case[1]})
        full[k] = args[k]
        kinds[k] = {dtype = args[k].dtype, dim = 1}
        if k == i then
          kinds[k] = {dtype = O.numbertype(case[2])}
          args[k] = case[2]
        end
        bools = bools or kinds[k].dtype == "bool"
      end
      if op.kind == "choose" then table.remove(kinds, 1) end
      local t = O.resulttype(kinds)
      local work = O.worktype(op.class, op.kind, t, bools)
      local what = ("%s of %s and %s"):format(op.name, case[1], case[2])
      if work == nil then
        fails("EDTYPE: ", f, table.unpack(args))
      else
        local y = f(table.unpack(args))
        local out = O.outtype(op.class, op.kind, t, work)
        check(y.dtype == out, "%s gives %s, not %s", what, y.dtype, out)
        full = map(full, function(x, k)
          if op.kind == "choose" and k == 1 then return x end
          return k == i and nacre.full(2, case[2], {dtype = t}) or x:to(t)
        end)
        check(equal(y, f(table.unpack(full))), "%s is not that of a tensor",
              what)
      end
    end
  end
end

for _, op in ipairs(O.operations()) do
  if op.kind ~= "reduce" and (not arg or not arg[1] or arg[1] == op.name) then
    layouts(op, main_dtype(op))
    for _, t in ipairs {"uint8", "int64", "float16", "float64"} do
      if O.worktype(op.class, op.kind, t) then layouts(op, t) end
    end
    destinations(op)
    numbers(op)
  end
end
-- A result too large for the cache goes past it, in bursts; here the last is
-- short.
do
  local n = (9 << 20) + 37
  local a = nacre.randint(-1000, 1000, {n}, {dtype = "int32"})
  local b = nacre.randint(-1000, 1000, {n}, {dtype = "int32"})
  local y = a + b
  check(nacre.equal(y - b, a), "a large sum")
  check(y[n] == a[n] + b[n] and y[1] == a[1] + b[1], "its ends")
  check(nacre.equal(-a, 0 - a), "a large result of one operand")
  y = nacre.where(a:gt(b), a, b)
  check(nacre.equal(y, b + (a - b):clamp(0)), "of three")
end

-- A large transposed operand is copied slab by slab; here the last is short.
do
  local function draw(n, m, dtype)
    return nacre.randint(-100, 100, {n, m}, {dtype = dtype})
  end
  for _, dtype in ipairs {"float32", "float16", "float64", "int8", "int32"} do
    local a, b = draw(1203, 1009, dtype), draw(1009, 1203, dtype)
    local at, row = a:t():contiguous(), a[{1}]:unsqueeze(-1)
    check(nacre.equal(a:t() - b, at - b), "%s, transposed", dtype)
    check(nacre.equal(b - a:t(), b - at), "%s, the second", dtype)
    check(nacre.equal(a:t():lt(b), at:lt(b)), "%s, compared", dtype)
    check(nacre.equal(nacre.where(a:t():gt(0), a:t(), row),
                      nacre.where(at:gt(0), at, row)), "%s, of three", dtype)
    check(nacre.equal(b:clone():sub_(a:t()), b - at), "%s, in place", dtype)
    local c = b:to("float64"):clone():sub_(a:t())
    check(nacre.equal(c, b:to("float64") - at:to("float64")),
          "%s, converted", dtype)
  end
  local x = draw(9, 270 * 40, "float32"):view(9, 270, 40)
  local y = draw(40, 270 * 9, "float32"):view(40, 270, 9):transpose(2, 3)
  check(nacre.equal(x:permute(3, 1, 2) + y,
                    x:permute(3, 1, 2):contiguous() + y:contiguous()),
        "both of three dimensions")
  local leaf = nacre.ones(300, 400):requires_grad_()
  local g = draw(400, 300, "float32");
  (leaf:t() * g):backward(g)
  check(nacre.equal(leaf.grad, (g * g):t()), "its gradient")
end

-- A task that begins and ends within rows of one channel, with whole rows of
-- the others in between: the buffer has the number of the last of these.
do
  local x, b = nacre.randn(16, 96, 286), nacre.randn(96, 1)
  check(nacre.equal(x + b, x + b:expand_as(x):contiguous()),
        "a number for each row of 286")
end

-- One element among the operands is converted once for many blocks; results of
-- another dtype and strided ones have buffers of their own.
do
  local x = nacre.randn(3, 40000)
  for _, dtype in ipairs {"float32", "float16", "int32", "bool"} do
    local one = nacre.tensor(3):to(dtype)
    for _, a in ipairs {x, x:t(), x:half(), x[{{}, "1::2"}]} do
      local all = one:to(a.dtype):expand_as(a):contiguous()
      check(nacre.equal(a * one, a * all), "times one %s", dtype)
      check(nacre.equal(a:gt(one), a:gt(all)), "more than one %s", dtype)
    end
  end
  check(x:clone():copy_(nacre.tensor(3)):eq(3):all():item(), "copies of one")
end

O.done "pointwise_layouts"
