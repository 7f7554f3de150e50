-- SPDX-License-Identifier: MIT
-- Every reduction of core/ops.def is compared with its own text, evaluated over
-- plain numbers, in every dtype, over all, one and several dimensions; its
-- gradients are for grad_pointwise.lua. A new operation needs no line here.
-- Run by: nacre tests/ops/reductions.lua [operation ...]

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local O = dofile(here .. "../lib/oracle.lua")
local fails = dofile(here .. "../lib/common.lua").fails
local check = O.check
local inf, nan = math.huge, 0 / 0

-- ---- the oracle

local function prepare(op)
  op.f = {}
  for _, t in ipairs {"float64", "int64"} do
    if t == "float64" or not op.class:find("^FL") then
      local words, f = O.words(t), {}
      for _, part in ipairs {"init", "map", "fold", "value"} do
        f[part] = O.compile(op[part], words, "x, a, b, s, n, p")
      end
      op.f[t] = f
    end
  end
  op.parameter = O.parameters(op)
  op.p = op.parameter[1] and op.parameter[1].default or 1
  op.identity = op.init == "0" or op.init == "1"
end

local function number(v)
  if v == true then return 1 elseif v == false then return 0 end
  return v
end

-- The fold of a list of numbers; also how large what was folded is.
local function fold(f, list, p)
  local s, size = f.init(0, 0, 0, 0, 0, p), 0.0
  for _, x in ipairs(list) do
    local m = f.map(x, x, x, 0, 0, p)
    s = f.fold(0, s, m, 0, 0, p)
    size = size + math.abs(m)
  end
  return f.value(0, 0, 0, s, #list, p), size
end

-- The elements of x that fold to each result, results in order.
local function groups(x, dims)
  local size, nd, folds = x:size(), x.ndim, {}
  for d = 1, nd do folds[d] = dims == nil end
  for _, d in ipairs(dims or {}) do folds[d < 0 and d + nd + 1 or d] = true end
  local flat = x:contiguous():view(-1):totable()
  local list, kept, keepdim = {}, {}, {}
  local count = 1
  for d = 1, nd do
    keepdim[d] = folds[d] and 1 or size[d]
    if not folds[d] then
      kept[#kept + 1] = size[d]
      count = count * size[d]
    end
  end
  for i = 1, count do list[i] = {} end
  for at, v in ipairs(flat) do
    local rest, i, weight = at - 1, 0, 1
    for d = nd, 1, -1 do
      local k = rest % size[d]
      rest = rest // size[d]
      if not folds[d] then i, weight = i + k * weight, weight * size[d] end
    end
    local group = list[i + 1]
    group[#group + 1] = number(v)
  end
  return list, kept, keepdim
end

local function shape(t) return table.concat(t:size(), "x") end

-- Compares a reduction of x (as type `as') over dims with its text.
local function compare(op, x, dims, options)
  local as = options and options.dtype or x.dtype
  local out = O.outtype(op.class, op.kind, x.dtype, options and options.dtype
                        or O.worktype(op.class, op.kind, as))
  local what = ("%s of %s[%s] over %s%s"):format(op.name, x.dtype, shape(x),
      dims and table.concat(dims, ",") or "all",
      options and options.dtype and " as " .. as or "")
  local args = {dim = dims}
  for k, v in pairs(options or {}) do args[k] = v end
  local y = x[op.name](x, args)
  local list, kept, keepdim = groups(x:to(as), dims)
  check(y.dtype == out, "%s gives %s, not %s", what, y.dtype, out)
  local want = args.keepdim and keepdim or kept
  check(shape(y) == table.concat(want, "x"), "%s: the shape is %s, not %s",
        what, shape(y), table.concat(want, "x"))
  if y:numel() ~= #list then return end
  local got = y:view(-1):totable()
  local f = op.f[O.isfloat(as) and "float64" or "int64"]
  for i, elements in ipairs(list) do
    local v, size = fold(f, elements, op.p)
    local g, ok = got[i], nil
    if out == "bool" then ok = g == (v ~= 0)
    elseif not O.isfloat(out) then ok = g == O.wrap(v, out)
    else
      v = O.round(v * 1.0, out)
      local slack = 2 * O.ulp(v == v and v or 1, out)
      if out == "float64" then slack = slack * 16 + 1e-15 * #elements * size end
      if out == "float32" then slack = slack + 1e-13 * size end
      if O.device ~= "cpu" then slack = slack * 8 end  -- folds in float32
      ok = g == v or (g ~= g and v ~= v) or math.abs(g - v) <= slack
    end
    check(ok, "%s: result %d is %s, not %s", what, i, g, v)
  end
end

-- ---- data

local function data(t, n, seed)
  local list = {}
  for k = 1, n do
    local v = ((k * 7919 + seed * 31337) % 1009) / 1009
    if O.isfloat(t) then list[k] = 0.6 + 0.8 * v
    elseif t == "bool" then list[k] = v > 0.3
    else list[k] = math.floor(v * 90) - (t == "uint8" and 0 or 40) end
  end
  return list
end

local function filled(t, size, seed)
  local n = 1
  for _, s in ipairs(size) do n = n * s end
  if n == 0 then return nacre.zeros(size, {dtype = t}) end
  return nacre.tensor(data(t, n, seed or 1), {dtype = t}):view(size)
end

local alldims = {{1}, {2}, {3}, {-1}, {1, 2}, {1, 3}, {2, 3},
                 {-3, -1}, {1, 2, 3}}

local function everytype(op)
  for _, t in ipairs(O.dtypes) do
    if O.worktype(op.class, op.kind, t) == nil then
      fails("EDTYPE: " .. op.name, nacre[op.name], filled(t, {3}))
    else
      for _, n in ipairs {1, 7, 16, 33, 65, 1025} do
        compare(op, filled(t, {n}))
      end
      compare(op, filled(t, {}))
      compare(op, filled(t, {}), {-1}, {keepdim = true})
      local x = filled(t, {3, 4, 5})
      compare(op, x)
      for _, dims in ipairs(alldims) do
        compare(op, x, dims)
        compare(op, x, dims, {keepdim = true})
      end
    end
  end
end

local function layouts(op, t)
  local x = filled(t, {6, 7, 10})
  for _, dims in ipairs {{1}, {2}, {3}, {1, 3}, {1, 2, 3}} do
    compare(op, x:permute(3, 1, 2), dims)
    compare(op, x:transpose(1, 2), dims, {keepdim = true})
    compare(op, x:slice(3, 2, -1, 3), dims)
    compare(op, x:slice(1, 1, -1, 2), dims)
    compare(op, x:narrow(2, 3, 1):expand(6, 4, 10), dims)
    compare(op, x:narrow(1, 2, 1), dims)
  end
  compare(op, filled(t, {2, 40, 300}), {3})
  compare(op, filled(t, {300, 40}), {1})
  compare(op, filled(t, {20000}))
  compare(op, filled(t, {2, 2, 2, 2, 2, 2, 2, 2}), {1, 3, 5, 8})
end

local function empty(op)
  local t = op.class:find("^FL") and "float32" or "int32"
  for _, size in ipairs {{0}, {3, 0}, {2, 0, 4}} do
    local x = filled(t, size)
    if op.identity then
      compare(op, x)
      compare(op, x, {#size})
      compare(op, x, {1}, {keepdim = true})
    else
      fails("EVALUE: no elements", nacre[op.name], x)
    end
  end
  compare(op, filled(t, {2, 0, 4}), {1})     -- an empty result
  compare(op, filled(t, {2, 0, 4}), {3}, {keepdim = true})
end

local function odd(op)
  for _, t in ipairs(O.floats) do
    for _, list in ipairs {{1, nan, 3}, {nan, -inf, inf}, {inf, 1, 2},
                           {-inf, 1, 0.5}, {inf, -inf, 0}, {-0.0, 0.0},
                           {0, -0.0, 3, -2}} do
      compare(op, nacre.tensor(list, {dtype = t}))
      local many = filled(t, {1000})
      for k, v in ipairs(list) do many:narrow(1, 200 * k, 1):fill_(v) end
      compare(op, many)
    end
  end
  if op.class:find("^FL") then return end
  local huge = nacre.tensor {math.maxinteger, math.maxinteger, 3, -7}
  compare(op, huge)
  compare(op, huge:view(2, 2), {1})
end

local function types(op)
  if op.class == "BOOL_AS_INT" then
    compare(op, filled("int32", {40}), nil, {dtype = "float32"})
    compare(op, filled("uint8", {4, 10}), {1}, {dtype = "int32"})
    compare(op, filled("float16", {40}), nil, {dtype = "float64"})
    compare(op, filled("float32", {9}), nil, {dtype = "int64"})
    compare(op, filled("bool", {9}), nil, {dtype = "float16"})
  elseif op.class == "FLOAT_ONLY" then
    compare(op, filled("int32", {40}), nil, {dtype = "float32"})
    compare(op, filled("float16", {4, 10}), {1}, {dtype = "float64"})
    fails("EDTYPE: " .. op.name, nacre[op.name], filled("float32", {3}),
          {dtype = "int64"})
  end
end

local function parameters(op)
  local p = op.parameter[1]
  if p == nil then return end
  for _, v in ipairs {1, 3, 0.5, -1} do
    op.p = v
    compare(op, filled("float32", {70}), nil, {[p.name] = v})
    compare(op, filled("float64", {7, 10}), {1}, {[p.name] = v})
  end
  op.p = p.default
end

local function destinations(op)
  local t = op.class:find("^FL") and "float32" or "int32"
  local f, x = nacre[op.name], filled(t, {30, 40})
  local want = f(x, 1)
  local out = want:zeros_like()
  check(f(x, 1, {out = out}) == out and out == want, "%s: out", op.name)
  local wide = nacre.zeros(40, 3, {dtype = want.dtype})
  f(x, 1, {out = wide:select(2, 3)})
  check(wide:select(2, 3) == want and not wide:select(2, 2):any():item(),
        "%s: out with gaps", op.name)
  if want.dtype == x.dtype then
    local y = x:clone()
    f(y, 1, {out = y:select(1, 7)})
    check(y:select(1, 7) == want, "%s: out inside the operand", op.name)
  end
  fails("ESHAPE: " .. op.name, f, x, 1, {out = wide})
end

-- Bit for bit the same, whatever the number of threads.
local function threads(op)
  local t = op.class:find("^FL") and "float32" or "int32"
  for _, size in ipairs {{100003}, {3, 50001}, {50001, 3}} do
    local x = filled(t, size, 3)
    if O.isfloat(t) then x = x * x:sin() end
    for _, dim in ipairs {false, 1, -1} do
      local first
      for n = 1, 3 do
        nacre.set_num_threads(n)
        local y = x[op.name](x, {dim = dim or nil})
        first = first or y
        check(y == first, "%s of %s over %s on %d threads", op.name, shape(x),
              dim, n)
      end
    end
  end
  nacre.set_num_threads(2)
end

for _, op in ipairs(O.operations()) do
  if op.kind == "reduce" and (not arg or not arg[1] or arg[1] == op.name) then
    prepare(op)
    everytype(op)
    layouts(op, op.class:find("^FL") and "float32" or "int16")
    layouts(op, op.class:find("^FL") and "float16" or "float64")
    empty(op)
    odd(op)
    types(op)
    parameters(op)
    destinations(op)
    threads(op)
  end
end
O.done "reductions"
